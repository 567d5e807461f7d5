/* SPDX-License-Identifier: MIT */
/*
 * Definitions and validation: requests, policies, controllers, metadata (C2..C17, C26..C44, C51..C55,
 * C111..C114; cases CC88..CC101).
 */
#include "scenario.h"

#include <stdio.h>

static const scenario one_value = {.values = "a 1 R @H"};

/* ---- Requests -------------------------------------------------------------------------------- */

/* Build a request of these parts and let it go. */
static tn_status build(const char *name, const tn_requirement *rows, size_t count,
                       const tn_reservation_spec *reservations, size_t reservation_count) {
    tn_request_spec spec = TN_REQUEST_SPEC_INIT;
    tn_request *request = NULL;
    tn_status status;

    spec.name = name;
    spec.requirements = rows;
    spec.requirement_count = count;
    spec.reservations = reservations;
    spec.reservation_count = reservation_count;
    status = tn_request_create(&spec, &request);
    assert_true((status == TN_OK) == (request != NULL));
    tn_request_destroy(request);
    return status;
}

static void cc088_request_definitions(void **state) {
    world *w = world_begin(*state, &one_value);
    tn_handle a = world_handle(w, "a");
    const tn_requirement twice[] = {{a, P}, {a, P}}, two[] = {{a, P}, {a, N}};
    const tn_reservation_spec negative = {P, (uint64_t)-1, "r"}, blank = {P, 1, " "},
                              equal[] = {{P, 1, "r"}, {P, 1, "r"}};

    assert_status(build(" ", two, 1, NULL, 0), TN_ERR_VALUE);
    assert_status(build("r", NULL, 0, NULL, 0), TN_ERR_VALUE);
    assert_status(build("r", twice, 2, NULL, 0), TN_ERR_VALUE);
    assert_ok(build("r", two, 2, NULL, 0));
    assert_status(build("r", two, 1, &negative, 1), TN_ERR_VALUE);
    assert_status(build("r", two, 1, &blank, 1), TN_ERR_VALUE);
    assert_ok(build("r", two, 1, equal, 2));
    world_end(w);
}

static void cc088_built_requests_keep_their_entries(void **state) {
    world *w = world_begin(*state, &one_value);
    tn_handle a = world_handle(w, "a");
    char name[] = "name", label[] = "label";
    tn_requirement rows[] = {{a, P}, {a, N}};
    tn_reservation_spec reservations[] = {{N, 7, label}};
    tn_request_spec spec = {sizeof(spec), name, rows, 2, reservations, 1};
    const tn_requirement *kept;
    const tn_reservation_spec *kept_reservations;
    tn_request *request = NULL;
    size_t count = 0;

    assert_ok(tn_request_create(&spec, &request));
    memset(rows, 0, sizeof(rows));
    memset(reservations, 0, sizeof(reservations));
    memset(name, 'x', 4);
    memset(label, 'x', 5);
    assert_string_equal(tn_request_name(request), "name");
    assert_ok(tn_request_requirements(request, &kept, &count));
    assert_int_equal(count, 2);
    assert_handle(kept[1].handle, a);
    assert_at(kept[0].at, P);
    assert_at(kept[1].at, N);
    assert_ok(tn_request_reservations(request, &kept_reservations, &count));
    assert_int_equal(count, 1);
    assert_int_equal(kept_reservations[0].bytes, 7);
    assert_string_equal(kept_reservations[0].label, "label");
    tn_request_destroy(request);
    world_end(w);
}

/* Decide one endpoint. */
static tn_status decide(world *w, tn_handle handle, tn_location at,
                        const tn_reservation_spec *reservation) {
    const tn_requirement row = {handle, at};
    tn_request_spec spec = {sizeof(spec), "request", &row, 1, reservation, reservation != NULL};
    tn_request *request = NULL;
    tn_decision *d = NULL;
    tn_status status;

    assert_ok(tn_request_create(&spec, &request)); /* no manager is looked at (C42) */
    status = tn_controller_decide(w->controller, request, &d);
    tn_request_destroy(request);
    tn_decision_drop(d);
    return status;
}

