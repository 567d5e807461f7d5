/* SPDX-License-Identifier: MIT */
/*
 * Leases against removals, moves, the collector, and the ends of threads.
 */
#include "scenario.h"

static tn_status first_status, second_status;

/* ---- Acquire against discard ---- */

static void borrow_two(void *argument) {
    static const uint32_t both[] = {0, 1};
    loan l;
    (void)argument;
    if (world_borrow(both, 2, P, &l) == TN_OK)
        world_return(&l, 0);
}

static void borrow_hot(void *argument) {
    (void)argument;
    (void)world_visit(2, P); /* from now on by the leaf path */
    (void)world_visit(1, P);
    (void)world_visit(1, P);
}

static void discard_one(void *argument) {
    (void)argument;
    world_only_removes(true);
    (void)world_discard(1);
}

static void acquire_many_discard_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_host(3);
    RUN({"two", borrow_two, NULL}, {"hot", borrow_hot, NULL}, {"discard", discard_one, NULL});
    world_end();
}
SCENARIO(acquire_many_discard, 120)

/* One of each: they can never both lose. */
static void borrow_once(void *argument) {
    uint32_t value = 1;
    loan l;
    (void)argument;
    first_status = world_borrow(&value, 1, P, &l);
    if (first_status == TN_OK)
        world_return(&l, 0);
}

static void drop_once(void *argument) {
    (void)argument;
    world_only_removes(true);
    second_status = world_drop(1, P);
}

static void acquire_or_drop_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_host(2);
    RUN({"borrow", borrow_once, NULL}, {"drop", drop_once, NULL});
    SCHED_CHECK(first_status == TN_OK || second_status == TN_OK);
    world_end();
}
SCENARIO(acquire_or_drop, 60)

static void fallback_body(void) {
    sched_without_membarrier();
    acquire_or_drop_body();
}
SCENARIO(fallback, 60)

/* The leaf path, warm, against a drop and the next load. */
static void leaf_twice(void *argument) {
    (void)argument;
    for (int i = 0; i < 3; i++)
        (void)world_visit(i == 0 ? 0 : 1, P);
}

static void drop_and_ensure(void *argument) {
    (void)argument;
    world_only_removes(true);
    if (world_drop(1, P) == TN_OK)
        SCHED_OK(world_ensure(1, P));
}

static void leaf_drop_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 2, 2, 2);
    world_on_host(2);
    RUN({"leaf", leaf_twice, NULL}, {"drop", drop_and_ensure, NULL});
    world_end();
}
SCENARIO(leaf_drop, 80)

/* Several removals as one plan: one decision for all of them. */
static void drop_all(void *argument) {
    (void)argument;
    const tn_action actions[] = {tn_action_drop(W.values[0], P), tn_action_drop(W.values[1], P),
                                 tn_action_drop(W.values[2], P)};
    world_only_removes(true);
    (void)world_actions(actions, 3, 3);
}

static void many_drop_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_host(3);
    RUN({"two", borrow_two, NULL}, {"leaf", leaf_twice, NULL}, {"drop", drop_all, NULL});
    world_end();
}
SCENARIO(many_drop, 60)

/* A reader that aborts one removal and then fails by another: the first one tries again. */
static void drop_value(void *argument) {
    uint32_t value = *(const uint32_t *)argument;
    world_only_removes(true);
    (void)world_drop(value, P);
}

static void two_removals_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_host(2);
    RUN({"two", borrow_two, NULL}, {"drop 0", drop_value, (void *)&zero},
        {"drop 1", drop_value, (void *)&one});
    world_end();
}
SCENARIO(two_removals, 60)

/* A refusal names the replica that is in use, not the other one. Each round one loan, which lasts as
 * long as the attempt to discard. */
#define ROUNDS 4
static volatile int begun, tried, ended;

