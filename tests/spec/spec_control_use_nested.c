/* SPDX-License-Identifier: MIT */
/*
 * Uses beside others: nested, one after the other, asynchronous, on a closed manager, and a state
 * that moves on while it is decided (C54, C61, C126..C130, C140..C148; cases CC121..CC129).
 */
#include "scenario.h"

#include <pthread.h>

static bool by_version(const world *w) { return w->f->mode == TN_MODE_SERIAL; }

static tn_use_info read_use(const tn_use *use) {
    tn_use_info got = TN_USE_INFO_INIT;

    assert_ok(tn_use_read(use, &got));
    return got;
}

static tn_use *entered(world *w, const char *need, const char *reserve) {
    tn_request *request = world_request(w, need, reserve);
    tn_use *use = world_use(w, w->controller, request);

    tn_request_destroy(request);
    assert_ok(tn_use_enter(use));
    return use;
}

static void leave(tn_use *use) {
    assert_ok(tn_use_exit(use));
    tn_use_destroy(use);
}

/* What a decision would release. */
static void assert_reclaim(world *w, const char *need, const char *reclaim) {
    tn_decision *d;
    char *text;

    assert_ok(world_decide_for(w, w->controller, need, NULL, &d));
    text = world_reclaim(w, d);
    assert_string_equal(text, reclaim);
    free(text);
    tn_decision_drop(d);
}

static const scenario three = {.budgets = "P=2", .values = "a 1 R @H; b 1 R @H; c 1 R @H"};

static void cc121_nested_uses(void **state) {
    world *w = world_begin(*state, &three);
    tn_use *outer = entered(w, "a@P", NULL), *inner = entered(w, "b@P", NULL);

    assert_true(read_use(inner).epoch > read_use(outer).epoch);
    if (by_version(w)) {
        assert_int_equal(read_use(outer).epoch, 1);
        assert_int_equal(read_use(inner).epoch, 2);
    }
    leave(inner);
    assert_reclaim(w, "c@P", "drop b@P (rank 0, 1 at P, replica remains)");
    leave(outer);
    assert_reclaim(w, "c@P", "drop a@P (rank 0, 1 at P, replica remains)");
    world_end(w);
}

static void cc122_outer_reservation_counts(void **state) {
    world *w = world_begin(*state, &three);
    tn_use *outer = entered(w, "a@P", "P:1");
    tn_decision *d;
    char *text;

    assert_status(world_decide_for(w, w->controller, "b@P", NULL, &d), TN_ERR_PLAN);
    text = world_refusal(w);
    assert_string_equal(text, "1 at P, materialization of b; budget 2, used 1, reserved 1");
    free(text);
    leave(outer);
    assert_reclaim(w, "b@P", "");
    world_end(w);
}

static const scenario cc123 = {.values = "e 1 X @H"};

static void cc123_exclusive_value_borrowed_twice_and_moved(void **state) {
    world *w = world_begin(*state, &cc123);
    tn_use *outer = entered(w, "e@H", NULL), *inner = entered(w, "e@H", NULL);
    tn_decision *d;

    assert_int_equal(mat(w->m, world_handle(w, "e"), P).use_count, 2);
    assert_status(world_decide_for(w, w->controller, "e@P", NULL, &d), TN_ERR_PLAN);
    assert_int_equal(tn_last_error()->reason, TN_REASON_SOURCE_PROTECTED);
    leave(inner);
    assert_status(world_decide_for(w, w->controller, "e@P", NULL, &d), TN_ERR_PLAN);
    leave(outer);
    assert_reclaim(w, "e@P", "");
    world_end(w);
}

static const scenario cc124 = {.budgets = "P=1", .values = "a 1 R @H; b 1 R @H"};

