/* SPDX-License-Identifier: MIT */
/*
 * Reports: endpoints, times and allocator readings (M84, M90..M92). No reading can make an action
 * fail.
 */
#include "transition/transition_priv.h"

static bool first_cuda(tn_location at, tn_location *out) {
    if (out->kind == TN_LOCATION_NONE && at.kind == TN_LOCATION_CUDA)
        *out = at;
    return out->kind != TN_LOCATION_NONE;
}

static void first_cuda_replica(const tn__value *value, tn_location *out) {
    for (uint32_t i = 0; i < value->mat_count; i++)
        if (first_cuda(value->mats[i]->at, out))
            return;
}

/* M91. */
static tn_location sampled(const tn_action *action, const tn__value *value) {
    tn_location at = tn_location_none();
    first_cuda(action->at, &at);
    if (action->kind == TN_ACTION_MOVE && action->from.kind != TN_LOCATION_NONE)
        first_cuda(action->from, &at);
    else if (action->kind == TN_ACTION_MOVE || action->kind == TN_ACTION_DISCARD)
        first_cuda_replica(value, &at);
    return at;
}

static void read(tn__trans *t, tn_location at, uint64_t *allocated, uint64_t *held) {
    *allocated = *held = TN_READING_ABSENT;
    if (at.kind != TN_LOCATION_CUDA || !tn__driver_readings(t->driver, at.index, allocated, held))
        *allocated = *held = TN_READING_ABSENT;
}

void tn__report_begin(tn__run *run, const tn__value *value) {
    tn_report *r = &run->report;
    uint64_t started = r->started_at_ns;
    *r = (tn_report){.size = sizeof *r, .action = run->action};
    r->started_at_ns = started;
    r->no_op = run->choice.step == TN__STEP_NO_OP;
    r->reason = r->no_op ? run->choice.reason : TN_REASON_NONE;
    r->source = run->choice.source;
    r->destination = run->choice.destination;
    r->logical_bytes = value->logical_bytes;
    r->storage_bytes = value->charge_bytes;
    r->allocator = sampled(&run->action, value);
    read(run->t, r->allocator, &r->allocated_bytes_before, &r->held_bytes_before);
    r->allocated_bytes_after = r->held_bytes_after = TN_READING_ABSENT;
}

void tn__report_end(tn__run *run) {
    tn_report *r = &run->report;
    if (r->allocator.kind == TN_LOCATION_NONE)
        return;
    read(run->t, r->allocator, &r->allocated_bytes_after, &r->held_bytes_after);
    tn__lock(&run->t->store->lock);
    tn__trace_readings(&run->t->trace, run->sequence, r);
    tn__unlock(&run->t->store->lock);
}
