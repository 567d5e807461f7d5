/* SPDX-License-Identifier: MIT */
/* Driver contract: device and pinned memory, its figures, where a pointer is. */
#include "conf.h"

static void device_block_keeps_its_bytes(void **state) {
    struct conf *c = conf_of(state);
    static const uint64_t sizes[] = {1, 7, 256, 4097, 1 << 20};
    unsigned char back[1 << 20];
    size_t i;

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        void *p = conf_device(c, 0, sizes[i]);
        unsigned char *bytes = conf_pattern((uint32_t)i, sizes[i]);

        conf_put(c, p, 0, bytes, sizes[i]);
        conf_get(c, back, p, 0, sizes[i]);
        conf_check(back, (uint32_t)i, sizes[i]);
        free(bytes);
        assert_ok(c->ops->device_free(c->self, 0, p, sizes[i]));
    }
}

static void device_blocks_do_not_overlap(void **state) {
    enum { COUNT = 50, BYTES = 1000 };
    struct conf *c = conf_of(state);
    unsigned char back[BYTES];
    void *p[COUNT];
    int round;
    int i;

    for (i = 0; i < COUNT; i++)
        p[i] = conf_device(c, 0, BYTES);
    for (round = 0; round < 2; round++) {
        for (i = 0; i < COUNT; i++) {
            unsigned char *bytes = conf_pattern((uint32_t)i, BYTES);

            conf_put(c, p[i], 0, bytes, BYTES);
            free(bytes);
        }
        for (i = 0; i < COUNT; i++) {
            conf_get(c, back, p[i], 0, BYTES);
            conf_check(back, (uint32_t)i, BYTES);
        }
        for (i = 0; i < COUNT; i += 2) {
            assert_ok(c->ops->device_free(c->self, 0, p[i], BYTES));
            p[i] = conf_device(c, 0, BYTES);
        }
    }
    for (i = 0; i < COUNT; i++)
        assert_ok(c->ops->device_free(c->self, 0, p[i], BYTES));
}

static void device_block_beyond_all_memory_is_device_memory(void **state) {
    struct conf *c = conf_of(state);
    void *p = c;

    assert_status(c->ops->device_alloc(c->self, 0, UINT64_C(1) << 50, &p), TN_ERR_DEVICE_MEMORY);
    assert_ptr_equal(p, c);
    if (c->ops->last_code != NULL)
        assert_int_not_equal(c->ops->last_code(c->self), 0);
    p = conf_device(c, 0, 64); /* the failure does not stick */
    assert_ok(c->ops->device_free(c->self, 0, p, 64));
}

static const char *allocate_and_free(int index, void *argument) {
    const struct conf *c = argument;
    unsigned char back[512];
    int i;

    for (i = 0; i < 50; i++) {
        unsigned char mine[512];
        void *p;

        memset(mine, index * 50 + i, sizeof(mine));
        TN_WORKER_STATUS(c->ops->device_alloc(c->self, 0, sizeof(mine), &p), TN_OK);
        TN_WORKER_STATUS(c->ops->copy(c->self, p, tn_location_cuda(0), mine, tn_location_pageable(),
                                      sizeof(mine), NULL),
                         TN_OK);
        TN_WORKER_STATUS(c->ops->copy(c->self, back, tn_location_pageable(), p, tn_location_cuda(0),
                                      sizeof(back), NULL),
                         TN_OK);
        TN_WORKER_CHECK(memcmp(mine, back, sizeof(mine)) == 0);
        TN_WORKER_STATUS(c->ops->device_free(c->self, 0, p, sizeof(mine)), TN_OK);
    }
    return NULL;
}

static void device_blocks_from_many_threads(void **state) {
    struct conf *c = conf_of(state);

    assert_null_text(tn_test_workers_run(4, allocate_and_free, c));
}

static void pinned_block_is_host_memory(void **state) {
    struct conf *c = conf_of(state);
    unsigned char *p;

    if (!conf_can_pin(c))
        TN_SKIP("the driver cannot pin");
    p = conf_pinned(c, 100000);
    memset(p, 0x5a, 100000);
    assert_int_equal(p[99999], 0x5a);
    assert_ok(c->ops->pinned_free(c->self, p, 100000));
}

