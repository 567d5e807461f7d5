/* SPDX-License-Identifier: MIT */
/*
 * Scopes, where each allocation, driver call and fence of their making, entry, close and destruction
 * fails (F1, B2, M203..M205, M208, M209, M214).
 *
 * A failed entry has consumed its scope, released its reservations and claims nothing; a fresh scope
 * of the same plan then succeeds. A failed close either ran nothing and can be called again, or has
 * closed the scope and released its reservations.
 */
#include "fault_common.h"

/* ---- A world with a plan that does everything ----------------------------------------------- */

/* `h` can be dropped from P; others: 0 is at P, 1 unloaded, 2 at P. */
static void world(fault *x) {
    tn_action reclaim, enter[2], leave[3];
    tn_reservation_spec reservations[2] = {{P, 8, "tracked"}, {N, 16, "not tracked"}};
    tn_plan_spec spec = TN_PLAN_SPEC_INIT;

    x->h = register_src(x->m, spec_source(x->f));
    (void)ensure(x->m, x->h, P);
    x->others[0] = adopt_rep(x->f, x->m, P);
    x->others[1] = register_src(x->m, spec_source(x->f));
    x->others[2] = adopt_exc(x->f, x->m, P);
    reclaim = tn_action_drop(x->h, P);
    enter[0] = tn_action_ensure(x->others[0], C0);
    enter[1] = tn_action_ensure(x->others[1], P);
    leave[0] = tn_action_drop(x->others[0], C0);
    leave[1] = tn_action_move(x->others[2], C1, P);
    leave[2] = tn_action_drop(x->others[1], P);
    spec.name = "everything";
    spec.reclaim = &reclaim;
    spec.reclaim_count = 1;
    spec.reservations = reservations;
    spec.reservation_count = 2;
    spec.enter = enter;
    spec.enter_count = 2;
    spec.exit = leave;
    spec.exit_count = 3;
    assert_ok(tn_plan_create(&spec, &x->plan));
    x->scope = NULL;
}

static void fresh(fault *x) {
    fault_manager(x);
    world(x);
}

static void fresh_with_budgets(fault *x) {
    fault_manager_with_budgets(x);
    world(x);
}

static void entered(fault *x) {
    fresh(x);
    assert_ok(tn_scope_create(x->m, x->plan, NULL, &x->scope));
    assert_ok(tn_scope_enter(x->scope));
}

static uint64_t reservations_of(const tn_scope *s) {
    size_t count = 0;
    assert_ok(tn_scope_reservations(s, NULL, &count));
    return count;
}

static void end(fault *x) {
    assert_ok(tn_scope_destroy(x->scope));
    x->scope = NULL;
    tn_plan_destroy(x->plan);
    x->plan = NULL;
    assert_int_equal(info(x->m).reservation_count, 0);
}

/* ---- Making --------------------------------------------------------------------------------- */

static tn_status make(fault *x) {
    tn_transfer_stream map[2] = {{C0, x->stream}, {C1, x->second}};
    tn_run_options options = TN_RUN_OPTIONS_INIT;
    options.streams = map;
    options.stream_count = 2;
    return tn_scope_create(x->m, x->plan, &options, &x->scope);
}

static void fresh_with_streams(fault *x) {
    fresh(x);
    x->stream = spec_stream(x->f, 0);
    x->second = spec_stream(x->f, 1);
}

static void not_made(fault *x, tn_status status) {
    (void)status;
    assert_null(x->scope);
}

static void made(fault *x) {
    assert_false(tn_scope_active(x->scope));
    assert_ok(tn_scope_enter(x->scope));
    assert_ok(tn_scope_close(x->scope));
    end(x);
}

static void create_survives_each_failure(void **state) {
    static const fault_case what = {.name = "making a scope",
                                    .prepare = fresh_with_streams,
                                    .call = make,
                                    .failed = not_made,
                                    .check = made,
                                    .least_allocs = 1};
    fault_loop(state, &what);
}

/* ---- Entry ---------------------------------------------------------------------------------- */

/* What a failed entry says of itself; makes no failing call, so that its error stays. */
static void expect_consumed(const tn_scope *s, tn_status status) {
    const tn_plan_report *report = NULL;
    const tn_error *error = NULL;
    assert_false(tn_scope_active(s));
    assert_int_equal(reservations_of(s), 0);
    assert_ok(tn_scope_report(s, &report));
    assert_null(report);
    assert_ok(tn_scope_exit_error(s, &error));
    assert_null(error);
    assert_ok(tn_scope_partial_report(s, &report));
    assert_int_equal(report != NULL, status == TN_ERR_PLAN_EXEC);
}

/* A fresh scope each time; a failed one is closed, which runs nothing, and destroyed. */
static tn_status enter(fault *x) {
    tn_status status = tn_scope_create(x->m, x->plan, NULL, &x->scope);
    if (status != TN_OK)
        return status;
    status = tn_scope_enter(x->scope);
    if (status == TN_OK)
        return status;
    expect_consumed(x->scope, status);
    assert_ok(tn_scope_close(x->scope));
    assert_ok(tn_scope_destroy(x->scope));
    x->scope = NULL;
    return status;
}

