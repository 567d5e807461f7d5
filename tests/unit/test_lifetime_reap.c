/* SPDX-License-Identifier: MIT */
/*
 * src/lifetime/reap.c, reaper.c: who completes pending leases, when, and that no wake-up is lost
 * (M161..M165, D1, D7).
 */
#include "core_fixture.h"

#include <signal.h>

struct scene {
    struct spec *f;
    tn_manager *m;
    tn_handle v; /* at P and C0 */
    tn_stream stream;
};

static struct scene scene_with(struct spec *f, uint32_t reaper) {
    struct scene s = {.f = f};
    tn_config config = spec_config(f);
    config.reaper = reaper;
    s.m = spec_manager_with(f, &config);
    s.v = adopt_rep(f, s.m, P);
    (void)ensure(s.m, s.v, C0);
    s.stream = spec_stream(f, 0);
    return s;
}

static struct scene scene_of(struct spec *f) { return scene_with(f, TN_REAPER_MANUAL); }

/* A lease that is over but for `ms` of work on its stream. */
static tn_lease pending_for(struct scene *s, tn_stream stream, uint64_t ms) {
    tn_lease lease = acquire(s->m, s->v, C0, stream);
    assert_ok(tn_sim_queue_delay(s->f->sim, stream, ms * 1000000));
    release(&lease);
    return lease;
}

static uint64_t step(struct scene *s) {
    uint64_t done = 0;
    assert_ok(tn_manager_step(s->m, &done));
    return done;
}

/* ---- Manual ------------------------------------------------------------------------------ */

static void step_completes_what_is_done_in_any_order(void **state) {
    struct scene s = scene_of(*state);
    tn_stream streams[5];
    tn_lease leases[5];
    while (step(&s) != 0) /* garbage of the set-up */
        ;
    for (int i = 0; i < 5; i++) {
        streams[i] = spec_stream(s.f, 0);
        leases[i] = pending_for(&s, streams[i], (uint64_t)(i % 2 ? 1 : 3));
    }
    assert_int_equal(step(&s), 0);
    assert_ok(tn_sim_advance(s.f->sim, 1000000));
    assert_int_equal(step(&s), 2);
    for (int i = 0; i < 5; i++)
        assert_int_equal(state_of(leases[i].record), i % 2 ? TN__FREE : TN__PENDING);
    (void)pending_for(&s, streams[1], 1); /* behind the others in the list */
    spec_finish(s.f);
    assert_int_equal(step(&s), 4);
    assert_int_equal(step(&s), 0);
}

/* M165: the first failing query ends the reap of an operation; a step does the rest. */
static void failing_query_stops_an_operation_but_not_a_step(void **state) {
    struct scene s = scene_of(*state);
    tn_stream other = spec_stream(s.f, 0);
    tn_lease first = pending_for(&s, s.stream, 1), second = pending_for(&s, other, 1);
    uint64_t version_now, done = 7;
    spec_finish(s.f);
    spec_fault(s.f, TN_SIM_EVENT_QUERY, 1, 1, TN_ERR_DRIVER, 31);
    assert_status(tn_manager_state_version(s.m, &version_now), TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->native_code, 31);
    assert_int_equal(state_of(second.record), TN__PENDING);
    (void)spec_repair(s.f);
    spec_fault(s.f, TN_SIM_EVENT_QUERY, 1, 1, TN_ERR_DRIVER, 32);
    assert_status(tn_manager_step(s.m, &done), TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->native_code, 32);
    assert_int_equal(done, 7);
    assert_int_equal(state_of(first.record), TN__PENDING);
    assert_int_equal(state_of(second.record), TN__FREE);
    (void)spec_repair(s.f);
    assert_int_equal(info(s.m).pending_lease_count, 0);
}

/* Another thread is at it: an operation does not wait for it (L3). */
static void reap_in_progress_elsewhere_is_not_waited_for(void **state) {
    struct scene s = scene_of(*state);
    tn_lease lease = pending_for(&s, s.stream, 1);
    spec_finish(s.f);
    struct op holder;
    struct args x = {.m = s.m, .h = {s.v}, .at = P};
    tn__lock(&s.m->life->reap_lock);
    OP_START(&holder, run_hold, &x, 0);
    assert_status(op_end(&holder), TN_OK);
    assert_int_equal(state_of(lease.record), TN__PENDING);
    tn__unlock(&s.m->life->reap_lock);
    assert_int_equal(info(s.m).pending_lease_count, 0);
    release_hold(&x.hold);
}

static bool help(tn__life *life, tn__mat *const *mats, size_t count) {
    bool perhaps;
    assert_ok(tn__life_help(life, mats, count, &perhaps));
    return perhaps;
}

/* While another thread reaps, a removal asks for itself: a query that fails is its own error, not a
 * use of the value (M165); it changes nothing. */
