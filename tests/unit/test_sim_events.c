/* SPDX-License-Identifier: MIT */
/* src/driver/sim/sim_events.c: never recorded, recorded again, destroyed, across contexts; streams
 * that wait for events. */
#include "sim_machine.h"

static void event_never_recorded_is_complete(void **state) {
    struct machine m = machine_open(NULL);
    tn_event e = event_on(&m, 0);

    (void)state;
    assert_true(event_done(&m, e));
    assert_ok(m.ops->event_synchronize(m.self, e));
    assert_ok(m.ops->event_destroy(m.self, e));
    machine_close(&m);
}

static void event_recorded_on_idle_stream_is_complete_at_once(void **state) {
    struct machine m = machine_open(NULL);
    tn_event e = event_on(&m, 0);
    tn_stream s = stream_on(&m, 0);

    (void)state;
    assert_ok(m.ops->event_record(m.self, e, s));
    assert_true(event_done(&m, e));
    machine_close(&m);
}

static void event_completes_with_the_work_before_it(void **state) {
    struct machine m = machine_open(NULL);
    tn_event e = event_on(&m, 0);
    tn_stream s = stream_on(&m, 0);

    (void)state;
    assert_ok(tn_sim_queue_delay(m.sim, s, 10 * MS));
    assert_ok(m.ops->event_record(m.self, e, s));
    assert_ok(tn_sim_queue_delay(m.sim, s, 10 * MS));
    advance_ms(&m, 9);
    assert_false(event_done(&m, e));
    assert_ok(m.ops->event_synchronize(m.self, e));
    assert_int_equal(now_ms(&m), 10);
    assert_true(event_done(&m, e));
    machine_close(&m);
}

static void event_recorded_again_answers_for_the_last_record(void **state) {
    struct machine m = machine_open(NULL);
    tn_event e = event_on(&m, 0);
    tn_stream a = stream_on(&m, 0);
    tn_stream b = stream_on(&m, 0);

    (void)state;
    assert_ok(tn_sim_queue_delay(m.sim, a, 20 * MS));
    assert_ok(m.ops->event_record(m.self, e, a));
    assert_ok(tn_sim_queue_delay(m.sim, b, 5 * MS));
    assert_ok(m.ops->event_record(m.self, e, b));
    advance_ms(&m, 5);
    assert_true(event_done(&m, e));
    assert_ok(tn_sim_queue_delay(m.sim, b, 5 * MS));
    assert_ok(m.ops->event_record(m.self, e, b));
    assert_false(event_done(&m, e));
    machine_close(&m);
}

static void event_destroyed_while_pending_lets_the_stream_go_on(void **state) {
    struct machine m = machine_open(NULL);
    tn_event e = event_on(&m, 0);
    tn_stream a = stream_on(&m, 0);
    tn_stream b = stream_on(&m, 0);

    (void)state;
    assert_ok(tn_sim_queue_delay(m.sim, a, 5 * MS));
    assert_ok(m.ops->event_record(m.self, e, a));
    assert_ok(m.ops->stream_wait(m.self, b, e));
    assert_int_equal(tn_sim_live_events(m.sim), 1);
    assert_ok(m.ops->event_destroy(m.self, e));
    assert_int_equal(tn_sim_live_events(m.sim), 0);
    assert_ok(m.ops->stream_synchronize(m.self, b));
    assert_int_equal(now_ms(&m), 5);
    machine_close(&m);
}

static void call_naming_destroyed_event_is_a_violation(void **state) {
    struct machine m = machine_open(NULL);
    tn_event e = event_on(&m, 0);
    tn_stream s = stream_on(&m, 0);
    uint32_t done;

    (void)state;
    assert_ok(m.ops->event_destroy(m.self, e));
    assert_status(m.ops->event_query(m.self, e, &done), TN_ERR_DRIVER);
    assert_int_equal(m.ops->last_code(m.self), 400);
    assert_status(m.ops->event_synchronize(m.self, e), TN_ERR_DRIVER);
    assert_status(m.ops->event_record(m.self, e, s), TN_ERR_DRIVER);
    assert_status(m.ops->stream_wait(m.self, s, e), TN_ERR_DRIVER);
    assert_status(m.ops->event_destroy(m.self, e), TN_ERR_DRIVER);
    assert_ptr_equal(event_on(&m, 0), e);
    machine_close_after(&m, 5);
}

static void handle_of_stream_is_no_event(void **state) {
    struct machine m = machine_open(NULL);
    tn_stream s = stream_on(&m, 0);
    uint32_t done;

    (void)state;
    assert_status(m.ops->event_query(m.self, (tn_event)(void *)s, &done), TN_ERR_DRIVER);
    assert_status(m.ops->event_query(m.self, NULL, &done), TN_ERR_DRIVER);
    machine_close(&m);
}

