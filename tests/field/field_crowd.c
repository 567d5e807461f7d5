/* SPDX-License-Identifier: MIT */
/* Field cases: admission and pinned memory among many threads. */
#include "tn_test.h"

#include <semaphore.h>

#include "field_common.h"

#define BLOCK UINT64_C(65536)
#define GIB (UINT64_C(1) << 30)

/* ---- F-A03: workspace admission is what limits concurrency ------------------------------------- */

#define TASKS 36

struct tasks {
    tn_manager *m;
    atomic_int inside;
    atomic_int most_inside;
    atomic_int releases;
    atomic_bool told;
    atomic_bool checked;
};

static void note_inside(struct tasks *x, int now) {
    int most = atomic_load(&x->most_inside);

    while (now > most && !atomic_compare_exchange_weak(&x->most_inside, &most, now))
        ;
}

static const char *task(struct tasks *x) {
    tn_reservation r;

    for (;;) {
        int releases = atomic_load(&x->releases);
        tn_status status = tn_manager_reserve(x->m, P, 6 * GIB, "workspace", &r);

        if (status == TN_OK)
            break;
        TN_WORKER_STATUS(status, TN_ERR_BUDGET);
        while (atomic_load(&x->releases) == releases)
            field_nap(1);
    }
    note_inside(x, atomic_fetch_add(&x->inside, 1) + 1);
    while (!atomic_load(&x->told))
        field_nap(1);
    atomic_fetch_sub(&x->inside, 1);
    TN_WORKER_STATUS(tn_reservation_release(&r), TN_OK);
    atomic_fetch_add(&x->releases, 1);
    return NULL;
}

/* The sixteenth reservation is in; nothing more fits. */
static const char *check_the_full_house(struct tasks *x) {
    tn_location_info row = {.size = sizeof(row)};
    tn_snapshot_info head = {.size = sizeof(head)};
    tn_snapshot *s = NULL;
    tn_reservation r;
    size_t one = 1;

    while (atomic_load(&x->inside) < 15)
        field_nap(1);
    TN_WORKER_STATUS(tn_snapshot_take(x->m, &s), TN_OK);
    TN_WORKER_STATUS(tn_snapshot_locations(s, &row, &one), TN_OK);
    TN_WORKER_STATUS(tn_snapshot_read(s, &head), TN_OK);
    tn_snapshot_drop(s);
    TN_WORKER_CHECK(row.reserved_bytes == UINT64_C(134217728000));
    TN_WORKER_CHECK(row.remaining_bytes == 0);
    TN_WORKER_CHECK(head.reservation_count == 16);
    TN_WORKER_STATUS(tn_manager_reserve(x->m, P, 1, "one", &r), TN_ERR_BUDGET);
    TN_WORKER_CHECK(tn_location_equal(tn_last_error()->at, P));
    TN_WORKER_CHECK(tn_last_error()->budget_bytes == UINT64_C(134217728000));
    TN_WORKER_CHECK(tn_last_error()->used_bytes == 0);
    TN_WORKER_CHECK(tn_last_error()->reserved_bytes == UINT64_C(134217728000));
    TN_WORKER_CHECK(tn_last_error()->requested_bytes == 1);
    return NULL;
}

static const char *task_or_check(int index, void *arg) {
    struct tasks *x = arg;
    const char *text;

    if (index < TASKS)
        return task(x);
    text = check_the_full_house(x);
    atomic_store(&x->told, true);
    return text;
}

static void f_a03_workspace_limits_concurrency(void **state) {
    struct spec *f = *state;
    struct tasks x = {.m = MANAGER(f, {P, 125 * GIB})};
    uint64_t before = version(x.m);
    tn_reservation keys = reserve(x.m, P, 35 * GIB, "keys");

    assert_null_text(tn_test_workers_run(TASKS + 1, task_or_check, &x));
    assert_true(x.most_inside <= 15);
    assert_int_equal(x.releases, 36);
    assert_int_equal(reserved(x.m, P), 35 * GIB);
    assert_peaks(x.m, P, 0, UINT64_C(134217728000));
    assert_int_equal(version(x.m), before + 73);
    release_reservation(&keys);
    field_conserved(f, x.m);
}

/* ---- F-D13: a value larger than its budget (field_plans.c explains it) ----------------------------- */

struct refusal {
    struct spec *f;
    tn_manager *m;
    tn_handle h;
    uint64_t ended_ns;
};

static const char *is_refused(void *arg) {
    struct refusal *x = arg;

    TN_WORKER_STATUS(tn_manager_ensure(x->m, x->h, P, NULL, NULL), TN_ERR_BUDGET);
    x->ended_ns = tn_sim_now_ns(x->f->sim);
    return NULL;
}

