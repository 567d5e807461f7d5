/* SPDX-License-Identifier: MIT */
/*
 * The structured fields of an error (M244): which of them are filled depends on the status.
 */
#ifndef TENURE_ERROR_H
#define TENURE_ERROR_H

#include <tenure/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Why a handle was refused (M7). */
enum tn_handle_cause {
    TN_HANDLE_CAUSE_NONE = 0,
    TN_HANDLE_FOREIGN = 1,  /**< issued by another manager */
    TN_HANDLE_UNKNOWN = 2,  /**< no record for the complete triple */
    TN_HANDLE_DISCARDED = 3 /**< the value was discarded */
};

/** Distinguishable reasons of infeasibility and no-ops (M179); free text stands in `message`. */
enum tn_reason {
    TN_REASON_NONE = 0,
    TN_REASON_ALREADY_RESIDENT = 1,
    TN_REASON_ALREADY_AT_DESTINATION = 2,
    TN_REASON_ALREADY_ABSENT = 3,
    TN_REASON_HANDLE_FOREIGN = 4,
    TN_REASON_HANDLE_UNKNOWN = 5,
    TN_REASON_HANDLE_DISCARDED = 6,
    TN_REASON_LOCATION_INVALID = 7,
    TN_REASON_EXCLUSIVE = 8,
    TN_REASON_SOURCE_NOT_RESIDENT = 9,
    TN_REASON_SOURCE_PROTECTED = 10,
    TN_REASON_PROTECTED = 11,
    TN_REASON_DISCARD_PROTECTED = 12,
    TN_REASON_LAST_COPY = 13,
    TN_REASON_NO_SOURCE = 14,
    TN_REASON_BUDGET = 15,
    TN_REASON_RESERVATION_BUDGET = 16,
    TN_REASON_STORAGE_SHARED = 17
};

/** A materialization named in an error. */
typedef struct tn_owner {
    tn_handle handle;
    tn_location at;
} tn_owner;

/** Whether waiting helps (beside feasible or not). */
enum tn_verdict {
    TN_VERDICT_NONE = 0, /**< not a matter of admission: another handle, plan or call is needed */
    TN_VERDICT_FITS_NOW = 1,       /**< it could run at once */
    TN_VERDICT_AFTER_EVICTION = 2, /**< unprotected values of others are in the way */
    /** the named leases have to be released, or their events to complete */
    TN_VERDICT_AFTER_LEASES = 3,
    /** the named holds, reservations or plans in flight have to end; they say when */
    TN_VERDICT_BLOCKED = 4,
    TN_VERDICT_NEVER = 5 /**< more than the budget can ever give */
};

/** What stands in the way. */
enum tn_blocker_kind {
    TN_BLOCKER_NONE = 0,
    TN_BLOCKER_LEASE = 1,       /**< active leases of a materialization */
    TN_BLOCKER_PENDING = 2,     /**< leases of it that wait for their events */
    TN_BLOCKER_HOLD = 3,        /**< holds of it */
    TN_BLOCKER_RESERVATION = 4, /**< by label */
    TN_BLOCKER_PLAN = 5         /**< bytes claimed by plans in flight */
};

/** One thing that stands in the way. A materialization that is used in several ways is named once,
 * by the most lasting: hold, lease, pending. */
typedef struct tn_blocker {
    uint32_t kind;      /**< enum tn_blocker_kind */
    uint32_t reserved0; /**< always 0 */
    uint64_t count;     /**< leases or holds of that materialization; else 1 */
    uint64_t bytes;     /**< that its end makes free or evictable */
    tn_handle handle;   /**< leases, pending, holds */
    tn_location at;
    char label[64]; /**< reservations: the first 63 bytes */
} tn_blocker;

/** At most this many owners or blockers are named; `owner_count` and `blocker_count` are the real
 * totals. */
#define TN_ERROR_OWNERS_MAX 4

/**
 * Detail of a failing call. Fields that the status does not use are zero.
 * Written by the failing thread only.
 */
typedef struct tn_error {
    size_t size;
    uint32_t status;       /**< tn_status of the call */
    uint32_t reason;       /**< enum tn_reason */
    uint32_t handle_cause; /**< TN_ERR_HANDLE: enum tn_handle_cause */
    /** TN_ERR_UNAVAILABLE: 1 if a transition in flight has taken the materialization (D8) */
    uint32_t busy;
    /** code of the source, driver (CUresult) or system (errno); 0 if none */
    int64_t native_code;
    /** a clean-up that failed too (M222); it never replaces the error */
    uint32_t cleanup_status;
    uint32_t reserved0; /**< always 0 */
    int64_t cleanup_native_code;
    /** id of the manager called; beside handle.manager it tells a foreign handle */
    uint64_t manager;
    tn_handle handle; /**< the value concerned */
    tn_location at;   /**< the location concerned */

    uint64_t budget_bytes; /**< TN_ERR_BUDGET (M50), at the moment of refusal */
    uint64_t used_bytes;
    uint64_t reserved_bytes; /**< reservations and temporary source charges */
    uint64_t claimed_bytes;  /**< claims of transitions in flight (D9) */
    uint64_t requested_bytes;

    uint64_t use_count;          /**< TN_ERR_IN_USE of an action: of the materialization (M113) */
    uint64_t hold_count;         /**< same; for close: holds */
    uint64_t pending_count;      /**< same */
    uint64_t active_lease_count; /**< TN_ERR_IN_USE of close (M237) */
    uint64_t pending_lease_count;
    uint64_t reservation_count;

    uint64_t expected; /**< TN_ERR_STALE: versions; TN_ERR_MATERIALIZATION: bytes, where numeric */
    uint64_t actual;

    uint64_t owner_count;                 /**< TN_ERR_OWNERSHIP by shared storage: how many */
    tn_owner owners[TN_ERROR_OWNERS_MAX]; /**< the first of them */

    /** TN_ERR_BUDGET, TN_ERR_IN_USE of an action, TN_ERR_PLAN: enum tn_verdict */
    uint32_t verdict;
    /** TN_ERR_PLAN, TN_ERR_PLAN_EXEC: tn_status of the failing part, whose fields these are too
     * (M246) */
    uint32_t cause_status;
    uint32_t phase;        /**< same: enum tn_phase (plan.h) */
    uint32_t action_kind;  /**< same: enum tn_action_kind of the failed action; 0: a reservation */
    uint64_t failed_index; /**< same: of the action or reservation, within its list */
    tn_handle action_handle; /**< same: the action as it was asked for */
    tn_location action_at;
    tn_location action_from;
    uint64_t missing_bytes;   /**< where bytes are the problem: how many do not fit */
    uint64_t evictable_bytes; /**< same: unprotected at that location */
    uint64_t blocker_count;
    tn_blocker blockers[TN_ERROR_OWNERS_MAX]; /**< the first of them */

    char plan[256];    /**< TN_ERR_PLAN, TN_ERR_PLAN_EXEC: name of the plan */
    char label[256];   /**< same: of the failed reservation */
    char message[256]; /**< free text, never empty for an error */
} tn_error;

#ifdef __cplusplus
}
#endif

#endif
