/* SPDX-License-Identifier: MIT */
/* The wrappers of a table's streams and events (D1, D2). */
#include "driver/driver_priv.h"

#include "base/lockrank.h"

static tn_status no_driver(const char *what) {
    return tn__fail(TN_ERR_UNSUPPORTED, "%s: there is no driver", what);
}

tn_status tn__stream_create(tn_driver *d, uint32_t device, tn_stream *out) {
    tn_stream stream = NULL;
    tn_status status;

    tn__assert_may_wait("stream_create");
    if (d == NULL)
        return no_driver("stream_create");
    status = d->ops->stream_create(d->self, device, &stream);
    if (status != TN_OK)
        return tn__driver_report(d, status, "stream_create", tn_location_cuda(device));
    *out = stream;
    return TN_OK;
}

tn_status tn__stream_destroy(tn_driver *d, tn_stream stream) {
    tn_status status;

    tn__assert_may_wait("stream_destroy");
    if (d == NULL || stream == NULL)
        return TN_OK;
    status = d->ops->stream_destroy(d->self, stream);
    if (status != TN_OK)
        return tn__driver_report_gone_ok(d, status, "stream_destroy", tn_location_none());
    return TN_OK;
}

tn_status tn__stream_synchronize(tn_driver *d, tn_stream stream) {
    tn_status status;

    tn__assert_may_wait("stream_synchronize");
    if (d == NULL)
        return no_driver("stream_synchronize");
    status = d->ops->stream_synchronize(d->self, stream);
    if (status != TN_OK)
        return tn__driver_report_gone_ok(d, status, "stream_synchronize", tn_location_none());
    return TN_OK;
}

tn_status tn__event_create(tn_driver *d, uint32_t device, uint64_t context, tn_event *out) {
    tn_event event = NULL;
    tn_status status;

    tn__assert_may_wait("event_create");
    if (d == NULL)
        return no_driver("event_create");
    status = d->ops->event_create(d->self, device, context, &event);
    if (status != TN_OK)
        return tn__driver_report(d, status, "event_create", tn_location_cuda(device));
    *out = event;
    return TN_OK;
}

tn_status tn__event_destroy(tn_driver *d, tn_event event) {
    tn_status status;

    tn__assert_may_wait("event_destroy");
    if (d == NULL || event == NULL)
        return TN_OK;
    status = d->ops->event_destroy(d->self, event);
    if (status != TN_OK)
        return tn__driver_report_gone_ok(d, status, "event_destroy", tn_location_none());
    return TN_OK;
}

tn_status tn__event_record(tn_driver *d, tn_event event, tn_stream stream) {
    tn_status status;

    tn__assert_may_wait("event_record");
    if (d == NULL)
        return no_driver("event_record");
    status = d->ops->event_record(d->self, event, stream);
    if (status != TN_OK)
        return tn__driver_report(d, status, "event_record", tn_location_none());
    return TN_OK;
}

tn_status tn__event_query(tn_driver *d, tn_event event, bool *out_done) {
    uint32_t done = 0;
    tn_status status;

    tn__assert_may_wait("event_query");
    if (d == NULL)
        return no_driver("event_query");
    status = d->ops->event_query(d->self, event, &done);
    if (status != TN_OK) {
        done = status == TN_ERR_CLOSED; /* D2 */
        status = tn__driver_report_gone_ok(d, status, "event_query", tn_location_none());
    }
    if (status == TN_OK)
        *out_done = done != 0;
    return status;
}

tn_status tn__event_synchronize(tn_driver *d, tn_event event) {
    tn_status status;

    tn__assert_may_wait("event_synchronize");
    if (d == NULL)
        return no_driver("event_synchronize");
    status = d->ops->event_synchronize(d->self, event);
    if (status != TN_OK)
        return tn__driver_report_gone_ok(d, status, "event_synchronize", tn_location_none());
    return TN_OK;
}

tn_status tn__device_synchronize(tn_driver *d, uint32_t device) {
    tn_status status;

    tn__assert_may_wait("device_synchronize");
    if (d == NULL)
        return no_driver("device_synchronize");
    status = d->ops->device_synchronize(d->self, device);
    if (status != TN_OK)
        return tn__driver_report_gone_ok(d, status, "device_synchronize", tn_location_cuda(device));
    return TN_OK;
}
