/* SPDX-License-Identifier: MIT */
/* src/driver/cuda/cuda_memory.c, cuda_copy.c: the pool (U3, F-C13), pinned memory (F-E10, M31),
 * figures, copies without a stream (F-B07). */
#include "cuda_fixture.h"

#define MIB (UINT64_C(1) << 20)

static void pool_keeps_a_part_of_the_device_at_most(void **state) {
    struct cuda c = cuda_open(SHIM_FULL, "dev:1 mem=64MiB"); /* 2 MiB may be idle */
    void *p = device_block(&c, 0, MIB);
    void *q = device_block(&c, 0, 4 * MIB);

    (void)state;
    assert_int_equal(atomic_load(&c.shim->threshold), UINT64_MAX);
    assert_int_equal(atomic_load(&c.shim->allocs), 0);
    assert_ok(c.ops->device_free(c.self, 0, p, MIB));
    assert_int_equal(atomic_load(&c.shim->trims), 0);
    p = device_block(&c, 0, MIB);
    assert_ok(c.ops->device_free(c.self, 0, q, 4 * MIB)); /* 4 MiB idle, 1 MiB in use */
    assert_int_equal(atomic_load(&c.shim->trims), 1);
    assert_int_equal(atomic_load(&c.shim->trimmed_to), 3 * MIB);
    assert_ok(c.ops->device_free(c.self, 0, p, MIB));
    cuda_close(&c);
}

static void pool_exhausted_gives_its_idle_memory_first(void **state) {
    struct cuda c = cuda_open(SHIM_FULL, "dev:1 mem=64MiB");
    void *p = NULL;

    (void)state;
    assert_ok(c.ops->device_synchronize(c.self, 0));
    fail_next(&c, TN_SIM_DEVICE_ALLOC, TN_ERR_DEVICE_MEMORY, 2);
    assert_status(c.ops->device_alloc(c.self, 0, 64, &p), TN_ERR_DEVICE_MEMORY); /* has none */
    assert_null(p);
    assert_int_equal(atomic_load(&c.shim->trims), 0);
    p = device_block(&c, 0, MIB);
    assert_ok(c.ops->device_free(c.self, 0, p, MIB));
    fail_next(&c, TN_SIM_DEVICE_ALLOC, TN_ERR_DEVICE_MEMORY, 2);
    p = device_block(&c, 0, 64);
    assert_int_equal(atomic_load(&c.shim->trims), 1);
    assert_int_equal(atomic_load(&c.shim->trimmed_to), 0);
    assert_ok(c.ops->device_free(c.self, 0, p, 64));
    cuda_close(&c);
}

static void block_that_no_stream_may_use_is_given_back(void **state) {
    struct cuda c = cuda_open(SHIM_FULL, "dev:1");
    void *p = NULL;

    (void)state;
    fail_next(&c, TN_SIM_STREAM_SYNCHRONIZE, TN_ERR_DRIVER, 999);
    assert_status(c.ops->device_alloc(c.self, 0, 64, &p), TN_ERR_DRIVER);
    assert_null(p);
    assert_int_equal(memory_at(&c, C0).live_bytes, 0);
    assert_int_equal(memory_at(&c, C0).allocations, 1);
    assert_status(c.ops->device_alloc(c.self, 0, 0, &p), TN_ERR_DRIVER);
    assert_int_equal(c.ops->last_code(c.self), 1);
    cuda_close(&c);
}

static void device_without_pools_allocates_all_the_same(void **state) {
    struct cuda c;
    tn_device_memory figures = {0, 0, 0, 0};
    tn_sim *sim;
    void *p;

    (void)state;
    assert_ok(tn_sim_create("dev:1 mem=64MiB", &sim));
    c.sim = sim;
    c.shim = cuda_shim_load(SHIM_FULL, tn_sim_driver(sim));
    c.shim->no_pools = true;
    c.driver = cuda_shim_open(SHIM_FULL);
    c.ops = tn_driver_table(c.driver);
    c.self = tn_driver_self(c.driver);
    p = device_block(&c, 0, MIB);
    assert_int_equal(atomic_load(&c.shim->allocs), 1);
    assert_int_equal(tn_sim_live_streams(sim), 0);
    assert_ok(c.ops->device_memory(c.self, 0, &figures));
    assert_int_equal(figures.total_bytes, 64 * MIB);
    assert_int_equal(figures.free_bytes, 63 * MIB);
    assert_int_equal(figures.pool_used_bytes, MIB);
    assert_int_equal(figures.pool_held_bytes, MIB);
    assert_ok(c.ops->device_free(c.self, 0, p, MIB));
    cuda_close(&c);
}

static void figures_are_ours_where_the_pool_has_none(void **state) {
    struct cuda c = cuda_open(SHIM_FULL, "dev:1 mem=64MiB");
    void *p = device_block(&c, 0, 8 * MIB);
    uint64_t used = 0;
    uint64_t held = 0;

    (void)state;
    c.shim->no_pool_figures = true;
    assert_true(tn__driver_readings(c.driver, 0, &used, &held));
    assert_int_equal(used, 8 * MIB);
    assert_int_equal(held, 8 * MIB);
    assert_ok(c.ops->device_free(c.self, 0, p, 8 * MIB));
    assert_int_equal(atomic_load(&c.shim->trims), 0);
    fail_next(&c, TN_SIM_DEVICE_MEMORY, TN_ERR_DRIVER, 999);
    assert_false(tn__driver_readings(c.driver, 0, &used, &held));
    cuda_close(&c);
}

