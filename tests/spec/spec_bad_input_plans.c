/* SPDX-License-Identifier: MIT */
/* What a program can get wrong: plan.h, and the sequences and reports of scope.h. */
#include "spec_bad_input.h"

#include "spec_plan_common.h"

/* ---- Plans ----------------------------------------------------------------------------------- */

static tn_status create(const tn_plan_spec *spec) {
    tn_plan *plan = NULL;
    tn_status status = tn_plan_create(spec, &plan);

    assert_int_equal(plan != NULL, status == TN_OK);
    tn_plan_destroy(plan);
    return status;
}

static void plan_create_arguments(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = register_src(m, spec_source(f));
    tn_plan_spec spec = PLAN_SPEC(ENTER(ENSURE(h, P)));
    tn_plan_spec empty = TN_PLAN_SPEC_INIT;

    assert_status(tn_plan_create(&spec, NULL), TN_ERR_KIND);
    assert_status(create(NULL), TN_ERR_KIND);
    CHECK_IN(tn_plan_spec, &spec, create(it));
    assert_status(create(&empty), TN_ERR_KIND); /* no name */
    empty.name = "empty";
    assert_ok(create(&empty));
    empty.reclaim_count = 1;
    assert_status(create(&empty), TN_ERR_KIND);
    empty.reclaim_count = 0;
    empty.reservation_count = 1;
    assert_status(create(&empty), TN_ERR_KIND);
    empty.reservation_count = 0;
    empty.enter_count = SIZE_MAX;
    assert_status(create(&empty), TN_ERR_KIND);
    empty.enter_count = 0;
    empty.exit_count = 1;
    assert_status(create(&empty), TN_ERR_KIND);
    empty.exit_count = 0;
    empty.enter = spec.enter; /* a list of no members */
    assert_ok(create(&empty));
    tn_plan_destroy(NULL);
}

static void plan_names_and_labels(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_plan_spec spec = TN_PLAN_SPEC_INIT;
    tn_reservation_spec wanted = {P, 1, "r"};
    const tn_reservation_spec *list = NULL;
    tn_plan *plan = NULL;
    char text[300];
    size_t count = 0;

    memset(text, 'x', sizeof(text));
    text[256] = '\0';
    spec.name = text;
    assert_status(create(&spec), TN_ERR_VALUE);
    spec.name = "good";
    spec.reservations = &wanted;
    spec.reservation_count = 1;
    wanted.label = text;
    assert_status(create(&spec), TN_ERR_VALUE);
    wanted.label = " \t\n\v\f\r";
    assert_status(create(&spec), TN_ERR_VALUE);
    wanted.label = NULL;
    assert_status(create(&spec), TN_ERR_KIND);
    text[255] = '\0'; /* the longest */
    spec.name = wanted.label = text;
    plan = spec_plan(&spec);
    assert_string_equal(tn_plan_name(plan), text);
    assert_ok(tn_plan_reservations(plan, &list, &count));
    assert_int_equal(count, 1);
    assert_string_equal(list[0].label, text);
    assert_string_equal(spec_explain(m, plan).plan, text);
    assert_string_equal(spec_explain(m, plan).labels[0], text);
    tn_plan_destroy(plan);
}

