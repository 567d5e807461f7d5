/* SPDX-License-Identifier: MIT */
/* src/driver/driver_memory.c: memory at each location, verified pinning (M31), copies, readings
 * (M92). */
#include "driver_fake.h"

#include <tenure/sim.h>

#include "driver/driver_internal.h"

static const tn_location P = {TN_LOCATION_PAGEABLE, 0};
static const tn_location N = {TN_LOCATION_PINNED, 0};
static const tn_location C0 = {TN_LOCATION_CUDA, 0};

static tn_driver_ops ops;

static tn_driver *open_fake(void) {
    ops = fake_ops();
    return fake_driver(&ops);
}

static void pageable_memory_needs_no_driver(void **state) {
    void *p = NULL;

    (void)state;
    assert_ok(tn_memory_alloc(NULL, P, 1000, &p));
    assert_int_equal((uintptr_t)p % 64, 0);
    memset(p, 1, 1000);
    assert_ok(tn_memory_free(NULL, P, p, 1000));
    tn__fault_alloc(1);
    assert_status(tn_memory_alloc(NULL, P, 1000, &p), TN_ERR_HOST_MEMORY);
    tn__fault_alloc(0);
    assert_int_equal(tn_last_error()->at.kind, TN_LOCATION_PAGEABLE);
}

static void memory_of_a_driver_comes_from_its_table(void **state) {
    tn_driver *d = open_fake();
    void *p = NULL;

    (void)state;
    assert_ok(tn_memory_alloc(d, C0, 8, &p));
    assert_ok(tn_memory_free(d, C0, p, 8));
    assert_ok(tn_memory_alloc(d, N, 8, &p));
    assert_ok(tn_memory_free(d, N, p, 8));
    assert_int_equal(fake.calls, 3); /* the pinned block is kept */
    tn_driver_destroy(d);
    assert_int_equal(fake.calls, 4);
}

static void memory_of_no_bytes_is_null_and_no_call(void **state) {
    tn_driver *d = open_fake();
    void *p = d;

    (void)state;
    assert_ok(tn_memory_alloc(d, C0, 0, &p));
    assert_null(p);
    assert_ok(tn_memory_free(d, C0, NULL, 0));
    assert_int_equal(fake.calls, 0);
    tn_driver_destroy(d);
}

static void memory_asked_for_wrongly_is_refused(void **state) {
    tn_driver *d = open_fake();
    void *p = NULL;

    (void)state;
    assert_status(tn_memory_alloc(d, P, 8, NULL), TN_ERR_KIND);
    assert_status(tn_memory_alloc(d, tn_location_none(), 8, &p), TN_ERR_KIND);
    assert_status(tn_memory_alloc(d, tn_location_cuda(2), 8, &p), TN_ERR_VALUE);
    assert_status(tn_memory_alloc(NULL, C0, 8, &p), TN_ERR_VALUE);
    assert_status(tn_memory_alloc(d, P, (uint64_t)INT64_MAX + 1, &p), TN_ERR_VALUE);
    assert_status(tn_memory_free(d, tn_location_none(), d, 8), TN_ERR_KIND);
    assert_status(tn_memory_free(NULL, C0, d, 8), TN_ERR_KIND);
    assert_null(p);
    tn_driver_destroy(d);
}

static void pinned_memory_that_cannot_be_had_is_a_payload_error(void **state) {
    static const tn_status refusals[] = {TN_ERR_DRIVER, TN_ERR_HOST_MEMORY, TN_ERR_UNSUPPORTED,
                                         TN_ERR_DEVICE_MEMORY};
    tn_driver *d = open_fake();
    void *p = NULL;
    size_t i;

    (void)state;
    assert_status(tn_memory_alloc(NULL, N, 8, &p), TN_ERR_PAYLOAD);
    for (i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        fake.status = refusals[i];
        fake.code = 304;
        assert_status(tn_memory_alloc(d, N, 8, &p), TN_ERR_PAYLOAD);
        assert_int_equal(tn_last_error()->status, TN_ERR_PAYLOAD);
        assert_int_equal(tn_last_error()->native_code, 304);
        assert_int_equal(tn_last_error()->at.kind, TN_LOCATION_PINNED);
    }
    fake.status = TN_ERR_DEVICE_LOST;
    assert_status(tn_memory_alloc(d, N, 8, &p), TN_ERR_DEVICE_LOST);
    fake.status = TN_ERR_CLOSED;
    assert_status(tn_memory_alloc(d, N, 8, &p), TN_ERR_DRIVER);
    assert_null(p);
    tn_driver_destroy(d);
}

static void pinned_memory_of_a_driver_that_cannot_pin_is_no_call(void **state) {
    tn_driver *d = open_fake();
    void *p = NULL;

    (void)state;
    fake.capabilities = TN_DRIVER_NO_PINNED;
    assert_status(tn_memory_alloc(d, N, 8, &p), TN_ERR_PAYLOAD);
    assert_int_equal(fake.calls, 0);
    tn_driver_destroy(d);
}

static void pinned_memory_is_verified_where_that_is_possible(void **state) {
    tn_driver *d = open_fake();
    void *p = NULL;

    (void)state;
    fake.pointer = P;
    assert_status(tn_memory_alloc(d, N, 8, &p), TN_ERR_PAYLOAD);
    assert_null(p);
    assert_int_equal(fake.frees, 1);
    fake.pointer_status = TN_ERR_DRIVER;
    fake.code = 12;
    assert_status(tn_memory_alloc(d, N, 8, &p), TN_ERR_PAYLOAD);
    assert_int_equal(tn_last_error()->native_code, 12);
    assert_int_equal(fake.frees, 2);
    tn_driver_destroy(d);
    ops.pointer_location = NULL;
    ops.capabilities = NULL;
    d = fake_driver(&ops);
    fake.pointer = P;
    assert_ok(tn_memory_alloc(d, N, 8, &p));
    assert_ok(tn_memory_free(d, N, p, 8));
    tn_driver_destroy(d);
}

