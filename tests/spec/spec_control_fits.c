/* SPDX-License-Identifier: MIT */
/*
 * Nothing to release, and which victim is the oldest (C33, C63..C67, C124..C129; cases CC1..CC19).
 * That the candidates of CC19 carry their indices: spec_control_policy.c.
 */
#include "scenario.h"

static const scenario cc001 = {
    .budgets = "P=64",
    .values = "a 64 R @H",
    .need = "a@P",
    .entry = "ensure a@P",
    .peaks = "P=64, H=64",
    .explored = 1,
};
CASE(cc001, make_one_replica)

static const scenario cc002 = {
    .budgets = "P=64",
    .values = "a 64 R @H",
    .before = "use a@P",
    .need = "a@P",
    .peaks = "P=64, H=64",
    .explored = 1,
};
CASE(cc002, hit)

/* C144. A hit that is bound to the placement has neither decision nor report (D13). */
static void use_a_hit(world *w, tn_controller *controller, bool reports) {
    tn_request *request = world_request(w, cc002.need, NULL);
    tn_use *use = world_use(w, controller, request);
    tn_plan_report_info head = TN_PLAN_REPORT_INFO_INIT;
    const tn_plan_report *report = NULL;
    tn_decision_info decided = TN_DECISION_INFO_INIT;
    const tn_decision *d = NULL;

    assert_ok(tn_use_enter(use));
    assert_ok(tn_use_report(use, &report));
    assert_null(report);
    assert_ok(tn_use_exit(use));
    assert_ok(tn_use_report(use, &report));
    assert_ok(tn_use_decision(use, &d));
    assert_int_equal(report != NULL, reports);
    assert_int_equal(d != NULL, reports);
    if (reports) {
        assert_ok(tn_plan_report_read(report, &head));
        assert_string_equal(head.plan, "request");
        assert_int_equal(head.complete, 1);
        assert_int_equal(head.transition_count, 0);
        assert_ok(tn_decision_read(d, &decided));
        assert_int_equal(decided.eviction_count, 0);
        assert_int_equal(decided.explored_states, 1);
    }
    tn_use_destroy(use);
    tn_request_destroy(request);
}

static void cc002_a_use_of_a_hit_reports_no_transitions(void **state) {
    world *w = world_begin(*state, &cc002);
    tn_controller_config config = TN_CONTROLLER_CONFIG_INIT;
    tn_controller *exact = NULL;

    use_a_hit(w, w->controller, w->f->mode == TN_MODE_SERIAL);
    config.binding = TN_BIND_VERSION;
    assert_ok(tn_controller_create(w->m, &config, &exact));
    use_a_hit(w, exact, true);
    tn_controller_destroy(exact);
    world_end(w);
}

static const scenario cc003 = {
    .budgets = "D0=3",
    .values = "a 2 R @H,D0",
    .need = "a@D0",
    .reserve = "D0:1",
    .peaks = "D0=3, H=2",
    .explored = 1,
};
CASE(cc003, hit_with_a_reservation_that_just_fits)

static const scenario cc004 = {
    .budgets = "D0=1",
    .values = "z 0 R @H; f 1 X @D0",
    .need = "z@D0",
    .reserve = "D0:0",
    .entry = "ensure z@D0",
    .peaks = "D0=1, H=0",
    .explored = 1,
};
CASE(cc004, zero_bytes_fit_at_a_full_location)

static const scenario cc005 = {
    .values = "a 5 R @H,P; b 50 R @H",
    .need = "b@P",
    .reserve = "P:1000000",
    .entry = "ensure b@P",
    .peaks = "H=55, P=1000055",
    .explored = 1,
};
CASE(cc005, no_budget_means_no_limit)

static const scenario cc006 = {
    .budgets = "P=64",
    .values = "a 64 R @H",
    .need = "a@H, a@P",
    .entry = "ensure a@P",
    .peaks = "P=64, H=64",
    .explored = 1,
};
CASE(cc006, two_endpoints_of_one_value)

