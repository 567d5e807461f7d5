/* SPDX-License-Identifier: MIT */
/*
 * Snapshots: one placement version and one pass over the lifetimes (M224..M232).
 *
 * A snapshot holds no payload. It keeps old placement records in memory until it is dropped; it
 * stays valid when its manager is closed or destroyed. D10: sums, and the meaning of the version
 * (M51, M124, M257), hold for exact snapshots; an inexact one (after a few tries on a very busy
 * manager) says so.
 */
#ifndef TENURE_SNAPSHOT_H
#define TENURE_SNAPSHOT_H

#include <tenure/lease.h>
#include <tenure/types.h>
#include <tenure/value.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The head of a snapshot (M225). */
typedef struct tn_snapshot_info {
    size_t size;
    uint64_t manager;
    uint64_t state_version;
    uint64_t captured_at_ns; /**< Unix nanoseconds, positive */
    uint64_t value_count;    /**< values visible, discarded ones included */
    uint64_t location_count;
    uint64_t reservation_count;
    uint64_t lease_count;         /**< active leases, whatever their number of values */
    uint64_t pending_lease_count; /**< released, consumer work not known to be complete */
    uint64_t hold_count;          /**< active holds */
    uint32_t exact;               /**< 1: the state at one instant (S1) */
    uint32_t reserved0;           /**< always 0 */
} tn_snapshot_info;

/** One value (M226). */
typedef struct tn_value_info {
    size_t size;
    tn_handle handle;
    tn_value_spec spec;
    uint64_t materialization_count;
    tn_location source_at; /**< kind none without a source */
    uint32_t has_source;
    uint32_t discarded;
} tn_value_info;

/** One materialization (M227). */
typedef struct tn_materialization_info {
    size_t size;
    tn_location at;
    uint64_t logical_bytes;
    uint64_t storage_bytes; /**< actual, measured at install */
    uint64_t charged_bytes;
    uint64_t use_count;
    uint64_t hold_count;
    uint64_t pending_count; /**< leases that wait for their events, not events (G5) */
} tn_materialization_info;

/** One tracked location (M228). */
typedef struct tn_location_info {
    size_t size;
    tn_location at;
    uint32_t has_budget;
    uint32_t reserved0;       /**< always 0 */
    uint64_t budget_bytes;    /**< with a budget */
    uint64_t remaining_bytes; /**< with a budget: budget - used - reserved */
    uint64_t used_bytes;
    uint64_t reserved_bytes;
    uint64_t peak_used_bytes;
    uint64_t peak_charged_bytes;
    uint64_t value_count;
    uint64_t reservation_count;
    uint64_t use_count;
    uint64_t hold_count;
    uint64_t pending_count;
    /** in use in the device's pool; TN_READING_ABSENT (plan.h) on hosts, or if it cannot be read
     * */
    uint64_t allocated_bytes;
    uint64_t held_bytes; /**< held by the device's pool; same */
} tn_location_info;

/**
 * Take a snapshot, after a reap.
 *
 * @param m             borrowed.
 * @param[out] out      owned; end with tn_snapshot_drop().
 * @return TN_OK; TN_ERR_KIND; TN_ERR_REENTRANCY; TN_ERR_CLOSED; TN_ERR_DRIVER from the reap
 *         (M165); TN_ERR_HOST_MEMORY.
 *
 * Threads:  any.
 * Blocks:   never. Cost: does not grow with the number of values, only with that of live lifetimes.
 * Source:   M224..M232, S1.
 */
TN_NODISCARD TN_API tn_status tn_snapshot_take(tn_manager *m, tn_snapshot **out);

/** Let a snapshot go; NULL is ignored. Threads: one at a time. Blocks: never. */
TN_API void tn_snapshot_drop(tn_snapshot *s);

/** The head. TN_OK; TN_ERR_KIND. Threads: any. Blocks: never. */
TN_NODISCARD TN_API tn_status tn_snapshot_read(const tn_snapshot *s, tn_snapshot_info *out);

/**
 * Walk all values in registration order.
 *
 * @param inout_cursor  in: 0 to begin; out: pass it again.
 * @param[out] out      with `size` set.
 * @param[out] out_more false: there was no further value, `out` is unchanged.
 * @return TN_OK; TN_ERR_KIND.
 *
 * Threads:  any.
 * Blocks:   never.
 * Source:   M226.
 */
TN_NODISCARD TN_API tn_status tn_snapshot_next(const tn_snapshot *s, uint64_t *inout_cursor,
                                               tn_value_info *out, bool *out_more);

/**
 * One value by its handle.
 *
 * @return TN_OK; TN_ERR_KIND; TN_ERR_HANDLE foreign, unknown, or forgotten after its discard (D12).
 *
 * Threads:  any.
 * Blocks:   never.
 */
TN_NODISCARD TN_API tn_status tn_snapshot_value(const tn_snapshot *s, tn_handle handle,
                                                tn_value_info *out);

/**
 * The materializations of one value, in installation order.
 *
 * @param[out] out      `*inout_count` elements with `size` set in the first; may be NULL if that
 *                      is 0.
 * @param inout_count   in: room; out: the real total.
 * @return as tn_snapshot_value().
 *
 * Threads:  any.
 * Blocks:   never.
 * Source:   M227.
 */
TN_NODISCARD TN_API tn_status tn_snapshot_materializations(const tn_snapshot *s, tn_handle handle,
                                                           tn_materialization_info *out,
                                                           size_t *inout_count);

/** The locations, in tracking order; arrays as above. TN_OK; TN_ERR_KIND. Threads: any. Blocks:
 * never. Source: M228. */
TN_NODISCARD TN_API tn_status tn_snapshot_locations(const tn_snapshot *s, tn_location_info *out,
                                                    size_t *inout_count);

/** The reservations, in admission order; arrays as above. TN_OK; TN_ERR_KIND. Threads: any.
 * Blocks: never. Source: M231. */
TN_NODISCARD TN_API tn_status tn_snapshot_reservations(const tn_snapshot *s,
                                                       tn_reservation_info *out,
                                                       size_t *inout_count);

#ifdef __cplusplus
}
#endif

#endif
