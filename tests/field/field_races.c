/* SPDX-License-Identifier: MIT */
/* Field cases: stream ordering and lifetimes, transitions and observers of other threads. */
#include "tn_test.h"

#include <stdio.h>

#include "base/atomic.h"
#include "field_common.h"

#define BLOCK UINT64_C(65536)

/* ---- F-C11: the library's own copy is a reader too ------------------------------------------ */

static void f_c11_own_copy_is_a_reader(void **state) {
    struct spec *f = *state;
    struct field_action read_back = {.kind = TN_ACTION_ENSURE, .at = P};
    struct field_action removal = {.kind = TN_ACTION_DROP, .at = C0};
    struct field_action refill = {.kind = TN_ACTION_ENSURE, .at = C0};
    tn_manager *m;
    tn_handle x, y;
    char *block;
    tn_materialization_info row;

    spec_machine(f, "dev:1 latency=10ms");
    m = MANAGER(f, {C0, BLOCK});
    x = field_adopt(f, m, C0, TN_REPLICABLE, BLOCK, 1);
    y = field_adopt(f, m, N, TN_REPLICABLE, BLOCK, 2);
    block = field_block(f, m, x, C0);
    assert_ok(tn_sim_set_waits(f->sim, TN_SIM_WAITS_BLOCK));
    read_back.h = removal.h = x;
    refill.h = y;
    field_act(&read_back, f, m);
    while (field_calls(f, TN_SIM_COPY) == 0)
        field_nap(1);
    field_until(f, 1);
    field_act(&removal, f, m);
    field_nap(20);
    field_until(f, 5);
    field_nap(5);
    assert_false(atomic_load(&read_back.thread.done));
    assert_false(atomic_load(&removal.thread.done));
    assert_replicas(m, x, C0);
    row = mat(m, x, C0);
    assert_int_equal(row.use_count + row.hold_count + row.pending_count, 0);
    assert_locations(m, C0, N); /* not P */
    field_until(f, 10);
    field_join(&read_back.thread);
    field_join(&removal.thread);
    assert_true(read_back.ended_ns == 10 * MS && removal.ended_ns >= 10 * MS);
    for (uint64_t i = 0; i < BLOCK; i++) /* free, and nobody's until the copy */
        assert_int_equal((unsigned char)block[i], TN_SIM_POISON);
    field_act(&refill, f, m);
    while (field_calls(f, TN_SIM_COPY) == 1)
        field_nap(1);
    field_until(f, 20);
    field_join(&refill.thread);
    assert_ok(tn_sim_set_waits(f->sim, TN_SIM_WAITS_ADVANCE));
    assert_true(field_exact(f, m, x, P, 1));
    assert_true(field_exact(f, m, y, C0, 2));
    assert_ptr_equal(field_block(f, m, y, C0), block);
    assert_int_equal(trace_count(m), 3);
    assert_int_equal(trace_at(m, 0).action.kind, TN_ACTION_ENSURE);
    assert_handle(trace_at(m, 0).action.handle, x);
    assert_int_equal(trace_at(m, 1).action.kind, TN_ACTION_DROP);
    assert_handle(trace_at(m, 1).action.handle, x);
    assert_int_equal(trace_at(m, 2).action.kind, TN_ACTION_ENSURE);
    assert_handle(trace_at(m, 2).action.handle, y);
    field_conserved(f, m);
}

/* ---- F-D01: spilling while someone writes or reads ------------------------------------------ */

