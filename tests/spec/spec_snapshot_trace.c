/* SPDX-License-Identifier: MIT */
/*
 * Snapshots, the trace, allocator readings (M91, M92, M224..M235; cases MC164..MC168,
 * MC174..MC176).
 */
#include "spec_b_common.h"

static tn_manager *manager_with_trace(struct spec *f, uint64_t capacity) {
    tn_config config = spec_config(f);

    config.trace_capacity = capacity;
    return spec_manager_with(f, &config);
}

/* ---- Trace ---------------------------------------------------------------------------------- */

static void mc164_the_trace_keeps_the_youngest(void **state) {
    static const struct {
        uint64_t capacity;
        size_t kept;
    } rows[] = {{TN_TRACE_NONE, 0},     {1, 1}, {2, 2}, {3, 3}, {4, 3}, {0, 3},
                {TN_TRACE_UNLIMITED, 3}};
    struct spec *f = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tn_manager *m = manager_with_trace(f, rows[i].capacity);
        tn_handle v = adopt_rep(f, m, P);
        tn_report done[3];

        done[0] = ensure(m, v, N); /* reports returned to callers do not depend on the capacity */
        done[1] = ensure(m, v, N);
        done[2] = drop(m, v, N);
        assert_report(done[0], TN_ACTION_ENSURE, 0, P, N);
        assert_report(done[1], TN_ACTION_ENSURE, 1, NOWHERE, N);
        assert_report(done[2], TN_ACTION_DROP, 0, N, NOWHERE);
        assert_int_equal(trace_count(m), rows[i].kept);
        for (size_t k = 0; k < rows[i].kept; k++) {
            tn_report seen = trace_at(m, k);
            const tn_report *want = &done[3 - rows[i].kept + k];

            assert_memory_equal(&seen, want, sizeof seen);
        }
    }
}

/* More room than reports, less room than reports: the real total, the oldest that fit. */
static void mc164_reading_the_trace_into_an_array(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_report rows[8];
    size_t count = 8;

    ensure(m, v, N);
    ensure(m, v, N);
    drop(m, v, N);
    memset(rows, 0, sizeof rows);
    rows[0].size = sizeof rows[0];
    assert_ok(tn_manager_trace(m, rows, &count));
    assert_int_equal(count, 3);
    assert_report(rows[2], TN_ACTION_DROP, 0, N, NOWHERE);
    memset(rows, 0, sizeof rows);
    rows[0].size = sizeof rows[0];
    count = 2;
    assert_ok(tn_manager_trace(m, rows, &count));
    assert_int_equal(count, 3);
    assert_report(rows[0], TN_ACTION_ENSURE, 0, P, N);
    assert_report(rows[1], TN_ACTION_ENSURE, 1, NOWHERE, N);
    assert_int_equal(rows[2].action.kind, TN_ACTION_NONE);
    assert_status(tn_manager_trace(m, NULL, NULL), TN_ERR_KIND);
    count = 1;
    assert_status(tn_manager_trace(m, NULL, &count), TN_ERR_KIND);
    assert_status(tn_manager_trace(NULL, rows, &count), TN_ERR_KIND);
    rows[0].size = 4; /* no struct of ours was ever that small */
    assert_status(tn_manager_trace(m, rows, &count), TN_ERR_KIND);
}

static void mc165_clearing_the_trace(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    char *before;

    ensure(m, v, N);
    assert_int_equal(trace_count(m), 1);
    before = spec_describe(m, 0);
    assert_ok(tn_manager_clear_trace(m));
    assert_int_equal(trace_count(m), 0);
    assert_unchanged(m, before, 0);
    ensure(m, v, N);
    assert_int_equal(trace_count(m), 1);
    assert_ok(tn_manager_close(m, 0));
    assert_int_equal(trace_count(m), 1); /* close does not empty it */
    assert_report(trace_at(m, 0), TN_ACTION_ENSURE, 1, NOWHERE, N);
    assert_ok(tn_manager_clear_trace(m));
    assert_int_equal(trace_count(m), 0);
}

