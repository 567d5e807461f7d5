/* SPDX-License-Identifier: MIT */
/*
 * src/lifetime/close.c: close as a plan on the manager word against acquires, forced close, and the
 * callback guard against operations that are past the check (G39, M189, M236..M241).
 */
#include "claims_fixture.h"

struct scene {
    struct spec *f;
    tn_manager *m;
    tn_handle v;         /* at P and C0 */
    struct args reading; /* v at C0 */
    struct args closing;
};

static struct scene scene_of(struct spec *f) {
    struct scene s = {.f = f, .m = MANAGER(f)};
    s.v = adopt_rep(f, s.m, P);
    (void)ensure(s.m, s.v, C0);
    s.reading = (struct args){.m = s.m, .h = {s.v}, .at = C0, .stream = spec_stream(f, 0)};
    s.closing = (struct args){.m = s.m};
    return s;
}

static uintptr_t word_of(const struct scene *s) { return tn__load_acq(&s->m->life->gate->word); }

/* The manager word points to a plan, which stands at `decision`. */
static bool closing_at(const struct scene *s, uint32_t decision) {
    uintptr_t word = word_of(s);
    return word > TN__MANAGER_CLOSED && tn__load_acq(&((tn__removal *)word)->decision) == decision;
}

/* ---- Close ------------------------------------------------------------------------------- */

static void acquire_past_its_pins_aborts_the_close(void **state) {
    struct scene s = scene_of(*state);
    struct op reader, closer;
    NEED_POINTS();
    OP_START(&reader, run_acquire, &s.reading, TN__POINT_PINS_STORED, TN__POINT_ACQUIRED);
    op_reach(&reader);
    OP_START(&closer, run_close, &s.closing, 0);
    op_wait_until(&closer, closing_at(&s, TN__TRYING));
    pause_shortly();
    assert_true(closing_at(&s, TN__TRYING)); /* it waits for the reader */
    op_go(&reader);
    op_reach(&reader);
    assert_true(closing_at(&s, TN__ABORTED));
    assert_status(op_end(&reader), TN_OK);
    assert_status(op_end(&closer), TN_ERR_IN_USE);
    assert_int_equal(closer.error.active_lease_count, 1);
    assert_int_equal(word_of(&s), TN__MANAGER_OPEN);
    release(&s.reading.lease);
}

/* The reader fails without ever looking at the manager word: the close goes on, and may be over when
 * the reader reports. */
static void acquire_that_fails_does_not_stop_the_close(void **state) {
    struct scene s = scene_of(*state);
    tn__mat *mat = mat_of(s.m, s.v, C0);
    struct op reader, closer;
    NEED_POINTS();
    OP_START(&reader, run_acquire, &s.reading, TN__POINT_PINS_STORED);
    op_reach(&reader);
    tn__removal *taken = tn__removal_new(&mat, 1, 0); /* another plan's, by hand */
    tn__store_rlx(&taken->decision, TN__TAKEN);
    tn__store_rel(&mat->state, (uintptr_t)taken);
    OP_START(&closer, run_close, &s.closing, 0);
    op_wait_until(&closer, closing_at(&s, TN__TRYING));
    tn_status status = op_end(&reader);
    if (status != TN_ERR_CLOSED)
        assert_status(status, TN_ERR_UNAVAILABLE);
    assert_status(op_end(&closer), TN_OK);
    assert_int_equal(word_of(&s), TN__MANAGER_CLOSED);
    tn__free(taken);
}

/* Aborted by a reader that then failed: the close is tried anew. */
static void close_aborted_by_a_reader_that_fails_tries_again(void **state) {
    struct scene s = scene_of(*state);
    tn__slot *slot = own_slot(s.m);
    tn__record *record = tn__record_obtain(slot);
    uint64_t generation = tn__word_generation(record->pair.low) + 1;
    struct op closer;
    bool mine = false;
    tn__store_rel(&record->pair.low, tn__word(generation, TN__ACQUIRING));
    OP_START(&closer, run_close, &s.closing, 0);
    op_wait_until(&closer, closing_at(&s, TN__TRYING));
    tn__removal *plan = (tn__removal *)word_of(&s);
    assert_true(tn__decision_meet(plan, &mine) && mine);
    pause_shortly();
    assert_false(atomic_load(&closer.ended));
    tn__store_rel(&record->pair.low, tn__word(generation, TN__FREE));
    tn__decision_outcome(plan, false);
    assert_status(op_end(&closer), TN_OK);
    tn__record_recycle(record, slot);
}

