/* SPDX-License-Identifier: MIT */
/*
 * Threads with scopes of random plans over few values and tight budgets, beside others that adopt,
 * reserve, lend and hold (M256, M258, B1, B2, M204, M208).
 *
 * No source or copy fails here, so an entry either runs as a whole or not at all: a feasible plan
 * never fails half-way for bytes, ownership or protection. An exit may fail: its actions are judged
 * as they come. Afterwards nothing is reserved, claimed, taken or lost.
 */
#include "spec_scope_common.h"

#include <sched.h>

#include "manager/manager_internal.h"
#include "transition/transition_priv.h"

enum { VALUES = 6, PLACES = 3, WORKERS = 4, ROUNDS = 300, STEPS = 3 };

struct pressure {
    tn_manager *m;
    uint32_t mode;
    tn_handle h[VALUES];
    atomic_int running;
    atomic_uint entered, refused, broken_exits;
};

static uint64_t next(uint64_t *state, uint64_t below) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*state >> 33) % below;
}

static tn_location place(uint64_t *state) {
    switch (next(state, PLACES)) {
    case 0:
        return P;
    case 1:
        return N;
    default:
        return C0;
    }
}

static tn_action action(struct pressure *x, uint64_t *state) {
    tn_handle h = x->h[next(state, VALUES)];

    switch (next(state, 3)) {
    case 0:
        return ENSURE(h, place(state));
    case 1:
        return MOVE(h, place(state), NOWHERE);
    default:
        return DROP(h, place(state));
    }
}

static tn_status make(struct pressure *x, uint64_t *state, tn_scope **out) {
    tn_action list[3][STEPS];
    tn_reservation_spec reservations[2] = {{place(state), next(state, 3) * 16, "one"},
                                           {place(state), next(state, 3) * 16, "two"}};
    tn_plan_spec spec = TN_PLAN_SPEC_INIT;
    tn_plan *plan = NULL;
    tn_status status;

    for (int part = 0; part < 3; part++)
        for (int i = 0; i < STEPS; i++)
            list[part][i] = action(x, state);
    spec.name = "random";
    spec.reclaim = list[0];
    spec.reclaim_count = next(state, 3);
    spec.reservations = reservations;
    spec.reservation_count = next(state, 3);
    spec.enter = list[1];
    spec.enter_count = 1 + next(state, STEPS);
    spec.exit = list[2];
    spec.exit_count = next(state, 3);
    status = tn_plan_create(&spec, &plan);
    if (status == TN_OK)
        status = tn_scope_create(x->m, plan, NULL, out);
    tn_plan_destroy(plan);
    return status;
}

/* In SERIAL a callback that runs refuses whoever comes meanwhile (M189). */
static bool guarded(const struct pressure *x, tn_status status) {
    return x->mode == TN_MODE_SERIAL && status == TN_ERR_REENTRANCY;
}

static const char *body(struct pressure *x, uint64_t *state) {
    tn_handle h = x->h[next(state, VALUES)];
    tn_hold held = {NULL, 0};
    tn_status status = tn_manager_hold(x->m, &h, 1, place(state), &held);

    if (status == TN_OK)
        while ((status = tn_hold_release(&held)) != TN_OK)
            TN_WORKER_CHECK(guarded(x, status));
    TN_WORKER_CHECK(status == TN_OK || status == TN_ERR_UNAVAILABLE || guarded(x, status));
    return NULL;
}

static const char *leave(struct pressure *x, tn_scope *s) {
    const tn_plan_report *report = NULL;
    const tn_plan_report *partial = NULL;
    const tn_error *error = NULL;
    tn_status status;

    while (guarded(x, status = tn_scope_close(s)))
        TN_WORKER_CHECK(tn_scope_active(s));
    TN_WORKER_CHECK(status == TN_OK || status == TN_ERR_PLAN_EXEC);
    TN_WORKER_CHECK(!tn_scope_active(s));
    TN_WORKER_STATUS(tn_scope_report(s, &report), TN_OK);
    TN_WORKER_STATUS(tn_scope_partial_report(s, &partial), TN_OK);
    TN_WORKER_STATUS(tn_scope_exit_error(s, &error), TN_OK);
    TN_WORKER_CHECK((status == TN_OK) == (report != NULL));
    TN_WORKER_CHECK((status == TN_OK) == (partial == NULL && error == NULL));
    if (status == TN_OK)
        return NULL;
    atomic_fetch_add(&x->broken_exits, 1);
    TN_WORKER_CHECK(error->phase == TN_PHASE_EXIT);
    TN_WORKER_CHECK(
        error->cause_status == TN_ERR_IN_USE || error->cause_status == TN_ERR_OWNERSHIP ||
        error->cause_status == TN_ERR_BUDGET || error->cause_status == TN_ERR_UNAVAILABLE);
    return NULL;
}

/* Enter a random scope. One that a callback has kept out is over and was none: then another. */
static const char *enter(struct pressure *x, uint64_t *state, tn_scope **out, tn_status *status) {
    for (;;) {
        TN_WORKER_STATUS(make(x, state, out), TN_OK);
        *status = tn_scope_enter(*out);
        if (!guarded(x, *status))
            return NULL;
        TN_WORKER_STATUS(tn_scope_destroy(*out), TN_OK);
        sched_yield();
    }
}