static void cc089_building_does_not_validate_handles(void **state) {
    world *w = world_begin(*state, &one_value);
    tn_manager *other = MANAGER(w->f);
    tn_handle b = adopt_rep(w->f, other, P);

    assert_handle_error(decide(w, b, P, NULL), TN_HANDLE_FOREIGN);
    assert_int_equal(tn_last_error()->manager, tn_manager_id(w->m));
    world_end(w);
}

static void cc090_unknown_and_discarded_handles(void **state) {
    world *w = world_begin(*state, &one_value);
    tn_handle a = world_handle(w, "a"), unknown;
    char text[256];

    assert_ok(tn_handle_make(tn_manager_id(w->m), 1000, tt_type(), &unknown));
    assert_handle_error(decide(w, unknown, P, NULL), TN_HANDLE_UNKNOWN);
    snprintf(text, sizeof(text), "%s", tn_last_error()->message);
    discard(w->m, a);
    assert_handle_error(decide(w, a, P, NULL), TN_HANDLE_DISCARDED);
    assert_string_not_equal(tn_last_error()->message, text);
    world_end(w);
}

static void cc091_unavailable_device(void **state) {
    world *w = world_begin(*state, &one_value);
    const tn_reservation_spec there = {tn_location_cuda(9), 1, "r"};

    assert_status(decide(w, world_handle(w, "a"), tn_location_cuda(9), NULL), TN_ERR_PLAN);
    assert_int_equal(tn_last_error()->reason, TN_REASON_LOCATION_INVALID);
    assert_status(decide(w, world_handle(w, "a"), P, &there), TN_ERR_PLAN);
    assert_int_equal(tn_last_error()->reason, TN_REASON_LOCATION_INVALID);
    world_end(w);
}

/* ---- Policies -------------------------------------------------------------------------------- */

static void cc092_tier_definitions(void **state) {
    const tn_location to_itself[] = {N}, twice[] = {P, P};
    const tn_tier own = {N, to_itself, 1}, repeat = {N, twice, 2};
    const char *const accepted[] = {"P to H; H to P", "P to ", NULL};
    tn_policy *policy = NULL;

    (void)state;
    assert_status(tn_policy_tiered_lru(&own, 1, &policy), TN_ERR_VALUE);
    assert_status(tn_policy_tiered_lru(&repeat, 1, &policy), TN_ERR_VALUE);
    for (size_t i = 0; i < 3; i++) {
        size_t room = 0;

        policy = world_tiers(accepted[i]);
        assert_ok(tn_policy_fallbacks(policy, tn_location_cuda(100), NULL, &room));
        assert_int_equal(room, 0);
        tn_policy_destroy(policy);
    }
}

static void cc093_candidate_order_as_data(void **state) {
    tn_handle i0 = {1, 1, tt_type()}, i1 = {1, 2, tt_type()};
    const tn_candidate candidates[] = {{i0, P, 1, 0, 2, 0, "old"}, {i1, P, 1, 1, 1, 10, "new"}};
    tn_policy *policy = world_tiers(NULL);
    size_t order[2];

    (void)state;
    assert_ok(tn_policy_order(policy, candidates, 2, order));
    assert_int_equal(order[0], 0);
    assert_int_equal(order[1], 1);
    tn_policy_destroy(policy);
}

static void cc094_search_limit_values(void **state) {
    world *w = world_begin(*state, &one_value);
    tn_controller_config config = TN_CONTROLLER_CONFIG_INIT;
    tn_controller *controller = NULL;

    config.search_limit = 0; /* a negative one cannot be said */
    assert_status(tn_controller_create(w->m, &config, &controller), TN_ERR_VALUE);
    assert_null(controller);
    config.search_limit = 1;
    assert_ok(tn_controller_create(w->m, &config, &controller));
    tn_controller_destroy(controller);
    world_end(w);
}

typedef struct plain {
    const char *name;
    tn_config_pair pair;
} plain;

static const char *plain_name(void *context) { return ((plain *)context)->name; }

static const tn_config_pair *plain_config(void *context, size_t *out_count) {
    *out_count = 1;
    return &((plain *)context)->pair;
}

static tn_status plain_fallbacks(void *context, tn_location at, tn_location *out, size_t room,
                                 size_t *out_count) {
    (void)context, (void)at, (void)out, (void)room;
    *out_count = 0;
    return TN_OK;
}

