/* SPDX-License-Identifier: MIT */
/* Builds that succeed. Covers P1..P3, M18..M20, M44, M46, M118 (what counts). */
#include "placement_fixture.h"

static const tn__place *place_of(const tn__store *s, tn_location at) {
    return tn__version_place(s->newest, at);
}

static void expect_place(const tn__store *s, tn_location at, uint64_t used, uint64_t peak,
                         uint64_t values) {
    const tn__place *place = place_of(s, at);
    assert_non_null(place);
    assert_int_equal(place->used_bytes, used);
    assert_int_equal(place->peak_used_bytes, peak);
    assert_int_equal(place->value_count, values);
    assert_null(version_fault(s->newest));
}

/* ---- Steps -------------------------------------------------------------------------------- */

static void build_number_grows_by_what_counts(void **state) {
    (void)state;
    tn__store *s = make_store(TN_KEEP_ALL);
    tn__build b;
    begin(s, &b);
    uint64_t index = add(&b, 5); /* counts nothing by itself */
    publish(s, &b);
    assert_int_equal(s->newest->number, 1); /* at least one */
    begin(s, &b);
    tn__mat *mat = install(&b, index, tn_location_pinned(), 5); /* tracks: 2 */
    assert_ok(tn__build_track(&b, tn_location_pinned()));       /* tracked already */
    publish(s, &b);
    assert_int_equal(s->newest->number, 3);
    begin(s, &b);
    assert_ok(tn__build_remove(&b, mat));
    assert_ok(tn__build_discard(&b, index));
    publish(s, &b);
    assert_int_equal(s->newest->number, 5);
    begin(s, &b);
    tn__build_count(&b, 40);
    publish(s, &b);
    assert_int_equal(s->newest->number, 45);
    assert_int_equal(s->versions_published, 4);
    tn__store_release(s);
}

static void build_add_value_keeps_the_spec(void **state) {
    (void)state;
    tn__store *s = make_store(TN_KEEP_ALL);
    tn__source *source = (tn__source *)s; /* never followed here */
    tn_value_spec spec = make_spec(100);
    spec.logical_bytes = 90;
    spec.recoverability = TN_RECONSTRUCTIBLE;
    spec.replica_mode = TN_EXCLUSIVE;
    tn__build b;
    uint64_t index;
    begin(s, &b);
    assert_ok(tn__build_add_value(&b, &spec, source, (tn_location){TN_LOCATION_PINNED, 4}, &index));
    publish(s, &b);
    const tn__value *value = tn__version_value(s->newest, index);
    assert_ptr_equal(value->type, &fixture_type);
    assert_ptr_equal(value->source, source);
    assert_int_equal(value->source_at.kind, TN_LOCATION_PINNED);
    assert_int_equal(value->source_at.index, 0);
    assert_int_equal(value->logical_bytes, 90);
    assert_int_equal(value->charge_bytes, 100);
    assert_int_equal(value->replicable, 0);
    assert_int_equal(value->reconstructible, 1);
    begin(s, &b);
    assert_ok(tn__build_discard(&b, index));
    publish(s, &b);
    value = tn__version_value(s->newest, index);
    assert_null(value->source);
    assert_int_equal(value->source_at.kind, TN_LOCATION_NONE);
    assert_int_equal(value->discarded, 1);
    assert_int_equal(value->reconstructible, 1);
    tn__store_release(s);
}

