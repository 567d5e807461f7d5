/* SPDX-License-Identifier: MIT */
/*
 * What snapshots say of leases, holds and transitions that are under way (S1, M51).
 */
#include "scenario.h"

#include "lifetime/lifetime_priv.h"
#include "manager/manager_internal.h"

static uint64_t version_before;

/* ---- Snapshots ---- */

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

static void snapshot_leases_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_host(2);
    SCHED_OK(tn_manager_state_version(W.m, &version_before));
    RUN({"visit 0", visit_twice, (void *)&zero}, {"visit 1", visit_twice, (void *)&one},
        {"look", look_on, NULL});
    world_end();
}
SCENARIO(snapshot_leases, 60)

static void snapshot_commit_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_host(3);
    SCHED_OK(tn_manager_state_version(W.m, &version_before));
    RUN({"visit", visit_twice, (void *)&zero}, {"toggle", toggle_pinned, NULL},
        {"look", look_on, NULL});
    world_end();
}
SCENARIO(snapshot_commit, 60)

/* By the ways that are not the hot path: holds, reservations, several values. */
static void hold_and_reserve(void *argument) {
    static const uint32_t both[] = {0, 1};
    (void)argument;
    for (int i = 0; i < 2; i++) {
        tn_hold hold;
        tn_reservation room;
        loan l;
        SCHED_OK(tn_manager_hold(W.m, &W.values[0], 1, P, &hold));
        SCHED_OK(tn_hold_release(&hold));
        W.lifetimes += 2;
        SCHED_OK(world_reserve(P, WORLD_BYTES, &room));
        world_unreserve(&room);
        SCHED_OK(world_borrow(both, 2, P, &l));
        world_return(&l, 0);
    }
}

static void look_at_all(void *argument) {
    (void)argument;
    for (int i = 0; i < 3; i++) {
        look l;
        world_snapshot(&l);
        if (!l.head.exact)
            continue;
        uint64_t standing = l.head.lease_count + l.head.hold_count + l.head.reservation_count;
        SCHED_EQUAL((l.head.state_version - version_before) % 2, standing);
        SCHED_EQUAL(l.uses, 2 * l.head.lease_count);
        SCHED_EQUAL(l.holds, l.head.hold_count);
        SCHED_EQUAL(l.reserved[0], l.head.reservation_count * WORLD_BYTES);
    }
}

static void snapshot_slow_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_host(2);
    SCHED_OK(tn_manager_state_version(W.m, &version_before));
    RUN({"hold", hold_and_reserve, NULL}, {"look", look_at_all, NULL});
    world_end();
}
SCENARIO(snapshot_slow, 60)

static volatile int begun, tried;

/* A record that is a lease of one value, then a hold of another: no look mixes the two. */
static void lend_and_hold(void *argument) {
    (void)argument;
    for (int i = 0; i < 2; i++) {
        tn_hold hold;
        (void)world_visit(0, P);
        SCHED_OK(tn_manager_hold(W.m, &W.values[1], 1, P, &hold));
        SCHED_OK(tn_hold_release(&hold));
        W.lifetimes += 2;
    }
}

static void look_at_lives(void *argument) {
    tn_materialization_info c;
    (void)argument;
    for (int i = 0; i < 2; i++) {
        world_counts(0, &c);
        SCHED_EQUAL(c.hold_count, 0);
        world_counts(1, &c);
        SCHED_EQUAL(c.use_count, 0);
    }
}

static void lives_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_host(2);
    RUN({"lend", lend_and_hold, NULL}, {"look", look_at_lives, NULL});
    world_end();
}
SCENARIO(lives, 40)

/* A lease of value 1, whose record becomes one of value 0: it never has that. */
static loan handed_over;

static void lend_again(void *argument) {
    (void)argument;
    SCHED_OK(world_borrow(&one, 1, P, &handed_over));
    begun = 1;
    world_return(&handed_over, 0);
    (void)world_visit(0, P);
}

static void look_it_up(void *argument) {
    (void)argument;
    while (!begun)
        sched_pause_here();
    for (int i = 0; i < 3; i++) {
        bool has = false;
        tn_status status = tn_lease_contains(&handed_over.lease, W.values[0], &has);
        SCHED_CHECK(status == TN_OK || status == TN_ERR_LIFETIME_CLOSED);
        SCHED_CHECK(status != TN_OK || !has);
    }
}

static void lives_looked_up_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_host(2);
    RUN({"lend", lend_again, NULL}, {"look", look_it_up, NULL});
    world_end();
}
SCENARIO(lives_looked_up, 40)

/* A refusal counts the uses of a value that nobody holds: while it is being made, a hold of another
 * value ends, and its record becomes a lease of this one. */
