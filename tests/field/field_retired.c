/* SPDX-License-Identifier: MIT */
/* Field cases: nothing is left on the retire list, nothing grows. */
#include "tn_test.h"

#include <semaphore.h>

#include "base/atomic.h"
#include "lifetime/lifetime_priv.h"
#include "manager/manager_internal.h"

#include "field_common.h"

static tn_manager *with_reaper(struct spec *f, uint32_t reaper) {
    tn_config config = spec_config(f);

    config.reaper = reaper;
    return spec_manager_with(f, &config);
}

/* ---- F-H06: nothing is left on the retire list --------------------------------------------------------- */

static void figures(tn_manager *m, uint64_t *published, uint64_t *freed) {
    tn__lock(&m->store->lock);
    *published = m->store->versions_published;
    *freed = m->store->versions_freed;
    tn__unlock(&m->store->lock);
}

struct picture {
    tn_snapshot_info head;
    tn_location_info at[2];
    tn_value_info values[2];
    size_t locations;
};

/* Everything that a snapshot of the two values says. */
static struct picture look(const tn_snapshot *s, tn_handle a, tn_handle b) {
    struct picture p;

    memset(&p, 0, sizeof p);
    p.head.size = sizeof p.head;
    p.at[0].size = sizeof p.at[0];
    p.values[0].size = p.values[1].size = sizeof p.values[0];
    p.locations = 2;
    assert_ok(tn_snapshot_read(s, &p.head));
    assert_ok(tn_snapshot_locations(s, p.at, &p.locations));
    assert_ok(tn_snapshot_value(s, a, &p.values[0]));
    assert_ok(tn_snapshot_value(s, b, &p.values[1]));
    return p;
}

/* Versions that nobody frees, and the end. */
static void retire_and_end(struct spec *f, int rounds) {
    tn_manager *m = with_reaper(f, TN_REAPER_MANUAL);
    tn_handle v = field_src(m, spec_source(f), 64);
    tn_handle kept = field_rep(f, m, 64, 2);
    uint64_t published, freed, published_before, freed_before;
    struct picture open, closed;
    tn_snapshot *s = NULL;

    ensure(m, v, P);
    drop(m, v, P);
    figures(m, &published_before, &freed_before);
    for (int i = 0; i < rounds; i++) {
        ensure(m, v, P);
        drop(m, v, P);
    }
    figures(m, &published, &freed);
    assert_int_equal(published - published_before, 2 * rounds);
    assert_int_equal(freed, 0);
    assert_ok(tn_snapshot_take(m, &s));
    open = look(s, v, kept);
    assert_int_equal(open.locations, 1);
    assert_int_equal(open.at[0].used_bytes, 64);
    assert_int_equal(open.values[1].materialization_count, 1);
    assert_ok(tn_manager_close(m, 0));
    assert_int_equal(tt_count().live, f->live);
    closed = look(s, v, kept);
    assert_memory_equal(&closed, &open, sizeof open);
    tn_snapshot_drop(s);
    spec_destroy(f, m);
}

static void f_h06_nothing_is_left(void **state) {
    struct spec *f = *state;
    uint64_t live;

    retire_and_end(f, 1); /* the memory of records stays, for the next manager */
    live = tn__alloc_live();
    retire_and_end(f, 5000);
    assert_int_equal(tn__alloc_live(), live);
}

#if TN_CHECKS
static void churn(struct spec *f, tn_manager *m, int times) {
    tn_handle v = field_src(m, spec_source(f), 64);

    for (int i = 0; i < times; i++) {
        tn_snapshot *s = NULL;

        ensure(m, v, P);
        if (i % 10 == 0)
            assert_ok(tn_snapshot_take(m, &s));
        drop(m, v, P);
        tn_snapshot_drop(s);
    }
}

static struct {
    pthread_t test;
    sem_t reached, go;
    atomic_bool stopped;
} reaper_stop;

