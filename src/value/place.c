/* SPDX-License-Identifier: MIT */
/* Functional movement of a payload, outside any manager (M29..M31). */
#include "value/value_priv.h"

/* What a copy to CUDA needs; the stream is ours if none was given. */
typedef struct transfer {
    tn_driver *driver;
    tn_stream stream;
    bool own_stream;
    tn_event event;
} transfer;

static tn_status check_arguments(tn_driver *driver, tn_payload payload, tn_location *to,
                                 uint32_t flags, const tn_payload *out) {
    if (!out)
        return tn__fail(TN_ERR_KIND, "the output is NULL");
    if (!payload.data || !tn__type_valid(payload.type))
        return tn__fail(TN_ERR_KIND, "the payload is NULL or its type is no valid value type");
    tn_status status = tn__driver_check_location(driver, *to, to);
    if (status != TN_OK)
        return status;
    if (flags & ~(uint32_t)TN_PLACE_COPY)
        return tn__fail(TN_ERR_VALUE, "unknown flags 0x%x", flags);
    return TN_OK;
}

/* A stream that is given is checked even if nothing will be copied (M217). */
static tn_status check_stream(tn_driver *driver, tn_location to, tn_stream stream) {
    tn_stream_info info;
    if (!stream)
        return TN_OK;
    if (to.kind != TN_LOCATION_CUDA)
        return tn__fail(TN_ERR_VALUE, "a stream was given, but the destination is on the host");
    return tn__driver_check_stream(driver, stream, to.index, &info);
}

static bool already_there(const tn__measured *measured, tn_location to) {
    if (measured->neutral && to.kind != TN_LOCATION_CUDA)
        return true; /* G22 */
    return measured->at.kind != TN_LOCATION_NONE && tn__location_same(measured->at, to);
}

static tn_status transfer_init(transfer *t, tn_driver *driver, uint32_t device, tn_stream stream) {
    tn_stream_info info;
    *t = (transfer){driver, stream, false, NULL};
    if (!stream) {
        tn_status status = tn__stream_create(driver, device, &t->stream);
        if (status != TN_OK)
            return status;
        t->own_stream = true;
    }
    tn_status status = tn__driver_check_stream(driver, t->stream, device, &info);
    return status == TN_OK ? tn__event_create(driver, device, info.context, &t->event) : status;
}

/* Undo whatever transfer_init() made, also after it failed. `status` is the call's so far; its
 * error stays. */
static tn_status transfer_fini(transfer *t, tn_status status) {
    tn_error first = *tn__error_current();
    tn__cleanup cleanup = {TN_OK, 0};
    if (t->event)
        tn__cleanup_note(&cleanup, tn__event_destroy(t->driver, t->event));
    if (t->own_stream)
        tn__cleanup_note(&cleanup, tn__stream_destroy(t->driver, t->stream));
    if (status == TN_OK)
        cleanup.status = TN_OK; /* the copy is complete and the caller's: nothing to report */
    return tn__cleanup_finish(&cleanup, &first, status);
}

static tn_status copy_to(tn_driver *driver, tn_payload payload, tn_location to, tn_stream stream,
                         tn_payload *out) {
    transfer t;
    if (to.kind != TN_LOCATION_CUDA)
        return tn__value_copy(driver, payload, to, NULL, NULL, out);
    tn_status status = transfer_init(&t, driver, to.index, stream);
    if (status == TN_OK)
        status = tn__value_copy(driver, payload, to, t.stream, t.event, out);
    return transfer_fini(&t, status);
}

tn_status tn_payload_place(tn_driver *driver, tn_payload payload, tn_location to, tn_stream stream,
                           uint32_t flags, tn_payload *out) {
    tn__measured measured;
    tn_status status = check_arguments(driver, payload, &to, flags, out);
    if (status == TN_OK)
        status = check_stream(driver, to, stream);
    if (status == TN_OK)
        status = tn__measure(payload, &measured);
    if (status != TN_OK)
        return status;
    bool there = already_there(&measured, to);
    tn__measured_fini(&measured);
    if (!there || (flags & TN_PLACE_COPY))
        return copy_to(driver, payload, to, stream, out);
    *out = payload;
    return TN_OK;
}
