/* SPDX-License-Identifier: MIT */
/* What a program can get wrong in each call of scope.h but the sequences; and lifetimes that a scope
 * shares with its caller: reservations, the manager. */
#include "spec_bad_input.h"
#include "spec_scope_common.h"

/* ---- Arguments ------------------------------------------------------------------------------ */

static tn_status create_and_free(tn_manager *m, const tn_plan *plan,
                                 const tn_run_options *options) {
    tn_scope *s = NULL;
    tn_status status = tn_scope_create(m, plan, options, &s);

    if (status != TN_OK) {
        assert_null(s); /* written on TN_OK only */
        assert_int_equal(tn_last_error()->status, status);
        return status;
    }
    assert_non_null(s);
    destroy_scope(s);
    return status;
}

static void create_checks_its_arguments(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_plan *plan = PLAN("empty");
    tn_run_options options = TN_RUN_OPTIONS_INIT;

    assert_status(create_and_free(NULL, plan, NULL), TN_ERR_KIND);
    assert_status(create_and_free(m, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_scope_create(m, plan, NULL, NULL), TN_ERR_KIND);
    assert_ok(create_and_free(m, plan, NULL));
    assert_ok(create_and_free(m, plan, &options));
    CHECK_IN(tn_run_options, &options, create_and_free(m, plan, it));
    options.stream_count = 1;
    assert_status(create_and_free(m, plan, &options), TN_ERR_KIND); /* no list */
    tn_plan_destroy(plan);
    assert_int_equal(version(m), 0);
    assert_int_equal(spec_warnings_all(f), 0);
}

/* A list that claims more members than memory can hold is refused, whatever its pointer. */
static void create_refuses_a_list_that_cannot_be(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_plan *plan = PLAN("empty");
    tn_transfer_stream one = {C0, spec_stream(f, 0)};
    tn_run_options options = TN_RUN_OPTIONS_INIT;
    tn_status status;

    options.streams = &one;
    for (int shift = 40; shift < 64; shift++) { /* among them those whose sizes wrap */
        options.stream_count = (size_t)1 << shift;
        status = create_and_free(m, plan, &options);
        assert_true(status == TN_ERR_KIND || status == TN_ERR_VALUE ||
                    status == TN_ERR_HOST_MEMORY);
    }
    tn_plan_destroy(plan);
}

static void null_scopes_are_refused(void **state) {
    const tn_plan_report *report = NULL;
    const tn_error *error = NULL;
    size_t count = 0;

    (void)state;
    assert_status(tn_scope_enter(NULL), TN_ERR_KIND);
    assert_status(tn_scope_close(NULL), TN_ERR_KIND);
    assert_ok(tn_scope_destroy(NULL));
    assert_false(tn_scope_active(NULL));
    assert_int_equal(tn_scope_manager(NULL), 0);
    assert_null(tn_scope_plan(NULL));
    assert_true(tn_scope_expected_version(NULL) == TN_VERSION_ANY);
    assert_status(tn_scope_report(NULL, &report), TN_ERR_KIND);
    assert_status(tn_scope_partial_report(NULL, &report), TN_ERR_KIND);
    assert_status(tn_scope_exit_error(NULL, &error), TN_ERR_KIND);
    assert_status(tn_scope_reservations(NULL, NULL, &count), TN_ERR_KIND);
    tn_plan_report_drop(NULL);
}

static void null_outputs_are_refused(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_scope *s = SCOPE(m, "outputs", RESERVE({P, 1, "a"}, {P, 2, "b"}));
    tn_reservation some[3] = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
    size_t count = 1;

    assert_ok(tn_scope_enter(s));
    assert_status(tn_scope_report(s, NULL), TN_ERR_KIND);
    assert_status(tn_scope_partial_report(s, NULL), TN_ERR_KIND);
    assert_status(tn_scope_exit_error(s, NULL), TN_ERR_KIND);
    assert_status(tn_scope_reservations(s, some, NULL), TN_ERR_KIND);
    assert_status(tn_scope_reservations(s, NULL, &count), TN_ERR_KIND);
    assert_int_equal(count, 1);
    assert_ok(tn_scope_reservations(s, some, &count)); /* too little room: the total */
    assert_int_equal(count, 2);
    assert_non_null(some[0].record);
    assert_null(some[1].record);
    count = 3;
    assert_ok(tn_scope_reservations(s, some, &count));
    assert_int_equal(count, 2);
    assert_non_null(some[1].record);
    assert_null(some[2].record);
    close_scope(s);
}

static void reports_check_their_arguments(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_scope *s = SCOPE(m, "report", ENTER(ENSURE(v, N), ENSURE(v, P)));
    tn_plan_report_info head = TN_PLAN_REPORT_INFO_INIT;
    tn_report rows[2] = {TN_REPORT_INIT, TN_REPORT_INIT};
    const tn_plan_report *report;
    size_t count = 1;

    assert_ok(tn_scope_enter(s));
    assert_ok(tn_scope_close(s));
    report = scope_report(s);
    assert_status(tn_plan_report_read(NULL, &head), TN_ERR_KIND);
    assert_status(tn_plan_report_read(report, NULL), TN_ERR_KIND);
    CHECK_OUT(tn_plan_report_info, tn_plan_report_read(report, it));
    assert_status(tn_plan_report_transitions(NULL, rows, &count), TN_ERR_KIND);
    assert_status(tn_plan_report_transitions(report, rows, NULL), TN_ERR_KIND);
    assert_status(tn_plan_report_transitions(report, NULL, &count), TN_ERR_KIND);
    rows[0].size = 0;
    assert_status(tn_plan_report_transitions(report, rows, &count), TN_ERR_KIND);
    rows[0].size = sizeof rows[0];
    rows[1].no_op = 17;
    assert_ok(tn_plan_report_transitions(report, rows, &count));
    assert_int_equal(count, 2);
    assert_int_equal(rows[0].no_op, 0);
    assert_int_equal(rows[1].no_op, 17);
    count = 2;
    assert_ok(tn_plan_report_transitions(report, rows, &count));
    assert_int_equal(rows[1].no_op, 1);
    count = 0;
    assert_ok(tn_plan_report_transitions(report, NULL, &count));
    assert_int_equal(count, 2);
    destroy_scope(s);
}

/* Streams that do not belong where the map says; each entry must be looked at, used or not. */
static void odd_streams_are_refused_at_entry(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_stream good = spec_stream(f, 0);
    const struct {
        tn_transfer_stream entry;
        tn_status status;
    } odd[] = {{{C0, NULL}, TN_ERR_KIND},
               {{C0, no_stream}, TN_ERR_KIND},
               {{C0, TN_STREAM_PER_THREAD}, TN_ERR_VALUE},
               {{C1, good}, TN_ERR_VALUE},
               {{N, good}, TN_ERR_VALUE},
               {{NOWHERE, good}, TN_ERR_KIND},
               {{bad_kind, good}, TN_ERR_KIND},
               {{tn_location_cuda(200), good}, TN_ERR_VALUE}};
    char *before = spec_describe(m, 0);

    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        tn_transfer_stream map[2] = {{C0, good}, odd[i].entry};
        tn_run_options options = TN_RUN_OPTIONS_INIT;
        bool doubled = tn_location_equal(odd[i].entry.at, C0);
        tn_scope *s;

        options.streams = doubled ? map + 1 : map;
        options.stream_count = doubled ? 1 : 2;
        s = SCOPE_WITH(m, &options, "odd", ENTER(ENSURE(v, P)));
        assert_status(tn_scope_enter(s), odd[i].status);
        assert_false(tn_scope_active(s));
        destroy_scope(s);
    }
    assert_unchanged(m, before, 0);
    assert_int_equal(trace_count(m), 0);
}

