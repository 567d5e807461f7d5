/* SPDX-License-Identifier: MIT */
/*
 * Threads that race for one thing: a value, a location, a lifetime, the trace (M255, M257,
 * M259..M261; cases MC187, MC188, MC190..MC192). See spec_concurrency.c.
 */
#include "spec_b_common.h"

#include <sched.h>

/* Loops are short: two cores, sanitizers. */
#define ROUNDS 400

/* A small generator per worker. */
static uint32_t next(uint64_t *x) {
    *x = *x * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*x >> 33);
}

/* ---- MC187: move against acquire ------------------------------------------------------------ */

struct race {
    tn_manager *m;
    tn_handle v;
    atomic_bool stop;
    atomic_uint granted;
    atomic_uint moved;
};

static const char *move_there_and_back(struct race *x) {
    for (int i = 0; i < 2 * ROUNDS && !tn_test_workers_failed(); i++) {
        tn_status status = tn_manager_move(x->m, x->v, C0, P, NULL, NULL);

        if (status == TN_ERR_IN_USE) {
            TN_WORKER_CHECK(tn_last_error()->use_count >= 1);
            continue;
        }
        TN_WORKER_STATUS(status, TN_OK);
        TN_WORKER_STATUS(tn_manager_move(x->m, x->v, P, C0, NULL, NULL), TN_OK);
        atomic_fetch_add(&x->moved, 1);
    }
    return NULL;
}

static const char *read_what_is_lent(struct race *x) {
    while (!atomic_load(&x->stop)) {
        const void *data = NULL;
        tn_lease lease;
        tn_status status = tn_manager_acquire(x->m, &x->v, 1, P, NULL, &lease);

        if (status == TN_ERR_UNAVAILABLE)
            continue;
        TN_WORKER_STATUS(status, TN_OK);
        TN_WORKER_STATUS(tn_lease_lookup(&lease, x->v, &data), TN_OK);
        for (int k = 0; k < 4; k++)
            TN_WORKER_CHECK(tt_check(data, 1));
        TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
        atomic_fetch_add(&x->granted, 1);
        sched_yield();
    }
    return NULL;
}

static const char *race_worker(int index, void *arg) {
    struct race *x = arg;
    const char *text = index == 0 ? move_there_and_back(x) : read_what_is_lent(x);

    if (index == 0 || text != NULL)
        atomic_store(&x->stop, true);
    return text;
}

static void mc187_contents_are_intact_until_release(void **state) {
    struct spec *f = *state;
    struct race x;

    memset(&x, 0, sizeof x);
    x.m = spec_b_manager(f, NULL, 0);
    x.v = adopt_exc(f, x.m, P);
    assert_null_text(tn_test_workers_run(3, race_worker, &x));
    assert_replicas(x.m, x.v, P);
    assert_int_equal(mat(x.m, x.v, P).use_count, 0);
    assert_null_text(spec_b_check(x.m));
}

/* ---- MC188: the first use of a location ----------------------------------------------------- */

struct firsts {
    tn_manager *m;
    tn_handle v;
    tn_reservation r[2];
    bool ensures; /* the second worker ensures instead of reserving */
};

static const char *use_first(int index, void *arg) {
    struct firsts *x = arg;

    if (index == 1 && x->ensures)
        TN_WORKER_STATUS(spec_b_ensure(x->m, x->v, N), TN_OK);
    else
        TN_WORKER_STATUS(tn_manager_reserve(x->m, N, 4, "first", &x->r[index]), TN_OK);
    return NULL;
}

static void mc188_a_location_is_tracked_once(void **state) {
    struct spec *f = *state;

    for (int i = 0; i < 60; i++) {
        struct firsts x = {.ensures = i % 2 != 0};
        uint64_t before;

        x.m = spec_b_manager(f, NULL, 0);
        x.v = adopt_rep(f, x.m, P);
        before = version(x.m);
        assert_null_text(tn_test_workers_run(2, use_first, &x));
        assert_locations(x.m, P, N);
        assert_int_equal(version(x.m) - before, 3); /* two operations, tracked once */
        assert_int_equal(reserved(x.m, N), x.ensures ? 4 : 8);
        assert_null_text(spec_b_check(x.m));
        for (int k = 0; k < 2; k++)
            release_reservation(&x.r[k]);
        spec_destroy(f, x.m);
    }
}

