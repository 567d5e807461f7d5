/* SPDX-License-Identifier: MIT */
/*
 * Who goes when: loads, plans, scopes and reservations that want the same values or bytes, and
 * leases in between.
 */
#include "scenario.h"

static tn_status outcome[3];

static void resident(uint32_t value, tn_location at) { SCHED_OK(world_ensure(value, at)); }

/* ---- Loads ---- */

static void ensure_0(void *argument) {
    tn_status *out = argument;
    *out = world_ensure(0, P);
}

static void ensure_ensure_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    RUN({"first", ensure_0, &outcome[0]}, {"second", ensure_0, &outcome[1]},
        {"third", ensure_0, &outcome[2]});
    for (int i = 0; i < 3; i++)
        SCHED_OK(outcome[i]);
    SCHED_EQUAL(W.loads[0], 1); /* single flight */
    world_end();
}
SCENARIO(ensure_ensure, 40)

/* One load fails: those who waited for it have its error, who comes later loads again. */
static void ensure_fails_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 1, 4, 4);
    W.fail_loads[0] = 1;
    RUN({"first", ensure_0, &outcome[0]}, {"second", ensure_0, &outcome[1]},
        {"third", ensure_0, &outcome[2]});
    uint32_t ok = 0;
    for (int i = 0; i < 3; i++)
        ok += outcome[i] == TN_OK;
    SCHED_CHECK(ok < 3 && (ok > 0) == (W.loads[0] == 1) && W.loads[0] < 2);
    SCHED_OK(world_ensure(0, P)); /* nothing is left of the failure (F1) */
    world_end();
}
SCENARIO(ensure_fails, 30)

static void ensure_1(void *argument) {
    tn_status *out = argument;
    *out = world_ensure(1, P);
}

/* Bytes for one of two: one has them, the other is refused. */
static void ensure_full_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 1, 4, 4);
    RUN({"first", ensure_0, &outcome[0]}, {"second", ensure_1, &outcome[1]});
    SCHED_CHECK((outcome[0] == TN_OK) != (outcome[1] == TN_OK));
    SCHED_CHECK(outcome[0] == TN_ERR_BUDGET || outcome[1] == TN_ERR_BUDGET);
    world_end();
}
SCENARIO(ensure_full, 30)

/* A load that holds the last bytes and then fails: who waited for them gets them. */
static void ensure_waits_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 1, 4, 4);
    W.fail_loads[0] = 1;
    RUN({"fails", ensure_0, &outcome[0]}, {"waits", ensure_1, &outcome[1]});
    SCHED_CHECK(outcome[0] != TN_OK);
    SCHED_OK(outcome[1]);
    world_end();
}
SCENARIO(ensure_waits, 30)

/* ---- Plans ---- */

/* Two plans that each make room for what they bring. Full before and after; both are feasible in
 * any order, so both run. */
static void exchange(void *argument) {
    uint32_t out = *(const uint32_t *)argument;
    const tn_action actions[] = {tn_action_drop(W.values[out], P),
                                 tn_action_ensure(W.values[out + 2], P)};
    world_only_removes(false);
    SCHED_OK(world_actions(actions, 2, 2));
}

static void plan_plan_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 2, 2, 2);
    resident(0, P);
    resident(1, P);
    RUN({"first", exchange, (void *)&zero}, {"second", exchange, (void *)&one});
    SCHED_EQUAL(W.loads[2] + W.loads[3], 2);
    world_end();
}
SCENARIO(plan_plan, 50)

/* The same values, in opposite directions. */
static void there(void *argument) {
    const tn_action actions[] = {tn_action_ensure(W.values[0], N), tn_action_drop(W.values[0], P),
                                 tn_action_ensure(W.values[1], N)};
    (void)argument;
    W.placement_unknown = true;
    SCHED_OK(world_actions(actions, 3, 0));
}

static void back(void *argument) {
    const tn_action actions[] = {tn_action_ensure(W.values[1], P), tn_action_drop(W.values[1], N),
                                 tn_action_ensure(W.values[0], P)};
    (void)argument;
    W.placement_unknown = true;
    SCHED_OK(world_actions(actions, 3, 0));
}

