/* SPDX-License-Identifier: MIT */
/* One load from a file: source_file.c reads, source_upload.c brings what was read to a device. */
#ifndef TENURE_VALUE_SOURCE_FILE_H
#define TENURE_VALUE_SOURCE_FILE_H

#include <xxhash.h>

#include "value/value_priv.h"

typedef struct tn__file_load {
    const tn__source *source;
    const tn_load_request *request;
    const tn__route *route; /* NULL: to request->at, which is on the host */
    int descriptor;
    uint64_t done;      /* bytes read */
    XXH3_state_t *hash; /* NULL: no checksum */
} tn__file_load;

/* A place in a list of extents. */
typedef struct tn__cursor {
    const tn_segment *extents;
    size_t count;
    size_t index;
    uint64_t inside; /* bytes of extents[index] that are behind us */
} tn__cursor;

/* At most `limit` bytes that stand together at the cursor, which moves behind them. False: the end.
 */
bool tn__cursor_next(tn__cursor *at, uint64_t limit, tn_segment *out);

/* Read on until these extents of host memory, `bytes` in all, are full. */
TN_NODISCARD tn_status tn__file_fill(tn__file_load *l, const tn_segment *extents, size_t count,
                                     uint64_t bytes);

/* Read all of it into these extents of device memory, through the route's ring. On return nothing
 * is queued any longer that reads the ring or writes there, also after a failure. */
TN_NODISCARD tn_status tn__file_upload(tn__file_load *l, const tn_segment *extents, size_t count);

#endif
