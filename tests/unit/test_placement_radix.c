/* SPDX-License-Identifier: MIT */
/* The radix tree against plain arrays. Covers P1 (old trees stay), N1 (in place in one build), N2.
 */
#include "placement_fixture.h"

/* Items are addresses in this array; they are never looked into. */
static char items[200001];

static void *item_of(uint64_t i) { return &items[i]; }

static void free_node(void *context, tn__node *n) {
    (void)context;
    tn__node_free(n);
}

/* The trees of these tests belong to no version: free what is left of one. */
static void free_tree(tn__radix *r) {
    const tn__radix_visitor visitor = {NULL, free_node, NULL};
    tn__radix_walk(r, &visitor);
    *r = (tn__radix){0};
}

/* ---- Against an array --------------------------------------------------------------------- */

static void check_all(const tn__radix *r, void *const *model, uint64_t count, uint64_t step) {
    void *next = NULL;
    for (uint64_t i = count; i-- > 0;) {
        next = model[i] ? model[i] : next;
        if (i % step != 0 && i > 100 && i < count - 100)
            continue;
        assert_ptr_equal(tn__radix_find(r, i), model[i]);
        assert_ptr_equal(tn__radix_next(r, i), next);
    }
    for (uint64_t beyond = 0; beyond < 70; beyond++) {
        assert_null(tn__radix_find(r, count + beyond));
        assert_null(tn__radix_next(r, count + beyond));
    }
    assert_null(tn__radix_find(r, UINT64_MAX));
    assert_null(tn__radix_next(r, UINT64_MAX));
}

static void matches_array(uint64_t count) {
    uint64_t blocks = tn__alloc_live(), step = count > 5000 ? 7 : 1;
    tn__store *s = make_store(0);
    void **model = calloc(count, sizeof *model);
    assert_non_null(model);
    tn__radix r = {0};
    tn__build b;
    begin(s, &b);
    check_all(&r, model, count, step);
    for (uint64_t i = 0; i < count; i++) {
        model[i] = item_of(i);
        assert_true(tn__radix_set(&b, &r, i, model[i]));
    }
    check_all(&r, model, count, step);
    publish(s, &b);
    begin(s, &b);
    for (uint64_t i = 0; i < count; i += 3) {
        model[i] = NULL;
        assert_true(tn__radix_remove(&b, &r, i));
    }
    for (uint64_t i = 1; i < count; i += 3) {
        model[i] = item_of(i + 1);
        assert_true(tn__radix_set(&b, &r, i, model[i]));
    }
    check_all(&r, model, count, step);
    publish(s, &b);
    begin(s, &b);
    for (uint64_t i = count; i-- > 0;)
        if (model[i])
            assert_true(tn__radix_remove(&b, &r, i));
    assert_null(r.root);
    assert_int_equal(r.levels, 0);
    publish(s, &b);
    tn__store_release(s);
    free(model);
    assert_int_equal(tn__alloc_live(), blocks);
}

static void radix_of_1_index_matches_array(void **state) {
    (void)state;
    matches_array(1);
}

static void radix_of_32_indices_matches_array(void **state) {
    (void)state;
    matches_array(32);
}

static void radix_of_33_indices_matches_array(void **state) {
    (void)state;
    matches_array(33);
}

static void radix_of_1024_indices_matches_array(void **state) {
    (void)state;
    matches_array(1024);
}

static void radix_of_100k_indices_matches_array(void **state) {
    (void)state;
    matches_array(100000);
}

