/* SPDX-License-Identifier: MIT */
/* src/driver/driver_pinned.c: the books of the pinned pool (C1..C4), without a driver. Addresses
 * are made up: nobody looks there, so no block is given back but in memory that is there. */
#include "tn_test.h"

#include <stdlib.h>
#include <string.h>

#include "driver/driver_pinned.h"

#define MIB (UINT64_C(1) << 20)

/* The sizes of public CKKS parameter sets: one key, how many of them a program has, one
 * ciphertext. */
static const struct {
    const char *name;
    uint64_t key_bytes, keys, ciphertext_bytes;
} sets[] = {
    {"SEAL 2^14 k=8", 14680064, 27, 1835008},
    {"SEAL 2^14 k=9", 18 * MIB, 27, 2 * MIB},
    {"SEAL 2^15 k=16", 125829120, 29, 15 * MIB / 2},
    {"SEAL 2^15 k=24", 276 * MIB, 29, 23 * MIB / 2},
    {"OpenFHE 2^16 {4,4}", 138412032, 79, 34603008},
    {"OpenFHE 2^16 {3,3}", 132120576, 55, 31 * MIB},
    {"OpenFHE 2^16 {2,2}", 125 * MIB, 170, 31 * MIB},
    {"OpenFHE 2^17 {4,4}", 264 * MIB, 64, 66 * MIB},
    {"Lattigo N16QP1546", 150 * MIB, 49, 25 * MIB},
    {"Lattigo N16QP1553", 135 * MIB, 49, 22 * MIB},
    {"Lattigo N16QP1767", 180 * MIB, 49, 30 * MIB},
    {"Lattigo N15QP768", 56 * MIB, 54, 7 * MIB},
    {"Cheddar hoisted", 118 * MIB, 43, 47 * MIB / 2},
    {"Cheddar min-KS", 118 * MIB, 13, 47 * MIB / 2},
    {"Cheddar 64 bits", 132 * MIB, 43, 26 * MIB},
    {"FIDESlib ResNet-20", 93 * MIB, 130, 24 * MIB},
    {"FHElium 2^15", 171 * MIB / 2, 50, 17 * MIB / 2},
    {"FHElium 2^16", 351 * MIB, 50, 35 * MIB},
    {"FHElium 2^17", 2054 * MIB, 50, 146 * MIB},
};

static tn__pinned p;
static char *next_address;
static uint64_t chunks;

static int setup(void **state) {
    (void)state;
    memset(&p, 0, sizeof p);
    tn__pinned_init(&p);
    next_address = (char *)(uintptr_t)(UINT64_C(1) << 40);
    chunks = 0;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    tn__pinned_fini(&p);
    assert_int_equal(tn__alloc_live(), 0);
    return 0;
}

/* A block, in a chunk at the next address if there is none. */
static char *take(uint64_t bytes) {
    tn__pinned_chunk *chunk;
    char *block = tn__pinned_take(&p, bytes);
    if (block)
        return block;
    assert_true(tn__pinned_grow_begin(&p, bytes, &chunk));
    char *base = next_address;
    next_address += (chunk->bytes + 8191) / 4096 * 4096; /* page by page, as drivers give it */
    chunks++;
    block = tn__pinned_grow_end(&p, chunk, base);
    assert_ptr_equal(block, base);
    return block;
}

static void assert_little_waste(const char *name) {
    uint64_t waste = p.held_bytes - p.live_bytes;
    if (waste * 20 > p.live_bytes)
        fail_msg("%s: %llu bytes held for %llu", name, (unsigned long long)p.held_bytes,
                 (unsigned long long)p.live_bytes);
}

/* After each block, not only at the end. */
static void fill(const char *name, uint64_t bytes, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        take(bytes);
        assert_little_waste(name);
    }
}

static void waste_over_the_sizes_of_ckks_sets_is_at_most_5_percent(void **state) {
    enum { CIPHERTEXTS = 25 }; /* as many as a bootstrap keeps alive */
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        fill(sets[i].name, sets[i].key_bytes, sets[i].keys);
        fill(sets[i].name, sets[i].ciphertext_bytes, CIPHERTEXTS);
        assert_int_equal(teardown(state), 0); /* one set alone ... */
        assert_int_equal(setup(state), 0);
    }
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) /* ... and all together */
        fill(sets[i].name, sets[i].key_bytes, sets[i].keys);
}

/* The same for the small values of scaled tests, in any number, with few chunks. */
static void many_small_blocks_need_few_chunks(void **state) {
    (void)state;
    fill("132 KiB", 135168, 100000);
    assert_true(chunks < 400);
    assert_true(chunks > 100000 / (64 * MIB / 135168)); /* none larger than 64 MiB */
}

static void blocks_of_a_chunk_are_disjoint_and_aligned(void **state) {
    enum { COUNT = 500 };
    static char *blocks[COUNT];
    (void)state;
    for (int i = 0; i < COUNT; i++)
        blocks[i] = take(1000);
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < i; j++)
            assert_true(blocks[i] >= blocks[j] + 1000 || blocks[j] >= blocks[i] + 1000);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal((uintptr_t)blocks[i] % 256, (uintptr_t)blocks[0] % 256);
    assert_true(chunks < COUNT / 4);
    assert_int_equal(p.live_bytes, COUNT * 1000);
    assert_int_equal(p.live_blocks, COUNT);
}

static void block_larger_than_a_chunk_has_its_own(void **state) {
    (void)state;
    p.chunk_bytes = MIB;
    for (uint64_t i = 1; i <= 50; i++) {
        take(3 * MIB);
        assert_int_equal(chunks, i);
    }
    assert_int_equal(p.held_bytes, 150 * MIB);
}

