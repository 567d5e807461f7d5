/* SPDX-License-Identifier: MIT */
/*
 * Automatic residency: state what an operation needs, get a decision that can be inspected, enter
 * it, borrow, go (C1..C157).
 *
 * Layers: a *request* says what must be true; the *policy* ranks the legal victims; a *decision*
 * records what was chosen, why, and for which state version; its *plan* says how; the manager
 * checks and executes; a *use* decides, enters and borrows in one step.
 *
 * A decision is not a lock: until it is entered the state may change, then entry is TN_ERR_STALE
 * and nothing was done.
 *
 * Departures: D12 (metadata and epochs of forgotten values are freed with them, and so are their
 * stable keys; C9), D13 (binding, below), D14 (in TN_MODE_CONCURRENT the order of accesses of
 * different threads is that of their clocks).
 */
#ifndef TENURE_CONTROLLER_H
#define TENURE_CONTROLLER_H

#include <tenure/plan.h>
#include <tenure/policy.h>
#include <tenure/scope.h>
#include <tenure/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Requests --------------------------------------------------------------------------- */

/** One endpoint that must hold after admission (C35). */
typedef struct tn_requirement {
    tn_handle handle;
    tn_location at;
} tn_requirement;

/** What a request is made of. */
typedef struct tn_request_spec {
    size_t size;
    const char *name; /**< not blank, at most 255 bytes */
    const tn_requirement *requirements;
    size_t requirement_count; /**< at least 1 */
    const tn_reservation_spec *reservations;
    size_t reservation_count;
} tn_request_spec;

#define TN_REQUEST_SPEC_INIT                                                                       \
    { sizeof(tn_request_spec), NULL, NULL, 0, NULL, 0 }

/** An immutable request; belongs to no manager (C42). */
typedef struct tn_request tn_request;

/**
 * Make a request.
 *
 * @param spec          borrowed (copied, C40).
 * @param[out] out      owned; end with tn_request_destroy().
 * @return TN_OK; TN_ERR_KIND NULL, a member that is no requirement or reservation; TN_ERR_VALUE
 *         blank or too long name or label, no requirement, one endpoint twice, bytes above
 *         INT64_MAX; TN_ERR_HOST_MEMORY.
 *
 * Threads:  any.
 * Blocks:   never.
 * Source:   C35..C42.
 */
TN_NODISCARD TN_API tn_status tn_request_create(const tn_request_spec *spec, tn_request **out);

/** Let a request go; NULL is ignored. Decisions and uses made from it stay valid. Threads: one at
 * a time. Blocks: never. */
TN_API void tn_request_destroy(tn_request *request);

/** Its name, pinned until it is destroyed; NULL for NULL. Threads: any. Blocks: never. */
TN_API const char *tn_request_name(const tn_request *request);

/** Its requirements, pinned until it is destroyed. TN_OK; TN_ERR_KIND. Threads: any. Blocks:
 * never. */
TN_NODISCARD TN_API tn_status tn_request_requirements(const tn_request *request,
                                                      const tn_requirement **out,
                                                      size_t *out_count);

/** Its reservations, pinned likewise. Threads: any. Blocks: never. */
TN_NODISCARD TN_API tn_status tn_request_reservations(const tn_request *request,
                                                      const tn_reservation_spec **out,
                                                      size_t *out_count);

/* ---- Controllers ------------------------------------------------------------------------ */

/** What a decision is bound to (D13). */
enum tn_binding {
    /** the mode's default: the full state version in TN_MODE_SERIAL, placement in
     * TN_MODE_CONCURRENT */
    TN_BIND_DEFAULT = 0,
    /** the full state version: any lease or reservation of another thread makes a decision stale */
    TN_BIND_VERSION = 1,
    /** uses are bound to the placement that they decided on, and to their claims; tn_use_enter()
     * protects what it finds or makes before it settles, so neither window of C151 is open */
    TN_BIND_PLACEMENT = 2
};

/** Default of the search limit (C44). */
#define TN_SEARCH_LIMIT_DEFAULT 100000u

