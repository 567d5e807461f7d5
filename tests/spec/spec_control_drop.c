/* SPDX-License-Identifier: MIT */
/*
 * Victims that are dropped, and loads from sources (C60..C92; cases CC20..CC44, CC25 in
 * spec_control_policy.c).
 */
#include "scenario.h"

static const scenario cc020 = {
    .budgets = "P=128",
    .values = "a 64 R @H,P; b 64 R @H",
    .need = "b@P",
    .reserve = "P:64",
    .reclaim = "drop a@P (rank 0, 64 at P, replica remains)",
    .entry = "ensure b@P",
    .peaks = "P=128, H=128",
    .explored = 2,
    .inside = "P=64+64",
};
CASE(cc020, reservation_headroom_is_reclaimed)

static const scenario cc021 = {
    .budgets = "P=64",
    .values = "a 64 R @H,P; b 64 R @H",
    .need = "a@H, b@P",
    .reclaim = "drop a@P (rank 0, 64 at P, replica remains)",
    .entry = "ensure b@P",
    .peaks = "P=64, H=128",
    .explored = 2,
};
CASE(cc021, spare_replica_of_a_required_value)

static const scenario cc022 = {
    .budgets = "D0=3",
    .values = "a 1 R @H,D0; b 1 R @H,D0; c 1 R @H,D0; q 1 R @H",
    .need = "a@D0, q@D0",
    .reclaim = "drop b@D0 (rank 0, 1 at D0, replica remains)",
    .entry = "ensure q@D0",
    .peaks = "D0=3, H=4",
    .explored = 2,
};
CASE(cc022, required_endpoints_are_spared_while_others_exist)

static const scenario cc023 = {
    .budgets = "P=64",
    .values = "a 64 R @P src=P; b 64 R @H",
    .need = "b@P",
    .reclaim = "drop a@P (rank 0, 64 at P, source rebuilds)",
    .entry = "ensure b@P",
    .peaks = "P=64, H=64",
    .explored = 2,
    .after = "a@-",
};
CASE(cc023, last_replica_of_a_source_backed_value_is_dropped)

static const scenario cc024 = {
    .budgets = "D0=10",
    .values = "a 2 R @H,D0; b 8 R @H,D0; q 8 R @H",
    .need = "q@D0",
    .reclaim = "drop a@D0 (rank 0, 2 at D0, replica remains); "
               "drop b@D0 (rank 0, 8 at D0, replica remains)",
    .entry = "ensure q@D0",
    .peaks = "D0=10, H=18",
    .explored = 3,
};
CASE(cc024, not_minimal_a_small_early_victim_is_wasted)

static const scenario cc026 = {
    .budgets = "D0=1",
    .values = "z 0 R @H,D0; f 1 R @H,D0; q 1 R @H",
    .need = "q@D0",
    .reclaim = "drop z@D0 (rank 0, 0 at D0, replica remains); "
               "drop f@D0 (rank 0, 1 at D0, replica remains)",
    .entry = "ensure q@D0",
    .peaks = "D0=1, H=2",
    .explored = 3,
};
CASE(cc026, zero_byte_victim)

static const scenario cc027 = {
    .budgets = "D0=3",
    .values = "a 1 X @D0; b 1 R @H,D0; c 1 R @H,D0; q 2 R @H",
    .need = "q@D0",
    .reclaim = "drop b@D0 (rank 1, 1 at D0, replica remains); "
               "drop c@D0 (rank 1, 1 at D0, replica remains)",
    .entry = "ensure q@D0",
    .peaks = "D0=3, H=4",
    .explored = 3,
};
CASE(cc027, a_victim_that_cannot_be_released_keeps_its_rank)

static const scenario cc028 = {
    .budgets = "P=1",
    .values = "a 1 R @H,P; b 1 R @H",
    .before = "hold a@H",
    .need = "b@P",
    .reclaim = "drop a@P (rank 0, 1 at P, replica remains)",
    .entry = "ensure b@P",
    .peaks = "P=1, H=2",
    .explored = 2,
};
CASE(cc028, protected_sibling_makes_a_drop_legal)

static const scenario cc029 = {
    .budgets = "P=1, D0=1",
    .values = "a 1 R @H,P,D0; b 1 R @H",
    .before = "lease a@P",
    .need = "b@D0",
    .reclaim = "drop a@D0 (rank 0, 1 at D0, replica remains)",
    .entry = "ensure b@D0",
    .peaks = "P=1, D0=1, H=2",
    .explored = 2,
};
CASE(cc029, only_the_protected_replica_is_spared)