static void f_d01_spill_waits_for_writer_and_reader(void **state) {
    struct spec *f = *state;
    struct field_action fill = {.kind = TN_ACTION_ENSURE, .at = C0};
    struct field_action spill = {.kind = TN_ACTION_MOVE, .at = N, .from = C0};
    tn_manager *m;
    tn_stream s, reader;
    tn_lease lease;
    uint64_t copies;

    spec_machine(f, "dev:1 latency=2ms");
    m = MANAGER(f);
    s = spec_stream(f, 0);
    reader = spec_stream(f, 0);
    fill.stream = s;
    fill.h = spill.h = field_rep(f, m, BLOCK, 1);
    assert_ok(tn_sim_queue_delay(f->sim, s, 8 * MS));
    assert_ok(tn_sim_set_waits(f->sim, TN_SIM_WAITS_BLOCK));
    field_act(&fill, f, m);
    while (field_calls(f, TN_SIM_COPY) == 0)
        field_nap(1);
    field_until(f, 1);
    field_act(&spill, f, m);
    field_nap(20);
    field_until(f, 9);
    field_nap(5);
    assert_false(atomic_load(&fill.thread.done));
    assert_false(atomic_load(&spill.thread.done));
    assert_int_equal(field_calls(f, TN_SIM_COPY), 1);
    assert_int_equal(field_memory(f, N).live_bytes, 0); /* nothing begun */
    field_until(f, 10);
    field_join(&fill.thread);
    assert_int_equal(fill.ended_ns, 10 * MS);
    assert_ok(tn_sim_set_waits(f->sim, TN_SIM_WAITS_ADVANCE)); /* the copy moves the clock itself */
    field_join(&spill.thread);
    assert_true(spill.ended_ns >= 10 * MS);
    assert_replicas(m, fill.h, P, N);
    assert_true(field_exact(f, m, fill.h, N, 1));
    ensure(m, fill.h, C0);
    field_read(f, reader, field_block(f, m, fill.h, C0), BLOCK, 8);
    lease = acquire(m, fill.h, C0, reader);
    release(&lease);
    copies = field_calls(f, TN_SIM_COPY);
    assert_in_use(tn_manager_move(m, fill.h, N, C0, NULL, NULL), 0, 0, 1);
    assert_ok(tn_sim_advance(f->sim, 8 * MS));
    move_from(m, fill.h, N, C0);
    assert_int_equal(field_calls(f, TN_SIM_COPY), copies);
    assert_replicas(m, fill.h, P, N);
    field_conserved(f, m);
}

/* ---- F-D03: looked up, never used (tag and age: later) -------------------------------------- */

static void f_d03_looked_up_never_used(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_stream s = spec_stream(f, 0);
    tn_handle keys[5];
    tn_lease lease = {NULL, 0};
    uint64_t before;

    for (uint64_t i = 0; i < 4; i++)
        keys[i] = field_rep_at(f, m, C0, KEY, i + 1);
    keys[4] = field_rep(f, m, KEY, 5);
    before = version(m);
    for (int i = 0; i < 100; i++) {
        assert_ok(tn_manager_acquire(m, keys, 4, C0, s, &lease));
        release(&lease);
    }
    spec_finish(f);
    assert_int_equal(version(m), before + 300);
    for (int i = 0; i < 100; i++)
        assert_status(tn_manager_acquire(m, keys, 5, C0, s, &lease), TN_ERR_UNAVAILABLE);
    assert_int_equal(version(m), before + 300);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(mat(m, keys[i], C0).use_count, 0);
        assert_int_equal(mat(m, keys[i], C0).pending_count, 0);
    }
    lease = acquire(m, keys[2], C0, s); /* the leak */
    for (int i = 0; i < 4; i++)
        assert_int_equal(mat(m, keys[i], C0).use_count, i == 2);
    assert_int_equal(loc(m, C0).use_count, 1);
    assert_in_use(tn_manager_drop(m, keys[2], C0, NULL), 1, 0, 0);
    assert_close_in_use(tn_manager_close(m, 0), 1, 0, 0, 0);
    release(&lease);
    field_conserved(f, m);
}

/* ---- F-G10: completion and observer at the same instant -------------------------------------- */

enum { STEP, DROP, SNAPSHOT, OBSERVERS };

struct instant {
    struct spec *f;
    tn_manager *m;
    tn_handle v;
    tn_stream stream;
    char *block;
    uint64_t seeds;
    uint64_t failed; /* queries */
    pthread_barrier_t start;
    pthread_barrier_t end;
    _Atomic uint64_t seed;
    _Atomic uint32_t status[OBSERVERS];
    atomic_bool met[OBSERVERS]; /* the query that failed */
    atomic_bool over;
};