/* C2: two who miss at the same time do not both take in advance. */
static void second_growth_of_a_size_is_a_single_block(void **state) {
    tn__pinned_chunk *first, *second, *third;
    (void)state;
    for (int i = 0; i < 100; i++)
        take(4096);
    while (tn__pinned_take(&p, 4096))
        ;
    assert_true(tn__pinned_grow_begin(&p, 4096, &first));
    assert_true(first->count > 1);
    assert_true(tn__pinned_grow_begin(&p, 4096, &second));
    assert_int_equal(second->count, 1);
    assert_true(tn__pinned_grow_begin(&p, 8192, &third));
    assert_null(tn__pinned_grow_end(&p, third, NULL));
    assert_null(tn__pinned_grow_end(&p, second, NULL));
    assert_non_null(tn__pinned_grow_end(&p, first, next_address));
}

static void wrong_block_is_not_taken_back(void **state) {
    static char memory[4096];
    tn__pinned_chunk *chunk;
    (void)state;
    assert_false(tn__pinned_give(&p, memory, 64));
    assert_true(tn__pinned_grow_begin(&p, 1000, &chunk));
    char *block = tn__pinned_grow_end(&p, chunk, memory);
    assert_false(tn__pinned_give(&p, block, 999));
    assert_false(tn__pinned_give(&p, block + 256, 1000));
    assert_false(tn__pinned_give(&p, block + 4000, 1000));
    assert_false(tn__pinned_give(&p, block - 1, 1000));
    assert_true(tn__pinned_give(&p, block, 1000));
    assert_false(tn__pinned_give(&p, block, 1000)); /* twice */
    assert_int_equal(p.live_bytes, 0);
    assert_int_equal(p.held_bytes, 1000);
    assert_ptr_equal(tn__pinned_take(&p, 1000), block);
    assert_null(tn__pinned_take(&p, 1000));
    assert_null(tn__pinned_take(&p, 1001));
}

/* C1: only chunks without a live block, each once; one that could not be given back is idle again.
 */
static void idle_chunks_are_taken_out_one_by_one(void **state) {
    static char memory[3][64];
    char *blocks[3];
    uintptr_t from = 0;
    tn__pinned_chunk *chunk;
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_true(tn__pinned_grow_begin(&p, 64, &chunk));
        blocks[i] = tn__pinned_grow_end(&p, chunk, memory[i]);
    }
    assert_null(tn__pinned_idle(&p, &from));
    assert_true(tn__pinned_give(&p, blocks[0], 64));
    assert_true(tn__pinned_give(&p, blocks[2], 64));
    chunk = tn__pinned_idle(&p, &from);
    assert_ptr_equal(chunk->base, memory[0]);
    assert_int_equal(p.held_bytes, 128);
    tn__pinned_idle_end(&p, chunk, false);
    assert_int_equal(p.held_bytes, 192);
    chunk = tn__pinned_idle(&p, &from);
    assert_ptr_equal(chunk->base, memory[2]);
    tn__pinned_idle_end(&p, chunk, true);
    assert_null(tn__pinned_idle(&p, &from));
    assert_int_equal(p.returned, 1);
    assert_ptr_equal(tn__pinned_take(&p, 64), memory[0]);
}

static void blocks_of_a_context_that_has_gone_are_not_used_again(void **state) {
    static char memory[2][64];
    tn__pinned_chunk *chunk;
    uintptr_t from = 0;
    (void)state;
    assert_true(tn__pinned_grow_begin(&p, 64, &chunk));
    char *live = tn__pinned_grow_end(&p, chunk, memory[0]);
    assert_true(tn__pinned_grow_begin(&p, 64, &chunk));
    assert_true(tn__pinned_give(&p, tn__pinned_grow_end(&p, chunk, memory[1]), 64));
    tn__pinned_gone(&p);
    assert_null(tn__pinned_take(&p, 64));
    assert_true(tn__pinned_give(&p, live, 64));
    assert_null(tn__pinned_take(&p, 64));
    for (int i = 0; i < 2; i++)
        tn__pinned_idle_end(&p, tn__pinned_idle(&p, &from), true);
    assert_int_equal(p.held_bytes, 0);
}

static void growth_survives_each_failing_allocation(void **state) {
    tn__pinned_chunk *chunk;
    uint64_t n = 1;
    (void)state;
    for (;; n++) {
        tn__fault_alloc(n);
        bool grown = tn__pinned_grow_begin(&p, 64, &chunk);
        tn__fault_alloc(0);
        if (grown)
            break;
        assert_int_equal(tn__alloc_live(), 0);
    }
    assert_int_equal(n, 4); /* the size, the list of chunks, the chunk */
    assert_null(tn__pinned_grow_end(&p, chunk, NULL));
    assert_int_equal(tn__alloc_live(), 0);
}

#define POOL_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static const struct CMUnitTest tests[] = {
    POOL_TEST(waste_over_the_sizes_of_ckks_sets_is_at_most_5_percent),
    POOL_TEST(many_small_blocks_need_few_chunks),
    POOL_TEST(blocks_of_a_chunk_are_disjoint_and_aligned),
    POOL_TEST(block_larger_than_a_chunk_has_its_own),
    POOL_TEST(second_growth_of_a_size_is_a_single_block),
    POOL_TEST(wrong_block_is_not_taken_back),
    POOL_TEST(idle_chunks_are_taken_out_one_by_one),
    POOL_TEST(blocks_of_a_context_that_has_gone_are_not_used_again),
    POOL_TEST(growth_survives_each_failing_allocation),
};

TN_TEST_MAIN("unit.driver_pinned", tests)
