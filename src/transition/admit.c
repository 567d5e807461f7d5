/* SPDX-License-Identifier: MIT */
/*
 * Admission of a plan as a whole (design section 4): simulate on a pinned version without a lock;
 * under the lock wait for its turn, see that the simulation still holds, claim handles and bytes;
 * after unlocking take everything that it will remove, under one heavy fence; last the stale
 * check. A refusal is checked for staleness too: of two findings about different states the stale
 * one is reported (M126).
 */
#include <stdlib.h>
#include <string.h>

#include "transition/transition_priv.h"

/* How often a plan whose removal lost against an acquire that is over again is simulated anew. */
#define TRIES 64

/* ---- Handles ---------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

bool tn__handles_of(uint64_t manager, const tn__sim_part *parts, size_t count,
                    const tn_handle *more, size_t more_count, uint64_t **out, size_t *out_count) {
    size_t room = more_count, n = 0, distinct = 0;
    for (size_t p = 0; p < count; p++)
        room += parts[p].actions ? parts[p].count : 0;
    uint64_t *handles = tn__alloc(room * sizeof *handles);
    if (!handles)
        return false;
    for (size_t p = 0; p < count; p++)
        for (size_t i = 0; parts[p].actions && i < parts[p].count; i++)
            if (parts[p].actions[i].handle.manager == manager)
                handles[n++] = parts[p].actions[i].handle.index;
    for (size_t i = 0; i < more_count; i++)
        handles[n++] = more[i].index;
    if (n > 1)
        qsort(handles, n, sizeof *handles, ascending);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || handles[i] != handles[i - 1])
            handles[distinct++] = handles[i];
    *out = handles;
    *out_count = distinct;
    return true;
}

/* ---- Look ------------------------------------------------------------------------------- */

/* The version is not kept while the plan runs: its touches are plain data. */
static void unpin(tn__course *c) {
    if (!c->looked)
        return;
    tn__sim_forget(&c->sim);
    tn__guards_fini(&c->guards);
    tn__store_unpin(c->t->store, c->pinned);
    c->looked = false;
}

static void forget(tn__course *c) {
    unpin(c);
    tn__sim_fini(&c->sim);
}

static size_t steps_of(const tn__course *c, size_t parts) {
    size_t steps = 0;
    for (size_t p = 0; p < parts; p++)
        steps += c->parts[p].count;
    return steps;
}

static tn_status simulate(tn__course *c) {
    tn__sim_input in = {.manager = c->t->manager,
                        .store = c->t->store,
                        .driver = c->t->driver,
                        .version = c->pinned,
                        .guards = &c->guards,
                        .by_ledger = c->ticket.squeezed,
                        .parts = c->parts,
                        .part_count = c->part_count};
    tn_status status = tn__sim_run(&in, &c->sim);
    if (status == TN_OK)
        tn__sim_needs(&c->sim, c->steps);
    return status;
}

static tn_status look(void *context) {
    tn__course *c = context;
    forget(c);
    c->pinned = tn__store_pin(c->t->store);
    if (!c->pinned)
        return tn__no_memory();
    tn_status status = tn__guards_read(c->t->life, &c->guards);
    if (status == TN_OK) {
        status = simulate(c);
        if (status != TN_OK)
            tn__guards_fini(&c->guards);
    }
    if (status != TN_OK)
        tn__store_unpin(c->t->store, c->pinned);
    c->looked = status == TN_OK;
    return status;
}

/* ---- Judge ------------------------------------------------------------------------------ */

/* Whether every record that the simulation read is still the current one. */
static bool same(const tn__course *c) {
    bool same = true;
    tn__rcu_lock();
    const tn_version *current = tn__store_current(c->t->store);
    for (size_t i = 0; current != c->pinned && same && i < c->sim.value_room; i++) {
        const tn__sim_value *v = &c->sim.values[i];
        same = !v->real || tn__version_value(current, v->index) == v->real;
    }
    tn__rcu_unlock();
    return same;
}

