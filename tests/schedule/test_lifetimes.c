/* SPDX-License-Identifier: MIT */
/*
 * Leases against removals, releases, snapshots, close, and the ends of threads.
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

static void make_resident(uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        SCHED_OK(world_ensure(i, P));
}

static void acquire_many_discard_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    make_resident(3);
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
    make_resident(2);
    RUN({"borrow", borrow_once, NULL}, {"drop", drop_once, NULL});
    SCHED_CHECK(first_status == TN_OK || second_status == TN_OK);
    world_end();
}
SCENARIO(acquire_or_drop, 60)

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
    make_resident(2);
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
    make_resident(3);
    RUN({"two", borrow_two, NULL}, {"leaf", leaf_twice, NULL}, {"drop", drop_all, NULL});
    world_end();
}
SCENARIO(many_drop, 60)

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
    make_resident(2);
    RUN({"visit", visit_both_ends, NULL}, {"move", move_away, NULL}, {"leaf", leaf_twice, NULL});
    world_end();
}
SCENARIO(move_acquire, 50)

/* ---- Snapshots ---- */

static uint64_t version_before;

static void visit_twice(void *argument) {
    uint32_t value = *(const uint32_t *)argument;
    (void)world_visit(value, P);
    (void)world_visit(value, P);
}

static void toggle_pinned(void *argument) {
    (void)argument;
    SCHED_OK(world_ensure(2, N));
    SCHED_OK(world_drop(2, N));
}

/* Every effect is 1, and lasts until the next of its own thread: so their number tells how many
 * stand, odd or even. */
static void look_on(void *argument) {
    look l[2];
    (void)argument;
    for (int i = 0; i < 2; i++) {
        world_snapshot(&l[i]);
        if (!l[i].head.exact)
            continue;
        uint64_t standing = l[i].head.lease_count + l[i].used[1] / WORLD_BYTES;
        SCHED_EQUAL((l[i].head.state_version - version_before) % 2, standing % 2);
        SCHED_EQUAL(l[i].uses, l[i].head.lease_count);
    }
    SCHED_CHECK(!l[0].head.exact || !l[1].head.exact ||
                l[0].head.state_version <= l[1].head.state_version);
    if (l[0].head.exact && l[1].head.exact && l[0].head.state_version == l[1].head.state_version)
        SCHED_EQUAL(l[0].head.lease_count, l[1].head.lease_count);
}

static const uint32_t zero = 0, one = 1;

static void snapshot_leases_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    make_resident(2);
    SCHED_OK(tn_manager_state_version(W.m, &version_before));
    RUN({"visit 0", visit_twice, (void *)&zero}, {"visit 1", visit_twice, (void *)&one},
        {"look", look_on, NULL});
    world_end();
}
SCENARIO(snapshot_leases, 60)

static void snapshot_commit_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    make_resident(3);
    SCHED_OK(tn_manager_state_version(W.m, &version_before));
    RUN({"visit", visit_twice, (void *)&zero}, {"toggle", toggle_pinned, NULL},
        {"look", look_on, NULL});
    world_end();
}
SCENARIO(snapshot_commit, 60)

/* ---- Release on CUDA, reaper, helper ---- */

static void use_on_device(void *argument) {
    uint32_t value = *(const uint32_t *)argument;
    loan l;
    if (world_borrow(&value, 1, C0, &l) != TN_OK)
        return;
    world_use(&l, 1000);
    world_return(&l, 0);
}

static void help_and_drop(void *argument) {
    (void)argument;
    SCHED_OK(tn_sim_advance(W.sim, 1000));
    tn_status status = world_drop(1, C0);
    SCHED_OK(tn_sim_advance(W.sim, 1000));
    if (status != TN_OK)
        (void)world_drop(1, C0);
}

static void reap(void *argument) {
    uint64_t completed = 0;
    (void)argument;
    SCHED_OK(tn_manager_step(W.m, &completed));
    SCHED_OK(tn_manager_step(W.m, &completed));
}

static void on_device(void) {
    SCHED_OK(world_ensure(0, C0));
    SCHED_OK(world_ensure(1, C0));
    SCHED_OK(tn_sim_run(W.sim));
}

