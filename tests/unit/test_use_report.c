/* SPDX-License-Identifier: MIT */
/*
 * src/controller/enter.c, src/transition/course.c: a use whose plan ran, and that could not borrow
 * afterwards, has its report all the same (C137).
 */
#include "spec_common.h"

/* The second consumer stream is gone by the time it is looked at: after the plan, for the first
 * lease finds nothing before it. */
static void a_use_that_cannot_borrow_reports_what_ran(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {C0, 64}, {C1, 64});
    tn_handle a = adopt_rep(f, m, P), b = adopt_rep(f, m, P);
    const tn_requirement needed[] = {{a, C0}, {b, C1}};
    const tn_reservation_spec wanted = {C0, 8, "results"};
    tn_transfer_stream consumers[] = {{C0, spec_stream(f, 0)}, {C1, NULL}};
    tn_request_spec spec = TN_REQUEST_SPEC_INIT;
    tn_use_options options = TN_USE_OPTIONS_INIT;
    tn_plan_report_info head = TN_PLAN_REPORT_INFO_INIT;
    const tn_plan_report *report = NULL;
    const void *payload;
    tn_controller *controller;
    tn_request *request;
    tn_use *use;

    spec_own_table(f);
    spec.name = "operation";
    spec.requirements = needed;
    spec.requirement_count = 2;
    spec.reservations = &wanted;
    spec.reservation_count = 1;
    options.consumers = consumers;
    options.consumer_count = 2;
    assert_ok(tn_sim_stream_create(f->sim, 1, 0, &consumers[1].stream));
    assert_ok(tn_controller_create(m, NULL, &controller));
    assert_ok(tn_request_create(&spec, &request));
    assert_ok(tn_use_create(controller, request, &options, &use));
    assert_ok(tn_sim_stream_destroy(f->sim, consumers[1].stream));

    assert_status(tn_use_enter(use), TN_ERR_VALUE);
    assert_ok(tn_use_report(use, &report));
    assert_non_null(report);
    assert_ok(tn_plan_report_read(report, &head));
    assert_int_equal(head.complete, 1);
    assert_int_equal(head.enter_count, 2);
    assert_int_equal(head.transition_count, 2);
    assert_true(resident(m, a, C0)); /* transitions stay, nothing is held */
    assert_true(resident(m, b, C1));
    assert_int_equal(reserved(m, C0), 0);
    assert_int_equal(info(m).lease_count, 0);
    assert_false(tn_use_active(use));
    assert_status(tn_use_value(use, a, C0, &payload), TN_ERR_MISUSE);

    tn_use_destroy(use);
    tn_request_destroy(request);
    tn_controller_destroy(controller);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(a_use_that_cannot_borrow_reports_what_ran),
};
TN_TEST_MAIN("unit.use_report", tests)
