/* SPDX-License-Identifier: MIT */
/*
 * Policies of the caller's: what they are shown, what they decide, and what breaks their contract
 * (C12..C24; cases CC19, CC25, CC59, CC82..CC87).
 */
#include "scenario.h"

#include <stdio.h>

/* ---- A policy that can be told what to do ----------------------------------------------------- */

/* How it spoils an order. */
enum spoil { SOUND, LOSE_LAST, NAME_NONE, REPEAT, OUT_OF_RANGE, FAIL };

typedef struct own {
    bool largest_first; /* else by registration */
    enum spoil spoil;
    const char *tiers;   /* where values at D0 may go, with blanks between; NULL: nowhere */
    tn_status no_tiers;  /* asking for them fails */
    char log[256];       /* calls, with registration indices */
    uint64_t charges[8]; /* by registration index, as shown */
    uint64_t epochs[8];  /* same */
    int64_t priority[8]; /* same */
    char keys[8][16];    /* same */
} own;

static void note(own *o, const char *text) {
    size_t length = strlen(o->log);

    snprintf(o->log + length, sizeof(o->log) - length, "%s", text);
}

static const char *own_name(void *context) {
    (void)context;
    return "own";
}

static const tn_config_pair *own_config(void *context, size_t *out_count) {
    (void)context;
    *out_count = 0;
    return NULL;
}

static tn_status own_fallbacks(void *context, tn_location at, tn_location *out, size_t room,
                               size_t *out_count) {
    own *o = context;
    const char *rest = o->tiers;
    char text[8];
    int end;

    note(o, at.kind == TN_LOCATION_CUDA && at.index == 0 ? "fallback D0; " : "fallback; ");
    if (o->no_tiers != TN_OK)
        return o->no_tiers;
    *out_count = 0;
    if (at.kind != TN_LOCATION_CUDA)
        return TN_OK;
    for (; rest != NULL && sscanf(rest, "%7s%n", text, &end) == 1; rest += end) {
        if (*out_count < room)
            out[*out_count] = world_at(text);
        ++*out_count;
    }
    return TN_OK;
}

/* What it is shown of each (C12..C14). */
static void look(own *o, const tn_candidate *candidates, size_t count) {
    note(o, "order [");
    for (size_t i = 0; i < count; i++) {
        const tn_candidate *c = &candidates[i];
        char text[24];

        snprintf(text, sizeof(text), "%s%d", i != 0 ? " " : "", (int)c->registration_index);
        note(o, text);
        if (c->registration_index >= 8)
            continue;
        o->charges[c->registration_index] = c->charged_bytes;
        o->epochs[c->registration_index] = c->last_epoch;
        o->priority[c->registration_index] = c->priority;
        snprintf(o->keys[c->registration_index], sizeof(o->keys[0]), "%s",
                 c->stable_key != NULL ? c->stable_key : "-");
    }
    note(o, "]; ");
}

static bool before(const own *o, const tn_candidate *a, const tn_candidate *b) {
    if (o->largest_first && a->charged_bytes != b->charged_bytes)
        return a->charged_bytes > b->charged_bytes;
    return a->registration_index < b->registration_index;
}

static void spoil(const own *o, size_t count, size_t *out_order) {
    if (o->spoil == REPEAT && count > 1)
        out_order[count - 1] = out_order[0];
    if (o->spoil == OUT_OF_RANGE && count > 0)
        out_order[count - 1] = count;
}

static tn_status own_order(void *context, const tn_candidate *candidates, size_t count,
                           size_t *out_order) {
    own *o = context;
    size_t named = o->spoil == NAME_NONE ? 0 : count;

    look(o, candidates, count);
    if (o->spoil == FAIL)
        return TN_ERR_UNSUPPORTED;
    if (o->spoil == LOSE_LAST && named > 0)
        named--;
    for (size_t i = 0; i < named; i++) {
        size_t k = i;

        for (; k > 0 && before(o, &candidates[i], &candidates[out_order[k - 1]]); k--)
            out_order[k] = out_order[k - 1];
        out_order[k] = i;
    }
    spoil(o, count, out_order);
    return TN_OK;
}

static tn_policy_spec spec_of(own *o) {
    tn_policy_spec spec = TN_POLICY_SPEC_INIT;

    spec.context = o;
    spec.name = own_name;
    spec.config_identity = own_config;
    spec.fallback_locations = own_fallbacks;
    spec.order_candidates = own_order;
    return spec;
}

