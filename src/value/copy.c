/* SPDX-License-Identifier: MIT */
/*
 * Independent copies through the type's callback (M29, M222), and destruction.
 *
 * To CUDA, copies are queued on one stream and waited for by one event. Whatever fails, the stream
 * is drained before anything that it may still write to is freed. If it cannot be synchronised, we
 * wait for the whole device instead; if that fails too the context is broken and runs nothing any
 * longer. A pageable source is queued like the others: it outlives the wait, and the driver stages
 * it, so M222's "asynchronously only if the source is CUDA or pinned" holds by what the driver
 * does.
 */
#include "value/value_priv.h"

struct tn_copier {
    tn_driver *driver;
    tn_location at;
    tn_stream stream;    /* NULL for host destinations: synchronous */
    bool drained;        /* synchronised after a failure, and nothing queued since */
    tn__cleanup cleanup; /* the first clean-up that failed */
};

static void drain(tn_copier *copier) {
    if (!copier->stream || copier->drained)
        return;
    tn_status status = tn__stream_synchronize(copier->driver, copier->stream);
    tn__cleanup_note(&copier->cleanup, status);
    if (status != TN_OK)
        status = tn__device_synchronize(copier->driver, copier->at.index);
    copier->drained = status == TN_OK;
}

tn_location tn_copier_location(const tn_copier *copier) {
    return copier ? copier->at : tn_location_none();
}

tn_driver *tn_copier_driver(const tn_copier *copier) { return copier ? copier->driver : NULL; }

tn_status tn_copier_alloc(tn_copier *copier, uint64_t bytes, void **out) {
    if (!copier || !out)
        return tn__fail(TN_ERR_KIND, "%s is NULL", copier ? "the output" : "the copier");
    return tn_memory_alloc(copier->driver, copier->at, bytes, out);
}

tn_status tn_copier_copy(tn_copier *copier, void *destination, const void *source,
                         tn_location source_at, uint64_t bytes) {
    if (!copier)
        return tn__fail(TN_ERR_KIND, "the copier is NULL");
    tn_status status = tn__location_in(source_at, &source_at);
    if (status != TN_OK || bytes == 0)
        return status;
    if (!destination || !source)
        return tn__fail(TN_ERR_KIND, "an end of the copy is NULL");
    copier->drained = false; /* also if this fails: it may be queued in part */
    return tn__driver_copy(copier->driver, destination, copier->at, source, source_at, bytes,
                           copier->stream);
}

void tn_copier_free(tn_copier *copier, void *pointer, uint64_t bytes) {
    if (!copier || !pointer)
        return;
    tn_error first = *tn__error_current(); /* V4: the failure that we clean up after */
    drain(copier);
    tn__cleanup_note(&copier->cleanup, tn_memory_free(copier->driver, copier->at, pointer, bytes));
    (void)tn__error_restore(&first);
}

static tn_status run_callback(tn_copier *copier, tn_payload payload, void **out) {
    tn__callback call;
    tn__callback_begin(&call);
    tn_status status = payload.type->copy(payload.data, copier, out);
    status = tn__callback_end(&call, status, TN_ERR_PAYLOAD, "copying", payload.type->name);
    if (status != TN_OK)
        *out = NULL; /* nothing was left behind */
    else if (!*out)
        status = tn__fail(TN_ERR_PAYLOAD, "copying of %.64s gave nothing", payload.type->name);
    return status;
}

/* Wait until the queued copies are complete. */
static tn_status complete(tn_copier *copier, tn_event event) {
    if (!copier->stream)
        return TN_OK;
    if (!event)
        return tn__stream_synchronize(copier->driver, copier->stream);
    tn_status status = tn__event_record(copier->driver, event, copier->stream);
    return status == TN_OK ? tn__event_synchronize(copier->driver, event) : status;
}

tn_status tn__value_copy(tn_driver *d, tn_payload payload, tn_location to, tn_stream stream,
                         tn_event event, tn_payload *out) {
    tn_copier copier = {
        .driver = d, .at = to, .stream = to.kind == TN_LOCATION_CUDA ? stream : NULL};
    tn_payload copy = {payload.type, NULL};
    if (!payload.data || !tn__type_valid(payload.type))
        return tn__fail(TN_ERR_KIND, "the payload is NULL or its type is no valid value type");
    tn_status status = run_callback(&copier, payload, &copy.data);
    if (status == TN_OK)
        status = complete(&copier, event);
    if (status != TN_OK) {
        tn_error first = *tn__error_current();
        drain(&copier);
        tn__cleanup_destroy(&copier.cleanup, copy);
        return tn__cleanup_finish(&copier.cleanup, &first, status);
    }
    *out = copy;
    return TN_OK;
}

/* It cannot fail, so the thread's error stays what it was. */
void tn_payload_destroy(tn_payload payload) {
    if (!payload.data || !tn__type_valid(payload.type))
        return;
    tn_error before = *tn__error_current();
    tn__assert_may_wait("destroying a payload");
    payload.type->destroy(payload.data);
    (void)tn__error_restore(&before);
}
