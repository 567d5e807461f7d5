/* SPDX-License-Identifier: MIT */
/*
 * Scopes and several threads: of racing entries one wins, racing closes take effect once, and
 * questions are answered meanwhile (M216, M256, M259; case MC153). Who waits for whom is in
 * spec_scope_waits.c.
 */
#include "spec_scope_common.h"

/* ---- MC153 ---------------------------------------------------------------------------------- */

enum { THREADS = 8 };

struct crowd {
    tn_scope *s;
    tn_status entered[THREADS];
    tn_status closed[THREADS];
};

static const char *enter_worker(int index, void *arg) {
    struct crowd *x = arg;

    x->entered[index] = tn_scope_enter(x->s);
    return NULL;
}

static const char *close_worker(int index, void *arg) {
    struct crowd *x = arg;

    x->closed[index] = tn_scope_close(x->s);
    return NULL;
}

static int count_of(const tn_status *all, tn_status wanted) {
    int count = 0;

    for (int i = 0; i < THREADS; i++)
        count += all[i] == wanted;
    return count;
}

static void mc153_eight_threads_one_scope(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle src = register_src(m, spec_source(f));
    struct crowd x;

    for (int round = 0; round < 20; round++) {
        uint64_t before = version(m);

        x.s = SCOPE(m, "crowd", RESERVE({P, 8, "r"}), ENTER(ENSURE(src, P)), LEAVE(DROP(src, P)));
        assert_null_text(tn_test_workers_run(THREADS, enter_worker, &x));
        assert_int_equal(count_of(x.entered, TN_OK), 1);
        assert_int_equal(count_of(x.entered, TN_ERR_MISUSE), 7);
        assert_true(tn_scope_active(x.s));
        assert_int_equal(version(m) - before, 2);
        assert_null_text(tn_test_workers_run(THREADS, close_worker, &x));
        assert_int_equal(count_of(x.closed, TN_OK), THREADS);
        assert_int_equal(version(m) - before, 4);
        assert_transitions(scope_report(x.s), 0, 1, 1, ENSURE(src, P), DROP(src, P));
        assert_int_equal(trace_count(m), 2 * (size_t)(round + 1));
        assert_int_equal(reserved(m, P), 0);
        destroy_scope(x.s);
    }
}

/* One closer gets the failure of the exit, the others find the scope closed. */
static void mc153_racing_closes_that_fail(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle src = register_src(m, spec_source(f));
    struct crowd x;

    for (int round = 0; round < 10; round++) {
        tn_hold held;

        x.s = SCOPE(m, "crowd", RESERVE({P, 8, "r"}), ENTER(ENSURE(src, P)), LEAVE(DROP(src, P)));
        assert_ok(tn_scope_enter(x.s));
        held = hold(m, src, P);
        assert_null_text(tn_test_workers_run(THREADS, close_worker, &x));
        assert_int_equal(count_of(x.closed, TN_ERR_PLAN_EXEC), 1);
        assert_int_equal(count_of(x.closed, TN_OK), THREADS - 1);
        assert_non_null(scope_exit_error(x.s));
        assert_int_equal(info(m).reservation_count, 0);
        release_hold(&held);
        destroy_scope(x.s);
    }
}

/* Entries against closes: a close before the entry is a misuse, one after it closes. */
static const char *enter_or_close(int index, void *arg) {
    struct crowd *x = arg;

    if (index % 2 == 0)
        x->entered[index] = tn_scope_enter(x->s);
    else
        x->closed[index] = tn_scope_close(x->s);
    return NULL;
}

static void mc153_entries_against_closes(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle src = register_src(m, spec_source(f));

    for (int round = 0; round < 40; round++) {
        struct crowd x = {NULL, {0}, {0}};
        int won = 0;
        bool active;

        x.s = SCOPE(m, "mixed", RESERVE({P, 8, "r"}), ENTER(ENSURE(src, P)), LEAVE(DROP(src, P)));
        assert_null_text(tn_test_workers_run(4, enter_or_close, &x));
        for (int i = 0; i < 4; i += 2) {
            won += x.entered[i] == TN_OK;
            assert_true(x.entered[i] == TN_OK || x.entered[i] == TN_ERR_MISUSE);
            /* in SERIAL the guard is up during the entry's own callback (G25) */
            assert_true(x.closed[i + 1] == TN_OK || x.closed[i + 1] == TN_ERR_MISUSE ||
                        (f->mode == TN_MODE_SERIAL && x.closed[i + 1] == TN_ERR_REENTRANCY));
        }
        assert_int_equal(won, 1);
        active = x.closed[1] != TN_OK && x.closed[3] != TN_OK;
        assert_int_equal(tn_scope_active(x.s), active);
        assert_int_equal(reserved(m, P), active ? 8 : 0);
        assert_ok(tn_scope_close(x.s));
        assert_int_equal(trace_count(m), 2 * (size_t)(round + 1));
        destroy_scope(x.s);
    }
}

