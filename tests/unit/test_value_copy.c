/* SPDX-License-Identifier: MIT */
/* src/value/copy.c: M29, M30, M87, M222 with V1 and V4, on the simulated machine. */
#include "tn_test.h"

#include <tenure/sim.h>

#include "value_fake.h"

#define P tn_location_pageable()
#define N tn_location_pinned()
#define C(i) tn_location_cuda(i)
#define BYTES 4365u

/* A machine with a stream and an event on device 0, and a payload at P. */
static struct machine {
    tn_sim *sim;
    tn_driver *driver;
    tn_stream stream;
    tn_event event;
    tn_payload at_host;
    uint64_t lost; /* bytes at cuda:0 that a scripted failure of a free left there */
} m;

static unsigned char content(uint64_t i) { return (unsigned char)(i * 37 + (i >> 8)); }

static void fill(tn_payload payload) {
    uint64_t at = 0;
    for (size_t s = 0; s < tn_buffer_segment_count(payload.data); ++s)
        for (uint64_t i = 0; i < tn_buffer_segment(payload.data, s).bytes; ++i)
            ((unsigned char *)tn_buffer_segment(payload.data, s).data)[i] = content(at++);
}

/* Device memory of the simulator can be read as it is. */
static void check(tn_payload payload, tn_location where) {
    uint64_t at = 0;
    assert_ptr_equal(payload.type, tn_buffer_type());
    assert_true(tn_location_equal(tn_buffer_location(payload.data), where));
    for (size_t s = 0; s < tn_buffer_segment_count(payload.data); ++s)
        for (uint64_t i = 0; i < tn_buffer_segment(payload.data, s).bytes; ++i, ++at)
            if (((unsigned char *)tn_buffer_segment(payload.data, s).data)[i] != content(at))
                fail_msg("byte %llu differs", (unsigned long long)at);
    assert_int_equal(at, BYTES);
}

static int setup(void **state) {
    static const uint64_t sizes[] = {100, 256, 0, 9, 4000};
    tn_buffer *buffer = NULL;
    tn_stream_info info;
    (void)state;
    m.lost = 0;
    assert_ok(tn_sim_create("dev:2 mem=1MiB latency=10us", &m.sim));
    m.driver = tn_sim_driver(m.sim);
    assert_ok(tn__stream_create(m.driver, 0, &m.stream));
    assert_ok(tn__driver_check_stream(m.driver, m.stream, 0, &info));
    assert_ok(tn__event_create(m.driver, 0, info.context, &m.event));
    assert_ok(tn_buffer_create(m.driver, P, sizes, 5, &buffer));
    m.at_host = tn_buffer_payload(buffer);
    fill(m.at_host);
    return 0;
}

static uint64_t live_bytes(tn_location at) {
    tn_sim_memory memory = {.size = sizeof memory};
    assert_ok(tn_driver_trim_pinned(m.driver, NULL));
    assert_ok(tn_sim_read_memory(m.sim, at, &memory));
    return memory.live_bytes;
}

static int teardown(void **state) {
    (void)state;
    tn_payload_destroy(m.at_host);
    assert_ok(tn__event_destroy(m.driver, m.event));
    assert_ok(tn__stream_destroy(m.driver, m.stream));
    assert_int_equal(live_bytes(N), 0);
    assert_int_equal(live_bytes(C(0)), m.lost);
    assert_int_equal(live_bytes(C(1)), 0);
    assert_string_equal(tn_sim_violation_text(m.sim), "");
    tn_sim_destroy(m.sim);
    assert_int_equal(tn__alloc_live(), 0);
    return 0;
}

static tn_status copy_to(tn_payload payload, tn_location to, tn_payload *out) {
    return tn__value_copy(m.driver, payload, to, m.stream, m.event, out);
}

static void arm(uint32_t entry, uint64_t nth, int64_t code) {
    tn_sim_fault fault = TN_SIM_FAULT_INIT;
    fault.entry = entry;
    fault.nth = nth;
    fault.status = TN_ERR_DRIVER;
    fault.native_code = code;
    assert_ok(tn_sim_fault_arm(m.sim, &fault));
}

/* ---- Good copies ---- */

static void copy_is_complete_and_independent_everywhere(void **state) {
    const tn_location places[] = {P, N, C(0)};
    (void)state;
    for (size_t i = 0; i < 3; ++i)
        for (size_t j = 0; j < 3; ++j) {
            tn_payload from;
            tn_payload to;
            assert_ok(copy_to(m.at_host, places[i], &from));
            assert_ok(copy_to(from, places[j], &to));
            assert_ptr_not_equal(from.data, to.data);
            tn_payload_destroy(from);
            check(to, places[j]);
            tn_payload_destroy(to);
        }
    check(m.at_host, P);
}