static void radix_depth_grows_with_the_index(void **state) {
    (void)state;
    static const struct {
        uint64_t index;
        uint32_t levels;
    } cases[] = {{0, 1},           {31, 1},         {32, 2},      {1023, 2},
                 {1024, 3},        {32767, 3},      {1 << 20, 5}, {(1 << 20) - 1, 4},
                 {1ull << 60, 13}, {UINT64_MAX, 13}};
    tn__store *s = make_store(0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tn__radix r = {0};
        tn__build b;
        begin(s, &b);
        assert_true(tn__radix_set(&b, &r, cases[i].index, item_of(1)));
        assert_int_equal(r.levels, cases[i].levels);
        assert_ptr_equal(tn__radix_find(&r, cases[i].index), item_of(1));
        assert_ptr_equal(tn__radix_next(&r, 0), item_of(1));
        assert_null(tn__radix_find(&r, cases[i].index ^ 1));
        assert_true(tn__radix_remove(&b, &r, cases[i].index));
        assert_null(r.root);
        abort_build(s, &b);
    }
    tn__store_release(s);
}

static void radix_of_far_apart_indices_finds_them_in_order(void **state) {
    (void)state;
    static const uint64_t indices[] = {3,          40,        5000, 1ull << 33, (1ull << 33) + 1,
                                       1ull << 62, UINT64_MAX};
    const size_t count = sizeof indices / sizeof indices[0];
    tn__store *s = make_store(0);
    tn__radix r = {0};
    tn__build b;
    begin(s, &b);
    for (size_t i = count; i-- > 0;)
        assert_true(tn__radix_set(&b, &r, indices[i], item_of(i + 1)));
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(tn__radix_find(&r, indices[i]), item_of(i + 1));
        assert_ptr_equal(tn__radix_next(&r, i ? indices[i - 1] + 1 : 0), item_of(i + 1));
        assert_ptr_equal(tn__radix_next(&r, indices[i]), item_of(i + 1));
    }
    abort_build(s, &b);
    tn__store_release(s);
}

/* ---- Versions of a tree ------------------------------------------------------------------- */

#define ROUNDS 24
#define SPAN 2500

static void change_some(tn__build *b, tn__radix *r, void **model, uint64_t *seed) {
    for (int i = 0; i < 60; i++) {
        uint64_t index = random_next(seed) % SPAN;
        if (model[index] && random_next(seed) % 2) {
            model[index] = NULL;
            assert_true(tn__radix_remove(b, r, index));
        } else {
            model[index] = item_of(random_next(seed) % 200000);
            assert_true(tn__radix_set(b, r, index, model[index]));
        }
    }
}

static void radix_of_old_versions_is_unchanged(void **state) {
    (void)state;
    static void *models[ROUNDS + 1][SPAN];
    tn__radix trees[ROUNDS + 1] = {{0}};
    const tn_version *pins[ROUNDS];
    uint64_t seed = random_start(), blocks = tn__alloc_live();
    tn__store *s = make_store(0);
    for (int round = 0; round < ROUNDS; round++) {
        tn__build b;
        pins[round] = tn__store_pin(s);
        memcpy(models[round + 1], models[round], sizeof models[0]);
        trees[round + 1] = trees[round];
        begin(s, &b);
        change_some(&b, &trees[round + 1], models[round + 1], &seed);
        publish(s, &b);
        collect(s);
    }
    for (int round = 0; round <= ROUNDS; round++)
        check_all(&trees[round], models[round], SPAN, 1);
    for (int round = 0; round < ROUNDS; round += 2) /* every other version is given up */
        tn__store_unpin(s, pins[round]);
    collect(s);
    for (int round = 1; round < ROUNDS; round += 2)
        check_all(&trees[round], models[round], SPAN, 1);
    for (int round = 1; round < ROUNDS; round += 2)
        tn__store_unpin(s, pins[round]);
    collect(s);
    check_all(&trees[ROUNDS], models[ROUNDS], SPAN, 1);
    free_tree(&trees[ROUNDS]);
    tn__store_release(s);
    assert_int_equal(tn__alloc_live(), blocks);
}

