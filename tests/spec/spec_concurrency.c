/* SPDX-License-Identifier: MIT */
/*
 * What threads may see of one another (M255, M257, M258, M132; cases MC183..MC186).
 *
 * Each test runs in both modes with manual reaping, and in the concurrent mode with the reaper
 * thread. Workers never assert. Sums and versions are compared in exact snapshots only (D10).
 */
#include "spec_b_common.h"

#include <sched.h>

/* Loops are short: two cores, sanitizers. */
#define ROUNDS 400

/* The row of one location of a snapshot, and whether it is tracked. */
static bool row_of(const tn_snapshot *s, tn_location at, tn_location_info *out) {
    tn_location_info rows[8] = {{.size = sizeof rows[0]}};
    size_t count = 8;

    if (tn_snapshot_locations(s, rows, &count) != TN_OK)
        return false;
    for (size_t i = 0; i < count && i < 8; i++)
        if (tn_location_equal(rows[i].at, at)) {
            *out = rows[i];
            return true;
        }
    return false;
}

static bool is_exact(const tn_snapshot *s) {
    tn_snapshot_info head = {.size = sizeof head};

    return tn_snapshot_read(s, &head) == TN_OK && head.exact;
}

/* ---- MC183: budgets ------------------------------------------------------------------------- */

enum { SLOTS = 10, THREADS = 16 };

struct pool {
    tn_manager *m;
    atomic_int running;
    atomic_int resident;
    atomic_uint adopted;
    atomic_uint refused;
    unsigned rounds;
};

static const char *watch_pool(struct pool *x) {
    while (atomic_load(&x->running) > 0) {
        tn_snapshot *s = NULL;
        tn_location_info row;
        const char *text;

        TN_WORKER_STATUS(tn_snapshot_take(x->m, &s), TN_OK);
        text = spec_b_check_snapshot(s);
        if (text == NULL && (!row_of(s, P, &row) || row.used_bytes > SLOTS * 32 ||
                             row.value_count > SLOTS || row.peak_charged_bytes > SLOTS * 32))
            text = "more than ten values in a snapshot";
        tn_snapshot_drop(s);
        if (text != NULL)
            return text;
    }
    return NULL;
}

static const char *adopt_and_discard(struct pool *x) {
    for (unsigned i = 0; i < x->rounds && !tn_test_workers_failed(); i++) {
        tn_handle h = {0, 0, NULL};
        tn_status status = spec_b_adopt(x->m, &h);

        if (status == TN_ERR_BUDGET) {
            atomic_fetch_add(&x->refused, 1);
            continue;
        }
        TN_WORKER_STATUS(status, TN_OK);
        atomic_fetch_add(&x->adopted, 1);
        TN_WORKER_CHECK(atomic_fetch_add(&x->resident, 1) < SLOTS);
        atomic_fetch_sub(&x->resident, 1);
        TN_WORKER_STATUS(tn_manager_discard(x->m, h, NULL), TN_OK);
    }
    return NULL;
}

static const char *pool_worker(int index, void *arg) {
    struct pool *x = arg;
    const char *text;

    if (index == 0)
        return watch_pool(x);
    text = adopt_and_discard(x);
    atomic_fetch_sub(&x->running, 1);
    return text;
}

static void run_pool(struct spec *f, int threads, unsigned rounds, struct pool *x) {
    const tn_budget budget = {P, SLOTS * 32};

    memset(x, 0, sizeof *x);
    x->m = spec_b_manager(f, &budget, 1);
    x->rounds = rounds;
    atomic_store(&x->running, threads);
    assert_null_text(tn_test_workers_run(threads + 1, pool_worker, x));
    assert_int_equal(used(x->m, P), 0);
    assert_true(peaks(x->m, P).used <= SLOTS * 32);
    assert_true(peaks(x->m, P).charged <= SLOTS * 32);
    assert_true(peaks(x->m, P).used >= 32);
    assert_int_equal(atomic_load(&x->adopted) + atomic_load(&x->refused),
                     (unsigned)threads * rounds);
    assert_int_equal(info(x->m).value_count, atomic_load(&x->adopted));
    assert_int_equal(version(x->m), 3u * atomic_load(&x->adopted)); /* adopt 1, discard 2 */
}

static void mc183_sixteen_threads_and_room_for_ten(void **state) {
    struct pool x;

    run_pool(*state, THREADS, 1000, &x);
    assert_true(atomic_load(&x.adopted) > 0);
}

/* M258: what fits is never refused, whatever other operations are under way. */
static void mc183_what_fits_is_never_refused(void **state) {
    struct pool x;

    run_pool(*state, SLOTS, ROUNDS, &x);
    assert_int_equal(atomic_load(&x.refused), 0);
    assert_int_equal(atomic_load(&x.adopted), SLOTS * ROUNDS);
}

