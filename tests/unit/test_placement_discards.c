/* SPDX-License-Identifier: MIT */
/* Discarded values: which stay visible. Covers M10, D12, F1. */
#include "placement_fixture.h"

static void discard(tn__store *s, uint64_t index) {
    tn__build b;
    begin(s, &b);
    assert_ok(tn__build_discard(&b, index));
    publish(s, &b);
}

static void discard_forgets_the_oldest_beyond_the_limit(void **state) {
    (void)state;
    static const uint64_t limits[] = {1, 2, 16, 17, 50, 1000};
    for (size_t l = 0; l < sizeof limits / sizeof limits[0]; l++) {
        uint64_t keep = limits[l], blocks = tn__alloc_live();
        tn__store *s = make_store(keep);
        populate(s, 200, tn_location_pinned(), 0);
        tn__build b;
        begin(s, &b);
        for (uint64_t i = 1; i <= 200; i++)
            assert_ok(tn__build_remove(&b, tn__version_value(b.next, i)->mats[0]));
        publish(s, &b);
        for (uint64_t n = 1; n <= 150; n++) {
            discard(s, (n * 7) % 200 + 1);
            uint64_t visible = n < keep ? n : keep;
            assert_int_equal(s->newest->value_count, 200 - n + visible);
            for (uint64_t k = 1; k <= n; k++) {
                const tn__value *value = tn__version_value(s->newest, (k * 7) % 200 + 1);
                assert_int_equal(value != NULL, k + visible > n);
                assert_true(!value || value->discarded);
            }
        }
        assert_null(version_fault(s->newest));
        collect(s);
        tn__store_release(s);
        assert_int_equal(tn__alloc_live(), blocks);
    }
}

/* A value that was never loaded: the discard itself makes the copies. */
static void discard_of_an_unloaded_value_survives_each_failure(void **state) {
    (void)state;
    tn__store *s = make_store(4);
    tn__build b;
    begin(s, &b);
    uint64_t index = add(&b, 1);
    publish(s, &b);
    collect(s);
    uint64_t blocks = tn__alloc_live(), failures = 0;
    for (;; failures++) {
        begin(s, &b);
        tn__fault_alloc(failures + 1);
        tn_status status = tn__build_discard(&b, index);
        tn__fault_alloc(0);
        if (status == TN_OK)
            break;
        assert_int_equal(status, TN_ERR_HOST_MEMORY);
        abort_build(s, &b);
        assert_int_equal(tn__alloc_live(), blocks);
        assert_false(tn__version_value(s->newest, index)->discarded);
    }
    publish(s, &b);
    assert_int_equal(failures, 3); /* value, leaf, ring */
    assert_true(tn__version_value(s->newest, index)->discarded);
    tn__store_release(s);
}

static void discard_without_limit_keeps_all_at_no_cost(void **state) {
    (void)state;
    tn__store *s = make_store(TN_KEEP_ALL);
    tn__build b;
    begin(s, &b);
    for (uint64_t i = 0; i < 100; i++)
        add(&b, 1);
    publish(s, &b);
    for (uint64_t i = 1; i <= 100; i++)
        discard(s, i);
    assert_int_equal(s->newest->value_count, 100);
    assert_null(s->discarded);
    tn__store_release(s);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(discard_forgets_the_oldest_beyond_the_limit),
    cmocka_unit_test(discard_of_an_unloaded_value_survives_each_failure),
    cmocka_unit_test(discard_without_limit_keeps_all_at_no_cost),
};

TN_TEST_MAIN("unit.placement_discards", tests)