static void build_places_keep_tracking_order(void **state) {
    (void)state;
    static const tn_budget budgets[] = {{{TN_LOCATION_CUDA, 1}, 10},
                                        {{TN_LOCATION_PAGEABLE, 0}, 20}};
    static const tn_location later[] = {{TN_LOCATION_PINNED, 3},
                                        {TN_LOCATION_CUDA, 0},
                                        {TN_LOCATION_PAGEABLE, 1},
                                        {TN_LOCATION_CUDA, 127}};
    static const tn_location want[] = {{TN_LOCATION_CUDA, 1},
                                       {TN_LOCATION_PAGEABLE, 0},
                                       {TN_LOCATION_PINNED, 0},
                                       {TN_LOCATION_CUDA, 0},
                                       {TN_LOCATION_CUDA, 127}};
    tn__store *s = NULL;
    assert_ok(tn__store_create(MANAGER, budgets, 2, 0, &s));
    tn__build b;
    begin(s, &b);
    for (size_t i = 0; i < 4; i++)
        assert_ok(tn__build_track(&b, later[i]));
    publish(s, &b);
    assert_int_equal(s->newest->number, 3);
    assert_int_equal(s->newest->table->count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(s->newest->table->places[i].at.kind, want[i].kind);
        assert_int_equal(s->newest->table->places[i].at.index, want[i].index);
    }
    tn__store_release(s);
}

static void build_installs_keep_their_order(void **state) {
    (void)state;
    tn__store *s = make_store(TN_KEEP_ALL);
    tn__mat *mats[6];
    tn__build b;
    begin(s, &b);
    uint64_t index = add(&b, 5);
    for (uint32_t i = 0; i < 4; i++)
        mats[i] = install(&b, index, tn_location_cuda(3 - i), 5);
    publish(s, &b);
    begin(s, &b);
    assert_ok(tn__build_remove(&b, mats[1]));
    mats[4] = install(&b, index, tn_location_cuda(9), 5);
    mats[5] = install(&b, index, tn_location_pageable(), 5);
    assert_ok(tn__build_remove(&b, mats[0]));
    publish(s, &b);
    const tn__value *value = tn__version_value(s->newest, index);
    assert_int_equal(value->mat_count, 4);
    for (int i = 0; i < 4; i++) {
        assert_ptr_equal(value->mats[i], mats[i + 2]);
        assert_int_equal(value->mats[i]->index, index);
    }
    assert_null(version_fault(s->newest));
    tn__store_release(s);
}

static void build_move_works_in_either_order(void **state) {
    (void)state;
    for (int remove_first = 0; remove_first < 2; remove_first++) {
        uint64_t blocks = tn__alloc_live();
        tn__store *s = make_store(TN_KEEP_ALL);
        tn_location from = tn_location_pageable(), to = tn_location_cuda(0);
        populate(s, 40, from, 10);
        tn__mat *old = tn__value_mat(tn__version_value(s->newest, 7), from), *moved = NULL;
        tn__build b;
        begin(s, &b);
        if (remove_first)
            assert_ok(tn__build_remove(&b, old));
        moved = install(&b, 7, to, 10);
        if (!remove_first)
            assert_ok(tn__build_remove(&b, old));
        publish(s, &b);
        const tn__value *value = tn__version_value(s->newest, 7);
        assert_int_equal(value->mat_count, 1);
        assert_ptr_equal(value->mats[0], moved);
        expect_place(s, from, 390, 400, 39);
        expect_place(s, to, 10, 10, 1);
        assert_null(tn__radix_find(&place_of(s, from)->resident, 7));
        assert_ptr_equal(tn__place_next(place_of(s, to), 0), moved);
        assert_int_equal(s->newest->number, 44); /* the first has number 41 */
        tn__store_release(s);
        assert_int_equal(tn__alloc_live(), blocks);
    }
}

static void build_reinstall_at_the_same_place_in_one_build(void **state) {
    (void)state;
    tn__store *s = make_store(TN_KEEP_ALL);
    tn_location at = tn_location_pinned();
    populate(s, 1, at, 10);
    churn(s, 1, at);
    expect_place(s, at, 10, 10, 1);
    tn__store_release(s);
}

static void build_may_remove_what_it_installed(void **state) {
    (void)state;
    uint64_t blocks = tn__alloc_live();
    tn__store *s = make_store(TN_KEEP_ALL);
    tn_location at = tn_location_cuda(2);
    tn__build b;
    begin(s, &b);
    uint64_t index = add(&b, 10);
    tn__mat *mat = install(&b, index, at, 10);
    assert_ok(tn__build_remove(&b, mat));
    publish(s, &b);
    expect_place(s, at, 0, 10, 0);
    assert_int_equal(s->newest->number, 3);
    assert_int_equal(mat->index, index); /* its memory stays for a grace period */
    collect(s);
    assert_int_equal(s->newest->value_count, 1);
    tn__store_release(s);
    assert_int_equal(tn__alloc_live(), blocks);
}

