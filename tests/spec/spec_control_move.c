/* SPDX-License-Identifier: MIT */
/*
 * Victims that are moved, nested releases, and the walk back (C76..C100; cases CC45..CC65, CC59 in
 * spec_control_policy.c).
 */
#include "scenario.h"

static const scenario cc045 = {
    .budgets = "H=128, P=64",
    .values = "a 64 X @P; b 64 X @H",
    .tiers = "P to H",
    .need = "b@P",
    .reclaim = "move a P->H (rank 0, 64 at P, to tier)",
    .entry = "move b H->P",
    .peaks = "H=128, P=64",
    .explored = 2,
    .after = "a@H; b@P",
};
CASE(cc045, sole_adopted_value_moves_to_its_tier)

static const scenario cc046 = {
    .budgets = "P=64",
    .values = "a 64 X @P; b 64 X @H",
    .need = "b@P",
    .refused = "64 at P, materialization of b; budget 64, used 64, reserved 0",
};
CASE(cc046, without_a_tier_nothing_is_legal)

/* A tier is configured, but a cannot be at both places at once. */
static const scenario cc047 = {
    .budgets = "H=64, P=64",
    .values = "a 64 X @P; b 64 X @H",
    .tiers = "P to H",
    .need = "b@P",
    .refused = "64 at P, materialization of b; budget 64, used 64, reserved 0",
};
CASE(cc047, tier_needs_room_for_the_transfer_itself)

static const scenario cc048 = {
    .budgets = "H=128, P=64",
    .values = "a 64 X @P; b 64 X @H",
    .need = "b@P, a@H",
    .reclaim = "move a P->H (rank 0, 64 at P, to required)",
    .entry = "move b H->P",
    .peaks = "H=128, P=64",
    .explored = 2,
};
CASE(cc048, a_required_endpoint_serves_as_destination_without_any_tier)

static const scenario cc049 = {
    .budgets = "D0=1",
    .values = "x 1 X @D0; q 1 R @H",
    .tiers = "D0 to P, H",
    .need = "q@D0, x@H",
    .reclaim = "move x D0->H (rank 0, 1 at D0, to required)",
    .entry = "ensure q@D0",
    .peaks = "D0=1, H=2",
    .explored = 2,
};
CASE(cc049, required_endpoints_come_before_tiers)

static const scenario cc050 = {
    .budgets = "D0=1",
    .values = "x 1 R @D0; q 1 R @H",
    .need = "q@D0, x@D1, x@H",
    .reclaim = "move x D0->H (rank 0, 1 at D0, to required)",
    .entry = "ensure q@D0; ensure x@D1",
    .peaks = "D0=1, H=2, D1=1",
    .explored = 2,
};
CASE(cc050, several_required_endpoints_host_first)

static const scenario cc051 = {
    .budgets = "D0=1, P=1, H=10",
    .values = "x 1 X @D0; z 1 X @P; q 1 X @H",
    .tiers = "D0 to P; P to H",
    .need = "q@D0",
    .reclaim = "move z P->H (rank 0, 1 at P, to tier); "
               "move x D0->P (rank 0, 1 at D0, to tier)",
    .entry = "move q H->D0",
    .peaks = "D0=1, P=1, H=2",
    .explored = 3,
    .after = "z@H; x@P; q@D0",
};
CASE(cc051, nested_the_tier_is_full_and_spills_to_the_next_tier)

static const scenario cc052 = {
    .budgets = "D0=1, P=1, H=10",
    .values = "x 1 X @D0; z 1 R @H,P; q 1 X @H",
    .tiers = "D0 to P",
    .need = "q@D0",
    .reclaim = "drop z@P (rank 0, 1 at P, replica remains); "
               "move x D0->P (rank 0, 1 at D0, to tier)",
    .entry = "move q H->D0",
    .peaks = "D0=1, P=1, H=2",
    .explored = 3,
};
CASE(cc052, nested_the_tier_drops_a_spare_replica)

static const scenario cc053 = {
    .budgets = "D0=1, P=1, H=5",
    .values = "x 1 X @D0; z 1 R @H,P; q 1 X @H",
    .tiers = "D0 to P, H",
    .need = "q@D0",
    .reclaim = "drop z@P (rank 0, 1 at P, replica remains); "
               "move x D0->P (rank 0, 1 at D0, to tier)",
    .entry = "move q H->D0",
    .peaks = "D0=1, P=1, H=2",
    .explored = 3,
};
CASE(cc053, first_tier_wins_even_if_it_needs_nested_releases)