/** How a controller works. */
typedef struct tn_controller_config {
    size_t size;
    tn_policy *policy;     /**< kept; NULL: the built-in one without tiers (C25) */
    uint64_t search_limit; /**< states that one decision may visit; at least 1 (C44) */
    uint32_t binding;      /**< enum tn_binding */
    /** how often a use may decide again when its decision went stale before anything was done; 0
     * as in the specification (C151) */
    uint32_t redecisions;
} tn_controller_config;

#define TN_CONTROLLER_CONFIG_INIT                                                                  \
    { sizeof(tn_controller_config), NULL, TN_SEARCH_LIMIT_DEFAULT, TN_BIND_DEFAULT, 0 }

/** Decides for one manager with one policy. Acts only when called (C46). */
typedef struct tn_controller tn_controller;

/**
 * Make a controller.
 *
 * @param m             borrowed; must outlive the controller.
 * @param config        borrowed; NULL: all defaults.
 * @param[out] out      owned; end with tn_controller_destroy().
 * @return TN_OK; TN_ERR_KIND NULL, wrong size, binding out of range; TN_ERR_VALUE search limit 0,
 *         blank policy name (C16); TN_ERR_HOST_MEMORY.
 *
 * Threads:  any.
 * Blocks:   never.
 * Source:   C15, C16, C43..C45.
 */
TN_NODISCARD TN_API tn_status tn_controller_create(tn_manager *m,
                                                   const tn_controller_config *config,
                                                   tn_controller **out);

/** Let a controller go; NULL is ignored. Decisions made by it stay valid; uses must be over.
 * Threads: one at a time. Blocks: never. */
TN_API void tn_controller_destroy(tn_controller *controller);

/** Its manager, borrowed; NULL for NULL. Threads: any. Blocks: never. Source: C43. */
TN_API tn_manager *tn_controller_manager(const tn_controller *controller);

/** Its policy, pinned until it is destroyed; NULL for NULL. Threads: any. Blocks: never. Source:
 * C43. */
TN_API const tn_policy *tn_controller_policy(const tn_controller *controller);

/**
 * Set the hints of one value; replaces the whole record (C5).
 *
 * @param priority      higher is kept longer; default 0.
 * @param stable_key    borrowed (copied); NULL: none; not blank; unique in this controller.
 * @return TN_OK; TN_ERR_KIND; TN_ERR_VALUE key blank, over 255 bytes, or another value's;
 *         TN_ERR_HANDLE; TN_ERR_CLOSED; TN_ERR_REENTRANCY; TN_ERR_HOST_MEMORY. A failing call
 *         changes nothing.
 *
 * Threads:  any.
 * Blocks:   for decisions of this controller that are being made.
 * Source:   C1..C11.
 */
TN_NODISCARD TN_API tn_status tn_controller_set_metadata(tn_controller *controller,
                                                         tn_handle handle, int64_t priority,
                                                         const char *stable_key);

/* ---- Decisions -------------------------------------------------------------------------- */

/** Why a victim could go (C113). */
enum tn_eviction_reason {
    TN_EVICTION_NONE = 0,
    TN_EVICTION_REPLICA_REMAINS = 1,   /**< dropped: another replica keeps the value */
    TN_EVICTION_SOURCE_REBUILDS = 2,   /**< dropped: its source can rebuild it */
    TN_EVICTION_MOVED_TO_REQUIRED = 3, /**< moved to an endpoint that the request asks for */
    TN_EVICTION_MOVED_TO_TIER = 4      /**< moved to a fallback tier */
};

/** One victim (C112). */
typedef struct tn_eviction {
    size_t size;
    tn_action action; /**< a drop or a move */
    uint64_t rank;    /**< position among the candidates of its location */
    tn_location released_at;
    uint64_t released_bytes;
    uint32_t reason;    /**< enum tn_eviction_reason */
    uint32_t reserved0; /**< always 0 */
} tn_eviction;

#define TN_EVICTION_INIT                                                                           \
    { sizeof(tn_eviction), {0, 0, {0, 0, NULL}, {0, 0}, {0, 0}}, 0, {0, 0}, 0, 0, 0 }

/** The head of a decision (C111). */
typedef struct tn_decision_info {
    size_t size;
    uint64_t manager;
    uint64_t expected_version;
    uint64_t explored_states; /**< at least 1 (C96) */
    const char *policy;       /**< name; pinned until the decision is dropped */
    uint64_t eviction_count;
    uint64_t config_count;
} tn_decision_info;

