/* SPDX-License-Identifier: MIT */
/*
 * The simulated state: private copies of the values that a plan touches, and the charge of each
 * location.
 */
#include <string.h>

#include "plan/plan_priv.h"

/* ---- Locations -------------------------------------------------------------------------- */

static tn__sim_place *add_place(tn__sim *sim, tn_location at) {
    tn__sim_place *place = &sim->places[sim->place_count++];
    *place = (tn__sim_place){.at = at, .ledger = tn__store_ledger(sim->in.store, at)};
    sim->place_of[place->ledger - sim->in.store->ledgers] = (uint8_t)sim->place_count;
    return place;
}

/* Tracked locations come first, at their current charge (M181): what the version has there and what
 * is reserved. Claims and temporary charges of plans in flight are none of ours: a value that is
 * being loaded would count twice. Whoever then does not fit waits for them; if there is nobody to
 * wait for, a reserve is between its charge and its record, and the ledger alone knows. */
bool tn__sim_places_begin(tn__sim *sim) {
    const tn__table *table = sim->in.version->table;
    sim->places = tn__alloc(TN__LEDGER_COUNT * sizeof *sim->places);
    if (!sim->places)
        return false;
    for (uint32_t i = 0; i < table->count; i++) {
        uint64_t total, claimed;
        tn__sim_place *place = add_place(sim, table->places[i].at);
        tn__ledger_read(place->ledger, &total, &claimed);
        place->used = table->places[i].used_bytes;
        place->began = sim->in.by_ledger
                           ? total - claimed
                           : place->used + tn__guards_reserved(sim->in.guards, place->at);
        place->level = place->peak = place->began;
    }
    return true;
}

uint32_t tn__sim_meet(tn__sim *sim, tn_location at) {
    size_t position = (size_t)(tn__store_ledger(sim->in.store, at) - sim->in.store->ledgers);
    if (!sim->place_of[position])
        (void)add_place(sim, at);
    return sim->place_of[position] - 1u;
}

bool tn__sim_touch(tn__sim *sim, uint32_t place, int64_t peak, int64_t delta) {
    if (!tn__grow(&sim->touches, &sim->touch_room, sim->touch_count, sizeof *sim->touches))
        return false;
    sim->touches[sim->touch_count++] =
        (tn__touch){.step = (uint32_t)sim->steps, .place = place, .peak = peak, .delta = delta};
    sim->places[place].level += (uint64_t)delta;
    return true;
}

/* From the last step to the first: what is needed beyond the level before a touch is its own peak,
 * or what the later ones need on top of its delta. */
void tn__sim_needs(tn__sim *sim, size_t steps) {
    for (size_t i = 0; i < sim->place_count; i++) {
        sim->places[i].need = 0;
        sim->places[i].frees = false;
    }
    for (size_t i = sim->touch_count; i-- > 0;) {
        tn__touch *t = &sim->touches[i];
        tn__sim_place *place = &sim->places[t->place];
        if (t->step >= steps)
            continue;
        t->need_after = place->need;
        t->frees_after = place->frees;
        place->frees |= t->delta < 0;
        int64_t later = t->delta + (int64_t)place->need;
        place->need = (uint64_t)(later > t->peak ? later : t->peak);
    }
}

/* ---- Values ----------------------------------------------------------------------------- */

static tn__sim_value *slot_of(tn__sim_value *values, size_t room, uint64_t index) {
    size_t i = (size_t)(index * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (room - 1);
    while (values[i].index && values[i].index != index)
        i = (i + 1) & (room - 1);
    return &values[i];
}

static bool more_values(tn__sim *sim) {
    size_t room = sim->value_room ? sim->value_room * 2 : 16;
    tn__sim_value *values = tn__zalloc(room * sizeof *values);
    if (!values)
        return false;
    for (size_t i = 0; i < sim->value_room; i++)
        if (sim->values[i].index)
            *slot_of(values, room, sim->values[i].index) = sim->values[i];
    tn__free(sim->values);
    sim->values = values;
    sim->value_room = room;
    return true;
}

tn__sim_value *tn__sim_value_of(tn__sim *sim, uint64_t index) {
    if (sim->value_count >= sim->value_room / 2 && !more_values(sim))
        return NULL;
    tn__sim_value *v = slot_of(sim->values, sim->value_room, index);
    if (!v->index) {
        v->index = index;
        sim->value_count++;
    }
    return v;
}

bool tn__sim_value_begin(tn__sim_value *v, const tn__value *real) {
    uint32_t room = real->mat_count + 2u;
    v->now = tn__alloc(sizeof *v->now + room * sizeof v->now->mats[0]);
    if (!v->now)
        return false;
    /* All but the node, which belongs to the writers (P4). */
    memset(v->now, 0, sizeof v->now->node);
    memcpy((char *)v->now + sizeof v->now->node, (const char *)real + sizeof real->node,
           sizeof *real - sizeof real->node + real->mat_count * sizeof real->mats[0]);
    v->real = real;
    v->room = room;
    return true;
}

static bool is_real(const tn__sim_value *v, const tn__mat *mat) {
    for (uint32_t i = 0; i < v->real->mat_count; i++)
        if (v->real->mats[i] == mat)
            return true;
    return false;
}

bool tn__sim_install(tn__sim *sim, tn__sim_value *v, tn_location at) {
    if (v->now->mat_count == v->room) {
        uint32_t room = v->room * 2;
        tn__value *now = tn__alloc(sizeof *now + room * sizeof now->mats[0]);
        if (!now)
            return false;
        memcpy(now, v->now, sizeof *now + v->now->mat_count * sizeof now->mats[0]);
        tn__free(v->now);
        v->now = now;
        v->room = room;
    }
    tn__mat *mat = tn__zalloc(sizeof *mat);
    if (!mat)
        return false;
    mat->at = at;
    mat->place = (uint32_t)sim->steps; /* when it was made */
    mat->index = v->index;
    mat->charged_bytes = v->real->charge_bytes;
    v->now->mats[v->now->mat_count++] = mat;
    return true;
}

bool tn__sim_remove(tn__sim *sim, tn__sim_value *v, tn__mat *mat) {
    if (!tn__grow(&sim->removals, &sim->removal_room, sim->removal_count, sizeof *sim->removals))
        return false;
    bool real = is_real(v, mat);
    sim->removals[sim->removal_count++] =
        (tn__sim_removal){.step = (uint32_t)sim->steps,
                          .made = real ? 0 : mat->place, /* a real one's is its remover's */
                          .mat = real ? mat : NULL};
    uint32_t i = 0;
    while (v->now->mats[i] != mat)
        i++;
    v->now->mat_count--;
    memmove(&v->now->mats[i], &v->now->mats[i + 1],
            (v->now->mat_count - i) * sizeof v->now->mats[0]);
    if (!real)
        tn__free(mat);
    return true;
}

void tn__sim_forget(tn__sim *sim) {
    for (size_t i = 0; i < sim->value_room; i++) {
        tn__sim_value *v = &sim->values[i];
        if (!v->now)
            continue;
        for (uint32_t m = 0; m < v->now->mat_count; m++)
            if (!is_real(v, v->now->mats[m]))
                tn__free(v->now->mats[m]);
        tn__free(v->now);
    }
    tn__free(sim->values);
    sim->values = NULL;
    sim->value_count = sim->value_room = 0;
    sim->in.version = NULL;
    sim->in.guards = NULL;
}
