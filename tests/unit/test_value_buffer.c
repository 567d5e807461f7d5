/* SPDX-License-Identifier: MIT */
/* src/value/buffer.c: segments, layout, measures, and what a failing allocation leaves behind. */
#include "tn_test.h"

#include <tenure/sim.h>

#include "value_fake.h"

#define SIZES(...)                                                                                 \
    ((const uint64_t[]){__VA_ARGS__}), sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)

static tn_buffer *make(tn_driver *driver, tn_location at, const uint64_t *sizes, size_t count) {
    tn_buffer *buffer = NULL;
    assert_ok(tn_buffer_create(driver, at, sizes, count, &buffer));
    return buffer;
}

static void check_measure(tn_buffer *buffer, uint64_t bytes, size_t storages) {
    tn__measured m;
    assert_ok(tn__measure(tn_buffer_payload(buffer), &m));
    assert_int_equal(m.logical_bytes, bytes);
    assert_int_equal(m.storage_bytes, bytes); /* no padding, whatever the sizes */
    assert_int_equal(m.storage_count, storages);
    assert_true(m.neutral || tn_location_equal(m.at, tn_buffer_location(buffer)));
    tn__measured_fini(&m);
}

static void buffer_create_checks_arguments(void **state) {
    const uint64_t sizes[] = {INT64_MAX, 1};
    tn_buffer *buffer = NULL;
    (void)state;
    assert_status(tn_buffer_create(NULL, tn_location_pageable(), NULL, 1, &buffer), TN_ERR_KIND);
    assert_status(tn_buffer_create(NULL, tn_location_pageable(), sizes, 1, NULL), TN_ERR_KIND);
    assert_status(tn_buffer_create(NULL, tn_location_pageable(), sizes, 0, &buffer), TN_ERR_VALUE);
    assert_status(tn_buffer_create(NULL, tn_location_none(), sizes + 1, 1, &buffer), TN_ERR_KIND);
    assert_status(tn_buffer_create(NULL, tn_location_cuda(128), sizes + 1, 1, &buffer),
                  TN_ERR_VALUE);
    assert_status(tn_buffer_create(NULL, tn_location_cuda(0), sizes + 1, 1, &buffer), TN_ERR_VALUE);
    assert_status(tn_buffer_create(NULL, tn_location_pageable(), sizes, 2, &buffer), TN_ERR_VALUE);
    assert_status(tn_buffer_create(NULL, tn_location_pinned(), sizes + 1, 1, &buffer),
                  TN_ERR_PAYLOAD);
    assert_null(buffer);
    assert_int_equal(tn__alloc_live(), 0);
}

static void buffer_of_aligned_segments_is_one_allocation(void **state) {
    tn_buffer *buffer =
        make(NULL, (tn_location){TN_LOCATION_PAGEABLE, 7}, SIZES(512, 0, 256, 100, 0));
    (void)state;
    assert_int_equal(tn_buffer_segment_count(buffer), 5);
    assert_true(tn_location_equal(tn_buffer_location(buffer), tn_location_pageable()));
    assert_int_equal(tn_buffer_location(buffer).index, 0);
    char *base = tn_buffer_segment(buffer, 0).data;
    assert_null(tn_buffer_segment(buffer, 1).data);
    assert_ptr_equal(tn_buffer_segment(buffer, 2).data, base + 512);
    assert_ptr_equal(tn_buffer_segment(buffer, 3).data, base + 768);
    assert_int_equal(tn_buffer_segment(buffer, 3).bytes, 100);
    assert_null(tn_buffer_segment(buffer, 4).data);
    assert_null(tn_buffer_segment(buffer, 5).data);
    assert_int_equal(tn_buffer_segment(buffer, 5).bytes, 0);
    memset(base, 1, 868);
    check_measure(buffer, 868, 1);
    tn_buffer_destroy(buffer);
    assert_int_equal(tn__alloc_live(), 0);
}

