/* SPDX-License-Identifier: MIT */
/* src/value/source_file.c: file sources on real files, and with a file layer that fails by number.
 */
#include "tn_test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <tenure/sim.h>
#include <xxhash.h>

#include "value_fake.h"

#define KEY 135168u /* 132 KiB */

/* ---- A file layer that counts and fails ---- */

static struct layer {
    int fail_open, fail_stat, fail_read; /* errno of the next such call ... */
    int times;                           /* ... this often */
    size_t limit;                        /* most bytes per read; 0: no limit */
    bool end;                            /* reads find the end of the file */
    int opened, reads;
    uint64_t bytes;
    off_t last;
    bool ascending;
} layer;

static bool failing(int code) {
    if (code == 0 || layer.times == 0)
        return false;
    layer.times--;
    errno = code;
    return true;
}

static int layer_open(const char *path) {
    if (failing(layer.fail_open))
        return -1;
    int descriptor = tn__file_system.open(path);
    layer.opened += descriptor >= 0;
    return descriptor;
}

static int layer_stat(int descriptor, struct stat *out) {
    return failing(layer.fail_stat) ? -1 : tn__file_system.stat(descriptor, out);
}

static ssize_t layer_read(int descriptor, const struct iovec *pieces, int count, off_t offset) {
    struct iovec first = pieces[0];
    if (failing(layer.fail_read))
        return -1;
    if (layer.end)
        return 0;
    if (layer.limit && first.iov_len > layer.limit)
        first.iov_len = layer.limit;
    ssize_t got = layer.limit ? tn__file_system.read(descriptor, &first, 1, offset)
                              : tn__file_system.read(descriptor, pieces, count, offset);
    layer.ascending = layer.ascending && offset > layer.last;
    layer.last = offset;
    layer.reads++;
    layer.bytes += got > 0 ? (uint64_t)got : 0;
    return got;
}

static int layer_close(int descriptor) {
    layer.opened--;
    return tn__file_system.close(descriptor);
}

static const tn__file_layer counted = {layer_open, layer_stat, layer_read, layer_close};

static int setup(void **state) {
    (void)state;
    layer = (struct layer){.last = -1, .ascending = true};
    tn__files = &counted;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    tn__files = &tn__file_system;
    assert_int_equal(layer.opened, 0); /* descriptors are always closed */
    assert_int_equal(tn__alloc_live(), 0);
    return 0;
}

/* ---- Files ---- */

static unsigned char content(uint64_t i) { return (unsigned char)(i * 31 + (i >> 8) * 7); }

static const char *write_file(uint64_t bytes) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/values", tn_test_tmpdir());
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    for (uint64_t i = 0; i < bytes; ++i)
        assert_int_not_equal(fputc(content(i), f), EOF);
    assert_int_equal(fclose(f), 0);
    return path;
}

static tn_source file_of(const char *path, uint64_t offset) {
    tn_source source = TN_SOURCE_INIT;
    source.kind = TN_SOURCE_FILE;
    source.path = path;
    source.offset = offset;
    return source;
}

/* The way to a device: a ring of four blocks, one stream, its events. */
static struct {
    tn__route route;
    tn_driver *driver;
    tn_event events[4];
} way;

static void way_open(tn_sim *sim, uint32_t device, uint64_t block_bytes) {
    tn_stream_info info;
    tn_driver *driver = way.driver = tn_sim_driver(sim);
    way.route.to = tn_location_cuda(device);
    way.route.events = way.events;
    assert_ok(tn__ring_create(driver, block_bytes, 4, &way.route.ring));
    assert_ok(tn__stream_create(driver, device, &way.route.stream));
    assert_ok(tn__driver_check_stream(driver, way.route.stream, device, &info));
    for (int i = 0; i < 4; ++i)
        assert_ok(tn__event_create(driver, device, info.context, &way.events[i]));
}

