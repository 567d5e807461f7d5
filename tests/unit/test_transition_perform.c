/* SPDX-License-Identifier: MIT */
/*
 * src/transition/perform.c, commit.c, trans.c, report.c: what a run makes, gives back and installs,
 * with other threads in between (X1, F1, B2, M72..M92).
 */
#include "core_fixture.h"

static void ledger_of(tn_manager *m, tn_location at, uint64_t total, uint64_t claim) {
    uint64_t got, claimed;
    tn__ledger_read(tn__store_ledger(m->store, at), &got, &claimed);
    assert_int_equal(got, total);
    assert_int_equal(claimed, claim);
}

/* ---- Claims while a run is under way ------------------------------------------------------ */

/* The destination is claimed, invisible as a use or a peak, and given back by a failure (G30). */
static void copy_claims_its_destination_while_it_runs(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 100}, {C0, 40});
    struct args x = {.m = m, .h = {adopt_rep(f, m, P)}, .at = C0};
    tn_reservation r;
    struct op copier;
    NEED_POINTS();
    OP_START(&copier, run_ensure, &x, TN__POINT_PERFORM, TN__POINT_COMMIT);
    op_reach(&copier);
    ledger_of(m, C0, 32, 32);
    assert_int_equal(used(m, C0) + reserved(m, C0), 0);
    assert_peaks(m, C0, 0, 0);
    assert_status(tn_manager_reserve(m, C0, 16, "no room", &r), TN_ERR_BUDGET); /* D9 */
    assert_int_equal(tn_last_error()->claimed_bytes, 32);
    op_go(&copier);
    op_reach(&copier);
    assert_status(op_end(&copier), TN_OK);
    ledger_of(m, C0, 32, 0);
    assert_peaks(m, C0, 32, 32);
}

static void load_elsewhere_charges_its_source_while_it_runs(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 100}, {C0, 100});
    struct args x = {.m = m, .h = {register_src(m, spec_source(f))}, .at = C0};
    struct op loader;
    NEED_POINTS();
    OP_START(&loader, run_ensure, &x, TN__POINT_PERFORM, TN__POINT_COMMIT);
    op_reach(&loader);
    ledger_of(m, P, 32, 32);
    ledger_of(m, C0, 32, 32);
    op_go(&loader);
    op_reach(&loader); /* loaded and copied, nothing published */
    ledger_of(m, P, 32, 0);
    ledger_of(m, C0, 32, 32);
    assert_status(op_end(&loader), TN_OK);
    ledger_of(m, P, 0, 0);
    ledger_of(m, C0, 32, 0);
    assert_peaks(m, P, 0, 32);
}

/* M78: the destination of a direct load is judged after the load; the payload is released. */
static void load_whose_destination_is_full_is_refused_after_the_load(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 100}, {C0, 40});
    tt_source *source = spec_source(f);
    tn_handle h = register_src(m, source);
    tn_reservation r = reserve(m, C0, 20, "in the way");
    uint64_t live = tt_count().live;
    assert_status(tn_manager_ensure(m, h, C0, NULL, NULL), TN_ERR_BUDGET);
    assert_int_equal(atomic_load(&source->calls), 1);
    assert_int_equal(tt_count().live, live);
    ledger_of(m, P, 0, 0);
    ledger_of(m, C0, 20, 0);
    release_reservation(&r);
    (void)ensure(m, h, C0);
    assert_int_equal(atomic_load(&source->calls), 2);
}

static tn_status until_told(void *context, const tn_load_request *request) {
    (void)request;
    while (!atomic_load((atomic_bool *)context))
        pause_shortly();
    return TN_OK;
}

