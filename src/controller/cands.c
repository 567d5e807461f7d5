/* SPDX-License-Identifier: MIT */
/*
 * Candidates at a location in a planning state (C72..C75): ordinary ones, then required endpoints,
 * each part in the policy's order.
 *
 * With the built-in policy a list is a heap that is popped on demand, so choosing k of c
 * candidates costs c + k log c. What was popped is a ring in order. A candidate that is released
 * leaves the ring until the release is undone; its successor is popped before, so that it returns
 * to its own place. A candidate that can never be released never enters the ring: it only takes a
 * rank.
 */
#include <string.h>

#include "controller/controller_priv.h"

/* ---- What is there ---------------------------------------------------------------------- */

typedef struct gathering {
    tn__walk *w;
    const uint32_t *blocked;
    size_t blocked_count;
    tn__cands *out;
    bool ok;
} gathering;

static bool is_blocked(const gathering *g, const tn__piece *piece) {
    for (size_t i = 0; piece && i < g->blocked_count; i++)
        if (&g->w->pieces[g->blocked[i]] == piece)
            return true;
    return false;
}

static void add(gathering *g, uint64_t index, const tn__piece *piece) {
    tn__cands *out = g->out;
    if (!tn__grow(&out->keys, &out->room, out->left, sizeof *out->keys)) {
        g->ok = false;
        return;
    }
    const tn__meta *meta = tn__meta_find(&g->w->controller->metas, index);
    out->keys[out->left++] =
        (tn__key){.priority = meta ? meta->priority : 0,
                  .epoch = meta ? meta->epoch : 0,
                  .key = meta ? meta->key : NULL,
                  .index = index,
                  .required = piece && tn__where_has(&piece->required, out->at)};
}

/* What the version has there, unless it is protected, gone in this state, or blocked. */
static void visit_resident(void *context, void *item) {
    gathering *g = context;
    const tn__mat *mat = item;
    if (!g->ok)
        return;
    /* few pieces, many candidates: a filter by the low bits of the index spares most look-ups */
    const tn__piece *piece =
        tn__piece_maybe(g->w, mat->index) ? tn__piece_find(g->w, mat->index) : NULL;
    if (piece && (!tn__where_has(&piece->now, g->out->at) || is_blocked(g, piece)))
        return;
    if (g->w->guards->count) {
        tn__protection p = tn__guards_of(g->w->guards, mat);
        if (tn__protected(&p))
            return;
    }
    add(g, mat->index, piece);
}

/* What the search has moved there. */
static void gather_moved(gathering *g) {
    const tn__walk *w = g->w;
    for (size_t i = 0; i < w->piece_count && g->ok && w->moved; i++) {
        const tn__piece *piece = &w->pieces[i];
        if (tn__where_has(&piece->now, g->out->at) && !tn__where_has(&piece->before, g->out->at) &&
            !is_blocked(g, piece))
            add(g, piece->value->index, piece);
    }
}

static bool gather(gathering *g) {
    const tn__place *place = tn__version_place(g->w->version, tn__loc_location(g->out->at));
    if (place && place->value_count > 0) {
        g->out->keys = tn__alloc((size_t)place->value_count * sizeof *g->out->keys);
        g->out->room = g->out->keys ? (size_t)place->value_count : 0;
        g->ok = g->out->keys != NULL;
    }
    if (place)
        tn__radix_items(&place->resident, visit_resident, g);
    gather_moved(g);
    return g->ok;
}

static tn_candidate candidate_of(const tn__walk *w, const tn__cands *c, const tn__key *key) {
    const tn__value *value = tn__version_value(w->version, key->index);
    return (tn_candidate){.handle = {w->controller->of.id, key->index, value->type},
                          .at = tn__loc_location(c->at),
                          .charged_bytes = value->charge_bytes,
                          .registration_index = key->index - 1,
                          .last_epoch = key->epoch,
                          .priority = key->priority,
                          .stable_key = key->key};
}

/* ---- Order of the built-in policy: a heap ----------------------------------------------- */

static void sift(tn__key *heap, size_t count, size_t i) {
    tn__key moving = heap[i];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= count)
            break;
        if (child + 1 < count && tn__lru_before(&heap[child + 1], &heap[child]))
            child++;
        if (!tn__lru_before(&heap[child], &moving))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = moving;
}

static void heapify(tn__cands *c) {
    for (size_t i = c->left / 2; i-- > 0;)
        sift(c->keys, c->left, i);
}

static tn__key take_first(tn__cands *c) {
    tn__key first = c->keys[0];
    c->keys[0] = c->keys[--c->left];
    if (c->left > 1)
        sift(c->keys, c->left, 0);
    return first;
}

/* ---- The ring --------------------------------------------------------------------------- */

static tn__cand *new_node(tn__cands *c) {
    if (!c->blocks || c->blocks->used == TN__CAND_BLOCK) {
        tn__cand_block *block = tn__alloc(sizeof *block);
        if (!block)
            return NULL;
        block->older = c->blocks;
        block->used = 0;
        c->blocks = block;
    }
    return &c->blocks->nodes[c->blocks->used++];
}

static bool link_last(tn__cands *c, const tn_candidate *candidate, bool required) {
    tn__cand *node = new_node(c);
    if (!node)
        return false;
    *node = (tn__cand){.c = *candidate, .required = required, .skipped = c->skipping};
    c->skipping = 0;
    node->prev = c->head.prev;
    node->next = &c->head;
    c->head.prev->next = node;
    c->head.prev = node;
    return true;
}

/* Whether it can be released in no state at all, since the list outlives this one: the only replica
 * of a value without source that may go nowhere. One that had others to begin with may have them
 * again when their releases are undone. */
