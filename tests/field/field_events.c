/* SPDX-License-Identifier: MIT */
/* Field cases: events, their contexts and pools; synchronisations; host functions. */
#include "tn_test.h"

#include "field_common.h"

#define BLOCK UINT64_C(65536)

/* ---- F-B07: no device-wide wait in passing --------------------------------------------------- */

#define VALUES 24

struct mixed {
    struct spec *f;
    tn_manager *m;
    tn_handle values[VALUES]; /* type NULL: none */
    tn_stream streams[2][2];  /* by device */
    uint64_t random;
};

static uint64_t draw(struct mixed *x, uint64_t bound) {
    x->random ^= x->random << 13;
    x->random ^= x->random >> 7;
    x->random ^= x->random << 17;
    return x->random % bound;
}

static tn_location somewhere(struct mixed *x) {
    const tn_location at[] = {P, N, C0, C1};

    return at[draw(x, 4)];
}

/* Where a value is: one of its replicas. */
static tn_location one_place(struct mixed *x, tn_handle h) {
    const tn_location at[] = {P, N, C0, C1};
    size_t i = draw(x, 4);

    while (!resident(x->m, h, at[i]))
        i = (i + 1) % 4;
    return at[i];
}

static void lease_it(struct mixed *x, tn_handle h) {
    tn_location at = one_place(x, h);
    tn_lease lease;

    if (at.kind == TN_LOCATION_CUDA) {
        tn_stream *s = x->streams[at.index];

        assert_ok(tn_sim_queue_delay(x->f->sim, s[0], draw(x, MS)));
        lease = field_acquire2(x->m, h, at, s[0], s[1]);
    } else {
        lease = acquire(x->m, h, at, NULL);
    }
    release(&lease);
    spec_finish(x->f);
}

static void hold_it(struct mixed *x, tn_handle h) {
    tn_hold held = hold(x->m, h, one_place(x, h));

    release_hold(&held);
}

static void reserve_some(struct mixed *x) {
    tn_reservation r = reserve(x->m, somewhere(x), draw(x, 4096), "workspace");

    release_reservation(&r);
}

/* One operation that succeeds. */
static void operate(struct mixed *x) {
    tn_handle *h = &x->values[draw(x, VALUES)];

    if (h->type == NULL) {
        *h = field_adopt(x->f, x->m, somewhere(x), TN_REPLICABLE, 64 + draw(x, 64) * 8, 1);
        return;
    }
    switch (draw(x, 8)) {
    case 0:
    case 1:
        ensure(x->m, *h, somewhere(x));
        break;
    case 2:
        move(x->m, *h, somewhere(x));
        break;
    case 3:
        lease_it(x, *h);
        break;
    case 4:
        hold_it(x, *h);
        break;
    case 5:
        reserve_some(x);
        break;
    case 6:
        if (replicas(x->m, *h) > 1)
            drop(x->m, *h, one_place(x, *h));
        break;
    default:
        discard(x->m, *h);
        h->type = NULL;
    }
}

