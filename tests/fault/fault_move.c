/* SPDX-License-Identifier: MIT */
/* Move, where each allocation, driver call and the heavy fence fails (F1, M106, M114). */
#include "fault_common.h"

static tn_status to_device(fault *x) {
    return tn_manager_move(x->m, x->h, C0, NOWHERE, NULL, &x->report);
}

static tn_status to_host(fault *x) { return tn_manager_move(x->m, x->h, P, C0, NULL, &x->report); }

static void at_p(fault *x) {
    fault_manager(x);
    fault_value(x, P, NOWHERE);
}

static void at_p_within_budgets(fault *x) {
    fault_manager_with_budgets(x);
    fault_value(x, P, NOWHERE);
}

static void at_p_and_c0(fault *x) {
    fault_manager(x);
    fault_value(x, P, C0);
}

static void at_c0(fault *x) {
    fault_manager(x);
    fault_value(x, C0, NOWHERE);
}

static void unloaded(fault *x) {
    fault_manager(x);
    fault_source(x, P);
}

static void now_at_c0(fault *x) {
    assert_report(x->report, TN_ACTION_MOVE, 0, P, C0);
    assert_replicas(x->m, x->h, C0);
}

static void now_at_p(fault *x) {
    assert_report(x->report, TN_ACTION_MOVE, 0, C0, P);
    assert_replicas(x->m, x->h, P);
}

static void move_to_device_survives_each_failure(void **state) {
    static const fault_case what = {.name = "move to the device",
                                    .prepare = at_p,
                                    .call = to_device,
                                    .check = now_at_c0,
                                    .flags = FAULT_FENCE,
                                    .least_allocs = 8,
                                    .least_calls = 6};
    fault_loop(state, &what);
}

static void move_within_budgets_survives_each_failure(void **state) {
    static const fault_case what = {.name = "move within budgets",
                                    .prepare = at_p_within_budgets,
                                    .call = to_device,
                                    .check = now_at_c0,
                                    .flags = FAULT_FENCE,
                                    .least_allocs = 8,
                                    .least_calls = 6};
    fault_loop(state, &what);
}

static void move_to_host_survives_each_failure(void **state) {
    static const fault_case what = {.name = "move to the host",
                                    .prepare = at_c0,
                                    .call = to_host,
                                    .check = now_at_p,
                                    .flags = FAULT_FENCE,
                                    .least_allocs = 6,
                                    .least_calls = 2};
    fault_loop(state, &what);
}

static void move_onto_resident_survives_each_failure(void **state) {
    static const fault_case what = {.name = "move onto a replica",
                                    .prepare = at_p_and_c0,
                                    .call = to_device,
                                    .check = now_at_c0,
                                    .flags = FAULT_FENCE,
                                    .least_allocs = 4};
    fault_loop(state, &what);
}

static void move_of_unloaded_survives_each_failure(void **state) {
    static const fault_case what = {.name = "move of an unloaded value",
                                    .prepare = unloaded,
                                    .call = to_device,
                                    .check = now_at_c0,
                                    .flags = FAULT_PEAKS,
                                    .least_allocs = 8,
                                    .least_calls = 6};
    fault_loop(state, &what);
}

static const struct CMUnitTest tests[] = {
    FAULT_BOTH(move_to_device_survives_each_failure),
    FAULT_BOTH(move_within_budgets_survives_each_failure),
    FAULT_BOTH(move_to_host_survives_each_failure),
    FAULT_BOTH(move_onto_resident_survives_each_failure),
    FAULT_BOTH(move_of_unloaded_survives_each_failure),
};

TN_TEST_MAIN("fault.move", tests)
