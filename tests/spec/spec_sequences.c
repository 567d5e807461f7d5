/* SPDX-License-Identifier: MIT */
/* Sequences of actions: cases MC116, MC126, MC127, MC129..MC131, MC136, MC157 and MC176
 * (M184..M188, M245..M248). */
#include "spec_plan_common.h"

static void bad_source(tt_source *s) {
    s->fail_from = 1;
    s->fail_count = UINT64_MAX;
    s->fail_code = 4711;
    s->fail_message = "the disk is gone";
}

/* ---- MC116, MC126..MC130 --------------------------------------------------------------------- */

static void mc116_three_actions(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *s = spec_source(f);
    tn_handle h = register_src(m, s);
    struct spec_run r;

    assert_rises(m, 3, r = RUN(m, ENSURE(h, P), DROP(h, P), ENSURE(h, P)));
    assert_ok(r.status);
    assert_int_equal(r.head.complete, 1);
    assert_int_equal(r.count, 3);
    assert_int_equal(r.head.enter_count, 3);
    assert_report(r.transitions[0], TN_ACTION_ENSURE, 0, P, P);
    assert_report(r.transitions[1], TN_ACTION_DROP, 0, P, NOWHERE);
    assert_report(r.transitions[2], TN_ACTION_ENSURE, 0, P, P);
    assert_replicas(m, h, P);
    assert_int_equal(s->calls, 2);
    assert_int_equal(trace_count(m), 3);
    for (size_t i = 0; i < 3; i++) { /* the trace has the same reports */
        tn_report t = trace_at(m, i);

        assert_memory_equal(&t, &r.transitions[i], sizeof(t));
    }
}

static void mc126_execute_a_replica_made_by_the_plan(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *s = spec_source(f);
    tn_handle h = register_src(m, s);
    struct spec_run r = RUN(m, MOVE(h, P), MOVE_FROM(h, N, P));

    assert_ok(r.status);
    assert_report(r.transitions[0], TN_ACTION_MOVE, 0, P, P);
    assert_report(r.transitions[1], TN_ACTION_MOVE, 0, P, N);
    assert_int_equal(s->calls, 1);
    assert_replicas(m, h, N);
}

static void mc127_execute_a_source_that_is_not_resident(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *s = spec_source(f);
    tn_handle h = register_src(m, s);
    char *before = spec_describe(m, 0);

    assert_refused(RUN(m, MOVE_FROM(h, P, P)), 0, TN_ERR_UNAVAILABLE,
                   TN_REASON_SOURCE_NOT_RESIDENT);
    assert_failed_action(*tn_last_error(), TN_ACTION_MOVE, h, P);
    assert_at(tn_last_error()->action_from, P);
    assert_int_equal(tn_last_error()->verdict, TN_VERDICT_NONE);
    /* Nor does the part before it run (M186). */
    assert_refused(RUN(m, ENSURE(h, P), DROP(h, P), MOVE_FROM(h, N, P)), 2, TN_ERR_UNAVAILABLE,
                   TN_REASON_SOURCE_NOT_RESIDENT);
    assert_int_equal(s->calls, 0);
    assert_int_equal(trace_count(m), 0);
    assert_unchanged(m, before, 0);
}

static void mc129_source_that_fails(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *s = spec_source(f);
    tn_handle first = register_src(m, spec_source(f));
    tn_handle second = register_src(m, s);
    struct spec_run r;

    bad_source(s);
    assert_rises(m, 1, r = RUN(m, ENSURE(first, P), ENSURE(second, P), DROP(first, P)));
    assert_broken(r, 1, TN_ERR_SOURCE);
    assert_failed_action(r.error, TN_ACTION_ENSURE, second, P);
    assert_int_equal(r.error.native_code, 4711); /* the fields of the cause */
    assert_non_null(strstr(r.error.message, "the disk is gone"));
    assert_string_equal(r.plan, "run");
    assert_report(r.transitions[0], TN_ACTION_ENSURE, 0, P, P);
    assert_handle(r.transitions[0].action.handle, first);
    assert_replicas(m, first, P); /* completed actions are never undone (M88) */
    assert_replicas(m, second);
    assert_int_equal(used(m, P), 32);
    assert_int_equal(reserved(m, P), 0);
    assert_peaks(m, P, 32, 64);
    s->fail_from = 0;
    assert_ok(RUN(m, ENSURE(second, P)).status);
}

