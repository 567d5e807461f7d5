/* SPDX-License-Identifier: MIT */
/* Contexts: entering one and leaving it (U1), and devices, opened at their first use (U2). */
#include "driver/cuda/cuda_priv.h"

CUresult tn__cuda_enter(tn__cuda *c, CUcontext context, tn__cuda_scope *scope) {
    CUresult code = CUDA_SUCCESS;

    *scope = (tn__cuda_scope){.cuda = c, .mode = CU_STREAM_CAPTURE_MODE_RELAXED};
    /* A capture in the global mode, by any thread of the program, would forbid queries,
     * allocations and copies that have nothing to do with it. */
    if (c->api.cuThreadExchangeStreamCaptureMode != NULL)
        scope->exchanged = c->api.cuThreadExchangeStreamCaptureMode(&scope->mode) == CUDA_SUCCESS;
    if (context != NULL)
        code = c->api.cuCtxPushCurrent_v2(context);
    scope->pushed = context != NULL && code == CUDA_SUCCESS;
    if (code != CUDA_SUCCESS)
        tn__cuda_leave(scope);
    return code;
}

void tn__cuda_leave(tn__cuda_scope *scope) {
    const tn__cuda_api *api = &scope->cuda->api;
    CUcontext ours;

    /* Either can fail only where the driver has shut down, and then nothing is left to restore. */
    if (scope->pushed)
        (void)api->cuCtxPopCurrent_v2(&ours);
    if (scope->exchanged)
        (void)api->cuThreadExchangeStreamCaptureMode(&scope->mode);
}

/* A pool whose memory the driver does not take back by itself: it would do so at every
 * synchronisation, of whatever stream, and the next allocation would have to map it anew. What is
 * idle is limited by cuda_memory.c instead. */
static CUresult open_pool(tn__cuda *c, tn__cuda_device *d) {
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .handleTypes = CU_MEM_HANDLE_TYPE_NONE,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = d->handle}};
    cuuint64_t threshold = UINT64_MAX;
    int supported = 0;
    CUresult code;

    if (!c->pools)
        return CUDA_SUCCESS;
    code = c->api.cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
                                       d->handle);
    if (code != CUDA_SUCCESS || supported == 0)
        return CUDA_SUCCESS; /* a driver that does not know the attribute has no pools */
    code = c->api.cuStreamCreate(&d->memory, CU_STREAM_NON_BLOCKING);
    if (code == CUDA_SUCCESS)
        code = c->api.cuMemPoolCreate(&d->pool, &props);
    if (code == CUDA_SUCCESS)
        code = c->api.cuMemPoolSetAttribute(d->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
    return code;
}

static void close_parts(tn__cuda *c, tn__cuda_device *d) {
    tn__cuda_scope scope;

    if (tn__cuda_enter(c, d->context, &scope) == CUDA_SUCCESS) {
        while (d->idle_count > 0)
            (void)c->api.cuStreamDestroy_v2(d->idle[--d->idle_count]);
        if (d->memory != NULL)
            (void)c->api.cuStreamDestroy_v2(d->memory);
        if (d->pool != NULL)
            (void)c->api.cuMemPoolDestroy(d->pool);
        tn__cuda_leave(&scope);
    }
    (void)c->api.cuDevicePrimaryCtxRelease_v2(d->handle);
    d->idle_count = 0;
    d->memory = NULL;
    d->pool = NULL;
    d->context = NULL;
}

void tn__cuda_device_close(tn__cuda *c, tn__cuda_device *d) {
    if (d->context != NULL)
        close_parts(c, d);
    tn__mutex_fini(&d->idle_lock);
}

static CUresult open_parts(tn__cuda *c, tn__cuda_device *d) {
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    tn__cuda_scope scope;
    CUresult code = tn__cuda_enter(c, d->context, &scope);

    if (code != CUDA_SUCCESS)
        return code;
    /* Without that figure nothing is kept idle. */
    (void)c->api.cuMemGetInfo_v2(&free_bytes, &total_bytes);
    d->idle_pool_bytes = total_bytes / 32;
    code = open_pool(c, d);
    tn__cuda_leave(&scope);
    return code;
}

/* Under the driver's lock. A failure leaves the device closed: the next call tries again. */
static CUresult open_device(tn__cuda *c, tn__cuda_device *d) {
    CUresult code = c->api.cuDevicePrimaryCtxRetain(&d->context, d->handle);

    if (code != CUDA_SUCCESS) {
        d->context = NULL;
        return code;
    }
    code = open_parts(c, d);
    if (code != CUDA_SUCCESS) {
        close_parts(c, d);
        return code;
    }
    if (tn__load_rlx(&c->home) == 0)
        tn__store_rlx(&c->home, (uint32_t)(d - c->devices) + 1);
    /* [cuda-device] release. Pairs: acquire in tn__cuda_device_at(). Orders: the device's context,
     * pool and stream -> the flag. Without: another thread uses a pool that it sees half made. */
    tn__store_rel(&d->open, 1);
    return CUDA_SUCCESS;
}

tn_status tn__cuda_device_at(tn__cuda *c, uint32_t index, tn__cuda_device **out) {
    CUresult code = CUDA_SUCCESS;
    tn__cuda_device *d;

    if (index >= c->count)
        return tn__cuda_result(c, CUDA_ERROR_INVALID_DEVICE);
    d = &c->devices[index];
    /* [cuda-device] acquire. Pairs: release in open_device(). */
    if (!tn__load_acq(&d->open)) {
        tn__lock(&c->lock);
        if (!tn__load_rlx(&d->open)) /* [no-order] the lock orders it */
            code = open_device(c, d);
        tn__unlock(&c->lock);
    }
    if (code == CUDA_SUCCESS)
        *out = d;
    return tn__cuda_result(c, code);
}

tn_status tn__cuda_home(tn__cuda *c, tn__cuda_device **out) {
    uint32_t home = tn__load_rlx(&c->home);
    tn_status status = TN_ERR_DRIVER; /* never stays: there is a device */
    uint32_t i;

    if (home != 0)
        return tn__cuda_device_at(c, home - 1, out);
    for (i = 0; i < c->count; i++) {
        status = tn__cuda_device_at(c, i, out);
        if (status == TN_OK || status == TN_ERR_CLOSED)
            break;
    }
    return status;
}

tn_status tn__cuda_enter_device(tn__cuda *c, uint32_t index, tn__cuda_device **out,
                                tn__cuda_scope *scope) {
    tn_status status = tn__cuda_device_at(c, index, out);

    return status == TN_OK ? tn__cuda_result(c, tn__cuda_enter(c, (*out)->context, scope)) : status;
}

tn_status tn__cuda_enter_home(tn__cuda *c, tn__cuda_scope *scope) {
    tn__cuda_device *d;
    tn_status status = tn__cuda_home(c, &d);

    return status == TN_OK ? tn__cuda_result(c, tn__cuda_enter(c, d->context, scope)) : status;
}
