/* SPDX-License-Identifier: MIT */
/*
 * The simulated machine: a driver without hardware, for Tenure's tests and for yours.
 *
 * A machine is described in one string:
 *
 *     machine = [ item { blank item } ] ;              blank = one or more spaces
 *     item    = "dev:" number                          devices, 0..128        (default 1)
 *             | "mem=" size                            memory of each device  (default 1GiB)
 *             | "pinned=" size                         pinnable host memory   (default: no limit)
 *             | "pool=" size                           release threshold of each device's pool
 *                                                                             (default: no limit)
 *             | "link=" ( "host" | "peer" ) ":" rate   of each direction      (default: infinite)
 *             | "latency=" time                        of each copy           (default 0)
 *             | "pin=" time                            of each allocation and free of pinned
 *                                                      memory                 (default 0)
 *             | "host=" ( "separate" | "shared" )      see TN_SIM_SHARES_HOST (default separate)
 *             | "disk=" rate                           of the disk            (default: infinite)
 *             | "seek=" time                           of each open, read and write of a file
 *                                                                             (default 0)
 *             | "seed=" number                         order among what is due at the same time
 *                                                                             (default: none)
 *             | "clock=" ( "virtual" | "threads" ) ;                          (default virtual)
 *     size    = number [ "B" | "KiB" | "MiB" | "GiB" | "TiB" ] ;
 *     rate    = decimal ( "Bps" | "kBps" | "MBps" | "GBps" ) ;   powers of 1000
 *     time    = number ( "ns" | "us" | "ms" | "s" ) ;
 *     number  = digit { digit } ;   decimal = number [ "." number ] ;
 *
 * for example `dev:2 mem=64MiB link=host:12GBps latency=2us`. An item may stand once, `link=` once
 * for each end.
 *
 * Clock: with `virtual`, time stands still but for tn_sim_advance() and for calls that wait (they
 * move the clock to the moment they wait for, see tn_sim_set_waits()); operations complete in
 * order of time, then of stream creation or, with `seed=`, in an order drawn from the seed: equal
 * seeds and equal calls give equal orders. With `threads`, each stream runs on its own thread in
 * real time. What is due at once, such as an event on an idle stream, completes at once; but host
 * functions run only where time moves: in tn_sim_advance(), tn_sim_run(), and calls that wait.
 *
 * Memory is real host memory, so device pointers can be read and written by the host
 * (TN_DRIVER_HOST_ADDRESSABLE). Freed memory is filled with 0xDB; every range has a generation,
 * and a queued operation that executes on a range whose generation changed since it was queued is
 * a violation. Copies read their source when they execute: the first half at their start, the
 * second at their end, so that a source that changes meanwhile shows. A pinned free waits for
 * everything queued. While pinned memory is made or freed (`pin=`), calls that need the lock of a
 * context wait: allocations, frees, trims, and the making and destroying of streams and events.
 * Destroyed streams finish their work; their handles, and those of events, are used again for new
 * ones. TN_STREAM_LEGACY is a stream of device 0 that waits for no other. Work that is queued when
 * the driver shuts down or the context is destroyed does nothing.
 *
 * Every function may be called from any thread, but not from a host function of a stream, unless
 * it says so.
 */
#ifndef TENURE_SIM_H
#define TENURE_SIM_H

#include <tenure/driver.h>
#include <tenure/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A simulated machine. */
typedef struct tn_sim tn_sim;

/** What freed memory is filled with. */
#define TN_SIM_POISON 0xDBu

/**
 * Build a machine.
 *
 * @param machine       borrowed; the string above; NULL or empty: all defaults.
 * @param[out] out      owned; end with tn_sim_destroy().
 * @return TN_OK; TN_ERR_KIND; TN_ERR_VALUE the string is malformed (the detail's message says at
 *         which column and what, and `actual` is the column, from 1); TN_ERR_HOST_MEMORY;
 *         TN_ERR_SYSTEM.
 *
 * Threads:  any.
 * Blocks:   never.
 */
TN_NODISCARD TN_API tn_status tn_sim_create(const char *machine, tn_sim **out);

/** Free a machine and its driver; nothing uses it any longer. NULL is ignored. Threads: one at a
 * time. Blocks: for running operations. */