static void way_close(void) {
    for (int i = 0; i < 4; ++i)
        assert_ok(tn__event_destroy(way.driver, way.events[i]));
    assert_ok(tn__stream_destroy(way.driver, way.route.stream));
    tn__ring_destroy(way.route.ring);
}

static tn_status load_at(const tn_source *source, uint64_t bytes, tn_driver *driver, tn_location at,
                         tn_payload *out) {
    tn_load_request request = {.size = sizeof request, .at = at, .driver = driver};
    tn__source *own = NULL;
    request.spec = (tn_value_spec){sizeof(tn_value_spec), tn_buffer_type(),  bytes, bytes,
                                   TN_REPLICABLE,         TN_RECONSTRUCTIBLE};
    request.handle = (tn_handle){3, 4, tn_buffer_type()};
    assert_ok(tn__source_check(source, &request.spec));
    tn_status status = tn__source_create(source, &request.spec, &own);
    if (status != TN_OK)
        return status;
    status = tn__source_load(own, &request, at.kind == TN_LOCATION_CUDA ? &way.route : NULL, out);
    tn__source_destroy(own);
    return status;
}

static tn_status load(const tn_source *source, uint64_t bytes, tn_payload *out) {
    return load_at(source, bytes, NULL, tn_location_pageable(), out);
}

/* The simulator's device memory can be read as it is. */
static void check_and_destroy(tn_payload payload, uint64_t offset, uint64_t bytes) {
    uint64_t at = offset;
    assert_ptr_equal(payload.type, tn_buffer_type());
    for (size_t s = 0; s < tn_buffer_segment_count(payload.data); ++s) {
        tn_segment segment = tn_buffer_segment(payload.data, s);
        const unsigned char *data = segment.data;
        for (uint64_t i = 0; i < segment.bytes; ++i, ++at)
            if (data[i] != content(at))
                fail_msg("byte %llu differs", (unsigned long long)at);
    }
    assert_int_equal(at - offset, bytes);
    tn_payload_destroy(payload);
}

static uint64_t hash_of(uint64_t offset, uint64_t bytes) {
    unsigned char *data = malloc(bytes);
    assert_non_null(data);
    for (uint64_t i = 0; i < bytes; ++i)
        data[i] = content(offset + i);
    uint64_t hash = XXH3_64bits(data, bytes);
    free(data);
    return hash;
}

/* ---- Tests ---- */

static void file_loads_exactly_in_few_reads(void **state) {
    const uint64_t sizes[] = {65536, 65536, 4096};
    tn_source source = file_of(write_file(KEY + 1000), 1000);
    tn_payload out;
    (void)state;
    assert_ok(load(&source, KEY, &out));
    assert_in_range(layer.reads, 1, 3);
    assert_int_equal(layer.bytes, KEY);
    assert_true(layer.ascending);
    check_and_destroy(out, 1000, KEY);
    source.segment_bytes = sizes;
    source.segment_count = 3;
    assert_ok(load(&source, KEY, &out));
    assert_in_range(layer.reads, 2, 6);
    assert_int_equal(tn_buffer_segment_count(out.data), 3);
    check_and_destroy(out, 1000, KEY);
}

static void file_of_odd_segments_is_read_piecewise(void **state) {
    enum { COUNT = 300 };
    uint64_t sizes[COUNT];
    uint64_t sum = 0;
    tn_source source = file_of(write_file(KEY), 3);
    tn_payload out;
    (void)state;
    for (uint64_t i = 0; i < COUNT; ++i)
        sum += sizes[i] = i % 5 * 77;
    source.segment_bytes = sizes;
    source.segment_count = COUNT;
    source.flags = TN_SOURCE_CHECKSUM;
    source.checksum = hash_of(3, sum);
    assert_ok(load(&source, sum, &out));
    assert_in_range(layer.reads, 2, 3); /* 240 pieces that are not empty */
    check_and_destroy(out, 3, sum);
    layer.limit = 50; /* short reads are no end */
    assert_ok(load(&source, sum, &out));
    check_and_destroy(out, 3, sum);
    assert_true(layer.reads > 500);
}