/* ---- Running -------------------------------------------------------------------------------- */

/* The scenario with the policy. */
static world *begin(void **state, const scenario *of, own *o) {
    tn_policy_spec spec = spec_of(o);
    scenario with = *of;
    world *w;

    with.policy = &spec;
    w = world_begin(*state, &with);
    w->of.policy = NULL; /* its spec ends here */
    o->log[0] = '\0';
    return w;
}

static void run(void **state, const scenario *of, own o) {
    world *w = begin(state, of, &o);
    tn_decision *d = world_decide_as_expected(w);

    world_execute(w, d);
    tn_decision_drop(d);
    world_end(w);
}

/* It fails with `status`, that is, neither infeasible nor inconclusive, and nothing changes. */
static void refuse(void **state, const scenario *of, own o, tn_status status) {
    world *w = begin(state, of, &o);
    char *before = spec_describe(w->m, 0);
    tn_decision *d = NULL;

    assert_status(world_decide(w, &d), status);
    assert_int_equal(tn_last_error()->status, status);
    assert_null(strstr(tn_last_error()->message, "infeasible"));
    assert_unchanged(w->m, before, 0);
    world_end(w);
}

/* ---- What it is shown ------------------------------------------------------------------------- */

static const scenario cc019 = {
    .budgets = "P=2",
    .values = "a 1 R @H; b 1 R @H; c 1 R @H; d 1 R @H",
    .before = "discard a; ensure c@P; ensure b@P; meta c priority -3 key kept; use c@H",
    .need = "d@P",
    .reclaim = "drop b@P (rank 0, 1 at P, replica remains)",
    .entry = "ensure d@P",
    .peaks = "P=2, H=3",
    .explored = 2,
};

static void cc019_candidates_carry_their_indices(void **state) {
    own o = {.spoil = SOUND};
    world *w = begin(state, &cc019, &o);
    tn_decision *d = NULL;

    assert_ok(world_decide(w, &d));
    world_expect(w, d);
    if (strcmp(o.log, "order [1 2]; order []; ") != 0) /* the order given is free */
        assert_string_equal(o.log, "order [2 1]; order []; ");
    assert_int_equal(o.charges[1], 1);
    assert_int_equal(o.charges[2], 1);
    assert_int_equal(o.epochs[1], 0);
    if (w->f->mode == TN_MODE_SERIAL)
        assert_int_equal(o.epochs[2], 1);
    assert_int_not_equal(o.epochs[2], 0);
    assert_int_equal(o.priority[1], 0);
    assert_int_equal(o.priority[2], -3);
    assert_string_equal(o.keys[1], "-");
    assert_string_equal(o.keys[2], "kept");
    tn_decision_drop(d);
    world_end(w);
}

static const scenario cc087 = {
    .budgets = "D0=2",
    .values = "a 1 X @D0; b 1 X @D0; q 1 R @H",
    .need = "b@D0, q@D0",
    .reclaim = "move a D0->P (rank 0, 1 at D0, to tier)",
    .entry = "ensure q@D0",
    .peaks = "D0=2, H=1, P=1",
    .explored = 2,
};
static const scenario cc087_spare = {
    .budgets = "D0=2",
    .values = "a 1 R @H,D0; b 1 X @D0; q 1 R @H",
    .need = "b@D0, q@D0",
    .reclaim = "drop a@D0 (rank 0, 1 at D0, replica remains)",
    .entry = "ensure q@D0",
    .peaks = "D0=2, H=2",
    .explored = 2,
};

static void show(void **state, const scenario *of, const char *calls) {
    own o = {.tiers = "P"};
    world *w = begin(state, of, &o);
    tn_decision *d = NULL;

    assert_ok(world_decide(w, &d));
    assert_string_equal(o.log, calls);
    world_expect(w, d);
    tn_decision_drop(d);
    world_end(w);
}

static void cc087_what_the_policy_is_shown(void **state) {
    show(state, &cc087, "order [0]; order [1]; fallback D0; ");
}

static void cc087_a_drop_asks_for_no_tiers(void **state) {
    show(state, &cc087_spare, "order [0]; order [1]; ");
}

/* ---- What it decides -------------------------------------------------------------------------- */

