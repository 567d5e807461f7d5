/* SPDX-License-Identifier: MIT */
/* src/value/types.c: M3, M5, M11..M15, M34, M36 (subtypes). */
#include "tn_test.h"

#include "value_fake.h"

/* ---- Locations ---- */

static void location_make_accepts_the_documented_texts(void **state) {
    static const struct {
        uint32_t kind;
        const char *text;
        tn_location want;
    } cases[] = {
        {TN_LOCATION_PAGEABLE, "cpu", {TN_LOCATION_PAGEABLE, 0}},
        {TN_LOCATION_PAGEABLE, "cpu:0", {TN_LOCATION_PAGEABLE, 0}},
        {TN_LOCATION_PINNED, "cpu", {TN_LOCATION_PINNED, 0}},
        {TN_LOCATION_PINNED, "cpu:7", {TN_LOCATION_PINNED, 0}},
        {TN_LOCATION_PINNED, "cpu:4000000000000000000000", {TN_LOCATION_PINNED, 0}},
        {TN_LOCATION_CUDA, "cuda:0", {TN_LOCATION_CUDA, 0}},
        {TN_LOCATION_CUDA, "cuda:10", {TN_LOCATION_CUDA, 10}},
        {TN_LOCATION_CUDA, "cuda:127", {TN_LOCATION_CUDA, 127}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        tn_location at = {99, 99};
        assert_ok(tn_location_make(cases[i].kind, cases[i].text, &at));
        assert_int_equal(at.kind, cases[i].want.kind);
        assert_int_equal(at.index, cases[i].want.index);
    }
}

static void location_make_refuses_everything_else(void **state) {
    static const char *const texts[] = {
        "cuda",
        "cuda:",
        "cuda:00",
        "cuda:01",
        "cuda:-1",
        "cuda:+1",
        "cuda:128",
        "cuda:256",
        "cuda:999",
        "CUDA:0",
        "cuda: 1",
        "cuda:0 ",
        "cuda:1a",
        "cuda0",
        "",
        "gpu:0",
        "cpu",
        "cpu:0",
        "cpu:",
        "cpu:00",
        "cuda:4294967296",
        "cuda:18446744073709551616",
    };
    tn_location at = {99, 99};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i)
        assert_status(tn_location_make(TN_LOCATION_CUDA, texts[i], &at), TN_ERR_VALUE);
    assert_status(tn_location_make(TN_LOCATION_PAGEABLE, "cuda:0", &at), TN_ERR_VALUE);
    assert_status(tn_location_make(TN_LOCATION_PINNED, "cuda:0", &at), TN_ERR_VALUE);
    assert_status(tn_location_make(TN_LOCATION_PINNED, "cpu:01", &at), TN_ERR_VALUE);
    assert_status(tn_location_make(TN_LOCATION_PINNED, "cpu:-1", &at), TN_ERR_VALUE);
    assert_status(tn_location_make(TN_LOCATION_NONE, "cpu", &at), TN_ERR_VALUE);
    assert_status(tn_location_make(4, "cpu", &at), TN_ERR_VALUE);
    assert_status(tn_location_make(TN_LOCATION_CUDA, NULL, &at), TN_ERR_KIND);
    assert_status(tn_location_make(TN_LOCATION_CUDA, "cuda:0", NULL), TN_ERR_KIND);
    assert_int_equal(at.kind, 99); /* never written */
    assert_int_equal(at.index, 99);
}

static void check_name(tn_location at, const char *want) {
    char text[TN_LOCATION_NAME_MAX];
    char exact[TN_LOCATION_NAME_MAX];
    assert_ok(tn_location_name(at, text, sizeof text));
    assert_string_equal(text, want);
    assert_ok(tn_location_name(at, exact, strlen(want) + 1));
    assert_string_equal(exact, want);
    assert_status(tn_location_name(at, exact, strlen(want)), TN_ERR_VALUE);
    assert_status(tn_location_name(at, exact, 0), TN_ERR_VALUE);
}

static void location_name_is_the_diagnostic_one(void **state) {
    char text[TN_LOCATION_NAME_MAX];
    (void)state;
    check_name(tn_location_pageable(), "pageable-host");
    check_name(tn_location_pinned(), "pinned-host");
    check_name(tn_location_cuda(0), "cuda:0");
    check_name(tn_location_cuda(127), "cuda:127");
    check_name(tn_location_none(), "none");
    assert_status(tn_location_name(tn_location_cuda(0), NULL, 16), TN_ERR_KIND);
    assert_status(tn_location_name((tn_location){4, 0}, text, sizeof text), TN_ERR_KIND);
    assert_status(tn_location_name(tn_location_cuda(128), text, sizeof text), TN_ERR_VALUE);
}

