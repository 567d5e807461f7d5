/* SPDX-License-Identifier: MIT */
/* src/value/measure.c: M24..M28, G22, V2, V3. */
#include "tn_test.h"

#include "value_fake.h"

#define P tn_location_pageable()
#define N tn_location_pinned()
#define C(i) tn_location_cuda(i)

static tn_status measure_status(fake *f) {
    tn__measured m;
    tn_status status = tn__measure(fake_payload(f), &m);
    if (status == TN_OK)
        tn__measured_fini(&m);
    assert_int_equal(tn__alloc_live(), 0);
    return status;
}

static void check_at(fake *f, tn_location at, bool neutral) {
    tn__measured m;
    assert_ok(tn__measure(fake_payload(f), &m));
    assert_int_equal(m.at.kind, at.kind);
    assert_int_equal(m.at.index, at.index);
    assert_int_equal(m.neutral, neutral);
    tn__measured_fini(&m);
}

static void measure_counts_each_allocation_once(void **state) {
    fake f = {0};
    tn__measured m;
    (void)state;
    fake_add(&f, 5, 100, P);
    fake_add(&f, 1, 40, P);
    fake_add(&f, 5, 100, P);
    fake_add(&f, 0, 0, P);
    fake_add(&f, 3, 7, P);
    assert_ok(tn__measure(fake_payload(&f), &m));
    assert_int_equal(m.logical_bytes, 247);
    assert_int_equal(m.storage_bytes, 147);
    assert_int_equal(m.storage_count, 3); /* V2: sorted, without the empty one */
    assert_ptr_equal(m.storages, m.few);
    assert_ptr_equal(m.storages[0].base, fake_base(1));
    assert_ptr_equal(m.storages[1].base, fake_base(3));
    assert_ptr_equal(m.storages[2].base, fake_base(5));
    assert_int_equal(m.storages[2].bytes, 100);
    assert_int_equal(f.measures, 1);
    tn__measured_fini(&m);
}

static void measure_asks_again_for_more_fields(void **state) {
    fake f = {0};
    tn__measured m;
    (void)state;
    for (unsigned i = 0; i < FAKE_FIELDS_MAX; ++i)
        fake_add(&f, (i * 17) % FAKE_FIELDS_MAX, 8, N);
    assert_ok(tn__measure(fake_payload(&f), &m));
    assert_int_equal(f.measures, 2);
    assert_int_equal(m.storage_count, FAKE_FIELDS_MAX);
    assert_int_equal(m.storage_bytes, 8 * FAKE_FIELDS_MAX);
    for (unsigned i = 0; i < FAKE_FIELDS_MAX; ++i)
        assert_ptr_equal(m.storages[i].base, fake_base(i));
    tn__measured_fini(&m);
    assert_int_equal(tn__alloc_live(), 0);
    tn__fault_alloc(1);
    assert_status(measure_status(&f), TN_ERR_HOST_MEMORY);
    assert_true(tn__fault_alloc_fired());
    assert_ok(measure_status(&f));
}

static void measure_gives_up_on_a_count_that_grows(void **state) {
    fake f = {.grow = 1};
    (void)state;
    for (unsigned i = 0; i < 9; ++i)
        fake_add(&f, i, 8, P);
    assert_status(measure_status(&f), TN_ERR_PAYLOAD);
    f = (fake){.count = SIZE_MAX};
    assert_status(measure_status(&f), TN_ERR_PAYLOAD);
}

static void measure_finds_the_location(void **state) {
    fake f = {0};
    (void)state;
    fake_add(&f, 1, 8, P);
    check_at(&f, P, false);
    fake_add(&f, 2, 8, N);
    check_at(&f, tn_location_none(), false); /* M28 */
    f = (fake){0};
    fake_add(&f, 1, 8, (tn_location){TN_LOCATION_PINNED, 5});
    check_at(&f, N, false);
    fake_add(&f, 0, 0, P); /* G22: neutral */
    check_at(&f, N, false);
    f = (fake){0};
    fake_add(&f, 1, 8, C(3));
    fake_add(&f, 2, 8, C(3));
    fake_add(&f, 0, 0, tn_location_none());
    check_at(&f, C(3), false);
}

static void measure_of_empty_fields_is_neutral(void **state) {
    fake f = {0};
    (void)state;
    fake_add(&f, 0, 0, N);
    check_at(&f, P, true);
    fake_add(&f, 0, 0, P);
    check_at(&f, P, true);
    f = (fake){0};
    fake_add(&f, 0, 0, tn_location_none());
    check_at(&f, P, true);
    f = (fake){0};
    fake_add(&f, 0, 0, C(1));
    check_at(&f, C(1), false);
}