static void radix_aborted_build_leaves_the_tree(void **state) {
    (void)state;
    static void *model[SPAN], *scratch[SPAN];
    uint64_t seed = random_start();
    tn__store *s = make_store(0);
    tn__radix r = {0};
    tn__build b;
    memset(model, 0, sizeof model);
    begin(s, &b);
    for (int i = 0; i < 10; i++)
        change_some(&b, &r, model, &seed);
    publish(s, &b);
    uint64_t blocks = tn__alloc_live();
    for (int round = 0; round < 10; round++) {
        tn__radix next = r;
        memcpy(scratch, model, sizeof model);
        begin(s, &b);
        change_some(&b, &next, scratch, &seed);
        check_all(&next, scratch, SPAN, 1);
        abort_build(s, &b);
        check_all(&r, model, SPAN, 1);
        assert_int_equal(tn__alloc_live(), blocks);
    }
    free_tree(&r);
    tn__store_release(s);
}

static void radix_second_change_in_a_build_copies_nothing(void **state) {
    (void)state;
    tn__store *s = make_store(0);
    tn__radix r = {0};
    tn__build b;
    begin(s, &b);
    for (uint64_t i = 0; i < 2000; i++)
        assert_true(tn__radix_set(&b, &r, i, item_of(i)));
    publish(s, &b);
    begin(s, &b);
    assert_true(tn__radix_set(&b, &r, 1234, item_of(1)));
    uint64_t blocks = tn__alloc_live();
    assert_true(tn__radix_set(&b, &r, 1235, item_of(2)));
    assert_true(tn__radix_remove(&b, &r, 1236));
    assert_int_equal(tn__alloc_live(), blocks);
    publish(s, &b);
    free_tree(&r);
    tn__store_release(s);
}

/* Each allocation of a change fails in turn; the published tree stays as it was. */
static void radix_failed_change_leaves_the_tree(void **state) {
    (void)state;
    tn__store *s = make_store(0);
    tn__radix r = {0};
    tn__build b;
    begin(s, &b);
    for (uint64_t i = 0; i < 1500; i++)
        assert_true(tn__radix_set(&b, &r, i, item_of(i)));
    publish(s, &b);
    uint64_t blocks = tn__alloc_live();
    int failures = 0;
    for (uint64_t nth = 1;; nth++) {
        tn__radix next = r;
        begin(s, &b);
        tn__fault_alloc(nth);
        bool ok = tn__radix_set(&b, &next, 40000, item_of(1)) && tn__radix_remove(&b, &next, 700) &&
                  tn__radix_set(&b, &next, 0, item_of(2));
        assert_int_equal(ok, !tn__fault_alloc_fired());
        tn__fault_alloc(0);
        abort_build(s, &b);
        assert_int_equal(tn__alloc_live(), blocks);
        assert_ptr_equal(tn__radix_find(&r, 0), item_of(0));
        assert_ptr_equal(tn__radix_find(&r, 700), item_of(700));
        assert_null(tn__radix_find(&r, 40000));
        if (ok)
            break;
        failures++;
    }
    assert_true(failures >= 8); /* a deeper root, two new paths, and the old ones */
    free_tree(&r);
    tn__store_release(s);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(radix_of_1_index_matches_array),
    cmocka_unit_test(radix_of_32_indices_matches_array),
    cmocka_unit_test(radix_of_33_indices_matches_array),
    cmocka_unit_test(radix_of_1024_indices_matches_array),
    cmocka_unit_test(radix_of_100k_indices_matches_array),
    cmocka_unit_test(radix_depth_grows_with_the_index),
    cmocka_unit_test(radix_of_far_apart_indices_finds_them_in_order),
    cmocka_unit_test(radix_of_old_versions_is_unchanged),
    cmocka_unit_test(radix_aborted_build_leaves_the_tree),
    cmocka_unit_test(radix_second_change_in_a_build_copies_nothing),
    cmocka_unit_test(radix_failed_change_leaves_the_tree),
};

TN_TEST_MAIN("unit.placement_radix", tests)
