/* SPDX-License-Identifier: MIT */
/* src/driver/sim/sim_copy.c, sim_exec.c: when a copy reads, how long it takes, what carries it,
 * what is counted. */
#include "sim_machine.h"

#include <stdlib.h>

#include "driver/sim/sim_priv.h"

static tn_sim_traffic traffic(const struct machine *m, tn_location from, tn_location to) {
    tn_sim_traffic t = {.size = sizeof(t)};

    assert_ok(tn_sim_read_traffic(m->sim, from, to, &t));
    return t;
}

static void copy_without_stream_is_complete_on_return(void **state) {
    struct machine m = machine_open("link=host:1GBps latency=2us");
    unsigned char *p = device_block(&m, 0, 1000);
    unsigned char local[1000];
    unsigned char back[1000] = {0};

    (void)state;
    memset(local, 7, sizeof(local));
    assert_ok(to_device(&m, 0, p, local, 1000, NULL));
    assert_int_equal(tn_sim_now_ns(m.sim), 3000);
    assert_ok(to_host(&m, 0, back, p, 1000, NULL));
    assert_int_equal(tn_sim_now_ns(m.sim), 6000);
    assert_true(all_bytes(back, 1000, 7));
    device_drop(&m, 0, p, 1000);
    machine_close(&m);
}

static void copy_of_no_bytes_is_nothing(void **state) {
    struct machine m = machine_open("latency=1ms");

    (void)state;
    assert_ok(to_device(&m, 0, NULL, NULL, 0, NULL));
    assert_int_equal(now_ms(&m), 0);
    assert_int_equal(tn_sim_calls(m.sim, TN_SIM_COPY), 1);
    machine_close(&m);
}

static void copy_asked_for_wrongly_is_refused(void **state) {
    struct machine m = machine_open("dev:2");
    unsigned char *p = device_block(&m, 0, 64);
    unsigned char local[65];

    (void)state;
    assert_status(to_device(&m, 2, p, local, 64, NULL), TN_ERR_DRIVER);
    assert_int_equal(m.ops->last_code(m.self), 101);
    assert_status(m.ops->copy(m.self, p, tn_location_cuda(0), local, tn_location_none(), 64, NULL),
                  TN_ERR_DRIVER);
    assert_status(to_device(&m, 0, NULL, local, 64, NULL), TN_ERR_DRIVER);
    assert_int_equal(m.ops->last_code(m.self), 1);
    assert_status(to_device(&m, 0, p, NULL, 64, NULL), TN_ERR_DRIVER);
    assert_status(to_device(&m, 0, p, local, 65, NULL), TN_ERR_DRIVER);
    assert_status(to_device(&m, 0, p + 60, local, 5, NULL), TN_ERR_DRIVER);
    assert_status(to_device(&m, 1, p, local, 64, NULL), TN_ERR_DRIVER);
    assert_status(to_device(&m, 0, local, local, 64, NULL), TN_ERR_DRIVER);
    assert_status(to_device(&m, 0, p, local, 64, (tn_stream)(void *)&m), TN_ERR_DRIVER);
    assert_int_equal(m.ops->last_code(m.self), 400);
    device_drop(&m, 0, p, 64);
    machine_close(&m);
}

static void copy_queued_reads_its_source_late(void **state) {
    struct machine m = machine_open(NULL);
    unsigned char *p = device_block(&m, 0, 64);
    tn_stream s = stream_on(&m, 0);
    unsigned char local[64];

    (void)state;
    memset(local, 1, 64);
    assert_ok(tn_sim_queue_delay(m.sim, s, 5 * MS));
    assert_ok(to_device(&m, 0, p, local, 64, s));
    memset(local, 2, 64);
    assert_ok(m.ops->stream_synchronize(m.self, s));
    assert_true(all_bytes(p, 64, 2));
    device_drop(&m, 0, p, 64);
    machine_close(&m);
}

