/* SPDX-License-Identifier: MIT */
/*
 * Streams: those we make, and those of the program, which may belong to any context.
 *
 * The legacy stream means another one in each context. Here it is that of device 0's primary
 * context, whatever is current on the calling thread, so that all threads mean the same stream.
 */
#include "driver/cuda/cuda_priv.h"

/* Ask for the context of a stream under `context` (NULL: the caller's own). False: that one cannot
 * be entered, so nothing is known. */
static bool ask(tn__cuda *c, CUcontext context, CUstream stream, CUcontext *out, CUresult *code) {
    tn__cuda_scope scope;

    *code = tn__cuda_enter(c, context, &scope);
    if (*code != CUDA_SUCCESS)
        return false;
    *code = c->api.cuStreamGetCtx(stream, out);
    tn__cuda_leave(&scope);
    return true;
}

/* Some context has to be current for the question; which one does not matter, but a broken one
 * answers with its own error. So every open device is asked, until one knows. False: none is
 * open, or none can be entered. */
static bool ask_devices(tn__cuda *c, CUstream stream, CUcontext *out, CUresult *code) {
    bool asked = false;
    CUresult answer;
    uint32_t i;

    for (i = 0; i < c->count && !(asked && *code == CUDA_SUCCESS); i++) {
        tn__cuda_device *d = &c->devices[i];

        /* [cuda-device] acquire. Pairs: release in open_device(). */
        if (!tn__load_acq(&d->open))
            continue;
        if (ask(c, d->context, stream, out, &answer)) {
            asked = true;
            *code = answer;
        } else if (!asked) {
            *code = answer;
        }
    }
    return asked;
}

static tn_status context_of_any(tn__cuda *c, CUstream stream, CUcontext *out) {
    CUresult code = CUDA_ERROR_INVALID_CONTEXT;
    CUcontext current = NULL;
    CUresult answer;
    tn__cuda_device *d;
    tn_status status;

    if (ask_devices(c, stream, out, &code))
        return tn__cuda_result(c, code);
    if (c->api.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current != NULL &&
        ask(c, NULL, stream, out, &answer) && answer == CUDA_SUCCESS)
        return TN_OK;
    /* the caller's context proves nothing; and another thread may have opened a device since */
    status = tn__cuda_home(c, &d);
    if (status != TN_OK)
        return status;
    (void)ask_devices(c, stream, out, &code);
    return tn__cuda_result(c, code);
}

tn_status tn__cuda_stream_context(tn__cuda *c, tn_stream stream, CUcontext *out) {
    tn__cuda_device *d;
    tn_status status;

    if (stream == NULL || stream == TN_STREAM_PER_THREAD)
        return tn__cuda_result(c, CUDA_ERROR_INVALID_HANDLE);
    if (stream != TN_STREAM_LEGACY)
        return context_of_any(c, stream, out);
    status = tn__cuda_device_at(c, 0, &d);
    if (status == TN_OK)
        *out = d->context;
    return status;
}

/* Begin a call on a stream under its own context. */
static tn_status enter_stream(tn__cuda *c, tn_stream stream, tn__cuda_scope *scope) {
    CUcontext context = NULL;
    tn_status status = tn__cuda_stream_context(c, stream, &context);

    return status == TN_OK ? tn__cuda_result(c, tn__cuda_enter(c, context, scope)) : status;
}

static CUresult capturing(tn__cuda *c, tn_stream stream, bool *out) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult code = c->api.cuStreamIsCapturing(stream, &status);

    /* The legacy stream while a stream that it waits for is captured. */
    if (code == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) {
        *out = true;
        return CUDA_SUCCESS;
    }
    *out = status != CU_STREAM_CAPTURE_STATUS_NONE;
    return code;
}

CUresult tn__cuda_not_capturing(tn__cuda *c, tn_stream stream) {
    bool captured = false;
    CUresult code = capturing(c, stream, &captured);

    return code == CUDA_SUCCESS && captured ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : code;
}

/* The same for a call that a capture would record, or refuse (U5). */
static tn_status enter_queue(tn__cuda *c, tn_stream stream, tn__cuda_scope *scope) {
    tn_status status = enter_stream(c, stream, scope);

    if (status != TN_OK)
        return status;
    status = tn__cuda_result(c, tn__cuda_not_capturing(c, stream));
    if (status != TN_OK)
        tn__cuda_leave(scope);
    return status;
}