static void hold_then_lend(void *argument) {
    (void)argument;
    for (int i = 1; i <= 2; i++) {
        tn_hold hold;
        loan l;
        SCHED_OK(tn_manager_hold(W.m, &W.values[1], 1, P, &hold));
        while (begun < i)
            sched_pause_here();
        SCHED_OK(tn_hold_release(&hold));
        SCHED_OK(world_borrow(&zero, 1, P, &l));
        while (tried < i)
            sched_pause_here();
        world_return(&l, 0);
        W.lifetimes += 2;
    }
}

static void drop_lent(void *argument) {
    (void)argument;
    for (int i = 1; i <= 2; i++) {
        begun = i;
        SCHED_EQUAL(world_drop(0, P), TN_ERR_IN_USE);
        SCHED_EQUAL(tn_last_error()->hold_count, 0);
        SCHED_CHECK(tn_last_error()->use_count == 1 || tn_last_error()->use_count == 2);
        tried = i;
    }
}

static void lives_refused_body(void) {
    loan l;
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_host(2);
    SCHED_OK(world_borrow(&zero, 1, P, &l));
    RUN({"lend", hold_then_lend, NULL}, {"drop", drop_lent, NULL});
    world_return(&l, 0);
    world_end();
}
SCENARIO(lives_refused, 80)

/* A hold of another value ends, and its record becomes a lease of this one, which is refused for a
 * second value that a plan has taken: nobody ever has this one, and a drop of it is not refused. */
static tn__removal *taken;

static void hold_then_fail(void *argument) {
    static const uint32_t both[] = {0, 2};
    (void)argument;
    for (int i = 0; i < 2; i++) {
        tn_hold hold;
        loan l;
        SCHED_OK(tn_manager_hold(W.m, &W.values[1], 1, P, &hold));
        begun = 1;
        SCHED_OK(tn_hold_release(&hold));
        W.lifetimes += 2;
        SCHED_EQUAL(world_borrow(both, 2, P, &l), TN_ERR_UNAVAILABLE);
    }
}

static void take_and_end(tn__mat *mat) {
    tn__removal *removal = NULL;
    SCHED_OK(tn__removal_take(W.m->life, &mat, 1, 0, &removal));
    tn__removal_end(W.m->life, removal);
}

static void take_what_nobody_has(void *argument) {
    while (!begun)
        sched_pause_here();
    for (int i = 0; i < 3; i++)
        take_and_end(argument);
}

static tn__mat *mat_of(uint32_t value) {
    tn__rcu_lock();
    tn__mat *mat =
        tn__value_mat(tn__version_value(tn__store_current(W.m->store), W.values[value].index), P);
    tn__rcu_unlock();
    return mat;
}

static void lives_failed_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_host(3);
    tn__mat *second = mat_of(2);
    SCHED_OK(tn__removal_take(W.m->life, &second, 1, 0, &taken));
    RUN({"lend", hold_then_fail, NULL}, {"take", take_what_nobody_has, mat_of(0)});
    tn__removal_end(W.m->life, taken);
    world_end();
}
SCENARIO(lives_failed, 20)

/* A reservation, whose record becomes a smaller one somewhere else: while it stands it is what it was,
 * and then it is over. */
static tn_reservation room;

static void reserve_again(void *argument) {
    tn_reservation other;
    (void)argument;
    SCHED_OK(world_reserve(P, WORLD_BYTES, &room));
    begun = 1;
    world_unreserve(&room);
    SCHED_OK(world_reserve(N, 1, &other));
    world_unreserve(&other);
}

static void check_the_first(void *argument) {
    (void)argument;
    while (!begun)
        sched_pause_here();
    for (int i = 0; i < 3; i++) {
        tn_status status = tn__life_take_check(W.m->life, &room, P, WORLD_BYTES);
        SCHED_CHECK(status == TN_OK || status == TN_ERR_LIFETIME_CLOSED);
    }
}

static void lives_reserved_body(void) {
    tn_reservation tracked;
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    SCHED_OK(world_reserve(P, 1, &tracked));
    world_unreserve(&tracked);
    SCHED_OK(world_reserve(N, 1, &tracked));
    world_unreserve(&tracked);
    RUN({"reserve", reserve_again, NULL}, {"check", check_the_first, NULL});
    W.placement_unknown = true;
    world_end();
}
SCENARIO(lives_reserved, 20)

/* Bytes of a reservation that become a value's: each look has them once. */
static void adopt_the_room(void *argument) {
    tn_payload payload;
    tn_handle handle;
    (void)argument;
    SCHED_OK(world_payload_make(P, 3, &payload));
    SCHED_OK(tn_manager_adopt_reserved(W.m, payload, P, TN_REPLICABLE, &room, &handle));
    SCHED_OK(tn_manager_discard(W.m, handle, NULL));
}