static const scenario cc007 = {
    .budgets = "H=128, P=64",
    .values = "a 64 X @P; b 64 X @H",
    .need = "a@H, b@P",
    .entry = "move a P->H; move b H->P",
    .peaks = "H=128, P=64",
    .explored = 1,
};
CASE(cc007, exclusive_moves_in_an_order_that_makes_room)

static const scenario cc008 = {
    .budgets = "D0=2",
    .values = "x 1 X @D0; y 1 X @D0; q 1 X @H",
    .need = "x@H, q@D0",
    .entry = "move x D0->H; move q H->D0",
    .peaks = "D0=2, H=2",
    .explored = 1,
};
CASE(cc008, exclusive_moves_free_room_for_a_later_requirement)

static const scenario cc009 = {
    .budgets = "P=128",
    .values = "a 64 R @H; b 64 R @H; c 64 R @H",
    .before = "use a@P; use b@P",
    .need = "c@P",
    .reclaim = "drop a@P (rank 0, 64 at P, replica remains)",
    .entry = "ensure c@P",
    .peaks = "P=128, H=192",
    .explored = 2,
};
CASE(cc009, oldest_use_goes_first)

static const scenario cc010 = {
    .budgets = "P=128",
    .values = "a 64 R @H; b 64 R @H; c 64 R @H",
    .before = "meta a priority 10 key keep; meta b priority 0 key plain; use a@P; "
              "use b@P",
    .need = "c@P",
    .reclaim = "drop b@P (rank 0, 64 at P, replica remains)",
    .entry = "ensure c@P",
    .peaks = "P=128, H=192",
    .explored = 2,
};
CASE(cc010, priority_beats_age)

static const scenario cc011 = {
    .budgets = "D0=2",
    .values = "a 1 R @H,D0; b 1 R @H,D0; q 1 R @H",
    .before = "meta b priority -1",
    .need = "q@D0",
    .reclaim = "drop b@D0 (rank 0, 1 at D0, replica remains)",
    .entry = "ensure q@D0",
    .peaks = "D0=2, H=3",
    .explored = 2,
};
CASE(cc011, negative_priority_goes_first)

static const scenario cc012 = {
    .budgets = "D0=2",
    .values = "a 1 R @H,D0; b 1 R @H,D0; q 1 R @H",
    .before = "use a@D0",
    .need = "q@D0",
    .reclaim = "drop b@D0 (rank 0, 1 at D0, replica remains)",
    .entry = "ensure q@D0",
    .peaks = "D0=2, H=3",
    .explored = 2,
};
CASE(cc012, never_used_is_older_than_any_use)

static const scenario cc013 = {
    .budgets = "P=3",
    .values = "a 1 R @H; b 1 R @H; c 1 R @H; d 1 R @H",
    .before = "use a@P; use b@P; use c@P; use a@P",
    .need = "d@P",
    .reclaim = "drop b@P (rank 0, 1 at P, replica remains)",
    .entry = "ensure d@P",
    .peaks = "P=3, H=4",
    .explored = 2,
};
CASE(cc013, a_new_use_refreshes)

static const scenario cc014 = {
    .budgets = "P=2",
    .values = "a 1 R @H; b 1 R @H; c 1 R @H",
    .before = "ensure a@P; ensure b@P; use a@H",
    .need = "c@P",
    .reclaim = "drop b@P (rank 0, 1 at P, replica remains)",
    .entry = "ensure c@P",
    .peaks = "P=2, H=3",
    .explored = 2,
};
CASE(cc014, a_use_at_one_location_refreshes_the_replica_elsewhere)

