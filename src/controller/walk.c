/* SPDX-License-Identifier: MIT */
/*
 * The canonical walk (C88..C101) as a machine with an explicit stack.
 *
 * Three kinds of frame: a *visit* tries the candidates of its failing location, a *ways* frame the
 * ways to release one candidate, a *rooms* frame the ways to make room at a destination. Each
 * delivers its results one by one to its parent; a delivery leaves the frame on the stack and goes
 * on above it. When what came of it has failed, the frame is on top again, the state is undone to
 * its mark, and it is asked for its next result. The parent chain of a frame, up to the next visit,
 * is what it works for: room searches on it are in progress, values moved on it are blocked.
 */
#include <string.h>

#include "controller/walk_priv.h"

typedef tn__walk_frame frame;

#define NONE UINT32_MAX

/* What a step of the machine came to. */
enum outcome { GO_ON, FOUND, FAILED };

/* ---- Counting (C96, C97) ---------------------------------------------------------------- */

static bool count(tn__walk *w, tn__loc at) {
    if (w->explored >= w->limit) {
        w->limit_at = at;
        w->limited = true;
        return false;
    }
    w->explored++;
    return true;
}

/* ---- Visits ----------------------------------------------------------------------------- */

static frame *last_visit(tn__walk *w) {
    for (size_t i = w->frame_count; i-- > 0;)
        if (w->frames[i].kind == TN__VISIT)
            return &w->frames[i];
    return NULL;
}

/* A value that the request does not name was dropped where bytes were short, and they still are:
 * everything before that check passes as it did, so nothing needs to be played again. */
static bool still_short(tn__walk *w, const frame *before, tn__check *check) {
    if (!before || w->release_count != before->mark + 1)
        return false;
    const tn__release *r = &w->releases[before->mark];
    uint64_t freed = w->pieces[r->piece].value->charge_bytes;
    if (r->to != TN__NOWHERE || r->piece < w->required_pieces || r->from != before->check.at ||
        freed >= before->check.over)
        return false;
    *check = before->check;
    check->over -= freed;
    return true;
}

/* The list of the failing location: the shared one, if it still tells the truth. */
static tn_status find_list(tn__walk *w, frame *f) {
    tn_status status = TN_OK;
    bool built_in = w->controller->policy->built_in;
    tn__cands **shared = &w->main[f->at];
    if (built_in && *shared && (*shared)->stale == 0) {
        f->list = *shared;
        f->shares = true;
        return TN_OK;
    }
    f->list = tn__cands_make(w, f->at, NULL, 0, &status);
    if (built_in && f->list && !*shared) {
        *shared = f->list;
        f->shares = f->owns = true;
    }
    return status;
}

static enum outcome visit(tn__walk *w, tn_status *status) {
    tn__check check;
    if ((w->dead_ends && tn__memory_dead(w)) || tn__walk_on_path(w))
        return GO_ON;
    if (w->dead_ends && tn__hopeless(w, status))
        return GO_ON;
    if (*status != TN_OK)
        return FAILED;
    if (!count(w, TN__NOWHERE)) {
        *status = TN_ERR_SEARCH_LIMIT;
        return FAILED;
    }
    if (!still_short(w, last_visit(w), &check) && tn__trial(w, &check))
        return FOUND;
    if (w->frame_count == 0)
        w->first = check;
    frame *f = tn__walk_push(w, TN__VISIT, check.at, NONE);
    *status = f && tn__walk_enter_path(w) ? TN_OK : tn__no_memory();
    if (*status == TN_OK) {
        f->check = check;
        f->judged = w->dead_ends;
        *status = find_list(w, f);
    }
    return *status == TN_OK ? GO_ON : FAILED;
}

static tn_status fail_visit(tn__walk *w) {
    tn__walk_leave_path(w);
    tn__walk_pop(w);
    w->dead_ends = true;
    return tn__memory_add_dead(w) ? TN_OK : tn__no_memory();
}