TN_API void tn_sim_destroy(tn_sim *sim);

/** The machine's driver; lives as long as the machine. Threads: any. Blocks: never. */
TN_API tn_driver *tn_sim_driver(tn_sim *sim);

/* ---- Time ------------------------------------------------------------------------------- */

/** Nanoseconds since creation, virtual or real. Threads: any. Blocks: never. */
TN_API uint64_t tn_sim_now_ns(tn_sim *sim);

/**
 * Let virtual time pass, completing whatever is due. TN_ERR_MISUSE with a `threads` clock;
 * TN_ERR_REENTRANCY from a host function.
 *
 * Threads:  any.
 * Blocks:   for host functions that are due.
 */
TN_NODISCARD TN_API tn_status tn_sim_advance(tn_sim *sim, uint64_t ns);

/**
 * Let virtual time pass until nothing is queued. TN_ERR_MISUSE with a `threads` clock;
 * TN_ERR_REENTRANCY from a host function.
 *
 * Threads:  any.
 * Blocks:   for host functions.
 */
TN_NODISCARD TN_API tn_status tn_sim_run(tn_sim *sim);

/** What a call that waits does in virtual time. */
enum tn_sim_waits {
    TN_SIM_WAITS_ADVANCE = 0, /**< move the clock (default) */
    TN_SIM_WAITS_BLOCK = 1    /**< block until another thread has moved it */
};

/** Choose that; TN_ERR_KIND out of range. Threads: any. Blocks: never. */
TN_NODISCARD TN_API tn_status tn_sim_set_waits(tn_sim *sim, uint32_t waits);

/* ---- Streams of a test ------------------------------------------------------------------ */

/** Flags of tn_sim_stream_create(). */
enum tn_sim_stream_flags {
    TN_SIM_STREAM_CAPTURING = 1u, /**< says that it is in stream capture */
    /** belongs to another context than the device's primary one */
    TN_SIM_STREAM_SECOND_CONTEXT = 2u
};

/**
 * A stream of the test program (not counted as a call of the driver).
 *
 * @return TN_OK; TN_ERR_KIND; TN_ERR_VALUE device or flag; TN_ERR_HOST_MEMORY; TN_ERR_SYSTEM.
 *
 * Threads:  any.
 * Blocks:   never.
 */
TN_NODISCARD TN_API tn_status tn_sim_stream_create(tn_sim *sim, uint32_t device, uint32_t flags,
                                                   tn_stream *out);

/** Destroy it; queued work still runs. Threads: any. Blocks: never. */
TN_NODISCARD TN_API tn_status tn_sim_stream_destroy(tn_sim *sim, tn_stream stream);

/** Queue `ns` of work that touches no memory. Threads: any. Blocks: never. */
TN_NODISCARD TN_API tn_status tn_sim_queue_delay(tn_sim *sim, tn_stream stream, uint64_t ns);

/** Queue a read of a range that lasts `ns`; a free of the range before its end is a violation.
 * Threads: any. Blocks: never. */
TN_NODISCARD TN_API tn_status tn_sim_queue_read(tn_sim *sim, tn_stream stream, const void *base,
                                                uint64_t bytes, uint64_t ns);

/** Queue a write of `byte` to a range, done at the end of `ns`. Threads: any. Blocks: never. */
TN_NODISCARD TN_API tn_status tn_sim_queue_write(tn_sim *sim, tn_stream stream, void *base,
                                                 uint64_t bytes, int byte, uint64_t ns);

/** Whether everything queued on a stream is complete, without counting as a driver call. Threads:
 * any. Blocks: never. */
TN_API bool tn_sim_stream_idle(tn_sim *sim, tn_stream stream);

/* ---- Faults ----------------------------------------------------------------------------- */