/* Of the failing query of a seed. */
static int64_t code_of(uint64_t seed) { return (int64_t)seed + 1000; }

/* Up to some microseconds, from the seed. */
static void jitter(uint64_t seed, int index) {
    uint64_t z = (seed * OBSERVERS + (uint64_t)index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    volatile unsigned spin = (unsigned)(z >> 33) % 3000;

    while (spin > 0)
        spin--;
}

static tn_status observe(struct instant *i, int index) {
    tn_snapshot *s = NULL;
    uint64_t freed;
    tn_status status;

    if (index == STEP)
        return tn_manager_step(i->m, &freed);
    if (index == DROP)
        return tn_manager_drop(i->m, i->v, C0, NULL);
    status = tn_snapshot_take(i->m, &s);
    tn_snapshot_drop(s);
    return status;
}

/* Pending until the virtual instant that is now. */
static const char *prepare(struct instant *i, uint64_t seed, uint64_t *out_version) {
    tn_lease lease;

    TN_WORKER_STATUS(tn_manager_ensure(i->m, i->v, C0, NULL, NULL), TN_OK);
    TN_WORKER_STATUS(tn_manager_state_version(i->m, out_version), TN_OK);
    TN_WORKER_STATUS(tn_manager_acquire(i->m, &i->v, 1, C0, i->stream, &lease), TN_OK);
    TN_WORKER_STATUS(tn_sim_queue_read(i->f->sim, i->stream, i->block, BLOCK, MS), TN_OK);
    TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
    TN_WORKER_STATUS(tn_sim_advance(i->f->sim, MS), TN_OK);
    if (seed % 10 == 0) {
        tn_sim_fault fault = TN_SIM_FAULT_INIT;

        fault.entry = TN_SIM_EVENT_QUERY;
        fault.status = TN_ERR_DRIVER;
        fault.native_code = code_of(seed);
        TN_WORKER_STATUS(tn_sim_fault_arm(i->f->sim, &fault), TN_OK);
    }
    return NULL;
}

/* Who met the query that failed reports it, and nobody else; the reaper may try again. */
static const char *judge_observer(struct instant *i, uint64_t seed, int o) {
    tn_status status = (tn_status)atomic_load(&i->status[o]);
    bool met = atomic_load(&i->met[o]);
    bool good = status == TN_OK ? !met || o == STEP : status == TN_ERR_DRIVER && met;

    return good ? NULL
                : tn_test_text("seed %llu: observer %d%s: %s", (unsigned long long)seed, o,
                               met ? ", whose query failed" : "", tn_status_name(status));
}

static const char *judge(struct instant *i, uint64_t seed, uint64_t before) {
    const char *text = NULL;
    uint64_t hits = tn_sim_fault_clear(i->f->sim);
    uint64_t after;

    TN_WORKER_CHECK(hits <= (seed % 10 == 0));
    for (int o = 0; o < OBSERVERS && text == NULL; o++)
        text = judge_observer(i, seed, o);
    if (text != NULL)
        return text;
    for (int o = 0; o < OBSERVERS; o++)
        if (atomic_load(&i->status[o]) != TN_OK)
            TN_WORKER_STATUS(observe(i, o), TN_OK); /* repeated once */
    TN_WORKER_STATUS(tn_manager_state_version(i->m, &after), TN_OK);
    if (after != before + 4)
        return tn_test_text("seed %llu: counted %llu", (unsigned long long)seed,
                            (unsigned long long)(after - before));
    i->failed += hits;
    return NULL;
}

static const char *conduct(struct instant *i) {
    const char *text = NULL;

    for (uint64_t seed = 0; seed < i->seeds && text == NULL; seed++) {
        uint64_t before = 0;

        text = prepare(i, seed, &before);
        atomic_store(&i->seed, seed);
        pthread_barrier_wait(&i->start);
        pthread_barrier_wait(&i->end);
        if (text == NULL)
            text = judge(i, seed, before);
    }
    atomic_store(&i->over, true);
    pthread_barrier_wait(&i->start);
    return text;
}

static const char *race(int index, void *arg) {
    struct instant *i = arg;
    const tn_driver_ops *ops = tn_driver_table(i->f->driver);

    if (index == OBSERVERS)
        return conduct(i);
    for (;;) {
        pthread_barrier_wait(&i->start);
        if (atomic_load(&i->over))
            return NULL;
        jitter(atomic_load(&i->seed), index);
        atomic_store(&i->status[index], (uint32_t)observe(i, index));
        atomic_store(&i->met[index],
                     ops->last_code(tn_driver_self(i->f->driver)) == code_of(i->seed));
        pthread_barrier_wait(&i->end);
    }
}

static void f_g10_completion_and_observer_at_one_instant(void **state) {
    struct spec *f = *state;
    struct instant i = {.f = f, .m = MANAGER(f)};
    uint64_t created;

    i.seeds = field_number(2000, 100000);
    i.v = field_rep_at(f, i.m, C0, BLOCK, 1);
    i.block = field_block(f, i.m, i.v, C0);
    i.stream = spec_stream(f, 0);
    created = field_calls(f, TN_SIM_EVENT_CREATE);
    pthread_barrier_init(&i.start, NULL, OBSERVERS + 1);
    pthread_barrier_init(&i.end, NULL, OBSERVERS + 1);
    assert_null_text(tn_test_workers_run(OBSERVERS + 1, race, &i));
    pthread_barrier_destroy(&i.start);
    pthread_barrier_destroy(&i.end);
    print_message("    %llu seeds, %llu queries failed\n", (unsigned long long)i.seeds,
                  (unsigned long long)i.failed);
    /* each release found the event of the one before it: given back, and once */
    assert_true(field_calls(f, TN_SIM_EVENT_CREATE) - created <= 2);
    assert_int_equal(tn_sim_live_events(f->sim),
                     field_calls(f, TN_SIM_EVENT_CREATE) - field_calls(f, TN_SIM_EVENT_DESTROY));
    field_conserved(f, i.m);
}

static const char *snapshot_that_stalls(void *arg) {
    struct instant *i = arg;

    TN_WORKER_STATUS(observe(i, SNAPSHOT), TN_OK);
    return NULL;
}

/* The same, with the order that it needs: a snapshot reaps, and stands in its query; a drop finds
 * that somebody reaps, looks itself, and its query fails. */
static void f_g10_who_helps_reports_its_query(void **state) {
    struct spec *f = *state;
    struct instant i = {.f = f, .m = MANAGER(f)};
    struct field_thread snapshot;
    uint64_t before = 0;
    tn_status status;
    int64_t code;

    i.v = field_rep_at(f, i.m, C0, BLOCK, 1);
    i.block = field_block(f, i.m, i.v, C0);
    i.stream = spec_stream(f, 0);
    assert_null_text(prepare(&i, 1, &before));
    field_stall(f, TN_SIM_EVENT_QUERY, 1, UINT64_MAX);
    spec_fault(f, TN_SIM_EVENT_QUERY, 2, 1, TN_ERR_DRIVER, 11);
    field_start(&snapshot, snapshot_that_stalls, &i);
    while (tn_sim_stalled(f->sim) == 0)
        field_nap(1);
    status = observe(&i, DROP);
    code = tn_last_error()->native_code;
    assert_int_equal(spec_repair(f), 2); /* the snapshot goes on */
    field_join(&snapshot);
    assert_status(status, TN_ERR_DRIVER);
    assert_int_equal(code, 11);
    assert_status(observe(&i, DROP), TN_OK);
    assert_int_equal(version(i.m), before + 4);
    field_conserved(f, i.m);
}

static const struct CMUnitTest tests[] = {
    FIELD_BOTH(f_c11_own_copy_is_a_reader),
    FIELD_BOTH(f_d01_spill_waits_for_writer_and_reader),
    FIELD_BOTH(f_d03_looked_up_never_used),
    FIELD_BOTH(f_g10_completion_and_observer_at_one_instant),
    FIELD_BOTH(f_g10_who_helps_reports_its_query),
};

TN_TEST_MAIN("field.races", tests)
