/* SPDX-License-Identifier: MIT */
/* Plans beside other threads: case MC189 (M256), and what a plan in flight is to others. */
#include "spec_b_common.h"

#include "spec_plan_common.h"

#include <sched.h>
#include <time.h>

/* ---- MC189: a plan that was admitted is not disturbed ----------------------------------------- */

enum { DISTURBERS = 3, RUN_MS = 400 };

struct chase {
    tn_manager *m;
    tn_handle rep; /* wanders; at one place at least */
    tn_handle exc;
    tn_handle src; /* has a source, which is a callback */
    atomic_bool stop;
    atomic_uint done, infeasible, stale, refused; /* plans */
    atomic_uint entered, kept_out;                /* scopes */
    atomic_uint disturbed;
    tn_plan *plan;
};

static uint64_t now_ms(void) {
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static const char *run_plan(struct chase *x, const tn_action *actions, bool at_version) {
    tn_run_options options = TN_RUN_OPTIONS_INIT;
    tn_status status;

    if (at_version && tn_manager_state_version(x->m, &options.expected_version) != TN_OK)
        options.expected_version = TN_VERSION_ANY; /* during a callback (M189) */
    status = tn_manager_execute_actions(x->m, "three", actions, 3, &options, NULL);
    if (status == TN_ERR_PLAN_EXEC)
        return tn_test_text("plan broken at %u by %s: %s", (unsigned)tn_last_error()->failed_index,
                            tn_status_name((tn_status)tn_last_error()->cause_status),
                            tn_last_error()->message);
    TN_WORKER_CHECK(status == TN_OK || status == TN_ERR_PLAN || status == TN_ERR_STALE ||
                    status == TN_ERR_REENTRANCY);
    if (status == TN_ERR_PLAN) { /* and it says of which action, and why */
        const tn_error *e = tn_last_error();

        TN_WORKER_CHECK(e->phase == TN_PHASE_EXECUTE && e->failed_index < 3);
        TN_WORKER_CHECK(e->action_kind == actions[e->failed_index].kind);
        TN_WORKER_CHECK(e->reason != TN_REASON_NONE && e->cause_status != TN_OK);
        TN_WORKER_CHECK(e->verdict != TN_VERDICT_FITS_NOW);
    }
    atomic_fetch_add(status == TN_OK          ? &x->done
                     : status == TN_ERR_PLAN  ? &x->infeasible
                     : status == TN_ERR_STALE ? &x->stale
                                              : &x->refused,
                     1);
    return NULL;
}

/* Entry promises the same, for reservations too; an exit is judged as it comes (M206). */
static const char *run_scope(struct chase *x) {
    tn_scope *scope = NULL;
    tn_status status;

    TN_WORKER_STATUS(tn_scope_create(x->m, x->plan, NULL, &scope), TN_OK);
    status = tn_scope_enter(scope);
    if (status == TN_ERR_PLAN_EXEC)
        return tn_test_text("entry broken by %s: %s",
                            tn_status_name((tn_status)tn_last_error()->cause_status),
                            tn_last_error()->message);
    TN_WORKER_CHECK(status == TN_OK || status == TN_ERR_PLAN || status == TN_ERR_REENTRANCY);
    atomic_fetch_add(status == TN_OK ? &x->entered : &x->kept_out, 1);
    if (status == TN_OK) {
        status = tn_scope_close(scope);
        TN_WORKER_CHECK(status == TN_OK || (status == TN_ERR_PLAN_EXEC &&
                                            tn_last_error()->cause_status == TN_ERR_IN_USE));
    }
    TN_WORKER_STATUS(tn_scope_destroy(scope), TN_OK);
    return NULL;
}

static const char *plan_on(struct chase *x) {
    const tn_action plans[4][3] = {
        {ENSURE(x->rep, N), DROP(x->rep, P), ENSURE(x->rep, C0)},
        {ENSURE(x->rep, P), DROP(x->rep, N), DROP(x->rep, C0)},
        {MOVE(x->exc, N), MOVE(x->exc, C0), MOVE(x->exc, P)},
        {ENSURE(x->src, P), MOVE(x->src, N), DROP(x->src, N)},
    };
    uint64_t end = now_ms() + RUN_MS;
    const char *text = NULL;

    for (unsigned i = 0; text == NULL && now_ms() < end && !tn_test_workers_failed(); i++)
        text = i % 7 == 6 ? run_scope(x) : run_plan(x, plans[i % 4], i % 5 == 4);
    atomic_store(&x->stop, true);
    return text;
}

/* One of these is the status, or the source's guard is up. */
static bool among(tn_status status, tn_status a, tn_status b, tn_status c) {
    return status == a || status == b || status == c || status == TN_OK ||
           status == TN_ERR_REENTRANCY;
}

static const char *adopt_and_end(struct chase *x) {
    tn_handle h = {0, 0, NULL};
    tn_status status = spec_b_adopt(x->m, &h);

    TN_WORKER_CHECK(among(status, TN_ERR_BUDGET, TN_OK, TN_OK));
    while (status == TN_OK && (status = tn_manager_discard(x->m, h, NULL)) == TN_ERR_REENTRANCY) {
        status = TN_OK;
        sched_yield();
    }
    TN_WORKER_CHECK(among(status, TN_ERR_BUDGET, TN_OK, TN_OK));
    return NULL;
}

static const char *drop_and_ensure(struct chase *x, tn_location at) {
    tn_status status = tn_manager_drop(x->m, x->rep, at, NULL);

    TN_WORKER_CHECK(among(status, TN_ERR_OWNERSHIP, TN_ERR_IN_USE, TN_OK));
    status = spec_b_ensure(x->m, x->rep, at);
    TN_WORKER_CHECK(among(status, TN_ERR_BUDGET, TN_OK, TN_OK));
    status = tn_manager_drop(x->m, x->src, at, NULL);
    TN_WORKER_CHECK(among(status, TN_ERR_IN_USE, TN_OK, TN_OK));
    return NULL;
}

/* What was taken is given back, as soon as no callback is running. */
#define GIVE_BACK(call)                                                                            \
    do {                                                                                           \
        tn_status back_;                                                                           \
        while ((back_ = (call)) == TN_ERR_REENTRANCY)                                              \
            sched_yield();                                                                         \
        TN_WORKER_STATUS(back_, TN_OK);                                                            \
    } while (0)

static const char *take_and_release(struct chase *x, tn_location at) {
    tn_handle pair[2] = {x->rep, x->exc};
    tn_reservation r = {NULL, 0};
    tn_lease lease = {NULL, 0};
    tn_hold held = {NULL, 0};
    tn_status status = tn_manager_reserve(x->m, at, 32, "in the way", &r);

    TN_WORKER_CHECK(among(status, TN_ERR_BUDGET, TN_OK, TN_OK));
    for (int i = 0; i < 20; i++) /* long enough to be met */
        sched_yield();
    if (status == TN_OK)
        GIVE_BACK(tn_reservation_release(&r));
    if (at.kind == TN_LOCATION_CUDA)
        return NULL;
    status = tn_manager_acquire(x->m, pair, 2, at, NULL, &lease);
    TN_WORKER_CHECK(among(status, TN_ERR_UNAVAILABLE, TN_OK, TN_OK));
    sched_yield();
    if (status == TN_OK)
        GIVE_BACK(tn_lease_release(&lease, 0));
    status = tn_manager_hold(x->m, pair, 1, at, &held);
    TN_WORKER_CHECK(among(status, TN_ERR_UNAVAILABLE, TN_OK, TN_OK));
    if (status == TN_OK)
        GIVE_BACK(tn_hold_release(&held));
    return NULL;
}

static const char *disturb(struct chase *x, int index) {
    const tn_location at[3] = {P, N, C0};
    const char *text = NULL;

    for (unsigned i = 0; text == NULL && !atomic_load(&x->stop) && !tn_test_workers_failed(); i++) {
        text = index == 1   ? adopt_and_end(x)
               : index == 2 ? drop_and_ensure(x, at[i % 2])
                            : take_and_release(x, at[i % 3]);
        atomic_fetch_add(&x->disturbed, 1);
        if (i % 3 == 0)
            sched_yield();
    }
    return text;
}

static const char *chase_worker(int index, void *arg) {
    struct chase *x = arg;

    return index == 0 ? plan_on(x) : disturb(x, index);
}

static void mc189_an_admitted_plan_is_not_disturbed(void **state) {
    static struct chase x;
    const tn_budget budgets[] = {{P, 96}, {N, 64}, {C0, 32}};
    struct spec *f = *state;

    memset(&x, 0, sizeof(x));
    x.m = spec_b_manager(f, budgets, 3);
    x.rep = adopt_rep(f, x.m, P);
    x.exc = adopt_exc(f, x.m, P);
    x.src = register_src(x.m, spec_source(f));
    x.plan = PLAN(RECLAIM(DROP(x.src, P)), RESERVE({P, 0, "p"}, {N, 16, "n"}),
                  ENTER(ENSURE(x.src, P)), EXIT(DROP(x.src, P)));
    assert_null_text(tn_test_workers_run(1 + DISTURBERS, chase_worker, &x));
    print_message("%u plans done, %u infeasible, %u stale, %u refused; %u disturbances\n", x.done,
                  x.infeasible, x.stale, x.refused, x.disturbed);
    print_message("%u scopes entered, %u not\n", x.entered, x.kept_out);
    tn_plan_destroy(x.plan);
    assert_true(x.done > 0 && x.infeasible > 0);
    assert_true(x.entered > 0);
    assert_true(x.disturbed > 0);
    assert_null_text(spec_b_check(x.m));
    assert_true(replicas(x.m, x.rep) >= 1);
    assert_int_equal(replicas(x.m, x.exc), 1);
    assert_int_equal(reserved(x.m, P) + reserved(x.m, N) + reserved(x.m, C0), 0);
    assert_int_equal(used(x.m, P) + used(x.m, N) + used(x.m, C0),
                     32 * (replicas(x.m, x.rep) + 1 + replicas(x.m, x.src)));
    assert_ok(RUN(x.m, ENSURE(x.rep, P), DROP(x.rep, N), DROP(x.rep, C0)).status);
}

/* ---- M256: in a serial manager nothing comes between ------------------------------------------ */

enum { SEQUENCES = 60, RUNNERS = 4 };

struct serial {
    tn_manager *m;
    tn_handle own[RUNNERS];
    tn_plan *plan; /* of all, at once (M166) */
};

static const char *run_many(int index, void *arg) {
    struct serial *x = arg;
    tn_handle h = x->own[index];
    const tn_action actions[4] = {ENSURE(h, N), ENSURE(h, C0), DROP(h, N), DROP(h, C0)};

    for (int i = 0; i < SEQUENCES && !tn_test_workers_failed(); i++) {
        tn_explanation *e = NULL;
        tn_explanation_info head = TN_EXPLANATION_INFO_INIT;

        TN_WORKER_STATUS(tn_manager_execute_actions(x->m, NULL, actions, 4, NULL, NULL), TN_OK);
        TN_WORKER_STATUS(tn_manager_explain(x->m, x->plan, TN_VERSION_ANY, &e), TN_OK);
        TN_WORKER_STATUS(tn_explanation_read(e, &head), TN_OK);
        TN_WORKER_CHECK(head.feasible && head.action_count == 4);
        tn_explanation_drop(e);
    }
    return NULL;
}

static void mc189_serial_sequences_are_indivisible(void **state) {
    static struct serial x;
    struct spec *f = *state;
    tn_report *trace;
    size_t count;

    memset(&x, 0, sizeof(x));
    x.m = spec_b_manager(f, NULL, 0);
    for (int i = 0; i < RUNNERS; i++)
        x.own[i] = adopt_rep(f, x.m, P);
    x.plan = PLAN(
        ENTER(ENSURE(x.own[0], N), ENSURE(x.own[1], N), DROP(x.own[0], N), ENSURE(x.own[2], C1)));
    assert_null_text(tn_test_workers_run(RUNNERS, run_many, &x));
    tn_plan_destroy(x.plan);
    count = trace_count(x.m);
    assert_int_equal(count, RUNNERS * SEQUENCES * 4);
    trace = calloc(count, sizeof(*trace));
    assert_non_null(trace);
    trace[0].size = sizeof(*trace);
    assert_ok(tn_manager_trace(x.m, trace, &count));
    for (size_t i = 0; i < count && f->mode == TN_MODE_SERIAL; i++)
        assert_int_equal(trace[i].action.handle.index, trace[i / 4 * 4].action.handle.index);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(trace[i].no_op, 0);
    free(trace);
    for (int i = 0; i < RUNNERS; i++)
        assert_replicas(x.m, x.own[i], P);
    assert_int_equal(version(x.m), 1 + RUNNERS + 2 + RUNNERS * SEQUENCES * 4); /* M121, M257 */
}

/* ---- What a plan in flight is to others ------------------------------------------------------ */

struct flight {
    tn_manager *m;
    tn_plan *plan;
    struct spec_b_thread other;
    tn_error error;            /* of a reserve that did not fit */
    tn_explanation *explained; /* of a plan that would fit but for the one in flight */
    const char *text;
};

static const char *look(void *arg) {
    struct flight *x = arg;
    tn_reservation r = {NULL, 0};

    TN_WORKER_STATUS(tn_manager_reserve(x->m, C0, 32, "too much", &r), TN_ERR_BUDGET);
    x->error = *tn_last_error();
    TN_WORKER_STATUS(tn_manager_explain(x->m, x->plan, TN_VERSION_ANY, &x->explained), TN_OK);
    return NULL;
}

static tn_status look_from_elsewhere(void *context, const tn_load_request *request) {
    struct flight *x = context;

    (void)request;
    spec_b_start(&x->other, look, x);
    x->text = spec_b_join(&x->other);
    return TN_OK;
}

static void verdict_names_plans_in_flight(void **state) {
    static struct flight x;
    struct spec *f = *state;
    tt_source *s = spec_source(f);
    tn_explanation_info head = TN_EXPLANATION_INFO_INIT;
    tn_blocker blockers[4];
    size_t count = 4;
    tn_handle h;

    memset(&x, 0, sizeof(x));
    s->hook = look_from_elsewhere;
    s->hook_context = &x;
    x.m = MANAGER(f, {C0, 48});
    x.plan = PLAN(RESERVE({C0, 32, "later"}));
    h = register_src(x.m, s);
    assert_ok(RUN(x.m, ENSURE(h, C0)).status);
    assert_null_text(x.text);
    assert_int_equal(x.error.claimed_bytes, 32);
    assert_int_equal(x.error.used_bytes + x.error.reserved_bytes, 0);
    assert_int_equal(x.error.verdict, TN_VERDICT_BLOCKED);
    assert_int_equal(x.error.missing_bytes, 16);
    assert_int_equal(x.error.evictable_bytes, 0);
    assert_int_equal(x.error.blocker_count, 1);
    assert_int_equal(x.error.blockers[0].kind, TN_BLOCKER_PLAN);
    assert_int_equal(x.error.blockers[0].bytes, 32);
    assert_at(x.error.blockers[0].at, C0);
    assert_ok(tn_explanation_read(x.explained, &head));
    assert_int_equal(head.feasible, 1); /* of used and reserved bytes (M170), but not at once */
    assert_int_equal(head.verdict, TN_VERDICT_BLOCKED);
    assert_ok(tn_explanation_blockers(x.explained, blockers, &count));
    assert_int_equal(count, 1);
    assert_int_equal(blockers[0].kind, TN_BLOCKER_PLAN);
    assert_int_equal(blockers[0].bytes, 32);
    tn_explanation_drop(x.explained);
    tn_plan_destroy(x.plan);
}

static const struct CMUnitTest tests[] = {
    SPEC_THREE_WAYS(mc189_an_admitted_plan_is_not_disturbed),
    SPEC_THREE_WAYS(mc189_serial_sequences_are_indivisible),
    SPEC_CONCURRENT(verdict_names_plans_in_flight),
};

TN_TEST_MAIN("spec.plan_threads", tests)
