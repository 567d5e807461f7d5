/* SPDX-License-Identifier: MIT */
/* Drop and discard, where each allocation, driver call and the heavy fence fails (F1, M114). */
#include "fault_common.h"

static tn_status drop_c0(fault *x) { return tn_manager_drop(x->m, x->h, C0, &x->report); }

static tn_status drop_n(fault *x) { return tn_manager_drop(x->m, x->h, N, &x->report); }

static tn_status discard_it(fault *x) { return tn_manager_discard(x->m, x->h, &x->report); }

static void at_p_and_c0(fault *x) {
    fault_manager(x);
    fault_value(x, P, C0);
}

static void at_p_n_and_c0(fault *x) {
    at_p_and_c0(x);
    (void)ensure(x->m, x->h, N);
}

/* A lease whose work is over, but which nobody has reaped. */
static void with_finished_lease(fault *x) {
    at_p_and_c0(x);
    x->stream = spec_stream(x->f, 0);
    x->lease = acquire(x->m, x->h, C0, x->stream);
    spec_busy(x->f, x->stream);
    release(&x->lease);
}

static tn_status finish_and_drop(fault *x) {
    spec_finish(x->f);
    return drop_c0(x);
}

static void loaded(fault *x) {
    fault_manager_with_budgets(x);
    fault_source(x, C0);
    (void)ensure(x->m, x->h, C0);
    (void)ensure(x->m, x->h, P);
}

static void without_c0(fault *x) {
    assert_report(x->report, TN_ACTION_DROP, 0, C0, NOWHERE);
    assert_replicas(x->m, x->h, P);
    assert_int_equal(used(x->m, C0), 0);
}

static void without_n(fault *x) { assert_replicas(x->m, x->h, P, C0); }

static void gone(fault *x) {
    assert_handle_error(tn_manager_discard(x->m, x->h, NULL), TN_HANDLE_DISCARDED);
    assert_int_equal(used(x->m, P), 0);
    assert_int_equal(used(x->m, C0), 0);
    if (x->f->source_count != 0)
        assert_int_equal(atomic_load(&x->f->sources[0].forgotten), 1);
}

static void source_kept(fault *x, tn_status status) {
    (void)status;
    assert_int_equal(atomic_load(&x->f->sources[0].forgotten), 0);
}

static void absent(fault *x) { assert_int_equal(x->report.no_op, 1); }

static void drop_survives_each_failure(void **state) {
    static const fault_case what = {.name = "drop",
                                    .prepare = at_p_and_c0,
                                    .call = drop_c0,
                                    .check = without_c0,
                                    .flags = FAULT_FENCE,
                                    .least_allocs = 4};
    fault_loop(state, &what);
}

static void drop_of_pinned_survives_each_failure(void **state) {
    static const fault_case what = {.name = "drop of pinned memory",
                                    .prepare = at_p_n_and_c0,
                                    .call = drop_n,
                                    .check = without_n,
                                    .flags = FAULT_FENCE,
                                    .least_allocs = 4};
    fault_loop(state, &what);
}

/* The reap with which a drop begins may fail (M165). */
static void drop_after_a_lease_survives_each_failure(void **state) {
    static const fault_case what = {.name = "drop after a lease",
                                    .prepare = with_finished_lease,
                                    .call = finish_and_drop,
                                    .check = without_c0,
                                    .flags = FAULT_FENCE | FAULT_STATE,
                                    .least_allocs = 4,
                                    .least_calls = 1};
    fault_loop(state, &what);
}

static void drop_no_op_survives_each_failure(void **state) {
    static const fault_case what = {.name = "drop of nothing",
                                    .prepare = at_p_and_c0,
                                    .call = drop_n,
                                    .check = absent,
                                    .least_allocs = 0};
    fault_loop(state, &what);
}

static void discard_survives_each_failure(void **state) {
    static const fault_case what = {.name = "discard",
                                    .prepare = at_p_n_and_c0,
                                    .call = discard_it,
                                    .check = gone,
                                    .flags = FAULT_FENCE,
                                    .least_allocs = 5};
    fault_loop(state, &what);
}

static void discard_with_source_survives_each_failure(void **state) {
    static const fault_case what = {.name = "discard with a source",
                                    .prepare = loaded,
                                    .call = discard_it,
                                    .failed = source_kept,
                                    .check = gone,
                                    .flags = FAULT_FENCE,
                                    .least_allocs = 5};
    fault_loop(state, &what);
}

static const struct CMUnitTest tests[] = {
    FAULT_BOTH(drop_survives_each_failure),
    FAULT_BOTH(drop_of_pinned_survives_each_failure),
    FAULT_BOTH(drop_after_a_lease_survives_each_failure),
    FAULT_BOTH(drop_no_op_survives_each_failure),
    FAULT_BOTH(discard_survives_each_failure),
    FAULT_BOTH(discard_with_source_survives_each_failure),
};

TN_TEST_MAIN("fault.drop", tests)
