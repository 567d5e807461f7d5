/* SPDX-License-Identifier: MIT */
/* src/base/structs.c: versioned structs of older and newer callers, in and out. */
#include <string.h>

#include "base/base_internal.h"
#include "tn_test.h"

/* A struct of ours, as an older and as a newer caller knows it. */
struct ours {
    size_t size;
    uint64_t a, b;
};

struct older {
    size_t size;
    uint64_t a;
};

struct newer {
    size_t size;
    uint64_t a, b, c;
};

static tn_status in(struct ours *to, const void *from) {
    return tn__struct_in(to, sizeof *to, sizeof(size_t) + 1, from, "struct ours");
}

static void struct_of_our_size_is_copied(void **state) {
    struct ours from = {sizeof from, 1, 2}, to = {0, 0, 0};
    (void)state;
    assert_ok(in(&to, &from));
    assert_memory_equal(&to, &from, sizeof to);
}

static void struct_of_an_older_caller_is_filled_with_zeroes(void **state) {
    struct older from = {sizeof from, 1};
    struct ours to = {9, 9, 9};
    (void)state;
    assert_ok(in(&to, &from));
    assert_int_equal(to.size, sizeof to);
    assert_int_equal(to.a, 1);
    assert_int_equal(to.b, 0);
}

static void struct_of_a_newer_caller_is_taken_if_it_asks_nothing_new(void **state) {
    struct newer from = {sizeof from, 1, 2, 0};
    struct ours to = {0, 0, 0};
    (void)state;
    assert_ok(in(&to, &from));
    assert_int_equal(to.size, sizeof to);
    assert_int_equal(to.b, 2);
    from.c = UINT64_C(1) << 63;
    assert_status(in(&to, &from), TN_ERR_KIND);
}

static void struct_that_is_none_is_refused(void **state) {
    struct ours from = {sizeof from, 1, 2}, to = {5, 6, 7}, before = to;
    const size_t bad[] = {0, 1, sizeof(size_t), 65537, SIZE_MAX};
    (void)state;
    assert_status(in(&to, NULL), TN_ERR_KIND);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        from.size = bad[i];
        assert_status(in(&to, &from), TN_ERR_KIND);
    }
    assert_memory_equal(&to, &before, sizeof to);
}

static void struct_out_is_checked_before_work(void **state) {
    struct ours out = {sizeof out, 0, 0};
    const size_t bad[] = {0, sizeof(size_t) - 1, 65537, SIZE_MAX};
    (void)state;
    assert_ok(tn__struct_check_out(&out, sizeof(size_t), "out"));
    assert_status(tn__struct_check_out(NULL, sizeof(size_t), "out"), TN_ERR_KIND);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        out.size = bad[i];
        assert_status(tn__struct_check_out(&out, sizeof(size_t), "out"), TN_ERR_KIND);
    }
}

static void struct_out_keeps_the_callers_size(void **state) {
    const struct ours from = {sizeof from, 1, 2};
    struct older older[2] = {{sizeof older[0], 0}, {77, 77}};
    struct newer newer = {sizeof newer, 9, 9, 9};
    struct ours same = {sizeof same, 9, 9};
    (void)state;
    tn__struct_out(&older[0], &from, sizeof from);
    assert_int_equal(older[0].size, sizeof older[0]);
    assert_int_equal(older[0].a, 1);
    assert_int_equal(older[1].size, 77); /* not a byte beyond */
    tn__struct_out(&newer, &from, sizeof from);
    assert_int_equal(newer.size, sizeof newer);
    assert_int_equal(newer.b, 2);
    assert_int_equal(newer.c, 0);
    tn__struct_out(&same, &from, sizeof from);
    assert_memory_equal(&same, &from, sizeof same);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(struct_of_our_size_is_copied),
    cmocka_unit_test(struct_of_an_older_caller_is_filled_with_zeroes),
    cmocka_unit_test(struct_of_a_newer_caller_is_taken_if_it_asks_nothing_new),
    cmocka_unit_test(struct_that_is_none_is_refused),
    cmocka_unit_test(struct_out_is_checked_before_work),
    cmocka_unit_test(struct_out_keeps_the_callers_size),
};

TN_TEST_MAIN("unit.base_structs", tests)
