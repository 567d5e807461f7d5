/* SPDX-License-Identifier: MIT */
/*
 * Host memory: the library's own blocks. Every allocation is a numbered failure point. Pageable
 * payloads are in host.c.
 */
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/base_internal.h"

/* Written by tests; read and counted down by every allocation. Relaxed: only the count matters. */
static _Atomic uint64_t fault_in;
static _Atomic bool fault_fired;
/* Live blocks; relaxed, exact only when nobody allocates. */
static _Atomic uint64_t live;

void tn__fault_alloc(uint64_t nth) {
    tn__store_rlx(&fault_fired, false);
    tn__store_rlx(&fault_in, nth);
}

bool tn__fault_alloc_fired(void) { return tn__load_rlx(&fault_fired); }

uint64_t tn__alloc_live(void) { return tn__load_rlx(&live); }

bool tn__fault_alloc_due(void) {
    uint64_t n = tn__load_rlx(&fault_in);
    while (tn__unlikely(n != 0)) {
        if (!tn__cas_rlx(&fault_in, &n, n - 1))
            continue;
        if (n > 1)
            return false;
        tn__store_rlx(&fault_fired, true);
        return true;
    }
    return false;
}

void *tn__alloc_counted(void *block) {
    if (block)
        tn__add_rlx(&live, 1);
    return block;
}

void tn__alloc_uncounted(void) { tn__sub_rlx(&live, 1); }

void *tn__alloc(size_t bytes) {
    return tn__fault_alloc_due() ? NULL : tn__alloc_counted(malloc(bytes ? bytes : 1));
}

void *tn__zalloc(size_t bytes) {
    return tn__fault_alloc_due() ? NULL : tn__alloc_counted(calloc(1, bytes ? bytes : 1));
}

bool tn__grow(void *array, size_t *room, size_t count, size_t size) {
    if (count < *room)
        return true;
    size_t more = *room ? *room * 2 : 16;
    void *old, *now = more > *room && more <= SIZE_MAX / size ? tn__alloc(more * size) : NULL;
    if (!now)
        return false;
    memcpy(&old, array, sizeof old);
    if (count)
        memcpy(now, old, count * size);
    tn__free(old);
    memcpy(array, &now, sizeof now);
    *room = more;
    return true;
}

void *tn__zalloc_line(size_t bytes) {
    if (bytes > SIZE_MAX - TN__CACHE_LINE || tn__fault_alloc_due())
        return NULL;
    size_t rounded = (bytes + TN__CACHE_LINE - 1) & ~(size_t)(TN__CACHE_LINE - 1);
    void *block = aligned_alloc(TN__CACHE_LINE, rounded ? rounded : TN__CACHE_LINE);
    return tn__alloc_counted(block) ? memset(block, 0, bytes) : NULL;
}

void tn__free(void *block) {
    if (!block)
        return;
    tn__alloc_uncounted();
    free(block);
}