/* F-A12 */
static void file_that_is_short_is_told_in_bytes(void **state) {
    tn_source source = file_of(write_file(134144), 0);
    tn_payload out = {NULL, NULL};
    (void)state;
    assert_status(load(&source, KEY, &out), TN_ERR_MATERIALIZATION);
    assert_int_equal(tn_last_error()->expected, KEY);
    assert_int_equal(tn_last_error()->actual, 134144);
    assert_int_equal(tn_last_error()->handle.index, 4);
    assert_true(tn_location_equal(tn_last_error()->at, tn_location_pageable()));
    assert_int_equal(layer.reads, 0); /* its size says so */
    source.offset = 134000;
    assert_status(load(&source, KEY, &out), TN_ERR_MATERIALIZATION);
    assert_int_equal(tn_last_error()->actual, 144);
    source.offset = UINT64_C(1) << 40;
    assert_status(load(&source, KEY, &out), TN_ERR_MATERIALIZATION);
    assert_int_equal(tn_last_error()->actual, 0);
    assert_null(out.data);
    source.offset = 0;
    write_file(KEY);
    assert_ok(load(&source, KEY, &out));
    check_and_destroy(out, 0, KEY);
}

static void file_that_shrinks_while_read_is_short(void **state) {
    tn_source source = file_of(write_file(KEY), 0);
    tn_payload out = {NULL, NULL};
    (void)state;
    layer.end = true;
    assert_status(load(&source, KEY, &out), TN_ERR_MATERIALIZATION);
    assert_int_equal(tn_last_error()->expected, KEY);
    assert_int_equal(tn_last_error()->actual, 0);
    assert_null(out.data);
}

static void file_with_a_wrong_checksum_is_corrupt(void **state) {
    const char *path = write_file(KEY);
    tn_source source = file_of(path, 4096);
    tn_payload out = {NULL, NULL};
    (void)state;
    source.flags = TN_SOURCE_CHECKSUM;
    source.checksum = hash_of(4096, KEY - 4096);
    assert_ok(load(&source, KEY - 4096, &out));
    check_and_destroy(out, 4096, KEY - 4096);
    out = (tn_payload){NULL, NULL};
    int descriptor = open(path, O_WRONLY);
    unsigned char wrong = content(100000) ^ 1;
    assert_int_equal(pwrite(descriptor, &wrong, 1, 100000), 1);
    assert_int_equal(close(descriptor), 0);
    assert_status(load(&source, KEY - 4096, &out), TN_ERR_MATERIALIZATION);
    assert_non_null(strstr(tn_last_error()->message, "corrupt"));
    assert_null(out.data);
    source.flags = 0; /* nobody asked */
    assert_ok(load(&source, KEY - 4096, &out));
    tn_payload_destroy(out);
}

static void file_without_bytes_must_still_exist(void **state) {
    tn_source source = file_of(write_file(0), 0);
    tn_payload out = {NULL, NULL};
    (void)state;
    source.flags = TN_SOURCE_CHECKSUM;
    source.checksum = XXH3_64bits(NULL, 0);
    assert_ok(load(&source, 0, &out));
    check_and_destroy(out, 0, 0);
    assert_int_equal(layer.reads, 0);
    source.path = "/nonexistent/values";
    assert_status(load(&source, 0, &out), TN_ERR_SOURCE);
}

static void file_that_cannot_be_read_gives_errno(void **state) {
    char pipe_path[4096];
    tn_source source = file_of("/nonexistent/values", 0);
    tn_payload out = {NULL, NULL};
    (void)state;
    assert_status(load(&source, 8, &out), TN_ERR_SOURCE);
    assert_int_equal(tn_last_error()->native_code, ENOENT);
    assert_non_null(strstr(tn_last_error()->message, "/nonexistent/values"));
    source.path = tn_test_tmpdir();
    assert_status(load(&source, 8, &out), TN_ERR_SOURCE);
    assert_int_equal(tn_last_error()->native_code, EISDIR);
    snprintf(pipe_path, sizeof pipe_path, "%s/pipe", source.path);
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    source.path = pipe_path; /* must not wait for a writer */
    assert_status(load(&source, 8, &out), TN_ERR_SOURCE);
    assert_int_equal(tn_last_error()->native_code, EINVAL);
    assert_null(out.data);
}

