/* SPDX-License-Identifier: MIT */
/*
 * Releases on devices, two releases of one lease, close, and the last release of a manager.
 */
#include "scenario.h"

#include "lifetime/lifetime_priv.h"

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

static void release_reap_helper_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_device();
    RUN({"use", use_on_device, (void *)&one}, {"drop", help_and_drop, NULL}, {"reap", reap, NULL});
    world_end();
}
SCENARIO(release_reap_helper, 70)

/* With the reaper's thread: a pending lease is never forgotten. */
static void release_reaper_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_THREAD, 4, 4, 4);
    world_on_device();
    RUN({"use 0", use_on_device, (void *)&zero}, {"use 1", use_on_device, (void *)&one},
        {"drop", help_and_drop, NULL});
    world_end();
}
SCENARIO(release_reaper, 70)

/* Without it: an operation after the release finds the lease over, whatever others have taken from
 * the mark and the queue. */
static void visit_on_host(void *argument) {
    (void)argument;
    for (int i = 0; i < 3; i++)
        (void)world_visit(0, P);
}

static void release_marked_body(void) {
    look l;
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_host(1);
    world_on_device();
    RUN({"use", use_on_device, (void *)&one}, {"visit", visit_on_host, NULL});
    SCHED_OK(tn_sim_advance(W.sim, 1000));
    world_snapshot(&l);
    SCHED_EQUAL(l.head.pending_lease_count, 0);
    world_end();
}
SCENARIO(release_marked, 60)

/* Two ends of one lease, at once: one effect. */
static loan shared_loan;

static void release_shared(void *argument) {
    (void)argument;
    SCHED_OK(tn_lease_release(&shared_loan.lease, 0));
    (void)world_visit(0, P); /* a record in two lists would be lent twice */
}

static void racing_host_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_host(2);
    SCHED_OK(world_borrow(&one, 1, P, &shared_loan));
    W.lifetimes++;
    RUN({"first", release_shared, NULL}, {"second", release_shared, NULL});
    world_end();
}
SCENARIO(racing_host, 25)

static loan handed_over[2];
static volatile int handed;

static void lend_and_release(void *argument) {
    (void)argument;
    SCHED_OK(world_visit(0, P)); /* warm */
    for (int i = 0; i < 2; i++) {
        SCHED_OK(world_borrow(&one, 1, P, &handed_over[i]));
        handed = i + 1;
        SCHED_OK(tn_lease_release(&handed_over[i].lease, 0)); /* by the leaf path */
        W.lifetimes++;
    }
}

static void release_handed(void *argument) {
    (void)argument;
    for (int i = 0; i < 2; i++) {
        while (handed <= i)
            sched_pause_here();
        SCHED_OK(tn_lease_release(&handed_over[i].lease, 0));
    }
}

static void racing_leaf_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_host(2);
    RUN({"leaf", lend_and_release, NULL}, {"other", release_handed, NULL});
    world_end();
}
SCENARIO(racing_leaf, 60)

static void racing_cuda_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_host(1);
    world_on_device();
    SCHED_OK(world_borrow(&one, 1, C0, &shared_loan));
    W.lifetimes += 2;
    RUN({"first", release_shared, NULL}, {"second", release_shared, NULL}, {"reap", reap, NULL});
    world_end();
}
SCENARIO(racing_cuda, 25)

/* ---- Streams ---- */

static tn_stream another;

static void add_another(void *argument) {
    (void)argument;
    SCHED_OK(tn_lease_add_stream(&shared_loan.lease, another));
}

/* Whoever adds it first: it is listed once, and gets one event. */
static void streams_once_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_device();
    SCHED_OK(tn_sim_stream_create(W.sim, 0, 0, &another));
    SCHED_OK(world_borrow(&one, 1, C0, &shared_loan));
    RUN({"first", add_another, NULL}, {"second", add_another, NULL});
    const tn__record *record = shared_loan.lease.record;
    world_return(&shared_loan, 0);
    SCHED_EQUAL(tn__load_rlx(&record->event_count), 2);
    world_end();
}
SCENARIO(streams_once, 20)

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
    if (status != TN_OK) {
        SCHED_EQUAL(status, TN_ERR_CLOSED);
        return;
    }
    sched_point();
    world_unreserve(&r);
}

static void close_acquire_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_host(1);
    RUN({"borrow", borrow_until_closed, NULL}, {"reserve", reserve_until_closed, NULL},
        {"close", world_close, NULL});
    world_end();
}
SCENARIO(close_acquire, 60)

/* The manager word is loaded after the fence, or a close passes between. */
static void borrow_before_close(void *argument) {
    loan l;
    (void)argument;
    tn_status status = world_borrow(&zero, 1, P, &l);
    if (status == TN_OK)
        world_return(&l, 0);
    else
        SCHED_EQUAL(status, TN_ERR_CLOSED);
}

