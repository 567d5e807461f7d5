/* SPDX-License-Identifier: MIT */
/* src/value/place.c: M28..M31, M217, G22. */
#include "tn_test.h"

#include <tenure/sim.h>

#include "value_fake.h"

#define P tn_location_pageable()
#define N tn_location_pinned()
#define C(i) tn_location_cuda(i)

static tn_sim *sim;
static tn_driver *driver;
static tn_payload value; /* at P, two segments */
static uint64_t lost;    /* events and streams that a scripted failure of their destruction left */

static int setup(void **state) {
    static const uint64_t sizes[] = {1000, 24};
    tn_buffer *buffer = NULL;
    (void)state;
    lost = 0;
    assert_ok(tn_sim_create("dev:2 mem=1MiB", &sim));
    driver = tn_sim_driver(sim);
    assert_ok(tn_buffer_create(NULL, P, sizes, 2, &buffer));
    value = tn_buffer_payload(buffer);
    memset(tn_buffer_segment(buffer, 0).data, 0x5a, 1000);
    memset(tn_buffer_segment(buffer, 1).data, 0xa5, 24);
    return 0;
}

static uint64_t live_bytes(tn_location at) {
    tn_sim_memory memory = {.size = sizeof memory};
    assert_ok(tn_driver_trim_pinned(tn_sim_driver(sim), NULL));
    assert_ok(tn_sim_read_memory(sim, at, &memory));
    return memory.live_bytes;
}

static int teardown(void **state) {
    (void)state;
    tn_payload_destroy(value);
    assert_int_equal(live_bytes(N), 0);
    assert_int_equal(live_bytes(C(0)), 0);
    assert_int_equal(live_bytes(C(1)), 0);
    assert_int_equal(tn_sim_live_events(sim) + tn_sim_live_streams(sim), lost);
    assert_string_equal(tn_sim_violation_text(sim), "");
    tn_sim_destroy(sim);
    assert_int_equal(tn__alloc_live(), 0);
    return 0;
}

static void check(tn_payload payload, tn_location at) {
    tn_segment first = tn_buffer_segment(payload.data, 0);
    tn_segment second = tn_buffer_segment(payload.data, 1);
    tn_measure measure = TN_MEASURE_INIT;
    assert_ok(tn_payload_measure(payload, &measure));
    assert_true(tn_location_equal(measure.at, at));
    assert_int_equal(measure.logical_bytes, 1024);
    assert_int_equal(first.bytes, 1000);
    assert_int_equal(second.bytes, 24);
    for (size_t i = 0; i < 1000; ++i)
        assert_int_equal(((unsigned char *)first.data)[i], 0x5a);
    for (size_t i = 0; i < 24; ++i)
        assert_int_equal(((unsigned char *)second.data)[i], 0xa5);
}

static void place_where_it_is_gives_the_same_value(void **state) {
    const tn_location places[] = {P, N, C(1)};
    (void)state;
    for (size_t i = 0; i < 3; ++i) {
        tn_payload here;
        tn_payload same;
        tn_payload other;
        assert_ok(tn_payload_place(driver, value, places[i], NULL, TN_PLACE_COPY, &here));
        assert_ptr_not_equal(here.data, value.data);
        assert_ok(tn_payload_place(driver, here, places[i], NULL, 0, &same));
        assert_ptr_equal(same.data, here.data);
        assert_ok(tn_payload_place(driver, here, places[i], NULL, TN_PLACE_COPY, &other));
        assert_ptr_not_equal(other.data, here.data);
        assert_ptr_not_equal(tn_buffer_segment(other.data, 0).data,
                             tn_buffer_segment(here.data, 0).data);
        check(here, places[i]);
        tn_payload_destroy(here);
        check(other, places[i]);
        tn_payload_destroy(other);
    }
    check(value, P);
}

static void place_moves_between_all_locations(void **state) {
    const tn_location places[] = {P, N, C(0), C(1)};
    (void)state;
    for (size_t i = 0; i < 4; ++i)
        for (size_t j = 0; j < 4; ++j) {
            tn_payload here;
            tn_payload there;
            if (i == j)
                continue;
            assert_ok(tn_payload_place(driver, value, places[i], NULL, TN_PLACE_COPY, &here));
            assert_ok(tn_payload_place(driver, here, places[j], NULL, 0, &there));
            assert_ptr_not_equal(there.data, here.data); /* also P of a pinned one */
            check(here, places[i]);
            tn_payload_destroy(here);
            check(there, places[j]);
            tn_payload_destroy(there);
        }
}

