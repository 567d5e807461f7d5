/* SPDX-License-Identifier: MIT */
/* Snapshot, version, trace and step, where each allocation and driver call fails (F1, M165). */
#include "fault_common.h"

#define MANY 20u /* values of one lease: more than a scan keeps on its stack */

static tn_status take(fault *x) { return tn_snapshot_take(x->m, &x->snapshot); }

static tn_status read_version(fault *x) { return tn_manager_state_version(x->m, &x->number); }

static tn_status step(fault *x) { return tn_manager_step(x->m, &x->number); }

static tn_status read_trace(fault *x) {
    tn_report rows[4] = {{.size = sizeof rows[0]}};
    size_t count = 4;
    tn_status status = tn_manager_trace(x->m, rows, &count);
    x->number = count;
    return status;
}

/* Many leases, a reservation per location, and one pending lease. */
static void busy_manager(fault *x) {
    tn_handle handles[MANY];
    fault_manager_with_budgets(x);
    for (size_t i = 0; i < MANY; i++)
        handles[i] = adopt_rep(x->f, x->m, P);
    assert_ok(tn_manager_acquire(x->m, handles, MANY, P, NULL, &x->lease));
    for (int i = 0; i < 40; i++)
        (void)acquire(x->m, handles[0], P, NULL);
    for (int i = 0; i < 6; i++)
        (void)reserve(x->m, N, 8, "six of them");
    x->h = handles[0];
}

static void pending_manager(fault *x) {
    fault_manager(x);
    fault_value(x, C0, NOWHERE);
    x->stream = spec_stream(x->f, 0);
    x->lease = acquire(x->m, x->h, C0, x->stream);
    spec_busy(x->f, x->stream);
    release(&x->lease);
}

static void taken(fault *x) {
    tn_snapshot_info head = {.size = sizeof head};
    assert_ok(tn_snapshot_read(x->snapshot, &head));
    assert_int_equal(head.exact, 1);
    assert_int_equal(head.lease_count, 41);
    assert_int_equal(head.reservation_count, 6);
    tn_snapshot_drop(x->snapshot);
}

static void taken_pending(fault *x) {
    tn_snapshot_info head = {.size = sizeof head};
    assert_ok(tn_snapshot_read(x->snapshot, &head));
    assert_int_equal(head.pending_lease_count, 1);
    tn_snapshot_drop(x->snapshot);
}

static void not_taken(fault *x, tn_status status) {
    (void)status;
    assert_null(x->snapshot);
    assert_int_equal(x->number, 0);
}

static void version_read(fault *x) { assert_int_equal(x->number, version(x->m)); }

static void stepped(fault *x) {
    assert_int_equal(info(x->m).pending_lease_count, 1);
    spec_finish(x->f);
    assert_ok(tn_manager_step(x->m, &x->number));
    assert_int_equal(x->number, 1);
}

static void one_report(fault *x) {
    assert_int_equal(x->number, 1);
    assert_ok(tn_manager_clear_trace(x->m));
}

static void with_trace(fault *x) {
    fault_manager(x);
    fault_value(x, P, C0);
}

static void snapshot_survives_each_failure(void **state) {
    static const fault_case what = {.name = "snapshot",
                                    .prepare = busy_manager,
                                    .call = take,
                                    .failed = not_taken,
                                    .check = taken,
                                    .least_allocs = 7};
    fault_loop(state, &what);
}

static void snapshot_that_reaps_survives_each_failure(void **state) {
    static const fault_case what = {.name = "snapshot that reaps",
                                    .prepare = pending_manager,
                                    .call = take,
                                    .failed = not_taken,
                                    .check = taken_pending,
                                    .least_allocs = 3,
                                    .least_calls = 2};
    fault_loop(state, &what);
}

static void version_that_reaps_survives_each_failure(void **state) {
    static const fault_case what = {.name = "version",
                                    .prepare = pending_manager,
                                    .call = read_version,
                                    .failed = not_taken,
                                    .check = version_read,
                                    .flags = FAULT_NO_ALLOC,
                                    .least_calls = 1};
    fault_loop(state, &what);
}

static void version_on_new_thread_survives_each_failure(void **state) {
    static const fault_case what = {.name = "version by a new thread",
                                    .prepare = pending_manager,
                                    .call = read_version,
                                    .failed = not_taken,
                                    .check = version_read,
                                    .flags = FAULT_ON_THREAD,
                                    .least_allocs = 1,
                                    .least_calls = 1};
    fault_loop(state, &what);
}

static void trace_cannot_fail(void **state) {
    static const fault_case what = {.name = "trace",
                                    .prepare = with_trace,
                                    .call = read_trace,
                                    .check = one_report,
                                    .flags = FAULT_NO_ALLOC};
    fault_loop(state, &what);
}

static void step_survives_each_failure(void **state) {
    static const fault_case what = {.name = "step",
                                    .prepare = pending_manager,
                                    .call = step,
                                    .failed = not_taken,
                                    .check = stepped,
                                    .flags = FAULT_NO_ALLOC,
                                    .least_calls = 1};
    fault_loop(state, &what);
}

static void step_on_new_thread_survives_each_failure(void **state) {
    static const fault_case what = {.name = "step by a new thread",
                                    .prepare = pending_manager,
                                    .call = step,
                                    .failed = not_taken,
                                    .check = stepped,
                                    .flags = FAULT_ON_THREAD,
                                    .least_allocs = 1,
                                    .least_calls = 1};
    fault_loop(state, &what);
}

static const struct CMUnitTest tests[] = {
    FAULT_BOTH(snapshot_survives_each_failure),
    FAULT_BOTH(snapshot_that_reaps_survives_each_failure),
    FAULT_BOTH(version_that_reaps_survives_each_failure),
    FAULT_BOTH(version_on_new_thread_survives_each_failure),
    FAULT_BOTH(trace_cannot_fail),
    FAULT_BOTH(step_survives_each_failure),
    FAULT_BOTH(step_on_new_thread_survives_each_failure),
};

TN_TEST_MAIN("fault.snapshot", tests)