static void removal_reports_a_failing_query(void **state) {
    struct scene s = scene_of(*state);
    tn_lease lease = pending_for(&s, s.stream, 1);
    struct op dropper;
    struct args x = {.m = s.m, .h = {s.v}, .at = C0};
    uint64_t before = version(s.m);
    spec_finish(s.f);
    tn__lock(&s.m->life->reap_lock);
    spec_fault(s.f, TN_SIM_EVENT_QUERY, 1, 1, TN_ERR_DRIVER, 35);
    OP_START(&dropper, run_drop, &x, 0);
    assert_status(op_end(&dropper), TN_ERR_DRIVER);
    assert_int_equal(state_of(lease.record), TN__PENDING);
    OP_START(&dropper, run_drop, &x, 0);
    assert_status(op_end(&dropper), TN_OK);
    tn__unlock(&s.m->life->reap_lock);
    assert_int_equal(version(s.m), before + 2);
}

/* A helper completes; the consumer finds it DONE, counts nothing, and gives the events back. */
static void lease_completed_by_a_drop_is_consumed_later(void **state) {
    struct scene s = scene_of(*state);
    tn_lease lease = pending_for(&s, s.stream, 1);
    spec_finish(s.f);
    tn__mat *mat = mat_of(s.m, s.v, C0);
    assert_false(help(s.m->life, &mat, 1));
    assert_int_equal(state_of(lease.record), TN__DONE);
    assert_false(tn_lease_active(&lease));
    uint64_t sum = 0;
    bool stable;
    sum = tn__life_count(s.m->life, &stable);
    uint64_t done = step(&s);
    assert_int_equal(tn__life_count(s.m->life, &stable), sum);
    assert_int_equal(state_of(lease.record), TN__FREE);
    (void)done;
}

/* Of several that find the events complete one decides, and counts. */
static void lease_is_completed_once(void **state) {
    struct scene s = scene_of(*state);
    tn_lease lease = pending_for(&s, s.stream, 0);
    tn__record *record = lease.record;
    tn__slot *own = own_slot(s.m);
    uint64_t word = tn__record_word(record), count = tn__load_acq(&own->counter);
    assert_true(tn__pending_complete(own, record, word));
    assert_int_equal(tn__load_acq(&own->counter), count + 2);
    assert_false(tn__pending_complete(own, record, word));
    assert_int_equal(tn__load_acq(&own->counter), count + 2);
    assert_int_equal(info(s.m).pending_lease_count, 0);
    assert_int_equal(tn__load_acq(&own->counter), count + 2);
}

/* What help says of each state: a removal that hears "no" does not count. */
static void help_tells_whether_something_protects(void **state) {
    struct scene s = scene_of(*state);
    tn__mat *mats[2] = {mat_of(s.m, adopt_rep(s.f, s.m, C0), C0), mat_of(s.m, s.v, C0)};
    assert_false(help(s.m->life, mats, 2));
    tn_lease lease = pending_for(&s, s.stream, 1);
    assert_true(help(s.m->life, mats, 2)); /* PENDING, and its work is not over */
    assert_false(help(s.m->life, mats, 1));
    spec_finish(s.f);
    assert_false(help(s.m->life, mats, 2));
    assert_false(tn_lease_active(&lease));
    lease = acquire(s.m, s.v, C0, s.stream);
    assert_true(help(s.m->life, mats, 2)); /* ACTIVE */
    release(&lease);
    tn_hold held = hold(s.m, s.v, C0);
    assert_true(help(s.m->life, mats, 2));
    release_hold(&held);
}

/* Help asks only what concerns the materializations in question. */
static void help_leaves_other_leases_alone(void **state) {
    struct scene s = scene_of(*state);
    tn_handle other = adopt_rep(s.f, s.m, C0);
    tn_lease lease = pending_for(&s, s.stream, 1);
    spec_finish(s.f);
    uint64_t queries = tn_sim_calls(s.f->sim, TN_SIM_EVENT_QUERY);
    tn__mat *mat = mat_of(s.m, other, C0);
    assert_false(help(s.m->life, &mat, 1));
    assert_false(help(s.m->life, &mat, 0));
    assert_int_equal(tn_sim_calls(s.f->sim, TN_SIM_EVENT_QUERY), queries);
    assert_int_equal(state_of(lease.record), TN__PENDING);
}

/* D7: events of a driver that is gone count as complete. */
static void driver_that_is_gone_completes_everything(void **state) {
    struct scene s = scene_of(*state);
    (void)pending_for(&s, s.stream, 5);
    assert_int_equal(info(s.m).pending_lease_count, 1);
    assert_ok(tn_sim_set_state(s.f->sim, TN_SIM_CONTEXT_DESTROYED));
    s.f->lenient = true;
    assert_int_equal(info(s.m).pending_lease_count, 0);
}