static void plan_cross_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 2, 2, 2);
    resident(0, P);
    resident(1, N);
    RUN({"there", there, NULL}, {"back", back, NULL});
    world_end();
}
SCENARIO(plan_cross, 50)

/* Two plans that use the same bytes for a while, and a reader of what is there for that while only:
 * both run, and nobody is lent what its plan removes. */
static void pass_through(void *argument) {
    uint32_t value = *(const uint32_t *)argument;
    const tn_action actions[] = {tn_action_ensure(W.values[value], P),
                                 tn_action_drop(W.values[value], P)};
    SCHED_OK(world_actions(actions, 2, 2));
}

static void visit_0(void *argument) {
    (void)argument;
    (void)world_visit(0, P);
    (void)world_visit(1, P);
}

static void plan_transient_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 1, 2, 2);
    RUN({"first", pass_through, (void *)&zero}, {"second", pass_through, (void *)&one},
        {"visit", visit_0, NULL});
    SCHED_EQUAL(W.loads[0] + W.loads[1], 2);
    world_end();
}
SCENARIO(plan_transient, 60, 1246180236134101151u)

/* The same one at a time, twice each, from copies: a source keeps the others out. */
static void pass_through_twice(void *argument) {
    pass_through(argument);
    pass_through(argument);
}

static void plan_serial_body(void) {
    world_begin(TN_MODE_SERIAL, TN_REAPER_MANUAL, 1, 2, 2);
    resident(0, N);
    resident(1, N);
    RUN({"first", pass_through_twice, (void *)&zero}, {"second", pass_through_twice, (void *)&one});
    world_end();
}
SCENARIO(plan_serial, 40)

/* A plan between a reader and a reservation: it runs whole, or nothing of it (TN_ERR_PLAN_EXEC
 * would fail the schedule). */
static void exchange_or_not(void *argument) {
    const tn_action actions[] = {tn_action_drop(W.values[0], P), tn_action_ensure(W.values[1], P)};
    tn_status *out = argument;
    *out = world_actions(actions, 2, 2);
}

static void reserve_some(void *argument) {
    tn_reservation r;
    (void)argument;
    if (world_reserve(P, WORLD_BYTES / 2, &r) != TN_OK)
        return;
    sched_point();
    world_unreserve(&r);
}

static void plan_between_body(void) {
    look l;
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 1, 2, 2);
    resident(0, P);
    RUN({"plan", exchange_or_not, &outcome[0]}, {"visit", visit_0, NULL},
        {"reserve", reserve_some, NULL});
    world_snapshot(&l);
    SCHED_EQUAL(l.used[0], WORLD_BYTES);
    SCHED_EQUAL(W.loads[1], outcome[0] == TN_OK);
    world_end();
}
SCENARIO(plan_between, 60)

/* A plan takes a replica and then fails half-way, beside a drop of that replica and a reader: what
 * it gives back must not be another plan's by then. */
static void load_then_drop(void *argument) {
    const tn_action actions[] = {tn_action_ensure(W.values[1], P), tn_action_drop(W.values[0], P)};
    (void)argument;
    tn_status status = tn_manager_execute_actions(W.m, "plan", actions, 2, NULL, NULL);
    SCHED_CHECK(status == TN_ERR_PLAN_EXEC || status == TN_ERR_PLAN);
}

static void drop_it(void *argument) {
    (void)argument;
    world_only_removes(true);
    (void)!world_drop(0, P);
}

static void visit_it(void *argument) {
    (void)argument;
    (void)!world_visit(0, P);
}

static void plan_gives_back_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 2, 2, 2);
    resident(0, P);
    W.fail_loads[1] = 1;
    W.placement_unknown = true;
    RUN({"fails", load_then_drop, NULL}, {"drops", drop_it, NULL}, {"visits", visit_it, NULL});
    world_end();
}
SCENARIO(plan_gives_back, 60, 13531880324909077702u)

