/* SPDX-License-Identifier: MIT */
/*
 * The next version: begin, abort, the location table, and clearing everything.
 *
 * Whatever a build makes is on its fresh list, whatever it replaces on its stale list. Abort frees
 * the former and forgets the latter; no published node has changed (P1; `next` and `replaced` are
 * the writer's own).
 */
#include <string.h>

#include "placement/placement_priv.h"

tn_status tn__build_begin(tn__store *s, tn__build *b) {
    tn__assert_locked(&s->lock);
    *b = (tn__build){.store = s};
    tn_version *next = tn__zalloc(sizeof *next);
    if (!next)
        return tn__no_memory();
    const tn_version *current = s->newest;
    next->values = current->values;
    next->table = current->table;
    next->issued = current->issued;
    next->value_count = current->value_count;
    tn__store_rlx(&next->refs, 1); /* published with the pointer */
    b->next = next;
    return TN_OK;
}

/* Materializations stay the caller's. */
void tn__build_abort(tn__build *b) {
    tn__assert_locked(&b->store->lock);
    for (tn__node *n = b->fresh, *next; n; n = next) {
        next = n->next;
        if (n->kind == TN__NODE_MAT)
            tn__node_init(n, TN__NODE_MAT);
        else
            tn__node_free(n);
    }
    if (b->next)
        tn__version_free(b->next);
    *b = (tn__build){0};
}

/* ---- Locations -------------------------------------------------------------------------- */

tn__table *tn__build_table(tn__build *b, uint32_t more) {
    tn__table *table = b->next->table;
    if (more == 0 && tn__node_fresh(&table->node))
        return table;
    size_t bytes = sizeof *table + table->count * sizeof table->places[0];
    tn__node *copy = tn__node_copy(b, &table->node, bytes, bytes + more * sizeof table->places[0]);
    if (!copy)
        return NULL;
    table = b->next->table = (tn__table *)copy;
    table->count += more;
    return table;
}

tn_status tn__build_track(tn__build *b, tn_location at) {
    tn__assert_locked(&b->store->lock);
    if (tn__version_place(b->next, at))
        return TN_OK;
    tn__table *table = tn__build_table(b, 1);
    if (!table)
        return tn__no_memory();
    table->places[table->count - 1].at = tn__location_plain(at);
    b->counted++;
    return TN_OK;
}

/* ---- Close ------------------------------------------------------------------------------ */

struct clearing {
    tn__build *build;
    void (*each)(void *context, tn__mat *mat);
    void *context;
};

static void clear_value(void *context, void *item) {
    struct clearing *c = context;
    tn__value *value = item;
    for (uint32_t i = 0; i < value->mat_count; i++) {
        if (c->each)
            c->each(c->context, value->mats[i]);
        tn__node_retire(c->build, &value->mats[i]->node);
    }
    tn__node_retire(c->build, &value->node);
}

static void clear_node(void *context, tn__node *n) {
    struct clearing *c = context;
    tn__node_retire(c->build, n);
}

/* The table is made first: it is all that can fail, so `each` is called only if the step succeeds.
 */
tn_status tn__build_clear(tn__build *b, void (*each)(void *context, tn__mat *mat), void *context) {
    tn__assert_locked(&b->store->lock);
    tn__table *table = tn__build_table(b, 0);
    if (!table)
        return tn__no_memory();
    struct clearing c = {b, each, context};
    const tn__radix_visitor values = {clear_value, clear_node, &c};
    const tn__radix_visitor resident = {NULL, clear_node, &c};
    tn__radix_walk(&b->next->values, &values);
    b->next->values = (tn__radix){0};
    b->next->value_count = 0;
    for (uint32_t i = 0; i < table->count; i++) {
        tn__place *place = &table->places[i];
        tn__radix_walk(&place->resident, &resident);
        place->resident = (tn__radix){0};
        place->used_bytes = 0;
        place->value_count = 0;
    }
    b->discarded = 0;
    b->counted++;
    return TN_OK;
}
