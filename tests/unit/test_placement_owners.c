/* SPDX-License-Identifier: MIT */
/* The owner index. Covers M64..M66: who clashes, all or none, what is given up can be claimed
 * again. */
#include "placement_fixture.h"

static char memory[100000];

static tn_storage storage(size_t offset, tn_location at) {
    return (tn_storage){memory + offset, 16, at};
}

static tn_handle handle_of(uint64_t index) { return (tn_handle){MANAGER, index, &fixture_type}; }

static void assert_handle(tn_handle handle, uint64_t index) {
    assert_int_equal(handle.manager, MANAGER);
    assert_int_equal(handle.index, index);
    assert_ptr_equal(handle.type, &fixture_type);
}

static tn__store *locked_store(void) {
    tn__store *s = make_store(0);
    tn__lock(&s->lock);
    return s;
}

static void unlock_and_release(tn__store *s) {
    tn__unlock(&s->lock);
    tn__store_release(s);
}

static tn_status claim(tn__store *s, const tn_storage *storages, size_t count, uint64_t index) {
    return tn__owners_claim(s, storages, count, handle_of(index), tn_location_pageable());
}

static void owners_clash_names_the_owner(void **state) {
    (void)state;
    tn__store *s = locked_store();
    tn_storage a[] = {storage(0, tn_location_pageable()), storage(1, tn_location_pageable())};
    tn_storage b[] = {storage(2, tn_location_pageable()), storage(1, tn_location_pageable())};
    assert_ok(tn__owners_claim(s, a, 2, handle_of(1), tn_location_pinned()));
    assert_status(claim(s, b, 2, 2), TN_ERR_OWNERSHIP);
    const tn_error *e = tn_last_error();
    assert_int_equal(e->reason, TN_REASON_STORAGE_SHARED);
    assert_int_equal(e->manager, MANAGER);
    assert_int_equal(e->handle.index, 2);
    assert_int_equal(e->at.kind, TN_LOCATION_PAGEABLE);
    assert_int_equal(e->owner_count, 1);
    assert_handle(e->owners[0].handle, 1);
    assert_int_equal(e->owners[0].at.kind, TN_LOCATION_PINNED);
    assert_ok(claim(s, b, 1, 3)); /* none of it was taken */
    tn__owners_release(s, a, 2);
    assert_ok(claim(s, a, 2, 4));
    unlock_and_release(s);
}

static void owners_clash_counts_each_owner_once(void **state) {
    (void)state;
    tn__store *s = locked_store();
    tn_storage all[12];
    for (size_t i = 0; i < 12; i++)
        all[i] = storage(i, tn_location_pageable());
    for (uint64_t owner = 0; owner < 6; owner++)
        assert_ok(claim(s, all + 2 * owner, 2, owner + 1));
    assert_status(claim(s, all, 12, 99), TN_ERR_OWNERSHIP);
    assert_int_equal(tn_last_error()->owner_count, 6);
    for (uint64_t i = 0; i < TN_ERROR_OWNERS_MAX; i++)
        assert_int_equal(tn_last_error()->owners[i].handle.index, i + 1);
    assert_status(claim(s, all + 3, 2, 99), TN_ERR_OWNERSHIP);
    assert_int_equal(tn_last_error()->owner_count, 2);
    unlock_and_release(s);
}

static void owners_tell_replicas_apart(void **state) {
    (void)state;
    tn__store *s = locked_store();
    tn_storage a[] = {storage(0, tn_location_pageable()), storage(1, tn_location_cuda(0))};
    assert_ok(tn__owners_claim(s, a, 1, handle_of(1), tn_location_pageable()));
    assert_ok(tn__owners_claim(s, a + 1, 1, handle_of(1), tn_location_cuda(0)));
    tn_storage both[] = {a[0], a[1]};
    assert_status(claim(s, both, 2, 2), TN_ERR_OWNERSHIP);
    assert_int_equal(tn_last_error()->owner_count, 2);
    unlock_and_release(s);
}

static void owners_units_do_not_clash(void **state) {
    (void)state;
    tn__store *s = locked_store();
    tn_location units[] = {tn_location_pageable(), tn_location_cuda(0), tn_location_cuda(1)};
    for (uint64_t i = 0; i < 3; i++) {
        tn_storage one = storage(0, units[i]);
        assert_ok(claim(s, &one, 1, i + 1));
        assert_status(claim(s, &one, 1, 9), TN_ERR_OWNERSHIP);
    }
    tn_storage pinned = storage(0, tn_location_pinned()); /* host memory is one device */
    assert_status(claim(s, &pinned, 1, 9), TN_ERR_OWNERSHIP);
    assert_int_equal(tn_last_error()->owners[0].handle.index, 1);
    tn_storage indexed = storage(0, (tn_location){TN_LOCATION_PAGEABLE, 5});
    assert_status(claim(s, &indexed, 1, 9), TN_ERR_OWNERSHIP);
    unlock_and_release(s);
}