static void look_at_bytes(void *argument) {
    (void)argument;
    for (int i = 0; i < 3; i++) {
        look l;
        world_snapshot(&l);
        if (l.head.exact && l.head.state_version <= version_before + 1)
            SCHED_EQUAL(l.used[0] + l.reserved[0], WORLD_BYTES);
    }
}

static void snapshot_adopt_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    SCHED_OK(world_reserve(P, WORLD_BYTES, &room));
    SCHED_OK(tn_manager_state_version(W.m, &version_before));
    RUN({"adopt", adopt_the_room, NULL}, {"look", look_at_bytes, NULL});
    world_unreserve(&room);
    W.placement_unknown = true;
    world_end();
}
SCENARIO(snapshot_adopt, 40)

/* A settled version tells of nothing that is not there: a lease that is in it is found, and what was
 * counted once stays counted while others begin. */
static void hold_for_good(void *argument) {
    tn_hold *hold = argument;
    SCHED_OK(tn_manager_hold(W.m, &W.values[0], 1, P, hold));
    W.lifetimes++;
}

static void settle_and_look(void *argument) {
    uint64_t before = 0;
    (void)argument;
    for (int i = 0; i < 3; i++) {
        tn__totals t;
        uint64_t now = tn__state_version_settled(W.m->store, W.m->life);
        tn__life_totals(W.m->life, &t);
        SCHED_CHECK(now >= before);
        SCHED_CHECK(t.holds >= now - version_before);
        before = now;
    }
}

static void settled_body(void) {
    tn_hold holds[3];
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_host(1);
    SCHED_OK(tn_manager_state_version(W.m, &version_before));
    hold_for_good(&holds[2]);
    RUN({"hold 0", hold_for_good, &holds[0]}, {"hold 1", hold_for_good, &holds[1]},
        {"settle", settle_and_look, NULL});
    for (int i = 0; i < 3; i++)
        SCHED_OK(tn_hold_release(&holds[i]));
    W.lifetimes += 3;
    world_end();
}
SCENARIO(settled, 40)

/* A lease that is being released is a use until it is pending: each look counts it once. */
static void release_with_work(void *argument) {
    loan l;
    (void)argument;
    SCHED_OK(world_borrow(&one, 1, C0, &l));
    world_use(&l, 1000);
    world_return(&l, 0);
}

static void look_at_release(void *argument) {
    (void)argument;
    for (int i = 0; i < 3; i++) {
        look l;
        world_snapshot(&l);
        uint64_t effects = l.head.state_version - version_before;
        if (!l.head.exact)
            continue;
        SCHED_EQUAL(l.head.lease_count, effects == 1);
        SCHED_EQUAL(l.head.pending_lease_count, effects == 2);
        SCHED_EQUAL(l.uses, effects == 1);
        SCHED_EQUAL(l.pending, effects == 2);
    }
}

static void snapshot_release_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_device();
    SCHED_OK(tn_manager_state_version(W.m, &version_before));
    RUN({"release", release_with_work, NULL}, {"look", look_at_release, NULL});
    world_end();
}
SCENARIO(snapshot_release, 40)

/* A lease that another thread finds to be over is pending in each look, or is not. */
static void end_pending(void *argument) {
    uint64_t completed = 0;
    (void)argument;
    SCHED_OK(tn_sim_advance(W.sim, 1000));
    for (int i = 0; i < 3; i++)
        SCHED_OK(tn_manager_step(W.m, &completed));
}

static void snapshot_reaped_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_device();
    SCHED_OK(tn_manager_state_version(W.m, &version_before));
    RUN({"release", release_with_work, NULL}, {"end", end_pending, NULL},
        {"look", look_at_release, NULL});
    world_end();
}
SCENARIO(snapshot_reaped, 60)

REACHES(tn__branch_snapshot_again, tn__branch_snapshot_inexact, tn__branch_pending_completed)

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(snapshot_leases), cmocka_unit_test(snapshot_commit),
    cmocka_unit_test(snapshot_slow),   cmocka_unit_test(lives),
    cmocka_unit_test(lives_looked_up), cmocka_unit_test(snapshot_reaped),
    cmocka_unit_test(lives_refused),   cmocka_unit_test(snapshot_release),
    cmocka_unit_test(lives_failed),    cmocka_unit_test(lives_reserved),
    cmocka_unit_test(snapshot_adopt),  cmocka_unit_test(settled),
    cmocka_unit_test(reaches),
};

TN_TEST_MAIN("schedule.snapshots", tests)