static tn_status push_ways(tn__walk *w, uint32_t parent) {
    const tn__cand *c = w->frames[parent].cursor;
    bool shares = w->frames[parent].shares;
    const tn__value *value = tn__version_value(w->version, c->c.handle.index);
    uint32_t piece = tn__piece_of(w, value);
    frame *f =
        piece == UINT32_MAX ? NULL : tn__walk_push(w, TN__WAYS, w->frames[parent].at, parent);
    if (!f)
        return tn__no_memory();
    f->piece = piece;
    f->rank = w->frames[parent].rank;
    f->node = shares ? w->frames[parent].cursor : NULL;
    return TN_OK;
}

/* The next candidate; false: no more. */
static bool next_candidate(tn__walk *w, uint32_t index, tn_status *status) {
    frame *f = &w->frames[index];
    f->cursor = tn__cands_next(w, f->list, f->cursor, &f->rank);
    if (f->list->failed)
        *status = tn__no_memory();
    else if (!f->cursor)
        return false;
    else
        *status = push_ways(w, index); /* the frames may be elsewhere now */
    return *status == TN_OK;
}

static tn_status resume_visit(tn__walk *w) {
    tn_status status = TN_OK;
    bool judge = w->dead_ends && !tn__walk_top(w)->judged;
    tn__walk_top(w)->judged |= judge;
    bool hopeless = judge && tn__hopeless(w, &status);
    if (status == TN_OK && (hopeless || !next_candidate(w, (uint32_t)w->frame_count - 1, &status)))
        return status == TN_OK ? fail_visit(w) : status;
    return status;
}

/* Releases again what was undone, up to `count` in all. */
static bool redo(tn__walk *w, const tn__release *undone, size_t from, size_t count) {
    while (w->release_count < count)
        if (!tn__state_release(w, &undone[w->release_count - from]))
            return false;
    return true;
}

/* The frames above a visit whose state this is: a move that is hopeless needs no room. True: one
 * was, and what worked for it is gone; else all is as it was. */
static bool give_up_move(tn__walk *w, uint32_t base, const tn__release *undone, size_t count,
                         tn_status *status) {
    size_t from = w->frames[base].mark;
    for (uint32_t i = base + 1; i < w->frame_count; i++) {
        const frame *f = &w->frames[i], *parent = &w->frames[f->parent];
        if (!redo(w, undone, from, f->mark)) {
            *status = tn__no_memory();
            return false;
        }
        if (f->kind != TN__ROOMS || parent->kind != TN__WAYS ||
            !tn__hopeless_move(w, parent->piece, f->at, status))
            continue;
        while (w->frame_count > i)
            tn__walk_pop(w);
        return true;
    }
    if (*status == TN_OK && !redo(w, undone, from, count))
        *status = tn__no_memory();
    return false;
}

/* The frames above one; their states are undone. */
static void pop_above(tn__walk *w, uint32_t base) {
    while (w->frame_count > base + 1) {
        if (tn__walk_top(w)->kind == TN__VISIT)
            tn__walk_leave_path(w);
        tn__walk_pop(w);
    }
}

/* The first dead end was met while a visit's results were still coming: it, and the moves that are
 * being made room for, are judged before more of them do, each at its own state, once. True: one was
 * given up, and what is on top is to be resumed. */
static bool give_up(tn__walk *w, uint32_t base, tn_status *status) {
    size_t mark = w->frames[base].mark, count = w->release_count;
    tn__release *undone = tn__alloc((count - mark) * sizeof *undone);
    w->frames[base].judged = true;
    if (!undone) {
        *status = tn__no_memory();
        return false;
    }
    if (count > mark)
        memcpy(undone, &w->releases[mark], (count - mark) * sizeof *undone);
    tn__state_undo(w, mark);
    bool hopeless = tn__hopeless(w, status);
    if (hopeless) {
        pop_above(w, base);
        *status = fail_visit(w);
    } else if (*status == TN_OK && base == tn__walk_top(w)->base) {
        hopeless = give_up_move(w, base, undone, count, status);
    } else if (*status == TN_OK && !redo(w, undone, mark, count)) {
        *status = tn__no_memory();
    }
    tn__free(undone);
    return hopeless;
}