/* The same with failing loads: a transient claim that ends in failure is no reason (G28). */
struct loads {
    tn_manager *m;
    tn_handle good[4];
    tn_handle bad[4];
};

/* In a serial manager a call during another thread's load is refused (M189): try again. */
static tn_status ensure_at_last(tn_manager *m, tn_handle h) {
    tn_status status;

    while ((status = spec_b_ensure(m, h, P)) == TN_ERR_REENTRANCY)
        sched_yield();
    return status;
}

static tn_status drop_at_last(tn_manager *m, tn_handle h) {
    tn_status status;

    while ((status = tn_manager_drop(m, h, P, NULL)) == TN_ERR_REENTRANCY)
        sched_yield();
    return status;
}

static const char *load_and_drop(int index, void *arg) {
    struct loads *x = arg;

    for (int i = 0; i < ROUNDS && !tn_test_workers_failed(); i++) {
        tn_status status;

        if (index >= 4) {
            status = ensure_at_last(x->m, x->bad[index - 4]);
            TN_WORKER_CHECK(status == TN_ERR_SOURCE || status == TN_ERR_BUDGET);
            continue;
        }
        TN_WORKER_STATUS(ensure_at_last(x->m, x->good[index]), TN_OK);
        TN_WORKER_STATUS(drop_at_last(x->m, x->good[index]), TN_OK);
    }
    return NULL;
}

/* Four values fit together; the failing loads of others may only make them wait. */
static void mc183_failing_loads_take_nothing_away(void **state) {
    struct spec *f = *state;
    const tn_budget budget = {P, 4 * 32};
    struct loads x;

    x.m = spec_b_manager(f, &budget, 1);
    for (int i = 0; i < 4; i++) {
        tt_source *bad = spec_source(f);

        bad->fail_from = 1;
        bad->fail_count = UINT64_MAX;
        x.good[i] = register_src(x.m, spec_source(f));
        x.bad[i] = register_src(x.m, bad);
    }
    assert_null_text(tn_test_workers_run(6, load_and_drop, &x));
    assert_int_equal(used(x.m, P), 0);
    assert_int_equal(reserved(x.m, P), 0);
    assert_true(peaks(x.m, P).charged <= 4 * 32);
}

/* ---- MC184: versions ------------------------------------------------------------------------ */

static const char *reserve_and_release(int index, void *arg) {
    tn_manager *m = arg;

    (void)index;
    for (int i = 0; i < 1000; i++) {
        tn_reservation r;

        TN_WORKER_STATUS(tn_manager_reserve(m, P, 16, "mc184", &r), TN_OK);
        TN_WORKER_STATUS(tn_reservation_release(&r), TN_OK);
    }
    return NULL;
}

static void mc184_every_reservation_counts_once(void **state) {
    const tn_budget budget = {P, 1 << 20};
    tn_manager *m = spec_b_manager(*state, &budget, 1);
    uint64_t before = version(m);

    assert_null_text(tn_test_workers_run(8, reserve_and_release, m));
    assert_int_equal(version(m) - before, 16000);
    assert_int_equal(reserved(m, P), 0);
    assert_true(peaks(m, P).charged >= 16 && peaks(m, P).charged <= 8 * 16);
    assert_int_equal(peaks(m, P).used, 0);
    assert_int_equal(info(m).exact, 1);
    assert_int_equal(info(m).state_version, before + 16000);
}

/* Leases and holds, counted by the threads that end them, not by those that began them. */
struct handover {
    tn_manager *m;
    tn_handle v;
    tn_lease leases[ROUNDS];
    tn_hold holds[ROUNDS];
    atomic_int ready;
};

static const char *hand_over(int index, void *arg) {
    struct handover *x = arg;

    for (int i = 0; i < ROUNDS; i++) {
        if (index == 0) {
            TN_WORKER_STATUS(tn_manager_acquire(x->m, &x->v, 1, P, NULL, &x->leases[i]), TN_OK);
            TN_WORKER_STATUS(tn_manager_hold(x->m, &x->v, 1, P, &x->holds[i]), TN_OK);
            atomic_store(&x->ready, i + 1);
        } else {
            while (atomic_load(&x->ready) <= i)
                if (tn_test_workers_failed() || sched_yield() != 0)
                    return NULL;
            TN_WORKER_STATUS(tn_lease_release(&x->leases[i], 0), TN_OK);
            TN_WORKER_STATUS(tn_hold_release(&x->holds[i]), TN_OK);
        }
    }
    return NULL;
}

