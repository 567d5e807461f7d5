/* SPDX-License-Identifier: MIT */
/*
 * Values: types, specs, the built-in buffer, sources.
 *
 * A payload is a pointer and a value type. Tenure never looks into a payload (M32): it measures,
 * copies and destroys it through its type. The built-in type is a buffer of segments.
 */
#ifndef TENURE_VALUE_H
#define TENURE_VALUE_H

#include <tenure/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Deepest chain of `super` pointers, the type itself included. */
#define TN_TYPE_DEPTH_MAX 16

/** One storage-backed field of a payload: the whole backing allocation that it refers to (M26). */
typedef struct tn_storage {
    const void *base; /**< start of the backing allocation: its identity */
    uint64_t bytes;   /**< size of the whole allocation; 0 is neutral (M65, G22) */
    tn_location at;   /**< pageable, pinned, or the CUDA device that holds it */
} tn_storage;

/** Destination of a copy, lent to the `copy` callback of a value type. */
typedef struct tn_copier tn_copier;

/**
 * A type of values. Immutable, static lifetime; subtypes by the address of `super`.
 * No callback may call the manager that runs it (M197).
 */
struct tn_value_type {
    size_t size;                /**< sizeof(tn_value_type) */
    const char *name;           /**< not blank, at most 255 bytes */
    const tn_value_type *super; /**< NULL, or the type that this one refines */

    /**
     * Measure a payload. `storages` has room for `*inout_count`; write at most that many, then set
     * `*inout_count` to the number of fields (also if larger: we call again), and
     * `*out_logical_bytes` to the sum over all fields of element count times element size (M25).
     * Fields may share a base (counted once, M26).
     */
    tn_status (*measure)(const void *payload, tn_storage *storages, size_t *inout_count,
                         uint64_t *out_logical_bytes);

    /**
     * Make an independent copy at the copier's location (M29). Copies may be queued: they are
     * complete when the caller has synchronised the copier's stream. On failure nothing may be
     * left behind.
     */
    tn_status (*copy)(const void *payload, tn_copier *copier, void **out_payload);

    /** Free a payload and its storage. No queued copy refers to it any longer. */
    void (*destroy)(void *payload);
};

/** How many materializations a value may have (M33). */
enum tn_replica_mode {
    TN_EXCLUSIVE = 0, /**< one at a time */
    TN_REPLICABLE = 1 /**< one at each location */
};

/** Whether the last materialization may be lost (M38). */
enum tn_recoverability { TN_MUST_PRESERVE = 0, TN_RECONSTRUCTIBLE = 1 };

/** What a value is: fixed for its life (M33). */
typedef struct tn_value_spec {
    size_t size;
    const tn_value_type *type;
    uint64_t logical_bytes;  /**< exact */
    uint64_t storage_bytes;  /**< the charge and ceiling, at least logical_bytes */
    uint32_t replica_mode;   /**< enum tn_replica_mode */
    uint32_t recoverability; /**< enum tn_recoverability */
} tn_value_spec;

#define TN_VALUE_SPEC_INIT                                                                         \
    { sizeof(tn_value_spec), NULL, 0, 0, 0, 0 }

/**
 * Check a spec.
 *
 * @param spec          borrowed.
 * @return TN_OK; TN_ERR_KIND NULL, wrong size, `type` is no valid value type, or a mode out of
 *         range; TN_ERR_VALUE bytes above INT64_MAX (the negative numbers of C), or storage below
 *         logical bytes.
 *
 * Threads:  any.
 * Blocks:   never.
 * Source:   M34.
 */
TN_NODISCARD TN_API tn_status tn_value_spec_check(const tn_value_spec *spec);

/**
 * Whether `type` is `base` or one of its subtypes. False for NULL.
 *
 * Threads:  any.
 * Blocks:   never.
 * Source:   M36, G44.
 */
TN_API bool tn_value_type_is(const tn_value_type *type, const tn_value_type *base);

/** Byte measures of a payload (M25..M28). */
typedef struct tn_measure {
    size_t size;
    uint64_t logical_bytes;
    uint64_t storage_bytes; /**< distinct backing allocations, each once */
    /** where it is; kind none for a CPU payload that mixes pinned and pageable fields */
    tn_location at;
} tn_measure;

