/* SPDX-License-Identifier: MIT */
/*
 * Running plans: sequences of actions, scopes, and their reports (M184..M216).
 *
 * A plan is admitted as a whole: its handles, the most bytes it needs at each location, and its
 * removals are claimed before its first step, so a feasible plan can fail half-way only for the
 * causes that a simulation cannot see (M172). A plan that does not fit only because of others in
 * flight waits for them and is judged again. In TN_MODE_SERIAL a sequence, an entry and an exit
 * are each indivisible among mutations (M256); in TN_MODE_CONCURRENT plans with different handles
 * overlap.
 *
 * Departures: D2 (lifetime operations on other values may be ordered between the parts of a plan),
 * D3 (in TN_MODE_CONCURRENT several plans with different handles may be admitted by one expected
 * version, and a waiting action may be judged, and refused, between two actions of a plan in flight;
 * an exit action that would have to wait inside a source callback of another manager fails with cause
 * TN_ERR_REENTRANCY),
 * D15 (an entered scope that is destroyed releases its reservations and warns; there is no garbage
 * collection).
 */
#ifndef TENURE_SCOPE_H
#define TENURE_SCOPE_H

#include <tenure/error.h>
#include <tenure/lease.h>
#include <tenure/plan.h>
#include <tenure/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The transfer stream of one destination (M218). */
typedef struct tn_transfer_stream {
    tn_location at;   /**< a CUDA location; a host location is refused when it is used */
    tn_stream stream; /**< of that device */
} tn_transfer_stream;

/** How a sequence or scope runs. */
typedef struct tn_run_options {
    size_t size;
    uint64_t expected_version;         /**< TN_VERSION_ANY, or the version it was decided for */
    const tn_transfer_stream *streams; /**< borrowed (copied); each location once */
    size_t stream_count;
} tn_run_options;

#define TN_RUN_OPTIONS_INIT                                                                        \
    { sizeof(tn_run_options), TN_VERSION_ANY, NULL, 0 }

/* ---- Reports ---------------------------------------------------------------------------- */

/** What a sequence or scope did, complete or partial (M188, M207). */
typedef struct tn_plan_report tn_plan_report;

/** The head of a report. */
typedef struct tn_plan_report_info {
    size_t size;
    const char *plan;          /**< pinned until the report is dropped */
    uint32_t complete;         /**< 1: everything ran */
    uint32_t reserved0;        /**< always 0 */
    uint64_t transition_count; /**< reclaim, enter and exit, or execute, in this order */
    uint64_t reclaim_count;
    uint64_t enter_count; /**< or of the one part of a sequence */
    uint64_t exit_count;
    uint64_t started_at_ns;   /**< Unix nanoseconds, taken before waiting for others */
    uint64_t completed_at_ns; /**< never before started_at_ns */
} tn_plan_report_info;

#define TN_PLAN_REPORT_INFO_INIT                                                                   \
    { sizeof(tn_plan_report_info), NULL, 0, 0, 0, 0, 0, 0, 0, 0 }

/** The head. TN_OK; TN_ERR_KIND. Threads: any. Blocks: never. */
TN_NODISCARD TN_API tn_status tn_plan_report_read(const tn_plan_report *report,
                                                  tn_plan_report_info *out);

/**
 * The reports of the actions that were completed, in order.
 *
 * @param[out] out      `*inout_count` elements with `size` set in the first; may be NULL if that
 *                      is 0.
 * @param inout_count   in: room; out: the real total.
 * @return TN_OK; TN_ERR_KIND.
 *
 * Threads:  any.
 * Blocks:   never.
 * Source:   M84, M188, M207, M246.
 */
TN_NODISCARD TN_API tn_status tn_plan_report_transitions(const tn_plan_report *report,
                                                         tn_report *out, size_t *inout_count);

/** Let a report go; NULL is ignored. Threads: one at a time. Blocks: never. */
TN_API void tn_plan_report_drop(tn_plan_report *report);

/* ---- Sequences -------------------------------------------------------------------------- */

/**
 * Run actions in order, as one plan.
 *
 * @param m             borrowed.
 * @param name          for reports and errors; NULL: "actions"; not blank, at most 255 bytes.
 * @param actions       borrowed; `count` of them, 0 is allowed (M185).
 * @param options       borrowed; NULL: no expected version, each device's own stream.
 * @param[out] out      NULL, or the report: complete on TN_OK, partial on TN_ERR_PLAN_EXEC, else
 *                      NULL. Owned; end with tn_plan_report_drop().
 * @return TN_OK; TN_ERR_KIND; TN_ERR_VALUE name, or a stream that does not fit its location;
 *         TN_ERR_STALE, TN_ERR_PLAN (with the cause and a verdict): nothing ran;
 *         TN_ERR_PLAN_EXEC: a prefix is committed, the detail has the failed action and the fields
 *         of its error; TN_ERR_DRIVER from the reap (M165); TN_ERR_HOST_MEMORY, TN_ERR_SYSTEM:
 *         nothing ran.
 *
 * Threads:  any.
 * Blocks:   as the actions do; first for plans in flight that it conflicts with.
 * Ordering: release to whoever acquires what it installs.
 * Source:   M127, M184..M188, M245..M248, M256.
 */
TN_NODISCARD TN_API tn_status tn_manager_execute_actions(tn_manager *m, const char *name,
                                                         const tn_action *actions, size_t count,
                                                         const tn_run_options *options,
                                                         tn_plan_report **out);

/* ---- Scopes ----------------------------------------------------------------------------- */

/** One use of a plan: entered once, closed once. Safe to use from several threads (M216, M259). */
typedef struct tn_scope tn_scope;

