/* SPDX-License-Identifier: MIT */
/* Builds that fail or are aborted. Covers F1 for every step, N2. */
#include "placement_fixture.h"

/* What a script of steps works on, remade for each failure. */
struct scene {
    tn__store *store;
    tn__mat *mats[2]; /* to install */
};

typedef tn_status step_fn(struct scene *scene, tn__build *b);

static tn_status step_track(struct scene *scene, tn__build *b) {
    (void)scene;
    return tn__build_track(b, tn_location_cuda(9));
}

static tn_status step_add(struct scene *scene, tn__build *b) {
    tn_value_spec spec = make_spec(3);
    uint64_t index;
    (void)scene;
    return tn__build_add_value(b, &spec, NULL, tn_location_none(), &index);
}

static tn_status step_install(struct scene *scene, tn__build *b) {
    tn_status status = tn__build_track(b, tn_location_cuda(8));
    return status ? status : tn__build_install(b, 33, scene->mats[0]);
}

static tn__mat *resident(const struct scene *scene, uint64_t index) {
    return tn__value_mat(tn__version_value(scene->store->newest, index), tn_location_pinned());
}

static tn_status step_remove(struct scene *scene, tn__build *b) {
    return tn__build_remove(b, resident(scene, 34));
}

static tn_status step_move(struct scene *scene, tn__build *b) {
    tn_status status = tn__build_track(b, tn_location_pageable());
    status = status ? status : tn__build_install(b, 35, scene->mats[1]);
    return status ? status : tn__build_remove(b, resident(scene, 35));
}

static tn_status step_discard(struct scene *scene, tn__build *b) {
    tn_status status = tn__build_remove(b, resident(scene, 36));
    return status ? status : tn__build_discard(b, 36);
}

static tn_status step_clear(struct scene *scene, tn__build *b) {
    (void)scene;
    return tn__build_clear(b, NULL, NULL);
}

static tn_status step_all(struct scene *scene, tn__build *b) {
    step_fn *const steps[] = {step_add,    step_track, step_install,
                              step_remove, step_move,  step_discard};
    tn_status status = TN_OK;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && !status; i++)
        status = steps[i](scene, b);
    return status;
}

static tn_status step_all_and_clear(struct scene *scene, tn__build *b) {
    tn_status status = step_all(scene, b);
    return status ? status : step_clear(scene, b);
}

/* 16 values are discarded already, and that is the limit: the next discard forgets one. */
static struct scene make_scene(uint64_t keep) {
    struct scene scene = {.store = make_store(keep)};
    populate(scene.store, 1100, tn_location_pinned(), 4);
    for (uint64_t i = 1; i <= 16; i++) {
        tn__build b;
        begin(scene.store, &b);
        assert_ok(tn__build_remove(&b, resident(&scene, i)));
        assert_ok(tn__build_discard(&b, i));
        publish(scene.store, &b);
    }
    collect(scene.store);
    scene.mats[0] = make_mat(tn_location_cuda(8), 4);
    scene.mats[1] = make_mat(tn_location_pageable(), 4);
    return scene;
}

static void expect_untouched(const struct scene *scene, const tn_version *before, uint64_t blocks) {
    const tn_version *v = scene->store->newest;
    assert_ptr_equal(v, before);
    assert_int_equal(tn__alloc_live(), blocks);
    assert_null(version_fault(v));
    assert_int_equal(v->value_count, 1100);
    assert_int_equal(v->table->count, 1);
    assert_int_equal(v->table->places[0].used_bytes, 4 * (1100 - 16));
    assert_int_equal(scene->store->discarded_count,
                     scene->store->keep_discarded == TN_KEEP_ALL ? 0 : 16);
    for (uint64_t i = 17; i <= 1100; i++)
        assert_non_null(resident(scene, i));
}

/* Each allocation of a build fails in turn: abort, everything as before, and the same steps
 * succeed. */
