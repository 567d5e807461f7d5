/* SPDX-License-Identifier: MIT */
/* The books of the pinned pool: no call of a driver here. */
#include "driver/driver_pinned.h"

#include <string.h>

#define GROWTH 20u /* C2: one block in so many is taken in advance */
#define WORD_BITS 64u

static uint64_t stride_of(uint64_t bytes) {
    return (bytes + TN__PINNED_ALIGN - 1) / TN__PINNED_ALIGN * TN__PINNED_ALIGN;
}

static uint32_t words_of(uint32_t blocks) { return (blocks + WORD_BITS - 1) / WORD_BITS; }

void tn__pinned_init(tn__pinned *p) {
    tn__mutex_init(&p->lock, TN__RANK_LEAF);
    p->chunk_bytes = TN__PINNED_CHUNK_BYTES;
}

void tn__pinned_fini(tn__pinned *p) {
    for (size_t i = 0; i < p->count; i++)
        tn__free(p->chunks[i]);
    tn__free(p->chunks);
    for (size_t i = 0; i < TN__PINNED_BUCKETS; i++) {
        while (p->sizes[i]) {
            tn__pinned_size *next = p->sizes[i]->next;
            tn__free(p->sizes[i]);
            p->sizes[i] = next;
        }
    }
    tn__mutex_fini(&p->lock);
}

/* ---- Sizes ------------------------------------------------------------------------------ */

static tn__pinned_size **size_link(tn__pinned *p, uint64_t bytes) {
    uint64_t bucket = (bytes * UINT64_C(0x9e3779b97f4a7c15)) >> 58;
    tn__pinned_size **link = &p->sizes[bucket % TN__PINNED_BUCKETS];
    while (*link && (*link)->bytes != bytes)
        link = &(*link)->next;
    return link;
}

static tn__pinned_size *size_for(tn__pinned *p, uint64_t bytes) {
    tn__pinned_size **link = size_link(p, bytes);
    if (*link)
        return *link;
    *link = tn__zalloc(sizeof **link);
    if (*link)
        (*link)->bytes = bytes;
    return *link;
}

static void size_release(tn__pinned *p, tn__pinned_size *size) {
    if (size->blocks > 0 || size->busy > 0)
        return;
    *size_link(p, size->bytes) = size->next;
    tn__free(size);
}

/* C2. */
static uint32_t blocks_of_next(const tn__pinned *p, const tn__pinned_size *size) {
    uint64_t most = p->chunk_bytes / stride_of(size->bytes);
    uint64_t count = size->busy > 0 ? 1 : size->blocks / GROWTH;
    if (count > most)
        count = most;
    if (count > UINT32_MAX / 2)
        count = UINT32_MAX / 2;
    return count > 0 ? (uint32_t)count : 1;
}

/* ---- Chunks ----------------------------------------------------------------------------- */

static void open_link(tn__pinned_chunk *chunk) {
    if (chunk->open || chunk->stale || chunk->live == chunk->count)
        return;
    chunk->open = true;
    chunk->prev = NULL;
    chunk->next = chunk->of->open;
    if (chunk->next)
        chunk->next->prev = chunk;
    chunk->of->open = chunk;
}

static void open_unlink(tn__pinned_chunk *chunk) {
    if (!chunk->open)
        return;
    if (chunk->prev)
        chunk->prev->next = chunk->next;
    else
        chunk->of->open = chunk->next;
    if (chunk->next)
        chunk->next->prev = chunk->prev;
    chunk->open = false;
}

/* The last block needs no padding, so a chunk of one block has exactly its bytes. */
static void set_count(tn__pinned_chunk *chunk, uint32_t count) {
    chunk->count = count;
    chunk->bytes = (count - 1) * stride_of(chunk->of->bytes) + chunk->of->bytes;
    memset(chunk->free, 0, words_of(count) * sizeof chunk->free[0]);
    for (uint32_t i = 0; i < count; i++)
        chunk->free[i / WORD_BITS] |= UINT64_C(1) << i % WORD_BITS;
}

