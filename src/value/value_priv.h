/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of this folder (and its tests) only.
 *
 * V3: a callback's failure has a detail of its own: the error record is marked before the callback
 * runs, so an older error of the thread is never taken for the callback's. V4: a clean-up never
 * replaces the error that caused it (M222).
 */
#ifndef TENURE_VALUE_PRIV_H
#define TENURE_VALUE_PRIV_H

#include <sys/stat.h>
#include <sys/uio.h>

#include "base/lockrank.h"
#include "base/thread.h"
#include "value/value_internal.h"

/* The part of a struct that its first version had. */
#define TN__SIZE_THROUGH(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

/* ---- Around a callback (V3) ------------------------------------------------------------- */

typedef struct tn__callback {
    tn_error *error; /* this thread's; NULL if it has none */
    uint32_t before; /* its status before the callback */
} tn__callback;

/* Also asserts that the thread may call out: no lock of rank STATE or above is held. */
void tn__callback_begin(tn__callback *call);
/* Whether the callback, so far, left an error in the thread's record. */
bool tn__callback_has_error(const tn__callback *call);
/* The status to report. A detail that the callback's own calls left is kept if it is of that
 * status, else one is made. `returned` out of range becomes `fallback`, with the number as native
 * code. */
tn_status tn__callback_end(const tn__callback *call, tn_status returned, tn_status fallback,
                           const char *what, const char *name);

/* ---- Clean-ups (V4) --------------------------------------------------------------------- */

/* The first failure of a clean-up. */
typedef struct tn__cleanup {
    tn_status status;
    int64_t native_code;
} tn__cleanup;

/* Keep a failing status, if it is the first; its detail is the thread's current error. */
void tn__cleanup_note(tn__cleanup *cleanup, tn_status status);
/* Make `first` the thread's error again, with the clean-up's failure attached. Returns `status`. */
tn_status tn__cleanup_finish(const tn__cleanup *cleanup, const tn_error *first, tn_status status);
/* Destroy through the type; a failure of the free is noted. The thread's error is undefined
 * afterwards. */
void tn__cleanup_destroy(tn__cleanup *cleanup, tn_payload payload);

/* ---- Buffers ---------------------------------------------------------------------------- */

/* The buffer's separate allocations in order of their bytes: one, or one for each segment. */
const tn_segment *tn__buffer_extents(const tn_buffer *buffer, size_t *out_count);

/* ---- Sources ---------------------------------------------------------------------------- */

struct tn__source {
    uint32_t kind;
    uint32_t flags;
    union {
        struct {
            tn_status (*load)(void *context, const tn_load_request *request,
                              tn_load_result *result);
            void (*forget)(void *context);
            void *context;
        } callback;
        struct {
            uint64_t offset;
            uint64_t bytes;
            uint64_t checksum;
            size_t segment_count; /* at least 1 */
        } file;
    };
    uint64_t tail[]; /* file: the segments' sizes, then the path */
};

static inline const char *tn__source_path(const tn__source *source) {
    return (const char *)(source->tail + source->file.segment_count);
}

TN_NODISCARD tn_status tn__source_file_load(const tn__source *source,
                                            const tn_load_request *request, const tn__route *route,
                                            tn_payload *out);

/* The file system as sources see it. Failing calls give -1 with errno. */
typedef struct tn__file_layer {
    int (*open)(const char *path);
    int (*stat)(int descriptor, struct stat *out);
    ssize_t (*read)(int descriptor, const struct iovec *pieces, int count, off_t offset);
    int (*close)(int descriptor);
} tn__file_layer;

extern const tn__file_layer tn__file_system; /* the real one */
/* The one in use; tests put another one here while no other thread loads. Never NULL. */
extern const tn__file_layer *tn__files;

#endif
