/* SPDX-License-Identifier: MIT */
/* src/driver/sim/sim_memory.c: capacity, reuse, poison, generations (S4), figures of pools, pinned
 * memory. */
#include "sim_machine.h"

#include <stdlib.h>

static tn_sim_memory memory_of(const struct machine *m, tn_location at) {
    tn_sim_memory f = {.size = sizeof(f)};

    assert_ok(tn_sim_read_memory(m->sim, at, &f));
    return f;
}

static void block_beyond_capacity_is_device_memory(void **state) {
    struct machine m = machine_open("mem=1MiB");
    unsigned char *a = device_block(&m, 0, 1 << 19);
    unsigned char *b = device_block(&m, 0, 1 << 19);
    void *c = &m;

    (void)state;
    assert_status(tn_memory_alloc(m.driver, tn_location_cuda(0), 1, &c), TN_ERR_DEVICE_MEMORY);
    assert_int_equal(tn_last_error()->native_code, 2);
    assert_ptr_equal(c, &m);
    device_drop(&m, 0, a, 1 << 19);
    a = device_block(&m, 0, 1 << 19);
    device_drop(&m, 0, a, 1 << 19);
    device_drop(&m, 0, b, 1 << 19);
    machine_close(&m);
}

static void blocks_of_odd_sizes_fill_capacity_exactly(void **state) {
    struct machine m = machine_open("mem=1000");
    void *out[10];
    int i;

    (void)state;
    for (i = 0; i < 10; i++)
        out[i] = device_block(&m, 0, 100);
    assert_status(m.ops->device_alloc(m.self, 0, 1, &out[0]), TN_ERR_DEVICE_MEMORY);
    assert_int_equal(memory_of(&m, tn_location_cuda(0)).live_bytes, 1000);
    for (i = 0; i < 10; i++)
        device_drop(&m, 0, out[i], 100);
    machine_close(&m);
}

static void block_of_no_bytes_or_device_is_refused(void **state) {
    struct machine m = machine_open("dev:2");
    void *p;

    (void)state;
    assert_status(m.ops->device_alloc(m.self, 0, 0, &p), TN_ERR_DRIVER);
    assert_int_equal(m.ops->last_code(m.self), 1);
    assert_status(m.ops->device_alloc(m.self, 2, 8, &p), TN_ERR_DRIVER);
    assert_int_equal(m.ops->last_code(m.self), 101);
    assert_status(m.ops->device_free(m.self, 2, &p, 8), TN_ERR_DRIVER);
    machine_close(&m);
}

static void block_freed_is_poison_and_lowest_hole_is_reused(void **state) {
    struct machine m = machine_open(NULL);
    unsigned char *a = device_block(&m, 0, 65536);
    unsigned char *b = device_block(&m, 0, 65536);
    unsigned char *c = device_block(&m, 0, 65536);

    (void)state;
    memset(a, 1, 65536);
    memset(b, 2, 65536);
    device_drop(&m, 0, a, 65536);
    assert_true(all_bytes(a, 65536, TN_SIM_POISON));
    assert_true(all_bytes(b, 65536, 2));
    device_drop(&m, 0, b, 65536);
    assert_ptr_equal(device_block(&m, 0, 100000), a);
    device_drop(&m, 0, c, 65536);
    device_drop(&m, 0, a, 100000);
    assert_ptr_equal(device_block(&m, 0, 1 << 20), a);
    device_drop(&m, 0, a, 1 << 20);
    machine_close(&m);
}

static void blocks_of_devices_do_not_overlap(void **state) {
    struct machine m = machine_open("dev:3 mem=1MiB");
    unsigned char *p[4];
    int i;

    (void)state;
    for (i = 0; i < 3; i++)
        p[i] = device_block(&m, (uint32_t)i, 1 << 20);
    p[3] = pinned_block(&m, 1 << 20);
    for (i = 0; i < 4; i++)
        memset(p[i], i + 1, 1 << 20);
    for (i = 0; i < 4; i++) {
        tn_location at;

        assert_true(all_bytes(p[i], 1 << 20, i + 1));
        assert_ok(m.ops->pointer_location(m.self, p[i] + 1000, &at));
        assert_int_equal(at.kind, i < 3 ? TN_LOCATION_CUDA : TN_LOCATION_PINNED);
        assert_int_equal(at.index, i < 3 ? i : 0);
    }
    for (i = 0; i < 3; i++)
        device_drop(&m, (uint32_t)i, p[i], 1 << 20);
    assert_ok(m.ops->pinned_free(m.self, p[3], 1 << 20));
    machine_close(&m);
}

