/* SPDX-License-Identifier: MIT */
/* Memory of a location, copies between locations, and what the driver says about its memory. */
#include "driver/driver_priv.h"

#include <string.h>

#include "base/lockrank.h"

static tn_status pageable_alloc(uint64_t bytes, void **out) {
    void *block = tn__host_alloc(bytes);

    if (block == NULL) {
        tn__no_memory();
        tn__error_current()->at = tn_location_pageable();
        return TN_ERR_HOST_MEMORY;
    }
    *out = block;
    return TN_OK;
}

static tn_status device_alloc(tn_driver *d, tn_location at, uint64_t bytes, void **out) {
    void *block = NULL;
    tn_status status = d->ops->device_alloc(d->self, at.index, bytes, &block);

    if (status != TN_OK)
        return tn__driver_report(d, status, "device_alloc", at);
    *out = block;
    return TN_OK;
}

tn_status tn_memory_alloc(tn_driver *driver, tn_location at, uint64_t bytes, void **out) {
    tn_location where;
    tn_status status;

    tn__assert_may_wait("memory_alloc");
    if (out == NULL)
        return tn__fail(TN_ERR_KIND, "`out` is NULL");
    status = tn__driver_check_location(driver, at, &where);
    if (status != TN_OK)
        return status;
    if (bytes > (uint64_t)INT64_MAX)
        return tn__fail(TN_ERR_VALUE, "%llu bytes are too many", (unsigned long long)bytes);
    if (bytes == 0) {
        *out = NULL;
        return TN_OK;
    }
    if (where.kind == TN_LOCATION_PAGEABLE)
        return pageable_alloc(bytes, out);
    if (where.kind == TN_LOCATION_PINNED)
        return tn__pinned_alloc(driver, bytes, out);
    return device_alloc(driver, where, bytes, out);
}

tn_status tn_memory_free(tn_driver *driver, tn_location at, void *pointer, uint64_t bytes) {
    tn_location where;
    tn_status status;

    if (pointer == NULL)
        return TN_OK;
    tn__assert_may_wait("memory_free");
    status = tn__location_in(at, &where);
    if (status != TN_OK)
        return status;
    if (where.kind == TN_LOCATION_PAGEABLE) {
        tn__host_free(pointer, bytes);
        return TN_OK;
    }
    if (driver == NULL)
        return tn__fail(TN_ERR_KIND, "memory of a driver is freed with that driver");
    if (where.kind == TN_LOCATION_PINNED)
        return tn__pinned_free(driver, pointer, bytes);
    status = driver->ops->device_free(driver->self, where.index, pointer, bytes);
    if (status != TN_OK)
        return tn__driver_report_gone_ok(driver, status, "free", where);
    return TN_OK;
}

tn_status tn__driver_copy(tn_driver *d, void *destination, tn_location destination_at,
                          const void *source, tn_location source_at, uint64_t bytes,
                          tn_stream stream) {
    tn_location device = destination_at.kind == TN_LOCATION_CUDA ? destination_at : source_at;
    tn_status status;

    tn__assert_may_wait("copy");
    if (bytes == 0)
        return TN_OK;
    if (device.kind != TN_LOCATION_CUDA) {
        memcpy(destination, source, (size_t)bytes);
        return TN_OK;
    }
    if (d == NULL)
        return tn__fail(TN_ERR_UNSUPPORTED, "copy: there is no driver");
    status = d->ops->copy(d->self, destination, destination_at, source, source_at, bytes, stream);
    if (status != TN_OK)
        return tn__driver_report(d, status, "copy", device);
    return TN_OK;
}

bool tn__driver_readings(tn_driver *d, uint32_t device, uint64_t *allocated, uint64_t *held) {
    tn_device_memory figures = {0, 0, 0, 0};

    tn__assert_may_wait("device_memory");
    if (d == NULL || device >= d->devices || d->ops->device_memory == NULL)
        return false;
    if (d->ops->device_memory(d->self, device, &figures) != TN_OK)
        return false;
    *allocated = figures.pool_used_bytes;
    *held = figures.pool_held_bytes;
    return true;
}