tn_status tn__cuda_stream_create(void *self, uint32_t device, tn_stream *out) {
    tn__cuda *c = self;
    CUstream stream = NULL;
    tn__cuda_scope scope;
    tn__cuda_device *d;
    tn_status status = tn__cuda_enter_device(c, device, &d, &scope);

    if (status != TN_OK)
        return status;
    status = tn__cuda_result(c, c->api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    tn__cuda_leave(&scope);
    if (status == TN_OK)
        *out = stream;
    return status;
}

tn_status tn__cuda_stream_destroy(void *self, tn_stream stream) {
    tn__cuda *c = self;
    tn__cuda_scope scope;
    tn_status status;

    if (stream == TN_STREAM_LEGACY)
        return tn__cuda_result(c, CUDA_ERROR_INVALID_HANDLE);
    status = enter_stream(c, stream, &scope);
    if (status == TN_OK) {
        status = tn__cuda_result(c, c->api.cuStreamDestroy_v2(stream));
        tn__cuda_leave(&scope);
    }
    return status;
}

static CUresult info_entered(tn__cuda *c, tn_stream stream, tn_stream_info *out) {
    bool captured = false;
    CUdevice handle = 0;
    CUresult code = c->api.cuCtxGetDevice(&handle);
    uint32_t i;

    if (code == CUDA_SUCCESS)
        code = capturing(c, stream, &captured);
    if (code != CUDA_SUCCESS)
        return code;
    for (i = 0; i < c->count && c->devices[i].handle != handle; i++)
        ;
    if (i == c->count)
        return CUDA_ERROR_INVALID_DEVICE;
    out->device = i;
    out->capturing = captured;
    return CUDA_SUCCESS;
}

tn_status tn__cuda_stream_info(void *self, tn_stream stream, tn_stream_info *out) {
    tn__cuda *c = self;
    tn_stream_info info = {0, 0, 0};
    CUcontext context = NULL;
    tn__cuda_scope scope;
    tn_status status = tn__cuda_stream_context(c, stream, &context);

    if (status == TN_OK)
        status = tn__cuda_result(c, tn__cuda_enter(c, context, &scope));
    else if (status == TN_ERR_DRIVER && (tn__cuda_last_code(c) == CUDA_ERROR_INVALID_HANDLE ||
                                         tn__cuda_last_code(c) == CUDA_ERROR_INVALID_VALUE))
        return TN_ERR_KIND;
    if (status != TN_OK)
        return status;
    status = tn__cuda_result(c, info_entered(c, stream, &info));
    tn__cuda_leave(&scope);
    if (status == TN_OK) {
        info.context = (uint64_t)(uintptr_t)context;
        *out = info;
    }
    return status;
}

tn_status tn__cuda_stream_synchronize(void *self, tn_stream stream) {
    tn__cuda *c = self;
    tn__cuda_scope scope;
    tn_status status = enter_queue(c, stream, &scope);

    if (status != TN_OK)
        return status;
    status = tn__cuda_result(c, c->api.cuStreamSynchronize(stream));
    tn__cuda_leave(&scope);
    return status;
}

tn_status tn__cuda_stream_wait(void *self, tn_stream stream, tn_event handle) {
    tn__cuda *c = self;
    const tn__cuda_event *event = (const tn__cuda_event *)(void *)handle;
    tn__cuda_scope scope;
    tn_status status = enter_queue(c, stream, &scope);

    if (status != TN_OK)
        return status;
    status = tn__cuda_result(c, c->api.cuStreamWaitEvent(stream, event->event, 0));
    tn__cuda_leave(&scope);
    return status;
}

/* The primary context's work; what the program queued in another context of the device is waited
 * for by its events. */
tn_status tn__cuda_device_synchronize(void *self, uint32_t device) {
    tn__cuda *c = self;
    tn__cuda_scope scope;
    tn__cuda_device *d;
    tn_status status = tn__cuda_enter_device(c, device, &d, &scope);

    if (status != TN_OK)
        return status;
    status = tn__cuda_result(c, c->api.cuCtxSynchronize());
    tn__cuda_leave(&scope);
    return status;
}

tn_status tn__cuda_host_function(void *self, tn_stream stream, void (*function)(void *context),
                                 void *context) {
    tn__cuda *c = self;
    tn__cuda_scope scope;
    tn_status status = enter_queue(c, stream, &scope);

    if (status != TN_OK)
        return status;
    status = tn__cuda_result(c, c->api.cuLaunchHostFunc(stream, function, context));
    tn__cuda_leave(&scope);
    return status;
}
