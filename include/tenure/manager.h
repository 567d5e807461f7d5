/* SPDX-License-Identifier: MIT */
/*
 * The manager: life cycle, values, transitions, observations.
 *
 * Every function may be called from any thread. The checks that touch no state come first (M251),
 * then "entry": callback guard (TN_ERR_REENTRANCY), closed (TN_ERR_CLOSED), same-thread nesting
 * (TN_ERR_REENTRANCY) (M198). A forked child gets TN_ERR_FORKED from every manager of its parent,
 * and for one of its own where the parent had threads that used some. Statuses named there are not repeated below.
 *
 * Departures from the specification that concern these functions:
 *  - D1: reaping also runs in the background unless TN_REAPER_MANUAL is asked for.
 *  - D2: lifetime operations on values that a running composite does not touch may be ordered
 *    between its parts.
 *  - D3: TN_MODE_CONCURRENT narrows the callback guard to the callback's own thread; a callback
 *    must not wait for a thread whose call waits for this callback's transition.
 *  - D4: waits (pending leases, copies) exclude nobody.
 *  - D5: storage independence is checked for temporary payloads too (TN_ERR_OWNERSHIP).
 *  - D7: a driver that has shut down, or a destroyed context, counts as gone: release and close
 *    succeed.
 *  - D8: a materialization that a transition in flight is about to remove answers
 *    TN_ERR_UNAVAILABLE with `busy` set.
 *  - D12: only the `keep_discarded` youngest discarded values stay visible; older ones are
 *    forgotten, and their handles still answer "discarded".
 *  - D15: there is no garbage collection: tn_manager_destroy() of an open manager warns once per
 *    open lifetime.
 */
#ifndef TENURE_MANAGER_H
#define TENURE_MANAGER_H

#include <tenure/lease.h>
#include <tenure/plan.h>
#include <tenure/types.h>
#include <tenure/value.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A strict limit of managed bytes at one location; absence means unlimited (M40..M42). */
typedef struct tn_budget {
    tn_location at;
    uint64_t bytes;
} tn_budget;

/** How transitions of different threads relate (design: admission). */
enum tn_mode {
    /** one composite at a time (M256); the callback guard holds on every thread (M189) */
    TN_MODE_SERIAL = 0,
    TN_MODE_CONCURRENT = 1 /**< transitions on different handles overlap; for servers (D3) */
};

/** Who completes pending leases. */
enum tn_reaper {
    TN_REAPER_THREAD = 0, /**< a thread of this manager */
    TN_REAPER_MANUAL = 1  /**< no thread; exactly where M161..M165 say, and tn_manager_step() */
};

/** Kinds of diagnostic (M250). */
enum tn_diagnostic_kind {
    /** a release had to synchronise streams or the device (M144, M147) */
    TN_DIAGNOSTIC_RELEASE_FALLBACK = 1,
    TN_DIAGNOSTIC_LEASE_ABANDONED = 2,       /**< M148 */
    TN_DIAGNOSTIC_HOLD_ABANDONED = 3,        /**< M155 */
    TN_DIAGNOSTIC_RESERVATION_ABANDONED = 4, /**< M160 */
    TN_DIAGNOSTIC_SCOPE_ABANDONED = 5,       /**< M214 */
    TN_DIAGNOSTIC_REAPER = 6,                /**< an error met by the reaper thread */
    /** a driver call failed while cleaning up; storage may be kept */
    TN_DIAGNOSTIC_CLEANUP = 7
};

/** A warning; not an error. */
typedef struct tn_diagnostic {
    size_t size;
    uint32_t kind;   /**< enum tn_diagnostic_kind */
    uint32_t status; /**< tn_status behind it, or TN_OK */
    int64_t native_code;
    uint64_t manager;
    tn_location at;
    const char *message; /**< borrowed */
} tn_diagnostic;

