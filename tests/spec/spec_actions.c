/* SPDX-License-Identifier: MIT */
/* Ensure, copy, move, drop, discard: cases MC57..MC81. */
#include "spec_common.h"

/* What is not a stream. */
static const tn_stream no_stream = (tn_stream)(uintptr_t)0x5eed0;

static void mc057_ensure_of_a_resident_value(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    tn_report r;
    tn_report t;

    assert_rises(m, 0, r = ensure(m, h, P));
    assert_report(r, TN_ACTION_ENSURE, 1, NOWHERE, P);
    assert_int_equal(r.reason, TN_REASON_ALREADY_RESIDENT);
    assert_handle(r.action.handle, h);
    assert_at(r.action.at, P);
    assert_int_equal(r.logical_bytes, 32);
    assert_int_equal(r.storage_bytes, 32);
    assert_true(r.started_at_ns > 0);
    assert_true(r.started_at_ns <= r.completed_at_ns);
    assert_int_equal(trace_count(m), 1);
    t = trace_at(m, 0);
    assert_memory_equal(&t, &r, sizeof(r));
}

/* The parts that need no plan. */
static void mc058_exclusive_value_is_not_replicated(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_exc(f, m, P);
    uint64_t copies = tt_count().copies;

    assert_rises(m, 0, assert_status(tn_manager_ensure(m, h, N, NULL, NULL), TN_ERR_OWNERSHIP));
    assert_int_equal(tn_last_error()->reason, TN_REASON_EXCLUSIVE);
    assert_locations(m, P);
    assert_int_equal(trace_count(m), 0);
    assert_int_equal(tt_count().copies, copies); /* no copy is attempted (M93) */
}

static void mc059_last_copy_is_not_dropped(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_exc(f, m, P);
    tn_hold held;

    assert_status(tn_manager_drop(m, h, P, NULL), TN_ERR_OWNERSHIP);
    assert_int_equal(tn_last_error()->reason, TN_REASON_LAST_COPY);
    held = hold(m, h, P);
    assert_in_use(tn_manager_drop(m, h, P, NULL), 0, 1, 0);
    assert_handle(tn_last_error()->handle, h); /* M113 */
    assert_at(tn_last_error()->at, P);
    release_hold(&held);
    assert_replicas(m, h, P);
    assert_int_equal(trace_count(m), 0);
}

static void mc060_drop_of_what_is_absent(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    tn_report r;

    assert_rises(m, 0, r = drop(m, h, N));
    assert_report(r, TN_ACTION_DROP, 1, N, NOWHERE);
    assert_int_equal(r.reason, TN_REASON_ALREADY_ABSENT);
    assert_locations(m, P);
    assert_int_equal(trace_count(m), 1);
}

static void mc061_move_loads_what_is_nowhere(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *s = spec_source(f);
    tn_handle h = register_src(m, s);
    tn_report r = move(m, h, P);

    assert_report(r, TN_ACTION_MOVE, 0, P, P);
    assert_at(r.action.from, NOWHERE);
    assert_int_equal(s->calls, 1);
    assert_replicas(m, h, P);
    assert_int_equal(reserved(m, P), 0);

    m = MANAGER(f);
    s = spec_source(f);
    h = register_src(m, s);
    r = move(m, h, N);
    assert_report(r, TN_ACTION_MOVE, 0, P, N);
    assert_int_equal(s->calls, 1);
    assert_replicas(m, h, N);
    assert_int_equal(used(m, N), 32);
    assert_int_equal(used(m, P), 0);
    assert_int_equal(reserved(m, P), 0);
}

static void mc062_explicit_source_must_be_resident(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *s = spec_source(f);
    tn_handle h = register_src(m, s);
    char *before = spec_describe(m, 0);

    assert_status(tn_manager_move(m, h, P, P, NULL, NULL), TN_ERR_UNAVAILABLE);
    assert_int_equal(tn_last_error()->busy, 0);
    assert_status(tn_manager_move(m, h, N, P, NULL, NULL), TN_ERR_UNAVAILABLE);
    assert_int_equal(s->calls, 0);
    assert_unchanged(m, before, 0);
    assert_int_equal(trace_count(m), 0);
}

