/* SPDX-License-Identifier: MIT */
/* What an operation does when its turn comes: ranges are checked at its start and at its end, links
 * are taken in turn, bytes move. */
#include "driver/sim/sim_priv.h"

#include <string.h>

/* Links. */

static uint64_t place(tn_location at) {
    return at.kind == TN_LOCATION_CUDA ? 2 + (uint64_t)at.index
                                       : (uint64_t)(at.kind == TN_LOCATION_PINNED);
}

tn__sim_pair *tn__sim_pair_of(tn_sim *sim, tn_location to, tn_location from) {
    uint64_t places = (uint64_t)sim->machine.devices + 2;

    return &sim->pairs[place(from) * places + place(to)];
}

/* Which pair's clock the copy queues up on: both kinds of host memory share the link of a device
 * and direction. NULL: none. */
static tn__sim_pair *link_of(tn_sim *sim, tn_location to, tn_location from) {
    bool to_device = to.kind == TN_LOCATION_CUDA;
    bool from_device = from.kind == TN_LOCATION_CUDA;

    if (to_device == from_device && (!to_device || to.index == from.index))
        return NULL;
    return tn__sim_pair_of(sim, to_device ? to : tn_location_pageable(),
                           from_device ? from : tn_location_pageable());
}

static uint64_t rate_of(const tn__sim_machine *m, tn_location to, tn_location from) {
    bool to_device = to.kind == TN_LOCATION_CUDA;
    bool from_device = from.kind == TN_LOCATION_CUDA;

    if (to_device != from_device)
        return m->host_rate;
    return to_device && to.index != from.index ? m->peer_rate : 0;
}

uint64_t tn__sim_copy_ns(const tn__sim_machine *machine, tn_location to, tn_location from,
                         uint64_t bytes) {
    uint64_t rate = rate_of(machine, to, from);
    unsigned __int128 ns = machine->latency_ns;

    if (rate > 0)
        ns += ((unsigned __int128)bytes * 1000000000u + rate - 1) / rate;
    return ns > (unsigned __int128)INT64_MAX ? (uint64_t)INT64_MAX : (uint64_t)ns;
}

void tn__sim_op_schedule(tn_sim *sim, tn__sim_op *op, uint64_t when) {
    tn__sim_pair *link = NULL;

    if (op->kind == TN__SIM_OP_COPY)
        link = link_of(sim, op->destination_at, op->source_at);
    op->start_ns = when;
    if (link != NULL && link->link_free_ns > when)
        op->start_ns = link->link_free_ns;
    op->end_ns = tn__add_capped(op->start_ns, op->duration_ns);
    if (link != NULL)
        link->link_free_ns = op->end_ns;
}

/* Ranges. */

static const char *name_of(const tn__sim_op *op) {
    static const char *const names[] = {"delay",  "read", "write",        "copy",
                                        "record", "wait", "host function"};

    return names[op->kind];
}

static void dead_range(tn_sim *sim, const tn__sim_stream *stream, tn__sim_op *op,
                       const tn__sim_range *range) {
    char at[TN_LOCATION_NAME_MAX];

    if (range == NULL || !range->dead || op->broken || op->voided)
        return;
    op->broken = true;
    tn__sim_violation(
        sim,
        "%s on stream %llu at %llu ns: its %s at %s (generation %llu) was freed at "
        "%llu ns",
        name_of(op), (unsigned long long)stream->id, (unsigned long long)tn__sim_now(sim),
        range == op->source_range ? "source" : "destination", tn__location_text(range->at, at),
        (unsigned long long)range->generation, (unsigned long long)range->freed_ns);
}

static void check_ranges(tn_sim *sim, const tn__sim_stream *stream, tn__sim_op *op) {
    dead_range(sim, stream, op, op->source_range);
    dead_range(sim, stream, op, op->destination_range);
}

static bool is_dead(const tn__sim_range *range) { return range != NULL && range->dead; }

/* Bytes. */

/* S2: without the lock where streams have threads, while the ranges are marked. */
static void bytes_begin(tn_sim *sim, tn__sim_op *op) {
    if (!sim->machine.threads)
        return;
    if (op->source_range != NULL)
        op->source_range->busy++;
    if (op->destination_range != NULL)
        op->destination_range->busy++;
    tn__unlock(&sim->lock);
}

static void bytes_end(tn_sim *sim, tn__sim_op *op) {
    if (!sim->machine.threads)
        return;
    tn__lock(&sim->lock);
    if (op->source_range != NULL)
        op->source_range->busy--;
    if (op->destination_range != NULL)
        op->destination_range->busy--;
    tn__cond_broadcast(&sim->changed);
}

/* A dead destination is left alone; a dead source reads as poison. */
static void move_bytes(tn_sim *sim, tn__sim_op *op, uint64_t from, uint64_t to) {
    bool poison = is_dead(op->source_range);

    if (is_dead(op->destination_range) || from == to || op->voided)
        return;
    bytes_begin(sim, op);
    if (op->kind == TN__SIM_OP_WRITE)
        memset(op->destination + from, op->byte, to - from);
    else if (poison)
        memset(op->destination + from, (int)TN_SIM_POISON, to - from);
    else
        memmove(op->destination + from, op->source + from, to - from);
    bytes_end(sim, op);
}

/* Begin and end. */

void tn__sim_op_begin(tn_sim *sim, tn__sim_stream *stream, tn__sim_op *op) {
    op->phase = TN__SIM_RUNNING;
    check_ranges(sim, stream, op);
    if (op->kind == TN__SIM_OP_COPY && op->duration_ns > 0)
        move_bytes(sim, op, 0, op->bytes / 2);
}

struct hook {
    void (*function)(void *context, void *destination, uint64_t bytes);
    void *context;
    const tn__sim_op *op;
};

static void run_hook(void *argument) {
    const struct hook *hook = argument;

    hook->function(hook->context, hook->op->destination, hook->op->bytes);
}

static void finish_copy(tn_sim *sim, tn__sim_op *op) {
    tn__sim_pair *pair = tn__sim_pair_of(sim, op->destination_at, op->source_at);
    struct hook hook = {sim->on_copy, sim->on_copy_context, op};

    move_bytes(sim, op, op->duration_ns > 0 ? op->bytes / 2 : 0, op->bytes);
    pair->copies++;
    pair->bytes += op->bytes;
    pair->busy_ns += op->duration_ns;
    if (hook.function != NULL && !is_dead(op->destination_range))
        tn__sim_call_out(sim, run_hook, &hook);
}

void tn__sim_op_finish(tn_sim *sim, tn__sim_stream *stream, tn__sim_op *op, uint64_t when) {
    check_ranges(sim, stream, op);
    if (op->voided)
        return;
    switch (op->kind) {
    case TN__SIM_OP_COPY:
        finish_copy(sim, op);
        break;
    case TN__SIM_OP_WRITE:
        move_bytes(sim, op, 0, op->bytes);
        break;
    case TN__SIM_OP_RECORD:
        op->mark->done = true;
        op->mark->done_ns = when;
        break;
    case TN__SIM_OP_HOST:
        tn__sim_call_out(sim, op->function, op->context);
        break;
    default:
        break;
    }
    check_ranges(sim, stream, op); /* the lock was given up meanwhile (S2) */
}
