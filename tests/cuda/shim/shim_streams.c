/* SPDX-License-Identifier: MIT */
/* Streams, events, host functions and copies. */
#include "shim_priv.h"

/* The machine has one legacy stream, that of device 0's primary context. */
CUresult shim_stream(CUstream stream, CUcontext context) {
    if (stream == CU_STREAM_LEGACY && context->id != 1) {
        shim_complain("the legacy stream of context %d was used", (int)context->id);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (stream == NULL || stream == CU_STREAM_PER_THREAD) {
        shim_complain("stream %p was used", (void *)stream);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    return CUDA_SUCCESS;
}

/* Begin a call on a stream. */
static CUresult enter_stream(CUstream stream) {
    CUcontext context;
    CUresult code = shim_enter(&context);

    return code == CUDA_SUCCESS ? shim_stream(stream, context) : code;
}

static CUresult info_of(CUstream stream, tn_stream_info *out) {
    CUresult code = enter_stream(stream);

    return code == CUDA_SUCCESS ? shim_code(shim.ops->stream_info(shim.self, stream, out)) : code;
}

SHIM CUresult CUDAAPI cuStreamCreate(CUstream *stream, unsigned flags) {
    CUcontext context;
    CUresult code = shim_enter(&context);

    if (code != CUDA_SUCCESS)
        return code;
    if (flags != CU_STREAM_NON_BLOCKING || context->second)
        shim_complain("a stream was made with flags %u in context %d", flags, (int)context->id);
    return shim_code(shim.ops->stream_create(shim.self, context->device, stream));
}

SHIM CUresult CUDAAPI cuStreamDestroy_v2(CUstream stream) {
    CUcontext context;
    CUresult code = shim_enter(&context);

    return code != CUDA_SUCCESS ? code : shim_code(shim.ops->stream_destroy(shim.self, stream));
}

SHIM CUresult CUDAAPI cuStreamSynchronize(CUstream stream) {
    CUresult code = enter_stream(stream);

    return code != CUDA_SUCCESS ? code : shim_code(shim.ops->stream_synchronize(shim.self, stream));
}

SHIM CUresult CUDAAPI cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
    CUresult code = enter_stream(stream);

    if (code != CUDA_SUCCESS)
        return code;
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return shim_code(shim.ops->stream_wait(shim.self, stream, event));
}

SHIM CUresult CUDAAPI cuStreamGetCtx(CUstream stream, CUcontext *out) {
    tn_stream_info info = {0, 0, 0};
    CUresult code = info_of(stream, &info);

    if (code == CUDA_SUCCESS)
        *out = shim_context(info.context);
    return code;
}

SHIM CUresult CUDAAPI cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
    tn_stream_info info = {0, 0, 0};
    CUresult code = info_of(stream, &info);

    if (code == CUDA_SUCCESS)
        *status = info.capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return code;
}

SHIM CUresult CUDAAPI cuLaunchHostFunc(CUstream stream, CUhostFn function, void *argument) {
    CUresult code = enter_stream(stream);

    return code != CUDA_SUCCESS
               ? code
               : shim_code(shim.ops->host_function(shim.self, stream, function, argument));
}

/* Events. */

SHIM CUresult CUDAAPI cuEventCreate(CUevent *event, unsigned flags) {
    CUcontext context;
    CUresult code = shim_enter(&context);

    if (code != CUDA_SUCCESS)
        return code;
    if (flags != CU_EVENT_DISABLE_TIMING)
        shim_complain("an event was made with flags %u", flags);
    return shim_code(shim.ops->event_create(shim.self, context->device, context->id, event));
}

SHIM CUresult CUDAAPI cuEventDestroy_v2(CUevent event) {
    CUcontext context;
    CUresult code = shim_enter(&context);

    return code != CUDA_SUCCESS ? code : shim_code(shim.ops->event_destroy(shim.self, event));
}

SHIM CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream) {
    CUresult code = enter_stream(stream);

    return code != CUDA_SUCCESS ? code
                                : shim_code(shim.ops->event_record(shim.self, event, stream));
}

SHIM CUresult CUDAAPI cuEventQuery(CUevent event) {
    uint32_t done = 0;
    CUcontext context;
    CUresult code = shim_enter(&context);

    if (code == CUDA_SUCCESS)
        code = shim_code(shim.ops->event_query(shim.self, event, &done));
    return code == CUDA_SUCCESS && !done ? CUDA_ERROR_NOT_READY : code;
}

SHIM CUresult CUDAAPI cuEventSynchronize(CUevent event) {
    CUcontext context;
    CUresult code = shim_enter(&context);

    return code != CUDA_SUCCESS ? code : shim_code(shim.ops->event_synchronize(shim.self, event));
}

/* Copies. */

static CUresult copy(void *to, tn_location to_at, const void *from, tn_location from_at,
                     size_t bytes, CUstream stream) {
    CUresult code = enter_stream(stream);

    return code != CUDA_SUCCESS
               ? code
               : shim_code(shim.ops->copy(shim.self, to, to_at, from, from_at, bytes, stream));
}

/* What a device address means: a block's device, or the current one for the machine to refuse. */
static tn_location device_end(const void *pointer) {
    tn_location at = shim_locate(pointer);
    CUdevice device = 0;

    if (at.kind == TN_LOCATION_CUDA || cuCtxGetDevice(&device) != CUDA_SUCCESS)
        return at;
    return tn_location_cuda((uint32_t)device);
}

static void *host(CUdeviceptr pointer) { return (void *)(uintptr_t)pointer; }

SHIM CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                    CUstream stream) {
    return copy(host(to), shim_locate(host(to)), host(from), shim_locate(host(from)), bytes,
                stream);
}

SHIM CUresult CUDAAPI cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes,
                                           CUstream stream) {
    return copy(host(to), device_end(host(to)), from, shim_locate(from), bytes, stream);
}

SHIM CUresult CUDAAPI cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes,
                                           CUstream stream) {
    return copy(to, shim_locate(to), host(from), device_end(host(from)), bytes, stream);
}

SHIM CUresult CUDAAPI cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                           CUstream stream) {
    tn_location to_at = device_end(host(to));
    tn_location from_at = device_end(host(from));

    if (to_at.kind != from_at.kind || to_at.index != from_at.index) {
        shim_complain("cuMemcpyDtoDAsync between devices");
        return CUDA_ERROR_INVALID_VALUE;
    }
    return copy(host(to), to_at, host(from), from_at, bytes, stream);
}

SHIM CUresult CUDAAPI cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                        CUcontext from_context, size_t bytes, CUstream stream) {
    return copy(host(to), tn_location_cuda(to_context->device), host(from),
                tn_location_cuda(from_context->device), bytes, stream);
}