static void pointer_of_nobody_has_no_location(void **state) {
    struct machine m = machine_open(NULL);
    unsigned char *p = device_block(&m, 0, 10);
    tn_location at;

    (void)state;
    assert_ok(m.ops->pointer_location(m.self, &m, &at));
    assert_int_equal(at.kind, TN_LOCATION_NONE);
    device_drop(&m, 0, p, 10);
    assert_ok(m.ops->pointer_location(m.self, p, &at));
    assert_int_equal(at.kind, TN_LOCATION_NONE);
    machine_close(&m);
}

static void figures_follow_blocks(void **state) {
    struct machine m = machine_open("mem=1MiB");
    unsigned char *a = device_block(&m, 0, 1000);
    unsigned char *b = device_block(&m, 0, 500);
    tn_sim_memory f;
    tn_device_memory d;

    (void)state;
    device_drop(&m, 0, a, 1000);
    f = memory_of(&m, tn_location_cuda(0));
    assert_int_equal(f.live_bytes, 500);
    assert_int_equal(f.peak_bytes, 1500);
    assert_int_equal(f.live_blocks, 1);
    assert_int_equal(f.allocations, 2);
    assert_int_equal(f.frees, 1);
    assert_int_equal(f.held_bytes, 1500);
    assert_ok(m.ops->device_memory(m.self, 0, &d));
    assert_int_equal(d.total_bytes, 1 << 20);
    assert_int_equal(d.free_bytes, (1 << 20) - 1500);
    assert_int_equal(d.pool_used_bytes, 500);
    assert_int_equal(d.pool_held_bytes, 1500);
    assert_status(m.ops->device_memory(m.self, 1, &d), TN_ERR_DRIVER);
    device_drop(&m, 0, b, 500);
    machine_close(&m);
}

static void pool_with_threshold_holds_no_more_when_idle(void **state) {
    struct machine m = machine_open("pool=700");
    unsigned char *a = device_block(&m, 0, 600);
    unsigned char *b = device_block(&m, 0, 600);

    (void)state;
    assert_int_equal(memory_of(&m, tn_location_cuda(0)).held_bytes, 1200);
    device_drop(&m, 0, a, 600);
    assert_int_equal(memory_of(&m, tn_location_cuda(0)).held_bytes, 700);
    device_drop(&m, 0, b, 600);
    assert_int_equal(memory_of(&m, tn_location_cuda(0)).held_bytes, 700);
    machine_close(&m);
}

static void pool_reused_never_holds_more_than_its_peak(void **state) {
    struct machine m = machine_open(NULL);
    int i;

    (void)state;
    for (i = 0; i < 1000; i++) {
        unsigned char *p = device_block(&m, 0, 4096);

        device_drop(&m, 0, p, 4096);
    }
    assert_int_equal(memory_of(&m, tn_location_cuda(0)).held_bytes, 4096);
    machine_close(&m);
}

static void pinned_beyond_limit_is_refused(void **state) {
    struct machine m = machine_open("pinned=4KiB");
    unsigned char *a = pinned_block(&m, 4096);
    void *b = NULL;

    (void)state;
    assert_status(m.ops->pinned_alloc(m.self, 1, &b), TN_ERR_HOST_MEMORY);
    assert_status(tn_memory_alloc(m.driver, tn_location_pinned(), 1, &b), TN_ERR_PAYLOAD);
    assert_int_equal(tn_last_error()->native_code, 2);
    assert_ok(tn_memory_free(m.driver, tn_location_pinned(), a, 4096));
    assert_ok(tn_driver_trim_pinned(m.driver, NULL));
    assert_int_equal(memory_of(&m, tn_location_pinned()).held_bytes, 0);
    machine_close(&m);
}

static void pinned_free_waits_for_everything_queued(void **state) {
    struct machine m = machine_open(NULL);
    unsigned char *p = pinned_block(&m, 64);
    tn_stream s = stream_on(&m, 0);

    (void)state;
    assert_ok(tn_sim_queue_delay(m.sim, s, 50 * MS));
    assert_ok(tn_memory_free(m.driver, tn_location_pinned(), p, 64));
    assert_int_equal(now_ms(&m), 0); /* it is kept */
    assert_ok(tn_driver_trim_pinned(m.driver, NULL));
    assert_int_equal(now_ms(&m), 50);
    machine_close(&m);
}

