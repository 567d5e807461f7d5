/* SPDX-License-Identifier: MIT */
/*
 * src/lifetime/release.c: each effect once, whoever ends a lifetime and whoever else is at it (L4,
 * M138..M146, F-C03: recorded first, pending second).
 */
#include "core_fixture.h"

#define READ_NS 10000000u

struct scene {
    struct spec *f;
    tn_manager *m;
    tn_handle v; /* replicable, at P and C0 */
    tn_stream s1, s2;
    struct args ending; /* its lease, on both streams */
};

static struct scene scene_of(struct spec *f) {
    struct scene s = {.f = f, .m = MANAGER(f)};
    s.v = adopt_rep(f, s.m, P);
    (void)ensure(s.m, s.v, C0);
    s.s1 = spec_stream(f, 0);
    s.s2 = spec_stream(f, 0);
    s.ending = (struct args){.m = s.m, .lease = acquire(s.m, s.v, C0, s.s1)};
    assert_ok(tn_lease_add_stream(&s.ending.lease, s.s2));
    return s;
}

static void read_for_10_ms(struct scene *s) {
    const void *data = NULL;
    assert_ok(tn_lease_lookup(&s->ending.lease, s->v, &data));
    for (int i = 0; i < 2; i++)
        assert_ok(tn_sim_queue_read(s->f->sim, i ? s->s2 : s->s1, tt_field_base(data, 0),
                                    tt_field_bytes(data, 0), READ_NS));
}

struct droppers {
    struct scene *s;
    uint64_t uses, pending;
};

static const char *drop_in_vain(int index, void *arg) {
    struct droppers *d = arg;
    (void)index;
    for (int i = 0; i < 100; i++) {
        TN_WORKER_STATUS(tn_manager_drop(d->s->m, d->s->v, C0, NULL), TN_ERR_IN_USE);
        TN_WORKER_CHECK(tn_last_error()->use_count == d->uses);
        TN_WORKER_CHECK(tn_last_error()->hold_count == 0);
        TN_WORKER_CHECK(tn_last_error()->pending_count == d->pending);
    }
    return NULL;
}

static void expect_in_use_for_four(struct scene *s, uint64_t uses, uint64_t pending) {
    struct droppers d = {s, uses, pending};
    assert_null_text(tn_test_workers_run(4, drop_in_vain, &d));
}

/* F-C03 */
static void release_stopped_anywhere_protects_as_a_use(void **state) {
    struct scene s = scene_of(*state);
    struct op releasing;
    uint64_t records = tn_sim_calls(s.f->sim, TN_SIM_EVENT_RECORD);
    NEED_POINTS();
    read_for_10_ms(&s);
    OP_START(&releasing, run_release, &s.ending, TN__POINT_RECORD_EVENT, TN__POINT_RECORD_EVENT,
             TN__POINT_RECORDED);
    for (int i = 0; i < 3; i++) {
        op_reach(&releasing);
        assert_int_equal(state_of(s.ending.lease.record), TN__RELEASING);
        expect_in_use_for_four(&s, 1, 0);
        assert_int_equal(mat(s.m, s.v, C0).use_count, 1);
        if (i < 2)
            op_go(&releasing);
    }
    assert_status(op_end(&releasing), TN_OK);
    expect_in_use_for_four(&s, 0, 1);
    assert_int_equal(tn_sim_calls(s.f->sim, TN_SIM_EVENT_RECORD) - records, 2);
    assert_ok(tn_sim_advance(s.f->sim, READ_NS));
    (void)drop(s.m, s.v, C0);
    assert_int_equal(drop(s.m, s.v, C0).no_op, 1);
}

