/* SPDX-License-Identifier: MIT */
/*
 * Who waits for whom: a close of a scope for its entry or for another close, a close of the manager
 * for both; a second entry for nobody (M201, M216, M236, M241, G25).
 */
#include "spec_scope_common.h"

#include <sched.h>

/* ---- Waiting for an entry in progress ------------------------------------------------------- */

/* An entry, or a close, that stands still in the copy of its only action. */
struct still {
    tn_manager *m;
    tn_scope *s;
    const char *(*first)(void *arg); /* what stands still; NULL: the entry */
    struct spec_b_thread enterer;
    struct spec_b_thread other;
    atomic_bool copying;
    atomic_bool go;
    atomic_bool calling;
    tn_status status; /* of the other's call */
};

static void stand_still(void *context, const void *data) {
    struct still *x = context;

    (void)data;
    atomic_store(&x->copying, true);
    (void)spec_b_wait(&x->go, SPEC_B_PATIENCE_MS);
}

static const char *enter_body(void *arg) {
    struct still *x = arg;

    TN_WORKER_STATUS(tn_scope_enter(x->s), TN_OK);
    return NULL;
}

static const char *close_scope_body(void *arg) {
    struct still *x = arg;

    atomic_store(&x->calling, true);
    x->status = tn_scope_close(x->s);
    return NULL;
}

static const char *enter_again_body(void *arg) {
    struct still *x = arg;

    atomic_store(&x->calling, true);
    x->status = tn_scope_enter(x->s);
    return NULL;
}

static const char *force_manager_body(void *arg) {
    struct still *x = arg;

    atomic_store(&x->calling, true);
    x->status = tn_manager_close(x->m, TN_CLOSE_FORCE);
    return NULL;
}

static const char *close_manager_body(void *arg) {
    struct still *x = arg;

    atomic_store(&x->calling, true);
    x->status = tn_manager_close(x->m, 0);
    return NULL;
}

/* Whether the other's call was over before the first went on. */
static bool run_still(struct still *x, const char *(*body)(void *arg)) {
    const char *texts[2];
    bool early;

    tt_on_copy(stand_still, x);
    spec_b_start(&x->enterer, x->first != NULL ? x->first : enter_body, x);
    (void)spec_b_wait(&x->copying, SPEC_B_PATIENCE_MS);
    spec_b_start(&x->other, body, x);
    (void)spec_b_wait(&x->calling, SPEC_B_PATIENCE_MS);
    (void)spec_b_wait(&x->other.done, 40); /* in most cases it waits */
    early = atomic_load(&x->other.done);
    atomic_store(&x->go, true);
    texts[0] = spec_b_join(&x->enterer);
    texts[1] = spec_b_join(&x->other);
    tt_on_copy(NULL, NULL);
    assert_null_text(texts[0]);
    assert_null_text(texts[1]);
    return early;
}

static void a_close_waits_for_an_entry_in_progress(void **state) {
    struct spec *f = *state;
    struct still x = {.m = MANAGER(f)};
    tn_handle v = adopt_rep(f, x.m, P);

    x.s = SCOPE(x.m, "slow", RESERVE({P, 8, "r"}), ENTER(ENSURE(v, N)), LEAVE(DROP(v, N)));
    assert_false(run_still(&x, close_scope_body));
    assert_ok(x.status);
    assert_false(tn_scope_active(x.s));
    assert_transitions(scope_report(x.s), 0, 1, 1, ENSURE(v, N), DROP(v, N));
    assert_replicas(x.m, v, P);
    assert_int_equal(reserved(x.m, P), 0);
    destroy_scope(x.s);
}

static void closing_the_manager_waits_for_an_entry(void **state) {
    struct spec *f = *state;
    struct still x = {.m = MANAGER(f)};
    tn_handle v = adopt_rep(f, x.m, P);

    x.s = SCOPE(x.m, "slow", RESERVE({P, 8, "r"}), ENTER(ENSURE(v, N)), LEAVE(DROP(v, N)));
    assert_false(run_still(&x, close_manager_body));
    assert_status(x.status, TN_ERR_IN_USE); /* its reservation */
    assert_true(tn_scope_active(x.s));
    assert_replicas(x.m, v, P, N);
    close_scope(x.s);

    x = (struct still){.m = x.m};
    x.s = SCOPE(x.m, "light", ENTER(ENSURE(v, N)), LEAVE(DROP(v, N)));
    assert_false(run_still(&x, close_manager_body));
    assert_ok(x.status);
    assert_status(tn_scope_close(x.s), TN_ERR_CLOSED);
    destroy_scope(x.s);
    assert_int_equal(trace_count(x.m), 3);
}