static void borrow_until_tried(void *argument) {
    static const uint32_t both[] = {1, 0}; /* by the slow path */
    loan l;
    (void)argument;
    for (int i = 1; i <= ROUNDS; i++) {
        begun = i;
        if (world_borrow(both, 2, P, &l) != TN_OK)
            break;
        while (tried < i)
            sched_pause_here();
        world_return(&l, 0);
        ended = i;
    }
    begun = ended = ROUNDS;
}

static void discard_two_places(void *argument) {
    (void)argument;
    for (int i = 1; i <= ROUNDS; i++) {
        while (begun < i)
            sched_pause_here();
        tn_status status = world_discard(1);
        if (status == TN_ERR_IN_USE) {
            SCHED_EQUAL(tn_last_error()->at.kind, TN_LOCATION_PAGEABLE);
            SCHED_EQUAL(tn_last_error()->use_count, 1);
        }
        tried = i;
        while (ended < i)
            sched_pause_here();
    }
}

static void discard_refused_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_host(2);
    SCHED_OK(world_ensure(1, N));
    RUN({"borrow", borrow_until_tried, NULL}, {"discard", discard_two_places, NULL});
    world_end();
}
SCENARIO(discard_refused, 100)

/* ---- Collecting what was replaced, under a reader ---- */

static void visit_once(void *argument) {
    (void)argument;
    (void)world_visit(1, P); /* a thread's first one: by the slow path */
}

static void step_once(void *argument) {
    uint64_t completed = 0;
    (void)argument;
    SCHED_OK(tn_manager_step(W.m, &completed));
}

/* It replaces a version, and retires no descriptor, for which the collector would wait first. */
static void copy_once(void *argument) {
    (void)argument;
    SCHED_OK(world_ensure(1, N));
}

static void collect_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_host(2);
    RUN({"visit", visit_once, NULL}, {"copy", copy_once, NULL}, {"collect", step_once, NULL});
    world_end();
}
SCENARIO(collect, 120)

/* ---- Move ---- */

static void visit_both_ends(void *argument) {
    (void)argument;
    tn_status old = world_visit(0, P), new = world_visit(0, N);
    old = old == TN_OK ? TN_OK : world_visit(0, P);
    (void)new;
    (void)old;
}

static void move_away(void *argument) {
    (void)argument;
    (void)world_move(0, N, P);
}

static void move_acquire_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 2, 2, 2);
    world_on_host(2);
    RUN({"visit", visit_both_ends, NULL}, {"move", move_away, NULL}, {"leaf", leaf_twice, NULL});
    world_end();
}
SCENARIO(move_acquire, 50)

/* ---- Threads that end ---- */

static void visit_and_exit(void *argument) {
    (void)argument;
    (void)world_visit(1, P);
    (void)world_visit(0, P);
}

static void thread_exit_scan_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_host(2);
    RUN({"first", visit_and_exit, NULL}, {"second", visit_and_exit, NULL},
        {"drop", drop_and_ensure, NULL});
    world_end();
}
SCENARIO(thread_exit_scan, 60)

REACHES(tn__branch_reader_aborts_removal, tn__branch_reader_finds_taken,
        tn__branch_reader_finds_gone_looks_again, tn__branch_reader_finds_gone_fails,
        tn__branch_leaf_acquire_undone, tn__branch_removal_waits_for_acquiring,
        tn__branch_removal_sees_pin, tn__branch_removal_aborted_granted,
        tn__branch_removal_aborted_failed, tn__branch_removal_taken, tn__branch_slot_taken_over,
        tn__branch_plan_meets_use)

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(acquire_many_discard),
    cmocka_unit_test(acquire_or_drop),
    cmocka_unit_test(fallback),
    cmocka_unit_test(leaf_drop),
    cmocka_unit_test(many_drop),
    cmocka_unit_test(two_removals),
    cmocka_unit_test(discard_refused),
    cmocka_unit_test(collect),
    cmocka_unit_test(move_acquire),
    cmocka_unit_test(thread_exit_scan),
    cmocka_unit_test(reaches),
};

TN_TEST_MAIN("schedule.removals", tests)
