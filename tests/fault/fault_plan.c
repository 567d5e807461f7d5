/* SPDX-License-Identifier: MIT */
/* Plans, explanations and sequences, where each allocation, driver call and fence fails (F1, M172,
 * M186, M187). A plan that breaks has a report of what it did, and can be run again. */
#include "fault_common.h"

#include <stdio.h>

/* What a case works on beside the common things; one case runs at a time. */
static struct {
    tn_plan *plan;
    tn_explanation *explanation;
    tn_plan_report *report;
    tn_handle second;
    tn_stream stream;
} mine;

static void clear(void) { memset(&mine, 0, sizeof mine); }

static tn_plan_spec spec_of(const tn_action *enter, size_t count) {
    static const tn_reservation_spec reservations[] = {{{TN_LOCATION_CUDA, 0}, 16, "first"},
                                                       {{TN_LOCATION_PINNED, 0}, 16, "second"}};
    tn_plan_spec spec = TN_PLAN_SPEC_INIT;
    spec.name = "a plan";
    spec.reservations = reservations;
    spec.reservation_count = 2;
    spec.enter = enter;
    spec.enter_count = count;
    return spec;
}

/* ---- Plans ---- */

static void with_source(fault *x) {
    clear();
    fault_manager(x);
    fault_source(x, P);
}

static tn_status create(fault *x) {
    tn_action enter[] = {tn_action_ensure(x->h, P), tn_action_drop(x->h, P)};
    tn_plan_spec spec = spec_of(enter, 2);
    return tn_plan_create(&spec, &mine.plan);
}

static void not_created(fault *x, tn_status status) {
    (void)x;
    (void)status;
    assert_null(mine.plan);
}

static void created(fault *x) {
    const tn_action *actions = NULL;
    size_t count = 0;
    assert_ok(tn_plan_actions(mine.plan, TN_PHASE_ENTER, &actions, &count));
    assert_int_equal(count, 2);
    assert_handle(actions[1].handle, x->h);
    tn_plan_destroy(mine.plan);
}

static void plan_create_survives_each_failure(void **state) {
    static const fault_case what = {.name = "plan",
                                    .prepare = with_source,
                                    .call = create,
                                    .failed = not_created,
                                    .check = created,
                                    .least_allocs = 1};
    fault_loop(state, &what);
}

/* ---- Explanations ---- */

static tn_status explain(fault *x) {
    return tn_manager_explain(x->m, mine.plan, TN_VERSION_ANY, &mine.explanation);
}

static void not_explained(fault *x, tn_status status) {
    (void)x;
    (void)status;
    assert_null(mine.explanation);
}

static tn_explanation_info explained_info(void) {
    tn_explanation_info head = TN_EXPLANATION_INFO_INIT;
    assert_ok(tn_explanation_read(mine.explanation, &head));
    return head;
}

static void end_explained(void) {
    tn_explanation_drop(mine.explanation);
    tn_plan_destroy(mine.plan);
}

static void make_plan(fault *x, const tn_action *enter, size_t count) {
    tn_plan_spec spec = spec_of(enter, count);
    (void)x;
    assert_ok(tn_plan_create(&spec, &mine.plan));
}

static void feasible_plan(fault *x) {
    with_source(x);
    tn_action enter[] = {tn_action_ensure(x->h, C0), tn_action_move(x->h, N, NOWHERE),
                         tn_action_discard(x->h)};
    make_plan(x, enter, 3);
}

static void explained_feasible(fault *x) {
    tn_explanation_info head = explained_info();
    (void)x;
    assert_int_equal(head.feasible, 1);
    assert_int_equal(head.action_count, 3);
    assert_int_equal(head.peak_count, 3);
    end_explained();
}

/* Held, leased and pending values, and reservations: all of them have to be looked at. */
static void infeasible_plan(fault *x) {
    clear();
    x->m = MANAGER(x->f, {C0, 3 * 32 + 40});
    x->stream = spec_stream(x->f, 0);
    for (int i = 0; i < 3; i++) {
        x->h = adopt_rep(x->f, x->m, C0);
        (void)hold(x->m, x->h, C0);
    }
    x->lease = acquire(x->m, x->h, C0, x->stream);
    (void)reserve(x->m, C0, 24, "another's");
    spec_busy(x->f, x->stream);
    release(&x->lease);
    x->h = register_src(x->m, spec_source(x->f));
    tn_action enter[] = {tn_action_ensure(x->h, P), tn_action_ensure(x->h, C0)};
    make_plan(x, enter, 2);
}