/* D11 */
static void second_release_succeeds_while_the_first_records(void **state) {
    struct scene s = scene_of(*state);
    struct op releasing;
    NEED_POINTS();
    OP_START(&releasing, run_release, &s.ending, TN__POINT_RECORDED);
    op_reach(&releasing);
    assert_rises(s.m, 0, release(&s.ending.lease));
    assert_false(tn_lease_active(&s.ending.lease));
    assert_status(tn_lease_add_stream(&s.ending.lease, s.s1), TN_ERR_LIFETIME_CLOSED);
    assert_int_equal(info(s.m).lease_count, 1);
    assert_status(op_end(&releasing), TN_OK);
    assert_int_equal(info(s.m).lease_count, 0);
}

/* M145: with neither events nor synchronisation the lease is as it was, all streams included. */
static void release_that_cannot_even_synchronise_leaves_it_active(void **state) {
    struct scene s = scene_of(*state);
    uint64_t records;
    spec_fault(s.f, TN_SIM_EVENT_RECORD, 2, 1, TN_ERR_DRIVER, 1);
    spec_fault(s.f, TN_SIM_STREAM_SYNCHRONIZE, 1, 1, TN_ERR_DRIVER, 2);
    assert_rises(s.m, 0, assert_status(run_release(&s.ending), TN_ERR_DRIVER));
    assert_int_equal(tn_last_error()->native_code, 2);
    assert_int_equal(spec_repair(s.f), 2);
    assert_int_equal(state_of(s.ending.lease.record), TN__ACTIVE);
    assert_in_use(tn_manager_drop(s.m, s.v, C0, NULL), 1, 0, 0);
    records = tn_sim_calls(s.f->sim, TN_SIM_EVENT_RECORD);
    release(&s.ending.lease);
    assert_int_equal(tn_sim_calls(s.f->sim, TN_SIM_EVENT_RECORD) - records, 2);
}

/* M147 */
static void release_without_streams_synchronises_the_device(void **state) {
    struct scene s = scene_of(*state);
    uint64_t calls = tn_sim_calls(s.f->sim, TN_SIM_DEVICE_SYNCHRONIZE);
    spec_busy(s.f, s.s1);
    tn__lease_test_clear_streams(&s.ending.lease);
    release(&s.ending.lease);
    assert_int_equal(tn_sim_calls(s.f->sim, TN_SIM_DEVICE_SYNCHRONIZE) - calls, 1);
    assert_true(spec_idle(s.f, s.s1));
    assert_int_equal(spec_warnings(s.f, TN_DIAGNOSTIC_RELEASE_FALLBACK), 1);
    assert_int_equal(state_of(s.ending.lease.record), TN__FREE);
}

static void release_without_streams_that_fails_leaves_it_active(void **state) {
    struct scene s = scene_of(*state);
    tn__lease_test_clear_streams(&s.ending.lease);
    spec_fault(s.f, TN_SIM_DEVICE_SYNCHRONIZE, 1, 1, TN_ERR_DRIVER, 3);
    assert_status(run_release(&s.ending), TN_ERR_DRIVER);
    assert_int_equal(state_of(s.ending.lease.record), TN__ACTIVE);
    release(&s.ending.lease);
}

/* With TN_RELEASE_WAIT the events are this thread's: another thread's drop completes the lease, and
 * the releasing thread still gives the events back. */
static void release_that_waits_may_be_completed_by_a_helper(void **state) {
    struct scene s = scene_of(*state);
    struct op releasing;
    read_for_10_ms(&s);
    assert_ok(tn_sim_set_waits(s.f->sim, TN_SIM_WAITS_BLOCK));
    s.ending.flags = TN_RELEASE_WAIT;
    OP_START(&releasing, run_release, &s.ending, 0);
    wait_until(state_of(s.ending.lease.record) == TN__PENDING);
    assert_in_use(tn_manager_drop(s.m, s.v, C0, NULL), 0, 0, 1);
    assert_ok(tn_sim_advance(s.f->sim, READ_NS));
    (void)drop(s.m, s.v, C0);
    assert_status(op_end(&releasing), TN_OK);
    assert_int_equal(state_of(s.ending.lease.record), TN__FREE);
    assert_ok(tn_sim_set_waits(s.f->sim, TN_SIM_WAITS_ADVANCE));
}