static const tn__sim_place *short_place(const tn__course *c) {
    const tn__ledger *ledger = tn__store_ledger(c->t->store, c->sim.problem.at);
    uint8_t place = c->sim.place_of[ledger - c->t->store->ledgers];
    TN_ASSERT(place > 0);
    return &c->sim.places[place - 1];
}

static enum tn__judgement judge(void *context, tn_status *status) {
    tn__course *c = context;
    if (!same(c))
        return TN__JUDGE_RECHECK;
    if (c->sim.feasible) {
        tn__claims_fill(&c->claims, &c->sim);
        c->ticket.need_count = c->sim.place_count;
        return TN__JUDGE_GO;
    }
    *status = TN_ERR_PLAN; /* the detail is made without the lock */
    if (!c->sim.short_of_bytes)
        return TN__JUDGE_FAIL;
    const tn__sim_place *place = short_place(c);
    c->claims.needs[0] =
        (tn__need){.ledger = place->ledger, /* while it waits, nobody overtakes it there */
                   .at = c->sim.problem.at,
                   .bytes = c->sim.problem.requested_bytes};
    c->ticket.need_count = 1;
    c->ticket.short_at = place->ledger;
    c->ticket.short_began = place->began;
    return TN__JUDGE_SHORT;
}

/* ---- Refusals --------------------------------------------------------------------------- */

static uint64_t placement_now(const tn__course *c) {
    tn__rcu_lock();
    uint64_t number = tn__store_current(c->t->store)->number;
    tn__rcu_unlock();
    return number;
}

static tn_status check_same(const tn__course *c, uint64_t expected, uint64_t actual) {
    if (actual == expected)
        return TN_OK;
    TN__BRANCH(plan_is_stale);
    return tn__stale(c->t->manager, expected, actual);
}

static tn_status check_stale(const tn__course *c) {
    tn_status status = TN_OK;
    if (c->placement != TN_VERSION_ANY)
        status = check_same(c, c->placement, placement_now(c));
    if (status == TN_OK && c->expected != TN_VERSION_ANY)
        status = check_same(c, c->expected, tn__state_version_settled(c->t->store, c->t->life));
    return status;
}

/* The first problem of the simulation, with its verdict. */
static tn_status infeasible(tn__course *c) {
    tn__verdict verdict;
    tn_error e = c->sim.problem;
    tn__verdict_input in = {c->t->manager, c->t->store, c->pinned, &c->guards, &c->sim};
    if (tn__verdict_of(&in, &e, &verdict) == TN_OK) {
        tn__verdict_into(&verdict, &e);
        tn__verdict_fini(&verdict);
    }
    return tn__sim_refused(&c->sim, &e, c->name, c->parts);
}

/* ---- Removals --------------------------------------------------------------------------- */

static bool runs_now(const tn__course *c, const tn__sim_removal *r) { return r->step < c->steps; }

static tn_status mark_later(tn__course *c, size_t *later) {
    c->later = tn__zalloc(c->steps * sizeof *c->later);
    if (!c->later)
        return tn__no_memory();
    for (size_t i = 0; i < c->sim.removal_count; i++)
        if (!c->sim.removals[i].mat && runs_now(c, &c->sim.removals[i])) {
            c->later[c->sim.removals[i].made] = true;
            (*later)++;
        }
    return TN_OK;
}

static tn_status take(tn__course *c) {
    size_t count = 0, later = 0;
    tn_status status = mark_later(c, &later);
    tn__mat **mats = status == TN_OK ? tn__alloc(c->sim.removal_count * sizeof(tn__mat *)) : NULL;
    if (!mats)
        return tn__no_memory();
    for (size_t i = 0; i < c->sim.removal_count; i++)
        if (c->sim.removals[i].mat && runs_now(c, &c->sim.removals[i]))
            mats[count++] = c->sim.removals[i].mat;
    if (count + later > 0)
        status = tn__removal_take(c->t->life, mats, count, later, &c->removal);
    tn__free(mats);
    return status;
}

