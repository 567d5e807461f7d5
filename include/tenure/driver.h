/* SPDX-License-Identifier: MIT */
/*
 * Drivers: the memory, streams and events of one machine, as a table of pointers.
 *
 * The simulator (sim.h) and CUDA are built in; a program may bring its own. A manager calls a
 * driver from many threads at once and never under one of its locks. A call made by the driver
 * into Tenure is an error.
 */
#ifndef TENURE_DRIVER_H
#define TENURE_DRIVER_H

#include <tenure/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Version of the table below. */
#define TN_DRIVER_ABI 1u

/** An event of a driver: what its event_create() gave, opaque to everybody else. */
typedef struct CUevent_st *tn_event;

/** What a stream is. */
typedef struct tn_stream_info {
    uint32_t device;
    uint32_t capturing; /**< 1: in stream capture; such a stream is refused */
    /** events are made for, and recorded on streams of, one context; never 0 */
    uint64_t context;
} tn_stream_info;

/** Figures of one device. */
typedef struct tn_device_memory {
    uint64_t total_bytes;
    uint64_t free_bytes;
    uint64_t pool_used_bytes; /**< in use in the stream-ordered pool */
    uint64_t pool_held_bytes; /**< held by it */
} tn_device_memory;

/** Capability bits of a driver. */
enum tn_driver_capability {
    /** device pointers can be read and written by the host (the simulator) */
    TN_DRIVER_HOST_ADDRESSABLE = 1u,
    TN_DRIVER_NO_PINNED = 2u /**< cannot pin host memory */
};

/**
 * The table. Statuses: TN_OK or TN_ERR_DRIVER, TN_ERR_HOST_MEMORY, TN_ERR_DEVICE_MEMORY,
 * TN_ERR_DEVICE_LOST, TN_ERR_UNSUPPORTED; TN_ERR_KIND where a stream is none, and TN_ERR_CLOSED
 * where the driver has shut down or the context is destroyed ("already gone": frees count as
 * done, events as complete; D7): the CUDA driver says so with CUDA_ERROR_DEINITIALIZED or
 * NOT_INITIALIZED, and CONTEXT_IS_DESTROYED or INVALID_CONTEXT for the context that a call is about.
 * Errors that stick to a context (an illegal address, a failed launch ...) are
 * TN_ERR_DEVICE_LOST: its memory counts as in use, leases that wait for its events wait for ever
 * (a manager that has some can be destroyed, not closed), and no operation at another place is
 * refused for it. After a failure `last_code` gives the native code of this
 * thread's last failing call.
 *
 * Entries marked optional may be NULL. `self` is what tn_driver_create() was given.
 */
typedef struct tn_driver_ops {
    uint32_t size; /**< sizeof(tn_driver_ops) */
    uint32_t abi;  /**< TN_DRIVER_ABI */
    const char *name;

    /** Number of visible devices; 0 where there is none. */
    tn_status (*device_count)(void *self, uint32_t *out);
    /** enum tn_driver_capability; optional. */
    uint32_t (*capabilities)(void *self);
    /** Native code of this thread's last failing call; optional. */
    int64_t (*last_code)(void *self);

    /** Device memory, usable at once by every stream of the device. */
    tn_status (*device_alloc)(void *self, uint32_t device, uint64_t bytes, void **out);
    /** Nobody uses it any longer, no queued work either. */
    tn_status (*device_free)(void *self, uint32_t device, void *pointer, uint64_t bytes);
    /** Page-locked host memory; TN_ERR_UNSUPPORTED if it cannot be had. */
    tn_status (*pinned_alloc)(void *self, size_t bytes, void **out);
    tn_status (*pinned_free)(void *self, void *pointer, size_t bytes);

    tn_status (*stream_create)(void *self, uint32_t device, tn_stream *out);
    tn_status (*stream_destroy)(void *self, tn_stream stream);
    /** What a stream is; TN_ERR_KIND if it is none. CUDA cannot tell every stray pointer from a
     * stream. */
    tn_status (*stream_info)(void *self, tn_stream stream, tn_stream_info *out);
    tn_status (*stream_synchronize)(void *self, tn_stream stream);
    /** Make later work of `stream` wait for an event. */
    tn_status (*stream_wait)(void *self, tn_stream stream, tn_event event);

    /** An event without timing, in one context of a device. */
    tn_status (*event_create)(void *self, uint32_t device, uint64_t context, tn_event *out);
    tn_status (*event_destroy)(void *self, tn_event event);
    tn_status (*event_record)(void *self, tn_event event, tn_stream stream);
    /** `*out_done` 1: complete, or never recorded. Not-ready is no error. */
    tn_status (*event_query)(void *self, tn_event event, uint32_t *out_done);
    tn_status (*event_synchronize)(void *self, tn_event event);

    /**
     * Copy. At least one end is a CUDA location, or both are host memory. `stream` NULL:
     * synchronous. Otherwise the copy is queued; the source is read when it executes.
     */
    tn_status (*copy)(void *self, void *destination, tn_location destination_at, const void *source,
                      tn_location source_at, uint64_t bytes, tn_stream stream);
    /** Wait for the device's work; CUDA: for that of its primary context. */
    tn_status (*device_synchronize)(void *self, uint32_t device);
    /** Run a function on the host when the stream gets there; it must not call the driver.
     * Optional. */
    tn_status (*host_function)(void *self, tn_stream stream, void (*function)(void *context),
                               void *context);
    /** Figures; optional. */
    tn_status (*device_memory)(void *self, uint32_t device, tn_device_memory *out);
    /** Where a pointer is; *out kind none if unknown. Optional; verifies pinned allocations
     * (M31). */
    tn_status (*pointer_location)(void *self, const void *pointer, tn_location *out);
    /** Give memory that the device's pool holds and nobody uses back to the system, down to
     * `keep_bytes` held. Optional. */
    tn_status (*pool_trim)(void *self, uint32_t device, uint64_t keep_bytes);
} tn_driver_ops;

