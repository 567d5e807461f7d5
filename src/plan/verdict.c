/* SPDX-License-Identifier: MIT */
/*
 * Admission verdicts: whether waiting helps, for what, and how many bytes each thing that is in
 * the way makes free.
 */
#include <string.h>

#include "plan/plan_priv.h"

/* What stands at the location where bytes are short, by who could give it back. */
typedef struct tally {
    const tn__verdict_input *in;
    tn__verdict *out;
    tn_location at;
    size_t room;
    uint64_t leased, held, reserved, claimed, protected;
    uint64_t kept; /* by the plan itself */
} tally;

static bool name(tally *t, const tn_blocker *blocker) {
    if (!tn__grow(&t->out->blockers, &t->room, t->out->blocker_count, sizeof *blocker))
        return false;
    t->out->blockers[t->out->blocker_count++] = *blocker;
    return true;
}

/* A protected materialization, by its most lasting protection. */
static bool name_guard(tally *t, const tn__guard *guard, const tn__protection *p, uint64_t bytes) {
    const tn__value *value = tn__version_value(t->in->version, guard->index);
    tn_blocker b = {.kind = p->holds  ? TN_BLOCKER_HOLD
                            : p->uses ? TN_BLOCKER_LEASE
                                      : TN_BLOCKER_PENDING,
                    .count = p->holds  ? p->holds
                             : p->uses ? p->uses
                                       : p->pending,
                    .bytes = bytes,
                    .handle = {t->in->manager, guard->index, value ? value->type : NULL},
                    .at = guard->at};
    return name(t, &b);
}

static const tn__mat *mat_of(const tally *t, const tn__guard *guard) {
    const tn__value *value = tn__version_value(t->in->version, guard->index);
    const tn__mat *mat = value ? tn__value_mat(value, guard->at) : NULL;
    return mat == guard->mat ? mat : NULL; /* one that another version has is not ours to judge */
}

/* ---- What is the plan's own ------------------------------------------------------------- */