static void location_equal_ignores_host_indices(void **state) {
    (void)state;
    assert_true(tn_location_equal((tn_location){TN_LOCATION_PINNED, 3}, tn_location_pinned()));
    assert_true(tn_location_equal(tn_location_cuda(3), tn_location_cuda(3)));
    assert_false(tn_location_equal(tn_location_cuda(3), tn_location_cuda(4)));
    assert_false(tn_location_equal(tn_location_pinned(), tn_location_pageable()));
}

/* ---- Handles ---- */

static void handle_make_checks_form_only(void **state) {
    tn_handle h = {9, 9, NULL};
    (void)state;
    assert_status(tn_handle_make(1, 1, &fake_type, NULL), TN_ERR_KIND);
    assert_status(tn_handle_make(1, 1, NULL, &h), TN_ERR_KIND);
    assert_status(tn_handle_make(0, 0, NULL, &h), TN_ERR_KIND);
    assert_status(tn_handle_make(0, 1, &fake_type, &h), TN_ERR_VALUE);
    assert_status(tn_handle_make(1, 0, &fake_type, &h), TN_ERR_VALUE);
    assert_int_equal(h.manager, 9);
    assert_ok(tn_handle_make(1, 2, &fake_type, &h));
    assert_int_equal(h.manager, 1);
    assert_int_equal(h.index, 2);
    assert_ptr_equal(h.type, &fake_type);
}

static void handle_equality_and_hash_use_all_three_parts(void **state) {
    tn_handle h = {1, 2, &fake_type};
    tn_handle others[] = {
        {2, 2, &fake_type}, {1, 3, &fake_type}, {2, 1, &fake_type}, {1, 2, tn_buffer_type()}};
    (void)state;
    assert_true(tn_handle_equal(h, h));
    assert_true(tn_handle_hash(h) == tn_handle_hash((tn_handle){1, 2, &fake_type}));
    for (size_t i = 0; i < sizeof others / sizeof *others; ++i) {
        assert_false(tn_handle_equal(h, others[i]));
        assert_true(tn_handle_hash(h) != tn_handle_hash(others[i]));
    }
}

/* Consecutive indices must fill tables of a power of two evenly. */
static void handle_hash_spreads_indices(void **state) {
    unsigned filled[256] = {0};
    unsigned most = 0;
    (void)state;
    for (uint64_t i = 1; i <= 256 * 64; ++i) {
        tn_handle h = {1, i, &fake_type};
        unsigned n = ++filled[tn_handle_hash(h) & 255];
        most = n > most ? n : most;
    }
    assert_in_range(most, 64, 128);
}

/* ---- Types ---- */

static void type_valid_needs_every_member(void **state) {
    char name[300];
    tn_value_type t = fake_type;
    (void)state;
    assert_false(tn__type_valid(NULL));
    assert_true(tn__type_valid(&t));
    t.size = sizeof t - 1;
    assert_false(tn__type_valid(&t));
    t.size = 0;
    assert_false(tn__type_valid(&t));
    t.size = SIZE_MAX;
    assert_false(tn__type_valid(&t));
    t = fake_type;
    t.name = NULL;
    assert_false(tn__type_valid(&t));
    t.name = " \t";
    assert_false(tn__type_valid(&t));
    memset(name, 'x', sizeof name);
    name[256] = '\0';
    t.name = name;
    assert_false(tn__type_valid(&t));
    name[255] = '\0';
    assert_true(tn__type_valid(&t));
    t = fake_type;
    t.measure = NULL;
    assert_false(tn__type_valid(&t));
    t = fake_type;
    t.copy = NULL;
    assert_false(tn__type_valid(&t));
    t = fake_type;
    t.destroy = NULL;
    assert_false(tn__type_valid(&t));
}

static void type_of_a_newer_header_is_valid_if_the_rest_is_zero(void **state) {
    struct {
        tn_value_type type;
        void *more;
    } newer = {fake_type, NULL};
    (void)state;
    newer.type.size = sizeof newer;
    assert_true(tn__type_valid(&newer.type));
    newer.more = &newer;
    assert_false(tn__type_valid(&newer.type));
}

