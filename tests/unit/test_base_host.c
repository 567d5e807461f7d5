/* SPDX-License-Identifier: MIT */
/* src/base/host.c in a process without jemalloc: the C library serves pageable payloads. */
#include <stdint.h>
#include <string.h>

#include <tenure/driver.h>

#include "base/base_internal.h"
#include "tn_test.h"

static tn_host_figures figures(void) {
    tn_host_figures f = TN_HOST_FIGURES_INIT;
    assert_ok(tn_host_read_memory(&f));
    return f;
}

static void payloads_are_counted_by_bytes_and_blocks(void **state) {
    (void)state;
    void *a = tn__host_alloc(1000), *b = tn__host_alloc(0), *c = tn__host_alloc(40 << 20);
    assert_true(a && b && c);
    memset(c, 1, 40 << 20);
    tn_host_figures f = figures();
    assert_int_equal(f.live_bytes, 1000 + (40 << 20));
    assert_int_equal(f.live_blocks, 3);
    assert_true(f.allocated_bytes == 0 || f.allocated_bytes >= 40 << 20);
    tn__host_free(a, 1000);
    tn__host_free(b, 0);
    tn__host_free(c, 40 << 20);
    assert_int_equal(figures().live_bytes, 0);
    assert_int_equal(figures().live_blocks, 0);
}

static void allocator_is_the_c_library(void **state) {
    (void)state;
    assert_string_equal(figures().allocator, "C library");
    assert_true(strlen(figures().version) > 0);
}

static void figures_check_their_arguments(void **state) {
    tn_host_figures f = {.size = 4};
    (void)state;
    assert_status(tn_host_read_memory(NULL), TN_ERR_KIND);
    assert_status(tn_host_read_memory(&f), TN_ERR_KIND);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(payloads_are_counted_by_bytes_and_blocks),
    cmocka_unit_test(allocator_is_the_c_library),
    cmocka_unit_test(figures_check_their_arguments),
};

TN_TEST_MAIN("unit.base_host", tests)
