/* SPDX-License-Identifier: MIT */
/*
 * Scopes (M200..M216). A scope's state changes under store->lock only, and whoever waits for
 * another call on it waits with everybody else on flow.changed: so raising the callback guard wakes
 * and refuses waiters (M193, G25), and no scope has a lock of its own.
 *
 * A scope may outlive its manager: the manager's end closes all scopes that still exist.
 */
#include <string.h>

#include "transition/transition_priv.h"

enum state { FRESH, ENTERING, ENTERED, CLOSING, CLOSED };

struct tn_scope {
    tn_scope *next;           /* trans->scopes; under store->lock */
    tn__trans *_Atomic trans; /* NULL: the manager is gone */
    uint64_t manager;
    const tn_plan *plan;
    uint64_t expected;
    tn__scope_binding binding;
    tn_transfer_stream *streams;
    size_t stream_count;
    /* written under store->lock. [scope-state] release; what a thread reads after an acquire of
     * ENTERED or CLOSED does not change in that state */
    _Atomic uint32_t state;
    tn_reservation *reservations; /* room for the plan's */
    size_t reserved;              /* how many were made; read while ENTERED only */
    tn__plan_report *report;      /* of the entry, then also of the exit */
    bool partial;                 /* an entry or exit failed half-way */
    tn_error exit_error;          /* status 0: none */
};

static enum state state_of(const tn_scope *scope) {
    /* [scope-state] acquire. Pairs: set_state(). Orders: the state -> report, error and
     * reservations. Without: a report is read half-written. */
    return (enum state)tn__load_acq(&scope->state);
}

static void set_state(tn_scope *scope, enum state state) {
    tn__store_rel(&scope->state, (uint32_t)state); /* [scope-state] */
}

/* ---- Life of the object ----------------------------------------------------------------- */

static void scope_free(tn_scope *scope) {
    tn__plan_let_go(scope->plan);
    tn_plan_report_drop(scope->report);
    tn__free(scope->streams);
    tn__free(scope->reservations);
    tn__free(scope);
}

/* Everything that entry and exit need is made here, so that they fail for fewer reasons. */
static bool scope_fill(tn_scope *scope, const tn_plan *plan, const tn_run_options *options) {
    size_t actions = plan->reclaim.count + plan->enter.count + plan->exit.count;
    scope->expected = options->expected_version;
    scope->binding.placement = TN_VERSION_ANY;
    scope->stream_count = options->stream_count;
    scope->reservations = tn__alloc(plan->reservation_count * sizeof *scope->reservations);
    scope->streams = tn__alloc(options->stream_count * sizeof *scope->streams);
    if (!scope->reservations || !scope->streams)
        return false;
    if (options->stream_count)
        memcpy(scope->streams, options->streams, options->stream_count * sizeof *scope->streams);
    return tn__plan_report_create(plan->name, actions, &scope->report) == TN_OK;
}

tn_status tn__scope_create(tn__trans *t, const tn_plan *plan, const tn_run_options *options,
                           tn_scope **out) {
    tn_scope *scope = tn__zalloc(sizeof *scope);
    if (!scope)
        return tn__no_memory();
    tn__plan_keep(plan);
    scope->plan = plan;
    scope->manager = t->manager;
    if (!scope_fill(scope, plan, options)) {
        scope_free(scope);
        return tn__no_memory();
    }
    tn__store_rlx(&scope->trans, t); /* [no-order] not shared yet */
    tn__lock(&t->store->lock);
    scope->next = t->scopes;
    t->scopes = scope;
    tn__unlock(&t->store->lock);
    *out = scope;
    return TN_OK;
}

void tn__scope_bind(tn_scope *scope, const tn__scope_binding *binding) {
    scope->binding = *binding;
}

static void unlink_scope(tn__trans *t, tn_scope *scope) {
    tn_scope **at = &t->scopes;
    while (*at != scope)
        at = &(*at)->next;
    *at = scope->next;
}

