/* SPDX-License-Identifier: MIT */
/* What explanations say of actions: cases MC15, MC19, MC20, MC58, MC123..MC128, MC133..MC136
 * (M168..M179); and that explaining changes nothing. */
#include "spec_plan_common.h"

/* ---- The parts of earlier cases that need a plan ---------------------------------------------- */

static void mc015_explain_a_device_that_does_not_exist(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    char *before = spec_describe(m, 0);
    struct spec_explained e = EXPLAIN(m, ENTER(ENSURE(h, C2)));

    assert_problem(e, TN_PHASE_ENTER, 0, TN_REASON_LOCATION_INVALID);
    assert_predicted(e, {P, 32});
    assert_int_equal(e.problem.status, TN_ERR_VALUE);
    assert_endpoints(e.actions[0], NOWHERE, C2, 32); /* M177, M178 */
    assert_refused(RUN(m, ENSURE(h, C2)), 0, TN_ERR_VALUE, TN_REASON_LOCATION_INVALID);
    assert_refused(RUN(m, ENSURE(h, tn_location_cuda(200))), 0, TN_ERR_VALUE,
                   TN_REASON_LOCATION_INVALID);
    assert_problem(EXPLAIN(m, ENTER(ENSURE(h, P), DROP(h, C2))), TN_PHASE_ENTER, 1,
                   TN_REASON_LOCATION_INVALID);
    assert_problem(EXPLAIN(m, EXIT(MOVE(h, C2))), TN_PHASE_EXIT, 0, TN_REASON_LOCATION_INVALID);
    e = EXPLAIN(m, RECLAIM(MOVE_FROM(h, N, C2)));
    assert_problem(e, TN_PHASE_RECLAIM, 0, TN_REASON_LOCATION_INVALID);
    assert_endpoints(e.actions[0], C2, N, 32); /* the named source */
    e = EXPLAIN(m, RESERVE({C2, 1, "nowhere"}));
    assert_problem(e, TN_PHASE_RESERVE, 0, TN_REASON_LOCATION_INVALID);
    assert_string_equal(e.problem.label, "nowhere");
    assert_predicted(e, {P, 32});
    assert_locations(m, P);
    assert_int_equal(trace_count(m), 0);
    assert_int_equal(info(m).value_count, 1);
    assert_unchanged(m, before, 0);
}

static void mc019_explain_tracks_nothing(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    struct spec_explained e = EXPLAIN(m, ENTER(ENSURE(h, N)));

    assert_feasible(e);
    assert_predicted(e, {P, 32}, {N, 32});
    assert_performable(e.actions[0], TN_PHASE_ENTER, 0, TN_ACTION_ENSURE);
    assert_endpoints(e.actions[0], P, N, 32);
    assert_locations(m, P);
    assert_int_equal(version(m), 2);
}

static void mc020_explain_a_full_location(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {N, 32});
    struct spec_explained e;

    adopt_rep(f, m, P);
    adopt_rep(f, m, P);
    reserve(m, P, 3200, "p");
    reserve(m, N, 32, "n");
    e = EXPLAIN(m, RESERVE({N, 1, "one more"}));
    assert_problem(e, TN_PHASE_RESERVE, 0, TN_REASON_RESERVATION_BUDGET);
    assert_at(e.problem.at, N);
    assert_string_equal(e.problem.label, "one more");
    assert_int_equal(e.problem.budget_bytes, 32);
    assert_int_equal(e.problem.used_bytes, 0);
    assert_int_equal(e.problem.reserved_bytes, 32);
    assert_int_equal(e.problem.requested_bytes, 1);
    assert_predicted(e, {N, 33}, {P, 3264});
    assert_locations(m, N, P);
    assert_int_equal(remaining(m, N), 0);
    assert_feasible(EXPLAIN(m, RESERVE({N, 0, "nothing"}))); /* M43 */
}

