/* SPDX-License-Identifier: MIT */
/*
 * The wrappers of a table's streams and events (D1, D2): begin(), the table's entry, and end() or
 * end_gone_ok().
 */
#include "driver/driver_priv.h"

#include "base/lockrank.h"

static tn_status begin(const tn_driver *d, const char *what) {
    tn__assert_may_wait(what);
    return d ? TN_OK : tn__fail(TN_ERR_UNSUPPORTED, "%s: there is no driver", what);
}

static tn_status end(tn_driver *d, tn_status status, const char *what, tn_location at) {
    return status == TN_OK ? TN_OK : tn__driver_report(d, status, what, at);
}

/* Where "already gone" is success (D2). */
static tn_status end_gone_ok(tn_driver *d, tn_status status, const char *what, tn_location at) {
    return status == TN_OK ? TN_OK : tn__driver_report_gone_ok(d, status, what, at);
}

tn_status tn__stream_create(tn_driver *d, uint32_t device, tn_stream *out) {
    static const char what[] = "stream_create";
    tn_stream stream = NULL;
    tn_status status = begin(d, what);
    if (status == TN_OK)
        status =
            end(d, d->ops->stream_create(d->self, device, &stream), what, tn_location_cuda(device));
    if (status == TN_OK)
        *out = stream;
    return status;
}

tn_status tn__stream_destroy(tn_driver *d, tn_stream stream) {
    static const char what[] = "stream_destroy";
    tn__assert_may_wait(what);
    if (!d || !stream)
        return TN_OK;
    return end_gone_ok(d, d->ops->stream_destroy(d->self, stream), what, tn_location_none());
}

tn_status tn__stream_synchronize(tn_driver *d, tn_stream stream) {
    static const char what[] = "stream_synchronize";
    tn_status status = begin(d, what);
    if (status != TN_OK)
        return status;
    return end_gone_ok(d, d->ops->stream_synchronize(d->self, stream), what, tn_location_none());
}

tn_status tn__event_create(tn_driver *d, uint32_t device, uint64_t context, tn_event *out) {
    static const char what[] = "event_create";
    tn_event event = NULL;
    tn_status status = begin(d, what);
    if (status == TN_OK)
        status = end(d, d->ops->event_create(d->self, device, context, &event), what,
                     tn_location_cuda(device));
    if (status == TN_OK)
        *out = event;
    return status;
}

tn_status tn__event_destroy(tn_driver *d, tn_event event) {
    static const char what[] = "event_destroy";
    tn__assert_may_wait(what);
    if (!d || !event)
        return TN_OK;
    return end_gone_ok(d, d->ops->event_destroy(d->self, event), what, tn_location_none());
}

tn_status tn__event_record(tn_driver *d, tn_event event, tn_stream stream) {
    static const char what[] = "event_record";
    tn_status status = begin(d, what);
    if (status != TN_OK)
        return status;
    return end(d, d->ops->event_record(d->self, event, stream), what, tn_location_none());
}

tn_status tn__event_query(tn_driver *d, tn_event event, bool *out_done) {
    static const char what[] = "event_query";
    uint32_t done = 0;
    tn_status status = begin(d, what);
    if (status != TN_OK)
        return status;
    status = d->ops->event_query(d->self, event, &done);
    if (status != TN_OK) {
        done = status == TN_ERR_CLOSED; /* D2 */
        status = tn__driver_report_gone_ok(d, status, what, tn_location_none());
    }
    if (status == TN_OK)
        *out_done = done != 0;
    return status;
}

tn_status tn__event_synchronize(tn_driver *d, tn_event event) {
    static const char what[] = "event_synchronize";
    tn_status status = begin(d, what);
    if (status != TN_OK)
        return status;
    return end_gone_ok(d, d->ops->event_synchronize(d->self, event), what, tn_location_none());
}

tn_status tn__device_synchronize(tn_driver *d, uint32_t device) {
    static const char what[] = "device_synchronize";
    tn_status status = begin(d, what);
    if (status != TN_OK)
        return status;
    return end_gone_ok(d, d->ops->device_synchronize(d->self, device), what,
                       tn_location_cuda(device));
}
