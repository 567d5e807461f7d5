/* SPDX-License-Identifier: MIT */
/*
 * The built-in policy: deterministic tiered LRU (C25..C34).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/controller_priv.h"

typedef struct lru {
    tn_tier *tiers; /* in the caller's order (C27) */
    size_t count;
    tn_location *locations; /* all lists */
    char *text;
    tn_config_pair pair;
} lru;

/* ---- Order ------------------------------------------------------------------------------ */

static int by_position(const void *p, const void *q, void *candidates) {
    const tn_candidate *x = (const tn_candidate *)candidates + *(const size_t *)p;
    const tn_candidate *y = (const tn_candidate *)candidates + *(const size_t *)q;
    tn__key a = {x->priority, x->last_epoch, x->stable_key, x->registration_index, false};
    tn__key b = {y->priority, y->last_epoch, y->stable_key, y->registration_index, false};
    return tn__lru_before(&a, &b) ? -1 : tn__lru_before(&b, &a);
}

static tn_status order(void *context, const tn_candidate *candidates, size_t count, size_t *out) {
    (void)context;
    for (size_t i = 0; i < count; i++)
        out[i] = i;
    if (count > 1)
        qsort_r(out, count, sizeof *out, by_position, (void *)candidates);
    return TN_OK;
}

/* ---- Tiers ------------------------------------------------------------------------------ */

static tn_status fallbacks(void *context, tn_location at, tn_location *out, size_t room,
                           size_t *out_count) {
    const lru *l = context;
    *out_count = 0;
    for (size_t i = 0; i < l->count; i++) {
        if (!tn__location_same(l->tiers[i].from, at))
            continue;
        *out_count = l->tiers[i].to_count;
        for (size_t k = 0; k < l->tiers[i].to_count && k < room; k++)
            out[k] = l->tiers[i].to[k];
    }
    return TN_OK;
}

static tn_status check_tier(const tn_tier *tiers, size_t i) {
    tn_location from, to, other;
    if (tiers[i].to_count > 0 && !tiers[i].to)
        return tn__fail(TN_ERR_KIND, "the list of tier %zu is NULL", i);
    tn_status status = tn__location_in(tiers[i].from, &from);
    for (size_t k = 0; k < i && status == TN_OK; k++)
        if (tn__location_same(tiers[k].from, from))
            status = tn__fail(TN_ERR_VALUE, "tier %zu repeats a source location", i);
    for (size_t k = 0; k < tiers[i].to_count && status == TN_OK; k++) {
        status = tn__location_in(tiers[i].to[k], &to);
        if (status == TN_OK && tn__location_same(from, to))
            status = tn__fail(TN_ERR_VALUE, "tier %zu lists its own source", i);
        for (size_t j = 0; j < k && status == TN_OK; j++)
            if (tn__location_in(tiers[i].to[j], &other) == TN_OK && tn__location_same(other, to))
                status = tn__fail(TN_ERR_VALUE, "tier %zu lists a destination twice", i);
    }
    return status;
}

static const char *name(void *context) {
    (void)context;
    return "deterministic-tiered-lru";
}

static const tn_config_pair *config(void *context, size_t *out_count) {
    lru *l = context;
    *out_count = 1;
    return &l->pair;
}

static void forget(void *context) {
    lru *l = context;
    tn__free(l->tiers);
    tn__free(l->locations);
    tn__free(l->text);
    tn__free(l);
}

static size_t text_room(const lru *l) {
    size_t room = 3;
    for (size_t i = 0; i < l->count; i++)
        room += (l->tiers[i].to_count + 1) * (TN_LOCATION_NAME_MAX + 1) + 4;
    return room;
}

/* [from:[to,to],from:[]] */
static void write_text(lru *l) {
    char buffer[TN_LOCATION_NAME_MAX], *to = l->text;
    *to++ = '[';
    for (size_t i = 0; i < l->count; i++) {
        to += sprintf(to, "%s%s:[", i ? "," : "", tn__location_text(l->tiers[i].from, buffer));
        for (size_t k = 0; k < l->tiers[i].to_count; k++)
            to += sprintf(to, "%s%s", k ? "," : "", tn__location_text(l->tiers[i].to[k], buffer));
        *to++ = ']';
    }
    *to++ = ']';
    *to = '\0';
    l->pair = (tn_config_pair){"fallback_tiers", l->text};
}

static bool fill(lru *l, const tn_tier *tiers, size_t count) {
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += tiers[i].to_count;
    l->tiers = tn__alloc(count * sizeof *l->tiers);
    l->locations = tn__alloc(total * sizeof *l->locations);
    if (!l->tiers || !l->locations)
        return false;
    tn_location *to = l->locations;
    for (size_t i = 0; i < count; i++) {
        l->tiers[i] = (tn_tier){tn__location_normal(tiers[i].from), to, tiers[i].to_count};
        for (size_t k = 0; k < tiers[i].to_count; k++)
            *to++ = tn__location_normal(tiers[i].to[k]);
    }
    l->count = count;
    l->text = tn__alloc(text_room(l));
    if (!l->text)
        return false;
    write_text(l);
    return true;
}

tn_status tn_policy_tiered_lru(const tn_tier *tiers, size_t count, tn_policy **out) {
    if (!out || (count > 0 && !tiers))
        return tn__fail(TN_ERR_KIND, "an argument is NULL");
    for (size_t i = 0; i < count; i++) {
        tn_status status = check_tier(tiers, i);
        if (status != TN_OK)
            return status;
    }
    lru *l = tn__zalloc(sizeof *l);
    if (!l)
        return tn__no_memory();
    tn_policy_spec spec = {sizeof spec, l, name, config, fallbacks, order, forget};
    tn_status status = fill(l, tiers, count) ? tn_policy_create(&spec, out) : tn__no_memory();
    if (status != TN_OK)
        forget(l);
    else
        (*out)->built_in = true;
    return status;
}