static void free_twice_is_a_violation(void **state) {
    struct machine m = machine_open(NULL);
    unsigned char *p = device_block(&m, 0, 64);

    (void)state;
    device_drop(&m, 0, p, 64);
    assert_status(tn_memory_free(m.driver, tn_location_cuda(0), p, 64), TN_ERR_DRIVER);
    assert_non_null(strstr(tn_sim_violation_text(m.sim), "freed twice"));
    machine_close_after(&m, 1);
}

static void free_that_does_not_fit_is_refused(void **state) {
    struct machine m = machine_open("dev:2");
    unsigned char *p = device_block(&m, 0, 64);

    (void)state;
    assert_status(m.ops->device_free(m.self, 1, p, 64), TN_ERR_DRIVER);
    assert_status(m.ops->pinned_free(m.self, p, 64), TN_ERR_DRIVER);
    assert_status(m.ops->device_free(m.self, 0, &m, 64), TN_ERR_DRIVER);
    assert_int_equal(tn_sim_violations(m.sim), 0);
    assert_status(m.ops->device_free(m.self, 0, p, 63), TN_ERR_DRIVER);
    assert_int_equal(tn_sim_violations(m.sim), 1);
    device_drop(&m, 0, p, 64);
    machine_close_after(&m, 1);
}

static void read_of_freed_range_is_a_violation(void **state) {
    struct machine m = machine_open(NULL);
    unsigned char *p = device_block(&m, 0, 64);
    tn_stream s = stream_on(&m, 0);

    (void)state;
    assert_ok(tn_sim_queue_read(m.sim, s, p + 8, 8, 10 * MS));
    advance_ms(&m, 9);
    device_drop(&m, 0, p, 64);
    assert_int_equal(tn_sim_violations(m.sim), 0);
    advance_ms(&m, 1);
    assert_int_equal(tn_sim_violations(m.sim), 1);
    assert_non_null(strstr(tn_sim_violation_text(m.sim), "freed at 9000000 ns"));
    machine_close_after(&m, 1);
}

/* The block at the same address is another one: its generation differs. */
static void write_after_reuse_of_range_changes_nothing(void **state) {
    struct machine m = machine_open(NULL);
    unsigned char *p = device_block(&m, 0, 64);
    tn_stream s = stream_on(&m, 0);

    (void)state;
    assert_ok(tn_sim_queue_write(m.sim, s, p, 64, 9, 10 * MS));
    device_drop(&m, 0, p, 64);
    assert_ptr_equal(device_block(&m, 0, 64), p);
    memset(p, 3, 64);
    advance_ms(&m, 10);
    assert_true(all_bytes(p, 64, 3));
    assert_int_equal(tn_sim_violations(m.sim), 1);
    device_drop(&m, 0, p, 64);
    machine_close_after(&m, 1);
}

static void work_on_freed_memory_is_refused_when_queued(void **state) {
    struct machine m = machine_open(NULL);
    unsigned char *p = device_block(&m, 0, 64);
    unsigned char *q = pinned_block(&m, 64);
    unsigned char local[64] = {0};
    tn_stream s = stream_on(&m, 0);

    (void)state;
    device_drop(&m, 0, p, 64);
    assert_ok(tn_memory_free(m.driver, tn_location_pinned(), q, 64));
    assert_ok(tn_driver_trim_pinned(m.driver, NULL));
    assert_status(tn_sim_queue_read(m.sim, s, p, 8, 1), TN_ERR_VALUE);
    assert_status(to_device(&m, 0, p, local, 64, s), TN_ERR_DRIVER);
    assert_status(to_host(&m, 0, local, p, 64, NULL), TN_ERR_DRIVER);
    assert_status(tn_sim_queue_write(m.sim, s, q, 8, 0, 1), TN_ERR_VALUE);
    machine_close_after(&m, 4);
}