static void reserve_past_its_record_aborts_the_close(void **state) {
    struct scene s = scene_of(*state);
    tn__removal *plan = tn__removal_new(NULL, 0, 0);
    (void)reserve(s.m, P, 0, "first: tracked");
    tn__store_rel(&s.m->life->gate->word, (uintptr_t)plan);
    tn_reservation r = reserve(s.m, P, 8, "second");
    assert_int_equal(plan->decision, TN__GRANTED);
    tn__store_rlx(&plan->decision, TN__TAKEN);
    struct args third = {.m = s.m, .at = P, .bytes = 8};
    assert_status(run_reserve(&third), TN_ERR_CLOSED);
    tn__store_rel(&s.m->life->gate->word, TN__MANAGER_OPEN);
    tn__free(plan);
    assert_int_equal(reserved(s.m, P), 8);
    release_reservation(&r);
    assert_int_equal(reserved(s.m, P), 0);
}

static void acquire_that_meets_a_close_being_tried_aborts_it(void **state) {
    struct scene s = scene_of(*state);
    tn__removal *plan = tn__removal_new(NULL, 0, 0);
    tn__store_rel(&s.m->life->gate->word, (uintptr_t)plan);
    assert_ok(run_acquire(&s.reading));
    assert_int_equal(plan->decision, TN__GRANTED);
    assert_int_equal(tn__decision_settle(s.m->life, plan), 0);
    assert_ok(run_hold(&s.reading)); /* aborted already: nothing to decide */
    tn__store_rel(&s.m->life->gate->word, TN__MANAGER_OPEN);
    tn__free(plan);
    release(&s.reading.lease);
    release_hold(&s.reading.hold);
}

/* What is TAKEN refuses at the commit point; nothing else has happened. */
static void acquire_that_meets_a_decided_close_is_refused(void **state) {
    struct scene s = scene_of(*state);
    tn__removal *plan = tn__removal_new(NULL, 0, 0);
    struct args untracked = {.m = s.m, .at = C1, .bytes = 8};
    tn__store_rlx(&plan->decision, TN__TAKEN);
    tn__store_rel(&s.m->life->gate->word, (uintptr_t)plan);
    assert_status(run_acquire(&s.reading), TN_ERR_CLOSED);
    assert_status(run_hold(&s.reading), TN_ERR_CLOSED);
    assert_status(run_reserve(&untracked), TN_ERR_CLOSED);
    tn__store_rel(&s.m->life->gate->word, TN__MANAGER_OPEN);
    tn__free(plan);
    assert_int_equal(info(s.m).lease_count, 0);
    assert_locations(s.m, P, C0);
}

static void forced_close_waits_for_a_reader_and_refuses_it(void **state) {
    struct scene s = scene_of(*state);
    struct op reader, closer;
    NEED_POINTS();
    s.closing.flags = TN_CLOSE_FORCE;
    OP_START(&reader, run_acquire, &s.reading, TN__POINT_PINS_STORED);
    op_reach(&reader);
    OP_START(&closer, run_close, &s.closing, 0);
    op_wait_until(&closer, closing_at(&s, TN__TAKEN));
    pause_shortly();
    assert_false(atomic_load(&closer.ended)); /* a grace period */
    assert_status(op_end(&reader), TN_ERR_CLOSED);
    assert_status(op_end(&closer), TN_OK);
    assert_int_equal(word_of(&s), TN__MANAGER_CLOSED);
}