/* A reservation that comes and goes, beside which each plan alone has room: both run. */
static void reserve_all(void *argument) {
    tn_reservation r;
    (void)argument;
    for (int i = 0; i < 2; i++)
        if (world_reserve(P, WORLD_BYTES, &r) == TN_OK)
            world_unreserve(&r);
}

static void plan_beside_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 2, 2, 2);
    RUN({"first", pass_through, (void *)&zero}, {"second", pass_through, (void *)&one},
        {"reserve", reserve_all, NULL});
    SCHED_EQUAL(W.loads[0] + W.loads[1], 2);
    world_end();
}
SCENARIO(plan_beside, 60)

/* A plan bound to a version: a lease in between makes it stale, or comes after it. */
static uint64_t bound_to;

static void bound_plan(void *argument) {
    const tn_action actions[] = {tn_action_ensure(W.values[1], P)};
    tn_run_options options = TN_RUN_OPTIONS_INIT;
    (void)argument;
    options.expected_version = bound_to;
    outcome[0] = tn_manager_execute_actions(W.m, "bound", actions, 1, &options, NULL);
    SCHED_CHECK(outcome[0] == TN_OK || outcome[0] == TN_ERR_STALE);
    W.placement += outcome[0] == TN_OK;
}

static void plan_stale_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 2, 2);
    resident(0, P);
    SCHED_OK(tn_manager_state_version(W.m, &bound_to));
    RUN({"plan", bound_plan, NULL}, {"visit", visit_0, NULL}, {"reserve", reserve_some, NULL});
    world_end();
}
SCENARIO(plan_stale, 30)

/* ---- Bytes ---- */

static void reserve_one(void *argument) {
    tn_status *out = argument;
    tn_reservation r;
    *out = world_reserve(P, WORLD_BYTES, &r);
    if (*out != TN_OK)
        return;
    sched_point();
    world_unreserve(&r);
}

static void drop_0(void *argument) {
    (void)argument;
    (void)world_drop(0, P);
}

/* Storage is gone before its bytes are another's: the payloads' own sum is checked (B1). */
static void bytes_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 1, 2, 2);
    resident(0, P);
    RUN({"drop", drop_0, NULL}, {"ensure", ensure_1, &outcome[1]},
        {"reserve", reserve_one, &outcome[2]});
    SCHED_CHECK(outcome[1] == TN_OK || outcome[1] == TN_ERR_BUDGET);
    world_end();
}
SCENARIO(bytes, 40)

/* ---- Scopes ---- */

static tn_plan *plans[2];

static void make_plan(uint32_t i) {
    const tn_action reclaim[] = {tn_action_drop(W.values[i], P)};
    const tn_action enter[] = {tn_action_ensure(W.values[i + 2], P)};
    const tn_action leave[] = {tn_action_drop(W.values[i + 2], P)};
    const tn_reservation_spec reserved[] = {{N, WORLD_BYTES, "room"}};
    tn_plan_spec spec = TN_PLAN_SPEC_INIT;
    spec.name = "scope";
    spec.reclaim = reclaim;
    spec.enter = enter;
    spec.exit = leave;
    spec.reservations = reserved;
    spec.reclaim_count = spec.enter_count = spec.exit_count = spec.reservation_count = 1;
    SCHED_OK(tn_plan_create(&spec, &plans[i]));
}

static void in_scope(void *argument) {
    uint32_t i = *(const uint32_t *)argument;
    tn_scope *scope = NULL;
    loan l;
    SCHED_OK(tn_scope_create(W.m, plans[i], NULL, &scope));
    SCHED_OK(tn_scope_enter(scope));
    uint32_t value = i + 2;
    SCHED_OK(world_borrow(&value, 1, P, &l));
    world_return(&l, 0);
    SCHED_OK(tn_scope_close(scope));
    SCHED_OK(tn_scope_destroy(scope));
    W.placement += 3;
    W.lifetimes += 2;
}

