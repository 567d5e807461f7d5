/* SPDX-License-Identifier: MIT */
/*
 * One use: streams, entry, values, exit, report, failures (C124, C125, C131..C146; cases
 * CC112..CC120).
 *
 * In TN_MODE_SERIAL uses are bound to the version, so each step of C136 shows; in
 * TN_MODE_CONCURRENT to the placement (D13), where a hit has no decision and no report, and epochs
 * are readings of a clock (D14).
 */
#include "scenario.h"

static bool by_version(const world *w) { return w->f->mode == TN_MODE_SERIAL; }

/* ---- What a use says ------------------------------------------------------------------------- */

static tn_use_info read_use(const tn_use *use) {
    tn_use_info got = TN_USE_INFO_INIT;

    assert_ok(tn_use_read(use, &got));
    return got;
}

static tn_use *use_of(world *w, const char *need, const char *reserve) {
    tn_request *request = world_request(w, need, reserve);
    tn_use *use = world_use(w, w->controller, request);

    tn_request_destroy(request); /* the use keeps it */
    return use;
}

/* The epoch of the next successful entry: n, and so were n - 1 before it. */
static void assert_next_epoch(world *w, const char *need, uint64_t n) {
    tn_use *use = use_of(w, need, NULL);

    assert_ok(tn_use_enter(use));
    if (by_version(w))
        assert_int_equal(read_use(use).epoch, n);
    else
        assert_true(read_use(use).epoch > 0);
    assert_ok(tn_use_exit(use));
    tn_use_destroy(use);
}

/* The transitions of its report, which must be there, or -1. */
static int transitions(const tn_use *use, tn_report *out, size_t room) {
    const tn_plan_report *report = NULL;
    size_t count = room;

    assert_ok(tn_use_report(use, &report));
    if (report == NULL)
        return -1;
    out[0].size = sizeof(out[0]);
    assert_ok(tn_plan_report_transitions(report, out, &count));
    return (int)count;
}

static void assert_no_exit_error(const tn_use *use) {
    const tn_error *error = NULL;

    assert_ok(tn_use_exit_error(use, &error));
    assert_null(error);
}

static void assert_no_values(const tn_use *use, const world *w, const char *name, tn_location at,
                             tn_status status) {
    const void *data = NULL;
    tn_requirement row;
    size_t n = 0, cursor = 0;
    bool more;

    assert_status(tn_use_value(use, world_handle(w, name), at, &data), status);
    assert_status(tn_use_count(use, &n), status);
    assert_status(tn_use_next(use, &cursor, &row, &data, &more), status);
}

static void assert_decision(const tn_use *use, tn_status status, bool there) {
    const tn_decision *d = NULL;

    assert_status(tn_use_decision(use, &d), status);
    assert_true((d != NULL) == there);
}

/* ---- Streams --------------------------------------------------------------------------------- */

static const scenario plain = {.values = "a 1 R @H"};

static tn_status try_use(world *w, const char *need, const tn_transfer_stream *consumer,
                         const tn_transfer_stream *transfer) {
    tn_request *request = world_request(w, need, NULL);
    tn_use_options options = {sizeof(options), consumer, consumer != NULL, transfer,
                              transfer != NULL};
    tn_use *use = NULL;
    tn_status status = tn_use_create(w->controller, request, &options, &use);

    assert_true((status == TN_OK) == (use != NULL));
    tn_use_destroy(use);
    tn_request_destroy(request);
    return status;
}