/* Its first two actions complete, its third fails: only direct ones here. */
static void mc176_only_completed_actions_are_traced(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *bad = spec_source(f);
    tn_handle first = register_src(m, spec_source(f));
    tn_handle second = register_src(m, spec_source(f));
    tn_handle third = register_src(m, bad);
    tn_handle v = adopt_rep(f, m, P);
    tn_lease lease = acquire(m, v, P, NULL);
    tn_hold h = hold(m, v, P);
    tn_reservation r = reserve(m, P, 1, "x");

    assert_int_equal(trace_count(m), 0);
    bad->fail_from = 1;
    bad->fail_count = UINT64_MAX;
    ensure(m, first, P);
    ensure(m, second, P);
    assert_status(spec_b_ensure(m, third, P), TN_ERR_SOURCE);
    assert_in_use(tn_manager_drop(m, v, P, NULL), 1, 1, 0);
    release(&lease);
    release_hold(&h);
    release_reservation(&r);
    assert_status(tn_manager_drop(m, v, P, NULL), TN_ERR_OWNERSHIP);
    assert_int_equal(trace_count(m), 2);
    assert_handle(trace_at(m, 0).action.handle, first);
    assert_handle(trace_at(m, 1).action.handle, second);
}

/* ---- Allocator readings --------------------------------------------------------------------- */

/* The driver's own figures, outside any manager. */
static tn_device_memory pool(struct spec *f, uint32_t device) {
    tn_device_memory memory = {0, 0, 0, 0};

    assert_ok(
        tn_driver_table(f->driver)->device_memory(tn_driver_self(f->driver), device, &memory));
    return memory;
}

static void assert_no_readings(const tn_report *r) {
    assert_true(r->allocated_bytes_before == TN_READING_ABSENT);
    assert_true(r->held_bytes_before == TN_READING_ABSENT);
    assert_true(r->allocated_bytes_after == TN_READING_ABSENT);
    assert_true(r->held_bytes_after == TN_READING_ABSENT);
}

static void mc166_which_device_is_sampled(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_report r = ensure(m, v, C1);

    assert_at(r.allocator, C1);
    assert_int_equal(r.allocated_bytes_before, 0);
    assert_int_equal(r.allocated_bytes_after, 32);
    assert_true(r.held_bytes_after >= 32);
    ensure(m, v, C0);
    r = ensure(m, v, N); /* ensure samples its destination only */
    assert_at(r.allocator, NOWHERE);
    assert_no_readings(&r);
    drop(m, v, N);
    r = move(m, v, N); /* P to N: the first CUDA replica in installation order */
    assert_report(r, TN_ACTION_MOVE, 0, P, N);
    assert_at(r.allocator, C1);
    assert_int_equal(r.allocated_bytes_before, 32);
    assert_int_equal(r.allocated_bytes_after, 32);
    r = move_from(m, v, C1, C0);
    assert_report(r, TN_ACTION_MOVE, 0, C0, C1);
    assert_at(r.allocator, C1);
    r = ensure(m, v, P);
    assert_at(r.allocator, NOWHERE);
    r = drop(m, v, P);
    assert_at(r.allocator, NOWHERE);
    ensure(m, v, C0);
    r = discard(m, v); /* replicas N, C1, C0 */
    assert_at(r.allocator, C1);
    assert_int_equal(r.allocated_bytes_before, 32);
    assert_int_equal(r.allocated_bytes_after, 0);
}

static void mc166_sampling_fails(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_location_info row;
    tn_report r;

    spec_fault(f, TN_SIM_DEVICE_MEMORY, 1, 0, TN_ERR_DRIVER, 999);
    r = ensure(m, v, C0);
    assert_at(r.allocator, C0);
    assert_no_readings(&r);
    row = loc(m, C0);
    assert_true(row.allocated_bytes == TN_READING_ABSENT);
    assert_true(row.held_bytes == TN_READING_ABSENT);
    assert_true(spec_repair(f) >= 2);
    row = loc(m, C0);
    assert_int_equal(row.allocated_bytes, 32);
    assert_int_equal(row.held_bytes, pool(f, 0).pool_held_bytes);
    row = loc(m, P);
    assert_true(row.allocated_bytes == TN_READING_ABSENT);
    assert_true(row.held_bytes == TN_READING_ABSENT);
    drop(m, v, C0);
}

