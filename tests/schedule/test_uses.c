/* SPDX-License-Identifier: MIT */
/*
 * Uses of a controller that need each other's room: hits, misses, evictions, and others' plans in
 * between.
 */
#include "scenario.h"

static tn_controller *controller;
static uint32_t most_redecisions;

typedef struct user {
    const uint32_t values[2];
    size_t count;
    tn_location at;
    tn_request *request;
    uint32_t entered, refused;
} user;

static void begin(uint32_t room, uint32_t redecisions) {
    tn_controller_config config = TN_CONTROLLER_CONFIG_INIT;
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, room, 2, room);
    W.placement_unknown = true; /* what the uses bring and evict */
    config.redecisions = most_redecisions = redecisions;
    SCHED_OK(tn_controller_create(W.m, &config, &controller));
}

static void request_of(user *u) {
    tn_requirement requirements[2];
    tn_request_spec spec = TN_REQUEST_SPEC_INIT;
    for (size_t i = 0; i < u->count; i++)
        requirements[i] = (tn_requirement){W.values[u->values[i]], u->at};
    spec.name = "use";
    spec.requirements = requirements;
    spec.requirement_count = u->count;
    SCHED_OK(tn_request_create(&spec, &u->request));
}

static void end(user *users, size_t count) {
    for (size_t i = 0; i < count; i++)
        tn_request_destroy(users[i].request);
    tn_controller_destroy(controller);
    world_end();
}

/* Everything that the use has stays while it is entered (L1, C138). */
static void inside(user *u, const tn_use *use) {
    const void *data[2];
    uint64_t serials[2];
    for (size_t i = 0; i < u->count; i++) {
        SCHED_OK(tn_use_value(use, W.values[u->values[i]], u->at, &data[i]));
        serials[i] = world_payload_see(data[i], u->values[i]);
    }
    sched_point();
    for (size_t i = 0; i < u->count; i++)
        world_payload_check(data[i], serials[i]);
}

/* A refusal is final: no room while others use it, or the last decision was overtaken too. */
static void refused(const tn_use *use, tn_status status) {
    tn_use_info info = TN_USE_INFO_INIT;
    SCHED_OK(tn_use_read(use, &info));
    bool overtaken = status == TN_ERR_STALE || status == TN_ERR_UNAVAILABLE;
    bool full = status == TN_ERR_PLAN || status == TN_ERR_BUDGET;
    if (overtaken ? info.redecisions < most_redecisions : !full)
        sched_fail(__FILE__, __LINE__, "a use was refused by %s: %s", tn_status_name(status),
                   tn_last_error()->message);
}

static void use_once(user *u) {
    const tn_transfer_stream stream = {.at = C0, .stream = W.stream};
    tn_use_options options = TN_USE_OPTIONS_INIT;
    tn_use *use = NULL;
    options.consumers = &stream;
    options.consumer_count = u->at.kind == TN_LOCATION_CUDA;
    SCHED_OK(tn_use_create(controller, u->request, &options, &use));
    tn_status status = tn_use_enter(use);
    if (status == TN_OK) {
        u->entered++;
        inside(u, use);
        SCHED_OK(tn_use_exit(use));
        W.lifetimes += u->at.kind == TN_LOCATION_CUDA ? 3 : 2;
    } else {
        u->refused++;
        refused(use, status);
    }
    tn_use_destroy(use);
}

static void uses(void *argument) {
    use_once(argument);
    use_once(argument);
}

/* Everything fits: no use is refused, also while the other one's load has bytes charged. */
static user fit[] = {{{0, 1}, 2, {TN_LOCATION_PAGEABLE, 0}, NULL, 0, 0},
                     {{1, 2}, 2, {TN_LOCATION_PAGEABLE, 0}, NULL, 0, 0}};

static void use_use_fit_body(void) {
    begin(3, 3);
    request_of(&fit[0]);
    request_of(&fit[1]);
    RUN({"first", uses, &fit[0]}, {"second", uses, &fit[1]});
    SCHED_EQUAL(fit[0].entered + fit[1].entered, 4);
    end(fit, 2);
}
SCENARIO(use_use_fit, 60)

/* Room for two of three values, each use needs one: evictions, and refusals only while both are
 * in use. */
static user tight[] = {{{0}, 1, {TN_LOCATION_PAGEABLE, 0}, NULL, 0, 0},
                       {{1}, 1, {TN_LOCATION_PAGEABLE, 0}, NULL, 0, 0},
                       {{2}, 1, {TN_LOCATION_PAGEABLE, 0}, NULL, 0, 0}};

static void use_use_evict_body(void) {
    begin(2, 3);
    for (size_t i = 0; i < 3; i++)
        request_of(&tight[i]);
    RUN({"first", uses, &tight[0]}, {"second", uses, &tight[1]}, {"third", uses, &tight[2]});
    SCHED_CHECK(tight[0].entered + tight[1].entered + tight[2].entered >= 2);
    end(tight, 3);
}
SCENARIO(use_use_evict, 70, 11807503087254159099u)

/* On a device: leases are pending after the exit, and evictions must wait for that, or be refused. */
static user device[] = {{{0}, 1, {TN_LOCATION_CUDA, 0}, NULL, 0, 0},
                        {{1}, 1, {TN_LOCATION_CUDA, 0}, NULL, 0, 0}};

static void use_use_device_body(void) {
    begin(1, 3);
    request_of(&device[0]);
    request_of(&device[1]);
    RUN({"first", uses, &device[0]}, {"second", uses, &device[1]});
    SCHED_CHECK(device[0].entered + device[1].entered >= 1);
    end(device, 2);
}
/* A value that a plan in flight was about to remove; the second use has to decide again. */
SCENARIO(use_use_device, 50, 7371668260580547445u)

/* Beside a thread that removes what they need, and one that borrows without a controller. */
static void drop_them(void *argument) {
    (void)argument;
    (void)world_drop(0, P);
    (void)world_drop(1, P);
}

static void use_drop_body(void) {
    begin(2, 8); /* more than others can change */
    request_of(&tight[0]);
    request_of(&tight[1]);
    SCHED_OK(world_ensure(0, P));
    RUN({"first", uses, &tight[0]}, {"second", uses, &tight[1]}, {"drop", drop_them, NULL});
    SCHED_EQUAL(tight[0].entered + tight[1].entered, 4);
    end(tight, 2);
}
SCENARIO(use_drop, 60)

/* Without a second decision: whoever comes too late is stale, never half-way in. */
static void use_once_each(void *argument) { use_once(argument); }

static void use_stale_body(void) {
    begin(2, 0);
    for (size_t i = 0; i < 3; i++)
        request_of(&tight[i]);
    SCHED_OK(world_ensure(3, P));
    RUN({"first", use_once_each, &tight[0]}, {"second", use_once_each, &tight[1]},
        {"third", use_once_each, &tight[2]});
    SCHED_CHECK(tight[0].entered + tight[1].entered + tight[2].entered >= 1);
    end(tight, 3);
}
SCENARIO(use_stale, 50)

REACHES(tn__branch_use_hits, tn__branch_use_decides_again, tn__branch_plan_is_stale,
        tn__branch_flow_waits_for_bytes, tn__branch_reader_finds_taken)

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(use_use_fit),    cmocka_unit_test(use_use_evict),
    cmocka_unit_test(use_use_device), cmocka_unit_test(use_drop),
    cmocka_unit_test(use_stale),      cmocka_unit_test(reaches),
};

TN_TEST_MAIN("schedule.uses", tests)