static uint64_t minus(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

/* Others' bytes at the location that the plan removes: they are in its way no longer. */
static uint64_t removed(const tn__sim *sim, tn_location at) {
    uint64_t bytes = 0;
    for (size_t i = 0; sim && i < sim->removal_count; i++)
        if (sim->removals[i].mat && tn__location_same(sim->removals[i].mat->at, at))
            bytes += sim->removals[i].mat->charged_bytes;
    return bytes;
}

/* Bytes that the plan itself brings there, and has not removed again: nobody can make them free. */
static uint64_t brought(const tn__sim *sim, tn_location at) {
    int64_t net = (int64_t)removed(sim, at);
    for (size_t i = 0; sim && i < sim->touch_count; i++)
        if (tn__location_same(sim->places[sim->touches[i].place].at, at))
            net += sim->touches[i].delta;
    return net > 0 ? (uint64_t)net : 0;
}

/* Whether the plan wants a replica where it is, and keeps it: without it, it would bring it. */
static bool keeps(const tn__sim *sim, const tn_action_explanation *a, tn_location at) {
    if (!a->no_op || a->action.kind == TN_ACTION_DROP || !tn__location_same(a->destination, at))
        return false;
    for (size_t i = 0; i < sim->removal_count; i++) {
        const tn__mat *mat = sim->removals[i].mat;
        if (mat && mat->index == a->action.handle.index && tn__location_same(mat->at, at))
            return false;
    }
    return true;
}

static bool keeps_value(const tn__sim *sim, size_t actions, uint64_t index, tn_location at) {
    for (size_t i = 0; sim && i < actions; i++)
        if (sim->actions[i].action.handle.index == index && keeps(sim, &sim->actions[i], at))
            return true;
    return false;
}

/* The bytes of such replicas, which were there before the plan. */
static uint64_t kept(const tally *t) {
    const tn__sim *sim = t->in->sim;
    uint64_t bytes = 0;
    for (size_t i = 0; sim && i < sim->action_count; i++) {
        const tn_action_explanation *a = &sim->actions[i];
        const tn__value *value = tn__version_value(t->in->version, a->action.handle.index);
        const tn__mat *mat = value ? tn__value_mat(value, t->at) : NULL;
        if (mat && keeps(sim, a, t->at) && !keeps_value(sim, i, mat->index, t->at))
            bytes += mat->charged_bytes;
    }
    return bytes;
}

/* ---- Bytes ------------------------------------------------------------------------------ */

static bool tally_guards(tally *t, bool names) {
    tn__guards *guards = t->in->guards;
    const tn__sim *sim = t->in->sim;
    size_t actions = sim ? sim->action_count : 0;
    for (size_t i = 0; i < guards->count; i++) {
        const tn__guard *guard = &guards->guards[i];
        if (!tn__location_same(guard->at, t->at))
            continue;
        const tn__mat *mat = mat_of(t, guard);
        tn__protection p = tn__guards_of(guards, guard->mat);
        if (!mat || !tn__protected(&p) || keeps_value(sim, actions, guard->index, t->at))
            continue;
        if (!names) {
            *(p.holds ? &t->held : &t->leased) += mat->charged_bytes;
            t->protected += mat->charged_bytes;
        } else if (p.holds && t->out->verdict == TN_VERDICT_AFTER_LEASES) {
            continue; /* nobody has to wait for it */
        } else if (!name_guard(t, guard, &p, mat->charged_bytes)) {
            return false;
        }
    }
    return true;
}

static bool name_reserved(tally *t) {
    for (size_t i = 0; i < t->in->guards->reserved_count; i++) {
        const tn__guard_reserved *r = &t->in->guards->reserved[i];
        tn_blocker b = {.kind = TN_BLOCKER_RESERVATION, .count = 1, .bytes = r->bytes, .at = r->at};
        memcpy(b.label, r->label, sizeof b.label);
        if (tn__location_same(r->at, t->at) && !name(t, &b))
            return false;
    }
    tn_blocker plan = {.kind = TN_BLOCKER_PLAN, .count = 1, .bytes = t->claimed, .at = t->at};
    return t->claimed == 0 || name(t, &plan);
}

static void tally_others(tally *t) {
    uint64_t total;
    for (size_t i = 0; i < t->in->guards->reserved_count; i++)
        if (tn__location_same(t->in->guards->reserved[i].at, t->at))
            t->reserved += t->in->guards->reserved[i].bytes;
    tn__ledger_read(tn__store_ledger(t->in->store, t->at), &total, &t->claimed);
}

static uint64_t limit_of(const tn_error *problem) {
    return problem->budget_bytes < (uint64_t)INT64_MAX ? problem->budget_bytes
                                                       : (uint64_t)INT64_MAX;
}

static enum tn_verdict judge_bytes(tally *t, const tn_error *problem) {
    uint64_t missing = t->out->missing_bytes, free = t->out->evictable_bytes;
    uint64_t own = tn__add_capped(brought(t->in->sim, t->at), t->kept);
    if (tn__add_capped(problem->requested_bytes, own) > limit_of(problem))
        return TN_VERDICT_NEVER;
    if (free >= missing)
        return TN_VERDICT_AFTER_EVICTION;
    if (free + t->leased >= missing)
        return TN_VERDICT_AFTER_LEASES;
    return free + t->leased + t->held + t->reserved + t->claimed >= missing ? TN_VERDICT_BLOCKED
                                                                            : TN_VERDICT_NEVER;
}

static bool short_of_bytes(tally *t, const tn_error *problem) {
    const tn__place *place = tn__version_place(t->in->version, problem->at);
    uint64_t level = tn__add_capped(problem->used_bytes, problem->reserved_bytes);
    level = tn__add_capped(level, problem->claimed_bytes);
    t->at = problem->at;
    t->out->missing_bytes =
        minus(tn__add_capped(level, problem->requested_bytes), limit_of(problem));
    t->kept = kept(t);
    tally_others(t);
    if (!tally_guards(t, false))
        return false;
    t->out->evictable_bytes =
        minus(place ? place->used_bytes : 0, t->protected + t->kept + removed(t->in->sim, t->at));
    t->out->verdict = judge_bytes(t, problem);
    if (t->out->verdict == TN_VERDICT_AFTER_LEASES)
        return tally_guards(t, true);
    return t->out->verdict != TN_VERDICT_BLOCKED || (tally_guards(t, true) && name_reserved(t));
}

/* ---- Protections ------------------------------------------------------------------------ */

static bool is_protected(tally *t, const tn_error *problem) {
    bool every = problem->reason == TN_REASON_DISCARD_PROTECTED;
    t->out->verdict = problem->hold_count ? TN_VERDICT_BLOCKED : TN_VERDICT_AFTER_LEASES;
    for (size_t i = 0; i < t->in->guards->count; i++) {
        const tn__guard *guard = &t->in->guards->guards[i];
        if (guard->index != problem->handle.index ||
            (!every && !tn__location_same(guard->at, problem->at)))
            continue;
        const tn__mat *mat = mat_of(t, guard);
        tn__protection p = tn__guards_of(t->in->guards, guard->mat);
        if (!mat || !tn__protected(&p))
            continue;
        if (p.holds)
            t->out->verdict = TN_VERDICT_BLOCKED;
        if (!name_guard(t, guard, &p, mat->charged_bytes))
            return false;
    }
    return true;
}

/* ---- A plan that is feasible ------------------------------------------------------------ */

/* It waits if plans in flight have claimed bytes that it needs. */
static bool feasible(tally *t) {
    t->out->verdict = TN_VERDICT_FITS_NOW;
    for (size_t i = 0; t->in->sim && i < t->in->sim->place_count; i++) {
        const tn__sim_place *place = &t->in->sim->places[i];
        uint64_t total;
        t->at = place->at;
        tn__ledger_read(place->ledger, &total, &t->claimed);
        if (t->claimed == 0 || place->ledger->budget == TN__UNLIMITED ||
            place->peak <= minus(place->ledger->budget, t->claimed))
            continue;
        tn_blocker plan = {.kind = TN_BLOCKER_PLAN, .count = 1, .bytes = t->claimed, .at = t->at};
        t->out->verdict = TN_VERDICT_BLOCKED;
        if (!name(t, &plan))
            return false;
    }
    return true;
}

tn_status tn__verdict_of(const tn__verdict_input *in, const tn_error *problem, tn__verdict *out) {
    tally t = {.in = in, .out = out};
    *out = (tn__verdict){.verdict = TN_VERDICT_NONE};
    bool ok = true;
    if (!problem)
        ok = feasible(&t);
    else if (problem->status == TN_ERR_BUDGET)
        ok = short_of_bytes(&t, problem);
    else if (problem->status == TN_ERR_IN_USE)
        ok = is_protected(&t, problem);
    if (ok)
        return TN_OK;
    tn__verdict_fini(out);
    return tn__no_memory();
}

void tn__verdict_here(uint64_t manager, tn__store *store, tn__life *life) {
    tn_error kept = *tn__error_current();
    tn__guards guards;
    tn__verdict verdict;
    bool adoption = kept.reason == TN_REASON_RESERVATION_BUDGET; /* of a reservation's own bytes */
    if ((kept.status != TN_ERR_BUDGET && kept.status != TN_ERR_IN_USE) || adoption)
        return;
    const tn_version *version = tn__store_pin(store);
    if (version && tn__guards_read(life, &guards) == TN_OK) {
        tn__verdict_input in = {manager, store, version, &guards, NULL};
        guards.quiet = true;
        if (tn__verdict_of(&in, &kept, &verdict) == TN_OK) {
            tn__verdict_into(&verdict, &kept);
            tn__verdict_fini(&verdict);
        }
        tn__guards_fini(&guards);
    }
    if (version)
        tn__store_unpin(store, version);
    tn__error_restore(&kept);
}

void tn__verdict_fini(tn__verdict *verdict) {
    tn__free(verdict->blockers);
    *verdict = (tn__verdict){.verdict = TN_VERDICT_NONE};
}

void tn__verdict_into(const tn__verdict *verdict, tn_error *error) {
    error->verdict = verdict->verdict;
    error->missing_bytes = verdict->missing_bytes;
    error->evictable_bytes = verdict->evictable_bytes;
    error->blocker_count = verdict->blocker_count;
    for (size_t i = 0; i < TN_ERROR_OWNERS_MAX && i < verdict->blocker_count; i++)
        error->blockers[i] = verdict->blockers[i];
}