static const scenario cc030 = {
    .budgets = "D0=3",
    .values = "x 1 R @H,D0; q 1 R @H",
    .before = "reserve D0:1",
    .need = "q@D0",
    .reserve = "D0:1",
    .reclaim = "drop x@D0 (rank 0, 1 at D0, replica remains)",
    .entry = "ensure q@D0",
    .peaks = "D0=3, H=2",
    .explored = 2,
};
CASE(cc030, manager_reservations_count)

static const scenario cc031 = {
    .budgets = "P=10, D0=70",
    .values = "cold 25 R @H,D0; weight 10 R @H; key 20 R @H; in 10 X @P",
    .tiers = "D0 to P, H",
    .need = "in@D0, key@D0, weight@D0",
    .reserve = "D0:30",
    .reclaim = "drop cold@D0 (rank 0, 25 at D0, replica remains)",
    .entry = "move in P->D0; ensure key@D0; ensure weight@D0",
    .peaks = "P=10, D0=70, H=55",
    .explored = 2,
    .after = "cold@H; in@D0; key@H,D0; weight@H,D0; D0=40+0; D0^70",
};
CASE(cc031, working_set_with_a_cold_cache_three_requirements)

static const scenario cc032 = {
    .budgets = "D0=1, P=1",
    .values = "x 1 X @D0; z 1 R @H,P; q 1 R @H",
    .need = "q@D0",
    .refused = "1 at D0, materialization of q; budget 1, used 1, reserved 0",
};
CASE(cc032, values_at_other_locations_are_no_victims)

/* In the failed trial x had already left D0; in the planning state it is still there, and first. */
static const scenario cc033 = {
    .budgets = "D0=2",
    .values = "x 1 X @D0; y 1 R @H,D0; q 2 R @H",
    .need = "x@H, q@D0",
    .reclaim = "move x D0->H (rank 0, 1 at D0, to required); "
               "drop y@D0 (rank 0, 1 at D0, replica remains)",
    .entry = "ensure q@D0",
    .peaks = "D0=2, H=4",
    .explored = 3,
};
CASE(cc033, the_candidate_list_comes_from_the_planning_state_not_from_the_failed_trial)

static const scenario cc034 = {
    .budgets = "P=2",
    .values = "a 1 R @H; b 1 R @H; c 1 R @H; d 1 R @H",
    .before = "use a@P; drop a@P; ensure b@P; ensure a@P",
    .need = "d@P",
    .reclaim = "drop b@P (rank 0, 1 at P, replica remains)",
    .entry = "ensure d@P",
    .peaks = "P=2, H=4",
    .explored = 2,
};
CASE(cc034, the_epoch_survives_eviction)

static const scenario cc035 = {
    .budgets = "H=64, P=128",
    .values = "v 64 R @H,P; s 64 R src=H",
    .need = "s@P",
    .reclaim = "drop v@H (rank 0, 64 at H, replica remains)",
    .entry = "ensure s@P",
    .peaks = "H=64, P=128",
    .explored = 2,
    .inside = "s loads 1",
    .after = "v@P; s@P",
};
CASE(cc035, loading_charges_the_source_location_for_a_moment)

static const scenario cc036 = {
    .budgets = "H=64",
    .values = "s 64 R src=H",
    .need = "s@H",
    .entry = "ensure s@H",
    .peaks = "H=64",
    .explored = 1,
    .inside = "H=64+0",
};
CASE(cc036, source_at_the_destination_needs_one_charge)

static const scenario cc037 = {
    .budgets = "H=1, D0=1",
    .values = "s 1 X src=H",
    .need = "s@D0",
    .entry = "move s *->D0",
    .peaks = "H=1, D0=1",
    .explored = 1,
    .after = "s@D0",
};
CASE(cc037, source_only_exclusive_value)

static const scenario cc038 = {
    .budgets = "H=2",
    .values = "s 1 R src=H",
    .need = "s@D0, s@P, s@H",
    .entry = "ensure s@D0; ensure s@P; ensure s@H",
    .peaks = "H=1, D0=1, P=1",
    .explored = 1,
    .after = "s loads 1",
};
CASE(cc038, loaded_once_for_three_endpoints)

/* Dropping is tried first and fails: the load would need the room at H. */
static const scenario cc039 = {
    .budgets = "H=64, P=64",
    .values = "s 64 R @H src=H",
    .need = "s@P",
    .reserve = "H:64",
    .reclaim = "move s H->P (rank 0, 64 at H, to required)",
    .peaks = "H=64, P=64",
    .explored = 3,
    .dead_ends = true,
    .after = "s@P; s loads 1",
};
CASE(cc039, move_is_found_when_the_drop_would_need_the_source_room)

