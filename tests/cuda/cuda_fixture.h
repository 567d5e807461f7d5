/* SPDX-License-Identifier: MIT */
/* The CUDA backend over the test driver and a simulated machine. */
#ifndef TN_TEST_CUDA_FIXTURE_H
#define TN_TEST_CUDA_FIXTURE_H

#include "tn_test.h"

#include <string.h>

#include "cuda_shim.h"
#include "driver/driver_internal.h"
#include "tenure/tenure.h"

#define MS UINT64_C(1000000)
#define C0 tn_location_cuda(0)
#define C1 tn_location_cuda(1)
#define HOST tn_location_pageable()

struct cuda {
    tn_sim *sim;
    struct cuda_shim *shim;
    tn_driver *driver;
    const tn_driver_ops *ops;
    void *self;
};

static inline struct cuda cuda_open(const char *variant, const char *machine) {
    struct cuda c;

    assert_ok(tn_sim_create(machine, &c.sim));
    c.shim = cuda_shim_load(variant, tn_sim_driver(c.sim));
    c.driver = cuda_shim_open(variant);
    c.ops = tn_driver_table(c.driver);
    c.self = tn_driver_self(c.driver);
    return c;
}

/* Nothing is left, and nothing was misused. */
static inline void cuda_close(struct cuda *c) {
    tn_driver_destroy(c->driver);
    if (atomic_load(&c->shim->complaints) != 0)
        fail_msg("test driver: %s", c->shim->complaint);
    if (tn_sim_violations(c->sim) != 0)
        fail_msg("machine: %s", tn_sim_violation_text(c->sim));
    assert_int_equal(atomic_load(&c->shim->retained), 0);
    assert_int_equal(atomic_load(&c->shim->live_pools), 0);
    assert_int_equal(tn_sim_live_streams(c->sim), 0);
    assert_int_equal(tn_sim_live_events(c->sim), 0);
    assert_int_equal(c->shim->depth(), 0);
    tn_sim_destroy(c->sim);
}

/* After a test that left things in a driver that was gone. */
static inline void cuda_close_gone(struct cuda *c) {
    tn_driver_destroy(c->driver);
    assert_int_equal(atomic_load(&c->shim->retained), 0);
    tn_sim_destroy(c->sim);
}

static inline void *device_block(struct cuda *c, uint32_t device, uint64_t bytes) {
    void *p = NULL;

    assert_ok(c->ops->device_alloc(c->self, device, bytes, &p));
    assert_non_null(p);
    return p;
}

static inline tn_stream test_stream(struct cuda *c, uint32_t device, uint32_t flags) {
    tn_stream stream = NULL;

    assert_ok(tn_sim_stream_create(c->sim, device, flags, &stream));
    return stream;
}

static inline tn_stream_info info_of(struct cuda *c, tn_stream stream) {
    tn_stream_info info = {99, 99, 0};

    assert_ok(c->ops->stream_info(c->self, stream, &info));
    return info;
}

static inline tn_event event_for(struct cuda *c, tn_stream stream) {
    tn_stream_info info = info_of(c, stream);
    tn_event event = NULL;

    assert_ok(c->ops->event_create(c->self, info.device, info.context, &event));
    return event;
}

static inline uint32_t done(struct cuda *c, tn_event event) {
    uint32_t answer = 7;

    assert_ok(c->ops->event_query(c->self, event, &answer));
    return answer;
}

static inline void fail_next(struct cuda *c, uint32_t entry, tn_status status, int64_t code) {
    tn_sim_fault fault = TN_SIM_FAULT_INIT;

    fault.entry = entry;
    fault.status = status;
    fault.native_code = code;
    assert_ok(tn_sim_fault_arm(c->sim, &fault));
}

static inline tn_sim_memory memory_at(struct cuda *c, tn_location at) {
    tn_sim_memory memory = {.size = sizeof(memory)};

    assert_ok(tn_sim_read_memory(c->sim, at, &memory));
    return memory;
}

#endif
