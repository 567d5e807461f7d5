/* SPDX-License-Identifier: MIT */
/* src/driver/cuda/cuda_load.c, cuda.c: a driver that is not there, too old, broken, or without
 * devices is refused with a reason, as often as one tries; what is optional may be missing. */
#include "cuda_fixture.h"

#include <stdio.h>

/* Refused, with a reason that begins the error's message. */
static void refused(const char *library, tn_status status, int64_t code, const char *text) {
    tn_driver *d = NULL;

    assert_status(tn__driver_open_cuda(library, &d), status);
    assert_null(d);
    assert_non_null(strstr(tn_last_error()->message, text));
    assert_true(strlen(tn_driver_why()) > 0);
    assert_memory_equal(tn_last_error()->message, tn_driver_why(), strlen(tn_driver_why()));
    assert_int_equal(tn_last_error()->status, status);
    assert_int_equal(tn_last_error()->native_code, code);
}

static void driver_absent_is_unsupported(void **state) {
    (void)state;
    refused("/nowhere/libcuda.so.1", TN_ERR_UNSUPPORTED, 0, "there is no CUDA driver here");
    assert_non_null(strstr(tn_last_error()->message, "/nowhere/libcuda.so.1"));
}

static void driver_that_is_no_library_is_unsupported(void **state) {
    char path[4200];
    FILE *file;

    (void)state;
    snprintf(path, sizeof(path), "%s/libcuda.so.1", tn_test_tmpdir());
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs("not an object", file) >= 0);
    assert_int_equal(fclose(file), 0);
    refused(path, TN_ERR_UNSUPPORTED, 0, "there is no CUDA driver here");
}

static void driver_without_a_required_symbol_is_named(void **state) {
    (void)state;
    refused(cuda_shim_path(SHIM_ANCIENT), TN_ERR_UNSUPPORTED, 0,
            "too old: it has no cuStreamIsCapturing");
    assert_non_null(strstr(tn_driver_why(), "cuStreamIsCapturing"));
}

static void driver_that_does_not_start_is_broken(void **state) {
    (void)state;
    cuda_shim_load(SHIM_BROKEN, NULL);
    refused(cuda_shim_path(SHIM_BROKEN), TN_ERR_DRIVER, 999, "cuInit failed");
}

static void driver_that_does_not_start_says_why(void **state) {
    static const struct {
        int code;
        tn_status status;
        const char *text;
    } rows[] = {
        {100, TN_ERR_UNSUPPORTED, "no CUDA device"}, {34, TN_ERR_UNSUPPORTED, "stub library"},
        {802, TN_ERR_DRIVER, "system services"},     {803, TN_ERR_DRIVER, "kernel's module"},
        {804, TN_ERR_DRIVER, "compatibility"},       {2, TN_ERR_DRIVER, "cuInit failed"},
    };
    struct cuda_shim *shim = cuda_shim_load(SHIM_FULL, NULL);
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        shim->init_code = rows[i].code;
        refused(cuda_shim_path(SHIM_FULL), rows[i].status, rows[i].code, rows[i].text);
    }
}

static void driver_of_an_old_version_is_unsupported(void **state) {
    tn_sim *sim;
    struct cuda_shim *shim;

    (void)state;
    assert_ok(tn_sim_create("", &sim));
    shim = cuda_shim_load(SHIM_FULL, tn_sim_driver(sim));
    shim->version = 9020;
    refused(cuda_shim_path(SHIM_FULL), TN_ERR_UNSUPPORTED, 9020, "older than CUDA 10.0");
    tn_sim_destroy(sim);
}

static void machine_without_devices_is_unsupported(void **state) {
    tn_sim *sim;

    (void)state;
    cuda_shim_load(SHIM_FULL, NULL);
    refused(cuda_shim_path(SHIM_FULL), TN_ERR_UNSUPPORTED, 100, "no CUDA device");
    assert_ok(tn_sim_create("dev:0", &sim));
    cuda_shim_load(SHIM_FULL, tn_sim_driver(sim));
    refused(cuda_shim_path(SHIM_FULL), TN_ERR_UNSUPPORTED, 0, "no CUDA device");
    tn_sim_destroy(sim);
}

