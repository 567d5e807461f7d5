/* SPDX-License-Identifier: MIT */
/* The reference model: explanations, sequences, scopes (MC115..MC144). */
#include "model_cases.h"

static tm_explained x;
static tm_plan_report ran;
static tm_scope scope;

/* ---- Plans ----------------------------------------------------------------------------------- */

static tm_plan plan_(void) {
    tm_plan plan;
    memset(&plan, 0, sizeof plan);
    strcpy(plan.name, "plan");
    return plan;
}

static void add(tm_list *list, tn_action a) { list->actions[list->count++] = a; }

static void want(tm_plan *plan, tn_location at, uint64_t bytes) {
    size_t i = plan->reservation_count++;
    strcpy(plan->labels[i], "r");
    plan->labels[i][1] = (char)('0' + i);
    plan->reservations[i] = (tn_reservation_spec){at, bytes, NULL};
}

static void explain(const tm_plan *plan, bool feasible, uint32_t reason) {
    assert_status(tm_explain(m, plan, TN_VERSION_ANY, &x), TN_OK);
    assert_int_equal(x.feasible, feasible);
    assert_int_equal(x.problem.reason, reason);
}

static void expect_peaks_(const tn_predicted_peak *peaks, size_t count) {
    assert_int_equal(x.peak_count, count);
    for (size_t i = 0; i < count; i++) {
        assert_true(tn_location_equal(x.peaks[i].at, peaks[i].at));
        assert_int_equal(x.peaks[i].charged_bytes, peaks[i].charged_bytes);
    }
}
#define expect_peaks(...)                                                                          \
    expect_peaks_((tn_predicted_peak[]){__VA_ARGS__},                                              \
                  sizeof((tn_predicted_peak[]){__VA_ARGS__}) / sizeof(tn_predicted_peak))

static const tm_options plain = {.expected = TN_VERSION_ANY};

static tn_status enter(const tm_plan *plan) {
    tm_scope_create(m, plan, &plain, &scope);
    return tm_scope_enter(&scope);
}

static void expect_failed(uint32_t phase, uint64_t index, tn_status cause) {
    assert_int_equal(m->error.status, TN_ERR_PLAN_EXEC);
    assert_int_equal(m->error.phase, phase);
    assert_int_equal(m->error.failed_index, index);
    assert_int_equal(m->error.cause_status, cause);
}

/* ---- Explanations ---------------------------------------------------------------------------- */

static void model_mc115_116_plan_and_sequence(void **state) {
    (void)state;
    START();
    tn_handle s = register_src(P);
    tm_plan plan = plan_();
    add(&plan.enter, tn_action_ensure(s, P));
    add(&plan.exit, tn_action_drop(s, P));
    want(&plan, P, 32);
    explain(&plan, true, TN_REASON_NONE);
    expect_peaks({P, 64});
    assert_int_equal(x.action_count, 2);
    assert_int_equal(calls, 0);
    assert_status(enter(&plan), TN_OK);
    expect_place(P, 32, 32, 32, 64);
    assert_status(tm_scope_close(&scope), TN_OK);
    expect_place(P, 0, 0, 32, 64);
    assert_int_equal(scope.report.count, 2);
    assert_status(tm_scope_enter(&scope), TN_ERR_MISUSE);

    uint64_t before = version();
    plan = plan_();
    add(&plan.enter, tn_action_ensure(s, P));
    add(&plan.enter, tn_action_drop(s, P));
    add(&plan.enter, tn_action_ensure(s, P));
    assert_status(tm_execute(m, &plan, &plain, &ran), TN_OK);
    assert_int_equal(ran.count, 3);
    assert_true(ran.complete);
    assert_int_equal(version(), before + 3);
    expect_replicas(s, P);
}