static void scope_scope_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 2, 2, 2);
    resident(0, P);
    resident(1, P);
    make_plan(0);
    make_plan(1);
    RUN({"first", in_scope, (void *)&zero}, {"second", in_scope, (void *)&one});
    tn_plan_destroy(plans[0]);
    tn_plan_destroy(plans[1]);
    world_end();
}
SCENARIO(scope_scope, 50)

/* Plans that wait for what an exit has claimed do not keep the exit waiting. */
static void wait_for_exit(void *argument) {
    (void)argument;
    for (int i = 0; i < 2; i++)
        (void)world_ensure(2, N);
}

static void scope_exit_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 2, 2, 2);
    resident(0, P);
    make_plan(0);
    W.placement_unknown = true;
    RUN({"scope", in_scope, (void *)&zero}, {"waits", wait_for_exit, NULL});
    tn_plan_destroy(plans[0]);
    world_end();
}
SCENARIO(scope_exit, 30)

/* The entry of one fails half-way: its reservation is given back, its claims, and what it has brought
 * stays (F1). */
static void enter_in_vain(void *argument) {
    tn_scope *scope = NULL;
    (void)argument;
    SCHED_OK(tn_scope_create(W.m, plans[0], NULL, &scope));
    SCHED_EQUAL(tn_scope_enter(scope), TN_ERR_PLAN_EXEC);
    SCHED_OK(tn_scope_destroy(scope));
}

static void reserve_room(void *argument) {
    tn_reservation r;
    (void)argument;
    if (world_reserve(N, WORLD_BYTES, &r) == TN_OK)
        world_unreserve(&r);
}

static void scope_fails_body(void) {
    look l;
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 2, 3, 2);
    resident(0, P);
    resident(1, P);
    make_plan(0);
    make_plan(1);
    W.fail_loads[2] = 1;
    W.placement_unknown = true;
    RUN({"fails", enter_in_vain, NULL}, {"second", in_scope, (void *)&one},
        {"reserve", reserve_room, NULL});
    world_snapshot(&l);
    SCHED_EQUAL(l.reserved[1], 0);
    tn_plan_destroy(plans[0]);
    tn_plan_destroy(plans[1]);
    W.lifetimes += 2; /* the reservation that was made and given back */
    world_end();
}
SCENARIO(scope_fails, 30)

/* ---- Adoption from a reservation ---- */

static tn_reservation shared;

/* What is refused belongs to nobody: the manager takes it later. */
static void adopt_reserved(void *argument) {
    tn_payload payload;
    tn_handle handle;
    tn_status *out = argument;
    SCHED_OK(world_payload_make(P, 0, &payload));
    *out = tn_manager_adopt_reserved(W.m, payload, P, TN_EXCLUSIVE, &shared, &handle);
    if (*out == TN_OK)
        return;
    SCHED_CHECK(*out == TN_ERR_LIFETIME_CLOSED || *out == TN_ERR_BUDGET);
    SCHED_OK(tn_manager_adopt(W.m, payload, P, TN_EXCLUSIVE, &handle));
    SCHED_OK(tn_manager_discard(W.m, handle, NULL));
}

static void release_reserved(void *argument) {
    (void)argument;
    SCHED_OK(tn_reservation_release(&shared));
}

/* The bytes go to one of them: to the value, or back. */
static void adopt_release_body(void) {
    look l;
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 2, 2);
    W.placement_unknown = true;
    SCHED_OK(world_reserve(P, WORLD_BYTES, &shared));
    W.lifetimes++; /* its release, by whomever */
    RUN({"adopt", adopt_reserved, &outcome[0]}, {"adopt too", adopt_reserved, &outcome[1]},
        {"release", release_reserved, NULL});
    SCHED_CHECK(outcome[0] != TN_OK || outcome[1] != TN_OK);
    world_snapshot(&l);
    SCHED_EQUAL(l.used[0], (outcome[0] == TN_OK || outcome[1] == TN_OK) * WORLD_BYTES);
    SCHED_EQUAL(l.reserved[0], 0);
    world_end();
}
SCENARIO(adopt_release, 30)

/* ---- The serial manager: a callback keeps everybody out ---- */