static void plan_members(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = register_src(m, spec_source(f));
    tn_handle none = {0, 0, NULL};
    tn_action bad[] = {
        {0, 0, h, P, NOWHERE},
        {5, 0, h, P, NOWHERE},
        {UINT32_MAX, 0, h, P, NOWHERE},
        ENSURE(none, P),
        DISCARD(none),
        ENSURE(((tn_handle){h.manager, h.index, NULL}), P),
        ENSURE(((tn_handle){0, h.index, h.type}), P),
        ENSURE(h, NOWHERE),
        ENSURE(h, bad_kind),
        MOVE(h, NOWHERE),
        MOVE(h, bad_kind),
        MOVE_FROM(h, P, bad_kind),
        DROP(h, NOWHERE),
        DROP(h, bad_kind),
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_status(create(&PLAN_SPEC(RECLAIM(bad[i]))), TN_ERR_KIND);
        assert_status(create(&PLAN_SPEC(ENTER(ENSURE(h, P), bad[i]))), TN_ERR_KIND);
        assert_status(create(&PLAN_SPEC(EXIT(bad[i]))), TN_ERR_KIND);
        assert_status(RUN(m, ENSURE(h, P), bad[i]).status, TN_ERR_KIND);
    }
    assert_status(create(&PLAN_SPEC(RESERVE({NOWHERE, 1, "r"}))), TN_ERR_KIND);
    assert_status(create(&PLAN_SPEC(RESERVE({bad_kind, 1, "r"}))), TN_ERR_KIND);
    assert_status(create(&PLAN_SPEC(RESERVE({P, too_many_bytes, "r"}))), TN_ERR_VALUE);
    assert_status(create(&PLAN_SPEC(RESERVE({P, UINT64_MAX, "r"}))), TN_ERR_VALUE);
    assert_ok(create(&PLAN_SPEC(RESERVE({P, INT64_MAX, "r"}, {C2, 0, "looked up later"}))));
    assert_int_equal(trace_count(m), 0);
    assert_replicas(m, h);
    assert_int_equal(version(m), 2);
}

/* Sums that do not fit into 63 bits are more than any budget. */
static void plan_bytes_that_overflow(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {N, INT64_MAX});
    tn_handle h = register_src(m, spec_source(f));
    struct spec_explained e;

    e = EXPLAIN(m, RESERVE({N, INT64_MAX, "all"}, {N, INT64_MAX, "again"}), ENTER(ENSURE(h, N)));
    assert_problem(e, TN_PHASE_RESERVE, 1, TN_REASON_RESERVATION_BUDGET);
    assert_int_equal(e.head.verdict, TN_VERDICT_NEVER);
    e = EXPLAIN(m, RESERVE({N, INT64_MAX, "all"}), ENTER(ENSURE(h, N)));
    assert_problem(e, TN_PHASE_ENTER, 0, TN_REASON_BUDGET);
    assert_int_equal(info(m).reservation_count, 0);
}

static void plan_reads(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = register_src(m, spec_source(f));
    tn_plan *plan = PLAN(ENTER(ENSURE(h, P)));
    const tn_action *actions = (const tn_action *)f;
    const tn_reservation_spec *list = (const tn_reservation_spec *)f;
    uint32_t bad[] = {TN_PHASE_NONE, TN_PHASE_EXECUTE, TN_PHASE_RESERVE, 6, UINT32_MAX};
    size_t count = 77;

    assert_null(tn_plan_name(NULL));
    assert_status(tn_plan_actions(NULL, TN_PHASE_ENTER, &actions, &count), TN_ERR_KIND);
    assert_status(tn_plan_actions(plan, TN_PHASE_ENTER, NULL, &count), TN_ERR_KIND);
    assert_status(tn_plan_actions(plan, TN_PHASE_ENTER, &actions, NULL), TN_ERR_KIND);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_status(tn_plan_actions(plan, bad[i], &actions, &count), TN_ERR_KIND);
    assert_status(tn_plan_reservations(NULL, &list, &count), TN_ERR_KIND);
    assert_status(tn_plan_reservations(plan, NULL, &count), TN_ERR_KIND);
    assert_status(tn_plan_reservations(plan, &list, NULL), TN_ERR_KIND);
    assert_ptr_equal(actions, f);
    assert_ptr_equal(list, f);
    assert_int_equal(count, 77);
    assert_ok(tn_plan_reservations(plan, &list, &count));
    assert_int_equal(count, 0);
    assert_null(list);
    tn_plan_destroy(plan);
}

/* ---- Explanations ---------------------------------------------------------------------------- */

