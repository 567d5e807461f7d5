/* SPDX-License-Identifier: MIT */
/*
 * Lifetimes: leases (borrow for reading), holds (keep resident), reservations (keep bytes free).
 *
 * All three are small values that may be copied and used from any thread; each effect happens
 * once (M259). An all-zero one is none: releasing it does nothing. Ending them needs no open
 * manager.
 *
 * Departure: an ended lease, hold or reservation names nothing any longer. Its handles, location,
 * bytes and label, which the caller gave, answer TN_ERR_LIFETIME_CLOSED (the specification keeps
 * them readable: M135, M153, M159); only the active flag stays (after a failed wait it says
 * active until its streams' work is done or it is released: M146). D11: a second release may
 * report success while the first is still recording its events.
 */
#ifndef TENURE_LEASE_H
#define TENURE_LEASE_H

#include <tenure/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A read lifetime over one or several values at one location. */
typedef struct tn_lease {
    void *record;
    uint64_t generation;
} tn_lease;

/** Retention without access. */
typedef struct tn_hold {
    void *record;
    uint64_t generation;
} tn_hold;

/** Bytes kept free at one location. */
typedef struct tn_reservation {
    void *record;
    uint64_t generation;
} tn_reservation;

/** Flags of tn_lease_release(). */
enum tn_release_flags {
    /** wait for the consumer streams' work, then complete at once (M141); no meaning on the host
     * */
    TN_RELEASE_WAIT = 1u
};

/**
 * Borrow values that are already resident, for reading; nothing is moved.
 *
 * @param m             borrowed.
 * @param handles       borrowed; `count` of them, duplicates collapse to the first (M129).
 * @param count         at least 1.
 * @param at            one location for all of them.
 * @param stream        consumer stream; required on CUDA, must be NULL on host locations.
 * @param[out] out      owned; end with tn_lease_release().
 * @return TN_OK; TN_ERR_KIND; TN_ERR_VALUE no handles, location, or the stream does not fit it;
 *         TN_ERR_HANDLE; TN_ERR_UNAVAILABLE one is not resident there (none is taken), or is
 *         being removed (`busy` is set, D8); TN_ERR_CLOSED; TN_ERR_HOST_MEMORY.
 *
 * Threads:  any.
 * Blocks:   never, except a thread's first call.
 * Ordering: acquire. Copies finished before the placement was published are visible to work the
 *           caller submits after this returns.
 * Lifetime: the payloads are pinned until release, and on CUDA until work queued on the
 *           registered streams before the release has completed.
 * Source:   M128..M134.
 */
TN_NODISCARD TN_API tn_status tn_manager_acquire(tn_manager *m, const tn_handle *handles,
                                                 size_t count, tn_location at, tn_stream stream,
                                                 tn_lease *out);

/**
 * The payload of one value of a lease.
 *
 * @param[out] out      the installed payload itself, pinned by the lease; must not be written
 *                      (M149).
 * @return TN_OK; TN_ERR_KIND; TN_ERR_LIFETIME_CLOSED released; TN_ERR_LOOKUP not a handle of this
 *         lease; TN_ERR_REENTRANCY; TN_ERR_UNAVAILABLE its protection is gone (M146, M150).
 *
 * Threads:  any.
 * Blocks:   never.
 * Source:   M134, M135, D6.
 */
TN_NODISCARD TN_API tn_status tn_lease_lookup(const tn_lease *lease, tn_handle handle,
                                              const void **out);

/**
 * Whether a handle is one of the lease's.
 *
 * @return TN_OK; TN_ERR_KIND; TN_ERR_LIFETIME_CLOSED.
 *
 * Threads:  any.
 * Blocks:   never.
 * Source:   M134, M135.
 */
TN_NODISCARD TN_API tn_status tn_lease_contains(const tn_lease *lease, tn_handle handle, bool *out);

/**
 * The distinct handles, in first-occurrence order, and their count.
 *
 * @param[out] out      `*inout_count` elements; may be NULL if that is 0.
 * @param inout_count   in: room; out: the real total.
 * @return TN_OK; TN_ERR_KIND; TN_ERR_LIFETIME_CLOSED.
 *
 * Threads:  any, also inside callbacks.
 * Blocks:   never.
 * Source:   M129, M134, M135, M150.
 */
TN_NODISCARD TN_API tn_status tn_lease_handles(const tn_lease *lease, tn_handle *out,
                                               size_t *inout_count);

/** The lease's location; TN_ERR_KIND; TN_ERR_LIFETIME_CLOSED. Threads: any, also inside
 * callbacks. Blocks: never. Source: M135. */
TN_NODISCARD TN_API tn_status tn_lease_location(const tn_lease *lease, tn_location *out);

/** Whether it is not released yet; also true after a forced close (M150). False for NULL and
 * none. Threads: any. Blocks: never. */
TN_API bool tn_lease_active(const tn_lease *lease);