static void f_b07_no_device_wide_wait_in_passing(void **state) {
    struct spec *f = *state;
    struct mixed x = {.f = f, .m = MANAGER(f), .random = tn_test_seed() | 1};
    uint64_t warnings;
    uint64_t before;
    tn_lease lease;

    for (int i = 0; i < 4; i++)
        x.streams[i / 2][i % 2] = spec_stream(f, (uint32_t)i / 2);
    for (int i = 0; i < 10000; i++)
        operate(&x);
    assert_int_equal(field_calls(f, TN_SIM_DEVICE_SYNCHRONIZE), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(
            tn_sim_stream_calls(f->sim, x.streams[i / 2][i % 2], TN_SIM_STREAM_SYNCHRONIZE), 0);
    assert_int_equal(spec_warnings_all(f), 0);
    /* the second of two records fails: both streams are synchronised, no device */
    x.values[0] = field_rep_at(f, x.m, C0, 64, 1);
    ensure(x.m, x.values[0], C1);
    lease = field_acquire2(x.m, x.values[0], C0, x.streams[0][0], x.streams[0][1]);
    before = version(x.m);
    warnings = spec_warnings(f, TN_DIAGNOSTIC_RELEASE_FALLBACK);
    spec_fault(f, TN_SIM_EVENT_RECORD, 2, 1, TN_ERR_DRIVER, 1);
    release(&lease);
    assert_int_equal(spec_repair(f), 1);
    assert_int_equal(version(x.m), before + 1);
    for (int i = 0; i < 2; i++)
        assert_int_equal(tn_sim_stream_calls(f->sim, x.streams[0][i], TN_SIM_STREAM_SYNCHRONIZE),
                         1);
    assert_int_equal(field_calls(f, TN_SIM_DEVICE_SYNCHRONIZE), 0);
    assert_int_equal(spec_warnings(f, TN_DIAGNOSTIC_RELEASE_FALLBACK), warnings + 1);
    field_conserved(f, x.m);
    assert_ok(tn_manager_close(x.m, TN_CLOSE_FORCE));
    assert_int_equal(field_calls(f, TN_SIM_DEVICE_SYNCHRONIZE), 2);
}

/* ---- F-B08: events come from a pool and go back to it ---------------------------------------- */

#define STREAMS 4
#define AT_ONCE 64 /* leases of a thread that are pending together */
#define LENDERS 8  /* of the soak */

struct lending {
    struct spec *f;
    tn_manager *m;
    tn_handle v;
    tn_stream streams[STREAMS];
    int threads;
    uint64_t leases; /* of each */
    pthread_barrier_t turn;
    tn_lease handed[LENDERS][AT_ONCE / 4]; /* for the next thread to release */
};

static const char *give_back(struct lending *x, uint64_t i, const tn_lease *lease) {
    TN_WORKER_STATUS(tn_sim_queue_delay(x->f->sim, x->streams[i % STREAMS], 10), TN_OK);
    TN_WORKER_STATUS(tn_lease_release(lease, 0), TN_OK);
    return NULL;
}

/* Lease so often; in the soak a quarter of it is handed over. */
static const char *lend(struct lending *x, int index, uint64_t count) {
    const char *text = NULL;

    for (uint64_t i = 0; i < count && text == NULL; i++) {
        tn_lease lease;

        TN_WORKER_STATUS(tn_manager_acquire(x->m, &x->v, 1, C0, x->streams[0], &lease), TN_OK);
        for (int j = 1; j < STREAMS; j++)
            TN_WORKER_STATUS(tn_lease_add_stream(&lease, x->streams[j]), TN_OK);
        if (x->threads > 1 && i % 4 == 3)
            x->handed[index][i / 4] = lease;
        else
            text = give_back(x, i, &lease);
    }
    return text;
}

static const char *release_handed(struct lending *x, int index, uint64_t count) {
    const tn_lease *handed = x->handed[(index + x->threads - 1) % x->threads];
    const char *text = NULL;

    for (uint64_t i = 0; i < count / 4 && x->threads > 1 && text == NULL; i++)
        text = give_back(x, i, &handed[i]);
    return text;
}

/* Nobody releases meanwhile: a lease whose release is not over hides those behind it in the
 * reaper's queue, and they would be pending for another round. */
static const char *step_all(struct lending *x) {
    uint64_t freed;

    TN_WORKER_STATUS(tn_sim_run(x->f->sim), TN_OK);
    TN_WORKER_STATUS(tn_manager_step(x->m, &freed), TN_OK);
    return NULL;
}

static const char *lend_and_release(int index, void *arg) {
    struct lending *x = arg;
    const char *text = NULL;

    for (uint64_t from = 0; from < x->leases; from += AT_ONCE) {
        uint64_t count = x->leases - from < AT_ONCE ? x->leases - from : AT_ONCE;

        if (text == NULL)
            text = lend(x, index, count);
        pthread_barrier_wait(&x->turn);
        if (text == NULL)
            text = release_handed(x, index, count);
        pthread_barrier_wait(&x->turn);
        if (text == NULL && index == 0)
            text = step_all(x);
        pthread_barrier_wait(&x->turn);
    }
    return text;
}

static void f_b08_events_come_from_a_pool(void **state) {
    struct spec *f = *state;
    struct lending x = {.f = f, .m = MANAGER(f), .threads = (int)field_number(1, LENDERS)};
    uint64_t created, records, before, made, all;

    x.v = field_rep_at(f, x.m, C0, 64, 1);
    x.leases = field_number(20000, 1000000) / (uint64_t)x.threads;
    all = x.leases * (uint64_t)x.threads;
    for (int i = 0; i < STREAMS; i++)
        x.streams[i] = spec_stream(f, 0);
    created = field_calls(f, TN_SIM_EVENT_CREATE);
    records = field_calls(f, TN_SIM_EVENT_RECORD);
    before = version(x.m);
    pthread_barrier_init(&x.turn, NULL, (unsigned)x.threads);
    assert_null_text(tn_test_workers_run(x.threads, lend_and_release, &x));
    pthread_barrier_destroy(&x.turn);
    spec_finish(f);
    assert_int_equal(version(x.m), before + 3 * all);
    assert_int_equal(field_calls(f, TN_SIM_EVENT_RECORD), records + STREAMS * all);
    made = field_calls(f, TN_SIM_EVENT_CREATE) - created;
    print_message("    %llu leases, %llu events\n", (unsigned long long)all,
                  (unsigned long long)made);
    assert_true(made <= (uint64_t)(AT_ONCE * STREAMS * x.threads));
    field_conserved(f, x.m);
    spec_destroy(f, x.m);
    assert_int_equal(field_calls(f, TN_SIM_EVENT_DESTROY), field_calls(f, TN_SIM_EVENT_CREATE));
}

/* ---- F-G01: one record per lease end and stream ---------------------------------------------- */

static void f_g01_one_record_per_lease_and_stream(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {C0, 77 * 64});
    tn_stream s = spec_stream(f, 0);
    tn_handle keys[77];
    tn_sim_fault fault = TN_SIM_FAULT_INIT;
    uint64_t created, created_first = 0, records, before;

    for (uint64_t i = 0; i < 77; i++)
        keys[i] = field_adopt(f, m, C0, TN_REPLICABLE, 64, i);
    created = field_calls(f, TN_SIM_EVENT_CREATE);
    records = field_calls(f, TN_SIM_EVENT_RECORD);
    fault.entry = TN_SIM_EVENT_CREATE;
    fault.count = 0;
    fault.stall_ns = 10 * MS;
    fault.flags = TN_SIM_FAULT_LOCKS;
    assert_ok(tn_sim_fault_arm(f->sim, &fault));
    before = version(m);
    for (int i = 0; i < 10000; i++) {
        tn_lease lease;

        assert_ok(tn_manager_acquire(m, keys, 77, C0, s, &lease));
        assert_ok(tn_sim_queue_delay(f->sim, s, MS));
        release(&lease);
        if (i % 1000 == 1) { /* in round 0 the work ends while the event is made */
            assert_int_equal(loc(m, C0).pending_count, 77);
            assert_int_equal(mat(m, keys[0], C0).pending_count, 1);
            assert_int_equal(mat(m, keys[76], C0).pending_count, 1);
        }
        spec_finish(f);
        field_step(m);
        if (i == 0)
            created_first = field_calls(f, TN_SIM_EVENT_CREATE);
    }
    assert_int_equal(version(m), before + 30000);
    assert_int_equal(field_calls(f, TN_SIM_EVENT_RECORD), records + 10000);
    assert_true(created_first - created <= 2);
    assert_int_equal(field_calls(f, TN_SIM_EVENT_CREATE), created_first);
    assert_int_equal(tn_sim_now_ns(f->sim), 9999 * MS + (created_first - created) * 10 * MS);
    field_conserved(f, m);
}

