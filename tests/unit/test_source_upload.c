/* SPDX-License-Identifier: MIT */
/* src/value/source_upload.c: files through a ring to a device, in virtual time. The disk is a file
 * layer that lets time pass with each read; the link is the machine's. */
#include "tn_test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenure/sim.h>
#include <xxhash.h>

#include "value/ring.h"
#include "value/value_priv.h"

#define BYTES (UINT64_C(1) << 20)
#define C0 tn_location_cuda(0)

static struct {
    tn_sim *sim;
    tn_driver *driver;
    tn__route route;
    tn_event events[TN__RING_BLOCKS_MAX];
    uint64_t bytes_per_us; /* of the disk; 0: reads take no time */
    uint64_t disk_ns;      /* busy so far */
    int fail_read;         /* the n-th read from now fails; 0: none */
    int enter_read;        /* before the n-th read from now another load enters the ring */
} w;

/* ---- The disk ---- */

static ssize_t disk_read(int descriptor, const struct iovec *pieces, int count, off_t offset) {
    if (w.fail_read > 0 && --w.fail_read == 0) {
        errno = EIO;
        return -1;
    }
    if (w.enter_read > 0 && --w.enter_read == 0 && tn__ring_enter(w.route.ring) != TN_OK)
        return -1;
    ssize_t got = tn__file_system.read(descriptor, pieces, count, offset);
    uint64_t ns = w.bytes_per_us && got > 0 ? (uint64_t)got * 1000 / w.bytes_per_us : 0;
    w.disk_ns += ns;
    if (ns > 0 && tn_sim_advance(w.sim, ns) != TN_OK)
        return -1;
    return got;
}

static tn__file_layer disk;

static void world_open(const char *machine, uint64_t block_bytes, uint32_t blocks) {
    tn_stream_info info;
    memset(&w, 0, sizeof w);
    disk = tn__file_system;
    disk.read = disk_read;
    tn__files = &disk;
    assert_ok(tn_sim_create(machine, &w.sim));
    w.driver = tn_sim_driver(w.sim);
    w.route.to = C0;
    w.route.events = w.events;
    assert_ok(tn__ring_create(w.driver, block_bytes, blocks, &w.route.ring));
    assert_ok(tn__stream_create(w.driver, 0, &w.route.stream));
    assert_ok(tn__driver_check_stream(w.driver, w.route.stream, 0, &info));
    for (uint32_t i = 0; i < blocks; i++)
        assert_ok(tn__event_create(w.driver, 0, info.context, &w.events[i]));
}

static void world_close(void) {
    tn_sim_memory memory = {.size = sizeof memory};
    for (uint32_t i = 0; i < TN__RING_BLOCKS_MAX; i++)
        assert_ok(tn__event_destroy(w.driver, w.events[i]));
    assert_ok(tn__stream_destroy(w.driver, w.route.stream));
    tn__ring_destroy(w.route.ring);
    assert_ok(tn_sim_read_memory(w.sim, C0, &memory));
    assert_int_equal(memory.live_bytes, 0);
    assert_string_equal(tn_sim_violation_text(w.sim), "");
    tn_sim_destroy(w.sim);
    tn__files = &tn__file_system;
    assert_int_equal(tn__alloc_live(), 0);
}

/* ---- Files ---- */

static unsigned char content(uint64_t i) { return (unsigned char)(i * 131 + (i >> 9)); }

static unsigned char bytes_of_file[BYTES];

static tn_source file_source(uint64_t bytes) {
    static char path[4096];
    tn_source source = TN_SOURCE_INIT;
    snprintf(path, sizeof path, "%s/key", tn_test_tmpdir());
    for (uint64_t i = 0; i < BYTES; i++)
        bytes_of_file[i] = content(i);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes_of_file, 1, BYTES, file), BYTES);
    assert_int_equal(fclose(file), 0);
    source.kind = TN_SOURCE_FILE;
    source.flags = TN_SOURCE_CHECKSUM;
    source.path = path;
    source.checksum = XXH3_64bits(bytes_of_file, bytes);
    return source;
}

static tn_status load(const tn_source *source, uint64_t bytes, tn_payload *out) {
    tn_load_request request = {
        .size = sizeof request, .at = tn_location_pageable(), .driver = w.driver};
    tn__source *own = NULL;
    request.spec = (tn_value_spec){sizeof(tn_value_spec), tn_buffer_type(),  bytes, bytes,
                                   TN_REPLICABLE,         TN_RECONSTRUCTIBLE};
    assert_ok(tn__source_create(source, &request.spec, &own));
    tn_status status = tn__source_load(own, &request, &w.route, out);
    tn__source_destroy(own);
    return status;
}

static void check_and_destroy(tn_payload payload, uint64_t bytes) {
    uint64_t at = 0;
    for (size_t i = 0; i < tn_buffer_segment_count(payload.data); i++) {
        tn_segment segment = tn_buffer_segment(payload.data, i);
        if (segment.bytes > 0)
            assert_int_equal(memcmp(segment.data, bytes_of_file + at, segment.bytes), 0);
        at += segment.bytes;
    }
    assert_int_equal(at, bytes);
    assert_int_equal(tn_buffer_location(payload.data).kind, TN_LOCATION_CUDA);
    tn_payload_destroy(payload);
}

