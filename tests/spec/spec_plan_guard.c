/* SPDX-License-Identifier: MIT */
/*
 * Explanations and sequences from callbacks and in a forked child: their part of cases MC156 and
 * MC160 (M189..M192, M197, D3).
 */
#include "spec_guard_common.h"

#include "spec_plan_common.h"

#include <sys/wait.h>
#include <unistd.h>

/* One test runs at a time. */
static struct plan_guard {
    struct guard g;
    tn_plan *plan;
    tn_explanation *explanation; /* made before */
    tn_plan_report *report;      /* same */
    const char *(*body)(struct plan_guard *x);
} guarded;

static tn_status explain(struct plan_guard *x) {
    tn_explanation *e = NULL;
    tn_status status = tn_manager_explain(x->g.m, x->plan, TN_VERSION_ANY, &e);

    tn_explanation_drop(e);
    return status;
}

static tn_status run_three(struct plan_guard *x) {
    const tn_action actions[] = {ENSURE(x->g.spare, C1), DROP(x->g.spare, N),
                                 ENSURE(x->g.spare, N)};

    return tn_manager_execute_actions(x->g.m, NULL, actions, 3, NULL, NULL);
}

static tn_status run_none(struct plan_guard *x) {
    return tn_manager_execute_actions(x->g.m, NULL, NULL, 0, NULL, NULL);
}

