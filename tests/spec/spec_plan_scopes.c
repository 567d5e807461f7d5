/* SPDX-License-Identifier: MIT */
/* What scopes share with explanations and sequences: the scopes of cases MC89, MC91, MC115, MC127,
 * MC131 and MC132 (M163, M182, M202, M206, M207). */
#include "spec_plan_common.h"

static tn_scope *make_scope(tn_manager *m, const tn_plan_spec *spec, uint64_t expected_version) {
    tn_run_options options = TN_RUN_OPTIONS_INIT;
    tn_plan *plan = spec_plan(spec);
    tn_scope *scope = NULL;

    options.expected_version = expected_version;
    assert_ok(tn_scope_create(m, plan, &options, &scope));
    assert_non_null(scope);
    tn_plan_destroy(plan); /* the scope keeps it */
    return scope;
}

static struct spec_run report_of(const tn_scope *scope) {
    const tn_plan_report *report = NULL;
    struct spec_run r;

    memset(&r, 0, sizeof(r));
    assert_ok(tn_scope_report(scope, &report));
    assert_non_null(report);
    spec_read_report(report, &r);
    assert_int_equal(r.head.complete, 1);
    return r;
}

static void assert_no_report(const tn_scope *scope) {
    const tn_plan_report *report = (const void *)scope;

    assert_ok(tn_scope_report(scope, &report));
    assert_null(report);
}

static void mc089_stale_entry(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = register_src(m, spec_source(f));
    uint64_t w = version(m);
    tn_scope *scope = make_scope(m, &PLAN_SPEC(ENTER(ENSURE(h, P))), w);

    reserve(m, P, 0, "r");
    assert_stale(tn_scope_enter(scope), w, w + 1);
    assert_int_equal(tn_scope_expected_version(scope), w);
    assert_replicas(m, h);
    assert_int_equal(trace_count(m), 0);
    assert_ok(tn_scope_destroy(scope));
}

/* A lease of h at C0 that is complete and not reaped. */
static uint64_t late(struct spec *f, tn_manager *m, tn_handle h, tn_stream s) {
    tn_lease lease = acquire(m, h, C0, s);
    uint64_t before;

    spec_busy(f, s);
    release(&lease);
    before = version(m);
    spec_finish(f);
    return before;
}

/* Whether it is still not reaped; and the version when it is. */
static bool unreaped(struct spec *f, tn_manager *m, uint64_t *after) {
    tn_status status;

    spec_fault(f, TN_SIM_EVENT_QUERY, 1, 0, TN_ERR_DRIVER, 1);
    status = tn_manager_state_version(m, after);
    spec_repair(f);
    *after = version(m);
    return status != TN_OK;
}

static void mc091_entry_and_close_reap(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, C0);
    tn_stream s = spec_stream(f, 0);
    uint64_t before = late(f, m, h, s);
    uint64_t after;
    tn_scope *scope = make_scope(m, &PLAN_SPEC(RESERVE({C0, 1, "r"})), TN_VERSION_ANY);

    assert_true(unreaped(f, m, &after)); /* not when it was made */
    assert_int_equal(after - before, 1);
    before = late(f, m, h, s);
    assert_ok(tn_scope_enter(scope));
    assert_false(unreaped(f, m, &after));
    assert_int_equal(after - before, 1 + 1);
    before = late(f, m, h, s);
    assert_ok(tn_scope_close(scope));
    assert_false(unreaped(f, m, &after));
    assert_int_equal(after - before, 1 + 1);
    assert_ok(tn_scope_destroy(scope));
    before = late(f, m, h, s); /* a refused entry as well (M252) */
    scope = make_scope(m, &PLAN_SPEC(ENTER(DROP(h, C0))), TN_VERSION_ANY);
    assert_status(tn_scope_enter(scope), TN_ERR_PLAN);
    assert_false(unreaped(f, m, &after));
    assert_int_equal(after - before, 1);
    assert_ok(tn_scope_destroy(scope));
}