static tn_sim_traffic traffic(tn_location from) {
    tn_sim_traffic t = {.size = sizeof t};
    assert_ok(tn_sim_read_traffic(w.sim, from, C0, &t));
    return t;
}

/* ---- Overlap ---- */

/* A link of 1000 bytes per us, and a disk. The slower one is busy 95 % of the time at least, and
 * all of it takes at most 1.1 times what the slower one does alone. */
static void expect_overlap(uint64_t disk_bytes_per_us, uint32_t blocks) {
    tn_payload out;
    world_open("dev:1 link=host:1GBps", 16384, blocks);
    w.bytes_per_us = disk_bytes_per_us;
    tn_source source = file_source(BYTES);
    uint64_t begin = tn_sim_now_ns(w.sim);
    assert_ok(load(&source, BYTES, &out));
    uint64_t total = tn_sim_now_ns(w.sim) - begin;
    uint64_t link = traffic(tn_location_pinned()).busy_ns;
    uint64_t slower = link > w.disk_ns ? link : w.disk_ns;
    assert_int_equal(traffic(tn_location_pinned()).bytes, BYTES);
    assert_true(slower * 100 >= total * 95);
    assert_true(total * 10 <= slower * 11);
    check_and_destroy(out, BYTES);
    world_close();
}

static void slower_stage_is_busy(void **state) {
    static const uint64_t rates[] = {250, 500, 900, 1000, 1100, 2000, 4000};
    (void)state;
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++)
        for (uint32_t blocks = 2; blocks <= 8; blocks *= 2)
            expect_overlap(rates[i], blocks);
}

/* With one block there is nothing to overlap: the sum of both. */
static void ring_of_one_block_works(void **state) {
    tn_payload out;
    (void)state;
    world_open("dev:1 link=host:1GBps", 16384, 1);
    w.bytes_per_us = 1000;
    tn_source source = file_source(BYTES);
    assert_ok(load(&source, BYTES, &out));
    assert_int_equal(tn_sim_now_ns(w.sim), w.disk_ns + traffic(tn_location_pinned()).busy_ns);
    check_and_destroy(out, BYTES);
    world_close();
}

/* ---- Any size, any ring ---- */

static void any_size_passes_through_any_ring(void **state) {
    static const uint64_t sizes[] = {0, 1, 99, 100, 101, 4096, 10007, 65536};
    static const uint64_t blocks[] = {1, 7, 100, 4096, 1 << 20};
    tn_payload out;
    (void)state;
    for (size_t b = 0; b < sizeof blocks / sizeof blocks[0]; b++) {
        for (uint32_t count = 1; count <= 3; count += 2) {
            world_open("dev:1", blocks[b], count);
            for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
                if (blocks[b] == 1 && sizes[i] > 4096)
                    continue; /* a copy for each byte */
                tn_source source = file_source(sizes[i]);
                assert_ok(load(&source, sizes[i], &out));
                check_and_destroy(out, sizes[i]);
            }
            world_close();
        }
    }
}

static void segments_are_scattered(void **state) {
    const uint64_t sizes[] = {1000, 0, 1, 30000, 77, 4096};
    const uint64_t bytes = 1000 + 1 + 30000 + 77 + 4096;
    tn_payload out;
    (void)state;
    world_open("dev:1 latency=1us", 900, 3);
    tn_source source = file_source(bytes);
    source.segment_bytes = sizes;
    source.segment_count = 6;
    assert_ok(load(&source, bytes, &out));
    assert_int_equal(tn_buffer_segment_count(out.data), 6);
    check_and_destroy(out, bytes);
    world_close();
}

static void machine_without_pinned_memory_stages_in_pageable_memory(void **state) {
    tn_payload out;
    (void)state;
    world_open("dev:1 link=host:1GBps", 16384, 4);
    assert_ok(tn_sim_set_state(w.sim, TN_SIM_NO_PINNED));
    tn_source source = file_source(BYTES);
    assert_ok(load(&source, BYTES, &out));
    assert_int_equal(traffic(tn_location_pageable()).bytes, BYTES);
    check_and_destroy(out, BYTES);
    world_close();
}

/* ---- Failures leave nothing behind ---- */

static void expect_good(const tn_source *source) {
    tn_payload out;
    assert_ok(load(source, BYTES, &out));
    check_and_destroy(out, BYTES);
}

static void failing_read_leaves_nothing(void **state) {
    tn_payload out = {NULL, NULL};
    (void)state;
    world_open("dev:1 link=host:1GBps", 16384, 4);
    tn_source source = file_source(BYTES);
    expect_good(&source);
    uint64_t live = tn__alloc_live();
    for (int n = 1; n <= 64; n += 9) {
        w.fail_read = n;
        assert_status(load(&source, BYTES, &out), TN_ERR_SOURCE);
        assert_int_equal(tn_last_error()->native_code, EIO);
        assert_null(out.data);
        assert_int_equal(tn__alloc_live(), live);
        assert_true(tn_sim_stream_idle(w.sim, w.route.stream));
    }
    expect_good(&source);
    world_close();
}