/* ---- More events than are copied at once -------------------------------------------------- */

static void lease_on_forty_streams_waits_for_all(void **state) {
    struct scene s = scene_of(*state);
    tn_stream streams[31];
    tn_lease lease = acquire(s.m, s.v, C0, s.stream);
    for (int i = 0; i < 31; i++) {
        streams[i] = spec_stream(s.f, 0);
        assert_ok(tn_lease_add_stream(&lease, streams[i]));
        if (i < 30)
            assert_ok(tn_sim_queue_delay(s.f->sim, streams[i], 1000000));
    }
    assert_ok(tn_sim_queue_delay(s.f->sim, streams[30], 2000000));
    release(&lease);
    assert_ok(tn_sim_advance(s.f->sim, 1000000));
    assert_int_equal(info(s.m).pending_lease_count, 1); /* the 32nd event */
    assert_ok(tn_sim_advance(s.f->sim, 1000000));
    assert_int_equal(info(s.m).pending_lease_count, 0);
}

/* Close waits for the events of all of them, in one pass. */
static void close_waits_for_all_events(void **state) {
    struct scene s = scene_of(*state);
    tn_lease lease = acquire(s.m, s.v, C0, s.stream);
    for (int i = 0; i < 20; i++) {
        tn_stream stream = spec_stream(s.f, 0);
        assert_ok(tn_lease_add_stream(&lease, stream));
        assert_ok(tn_sim_queue_delay(s.f->sim, stream, 1000000));
    }
    release(&lease);
    (void)pending_for(&s, s.stream, 2);
    assert_ok(tn_manager_close(s.m, 0));
    assert_int_equal(tn_sim_now_ns(s.f->sim), 2000000);
}

/* M238: what was waited for stays over, the rest stays pending. */
static void close_whose_wait_fails_keeps_the_rest_pending(void **state) {
    struct scene s = scene_of(*state);
    tn_stream other = spec_stream(s.f, 0);
    tn_lease a = pending_for(&s, s.stream, 1), b = pending_for(&s, other, 5);
    spec_fault(s.f, TN_SIM_EVENT_SYNCHRONIZE, 2, 1, TN_ERR_DRIVER, 33);
    assert_status(tn_manager_close(s.m, 0), TN_ERR_DRIVER);
    assert_int_equal((state_of(a.record) == TN__PENDING) + (state_of(b.record) == TN__PENDING), 1);
    assert_ok(tn_manager_close(s.m, 0));
}

/* ---- The thread -------------------------------------------------------------------------- */

/* Nobody calls anything: the reaper finds each lease, asleep or not. */
static void reaper_finds_every_lease(void **state) {
    struct scene s = scene_with(*state, TN_REAPER_THREAD);
    for (int i = 0; i < 200; i++) {
        tn_lease lease = pending_for(&s, s.stream, 0);
        wait_until(state_of(lease.record) != TN__PENDING);
    }
    if (!TN_CHECKS)
        return;
    wait_until(tn__load_acq(&s.m->life->asleep) == 1);
}

static void reaper_polls_while_something_is_pending(void **state) {
    struct scene s = scene_with(*state, TN_REAPER_THREAD);
    tn_lease lease = pending_for(&s, s.stream, 1);
    uint64_t queries = tn_sim_calls(s.f->sim, TN_SIM_EVENT_QUERY);
    wait_until(tn_sim_calls(s.f->sim, TN_SIM_EVENT_QUERY) > queries + 10);
    assert_int_equal(state_of(lease.record), TN__PENDING);
    spec_finish(s.f);
    wait_until(state_of(lease.record) == TN__FREE);
}

/* A query that keeps failing is told once, and again after it worked in between. */
static void reaper_tells_of_a_failing_query_once(void **state) {
    struct scene s = scene_with(*state, TN_REAPER_THREAD);
    for (unsigned round = 1; round <= 2; round++) {
        spec_fault(s.f, TN_SIM_EVENT_QUERY, 1, 0, TN_ERR_DRIVER, 34);
        tn_lease lease = pending_for(&s, s.stream, 0);
        uint64_t queries = tn_sim_calls(s.f->sim, TN_SIM_EVENT_QUERY);
        wait_until(tn_sim_calls(s.f->sim, TN_SIM_EVENT_QUERY) > queries + 5);
        assert_int_equal(spec_warnings(s.f, TN_DIAGNOSTIC_REAPER), round);
        assert_true(spec_repair(s.f) > 0);
        wait_until(state_of(lease.record) == TN__FREE);
        wait_until(tn__load_acq(&s.m->life->asleep) == 1);
    }
}