static void assert_message(const char *part) {
    if (strstr(tn_last_error()->message, part) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", tn_last_error()->message, part);
}

static void cc112_stream_coverage(void **state) {
    world *w = world_begin(*state, &plain);
    tn_stream s0 = world_stream(w, 0), s1 = world_stream(w, 1);
    const tn_transfer_stream d0_s0 = {C0, s0}, d0_s1 = {C0, s1}, d1_s1 = {C1, s1}, h_s0 = {P, s0};
    uint64_t before = version(w->m);

    assert_status(try_use(w, "a@D0", NULL, NULL), TN_ERR_VALUE);
    assert_message("missing cuda:0");
    assert_status(try_use(w, "a@H", &d0_s0, NULL), TN_ERR_VALUE);
    assert_message("unexpected cuda:0");
    assert_status(try_use(w, "a@D0", &d0_s1, NULL), TN_ERR_VALUE);
    assert_status(try_use(w, "a@H", &h_s0, NULL), TN_ERR_VALUE);
    assert_status(try_use(w, "a@D0, a@D1", &d0_s0, NULL), TN_ERR_VALUE);
    assert_message("missing cuda:1");
    assert_ok(try_use(w, "a@H", NULL, &d1_s1));
    assert_status(try_use(w, "a@H", NULL, &d0_s1), TN_ERR_VALUE);
    assert_int_equal(version(w->m), before);
    world_end(w);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void cc113_life_of_a_use(void **state) {
    world *w = world_begin(*state, &plain);
    tn_handle a = world_handle(w, "a");
    tn_use *use = use_of(w, "a@D0", NULL);
    tn_report reports[2];
    const void *data = NULL;
    size_t n = 0;

    assert_decision(use, TN_ERR_MISUSE, false);
    assert_no_values(use, w, "a", C0, TN_ERR_MISUSE);
    assert_false(tn_use_active(use));
    assert_ok(tn_use_enter(use));
    assert_true(tn_use_active(use));
    assert_ok(tn_use_count(use, &n));
    assert_int_equal(n, 1);
    assert_ok(tn_use_value(use, a, C0, &data));
    assert_true(tt_check(data, 1));
    assert_status(tn_use_value(use, a, P, &data), TN_ERR_LOOKUP);
    assert_int_equal(transitions(use, reports, 2), -1);
    assert_status(tn_use_enter(use), TN_ERR_MISUSE);
    assert_ok(tn_use_exit(use));
    assert_no_values(use, w, "a", C0, TN_ERR_LIFETIME_CLOSED);
    assert_int_equal(transitions(use, reports, 2), 1);
    assert_report(reports[0], TN_ACTION_ENSURE, 0, P, C0);
    assert_no_exit_error(use);
    assert_decision(use, TN_OK, true);
    assert_rises(w->m, 0, assert_ok(tn_use_exit(use)));
    assert_status(tn_use_enter(use), TN_ERR_MISUSE);
    tn_use_destroy(use);
    world_end(w);
}

/* The mapping is the use itself. */
static void cc114_kept_value_mapping(void **state) {
    world *w = world_begin(*state, &plain);
    tn_use *use = use_of(w, "a@H", NULL);
    tn_requirement row;
    const void *data = NULL;
    size_t cursor = 0;
    bool more = false;

    assert_ok(tn_use_enter(use));
    assert_ok(tn_use_next(use, &cursor, &row, &data, &more));
    assert_true(more);
    assert_ok(tn_use_exit(use));
    assert_no_values(use, w, "a", P, TN_ERR_LIFETIME_CLOSED);
    assert_status(tn_use_next(use, &cursor, &row, &data, &more), TN_ERR_LIFETIME_CLOSED);
    tn_use_destroy(use);
    world_end(w);
}

static const scenario cc115 = {.budgets = "P=4",
                               .values = "a 1 R @H; b 1 R @H; c 1 R @H; d 1 R @H,P"};

/* One for each location, not for each requirement. */
static void assert_leases(world *w) {
    assert_int_equal(info(w->m).lease_count, 3);
    assert_int_equal(mat(w->m, world_handle(w, "a"), C0).use_count, 1);
    assert_int_equal(mat(w->m, world_handle(w, "c"), C0).use_count, 1);
    assert_int_equal(mat(w->m, world_handle(w, "b"), P).use_count, 1);
    assert_int_equal(mat(w->m, world_handle(w, "a"), N).use_count, 1);
}

/* One epoch for all: then the registration decides, and d, never used, goes first. */
static void assert_equal_epochs(world *w) {
    tn_decision *d;
    char *text;

    world_do(w, "ensure c@P; ensure b@P");
    assert_ok(world_decide_for(w, w->controller, "d@H", "P:3", &d));
    text = world_reclaim(w, d);
    assert_string_equal(text, "drop d@P (rank 0, 1 at P, replica remains); "
                              "drop a@P (rank 0, 1 at P, replica remains); "
                              "drop b@P (rank 0, 1 at P, replica remains)");
    free(text);
    tn_decision_drop(d);
}

static void cc115_lease_groups_and_order(void **state) {
    static const char *const order[] = {"a", "c", "b", "a"};
    world *w = world_begin(*state, &cc115);
    const tn_location at[] = {C0, C0, P, N};
    tn_use *use = use_of(w, "a@D0, b@H, c@D0, a@P", "D0:5");
    tn_requirement row = {{0, 0, NULL}, {0, 0}};
    const void *data = NULL;
    size_t cursor = 0;
    bool more = true;

    assert_ok(tn_use_enter(use));
    for (size_t i = 0; i < 4; i++) {
        assert_ok(tn_use_next(use, &cursor, &row, &data, &more));
        assert_true(more);
        assert_handle(row.handle, world_handle(w, order[i]));
        assert_at(row.at, at[i]);
    }
    assert_ok(tn_use_next(use, &cursor, &row, &data, &more));
    assert_false(more);
    assert_leases(w);
    assert_int_equal(reserved(w->m, C0), 5);
    assert_ok(tn_use_exit(use));
    assert_int_equal(info(w->m).lease_count, 0);
    assert_int_equal(reserved(w->m, C0), 0);
    assert_true(read_use(use).epoch > 0);
    tn_use_destroy(use);
    spec_finish(w->f);
    assert_equal_epochs(w);
    world_end(w);
}

static const scenario cc116 = {
    .budgets = "P=1, H=9", .values = "a 1 X @P; b 1 X @H", .tiers = "P to H"};

static void cc116_report_order(void **state) {
    world *w = world_begin(*state, &cc116);
    tn_use *use = use_of(w, "b@P", NULL);
    tn_report reports[3];

    assert_ok(tn_use_enter(use));
    assert_ok(tn_use_exit(use));
    assert_int_equal(transitions(use, reports, 3), 2);
    assert_report(reports[0], TN_ACTION_MOVE, 0, N, P);
    assert_handle(reports[0].action.handle, world_handle(w, "a"));
    assert_report(reports[1], TN_ACTION_MOVE, 0, P, N);
    assert_handle(reports[1].action.handle, world_handle(w, "b"));
    tn_use_destroy(use);
    world_end(w);
}

/* ---- Failing entries ------------------------------------------------------------------------- */

static const scenario cc117 = {.budgets = "D0=64", .values = "a 64 R @H; b 1 R @H"};

/* At a device, where an acquire asks the driver about its stream. The question before is that of the
 * copy; bound to the placement, the first is that of the hit. */
static void cc117_acquisition_fails(void **state) {
    spec_own_table(*state);
    world *w = world_begin(*state, &cc117);
    tn_use *use = use_of(w, "a@D0", "D0:0");
    tn_report reports[2];

    spec_fault(w->f, TN_SIM_STREAM_INFO, by_version(w) ? 2 : 3, 1, TN_ERR_DRIVER, 77);
    assert_status(tn_use_enter(use), TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->native_code, 77);
    assert_int_equal(spec_repair(w->f), 1);
    assert_decision(use, TN_OK, true);
    assert_int_equal(transitions(use, reports, 2), 1);
    assert_report(reports[0], TN_ACTION_ENSURE, 0, P, C0);
    assert_no_exit_error(use);
    assert_no_values(use, w, "a", C0, TN_ERR_MISUSE);
    assert_int_equal(read_use(use).epoch, 0);
    assert_true(resident(w->m, world_handle(w, "a"), C0));
    assert_int_equal(info(w->m).reservation_count, 0);
    assert_int_equal(info(w->m).lease_count, 0);
    tn_use_destroy(use);
    assert_next_epoch(w, "b@H", 1);
    world_end(w);
}

static const scenario cc118 = {
    .budgets = "P=1", .values = "a 1 R @H,P; b 1 R @H", .before = "hold a@P"};

static void cc118_decide_fails_in_entry(void **state) {
    world *w = world_begin(*state, &cc118);
    tn_use *use = use_of(w, "b@P", NULL);
    tn_report reports[1];
    char *text;

    assert_rises(w->m, 0, assert_status(tn_use_enter(use), TN_ERR_PLAN));
    text = world_refusal(w);
    assert_string_equal(text, "1 at P, materialization of b; budget 1, used 1, reserved 0");
    free(text);
    assert_decision(use, TN_ERR_MISUSE, false);
    assert_int_equal(transitions(use, reports, 1), -1);
    assert_no_values(use, w, "b", N, TN_ERR_MISUSE);
    assert_status(tn_use_enter(use), TN_ERR_MISUSE);
    tn_use_destroy(use);
    assert_next_epoch(w, "a@P", 1);
    world_end(w);
}

static const scenario cc119 = {.budgets = "D0=1", .values = "v 1 R @H,D0; s 1 R src=H"};

static void cc119_source_fails_in_entry(void **state) {
    world *w = world_begin(*state, &cc119);
    tn_use *use = use_of(w, "s@D0", "H:5");
    const tn_decision *d = NULL;
    tn_report reports[2];
    const tn_error *e;
    char *text;

    world_value_of(w, "s")->source->fail_from = 1;
    assert_status(tn_use_enter(use), TN_ERR_PLAN_EXEC);
    e = tn_last_error();
    assert_int_equal(e->phase, TN_PHASE_ENTER);
    assert_int_equal(e->cause_status, TN_ERR_SOURCE);
    assert_int_equal(e->failed_index, 0);
    assert_handle(e->action_handle, world_handle(w, "s"));
    assert_ok(tn_use_decision(use, &d));
    text = world_reclaim(w, d);
    assert_string_equal(text, "drop v@D0 (rank 0, 1 at D0, replica remains)");
    free(text);
    assert_int_equal(transitions(use, reports, 2), -1);
    assert_no_exit_error(use);
    world_check(w, "v@H; s@-; H=1+0; D0=0+0"); /* what ran is not rolled back */
    assert_int_equal(info(w->m).reservation_count, 0);
    tn_use_destroy(use);
    assert_next_epoch(w, "v@H", 1);
    world_end(w);
}

static void cc120_unknown_handle(void **state) {
    world *w = world_begin(*state, &plain);
    tn_requirement row = {{0, 0, NULL}, P};
    tn_request_spec spec = {sizeof(spec), "request", &row, 1, NULL, 0};
    tn_request *request = NULL;
    tn_use *use;

    assert_ok(tn_handle_make(tn_manager_id(w->m), 1000, tt_type(), &row.handle));
    assert_ok(tn_request_create(&spec, &request));
    use = world_use(w, w->controller, request);
    assert_handle_error(tn_use_enter(use), TN_HANDLE_UNKNOWN);
    assert_decision(use, TN_ERR_MISUSE, false);
    tn_use_destroy(use);
    tn_request_destroy(request);
    world_end(w);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(cc112_stream_coverage),       SPEC_BOTH(cc113_life_of_a_use),
    SPEC_BOTH(cc114_kept_value_mapping),    SPEC_BOTH(cc115_lease_groups_and_order),
    SPEC_BOTH(cc116_report_order),          SPEC_BOTH(cc117_acquisition_fails),
    SPEC_BOTH(cc118_decide_fails_in_entry), SPEC_BOTH(cc119_source_fails_in_entry),
    SPEC_BOTH(cc120_unknown_handle),
};

TN_TEST_MAIN("spec.control_use", tests)