/* M189; also what would be stale, or infeasible. */
static const char *refused(struct plan_guard *x) {
    const tn_action last = DISCARD(x->g.v);
    tn_explanation *e = NULL;

    TN_WORKER_STATUS(explain(x), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_manager_explain(x->g.m, x->plan, 0, &e), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(run_three(x), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(run_none(x), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_manager_execute_actions(x->g.m, NULL, &last, 1, NULL, NULL),
                     TN_ERR_REENTRANCY);
    TN_WORKER_CHECK(e == NULL);
    return NULL;
}

/* M190: plans can be made and read, and so can what was made before. */
static const char *usable(struct plan_guard *x) {
    tn_plan_spec spec = PLAN_SPEC(RESERVE({P, 1, "r"}), ENTER(ENSURE(x->g.v, P)));
    tn_explanation_info head = TN_EXPLANATION_INFO_INIT;
    tn_plan_report_info report = TN_PLAN_REPORT_INFO_INIT;
    tn_predicted_peak peaks[8];
    const tn_action *actions = NULL;
    tn_plan *plan = NULL;
    size_t count = 0;

    TN_WORKER_STATUS(tn_plan_create(&spec, &plan), TN_OK);
    TN_WORKER_STATUS(tn_plan_actions(plan, TN_PHASE_ENTER, &actions, &count), TN_OK);
    TN_WORKER_CHECK(count == 1 && strcmp(tn_plan_name(plan), "plan") == 0);
    tn_plan_destroy(plan);
    TN_WORKER_STATUS(tn_explanation_read(x->explanation, &head), TN_OK);
    TN_WORKER_CHECK(head.feasible && tn_explanation_problem(x->explanation) == NULL);
    count = 8;
    TN_WORKER_STATUS(tn_explanation_peaks(x->explanation, peaks, &count), TN_OK);
    TN_WORKER_STATUS(tn_plan_report_read(x->report, &report), TN_OK);
    TN_WORKER_CHECK(report.complete == 1);
    return NULL;
}

/* M191: what needs no state is checked before the guard. */
static const char *arguments_come_first(struct plan_guard *x) {
    const tn_action alien = {0};
    tn_explanation *e = NULL;

    TN_WORKER_STATUS(tn_manager_execute_actions(x->g.m, NULL, NULL, 1, NULL, NULL), TN_ERR_KIND);
    TN_WORKER_STATUS(tn_manager_execute_actions(x->g.m, NULL, &alien, 1, NULL, NULL), TN_ERR_KIND);
    TN_WORKER_STATUS(tn_manager_execute_actions(x->g.m, " ", NULL, 0, NULL, NULL), TN_ERR_VALUE);
    TN_WORKER_STATUS(tn_manager_explain(x->g.m, NULL, TN_VERSION_ANY, &e), TN_ERR_KIND);
    return NULL;
}

static const char *all_refused(struct plan_guard *x) {
    const char *text = refused(x);

    text = text != NULL ? text : usable(x);
    return text != NULL ? text : arguments_come_first(x);
}

/* D3: what does not need the callback's own transition just works on other threads. */
static const char *all_work(struct plan_guard *x) {
    TN_WORKER_STATUS(explain(x), TN_OK);
    TN_WORKER_STATUS(run_three(x), TN_OK);
    TN_WORKER_STATUS(run_none(x), TN_OK);
    return usable(x);
}

static void prepare(struct spec *f,
                    tn_status (*callback)(void *context, const tn_load_request *request),
                    const char *(*body)(struct plan_guard *x)) {
    struct plan_guard *x = &guarded;

    memset(x, 0, sizeof(*x));
    guard_prepare(&x->g, f, callback);
    x->body = body;
    x->plan =
        PLAN(RESERVE({C1, 8, "r"}), ENTER(ENSURE(x->g.spare, C0)), EXIT(DROP(x->g.spare, C0)));
    assert_ok(tn_manager_explain(x->g.m, x->plan, TN_VERSION_ANY, &x->explanation));
    assert_ok(tn_manager_execute_actions(x->g.m, NULL, NULL, 0, NULL, &x->report));
}

static void finish(void) {
    struct plan_guard *x = &guarded;

    assert_true(atomic_load(&x->g.entered));
    assert_null_text(x->g.text);
    tn_explanation_drop(x->explanation);
    tn_plan_report_drop(x->report);
    assert_ok(explain(x)); /* the guard is down */
    assert_ok(run_three(x));
    tn_plan_destroy(x->plan);
    guard_finish(&x->g);
}

static tn_status on_own_thread(void *context, const tn_load_request *request) {
    (void)context;
    (void)request;
    guarded.g.text = guarded.body(&guarded);
    atomic_store(&guarded.g.entered, true);
    return TN_OK;
}

static const char *body(void *arg) { return guarded.body(arg); }

static tn_status on_second_thread(void *context, const tn_load_request *request) {
    struct spec_b_thread thread;

    (void)context;
    (void)request;
    spec_b_start(&thread, body, &guarded);
    guarded.g.text = spec_b_join(&thread);
    atomic_store(&guarded.g.entered, true);
    return TN_OK;
}

static void mc156_plans_on_the_callbacks_thread(void **state) {
    prepare(*state, on_own_thread, all_refused);
    assert_rises(guarded.g.m, 1, ensure(guarded.g.m, guarded.g.loading, P));
    finish();
}

static void mc156_plans_on_a_second_thread(void **state) {
    prepare(*state, on_second_thread, all_refused);
    assert_rises(guarded.g.m, 1, ensure(guarded.g.m, guarded.g.loading, P));
    finish();
}

/* The callback of a sequence's own load. */
static void mc156_plans_inside_a_sequence(void **state) {
    prepare(*state, on_own_thread, all_refused);
    assert_ok(RUN(guarded.g.m, ENSURE(guarded.g.loading, P), DROP(guarded.g.loading, P)).status);
    finish();
}

static void mc156_plans_of_other_threads_go_on(void **state) {
    prepare(*state, on_second_thread, all_work);
    ensure(guarded.g.m, guarded.g.loading, P);
    finish();
}

static void in_copy(void *context, const void *data) {
    (void)context;
    (void)data;
    if (!atomic_exchange(&guarded.g.entered, true))
        guarded.g.text = all_refused(&guarded);
}

static void mc160_plans_inside_a_copy_callback(void **state) {
    prepare(*state, NULL, NULL);
    tt_on_copy(in_copy, NULL);
    assert_ok(RUN(guarded.g.m, ENSURE(guarded.g.spare, C1), DROP(guarded.g.spare, C1)).status);
    tt_on_copy(NULL, NULL);
    finish();
}

static void plans_in_a_forked_child(void **state) {
    int wait_status = 0;
    pid_t child;

    prepare(*state, NULL, NULL);
    atomic_store(&guarded.g.entered, true);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int bad = explain(&guarded) != TN_ERR_FORKED;

        bad |= (run_three(&guarded) != TN_ERR_FORKED) << 1;
        bad |= (run_none(&guarded) != TN_ERR_FORKED) << 2;
        bad |= (usable(&guarded) != NULL) << 3;
        _exit(bad);
    }
    assert_int_equal(waitpid(child, &wait_status, 0), child);
    assert_true(WIFEXITED(wait_status));
    assert_int_equal(WEXITSTATUS(wait_status), 0);
    finish(); /* the parent goes on */
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(mc156_plans_on_the_callbacks_thread),
    SPEC_SERIAL(mc156_plans_on_a_second_thread),
    SPEC_BOTH(mc156_plans_inside_a_sequence),
    SPEC_CONCURRENT(mc156_plans_of_other_threads_go_on),
    SPEC_BOTH(mc160_plans_inside_a_copy_callback),
    SPEC_BOTH(plans_in_a_forked_child),
};

TN_TEST_MAIN("spec.plan_guard", tests)