/* ---- MC190: racing releases ----------------------------------------------------------------- */

struct releases {
    tn_lease lease;
    tn_hold hold;
    tn_reservation reservation;
};

static const char *release_lease(int index, void *arg) {
    (void)index;
    TN_WORKER_STATUS(tn_lease_release(&((struct releases *)arg)->lease, 0), TN_OK);
    return NULL;
}

static const char *release_all(int index, void *arg) {
    struct releases *x = arg;

    (void)index;
    TN_WORKER_STATUS(tn_lease_release(&x->lease, 0), TN_OK);
    TN_WORKER_STATUS(tn_hold_release(&x->hold), TN_OK);
    TN_WORKER_STATUS(tn_reservation_release(&x->reservation), TN_OK);
    return NULL;
}

static void mc190_a_hundred_releases_of_one_lease(void **state) {
    struct spec *f = *state;
    tn_manager *m = spec_b_manager(f, NULL, 0);
    tn_handle v = adopt_rep(f, m, P);
    struct releases x = {.lease = acquire(m, v, P, NULL)};
    tn_lease beside = acquire(m, v, P, NULL);

    assert_rises(m, 1, assert_null_text(tn_test_workers_run(100, release_lease, &x)));
    assert_int_equal(mat(m, v, P).use_count, 1);
    assert_true(tn_lease_active(&beside));
    release(&beside);
}

static void mc190_every_kind_of_lifetime(void **state) {
    struct spec *f = *state;
    tn_manager *m = spec_b_manager(f, NULL, 0);
    tn_handle v = adopt_rep(f, m, P);

    for (int i = 0; i < 40; i++) {
        struct releases x = {acquire(m, v, P, NULL), hold(m, v, P), reserve(m, P, 8, "x")};

        assert_rises(m, 3, assert_null_text(tn_test_workers_run(6, release_all, &x)));
        assert_int_equal(mat(m, v, P).use_count, 0);
        assert_int_equal(mat(m, v, P).hold_count, 0);
        assert_int_equal(reserved(m, P), 0);
    }
}

static void mc190_a_device_lease_records_once(void **state) {
    struct spec *f = *state;
    tn_manager *m = spec_b_manager(f, NULL, 0);
    tn_handle v = adopt_rep(f, m, P);
    tn_stream s[2] = {spec_stream(f, 0), spec_stream(f, 0)};
    struct releases x;
    uint64_t recorded;
    uint64_t before;

    ensure(m, v, C0);
    before = version(m);
    x.lease = acquire(m, v, C0, s[0]);
    assert_ok(tn_lease_add_stream(&x.lease, s[1]));
    spec_busy(f, s[0]);
    recorded = tn_sim_calls(f->sim, TN_SIM_EVENT_RECORD);
    assert_null_text(tn_test_workers_run(100, release_lease, &x));
    assert_int_equal(tn_sim_calls(f->sim, TN_SIM_EVENT_RECORD) - recorded, 2);
    assert_int_equal(version(m) - before, 2);
    assert_int_equal(mat(m, v, C0).use_count, 0);
    assert_int_equal(mat(m, v, C0).pending_count, 1);
    spec_finish(f);
    for (int i = 0; i < 10000 && version(m) - before < 3; i++)
        spec_b_sleep(1); /* with a reaper thread: soon (D1) */
    assert_int_equal(version(m) - before, 3);
    assert_int_equal(mat(m, v, C0).pending_count, 0);
    drop(m, v, C0);
}

/* Streams added by some threads while another one releases (M259). */
struct adding {
    tn_lease lease;
    tn_stream streams[4];
};

static const char *add_or_release(int index, void *arg) {
    struct adding *x = arg;

    if (index == 0) {
        TN_WORKER_STATUS(tn_lease_release(&x->lease, 0), TN_OK);
    } else {
        tn_status status = tn_lease_add_stream(&x->lease, x->streams[index]);

        TN_WORKER_CHECK(status == TN_OK || status == TN_ERR_LIFETIME_CLOSED);
    }
    return NULL;
}