/* The first chunk that does not begin below `address`. */
static size_t position(const tn__pinned *p, uintptr_t address) {
    size_t low = 0, high = p->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)p->chunks[middle]->base < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static tn__pinned_chunk *chunk_at(const tn__pinned *p, uintptr_t address) {
    size_t above = position(p, address);
    if (above < p->count && (uintptr_t)p->chunks[above]->base == address)
        return p->chunks[above];
    if (above == 0)
        return NULL;
    tn__pinned_chunk *chunk = p->chunks[above - 1];
    return address - (uintptr_t)chunk->base < chunk->bytes ? chunk : NULL;
}

/* C3. */
static bool promise(tn__pinned *p) {
    if (p->count + p->promised == p->room) {
        size_t room = p->room ? p->room * 2 : 8;
        tn__pinned_chunk **chunks = tn__alloc(room * sizeof(tn__pinned_chunk *));
        if (!chunks)
            return false;
        if (p->count)
            memcpy(chunks, p->chunks, p->count * sizeof(tn__pinned_chunk *));
        tn__free(p->chunks);
        p->chunks = chunks;
        p->room = room;
    }
    p->promised++;
    return true;
}

/* Without chunks there is no array either. */
static void room_release(tn__pinned *p) {
    if (p->count + p->promised > 0)
        return;
    tn__free(p->chunks);
    p->chunks = NULL;
    p->room = 0;
}

static void insert(tn__pinned *p, tn__pinned_chunk *chunk) {
    size_t at = position(p, (uintptr_t)chunk->base);
    TN_ASSERT(p->count < p->room); /* C3 */
    memmove(p->chunks + at + 1, p->chunks + at, (p->count - at) * sizeof(tn__pinned_chunk *));
    p->chunks[at] = chunk;
    p->count++;
    p->fresh += !chunk->stale;
    p->held_bytes += chunk->bytes;
    chunk->of->blocks += chunk->count;
    open_link(chunk);
}

static void take_out(tn__pinned *p, size_t at) {
    tn__pinned_chunk *chunk = p->chunks[at];
    open_unlink(chunk);
    p->count--;
    memmove(p->chunks + at, p->chunks + at + 1, (p->count - at) * sizeof(tn__pinned_chunk *));
    p->fresh -= !chunk->stale;
    p->held_bytes -= chunk->bytes;
    chunk->of->blocks -= chunk->count;
}

/* ---- Blocks ----------------------------------------------------------------------------- */

static void *block_take(tn__pinned *p, tn__pinned_chunk *chunk) {
    while (chunk->free[chunk->hint] == 0)
        chunk->hint++;
    uint32_t bit = (uint32_t)__builtin_ctzll(chunk->free[chunk->hint]);
    chunk->free[chunk->hint] &= chunk->free[chunk->hint] - 1;
    chunk->live++;
    if (chunk->live == chunk->count)
        open_unlink(chunk);
    p->live_bytes += chunk->of->bytes;
    p->live_blocks++;
    if (p->live_bytes > p->peak_live_bytes)
        p->peak_live_bytes = p->live_bytes;
    return chunk->base + (chunk->hint * WORD_BITS + bit) * stride_of(chunk->of->bytes);
}

void *tn__pinned_take(tn__pinned *p, uint64_t bytes) {
    void *block = NULL;
    tn__lock(&p->lock);
    tn__pinned_size *size = *size_link(p, bytes);
    if (size && size->open)
        block = block_take(p, size->open);
    tn__unlock(&p->lock);
    return block;
}