static void file_layer_errors_are_reported(void **state) {
    int *const failing_calls[] = {&layer.fail_open, &layer.fail_stat, &layer.fail_read};
    tn_source source = file_of(write_file(KEY), 0);
    tn_payload out = {NULL, NULL};
    (void)state;
    for (size_t i = 0; i < 3; ++i) {
        layer.times = 1;
        *failing_calls[i] = EIO;
        assert_status(load(&source, KEY, &out), TN_ERR_SOURCE);
        assert_int_equal(tn_last_error()->native_code, EIO);
        assert_null(out.data);
        assert_ok(load(&source, KEY, &out)); /* the same call succeeds */
        check_and_destroy(out, 0, KEY);
        out.data = NULL;
        *failing_calls[i] = 0;
    }
}

static void file_calls_interrupted_by_signals_are_repeated(void **state) {
    int *const failing_calls[] = {&layer.fail_open, &layer.fail_read};
    tn_source source = file_of(write_file(KEY), 0);
    tn_payload out;
    (void)state;
    for (size_t i = 0; i < 2; ++i) {
        layer.times = 2;
        *failing_calls[i] = EINTR;
        assert_ok(load(&source, KEY, &out));
        check_and_destroy(out, 0, KEY);
        assert_int_equal(layer.times, 0);
        *failing_calls[i] = 0;
    }
}

/* Returns how many allocations a load makes. */
static uint64_t fail_each_allocation(const tn_source *source, tn_driver *driver, tn_location at) {
    tn_payload out = {NULL, NULL};
    for (uint64_t n = 1;; ++n) {
        uint64_t live = tn__alloc_live();
        tn__fault_alloc(n);
        tn_status status = load_at(source, 4109, driver, at, &out);
        if (!tn__fault_alloc_fired()) {
            tn__fault_alloc(0);
            check_and_destroy(out, 0, 4109);
            return n - 1;
        }
        assert_status(status, TN_ERR_HOST_MEMORY);
        assert_null(out.data);
        assert_true(tn__alloc_live() <= live + (driver ? 4 : 0)); /* records of the machine */
    }
}

static void file_load_survives_each_failing_allocation(void **state) {
    const uint64_t sizes[] = {100, 9, 4000};
    tn_source source = file_of(write_file(KEY), 0);
    tn_sim *sim = NULL;
    tn_payload out;
    (void)state;
    source.segment_bytes = sizes;
    source.segment_count = 3;
    /* source, buffer, three segments; at a device memory of its own */
    assert_int_equal(fail_each_allocation(&source, NULL, tn_location_pageable()), 5);
    assert_ok(tn_sim_create("dev:1 mem=1MiB", &sim));
    way_open(sim, 0, 1000);
    assert_ok(
        load_at(&source, 4109, way.driver, tn_location_cuda(0), &out)); /* the ring is there */
    tn_payload_destroy(out);
    assert_true(fail_each_allocation(&source, way.driver, tn_location_cuda(0)) >= 2);
    way_close();
    tn_sim_destroy(sim);
}

