/* SPDX-License-Identifier: MIT */
/*
 * Virtual time. Each active stream knows when the next phase of its head is due; the step takes the
 * earliest one, among equals the stream that was created first or one drawn from the seed, moves
 * the clock there and executes the phase. One thread steps at a time (S1).
 */
#include "driver/sim/sim_priv.h"

static uint64_t due_ns(const tn__sim_stream *stream, bool host_functions) {
    const tn__sim_op *op = stream->head;

    if (op->phase == TN__SIM_STARTING)
        return op->start_ns;
    if (op->phase == TN__SIM_RUNNING)
        return op->end_ns;
    if (op->kind == TN__SIM_OP_HOST && !host_functions)
        return TN__SIM_NEVER;
    if (op->kind != TN__SIM_OP_WAIT)
        return stream->ready_ns;
    if (!op->mark->done)
        return TN__SIM_NEVER;
    return op->mark->done_ns > stream->ready_ns ? op->mark->done_ns : stream->ready_ns;
}

/* splitmix64: a number below `bound`. */
static uint64_t draw(tn_sim *sim, uint64_t bound) {
    uint64_t z = sim->random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % bound;
}

static tn__sim_stream *next_stream(tn_sim *sim, bool host_functions, uint64_t *out_when) {
    tn__sim_stream *stream;
    tn__sim_stream *best = NULL;
    uint64_t earliest = TN__SIM_NEVER;
    uint64_t equals = 0;

    for (stream = sim->active; stream != NULL; stream = stream->active_next) {
        uint64_t when = due_ns(stream, host_functions);

        if (when < earliest) {
            earliest = when;
            best = stream;
            equals = 1;
        } else if (when == earliest && best != NULL && sim->machine.seeded) {
            if (draw(sim, ++equals) == 0)
                best = stream;
        }
    }
    *out_when = earliest;
    return best;
}

/* One phase: take a turn, start, or end. */
static void execute(tn_sim *sim, tn__sim_stream *stream, uint64_t when) {
    tn__sim_op *op = stream->head;

    if (op->phase == TN__SIM_QUEUED) {
        tn__sim_op_schedule(sim, op, when);
        op->phase = TN__SIM_STARTING;
        if (op->start_ns > when)
            return;
    }
    if (op->phase == TN__SIM_STARTING) {
        tn__sim_op_begin(sim, stream, op);
        if (op->end_ns > when)
            return;
    }
    tn__sim_op_finish(sim, stream, op, when);
    tn__sim_complete(sim, stream, when);
}

bool tn__sim_step(tn_sim *sim, uint64_t limit, bool host_functions) {
    uint64_t when;
    tn__sim_stream *stream = next_stream(sim, host_functions, &when);

    if (stream == NULL || when > limit)
        return false;
    if (when > sim->now_ns) {
        sim->now_ns = when;
        tn__cond_broadcast(&sim->changed);
    }
    sim->stepping = true;
    execute(sim, stream, when);
    sim->stepping = false;
    return true;
}

void tn__sim_run_due(tn_sim *sim) {
    if (sim->machine.threads || sim->stepping)
        return;
    while (!sim->stepping && tn__sim_step(sim, sim->now_ns, false))
        ;
}

tn_status tn__sim_gone(tn_sim *sim) {
    return tn__sim_code(sim, TN_ERR_CLOSED,
                        sim->state == TN_SIM_SHUT_DOWN ? TN__SIM_CODE_DEINITIALIZED
                                                       : TN__SIM_CODE_CONTEXT_DESTROYED);
}

bool tn__sim_is_gone(const tn_sim *sim) {
    return sim->state == TN_SIM_SHUT_DOWN || sim->state == TN_SIM_CONTEXT_DESTROYED;
}

/* Whether a waiting thread may move time itself now. */
static bool may_step(const tn_sim *sim) {
    return !sim->machine.threads && !sim->stepping && sim->waits == TN_SIM_WAITS_ADVANCE;
}

typedef bool done_fn(const tn_sim *sim, const void *argument);

static tn_status wait_for(tn_sim *sim, done_fn *done, const void *argument) {
    while (!done(sim, argument)) {
        if (tn__sim_is_gone(sim))
            return tn__sim_gone(sim);
        if (!may_step(sim) || !tn__sim_step(sim, TN__SIM_NEVER - 1, true))
            tn__cond_wait(&sim->changed, &sim->lock);
    }
    return TN_OK;
}

struct until {
    uint32_t device;
    uint64_t number;
    const tn__sim_stream *stream;
};

static bool stream_done(const tn_sim *sim, const void *argument) {
    const struct until *u = argument;

    (void)sim;
    return u->stream->head == NULL || u->stream->head->number > u->number;
}

tn_status tn__sim_wait_stream(tn_sim *sim, tn__sim_stream *stream) {
    struct until u = {.number = sim->op_number, .stream = stream};
    tn_status status;

    stream->refs++;
    status = wait_for(sim, stream_done, &u);
    tn__sim_stream_drop(stream);
    return status;
}

static bool device_done(const tn_sim *sim, const void *argument) {
    const struct until *u = argument;
    const tn__sim_stream *stream;

    for (stream = sim->active; stream != NULL; stream = stream->active_next) {
        bool concerned = u->device == TN_SIM_ANY_DEVICE || u->device == stream->device;

        if (concerned && stream->head->number <= u->number)
            return false;
    }
    return true;
}

tn_status tn__sim_wait_device(tn_sim *sim, uint32_t device) {
    struct until u = {.device = device, .number = sim->op_number};

    return wait_for(sim, device_done, &u);
}

static bool mark_done(const tn_sim *sim, const void *argument) {
    const tn__sim_mark *mark = argument;

    (void)sim;
    return mark->done;
}

tn_status tn__sim_wait_mark(tn_sim *sim, tn__sim_mark *mark) {
    tn_status status;

    mark->refs++;
    status = wait_for(sim, mark_done, mark);
    tn__sim_mark_drop(mark);
    return status;
}

/* Advance to the time itself when nothing is due before it. */
static bool pass_step(tn_sim *sim, uint64_t until) {
    if (!may_step(sim) || until == TN__SIM_NEVER)
        return false;
    if (!tn__sim_step(sim, until, true) && sim->now_ns < until) {
        sim->now_ns = until;
        tn__cond_broadcast(&sim->changed);
    }
    return true;
}

/* Wait for something that may be the time. */
static void pass_once(tn_sim *sim, uint64_t now, uint64_t until) {
    if (sim->machine.threads && until != TN__SIM_NEVER)
        tn__cond_wait_ns(&sim->changed, &sim->lock, until - now);
    else if (!pass_step(sim, until))
        tn__cond_wait(&sim->changed, &sim->lock);
}

void tn__sim_pass(tn_sim *sim, uint64_t ns) {
    uint64_t until = tn__add_capped(tn__sim_now(sim), ns);
    uint64_t clears = sim->fault_clears;

    sim->stalled++;
    while (sim->fault_clears == clears && !tn__sim_is_gone(sim)) {
        uint64_t now = tn__sim_now(sim);

        if (now >= until)
            break;
        pass_once(sim, now, until);
    }
    sim->stalled--;
}

void tn__sim_pass_until(tn_sim *sim, uint64_t until) {
    uint64_t now;

    while ((now = tn__sim_now(sim)) < until)
        pass_once(sim, now, until);
}