/* The initial state first, then the visit that the frame on top works for. */
static bool give_up_some(tn__walk *w, tn_status *status) {
    if (w->frame_count > 1 && !w->frames[0].judged && give_up(w, 0, status))
        return true;
    const frame *f = tn__walk_top(w);
    return *status == TN_OK && f->kind != TN__VISIT && !w->frames[f->base].judged &&
           give_up(w, f->base, status);
}

/* ---- Delivery --------------------------------------------------------------------------- */

static tn_status release(tn__walk *w, const frame *ways, tn__loc to, uint8_t reason) {
    tn__release r = {.piece = ways->piece,
                     .from = ways->at,
                     .to = to,
                     .reason = reason,
                     .rank = ways->rank,
                     .node = ways->node};
    return tn__state_release(w, &r) ? TN_OK : tn__no_memory();
}

static uint8_t move_reason(const frame *ways) {
    return ways->destination - 1 < ways->required_count ? TN_EVICTION_MOVED_TO_REQUIRED
                                                        : TN_EVICTION_MOVED_TO_TIER;
}

/* The state now is a result of frame `index`. */
static enum outcome deliver(tn__walk *w, uint32_t index, tn_status *status) {
    for (;;) {
        frame *f = &w->frames[index];
        uint32_t parent = f->parent;
        enum tn__walk_kind of = w->frames[parent].kind;
        if (f->kind == TN__ROOMS)
            f->delivered = true;
        if (of == TN__VISIT)
            return visit(w, status);
        if (of == TN__WAYS) { /* there is room: the move goes there */
            *status = release(w, &w->frames[parent], f->at, move_reason(&w->frames[parent]));
        } else if (f->kind == TN__WAYS) { /* one release nearer to room: again, at the new state */
            frame *again = tn__walk_push(w, TN__ROOMS, w->frames[parent].at, parent);
            if (again)
                again->bytes = w->frames[parent].bytes;
            *status = again ? TN_OK : tn__no_memory();
            return *status == TN_OK ? GO_ON : FAILED;
        }
        if (*status != TN_OK)
            return FAILED;
        index = parent;
    }
}

/* ---- Ways (C76..C79) -------------------------------------------------------------------- */

static unsigned replicas(const tn__piece *piece) {
    unsigned n = 0;
    for (unsigned i = 0; i < TN__LOC_WORDS; i++)
        n += (unsigned)__builtin_popcountll(piece->now.bits[i]);
    return n;
}

static tn_status find_destinations(tn__walk *w, frame *f) {
    tn_status status;
    tn__loc all[2 * TN__LEDGER_COUNT];
    size_t n = tn__destinations(w, &w->pieces[f->piece], f->at, all, &f->required_count, &status);
    if (status != TN_OK)
        return status;
    f->destinations = tn__alloc(n * sizeof *f->destinations);
    if (!f->destinations)
        return tn__no_memory();
    memcpy(f->destinations, all, n * sizeof *f->destinations);
    f->destination_count = n;
    return TN_OK;
}

static bool has_room(const tn__walk *w, tn__loc at, uint64_t bytes) {
    return tn__fits(tn__add_capped(w->used[at], w->reserved[at]), bytes, w->budget[at]);
}

static enum outcome drop(tn__walk *w, frame *f, tn_status *status) {
    f->begun = true;
    const tn__piece *piece = &w->pieces[f->piece];
    f->only_drop = replicas(piece) > 1;
    if (!f->only_drop && !piece->value->source)
        return GO_ON;
    *status = release(w, f, TN__NOWHERE,
                      f->only_drop ? TN_EVICTION_REPLICA_REMAINS : TN_EVICTION_SOURCE_REBUILDS);
    return *status == TN_OK ? deliver(w, (uint32_t)(f - w->frames), status) : FAILED;
}