static void mc063_move_to_where_it_is(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, N);
    tn_report r;

    r = move(m, h, N);
    assert_report(r, TN_ACTION_MOVE, 1, NOWHERE, N);
    assert_int_equal(r.reason, TN_REASON_ALREADY_AT_DESTINATION);
    r = move_from(m, h, N, N);
    assert_report(r, TN_ACTION_MOVE, 1, N, N);
    assert_int_equal(r.reason, TN_REASON_ALREADY_AT_DESTINATION);
    assert_status(tn_manager_move(m, h, N, P, NULL, NULL), TN_ERR_UNAVAILABLE);
    assert_replicas(m, h, N);
    assert_locations(m, N);
    assert_int_equal(trace_count(m), 2);
}

static void mc064_move_is_charged_at_both_ends(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 32}, {N, 31});
    tn_handle h = adopt_exc(f, m, P);

    assert_rises(m, 0, {
        assert_status(tn_manager_move(m, h, N, NOWHERE, NULL, NULL), TN_ERR_BUDGET);
        assert_budget_error(N, 31, 0, 0, 32);
    });
    assert_int_equal(used(m, P), 32);
    assert_replicas(m, h, P);
    assert_peaks(m, N, 0, 0);

    m = MANAGER(f, {P, 32}, {N, 32});
    h = adopt_exc(f, m, P);
    assert_rises(m, 2, move(m, h, N));
    assert_int_equal(used(m, P), 0);
    assert_peaks(m, P, 32, 32);
    assert_int_equal(used(m, N), 32);
    assert_replicas(m, h, N);
}

static void mc065_move_to_an_untracked_location(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 32});
    tn_handle h = adopt_exc(f, m, P);

    assert_rises(m, 3, move(m, h, C1));
    assert_locations(m, P, C1);
}

static void mc066_moves_among_replicas(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    uint64_t copies;
    tn_report r;

    ensure(m, h, C1);
    ensure(m, h, C0);
    assert_replicas(m, h, P, C1, C0);
    assert_rises(m, 3, r = move(m, h, N));
    assert_report(r, TN_ACTION_MOVE, 0, P, N);
    assert_replicas(m, h, C1, C0, N);
    assert_at(r.allocator, C1);

    copies = tt_count().copies;
    assert_rises(m, 1, r = move_from(m, h, C1, C0));
    assert_report(r, TN_ACTION_MOVE, 0, C0, C1);
    assert_at(r.action.from, C0);
    assert_replicas(m, h, C1, N);
    assert_rises(m, 1, r = move(m, h, C1));
    assert_report(r, TN_ACTION_MOVE, 0, N, C1);
    assert_replicas(m, h, C1);
    r = move(m, h, C1);
    assert_report(r, TN_ACTION_MOVE, 1, NOWHERE, C1);
    assert_int_equal(tt_count().copies, copies);
}

/* With an explicit source only the two named locations count (M91). */
static void mc066_sampled_device_of_explicit_moves(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    tn_report r;

    ensure(m, h, C1);
    r = move_from(m, h, N, P);
    assert_at(r.allocator, NOWHERE);
    assert_true(r.allocated_bytes_before == TN_READING_ABSENT);
    r = move_from(m, h, P, C1);
    assert_report(r, TN_ACTION_MOVE, 0, C1, P);
    assert_at(r.allocator, C1);
    assert_true(r.allocated_bytes_before != TN_READING_ABSENT);
    assert_int_equal(r.allocated_bytes_after, r.allocated_bytes_before - 32); /* M92 */
    r = move_from(m, h, C0, N);
    assert_at(r.allocator, C0);
    assert_int_equal(r.allocated_bytes_after, r.allocated_bytes_before + 32);
}

static void mc067_preferred_replica(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, N);
    tn_report r;

    ensure(m, h, C1);
    ensure(m, h, C0);
    r = ensure(m, h, P);
    assert_report(r, TN_ACTION_ENSURE, 0, N, P);

    drop(m, h, N);
    drop(m, h, P);
    assert_replicas(m, h, C1, C0);
    r = ensure(m, h, P);
    assert_report(r, TN_ACTION_ENSURE, 0, C0, P);
}

