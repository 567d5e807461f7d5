/* SPDX-License-Identifier: MIT */
/*
 * The keys and plaintexts, and for each tier the list of those that may be there, from the least to
 * the most recently used.
 *
 * L1  An item that is resident at a tier is listed there, or a worker that is in the middle of
 *     loading or dropping it will list it. A listed item may be gone already: a drop and a load of
 *     different workers may be noted in the wrong order. Whoever finds out puts it right.
 *
 * Threads: the caller holds the lock of the placement.
 */
#ifndef TENURE_LRU_H
#define TENURE_LRU_H

#include "tally.h"
#include "workload.h"

#include <tenure/tenure.h>

/* A key or plaintext of one tenant, or of all. */
struct item {
    tn_handle handle;
    const char *id;
    enum value_kind kind;
    uint64_t tenant, bytes;
    uint64_t checksum;      /* of the right content */
    char *path;             /* of its file; owned by the catalogue */
    uint64_t file_checksum; /* of what the file holds: the same, but for --inject swap */

    /* Guarded by the lock of the placement: */
    uint32_t users;   /* operations in progress that read it */
    uint64_t readers; /* operations of running requests that will read it; plaintexts only */
    uint32_t loading[TIER_COUNT]; /* workers that are making it resident there */
    bool rooming[TIER_COUNT];     /* one of them is still making the room for it */
    bool listed[TIER_COUNT];
    struct item *older[TIER_COUNT], *newer[TIER_COUNT];
};

struct lru {
    struct item *oldest, *newest;
    uint64_t count;
};

/** Lists an item as the most recently used one, whether it is listed or not. */
void lru_put(struct lru *lru, struct item *item, enum tier tier);
/** Takes an item off the list, if it is there. */
void lru_remove(struct lru *lru, struct item *item, enum tier tier);
/** The least recently used item without users; NULL: there is none. */
struct item *lru_unused(const struct lru *lru, enum tier tier);

#endif