static void forced_close_waits_for_a_release_that_records(void **state) {
    struct scene s = scene_of(*state);
    struct args ending = {.m = s.m, .lease = acquire(s.m, s.v, C0, s.reading.stream)};
    struct op releaser, closer;
    NEED_POINTS();
    s.closing.flags = TN_CLOSE_FORCE;
    OP_START(&releaser, run_release, &ending, TN__POINT_RECORDED);
    op_reach(&releaser);
    OP_START(&closer, run_close, &s.closing, 0);
    op_wait_until(&closer, closing_at(&s, TN__TAKEN));
    pause_shortly();
    assert_false(atomic_load(&closer.ended)); /* RELEASING */
    assert_status(op_end(&releaser), TN_OK);
    assert_status(op_end(&closer), TN_OK);
    assert_int_equal(state_of(ending.lease.record), TN__FREE);
}

/* M238: the device cannot be synchronised, so everything is as before. */
static void forced_close_that_fails_opens_again(void **state) {
    struct scene s = scene_of(*state);
    tn_lease lease = acquire(s.m, s.v, C0, s.reading.stream);
    spec_fault(s.f, TN_SIM_DEVICE_SYNCHRONIZE, 1, 1, TN_ERR_DRIVER, 5);
    assert_status(tn_manager_close(s.m, TN_CLOSE_FORCE), TN_ERR_DRIVER);
    assert_int_equal(word_of(&s), TN__MANAGER_OPEN);
    assert_int_equal(info(s.m).lease_count, 1);
    release(&lease);
}

/* The books are even: neither reservations nor values are charged any longer (B2). */
static void close_leaves_no_charge(void **state) {
    static const uint32_t flags[] = {0, TN_CLOSE_FORCE};
    for (int i = 0; i < 2; i++) {
        struct scene s = scene_of(*state);
        tn_reservation r = {NULL, 0};
        if (flags[i])
            r = reserve(s.m, P, 8, "detached");
        expect_claimed(s.m, P, flags[i] ? 40 : 32, 0);
        assert_ok(tn_manager_close(s.m, flags[i]));
        expect_claimed(s.m, P, 0, 0);
        expect_claimed(s.m, C0, 0, 0);
        if (flags[i])
            assert_ok(tn_reservation_release(&r)); /* silently (M150), and not once more */
        expect_claimed(s.m, P, 0, 0);
    }
}

/* A close inside a read section of the host program would wait for itself. */
static void close_in_a_section_of_the_host_is_refused(void **state) {
    struct scene s = scene_of(*state);
    tn__rcu_lock();
    assert_status(tn_manager_close(s.m, TN_CLOSE_FORCE), TN_ERR_REENTRANCY);
    assert_status(tn_manager_destroy(s.m), TN_ERR_REENTRANCY);
    assert_status(tn_manager_step(s.m, NULL), TN_ERR_REENTRANCY);
    tn__rcu_unlock();
    assert_int_equal(word_of(&s), TN__MANAGER_OPEN);
    assert_ok(run_acquire(&s.reading));
    release(&s.reading.lease);
}

/* Two closes: the second waits for the first and finds it done. */
static void close_of_two_threads_happens_once(void **state) {
    struct scene s = scene_of(*state);
    struct args other = s.closing;
    struct op reader, first, second;
    NEED_POINTS();
    OP_START(&reader, run_acquire, &s.reading, TN__POINT_PINS_STORED);
    op_reach(&reader);
    s.closing.flags = TN_CLOSE_FORCE;
    OP_START(&first, run_close, &s.closing, 0);
    op_wait_until(&first, closing_at(&s, TN__TAKEN));
    OP_START(&second, run_close, &other, 0);
    pause_shortly();
    assert_status(op_end(&reader), TN_ERR_CLOSED);
    assert_status(op_end(&first), TN_OK);
    assert_status(op_end(&second), TN_OK);
}

/* ---- Guard (SERIAL) ---------------------------------------------------------------------- */

struct guarded {
    struct scene s;
    tt_source *source;
    tn_handle unloaded;
    struct args loading;
};

static struct guarded guarded_of(struct spec *f) {
    struct guarded g = {.s = scene_of(f), .source = spec_source(f)};
    g.unloaded = register_src(g.s.m, g.source);
    g.loading = (struct args){.m = g.s.m, .h = {g.unloaded}, .at = P};
    return g;
}