static void explain_arguments(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_plan *plan = PLAN(RESERVE({P, 1, "r"}));
    tn_explanation *e = NULL;

    assert_status(tn_manager_explain(NULL, plan, TN_VERSION_ANY, &e), TN_ERR_KIND);
    assert_status(tn_manager_explain(m, NULL, TN_VERSION_ANY, &e), TN_ERR_KIND);
    assert_status(tn_manager_explain(m, plan, TN_VERSION_ANY, NULL), TN_ERR_KIND);
    assert_status(tn_manager_explain(m, plan, 17, &e), TN_ERR_STALE);
    assert_ok(tn_manager_close(m, 0)); /* what needs no state comes first (M251) */
    assert_status(tn_manager_explain(m, NULL, TN_VERSION_ANY, &e), TN_ERR_KIND);
    assert_status(tn_manager_explain(m, plan, TN_VERSION_ANY, &e), TN_ERR_CLOSED);
    assert_status(tn_manager_explain(m, plan, 17, &e), TN_ERR_CLOSED);
    assert_null(e);
    tn_explanation_drop(NULL);
    tn_plan_destroy(plan);
}

/* An infeasible plan with two of everything: actions, peaks, reservations, blockers, protected. */
static tn_explanation *two_of_each(struct spec *f, tn_manager *m) {
    tn_handle h = adopt_rep(f, m, P);
    tn_plan *plan;
    tn_explanation *e = NULL;

    ensure(m, h, N);
    hold(m, h, P);
    hold(m, h, N);
    plan = PLAN(RESERVE({P, 1, "a"}, {P, 2, "b"}), ENTER(ENSURE(h, P), DISCARD(h)));
    assert_ok(tn_manager_explain(m, plan, TN_VERSION_ANY, &e));
    tn_plan_destroy(plan); /* the explanation stays valid */
    return e;
}

static void explanation_reads(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_explanation *e = two_of_each(f, m);
    tn_action_explanation actions[3] = {{.size = sizeof(actions[0])}};
    tn_predicted_peak peaks[3];
    tn_blocker blockers[3];
    tn_location at[3] = {NOWHERE, NOWHERE, NOWHERE};
    const tn_reservation_spec *list = NULL;
    size_t count = 1;

    assert_status(tn_explanation_read(NULL, &(tn_explanation_info)TN_EXPLANATION_INFO_INIT),
                  TN_ERR_KIND);
    assert_status(tn_explanation_read(e, NULL), TN_ERR_KIND);
    CHECK_OUT(tn_explanation_info, tn_explanation_read(e, it));
    assert_null(tn_explanation_problem(NULL));
    assert_int_equal(tn_explanation_problem(e)->reason, TN_REASON_DISCARD_PROTECTED);

    assert_status(tn_explanation_actions(NULL, actions, &count), TN_ERR_KIND);
    assert_status(tn_explanation_actions(e, actions, NULL), TN_ERR_KIND);
    assert_status(tn_explanation_actions(e, NULL, &count), TN_ERR_KIND);
    actions[0].size = 1;
    assert_status(tn_explanation_actions(e, actions, &count), TN_ERR_KIND);
    actions[0].size = sizeof(actions[0]);
    assert_status(tn_explanation_peaks(NULL, peaks, &count), TN_ERR_KIND);
    assert_status(tn_explanation_peaks(e, peaks, NULL), TN_ERR_KIND);
    assert_status(tn_explanation_peaks(e, NULL, &count), TN_ERR_KIND);
    assert_status(tn_explanation_blockers(NULL, blockers, &count), TN_ERR_KIND);
    assert_status(tn_explanation_blockers(e, blockers, NULL), TN_ERR_KIND);
    assert_status(tn_explanation_blockers(e, NULL, &count), TN_ERR_KIND);
    assert_status(tn_explanation_protected(NULL, at, &count), TN_ERR_KIND);
    assert_status(tn_explanation_protected(e, at, NULL), TN_ERR_KIND);
    assert_status(tn_explanation_protected(e, NULL, &count), TN_ERR_KIND);
    assert_int_equal(count, 1);
    assert_status(tn_explanation_reservations(NULL, &list, &count), TN_ERR_KIND);
    assert_status(tn_explanation_reservations(e, NULL, &count), TN_ERR_KIND);
    assert_status(tn_explanation_reservations(e, &list, NULL), TN_ERR_KIND);
    assert_null(list);
    tn_explanation_drop(e);
}