void tn__scopes_orphan(tn__trans *t) {
    for (tn_scope *scope = t->scopes; scope; scope = scope->next) {
        tn__store_rlx(&scope->trans, NULL); /* [no-order] no other call is in progress */
        scope->reserved = 0;                /* closed with the manager */
        set_state(scope, CLOSED);
    }
    t->scopes = NULL;
}

/* NULL: the manager is gone. */
static tn__trans *trans_of(const tn_scope *scope) {
    return tn__load_rlx(&scope->trans); /* [no-order] changes only while no call is in progress */
}

static void finish(tn__trans *t, tn_scope *scope, enum state state) {
    tn__lock(&t->store->lock);
    set_state(scope, state);
    tn__flow_wake(t);
    tn__unlock(&t->store->lock);
}

/* ---- Entry ------------------------------------------------------------------------------ */

static tn_status run_entry(tn__trans *t, tn__thread *thread, tn_scope *scope) {
    tn__course *c = tn__zalloc(sizeof *c);
    if (!c)
        return tn__no_memory();
    c->t = t;
    c->thread = thread;
    c->name = scope->plan->name;
    tn__plan_parts(scope->plan, c->parts);
    c->part_count = TN__PLAN_PARTS;
    c->run_count = TN__PLAN_PARTS - 1; /* the exit is looked at, and runs later */
    c->expected = scope->expected;
    c->placement = scope->binding.placement;
    c->ready = scope->binding.ready;
    c->ready_context = scope->binding.context;
    c->more = scope->binding.handles;
    c->more_count = scope->binding.handle_count;
    c->streams = scope->streams;
    c->stream_count = scope->stream_count;
    c->reservations = scope->reservations;
    c->report = scope->report;
    tn_status status = tn__course_run(c);
    scope->reserved = c->reserved;
    scope->partial = status == TN_ERR_PLAN_EXEC;
    tn__free(c);
    return status;
}

static tn_status entry(tn__trans *t, tn_scope *scope) {
    tn__thread *thread;
    tn_status status = tn__life_begin(t->life, false, &thread);
    if (status == TN_OK)
        status = tn__life_reap_manual(t->life);
    if (status != TN_OK)
        return status;
    tn__frame frame;
    tn__frame_push(thread, &frame, t->manager, false);
    status = run_entry(t, thread, scope);
    tn__frame_pop(thread, &frame);
    return status;
}

/* In a forked child, where no lock may be taken: it counts as entered, in vain. */
static tn_status enter_forked(tn__trans *t, tn_scope *scope) {
    if (state_of(scope) != FRESH)
        return tn__fail(TN_ERR_MISUSE, "the scope was entered before");
    set_state(scope, CLOSED);
    return tn__life_enter_parent(t->life);
}

tn_status tn__scope_enter(tn_scope *scope) {
    tn__trans *t = trans_of(scope);
    if (!t) /* the manager is gone, and has closed it */
        return tn__fail(TN_ERR_MISUSE, "the scope was used before");
    if (tn__life_forked(t->life))
        return enter_forked(t, scope);
    uint64_t started = tn__trans_now(t);
    tn__lock(&t->store->lock);
    bool fresh = state_of(scope) == FRESH;
    if (fresh)
        set_state(scope, ENTERING);
    tn__unlock(&t->store->lock);
    if (!fresh)
        return tn__fail(TN_ERR_MISUSE, "the scope was entered before");
    scope->report->started_at_ns = started;
    tn_status status = entry(t, scope);
    finish(t, scope, status == TN_OK ? ENTERED : CLOSED); /* M203 */
    return status;
}

/* ---- Exit ------------------------------------------------------------------------------- */