static const scenario cc025 = {
    .budgets = "D0=10",
    .values = "a 2 R @H,D0; b 8 R @H,D0; q 8 R @H",
    .need = "q@D0",
    .reclaim = "drop b@D0 (rank 0, 8 at D0, replica remains)",
    .entry = "ensure q@D0",
    .peaks = "D0=10, H=18",
    .explored = 2,
};

static void cc025_a_custom_policy_can_prefer_large_victims(void **state) {
    run(state, &cc025, (own){.largest_first = true});
}

/* P is tried once (one counted room search without candidates), then H. */
static const scenario cc059 = {
    .budgets = "D0=1, P=0",
    .values = "x 1 X @D0; q 1 X @H",
    .need = "q@D0",
    .reclaim = "move x D0->H (rank 0, 1 at D0, to tier)",
    .entry = "move q H->D0",
    .peaks = "D0=1, P=0, H=2",
    .explored = 3,
};

static void cc059_a_tier_list_with_a_repeat_from_a_custom_policy(void **state) {
    run(state, &cc059, (own){.tiers = "P P H"});
}

/* ---- Broken contracts ------------------------------------------------------------------------- */

static const scenario one = {
    .budgets = "D0=1",
    .values = "a 1 R @H,D0; q 1 R @H",
    .need = "q@D0",
};
static const scenario two = {
    .budgets = "D0=2",
    .values = "a 1 R @H,D0; b 1 R @H,D0; q 1 R @H",
    .need = "q@D0",
};
static const scenario sole = {
    .budgets = "D0=1",
    .values = "x 1 X @D0; q 1 R @H",
    .need = "q@D0",
    .reclaim = "move x D0->P (rank 0, 1 at D0, to tier)",
    .entry = "ensure q@D0",
    .peaks = "D0=1, H=1, P=1",
    .explored = 2,
};

static void cc082_policy_that_loses_a_candidate(void **state) {
    refuse(state, &one, (own){.spoil = LOSE_LAST}, TN_ERR_POLICY);
}

static void cc082_policy_that_loses_one_of_two(void **state) {
    refuse(state, &two, (own){.spoil = LOSE_LAST}, TN_ERR_POLICY);
}

static void cc082_policy_that_names_nothing(void **state) {
    refuse(state, &two, (own){.spoil = NAME_NONE}, TN_ERR_POLICY);
}

/* In C nothing can be added to the order: only something that is no candidate can be named. */
static void cc083_policy_that_repeats_candidates(void **state) {
    refuse(state, &two, (own){.spoil = REPEAT}, TN_ERR_POLICY);
}

static void cc083_policy_that_names_a_stranger(void **state) {
    refuse(state, &one, (own){.spoil = OUT_OF_RANGE}, TN_ERR_POLICY);
}

static void cc084_policy_that_raises_an_error(void **state) {
    refuse(state, &sole, (own){.no_tiers = TN_ERR_UNSUPPORTED}, TN_ERR_UNSUPPORTED);
    refuse(state, &sole, (own){.no_tiers = TN_ERR_SOURCE}, TN_ERR_SOURCE);
    refuse(state, &one, (own){.spoil = FAIL}, TN_ERR_UNSUPPORTED);
}

/* Also one that looks like an outcome of the search. */
static void cc084_policy_that_raises_an_error_of_ours(void **state) {
    refuse(state, &sole, (own){.no_tiers = TN_ERR_PLAN}, TN_ERR_PLAN);
    refuse(state, &sole, (own){.no_tiers = TN_ERR_SEARCH_LIMIT}, TN_ERR_SEARCH_LIMIT);
    refuse(state, &sole, (own){.no_tiers = TN_ERR_STALE}, TN_ERR_STALE);
}

static const scenario cc084 = {
    .budgets = "D0=1",
    .values = "x 1 R @H,D0; q 1 R @H",
    .need = "q@D0",
    .reclaim = "drop x@D0 (rank 0, 1 at D0, replica remains)",
    .entry = "ensure q@D0",
    .peaks = "D0=1, H=2",
    .explored = 2,
};

static void cc084_an_error_that_is_not_asked_for(void **state) {
    run(state, &cc084, (own){.no_tiers = TN_ERR_UNSUPPORTED});
}

static void cc085_policy_that_names_the_asked_location(void **state) {
    refuse(state, &sole, (own){.tiers = "D0"}, TN_ERR_POLICY);
    refuse(state, &sole, (own){.tiers = "D0 P"}, TN_ERR_POLICY);
}

/* ---- A tier that does not exist --------------------------------------------------------------- */

