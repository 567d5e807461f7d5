/* SPDX-License-Identifier: MIT */
/* Streams: handles, queues, the list of active ones, and the end of their threads. */
#include "driver/sim/sim_priv.h"

/* Odd: the primary context of a device; even: its second one. Never 0. */
uint64_t tn__sim_context(uint32_t device, bool second) {
    return (uint64_t)device * 2 + (second ? 2 : 1);
}

/* Operations. */

tn__sim_op *tn__sim_op_new(enum tn__sim_kind kind) {
    tn__sim_op *op = tn__sim_alloc(1, sizeof(*op));

    if (op != NULL)
        op->kind = kind;
    return op;
}

void tn__sim_op_drop(tn__sim_op *op) {
    tn__sim_range_drop(op->destination_range);
    tn__sim_range_drop(op->source_range);
    tn__sim_mark_drop(op->mark);
    tn__sim_free(op);
}

/* The active list (S3), sorted by id. */

static void activate(tn_sim *sim, tn__sim_stream *stream) {
    tn__sim_stream **link = &sim->active;
    tn__sim_stream *before = NULL;

    while (*link != NULL && (*link)->id < stream->id) {
        before = *link;
        link = &before->active_next;
    }
    stream->active_prev = before;
    stream->active_next = *link;
    if (*link != NULL)
        (*link)->active_prev = stream;
    *link = stream;
    stream->refs++;
}

static void deactivate(tn_sim *sim, tn__sim_stream *stream) {
    if (stream->active_prev != NULL)
        stream->active_prev->active_next = stream->active_next;
    else
        sim->active = stream->active_next;
    if (stream->active_next != NULL)
        stream->active_next->active_prev = stream->active_prev;
    tn__sim_stream_drop(stream);
}

void tn__sim_enqueue(tn_sim *sim, tn__sim_stream *stream, tn__sim_op *op) {
    uint64_t now = tn__sim_now(sim);

    op->number = ++sim->op_number;
    op->queued_ns = now;
    if (stream->head == NULL) {
        if (stream->ready_ns < now)
            stream->ready_ns = now;
        stream->head = op;
        activate(sim, stream);
    } else {
        stream->tail->next = op;
    }
    stream->tail = op;
    if (sim->machine.threads)
        tn__cond_broadcast(&stream->work);
    else
        tn__sim_run_due(sim);
}

void tn__sim_complete(tn_sim *sim, tn__sim_stream *stream, uint64_t when) {
    tn__sim_op *op = stream->head;

    stream->head = op->next;
    stream->ready_ns = when;
    tn__sim_op_drop(op);
    if (stream->head == NULL)
        deactivate(sim, stream);
    tn__cond_broadcast(&sim->changed);
}

void tn__sim_void_queued(tn_sim *sim) {
    tn__sim_stream *stream;
    tn__sim_op *op;

    for (stream = sim->active; stream != NULL; stream = stream->active_next)
        for (op = stream->head; op != NULL; op = op->next)
            op->voided = op->kind != TN__SIM_OP_RECORD && op->kind != TN__SIM_OP_WAIT;
}

/* Streams. */

tn__sim_stream *tn__sim_stream_new(tn_sim *sim, uint32_t device, uint32_t flags,
                                   tn_status *out_status) {
    tn__sim_stream *stream = tn__sim_alloc(1, sizeof(*stream));

    if (stream == NULL) {
        *out_status = tn__sim_code(sim, TN_ERR_HOST_MEMORY, TN__SIM_CODE_MEMORY);
        return NULL;
    }
    stream->refs = 1;
    stream->device = device;
    stream->flags = flags;
    stream->context = tn__sim_context(device, flags & TN_SIM_STREAM_SECOND_CONTEXT);
    stream->id = ++sim->stream_id;
    tn__cond_init(&stream->work);
    return stream;
}

void tn__sim_stream_drop(tn__sim_stream *stream) {
    if (--stream->refs > 0)
        return;
    tn__cond_fini(&stream->work);
    tn__sim_free(stream);
}

static void *thread_main(void *argument) {
    tn__sim_stream *stream = argument;

    tn__sim_stream_main(stream->sim, stream);
    return NULL;
}

static bool start_thread(tn_sim *sim, tn__sim_stream *stream) {
    stream->sim = sim;
    stream->refs++; /* the thread's; dropped when it is joined */
    if (pthread_create(&stream->thread, NULL, thread_main, stream) != 0) {
        stream->refs--;
        return false;
    }
    stream->has_thread = true;
    return true;
}

static void begin_end(tn_sim *sim, tn__sim_stream *stream) {
    stream->closing = true;
    if (stream->has_thread) {
        stream->zombie_next = sim->zombies;
        sim->zombies = stream;
        tn__cond_broadcast(&stream->work);
    }
}