/* M202: the version is compared before streams, and streams are looked at before the preflight. */
static void mc148_the_order_of_the_checks(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_transfer_stream wrong = {P, spec_stream(f, 0)};
    tn_run_options options = scope_expect(version(m) + 1);
    tn_scope *s;

    options.streams = &wrong;
    options.stream_count = 1;
    s = SCOPE_WITH(m, &options, "all wrong", ENTER(DROP(v, P)));
    assert_status(tn_scope_enter(s), TN_ERR_STALE);
    destroy_scope(s);
    options.expected_version = version(m);
    s = SCOPE_WITH(m, &options, "two wrong", ENTER(DROP(v, P)));
    assert_status(tn_scope_enter(s), TN_ERR_VALUE);
    destroy_scope(s);
    options.stream_count = 0;
    s = SCOPE_WITH(m, &options, "one wrong", ENTER(DROP(v, P)));
    assert_plan_error(tn_scope_enter(s), "one wrong", TN_PHASE_ENTER, 0, TN_REASON_LAST_COPY);
    assert_int_equal(tn_last_error()->cause_status, TN_ERR_OWNERSHIP);
    destroy_scope(s);
}

/* ---- Reservations that the caller touches --------------------------------------------------- */

static void a_reservation_released_by_hand_is_gone(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 64});
    tn_handle src = register_src(m, spec_source(f));
    tn_scope *s = SCOPE(m, "by hand", RESERVE({P, 8, "a"}, {P, 16, "b"}), ENTER(ENSURE(src, P)),
                        LEAVE(DROP(src, P)));
    tn_reservation_info row = {.size = sizeof row};
    tn_reservation first;

    assert_ok(tn_scope_enter(s));
    assert_int_equal(scope_reservations(s), 2);
    first = scope_reservation(s, 0);
    assert_ok(tn_reservation_read(&first, &row));
    assert_int_equal(row.bytes, 8);
    assert_string_equal(row.label, "a");
    assert_rises(m, 1, release_reservation(&first));
    assert_int_equal(reserved(m, P), 16);
    assert_rises(m, 2, assert_ok(tn_scope_close(s))); /* the drop, the other one */
    assert_int_equal(reserved(m, P), 0);
    assert_int_equal(scope_reservations(s), 0);
    assert_non_null(scope_report(s));
    destroy_scope(s);
    assert_int_equal(spec_warnings_all(f), 0);
}

