/* SPDX-License-Identifier: MIT */
/* src/base/text.c, src/base/status.c: labels, locations as given and as text, names of statuses. */
#include <string.h>

#include <tenure/types.h>

#include "base/base_internal.h"
#include "tn_test.h"

static void text_is_blank_if_it_shows_nothing(void **state) {
    (void)state;
    assert_true(tn__blank(""));
    assert_true(tn__blank(" \t\n\v\f\r"));
    assert_false(tn__blank(" x "));
    assert_false(tn__blank("\xc2\xa0")); /* a space, but not of ASCII */
}

static void text_is_checked_for_kind_length_and_blanks(void **state) {
    char text[300];
    (void)state;
    assert_status(tn__check_text(NULL, "t"), TN_ERR_KIND);
    assert_status(tn__check_text("", "t"), TN_ERR_VALUE);
    assert_status(tn__check_text("  ", "t"), TN_ERR_VALUE);
    memset(text, 'x', sizeof text); /* never ends */
    assert_status(tn__check_text(text, "t"), TN_ERR_VALUE);
    text[256] = '\0';
    assert_status(tn__check_text(text, "t"), TN_ERR_VALUE);
    text[255] = '\0';
    assert_ok(tn__check_text(text, "t"));
}

static void location_is_checked_and_made_plain(void **state) {
    tn_location out = {9, 9};
    (void)state;
    assert_status(tn__location_in((tn_location){TN_LOCATION_NONE, 0}, &out), TN_ERR_KIND);
    assert_status(tn__location_in((tn_location){TN_LOCATION_CUDA + 1, 0}, &out), TN_ERR_KIND);
    assert_status(tn__location_in((tn_location){TN_LOCATION_CUDA, TN_CUDA_INDEX_MAX + 1}, &out),
                  TN_ERR_VALUE);
    assert_int_equal(out.kind, 9);
    assert_ok(tn__location_in((tn_location){TN_LOCATION_PINNED, 7}, &out));
    assert_int_equal(out.kind, TN_LOCATION_PINNED);
    assert_int_equal(out.index, 0);
    assert_ok(tn__location_in((tn_location){TN_LOCATION_CUDA, TN_CUDA_INDEX_MAX}, &out));
    assert_int_equal(out.index, TN_CUDA_INDEX_MAX);
}

static void location_has_a_name(void **state) {
    char name[TN_LOCATION_NAME_MAX];
    (void)state;
    assert_string_equal(tn__location_text(tn_location_none(), name), "none");
    assert_string_equal(tn__location_text(tn_location_pageable(), name), "pageable-host");
    assert_string_equal(tn__location_text(tn_location_pinned(), name), "pinned-host");
    assert_string_equal(tn__location_text(tn_location_cuda(127), name), "cuda:127");
    assert_true(tn__location_same((tn_location){1, 4}, (tn_location){1, 5}));
    assert_false(tn__location_same(tn_location_cuda(0), tn_location_cuda(1)));
    assert_false(tn__location_same(tn_location_cuda(0), tn_location_pinned()));
}

static void status_has_name_text_and_advice(void **state) {
    (void)state;
#define CHECK(name, number, text, advice)                                                          \
    assert_string_equal(tn_status_name(TN_##name), "TN_" #name);                                   \
    assert_int_equal(TN_##name, number);                                                           \
    assert_true(tn_status_text(TN_##name)[0] != '\0');                                             \
    assert_true(tn_status_advice(TN_##name)[0] != '\0');
    TN_STATUS_MAP(CHECK)
#undef CHECK
    assert_string_equal(tn_status_name((tn_status)9999), "TN_UNKNOWN");
    assert_string_equal(tn_status_text((tn_status)-1), "unknown status");
    assert_true(tn_status_advice((tn_status)9999)[0] != '\0');
}

static void sums_are_capped(void **state) {
    (void)state;
    assert_int_equal(tn__add_capped(1, 2), 3);
    assert_int_equal(tn__add_capped(UINT64_MAX, 0), UINT64_MAX);
    assert_int_equal(tn__add_capped(UINT64_MAX - 1, 2), UINT64_MAX);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(text_is_blank_if_it_shows_nothing),
    cmocka_unit_test(text_is_checked_for_kind_length_and_blanks),
    cmocka_unit_test(location_is_checked_and_made_plain),
    cmocka_unit_test(location_has_a_name),
    cmocka_unit_test(status_has_name_text_and_advice),
    cmocka_unit_test(sums_are_capped),
};

TN_TEST_MAIN("unit.base_text", tests)
