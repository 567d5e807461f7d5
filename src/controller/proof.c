/* SPDX-License-Identifier: MIT */
/*
 * Proofs that nothing below a state can succeed (specification 15.3), so that it may be skipped
 * without changing the answer (C161). Switched on by the first dead end.
 *
 * Working set: at the end of a successful trial a location has its reserved bytes, the request's
 * reservations, every value that is required there, and what is stuck there; if that is over its
 * budget, there is no such end.
 *
 * Stuck: a protected materialization; and the only replica of a value without source whose every
 * destination (required elsewhere, tiers) is too small for it beside what is stuck there. The
 * first of them to leave would have to enter a location in which all the others still are.
 */
#include "controller/controller_priv.h"

typedef struct sole {
    uint64_t index, bytes;
    tn__loc at;
    bool is_stuck;
} sole;

struct tn__proof {
    sole *soles; /* only replicas of values without source that the search has not touched */
    size_t count, room;
    uint64_t protected[TN__LEDGER_COUNT];         /* bytes */
    uint64_t protected_outside[TN__LEDGER_COUNT]; /* of values that the request does not name */
    uint64_t required[TN__LEDGER_COUNT];          /* charges and reservations of the request */
    tn__loc *tiers[TN__LEDGER_COUNT];
    size_t tier_count[TN__LEDGER_COUNT];
    bool tiers_known[TN__LEDGER_COUNT];
    /* of the state that is judged */
    uint64_t stuck[TN__LEDGER_COUNT], stuck_outside[TN__LEDGER_COUNT];
    bool *piece_stuck;
    size_t piece_room;
};

typedef struct tn__proof proof;

/* ---- Once per search -------------------------------------------------------------------- */

static bool named(const tn__walk *w, uint64_t index) {
    const tn__piece *piece = tn__piece_find(w, index);
    return piece && (size_t)(piece - w->pieces) < w->required_pieces;
}

typedef struct gathering {
    tn__walk *w;
    proof *p;
    bool ok;
} gathering;

static void look_at(void *context, void *item) {
    gathering *g = context;
    const tn__mat *mat = item;
    tn__loc at = tn__loc_of(mat->at);
    tn__protection protection =
        g->w->guards->count ? tn__guards_of(g->w->guards, mat) : (tn__protection){0, 0, 0};
    if (tn__protected(&protection)) {
        g->p->protected[at] += mat->charged_bytes;
        if (!named(g->w, mat->index))
            g->p->protected_outside[at] += mat->charged_bytes;
        return;
    }
    const tn__value *value = tn__version_value(g->w->version, mat->index);
    if (value->source || value->mat_count > 1 || named(g->w, mat->index))
        return;
    g->ok = g->ok && tn__grow(&g->p->soles, &g->p->room, g->p->count, sizeof *g->p->soles);
    if (g->ok)
        g->p->soles[g->p->count++] =
            (sole){.index = mat->index, .bytes = mat->charged_bytes, .at = at};
}

static void sum_request(const tn__walk *w, proof *p) {
    for (size_t i = 0; i < w->reservation_count; i++) {
        tn__loc at = tn__loc_of(w->reservations[i].at);
        p->required[at] = tn__add_capped(p->required[at], w->reservations[i].bytes);
    }
    for (size_t i = 0; i < w->request->count; i++) {
        tn__loc at = tn__loc_of(w->request->requirements[i].at);
        p->required[at] =
            tn__add_capped(p->required[at], w->pieces[w->required[i]].value->charge_bytes);
    }
}

static proof *make(tn__walk *w) {
    proof *p = tn__zalloc(sizeof *p);
    if (!p)
        return NULL;
    w->proof = p;
    gathering g = {w, p, true};
    for (uint32_t i = 0; i < w->version->table->count; i++)
        tn__radix_items(&w->version->table->places[i].resident, look_at, &g);
    sum_request(w, p);
    return g.ok ? p : NULL;
}

static bool know_tiers(tn__walk *w, proof *p, tn__loc at, tn_status *status) {
    tn__loc all[2 * TN__LEDGER_COUNT];
    tn__piece nobody = {.value = NULL};
    size_t required;
    if (p->tiers_known[at])
        return true;
    size_t n = tn__destinations(w, &nobody, at, all, &required, status);
    if (*status != TN_OK)
        return false;
    p->tiers[at] = tn__alloc(n);
    if (!p->tiers[at]) {
        *status = tn__no_memory();
        return false;
    }
    for (size_t i = 0; i < n; i++)
        p->tiers[at][i] = all[i];
    p->tier_count[at] = n;
    p->tiers_known[at] = true;
    return true;
}

/* ---- Per state -------------------------------------------------------------------------- */

static bool too_small(const tn__walk *w, const proof *p, tn__loc at, uint64_t bytes) {
    uint64_t level = tn__add_capped(w->reserved[at], p->stuck[at]);
    return !tn__fits(level, bytes, w->budget[at]);
}

/* Whether no destination could take it. */
static bool nowhere_to_go(tn__walk *w, proof *p, tn__loc from, uint64_t bytes,
                          const tn__where *required, tn_status *status) {
    if (!know_tiers(w, p, from, status))
        return false;
    for (unsigned l = 0; required && l < TN__LEDGER_COUNT; l++)
        if (l != from && tn__where_has(required, (tn__loc)l) && !too_small(w, p, (tn__loc)l, bytes))
            return false;
    for (size_t i = 0; i < p->tier_count[from]; i++)
        if (!too_small(w, p, p->tiers[from][i], bytes))
            return false;
    return true;
}