/* A record that is used again for somebody else must not be released by the scope. */
static void a_reservation_released_by_hand_is_not_released_twice(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_scope *s = SCOPE(m, "reused", RESERVE({P, 8, "a"}));
    tn_reservation mine;
    tn_reservation other;

    assert_ok(tn_scope_enter(s));
    mine = scope_reservation(s, 0);
    release_reservation(&mine);
    other = reserve(m, P, 5, "other");
    assert_rises(m, 0, assert_ok(tn_scope_close(s)));
    assert_true(tn_reservation_active(&other));
    assert_int_equal(reserved(m, P), 5);
    destroy_scope(s);
    release_reservation(&other);
}

static void results_are_adopted_into_a_scopes_reservation(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 64});
    tn_handle src = register_src(m, spec_source(f));
    tn_scope *s =
        SCOPE(m, "compute", RESERVE({P, 32, "result"}), ENTER(ENSURE(src, P)), LEAVE(DROP(src, P)));
    tn_handle h = {0, 0, NULL};
    tn_reservation r;

    assert_ok(tn_scope_enter(s));
    r = scope_reservation(s, 0);
    assert_int_equal(remaining(m, P), 0);
    assert_rises(m, 1,
                 assert_ok(tn_manager_adopt_reserved(m, spec_v(f, P), P, TN_REPLICABLE, &r, &h)));
    assert_int_equal(used(m, P), 64);
    assert_int_equal(reserved(m, P), 0);
    assert_true(tn_reservation_active(&r)); /* with nothing left */
    assert_rises(m, 2, assert_ok(tn_scope_close(s)));
    assert_false(tn_reservation_active(&r));
    assert_int_equal(used(m, P), 32);
    assert_replicas(m, h, P);
    assert_peaks(m, P, 64, 64);
    destroy_scope(s);
}

/* ---- Scopes and their manager --------------------------------------------------------------- */

