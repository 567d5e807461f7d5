/* SPDX-License-Identifier: MIT */
/*
 * The built-in payload: segments of bytes at one location.
 *
 * All segments stand in one allocation where that needs no padding (each but the last a multiple of
 * ALIGNMENT: CKKS limbs are), so that a value moves by one copy; else each has its own. Either way
 * storage bytes equal logical bytes, which a spec with equal numbers needs (M36). The layout
 * follows from the sizes alone: a copy has the extents of its original.
 */
#include <string.h>

#include "value/value_priv.h"

#define ALIGNMENT 256u /* of every segment in a shared allocation: what device allocators give */

struct tn_buffer {
    tn_driver *driver;
    tn_location at;
    size_t count;
    size_t extent_count; /* 1: `whole`; else `count`: `segments` */
    tn_segment whole;
    tn_segment segments[];
};

const tn_segment *tn__buffer_extents(const tn_buffer *buffer, size_t *out_count) {
    *out_count = buffer->extent_count;
    return buffer->extent_count == 1 ? &buffer->whole : buffer->segments;
}

static tn_segment *extents(tn_buffer *buffer) {
    return buffer->extent_count == 1 ? &buffer->whole : buffer->segments;
}

/* A buffer without memory. */
static tn_status make_shell(tn_driver *driver, tn_location at, size_t count, tn_buffer **out) {
    if (count > (SIZE_MAX - sizeof(tn_buffer)) / sizeof(tn_segment))
        return tn__no_memory();
    tn_buffer *buffer = tn__zalloc(sizeof *buffer + count * sizeof(tn_segment));
    if (!buffer)
        return tn__no_memory();
    buffer->driver = driver;
    buffer->at = at;
    buffer->count = count;
    *out = buffer;
    return TN_OK;
}

/* The segments' sizes are set: choose the extents. */
static void choose_extents(tn_buffer *buffer) {
    uint64_t sum = 0;
    bool shared = true;
    for (size_t i = 0; i < buffer->count; ++i) {
        if (buffer->segments[i].bytes > 0 && sum % ALIGNMENT != 0)
            shared = false;
        sum += buffer->segments[i].bytes;
    }
    buffer->whole.bytes = sum;
    buffer->extent_count = shared ? 1 : buffer->count;
}

static void place_segments(tn_buffer *buffer) {
    if (buffer->extent_count != 1)
        return;
    uint64_t offset = 0;
    for (size_t i = 0; i < buffer->count; ++i) {
        tn_segment *segment = &buffer->segments[i];
        segment->data = segment->bytes > 0 ? (char *)buffer->whole.data + offset : NULL;
        offset += segment->bytes;
    }
}

static tn_status allocate_extents(tn_buffer *buffer) {
    choose_extents(buffer);
    tn_segment *list = extents(buffer);
    for (size_t i = 0; i < buffer->extent_count; ++i) {
        tn_status status =
            tn_memory_alloc(buffer->driver, buffer->at, list[i].bytes, &list[i].data);
        if (status != TN_OK)
            return status;
    }
    place_segments(buffer);
    return TN_OK;
}

/* A failing free is the thread's error afterwards; the rest is freed all the same. */
static void free_buffer(tn_buffer *buffer) {
    tn_segment *list = extents(buffer);
    for (size_t i = 0; i < buffer->extent_count; ++i)
        if (list[i].data)
            (void)tn_memory_free(buffer->driver, buffer->at, list[i].data, list[i].bytes);
    tn__free(buffer);
}

static tn_status check_sizes(const uint64_t *bytes, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; ++i) {
        sum = tn__add_capped(sum, bytes[i]);
        if (sum > INT64_MAX)
            return tn__fail(TN_ERR_VALUE, "the segments' bytes are above INT64_MAX");
    }
    return TN_OK;
}

