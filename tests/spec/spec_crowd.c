/* SPDX-License-Identifier: MIT */
/*
 * Many threads, all operations, tight budgets: every snapshot is whole (M255, M51), and the state
 * version is the sum of what happened (M257; cases MC184, MC186).
 */
#include "spec_b_common.h"

#include <sched.h>

enum { WORKERS = 4, ROUNDS = 1000, SHARED = 5, PLACES = 4 };

struct crowd {
    tn_manager *m;
    tn_handle shared[SHARED];
    tn_stream streams[2 * WORKERS]; /* one per worker on each device */
    uint64_t counted[WORKERS];      /* increments of M118 that each worker caused */
    unsigned done[WORKERS];         /* operations that were not refused */
    atomic_int running;
};

/* One worker. */
struct member {
    struct crowd *x;
    int index;
    uint64_t random;
};

static uint32_t below(struct member *w, uint32_t n) {
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(w->random >> 33) % n;
}

static tn_location any_place(struct member *w) {
    uint32_t i = below(w, PLACES);

    return i == 0 ? P : i == 1 ? N : i == 2 ? C0 : C1;
}

static tn_handle any_value(struct member *w) { return w->x->shared[below(w, SHARED)]; }

static void count(struct member *w, uint64_t increments) {
    w->x->counted[w->index] += increments;
    w->x->done[w->index]++;
}

/* In a serial manager another thread's load refuses everything (M189): try again. */
#define AT_LAST(status, expr)                                                                      \
    while (((status) = (expr)) == TN_ERR_REENTRANCY)                                               \
    sched_yield()

/* ---- Operations ----------------------------------------------------------------------------- */

static const char *ensure_shared(struct member *w) {
    tn_report r = TN_REPORT_INIT;
    tn_status status;

    AT_LAST(status, tn_manager_ensure(w->x->m, any_value(w), any_place(w), NULL, &r));
    if (status == TN_ERR_BUDGET)
        return NULL;
    TN_WORKER_STATUS(status, TN_OK);
    count(w, r.no_op ? 0 : 1); /* all locations are tracked */
    return NULL;
}

static const char *drop_shared(struct member *w) {
    tn_report r = TN_REPORT_INIT;
    tn_status status;

    AT_LAST(status, tn_manager_drop(w->x->m, any_value(w), any_place(w), &r));
    if (status == TN_ERR_IN_USE)
        return NULL;
    TN_WORKER_STATUS(status, TN_OK);
    count(w, r.no_op ? 0 : 1);
    return NULL;
}

static const char *lease_shared(struct member *w) {
    const tn_handle set[] = {any_value(w), any_value(w)};
    tn_location at = any_place(w);
    bool device = at.kind == TN_LOCATION_CUDA;
    tn_stream stream = device ? w->x->streams[2 * w->index + (int)at.index] : NULL;
    const void *data = NULL;
    tn_status status;
    tn_lease lease;

    AT_LAST(status, tn_manager_acquire(w->x->m, set, 2, at, stream, &lease));
    if (status == TN_ERR_UNAVAILABLE)
        return NULL;
    TN_WORKER_STATUS(status, TN_OK);
    AT_LAST(status, tn_lease_lookup(&lease, set[0], &data));
    TN_WORKER_STATUS(status, TN_OK);
    TN_WORKER_CHECK(tt_check(data, 1));
    AT_LAST(status, tn_lease_release(&lease, below(w, 2) ? TN_RELEASE_WAIT : 0));
    TN_WORKER_STATUS(status, TN_OK);
    count(w, device ? 3 : 2); /* acquired, released, on a device completed by whoever sees it */
    return NULL;
}

static const char *hold_shared(struct member *w) {
    tn_handle h = any_value(w);
    tn_location at = any_place(w);
    tn_status status;
    tn_hold held;

    AT_LAST(status, tn_manager_hold(w->x->m, &h, 1, at, &held));
    if (status == TN_ERR_UNAVAILABLE)
        return NULL;
    TN_WORKER_STATUS(status, TN_OK);
    AT_LAST(status, tn_hold_release(&held));
    TN_WORKER_STATUS(status, TN_OK);
    count(w, 2);
    return NULL;
}

static const char *discard_own(struct member *w, tn_handle h) {
    tn_status status;

    AT_LAST(status, tn_manager_discard(w->x->m, h, NULL));
    TN_WORKER_STATUS(status, TN_OK);
    count(w, 2); /* removed, marked */
    return NULL;
}

static const char *move_own(struct member *w) {
    tn_handle h = {0, 0, NULL};
    tn_status status;

    AT_LAST(status, spec_b_adopt(w->x->m, &h));
    if (status == TN_ERR_BUDGET)
        return NULL;
    TN_WORKER_STATUS(status, TN_OK);
    count(w, 1);
    AT_LAST(status, tn_manager_move(w->x->m, h, below(w, 2) ? N : C1, NOWHERE, NULL, NULL));
    if (status != TN_ERR_BUDGET) {
        TN_WORKER_STATUS(status, TN_OK);
        count(w, 2); /* installed, removed */
    }
    return discard_own(w, h);
}