static void place_works_without_a_driver(void **state) {
    tn_payload out = {NULL, NULL};
    (void)state;
    assert_ok(tn_payload_place(NULL, value, P, NULL, TN_PLACE_COPY, &out));
    check(out, P);
    tn_payload_destroy(out);
    assert_status(tn_payload_place(NULL, value, C(0), NULL, 0, &out), TN_ERR_VALUE);
    assert_status(tn_payload_place(NULL, value, N, NULL, 0, &out), TN_ERR_PAYLOAD);
}

static void place_uses_the_stream_that_is_given(void **state) {
    tn_stream stream;
    tn_payload out;
    (void)state;
    assert_ok(tn_sim_stream_create(sim, 1, 0, &stream));
    assert_ok(tn_sim_queue_delay(sim, stream, 1000000));
    assert_ok(tn_payload_place(driver, value, C(1), stream, 0, &out));
    assert_true(tn_sim_now_ns(sim) >= 1000000);
    assert_int_equal(tn_sim_calls(sim, TN_SIM_STREAM_CREATE), 0);
    check(out, C(1));
    tn_payload_destroy(out);
    assert_ok(tn_sim_stream_destroy(sim, stream));
    assert_ok(tn_payload_place(driver, value, C(0), TN_STREAM_LEGACY, 0, &out));
    check(out, C(0));
    tn_payload_destroy(out);
}

static void place_checks_arguments(void **state) {
    fake mixed = {0};
    tn_stream stream;
    tn_payload out = {NULL, NULL};
    tn_payload none = {tn_buffer_type(), NULL};
    (void)state;
    assert_ok(tn_sim_stream_create(sim, 1, 0, &stream));
    assert_status(tn_payload_place(driver, value, P, NULL, 0, NULL), TN_ERR_KIND);
    assert_status(tn_payload_place(driver, none, P, NULL, 0, &out), TN_ERR_KIND);
    assert_status(tn_payload_place(driver, (tn_payload){NULL, value.data}, P, NULL, 0, &out),
                  TN_ERR_KIND);
    assert_status(tn_payload_place(driver, value, tn_location_none(), NULL, 0, &out), TN_ERR_KIND);
    assert_status(tn_payload_place(driver, value, C(2), NULL, 0, &out), TN_ERR_VALUE);
    assert_status(tn_payload_place(driver, value, C(128), NULL, 0, &out), TN_ERR_VALUE);
    assert_status(tn_payload_place(driver, value, P, NULL, 2, &out), TN_ERR_VALUE);
    assert_status(tn_payload_place(driver, value, P, stream, 0, &out), TN_ERR_VALUE);
    assert_status(tn_payload_place(driver, value, C(0), stream, 0, &out),
                  TN_ERR_VALUE); /* another device's */
    assert_status(tn_payload_place(driver, value, C(0), TN_STREAM_PER_THREAD, 0, &out),
                  TN_ERR_VALUE);
    fake_add(&mixed, 1, 8, P);
    fake_add(&mixed, 2, 8, C(0));
    assert_status(tn_payload_place(driver, fake_payload(&mixed), P, NULL, 0, &out), TN_ERR_PAYLOAD);
    assert_null(out.data);
    assert_ok(tn_sim_stream_destroy(sim, stream));
}

static void place_checks_the_stream_even_where_nothing_is_copied(void **state) {
    tn_stream capturing;
    tn_payload here;
    tn_payload out = {NULL, NULL};
    (void)state;
    assert_ok(tn_sim_stream_create(sim, 0, TN_SIM_STREAM_CAPTURING, &capturing));
    assert_ok(tn_payload_place(driver, value, C(0), NULL, 0, &here));
    assert_status(tn_payload_place(driver, here, C(0), capturing, 0, &out), TN_ERR_VALUE);
    assert_null(out.data);
    tn_payload_destroy(here);
    assert_ok(tn_sim_stream_destroy(sim, capturing));
}

