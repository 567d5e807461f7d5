/* SPDX-License-Identifier: MIT */
#include "value/ring.h"

#include "base/lockrank.h"

struct tn__ring {
    /* immutable */
    tn_driver *driver;
    uint64_t block_bytes;
    uint32_t blocks;

    tn__mutex lock; /* rank LEAF: everything below */
    tn__cond changed;
    char *memory; /* written while no load is inside, but for the one that makes it */
    tn_location at;
    bool making;
    uint32_t users;
    uint64_t returned; /* tn__driver_pinned_returned() when pinning was refused last */
    uint32_t free_count;
    uint8_t free[TN__RING_BLOCKS_MAX];
};

tn_status tn__ring_create(tn_driver *driver, uint64_t block_bytes, uint32_t blocks,
                          tn__ring **out) {
    tn__ring *ring = tn__zalloc(sizeof *ring);
    TN_ASSERT(blocks > 0 && blocks <= TN__RING_BLOCKS_MAX && block_bytes > 0);
    if (!ring)
        return tn__no_memory();
    ring->driver = driver;
    ring->block_bytes = block_bytes;
    ring->blocks = blocks;
    tn__mutex_init(&ring->lock, TN__RANK_LEAF);
    tn__cond_init(&ring->changed);
    for (uint32_t i = 0; i < blocks; i++)
        ring->free[ring->free_count++] = (uint8_t)(blocks - 1 - i);
    *out = ring;
    return TN_OK;
}

static uint64_t ring_bytes(const tn__ring *ring) { return ring->block_bytes * ring->blocks; }

static void release(tn__ring *ring) {
    if (!ring->memory)
        return;
    if (ring->at.kind == TN_LOCATION_PINNED)
        tn__driver_ring_free(ring->driver, ring->memory, ring_bytes(ring));
    else
        tn__host_free(ring->memory, ring_bytes(ring));
    ring->memory = NULL;
}

void tn__ring_destroy(tn__ring *ring) {
    if (!ring)
        return;
    release(ring);
    tn__cond_fini(&ring->changed);
    tn__mutex_fini(&ring->lock);
    tn__free(ring);
}

uint32_t tn__ring_events(const tn__ring *ring, uint64_t bytes) {
    uint64_t needed = bytes / ring->block_bytes + (bytes % ring->block_bytes != 0);
    return needed < ring->blocks ? (uint32_t)needed : ring->blocks;
}

/* ---- Its memory ------------------------------------------------------------------------- */

/* Whether to look for memory now. Under the lock; one load is inside. */
static bool wants_memory(const tn__ring *ring, uint64_t returned) {
    if (!ring->memory)
        return true;
    return ring->users == 1 && ring->at.kind != TN_LOCATION_PINNED && ring->returned != returned;
}

/* Without the lock: `making` keeps everybody else away. Pinned memory that cannot be had is no
 * error. */
static tn_status make_memory(tn__ring *ring) {
    void *memory = NULL;
    tn_error before = *tn__error_current();
    if (tn__driver_ring_alloc(ring->driver, ring_bytes(ring), &memory) == TN_OK) {
        release(ring); /* the pageable one */
        ring->at = tn_location_pinned();
        ring->memory = memory;
        return TN_OK;
    }
    (void)tn__error_restore(&before);
    ring->returned = tn__driver_pinned_returned(ring->driver);
    if (ring->memory)
        return TN_OK;
    ring->at = tn_location_pageable();
    ring->memory = tn__host_alloc(ring_bytes(ring));
    return ring->memory ? TN_OK : tn__no_memory();
}

tn_status tn__ring_enter(tn__ring *ring) {
    uint64_t returned = tn__driver_pinned_returned(ring->driver);
    tn_status status = TN_OK;
    tn__lock(&ring->lock);
    while (ring->making)
        tn__cond_wait(&ring->changed, &ring->lock);
    ring->users++;
    if (wants_memory(ring, returned)) {
        ring->making = true;
        tn__unlock(&ring->lock);
        status = make_memory(ring);
        tn__lock(&ring->lock);
        ring->making = false;
        ring->users -= status != TN_OK;
        tn__cond_broadcast(&ring->changed);
    }
    tn__unlock(&ring->lock);
    return status;
}

void tn__ring_leave(tn__ring *ring) {
    tn__lock(&ring->lock);
    ring->users--; /* shares have grown; nobody waits for that, only for a free block */
    tn__unlock(&ring->lock);
}

/* ---- Blocks ----------------------------------------------------------------------------- */

static uint32_t share(const tn__ring *ring) {
    uint32_t equal = ring->users > 0 ? ring->blocks / ring->users : ring->blocks;
    return equal > 0 ? equal : 1;
}

bool tn__ring_take(tn__ring *ring, uint32_t held, uint32_t *out) {
    tn__lock(&ring->lock);
    while (ring->free_count == 0 && held == 0)
        tn__cond_wait(&ring->changed, &ring->lock);
    bool may = ring->free_count > 0 && held < share(ring);
    if (may)
        *out = ring->free[--ring->free_count];
    tn__unlock(&ring->lock);
    return may;
}

void tn__ring_give(tn__ring *ring, uint32_t block) {
    tn__lock(&ring->lock);
    TN_ASSERT(ring->free_count < ring->blocks); /* R1 */
    ring->free[ring->free_count++] = (uint8_t)block;
    tn__cond_broadcast(&ring->changed);
    tn__unlock(&ring->lock);
}

bool tn__ring_over(tn__ring *ring, uint32_t held) {
    tn__lock(&ring->lock);
    bool over = held > share(ring);
    tn__unlock(&ring->lock);
    return over;
}

char *tn__ring_block(const tn__ring *ring, uint32_t block) {
    return ring->memory + block * ring->block_bytes;
}

tn_location tn__ring_at(const tn__ring *ring) { return ring->at; }

uint64_t tn__ring_block_bytes(const tn__ring *ring) { return ring->block_bytes; }