static void copy_of_pinned_memory_reads_its_source_late(void **state) {
    struct machine m = machine_open(NULL);
    unsigned char *p = device_block(&m, 0, 64);
    unsigned char *q = pinned_block(&m, 64);
    tn_stream s = stream_on(&m, 0);

    (void)state;
    memset(q, 1, 64);
    assert_ok(tn_sim_queue_delay(m.sim, s, 5 * MS));
    assert_ok(m.ops->copy(m.self, p, tn_location_cuda(0), q, tn_location_pinned(), 64, s));
    memset(q, 2, 64);
    assert_ok(m.ops->stream_synchronize(m.self, s));
    assert_true(all_bytes(p, 64, 2));
    device_drop(&m, 0, p, 64);
    assert_ok(m.ops->pinned_free(m.self, q, 64));
    machine_close(&m);
}

static void copy_whose_source_changes_meanwhile_is_torn(void **state) {
    struct machine m = machine_open("latency=10ms");
    unsigned char *p = device_block(&m, 0, 64);
    tn_stream s = stream_on(&m, 0);
    unsigned char local[64];

    (void)state;
    memset(local, 1, 64);
    assert_ok(to_device(&m, 0, p, local, 64, s));
    advance_ms(&m, 5);
    memset(local, 2, 64);
    advance_ms(&m, 5);
    assert_true(all_bytes(p, 32, 1));
    assert_true(all_bytes(p + 32, 32, 2));
    device_drop(&m, 0, p, 64);
    machine_close(&m);
}

static void flip(void *context, void *destination, uint64_t bytes) {
    unsigned char *p = destination;

    p[bytes - 1] ^= 0xff;
    ++*(int *)context;
}

static void copy_into_freed_block_moves_nothing_and_is_a_violation(void **state) {
    struct machine m = machine_open("latency=10ms");
    int calls = 0;
    unsigned char *p = device_block(&m, 0, 64);
    tn_stream s = stream_on(&m, 0);
    unsigned char local[64];

    (void)state;
    memset(local, 1, 64);
    tn_sim_on_copy(m.sim, flip, &calls);
    assert_ok(to_device(&m, 0, p, local, 64, s));
    advance_ms(&m, 5);
    device_drop(&m, 0, p, 64);
    assert_ok(tn_sim_run(m.sim));
    assert_true(all_bytes(p, 64, TN_SIM_POISON));
    assert_int_equal(calls, 0);
    assert_non_null(strstr(tn_sim_violation_text(m.sim), "its destination at cuda:0"));
    machine_close_after(&m, 1);
}

static void copy_out_of_freed_block_reads_poison(void **state) {
    struct machine m = machine_open("latency=10ms");
    unsigned char *p = device_block(&m, 0, 64);
    tn_stream s = stream_on(&m, 0);
    unsigned char local[64];

    (void)state;
    memset(p, 1, 64);
    assert_ok(tn_sim_queue_delay(m.sim, s, 1 * MS));
    assert_ok(to_host(&m, 0, local, p, 64, s));
    device_drop(&m, 0, p, 64);
    p = device_block(&m, 0, 64);
    memset(p, 4, 64); /* the next owner's bytes must not leak, either */
    assert_ok(tn_sim_run(m.sim));
    assert_true(all_bytes(local, 64, TN_SIM_POISON));
    device_drop(&m, 0, p, 64);
    machine_close_after(&m, 1);
}

static void duration_is_latency_plus_bytes_by_bandwidth(void **state) {
    tn__sim_machine m = {.latency_ns = 100, .host_rate = 25000000, .peer_rate = 3};
    tn_location p = tn_location_pageable();
    tn_location n = tn_location_pinned();
    tn_location c0 = tn_location_cuda(0);
    tn_location c1 = tn_location_cuda(1);

    (void)state;
    assert_int_equal(tn__sim_copy_ns(&m, c0, n, 24576), 100 + 983040);
    assert_int_equal(tn__sim_copy_ns(&m, n, c0, 24576), 100 + 983040);
    assert_int_equal(tn__sim_copy_ns(&m, c0, p, 1), 100 + 40);
    assert_int_equal(tn__sim_copy_ns(&m, c1, c0, 1), 100 + 333333334);
    assert_int_equal(tn__sim_copy_ns(&m, c0, c0, 1 << 30), 100);
    assert_int_equal(tn__sim_copy_ns(&m, p, n, 1 << 30), 100);
    assert_int_equal(tn__sim_copy_ns(&m, c1, c0, INT64_MAX), INT64_MAX);
    m.host_rate = 0;
    assert_int_equal(tn__sim_copy_ns(&m, c0, n, 1 << 30), 100);
}