/**
 * Make a scope. Touches no state: works inside callbacks and on a closed manager.
 *
 * @param m             borrowed; a scope that outlives it counts as closed.
 * @param plan          borrowed (kept alive by the scope).
 * @param options       borrowed (copied); NULL: no expected version, each device's own stream.
 *                      Streams are checked at entry (M218).
 * @param[out] out      owned; end with tn_scope_destroy().
 * @return TN_OK; TN_ERR_KIND; TN_ERR_FORKED; TN_ERR_HOST_MEMORY.
 *
 * Threads:  any, also inside callbacks.
 * Blocks:   never.
 * Source:   M200, M220.
 */
TN_NODISCARD TN_API tn_status tn_scope_create(tn_manager *m, const tn_plan *plan,
                                              const tn_run_options *options, tn_scope **out);

/**
 * Enter it: reclaim, reservations, enter actions, after a preflight of the whole plan.
 *
 * @return TN_OK; TN_ERR_MISUSE it was entered before, whatever came out of it. Every other failure
 *         consumes and closes the scope (M203): TN_ERR_REENTRANCY; TN_ERR_CLOSED; TN_ERR_STALE;
 *         TN_ERR_VALUE or TN_ERR_KIND a stream; TN_ERR_PLAN: nothing ran; TN_ERR_PLAN_EXEC: a
 *         prefix of the transitions is committed (tn_scope_partial_report()), the reservations are
 *         released; TN_ERR_DRIVER; TN_ERR_HOST_MEMORY; TN_ERR_SYSTEM.
 *
 * Threads:  any.
 * Blocks:   as tn_manager_execute_actions().
 * Source:   M201..M205, M216.
 */
TN_NODISCARD TN_API tn_status tn_scope_enter(tn_scope *scope);

/**
 * Close it: exit actions without a new preflight, then its reservations, last first, in any case.
 *
 * @return TN_OK, also if it is closed already; TN_ERR_MISUSE it was never entered;
 *         TN_ERR_REENTRANCY inside or during a source callback, the scope stays as it is (G25);
 *         TN_ERR_CLOSED the manager was closed meanwhile; TN_ERR_PLAN_EXEC an exit action failed:
 *         the rest is not run, then or later, and the scope is closed; TN_ERR_DRIVER from the
 *         reap, TN_ERR_HOST_MEMORY before anything ran: the scope stays entered.
 *
 * Threads:  any.
 * Blocks:   for an entry in progress, for the actions.
 * Source:   M206..M211, M216.
 */
TN_NODISCARD TN_API tn_status tn_scope_close(tn_scope *scope);

/**
 * Free a scope. One that is entered releases its reservations, last first, runs no exit action,
 * and gives one diagnostic (TN_DIAGNOSTIC_SCOPE_ABANDONED) that names its plan.
 *
 * @param scope         consumed on TN_OK; NULL is ignored.
 * @return TN_OK; TN_ERR_REENTRANCY an entered scope inside or during a source callback: it stays
 *         as it is (G26); TN_ERR_HOST_MEMORY a thread's first call.
 *
 * Threads:  one at a time, no other call on `scope` in progress.
 * Blocks:   never.
 * Source:   M214.
 */
TN_NODISCARD TN_API tn_status tn_scope_destroy(tn_scope *scope);

/** Whether it is entered and not closed yet. Threads: any. Blocks: never. */
TN_API bool tn_scope_active(const tn_scope *scope);

/** Its manager's id; 0 for NULL. Threads: any. Blocks: never. Source: M200. */
TN_API uint64_t tn_scope_manager(const tn_scope *scope);

/** Its plan, pinned until the scope is destroyed; NULL for NULL. Threads: any. Blocks: never.
 * Source: M200. */
TN_API const tn_plan *tn_scope_plan(const tn_scope *scope);

/** The version it expects; TN_VERSION_ANY for none or NULL. Threads: any. Blocks: never.
 * Source: M200. */
TN_API uint64_t tn_scope_expected_version(const tn_scope *scope);

/**
 * The complete report; exists after a successful close only.
 *
 * @param[out] out      pinned until the scope is destroyed; NULL: absent.
 * @return TN_OK; TN_ERR_KIND.
 *
 * Threads:  any.
 * Blocks:   never.
 * Source:   M207.
 */
TN_NODISCARD TN_API tn_status tn_scope_report(const tn_scope *scope, const tn_plan_report **out);

/** The transitions that were committed when an entry or exit failed with TN_ERR_PLAN_EXEC; NULL:
 * no such failure. As tn_scope_report(). Threads: any. Blocks: never. Source: M204, M208. */
TN_NODISCARD TN_API tn_status tn_scope_partial_report(const tn_scope *scope,
                                                      const tn_plan_report **out);

/**
 * The error of a failed exit, kept for a caller whose body failed too (M210).
 *
 * @param[out] out      pinned until the scope is destroyed; NULL: none.
 * @return TN_OK; TN_ERR_KIND.
 *
 * Threads:  any.
 * Blocks:   never.
 * Source:   M208, M210.
 */
TN_NODISCARD TN_API tn_status tn_scope_exit_error(const tn_scope *scope, const tn_error **out);

/**
 * The reservations of an entered scope, in the plan's order, e.g. for tn_manager_adopt_reserved().
 * They are the scope's: one that is released by hand is simply gone.
 *
 * @param[out] out      `*inout_count` elements; may be NULL if that is 0.
 * @param inout_count   in: room; out: the real total, 0 unless entered.
 * @return TN_OK; TN_ERR_KIND.
 *
 * Threads:  any.
 * Blocks:   never.
 * Source:   M213.
 */
TN_NODISCARD TN_API tn_status tn_scope_reservations(const tn_scope *scope, tn_reservation *out,
                                                    size_t *inout_count);

#ifdef __cplusplus
}
#endif

#endif