static void stick(proof *p, tn__loc at, uint64_t bytes, bool outside) {
    p->stuck[at] = tn__add_capped(p->stuck[at], bytes);
    if (outside)
        p->stuck_outside[at] = tn__add_capped(p->stuck_outside[at], bytes);
}

static bool try_soles(tn__walk *w, proof *p, tn_status *status) {
    bool more = false;
    for (size_t i = 0; i < p->count && *status == TN_OK; i++) {
        sole *s = &p->soles[i];
        if (s->is_stuck || tn__piece_find(w, s->index) ||
            !nowhere_to_go(w, p, s->at, s->bytes, NULL, status))
            continue;
        s->is_stuck = more = true;
        stick(p, s->at, s->bytes, true);
    }
    return more;
}

/* Those that the search has touched, or that are required, where they are now. */
static bool try_pieces(tn__walk *w, proof *p, tn_status *status) {
    bool more = false;
    for (size_t i = 0; i < w->piece_count && *status == TN_OK; i++) {
        const tn__piece *piece = &w->pieces[i];
        tn__loc at = tn__where_first(&piece->now);
        tn__where rest = piece->now;
        if (p->piece_stuck[i] || piece->value->source || at == TN__NOWHERE)
            continue;
        tn__where_flip(&rest, at);
        if (tn__where_first(&rest) != TN__NOWHERE ||
            !nowhere_to_go(w, p, at, piece->value->charge_bytes, &piece->required, status))
            continue;
        p->piece_stuck[i] = more = true;
        stick(p, at, piece->value->charge_bytes, i >= w->required_pieces);
    }
    return more;
}

/* A protected replica is counted already. */
static bool is_protected(const tn__walk *w, const tn__piece *piece) {
    for (uint32_t i = 0; w->guards->count && i < piece->value->mat_count; i++) {
        tn__protection p = tn__guards_of(w->guards, piece->value->mats[i]);
        if (tn__protected(&p))
            return true;
    }
    return false;
}

static bool reset(tn__walk *w, proof *p) {
    if (p->piece_room < w->piece_count) {
        tn__free(p->piece_stuck);
        p->piece_room = w->piece_count * 2;
        p->piece_stuck = tn__zalloc(p->piece_room * sizeof *p->piece_stuck);
        if (!p->piece_stuck) {
            p->piece_room = 0;
            return false;
        }
    }
    for (size_t i = 0; i < w->piece_count; i++)
        p->piece_stuck[i] = is_protected(w, &w->pieces[i]);
    for (size_t i = 0; i < p->count; i++)
        p->soles[i].is_stuck = false;
    for (unsigned l = 0; l < TN__LEDGER_COUNT; l++) {
        p->stuck[l] = p->protected[l];
        p->stuck_outside[l] = p->protected_outside[l];
    }
    return true;
}

/* For this state, nothing stuck yet. NULL: no memory. */
static proof *prepare(tn__walk *w, tn_status *status) {
    proof *p = w->proof ? w->proof : make(w);
    if (p && reset(w, p))
        return p;
    *status = tn__no_memory();
    return NULL;
}

static void settle(tn__walk *w, proof *p, tn_status *status) {
    bool more = true;
    while (more && *status == TN_OK) {
        more = try_soles(w, p, status);
        more = try_pieces(w, p, status) || more;
    }
}

static bool over_budget(const tn__walk *w, const proof *p) {
    for (unsigned l = 0; l < w->locs; l++) {
        uint64_t level = tn__add_capped(w->reserved[l], p->required[l]);
        if (!tn__fits(level, p->stuck_outside[l], w->budget[l]) || level > w->budget[l])
            return true;
    }
    return false;
}

bool tn__hopeless(tn__walk *w, tn_status *status) {
    proof *p = prepare(w, status);
    if (!p)
        return false;
    settle(w, p, status);
    return *status == TN_OK && over_budget(w, p);
}

/* What is stuck without looking at the piece stays where it is whatever happens, before the move and
 * after it. If the piece could then go nowhere from its destination, it is there at the end. */
bool tn__hopeless_move(tn__walk *w, uint32_t piece, tn__loc to, tn_status *status) {
    const tn__value *value = w->pieces[piece].value;
    if (piece < w->required_pieces || value->source)
        return false;
    proof *p = prepare(w, status);
    if (!p)
        return false;
    p->piece_stuck[piece] = true; /* so that nobody looks at it; its bytes do not count */
    settle(w, p, status);
    if (*status != TN_OK || !nowhere_to_go(w, p, to, value->charge_bytes, NULL, status) ||
        *status != TN_OK)
        return false;
    stick(p, to, value->charge_bytes, true);
    return over_budget(w, p);
}

void tn__proof_free(tn__walk *w) {
    proof *p = w->proof;
    if (!p)
        return;
    for (unsigned l = 0; l < TN__LEDGER_COUNT; l++)
        tn__free(p->tiers[l]);
    tn__free(p->soles);
    tn__free(p->piece_stuck);
    tn__free(p);
    w->proof = NULL;
}