static void mc058_explain_exclusive_value(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_exc(f, m, P);
    struct spec_explained e = EXPLAIN(m, ENTER(ENSURE(h, N)));

    assert_problem(e, TN_PHASE_ENTER, 0, TN_REASON_EXCLUSIVE);
    assert_endpoints(e.actions[0], NOWHERE, N, 32);
    assert_int_equal(e.problem.status, TN_ERR_OWNERSHIP);
    assert_int_equal(e.head.verdict, TN_VERDICT_NONE);
    assert_refused(RUN(m, ENSURE(h, N)), 0, TN_ERR_OWNERSHIP, TN_REASON_EXCLUSIVE);
    assert_locations(m, P);
    assert_int_equal(trace_count(m), 0);
}

/* ---- MC123..MC128: one action after another -------------------------------------------------- */

static void mc123_each_step_changes_the_next(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_exc(f, m, P);
    struct spec_explained e = EXPLAIN(m, ENTER(MOVE(h, N), ENSURE(h, N), ENSURE(h, P)));

    assert_problem(e, TN_PHASE_ENTER, 2, TN_REASON_EXCLUSIVE);
    assert_int_equal(e.action_count, 3);
    assert_performable(e.actions[0], TN_PHASE_ENTER, 0, TN_ACTION_MOVE);
    assert_endpoints(e.actions[0], P, N, 32);
    assert_explained(e.actions[1], TN_PHASE_ENTER, 1, TN_ACTION_ENSURE, 1, 1,
                     TN_REASON_ALREADY_RESIDENT);
    assert_endpoints(e.actions[1], NOWHERE, N, 32);
    assert_explained(e.actions[2], TN_PHASE_ENTER, 2, TN_ACTION_ENSURE, 0, 0, TN_REASON_EXCLUSIVE);
    assert_endpoints(e.actions[2], NOWHERE, P, 32);
    assert_predicted(e, {P, 32}, {N, 32});
    assert_replicas(m, h, P);
}

static void mc124_problems_of_the_handle(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_manager *other = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    tn_handle foreign = adopt_rep(f, other, P);
    tn_handle unknown = {h.manager, 999, h.type};
    tn_handle gone = adopt_rep(f, m, P);
    struct {
        tn_action action;
        uint32_t reason, cause;
    } bad[] = {
        {ENSURE(foreign, N), TN_REASON_HANDLE_FOREIGN, TN_HANDLE_FOREIGN},
        {MOVE_FROM(unknown, N, P), TN_REASON_HANDLE_UNKNOWN, TN_HANDLE_UNKNOWN},
        {DROP(gone, P), TN_REASON_HANDLE_DISCARDED, TN_HANDLE_DISCARDED},
        {DISCARD(gone), TN_REASON_HANDLE_DISCARDED, TN_HANDLE_DISCARDED},
        {ENSURE(unknown, C2), TN_REASON_HANDLE_UNKNOWN, TN_HANDLE_UNKNOWN}, /* comes first */
    };
    struct spec_explained e = EXPLAIN(m, ENTER(DISCARD(h), DROP(h, P)));

    discard(m, gone);
    assert_problem(e, TN_PHASE_ENTER, 1, TN_REASON_HANDLE_DISCARDED);
    assert_performable(e.actions[0], TN_PHASE_ENTER, 0, TN_ACTION_DISCARD);
    assert_endpoints(e.actions[0], NOWHERE, NOWHERE, 32);
    assert_endpoints(e.actions[1], NOWHERE, NOWHERE, 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        e = EXPLAIN(m, EXIT(bad[i].action));
        assert_problem(e, TN_PHASE_EXIT, 0, bad[i].reason);
        assert_endpoints(e.actions[0], NOWHERE, NOWHERE, 0);
        assert_int_equal(e.problem.status, TN_ERR_HANDLE);
        assert_int_equal(e.problem.handle_cause, bad[i].cause);
        assert_int_equal(e.problem.manager, tn_manager_id(m));
        assert_handle(e.problem.handle, bad[i].action.handle);
        assert_refused(RUN(m, bad[i].action), 0, TN_ERR_HANDLE, bad[i].reason); /* M9 */
        assert_int_equal(tn_last_error()->handle_cause, bad[i].cause);
    }
    assert_replicas(m, h, P);
}

