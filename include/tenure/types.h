/* SPDX-License-Identifier: MIT */
/*
 * Names that every other public header needs: opaque objects, locations, handles, payloads.
 *
 * Conventions of the whole interface:
 *  - Public structs begin with `size`: set it (or use the TN_..._INIT macro) before passing the
 *    struct, in or out. A smaller struct of an older caller is accepted, missing members count as
 *    zero; a larger one only if what we do not know is zero. Anything else is TN_ERR_KIND. For
 *    arrays of output structs set `size` in element 0. tn_location, tn_handle, tn_payload,
 *    tn_lease, tn_hold and tn_reservation are fixed for ever and have none.
 *  - Outputs are written only on TN_OK. Strings are NUL-terminated UTF-8, copied, at most 255
 *    bytes.
 *  - Bytes are 64-bit everywhere; a value above INT64_MAX is TN_ERR_VALUE.
 *  - *borrowed*: valid for the call. *consumed*: the caller must not touch it again. *owned*: the
 *    caller must release it. *pinned*: valid while a lease is held.
 */
#ifndef TENURE_TYPES_H
#define TENURE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tenure/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A manager: owns values, places them, lends them. Thread-safe. */
typedef struct tn_manager tn_manager;
/** A driver: the memory, streams and events of one machine. Thread-safe. */
typedef struct tn_driver tn_driver;
/** A consistent view of one manager. Immutable, any thread may read it. */
typedef struct tn_snapshot tn_snapshot;
/** The type of a value: see value.h. Immutable, static lifetime. */
typedef struct tn_value_type tn_value_type;
/** A stream: a CUstream or cudaStream_t passes as it is. NULL means none. */
typedef struct CUstream_st *tn_stream;

/** The CUDA legacy default stream (CU_STREAM_LEGACY): always that of device 0's primary context. */
#define TN_STREAM_LEGACY ((tn_stream)0x1)
/** CU_STREAM_PER_THREAD: refused everywhere with TN_ERR_VALUE, since it means another stream on
 * each thread. */
#define TN_STREAM_PER_THREAD ((tn_stream)0x2)

/** Kinds of location (M11). */
enum tn_location_kind {
    TN_LOCATION_NONE = 0, /**< absent, where an argument may be absent */
    TN_LOCATION_PAGEABLE = 1,
    TN_LOCATION_PINNED = 2,
    TN_LOCATION_CUDA = 3
};

/** Highest CUDA device index that can be named (M13). */
#define TN_CUDA_INDEX_MAX 127u

/**
 * One memory tier: identity is (kind, index). The index of a host location is ignored (M12).
 */
typedef struct tn_location {
    uint32_t kind;  /**< enum tn_location_kind */
    uint32_t index; /**< CUDA device index, 0..127; ignored for host kinds */
} tn_location;

/** Large enough for every location name with its NUL. */
#define TN_LOCATION_NAME_MAX 16

/** Identity of one managed value (M3). Plain data: copy and compare it freely. */
typedef struct tn_handle {
    uint64_t manager;          /**< id of the issuing manager, never 0 */
    uint64_t index;            /**< issued once by that manager, in registration order, never 0 */
    const tn_value_type *type; /**< borrowed for ever (static lifetime) */
} tn_handle;

/** A concrete value: storage-bearing data and its exact runtime type. */
typedef struct tn_payload {
    const tn_value_type *type;
    void *data;
} tn_payload;

/** The pageable host location. */
static inline tn_location tn_location_pageable(void) {
    tn_location at = {TN_LOCATION_PAGEABLE, 0};
    return at;
}

/** The pinned host location. */
static inline tn_location tn_location_pinned(void) {
    tn_location at = {TN_LOCATION_PINNED, 0};
    return at;
}

/** A CUDA location; its index is checked where it is used (M16). */
static inline tn_location tn_location_cuda(uint32_t index) {
    tn_location at = {TN_LOCATION_CUDA, index};
    return at;
}

/** No location: "infer it", "let the manager choose". */
static inline tn_location tn_location_none(void) {
    tn_location at = {TN_LOCATION_NONE, 0};
    return at;
}

/**
 * Build a location from its kind and the text of a device: `cpu`, `cpu:N` or `cuda:N`.
 *
 * @param kind          enum tn_location_kind.
 * @param device        borrowed; N is decimal without sign, blanks or leading zeros.
 * @param[out] out      the location, host kinds without index.
 * @return TN_OK; TN_ERR_KIND NULL argument; TN_ERR_VALUE unknown kind, text that is not a device,
 *         kind and device that do not fit, or a CUDA index above 127. The device need not exist
 *         (M16).
 *
 * Threads:  any.
 * Blocks:   never.
 * Source:   M11..M14.
 */
TN_NODISCARD TN_API tn_status tn_location_make(uint32_t kind, const char *device, tn_location *out);

/**
 * The diagnostic name: `pageable-host`, `pinned-host` or `cuda:N`.
 *
 * @param at            any location; one that is none is named `none`.
 * @param[out] buffer   written with NUL.
 * @param capacity      bytes of `buffer`; TN_LOCATION_NAME_MAX is always enough.
 * @return TN_OK; TN_ERR_KIND NULL or a kind out of range; TN_ERR_VALUE index above 127, or
 *         `capacity` too small.
 *
 * Threads:  any.
 * Blocks:   never.
 * Source:   M15.
 */
TN_NODISCARD TN_API tn_status tn_location_name(tn_location at, char *buffer, size_t capacity);

/**
 * Whether two locations are the same; host indices do not count.
 *
 * Threads:  any.
 * Blocks:   never.
 * Source:   M11, M12.
 */
TN_API bool tn_location_equal(tn_location a, tn_location b);

/**
 * Build a handle by hand; checks form only, not that such a value exists.
 *
 * @param manager       id of a manager.
 * @param index         index of a value.
 * @param type          borrowed for ever.
 * @param[out] out      the handle.
 * @return TN_OK; TN_ERR_KIND `out` is NULL or `type` is no valid value type; TN_ERR_VALUE
 *         `manager` or `index` is 0 (the blank ids of C).
 *
 * Threads:  any.
 * Blocks:   never.
 * Source:   M3, M5.
 */
TN_NODISCARD TN_API tn_status tn_handle_make(uint64_t manager, uint64_t index,
                                             const tn_value_type *type, tn_handle *out);

/**
 * Whether two handles are the same: manager, index and type.
 *
 * Threads:  any.
 * Blocks:   never.
 * Source:   M3.
 */
TN_API bool tn_handle_equal(tn_handle a, tn_handle b);

/**
 * A hash of all three parts, equal for equal handles, stable within the process.
 *
 * Threads:  any.
 * Blocks:   never.
 * Source:   M3.
 */
TN_API uint64_t tn_handle_hash(tn_handle handle);

#ifdef __cplusplus
}
#endif

#endif
