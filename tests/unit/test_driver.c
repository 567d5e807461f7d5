/* SPDX-License-Identifier: MIT */
/* src/driver/driver.c: tables that are refused, devices, locations and streams (M16), statuses with
 * their native codes (D1, D2). */
#include "driver_fake.h"

#include "driver/driver_internal.h"

static tn_driver_ops table;

/* A fresh fake driver over `table`. */
static tn_driver *open_fake(void) {
    table = fake_ops();
    return fake_driver(&table);
}

static void table_complete_makes_a_driver(void **state) {
    tn_driver *d = open_fake();

    (void)state;
    assert_string_equal(tn_driver_name(d), "fake");
    assert_ptr_equal(tn_driver_table(d), &table);
    assert_int_equal(tn__driver_devices(d), 2);
    tn_driver_destroy(d);
}

static void driver_null_is_a_machine_without_devices(void **state) {
    (void)state;
    assert_string_equal(tn_driver_name(NULL), "none");
    assert_null(tn_driver_table(NULL));
    assert_null(tn_driver_self(NULL));
    assert_int_equal(tn__driver_devices(NULL), 0);
    tn_driver_destroy(NULL);
}

static void table_of_another_form_is_refused(void **state) {
    tn_driver *d = (tn_driver *)&d;
    tn_driver_ops ops = fake_ops();

    (void)state;
    assert_status(tn_driver_create(NULL, NULL, &d), TN_ERR_KIND);
    assert_status(tn_driver_create(&ops, NULL, NULL), TN_ERR_KIND);
    ops.size = 4;
    assert_status(tn_driver_create(&ops, NULL, &d), TN_ERR_KIND);
    ops.size = sizeof(ops) - 8;
    assert_status(tn_driver_create(&ops, NULL, &d), TN_ERR_KIND);
    ops.abi = 2;
    assert_status(tn_driver_create(&ops, NULL, &d), TN_ERR_UNSUPPORTED);
    assert_ptr_equal(d, &d);
}

static void table_without_a_required_entry_is_refused(void **state) {
    /* Each pointer of the table in turn; the optional ones are listed. */
    const size_t optional[] = {
        offsetof(tn_driver_ops, capabilities),     offsetof(tn_driver_ops, last_code),
        offsetof(tn_driver_ops, host_function),    offsetof(tn_driver_ops, device_memory),
        offsetof(tn_driver_ops, pointer_location), offsetof(tn_driver_ops, pool_trim),
    };
    size_t at;

    (void)state;
    for (at = offsetof(tn_driver_ops, name); at < sizeof(tn_driver_ops); at += sizeof(void *)) {
        tn_driver_ops ops = fake_ops();
        tn_driver *d = NULL;
        tn_status expected = TN_ERR_KIND;
        size_t i;

        for (i = 0; i < sizeof(optional) / sizeof(optional[0]); i++)
            if (optional[i] == at)
                expected = TN_OK;
        memset((char *)&ops + at, 0, sizeof(void *));
        assert_status(tn_driver_create(&ops, NULL, &d), expected);
        tn_driver_destroy(d);
    }
}

static void driver_without_memory_is_not_made(void **state) {
    tn_driver_ops ops = fake_ops();
    tn_driver *d;

    (void)state;
    tn__fault_alloc(1);
    assert_status(tn_driver_create(&ops, NULL, &d), TN_ERR_HOST_MEMORY);
    tn__fault_alloc(0);
}

static void driver_that_cannot_count_has_no_devices(void **state) {
    tn_driver_ops ops = fake_ops();
    tn_driver *d;

    (void)state;
    fake.status = TN_ERR_DRIVER;
    assert_ok(tn_driver_create(&ops, NULL, &d));
    fake.status = TN_OK;
    assert_int_equal(tn__driver_devices(d), 0);
    tn_driver_destroy(d);
    fake.devices = 1000;
    assert_ok(tn_driver_create(&ops, NULL, &d));
    fake.devices = 2;
    assert_int_equal(tn__driver_devices(d), 128);
    tn_driver_destroy(d);
}

static void cuda_in_a_build_without_it_says_why(void **state) {
    tn_driver *d = NULL;
    tn_status status;

    (void)state;
    assert_status(tn_driver_open_cuda(NULL), TN_ERR_KIND);
    status = tn_driver_open_cuda(&d);
    if (status == TN_OK) {
        assert_string_equal(tn_driver_why(), "");
        tn_driver_destroy(d);
        return;
    }
    assert_status(status, TN_ERR_UNSUPPORTED);
    assert_null(d);
    assert_true(strlen(tn_driver_why()) > 0);
    assert_memory_equal(tn_last_error()->message, tn_driver_why(), strlen(tn_driver_why()));
}

