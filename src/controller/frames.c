/* SPDX-License-Identifier: MIT */
/*
 * The walk's stack, and the states on its path (C100).
 */
#include <string.h>

#include "controller/walk_priv.h"

typedef tn__walk_frame frame;

frame *tn__walk_push(tn__walk *w, enum tn__walk_kind kind, tn__loc at, uint32_t parent) {
    if (w->frame_count >= UINT32_MAX - 1 ||
        !tn__grow(&w->frames, &w->frame_room, w->frame_count, sizeof *w->frames))
        return NULL;
    uint32_t index = (uint32_t)w->frame_count++;
    w->frames[index] = (frame){.kind = kind,
                               .at = at,
                               .parent = parent,
                               .base = kind == TN__VISIT ? index : w->frames[parent].base,
                               .mark = w->release_count,
                               .hash = w->hash};
    return &w->frames[index];
}

static void drop_list(tn__walk *w, frame *f) {
    if (f->owns)
        w->main[f->at] = NULL;
    if (f->owns || !f->shares)
        tn__cands_free(f->list);
}

void tn__walk_pop(tn__walk *w) {
    frame *f = tn__walk_top(w);
    if (f->kind == TN__VISIT)
        drop_list(w, f);
    else if (f->kind == TN__ROOMS)
        tn__cands_free(f->list);
    tn__free(f->destinations);
    w->frame_count--;
}

/* ---- The states on the path ------------------------------------------------------------- */

/* Whether the releases since `mark` cancel out: asked only when the hashes are equal. */
static bool cancels_out(const tn__walk *w, size_t mark) {
    for (size_t i = mark; i < w->release_count; i++) {
        const tn__piece *piece = &w->pieces[w->releases[i].piece];
        tn__where then = piece->now;
        for (size_t k = mark; k < w->release_count; k++) {
            const tn__release *r = &w->releases[k];
            if (r->piece != w->releases[i].piece)
                continue;
            tn__where_flip(&then, r->from);
            if (r->to != TN__NOWHERE)
                tn__where_flip(&then, r->to);
        }
        if (memcmp(&then, &piece->now, sizeof then) != 0)
            return false;
    }
    return true;
}

bool tn__walk_same_state(const tn__walk *w, const frame *f) {
    return f->hash.a == w->hash.a && f->hash.b == w->hash.b && cancels_out(w, f->mark);
}

static uint32_t *path_bucket(tn__walk *w, tn__hash hash) {
    return &w->path[hash.a & (w->path_room - 1)];
}

bool tn__walk_on_path(tn__walk *w) {
    if (!w->moved || !w->path_room) /* drops alone never come back to a state */
        return false;
    for (uint32_t i = *path_bucket(w, w->hash); i; i = w->frames[i - 1].next)
        if (tn__walk_same_state(w, &w->frames[i - 1]))
            return true;
    return false;
}

static void path_add(tn__walk *w, uint32_t index) {
    uint32_t *bucket = path_bucket(w, w->frames[index].hash);
    w->frames[index].next = *bucket;
    *bucket = index + 1;
}

static bool more_path(tn__walk *w) {
    size_t room = w->path_room ? w->path_room * 4 : 64;
    uint32_t *path = tn__zalloc(room * sizeof *path);
    if (!path)
        return false;
    tn__free(w->path);
    w->path = path;
    w->path_room = room;
    for (uint32_t i = 0; i < w->frame_count; i++)
        if (w->frames[i].kind == TN__VISIT)
            path_add(w, i);
    return true;
}

bool tn__walk_enter_path(tn__walk *w) {
    if (w->frame_count > w->path_room)
        return more_path(w); /* it adds all visits */
    path_add(w, (uint32_t)w->frame_count - 1);
    return true;
}

/* The youngest visit is the first of its bucket. */
void tn__walk_leave_path(tn__walk *w) {
    const frame *f = tn__walk_top(w);
    *path_bucket(w, f->hash) = f->next;
}