#define TN_DECISION_INFO_INIT                                                                      \
    { sizeof(tn_decision_info), 0, 0, 0, NULL, 0, 0 }

/** What was decided, for one state version. Immutable; means nothing to another manager (C115). */
typedef struct tn_decision tn_decision;

/**
 * Decide how a request can be met: which victims go where, then what is made. Changes nothing
 * (C50, C57). Reads one version and one scan; takes no lock of the manager.
 *
 * @param request       borrowed.
 * @param[out] out      owned; end with tn_decision_drop().
 * @return TN_OK; TN_ERR_KIND; TN_ERR_HANDLE; TN_ERR_OWNERSHIP an exclusive value is required twice
 *         (C52); TN_ERR_PLAN infeasible, with the failing check of the initial state (C102: cause,
 *         location, budget, used, reserved, requested bytes, handle or label) and a verdict, or
 *         the dry run's reason (C55); TN_ERR_SEARCH_LIMIT inconclusive (C98: `expected` the limit,
 *         `actual` the explored states); TN_ERR_STALE; TN_ERR_POLICY; what the policy reports;
 *         TN_ERR_VALUE a blank key in the policy's configuration; TN_ERR_CLOSED;
 *         TN_ERR_REENTRANCY; TN_ERR_DRIVER from the reap; TN_ERR_HOST_MEMORY.
 *
 * Threads:  any; decisions of one controller are made one at a time (C149).
 * Blocks:   for other decisions of this controller.
 * Source:   C49..C110, C158..C164.
 */
TN_NODISCARD TN_API tn_status tn_controller_decide(tn_controller *controller,
                                                   const tn_request *request, tn_decision **out);

/** Let a decision go; NULL is ignored. Threads: one at a time. Blocks: never. */
TN_API void tn_decision_drop(tn_decision *decision);

/** The head. TN_OK; TN_ERR_KIND. Threads: any. Blocks: never. */
TN_NODISCARD TN_API tn_status tn_decision_read(const tn_decision *decision, tn_decision_info *out);

/** The request, pinned until the decision is dropped; NULL for NULL. Threads: any. Blocks: never.
 */
TN_API const tn_request *tn_decision_request(const tn_decision *decision);

/** The plan, pinned likewise: reclaim in walk order, reservations, entry actions, no exit (C107).
 * Threads: any. Blocks: never. */
TN_API const tn_plan *tn_decision_plan(const tn_decision *decision);

/** The dry run of the plan, pinned likewise (C109, C110). Threads: any. Blocks: never. */
TN_API const tn_explanation *tn_decision_explanation(const tn_decision *decision);

/**
 * The victims, one per reclaim action, in order.
 *
 * @param[out] out      `*inout_count` elements with `size` set in the first; may be NULL if that
 *                      is 0.
 * @param inout_count   in: room; out: the real total.
 * @return TN_OK; TN_ERR_KIND.
 *
 * Threads:  any.
 * Blocks:   never.
 * Source:   C112.
 */
TN_NODISCARD TN_API tn_status tn_decision_evictions(const tn_decision *decision, tn_eviction *out,
                                                    size_t *inout_count);

/** The policy's configuration when it was decided, pinned likewise. TN_OK; TN_ERR_KIND. Threads:
 * any. Blocks: never. Source: C111. */
TN_NODISCARD TN_API tn_status tn_decision_config(const tn_decision *decision,
                                                 const tn_config_pair **out, size_t *out_count);

/**
 * Wrap a decision in a scope that expects its version.
 *
 * @param decision      borrowed; of this manager, by a policy equal to this controller's now
 *                      (C116, C117).
 * @param streams       borrowed (copied), transfer streams; checked at entry (C119).
 * @param[out] out      owned; end with tn_scope_destroy().
 * @return TN_OK; TN_ERR_KIND; TN_ERR_HANDLE another manager's decision; TN_ERR_PLAN the policy is
 *         another one or has changed; TN_ERR_HOST_MEMORY.
 *
 * Threads:  any.
 * Blocks:   never.
 * Source:   C116..C123.
 */