/* Whoever asks meanwhile gets an answer that was true at some moment. */
static const char *ask(struct crowd *x, atomic_int *running) {
    while (atomic_load(running) > 0 && !tn_test_workers_failed()) {
        const tn_plan_report *report = NULL;
        const tn_error *error = NULL;
        tn_plan_report_info head = TN_PLAN_REPORT_INFO_INIT;
        tn_reservation r[2] = {{NULL, 0}, {NULL, 0}};
        size_t count = 2;

        (void)tn_scope_active(x->s);
        TN_WORKER_STATUS(tn_scope_reservations(x->s, r, &count), TN_OK);
        TN_WORKER_CHECK(count == 0 || (count == 2 && r[0].record != NULL && r[1].record != NULL));
        TN_WORKER_STATUS(tn_scope_partial_report(x->s, &report), TN_OK);
        TN_WORKER_CHECK(report == NULL);
        TN_WORKER_STATUS(tn_scope_exit_error(x->s, &error), TN_OK);
        TN_WORKER_CHECK(error == NULL);
        TN_WORKER_STATUS(tn_scope_report(x->s, &report), TN_OK);
        if (report == NULL)
            continue;
        TN_WORKER_STATUS(tn_plan_report_read(report, &head), TN_OK);
        TN_WORKER_CHECK(head.complete == 1 && head.transition_count == 2);
    }
    return NULL;
}

struct asked {
    struct crowd crowd;
    atomic_int running;
};

static const char *ask_worker(int index, void *arg) {
    struct asked *x = arg;
    const char *text = NULL;

    if (index > 0)
        return ask(&x->crowd, &x->running);
    if (tn_scope_enter(x->crowd.s) != TN_OK || tn_scope_close(x->crowd.s) != TN_OK)
        text = "the scope failed";
    atomic_store(&x->running, 0);
    return text;
}

static void questions_during_entry_and_close(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);

    for (int round = 0; round < 100; round++) {
        struct asked x = {.crowd = {NULL, {0}, {0}}};

        atomic_store(&x.running, 1);
        x.crowd.s = SCOPE(m, "asked", RESERVE({P, 8, "a"}, {N, 8, "b"}), ENTER(ENSURE(v, N)),
                          LEAVE(DROP(v, N)));
        assert_null_text(tn_test_workers_run(3, ask_worker, &x));
        destroy_scope(x.crowd.s);
    }
}

/* ---- Each thread its own scopes ------------------------------------------------------------- */

enum { BUSY_THREADS = 4, BUSY_ROUNDS = 60 };

struct busy {
    tn_manager *m;
    tn_handle shared;            /* at P; every scope copies it to N */
    tn_handle own[BUSY_THREADS]; /* at P; its thread's scopes move it to C0 and back */
    tn_plan *plans[BUSY_THREADS];
    atomic_int running;
};

static const char *watch_busy(struct busy *x) {
    while (atomic_load(&x->running) > 0 && !tn_test_workers_failed()) {
        const char *text = spec_b_check(x->m);

        if (text != NULL)
            return text;
    }
    return NULL;
}

static const char *use_busy(struct busy *x, int i) {
    for (int round = 0; round < BUSY_ROUNDS && !tn_test_workers_failed(); round++) {
        const tn_plan_report *report = NULL;
        tn_plan_report_info head = TN_PLAN_REPORT_INFO_INIT;
        tn_scope *s = NULL;

        TN_WORKER_STATUS(tn_scope_create(x->m, x->plans[i], NULL, &s), TN_OK);
        TN_WORKER_STATUS(tn_scope_enter(s), TN_OK);
        TN_WORKER_STATUS(tn_scope_close(s), TN_OK);
        TN_WORKER_STATUS(tn_scope_report(s, &report), TN_OK);
        TN_WORKER_CHECK(report != NULL);
        TN_WORKER_STATUS(tn_plan_report_read(report, &head), TN_OK);
        TN_WORKER_CHECK(head.complete == 1 && head.enter_count == 2 && head.exit_count == 1);
        TN_WORKER_STATUS(tn_scope_destroy(s), TN_OK);
    }
    return NULL;
}

static const char *busy_worker(int index, void *arg) {
    struct busy *x = arg;
    const char *text;

    if (index == 0)
        return watch_busy(x);
    text = use_busy(x, index - 1);
    atomic_fetch_sub(&x->running, 1);
    return text;
}

static void scopes_of_several_threads_all_run(void **state) {
    struct spec *f = *state;
    const tn_budget budgets[] = {{P, 512}, {N, 64}, {C0, 256}};
    struct busy x = {.m = spec_b_manager(f, budgets, 3)};
    uint64_t before;

    x.shared = adopt_rep(f, x.m, P);
    ensure(x.m, x.shared, N); /* so that every scope's ensure finds it */
    for (int i = 0; i < BUSY_THREADS; i++) {
        x.own[i] = adopt_exc(f, x.m, P);
        x.plans[i] =
            PLAN("busy", RESERVE({P, 8, "work"}), ENTER(ENSURE(x.shared, N), MOVE(x.own[i], C0, P)),
                 LEAVE(MOVE(x.own[i], P, C0)));
    }
    before = version(x.m);
    atomic_store(&x.running, BUSY_THREADS);
    assert_null_text(tn_test_workers_run(BUSY_THREADS + 1, busy_worker, &x));
    for (int i = 0; i < BUSY_THREADS; i++) {
        assert_replicas(x.m, x.own[i], P);
        tn_plan_destroy(x.plans[i]);
    }
    assert_int_equal(reserved(x.m, P), 0);
    assert_int_equal(used(x.m, C0), 0);
    /* a reservation and its release, two moves with their removals */
    assert_int_equal(version(x.m) - before, 6 * BUSY_THREADS * BUSY_ROUNDS);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(mc153_eight_threads_one_scope),
    SPEC_BOTH(mc153_racing_closes_that_fail),
    SPEC_BOTH(mc153_entries_against_closes),
    SPEC_BOTH(questions_during_entry_and_close),
    SPEC_THREE_WAYS(scopes_of_several_threads_all_run),
};

TN_TEST_MAIN("spec.scope_threads", tests)