/* ... and fits by then, because somebody gave bytes back meanwhile. */
static void load_whose_destination_is_freed_meanwhile_goes_on(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 100}, {C0, 40});
    tt_source *source = spec_source(f);
    struct args x = {.m = m, .h = {register_src(m, source)}, .at = C0};
    tn_reservation r = reserve(m, C0, 20, "in the way");
    atomic_bool go = false;
    struct op loader;
    source->hook = until_told;
    source->hook_context = &go;
    OP_START(&loader, run_ensure, &x, 0);
    wait_until(atomic_load(&source->calls) == 1);
    ledger_of(m, C0, 20, 0);
    release_reservation(&r);
    atomic_store(&go, true);
    assert_status(op_end(&loader), TN_OK);
    assert_replicas(m, x.h[0], C0);
}

struct freeing {
    tn_manager *m;
    tn_location at;
    uint64_t least; /* of the location's total, at any destroy */
    unsigned times;
};

static void look_at_the_ledger(void *context, const void *data) {
    struct freeing *w = context;
    uint64_t total, claimed;
    (void)data;
    tn__ledger_read(tn__store_ledger(w->m->store, w->at), &total, &claimed);
    w->least = total < w->least ? total : w->least;
    w->times++;
}

/* Bytes are free for others when the storage is, not before: the device never has both. */
static void bytes_are_given_back_after_the_storage(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 100}, {C0, 100});
    struct freeing w = {m, C0, UINT64_MAX, 0};
    tn_handle v = adopt_rep(f, m, P), src = register_src(m, spec_source(f));
    (void)ensure(m, v, C0);
    tt_on_destroy(look_at_the_ledger, &w);
    (void)drop(m, v, C0);
    assert_int_equal(w.times, 1);
    assert_int_equal(w.least, 32);
    (void)discard(m, v);
    w = (struct freeing){m, P, UINT64_MAX, 0};
    (void)ensure(m, src, C0); /* the temporary payload */
    assert_int_equal(w.times, 1);
    assert_int_equal(w.least, 32);
    (void)drop(m, src, C0);
    w = (struct freeing){m, P, UINT64_MAX, 0};
    tt_grow_copy(1); /* a load that fails after it was made, and its copy */
    assert_status(tn_manager_ensure(m, src, C0, NULL, NULL), TN_ERR_MATERIALIZATION);
    assert_int_equal(w.times, 2);
    assert_int_equal(w.least, 32);
    tt_on_destroy(NULL, NULL);
}

/* ---- Threads of one value ----------------------------------------------------------------- */

#define LOADERS 6

struct loading {
    tn_manager *m;
    tn_handle h;
    tn_status status[LOADERS];
    uint32_t no_ops;
    tn__mutex lock;
};

static const char *load_it(int index, void *arg) {
    struct loading *l = arg;
    tn_report report = {.size = sizeof report};
    l->status[index] = tn_manager_ensure(l->m, l->h, P, NULL, &report);
    tn__lock(&l->lock);
    l->no_ops += l->status[index] == TN_OK && report.no_op;
    tn__unlock(&l->lock);
    return NULL;
}

static tn_status until_all_wait(void *context, const tn_load_request *request) {
    struct loading *l = context;
    (void)request;
    for (int i = 0; i < 100000; i++) {
        tn__lock(&l->m->store->lock);
        tn__flight *flight = l->m->trans->flow.in_flight->flight;
        bool all = flight && flight->refs == LOADERS;
        tn__unlock(&l->m->store->lock);
        if (all)
            return TN_OK;
        pause_shortly();
    }
    return TN_ERR_SOURCE;
}

/* One load; the others' reports are no-ops (design: admission). */
static void ensures_of_one_missing_value_load_once(void **state) {
    struct spec *f = *state;
    struct loading l = {.m = MANAGER(f)};
    tt_source *source = spec_source(f);
    tn__mutex_init(&l.lock, TN__RANK_LEAF);
    l.h = register_src(l.m, source);
    source->hook = until_all_wait;
    source->hook_context = &l;
    assert_null_text(tn_test_workers_run(LOADERS, load_it, &l));
    for (int i = 0; i < LOADERS; i++)
        assert_status(l.status[i], TN_OK);
    assert_int_equal(atomic_load(&source->calls), 1);
    assert_int_equal(l.no_ops, LOADERS - 1);
    assert_int_equal(trace_count(l.m), LOADERS);
    tn__mutex_fini(&l.lock);
}

