/* SPDX-License-Identifier: MIT */
/* src/driver/sim/sim_streams.c, sim_slots.c, sim_test_streams.c: handles and their reuse, queues
 * (S3), destroyed streams. */
#include "sim_machine.h"

static void stream_says_what_it_is(void **state) {
    struct machine m = machine_open("dev:2");
    tn_stream_info first;
    tn_stream_info second;
    tn_stream a;
    tn_stream b;

    (void)state;
    assert_ok(tn_sim_stream_create(m.sim, 1, 0, &a));
    assert_ok(
        tn_sim_stream_create(m.sim, 1, TN_SIM_STREAM_SECOND_CONTEXT | TN_SIM_STREAM_CAPTURING, &b));
    assert_ok(m.ops->stream_info(m.self, a, &first));
    assert_ok(m.ops->stream_info(m.self, b, &second));
    assert_int_equal(first.device, 1);
    assert_int_equal(first.capturing, 0);
    assert_int_equal(second.device, 1);
    assert_int_equal(second.capturing, 1);
    assert_true(first.context != 0 && second.context != 0);
    assert_true(first.context != second.context);
    machine_close(&m);
}

static void stream_asked_for_wrongly_is_refused(void **state) {
    struct machine m = machine_open("dev:1");
    tn_stream s = NULL;

    (void)state;
    assert_status(tn_sim_stream_create(m.sim, 0, 0, NULL), TN_ERR_KIND);
    assert_status(tn_sim_stream_create(NULL, 0, 0, &s), TN_ERR_KIND);
    assert_status(tn_sim_stream_create(m.sim, 1, 0, &s), TN_ERR_VALUE);
    assert_status(tn_sim_stream_create(m.sim, 0, 4, &s), TN_ERR_VALUE);
    assert_status(m.ops->stream_create(m.self, 1, &s), TN_ERR_DRIVER);
    assert_status(tn_sim_stream_destroy(NULL, s), TN_ERR_KIND);
    assert_status(tn_sim_queue_delay(NULL, s, 1), TN_ERR_KIND);
    assert_null(s);
    machine_close(&m);
}

static void streams_are_counted_by_who_made_them(void **state) {
    struct machine m = machine_open(NULL);
    tn_stream mine = stream_on(&m, 0);
    tn_stream theirs;

    (void)state;
    assert_int_equal(tn_sim_live_streams(m.sim), 0);
    assert_ok(m.ops->stream_create(m.self, 0, &theirs));
    assert_int_equal(tn_sim_live_streams(m.sim), 1);
    assert_ok(tn_sim_stream_destroy(m.sim, mine));
    assert_int_equal(tn_sim_live_streams(m.sim), 1);
    assert_ok(m.ops->stream_destroy(m.self, theirs));
    assert_int_equal(tn_sim_live_streams(m.sim), 0);
    machine_close(&m);
}

static void stream_destroyed_finishes_its_work(void **state) {
    struct machine m = machine_open(NULL);
    unsigned char *p = device_block(&m, 0, 64);
    tn_event e = event_on(&m, 0);
    tn_stream s = stream_on(&m, 0);

    (void)state;
    assert_ok(tn_sim_queue_write(m.sim, s, p, 64, 5, 10 * MS));
    assert_ok(m.ops->event_record(m.self, e, s));
    advance_ms(&m, 5);
    assert_ok(tn_sim_stream_destroy(m.sim, s));
    assert_int_equal(now_ms(&m), 5);
    assert_false(event_done(&m, e));
    assert_ok(m.ops->device_synchronize(m.self, 0));
    assert_int_equal(now_ms(&m), 10);
    assert_true(event_done(&m, e));
    assert_true(all_bytes(p, 64, 5));
    device_drop(&m, 0, p, 64);
    machine_close(&m);
}

static void handle_of_destroyed_stream_is_issued_again(void **state) {
    struct machine m = machine_open(NULL);
    tn_stream a = stream_on(&m, 0);
    tn_stream b = stream_on(&m, 0);

    (void)state;
    assert_true(a != b);
    assert_ok(tn_sim_stream_destroy(m.sim, a));
    assert_ptr_equal(stream_on(&m, 0), a);
    assert_ok(tn_sim_stream_destroy(m.sim, b));
    assert_ok(tn_sim_stream_destroy(m.sim, a));
    assert_ptr_equal(stream_on(&m, 0), a);
    assert_ptr_equal(stream_on(&m, 0), b);
    machine_close(&m);
}

static void call_naming_destroyed_stream_is_a_violation(void **state) {
    struct machine m = machine_open(NULL);
    tn_event e = event_on(&m, 0);
    tn_stream s = stream_on(&m, 0);
    tn_stream_info info;

    (void)state;
    assert_ok(tn_sim_stream_destroy(m.sim, s));
    assert_status(m.ops->stream_info(m.self, s, &info), TN_ERR_KIND);
    assert_status(m.ops->stream_synchronize(m.self, s), TN_ERR_DRIVER);
    assert_int_equal(m.ops->last_code(m.self), 400);
    assert_status(m.ops->stream_destroy(m.self, s), TN_ERR_DRIVER);
    assert_status(m.ops->event_record(m.self, e, s), TN_ERR_DRIVER);
    assert_status(m.ops->stream_wait(m.self, s, e), TN_ERR_DRIVER);
    assert_status(tn_sim_queue_delay(m.sim, s, 1), TN_ERR_DRIVER);
    assert_true(tn_sim_stream_idle(m.sim, s));
    assert_non_null(strstr(tn_sim_violation_text(m.sim), "stream_info named the destroyed stream"));
    machine_close_after(&m, 7);
}

