/* SPDX-License-Identifier: MIT */
/*
 * Other threads during a callback, chains of callbacks, and readers of a location that is being
 * tracked (M193, M194, M196, M199, M21; cases MC158, MC159, MC161, MC163).
 *
 * In TN_MODE_CONCURRENT other threads are not refused, and a thread inside a source callback never
 * waits for a transition (D3).
 */
#include "spec_guard_common.h"

/* ---- MC158, MC159 --------------------------------------------------------------------------- */

/* In SERIAL refused; in CONCURRENT a snapshot, without the temporary charge (M232). */
static const char *snapshot_body(void *arg) {
    struct guard *g = arg;
    tn_status status;

    if (g->f->mode == TN_MODE_SERIAL) {
        status = spec_b_snapshot(g->m);
        atomic_store(&g->answered, true);
        TN_WORKER_STATUS(status, TN_ERR_REENTRANCY);
    } else {
        const char *text = spec_b_check(g->m);

        atomic_store(&g->answered, true);
        if (text != NULL)
            return text;
    }
    return NULL;
}

static tn_status wait_for_a_snapshot(void *context, const tn_load_request *request) {
    struct guard *g = context;

    (void)request;
    spec_b_start(&g->thread, snapshot_body, g);
    if (!spec_b_wait(&g->answered, 1000))
        g->text = "the snapshot on another thread has no answer within a second";
    atomic_store(&g->entered, true);
    return TN_OK;
}

static void mc158_a_callback_may_wait_for_another_thread(void **state) {
    struct guard g;
    const char *text = "the source was not called";
    tn_status status;

    guard_prepare(&g, *state, wait_for_a_snapshot);
    status = spec_b_ensure(g.m, g.loading, P);
    if (atomic_load(&g.entered))
        text = spec_b_join(&g.thread);
    assert_null_text(text);
    assert_null_text(g.text);
    assert_ok(status);
    assert_replicas(g.m, g.loading, P);
    assert_int_equal(version(g.m) - g.version, 1);
    guard_finish(&g);
}

/* Takes a snapshot in the middle of the callback, lets the callback go on, takes another one. */
static const char *snapshots_around(void *arg) {
    struct guard *g = arg;

    TN_WORKER_CHECK(spec_b_wait(&g->entered, SPEC_B_PATIENCE_MS));
    TN_WORKER_STATUS(spec_b_snapshot(g->m),
                     g->f->mode == TN_MODE_SERIAL ? TN_ERR_REENTRANCY : TN_OK);
    atomic_store(&g->go, true);
    TN_WORKER_CHECK(spec_b_wait(&g->answered, SPEC_B_PATIENCE_MS));
    TN_WORKER_STATUS(spec_b_snapshot(g->m), TN_OK);
    return NULL;
}

static void mc159_arrivals_are_refused_at_once(void **state) {
    struct guard g;
    struct spec_b_thread thread;
    const char *text;
    tn_status status;

    guard_prepare(&g, *state, guard_wait_until_told);
    spec_b_start(&thread, snapshots_around, &g);
    status = spec_b_ensure(g.m, g.loading, P);
    atomic_store(&g.answered, true);
    atomic_store(&g.go, true);
    text = spec_b_join(&thread);
    assert_null_text(text);
    assert_null_text(g.text);
    assert_ok(status);
    guard_finish(&g);
}

/*
 * Three threads: the first copies, the second queues behind it with a load, the third behind the
 * second. The callback of the load waits for the third, which must be refused (or be done before).
 */
struct queue {
    struct guard g;
    struct spec_b_thread copier;
    struct spec_b_thread loader;
    struct spec_b_thread adopter;
    tn_handle adopted;
    tn_status adopt_status;
    atomic_bool copying;
    atomic_bool copy_on;
};

static void hold_the_copy(void *context, const void *data) {
    struct queue *q = context;

    (void)data;
    atomic_store(&q->copying, true);
    if (!spec_b_wait(&q->copy_on, SPEC_B_PATIENCE_MS))
        q->g.text = "nobody told the copy to go on";
}

static const char *copy_body(void *arg) {
    struct queue *q = arg;

    TN_WORKER_STATUS(spec_b_ensure(q->g.m, q->g.spare, C1), TN_OK);
    return NULL;
}

static const char *load_body(void *arg) {
    struct queue *q = arg;

    TN_WORKER_STATUS(spec_b_ensure(q->g.m, q->g.loading, P), TN_OK);
    return NULL;
}

static const char *adopt_body(void *arg) {
    struct queue *q = arg;

    q->adopt_status = spec_b_adopt(q->g.m, &q->adopted);
    TN_WORKER_CHECK(q->adopt_status == TN_OK || q->adopt_status == TN_ERR_REENTRANCY);
    return NULL;
}

