/* SPDX-License-Identifier: MIT */
/*
 * src/plan/explain.c: an explanation takes no lock (M169), whatever else there is, and whether the
 * plan is feasible or not.
 */
#include "core_fixture.h"

static uint64_t locks_of(tn_manager *m, const tn_plan *plan, bool feasible) {
    tn_explanation *e = NULL;
    uint64_t locks = tn__lock_count();
    assert_ok(tn_manager_explain(m, plan, TN_VERSION_ANY, &e));
    locks = tn__lock_count() - locks;
    assert_int_equal(tn_explanation_problem(e) == NULL, feasible);
    tn_explanation_drop(e);
    return locks;
}

static tn_plan *plan_of(const tn_action *enter, size_t count) {
    tn_plan_spec spec = TN_PLAN_SPEC_INIT;
    tn_plan *plan;
    spec.name = "small";
    spec.enter = enter;
    spec.enter_count = count;
    assert_ok(tn_plan_create(&spec, &plan));
    return plan;
}

static void explanation_takes_no_lock(void **state) {
    tn_manager *m = MANAGER(*(struct spec **)state, {N, 32});
    tn_handle a = adopt_rep(*state, m, P), b = adopt_rep(*state, m, P);
    tn_action enter[] = {tn_action_ensure(a, N), tn_action_ensure(b, N)};
    tn_plan *one = plan_of(enter, 1), *both = plan_of(enter, 2);
    if (!TN_CHECKS)
        TN_SKIP("locks are counted in builds with TN_CHECKS=ON only");
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(locks_of(m, one, true), 0);
        assert_int_equal(locks_of(m, both, false), 0); /* and its verdict */
        tn_hold kept = hold(m, a, P);                  /* among many values and lifetimes */
        for (size_t k = 0; k < 100 && i == 0; k++)
            (void)adopt_rep(*state, m, P);
        assert_int_equal(locks_of(m, both, false), 0);
        release_hold(&kept);
    }
    tn_plan_destroy(one);
    tn_plan_destroy(both);
}

static const struct CMUnitTest tests[] = {SPEC_BOTH(explanation_takes_no_lock)};

TN_TEST_MAIN("unit.plan_explain", tests)