static void mc184_lifetimes_ended_by_another_thread_count_once(void **state) {
    static struct handover x;
    struct spec *f = *state;
    uint64_t before;

    memset(&x, 0, sizeof x);
    x.m = spec_b_manager(f, NULL, 0);
    x.v = adopt_rep(f, x.m, P);
    before = version(x.m);
    assert_null_text(tn_test_workers_run(2, hand_over, &x));
    assert_int_equal(version(x.m) - before, 4 * ROUNDS);
    assert_int_equal(mat(x.m, x.v, P).use_count, 0);
    assert_int_equal(mat(x.m, x.v, P).hold_count, 0);
}

/* ---- MC185: an exclusive value on the move -------------------------------------------------- */

struct mover {
    tn_manager *m;
    tn_handle v;
    atomic_bool stop;
    atomic_uint seen; /* exact snapshots */
};

static const char *look_at_mover(struct mover *x) {
    uint64_t last = 0;

    while (!atomic_load(&x->stop)) {
        tn_snapshot_info head = {.size = sizeof head};
        tn_materialization_info rows[4] = {{.size = sizeof rows[0]}};
        tn_snapshot *s = NULL;
        size_t count = 4;
        tn_location_info at_p;
        tn_location_info at_n;
        const char *text;
        bool good;

        TN_WORKER_STATUS(tn_snapshot_take(x->m, &s), TN_OK);
        text = spec_b_check_snapshot(s);
        good = tn_snapshot_read(s, &head) == TN_OK &&
               tn_snapshot_materializations(s, x->v, rows, &count) == TN_OK &&
               row_of(s, P, &at_p) && row_of(s, N, &at_n);
        tn_snapshot_drop(s);
        if (text != NULL)
            return text;
        TN_WORKER_CHECK(good);
        TN_WORKER_CHECK(count == 1); /* in every snapshot: it is one placement version */
        if (head.exact) {
            TN_WORKER_CHECK(at_p.used_bytes + at_n.used_bytes == 32);
            TN_WORKER_CHECK((at_p.used_bytes == 32) == tn_location_equal(rows[0].at, P));
            TN_WORKER_CHECK(head.state_version >= last);
            last = head.state_version;
            atomic_fetch_add(&x->seen, 1);
        }
    }
    return NULL;
}

static const char *mover_worker(int index, void *arg) {
    struct mover *x = arg;

    if (index > 0)
        return look_at_mover(x);
    for (int i = 0; i < 2 * ROUNDS && !tn_test_workers_failed(); i++) {
        tn_status status = tn_manager_move(x->m, x->v, i % 2 ? P : N, NOWHERE, NULL, NULL);

        if (status != TN_OK)
            atomic_store(&x->stop, true);
        TN_WORKER_STATUS(status, TN_OK);
    }
    atomic_store(&x->stop, true);
    return NULL;
}

static void mc185_an_exclusive_value_is_at_one_place(void **state) {
    const tn_budget budgets[] = {{P, 32}, {N, 32}};
    struct spec *f = *state;
    const void *data = NULL;
    struct mover x;
    tn_lease lease;

    memset(&x, 0, sizeof x);
    x.m = spec_b_manager(f, budgets, 2);
    x.v = adopt_exc(f, x.m, P);
    assert_null_text(tn_test_workers_run(3, mover_worker, &x));
    assert_int_equal(version(x.m), 1 + 2 * 2 * ROUNDS);
    assert_replicas(x.m, x.v, P);
    lease = acquire(x.m, x.v, P, NULL);
    assert_ok(tn_lease_lookup(&lease, x.v, &data));
    assert_true(tt_check(data, 1)); /* the contents came along */
    release(&lease);
}

/* ---- MC186: several values at once ---------------------------------------------------------- */

enum { ATTEMPTS = 200000, DROPS = 500 };

/*
 * Attempts to acquire are numbered; attempt i lasts from before begun > i to after ended > i. A
 * refused drop remembers the attempts that overlap it, and one of them must have been granted.
 */
struct group {
    tn_manager *m;
    tn_handle a, b, absent;
    atomic_bool stop;
    atomic_uint begun;
    atomic_uint ended;
    atomic_uchar granted[ATTEMPTS];
    unsigned refused_from[DROPS];
    unsigned refused_to[DROPS];
    unsigned refused;
};

static const char *acquire_pair(struct group *x) {
    const tn_handle pair[] = {x->a, x->b};

    for (unsigned i = 0; i < ATTEMPTS && !atomic_load(&x->stop); i++) {
        tn_lease lease;
        tn_status status;

        atomic_store(&x->begun, i + 1);
        status = tn_manager_acquire(x->m, pair, 2, P, NULL, &lease);
        if (status == TN_OK) {
            atomic_store(&x->granted[i], 1);
            status = tn_lease_release(&lease, 0);
        } else if (status == TN_ERR_UNAVAILABLE) {
            status = TN_OK;
        }
        atomic_store(&x->ended, i + 1);
        TN_WORKER_STATUS(status, TN_OK);
    }
    return NULL;
}

