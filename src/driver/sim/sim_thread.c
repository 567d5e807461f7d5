/* SPDX-License-Identifier: MIT */
/* Real time: each stream has a thread that executes its queue; durations are slept. */
#include "driver/sim/sim_priv.h"

/* False: the machine is dying. */
static bool sleep_until(tn_sim *sim, tn__sim_stream *stream, uint64_t when) {
    while (!sim->dying) {
        uint64_t now = tn__sim_now(sim);

        if (now >= when)
            return true;
        tn__cond_wait_ns(&stream->work, &sim->lock, when - now);
    }
    return false;
}

/* Times follow from each other and not from when this thread was scheduled, so that a busy link
 * carries what it should. */
static uint64_t turn_ns(const tn__sim_stream *stream, const tn__sim_op *op) {
    uint64_t when = stream->ready_ns > op->queued_ns ? stream->ready_ns : op->queued_ns;

    if (op->kind == TN__SIM_OP_WAIT && op->mark->done_ns > when)
        when = op->mark->done_ns;
    return when;
}

bool tn__sim_execute(tn_sim *sim, tn__sim_stream *stream) {
    tn__sim_op *op = stream->head;
    uint64_t end_ns;

    while (op->kind == TN__SIM_OP_WAIT && !op->mark->done && !sim->dying)
        tn__cond_wait(&sim->changed, &sim->lock);
    tn__sim_op_schedule(sim, op, turn_ns(stream, op));
    if (!sleep_until(sim, stream, op->start_ns))
        return false;
    tn__sim_op_begin(sim, stream, op);
    if (!sleep_until(sim, stream, op->end_ns))
        return false;
    end_ns = op->end_ns;
    tn__sim_op_finish(sim, stream, op, end_ns);
    if (op->kind == TN__SIM_OP_HOST)
        end_ns = tn__sim_now(sim);
    tn__sim_complete(sim, stream, end_ns);
    return true;
}

void tn__sim_stream_main(tn_sim *sim, tn__sim_stream *stream) {
    bool alive = true;

    tn__lock(&sim->lock);
    while (alive) {
        while (stream->head == NULL && !stream->closing && !sim->dying)
            tn__cond_wait(&stream->work, &sim->lock);
        alive = stream->head != NULL && !sim->dying && tn__sim_execute(sim, stream);
    }
    stream->exited = true;
    tn__unlock(&sim->lock);
}
