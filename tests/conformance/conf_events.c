/* SPDX-License-Identifier: MIT */
/* Driver contract: an event is complete when the work recorded before it is, or when it was never
 * recorded. */
#include "conf.h"

static void event_never_recorded_is_complete(void **state) {
    struct conf *c = conf_of(state);
    tn_stream s = conf_stream(c, 0);
    tn_event e = conf_event(c, s);

    assert_true(conf_done(c, e));
    assert_ok(c->ops->event_synchronize(c->self, e));
    assert_ok(c->ops->event_destroy(c->self, e));
    assert_ok(c->ops->stream_destroy(c->self, s));
}

static void event_follows_the_work_before_it(void **state) {
    struct conf *c = conf_of(state);
    tn_stream s = conf_stream(c, 0);
    tn_event e = conf_event(c, s);
    struct gate g;

    gate_close(&g, c, s);
    assert_ok(c->ops->event_record(c->self, e, s));
    assert_false(conf_done(c, e));
    assert_false(conf_done(c, e));
    gate_open(&g);
    assert_ok(c->ops->event_synchronize(c->self, e));
    assert_true(conf_done(c, e));
    gate_fini(&g);
    assert_ok(c->ops->event_destroy(c->self, e));
    assert_ok(c->ops->stream_destroy(c->self, s));
}

static void event_does_not_wait_for_the_work_after_it(void **state) {
    struct conf *c = conf_of(state);
    tn_stream s = conf_stream(c, 0);
    tn_event e = conf_event(c, s);
    struct gate g;

    assert_ok(c->ops->event_record(c->self, e, s));
    gate_close(&g, c, s);
    assert_ok(c->ops->event_synchronize(c->self, e));
    assert_true(conf_done(c, e));
    gate_open(&g);
    assert_ok(c->ops->stream_synchronize(c->self, s));
    gate_fini(&g);
    assert_ok(c->ops->event_destroy(c->self, e));
    assert_ok(c->ops->stream_destroy(c->self, s));
}

static void event_recorded_again_answers_for_the_last_record(void **state) {
    struct conf *c = conf_of(state);
    tn_stream a = conf_stream(c, 0);
    tn_stream b = conf_stream(c, 0);
    tn_event e = conf_event(c, a);
    struct gate g;

    gate_close(&g, c, a);
    assert_ok(c->ops->event_record(c->self, e, a));
    assert_ok(c->ops->event_record(c->self, e, b));
    assert_ok(c->ops->event_synchronize(c->self, e));
    assert_true(conf_done(c, e));
    assert_ok(c->ops->event_record(c->self, e, a));
    assert_false(conf_done(c, e));
    gate_open(&g);
    assert_ok(c->ops->event_synchronize(c->self, e));
    gate_fini(&g);
    assert_ok(c->ops->event_destroy(c->self, e));
    assert_ok(c->ops->stream_destroy(c->self, a));
    assert_ok(c->ops->stream_destroy(c->self, b));
}

static void event_destroyed_while_pending_lets_work_go_on(void **state) {
    struct conf *c = conf_of(state);
    tn_stream a = conf_stream(c, 0);
    tn_stream b = conf_stream(c, 0);
    tn_event e = conf_event(c, a);
    struct gate g;

    gate_close(&g, c, a);
    assert_ok(c->ops->event_record(c->self, e, a));
    assert_ok(c->ops->stream_wait(c->self, b, e));
    assert_ok(c->ops->event_destroy(c->self, e));
    gate_open(&g);
    assert_ok(c->ops->stream_synchronize(c->self, b));
    assert_ok(c->ops->stream_synchronize(c->self, a));
    gate_fini(&g);
    assert_ok(c->ops->stream_destroy(c->self, a));
    assert_ok(c->ops->stream_destroy(c->self, b));
}

/* Between two streams of devices `x` and `y`. */
static void check_wait(struct conf *c, uint32_t x, uint32_t y) {
    tn_stream a = conf_stream(c, x);
    tn_stream b = conf_stream(c, y);
    tn_event e = conf_event(c, a);
    tn_event f = conf_event(c, b);
    struct gate g;

    gate_close(&g, c, a);
    assert_ok(c->ops->stream_wait(c->self, b, e)); /* never recorded: no wait */
    assert_ok(c->ops->stream_synchronize(c->self, b));
    assert_ok(c->ops->event_record(c->self, e, a));
    assert_ok(c->ops->stream_wait(c->self, b, e));
    assert_ok(c->ops->event_record(c->self, f, b));
    assert_false(conf_done(c, f));
    gate_open(&g);
    assert_ok(c->ops->event_synchronize(c->self, f));
    assert_true(conf_done(c, e));
    gate_fini(&g);
    assert_ok(c->ops->event_destroy(c->self, e));
    assert_ok(c->ops->event_destroy(c->self, f));
    assert_ok(c->ops->stream_destroy(c->self, a));
    assert_ok(c->ops->stream_destroy(c->self, b));
}

static void stream_waits_for_event_of_its_device(void **state) { check_wait(conf_of(state), 0, 0); }

static void stream_waits_for_event_of_another_device(void **state) {
    struct conf *c = conf_of(state);

    if (c->devices < 2)
        TN_SKIP("there is only one device");
    check_wait(c, 0, 1);
}

static void stream_waits_for_the_record_of_then(void **state) {
    struct conf *c = conf_of(state);
    tn_stream a = conf_stream(c, 0);
    tn_stream b = conf_stream(c, 0);
    tn_event e = conf_event(c, a);
    struct gate g;

    assert_ok(c->ops->event_record(c->self, e, a));
    assert_ok(c->ops->stream_wait(c->self, b, e));
    gate_close(&g, c, a);
    assert_ok(c->ops->event_record(c->self, e, a));
    assert_ok(c->ops->stream_synchronize(c->self, b));
    gate_open(&g);
    assert_ok(c->ops->stream_synchronize(c->self, a));
    gate_fini(&g);
    assert_ok(c->ops->event_destroy(c->self, e));
    assert_ok(c->ops->stream_destroy(c->self, a));
    assert_ok(c->ops->stream_destroy(c->self, b));
}

static void event_of_another_context_is_refused(void **state) {
    struct conf *c = conf_of(state);
    tn_stream_info info;
    tn_stream s = conf_stream(c, 0);
    tn_event e = NULL;

    assert_ok(c->ops->stream_info(c->self, s, &info));
    assert_status(c->ops->event_create(c->self, c->devices, info.context, &e), TN_ERR_DRIVER);
    assert_null(e);
    assert_ok(c->ops->stream_destroy(c->self, s));
}

static const struct CMUnitTest tests[] = {
    CONF_TEST(event_never_recorded_is_complete),
    CONF_TEST(event_follows_the_work_before_it),
    CONF_TEST(event_does_not_wait_for_the_work_after_it),
    CONF_TEST(event_recorded_again_answers_for_the_last_record),
    CONF_TEST(event_destroyed_while_pending_lets_work_go_on),
    CONF_TEST(stream_waits_for_event_of_its_device),
    CONF_TEST(stream_waits_for_event_of_another_device),
    CONF_TEST(stream_waits_for_the_record_of_then),
    CONF_TEST(event_of_another_context_is_refused),
};

TN_TEST_MAIN("conformance.events", tests)