static void mc125_protected_replicas(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    tn_hold held;
    struct spec_explained e;

    ensure(m, h, C0);
    held = hold(m, h, P);
    e = EXPLAIN(m, ENTER(MOVE(h, N)));
    assert_problem(e, TN_PHASE_ENTER, 0, TN_REASON_SOURCE_PROTECTED);
    assert_endpoints(e.actions[0], P, N, 32);
    assert_at(e.problem.at, P);
    assert_int_equal(e.problem.status, TN_ERR_IN_USE);
    assert_int_equal(e.problem.hold_count, 1);
    e = EXPLAIN(m, ENTER(DROP(h, P)));
    assert_problem(e, TN_PHASE_ENTER, 0, TN_REASON_PROTECTED);
    assert_endpoints(e.actions[0], P, NOWHERE, 32);
    assert_at(e.problem.at, P);
    e = EXPLAIN(m, ENTER(DISCARD(h)));
    assert_problem(e, TN_PHASE_ENTER, 0, TN_REASON_DISCARD_PROTECTED);
    assert_endpoints(e.actions[0], NOWHERE, NOWHERE, 32);
    assert_int_equal(e.protected_count, 1);
    assert_at(e.protected_at[0], P);
    /* Every protected replica is listed, and only for a discard. */
    hold(m, h, C0);
    ensure(m, h, N);
    e = EXPLAIN(m, ENTER(DISCARD(h)));
    assert_int_equal(e.protected_count, 2);
    assert_at(e.protected_at[0], P);
    assert_at(e.protected_at[1], C0);
    assert_int_equal(EXPLAIN(m, ENTER(DROP(h, P))).protected_count, 0);
    release_hold(&held);
    assert_feasible(EXPLAIN(m, ENTER(DROP(h, P), MOVE(h, P), DROP(h, P))));
}

/* A replica that exists in the simulation only is never protected (M171). */
static void mc125_simulated_replicas_are_free(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);

    hold(m, h, P);
    assert_feasible(EXPLAIN(m, ENTER(ENSURE(h, N), MOVE_FROM(h, C0, N), DROP(h, C0))));
    assert_problem(EXPLAIN(m, ENTER(ENSURE(h, N), MOVE(h, C0))), TN_PHASE_ENTER, 1,
                   TN_REASON_SOURCE_PROTECTED); /* the preferred source is P */
}

static void mc126_explain_a_replica_made_by_the_plan(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *s = spec_source(f);
    tn_handle h = register_src(m, s);
    struct spec_explained e = EXPLAIN(m, ENTER(MOVE(h, P), MOVE_FROM(h, N, P)));

    assert_feasible(e);
    assert_performable(e.actions[0], TN_PHASE_ENTER, 0, TN_ACTION_MOVE);
    assert_endpoints(e.actions[0], P, P, 32);
    assert_endpoints(e.actions[1], P, N, 32);
    assert_predicted(e, {P, 32}, {N, 32});
    assert_int_equal(s->calls, 0);
}

static void mc127_explain_a_source_that_is_not_resident(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *s = spec_source(f);
    tn_handle h = register_src(m, s);
    struct spec_explained e = EXPLAIN(m, ENTER(MOVE_FROM(h, P, P)));

    assert_problem(e, TN_PHASE_ENTER, 0, TN_REASON_SOURCE_NOT_RESIDENT);
    assert_endpoints(e.actions[0], P, P, 32);
    assert_int_equal(e.problem.status, TN_ERR_UNAVAILABLE);
    assert_int_equal(e.head.verdict, TN_VERDICT_NONE);
    assert_int_equal(s->calls, 0);
}