static void mc190_streams_added_during_the_release(void **state) {
    struct spec *f = *state;
    tn_manager *m = spec_b_manager(f, NULL, 0);
    tn_handle v = adopt_rep(f, m, P);
    struct adding x;

    ensure(m, v, C0);
    for (int i = 0; i < 4; i++)
        x.streams[i] = spec_stream(f, 0);
    for (int i = 0; i < 60; i++) {
        x.lease = acquire(m, v, C0, x.streams[0]);
        assert_null_text(tn_test_workers_run(4, add_or_release, &x));
        assert_false(tn_lease_active(&x.lease));
    }
    spec_finish(f);
    assert_ok(tn_manager_close(m, 0));
}

/* ---- MC191: independent managers ------------------------------------------------------------ */

struct apart {
    struct spec *f;
    tn_manager *slow;
    tn_manager *quick;
    tn_handle sleeper;
    tn_handle v;
    tn_handle w;
    atomic_bool asleep;
    atomic_bool over; /* the work on the other manager is done */
    const char *text;
};

static tn_status sleep_until_over(void *context, const tn_load_request *request) {
    struct apart *x = context;

    (void)request;
    atomic_store(&x->asleep, true);
    if (!spec_b_wait(&x->over, SPEC_B_PATIENCE_MS))
        x->text = "the other manager waits for this one's source";
    return TN_OK;
}

static const char *work_on_the_other(struct apart *x) {
    tn_manager *m = x->quick;

    TN_WORKER_CHECK(spec_b_wait(&x->asleep, SPEC_B_PATIENCE_MS));
    for (int i = 0; i < 50; i++) {
        tn_handle h = {0, 0, NULL};
        tn_reservation r;
        tn_lease lease;

        TN_WORKER_STATUS(spec_b_adopt(m, &h), TN_OK);
        TN_WORKER_STATUS(spec_b_ensure(m, h, C0), TN_OK);
        TN_WORKER_STATUS(tn_manager_acquire(m, &h, 1, P, NULL, &lease), TN_OK);
        TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
        TN_WORKER_STATUS(tn_manager_move(m, h, N, C0, NULL, NULL), TN_OK);
        TN_WORKER_STATUS(tn_manager_discard(m, h, NULL), TN_OK);
        TN_WORKER_STATUS(spec_b_ensure(m, x->w, P), TN_OK); /* its own source */
        TN_WORKER_STATUS(tn_manager_drop(m, x->w, P, NULL), TN_OK);
        TN_WORKER_STATUS(tn_manager_reserve(m, P, 8, "x", &r), TN_OK);
        TN_WORKER_STATUS(tn_reservation_release(&r), TN_OK);
        TN_WORKER_STATUS(spec_b_snapshot(m), TN_OK);
        TN_WORKER_STATUS(tn_manager_step(m, NULL), TN_OK);
    }
    TN_WORKER_STATUS(tn_manager_close(m, 0), TN_OK);
    return NULL;
}

static const char *apart_worker(int index, void *arg) {
    struct apart *x = arg;
    const char *text;

    if (index == 0) {
        TN_WORKER_STATUS(spec_b_ensure(x->slow, x->sleeper, P), TN_OK);
        return NULL;
    }
    text = work_on_the_other(x);
    atomic_store(&x->over, true);
    return text;
}

static void mc191_managers_do_not_wait_for_each_other(void **state) {
    struct spec *f = *state;
    tt_source *source = spec_source(f);
    struct apart x;

    memset(&x, 0, sizeof x);
    x.f = f;
    x.slow = spec_b_manager(f, NULL, 0);
    x.quick = spec_b_manager(f, NULL, 0);
    source->hook = sleep_until_over;
    source->hook_context = &x;
    x.sleeper = register_src(x.slow, source);
    x.w = register_src(x.quick, spec_source(f));
    assert_null_text(tn_test_workers_run(2, apart_worker, &x));
    assert_null_text(x.text);
    assert_replicas(x.slow, x.sleeper, P);
}