/* No room, little room, and more than enough. */
static void explanation_lists(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_explanation *e = two_of_each(f, m);
    tn_explanation_info head = TN_EXPLANATION_INFO_INIT;

    for (size_t room = 0; room <= 3; room++) {
        tn_action_explanation actions[3] = {{.size = sizeof(actions[0])}};
        tn_predicted_peak peaks[3] = {{NOWHERE, 0}};
        tn_blocker blockers[3] = {{.kind = 0}};
        tn_location at[3] = {NOWHERE, NOWHERE, NOWHERE};
        size_t count = room;

        assert_ok(tn_explanation_actions(e, room != 0 ? actions : NULL, &count));
        assert_int_equal(count, 2);
        assert_int_equal(actions[0].action.kind, room > 0 ? TN_ACTION_ENSURE : TN_ACTION_NONE);
        assert_int_equal(actions[1].action.kind, room > 1 ? TN_ACTION_DISCARD : TN_ACTION_NONE);
        assert_int_equal(actions[2].action.kind, TN_ACTION_NONE);
        count = room;
        assert_ok(tn_explanation_peaks(e, room != 0 ? peaks : NULL, &count));
        assert_int_equal(count, 2);
        assert_at(peaks[0].at, room > 0 ? P : NOWHERE);
        assert_at(peaks[1].at, room > 1 ? N : NOWHERE);
        count = room;
        assert_ok(tn_explanation_blockers(e, room != 0 ? blockers : NULL, &count));
        assert_int_equal(count, 2);
        assert_int_equal(blockers[0].kind, room > 0 ? TN_BLOCKER_HOLD : TN_BLOCKER_NONE);
        assert_int_equal(blockers[1].kind, room > 1 ? TN_BLOCKER_HOLD : TN_BLOCKER_NONE);
        count = room;
        assert_ok(tn_explanation_protected(e, room != 0 ? at : NULL, &count));
        assert_int_equal(count, 2);
        assert_at(at[0], room > 0 ? P : NOWHERE);
        assert_at(at[1], room > 1 ? N : NOWHERE);
    }
    spec_destroy(f, m); /* an explanation outlives its manager */
    assert_ok(tn_explanation_read(e, &head));
    assert_string_equal(head.plan, "plan");
    assert_int_equal(tn_explanation_problem(e)->reason, TN_REASON_DISCARD_PROTECTED);
    tn_explanation_drop(e);
}

/* An array of a caller with larger elements: its stride is his. */
static void explanation_actions_of_another_size(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_explanation *e = two_of_each(f, m);
    struct larger {
        tn_action_explanation a;
        uint64_t more;
    } rows[2];
    size_t count = 2;

    memset(rows, 0xff, sizeof(rows));
    rows[0].a.size = sizeof(rows[0]);
    assert_ok(tn_explanation_actions(e, &rows[0].a, &count));
    assert_int_equal(rows[0].a.action.kind, TN_ACTION_ENSURE);
    assert_int_equal(rows[1].a.action.kind, TN_ACTION_DISCARD);
    assert_int_equal(rows[0].more, 0);
    assert_int_equal(rows[1].more, 0);
    tn_explanation_drop(e);
}

/* ---- Sequences and reports ------------------------------------------------------------------- */

