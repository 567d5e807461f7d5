/* SPDX-License-Identifier: MIT */
/* A simulated machine at hand, for the unit tests of the driver and the simulator. */
#ifndef TN_TEST_SIM_MACHINE_H
#define TN_TEST_SIM_MACHINE_H

#include "tn_test.h"

#include <stdio.h>
#include <string.h>

#include <tenure/error.h>
#include <tenure/sim.h>

#define MS UINT64_C(1000000)

struct machine {
    tn_sim *sim;
    tn_driver *driver;
    const tn_driver_ops *ops;
    void *self;
};

static inline struct machine machine_open(const char *text) {
    struct machine m;

    assert_ok(tn_sim_create(text, &m.sim));
    m.driver = tn_sim_driver(m.sim);
    m.ops = tn_driver_table(m.driver);
    m.self = tn_driver_self(m.driver);
    return m;
}

/* Whatever a test does, it does not break the machine's rules, unless it says so with `violations`.
 */
static inline void machine_close_after(struct machine *m, uint64_t violations) {
    uint64_t seen = tn_sim_violations(m->sim);

    if (seen != violations)
        print_error("violation: %s\n", tn_sim_violation_text(m->sim));
    assert_int_equal(seen, violations);
    tn_sim_destroy(m->sim);
}

static inline void machine_close(struct machine *m) { machine_close_after(m, 0); }

static inline uint64_t now_ms(const struct machine *m) { return tn_sim_now_ns(m->sim) / MS; }

static inline void advance_ms(const struct machine *m, uint64_t ms) {
    assert_ok(tn_sim_advance(m->sim, ms * MS));
}

static inline tn_stream stream_on(const struct machine *m, uint32_t device) {
    tn_stream stream;

    assert_ok(tn_sim_stream_create(m->sim, device, 0, &stream));
    return stream;
}

static inline tn_event event_on(const struct machine *m, uint32_t device) {
    tn_stream_info info;
    tn_stream stream = stream_on(m, device);
    tn_event event;

    assert_ok(m->ops->stream_info(m->self, stream, &info));
    assert_ok(tn_sim_stream_destroy(m->sim, stream));
    assert_ok(m->ops->event_create(m->self, device, info.context, &event));
    return event;
}

static inline bool event_done(const struct machine *m, tn_event event) {
    uint32_t done = 2;

    assert_ok(m->ops->event_query(m->self, event, &done));
    return done == 1;
}

static inline unsigned char *block_at(const struct machine *m, tn_location at, uint64_t bytes) {
    void *block;

    assert_ok(tn_memory_alloc(m->driver, at, bytes, &block));
    return block;
}

static inline unsigned char *device_block(const struct machine *m, uint32_t device,
                                          uint64_t bytes) {
    return block_at(m, tn_location_cuda(device), bytes);
}

static inline unsigned char *pinned_block(const struct machine *m, uint64_t bytes) {
    return block_at(m, tn_location_pinned(), bytes);
}

static inline void device_drop(const struct machine *m, uint32_t device, void *block,
                               uint64_t bytes) {
    assert_ok(tn_memory_free(m->driver, tn_location_cuda(device), block, bytes));
}

static inline bool all_bytes(const unsigned char *p, uint64_t bytes, int byte) {
    uint64_t i;

    for (i = 0; i < bytes; i++)
        if (p[i] != (unsigned char)byte)
            return false;
    return true;
}

static inline tn_status to_device(const struct machine *m, uint32_t device, void *to,
                                  const void *from, uint64_t bytes, tn_stream stream) {
    return m->ops->copy(m->self, to, tn_location_cuda(device), from, tn_location_pageable(), bytes,
                        stream);
}

static inline tn_status to_host(const struct machine *m, uint32_t device, void *to,
                                const void *from, uint64_t bytes, tn_stream stream) {
    return m->ops->copy(m->self, to, tn_location_pageable(), from, tn_location_cuda(device), bytes,
                        stream);
}

static inline void arm(const struct machine *m, uint32_t entry, uint64_t nth, uint64_t count,
                       uint32_t status, int64_t code) {
    tn_sim_fault f = TN_SIM_FAULT_INIT;

    f.entry = entry;
    f.nth = nth;
    f.count = count;
    f.status = status;
    f.native_code = code;
    assert_ok(tn_sim_fault_arm(m->sim, &f));
}

#endif
