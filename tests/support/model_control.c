/* SPDX-License-Identifier: MIT */
/* The canonical walk, written for reading; see model_control.h. */
#include "model_control_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- States ---------------------------------------------------------------------------------- */

typedef struct step {
    const struct step *before;
    mc_release release;
} step;

/* A planning state (C58, C59), and the releases that led to it. */
typedef struct state {
    uint64_t at; /* one byte for each value */
    const step *last;
} state;

/* A room search (C95). */
typedef struct room {
    uint64_t at, bytes;
    int destination;
    uint32_t blocked; /* one bit for each value */
} room;

typedef struct progress {
    struct progress *outer;
    room what;
    bool delivered, cut;
} progress;

typedef struct path {
    const struct path *before;
    uint64_t at;
} path;

typedef struct walk {
    const mc_world *world;
    mc_answer *out;
    bool stopped; /* by the limit */
    uint64_t *dead;
    size_t dead_count, dead_room;
    room *empty;
    size_t empty_count, empty_room;
    const path *visits;
    progress *rooms; /* in progress */
} walk;

/* Who gets the results of ways() and rooms(): true: success, ask no more. */
typedef struct sink {
    bool (*take)(const struct sink *self, walk *w, const state *s);
} sink;

static void *one_more(void *list, size_t count, size_t *capacity, size_t size) {
    if (count < *capacity)
        return list;
    *capacity = *capacity ? *capacity * 2 : 64;
    void *grown = realloc(list, *capacity * size);
    if (!grown)
        abort();
    return grown;
}

static int replicas(uint64_t at, int value) {
    return __builtin_popcount((unsigned)(at >> (value * 8) & 0xff));
}

static bool required_at(const walk *w, int value, int location) {
    for (int i = 0; i < w->world->requirement_count; i++)
        if (w->world->requirements[i].value == value && w->world->requirements[i].at == location)
            return true;
    return false;
}

static bool count_one(walk *w, int making_room_at) {
    if (w->out->explored == w->world->limit) {
        w->stopped = true;
        w->out->limit_at = making_room_at;
        return false;
    }
    w->out->explored++;
    return true;
}

/* ---- Candidates (C72..C75) ------------------------------------------------------------------- */

static bool lru_before(const mc_world *world, int a, int b) {
    const mc_value *x = &world->values[a], *y = &world->values[b];
    if (x->priority != y->priority)
        return x->priority < y->priority;
    if (x->epoch != y->epoch)
        return x->epoch < y->epoch;
    if (!x->key != !y->key)
        return x->key != NULL;
    if (x->key && strcmp(x->key, y->key) != 0)
        return strcmp(x->key, y->key) < 0;
    return a < b;
}

static bool before(const mc_world *world, int a, int b, int length) {
    if (world->order == MC_LARGEST && world->values[a].charge != world->values[b].charge)
        return world->values[a].charge > world->values[b].charge;
    if (world->order == MC_LARGEST)
        return a < b;
    if (world->order == MC_ODD_LENGTHS && length % 2 == 1)
        return lru_before(world, b, a);
    return lru_before(world, a, b);
}

static int add_part(const walk *w, uint64_t at, int location, uint32_t blocked, bool required,
                    int *out) {
    int count = 0;
    for (int v = 0; v < w->world->value_count; v++)
        if (mc_is_at(at, v, location) && !(w->world->values[v].protected_ >> location & 1) &&
            !(blocked >> v & 1) && required_at(w, v, location) == required)
            out[count++] = v;
    for (int i = 1; i < count; i++)
        for (int k = i; k > 0 && before(w->world, out[k], out[k - 1], count); k--) {
            int other = out[k];
            out[k] = out[k - 1];
            out[k - 1] = other;
        }
    return count;
}

static int candidates(const walk *w, uint64_t at, int location, uint32_t blocked, int *out) {
    int ordinary = add_part(w, at, location, blocked, false, out);
    return ordinary + add_part(w, at, location, blocked, true, out + ordinary);
}

/* ---- Ways (C76..C81) ------------------------------------------------------------------------- */

static bool rooms(walk *w, const state *s, int d, uint64_t bytes, uint32_t blocked, const sink *to);

typedef struct mover {
    sink sink;
    mc_release move;
    const sink *to;
} mover;

static bool deliver_after(walk *w, const state *s, const mc_release *r, const sink *to) {
    step next = {s->last, *r};
    state after = {s->at & ~mc_endpoint_bit(r->value, r->from), &next};
    if (r->to != MC_NOWHERE)
        after.at |= mc_endpoint_bit(r->value, r->to);
    return to->take(to, w, &after);
}

static bool there_is_room(const sink *self, walk *w, const state *s) {
    const mover *m = (const mover *)self;
    return deliver_after(w, s, &m->move, m->to);
}

static int destinations(const walk *w, int value, int from, int *out, int *required) {
    int count = 0;
    for (int l = 0; l < MC_LOCATIONS; l++)
        if (l != from && required_at(w, value, l))
            out[count++] = l;
    *required = count;
    for (int i = 0; i < w->world->tier_count[from]; i++) {
        bool again = false;
        for (int k = 0; k < count; k++)
            again |= out[k] == w->world->tiers[from][i];
        if (!again)
            out[count++] = w->world->tiers[from][i];
    }
    return count;
}