static void file_loads_at_pinned_and_cuda_locations(void **state) {
    const tn_location places[] = {tn_location_pinned(), tn_location_cuda(1)};
    const uint64_t sizes[] = {100, 0, 9, 4000};
    tn_source source = file_of(write_file(KEY), 7);
    tn_sim *sim = NULL;
    tn_payload out;
    (void)state;
    source.flags = TN_SOURCE_CHECKSUM;
    assert_ok(tn_sim_create("dev:2 mem=1MiB", &sim));
    way_open(sim, 1, 50000);
    for (size_t i = 0; i < 2; ++i) {
        source.segment_count = 0;
        source.checksum = hash_of(7, KEY - 7);
        layer.reads = 0;
        assert_ok(load_at(&source, KEY - 7, tn_sim_driver(sim), places[i], &out));
        assert_int_equal(layer.reads, i == 0 ? 1 : 3); /* a block each */
        assert_true(tn_location_equal(tn_buffer_location(out.data), places[i]));
        check_and_destroy(out, 7, KEY - 7);
        source.segment_bytes = sizes;
        source.segment_count = 4;
        source.checksum = hash_of(7, 4109);
        assert_ok(load_at(&source, 4109, tn_sim_driver(sim), places[i], &out));
        check_and_destroy(out, 7, 4109);
    }
    way_close();
    assert_int_equal(tn_sim_violations(sim), 0);
    tn_sim_destroy(sim);
}

/* Each call of the driver fails once. */
static void file_load_survives_each_failing_driver_call(void **state) {
    const uint64_t sizes[] = {100, 9, 4000};
    const tn_location places[] = {tn_location_pinned(), tn_location_cuda(0)};
    tn_source source = file_of(write_file(KEY), 0);
    tn_sim *sim = NULL;
    tn_payload first;
    (void)state;
    source.segment_bytes = sizes;
    source.segment_count = 3;
    assert_ok(tn_sim_create("dev:1 mem=1MiB", &sim));
    way_open(sim, 0, 1000);
    assert_ok(load_at(&source, 4109, way.driver, tn_location_cuda(0), &first));
    tn_payload_destroy(first); /* the ring is there: where it is from is no failure */
    uint64_t base = tn__alloc_live();
    for (size_t i = 0; i < 2; ++i) {
        uint64_t hits = 1;
        for (uint64_t n = 1; hits; ++n) {
            tn_sim_fault fault = TN_SIM_FAULT_INIT;
            tn_sim_memory memory = {.size = sizeof memory};
            tn_payload out = {NULL, NULL};
            fault.nth = n;
            fault.status = TN_ERR_DRIVER;
            fault.native_code = 999;
            assert_ok(tn_sim_fault_arm(sim, &fault));
            tn_status status = load_at(&source, 4109, tn_sim_driver(sim), places[i], &out);
            hits = tn_sim_fault_clear(sim);
            assert_int_equal(status == TN_OK, hits == 0);
            tn_payload_destroy(out);
            assert_ok(tn_driver_trim_pinned(way.driver, NULL));
            assert_ok(tn_sim_read_memory(sim, places[i], &memory));
            assert_int_equal(memory.live_bytes, i == 0 ? 4 * 1000 : 0); /* the ring */
            assert_int_equal(tn__alloc_live(), base);
        }
    }
    way_close();
    assert_int_equal(tn_sim_violations(sim), 0);
    tn_sim_destroy(sim);
}

#define FILE_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static const struct CMUnitTest tests[] = {
    FILE_TEST(file_loads_exactly_in_few_reads),
    FILE_TEST(file_of_odd_segments_is_read_piecewise),
    FILE_TEST(file_that_is_short_is_told_in_bytes),
    FILE_TEST(file_that_shrinks_while_read_is_short),
    FILE_TEST(file_with_a_wrong_checksum_is_corrupt),
    FILE_TEST(file_without_bytes_must_still_exist),
    FILE_TEST(file_that_cannot_be_read_gives_errno),
    FILE_TEST(file_layer_errors_are_reported),
    FILE_TEST(file_calls_interrupted_by_signals_are_repeated),
    FILE_TEST(file_load_survives_each_failing_allocation),
    FILE_TEST(file_loads_at_pinned_and_cuda_locations),
    FILE_TEST(file_load_survives_each_failing_driver_call),
};

TN_TEST_MAIN("unit.source_file", tests)