static void driver_that_cannot_count_is_broken(void **state) {
    tn_sim *sim;
    struct cuda_shim *shim;

    (void)state;
    assert_ok(tn_sim_create("", &sim));
    shim = cuda_shim_load(SHIM_FULL, tn_sim_driver(sim));
    shim->count_code = 999;
    refused(cuda_shim_path(SHIM_FULL), TN_ERR_DRIVER, 999, "cannot count");
    tn_sim_destroy(sim);
}

static void opening_may_be_tried_again(void **state) {
    tn_driver *d = NULL;
    struct cuda c;

    (void)state;
    assert_status(tn__driver_open_cuda("/nowhere/libcuda.so.1", &d), TN_ERR_UNSUPPORTED);
    assert_status(tn__driver_open_cuda(cuda_shim_path(SHIM_FULL), NULL), TN_ERR_KIND);
    c = cuda_open(SHIM_FULL, "dev:2");
    assert_string_equal(tn_driver_why(), "");
    assert_string_equal(tn_driver_name(c.driver), "cuda");
    assert_int_equal(tn__driver_devices(c.driver), 2);
    d = cuda_shim_open(SHIM_FULL); /* a second one beside it */
    tn_driver_destroy(d);
    cuda_close(&c);
}

static void opening_without_memory_leaves_nothing(void **state) {
    uint64_t live;
    uint64_t n;
    tn_sim *sim;

    (void)state;
    assert_ok(tn_sim_create("", &sim));
    cuda_shim_load(SHIM_FULL, tn_sim_driver(sim));
    live = tn__alloc_live();
    for (n = 1;; n++) {
        tn_driver *d = NULL;
        tn_status status;

        tn__fault_alloc(n);
        status = tn__driver_open_cuda(cuda_shim_path(SHIM_FULL), &d);
        if (!tn__fault_alloc_fired()) {
            assert_ok(status);
            tn_driver_destroy(d);
            break;
        }
        assert_status(status, TN_ERR_HOST_MEMORY);
        assert_true(strlen(tn_driver_why()) > 0);
        assert_int_equal(tn__alloc_live(), live);
    }
    tn__fault_alloc(0);
    assert_int_equal(n, 3); /* the backend, the driver */
    assert_int_equal(tn__alloc_live(), live);
    tn_sim_destroy(sim);
}

/* Without pools, host functions and capture modes everything else works. */
static void driver_without_optional_symbols_works(void **state) {
    struct cuda c = cuda_open(SHIM_OLD, "dev:2 mem=64MiB");
    tn_device_memory figures = {0, 0, 0, 0};
    unsigned char bytes[100] = {1, 2, 3};
    unsigned char back[100] = {0};
    void *p;

    (void)state;
    c.shim->any_capture_mode = true;
    assert_null(c.ops->host_function);
    p = device_block(&c, 1, sizeof(bytes));
    assert_int_equal(atomic_load(&c.shim->allocs), 1);
    assert_int_equal(atomic_load(&c.shim->live_pools), 0);
    assert_ok(c.ops->device_memory(c.self, 1, &figures));
    assert_int_equal(figures.pool_used_bytes, sizeof(bytes));
    assert_int_equal(figures.pool_held_bytes, sizeof(bytes));
    assert_ok(c.ops->copy(c.self, p, C1, bytes, HOST, sizeof(bytes), NULL));
    assert_ok(c.ops->copy(c.self, back, HOST, p, C1, sizeof(bytes), NULL));
    assert_memory_equal(bytes, back, sizeof(bytes));
    assert_ok(c.ops->device_free(c.self, 1, p, sizeof(bytes)));
    assert_ok(c.ops->device_memory(c.self, 1, &figures));
    assert_int_equal(figures.pool_used_bytes, 0);
    cuda_close(&c);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(driver_absent_is_unsupported),
    cmocka_unit_test(driver_that_is_no_library_is_unsupported),
    cmocka_unit_test(driver_without_a_required_symbol_is_named),
    cmocka_unit_test(driver_that_does_not_start_is_broken),
    cmocka_unit_test(driver_that_does_not_start_says_why),
    cmocka_unit_test(driver_of_an_old_version_is_unsupported),
    cmocka_unit_test(machine_without_devices_is_unsupported),
    cmocka_unit_test(driver_that_cannot_count_is_broken),
    cmocka_unit_test(opening_may_be_tried_again),
    cmocka_unit_test(opening_without_memory_leaves_nothing),
    cmocka_unit_test(driver_without_optional_symbols_works),
};

TN_TEST_MAIN("cuda.open", tests)
