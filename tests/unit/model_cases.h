/* SPDX-License-Identifier: MIT */
/*
 * What the tests of the reference model share: a world, one manager, a source, and short names for
 * calls that must succeed. The model is the judge of the property test, so it is judged first, by
 * the numbers of the specification's cases; the library takes no part.
 */
#ifndef TN_TEST_MODEL_CASES_H
#define TN_TEST_MODEL_CASES_H

#include "tn_test.h"

#include <string.h>

#include "model.h"

#define P tn_location_pageable()
#define N tn_location_pinned()
#define C0 tn_location_cuda(0)
#define C1 tn_location_cuda(1)
#define ANY tn_location_none()

static tm_world world;
static tm_manager manager, *const m = &manager;
static char memory[4096];
static size_t memory_used;
static uint64_t calls; /* of source() */
static tn_status source_status;
static tn_location source_at; /* kind none: where it is asked for */
static uint64_t source_logical, source_actual;
static const tn_value_type *source_type;
static const void *source_base;

static const tn_value_type type = {.size = sizeof(tn_value_type), .name = "value"};
static const tn_value_type subtype = {.size = sizeof(tn_value_type), .name = "sub", .super = &type};

/* Streams of the test: s0, s1, s2 on device 0; s3 on device 1. */
static char streams[4];
#define STREAM(i) ((tn_stream)(void *)&streams[i])

static inline void start_(const tn_budget *budgets, size_t count) {
    tm_config config = {budgets, count, 0, TN_KEEP_ALL};
    tm_world_init(&world, 2);
    for (uint32_t i = 0; i < 4; i++)
        tm_world_stream(&world, STREAM(i), i == 3, false);
    tm_create(m, &world, 7, &config);
    memory_used = 0;
    calls = 0;
    source_status = TN_OK;
    source_at = ANY;
    source_logical = source_actual = 32;
    source_type = &type;
    source_base = NULL;
}

#define START(...)                                                                                 \
    start_((tn_budget[]){{{0, 0}, 0}, __VA_ARGS__} + 1,                                            \
           sizeof((tn_budget[]){{{0, 0}, 0}, __VA_ARGS__}) / sizeof(tn_budget) - 1)

static inline tm_payload payload_at(tn_location at, uint64_t logical, uint64_t actual) {
    tm_payload p = {.type = &type, .field_count = 1};
    p.data = p.fields[0].base = &memory[memory_used++ % sizeof memory];
    p.fields[0].bytes = actual;
    p.fields[0].logical = logical;
    p.fields[0].elem = 8;
    p.fields[0].pieces = 1;
    p.fields[0].at = at;
    world.live++;
    return p;
}

static inline tn_status source(void *context, const tn_value_spec *spec, tn_location at,
                               tm_payload *out, int64_t *out_code) {
    (void)context;
    (void)spec;
    calls++;
    if (source_status != TN_OK) {
        *out_code = 99;
        return source_status;
    }
    *out = payload_at(source_at.kind ? source_at : at, source_logical, source_actual);
    out->type = source_type;
    if (source_base)
        out->fields[0].base = source_base;
    return TN_OK;
}

static inline tn_handle adopt_v(tn_location at, uint32_t mode) {
    tm_payload p = payload_at(at, 32, 32);
    tn_handle h = {0, 0, NULL};
    assert_status(tm_adopt(m, &p, at, mode, &h), TN_OK);
    return h;
}

static inline tn_handle register_src(tn_location at) {
    tn_value_spec spec = {sizeof spec, &type, 32, 32, TN_REPLICABLE, TN_RECONSTRUCTIBLE};
    tn_handle h = {0, 0, NULL};
    assert_status(tm_register(m, &spec, source, NULL, at, &h), TN_OK);
    return h;
}

static inline uint64_t version(void) {
    uint64_t v = 0;
    assert_status(tm_version(m, &v), TN_OK);
    return v;
}

static inline void expect_place(tn_location at, uint64_t used, uint64_t reserved,
                                uint64_t peak_used, uint64_t peak_charged) {
    tm_place *p = tm_place_at(m, at);
    assert_non_null(p);
    assert_int_equal(p->used, used);
    assert_int_equal(p->reserved, reserved);
    assert_int_equal(p->peak_used, peak_used);
    assert_int_equal(p->peak_charged, peak_charged);
}

static inline void expect_budget(tn_location at, uint64_t budget, uint64_t used, uint64_t reserved,
                                 uint64_t requested) {
    assert_int_equal(m->error.status, TN_ERR_BUDGET);
    assert_true(tn_location_equal(m->error.at, at));
    assert_int_equal(m->error.budget_bytes, budget);
    assert_int_equal(m->error.used_bytes, used);
    assert_int_equal(m->error.reserved_bytes, reserved);
    assert_int_equal(m->error.requested_bytes, requested);
}

static inline void expect_in_use(uint64_t uses, uint64_t holds, uint64_t pending) {
    assert_int_equal(m->error.status, TN_ERR_IN_USE);
    assert_int_equal(m->error.use_count, uses);
    assert_int_equal(m->error.hold_count, holds);
    assert_int_equal(m->error.pending_count, pending);
}

static inline void expect_report(uint32_t kind, uint32_t no_op, tn_location from, tn_location to) {
    assert_int_equal(m->report.action.kind, kind);
    assert_int_equal(m->report.no_op, no_op);
    assert_true(tn_location_equal(m->report.source, from));
    assert_true(tn_location_equal(m->report.destination, to));
}

static inline void expect_locations_(const tn_location *at, size_t count) {
    assert_int_equal(m->place_count, count);
    for (size_t i = 0; i < count; i++)
        assert_true(tn_location_equal(m->places[i].at, at[i]));
}
#define expect_locations(...)                                                                      \
    expect_locations_((tn_location[]){__VA_ARGS__},                                                \
                      sizeof((tn_location[]){__VA_ARGS__}) / sizeof(tn_location))

static inline void expect_replicas_(tn_handle h, const tn_location *at, size_t count) {
    tm_value *v = tm_find(m, h);
    assert_int_equal(v->count, count);
    for (size_t i = 0; i < count; i++)
        assert_true(tn_location_equal(v->at[i].at, at[i]));
}
#define expect_replicas(h, ...)                                                                    \
    expect_replicas_(h, (tn_location[]){{0, 0}, __VA_ARGS__} + 1,                                  \
                     sizeof((tn_location[]){{0, 0}, __VA_ARGS__}) / sizeof(tn_location) - 1)

static inline tm_reservation *reserve(tn_location at, uint64_t bytes) {
    tm_reservation *r = NULL;
    assert_status(tm_reserve(m, at, bytes, "r", &r), TN_OK);
    return r;
}

static inline tm_lease *acquire(tn_handle h, tn_location at, tn_stream stream) {
    tm_lease *l = NULL;
    assert_status(tm_acquire(m, &h, 1, at, stream, &l), TN_OK);
    return l;
}

static inline tm_hold *hold(tn_handle h, tn_location at) {
    tm_hold *out = NULL;
    assert_status(tm_hold_take(m, &h, 1, at, &out), TN_OK);
    return out;
}

/* The fault that stands first, for the calls from now on. */
static inline void arm(uint32_t entry, tn_status status, int64_t code) {
    world.fault_count = 1;
    world.faults[0] =
        (tm_fault){.entry = entry, .status = status, .code = code, .nth = 1, .count = 1};
}

#endif