/* While another thread's copy of 10 ms is in flight: no later than its end. */
static void expect_refusal_beside_a_copy(struct spec *f, tn_manager *m, tn_handle h) {
    struct field_action slow = {.kind = TN_ACTION_ENSURE, .at = C0};
    struct refusal x = {f, m, h, 0};
    struct field_thread asking;

    slow.h = field_adopt(f, m, N, TN_REPLICABLE, 64, 1);
    assert_ok(tn_sim_set_waits(f->sim, TN_SIM_WAITS_BLOCK));
    field_act(&slow, f, m);
    while (field_calls(f, TN_SIM_COPY) == 0)
        field_nap(1);
    field_until(f, 1);
    field_start(&asking, is_refused, &x);
    field_nap(5);
    field_until(f, 10);
    field_join(&asking);
    field_join(&slow.thread);
    assert_true(x.ended_ns <= 10 * MS);
    assert_int_equal(slow.ended_ns, 10 * MS);
}

static void f_d13_value_larger_than_its_budget(void **state) {
    struct spec *f = *state;
    tn_manager *m;
    tn_handle h;
    uint64_t before;

    spec_machine(f, "dev:1 latency=10ms");
    m = MANAGER(f, {P, 131072});
    before = version(m);
    h = field_src(m, spec_source(f), 153600);
    assert_int_equal(version(m), before + 1);
    for (int i = 0; i < 1000; i++) {
        assert_status(tn_manager_ensure(m, h, P, NULL, NULL), TN_ERR_BUDGET);
        assert_budget_error(P, 131072, 0, 0, 153600);
    }
    assert_int_equal(f->sources[0].calls, 0);
    assert_int_equal(version(m), before + 1);
    assert_peaks(m, P, 0, 0);
    expect_refusal_beside_a_copy(f, m, h);
    field_conserved(f, m);
}

/* ---- F-D19: no spurious refusal, no retry without change ------------------------------------------- */

struct permits {
    tn_manager *m;
    sem_t permits;
};

static const char *reserve_with_a_permit(struct permits *x) {
    for (int i = 0; i < 1000; i++) {
        tn_reservation r;

        while (sem_wait(&x->permits) != 0)
            continue;
        TN_WORKER_STATUS(tn_manager_reserve(x->m, C0, 65536, "workspace", &r), TN_OK);
        TN_WORKER_STATUS(tn_reservation_release(&r), TN_OK);
        sem_post(&x->permits);
    }
    return NULL;
}

static const char *reserve_or_be_refused(int index, void *arg) {
    struct permits *x = arg;
    tn_reservation r;

    if (index < 16)
        return reserve_with_a_permit(x);
    for (int i = 0; i < 1000; i++)
        TN_WORKER_STATUS(tn_manager_reserve(x->m, C0, 327680, "too much", &r), TN_ERR_BUDGET);
    return NULL;
}

static void f_d19_no_spurious_refusal(void **state) {
    struct spec *f = *state;
    struct permits x = {.m = MANAGER(f, {C0, 262144})};
    uint64_t before = version(x.m);
    tn_reservation r;

    sem_init(&x.permits, 0, 4);
    assert_null_text(tn_test_workers_run(17, reserve_or_be_refused, &x));
    sem_destroy(&x.permits);
    assert_int_equal(version(x.m), before + 32000);
    assert_int_equal(peaks(x.m, C0).used, 0);
    assert_true(peaks(x.m, C0).charged <= 262144);
    for (int i = 0; i < 1000; i++)
        assert_status(tn_manager_reserve(x.m, C0, 327680, "too much", &r), TN_ERR_BUDGET);
    assert_int_equal(version(x.m), before + 32000);
    field_conserved(f, x.m);
}

/* ---- F-D25: the pinned tier runs out under sixteen threads ------------------------------------------ */

struct pinned {
    tn_manager *m;
    tn_handle values[16];
    tn_status status[16];
    tn_error errors[16];
    tn_stream streams[16];
};

static const char *ensure_pinned(int index, void *arg) {
    struct pinned *x = arg;

    x->status[index] = tn_manager_ensure(x->m, x->values[index], N, NULL, NULL);
    x->errors[index] = *tn_last_error();
    return NULL;
}

static int count_status(const struct pinned *x, tn_status status) {
    int count = 0;

    for (int i = 0; i < 16; i++)
        count += x->status[i] == status;
    return count;
}