/* ---- F-G02: events stay in their context ------------------------------------------------------ */

static void f_g02_events_stay_in_their_context(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_stream s = spec_stream(f, 0);
    tn_stream t = field_stream(f, 0, TN_SIM_STREAM_SECOND_CONTEXT);
    tn_handle v = field_rep_at(f, m, C0, BLOCK, 1);
    char *block = field_block(f, m, v, C0);
    uint64_t created = field_calls(f, TN_SIM_EVENT_CREATE);

    for (int i = 0; i < 1000; i++) {
        tn_lease lease = field_acquire2(m, v, C0, s, t);

        field_read(f, s, block, BLOCK, 1);
        field_read(f, t, block, BLOCK, 4);
        release(&lease);
        if (i % 100 == 0) {
            assert_in_use(tn_manager_drop(m, v, C0, NULL), 0, 0, 1);
            assert_ok(tn_sim_advance(f->sim, MS));
            assert_in_use(tn_manager_drop(m, v, C0, NULL), 0, 0, 1);
        }
        spec_finish(f);
        field_step(m);
    }
    assert_int_equal(tn_sim_violations(f->sim), 0); /* no record across contexts */
    assert_int_equal(tn_sim_stream_calls(f->sim, s, TN_SIM_EVENT_RECORD), 1000);
    assert_int_equal(tn_sim_stream_calls(f->sim, t, TN_SIM_EVENT_RECORD), 1000);
    assert_true(field_calls(f, TN_SIM_EVENT_CREATE) - created <= 2);
    drop(m, v, C0);
    field_conserved(f, m);
}

