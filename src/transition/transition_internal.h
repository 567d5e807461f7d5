/* SPDX-License-Identifier: MIT */
/*
 * transition: what changes placement. Every transition runs in three steps, and nothing slow ever
 * happens under the writer lock:
 *
 *   admit    under store->lock: wait for conflicting plans, judge by the current version, claim
 *   handles and bytes; after unlocking,
 *            take what will be removed
 *   perform  no lock: source, allocation, copies, waiting for copies
 *   commit   under store->lock: publish, settle the claims, append to the trace
 *
 * Invariants
 *  B2 every claim is settled exactly once, on every path.
 *  F1 after any failure: the state the specification demands, nothing lost, nothing leaked, the
 *     same call can succeed later.
 *  X1 while a plan claims a handle, nobody else replaces that value's record or its
 *     materializations, so pointers to them stay valid without a section.
 *  X2 the trace's order is the order of publication.
 *
 * Called by manager/ with arguments checked (form only), the thread ready (tn__life_thread) and
 * no lock held.
 */
#ifndef TENURE_TRANSITION_INTERNAL_H
#define TENURE_TRANSITION_INTERNAL_H

#include "lifetime/lifetime_internal.h"
#include "plan/plan_internal.h"

typedef struct tn__trans tn__trans;

typedef struct tn__trans_config {
    uint64_t manager;
    tn__store *store;
    tn__life *life;
    tn_driver *driver;
    tn__ring *ring;          /* outlives it */
    uint32_t mode;           /* enum tn_mode */
    uint64_t trace_capacity; /* reports; 0 keeps none, UINT64_MAX no limit */
    uint64_t (*now_ns)(void *context);
    void *now_context;
} tn__trans_config;

TN_NODISCARD tn_status tn__trans_create(const tn__trans_config *config, tn__trans **out);
/* Destroys the internal streams. */
void tn__trans_destroy(tn__trans *t);

uint64_t tn__trans_now(const tn__trans *t);
bool tn__trans_serial(const tn__trans *t);

/* ---- Operations (entry checks and reap included) ---------------------------------------- */

TN_NODISCARD tn_status tn__trans_action(tn__trans *t, tn__thread *thread, const tn_action *action,
                                        tn_stream stream, tn_report *out);
TN_NODISCARD tn_status tn__trans_adopt(tn__trans *t, tn__thread *thread, tn_payload payload,
                                       tn_location at, uint32_t replica_mode,
                                       const tn_reservation *reservation, tn_handle *out);
TN_NODISCARD tn_status tn__trans_register(tn__trans *t, tn__thread *thread,
                                          const tn_value_spec *spec, const tn_source *source,
                                          tn_location at, tn_handle *out);
/* M236..M241. */
TN_NODISCARD tn_status tn__trans_close(tn__trans *t, tn__thread *thread, bool wait, bool force);
/* For a destroy: forced, and whatever cannot be waited for only makes the storage stay for the
 * rest of the process (M148). Fails only for lack of memory, in a section of the host, or in a
 * callback. */
TN_NODISCARD tn_status tn__trans_close_for_destroy(tn__trans *t, tn__thread *thread);

/* ---- Plans (entry checks and reap included; forms are checked) --------------------------- */

typedef struct tn__sequence {
    const char *name;
    const tn_action *actions;
    size_t count;
    tn_run_options options;
} tn__sequence;

/* *out, unless NULL: the report, complete on TN_OK, partial on TN_ERR_PLAN_EXEC. */
TN_NODISCARD tn_status tn__trans_execute(tn__trans *t, tn__thread *thread,
                                         const tn__sequence *given, tn_plan_report **out);
TN_NODISCARD tn_status tn__trans_explain(tn__trans *t, tn__thread *thread, const tn_plan *plan,
                                         uint64_t expected, tn_explanation **out);

/* Scopes: tn_scope of scope.h, whose life outlasts the manager's. */
TN_NODISCARD tn_status tn__scope_create(tn__trans *t, const tn_plan *plan,
                                        const tn_run_options *options, tn_scope **out);
/* What an entry by a use is bound to (D13): the placement number, beside or instead of the version;
 * and what it does while its plan is still in flight, so that nothing can come between the plan
 * and the leases on what it made. `ready` must not call the manager's entry points; its failure
 * ends the entry with its own status, reservations released. */
typedef struct tn__scope_binding {
    uint64_t placement; /* TN_VERSION_ANY */
    tn_status (*ready)(void *context);
    void *context;
    /* claimed beside those of the plan's actions: nobody removes what was found resident */
    const tn_handle *handles;
    size_t handle_count;
} tn__scope_binding;

/* Before it is entered. */
void tn__scope_bind(tn_scope *scope, const tn__scope_binding *binding);
TN_NODISCARD tn_status tn__scope_enter(tn_scope *scope);
TN_NODISCARD tn_status tn__scope_close(tn_scope *scope);
/* End an entered scope without running anything, also while a guard is up: for who has no way to try
 * again. */
void tn__scope_let_go(tn_scope *scope);
TN_NODISCARD tn_status tn__scope_destroy(tn_scope *scope);

/* ---- Trace ------------------------------------------------------------------------------ */

void tn__trans_trace(tn__trans *t, tn_report *out, size_t *inout_count);
void tn__trans_clear_trace(tn__trans *t);

#endif
