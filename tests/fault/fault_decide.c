/* SPDX-License-Identifier: MIT */
/* Decisions, where each allocation fails (F1, C50, C57). */
#include "fault_common.h"
#include "scenario.h"

/* The world of the run in progress, and what its call made. */
static world *w;
static tn_request *request;
static tn_decision *decision;
static tn_scope *scope;

static void ready(fault *x, const scenario *of) {
    w = world_begin(x->f, of);
    request = world_request(w, of->need, of->reserve);
    decision = NULL;
    scope = NULL;
    x->m = w->m;
}

/* C57: nothing is left of it. */
static void nothing_decided(fault *x, tn_status status) {
    (void)x;
    (void)status;
    assert_null(decision);
}

static void over(void) {
    tn_decision_drop(decision);
    tn_request_destroy(request);
    world_end(w);
    w = NULL;
}

/* ---- A decision ------------------------------------------------------------------------------- */

static tn_status decide(fault *x) {
    (void)x;
    return tn_controller_decide(w->controller, request, &decision);
}

static void decided(fault *x) {
    (void)x;
    world_expect(w, decision);
    over();
}

static const scenario hit = {
    .budgets = "P=64",
    .values = "a 64 R @H,P",
    .need = "a@P",
    .peaks = "P=64, H=64",
    .explored = 1,
};
static const scenario drops = {
    .budgets = "D0=4",
    .values = "a 1 R @H,D0; b 1 R @H,D0; c 1 R @H,D0; d 1 R @H,D0; q 3 R @H",
    .before = "meta c priority -1 key first; use a@H; lease d@H",
    .need = "q@D0, b@H",
    .reserve = "D0:1",
    .reclaim = "drop c@D0 (rank 0, 1 at D0, replica remains); "
               "drop b@D0 (rank 0, 1 at D0, replica remains); "
               "drop d@D0 (rank 0, 1 at D0, replica remains); "
               "drop a@D0 (rank 0, 1 at D0, replica remains)",
    .entry = "ensure q@D0",
    .peaks = "D0=4, H=7",
    .explored = 5,
};
/* Dead ends, remembered room searches, and the way back (CC62, CC65). */
static const scenario back = {
    .budgets = "D0=1, P=1, H=3, D1=1",
    .values = "x 1 X @D0; z 1 X @P; b 2 X @H; q 1 R src=D2",
    .tiers = "D0 to P; P to H, D1",
    .need = "q@D0",
    .reserve = "H:1",
    .reclaim = "move z P->D1 (rank 0, 1 at P, to tier); move x D0->P (rank 0, 1 at D0, to tier)",
    .entry = "ensure q@D0",
    .peaks = "D0=1, P=1, H=3, D1=1, D2=1",
    .explored = 4,
    .dead_ends = true,
};
static const scenario rooms = {
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

static void ready_hit(fault *x) { ready(x, &hit); }
static void ready_drops(fault *x) { ready(x, &drops); }
static void ready_back(fault *x) { ready(x, &back); }
static void ready_rooms(fault *x) { ready(x, &rooms); }

static void decide_on_a_hit_survives_each_failure(void **state) {
    static const fault_case what = {.name = "decide on a hit",
                                    .prepare = ready_hit,
                                    .call = decide,
                                    .failed = nothing_decided,
                                    .check = decided,
                                    .least_allocs = 3};
    fault_loop(state, &what);
}

static void decide_with_victims_survives_each_failure(void **state) {
    static const fault_case what = {.name = "decide with victims",
                                    .prepare = ready_drops,
                                    .call = decide,
                                    .failed = nothing_decided,
                                    .check = decided,
                                    .least_allocs = 6};
    fault_loop(state, &what);
}

static void decide_with_dead_ends_survives_each_failure(void **state) {
    static const fault_case what = {.name = "decide with dead ends",
                                    .prepare = ready_back,
                                    .call = decide,
                                    .failed = nothing_decided,
                                    .check = decided,
                                    .least_allocs = 10};
    fault_loop(state, &what);
}

static void decide_with_room_searches_survives_each_failure(void **state) {
    static const fault_case what = {.name = "decide with room searches",
                                    .prepare = ready_rooms,
                                    .call = decide,
                                    .failed = nothing_decided,
                                    .check = decided,
                                    .least_allocs = 10};
    fault_loop(state, &what);
}

static void decide_on_new_thread_survives_each_failure(void **state) {
    static const fault_case what = {.name = "decide by a new thread",
                                    .prepare = ready_drops,
                                    .call = decide,
                                    .failed = nothing_decided,
                                    .check = decided,
                                    .flags = FAULT_ON_THREAD,
                                    .least_allocs = 7};
    fault_loop(state, &what);
}

/* ---- Refusals: what fails in them is the call, not the request -------------------------------- */

static const scenario impossible = {
    .budgets = "P=3, H=3",
    .values = "a 1 R @H,P; b 1 R @H,P; c 1 X @P; q 1 R @H",
    .before = "hold b@P",
    .tiers = "P to H",
    .need = "q@P",
    .reserve = "P:3",
};
static const scenario limited = {
    .budgets = "D0=1, P=1, H=3",
    .values = "x 1 X @D0; z 1 X @P; q 1 X @H",
    .tiers = "D0 to P; P to H",
    .limit = 2,
    .need = "q@D0",
};

static tn_status refuse(fault *x, tn_status expected) {
    tn_status status = decide(x);
    return status == expected ? TN_OK : status == TN_OK ? TN_ERR_INTERNAL : status;
}

static tn_status refuse_plan(fault *x) { return refuse(x, TN_ERR_PLAN); }
static tn_status refuse_limit(fault *x) { return refuse(x, TN_ERR_SEARCH_LIMIT); }

static void refused(fault *x) {
    assert_true(x->error.status == TN_ERR_PLAN || x->error.status == TN_ERR_SEARCH_LIMIT);
    assert_null(decision);
    over();
}

static void ready_impossible(fault *x) { ready(x, &impossible); }
static void ready_limited(fault *x) { ready(x, &limited); }

static void refusal_survives_each_failure(void **state) {
    static const fault_case what = {.name = "decide the impossible",
                                    .prepare = ready_impossible,
                                    .call = refuse_plan,
                                    .failed = nothing_decided,
                                    .check = refused,
                                    .flags = FAULT_ALLOC_OK,
                                    .least_allocs = 3};
    fault_loop(state, &what);
}

static void limit_survives_each_failure(void **state) {
    static const fault_case what = {.name = "decide up to the limit",
                                    .prepare = ready_limited,
                                    .call = refuse_limit,
                                    .failed = nothing_decided,
                                    .check = refused,
                                    .least_allocs = 3};
    fault_loop(state, &what);
}

/* ---- Its scope, and metadata ------------------------------------------------------------------ */

static void ready_scope(fault *x) {
    ready(x, &drops);
    assert_ok(decide(x));
}

static tn_status make_scope(fault *x) {
    (void)x;
    return tn_controller_scope(w->controller, decision, NULL, 0, &scope);
}

static void no_scope(fault *x, tn_status status) {
    (void)x;
    (void)status;
    assert_null(scope);
}

static void scope_made(fault *x) {
    (void)x;
    assert_ok(tn_scope_enter(scope));
    assert_ok(tn_scope_close(scope));
    assert_ok(tn_scope_destroy(scope));
    over();
}

static void scope_survives_each_failure(void **state) {
    static const fault_case what = {.name = "scope of a decision",
                                    .prepare = ready_scope,
                                    .call = make_scope,
                                    .failed = no_scope,
                                    .check = scope_made,
                                    .least_allocs = 1};
    fault_loop(state, &what);
}

static tn_status set_key(fault *x) {
    (void)x;
    return tn_controller_set_metadata(w->controller, world_handle(w, "b"), 7, "a key of b");
}

/* b still has no key, and the key is free (C6). */
static void nothing_set(fault *x, tn_status status) {
    tn_handle c = world_handle(w, "c");
    (void)x;
    (void)status;
    assert_ok(tn_controller_set_metadata(w->controller, c, 0, "a key of b"));
    assert_ok(tn_controller_set_metadata(w->controller, c, -1, "first"));
}

static void key_set(fault *x) {
    (void)x;
    assert_status(tn_controller_set_metadata(w->controller, world_handle(w, "c"), 0, "a key of b"),
                  TN_ERR_VALUE);
    over();
}

static void metadata_survives_each_failure(void **state) {
    static const fault_case what = {.name = "set metadata",
                                    .prepare = ready_drops,
                                    .call = set_key,
                                    .failed = nothing_set,
                                    .check = key_set,
                                    .least_allocs = 1};
    fault_loop(state, &what);
}

static const struct CMUnitTest tests[] = {
    FAULT_BOTH(decide_on_a_hit_survives_each_failure),
    FAULT_BOTH(decide_with_victims_survives_each_failure),
    FAULT_BOTH(decide_with_dead_ends_survives_each_failure),
    FAULT_BOTH(decide_with_room_searches_survives_each_failure),
    FAULT_BOTH(decide_on_new_thread_survives_each_failure),
    FAULT_BOTH(refusal_survives_each_failure),
    FAULT_BOTH(limit_survives_each_failure),
    FAULT_BOTH(scope_survives_each_failure),
    FAULT_BOTH(metadata_survives_each_failure),
};

TN_TEST_MAIN("fault.decide", tests)
