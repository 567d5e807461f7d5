/* SPDX-License-Identifier: MIT */
/* Events: a record makes a mark on a stream; the event, its operation and those that wait for it
 * share the mark. */
#include "driver/sim/sim_priv.h"

void tn__sim_mark_drop(tn__sim_mark *mark) {
    if (mark == NULL || --mark->refs > 0)
        return;
    tn__sim_stream_drop(mark->stream);
    tn__sim_free(mark);
}

static bool context_exists(const tn_sim *sim, uint32_t device, uint64_t context) {
    if (device >= sim->machine.devices)
        return false;
    return context == tn__sim_context(device, false) || context == tn__sim_context(device, true);
}

tn_status tn__sim_event_open(tn_sim *sim, uint32_t device, uint64_t context, tn_event *out) {
    tn__sim_event *event;
    uint32_t index;

    if (!context_exists(sim, device, context))
        return tn__sim_code(sim, TN_ERR_DRIVER, TN__SIM_CODE_CONTEXT);
    event = tn__sim_alloc(1, sizeof(*event));
    if (event == NULL || !tn__sim_slot_take(&sim->events, event, &index)) {
        tn__sim_free(event);
        return tn__sim_code(sim, TN_ERR_HOST_MEMORY, TN__SIM_CODE_MEMORY);
    }
    event->device = device;
    event->context = context;
    *out = tn__sim_handle(sim, true, index);
    return TN_OK;
}

tn__sim_event *tn__sim_event_find(tn_sim *sim, tn_event handle, const char *what) {
    uint32_t index;
    bool dead;
    tn__sim_event *event = tn__sim_object(sim, true, handle, &index, &dead);

    if (dead) {
        sim->stale_calls++;
        tn__sim_violation(sim, "%s named the destroyed event %p", what, (void *)handle);
    }
    return event;
}

tn__sim_event *tn__sim_event_peek(tn_sim *sim, tn_event handle) {
    uint32_t index;
    bool dead;

    return tn__sim_object(sim, true, handle, &index, &dead);
}

static void event_free(tn__sim_event *event) {
    tn__sim_mark_drop(event->mark);
    tn__sim_free(event);
}

tn_status tn__sim_event_close(tn_sim *sim, tn_event handle) {
    tn__sim_event *event = tn__sim_event_find(sim, handle, "event_destroy");
    uint32_t index = 0;
    bool dead;

    if (event == NULL)
        return tn__sim_code(sim, TN_ERR_DRIVER, TN__SIM_CODE_HANDLE);
    tn__sim_object(sim, true, handle, &index, &dead);
    tn__sim_slot_drop(&sim->events, index);
    event_free(event);
    return TN_OK;
}

void tn__sim_events_fini(tn_sim *sim) {
    uint32_t i;

    for (i = 0; i < sim->events.count; i++)
        if (sim->events.objects[i] != NULL)
            event_free(sim->events.objects[i]);
    tn__sim_slots_fini(&sim->events);
}

tn_status tn__sim_event_record(tn_sim *sim, tn_event event_handle, tn_stream stream_handle) {
    tn__sim_event *event = tn__sim_event_find(sim, event_handle, "event_record");
    tn__sim_stream *stream = tn__sim_stream_find(sim, stream_handle, "event_record");
    tn__sim_mark *mark;
    tn__sim_op *op;

    if (event == NULL || stream == NULL)
        return tn__sim_code(sim, TN_ERR_DRIVER, TN__SIM_CODE_HANDLE);
    if (stream->flags & TN_SIM_STREAM_CAPTURING)
        return tn__sim_code(sim, TN_ERR_DRIVER, TN__SIM_CODE_CAPTURE);
    if (event->context != stream->context) {
        tn__sim_violation(sim, "an event of context %llu was recorded on a stream of context %llu",
                          (unsigned long long)event->context, (unsigned long long)stream->context);
        return tn__sim_code(sim, TN_ERR_DRIVER, TN__SIM_CODE_HANDLE);
    }
    mark = tn__sim_alloc(1, sizeof(*mark));
    op = tn__sim_op_new(TN__SIM_OP_RECORD);
    if (mark == NULL || op == NULL) {
        tn__sim_free(mark);
        tn__sim_free(op);
        return tn__sim_code(sim, TN_ERR_HOST_MEMORY, TN__SIM_CODE_MEMORY);
    }
    mark->refs = 2;
    mark->stream = stream;
    stream->refs++;
    op->mark = mark;
    tn__sim_mark_drop(event->mark);
    event->mark = mark;
    tn__sim_enqueue(sim, stream, op);
    return TN_OK;
}

/* What was recorded last counts, as of now; nothing recorded: nothing to wait for. */
tn_status tn__sim_event_wait(tn_sim *sim, tn_stream stream_handle, tn_event event_handle) {
    tn__sim_event *event = tn__sim_event_find(sim, event_handle, "stream_wait");
    tn__sim_stream *stream = tn__sim_stream_find(sim, stream_handle, "stream_wait");
    tn__sim_op *op;

    if (event == NULL || stream == NULL)
        return tn__sim_code(sim, TN_ERR_DRIVER, TN__SIM_CODE_HANDLE);
    if (stream->flags & TN_SIM_STREAM_CAPTURING)
        return tn__sim_code(sim, TN_ERR_DRIVER, TN__SIM_CODE_CAPTURE);
    if (event->mark == NULL || event->mark->done)
        return TN_OK;
    op = tn__sim_op_new(TN__SIM_OP_WAIT);
    if (op == NULL)
        return tn__sim_code(sim, TN_ERR_HOST_MEMORY, TN__SIM_CODE_MEMORY);
    op->mark = event->mark;
    op->mark->refs++;
    tn__sim_enqueue(sim, stream, op);
    return TN_OK;
}