/* ---- MC192: the trace is the order of operations -------------------------------------------- */

enum { VALUES = 4, PLACES = 3 };

struct tale {
    tn_manager *m;
    tn_handle values[VALUES];
};

static tn_location place(unsigned i) { return i == 0 ? P : i == 1 ? N : C0; }

static unsigned place_of(tn_location at) {
    unsigned i = 0;

    while (i < PLACES && !tn_location_equal(place(i), at))
        i++;
    return i;
}

static const char *drop_or_ensure(int index, void *arg) {
    struct tale *x = arg;
    uint64_t random = tn_test_seed() + (uint64_t)index;

    for (int i = 0; i < ROUNDS && !tn_test_workers_failed(); i++) {
        tn_handle h = x->values[next(&random) % VALUES];
        tn_location at = place(next(&random) % PLACES);
        tn_status status =
            next(&random) % 2 ? spec_b_ensure(x->m, h, at) : tn_manager_drop(x->m, h, at, NULL);

        if (status == TN_ERR_REENTRANCY) /* another thread's load (M189) */
            continue;
        TN_WORKER_STATUS(status, TN_OK);
    }
    return NULL;
}

/* Apply one report to the placement told so far. */
static void replay(const tn_report *r, bool here[PLACES]) {
    if (r->action.kind == TN_ACTION_ENSURE) {
        unsigned to = place_of(r->destination);

        assert_true(to < PLACES);
        assert_true(r->no_op == here[to]);
        if (!r->no_op) {
            unsigned from = place_of(r->source);
            bool any = here[0] || here[1] || here[2];

            assert_true(from < PLACES);
            assert_true(any ? here[from] : from == 0); /* a replica, or the source at P */
        }
        here[to] = true;
    } else {
        unsigned from = place_of(r->source);

        assert_int_equal(r->action.kind, TN_ACTION_DROP);
        assert_true(from < PLACES);
        assert_true(r->no_op == !here[from]);
        here[from] = false;
    }
}

static void mc192_replaying_the_trace(void **state) {
    struct spec *f = *state;
    bool here[VALUES][PLACES] = {{false}};
    struct tale x;
    tn_report *rows;
    size_t count;

    x.m = spec_b_manager(f, NULL, 0);
    for (int i = 0; i < VALUES; i++)
        x.values[i] = register_src(x.m, spec_source(f));
    ensure(x.m, x.values[0], P); /* track all places first */
    ensure(x.m, x.values[0], N);
    ensure(x.m, x.values[0], C0);
    assert_null_text(tn_test_workers_run(4, drop_or_ensure, &x));
    count = trace_count(x.m);
    rows = calloc(count + 1, sizeof *rows);
    assert_non_null(rows);
    rows[0].size = sizeof *rows;
    assert_ok(tn_manager_trace(x.m, rows, &count));
    for (size_t i = 0; i < count; i++) {
        unsigned v = 0;

        while (v < VALUES && !tn_handle_equal(x.values[v], rows[i].action.handle))
            v++;
        assert_true(v < VALUES);
        replay(&rows[i], here[v]);
    }
    free(rows);
    for (unsigned v = 0; v < VALUES; v++)
        for (unsigned k = 0; k < PLACES; k++)
            assert_true(resident(x.m, x.values[v], place(k)) == here[v][k]);
    assert_null_text(spec_b_check(x.m));
}

static const struct CMUnitTest tests[] = {
    SPEC_THREE_WAYS(mc187_contents_are_intact_until_release),
    SPEC_THREE_WAYS(mc188_a_location_is_tracked_once),
    SPEC_THREE_WAYS(mc190_a_hundred_releases_of_one_lease),
    SPEC_THREE_WAYS(mc190_every_kind_of_lifetime),
    SPEC_THREE_WAYS(mc190_a_device_lease_records_once),
    SPEC_THREE_WAYS(mc190_streams_added_during_the_release),
    SPEC_THREE_WAYS(mc191_managers_do_not_wait_for_each_other),
    SPEC_THREE_WAYS(mc192_replaying_the_trace),
};

TN_TEST_MAIN("spec.races", tests)
