/* SPDX-License-Identifier: MIT */
/* src/value/ring.c: a bounded ring that pushes back (R1, R3), with and without pinned memory. */
#include "tn_test.h"

#include <string.h>

#include <tenure/sim.h>

#include "base/atomic.h"
#include "value/ring.h"

static tn_sim *sim;
static tn__ring *ring;

static void open_ring(const char *machine, uint64_t block_bytes, uint32_t blocks) {
    assert_ok(tn_sim_create(machine, &sim));
    assert_ok(tn__ring_create(tn_sim_driver(sim), block_bytes, blocks, &ring));
}

static void close_ring(void) {
    tn_sim_memory memory = {.size = sizeof memory};
    tn__ring_destroy(ring);
    assert_ok(tn_driver_trim_pinned(tn_sim_driver(sim), NULL));
    assert_ok(tn_sim_read_memory(sim, tn_location_pinned(), &memory));
    assert_int_equal(memory.live_bytes, 0);
    tn_sim_destroy(sim);
    assert_int_equal(tn__alloc_live(), 0);
}

static uint64_t ring_bytes(void) {
    tn_pinned_figures f = TN_PINNED_FIGURES_INIT;
    assert_ok(tn_driver_read_pinned(tn_sim_driver(sim), &f));
    return f.ring_bytes;
}

static void memory_is_taken_at_the_first_load_and_kept(void **state) {
    (void)state;
    open_ring(NULL, 16384, 4);
    assert_int_equal(tn_sim_calls(sim, TN_SIM_PINNED_ALLOC), 0);
    for (int i = 0; i < 3; i++) {
        assert_ok(tn__ring_enter(ring));
        assert_int_equal(ring_bytes(), 65536);
        assert_int_equal(tn__ring_at(ring).kind, TN_LOCATION_PINNED);
        tn__ring_leave(ring);
    }
    assert_int_equal(tn_sim_calls(sim, TN_SIM_PINNED_ALLOC), 1);
    close_ring();
}

static void events_are_as_many_as_blocks_in_use(void **state) {
    (void)state;
    open_ring(NULL, 1000, 4);
    assert_int_equal(tn__ring_events(ring, 0), 0);
    assert_int_equal(tn__ring_events(ring, 1), 1);
    assert_int_equal(tn__ring_events(ring, 1000), 1);
    assert_int_equal(tn__ring_events(ring, 1001), 2);
    assert_int_equal(tn__ring_events(ring, INT64_MAX), 4);
    close_ring();
}

static void blocks_are_distinct_and_no_more_than_there_are(void **state) {
    uint32_t block[4], none = 99;
    (void)state;
    open_ring(NULL, 1000, 4);
    assert_ok(tn__ring_enter(ring));
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(tn__ring_take(ring, i, &block[i]));
        memset(tn__ring_block(ring, block[i]), (int)i, 1000);
    }
    assert_false(tn__ring_take(ring, 4, &none));
    assert_int_equal(none, 99);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(tn__ring_block(ring, block[i])[0], i);
        assert_int_equal(tn__ring_block(ring, block[i])[999], i);
        tn__ring_give(ring, block[i]);
    }
    tn__ring_leave(ring);
    close_ring();
}

/* R3 */
static void second_load_lowers_the_share(void **state) {
    uint32_t block;
    (void)state;
    open_ring(NULL, 1000, 4);
    assert_ok(tn__ring_enter(ring));
    assert_false(tn__ring_over(ring, 4));
    assert_ok(tn__ring_enter(ring));
    assert_true(tn__ring_over(ring, 3));
    assert_false(tn__ring_over(ring, 2));
    assert_false(tn__ring_take(ring, 2, &block));
    assert_true(tn__ring_take(ring, 1, &block));
    tn__ring_give(ring, block);
    for (int i = 0; i < 7; i++)
        assert_ok(tn__ring_enter(ring)); /* more loads than blocks: one each */
    assert_false(tn__ring_over(ring, 1));
    for (int i = 0; i < 9; i++)
        tn__ring_leave(ring);
    close_ring();
}

static void ring_without_pinned_memory_is_pageable(void **state) {
    (void)state;
    open_ring("pinned=1KiB", 1000, 4);
    assert_ok(tn__ring_enter(ring));
    assert_int_equal(tn__ring_at(ring).kind, TN_LOCATION_PAGEABLE);
    assert_int_equal(ring_bytes(), 0);
    memset(tn__ring_block(ring, 3), 1, 1000);
    tn__ring_leave(ring);
    assert_ok(tn__ring_enter(ring)); /* not asked again and again */
    tn__ring_leave(ring);
    assert_int_equal(tn_sim_calls(sim, TN_SIM_PINNED_ALLOC), 1);
    close_ring();
    assert_ok(tn_sim_create(NULL, &sim));
    assert_ok(tn_sim_set_state(sim, TN_SIM_NO_PINNED));
    assert_ok(tn__ring_create(tn_sim_driver(sim), 10, 1, &ring));
    assert_ok(tn__ring_enter(ring));
    assert_int_equal(tn__ring_at(ring).kind, TN_LOCATION_PAGEABLE);
    tn__ring_leave(ring);
    close_ring();
}

