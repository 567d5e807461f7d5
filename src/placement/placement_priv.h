/* SPDX-License-Identifier: MIT */
/*
 * What the files of placement share: nodes, the radix tree, the owner index's life.
 *
 * N1 A node that its build has not published has born = TN__FRESH: it may be changed in place. Any
 * other is copied first. N2 Every node is in exactly one of these: the current version, a build's
 * fresh list, the retired list, a version's kept list. A build's stale list threads nodes of the
 * current version; it counts only at publish.
 *
 * All functions that take a build run under store->lock.
 */
#ifndef TENURE_PLACEMENT_PRIV_H
#define TENURE_PLACEMENT_PRIV_H

#include "placement/placement_internal.h"

/* ---- Nodes ------------------------------------------------------------------------------ */

/* `born` of a node that is not published yet. */
#define TN__FRESH UINT64_MAX
/* `replaced` of a fresh node that its own build has replaced or removed again. */
#define TN__DROPPED 0
/* `replaced` of a node in the current version. */
#define TN__CURRENT UINT64_MAX

static inline bool tn__node_fresh(const tn__node *n) { return n->born == TN__FRESH; }

/* Start a node that belongs to no version yet. */
static inline void tn__node_init(tn__node *n, enum tn__node_kind kind) {
    *n = (tn__node){NULL, TN__FRESH, TN__CURRENT, (uint32_t)kind};
}

/* A new node of this build, zero behind its head; NULL: no memory. */
tn__node *tn__node_create(tn__build *b, enum tn__node_kind kind, size_t bytes);
/* A private copy of a node of this build or of the current version, which it replaces; `bytes` of
 * `size` are copied and the rest is zero. NULL: no memory. */
tn__node *tn__node_copy(tn__build *b, tn__node *from, size_t bytes, size_t size);
/* The build's next version does without this node. */
void tn__node_retire(tn__build *b, tn__node *n);
/* Poison (TN_CHECKS) and free. */
void tn__node_free(tn__node *n);
/* Free a list; the number of its nodes. */
uint64_t tn__node_free_list(tn__node *list);

/* ---- Radix tree ------------------------------------------------------------------------- */

/* NULL: absent. */
void *tn__radix_find(const tn__radix *r, uint64_t index);
/* The item with the lowest index >= `from`; NULL: none. */
void *tn__radix_next(const tn__radix *r, uint64_t from);
/* Put an item, replacing what is there. False: no memory. `r` belongs to the build (its version, a
 * fresh table). */
TN_NODISCARD bool tn__radix_set(tn__build *b, tn__radix *r, uint64_t index, void *item);
/* Remove the item at `index`, which is there. False: no memory. */
TN_NODISCARD bool tn__radix_remove(tn__build *b, tn__radix *r, uint64_t index);

/* What a walk calls; `item` may be NULL. A node comes after everything below it, so that it may be
 * freed or relinked. */
typedef struct tn__radix_visitor {
    void (*item)(void *context, void *item);
    void (*node)(void *context, tn__node *node);
    void *context;
} tn__radix_visitor;

void tn__radix_walk(const tn__radix *r, const tn__radix_visitor *visitor);

/* ---- Parts of builds -------------------------------------------------------------------- */

/* The next version's table, private; NULL: no memory. `more` places are added, zero. */
tn__table *tn__build_table(tn__build *b, uint32_t more);
/* The next version's value of a present index, private, with room for `more` materializations;
 * NULL: no memory. */
tn__value *tn__build_value(tn__build *b, uint64_t index, uint16_t more);

/* ---- Other ------------------------------------------------------------------------------ */

/* Host indices do not count: make them 0. */
static inline tn_location tn__location_plain(tn_location at) {
    if (at.kind != TN_LOCATION_CUDA)
        at.index = 0;
    return at;
}

/* As tn__version_place(). */
tn__place *tn__table_place(tn__table *table, tn_location at);
/* Poison (TN_CHECKS) and free a version's own memory. */
void tn__version_free(tn_version *v);
/* There may be something to collect. Any thread. */
void tn__store_note_garbage(tn__store *s);

tn__owners *tn__owners_create(void); /* NULL: no memory */
void tn__owners_destroy(tn__owners *owners);

/* Ring of visible discarded values, under store->lock. Room for one more; false: no memory. */
TN_NODISCARD bool tn__discards_prepare(tn__store *s);
/* Whether discarding one more forgets the oldest. */
bool tn__discards_full(const tn__store *s);
uint64_t tn__discards_oldest(const tn__store *s);
void tn__discards_push(tn__store *s, uint64_t index);

#endif