static void copies_of_one_direction_queue_up_for_the_link(void **state) {
    struct machine m = machine_open("dev:2 latency=10ms");
    unsigned char *p = device_block(&m, 0, 64);
    unsigned char *q = device_block(&m, 1, 64);
    tn_stream a = stream_on(&m, 0);
    tn_stream b = stream_on(&m, 0);
    tn_stream c = stream_on(&m, 0);
    tn_stream d = stream_on(&m, 1);
    unsigned char local[64] = {0};
    unsigned char out[64];

    (void)state;
    memset(p, 3, 64);
    assert_ok(to_device(&m, 0, p, local, 32, a));
    assert_ok(m.ops->copy(m.self, p, tn_location_cuda(0), local, tn_location_pinned(), 32, b));
    assert_ok(to_host(&m, 0, out, p + 32, 32, c));
    assert_ok(to_device(&m, 1, q, local, 64, d));
    advance_ms(&m, 10);
    assert_true(tn_sim_stream_idle(m.sim, a));
    assert_false(tn_sim_stream_idle(m.sim, b));
    assert_true(tn_sim_stream_idle(m.sim, c)); /* the other direction */
    assert_true(tn_sim_stream_idle(m.sim, d)); /* another device */
    assert_ok(tn_sim_run(m.sim));
    assert_int_equal(now_ms(&m), 20);
    device_drop(&m, 0, p, 64);
    device_drop(&m, 1, q, 64);
    machine_close(&m);
}

static void copies_between_devices_have_their_own_link(void **state) {
    struct machine m = machine_open("dev:2 link=host:1kBps link=peer:1MBps");
    unsigned char *p = device_block(&m, 0, 1000);
    unsigned char *q = device_block(&m, 1, 1000);
    tn_stream s = stream_on(&m, 0);

    (void)state;
    memset(p, 3, 1000);
    assert_ok(m.ops->copy(m.self, q, tn_location_cuda(1), p, tn_location_cuda(0), 1000, s));
    assert_ok(m.ops->stream_synchronize(m.self, s));
    assert_int_equal(now_ms(&m), 1);
    assert_true(all_bytes(q, 1000, 3));
    memset(p, 4, 500); /* within a device: no link, no time */
    assert_ok(m.ops->copy(m.self, p + 500, tn_location_cuda(0), p, tn_location_cuda(0), 500, s));
    assert_true(all_bytes(p, 1000, 4));
    assert_int_equal(now_ms(&m), 1);
    device_drop(&m, 0, p, 1000);
    device_drop(&m, 1, q, 1000);
    machine_close(&m);
}

/* A copy that waits for its link reads its first half when it starts, not when its turn on the
 * stream comes. */
static void copy_waiting_for_the_link_reads_when_it_starts(void **state) {
    struct machine m = machine_open("latency=10ms");
    unsigned char *p = device_block(&m, 0, 64);
    unsigned char *q = device_block(&m, 0, 64);
    tn_stream a = stream_on(&m, 0);
    tn_stream b = stream_on(&m, 0);
    unsigned char local[64];

    (void)state;
    memset(local, 1, 64);
    assert_ok(to_device(&m, 0, p, local, 64, a));
    assert_ok(to_device(&m, 0, q, local, 64, b));
    advance_ms(&m, 5);
    memset(local + 32, 2, 32); /* in the middle of the first copy */
    advance_ms(&m, 5);
    memset(local, 3, 32); /* the second has read its first half */
    assert_ok(m.ops->stream_synchronize(m.self, b));
    assert_true(all_bytes(p, 32, 1) && all_bytes(p + 32, 32, 2));
    assert_true(all_bytes(q, 32, 1) && all_bytes(q + 32, 32, 2));
    device_drop(&m, 0, p, 64);
    device_drop(&m, 0, q, 64);
    machine_close(&m);
}