static void f_d25_pinned_tier_runs_out(void **state) {
    struct spec *f = *state;
    struct pinned x = {.m = MANAGER(f, {N, 524288})};
    tn_status first[16];

    for (uint64_t i = 0; i < 16; i++)
        x.values[i] = field_rep(f, x.m, BLOCK, i);
    assert_null_text(tn_test_workers_run(16, ensure_pinned, &x));
    assert_int_equal(count_status(&x, TN_OK), 8);
    assert_int_equal(count_status(&x, TN_ERR_BUDGET), 8);
    memcpy(first, x.status, sizeof(first));
    for (int i = 0; i < 16; i++) {
        if (first[i] == TN_OK) {
            drop(x.m, x.values[i], N);
            continue;
        }
        assert_at(x.errors[i].at, N);
        assert_int_equal(x.errors[i].budget_bytes, 524288);
        assert_int_equal(x.errors[i].used_bytes, 524288);
        assert_int_equal(x.errors[i].reserved_bytes, 0);
        assert_int_equal(x.errors[i].requested_bytes, BLOCK);
    }
    for (int i = 0; i < 16; i++)
        if (first[i] != TN_OK)
            ensure(x.m, x.values[i], N);
    assert_int_equal(used(x.m, N), 524288);
    field_conserved(f, x.m);
}

static const char *pinned_or_not(int index, void *arg) {
    struct pinned *x = arg;
    tn_lease lease;

    if (index == 0) {
        TN_WORKER_STATUS(tn_manager_ensure(x->m, x->values[0], N, NULL, NULL), TN_ERR_PAYLOAD);
        return NULL;
    }
    for (int i = 0; i < 50; i++) {
        TN_WORKER_STATUS(tn_manager_ensure(x->m, x->values[index], C0, NULL, NULL), TN_OK);
        TN_WORKER_STATUS(tn_manager_acquire(x->m, &x->values[index], 1, P, NULL, &lease), TN_OK);
        TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
        TN_WORKER_STATUS(tn_manager_drop(x->m, x->values[index], C0, NULL), TN_OK);
    }
    return NULL;
}

static void f_d25_no_pinned_memory_at_all(void **state) {
    struct spec *f = *state;
    struct pinned x = {.m = MANAGER(f)};
    uint64_t before;

    x.values[0] = field_rep(f, x.m, 16 << 20, 1);
    for (uint64_t i = 1; i < 5; i++)
        x.values[i] = field_rep(f, x.m, BLOCK, i);
    ensure(x.m, x.values[1], C0);
    drop(x.m, x.values[1], C0); /* tracked */
    before = version(x.m);
    spec_fault(f, TN_SIM_PINNED_ALLOC, 1, 0, TN_ERR_HOST_MEMORY, 2);
    assert_null_text(tn_test_workers_run(5, pinned_or_not, &x));
    assert_true(spec_repair(f) >= 1);
    assert_locations(x.m, P, C0); /* not N */
    assert_int_equal(version(x.m), before + 4 * 50 * 4);
    field_conserved(f, x.m);
}

/* ---- F-C17: a kernel reads pinned memory directly ---------------------------------------------------- */

static void f_c17_kernel_reads_pinned_memory(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_stream s = spec_stream(f, 0);
    tn_handle v = field_rep_at(f, m, N, BLOCK, 1);
    tn_handle w = field_rep(f, m, BLOCK, 2);
    const void *data = NULL;
    tn_lease lease = {NULL, 0};
    uint64_t before;

    assert_status(tn_manager_acquire(m, &v, 1, N, s, &lease), TN_ERR_VALUE);
    lease = acquire(m, v, N, NULL);
    assert_ok(tn_lease_lookup(&lease, v, &data));
    field_read(f, s, tt_field_base(data, 0), BLOCK, 20);
    for (uint64_t t = 1; t < 20; t += 18) {
        field_until(f, t);
        assert_in_use(tn_manager_drop(m, v, N, NULL), 1, 0, 0);
    }
    field_until(f, 20); /* what the stream read was there until now: else a violation */
    before = version(m);
    release(&lease);
    drop(m, v, N);
    assert_int_equal(version(m), before + 2);
    ensure(m, w, N);
    assert_true(field_exact(f, m, w, N, 2));
    field_conserved(f, m);
}

/* ---- F-B04: keys are shared, workspace never ----------------------------------------------------------- */

#define SCRATCH UINT64_C(67584)

struct evaluators {
    struct spec *f;
    tn_manager *m;
    tn_handle key;
    tn_stream streams[9];
    pthread_barrier_t inside, leave;
    char *scratch[8];
    const void *addresses[8];
    tn_reservation reservations[8];
};

