/* SPDX-License-Identifier: MIT */
/* Blocks of devices and of pinned memory: address space, capacity, pool figures, generations,
 * poison. */
#include "driver/sim/sim_priv.h"

#include <string.h>
#include <sys/mman.h>

/* A pinned arena without limit spans this much address space; pages cost nothing until they are
 * touched. */
#define PINNED_SPAN (UINT64_C(256) << 30)
#define SPAN_SLACK (UINT64_C(256) << 20)

static void arena_init(tn__sim_arena *arena, uint64_t limit_bytes, uint64_t pool_bytes) {
    memset(arena, 0, sizeof(*arena));
    arena->figures.size = sizeof(arena->figures);
    arena->limit_bytes = limit_bytes;
    arena->pool_bytes = pool_bytes;
}

void tn__sim_memory_init(tn_sim *sim) {
    uint32_t i;

    arena_init(&sim->pinned, sim->machine.pinned_bytes, 0);
    for (i = 0; i < sim->machine.devices; i++) {
        arena_init(&sim->arenas[i], sim->machine.memory_bytes, sim->machine.pool_bytes);
        sim->arenas[i].capabilities = TN_SIM_CAN_PIN;
        if (sim->machine.shared)
            sim->arenas[i].capabilities |= TN_SIM_SHARES_HOST;
    }
}

static void arena_fini(tn__sim_arena *arena) {
    while (arena->holes != NULL) {
        tn__sim_node *hole = arena->holes;

        tn__sim_map_remove(&arena->holes, hole);
        tn__sim_free(hole);
    }
    if (arena->base != NULL)
        munmap(arena->base, arena->bytes);
}

/* No operation is queued any longer. */
void tn__sim_memory_fini(tn_sim *sim) {
    uint32_t i;

    while (sim->live != NULL) {
        tn__sim_range *range = (tn__sim_range *)sim->live;

        tn__sim_map_remove(&sim->live, &range->node);
        tn__sim_range_drop(range);
    }
    arena_fini(&sim->pinned);
    for (i = 0; i < sim->machine.devices; i++)
        arena_fini(&sim->arenas[i]);
}

tn__sim_arena *tn__sim_arena_at(tn_sim *sim, tn_location at) {
    if (at.kind == TN_LOCATION_CUDA)
        return at.index < sim->machine.devices ? &sim->arenas[at.index] : NULL;
    return at.kind == TN_LOCATION_PINNED ? &sim->pinned : NULL;
}

/* Address space. */

static uint64_t rounded(uint64_t bytes) {
    return (bytes + TN__SIM_ALIGN - 1) / TN__SIM_ALIGN * TN__SIM_ALIGN;
}

/* Wider than the capacity, since blocks are rounded up and leave holes; less where the system gives
 * less. */
