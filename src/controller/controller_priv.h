/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of this folder only.
 */
#ifndef TENURE_CONTROLLER_PRIV_H
#define TENURE_CONTROLLER_PRIV_H

#include <string.h>

#include "controller/controller_internal.h"

/* ---- Policies --------------------------------------------------------------------------- */

struct tn_policy {
    _Atomic uint64_t refs;
    tn_policy_spec spec;
    bool built_in; /* its order of a part is the order of the whole restricted to it (C162) */
};

void tn__policy_keep(const tn_policy *policy);
void tn__policy_let_go(const tn_policy *policy);
/* C16: TN_ERR_VALUE for a blank name. */
TN_NODISCARD tn_status tn__policy_check(const tn_policy *policy);

/* Name and configuration as they were at one moment, in one block (C16, C17). */
typedef struct tn__identity {
    char *name;
    tn_config_pair *pairs;
    size_t count;
    char *block; /* all texts */
} tn__identity;

TN_NODISCARD tn_status tn__identity_read(const tn_policy *policy, tn__identity *out);
void tn__identity_fini(tn__identity *identity);
bool tn__identity_same(const tn__identity *a, const tn__identity *b);
/* Every key non-blank (C17). */
TN_NODISCARD tn_status tn__identity_check(const tn__identity *identity);

/* ---- Requests --------------------------------------------------------------------------- */

struct tn_request {
    _Atomic uint64_t refs;
    tn_plan *reservations; /* a plan of reservations only: name and reservations are its */
    tn_requirement *requirements;
    size_t count;
    /* distinct locations in order of first mention, and the requirements by them (C136) */
    tn_location *locations;
    size_t *first; /* location_count + 1: where each one's requirements begin in `order` */
    size_t *order; /* indices of requirements */
    size_t location_count;
};

void tn__request_keep(const tn_request *request);
void tn__request_let_go(const tn_request *request);

/* ---- Metadata and epochs ---------------------------------------------------------------- */

#define TN__META_CHUNK 256u

typedef struct tn__meta {
    uint64_t epoch; /* 0: never */
    int64_t priority;
    char *key; /* NULL: none */
} tn__meta;

/* By value index; grows on demand. Under controller->lock. */
typedef struct tn__metas {
    tn__meta **chunks;
    size_t chunk_count;
    uint64_t *keys; /* open addressing: index of the value that has the key; 0: free */
    size_t key_count, key_room;
} tn__metas;

/* NULL: nothing was ever set. */
const tn__meta *tn__meta_find(const tn__metas *metas, uint64_t index);
/* Makes room. NULL: no memory. */
tn__meta *tn__meta_of(tn__metas *metas, uint64_t index);
/* Index of the value that has the key; 0: none. */
uint64_t tn__meta_owner(const tn__metas *metas, const char *key);
/* Replace the record's fields (the key is free or its own). False: no memory, nothing changed. */
bool tn__meta_set(tn__metas *metas, uint64_t index, int64_t priority, const char *key);
void tn__metas_fini(tn__metas *metas);

/* ---- The controller --------------------------------------------------------------------- */

struct tn_controller {
    tn__controlled of;
    const tn_policy *policy;
    uint64_t search_limit;
    uint32_t binding; /* resolved */
    uint32_t redecisions;
    tn__mutex lock; /* rank CONTROLLER: metadata, epochs, list of uses; held while deciding */
    tn__metas metas;
    uint64_t epoch;        /* last one given (TN_BIND_VERSION) */
    tn_use *uses;          /* all that exist */
    struct tn__walk *walk; /* of the last decision: its memory is used again; NULL: none yet */
};

/* ---- Planning state --------------------------------------------------------------------- */

#define TN__LOC_WORDS ((TN__LEDGER_COUNT + 63) / 64)
#define TN__NOWHERE 0xffu

/* A location by its ledger position: pageable, pinned, cuda by index, which is also the order of
 * C62. */
typedef uint8_t tn__loc;

static inline tn__loc tn__loc_of(tn_location at) {
    return (tn__loc)(at.kind == TN_LOCATION_PAGEABLE ? 0
                     : at.kind == TN_LOCATION_PINNED ? 1
                                                     : 2 + at.index);
}

static inline tn_location tn__loc_location(tn__loc loc) {
    return loc == 0   ? tn_location_pageable()
           : loc == 1 ? tn_location_pinned()
                      : tn_location_cuda(loc - 2u);
}

typedef struct tn__where {
    uint64_t bits[TN__LOC_WORDS];
} tn__where;

static inline bool tn__where_has(const tn__where *w, tn__loc loc) {
    return w->bits[loc / 64] >> loc % 64 & 1;
}

static inline void tn__where_flip(tn__where *w, tn__loc loc) {
    w->bits[loc / 64] ^= UINT64_C(1) << loc % 64;
}

