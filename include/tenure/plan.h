/* SPDX-License-Identifier: MIT */
/*
 * Actions and the reports of completed actions (M82..M92); plans, which are ordered lists of them,
 * and what would happen if one ran now (M166..M183).
 */
#ifndef TENURE_PLAN_H
#define TENURE_PLAN_H

#include <tenure/error.h>
#include <tenure/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The four primitive requests. Copy is another name for ensure (M97). */
enum tn_action_kind {
    TN_ACTION_NONE = 0,
    TN_ACTION_ENSURE = 1,
    TN_ACTION_MOVE = 2,
    TN_ACTION_DROP = 3,
    TN_ACTION_DISCARD = 4
};

/** One request exactly as made. */
typedef struct tn_action {
    uint32_t kind;      /**< enum tn_action_kind */
    uint32_t reserved0; /**< always 0 */
    tn_handle handle;
    tn_location at;   /**< ensure and move: destination; drop: the location; discard: none */
    tn_location from; /**< move: explicit source, or none */
} tn_action;

/** An allocator reading that is absent. */
#define TN_READING_ABSENT UINT64_MAX

/** Report of one completed action (M84). */
typedef struct tn_report {
    size_t size;
    tn_action action;
    uint32_t no_op;           /**< 1: nothing had to be done */
    uint32_t reason;          /**< enum tn_reason; only for no-ops */
    tn_location source;       /**< resolved (M90); kind none if absent */
    tn_location destination;  /**< same */
    uint64_t logical_bytes;   /**< from the spec */
    uint64_t storage_bytes;   /**< the charge, from the spec */
    uint64_t started_at_ns;   /**< Unix nanoseconds */
    uint64_t completed_at_ns; /**< never before started_at_ns (G47) */
    tn_location allocator;    /**< the sampled CUDA location (M91); kind none if none */
    /** in use in the device's pool; TN_READING_ABSENT if it could not be read (M92) */
    uint64_t allocated_bytes_before;
    uint64_t held_bytes_before; /**< held by the device's pool */
    uint64_t allocated_bytes_after;
    uint64_t held_bytes_after;
} tn_report;

#define TN_REPORT_INIT                                                                             \
    {                                                                                              \
        sizeof(tn_report), {0, 0, {0, 0, NULL}, {0, 0}, {0, 0}}, 0, 0, {0, 0}, {0, 0}, 0, 0, 0, 0, \
            {0, 0}, 0, 0, 0, 0                                                                     \
    }

/** Make `handle` resident at `at`. Checked where it is used (M82). */
static inline tn_action tn_action_ensure(tn_handle handle, tn_location at) {
    tn_action a = {TN_ACTION_ENSURE, 0, handle, at, {TN_LOCATION_NONE, 0}};
    return a;
}

/** Move it to `to`; `from` none: the preferred replica (M98). */
static inline tn_action tn_action_move(tn_handle handle, tn_location to, tn_location from) {
    tn_action a = {TN_ACTION_MOVE, 0, handle, to, from};
    return a;
}

/** Remove its replica at `at`. */
static inline tn_action tn_action_drop(tn_handle handle, tn_location at) {
    tn_action a = {TN_ACTION_DROP, 0, handle, at, {TN_LOCATION_NONE, 0}};
    return a;
}

/** End the value. */
static inline tn_action tn_action_discard(tn_handle handle) {
    tn_action a = {TN_ACTION_DISCARD, 0, handle, {TN_LOCATION_NONE, 0}, {TN_LOCATION_NONE, 0}};
    return a;
}

/* ---- Plans ------------------------------------------------------------------------------ */

/** The parts of a plan, in the order in which they run; TN_PHASE_EXECUTE is the one part of a
 * sequence of actions (M246). */
enum tn_phase {
    TN_PHASE_NONE = 0,
    TN_PHASE_EXECUTE = 1,
    TN_PHASE_RECLAIM = 2,
    TN_PHASE_RESERVE = 3,
    TN_PHASE_ENTER = 4,
    TN_PHASE_EXIT = 5
};

/** A reservation that a plan wants; declaring it charges nothing (M167). */
typedef struct tn_reservation_spec {
    tn_location at;
    uint64_t bytes;
    const char *label; /**< not blank, at most 255 bytes */
} tn_reservation_spec;