/**
 * Make a driver from a table.
 *
 * @param ops           must outlive the driver.
 * @param self          passed to every entry.
 * @param[out] out      owned; end with tn_driver_destroy().
 * @return TN_OK; TN_ERR_KIND NULL, wrong size, or a required entry is NULL; TN_ERR_UNSUPPORTED
 *         another abi; TN_ERR_HOST_MEMORY.
 *
 * Threads:  any.
 * Blocks:   never.
 */
TN_NODISCARD TN_API tn_status tn_driver_create(const tn_driver_ops *ops, void *self,
                                               tn_driver **out);

/** Free a driver; no manager, buffer or payload uses it any longer. NULL is ignored. Idle pinned
 * memory goes back first. Threads: one at a time. Blocks: as the driver does. */
TN_API void tn_driver_destroy(tn_driver *driver);

/** The driver's name; "none" for NULL. Threads: any. Blocks: never. */
TN_API const char *tn_driver_name(const tn_driver *driver);

/** The driver's table; NULL for NULL. Threads: any. Blocks: never. */
TN_API const tn_driver_ops *tn_driver_table(const tn_driver *driver);

/** The `self` to pass to the table's entries; NULL for NULL. Threads: any. Blocks: never. */
TN_API void *tn_driver_self(const tn_driver *driver);

/**
 * Open the CUDA driver of this machine, at run time: `libcuda.so.1`, found as every library is. A
 * program needs no Toolkit, and links nothing of CUDA.
 *
 * A device gets its primary context at the first call that concerns it, and keeps it until the
 * driver is destroyed. Each call leaves the calling thread's current context as it was. Device
 * memory comes from a pool of Tenure's own, which holds at most 1/32 of the device beyond what is in
 * use; with a driver before CUDA 11.2, or a device without pools, from cuMemAlloc.
 *
 * Streams may be of any context. TN_STREAM_LEGACY is the legacy stream of device 0's primary
 * context, whatever is current on the calling thread. A stream in capture is refused, and a capture
 * of another stream is not disturbed.
 *
 * @param[out] out      owned; end with tn_driver_destroy().
 * @return TN_OK; TN_ERR_KIND; TN_ERR_UNSUPPORTED there is none, it is too old or has no device, or
 *         this build has no CUDA backend; TN_ERR_DRIVER it is there but does not work, with
 *         its native code; TN_ERR_HOST_MEMORY. tn_driver_why() tells more. May be tried again.
 *
 * Threads:  any.
 * Blocks:   while the driver is loaded.
 */
TN_NODISCARD TN_API tn_status tn_driver_open_cuda(tn_driver **out);

/** Why the last tn_driver_open_cuda() of this process failed; empty if it did not. Static text.
 * Threads: any. Blocks: never. */
TN_API const char *tn_driver_why(void);

/**
 * Allocate memory at a location: pageable host memory, pinned memory, or device memory.
 *
 * Pageable memory comes from jemalloc where the process has it, else from the C library. Pinned
 * memory comes from the driver's pool: it is taken from the driver in chunks of blocks of one size,
 * and freed blocks are kept by exact size, so that a program whose sizes recur makes no driver
 * call. If the driver refuses, chunks without a block in use are given back to it and it is asked
 * again.
 *
 * @param driver        NULL: pageable only.
 * @param bytes         0 gives NULL.
 * @param[out] out      owned; end with tn_memory_free() with the same driver, location and bytes.
 * @return TN_OK; TN_ERR_KIND; TN_ERR_VALUE location; TN_ERR_PAYLOAD pinned memory cannot be had,
 *         or is not really pinned (M31); TN_ERR_HOST_MEMORY; TN_ERR_DEVICE_MEMORY; TN_ERR_DRIVER.
 *
 * Threads:  any.
 * Blocks:   as the driver does.
 * Source:   M31.
 */
