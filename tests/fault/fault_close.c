/* SPDX-License-Identifier: MIT */
/*
 * Close and destroy, where each allocation and driver call fails, and the heavy fence of a close
 * without force (F1, M238): the manager stays open and usable, and the same call succeeds
 * afterwards. A destroy that cannot synchronise keeps the storage instead (M148).
 */
#include "fault_common.h"

static tn_status close_waiting(fault *x) { return tn_manager_close(x->m, 0); }

static tn_status close_without_wait(fault *x) { return tn_manager_close(x->m, TN_CLOSE_NO_WAIT); }

static tn_status close_by_force(fault *x) { return tn_manager_close(x->m, TN_CLOSE_FORCE); }

static tn_status destroy(fault *x) {
    tn_status status = tn_manager_destroy(x->m);
    if (status == TN_OK) {
        x->f->manager_count = 0;
        x->m = NULL;
    }
    return status;
}

static void with_values(fault *x) {
    fault_manager_with_budgets(x);
    fault_value(x, P, C0);
    (void)ensure(x->m, x->h, N);
    (void)register_src(x->m, spec_source(x->f));
    fault_remember(x);
}

static void with_pending_lease(fault *x) {
    with_values(x);
    x->stream = spec_stream(x->f, 0);
    x->lease = acquire(x->m, x->h, C0, x->stream);
    spec_busy(x->f, x->stream);
    release(&x->lease);
}

static void with_active_lease(fault *x) {
    with_values(x);
    x->stream = spec_stream(x->f, 0);
    x->lease = acquire(x->m, x->h, C0, x->stream);
    spec_busy(x->f, x->stream);
    x->reservation = reserve(x->m, C0, 8, "abandoned");
}

/* It is open: something that needs an open manager works. */
static void still_open(fault *x, tn_status status) {
    (void)status;
    assert_ok(tn_manager_state_version(x->m, &x->number));
    assert_int_equal(atomic_load(&x->f->sources[0].forgotten), 0);
}

static void open_after_a_failed_destroy(fault *x, tn_status status) {
    still_open(x, status);
    assert_true(status == TN_ERR_HOST_MEMORY || status == TN_ERR_SYSTEM);
}

static void closed(fault *x) {
    assert_status(tn_manager_state_version(x->m, &x->number), TN_ERR_CLOSED);
    assert_int_equal(atomic_load(&x->f->sources[0].forgotten), 1);
    assert_locations(x->m, P, N, C0, C1);
}

static void detached(fault *x) {
    closed(x);
    assert_ok(tn_lease_release(&x->lease, 0));
    assert_ok(tn_reservation_release(&x->reservation));
}

static void gone(fault *x) {
    assert_null(x->m);
    fault_free_kept(x);
    assert_int_equal(atomic_load(&x->f->sources[0].forgotten), 1);
}

static void close_survives_each_failure(void **state) {
    static const fault_case what = {.name = "close",
                                    .prepare = with_values,
                                    .call = close_waiting,
                                    .failed = still_open,
                                    .check = closed,
                                    .flags = FAULT_FENCE | FAULT_ALLOC_OK,
                                    .least_allocs = 3,
                                    .least_calls = 1};
    fault_loop(state, &what);
}

static void close_that_waits_survives_each_failure(void **state) {
    static const fault_case what = {.name = "close that waits",
                                    .prepare = with_pending_lease,
                                    .call = close_waiting,
                                    .failed = still_open,
                                    .check = closed,
                                    .flags = FAULT_FENCE | FAULT_ALLOC_OK | FAULT_STATE,
                                    .least_allocs = 3,
                                    .least_calls = 2};
    fault_loop(state, &what);
}

static tn_status finish_and_close(fault *x) {
    spec_finish(x->f);
    return close_without_wait(x);
}

static void close_without_wait_survives_each_failure(void **state) {
    static const fault_case what = {.name = "close without wait",
                                    .prepare = with_pending_lease,
                                    .call = finish_and_close,
                                    .failed = still_open,
                                    .check = closed,
                                    .flags = FAULT_FENCE | FAULT_ALLOC_OK | FAULT_STATE,
                                    .least_allocs = 3,
                                    .least_calls = 2};
    fault_loop(state, &what);
}

static void forced_close_survives_each_failure(void **state) {
    static const fault_case what = {.name = "forced close",
                                    .prepare = with_active_lease,
                                    .call = close_by_force,
                                    .failed = still_open,
                                    .check = detached,
                                    .flags = FAULT_ALLOC_OK,
                                    .least_allocs = 3,
                                    .least_calls = 3};
    fault_loop(state, &what);
}

static void close_on_new_thread_survives_each_failure(void **state) {
    static const fault_case what = {.name = "forced close by a new thread",
                                    .prepare = with_active_lease,
                                    .call = close_by_force,
                                    .failed = still_open,
                                    .check = detached,
                                    .flags = FAULT_ALLOC_OK | FAULT_ON_THREAD,
                                    .least_allocs = 4,
                                    .least_calls = 3};
    fault_loop(state, &what);
}

static void destroy_survives_each_failure(void **state) {
    static const fault_case what = {.name = "destroy of an open manager",
                                    .prepare = with_active_lease,
                                    .call = destroy,
                                    .failed = open_after_a_failed_destroy,
                                    .check = gone,
                                    .flags = FAULT_ALLOC_OK | FAULT_DRIVER_OK | FAULT_NO_MANAGER,
                                    .least_allocs = 3,
                                    .least_calls = 3};
    fault_loop(state, &what);
}

static void destroy_with_pending_survives_each_failure(void **state) {
    static const fault_case what = {.name = "destroy with a pending lease",
                                    .prepare = with_pending_lease,
                                    .call = destroy,
                                    .failed = open_after_a_failed_destroy,
                                    .check = gone,
                                    .flags = FAULT_ALLOC_OK | FAULT_DRIVER_OK | FAULT_NO_MANAGER,
                                    .least_allocs = 3,
                                    .least_calls = 3};
    fault_loop(state, &what);
}

static const struct CMUnitTest tests[] = {
    FAULT_BOTH(close_survives_each_failure),
    FAULT_BOTH(close_that_waits_survives_each_failure),
    FAULT_BOTH(close_without_wait_survives_each_failure),
    FAULT_BOTH(forced_close_survives_each_failure),
    FAULT_BOTH(close_on_new_thread_survives_each_failure),
    FAULT_BOTH(destroy_survives_each_failure),
    FAULT_BOTH(destroy_with_pending_survives_each_failure),
};

TN_TEST_MAIN("fault.close", tests)