static void visit_or_refused(void *argument) {
    (void)argument;
    (void)world_visit(0, P);
    (void)world_visit(0, P);
}

static void serial_guard_body(void) {
    world_begin(TN_MODE_SERIAL, TN_REAPER_MANUAL, 2, 2, 2);
    resident(0, P);
    RUN({"load", ensure_1, &outcome[0]}, {"plan", exchange_or_not, &outcome[1]},
        {"visit", visit_or_refused, NULL});
    SCHED_CHECK(outcome[0] == TN_OK || outcome[0] == TN_ERR_REENTRANCY);
    W.placement_unknown = true; /* the plan's ensure may be one that changes nothing */
    world_end();
}
SCENARIO(serial_guard, 50)

/* A close that a callback has refused can be made again (M189, M216). */
static tn_scope *entered;

static void close_at_last(void *argument) {
    tn_status status;
    (void)argument;
    while ((status = tn_scope_close(entered)) == TN_ERR_REENTRANCY)
        sched_pause_here();
    SCHED_OK(status);
}

static void serial_scope_body(void) {
    look l;
    world_begin(TN_MODE_SERIAL, TN_REAPER_MANUAL, 3, 2, 2);
    resident(0, P);
    make_plan(0);
    SCHED_OK(tn_scope_create(W.m, plans[0], NULL, &entered));
    SCHED_OK(tn_scope_enter(entered));
    W.placement_unknown = true;
    RUN({"load", ensure_1, &outcome[0]}, {"close", close_at_last, NULL});
    world_snapshot(&l);
    SCHED_EQUAL(l.reserved[1], 0);
    SCHED_EQUAL(l.used[0], (outcome[0] == TN_OK) * WORLD_BYTES);
    SCHED_OK(tn_scope_destroy(entered));
    tn_plan_destroy(plans[0]);
    W.lifetimes += 2; /* its reservation */
    world_end();
}
SCENARIO(serial_scope, 40)

/* Two that close one scope: the second waits for the first, and is told of its end. */
static void close_entered(void *argument) {
    (void)argument;
    SCHED_OK(tn_scope_close(entered));
    SCHED_CHECK(!tn_scope_active(entered));
}

static void scope_closed_twice_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 2, 2, 2);
    resident(0, P);
    make_plan(0);
    SCHED_OK(tn_scope_create(W.m, plans[0], NULL, &entered));
    SCHED_OK(tn_scope_enter(entered));
    RUN({"first", close_entered, NULL}, {"second", close_entered, NULL});
    SCHED_OK(tn_scope_destroy(entered));
    tn_plan_destroy(plans[0]);
    W.placement += 3;
    W.lifetimes += 2;
    world_end();
}
SCENARIO(scope_closed_twice, 20)

REACHES(tn__branch_flow_waits_for_handle, tn__branch_flow_waits_behind,
        tn__branch_flow_waits_for_bytes, tn__branch_flow_joins_load, tn__branch_flow_rechecks,
        tn__branch_flow_moved_on, tn__branch_claims_refused, tn__branch_plan_meets_use,
        tn__branch_plan_is_stale)

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(ensure_ensure),   cmocka_unit_test(ensure_fails),
    cmocka_unit_test(ensure_full),     cmocka_unit_test(ensure_waits),
    cmocka_unit_test(plan_plan),       cmocka_unit_test(plan_cross),
    cmocka_unit_test(plan_transient),  cmocka_unit_test(plan_serial),
    cmocka_unit_test(plan_between),    cmocka_unit_test(plan_beside),
    cmocka_unit_test(plan_gives_back), cmocka_unit_test(plan_stale),
    cmocka_unit_test(bytes),           cmocka_unit_test(scope_scope),
    cmocka_unit_test(scope_exit),      cmocka_unit_test(scope_fails),
    cmocka_unit_test(adopt_release),   cmocka_unit_test(serial_guard),
    cmocka_unit_test(serial_scope),    cmocka_unit_test(scope_closed_twice),
    cmocka_unit_test(reaches),
};

TN_TEST_MAIN("schedule.transitions", tests)