static void build_peak_is_the_highest_between_steps(void **state) {
    (void)state;
    tn__store *s = make_store(TN_KEEP_ALL);
    tn_location at = tn_location_cuda(0);
    tn__build b;
    begin(s, &b);
    uint64_t one = add(&b, 70), two = add(&b, 50);
    tn__mat *mat = install(&b, one, at, 70);
    install(&b, two, at, 50);
    assert_ok(tn__build_remove(&b, mat));
    publish(s, &b);
    expect_place(s, at, 50, 120, 1);
    tn__store_release(s);
}

static void build_zero_bytes_are_counted(void **state) {
    (void)state;
    tn__store *s = make_store(TN_KEEP_ALL);
    populate(s, 3, tn_location_cuda(0), 0);
    expect_place(s, tn_location_cuda(0), 0, 0, 3);
    tn__store_release(s);
}

static void mat_create_copies_its_measures(void **state) {
    (void)state;
    tn_storage storages[2] = {{&storages[0], 30, tn_location_cuda(1)},
                              {&storages[1], 40, tn_location_cuda(1)}};
    tn__measured measured = {.logical_bytes = 60,
                             .storage_bytes = 70,
                             .at = tn_location_cuda(1),
                             .storage_count = 2,
                             .storages = storages};
    tn_payload payload = {&fixture_type, storages};
    tn__mat *mat;
    assert_ok(tn__mat_create(payload, tn_location_cuda(1), &measured, 80, &mat));
    assert_int_equal(mat->logical_bytes, 60);
    assert_int_equal(mat->storage_bytes, 70);
    assert_int_equal(mat->charged_bytes, 80);
    assert_int_equal(mat->storage_count, 2);
    assert_memory_equal(mat->storages, storages, sizeof storages);
    assert_ptr_equal(mat->payload.data, storages);
    assert_int_equal(tn__load_rlx(&mat->state), TN__MAT_LIVE);
    tn__mat_discard(mat);
}

/* ---- Close -------------------------------------------------------------------------------- */

static void count_bytes(void *context, tn__mat *mat) { *(uint64_t *)context += mat->charged_bytes; }

static void clear_drops_values_and_keeps_the_table(void **state) {
    (void)state;
    uint64_t blocks = tn__alloc_live(), bytes = 0;
    tn__store *s = make_store(16);
    populate(s, 1500, tn_location_cuda(0), 3);
    populate(s, 50, tn_location_pageable(), 5);
    tn__build b;
    begin(s, &b);
    assert_ok(tn__build_remove(&b, tn__version_value(b.next, 9)->mats[0]));
    assert_ok(tn__build_discard(&b, 9));
    publish(s, &b);
    uint64_t number = s->newest->number;
    begin(s, &b);
    add(&b, 1); /* goes at once */
    assert_ok(tn__build_clear(&b, count_bytes, &bytes));
    publish(s, &b);
    assert_int_equal(bytes, 1499 * 3 + 50 * 5);
    assert_int_equal(s->newest->number, number + 1);
    assert_int_equal(s->newest->value_count, 0);
    assert_int_equal(s->newest->issued, 1551);
    assert_int_equal(s->discarded_count, 0);
    assert_null(tn__version_next(s->newest, 0));
    expect_place(s, tn_location_cuda(0), 0, 4500, 0);
    expect_place(s, tn_location_pageable(), 0, 250, 0);
    collect(s);
    assert_int_equal(blocks_of((const tn_version *const *)&s->newest, 1), 2); /* version, table */
    tn__store_release(s);
    assert_int_equal(tn__alloc_live(), blocks);
}

/* ---- Against a model ---------------------------------------------------------------------- */

#define VALUES 300
#define PLACES 4

