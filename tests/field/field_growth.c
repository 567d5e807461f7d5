/* SPDX-License-Identifier: MIT */
/* Field cases of slow things that stop nobody else: F-E04, F-F08. */
#include "memory_util.h"

#include <pthread.h>
#include <sched.h>

#include "base/atomic.h"

#define BYTES 65536u

/* ---- F-E04 Growing the pinned tier does not stall the others ---- */

struct growth {
    struct spec *f;
    tn_manager *m;
    tn_handle a, b, c;
    atomic_int status;
    atomic_uint busy; /* threads that still have to do something at t + 0 */
};

static const char *grow_or_work(int index, void *arg) {
    struct growth *g = arg;

    if (index == 0) {
        TN_WORKER_STATUS(tn_manager_ensure(g->m, g->a, N, NULL, NULL), TN_OK);
        TN_WORKER_CHECK(hm_now(g->f) == 250 * MS);
        return NULL;
    }
    while (tn_sim_calls(g->f->sim, TN_SIM_PINNED_ALLOC) == 0)
        sched_yield(); /* thread 0 is inside its first pin from then on */
    for (int i = 0; index == 1 && i < 1000; i++) {
        tn_lease lease;
        TN_WORKER_STATUS(tn_manager_acquire(g->m, &g->c, 1, P, NULL, &lease), TN_OK);
        TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
    }
    if (index == 2)
        TN_WORKER_STATUS(tn_manager_ensure(g->m, g->b, P, NULL, NULL), TN_OK);
    TN_WORKER_CHECK(hm_now(g->f) == 0);
    if (atomic_fetch_sub(&g->busy, 1) == 1) /* the last one lets the pin go on */
        TN_WORKER_STATUS(tn_sim_advance(g->f->sim, 250 * MS), TN_OK);
    return NULL;
}

static void f_e04_growing_the_pinned_tier_does_not_stall_the_others(void **state) {
    struct spec *f = *state;
    struct growth g = {.f = f, .m = MANAGER(f), .busy = 2};

    g.a = hm_adopt(f, g.m, BYTES, 1);
    g.b = hm_register(g.m, hm_file("b", KEY, 1), 0, KEY, P);
    g.c = hm_adopt(f, g.m, BYTES, 2);
    assert_ok(tn_sim_set_waits(f->sim, TN_SIM_WAITS_BLOCK));
    hm_slow_pins(f, 250 * MS, 1);
    assert_null_text(tn_test_workers_run(3, grow_or_work, &g));
    assert_true(hm_holds(g.m, g.a, N, 1));
    assert_true(hm_is_piece(g.m, g.b, P, 0));
    assert_ok(tn_sim_set_waits(f->sim, TN_SIM_WAITS_ADVANCE));
    field_conserved(f, g.m);
}

/* ---- F-F08 A slow load does not stop the others ---- */

enum { VALUES = 64, THREADS = 16, PAIRS = 2000, ROUNDS = 100 };

struct slow {
    struct spec *f;
    tn_manager *m;
    tn_handle a, b, v[VALUES];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool inside, open; /* under the lock */
    tn_status nested;  /* what a snapshot inside the callback gives */
    atomic_uint busy;
};

static tn_status wait_on_latch(void *context, const tn_load_request *request) {
    struct slow *s = context;
    tn_snapshot *snapshot = NULL;

    (void)request;
    s->nested = tn_snapshot_take(s->m, &snapshot);
    pthread_mutex_lock(&s->lock);
    s->inside = true;
    pthread_cond_broadcast(&s->changed);
    while (!s->open)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    return TN_OK;
}

static void wait_inside(struct slow *s) {
    pthread_mutex_lock(&s->lock);
    while (!s->inside)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static void open_latch(struct slow *s) {
    pthread_mutex_lock(&s->lock);
    s->open = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static const char *others_are_refused(struct slow *s, int index) {
    tn_reservation reservation;
    tn_snapshot *snapshot = NULL;
    tn_lease lease;
    uint64_t v;

    TN_WORKER_STATUS(tn_manager_acquire(s->m, &s->v[index], 1, P, NULL, &lease), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_snapshot_take(s->m, &snapshot), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_manager_state_version(s->m, &v), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_manager_ensure(s->m, s->b, P, NULL, NULL), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_manager_reserve(s->m, P, 8, "room", &reservation), TN_ERR_REENTRANCY);
    return NULL;
}

static const char *others_go_on(struct slow *s, int index) {
    if (index == THREADS) {
        for (int i = 0; i < ROUNDS; i++) {
            TN_WORKER_STATUS(tn_manager_ensure(s->m, s->b, P, NULL, NULL), TN_OK);
            TN_WORKER_STATUS(tn_manager_drop(s->m, s->b, P, NULL), TN_OK);
        }
        return NULL;
    }
    for (int i = 0; i < PAIRS; i++) {
        tn_lease lease;
        tn_handle h = s->v[(index + i) % VALUES];
        TN_WORKER_STATUS(tn_manager_acquire(s->m, &h, 1, P, NULL, &lease), TN_OK);
        TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
    }
    return NULL;
}

/* Index 0 loads A; the others come while it is inside, and the last of them opens the latch. */
static const char *slow_worker(int index, void *arg) {
    struct slow *s = arg;

    if (index == 0) {
        TN_WORKER_STATUS(tn_manager_ensure(s->m, s->a, P, NULL, NULL), TN_OK);
        return NULL;
    }
    wait_inside(s);
    const char *text = s->f->mode == TN_MODE_SERIAL ? others_are_refused(s, index - 1)
                                                    : others_go_on(s, index - 1);
    if (atomic_fetch_sub(&s->busy, 1) == 1)
        open_latch(s);
    return text;
}

static void f_f08_a_slow_load_does_not_stop_the_others(void **state) {
    struct spec *f = *state;
    bool serial = f->mode == TN_MODE_SERIAL;
    int workers = serial ? THREADS : THREADS + 1;
    struct slow s = {.f = f, .m = MANAGER(f), .busy = (unsigned)workers};
    tt_source *a = spec_source(f), *b = spec_source(f);

    pthread_mutex_init(&s.lock, NULL);
    pthread_cond_init(&s.changed, NULL);
    a->hook = wait_on_latch;
    a->hook_context = &s;
    for (uint64_t i = 0; i < VALUES; i++)
        s.v[i] = hm_adopt(f, s.m, 4096, i);
    s.a = hm_source(s.m, a, KEY, P);
    s.b = hm_source(s.m, b, 4096, P);
    uint64_t before = version(s.m);
    assert_null_text(tn_test_workers_run(workers + 1, slow_worker, &s));
    assert_int_equal(s.nested, TN_ERR_REENTRANCY);
    assert_true(hm_holds(s.m, s.a, P, a->seed));
    assert_int_equal(atomic_load(&a->calls), 1);
    uint64_t lease = 2; /* of hm_holds() */
    uint64_t changes = version(s.m) - before - lease;
    assert_int_equal(changes, serial ? 1 : THREADS * PAIRS * 2 + ROUNDS * 2 + 1);
    field_conserved(f, s.m);
    pthread_cond_destroy(&s.changed);
    pthread_mutex_destroy(&s.lock);
}

static const struct CMUnitTest tests[] = {
    SPEC_CONCURRENT(f_e04_growing_the_pinned_tier_does_not_stall_the_others),
    SPEC_BOTH(f_f08_a_slow_load_does_not_stop_the_others),
};

TN_TEST_MAIN("field.growth", tests)
