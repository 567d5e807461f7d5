/* SPDX-License-Identifier: MIT */
/* Streams of the test program, and the work it queues on them. None of this counts as a call of the
 * driver. */
#include "driver/sim/sim_priv.h"

static tn_status outcome(tn_sim *sim, tn_status status, const char *what) {
    tn__unlock(&sim->lock);
    if (status == TN_OK)
        return TN_OK;
    return tn__fail(status, "simulated machine: %s: %s", what, tn_status_text(status));
}

tn_status tn_sim_stream_create(tn_sim *sim, uint32_t device, uint32_t flags, tn_stream *out) {
    const uint32_t known = TN_SIM_STREAM_CAPTURING | TN_SIM_STREAM_SECOND_CONTEXT;

    if (sim == NULL)
        return tn__sim_null();
    if (out == NULL)
        return tn__fail(TN_ERR_KIND, "`out` is NULL");
    if (device >= sim->machine.devices || (flags & ~known) != 0)
        return tn__fail(TN_ERR_VALUE, "there is no device %u, or no flag 0x%x", (unsigned)device,
                        (unsigned)(flags & ~known));
    tn__lock(&sim->lock);
    return outcome(sim, tn__sim_stream_open(sim, device, flags, false, out), "stream create");
}

tn_status tn_sim_stream_destroy(tn_sim *sim, tn_stream stream) {
    if (sim == NULL)
        return tn__sim_null();
    tn__lock(&sim->lock);
    return outcome(sim, tn__sim_stream_close(sim, stream, false), "stream destroy");
}

/* The range under memory whose location the caller does not tell. */
static tn_status range_any(tn_sim *sim, const void *base, uint64_t bytes, tn__sim_range **out) {
    const tn__sim_range *range = tn__sim_range_find(sim, base);
    tn_location at = range != NULL ? range->at : tn_location_pageable();
    tn_status status = tn__sim_range_take(sim, at, base, bytes, out);

    return status == TN_OK ? TN_OK : TN_ERR_VALUE;
}

/* Take the ranges of an operation and queue it. */
static tn_status queue(tn_sim *sim, tn_stream handle, tn__sim_op *op) {
    tn__sim_stream *stream = tn__sim_stream_find(sim, handle, "tn_sim_queue");
    tn_status status = TN_OK;

    if (stream == NULL)
        return TN_ERR_DRIVER;
    if (op->kind == TN__SIM_OP_READ)
        status = range_any(sim, op->source, op->bytes, &op->source_range);
    if (op->kind == TN__SIM_OP_WRITE)
        status = range_any(sim, op->destination, op->bytes, &op->destination_range);
    if (status == TN_OK)
        tn__sim_enqueue(sim, stream, op);
    return status;
}

/* Queue a copy of `what`. */
static tn_status queue_op(tn_sim *sim, tn_stream stream, const tn__sim_op *what) {
    tn__sim_op *op;
    tn_status status;

    if (sim == NULL)
        return tn__sim_null();
    op = tn__sim_op_new(what->kind);
    if (op == NULL)
        return tn__fail(TN_ERR_HOST_MEMORY, "no memory for a queued operation");
    *op = *what;
    tn__lock(&sim->lock);
    status = queue(sim, stream, op);
    if (status != TN_OK)
        tn__sim_op_drop(op);
    return outcome(sim, status, "queue work");
}

tn_status tn_sim_queue_delay(tn_sim *sim, tn_stream stream, uint64_t ns) {
    tn__sim_op op = {.kind = TN__SIM_OP_DELAY, .duration_ns = ns};

    return queue_op(sim, stream, &op);
}

tn_status tn_sim_queue_read(tn_sim *sim, tn_stream stream, const void *base, uint64_t bytes,
                            uint64_t ns) {
    tn__sim_op op = {.kind = TN__SIM_OP_READ, .source = base, .bytes = bytes, .duration_ns = ns};

    return queue_op(sim, stream, &op);
}

tn_status tn_sim_queue_write(tn_sim *sim, tn_stream stream, void *base, uint64_t bytes, int byte,
                             uint64_t ns) {
    tn__sim_op op = {.kind = TN__SIM_OP_WRITE,
                     .destination = base,
                     .bytes = bytes,
                     .byte = byte,
                     .duration_ns = ns};

    return queue_op(sim, stream, &op);
}

bool tn_sim_stream_idle(tn_sim *sim, tn_stream handle) {
    const tn__sim_stream *stream;
    bool idle;

    tn__lock(&sim->lock);
    tn__sim_run_due(sim);
    stream = tn__sim_stream_find(sim, handle, "tn_sim_stream_idle");
    idle = stream == NULL || stream->head == NULL;
    tn__unlock(&sim->lock);
    return idle;
}