/* ---- Admission -------------------------------------------------------------------------- */

/* The ticket is one life of a wait; the handles stay. */
static void new_ticket(tn__course *c, size_t handle_count) {
    tn__free(c->later);
    c->later = NULL;
    c->ticket = (tn__ticket){.handles = c->handles,
                             .handle_count = handle_count,
                             .needs = c->claims.needs,
                             .need_count = 0};
}

/* One turn: TN_OK in flight; TN_ERR_IN_USE an acquire came between simulation and removal. */
static tn_status turn(tn__course *c, size_t handle_count) {
    tn__judge by = {judge, look, c, true};
    new_ticket(c, handle_count);
    tn_status status = look(c);
    if (status == TN_OK)
        status = tn__flow_admit(c->t, c->thread, &c->ticket, &by);
    if (status == TN_ERR_PLAN)
        return infeasible(c);
    if (status != TN_OK)
        return status;
    tn__unlock(&c->t->store->lock);
    status = take(c);
    if (status == TN_ERR_IN_USE)
        TN__BRANCH(plan_meets_use);
    if (status == TN_OK)
        status = check_stale(c);
    if (status == TN_OK)
        unpin(c);
    else
        tn__course_leave(c);
    return status;
}

/* The step that removes what an error says is in use. */
static size_t remover(const tn__course *c, const tn_error *e) {
    for (size_t i = 0; i < c->sim.removal_count; i++) {
        const tn__mat *mat = c->sim.removals[i].mat;
        if (mat && mat->index == e->handle.index && tn__location_same(mat->at, e->at))
            return c->sim.removals[i].step;
    }
    return 0;
}

/* TN_ERR_IN_USE again and again: its own detail is the problem, as if the simulation had met it. */
static tn_status never_free(tn__course *c) {
    tn_error *e = tn__error_current();
    size_t step = remover(c, e), part = 0;
    while (part + 1 < c->part_count && step >= c->parts[part].count)
        step -= c->parts[part++].count;
    const tn_action *action = &c->parts[part].actions[step];
    e->handle = action->handle;
    e->reason = tn__protected_reason(action->kind);
    e->verdict = e->hold_count ? TN_VERDICT_BLOCKED : TN_VERDICT_AFTER_LEASES;
    return tn__plan_refused(c->name, &c->parts[part], step);
}

tn_status tn__course_admit(tn__course *c) {
    size_t handle_count;
    c->steps = steps_of(c, c->run_count);
    if (!tn__handles_of(c->t->manager, c->parts, c->part_count, c->more, c->more_count, &c->handles,
                        &handle_count))
        return tn__no_memory();
    tn_status status = TN_ERR_IN_USE;
    for (int i = 0; i < TRIES && status == TN_ERR_IN_USE; i++)
        status = turn(c, handle_count);
    if (status == TN_ERR_IN_USE)
        status = never_free(c);
    if (status == TN_ERR_PLAN) {
        tn_error kept = *tn__error_current();
        status = check_stale(c);
        if (status == TN_OK)
            status = tn__error_restore(&kept);
    }
    return status;
}

/* The state words before the handles: whoever claims these next writes the same words. */
void tn__course_leave(tn__course *c) {
    if (c->removal)
        tn__removal_end(c->t->life, c->removal);
    c->removal = NULL;
    tn__lock(&c->t->store->lock);
    tn__flow_leave(c->t, &c->ticket);
    tn__unlock(&c->t->store->lock);
    tn__life_wake(c->t->life);
}

void tn__course_fini(tn__course *c) {
    forget(c);
    tn__free(c->handles);
    tn__free(c->later);
    c->handles = NULL;
    c->later = NULL;
}