static void *span_map(uint64_t wanted, uint64_t least, uint64_t *out_bytes) {
    for (; wanted >= least; wanted /= 2) {
        void *base = mmap(NULL, wanted, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (base != MAP_FAILED) {
            *out_bytes = wanted;
            return base;
        }
    }
    return NULL;
}

static bool arena_map(tn__sim_arena *arena, uint64_t least) {
    uint64_t wanted = PINNED_SPAN;
    tn__sim_node *hole;

    if (arena->base != NULL)
        return true;
    if (arena->limit_bytes < PINNED_SPAN / 4)
        wanted = arena->limit_bytes * 4 + SPAN_SLACK;
    else if (arena->limit_bytes < UINT64_MAX / 8)
        wanted = arena->limit_bytes * 2;
    wanted &= ~(uint64_t)0xfff;
    hole = tn__sim_alloc(1, sizeof(*hole));
    if (hole == NULL)
        return false;
    arena->base = span_map(wanted, least, &arena->bytes);
    if (arena->base == NULL) {
        tn__sim_free(hole);
        return false;
    }
    madvise(arena->base, arena->bytes, MADV_DONTDUMP);
    hole->base = (uintptr_t)arena->base;
    hole->bytes = arena->bytes & ~(uint64_t)(TN__SIM_ALIGN - 1);
    tn__sim_map_insert(&arena->holes, hole);
    return true;
}

/* Take the lowest span that is large enough; false: there is none. */
static bool span_take(tn__sim_arena *arena, tn__sim_range *range) {
    uint64_t bytes = range->node.bytes;
    tn__sim_node *hole = tn__sim_map_first_fit(arena->holes, bytes);

    if (hole == NULL)
        return false;
    tn__sim_map_remove(&arena->holes, hole);
    range->node.base = hole->base;
    hole->base += bytes;
    hole->bytes -= bytes;
    if (hole->bytes > 0)
        tn__sim_map_insert(&arena->holes, hole);
    else
        tn__sim_free(hole);
    return true;
}

static void span_give(tn__sim_arena *arena, uintptr_t base, uint64_t bytes, tn__sim_node *hole) {
    tn__sim_node *after = tn__sim_map_at(arena->holes, base + bytes);
    tn__sim_node *before = tn__sim_map_below(arena->holes, base);

    hole->base = base;
    hole->bytes = bytes;
    if (after != NULL) {
        tn__sim_map_remove(&arena->holes, after);
        hole->bytes += after->bytes;
        tn__sim_free(after);
    }
    if (before != NULL && before->base + before->bytes == base) {
        tn__sim_map_remove(&arena->holes, before);
        hole->base = before->base;
        hole->bytes += before->bytes;
        tn__sim_free(before);
    }
    tn__sim_map_insert(&arena->holes, hole);
}

/* Figures. */

static void charge(tn__sim_arena *arena, uint64_t bytes) {
    tn_sim_memory *f = &arena->figures;

    f->live_bytes += bytes;
    f->live_blocks++;
    f->allocations++;
    if (f->live_bytes > f->peak_bytes)
        f->peak_bytes = f->live_bytes;
    if (f->live_bytes > f->held_bytes)
        f->held_bytes = f->live_bytes;
}

static void discharge(tn__sim_arena *arena, uint64_t bytes) {
    tn_sim_memory *f = &arena->figures;
    uint64_t keep;

    f->live_bytes -= bytes;
    f->live_blocks--;
    f->frees++;
    keep = f->live_bytes > arena->pool_bytes ? f->live_bytes : arena->pool_bytes;
    if (f->held_bytes > keep)
        f->held_bytes = keep;
}

/* Ranges. */

void tn__sim_range_drop(tn__sim_range *range) {
    if (range == NULL || --range->refs > 0)
        return;
    tn__sim_free(range->hole);
    tn__sim_free(range);
}

tn__sim_range *tn__sim_range_find(tn_sim *sim, const void *pointer) {
    uintptr_t address = (uintptr_t)pointer;
    tn__sim_node *node = tn__sim_map_below(sim->live, address);

    return node != NULL && address - node->base < node->bytes ? (tn__sim_range *)node : NULL;
}

static bool in_arena(const tn__sim_arena *arena, const void *pointer) {
    uintptr_t base = (uintptr_t)arena->base;

    return base != 0 && (uintptr_t)pointer >= base && (uintptr_t)pointer - base < arena->bytes;
}

static bool in_any_arena(tn_sim *sim, const void *pointer) {
    uint32_t i;

    if (in_arena(&sim->pinned, pointer))
        return true;
    for (i = 0; i < sim->machine.devices; i++)
        if (in_arena(&sim->arenas[i], pointer))
            return true;
    return false;
}

tn_status tn__sim_range_take(tn_sim *sim, tn_location at, const void *pointer, uint64_t bytes,
                             tn__sim_range **out) {
    tn__sim_range *range = tn__sim_range_find(sim, pointer);
    uint64_t offset;

    *out = NULL;
    if (range == NULL) {
        if (in_any_arena(sim, pointer))
            tn__sim_violation(sim, "an operation was queued on freed memory at %p", pointer);
        else if (at.kind != TN_LOCATION_CUDA)
            return TN_OK;
        return tn__sim_code(sim, TN_ERR_DRIVER, TN__SIM_CODE_VALUE);
    }
    offset = (uint64_t)((uintptr_t)pointer - range->node.base);
    if (offset > range->bytes || bytes > range->bytes - offset)
        return tn__sim_code(sim, TN_ERR_DRIVER, TN__SIM_CODE_VALUE);
    if ((at.kind == TN_LOCATION_CUDA || range->at.kind == TN_LOCATION_CUDA) &&
        !tn__location_same(at, range->at))
        return tn__sim_code(sim, TN_ERR_DRIVER, TN__SIM_CODE_VALUE);
    range->refs++;
    *out = range;
    return TN_OK;
}

/* Blocks. */

static tn__sim_range *range_new(uint64_t bytes) {
    tn__sim_range *range = tn__sim_alloc(1, sizeof(*range));

    if (range == NULL)
        return NULL;
    range->hole = tn__sim_alloc(1, sizeof(*range->hole));
    if (range->hole == NULL) {
        tn__sim_free(range);
        return NULL;
    }
    range->refs = 1;
    range->bytes = bytes;
    range->node.bytes = rounded(bytes);
    return range;
}

static tn_status exhausted(tn_sim *sim, tn_location at) {
    return tn__sim_code(sim,
                        at.kind == TN_LOCATION_CUDA ? TN_ERR_DEVICE_MEMORY : TN_ERR_HOST_MEMORY,
                        TN__SIM_CODE_MEMORY);
}

tn_status tn__sim_block_alloc(tn_sim *sim, tn_location at, uint64_t bytes, void **out) {
    tn__sim_arena *arena = tn__sim_arena_at(sim, at);
    tn__sim_range *range;

    if (arena == NULL)
        return tn__sim_code(sim, TN_ERR_DRIVER, TN__SIM_CODE_DEVICE);
    if (bytes == 0)
        return tn__sim_code(sim, TN_ERR_DRIVER, TN__SIM_CODE_VALUE);
    if (bytes > tn__sim_room_at(sim, at))
        return exhausted(sim, at);
    range = range_new(bytes);
    if (range == NULL || !arena_map(arena, range->node.bytes)) {
        tn__sim_range_drop(range);
        return tn__sim_code(sim, TN_ERR_HOST_MEMORY, TN__SIM_CODE_MEMORY);
    }
    if (!span_take(arena, range)) {
        tn__sim_range_drop(range);
        return exhausted(sim, at);
    }
    range->generation = ++sim->generation;
    range->at = at;
    range->pinned = at.kind == TN_LOCATION_PINNED;
    if (range->pinned && sim->state == TN_SIM_FAKE_PINNED)
        range->at = tn_location_pageable();
    tn__sim_map_insert(&sim->live, &range->node);
    charge(arena, bytes);
    tn__sim_displace_pools(sim);
    *out = (void *)range->node.base;
    return TN_OK;
}

/* Fill with poison and give the address space back. The range is dead: nobody finds it. */
static void bury(tn_sim *sim, tn__sim_arena *arena, tn__sim_range *range) {
    tn__sim_node *hole = range->hole;
    uintptr_t base = range->node.base;
    uint64_t bytes = range->node.bytes;

    while (range->busy > 0)
        tn__cond_wait(&sim->changed, &sim->lock);
    range->hole = NULL;
    tn__sim_range_drop(range);
    tn__unlock(&sim->lock);
    memset((void *)base, (int)TN_SIM_POISON, bytes);
    tn__lock(&sim->lock);
    span_give(arena, base, bytes, hole);
}

tn_status tn__sim_block_free(tn_sim *sim, tn_location at, void *pointer, uint64_t bytes) {
    tn__sim_arena *arena = tn__sim_arena_at(sim, at);
    tn__sim_range *range;
    tn_status status = TN_OK;

    if (arena == NULL)
        return tn__sim_code(sim, TN_ERR_DRIVER, TN__SIM_CODE_DEVICE);
    range = (tn__sim_range *)tn__sim_map_at(sim->live, (uintptr_t)pointer);
    if (range == NULL || range->pinned != (at.kind == TN_LOCATION_PINNED) ||
        !in_arena(arena, pointer)) {
        if (range == NULL && in_any_arena(sim, pointer))
            tn__sim_violation(sim, "memory at %p was freed twice", pointer);
        return tn__sim_code(sim, TN_ERR_DRIVER, TN__SIM_CODE_VALUE);
    }
    if (bytes != range->bytes) {
        tn__sim_violation(sim, "a block of %llu bytes was freed as one of %llu",
                          (unsigned long long)range->bytes, (unsigned long long)bytes);
        return tn__sim_code(sim, TN_ERR_DRIVER, TN__SIM_CODE_VALUE);
    }
    tn__sim_map_remove(&sim->live, &range->node);
    range->dead = true;
    range->freed_ns = tn__sim_now(sim);
    discharge(arena, range->bytes);
    if (range->pinned) /* as the real call, it waits for everything queued */
        status = tn__sim_wait_device(sim, TN_SIM_ANY_DEVICE);
    bury(sim, arena, range);
    return status == TN_ERR_CLOSED ? TN_OK : status;
}