static void explained_infeasible(fault *x) {
    tn_explanation_info head = explained_info();
    (void)x;
    assert_int_equal(head.feasible, 0);
    assert_int_equal(head.reason, TN_REASON_BUDGET);
    assert_int_equal(head.verdict, TN_VERDICT_BLOCKED);
    assert_int_equal(head.blocker_count, 4);
    end_explained();
}

static void explain_survives_each_failure(void **state) {
    static const fault_case what = {.name = "explanation",
                                    .prepare = feasible_plan,
                                    .call = explain,
                                    .failed = not_explained,
                                    .check = explained_feasible,
                                    .least_allocs = 2};
    fault_loop(state, &what);
}

/* An event that cannot be queried protects, and explaining goes on (M171). */
static void explain_infeasible_survives_each_failure(void **state) {
    static const fault_case what = {.name = "explanation of what is infeasible",
                                    .prepare = infeasible_plan,
                                    .call = explain,
                                    .failed = not_explained,
                                    .check = explained_infeasible,
                                    .flags = FAULT_DRIVER_OK,
                                    .least_allocs = 3,
                                    .least_calls = 1};
    fault_loop(state, &what);
}

static void explain_on_new_thread_survives_each_failure(void **state) {
    static const fault_case what = {.name = "explanation by a new thread",
                                    .prepare = feasible_plan,
                                    .call = explain,
                                    .failed = not_explained,
                                    .check = explained_feasible,
                                    .flags = FAULT_ON_THREAD,
                                    .least_allocs = 3};
    fault_loop(state, &what);
}

/* ---- Sequences ---- */

static tn_status run_actions(fault *x, const tn_action *actions, size_t count) {
    tn_transfer_stream map[] = {{C0, mine.stream}};
    tn_run_options options = TN_RUN_OPTIONS_INIT;
    options.streams = map;
    options.stream_count = mine.stream ? 1 : 0;
    return tn_manager_execute_actions(x->m, "a plan", actions, count, &options, &mine.report);
}

/* The transitions of the report, which is dropped. */
static size_t transitions(tn_report rows[4]) {
    size_t count = 4;
    if (!mine.report)
        return 0;
    memset(rows, 0, 4 * sizeof rows[0]);
    rows[0].size = sizeof rows[0];
    assert_ok(tn_plan_report_transitions(mine.report, rows, &count));
    assert_true(count <= 4);
    tn_plan_report_drop(mine.report);
    mine.report = NULL;
    return count;
}

/* What ran is undone, so that the caller finds what was there before but for version and peaks. */
static void undo(fault *x, tn_status status) {
    tn_report rows[4];
    assert_int_equal(mine.report != NULL, status == TN_ERR_PLAN_EXEC);
    size_t count = transitions(rows);
    assert_int_equal(count, status == TN_ERR_PLAN_EXEC ? x->error.failed_index : 0);
    assert_int_equal(trace_count(x->m), x->number + count);
    while (count-- > 0)
        if (rows[count].action.kind == TN_ACTION_ENSURE && !rows[count].no_op)
            (void)drop(x->m, rows[count].action.handle, rows[count].action.at);
        else if (rows[count].action.kind == TN_ACTION_MOVE)
            (void)move(x->m, rows[count].action.handle, rows[count].source);
    assert_ok(tn_manager_clear_trace(x->m));
    x->number = 0;
}

static void all_ran(size_t want) {
    tn_report rows[4];
    assert_int_equal(transitions(rows), want);
}

static void two_values(fault *x) {
    clear();
    fault_manager_with_budgets(x);
    fault_source(x, P);
    mine.second = adopt_rep(x->f, x->m, P);
    mine.stream = spec_stream(x->f, 0);
}

/* A load, a copy to pinned memory, a copy to the device. */
static tn_status load_and_copy(fault *x) {
    tn_action actions[] = {tn_action_ensure(mine.second, N), tn_action_ensure(x->h, P),
                           tn_action_ensure(x->h, C0)};
    return run_actions(x, actions, 3);
}

