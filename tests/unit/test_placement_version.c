/* SPDX-License-Identifier: MIT */
/* Lookups in a version. Covers M7 (three causes, in order), M12, D12, P1. */
#include "placement_fixture.h"

static const tn_value_type other_type = {.size = sizeof(tn_value_type), .name = "other"};

static tn_handle handle_of(uint64_t index) { return (tn_handle){MANAGER, index, &fixture_type}; }

static void expect_refused(const tn_version *v, tn_handle handle, enum tn_handle_cause cause,
                           enum tn_reason reason) {
    const tn__value *out = NULL;
    assert_status(tn__version_resolve(v, MANAGER, handle, &out), TN_ERR_HANDLE);
    assert_null(out);
    const tn_error *e = tn_last_error();
    assert_int_equal(e->status, TN_ERR_HANDLE);
    assert_int_equal(e->handle_cause, cause);
    assert_int_equal(e->reason, reason);
    assert_int_equal(e->manager, MANAGER);
    assert_int_equal(e->handle.manager, handle.manager);
    assert_int_equal(e->handle.index, handle.index);
    assert_ptr_equal(e->handle.type, handle.type);
}

static void version_resolve_tells_the_three_causes(void **state) {
    (void)state;
    tn__store *s = make_store(TN_KEEP_ALL);
    tn__build b;
    begin(s, &b);
    uint64_t live = add(&b, 10), gone = add(&b, 10);
    assert_ok(tn__build_discard(&b, gone));
    publish(s, &b);
    const tn_version *v = s->newest;
    const tn__value *out = NULL;
    assert_ok(tn__version_resolve(v, MANAGER, handle_of(live), &out));
    assert_int_equal(out->index, live);
    tn_handle foreign = handle_of(live), retyped = handle_of(gone);
    foreign.manager = MANAGER + 1;
    retyped.type = &other_type;
    expect_refused(v, foreign, TN_HANDLE_FOREIGN, TN_REASON_HANDLE_FOREIGN);
    expect_refused(v, retyped, TN_HANDLE_UNKNOWN, TN_REASON_HANDLE_UNKNOWN);
    expect_refused(v, handle_of(0), TN_HANDLE_UNKNOWN, TN_REASON_HANDLE_UNKNOWN);
    expect_refused(v, handle_of(gone + 1), TN_HANDLE_UNKNOWN, TN_REASON_HANDLE_UNKNOWN);
    expect_refused(v, handle_of(UINT64_MAX), TN_HANDLE_UNKNOWN, TN_REASON_HANDLE_UNKNOWN);
    expect_refused(v, handle_of(gone), TN_HANDLE_DISCARDED, TN_REASON_HANDLE_DISCARDED);
    tn__store_release(s);
}

static void version_forgotten_value_resolves_as_discarded(void **state) {
    (void)state;
    tn__store *s = make_store(0);
    tn__build b;
    begin(s, &b);
    uint64_t gone = add(&b, 10);
    assert_ok(tn__build_discard(&b, gone));
    publish(s, &b);
    assert_null(tn__version_value(s->newest, gone));
    assert_int_equal(s->newest->value_count, 0);
    expect_refused(s->newest, handle_of(gone), TN_HANDLE_DISCARDED, TN_REASON_HANDLE_DISCARDED);
    tn__store_release(s);
}

static void version_lookups_ignore_host_indices(void **state) {
    (void)state;
    tn_location host = {TN_LOCATION_PAGEABLE, 9};
    tn__store *s = make_store(TN_KEEP_ALL);
    tn__build b;
    begin(s, &b);
    uint64_t index = add(&b, 10);
    tn__mat *on_host = install(&b, index, host, 10);
    tn__mat *on_device = install(&b, index, tn_location_cuda(3), 10);
    publish(s, &b);
    const tn__value *value = tn__version_value(s->newest, index);
    assert_ptr_equal(tn__value_mat(value, tn_location_pageable()), on_host);
    assert_ptr_equal(tn__value_mat(value, host), on_host);
    assert_ptr_equal(tn__value_mat(value, tn_location_cuda(3)), on_device);
    assert_null(tn__value_mat(value, tn_location_cuda(4)));
    assert_null(tn__value_mat(value, tn_location_pinned()));
    assert_int_equal(tn__version_place(s->newest, host)->at.index, 0);
    assert_non_null(tn__version_place(s->newest, tn_location_cuda(3)));
    assert_null(tn__version_place(s->newest, tn_location_cuda(0)));
    tn__store_release(s);
}

static void version_walks_find_what_comes_next(void **state) {
    (void)state;
    tn__store *s = make_store(TN_KEEP_ALL);
    tn__build b;
    begin(s, &b);
    for (uint64_t i = 1; i <= 100; i++) {
        assert_int_equal(add(&b, i), i);
        if (i % 10 == 0)
            install(&b, i, tn_location_pinned(), i);
    }
    publish(s, &b);
    const tn__place *place = tn__version_place(s->newest, tn_location_pinned());
    for (uint64_t i = 0; i <= 100; i++) {
        uint64_t resident = (i + 9) / 10 * 10;
        assert_int_equal(tn__version_next(s->newest, i)->index, i ? i : 1);
        assert_int_equal(tn__place_next(place, i)->index, resident ? resident : 10);
    }
    assert_null(tn__version_next(s->newest, 101));
    assert_null(tn__place_next(place, 101));
    assert_null(version_fault(s->newest));
    tn__store_release(s);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(version_resolve_tells_the_three_causes),
    cmocka_unit_test(version_forgotten_value_resolves_as_discarded),
    cmocka_unit_test(version_lookups_ignore_host_indices),
    cmocka_unit_test(version_walks_find_what_comes_next),
};

TN_TEST_MAIN("unit.placement_version", tests)
