/* SPDX-License-Identifier: MIT */
/*
 * Walks that the numbered cases do not take: what is shared by the states of a path, cut cycles,
 * and long paths (C88..C101, C158).
 */
#include "scenario.h"

#include <stdio.h>

/* v can be dropped at D0 only while it is at P too. It is met first in a state in which it is not;
 * that is a dead end, and the way back undoes it. */
static const scenario c158 = {
    .budgets = "D0=3, P=2",
    .values = "c1 1 R @H,D0; c2 1 R @H,D0; v 1 R @P,D0; w 1 R @H,P; "
              "q1 1 R @H; q2 1 R @H; q3 2 R @H",
    .need = "q1@D0, q2@P, q3@D0",
    .reclaim = "drop c1@D0 (rank 0, 1 at D0, replica remains); "
               "drop w@P (rank 1, 1 at P, replica remains); "
               "drop c2@D0 (rank 0, 1 at D0, replica remains); "
               "drop v@D0 (rank 0, 1 at D0, replica remains)",
    .entry = "ensure q1@D0; ensure q2@P; ensure q3@D0",
    .peaks = "D0=3, P=2, H=7",
    .explored = 7,
    .dead_ends = true,
};
CASE(c158, what_is_stuck_in_one_state_may_leave_in_another)

/* Cyclic tiers. A search that delivered a result is not used up when what came of the result was
 * cut off: the same search finds more when something else is in progress. */
static const scenario c100 = {
    .budgets = "H=6, D1=3, P=6",
    .values = "v0 1 R @D1,P src=P; v1 2 R @D1; v2 2 R @P,H; v3 1 R @H; v4 1 X src=D1; "
              "v5 3 X @P; v6 2 X @H",
    .tiers = "H to D1, P; P to D1, H",
    .before = "meta v0 priority 0 key k40; use v3@H; hold v0@D1",
    .need = "v1@P, v1@H, v0@P",
    .reserve = "D1:1",
    .reclaim = "drop v2@H (rank 0, 2 at H, replica remains); "
               "move v1 D1->H (rank 0, 2 at D1, to required); "
               "drop v0@P (rank 0, 1 at P, replica remains); "
               "move v3 H->P (rank 0, 1 at H, to tier); "
               "move v1 H->D1 (rank 0, 2 at H, to tier); "
               "move v5 P->H (rank 0, 3 at P, to tier); "
               "move v6 H->P (rank 0, 2 at H, to tier); "
               "move v2 P->H (rank 0, 2 at P, to tier); "
               "move v2 H->P (rank 0, 2 at H, to tier); "
               "move v1 D1->H (rank 0, 2 at D1, to required); "
               "move v3 P->H (rank 0, 1 at P, to tier); "
               "move v1 H->P (rank 0, 2 at H, to required); "
               "move v6 P->H (rank 0, 2 at P, to tier); "
               "move v6 H->P (rank 0, 2 at H, to tier); "
               "move v1 P->H (rank 0, 2 at P, to required); "
               "move v3 H->P (rank 0, 1 at H, to tier); "
               "move v1 H->D1 (rank 0, 2 at H, to tier); "
               "move v6 P->H (rank 0, 2 at P, to tier); "
               "move v5 H->P (rank 0, 3 at H, to tier); "
               "move v2 P->H (rank 0, 2 at P, to tier); "
               "move v1 D1->H (rank 0, 2 at D1, to required); "
               "move v2 H->P (rank 0, 2 at H, to tier); "
               "move v2 P->H (rank 0, 2 at P, to tier); "
               "move v6 H->P (rank 0, 2 at H, to tier); "
               "move v3 P->H (rank 1, 1 at P, to tier); "
               "move v1 H->D1 (rank 1, 2 at H, to tier); "
               "move v6 P->H (rank 0, 2 at P, to tier); "
               "move v2 H->P (rank 0, 2 at H, to tier); "
               "move v5 P->H (rank 0, 3 at P, to tier); "
               "move v5 H->P (rank 0, 3 at H, to tier); "
               "move v1 D1->H (rank 0, 2 at D1, to required); "
               "move v1 H->D1 (rank 1, 2 at H, to tier); "
               "move v5 P->H (rank 0, 3 at P, to tier); "
               "move v6 H->P (rank 0, 2 at H, to tier); "
               "move v2 P->H (rank 0, 2 at P, to tier); "
               "move v2 H->P (rank 0, 2 at H, to tier); "
               "move v1 D1->H (rank 0, 2 at D1, to required); "
               "move v3 H->P (rank 0, 1 at H, to tier); "
               "move v3 P->H (rank 0, 1 at P, to tier); "
               "move v1 H->P (rank 0, 2 at H, to required); "
               "move v6 P->H (rank 0, 2 at P, to tier); "
               "move v1 P->D1 (rank 0, 2 at P, to tier); "
               "move v5 H->P (rank 0, 3 at H, to tier); "
               "move v2 P->H (rank 0, 2 at P, to tier); "
               "move v6 H->P (rank 1, 2 at H, to tier); "
               "move v1 D1->H (rank 0, 2 at D1, to required); "
               "move v3 H->P (rank 0, 1 at H, to tier); "
               "move v6 P->H (rank 0, 2 at P, to tier); "
               "move v2 H->P (rank 0, 2 at H, to tier); "
               "move v2 P->H (rank 0, 2 at P, to tier); "
               "move v6 H->P (rank 0, 2 at H, to tier); "
               "move v6 P->H (rank 0, 2 at P, to tier); "
               "move v1 H->P (rank 1, 2 at H, to required); "
               "move v1 P->D1 (rank 1, 2 at P, to tier); "
               "move v2 H->P (rank 0, 2 at H, to tier); "
               "move v5 P->H (rank 0, 3 at P, to tier); "
               "move v5 H->P (rank 0, 3 at H, to tier); "
               "move v1 D1->H (rank 0, 2 at D1, to required); "
               "move v3 P->D1 (rank 2, 1 at P, to tier); "
               "move v2 P->H (rank 0, 2 at P, to tier)",
    .entry = "ensure v1@P; ensure v0@P",
    .peaks = "H=6, D1=3, P=6",
    .explored = 1164,
    .dead_ends = true,

};
CASE(c100, a_cut_result_may_be_found_again)