/** Entries of the driver table, and calls of the disk, for faults and counters. */
enum tn_sim_entry {
    TN_SIM_ANY = 0,
    TN_SIM_DEVICE_ALLOC,
    TN_SIM_DEVICE_FREE,
    TN_SIM_PINNED_ALLOC,
    TN_SIM_PINNED_FREE,
    TN_SIM_STREAM_CREATE,
    TN_SIM_STREAM_DESTROY,
    TN_SIM_STREAM_INFO,
    TN_SIM_STREAM_SYNCHRONIZE,
    TN_SIM_STREAM_WAIT,
    TN_SIM_EVENT_CREATE,
    TN_SIM_EVENT_DESTROY,
    TN_SIM_EVENT_RECORD,
    TN_SIM_EVENT_QUERY,
    TN_SIM_EVENT_SYNCHRONIZE,
    TN_SIM_COPY,
    TN_SIM_DEVICE_SYNCHRONIZE,
    TN_SIM_HOST_FUNCTION,
    TN_SIM_DEVICE_MEMORY,
    TN_SIM_POINTER_LOCATION,
    TN_SIM_POOL_TRIM,
    TN_SIM_FILE_OPEN, /**< the files of the machine, not of the table */
    TN_SIM_FILE_STAT,
    TN_SIM_FILE_READ,
    TN_SIM_FILE_WRITE,
    TN_SIM_FILE_CLOSE,
    TN_SIM_ENTRY_COUNT
};

/** No particular device. */
#define TN_SIM_ANY_DEVICE UINT32_MAX

/** Flags of a fault. */
enum tn_sim_fault_flags {
    /** while it stalls, it holds the lock of its device's context (all devices': no particular
     * one); who needs that lock waits, as with `pin=` */
    TN_SIM_FAULT_LOCKS = 1u,
    TN_SIM_FAULT_SHORT = 2u,  /**< file read: half of what was asked for, at least one byte */
    TN_SIM_FAULT_WRONG = 4u,  /**< file read: the first byte arrives inverted */
    TN_SIM_FAULT_DIRECT = 8u, /**< file read: only of descriptors with TN_SIM_FILE_DIRECT */
};

/** A scripted fault: from the n-th matching call on, `count` calls fail or stall. */
typedef struct tn_sim_fault {
    size_t size;
    uint32_t entry;      /**< enum tn_sim_entry */
    uint32_t device;     /**< only calls that concern this device; TN_SIM_ANY_DEVICE: all */
    uint64_t nth;        /**< counted from now; 1 is the next call; 0 means 1 */
    uint64_t count;      /**< how many calls; 0: all from then on */
    uint32_t status;     /**< returned tn_status; TN_OK: the call succeeds after the stall */
    uint32_t flags;      /**< enum tn_sim_fault_flags */
    int64_t native_code; /**< for last_code; errno of a file's call (0: EIO) */
    /** passes before the call goes on (virtual or real); UINT64_MAX: until tn_sim_fault_clear() */
    uint64_t stall_ns;
} tn_sim_fault;

#define TN_SIM_FAULT_INIT                                                                          \
    { sizeof(tn_sim_fault), 0, TN_SIM_ANY_DEVICE, 1, 1, 0, 0, 0, 0 }

/**
 * Arm a fault; several may be armed, the first that matches wins.
 *
 * @return TN_OK; TN_ERR_KIND; TN_ERR_VALUE a flag of file reads with another entry;
 *         TN_ERR_HOST_MEMORY.
 *
 * Threads:  any.
 * Blocks:   never.
 */
TN_NODISCARD TN_API tn_status tn_sim_fault_arm(tn_sim *sim, const tn_sim_fault *fault);

/** Disarm all faults; returns how many calls they hit since they were armed. Threads: any.
 * Blocks: never. */
TN_API uint64_t tn_sim_fault_clear(tn_sim *sim);

/** How many calls stall right now, for whatever reason. Threads: any. Blocks: never. */
TN_API uint64_t tn_sim_stalled(tn_sim *sim);

/** States of the whole driver. */
enum tn_sim_state {
    TN_SIM_NORMAL = 0,
    /** every call is TN_ERR_CLOSED with native code 4 (deinitialized) */
    TN_SIM_SHUT_DOWN = 1,
    TN_SIM_CONTEXT_DESTROYED = 2, /**< every call is TN_ERR_CLOSED with native code 709 */
    TN_SIM_NO_PINNED = 3,         /**< cannot pin host memory (capability off) */
    TN_SIM_FAKE_PINNED = 4 /**< pinned allocations succeed but give pageable memory (MC179) */
};