static void mc115_as_explained(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = register_src(m, spec_source(f));
    tn_scope *scope;
    struct spec_run r;

    scope = make_scope(m, &PLAN_SPEC(RESERVE({P, 32, "r"}), ENTER(ENSURE(h, P)), EXIT(DROP(h, P))),
                       TN_VERSION_ANY);
    assert_ok(tn_scope_enter(scope));
    assert_int_equal(used(m, P), 32);
    assert_int_equal(reserved(m, P), 32);
    assert_no_report(scope);
    assert_ok(tn_scope_close(scope));
    assert_int_equal(used(m, P), 0);
    assert_int_equal(reserved(m, P), 0);
    assert_peaks(m, P, 32, 64);
    r = report_of(scope);
    assert_string_equal(r.plan, "plan");
    assert_int_equal(r.count, 2);
    assert_int_equal(r.head.reclaim_count, 0);
    assert_int_equal(r.head.enter_count, 1);
    assert_int_equal(r.head.exit_count, 1);
    assert_report(r.transitions[0], TN_ACTION_ENSURE, 0, P, P);
    assert_report(r.transitions[1], TN_ACTION_DROP, 0, P, NOWHERE);
    assert_status(tn_scope_enter(scope), TN_ERR_MISUSE);
    assert_int_equal(report_of(scope).count, 2); /* a second entry takes nothing away */
    assert_ok(tn_scope_destroy(scope));
}

static void mc127_an_infeasible_entry(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *s = spec_source(f);
    tn_handle h = register_src(m, s);
    char *before = spec_describe(m, 0);
    tn_scope *scope;

    scope =
        make_scope(m, &PLAN_SPEC(RESERVE({P, 1, "r"}), ENTER(MOVE_FROM(h, P, P))), TN_VERSION_ANY);
    assert_status(tn_scope_enter(scope), TN_ERR_PLAN);
    assert_int_equal(tn_last_error()->phase, TN_PHASE_ENTER);
    assert_int_equal(tn_last_error()->failed_index, 0);
    assert_int_equal(tn_last_error()->cause_status, TN_ERR_UNAVAILABLE);
    assert_int_equal(tn_last_error()->reason, TN_REASON_SOURCE_NOT_RESIDENT);
    assert_failed_action(*tn_last_error(), TN_ACTION_MOVE, h, P);
    assert_string_equal(tn_last_error()->plan, "plan");
    assert_string_equal(tn_last_error()->label, "");
    assert_false(tn_scope_active(scope));
    assert_no_report(scope);
    assert_int_equal(s->calls, 0);
    assert_int_equal(trace_count(m), 0);
    assert_unchanged(m, before, 0);
    assert_ok(tn_scope_destroy(scope));
}

/* A preflight of the complete plan: its exit and its reservations too (M202). */
static void mc127_nothing_runs_if_the_exit_is_infeasible(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 64});
    tn_handle h = register_src(m, spec_source(f));
    tn_handle v = adopt_rep(f, m, P);
    char *before = spec_describe(m, 0);
    tn_scope *scope;

    scope = make_scope(m, &PLAN_SPEC(ENTER(ENSURE(h, P)), EXIT(DROP(h, P), DROP(v, P))),
                       TN_VERSION_ANY);
    assert_status(tn_scope_enter(scope), TN_ERR_PLAN);
    assert_int_equal(tn_last_error()->phase, TN_PHASE_EXIT);
    assert_int_equal(tn_last_error()->failed_index, 1);
    assert_int_equal(tn_last_error()->reason, TN_REASON_LAST_COPY);
    assert_ok(tn_scope_destroy(scope));
    scope = make_scope(m, &PLAN_SPEC(RECLAIM(ENSURE(h, P)), RESERVE({P, 0, "zero"}, {P, 1, "one"})),
                       TN_VERSION_ANY);
    assert_status(tn_scope_enter(scope), TN_ERR_PLAN);
    assert_int_equal(tn_last_error()->phase, TN_PHASE_RESERVE);
    assert_int_equal(tn_last_error()->failed_index, 1);
    assert_int_equal(tn_last_error()->cause_status, TN_ERR_BUDGET);
    assert_int_equal(tn_last_error()->reason, TN_REASON_RESERVATION_BUDGET);
    assert_int_equal(tn_last_error()->action_kind, TN_ACTION_NONE);
    assert_string_equal(tn_last_error()->label, "one");
    assert_ok(tn_scope_destroy(scope));
    assert_unchanged(m, before, 0);
}

