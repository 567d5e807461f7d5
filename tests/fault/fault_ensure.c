/* SPDX-License-Identifier: MIT */
/* Ensure, where each of its allocations and driver calls fails (F1, M79, M114, M115, B2). */
#include "fault_common.h"

static tn_status to_pageable(fault *x) {
    return tn_manager_ensure(x->m, x->h, P, NULL, &x->report);
}

static tn_status to_pinned(fault *x) { return tn_manager_ensure(x->m, x->h, N, NULL, &x->report); }

static tn_status to_device(fault *x) { return tn_manager_ensure(x->m, x->h, C0, NULL, &x->report); }

static tn_status to_device_by_stream(fault *x) {
    return tn_manager_copy(x->m, x->h, C0, x->stream, &x->report);
}

static void loaded_at(fault *x, tn_location at) {
    tn_lease lease;
    const void *data = NULL;
    tn_stream stream = at.kind == TN_LOCATION_CUDA ? spec_stream(x->f, at.index) : NULL;
    assert_int_equal(x->report.no_op, 0);
    assert_at(x->report.destination, at);
    lease = acquire(x->m, x->h, at, stream);
    assert_ok(tn_lease_lookup(&lease, x->h, &data));
    if (x->h.type == tt_type())
        assert_true(tt_check(data, 1));
    release(&lease);
    assert_int_equal(trace_at(x->m, trace_count(x->m) - 1).action.kind, TN_ACTION_ENSURE);
}

static void at_pageable(fault *x) {
    loaded_at(x, P);
    assert_replicas(x->m, x->h, P);
}

static void at_pinned_too(fault *x) {
    loaded_at(x, N);
    assert_replicas(x->m, x->h, P, N);
}

static void at_device(fault *x) {
    loaded_at(x, C0);
    assert_replicas(x->m, x->h, C0);
}

static void at_device_too(fault *x) {
    loaded_at(x, C0);
    assert_replicas(x->m, x->h, P, C0);
}

static void at_host_too(fault *x) {
    loaded_at(x, P);
    assert_replicas(x->m, x->h, C0, P);
}

/* ---- Loads ---- */

static void unloaded(fault *x) {
    fault_manager(x);
    fault_source(x, P);
}

static void unloaded_with_budgets(fault *x) {
    fault_manager_with_budgets(x);
    fault_source(x, P);
}

static void unloaded_on_device(fault *x) {
    fault_manager(x);
    fault_source(x, C0);
}

static void unloaded_file(fault *x) {
    fault_manager(x);
    fault_file(x, P);
}

static void unloaded_file_on_device(fault *x) {
    fault_manager(x);
    fault_file(x, C0);
}

static void ensure_load_in_place_survives_each_failure(void **state) {
    static const fault_case what = {.name = "load in place",
                                    .prepare = unloaded,
                                    .call = to_pageable,
                                    .check = at_pageable,
                                    .flags = FAULT_PEAKS,
                                    .least_allocs = 5};
    fault_loop(state, &what);
}

static void ensure_load_in_place_on_device_survives_each_failure(void **state) {
    static const fault_case what = {.name = "load in place on the device",
                                    .prepare = unloaded_on_device,
                                    .call = to_device,
                                    .check = at_device,
                                    .flags = FAULT_PEAKS,
                                    .least_allocs = 4,
                                    .least_calls = 1};
    fault_loop(state, &what);
}

static void ensure_load_elsewhere_survives_each_failure(void **state) {
    static const fault_case what = {.name = "load, then copy",
                                    .prepare = unloaded,
                                    .call = to_device,
                                    .check = at_device,
                                    .flags = FAULT_PEAKS,
                                    .least_allocs = 6,
                                    .least_calls = 6};
    fault_loop(state, &what);
}

static void ensure_load_within_budgets_survives_each_failure(void **state) {
    static const fault_case what = {.name = "load, then copy, within budgets",
                                    .prepare = unloaded_with_budgets,
                                    .call = to_device,
                                    .check = at_device,
                                    .flags = FAULT_PEAKS,
                                    .least_allocs = 6,
                                    .least_calls = 6};
    fault_loop(state, &what);
}

static void ensure_from_file_survives_each_failure(void **state) {
    static const fault_case what = {.name = "load of a file in place",
                                    .prepare = unloaded_file,
                                    .call = to_pageable,
                                    .check = at_pageable,
                                    .flags = FAULT_PEAKS,
                                    .least_allocs = 5};
    fault_loop(state, &what);
}