TN_NODISCARD TN_API tn_status tn_controller_scope(tn_controller *controller,
                                                  const tn_decision *decision,
                                                  const tn_transfer_stream *streams,
                                                  size_t stream_count, tn_scope **out);

/* ---- Uses ------------------------------------------------------------------------------- */

/** Streams of a use (C131..C134). */
typedef struct tn_use_options {
    size_t size;
    const tn_transfer_stream *consumers; /**< exactly the required CUDA locations (C133) */
    size_t consumer_count;
    const tn_transfer_stream *transfers; /**< any CUDA locations (C134) */
    size_t transfer_count;
} tn_use_options;

#define TN_USE_OPTIONS_INIT                                                                        \
    { sizeof(tn_use_options), NULL, 0, NULL, 0 }

/** Decide, enter and borrow in one step. One flow of control at a time (C156). */
typedef struct tn_use tn_use;

/**
 * Make a use. Does not look at the manager's state.
 *
 * @param controller    borrowed; must outlive the use.
 * @param request       borrowed (kept alive by the use).
 * @param options       borrowed (copied); NULL: no streams.
 * @param[out] out      owned; end with tn_use_destroy().
 * @return TN_OK; TN_ERR_KIND; TN_ERR_VALUE a host location as key, a stream of another device, a
 *         consumer stream missing or unexpected (the detail names them); TN_ERR_HOST_MEMORY.
 *
 * Threads:  any.
 * Blocks:   never.
 * Source:   C131..C134.
 */
TN_NODISCARD TN_API tn_status tn_use_create(tn_controller *controller, const tn_request *request,
                                            const tn_use_options *options, tn_use **out);

/**
 * Enter: if everything is resident and the reservations fit, only leases and reservations are
 * taken (a *hit*: no lock, no allocation); else decide, run the plan, and borrow.
 *
 * In TN_BIND_PLACEMENT a hit has neither decision nor report (tn_use_decision() and tn_use_report()
 * give NULL). A decision is made again up to `redecisions` times if it went stale before anything
 * was done, or if what it found resident was removed before it could be borrowed.
 *
 * @return TN_OK; TN_ERR_MISUSE it was entered before (C135); else the first failing step's error
 *         (of tn_controller_decide(), tn_scope_enter(), tn_manager_acquire()): what was opened is
 *         closed again, transitions that were executed stay, the use is over (C137).
 *
 * Threads:  one at a time.
 * Blocks:   on a hit never; else as tn_controller_decide() and tn_scope_enter().
 * Source:   C124..C130, C135..C137, C151.
 */
TN_NODISCARD TN_API tn_status tn_use_enter(tn_use *use);

/**
 * Exit: leases in reverse order, then the reservations. Waits for nothing (C140); device leases
 * protect until their streams' work is done.
 *
 * @return TN_OK, also for a second exit; TN_ERR_MISUSE it was never entered; TN_ERR_REENTRANCY
 *         inside or during a source callback: it stays entered, exit it again; the first other
 *         error of a release, after which the rest was done and the use is over (C143). What could
 *         not be released is tried again by tn_use_reset() and tn_use_destroy().
 *
 * Threads:  one at a time; may be another thread than the one that entered.
 * Blocks:   never.
 * Source:   C140..C146.
 */
TN_NODISCARD TN_API tn_status tn_use_exit(tn_use *use);

/**
 * Make a use fresh again, with the same request and streams; its memory is kept, so a loop of
 * enter, exit, reset over resident values allocates nothing.
 *
 * @return TN_OK; TN_ERR_KIND; TN_ERR_MISUSE it is entered and has not been exited.
 *
 * Threads:  one at a time.
 * Blocks:   never.
 */
TN_NODISCARD TN_API tn_status tn_use_reset(tn_use *use);

/** Free a use; NULL is ignored. One that is entered is exited first, also inside or during a source
 * callback. Threads: one at a time. Blocks: never. */
TN_API void tn_use_destroy(tn_use *use);

/** Whether it is entered and not exited. Threads: any. Blocks: never. */
TN_API bool tn_use_active(const tn_use *use);

