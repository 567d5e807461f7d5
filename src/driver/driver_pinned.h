/* SPDX-License-Identifier: MIT */
/*
 * Pinned host memory of one driver: taken in chunks, kept by exact size.
 *
 * Pinning is slow and unpinning waits for the device, so neither happens in passing. A chunk holds
 * blocks of one size; blocks that come back stay in their chunk.
 *
 *  - C1: held = live + idle bytes; a chunk goes back to the driver in a trim only, when it has no
 *    live block.
 *  - C2: a chunk has at most 1/20 of the blocks that its size has already (at least one, and at
 *    most the chunk size allows), so that of each size less than 5 % is taken in advance. While a
 *    chunk of a size is being taken, others ask for single blocks of it.
 *  - C3: `room` of `chunks` is at least `count + promised`: inserting after a driver call cannot
 *    fail.
 *  - C4: chunks of a context that has gone are stale: their blocks are never handed out again.
 *
 * The lock has rank LEAF and is never held over a call of the driver.
 */
#ifndef TENURE_DRIVER_PINNED_H
#define TENURE_DRIVER_PINNED_H

#include <tenure/driver.h>

#include "base/lockrank.h"

#define TN__PINNED_CHUNK_BYTES (UINT64_C(64) << 20) /* default */
#define TN__PINNED_BUCKETS 64u
#define TN__PINNED_ALIGN 256u

/* Blocks of one exact size. */
typedef struct tn__pinned_size {
    struct tn__pinned_size *next; /* in its bucket */
    uint64_t bytes;
    uint64_t blocks;               /* in all its chunks */
    uint64_t busy;                 /* chunks being taken or given back: it must stay */
    struct tn__pinned_chunk *open; /* chunks with a free block */
} tn__pinned_size;

typedef struct tn__pinned_chunk {
    tn__pinned_size *of;
    struct tn__pinned_chunk *prev, *next; /* in of->open, if `open` */
    char *base;
    uint64_t bytes; /* as asked of the driver */
    uint32_t count; /* blocks */
    uint32_t live;
    uint32_t hint; /* no word of `free` before it has a bit */
    bool open;
    bool stale;      /* C4 */
    uint64_t free[]; /* a bit for each block that is not live */
} tn__pinned_chunk;

typedef struct tn__pinned {
    tn__mutex lock; /* everything below */
    uint64_t chunk_bytes;
    tn__pinned_chunk **chunks; /* by address */
    size_t count, room, promised;
    tn__pinned_size *sizes[TN__PINNED_BUCKETS];
    size_t fresh; /* chunks that are not stale */
    uint64_t live_bytes, live_blocks, peak_live_bytes, held_bytes, ring_bytes;
    uint64_t returned; /* chunks given back so far */
    uint64_t users;    /* managers */
} tn__pinned;

void tn__pinned_init(tn__pinned *p);
/* Forget everything without a call of the driver. */
void tn__pinned_fini(tn__pinned *p);

/* A block that is kept; NULL: there is none. */
void *tn__pinned_take(tn__pinned *p, uint64_t bytes);
/* Begin to take a chunk: how many blocks it shall have is in (*out)->count, its bytes in
 * (*out)->bytes. False: no memory. */
bool tn__pinned_grow_begin(tn__pinned *p, uint64_t bytes, tn__pinned_chunk **out);
/* Make it one of a single block, after a refusal. */
void tn__pinned_grow_less(tn__pinned_chunk *chunk);
/* End it: `base` NULL: there is no chunk, it is freed. Otherwise returns its first block. */
void *tn__pinned_grow_end(tn__pinned *p, tn__pinned_chunk *chunk, void *base);
/* False: it is no live block of that size. */
bool tn__pinned_give(tn__pinned *p, void *pointer, uint64_t bytes);
/* Take out the idle chunk with the lowest address not below *inout_from, which moves behind it.
 * NULL: there is none left. */
tn__pinned_chunk *tn__pinned_idle(tn__pinned *p, uintptr_t *inout_from);
/* It is given back, and freed; or not, and is idle again. */
void tn__pinned_idle_end(tn__pinned *p, tn__pinned_chunk *chunk, bool given_back);
/* C4. */
void tn__pinned_gone(tn__pinned *p);

#endif
