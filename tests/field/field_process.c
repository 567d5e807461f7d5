/* SPDX-License-Identifier: MIT */
/* Field cases: the idle footprint, threads, forks. */
#include "tn_test.h"

#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomic.h"
#include "lifetime/lifetime_priv.h"
#include "manager/manager_internal.h"

#include "field_common.h"

/* ---- F-D27: the idle footprint --------------------------------------------------------------------- */

#define FOOTPRINT_VALUES 15 /* of 65536 bytes, one replica each: below 1 MiB */

#define FOOTPRINT_BYTES UINT64_C(65536)

/* Values that come, go and move. */
static void live_and_discard(struct spec *f, tn_manager *m) {
    tn_handle values[FOOTPRINT_VALUES] = {{0, 0, NULL}};
    uint64_t random = tn_test_seed() | 1;

    for (int i = 0; i < 1000; i++) {
        const tn_location at[] = {P, N, C0};
        tn_location to;
        tn_handle *h;

        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        h = &values[(random >> 33) % FOOTPRINT_VALUES];
        to = at[(random >> 50) % 3];
        if (h->type == NULL) {
            *h = field_adopt(f, m, to, TN_EXCLUSIVE, FOOTPRINT_BYTES, 1);
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
}

static void one_life(struct spec *f) {
    tn_manager *m = MANAGER(f);
    tn_pinned_figures pinned = TN_PINNED_FIGURES_INIT;

    live_and_discard(f, m);
    assert_int_equal(used(m, P), 0);
    assert_int_equal(used(m, N), 0);
    assert_int_equal(used(m, C0), 0);
    assert_int_equal(loc(m, C0).allocated_bytes, 0);
    assert_true(loc(m, C0).held_bytes <= FOOTPRINT_BYTES);
    assert_int_equal(tt_count().live, f->live);
    assert_int_equal(tt_count().backings, 0);
    assert_ok(tn_driver_read_pinned(f->driver, &pinned));
    assert_int_equal(pinned.live_bytes, 0);
    assert_true(pinned.idle_bytes > 0);
    assert_int_equal(field_memory(f, N).live_bytes, pinned.idle_bytes);
    field_conserved(f, m);
    assert_ok(tn_manager_close(m, 0));
    spec_destroy(f, m);
    assert_int_equal(field_memory(f, C0).live_blocks, 0);
    assert_int_equal(field_memory(f, N).live_blocks, 0);
    assert_int_equal(tn_sim_live_events(f->sim), 0);
    assert_int_equal(tn_sim_live_streams(f->sim), 0);
}

static void f_d27_idle_footprint(void **state) {
    struct spec *f = *state;
    uint64_t blocks;

    spec_machine(f, "dev:1 pool=65536B");
    one_life(f);
    blocks = tn__alloc_live(); /* the memory of records stays, for the next manager */
    one_life(f);
    assert_int_equal(tn__alloc_live(), blocks);
}

/* ---- F-H05: one thread, no hidden worker, fork by others is harmless ---------------------------------- */

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
    int n = field_threads_at_rest();
    tn_manager *m, *second;

    if (n < 0)
        TN_SKIP("/proc is not mounted");
    m = with_reaper(f, TN_REAPER_THREAD);
    assert_int_equal(field_threads_now(), n + 1);
    churn(f, m, 5000);
    assert_int_equal(field_threads_now(), n + 1);
    second = with_reaper(f, TN_REAPER_THREAD);
    assert_int_equal(field_threads_now(), n + 2);
    spec_destroy(f, second);
    spec_destroy(f, m);
    field_assert_threads(n);
    m = with_reaper(f, TN_REAPER_MANUAL);
    churn(f, m, 5000);
    assert_int_equal(field_threads_now(), n);
    spec_destroy(f, m);
    assert_int_equal(field_threads_now(), n);
}

/* The case's two seconds are those of a machine at rest, where a fork need not wait its turn behind
 * four busy threads. What it looks for, a child that waits for a lock that nobody will release, never
 * ends. */
#define ALL_FORKS_MAX_NS (60000 * MS)

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
    uint64_t began, took;

    x.lent = field_rep(f, x.m, 64, 1);
    x.moved = field_rep_at(f, x.m, N, 64, 2); /* copied: a callback would refuse the leases */
    began = tn__mono_ns();
    assert_null_text(tn_test_workers_run(5, work_beside_forks, &x));
    took = tn__mono_ns() - began;
    print_message("    a hundred children in %llu ms\n", (unsigned long long)(took / MS));
    assert_true(took <= ALL_FORKS_MAX_NS);
    field_conserved(f, x.m);
}

static const struct CMUnitTest tests[] = {
    FIELD_BOTH(f_d27_idle_footprint),
    FIELD_BOTH(f_h05_one_thread_per_manager),
    FIELD_BOTH(f_h05_fork_by_others_is_harmless),
};

TN_TEST_MAIN("field.process", tests)