static void place_copies_a_mixed_payload_and_shares_a_neutral_one(void **state) {
    fake f = {0};
    tn_payload out;
    (void)state;
    fake_add(&f, 0, 0, N);
    assert_ok(tn_payload_place(driver, fake_payload(&f), P, NULL, 0, &out));
    assert_ok(tn_payload_place(driver, fake_payload(&f), N, NULL, 0, &out));
    assert_int_equal(f.copies, 0); /* G22 */
    assert_ok(tn_payload_place(driver, fake_payload(&f), C(0), NULL, 0, &out));
    assert_int_equal(f.copies, 1);
    fake_add(&f, 1, 8, N);
    fake_add(&f, 2, 8, P);
    assert_ok(tn_payload_place(driver, fake_payload(&f), P, NULL, 0, &out));
    assert_ok(tn_payload_place(driver, fake_payload(&f), N, NULL, 0, &out));
    assert_int_equal(f.copies, 3); /* M28: it is neither */
}

static void place_never_gives_pageable_memory_for_pinned(void **state) {
    tn_payload out = {NULL, NULL};
    (void)state;
    assert_ok(tn_sim_set_state(sim, TN_SIM_FAKE_PINNED)); /* MC179 */
    assert_status(tn_payload_place(driver, value, N, NULL, 0, &out), TN_ERR_PAYLOAD);
    assert_ok(tn_sim_set_state(sim, TN_SIM_NO_PINNED));
    assert_status(tn_payload_place(driver, value, N, NULL, 0, &out), TN_ERR_PAYLOAD);
    assert_ok(tn_sim_set_state(sim, TN_SIM_NORMAL));
    assert_null(out.data);
}

static void place_survives_each_failing_driver_call(void **state) {
    uint64_t hits = 1;
    (void)state;
    for (uint64_t n = 1; hits; ++n) {
        tn_sim_fault fault = TN_SIM_FAULT_INIT;
        tn_payload out = {NULL, NULL};
        fault.nth = n;
        fault.status = TN_ERR_DRIVER;
        fault.native_code = 999;
        assert_ok(tn_sim_fault_arm(sim, &fault));
        tn_status status = tn_payload_place(driver, value, C(0), NULL, 0, &out);
        hits = tn_sim_fault_clear(sim);
        if (status != TN_OK) {
            assert_status(status, TN_ERR_DRIVER);
            assert_int_equal(tn_last_error()->native_code, 999);
            assert_null(out.data);
        } else { /* only a clean-up after the complete copy can have failed */
            lost += hits;
            check(out, C(0));
            tn_payload_destroy(out);
        }
        assert_int_equal(live_bytes(C(0)), 0);
    }
}

static void place_attaches_a_failing_clean_up(void **state) {
    tn_sim_fault fault = TN_SIM_FAULT_INIT;
    tn_payload out = {NULL, NULL};
    (void)state;
    fault.status = TN_ERR_DRIVER;
    fault.entry = TN_SIM_DEVICE_ALLOC;
    fault.native_code = 2;
    assert_ok(tn_sim_fault_arm(sim, &fault));
    fault.entry = TN_SIM_EVENT_DESTROY;
    fault.native_code = 719;
    assert_ok(tn_sim_fault_arm(sim, &fault));
    assert_status(tn_payload_place(driver, value, C(0), NULL, 0, &out), TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->native_code, 2);
    assert_int_equal(tn_last_error()->cleanup_status, TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->cleanup_native_code, 719);
    assert_int_equal(tn_sim_fault_clear(sim), 2);
    lost = 1;
}

#define PLACE_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static const struct CMUnitTest tests[] = {
    PLACE_TEST(place_where_it_is_gives_the_same_value),
    PLACE_TEST(place_moves_between_all_locations),
    PLACE_TEST(place_works_without_a_driver),
    PLACE_TEST(place_uses_the_stream_that_is_given),
    PLACE_TEST(place_checks_arguments),
    PLACE_TEST(place_checks_the_stream_even_where_nothing_is_copied),
    PLACE_TEST(place_copies_a_mixed_payload_and_shares_a_neutral_one),
    PLACE_TEST(place_never_gives_pageable_memory_for_pinned),
    PLACE_TEST(place_survives_each_failing_driver_call),
    PLACE_TEST(place_attaches_a_failing_clean_up),
};

TN_TEST_MAIN("unit.value_place", tests)