/* The guard is up, and waits: the source is not called before the acquire is over. */
static void guard_waits_for_an_acquire_past_the_check(void **state) {
    struct guarded g = guarded_of(*state);
    struct op reader, loader;
    tn_lease refused;
    NEED_POINTS();
    OP_START(&reader, run_acquire, &g.s.reading, TN__POINT_PINS_STORED);
    op_reach(&reader);
    OP_START(&loader, run_ensure, &g.loading, 0);
    op_wait_until(&loader, word_of(&g.s) == TN__MANAGER_GUARDED);
    assert_status(tn_manager_acquire(g.s.m, &g.s.v, 1, P, NULL, &refused), TN_ERR_REENTRANCY);
    pause_shortly();
    assert_int_equal(atomic_load(&g.source->calls), 0);
    assert_status(op_end(&reader), TN_OK);
    assert_status(op_end(&loader), TN_OK);
    assert_int_equal(atomic_load(&g.source->calls), 1);
    assert_int_equal(word_of(&g.s), TN__MANAGER_OPEN);
    release(&g.s.reading.lease);
}

static void guard_waits_for_a_release_that_records(void **state) {
    struct guarded g = guarded_of(*state);
    struct args ending = {.m = g.s.m, .lease = acquire(g.s.m, g.s.v, C0, g.s.reading.stream)};
    struct op releaser, loader;
    NEED_POINTS();
    OP_START(&releaser, run_release, &ending, TN__POINT_RECORD_EVENT, TN__POINT_RECORDED);
    op_reach(&releaser);
    OP_START(&loader, run_ensure, &g.loading, 0);
    op_wait_until(&loader, word_of(&g.s) == TN__MANAGER_GUARDED);
    op_go(&releaser);
    op_reach(&releaser);
    pause_shortly();
    assert_int_equal(atomic_load(&g.source->calls), 0);
    assert_status(op_end(&releaser), TN_OK);
    assert_status(op_end(&loader), TN_OK);
    assert_int_equal(atomic_load(&g.source->calls), 1);
}

static tn_status until_it_ended(void *context, const tn_load_request *request) {
    (void)request;
    while (!atomic_load(&((struct op *)context)->ended))
        pause_shortly();
    return TN_OK;
}

/* A mutation that was waiting when the guard went up: a callback may wait for it (M193). */
static void guard_refuses_a_mutation_that_waited(void **state) {
    struct guarded g = guarded_of(*state);
    struct args copying = {.m = g.s.m, .h = {g.s.v}, .at = C1};
    struct args dropping = {.m = g.s.m, .h = {g.s.v}, .at = C0};
    struct op copier, loader, dropper = {.running = false};
    NEED_POINTS();
    g.source->hook = until_it_ended;
    g.source->hook_context = &dropper;
    OP_START(&copier, run_ensure, &copying, TN__POINT_PERFORM);
    op_reach(&copier);
    OP_START(&loader, run_ensure, &g.loading, 0);
    wait_until(flow_count(g.s.m, false) == 1);
    OP_START(&dropper, run_drop, &dropping, 0);
    wait_until(flow_count(g.s.m, false) == 2);
    assert_status(op_end(&copier), TN_OK);
    assert_status(op_end(&dropper), TN_ERR_REENTRANCY);
    assert_status(op_end(&loader), TN_OK);
    assert_true(resident(g.s.m, g.s.v, C0));
    assert_true(resident(g.s.m, g.s.v, C1));
}