static void mc130_empty_sequences_and_their_streams(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_stream s0 = spec_stream(f, 0);
    tn_stream s1 = spec_stream(f, 1);
    tn_transfer_stream map[2] = {{C0, s0}, {C1, s1}};
    tn_run_options options = TN_RUN_OPTIONS_INIT;
    struct spec_run r = spec_run(m, NULL, NULL, 0, NULL);
    struct {
        tn_transfer_stream entry;
        tn_status status;
    } bad[] = {
        {{P, (tn_stream)(uintptr_t)0x5eed0}, TN_ERR_KIND}, /* no stream */
        {{P, NULL}, TN_ERR_KIND},
        {{C0, NULL}, TN_ERR_KIND},
        {{C0, (tn_stream)(uintptr_t)0x5eed0}, TN_ERR_KIND},
        {{P, s0}, TN_ERR_VALUE},
        {{N, s0}, TN_ERR_VALUE},
        {{C0, s1}, TN_ERR_VALUE},
        {{C2, s0}, TN_ERR_VALUE},
        {{{17, 0}, s0}, TN_ERR_KIND},
        {{NOWHERE, s0}, TN_ERR_KIND},
        {{C0, TN_STREAM_PER_THREAD}, TN_ERR_VALUE},
    };

    assert_ok(r.status);
    assert_string_equal(r.plan, "actions");
    assert_int_equal(r.count, 0);
    options.streams = map;
    options.stream_count = 2;
    assert_ok(spec_run(m, "run", NULL, 0, &options).status);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        options.expected_version = TN_VERSION_ANY;
        map[1] = bad[i].entry; /* each entry is checked, whether or not it is used */
        if (map[1].at.kind == TN_LOCATION_CUDA && map[1].at.index == 0)
            map[0] = (tn_transfer_stream){C1, s1};
        else
            map[0] = (tn_transfer_stream){C0, s0};
        assert_status(spec_run(m, "run", NULL, 0, &options).status, bad[i].status);
        options.expected_version = 5; /* stale comes first (M127) */
        assert_stale(spec_run(m, "run", NULL, 0, &options).status, 5, 0);
    }
    options.expected_version = TN_VERSION_ANY;
    options.streams = NULL; /* no map */
    assert_status(spec_run(m, "run", NULL, 0, &options).status, TN_ERR_KIND);
    options.expected_version = 5;
    assert_stale(spec_run(m, "run", NULL, 0, &options).status, 5, 0);
    map[0] = map[1] = (tn_transfer_stream){C0, s0}; /* one location twice */
    options.expected_version = TN_VERSION_ANY;
    options.streams = map;
    assert_status(spec_run(m, "run", NULL, 0, &options).status, TN_ERR_VALUE);
    assert_int_equal(version(m), 0);
    assert_locations(m);
}

/* Each action uses the entry for its destination (M219); a copy that is queued there waits for what
 * the stream has to do before. */
static void mc130_the_map_is_used(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    tn_stream s0 = spec_stream(f, 0);
    tn_stream s1 = spec_stream(f, 1);
    tn_transfer_stream map[] = {{C1, s1}, {C0, s0}};
    tn_run_options options = TN_RUN_OPTIONS_INIT;

    options.streams = map;
    options.stream_count = 2;
    spec_busy(f, s0);
    spec_busy(f, s1);
    assert_ok(RUN_WITH(m, &options, ENSURE(h, N)).status);
    assert_false(spec_idle(f, s0) || spec_idle(f, s1));
    assert_ok(RUN(m, ENSURE(h, C0), DROP(h, C0)).status); /* the device's own stream */
    assert_false(spec_idle(f, s0));
    assert_ok(RUN_WITH(m, &options, ENSURE(h, C0)).status);
    assert_true(spec_idle(f, s0));
    spec_busy(f, s0);
    spec_busy(f, s1);
    assert_ok(RUN_WITH(m, &options, MOVE_FROM(h, C1, N)).status);
    assert_true(spec_idle(f, s1));
    spec_finish(f);
}

/* ---- MC131, MC136, MC157, MC176 -------------------------------------------------------------- */