static void entry_failed(fault *x, tn_status status) {
    assert_int_equal(info(x->m).reservation_count, 0);
    assert_replicas(x->m, x->others[2], P);
    if (status != TN_ERR_PLAN_EXEC)
        return;
    assert_string_equal(x->error.plan, "everything");
    assert_true(x->error.phase == TN_PHASE_RECLAIM || x->error.phase == TN_PHASE_RESERVE ||
                x->error.phase == TN_PHASE_ENTER);
    if (x->error.phase != TN_PHASE_RECLAIM)
        assert_replicas(x->m, x->h); /* what ran stays (M205) */
    assert_int_equal(reserved(x->m, P), 0);
    assert_int_equal(spec_warnings(x->f, TN_DIAGNOSTIC_SCOPE_ABANDONED), 0);
}

static void in_the_body(fault *x) {
    assert_true(tn_scope_active(x->scope));
    assert_int_equal(reservations_of(x->scope), 2);
    assert_int_equal(reserved(x->m, P), 8);
    assert_int_equal(reserved(x->m, N), 16);
    assert_replicas(x->m, x->h);
    assert_replicas(x->m, x->others[0], P, C0);
    assert_replicas(x->m, x->others[1], P);
    assert_ok(tn_scope_close(x->scope));
    end(x);
}

static void enter_survives_each_failure(void **state) {
    static const fault_case what = {.name = "entering a scope",
                                    .prepare = fresh,
                                    .call = enter,
                                    .failed = entry_failed,
                                    .check = in_the_body,
                                    .flags = FAULT_PREFIX | FAULT_PEAKS | FAULT_FENCE,
                                    .least_allocs = 10,
                                    .least_calls = 6};
    fault_loop(state, &what);
}

static void enter_within_budgets_survives_each_failure(void **state) {
    static const fault_case what = {.name = "entering a scope within budgets",
                                    .prepare = fresh_with_budgets,
                                    .call = enter,
                                    .failed = entry_failed,
                                    .check = in_the_body,
                                    .flags = FAULT_PREFIX | FAULT_PEAKS | FAULT_FENCE,
                                    .least_allocs = 10,
                                    .least_calls = 6};
    fault_loop(state, &what);
}

static void enter_as_first_call_survives_each_failure(void **state) {
    static const fault_case what = {.name = "entering a scope as a thread's first call",
                                    .prepare = fresh,
                                    .call = enter,
                                    .failed = entry_failed,
                                    .check = in_the_body,
                                    .flags =
                                        FAULT_PREFIX | FAULT_PEAKS | FAULT_FENCE | FAULT_ON_THREAD,
                                    .least_allocs = 11,
                                    .least_calls = 6};
    fault_loop(state, &what);
}

/* A file is loaded and copied to pinned memory and to the device. */
static void unloaded_file(fault *x) {
    tn_action enter[3];
    tn_reservation_spec reservation = {C1, 4096, "workspace"};
    tn_plan_spec spec = TN_PLAN_SPEC_INIT;

    fault_manager(x);
    fault_file(x, P);
    enter[0] = tn_action_ensure(x->h, C0);
    enter[1] = tn_action_ensure(x->h, N);
    enter[2] = tn_action_drop(x->h, C0);
    spec.name = "everything";
    spec.reservations = &reservation;
    spec.reservation_count = 1;
    spec.enter = enter;
    spec.enter_count = 3;
    assert_ok(tn_plan_create(&spec, &x->plan));
    x->scope = NULL;
}

static void file_entry_failed(fault *x, tn_status status) {
    (void)status;
    assert_int_equal(info(x->m).reservation_count, 0);
    assert_int_equal(value(x->m, x->h).has_source, 1);
}

static void file_is_pinned(fault *x) {
    assert_int_equal(reservations_of(x->scope), 1);
    assert_replicas(x->m, x->h, N);
    assert_ok(tn_scope_close(x->scope));
    end(x);
}

static void enter_with_file_survives_each_failure(void **state) {
    static const fault_case what = {.name = "entering a scope that loads a file",
                                    .prepare = unloaded_file,
                                    .call = enter,
                                    .failed = file_entry_failed,
                                    .check = file_is_pinned,
                                    .flags = FAULT_PREFIX | FAULT_PEAKS | FAULT_RING,
                                    .least_allocs = 10,
                                    .least_calls = 8};
    fault_loop(state, &what);
}

/* ---- Close ---------------------------------------------------------------------------------- */

static tn_status leave(fault *x) { return tn_scope_close(x->scope); }

