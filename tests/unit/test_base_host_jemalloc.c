/* SPDX-License-Identifier: MIT */
/* src/base/host.c in a process that has jemalloc's entry points: here they are the test's own. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <tenure/driver.h>

#include "base/base_internal.h"
#include "tn_test.h"

static size_t allocated, freed, last_bytes;
static int last_flags;

void *mallocx(size_t bytes, int flags);
void sdallocx(void *block, size_t bytes, int flags);
int mallctl(const char *name, void *old, size_t *old_bytes, void *next, size_t next_bytes);

void *mallocx(size_t bytes, int flags) {
    allocated++;
    last_bytes = bytes;
    last_flags = flags;
    return aligned_alloc((size_t)1 << (flags & 63), bytes);
}

void sdallocx(void *block, size_t bytes, int flags) {
    freed++;
    assert_int_equal(bytes, last_bytes);
    assert_int_equal(flags, last_flags);
    free(block);
}

int mallctl(const char *name, void *old, size_t *old_bytes, void *next, size_t next_bytes) {
    static const char *const version = "5.0.0-test";
    (void)next;
    (void)next_bytes;
    if (strcmp(name, "epoch") == 0)
        return 0;
    if (strcmp(name, "version") == 0)
        memcpy(old, &version, *old_bytes);
    else if (strcmp(name, "stats.resident") == 0)
        memcpy(old, &(size_t){4711}, *old_bytes);
    else
        return 2; /* it was built without these statistics */
    return 0;
}

static void payloads_come_from_jemalloc_and_go_back_with_their_size(void **state) {
    (void)state;
    for (uint64_t bytes = 0; bytes < 300; bytes += 37) {
        void *block = tn__host_alloc(bytes);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % 64, 0);
        assert_true(last_bytes >= bytes && last_bytes > 0);
        tn__host_free(block, bytes);
    }
    assert_int_equal(allocated, 9);
    assert_int_equal(freed, 9);
    tn__free(tn__alloc(10)); /* the library's own records do not */
    assert_int_equal(allocated, 9);
}

static void payloads_of_the_api_do_too(void **state) {
    void *p = NULL;
    size_t before = allocated;
    (void)state;
    assert_ok(tn_memory_alloc(NULL, tn_location_pageable(), 100, &p));
    assert_ok(tn_memory_free(NULL, tn_location_pageable(), p, 100));
    assert_int_equal(allocated, before + 1);
    assert_int_equal(freed, allocated);
}

static void figures_are_jemallocs(void **state) {
    tn_host_figures f = TN_HOST_FIGURES_INIT;
    (void)state;
    assert_ok(tn_host_read_memory(&f));
    assert_string_equal(f.allocator, "jemalloc");
    assert_string_equal(f.version, "5.0.0-test");
    assert_int_equal(f.resident_bytes, 4711);
    assert_int_equal(f.allocated_bytes, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(payloads_come_from_jemalloc_and_go_back_with_their_size),
    cmocka_unit_test(payloads_of_the_api_do_too),
    cmocka_unit_test(figures_are_jemallocs),
};

TN_TEST_MAIN("unit.base_host_jemalloc", tests)