/** `trace_capacity` that keeps no reports at all (M234's capacity 0). */
#define TN_TRACE_NONE UINT64_MAX
/** `trace_capacity` without a limit. */
#define TN_TRACE_UNLIMITED (UINT64_MAX - 1)
/** `keep_discarded` without a limit. */
#define TN_KEEP_ALL UINT64_MAX

/** Most blocks of a staging ring. */
#define TN_RING_BLOCKS_MAX 16u

/** Configuration of a manager. All-zero members mean their documented default. */
typedef struct tn_config {
    size_t size;
    /** must outlive the manager and its payloads; NULL: pageable host memory only */
    tn_driver *driver;
    const tn_budget *budgets; /**< borrowed (copied, M55); tracked in this order (M20) */
    size_t budget_count;
    uint32_t mode;           /**< enum tn_mode; 0: serial */
    uint32_t reaper;         /**< enum tn_reaper; 0: thread */
    uint64_t trace_capacity; /**< reports kept; 0: 4096; TN_TRACE_NONE; TN_TRACE_UNLIMITED */
    uint64_t keep_discarded; /**< discarded values that stay visible (D12); 0: 4096; TN_KEEP_ALL */
    /** NULL: warnings are lost. May be called on any thread, also the reaper's; must not call the
     * manager (M197) */
    void (*diagnostic)(void *context, const tn_diagnostic *diagnostic);
    void *diagnostic_context;
    /** Unix nanoseconds for reports and snapshots; NULL: the system's clock. Called without locks;
     * must not call the manager */
    uint64_t (*now_ns)(void *context);
    void *now_context;
    /**
     * One block of the staging ring; 0: 8 MiB. The content of a file passes through the ring
     * straight to a device, one block being read while copies out of the others run. The ring is
     * pinned memory, taken from the driver at the first such load, whole, and kept until the
     * manager is destroyed; it is charged to no location (tn_driver_read_pinned() counts it). It
     * never grows: loads at the same time share it. Where it cannot be pinned, pageable memory
     * takes its place.
     */
    uint64_t ring_block_bytes;
    uint32_t ring_blocks; /**< its blocks, at most TN_RING_BLOCKS_MAX; 0: 4 */
    uint32_t reserved0;   /**< always 0 */
} tn_config;

#define TN_CONFIG_INIT                                                                             \
    { sizeof(tn_config), NULL, NULL, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, 0, 0, 0 }

/**
 * Create a manager.
 *
 * @param config        borrowed; NULL: all defaults.
 * @param[out] out      owned; end with tn_manager_destroy().
 * @return TN_OK; TN_ERR_KIND NULL, wrong size, mode, reaper or budget location out of range;
 *         TN_ERR_VALUE a budget above INT64_MAX, one location twice, a CUDA location that the
 *         driver does not have, or a ring that cannot be; TN_ERR_HOST_MEMORY; TN_ERR_SYSTEM (the
 *         reaper thread); TN_ERR_FORKED this process was forked from one in which other threads
 *         had used managers and not yet ended: fork before, or exec.
 *
 * Threads:  any.
 * Blocks:   never.
 * Source:   M1, M16..M20, M55, M117, M251.
 */
TN_NODISCARD TN_API tn_status tn_manager_create(const tn_config *config, tn_manager **out);

/** Flags of tn_manager_close(). */
enum tn_close_flags {
    TN_CLOSE_NO_WAIT = 1u, /**< reap instead of waiting for pending leases */
    /** synchronise every tracked device, then clear whatever is still protected (M241) */
    TN_CLOSE_FORCE = 2u
};