static void release_reap_helper_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    on_device();
    RUN({"use", use_on_device, (void *)&one}, {"drop", help_and_drop, NULL}, {"reap", reap, NULL});
    world_end();
}
SCENARIO(release_reap_helper, 70)

/* With the reaper's thread: a pending lease is never forgotten. */
static void release_reaper_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_THREAD, 4, 4, 4);
    on_device();
    RUN({"use 0", use_on_device, (void *)&zero}, {"use 1", use_on_device, (void *)&one},
        {"drop", help_and_drop, NULL});
    world_end();
}
SCENARIO(release_reaper, 70)

/* Two ends of one lease, at once: one effect. */
static loan shared_loan;

static void release_shared(void *argument) {
    (void)argument;
    SCHED_OK(tn_lease_release(&shared_loan.lease, 0));
    (void)world_visit(0, P); /* a record in two lists would be lent twice */
}

static void racing_host_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    make_resident(2);
    SCHED_OK(world_borrow(&one, 1, P, &shared_loan));
    W.lifetimes++;
    RUN({"first", release_shared, NULL}, {"second", release_shared, NULL});
    world_end();
}
SCENARIO(racing_host, 25)

static loan handed_over;
static bool handed;

static void lend_and_release(void *argument) {
    (void)argument;
    (void)world_visit(0, P); /* warm */
    SCHED_OK(world_borrow(&one, 1, P, &handed_over));
    handed = true;
    SCHED_OK(tn_lease_release(&handed_over.lease, 0)); /* by the leaf path */
    W.lifetimes++;
    (void)world_visit(0, P);
}

static void release_handed(void *argument) {
    (void)argument;
    for (int i = 0; i < 50 && !handed; i++)
        sched_point();
    if (handed)
        SCHED_OK(tn_lease_release(&handed_over.lease, 0));
    (void)world_visit(0, P);
}

static void racing_leaf_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    make_resident(2);
    RUN({"leaf", lend_and_release, NULL}, {"other", release_handed, NULL});
    world_end();
}
SCENARIO(racing_leaf, 25)

static void racing_cuda_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    make_resident(1);
    on_device();
    SCHED_OK(world_borrow(&one, 1, C0, &shared_loan));
    W.lifetimes += 2;
    RUN({"first", release_shared, NULL}, {"second", release_shared, NULL},
        {"reap", reap, NULL});
    world_end();
}
SCENARIO(racing_cuda, 25)

/* ---- Close ---- */

static void borrow_until_closed(void *argument) {
    loan l;
    (void)argument;
    for (int i = 0; i < 2; i++) {
        tn_status status = world_borrow(&zero, 1, P, &l);
        if (status == TN_ERR_CLOSED)
            return;
        SCHED_OK(status);
        world_return(&l, 0);
    }
}

static void reserve_until_closed(void *argument) {
    tn_reservation r;
    (void)argument;
    tn_status status = world_reserve(P, WORLD_BYTES, &r);
    if (status == TN_OK)
        world_unreserve(&r);
    else
        SCHED_EQUAL(status, TN_ERR_CLOSED);
}

/* After it nobody has anything: not even the loan that is being made. */
static void close_it(void *argument) {
    (void)argument;
    uint64_t before = W.lifetimes;
    tn_status status = tn_manager_close(W.m, 0);
    SCHED_CHECK(status == TN_OK || status == TN_ERR_IN_USE);
    W.closed = status == TN_OK;
    (void)before;
}

static void close_acquire_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    make_resident(1);
    RUN({"borrow", borrow_until_closed, NULL}, {"reserve", reserve_until_closed, NULL},
        {"close", close_it, NULL});
    world_end();
}
SCENARIO(close_acquire, 60)

/* ---- The last release of a manager, its close and destruction ---- */

static void release_last(void *argument) {
    (void)argument;
    SCHED_OK(tn_lease_release(&shared_loan.lease, 0));
}