static void pointer_tells_its_location(void **state) {
    struct conf *c = conf_of(state);
    tn_location at = {99, 99};
    unsigned char *pinned;
    uint32_t i;

    if (c->ops->pointer_location == NULL)
        TN_SKIP("the driver cannot tell");
    for (i = 0; i < c->devices; i++) {
        char *p = conf_device(c, i, 4096);

        assert_ok(c->ops->pointer_location(c->self, p + 100, &at));
        assert_int_equal(at.kind, TN_LOCATION_CUDA);
        assert_int_equal(at.index, i);
        assert_ok(c->ops->device_free(c->self, i, p, 4096));
    }
    assert_ok(c->ops->pointer_location(c->self, &i, &at));
    assert_true(at.kind == TN_LOCATION_NONE || at.kind == TN_LOCATION_PAGEABLE);
    if (!conf_can_pin(c))
        return;
    pinned = conf_pinned(c, 4096);
    assert_ok(c->ops->pointer_location(c->self, pinned, &at));
    assert_int_equal(at.kind, TN_LOCATION_PINNED);
    assert_ok(c->ops->pinned_free(c->self, pinned, 4096));
}

static void figures_agree_with_each_other(void **state) {
    struct conf *c = conf_of(state);
    const uint64_t bytes = 8 << 20;
    tn_device_memory before;
    tn_device_memory during;
    tn_device_memory after;
    void *p;

    if (c->ops->device_memory == NULL)
        TN_SKIP("the driver has no figures");
    assert_ok(c->ops->device_memory(c->self, 0, &before));
    assert_true(before.total_bytes > 0 && before.free_bytes <= before.total_bytes);
    p = conf_device(c, 0, bytes);
    assert_ok(c->ops->device_memory(c->self, 0, &during));
    assert_true(during.pool_used_bytes >= before.pool_used_bytes + bytes);
    assert_true(during.pool_held_bytes >= during.pool_used_bytes);
    assert_ok(c->ops->device_free(c->self, 0, p, bytes));
    assert_ok(c->ops->device_synchronize(c->self, 0));
    assert_ok(c->ops->device_memory(c->self, 0, &after));
    assert_int_equal(after.pool_used_bytes, before.pool_used_bytes);
    assert_int_equal(after.total_bytes, before.total_bytes);
}

static void pool_trim_keeps_what_is_in_use(void **state) {
    struct conf *c = conf_of(state);
    const uint64_t bytes = 8 << 20;
    unsigned char *pattern = conf_pattern(3, bytes);
    unsigned char *back = malloc(bytes);
    tn_device_memory figures;
    void *p;

    if (c->ops->pool_trim == NULL || c->ops->device_memory == NULL) {
        free(pattern);
        free(back);
        TN_SKIP("the driver cannot trim, or has no figures");
    }
    assert_non_null(back);
    p = conf_device(c, 0, bytes);
    conf_put(c, p, 0, pattern, bytes);
    assert_ok(c->ops->device_free(c->self, 0, conf_device(c, 0, bytes), bytes));
    assert_ok(c->ops->device_synchronize(c->self, 0));
    assert_ok(c->ops->pool_trim(c->self, 0, 0));
    assert_ok(c->ops->device_memory(c->self, 0, &figures));
    assert_true(figures.pool_used_bytes >= bytes);
    assert_true(figures.pool_held_bytes >= figures.pool_used_bytes);
    conf_get(c, back, p, 0, bytes);
    conf_check(back, 3, bytes);
    assert_ok(c->ops->device_free(c->self, 0, p, bytes));
    assert_ok(c->ops->device_synchronize(c->self, 0));
    assert_ok(c->ops->pool_trim(c->self, 0, UINT64_MAX)); /* keeps everything */
    assert_ok(c->ops->pool_trim(c->self, 0, 0));
    assert_ok(c->ops->device_memory(c->self, 0, &figures));
    assert_int_equal(figures.pool_used_bytes, 0);
    assert_int_equal(figures.pool_held_bytes, 0);
    assert_int_not_equal(c->ops->pool_trim(c->self, c->devices, 0), TN_OK);
    free(pattern);
    free(back);
}

static const struct CMUnitTest tests[] = {
    CONF_TEST(device_block_keeps_its_bytes),
    CONF_TEST(device_blocks_do_not_overlap),
    CONF_TEST(device_block_beyond_all_memory_is_device_memory),
    CONF_TEST(device_blocks_from_many_threads),
    CONF_TEST(pinned_block_is_host_memory),
    CONF_TEST(pointer_tells_its_location),
    CONF_TEST(figures_agree_with_each_other),
    CONF_TEST(pool_trim_keeps_what_is_in_use),
};

TN_TEST_MAIN("conformance.memory", tests)
