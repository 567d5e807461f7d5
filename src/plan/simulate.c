/* SPDX-License-Identifier: MIT */
/*
 * Simulation of a plan on one version (M168..M181): each action in the state that the earlier ones
 * left, up to the first problem.
 *
 * Every function here returns TN_OK, TN_ERR_HOST_MEMORY, or another status for a problem of the
 * plan, whose detail is the thread's error until step() has kept it.
 */
#include <string.h>

#include "plan/plan_priv.h"

/* ---- Problems --------------------------------------------------------------------------- */

static void name_reservation(tn_error *e, const char *label) {
    memcpy(e->label, label, strnlen(label, sizeof e->label - 1));
}

static TN__COLD tn_status short_of_bytes(tn__sim *sim, const tn__sim_place *place, uint64_t bytes,
                                         const char *label) {
    char name[TN_LOCATION_NAME_MAX];
    uint64_t reserved = place->level > place->used ? place->level - place->used : 0;
    const char *at = tn__location_text(place->at, name);
    tn_error *e = label ? tn__error(TN_ERR_BUDGET,
                                    "reservation \"%.63s\" of %llu bytes at %s exceeds its budget",
                                    label, (unsigned long long)bytes, at)
                        : tn__error(TN_ERR_BUDGET, "%llu more bytes at %s exceed its budget",
                                    (unsigned long long)bytes, at);
    e->manager = sim->in.manager;
    e->reason = label ? TN_REASON_RESERVATION_BUDGET : TN_REASON_BUDGET;
    e->at = place->at;
    e->budget_bytes = place->ledger->budget;
    e->used_bytes = place->used;
    e->reserved_bytes = reserved;
    e->requested_bytes = bytes;
    if (label)
        name_reservation(e, label);
    sim->short_of_bytes = true;
    return TN_ERR_BUDGET;
}

static TN__COLD tn_status is_protected(tn__sim *sim, const tn_action *action, const tn__mat *mat,
                                       const tn__protection *p) {
    tn_status status = tn__in_use(sim->in.guards->life, mat, p, action->handle);
    tn__error_current()->reason = tn__protected_reason(action->kind);
    return status;
}

/* ---- Bytes ------------------------------------------------------------------------------ */

/* Admit `bytes` for a moment: the peak rises also if they do not fit (M173). */
static tn_status stand(tn__sim *sim, uint32_t k, uint64_t bytes, const char *label) {
    tn__sim_place *place = &sim->places[k];
    uint64_t sum = tn__add_capped(place->level, bytes);
    if (sum > place->peak)
        place->peak = sum;
    bool fits =
        bytes == 0 || (sum <= (uint64_t)INT64_MAX &&
                       (place->ledger->budget == TN__UNLIMITED || sum <= place->ledger->budget));
    return fits ? TN_OK : short_of_bytes(sim, place, bytes, label);
}

static tn_status touch(tn__sim *sim, uint32_t k, uint64_t peak, int64_t delta) {
    return tn__sim_touch(sim, k, (int64_t)peak, delta) ? TN_OK : tn__no_memory();
}

static tn_status charge(tn__sim *sim, tn_location at, uint64_t bytes) {
    uint32_t k = tn__sim_meet(sim, at);
    tn_status status = stand(sim, k, bytes, NULL);
    if (status == TN_OK)
        status = touch(sim, k, bytes, (int64_t)bytes);
    if (status == TN_OK)
        sim->places[k].used += bytes;
    return status;
}

/* M174: compared, then dropped. */
static tn_status charge_for_a_moment(tn__sim *sim, tn_location at, uint64_t bytes) {
    uint32_t k = tn__sim_meet(sim, at);
    tn_status status = stand(sim, k, bytes, NULL);
    return status == TN_OK ? touch(sim, k, bytes, 0) : status;
}

static tn_status remove_one(tn__sim *sim, tn__sim_value *v, tn__mat *mat) {
    uint64_t bytes = mat->charged_bytes;
    uint32_t k = tn__sim_meet(sim, mat->at);
    tn_status status = touch(sim, k, 0, -(int64_t)bytes);
    if (status != TN_OK)
        return status;
    sim->places[k].used -= bytes < sim->places[k].used ? bytes : sim->places[k].used;
    return tn__sim_remove(sim, v, mat) ? TN_OK : tn__no_memory();
}