static enum outcome resume_ways(tn__walk *w, tn_status *status) {
    frame *f = tn__walk_top(w);
    if (!f->begun)
        return drop(w, f, status);
    if (!f->only_drop && !f->destinations)
        *status = find_destinations(w, f);
    if (*status != TN_OK)
        return FAILED;
    if (f->destination == f->destination_count) {
        tn__walk_pop(w);
        return GO_ON;
    }
    tn__loc to = f->destinations[f->destination++];
    uint64_t bytes = w->pieces[f->piece].value->charge_bytes;
    if (w->dead_ends && !has_room(w, to, bytes) && tn__hopeless_move(w, f->piece, to, status))
        return GO_ON; /* whatever makes room there */
    if (*status != TN_OK)
        return FAILED;
    frame *rooms = tn__walk_push(w, TN__ROOMS, to, (uint32_t)w->frame_count - 1);
    *status = rooms ? TN_OK : tn__no_memory();
    if (rooms)
        rooms->bytes = bytes;
    return rooms ? GO_ON : FAILED;
}

/* ---- Rooms (C82..C87, C95, C100) -------------------------------------------------------- */

/* The values whose moves a frame works for, and with `triples` from where to where; from the inside
 * out. False: no memory. */
static bool chain_of(tn__walk *w, uint32_t index, bool triples, uint32_t **out, size_t *out_count) {
    size_t room = 0, n = 0;
    *out = NULL;
    for (uint32_t i = w->frames[index].parent, to = w->frames[index].at; i != NONE;
         i = w->frames[i].parent) {
        const frame *f = &w->frames[i];
        if (f->kind == TN__VISIT)
            break;
        if (f->kind == TN__ROOMS) {
            to = f->at;
            continue;
        }
        uint32_t parts[3] = {f->piece, f->at, to};
        for (int k = 0; k < (triples ? 3 : 1); k++) {
            if (!tn__grow(out, &room, n, sizeof **out))
                return false;
            (*out)[n++] = parts[k];
        }
    }
    *out_count = n;
    return true;
}

static bool same_blocked(const uint32_t *a, size_t a_count, const uint32_t *b, size_t b_count) {
    if (a_count != b_count)
        return false;
    for (size_t i = 0; i < a_count; i++) {
        bool found = false;
        for (size_t k = 0; k < b_count && !found; k++)
            found = a[i] == b[k];
        if (!found)
            return false;
    }
    return true;
}

/* Whether a room search that this one works for is the same one (C100). */
static bool in_progress(tn__walk *w, uint32_t index, const uint32_t *blocked, size_t count) {
    for (uint32_t i = w->frames[index].parent; i != NONE && w->frames[i].kind != TN__VISIT;
         i = w->frames[i].parent) {
        uint32_t *theirs;
        size_t n;
        const frame *f = &w->frames[i];
        if (f->kind != TN__ROOMS || f->at != w->frames[index].at ||
            f->bytes != w->frames[index].bytes || !tn__walk_same_state(w, f))
            continue;
        bool known = chain_of(w, i, false, &theirs, &n);
        bool same = known && same_blocked(blocked, count, theirs, n);
        w->no_memory = w->no_memory || !known;
        tn__free(theirs);
        if (same)
            return true;
    }
    return false;
}

/* A search is skipped for what came of its results: those that it works for would have had some. */
static void mark_delivered(tn__walk *w, uint32_t index) {
    for (uint32_t i = index; i != NONE && w->frames[i].kind != TN__VISIT; i = w->frames[i].parent)
        if (w->frames[i].kind == TN__ROOMS)
            w->frames[i].delivered = true;
}

/* The search that was cut is in progress only until it delivers: what it will deliver then is
 * missing from all that led here, also from those that have delivered on the way. */
static void mark_cut(tn__walk *w) {
    for (size_t i = w->frame_count; i-- > 0 && w->frames[i].kind != TN__VISIT;)
        if (w->frames[i].kind == TN__ROOMS)
            w->frames[i].cut = true;
}

static tn__room_key key_of(const frame *f, const uint32_t *chain, size_t count, bool context) {
    return (tn__room_key){
        .at = f->at, .bytes = f->bytes, .chain = chain, .chain_count = count, .context = context};
}

