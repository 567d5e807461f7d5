/* SPDX-License-Identifier: MIT */
/*
 * Actions: a look at the value, and direct actions (M83): look without a lock, admit, take what
 * will be removed, perform, commit.
 */
#include "transition/transition_priv.h"

/* ---- Look: handle, locations, stream, decision table ------------------------------------ */

static tn_status check_locations(tn__run *run) {
    tn_action *a = &run->action;
    tn_status status = TN_OK;
    if (a->kind != TN_ACTION_DISCARD)
        status = tn__driver_check_location(run->t->driver, a->at, &a->at);
    if (status == TN_OK && a->kind == TN_ACTION_MOVE && a->from.kind != TN_LOCATION_NONE)
        status = tn__driver_check_location(run->t->driver, a->from, &a->from);
    return status;
}

/* M217. */
static tn_status check_stream(tn__run *run) {
    if (!run->stream)
        return TN_OK;
    tn_transfer_stream given = {run->action.at, run->stream};
    return tn__streams_check(run->t, &given, 1);
}

static tn_status look_at(tn__run *run, const tn_version *version) {
    tn_status status =
        tn__version_resolve(version, run->t->manager, run->action.handle, &run->value);
    if (status == TN_ERR_HANDLE && tn__life_closed(run->t->life))
        return tn__life_enter_waited(run->t->life); /* its last version has no values */
    if (status == TN_OK)
        status = check_locations(run);
    if (status == TN_OK)
        status = check_stream(run);
    if (status == TN_OK)
        status = tn__choose(run->t->manager, run->value, &run->action, &run->choice);
    return status;
}

static tn_status check_removals(tn__run *run) {
    tn__mat *const *mats;
    size_t count;
    tn__run_removals(run, &mats, &count);
    bool perhaps;
    tn_status status = tn__life_help(run->t->life, mats, count, &perhaps);
    if (status != TN_OK)
        return status;
    for (size_t i = 0; perhaps && i < count; i++) {
        tn__protection p;
        tn__life_protections(run->t->life, &mats[i], 1, &p);
        if (tn__protected(&p))
            return tn__in_use(run->t->life, mats[i], &p, run->action.handle);
    }
    return run->choice.last_copy ? tn__last_copy(run->t->manager, &run->action) : TN_OK;
}

static void need(tn__run *run, int i, tn_location at, bool optional) {
    run->needs[i] = (tn__need){.ledger = tn__store_ledger(run->t->store, at),
                               .at = at,
                               .bytes = run->value->charge_bytes,
                               .optional = optional};
}

static void fill_needs(tn__run *run) {
    bool loads = run->choice.step == TN__STEP_LOAD && !tn__in_place(run);
    run->needs[0] = run->needs[1] = (tn__need){.ledger = NULL};
    if (run->choice.step == TN__STEP_COPY || run->choice.step == TN__STEP_LOAD)
        need(run, 0, run->choice.destination, loads);
    if (loads)
        need(run, 1, run->choice.source, false);
}

/* Who does not fit there waits for it: it may be gone soon (M258). */
static void show_removals(tn__run *run) {
    tn__mat *const *mats;
    size_t count;
    tn__run_removals(run, &mats, &count);
    for (size_t i = 0; i < count; i++)
        tn__ticket_frees(run->ticket, run->t->store, tn__store_ledger(run->t->store, mats[i]->at));
}

static void show(tn__run *run) {
    if (!run->claims) /* a plan's needs say it for all of its steps */
        show_removals(run);
    if (run->choice.step != TN__STEP_LOAD)
        return;
    run->ticket->loading = run->value->index;
    if (run->t->serial && tn__source_is_callback(run->value->source)) {
        tn__life_guard_raise(run->t->life);
        tn__flow_wake(run->t);
    }
}

/* ---- Direct actions --------------------------------------------------------------------- */

typedef struct direct {
    tn__run run;
    tn__ticket ticket;
    uint64_t index;
    const tn_version *pinned; /* while waiting: keeps the record comparable */
    bool refused;             /* by the record; said when its turn comes */
} direct;

static void unpin(direct *d) {
    if (d->pinned)
        tn__store_unpin(d->run.t->store, d->pinned);
    d->pinned = NULL;
}

/* A transition of the value that is in flight may make such a refusal void, so it waits for its
 * turn as a success does, and is then given by judge(). A protection waits for nobody (M89). */
static bool depends_on_placement(tn_status status) {
    return status == TN_ERR_OWNERSHIP || status == TN_ERR_UNAVAILABLE;
}

/* What the record, looked at again, still says. */
static tn_status refuse_again(direct *d) {
    tn__run *run = &d->run;
    tn_status status = tn__choose(run->t->manager, run->value, &run->action, &run->choice);
    if (status == TN_OK && run->choice.last_copy)
        status = tn__last_copy(run->t->manager, &run->action);
    return status;
}

/* The version stays pinned until the plan is admitted, so that "the same record" can be told by
 * its address. */
static tn_status look(void *context) {
    direct *d = context;
    const tn_version *old = d->pinned;
    d->pinned = tn__store_pin(d->run.t->store);
    if (old)
        tn__store_unpin(d->run.t->store, old);
    tn_status status = look_at(&d->run, d->pinned);
    if (status == TN_OK)
        status = check_removals(&d->run);
    if (status == TN_OK)
        tn__report_begin(&d->run, d->run.value);
    d->refused = depends_on_placement(status);
    return d->refused ? TN_OK : status;
}

static enum tn__judgement judge(void *context, tn_status *status) {
    direct *d = context;
    tn__rcu_lock();
    const tn_version *current = tn__store_current(d->run.t->store);
    bool same = tn__version_value(current, d->index) == d->run.value;
    tn__rcu_unlock();
    if (!same)
        return TN__JUDGE_RECHECK;
    if (d->refused) {
        *status = refuse_again(d);
        return TN__JUDGE_FAIL;
    }
    fill_needs(&d->run);
    return TN__JUDGE_GO;
}

