/* SPDX-License-Identifier: MIT */
/* Adopt, also into a reservation, where each allocation and driver call fails (F1, M60, B2). */
#include "fault_common.h"

static const tt_field many[12] = {
    TT_DENSE(1, 8), TT_DENSE(2, 8), TT_DENSE(3, 8), TT_DENSE(4, 8), TT_DENSE(5, 8), TT_DENSE(6, 8),
    TT_DENSE(7, 8), TT_DENSE(8, 8), TT_DENSE(9, 8), TT_DENSE(9, 8), TT_DENSE(9, 8), TT_DENSE(9, 8),
};

static tn_status call(fault *x) {
    return tn_manager_adopt(x->m, x->payload, NOWHERE, TN_REPLICABLE, &x->h);
}

static tn_status call_reserved(fault *x) {
    return tn_manager_adopt_reserved(x->m, x->payload, NOWHERE, TN_REPLICABLE, &x->reservation,
                                     &x->h);
}

static void nothing_issued(fault *x, tn_status status) {
    (void)status;
    assert_int_equal(x->h.index, 0);
}

static void with_field(fault *x) {
    fault_manager(x);
    x->payload = spec_v(x->f, P);
}

static void with_field_on_device(fault *x) {
    fault_manager(x);
    x->payload = spec_v(x->f, C0);
}

static void with_many_fields(fault *x) {
    fault_manager_with_budgets(x);
    x->payload = tt_make(tt_type(), x->f->driver, N, many, 12);
}

static void with_reservation(fault *x) {
    with_field_on_device(x);
    x->reservation = reserve(x->m, C0, 100, "workspace");
}

static void at_p(fault *x) { assert_replicas(x->m, x->h, P); }

static void at_n(fault *x) { assert_replicas(x->m, x->h, N); }

static void at_c0(fault *x) { assert_replicas(x->m, x->h, C0); }

static void at_c0_reserved(fault *x) {
    at_c0(x);
    assert_int_equal(reserved(x->m, C0), 68);
    release_reservation(&x->reservation);
}

static void adopt_survives_each_failure(void **state) {
    static const fault_case what = {.name = "adopt",
                                    .prepare = with_field,
                                    .call = call,
                                    .failed = nothing_issued,
                                    .check = at_p,
                                    .least_allocs = 5};
    fault_loop(state, &what);
}

static void adopt_on_device_survives_each_failure(void **state) {
    static const fault_case what = {.name = "adopt at a device",
                                    .prepare = with_field_on_device,
                                    .call = call,
                                    .failed = nothing_issued,
                                    .check = at_c0,
                                    .least_allocs = 5};
    fault_loop(state, &what);
}

static void adopt_of_many_fields_survives_each_failure(void **state) {
    static const fault_case what = {.name = "adopt of twelve allocations",
                                    .prepare = with_many_fields,
                                    .call = call,
                                    .failed = nothing_issued,
                                    .check = at_n,
                                    .least_allocs = 15};
    fault_loop(state, &what);
}

static void adopt_on_new_thread_survives_each_failure(void **state) {
    static const fault_case what = {.name = "adopt by a new thread",
                                    .prepare = with_field,
                                    .call = call,
                                    .failed = nothing_issued,
                                    .check = at_p,
                                    .flags = FAULT_ON_THREAD,
                                    .least_allocs = 6};
    fault_loop(state, &what);
}

static void adopt_reserved_survives_each_failure(void **state) {
    static const fault_case what = {.name = "adopt into a reservation",
                                    .prepare = with_reservation,
                                    .call = call_reserved,
                                    .failed = nothing_issued,
                                    .check = at_c0_reserved,
                                    .least_allocs = 5};
    fault_loop(state, &what);
}

static const struct CMUnitTest tests[] = {
    FAULT_BOTH(adopt_survives_each_failure),
    FAULT_BOTH(adopt_on_device_survives_each_failure),
    FAULT_BOTH(adopt_of_many_fields_survives_each_failure),
    FAULT_BOTH(adopt_on_new_thread_survives_each_failure),
    FAULT_BOTH(adopt_reserved_survives_each_failure),
};

TN_TEST_MAIN("fault.adopt", tests)