static const scenario cc040 = {
    .budgets = "D0=1, P=5",
    .values = "x 1 R @D0 src=H; q 1 R @H",
    .tiers = "D0 to P",
    .need = "q@D0",
    .reclaim = "drop x@D0 (rank 0, 1 at D0, source rebuilds)",
    .entry = "ensure q@D0",
    .peaks = "D0=1, P=0, H=1",
    .explored = 2,
    .after = "x@-; x loads 1",
};
CASE(cc040, drop_is_preferred_to_a_tier_even_if_loading_is_needed_later)

static const scenario cc041 = {
    .budgets = "D0=1",
    .values = "x 1 R @D0 src=H; q 1 R @H",
    .need = "q@D0, x@P",
    .reclaim = "drop x@D0 (rank 0, 1 at D0, source rebuilds)",
    .entry = "ensure q@D0; ensure x@P",
    .peaks = "D0=1, H=2, P=1",
    .explored = 2,
    .after = "x@P; x loads 2",
};
CASE(cc041, drop_and_reload_instead_of_a_move_to_a_required_endpoint)

static const scenario cc042 = {
    .budgets = "H=1",
    .values = "v 1 X @H; s 1 R src=H",
    .need = "s@D0",
    .refused = "1 at H, source of s; budget 1, used 1, reserved 0",
};
CASE(cc042, temporary_charge_is_not_available_at_the_source_location)

static const scenario cc043 = {
    .budgets = "H=1, D0=1",
    .values = "s 1 R src=H; t 1 R src=H",
    .need = "s@D0, t@H",
    .entry = "ensure s@D0; ensure t@H",
    .peaks = "H=1, D0=1",
    .explored = 1,
    .after = "s@D0; t@H",
};
CASE(cc043, order_of_requirements_decides_feasible_order)

/* The numbers are those of the initial state, in which nothing is resident yet. */
static const scenario cc044 = {
    .budgets = "H=1, D0=1",
    .values = "s 1 R src=H; t 1 R src=H",
    .need = "t@H, s@D0",
    .refused = "1 at H, source of s; budget 1, used 0, reserved 0",
};
CASE(cc044, order_of_requirements_decides_infeasible_order)

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(cc020_reservation_headroom_is_reclaimed),
    SPEC_BOTH(cc021_spare_replica_of_a_required_value),
    SPEC_BOTH(cc022_required_endpoints_are_spared_while_others_exist),
    SPEC_BOTH(cc023_last_replica_of_a_source_backed_value_is_dropped),
    SPEC_BOTH(cc024_not_minimal_a_small_early_victim_is_wasted),
    SPEC_BOTH(cc026_zero_byte_victim),
    SPEC_BOTH(cc027_a_victim_that_cannot_be_released_keeps_its_rank),
    SPEC_BOTH(cc028_protected_sibling_makes_a_drop_legal),
    SPEC_BOTH(cc029_only_the_protected_replica_is_spared),
    SPEC_BOTH(cc030_manager_reservations_count),
    SPEC_BOTH(cc031_working_set_with_a_cold_cache_three_requirements),
    SPEC_BOTH(cc032_values_at_other_locations_are_no_victims),
    SPEC_BOTH(cc033_the_candidate_list_comes_from_the_planning_state_not_from_the_failed_trial),
    SPEC_BOTH(cc034_the_epoch_survives_eviction),
    SPEC_BOTH(cc035_loading_charges_the_source_location_for_a_moment),
    SPEC_BOTH(cc036_source_at_the_destination_needs_one_charge),
    SPEC_BOTH(cc037_source_only_exclusive_value),
    SPEC_BOTH(cc038_loaded_once_for_three_endpoints),
    SPEC_BOTH(cc039_move_is_found_when_the_drop_would_need_the_source_room),
    SPEC_BOTH(cc040_drop_is_preferred_to_a_tier_even_if_loading_is_needed_later),
    SPEC_BOTH(cc041_drop_and_reload_instead_of_a_move_to_a_required_endpoint),
    SPEC_BOTH(cc042_temporary_charge_is_not_available_at_the_source_location),
    SPEC_BOTH(cc043_order_of_requirements_decides_feasible_order),
    SPEC_BOTH(cc044_order_of_requirements_decides_infeasible_order),
};

TN_TEST_MAIN("spec.control_drop", tests)