/* The rest of the reasons (M179), and checks in the order of M175. */
static void mc127_other_problems(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {N, 8});
    tn_handle h = adopt_rep(f, m, P);
    struct spec_explained e = EXPLAIN(m, ENTER(DROP(h, P)));

    assert_problem(e, TN_PHASE_ENTER, 0, TN_REASON_LAST_COPY);
    assert_endpoints(e.actions[0], P, NOWHERE, 32);
    assert_int_equal(e.problem.status, TN_ERR_OWNERSHIP);
    assert_int_equal(e.head.verdict, TN_VERDICT_NONE);
    e = EXPLAIN(m, ENTER(MOVE_FROM(h, N, C0))); /* absent comes before what does not fit */
    assert_problem(e, TN_PHASE_ENTER, 0, TN_REASON_SOURCE_NOT_RESIDENT);
    assert_endpoints(e.actions[0], C0, N, 32);
    e = EXPLAIN(m, ENTER(MOVE(h, N)));
    assert_problem(e, TN_PHASE_ENTER, 0, TN_REASON_BUDGET);
    assert_endpoints(e.actions[0], P, N, 32);
    assert_predicted(e, {N, 32}, {P, 32});
    hold(m, h, P); /* protected comes before what does not fit (M100) and before the last copy */
    assert_problem(EXPLAIN(m, ENTER(MOVE(h, N))), TN_PHASE_ENTER, 0, TN_REASON_SOURCE_PROTECTED);
    assert_problem(EXPLAIN(m, ENTER(DROP(h, P))), TN_PHASE_ENTER, 0, TN_REASON_PROTECTED);
}

static void mc128_explained_no_op_move(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    struct spec_explained e = EXPLAIN(m, ENTER(MOVE(h, P)));
    tn_report r = move(m, h, P);

    assert_explained(e.actions[0], TN_PHASE_ENTER, 0, TN_ACTION_MOVE, 1, 1,
                     TN_REASON_ALREADY_AT_DESTINATION);
    assert_endpoints(e.actions[0], NOWHERE, P, 32);
    assert_report(r, TN_ACTION_MOVE, 1, NOWHERE, P);
    assert_int_equal(r.reason, TN_REASON_ALREADY_AT_DESTINATION);
    e = EXPLAIN(m, ENTER(MOVE_FROM(h, P, P)));
    assert_explained(e.actions[0], TN_PHASE_ENTER, 0, TN_ACTION_MOVE, 1, 1,
                     TN_REASON_ALREADY_AT_DESTINATION);
    assert_endpoints(e.actions[0], P, P, 32);
    ensure(m, h, N); /* not a no-op: the other replica goes */
    e = EXPLAIN(m, ENTER(MOVE(h, P)));
    assert_performable(e.actions[0], TN_PHASE_ENTER, 0, TN_ACTION_MOVE);
    assert_endpoints(e.actions[0], N, P, 32);
    assert_predicted(e, {P, 32}, {N, 32});
}

/* ---- MC133..MC136 ---------------------------------------------------------------------------- */

static void mc133_explaining_changes_nothing(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *s = spec_source(f);
    tn_handle h = register_src(m, s);
    tn_plan *plan = PLAN(RESERVE({C1, 4, "r"}), ENTER(ENSURE(h, N)));
    char *before = spec_describe(m, 0);
    struct spec_explained first = spec_explain(m, plan);
    struct spec_explained second = spec_explain(m, plan);
    char *first_text = spec_explained_text(&first);
    char *second_text = spec_explained_text(&second);

    assert_feasible(first);
    assert_string_equal(first_text, second_text);
    free(first_text);
    free(second_text);
    assert_int_equal(s->calls, 0);
    assert_locations(m, P);
    assert_int_equal(trace_count(m), 0);
    assert_unchanged(m, before, 0);
    tn_plan_destroy(plan);
}

static void mc134_no_ops_have_a_reason(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    struct spec_explained e = EXPLAIN(m, ENTER(ENSURE(h, P), ENSURE(h, N), DROP(h, C1)));

    assert_feasible(e);
    assert_explained(e.actions[0], TN_PHASE_ENTER, 0, TN_ACTION_ENSURE, 1, 1,
                     TN_REASON_ALREADY_RESIDENT);
    assert_performable(e.actions[1], TN_PHASE_ENTER, 1, TN_ACTION_ENSURE);
    assert_explained(e.actions[2], TN_PHASE_ENTER, 2, TN_ACTION_DROP, 1, 1,
                     TN_REASON_ALREADY_ABSENT);
    assert_predicted(e, {P, 32}, {N, 32}, {C1, 0}); /* a no-op drop names its location (M181) */
}

