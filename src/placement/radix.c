/* SPDX-License-Identifier: MIT */
/*
 * A persistent radix tree with fan-out 32. Its depth grows with the highest index and never shrinks
 * before it is empty.
 *
 * A change copies the path from the root to its leaf, except for nodes that the same build has made
 * already (N1). Empty nodes are removed, so every node leads to an item: "next" finds one without
 * looking into dead ends.
 */
#include "placement/placement_priv.h"

static uint32_t slot_of(uint64_t index, uint32_t shift) {
    return (uint32_t)(index >> shift) & (TN__RADIX_FAN - 1);
}

/* Whether the tree is deep enough for an index. */
static bool fits(const tn__radix *r, uint64_t index) {
    uint32_t bits = r->levels * TN__RADIX_BITS;
    return bits >= 64 || index >> bits == 0;
}

void *tn__radix_find(const tn__radix *r, uint64_t index) {
    return fits(r, index) ? tn__radix_descend(r, index) : NULL;
}

/* The first item at or after `from` below one node. Bits of `from` above the node's own do not
 * count. */
static void *next_below(const tn__radix_node *n, uint32_t shift, uint64_t from) {
    for (uint32_t slot = slot_of(from, shift); slot < TN__RADIX_FAN; slot++) {
        void *child = n->slots[slot];
        if (child && shift > 0)
            child = next_below(child, shift - TN__RADIX_BITS, from);
        if (child)
            return child;
        from = 0; /* later slots are looked through from their beginning */
    }
    return NULL;
}

void *tn__radix_next(const tn__radix *r, uint64_t from) {
    if (!r->root || !fits(r, from))
        return NULL;
    return next_below(r->root, (r->levels - 1) * TN__RADIX_BITS, from);
}

/* The node that the build may change in place of `n`; a new one for NULL. NULL: no memory. */
static tn__radix_node *own(tn__build *b, tn__radix_node *n) {
    const size_t size = sizeof(tn__radix_node);
    if (!n)
        return (tn__radix_node *)tn__node_create(b, TN__NODE_RADIX, size);
    if (tn__node_fresh(&n->node))
        return n;
    return (tn__radix_node *)tn__node_copy(b, &n->node, size, size);
}

/* Deepen the tree until it holds the index. */
static bool grow(tn__build *b, tn__radix *r, uint64_t index) {
    while (r->levels == 0 || !fits(r, index)) {
        if (r->root) {
            tn__radix_node *top = own(b, NULL);
            if (!top)
                return false;
            top->slots[0] = r->root;
            r->root = top;
        }
        r->levels++;
    }
    return true;
}

bool tn__radix_set(tn__build *b, tn__radix *r, uint64_t index, void *item) {
    if (!grow(b, r, index))
        return false;
    tn__radix_node *n = own(b, r->root);
    if (!n)
        return false;
    r->root = n;
    for (uint32_t shift = (r->levels - 1) * TN__RADIX_BITS; shift > 0; shift -= TN__RADIX_BITS) {
        void **slot = &n->slots[slot_of(index, shift)];
        n = own(b, *slot);
        if (!n)
            return false;
        *slot = n;
    }
    n->slots[slot_of(index, 0)] = item;
    return true;
}

static bool only_slot(const tn__radix_node *n, uint32_t slot) {
    for (uint32_t i = 0; i < TN__RADIX_FAN; i++)
        if (n->slots[i] && i != slot)
            return false;
    return true;
}

/* *out: what takes the node's place; NULL if nothing is left below it. False: no memory. */
static bool remove_below(tn__build *b, tn__radix_node *n, uint32_t shift, uint64_t index,
                         void **out) {
    uint32_t slot = slot_of(index, shift);
    void *child = NULL;
    TN_ASSERT(n->slots[slot] != NULL);
    if (shift > 0 && !remove_below(b, n->slots[slot], shift - TN__RADIX_BITS, index, &child))
        return false;
    if (!child && only_slot(n, slot)) {
        tn__node_retire(b, &n->node);
        *out = NULL;
        return true;
    }
    n = own(b, n);
    if (!n)
        return false;
    n->slots[slot] = child;
    *out = n;
    return true;
}

bool tn__radix_remove(tn__build *b, tn__radix *r, uint64_t index) {
    TN_ASSERT(tn__radix_find(r, index) != NULL);
    void *root;
    if (!remove_below(b, r->root, (r->levels - 1) * TN__RADIX_BITS, index, &root))
        return false;
    r->root = root;
    if (!root)
        r->levels = 0;
    return true;
}

static void walk_below(tn__radix_node *n, uint32_t shift, const tn__radix_visitor *v) {
    for (uint32_t slot = 0; slot < TN__RADIX_FAN; slot++) {
        void *child = n->slots[slot];
        if (child && shift > 0)
            walk_below(child, shift - TN__RADIX_BITS, v);
        else if (child && v->item)
            v->item(v->context, child);
    }
    if (v->node)
        v->node(v->context, &n->node);
}

void tn__radix_walk(const tn__radix *r, const tn__radix_visitor *visitor) {
    if (r->root)
        walk_below(r->root, (r->levels - 1) * TN__RADIX_BITS, visitor);
}

void tn__radix_items(const tn__radix *r, void (*item)(void *context, void *item), void *context) {
    tn__radix_visitor visitor = {.context = context, .item = item};
    tn__radix_walk(r, &visitor);
}