/* The same when it is a step of a plan that loads: nobody has been told since its admission. */
static void guard_of_a_step_refuses_a_mutation_that_waited(void **state) {
    struct guarded g = guarded_of(*state);
    struct args dropping = {.m = g.s.m, .h = {g.s.v}, .at = P};
    struct sequence plan;
    struct op dropper = {.running = false};
    NEED_POINTS();
    g.source->hook = until_it_ended;
    g.source->hook_context = &dropper;
    FILL(&plan, g.s.m, ENSURE(g.unloaded, P), DROP(g.s.v, C0));
    OP_START(&plan.op, run_sequence, &plan, TN__POINT_TAKEN); /* admitted, before its first step */
    op_reach(&plan.op);
    OP_START(&dropper, run_drop, &dropping, 0);
    wait_until(flow_count(g.s.m, false) == 1);
    op_go(&plan.op);
    assert_status(op_end(&dropper), TN_ERR_REENTRANCY);
    assert_status(op_end(&plan.op), TN_OK);
    assert_replicas(g.s.m, g.s.v, P);
    assert_replicas(g.s.m, g.unloaded, P);
}

static tn_status ensure_in_section(void *arg) {
    struct args *a = arg;
    tn__thread *thread = tn__thread_self();
    tn__rcu_thread_ready(thread);
    tn__rcu_lock();
    tn_status status = run_ensure(a);
    tn__rcu_unlock();
    return status;
}

/* The guard cannot wait inside a section of the host: it goes down again, the source is not called
 * and the value is as it was. */
static void guard_in_a_section_of_the_host_goes_down_again(void **state) {
    struct guarded g = guarded_of(*state);
    struct op loader;
    OP_START(&loader, ensure_in_section, &g.loading, 0);
    assert_status(op_end(&loader), TN_ERR_REENTRANCY);
    assert_int_equal(word_of(&g.s), TN__MANAGER_OPEN);
    assert_int_equal(atomic_load(&g.source->calls), 0);
    (void)ensure(g.s.m, g.unloaded, P);
}

/* ---- Abandonment (D15) ------------------------------------------------------------------- */

static void destroy_tells_of_each_open_lifetime(void **state) {
    struct scene s = scene_of(*state);
    tn_lease pending = acquire(s.m, s.v, C0, s.reading.stream);
    (void)acquire(s.m, s.v, P, NULL);
    assert_ok(run_acquire(&s.reading));
    (void)hold(s.m, s.v, C0);
    (void)reserve(s.m, C1, 8, "r");
    spec_busy(s.f, s.reading.stream);
    release(&pending);
    spec_destroy(s.f, s.m);
    assert_true(spec_idle(s.f, s.reading.stream));
    assert_int_equal(spec_warnings(s.f, TN_DIAGNOSTIC_LEASE_ABANDONED), 2);
    assert_int_equal(spec_warnings(s.f, TN_DIAGNOSTIC_HOLD_ABANDONED), 1);
    assert_int_equal(spec_warnings(s.f, TN_DIAGNOSTIC_RESERVATION_ABANDONED), 1);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(acquire_past_its_pins_aborts_the_close),
    SPEC_CONCURRENT(acquire_that_fails_does_not_stop_the_close),
    SPEC_CONCURRENT(close_aborted_by_a_reader_that_fails_tries_again),
    SPEC_CONCURRENT(reserve_past_its_record_aborts_the_close),
    SPEC_CONCURRENT(acquire_that_meets_a_close_being_tried_aborts_it),
    SPEC_CONCURRENT(acquire_that_meets_a_decided_close_is_refused),
    SPEC_BOTH(forced_close_waits_for_a_reader_and_refuses_it),
    SPEC_BOTH(forced_close_waits_for_a_release_that_records),
    SPEC_BOTH(forced_close_that_fails_opens_again),
    SPEC_BOTH(close_leaves_no_charge),
    SPEC_BOTH(close_in_a_section_of_the_host_is_refused),
    SPEC_BOTH(close_of_two_threads_happens_once),
    SPEC_SERIAL(guard_waits_for_an_acquire_past_the_check),
    SPEC_SERIAL(guard_waits_for_a_release_that_records),
    SPEC_SERIAL(guard_refuses_a_mutation_that_waited),
    SPEC_SERIAL(guard_of_a_step_refuses_a_mutation_that_waited),
    SPEC_SERIAL(guard_in_a_section_of_the_host_goes_down_again),
    SPEC_BOTH(destroy_tells_of_each_open_lifetime),
};

TN_TEST_MAIN("unit.lifetime_close", tests)