#define TN_MEASURE_INIT                                                                            \
    {                                                                                              \
        sizeof(tn_measure), 0, 0, { 0, 0 }                                                         \
    }

/**
 * Measure a payload.
 *
 * @param payload       borrowed.
 * @param[out] out      its measures.
 * @return TN_OK; TN_ERR_KIND NULL or no valid type; TN_ERR_PAYLOAD no fields, fields on different
 *         devices, two sizes for one allocation, or sums above INT64_MAX; TN_ERR_HOST_MEMORY;
 *         what the type's own callback reports.
 *
 * Threads:  any.
 * Blocks:   as the type's callback does.
 * Source:   M25..M28.
 */
TN_NODISCARD TN_API tn_status tn_payload_measure(tn_payload payload, tn_measure *out);

/** Flags of tn_payload_place(). */
enum tn_place_flags {
    TN_PLACE_COPY = 1u /**< always make an independent copy */
};

/**
 * Functional movement, outside any manager: the same value at another location.
 *
 * @param driver        borrowed; NULL: pageable host only.
 * @param payload       borrowed, unchanged.
 * @param to            destination.
 * @param stream        for CUDA destinations; NULL: the device's own transfer stream.
 * @param flags         enum tn_place_flags.
 * @param[out] out      owned, unless its data is that of `payload` (already there and no copy
 *                      asked).
 * @return TN_OK, the copy is complete; TN_ERR_KIND; TN_ERR_VALUE location, stream or flag;
 *         TN_ERR_PAYLOAD unusable payload, or no real pinned memory (M31); TN_ERR_HOST_MEMORY;
 *         TN_ERR_DEVICE_MEMORY; TN_ERR_DRIVER.
 *
 * Threads:  any.
 * Blocks:   for the copy.
 * Source:   M29..M31, M222.
 */
TN_NODISCARD TN_API tn_status tn_payload_place(tn_driver *driver, tn_payload payload,
                                               tn_location to, tn_stream stream, uint32_t flags,
                                               tn_payload *out);

/** Destroy a payload through its type; data NULL is ignored. Threads: any. Blocks: as the type
 * does. */
TN_API void tn_payload_destroy(tn_payload payload);

/* ---- For the `copy` callback of a value type -------------------------------------------- */

/** Where the copy goes. Threads: inside the callback. Blocks: never. */
TN_API tn_location tn_copier_location(const tn_copier *copier);

/** The driver to allocate from and to free with; NULL for plain host memory. Threads: inside the
 * callback. Blocks: never. */
TN_API tn_driver *tn_copier_driver(const tn_copier *copier);

/**
 * Allocate at the destination: tn_memory_alloc() with the copier's driver and location.
 *
 * Threads:  inside the callback.
 * Blocks:   as the driver does.
 */
TN_NODISCARD TN_API tn_status tn_copier_alloc(tn_copier *copier, uint64_t bytes, void **out);

/**
 * Copy bytes from the source payload to the destination; may be queued on the copier's stream.
 *
 * Threads:  inside the callback.
 * Blocks:   for copies to the host.
 */
TN_NODISCARD TN_API tn_status tn_copier_copy(tn_copier *copier, void *destination,
                                             const void *source, tn_location source_at,
                                             uint64_t bytes);

/** Undo for a callback that fails half-way: waits for queued copies, then frees. Threads: inside
 * the callback. Blocks: yes. */
TN_API void tn_copier_free(tn_copier *copier, void *pointer, uint64_t bytes);

/* ---- The built-in buffer ---------------------------------------------------------------- */

/** A buffer of segments, allocated at one location. */
typedef struct tn_buffer tn_buffer;

/** One segment. For CUDA `data` is a device pointer. */
typedef struct tn_segment {
    void *data;
    uint64_t bytes;
} tn_segment;

/** The value type of buffers; static lifetime. Threads: any. Blocks: never. */
TN_API const tn_value_type *tn_buffer_type(void);

