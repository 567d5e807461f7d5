/* SPDX-License-Identifier: MIT */
/* Plans, and the peaks that they are predicted to reach: cases MC108, MC115, MC117..MC122, MC132
 * (M166..M168, M173, M174, M180..M182). The scopes of MC115 and MC132 are in spec_plan_scopes.c. */
#include "spec_plan_common.h"

/* ---- MC108: plans are copies ----------------------------------------------------------------- */

static tn_status create(const tn_plan_spec *spec) {
    tn_plan *plan = NULL;
    tn_status status = tn_plan_create(spec, &plan);

    assert_int_equal(plan != NULL, status == TN_OK);
    tn_plan_destroy(plan);
    return status;
}

static void mc108_what_makes_no_plan(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = register_src(m, spec_source(f));
    tn_action alien = ENSURE(h, P);
    tn_plan_spec blank = PLAN_SPEC(ENTER(ENSURE(h, P)));

    alien.kind = 99;
    assert_status(create(&PLAN_SPEC(RESERVE({P, UINT64_MAX, "r"}))), TN_ERR_VALUE); /* -1 */
    assert_status(create(&PLAN_SPEC(RESERVE({{17, 0}, 1, "r"}))), TN_ERR_KIND);
    assert_status(create(&PLAN_SPEC(RESERVE({P, 1, " "}))), TN_ERR_VALUE);
    assert_status(create(&PLAN_SPEC(RESERVE({P, 1, ""}))), TN_ERR_VALUE);
    assert_status(create(&PLAN_SPEC(RESERVE({P, 1, NULL}))), TN_ERR_KIND);
    blank.name = " \t\n";
    assert_status(create(&blank), TN_ERR_VALUE);
    blank.name = "";
    assert_status(create(&blank), TN_ERR_VALUE);
    assert_status(create(&PLAN_SPEC(ENTER(alien))), TN_ERR_KIND);
    assert_status(create(&PLAN_SPEC(ENTER(ENSURE(h, P)), EXIT(DROP(h, P), alien))), TN_ERR_KIND);
    assert_status(create(&PLAN_SPEC(RECLAIM(alien))), TN_ERR_KIND);
    assert_status(create(&PLAN_SPEC(RESERVE({P, 1, "r"}, {{0, 0}, 1, "alien"}))), TN_ERR_KIND);
    assert_int_equal(version(m), 2);
    assert_locations(m, P);
    assert_int_equal(reserved(m, P), 0);
}

static void mc108_a_plan_is_a_copy(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = register_src(m, spec_source(f));
    char name[] = "first name";
    char label[] = "first label";
    tn_action enter[] = {ENSURE(h, P)};
    tn_reservation_spec reservations[] = {{P, 32, label}};
    tn_plan_spec spec = TN_PLAN_SPEC_INIT;
    const tn_action *actions = NULL;
    const tn_reservation_spec *wanted = NULL;
    tn_plan *plan;
    size_t count = 77;

    spec.name = name;
    spec.enter = enter;
    spec.enter_count = 1;
    spec.reservations = reservations;
    spec.reservation_count = 1;
    plan = spec_plan(&spec);
    memset(enter, 0, sizeof(enter));
    memset(reservations, 0, sizeof(reservations));
    memset(name, 'x', sizeof(name) - 1);
    memset(label, 'x', sizeof(label) - 1);
    memset(&spec, 0, sizeof(spec));

    assert_string_equal(tn_plan_name(plan), "first name");
    assert_ok(tn_plan_actions(plan, TN_PHASE_ENTER, &actions, &count));
    assert_int_equal(count, 1);
    assert_int_equal(actions[0].kind, TN_ACTION_ENSURE);
    assert_handle(actions[0].handle, h);
    assert_at(actions[0].at, P);
    assert_ok(tn_plan_reservations(plan, &wanted, &count));
    assert_int_equal(count, 1);
    assert_at(wanted[0].at, P);
    assert_int_equal(wanted[0].bytes, 32);
    assert_string_equal(wanted[0].label, "first label");
    for (uint32_t phase = TN_PHASE_RECLAIM; phase <= TN_PHASE_EXIT; phase++) {
        if (phase == TN_PHASE_RESERVE || phase == TN_PHASE_ENTER)
            continue;
        count = 77;
        actions = enter;
        assert_ok(tn_plan_actions(plan, phase, &actions, &count));
        assert_int_equal(count, 0);
        assert_null(actions);
    }
    assert_feasible(spec_explain(m, plan));
    assert_int_equal(version(m), 2); /* declaring charges nothing (M167) */
    assert_int_equal(reserved(m, P), 0);
    tn_plan_destroy(plan);
}