static tn_status wait_for_the_adopter(void *context, const tn_load_request *request) {
    struct queue *q = context;

    (void)request;
    if (!spec_b_wait(&q->adopter.done, SPEC_B_PATIENCE_MS))
        q->g.text = "a thread that began to wait before the callback still waits in it";
    return TN_OK;
}

static void mc158_even_if_that_thread_waits_already(void **state) {
    struct queue q;
    const char *texts[3];

    memset(&q, 0, sizeof q);
    guard_prepare(&q.g, *state, wait_for_the_adopter);
    q.g.f->sources[0].hook_context = &q; /* the source of `loading` */
    tt_on_copy(hold_the_copy, &q);
    spec_b_start(&q.copier, copy_body, &q);
    (void)spec_b_wait(&q.copying, SPEC_B_PATIENCE_MS);
    spec_b_start(&q.loader, load_body, &q);
    spec_b_sleep(20);
    spec_b_start(&q.adopter, adopt_body, &q);
    spec_b_sleep(20);
    atomic_store(&q.copy_on, true);
    texts[0] = spec_b_join(&q.copier);
    texts[1] = spec_b_join(&q.loader);
    texts[2] = spec_b_join(&q.adopter);
    tt_on_copy(NULL, NULL);
    for (int i = 0; i < 3; i++)
        assert_null_text(texts[i]);
    assert_null_text(q.g.text);
    assert_replicas(q.g.m, q.g.loading, P);
    assert_int_equal(info(q.g.m).value_count, q.adopt_status == TN_OK ? 4 : 3);
    guard_finish(&q.g);
}

/* ---- MC161: chains -------------------------------------------------------------------------- */

static tn_status snapshot_of_the_first(void *context, const tn_load_request *request) {
    struct guard *g = context;
    tn_status status = spec_b_snapshot(g->m);

    (void)request;
    if (status != TN_ERR_REENTRANCY)
        g->text = tn_test_text("the snapshot gave %s", tn_status_name(status));
    atomic_store(&g->entered, true);
    return TN_OK;
}

static tn_status load_of_the_second(void *context, const tn_load_request *request) {
    struct guard *g = context;

    (void)request;
    return spec_b_ensure(g->other, g->beyond, P);
}

static void mc161_a_chain_of_callbacks_that_comes_back(void **state) {
    struct guard g;
    tt_source *second;

    guard_prepare(&g, *state, load_of_the_second);
    second = spec_source(g.f);
    second->hook = snapshot_of_the_first;
    second->hook_context = &g;
    g.beyond = register_src(g.other, second);
    ensure(g.m, g.loading, P);
    assert_true(atomic_load(&g.entered));
    assert_null_text(g.text);
    assert_replicas(g.m, g.loading, P);
    assert_replicas(g.other, g.beyond, P);
    assert_int_equal(version(g.m) - g.version, 1);
    guard_finish(&g);
}

/* D3: a thread inside a callback never waits for a transition, not even of another manager. */
struct crossing {
    struct guard outer; /* its callback is told when to go on; `m` loads */
    struct guard inner;
    tn_status status;
};

static tn_status meet_a_transition(void *context, const tn_load_request *request) {
    struct crossing *x = context;

    (void)request;
    x->status = spec_b_ensure(x->inner.m, x->inner.loading, P);
    return TN_OK;
}

static const char *ensure_inner(void *arg) {
    struct crossing *x = arg;

    TN_WORKER_STATUS(spec_b_ensure(x->inner.m, x->inner.loading, P), TN_OK);
    return NULL;
}

static void mc161_a_callback_never_waits_for_a_transition(void **state) {
    struct spec *f = *state;
    struct crossing x;
    struct spec_b_thread thread;
    const char *text;
    tn_status status;

    memset(&x, 0, sizeof x);
    guard_prepare(&x.inner, f, guard_wait_until_told);
    x.outer.f = f;
    x.outer.m = x.inner.other;
    spec_source(f)->hook = meet_a_transition;
    f->sources[f->source_count - 1].hook_context = &x;
    x.outer.loading = register_src(x.outer.m, &f->sources[f->source_count - 1]);
    spec_b_start(&thread, ensure_inner, &x);
    (void)spec_b_wait(&x.inner.entered, SPEC_B_PATIENCE_MS);
    status = spec_b_ensure(x.outer.m, x.outer.loading, P);
    atomic_store(&x.inner.go, true);
    text = spec_b_join(&thread);
    assert_null_text(text);
    assert_null_text(x.inner.text);
    assert_ok(status);
    assert_int_equal(x.status, TN_ERR_REENTRANCY);
    assert_replicas(x.outer.m, x.outer.loading, P);
    assert_replicas(x.inner.m, x.inner.loading, P);
    guard_finish(&x.inner);
}

/* ---- MC163 ---------------------------------------------------------------------------------- */

enum { FIRST_RESERVES = 300 };