static bool ways(walk *w, const state *s, int value, int from, int rank, uint32_t blocked,
                 const sink *to) {
    uint64_t bytes = w->world->values[value].charge;
    mc_release r = {value, from, MC_NOWHERE, (uint64_t)rank, bytes, MC_REPLICA_REMAINS};
    if (replicas(s->at, value) > 1)
        return deliver_after(w, s, &r, to);
    r.reason = MC_SOURCE_REBUILDS;
    if (w->world->values[value].source != MC_NOWHERE && deliver_after(w, s, &r, to))
        return true;
    int all[2 * MC_LOCATIONS], required;
    int count = destinations(w, value, from, all, &required);
    for (int i = 0; i < count && !w->stopped; i++) {
        mover m = {{there_is_room}, r, to};
        m.move.to = all[i];
        m.move.reason = i < required ? MC_TO_REQUIRED : MC_TO_TIER;
        if (rooms(w, s, all[i], bytes, blocked | 1u << value, &m.sink))
            return true;
    }
    return false;
}

/* ---- Rooms (C82..C87, C95, C100) ------------------------------------------------------------- */

static bool same_room(const room *a, const room *b) {
    return a->at == b->at && a->bytes == b->bytes && a->destination == b->destination &&
           a->blocked == b->blocked;
}

static bool known_empty(const walk *w, const room *r) {
    for (size_t i = 0; i < w->empty_count; i++)
        if (same_room(&w->empty[i], r))
            return true;
    return false;
}

/* A search of the same identity is in progress: then all that are have been cut below. */
static bool cycle(walk *w, const room *r) {
    bool found = false;
    for (progress *p = w->rooms; p; p = p->outer)
        found |= same_room(&p->what, r);
    for (progress *p = w->rooms; p && found; p = p->outer)
        p->cut = true;
    return found;
}

typedef struct room_sink {
    sink sink, delivery;
    progress *mine;
    const sink *to;
} room_sink;

/* What a nested search for the same room delivers, this one delivers: it is not in progress while
 * its caller works with that. */
static bool pass_on(const sink *self, walk *w, const state *s) {
    const room_sink *r = (const room_sink *)((const char *)self - offsetof(room_sink, delivery));
    progress *now = w->rooms;
    r->mine->delivered = true;
    w->rooms = r->mine->outer;
    bool success = r->to->take(r->to, w, s);
    w->rooms = now;
    return success;
}

static bool one_release_nearer(const sink *self, walk *w, const state *s) {
    const room_sink *r = (const room_sink *)self;
    const room *what = &r->mine->what;
    return rooms(w, s, what->destination, what->bytes, what->blocked, &r->delivery);
}

static bool rooms(walk *w, const state *s, int d, uint64_t bytes, uint32_t blocked,
                  const sink *to) {
    int list[MC_VALUES];
    progress mine = {w->rooms, {s->at, bytes, d, blocked}, false, false};
    if (mc_fits(w->world, d, mc_charged(w->world, s->at, d) + w->world->reserved[d], bytes))
        return to->take(to, w, s);
    if (known_empty(w, &mine.what) || cycle(w, &mine.what) || !count_one(w, d))
        return false;
    room_sink r = {{one_release_nearer}, {pass_on}, &mine, to};
    w->rooms = &mine;
    int count = candidates(w, s->at, d, blocked, list);
    bool success = false;
    for (int rank = 0; rank < count && !success && !w->stopped; rank++)
        success = ways(w, s, list[rank], d, rank, blocked, &r.sink);
    w->rooms = mine.outer;
    if (!mine.delivered)
        w->out->dead_ends = true;
    if (!mine.delivered && !mine.cut && !w->stopped) {
        w->empty = one_more(w->empty, w->empty_count, &w->empty_room, sizeof *w->empty);
        w->empty[w->empty_count++] = mine.what;
    }
    return success;
}

/* ---- The walk (C88..C94) --------------------------------------------------------------------- */

static bool dead_or_on_path(const walk *w, uint64_t at) {
    for (size_t i = 0; i < w->dead_count; i++)
        if (w->dead[i] == at)
            return true;
    for (const path *p = w->visits; p; p = p->before)
        if (p->at == at)
            return true;
    return false;
}

static void succeed(mc_answer *out, const state *s) {
    int count = 0;
    for (const step *p = s->last; p; p = p->before)
        count++;
    if (count > MC_RELEASES)
        abort();
    out->release_count = count;
    for (const step *p = s->last; p; p = p->before)
        out->releases[--count] = p->release;
}

static bool visit(const sink *self, walk *w, const state *s) {
    int list[MC_VALUES];
    mc_check failed;
    if (dead_or_on_path(w, s->at) || !count_one(w, MC_NOWHERE))
        return false;
    if (mc_trial(w->world, s->at, w->out, &failed)) {
        succeed(w->out, s);
        return true;
    }
    if (!w->visits)
        w->out->first = failed;
    path mine = {w->visits, s->at};
    w->visits = &mine;
    int count = candidates(w, s->at, failed.at, 0, list);
    bool success = false;
    for (int rank = 0; rank < count && !success && !w->stopped; rank++)
        success = ways(w, s, list[rank], failed.at, rank, 0, self);
    w->visits = mine.before;
    if (success || w->stopped)
        return success;
    w->out->dead_ends = true;
    w->dead = one_more(w->dead, w->dead_count, &w->dead_room, sizeof *w->dead);
    w->dead[w->dead_count++] = s->at;
    return false;
}

void mc_walk(const mc_world *world, mc_answer *out) {
    walk w = {.world = world, .out = out};
    state initial = {0, NULL};
    sink root = {visit};
    for (int v = 0; v < world->value_count; v++)
        initial.at |= (uint64_t)world->values[v].at << (v * 8);
    *out = (mc_answer){.limit_at = MC_NOWHERE};
    bool success = visit(&root, &w, &initial);
    out->verdict = success ? MC_FOUND : w.stopped ? MC_LIMIT : MC_INFEASIBLE;
    free(w.dead);
    free(w.empty);
}