static const scenario cc015 = {
    .budgets = "P=2",
    .values = "a 1 R @H; b 1 R @H; c 1 R @H",
    .before = "use a@P; scope b@P",
    .need = "c@P",
    .reclaim = "drop b@P (rank 0, 1 at P, replica remains)",
    .entry = "ensure c@P",
    .peaks = "P=2, H=3",
    .explored = 2,
};
CASE(cc015, a_scope_without_use_does_not_refresh)

static const scenario cc016 = {
    .budgets = "P=2",
    .values = "a 1 R @H; b 1 R @H; c 1 R @H",
    .before = "use b@P, a@P",
    .need = "c@P",
    .reclaim = "drop a@P (rank 0, 1 at P, replica remains)",
    .entry = "ensure c@P",
    .peaks = "P=2, H=3",
    .explored = 2,
};
CASE(cc016, equal_epochs_fall_back_to_registration_order)

static const scenario cc017 = {
    .budgets = "D0=3",
    .values = "a 1 R @H,D0; b 1 R @H,D0; c 1 R @H,D0; q 1 R @H",
    .before = "meta b key zz; meta c key aa",
    .need = "q@D0",
    .reclaim = "drop c@D0 (rank 0, 1 at D0, replica remains)",
    .entry = "ensure q@D0",
    .peaks = "D0=3, H=4",
    .explored = 2,
};
CASE(cc017, keyed_candidates_precede_unkeyed_ones_by_key_text)

static const scenario cc018 = {
    .budgets = "D0=3",
    .values = "a 1 R @H,D0; b 1 R @H,D0; c 1 R @H,D0; q 1 R @H",
    .before = "meta b key zz; meta c key aa; use c@H",
    .need = "q@D0",
    .reclaim = "drop b@D0 (rank 0, 1 at D0, replica remains)",
    .entry = "ensure q@D0",
    .peaks = "D0=3, H=4",
    .explored = 2,
};
CASE(cc018, age_beats_the_key)

static const scenario cc019 = {
    .budgets = "P=2",
    .values = "a 1 R @H; b 1 R @H; c 1 R @H; d 1 R @H",
    .before = "discard a; ensure c@P; ensure b@P",
    .need = "d@P",
    .reclaim = "drop b@P (rank 0, 1 at P, replica remains)",
    .entry = "ensure d@P",
    .peaks = "P=2, H=3",
    .explored = 2,
};
CASE(cc019, discarded_values_keep_their_place_in_the_registration_order)

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(cc001_make_one_replica),
    SPEC_BOTH(cc002_hit),
    SPEC_BOTH(cc002_a_use_of_a_hit_reports_no_transitions),
    SPEC_BOTH(cc003_hit_with_a_reservation_that_just_fits),
    SPEC_BOTH(cc004_zero_bytes_fit_at_a_full_location),
    SPEC_BOTH(cc005_no_budget_means_no_limit),
    SPEC_BOTH(cc006_two_endpoints_of_one_value),
    SPEC_BOTH(cc007_exclusive_moves_in_an_order_that_makes_room),
    SPEC_BOTH(cc008_exclusive_moves_free_room_for_a_later_requirement),
    SPEC_BOTH(cc009_oldest_use_goes_first),
    SPEC_BOTH(cc010_priority_beats_age),
    SPEC_BOTH(cc011_negative_priority_goes_first),
    SPEC_BOTH(cc012_never_used_is_older_than_any_use),
    SPEC_BOTH(cc013_a_new_use_refreshes),
    SPEC_BOTH(cc014_a_use_at_one_location_refreshes_the_replica_elsewhere),
    SPEC_BOTH(cc015_a_scope_without_use_does_not_refresh),
    SPEC_BOTH(cc016_equal_epochs_fall_back_to_registration_order),
    SPEC_BOTH(cc017_keyed_candidates_precede_unkeyed_ones_by_key_text),
    SPEC_BOTH(cc018_age_beats_the_key),
    SPEC_BOTH(cc019_discarded_values_keep_their_place_in_the_registration_order),
};

TN_TEST_MAIN("spec.control_fits", tests)