/* The failed room search at P counts. */
static const scenario cc054 = {
    .budgets = "D0=1, P=1, H=10",
    .values = "x 1 X @D0; z 1 X @P; q 1 X @H",
    .tiers = "D0 to P, H",
    .need = "q@D0",
    .reclaim = "move x D0->H (rank 0, 1 at D0, to tier)",
    .entry = "move q H->D0",
    .peaks = "D0=1, P=1, H=2",
    .explored = 3,
    .dead_ends = true,
};
CASE(cc054, second_tier_after_the_first_cannot_make_room)

static const scenario cc055 = {
    .budgets = "D0=1, P=2",
    .values = "x 1 X @D0; u 1 R @H,P; v 1 R @H,P; q 1 X @H",
    .tiers = "D0 to P",
    .before = "use u@P",
    .need = "q@D0",
    .reclaim = "drop v@P (rank 0, 1 at P, replica remains); "
               "move x D0->P (rank 0, 1 at D0, to tier)",
    .entry = "move q H->D0",
    .peaks = "D0=1, P=2, H=3",
    .explored = 3,
};
CASE(cc055, nested_victims_follow_the_policy_of_their_own_location)

static const scenario cc056 = {
    .budgets = "D0=1, P=2, H=9",
    .values = "m 1 X @P; n 1 R @H,P; x 1 X @D0; q 1 X @H",
    .tiers = "D0 to P",
    .need = "q@D0",
    .reclaim = "drop n@P (rank 1, 1 at P, replica remains); "
               "move x D0->P (rank 0, 1 at D0, to tier)",
    .entry = "move q H->D0",
    .peaks = "D0=1, P=2, H=2",
    .explored = 3,
};
CASE(cc056, nested_rank_skips_the_value_that_cannot_leave)

static const scenario cc057 = {
    .budgets = "D0=2, P=2, H=10",
    .values = "x 2 X @D0; y 1 X @P; z 1 R @H,P; q 2 R @H",
    .tiers = "D0 to P; P to H",
    .need = "q@D0",
    .reclaim = "move y P->H (rank 0, 1 at P, to tier); "
               "drop z@P (rank 0, 1 at P, replica remains); "
               "move x D0->P (rank 0, 2 at D0, to tier)",
    .entry = "ensure q@D0",
    .peaks = "D0=2, P=2, H=4",
    .explored = 4,
};
CASE(cc057, two_nested_releases_for_one_large_victim)

/* To let x in, P would have to send z to D0, where only x could leave. */
static const scenario cc058 = {
    .budgets = "D0=1, P=1",
    .values = "x 1 X @D0; z 1 X @P; q 1 R @H",
    .tiers = "D0 to P; P to D0",
    .need = "q@D0",
    .refused = "1 at D0, materialization of q; budget 1, used 1, reserved 0",
};
CASE(cc058, a_victim_in_transit_cannot_be_pushed_on)

/* f has rank 0 and is tried first: moving it fills H, which the load of q needs. */
static const scenario cc060 = {
    .budgets = "P=128, H=128",
    .values = "f 64 X @P; d 64 R @P src=P; p 64 X @H; q 64 R src=H",
    .tiers = "P to H",
    .need = "p@H, q@P",
    .reclaim = "drop d@P (rank 1, 64 at P, source rebuilds)",
    .entry = "ensure q@P",
    .peaks = "P=128, H=128",
    .explored = 3,
    .dead_ends = true,
    .after = "d@-; f@P",
};
CASE(cc060, a_locally_possible_victim_that_spoils_a_later_step_is_undone)

static const scenario cc061 = {
    .budgets = "P=128, H=64",
    .values = "a 64 R @P src=P; b 64 X @P; c 64 X @H",
    .need = "c@P, b@H, a@P",
    .reclaim = "drop a@P (rank 0, 64 at P, source rebuilds); "
               "move c H->P (rank 0, 64 at H, to required); "
               "move b P->H (rank 0, 64 at P, to required)",
    .entry = "ensure a@P",
    .peaks = "P=128, H=64",
    .explored = 4,
    .after = "a@P; b@H; c@P; a loads 2",
};
CASE(cc061, a_required_endpoint_is_used_as_scratch_space_and_restored)

