/* SPDX-License-Identifier: MIT */
/*
 * Requests, policies, controllers and uses, where each allocation, driver call and fence of them fails
 * (F1, B2, C137, C143). A failed entry is over and has left no lifetime; after a reset the same use
 * enters. Each entry and exit in both bindings.
 */
#include "fault_common.h"

static tn_controller *controller;
static tn_request *request;
static tn_policy *policy;
static tn_use *use;
static uint32_t binding;

/* ---- A world with a request ---------------------------------------------------------------- */

static tn_status make_request(fault *x) {
    tn_requirement needs[] = {{x->h, P}, {x->others[0], C0}};
    tn_reservation_spec workspace = {P, 8, "workspace"};
    tn_request_spec spec = TN_REQUEST_SPEC_INIT;

    spec.name = "operation";
    spec.requirements = needs;
    spec.requirement_count = 2;
    spec.reservations = &workspace;
    spec.reservation_count = 1;
    return tn_request_create(&spec, &request);
}

static tn_status make_controller(fault *x) {
    tn_controller_config config = TN_CONTROLLER_CONFIG_INIT;

    config.policy = policy;
    config.binding = binding;
    config.redecisions = 1;
    return tn_controller_create(x->m, &config, &controller);
}

static tn_status make_policy(fault *x) {
    tn_location below[] = {P, N};
    tn_tier tiers[] = {{C0, below, 2}, {N, below, 1}};

    (void)x;
    return tn_policy_tiered_lru(tiers, 2, &policy);
}

static tn_status make_use(fault *x) {
    tn_transfer_stream consumer = {C0, x->stream}, transfer = {C0, x->second};
    tn_use_options options = TN_USE_OPTIONS_INIT;

    options.consumers = &consumer;
    options.consumer_count = 1;
    options.transfers = &transfer;
    options.transfer_count = 1;
    return tn_use_create(controller, request, &options, &use);
}

/* `h` is at P, others: 0 at P (and C0), 1 at C0 and P, where it is in the way. */
static void values(fault *x, uint64_t device_budget, bool resident_already) {
    x->m = MANAGER(x->f, {P, 4096}, {N, 4096}, {C0, device_budget});
    x->stream = spec_stream(x->f, 0);
    x->second = spec_stream(x->f, 0);
    x->h = adopt_rep(x->f, x->m, P);
    x->others[0] = adopt_rep(x->f, x->m, P);
    x->others[1] = adopt_rep(x->f, x->m, P);
    (void)ensure(x->m, resident_already ? x->others[0] : x->others[1], C0);
    controller = NULL;
    request = NULL;
    policy = NULL;
    use = NULL;
}

static void with_values(fault *x) { values(x, 4096, true); }

static void with_request(fault *x) {
    with_values(x);
    assert_ok(make_policy(x));
    assert_ok(make_request(x));
}

static void with_controller(fault *x) {
    with_request(x);
    assert_ok(make_controller(x));
}

static void with_use(fault *x) {
    with_controller(x);
    assert_ok(make_use(x));
}

static void end(fault *x) {
    tn_use_destroy(use);
    tn_controller_destroy(controller);
    tn_policy_destroy(policy);
    tn_request_destroy(request);
    spec_finish(x->f);
    assert_int_equal(info(x->m).pending_lease_count, 0);
    assert_int_equal(info(x->m).lease_count + info(x->m).reservation_count, 0);
}

/* ---- Making ---------------------------------------------------------------------------------- */

static void made(fault *x) { end(x); }

static void no_request(fault *x, tn_status status) {
    (void)x;
    (void)status;
    assert_null(request);
}

static void request_survives_each_failure(void **state) {
    static const fault_case what = {.name = "making a request",
                                    .prepare = with_values,
                                    .call = make_request,
                                    .failed = no_request,
                                    .check = made,
                                    .least_allocs = 2};
    fault_loop(state, &what);
}

