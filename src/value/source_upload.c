/* SPDX-License-Identifier: MIT */
/*
 * A file's content on its way to a device: while the copies out of some blocks of the ring run, the
 * next block is read (and hashed). One event per block tells when its copies are complete.
 */
#include "value/ring.h"
#include "value/source_file.h"

typedef struct upload {
    tn__file_load *load;
    tn__ring *ring;
    tn_driver *driver;
    tn__cursor to;
    /* blocks with queued copies, oldest first; block[i] is told by event[i] */
    uint32_t first, count, room;
    uint32_t block[TN__RING_BLOCKS_MAX];
} upload;

static uint32_t slot(const upload *u, uint32_t i) { return (u->first + i) % u->room; }

static tn_status wait_oldest(upload *u, uint32_t *out) {
    tn_status status = tn__event_synchronize(u->driver, u->load->route->events[u->first]);
    if (status != TN_OK)
        return status; /* it stays queued */
    *out = u->block[u->first];
    u->first = slot(u, 1);
    u->count--;
    return TN_OK;
}

/* A block to read into (R1, R2, R3). As many events as blocks: the oldest makes room for both. */
static tn_status obtain(upload *u, uint32_t *out) {
    for (;;) {
        if (u->count < u->room && tn__ring_take(u->ring, u->count, out))
            return TN_OK;
        tn_status status = wait_oldest(u, out);
        if (status != TN_OK || !tn__ring_over(u->ring, u->count + 1))
            return status;
        tn__ring_give(u->ring, *out);
    }
}

/* Queue what stands in a block. Whatever is returned, its copies may be queued. */
static tn_status send(upload *u, uint32_t block, uint64_t bytes) {
    const tn__route *route = u->load->route;
    const char *from = tn__ring_block(u->ring, block);
    uint32_t last = slot(u, u->count);
    tn_segment piece;
    u->block[last] = block;
    u->count++;
    while (tn__cursor_next(&u->to, bytes, &piece)) {
        tn_status status = tn__driver_copy(u->driver, piece.data, route->to, from,
                                           tn__ring_at(u->ring), piece.bytes, route->stream);
        if (status != TN_OK)
            return status;
        from += piece.bytes;
        bytes -= piece.bytes;
    }
    return tn__event_record(u->driver, route->events[last], route->stream);
}

static tn_status pass(upload *u, uint64_t bytes) {
    uint32_t block;
    tn_status status = obtain(u, &block);
    if (status != TN_OK)
        return status;
    tn_segment part = {tn__ring_block(u->ring, block), bytes};
    status = tn__file_fill(u->load, &part, 1, bytes);
    if (status != TN_OK) {
        tn__ring_give(u->ring, block);
        return status;
    }
    return send(u, block, bytes);
}

static tn_status pass_all(upload *u) {
    uint64_t total = u->load->source->file.bytes;
    uint64_t size = tn__ring_block_bytes(u->ring);
    tn_status status = TN_OK;
    while (status == TN_OK && u->load->done < total) {
        uint64_t left = total - u->load->done;
        status = pass(u, left < size ? left : size);
    }
    while (status == TN_OK && u->count > 0) {
        uint32_t block;
        status = wait_oldest(u, &block);
        if (status == TN_OK)
            tn__ring_give(u->ring, block);
    }
    return status;
}

/* After a failure: nothing queued by us may run on. If the stream cannot be waited for, the device
 * is; if that fails too, its context is broken and runs nothing any longer. */
static tn_status drain(upload *u, tn_status status) {
    tn__cleanup cleanup = {TN_OK, 0};
    tn_error first = *tn__error_current();
    tn_status waited = tn__stream_synchronize(u->driver, u->load->route->stream);
    tn__cleanup_note(&cleanup, waited);
    if (waited != TN_OK)
        waited = tn__device_synchronize(u->driver, u->load->route->to.index);
    tn__cleanup_note(&cleanup, waited);
    for (uint32_t i = 0; i < u->count; i++)
        tn__ring_give(u->ring, u->block[slot(u, i)]);
    u->count = 0;
    return tn__cleanup_finish(&cleanup, &first, status);
}

tn_status tn__file_upload(tn__file_load *l, const tn_segment *extents, size_t count) {
    upload u = {.load = l,
                .ring = l->route->ring,
                .driver = l->request->driver,
                .to = {extents, count, 0, 0},
                .room = tn__ring_events(l->route->ring, l->source->file.bytes)};
    if (u.room == 0)
        return TN_OK;
    tn_status status = tn__ring_enter(u.ring);
    if (status != TN_OK)
        return status;
    status = pass_all(&u);
    if (status != TN_OK && u.count > 0)
        status = drain(&u, status);
    tn__ring_leave(u.ring);
    return status;
}
