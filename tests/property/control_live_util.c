/* SPDX-License-Identifier: MIT */
/* A manager in the state of a world, and its policy. */
#include "control_property.h"

#include <stdlib.h>
#include <string.h>

#include "controller/controller_priv.h"

tn_location control_location(int at) {
    if (at == MC_NOWHERE)
        return tn_location_none();
    return at == 0   ? tn_location_pageable()
           : at == 1 ? tn_location_pinned()
                     : tn_location_cuda((uint32_t)at - 2);
}

int control_index(tn_location at) {
    return at.kind == TN_LOCATION_NONE       ? MC_NOWHERE
           : at.kind == TN_LOCATION_PAGEABLE ? 0
           : at.kind == TN_LOCATION_PINNED   ? 1
                                             : (int)at.index + 2;
}

/* ---- State ----------------------------------------------------------------------------------- */

static bool create(live *l, const scene *s, tn_driver *driver, char *why) {
    tn_config config = TN_CONFIG_INIT;
    tn_budget budgets[MC_LOCATIONS];
    for (int i = 0; i < s->budget_count; i++)
        budgets[i] =
            (tn_budget){control_location(s->budget_order[i]), s->world.budget[s->budget_order[i]]};
    config.driver = driver;
    config.budgets = budgets;
    config.budget_count = (size_t)s->budget_count;
    config.mode = s->concurrent ? TN_MODE_CONCURRENT : TN_MODE_SERIAL;
    config.reaper = TN_REAPER_MANUAL;
    tn_status status = tn_manager_create(&config, &l->m);
    return status == TN_OK || CONTROL_FAIL(why, "create: %s", tn_last_error()->message);
}

static tn_status make(live *l, const mc_value *value, int v, tn_driver *driver, int first) {
    if (value->source == MC_NOWHERE) {
        tn_location at = control_location(first);
        tn_payload payload = tt_bytes(driver, at, value->charge);
        tn_status status = tn_manager_adopt(
            l->m, payload, at, value->replicable ? TN_REPLICABLE : TN_EXCLUSIVE, &l->handles[v]);
        if (status != TN_OK)
            tt_free(payload);
        return status;
    }
    tn_value_spec spec = tt_spec(value->charge, value->charge);
    spec.replica_mode = value->replicable ? TN_REPLICABLE : TN_EXCLUSIVE;
    tn_source source = tt_source_of(&l->sources[v]);
    return tn_manager_register_source(l->m, &spec, &source, control_location(value->source),
                                      &l->handles[v]);
}

/* At its source's location first, if it is there at all: that needs no room elsewhere. */
static bool place(live *l, const mc_world *w, int v, tn_driver *driver, bool *unbuilt, char *why) {
    const mc_value *value = &w->values[v];
    int first = value->at ? __builtin_ctz(value->at) : MC_NOWHERE;
    if (value->source != MC_NOWHERE && value->at >> value->source & 1)
        first = value->source;
    tn_status status = make(l, value, v, driver, first);
    for (int k = -1; k < MC_LOCATIONS && status == TN_OK; k++) {
        int at = k < 0 ? first : k;
        if (at == MC_NOWHERE || !(value->at >> at & 1))
            continue;
        tn_location to = control_location(at);
        status = value->replicable
                     ? tn_manager_ensure(l->m, l->handles[v], to, NULL, NULL)
                     : tn_manager_move(l->m, l->handles[v], to, tn_location_none(), NULL, NULL);
    }
    *unbuilt = status == TN_ERR_BUDGET;
    return status == TN_OK || CONTROL_FAIL(why, "v%d: %s", v, tn_last_error()->message);
}

static bool protect(live *l, const mc_world *w, char *why) {
    tn_status status = TN_OK;
    for (int v = 0; v < w->value_count; v++)
        for (int at = 0; at < MC_LOCATIONS && status == TN_OK; at++)
            if (w->values[v].protected_ >> at & 1)
                status = tn_manager_hold(l->m, &l->handles[v], 1, control_location(at),
                                         &l->holds[l->hold_count++]);
    for (int at = 0; at < MC_LOCATIONS && status == TN_OK; at++)
        if (w->reserved[at])
            status = tn_manager_reserve(l->m, control_location(at), w->reserved[at], "old",
                                        &l->reservations[l->reservation_count++]);
    return status == TN_OK || CONTROL_FAIL(why, "protect: %s", tn_last_error()->message);
}

bool live_track(live *l, mc_world *w, char *why) {
    tn_location at[MC_LOCATIONS];
    size_t count = MC_LOCATIONS;
    if (tn_manager_locations(l->m, at, &count) != TN_OK || count > MC_LOCATIONS)
        return CONTROL_FAIL(why, "locations: %zu", count);
    w->tracked_count = (int)count;
    for (size_t i = 0; i < count; i++)
        w->tracked[i] = control_index(at[i]);
    return true;
}

bool live_begin(live *l, scene *s, tn_driver *driver, char *why) {
    bool unbuilt = false;
    *why = 0;
    memset(l, 0, sizeof *l);
    if (!create(l, s, driver, why))
        return false;
    bool ok = true;
    for (int v = 0; v < s->world.value_count && ok; v++)
        ok = place(l, &s->world, v, driver, &unbuilt, why);
    ok = ok && protect(l, &s->world, why) && live_track(l, &s->world, why);
    if (!ok)
        live_end(l);
    if (unbuilt)
        *why = 0;
    return ok;
}