static const char *adopt_into_own(struct member *w) {
    tn_handle h = {0, 0, NULL};
    tn_payload v = {NULL, NULL};
    tn_reservation r;
    tn_status status;

    AT_LAST(status, tn_manager_reserve(w->x->m, P, 48, "own", &r));
    if (status == TN_ERR_BUDGET)
        return NULL;
    TN_WORKER_STATUS(status, TN_OK);
    v = tt_v(NULL, P);
    AT_LAST(status, tn_manager_adopt_reserved(w->x->m, v, P, TN_EXCLUSIVE, &r, &h));
    if (status != TN_OK)
        tt_free(v);
    TN_WORKER_STATUS(status, TN_OK); /* its bytes are there */
    AT_LAST(status, tn_reservation_release(&r));
    TN_WORKER_STATUS(status, TN_OK);
    count(w, 3);
    return discard_own(w, h);
}

static const char *work(struct member *w) {
    static const char *(*const ops[])(struct member *) = {
        ensure_shared, ensure_shared, ensure_shared, drop_shared, drop_shared,
        lease_shared,  lease_shared,  hold_shared,   move_own,    adopt_into_own};
    const char *text = NULL;

    for (int i = 0; i < ROUNDS && text == NULL && !tn_test_workers_failed(); i++)
        text = ops[below(w, sizeof ops / sizeof ops[0])](w);
    return text;
}

static const char *look(struct crowd *x) {
    uint64_t last = 0;

    while (atomic_load(&x->running) > 0) {
        tn_snapshot_info head = {.size = sizeof head};
        tn_snapshot *s = NULL;
        const char *text;
        tn_status status = tn_snapshot_take(x->m, &s);

        if (status == TN_ERR_REENTRANCY)
            continue;
        TN_WORKER_STATUS(status, TN_OK);
        text = spec_b_check_snapshot(s);
        status = tn_snapshot_read(s, &head);
        tn_snapshot_drop(s);
        if (text != NULL)
            return text;
        TN_WORKER_STATUS(status, TN_OK);
        TN_WORKER_CHECK(!head.exact || head.state_version >= last);
        last = head.exact ? head.state_version : last;
    }
    return NULL;
}

static const char *crowd_worker(int index, void *arg) {
    struct crowd *x = arg;
    struct member w = {x, index, tn_test_seed() + (uint64_t)index};
    const char *text;

    if (index == WORKERS)
        return look(x);
    text = work(&w);
    atomic_fetch_sub(&x->running, 1);
    return text;
}

static void mc184_every_effect_counts_once_and_every_snapshot_is_whole(void **state) {
    const tn_budget budgets[] = {{P, 6 * 32}, {N, 3 * 32}, {C0, 3 * 32}, {C1, 2 * 32}};
    struct spec *f = *state;
    uint64_t counted;
    struct crowd x;

    memset(&x, 0, sizeof x);
    x.m = spec_b_manager(f, budgets, PLACES);
    for (int i = 0; i < SHARED; i++)
        x.shared[i] = register_src(x.m, spec_source(f));
    for (uint32_t i = 0; i < 2 * WORKERS; i++)
        x.streams[i] = spec_stream(f, i % 2);
    atomic_store(&x.running, WORKERS);
    counted = version(x.m);
    assert_null_text(tn_test_workers_run(WORKERS + 1, crowd_worker, &x));
    for (int i = 0; i < WORKERS; i++) {
        assert_true(x.done[i] > 0);
        counted += x.counted[i];
    }
    for (int i = 0; i < 10000 && info(x.m).pending_lease_count != 0; i++)
        spec_b_sleep(1); /* the reaper thread, if any */
    assert_int_equal(version(x.m), counted);
    assert_int_equal(info(x.m).state_version, counted);
    assert_int_equal(info(x.m).lease_count, 0);
    assert_int_equal(info(x.m).hold_count, 0);
    assert_int_equal(info(x.m).reservation_count, 0);
    assert_null_text(spec_b_check(x.m));
    for (int i = 0; i < SHARED; i++)
        discard(x.m, x.shared[i]);
    assert_int_equal(used(x.m, P) + used(x.m, N) + used(x.m, C0) + used(x.m, C1), 0);
    assert_ok(tn_manager_close(x.m, 0));
}

static const struct CMUnitTest tests[] = {
    SPEC_THREE_WAYS(mc184_every_effect_counts_once_and_every_snapshot_is_whole),
};

TN_TEST_MAIN("spec.crowd", tests)