static void event_for_missing_context_is_refused(void **state) {
    struct machine m = machine_open("dev:2");
    tn_stream_info info;
    tn_event e;

    (void)state;
    assert_ok(m.ops->stream_info(m.self, stream_on(&m, 0), &info));
    assert_status(m.ops->event_create(m.self, 1, info.context, &e), TN_ERR_DRIVER);
    assert_int_equal(m.ops->last_code(m.self), 201);
    assert_status(m.ops->event_create(m.self, 0, 0, &e), TN_ERR_DRIVER);
    assert_status(m.ops->event_create(m.self, 2, info.context, &e), TN_ERR_DRIVER);
    machine_close(&m);
}

static void event_recorded_across_contexts_is_a_violation(void **state) {
    struct machine m = machine_open(NULL);
    tn_event e = event_on(&m, 0);
    tn_stream second;
    tn_stream_info info;

    (void)state;
    assert_ok(tn_sim_stream_create(m.sim, 0, TN_SIM_STREAM_SECOND_CONTEXT, &second));
    assert_status(m.ops->event_record(m.self, e, second), TN_ERR_DRIVER);
    assert_true(event_done(&m, e));
    assert_int_equal(tn_sim_violations(m.sim), 1);
    assert_non_null(strstr(tn_sim_violation_text(m.sim), "context"));
    assert_ok(m.ops->stream_info(m.self, second, &info));
    assert_ok(m.ops->event_create(m.self, 0, info.context, &e));
    assert_ok(m.ops->event_record(m.self, e, second));
    machine_close_after(&m, 1);
}

static void stream_waits_for_event_of_another_stream(void **state) {
    struct machine m = machine_open("dev:2");
    tn_event e = event_on(&m, 0);
    tn_event f = event_on(&m, 1);
    tn_stream a = stream_on(&m, 0);
    tn_stream b = stream_on(&m, 1);

    (void)state;
    assert_ok(tn_sim_queue_delay(m.sim, a, 10 * MS));
    assert_ok(m.ops->event_record(m.self, e, a));
    assert_ok(tn_sim_queue_delay(m.sim, b, 2 * MS));
    assert_ok(m.ops->stream_wait(m.self, b, e));
    assert_ok(tn_sim_queue_delay(m.sim, b, 1 * MS));
    assert_ok(m.ops->event_record(m.self, f, b));
    assert_ok(m.ops->event_synchronize(m.self, f));
    assert_int_equal(now_ms(&m), 11);
    machine_close(&m);
}

static void stream_waits_for_the_record_of_then_not_a_later_one(void **state) {
    struct machine m = machine_open(NULL);
    tn_event e = event_on(&m, 0);
    tn_stream a = stream_on(&m, 0);
    tn_stream b = stream_on(&m, 0);

    (void)state;
    assert_ok(m.ops->stream_wait(m.self, b, e)); /* never recorded: no wait */
    assert_true(tn_sim_stream_idle(m.sim, b));
    assert_ok(tn_sim_queue_delay(m.sim, a, 3 * MS));
    assert_ok(m.ops->event_record(m.self, e, a));
    assert_ok(m.ops->stream_wait(m.self, b, e));
    assert_ok(tn_sim_queue_delay(m.sim, a, 30 * MS));
    assert_ok(m.ops->event_record(m.self, e, a));
    assert_ok(m.ops->stream_synchronize(m.self, b));
    assert_int_equal(now_ms(&m), 3);
    machine_close(&m);
}

static void events_by_the_thousand_reuse_their_handles(void **state) {
    struct machine m = machine_open(NULL);
    tn_stream s = stream_on(&m, 0);
    tn_event e[1000];
    int i;

    (void)state;
    for (i = 0; i < 1000; i++) {
        e[i] = event_on(&m, 0);
        assert_ok(tn_sim_queue_delay(m.sim, s, 10));
        assert_ok(m.ops->event_record(m.self, e[i], s));
    }
    assert_int_equal(tn_sim_live_events(m.sim), 1000);
    for (i = 0; i < 1000; i++) {
        assert_false(event_done(&m, e[i]));
        assert_ok(tn_sim_advance(m.sim, 10));
        assert_true(event_done(&m, e[i]));
        assert_ok(m.ops->event_destroy(m.self, e[i]));
        assert_ptr_equal(event_on(&m, 0), e[i]);
        assert_ok(m.ops->event_destroy(m.self, e[i]));
    }
    assert_int_equal(tn_sim_live_events(m.sim), 0);
    machine_close(&m);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(event_never_recorded_is_complete),
    cmocka_unit_test(event_recorded_on_idle_stream_is_complete_at_once),
    cmocka_unit_test(event_completes_with_the_work_before_it),
    cmocka_unit_test(event_recorded_again_answers_for_the_last_record),
    cmocka_unit_test(event_destroyed_while_pending_lets_the_stream_go_on),
    cmocka_unit_test(call_naming_destroyed_event_is_a_violation),
    cmocka_unit_test(handle_of_stream_is_no_event),
    cmocka_unit_test(event_for_missing_context_is_refused),
    cmocka_unit_test(event_recorded_across_contexts_is_a_violation),
    cmocka_unit_test(stream_waits_for_event_of_another_stream),
    cmocka_unit_test(stream_waits_for_the_record_of_then_not_a_later_one),
    cmocka_unit_test(events_by_the_thousand_reuse_their_handles),
};

TN_TEST_MAIN("unit.sim_events", tests)
