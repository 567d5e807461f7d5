/* SPDX-License-Identifier: MIT */
/*
 * The hot path of several values, and of uses: one section for all leases and reservations.
 */
#include "scenario.h"

static void borrow_two_warm(void *argument) {
    static const uint32_t both[] = {0, 1};
    (void)argument;
    for (int i = 0; i < 3; i++) { /* the first one makes the thread known, and the record's room */
        loan l;
        if (world_borrow(both, 2, P, &l) == TN_OK)
            world_return(&l, 0);
    }
}

static void drop_both(void *argument) {
    const tn_action actions[] = {tn_action_drop(W.values[1], P), tn_action_drop(W.values[0], P)};
    (void)argument;
    world_only_removes(true);
    (void)world_actions(actions, 2, 2);
}

static void hot_drop_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_host(2);
    RUN({"hot", borrow_two_warm, NULL}, {"drop", drop_both, NULL});
    world_end();
}
SCENARIO(hot_drop, 80)

static void hot_close_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_host(2);
    RUN({"hot", borrow_two_warm, NULL}, {"close", world_close, NULL});
    world_end();
}
SCENARIO(hot_close, 40)

static uint64_t version_before;

static void look_on(void *argument) {
    (void)argument;
    for (int i = 0; i < 3; i++) {
        look l;
        world_snapshot(&l);
        if (!l.head.exact)
            continue;
        SCHED_EQUAL((l.head.state_version - version_before) % 2, l.head.lease_count);
        SCHED_EQUAL(l.uses, 2 * l.head.lease_count);
    }
}

static void hot_snapshot_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_host(2);
    SCHED_OK(tn_manager_state_version(W.m, &version_before));
    RUN({"hot", borrow_two_warm, NULL}, {"look", look_on, NULL});
    world_end();
}
SCENARIO(hot_snapshot, 40)

/* ---- Uses: two leases and a reservation at once ---- */

static tn_controller *controller;
static tn_request *request;

static void use_thrice(void *argument) {
    tn_use *use = NULL;
    (void)argument;
    SCHED_OK(tn_use_create(controller, request, NULL, &use));
    for (int i = 0; i < 3; i++) {
        const void *data;
        tn_status status = tn_use_enter(use);
        if (status == TN_OK) {
            SCHED_OK(tn_use_value(use, W.values[0], P, &data));
            uint64_t serial = world_payload_see(data, 0);
            sched_point();
            world_payload_check(data, serial);
            SCHED_OK(tn_use_exit(use));
        } else {
            SCHED_CHECK(status == TN_ERR_PLAN || status == TN_ERR_BUDGET || status == TN_ERR_STALE);
        }
        SCHED_OK(tn_use_reset(use));
    }
    tn_use_destroy(use);
}

static void drop_first(void *argument) {
    (void)argument;
    (void)world_drop(0, P);
}

static void reserve_all(void *argument) {
    tn_reservation r;
    (void)argument;
    if (world_reserve(N, WORLD_BYTES, &r) == TN_OK)
        world_unreserve(&r);
}

static void use_begin(void) {
    tn_controller_config config = TN_CONTROLLER_CONFIG_INIT;
    tn_request_spec spec = TN_REQUEST_SPEC_INIT;
    const tn_reservation_spec room[] = {{N, WORLD_BYTES, "room"}};
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 2, 4);
    W.placement_unknown = W.lifetimes_unknown = true;
    world_on_host(1);
    SCHED_OK(world_ensure(1, N));
    config.redecisions = 8;
    SCHED_OK(tn_controller_create(W.m, &config, &controller));
    const tn_requirement needs[] = {{W.values[0], P}, {W.values[1], N}};
    spec.name = "use";
    spec.requirements = needs;
    spec.requirement_count = 2;
    spec.reservations = room;
    spec.reservation_count = 1;
    SCHED_OK(tn_request_create(&spec, &request));
}

static void use_end(void) {
    tn_request_destroy(request);
    tn_controller_destroy(controller);
    world_end();
}

static void hot_use_body(void) {
    use_begin();
    RUN({"use", use_thrice, NULL}, {"drop", drop_first, NULL}, {"reserve", reserve_all, NULL});
    use_end();
}
SCENARIO(hot_use, 80)

/* A use's leases and reservation begin and end together, or one by one: their number tells. */
static void look_at_uses(void *argument) {
    (void)argument;
    for (int i = 0; i < 3; i++) {
        look l;
        world_snapshot(&l);
        if (!l.head.exact)
            continue;
        uint64_t standing = l.head.lease_count + l.head.reservation_count;
        SCHED_EQUAL((l.head.state_version - version_before) % 2, standing % 2);
        SCHED_EQUAL(l.uses, l.head.lease_count);
        SCHED_EQUAL(l.reserved[1], l.head.reservation_count * WORLD_BYTES);
    }
}

static void hot_use_snapshot_body(void) {
    use_begin();
    SCHED_OK(tn_manager_state_version(W.m, &version_before));
    RUN({"use", use_thrice, NULL}, {"look", look_at_uses, NULL});
    use_end();
}
SCENARIO(hot_use_snapshot, 60)

REACHES(tn__branch_hot_path_undone, tn__branch_use_hits_at_once, tn__branch_removal_sees_pin,
        tn__branch_removal_waits_for_acquiring)

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(hot_drop), cmocka_unit_test(hot_close),        cmocka_unit_test(hot_snapshot),
    cmocka_unit_test(hot_use),  cmocka_unit_test(hot_use_snapshot), cmocka_unit_test(reaches),
};

TN_TEST_MAIN("schedule.hot", tests)
