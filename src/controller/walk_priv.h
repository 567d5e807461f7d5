/* SPDX-License-Identifier: MIT */
/*
 * The frames of the walk's stack, shared by walk.c (what they do) and frames.c (how they come, go and
 * are found again).
 */
#ifndef TENURE_CONTROLLER_WALK_PRIV_H
#define TENURE_CONTROLLER_WALK_PRIV_H

#include "controller/controller_priv.h"

enum tn__walk_kind { TN__VISIT, TN__WAYS, TN__ROOMS };

struct tn__walk_frame {
    enum tn__walk_kind kind;
    tn__loc at;  /* visit: of the failing check; ways: to be left; rooms: the destination */
    bool begun;  /* rooms, ways: past the first result's look */
    bool shares; /* visit: uses the location's main list; `owns`: made it */
    bool owns;
    bool delivered;  /* rooms: something was, or would have been but for what is remembered of the
                        same chain of moves: what it comes to is true of that chain only */
    bool cut;        /* rooms: a cycle was cut below */
    bool judged;     /* visit: the proofs had a look */
    uint32_t parent; /* UINT32_MAX: none */
    uint32_t base;   /* the visit that it works for; a visit's own index */
    uint32_t next;   /* visit: in its bucket of the path, + 1 */
    size_t mark;     /* releases when it began */
    tn__hash hash;   /* of that state */
    tn__cands *list; /* visit, rooms */
    tn__cand *cursor;
    uint64_t rank;         /* of the cursor; ways: of its candidate */
    uint64_t bytes;        /* rooms */
    uint32_t piece;        /* ways */
    uint8_t reason;        /* ways: of the drop; 0: none */
    bool only_drop;        /* ways */
    tn__cand *node;        /* ways: in the main list, or NULL */
    tn__loc *destinations; /* ways */
    size_t destination_count, required_count, destination;
    tn__check check; /* visit */
};

static inline tn__walk_frame *tn__walk_top(tn__walk *w) { return &w->frames[w->frame_count - 1]; }

/* NULL: no memory. `parent`: UINT32_MAX for a visit. */
tn__walk_frame *tn__walk_push(tn__walk *w, enum tn__walk_kind kind, tn__loc at, uint32_t parent);
/* With all that it has. */
void tn__walk_pop(tn__walk *w);

/* The state now is that of the frame. */
bool tn__walk_same_state(const tn__walk *w, const tn__walk_frame *f);
/* A visit on the stack has this state. */
bool tn__walk_on_path(tn__walk *w);
/* The visit on top. */
TN_NODISCARD bool tn__walk_enter_path(tn__walk *w);
void tn__walk_leave_path(tn__walk *w);

#endif