/* ---- Checks ----------------------------------------------------------------------------- */

static tn_status resolve(tn__sim *sim, const tn_action *action, tn__sim_value **out) {
    const tn__value *real;
    tn_status status = tn__version_resolve(sim->in.version, sim->in.manager, action->handle, &real);
    if (status != TN_OK)
        return status;
    tn__sim_value *v = tn__sim_value_of(sim, action->handle.index);
    if (!v || (!v->now && !tn__sim_value_begin(v, real)))
        return tn__no_memory();
    *out = v;
    return v->discarded ? tn__handle_refuse(sim->in.manager, action->handle, TN_HANDLE_DISCARDED)
                        : TN_OK;
}

/* Locations that are valid here are met (M181). */
static tn_status check_location(tn__sim *sim, tn_location *at) {
    tn_status status = tn__driver_check_location(sim->in.driver, *at, at);
    if (status == TN_OK)
        (void)tn__sim_meet(sim, *at);
    else
        tn__error_current()->at = *at;
    return status;
}

static tn_status check_locations(tn__sim *sim, tn_action *a, tn_action_explanation *e) {
    if (a->kind == TN_ACTION_DISCARD)
        return TN_OK;
    if (a->kind == TN_ACTION_DROP)
        e->source = a->at;
    else
        e->destination = a->at;
    tn_status status = check_location(sim, &a->at);
    if (status == TN_OK && a->kind == TN_ACTION_MOVE && a->from.kind != TN_LOCATION_NONE) {
        e->source = a->from;
        status = check_location(sim, &a->from);
    }
    if (status != TN_OK)
        tn__error_current()->reason = TN_REASON_LOCATION_INVALID;
    return status;
}

static tn_status list_protected(tn__sim *sim, tn_location at) {
    if (!sim->listed)
        sim->listed = tn__alloc(TN__LEDGER_COUNT * sizeof *sim->listed);
    if (!sim->listed)
        return tn__no_memory();
    sim->listed[sim->listed_count++] = at;
    return TN_OK;
}

/* M171: only what is really there can be protected. */
static tn_status check_protected(tn__sim *sim, const tn_action *a, const tn__sim_value *v,
                                 const tn__choice *choice) {
    tn__mat *const *mats = a->kind == TN_ACTION_DISCARD ? v->now->mats : &choice->remove;
    uint32_t count = a->kind == TN_ACTION_DISCARD ? v->now->mat_count : choice->remove != NULL;
    const tn__mat *first = NULL;
    tn__protection found = {0, 0, 0};
    for (uint32_t i = 0; i < count; i++) {
        tn__protection p = tn__guards_of(sim->in.guards, mats[i]);
        if (!tn__protected(&p))
            continue;
        if (!first) {
            first = mats[i];
            found = p;
        }
        if (a->kind == TN_ACTION_DISCARD && list_protected(sim, mats[i]->at) != TN_OK)
            return TN_ERR_HOST_MEMORY;
    }
    return first ? is_protected(sim, a, first, &found) : TN_OK;
}

/* ---- One action ------------------------------------------------------------------------- */

static tn_status make(tn__sim *sim, tn__sim_value *v, const tn__choice *choice) {
    uint64_t bytes = v->real->charge_bytes;
    tn_status status = TN_OK;
    if (choice->step == TN__STEP_LOAD && !tn__choice_in_place(choice))
        status = charge_for_a_moment(sim, choice->source, bytes);
    if (status == TN_OK)
        status = charge(sim, choice->destination, bytes);
    if (status == TN_OK && !tn__sim_install(sim, v, choice->destination))
        status = tn__no_memory();
    return status;
}

static tn_status perform(tn__sim *sim, const tn_action *a, tn__sim_value *v,
                         const tn__choice *choice) {
    tn_status status = TN_OK;
    if (choice->step == TN__STEP_COPY || choice->step == TN__STEP_LOAD)
        status = make(sim, v, choice);
    if (status == TN_OK && choice->remove)
        status = remove_one(sim, v, choice->remove);
    if (a->kind != TN_ACTION_DISCARD)
        return status;
    while (status == TN_OK && v->now->mat_count > 0)
        status = remove_one(sim, v, v->now->mats[0]);
    v->discarded = true;
    return status;
}

