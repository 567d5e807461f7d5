/* SPDX-License-Identifier: MIT */
/* Starting, devices, contexts and the stack of them that each thread has. */
#include "shim_priv.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#ifndef SHIM_INIT_CODE
#define SHIM_INIT_CODE 0
#endif

enum { DEPTH = 16 };

static _Thread_local struct {
    CUcontext stack[DEPTH];
    unsigned depth;
    CUstreamCaptureMode mode; /* 0: global, as in a fresh thread */
} own;

struct cuda_shim shim;
/* Odd ids: primary ones. */
static struct CUctx_st contexts[2 * SHIM_DEVICES + 1];

void shim_complain(const char *format, ...) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    va_list list;

    pthread_mutex_lock(&mutex);
    if (atomic_fetch_add(&shim.complaints, 1) == 0) {
        va_start(list, format);
        vsnprintf(shim.complaint, sizeof(shim.complaint), format, list);
        va_end(list);
    }
    pthread_mutex_unlock(&mutex);
}

CUresult shim_code(tn_status status) {
    int64_t native = 0;

    if (status == TN_OK)
        return CUDA_SUCCESS;
    if (shim.ops->last_code != NULL)
        native = shim.ops->last_code(shim.self);
    if (native > 0)
        return (CUresult)native;
    switch (status) {
    case TN_ERR_HOST_MEMORY:
    case TN_ERR_DEVICE_MEMORY:
        return CUDA_ERROR_OUT_OF_MEMORY;
    case TN_ERR_CLOSED:
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    case TN_ERR_DEVICE_LOST:
        return CUDA_ERROR_LAUNCH_FAILED;
    case TN_ERR_UNSUPPORTED:
        return CUDA_ERROR_NOT_SUPPORTED;
    case TN_ERR_KIND:
        return CUDA_ERROR_INVALID_HANDLE;
    default:
        return CUDA_ERROR_UNKNOWN;
    }
}

CUcontext shim_context(uint64_t id) {
    return id >= 1 && id <= 2 * SHIM_DEVICES ? &contexts[id] : NULL;
}

