/* SPDX-License-Identifier: MIT */
/* State versions, reaping, explanations and sequences: cases MC87..MC91 (M126, M127, M162..M164). */
#include "spec_plan_common.h"

/* At C0, with a released lease whose work is not complete. */
static tn_handle pending(struct spec *f, tn_manager *m, tn_stream stream) {
    tn_handle h = register_src(m, spec_source(f));
    tn_lease lease;

    ensure(m, h, C0);
    lease = acquire(m, h, C0, stream);
    spec_busy(f, stream);
    release(&lease);
    return h;
}

static void mc087_explain_does_not_reap(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = pending(f, m, spec_stream(f, 0));
    uint64_t before = version(m);

    spec_finish(f);
    assert_feasible(EXPLAIN(m, ENTER(DROP(h, C0)))); /* it sees that nothing protects (M164) */
    assert_int_equal(version(m), before + 1);
    assert_int_equal(version(m), before + 1);
}

static void mc088_complete_work_makes_a_version_stale(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = pending(f, m, spec_stream(f, 0));
    tn_plan *plan = PLAN(ENTER(ENSURE(h, P)));
    tn_run_options options = TN_RUN_OPTIONS_INIT;
    uint64_t w = version(m);

    spec_finish(f);
    assert_ok(spec_explain_status(m, plan, w));
    options.expected_version = w;
    assert_stale(RUN_WITH(m, &options, ENSURE(h, P)).status, w, w + 1);
    assert_replicas(m, h, C0);
    options.expected_version = w + 1;
    assert_ok(RUN_WITH(m, &options, ENSURE(h, P)).status);
    tn_plan_destroy(plan);
}

static void mc089_a_reservation_makes_a_version_stale(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *s = spec_source(f);
    tn_handle h = register_src(m, s);
    tn_plan *plan = PLAN(ENTER(ENSURE(h, P)));
    tn_run_options options = TN_RUN_OPTIONS_INIT;
    uint64_t w = version(m);

    reserve(m, P, 0, "r");
    options.expected_version = w;
    assert_stale(spec_explain_status(m, plan, w), w, w + 1);
    assert_stale(RUN_WITH(m, &options, ENSURE(h, P)).status, w, w + 1);
    /* An infeasible one and an empty one are stale as well (M127, M185). */
    assert_stale(RUN_WITH(m, &options, DROP(h, C2)).status, w, w + 1);
    assert_stale(spec_run(m, "run", NULL, 0, &options).status, w, w + 1);
    assert_replicas(m, h);
    assert_int_equal(s->calls, 0);
    assert_int_equal(trace_count(m), 0);
    assert_int_equal(version(m), w + 1);
    tn_plan_destroy(plan);
}

/* Compared for equality: a future number is stale too (M126). */
static void mc090_future_versions_are_stale(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_plan *plan = PLAN(RESERVE({P, 1, "r"}));
    tn_run_options options = TN_RUN_OPTIONS_INIT;
    uint64_t future[] = {1, (uint64_t)INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX - 1};

    for (size_t i = 0; i < sizeof(future) / sizeof(future[0]); i++) {
        options.expected_version = future[i];
        assert_stale(spec_explain_status(m, plan, future[i]), future[i], 0);
        assert_stale(spec_run(m, "run", NULL, 0, &options).status, future[i], 0);
    }
    assert_ok(spec_explain_status(m, plan, 0));
    options.expected_version = 0;
    assert_ok(spec_run(m, "run", NULL, 0, &options).status);
    tn_plan_destroy(plan);
}

/* Whether a lease is still to be reaped; the version before and after that. */
static bool unreaped(struct spec *f, tn_manager *m, uint64_t *after) {
    tn_status status;

    spec_fault(f, TN_SIM_EVENT_QUERY, 1, 0, TN_ERR_DRIVER, 1);
    status = tn_manager_state_version(m, after);
    spec_repair(f);
    if (status != TN_OK)
        assert_int_equal(status, TN_ERR_DRIVER);
    *after = version(m);
    return status != TN_OK;
}

static void mc091_sequences_reap(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_stream s = spec_stream(f, 0);
    tn_handle h = pending(f, m, s);
    tn_handle last = adopt_rep(f, m, P);
    tn_run_options options = TN_RUN_OPTIONS_INIT;
    uint64_t before = version(m);
    uint64_t after;
    tn_lease lease;

    spec_finish(f);
    assert_ok(RUN(m, ENSURE(h, P), DROP(h, C0)).status); /* nothing protects it any longer */
    assert_false(unreaped(f, m, &after));
    assert_int_equal(after - before, 2 + 1);
    for (int i = 0; i < 3; i++) { /* empty, infeasible, stale ones do as well (M252) */
        ensure(m, h, C0);
        lease = acquire(m, h, C0, s);
        spec_busy(f, s);
        release(&lease);
        before = version(m);
        spec_finish(f);
        options.expected_version = before;
        if (i == 0)
            assert_ok(spec_run(m, "run", NULL, 0, NULL).status);
        else if (i == 1)
            assert_refused(RUN(m, DROP(last, P)), 0, TN_ERR_OWNERSHIP, TN_REASON_LAST_COPY);
        else
            assert_stale(RUN_WITH(m, &options, ENSURE(h, P)).status, before, before + 1);
        assert_false(unreaped(f, m, &after));
        assert_int_equal(after - before, 1);
    }
}

static tn_status finish_the_work(void *context, const tn_load_request *request) {
    (void)request;
    return tn_sim_run(context);
}

/* Again before each of their actions (M162). */
static void mc091_each_action_of_a_sequence_reaps(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = pending(f, m, spec_stream(f, 0));
    tt_source *s = spec_source(f);
    tn_handle first = register_src(m, s);
    uint64_t before = version(m);
    uint64_t after;

    s->hook = finish_the_work;
    s->hook_context = f->sim;
    assert_int_equal(mat(m, h, C0).pending_count, 1);
    assert_ok(RUN(m, ENSURE(first, P), ENSURE(first, P)).status);
    assert_false(unreaped(f, m, &after));
    assert_int_equal(after - before, 1 + 1);
}

static void mc091_explain_does_not_reap(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = pending(f, m, spec_stream(f, 0));
    tn_plan *plan = PLAN(ENTER(ENSURE(h, P)), EXIT(DROP(h, C0)));
    uint64_t before = version(m);
    uint64_t after;

    spec_finish(f);
    assert_ok(spec_explain_status(m, plan, TN_VERSION_ANY));
    assert_true(unreaped(f, m, &after));
    assert_int_equal(after - before, 1);
    tn_plan_destroy(plan);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(mc087_explain_does_not_reap),
    SPEC_BOTH(mc088_complete_work_makes_a_version_stale),
    SPEC_BOTH(mc089_a_reservation_makes_a_version_stale),
    SPEC_BOTH(mc090_future_versions_are_stale),
    SPEC_BOTH(mc091_sequences_reap),
    SPEC_BOTH(mc091_each_action_of_a_sequence_reaps),
    SPEC_BOTH(mc091_explain_does_not_reap),
};

TN_TEST_MAIN("spec.plan_versions", tests)