/* One failure for all, without a second load; then it can be tried again. */
static void ensures_of_one_value_share_its_failure(void **state) {
    struct spec *f = *state;
    struct loading l = {.m = MANAGER(f)};
    tt_source *source = spec_source(f);
    tn__mutex_init(&l.lock, TN__RANK_LEAF);
    l.h = register_src(l.m, source);
    source->hook = until_all_wait;
    source->hook_context = &l;
    source->no_payload = true;
    assert_null_text(tn_test_workers_run(LOADERS, load_it, &l));
    for (int i = 0; i < LOADERS; i++)
        assert_status(l.status[i], TN_ERR_PAYLOAD);
    assert_int_equal(atomic_load(&source->calls), 1);
    assert_int_equal(trace_count(l.m), 0);
    source->hook = NULL;
    source->no_payload = false;
    (void)ensure(l.m, l.h, P);
    tn__mutex_fini(&l.lock);
}

static uint32_t flight_refs(tn_manager *m) {
    tn__lock(&m->store->lock);
    tn__flight *flight = m->trans->flow.in_flight->flight;
    uint32_t refs = flight ? flight->refs : 0;
    tn__unlock(&m->store->lock);
    return refs;
}

static void copy_until_told(void *context, const void *data) {
    (void)data;
    while (!atomic_load((atomic_bool *)context))
        pause_shortly();
}

/* Who has joined a load is told when it is over, not when the copy behind it is: so it has a place in
 * the queue from then on. */
static void joined_ensure_queues_as_soon_as_the_load_is_over(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *source = spec_source(f);
    struct args x = {.m = m, .h = {register_src(m, source)}, .at = C0}, y = x;
    atomic_bool go = false, copied = false;
    struct op loader, joiner;
    source->hook = until_told;
    source->hook_context = &go;
    tt_on_copy(copy_until_told, &copied);
    OP_START(&loader, run_ensure, &x, 0);
    wait_until(atomic_load(&source->calls) == 1);
    OP_START(&joiner, run_ensure, &y, 0);
    wait_until(flight_refs(m) == 2);
    atomic_store(&go, true);
    op_wait_until(&joiner, flow_count(m, false) == 1);
    assert_false(atomic_load(&loader.ended));
    atomic_store(&copied, true);
    assert_status(op_end(&loader), TN_OK);
    assert_status(op_end(&joiner), TN_OK);
    assert_int_equal(atomic_load(&source->calls), 1);
}

/* A value that is discarded while an ensure waits for it: the second look says so. */
static void ensure_that_waited_for_a_discard_is_refused(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    struct args x = {.m = m, .h = {adopt_rep(f, m, P)}, .at = C0}, y = x;
    struct op discarder, copier;
    NEED_POINTS();
    OP_START(&discarder, run_discard, &x, TN__POINT_PERFORM);
    op_reach(&discarder);
    OP_START(&copier, run_ensure, &y, 0);
    wait_until(flow_count(m, false) == 1);
    assert_status(op_end(&discarder), TN_OK);
    assert_status(op_end(&copier), TN_ERR_HANDLE);
    assert_int_equal(copier.error.handle_cause, TN_HANDLE_DISCARDED);
}

/* A lease that is taken while a drop waits for another plan: the second look finds it. */
static void drop_that_waited_looks_at_protections_again(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    struct args copying = {.m = m, .h = {v}, .at = C0}, dropping = {.m = m, .h = {v}, .at = C0};
    struct op copier, dropper;
    NEED_POINTS();
    OP_START(&copier, run_ensure, &copying, TN__POINT_PERFORM);
    op_reach(&copier);
    /* absent: a no-op that waits its turn */
    OP_START(&dropper, run_drop, &dropping, 0);
    wait_until(flow_count(m, false) == 1);
    op_go(&copier);
    assert_status(op_end(&copier), TN_OK);
    assert_status(op_end(&dropper), TN_OK);
    assert_replicas(m, v, P); /* it saw the copy and dropped it */
}