static tn_status admit(direct *d) {
    tn__judge by = {judge, look, d, false};
    d->index = d->run.action.handle.index;
    d->ticket = (tn__ticket){.handles = &d->index,
                             .handle_count = 1,
                             .joins = d->run.action.kind == TN_ACTION_ENSURE,
                             .needs = d->run.needs,
                             .need_count = 2};
    tn_status status = tn__flow_admit(d->run.t, d->run.thread, &d->ticket, &by);
    if (status == TN_OK)
        show(&d->run); /* still under the lock */
    return status;
}

static tn_status take(tn__run *run) {
    tn__mat *const *mats;
    size_t count;
    tn__run_removals(run, &mats, &count);
    if (count == 0)
        return TN_OK;
    tn_status status = tn__removal_take(run->t->life, mats, count, 0, &run->removal);
    if (status == TN_ERR_IN_USE)
        tn__error_current()->handle = run->action.handle;
    return status;
}

/* The state word before the handle: as in tn__course_leave(). */
static void leave(direct *d) {
    if (d->run.removal)
        tn__removal_end(d->run.t->life, d->run.removal);
    tn__flow_leave(d->run.t, &d->ticket);
    tn__unlock(&d->run.t->store->lock);
    tn__life_wake(d->run.t->life);
}

static tn_status run_all(direct *d) {
    tn_status status = look(d);
    if (status == TN_OK)
        status = admit(d);
    unpin(d);
    if (status != TN_OK)
        return status;
    bool no_op = d->run.choice.step == TN__STEP_NO_OP;
    if (!no_op || d->run.t->now_ns) { /* a clock of the program is read without the lock */
        tn__unlock(&d->run.t->store->lock);
        if (!no_op)
            status = take(&d->run);
        if (!no_op && status == TN_OK)
            status = tn__run_perform(&d->run);
        d->run.report.completed_at_ns = tn__trans_now(d->run.t);
        tn__lock(&d->run.t->store->lock);
    }
    status = tn__run_commit(&d->run, status);
    leave(d);
    tn__run_end(&d->run, status);
    return status;
}

tn_status tn__trans_action(tn__trans *t, tn__thread *thread, const tn_action *action,
                           tn_stream stream, tn_report *out) {
    tn_status status = tn__life_enter(t->life, thread, false);
    if (status == TN_OK)
        status = tn__life_reap_manual(t->life);
    if (status != TN_OK)
        return status;
    direct d = {.run = {.t = t, .thread = thread, .action = *action, .stream = stream}};
    d.run.ticket = &d.ticket;
    d.run.report.started_at_ns = tn__trans_now(t);
    tn__frame frame;
    tn__frame_push(thread, &frame, t->manager, false);
    status = run_all(&d);
    tn__frame_pop(thread, &frame);
    if (status == TN_OK && out)
        tn__struct_out(out, &d.run.report, sizeof d.run.report);
    if (status == TN_OK)
        return status;
    if (!tn__error_current()->handle.type)
        tn__error_current()->handle = action->handle;
    tn__verdict_here(t->manager, t->store, t->life);
    return status;
}

/* ---- A step of a plan in flight --------------------------------------------------------- */

/* The handle is claimed, so nobody else replaces its record (X1). */
static tn_status look_claimed(tn__run *run) {
    tn__rcu_lock();
    tn_status status = look_at(run, tn__store_current(run->t->store));
    tn__rcu_unlock();
    return status;
}

static void lend(tn__run *run) {
    for (int i = 0; i < 2; i++)
        if (run->needs[i].ledger)
            tn__claims_lend(run->claims, &run->needs[i], run->needs[i].at, run->needs[i].bytes);
}

/* Bytes: those of the plan, or (scope exit) claimed now. */
static tn_status claim(tn__run *run) {
    tn_status status = TN_OK;
    tn__lock(&run->t->store->lock);
    fill_needs(run);
    if (run->claims) {
        lend(run);
    } else {
        run->ticket->needs = run->needs;
        run->ticket->need_count = 2;
        status = tn__flow_claim(run->t, run->thread, run->ticket);
    }
    if (status == TN_OK)
        show(run);
    tn__unlock(&run->t->store->lock);
    return status;
}

static tn_status step_work(tn__run *run) {
    tn_status status = tn__life_reap_manual(run->t->life); /* M162 */
    if (status == TN_OK)
        status = look_claimed(run);
    if (status == TN_OK && !run->claims)
        status = check_removals(run);
    if (status != TN_OK)
        return status;
    tn__report_begin(run, run->value);
    if (run->choice.step == TN__STEP_NO_OP)
        return TN_OK;
    status = claim(run);
    if (status == TN_OK && !run->claims)
        status = take(run);
    return status == TN_OK ? tn__run_perform(run) : status;
}

tn_status tn__step_run(tn__run *run) {
    tn__removal *own = NULL;
    run->report.started_at_ns = tn__trans_now(run->t);
    tn_status status = step_work(run);
    run->report.completed_at_ns = tn__trans_now(run->t);
    tn__lock(&run->t->store->lock);
    status = tn__run_commit(run, status);
    if (!run->claims) {
        own = run->removal;
        run->ticket->needs = NULL;
        run->ticket->need_count = 0;
    }
    tn__flow_wake(run->t);
    tn__unlock(&run->t->store->lock);
    if (own)
        tn__removal_end(run->t->life, own);
    tn__run_end(run, status);
    if (status != TN_OK && !tn__error_current()->handle.type)
        tn__error_current()->handle = run->action.handle;
    return status;
}
