/* SPDX-License-Identifier: MIT */
/* Driver contract: streams are queues, independent of each other, that can be waited for. */
#include "conf.h"

static void stream_belongs_to_its_device(void **state) {
    struct conf *c = conf_of(state);
    uint32_t i;

    for (i = 0; i < c->devices; i++) {
        tn_stream s = conf_stream(c, i);
        tn_stream_info info = {99, 99, 0};

        assert_ok(c->ops->stream_info(c->self, s, &info));
        assert_int_equal(info.device, i);
        assert_int_equal(info.capturing, 0);
        assert_true(info.context != 0);
        assert_ok(c->ops->stream_destroy(c->self, s));
    }
}

static void streams_of_one_device_share_its_context(void **state) {
    struct conf *c = conf_of(state);
    tn_stream a = conf_stream(c, 0);
    tn_stream b = conf_stream(c, 0);
    tn_stream_info x;
    tn_stream_info y;

    assert_true(a != b);
    assert_ok(c->ops->stream_info(c->self, a, &x));
    assert_ok(c->ops->stream_info(c->self, b, &y));
    assert_true(x.context == y.context);
    assert_ok(c->ops->stream_destroy(c->self, a));
    assert_ok(c->ops->stream_destroy(c->self, b));
}

static void stream_null_is_none(void **state) {
    struct conf *c = conf_of(state);
    tn_stream_info info;

    assert_status(c->ops->stream_info(c->self, NULL, &info), TN_ERR_KIND);
}

static void stream_of_missing_device_is_refused(void **state) {
    struct conf *c = conf_of(state);
    tn_stream s = NULL;

    assert_status(c->ops->stream_create(c->self, c->devices, &s), TN_ERR_DRIVER);
    assert_null(s);
}

static void stream_idle_is_synchronised_at_once(void **state) {
    struct conf *c = conf_of(state);
    tn_stream s = conf_stream(c, 0);

    assert_ok(c->ops->stream_synchronize(c->self, s));
    assert_ok(c->ops->device_synchronize(c->self, 0));
    assert_ok(c->ops->stream_destroy(c->self, s));
}

struct steps {
    pthread_mutex_t mutex;
    char text[64];
    size_t length;
};

struct step {
    struct steps *steps;
    char name;
};

static void step(void *context) {
    struct step *s = context;

    pthread_mutex_lock(&s->steps->mutex);
    s->steps->text[s->steps->length++] = s->name;
    pthread_mutex_unlock(&s->steps->mutex);
}

static void work_of_one_stream_runs_in_order(void **state) {
    struct conf *c = conf_of(state);
    tn_stream s = conf_stream(c, 0);
    struct steps steps = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct step each[26];
    struct gate g;
    int i;

    gate_close(&g, c, s);
    for (i = 0; i < 26; i++) {
        each[i] = (struct step){&steps, (char)('a' + i)};
        assert_ok(c->ops->host_function(c->self, s, step, &each[i]));
    }
    assert_int_equal(steps.length, 0);
    gate_open(&g);
    assert_ok(c->ops->stream_synchronize(c->self, s));
    assert_string_equal(steps.text, "abcdefghijklmnopqrstuvwxyz");
    gate_fini(&g);
    assert_ok(c->ops->stream_destroy(c->self, s));
}

/* The work is a copy: a driver may run the host functions of all streams on one thread. */
static void stream_kept_busy_holds_up_no_other(void **state) {
    struct conf *c = conf_of(state);
    tn_stream a = conf_stream(c, 0);
    tn_stream b = conf_stream(c, 0);
    tn_event e = conf_event(c, b);
    unsigned char back[1000] = {0};
    unsigned char *bytes = conf_pattern(1, sizeof(back));
    void *p = conf_device(c, 0, sizeof(back));
    struct gate g;

    conf_put(c, p, 0, bytes, sizeof(back));
    gate_close(&g, c, a);
    assert_ok(c->ops->copy(c->self, back, tn_location_pageable(), p, tn_location_cuda(0),
                           sizeof(back), b));
    assert_ok(c->ops->event_record(c->self, e, b));
    assert_ok(c->ops->stream_synchronize(c->self, b));
    assert_true(conf_done(c, e));
    conf_check(back, 1, sizeof(back));
    gate_open(&g);
    assert_ok(c->ops->stream_synchronize(c->self, a));
    gate_fini(&g);
    assert_ok(c->ops->device_free(c->self, 0, p, sizeof(back)));
    assert_ok(c->ops->event_destroy(c->self, e));
    free(bytes);
    assert_ok(c->ops->stream_destroy(c->self, a));
    assert_ok(c->ops->stream_destroy(c->self, b));
}

struct waiter {
    const struct conf *c;
    tn_stream stream; /* NULL: the device */
    tn_status status;
    bool over; /* under the mutex of the gate */
    struct gate *gate;
};

static void *wait_for(void *argument) {
    struct waiter *w = argument;

    w->status = w->stream != NULL ? w->c->ops->stream_synchronize(w->c->self, w->stream)
                                  : w->c->ops->device_synchronize(w->c->self, 0);
    pthread_mutex_lock(&w->gate->mutex);
    w->over = w->gate->open;
    pthread_mutex_unlock(&w->gate->mutex);
    return NULL;
}

/* The waiters come back only after the gate was opened. */
static void synchronising_waits_for_what_is_queued(void **state) {
    struct conf *c = conf_of(state);
    tn_stream s = conf_stream(c, 0);
    struct gate g;
    struct waiter w[2] = {{c, s, TN_ERR_INTERNAL, false, &g},
                          {c, NULL, TN_ERR_INTERNAL, false, &g}};
    pthread_t thread[2];
    int i;

    gate_close(&g, c, s);
    for (i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, wait_for, &w[i]), 0);
    gate_open(&g);
    for (i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
        assert_status(w[i].status, TN_OK);
        assert_true(w[i].over);
    }
    gate_fini(&g);
    assert_ok(c->ops->stream_destroy(c->self, s));
}

static void stream_destroyed_finishes_its_work(void **state) {
    struct conf *c = conf_of(state);
    tn_stream s = conf_stream(c, 0);
    tn_stream other = conf_stream(c, 0);
    tn_event e = conf_event(c, s);
    struct steps steps = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct step mine = {&steps, 'x'};
    struct gate g;

    gate_close(&g, c, s);
    assert_ok(c->ops->host_function(c->self, s, step, &mine));
    assert_ok(c->ops->event_record(c->self, e, s));
    assert_ok(c->ops->stream_destroy(c->self, s));
    assert_false(conf_done(c, e));
    gate_open(&g);
    assert_ok(c->ops->event_synchronize(c->self, e));
    assert_string_equal(steps.text, "x");
    gate_fini(&g);
    assert_ok(c->ops->event_destroy(c->self, e));
    assert_ok(c->ops->stream_destroy(c->self, other));
}

static const struct CMUnitTest tests[] = {
    CONF_TEST(stream_belongs_to_its_device),
    CONF_TEST(streams_of_one_device_share_its_context),
    CONF_TEST(stream_null_is_none),
    CONF_TEST(stream_of_missing_device_is_refused),
    CONF_TEST(stream_idle_is_synchronised_at_once),
    CONF_TEST(work_of_one_stream_runs_in_order),
    CONF_TEST(stream_kept_busy_holds_up_no_other),
    CONF_TEST(synchronising_waits_for_what_is_queued),
    CONF_TEST(stream_destroyed_finishes_its_work),
};

TN_TEST_MAIN("conformance.streams", tests)