static void fault_loop(step_fn *step, uint64_t keep, uint64_t at_least) {
    uint64_t outside = tn__alloc_live(), failures = 0;
    struct scene scene = make_scene(keep);
    const tn_version *before = scene.store->newest;
    tn__build b;
    assert_true(tn__discards_prepare(scene.store)); /* the ring's growth is kept by an abort */
    uint64_t blocks = tn__alloc_live();
    for (uint64_t nth = 1;; nth++) {
        tn__lock(&scene.store->lock);
        tn__fault_alloc(nth);
        tn_status status = tn__build_begin(scene.store, &b);
        if (!status)
            status = step(&scene, &b);
        bool fired = tn__fault_alloc_fired();
        tn__fault_alloc(0);
        assert_status(status, fired ? TN_ERR_HOST_MEMORY : TN_OK);
        if (status == TN_OK)
            break;
        assert_int_equal(tn_last_error()->status, TN_ERR_HOST_MEMORY);
        if (b.store)
            tn__build_abort(&b);
        tn__unlock(&scene.store->lock);
        expect_untouched(&scene, before, blocks);
        failures++;
    }
    bool installed[2] = {!b.fresh || scene.mats[0]->index, scene.mats[1]->index != 0};
    publish(scene.store, &b);
    assert_null(version_fault(scene.store->newest));
    assert_true(failures >= at_least);
    collect(scene.store);
    for (int i = 0; i < 2; i++)
        if (!installed[i])
            tn__mat_discard(scene.mats[i]);
    tn__store_release(scene.store);
    assert_int_equal(tn__alloc_live(), outside);
}

static void build_failed_step_can_be_aborted_and_repeated(void **state) {
    (void)state;
    fault_loop(step_track, 16, 2);
    fault_loop(step_add, 16, 5);
    fault_loop(step_install, 16, 8);
    fault_loop(step_remove, 16, 9);
    fault_loop(step_move, 16, 11);
    fault_loop(step_clear, 16, 2);
    fault_loop(step_discard, 16, 9);
    fault_loop(step_discard, 1000, 9);
    fault_loop(step_discard, TN_KEEP_ALL, 9);
    fault_loop(step_all, 16, 20);
    fault_loop(step_all_and_clear, 16, 20);
}

static void build_discard_fails_when_the_ring_cannot_grow(void **state) {
    (void)state;
    struct scene scene = make_scene(1000);
    tn__build b;
    begin(scene.store, &b);
    assert_ok(tn__build_remove(&b, resident(&scene, 36)));
    tn__fault_alloc(1); /* the value is private to the build already */
    assert_status(tn__build_discard(&b, 36), TN_ERR_HOST_MEMORY);
    tn__fault_alloc(0);
    abort_build(scene.store, &b);
    assert_int_equal(scene.store->discarded_count, 16);
    tn__mat_discard(scene.mats[0]);
    tn__mat_discard(scene.mats[1]);
    tn__store_release(scene.store);
}

static void build_abort_frees_all_but_materializations(void **state) {
    (void)state;
    struct scene scene = make_scene(16);
    const tn_version *before = scene.store->newest;
    tn__build b;
    uint64_t blocks = tn__alloc_live();
    for (int i = 0; i < 2; i++) {
        begin(scene.store, &b);
        assert_ok(step_all(&scene, &b));
        assert_int_equal(add(&b, 1), 1102); /* indices of an aborted build are issued again */
        abort_build(scene.store, &b);
        expect_untouched(&scene, before, blocks);
    }
    tn__mat_discard(scene.mats[0]);
    tn__mat_discard(scene.mats[1]);
    tn__store_release(scene.store);
}

static void store_creation_survives_each_failure(void **state) {
    (void)state;
    static const tn_budget budgets[] = {{{TN_LOCATION_CUDA, 1}, 10},
                                        {{TN_LOCATION_PAGEABLE, 5}, 20}};
    uint64_t blocks = tn__alloc_live();
    for (uint64_t nth = 1;; nth++) {
        tn__store *s = NULL;
        tn__fault_alloc(nth);
        tn_status status = tn__store_create(MANAGER, budgets, 2, 0, &s);
        bool fired = tn__fault_alloc_fired();
        tn__fault_alloc(0);
        assert_status(status, fired ? TN_ERR_HOST_MEMORY : TN_OK);
        if (status == TN_OK)
            tn__store_release(s);
        assert_int_equal(tn__alloc_live(), blocks);
        if (status == TN_OK)
            break;
        assert_null(s);
        assert_true(nth <= 5);
    }
    tn__mat *mat = NULL;
    tn__fault_alloc(1);
    assert_status(try_mat(tn_location_pageable(), 1, &mat), TN_ERR_HOST_MEMORY);
    tn__fault_alloc(0);
    assert_null(mat);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(build_failed_step_can_be_aborted_and_repeated),
    cmocka_unit_test(build_discard_fails_when_the_ring_cannot_grow),
    cmocka_unit_test(build_abort_frees_all_but_materializations),
    cmocka_unit_test(store_creation_survives_each_failure),
};

TN_TEST_MAIN("unit.placement_abort", tests)