static const char *evaluate(int index, void *arg) {
    struct evaluators *x = arg;
    const void *data = NULL;
    void *scratch = NULL;
    tn_lease lease;

    TN_WORKER_STATUS(tn_manager_acquire(x->m, &x->key, 1, C0, x->streams[index], &lease), TN_OK);
    TN_WORKER_STATUS(tn_lease_lookup(&lease, x->key, &data), TN_OK);
    x->addresses[index] = tt_field_base(data, 0);
    TN_WORKER_STATUS(tn_manager_reserve(x->m, C0, SCRATCH, "workspace", &x->reservations[index]),
                     TN_OK);
    TN_WORKER_STATUS(tn_memory_alloc(x->f->driver, C0, SCRATCH, &scratch), TN_OK);
    x->scratch[index] = scratch;
    memset(scratch, index, SCRATCH);
    pthread_barrier_wait(&x->inside);
    pthread_barrier_wait(&x->leave);
    for (uint64_t i = 0; i < SCRATCH; i++)
        TN_WORKER_CHECK(x->scratch[index][i] == (char)index);
    TN_WORKER_STATUS(tn_memory_free(x->f->driver, C0, scratch, SCRATCH), TN_OK);
    TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
    return NULL;
}

static const char *look_at_evaluators(struct evaluators *x) {
    tn_location_info row = {.size = sizeof(row)};
    tn_snapshot *s = NULL;
    tn_reservation r;
    tn_lease lease;
    size_t one = 1;

    TN_WORKER_STATUS(tn_snapshot_take(x->m, &s), TN_OK);
    TN_WORKER_STATUS(tn_snapshot_locations(s, &row, &one), TN_OK);
    tn_snapshot_drop(s);
    TN_WORKER_CHECK(row.used_bytes == KEY && row.reserved_bytes == 8 * SCRATCH);
    TN_WORKER_CHECK(row.remaining_bytes == 0 && row.reservation_count == 8);
    TN_WORKER_CHECK(row.use_count == 8);
    for (int i = 0; i < 8; i++) {
        TN_WORKER_CHECK(x->addresses[i] == x->addresses[0]);
        for (int j = 0; j < i; j++)
            TN_WORKER_CHECK(x->scratch[i] + SCRATCH <= x->scratch[j] ||
                            x->scratch[j] + SCRATCH <= x->scratch[i]);
    }
    TN_WORKER_STATUS(tn_manager_acquire(x->m, &x->key, 1, C0, x->streams[8], &lease), TN_OK);
    TN_WORKER_STATUS(tn_manager_reserve(x->m, C0, SCRATCH, "workspace", &r), TN_ERR_BUDGET);
    TN_WORKER_CHECK(tn_location_equal(tn_last_error()->at, C0));
    TN_WORKER_CHECK(tn_last_error()->budget_bytes == 675840 && tn_last_error()->used_bytes == KEY);
    TN_WORKER_CHECK(tn_last_error()->reserved_bytes == 540672);
    TN_WORKER_CHECK(tn_last_error()->requested_bytes == SCRATCH);
    TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
    return NULL;
}

static const char *evaluate_or_look(int index, void *arg) {
    struct evaluators *x = arg;
    const char *text;

    if (index < 8)
        return evaluate(index, x);
    pthread_barrier_wait(&x->inside);
    text = look_at_evaluators(x);
    pthread_barrier_wait(&x->leave);
    return text;
}

static void f_b04_keys_are_shared_workspace_never(void **state) {
    struct spec *f = *state;
    struct evaluators x = {.f = f, .m = MANAGER(f, {C0, 675840})};

    x.key = field_adopt(f, x.m, C0, TN_REPLICABLE, KEY, 1);
    for (int i = 0; i < 9; i++)
        x.streams[i] = spec_stream(f, 0);
    pthread_barrier_init(&x.inside, NULL, 9);
    pthread_barrier_init(&x.leave, NULL, 9);
    assert_null_text(tn_test_workers_run(9, evaluate_or_look, &x));
    pthread_barrier_destroy(&x.inside);
    pthread_barrier_destroy(&x.leave);
    release_reservation(&x.reservations[3]);
    assert_int_equal(loc(x.m, C0).reservation_count, 7);
    assert_int_equal(reserved(x.m, C0), 473088);
    for (int i = 0; i < 8; i++)
        release_reservation(&x.reservations[i]);
    field_conserved(f, x.m);
}

static const struct CMUnitTest tests[] = {
    FIELD_BOTH(f_a03_workspace_limits_concurrency),
    FIELD_BOTH(f_d13_value_larger_than_its_budget),
    FIELD_BOTH(f_d19_no_spurious_refusal),
    FIELD_BOTH(f_d25_pinned_tier_runs_out),
    FIELD_BOTH(f_d25_no_pinned_memory_at_all),
    FIELD_BOTH(f_c17_kernel_reads_pinned_memory),
    FIELD_BOTH(f_b04_keys_are_shared_workspace_never),
};

TN_TEST_MAIN("field.crowd", tests)