static void mc068_protection_of_the_destination_does_not_matter(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    tn_hold held;
    tn_report r;

    ensure(m, h, N);
    held = hold(m, h, N);
    r = move(m, h, N);
    assert_report(r, TN_ACTION_MOVE, 0, P, N);
    assert_replicas(m, h, N);
    assert_in_use(tn_manager_move(m, h, P, NOWHERE, NULL, NULL), 0, 1, 0);
    assert_at(tn_last_error()->at, N);
    r = ensure(m, h, C0);
    assert_report(r, TN_ACTION_ENSURE, 0, N, C0);
    release_hold(&held);
}

static void mc069_move_does_not_fall_back(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    tn_hold held;
    tn_report r;

    ensure(m, h, N);
    held = hold(m, h, P);
    assert_in_use(tn_manager_move(m, h, C0, NOWHERE, NULL, NULL), 0, 1, 0);
    assert_at(tn_last_error()->at, P);
    r = move_from(m, h, C0, N);
    assert_report(r, TN_ACTION_MOVE, 0, N, C0);
    assert_replicas(m, h, P, C0);
    release_hold(&held);
}

static void mc070_discard_is_all_or_nothing(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    uint64_t live = tt_count().live;
    tn_hold held;
    tn_report r;

    ensure(m, h, N);
    ensure(m, h, C0);
    held = hold(m, h, C0);
    assert_rises(m, 0, assert_in_use(tn_manager_discard(m, h, NULL), 0, 1, 0));
    assert_handle(tn_last_error()->handle, h);
    assert_at(tn_last_error()->at, C0);
    assert_replicas(m, h, P, N, C0);
    release_hold(&held);
    assert_rises(m, 4, r = discard(m, h));
    assert_report(r, TN_ACTION_DISCARD, 0, NOWHERE, NOWHERE);
    assert_at(r.allocator, C0);
    assert_replicas(m, h);
    assert_int_equal(tt_count().live, live - 1);
}

static void mc071_discard_of_an_unloaded_value(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = register_src(m, spec_source(f));
    tn_report r;

    assert_rises(m, 1, r = discard(m, h));
    assert_report(r, TN_ACTION_DISCARD, 0, NOWHERE, NOWHERE);
    assert_int_equal(r.logical_bytes, 32);
    assert_int_equal(r.storage_bytes, 32);
    assert_at(r.allocator, NOWHERE);
    assert_int_equal(value(m, h).has_source, 0);
    assert_at(value(m, h).source_at, NOWHERE);
    assert_int_equal(value(m, h).discarded, 1);
}

static void mc072_failed_allocation_changes_nothing(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    uint64_t live = tt_count().live;
    char *before = spec_describe(m, 0);

    spec_fault(f, TN_SIM_DEVICE_ALLOC, 1, 1, TN_ERR_DEVICE_MEMORY, 2);
    assert_status(tn_manager_ensure(m, h, C0, NULL, NULL), TN_ERR_DEVICE_MEMORY);
    assert_int_equal(tn_last_error()->native_code, 2);
    assert_int_equal(spec_repair(f), 1);
    /* Pinned memory that cannot be had is E-PAYLOAD, with the native code. */
    spec_fault(f, TN_SIM_PINNED_ALLOC, 1, 1, TN_ERR_UNSUPPORTED, 801);
    assert_status(tn_manager_move(m, h, N, NOWHERE, NULL, NULL), TN_ERR_PAYLOAD);
    assert_int_equal(tn_last_error()->native_code, 801);
    assert_int_equal(spec_repair(f), 1);
    /* The payload's own error comes through as it is. */
    tt_fail_copy(1, TN_ERR_HOST_MEMORY);
    assert_status(tn_manager_ensure(m, h, C0, NULL, NULL), TN_ERR_HOST_MEMORY);

    assert_locations(m, P);
    assert_int_equal(used(m, P), 32);
    assert_int_equal(trace_count(m), 0);
    assert_int_equal(tt_count().live, live);
    assert_unchanged(m, before, 0);
    ensure(m, h, C0);
    move(m, h, N);
    assert_replicas(m, h, C0, N);
}