/**
 * Close a manager: no further operations; all payloads are released. Locations, budgets, peaks
 * and trace stay readable. A forced close keeps new lifetimes out before it synchronises the
 * devices: acquires in the meantime are refused as closed, even if the synchronisation then fails
 * and the manager stays open.
 *
 * @param m             borrowed.
 * @param flags         enum tn_close_flags.
 * @return TN_OK, also if it is closed already; TN_ERR_KIND; TN_ERR_VALUE unknown flag;
 *         TN_ERR_IN_USE with four counts, the manager stays open (M237); TN_ERR_DRIVER an event
 *         or device could not be waited for, the manager stays open (M238). TN_ERR_SYSTEM (never
 *         by force) and TN_ERR_HOST_MEMORY: it stays open.
 *
 * Threads:  any.
 * Blocks:   for transitions in flight and, unless TN_CLOSE_NO_WAIT, for pending leases; never for
 *           active ones (M239).
 * Source:   M236..M242.
 */
TN_NODISCARD TN_API tn_status tn_manager_close(tn_manager *m, uint32_t flags);

/**
 * Free a manager. If it is open, each open lease, hold and reservation gives one diagnostic, the
 * streams of open leases are synchronised, and it is closed by force (D15). Snapshots taken from
 * it stay valid. The last manager of a driver gives the pinned memory that is idle back to it
 * (tn_driver_trim_pinned()).
 *
 * @param m             consumed on TN_OK; NULL is ignored.
 * @return TN_OK; TN_ERR_REENTRANCY inside one of its callbacks, or inside an RCU read section of
 *         the host program. TN_ERR_HOST_MEMORY: nothing was freed, call it again (open
 *         lifetimes are told again).
 *
 * Threads:  one at a time, no other call on `m` in progress; releases of lifetimes that are still
 *           open may follow later.
 * Blocks:   for the streams of open leases and for a grace period; as the driver does while it gets
 *           pinned memory back.
 * Source:   M148, M155, M160.
 */
TN_NODISCARD TN_API tn_status tn_manager_destroy(tn_manager *m);

/** The manager's id: not 0, unique in the process, also after close; 0 for NULL. Threads: any,
 * also in callbacks. Blocks: never. Source: M1. */
TN_API uint64_t tn_manager_id(const tn_manager *m);

/**
 * Read the state version, after a reap.
 *
 * @param m             borrowed.
 * @param[out] out      counts changes of ownership, placement, tracking and lifetime state (M118).
 * @return TN_OK; TN_ERR_KIND; TN_ERR_CLOSED; TN_ERR_DRIVER from the reap (M165).
 *         TN_ERR_HOST_MEMORY: a thread's first call.
 *
 * Threads:  any.
 * Blocks:   never.
 * Ordering: acquire; two equal versions, one read after the other, prove that nothing was counted
 *           between them.
 * Source:   M117..M123.
 */
TN_NODISCARD TN_API tn_status tn_manager_state_version(tn_manager *m, uint64_t *out);

/**
 * The tracked locations, in tracking order.
 *
 * @param m             borrowed.
 * @param[out] out      `*inout_count` elements; may be NULL if that is 0.
 * @param inout_count   in: room; out: the real total, also if larger.
 * @return TN_OK; TN_ERR_KIND; TN_ERR_REENTRANCY during a source callback. Works on a closed
 *         manager.
 *
 * Threads:  any.
 * Blocks:   for a transition that is being committed.
 * Source:   M18..M21.
 */
TN_NODISCARD TN_API tn_status tn_manager_locations(tn_manager *m, tn_location *out,
                                                   size_t *inout_count);

/**
 * Hand a complete payload to the manager, which makes it a must-preserve value.
 *
 * @param m             borrowed.
 * @param payload       consumed on TN_OK, else still entirely the caller's (M60). Ready on its
 *                      device.
 * @param at            where it is; none: inferred from the payload (M57).
 * @param replica_mode  enum tn_replica_mode.
 * @param[out] out      the new handle.
 * @return TN_OK; TN_ERR_KIND payload or replica mode; TN_ERR_PAYLOAD unusable payload;
 *         TN_ERR_VALUE location; TN_ERR_MATERIALIZATION payload and location do not agree;
 *         TN_ERR_BUDGET; TN_ERR_OWNERSHIP storage owned by another value of this manager (named
 *         in the detail); TN_ERR_HOST_MEMORY.
 *
 * Threads:  any.
 * Blocks:   for transitions in flight (SERIAL: any; CONCURRENT: those with claims at the
 *           location, if it does not fit).
 * Ordering: release. What the caller wrote to the payload is visible to whoever acquires it.
 * Source:   M56..M68.
 */