static void buffer_of_odd_segments_has_one_allocation_each(void **state) {
    tn_buffer *buffer = make(NULL, tn_location_pageable(), SIZES(100, 256, 0, 9));
    (void)state;
    for (size_t i = 0; i < 4; ++i) {
        tn_segment s = tn_buffer_segment(buffer, i);
        assert_int_equal((uintptr_t)s.data % 64, 0);
        assert_int_equal(s.data == NULL, s.bytes == 0);
        if (s.data)
            memset(s.data, 1, s.bytes);
    }
    check_measure(buffer, 365, 3);
    tn_buffer_destroy(buffer);
    assert_int_equal(tn__alloc_live(), 0);
}

static void buffer_without_bytes_is_neutral(void **state) {
    tn_buffer *buffer = make(NULL, tn_location_pageable(), SIZES(0, 0));
    tn_payload copy;
    (void)state;
    check_measure(buffer, 0, 0);
    assert_ok(
        tn__value_copy(NULL, tn_buffer_payload(buffer), tn_location_pageable(), NULL, NULL, &copy));
    check_measure(copy.data, 0, 0);
    tn_payload_destroy(copy);
    tn_buffer_destroy(buffer);
    assert_int_equal(tn__alloc_live(), 0);
}

static void buffer_functions_take_null(void **state) {
    (void)state;
    tn_buffer_destroy(NULL);
    assert_int_equal(tn_buffer_segment_count(NULL), 0);
    assert_null(tn_buffer_segment(NULL, 0).data);
    assert_int_equal(tn_buffer_location(NULL).kind, TN_LOCATION_NONE);
    assert_null(tn_buffer_payload(NULL).data);
    assert_ptr_equal(tn_buffer_payload(NULL).type, tn_buffer_type());
    assert_true(tn__type_valid(tn_buffer_type()));
}

/* F1: each failing allocation in turn leaves nothing, and the same call succeeds afterwards. */
static void buffer_create_survives_each_failing_allocation(void **state) {
    uint64_t n = 0;
    (void)state;
    for (;;) {
        tn_buffer *buffer = NULL;
        tn__fault_alloc(++n);
        tn_status status =
            tn_buffer_create(NULL, tn_location_pageable(), SIZES(100, 9, 256), &buffer);
        if (!tn__fault_alloc_fired()) {
            assert_ok(status);
            tn_buffer_destroy(buffer);
            break;
        }
        assert_status(status, TN_ERR_HOST_MEMORY);
        assert_null(buffer);
        assert_int_equal(tn__alloc_live(), 0);
    }
    tn__fault_alloc(0);
    assert_int_equal(n, 5); /* the buffer and three segments */
    assert_int_equal(tn__alloc_live(), 0);
}

static uint64_t live_bytes(tn_sim *sim, tn_location at) {
    tn_sim_memory memory = {.size = sizeof memory};
    assert_ok(tn_driver_trim_pinned(tn_sim_driver(sim), NULL));
    assert_ok(tn_sim_read_memory(sim, at, &memory));
    return memory.live_bytes;
}

static void buffer_is_allocated_where_it_was_asked_for(void **state) {
    const tn_location places[] = {tn_location_pinned(), tn_location_cuda(1)};
    tn_sim *sim = NULL;
    (void)state;
    assert_ok(tn_sim_create("dev:2 mem=1MiB", &sim));
    for (size_t i = 0; i < 2; ++i) {
        tn_buffer *buffer = make(tn_sim_driver(sim), places[i], SIZES(4096, 100, 8192));
        assert_true(live_bytes(sim, places[i]) >= 12388);
        check_measure(buffer, 12388, 3);
        tn_buffer_destroy(buffer);
        assert_int_equal(live_bytes(sim, places[i]), 0);
    }
    tn_sim_destroy(sim);
    assert_int_equal(tn__alloc_live(), 0);
}