static const char *acquire_in_vain(struct group *x) {
    const tn_handle a_first[] = {x->a, x->absent};
    const tn_handle b_first[] = {x->b, x->absent};

    for (unsigned i = 0; !atomic_load(&x->stop); i++) {
        tn_lease lease;
        tn_status status = tn_manager_acquire(x->m, i % 2 ? a_first : b_first, 2, P, NULL, &lease);

        TN_WORKER_STATUS(status, TN_ERR_UNAVAILABLE);
    }
    return NULL;
}

static const char *drop_and_ensure(struct group *x) {
    for (unsigned i = 0; i < DROPS && !tn_test_workers_failed(); i++) {
        unsigned from = atomic_load(&x->ended);
        tn_status status = tn_manager_drop(x->m, x->b, P, NULL);

        if (status == TN_ERR_IN_USE) {
            TN_WORKER_CHECK(tn_last_error()->use_count >= 1);
            TN_WORKER_CHECK(tn_last_error()->hold_count == 0);
            TN_WORKER_CHECK(tn_last_error()->pending_count == 0);
            x->refused_from[x->refused] = from;
            x->refused_to[x->refused++] = atomic_load(&x->begun);
            continue;
        }
        TN_WORKER_STATUS(status, TN_OK);
        TN_WORKER_STATUS(spec_b_ensure(x->m, x->b, P), TN_OK);
    }
    return NULL;
}

static bool uses(const tn_snapshot *s, tn_handle h, uint64_t *out) {
    tn_materialization_info rows[4] = {{.size = sizeof rows[0]}};
    size_t count = 4;

    *out = 0;
    if (tn_snapshot_materializations(s, h, rows, &count) != TN_OK)
        return false;
    for (size_t i = 0; i < count; i++)
        if (tn_location_equal(rows[i].at, P))
            *out = rows[i].use_count;
    return true;
}

static const char *compare_uses(struct group *x) {
    while (!atomic_load(&x->stop)) {
        tn_snapshot *s = NULL;
        uint64_t on_a = 0;
        uint64_t on_b = 0;
        const char *text;
        bool exact;
        bool read;

        TN_WORKER_STATUS(tn_snapshot_take(x->m, &s), TN_OK);
        text = spec_b_check_snapshot(s);
        exact = is_exact(s);
        read = uses(s, x->a, &on_a) && uses(s, x->b, &on_b);
        tn_snapshot_drop(s);
        if (text != NULL)
            return text;
        TN_WORKER_CHECK(read);
        TN_WORKER_CHECK(!exact || on_a == on_b);
    }
    return NULL;
}

static const char *group_worker(int index, void *arg) {
    struct group *x = arg;
    const char *text = index == 0   ? drop_and_ensure(x)
                       : index == 1 ? acquire_pair(x)
                       : index == 2 ? acquire_in_vain(x)
                                    : compare_uses(x);

    if (index == 0 || text != NULL)
        atomic_store(&x->stop, true);
    return text;
}

static void mc186_all_or_nothing_for_everybody(void **state) {
    static struct group x;
    struct spec *f = *state;

    memset(&x, 0, sizeof x);
    x.m = spec_b_manager(f, NULL, 0);
    x.a = adopt_rep(f, x.m, P);
    x.b = adopt_rep(f, x.m, P);
    x.absent = register_src(x.m, spec_source(f));
    ensure(x.m, x.b, N);
    assert_null_text(tn_test_workers_run(4, group_worker, &x));
    for (unsigned i = 0; i < x.refused; i++) {
        bool really = false;

        for (unsigned k = x.refused_from[i]; k < x.refused_to[i] && k < ATTEMPTS; k++)
            really |= atomic_load(&x.granted[k]) != 0;
        if (!really)
            print_error("drop refused during attempts %u..%u, none of them granted\n",
                        x.refused_from[i], x.refused_to[i]);
        assert_true(really);
    }
    assert_int_equal(mat(x.m, x.a, P).use_count, 0);
    assert_int_equal(info(x.m).lease_count, 0);
}

static const struct CMUnitTest tests[] = {
    SPEC_THREE_WAYS(mc183_sixteen_threads_and_room_for_ten),
    SPEC_THREE_WAYS(mc183_what_fits_is_never_refused),
    SPEC_THREE_WAYS(mc183_failing_loads_take_nothing_away),
    SPEC_THREE_WAYS(mc184_every_reservation_counts_once),
    SPEC_THREE_WAYS(mc184_lifetimes_ended_by_another_thread_count_once),
    SPEC_THREE_WAYS(mc185_an_exclusive_value_is_at_one_place),
    SPEC_THREE_WAYS(mc186_all_or_nothing_for_everybody),
};

TN_TEST_MAIN("spec.concurrency", tests)