static void copy_to_cuda_is_queued_and_waited_for(void **state) {
    tn_payload out;
    (void)state;
    assert_ok(tn_sim_queue_delay(m.sim, m.stream, 5000000)); /* MC81 */
    uint64_t synchronizes = tn_sim_calls(m.sim, TN_SIM_STREAM_SYNCHRONIZE);
    assert_ok(copy_to(m.at_host, C(0), &out));
    assert_true(tn_sim_now_ns(m.sim) >= 5000000);
    assert_true(tn_sim_stream_idle(m.sim, m.stream));
    assert_int_equal(tn_sim_calls(m.sim, TN_SIM_EVENT_RECORD), 1);
    assert_int_equal(tn_sim_calls(m.sim, TN_SIM_STREAM_SYNCHRONIZE), synchronizes);
    check(out, C(0));
    tn_payload_destroy(out);
}

static void copy_without_event_synchronizes_the_stream(void **state) {
    tn_payload out;
    (void)state;
    assert_ok(tn__value_copy(m.driver, m.at_host, C(0), m.stream, NULL, &out));
    assert_int_equal(tn_sim_calls(m.sim, TN_SIM_STREAM_SYNCHRONIZE), 1);
    check(out, C(0));
    tn_payload_destroy(out);
}

static void copy_to_a_host_ignores_stream_and_event(void **state) {
    tn_payload at_device;
    tn_payload out;
    (void)state;
    assert_ok(copy_to(m.at_host, C(0), &at_device));
    assert_ok(tn_sim_queue_delay(m.sim, m.stream, 5000000));
    assert_ok(copy_to(at_device, N, &out)); /* M221 */
    assert_int_equal(tn_sim_calls(m.sim, TN_SIM_EVENT_RECORD), 1);
    assert_false(tn_sim_stream_idle(m.sim, m.stream));
    check(out, N);
    tn_payload_destroy(out);
    tn_payload_destroy(at_device);
    assert_ok(tn_sim_run(m.sim));
}

/* ---- Failures ---- */

static void copy_checks_the_payload(void **state) {
    fake f = {0};
    tn_payload out = {NULL, NULL};
    (void)state;
    assert_status(copy_to((tn_payload){tn_buffer_type(), NULL}, P, &out), TN_ERR_KIND);
    assert_status(copy_to((tn_payload){NULL, &f}, P, &out), TN_ERR_KIND);
    assert_null(out.data);
}

/* M222: any call of the driver fails once; nothing is lost and the same copy succeeds afterwards.
 */
static void copy_survives_each_failing_driver_call(void **state) {
    const tn_location places[] = {C(0), N};
    (void)state;
    for (size_t i = 0; i < 2; ++i) {
        uint64_t hits = 1;
        for (uint64_t n = 1; hits; ++n) {
            tn_payload out = {NULL, NULL};
            uint64_t live = tn__alloc_live();
            arm(TN_SIM_ANY, n, 700 + (int64_t)n);
            tn_status status = copy_to(m.at_host, places[i], &out);
            hits = tn_sim_fault_clear(m.sim);
            if (hits == 0) {
                assert_ok(status);
                check(out, places[i]);
                tn_payload_destroy(out);
                break;
            }
            assert_true(status == TN_ERR_DRIVER || (status == TN_ERR_PAYLOAD && i == 1));
            assert_int_equal(tn_last_error()->status, status);
            assert_int_equal(tn_last_error()->native_code, 700 + (int64_t)n);
            assert_int_equal(tn_last_error()->cleanup_status, TN_OK);
            assert_null(out.data);
            assert_int_equal(live_bytes(places[i]), 0);
            assert_true(tn_sim_stream_idle(m.sim, m.stream));
            assert_true(tn__alloc_live() <= live + 8); /* records that the machine keeps */
        }
    }
}

static void copy_survives_each_failing_allocation(void **state) {
    tn_payload out = {NULL, NULL};
    uint64_t n = 0;
    (void)state;
    for (;;) {
        tn__fault_alloc(++n);
        tn_status status = copy_to(m.at_host, P, &out);
        if (!tn__fault_alloc_fired())
            break;
        assert_status(status, TN_ERR_HOST_MEMORY);
        assert_null(out.data);
    }
    tn__fault_alloc(0);
    check(out, P);
    tn_payload_destroy(out);
}

