/* SPDX-License-Identifier: MIT */
/*
 * Scopes that fail: what the error says, what stays, what is released (M203..M205, M208..M210, M214,
 * M244..M248; cases MC140..MC146, MC148, MC155).
 */
#include "spec_scope_common.h"

#include "base/base_internal.h"

/* ---- Entry ---------------------------------------------------------------------------------- */

/* A failed entry has consumed and closed its scope (M203). */
static void assert_consumed(tn_scope *s) {
    assert_false(tn_scope_active(s));
    assert_int_equal(scope_reservations(s), 0);
    assert_status(tn_scope_enter(s), TN_ERR_MISUSE);
    assert_ok(tn_scope_close(s));
    assert_null(scope_report(s));
    assert_null(scope_exit_error(s));
}

static void mc140_a_reclaim_action_fails(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle a = register_src(m, spec_source(f));
    tn_handle b = scope_failing(f, m);
    tn_scope *s = SCOPE(m, "reclaim", RECLAIM(DROP(a, P), MOVE(b, P, NOWHERE)),
                        RESERVE({P, 8, "never"}), ENTER(ENSURE(a, N)));

    ensure(m, a, P);
    assert_rises(m, 1,
                 assert_exec_error(tn_scope_enter(s), "reclaim", TN_PHASE_RECLAIM, 1,
                                   MOVE(b, P, NOWHERE), TN_ERR_SOURCE));
    assert_transitions(scope_partial(s), 1, 0, 0, DROP(a, P));
    assert_replicas(m, a);
    assert_replicas(m, b);
    assert_consumed(s);
    assert_int_equal(reserved(m, P), 0);
    assert_locations(m, P);
    assert_transitions(scope_partial(s), 1, 0, 0, DROP(a, P));
    destroy_scope(s);
}

/* MC141: the second reservation tracks its location, which takes memory. The n-th allocation of
 * the entry fails; one of them must be that reservation's. */
struct second {
    tn_manager *m;
    tn_handle a;
    tn_scope *s;
};

static struct second second_make(struct spec *f) {
    struct second x = {.m = MANAGER(f, {P, 64})};

    x.a = register_src(x.m, spec_source(f));
    x.s = SCOPE(x.m, "two", RECLAIM(DROP(x.a, P)), RESERVE({P, 8, "first"}, {N, 16, "second"}),
                ENTER(ENSURE(x.a, P)), LEAVE(DROP(x.a, P)));
    ensure(x.m, x.a, P);
    return x;
}

static void second_check(struct second *x, const tn_error *e, uint64_t before) {
    const char *label = e->failed_index == 0 ? "first" : "second";

    assert_int_equal(e->action_kind, TN_ACTION_NONE);
    assert_int_equal(e->action_handle.index, 0);
    assert_int_equal(e->cause_status, TN_ERR_HOST_MEMORY);
    assert_string_equal(e->plan, "two");
    assert_string_equal(e->label, label);
    assert_transitions(scope_partial(x->s), 1, 0, 0, DROP(x->a, P));
    assert_replicas(x->m, x->a);
    assert_int_equal(info(x->m).reservation_count, 0);
    assert_int_equal(reserved(x->m, P), 0);
    /* the drop; a reservation that was admitted, and its release */
    assert_int_equal(version(x->m) - before, e->failed_index == 0 ? 1 : 3);
    assert_consumed(x->s);
}

static void mc141_the_second_reservation_fails(void **state) {
    struct spec *f = *state;
    bool found = false;
    bool fired = true;

    for (uint64_t nth = 1; fired; nth++) {
        struct second x = second_make(f);
        uint64_t before = version(x.m);
        tn_error e;
        tn_status status;

        tn__fault_alloc(nth);
        status = tn_scope_enter(x.s);
        fired = tn__fault_alloc_fired();
        tn__fault_alloc(0);
        e = *tn_last_error();
        if (status == TN_ERR_PLAN_EXEC && e.phase == TN_PHASE_RESERVE) {
            second_check(&x, &e, before);
            found = found || e.failed_index == 1;
        } else if (status == TN_OK) {
            assert_ok(tn_scope_close(x.s));
        }
        destroy_scope(x.s);
        spec_destroy(f, x.m);
        f->source_count = 0;
    }
    assert_true(found);
}