/* Nothing is left to do: an empty plan, or bound to the placement no decision at all. */
static void assert_hit(world *w, const tn_use *use) {
    const tn_decision *d = NULL;
    const tn_plan_report *report = NULL;
    tn_plan_report_info head = TN_PLAN_REPORT_INFO_INIT;
    char *text;

    assert_ok(tn_use_decision(use, &d));
    assert_int_equal(read_use(use).hit, by_version(w) ? 0 : 1);
    assert_true((d != NULL) == by_version(w));
    assert_ok(tn_use_report(use, &report));
    assert_true((report != NULL) == by_version(w));
    if (d == NULL)
        return;
    text = world_entry(w, d);
    assert_string_equal(text, "");
    free(text);
    assert_ok(tn_plan_report_read(report, &head));
    assert_int_equal(head.transition_count, 0);
}

static void cc124_cached_after_exit(void **state) {
    world *w = world_begin(*state, &cc124);
    tn_use *use;

    world_use_once(w, "a@P");
    use = entered(w, "a@P", NULL);
    assert_ok(tn_use_exit(use));
    assert_hit(w, use);
    tn_use_destroy(use);
    assert_reclaim(w, "b@P", "drop a@P (rank 0, 1 at P, replica remains)");
    world_use_once(w, "b@P");
    world_check(w, "a@H; b@H,P");
    world_end(w);
}

static const scenario cc125 = {.budgets = "D0=2", .values = "a 1 R @H; b 1 R @H; c 2 R @H"};

static void cc125_asynchronous_exit(void **state) {
    world *w = world_begin(*state, &cc125);
    tn_use *use = entered(w, "a@D0", "D0:1");
    tn_materialization_info a;
    tn_decision *d;

    spec_busy(w->f, world_stream(w, 0));
    leave(use); /* virtual time stands still: it has waited for nothing */
    assert_false(spec_idle(w->f, world_stream(w, 0)));
    assert_int_equal(reserved(w->m, C0), 0);
    a = mat(w->m, world_handle(w, "a"), C0);
    assert_int_equal(a.use_count, 0);
    assert_int_equal(a.pending_count, 1);
    assert_status(world_decide_for(w, w->controller, "c@D0", NULL, &d), TN_ERR_PLAN);
    spec_finish(w->f);
    assert_reclaim(w, "c@D0", "drop a@D0 (rank 0, 1 at D0, replica remains)");
    world_end(w);
}

static void cc126_exit_without_entry(void **state) {
    world *w = world_begin(*state, &three);
    tn_request *request = world_request(w, "a@P", NULL);
    tn_use *use = world_use(w, w->controller, request);

    assert_status(tn_use_exit(use), TN_ERR_MISUSE);
    assert_ok(tn_use_enter(use)); /* it was not an entry */
    leave(use);
    tn_request_destroy(request);
    world_end(w);
}

static void cc127_manager_force_closed_during_a_use(void **state) {
    world *w = world_begin(*state, &three);
    tn_use *use = entered(w, "a@H", NULL);
    const tn_plan_report *report = NULL;
    const tn_error *error = NULL;
    const void *data = NULL;

    assert_ok(tn_manager_close(w->m, TN_CLOSE_FORCE));
    assert_status(tn_use_value(use, world_handle(w, "a"), P, &data), TN_ERR_UNAVAILABLE);
    /* a hit has no scope that could be refused; its lease was ended by the close */
    assert_status(tn_use_exit(use), by_version(w) ? TN_ERR_CLOSED : TN_OK);
    assert_ok(tn_use_report(use, &report));
    assert_null(report);
    assert_ok(tn_use_exit_error(use, &error));
    assert_null(error);
    assert_status(tn_use_value(use, world_handle(w, "a"), P, &data), TN_ERR_LIFETIME_CLOSED);
    tn_use_destroy(use);
    world_end(w);
}

static void cc128_inspectable_form(void **state) {
    world *w = world_begin(*state, &three);
    tn_decision *d;
    tn_scope *scope = NULL;
    tn_lease lease;

    world_use_once(w, "a@P");
    assert_ok(world_decide_for(w, w->controller, "b@P", NULL, &d));
    assert_ok(tn_controller_scope(w->controller, d, NULL, 0, &scope));
    assert_ok(tn_scope_enter(scope));
    lease = acquire(w->m, world_handle(w, "b"), N, NULL);
    release(&lease);
    assert_ok(tn_scope_close(scope));
    assert_ok(tn_scope_destroy(scope));
    tn_decision_drop(d);
    assert_reclaim(w, "c@P", "drop b@P (rank 0, 1 at P, replica remains)");
    world_end(w);
}