/* The first location (C62); TN__NOWHERE: none. */
static inline tn__loc tn__where_first(const tn__where *w) {
    for (unsigned i = 0; i < TN__LOC_WORDS; i++)
        if (w->bits[i])
            return (tn__loc)(i * 64 + (unsigned)__builtin_ctzll(w->bits[i]));
    return TN__NOWHERE;
}

/* A value that the search has touched, or that is required. */
typedef struct tn__piece {
    const tn__value *value;
    tn__where now, before;
    tn__where required; /* endpoints of the request */
} tn__piece;

/* One release: the reclaim list is the undo log. */
typedef struct tn__release {
    uint32_t piece;
    tn__loc from, to; /* to: TN__NOWHERE for a drop */
    uint8_t reason;   /* enum tn_eviction_reason */
    uint64_t rank;
    struct tn__cand *node; /* its place in the location's main list, or NULL */
} tn__release;

/* Which state: its set of endpoints (C59), hashed incrementally. */
typedef struct tn__hash {
    uint64_t a, b;
} tn__hash;

/* ---- Candidate lists -------------------------------------------------------------------- */

/* A candidate in order. The main list of a location is shared by the states of a path: a release
 * unlinks its candidate, undoing it links it again. */
typedef struct tn__cand {
    tn_candidate c;
    struct tn__cand *next, *prev;
    uint64_t skipped; /* candidates just before it that can never be released: they take ranks */
    bool required;
} tn__cand;

/* What decides the built-in order, compact: a heap of these is cheap to make. */
typedef struct tn__key {
    int64_t priority;
    uint64_t epoch;
    const char *key;
    uint64_t index;
    bool required;
} tn__key;

/* The built-in order (C33), required endpoints last (C72). Compiled into the heap. */
static inline bool tn__lru_before(const tn__key *a, const tn__key *b) {
    if (a->required != b->required)
        return b->required;
    if (a->priority != b->priority)
        return a->priority < b->priority;
    if (a->epoch != b->epoch) /* never accessed is 0 */
        return a->epoch < b->epoch;
    if (!a->key != !b->key)
        return a->key != NULL;
    int by_key = a->key ? strcmp(a->key, b->key) : 0;
    return by_key ? by_key < 0 : a->index < b->index;
}

#define TN__CAND_BLOCK 32u

typedef struct tn__cand_block {
    struct tn__cand_block *older;
    size_t used;
    tn__cand nodes[TN__CAND_BLOCK];
} tn__cand_block;

typedef struct tn__cands {
    tn__loc at;
    tn__key *keys; /* built-in: a heap; custom: gathered, then given up */
    size_t left, room;
    tn__cand_block *blocks; /* nodes of the ring, which stay where they are */
    tn__cand head;          /* ring, in order */
    uint64_t skipping;
    bool no_tiers; /* the policy moves nothing away from here */
    bool failed;   /* no memory for a node */
    size_t stale;  /* releases that changed the location behind the list's back */
} tn__cands;

/* ---- The walk --------------------------------------------------------------------------- */

enum tn__stage { TN__STAGE_RESERVATION, TN__STAGE_MATERIALIZATION, TN__STAGE_SOURCE };

/* The failing check of a trial (C68). */
typedef struct tn__check {
    tn__loc at;
    enum tn__stage stage;
    uint32_t subject; /* of the reservations, or of the requirements */
    uint64_t bytes;
    uint64_t over; /* how many do not fit */
} tn__check;

typedef struct tn__walk_frame tn__walk_frame;
typedef struct tn__memory tn__memory;

typedef struct tn__walk tn__walk;
struct tn__walk {
    /* what is searched */
    tn_controller *controller;
    const tn_request *request;
    const tn_reservation_spec *reservations;
    size_t reservation_count;
    const tn_version *version;
    tn__guards *guards;
    uint64_t limit;
    /* planning state */
    uint64_t used[TN__LEDGER_COUNT], reserved[TN__LEDGER_COUNT], budget[TN__LEDGER_COUNT];
    unsigned locs; /* locations below this one matter */
    tn__piece *pieces;
    size_t piece_count, piece_room;
    uint32_t *piece_of; /* open addressing: index -> piece + 1 */
    size_t piece_of_room;
    uint64_t piece_filter[16]; /* bits of the indices that have a piece */
    uint32_t *required;        /* requirement -> piece */
    tn__release *releases;
    size_t release_count, release_room;
    tn__hash hash;
    tn__cands *main[TN__LEDGER_COUNT];
    /* trial scratch */
    uint64_t trial_used[TN__LEDGER_COUNT], trial_reserved[TN__LEDGER_COUNT];
    tn__where *trial_where; /* per piece that is required */
    size_t required_pieces;
    tn_action *actions; /* of the trial that passed */
    size_t action_count;
    /* stack */
    tn__walk_frame *frames;
    size_t frame_count, frame_room;
    uint32_t *path; /* buckets of the visits on the current path */
    size_t path_room;
    uint64_t explored;
    bool exhausted; /* every way was tried: what ends the search is no error of a callback's */
    bool limited;   /* stopped at the limit; same */
    bool no_memory; /* for a question: the walk ends, or its count would differ (C99) */
    bool moved;     /* a move is or was on the path: states may come back */
    bool dead_ends; /* one was met: the proofs are on */
    tn__memory *memory;
    tn__check first; /* of the initial state */
    /* what the search ends with, besides TN_OK */
    tn__loc limit_at; /* making room there; TN__NOWHERE: walking the request */
    /* proofs */
    struct tn__proof *proof;
};