tn_status tn_buffer_create(tn_driver *driver, tn_location at, const uint64_t *segment_bytes,
                           size_t count, tn_buffer **out) {
    tn_buffer *buffer = NULL;
    if (!segment_bytes || !out)
        return tn__fail(TN_ERR_KIND, "%s is NULL", out ? "segment_bytes" : "the output");
    if (count == 0)
        return tn__fail(TN_ERR_VALUE, "a buffer has at least one segment");
    tn_status status = tn__driver_check_location(driver, at, &at);
    if (status == TN_OK)
        status = check_sizes(segment_bytes, count);
    if (status == TN_OK)
        status = make_shell(driver, at, count, &buffer);
    if (status != TN_OK)
        return status;
    for (size_t i = 0; i < count; ++i)
        buffer->segments[i].bytes = segment_bytes[i];
    status = allocate_extents(buffer);
    if (status != TN_OK) {
        tn__cleanup cleanup = {TN_OK, 0};
        tn_error first = *tn__error_current();
        tn__cleanup_destroy(&cleanup, tn_buffer_payload(buffer));
        return tn__cleanup_finish(&cleanup, &first, status);
    }
    *out = buffer;
    return TN_OK;
}

void tn_buffer_destroy(tn_buffer *buffer) { tn_payload_destroy(tn_buffer_payload(buffer)); }

size_t tn_buffer_segment_count(const tn_buffer *buffer) { return buffer ? buffer->count : 0; }

tn_segment tn_buffer_segment(const tn_buffer *buffer, size_t index) {
    if (!buffer || index >= buffer->count)
        return (tn_segment){NULL, 0};
    return buffer->segments[index];
}

tn_location tn_buffer_location(const tn_buffer *buffer) {
    return buffer ? buffer->at : tn_location_none();
}

tn_payload tn_buffer_payload(tn_buffer *buffer) { return (tn_payload){tn_buffer_type(), buffer}; }

/* ---- The type --------------------------------------------------------------------------- */

/* Extents, not segments, are the fields told here: an extent's bytes are its segments' bytes. */
static tn_status buffer_measure(const void *payload, tn_storage *storages, size_t *inout_count,
                                uint64_t *out_logical_bytes) {
    const tn_buffer *buffer = payload;
    size_t count = 0;
    const tn_segment *list = tn__buffer_extents(buffer, &count);
    for (size_t i = 0; i < count && i < *inout_count; ++i)
        storages[i] = (tn_storage){list[i].data, list[i].bytes, buffer->at};
    *inout_count = count;
    *out_logical_bytes = buffer->whole.bytes;
    return TN_OK;
}

/* Undo of a copy that failed half-way: what was allocated may still be written by the stream. */
static void free_copy(tn_copier *copier, tn_buffer *copy) {
    tn_segment *list = extents(copy);
    for (size_t i = 0; i < copy->extent_count; ++i)
        tn_copier_free(copier, list[i].data, list[i].bytes);
    tn__free(copy);
}

static tn_status copy_extents(tn_copier *copier, const tn_buffer *from, tn_buffer *to) {
    size_t count = 0;
    const tn_segment *source = tn__buffer_extents(from, &count);
    const tn_segment *destination = extents(to);
    for (size_t i = 0; i < count; ++i) {
        tn_status status =
            tn_copier_copy(copier, destination[i].data, source[i].data, from->at, source[i].bytes);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static tn_status buffer_copy(const void *payload, tn_copier *copier, void **out_payload) {
    const tn_buffer *from = payload;
    tn_buffer *to = NULL;
    tn_status status =
        make_shell(tn_copier_driver(copier), tn_copier_location(copier), from->count, &to);
    if (status != TN_OK)
        return status;
    for (size_t i = 0; i < from->count; ++i)
        to->segments[i].bytes = from->segments[i].bytes;
    status = allocate_extents(to);
    if (status == TN_OK)
        status = copy_extents(copier, from, to);
    if (status != TN_OK) {
        free_copy(copier, to);
        return status;
    }
    *out_payload = to;
    return TN_OK;
}

static void buffer_destroy(void *payload) { free_buffer(payload); }

const tn_value_type *tn_buffer_type(void) {
    static const tn_value_type type = {sizeof type,    "buffer",    NULL,
                                       buffer_measure, buffer_copy, buffer_destroy};
    return &type;
}