/* The last copy, or a source that is absent: not while a transition is in flight that may make
 * another one. It is judged when that one is over. */
static void refusal_by_placement_waits_its_turn(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    struct args copying = {.m = m, .h = {v}, .at = C0}, dropping = {.m = m, .h = {v}, .at = P};
    struct op copier, dropper;
    NEED_POINTS();
    OP_START(&copier, run_ensure, &copying, TN__POINT_PERFORM);
    op_reach(&copier);
    OP_START(&dropper, run_drop, &dropping, 0);
    wait_until(flow_count(m, false) == 1);
    op_go(&copier);
    assert_status(op_end(&copier), TN_OK);
    assert_status(op_end(&dropper), TN_OK);
    assert_replicas(m, v, C0);
    /* the other one fails: so it is the last copy */
    copying.at = C1;
    dropping.at = C0;
    spec_fault(f, TN_SIM_COPY, 1, 1, TN_ERR_DRIVER, 1);
    OP_START(&copier, run_ensure, &copying, TN__POINT_PERFORM);
    op_reach(&copier);
    OP_START(&dropper, run_drop, &dropping, 0);
    wait_until(flow_count(m, false) == 1);
    op_go(&copier);
    assert_status(op_end(&copier), TN_ERR_DRIVER);
    assert_status(op_end(&dropper), TN_ERR_OWNERSHIP);
    assert_int_equal(dropper.error.reason, TN_REASON_LAST_COPY);
    assert_handle(dropper.error.handle, v);
    assert_at(dropper.error.at, C0);
    assert_replicas(m, v, C0);
    (void)spec_repair(f);
}

/* ---- The devices' own streams ------------------------------------------------------------- */

/* Two threads make one at the same time: one is kept, the other destroyed. */
static void own_stream_is_made_once(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    struct args x = {.m = m, .h = {adopt_rep(f, m, P)}, .at = C0};
    struct args y = {.m = m, .h = {adopt_rep(f, m, P)}, .at = C0};
    tn_sim_fault stall = TN_SIM_FAULT_INIT;
    struct op first, second;
    stall.entry = TN_SIM_STREAM_CREATE;
    stall.stall_ns = UINT64_MAX;
    assert_ok(tn_sim_fault_arm(f->sim, &stall));
    OP_START(&first, run_ensure, &x, 0);
    wait_until(tn_sim_calls(f->sim, TN_SIM_STREAM_CREATE) == 1);
    OP_START(&second, run_ensure, &y, 0);
    assert_status(op_end(&second), TN_OK);
    (void)spec_repair(f);
    assert_status(op_end(&first), TN_OK);
    assert_int_equal(tn_sim_calls(f->sim, TN_SIM_STREAM_CREATE), 2);
    assert_int_equal(tn_sim_live_streams(f->sim), 1);
    (void)ensure(m, adopt_rep(f, m, P), C0);
    assert_int_equal(tn_sim_calls(f->sim, TN_SIM_STREAM_CREATE), 2);
    (void)ensure(m, x.h[0], C1);
    assert_int_equal(tn_sim_live_streams(f->sim), 2);
}

/* ---- Readings (M91, M92) ------------------------------------------------------------------ */

static void sampled_device_is_the_first_of_the_list(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    assert_at(ensure(m, v, N).allocator, NOWHERE);
    assert_at(ensure(m, v, C1).allocator, C1);
    assert_at(ensure(m, v, C0).allocator, C0);
    assert_at(ensure(m, v, C0).allocator, C0); /* a no-op too */
    assert_at(drop(m, v, N).allocator, NOWHERE);
    assert_at(move_from(m, v, N, P).allocator, NOWHERE);
    assert_at(move_from(m, v, P, C0).allocator, C0);
    assert_at(move(m, v, N).allocator, C1); /* all replicas, in installation order */
    assert_at(drop(m, v, C1).allocator, C1);
    (void)ensure(m, v, C0);
    (void)ensure(m, v, C1);
    assert_at(discard(m, v).allocator, C0);
}