/* state.c */
TN_NODISCARD tn_status tn__state_begin(tn__walk *w);
void tn__state_fini(tn__walk *w);
/* UINT32_MAX: no memory. */
uint32_t tn__piece_of(tn__walk *w, const tn__value *value);
/* NULL: the search has not touched it. */
const tn__piece *tn__piece_find(const tn__walk *w, uint64_t index);
/* False: certainly not touched. */
static inline bool tn__piece_maybe(const tn__walk *w, uint64_t index) {
    return w->piece_filter[index / 64 % 16] >> index % 64 & 1;
}
static inline bool tn__fits(uint64_t level, uint64_t bytes, uint64_t budget) {
    return bytes == 0 || (level <= budget && bytes <= budget - level);
}
TN_NODISCARD bool tn__state_release(tn__walk *w, const tn__release *release);
/* Undo releases down to `count`. */
void tn__state_undo(tn__walk *w, size_t count);
tn__hash tn__hash_endpoint(uint64_t index, tn__loc loc);

/* trial.c: C63..C71. True: passed, w->actions. */
bool tn__trial(tn__walk *w, tn__check *failed);

/* cands.c. `blocked`: pieces in ascending order of nesting. NULL: no memory, or *status. */
tn__cands *tn__cands_make(tn__walk *w, tn__loc at, const uint32_t *blocked, size_t blocked_count,
                          tn_status *status);
void tn__cands_free(tn__cands *cands);
/* The one after `at` (NULL: the first); NULL: no more, or cands->failed. *rank counts on (start
 * with 0). */
tn__cand *tn__cands_next(tn__walk *w, tn__cands *cands, tn__cand *at, uint64_t *rank);
void tn__cands_unlink(tn__cands *cands, tn__cand *node);
void tn__cands_relink(tn__cands *cands, tn__cand *node);
/* Where a value may go: required elsewhere, then the policy's tiers, each once (C78). Returns how
 * many; SIZE_MAX: *status. */
size_t tn__destinations(tn__walk *w, const tn__piece *piece, tn__loc from, tn__loc *out,
                        size_t *out_required, tn_status *status);

/* memory.c: dead ends and used-up room searches (C94, C95). */
/* No memory for the question: "no", and w->no_memory. */
bool tn__memory_dead(tn__walk *w);
TN_NODISCARD bool tn__memory_add_dead(tn__walk *w);
typedef struct tn__room_key {
    tn__loc at;
    uint64_t bytes;
    /* context: triples {piece, from, to}; else only pieces, ascending */
    const uint32_t *chain;
    size_t chain_count;
    bool context;
} tn__room_key;
bool tn__memory_empty(tn__walk *w, const tn__room_key *key);
TN_NODISCARD bool tn__memory_add_empty(tn__walk *w, const tn__room_key *key);
void tn__memory_free(tn__walk *w);

/* proof.c: whether nothing below this state can succeed. *status: no memory. */
bool tn__hopeless(tn__walk *w, tn_status *status);
/* The same once a piece with one replica has moved, after whatever makes room for it. */
bool tn__hopeless_move(tn__walk *w, uint32_t piece, tn__loc to, tn_status *status);
void tn__proof_free(tn__walk *w);

/* walk.c: TN_OK found; TN_ERR_PLAN with w->exhausted: infeasible; TN_ERR_SEARCH_LIMIT with
 * w->limited; others, and these two without the flag, are what a policy reports. No detail is set
 * for the first three. */
TN_NODISCARD tn_status tn__walk_run(tn__walk *w);

/* ---- Decisions -------------------------------------------------------------------------- */

struct tn_decision {
    uint64_t manager;
    uint64_t version;
    uint64_t placement; /* number of the version it was derived from */
    uint64_t explored;
    const tn_request *request;
    tn_plan *plan;
    tn__identity identity;
    tn_eviction *evictions;
    size_t eviction_count;
    tn_explanation *explanation;
};

/* scope(decision) with another expected version (C116). */
TN_NODISCARD tn_status tn__decision_scope(tn_controller *controller, const tn_decision *decision,
                                          uint64_t expected, const tn_transfer_stream *streams,
                                          size_t stream_count, tn_scope **out);
/* Stamps that uses have kept for themselves go to the epochs (D14); under controller->lock. No
 * memory for one: it is kept and collected later. */
void tn__uses_collect(tn_controller *controller);
/* Entry and reap are done; under controller->lock. */
TN_NODISCARD tn_status tn__decide(tn_controller *controller, const tn_request *request,
                                  tn_decision **out);

#endif