/* Any number of times, for any manager: its handles are looked up where it is used (M166). */
static void mc108_a_plan_belongs_to_no_manager(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_manager *other = MANAGER(f);
    tn_handle h = register_src(m, spec_source(f));
    tn_plan *plan = PLAN(ENTER(ENSURE(h, P)));

    for (int i = 0; i < 3; i++)
        assert_feasible(spec_explain(m, plan));
    assert_problem(spec_explain(other, plan), TN_PHASE_ENTER, 0, TN_REASON_HANDLE_FOREIGN);
    discard(m, h);
    assert_problem(spec_explain(m, plan), TN_PHASE_ENTER, 0, TN_REASON_HANDLE_DISCARDED);
    tn_plan_destroy(plan);
}

/* Every list empty. */
static void mc108_an_empty_plan(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_plan_spec spec = TN_PLAN_SPEC_INIT;
    struct spec_explained e;

    spec.name = "nothing";
    e = spec_explain_spec(m, &spec);
    assert_feasible(e);
    assert_string_equal(e.plan, "nothing");
    assert_int_equal(e.action_count, 0);
    assert_int_equal(e.reservation_count, 0);
    assert_int_equal(e.peak_count, 0);
}

/* ---- MC115..MC122: predicted peaks ----------------------------------------------------------- */

static void mc115_explained(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *s = spec_source(f);
    tn_handle h = register_src(m, s);
    struct spec_explained e;

    e = EXPLAIN(m, RESERVE({P, 32, "r"}), ENTER(ENSURE(h, P)), EXIT(DROP(h, P)));
    assert_feasible(e);
    assert_int_equal(e.head.reason, TN_REASON_NONE);
    assert_string_equal(e.plan, "plan");
    assert_int_equal(e.action_count, 2);
    assert_performable(e.actions[0], TN_PHASE_ENTER, 0, TN_ACTION_ENSURE);
    assert_endpoints(e.actions[0], P, P, 32);
    assert_performable(e.actions[1], TN_PHASE_EXIT, 0, TN_ACTION_DROP);
    assert_endpoints(e.actions[1], P, NOWHERE, 32);
    assert_int_equal(e.reservation_count, 1);
    assert_string_equal(e.labels[0], "r");
    assert_predicted(e, {P, 64});
    assert_int_equal(used(m, P), 0);
    assert_int_equal(s->calls, 0);
}

static void mc117_peaks_in_the_order_met(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {C0, 100});
    tn_handle h = register_src(m, spec_source(f));
    struct spec_explained e;

    e = EXPLAIN(m, RESERVE({N, 5, "n"}, {C0, 7, "c0"}), ENTER(ENSURE(h, C1), DROP(h, N)),
                EXIT(DROP(h, C1)));
    assert_feasible(e);
    assert_predicted(e, {C0, 7}, {P, 32}, {N, 5}, {C1, 32});
    assert_int_equal(e.action_count, 3);
    assert_performable(e.actions[0], TN_PHASE_ENTER, 0, TN_ACTION_ENSURE);
    assert_endpoints(e.actions[0], P, C1, 32);
    assert_explained(e.actions[1], TN_PHASE_ENTER, 1, TN_ACTION_DROP, 1, 1,
                     TN_REASON_ALREADY_ABSENT);
    assert_endpoints(e.actions[1], N, NOWHERE, 32);
    assert_performable(e.actions[2], TN_PHASE_EXIT, 0, TN_ACTION_DROP);
    assert_locations(m, C0, P); /* explaining tracks nothing */
}