/* The reaper stands before its first grace period until it is let go. */
static void stop_the_reaper(enum tn__point point, void *object) {
    (void)object;
    if (point != TN__POINT_GRACE || pthread_equal(pthread_self(), reaper_stop.test) ||
        atomic_exchange(&reaper_stop.stopped, true))
        return;
    sem_post(&reaper_stop.reached);
    while (sem_wait(&reaper_stop.go) != 0)
        continue;
}

static const char *let_the_reaper_go(void *arg) {
    (void)arg;
    field_nap(50);
    sem_post(&reaper_stop.go);
    return NULL;
}

static void f_h06_reaper_stalled_until_close(void **state) {
    struct spec *f = *state;
    struct field_thread releaser;
    int n = field_threads_at_rest();
    uint64_t live = 0;

    for (int round = 0; round < 2; round++) {
        tn_manager *m;

        live = tn__alloc_live();
        reaper_stop.test = pthread_self();
        atomic_store(&reaper_stop.stopped, false);
        sem_init(&reaper_stop.reached, 0, 0);
        sem_init(&reaper_stop.go, 0, 0);
        m = with_reaper(f, TN_REAPER_THREAD);
        tn__store_rlx(&tn__point_hook, stop_the_reaper);
        churn(f, m, 1);
        while (sem_wait(&reaper_stop.reached) != 0)
            continue;
        churn(f, m, 5000);
        assert_ok(tn_manager_close(m, 0));
        field_start(&releaser, let_the_reaper_go, NULL);
        spec_destroy(f, m);
        assert_true(atomic_load(&releaser.done) || field_threads_now() <= n + 1);
        field_join(&releaser);
        tn__store_rlx(&tn__point_hook, NULL);
        field_assert_threads(n);
    }
    assert_int_equal(tn__alloc_live(), live);
}
#else
static void f_h06_reaper_stalled_until_close(void **state) {
    (void)state;
    TN_SKIP("threads can be stopped only in builds with TN_CHECKS");
}
#endif

/* ---- F-A14: accounting is level, so must the heap be ------------------------------------------------------ */

#define LEVEL_VALUES 64

static void use_each_once(tn_manager *m, tn_handle *values, int from, int to) {
    for (int i = from; i < to; i++) {
        tn_handle h = values[i % LEVEL_VALUES];
        const void *data = NULL;
        tn_lease lease;

        ensure(m, h, P);
        lease = acquire(m, h, P, NULL);
        assert_ok(tn_lease_lookup(&lease, h, &data));
        assert_true(tt_check(data, 1));
        release(&lease);
        drop(m, h, P);
        if (i % 100 == 99)
            field_step(m);
    }
}

static void f_a14_heap_is_level(void **state) {
    struct spec *f = *state;
    static tt_source sources[LEVEL_VALUES];
    tn_value_spec spec = tt_spec(4096, 4096);
    tn_config config = spec_config(f);
    tn_handle values[LEVEL_VALUES];
    uint64_t published, freed, before, live;
    tn_manager *m;

    config.trace_capacity = 256;
    m = spec_manager_with(f, &config);
    for (int i = 0; i < LEVEL_VALUES; i++) {
        sources[i] = (tt_source){.seed = 1};
        values[i] = spec_register_spec(m, &sources[i], P, &spec);
    }
    before = version(m);
    use_each_once(m, values, 0, 1000);
    live = tn__alloc_live();
    use_each_once(m, values, 1000, 20000);
    /* only the index of owned storage may have grown: 64 shards of 320 bytes, each made when an
     * address first falls into it */
    assert_true(tn__alloc_live() <= live + 64);
    assert_int_equal(version(m), before + 80000);
    figures(m, &published, &freed);
    assert_int_equal(freed, published); /* one is alive */
    field_conserved(f, m);
    spec_destroy(f, m); /* before the sources go */
}

static const struct CMUnitTest tests[] = {
    FIELD_BOTH(f_a14_heap_is_level),
    FIELD_BOTH(f_h06_nothing_is_left),
    FIELD_BOTH(f_h06_reaper_stalled_until_close),
};

TN_TEST_MAIN("field.retired", tests)