/* ---- A state that moves on while it is decided ----------------------------------------------- */

/* A policy in whose calls the rest of the world goes on; `times` of them. */
typedef struct restless {
    world *w;
    int times, calls;
} restless;

static void *elsewhere(void *context) {
    restless *r = context;
    tn_reservation more;

    if (r->calls == 0) { /* the lease that is pending completes, and is reaped */
        if (tn_sim_run(r->w->f->sim) != TN_OK || tn_manager_step(r->w->m, NULL) != TN_OK)
            abort();
    } else if (tn_manager_reserve(r->w->m, P, 0, "elsewhere", &more) != TN_OK ||
               tn_reservation_release(&more) != TN_OK) {
        abort();
    }
    return NULL;
}

static const char *restless_name(void *context) {
    (void)context;
    return "restless";
}

static const tn_config_pair *restless_config(void *context, size_t *out_count) {
    (void)context;
    *out_count = 0;
    return NULL;
}

static tn_status restless_fallbacks(void *context, tn_location at, tn_location *out, size_t room,
                                    size_t *out_count) {
    (void)context, (void)at, (void)out, (void)room;
    *out_count = 0;
    return TN_OK;
}

static tn_status restless_order(void *context, const tn_candidate *candidates, size_t count,
                                size_t *out_order) {
    restless *r = context;
    pthread_t thread;

    (void)candidates;
    for (size_t i = 0; i < count; i++)
        out_order[i] = i;
    if (r->calls < r->times) {
        if (pthread_create(&thread, NULL, elsewhere, r) != 0 || pthread_join(thread, NULL) != 0)
            abort();
        r->calls++;
    }
    return TN_OK;
}

static const scenario cc129 = {
    .budgets = "D0=2", .values = "a 1 R @H,D0; b 1 R @H,D0; c 1 R @H", .before = "pending a@D0"};

static void while_deciding(void **state, int times, tn_status expected) {
    restless r = {.times = times};
    tn_policy_spec spec = {sizeof(spec),   &r,  restless_name, restless_config, restless_fallbacks,
                           restless_order, NULL};
    scenario of = cc129;
    tn_decision_info head = TN_DECISION_INFO_INIT;
    tn_decision *d;
    world *w;

    of.policy = &spec;
    w = r.w = world_begin(*state, &of);
    assert_status(world_decide_for(w, w->controller, "c@D0", NULL, &d), expected);
    if (d != NULL) {
        assert_ok(tn_decision_read(d, &head));
        assert_int_equal(head.expected_version, version(w->m));
    } else {
        assert_true(tn_last_error()->actual > tn_last_error()->expected);
    }
    tn_decision_drop(d);
    world_end(w);
}

/* It starts over, as often as is sensible. */
static void cc129_event_completion_during_decide(void **state) { while_deciding(state, 1, TN_OK); }

static void cc129_a_state_that_never_stands_still(void **state) {
    while_deciding(state, 1000, TN_ERR_STALE);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(cc121_nested_uses),
    SPEC_BOTH(cc122_outer_reservation_counts),
    SPEC_BOTH(cc123_exclusive_value_borrowed_twice_and_moved),
    SPEC_BOTH(cc124_cached_after_exit),
    SPEC_BOTH(cc125_asynchronous_exit),
    SPEC_BOTH(cc126_exit_without_entry),
    SPEC_BOTH(cc127_manager_force_closed_during_a_use),
    SPEC_BOTH(cc128_inspectable_form),
    SPEC_BOTH(cc129_event_completion_during_decide),
    SPEC_BOTH(cc129_a_state_that_never_stands_still),
};

TN_TEST_MAIN("spec.control_use_nested", tests)