/* What is protected in a tier is in the way too: nobody may be told that waiting is in vain. */
static const scenario c102 = {
    .budgets = "D0=1, P=1",
    .values = "x 1 X @D0; z 1 R @H,P; q 1 R @H",
    .tiers = "D0 to P",
    .before = "hold z@P",
    .need = "q@D0",
    .refused = "1 at D0, materialization of q; budget 1, used 1, reserved 0",
    .verdict = "unknown, 1 missing",
};

static void c102_a_refusal_that_time_may_cure(void **state) {
    world *w = world_begin(*state, &c102);
    tn_decision *d = NULL;

    assert_null(world_decide_as_expected(w));
    release_hold(&w->holds[0]);
    assert_ok(world_decide(w, &d));
    tn_decision_drop(d);
    world_end(w);
}

/* ---- A long path (C101) ----------------------------------------------------------------------- */

#define DEEP 1500u

static const scenario deep = {
    .budgets = "D0=1500",
    .need = "q@D0",
};

static void c101_a_path_of_many_releases(void **state) {
    world *w = world_begin(*state, &deep);
    tn_eviction *rows = calloc(DEEP, sizeof(*rows));
    tn_decision_info head = TN_DECISION_INFO_INIT;
    tn_decision *d = NULL;
    size_t count = DEEP;
    char text[32];

    assert_non_null(rows);
    for (unsigned i = 0; i < DEEP; i++) {
        snprintf(text, sizeof(text), "v%u 1 R @H,D0", i);
        world_add(w, text);
    }
    world_add(w, "q 1500 R @H");
    assert_ok(world_decide(w, &d));
    assert_ok(tn_decision_read(d, &head));
    assert_int_equal(head.explored_states, DEEP + 1);
    rows[0].size = sizeof(*rows);
    assert_ok(tn_decision_evictions(d, rows, &count));
    assert_int_equal(count, DEEP);
    for (unsigned i = 0; i < DEEP; i++) {
        assert_handle(rows[i].action.handle, w->values[i].h);
        assert_int_equal(rows[i].action.kind, TN_ACTION_DROP);
        assert_int_equal(rows[i].rank, 0);
    }
    free(rows);
    tn_decision_drop(d);
    world_end(w);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(c158_what_is_stuck_in_one_state_may_leave_in_another),
    SPEC_BOTH(c100_a_cut_result_may_be_found_again),
    SPEC_BOTH(c102_a_refusal_that_time_may_cure),
    SPEC_BOTH(c101_a_path_of_many_releases),
};

TN_TEST_MAIN("spec.control_walk", tests)