static void location_exists_or_is_refused(void **state) {
    tn_driver *d = open_fake();
    tn_location at = tn_location_none();
    tn_location host = {TN_LOCATION_PINNED, 7};

    (void)state;
    assert_ok(tn__driver_check_location(d, tn_location_cuda(1), &at));
    assert_int_equal(at.index, 1);
    assert_ok(tn__driver_check_location(NULL, host, &at));
    assert_int_equal(at.kind, TN_LOCATION_PINNED);
    assert_int_equal(at.index, 0);
    assert_status(tn__driver_check_location(d, tn_location_cuda(2), &at), TN_ERR_VALUE);
    assert_int_equal(tn_last_error()->at.index, 2);
    assert_int_equal(at.kind, TN_LOCATION_PINNED);
    assert_status(tn__driver_check_location(NULL, tn_location_cuda(0), &at), TN_ERR_VALUE);
    assert_status(tn__driver_check_location(d, tn_location_cuda(128), &at), TN_ERR_VALUE);
    assert_status(tn__driver_check_location(d, tn_location_none(), &at), TN_ERR_KIND);
    tn_driver_destroy(d);
}

static void stream_fits_its_device_or_is_refused(void **state) {
    tn_driver *d = open_fake();
    tn_stream s = (tn_stream)(void *)&fake;
    tn_stream_info info = {9, 9, 9};

    (void)state;
    fake.info = (tn_stream_info){1, 0, 77};
    assert_ok(tn__driver_check_stream(d, s, 1, &info));
    assert_int_equal(info.context, 77);
    assert_status(tn__driver_check_stream(d, s, 0, &info), TN_ERR_VALUE);
    assert_int_equal(tn_last_error()->at.kind, TN_LOCATION_CUDA);
    fake.info.capturing = 1;
    assert_status(tn__driver_check_stream(d, s, 1, &info), TN_ERR_VALUE);
    assert_status(tn__driver_check_stream(d, NULL, 1, &info), TN_ERR_KIND);
    assert_status(tn__driver_check_stream(NULL, s, 1, &info), TN_ERR_KIND);
    assert_status(tn__driver_check_stream(d, TN_STREAM_PER_THREAD, 1, &info), TN_ERR_VALUE);
    fake.status = TN_ERR_KIND;
    assert_status(tn__driver_check_stream(d, s, 1, &info), TN_ERR_KIND);
    fake.status = TN_ERR_CLOSED;
    fake.code = 4;
    assert_status(tn__driver_check_stream(d, s, 1, &info), TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->native_code, 4);
    fake.status = TN_OK;
    assert_int_equal(info.context, 77);
    tn_driver_destroy(d);
}

static void status_of_a_table_keeps_to_its_contract(void **state) {
    static const struct {
        tn_status from;
        tn_status to;
    } map[] = {
        {TN_ERR_DRIVER, TN_ERR_DRIVER},
        {TN_ERR_HOST_MEMORY, TN_ERR_HOST_MEMORY},
        {TN_ERR_DEVICE_MEMORY, TN_ERR_DEVICE_MEMORY},
        {TN_ERR_DEVICE_LOST, TN_ERR_DEVICE_LOST},
        {TN_ERR_UNSUPPORTED, TN_ERR_UNSUPPORTED},
        {TN_ERR_CLOSED, TN_ERR_DRIVER},
        {TN_ERR_KIND, TN_ERR_DRIVER},
        {TN_ERR_BUDGET, TN_ERR_DRIVER},
        {(tn_status)1000, TN_ERR_DRIVER},
    };
    tn_driver *d = open_fake();
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(map) / sizeof(map[0]); i++) {
        const tn_error *e = tn_last_error();
        void *p = NULL;

        fake.status = map[i].from;
        fake.code = 100 + (int64_t)i;
        assert_status(tn_memory_alloc(d, tn_location_cuda(1), 8, &p), map[i].to);
        assert_int_equal(e->native_code, 100 + i);
        assert_int_equal(e->at.kind, TN_LOCATION_CUDA);
        assert_int_equal(e->at.index, 1);
        assert_non_null(strstr(e->message, "device_alloc at cuda:1"));
    }
    fake.status = TN_OK;
    tn_driver_destroy(d);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(table_complete_makes_a_driver),
    cmocka_unit_test(driver_null_is_a_machine_without_devices),
    cmocka_unit_test(table_of_another_form_is_refused),
    cmocka_unit_test(table_without_a_required_entry_is_refused),
    cmocka_unit_test(driver_without_memory_is_not_made),
    cmocka_unit_test(driver_that_cannot_count_has_no_devices),
    cmocka_unit_test(cuda_in_a_build_without_it_says_why),
    cmocka_unit_test(location_exists_or_is_refused),
    cmocka_unit_test(stream_fits_its_device_or_is_refused),
    cmocka_unit_test(status_of_a_table_keeps_to_its_contract),
};

TN_TEST_MAIN("unit.driver", tests)
