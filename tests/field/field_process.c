/* SPDX-License-Identifier: MIT */
/* Field cases: waits, counts, a slow load, threads, forks, what is left at the end. */
/* TN_TEST_TIMEOUT 180 */
#include "tn_test.h"

#include <dirent.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomic.h"
#include "lifetime/lifetime_priv.h"
#include "manager/manager_internal.h"

#include "field_common.h"

/* ---- F-F02: empty waits and large counts -------------------------------------------------------- */

static void f_f02_empty_waits(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = field_rep(f, m, 64, 1);
    tn_lease lease = acquire(m, v, P, NULL);
    uint64_t before = version(m);

    assert_ok(tn_lease_release(&lease, TN_RELEASE_WAIT));
    assert_int_equal(version(m), before + 1);
    assert_ok(tn_manager_close(m, 0));
    assert_int_equal(field_ms(f), 0);
}

static void f_f02_large_counts(void **state) {
    static const uint64_t counts[] = {(UINT64_C(1) << 31) - 3, (UINT64_C(1) << 32) - 3};
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = field_rep(f, m, 64, 1);
    uint64_t highest = version(m);

    for (int i = 0; i < 2; i++) {
        tn_lease lease = acquire(m, v, P, NULL); /* the thread has a slot */
        uint64_t before;

        release(&lease);
        tn__store_rel(&tn__life_known_slot(m->life, tn__thread_self())->counter, 2 * counts[i]);
        before = version(m);
        assert_true(before > highest);
        assert_true(before >= counts[i]);
        for (uint64_t n = 1; n <= 10; n++) {
            lease = acquire(m, v, P, NULL);
            assert_int_equal(version(m), before + 2 * n - 1);
            release(&lease);
            assert_int_equal(version(m), before + 2 * n);
        }
        assert_int_equal(info(m).state_version, before + 20);
        highest = before + 20;
    }
    field_conserved(m);
}

/* ---- F-F08: a slow load does not stop the others ------------------------------------------------- */

struct slow {
    tn_manager *m;
    tn_handle a, b;
    tn_handle resident[64];
    atomic_bool loading;
    atomic_bool let_go;
    atomic_int inside; /* status of a snapshot in the callback */
};

static tn_status blocks_on_a_latch(void *context, const tn_load_request *request) {
    struct slow *x = context;
    tn_snapshot *s = NULL;

    (void)request;
    atomic_store(&x->inside, (int)tn_snapshot_take(x->m, &s));
    atomic_store(&x->loading, true);
    while (!atomic_load(&x->let_go))
        field_nap(1);
    return TN_OK;
}

static const char *load_a(void *arg) {
    struct slow *x = arg;

    TN_WORKER_STATUS(tn_manager_ensure(x->m, x->a, P, NULL, NULL), TN_OK);
    return NULL;
}

static void slow_begin(struct spec *f, struct slow *x, struct field_thread *loader) {
    tt_source *s = spec_source(f);

    x->m = MANAGER(f);
    s->hook = blocks_on_a_latch;
    s->hook_context = x;
    x->a = field_src(x->m, s, 64);
    x->b = field_src(x->m, spec_source(f), 64);
    for (uint64_t i = 0; i < 64; i++)
        x->resident[i] = field_rep(f, x->m, 64, i);
    field_start(loader, load_a, x);
    while (!atomic_load(&x->loading))
        field_nap(1);
}

static void slow_end(struct spec *f, struct slow *x, struct field_thread *loader) {
    atomic_store(&x->let_go, true);
    field_join(loader);
    assert_int_equal(atomic_load(&x->inside), TN_ERR_REENTRANCY);
    assert_int_equal(f->sources[0].calls, 1);
    assert_true(resident(x->m, x->a, P));
    field_conserved(x->m);
}

static const char *all_refused(int index, void *arg) {
    struct slow *x = arg;
    tn_snapshot *s = NULL;
    tn_reservation r;
    tn_lease lease;
    uint64_t number;

    TN_WORKER_STATUS(tn_manager_acquire(x->m, &x->resident[index], 1, P, NULL, &lease),
                     TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_snapshot_take(x->m, &s), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_manager_state_version(x->m, &number), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_manager_ensure(x->m, x->b, P, NULL, NULL), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_manager_reserve(x->m, P, 1, "workspace", &r), TN_ERR_REENTRANCY);
    return NULL;
}

static void f_f08_slow_load_refuses_in_serial_mode(void **state) {
    struct spec *f = *state;
    struct slow x = {.m = NULL};
    struct field_thread loader;

    slow_begin(f, &x, &loader);
    assert_null_text(tn_test_workers_run(16, all_refused, &x));
    slow_end(f, &x, &loader);
}

