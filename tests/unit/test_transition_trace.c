/* SPDX-License-Identifier: MIT */
/* src/transition/trace.c: growth, wrap, limits, late readings (M92, M233..M235). */
#include "core_fixture.h"

static tn_report numbered(uint64_t n) {
    return (tn_report){.size = sizeof(tn_report), .started_at_ns = n};
}

static void put(tn__trace *trace, uint64_t n) {
    tn_report r = numbered(n);
    assert_true(tn__trace_prepare(trace));
    assert_int_equal(tn__trace_append(trace, &r), n);
}

static uint64_t at(const tn__trace *trace, uint64_t i) {
    return trace->ring[(trace->first + i) % trace->room].started_at_ns;
}

/* The last `count` reports before `end`. */
static void expect_tail(const tn__trace *trace, uint64_t count, uint64_t end) {
    assert_int_equal(trace->count, count);
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(at(trace, i), end - count + i);
}

static void trace_without_limit_keeps_everything(void **state) {
    tn__trace trace = {.capacity = UINT64_MAX};
    (void)state;
    for (uint64_t n = 0; n < 1000; n++)
        put(&trace, n);
    expect_tail(&trace, 1000, 1000);
    assert_int_equal(trace.room, 1024);
    tn__free(trace.ring);
}

/* For each capacity: the oldest go, in order, also across growth after a wrap. */
static void trace_keeps_the_youngest(void **state) {
    (void)state;
    for (uint64_t capacity = 1; capacity <= 70; capacity++) {
        tn__trace trace = {.capacity = capacity};
        for (uint64_t n = 0; n < 200; n++) {
            put(&trace, n);
            expect_tail(&trace, n + 1 < capacity ? n + 1 : capacity, n + 1);
        }
        assert_int_equal(trace.room, capacity);
        tn__free(trace.ring);
    }
}

/* Cleared in the middle of the ring: what follows wraps before the ring is full, then grows. */
static void trace_grows_after_it_was_cleared(void **state) {
    tn__trace trace = {.capacity = 64};
    (void)state;
    for (uint64_t n = 0; n < 10; n++)
        put(&trace, n);
    trace.first = 10;
    trace.count = 0;
    for (uint64_t n = 10; n < 50; n++) {
        put(&trace, n);
        expect_tail(&trace, n - 9, n + 1);
    }
    assert_int_equal(trace.room, 64);
    tn__free(trace.ring);
}

static void trace_of_capacity_none_counts_only(void **state) {
    tn__trace trace = {.capacity = 0};
    tn_report r = numbered(0);
    (void)state;
    put(&trace, 0);
    put(&trace, 1);
    tn__trace_readings(&trace, 0, &r);
    assert_null(trace.ring);
    assert_int_equal(trace.appended, 2);
}

static void trace_readings_reach_their_report_while_it_is_there(void **state) {
    tn__trace trace = {.capacity = 4};
    tn_report late = numbered(0);
    (void)state;
    for (uint64_t n = 0; n < 6; n++)
        put(&trace, n);
    late.allocated_bytes_after = 1;
    late.held_bytes_after = 2;
    tn__trace_readings(&trace, 1, &late); /* gone */
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(trace.ring[i].allocated_bytes_after, 0);
    tn__trace_readings(&trace, 2, &late); /* the oldest */
    tn__trace_readings(&trace, 5, &late); /* the youngest */
    assert_int_equal(trace.ring[(trace.first + 0) % 4].held_bytes_after, 2);
    assert_int_equal(trace.ring[(trace.first + 1) % 4].held_bytes_after, 0);
    assert_int_equal(trace.ring[(trace.first + 3) % 4].allocated_bytes_after, 1);
    tn__free(trace.ring);
}

static void trace_that_cannot_grow_says_so_and_stays(void **state) {
    tn__trace trace = {.capacity = UINT64_MAX};
    (void)state;
    for (uint64_t n = 0; n < 16; n++)
        put(&trace, n);
    tn__fault_alloc(1);
    assert_false(tn__trace_prepare(&trace));
    tn__fault_alloc(0);
    expect_tail(&trace, 16, 16);
    trace.count = trace.room = SIZE_MAX / sizeof(tn_report) + 1; /* its size overflows */
    assert_false(tn__trace_prepare(&trace));
    tn__free(trace.ring);
}

/* The stride is the caller's size of the first element; what is beyond ours becomes 0. */
static void trace_is_copied_with_the_callers_stride(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    struct larger {
        tn_report report;
        uint64_t more;
    } rows[3];
    size_t count = 3, none = 0;
    for (int i = 0; i < 2; i++)
        (void)ensure(m, v, i ? N : C0);
    memset(rows, 0xff, sizeof rows);
    rows[0].report.size = sizeof rows[0];
    assert_ok(tn_manager_trace(m, &rows[0].report, &count));
    assert_int_equal(count, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rows[i].report.size, sizeof rows[0]);
        assert_int_equal(rows[i].more, 0);
        assert_at(rows[i].report.destination, i ? N : C0);
    }
    assert_int_equal(rows[2].more, UINT64_MAX);
    count = 1; /* the oldest that fit; the real total */
    assert_ok(tn_manager_trace(m, &rows[0].report, &count));
    assert_int_equal(count, 2);
    assert_ok(tn_manager_clear_trace(m));
    assert_ok(tn_manager_trace(m, NULL, &none));
    assert_int_equal(none, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(trace_without_limit_keeps_everything),
    cmocka_unit_test(trace_keeps_the_youngest),
    cmocka_unit_test(trace_grows_after_it_was_cleared),
    cmocka_unit_test(trace_of_capacity_none_counts_only),
    cmocka_unit_test(trace_readings_reach_their_report_while_it_is_there),
    cmocka_unit_test(trace_that_cannot_grow_says_so_and_stays),
    SPEC_CONCURRENT(trace_is_copied_with_the_callers_stride),
};

TN_TEST_MAIN("unit.transition_trace", tests)