static void handle_never_issued_is_no_stream_and_no_violation(void **state) {
    struct machine m = machine_open(NULL);
    struct machine other = machine_open(NULL);
    tn_stream foreign = stream_on(&other, 0);
    tn_stream_info info;

    (void)state;
    assert_status(m.ops->stream_info(m.self, (tn_stream)&m, &info), TN_ERR_KIND);
    assert_status(m.ops->stream_info(m.self, NULL, &info), TN_ERR_KIND);
    assert_status(m.ops->stream_info(m.self, TN_STREAM_PER_THREAD, &info), TN_ERR_KIND);
    assert_status(m.ops->stream_info(m.self, foreign, &info), TN_ERR_KIND);
    assert_status(m.ops->stream_synchronize(m.self, foreign), TN_ERR_DRIVER);
    machine_close(&other);
    machine_close(&m);
}

static void legacy_stream_belongs_to_device_0(void **state) {
    struct machine m = machine_open("dev:2");
    struct machine none = machine_open("dev:0");
    tn_stream_info info;

    (void)state;
    assert_ok(m.ops->stream_info(m.self, TN_STREAM_LEGACY, &info));
    assert_int_equal(info.device, 0);
    assert_ok(tn_sim_queue_delay(m.sim, TN_STREAM_LEGACY, 3 * MS));
    assert_ok(m.ops->stream_synchronize(m.self, TN_STREAM_LEGACY));
    assert_int_equal(now_ms(&m), 3);
    assert_status(m.ops->stream_destroy(m.self, TN_STREAM_LEGACY), TN_ERR_DRIVER);
    assert_status(none.ops->stream_info(none.self, TN_STREAM_LEGACY, &info), TN_ERR_KIND);
    machine_close(&none);
    machine_close(&m);
}

static void stream_in_capture_takes_no_work_of_the_driver(void **state) {
    struct machine m = machine_open(NULL);
    unsigned char *p = device_block(&m, 0, 8);
    tn_event e = event_on(&m, 0);
    tn_stream s;

    (void)state;
    assert_ok(tn_sim_stream_create(m.sim, 0, TN_SIM_STREAM_CAPTURING, &s));
    assert_status(m.ops->event_record(m.self, e, s), TN_ERR_DRIVER);
    assert_int_equal(m.ops->last_code(m.self), 900);
    assert_status(m.ops->stream_wait(m.self, s, e), TN_ERR_DRIVER);
    assert_status(to_device(&m, 0, p, "1234567", 8, s), TN_ERR_DRIVER);
    device_drop(&m, 0, p, 8);
    machine_close(&m);
}

static void streams_by_the_hundred_keep_apart(void **state) {
    enum { COUNT = 300 };
    struct machine m = machine_open(NULL);
    unsigned char *p = device_block(&m, 0, COUNT);
    tn_stream s[COUNT];
    int i;

    (void)state;
    for (i = 0; i < COUNT; i++) {
        s[i] = stream_on(&m, 0);
        assert_ok(tn_sim_queue_write(m.sim, s[i], p + i, 1, i, (uint64_t)(COUNT - i) * MS));
    }
    for (i = COUNT - 1; i >= 0; i--) {
        assert_ok(m.ops->stream_synchronize(m.self, s[i]));
        assert_int_equal(now_ms(&m), COUNT - i);
        assert_int_equal(p[i], i & 0xff);
        assert_ok(tn_sim_stream_destroy(m.sim, s[i]));
    }
    device_drop(&m, 0, p, COUNT);
    machine_close(&m);
}

static void machine_destroyed_drops_what_is_queued(void **state) {
    struct machine m = machine_open(NULL);
    unsigned char local[8] = {0};
    unsigned char *p = device_block(&m, 0, 8);
    tn_stream s = stream_on(&m, 0);

    (void)state;
    memset(p, 1, 8);
    assert_ok(tn_sim_queue_delay(m.sim, s, 1 * MS));
    assert_ok(to_host(&m, 0, local, p, 8, s));
    tn_sim_destroy(m.sim);
    assert_true(all_bytes(local, 8, 0));
    tn_sim_destroy(NULL);
    assert_null(tn_sim_driver(NULL));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(stream_says_what_it_is),
    cmocka_unit_test(stream_asked_for_wrongly_is_refused),
    cmocka_unit_test(streams_are_counted_by_who_made_them),
    cmocka_unit_test(stream_destroyed_finishes_its_work),
    cmocka_unit_test(handle_of_destroyed_stream_is_issued_again),
    cmocka_unit_test(call_naming_destroyed_stream_is_a_violation),
    cmocka_unit_test(handle_never_issued_is_no_stream_and_no_violation),
    cmocka_unit_test(legacy_stream_belongs_to_device_0),
    cmocka_unit_test(stream_in_capture_takes_no_work_of_the_driver),
    cmocka_unit_test(streams_by_the_hundred_keep_apart),
    cmocka_unit_test(machine_destroyed_drops_what_is_queued),
};

TN_TEST_MAIN("unit.sim_streams", tests)
