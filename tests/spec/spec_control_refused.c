/* SPDX-License-Identifier: MIT */
/*
 * Infeasible, inconclusive, refused by the dry run (C55, C97..C106; cases CC66..CC81).
 */
#include "scenario.h"

/* The same world afterwards: the request that was refused is met now. */
static void retry(world *w, const scenario *of) {
    tn_decision *d;

    w->of = *of;
    d = world_decide_as_expected(w);
    world_execute(w, d);
    tn_decision_drop(d);
}

/* ---- Protection ------------------------------------------------------------------------------- */

static const scenario cc066 = {
    .budgets = "P=64",
    .values = "a 64 R @H,P; b 64 R @H",
    .before = "hold a@P",
    .need = "b@P",
    .refused = "64 at P, materialization of b; budget 64, used 64, reserved 0",
    .verdict = "blocked, 64 missing, hold of a",
};
static const scenario cc066_freed = {
    .need = "b@P",
    .reclaim = "drop a@P (rank 0, 64 at P, replica remains)",
    .entry = "ensure b@P",
    .peaks = "P=64, H=128",
    .explored = 2,
};

static void cc066_protected_by_a_hold(void **state) {
    world *w = world_begin(*state, &cc066);

    assert_null(world_decide_as_expected(w));
    release_hold(&w->holds[0]);
    retry(w, &cc066_freed);
    world_end(w);
}

static const scenario cc067 = {
    .budgets = "P=1, D0=1",
    .values = "a 1 R @H,P,D0; b 1 R @H",
    .before = "lease a@P",
    .need = "b@P",
    .refused = "1 at P, materialization of b; budget 1, used 1, reserved 0",
    .verdict = "after leases, 1 missing, lease of a",
};
CASE(cc067, protected_by_an_active_lease)

static const scenario cc068 = {
    .budgets = "D0=1",
    .values = "a 1 R @H,D0; b 1 R @H",
    .before = "pending a@D0",
    .need = "b@D0",
    .refused = "1 at D0, materialization of b; budget 1, used 1, reserved 0",
    .verdict = "after leases, 1 missing, pending of a",
};
static const scenario cc068_idle = {
    .need = "b@D0",
    .reclaim = "drop a@D0 (rank 0, 1 at D0, replica remains)",
    .entry = "ensure b@D0",
    .peaks = "D0=1, H=2",
    .explored = 2,
};

static void cc068_protected_by_pending_device_work(void **state) {
    world *w = world_begin(*state, &cc068);

    assert_null(world_decide_as_expected(w));
    spec_finish(w->f);
    retry(w, &cc068_idle);
    world_end(w);
}

/* ---- Too much --------------------------------------------------------------------------------- */

static const scenario cc069 = {
    .budgets = "D0=2",
    .values = "x 1 X @D0",
    .need = "x@D0",
    .reserve = "D0:2",
    .refused = "2 at D0, reservation 1; budget 2, used 1, reserved 0",
    .verdict = "unknown, 1 missing",
};
CASE(cc069, reservation_above_the_budget_one_candidate)

static const scenario cc070 = {
    .budgets = "D0=2",
    .values = "x 1 X @D0",
    .need = "x@D0",
    .reserve = "D0:1, D0:1",
    .refused = "1 at D0, reservation 2; budget 2, used 1, reserved 0",
    .verdict = "unknown, 1 missing",
};
CASE(cc070, the_second_reservation_fails)

static const scenario cc071 = {
    .budgets = "D0=2",
    .values = "a 1 R @H,D0; b 1 R @H,D0",
    .need = "a@D0, b@D0",
    .reserve = "D0:1",
    .refused = "1 at D0, reservation 1; budget 2, used 2, reserved 0",
    .verdict = "unknown, 1 missing",
};
CASE(cc071, working_set_plus_reservation_exceeds_the_budget)

static const scenario cc072 = {
    .budgets = "D0=0",
    .values = "a 1 R @H",
    .need = "a@D0",
    .refused = "1 at D0, materialization of a; budget 0, used 0, reserved 0",
    .verdict = "never, 1 missing",
};
CASE(cc072, budget_zero)

static const scenario cc073 = {
    .budgets = "D0=2",
    .values = "a 1 R @H",
    .before = "reserve D0:2",
    .need = "a@D0",
    .refused = "1 at D0, materialization of a; budget 2, used 0, reserved 2",
    .verdict = "blocked, 1 missing, reservation before",
};
CASE(cc073, foreign_reservation_of_all_room)

/* The reference visits all 512 subsets. */
static const scenario cc074 = {
    .budgets = "P=576",
    .values = "v0 64 R @H,P; v1 64 R @H,P; v2 64 R @H,P; v3 64 R @H,P; "
              "v4 64 R @H,P; v5 64 R @H,P; v6 64 R @H,P; v7 64 R @H,P; v8 64 R @H,P",
    .limit = 512,
    .need = "v0@H",
    .reserve = "P:640",
    .refused = "640 at P, reservation 1; budget 576, used 576, reserved 0",
    .verdict = "never, 640 missing",
};
CASE(cc074, nine_candidates_impossible_with_a_limit_of_512)

/* ---- Limits ----------------------------------------------------------------------------------- */

static const scenario cc075 = {
    .budgets = "P=576",
    .values = "v0 64 R @H,P; v1 64 R @H,P; v2 64 R @H,P; v3 64 R @H,P; "
              "v4 64 R @H,P; v5 64 R @H,P; v6 64 R @H,P; v7 64 R @H,P; v8 64 R @H,P",
    .limit = 511,
    .need = "v0@H",
    .reserve = "P:640",
};