static void close_failed(fault *x, tn_status status) {
    const tn_plan_report *report = NULL;
    const tn_error *error = NULL;
    bool ran = status == TN_ERR_PLAN_EXEC;
    assert_ok(tn_scope_exit_error(x->scope, &error));
    assert_ok(tn_scope_report(x->scope, &report));
    assert_null(report);
    assert_int_equal(error != NULL, ran);
    assert_int_equal(tn_scope_active(x->scope), !ran);
    assert_int_equal(reservations_of(x->scope), ran ? 0 : 2);
    assert_int_equal(info(x->m).reservation_count, ran ? 0 : 2);
    if (!ran)
        return;
    assert_int_equal(error->phase, TN_PHASE_EXIT);
    assert_true(error->failed_index < 3);
    assert_ok(tn_scope_partial_report(x->scope, &report));
    assert_non_null(report);
    if (error->failed_index > 0)
        assert_replicas(x->m, x->others[0], P);
    assert_int_equal(replicas(x->m, x->others[2]), 1); /* never lost */
}

/* It succeeded at once, or a second call found the scope closed by the first. */
static void left(fault *x) {
    const tn_plan_report *report = NULL;
    const tn_error *error = NULL;
    assert_false(tn_scope_active(x->scope));
    assert_ok(tn_scope_exit_error(x->scope, &error));
    assert_ok(tn_scope_report(x->scope, &report));
    assert_int_equal(report != NULL, error == NULL);
    if (report) {
        assert_replicas(x->m, x->others[0], P);
        assert_replicas(x->m, x->others[1]);
        assert_replicas(x->m, x->others[2], C1);
    }
    assert_int_equal(reserved(x->m, P), 0);
    assert_int_equal(reserved(x->m, N), 0);
    end(x);
}

static void close_survives_each_failure(void **state) {
    static const fault_case what = {.name = "closing a scope",
                                    .prepare = entered,
                                    .call = leave,
                                    .failed = close_failed,
                                    .check = left,
                                    .flags = FAULT_PREFIX | FAULT_FENCE,
                                    .least_allocs = 6,
                                    .least_calls = 6};
    fault_loop(state, &what);
}

static void close_as_first_call_survives_each_failure(void **state) {
    static const fault_case what = {.name = "closing a scope as a thread's first call",
                                    .prepare = entered,
                                    .call = leave,
                                    .failed = close_failed,
                                    .check = left,
                                    .flags = FAULT_PREFIX | FAULT_FENCE | FAULT_ON_THREAD,
                                    .least_allocs = 7,
                                    .least_calls = 6};
    fault_loop(state, &what);
}

/* With a pending lease: its query may fail, before anything runs (M165, M206). */
static void entered_with_pending(fault *x) {
    entered(x);
    x->stream = spec_stream(x->f, 0);
    x->lease = acquire(x->m, x->others[0], C0, x->stream);
    release(&x->lease);
}

static void close_with_reap_survives_each_failure(void **state) {
    static const fault_case what = {.name = "closing a scope after a reap",
                                    .prepare = entered_with_pending,
                                    .call = leave,
                                    .failed = close_failed,
                                    .check = left,
                                    .flags = FAULT_PREFIX | FAULT_FENCE | FAULT_STATE,
                                    .least_allocs = 6,
                                    .least_calls = 7};
    fault_loop(state, &what);
}

/* ---- Destruction ---------------------------------------------------------------------------- */

static tn_status destroy(fault *x) {
    tn_status status = tn_scope_destroy(x->scope);
    if (status == TN_OK)
        x->scope = NULL;
    return status;
}

static void still_there(fault *x, tn_status status) {
    (void)status;
    assert_true(tn_scope_active(x->scope));
    assert_int_equal(reservations_of(x->scope), 2);
    assert_int_equal(spec_warnings_all(x->f), 0);
}

static void abandoned(fault *x) {
    assert_int_equal(spec_warnings(x->f, TN_DIAGNOSTIC_SCOPE_ABANDONED), 1);
    assert_int_equal(info(x->m).reservation_count, 0);
    assert_replicas(x->m, x->others[0], P, C0); /* no exit action ran */
    end(x);
}

static void destroy_needs_no_memory(void **state) {
    static const fault_case what = {.name = "destroying an entered scope",
                                    .prepare = entered,
                                    .call = destroy,
                                    .failed = still_there,
                                    .check = abandoned,
                                    .flags = FAULT_NO_ALLOC};
    fault_loop(state, &what);
}

static void destroy_as_first_call_survives_each_failure(void **state) {
    static const fault_case what = {.name = "destroying a scope as a thread's first call",
                                    .prepare = entered,
                                    .call = destroy,
                                    .failed = still_there,
                                    .check = abandoned,
                                    .flags = FAULT_ON_THREAD,
                                    .least_allocs = 1};
    fault_loop(state, &what);
}

static const struct CMUnitTest tests[] = {
    FAULT_BOTH(create_survives_each_failure),
    FAULT_BOTH(enter_survives_each_failure),
    FAULT_BOTH(enter_within_budgets_survives_each_failure),
    FAULT_BOTH(enter_as_first_call_survives_each_failure),
    FAULT_BOTH(enter_with_file_survives_each_failure),
    FAULT_BOTH(close_survives_each_failure),
    FAULT_BOTH(close_as_first_call_survives_each_failure),
    FAULT_BOTH(close_with_reap_survives_each_failure),
    FAULT_BOTH(destroy_needs_no_memory),
    FAULT_BOTH(destroy_as_first_call_survives_each_failure),
};

TN_TEST_MAIN("fault.scope", tests)