static void mc142_an_enter_action_fails(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle first = register_src(m, spec_source(f));
    tn_handle second = scope_failing(f, m);
    tn_scope *s = SCOPE(m, "enter", RESERVE({P, 1, "one"}),
                        ENTER(ENSURE(first, P), ENSURE(second, P)), LEAVE(DROP(first, P)));

    assert_exec_error(tn_scope_enter(s), "enter", TN_PHASE_ENTER, 1, ENSURE(second, P),
                      TN_ERR_SOURCE);
    assert_transitions(scope_partial(s), 0, 1, 0, ENSURE(first, P));
    assert_int_equal(info(m).reservation_count, 0);
    assert_int_equal(reserved(m, P), 0);
    assert_replicas(m, first, P);
    assert_consumed(s);
    assert_replicas(m, first, P);
    assert_int_equal(trace_count(m), 1);
    destroy_scope(s);
    assert_int_equal(spec_warnings_all(f), 0);
}

static void mc143_exact_increments_and_peaks(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle a = register_src(m, spec_source(f));
    tn_handle b = scope_failing(f, m);
    tn_scope *s = SCOPE(m, "exact", RECLAIM(ENSURE(a, P)), RESERVE({P, 1, "one"}, {P, 2, "two"}),
                        ENTER(ENSURE(a, N), ENSURE(b, P)), LEAVE(DROP(a, N)));

    assert_rises(m, 7,
                 assert_exec_error(tn_scope_enter(s), "exact", TN_PHASE_ENTER, 1, ENSURE(b, P),
                                   TN_ERR_SOURCE));
    assert_transitions(scope_partial(s), 1, 1, 0, ENSURE(a, P), ENSURE(a, N));
    assert_peaks(m, P, 32, 67);
    assert_int_equal(trace_count(m), 2);
    assert_replicas(m, a, P, N);
    assert_consumed(s);
    destroy_scope(s);
}

static void mc148_refused_entries_consume_their_scope(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 64}, {C0, 64});
    tn_handle v = adopt_rep(f, m, P);
    tn_transfer_stream wrong[4] = {{P, spec_stream(f, 0)},
                                   {C0, spec_stream(f, 1)},
                                   {C2, spec_stream(f, 0)},
                                   {C0, spec_b_not_a_stream()}};
    tn_run_options options = scope_expect(version(m) + 1);
    tn_scope *s = SCOPE_WITH(m, &options, "stale", ENTER(ENSURE(v, N)));
    char *before = spec_describe(m, 0);

    assert_status(tn_scope_enter(s), TN_ERR_STALE);
    assert_consumed(s);
    assert_no_news(s);
    destroy_scope(s);
    s = SCOPE(m, "infeasible", ENTER(ENSURE(v, N), DROP(v, P)), LEAVE(DROP(v, N)));
    assert_plan_error(tn_scope_enter(s), "infeasible", TN_PHASE_EXIT, 0, TN_REASON_LAST_COPY);
    assert_consumed(s);
    assert_no_news(s);
    destroy_scope(s);
    s = SCOPE(m, "too much", RESERVE({P, 16, "fits"}, {P, 17, "does not"}), ENTER(ENSURE(v, N)));
    assert_plan_error(tn_scope_enter(s), "too much", TN_PHASE_RESERVE, 1,
                      TN_REASON_RESERVATION_BUDGET);
    assert_string_equal(tn_last_error()->label, "does not");
    assert_consumed(s);
    destroy_scope(s);
    for (int i = 0; i < 4; i++) {
        options = scope_expect(TN_VERSION_ANY);
        options.streams = &wrong[i];
        options.stream_count = 1;
        s = SCOPE_WITH(m, &options, "stream", ENTER(ENSURE(v, N)));
        assert_status(tn_scope_enter(s), i == 3 ? TN_ERR_KIND : TN_ERR_VALUE);
        assert_consumed(s);
        assert_no_news(s);
        destroy_scope(s);
    }
    assert_unchanged(m, before, 0);
    assert_int_equal(trace_count(m), 0);
}

/* ---- Close ---------------------------------------------------------------------------------- */

struct pair {
    tn_manager *m;
    tn_handle first;
    tn_handle second;
    tn_scope *s;
    tn_hold held; /* on the second, taken in the body */
};

/* MC144's setup, in the body. */
static struct pair enter_pair(struct spec *f, bool reserving) {
    struct pair x = {.m = MANAGER(f)};