static void mc118_reclaim_comes_before_reservations(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {C0, 100});
    tn_handle h = register_src(m, spec_source(f));
    struct spec_explained e = EXPLAIN(m, RECLAIM(ENSURE(h, C1)), RESERVE({N, 5, "n"}));

    assert_feasible(e);
    assert_predicted(e, {C0, 0}, {P, 32}, {C1, 32}, {N, 5});
    assert_performable(e.actions[0], TN_PHASE_RECLAIM, 0, TN_ACTION_ENSURE);
}

static void mc119_reservation_that_does_not_fit(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {C0, 100});
    tn_handle h = register_src(m, spec_source(f));
    struct spec_explained e;

    e = EXPLAIN(m, RESERVE({C0, 60, "first"}, {C0, 60, "second"}, {N, 1, "third"}),
                ENTER(ENSURE(h, P)));
    assert_problem(e, TN_PHASE_RESERVE, 1, TN_REASON_RESERVATION_BUDGET);
    assert_predicted(e, {C0, 120}, {P, 0});
    assert_int_equal(e.action_count, 0);
    assert_int_equal(e.reservation_count, 3);
    assert_string_equal(e.labels[2], "third");
    assert_int_equal(e.problem.status, TN_ERR_BUDGET); /* as the reserve alone would say */
    assert_string_equal(e.problem.label, "second");
    assert_at(e.problem.at, C0);
    assert_int_equal(e.problem.budget_bytes, 100);
    assert_int_equal(e.problem.used_bytes, 0);
    assert_int_equal(e.problem.reserved_bytes, 60);
    assert_int_equal(e.problem.requested_bytes, 60);
    assert_int_equal(e.head.missing_bytes, 20);
}

/* If a reservation is the problem, only the reclaim actions are explained (M180). */
static void mc119_reclaim_actions_stay_explained(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {C0, 100});
    tn_handle h = register_src(m, spec_source(f));
    struct spec_explained e;

    e = EXPLAIN(m, RECLAIM(ENSURE(h, P), ENSURE(h, C0)), RESERVE({C0, 69, "r"}), ENTER(DROP(h, C0)),
                EXIT(DROP(h, P)));
    assert_problem(e, TN_PHASE_RESERVE, 0, TN_REASON_RESERVATION_BUDGET);
    assert_int_equal(e.action_count, 2);
    assert_predicted(e, {C0, 101}, {P, 32});
    assert_int_equal(e.problem.used_bytes, 32); /* in the simulated state */
    assert_int_equal(e.head.missing_bytes, 1);
}

static void mc120_action_that_does_not_fit(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {C0, 100});
    tn_handle h = register_src(m, spec_source(f));
    struct spec_explained e;

    e = EXPLAIN(m, RESERVE({C0, 90, "r"}), ENTER(ENSURE(h, P), ENSURE(h, C0), DROP(h, P)));
    assert_problem(e, TN_PHASE_ENTER, 1, TN_REASON_BUDGET);
    assert_at(e.problem.at, C0);
    assert_int_equal(e.problem.status, TN_ERR_BUDGET);
    assert_int_equal(e.problem.budget_bytes, 100);
    assert_int_equal(e.problem.reserved_bytes, 90);
    assert_int_equal(e.problem.requested_bytes, 32);
    assert_int_equal(e.action_count, 2);
    assert_explained(e.actions[1], TN_PHASE_ENTER, 1, TN_ACTION_ENSURE, 0, 0, TN_REASON_BUDGET);
    assert_endpoints(e.actions[1], P, C0, 32);
    assert_predicted(e, {C0, 122}, {P, 32});
    assert_int_equal(e.head.missing_bytes, 22);
}