/** Put the driver into a state; TN_ERR_KIND out of range. Threads: any. Blocks: never. */
TN_NODISCARD TN_API tn_status tn_sim_set_state(tn_sim *sim, uint32_t state);

/** What a device can do; bits. */
enum tn_sim_capability {
    /** it can pin host memory; pinned memory can be had while any device can */
    TN_SIM_CAN_PIN = 1u,
    /** host memory is its memory (an integrated device): pinned bytes are taken from it, its free
     * figure is lower by them, and what does not fit is refused */
    TN_SIM_SHARES_HOST = 2u
};

/**
 * Set what a device can do from now on; what is allocated stays. At first every device can pin, and
 * shares the host's memory if the machine says `host=shared`.
 *
 * @param device        TN_SIM_ANY_DEVICE: all devices.
 * @param capabilities  enum tn_sim_capability.
 * @return TN_OK; TN_ERR_KIND; TN_ERR_VALUE no such device or bit.
 *
 * Threads:  any.
 * Blocks:   never.
 */
TN_NODISCARD TN_API tn_status tn_sim_set_capabilities(tn_sim *sim, uint32_t device,
                                                      uint32_t capabilities);

/** What a device can do; 0 if there is none. Threads: any. Blocks: never. */
TN_API uint32_t tn_sim_capabilities(tn_sim *sim, uint32_t device);

/** What a driver call from inside a host function does. */
enum tn_sim_host_calls {
    TN_SIM_HOST_CALLS_ABORT = 0, /**< end the process (default) */
    TN_SIM_HOST_CALLS_REFUSE = 1 /**< TN_ERR_DRIVER */
};

/** Choose that; TN_ERR_KIND out of range. Threads: any. Blocks: never. */
TN_NODISCARD TN_API tn_status tn_sim_set_host_calls(tn_sim *sim, uint32_t mode);

/** Called after each executed copy, on the thread that executes it, as a host function is; for
 * tests that damage copies. NULL: none. Threads: any. Blocks: never. */
TN_API void tn_sim_on_copy(tn_sim *sim,
                           void (*function)(void *context, void *destination, uint64_t bytes),
                           void *context);

/* ---- Figures ---------------------------------------------------------------------------- */

/** How often an entry was called (TN_SIM_ANY: all entries), failing calls included. Threads: any.
 * Blocks: never. */
TN_API uint64_t tn_sim_calls(tn_sim *sim, uint32_t entry);

/** The same, of the calling thread only. Threads: any. Blocks: never. */
TN_API uint64_t tn_sim_thread_calls(tn_sim *sim, uint32_t entry);

/** The same, of the calls that named one stream: queries and synchronisations of an event count at
 * the stream of its last record. 0 if it is destroyed. Threads: any. Blocks: never. */
TN_API uint64_t tn_sim_stream_calls(tn_sim *sim, tn_stream stream, uint32_t entry);

/** Calls that named a destroyed stream or event (each is a violation, too). Threads: any. Blocks:
 * never. */
TN_API uint64_t tn_sim_stale_calls(tn_sim *sim);

/** The number after `seed=`; 0 without. Threads: any. Blocks: never. */
TN_API uint64_t tn_sim_seed(tn_sim *sim);

/** Memory figures of one location. */
typedef struct tn_sim_memory {
    size_t size;
    uint64_t live_bytes;
    uint64_t peak_bytes; /**< most live bytes so far */
    uint64_t live_blocks;
    uint64_t allocations;
    uint64_t frees;
    uint64_t held_bytes; /**< kept by the device's pool, live bytes included */
} tn_sim_memory;

/** Read them: pinned or cuda:N; TN_ERR_KIND; TN_ERR_VALUE. Threads: any. Blocks: never. */
TN_NODISCARD TN_API tn_status tn_sim_read_memory(tn_sim *sim, tn_location at, tn_sim_memory *out);

/** Traffic of one pair of locations. */
typedef struct tn_sim_traffic {
    size_t size;
    uint64_t copies;
    uint64_t bytes;
    uint64_t busy_ns;
} tn_sim_traffic;