static void execute_arguments(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = register_src(m, spec_source(f));
    tn_action action = ENSURE(h, P);
    tn_run_options options = TN_RUN_OPTIONS_INIT;
    tn_plan_report *out = NULL;
    char name[300];

    memset(name, 'x', sizeof(name));
    name[256] = '\0';
    assert_status(tn_manager_execute_actions(NULL, "n", &action, 1, NULL, &out), TN_ERR_KIND);
    assert_status(spec_run(m, "n", NULL, 1, NULL).status, TN_ERR_KIND);
    assert_status(spec_run(m, "n", NULL, SIZE_MAX, NULL).status, TN_ERR_KIND);
    assert_status(spec_run(m, "", &action, 1, NULL).status, TN_ERR_VALUE);
    assert_status(spec_run(m, "\t \n", &action, 1, NULL).status, TN_ERR_VALUE);
    assert_status(spec_run(m, name, &action, 1, NULL).status, TN_ERR_VALUE);
    CHECK_IN(tn_run_options, &options, spec_run(m, "n", NULL, 0, it).status);
    assert_null(out);
    assert_int_equal(trace_count(m), 0);
    name[255] = '\0'; /* the longest */
    assert_string_equal(spec_run(m, name, NULL, 0, NULL).plan, name);
    assert_ok(tn_manager_execute_actions(m, NULL, &action, 1, NULL, NULL)); /* no report wanted */
    assert_replicas(m, h, P);
    assert_ok(tn_manager_close(m, 0)); /* what needs no state comes first (M251) */
    assert_status(spec_run(m, " ", &action, 1, NULL).status, TN_ERR_VALUE);
    assert_status(spec_run(m, "n", NULL, 1, NULL).status, TN_ERR_KIND);
    assert_status(spec_run(m, "n", &action, 1, NULL).status, TN_ERR_CLOSED);
}

static void plan_report_reads(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = register_src(m, spec_source(f));
    tn_action actions[2] = {ENSURE(h, P), DROP(h, P)};
    tn_report rows[3] = {{.size = sizeof(rows[0])}};
    tn_plan_report_info head = TN_PLAN_REPORT_INFO_INIT;
    tn_plan_report *report = NULL;
    size_t count = 1;

    assert_ok(tn_manager_execute_actions(m, "n", actions, 2, NULL, &report));
    assert_status(tn_plan_report_read(NULL, &head), TN_ERR_KIND);
    assert_status(tn_plan_report_read(report, NULL), TN_ERR_KIND);
    CHECK_OUT(tn_plan_report_info, tn_plan_report_read(report, it));
    assert_status(tn_plan_report_transitions(NULL, rows, &count), TN_ERR_KIND);
    assert_status(tn_plan_report_transitions(report, rows, NULL), TN_ERR_KIND);
    assert_status(tn_plan_report_transitions(report, NULL, &count), TN_ERR_KIND);
    rows[0].size = 1;
    assert_status(tn_plan_report_transitions(report, rows, &count), TN_ERR_KIND);
    assert_int_equal(count, 1);
    rows[0].size = sizeof(rows[0]);
    for (size_t room = 0; room <= 3; room++) {
        count = room;
        memset(rows, 0, sizeof(rows));
        rows[0].size = sizeof(rows[0]);
        assert_ok(tn_plan_report_transitions(report, room != 0 ? rows : NULL, &count));
        assert_int_equal(count, 2);
        assert_int_equal(rows[0].action.kind, room > 0 ? TN_ACTION_ENSURE : TN_ACTION_NONE);
        assert_int_equal(rows[1].action.kind, room > 1 ? TN_ACTION_DROP : TN_ACTION_NONE);
        assert_int_equal(rows[2].action.kind, TN_ACTION_NONE);
    }
    spec_destroy(f, m); /* a report outlives its manager */
    assert_ok(tn_plan_report_read(report, &head));
    assert_string_equal(head.plan, "n");
    tn_plan_report_drop(report);
    tn_plan_report_drop(NULL);
}

static const struct CMUnitTest tests[] = {
    SPEC_SERIAL(plan_create_arguments),
    SPEC_SERIAL(plan_names_and_labels),
    SPEC_BOTH(plan_members),
    SPEC_BOTH(plan_bytes_that_overflow),
    SPEC_SERIAL(plan_reads),
    SPEC_BOTH(explain_arguments),
    SPEC_SERIAL(explanation_reads),
    SPEC_SERIAL(explanation_lists),
    SPEC_SERIAL(explanation_actions_of_another_size),
    SPEC_BOTH(execute_arguments),
    SPEC_BOTH(plan_report_reads),
};

TN_TEST_MAIN("spec.bad_input_plans", tests)