static void a_scope_may_outlive_its_manager(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    uint64_t id = tn_manager_id(m);
    tn_handle src = register_src(m, spec_source(f));
    tn_scope *entered =
        SCOPE(m, "entered", RESERVE({P, 8, "left"}), ENTER(ENSURE(src, P)), LEAVE(DROP(src, P)));
    tn_scope *light = SCOPE(m, "light", ENTER(ENSURE(src, P)), LEAVE(DROP(src, P)));
    tn_scope *fresh = SCOPE(m, "fresh", ENTER(ENSURE(src, P)));
    tn_scope *over = SCOPE(m, "over", ENTER(ENSURE(src, P)));
    tn_scope *abandoned = SCOPE(m, "abandoned", RESERVE({P, 4, "left too"}));
    tn_reservation r;

    assert_ok(tn_scope_enter(entered));
    assert_ok(tn_scope_enter(light));
    assert_ok(tn_scope_enter(abandoned));
    assert_ok(tn_scope_enter(over));
    assert_ok(tn_scope_close(over));
    r = scope_reservation(entered, 0);
    spec_destroy(f, m);
    assert_int_equal(tn_scope_manager(entered), id);
    assert_string_equal(tn_plan_name(tn_scope_plan(entered)), "entered");
    assert_transitions(scope_report(over), 0, 1, 0, ENSURE(src, P));
    assert_ok(tn_scope_close(over));
    assert_ok(tn_reservation_release(&r));
    assert_false(tn_scope_active(entered)); /* counts as closed */
    assert_int_equal(scope_reservations(entered), 0);
    assert_ok(tn_scope_close(entered));
    assert_no_news(entered);
    assert_ok(tn_scope_close(light));
    assert_status(tn_scope_enter(light), TN_ERR_MISUSE);
    assert_status(tn_scope_enter(fresh), TN_ERR_MISUSE);
    assert_ok(tn_scope_close(fresh));
    assert_no_news(fresh);
    destroy_scope(entered);
    destroy_scope(light);
    destroy_scope(fresh);
    destroy_scope(over);
    destroy_scope(abandoned); /* entered; its reservation went with the manager */
}

static void a_scope_works_without_actions(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_scope *s = SCOPE(m, "empty");

    assert_rises(m, 0, assert_ok(tn_scope_enter(s)));
    assert_true(tn_scope_active(s));
    assert_rises(m, 0, assert_ok(tn_scope_close(s)));
    assert_no_transitions(scope_report(s));
    assert_locations(m);
    destroy_scope(s);
}

static void one_plan_serves_many_scopes(void **state) {
    struct spec *f = *state;
    tn_manager *one = MANAGER(f);
    tn_manager *two = MANAGER(f);
    tn_handle v = adopt_rep(f, one, P);
    tn_plan *plan = PLAN("shared", RESERVE({P, 8, "r"}), ENTER(ENSURE(v, N)), LEAVE(DROP(v, N)));
    tn_scope *a = NULL;
    tn_scope *b = NULL;
    tn_scope *foreign = NULL;

    assert_ok(tn_scope_create(one, plan, NULL, &a));
    assert_ok(tn_scope_create(one, plan, NULL, &b));
    assert_ok(tn_scope_create(two, plan, NULL, &foreign));
    tn_plan_destroy(plan);
    assert_ok(tn_scope_enter(a));
    assert_ok(tn_scope_enter(b));
    assert_int_equal(reserved(one, P), 16);
    assert_plan_error(tn_scope_enter(foreign), "shared", TN_PHASE_ENTER, 0,
                      TN_REASON_HANDLE_FOREIGN);
    assert_int_equal(tn_last_error()->cause_status, TN_ERR_HANDLE);
    close_scope(a);
    close_scope(b); /* its drop finds nothing any more */
    assert_replicas(one, v, P);
    assert_locations(two);
    destroy_scope(foreign);
}

static const struct CMUnitTest tests[] = {
    SPEC_SERIAL(create_checks_its_arguments),
    SPEC_SERIAL(create_refuses_a_list_that_cannot_be),
    SPEC_SERIAL(null_scopes_are_refused),
    SPEC_SERIAL(null_outputs_are_refused),
    SPEC_SERIAL(reports_check_their_arguments),
    SPEC_BOTH(odd_streams_are_refused_at_entry),
    SPEC_BOTH(mc148_the_order_of_the_checks),
    SPEC_BOTH(a_reservation_released_by_hand_is_gone),
    SPEC_BOTH(a_reservation_released_by_hand_is_not_released_twice),
    SPEC_BOTH(results_are_adopted_into_a_scopes_reservation),
    SPEC_BOTH(a_scope_may_outlive_its_manager),
    SPEC_BOTH(a_scope_works_without_actions),
    SPEC_BOTH(one_plan_serves_many_scopes),
};

TN_TEST_MAIN("spec.bad_input_scopes", tests)
