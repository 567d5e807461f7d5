/* SPDX-License-Identifier: MIT */
/*
 * Who protects what, from one scan of the records: a small table of the materializations that are
 * pinned now. Its size is that of the live lifetimes, so a plan of any length costs one scan.
 */
#include <string.h>

#include "plan/plan_internal.h"

#define FIRST_ROOM 32u

static size_t bucket(const tn__guards *g, const tn__mat *mat) {
    uint64_t bits = (uint64_t)(uintptr_t)mat;
    return (size_t)((bits >> 6) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (g->bucket_count - 1);
}

static tn__guard *find(const tn__guards *g, const tn__mat *mat) {
    if (g->bucket_count == 0)
        return NULL;
    for (uint32_t i = g->buckets[bucket(g, mat)]; i; i = g->guards[i - 1].next)
        if (g->guards[i - 1].mat == mat)
            return &g->guards[i - 1];
    return NULL;
}

/* Twice as many buckets as guards. */
static bool rehash(tn__guards *g) {
    size_t count = g->bucket_count ? g->bucket_count * 2 : 2 * FIRST_ROOM;
    uint32_t *buckets = tn__zalloc(count * sizeof *buckets);
    if (!buckets)
        return false;
    tn__free(g->buckets);
    g->buckets = buckets;
    g->bucket_count = count;
    for (size_t i = 0; i < g->count; i++) {
        uint32_t *head = &buckets[bucket(g, g->guards[i].mat)];
        g->guards[i].next = *head;
        *head = (uint32_t)i + 1;
    }
    return true;
}

static tn__guard *add(tn__guards *g, const tn__seen_pin *pin, tn_location at) {
    if (g->count >= g->bucket_count / 2 && !rehash(g))
        return NULL;
    if (!tn__grow(&g->guards, &g->room, g->count, sizeof *g->guards))
        return NULL;
    uint32_t *head = &g->buckets[bucket(g, pin->mat)];
    tn__guard *guard = &g->guards[g->count++];
    *guard = (tn__guard){.mat = pin->mat, .index = pin->index, .at = at, .next = *head};
    *head = (uint32_t)g->count;
    return guard;
}

static bool add_pending(tn__guards *g, tn__guard *guard, const tn__seen *seen) {
    if (!tn__grow(&g->pending, &g->pending_room, g->pending_count, sizeof *g->pending))
        return false;
    g->pending[g->pending_count++] =
        (tn__pending_pin){.record = seen->record, .word = seen->word, .next = guard->pending};
    guard->pending = (uint32_t)g->pending_count;
    guard->p.pending++;
    return true;
}

static bool add_reserved(tn__guards *g, const tn__seen *seen) {
    if (!tn__grow(&g->reserved, &g->reserved_room, g->reserved_count, sizeof *g->reserved))
        return false;
    tn__guard_reserved *r = &g->reserved[g->reserved_count++];
    *r = (tn__guard_reserved){.at = seen->at, .bytes = seen->bytes};
    memcpy(r->label, seen->label, sizeof r->label - 1);
    return true;
}

static bool each(void *context, const tn__seen *seen) {
    tn__guards *g = context;
    if (seen->what == TN__SEEN_RESERVATION)
        return add_reserved(g, seen);
    for (size_t i = 0; i < seen->pin_count; i++) {
        tn__guard *guard = find(g, seen->pins[i].mat);
        if (!guard)
            guard = add(g, &seen->pins[i], seen->at);
        if (!guard)
            return false;
        if (seen->what == TN__SEEN_PENDING) {
            if (!add_pending(g, guard, seen))
                return false;
        } else if (seen->what == TN__SEEN_HOLD) {
            guard->p.holds++;
        } else {
            guard->p.uses++;
        }
    }
    return true;
}

tn_status tn__guards_read(tn__life *life, tn__guards *out) {
    *out = (tn__guards){.life = life};
    if (tn__life_walk(life, each, out))
        return TN_OK;
    tn__guards_fini(out);
    return tn__no_memory();
}

void tn__guards_fini(tn__guards *g) {
    tn__free(g->guards);
    tn__free(g->buckets);
    tn__free(g->pending);
    tn__free(g->reserved);
    *g = (tn__guards){.life = g->life};
}

/* Pending records that are complete are struck off the list. */
static void look_at_pending(tn__guards *g, tn__guard *guard) {
    uint32_t *at = &guard->pending;
    while (*at) {
        tn__pending_pin *pin = &g->pending[*at - 1];
        if (tn__life_seen_over(g->life, pin->record, pin->word)) {
            *at = pin->next;
            guard->p.pending--;
        } else {
            at = &pin->next;
        }
    }
}

tn__protection tn__guards_of(tn__guards *g, const tn__mat *mat) {
    tn__guard *guard = find(g, mat);
    if (!guard)
        return (tn__protection){0, 0, 0};
    if (!g->quiet)
        look_at_pending(g, guard);
    return guard->p;
}

uint64_t tn__guards_reserved(const tn__guards *g, tn_location at) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < g->reserved_count; i++)
        if (tn__location_same(g->reserved[i].at, at))
            bytes = tn__add_capped(bytes, g->reserved[i].bytes);
    return bytes;
}