static void owners_empty_allocations_never_clash(void **state) {
    (void)state;
    tn__store *s = locked_store();
    tn_storage empty = {memory, 0, tn_location_pageable()},
               full = storage(0, tn_location_pageable());
    assert_ok(claim(s, &empty, 1, 1));
    assert_ok(claim(s, &empty, 1, 2));
    assert_ok(claim(s, &full, 1, 3));
    assert_ok(claim(s, &empty, 1, 4));
    assert_ok(claim(s, NULL, 0, 5));
    tn__owners_release(s, &empty, 1);
    assert_status(claim(s, &full, 1, 7), TN_ERR_OWNERSHIP);
    assert_int_equal(tn_last_error()->owners[0].handle.index, 3);
    unlock_and_release(s);
}

/* ---- Many --------------------------------------------------------------------------------- */

#define KEYS 6000

/* Random claims and releases of groups of four against a plain array. */
static void owners_match_an_array(void **state) {
    (void)state;
    static uint64_t model[KEYS];
    static tn_storage all[KEYS];
    uint64_t seed = random_start(), blocks = tn__alloc_live();
    tn__store *s = locked_store();
    for (size_t i = 0; i < KEYS; i++) {
        model[i] = 0;
        all[i] = storage(i * 16, i % 3 ? tn_location_cuda((uint32_t)i % 3) : tn_location_pinned());
    }
    for (uint64_t turn = 1; turn < 60000; turn++) {
        size_t first = random_next(&seed) % (KEYS - 4), owned = 0, same = 0;
        for (size_t i = first; i < first + 4; i++) {
            owned += model[i] != 0;
            same += model[i] && model[i] == model[first];
        }
        uint64_t index = same == 4 && random_next(&seed) % 2 ? 0 : turn;
        if (index == 0)
            tn__owners_release(s, all + first, 4);
        else
            assert_status(claim(s, all + first, 4, turn), owned ? TN_ERR_OWNERSHIP : TN_OK);
        for (size_t i = first; i < first + 4 && (index == 0 || owned == 0); i++)
            model[i] = index;
    }
    for (size_t i = 0; i < KEYS; i++) {
        assert_status(claim(s, all + i, 1, 1), model[i] ? TN_ERR_OWNERSHIP : TN_OK);
        if (model[i])
            assert_int_equal(tn_last_error()->owners[0].handle.index, model[i]);
        tn__owners_release(s, all + i, 1);
    }
    unlock_and_release(s);
    assert_int_equal(tn__alloc_live(), blocks);
}

static void owners_failed_claim_takes_nothing(void **state) {
    (void)state;
    static tn_storage all[3000];
    for (size_t i = 0; i < 3000; i++)
        all[i] = storage(i, tn_location_pageable());
    uint64_t blocks = tn__alloc_live(), nth = 0;
    for (tn_status status = TN_ERR_HOST_MEMORY; status != TN_OK;) {
        tn__store *s = locked_store();
        tn__fault_alloc(++nth);
        status = claim(s, all, 3000, 1);
        bool fired = tn__fault_alloc_fired();
        tn__fault_alloc(0);
        assert_status(status, fired ? TN_ERR_HOST_MEMORY : TN_OK);
        if (fired)
            assert_ok(claim(s, all, 3000, 2)); /* nothing was left behind */
        tn__owners_release(s, all, 3000);
        assert_ok(claim(s, all, 3000, 3));
        unlock_and_release(s);
        assert_int_equal(tn__alloc_live(), blocks);
    }
    assert_true(nth > 64);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(owners_clash_names_the_owner),
    cmocka_unit_test(owners_clash_counts_each_owner_once),
    cmocka_unit_test(owners_tell_replicas_apart),
    cmocka_unit_test(owners_units_do_not_clash),
    cmocka_unit_test(owners_empty_allocations_never_clash),
    cmocka_unit_test(owners_match_an_array),
    cmocka_unit_test(owners_failed_claim_takes_nothing),
};

TN_TEST_MAIN("unit.placement_owners", tests)
