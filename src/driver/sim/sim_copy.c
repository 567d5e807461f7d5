/* SPDX-License-Identifier: MIT */
/* Copies: checked when they are queued; a synchronous one is the only operation of a stream of its
 * own. */
#include "driver/sim/sim_priv.h"

static bool location_exists(const tn_sim *sim, tn_location at) {
    if (at.kind == TN_LOCATION_CUDA)
        return at.index < sim->machine.devices;
    return at.kind == TN_LOCATION_PAGEABLE || at.kind == TN_LOCATION_PINNED;
}

static tn_status copy_op(tn_sim *sim, const tn__sim_copy *c, tn__sim_op **out) {
    tn__sim_op *op;
    tn_status status;

    if (!location_exists(sim, c->destination_at) || !location_exists(sim, c->source_at))
        return tn__sim_code(sim, TN_ERR_DRIVER, TN__SIM_CODE_DEVICE);
    if (c->destination == NULL || c->source == NULL)
        return tn__sim_code(sim, TN_ERR_DRIVER, TN__SIM_CODE_VALUE);
    op = tn__sim_op_new(TN__SIM_OP_COPY);
    if (op == NULL)
        return tn__sim_code(sim, TN_ERR_HOST_MEMORY, TN__SIM_CODE_MEMORY);
    op->destination = c->destination;
    op->destination_at = c->destination_at;
    op->source = c->source;
    op->source_at = c->source_at;
    op->bytes = c->bytes;
    op->duration_ns = tn__sim_copy_ns(&sim->machine, c->destination_at, c->source_at, c->bytes);
    status = tn__sim_range_take(sim, c->destination_at, c->destination, c->bytes,
                                &op->destination_range);
    if (status == TN_OK)
        status = tn__sim_range_take(sim, c->source_at, c->source, c->bytes, &op->source_range);
    if (status != TN_OK) {
        tn__sim_op_drop(op);
        return status;
    }
    *out = op;
    return TN_OK;
}

tn_status tn__sim_copy_queue(tn_sim *sim, const tn__sim_copy *c, tn_stream handle) {
    tn__sim_stream *stream = tn__sim_stream_find(sim, handle, "copy");
    tn__sim_op *op = NULL;
    tn_status status;

    if (stream == NULL)
        return tn__sim_code(sim, TN_ERR_DRIVER, TN__SIM_CODE_HANDLE);
    if (stream->flags & TN_SIM_STREAM_CAPTURING)
        return tn__sim_code(sim, TN_ERR_DRIVER, TN__SIM_CODE_CAPTURE);
    status = copy_op(sim, c, &op);
    if (status == TN_OK)
        tn__sim_enqueue(sim, stream, op);
    return status;
}

tn_status tn__sim_copy_now(tn_sim *sim, const tn__sim_copy *c, uint32_t device) {
    tn_status status = TN_OK;
    tn__sim_stream *stream;
    tn__sim_op *op = NULL;

    status = copy_op(sim, c, &op);
    if (status != TN_OK)
        return status;
    stream = tn__sim_stream_new(sim, device, 0, &status);
    if (stream == NULL) {
        tn__sim_op_drop(op);
        return status;
    }
    tn__sim_enqueue(sim, stream, op);
    if (sim->machine.threads)
        tn__sim_execute(sim, stream);
    else
        status = tn__sim_wait_stream(sim, stream);
    tn__sim_stream_drop(stream);
    return status;
}