static void pinned_memory_refused_is_a_payload_error(void **state) {
    struct cuda c = cuda_open(SHIM_FULL, "dev:1");
    tn_location pinned = tn_location_pinned();
    void *p = NULL;

    (void)state;
    assert_ok(tn_sim_set_state(c.sim, TN_SIM_NO_PINNED));
    assert_status(c.ops->pinned_alloc(c.self, 64, &p), TN_ERR_UNSUPPORTED);
    assert_status(tn_memory_alloc(c.driver, pinned, 64, &p), TN_ERR_PAYLOAD);
    assert_int_equal(tn_last_error()->native_code, 801);
    assert_ok(tn_sim_set_state(c.sim, TN_SIM_FAKE_PINNED));
    assert_status(tn_memory_alloc(c.driver, pinned, 64, &p), TN_ERR_PAYLOAD);
    assert_ok(tn_sim_set_state(c.sim, TN_SIM_NORMAL));
    fail_next(&c, TN_SIM_PINNED_ALLOC, TN_ERR_HOST_MEMORY, 2);
    assert_status(c.ops->pinned_alloc(c.self, 64, &p), TN_ERR_HOST_MEMORY); /* not the device's */
    assert_null(p);
    assert_ok(tn_memory_alloc(c.driver, pinned, 64, &p));
    assert_ok(tn_memory_free(c.driver, pinned, p, 64));
    assert_ok(tn_driver_trim_pinned(c.driver, NULL)); /* the pool keeps idle chunks */
    assert_int_equal(memory_at(&c, pinned).live_bytes, 0);
    cuda_close(&c);
}

static void copy_between_host_places_needs_no_device(void **state) {
    struct cuda c = cuda_open(SHIM_FULL, "dev:1");
    tn_stream s = test_stream(&c, 0, 0);
    char from[16] = {1, 2, 3};
    char to[16] = {0};

    (void)state;
    assert_ok(c.ops->copy(c.self, to, HOST, from, HOST, sizeof(to), NULL));
    assert_memory_equal(from, to, sizeof(to));
    assert_int_equal(atomic_load(&c.shim->retained), 0);
    memset(to, 0, sizeof(to));
    assert_ok(c.ops->copy(c.self, to, HOST, from, HOST, sizeof(to), s));
    assert_ok(c.ops->stream_synchronize(c.self, s));
    assert_memory_equal(from, to, sizeof(to));
    assert_status(c.ops->copy(c.self, to, tn_location_none(), from, HOST, 1, NULL), TN_ERR_DRIVER);
    assert_status(c.ops->copy(c.self, to, C1, from, HOST, 1, NULL), TN_ERR_DRIVER);
    assert_int_equal(c.ops->last_code(c.self), 101);
    assert_ok(tn_sim_stream_destroy(c.sim, s));
    cuda_close(&c);
}

/* A copy without a stream waits for itself only, and makes no stream each time. */
static void copy_without_stream_waits_for_no_other(void **state) {
    struct cuda c = cuda_open(SHIM_FULL, "dev:1");
    tn_stream busy = test_stream(&c, 0, 0);
    char bytes[64] = {7};
    void *p = device_block(&c, 0, 64);
    int i;

    (void)state;
    assert_ok(tn_sim_queue_delay(c.sim, busy, MS));
    for (i = 0; i < 100; i++)
        assert_ok(c.ops->copy(c.self, p, C0, bytes, HOST, 64, NULL));
    assert_false(tn_sim_stream_idle(c.sim, busy));
    assert_int_equal(tn_sim_now_ns(c.sim), 0);
    assert_int_equal(tn_sim_calls(c.sim, TN_SIM_STREAM_CREATE), 2); /* memory, copies */
    assert_int_equal(tn_sim_calls(c.sim, TN_SIM_DEVICE_SYNCHRONIZE), 0);
    fail_next(&c, TN_SIM_COPY, TN_ERR_DRIVER, 999);
    assert_status(c.ops->copy(c.self, p, C0, bytes, HOST, 64, NULL), TN_ERR_DRIVER);
    assert_ok(c.ops->copy(c.self, p, C0, bytes, HOST, 64, NULL));
    assert_int_equal(tn_sim_calls(c.sim, TN_SIM_STREAM_CREATE), 2);
    assert_ok(c.ops->device_free(c.self, 0, p, 64));
    assert_ok(tn_sim_stream_destroy(c.sim, busy));
    cuda_close(&c);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(pool_keeps_a_part_of_the_device_at_most),
    cmocka_unit_test(pool_exhausted_gives_its_idle_memory_first),
    cmocka_unit_test(block_that_no_stream_may_use_is_given_back),
    cmocka_unit_test(device_without_pools_allocates_all_the_same),
    cmocka_unit_test(figures_are_ours_where_the_pool_has_none),
    cmocka_unit_test(pinned_memory_refused_is_a_payload_error),
    cmocka_unit_test(copy_between_host_places_needs_no_device),
    cmocka_unit_test(copy_without_stream_waits_for_no_other),
};

TN_TEST_MAIN("cuda.memory", tests)