static tn_status act(tn__sim *sim, tn_action_explanation *e) {
    tn_action a = e->action;
    tn__sim_value *v = NULL;
    tn__choice choice = {.step = TN__STEP_NO_OP};
    tn_status status = resolve(sim, &a, &v);
    if (status != TN_OK)
        return status; /* M177 */
    e->logical_bytes = v->real->logical_bytes;
    e->storage_bytes = v->real->charge_bytes;
    status = check_locations(sim, &a, e);
    if (status != TN_OK)
        return status;
    status = tn__choose(sim->in.manager, v->now, &a, &choice);
    e->destination = choice.destination;
    if (status == TN_OK || choice.source.kind != TN_LOCATION_NONE)
        e->source = choice.source; /* else what was named (M178) */
    if (status == TN_OK)
        status = check_protected(sim, &a, v, &choice);
    if (status == TN_OK && choice.last_copy)
        status = tn__last_copy(sim->in.manager, &a);
    if (status == TN_OK)
        status = perform(sim, &a, v, &choice);
    e->no_op = status == TN_OK && choice.step == TN__STEP_NO_OP;
    e->reason = e->no_op ? choice.reason : TN_REASON_NONE;
    return status;
}

/* ---- The plan --------------------------------------------------------------------------- */

static tn_status keep_problem(tn__sim *sim, const tn__sim_part *part, size_t i, tn_status status) {
    if (status == TN_ERR_HOST_MEMORY)
        return status;
    sim->problem = *tn__error_current();
    sim->problem_phase = part->phase;
    sim->problem_index = i;
    sim->feasible = false;
    return TN_OK;
}

static tn_status step(tn__sim *sim, const tn__sim_part *part, size_t i) {
    if (part->phase == TN_PHASE_RESERVE) {
        const tn_reservation_spec *r = &part->reservations[i];
        tn_location at = r->at;
        tn_status status = tn__driver_check_location(sim->in.driver, at, &at);
        if (status != TN_OK) {
            tn__error_current()->reason = TN_REASON_LOCATION_INVALID;
            tn__error_current()->at = r->at;
            name_reservation(tn__error_current(), r->label);
        } else {
            uint32_t k = tn__sim_meet(sim, at);
            status = stand(sim, k, r->bytes, r->label);
            if (status == TN_OK)
                status = touch(sim, k, r->bytes, (int64_t)r->bytes);
        }
        return status;
    }
    if (!tn__grow(&sim->actions, &sim->action_room, sim->action_count, sizeof *sim->actions))
        return tn__no_memory();
    tn_action_explanation *e = &sim->actions[sim->action_count++];
    *e = (tn_action_explanation){
        .size = sizeof *e, .action = part->actions[i], .phase = part->phase, .index = i};
    tn_status status = act(sim, e);
    e->executable = status == TN_OK;
    if (status != TN_OK)
        e->reason = tn__error_current()->reason;
    return status;
}

static tn_status run(tn__sim *sim) {
    if (!tn__sim_places_begin(sim))
        return tn__no_memory();
    for (size_t p = 0; p < sim->in.part_count && sim->feasible; p++) {
        const tn__sim_part *part = &sim->in.parts[p];
        for (size_t i = 0; i < part->count && sim->feasible; i++) {
            tn_status status = step(sim, part, i);
            if (status != TN_OK)
                status = keep_problem(sim, part, i, status);
            if (status != TN_OK)
                return status;
            sim->steps++;
        }
    }
    return TN_OK;
}

tn_status tn__sim_run(const tn__sim_input *in, tn__sim *out) {
    tn_error kept = *tn__error_current();
    *out = (tn__sim){.in = *in, .feasible = true};
    tn_status status = run(out);
    if (status != TN_OK) {
        tn__sim_fini(out);
        return status;
    }
    tn__error_restore(&kept);
    return TN_OK;
}

void tn__sim_fini(tn__sim *sim) {
    tn__sim_forget(sim);
    tn__free(sim->places);
    tn__free(sim->touches);
    tn__free(sim->removals);
    tn__free(sim->actions);
    tn__free(sim->listed);
    memset(sim, 0, sizeof *sim);
}