/* z to H is tried first and spoils the reservation at H. */
static const scenario cc062 = {
    .budgets = "D0=1, P=1, H=3, D1=1",
    .values = "x 1 X @D0; z 1 X @P; b 2 X @H; q 1 R src=D2",
    .tiers = "D0 to P; P to H, D1",
    .need = "q@D0",
    .reserve = "H:1",
    .reclaim = "move z P->D1 (rank 0, 1 at P, to tier); "
               "move x D0->P (rank 0, 1 at D0, to tier)",
    .entry = "ensure q@D0",
    .peaks = "D0=1, P=1, H=3, D1=1, D2=1",
    .explored = 4,
    .dead_ends = true,
    .after = "x@P; z@D1; b@H",
};
CASE(cc062, a_spill_is_redone_with_another_tier)

static const scenario cc063 = {
    .budgets = "H=2, D0=1",
    .values = "y 1 X @H; x 1 X @D0",
    .tiers = "D0 to H; H to D0",
    .need = "y@D0",
    .reserve = "H:1",
    .reclaim = "move x D0->H (rank 0, 1 at D0, to tier); "
               "move y H->D0 (rank 0, 1 at H, to required)",
    .peaks = "H=2, D0=1",
    .explored = 3,
    .after = "x@H; y@D0",
};
CASE(cc063, cyclic_tiers_registration_order_y_then_x)

/* x at rank 0 moves back to D0, which is the initial state again: cut (C100). */
static const scenario cc064 = {
    .budgets = "H=2, D0=1",
    .values = "x 1 X @D0; y 1 X @H",
    .tiers = "D0 to H; H to D0",
    .need = "y@D0",
    .reserve = "H:1",
    .reclaim = "move x D0->H (rank 0, 1 at D0, to tier); "
               "move y H->D0 (rank 1, 1 at H, to required)",
    .peaks = "H=2, D0=1",
    .explored = 3,
    .after = "x@H; y@D0",
};
CASE(cc064, cyclic_tiers_registration_order_x_then_y)

/* Without remembering empty room searches the count would be 10. */
static const scenario cc065 = {
    .budgets = "H=1, P=2, D0=3",
    .values = "v0 1 X @P; v1 2 X @D0; v2 1 R @D0,P",
    .tiers = "D0 to P, H",
    .need = "v2@P, v0@D0",
    .reclaim = "drop v2@D0 (rank 1, 1 at D0, replica remains)",
    .entry = "move v0 P->D0",
    .peaks = "H=0, P=2, D0=3",
    .explored = 9,
    .dead_ends = true,
};
CASE(cc065, an_empty_room_search_is_remembered)

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(cc045_sole_adopted_value_moves_to_its_tier),
    SPEC_BOTH(cc046_without_a_tier_nothing_is_legal),
    SPEC_BOTH(cc047_tier_needs_room_for_the_transfer_itself),
    SPEC_BOTH(cc048_a_required_endpoint_serves_as_destination_without_any_tier),
    SPEC_BOTH(cc049_required_endpoints_come_before_tiers),
    SPEC_BOTH(cc050_several_required_endpoints_host_first),
    SPEC_BOTH(cc051_nested_the_tier_is_full_and_spills_to_the_next_tier),
    SPEC_BOTH(cc052_nested_the_tier_drops_a_spare_replica),
    SPEC_BOTH(cc053_first_tier_wins_even_if_it_needs_nested_releases),
    SPEC_BOTH(cc054_second_tier_after_the_first_cannot_make_room),
    SPEC_BOTH(cc055_nested_victims_follow_the_policy_of_their_own_location),
    SPEC_BOTH(cc056_nested_rank_skips_the_value_that_cannot_leave),
    SPEC_BOTH(cc057_two_nested_releases_for_one_large_victim),
    SPEC_BOTH(cc058_a_victim_in_transit_cannot_be_pushed_on),
    SPEC_BOTH(cc060_a_locally_possible_victim_that_spoils_a_later_step_is_undone),
    SPEC_BOTH(cc061_a_required_endpoint_is_used_as_scratch_space_and_restored),
    SPEC_BOTH(cc062_a_spill_is_redone_with_another_tier),
    SPEC_BOTH(cc063_cyclic_tiers_registration_order_y_then_x),
    SPEC_BOTH(cc064_cyclic_tiers_registration_order_x_then_y),
    SPEC_BOTH(cc065_an_empty_room_search_is_remembered),
};

TN_TEST_MAIN("spec.control_move", tests)
