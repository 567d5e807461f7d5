/* SPDX-License-Identifier: MIT */
/*
 * What a planning state comes to: trial admission (C63..C71); the dry run of what was found, its
 * peaks (C110) and the one thing it can refuse (C70).
 */
#include "model_control_internal.h"

#include <stdlib.h>

/* ---- Trial admission (C63..C71) -------------------------------------------------------------- */

typedef struct scratch {
    uint64_t used[MC_LOCATIONS], reserved[MC_LOCATIONS];
    uint64_t at;
} scratch;

static bool fits(const mc_world *world, const scratch *t, int at, uint64_t bytes,
                 mc_check *failed) {
    *failed = (mc_check){at, bytes, failed->stage, failed->subject};
    return mc_fits(world, at, t->used[at] + t->reserved[at], bytes);
}

static bool admit(const mc_world *world, scratch *t, int i, mc_answer *out, mc_check *failed) {
    mc_endpoint r = world->requirements[i];
    const mc_value *value = &world->values[r.value];
    int origin = mc_first_place(t->at, r.value), source = value->source;
    if (mc_is_at(t->at, r.value, r.at))
        return true;
    failed->subject = i;
    if (origin == MC_NOWHERE) {
        failed->stage = MC_SOURCE;
        if (!fits(world, t, source, value->charge, failed))
            return false;
        if (source != r.at)
            t->reserved[source] += value->charge;
    }
    failed->stage = MC_MATERIALIZATION;
    if (!fits(world, t, r.at, value->charge, failed))
        return false;
    if (origin == MC_NOWHERE && source != r.at)
        t->reserved[source] -= value->charge;
    t->used[r.at] += value->charge;
    t->at |= mc_endpoint_bit(r.value, r.at);
    if (origin != MC_NOWHERE && !value->replicable) {
        t->used[origin] -= value->charge;
        t->at &= ~mc_endpoint_bit(r.value, origin);
    }
    out->actions[out->action_count++] =
        (mc_action){!value->replicable, r.value, r.at, value->replicable ? MC_NOWHERE : origin};
    return true;
}

bool mc_trial(const mc_world *world, uint64_t at, mc_answer *out, mc_check *failed) {
    scratch t = {.at = at};
    out->action_count = 0;
    for (int l = 0; l < MC_LOCATIONS; l++) {
        t.used[l] = mc_charged(world, at, l);
        t.reserved[l] = world->reserved[l];
    }
    for (int i = 0; i < world->reservation_count; i++) {
        mc_bytes r = world->reservations[i];
        *failed = (mc_check){.stage = MC_RESERVATION, .subject = i};
        if (!fits(world, &t, r.at, r.bytes, failed))
            return false;
        t.reserved[r.at] += r.bytes;
    }
    for (int i = 0; i < world->requirement_count; i++)
        if (!admit(world, &t, i, out, failed))
            return false;
    for (int v = 0; v < world->value_count && v < MC_VALUES; v++)
        out->after[v] = (uint8_t)(t.at >> (v * 8));
    return true;
}

/* ---- The dry run ------------------------------------------------------------------------------ */

typedef struct play {
    const mc_world *world;
    mc_answer *out;
    uint64_t total[MC_LOCATIONS]; /* used and reserved */
    uint8_t at[MC_VALUES];
} play;

static void look(play *p, int at) {
    mc_answer *out = p->out;
    int i = 0;
    while (i < out->peak_count && out->peaks[i].at != at)
        i++;
    if (i == MC_LOCATIONS)
        abort();
    if (i == out->peak_count)
        out->peaks[out->peak_count++] = (mc_bytes){at, 0};
    if (out->peaks[i].bytes < p->total[at])
        out->peaks[i].bytes = p->total[at];
}

static void add(play *p, int at, uint64_t bytes) {
    p->total[at] += bytes;
    look(p, at);
}

static void remove_from(play *p, int value, int at) {
    p->total[at] -= p->world->values[value].charge;
    p->at[value] &= (uint8_t) ~(1u << at);
}

static void make(play *p, int value, int at) {
    const mc_value *v = &p->world->values[value];
    bool load = p->at[value] == 0 && v->source != at;
    add(p, at, v->charge);
    if (load) {
        add(p, v->source, v->charge);
        p->total[v->source] -= v->charge;
    }
    p->at[value] |= (uint8_t)(1u << at);
}

static void reclaim(play *p, const mc_release *r) {
    if (r->to != MC_NOWHERE)
        make(p, r->value, r->to);
    remove_from(p, r->value, r->from);
}

static void enter(play *p, const mc_action *a) {
    if (a->move && a->from != MC_NOWHERE && p->world->values[a->value].protected_ >> a->from & 1)
        p->out->verdict = MC_REFUSED;
    make(p, a->value, a->at);
    if (a->move && a->from != MC_NOWHERE)
        remove_from(p, a->value, a->from);
}

uint64_t mc_used(const mc_world *world, int at) {
    uint64_t sum = 0;
    for (int v = 0; v < world->value_count; v++)
        if (world->values[v].at >> at & 1)
            sum += world->values[v].charge;
    return sum;
}

void mc_play(const mc_world *world, mc_answer *answer) {
    play p = {.world = world, .out = answer};
    for (int l = 0; l < MC_LOCATIONS; l++)
        p.total[l] = mc_used(world, l) + world->reserved[l];
    for (int v = 0; v < world->value_count; v++)
        p.at[v] = world->values[v].at;
    for (int i = 0; i < world->tracked_count; i++)
        look(&p, world->tracked[i]);
    for (int i = 0; i < answer->release_count; i++)
        reclaim(&p, &answer->releases[i]);
    for (int i = 0; i < world->reservation_count; i++)
        add(&p, world->reservations[i].at, world->reservations[i].bytes);
    for (int i = 0; i < answer->action_count; i++)
        enter(&p, &answer->actions[i]);
}

void mc_decide(const mc_world *world, mc_answer *out) {
    mc_walk(world, out);
    if (out->verdict == MC_FOUND)
        mc_play(world, out);
}