/* Known to have nothing (more) to deliver. */
static bool used_up(tn__walk *w, uint32_t index, const uint32_t *blocked, size_t count,
                    tn_status *status) {
    uint32_t *triples;
    size_t n;
    tn__room_key key = key_of(&w->frames[index], blocked, count, false);
    if (tn__memory_empty(w, &key))
        return true;
    if (!chain_of(w, index, true, &triples, &n)) {
        *status = tn__no_memory();
        tn__free(triples);
        return false;
    }
    key = key_of(&w->frames[index], triples, n, true);
    bool used = tn__memory_empty(w, &key);
    if (used)
        mark_delivered(w, w->frames[index].parent);
    tn__free(triples);
    return used;
}

static tn_status remember(tn__walk *w, uint32_t index) {
    const frame *f = &w->frames[index];
    uint32_t *chain;
    size_t n;
    bool context = f->delivered;
    if (f->cut || (context && !w->dead_ends))
        return TN_OK;
    bool ok = chain_of(w, index, context, &chain, &n);
    if (ok) {
        tn__room_key key = key_of(f, chain, n, context);
        ok = tn__memory_add_empty(w, &key);
    }
    tn__free(chain);
    return ok ? TN_OK : tn__no_memory();
}

/* First look: it fits, it is known, or the candidates are listed. */
static enum outcome begin_rooms(tn__walk *w, uint32_t index, tn_status *status) {
    frame *f = &w->frames[index];
    uint32_t *blocked = NULL;
    size_t n = 0;
    f->begun = true;
    if (has_room(w, f->at, f->bytes))
        return deliver(w, index, status);
    if (!chain_of(w, index, false, &blocked, &n))
        *status = tn__no_memory();
    bool cut = *status == TN_OK && in_progress(w, index, blocked, n);
    bool over = cut || (*status == TN_OK && used_up(w, index, blocked, n, status));
    if (cut)
        mark_cut(w);
    if (*status == TN_OK && !over && !count(w, f->at))
        *status = TN_ERR_SEARCH_LIMIT;
    if (*status == TN_OK && !over)
        f->list = tn__cands_make(w, f->at, blocked, n, status);
    tn__free(blocked);
    if (*status != TN_OK)
        return FAILED;
    if (over)
        tn__walk_pop(w);
    return GO_ON;
}

static enum outcome resume_rooms(tn__walk *w, tn_status *status) {
    uint32_t index = (uint32_t)w->frame_count - 1;
    if (!w->frames[index].begun)
        return begin_rooms(w, index, status);
    if (w->frames[index].list) { /* else it fitted */
        if (next_candidate(w, index, status))
            return GO_ON;
        if (*status == TN_OK)
            *status = remember(w, index);
    }
    if (*status != TN_OK)
        return FAILED;
    tn__walk_pop(w);
    return GO_ON;
}

/* ---- The machine ------------------------------------------------------------------------ */

static enum outcome resume(tn__walk *w, tn_status *status) {
    tn__state_undo(w, tn__walk_top(w)->mark);
    if (w->dead_ends && give_up_some(w, status))
        return *status == TN_OK ? GO_ON : FAILED;
    if (*status != TN_OK)
        return FAILED;
    switch (tn__walk_top(w)->kind) {
    case TN__VISIT:
        *status = resume_visit(w);
        return *status == TN_OK ? GO_ON : FAILED;
    case TN__WAYS:
        return resume_ways(w, status);
    default:
        return resume_rooms(w, status);
    }
}

static void clear(tn__walk *w) {
    while (w->frame_count > 0)
        tn__walk_pop(w);
    tn__free(w->frames);
    tn__free(w->path);
}

tn_status tn__walk_run(tn__walk *w) {
    tn_status status = TN_OK;
    enum outcome now = visit(w, &status);
    while (now == GO_ON && w->frame_count > 0 && !w->no_memory)
        now = resume(w, &status);
    /* what was found is in w->releases: the lists go without undoing it */
    clear(w);
    tn__memory_free(w);
    tn__proof_free(w);
    if (w->no_memory)
        return tn__no_memory();
    w->exhausted = now == GO_ON;
    if (w->exhausted)
        return TN_ERR_PLAN;
    return now == FOUND ? TN_OK : status;
}