static void measure_refuses_unusable_payloads(void **state) {
    static const tn_location pairs[][2] = {
        {{TN_LOCATION_PAGEABLE, 0}, {TN_LOCATION_CUDA, 0}},
        {{TN_LOCATION_CUDA, 0}, {TN_LOCATION_PINNED, 0}},
        {{TN_LOCATION_CUDA, 0}, {TN_LOCATION_CUDA, 1}},
        {{TN_LOCATION_CUDA, 0}, {TN_LOCATION_CUDA, 128}},
        {{TN_LOCATION_PAGEABLE, 0}, {TN_LOCATION_NONE, 0}},
        {{TN_LOCATION_PAGEABLE, 0}, {4, 0}},
    };
    fake f = {0};
    (void)state;
    assert_status(measure_status(&f), TN_ERR_PAYLOAD); /* no fields */
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; ++i) {
        f = (fake){0};
        fake_add(&f, 1, 8, pairs[i][0]);
        fake_add(&f, 2, 8, pairs[i][1]);
        assert_status(measure_status(&f), TN_ERR_PAYLOAD);
    }
    f = (fake){0};
    fake_add(&f, 1, 8, C(0));
    fake_add(&f, 0, 0, P); /* an empty field is on a device too (M24) */
    assert_status(measure_status(&f), TN_ERR_PAYLOAD);
    f = (fake){0};
    fake_add(&f, 1, 8, P);
    fake_add(&f, 1, 16, P); /* two sizes */
    assert_status(measure_status(&f), TN_ERR_PAYLOAD);
    f = (fake){0};
    fake_add(&f, 1, 8, P);
    f.fields[0].base = NULL;
    assert_status(measure_status(&f), TN_ERR_PAYLOAD);
}

static void measure_caps_sums(void **state) {
    fake f = {0};
    (void)state;
    fake_add(&f, 1, INT64_MAX, P);
    assert_ok(measure_status(&f));
    fake_add(&f, 2, 1, P);
    f.logical = INT64_MAX;
    assert_status(measure_status(&f), TN_ERR_PAYLOAD);
    f.count = 1;
    f.logical = (uint64_t)INT64_MAX + 1;
    assert_status(measure_status(&f), TN_ERR_PAYLOAD);
    f.logical = 1;
    f.fields[0].bytes = UINT64_MAX;
    assert_status(measure_status(&f), TN_ERR_PAYLOAD);
}

static void measure_checks_the_payload(void **state) {
    fake f = {0};
    tn__measured m;
    tn_value_type broken = fake_type;
    (void)state;
    broken.measure = NULL;
    assert_status(tn__measure((tn_payload){&fake_type, NULL}, &m), TN_ERR_KIND);
    assert_status(tn__measure((tn_payload){NULL, &f}, &m), TN_ERR_KIND);
    assert_status(tn__measure((tn_payload){&broken, &f}, &m), TN_ERR_KIND);
}

/* V3 */
static void measure_reports_what_the_callback_reports(void **state) {
    fake f = {.status = TN_ERR_DEVICE_LOST};
    (void)state;
    (void)tn__fail(TN_ERR_DEVICE_LOST, "an older failure");
    assert_status(measure_status(&f), TN_ERR_DEVICE_LOST);
    assert_null(strstr(tn_last_error()->message, "older"));
    assert_non_null(strstr(tn_last_error()->message, "fake"));
    f.own_error = true;
    assert_status(measure_status(&f), TN_ERR_DEVICE_LOST);
    assert_int_equal(tn_last_error()->native_code, 77);
    f.status = (tn_status)4711;
    assert_status(measure_status(&f), TN_ERR_PAYLOAD);
    assert_int_equal(tn_last_error()->native_code, 4711);
    assert_int_equal(tn_last_error()->status, TN_ERR_PAYLOAD);
}

static void measure_success_keeps_the_last_error(void **state) {
    fake f = {0};
    (void)state;
    fake_add(&f, 1, 8, P);
    (void)tn__fail(TN_ERR_STALE, "an older failure");
    assert_ok(measure_status(&f));
    assert_int_equal(tn_last_error()->status, TN_ERR_STALE);
    assert_string_equal(tn_last_error()->message, "an older failure");
}

static void payload_measure_writes_only_on_success(void **state) {
    fake f = {0};
    struct {
        tn_measure m;
        uint64_t more;
    } newer = {TN_MEASURE_INIT, 5};
    tn_measure m = TN_MEASURE_INIT;
    (void)state;
    assert_status(tn_payload_measure(fake_payload(&f), NULL), TN_ERR_KIND);
    m.size = 8;
    assert_status(tn_payload_measure(fake_payload(&f), &m), TN_ERR_KIND);
    m.size = sizeof m;
    m.logical_bytes = 99;
    assert_status(tn_payload_measure(fake_payload(&f), &m), TN_ERR_PAYLOAD);
    assert_int_equal(m.logical_bytes, 99);
    for (unsigned i = 0; i < 20; ++i)
        fake_add(&f, i % 10, 8, C(2));
    assert_ok(tn_payload_measure(fake_payload(&f), &m));
    assert_int_equal(m.logical_bytes, 160);
    assert_int_equal(m.storage_bytes, 80);
    assert_true(tn_location_equal(m.at, C(2)));
    newer.m.size = sizeof newer;
    assert_ok(tn_payload_measure(fake_payload(&f), &newer.m));
    assert_int_equal(newer.m.size, sizeof newer);
    assert_int_equal(newer.more, 0);
    assert_int_equal(tn__alloc_live(), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(measure_counts_each_allocation_once),
    cmocka_unit_test(measure_asks_again_for_more_fields),
    cmocka_unit_test(measure_gives_up_on_a_count_that_grows),
    cmocka_unit_test(measure_finds_the_location),
    cmocka_unit_test(measure_of_empty_fields_is_neutral),
    cmocka_unit_test(measure_refuses_unusable_payloads),
    cmocka_unit_test(measure_caps_sums),
    cmocka_unit_test(measure_checks_the_payload),
    cmocka_unit_test(measure_reports_what_the_callback_reports),
    cmocka_unit_test(measure_success_keeps_the_last_error),
    cmocka_unit_test(payload_measure_writes_only_on_success),
};

TN_TEST_MAIN("unit.value_measure", tests)
