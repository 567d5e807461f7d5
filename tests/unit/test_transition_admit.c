/* SPDX-License-Identifier: MIT */
/*
 * src/transition/admit.c: a plan that loses what it wants to remove between its look and its claim,
 * each time (M171, M256). It is refused like one that found it protected, and nothing is left.
 */
#include "core_fixture.h"

/* A reader that is there whenever the plan claims, and gone whenever it looks. */
static struct reader {
    tn_manager *m;
    tn_handle h;
    tn_lease lease;
    tn_hold held;
    bool holds;      /* else it leases */
    unsigned visits; /* how often it has come */
} reader;

static _Thread_local bool watched; /* the thread whose points count */

static const char *come(int index, void *arg) {
    (void)index;
    (void)arg;
    reader.visits++;
    if (reader.holds)
        TN_WORKER_STATUS(tn_manager_hold(reader.m, &reader.h, 1, N, &reader.held), TN_OK);
    else
        TN_WORKER_STATUS(tn_manager_acquire(reader.m, &reader.h, 1, N, NULL, &reader.lease), TN_OK);
    return NULL;
}

static const char *leave(int index, void *arg) {
    (void)index;
    (void)arg;
    TN_WORKER_STATUS(tn_lease_release(&reader.lease, 0), TN_OK);
    TN_WORKER_STATUS(tn_hold_release(&reader.held), TN_OK);
    return NULL;
}

static void at_point(enum tn__point point, void *object) {
    (void)object;
    if (!watched)
        return;
    if (point == TN__POINT_ADMIT)
        assert_null_text(tn_test_workers_run(1, come, NULL));
    else if (point == TN__POINT_PIN_VERSION)
        assert_null_text(tn_test_workers_run(1, leave, NULL));
}

static tn_status run_watched(const tn_action *actions, size_t count) {
    tn_status status;

    watched = true;
    at_points(at_point);
    status = tn_manager_execute_actions(reader.m, "unlucky", actions, count, NULL, NULL);
    at_points(NULL);
    watched = false;
    return status;
}

static void prepare(struct spec *f, bool holds) {
    NEED_POINTS();
    memset(&reader, 0, sizeof(reader));
    reader.m = MANAGER(f);
    reader.h = adopt_rep(f, reader.m, P);
    ensure(reader.m, reader.h, N);
    reader.holds = holds;
}

static void assert_refusal(const tn_action *actions, size_t index, uint32_t reason,
                           uint32_t verdict) {
    const tn_error *e = tn_last_error();

    assert_int_equal(e->status, TN_ERR_PLAN);
    assert_int_equal(e->cause_status, TN_ERR_IN_USE);
    assert_int_equal(e->reason, reason);
    assert_int_equal(e->phase, TN_PHASE_EXECUTE);
    assert_int_equal(e->failed_index, index);
    assert_int_equal(e->action_kind, actions[index].kind);
    assert_handle(e->action_handle, reader.h);
    assert_handle(e->handle, reader.h);
    assert_at(e->at, N);
    assert_int_equal(e->verdict, verdict);
    assert_int_equal(e->use_count + e->hold_count, 1);
    assert_string_equal(e->plan, "unlucky");
    assert_true(reader.visits > 1); /* it was tried again */
}

static void removal_that_is_lost_each_time_is_refused(void **state) {
    const tn_location to[] = {P, C0};

    for (size_t i = 0; i < 2; i++) {
        const tn_action actions[] = {tn_action_ensure((prepare(*state, i != 0), reader.h), to[i]),
                                     tn_action_drop(reader.h, N)};
        assert_status(run_watched(actions, 2), TN_ERR_PLAN);
        assert_refusal(actions, 1, TN_REASON_PROTECTED,
                       i != 0 ? TN_VERDICT_BLOCKED : TN_VERDICT_AFTER_LEASES);
        assert_null_text(leave(0, NULL));
        assert_replicas(reader.m, reader.h, P, N);
        assert_int_equal(trace_count(reader.m), 1); /* nothing ran */
        assert_ok(tn_manager_execute_actions(reader.m, NULL, actions, 2, NULL, NULL));
        assert_int_equal(mat(reader.m, reader.h, P).use_count, 0);
    }
}

static void discard_that_is_lost_each_time_is_refused(void **state) {
    tn_action action;

    prepare(*state, false);
    action = tn_action_discard(reader.h);
    assert_status(run_watched(&action, 1), TN_ERR_PLAN);
    assert_refusal(&action, 0, TN_REASON_DISCARD_PROTECTED, TN_VERDICT_AFTER_LEASES);
    assert_null_text(leave(0, NULL));
    assert_replicas(reader.m, reader.h, P, N); /* all or nothing (M111) */
    discard(reader.m, reader.h);
}

static void move_that_is_lost_each_time_is_refused(void **state) {
    tn_action action;

    prepare(*state, false);
    action = tn_action_move(reader.h, C1, N);
    assert_status(run_watched(&action, 1), TN_ERR_PLAN);
    assert_refusal(&action, 0, TN_REASON_SOURCE_PROTECTED, TN_VERDICT_AFTER_LEASES);
    assert_null_text(leave(0, NULL));
    assert_replicas(reader.m, reader.h, P, N);
    assert_locations(reader.m, P, N);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(removal_that_is_lost_each_time_is_refused),
    SPEC_BOTH(discard_that_is_lost_each_time_is_refused),
    SPEC_BOTH(move_that_is_lost_each_time_is_refused),
};

TN_TEST_MAIN("unit.transition_admit", tests)
