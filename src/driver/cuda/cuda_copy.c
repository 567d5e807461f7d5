/* SPDX-License-Identifier: MIT */
/*
 * Copies. A synchronous one is queued on a stream of its own and waited for: the driver's
 * synchronous calls would wait for all blocking streams of the context, too. Between devices the
 * contexts are named, because memory of a pool is not mapped on another device.
 */
#include "driver/cuda/cuda_priv.h"

#include <string.h>

typedef struct ends {
    void *destination;
    const void *source;
    tn__cuda_device *to;   /* NULL: the host */
    tn__cuda_device *from; /* NULL: the host */
    size_t bytes;
} ends;

static CUresult queue(tn__cuda *c, const ends *e, CUstream stream) {
    const tn__cuda_api *api = &c->api;
    CUdeviceptr to = (CUdeviceptr)(uintptr_t)e->destination;
    CUdeviceptr from = (CUdeviceptr)(uintptr_t)e->source;

    if (e->to != NULL && e->from != NULL && e->to != e->from)
        return api->cuMemcpyPeerAsync(to, e->to->context, from, e->from->context, e->bytes, stream);
    if (e->to != NULL && e->from != NULL)
        return api->cuMemcpyDtoDAsync_v2(to, from, e->bytes, stream);
    if (e->to != NULL)
        return api->cuMemcpyHtoDAsync_v2(to, e->source, e->bytes, stream);
    if (e->from != NULL)
        return api->cuMemcpyDtoHAsync_v2(e->destination, from, e->bytes, stream);
    return api->cuMemcpyAsync(to, from, e->bytes, stream);
}

/* A stream that nobody uses; entered. */
static CUresult idle_take(tn__cuda *c, tn__cuda_device *d, CUstream *out) {
    *out = NULL;
    tn__lock(&d->idle_lock);
    if (d->idle_count > 0)
        *out = d->idle[--d->idle_count];
    tn__unlock(&d->idle_lock);
    return *out != NULL ? CUDA_SUCCESS : c->api.cuStreamCreate(out, CU_STREAM_NON_BLOCKING);
}

static void idle_give(tn__cuda *c, tn__cuda_device *d, CUstream stream) {
    bool kept = false;

    tn__lock(&d->idle_lock);
    if (d->idle_count < TN__CUDA_IDLE_MAX) {
        d->idle[d->idle_count++] = stream;
        kept = true;
    }
    tn__unlock(&d->idle_lock);
    if (!kept)
        (void)c->api.cuStreamDestroy_v2(stream);
}

static CUresult copy_now(tn__cuda *c, const ends *e, tn__cuda_device *d) {
    CUstream stream;
    CUresult code = idle_take(c, d, &stream);

    if (code != CUDA_SUCCESS)
        return code;
    code = queue(c, e, stream);
    if (code == CUDA_SUCCESS)
        code = c->api.cuStreamSynchronize(stream);
    idle_give(c, d, stream);
    return code;
}

static CUresult copy_queued(tn__cuda *c, const ends *e, tn_stream stream) {
    CUresult code = tn__cuda_not_capturing(c, stream);

    return code == CUDA_SUCCESS ? queue(c, e, stream) : code;
}

/* One end at a location: its device, opened, or NULL. */
static tn_status end_of(tn__cuda *c, tn_location at, tn__cuda_device **out) {
    *out = NULL;
    if (at.kind == TN_LOCATION_CUDA)
        return tn__cuda_device_at(c, at.index, out);
    if (at.kind == TN_LOCATION_PAGEABLE || at.kind == TN_LOCATION_PINNED)
        return TN_OK;
    return tn__cuda_result(c, CUDA_ERROR_INVALID_VALUE);
}

/* Under which context: a device of the copy will do for any stream but the legacy one, which is of
 * the current context. */
static tn_status context_for(tn__cuda *c, const ends *e, tn_stream stream, CUcontext *out) {
    const tn__cuda_device *d = e->to != NULL ? e->to : e->from;

    if (d == NULL || stream == TN_STREAM_LEGACY)
        return tn__cuda_stream_context(c, stream, out);
    if (stream == TN_STREAM_PER_THREAD)
        return tn__cuda_result(c, CUDA_ERROR_INVALID_HANDLE);
    *out = d->context;
    return TN_OK;
}

tn_status tn__cuda_copy(void *self, void *destination, tn_location destination_at,
                        const void *source, tn_location source_at, uint64_t bytes,
                        tn_stream stream) {
    tn__cuda *c = self;
    ends e = {destination, source, NULL, NULL, (size_t)bytes};
    tn_status status = end_of(c, destination_at, &e.to);
    CUcontext context = NULL;
    tn__cuda_scope scope;
    CUresult code;

    if (status == TN_OK)
        status = end_of(c, source_at, &e.from);
    if (status != TN_OK || bytes == 0)
        return status;
    if (e.to == NULL && e.from == NULL && stream == NULL) {
        memcpy(destination, source, (size_t)bytes);
        return TN_OK;
    }
    status = context_for(c, &e, stream, &context);
    if (status != TN_OK)
        return status;
    code = tn__cuda_enter(c, context, &scope);
    if (code == CUDA_SUCCESS) {
        code = stream == NULL ? copy_now(c, &e, e.to != NULL ? e.to : e.from)
                              : copy_queued(c, &e, stream);
        tn__cuda_leave(&scope);
    }
    return tn__cuda_result(c, code);
}