/* MC80 */
static void copy_whose_event_cannot_be_recorded_synchronizes_the_stream(void **state) {
    tn_payload out = {NULL, NULL};
    (void)state;
    arm(TN_SIM_EVENT_RECORD, 1, 400);
    assert_status(copy_to(m.at_host, C(0), &out), TN_ERR_DRIVER);
    assert_int_equal(tn_sim_calls(m.sim, TN_SIM_STREAM_SYNCHRONIZE), 1);
    assert_int_equal(tn_last_error()->native_code, 400);
    assert_null(out.data);
}

/* V4: a clean-up that fails is attached; the whole device is waited for instead. */
static void copy_attaches_a_failing_synchronize(void **state) {
    tn_payload out = {NULL, NULL};
    (void)state;
    arm(TN_SIM_EVENT_RECORD, 1, 400);
    arm(TN_SIM_STREAM_SYNCHRONIZE, 1, 719);
    assert_status(copy_to(m.at_host, C(0), &out), TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->native_code, 400);
    assert_int_equal(tn_last_error()->cleanup_status, TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->cleanup_native_code, 719);
    assert_int_equal(tn_sim_calls(m.sim, TN_SIM_DEVICE_SYNCHRONIZE), 1);
    assert_null(out.data);
    assert_true(tn_sim_stream_idle(m.sim, m.stream));
}

static void copy_attaches_a_failing_synchronize_half_way(void **state) {
    tn_payload out = {NULL, NULL};
    (void)state;
    arm(TN_SIM_COPY, 3, 400);
    arm(TN_SIM_STREAM_SYNCHRONIZE, 1, 719);
    assert_status(copy_to(m.at_host, C(0), &out), TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->native_code, 400);
    assert_int_equal(tn_last_error()->cleanup_native_code, 719);
    assert_int_equal(tn_sim_calls(m.sim, TN_SIM_STREAM_SYNCHRONIZE),
                     1); /* once, not once a segment */
    assert_null(out.data);
}

static void copy_attaches_a_failing_free(void **state) {
    tn_payload out = {NULL, NULL};
    (void)state;
    arm(TN_SIM_EVENT_SYNCHRONIZE, 1, 400);
    arm(TN_SIM_DEVICE_FREE, 2, 719);
    assert_status(copy_to(m.at_host, C(0), &out), TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->native_code, 400);
    assert_int_equal(tn_last_error()->cleanup_status, TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->cleanup_native_code, 719);
    assert_null(out.data);
    m.lost = 256; /* the second segment; the others are freed all the same */
}

/* D7: the clean-up finds everything gone, which is fine. */
static void copy_on_a_driver_that_shut_down_fails_cleanly(void **state) {
    tn_payload out = {NULL, NULL};
    (void)state;
    assert_ok(tn_sim_set_state(m.sim, TN_SIM_SHUT_DOWN));
    assert_status(copy_to(m.at_host, C(0), &out), TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->cleanup_status, TN_OK);
    assert_null(out.data);
    assert_ok(tn_sim_set_state(m.sim, TN_SIM_NORMAL));
}

/* ---- Callbacks of other types ---- */

static void copy_reports_what_the_callback_reports(void **state) {
    fake f = {.status = TN_ERR_UNSUPPORTED};
    tn_payload out = {NULL, NULL};
    (void)state;
    (void)tn__fail(TN_ERR_UNSUPPORTED, "an older failure");
    assert_status(copy_to(fake_payload(&f), C(0), &out), TN_ERR_UNSUPPORTED);
    assert_null(strstr(tn_last_error()->message, "older"));
    assert_int_equal(tn_sim_calls(m.sim, TN_SIM_STREAM_SYNCHRONIZE), 1);
    f.own_error = true;
    assert_status(copy_to(fake_payload(&f), C(0), &out), TN_ERR_UNSUPPORTED);
    assert_int_equal(tn_last_error()->native_code, 77);
    f.status = (tn_status)-3;
    assert_status(copy_to(fake_payload(&f), P, &out), TN_ERR_PAYLOAD);
    assert_int_equal(tn_last_error()->native_code, -3);
    f = (fake){.null_copy = true};
    assert_status(copy_to(fake_payload(&f), P, &out), TN_ERR_PAYLOAD);
    assert_null(out.data);
    assert_int_equal(f.destroys, 0);
}

/* V1: what the callback made is destroyed once if the wait fails; the destroy's own failure is
 * attached. */