TN_NODISCARD TN_API tn_status tn_manager_adopt(tn_manager *m, tn_payload payload, tn_location at,
                                               uint32_t replica_mode, tn_handle *out);

/**
 * Adopt a payload into bytes that a reservation already holds: the charge moves from the
 * reservation to the value in one step, so the total at the location does not change. An
 * evaluator reserves, allocates, computes, adopts.
 *
 * @param reservation   borrowed; of this manager, active, at the payload's location, with at
 *                      least the charge left. It stays active with the rest of its bytes.
 * @return as tn_manager_adopt(); TN_ERR_BUDGET the reservation is too small;
 *         TN_ERR_LIFETIME_CLOSED it has ended; TN_ERR_VALUE it is of another manager or location.
 *
 * Threads:  any.
 * Blocks:   as tn_manager_adopt(), but never for bytes.
 * Source:   design section 10.
 */
TN_NODISCARD TN_API tn_status tn_manager_adopt_reserved(tn_manager *m, tn_payload payload,
                                                        tn_location at, uint32_t replica_mode,
                                                        const tn_reservation *reservation,
                                                        tn_handle *out);

/**
 * Register a value that a source can load; nothing is loaded, no budget is checked.
 *
 * @param m             borrowed.
 * @param spec          borrowed (copied); must be reconstructible. For a file, the type is
 *                      tn_buffer_type().
 * @param source        borrowed (copied); its context must live until `forget`.
 * @param at            source location, charged during a load (M73); none: pageable host.
 * @param[out] out      the new handle.
 * @return TN_OK; TN_ERR_KIND spec or source; TN_ERR_VALUE location, must-preserve spec, or
 *         segments that do not sum up; TN_ERR_HOST_MEMORY.
 *
 * Threads:  any.
 * Blocks:   SERIAL: for transitions in flight.
 * Source:   M69..M71.
 */
TN_NODISCARD TN_API tn_status tn_manager_register_source(tn_manager *m, const tn_value_spec *spec,
                                                         const tn_source *source, tn_location at,
                                                         tn_handle *out);

/**
 * Make a value resident at a location, keeping its other replicas.
 *
 * @param m             borrowed.
 * @param handle        the value.
 * @param at            destination.
 * @param stream        transfer stream for a CUDA destination; NULL: one internal stream per
 *                      device (G43).
 * @param[out] out      NULL, or the report.
 * @return TN_OK, complete and readable from any stream (M87); TN_ERR_HANDLE; TN_ERR_VALUE
 *         location or stream; TN_ERR_BUDGET; TN_ERR_OWNERSHIP exclusive value resident elsewhere,
 *         or storage owned already; TN_ERR_MATERIALIZATION; TN_ERR_PAYLOAD no pinned memory; what
 *         the source reports; TN_ERR_DRIVER; TN_ERR_HOST_MEMORY; TN_ERR_DEVICE_MEMORY. After a
 *         failure the state is as before, except that a peak may be higher (M114).
 *
 * Threads:  any.
 * Blocks:   for other transitions of the same value (several threads that ensure the same missing
 *           value cause one load), for the source, for the copy, for a block of the staging ring;
 *           for claims of transitions in flight, if the charge does not fit until they are settled.
 * Ordering: release to whoever acquires the materialization.
 * Source:   M72..M97, M217..M223.
 */
TN_NODISCARD TN_API tn_status tn_manager_ensure(tn_manager *m, tn_handle handle, tn_location at,
                                                tn_stream stream, tn_report *out);

/** Another name for tn_manager_ensure() (M97). Threads: any. Blocks: as it does. */
TN_NODISCARD TN_API tn_status tn_manager_copy(tn_manager *m, tn_handle handle, tn_location to,
                                              tn_stream stream, tn_report *out);

