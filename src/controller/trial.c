/* SPDX-License-Identifier: MIT */
/*
 * Trial admission of the whole request at a planning state (C63..C71), on scratch copies.
 */
#include <string.h>

#include "controller/controller_priv.h"

typedef struct trial {
    tn__walk *w;
    tn__check *failed;
    enum tn__stage stage;
    uint32_t subject;
} trial;

static bool test(trial *t, tn__loc at, uint64_t bytes) {
    tn__walk *w = t->w;
    uint64_t level = tn__add_capped(w->trial_used[at], w->trial_reserved[at]);
    if (tn__fits(level, bytes, w->budget[at]))
        return true;
    uint64_t sum = tn__add_capped(level, bytes);
    *t->failed = (tn__check){.at = at,
                             .stage = t->stage,
                             .subject = t->subject,
                             .bytes = bytes,
                             .over = sum - w->budget[at]};
    return false;
}

static bool reserve_all(trial *t) {
    tn__walk *w = t->w;
    t->stage = TN__STAGE_RESERVATION;
    for (size_t i = 0; i < w->reservation_count; i++) {
        tn__loc at = tn__loc_of(w->reservations[i].at);
        t->subject = (uint32_t)i;
        if (!test(t, at, w->reservations[i].bytes))
            return false;
        w->trial_reserved[at] += w->reservations[i].bytes;
    }
    return true;
}

static tn_action action_of(const tn__walk *w, size_t i, tn__loc origin) {
    const tn_requirement *r = &w->request->requirements[i];
    const tn__value *value = w->pieces[w->required[i]].value;
    tn_location from = origin == TN__NOWHERE ? tn_location_none() : tn__loc_location(origin);
    return value->replicable ? tn_action_ensure(r->handle, r->at)
                             : tn_action_move(r->handle, r->at, from);
}

/* C66. With source and destination the same, one charge is enough. */
static bool reconstruct(trial *t, const tn__value *value, tn__loc to) {
    tn__walk *w = t->w;
    tn__loc source = tn__loc_of(value->source_at);
    uint64_t bytes = value->charge_bytes;
    t->stage = TN__STAGE_SOURCE;
    if (!test(t, source, bytes))
        return false;
    if (source != to)
        w->trial_reserved[source] += bytes;
    t->stage = TN__STAGE_MATERIALIZATION;
    bool fits = test(t, to, bytes);
    if (source != to)
        w->trial_reserved[source] -= bytes;
    return fits;
}

static bool require(trial *t, size_t i) {
    tn__walk *w = t->w;
    const tn__value *value = w->pieces[w->required[i]].value;
    tn__where *where = &w->trial_where[w->required[i]];
    tn__loc to = tn__loc_of(w->request->requirements[i].at);
    if (tn__where_has(where, to))
        return true;
    tn__loc origin = tn__where_first(where);
    t->subject = (uint32_t)i;
    t->stage = TN__STAGE_MATERIALIZATION;
    if (origin == TN__NOWHERE ? !reconstruct(t, value, to) : !test(t, to, value->charge_bytes))
        return false;
    w->trial_used[to] += value->charge_bytes;
    tn__where_flip(where, to);
    if (origin != TN__NOWHERE && !value->replicable) {
        w->trial_used[origin] -= value->charge_bytes;
        tn__where_flip(where, origin);
    }
    w->actions[w->action_count++] = action_of(w, i, origin);
    return true;
}

bool tn__trial(tn__walk *w, tn__check *failed) {
    trial t = {.w = w, .failed = failed};
    memcpy(w->trial_used, w->used, w->locs * sizeof w->used[0]);
    memcpy(w->trial_reserved, w->reserved, w->locs * sizeof w->reserved[0]);
    for (size_t i = 0; i < w->required_pieces; i++)
        w->trial_where[i] = w->pieces[i].now;
    w->action_count = 0;
    if (!reserve_all(&t))
        return false;
    for (size_t i = 0; i < w->request->count; i++)
        if (!require(&t, i))
            return false;
    return true;
}
