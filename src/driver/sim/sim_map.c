/* SPDX-License-Identifier: MIT */
/* A treap: sorted by base, heap-ordered by a priority made from the base, so that the same calls
 * give the same tree. */
#include "driver/sim/sim_map.h"

#include <stddef.h>

static uint32_t priority_of(uintptr_t base) {
    uint64_t x = (uint64_t)base * UINT64_C(0x9E3779B97F4A7C15);

    x ^= x >> 29;
    x *= UINT64_C(0xBF58476D1CE4E5B9);
    return (uint32_t)(x >> 32);
}

static uint64_t most_of(const tn__sim_node *node) { return node ? node->most : 0; }

static void update(tn__sim_node *node) {
    uint64_t most = node->bytes;

    if (most_of(node->left) > most)
        most = most_of(node->left);
    if (most_of(node->right) > most)
        most = most_of(node->right);
    node->most = most;
}

/* Everything below `base` to the left, the rest to the right. */
static void split(tn__sim_node *root, uintptr_t base, tn__sim_node **left, tn__sim_node **right) {
    if (root == NULL) {
        *left = NULL;
        *right = NULL;
        return;
    }
    if (root->base < base) {
        split(root->right, base, &root->right, right);
        *left = root;
    } else {
        split(root->left, base, left, &root->left);
        *right = root;
    }
    update(root);
}

static tn__sim_node *merge(tn__sim_node *left, tn__sim_node *right) {
    if (left == NULL)
        return right;
    if (right == NULL)
        return left;
    if (left->priority > right->priority) {
        left->right = merge(left->right, right);
        update(left);
        return left;
    }
    right->left = merge(left, right->left);
    update(right);
    return right;
}

static void insert(tn__sim_node **root, tn__sim_node *node) {
    if (*root == NULL || (*root)->priority < node->priority) {
        split(*root, node->base, &node->left, &node->right);
        *root = node;
    } else if (node->base < (*root)->base) {
        insert(&(*root)->left, node);
    } else {
        insert(&(*root)->right, node);
    }
    update(*root);
}

static void take_out(tn__sim_node **root, tn__sim_node *node) {
    if (*root == node) {
        *root = merge(node->left, node->right);
        return;
    }
    if (node->base < (*root)->base)
        take_out(&(*root)->left, node);
    else
        take_out(&(*root)->right, node);
    update(*root);
}

void tn__sim_map_insert(tn__sim_node **root, tn__sim_node *node) {
    node->priority = priority_of(node->base);
    node->left = NULL;
    node->right = NULL;
    node->most = node->bytes;
    insert(root, node);
}

void tn__sim_map_remove(tn__sim_node **root, tn__sim_node *node) { take_out(root, node); }

tn__sim_node *tn__sim_map_below(tn__sim_node *root, uintptr_t address) {
    tn__sim_node *best = NULL;

    while (root != NULL) {
        if (root->base <= address) {
            best = root;
            root = root->right;
        } else {
            root = root->left;
        }
    }
    return best;
}

tn__sim_node *tn__sim_map_at(tn__sim_node *root, uintptr_t address) {
    tn__sim_node *node = tn__sim_map_below(root, address);

    return node != NULL && node->base == address ? node : NULL;
}

tn__sim_node *tn__sim_map_first_fit(tn__sim_node *root, uint64_t bytes) {
    if (most_of(root) < bytes)
        return NULL;
    for (;;) {
        if (most_of(root->left) >= bytes)
            root = root->left;
        else if (root->bytes >= bytes)
            return root;
        else
            root = root->right;
    }
}