static const char *others_go_on(int index, void *arg) {
    struct slow *x = arg;

    for (int i = 0; i < 100 && index == 16; i++) {
        TN_WORKER_STATUS(tn_manager_ensure(x->m, x->b, P, NULL, NULL), TN_OK);
        TN_WORKER_STATUS(tn_manager_drop(x->m, x->b, P, NULL), TN_OK);
    }
    for (int i = 0; i < 2000 && index < 16; i++) {
        tn_lease lease;

        TN_WORKER_STATUS(
            tn_manager_acquire(x->m, &x->resident[(index + i) % 64], 1, P, NULL, &lease), TN_OK);
        TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
    }
    return NULL;
}

static void f_f08_slow_load_stops_nobody(void **state) {
    struct spec *f = *state;
    struct slow x = {.m = NULL};
    struct field_thread loader;
    uint64_t before;

    slow_begin(f, &x, &loader);
    before = version(x.m);
    assert_null_text(tn_test_workers_run(17, others_go_on, &x));
    assert_false(atomic_load(&loader.done));
    assert_int_equal(version(x.m), before + 64200);
    slow_end(f, &x, &loader);
    assert_int_equal(version(x.m), before + 64201);
}

/* ---- F-D27: the idle footprint --------------------------------------------------------------------- */

#define FOOTPRINT_VALUES 15 /* of 65536 bytes, one replica each: below 1 MiB */

static void f_d27_idle_footprint(void **state) {
    struct spec *f = *state;
    static const uint64_t bytes = 65536;
    tn_handle values[FOOTPRINT_VALUES] = {{0, 0, NULL}};
    uint64_t random = tn_test_seed() | 1;
    tn_manager *m;

    spec_machine(f, "dev:1 pool=65536B");
    m = MANAGER(f);
    for (int i = 0; i < 1000; i++) {
        const tn_location at[] = {P, N, C0};
        tn_location to;
        tn_handle *h;

        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        h = &values[(random >> 33) % FOOTPRINT_VALUES];
        to = at[(random >> 50) % 3];
        if (h->type == NULL) {
            *h = field_adopt(f, m, to, TN_EXCLUSIVE, bytes, 1);
        } else if ((random >> 40) % 4 == 0) {
            discard(m, *h);
            h->type = NULL;
        } else {
            move(m, *h, to);
        }
    }
    for (int i = 0; i < FOOTPRINT_VALUES; i++)
        if (values[i].type != NULL)
            discard(m, values[i]);
    assert_int_equal(used(m, P), 0);
    assert_int_equal(used(m, N), 0);
    assert_int_equal(used(m, C0), 0);
    assert_int_equal(loc(m, C0).allocated_bytes, 0);
    assert_true(loc(m, C0).held_bytes <= bytes);
    assert_int_equal(tt_count().live, f->live);
    assert_int_equal(tt_count().backings, 0);
    field_conserved(m);
    assert_ok(tn_manager_close(m, 0));
    spec_destroy(f, m);
    assert_int_equal(field_memory(f, C0).live_blocks, 0);
    assert_int_equal(field_memory(f, N).live_blocks, 0);
    assert_int_equal(tn_sim_live_events(f->sim), 0);
    assert_int_equal(tn_sim_live_streams(f->sim), 0);
}

/* ---- F-H05: one thread, no hidden worker, fork by others is harmless ---------------------------------- */

static int threads_now(void) {
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;

    if (tasks == NULL)
        return -1;
    for (struct dirent *e; (e = readdir(tasks)) != NULL;)
        count += e->d_name[0] != '.';
    closedir(tasks);
    return count;
}

/* A thread that was joined leaves the list a moment later. */
static void assert_threads(int expected) {
    for (int i = 0; i < 1000 && threads_now() != expected; i++)
        field_nap(1);
    assert_int_equal(threads_now(), expected);
}

static tn_manager *with_reaper(struct spec *f, uint32_t reaper) {
    tn_config config = spec_config(f);

    config.reaper = reaper;
    return spec_manager_with(f, &config);
}

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