static void a_forced_close_waits_for_an_entry(void **state) {
    struct spec *f = *state;
    struct still x = {.m = MANAGER(f)};
    tn_handle v = adopt_rep(f, x.m, P);

    x.s = SCOPE(x.m, "forced", RESERVE({P, 8, "r"}), ENTER(ENSURE(v, N)), LEAVE(DROP(v, N)));
    assert_false(run_still(&x, force_manager_body));
    assert_ok(x.status);
    assert_int_equal(trace_count(x.m), 1); /* the entry was not torn */
    assert_status(tn_scope_close(x.s), TN_ERR_CLOSED);
    assert_no_news(x.s);
    destroy_scope(x.s);
}

static void a_second_entry_waits_for_nobody(void **state) {
    struct spec *f = *state;
    struct still x = {.m = MANAGER(f)};
    tn_handle v = adopt_rep(f, x.m, P);

    x.s = SCOPE(x.m, "twice", ENTER(ENSURE(v, N)));
    assert_true(run_still(&x, enter_again_body));
    assert_status(x.status, TN_ERR_MISUSE);
    close_scope(x.s);
}

/* ---- Waiting for a close in progress --------------------------------------------------------- */

static const char *first_close_body(void *arg) {
    struct still *x = arg;

    TN_WORKER_STATUS(tn_scope_close(x->s), TN_OK);
    return NULL;
}

static struct still enter_still(struct spec *f, tn_handle *v) {
    struct still x = {.m = MANAGER(f), .first = first_close_body};

    *v = adopt_rep(f, x.m, P);
    x.s = SCOPE(x.m, "slow exit", RESERVE({P, 8, "r"}), LEAVE(ENSURE(*v, N)));
    assert_ok(tn_scope_enter(x.s));
    return x;
}

static void a_close_waits_for_a_close_in_progress(void **state) {
    tn_handle v;
    struct still x = enter_still(*state, &v);

    assert_false(run_still(&x, close_scope_body));
    assert_ok(x.status);
    assert_transitions(scope_report(x.s), 0, 0, 1, ENSURE(v, N));
    assert_replicas(x.m, v, P, N);
    destroy_scope(x.s);
}

static void an_entry_during_the_close_is_a_misuse(void **state) {
    tn_handle v;
    struct still x = enter_still(*state, &v);

    assert_true(run_still(&x, enter_again_body));
    assert_status(x.status, TN_ERR_MISUSE);
    assert_false(tn_scope_active(x.s));
    destroy_scope(x.s);
}

static void closing_the_manager_waits_for_an_exit(void **state) {
    tn_handle v;
    struct still x = enter_still(*state, &v);

    assert_false(run_still(&x, close_manager_body));
    assert_ok(x.status); /* the reservation was released first */
    assert_transitions(scope_report(x.s), 0, 0, 1, ENSURE(v, N));
    destroy_scope(x.s);
}

/* ---- The end of the manager meanwhile -------------------------------------------------------- */

struct ends {
    tn_manager *m;
    tn_scope *s;
    tn_status entered, closed, forced;
};

static const char *end_worker(int index, void *arg) {
    struct ends *x = arg;

    if (index == 0)
        x->entered = tn_scope_enter(x->s);
    else if (index == 1)
        x->forced = tn_manager_close(x->m, TN_CLOSE_FORCE);
    else
        while ((x->closed = tn_scope_close(x->s)) == TN_ERR_MISUSE)
            sched_yield();
    return NULL;
}

/* Whoever closes a scope finds it closed afterwards, whatever the manager does. */
static void a_close_beside_a_forced_close(void **state) {
    struct spec *f = *state;

    for (int round = 0; round < 150; round++) {
        struct ends x = {.m = MANAGER(f)};
        tn_handle v = adopt_rep(f, x.m, P);

        x.s = SCOPE(x.m, "ends", RESERVE({P, 8, "r"}), ENTER(ENSURE(v, N)), LEAVE(DROP(v, N)));
        assert_null_text(tn_test_workers_run(3, end_worker, &x));
        assert_ok(x.forced);
        assert_true(x.entered == TN_OK || x.entered == TN_ERR_CLOSED);
        assert_true(x.closed == TN_OK || x.closed == TN_ERR_CLOSED);
        assert_false(tn_scope_active(x.s));
        assert_ok(tn_scope_close(x.s));
        destroy_scope(x.s);
        spec_destroy(f, x.m);
    }
    assert_int_equal(spec_warnings_all(f), 0);
}