static void no_policy(fault *x, tn_status status) {
    (void)x;
    (void)status;
    assert_null(policy);
}

static void policy_survives_each_failure(void **state) {
    static const fault_case what = {.name = "making the built-in policy",
                                    .prepare = with_values,
                                    .call = make_policy,
                                    .failed = no_policy,
                                    .check = made,
                                    .least_allocs = 2};
    fault_loop(state, &what);
}

static const char *name(void *context) {
    (void)context;
    return "own";
}

static const tn_config_pair *no_config(void *context, size_t *count) {
    (void)context;
    *count = 0;
    return NULL;
}

static tn_status no_fallbacks(void *context, tn_location at, tn_location *out, size_t room,
                              size_t *count) {
    (void)context;
    (void)at;
    (void)out;
    (void)room;
    *count = 0;
    return TN_OK;
}

static tn_status as_they_come(void *context, const tn_candidate *candidates, size_t count,
                              size_t *order) {
    (void)context;
    (void)candidates;
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    return TN_OK;
}

static tn_status make_own_policy(fault *x) {
    tn_policy_spec spec = TN_POLICY_SPEC_INIT;

    (void)x;
    spec.name = name;
    spec.config_identity = no_config;
    spec.fallback_locations = no_fallbacks;
    spec.order_candidates = as_they_come;
    return tn_policy_create(&spec, &policy);
}

static void own_policy_survives_each_failure(void **state) {
    static const fault_case what = {.name = "making a policy of one's own",
                                    .prepare = with_values,
                                    .call = make_own_policy,
                                    .failed = no_policy,
                                    .check = made,
                                    .least_allocs = 1};
    fault_loop(state, &what);
}

static void no_controller(fault *x, tn_status status) {
    (void)x;
    (void)status;
    assert_null(controller);
}

static void controller_survives_each_failure(void **state) {
    static const fault_case what = {.name = "making a controller",
                                    .prepare = with_request,
                                    .call = make_controller,
                                    .failed = no_controller,
                                    .check = made,
                                    .least_allocs = 1};
    fault_loop(state, &what);
}

static void no_use(fault *x, tn_status status) {
    (void)x;
    (void)status;
    assert_null(use);
}

static void use_survives_each_failure(void **state) {
    static const fault_case what = {.name = "making a use",
                                    .prepare = with_controller,
                                    .call = make_use,
                                    .failed = no_use,
                                    .check = made,
                                    .least_allocs = 6,
                                    .least_calls = 2};
    fault_loop(state, &what);
}

/* ---- Entry ------------------------------------------------------------------------------------ */

static tn_status enter(fault *x) {
    (void)x;
    assert_ok(tn_use_reset(use));
    return tn_use_enter(use);
}

static void nothing_entered(fault *x, tn_status status) {
    assert_false(tn_use_active(use));
    assert_int_equal(info(x->m).lease_count + info(x->m).reservation_count, 0);
    assert_int_equal(reserved(x->m, P), 0);
    assert_int_equal(used(x->m, P),
                     96); /* what was opened is closed; what was moved stays (C137) */
    assert_true(resident(x->m, x->h, P) && resident(x->m, x->others[0], P));
    assert_true(status != TN_ERR_STALE);
}

static void entered(fault *x) {
    const void *data = NULL;

    assert_true(tn_use_active(use));
    assert_int_equal(info(x->m).lease_count, 2);
    assert_int_equal(reserved(x->m, P), 8);
    assert_ok(tn_use_value(use, x->others[0], C0, &data));
    assert_true(tt_check(data, 1));
    assert_ok(tn_use_exit(use));
    end(x);
}

static void each_binding(void **state, const fault_case *what) {
    for (binding = TN_BIND_VERSION; binding <= TN_BIND_PLACEMENT; binding++)
        fault_loop(state, what);
    binding = TN_BIND_DEFAULT;
}