/* M146: open, though pending; closed by a second release; over when the work is. */
static void release_whose_wait_fails_is_open_and_pending(void **state) {
    struct scene s = scene_of(*state);
    const void *data;
    bool contains = false;
    read_for_10_ms(&s);
    s.ending.flags = TN_RELEASE_WAIT;
    spec_fault(s.f, TN_SIM_EVENT_SYNCHRONIZE, 1, 1, TN_ERR_DRIVER, 4);
    assert_status(run_release(&s.ending), TN_ERR_DRIVER);
    assert_int_equal(state_of(s.ending.lease.record), TN__PENDING);
    assert_true(tn_lease_active(&s.ending.lease));
    assert_ok(tn_lease_contains(&s.ending.lease, s.v, &contains));
    assert_true(contains);
    assert_status(tn_lease_lookup(&s.ending.lease, s.v, &data), TN_ERR_UNAVAILABLE);
    release(&s.ending.lease);
    assert_false(tn_lease_active(&s.ending.lease));
    assert_int_equal(info(s.m).pending_lease_count, 1);
    assert_ok(tn_sim_advance(s.f->sim, READ_NS));
    assert_int_equal(info(s.m).pending_lease_count, 0);
}

static const char *release_too(int index, void *arg) {
    struct scene *s = arg;
    (void)index;
    TN_WORKER_STATUS(tn_lease_release(&s->ending.lease, 0), TN_OK);
    return NULL;
}

static void release_by_many_threads_counts_once(void **state) {
    struct scene s = scene_of(*state);
    /* the release, and the reap with which the version is read */
    assert_rises(s.m, 2, assert_null_text(tn_test_workers_run(4, release_too, &s)));
    assert_int_equal(info(s.m).pending_lease_count + info(s.m).lease_count, 0);
}

#define ROUNDS 400

struct race {
    tn_lease lease[ROUNDS];
    tn_hold held[ROUNDS];
    tn_reservation r[ROUNDS];
    atomic_int turn;
};

static const char *end_all_in_step(int index, void *arg) {
    struct race *race = arg;
    (void)index;
    for (int i = 0; i < 3 * ROUNDS; i++) {
        atomic_fetch_add(&race->turn, 1);
        while (atomic_load(&race->turn) < 2 * (i + 1))
            sched_yield();
        if (i % 3 == 0)
            TN_WORKER_STATUS(tn_lease_release(&race->lease[i / 3], 0), TN_OK);
        else if (i % 3 == 1)
            TN_WORKER_STATUS(tn_hold_release(&race->held[i / 3]), TN_OK);
        else
            TN_WORKER_STATUS(tn_reservation_release(&race->r[i / 3]), TN_OK);
    }
    return NULL;
}

/* Two threads end the same lifetimes at the same moments; none of them made them. */
static void release_by_two_threads_in_step_counts_once(void **state) {
    static struct race race;
    struct scene s = scene_of(*state);
    race.turn = 0;
    for (int i = 0; i < ROUNDS; i++) {
        race.lease[i] = acquire(s.m, s.v, P, NULL);
        race.held[i] = hold(s.m, s.v, P);
        race.r[i] = reserve(s.m, P, 8, "r");
    }
    assert_int_equal(reserved(s.m, P), 8 * ROUNDS);
    assert_rises(s.m, 3 * ROUNDS, assert_null_text(tn_test_workers_run(2, end_all_in_step, &race)));
    assert_int_equal(reserved(s.m, P), 0);
    assert_int_equal(mat(s.m, s.v, P).use_count + mat(s.m, s.v, P).hold_count, 0);
}

