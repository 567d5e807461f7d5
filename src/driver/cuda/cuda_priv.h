/* SPDX-License-Identifier: MIT */
/*
 * The CUDA backend, inside: CUDA types stop here.
 *
 *  - U1: every call that needs a context pushes it and pops it again (tn__cuda_enter(),
 *    tn__cuda_leave()), so the caller's context, or none, is as before. Nothing else makes a
 *    context current.
 *  - U2: a device is opened at its first use: its primary context is retained until the driver is
 *    destroyed. A device that nobody uses gets no context.
 *  - U3: device memory is usable by every stream on return, and is freed only when nobody uses it.
 *    All allocations and frees of a device go through one stream that carries nothing else, so
 *    that a freed block can be handed out again without waiting.
 *  - U4: "gone" (TN_ERR_CLOSED, D7) is said of the context that was asked for, never of another
 *    one that was merely current.
 *  - U5: a call that would be captured, or would end a capture, is refused.
 *
 * Every function may be called from any thread.
 */
#ifndef TENURE_CUDA_PRIV_H
#define TENURE_CUDA_PRIV_H

#include "base/atomic.h"
#include "base/lockrank.h"
#include "driver/cuda/cuda_api.h"
#include "driver/driver_priv.h"

#define TN__CUDA_IDLE_MAX 8

/* One device. Guarded by `lock` of the driver until `open` is seen, immutable from then on, except
 * what is said to be atomic or guarded. */
typedef struct tn__cuda_device {
    CUdevice handle;
    /* Written once under the driver's lock, release; read by all, acquire: [cuda-device]. */
    _Atomic uint32_t open;
    CUcontext context;
    CUmemoryPool pool;        /* NULL: memory comes from cuMemAlloc */
    CUstream memory;          /* U3; NULL without a pool */
    uint64_t idle_pool_bytes; /* the pool may hold this much beyond what is used */
    /* Allocated and not freed; all threads, relaxed: a figure, and a hint for trimming. */
    _Atomic uint64_t used_bytes;
    tn__mutex idle_lock;
    CUstream idle[TN__CUDA_IDLE_MAX]; /* streams for synchronous copies; under idle_lock */
    uint32_t idle_count;              /* under idle_lock */
} tn__cuda_device;

struct tn__cuda {
    /* Immutable. */
    tn__cuda_api api;
    tn_driver_ops ops;
    uint32_t serial; /* tells the drivers of the process apart; never 0 */
    bool pools;      /* the whole group of symbols is there */
    uint32_t count;

    tn__mutex lock; /* opening of a device */
    /* Index + 1 of the device that was opened first, 0: none. Written once under `lock`, relaxed:
     * who reads it looks at the device's `open` next. Pinned memory belongs to its context. */
    _Atomic uint32_t home;
    tn__cuda_device devices[];
};

/* An event knows its context (U4). `tn_event` is a pointer to it. */
typedef struct tn__cuda_event {
    CUevent event;
    CUcontext context;
} tn__cuda_event;

/* cuda_load.c. */

/* Load a library by name. On failure nothing stays loaded; *why is a static text, also the
 * beginning of the error's message. */
TN_NODISCARD tn_status tn__cuda_load(const char *library, tn__cuda_api *out, const char **why);
/* cuInit, as a status with its text. */
TN_NODISCARD tn_status tn__cuda_init(const tn__cuda_api *api, const char **why);

/* cuda_status.c. */

/* What a code means to a table; it becomes this thread's last code. `exhausted` is what
 * CUDA_ERROR_OUT_OF_MEMORY means here. */
tn_status tn__cuda_status(tn__cuda *c, CUresult code, tn_status exhausted);
/* The same with TN_ERR_DEVICE_MEMORY. */
tn_status tn__cuda_result(tn__cuda *c, CUresult code);
int64_t tn__cuda_last_code(void *self);

/* cuda_context.c. */

typedef struct tn__cuda_scope {
    tn__cuda *cuda;
    CUstreamCaptureMode mode; /* the caller's */
    bool pushed;
    bool exchanged;
} tn__cuda_scope;

/* Begin to call under a context (NULL: the caller's own). On failure there is nothing to leave. */
TN_NODISCARD CUresult tn__cuda_enter(tn__cuda *c, CUcontext context, tn__cuda_scope *scope);
void tn__cuda_leave(tn__cuda_scope *scope);
/* A device, opened (U2). */
TN_NODISCARD tn_status tn__cuda_device_at(tn__cuda *c, uint32_t index, tn__cuda_device **out);
/* A device that is open; opens one if there is none. */
TN_NODISCARD tn_status tn__cuda_home(tn__cuda *c, tn__cuda_device **out);
/* Both: a device, or any, and its context entered. */
TN_NODISCARD tn_status tn__cuda_enter_device(tn__cuda *c, uint32_t index, tn__cuda_device **out,
                                             tn__cuda_scope *scope);
TN_NODISCARD tn_status tn__cuda_enter_home(tn__cuda *c, tn__cuda_scope *scope);
/* Release what a device holds. */
void tn__cuda_device_close(tn__cuda *c, tn__cuda_device *d);

/* cuda_streams.c. */

/* The context that a stream belongs to. */
TN_NODISCARD tn_status tn__cuda_stream_context(tn__cuda *c, tn_stream stream, CUcontext *out);
/* U5, entered: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED if the stream is being captured. */
TN_NODISCARD CUresult tn__cuda_not_capturing(tn__cuda *c, tn_stream stream);
tn_status tn__cuda_stream_create(void *self, uint32_t device, tn_stream *out);
tn_status tn__cuda_stream_destroy(void *self, tn_stream stream);
tn_status tn__cuda_stream_info(void *self, tn_stream stream, tn_stream_info *out);
tn_status tn__cuda_stream_synchronize(void *self, tn_stream stream);
tn_status tn__cuda_stream_wait(void *self, tn_stream stream, tn_event event);
tn_status tn__cuda_device_synchronize(void *self, uint32_t device);
tn_status tn__cuda_host_function(void *self, tn_stream stream, void (*function)(void *context),
                                 void *context);

/* cuda_events.c. */

tn_status tn__cuda_event_create(void *self, uint32_t device, uint64_t context, tn_event *out);
tn_status tn__cuda_event_destroy(void *self, tn_event event);
tn_status tn__cuda_event_record(void *self, tn_event event, tn_stream stream);
tn_status tn__cuda_event_query(void *self, tn_event event, uint32_t *out_done);
tn_status tn__cuda_event_synchronize(void *self, tn_event event);

/* cuda_memory.c. */

tn_status tn__cuda_device_alloc(void *self, uint32_t device, uint64_t bytes, void **out);
tn_status tn__cuda_device_free(void *self, uint32_t device, void *pointer, uint64_t bytes);
tn_status tn__cuda_pinned_alloc(void *self, size_t bytes, void **out);
tn_status tn__cuda_pinned_free(void *self, void *pointer, size_t bytes);
tn_status tn__cuda_device_memory(void *self, uint32_t device, tn_device_memory *out);
tn_status tn__cuda_pointer_location(void *self, const void *pointer, tn_location *out);

/* cuda_copy.c. */

tn_status tn__cuda_copy(void *self, void *destination, tn_location destination_at,
                        const void *source, tn_location source_at, uint64_t bytes,
                        tn_stream stream);

#endif