/* MC179, on the simulator. */
static void pinned_memory_in_disguise_is_given_back(void **state) {
    tn_sim_memory f = {.size = sizeof(f)};
    tn_sim *sim;
    void *p = NULL;

    (void)state;
    assert_ok(tn_sim_create(NULL, &sim));
    assert_ok(tn_sim_set_state(sim, TN_SIM_FAKE_PINNED));
    assert_status(tn_memory_alloc(tn_sim_driver(sim), N, 64, &p), TN_ERR_PAYLOAD);
    assert_ok(tn_sim_read_memory(sim, N, &f));
    assert_int_equal(f.live_bytes, 0);
    assert_int_equal(f.allocations, 1);
    assert_ok(tn_sim_set_state(sim, TN_SIM_NO_PINNED));
    assert_status(tn_memory_alloc(tn_sim_driver(sim), N, 64, &p), TN_ERR_PAYLOAD);
    assert_int_equal(tn_sim_calls(sim, TN_SIM_PINNED_ALLOC), 1);
    tn_sim_destroy(sim);
}

static void memory_freed_after_the_driver_is_gone_counts_as_freed(void **state) {
    tn_driver *d = open_fake();
    void *p;
    void *q;

    (void)state;
    assert_ok(tn_memory_alloc(d, C0, 8, &p));
    assert_ok(tn_memory_alloc(d, N, 8, &q));
    fake.status = TN_ERR_CLOSED;
    assert_ok(tn_memory_free(d, C0, p, 8));
    assert_ok(tn_memory_free(d, N, q, 8));
    fake.status = TN_OK;
    assert_ok(tn_memory_alloc(d, C0, 8, &p));
    fake.status = TN_ERR_DRIVER;
    assert_status(tn_memory_free(d, C0, p, 8), TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->at.kind, TN_LOCATION_CUDA);
    tn_driver_destroy(d);
}

static void copy_between_hosts_is_no_call(void **state) {
    tn_driver *d = open_fake();
    char to[8] = "";

    (void)state;
    assert_ok(tn__driver_copy(d, to, P, "1234567", N, 8, NULL));
    assert_string_equal(to, "1234567");
    assert_ok(tn__driver_copy(NULL, to, P, "7654321", P, 8, NULL));
    assert_string_equal(to, "7654321");
    assert_ok(tn__driver_copy(d, NULL, C0, NULL, P, 0, NULL));
    assert_int_equal(fake.calls, 0);
    tn_driver_destroy(d);
}

static void copy_with_a_device_is_the_tables(void **state) {
    tn_driver *d = open_fake();
    char to[8] = "";

    (void)state;
    assert_ok(tn__driver_copy(d, to, C0, "1234567", P, 8, NULL));
    assert_string_equal(to, "1234567");
    fake.status = TN_ERR_CLOSED;
    fake.code = 709;
    assert_status(tn__driver_copy(d, to, P, to, C0, 8, NULL), TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->native_code, 709);
    assert_int_equal(tn_last_error()->at.kind, TN_LOCATION_CUDA);
    assert_status(tn__driver_copy(NULL, to, P, to, C0, 8, NULL), TN_ERR_UNSUPPORTED);
    tn_driver_destroy(d);
}

static void readings_are_had_or_not_and_never_fail(void **state) {
    tn_driver *d = open_fake();
    uint64_t used = 1;
    uint64_t held = 2;

    (void)state;
    assert_false(tn__driver_readings(NULL, 0, &used, &held));
    assert_false(tn__driver_readings(d, 2, &used, &held));
    fake.status = TN_ERR_DRIVER;
    assert_false(tn__driver_readings(d, 0, &used, &held));
    assert_int_equal(used, 1);
    fake.status = TN_OK;
    assert_true(tn__driver_readings(d, 1, &used, &held));
    assert_int_equal(used, 30);
    assert_int_equal(held, 40);
    tn_driver_destroy(d);
    ops.device_memory = NULL;
    d = fake_driver(&ops);
    assert_false(tn__driver_readings(d, 0, &used, &held));
    tn_driver_destroy(d);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(pageable_memory_needs_no_driver),
    cmocka_unit_test(memory_of_a_driver_comes_from_its_table),
    cmocka_unit_test(memory_of_no_bytes_is_null_and_no_call),
    cmocka_unit_test(memory_asked_for_wrongly_is_refused),
    cmocka_unit_test(pinned_memory_that_cannot_be_had_is_a_payload_error),
    cmocka_unit_test(pinned_memory_of_a_driver_that_cannot_pin_is_no_call),
    cmocka_unit_test(pinned_memory_is_verified_where_that_is_possible),
    cmocka_unit_test(pinned_memory_in_disguise_is_given_back),
    cmocka_unit_test(memory_freed_after_the_driver_is_gone_counts_as_freed),
    cmocka_unit_test(copy_between_hosts_is_no_call),
    cmocka_unit_test(copy_with_a_device_is_the_tables),
    cmocka_unit_test(readings_are_had_or_not_and_never_fail),
};

TN_TEST_MAIN("unit.driver_memory", tests)