/* A copy that does not fit is released, and everything is as before (M95, M114). */
static void mc072_copy_that_does_not_fit(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    tn_handle src = register_src(m, spec_source(f));
    uint64_t live = tt_count().live;
    char *before = spec_describe(m, 0);

    tt_grow_copy(1);
    assert_status(tn_manager_ensure(m, h, N, NULL, NULL), TN_ERR_MATERIALIZATION);
    assert_int_equal(tn_last_error()->expected, 32);
    assert_int_equal(tn_last_error()->actual, 40);
    tt_grow_copy(1);
    assert_status(tn_manager_move(m, h, C0, NOWHERE, NULL, NULL), TN_ERR_MATERIALIZATION);
    assert_int_equal(tt_count().live, live);
    assert_unchanged(m, before, 0);
    before = spec_describe(m, SPEC_NO_PEAKS);
    tt_grow_copy(1);
    assert_status(tn_manager_ensure(m, src, C0, NULL, NULL), TN_ERR_MATERIALIZATION);
    assert_int_equal(tt_count().live, live);
    assert_unchanged(m, before, SPEC_NO_PEAKS);
    assert_peaks(m, P, 32, 64);
    assert_locations(m, P);
    move(m, h, C0);
    ensure(m, src, C0);
}

static void mc073_failed_allocation_after_a_load(void **state) {
    struct spec *f = *state;

    for (int i = 0; i < 2; i++) {
        tn_manager *m = MANAGER(f);
        tt_source *s = spec_source(f);
        tn_handle h = register_src(m, s);
        uint64_t live;

        adopt_rep(f, m, P);
        live = tt_count().live;
        if (i == 0) {
            spec_fault(f, TN_SIM_DEVICE_ALLOC, 1, 1, TN_ERR_DEVICE_MEMORY, 2);
            assert_rises(
                m, 0, assert_status(tn_manager_ensure(m, h, C0, NULL, NULL), TN_ERR_DEVICE_MEMORY));
        } else {
            spec_fault(f, TN_SIM_PINNED_ALLOC, 1, 1, TN_ERR_UNSUPPORTED, 801);
            assert_rises(
                m, 0, assert_status(tn_manager_move(m, h, N, NOWHERE, NULL, NULL), TN_ERR_PAYLOAD));
        }
        assert_int_equal(spec_repair(f), 1);
        assert_int_equal(s->calls, 1);
        assert_int_equal(used(m, P), 32);
        assert_int_equal(reserved(m, P), 0);
        assert_peaks(m, P, 32, 64);
        assert_int_equal(value(m, h).has_source, 1);
        assert_replicas(m, h);
        assert_locations(m, P);
        assert_int_equal(trace_count(m), 0);
        assert_int_equal(tt_count().live, live);
    }
}

static void mc074_copy_is_ensure(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    tn_report r = TN_REPORT_INIT;

    assert_ok(tn_manager_copy(m, h, N, NULL, &r));
    assert_report(r, TN_ACTION_ENSURE, 0, P, N);
    assert_at(r.action.at, N);
    assert_at(r.action.from, NOWHERE);
    assert_replicas(m, h, P, N);
}

