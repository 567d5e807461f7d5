/* SPDX-License-Identifier: MIT */
/* Driver objects: a checked table, its devices, and what may be asked about locations and streams.
 */
#include "driver/driver_priv.h"

#include "base/atomic.h"
#include "base/lockrank.h"

/* Why the last attempt to open CUDA failed: static texts only.
 * Written by tn_driver_open_cuda(), read by tn_driver_why(). [no-order] a static text needs no
 * publication. */
static const char *_Atomic cuda_why = "";

static bool ops_complete(const tn_driver_ops *o) {
    bool memory = o->device_alloc && o->device_free && o->pinned_alloc && o->pinned_free;
    bool streams = o->stream_create && o->stream_destroy && o->stream_info &&
                   o->stream_synchronize && o->stream_wait;
    bool events = o->event_create && o->event_destroy && o->event_record && o->event_query &&
                  o->event_synchronize;

    return o->name && o->device_count && memory && streams && events && o->copy &&
           o->device_synchronize;
}

static tn_status ops_check(const tn_driver_ops *ops) {
    if (ops == NULL)
        return tn__fail(TN_ERR_KIND, "the driver table is NULL");
    if (ops->size < sizeof(ops->size) + sizeof(ops->abi))
        return tn__fail(TN_ERR_KIND, "the driver table has size %u", (unsigned)ops->size);
    if (ops->abi != TN_DRIVER_ABI)
        return tn__fail(TN_ERR_UNSUPPORTED, "the driver table has abi %u, not %u",
                        (unsigned)ops->abi, TN_DRIVER_ABI);
    if (ops->size != sizeof(*ops))
        return tn__fail(TN_ERR_KIND, "the driver table has size %u, not %zu", (unsigned)ops->size,
                        sizeof(*ops));
    if (!ops_complete(ops))
        return tn__fail(TN_ERR_KIND, "a required entry of the driver table is NULL");
    return TN_OK;
}

tn_status tn_driver_create(const tn_driver_ops *ops, void *self, tn_driver **out) {
    tn_status status = ops_check(ops);
    tn_driver *d;

    if (status != TN_OK)
        return status;
    if (out == NULL)
        return tn__fail(TN_ERR_KIND, "`out` is NULL");
    tn__assert_may_wait("device_count");
    d = tn__zalloc(sizeof(*d));
    if (d == NULL)
        return tn__no_memory();
    d->ops = ops;
    d->self = self;
    if (ops->device_count(self, &d->devices) != TN_OK)
        d->devices = 0;
    if (d->devices > TN_CUDA_INDEX_MAX + 1)
        d->devices = TN_CUDA_INDEX_MAX + 1;
    tn__pinned_init(&d->pinned);
    *out = d;
    return TN_OK;
}

/* What cannot be given back is the driver's loss; what is still used stays. */
void tn_driver_destroy(tn_driver *driver) {
    if (driver == NULL)
        return;
    (void)tn_driver_trim_pinned(driver, NULL);
    if (driver->fini != NULL)
        driver->fini(driver->self);
    tn__driver_discard(driver);
}

void tn__driver_discard(tn_driver *driver) {
    if (driver == NULL)
        return;
    tn__pinned_fini(&driver->pinned);
    tn__free(driver);
}

const char *tn_driver_name(const tn_driver *driver) { return driver ? driver->ops->name : "none"; }

const tn_driver_ops *tn_driver_table(const tn_driver *driver) {
    return driver ? driver->ops : NULL;
}

void *tn_driver_self(const tn_driver *driver) { return driver ? driver->self : NULL; }

#ifdef TN_HAVE_CUDA
static tn_status open_cuda(const char *library, tn_driver **out, const char **why) {
    tn__cuda *cuda = NULL;
    tn_status status = tn__cuda_open(library, &cuda, why);

    if (status != TN_OK)
        return status;
    status = tn_driver_create(tn__cuda_table(cuda), cuda, out);
    if (status != TN_OK) {
        *why = "there is no memory for the CUDA driver";
        tn__cuda_close(cuda);
        return status;
    }
    (*out)->fini = tn__cuda_close;
    return TN_OK;
}
#else
static tn_status open_cuda(const char *library, tn_driver **out, const char **why) {
    (void)library;
    (void)out;
    *why = "this build of Tenure has no CUDA backend";
    return tn__fail(TN_ERR_UNSUPPORTED, "%s", *why);
}
#endif