static void model_mc117_120_peaks(void **state) {
    (void)state;
    START({C0, 100});
    tn_handle s = register_src(P);
    tm_plan plan = plan_();
    want(&plan, N, 5);
    want(&plan, C0, 7);
    add(&plan.enter, tn_action_ensure(s, C1));
    add(&plan.enter, tn_action_drop(s, N));
    add(&plan.exit, tn_action_drop(s, C1));
    explain(&plan, true, TN_REASON_NONE);
    expect_peaks({C0, 7}, {P, 32}, {N, 5}, {C1, 32});
    assert_true(x.actions[1].no_op);

    plan = plan_();
    add(&plan.reclaim, tn_action_ensure(s, C1));
    want(&plan, N, 5);
    explain(&plan, true, TN_REASON_NONE);
    expect_peaks({C0, 0}, {P, 32}, {C1, 32}, {N, 5});

    plan = plan_();
    want(&plan, C0, 60);
    want(&plan, C0, 60);
    want(&plan, N, 1);
    add(&plan.enter, tn_action_ensure(s, P));
    explain(&plan, false, TN_REASON_RESERVATION_BUDGET);
    expect_peaks({C0, 120}, {P, 0});
    assert_int_equal(x.action_count, 0);
    assert_int_equal(x.index, 1);
    assert_string_equal(x.problem.label, "r1");

    plan = plan_();
    want(&plan, C0, 90);
    add(&plan.enter, tn_action_ensure(s, P));
    add(&plan.enter, tn_action_ensure(s, C0));
    add(&plan.enter, tn_action_drop(s, P));
    explain(&plan, false, TN_REASON_BUDGET);
    expect_peaks({C0, 122}, {P, 32});
    assert_int_equal(x.action_count, 2);
    assert_true(tn_location_equal(x.actions[1].source, P));
    assert_true(tn_location_equal(x.actions[1].destination, C0));
}

static void model_mc121_125_problems(void **state) {
    (void)state;
    START({P, 31});
    tm_plan plan = plan_();
    tn_handle s = register_src(P);
    add(&plan.enter, tn_action_ensure(s, N));
    explain(&plan, false, TN_REASON_BUDGET);
    expect_peaks({P, 32}, {N, 0});

    START();
    tn_handle e = adopt_v(P, TN_EXCLUSIVE);
    plan = plan_();
    add(&plan.enter, tn_action_move(e, N, ANY));
    add(&plan.enter, tn_action_ensure(e, N));
    add(&plan.enter, tn_action_ensure(e, P));
    explain(&plan, false, TN_REASON_EXCLUSIVE);
    expect_peaks({P, 32}, {N, 32});
    assert_true(x.actions[1].no_op);

    plan = plan_();
    add(&plan.enter, tn_action_discard(e));
    add(&plan.enter, tn_action_drop(e, P));
    explain(&plan, false, TN_REASON_HANDLE_DISCARDED);
    assert_true(x.actions[0].executable);
    assert_int_equal(x.actions[1].storage_bytes, 0);
    assert_int_equal(x.actions[1].source.kind, TN_LOCATION_NONE);

    hold(e, P);
    plan = plan_();
    add(&plan.enter, tn_action_move(e, N, ANY));
    explain(&plan, false, TN_REASON_SOURCE_PROTECTED);
    plan = plan_();
    add(&plan.enter, tn_action_drop(e, P));
    explain(&plan, false, TN_REASON_PROTECTED);
    plan = plan_();
    add(&plan.enter, tn_action_discard(e));
    explain(&plan, false, TN_REASON_DISCARD_PROTECTED);
    assert_int_equal(x.listed_count, 1);
}

/* ---- Running --------------------------------------------------------------------------------- */

static void model_mc132_whole_scope(void **state) {
    (void)state;
    START({P, 200}, {C0, 160}, {N, 64});
    tn_handle a = adopt_v(P, TN_REPLICABLE);
    assert_status(tm_ensure(m, a, C0, NULL), TN_OK);
    tm_payload big = payload_at(P, 64, 64);
    tn_handle b = {0, 0, NULL};
    assert_status(tm_adopt(m, &big, P, TN_EXCLUSIVE, &b), TN_OK);
    tn_handle k = register_src(N);
    reserve(C0, 16);
    tm_plan plan = plan_();
    add(&plan.reclaim, tn_action_drop(a, C0));
    want(&plan, C0, 16);
    want(&plan, C1, 8);
    add(&plan.enter, tn_action_move(b, C0, ANY));
    add(&plan.enter, tn_action_ensure(k, C0));
    add(&plan.enter, tn_action_ensure(a, C0));
    add(&plan.exit, tn_action_move(b, N, ANY));
    add(&plan.exit, tn_action_drop(k, C0));
    explain(&plan, true, TN_REASON_NONE);
    expect_peaks({P, 96}, {C0, 160}, {N, 64}, {C1, 8});
    uint64_t before = version();
    assert_status(enter(&plan), TN_OK);
    assert_int_equal(version(), before + 8);
    expect_place(C0, 128, 32, 128, 160);
    expect_place(N, 0, 0, 0, 32);
    assert_status(tm_scope_close(&scope), TN_OK);
    assert_int_equal(version(), before + 13);
    expect_place(C0, 32, 16, 128, 160);
    expect_place(N, 64, 0, 64, 64);
    expect_place(C1, 0, 0, 0, 8);
    assert_int_equal(scope.report.count, 6);
}

