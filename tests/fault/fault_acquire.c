/* SPDX-License-Identifier: MIT */
/* Acquire and hold, where each allocation and driver call fails (F1, M132, M151). */
#include "fault_common.h"

static tn_status acquire_host(fault *x) {
    return tn_manager_acquire(x->m, &x->h, 1, P, NULL, &x->lease);
}

static tn_status acquire_device(fault *x) {
    return tn_manager_acquire(x->m, &x->h, 1, C0, x->stream, &x->lease);
}

static tn_status hold_device(fault *x) { return tn_manager_hold(x->m, &x->h, 1, C0, &x->hold); }

static void ready(fault *x) {
    fault_manager(x);
    fault_value(x, P, C0);
    x->stream = spec_stream(x->f, 0);
}

/* Others are pending: the reap at the beginning queries. */
static void ready_with_pending(fault *x) {
    tn_lease other;
    ready(x);
    other = acquire(x->m, x->h, C0, x->stream);
    spec_busy(x->f, x->stream);
    release(&other);
}

static void no_lease(fault *x, tn_status status) {
    (void)status;
    assert_null(x->lease.record);
    assert_null(x->hold.record);
}

static void leased(fault *x) {
    assert_true(tn_lease_active(&x->lease));
    assert_int_equal(info(x->m).lease_count, 1);
    release(&x->lease);
}

static void held(fault *x) {
    assert_true(tn_hold_active(&x->hold));
    assert_int_equal(info(x->m).hold_count, 1);
    release_hold(&x->hold);
}

static void acquire_survives_each_failure(void **state) {
    static const fault_case what = {.name = "acquire",
                                    .prepare = ready,
                                    .call = acquire_host,
                                    .failed = no_lease,
                                    .check = leased,
                                    .least_allocs = 2};
    fault_loop(state, &what);
}

static void acquire_on_device_survives_each_failure(void **state) {
    static const fault_case what = {.name = "acquire at the device",
                                    .prepare = ready,
                                    .call = acquire_device,
                                    .failed = no_lease,
                                    .check = leased,
                                    .least_allocs = 2,
                                    .least_calls = 1};
    fault_loop(state, &what);
}

static void acquire_that_reaps_survives_each_failure(void **state) {
    static const fault_case what = {.name = "acquire that reaps",
                                    .prepare = ready_with_pending,
                                    .call = acquire_device,
                                    .failed = no_lease,
                                    .check = leased,
                                    .least_allocs = 1,
                                    .least_calls = 2};
    fault_loop(state, &what);
}

static void acquire_on_new_thread_survives_each_failure(void **state) {
    static const fault_case what = {.name = "acquire by a new thread",
                                    .prepare = ready,
                                    .call = acquire_device,
                                    .failed = no_lease,
                                    .check = leased,
                                    .flags = FAULT_ON_THREAD,
                                    .least_allocs = 3,
                                    .least_calls = 1};
    fault_loop(state, &what);
}

static void hold_survives_each_failure(void **state) {
    static const fault_case what = {.name = "hold",
                                    .prepare = ready,
                                    .call = hold_device,
                                    .failed = no_lease,
                                    .check = held,
                                    .least_allocs = 2};
    fault_loop(state, &what);
}

static void hold_on_new_thread_survives_each_failure(void **state) {
    static const fault_case what = {.name = "hold by a new thread",
                                    .prepare = ready,
                                    .call = hold_device,
                                    .failed = no_lease,
                                    .check = held,
                                    .flags = FAULT_ON_THREAD,
                                    .least_allocs = 3};
    fault_loop(state, &what);
}

static const struct CMUnitTest tests[] = {
    FAULT_BOTH(acquire_survives_each_failure),
    FAULT_BOTH(acquire_on_device_survives_each_failure),
    FAULT_BOTH(acquire_that_reaps_survives_each_failure),
    FAULT_BOTH(acquire_on_new_thread_survives_each_failure),
    FAULT_BOTH(hold_survives_each_failure),
    FAULT_BOTH(hold_on_new_thread_survives_each_failure),
};

TN_TEST_MAIN("fault.acquire", tests)
