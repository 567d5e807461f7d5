/* SPDX-License-Identifier: MIT */
/* A driver that answers what a test tells it to, for the unit tests of src/driver. */
#ifndef TN_TEST_DRIVER_FAKE_H
#define TN_TEST_DRIVER_FAKE_H

#include "tn_test.h"

#include <stdlib.h>
#include <string.h>

#include <tenure/driver.h>
#include <tenure/error.h>

/* What every entry answers, and what it was called with. */
static struct {
    tn_status status;
    int64_t code;
    uint32_t devices;
    uint32_t capabilities;
    tn_stream_info info;
    uint32_t done;
    tn_status pointer_status;
    tn_location pointer;
    uint32_t calls;
    uint32_t frees;
} fake = {.devices = 2};

static tn_status fake_answer(void) {
    fake.calls++;
    return fake.status;
}

static tn_status fake_device_count(void *self, uint32_t *out) {
    (void)self;
    *out = fake.devices;
    return fake.status;
}

static uint32_t fake_capabilities(void *self) {
    (void)self;
    return fake.capabilities;
}

static int64_t fake_last_code(void *self) {
    (void)self;
    return fake.code;
}

static tn_status fake_device_alloc(void *self, uint32_t device, uint64_t bytes, void **out) {
    (void)self;
    (void)device;
    *out = fake.status == TN_OK ? malloc(bytes) : NULL;
    return fake_answer();
}

static tn_status fake_device_free(void *self, uint32_t device, void *pointer, uint64_t bytes) {
    (void)self;
    (void)device;
    (void)bytes;
    fake.frees++;
    free(pointer);
    return fake_answer();
}

static tn_status fake_pinned_alloc(void *self, size_t bytes, void **out) {
    return fake_device_alloc(self, 0, bytes, out);
}

static tn_status fake_pinned_free(void *self, void *pointer, size_t bytes) {
    return fake_device_free(self, 0, pointer, bytes);
}

static tn_status fake_stream_create(void *self, uint32_t device, tn_stream *out) {
    (void)device;
    *out = self;
    return fake_answer();
}

static tn_status fake_stream(void *self, tn_stream stream) {
    (void)self;
    (void)stream;
    return fake_answer();
}

static tn_status fake_stream_info(void *self, tn_stream stream, tn_stream_info *out) {
    (void)self;
    (void)stream;
    *out = fake.info;
    return fake_answer();
}

static tn_status fake_stream_wait(void *self, tn_stream stream, tn_event event) {
    (void)event;
    return fake_stream(self, stream);
}

static tn_status fake_event_create(void *self, uint32_t device, uint64_t context, tn_event *out) {
    (void)device;
    (void)context;
    *out = self;
    return fake_answer();
}

static tn_status fake_event(void *self, tn_event event) {
    (void)self;
    (void)event;
    return fake_answer();
}

static tn_status fake_event_record(void *self, tn_event event, tn_stream stream) {
    return fake_stream_wait(self, stream, event);
}

static tn_status fake_event_query(void *self, tn_event event, uint32_t *out_done) {
    *out_done = fake.done;
    return fake_event(self, event);
}

static tn_status fake_copy(void *self, void *destination, tn_location destination_at,
                           const void *source, tn_location source_at, uint64_t bytes,
                           tn_stream stream) {
    (void)self;
    (void)destination_at;
    (void)source_at;
    (void)stream;
    if (fake.status == TN_OK)
        memcpy(destination, source, bytes);
    return fake_answer();
}

static tn_status fake_device_synchronize(void *self, uint32_t device) {
    (void)self;
    (void)device;
    return fake_answer();
}

static tn_status fake_host_function(void *self, tn_stream stream, void (*function)(void *context),
                                    void *context) {
    (void)function;
    (void)context;
    return fake_stream(self, stream);
}

static tn_status fake_device_memory(void *self, uint32_t device, tn_device_memory *out) {
    (void)self;
    (void)device;
    *out = (tn_device_memory){100, 60, 30, 40};
    return fake_answer();
}

static tn_status fake_pointer_location(void *self, const void *pointer, tn_location *out) {
    (void)self;
    (void)pointer;
    *out = fake.pointer;
    return fake.pointer_status;
}

static inline tn_driver_ops fake_ops(void) {
    return (tn_driver_ops){
        .size = sizeof(tn_driver_ops),
        .abi = TN_DRIVER_ABI,
        .name = "fake",
        .device_count = fake_device_count,
        .capabilities = fake_capabilities,
        .last_code = fake_last_code,
        .device_alloc = fake_device_alloc,
        .device_free = fake_device_free,
        .pinned_alloc = fake_pinned_alloc,
        .pinned_free = fake_pinned_free,
        .stream_create = fake_stream_create,
        .stream_destroy = fake_stream,
        .stream_info = fake_stream_info,
        .stream_synchronize = fake_stream,
        .stream_wait = fake_stream_wait,
        .event_create = fake_event_create,
        .event_destroy = fake_event,
        .event_record = fake_event_record,
        .event_query = fake_event_query,
        .event_synchronize = fake_event,
        .copy = fake_copy,
        .device_synchronize = fake_device_synchronize,
        .host_function = fake_host_function,
        .device_memory = fake_device_memory,
        .pointer_location = fake_pointer_location,
    };
}

static inline tn_driver *fake_driver(const tn_driver_ops *ops) {
    tn_driver *driver;

    memset(&fake, 0, sizeof(fake));
    fake.devices = 2;
    fake.pointer = tn_location_pinned();
    assert_ok(tn_driver_create(ops, &fake, &driver));
    return driver;
}

#endif
