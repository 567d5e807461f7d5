/* SPDX-License-Identifier: MIT */
/*
 * Nodes of versions: making, replacing, freeing.
 */
#include <string.h>

#include "placement/placement_priv.h"

#define POISON 0xDB
#define POISONED UINT64_C(0xDBDBDBDBDBDBDBDB)

static void link_fresh(tn__build *b, tn__node *n) {
    n->next = b->fresh;
    b->fresh = n;
}

tn__node *tn__node_create(tn__build *b, enum tn__node_kind kind, size_t bytes) {
    tn__node *n = tn__zalloc(bytes);
    if (!n)
        return NULL;
    tn__node_init(n, kind);
    link_fresh(b, n);
    return n;
}

tn__node *tn__node_copy(tn__build *b, tn__node *from, size_t bytes, size_t size) {
    tn__node *n = tn__alloc(size);
    if (!n)
        return NULL;
    memcpy(n, from, bytes);
    memset((char *)n + bytes, 0, size - bytes);
    tn__node_init(n, (enum tn__node_kind)from->kind);
    link_fresh(b, n);
    tn__node_retire(b, from);
    return n;
}

void tn__node_retire(tn__build *b, tn__node *n) {
    TN_ASSERT(n->replaced == TN__CURRENT);
    if (tn__node_fresh(n)) {
        n->replaced = TN__DROPPED;
        return;
    }
    n->next = b->stale;
    b->stale = n;
}

/* At least the bytes that are in use. */
static size_t node_size(const tn__node *n) {
    switch ((enum tn__node_kind)n->kind) {
    case TN__NODE_RADIX:
        return sizeof(tn__radix_node);
    case TN__NODE_VALUE:
        return sizeof(tn__value) + ((const tn__value *)n)->mat_count * sizeof(tn__mat *);
    case TN__NODE_MAT:
        return sizeof(tn__mat) + ((const tn__mat *)n)->storage_count * sizeof(tn_storage);
    case TN__NODE_TABLE:
        return sizeof(tn__table) + ((const tn__table *)n)->count * sizeof(tn__place);
    }
    return sizeof(tn__node);
}

void tn__node_free(tn__node *n) {
    if (TN_CHECKS) {
        TN_ASSERT(n->born != POISONED);
        memset(n, POISON, node_size(n));
    }
    tn__free(n);
}

uint64_t tn__node_free_list(tn__node *list) {
    uint64_t count = 0;
    for (tn__node *next; list; list = next, count++) {
        next = list->next;
        tn__node_free(list);
    }
    return count;
}

void tn__version_free(tn_version *v) {
    if (TN_CHECKS) {
        TN_ASSERT(v->number != POISONED);
        memset(v, POISON, sizeof *v);
    }
    tn__free(v);
}
