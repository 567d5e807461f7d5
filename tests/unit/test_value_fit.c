/* SPDX-License-Identifier: MIT */
/* src/value/fit.c: M36, M58, M75, M95, G22. */
#include "tn_test.h"

#include "value_fake.h"

#define P tn_location_pageable()
#define N tn_location_pinned()
#define C(i) tn_location_cuda(i)

static tn__measured measured_at(tn_location at) {
    return (tn__measured){.logical_bytes = 16, .storage_bytes = 24, .at = at};
}

static void agreement_needs_the_same_location(void **state) {
    const tn_location all[] = {P, N, C(0), C(1)};
    (void)state;
    for (size_t i = 0; i < 4; ++i)
        for (size_t j = 0; j < 4; ++j) {
            tn__measured m = measured_at(all[i]);
            assert_status(tn__check_agreement(&m, all[j]), i == j ? TN_OK : TN_ERR_MATERIALIZATION);
            if (i != j)
                assert_true(tn_location_equal(tn_last_error()->at, all[j]));
        }
}

static void agreement_refuses_a_mixed_payload_everywhere(void **state) {
    tn__measured m = measured_at(tn_location_none());
    (void)state;
    assert_status(tn__check_agreement(&m, P), TN_ERR_MATERIALIZATION);
    assert_status(tn__check_agreement(&m, N), TN_ERR_MATERIALIZATION);
    assert_status(tn__check_agreement(&m, C(0)), TN_ERR_MATERIALIZATION);
}

static void agreement_takes_a_neutral_payload_at_both_hosts(void **state) {
    tn__measured m = measured_at(P);
    (void)state;
    m.neutral = true;
    assert_ok(tn__check_agreement(&m, P));
    assert_ok(tn__check_agreement(&m, N));
    assert_status(tn__check_agreement(&m, C(0)), TN_ERR_MATERIALIZATION);
}

static tn_value_spec spec_of(const tn_value_type *type, uint64_t logical, uint64_t storage) {
    return (tn_value_spec){sizeof(tn_value_spec), type, logical, storage, TN_REPLICABLE,
                           TN_MUST_PRESERVE};
}

static void fit_takes_smaller_storage_and_subtypes(void **state) {
    tn_value_type sub = fake_type;
    tn__measured m = measured_at(P);
    tn_value_spec spec = spec_of(&fake_type, 16, 24);
    (void)state;
    sub.super = &fake_type;
    assert_ok(tn__check_fit(&spec, &fake_type, &m, P));
    assert_ok(tn__check_fit(&spec, &sub, &m, P));
    m.storage_bytes = 4;
    assert_ok(tn__check_fit(&spec, &sub, &m, P));
}

static void fit_checks_in_the_order_of_the_rules(void **state) {
    tn__measured m = measured_at(N);
    tn_value_spec spec = spec_of(&fake_type, 15, 15);
    (void)state;
    /* everything is wrong: type first */
    assert_status(tn__check_fit(&spec, tn_buffer_type(), &m, P), TN_ERR_MATERIALIZATION);
    assert_non_null(strstr(tn_last_error()->message, "type"));
    assert_int_equal(tn_last_error()->expected, 0);
    assert_status(tn__check_fit(&spec, NULL, &m, P), TN_ERR_MATERIALIZATION);
    /* then the location */
    assert_status(tn__check_fit(&spec, &fake_type, &m, P), TN_ERR_MATERIALIZATION);
    assert_non_null(strstr(tn_last_error()->message, "pinned-host"));
    /* then the logical bytes */
    m.at = P;
    assert_status(tn__check_fit(&spec, &fake_type, &m, P), TN_ERR_MATERIALIZATION);
    assert_int_equal(tn_last_error()->expected, 15);
    assert_int_equal(tn_last_error()->actual, 16);
    /* then the ceiling: storage, or logical bytes where they are larger */
    spec = spec_of(&fake_type, 16, 23);
    assert_status(tn__check_fit(&spec, &fake_type, &m, P), TN_ERR_MATERIALIZATION);
    assert_int_equal(tn_last_error()->expected, 23);
    assert_int_equal(tn_last_error()->actual, 24);
    assert_true(tn_location_equal(tn_last_error()->at, P));
    m.storage_bytes = 23;
    assert_ok(tn__check_fit(&spec, &fake_type, &m, P));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(agreement_needs_the_same_location),
    cmocka_unit_test(agreement_refuses_a_mixed_payload_everywhere),
    cmocka_unit_test(agreement_takes_a_neutral_payload_at_both_hosts),
    cmocka_unit_test(fit_takes_smaller_storage_and_subtypes),
    cmocka_unit_test(fit_checks_in_the_order_of_the_rules),
};

TN_TEST_MAIN("unit.value_fit", tests)