struct first {
    atomic_int watched;  /* the manager that the second worker looks at, + 1 */
    atomic_int reserved; /* how many managers the first worker is done with */
    tn_manager *managers[FIRST_RESERVES];
    tn_reservation reservations[FIRST_RESERVES];
};

/* One manager after the other, each as soon as somebody looks at it. */
static const char *reserve_when_watched(struct first *x) {
    for (int i = 0; i < FIRST_RESERVES; i++) {
        while (atomic_load(&x->watched) <= i)
            if (tn_test_workers_failed())
                return NULL;
        TN_WORKER_STATUS(tn_manager_reserve(x->managers[i], P, 0, "first", &x->reservations[i]),
                         TN_OK);
        atomic_store(&x->reserved, i + 1);
    }
    return NULL;
}

/* What it sees must agree with real time (M21, M255). */
static const char *read_locations(struct first *x, int i) {
    size_t count = 0;

    while (count == 0 && !tn_test_workers_failed()) {
        bool done = atomic_load(&x->reserved) > i;
        tn_snapshot_info head = {.size = sizeof head};
        tn_snapshot *s = NULL;
        tn_location at[2];
        tn_status status;

        count = 2;
        TN_WORKER_STATUS(tn_manager_locations(x->managers[i], at, &count), TN_OK);
        TN_WORKER_CHECK(count <= 1);
        TN_WORKER_CHECK(count == 1 || !done);
        if (count == 0)
            continue;
        TN_WORKER_CHECK(tn_location_equal(at[0], P));
        TN_WORKER_STATUS(tn_snapshot_take(x->managers[i], &s), TN_OK);
        status = tn_snapshot_read(s, &head);
        tn_snapshot_drop(s);
        TN_WORKER_STATUS(status, TN_OK);
        TN_WORKER_CHECK(head.location_count == 1);
        TN_WORKER_CHECK(head.reservation_count == 1); /* tracked: its operation is complete */
    }
    return NULL;
}

/* No snapshot of an instant shows a location whose tracking operation is not complete. */
static const char *take_snapshots(struct first *x, int i) {
    tn_snapshot_info head = {.size = sizeof head};

    while (head.reservation_count == 0 && !tn_test_workers_failed()) {
        tn_snapshot *s = NULL;
        tn_status status;

        TN_WORKER_STATUS(tn_snapshot_take(x->managers[i], &s), TN_OK);
        status = tn_snapshot_read(s, &head);
        tn_snapshot_drop(s);
        TN_WORKER_STATUS(status, TN_OK);
        TN_WORKER_CHECK(!head.exact || head.location_count == head.reservation_count);
        TN_WORKER_CHECK(!head.exact || head.state_version == 2 * head.reservation_count);
    }
    return NULL;
}

static const char *watch(struct first *x, const char *(*look)(struct first *x, int i)) {
    for (int i = 0; i < FIRST_RESERVES && !tn_test_workers_failed(); i++) {
        const char *text;

        atomic_store(&x->watched, i + 1);
        text = look(x, i);
        if (text != NULL)
            return text;
    }
    return NULL;
}

static const char *locations_worker(int index, void *arg) {
    return index == 0 ? reserve_when_watched(arg) : watch(arg, read_locations);
}

static const char *snapshots_worker(int index, void *arg) {
    return index == 0 ? reserve_when_watched(arg) : watch(arg, take_snapshots);
}

static void run_first(struct spec *f, tn_test_worker_fn *worker) {
    static struct first x;
    tn_config config = spec_config(f);
    const char *text;

    memset(&x, 0, sizeof x);
    for (int i = 0; i < FIRST_RESERVES; i++)
        assert_ok(tn_manager_create(&config, &x.managers[i]));
    text = tn_test_workers_run(2, worker, &x);
    for (int i = 0; i < FIRST_RESERVES; i++) {
        if (x.reservations[i].record != NULL)
            release_reservation(&x.reservations[i]);
        assert_ok(tn_manager_close(x.managers[i], 0));
        assert_ok(tn_manager_destroy(x.managers[i]));
    }
    assert_null_text(text);
}

static void mc163_locations_during_the_first_reserve(void **state) {
    run_first(*state, locations_worker);
}

static void mc163_snapshots_during_the_first_reserve(void **state) {
    run_first(*state, snapshots_worker);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(mc158_a_callback_may_wait_for_another_thread),
    SPEC_BOTH(mc158_even_if_that_thread_waits_already),
    SPEC_BOTH(mc159_arrivals_are_refused_at_once),
    SPEC_BOTH(mc161_a_chain_of_callbacks_that_comes_back),
    SPEC_CONCURRENT(mc161_a_callback_never_waits_for_a_transition),
    SPEC_BOTH(mc163_locations_during_the_first_reserve),
    SPEC_BOTH(mc163_snapshots_during_the_first_reserve),
};

TN_TEST_MAIN("spec.guard_threads", tests)