static void release_of_what_is_over_does_nothing(void **state) {
    struct scene s = scene_of(*state);
    tn_lease host = acquire(s.m, s.v, P, NULL), none = {NULL, 0};
    tn_hold h = hold(s.m, s.v, P);
    tn_reservation r = reserve(s.m, P, 8, "r");
    release(&host);
    release_hold(&h);
    release_reservation(&r);
    assert_rises(s.m, 0, {
        release(&host);
        release_hold(&h);
        release_reservation(&r);
        release(&none);
    });
    /* the record has another life now */
    tn_lease next = acquire(s.m, s.v, P, NULL);
    release(&host);
    assert_true(tn_lease_active(&next));
    release(&next);
}

/* A lifetime ended by another thread goes back to the slot that made it. */
static void release_on_another_thread_returns_the_record_to_its_slot(void **state) {
    struct scene s = scene_of(*state);
    struct args host = {.m = s.m, .lease = acquire(s.m, s.v, P, NULL)};
    tn__record *record = host.lease.record;
    struct op other;
    OP_START(&other, run_release, &host, 0);
    assert_status(op_end(&other), TN_OK);
    assert_ptr_equal(own_slot(s.m)->free_remote, record);
    tn_lease one = acquire(s.m, s.v, P, NULL), two;
    while (one.record != record) { /* its own free list first */
        two = one;
        one = acquire(s.m, s.v, P, NULL);
        release(&two);
        if (own_slot(s.m)->free_remote == NULL)
            break;
    }
    release(&one);
}

/* M150 */
static void release_after_a_forced_close_is_silent(void **state) {
    struct scene s = scene_of(*state);
    tn_lease host = acquire(s.m, s.v, P, NULL);
    tn_reservation r = reserve(s.m, P, 8, "r");
    assert_ok(tn_manager_close(s.m, TN_CLOSE_FORCE));
    assert_int_equal(state_of(host.record), TN__DETACHED);
    assert_true(tn_lease_active(&host) && tn_lease_active(&s.ending.lease));
    release(&host);
    release(&s.ending.lease);
    release_reservation(&r);
    assert_false(tn_lease_active(&host) || tn_lease_active(&s.ending.lease));
    assert_int_equal(state_of(host.record), TN__FREE);
}

/* Every kind of end meets the guard between the entry check and its section. */
static void release_that_meets_the_guard_in_its_section_is_refused(void **state) {
    struct scene s = scene_of(*state);
    tn_lease host = acquire(s.m, s.v, P, NULL);
    tn_reservation r = reserve(s.m, P, 8, "r");
    tn__life_guard_raise(s.m->life);
    assert_status(run_release(&s.ending), TN_ERR_REENTRANCY);
    assert_status(tn_lease_release(&host, 0), TN_ERR_REENTRANCY);
    assert_status(tn_reservation_release(&r), TN_ERR_REENTRANCY);
    tn__life_guard_lower(s.m->life);
    assert_true(tn_lease_active(&host) && tn_lease_active(&s.ending.lease));
    release(&host);
    release_reservation(&r);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(release_stopped_anywhere_protects_as_a_use),
    SPEC_CONCURRENT(second_release_succeeds_while_the_first_records),
    SPEC_CONCURRENT(release_that_cannot_even_synchronise_leaves_it_active),
    SPEC_CONCURRENT(release_without_streams_synchronises_the_device),
    SPEC_CONCURRENT(release_without_streams_that_fails_leaves_it_active),
    SPEC_CONCURRENT(release_that_waits_may_be_completed_by_a_helper),
    SPEC_CONCURRENT(release_whose_wait_fails_is_open_and_pending),
    SPEC_CONCURRENT(release_by_many_threads_counts_once),
    SPEC_CONCURRENT(release_by_two_threads_in_step_counts_once),
    SPEC_CONCURRENT(release_of_what_is_over_does_nothing),
    SPEC_CONCURRENT(release_on_another_thread_returns_the_record_to_its_slot),
    SPEC_CONCURRENT(release_after_a_forced_close_is_silent),
    SPEC_CONCURRENT(release_that_meets_the_guard_in_its_section_is_refused),
};

TN_TEST_MAIN("unit.lifetime_release", tests)