CUresult shim_enter_any(void) {
    if (shim.driver_code != 0)
        return (CUresult)shim.driver_code;
    return shim.ops != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult shim_enter(CUcontext *out) {
    CUresult code = shim_enter_any();
    CUcontext context;

    if (code != CUDA_SUCCESS)
        return code;
    if (own.depth == 0) {
        shim_complain("a call was made without a current context");
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (own.mode != CU_STREAM_CAPTURE_MODE_RELAXED && !shim.any_capture_mode)
        shim_complain("a call was made in capture mode %d", (int)own.mode);
    context = own.stack[own.depth - 1];
    *out = context;
    return (CUresult)shim.context_code[context->device];
}

/* Starting. */

SHIM CUresult CUDAAPI cuInit(unsigned flags) {
#ifdef SHIM_MACHINE
    shim_machine_start();
#endif
    if (shim.init_code != 0)
        return (CUresult)shim.init_code;
    if (SHIM_INIT_CODE != 0)
        return (CUresult)SHIM_INIT_CODE;
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return shim.ops != NULL ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

SHIM CUresult CUDAAPI cuDriverGetVersion(int *version) {
    *version = shim.version != 0 ? shim.version : CUDA_VERSION;
    return CUDA_SUCCESS;
}

SHIM CUresult CUDAAPI cuDeviceGetCount(int *count) {
    uint32_t devices = 0;
    CUresult code = shim_enter_any();

    if (code == CUDA_SUCCESS)
        code = (CUresult)shim.count_code;
    if (code == CUDA_SUCCESS)
        code = shim_code(shim.ops->device_count(shim.self, &devices));
    if (code == CUDA_SUCCESS)
        *count = (int)(devices < SHIM_DEVICES ? devices : SHIM_DEVICES);
    return code;
}

static bool no_device(CUdevice device) {
    int count = 0;

    return cuDeviceGetCount(&count) != CUDA_SUCCESS || device < 0 || device >= count;
}

SHIM CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal) {
    if (no_device(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

SHIM CUresult CUDAAPI cuDeviceGetAttribute(int *value, CUdevice_attribute attribute,
                                           CUdevice device) {
    if (no_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (attribute != CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)
        return CUDA_ERROR_INVALID_VALUE;
    *value = !shim.no_pools;
    return CUDA_SUCCESS;
}

/* Contexts. */

SHIM CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    CUresult code = shim_enter_any();

    if (code != CUDA_SUCCESS)
        return code;
    if (no_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (shim.retain_code[device] != 0)
        return (CUresult)shim.retain_code[device];
    atomic_fetch_add(&shim.retained, 1);
    *context = &contexts[2 * device + 1];
    return CUDA_SUCCESS;
}

SHIM CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    if (device < 0 || device >= SHIM_DEVICES)
        return CUDA_ERROR_INVALID_DEVICE;
    if (atomic_fetch_sub(&shim.retained, 1) <= 0)
        shim_complain("a primary context was released once too often");
    return CUDA_SUCCESS;
}

SHIM CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext context) {
    CUresult code = shim_enter_any();

    if (code == CUDA_SUCCESS && context == NULL)
        code = CUDA_ERROR_INVALID_CONTEXT;
    if (code == CUDA_SUCCESS && !shim.sticky[context->device])
        code = (CUresult)shim.context_code[context->device];
    if (code == CUDA_SUCCESS && own.depth == DEPTH) {
        shim_complain("contexts were pushed %d deep", DEPTH);
        code = CUDA_ERROR_UNKNOWN;
    }
    if (code == CUDA_SUCCESS)
        own.stack[own.depth++] = context;
    return code;
}

SHIM CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext *context) {
    if (own.depth == 0) {
        shim_complain("a context was popped that is none");
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    *context = own.stack[--own.depth];
    return CUDA_SUCCESS;
}

SHIM CUresult CUDAAPI cuCtxGetCurrent(CUcontext *context) {
    CUresult code = shim_enter_any();

    if (code == CUDA_SUCCESS)
        *context = own.depth > 0 ? own.stack[own.depth - 1] : NULL;
    return code;
}

SHIM CUresult CUDAAPI cuCtxGetDevice(CUdevice *device) {
    CUcontext context;
    CUresult code = shim_enter(&context);

    if (code == CUDA_SUCCESS)
        *device = (CUdevice)context->device;
    return code;
}

SHIM CUresult CUDAAPI cuCtxSynchronize(void) {
    CUcontext context;
    CUresult code = shim_enter(&context);

    return code != CUDA_SUCCESS
               ? code
               : shim_code(shim.ops->device_synchronize(shim.self, context->device));
}

SHIM CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
    CUstreamCaptureMode old = own.mode;

    own.mode = *mode;
    *mode = old;
    return CUDA_SUCCESS;
}

/* For tests. */

static void push(uint32_t device, bool second) {
    own.stack[own.depth++] = &contexts[2 * device + (second ? 2 : 1)];
}

static void pop(void) { own.depth--; }
static uint64_t current(void) {
    return own.depth > 0 ? (uint64_t)(uintptr_t)own.stack[own.depth - 1] : 0;
}
static unsigned depth(void) { return own.depth; }
static int capture_mode(void) { return (int)own.mode; }

SHIM struct cuda_shim *cuda_shim_control(void);
SHIM struct cuda_shim *cuda_shim_control(void) { return &shim; }

SHIM void cuda_shim_reset(const tn_driver_ops *ops, void *self) {
    uint32_t i;

    memset(&shim, 0, sizeof(shim));
    shim.ops = ops;
    shim.self = self;
    shim.push = push;
    shim.pop = pop;
    shim.current = current;
    shim.depth = depth;
    shim.capture_mode = capture_mode;
    for (i = 0; i < 2 * SHIM_DEVICES; i++)
        contexts[i + 1] = (struct CUctx_st){.id = i + 1, .device = i / 2, .second = i % 2 != 0};
    shim_ranges_reset();
}
