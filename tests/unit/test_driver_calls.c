/* SPDX-License-Identifier: MIT */
/* src/driver/driver_calls.c: every wrapper of streams and events, for success, failure (D1) and
 * "already gone" (D2). */
#include "driver_fake.h"

#include "driver/driver_internal.h"

enum call {
    STREAM_CREATE,
    STREAM_DESTROY,
    STREAM_SYNCHRONIZE,
    EVENT_CREATE,
    EVENT_DESTROY,
    EVENT_RECORD,
    EVENT_QUERY,
    EVENT_SYNCHRONIZE,
    DEVICE_SYNCHRONIZE,
    CALLS
};

static const struct {
    const char *name;
    bool gone_ok;
    bool null_ok; /* with no driver */
} about[CALLS] = {
    {"stream_create", false, false},     {"stream_destroy", true, true},
    {"stream_synchronize", true, false}, {"event_create", false, false},
    {"event_destroy", true, true},       {"event_record", false, false},
    {"event_query", true, false},        {"event_synchronize", true, false},
    {"device_synchronize", true, false},
};

struct out {
    tn_stream stream;
    tn_event event;
    bool done;
};

static tn_status make(tn_driver *d, int call, struct out *out) {
    tn_stream stream = (tn_stream)(void *)&fake;
    tn_event event = (tn_event)(void *)&fake;

    switch (call) {
    case STREAM_CREATE:
        return tn__stream_create(d, 1, &out->stream);
    case STREAM_DESTROY:
        return tn__stream_destroy(d, stream);
    case STREAM_SYNCHRONIZE:
        return tn__stream_synchronize(d, stream);
    case EVENT_CREATE:
        return tn__event_create(d, 1, 5, &out->event);
    case EVENT_DESTROY:
        return tn__event_destroy(d, event);
    case EVENT_RECORD:
        return tn__event_record(d, event, stream);
    case EVENT_QUERY:
        return tn__event_query(d, event, &out->done);
    case EVENT_SYNCHRONIZE:
        return tn__event_synchronize(d, event);
    default:
        return tn__device_synchronize(d, 1);
    }
}

static void calls_pass_to_the_table(void **state) {
    const tn_driver_ops ops = fake_ops();
    tn_driver *d = fake_driver(&ops);
    struct out out = {NULL, NULL, true};
    int i;

    (void)state;
    for (i = 0; i < CALLS; i++) {
        assert_ok(make(d, i, &out));
        assert_int_equal(fake.calls, i + 1);
    }
    assert_ptr_equal(out.stream, &fake);
    assert_ptr_equal(out.event, &fake);
    assert_false(out.done);
    fake.done = 1;
    assert_ok(make(d, EVENT_QUERY, &out));
    assert_true(out.done);
    tn_driver_destroy(d);
}

static void calls_that_fail_leave_outputs_and_set_the_detail(void **state) {
    const tn_driver_ops ops = fake_ops();
    tn_driver *d = fake_driver(&ops);
    struct out out = {NULL, NULL, true};
    int i;

    (void)state;
    fake.status = TN_ERR_DEVICE_LOST;
    for (i = 0; i < CALLS; i++) {
        fake.code = 700 + i;
        assert_status(make(d, i, &out), TN_ERR_DEVICE_LOST);
        assert_int_equal(tn_last_error()->native_code, 700 + i);
        assert_int_equal(tn_last_error()->status, TN_ERR_DEVICE_LOST);
        assert_non_null(strstr(tn_last_error()->message, about[i].name));
    }
    assert_null(out.stream);
    assert_null(out.event);
    assert_true(out.done);
    tn_driver_destroy(d);
}

static void calls_on_what_is_gone_end_well_or_are_driver_errors(void **state) {
    const tn_driver_ops ops = fake_ops();
    tn_driver *d = fake_driver(&ops);
    struct out out = {NULL, NULL, false};
    int i;

    (void)state;
    fake.status = TN_ERR_CLOSED;
    fake.code = 4;
    for (i = 0; i < CALLS; i++)
        assert_status(make(d, i, &out), about[i].gone_ok ? TN_OK : TN_ERR_DRIVER);
    assert_true(out.done);
    tn_driver_destroy(d);
}

static void calls_without_driver_are_unsupported(void **state) {
    struct out out = {NULL, NULL, false};
    int i;

    (void)state;
    for (i = 0; i < CALLS; i++)
        assert_status(make(NULL, i, &out), about[i].null_ok ? TN_OK : TN_ERR_UNSUPPORTED);
}

static void destroying_nothing_is_no_call(void **state) {
    const tn_driver_ops ops = fake_ops();
    tn_driver *d = fake_driver(&ops);

    (void)state;
    assert_ok(tn__stream_destroy(d, NULL));
    assert_ok(tn__event_destroy(d, NULL));
    assert_int_equal(fake.calls, 0);
    tn_driver_destroy(d);
}

static void code_of_a_table_without_one_is_0(void **state) {
    tn_driver_ops ops = fake_ops();
    struct out out;
    tn_driver *d;

    (void)state;
    ops.last_code = NULL;
    d = fake_driver(&ops);
    fake.code = 5;
    fake.status = TN_ERR_DRIVER;
    assert_status(make(d, STREAM_CREATE, &out), TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->native_code, 0);
    tn_driver_destroy(d);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(calls_pass_to_the_table),
    cmocka_unit_test(calls_that_fail_leave_outputs_and_set_the_detail),
    cmocka_unit_test(calls_on_what_is_gone_end_well_or_are_driver_errors),
    cmocka_unit_test(calls_without_driver_are_unsupported),
    cmocka_unit_test(destroying_nothing_is_no_call),
    cmocka_unit_test(code_of_a_table_without_one_is_0),
};

TN_TEST_MAIN("unit.driver_calls", tests)
