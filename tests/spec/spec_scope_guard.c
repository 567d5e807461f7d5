/* SPDX-License-Identifier: MIT */
/*
 * Scopes and callbacks (M189, M190, M192, M197, M203, G25, G26; case MC162).
 *
 * While a source callback runs, closing a scope is refused at once and changes nothing, a second
 * entry is a misuse, and a first entry is refused and consumes its scope. Nothing waits on a scope.
 */
#include "spec_scope_common.h"

struct stage {
    struct spec *f;
    tn_manager *m;
    tn_handle src;     /* its callback is under test */
    tn_scope *entered; /* before the callback */
    tn_scope *fresh;   /* to be entered in the callback */
    tn_scope *own;     /* whose enter action calls the callback, or NULL */
    tn_plan *plan;     /* of no actions */
    struct spec_b_thread thread;
    const char *text;
    bool called;
    atomic_bool calling;
};

static void stage_prepare(struct stage *x, struct spec *f,
                          tn_status (*hook)(void *context, const tn_load_request *request)) {
    tt_source *source = spec_source(f);

    memset(x, 0, sizeof *x);
    x->f = f;
    x->m = MANAGER(f);
    source->hook = hook;
    source->hook_context = x;
    x->src = register_src(x->m, source);
    x->plan = PLAN("plain", RESERVE({P, 0, "r"}));
    x->entered = SCOPE(x->m, "entered", RESERVE({P, 32, "kept"}));
    x->fresh = SCOPE(x->m, "fresh", RESERVE({P, 16, "never"}));
    assert_ok(tn_scope_enter(x->entered));
}

static void stage_finish(struct stage *x) {
    assert_true(x->called);
    assert_null_text(x->text);
    assert_true(tn_scope_active(x->entered));
    assert_rises(x->m, 1, assert_ok(tn_scope_close(x->entered)));
    assert_non_null(scope_report(x->entered));
    assert_int_equal(reserved(x->m, P), 0);
    assert_int_equal(info(x->m).reservation_count, 0);
    destroy_scope(x->entered);
    destroy_scope(x->fresh);
    tn_plan_destroy(x->plan);
    assert_int_equal(spec_warnings_all(x->f), 0);
}

/* ---- Refusals ------------------------------------------------------------------------------- */

/* What is refused on a thread that the guard holds. */
static const char *scopes_are_refused(struct stage *x) {
    tn_reservation r = {NULL, 0};
    tn_scope *s = NULL;
    size_t count = 1;

    TN_WORKER_STATUS(tn_scope_close(x->entered), TN_ERR_REENTRANCY);
    TN_WORKER_CHECK(tn_scope_active(x->entered));
    TN_WORKER_STATUS(tn_scope_enter(x->entered), TN_ERR_MISUSE);
    TN_WORKER_STATUS(tn_scope_destroy(x->entered), TN_ERR_REENTRANCY);
    TN_WORKER_CHECK(tn_scope_active(x->entered));
    TN_WORKER_STATUS(tn_scope_reservations(x->entered, &r, &count), TN_OK);
    TN_WORKER_CHECK(count == 1 && tn_reservation_active(&r));

    TN_WORKER_STATUS(tn_scope_close(x->fresh), TN_ERR_MISUSE); /* before the guard (M251) */
    TN_WORKER_STATUS(tn_scope_enter(x->fresh), TN_ERR_REENTRANCY);
    TN_WORKER_CHECK(!tn_scope_active(x->fresh));
    TN_WORKER_STATUS(tn_scope_enter(x->fresh), TN_ERR_MISUSE); /* consumed */
    TN_WORKER_STATUS(tn_scope_close(x->fresh), TN_OK);

    TN_WORKER_STATUS(tn_scope_create(x->m, x->plan, NULL, &s), TN_OK); /* M190 */
    TN_WORKER_CHECK(tn_scope_manager(s) == tn_manager_id(x->m));
    TN_WORKER_CHECK(tn_scope_plan(s) == x->plan);
    TN_WORKER_CHECK(tn_scope_expected_version(s) == TN_VERSION_ANY);
    TN_WORKER_STATUS(tn_scope_destroy(s), TN_OK); /* never entered */
    return NULL;
}

static tn_status refused_here(void *context, const tn_load_request *request) {
    struct stage *x = context;

    (void)request;
    x->called = true;
    x->text = scopes_are_refused(x);
    return TN_OK;
}

static void mc162_refused_inside_a_callback(void **state) {
    struct stage x;

    stage_prepare(&x, *state, refused_here);
    ensure(x.m, x.src, P);
    stage_finish(&x);
}

static const char *refused_body(void *arg) { return scopes_are_refused(arg); }

static tn_status refused_there(void *context, const tn_load_request *request) {
    struct stage *x = context;

    (void)request;
    x->called = true;
    spec_b_start(&x->thread, refused_body, x);
    x->text = spec_b_join(&x->thread);
    return TN_OK;
}