static void model_mc137_143_entries(void **state) {
    (void)state;
    START({P, 128});
    tn_handle s = register_src(P);
    tm_plan plan = plan_();
    add(&plan.enter, tn_action_ensure(s, P));
    add(&plan.exit, tn_action_drop(s, P));
    want(&plan, P, 32);
    want(&plan, N, 0);
    tm_scope_create(m, &plan, &plain, &scope);
    assert_status(tm_scope_close(&scope), TN_ERR_MISUSE);
    uint64_t before = version();
    assert_status(tm_scope_enter(&scope), TN_OK);
    assert_int_equal(version(), before + 4);
    assert_status(tm_scope_close(&scope), TN_OK);
    assert_status(tm_scope_close(&scope), TN_OK);
    assert_int_equal(version(), before + 7);

    /* MC141: which reservation fails the model is told. */
    m->stop = (tm_stop){true, TN_PHASE_RESERVE, 1, TN_ERR_HOST_MEMORY, NULL, NULL};
    assert_status(enter(&plan), TN_ERR_PLAN_EXEC);
    expect_failed(TN_PHASE_RESERVE, 1, TN_ERR_HOST_MEMORY);
    assert_int_equal(tm_place_at(m, P)->reserved, 0);
    m->stop = (tm_stop){.on = false};

    START(); /* MC143 */
    tn_handle a = register_src(P), bad = register_src(P);
    plan = plan_();
    add(&plan.reclaim, tn_action_ensure(a, P));
    want(&plan, P, 1);
    want(&plan, P, 2);
    add(&plan.enter, tn_action_ensure(a, N));
    add(&plan.enter, tn_action_ensure(bad, P));
    add(&plan.exit, tn_action_drop(a, N));
    tm_scope_create(m, &plan, &plain, &scope);
    before = version();
    source_logical = 8; /* of the second: the first is loaded before */
    assert_status(tm_ensure(m, bad, P, NULL), TN_ERR_MATERIALIZATION);
    source_logical = 32;
    assert_status(tm_ensure(m, a, P, NULL), TN_OK);
    source_logical = 8;
    assert_status(tm_scope_enter(&scope), TN_ERR_PLAN_EXEC);
    expect_failed(TN_PHASE_ENTER, 1, TN_ERR_MATERIALIZATION);
    assert_int_equal(scope.report.count, 2); /* the first is a no-op here */
    assert_int_equal(version(), before + 7);
    expect_place(P, 32, 0, 32, 67);
    assert_status(tm_scope_close(&scope), TN_OK);
    assert_false(scope.report.complete);
}

static void model_mc144_exit(void **state) {
    (void)state;
    START();
    tn_handle first = register_src(P), second = register_src(P);
    tm_plan plan = plan_();
    want(&plan, P, 8);
    add(&plan.enter, tn_action_ensure(first, P));
    add(&plan.enter, tn_action_ensure(second, P));
    add(&plan.exit, tn_action_drop(first, P));
    add(&plan.exit, tn_action_drop(second, P));
    assert_status(enter(&plan), TN_OK);
    hold(second, P);
    uint64_t before = version();
    assert_status(tm_scope_close(&scope), TN_ERR_PLAN_EXEC);
    expect_failed(TN_PHASE_EXIT, 1, TN_ERR_IN_USE);
    assert_int_equal(scope.exit_error.status, TN_ERR_PLAN_EXEC);
    assert_int_equal(version(), before + 2);
    assert_int_equal(scope.report.count, 3);
    expect_replicas(second, P);
    assert_int_equal(tm_place_at(m, P)->reserved, 0);
    assert_status(tm_scope_close(&scope), TN_OK);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(model_mc115_116_plan_and_sequence), cmocka_unit_test(model_mc117_120_peaks),
    cmocka_unit_test(model_mc121_125_problems),          cmocka_unit_test(model_mc132_whole_scope),
    cmocka_unit_test(model_mc137_143_entries),           cmocka_unit_test(model_mc144_exit),
};

TN_TEST_MAIN("unit.model_plan", tests)