static void mc121_temporary_charge_that_does_not_fit(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 31});
    tn_handle h = register_src(m, spec_source(f));
    struct spec_explained e = EXPLAIN(m, ENTER(ENSURE(h, N)));

    assert_problem(e, TN_PHASE_ENTER, 0, TN_REASON_BUDGET);
    assert_at(e.problem.at, P);
    assert_endpoints(e.actions[0], P, N, 32);
    assert_predicted(e, {P, 32}, {N, 0});
    assert_locations(m, P);
    /* In place, one charge of headroom is enough: it is compared, dropped, and charged (M76). */
    m = MANAGER(f, {P, 32});
    h = register_src(m, spec_source(f));
    e = EXPLAIN(m, ENTER(ENSURE(h, P)));
    assert_feasible(e);
    assert_predicted(e, {P, 32});
}

static void mc122_current_charges_count(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_plan_spec empty = TN_PLAN_SPEC_INIT;
    tn_reservation r;
    struct spec_explained e;

    empty.name = "nothing";
    adopt_rep(f, m, P);
    spec_adopt(m, tt_bytes(f->driver, C0, 16), C0, TN_REPLICABLE);
    r = reserve(m, C0, 16, "r");
    e = spec_explain_spec(m, &empty);
    assert_feasible(e);
    assert_predicted(e, {P, 32}, {C0, 32});
    release_reservation(&r);
    e = EXPLAIN(m, RESERVE({C0, 8, "r"}));
    assert_predicted(e, {P, 32}, {C0, 24}); /* not the historic peak */
}

static void mc132_explained(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 200}, {C0, 160}, {N, 64});
    tn_handle a = adopt_rep(f, m, P);
    tn_handle b = spec_adopt(m, tt_bytes(f->driver, P, 64), P, TN_EXCLUSIVE);
    tn_handle k = spec_register(m, spec_source(f), N, TN_REPLICABLE);
    struct spec_explained e;

    ensure(m, a, C0);
    reserve(m, C0, 16, "before");
    e = EXPLAIN(m, RECLAIM(DROP(a, C0)), RESERVE({C0, 16, "c0"}, {C1, 8, "c1"}),
                ENTER(MOVE(b, C0), ENSURE(k, C0), ENSURE(a, C0)), EXIT(MOVE(b, N), DROP(k, C0)));
    assert_feasible(e);
    assert_predicted(e, {P, 96}, {C0, 160}, {N, 64}, {C1, 8});
    assert_int_equal(e.action_count, 6);
    assert_endpoints(e.actions[1], P, C0, 64);
    assert_endpoints(e.actions[2], N, C0, 32);
    assert_endpoints(e.actions[4], C0, N, 64);
    assert_locations(m, P, C0, N);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(mc108_what_makes_no_plan),
    SPEC_BOTH(mc108_a_plan_is_a_copy),
    SPEC_BOTH(mc108_a_plan_belongs_to_no_manager),
    SPEC_BOTH(mc108_an_empty_plan),
    SPEC_BOTH(mc115_explained),
    SPEC_BOTH(mc117_peaks_in_the_order_met),
    SPEC_BOTH(mc118_reclaim_comes_before_reservations),
    SPEC_BOTH(mc119_reservation_that_does_not_fit),
    SPEC_BOTH(mc119_reclaim_actions_stay_explained),
    SPEC_BOTH(mc120_action_that_does_not_fit),
    SPEC_BOTH(mc121_temporary_charge_that_does_not_fit),
    SPEC_BOTH(mc122_current_charges_count),
    SPEC_BOTH(mc132_explained),
};

TN_TEST_MAIN("spec.plans", tests)