static void readings_are_taken_before_and_after(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_report r = ensure(m, v, C0);
    assert_int_equal(r.allocated_bytes_before, 0);
    assert_int_equal(r.allocated_bytes_after, 32);
    r = drop(m, v, C0);
    assert_int_equal(r.allocated_bytes_before, 32);
    assert_int_equal(r.allocated_bytes_after, 0);
    assert_int_equal(trace_at(m, 1).allocated_bytes_after, 0);
    spec_fault(f, TN_SIM_DEVICE_MEMORY, 2, 1, TN_ERR_DRIVER, 6);
    r = ensure(m, v, C0);
    assert_int_equal(r.allocated_bytes_before, 0);
    assert_int_equal(r.allocated_bytes_after, TN_READING_ABSENT);
    assert_at(r.allocator, C0);
    (void)spec_repair(f);
}

static uint64_t backwards(void *context) { return (*(uint64_t *)context)--; }

static uint64_t without_locks(void *context) {
    tn__assert_may_wait("a clock of the program");
    return ++*(uint64_t *)context;
}

/* The clock is the program's code: it may take locks and wait. */
static void clock_of_the_program_is_read_without_locks(void **state) {
    struct spec *f = *state;
    tn_config config = spec_config(f);
    uint64_t now = 1000;
    config.now_ns = without_locks;
    config.now_context = &now;
    tn_manager *m = spec_manager_with(f, &config);
    tn_handle v = adopt_rep(f, m, P);
    tn_report r = ensure(m, v, C0);
    assert_int_equal(r.started_at_ns, 1001);
    assert_int_equal(r.completed_at_ns, 1002);
    r = ensure(m, v, C0);
    assert_int_equal(r.no_op, 1);
    assert_int_equal(r.started_at_ns, 1003);
    assert_int_equal(r.completed_at_ns, 1004);
    r = drop(m, v, C0);
    assert_int_equal(r.completed_at_ns, 1006);
    assert_int_equal(trace_at(m, 2).completed_at_ns, 1006);
    spec_destroy(f, m);
}

/* M84: a clock that goes back does not make an action end before it began. */
static void report_never_ends_before_it_begins(void **state) {
    struct spec *f = *state;
    tn_config config = spec_config(f);
    uint64_t now = 1000;
    config.now_ns = backwards;
    config.now_context = &now;
    tn_manager *m = spec_manager_with(f, &config);
    tn_report r = ensure(m, adopt_rep(f, m, P), C0);
    assert_true(r.completed_at_ns >= r.started_at_ns);
    assert_true(now < 1000);
    spec_destroy(f, m);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(copy_claims_its_destination_while_it_runs),
    SPEC_CONCURRENT(load_elsewhere_charges_its_source_while_it_runs),
    SPEC_BOTH(load_whose_destination_is_full_is_refused_after_the_load),
    SPEC_CONCURRENT(load_whose_destination_is_freed_meanwhile_goes_on),
    SPEC_BOTH(bytes_are_given_back_after_the_storage),
    SPEC_CONCURRENT(ensures_of_one_missing_value_load_once),
    SPEC_CONCURRENT(ensures_of_one_value_share_its_failure),
    SPEC_CONCURRENT(joined_ensure_queues_as_soon_as_the_load_is_over),
    SPEC_BOTH(ensure_that_waited_for_a_discard_is_refused),
    SPEC_BOTH(drop_that_waited_looks_at_protections_again),
    SPEC_BOTH(refusal_by_placement_waits_its_turn),
    SPEC_CONCURRENT(own_stream_is_made_once),
    SPEC_BOTH(sampled_device_is_the_first_of_the_list),
    SPEC_BOTH(readings_are_taken_before_and_after),
    SPEC_BOTH(clock_of_the_program_is_read_without_locks),
    SPEC_BOTH(report_never_ends_before_it_begins),
};

TN_TEST_MAIN("unit.transition_perform", tests)