tn_status tn__driver_open_cuda(const char *library, tn_driver **out) {
    const char *why = "";
    tn_status status;

    if (out == NULL)
        return tn__fail(TN_ERR_KIND, "`out` is NULL");
    tn__assert_may_wait("open_cuda");
    status = open_cuda(library, out, &why);
    tn__store_rlx(&cuda_why, why);
    return status;
}

tn_status tn_driver_open_cuda(tn_driver **out) { return tn__driver_open_cuda("libcuda.so.1", out); }

const char *tn_driver_why(void) { return tn__load_rlx(&cuda_why); }

/* ---- Statuses of a table -----------------------------------------------------------------------
 */

static tn_status status_of_table(tn_status status) {
    switch (status) {
    case TN_ERR_HOST_MEMORY:
    case TN_ERR_DEVICE_MEMORY:
    case TN_ERR_DEVICE_LOST:
    case TN_ERR_UNSUPPORTED:
        return status;
    default: /* TN_ERR_CLOSED too: D2 */
        return TN_ERR_DRIVER;
    }
}

tn_status tn__driver_report(tn_driver *d, tn_status status, const char *what, tn_location at) {
    int64_t code = d->ops->last_code ? d->ops->last_code(d->self) : 0;
    char place[TN_LOCATION_NAME_MAX];
    tn_error *e;

    if (status == TN_ERR_CLOSED)
        tn__pinned_gone(&d->pinned);
    e = tn__error(status_of_table(status), "driver %s: %s at %s: %s (native code %lld)",
                  d->ops->name, what, tn__location_text(at, place), tn_status_text(status),
                  (long long)code);
    e->native_code = code;
    e->at = at;
    return (tn_status)e->status;
}

tn_status tn__driver_report_gone_ok(tn_driver *d, tn_status status, const char *what,
                                    tn_location at) {
    if (status != TN_ERR_CLOSED)
        return tn__driver_report(d, status, what, at);
    tn__pinned_gone(&d->pinned);
    return TN_OK;
}

/* ---- Locations and streams ---------------------------------------------------------------------
 */

uint32_t tn__driver_devices(const tn_driver *d) { return d ? d->devices : 0; }

tn_status tn__driver_check_location(const tn_driver *d, tn_location at, tn_location *out) {
    tn_location given;
    tn_status status = tn__location_in(at, &given);

    if (status != TN_OK)
        return status;
    if (given.kind == TN_LOCATION_CUDA && given.index >= tn__driver_devices(d)) {
        tn__error(TN_ERR_VALUE, "there is no cuda:%u here: driver %s has %u devices",
                  (unsigned)given.index, tn_driver_name(d), (unsigned)tn__driver_devices(d))
            ->at = given;
        return TN_ERR_VALUE;
    }
    *out = given;
    return TN_OK;
}

static tn_status stream_value(tn_location at, const char *what) {
    tn__error(TN_ERR_VALUE, "the stream for cuda:%u %s", (unsigned)at.index, what)->at = at;
    return TN_ERR_VALUE;
}

tn_status tn__driver_check_stream(tn_driver *d, tn_stream stream, uint32_t device,
                                  tn_stream_info *out) {
    tn_location at = tn_location_cuda(device);
    tn_stream_info info = {0, 0, 0};
    tn_status status;

    tn__assert_may_wait("stream_info");
    if (stream == TN_STREAM_PER_THREAD)
        return stream_value(at, "means another stream on each thread");
    if (d == NULL || stream == NULL)
        return tn__fail(TN_ERR_KIND, "not a stream");
    status = d->ops->stream_info(d->self, stream, &info);
    if (status == TN_ERR_KIND)
        return tn__fail(TN_ERR_KIND, "not a stream of driver %s", d->ops->name);
    if (status != TN_OK)
        return tn__driver_report(d, status, "stream_info", at);
    if (info.capturing)
        return stream_value(at, "is being captured");
    if (info.device != device)
        return stream_value(at, "belongs to another device");
    *out = info;
    return TN_OK;
}
