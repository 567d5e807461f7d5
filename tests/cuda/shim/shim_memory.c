/* SPDX-License-Identifier: MIT */
/* Memory, pools, figures and pointers. The table wants the size of what it frees; the driver does
 * not, so blocks are kept in a list sorted by address. */
#include "shim_priv.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct range {
    uintptr_t base;
    uint64_t bytes;
    tn_location at;
};

static struct {
    pthread_mutex_t mutex;
    struct range *items;
    size_t count;
    size_t capacity;
} ranges = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* One for each device; a second one of a device would be the same. */
static struct CUmemPoolHandle_st { uint32_t device; } pools[SHIM_DEVICES];

/* The number of ranges that begin at an address or below. Locked. */
static size_t ranges_below(uintptr_t address) {
    size_t low = 0;
    size_t high = ranges.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (ranges.items[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void range_add(struct range range) {
    size_t at;

    pthread_mutex_lock(&ranges.mutex);
    if (ranges.count == ranges.capacity) {
        ranges.capacity = ranges.capacity * 2 + 64;
        ranges.items = realloc(ranges.items, ranges.capacity * sizeof(*ranges.items));
        if (ranges.items == NULL)
            abort();
    }
    at = ranges_below(range.base);
    memmove(&ranges.items[at + 1], &ranges.items[at], (ranges.count - at) * sizeof(range));
    ranges.items[at] = range;
    ranges.count++;
    pthread_mutex_unlock(&ranges.mutex);
}

/* Take the range that begins at an address out of the list, so that nobody finds it while it is
 * being freed. */
static bool range_take(uintptr_t base, struct range *out) {
    size_t n;
    bool found;

    pthread_mutex_lock(&ranges.mutex);
    n = ranges_below(base);
    found = n > 0 && ranges.items[n - 1].base == base;
    if (found) {
        *out = ranges.items[n - 1];
        memmove(&ranges.items[n - 1], &ranges.items[n], (ranges.count - n) * sizeof(*out));
        ranges.count--;
    }
    pthread_mutex_unlock(&ranges.mutex);
    return found;
}

tn_location shim_locate(const void *pointer) {
    uintptr_t address = (uintptr_t)pointer;
    tn_location at = tn_location_pageable();
    size_t n;

    pthread_mutex_lock(&ranges.mutex);
    n = ranges_below(address);
    if (n > 0 && address - ranges.items[n - 1].base < ranges.items[n - 1].bytes)
        at = ranges.items[n - 1].at;
    pthread_mutex_unlock(&ranges.mutex);
    return at;
}

void shim_ranges_reset(void) {
    free(ranges.items);
    ranges.items = NULL;
    ranges.count = ranges.capacity = 0;
}

/* Device memory. */

static CUresult alloc_on(uint32_t device, size_t bytes, CUdeviceptr *out) {
    void *pointer = NULL;
    tn_status status = shim.ops->device_alloc(shim.self, device, bytes, &pointer);

    if (status != TN_OK)
        return shim_code(status);
    range_add((struct range){(uintptr_t)pointer, bytes, tn_location_cuda(device)});
    *out = (CUdeviceptr)(uintptr_t)pointer;
    return CUDA_SUCCESS;
}

static CUresult free_of(CUdeviceptr pointer) {
    struct range range;
    tn_status status;

    if (!range_take((uintptr_t)pointer, &range) || range.at.kind != TN_LOCATION_CUDA) {
        shim_complain("device memory was freed that is none");
        return CUDA_ERROR_INVALID_VALUE;
    }
    status = shim.ops->device_free(shim.self, range.at.index, (void *)range.base, range.bytes);
    if (status != TN_OK)
        range_add(range);
    return shim_code(status);
}

SHIM CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
    CUcontext context;
    CUresult code = shim_enter(&context);

    atomic_fetch_add(&shim.allocs, 1);
    return code == CUDA_SUCCESS ? alloc_on(context->device, bytes, pointer) : code;
}

SHIM CUresult CUDAAPI cuMemFree_v2(CUdeviceptr pointer) {
    CUcontext context;
    CUresult code = shim_enter(&context);

    return code == CUDA_SUCCESS ? free_of(pointer) : code;
}

SHIM CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props) {
    CUcontext context;
    CUresult code = shim_enter(&context);

    if (code == CUDA_SUCCESS)
        code = (CUresult)shim.pool_code;
    if (code != CUDA_SUCCESS)
        return code;
    if (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        props->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        props->location.id != (int)context->device || shim.no_pools)
        return CUDA_ERROR_INVALID_VALUE;
    *pool = &pools[context->device];
    (*pool)->device = context->device;
    atomic_fetch_add(&shim.live_pools, 1);
    return CUDA_SUCCESS;
}

SHIM CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool pool) {
    if (pool == NULL || atomic_fetch_sub(&shim.live_pools, 1) <= 0)
        shim_complain("a pool was destroyed that is none");
    return CUDA_SUCCESS;
}

