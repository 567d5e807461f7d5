/* SPDX-License-Identifier: MIT */
/* The simulator's driver table. Each entry: enter (lock, count, state, faults), do it, leave. */
#include "driver/sim/sim_priv.h"

static const uint32_t ANY = TN_SIM_ANY_DEVICE;

static tn_status bad_value(tn_sim *sim) {
    return tn__sim_code(sim, TN_ERR_DRIVER, TN__SIM_CODE_VALUE);
}

static tn_status bad_handle(tn_sim *sim) {
    return tn__sim_code(sim, TN_ERR_DRIVER, TN__SIM_CODE_HANDLE);
}

/* The machine. */

static tn_status device_count(void *self, uint32_t *out) {
    tn_sim *sim = self;

    *out = sim->machine.devices;
    return TN_OK;
}

static uint32_t capabilities(void *self) {
    tn_sim *sim = self;
    uint32_t bits = TN_DRIVER_HOST_ADDRESSABLE;

    tn__lock(&sim->lock);
    if (!tn__sim_can_pin(sim))
        bits |= TN_DRIVER_NO_PINNED;
    tn__unlock(&sim->lock);
    return bits;
}

static int64_t last_code(void *self) { return tn__sim_last_code(self); }

/* Memory. */

static tn_status device_alloc(void *self, uint32_t device, uint64_t bytes, void **out) {
    tn_sim *sim = self;
    tn_status status = tn__sim_enter(sim, TN_SIM_DEVICE_ALLOC, device, ANY);

    if (status == TN_OK)
        status = tn__sim_block_alloc(sim, tn_location_cuda(device), bytes, out);
    return tn__sim_leave(sim, status);
}

static tn_status device_free(void *self, uint32_t device, void *pointer, uint64_t bytes) {
    tn_sim *sim = self;
    tn_status status = tn__sim_enter(sim, TN_SIM_DEVICE_FREE, device, ANY);

    if (status == TN_OK)
        status = tn__sim_block_free(sim, tn_location_cuda(device), pointer, bytes);
    return tn__sim_leave(sim, status);
}

static tn_status pinned_alloc(void *self, size_t bytes, void **out) {
    tn_sim *sim = self;
    tn_status status = tn__sim_enter(sim, TN_SIM_PINNED_ALLOC, ANY, ANY);

    if (status == TN_OK && !tn__sim_can_pin(sim))
        status = tn__sim_code(sim, TN_ERR_UNSUPPORTED, TN__SIM_CODE_NOT_SUPPORTED);
    if (status == TN_OK)
        status = tn__sim_pin_cost(sim);
    if (status == TN_OK)
        status = tn__sim_block_alloc(sim, tn_location_pinned(), bytes, out);
    return tn__sim_leave(sim, status);
}

static tn_status pinned_free(void *self, void *pointer, size_t bytes) {
    tn_sim *sim = self;
    tn_status status = tn__sim_enter(sim, TN_SIM_PINNED_FREE, ANY, ANY);

    if (status == TN_OK)
        status = tn__sim_pin_cost(sim);
    if (status == TN_OK)
        status = tn__sim_block_free(sim, tn_location_pinned(), pointer, bytes);
    return tn__sim_leave(sim, status);
}

static tn_status device_memory(void *self, uint32_t device, tn_device_memory *out) {
    tn_sim *sim = self;
    tn_status status = tn__sim_enter(sim, TN_SIM_DEVICE_MEMORY, device, ANY);

    if (status == TN_OK && device >= sim->machine.devices)
        status = tn__sim_code(sim, TN_ERR_DRIVER, TN__SIM_CODE_DEVICE);
    if (status == TN_OK) {
        const tn_sim_memory *f = &sim->arenas[device].figures;
        uint64_t room = tn__sim_device_room(sim, device);

        out->total_bytes = sim->machine.memory_bytes;
        out->free_bytes = room > f->held_bytes ? room - f->held_bytes : 0;
        out->pool_used_bytes = f->live_bytes;
        out->pool_held_bytes = f->held_bytes;
    }
    return tn__sim_leave(sim, status);
}

static tn_status pool_trim(void *self, uint32_t device, uint64_t keep_bytes) {
    tn_sim *sim = self;
    tn_status status = tn__sim_enter(sim, TN_SIM_POOL_TRIM, device, ANY);

    if (status == TN_OK && device >= sim->machine.devices)
        status = tn__sim_code(sim, TN_ERR_DRIVER, TN__SIM_CODE_DEVICE);
    if (status == TN_OK)
        tn__sim_pool_trim(sim, device, keep_bytes);
    return tn__sim_leave(sim, status);
}

