/* SPDX-License-Identifier: MIT */
/* Policies, requests, controllers and uses, where each allocation fails (F1, C131, C137). */
#include "fault_common.h"
#include "scenario.h"

/* The world of the run in progress, and what its call made. */
static world *w;
static tn_request *request;
static tn_policy *policy;
static tn_controller *controller;
static tn_use *use;
static uint64_t epoch;

static const scenario worked = {
    .budgets = "D0=2, P=2",
    .values = "a 1 R @H,D0; b 1 X @D0; q 1 R @H; r 1 R @H,P",
    .tiers = "D0 to P",
    .before = "use r@P",
    .need = "q@D0, r@P, r@H",
    .reserve = "D0:1, P:0",
};

static void ready(fault *x) {
    w = world_begin(x->f, &worked);
    request = world_request(w, w->of.need, w->of.reserve);
    policy = NULL;
    controller = NULL;
    use = NULL;
    x->m = w->m;
    (void)world_stream(w, 0);
}

static void over(fault *x) {
    (void)x;
    tn_use_destroy(use);
    tn_controller_destroy(controller);
    tn_policy_destroy(policy);
    tn_request_destroy(request);
    world_end(w);
}

static void nothing_made(fault *x, tn_status status) {
    (void)x;
    (void)status;
    assert_null(use);
    assert_null(controller);
    assert_null(policy);
}

/* ---- Making things ---------------------------------------------------------------------------- */

static tn_status make_policy(fault *x) {
    const tn_location to[] = {N, P};
    const tn_tier tiers[] = {{C0, to, 2}, {N, &to[1], 1}, {P, NULL, 0}};
    (void)x;
    return tn_policy_tiered_lru(tiers, 3, &policy);
}

static tn_status make_controller(fault *x) {
    (void)x;
    return tn_controller_create(w->m, NULL, &controller);
}

static tn_status make_request(fault *x) {
    const tn_requirement need[] = {{world_handle(w, "a"), P}, {world_handle(w, "q"), C0}};
    const tn_reservation_spec reserve[] = {{C0, 3, "workspace"}, {P, 0, "nothing"}};
    tn_request_spec spec = TN_REQUEST_SPEC_INIT;
    tn_request *made = NULL;
    tn_status status;
    (void)x;
    spec.name = "made";
    spec.requirements = need;
    spec.requirement_count = 2;
    spec.reservations = reserve;
    spec.reservation_count = 2;
    status = tn_request_create(&spec, &made);
    assert_true((status == TN_OK) == (made != NULL));
    tn_request_destroy(made);
    return status;
}

static tn_status make_use(fault *x) {
    const tn_transfer_stream consumer = {C0, world_stream(w, 0)};
    tn_use_options options = TN_USE_OPTIONS_INIT;
    (void)x;
    options.consumers = options.transfers = &consumer;
    options.consumer_count = options.transfer_count = 1;
    return tn_use_create(w->controller, request, &options, &use);
}

#define MAKES(what_, call_, least_)                                                                \
    static void what_##_survives_each_failure(void **state) {                                      \
        static const fault_case what = {.name = #what_,                                            \
                                        .prepare = ready,                                          \
                                        .call = call_,                                             \
                                        .failed = nothing_made,                                    \
                                        .check = over,                                             \
                                        .least_allocs = least_};                                   \
        fault_loop(state, &what);                                                                  \
    }

MAKES(policy, make_policy, 3)
MAKES(controller, make_controller, 1)
MAKES(request, make_request, 4)
MAKES(use, make_use, 5)

/* ---- Entering --------------------------------------------------------------------------------- */

/* A failed entry uses the use up (C137): the next call makes another. */
static tn_status enter(fault *x) {
    tn_status status = use == NULL ? make_use(x) : TN_OK;
    if (status == TN_OK)
        status = tn_use_enter(use);
    return status;
}

/* As far as the plan came: nothing, a dropped, b moved, q made. */
static void expect_prefix(void) {
    bool dropped = !resident(w->m, world_handle(w, "a"), C0);
    bool moved = resident(w->m, world_handle(w, "b"), N);
    bool made = resident(w->m, world_handle(w, "q"), C0);
    assert_true((dropped || !moved) && (moved || !made));
    world_check(w, dropped ? "a@H; r@H,P" : "a@H,D0; r@H,P");
    world_check(w, moved ? "b@P; P=2+0" : "b@D0; P=1+0");
    world_check(w, made ? "q@H,D0" : "q@H");
}

/* What was opened is closed again; no epoch was stamped. */
static void closed_again(fault *x, tn_status status) {
    tn_use_info info_of_use = TN_USE_INFO_INIT;
    tn_snapshot_info now = info(x->m);
    (void)status;
    expect_prefix();
    assert_int_equal(now.lease_count, 0);
    assert_int_equal(now.reservation_count, 0);
    assert_ok(tn_use_read(use, &info_of_use));
    assert_int_equal(info_of_use.entered, 0);
    assert_int_equal(info_of_use.epoch, epoch);
    assert_false(tn_use_active(use));
    assert_status(tn_use_enter(use), TN_ERR_MISUSE);
    assert_ok(tn_use_exit(use));
    tn_use_destroy(use);
    use = NULL;
    assert_ok(make_use(x));
    epoch = 0;
}

static void ready_use(fault *x) {
    ready(x);
    assert_ok(make_use(x));
    epoch = 0;
}

static void entered(fault *x) {
    const void *data = NULL;
    assert_true(tn_use_active(use));
    assert_int_equal(info(x->m).lease_count, 3);
    assert_int_equal(info(x->m).reservation_count, 2);
    assert_ok(tn_use_value(use, world_handle(w, "q"), C0, &data));
    assert_true(tt_check(data, 3));
    world_check(w, "D0=1+1; a@H; b@P; q@H,D0; r@H,P");
    assert_ok(tn_use_exit(use));
    over(x);
}

static void ready_hit(fault *x) {
    tn_use_info before = TN_USE_INFO_INIT;
    ready_use(x);
    for (int i = 0; i < 3; i++) { /* a miss; the first hits may still take blocks of records */
        assert_ok(enter(x));
        assert_ok(tn_use_exit(use));
        spec_finish(x->f);
        assert_ok(tn_use_reset(use));
    }
    assert_ok(tn_use_read(use, &before));
    epoch = before.epoch;
}

static void entry_survives_each_failure(void **state) {
    static const fault_case what = {.name = "enter a use",
                                    .prepare = ready_use,
                                    .call = enter,
                                    .failed = closed_again,
                                    .check = entered,
                                    .flags = FAULT_COMMITS | FAULT_FENCE,
                                    .least_allocs = 20,
                                    .least_calls = 1};
    fault_loop(state, &what);
}

/* Bound to the placement it allocates nothing. */
static void entry_of_a_hit_survives_each_failure(void **state) {
    fault_case what = {.name = "enter a hit",
                       .prepare = ready_hit,
                       .call = enter,
                       .failed = closed_again,
                       .check = entered,
                       .flags = FAULT_COMMITS};
    if ((uintptr_t)*state == TN_MODE_CONCURRENT)
        what.flags |= FAULT_NO_ALLOC;
    fault_loop(state, &what);
}

static const struct CMUnitTest tests[] = {
    FAULT_BOTH(policy_survives_each_failure),  FAULT_BOTH(controller_survives_each_failure),
    FAULT_BOTH(request_survives_each_failure), FAULT_BOTH(use_survives_each_failure),
    FAULT_BOTH(entry_survives_each_failure),   FAULT_BOTH(entry_of_a_hit_survives_each_failure),
};

TN_TEST_MAIN("fault.use", tests)
