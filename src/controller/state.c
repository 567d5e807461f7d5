/* SPDX-License-Identifier: MIT */
/*
 * The planning state (C58..C60): used bytes per location, and for each value that the search has
 * touched where it is resident. The list of releases is the undo log. A state is identified by its
 * set of endpoints, as an incremental hash of those that differ from the version.
 */
#include <string.h>

#include "controller/controller_priv.h"

/* ---- Pieces ----------------------------------------------------------------------------- */

static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

tn__hash tn__hash_endpoint(uint64_t index, tn__loc loc) {
    uint64_t key = index * 256 + loc;
    return (tn__hash){mix(key + UINT64_C(0x9e3779b97f4a7c15)),
                      mix(key * UINT64_C(0xd1342543de82ef95) + 1)};
}

static uint32_t *piece_slot(const tn__walk *w, uint64_t index) {
    size_t i = (size_t)mix(index) & (w->piece_of_room - 1);
    while (w->piece_of[i] && w->pieces[w->piece_of[i] - 1].value->index != index)
        i = (i + 1) & (w->piece_of_room - 1);
    return &w->piece_of[i];
}

static bool more_slots(tn__walk *w) {
    size_t room = w->piece_of_room ? w->piece_of_room * 2 : 32;
    uint32_t *slots = tn__zalloc(room * sizeof *slots);
    if (!slots)
        return false;
    tn__free(w->piece_of);
    w->piece_of = slots;
    w->piece_of_room = room;
    for (size_t i = 0; i < w->piece_count; i++)
        *piece_slot(w, w->pieces[i].value->index) = (uint32_t)i + 1;
    return true;
}

uint32_t tn__piece_of(tn__walk *w, const tn__value *value) {
    if (w->piece_count >= w->piece_of_room / 2 && !more_slots(w))
        return UINT32_MAX;
    uint32_t *slot = piece_slot(w, value->index);
    if (*slot)
        return *slot - 1;
    if (!tn__grow(&w->pieces, &w->piece_room, w->piece_count, sizeof *w->pieces))
        return UINT32_MAX;
    tn__piece *piece = &w->pieces[w->piece_count++];
    *piece = (tn__piece){.value = value};
    for (uint32_t i = 0; i < value->mat_count; i++)
        tn__where_flip(&piece->now, tn__loc_of(value->mats[i]->at));
    piece->before = piece->now;
    w->piece_filter[value->index / 64 % 16] |= UINT64_C(1) << value->index % 64;
    *slot = (uint32_t)w->piece_count;
    return *slot - 1;
}

const tn__piece *tn__piece_find(const tn__walk *w, uint64_t index) {
    uint32_t piece = w->piece_of_room ? *piece_slot(w, index) : 0;
    return piece ? &w->pieces[piece - 1] : NULL;
}

/* ---- Begin ------------------------------------------------------------------------------ */

static void matters(tn__walk *w, tn__loc loc) {
    if (loc >= w->locs)
        w->locs = loc + 1u;
}

static void read_ledgers(tn__walk *w) {
    const tn__table *table = w->version->table;
    for (unsigned i = 0; i < TN__LEDGER_COUNT; i++)
        w->budget[i] = w->controller->of.store->ledgers[i].budget < (uint64_t)INT64_MAX
                           ? w->controller->of.store->ledgers[i].budget
                           : (uint64_t)INT64_MAX;
    for (uint32_t i = 0; i < table->count; i++) {
        tn__loc loc = tn__loc_of(table->places[i].at);
        w->used[loc] = table->places[i].used_bytes;
        w->reserved[loc] = tn__guards_reserved(w->guards, table->places[i].at);
        matters(w, loc);
    }
}

tn_status tn__state_begin(tn__walk *w) {
    const tn_request *r = w->request;
    read_ledgers(w);
    w->required = tn__alloc(r->count * sizeof *w->required);
    if (!w->required)
        return tn__no_memory();
    for (size_t i = 0; i < r->count; i++) {
        const tn__value *value =
            tn__version_value(w->version, r->requirements[i].handle.index); /* resolved */
        uint32_t piece = tn__piece_of(w, value);
        if (piece == UINT32_MAX)
            return tn__no_memory();
        tn__loc loc = tn__loc_of(r->requirements[i].at);
        tn__where_flip(&w->pieces[piece].required, loc);
        w->required[i] = piece;
        matters(w, loc);
        if (value->source)
            matters(w, tn__loc_of(value->source_at));
    }
    for (size_t i = 0; i < w->reservation_count; i++)
        matters(w, tn__loc_of(w->reservations[i].at));
    w->required_pieces = w->piece_count;
    w->trial_where = tn__alloc(w->required_pieces * sizeof *w->trial_where);
    w->actions = tn__alloc(r->count * sizeof *w->actions);
    return w->trial_where && w->actions ? TN_OK : tn__no_memory();
}

void tn__state_fini(tn__walk *w) {
    tn__free(w->pieces);
    tn__free(w->piece_of);
    tn__free(w->required);
    tn__free(w->releases);
    tn__free(w->trial_where);
    tn__free(w->actions);
}

/* ---- Release and undo ------------------------------------------------------------------- */

static void flip(tn__walk *w, tn__piece *piece, tn__loc loc) {
    tn__hash h = tn__hash_endpoint(piece->value->index, loc);
    tn__where_flip(&piece->now, loc);
    w->hash.a ^= h.a;
    w->hash.b ^= h.b;
    if (tn__where_has(&piece->now, loc))
        w->used[loc] += piece->value->charge_bytes;
    else
        w->used[loc] -= piece->value->charge_bytes;
}

bool tn__state_release(tn__walk *w, const tn__release *release) {
    if (!tn__grow(&w->releases, &w->release_room, w->release_count, sizeof *w->releases))
        return false;
    w->releases[w->release_count++] = *release;
    tn__piece *piece = &w->pieces[release->piece];
    if (release->to != TN__NOWHERE) {
        matters(w, release->to);
        flip(w, piece, release->to);
        if (w->main[release->to])
            w->main[release->to]->stale++;
        w->moved = true;
    }
    flip(w, piece, release->from);
    if (release->node)
        tn__cands_unlink(w->main[release->from], release->node);
    else if (w->main[release->from])
        w->main[release->from]->stale++;
    return true;
}

static void undo(tn__walk *w, const tn__release *release) {
    tn__piece *piece = &w->pieces[release->piece];
    if (release->node)
        tn__cands_relink(w->main[release->from], release->node);
    else if (w->main[release->from])
        w->main[release->from]->stale--;
    flip(w, piece, release->from);
    if (release->to != TN__NOWHERE) {
        if (w->main[release->to])
            w->main[release->to]->stale--;
        flip(w, piece, release->to);
    }
}

void tn__state_undo(tn__walk *w, size_t count) {
    while (w->release_count > count)
        undo(w, &w->releases[--w->release_count]);
}