static void mc162_refused_on_every_thread(void **state) {
    struct stage x;

    stage_prepare(&x, *state, refused_there);
    ensure(x.m, x.src, P);
    stage_finish(&x);
}

/* D3: other threads go on. */
static const char *scopes_work(void *arg) {
    struct stage *x = arg;
    tn_scope *s = NULL;

    TN_WORKER_STATUS(tn_scope_create(x->m, x->plan, NULL, &s), TN_OK);
    TN_WORKER_STATUS(tn_scope_enter(s), TN_OK);
    TN_WORKER_STATUS(tn_scope_close(s), TN_OK);
    TN_WORKER_STATUS(tn_scope_destroy(s), TN_OK);
    TN_WORKER_STATUS(tn_scope_create(x->m, x->plan, NULL, &s), TN_OK);
    TN_WORKER_STATUS(tn_scope_enter(s), TN_OK);
    TN_WORKER_STATUS(tn_scope_destroy(s), TN_OK);
    return NULL;
}

static tn_status works_there(void *context, const tn_load_request *request) {
    struct stage *x = context;

    (void)request;
    x->called = true;
    spec_b_start(&x->thread, scopes_work, x);
    x->text = spec_b_join(&x->thread);
    return TN_OK;
}

static void scopes_of_other_threads_go_on_beside_a_callback(void **state) {
    struct stage x;

    stage_prepare(&x, *state, works_there);
    ensure(x.m, x.src, P);
    assert_int_equal(spec_warnings(x.f, TN_DIAGNOSTIC_SCOPE_ABANDONED), 1);
    atomic_store(&x.f->warnings[TN_DIAGNOSTIC_SCOPE_ABANDONED], 0);
    stage_finish(&x);
}

/* ---- A callback of the scope's own entry ---------------------------------------------------- */

static const char *own_is_refused(struct stage *x) {
    size_t count = 0;

    TN_WORKER_STATUS(tn_scope_close(x->own), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_scope_enter(x->own), TN_ERR_MISUSE);
    TN_WORKER_STATUS(tn_scope_reservations(x->own, NULL, &count), TN_OK);
    TN_WORKER_CHECK(count == 0); /* unless entered */
    TN_WORKER_CHECK(!tn_scope_active(x->own));
    return NULL;
}

static const char *own_body(void *arg) { return own_is_refused(arg); }

static tn_status own_refused_here(void *context, const tn_load_request *request) {
    struct stage *x = context;

    (void)request;
    x->called = true;
    x->text = own_is_refused(x);
    return TN_OK;
}

static tn_status own_refused_there(void *context, const tn_load_request *request) {
    struct stage *x = context;

    (void)request;
    x->called = true;
    spec_b_start(&x->thread, own_body, x);
    x->text = spec_b_join(&x->thread);
    return TN_OK;
}

static void enter_own(struct stage *x) {
    x->own = SCOPE(x->m, "own", RESERVE({P, 8, "own"}), ENTER(ENSURE(x->src, P)),
                   LEAVE(DROP(x->src, P)));
    assert_ok(tn_scope_enter(x->own));
    assert_true(tn_scope_active(x->own));
    assert_int_equal(reserved(x->m, P), 40);
    assert_ok(tn_scope_close(x->own)); /* its exit actions do run */
    assert_transitions(scope_report(x->own), 0, 1, 1, ENSURE(x->src, P), DROP(x->src, P));
    assert_replicas(x->m, x->src);
    destroy_scope(x->own);
}

static void mc162_closed_by_a_callback_of_its_own_entry(void **state) {
    struct stage x;

    stage_prepare(&x, *state, own_refused_here);
    enter_own(&x);
    stage_finish(&x);
}

static void mc162_closed_by_a_thread_that_the_callback_waits_for(void **state) {
    struct stage x;

    stage_prepare(&x, *state, own_refused_there);
    enter_own(&x);
    stage_finish(&x);
}

/* Where threads are not refused, the close waits for the entry; the callback does not wait. */
static const char *close_own(void *arg) {
    struct stage *x = arg;

    atomic_store(&x->calling, true);
    TN_WORKER_STATUS(tn_scope_close(x->own), TN_OK);
    return NULL;
}

static tn_status own_closed_meanwhile(void *context, const tn_load_request *request) {
    struct stage *x = context;

    (void)request;
    x->called = true;
    spec_b_start(&x->thread, close_own, x);
    if (!spec_b_wait(&x->calling, SPEC_B_PATIENCE_MS))
        x->text = "the second thread does not run";
    spec_b_sleep(20);
    return TN_OK;
}

static void a_close_meanwhile_waits_for_the_entry(void **state) {
    struct stage x;
    const char *text;

    stage_prepare(&x, *state, own_closed_meanwhile);
    x.own =
        SCOPE(x.m, "own", RESERVE({P, 8, "own"}), ENTER(ENSURE(x.src, P)), LEAVE(DROP(x.src, P)));
    assert_ok(tn_scope_enter(x.own));
    text = spec_b_join(&x.thread);
    assert_null_text(text);
    assert_false(tn_scope_active(x.own));
    assert_transitions(scope_report(x.own), 0, 1, 1, ENSURE(x.src, P), DROP(x.src, P));
    destroy_scope(x.own);
    stage_finish(&x);
}