SHIM CUresult CUDAAPI cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                            void *value) {
    if (pool == NULL || attribute != CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        return CUDA_ERROR_INVALID_VALUE;
    atomic_store(&shim.threshold, *(cuuint64_t *)value);
    return CUDA_SUCCESS;
}

SHIM CUresult CUDAAPI cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                            void *value) {
    tn_device_memory figures = {0, 0, 0, 0};
    CUresult code;

    if (shim.no_pool_figures)
        return CUDA_ERROR_INVALID_VALUE;
    code = shim_code(shim.ops->device_memory(shim.self, pool->device, &figures));
    if (code != CUDA_SUCCESS)
        return code;
    if (attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
        *(cuuint64_t *)value = figures.pool_used_bytes;
    else if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
        *(cuuint64_t *)value = figures.pool_held_bytes;
    else
        code = CUDA_ERROR_INVALID_VALUE;
    return code;
}

/* Counted only: the simulated pool has a threshold of its own. */
SHIM CUresult CUDAAPI cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes) {
    (void)pool;
    atomic_fetch_add(&shim.trims, 1);
    atomic_store(&shim.trimmed_to, bytes);
    return CUDA_SUCCESS;
}

SHIM CUresult CUDAAPI cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool,
                                              CUstream stream) {
    CUcontext context;
    CUresult code = shim_enter(&context);

    if (code == CUDA_SUCCESS)
        code = shim_stream(stream, context);
    return code == CUDA_SUCCESS ? alloc_on(pool->device, bytes, pointer) : code;
}

SHIM CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
    CUcontext context;
    CUresult code = shim_enter(&context);

    if (code == CUDA_SUCCESS)
        code = shim_stream(stream, context);
    return code == CUDA_SUCCESS ? free_of(pointer) : code;
}

/* Pinned memory. */

SHIM CUresult CUDAAPI cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags) {
    CUcontext context;
    CUresult code = shim_enter(&context);

    if (code != CUDA_SUCCESS)
        return code;
    if (flags != CU_MEMHOSTALLOC_PORTABLE)
        shim_complain("pinned memory was asked for with flags %u", flags);
    code = shim_code(shim.ops->pinned_alloc(shim.self, bytes, pointer));
    if (code == CUDA_SUCCESS)
        range_add((struct range){(uintptr_t)*pointer, bytes, tn_location_pinned()});
    return code;
}

SHIM CUresult CUDAAPI cuMemFreeHost(void *pointer) {
    struct range range;
    CUcontext context;
    CUresult code = shim_enter(&context);
    tn_status status;

    if (code != CUDA_SUCCESS)
        return code;
    if (!range_take((uintptr_t)pointer, &range) || range.at.kind != TN_LOCATION_PINNED) {
        shim_complain("pinned memory was freed that is none");
        return CUDA_ERROR_INVALID_VALUE;
    }
    status = shim.ops->pinned_free(shim.self, pointer, (size_t)range.bytes);
    if (status != TN_OK)
        range_add(range);
    return shim_code(status);
}

/* Figures and pointers. */

SHIM CUresult CUDAAPI cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes) {
    tn_device_memory figures = {0, 0, 0, 0};
    CUcontext context;
    CUresult code = shim_enter(&context);

    if (code == CUDA_SUCCESS)
        code = shim_code(shim.ops->device_memory(shim.self, context->device, &figures));
    if (code == CUDA_SUCCESS) {
        *free_bytes = (size_t)figures.free_bytes;
        *total_bytes = (size_t)figures.total_bytes;
    }
    return code;
}

SHIM CUresult CUDAAPI cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes,
                                             void **data, CUdeviceptr pointer) {
    tn_location at = tn_location_none();
    CUcontext context;
    CUresult code = shim_enter(&context);
    unsigned i;

    if (code == CUDA_SUCCESS)
        code =
            shim_code(shim.ops->pointer_location(shim.self, (const void *)(uintptr_t)pointer, &at));
    for (i = 0; i < count && code == CUDA_SUCCESS; i++) {
        if (attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
            *(unsigned *)data[i] = at.kind == TN_LOCATION_CUDA     ? CU_MEMORYTYPE_DEVICE
                                   : at.kind == TN_LOCATION_PINNED ? CU_MEMORYTYPE_HOST
                                                                   : 0;
        else if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
            *(int *)data[i] = at.kind == TN_LOCATION_CUDA ? (int)at.index : -2;
        else
            code = CUDA_ERROR_INVALID_VALUE;
    }
    return code;
}