void live_end(live *l) {
    for (int i = 0; i < l->hold_count; i++)
        (void)!tn_hold_release(&l->holds[i]);
    for (int i = 0; i < l->reservation_count; i++)
        (void)!tn_reservation_release(&l->reservations[i]);
    if (tn_manager_destroy(l->m) != TN_OK)
        abort();
}

/* ---- Policies -------------------------------------------------------------------------------- */

static const char *name(void *context) {
    (void)context;
    return "by callbacks";
}

static const tn_config_pair *config(void *context, size_t *out_count) {
    (void)context;
    *out_count = 0;
    return NULL;
}

static tn_status fallbacks(void *context, tn_location at, tn_location *out, size_t room,
                           size_t *out_count) {
    const scene *s = context;
    int from = control_index(at);
    *out_count = from < MC_LOCATIONS ? (size_t)s->world.tier_count[from] : 0;
    for (size_t i = 0; i < *out_count && i < room; i++)
        out[i] = control_location(s->world.tiers[from][i]);
    return TN_OK;
}

static bool lru_before(const tn_candidate *a, const tn_candidate *b) {
    if (a->priority != b->priority)
        return a->priority < b->priority;
    if (a->last_epoch != b->last_epoch)
        return a->last_epoch < b->last_epoch;
    if (!a->stable_key != !b->stable_key)
        return a->stable_key != NULL;
    int keys = a->stable_key ? strcmp(a->stable_key, b->stable_key) : 0;
    return keys ? keys < 0 : a->registration_index < b->registration_index;
}

static bool goes_before(const scene *s, const tn_candidate *a, const tn_candidate *b,
                        size_t count) {
    if (s->world.order == MC_LARGEST && a->charged_bytes != b->charged_bytes)
        return a->charged_bytes > b->charged_bytes;
    if (s->world.order == MC_LARGEST)
        return a->registration_index < b->registration_index;
    if (s->world.order == MC_ODD_LENGTHS && count % 2 == 1)
        return lru_before(b, a);
    return lru_before(a, b);
}

static tn_status order(void *context, const tn_candidate *candidates, size_t count, size_t *out) {
    for (size_t i = 0; i < count; i++) {
        size_t k = i;
        for (; k > 0 && goes_before(context, &candidates[i], &candidates[out[k - 1]], count); k--)
            out[k] = out[k - 1];
        out[k] = i;
    }
    return TN_OK;
}

tn_policy *control_policy(const scene *s) {
    tn_policy *policy = NULL;
    if (s->custom) {
        tn_policy_spec spec = {sizeof spec, (void *)s, name, config, fallbacks, order, NULL};
        return tn_policy_create(&spec, &policy) == TN_OK ? policy : NULL;
    }
    tn_tier tiers[MC_LOCATIONS];
    tn_location to[MC_LOCATIONS][MC_TIERS];
    size_t count = 0;
    for (int l = 0; l < MC_LOCATIONS; l++) {
        for (int i = 0; i < s->world.tier_count[l]; i++)
            to[l][i] = control_location(s->world.tiers[l][i]);
        if (s->world.tier_count[l])
            tiers[count++] = (tn_tier){control_location(l), to[l], (size_t)s->world.tier_count[l]};
    }
    return tn_policy_tiered_lru(tiers, count, &policy) == TN_OK ? policy : NULL;
}

/* ---- Controllers and requests ---------------------------------------------------------------- */

/* Epochs are set directly: here it matters what is decided by them, not how they came about. */
static bool set_metadata(tn_controller *c, const live *l, const mc_world *w, char *why) {
    for (int v = 0; v < w->value_count; v++) {
        const mc_value *value = &w->values[v];
        if ((value->priority || value->key) &&
            tn_controller_set_metadata(c, l->handles[v], value->priority, value->key) != TN_OK)
            return CONTROL_FAIL(why, "metadata: %s", tn_last_error()->message);
        if (value->epoch)
            tn__meta_of(&c->metas, l->handles[v].index)->epoch = value->epoch;
        if (value->epoch > c->epoch)
            c->epoch = value->epoch;
    }
    return true;
}

tn_controller *control_controller(live *l, const scene *s, char *why) {
    tn_controller_config config = TN_CONTROLLER_CONFIG_INIT;
    tn_controller *c = NULL;
    config.policy = control_policy(s);
    config.search_limit = s->world.limit;
    if (!config.policy || tn_controller_create(l->m, &config, &c) != TN_OK ||
        !set_metadata(c, l, &s->world, why)) {
        tn_controller_destroy(c);
        c = NULL;
        if (!*why)
            (void)CONTROL_FAIL(why, "controller: %s", tn_last_error()->message);
    }
    tn_policy_destroy(config.policy);
    return c;
}

tn_status control_request(const live *l, const mc_world *w, tn_request **out) {
    tn_requirement requirements[MC_REQUIREMENTS];
    tn_reservation_spec reservations[MC_RESERVATIONS];
    tn_request_spec spec = TN_REQUEST_SPEC_INIT;
    for (int i = 0; i < w->requirement_count; i++)
        requirements[i] = (tn_requirement){l->handles[w->requirements[i].value],
                                           control_location(w->requirements[i].at)};
    for (int i = 0; i < w->reservation_count; i++)
        reservations[i] = (tn_reservation_spec){control_location(w->reservations[i].at),
                                                w->reservations[i].bytes, "new"};
    spec.name = "request";
    spec.requirements = requirements;
    spec.requirement_count = (size_t)w->requirement_count;
    spec.reservations = reservations;
    spec.reservation_count = (size_t)w->reservation_count;
    return tn_request_create(&spec, out);
}