static tn_status plain_order(void *context, const tn_candidate *candidates, size_t count,
                             size_t *out_order) {
    (void)context, (void)candidates;
    for (size_t i = 0; i < count; i++)
        out_order[i] = i;
    return TN_OK;
}

static tn_policy *plain_policy(plain *p) {
    tn_policy_spec spec = {sizeof(spec),    p,           plain_name, plain_config,
                           plain_fallbacks, plain_order, NULL};
    tn_policy *policy = NULL;

    assert_ok(tn_policy_create(&spec, &policy));
    return policy;
}

static void cc095_policy_name(void **state) {
    world *w = world_begin(*state, &one_value);
    plain p = {"  ", {"key", "value"}};
    tn_controller_config config = TN_CONTROLLER_CONFIG_INIT;
    tn_controller *controller = NULL;

    config.policy = plain_policy(&p);
    assert_status(tn_controller_create(w->m, &config, &controller), TN_ERR_VALUE);
    tn_policy_destroy(config.policy);
    world_end(w);
}

static void cc096_config_identity_with_a_blank_key(void **state) {
    world *w = world_begin(*state, &one_value);
    plain p = {"plain", {"", "value"}};
    tn_policy *policy = plain_policy(&p);
    tn_controller *controller = world_controller(w, policy, 0);
    tn_decision *d;

    assert_status(world_decide_for(w, controller, "a@H", NULL, &d), TN_ERR_VALUE);
    p.pair.key = "key";
    assert_ok(world_decide_for(w, controller, "a@H", NULL, &d));
    tn_decision_drop(d);
    tn_controller_destroy(controller);
    tn_policy_destroy(policy);
    world_end(w);
}

static void cc097_config_identity(void **state) {
    static const char *const tiers[] = {NULL, "P to ", "P to H; D0 to P, H", "D0 to P, H; P to H"};
    static const char *const texts[] = {
        "[]", "[pinned-host:[]]",
        "[pinned-host:[pageable-host],cuda:0:[pinned-host,pageable-host]]",
        "[cuda:0:[pinned-host,pageable-host],pinned-host:[pageable-host]]"};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        tn_policy *policy = world_tiers(tiers[i]);
        const tn_config_pair *pairs = NULL;
        size_t count = 0;

        assert_string_equal(tn_policy_name(policy), "deterministic-tiered-lru");
        assert_ok(tn_policy_config(policy, &pairs, &count));
        assert_int_equal(count, 1);
        assert_string_equal(pairs[0].key, "fallback_tiers");
        assert_string_equal(pairs[0].value, texts[i]); /* four different ones */
        tn_policy_destroy(policy);
    }
}

/* ---- Decisions ------------------------------------------------------------------------------- */

static const scenario cc098 = {
    .budgets = "D0=1, P=1, H=10",
    .values = "x 1 X @D0; z 1 X @P; q 1 X @H",
    .tiers = "D0 to P; P to H",
};

/* No such record can be built: every decision that is issued keeps the invariants. */
static void cc098_decision_record_invariants(void **state) {
    world *w = world_begin(*state, &cc098);
    tn_decision_info info = TN_DECISION_INFO_INIT;
    tn_explanation_info explained = TN_EXPLANATION_INFO_INIT;
    tn_eviction evictions[4] = {TN_EVICTION_INIT};
    size_t count = 4;
    tn_decision *d;

    assert_ok(world_decide_for(w, w->controller, "q@D0", "H:1", &d));
    assert_ok(tn_decision_read(d, &info));
    assert_int_equal(info.manager, tn_manager_id(w->m));
    assert_int_equal(info.expected_version, version(w->m));
    assert_true(info.explored_states >= 1);
    assert_string_equal(info.policy, "deterministic-tiered-lru");
    assert_int_equal(info.config_count, 1);
    assert_ok(tn_explanation_read(tn_decision_explanation(d), &explained));
    assert_int_equal(explained.feasible, 1);
    assert_string_equal(explained.plan, "request");
    assert_string_equal(tn_plan_name(tn_decision_plan(d)), "request");
    assert_string_equal(tn_request_name(tn_decision_request(d)), "request");
    assert_ok(tn_decision_evictions(d, evictions, &count));
    assert_int_equal(count, 2);
    assert_int_equal(info.eviction_count, 2);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(evictions[i].action.kind, TN_ACTION_MOVE);
        assert_int_equal(evictions[i].released_bytes, 1);
        assert_int_equal(evictions[i].reason, TN_EVICTION_MOVED_TO_TIER);
    }
    tn_decision_drop(d);
    world_end(w);
}