/**
 * The payload of one requirement.
 *
 * @param[out] out      borrowed until the use is exited.
 * @return TN_OK; TN_ERR_KIND; TN_ERR_MISUSE before entry; TN_ERR_LIFETIME_CLOSED after exit;
 *         TN_ERR_LOOKUP the pair is not in the request (C138); TN_ERR_UNAVAILABLE after a forced
 *         close of the manager.
 *
 * Threads:  any, while the use is entered.
 * Blocks:   never.
 * Source:   C138, C139.
 */
TN_NODISCARD TN_API tn_status tn_use_value(const tn_use *use, tn_handle handle, tn_location at,
                                           const void **out);

/** How many values it has: the request's requirements. Errors as tn_use_value(). Threads: any.
 * Blocks: never. Source: C138. */
TN_NODISCARD TN_API tn_status tn_use_count(const tn_use *use, size_t *out);

/**
 * Walk the values by lease: locations in order of first mention, in each in requirement order.
 *
 * @param inout_cursor  in: 0 to begin; out: pass it again.
 * @param[out] out_requirement which one.
 * @param[out] out      its payload, as tn_use_value().
 * @param[out] out_more false: there was no further one.
 * @return as tn_use_value().
 *
 * Threads:  any, while the use is entered.
 * Blocks:   never.
 * Source:   C138.
 */
TN_NODISCARD TN_API tn_status tn_use_next(const tn_use *use, size_t *inout_cursor,
                                          tn_requirement *out_requirement, const void **out,
                                          bool *out_more);

/**
 * The reservations of an entered use, in the request's order, e.g. for tn_manager_adopt_reserved():
 * what an operation writes takes the bytes that its use holds. They are the use's: one that is
 * released by hand is simply gone.
 *
 * @param[out] out      `*inout_count` elements; may be NULL if that is 0.
 * @param inout_count   in: room; out: the real total, 0 unless entered.
 * @return TN_OK; TN_ERR_KIND.
 *
 * Threads:  any, while the use is entered.
 * Blocks:   never.
 * Source:   C63, C140, M213.
 */
TN_NODISCARD TN_API tn_status tn_use_reservations(const tn_use *use, tn_reservation *out,
                                                  size_t *inout_count);

/** What a use did. */
typedef struct tn_use_info {
    size_t size;
    uint32_t entered;     /**< 1: entered and not exited */
    uint32_t hit;         /**< 1: the last entry found everything resident */
    uint64_t redecisions; /**< how often the last entry decided again */
    uint64_t epoch;       /**< of the last successful entry; 0: none */
} tn_use_info;

#define TN_USE_INFO_INIT                                                                           \
    { sizeof(tn_use_info), 0, 0, 0, 0 }

/** Read it. TN_OK; TN_ERR_KIND. Threads: one at a time. Blocks: never. */
TN_NODISCARD TN_API tn_status tn_use_read(const tn_use *use, tn_use_info *out);

/**
 * The decision of the last entry.
 *
 * @param[out] out      pinned until the use is reset or destroyed; NULL after a hit under
 *                      TN_BIND_PLACEMENT.
 * @return TN_OK; TN_ERR_KIND; TN_ERR_MISUSE there is none yet (C139).
 *
 * Threads:  one at a time.
 * Blocks:   never.
 * Source:   C137, C139, C144.
 */
TN_NODISCARD TN_API tn_status tn_use_decision(const tn_use *use, const tn_decision **out);

/** The scope's report: after exit, or after an entry that failed later; NULL: absent. Pinned until
 * the use is reset or destroyed. TN_OK; TN_ERR_KIND. Threads: one at a time. Blocks: never.
 * Source: C137, C144. */
TN_NODISCARD TN_API tn_status tn_use_report(const tn_use *use, const tn_plan_report **out);

/** The transitions that were committed when the scope's entry failed half-way
 * (TN_ERR_PLAN_EXEC); NULL: no such failure. As tn_use_report(). Threads: one at a time. Blocks:
 * never. Source: C123, C137. */
TN_NODISCARD TN_API tn_status tn_use_partial_report(const tn_use *use, const tn_plan_report **out);

/** The scope's exit error; NULL: none. As tn_use_report(). Threads: one at a time. Blocks: never.
 * Source: C145. */
TN_NODISCARD TN_API tn_status tn_use_exit_error(const tn_use *use, const tn_error **out);

#ifdef __cplusplus
}
#endif

#endif