static tn_location location_of(uint64_t i) {
    return i == 0   ? tn_location_pageable()
           : i == 1 ? tn_location_pinned()
                    : tn_location_cuda((uint32_t)i);
}

struct model {
    uint64_t bytes[VALUES + 1][PLACES]; /* 0: not resident */
    uint64_t peak[PLACES], used[PLACES];
};

static void model_step(struct model *m, tn__build *b, uint64_t *seed) {
    uint64_t index = random_next(seed) % VALUES + 1, where = random_next(seed) % PLACES;
    uint64_t *bytes = &m->bytes[index][where];
    tn__mat *mat = tn__value_mat(tn__version_value(b->next, index), location_of(where));
    assert_int_equal(mat ? mat->charged_bytes : 0, *bytes);
    if (*bytes) {
        assert_ok(tn__build_remove(b, mat));
        m->used[where] -= *bytes;
        *bytes = 0;
        return;
    }
    *bytes = random_next(seed) % 1000 + 1;
    install(b, index, location_of(where), *bytes);
    m->used[where] += *bytes;
    m->peak[where] = m->used[where] > m->peak[where] ? m->used[where] : m->peak[where];
}

static void build_of_random_steps_matches_a_model(void **state) {
    (void)state;
    static struct model model, scratch;
    uint64_t seed = random_start(), blocks = tn__alloc_live();
    tn__store *s = make_store(0);
    tn__build b;
    memset(&model, 0, sizeof model);
    begin(s, &b);
    for (uint64_t i = 0; i < VALUES; i++)
        add(&b, 1000);
    for (uint64_t i = 0; i < PLACES; i++)
        assert_ok(tn__build_track(&b, location_of(i)));
    publish(s, &b);
    for (int round = 0; round < 400; round++) {
        scratch = model;
        begin(s, &b);
        for (uint64_t steps = random_next(&seed) % 8; steps > 0; steps--)
            model_step(&scratch, &b, &seed);
        publish(s, &b);
        model = scratch;
        for (uint64_t i = 0; i < PLACES; i++)
            expect_place(s, location_of(i), model.used[i], model.peak[i],
                         place_of(s, location_of(i))->value_count);
        if (round % 16 == 0)
            collect(s);
    }
    tn__store_release(s);
    assert_int_equal(tn__alloc_live(), blocks);
}

/* ---- Memory and time ---------------------------------------------------------------------- */

static void build_of_one_value_among_many_copies_one_path(void **state) {
    (void)state;
    tn__store *s = make_store(TN_KEEP_ALL);
    populate(s, 40000, tn_location_cuda(0), 1);
    collect(s);
    uint64_t blocks = tn__alloc_live();
    churn(s, 20000, tn_location_cuda(0));
    /* version, table, value (twice: once without, once with), materialization, two paths of 4 */
    assert_in_range(tn__alloc_live() - blocks, 1, 4 + 1 + 8);
    assert_int_equal(collect(s), 4 + 8); /* as many are freed: version, table, value, mat, paths */
    assert_int_equal(tn__alloc_live(), blocks);
    tn__store_release(s);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(build_number_grows_by_what_counts),
    cmocka_unit_test(build_add_value_keeps_the_spec),
    cmocka_unit_test(build_places_keep_tracking_order),
    cmocka_unit_test(build_installs_keep_their_order),
    cmocka_unit_test(build_move_works_in_either_order),
    cmocka_unit_test(build_reinstall_at_the_same_place_in_one_build),
    cmocka_unit_test(build_may_remove_what_it_installed),
    cmocka_unit_test(build_peak_is_the_highest_between_steps),
    cmocka_unit_test(build_zero_bytes_are_counted),
    cmocka_unit_test(mat_create_copies_its_measures),
    cmocka_unit_test(clear_drops_values_and_keeps_the_table),
    cmocka_unit_test(build_of_random_steps_matches_a_model),
    cmocka_unit_test(build_of_one_value_among_many_copies_one_path),
};

TN_TEST_MAIN("unit.placement_build", tests)