/**
 * Allocate a buffer; its contents are undefined.
 *
 * @param driver        must outlive the buffer; NULL: pageable host only.
 * @param at            where.
 * @param segment_bytes borrowed, `count` sizes; zero is allowed.
 * @param count         at least 1.
 * @param[out] out      owned, until adopted or destroyed.
 * @return TN_OK; TN_ERR_KIND; TN_ERR_VALUE; TN_ERR_PAYLOAD no pinned memory; TN_ERR_HOST_MEMORY;
 *         TN_ERR_DEVICE_MEMORY; TN_ERR_DRIVER.
 *
 * Threads:  any.
 * Blocks:   as the driver does.
 */
TN_NODISCARD TN_API tn_status tn_buffer_create(tn_driver *driver, tn_location at,
                                               const uint64_t *segment_bytes, size_t count,
                                               tn_buffer **out);

/** Free a buffer that no manager owns; NULL is ignored. Threads: one at a time. Blocks: as the
 * driver does. */
TN_API void tn_buffer_destroy(tn_buffer *buffer);

/** Number of segments. Threads: any. Blocks: never. */
TN_API size_t tn_buffer_segment_count(const tn_buffer *buffer);

/** Segment `index`; {NULL, 0} if there is none. Threads: any. Blocks: never. */
TN_API tn_segment tn_buffer_segment(const tn_buffer *buffer, size_t index);

/** Where the buffer is. Threads: any. Blocks: never. */
TN_API tn_location tn_buffer_location(const tn_buffer *buffer);

/** The payload {tn_buffer_type(), buffer}. Threads: any. Blocks: never. */
TN_API tn_payload tn_buffer_payload(tn_buffer *buffer);

/* ---- Sources ---------------------------------------------------------------------------- */

/** What a source is asked for. */
typedef struct tn_load_request {
    size_t size;
    tn_handle handle;
    tn_value_spec spec;
    tn_location at;    /**< declared source location: the payload must be there */
    tn_driver *driver; /**< the manager's driver, NULL without one */
} tn_load_request;

/** What a source answers. Zeroed before the call. */
typedef struct tn_load_result {
    size_t size;
    /** consumed by us when the callback returns TN_OK (and destroyed by us on every later
     * failure) */
    tn_payload payload;
    int64_t native_code; /**< on failure: reported as tn_error.native_code */
    char message[256];   /**< on failure: reported as tn_error.message; may be empty */
} tn_load_result;

/** Kinds of source. */
enum tn_source_kind { TN_SOURCE_CALLBACK = 1, TN_SOURCE_FILE = 2 };

/** Flags of a file source. */
enum tn_source_flags {
    TN_SOURCE_CHECKSUM = 1u /**< `checksum` is the XXH3 64-bit hash of the whole content */
};

/**
 * Where a value can be loaded from again. Copied at registration, strings and sizes included.
 *
 * A callback runs with the manager's guard up (M189; in TN_MODE_CONCURRENT only its own thread is
 * refused, D3) and without any lock; it must return independent storage at the declared location
 * and keep no alias (M80). Any status but TN_OK makes the load fail and reaches the caller
 * unchanged (M79). A file holds the segments of a buffer one after another, from `offset`; it is
 * opened at each load, and on the way to a device it passes through the manager's staging ring
 * (tn_config) instead of a temporary payload. It is no callback and never raises the guard. A short or corrupt file is
 * TN_ERR_MATERIALIZATION; one that cannot be read is TN_ERR_SOURCE with errno.
 */
typedef struct tn_source {
    size_t size;
    uint32_t kind;  /**< enum tn_source_kind */
    uint32_t flags; /**< enum tn_source_flags; file only */
    /** callback only */
    tn_status (*load)(void *context, const tn_load_request *request, tn_load_result *result);
    /** callback only; NULL or called once when the source is forgotten */
    void (*forget)(void *context);
    void *context;    /**< callback only; must live until `forget` */
    const char *path; /**< file only; at most 4095 bytes */
    uint64_t offset;  /**< file only; bytes */
    /** file only; `segment_count` sizes that sum up to the spec's logical bytes */
    const uint64_t *segment_bytes;
    size_t segment_count; /**< file only; 0: one segment of the spec's logical bytes */
    uint64_t checksum;    /**< file only, with TN_SOURCE_CHECKSUM */
} tn_source;

#define TN_SOURCE_INIT                                                                             \
    { sizeof(tn_source), 0, 0, NULL, NULL, NULL, NULL, 0, NULL, 0, 0 }

#ifdef __cplusplus
}
#endif

#endif