/* R3: another load comes when this one has all blocks. What is above its share goes back, and not one
 * of them is lost. */
static void blocks_above_the_share_are_given_back(void **state) {
    tn_payload out;
    uint32_t block[4];
    (void)state;
    world_open("dev:1 link=host:1GBps", 16384, 4);
    tn_source source = file_source(BYTES);
    w.enter_read = 8;
    assert_ok(load(&source, BYTES, &out));
    assert_int_equal(w.enter_read, 0);
    check_and_destroy(out, BYTES);
    tn__ring_leave(w.route.ring);
    assert_ok(tn__ring_enter(w.route.ring));
    for (uint32_t i = 0; i < 4; i++)
        assert_true(tn__ring_take(w.route.ring, i, &block[i]));
    for (uint32_t i = 0; i < 4; i++)
        tn__ring_give(w.route.ring, block[i]);
    tn__ring_leave(w.route.ring);
    world_close();
}

static void corrupt_file_leaves_nothing(void **state) {
    tn_payload out = {NULL, NULL};
    (void)state;
    world_open("dev:1 link=host:1GBps", 16384, 4);
    tn_source source = file_source(BYTES);
    source.checksum ^= 1;
    assert_status(load(&source, BYTES, &out), TN_ERR_MATERIALIZATION);
    assert_true(tn_location_equal(tn_last_error()->at, tn_location_pageable()));
    assert_null(out.data);
    source.checksum ^= 1;
    expect_good(&source);
    world_close();
}

/* Each kind of driver call fails in turn, at the first block, in the middle, and at the last. */
static void failing_destination_leaves_nothing(void **state) {
    static const uint32_t entries[] = {TN_SIM_DEVICE_ALLOC, TN_SIM_COPY, TN_SIM_EVENT_RECORD,
                                       TN_SIM_EVENT_SYNCHRONIZE};
    static const uint64_t nth[] = {1, 30, 64};
    tn_payload out = {NULL, NULL};
    (void)state;
    world_open("dev:1 link=host:1GBps", 16384, 4);
    tn_source source = file_source(BYTES);
    expect_good(&source);
    uint64_t live = tn__alloc_live();
    for (size_t e = 0; e < sizeof entries / sizeof entries[0]; e++) {
        for (size_t i = 0; i < (e == 0 ? 1 : 3); i++) {
            tn_sim_fault fault = TN_SIM_FAULT_INIT;
            fault.entry = entries[e];
            fault.nth = nth[i];
            fault.status = e == 0 ? TN_ERR_DEVICE_MEMORY : TN_ERR_DRIVER;
            fault.native_code = 700;
            assert_ok(tn_sim_fault_arm(w.sim, &fault));
            assert_status(load(&source, BYTES, &out), fault.status);
            assert_int_equal(tn_last_error()->native_code, 700);
            assert_null(out.data);
            assert_int_equal(tn_sim_fault_clear(w.sim), 1);
            assert_true(tn_sim_stream_idle(w.sim, w.route.stream));
            assert_int_equal(tn__alloc_live(), live);
            expect_good(&source); /* all blocks are back */
        }
    }
    world_close();
}

/* The stream cannot be waited for either: the device is, and the error tells both. */
static void clean_up_that_fails_is_attached(void **state) {
    tn_sim_fault fault = TN_SIM_FAULT_INIT, second = TN_SIM_FAULT_INIT;
    tn_payload out = {NULL, NULL};
    (void)state;
    world_open("dev:1 link=host:1GBps", 16384, 4);
    tn_source source = file_source(BYTES);
    fault.entry = TN_SIM_COPY;
    fault.nth = 3;
    fault.status = TN_ERR_DRIVER;
    fault.native_code = 700;
    second.entry = TN_SIM_STREAM_SYNCHRONIZE;
    second.status = TN_ERR_DRIVER;
    second.native_code = 701;
    assert_ok(tn_sim_fault_arm(w.sim, &fault));
    assert_ok(tn_sim_fault_arm(w.sim, &second));
    assert_status(load(&source, BYTES, &out), TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->native_code, 700);
    assert_int_equal(tn_last_error()->cleanup_native_code, 701);
    assert_true(tn_sim_stream_idle(w.sim, w.route.stream));
    tn_sim_fault_clear(w.sim);
    expect_good(&source);
    world_close();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(slower_stage_is_busy),
    cmocka_unit_test(ring_of_one_block_works),
    cmocka_unit_test(any_size_passes_through_any_ring),
    cmocka_unit_test(segments_are_scattered),
    cmocka_unit_test(machine_without_pinned_memory_stages_in_pageable_memory),
    cmocka_unit_test(failing_read_leaves_nothing),
    cmocka_unit_test(blocks_above_the_share_are_given_back),
    cmocka_unit_test(corrupt_file_leaves_nothing),
    cmocka_unit_test(failing_destination_leaves_nothing),
    cmocka_unit_test(clean_up_that_fails_is_attached),
};

TN_TEST_MAIN("unit.source_upload", tests)