static tn_status pointer_location(void *self, const void *pointer, tn_location *out) {
    tn_sim *sim = self;
    tn_status status = tn__sim_enter(sim, TN_SIM_POINTER_LOCATION, ANY, ANY);

    if (status == TN_OK) {
        const tn__sim_range *range = tn__sim_range_find(sim, pointer);

        *out = range != NULL ? range->at : tn_location_none();
    }
    return tn__sim_leave(sim, status);
}

/* Streams. */

static tn_status stream_create(void *self, uint32_t device, tn_stream *out) {
    tn_sim *sim = self;
    tn_status status = tn__sim_enter(sim, TN_SIM_STREAM_CREATE, device, ANY);

    if (status == TN_OK && device >= sim->machine.devices)
        status = tn__sim_code(sim, TN_ERR_DRIVER, TN__SIM_CODE_DEVICE);
    if (status == TN_OK)
        status = tn__sim_stream_open(sim, device, 0, true, out);
    return tn__sim_leave(sim, status == TN_ERR_SYSTEM ? TN_ERR_DRIVER : status);
}

/* Enter a call that names a stream. */
static tn_status enter_stream(tn_sim *sim, uint32_t entry, tn_stream handle, uint32_t other) {
    tn__lock(&sim->lock);
    return tn__sim_enter_locked(sim, entry, tn__sim_stream_device(sim, handle), other,
                                tn__sim_stream_peek(sim, handle));
}

static tn_status stream_destroy(void *self, tn_stream stream) {
    tn_sim *sim = self;
    tn_status status = enter_stream(sim, TN_SIM_STREAM_DESTROY, stream, ANY);

    if (status == TN_OK)
        status = tn__sim_stream_close(sim, stream, true);
    return tn__sim_leave(sim, status);
}

static tn_status stream_info(void *self, tn_stream handle, tn_stream_info *out) {
    tn_sim *sim = self;
    tn_status status = enter_stream(sim, TN_SIM_STREAM_INFO, handle, ANY);

    if (status == TN_OK) {
        const tn__sim_stream *stream = tn__sim_stream_find(sim, handle, "stream_info");

        if (stream == NULL) {
            status = tn__sim_code(sim, TN_ERR_KIND, TN__SIM_CODE_HANDLE);
        } else {
            out->device = stream->device;
            out->capturing = (stream->flags & TN_SIM_STREAM_CAPTURING) != 0;
            out->context = stream->context;
        }
    }
    return tn__sim_leave(sim, status);
}

static tn_status stream_synchronize(void *self, tn_stream handle) {
    tn_sim *sim = self;
    tn_status status = enter_stream(sim, TN_SIM_STREAM_SYNCHRONIZE, handle, ANY);

    if (status == TN_OK) {
        tn__sim_stream *stream = tn__sim_stream_find(sim, handle, "stream_synchronize");

        status = stream != NULL ? tn__sim_wait_stream(sim, stream) : bad_handle(sim);
    }
    return tn__sim_leave(sim, status);
}

static tn_status device_synchronize(void *self, uint32_t device) {
    tn_sim *sim = self;
    tn_status status = tn__sim_enter(sim, TN_SIM_DEVICE_SYNCHRONIZE, device, ANY);

    if (status == TN_OK && device >= sim->machine.devices)
        status = tn__sim_code(sim, TN_ERR_DRIVER, TN__SIM_CODE_DEVICE);
    if (status == TN_OK)
        status = tn__sim_wait_device(sim, device);
    return tn__sim_leave(sim, status);
}

static tn_status stream_wait(void *self, tn_stream stream, tn_event event) {
    tn_sim *sim = self;
    tn_status status = enter_stream(sim, TN_SIM_STREAM_WAIT, stream, ANY);

    if (status == TN_OK)
        status = tn__sim_event_wait(sim, stream, event);
    return tn__sim_leave(sim, status);
}

static tn_status host_function(void *self, tn_stream handle, void (*function)(void *context),
                               void *context) {
    tn_sim *sim = self;
    tn_status status = enter_stream(sim, TN_SIM_HOST_FUNCTION, handle, ANY);
    tn__sim_stream *stream;
    tn__sim_op *op;

    if (status != TN_OK)
        return tn__sim_leave(sim, status);
    stream = tn__sim_stream_find(sim, handle, "host_function");
    if (stream == NULL)
        return tn__sim_leave(sim, bad_handle(sim));
    if (stream->flags & TN_SIM_STREAM_CAPTURING)
        return tn__sim_leave(sim, tn__sim_code(sim, TN_ERR_DRIVER, TN__SIM_CODE_CAPTURE));
    if (function == NULL)
        return tn__sim_leave(sim, bad_value(sim));
    op = tn__sim_op_new(TN__SIM_OP_HOST);
    if (op == NULL)
        return tn__sim_leave(sim, tn__sim_code(sim, TN_ERR_HOST_MEMORY, TN__SIM_CODE_MEMORY));
    op->function = function;
    op->context = context;
    tn__sim_enqueue(sim, stream, op);
    return tn__sim_leave(sim, TN_OK);
}

