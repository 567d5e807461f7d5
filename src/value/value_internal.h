/* SPDX-License-Identifier: MIT */
/*
 * value: payloads through their types. Knows nothing of managers. Called from any thread, without
 * locks.
 *
 * V1: a payload is destroyed exactly once, by whoever owns it; the functions here say who owns it
 * afterwards. V2: tn__measured.storages are the distinct non-empty backing allocations, sorted by
 * base.
 */
#ifndef TENURE_VALUE_INTERNAL_H
#define TENURE_VALUE_INTERNAL_H

#include <tenure/value.h>

#include "base/base_internal.h"
#include "driver/driver_internal.h"

#define TN__MEASURED_INLINE 8

/* Measures of one payload (M25..M28). */
typedef struct tn__measured {
    uint64_t logical_bytes;
    uint64_t storage_bytes; /* distinct backing allocations */
    /* kind none: a CPU payload that mixes pinned and pageable fields. A payload with only empty
     * fields is pageable (G22) ... */
    tn_location at;
    bool neutral; /* ... but agrees with both host locations if this is set */
    size_t storage_count;
    tn_storage *storages; /* `few`, or from tn__alloc() */
    tn_storage few[TN__MEASURED_INLINE];
} tn__measured;

/* A valid value type (M5, M34): not NULL, size, name, callbacks, chain of supers at most
 * TN_TYPE_DEPTH_MAX. */
bool tn__type_valid(const tn_value_type *type);

/* Measure. TN_ERR_KIND (type invalid, data NULL), TN_ERR_PAYLOAD (M27), TN_ERR_HOST_MEMORY, the
 * callback's own. */
TN_NODISCARD tn_status tn__measure(tn_payload payload, tn__measured *out);
void tn__measured_fini(tn__measured *measured);

/* M58: payload and location agree, else TN_ERR_MATERIALIZATION. */
TN_NODISCARD tn_status tn__check_agreement(const tn__measured *measured, tn_location at);

/* M36, M75, M95 in this order: type, agreement with `at`, exact logical bytes, ceiling;
 * TN_ERR_MATERIALIZATION (expected and actual bytes in the detail where numeric). */
TN_NODISCARD tn_status tn__check_fit(const tn_value_spec *spec, const tn_value_type *type,
                                     const tn__measured *measured, tn_location at);

/*
 * Independent copy at `to`, complete on return (M87, M222). To CUDA: queued on `stream`, `event`
 * recorded behind it and waited for; on any failure the stream is synchronised before the error
 * is reported, a failure of that clean-up is attached (cleanup_status), and everything allocated
 * is freed. To hosts: synchronous; stream and event are ignored.
 */
TN_NODISCARD tn_status tn__value_copy(tn_driver *d, tn_payload payload, tn_location to,
                                      tn_stream stream, tn_event event, tn_payload *out);

/* ---- Sources ---------------------------------------------------------------------------- */

typedef struct tn__source tn__source;

#define TN__RING_BLOCKS_MAX 16

/* A manager's staging ring (ring.h). */
typedef struct tn__ring tn__ring;

TN_NODISCARD tn_status tn__ring_create(tn_driver *driver, uint64_t block_bytes, uint32_t blocks,
                                       tn__ring **out);
/* No load uses it. NULL is ignored. */
void tn__ring_destroy(tn__ring *ring);
/* How many events a load of so many bytes needs: at most TN__RING_BLOCKS_MAX. */
uint32_t tn__ring_events(const tn__ring *ring, uint64_t bytes);

/* How the content of a file reaches a device. */
typedef struct tn__route {
    tn_location to; /* CUDA */
    tn__ring *ring;
    tn_stream stream;       /* of that device */
    const tn_event *events; /* tn__ring_events(), for that stream */
} tn__route;

/* Check (M69, TN_ERR_KIND / TN_ERR_VALUE) without copying. */
TN_NODISCARD tn_status tn__source_check(const tn_source *source, const tn_value_spec *spec);
/* Copy it. TN_ERR_HOST_MEMORY. */
TN_NODISCARD tn_status tn__source_create(const tn_source *source, const tn_value_spec *spec,
                                         tn__source **out);
/* Runs `forget`. The context's own code runs: no lock may be held. */
void tn__source_destroy(tn__source *source);
/* For a registration that failed after tn__source_create(): frees without running `forget` (the
 * caller keeps its context). */
void tn__source_abandon(tn__source *source);
/* True: it runs a callback of the program, so the guard must be up. */
bool tn__source_is_callback(const tn__source *source);
/* Load once. The payload is the caller's on TN_OK. Failures keep the source's own status and
 * detail (M79); an out-of-range status becomes TN_ERR_SOURCE. The result is not checked against
 * the spec. `route`: files only, and then needed for request->at on CUDA; the payload is made at
 * route->to, and errors name request->at. */
TN_NODISCARD tn_status tn__source_load(tn__source *source, const tn_load_request *request,
                                       const tn__route *route, tn_payload *out);

#endif