/** What a plan is made of; each list may be empty (NULL and 0). */
typedef struct tn_plan_spec {
    size_t size;
    const char *name; /**< not blank, at most 255 bytes */
    const tn_action *reclaim;
    size_t reclaim_count;
    const tn_reservation_spec *reservations;
    size_t reservation_count;
    const tn_action *enter;
    size_t enter_count;
    const tn_action *exit;
    size_t exit_count;
} tn_plan_spec;

#define TN_PLAN_SPEC_INIT                                                                          \
    { sizeof(tn_plan_spec), NULL, NULL, 0, NULL, 0, NULL, 0, NULL, 0 }

/** An immutable plan: belongs to no manager, can be used any number of times and by any number of
 * threads at once (M166). */
typedef struct tn_plan tn_plan;

/**
 * Make a plan. Handles and locations are looked up where it is used, not here.
 *
 * @param spec          borrowed (copied).
 * @param[out] out      owned; end with tn_plan_destroy().
 * @return TN_OK; TN_ERR_KIND NULL, a list that is NULL and not empty, a member that is no action
 *         or no reservation; TN_ERR_VALUE blank or too long name or label, bytes above INT64_MAX;
 *         TN_ERR_HOST_MEMORY.
 *
 * Threads:  any.
 * Blocks:   never.
 * Source:   M82, M166, M167.
 */
TN_NODISCARD TN_API tn_status tn_plan_create(const tn_plan_spec *spec, tn_plan **out);

/** Let a plan go; NULL is ignored. Scopes and reports made from it stay valid. Threads: one at a
 * time. Blocks: never. */
TN_API void tn_plan_destroy(tn_plan *plan);

/** Its name, pinned until the plan is destroyed; NULL for NULL. Threads: any. Blocks: never. */
TN_API const char *tn_plan_name(const tn_plan *plan);

/**
 * The actions of one part.
 *
 * @param phase         TN_PHASE_RECLAIM, TN_PHASE_ENTER or TN_PHASE_EXIT.
 * @param[out] out      pinned until the plan is destroyed; NULL if there are none.
 * @param[out] out_count how many.
 * @return TN_OK; TN_ERR_KIND NULL or another phase.
 *
 * Threads:  any.
 * Blocks:   never.
 */
TN_NODISCARD TN_API tn_status tn_plan_actions(const tn_plan *plan, uint32_t phase,
                                              const tn_action **out, size_t *out_count);

/** The reservations, as tn_plan_actions() gives actions. Threads: any. Blocks: never. */
TN_NODISCARD TN_API tn_status tn_plan_reservations(const tn_plan *plan,
                                                   const tn_reservation_spec **out,
                                                   size_t *out_count);

/* ---- Explanations ----------------------------------------------------------------------- */

/** One action as the simulation met it (M176..M178). */
typedef struct tn_action_explanation {
    size_t size;
    tn_action action;
    uint32_t phase;          /**< enum tn_phase */
    uint32_t executable;     /**< 1: performable, or a no-op */
    uint32_t no_op;          /**< 1: there would be nothing to do */
    uint32_t reason;         /**< enum tn_reason; none only for a performable non-no-op */
    uint64_t index;          /**< within its list */
    tn_location source;      /**< as in a report (M90); kind none if absent */
    tn_location destination; /**< same */
    uint64_t logical_bytes;  /**< from the spec; 0 for problems of the handle (M177) */
    uint64_t storage_bytes;  /**< the charge, same */
} tn_action_explanation;

#define TN_ACTION_EXPLANATION_INIT                                                                 \
    {                                                                                              \
        sizeof(tn_action_explanation), {0, 0, {0, 0, NULL}, {0, 0}, {0, 0}}, 0, 0, 0, 0, 0,        \
            {0, 0}, {0, 0}, 0, 0                                                                   \
    }

/** The highest charge that a plan would reach at a location (M181). */
typedef struct tn_predicted_peak {
    tn_location at;
    uint64_t charged_bytes;
} tn_predicted_peak;