static void mc131_what_is_no_sequence(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *s = spec_source(f);
    tn_handle h = register_src(m, s);
    tn_action alien = ENSURE(h, P);
    tn_action good = ENSURE(h, P);
    tn_explanation *e = NULL;
    char *before = spec_describe(m, 0);

    alien.kind = TN_ACTION_NONE;
    assert_status(spec_run(m, "run", NULL, 1, NULL).status, TN_ERR_KIND);
    assert_status(RUN(m, good, alien).status, TN_ERR_KIND);
    alien.kind = 5;
    assert_status(RUN(m, alien).status, TN_ERR_KIND);
    assert_status(spec_run(m, " ", &good, 1, NULL).status, TN_ERR_VALUE);
    assert_status(spec_run(m, "", &good, 1, NULL).status, TN_ERR_VALUE);
    assert_status(tn_manager_explain(m, NULL, TN_VERSION_ANY, &e), TN_ERR_KIND);
    assert_null(e);
    assert_int_equal(s->calls, 0);
    assert_int_equal(trace_count(m), 0);
    assert_unchanged(m, before, 0);
}

static void mc136_shared_storage_is_not_foreseen(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_backing *storage = tt_backing_make(f->driver, P, 32);
    tn_handle owner = spec_adopt(m, tt_row(storage, 0, 32), P, TN_REPLICABLE);
    tt_source *s = spec_source(f);
    tn_handle first = register_src(m, spec_source(f));
    tn_handle second = register_src(m, s);
    struct spec_run r;

    s->give = tt_row(storage, 0, 32);
    tt_backing_free(storage);
    assert_feasible(EXPLAIN(m, ENTER(ENSURE(first, P), ENSURE(second, P))));
    r = RUN(m, ENSURE(first, P), ENSURE(second, P));
    assert_broken(r, 1, TN_ERR_OWNERSHIP);
    assert_failed_action(r.error, TN_ACTION_ENSURE, second, P);
    assert_int_equal(r.error.reason, TN_REASON_STORAGE_SHARED);
    assert_int_equal(r.error.owner_count, 1);
    assert_handle(r.error.owners[0].handle, owner);
    assert_at(r.error.owners[0].at, P);
    assert_replicas(m, first, P);
    assert_replicas(m, second);
}

static tn_status pass_the_refusal_on(void *context, const tn_load_request *request) {
    size_t count = 0;

    (void)request;
    return tn_manager_locations(context, NULL, &count);
}

static void mc157_a_refusal_that_is_passed_on_in_a_sequence(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *s = spec_source(f);
    tn_handle h = register_src(m, s);
    struct spec_run r;

    s->hook = pass_the_refusal_on;
    s->hook_context = m;
    assert_rises(m, 0, r = RUN(m, ENSURE(h, P)));
    assert_broken(r, 0, TN_ERR_REENTRANCY);
    assert_failed_action(r.error, TN_ACTION_ENSURE, h, P);
    assert_replicas(m, h);
    assert_int_equal(value(m, h).has_source, 1);
    assert_peaks(m, P, 0, 32);
    s->hook = NULL; /* the guard is down */
    assert_ok(RUN(m, ENSURE(h, P)).status);
}

static void mc176_a_broken_sequence_is_traced_as_far_as_it_went(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *s = spec_source(f);
    tn_handle first = register_src(m, spec_source(f));
    tn_handle third = register_src(m, s);
    struct spec_run r;

    bad_source(s);
    assert_feasible(EXPLAIN(m, ENTER(ENSURE(first, P), DROP(first, P), ENSURE(third, P))));
    assert_int_equal(trace_count(m), 0);
    r = RUN(m, ENSURE(first, P), ENSURE(first, P), ENSURE(third, P), DROP(first, P));
    assert_broken(r, 2, TN_ERR_SOURCE);
    assert_int_equal(trace_count(m), 2);
    assert_report(trace_at(m, 0), TN_ACTION_ENSURE, 0, P, P);
    assert_report(trace_at(m, 1), TN_ACTION_ENSURE, 1, NOWHERE, P);
    assert_replicas(m, first, P);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(mc116_three_actions),
    SPEC_BOTH(mc126_execute_a_replica_made_by_the_plan),
    SPEC_BOTH(mc127_execute_a_source_that_is_not_resident),
    SPEC_BOTH(mc129_source_that_fails),
    SPEC_BOTH(mc130_empty_sequences_and_their_streams),
    SPEC_BOTH(mc130_the_map_is_used),
    SPEC_BOTH(mc131_what_is_no_sequence),
    SPEC_BOTH(mc136_shared_storage_is_not_foreseen),
    SPEC_BOTH(mc157_a_refusal_that_is_passed_on_in_a_sequence),
    SPEC_BOTH(mc176_a_broken_sequence_is_traced_as_far_as_it_went),
};

TN_TEST_MAIN("spec.sequences", tests)