/* What transitions replace is freed by the reaper, without a step. */
static void reaper_frees_garbage(void **state) {
    struct scene s = scene_with(*state, TN_REAPER_THREAD);
    for (int i = 0; i < 20; i++) {
        (void)drop(s.m, s.v, C0);
        (void)ensure(s.m, s.v, C0);
    }
    wait_until(!tn__store_has_garbage(s.m->store) && tn__load_acq(&s.m->life->garbage) == NULL);
}

static void ignore(int signal_number) { (void)signal_number; }

/* A signal of the host program that is handled on the reaper's thread is no reason to wake. */
static void reaper_sleeps_through_signals(void **state) {
    struct scene s = scene_with(*state, TN_REAPER_THREAD);
    struct sigaction quiet = {.sa_handler = ignore}, before;
    assert_int_equal(sigaction(SIGUSR2, &quiet, &before), 0);
    for (int i = 0; i < 20; i++) {
        wait_until(tn__load_acq(&s.m->life->asleep) == 1);
        pause_shortly();
        assert_int_equal(pthread_kill(s.m->life->reaper, SIGUSR2), 0);
        pause_shortly();
        assert_int_equal(tn__load_acq(&s.m->life->asleep), 1);
    }
    tn_lease lease = pending_for(&s, s.stream, 0);
    wait_until(state_of(lease.record) == TN__FREE);
    assert_int_equal(sigaction(SIGUSR2, &before, NULL), 0);
}

static void close_without_wait_reaps_beside_the_thread(void **state) {
    struct scene s = scene_with(*state, TN_REAPER_THREAD);
    (void)pending_for(&s, s.stream, 1);
    assert_close_in_use(tn_manager_close(s.m, TN_CLOSE_NO_WAIT), 0, 1, 0, 0);
    spec_finish(s.f);
    assert_ok(tn_manager_close(s.m, TN_CLOSE_NO_WAIT));
}

struct slow {
    struct op *op;
    struct spec *f;
    tn_manager *m;
    uint64_t queries;
};

static tn_status look_at_the_reaper(void *context, const tn_load_request *request) {
    struct slow *slow = context;
    (void)request;
    for (int i = 0; i < 50; i++)
        pause_shortly();
    slow->queries = tn_sim_calls(slow->f->sim, TN_SIM_EVENT_QUERY);
    for (int i = 0; i < 50; i++)
        pause_shortly();
    slow->queries = tn_sim_calls(slow->f->sim, TN_SIM_EVENT_QUERY) - slow->queries;
    return TN_OK;
}

/* While a guard is up its manager is skipped. */
static void reaper_leaves_a_guarded_manager_alone(void **state) {
    struct scene s = scene_with(*state, TN_REAPER_THREAD);
    tt_source *source = spec_source(s.f);
    struct slow slow = {.f = s.f, .m = s.m, .queries = 99};
    tn_handle src = register_src(s.m, source);
    source->hook = look_at_the_reaper;
    source->hook_context = &slow;
    tn_lease lease = pending_for(&s, s.stream, 1);
    (void)ensure(s.m, src, P);
    assert_int_equal(slow.queries, 0);
    spec_finish(s.f);
    wait_until(state_of(lease.record) == TN__FREE);
}

static const struct CMUnitTest tests[] = {
    SPEC_CONCURRENT(step_completes_what_is_done_in_any_order),
    SPEC_CONCURRENT(failing_query_stops_an_operation_but_not_a_step),
    SPEC_CONCURRENT(reap_in_progress_elsewhere_is_not_waited_for),
    SPEC_CONCURRENT(removal_reports_a_failing_query),
    SPEC_CONCURRENT(lease_completed_by_a_drop_is_consumed_later),
    SPEC_CONCURRENT(lease_is_completed_once),
    SPEC_CONCURRENT(help_leaves_other_leases_alone),
    SPEC_CONCURRENT(help_tells_whether_something_protects),
    SPEC_CONCURRENT(driver_that_is_gone_completes_everything),
    SPEC_CONCURRENT(lease_on_forty_streams_waits_for_all),
    SPEC_CONCURRENT(close_waits_for_all_events),
    SPEC_CONCURRENT(close_whose_wait_fails_keeps_the_rest_pending),
    SPEC_CONCURRENT(reaper_finds_every_lease),
    SPEC_CONCURRENT(reaper_polls_while_something_is_pending),
    SPEC_CONCURRENT(reaper_tells_of_a_failing_query_once),
    SPEC_CONCURRENT(reaper_sleeps_through_signals),
    SPEC_BOTH(close_without_wait_reaps_beside_the_thread),
    SPEC_BOTH(reaper_frees_garbage),
    SPEC_SERIAL(reaper_leaves_a_guarded_manager_alone),
};

TN_TEST_MAIN("unit.lifetime_reap", tests)