tn_status tn__sim_stream_open(tn_sim *sim, uint32_t device, uint32_t flags, bool of_driver,
                              tn_stream *out) {
    tn_status status = TN_OK;
    tn__sim_stream *stream;
    uint32_t index;

    tn__sim_join(sim, false);
    stream = tn__sim_stream_new(sim, device, flags, &status);
    if (stream == NULL)
        return status;
    stream->of_driver = of_driver;
    if (sim->machine.threads && !start_thread(sim, stream)) {
        tn__sim_stream_drop(stream);
        return tn__sim_code(sim, TN_ERR_SYSTEM, TN__SIM_CODE_UNKNOWN);
    }
    if (!tn__sim_slot_take(&sim->streams, stream, &index)) {
        begin_end(sim, stream);
        tn__sim_stream_drop(stream);
        return tn__sim_code(sim, TN_ERR_HOST_MEMORY, TN__SIM_CODE_MEMORY);
    }
    sim->live_streams += of_driver;
    *out = tn__sim_handle(sim, false, index);
    return TN_OK;
}

/* The legacy stream of device 0, made when it is first named. It waits for no other stream. */
static tn__sim_stream *legacy(tn_sim *sim) {
    tn_status status;

    if (sim->legacy == NULL && sim->machine.devices > 0) {
        sim->legacy = tn__sim_stream_new(sim, 0, 0, &status);
        if (sim->legacy != NULL && sim->machine.threads && !start_thread(sim, sim->legacy)) {
            tn__sim_stream_drop(sim->legacy);
            sim->legacy = NULL;
        }
    }
    return sim->legacy;
}

tn__sim_stream *tn__sim_stream_find(tn_sim *sim, tn_stream handle, const char *what) {
    tn__sim_stream *stream;
    uint32_t index;
    bool dead;

    if (handle == TN_STREAM_LEGACY)
        return legacy(sim);
    stream = tn__sim_object(sim, false, handle, &index, &dead);
    if (dead) {
        sim->stale_calls++;
        tn__sim_violation(sim, "%s named the destroyed stream %p", what, (void *)handle);
    }
    return stream;
}

tn__sim_stream *tn__sim_stream_peek(tn_sim *sim, tn_stream handle) {
    uint32_t index;
    bool dead;

    return handle == TN_STREAM_LEGACY ? legacy(sim)
                                      : tn__sim_object(sim, false, handle, &index, &dead);
}

uint32_t tn__sim_stream_device(tn_sim *sim, tn_stream handle) {
    const tn__sim_stream *stream = tn__sim_stream_peek(sim, handle);

    return stream != NULL ? stream->device : TN_SIM_ANY_DEVICE;
}

tn_status tn__sim_stream_close(tn_sim *sim, tn_stream handle, bool of_driver) {
    const char *what = of_driver ? "stream_destroy" : "tn_sim_stream_destroy";
    tn__sim_stream *stream;
    uint32_t index = 0;
    bool dead;

    if (handle == TN_STREAM_LEGACY || tn__sim_stream_find(sim, handle, what) == NULL)
        return tn__sim_code(sim, TN_ERR_DRIVER, TN__SIM_CODE_HANDLE);
    stream = tn__sim_object(sim, false, handle, &index, &dead);
    tn__sim_slot_drop(&sim->streams, index);
    sim->live_streams -= stream->of_driver;
    begin_end(sim, stream);
    tn__sim_stream_drop(stream);
    tn__sim_join(sim, false);
    return TN_OK;
}

/* Ends of threads. */

static tn__sim_stream *zombie_take(tn_sim *sim, bool any) {
    tn__sim_stream **link = &sim->zombies;

    while (*link != NULL && !any && !(*link)->exited)
        link = &(*link)->zombie_next;
    if (*link != NULL) {
        tn__sim_stream *found = *link;

        *link = found->zombie_next;
        return found;
    }
    return NULL;
}

void tn__sim_join(tn_sim *sim, bool all) {
    tn__sim_stream *stream;

    while ((stream = zombie_take(sim, all)) != NULL) {
        tn__unlock(&sim->lock);
        pthread_join(stream->thread, NULL);
        tn__lock(&sim->lock);
        tn__sim_stream_drop(stream);
    }
}

/* The machine ends: close every stream; what is queued does not run. With stream threads, what runs
 * is waited for. */
void tn__sim_streams_fini(tn_sim *sim) {
    tn__sim_stream *zombie;
    uint32_t i;

    sim->dying = true;
    for (i = 0; i < sim->streams.count; i++) {
        tn__sim_stream *stream = sim->streams.objects[i];

        if (stream != NULL) {
            begin_end(sim, stream);
            tn__sim_stream_drop(stream);
        }
    }
    if (sim->legacy != NULL) {
        begin_end(sim, sim->legacy);
        tn__sim_stream_drop(sim->legacy);
    }
    for (zombie = sim->zombies; zombie != NULL; zombie = zombie->zombie_next)
        tn__cond_broadcast(&zombie->work);
    tn__cond_broadcast(&sim->changed);
    tn__sim_join(sim, true);
    while (sim->active != NULL)
        tn__sim_complete(sim, sim->active, 0);
    tn__sim_slots_fini(&sim->streams);
}