static const char *one_scope(struct pressure *x, uint64_t *state) {
    tn_scope *s = NULL;
    tn_status status;
    const char *text = enter(x, state, &s, &status);

    if (text != NULL)
        return text;
    if (status == TN_OK) {
        atomic_fetch_add(&x->entered, 1);
        text = body(x, state);
        if (text == NULL)
            text = leave(x, s);
    } else if (status == TN_ERR_PLAN) {
        atomic_fetch_add(&x->refused, 1);
    } else {
        text = tn_test_text("an entry ended in %s: %s", tn_status_name(status),
                            tn_last_error()->message);
    }
    if (text == NULL && tn_scope_destroy(s) != TN_OK)
        text = "a closed scope cannot be destroyed";
    return text;
}

/* Adopt into what is free, and go again. */
static const char *adopt_and_reserve(struct pressure *x, uint64_t *state) {
    tn_reservation r = {NULL, 0};
    tn_handle h = {0, 0, NULL};
    tn_status status = spec_b_adopt(x->m, &h);

    if (status == TN_OK)
        while ((status = tn_manager_discard(x->m, h, NULL)) != TN_OK)
            TN_WORKER_CHECK(guarded(x, status));
    TN_WORKER_CHECK(status == TN_OK || status == TN_ERR_BUDGET || guarded(x, status));
    status = tn_manager_reserve(x->m, place(state), next(state, 4) * 16, "beside", &r);
    if (status == TN_OK)
        while ((status = tn_reservation_release(&r)) != TN_OK)
            TN_WORKER_CHECK(guarded(x, status));
    TN_WORKER_CHECK(status == TN_OK || status == TN_ERR_BUDGET || guarded(x, status));
    return NULL;
}

static const char *watch(struct pressure *x) {
    while (atomic_load(&x->running) > 0 && !tn_test_workers_failed()) {
        tn_snapshot *s = NULL;
        tn_status status = tn_snapshot_take(x->m, &s);
        const char *text;

        if (guarded(x, status))
            continue;
        TN_WORKER_STATUS(status, TN_OK);
        text = spec_b_check_snapshot(s);
        tn_snapshot_drop(s);
        if (text != NULL)
            return text;
    }
    return NULL;
}

static const char *worker(int index, void *arg) {
    struct pressure *x = arg;
    uint64_t state = tn_test_seed() * 31 + (uint64_t)index;
    const char *text = NULL;

    if (index == WORKERS)
        return watch(x);
    for (int i = 0; i < ROUNDS && text == NULL && !tn_test_workers_failed(); i++)
        text = index == 0 ? adopt_and_reserve(x, &state) : one_scope(x, &state);
    atomic_fetch_sub(&x->running, 1);
    return text;
}

/* Nothing is reserved, claimed or taken; no value that must be preserved is lost. */
static void assert_quiet(struct pressure *x) {
    assert_null(x->m->trans->flow.waiting);
    assert_null(x->m->trans->flow.in_flight);
    assert_int_equal(info(x->m).reservation_count, 0);
    assert_int_equal(info(x->m).hold_count, 0);
    for (uint32_t i = 0; i < TN__LEDGER_COUNT; i++) {
        uint64_t total;
        uint64_t claimed;

        tn__ledger_read(&x->m->store->ledgers[i], &total, &claimed);
        assert_int_equal(claimed, 0);
    }
    for (int i = 0; i < VALUES; i++) {
        tn_value_info v = value(x->m, x->h[i]);

        assert_true(v.has_source || v.materialization_count > 0);
    }
    assert_null_text(spec_b_check(x->m));
}

/* So that others come in the middle of a plan. */
static void give_way(void *context, const void *data) {
    (void)context;
    (void)data;
    sched_yield();
}

static void random_scopes_beside_others(void **state) {
    struct spec *f = *state;
    const tn_budget budgets[] = {{P, 192}, {N, 128}, {C0, 128}};
    struct pressure x = {.m = spec_b_manager(f, budgets, 3), .mode = f->mode};

    for (int i = 0; i < VALUES; i++)
        x.h[i] = i % 3 == 0   ? register_src(x.m, spec_source(f))
                 : i % 3 == 1 ? adopt_rep(f, x.m, P)
                              : adopt_exc(f, x.m, N);
    tt_on_copy(give_way, NULL);
    atomic_store(&x.running, WORKERS);
    assert_null_text(tn_test_workers_run(WORKERS + 1, worker, &x));
    tt_on_copy(NULL, NULL);
    print_message("%u scopes, %u refused, %u exits failed\n", atomic_load(&x.entered),
                  atomic_load(&x.refused), atomic_load(&x.broken_exits));
    assert_true(atomic_load(&x.entered) > 50);
    assert_quiet(&x);
    for (int i = 0; i < VALUES; i++) /* and every value can go */
        discard(x.m, x.h[i]);
    assert_int_equal(used(x.m, P) + used(x.m, N) + used(x.m, C0), 0);
}

static const struct CMUnitTest tests[] = {SPEC_THREE_WAYS(random_scopes_beside_others)};

TN_TEST_MAIN("spec.scope_pressure", tests)