/* F-A16: the figures of 64 moves to and fro. */
static void traffic_is_counted_per_pair(void **state) {
    struct machine m = machine_open("link=host:25MBps");
    unsigned char *p = device_block(&m, 0, 24576);
    unsigned char *q = pinned_block(&m, 24576);
    tn_sim_traffic in;
    tn_sim_traffic out;
    int i;

    (void)state;
    memset(q, 1, 24576);
    for (i = 0; i < 32; i++) {
        assert_ok(
            m.ops->copy(m.self, p, tn_location_cuda(0), q, tn_location_pinned(), 24576, NULL));
        assert_ok(
            m.ops->copy(m.self, q, tn_location_pinned(), p, tn_location_cuda(0), 24576, NULL));
    }
    in = traffic(&m, tn_location_pinned(), tn_location_cuda(0));
    out = traffic(&m, tn_location_cuda(0), tn_location_pinned());
    assert_int_equal(in.copies, 32);
    assert_int_equal(in.bytes, 786432);
    assert_int_equal(in.busy_ns + out.busy_ns, 62914560);
    assert_int_equal(tn_sim_now_ns(m.sim), 62914560);
    assert_int_equal(traffic(&m, tn_location_pageable(), tn_location_cuda(0)).copies, 0);
    device_drop(&m, 0, p, 24576);
    assert_ok(m.ops->pinned_free(m.self, q, 24576));
    machine_close(&m);
}

static void copy_hook_sees_and_damages_each_copy(void **state) {
    struct machine m = machine_open("latency=1ms");
    unsigned char *p = device_block(&m, 0, 64);
    tn_stream s = stream_on(&m, 0);
    unsigned char local[64] = {0};
    int calls = 0;

    (void)state;
    tn_sim_on_copy(m.sim, flip, &calls);
    assert_ok(to_device(&m, 0, p, local, 64, s));
    assert_ok(m.ops->stream_synchronize(m.self, s));
    assert_ok(to_device(&m, 0, p + 32, local, 8, NULL));
    assert_int_equal(calls, 2);
    assert_int_equal(p[63], 0xff);
    assert_int_equal(p[39], 0xff);
    tn_sim_on_copy(m.sim, NULL, NULL);
    assert_ok(to_device(&m, 0, p, local, 64, NULL));
    assert_true(all_bytes(p, 64, 0));
    device_drop(&m, 0, p, 64);
    machine_close(&m);
}

static void memory_of_the_program_needs_no_range(void **state) {
    struct machine m = machine_open(NULL);
    unsigned char *p = device_block(&m, 0, 64);
    unsigned char *mine = malloc(64);

    (void)state;
    assert_non_null(mine);
    memset(mine, 6, 64);
    assert_ok(m.ops->copy(m.self, p, tn_location_cuda(0), mine, tn_location_pinned(), 64, NULL));
    assert_true(all_bytes(p, 64, 6));
    free(mine);
    device_drop(&m, 0, p, 64);
    machine_close(&m);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(copy_without_stream_is_complete_on_return),
    cmocka_unit_test(copy_of_no_bytes_is_nothing),
    cmocka_unit_test(copy_asked_for_wrongly_is_refused),
    cmocka_unit_test(copy_queued_reads_its_source_late),
    cmocka_unit_test(copy_of_pinned_memory_reads_its_source_late),
    cmocka_unit_test(copy_whose_source_changes_meanwhile_is_torn),
    cmocka_unit_test(copy_into_freed_block_moves_nothing_and_is_a_violation),
    cmocka_unit_test(copy_out_of_freed_block_reads_poison),
    cmocka_unit_test(duration_is_latency_plus_bytes_by_bandwidth),
    cmocka_unit_test(copies_of_one_direction_queue_up_for_the_link),
    cmocka_unit_test(copies_between_devices_have_their_own_link),
    cmocka_unit_test(copy_waiting_for_the_link_reads_when_it_starts),
    cmocka_unit_test(traffic_is_counted_per_pair),
    cmocka_unit_test(copy_hook_sees_and_damages_each_copy),
    cmocka_unit_test(memory_of_the_program_needs_no_range),
};

TN_TEST_MAIN("unit.sim_copy", tests)