/* Claims handles only, and judges each action as it comes (M206). */
static tn_status exit_steps(tn__trans *t, tn__thread *thread, tn_scope *scope,
                            const tn__sim_part *part, tn__ticket *ticket) {
    for (size_t i = 0; i < part->count; i++) {
        tn__run run = {.t = t,
                       .thread = thread,
                       .action = part->actions[i],
                       .stream =
                           tn__streams_for(scope->streams, scope->stream_count, &part->actions[i]),
                       .ticket = ticket};
        if (tn__step_run(&run) != TN_OK)
            return tn__plan_failed(scope->plan->name, part, i);
        tn__plan_report_add(scope->report, part->phase, &run.report);
    }
    return TN_OK;
}

static tn_status run_exit(tn__trans *t, tn__thread *thread, tn_scope *scope) {
    tn__sim_part part = {TN_PHASE_EXIT, scope->plan->exit.actions, NULL, scope->plan->exit.count};
    tn__ticket ticket = {.needs = NULL};
    tn__judge by = {NULL, NULL, NULL, false};
    uint64_t *handles;
    if (!tn__handles_of(t->manager, &part, 1, NULL, 0, &handles, &ticket.handle_count))
        return tn__no_memory();
    ticket.handles = handles;
    tn_status status = tn__flow_admit(t, thread, &ticket, &by);
    if (status == TN_OK) {
        tn__unlock(&t->store->lock);
        status = exit_steps(t, thread, scope, &part, &ticket);
        tn__release_all(scope->reservations, scope->reserved); /* before anybody else's turn */
        tn__lock(&t->store->lock);
        tn__flow_leave(t, &ticket);
        tn__unlock(&t->store->lock);
        tn__life_wake(t->life);
    }
    tn__free(handles);
    return status;
}

/* Wait for the call of another thread on this scope, on a closed manager too: then CLOSING is ours
 * if it is ENTERED. `status`: whether the manager is open. */
static tn_status claim_close(tn__trans *t, tn_scope *scope, tn_status status, enum state *found) {
    tn__lock(&t->store->lock);
    while (((*found = state_of(scope)) == ENTERING || *found == CLOSING) &&
           (status == TN_OK || status == TN_ERR_CLOSED))
        status = tn__flow_wait(t, tn__thread_self());
    if (status == TN_ERR_CLOSED && *found == CLOSED)
        status = TN_OK;
    if (status == TN_OK && *found == ENTERED)
        set_state(scope, CLOSING);
    tn__unlock(&t->store->lock);
    return status;
}

/* What ran, or that nothing did: the scope stays entered if the exit was not admitted (G25). */
static tn_status close_entered(tn__trans *t, tn__thread *thread, tn_scope *scope) {
    tn__frame frame;
    tn_status status = tn__life_reap_manual(t->life);
    if (status != TN_OK) {
        finish(t, scope, ENTERED);
        return status;
    }
    tn__frame_push(thread, &frame, t->manager, false);
    status = run_exit(t, thread, scope);
    tn__frame_pop(thread, &frame);
    if (status == TN_ERR_PLAN_EXEC) {
        scope->exit_error = *tn__error_current();
        scope->partial = true;
    }
    tn__plan_report_end(scope->report, tn__trans_now(t), status == TN_OK);
    bool over = status == TN_OK || status == TN_ERR_PLAN_EXEC || status == TN_ERR_CLOSED;
    finish(t, scope, over ? CLOSED : ENTERED);
    return status;
}

/* M211: there is nothing to run; what is left of the reservations goes. */
static tn_status close_closed(tn__trans *t, tn_scope *scope) {
    tn_error kept = *tn__error_current();
    tn__release_all(scope->reservations, scope->reserved);
    finish(t, scope, CLOSED);
    return tn__error_restore(&kept);
}

tn_status tn__scope_close(tn_scope *scope) {
    enum state found = state_of(scope);
    tn__trans *t = trans_of(scope);
    tn__thread *thread = NULL;
    if (found == FRESH)
        return tn__fail(TN_ERR_MISUSE, "the scope was never entered");
    if (found == CLOSED || !t)
        return TN_OK;
    tn_status status = tn__life_begin(t->life, false, &thread);
    if (status == TN_OK || status == TN_ERR_CLOSED)
        status = claim_close(t, scope, status, &found);
    if (status == TN_ERR_CLOSED)
        return close_closed(t, scope);
    if (status != TN_OK || found == CLOSED)
        return status;
    return close_entered(t, thread, scope);
}