static void type_chain_ends_at_sixteen(void **state) {
    tn_value_type chain[TN_TYPE_DEPTH_MAX + 1];
    (void)state;
    for (size_t i = 0; i <= TN_TYPE_DEPTH_MAX; ++i) {
        chain[i] = fake_type;
        chain[i].super = i ? &chain[i - 1] : NULL;
    }
    assert_true(tn__type_valid(&chain[TN_TYPE_DEPTH_MAX - 1]));
    assert_false(tn__type_valid(&chain[TN_TYPE_DEPTH_MAX]));
    assert_true(tn_value_type_is(&chain[TN_TYPE_DEPTH_MAX - 1], &chain[0]));
    chain[0].super = &chain[3]; /* a ring */
    assert_false(tn__type_valid(&chain[3]));
    assert_false(tn_value_type_is(&chain[3], &fake_type));
    chain[0].super = NULL;
    chain[1].copy = NULL; /* each link counts */
    assert_false(tn__type_valid(&chain[3]));
}

static void type_is_follows_super(void **state) {
    tn_value_type base = fake_type;
    tn_value_type middle = fake_type;
    tn_value_type leaf = fake_type;
    (void)state;
    middle.super = &base;
    leaf.super = &middle;
    assert_true(tn_value_type_is(&leaf, &leaf));
    assert_true(tn_value_type_is(&leaf, &base));
    assert_true(tn_value_type_is(&middle, &base));
    assert_false(tn_value_type_is(&base, &leaf));
    assert_false(tn_value_type_is(&leaf, &fake_type));
    assert_false(tn_value_type_is(NULL, &base));
    assert_false(tn_value_type_is(&leaf, NULL));
    assert_false(tn_value_type_is(NULL, NULL));
}

/* ---- Specs ---- */

static tn_status check_spec(uint64_t logical, uint64_t storage) {
    tn_value_spec spec = TN_VALUE_SPEC_INIT;
    spec.type = &fake_type;
    spec.logical_bytes = logical;
    spec.storage_bytes = storage;
    return tn_value_spec_check(&spec);
}

static void spec_check_bytes(void **state) {
    (void)state;
    assert_ok(check_spec(16, 24));
    assert_ok(check_spec(0, 0));
    assert_ok(check_spec(INT64_MAX, INT64_MAX));
    assert_status(check_spec(16, 8), TN_ERR_VALUE);
    assert_status(check_spec(32, 31), TN_ERR_VALUE);
    assert_status(check_spec(UINT64_MAX, UINT64_MAX), TN_ERR_VALUE); /* -1 */
    assert_status(check_spec(16, (uint64_t)INT64_MAX + 1), TN_ERR_VALUE);
}

static void spec_check_kinds(void **state) {
    tn_value_spec spec = TN_VALUE_SPEC_INIT;
    (void)state;
    assert_status(tn_value_spec_check(NULL), TN_ERR_KIND);
    assert_status(tn_value_spec_check(&spec), TN_ERR_KIND); /* no type */
    spec.type = &fake_type;
    assert_ok(tn_value_spec_check(&spec));
    spec.replica_mode = 2;
    assert_status(tn_value_spec_check(&spec), TN_ERR_KIND);
    spec.replica_mode = TN_REPLICABLE;
    spec.recoverability = 2;
    assert_status(tn_value_spec_check(&spec), TN_ERR_KIND);
    spec.recoverability = TN_RECONSTRUCTIBLE;
    assert_ok(tn_value_spec_check(&spec));
    spec.size = sizeof spec - 1;
    assert_status(tn_value_spec_check(&spec), TN_ERR_KIND);
    spec.size = 0;
    assert_status(tn_value_spec_check(&spec), TN_ERR_KIND);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(location_make_accepts_the_documented_texts),
    cmocka_unit_test(location_make_refuses_everything_else),
    cmocka_unit_test(location_name_is_the_diagnostic_one),
    cmocka_unit_test(location_equal_ignores_host_indices),
    cmocka_unit_test(handle_make_checks_form_only),
    cmocka_unit_test(handle_equality_and_hash_use_all_three_parts),
    cmocka_unit_test(handle_hash_spreads_indices),
    cmocka_unit_test(type_valid_needs_every_member),
    cmocka_unit_test(type_of_a_newer_header_is_valid_if_the_rest_is_zero),
    cmocka_unit_test(type_chain_ends_at_sixteen),
    cmocka_unit_test(type_is_follows_super),
    cmocka_unit_test(spec_check_bytes),
    cmocka_unit_test(spec_check_kinds),
};

TN_TEST_MAIN("unit.value_types", tests)