static void mc167_the_after_reading_leaves_removed_storage_out(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_report r;
    tn_device_memory after;

    ensure(m, v, C0);
    r = drop(m, v, C0);
    after = pool(f, 0);
    assert_at(r.allocator, C0);
    assert_int_equal(r.allocated_bytes_before, 32);
    assert_int_equal(r.allocated_bytes_after, after.pool_used_bytes);
    assert_int_equal(r.held_bytes_after, after.pool_held_bytes);
    assert_true(r.allocated_bytes_after <= r.allocated_bytes_before);
    assert_int_equal(r.allocated_bytes_after, 0);
}

/* ---- Snapshot ------------------------------------------------------------------------------- */

static void mc168_snapshot_of_a_fresh_adopt(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    uint64_t before = version(m);
    tn_snapshot_info head = info(m);
    tn_materialization_info row = mat(m, v, P);

    assert_true(head.captured_at_ns > 0);
    assert_int_equal(head.manager, tn_manager_id(m));
    assert_int_equal(head.state_version, before);
    assert_int_equal(head.exact, 1);
    assert_int_equal(head.value_count, 1);
    assert_int_equal(head.location_count, 1);
    assert_int_equal(head.reservation_count, 0);
    assert_int_equal(head.lease_count, 0);
    assert_int_equal(head.pending_lease_count, 0);
    assert_int_equal(head.hold_count, 0);
    assert_int_equal(row.use_count, 0);
    assert_int_equal(row.hold_count, 0);
    assert_int_equal(row.pending_count, 0);
    assert_int_equal(version(m), before);
    assert_null_text(spec_b_check(m));
}

static uint64_t fixed_clock(void *context) { return *(uint64_t *)context; }

/* The times of reports and snapshots come from the configured clock; completion is clamped (G47).
 */
static void mc168_the_configured_clock(void **state) {
    struct spec *f = *state;
    uint64_t now = 1700000000000000000u;
    tn_config config = spec_config(f);
    tn_manager *m;
    tn_handle v;
    tn_report r;

    config.now_ns = fixed_clock;
    config.now_context = &now;
    m = spec_manager_with(f, &config);
    v = adopt_rep(f, m, P);
    assert_int_equal(info(m).captured_at_ns, now);
    r = ensure(m, v, N);
    assert_int_equal(r.started_at_ns, now);
    assert_int_equal(r.completed_at_ns, now);
    spec_destroy(f, m); /* it may ask for the time as long as it lives */
}

static void mc174_installed_again_comes_last(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);

    ensure(m, v, N);
    assert_replicas(m, v, P, N);
    drop(m, v, P);
    ensure(m, v, P);
    assert_replicas(m, v, N, P);
}

/* The handles of a snapshot in order. */
static size_t values(const tn_snapshot *s, tn_value_info *rows, size_t room) {
    uint64_t cursor = 0;
    size_t count = 0;
    bool more = true;

    for (;;) {
        tn_value_info row = {.size = sizeof row};

        assert_ok(tn_snapshot_next(s, &cursor, &row, &more));
        if (!more)
            return count;
        assert_true(count < room);
        rows[count++] = row;
    }
}

static void mc175_values_in_registration_order(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_snapshot *earlier = NULL;
    tn_snapshot *later = NULL;
    tn_value_info rows[4];
    tn_handle a = register_src(m, spec_source(f));
    tn_handle b = adopt_rep(f, m, P);
    tn_handle c;

    assert_ok(tn_snapshot_take(m, &earlier));
    discard(m, a);
    c = adopt_rep(f, m, P);
    assert_ok(tn_snapshot_take(m, &later));
    assert_int_equal(values(later, rows, 4), 3);
    assert_handle(rows[0].handle, a);
    assert_int_equal(rows[0].discarded, 1);
    assert_int_equal(rows[0].has_source, 0);
    assert_at(rows[0].source_at, NOWHERE);
    assert_int_equal(rows[0].materialization_count, 0);
    assert_int_equal(rows[0].spec.logical_bytes, 32); /* with its spec (M10) */
    assert_handle(rows[1].handle, b);
    assert_int_equal(rows[1].discarded, 0);
    assert_handle(rows[2].handle, c);

    assert_int_equal(values(earlier, rows, 4), 2); /* unchanged (M224) */
    assert_handle(rows[0].handle, a);
    assert_int_equal(rows[0].discarded, 0);
    assert_int_equal(rows[0].has_source, 1);
    assert_at(rows[0].source_at, P);
    assert_handle(rows[1].handle, b);
    assert_null_text(spec_b_check_snapshot(earlier));
    assert_null_text(spec_b_check_snapshot(later));
    tn_snapshot_drop(later);
    assert_ok(tn_manager_close(m, 0));
    spec_destroy(f, m); /* a snapshot outlives its manager */
    assert_int_equal(values(earlier, rows, 4), 2);
    assert_null_text(spec_b_check_snapshot(earlier));
    tn_snapshot_drop(earlier);
}

