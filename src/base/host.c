/* SPDX-License-Identifier: MIT */
/*
 * Pageable payloads and their allocator.
 *
 * jemalloc's own entry points are weak references: they are there if the program links or preloads
 * jemalloc, and are fixed when the library is loaded. The library itself never needs jemalloc,
 * which could then not be loaded with dlopen (static TLS). One allocator serves a process for its
 * whole life, so a block always goes back where it came from.
 */
#include <gnu/libc-version.h>
#include <malloc.h>
#include <stdlib.h>

#include <tenure/driver.h>

#include "base/atomic.h"
#include "base/base_internal.h"

#define LG_LINE 6 /* jemalloc's flag for an alignment of 64 */

_Static_assert(TN__CACHE_LINE == 1 << LG_LINE, "payloads are aligned to a cache line");

extern void *mallocx(size_t bytes, int flags) __attribute__((weak));
extern void sdallocx(void *block, size_t bytes, int flags) __attribute__((weak));
extern int mallctl(const char *name, void *old, size_t *old_bytes, void *next, size_t next_bytes)
    __attribute__((weak));

/* Live payloads; relaxed, exact only when nobody allocates. */
static _Atomic uint64_t live_bytes;
static _Atomic uint64_t live_blocks;

static bool has_jemalloc(void) { return mallocx && sdallocx && mallctl; }

static size_t rounded(uint64_t bytes) {
    size_t lines = ((size_t)bytes + TN__CACHE_LINE - 1) & ~(size_t)(TN__CACHE_LINE - 1);
    return lines ? lines : TN__CACHE_LINE;
}

void *tn__host_alloc(uint64_t bytes) {
    if (bytes > (uint64_t)PTRDIFF_MAX - TN__CACHE_LINE || tn__fault_alloc_due())
        return NULL;
    void *block = has_jemalloc() ? mallocx(rounded(bytes), LG_LINE)
                                 : aligned_alloc(TN__CACHE_LINE, rounded(bytes));
    if (!block)
        return NULL;
    tn__add_rlx(&live_bytes, bytes);
    tn__add_rlx(&live_blocks, 1);
    return tn__alloc_counted(block);
}

void tn__host_free(void *block, uint64_t bytes) {
    if (!block)
        return;
    tn__sub_rlx(&live_bytes, bytes);
    tn__sub_rlx(&live_blocks, 1);
    tn__alloc_uncounted();
    if (has_jemalloc())
        sdallocx(block, rounded(bytes), LG_LINE);
    else
        free(block);
}

/* ---- Figures ---------------------------------------------------------------------------- */

/* jemalloc counts in size_t; 0 where it was built without statistics. */
static uint64_t statistic(const char *name) {
    size_t value = 0;
    size_t bytes = sizeof value;
    return mallctl(name, &value, &bytes, NULL, 0) == 0 ? value : 0;
}

static const char *jemalloc_version(void) {
    const char *version = "";
    size_t bytes = sizeof version;
    return mallctl("version", &version, &bytes, NULL, 0) == 0 ? version : "";
}

static void read_jemalloc(tn_host_figures *f) {
    uint64_t epoch = 1; /* any value: take fresh figures */
    (void)mallctl("epoch", NULL, NULL, &epoch, sizeof epoch);
    f->allocator = "jemalloc";
    f->version = jemalloc_version();
    f->allocated_bytes = statistic("stats.allocated");
    f->resident_bytes = statistic("stats.resident");
    f->mapped_bytes = statistic("stats.mapped");
    f->retained_bytes = statistic("stats.retained");
}

static void read_c_library(tn_host_figures *f) {
    f->allocator = "C library";
    f->version = gnu_get_libc_version();
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
    struct mallinfo2 info = mallinfo2();
    f->allocated_bytes = (uint64_t)info.uordblks + info.hblkhd;
    f->mapped_bytes = (uint64_t)info.arena + info.hblkhd;
#endif
}

tn_status tn_host_read_memory(tn_host_figures *out) {
    tn_host_figures f = {.size = sizeof f};
    tn_status status = tn__struct_check_out(out, sizeof(size_t), "tn_host_figures");
    if (status != TN_OK)
        return status;
    if (has_jemalloc())
        read_jemalloc(&f);
    else
        read_c_library(&f);
    f.live_bytes = tn__load_rlx(&live_bytes);
    f.live_blocks = tn__load_rlx(&live_blocks);
    tn__struct_out(out, &f, sizeof f);
    return TN_OK;
}