static void buffer_create_reports_the_devices_memory(void **state) {
    tn_sim *sim = NULL;
    tn_buffer *buffer = NULL;
    (void)state;
    assert_ok(tn_sim_create("dev:1 mem=64KiB", &sim));
    assert_status(
        tn_buffer_create(tn_sim_driver(sim), tn_location_cuda(0), SIZES(4000, 1 << 20), &buffer),
        TN_ERR_DEVICE_MEMORY);
    assert_int_equal(live_bytes(sim, tn_location_cuda(0)), 0);
    assert_ok(tn_sim_set_state(sim, TN_SIM_FAKE_PINNED));
    assert_status(tn_buffer_create(tn_sim_driver(sim), tn_location_pinned(), SIZES(4000), &buffer),
                  TN_ERR_PAYLOAD);
    assert_ok(tn_sim_set_state(sim, TN_SIM_NO_PINNED));
    assert_status(tn_buffer_create(tn_sim_driver(sim), tn_location_pinned(), SIZES(4000), &buffer),
                  TN_ERR_PAYLOAD);
    assert_null(buffer);
    tn_sim_destroy(sim);
    assert_int_equal(tn__alloc_live(), 0);
}

/* A clean-up that fails too is attached (M222). */
static void buffer_create_attaches_a_failing_free(void **state) {
    tn_sim *sim = NULL;
    tn_buffer *buffer = NULL;
    tn_sim_fault fault = TN_SIM_FAULT_INIT;
    (void)state;
    assert_ok(tn_sim_create("dev:1 mem=64KiB", &sim));
    fault.entry = TN_SIM_DEVICE_FREE;
    fault.status = TN_ERR_DRIVER;
    fault.native_code = 719;
    assert_ok(tn_sim_fault_arm(sim, &fault));
    assert_status(
        tn_buffer_create(tn_sim_driver(sim), tn_location_cuda(0), SIZES(4000, 1 << 20), &buffer),
        TN_ERR_DEVICE_MEMORY);
    assert_int_equal(tn_last_error()->cleanup_status, TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->cleanup_native_code, 719);
    tn_sim_destroy(sim);
    assert_int_equal(tn__alloc_live(), 0);
}

/* Destroying is no failing call. */
static void buffer_destroy_keeps_the_last_error(void **state) {
    tn_sim *sim = NULL;
    tn_sim_fault fault = TN_SIM_FAULT_INIT;
    (void)state;
    assert_ok(tn_sim_create("dev:1 mem=64KiB", &sim));
    tn_buffer *buffer = make(tn_sim_driver(sim), tn_location_cuda(0), SIZES(4000));
    (void)tn__fail(TN_ERR_STALE, "an older failure");
    fault.entry = TN_SIM_DEVICE_FREE;
    fault.status = TN_ERR_DRIVER;
    assert_ok(tn_sim_fault_arm(sim, &fault));
    tn_buffer_destroy(buffer);
    assert_int_equal(tn_sim_fault_clear(sim), 1);
    assert_string_equal(tn_last_error()->message, "an older failure");
    tn_sim_destroy(sim);
    assert_int_equal(tn__alloc_live(), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(buffer_create_checks_arguments),
    cmocka_unit_test(buffer_of_aligned_segments_is_one_allocation),
    cmocka_unit_test(buffer_of_odd_segments_has_one_allocation_each),
    cmocka_unit_test(buffer_without_bytes_is_neutral),
    cmocka_unit_test(buffer_functions_take_null),
    cmocka_unit_test(buffer_create_survives_each_failing_allocation),
    cmocka_unit_test(buffer_is_allocated_where_it_was_asked_for),
    cmocka_unit_test(buffer_create_reports_the_devices_memory),
    cmocka_unit_test(buffer_create_attaches_a_failing_free),
    cmocka_unit_test(buffer_destroy_keeps_the_last_error),
};

TN_TEST_MAIN("unit.value_buffer", tests)
