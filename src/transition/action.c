/* SPDX-License-Identifier: MIT */
/*
 * Direct actions (M83): look without a lock, admit, take what will be removed, perform, commit.
 */
#include "transition/transition_priv.h"

/* ---- Look: handle, locations, stream, decision table, protections ----------------------- */

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
    tn_stream_info info;
    bool cuda = run->action.at.kind == TN_LOCATION_CUDA;
    tn_status status = tn__driver_check_stream(run->t->driver, run->stream,
                                               cuda ? run->action.at.index : 0, &info);
    if (status == TN_ERR_KIND || cuda)
        return status;
    return tn__fail(TN_ERR_VALUE, "a host destination takes no transfer stream");
}

static tn_status last_copy(const tn__run *run) {
    if (!run->choice.last_copy)
        return TN_OK;
    tn_error *e = tn__error(TN_ERR_OWNERSHIP, "value %llu: the last copy of a value without source",
                            (unsigned long long)run->value->index);
    e->manager = run->t->manager;
    e->reason = TN_REASON_LAST_COPY;
    e->handle = run->action.handle;
    e->at = run->action.at;
    return TN_ERR_OWNERSHIP;
}

/* Protections first (M100, M108, M111), then the last copy. The definite check comes with the
 * removal. */
static tn_status check_removals(tn__run *run) {
    tn__mat *const *mats;
    size_t count;
    tn__run_removals(run, &mats, &count);
    tn__life_help(run->t->life, mats, count);
    for (size_t i = 0; i < count; i++) {
        tn__protection p;
        tn__life_protections(run->t->life, &mats[i], 1, &p);
        if (tn__protected(&p))
            return tn__in_use(run->t->life, mats[i], &p, run->action.handle);
    }
    return last_copy(run);
}

/* What the record forbids. */
static tn_status choose(tn__run *run) {
    return tn__choose(run->t->manager, run->value, &run->action, &run->choice);
}

static void unpin(tn__run *run) {
    if (run->pinned)
        tn__store_unpin(run->t->store, run->pinned);
    run->pinned = NULL;
}

/* A transition of the value that is in flight may make such a refusal void, so it waits for its
 * turn as a success does, and is then given by judge(). A protection waits for nobody (M89). */
static bool depends_on_placement(tn_status status) {
    return status == TN_ERR_OWNERSHIP || status == TN_ERR_UNAVAILABLE;
}

/* The version stays pinned until the plan is admitted, so that "the same record" can be told by
 * its address. */
static tn_status look(void *context) {
    tn__run *run = context;
    const tn_version *old = run->pinned;
    run->pinned = tn__store_pin(run->t->store);
    if (old)
        tn__store_unpin(run->t->store, old);
    tn_status status =
        tn__version_resolve(run->pinned, run->t->manager, run->action.handle, &run->value);
    if (status == TN_ERR_HANDLE && tn__life_closed(run->t->life))
        return tn__life_enter_waited(run->t->life); /* its last version has no values */
    if (status == TN_OK)
        status = check_locations(run);
    if (status == TN_OK)
        status = check_stream(run);
    if (status == TN_OK)
        status = choose(run);
    if (status == TN_OK)
        status = check_removals(run);
    if (status == TN_OK)
        tn__report_begin(run, run->value);
    run->refused = depends_on_placement(status);
    return run->refused ? TN_OK : status;
}

/* ---- Admit ------------------------------------------------------------------------------ */

static void need(tn__run *run, int i, tn_location at, bool optional) {
    run->ticket.needs[i] = (tn__need){.ledger = tn__store_ledger(run->t->store, at),
                                      .at = at,
                                      .bytes = run->value->charge_bytes,
                                      .optional = optional};
}

static enum tn__judgement judge(void *context, tn_status *status) {
    tn__run *run = context;
    tn__rcu_lock();
    const tn_version *current = tn__store_current(run->t->store);
    bool same = tn__version_value(current, run->action.handle.index) == run->value;
    tn__rcu_unlock();
    if (!same)
        return TN__JUDGE_RECHECK;
    if (run->refused) {
        *status = choose(run);
        if (*status == TN_OK)
            *status = last_copy(run);
        return TN__JUDGE_FAIL;
    }
    run->ticket.needs[0] = run->ticket.needs[1] = (tn__need){.ledger = NULL};
    if (run->choice.step == TN__STEP_COPY || run->choice.step == TN__STEP_LOAD)
        need(run, 0, run->choice.destination,
             run->choice.step == TN__STEP_LOAD && !tn__in_place(run));
    if (run->choice.step == TN__STEP_LOAD && !tn__in_place(run))
        need(run, 1, run->choice.source, false);
    return TN__JUDGE_GO;
}

static tn_status admit(tn__run *run) {
    tn__judge by = {judge, look, run};
    run->ticket.index = run->action.handle.index;
    run->ticket.joins = run->action.kind == TN_ACTION_ENSURE;
    tn_status status = tn__flow_admit(run->t, run->thread, &run->ticket, &by);
    if (status != TN_OK)
        return status;
    /* Still under the lock: others see the load, or meet the guard. */
    if (run->choice.step == TN__STEP_LOAD) {
        run->ticket.loading = true;
        if (run->t->serial && tn__source_is_callback(run->value->source)) {
            tn__life_guard_raise(run->t->life);
            tn__flow_wake(run->t);
        }
    }
    return TN_OK;
}

static tn_status take(tn__run *run) {
    tn__mat *const *mats;
    size_t count;
    tn__run_removals(run, &mats, &count);
    if (count == 0)
        return TN_OK;
    tn_status status = tn__removal_take(run->t->life, mats, count, &run->removal);
    if (status == TN_ERR_IN_USE)
        tn__error_current()->handle = run->action.handle;
    return status;
}

static tn_status run_all(tn__run *run) {
    tn_status status = look(run);
    if (status == TN_OK)
        status = admit(run);
    unpin(run);
    if (status != TN_OK)
        return status;
    bool no_op = run->choice.step == TN__STEP_NO_OP;
    if (!no_op || run->t->now_ns) { /* a clock of the program is read without the lock */
        tn__unlock(&run->t->store->lock);
        if (!no_op)
            status = take(run);
        if (!no_op && status == TN_OK)
            status = tn__run_perform(run);
        run->report.completed_at_ns = tn__trans_now(run->t);
        tn__lock(&run->t->store->lock);
    }
    return tn__run_commit(run, status);
}

tn_status tn__trans_action(tn__trans *t, tn__thread *thread, const tn_action *action,
                           tn_stream stream, tn_report *out) {
    tn_status status = tn__life_enter(t->life, thread, false);
    if (status == TN_OK)
        status = tn__life_reap_manual(t->life);
    if (status != TN_OK)
        return status;
    tn__run run = {.t = t, .thread = thread, .action = *action, .stream = stream};
    run.report.started_at_ns = tn__trans_now(t);
    tn__frame frame;
    tn__frame_push(thread, &frame, t->manager, false);
    status = run_all(&run);
    tn__frame_pop(thread, &frame);
    if (status == TN_OK && out)
        tn__struct_out(out, &run.report, sizeof run.report);
    if (status != TN_OK && !tn__error_current()->handle.type)
        tn__error_current()->handle = action->handle;
    return status;
}