static void mc131_a_scope_needs_a_plan(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_scope *scope = NULL;

    assert_status(tn_scope_create(m, NULL, NULL, &scope), TN_ERR_KIND);
    assert_null(scope);
    assert_int_equal(version(m), 0);
}

static void mc132_everything_at_once(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 200}, {C0, 160}, {N, 64});
    tn_handle a = adopt_rep(f, m, P);
    tn_handle b = spec_adopt(m, tt_bytes(f->driver, P, 64), P, TN_EXCLUSIVE);
    tn_handle k = spec_register(m, spec_source(f), N, TN_REPLICABLE);
    tn_plan_spec spec =
        PLAN_SPEC(RECLAIM(DROP(a, C0)), RESERVE({C0, 16, "c0"}, {C1, 8, "c1"}),
                  ENTER(MOVE(b, C0), ENSURE(k, C0), ENSURE(a, C0)), EXIT(MOVE(b, N), DROP(k, C0)));
    struct spec_explained e;
    tn_scope *scope;
    struct spec_run r;

    ensure(m, a, C0);
    reserve(m, C0, 16, "before");
    e = spec_explain_spec(m, &spec);
    assert_predicted(e, {P, 96}, {C0, 160}, {N, 64}, {C1, 8});
    scope = make_scope(m, &spec, version(m));
    assert_rises(m, 8, assert_ok(tn_scope_enter(scope)));
    assert_int_equal(used(m, C0), 128);
    assert_int_equal(reserved(m, C0), 32);
    assert_int_equal(remaining(m, C0), 0);
    assert_peaks(m, C0, 128, 160);
    assert_int_equal(loc(m, C0).reservation_count, 2);
    assert_peaks(m, N, 0, 32);
    assert_int_equal(reserved(m, C1), 8);
    assert_rises(m, 5, assert_ok(tn_scope_close(scope)));
    assert_int_equal(used(m, C0), 32);
    assert_int_equal(reserved(m, C0), 16);
    assert_int_equal(used(m, N), 64);
    assert_peaks(m, N, 64, 64);
    assert_peaks(m, C1, 0, 8);
    assert_peaks(m, P, 96, 96); /* each as predicted (M182) */
    assert_peaks(m, C0, 128, 160);
    r = report_of(scope);
    assert_int_equal(r.count, 6);
    assert_int_equal(r.head.reclaim_count, 1);
    assert_int_equal(r.head.enter_count, 3);
    assert_int_equal(r.head.exit_count, 2);
    assert_report(r.transitions[0], TN_ACTION_DROP, 0, C0, NOWHERE);
    assert_report(r.transitions[1], TN_ACTION_MOVE, 0, P, C0);
    assert_report(r.transitions[2], TN_ACTION_ENSURE, 0, N, C0);
    assert_report(r.transitions[3], TN_ACTION_ENSURE, 0, P, C0);
    assert_report(r.transitions[4], TN_ACTION_MOVE, 0, C0, N);
    assert_report(r.transitions[5], TN_ACTION_DROP, 0, C0, NOWHERE);
    assert_replicas(m, a, P, C0);
    assert_replicas(m, b, N);
    assert_replicas(m, k);
    assert_ok(tn_scope_destroy(scope));
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(mc089_stale_entry),
    SPEC_BOTH(mc091_entry_and_close_reap),
    SPEC_BOTH(mc115_as_explained),
    SPEC_BOTH(mc127_an_infeasible_entry),
    SPEC_BOTH(mc127_nothing_runs_if_the_exit_is_infeasible),
    SPEC_BOTH(mc131_a_scope_needs_a_plan),
    SPEC_BOTH(mc132_everything_at_once),
};

TN_TEST_MAIN("spec.plan_scopes", tests)