/* At C0, with a released lease whose work is complete but not reaped, or not complete. */
static tn_handle leased(struct spec *f, tn_manager *m, bool complete) {
    tn_handle h = register_src(m, spec_source(f));
    tn_stream s = spec_stream(f, 0);
    tn_lease lease;

    ensure(m, h, C0);
    lease = acquire(m, h, C0, s);
    spec_busy(f, s);
    release(&lease);
    assert_int_equal(mat(m, h, C0).pending_count, 1);
    if (complete)
        spec_finish(f);
    return h;
}

static void mc135_query_that_fails_protects(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = leased(f, m, true);
    struct spec_explained e;

    spec_fault(f, TN_SIM_EVENT_QUERY, 1, 0, TN_ERR_DRIVER, 1);
    e = EXPLAIN(m, ENTER(DROP(h, C0)));
    assert_problem(e, TN_PHASE_ENTER, 0, TN_REASON_PROTECTED);
    assert_at(e.problem.at, C0);
    assert_int_equal(e.problem.pending_count, 1);
    spec_repair(f);
    assert_feasible(EXPLAIN(m, ENTER(DROP(h, C0))));
    assert_int_equal(info(m).pending_lease_count, 0);
}

static void mc135_work_that_is_not_complete_protects(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = leased(f, m, false);

    assert_problem(EXPLAIN(m, ENTER(DROP(h, C0))), TN_PHASE_ENTER, 0, TN_REASON_PROTECTED);
    spec_finish(f);
    assert_feasible(EXPLAIN(m, ENTER(DROP(h, C0))));
}

/* What neither room nor time can change (a refusal of another kind). */
static void verdict_none(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_exc(f, m, P);

    assert_int_equal(EXPLAIN(m, ENTER(DROP(h, P))).head.verdict, TN_VERDICT_NONE);
    assert_int_equal(EXPLAIN(m, ENTER(ENSURE(h, C2))).head.verdict, TN_VERDICT_NONE);
    assert_int_equal(EXPLAIN(m, ENTER(DISCARD(h), DISCARD(h))).head.verdict, TN_VERDICT_NONE);
    assert_int_equal(RUN(m, ENSURE(h, N)).error.verdict, TN_VERDICT_NONE);
    assert_status(tn_manager_drop(m, h, P, NULL), TN_ERR_OWNERSHIP);
    assert_int_equal(tn_last_error()->verdict, TN_VERDICT_NONE);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(mc015_explain_a_device_that_does_not_exist),
    SPEC_BOTH(mc019_explain_tracks_nothing),
    SPEC_BOTH(mc020_explain_a_full_location),
    SPEC_BOTH(mc058_explain_exclusive_value),
    SPEC_BOTH(mc123_each_step_changes_the_next),
    SPEC_BOTH(mc124_problems_of_the_handle),
    SPEC_BOTH(mc125_protected_replicas),
    SPEC_BOTH(mc125_simulated_replicas_are_free),
    SPEC_BOTH(mc126_explain_a_replica_made_by_the_plan),
    SPEC_BOTH(mc127_explain_a_source_that_is_not_resident),
    SPEC_BOTH(mc127_other_problems),
    SPEC_BOTH(mc128_explained_no_op_move),
    SPEC_BOTH(mc133_explaining_changes_nothing),
    SPEC_BOTH(mc134_no_ops_have_a_reason),
    SPEC_BOTH(mc135_query_that_fails_protects),
    SPEC_BOTH(mc135_work_that_is_not_complete_protects),
    SPEC_BOTH(verdict_none),
};

TN_TEST_MAIN("spec.explain", tests)