static bool stuck(tn__walk *w, const tn__cands *c, uint64_t index) {
    const tn__value *value = tn__version_value(w->version, index);
    if (value->source || value->mat_count > 1 || !c->no_tiers)
        return false;
    const tn__piece *piece = tn__piece_find(w, index);
    for (unsigned l = 0; piece && l < TN__LEDGER_COUNT; l++)
        if (l != c->at && tn__where_has(&piece->required, (tn__loc)l))
            return false;
    return true;
}

/* The first of the heap goes to the end of the ring; those that are stuck only count. */
static bool pop(tn__walk *w, tn__cands *c) {
    while (c->left > 0) {
        tn__key key = take_first(c);
        if (stuck(w, c, key.index)) {
            c->skipping++;
            continue;
        }
        tn_candidate candidate = candidate_of(w, c, &key);
        c->failed |= !link_last(c, &candidate, key.required);
        return !c->failed;
    }
    return false;
}

static tn__cand *after(tn__walk *w, tn__cands *c, tn__cand *at) {
    tn__cand *next = at ? at->next : c->head.next;
    if (next != &c->head)
        return next;
    return pop(w, c) ? c->head.prev : NULL;
}

tn__cand *tn__cands_next(tn__walk *w, tn__cands *c, tn__cand *at, uint64_t *rank) {
    tn__cand *next = after(w, c, at);
    if (!next)
        return NULL;
    (void)after(w, c, next); /* it may be released: its place is between two that are linked */
    if (c->failed)
        return NULL;
    *rank += next->skipped + (at != NULL);
    return next;
}

void tn__cands_unlink(tn__cands *c, tn__cand *node) {
    (void)c;
    node->prev->next = node->next;
    node->next->prev = node->prev;
    node->next->skipped += node->skipped;
}

void tn__cands_relink(tn__cands *c, tn__cand *node) {
    (void)c;
    node->next->skipped -= node->skipped;
    node->prev->next = node;
    node->next->prev = node;
}

/* ---- Order of a custom policy ----------------------------------------------------------- */

/* One part, asked by itself (C20). */
static tn_status ask(tn__walk *w, tn__cands *c, bool required) {
    tn_candidate *part = tn__alloc(c->left * sizeof *part);
    size_t *order = tn__alloc(c->left * sizeof *order), n = 0;
    tn_status status = part && order ? TN_OK : tn__no_memory();
    for (size_t i = 0; i < c->left && status == TN_OK; i++)
        if (c->keys[i].required == required)
            part[n++] = candidate_of(w, c, &c->keys[i]);
    if (status == TN_OK)
        status = tn_policy_order(w->controller->policy, part, n, order);
    for (size_t i = 0; i < n && status == TN_OK; i++)
        if (!link_last(c, &part[order[i]], required))
            status = tn__no_memory();
    tn__free(part);
    tn__free(order);
    return status;
}

static tn_status ask_all(tn__walk *w, tn__cands *c) {
    tn_status status = ask(w, c, false);
    if (status == TN_OK)
        status = ask(w, c, true);
    c->left = 0;
    return status;
}

/* ---- Lists ------------------------------------------------------------------------------ */

static tn_status put_in_order(tn__walk *w, tn__cands *c) {
    const tn_policy *policy = w->controller->policy;
    if (!policy->built_in)
        return ask_all(w, c);
    tn_location first;
    size_t room = 1;
    tn_status status = tn_policy_fallbacks(policy, tn__loc_location(c->at), &first, &room);
    c->no_tiers = room == 0;
    heapify(c);
    return status;
}

tn__cands *tn__cands_make(tn__walk *w, tn__loc at, const uint32_t *blocked, size_t blocked_count,
                          tn_status *status) {
    tn__cands *c = tn__zalloc(sizeof *c);
    *status = c ? TN_OK : tn__no_memory();
    if (!c)
        return NULL;
    c->at = at;
    c->head.next = c->head.prev = &c->head;
    gathering g = {w, blocked, blocked_count, c, true};
    *status = gather(&g) ? put_in_order(w, c) : tn__no_memory();
    if (*status == TN_OK)
        return c;
    tn__cands_free(c);
    return NULL;
}

void tn__cands_free(tn__cands *c) {
    if (!c)
        return;
    while (c->blocks) {
        tn__cand_block *older = c->blocks->older;
        tn__free(c->blocks);
        c->blocks = older;
    }
    tn__free(c->keys);
    tn__free(c);
}

/* ---- Destinations ----------------------------------------------------------------------- */

static size_t once(tn__loc *out, size_t count, tn__loc loc) {
    for (size_t i = 0; i < count; i++)
        if (out[i] == loc)
            return count;
    out[count] = loc;
    return count + 1;
}

size_t tn__destinations(tn__walk *w, const tn__piece *piece, tn__loc from, tn__loc *out,
                        size_t *out_required, tn_status *status) {
    tn_location tiers[TN__LEDGER_COUNT];
    size_t count = 0, room = TN__LEDGER_COUNT;
    for (unsigned l = 0; l < TN__LEDGER_COUNT; l++)
        if (l != from && tn__where_has(&piece->required, (tn__loc)l))
            out[count++] = (tn__loc)l;
    *out_required = count;
    *status = tn_policy_fallbacks(w->controller->policy, tn__loc_location(from), tiers, &room);
    if (*status != TN_OK)
        return SIZE_MAX;
    for (size_t i = 0; i < room && i < TN__LEDGER_COUNT; i++)
        count = once(out, count, tn__loc_of(tiers[i]));
    return count;
}