static void f_h05_one_thread_per_manager(void **state) {
    struct spec *f = *state;
    int n = threads_now();
    tn_manager *m, *second;

    if (n < 0)
        TN_SKIP("/proc is not mounted");
    m = with_reaper(f, TN_REAPER_THREAD);
    assert_int_equal(threads_now(), n + 1);
    churn(f, m, 5000);
    assert_int_equal(threads_now(), n + 1);
    second = with_reaper(f, TN_REAPER_THREAD);
    assert_int_equal(threads_now(), n + 2);
    spec_destroy(f, second);
    spec_destroy(f, m);
    assert_threads(n);
    m = with_reaper(f, TN_REAPER_MANUAL);
    churn(f, m, 5000);
    assert_int_equal(threads_now(), n);
    spec_destroy(f, m);
    assert_int_equal(threads_now(), n);
}

struct forks {
    tn_manager *m;
    tn_handle lent, moved;
    atomic_bool over;
};

static const char *fork_and_collect(struct forks *x) {
    for (int i = 0; i < 100; i++) {
        int status = -1;
        pid_t pid = fork();

        TN_WORKER_CHECK(pid >= 0);
        if (pid == 0)
            _exit(0);
        TN_WORKER_CHECK(waitpid(pid, &status, 0) == pid);
        TN_WORKER_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    atomic_store(&x->over, true);
    return NULL;
}

static const char *work_beside_forks(int index, void *arg) {
    struct forks *x = arg;

    if (index == 0)
        return fork_and_collect(x);
    while (!atomic_load(&x->over) && !tn_test_workers_failed()) {
        tn_lease lease;

        if (index == 1) {
            TN_WORKER_STATUS(tn_manager_ensure(x->m, x->moved, P, NULL, NULL), TN_OK);
            TN_WORKER_STATUS(tn_manager_drop(x->m, x->moved, P, NULL), TN_OK);
            continue;
        }
        TN_WORKER_STATUS(tn_manager_acquire(x->m, &x->lent, 1, P, NULL, &lease), TN_OK);
        TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
    }
    return NULL;
}

static void f_h05_fork_by_others_is_harmless(void **state) {
    struct spec *f = *state;
    struct forks x = {.m = with_reaper(f, TN_REAPER_THREAD)};

    x.lent = field_rep(f, x.m, 64, 1);
    x.moved = field_rep_at(f, x.m, N, 64, 2); /* copied: a callback would refuse the leases */
    assert_null_text(tn_test_workers_run(5, work_beside_forks, &x));
    field_conserved(x.m);
}

/* ---- F-H06: nothing is left on the retire list --------------------------------------------------------- */

static void figures(tn_manager *m, uint64_t *published, uint64_t *freed) {
    tn__lock(&m->store->lock);
    *published = m->store->versions_published;
    *freed = m->store->versions_freed;
    tn__unlock(&m->store->lock);
}

/* Versions that nobody frees, and the end. */
static void retire_and_end(struct spec *f, int rounds) {
    tn_manager *m = with_reaper(f, TN_REAPER_MANUAL);
    tn_handle v = field_src(m, spec_source(f), 64);
    tn_handle kept = field_rep(f, m, 64, 2);
    uint64_t published, freed, published_before, freed_before;
    tn_value_info row = {.size = sizeof(row)};
    tn_snapshot *s = NULL;
    size_t count = 0;

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
    assert_ok(tn_manager_close(m, 0));
    assert_int_equal(tt_count().live, f->live);
    assert_ok(tn_snapshot_value(s, kept, &row));
    assert_int_equal(row.materialization_count, 1);
    assert_int_equal(row.discarded, 0);
    assert_ok(tn_snapshot_locations(s, NULL, &count));
    assert_int_equal(count, 1);
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
    int n = threads_now();
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
        assert_true(atomic_load(&releaser.done) || threads_now() <= n + 1);
        field_join(&releaser);
        tn__store_rlx(&tn__point_hook, NULL);
        assert_threads(n);
    }
    assert_int_equal(tn__alloc_live(), live);
}
#else
static void f_h06_reaper_stalled_until_close(void **state) {
    (void)state;
    TN_SKIP("threads can be stopped only in builds with TN_CHECKS");
}
#endif

static const struct CMUnitTest tests[] = {
    FIELD_BOTH(f_f02_empty_waits),
    FIELD_BOTH(f_f02_large_counts),
    FIELD_SERIAL(f_f08_slow_load_refuses_in_serial_mode),
    FIELD_CONCURRENT(f_f08_slow_load_stops_nobody),
    FIELD_BOTH(f_d27_idle_footprint),
    FIELD_BOTH(f_h05_one_thread_per_manager),
    FIELD_BOTH(f_h05_fork_by_others_is_harmless),
    FIELD_BOTH(f_h06_nothing_is_left),
    FIELD_BOTH(f_h06_reaper_stalled_until_close),
};

TN_TEST_MAIN("field.process", tests)
