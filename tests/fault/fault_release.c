/* SPDX-License-Identifier: MIT */
/*
 * The ends of lifetimes, and further streams, where each allocation and driver call fails (F1,
 * M144..M146). A release whose events cannot be had synchronises instead and succeeds.
 */
#include "fault_common.h"

static tn_status plain(fault *x) { return tn_lease_release(&x->lease, 0); }

static tn_status wait(fault *x) { return tn_lease_release(&x->lease, TN_RELEASE_WAIT); }

static tn_status end_hold(fault *x) { return tn_hold_release(&x->hold); }

static tn_status end_reservation(fault *x) { return tn_reservation_release(&x->reservation); }

static tn_status add_stream(fault *x) { return tn_lease_add_stream(&x->lease, x->second); }

static void at_device(fault *x) {
    fault_manager(x);
    fault_value(x, C0, NOWHERE);
    x->stream = spec_stream(x->f, 0);
    x->second = spec_stream(x->f, 0);
    x->lease = acquire(x->m, x->h, C0, x->stream);
}

static void on_two_streams(fault *x) {
    at_device(x);
    assert_ok(tn_lease_add_stream(&x->lease, x->second));
    spec_busy(x->f, x->stream);
    spec_busy(x->f, x->second);
}

static void at_host(fault *x) {
    fault_manager(x);
    fault_value(x, P, NOWHERE);
    x->lease = acquire(x->m, x->h, P, NULL);
}

static void with_hold(fault *x) {
    at_device(x);
    release(&x->lease);
    assert_ok(tn_manager_step(x->m, NULL));
    x->hold = hold(x->m, x->h, C0);
}

static void with_reservation(fault *x) {
    fault_manager_with_budgets(x);
    x->reservation = reserve(x->m, C0, 100, "workspace");
}

/* Ended by events, or by the fallback, which leaves nothing pending. */
static void ended(fault *x) {
    bool fell_back = spec_warnings(x->f, TN_DIAGNOSTIC_RELEASE_FALLBACK) != 0;
    assert_false(tn_lease_active(&x->lease));
    assert_int_equal(info(x->m).lease_count, 0);
    assert_int_equal(info(x->m).pending_lease_count, fell_back ? 0 : 1);
    if (fell_back)
        assert_true(spec_idle(x->f, x->stream) && spec_idle(x->f, x->second));
    spec_finish(x->f);
    assert_ok(tn_manager_step(x->m, NULL));
    assert_int_equal(info(x->m).pending_lease_count, 0);
}

static void over(fault *x) {
    assert_false(tn_lease_active(&x->lease));
    spec_finish(x->f);
    assert_ok(tn_manager_step(x->m, NULL));
    assert_int_equal(info(x->m).lease_count, 0);
    assert_int_equal(info(x->m).pending_lease_count, 0);
    assert_int_equal(info(x->m).hold_count, 0);
}

/* M146 if the wait failed, M145 if already the recording and its fallback did. */
static void still_open(fault *x, tn_status status) {
    const void *data;
    tn_status lookup = tn_lease_lookup(&x->lease, x->h, &data);
    assert_status(status, TN_ERR_DRIVER);
    assert_true(tn_lease_active(&x->lease));
    assert_true(lookup == TN_OK || lookup == TN_ERR_UNAVAILABLE);
    assert_int_equal(info(x->m).lease_count, lookup == TN_OK ? 1 : 0);
}

static void unreserved(fault *x) {
    assert_false(tn_reservation_active(&x->reservation));
    assert_int_equal(reserved(x->m, C0), 0);
}

static void two_streams(fault *x) {
    spec_busy(x->f, x->second);
    release(&x->lease);
    assert_int_equal(info(x->m).pending_lease_count, 1);
    spec_finish(x->f);
    assert_int_equal(info(x->m).pending_lease_count, 0);
}

static void release_on_host_cannot_fail(void **state) {
    static const fault_case what = {.name = "release on the host",
                                    .prepare = at_host,
                                    .call = plain,
                                    .check = over,
                                    .flags = FAULT_NO_ALLOC};
    fault_loop(state, &what);
}

static void release_on_new_thread_survives_each_failure(void **state) {
    static const fault_case what = {.name = "release on the host by a new thread",
                                    .prepare = at_host,
                                    .call = plain,
                                    .check = over,
                                    .flags = FAULT_ON_THREAD,
                                    .least_allocs = 1};
    fault_loop(state, &what);
}

static void release_on_device_falls_back(void **state) {
    static const fault_case what = {.name = "release on two streams",
                                    .prepare = on_two_streams,
                                    .call = plain,
                                    .check = ended,
                                    .flags = FAULT_ALLOC_OK | FAULT_DRIVER_OK,
                                    .least_allocs = 4,
                                    .least_calls = 4};
    fault_loop(state, &what);
}

static void release_on_device_by_new_thread_survives_each_failure(void **state) {
    static const fault_case what = {.name = "release on two streams by a new thread",
                                    .prepare = on_two_streams,
                                    .call = plain,
                                    .check = ended,
                                    .flags = FAULT_ALLOC_OK | FAULT_DRIVER_OK | FAULT_ON_THREAD,
                                    .least_allocs = 5,
                                    .least_calls = 4};
    fault_loop(state, &what);
}

static void release_with_wait_survives_each_failure(void **state) {
    static const fault_case what = {.name = "release with wait",
                                    .prepare = on_two_streams,
                                    .call = wait,
                                    .failed = still_open,
                                    .check = over,
                                    .flags = FAULT_ALLOC_OK | FAULT_DRIVER_OK | FAULT_STATE,
                                    .least_allocs = 4,
                                    .least_calls = 6};
    fault_loop(state, &what);
}

static void hold_release_survives_each_failure(void **state) {
    static const fault_case what = {.name = "end of a hold by a new thread",
                                    .prepare = with_hold,
                                    .call = end_hold,
                                    .check = over,
                                    .flags = FAULT_ON_THREAD,
                                    .least_allocs = 1};
    fault_loop(state, &what);
}

static void reservation_release_survives_each_failure(void **state) {
    static const fault_case what = {.name = "end of a reservation by a new thread",
                                    .prepare = with_reservation,
                                    .call = end_reservation,
                                    .check = unreserved,
                                    .flags = FAULT_ON_THREAD,
                                    .least_allocs = 1};
    fault_loop(state, &what);
}

static void add_stream_survives_each_failure(void **state) {
    static const fault_case what = {.name = "a further stream",
                                    .prepare = at_device,
                                    .call = add_stream,
                                    .check = two_streams,
                                    .least_allocs = 1,
                                    .least_calls = 1};
    fault_loop(state, &what);
}

static const struct CMUnitTest tests[] = {
    FAULT_BOTH(release_on_host_cannot_fail),
    FAULT_BOTH(release_on_new_thread_survives_each_failure),
    FAULT_BOTH(release_on_device_falls_back),
    FAULT_BOTH(release_on_device_by_new_thread_survives_each_failure),
    FAULT_BOTH(release_with_wait_survives_each_failure),
    FAULT_BOTH(hold_release_survives_each_failure),
    FAULT_BOTH(reservation_release_survives_each_failure),
    FAULT_BOTH(add_stream_survives_each_failure),
};

TN_TEST_MAIN("fault.release", tests)
