/* SPDX-License-Identifier: MIT */
/* What the conformance programs share: a driver per test, a gate that keeps a stream busy, patterns
 * of bytes. */
#ifndef TN_TEST_CONF_H
#define TN_TEST_CONF_H

#include "tn_test.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"

struct conf {
    tn_driver *driver;
    const tn_driver_ops *ops;
    void *self;
    uint32_t devices;
};

static inline int conf_setup(void **state) {
    static struct conf c;

    c.driver = backend_open();
    *state = &c;
    if (c.driver == NULL)
        return 0;
    c.ops = tn_driver_table(c.driver);
    c.self = tn_driver_self(c.driver);
    assert_ok(c.ops->device_count(c.self, &c.devices));
    return 0;
}

static inline int conf_teardown(void **state) {
    struct conf *c = *state;
    const char *complaint = c->driver != NULL ? backend_close(c->driver) : NULL;

    if (complaint != NULL)
        print_error("backend: %s\n", complaint);
    return complaint != NULL;
}

/* The first line of every test. */
static inline struct conf *conf_of(void **state) {
    struct conf *c = *state;

    if (c->driver == NULL)
        TN_SKIP(backend_why());
    return c;
}

#define CONF_TEST(name) cmocka_unit_test_setup_teardown(name, conf_setup, conf_teardown)

/* Memory, streams, events. */

static inline tn_stream conf_stream(const struct conf *c, uint32_t device) {
    tn_stream stream = NULL;

    assert_ok(c->ops->stream_create(c->self, device, &stream));
    return stream;
}

static inline tn_event conf_event(const struct conf *c, tn_stream stream) {
    tn_stream_info info;
    tn_event event = NULL;

    assert_ok(c->ops->stream_info(c->self, stream, &info));
    assert_ok(c->ops->event_create(c->self, info.device, info.context, &event));
    return event;
}

static inline bool conf_done(const struct conf *c, tn_event event) {
    uint32_t done = 7;

    assert_ok(c->ops->event_query(c->self, event, &done));
    assert_true(done <= 1);
    return done == 1;
}

static inline void *conf_device(const struct conf *c, uint32_t device, uint64_t bytes) {
    void *p = NULL;

    assert_ok(c->ops->device_alloc(c->self, device, bytes, &p));
    assert_non_null(p);
    return p;
}

static inline unsigned char *conf_pinned(const struct conf *c, size_t bytes) {
    void *p = NULL;

    assert_ok(c->ops->pinned_alloc(c->self, bytes, &p));
    assert_non_null(p);
    return p;
}

static inline bool conf_can_pin(const struct conf *c) {
    return c->ops->capabilities == NULL || !(c->ops->capabilities(c->self) & TN_DRIVER_NO_PINNED);
}

static inline void conf_put(const struct conf *c, void *to, uint32_t device, const void *from,
                            uint64_t bytes) {
    assert_ok(c->ops->copy(c->self, to, tn_location_cuda(device), from, tn_location_pageable(),
                           bytes, NULL));
}

static inline void conf_get(const struct conf *c, void *to, const void *from, uint32_t device,
                            uint64_t bytes) {
    assert_ok(c->ops->copy(c->self, to, tn_location_pageable(), from, tn_location_cuda(device),
                           bytes, NULL));
}

static inline unsigned char conf_byte(uint32_t seed, uint64_t i) {
    return (unsigned char)((i * 31 + i / 253 + seed * 97) & 0xff);
}

static inline unsigned char *conf_pattern(uint32_t seed, uint64_t bytes) {
    unsigned char *p = malloc(bytes);
    uint64_t i;

    assert_non_null(p);
    for (i = 0; i < bytes; i++)
        p[i] = conf_byte(seed, i);
    return p;
}

static inline void conf_check(const unsigned char *p, uint32_t seed, uint64_t bytes) {
    uint64_t i;

    for (i = 0; i < bytes; i++)
        if (p[i] != conf_byte(seed, i))
            fail_msg("byte %llu is %u, expected %u", (unsigned long long)i, p[i],
                     conf_byte(seed, i));
}

/* A stream that reaches a closed gate stays there until it is opened. */
struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool reached;
    bool open;
};

static inline void gate_function(void *context) {
    struct gate *g = context;

    pthread_mutex_lock(&g->mutex);
    g->reached = true;
    pthread_cond_broadcast(&g->changed);
    while (!g->open)
        pthread_cond_wait(&g->changed, &g->mutex);
    pthread_mutex_unlock(&g->mutex);
}

/* Close a stream; skips the test where the driver has no host functions. The stream is at the gate
 * on return. */
static inline void gate_close(struct gate *g, const struct conf *c, tn_stream stream) {
    if (c->ops->host_function == NULL)
        TN_SKIP("the driver runs no host functions");
    pthread_mutex_init(&g->mutex, NULL);
    pthread_cond_init(&g->changed, NULL);
    g->reached = false;
    g->open = false;
    assert_ok(c->ops->host_function(c->self, stream, gate_function, g));
    pthread_mutex_lock(&g->mutex);
    while (!g->reached)
        pthread_cond_wait(&g->changed, &g->mutex);
    pthread_mutex_unlock(&g->mutex);
}

static inline void gate_open(struct gate *g) {
    pthread_mutex_lock(&g->mutex);
    g->open = true;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->mutex);
}

/* After the stream was synchronised. */
static inline void gate_fini(struct gate *g) {
    pthread_cond_destroy(&g->changed);
    pthread_mutex_destroy(&g->mutex);
}

#endif