/* Events. */

static tn_status event_create(void *self, uint32_t device, uint64_t context, tn_event *out) {
    tn_sim *sim = self;
    tn_status status = tn__sim_enter(sim, TN_SIM_EVENT_CREATE, device, ANY);

    if (status == TN_OK)
        status = tn__sim_event_open(sim, device, context, out);
    return tn__sim_leave(sim, status);
}

/* Enter a call that names an event. */
static tn_status enter_event(tn_sim *sim, uint32_t entry, tn_event event) {
    const tn__sim_event *object;
    tn__sim_stream *recorded = NULL;
    uint32_t device = ANY;

    tn__lock(&sim->lock);
    object = tn__sim_event_peek(sim, event);
    if (object != NULL) {
        device = object->device;
        recorded = object->mark != NULL ? object->mark->stream : NULL;
    }
    return tn__sim_enter_locked(sim, entry, device, ANY, recorded);
}

static tn_status event_destroy(void *self, tn_event event) {
    tn_sim *sim = self;
    tn_status status = enter_event(sim, TN_SIM_EVENT_DESTROY, event);

    if (status == TN_OK)
        status = tn__sim_event_close(sim, event);
    return tn__sim_leave(sim, status);
}

static tn_status event_record(void *self, tn_event event, tn_stream stream) {
    tn_sim *sim = self;
    tn_status status = enter_stream(sim, TN_SIM_EVENT_RECORD, stream, ANY);

    if (status == TN_OK)
        status = tn__sim_event_record(sim, event, stream);
    return tn__sim_leave(sim, status);
}

static tn_status event_query(void *self, tn_event handle, uint32_t *out_done) {
    tn_sim *sim = self;
    tn_status status = enter_event(sim, TN_SIM_EVENT_QUERY, handle);

    if (status == TN_OK) {
        const tn__sim_event *event = tn__sim_event_find(sim, handle, "event_query");

        if (event == NULL)
            status = bad_handle(sim);
        else
            *out_done = event->mark == NULL || event->mark->done;
    }
    return tn__sim_leave(sim, status);
}

static tn_status event_synchronize(void *self, tn_event handle) {
    tn_sim *sim = self;
    tn_status status = enter_event(sim, TN_SIM_EVENT_SYNCHRONIZE, handle);

    if (status == TN_OK) {
        const tn__sim_event *event = tn__sim_event_find(sim, handle, "event_synchronize");

        if (event == NULL)
            status = bad_handle(sim);
        else if (event->mark != NULL)
            status = tn__sim_wait_mark(sim, event->mark);
    }
    return tn__sim_leave(sim, status);
}

/* Copies. */

static tn_status copy(void *self, void *destination, tn_location destination_at, const void *source,
                      tn_location source_at, uint64_t bytes, tn_stream stream) {
    tn_sim *sim = self;
    tn__sim_copy c = {destination, destination_at, source, source_at, bytes};
    uint32_t to = destination_at.kind == TN_LOCATION_CUDA ? destination_at.index : ANY;
    uint32_t from = source_at.kind == TN_LOCATION_CUDA ? source_at.index : ANY;
    tn_status status;

    tn__lock(&sim->lock);
    status = tn__sim_enter_locked(sim, TN_SIM_COPY, to, from,
                                  stream != NULL ? tn__sim_stream_peek(sim, stream) : NULL);

    if (status == TN_OK && bytes > 0) {
        if (stream != NULL)
            status = tn__sim_copy_queue(sim, &c, stream);
        else
            status = tn__sim_copy_now(sim, &c, to != ANY ? to : from);
    }
    return tn__sim_leave(sim, status);
}

const tn_driver_ops tn__sim_ops = {
    .size = sizeof(tn_driver_ops),
    .abi = TN_DRIVER_ABI,
    .name = "sim",
    .device_count = device_count,
    .capabilities = capabilities,
    .last_code = last_code,
    .device_alloc = device_alloc,
    .device_free = device_free,
    .pinned_alloc = pinned_alloc,
    .pinned_free = pinned_free,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_info = stream_info,
    .stream_synchronize = stream_synchronize,
    .stream_wait = stream_wait,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_query = event_query,
    .event_synchronize = event_synchronize,
    .copy = copy,
    .device_synchronize = device_synchronize,
    .host_function = host_function,
    .device_memory = device_memory,
    .pointer_location = pointer_location,
    .pool_trim = pool_trim,
};