static void hit_survives_each_failure(void **state) {
    static const fault_case what = {.name = "entering a use, a hit",
                                    .prepare = with_use,
                                    .call = enter,
                                    .failed = nothing_entered,
                                    .check = entered,
                                    .flags = FAULT_PLAN | FAULT_STATE,
                                    .least_calls = 1};
    each_binding(state, &what);
}

static void hit_on_new_thread_survives_each_failure(void **state) {
    static const fault_case what = {.name = "entering a use, a hit by a new thread",
                                    .prepare = with_use,
                                    .call = enter,
                                    .failed = nothing_entered,
                                    .check = entered,
                                    .flags = FAULT_PLAN | FAULT_STATE | FAULT_ON_THREAD,
                                    .least_allocs = 2,
                                    .least_calls = 1};
    each_binding(state, &what);
}

/* One drop makes room. */
static void with_miss(fault *x) {
    values(x, 32, false);
    assert_ok(make_policy(x));
    assert_ok(make_request(x));
    assert_ok(make_controller(x));
    assert_ok(make_use(x));
}

static void miss_survives_each_failure(void **state) {
    static const fault_case what = {.name = "entering a use, a miss",
                                    .prepare = with_miss,
                                    .call = enter,
                                    .failed = nothing_entered,
                                    .check = entered,
                                    .flags = FAULT_PREFIX | FAULT_STATE | FAULT_PEAKS | FAULT_FENCE,
                                    .least_allocs = 20,
                                    .least_calls = 4};
    each_binding(state, &what);
}

/* ---- Exit ------------------------------------------------------------------------------------- */

static void with_entered(fault *x) {
    with_use(x);
    assert_ok(tn_use_enter(use));
}

static void with_missed(fault *x) {
    with_miss(x);
    assert_ok(tn_use_enter(use));
}

static tn_status leave(fault *x) {
    (void)x;
    return tn_use_exit(use);
}

/* C143: it is over; a lease that could not be released is at most one, and goes with the use. */
static void left_in_part(fault *x, tn_status status) {
    (void)status;
    assert_false(tn_use_active(use));
    assert_int_equal(reserved(x->m, P), 0);
    assert_true(info(x->m).lease_count <= 1);
}

static void left(fault *x) {
    assert_false(tn_use_active(use));
    assert_int_equal(reserved(x->m, P), 0);
    end(x);
}

static void exit_survives_each_failure(void **state) {
    static const fault_case what = {.name = "leaving a use",
                                    .prepare = with_entered,
                                    .call = leave,
                                    .failed = left_in_part,
                                    .check = left,
                                    .flags =
                                        FAULT_PLAN | FAULT_STATE | FAULT_DRIVER_OK | FAULT_ALLOC_OK,
                                    .least_calls = 1};
    each_binding(state, &what);
}

static void exit_of_a_miss_survives_each_failure(void **state) {
    static const fault_case what = {.name = "leaving a use that was a miss",
                                    .prepare = with_missed,
                                    .call = leave,
                                    .failed = left_in_part,
                                    .check = left,
                                    .flags =
                                        FAULT_PLAN | FAULT_STATE | FAULT_DRIVER_OK | FAULT_ALLOC_OK,
                                    .least_calls = 1};
    each_binding(state, &what);
}

static const struct CMUnitTest tests[] = {
    FAULT_BOTH(request_survives_each_failure),
    FAULT_BOTH(policy_survives_each_failure),
    FAULT_BOTH(own_policy_survives_each_failure),
    FAULT_BOTH(controller_survives_each_failure),
    FAULT_BOTH(use_survives_each_failure),
    FAULT_BOTH(hit_survives_each_failure),
    FAULT_BOTH(hit_on_new_thread_survives_each_failure),
    FAULT_BOTH(miss_survives_each_failure),
    FAULT_BOTH(exit_survives_each_failure),
    FAULT_BOTH(exit_of_a_miss_survives_each_failure),
};

TN_TEST_MAIN("fault.control", tests)