static void close_fallback_body(void) {
    sched_without_membarrier();
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_host(1);
    RUN({"borrow", borrow_before_close, NULL}, {"close", world_close, NULL});
    world_end();
}
SCENARIO(close_fallback, 40)

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
    world_on_host(2);
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
    handed = 1;
    SCHED_OK(tn_lease_release(&shared_loan.lease, 0));
}

static void destroy_when_handed(void *argument) {
    while (!handed)
        sched_pause_here();
    close_and_destroy(argument);
}

static void last_release_leaf_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_host(1);
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
    world_on_device();
    SCHED_OK(world_borrow(&one, 1, C0, &shared_loan));
    world_use(&shared_loan, 1000);
    RUN({"release", release_and_wait, NULL}, {"destroy", close_and_destroy, NULL});
    world_end();
}
SCENARIO(last_release_wait, 30)

static void last_release_cuda_body(void) {
    world_begin(TN_MODE_CONCURRENT, sched_choose(2) ? TN_REAPER_MANUAL : TN_REAPER_THREAD, 4, 4, 4);
    world_on_host(1);
    world_on_device();
    SCHED_OK(world_borrow(&one, 1, C0, &shared_loan));
    RUN({"release", release_last, NULL}, {"destroy", close_and_destroy, NULL});
    world_end();
}
SCENARIO(last_release_cuda, 40)

static void force_close(void *argument) {
    (void)argument;
    SCHED_OK(tn_manager_close(W.m, TN_CLOSE_FORCE));
    W.closed = W.detached = true; /* and nothing is pending any longer: world_end() */
}

static void forced_close_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_host(1);
    world_on_device();
    SCHED_OK(world_borrow(&one, 1, C0, &shared_loan));
    RUN({"release", release_last, NULL}, {"close", force_close, NULL});
    SCHED_CHECK(!tn_lease_active(&shared_loan.lease)); /* M150: whoever came first */
    world_end();
}
/* A release that the close overtakes. */
SCENARIO(forced_close, 40, 17694234182270219163u)

/* The same on the host: by the leaf path, a hold, a reservation. */
static tn_hold a_hold;
static tn_reservation a_reservation;

static void release_leaf(void *argument) {
    (void)argument;
    SCHED_OK(world_visit(0, P));
    SCHED_OK(world_borrow(&zero, 1, P, &shared_loan));
    handed = 1;
    SCHED_OK(tn_lease_release(&shared_loan.lease, 0));
    SCHED_CHECK(!tn_lease_active(&shared_loan.lease));
}

static void release_others(void *argument) {
    (void)argument;
    SCHED_OK(tn_hold_release(&a_hold));
    SCHED_OK(tn_reservation_release(&a_reservation));
    SCHED_CHECK(!tn_hold_active(&a_hold) && !tn_reservation_active(&a_reservation));
}

static void force_close_when_handed(void *argument) {
    while (!handed)
        sched_pause_here();
    force_close(argument);
}

static void forced_close_host_body(void) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    world_on_host(2);
    SCHED_OK(tn_manager_hold(W.m, &W.values[1], 1, P, &a_hold));
    SCHED_OK(tn_manager_reserve(W.m, P, WORLD_BYTES, "room", &a_reservation));
    RUN({"leaf", release_leaf, NULL}, {"others", release_others, NULL},
        {"close", force_close_when_handed, NULL});
    world_end();
}
SCENARIO(forced_close_host, 40, 962722935163858966u)

REACHES(tn__branch_consumer_finds_done, tn__branch_pending_completed,
        tn__branch_pending_completed_by_other, tn__branch_reader_aborts_close,
        tn__branch_reaper_sleeps, tn__branch_reaper_is_woken, tn__branch_record_goes_home,
        tn__branch_release_lost, tn__branch_releasing_waited_for)

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(release_reap_helper), cmocka_unit_test(release_reaper),
    cmocka_unit_test(release_marked),      cmocka_unit_test(racing_host),
    cmocka_unit_test(racing_leaf),         cmocka_unit_test(racing_cuda),
    cmocka_unit_test(streams_once),        cmocka_unit_test(close_acquire),
    cmocka_unit_test(close_fallback),      cmocka_unit_test(last_release_host),
    cmocka_unit_test(last_release_leaf),   cmocka_unit_test(last_release_wait),
    cmocka_unit_test(last_release_cuda),   cmocka_unit_test(forced_close),
    cmocka_unit_test(forced_close_host),   cmocka_unit_test(reaches),
};

TN_TEST_MAIN("schedule.releases", tests)