static void close_and_destroy(void *argument) {
    (void)argument;
    while (tn_manager_close(W.m, 0) == TN_ERR_IN_USE) {
        SCHED_OK(tn_sim_advance(W.sim, 1000));
        sched_pause_here();
    }
    SCHED_OK(tn_manager_destroy(W.m));
    W.m = NULL;
}

static void last_release_host_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    make_resident(2);
    SCHED_OK(world_borrow(&one, 1, P, &shared_loan));
    RUN({"release", release_last, NULL}, {"destroy", close_and_destroy, NULL});
    world_end();
}
SCENARIO(last_release_host, 30)

/* By the leaf path, which is in no section. */
static void lend_and_release_last(void *argument) {
    (void)argument;
    SCHED_OK(world_visit(0, P));
    SCHED_OK(world_borrow(&zero, 1, P, &shared_loan));
    handed = true;
    SCHED_OK(tn_lease_release(&shared_loan.lease, 0));
}

static void destroy_when_handed(void *argument) {
    while (!handed)
        sched_pause_here();
    close_and_destroy(argument);
}

static void last_release_leaf_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    make_resident(1);
    RUN({"release", lend_and_release_last, NULL}, {"destroy", destroy_when_handed, NULL});
    world_end();
}
SCENARIO(last_release_leaf, 30)

/* One that waits for its events while the manager goes. */
static void release_and_wait(void *argument) {
    (void)argument;
    SCHED_OK(tn_lease_release(&shared_loan.lease, TN_RELEASE_WAIT));
}

static void last_release_wait_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    on_device();
    SCHED_OK(world_borrow(&one, 1, C0, &shared_loan));
    world_use(&shared_loan, 1000);
    RUN({"release", release_and_wait, NULL}, {"destroy", close_and_destroy, NULL});
    world_end();
}
SCENARIO(last_release_wait, 30)

static void last_release_cuda_body(void) {
    world_begin(TN_MODE_CONCURRENT, sched_choose(2) ? TN_REAPER_MANUAL : TN_REAPER_THREAD, 4, 4, 4);
    make_resident(1);
    on_device();
    SCHED_OK(world_borrow(&one, 1, C0, &shared_loan));
    RUN({"release", release_last, NULL}, {"destroy", close_and_destroy, NULL});
    world_end();
}
SCENARIO(last_release_cuda, 40)

static void force_close(void *argument) {
    (void)argument;
    SCHED_OK(tn_manager_close(W.m, TN_CLOSE_FORCE));
    SCHED_OK(tn_manager_destroy(W.m));
    W.m = NULL;
}

static void forced_close_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    make_resident(1);
    on_device();
    SCHED_OK(world_borrow(&one, 1, C0, &shared_loan));
    RUN({"release", release_last, NULL}, {"close", force_close, NULL});
    world_end();
}
SCENARIO(forced_close, 40)

/* ---- Threads that end ---- */

static void visit_and_exit(void *argument) {
    (void)argument;
    (void)world_visit(1, P);
    (void)world_visit(0, P);
}

static void thread_exit_scan_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    make_resident(2);
    RUN({"first", visit_and_exit, NULL}, {"second", visit_and_exit, NULL},
        {"drop", drop_and_ensure, NULL});
    world_end();
}
SCENARIO(thread_exit_scan, 60)

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(acquire_many_discard), cmocka_unit_test(acquire_or_drop),
    cmocka_unit_test(leaf_drop),            cmocka_unit_test(many_drop),
    cmocka_unit_test(move_acquire),         cmocka_unit_test(snapshot_leases),
    cmocka_unit_test(snapshot_commit),      cmocka_unit_test(release_reap_helper),
    cmocka_unit_test(release_reaper),       cmocka_unit_test(racing_host),
    cmocka_unit_test(racing_leaf),          cmocka_unit_test(racing_cuda),
    cmocka_unit_test(close_acquire),        cmocka_unit_test(last_release_host),
    cmocka_unit_test(last_release_leaf),    cmocka_unit_test(last_release_wait),
    cmocka_unit_test(last_release_cuda),    cmocka_unit_test(forced_close),
    cmocka_unit_test(thread_exit_scan),
};

TN_TEST_MAIN("schedule.lifetimes", tests)