/**
 * Make a value resident at a location and remove one other replica.
 *
 * @param from          the replica to remove; none: the preferred one (pageable, pinned, then
 *                      CUDA by index; M23).
 * @return as tn_manager_ensure(); TN_ERR_UNAVAILABLE `from` is not resident; TN_ERR_IN_USE it is
 *         protected (three counts). If the move fails, the source replica is untouched (M106).
 *         TN_ERR_SYSTEM: no fence could be had, nothing was removed.
 *
 * Threads:  any.
 * Blocks:   as tn_manager_ensure(), and for acquires in progress; never for protections.
 * Source:   M98..M106.
 */
TN_NODISCARD TN_API tn_status tn_manager_move(tn_manager *m, tn_handle handle, tn_location to,
                                              tn_location from, tn_stream stream, tn_report *out);

/**
 * Remove one replica.
 *
 * @return TN_OK, also if it is absent already (a no-op); TN_ERR_HANDLE; TN_ERR_VALUE;
 *         TN_ERR_IN_USE protected; TN_ERR_OWNERSHIP the only one of a value without source.
 *         TN_ERR_SYSTEM: as for a move. TN_ERR_HOST_MEMORY.
 *
 * Threads:  any.
 * Blocks:   for other transitions of the same value, and for acquires in progress; never for
 *           protections.
 * Source:   M107..M110.
 */
TN_NODISCARD TN_API tn_status tn_manager_drop(tn_manager *m, tn_handle handle, tn_location at,
                                              tn_report *out);

/**
 * End a value: remove all its replicas, forget its source.
 *
 * @return TN_OK; TN_ERR_HANDLE, also for a second discard; TN_ERR_IN_USE a replica is protected,
 *         nothing is removed. TN_ERR_SYSTEM: as for a move. TN_ERR_HOST_MEMORY.
 *
 * Threads:  any.
 * Blocks:   as tn_manager_drop().
 * Source:   M111..M113.
 */
TN_NODISCARD TN_API tn_status tn_manager_discard(tn_manager *m, tn_handle handle, tn_report *out);

/**
 * One step of the reaper: complete pending leases whose events are done, free what nobody can see
 * any longer (one grace period if there is something to free).
 *
 * @param m             borrowed.
 * @param[out] out      NULL, or how many leases were completed and objects freed.
 * @return TN_OK; TN_ERR_KIND; TN_ERR_DRIVER an event could not be queried (the rest was done);
 *         TN_ERR_REENTRANCY while a callback guard is up, or inside an RCU read section of the
 *         host program. Works on a closed manager. TN_ERR_HOST_MEMORY: a thread's first call.
 *
 * Threads:  any.
 * Blocks:   for a grace period.
 * Source:   M161..M165, D1.
 */
TN_NODISCARD TN_API tn_status tn_manager_step(tn_manager *m, uint64_t *out);

/**
 * Copy the trace: reports of completed actions, oldest first.
 *
 * @param[out] out      `*inout_count` elements with `size` set in the first; may be NULL if that
 *                      is 0.
 * @param inout_count   in: room; out: the real total; the oldest that fit are written.
 * @return TN_OK; TN_ERR_KIND; TN_ERR_REENTRANCY during a source callback. Works on a closed
 *         manager.
 *
 * Threads:  any, also inside callbacks of payloads.
 * Blocks:   for a transition that is being committed.
 * Source:   M233..M235, M261.
 */
TN_NODISCARD TN_API tn_status tn_manager_trace(tn_manager *m, tn_report *out, size_t *inout_count);

/** Empty the trace; nothing else changes. Errors as tn_manager_trace(). Threads: any. Blocks: as
 * it does. Source: M235. */
TN_NODISCARD TN_API tn_status tn_manager_clear_trace(tn_manager *m);

#ifdef __cplusplus
}
#endif

#endif