/* The reference stops at the limit here; what is proven impossible may be refused instead (C159). */
static void cc075_the_same_with_a_limit_of_511(void **state) {
    world *w = world_begin(*state, &cc075);
    tn_decision *d = NULL;
    tn_status status = world_decide(w, &d);

    if (status == TN_ERR_PLAN)
        w->of.refused = cc074.refused;
    else
        w->of.limited = "limit 511, explored 511, walking";
    assert_null(world_decide_as_expected(w));
    world_end(w);
}

static const scenario cc076 = {
    .budgets = "P=64",
    .values = "v 64 R @H,P; q 64 X @H",
    .limit = 1,
    .need = "q@P",
    .limited = "limit 1, explored 1, walking",
};
CASE(cc076, limit_1_stops_before_the_first_release)

static const scenario cc077 = {
    .budgets = "P=64",
    .values = "v 64 R @H,P; q 64 X @H",
    .limit = 10,
    .need = "q@P",
    .reclaim = "drop v@P (rank 0, 64 at P, replica remains)",
    .entry = "move q H->P",
    .peaks = "P=64, H=128",
    .explored = 2,
};
CASE(cc077, the_same_with_a_limit_of_10)

static const scenario cc078 = {
    .budgets = "D0=1, P=1, H=3",
    .values = "x 1 X @D0; z 1 X @P; q 1 X @H",
    .tiers = "D0 to P; P to H",
    .limit = 1,
    .need = "q@D0",
    .limited = "limit 1, explored 1, room at P",
};
static const scenario cc078_more = {
    .budgets = "D0=1, P=1, H=3",
    .values = "x 1 X @D0; z 1 X @P; q 1 X @H",
    .tiers = "D0 to P; P to H",
    .limit = 3,
    .need = "q@D0",
    .reclaim = "move z P->H (rank 0, 1 at P, to tier); move x D0->P (rank 0, 1 at D0, to tier)",
    .entry = "move q H->D0",
    .peaks = "D0=1, P=1, H=2",
    .explored = 3,
};
CASE(cc078, limit_reached_while_making_room)
CASE(cc078_more, limit_of_three_is_enough)

/* ---- Refused otherwise ------------------------------------------------------------------------ */

static const scenario cc079 = {
    .values = "x 1 X @H",
    .before = "lease x@H",
    .need = "x@P",
};

static void cc079_an_exclusive_value_with_a_protected_replica_must_move(void **state) {
    world *w = world_begin(*state, &cc079);
    char *before = spec_describe(w->m, 0);
    tn_decision *d = NULL;

    assert_status(world_decide(w, &d), TN_ERR_PLAN);
    assert_int_equal(tn_last_error()->reason, TN_REASON_SOURCE_PROTECTED);
    assert_int_equal(tn_last_error()->cause_status, TN_ERR_IN_USE);
    assert_int_equal(tn_last_error()->phase, TN_PHASE_ENTER);
    assert_int_equal(tn_last_error()->use_count, 1);
    assert_handle(tn_last_error()->handle, world_handle(w, "x"));
    assert_at(tn_last_error()->action_from, world_at("H"));
    assert_unchanged(w->m, before, 0);
    world_end(w);
}

static const scenario cc080 = {
    .values = "x 1 X @H",
    .before = "lease x@H",
    .need = "x@H",
    .peaks = "H=1",
    .explored = 1,
};
CASE(cc080, the_same_value_where_it_is)

static const scenario cc081 = {
    .values = "a 1 X @H",
    .need = "a@H, a@P",
};

static void cc081_exclusive_value_at_two_locations(void **state) {
    world *w = world_begin(*state, &cc081);
    char *before = spec_describe(w->m, 0);
    tn_decision *d = NULL;

    assert_status(world_decide(w, &d), TN_ERR_OWNERSHIP);
    assert_handle(tn_last_error()->handle, world_handle(w, "a"));
    /* before any capacity question: room for it is nowhere asked for */
    assert_status(world_decide_for(w, w->controller, w->of.need, "P:9223372036854775807", &d),
                  TN_ERR_OWNERSHIP);
    assert_unchanged(w->m, before, 0);
    world_end(w);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(cc066_protected_by_a_hold),
    SPEC_BOTH(cc067_protected_by_an_active_lease),
    SPEC_BOTH(cc068_protected_by_pending_device_work),
    SPEC_BOTH(cc069_reservation_above_the_budget_one_candidate),
    SPEC_BOTH(cc070_the_second_reservation_fails),
    SPEC_BOTH(cc071_working_set_plus_reservation_exceeds_the_budget),
    SPEC_BOTH(cc072_budget_zero),
    SPEC_BOTH(cc073_foreign_reservation_of_all_room),
    SPEC_BOTH(cc074_nine_candidates_impossible_with_a_limit_of_512),
    SPEC_BOTH(cc075_the_same_with_a_limit_of_511),
    SPEC_BOTH(cc076_limit_1_stops_before_the_first_release),
    SPEC_BOTH(cc077_the_same_with_a_limit_of_10),
    SPEC_BOTH(cc078_limit_reached_while_making_room),
    SPEC_BOTH(cc078_more_limit_of_three_is_enough),
    SPEC_BOTH(cc079_an_exclusive_value_with_a_protected_replica_must_move),
    SPEC_BOTH(cc080_the_same_value_where_it_is),
    SPEC_BOTH(cc081_exclusive_value_at_two_locations),
};

TN_TEST_MAIN("spec.control_refused", tests)