/* M193: also if that thread began to wait for the entry before the callback began. */
static const char *close_refused(void *arg) {
    struct stage *x = arg;

    atomic_store(&x->calling, true);
    TN_WORKER_STATUS(tn_scope_close(x->own), TN_ERR_REENTRANCY);
    return NULL;
}

static void start_the_closer(void *context, const void *data) {
    struct stage *x = context;

    (void)data;
    spec_b_start(&x->thread, close_refused, x);
    (void)spec_b_wait(&x->calling, SPEC_B_PATIENCE_MS);
    spec_b_sleep(20);
}

static tn_status wait_for_the_closer(void *context, const tn_load_request *request) {
    struct stage *x = context;

    (void)request;
    x->called = true;
    x->text = spec_b_join(&x->thread);
    return TN_OK;
}

static void mc162_closed_by_a_thread_that_waits_for_the_entry_already(void **state) {
    struct stage x;
    tn_handle v;

    stage_prepare(&x, *state, wait_for_the_closer);
    v = adopt_rep(x.f, x.m, P);
    x.own = SCOPE(x.m, "own", ENTER(ENSURE(v, N), ENSURE(x.src, P)), LEAVE(DROP(v, N)));
    tt_on_copy(start_the_closer, &x);
    assert_ok(tn_scope_enter(x.own));
    tt_on_copy(NULL, NULL);
    assert_true(tn_scope_active(x.own));
    close_scope(x.own);
    assert_replicas(x.m, v, P);
    stage_finish(&x);
}

/* ---- A callback of an exit action, and callbacks of payloads -------------------------------- */

static tn_status own_exit_refused(void *context, const tn_load_request *request) {
    struct stage *x = context;

    (void)request;
    x->called = true;
    if (tn_scope_close(x->own) != TN_ERR_REENTRANCY)
        x->text = "a scope was closed inside its own close";
    else if (tn_scope_enter(x->own) != TN_ERR_MISUSE)
        x->text = "a scope was entered inside its own close";
    return TN_OK;
}

static void mc162_closed_by_a_callback_of_its_own_exit(void **state) {
    struct stage x;

    stage_prepare(&x, *state, own_exit_refused);
    x.own = SCOPE(x.m, "own", LEAVE(ENSURE(x.src, P)));
    assert_ok(tn_scope_enter(x.own));
    assert_ok(tn_scope_close(x.own));
    assert_transitions(scope_report(x.own), 0, 0, 1, ENSURE(x.src, P));
    destroy_scope(x.own);
    stage_finish(&x);
}

static void nested_in_copy(void *context, const void *data) {
    struct stage *x = context;

    (void)data;
    if (!x->called)
        x->text = scopes_are_refused(x);
    x->called = true;
}

static void nested_calls_of_a_copy_callback_are_refused(void **state) {
    struct stage x;

    stage_prepare(&x, *state, NULL);
    ensure(x.m, x.src, P);
    tt_on_copy(nested_in_copy, &x);
    ensure(x.m, x.src, N);
    tt_on_copy(NULL, NULL);
    stage_finish(&x);
}

/* Inside a callback of one manager, scopes of another work. */
static tn_status scope_of_the_other(void *context, const tn_load_request *request) {
    struct stage *x = context;

    (void)request;
    x->called = true;
    if (tn_scope_enter(x->own) != TN_OK || tn_scope_close(x->own) != TN_OK)
        x->text = "a scope of another manager was refused";
    return TN_OK;
}

static void scopes_of_other_managers_work_inside_a_callback(void **state) {
    struct stage x;
    tn_manager *other;

    stage_prepare(&x, *state, scope_of_the_other);
    other = MANAGER(x.f);
    x.own = SCOPE(other, "other", RESERVE({P, 8, "r"}));
    ensure(x.m, x.src, P);
    destroy_scope(x.own);
    stage_finish(&x);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(mc162_refused_inside_a_callback),
    SPEC_SERIAL(mc162_refused_on_every_thread),
    SPEC_CONCURRENT(scopes_of_other_threads_go_on_beside_a_callback),
    SPEC_BOTH(mc162_closed_by_a_callback_of_its_own_entry),
    SPEC_SERIAL(mc162_closed_by_a_thread_that_the_callback_waits_for),
    SPEC_SERIAL(mc162_closed_by_a_thread_that_waits_for_the_entry_already),
    SPEC_CONCURRENT(a_close_meanwhile_waits_for_the_entry),
    SPEC_BOTH(mc162_closed_by_a_callback_of_its_own_exit),
    SPEC_BOTH(nested_calls_of_a_copy_callback_are_refused),
    SPEC_BOTH(scopes_of_other_managers_work_inside_a_callback),
};

TN_TEST_MAIN("spec.scope_guard", tests)
