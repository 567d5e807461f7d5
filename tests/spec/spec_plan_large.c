/* SPDX-License-Identifier: MIT */
/* Plans of many actions on many values, and one that meets every location (M166, M170, M180,
 * M181). */
#include "spec_plan_common.h"

enum { MANY = 500, LIST = 2 * MANY };

/* All values, to N and away from P: each is used twice, far apart. */
static tn_action *to_pinned(tn_manager *m, struct spec *f, tn_handle *values) {
    tn_action *actions = calloc(LIST, sizeof(*actions));

    assert_non_null(actions);
    for (size_t i = 0; i < MANY; i++) {
        values[i] = adopt_rep(f, m, P);
        actions[i] = ENSURE(values[i], N);
        actions[MANY + i] = DROP(values[i], P);
    }
    return actions;
}

static void large_plan_runs_as_explained(void **state) {
    static tn_handle values[MANY];
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, MANY * 32}, {N, MANY * 32});
    tn_action *actions = to_pinned(m, f, values);
    tn_action_explanation *rows = calloc(LIST, sizeof(*rows));
    tn_explanation_info head = TN_EXPLANATION_INFO_INIT;
    tn_plan_report_info ran = TN_PLAN_REPORT_INFO_INIT;
    tn_plan_spec spec = TN_PLAN_SPEC_INIT;
    tn_explanation *e = NULL;
    tn_plan_report *report = NULL;
    size_t count = LIST;
    tn_plan *plan;

    assert_non_null(rows);
    spec.name = "large";
    spec.enter = actions;
    spec.enter_count = LIST;
    plan = spec_plan(&spec);
    assert_ok(tn_manager_explain(m, plan, TN_VERSION_ANY, &e));
    assert_ok(tn_explanation_read(e, &head));
    assert_int_equal(head.feasible, 1);
    assert_int_equal(head.action_count, LIST);
    assert_int_equal(head.peak_count, 2);
    rows[0].size = sizeof(*rows);
    assert_ok(tn_explanation_actions(e, rows, &count));
    for (size_t i = 0; i < LIST; i++) {
        assert_performable(rows[i], TN_PHASE_ENTER, i,
                           i < MANY ? TN_ACTION_ENSURE : TN_ACTION_DROP);
        assert_endpoints(rows[i], P, i < MANY ? N : NOWHERE, 32);
        assert_handle(rows[i].action.handle, values[i % MANY]);
    }
    tn_explanation_drop(e);
    tn_plan_destroy(plan);
    assert_rises(m, LIST,
                 assert_ok(tn_manager_execute_actions(m, "large", actions, LIST, NULL, &report)));
    assert_ok(tn_plan_report_read(report, &ran));
    assert_int_equal(ran.transition_count, LIST);
    tn_plan_report_drop(report);
    assert_int_equal(used(m, P), 0);
    assert_int_equal(used(m, N), MANY * 32);
    assert_peaks(m, N, MANY * 32, MANY * 32);
    free(rows);
    free(actions);
}

/* Its last action is one too many: all before it are explained, none runs. */
static void large_plan_with_a_last_problem(void **state) {
    static tn_handle values[MANY];
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_action *actions = to_pinned(m, f, values);
    tn_explanation_info head = TN_EXPLANATION_INFO_INIT;
    tn_plan_spec spec = TN_PLAN_SPEC_INIT;
    char *before = spec_describe(m, 0);
    tn_explanation *e = NULL;
    tn_plan *plan;

    actions[LIST - 1] = DROP(values[0], N); /* the only one that is left of it */
    spec.name = "large";
    spec.exit = actions;
    spec.exit_count = LIST;
    plan = spec_plan(&spec);
    assert_ok(tn_manager_explain(m, plan, TN_VERSION_ANY, &e));
    assert_ok(tn_explanation_read(e, &head));
    assert_int_equal(head.reason, TN_REASON_LAST_COPY);
    assert_int_equal(head.index, LIST - 1);
    assert_int_equal(head.action_count, LIST);
    tn_explanation_drop(e);
    tn_plan_destroy(plan);
    assert_refused(spec_run(m, "run", actions, LIST, NULL), LIST - 1, TN_ERR_OWNERSHIP,
                   TN_REASON_LAST_COPY);
    assert_unchanged(m, before, 0);
    free(actions);
}

/* Every location of a machine with 128 devices, those that are not tracked in the order met. */
static void plan_that_meets_every_location(void **state) {
    struct spec *f = *state;
    tn_reservation_spec wanted[2 + TN_CUDA_INDEX_MAX + 1];
    const size_t count = sizeof(wanted) / sizeof(wanted[0]);
    tn_predicted_peak got[2 + TN_CUDA_INDEX_MAX + 1];
    tn_plan_spec spec = TN_PLAN_SPEC_INIT;
    tn_explanation *e = NULL;
    size_t peaks = count;
    tn_manager *m;
    tn_plan *plan;

    spec_machine(f, "dev:128");
    m = MANAGER(f, {tn_location_cuda(77), 100}, {P, 1000});
    for (size_t i = 0; i < count; i++) {
        wanted[i].at = i == 0 ? N : i == 1 ? P : tn_location_cuda((uint32_t)(count - 1 - i));
        wanted[i].bytes = i;
        wanted[i].label = "one of each";
    }
    spec.name = "everywhere";
    spec.reservations = wanted;
    spec.reservation_count = count;
    plan = spec_plan(&spec);
    assert_ok(tn_manager_explain(m, plan, TN_VERSION_ANY, &e));
    assert_null(tn_explanation_problem(e));
    assert_ok(tn_explanation_peaks(e, got, &peaks));
    assert_int_equal(peaks, count);
    assert_at(got[0].at, tn_location_cuda(77)); /* tracked ones first */
    assert_int_equal(got[0].charged_bytes, count - 1 - 77);
    assert_at(got[1].at, P);
    for (size_t i = 0, k = 2; i < count; i++) {
        if (tn_location_equal(wanted[i].at, got[0].at) || tn_location_equal(wanted[i].at, P))
            continue;
        assert_at(got[k].at, wanted[i].at);
        assert_int_equal(got[k].charged_bytes, wanted[i].bytes);
        k++;
    }
    tn_explanation_drop(e);
    tn_plan_destroy(plan);
    assert_locations(m, tn_location_cuda(77), P);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(large_plan_runs_as_explained),
    SPEC_BOTH(large_plan_with_a_last_problem),
    SPEC_BOTH(plan_that_meets_every_location),
};

TN_TEST_MAIN("spec.plan_large", tests)
