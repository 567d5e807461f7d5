/* SPDX-License-Identifier: MIT */
/* src/base/memory.c: numbered failures, live blocks, alignment. */
#include <stdint.h>
#include <string.h>

#include "base/base_internal.h"
#include "tn_test.h"

static void allocation_fails_once_at_its_number(void **state) {
    void *blocks[5];
    (void)state;
    tn__fault_alloc(3);
    for (int i = 0; i < 5; i++) {
        blocks[i] = i % 2 ? tn__zalloc(10) : tn__alloc(10);
        assert_int_equal(tn__fault_alloc_fired(), i >= 2);
        assert_int_equal(blocks[i] == NULL, i == 2);
    }
    for (int i = 0; i < 5; i++)
        tn__free(blocks[i]);
    tn__fault_alloc(0);
    assert_false(tn__fault_alloc_fired());
}

static void failure_is_disarmed_by_zero(void **state) {
    (void)state;
    tn__fault_alloc(1);
    tn__fault_alloc(0);
    void *block = tn__alloc(1);
    assert_non_null(block);
    assert_false(tn__fault_alloc_fired());
    tn__free(block);
}

static void every_kind_of_allocation_is_numbered(void **state) {
    (void)state;
    tn__fault_alloc(1);
    assert_null(tn__alloc(1));
    tn__fault_alloc(1);
    assert_null(tn__zalloc(1));
    tn__fault_alloc(1);
    assert_null(tn__zalloc_line(1));
    tn__fault_alloc(1);
    assert_null(tn__host_alloc(1));
    tn__fault_alloc(0);
}

static void live_blocks_are_counted(void **state) {
    uint64_t before = tn__alloc_live();
    (void)state;
    void *a = tn__alloc(0), *b = tn__zalloc(0), *c = tn__zalloc_line(0), *d = tn__host_alloc(0);
    assert_true(a && b && c && d);
    assert_int_equal(tn__alloc_live(), before + 4);
    tn__free(a);
    tn__free(b);
    tn__free(c);
    tn__host_free(d, 0);
    tn__free(NULL);
    tn__host_free(NULL, 0);
    assert_int_equal(tn__alloc_live(), before);
}

static void lines_are_aligned_and_zero(void **state) {
    static const unsigned char zeroes[200];
    (void)state;
    for (size_t bytes = 1; bytes <= sizeof zeroes; bytes += 33) {
        void *line = tn__zalloc_line(bytes), *payload = tn__host_alloc(bytes);
        assert_int_equal((uintptr_t)line % 64, 0);
        assert_int_equal((uintptr_t)payload % 64, 0);
        assert_memory_equal(line, zeroes, bytes);
        memset(payload, 0xff, bytes);
        tn__free(line);
        tn__host_free(payload, bytes);
    }
}

static void sizes_that_cannot_be_are_refused(void **state) {
    (void)state;
    assert_null(tn__host_alloc(UINT64_MAX));
    assert_null(tn__host_alloc(SIZE_MAX - 63));
    assert_null(tn__zalloc_line(SIZE_MAX));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(allocation_fails_once_at_its_number),
    cmocka_unit_test(failure_is_disarmed_by_zero),
    cmocka_unit_test(every_kind_of_allocation_is_numbered),
    cmocka_unit_test(live_blocks_are_counted),
    cmocka_unit_test(lines_are_aligned_and_zero),
    cmocka_unit_test(sizes_that_cannot_be_are_refused),
};

TN_TEST_MAIN("unit.base_memory", tests)