static void expect_no_such_place(world *w) {
    char *before = spec_describe(w->m, 0);
    tn_decision *d = NULL;

    assert_status(world_decide(w, &d), TN_ERR_PLAN);
    assert_int_equal(tn_last_error()->reason, TN_REASON_LOCATION_INVALID);
    assert_int_equal(tn_last_error()->phase, TN_PHASE_RECLAIM);
    assert_at(tn_last_error()->at, world_at("D9"));
    assert_unchanged(w->m, before, 0);
    world_end(w);
}

static void cc086_unavailable_tier_first(void **state) {
    scenario of = sole;

    of.tiers = "D0 to D9, P";
    expect_no_such_place(world_begin(*state, &of));
}

static void cc086_unavailable_tier_of_a_custom_policy(void **state) {
    own o = {.tiers = "D9 P"};

    expect_no_such_place(begin(state, &sole, &o));
}

static void cc086_the_other_tier_would_have_worked(void **state) {
    scenario of = sole;

    of.tiers = "D0 to P";
    scenario_run(*state, &of);
}

/* ---- The built-in policy, asked without a decision -------------------------------------------- */

static tn_candidate candidate(uint64_t index, int64_t priority, uint64_t epoch, const char *key) {
    static const tn_value_type type = {.size = sizeof type, .name = "candidate"};

    return (tn_candidate){.handle = {1, index + 1, &type},
                          .at = tn_location_pageable(),
                          .charged_bytes = 64 - index,
                          .registration_index = index,
                          .last_epoch = epoch,
                          .priority = priority,
                          .stable_key = key};
}

/* Each part of the key against all that come after it (C33); the list is as before (C34). */
static void cc009_built_in_order_by_itself(void **state) {
    const tn_candidate sorted[] = {
        candidate(9, -1, 9, NULL), candidate(8, 0, 0, "b"),  candidate(7, 0, 0, NULL),
        candidate(6, 0, 3, NULL),  candidate(5, 0, 4, "a"),  candidate(4, 0, 4, "b"),
        candidate(2, 0, 4, NULL),  candidate(3, 0, 4, NULL), candidate(0, 1, 0, "a")};
    enum { COUNT = sizeof sorted / sizeof sorted[0] };
    tn_policy *policy = NULL;
    (void)state;

    assert_ok(tn_policy_tiered_lru(NULL, 0, &policy));
    for (size_t turn = 0; turn < COUNT; turn++) {
        tn_candidate list[COUNT], before[COUNT];
        size_t order[COUNT];

        for (size_t i = 0; i < COUNT; i++) /* 4 and 9 have no common factor */
            list[i] = before[i] = sorted[(4 * i + turn) % COUNT];
        assert_ok(tn_policy_order(policy, list, COUNT, order));
        for (size_t i = 0; i < COUNT; i++)
            assert_int_equal(list[order[i]].registration_index, sorted[i].registration_index);
        assert_memory_equal(list, before, sizeof list);
    }
    tn_policy_destroy(policy);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(cc009_built_in_order_by_itself),
    SPEC_BOTH(cc019_candidates_carry_their_indices),
    SPEC_BOTH(cc025_a_custom_policy_can_prefer_large_victims),
    SPEC_BOTH(cc059_a_tier_list_with_a_repeat_from_a_custom_policy),
    SPEC_BOTH(cc082_policy_that_loses_a_candidate),
    SPEC_BOTH(cc082_policy_that_loses_one_of_two),
    SPEC_BOTH(cc082_policy_that_names_nothing),
    SPEC_BOTH(cc083_policy_that_repeats_candidates),
    SPEC_BOTH(cc083_policy_that_names_a_stranger),
    SPEC_BOTH(cc084_policy_that_raises_an_error),
    SPEC_BOTH(cc084_policy_that_raises_an_error_of_ours),
    SPEC_BOTH(cc084_an_error_that_is_not_asked_for),
    SPEC_BOTH(cc085_policy_that_names_the_asked_location),
    SPEC_BOTH(cc086_unavailable_tier_first),
    SPEC_BOTH(cc086_unavailable_tier_of_a_custom_policy),
    SPEC_BOTH(cc086_the_other_tier_would_have_worked),
    SPEC_BOTH(cc087_what_the_policy_is_shown),
    SPEC_BOTH(cc087_a_drop_asks_for_no_tiers),
};

TN_TEST_MAIN("spec.control_policy", tests)