static void f_g02_no_event_in_the_second_context(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_stream s = spec_stream(f, 0);
    tn_stream t = field_stream(f, 0, TN_SIM_STREAM_SECOND_CONTEXT);
    tn_handle v = field_rep_at(f, m, C0, BLOCK, 1);
    char *block = field_block(f, m, v, C0); /* the first pool has an event now */
    tn_lease lease = field_acquire2(m, v, C0, s, t);
    uint64_t before = version(m);

    field_read(f, s, block, BLOCK, 1);
    field_read(f, t, block, BLOCK, 4);
    spec_fault(f, TN_SIM_EVENT_CREATE, 1, 1, TN_ERR_DRIVER, 2);
    release(&lease);
    assert_int_equal(spec_repair(f), 1);
    assert_int_equal(tn_sim_stream_calls(f->sim, s, TN_SIM_STREAM_SYNCHRONIZE), 1);
    assert_int_equal(tn_sim_stream_calls(f->sim, t, TN_SIM_STREAM_SYNCHRONIZE), 1);
    assert_int_equal(field_ms(f), 4);
    assert_int_equal(spec_warnings_all(f), 1);
    assert_int_equal(mat(m, v, C0).pending_count, 0);
    assert_int_equal(version(m), before + 1);
    drop(m, v, C0);
    field_conserved(f, m);
}

/* ---- F-G04: nothing calls the driver from a host function -------------------------------------- */

static void f_g04_library_queues_no_host_function(void **state) {
    struct spec *f = *state;
    tn_config config = spec_config(f);
    tn_stream s = spec_stream(f, 0);
    tn_stream t = spec_stream(f, 0);
    tn_manager *m;
    tn_handle v;

    config.reaper = TN_REAPER_THREAD;
    m = spec_manager_with(f, &config);
    v = field_rep(f, m, 64, 1);
    for (int i = 0; i < 1000; i++) {
        tn_lease lease;

        ensure(m, v, C0);
        lease = field_acquire2(m, v, C0, s, t);
        assert_ok(tn_sim_queue_delay(f->sim, s, 1000));
        assert_ok(tn_sim_queue_delay(f->sim, t, 2000));
        release(&lease);
        spec_finish(f);
        if (i % 3 == 0)
            drop(m, v, C0);
    }
    assert_int_equal(field_calls(f, TN_SIM_HOST_FUNCTION), 0);
    field_conserved(f, m);
}

struct inside {
    tn_lease lease;
    tn_status status;
    int64_t code;
};

static void release_inside(void *context) {
    struct inside *i = context;

    i->status = tn_lease_release(&i->lease, 0);
    i->code = tn_last_error()->native_code;
}

static void run_inside(struct spec *f, tn_stream s, struct inside *i) {
    const tn_driver_ops *ops = tn_driver_table(f->driver);

    i->status = TN_ERR_INTERNAL;
    assert_ok(ops->host_function(tn_driver_self(f->driver), s, release_inside, i));
    spec_finish(f);
}

static void f_g04_release_inside_a_host_function(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_stream s = spec_stream(f, 0);
    tn_handle v = field_rep_at(f, m, C0, 64, 1);
    struct inside on_device = {.lease = acquire(m, v, C0, s)};
    struct inside on_host = {.lease = acquire(m, v, P, NULL)};
    uint64_t before = version(m);

    assert_ok(tn_sim_set_host_calls(f->sim, TN_SIM_HOST_CALLS_REFUSE));
    run_inside(f, s, &on_device);
    assert_status(on_device.status, TN_ERR_DRIVER);
    assert_int_equal(on_device.code, 800); /* not permitted */
    assert_true(tn_lease_active(&on_device.lease));
    assert_int_equal(version(m), before);
    run_inside(f, s, &on_host);
    assert_status(on_host.status, TN_OK);
    assert_int_equal(version(m), before + 1);
    release(&on_device.lease);
    assert_false(tn_lease_active(&on_device.lease));
    field_conserved(f, m);
}

static const struct CMUnitTest tests[] = {
    FIELD_BOTH(f_b07_no_device_wide_wait_in_passing),
    FIELD_BOTH(f_b08_events_come_from_a_pool),
    FIELD_BOTH(f_g01_one_record_per_lease_and_stream),
    FIELD_BOTH(f_g02_events_stay_in_their_context),
    FIELD_BOTH(f_g02_no_event_in_the_second_context),
    FIELD_BOTH(f_g04_library_queues_no_host_function),
    FIELD_BOTH(f_g04_release_inside_a_host_function),
};

TN_TEST_MAIN("field.events", tests)
