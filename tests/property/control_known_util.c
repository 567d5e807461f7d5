/* SPDX-License-Identifier: MIT */
/* Scenes that once found a defect of the search. */
#include "control_property.h"

enum { H, P, D0, D1 };

#define R(charge_, source_, places)                                                                \
    { .charge = (charge_), .replicable = true, .source = (source_), .at = (places) }
#define NONE MC_NOWHERE
#define AT(l) (1u << (l))

/* Cyclic tiers. A room search that led to a cut has more to deliver once the one that it was cut
 * for has delivered and is not in progress any longer: 58 releases, not 41. */
static const scene after_a_cut = {
    .world = {.value_count = 6,
              .values = {R(1, NONE, AT(H)), R(1, H, 0), R(3, NONE, AT(H)), R(3, NONE, AT(D0)),
                         R(1, NONE, AT(P)), R(2, NONE, AT(D1))},
              .budget = {4, 5, 6, 2, MC_NO_BUDGET, MC_NO_BUDGET, MC_NO_BUDGET, MC_NO_BUDGET},
              .reserved = {0, 2, 1},
              .tiers = {{D0, P}, {D0}, {D1, H}, {P, H}},
              .tier_count = {2, 1, 2, 2},
              .requirements = {{3, P}, {4, D0}, {1, D1}, {0, H}},
              .requirement_count = 4},
    .budget_order = {D1, H, P, D0},
    .budget_count = 4,
};

/* What is stuck in a deeper state only: v0@D0 can go again once the drop of v0@H is undone. */
static const scene stuck_for_a_while = {
    .world = {.value_count = 5,
              .values = {{1, true, NONE, AT(H) | AT(D0), 0, 0, 5, NULL},
                         R(1, NONE, AT(D0)),
                         {2, true, H, AT(H), 0, 1, 0, NULL},
                         R(1, NONE, AT(D0)),
                         R(1, NONE, AT(D0))},
              .budget = {3, MC_NO_BUDGET, 7, MC_NO_BUDGET, MC_NO_BUDGET, MC_NO_BUDGET, MC_NO_BUDGET,
                         MC_NO_BUDGET},
              .requirements = {{1, H}, {4, H}},
              .requirement_count = 2,
              .reservations = {{D0, 3}, {D0, 3}},
              .reservation_count = 2},
    .budget_order = {D0, H},
    .budget_count = 2,
};

/* A walk of more than a thousand frames. */
static const scene long_walk = {
    .world = {.value_count = 6,
              .values = {R(2, NONE, AT(H)),
                         {1, true, NONE, AT(D0), 0, 0, 4, NULL},
                         R(1, NONE, AT(H) | AT(D0) | AT(D1)),
                         R(3, NONE, AT(D1)),
                         {1, true, NONE, AT(P), 0, 0, 0, "b"},
                         R(3, D0, 0)},
              .budget = {5, 5, 3, 4, MC_NO_BUDGET, MC_NO_BUDGET, MC_NO_BUDGET, MC_NO_BUDGET},
              .tiers = {{D1}, {D0}, {D1, P}, {D0, H}},
              .tier_count = {1, 1, 2, 2},
              .requirements = {{5, H}},
              .requirement_count = 1,
              .reservations = {{H, 2}, {P, 3}},
              .reservation_count = 2},
    .budget_order = {P, H, D0, D1},
    .budget_count = 4,
};

/* A required value that was dropped has to be loaded again: then another check fails first. (No
 * defect of the library: rare enough to be kept.) */
static const scene dropped_and_required = {
    .world = {.value_count = 5,
              .values = {R(3, NONE, AT(P)), R(1, NONE, AT(H)), R(1, P, AT(D1)),
                         R(3, NONE, AT(P) | AT(D1)), R(2, NONE, AT(P))},
              .budget = {MC_NO_BUDGET, 8, MC_NO_BUDGET, 7, MC_NO_BUDGET, MC_NO_BUDGET, MC_NO_BUDGET,
                         MC_NO_BUDGET},
              .reserved = {0, 0, 0, 1},
              .requirements = {{2, H}, {1, D1}, {0, D1}},
              .requirement_count = 3},
    .budget_order = {P, D1},
    .budget_count = 2,
};

const scene *const control_known[] = {&after_a_cut, &stuck_for_a_while, &long_walk,
                                      &dropped_and_required, NULL};