/**
 * Register another consumer stream whose work, queued before the release, the lease protects.
 *
 * @return TN_OK, also if it is registered already; TN_ERR_LIFETIME_CLOSED; TN_ERR_VALUE host
 *         location, other device, capturing or thread-relative stream; TN_ERR_KIND not a stream;
 *         TN_ERR_HOST_MEMORY.
 *
 * Threads:  any, also inside callbacks and after a forced close.
 * Blocks:   never.
 * Source:   M137.
 */
TN_NODISCARD TN_API tn_status tn_lease_add_stream(const tn_lease *lease, tn_stream stream);

/**
 * End a lease. On CUDA one event is recorded on each registered stream and the values stay
 * protected until all are complete; nothing is synchronised. If recording fails, the streams are
 * synchronised instead, with a diagnostic (M144).
 *
 * @param lease         borrowed; all copies of it end.
 * @param flags         enum tn_release_flags.
 * @return TN_OK, also if it has ended already, or is none; TN_ERR_KIND; TN_ERR_VALUE unknown
 *         flag; TN_ERR_REENTRANCY the lease stays active; TN_ERR_DRIVER the lease stays active
 *         (M145), or, with TN_RELEASE_WAIT, pending (M146).
 *
 * Threads:  any, not only the acquiring one (M143).
 * Blocks:   never, unless TN_RELEASE_WAIT or the fallback.
 * Ordering: release. Reads of the caller are over before the storage can be reused.
 * Source:   M138..M150, D7, D11.
 */
TN_NODISCARD TN_API tn_status tn_lease_release(const tn_lease *lease, uint32_t flags);

/**
 * Keep values resident at a location. Gives no access and needs no stream.
 *
 * @return as tn_manager_acquire().
 *
 * Threads:  any.
 * Blocks:   never, except a thread's first call.
 * Source:   M151, M152.
 */
TN_NODISCARD TN_API tn_status tn_manager_hold(tn_manager *m, const tn_handle *handles, size_t count,
                                              tn_location at, tn_hold *out);

/** End a hold; see tn_lease_release(). TN_OK; TN_ERR_KIND; TN_ERR_REENTRANCY; TN_ERR_HOST_MEMORY
 * (a thread's first call). Threads: any. Blocks: never. Source: M153. */
TN_NODISCARD TN_API tn_status tn_hold_release(const tn_hold *hold);

/** As tn_lease_handles(). Threads: any. Blocks: never. Source: M151. */
TN_NODISCARD TN_API tn_status tn_hold_handles(const tn_hold *hold, tn_handle *out,
                                              size_t *inout_count);

/** As tn_lease_location(). Threads: any. Blocks: never. */
TN_NODISCARD TN_API tn_status tn_hold_location(const tn_hold *hold, tn_location *out);

/** As tn_lease_active(). Threads: any. Blocks: never. */
TN_API bool tn_hold_active(const tn_hold *hold);

/**
 * Reserve bytes at a location: no memory is allocated, but nobody else's charge can take them.
 *
 * @param bytes         zero is allowed, also at a full location (M43).
 * @param label         borrowed (copied); not blank, at most 255 bytes, need not be unique.
 * @param[out] out      owned; end with tn_reservation_release().
 * @return TN_OK; TN_ERR_KIND; TN_ERR_VALUE bytes, label or location; TN_ERR_BUDGET, also because
 *         of claims of transitions in flight (D9; the detail carries them): a reserve never waits
 *         for them; TN_ERR_HOST_MEMORY.
 *
 * Threads:  any.
 * Blocks:   never, except a thread's first call and the first reserve at a location, which tracks
 *           it.
 * Source:   M157, M158.
 */
TN_NODISCARD TN_API tn_status tn_manager_reserve(tn_manager *m, tn_location at, uint64_t bytes,
                                                 const char *label, tn_reservation *out);

/** End a reservation; see tn_lease_release(). TN_OK; TN_ERR_KIND; TN_ERR_REENTRANCY;
 * TN_ERR_HOST_MEMORY (a thread's first call). Threads: any. Blocks: never. Source: M159. */
TN_NODISCARD TN_API tn_status tn_reservation_release(const tn_reservation *reservation);

/** As tn_lease_active(). Threads: any. Blocks: never. */
TN_API bool tn_reservation_active(const tn_reservation *reservation);

/** What a reservation holds. */
typedef struct tn_reservation_info {
    size_t size;
    tn_location at;
    uint64_t bytes; /**< what is left after tn_manager_adopt_reserved() */
    char label[256];
} tn_reservation_info;

/**
 * Read an active reservation.
 *
 * @param[out] out      with `size` set.
 * @return TN_OK; TN_ERR_KIND; TN_ERR_LIFETIME_CLOSED.
 *
 * Threads:  any, also inside callbacks.
 * Blocks:   never.
 * Source:   M159.
 */
TN_NODISCARD TN_API tn_status tn_reservation_read(const tn_reservation *reservation,
                                                  tn_reservation_info *out);

#ifdef __cplusplus
}
#endif

#endif