/* More memory than there is address space to be had: what can be had is used. */
static void memory_beyond_address_space_is_refused(void **state) {
    struct machine m = machine_open("mem=8000000TiB");
    struct machine wide = machine_open("mem=100GiB");
    tn_location at;
    void *p;

    (void)state;
    assert_status(m.ops->device_alloc(m.self, 0, UINT64_C(1) << 60, &p), TN_ERR_HOST_MEMORY);
    assert_ok(m.ops->device_alloc(m.self, 0, UINT64_C(200) << 30, &p));
    assert_status(m.ops->device_alloc(m.self, 0, UINT64_C(100) << 30, &p), TN_ERR_DEVICE_MEMORY);
    assert_ok(m.ops->device_alloc(m.self, 0, 64, &p));
    device_drop(&m, 0, p, 64);
    machine_close(&m);
    p = device_block(&wide, 0, 64);
    assert_ok(wide.ops->pointer_location(wide.self, p, &at));
    device_drop(&wide, 0, p, 64);
    machine_close(&wide);
}

static void blocks_by_the_hundred_thousand_are_quick(void **state) {
    enum { COUNT = 100000 };
    struct machine m = machine_open("mem=1GiB");
    unsigned char **p = calloc(COUNT, sizeof(*p));
    int i;

    (void)state;
    assert_non_null(p);
    for (i = 0; i < COUNT; i++)
        p[i] = device_block(&m, 0, 64 + (uint64_t)(i % 5) * 256);
    for (i = 0; i < COUNT; i += 2)
        device_drop(&m, 0, p[i], 64 + (uint64_t)(i % 5) * 256);
    for (i = 0; i < COUNT; i += 2)
        p[i] = device_block(&m, 0, 64 + (uint64_t)(i % 5) * 256);
    for (i = 0; i < COUNT; i++)
        device_drop(&m, 0, p[i], 64 + (uint64_t)(i % 5) * 256);
    assert_int_equal(memory_of(&m, tn_location_cuda(0)).live_bytes, 0);
    free(p);
    machine_close(&m);
}

static void figures_asked_wrongly_are_refused(void **state) {
    struct machine m = machine_open(NULL);
    tn_sim_memory f = {.size = sizeof(f)};
    tn_sim_traffic t = {.size = sizeof(t)};

    (void)state;
    assert_status(tn_sim_read_memory(m.sim, tn_location_cuda(0), NULL), TN_ERR_KIND);
    assert_status(tn_sim_read_memory(NULL, tn_location_cuda(0), &f), TN_ERR_KIND);
    assert_status(tn_sim_read_memory(m.sim, tn_location_none(), &f), TN_ERR_KIND);
    assert_status(tn_sim_read_memory(m.sim, tn_location_cuda(1), &f), TN_ERR_VALUE);
    assert_status(tn_sim_read_memory(m.sim, tn_location_pageable(), &f), TN_ERR_VALUE);
    assert_status(tn_sim_read_traffic(m.sim, tn_location_cuda(1), tn_location_pinned(), &t),
                  TN_ERR_VALUE);
    assert_status(tn_sim_read_traffic(m.sim, tn_location_pinned(), tn_location_none(), &t),
                  TN_ERR_KIND);
    t.size = 0;
    assert_status(tn_sim_read_traffic(m.sim, tn_location_pinned(), tn_location_cuda(0), &t),
                  TN_ERR_KIND);
    machine_close(&m);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(block_beyond_capacity_is_device_memory),
    cmocka_unit_test(blocks_of_odd_sizes_fill_capacity_exactly),
    cmocka_unit_test(block_of_no_bytes_or_device_is_refused),
    cmocka_unit_test(block_freed_is_poison_and_lowest_hole_is_reused),
    cmocka_unit_test(blocks_of_devices_do_not_overlap),
    cmocka_unit_test(pointer_of_nobody_has_no_location),
    cmocka_unit_test(figures_follow_blocks),
    cmocka_unit_test(pool_with_threshold_holds_no_more_when_idle),
    cmocka_unit_test(pool_reused_never_holds_more_than_its_peak),
    cmocka_unit_test(pinned_beyond_limit_is_refused),
    cmocka_unit_test(pinned_free_waits_for_everything_queued),
    cmocka_unit_test(free_twice_is_a_violation),
    cmocka_unit_test(free_that_does_not_fit_is_refused),
    cmocka_unit_test(read_of_freed_range_is_a_violation),
    cmocka_unit_test(write_after_reuse_of_range_changes_nothing),
    cmocka_unit_test(work_on_freed_memory_is_refused_when_queued),
    cmocka_unit_test(memory_beyond_address_space_is_refused),
    cmocka_unit_test(blocks_by_the_hundred_thousand_are_quick),
    cmocka_unit_test(figures_asked_wrongly_are_refused),
};

TN_TEST_MAIN("unit.sim_memory", tests)