TN_NODISCARD TN_API tn_status tn_memory_alloc(tn_driver *driver, tn_location at, uint64_t bytes,
                                              void **out);

/**
 * Free memory of tn_memory_alloc(); NULL is ignored. Pinned memory stays in the driver's pool until
 * tn_driver_trim_pinned(), so that no free waits for a device.
 *
 * @return TN_OK, also if the driver has shut down (D7); TN_ERR_KIND; TN_ERR_VALUE no pinned block
 *         of that size (it may have been freed already); what the driver reports.
 *
 * Threads:  any.
 * Blocks:   as the driver does; never for host memory.
 */
TN_API tn_status tn_memory_free(tn_driver *driver, tn_location at, void *pointer, uint64_t bytes);

/* ---- Pageable memory -------------------------------------------------------------------- */

/** Pageable memory of this process. */
typedef struct tn_host_figures {
    size_t size;
    const char *allocator; /**< `jemalloc` or `C library`; static text */
    const char *version;   /**< the allocator's; static text */
    uint64_t live_bytes;   /**< pageable memory of values, as it was asked for */
    uint64_t live_blocks;  /**< in so many blocks */
    /* Of the allocator, the whole program's memory included; 0 where it does not tell. */
    uint64_t allocated_bytes; /**< in use */
    uint64_t resident_bytes;  /**< in physical memory, the allocator's own included */
    uint64_t mapped_bytes;    /**< address space in use */
    uint64_t retained_bytes;  /**< address space kept for later, without memory */
} tn_host_figures;

#define TN_HOST_FIGURES_INIT                                                                       \
    { sizeof(tn_host_figures), NULL, NULL, 0, 0, 0, 0, 0, 0 }

/**
 * Read the figures of pageable memory. The allocator is jemalloc where the process has it when the
 * library is loaded (linked, or preloaded), else the C library's.
 *
 * @return TN_OK; TN_ERR_KIND.
 *
 * Threads:  any.
 * Blocks:   as the allocator does; the figures are exact only while nobody allocates.
 */
TN_NODISCARD TN_API tn_status tn_host_read_memory(tn_host_figures *out);

/* ---- Pinned memory ---------------------------------------------------------------------- */

/** Pinned memory taken from a driver, by use. None of it is charged to a location; what managers
 * charge there are values. */
typedef struct tn_pinned_figures {
    size_t size;
    uint64_t live_bytes;      /**< blocks in use, as they were asked for */
    uint64_t idle_bytes;      /**< kept for later: free blocks, and padding between blocks */
    uint64_t ring_bytes;      /**< staging rings of managers (tn_config) */
    uint64_t live_blocks;     /**< blocks in use */
    uint64_t peak_live_bytes; /**< most live_bytes so far */
    uint64_t chunks;          /**< taken from the driver and not given back, rings not counted */
    uint64_t chunk_bytes;     /**< the setting of tn_driver_set_pinned_chunk() */
} tn_pinned_figures;

#define TN_PINNED_FIGURES_INIT                                                                     \
    { sizeof(tn_pinned_figures), 0, 0, 0, 0, 0, 0, 0 }

/**
 * Read the figures of a driver's pinned memory, at one instant.
 *
 * @return TN_OK; TN_ERR_KIND.
 *
 * Threads:  any.
 * Blocks:   never.
 */
TN_NODISCARD TN_API tn_status tn_driver_read_pinned(tn_driver *driver, tn_pinned_figures *out);

/**
 * Give every chunk of pinned memory in which no block is in use back to the driver. Also done when
 * the driver's last manager is destroyed, and before a refusal of the driver is reported.
 *
 * @param[out] out_bytes  NULL, or how much was given back, also after a failure.
 * @return TN_OK; TN_ERR_KIND; what the driver reports first: the rest was tried, and what could not
 *         be given back stays idle.
 *
 * Threads:  any.
 * Blocks:   as the driver does: freeing pinned memory waits for everything queued on its devices.
 */
TN_API tn_status tn_driver_trim_pinned(tn_driver *driver, uint64_t *out_bytes);

/**
 * Choose how much pinned memory is taken at once from now on, at most: as many blocks of one size
 * as fit, but at least one, and never more than a twentieth of the blocks of that size so far, so
 * that less than 5 % is taken in advance. A larger block has a chunk of its own.
 *
 * @param bytes         0: the default, 64 MiB.
 * @return TN_OK; TN_ERR_KIND; TN_ERR_VALUE above INT64_MAX.
 *
 * Threads:  any.
 * Blocks:   never.
 */
TN_NODISCARD TN_API tn_status tn_driver_set_pinned_chunk(tn_driver *driver, uint64_t bytes);

#ifdef __cplusplus
}
#endif

#endif
