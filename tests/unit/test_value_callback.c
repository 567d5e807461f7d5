/* SPDX-License-Identifier: MIT */
/* src/value/callback.c: V3, V4. */
#include "tn_test.h"

#include "value_fake.h"

static tn_status end(tn_status inner, tn_status returned) {
    tn__callback call;
    tn__callback_begin(&call);
    if (inner != TN_OK)
        tn__error(inner, "inner words")->native_code = 5;
    assert_int_equal(tn__callback_has_error(&call), inner != TN_OK);
    return tn__callback_end(&call, returned, TN_ERR_SOURCE, "doing", "this");
}

static void success_keeps_the_last_error(void **state) {
    (void)state;
    (void)tn__fail(TN_ERR_STALE, "older words");
    assert_ok(end(TN_OK, TN_OK));
    assert_int_equal(tn_last_error()->status, TN_ERR_STALE);
    assert_string_equal(tn_last_error()->message, "older words");
    assert_ok(
        end(TN_ERR_LOOKUP, TN_OK)); /* a call that failed inside is a failing call of this thread */
    assert_int_equal(tn_last_error()->status, TN_ERR_LOOKUP);
}

static void failure_keeps_a_detail_of_the_same_status_only(void **state) {
    (void)state;
    (void)tn__fail(TN_ERR_LOOKUP, "older words");
    assert_status(end(TN_OK, TN_ERR_LOOKUP), TN_ERR_LOOKUP);
    assert_string_equal(tn_last_error()->message,
                        "doing of this failed: the handle is not one of this lease");
    assert_status(end(TN_ERR_LOOKUP, TN_ERR_LOOKUP), TN_ERR_LOOKUP);
    assert_string_equal(tn_last_error()->message, "inner words");
    assert_status(end(TN_ERR_LOOKUP, TN_ERR_STALE), TN_ERR_STALE);
    assert_int_equal(tn_last_error()->native_code, 0);
    assert_int_equal(tn_last_error()->status, TN_ERR_STALE);
}

static void failure_out_of_range_becomes_the_fallback(void **state) {
    const int32_t numbers[] = {-1, TN_ERR_SYSTEM + 1, TN_STATUS_LIMIT};
    (void)state;
    for (size_t i = 0; i < 3; ++i) {
        assert_status(end(TN_OK, (tn_status)numbers[i]), TN_ERR_SOURCE);
        assert_int_equal(tn_last_error()->status, TN_ERR_SOURCE);
        assert_int_equal(tn_last_error()->native_code, numbers[i]);
    }
}

static void cleanup_keeps_its_first_failure(void **state) {
    tn__cleanup cleanup = {TN_OK, 0};
    (void)state;
    tn__error(TN_ERR_BUDGET, "first")->native_code = 1;
    tn_error first = *tn_last_error();
    tn__cleanup_note(&cleanup, TN_OK);
    assert_int_equal(cleanup.status, TN_OK);
    tn__error(TN_ERR_DRIVER, "second")->native_code = 2;
    tn__cleanup_note(&cleanup, TN_ERR_DRIVER);
    tn__error(TN_ERR_DEVICE_LOST, "third")->native_code = 3;
    tn__cleanup_note(&cleanup, TN_ERR_DEVICE_LOST);
    assert_status(tn__cleanup_finish(&cleanup, &first, TN_ERR_BUDGET), TN_ERR_BUDGET);
    assert_string_equal(tn_last_error()->message, "first");
    assert_int_equal(tn_last_error()->native_code, 1);
    assert_int_equal(tn_last_error()->cleanup_status, TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->cleanup_native_code, 2);
    cleanup = (tn__cleanup){TN_ERR_DEVICE_LOST, 3}; /* one that is attached already stays */
    first = *tn_last_error();
    assert_status(tn__cleanup_finish(&cleanup, &first, TN_ERR_BUDGET), TN_ERR_BUDGET);
    assert_int_equal(tn_last_error()->cleanup_status, TN_ERR_DRIVER);
}

static void cleanup_destroy_notes_a_failure(void **state) {
    tn__cleanup cleanup = {TN_OK, 0};
    fake f = {0};
    (void)state;
    tn__cleanup_destroy(&cleanup, (tn_payload){&fake_type, NULL});
    tn__cleanup_destroy(&cleanup, fake_payload(&f));
    assert_int_equal(f.destroys, 1);
    assert_int_equal(cleanup.status, TN_OK);
    f.own_error = true;
    tn__cleanup_destroy(&cleanup, fake_payload(&f));
    assert_int_equal(cleanup.status, TN_ERR_DEVICE_LOST);
    assert_int_equal(cleanup.native_code, 78);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(success_keeps_the_last_error),
    cmocka_unit_test(failure_keeps_a_detail_of_the_same_status_only),
    cmocka_unit_test(failure_out_of_range_becomes_the_fallback),
    cmocka_unit_test(cleanup_keeps_its_first_failure),
    cmocka_unit_test(cleanup_destroy_notes_a_failure),
};

TN_TEST_MAIN("unit.value_callback", tests)
