/* SPDX-License-Identifier: MIT */
/* Events without timing. Each call is made under the event's own context (U4): an event counts as
 * complete because its context is gone, never because another one is. */
#include "driver/cuda/cuda_priv.h"

static tn__cuda_event *event_of(tn_event handle) { return (tn__cuda_event *)(void *)handle; }

/* The context must be one of the device, or an event would be recorded across devices later. */
static CUresult create_entered(tn__cuda *c, uint32_t device, CUevent *out) {
    CUdevice handle = 0;
    CUresult code = c->api.cuCtxGetDevice(&handle);

    if (code == CUDA_SUCCESS && handle != c->devices[device].handle)
        return CUDA_ERROR_INVALID_DEVICE;
    return code == CUDA_SUCCESS ? c->api.cuEventCreate(out, CU_EVENT_DISABLE_TIMING) : code;
}

tn_status tn__cuda_event_create(void *self, uint32_t device, uint64_t context, tn_event *out) {
    tn__cuda *c = self;
    tn__cuda_event *event;
    tn__cuda_scope scope;
    CUresult code;

    if (device >= c->count)
        return tn__cuda_result(c, CUDA_ERROR_INVALID_DEVICE);
    if (context == 0)
        return tn__cuda_result(c, CUDA_ERROR_INVALID_VALUE);
    event = tn__zalloc(sizeof(*event));
    if (event == NULL)
        return tn__cuda_status(c, CUDA_ERROR_OUT_OF_MEMORY, TN_ERR_HOST_MEMORY);
    event->context = (CUcontext)(uintptr_t)context;
    code = tn__cuda_enter(c, event->context, &scope);
    if (code == CUDA_SUCCESS) {
        code = create_entered(c, device, &event->event);
        tn__cuda_leave(&scope);
    }
    if (code == CUDA_SUCCESS)
        *out = (tn_event)(void *)event;
    else
        tn__free(event);
    return tn__cuda_result(c, code);
}

tn_status tn__cuda_event_destroy(void *self, tn_event handle) {
    tn__cuda *c = self;
    tn__cuda_event *event = event_of(handle);
    tn__cuda_scope scope;
    CUresult code = tn__cuda_enter(c, event->context, &scope);
    tn_status status;

    if (code == CUDA_SUCCESS) {
        code = c->api.cuEventDestroy_v2(event->event);
        tn__cuda_leave(&scope);
    }
    status = tn__cuda_result(c, code);
    if (status == TN_OK || status == TN_ERR_CLOSED) /* otherwise it may be tried again */
        tn__free(event);
    return status;
}

static CUresult record_entered(tn__cuda *c, const tn__cuda_event *event, tn_stream stream) {
    CUresult code = tn__cuda_not_capturing(c, stream);

    return code == CUDA_SUCCESS ? c->api.cuEventRecord(event->event, stream) : code;
}

/* Whether an event is of the stream's context, as far as the driver would not find out by itself:
 * it takes the legacy stream for that of the event's context. */
static bool stream_fits(tn__cuda *c, const tn__cuda_event *event, tn_stream stream) {
    CUcontext context = NULL;

    if (stream == NULL || stream == TN_STREAM_PER_THREAD)
        return false;
    return stream != TN_STREAM_LEGACY ||
           (tn__cuda_stream_context(c, stream, &context) == TN_OK && context == event->context);
}

tn_status tn__cuda_event_record(void *self, tn_event handle, tn_stream stream) {
    tn__cuda *c = self;
    const tn__cuda_event *event = event_of(handle);
    tn__cuda_scope scope;
    CUresult code;

    if (!stream_fits(c, event, stream))
        return tn__cuda_result(c, CUDA_ERROR_INVALID_HANDLE);
    code = tn__cuda_enter(c, event->context, &scope);
    if (code == CUDA_SUCCESS) {
        code = record_entered(c, event, stream);
        tn__cuda_leave(&scope);
    }
    return tn__cuda_result(c, code);
}

tn_status tn__cuda_event_query(void *self, tn_event handle, uint32_t *out_done) {
    tn__cuda *c = self;
    const tn__cuda_event *event = event_of(handle);
    tn__cuda_scope scope;
    CUresult code = tn__cuda_enter(c, event->context, &scope);

    if (code == CUDA_SUCCESS) {
        code = c->api.cuEventQuery(event->event);
        tn__cuda_leave(&scope);
    }
    if (code == CUDA_SUCCESS || code == CUDA_ERROR_NOT_READY) {
        *out_done = code == CUDA_SUCCESS;
        return TN_OK;
    }
    return tn__cuda_result(c, code);
}

tn_status tn__cuda_event_synchronize(void *self, tn_event handle) {
    tn__cuda *c = self;
    const tn__cuda_event *event = event_of(handle);
    tn__cuda_scope scope;
    CUresult code = tn__cuda_enter(c, event->context, &scope);

    if (code == CUDA_SUCCESS) {
        code = c->api.cuEventSynchronize(event->event);
        tn__cuda_leave(&scope);
    }
    return tn__cuda_result(c, code);
}
