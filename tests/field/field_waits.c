/* SPDX-License-Identifier: MIT */
/* Field cases: empty waits, large counts, a slow load. */
#include "tn_test.h"

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

/* A version that is expected is compared whole. */
static void expect_version(tn_manager *m, uint64_t now) {
    static const uint64_t wrong[] = {1, UINT64_C(1) << 31, UINT64_C(1) << 32};
    tn_run_options options = TN_RUN_OPTIONS_INIT;

    options.expected_version = now;
    assert_ok(tn_manager_execute_actions(m, NULL, NULL, 0, &options, NULL));
    for (size_t i = 0; i < 3; i++) {
        options.expected_version = now + wrong[i];
        assert_status(tn_manager_execute_actions(m, NULL, NULL, 0, &options, NULL), TN_ERR_STALE);
        assert_int_equal(tn_last_error()->expected, now + wrong[i]);
        assert_int_equal(tn_last_error()->actual, now);
    }
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
            expect_version(m, before + 2 * n - 1);
            release(&lease);
            expect_version(m, before + 2 * n);
        }
        assert_int_equal(info(m).state_version, before + 20);
        highest = before + 20;
    }
    field_conserved(f, m);
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

/* Until A's load is in its callback. */
static void slow_load(struct slow *x, struct field_thread *loader) {
    atomic_store(&x->loading, false);
    atomic_store(&x->let_go, false);
    field_start(loader, load_a, x);
    while (!atomic_load(&x->loading))
        field_nap(1);
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
    slow_load(x, loader);
}

static void slow_end(struct spec *f, struct slow *x, struct field_thread *loader) {
    atomic_store(&x->let_go, true);
    field_join(loader);
    assert_int_equal(atomic_load(&x->inside), TN_ERR_REENTRANCY);
    assert_int_equal(f->sources[0].calls, 1);
    assert_true(resident(x->m, x->a, P));
    field_conserved(f, x->m);
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

/* The soak: the others lease as fast as without it. */
#define ROUNDS 15
#define LEASES 200000

struct pace {
    struct slow *slow;
    _Atomic uint64_t cpu_ns; /* of all threads */
};

static const char *lease_often(int index, void *arg) {
    struct pace *p = arg;
    struct slow *x = p->slow;
    uint64_t began = tn_test_cpu_ns();

    for (int i = 0; i < LEASES; i++) {
        tn_lease lease;

        TN_WORKER_STATUS(
            tn_manager_acquire(x->m, &x->resident[(index + i) % 64], 1, P, NULL, &lease), TN_OK);
        TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
    }
    atomic_fetch_add(&p->cpu_ns, tn_test_cpu_ns() - began);
    return NULL;
}

/* CPU time of 16 threads, for each of their leases. */
static double lease_ns(struct slow *x) {
    struct pace p = {.slow = x};

    assert_null_text(tn_test_workers_run(16, lease_often, &p));
    return (double)p.cpu_ns / (16.0 * LEASES);
}

static int by_value(const void *a, const void *b) {
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double median(double *rounds) {
    qsort(rounds, ROUNDS, sizeof *rounds, by_value);
    return rounds[ROUNDS / 2];
}

static void expect_the_same_pace(struct slow *x) {
    double without[ROUNDS], beside[ROUNDS], ratio[ROUNDS];
    struct field_thread loader;

    for (int i = 0; i < ROUNDS; i++) { /* by turns: what disturbs one disturbs both */
        without[i] = lease_ns(x);
        drop(x->m, x->a, P);
        slow_load(x, &loader);
        beside[i] = lease_ns(x);
        assert_false(atomic_load(&loader.done));
        atomic_store(&x->let_go, true);
        field_join(&loader);
        ratio[i] = beside[i] / without[i];
    }
    print_message("    a lease beside a load: %.1f ns, without: %.1f ns, ratio %.3f (medians)\n",
                  median(beside), median(without), median(ratio));
    if (FIELD_OPTIMISED)
        assert_true(median(ratio) < 1.1);
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
    if (field_soak())
        expect_the_same_pace(&x);
}

static const struct CMUnitTest tests[] = {
    FIELD_BOTH(f_f02_empty_waits),
    FIELD_BOTH(f_f02_large_counts),
    FIELD_SERIAL(f_f08_slow_load_refuses_in_serial_mode),
    FIELD_CONCURRENT(f_f08_slow_load_stops_nobody),
};

TN_TEST_MAIN("field.waits", tests)