static void mc075_transfer_streams_must_fit(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    tn_stream s0 = spec_stream(f, 0);
    tn_stream s1 = spec_stream(f, 1);
    char *before = spec_describe(m, 0);

    assert_status(tn_manager_ensure(m, h, P, s0, NULL), TN_ERR_VALUE); /* even as a no-op */
    assert_status(tn_manager_copy(m, h, N, s0, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_move(m, h, N, NOWHERE, s0, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_ensure(m, h, C0, s1, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_copy(m, h, C0, s1, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_move(m, h, C0, NOWHERE, s1, NULL), TN_ERR_VALUE);

    assert_status(tn_manager_ensure(m, h, C0, no_stream, NULL), TN_ERR_KIND);
    assert_status(tn_manager_copy(m, h, C0, no_stream, NULL), TN_ERR_KIND);
    assert_status(tn_manager_move(m, h, C0, NOWHERE, no_stream, NULL), TN_ERR_KIND);
    assert_status(tn_manager_move(m, h, C0, P, no_stream, NULL), TN_ERR_KIND);
    assert_locations(m, P);
    assert_int_equal(trace_count(m), 0);
    assert_unchanged(m, before, 0);
    ensure(m, h, C0);
    assert_ok(tn_manager_move(m, h, C1, NOWHERE, s1, NULL));
}

static void mc076_stream_is_checked_before_the_rules_of_the_action(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    tn_stream s0 = spec_stream(f, 0);
    char *before;

    ensure(m, h, C1);
    before = spec_describe(m, 0);
    assert_status(tn_manager_ensure(m, h, C1, s0, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_move(m, h, C1, P, s0, NULL), TN_ERR_VALUE);
    assert_replicas(m, h, P, C1);
    assert_unchanged(m, before, 0);
}

static void mc077_protection_is_checked_before_admission(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 32}, {N, 0});
    tn_handle h = adopt_exc(f, m, P);
    tn_hold held = hold(m, h, P);

    assert_in_use(tn_manager_move(m, h, N, NOWHERE, NULL, NULL), 0, 1, 0);
    assert_handle(tn_last_error()->handle, h);
    assert_at(tn_last_error()->at, P);
    release_hold(&held);
    assert_status(tn_manager_move(m, h, N, NOWHERE, NULL, NULL), TN_ERR_BUDGET);
}

static void mc078_explicit_source_that_is_the_destination(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    tn_report r;

    ensure(m, h, N);
    assert_rises(m, 0, r = move_from(m, h, P, P));
    assert_report(r, TN_ACTION_MOVE, 1, P, P);
    assert_replicas(m, h, P, N);
}

static void mc079_order_of_checks(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_manager *other = MANAGER(f);
    tn_handle foreign = adopt_rep(f, other, P);
    tn_handle h = adopt_rep(f, m, P);
    tn_stream s1 = spec_stream(f, 1);

    assert_handle_error(tn_manager_ensure(m, foreign, C2, NULL, NULL), TN_HANDLE_FOREIGN);
    assert_status(tn_manager_ensure(m, h, C2, no_stream, NULL), TN_ERR_VALUE);
    assert_at(tn_last_error()->at, C2);
    /* The same of a move, whose destination comes before its source (M83). */
    assert_handle_error(tn_manager_move(m, foreign, C2, P, no_stream, NULL), TN_HANDLE_FOREIGN);
    assert_status(tn_manager_move(m, h, C2, C2, no_stream, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_move(m, h, C0, C2, no_stream, NULL), TN_ERR_VALUE);
    assert_at(tn_last_error()->at, C2);
    assert_status(tn_manager_move(m, h, C0, C1, s1, NULL), TN_ERR_VALUE); /* stream, then rules */
    assert_status(tn_manager_move(m, h, C0, C1, NULL, NULL), TN_ERR_UNAVAILABLE);
    assert_locations(m, P);
}

static void mc080_copy_whose_event_fails(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    uint64_t live = tt_count().live;
    uint64_t synchronised = tn_sim_calls(f->sim, TN_SIM_STREAM_SYNCHRONIZE);
    tn_stream s = spec_stream(f, 0);

    spec_busy(f, s);
    spec_fault(f, TN_SIM_EVENT_RECORD, 1, 1, TN_ERR_DRIVER, 999);
    assert_rises(m, 0, assert_status(tn_manager_ensure(m, h, C0, s, NULL), TN_ERR_DRIVER));
    assert_int_equal(tn_last_error()->native_code, 999);
    assert_int_equal(tn_last_error()->cleanup_status, TN_OK);
    assert_int_equal(spec_repair(f), 1);
    assert_true(tn_sim_calls(f->sim, TN_SIM_STREAM_SYNCHRONIZE) > synchronised);
    assert_true(spec_idle(f, s));
    assert_replicas(m, h, P);
    assert_locations(m, P);
    assert_int_equal(tt_count().live, live);
    ensure(m, h, C0);
}

/* A failure of that clean-up is attached and replaces nothing. */
static void mc080_failed_clean_up_is_attached(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    tn_stream s = spec_stream(f, 0);

    spec_own_table(f);
    spec_fault(f, TN_SIM_EVENT_RECORD, 1, 1, TN_ERR_DRIVER, 999);
    spec_fault(f, TN_SIM_STREAM_SYNCHRONIZE, 1, 1, TN_ERR_DRIVER, 304);
    assert_status(tn_manager_ensure(m, h, C0, s, NULL), TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->native_code, 999);
    assert_int_equal(tn_last_error()->cleanup_status, TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->cleanup_native_code, 304);
    assert_int_equal(spec_repair(f), 2);
    assert_replicas(m, h, P);
    assert_locations(m, P);
    /* Storage under a copy that may still run is kept, not freed. */
    f->lenient = true;
}

static void mc081_ensure_returns_when_the_copy_is_complete(void **state) {
    struct spec *f = *state;
    const void *data = NULL;
    tn_manager *m;
    tn_stream s;
    tn_stream t;
    tn_handle h;
    tn_lease lease;

    spec_machine(f, "dev:2 link=host:1MBps latency=5us");
    m = MANAGER(f);
    s = spec_stream(f, 0);
    t = spec_stream(f, 0);
    h = adopt_rep(f, m, P);
    spec_busy(f, s);
    assert_ok(tn_manager_ensure(m, h, C0, s, NULL));
    assert_true(spec_idle(f, s)); /* the other work came first */
    assert_true(tn_sim_now_ns(f->sim) >= 1000000 + 5000);
    lease = acquire(m, h, C0, t);
    assert_ok(tn_lease_lookup(&lease, h, &data));
    assert_ok(tn_sim_queue_read(f->sim, t, tt_field_base(data, 0), 32, 100));
    assert_true(tt_check(data, 1));
    spec_finish(f);
    release(&lease);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(mc057_ensure_of_a_resident_value),
    SPEC_BOTH(mc058_exclusive_value_is_not_replicated),
    SPEC_BOTH(mc059_last_copy_is_not_dropped),
    SPEC_BOTH(mc060_drop_of_what_is_absent),
    SPEC_BOTH(mc061_move_loads_what_is_nowhere),
    SPEC_BOTH(mc062_explicit_source_must_be_resident),
    SPEC_BOTH(mc063_move_to_where_it_is),
    SPEC_BOTH(mc064_move_is_charged_at_both_ends),
    SPEC_BOTH(mc065_move_to_an_untracked_location),
    SPEC_BOTH(mc066_moves_among_replicas),
    SPEC_BOTH(mc066_sampled_device_of_explicit_moves),
    SPEC_BOTH(mc067_preferred_replica),
    SPEC_BOTH(mc068_protection_of_the_destination_does_not_matter),
    SPEC_BOTH(mc069_move_does_not_fall_back),
    SPEC_BOTH(mc070_discard_is_all_or_nothing),
    SPEC_BOTH(mc071_discard_of_an_unloaded_value),
    SPEC_BOTH(mc072_failed_allocation_changes_nothing),
    SPEC_BOTH(mc072_copy_that_does_not_fit),
    SPEC_BOTH(mc073_failed_allocation_after_a_load),
    SPEC_BOTH(mc074_copy_is_ensure),
    SPEC_BOTH(mc075_transfer_streams_must_fit),
    SPEC_BOTH(mc076_stream_is_checked_before_the_rules_of_the_action),
    SPEC_BOTH(mc077_protection_is_checked_before_admission),
    SPEC_BOTH(mc078_explicit_source_that_is_the_destination),
    SPEC_BOTH(mc079_order_of_checks),
    SPEC_BOTH(mc080_copy_whose_event_fails),
    SPEC_BOTH(mc080_failed_clean_up_is_attached),
    SPEC_BOTH(mc081_ensure_returns_when_the_copy_is_complete),
};

TN_TEST_MAIN("spec.actions", tests)