/** Read it; TN_ERR_KIND; TN_ERR_VALUE. Threads: any. Blocks: never. */
TN_NODISCARD TN_API tn_status tn_sim_read_traffic(tn_sim *sim, tn_location from, tn_location to,
                                                  tn_sim_traffic *out);

/** Live events. Threads: any. Blocks: never. */
TN_API uint64_t tn_sim_live_events(tn_sim *sim);

/** Live streams made by the driver's users; those of tn_sim_stream_create() do not count.
 * Threads: any. Blocks: never. */
TN_API uint64_t tn_sim_live_streams(tn_sim *sim);

/** Shadow violations so far: use after free or reuse by queued work, calls naming destroyed
 * streams or events, records across contexts, frees of what is free or of another size. Threads:
 * any. Blocks: never. */
TN_API uint64_t tn_sim_violations(tn_sim *sim);

/** The first violation in words, with the machine's seed; empty if there is none. Pinned by the
 * machine. Threads: any. Blocks: never. */
TN_API const char *tn_sim_violation_text(tn_sim *sim);

/** Forget the violations so far, which were expected; returns how many. Threads: any. Blocks:
 * never. */
TN_API uint64_t tn_sim_violations_clear(tn_sim *sim);

/* ---- Disk ------------------------------------------------------------------------------- */

/*
 * One disk with files by name, in memory. Opening, reading and writing take time (`disk=`,
 * `seek=`), one after the other; the caller waits for it, which with a virtual clock moves the
 * clock as tn_sim_set_waits() says. Faults apply to them. No state of the driver does. These
 * functions are made to stand behind a program's own open(), pread() and the like: failures are -1
 * and errno. From a host function they fail with EDEADLK.
 */

/**
 * Make a file, or replace it; who has it open keeps the old content.
 *
 * @param path          borrowed; any text, compared as it is.
 * @param data          borrowed (copied); NULL: zeros.
 * @return TN_OK; TN_ERR_KIND; TN_ERR_HOST_MEMORY.
 *
 * Threads:  any.
 * Blocks:   never.
 */
TN_NODISCARD TN_API tn_status tn_sim_file_put(tn_sim *sim, const char *path, const void *data,
                                              uint64_t bytes);

/** Flags of tn_sim_file_open(). */
enum tn_sim_file_flags {
    /** reads bypass the cache: offset, bytes and memory must be multiples of 4096, else EINVAL */
    TN_SIM_FILE_DIRECT = 1u
};

/** Open a file; a descriptor, which is none of the system's. Threads: any. Blocks: for its time. */
TN_API int tn_sim_file_open(tn_sim *sim, const char *path, uint32_t flags);

/** Its size. 0 or -1. Threads: any. Blocks: only if a fault stalls it. */
TN_API int tn_sim_file_stat(tn_sim *sim, int descriptor, uint64_t *out_bytes);

/** Read at an offset; how many bytes, fewer at the end of the file. Threads: any. Blocks: for its
 * time. */
TN_API int64_t tn_sim_file_read(tn_sim *sim, int descriptor, void *to, uint64_t bytes,
                                uint64_t offset);

/** Write inside the file, which does not grow; how many bytes. Threads: any. Blocks: for its time.
 */
TN_API int64_t tn_sim_file_write(tn_sim *sim, int descriptor, const void *from, uint64_t bytes,
                                 uint64_t offset);

/** Close a descriptor. 0 or -1; it is closed in any case. Threads: any. Blocks: only if a fault
 * stalls it. */
TN_API int tn_sim_file_close(tn_sim *sim, int descriptor);

/** Figures of the disk; of calls that succeeded. */
typedef struct tn_sim_disk {
    size_t size;
    uint64_t opens;
    uint64_t reads;
    uint64_t direct_reads; /**< of these, through TN_SIM_FILE_DIRECT */
    uint64_t writes;
    uint64_t bytes_read;
    uint64_t bytes_written;
    uint64_t open_descriptors; /**< now */
    uint64_t busy_ns;
} tn_sim_disk;

/** Read them; TN_ERR_KIND. Threads: any. Blocks: never. */
TN_NODISCARD TN_API tn_status tn_sim_read_disk(tn_sim *sim, tn_sim_disk *out);

#ifdef __cplusplus
}
#endif

#endif