/* ---- D3: a thread inside a source callback never waits for a plan ---------------------------- */

struct crossing {
    struct still y; /* the other manager's scope, in its entry */
    tn_status status;
};

static tn_status close_the_others_scope(void *context, const tn_load_request *request) {
    struct crossing *x = context;

    (void)request;
    x->status = tn_scope_close(x->y.s);
    return TN_OK;
}

static void a_callback_does_not_wait_for_an_entry(void **state) {
    struct spec *f = *state;
    struct crossing x = {.y = {.m = MANAGER(f)}, .status = TN_OK};
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, x.y.m, P);
    tt_source *source = spec_source(f);
    tn_handle src = register_src(m, source);
    const char *text;

    source->hook = close_the_others_scope;
    source->hook_context = &x;
    x.y.s = SCOPE(x.y.m, "other", ENTER(ENSURE(v, N)), LEAVE(DROP(v, N)));
    tt_on_copy(stand_still, &x.y);
    spec_b_start(&x.y.enterer, enter_body, &x.y);
    (void)spec_b_wait(&x.y.copying, SPEC_B_PATIENCE_MS);
    ensure(m, src, P);
    atomic_store(&x.y.go, true);
    text = spec_b_join(&x.y.enterer);
    tt_on_copy(NULL, NULL);
    assert_null_text(text);
    assert_status(x.status, TN_ERR_REENTRANCY);
    assert_true(tn_scope_active(x.y.s));
    close_scope(x.y.s);
}

/* An exit action that would wait for bytes in flight fails instead; the rest is not run. */
static void a_callback_does_not_wait_for_bytes(void **state) {
    struct spec *f = *state;
    struct crossing x = {.y = {.m = MANAGER(f, {P, 32})}, .status = TN_OK};
    tn_manager *m = MANAGER(f);
    tn_handle slow = adopt_rep(f, x.y.m, N);
    tn_handle v = adopt_rep(f, x.y.m, N);
    tt_source *source = spec_source(f);
    tn_handle src = register_src(m, source);
    tn_scope *claims = SCOPE(x.y.m, "claims", ENTER(ENSURE(slow, P)));
    tn_scope *s = SCOPE(x.y.m, "exit", RESERVE({N, 8, "r"}), LEAVE(ENSURE(v, P)));
    const char *text;

    source->hook = close_the_others_scope;
    source->hook_context = &x;
    assert_ok(tn_scope_enter(s));
    x.y.s = claims;
    tt_on_copy(stand_still, &x.y);
    spec_b_start(&x.y.enterer, enter_body, &x.y);
    (void)spec_b_wait(&x.y.copying, SPEC_B_PATIENCE_MS);
    x.y.s = s;
    ensure(m, src, P);
    atomic_store(&x.y.go, true);
    text = spec_b_join(&x.y.enterer);
    tt_on_copy(NULL, NULL);
    assert_null_text(text);
    assert_status(x.status, TN_ERR_PLAN_EXEC);
    assert_int_equal(scope_exit_error(s)->cause_status, TN_ERR_REENTRANCY);
    assert_int_equal(info(x.y.m).reservation_count, 0);
    close_scope(claims);
    destroy_scope(s);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(a_close_waits_for_an_entry_in_progress),
    SPEC_BOTH(closing_the_manager_waits_for_an_entry),
    SPEC_BOTH(a_forced_close_waits_for_an_entry),
    SPEC_BOTH(a_second_entry_waits_for_nobody),
    SPEC_BOTH(a_close_waits_for_a_close_in_progress),
    SPEC_BOTH(an_entry_during_the_close_is_a_misuse),
    SPEC_BOTH(closing_the_manager_waits_for_an_exit),
    SPEC_BOTH(a_close_beside_a_forced_close),
    SPEC_CONCURRENT(a_callback_does_not_wait_for_an_entry),
    SPEC_CONCURRENT(a_callback_does_not_wait_for_bytes),
};

TN_TEST_MAIN("spec.scope_waits", tests)