static void ring_is_pinned_once_there_is_pinned_memory_again(void **state) {
    tn_driver *driver;
    void *block = NULL;
    (void)state;
    open_ring("pinned=64KiB", 16384, 2);
    driver = tn_sim_driver(sim);
    assert_ok(tn_memory_alloc(driver, tn_location_pinned(), 60000, &block));
    assert_ok(tn__ring_enter(ring));
    assert_int_equal(tn__ring_at(ring).kind, TN_LOCATION_PAGEABLE);
    assert_ok(tn_memory_free(driver, tn_location_pinned(), block, 60000));
    assert_ok(tn_driver_trim_pinned(driver, NULL));
    assert_ok(tn__ring_enter(ring));
    assert_int_equal(tn__ring_at(ring).kind, TN_LOCATION_PAGEABLE); /* in use by the other load */
    tn__ring_leave(ring);
    tn__ring_leave(ring);
    assert_ok(tn__ring_enter(ring));
    assert_int_equal(tn__ring_at(ring).kind, TN_LOCATION_PINNED);
    assert_int_equal(ring_bytes(), 32768);
    tn__ring_leave(ring);
    close_ring();
}

static void ring_without_any_memory_reports_it(void **state) {
    (void)state;
    open_ring("pinned=1KiB", 1000, 4);
    tn__fault_alloc(1);
    assert_status(tn__ring_enter(ring), TN_ERR_HOST_MEMORY);
    tn__fault_alloc(0);
    assert_ok(tn__ring_enter(ring));
    assert_false(tn__ring_over(ring, 4)); /* the failed load is not counted */
    tn__ring_leave(ring);
    close_ring();
}

/* ---- Threads: more loads than blocks ---- */

static _Atomic uint32_t in_use, most;

static const char *loader(int index, void *arg) {
    (void)arg;
    for (int load = 0; load < 50; load++) {
        uint32_t held[3], count = 0;
        TN_WORKER_STATUS(tn__ring_enter(ring), TN_OK);
        for (int i = 0; i < 20; i++) {
            uint32_t block;
            if (!tn__ring_take(ring, count, &block)) { /* its own oldest */
                block = held[0];
                memmove(held, held + 1, --count * sizeof held[0]);
                TN_WORKER_CHECK(tn__ring_block(ring, block)[0] == index);
                tn__sub_rlx(&in_use, 1);
                if (tn__ring_over(ring, count + 1)) {
                    tn__ring_give(ring, block);
                    continue;
                }
            }
            uint32_t now = tn__add_rlx(&in_use, 1) + 1, seen = tn__load_rlx(&most);
            while (now > seen && !tn__cas_rlx(&most, &seen, now))
                ;
            memset(tn__ring_block(ring, block), index, 64);
            held[count++] = block;
        }
        while (count > 0) {
            TN_WORKER_CHECK(tn__ring_block(ring, held[--count])[63] == index);
            tn__sub_rlx(&in_use, 1);
            tn__ring_give(ring, held[count]);
        }
        tn__ring_leave(ring);
    }
    return NULL;
}

static void loads_at_the_same_time_share_the_blocks(void **state) {
    (void)state;
    open_ring(NULL, 64, 3);
    assert_null_text(tn_test_workers_run(8, loader, NULL));
    assert_true(tn__load_rlx(&most) <= 3);
    assert_int_equal(tn__load_rlx(&in_use), 0);
    close_ring();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(memory_is_taken_at_the_first_load_and_kept),
    cmocka_unit_test(events_are_as_many_as_blocks_in_use),
    cmocka_unit_test(blocks_are_distinct_and_no_more_than_there_are),
    cmocka_unit_test(second_load_lowers_the_share),
    cmocka_unit_test(ring_without_pinned_memory_is_pageable),
    cmocka_unit_test(ring_is_pinned_once_there_is_pinned_memory_again),
    cmocka_unit_test(ring_without_any_memory_reports_it),
    cmocka_unit_test(loads_at_the_same_time_share_the_blocks),
};

TN_TEST_MAIN("unit.value_ring", tests)