static void loaded_and_copied(fault *x) {
    all_ran(3);
    assert_replicas(x->m, x->h, P, C0);
    assert_replicas(x->m, mine.second, P, N);
}

static void sequence_survives_each_failure(void **state) {
    static const fault_case what = {.name = "sequence",
                                    .prepare = two_values,
                                    .call = load_and_copy,
                                    .failed = undo,
                                    .check = loaded_and_copied,
                                    .flags = FAULT_PLAN | FAULT_STATE,
                                    .least_allocs = 12,
                                    .least_calls = 6};
    fault_loop(state, &what);
}

/* Moves and a drop, with a fence before the first of them. */
static void replicas_to_remove(fault *x) {
    clear();
    fault_manager(x);
    fault_value(x, P, N);
    mine.second = adopt_exc(x->f, x->m, P);
    x->number = trace_count(x->m);
}

static tn_status move_and_drop(fault *x) {
    tn_action actions[] = {tn_action_move(mine.second, C0, NOWHERE), tn_action_drop(x->h, N)};
    return run_actions(x, actions, 2);
}

static void moved_and_dropped(fault *x) {
    all_ran(2);
    assert_replicas(x->m, x->h, P);
    assert_replicas(x->m, mine.second, C0);
}

static void sequence_that_removes_survives_each_failure(void **state) {
    static const fault_case what = {.name = "sequence that removes",
                                    .prepare = replicas_to_remove,
                                    .call = move_and_drop,
                                    .failed = undo,
                                    .check = moved_and_dropped,
                                    .flags = FAULT_PLAN | FAULT_STATE | FAULT_FENCE,
                                    .least_allocs = 8,
                                    .least_calls = 5};
    fault_loop(state, &what);
}

/* Nothing runs: state, peaks and version are as before. */
static void complete_lease(fault *x) {
    clear();
    fault_manager(x);
    fault_value(x, C0, NOWHERE);
    x->stream = mine.stream = spec_stream(x->f, 0);
    x->lease = acquire(x->m, x->h, C0, x->stream);
    spec_busy(x->f, x->stream);
    release(&x->lease);
}

static tn_status run_nothing(fault *x) { return run_actions(x, NULL, 0); }

static void nothing_ran(fault *x) {
    all_ran(0);
    assert_int_equal(trace_count(x->m), 0);
}

static void no_report(fault *x, tn_status status) {
    (void)x;
    (void)status;
    assert_null(mine.report);
}

static void empty_sequence_survives_each_failure(void **state) {
    static const fault_case what = {.name = "empty sequence that reaps",
                                    .prepare = complete_lease,
                                    .call = run_nothing,
                                    .failed = no_report,
                                    .check = nothing_ran,
                                    .least_allocs = 1,
                                    .least_calls = 2};
    fault_loop(state, &what);
}

static tn_status load_on_new_thread(fault *x) {
    tn_action actions[] = {tn_action_ensure(x->h, P), tn_action_drop(x->h, C1)};
    return run_actions(x, actions, 2);
}

static void loaded(fault *x) {
    all_ran(2);
    assert_replicas(x->m, x->h, P);
}

static void sequence_on_new_thread_survives_each_failure(void **state) {
    static const fault_case what = {.name = "sequence by a new thread",
                                    .prepare = with_source,
                                    .call = load_on_new_thread,
                                    .failed = undo,
                                    .check = loaded,
                                    .flags = FAULT_PLAN | FAULT_STATE | FAULT_ON_THREAD,
                                    .least_allocs = 6};
    fault_loop(state, &what);
}

static const struct CMUnitTest tests[] = {
    FAULT_BOTH(plan_create_survives_each_failure),
    FAULT_BOTH(explain_survives_each_failure),
    FAULT_BOTH(explain_infeasible_survives_each_failure),
    FAULT_BOTH(explain_on_new_thread_survives_each_failure),
    FAULT_BOTH(sequence_survives_each_failure),
    FAULT_BOTH(sequence_that_removes_survives_each_failure),
    FAULT_BOTH(empty_sequence_survives_each_failure),
    FAULT_BOTH(sequence_on_new_thread_survives_each_failure),
};

TN_TEST_MAIN("fault.plan", tests)