static void ensure_from_file_to_device_survives_each_failure(void **state) {
    static const fault_case what = {.name = "load of a file to the device",
                                    .prepare = unloaded_file,
                                    .call = to_device,
                                    .check = at_device,
                                    .flags = FAULT_PEAKS | FAULT_RING,
                                    .least_allocs = 6,
                                    .least_calls = 6};
    fault_loop(state, &what);
}

static void ensure_from_file_at_device_survives_each_failure(void **state) {
    static const fault_case what = {.name = "load of a file at the device",
                                    .prepare = unloaded_file_on_device,
                                    .call = to_device,
                                    .check = at_device,
                                    .flags = FAULT_PEAKS | FAULT_RING,
                                    .least_allocs = 6,
                                    .least_calls = 2};
    fault_loop(state, &what);
}

/* ---- Copies ---- */

static void at_p(fault *x) {
    fault_manager(x);
    fault_value(x, P, NOWHERE);
}

static void at_p_with_stream(fault *x) {
    at_p(x);
    x->stream = spec_stream(x->f, 0);
}

static void at_c0(fault *x) {
    fault_manager(x);
    fault_value(x, C0, NOWHERE);
}

static void ensure_to_pinned_survives_each_failure(void **state) {
    static const fault_case what = {.name = "copy to pinned memory",
                                    .prepare = at_p,
                                    .call = to_pinned,
                                    .check = at_pinned_too,
                                    .least_allocs = 4,
                                    .least_calls = 2};
    fault_loop(state, &what);
}

static void ensure_to_device_survives_each_failure(void **state) {
    static const fault_case what = {.name = "copy to the device",
                                    .prepare = at_p,
                                    .call = to_device,
                                    .check = at_device_too,
                                    .least_allocs = 5,
                                    .least_calls = 6};
    fault_loop(state, &what);
}

static void ensure_by_own_stream_survives_each_failure(void **state) {
    static const fault_case what = {.name = "copy to the device by the caller's stream",
                                    .prepare = at_p_with_stream,
                                    .call = to_device_by_stream,
                                    .check = at_device_too,
                                    .least_allocs = 5,
                                    .least_calls = 5};
    fault_loop(state, &what);
}

static void ensure_to_host_survives_each_failure(void **state) {
    static const fault_case what = {.name = "copy to the host",
                                    .prepare = at_c0,
                                    .call = to_pageable,
                                    .check = at_host_too,
                                    .least_allocs = 4,
                                    .least_calls = 1};
    fault_loop(state, &what);
}

/* ---- Nothing to do ---- */

static void no_op(fault *x) { assert_int_equal(x->report.no_op, 1); }

static void ensure_no_op_survives_each_failure(void **state) {
    static const fault_case what = {
        .name = "no-op", .prepare = at_p, .call = to_pageable, .check = no_op, .least_allocs = 1};
    fault_loop(state, &what);
}

static void ensure_on_new_thread_survives_each_failure(void **state) {
    static const fault_case what = {.name = "copy by a new thread",
                                    .prepare = at_p,
                                    .call = to_device,
                                    .check = at_device_too,
                                    .flags = FAULT_ON_THREAD,
                                    .least_allocs = 6,
                                    .least_calls = 6};
    fault_loop(state, &what);
}

static const struct CMUnitTest tests[] = {
    FAULT_BOTH(ensure_load_in_place_survives_each_failure),
    FAULT_BOTH(ensure_load_in_place_on_device_survives_each_failure),
    FAULT_BOTH(ensure_load_elsewhere_survives_each_failure),
    FAULT_BOTH(ensure_load_within_budgets_survives_each_failure),
    FAULT_BOTH(ensure_from_file_survives_each_failure),
    FAULT_BOTH(ensure_from_file_to_device_survives_each_failure),
    FAULT_BOTH(ensure_from_file_at_device_survives_each_failure),
    FAULT_BOTH(ensure_to_pinned_survives_each_failure),
    FAULT_BOTH(ensure_to_device_survives_each_failure),
    FAULT_BOTH(ensure_by_own_stream_survives_each_failure),
    FAULT_BOTH(ensure_to_host_survives_each_failure),
    FAULT_BOTH(ensure_no_op_survives_each_failure),
    FAULT_BOTH(ensure_on_new_thread_survives_each_failure),
};

TN_TEST_MAIN("fault.ensure", tests)
