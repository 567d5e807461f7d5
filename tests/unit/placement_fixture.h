/* SPDX-License-Identifier: MIT */
/*
 * What the tests of placement share: a store, values and materializations without real payloads,
 * the full check of P3, and a count of the nodes that a set of versions needs.
 */
#ifndef PLACEMENT_FIXTURE_H
#define PLACEMENT_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include "placement/placement_priv.h"
#include "tn_test.h"

#define MANAGER 7u

static const tn_value_type fixture_type = {.size = sizeof(tn_value_type), .name = "fixture"};

/* xorshift: the same sequence for a seed everywhere. */
static inline uint64_t random_next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static inline uint64_t random_start(void) { return tn_test_seed() | 1; }

static inline tn__store *make_store(uint64_t keep_discarded) {
    tn__store *s = NULL;
    assert_ok(tn__store_create(MANAGER, NULL, 0, keep_discarded, &s));
    return s;
}

static inline tn_value_spec make_spec(uint64_t charge) {
    tn_value_spec spec = TN_VALUE_SPEC_INIT;
    spec.type = &fixture_type;
    spec.logical_bytes = charge;
    spec.storage_bytes = charge;
    spec.replica_mode = TN_REPLICABLE;
    return spec;
}

static inline tn_status try_mat(tn_location at, uint64_t charge, tn__mat **out) {
    tn__measured measured = {.logical_bytes = charge, .storage_bytes = charge, .at = at};
    tn_payload payload = {&fixture_type, NULL};
    return tn__mat_create(payload, at, &measured, charge, out);
}

static inline tn__mat *make_mat(tn_location at, uint64_t charge) {
    tn__mat *mat = NULL;
    assert_ok(try_mat(at, charge, &mat));
    return mat;
}

static inline void begin(tn__store *s, tn__build *b) {
    tn__lock(&s->lock);
    assert_ok(tn__build_begin(s, b));
}

static inline void publish(tn__store *s, tn__build *b) {
    tn__store_publish(b);
    tn__unlock(&s->lock);
}

static inline void abort_build(tn__store *s, tn__build *b) {
    tn__build_abort(b);
    tn__unlock(&s->lock);
}

static inline uint64_t add(tn__build *b, uint64_t charge) {
    tn_value_spec spec = make_spec(charge);
    uint64_t index = 0;
    assert_ok(tn__build_add_value(b, &spec, NULL, tn_location_none(), &index));
    return index;
}

/* Track, make and install. */
static inline tn__mat *install(tn__build *b, uint64_t index, tn_location at, uint64_t charge) {
    tn__mat *mat = make_mat(at, charge);
    assert_ok(tn__build_track(b, at));
    assert_ok(tn__build_install(b, index, mat));
    return mat;
}

/* One published build that adds `count` values, each resident at `at`. */
static inline void populate(tn__store *s, uint64_t count, tn_location at, uint64_t charge) {
    tn__build b;
    begin(s, &b);
    for (uint64_t i = 0; i < count; i++)
        install(&b, add(&b, charge), at, charge);
    publish(s, &b);
}

/* One published build that replaces the record and the materialization of a value. */
static inline void churn(tn__store *s, uint64_t index, tn_location at) {
    tn__build b;
    begin(s, &b);
    const tn__value *value = tn__version_value(s->newest, index);
    tn__mat *mat = tn__value_mat(value, at);
    uint64_t charge = value->charge_bytes;
    if (mat)
        assert_ok(tn__build_remove(&b, mat));
    install(&b, index, at, charge);
    publish(s, &b);
}

static inline uint64_t collect(tn__store *s) {
    uint64_t freed = 0;
    assert_ok(tn__store_collect(s, &freed));
    return freed;
}

/* ---- P3, in full -------------------------------------------------------------------------- */

/* NULL, or what is wrong with a place. Not an assertion: workers call it too. */
static inline const char *place_fault(const tn_version *v, const tn__place *place) {
    uint64_t used = 0, count = 0;
    for (tn__mat *m = tn__place_next(place, 0); m; m = tn__place_next(place, m->index + 1)) {
        const tn__value *value = tn__version_value(v, m->index);
        if (!value || tn__value_mat(value, place->at) != m)
            return "a resident that its value does not list";
        used += m->charged_bytes;
        count++;
    }
    if (used != place->used_bytes || count != place->value_count)
        return "used bytes or values are not the sum of the residents";
    return place->used_bytes > place->peak_used_bytes ? "used above its peak" : NULL;
}

static inline const char *version_fault(const tn_version *v) {
    uint64_t values = 0, mats = 0, resident = 0, last = 0;
    for (const tn__value *x = tn__version_next(v, 0); x; x = tn__version_next(v, last + 1)) {
        if (x->index <= last || x->index > v->issued)
            return "values out of order, or never issued";
        last = x->index;
        mats += x->mat_count;
        values++;
    }
    for (uint32_t i = 0; i < v->table->count; i++) {
        const char *fault = place_fault(v, &v->table->places[i]);
        if (fault)
            return fault;
        resident += v->table->places[i].value_count;
    }
    return values != v->value_count || mats != resident ? "counts do not agree" : NULL;
}

/* ---- Nodes of versions -------------------------------------------------------------------- */

struct node_set {
    const void **nodes;
    size_t count, room;
};

static inline void set_add(struct node_set *set, const void *node) {
    if (set->count == set->room) {
        set->room = set->room ? set->room * 2 : 1024;
        set->nodes = realloc(set->nodes, set->room * sizeof *set->nodes);
        assert_non_null(set->nodes);
    }
    set->nodes[set->count++] = node;
}

static inline void set_add_node(void *context, tn__node *n) { set_add(context, n); }

static inline void set_add_value(void *context, void *item) {
    const tn__value *value = item;
    set_add(context, value);
    for (uint32_t i = 0; i < value->mat_count; i++)
        set_add(context, value->mats[i]);
}

static inline void set_add_version(struct node_set *set, const tn_version *v) {
    const tn__radix_visitor values = {set_add_value, set_add_node, set};
    const tn__radix_visitor resident = {NULL, set_add_node, set};
    set_add(set, v);
    set_add(set, v->table);
    tn__radix_walk(&v->values, &values);
    for (uint32_t i = 0; i < v->table->count; i++)
        tn__radix_walk(&v->table->places[i].resident, &resident);
}

static inline int set_order(const void *a, const void *b) {
    uintptr_t x = (uintptr_t) * (void *const *)a, y = (uintptr_t) * (void *const *)b;
    return x < y ? -1 : x > y;
}

/* How many different blocks the versions need, their own memory included. */
static inline uint64_t blocks_of(const tn_version *const *versions, size_t count) {
    struct node_set set = {NULL, 0, 0};
    for (size_t i = 0; i < count; i++)
        set_add_version(&set, versions[i]);
    qsort(set.nodes, set.count, sizeof *set.nodes, set_order);
    uint64_t different = 0;
    for (size_t i = 0; i < set.count; i++)
        different += i == 0 || set.nodes[i] != set.nodes[i - 1];
    free(set.nodes);
    return different;
}

#endif