bool tn__pinned_grow_begin(tn__pinned *p, uint64_t bytes, tn__pinned_chunk **out) {
    tn__pinned_chunk *chunk = NULL;
    tn__lock(&p->lock);
    tn__pinned_size *size = size_for(p, bytes);
    if (size && promise(p)) {
        uint32_t count = blocks_of_next(p, size);
        chunk = tn__zalloc(sizeof *chunk + words_of(count) * sizeof chunk->free[0]);
        if (chunk) {
            chunk->of = size;
            set_count(chunk, count);
            size->busy++;
        } else {
            p->promised--;
        }
    }
    if (size && !chunk) {
        size_release(p, size);
        room_release(p);
    }
    tn__unlock(&p->lock);
    *out = chunk;
    return chunk != NULL;
}

void tn__pinned_grow_less(tn__pinned_chunk *chunk) { set_count(chunk, 1); }

void *tn__pinned_grow_end(tn__pinned *p, tn__pinned_chunk *chunk, void *base) {
    void *block = NULL;
    tn__lock(&p->lock);
    tn__pinned_size *size = chunk->of;
    p->promised--;
    size->busy--;
    if (base) {
        chunk->base = base;
        insert(p, chunk);
        block = block_take(p, chunk);
    } else {
        tn__free(chunk);
        size_release(p, size);
        room_release(p);
    }
    tn__unlock(&p->lock);
    return block;
}

/* The number of a live block; UINT32_MAX: it is none. */
static uint32_t live_index(const tn__pinned_chunk *chunk, uintptr_t address, uint64_t bytes) {
    if (!chunk || chunk->of->bytes != bytes)
        return UINT32_MAX;
    uint64_t offset = address - (uintptr_t)chunk->base;
    uint64_t index = offset / stride_of(bytes);
    if (offset % stride_of(bytes) != 0)
        return UINT32_MAX;
    bool is_free = chunk->free[index / WORD_BITS] >> index % WORD_BITS & 1;
    return is_free ? UINT32_MAX : (uint32_t)index;
}

bool tn__pinned_give(tn__pinned *p, void *pointer, uint64_t bytes) {
    tn__lock(&p->lock);
    tn__pinned_chunk *chunk = chunk_at(p, (uintptr_t)pointer);
    uint32_t index = live_index(chunk, (uintptr_t)pointer, bytes);
    if (index != UINT32_MAX) {
#if TN_CHECKS
        if (!chunk->stale)
            memset(pointer, 0xDB, (size_t)bytes);
#endif
        chunk->free[index / WORD_BITS] |= UINT64_C(1) << index % WORD_BITS;
        if (index / WORD_BITS < chunk->hint)
            chunk->hint = index / WORD_BITS;
        chunk->live--;
        open_link(chunk);
        p->live_bytes -= bytes;
        p->live_blocks--;
    }
    tn__unlock(&p->lock);
    return index != UINT32_MAX;
}

/* ---- Giving back ------------------------------------------------------------------------ */

tn__pinned_chunk *tn__pinned_idle(tn__pinned *p, uintptr_t *inout_from) {
    tn__pinned_chunk *chunk = NULL;
    tn__lock(&p->lock);
    size_t at = position(p, *inout_from);
    while (at < p->count && p->chunks[at]->live > 0)
        at++;
    if (at < p->count) {
        chunk = p->chunks[at];
        *inout_from = (uintptr_t)chunk->base + 1;
        chunk->of->busy++;
        take_out(p, at);
        p->promised++;
    }
    tn__unlock(&p->lock);
    return chunk;
}

void tn__pinned_idle_end(tn__pinned *p, tn__pinned_chunk *chunk, bool given_back) {
    tn__lock(&p->lock);
    tn__pinned_size *size = chunk->of;
    p->promised--;
    size->busy--;
    if (given_back) {
        p->returned++;
        tn__free(chunk);
        size_release(p, size);
    } else {
        insert(p, chunk);
    }
    room_release(p);
    tn__unlock(&p->lock);
}

void tn__pinned_gone(tn__pinned *p) {
    tn__lock(&p->lock);
    for (size_t i = 0; p->fresh > 0 && i < p->count; i++) {
        open_unlink(p->chunks[i]);
        p->chunks[i]->stale = true;
    }
    p->fresh = 0;
    tn__unlock(&p->lock);
}