    x.first = register_src(x.m, spec_source(f));
    x.second = register_src(x.m, spec_source(f));
    if (reserving)
        x.s = SCOPE(x.m, "exit", RESERVE({P, 8, "eight"}),
                    ENTER(ENSURE(x.first, P), ENSURE(x.second, P)),
                    LEAVE(DROP(x.first, P), DROP(x.second, P)));
    else
        x.s = SCOPE(x.m, "exit", ENTER(ENSURE(x.first, P), ENSURE(x.second, P)),
                    LEAVE(DROP(x.first, P), DROP(x.second, P)));
    assert_ok(tn_scope_enter(x.s));
    x.held = hold(x.m, x.second, P);
    return x;
}

static void assert_exit_failed(struct pair *x) {
    const tn_error *e = scope_exit_error(x->s);

    assert_non_null(e);
    scope_assert_exec(e, "exit", TN_PHASE_EXIT, 1, DROP(x->second, P), TN_ERR_IN_USE, __FILE__,
                      __LINE__);
    assert_int_equal(e->hold_count, 1);
    assert_int_equal(e->use_count, 0);
    assert_null(scope_report(x->s));
    assert_transitions(scope_partial(x->s), 0, 2, 1, ENSURE(x->first, P), ENSURE(x->second, P),
                       DROP(x->first, P));
    assert_false(tn_scope_active(x->s));
}

static void mc144_an_exit_action_fails(void **state) {
    struct pair x = enter_pair(*state, false);

    assert_rises(x.m, 1,
                 assert_exec_error(tn_scope_close(x.s), "exit", TN_PHASE_EXIT, 1, DROP(x.second, P),
                                   TN_ERR_IN_USE));
    assert_exit_failed(&x);
    assert_replicas(x.m, x.first);
    assert_replicas(x.m, x.second, P);
    release_hold(&x.held);
    assert_rises(x.m, 0, assert_ok(tn_scope_close(x.s))); /* not retried (M209) */
    assert_replicas(x.m, x.second, P);
    assert_exit_failed(&x);
    destroy_scope(x.s);
}

static void mc144_its_reservations_are_released(void **state) {
    struct pair x = enter_pair(*state, true);

    assert_int_equal(reserved(x.m, P), 8);
    assert_rises(x.m, 2,
                 assert_exec_error(tn_scope_close(x.s), "exit", TN_PHASE_EXIT, 1, DROP(x.second, P),
                                   TN_ERR_IN_USE));
    assert_int_equal(reserved(x.m, P), 0);
    assert_int_equal(info(x.m).reservation_count, 0);
    assert_exit_failed(&x);
    release_hold(&x.held);
    destroy_scope(x.s);
    assert_int_equal(spec_warnings_all(*state), 0);
}

/* The n-th call of a source fails: whatever part it falls into, what ran stays, reservations go, and
 * a fresh scope of the same plan goes on from there. */
static void sources_fail_by_number(void **state) {
    static const uint32_t phases[4] = {0, TN_PHASE_RECLAIM, TN_PHASE_ENTER, TN_PHASE_EXIT};
    struct spec *f = *state;

    for (uint64_t nth = 1; nth <= 3; nth++) {
        tn_manager *m = MANAGER(f);
        tt_source *source = spec_source(f);
        tn_handle h[3] = {register_src(m, source), register_src(m, source),
                          register_src(m, source)};
        tn_plan *plan = PLAN("by number", RECLAIM(ENSURE(h[0], P)), RESERVE({P, 8, "r"}),
                             ENTER(ENSURE(h[1], N)), LEAVE(ENSURE(h[2], P)));
        tn_scope *s = NULL;
        tn_status status;

        source->fail_from = nth;
        assert_ok(tn_scope_create(m, plan, NULL, &s));
        status = tn_scope_enter(s);
        assert_status(status, nth < 3 ? TN_ERR_PLAN_EXEC : TN_OK);
        if (nth == 3)
            assert_status(tn_scope_close(s), TN_ERR_PLAN_EXEC);
        assert_int_equal(tn_last_error()->phase, phases[nth]);
        assert_int_equal(tn_last_error()->cause_status, TN_ERR_SOURCE);
        assert_handle(tn_last_error()->action_handle, h[nth - 1]);
        assert_int_equal(scope_exit_error(s) != NULL, nth == 3);
        for (uint64_t i = 0; i < 3; i++)
            assert_int_equal(replicas(m, h[i]), i + 1 < nth);
        assert_int_equal(info(m).reservation_count, 0);
        destroy_scope(s);
        assert_ok(tn_scope_create(m, plan, NULL, &s));
        assert_ok(tn_scope_enter(s));
        close_scope(s);
        assert_int_equal(source->calls, 4);
        tn_plan_destroy(plan);
    }
}