/** The head of an explanation (M180). */
typedef struct tn_explanation_info {
    size_t size;
    const char *plan;           /**< its name; pinned until the explanation is dropped */
    uint32_t feasible;          /**< 1: every step could run */
    uint32_t reason;            /**< enum tn_reason of the first problem; none when feasible */
    uint32_t phase;             /**< enum tn_phase of the first problem */
    uint32_t verdict;           /**< enum tn_verdict */
    uint64_t index;             /**< of the first problem, within its list */
    uint64_t action_count;      /**< explained: up to and including the first problem */
    uint64_t reservation_count; /**< of the plan, also those that were not reached */
    uint64_t peak_count;
    uint64_t blocker_count;   /**< lifetimes and plans that the verdict names */
    uint64_t evictable_bytes; /**< unprotected there, if bytes are the problem */
    uint64_t missing_bytes;   /**< how many do not fit, if bytes are the problem */
} tn_explanation_info;

#define TN_EXPLANATION_INFO_INIT                                                                   \
    { sizeof(tn_explanation_info), NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** No expected version. */
#define TN_VERSION_ANY UINT64_MAX

/** What a plan would do at one moment. Evidence, not admission (M169). */
typedef struct tn_explanation tn_explanation;

/**
 * Simulate a plan on the state of this moment: reclaim, reservations, enter, exit. Nothing is
 * changed, no source is called, no payload is allocated, nothing is reaped (M169).
 *
 * @param m                borrowed.
 * @param plan             borrowed.
 * @param expected_version TN_VERSION_ANY, or the state version that it must be for.
 * @param[out] out         owned; end with tn_explanation_drop(). An infeasible plan is a result.
 * @return TN_OK; TN_ERR_KIND; TN_ERR_REENTRANCY; TN_ERR_CLOSED; TN_ERR_STALE; TN_ERR_HOST_MEMORY.
 *
 * Threads:  any.
 * Blocks:   never; takes no lock. Cost: grows with the plan and the live lifetimes, not with the
 *           number of values.
 * Source:   M168..M183.
 */
TN_NODISCARD TN_API tn_status tn_manager_explain(tn_manager *m, const tn_plan *plan,
                                                 uint64_t expected_version, tn_explanation **out);

/** Let an explanation go; NULL is ignored. Threads: one at a time. Blocks: never. */
TN_API void tn_explanation_drop(tn_explanation *e);

/** The head. TN_OK; TN_ERR_KIND. Threads: any. Blocks: never. */
TN_NODISCARD TN_API tn_status tn_explanation_read(const tn_explanation *e,
                                                  tn_explanation_info *out);

/**
 * The first problem in full, as the action alone would have reported it (its status, fields and
 * text); pinned until the explanation is dropped. NULL when feasible, or for NULL.
 *
 * Threads:  any.
 * Blocks:   never.
 */
TN_API const tn_error *tn_explanation_problem(const tn_explanation *e);

/**
 * The actions, in simulation order.
 *
 * @param[out] out      `*inout_count` elements with `size` set in the first; may be NULL if that
 *                      is 0.
 * @param inout_count   in: room; out: the real total.
 * @return TN_OK; TN_ERR_KIND.
 *
 * Threads:  any.
 * Blocks:   never.
 * Source:   M176..M180.
 */
TN_NODISCARD TN_API tn_status tn_explanation_actions(const tn_explanation *e,
                                                     tn_action_explanation *out,
                                                     size_t *inout_count);

/** All reservations of the plan, pinned until the explanation is dropped. TN_OK; TN_ERR_KIND.
 * Threads: any. Blocks: never. Source: M180. */
TN_NODISCARD TN_API tn_status tn_explanation_reservations(const tn_explanation *e,
                                                          const tn_reservation_spec **out,
                                                          size_t *out_count);

/** The predicted peaks: tracked locations in tracking order, then others in the order met; arrays
 * as in tn_explanation_actions(), but without sizes. Threads: any. Blocks: never. Source: M181. */
TN_NODISCARD TN_API tn_status tn_explanation_peaks(const tn_explanation *e, tn_predicted_peak *out,
                                                   size_t *inout_count);

/** What the verdict names; arrays as in tn_explanation_peaks(). Threads: any. Blocks: never. */
TN_NODISCARD TN_API tn_status tn_explanation_blockers(const tn_explanation *e, tn_blocker *out,
                                                      size_t *inout_count);

/** The locations of a discard's protected replicas, if that is the problem (M179); arrays as in
 * tn_explanation_peaks(). Threads: any. Blocks: never. */
TN_NODISCARD TN_API tn_status tn_explanation_protected(const tn_explanation *e, tn_location *out,
                                                       size_t *inout_count);

#ifdef __cplusplus
}
#endif

#endif
