/* SPDX-License-Identifier: MIT */
/*
 * Spans of addresses, sorted: a treap whose nodes live in their owners. Lookups, insertions and
 * removals take O(log n); so does the lowest span that is large enough.
 */
#ifndef TENURE_SIM_MAP_H
#define TENURE_SIM_MAP_H

#include <stdint.h>

typedef struct tn__sim_node {
    uintptr_t base;
    uint64_t bytes;
    uint64_t most; /* largest `bytes` in this subtree */
    uint32_t priority;
    struct tn__sim_node *left;
    struct tn__sim_node *right;
} tn__sim_node;

/* Bases are distinct; base and bytes are set by the caller. */
void tn__sim_map_insert(tn__sim_node **root, tn__sim_node *node);
/* The node must be in the map. */
void tn__sim_map_remove(tn__sim_node **root, tn__sim_node *node);
/* The node with the highest base that is not above `address`, or NULL. */
tn__sim_node *tn__sim_map_below(tn__sim_node *root, uintptr_t address);
/* The node whose base is `address`, or NULL. */
tn__sim_node *tn__sim_map_at(tn__sim_node *root, uintptr_t address);
/* The lowest node with at least `bytes`, or NULL. */
tn__sim_node *tn__sim_map_first_fit(tn__sim_node *root, uint64_t bytes);

#endif
