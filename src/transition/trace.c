/* SPDX-License-Identifier: MIT */
/*
 * The trace: a ring of reports in order of publication (M233..M235). It grows on demand up to its
 * capacity.
 */
#include <string.h>

#include "transition/transition_priv.h"

#define FIRST_ROOM 16u

bool tn__trace_prepare(tn__trace *trace) {
    if (trace->count < trace->room || trace->room >= trace->capacity)
        return true;
    uint64_t room = trace->room ? trace->room * 2 : FIRST_ROOM;
    if (room > trace->capacity)
        room = trace->capacity;
    if (room > SIZE_MAX / sizeof(tn_report))
        return false;
    tn_report *ring = tn__alloc((size_t)room * sizeof *ring);
    if (!ring)
        return false;
    for (uint64_t i = 0; i < trace->count; i++)
        ring[i] = trace->ring[(trace->first + i) % trace->room];
    tn__free(trace->ring);
    trace->ring = ring;
    trace->room = room;
    trace->first = 0;
    return true;
}

uint64_t tn__trace_append(tn__trace *trace, const tn_report *report) {
    if (trace->capacity > 0) {
        if (trace->count == trace->room) { /* full: the oldest goes */
            trace->first = (trace->first + 1) % trace->room;
            trace->count--;
        }
        trace->ring[(trace->first + trace->count) % trace->room] = *report;
        trace->count++;
    }
    return trace->appended++;
}

void tn__trace_readings(tn__trace *trace, uint64_t sequence, const tn_report *report) {
    uint64_t age = trace->appended - sequence; /* 1: the youngest */
    if (age > trace->count)
        return;
    tn_report *kept = &trace->ring[(trace->first + trace->count - age) % trace->room];
    kept->allocated_bytes_after = report->allocated_bytes_after;
    kept->held_bytes_after = report->held_bytes_after;
}

void tn__trans_trace(tn__trans *t, tn_report *out, size_t *inout_count) {
    tn__lock(&t->store->lock);
    const tn__trace *trace = &t->trace;
    size_t stride = *inout_count ? out[0].size : 0;
    for (uint64_t i = 0; i < trace->count && i < *inout_count; i++) {
        tn_report *to = (tn_report *)((char *)out + i * stride);
        to->size = stride;
        tn__struct_out(to, &trace->ring[(trace->first + i) % trace->room], sizeof(tn_report));
    }
    *inout_count = (size_t)trace->count;
    tn__unlock(&t->store->lock);
}

void tn__trans_clear_trace(tn__trans *t) {
    tn__lock(&t->store->lock);
    t->trace.first = 0;
    t->trace.count = 0;
    tn__unlock(&t->store->lock);
}