void tn__scope_let_go(tn_scope *scope) {
    tn__trans *t = trans_of(scope);
    if (!t || tn__life_forked(t->life) || state_of(scope) != ENTERED)
        return;
    tn__release_all(scope->reservations, scope->reserved);
    scope->reserved = 0;
    finish(t, scope, CLOSED);
}

/* ---- Destroy ---------------------------------------------------------------------------- */

static void warn_abandoned(tn__trans *t, const tn_scope *scope) {
    char text[320] = "scope abandoned: ";
    strncat(text, scope->plan->name, sizeof text - strlen(text) - 1);
    tn__life_warn(t->life, TN_DIAGNOSTIC_SCOPE_ABANDONED, TN_OK, tn_location_none(), text);
}

/* M214, G26. */
static tn_status abandon(tn__trans *t, tn_scope *scope) {
    tn__thread *thread;
    tn_status status = tn__life_begin(t->life, true, &thread);
    if (status != TN_OK)
        return status;
    tn__release_all(scope->reservations, scope->reserved);
    scope->reserved = 0;
    warn_abandoned(t, scope);
    return TN_OK;
}

tn_status tn__scope_destroy(tn_scope *scope) {
    tn__trans *t = trans_of(scope);
    if (!t || tn__life_forked(t->life)) { /* nothing of the parent's can be reached */
        scope_free(scope);
        return TN_OK;
    }
    tn_status status = state_of(scope) == ENTERED ? abandon(t, scope) : TN_OK;
    if (status != TN_OK)
        return status;
    tn__lock(&t->store->lock);
    unlink_scope(t, scope);
    tn__unlock(&t->store->lock);
    scope_free(scope);
    return TN_OK;
}

/* ---- Reading ---------------------------------------------------------------------------- */

bool tn_scope_active(const tn_scope *scope) { return scope && state_of(scope) == ENTERED; }

uint64_t tn_scope_manager(const tn_scope *scope) { return scope ? scope->manager : 0; }

const tn_plan *tn_scope_plan(const tn_scope *scope) { return scope ? scope->plan : NULL; }

uint64_t tn_scope_expected_version(const tn_scope *scope) {
    return scope ? scope->expected : TN_VERSION_ANY;
}

static tn_status check(const tn_scope *scope, const void *out) {
    return scope && out ? TN_OK : tn__fail(TN_ERR_KIND, "an argument is NULL");
}

tn_status tn_scope_report(const tn_scope *scope, const tn_plan_report **out) {
    tn_status status = check(scope, out);
    if (status == TN_OK)
        *out = state_of(scope) == CLOSED && scope->report->complete ? scope->report : NULL;
    return status;
}

tn_status tn_scope_partial_report(const tn_scope *scope, const tn_plan_report **out) {
    tn_status status = check(scope, out);
    if (status == TN_OK)
        *out = state_of(scope) == CLOSED && scope->partial ? scope->report : NULL;
    return status;
}

tn_status tn_scope_exit_error(const tn_scope *scope, const tn_error **out) {
    tn_status status = check(scope, out);
    if (status == TN_OK)
        *out = state_of(scope) == CLOSED && scope->exit_error.status ? &scope->exit_error : NULL;
    return status;
}

tn_status tn_scope_reservations(const tn_scope *scope, tn_reservation *out, size_t *inout_count) {
    tn_status status = check(scope, inout_count);
    if (status == TN_OK && *inout_count > 0)
        status = check(scope, out);
    if (status != TN_OK)
        return status;
    size_t count = state_of(scope) == ENTERED ? scope->reserved : 0;
    for (size_t i = 0; i < count && i < *inout_count; i++)
        out[i] = scope->reservations[i];
    *inout_count = count;
    return TN_OK;
}
