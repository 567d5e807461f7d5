/* SPDX-License-Identifier: MIT */
/*
 * Memory of a schedule. What is given back is poisoned and kept until the schedule is over: an
 * atomic access to it, or a write found at the end, fails the schedule. AddressSanitizer does all
 * this itself, and more.
 */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "sched_priv.h"

#if defined(__SANITIZE_ADDRESS__)
#define KEEPS 0
#else
#define KEEPS 1
#endif

#define KEPT_MAX 32768
#define POISON 0xDB
#define POISON_WORD UINT64_C(0xDBDBDBDBDBDBDBDB)

typedef struct kept {
    unsigned char *block;
    size_t bytes;
} kept;

static kept all_kept[KEPT_MAX];
static size_t kept_count;

#define REAL(type, name, ...)                                                                      \
    type __real_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__)

/* What waits in the buffer was stored before the memory is given back, or given out again. */
static void before_memory(void) {
    if (sched_self)
        sched_drain(sched_self);
}

static void keep(void *block) {
    size_t bytes = malloc_usable_size(block);
    memset(block, POISON, bytes);
    if (kept_count < KEPT_MAX)
        all_kept[kept_count++] = (kept){block, bytes};
}

REAL(void, free, void *block) {
    before_memory();
    if (KEEPS && sched_self && block)
        keep(block);
    else
        __real_free(block);
}

REAL(void *, malloc, size_t bytes) {
    before_memory();
    return __real_malloc(bytes);
}

REAL(void *, calloc, size_t count, size_t bytes) {
    before_memory();
    return __real_calloc(count, bytes);
}

REAL(void *, aligned_alloc, size_t alignment, size_t bytes) {
    before_memory();
    return __real_aligned_alloc(alignment, bytes);
}

static bool is_kept(uintptr_t address) {
    for (size_t i = 0; i < kept_count; i++)
        if (address - (uintptr_t)all_kept[i].block < all_kept[i].bytes)
            return true;
    return false;
}

void sched_check_address(const volatile void *address) {
    const volatile uint64_t *word = (const volatile uint64_t *)((uintptr_t)address & ~(uintptr_t)7);
    if (KEEPS && *word == POISON_WORD && is_kept((uintptr_t)word))
        sched_fail(__FILE__, __LINE__, "memory is used that was given back");
}

void sched_check_memory(void) {
    for (size_t i = 0; i < kept_count; i++)
        for (size_t b = 0; b < all_kept[i].bytes; b++)
            if (all_kept[i].block[b] != POISON)
                sched_fail(__FILE__, __LINE__, "memory was written that had been given back");
}