static void mc145_the_error_of_the_body_stays_primary(void **state) {
    struct pair x = enter_pair(*state, true);
    tn_error body;

    assert_status(tn_manager_drop(x.m, x.first, C2, NULL), TN_ERR_VALUE); /* the body fails */
    body = *tn_last_error();
    assert_status(tn_scope_close(x.s), TN_ERR_PLAN_EXEC);
    assert_int_equal(body.status, TN_ERR_VALUE);
    assert_status(tn_manager_ensure(x.m, x.first, C2, NULL, NULL), TN_ERR_VALUE);
    assert_exit_failed(&x); /* the scope keeps it, whatever this thread's last error is */
    release_hold(&x.held);
    destroy_scope(x.s);
}

static void mc146_a_scope_that_is_destroyed_in_its_body(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle src = register_src(m, spec_source(f));
    tn_scope *s = SCOPE(m, "abandoned plan", RESERVE({P, 32, "work"}), ENTER(ENSURE(src, P)),
                        LEAVE(DROP(src, P)));
    tn_scope *unused = SCOPE(m, "unused", RESERVE({P, 32, "work"}));

    assert_ok(tn_scope_enter(s));
    assert_rises(m, 1, destroy_scope(s));
    assert_int_equal(spec_warnings(f, TN_DIAGNOSTIC_SCOPE_ABANDONED), 1);
    assert_int_equal(spec_warnings_all(f), 1);
    assert_non_null(strstr(f->last_warning, "abandoned plan"));
    assert_int_equal(f->last_warning_manager, tn_manager_id(m));
    assert_int_equal(reserved(m, P), 0);
    assert_int_equal(info(m).reservation_count, 0);
    assert_replicas(m, src, P);
    assert_int_equal(trace_count(m), 1);
    assert_rises(m, 0, destroy_scope(unused)); /* silently (M214) */
    assert_int_equal(spec_warnings_all(f), 1);
}

static void mc155_everything_about_a_failure(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle first = register_src(m, spec_source(f));
    tn_handle second = scope_failing(f, m);
    tn_plan_report_info head = TN_PLAN_REPORT_INFO_INIT;
    tn_scope *s = SCOPE(m, "a telling name", ENTER(ENSURE(first, P), ENSURE(second, P)));
    tn_status status = tn_scope_enter(s);
    tn_error e = *tn_last_error();

    assert_int_not_equal(status, TN_ERR_PLAN); /* a sibling of it (M245) */
    scope_assert_exec(&e, "a telling name", TN_PHASE_ENTER, 1, ENSURE(second, P), TN_ERR_SOURCE,
                      __FILE__, __LINE__);
    assert_int_equal(e.native_code, 77);
    assert_int_equal(e.manager, tn_manager_id(m));
    assert_handle(e.handle, second);
    assert_non_null(strstr(e.message, "nothing to read"));
    assert_ok(tn_plan_report_read(scope_partial(s), &head));
    assert_string_equal(head.plan, "a telling name");
    assert_int_equal(head.complete, 0);
    destroy_scope(s);

    s = SCOPE(m, "whole", ENTER(ENSURE(first, P)));
    assert_ok(tn_scope_enter(s));
    assert_ok(tn_scope_close(s));
    assert_ok(tn_plan_report_read(scope_report(s), &head));
    assert_string_equal(head.plan, "whole");
    assert_int_equal(head.complete, 1);
    assert_null(scope_partial(s));
    destroy_scope(s);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(mc140_a_reclaim_action_fails),
    SPEC_BOTH(mc141_the_second_reservation_fails),
    SPEC_BOTH(mc142_an_enter_action_fails),
    SPEC_BOTH(mc143_exact_increments_and_peaks),
    SPEC_BOTH(mc148_refused_entries_consume_their_scope),
    SPEC_BOTH(mc144_an_exit_action_fails),
    SPEC_BOTH(mc144_its_reservations_are_released),
    SPEC_BOTH(sources_fail_by_number),
    SPEC_BOTH(mc145_the_error_of_the_body_stays_primary),
    SPEC_BOTH(mc146_a_scope_that_is_destroyed_in_its_body),
    SPEC_BOTH(mc155_everything_about_a_failure),
};

TN_TEST_MAIN("spec.scope_failures", tests)
