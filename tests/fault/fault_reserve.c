/* SPDX-License-Identifier: MIT */
/* Reserve, where each allocation fails (F1, M18, M49, M157). */
#include "fault_common.h"

static tn_status call(fault *x) {
    return tn_manager_reserve(x->m, C0, 100, "workspace", &x->reservation);
}

static void untracked(fault *x) { fault_manager(x); }

static void nothing_reserved(fault *x, tn_status status) {
    (void)status;
    assert_null(x->reservation.record);
}

static void reserved_now(fault *x) {
    tn_reservation_info row = {.size = sizeof row};
    assert_int_equal(reserved(x->m, C0), 100);
    assert_ok(tn_reservation_read(&x->reservation, &row));
    assert_string_equal(row.label, "workspace");
    release_reservation(&x->reservation);
    assert_int_equal(reserved(x->m, C0), 0);
}

static void reserve_survives_each_failure(void **state) {
    static const fault_case what = {.name = "reserve",
                                    .prepare = fault_manager_with_budgets,
                                    .call = call,
                                    .failed = nothing_reserved,
                                    .check = reserved_now,
                                    .least_allocs = 2};
    fault_loop(state, &what);
}

static void reserve_that_tracks_survives_each_failure(void **state) {
    static const fault_case what = {.name = "first reserve at a location",
                                    .prepare = untracked,
                                    .call = call,
                                    .failed = nothing_reserved,
                                    .check = reserved_now,
                                    .least_allocs = 4};
    fault_loop(state, &what);
}

static void reserve_on_new_thread_survives_each_failure(void **state) {
    static const fault_case what = {.name = "reserve by a new thread",
                                    .prepare = untracked,
                                    .call = call,
                                    .failed = nothing_reserved,
                                    .check = reserved_now,
                                    .flags = FAULT_ON_THREAD,
                                    .least_allocs = 5};
    fault_loop(state, &what);
}

static const struct CMUnitTest tests[] = {
    FAULT_BOTH(reserve_survives_each_failure),
    FAULT_BOTH(reserve_that_tracks_survives_each_failure),
    FAULT_BOTH(reserve_on_new_thread_survives_each_failure),
};

TN_TEST_MAIN("fault.reserve", tests)