static void mc175_questions_to_a_snapshot(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_manager *other = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_handle foreign = adopt_rep(f, other, P);
    tn_handle unknown = {v.manager, v.index + 5, v.type};
    tn_materialization_info mats[3] = {{.size = sizeof mats[0]}};
    tn_location_info rows[3] = {{.size = sizeof rows[0]}};
    tn_value_info row = {.size = sizeof row};
    tn_snapshot_info head = {.size = sizeof head};
    tn_snapshot *s = NULL;
    uint64_t cursor = 0;
    bool more = false;
    size_t count;

    ensure(m, v, N);
    ensure(m, v, C0);
    assert_ok(tn_snapshot_take(m, &s));
    assert_handle_error(tn_snapshot_value(s, foreign, &row), TN_HANDLE_FOREIGN);
    assert_handle_error(tn_snapshot_value(s, unknown, &row), TN_HANDLE_UNKNOWN);
    count = 3;
    assert_handle_error(tn_snapshot_materializations(s, unknown, mats, &count), TN_HANDLE_UNKNOWN);
    assert_ok(tn_snapshot_value(s, v, &row));
    assert_int_equal(row.materialization_count, 3);
    count = 2; /* too little room */
    assert_ok(tn_snapshot_materializations(s, v, mats, &count));
    assert_int_equal(count, 3);
    assert_at(mats[0].at, P);
    assert_at(mats[1].at, N);
    count = 1;
    assert_ok(tn_snapshot_locations(s, rows, &count));
    assert_int_equal(count, 3);
    assert_at(rows[0].at, P);
    count = 0;
    assert_ok(tn_snapshot_reservations(s, NULL, &count));
    assert_int_equal(count, 0);
    assert_status(tn_snapshot_read(NULL, &head), TN_ERR_KIND);
    assert_status(tn_snapshot_read(s, NULL), TN_ERR_KIND);
    assert_status(tn_snapshot_next(s, NULL, &row, &more), TN_ERR_KIND);
    assert_status(tn_snapshot_next(s, &cursor, NULL, &more), TN_ERR_KIND);
    assert_status(tn_snapshot_next(s, &cursor, &row, NULL), TN_ERR_KIND);
    assert_status(tn_snapshot_locations(s, rows, NULL), TN_ERR_KIND);
    assert_status(tn_snapshot_take(NULL, &s), TN_ERR_KIND);
    assert_status(tn_snapshot_take(m, NULL), TN_ERR_KIND);
    tn_snapshot_drop(s);
    tn_snapshot_drop(NULL);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(mc164_the_trace_keeps_the_youngest),
    SPEC_BOTH(mc164_reading_the_trace_into_an_array),
    SPEC_BOTH(mc165_clearing_the_trace),
    SPEC_BOTH(mc176_only_completed_actions_are_traced),
    SPEC_BOTH(mc166_which_device_is_sampled),
    SPEC_BOTH(mc166_sampling_fails),
    SPEC_BOTH(mc167_the_after_reading_leaves_removed_storage_out),
    SPEC_BOTH(mc168_snapshot_of_a_fresh_adopt),
    SPEC_BOTH(mc168_the_configured_clock),
    SPEC_BOTH(mc174_installed_again_comes_last),
    SPEC_BOTH(mc175_values_in_registration_order),
    SPEC_BOTH(mc175_questions_to_a_snapshot),
};

TN_TEST_MAIN("spec.snapshot_trace", tests)
