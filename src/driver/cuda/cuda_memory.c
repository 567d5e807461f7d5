/* SPDX-License-Identifier: MIT */
/*
 * Device memory from a pool of our own (U3), or from cuMemAlloc where there are no pools; pinned
 * memory; figures; what a pointer is.
 *
 * The pool keeps freed memory, because mapping it anew is slow, but at most `idle_pool_bytes`
 * (1/32 of the device) beyond what is in use: the rest belongs to the evaluator.
 */
#include "driver/cuda/cuda_priv.h"

/* A figure of the pool. False: it cannot be had. */
static bool pool_figure(tn__cuda *c, const tn__cuda_device *d, CUmemPool_attribute which,
                        uint64_t *out) {
    cuuint64_t bytes = 0;

    if (d->pool == NULL || c->api.cuMemPoolGetAttribute(d->pool, which, &bytes) != CUDA_SUCCESS)
        return false;
    *out = bytes;
    return true;
}

/* What the pool holds beyond what is in use; 0 also if it cannot be had. */
static uint64_t pool_idle(tn__cuda *c, const tn__cuda_device *d) {
    uint64_t used = tn__load_rlx(&d->used_bytes);
    uint64_t held = 0;

    return pool_figure(c, d, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &held) && held > used
               ? held - used
               : 0;
}

static CUresult pool_alloc(tn__cuda *c, tn__cuda_device *d, size_t bytes, CUdeviceptr *out) {
    CUresult code = c->api.cuMemAllocFromPoolAsync(out, bytes, d->pool, d->memory);

    /* The pool's idle blocks may all be too small. */
    if (code == CUDA_ERROR_OUT_OF_MEMORY && pool_idle(c, d) > 0) {
        (void)c->api.cuMemPoolTrimTo(d->pool, 0);
        code = c->api.cuMemAllocFromPoolAsync(out, bytes, d->pool, d->memory);
    }
    if (code != CUDA_SUCCESS)
        return code;
    /* Only now may other streams use it. Nothing but allocations is queued there: no wait. */
    code = c->api.cuStreamSynchronize(d->memory);
    if (code != CUDA_SUCCESS)
        (void)c->api.cuMemFreeAsync(*out, d->memory);
    return code;
}

tn_status tn__cuda_device_alloc(void *self, uint32_t device, uint64_t bytes, void **out) {
    tn__cuda *c = self;
    CUdeviceptr pointer = 0;
    tn__cuda_scope scope;
    tn__cuda_device *d;
    tn_status status;
    CUresult code;

    if (bytes == 0)
        return tn__cuda_result(c, CUDA_ERROR_INVALID_VALUE);
    status = tn__cuda_enter_device(c, device, &d, &scope);
    if (status != TN_OK)
        return status;
    code = d->pool != NULL ? pool_alloc(c, d, (size_t)bytes, &pointer)
                           : c->api.cuMemAlloc_v2(&pointer, (size_t)bytes);
    tn__cuda_leave(&scope);
    if (code == CUDA_SUCCESS) {
        tn__add_rlx(&d->used_bytes, bytes);
        *out = (void *)(uintptr_t)pointer;
    }
    return tn__cuda_result(c, code);
}

/* Give idle memory beyond the limit back. What was freed a moment ago may still count as used to
 * the driver; it goes with the next free. */
static void limit_idle(tn__cuda *c, tn__cuda_device *d) {
    if (pool_idle(c, d) > d->idle_pool_bytes)
        (void)c->api.cuMemPoolTrimTo(d->pool,
                                     (size_t)(tn__load_rlx(&d->used_bytes) + d->idle_pool_bytes));
}

tn_status tn__cuda_device_free(void *self, uint32_t device, void *pointer, uint64_t bytes) {
    tn__cuda *c = self;
    CUdeviceptr address = (CUdeviceptr)(uintptr_t)pointer;
    tn__cuda_scope scope;
    tn__cuda_device *d;
    tn_status status = tn__cuda_enter_device(c, device, &d, &scope);
    CUresult code;

    if (status != TN_OK)
        return status;
    code =
        d->pool != NULL ? c->api.cuMemFreeAsync(address, d->memory) : c->api.cuMemFree_v2(address);
    if (code == CUDA_SUCCESS) {
        tn__sub_rlx(&d->used_bytes, bytes);
        limit_idle(c, d);
    }
    tn__cuda_leave(&scope);
    return tn__cuda_result(c, code);
}

/* Pinned memory is portable: every device can copy to and from it. It belongs to the context that
 * was the first, and is freed under it. */
tn_status tn__cuda_pinned_alloc(void *self, size_t bytes, void **out) {
    tn__cuda *c = self;
    void *pointer = NULL;
    tn__cuda_scope scope;
    tn_status status = tn__cuda_enter_home(c, &scope);
    CUresult code;

    if (status != TN_OK)
        return status;
    code = c->api.cuMemHostAlloc(&pointer, bytes, CU_MEMHOSTALLOC_PORTABLE);
    tn__cuda_leave(&scope);
    if (code == CUDA_SUCCESS)
        *out = pointer;
    return tn__cuda_status(c, code, TN_ERR_HOST_MEMORY);
}

tn_status tn__cuda_pinned_free(void *self, void *pointer, size_t bytes) {
    tn__cuda *c = self;
    tn__cuda_scope scope;
    tn_status status = tn__cuda_enter_home(c, &scope);

    (void)bytes;
    if (status != TN_OK)
        return status;
    status = tn__cuda_result(c, c->api.cuMemFreeHost(pointer));
    tn__cuda_leave(&scope);
    return status;
}

tn_status tn__cuda_device_memory(void *self, uint32_t device, tn_device_memory *out) {
    tn__cuda *c = self;
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    tn__cuda_scope scope;
    tn__cuda_device *d;
    tn_status status = tn__cuda_enter_device(c, device, &d, &scope);
    CUresult code;

    if (status != TN_OK)
        return status;
    code = c->api.cuMemGetInfo_v2(&free_bytes, &total_bytes);
    if (code == CUDA_SUCCESS) {
        out->total_bytes = total_bytes;
        out->free_bytes = free_bytes;
        if (!pool_figure(c, d, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &out->pool_used_bytes) ||
            !pool_figure(c, d, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &out->pool_held_bytes))
            out->pool_used_bytes = out->pool_held_bytes = tn__load_rlx(&d->used_bytes);
    }
    tn__cuda_leave(&scope);
    return tn__cuda_result(c, code);
}

tn_status tn__cuda_pointer_location(void *self, const void *pointer, tn_location *out) {
    tn__cuda *c = self;
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    unsigned type = 0; /* stays 0 for memory that the driver does not know */
    int ordinal = -1;
    void *answers[] = {&type, &ordinal};
    tn__cuda_scope scope;
    tn_status status = tn__cuda_enter_home(c, &scope);
    CUresult code;

    if (status != TN_OK)
        return status;
    code = c->api.cuPointerGetAttributes(2, which, answers, (CUdeviceptr)(uintptr_t)pointer);
    tn__cuda_leave(&scope);
    if (code != CUDA_SUCCESS)
        return tn__cuda_result(c, code);
    if (type == CU_MEMORYTYPE_HOST)
        *out = tn_location_pinned();
    else if (type == CU_MEMORYTYPE_DEVICE && ordinal >= 0)
        *out = tn_location_cuda((uint32_t)ordinal);
    else
        *out = tn_location_none();
    return TN_OK;
}