static void copy_that_cannot_be_waited_for_is_destroyed_once(void **state) {
    fake f = {.own_error = true};
    tn_payload out = {NULL, NULL};
    (void)state;
    arm(TN_SIM_EVENT_SYNCHRONIZE, 1, 400);
    assert_status(copy_to(fake_payload(&f), C(0), &out), TN_ERR_DRIVER);
    assert_int_equal(f.destroys, 1);
    assert_int_equal(tn_last_error()->native_code, 400);
    assert_int_equal(tn_last_error()->cleanup_status, TN_ERR_DEVICE_LOST);
    assert_int_equal(tn_last_error()->cleanup_native_code, 78);
    assert_null(out.data);
}

/* A callback that uses the copier by hand, and then gives up. */
static tn_status probe_copy(const void *payload, tn_copier *copier, void **out_payload) {
    const char *bytes = payload;
    void *block = NULL;
    (void)out_payload;
    assert_true(tn_location_equal(tn_copier_location(copier), C(0)));
    assert_ptr_equal(tn_copier_driver(copier), m.driver);
    assert_status(tn_copier_alloc(NULL, 8, &block), TN_ERR_KIND);
    assert_status(tn_copier_alloc(copier, 8, NULL), TN_ERR_KIND);
    assert_ok(tn_copier_alloc(copier, 8, &block));
    assert_status(tn_copier_copy(NULL, block, bytes, P, 8), TN_ERR_KIND);
    assert_status(tn_copier_copy(copier, NULL, bytes, P, 8), TN_ERR_KIND);
    assert_status(tn_copier_copy(copier, block, NULL, P, 8), TN_ERR_KIND);
    assert_status(tn_copier_copy(copier, block, bytes, tn_location_none(), 8), TN_ERR_KIND);
    assert_status(tn_copier_copy(copier, block, bytes, tn_location_cuda(200), 8), TN_ERR_VALUE);
    assert_ok(tn_copier_copy(copier, NULL, NULL, P, 0));
    assert_ok(tn_copier_copy(copier, block, bytes, P, 8));
    assert_false(tn_sim_stream_idle(m.sim, m.stream)); /* queued */
    tn_copier_free(NULL, block, 8);
    tn_copier_free(copier, NULL, 8);
    (void)tn__fail(TN_ERR_UNSUPPORTED, "gave up");
    tn_copier_free(copier, block, 8); /* waits first, and keeps the error */
    assert_true(tn_sim_stream_idle(m.sim, m.stream));
    return TN_ERR_UNSUPPORTED;
}

static void copier_serves_a_callback_that_gives_up(void **state) {
    char bytes[8] = "payload";
    tn_value_type probe = fake_type;
    tn_payload out = {NULL, NULL};
    (void)state;
    probe.copy = probe_copy;
    assert_status(copy_to((tn_payload){&probe, bytes}, C(0), &out), TN_ERR_UNSUPPORTED);
    assert_string_equal(tn_last_error()->message, "gave up");
    assert_null(out.data);
}

static void payload_destroy_ignores_nothing_and_keeps_the_error(void **state) {
    fake f = {.own_error = true};
    (void)state;
    (void)tn__fail(TN_ERR_STALE, "an older failure");
    tn_payload_destroy(fake_payload(&f));
    assert_int_equal(f.destroys, 1);
    assert_string_equal(tn_last_error()->message, "an older failure");
    tn_payload_destroy((tn_payload){&fake_type, NULL});
    tn_payload_destroy((tn_payload){NULL, NULL});
    tn_payload_destroy((tn_payload){NULL, &f});
    assert_int_equal(f.destroys, 1);
}

#define COPY_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static const struct CMUnitTest tests[] = {
    COPY_TEST(copy_is_complete_and_independent_everywhere),
    COPY_TEST(copy_to_cuda_is_queued_and_waited_for),
    COPY_TEST(copy_without_event_synchronizes_the_stream),
    COPY_TEST(copy_to_a_host_ignores_stream_and_event),
    COPY_TEST(copy_checks_the_payload),
    COPY_TEST(copy_survives_each_failing_driver_call),
    COPY_TEST(copy_survives_each_failing_allocation),
    COPY_TEST(copy_whose_event_cannot_be_recorded_synchronizes_the_stream),
    COPY_TEST(copy_attaches_a_failing_synchronize),
    COPY_TEST(copy_attaches_a_failing_synchronize_half_way),
    COPY_TEST(copy_attaches_a_failing_free),
    COPY_TEST(copy_on_a_driver_that_shut_down_fails_cleanly),
    COPY_TEST(copy_reports_what_the_callback_reports),
    COPY_TEST(copy_that_cannot_be_waited_for_is_destroyed_once),
    COPY_TEST(copier_serves_a_callback_that_gives_up),
    COPY_TEST(payload_destroy_ignores_nothing_and_keeps_the_error),
};

TN_TEST_MAIN("unit.value_copy", tests)