/* ---- Metadata -------------------------------------------------------------------------------- */

static const scenario two_values = {.budgets = "P=2", .values = "a 1 R @H,P; b 1 R @H,P; q 1 R @H"};

static void cc099_stable_keys(void **state) {
    world *w = world_begin(*state, &two_values);
    tn_handle a = world_handle(w, "a"), b = world_handle(w, "b");
    uint64_t before = version(w->m);

    assert_ok(tn_controller_set_metadata(w->controller, a, 0, "k"));
    assert_status(tn_controller_set_metadata(w->controller, b, 0, "k"), TN_ERR_VALUE);
    assert_ok(tn_controller_set_metadata(w->controller, a, 0, "k"));
    assert_ok(tn_controller_set_metadata(w->controller, a, 5, NULL));
    assert_ok(tn_controller_set_metadata(w->controller, b, 0, "k"));
    assert_status(tn_controller_set_metadata(w->controller, b, 0, " \t"), TN_ERR_VALUE);
    assert_status(tn_controller_set_metadata(w->controller, a, 0, "k"), TN_ERR_VALUE); /* b's */
    assert_int_equal(version(w->m), before);                                           /* C10 */
    world_end(w);
}

/* A departure (D12): the key of a discarded value is free again. */
static void cc100_key_of_a_discarded_value(void **state) {
    world *w = world_begin(*state, &two_values);
    tn_handle a = world_handle(w, "a"), b = world_handle(w, "b");

    assert_ok(tn_controller_set_metadata(w->controller, a, 0, "k"));
    discard(w->m, a);
    assert_ok(tn_controller_set_metadata(w->controller, b, 0, "k"));
    assert_handle_error(tn_controller_set_metadata(w->controller, a, 1, NULL), TN_HANDLE_DISCARDED);
    world_end(w);
}

static void cc101_metadata_per_controller(void **state) {
    world *w = world_begin(*state, &two_values);
    tn_controller *second = world_controller(w, NULL, 0);
    tn_decision *d;
    char *text;

    assert_ok(tn_controller_set_metadata(w->controller, world_handle(w, "a"), 7, "k"));
    assert_ok(tn_controller_set_metadata(second, world_handle(w, "b"), 0, "k"));
    assert_ok(tn_controller_set_metadata(second, world_handle(w, "b"), 0, NULL));
    world_use_once(w, "a@P"); /* an epoch of the first controller */
    assert_ok(world_decide_for(w, w->controller, "q@P", NULL, &d));
    text = world_reclaim(w, d);
    assert_string_equal(text, "drop b@P (rank 0, 1 at P, replica remains)");
    free(text);
    tn_decision_drop(d);
    assert_ok(world_decide_for(w, second, "q@P", NULL, &d));
    text = world_reclaim(w, d);
    assert_string_equal(text, "drop a@P (rank 0, 1 at P, replica remains)");
    free(text);
    tn_decision_drop(d);
    tn_controller_destroy(second);
    world_end(w);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(cc088_request_definitions),
    SPEC_BOTH(cc088_built_requests_keep_their_entries),
    SPEC_BOTH(cc089_building_does_not_validate_handles),
    SPEC_BOTH(cc090_unknown_and_discarded_handles),
    SPEC_BOTH(cc091_unavailable_device),
    SPEC_SERIAL(cc092_tier_definitions),
    SPEC_SERIAL(cc093_candidate_order_as_data),
    SPEC_BOTH(cc094_search_limit_values),
    SPEC_BOTH(cc095_policy_name),
    SPEC_BOTH(cc096_config_identity_with_a_blank_key),
    SPEC_SERIAL(cc097_config_identity),
    SPEC_BOTH(cc098_decision_record_invariants),
    SPEC_BOTH(cc099_stable_keys),
    SPEC_BOTH(cc100_key_of_a_discarded_value),
    SPEC_BOTH(cc101_metadata_per_controller),
};

TN_TEST_MAIN("spec.control_validation", tests)
