/* SPDX-License-Identifier: MIT */
/*
 * src/snapshot/read.c, pass.c: arguments, the array protocol, what each row says, merged counts
 * (M224..M232).
 */
#include "core_fixture.h"

struct scene {
    struct spec *f;
    tn_manager *m;
    tn_handle v, w, gone, src; /* v at P, C0; w at P; src unloaded, source at N */
    tn_snapshot *s;
};

static struct scene scene_of(struct spec *f) {
    struct scene x = {.f = f, .m = MANAGER(f, {P, 4096}, {C0, 4096})};
    x.v = adopt_rep(f, x.m, P);
    x.w = adopt_exc(f, x.m, P);
    x.gone = adopt_rep(f, x.m, P);
    x.src = spec_register(x.m, spec_source(f), N, TN_REPLICABLE);
    (void)ensure(x.m, x.v, C0);
    (void)discard(x.m, x.gone);
    return x;
}

static void take(struct scene *x) { assert_ok(tn_snapshot_take(x->m, &x->s)); }

static void arguments_are_checked(void **state) {
    struct scene x = scene_of(*state);
    tn_snapshot_info head = {.size = sizeof head};
    tn_value_info row = {.size = sizeof row};
    tn_materialization_info mats[2] = {{.size = sizeof mats[0]}};
    uint64_t cursor = 0;
    size_t count = 2;
    bool more;
    take(&x);
    assert_status(tn_snapshot_read(NULL, &head), TN_ERR_KIND);
    assert_status(tn_snapshot_read(x.s, NULL), TN_ERR_KIND);
    assert_status(tn_snapshot_next(NULL, &cursor, &row, &more), TN_ERR_KIND);
    assert_status(tn_snapshot_next(x.s, NULL, &row, &more), TN_ERR_KIND);
    assert_status(tn_snapshot_next(x.s, &cursor, &row, NULL), TN_ERR_KIND);
    assert_status(tn_snapshot_next(x.s, &cursor, NULL, &more), TN_ERR_KIND);
    assert_status(tn_snapshot_value(NULL, x.v, &row), TN_ERR_KIND);
    assert_status(tn_snapshot_value(x.s, x.v, NULL), TN_ERR_KIND);
    assert_status(tn_snapshot_materializations(NULL, x.v, mats, &count), TN_ERR_KIND);
    assert_status(tn_snapshot_materializations(x.s, x.v, mats, NULL), TN_ERR_KIND);
    assert_status(tn_snapshot_materializations(x.s, x.v, NULL, &count), TN_ERR_KIND);
    assert_status(tn_snapshot_locations(x.s, NULL, &count), TN_ERR_KIND);
    assert_status(tn_snapshot_locations(NULL, NULL, &count), TN_ERR_KIND);
    assert_status(tn_snapshot_reservations(x.s, NULL, &count), TN_ERR_KIND);
    assert_status(tn_snapshot_reservations(x.s, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_snapshot_take(NULL, &x.s), TN_ERR_KIND);
    assert_status(tn_snapshot_take(x.m, NULL), TN_ERR_KIND);
    row.size = 0;
    assert_status(tn_snapshot_value(x.s, x.v, &row), TN_ERR_KIND);
    tn_snapshot_drop(x.s);
}

static void handles_are_found_or_named_in_the_error(void **state) {
    struct scene x = scene_of(*state);
    tn_value_info row = {.size = sizeof row};
    tn_handle forged = x.v, foreign = x.v, typed = x.v, bad[3] = {x.v, x.v, x.v};
    forged.index = 99;
    foreign.manager += 100;
    typed.type = tt_other_type();
    bad[0].type = NULL;
    bad[1].manager = 0;
    bad[2].index = 0;
    take(&x);
    assert_ok(tn_snapshot_value(x.s, x.gone, &row));
    assert_int_equal(row.discarded, 1);
    assert_handle_error(tn_snapshot_value(x.s, forged, &row), TN_HANDLE_UNKNOWN);
    assert_handle_error(tn_snapshot_value(x.s, typed, &row), TN_HANDLE_UNKNOWN);
    assert_handle_error(tn_snapshot_value(x.s, foreign, &row), TN_HANDLE_FOREIGN);
    for (int i = 0; i < 3; i++)
        assert_status(tn_snapshot_value(x.s, bad[i], &row), TN_ERR_KIND);
    tn_snapshot_drop(x.s);
}

static void values_are_listed_in_order_of_index(void **state) {
    struct scene x = scene_of(*state);
    const tn_handle want[4] = {x.v, x.w, x.gone, x.src};
    tn_value_info row = {.size = sizeof row};
    uint64_t cursor = 0;
    bool more = false;
    take(&x);
    for (int i = 0; i < 4; i++) {
        assert_ok(tn_snapshot_next(x.s, &cursor, &row, &more));
        assert_true(more);
        assert_handle(row.handle, want[i]);
    }
    assert_int_equal(row.has_source, 1);
    assert_at(row.source_at, N);
    assert_int_equal(row.spec.recoverability, TN_RECONSTRUCTIBLE);
    assert_int_equal(row.materialization_count, 0);
    row.size = 4 + sizeof(size_t); /* left alone at the end */
    assert_ok(tn_snapshot_next(x.s, &cursor, &row, &more));
    assert_false(more);
    assert_handle(row.handle, want[3]);
    cursor = UINT64_MAX;
    assert_ok(tn_snapshot_next(x.s, &cursor, &row, &more));
    assert_false(more);
    tn_snapshot_drop(x.s);
}

/* The first element's size is the stride; the real total comes out; nothing is written beyond. */
static void arrays_are_filled_as_far_as_they_go(void **state) {
    struct scene x = scene_of(*state);
    struct wide {
        tn_materialization_info row;
        uint64_t more;
    } mats[2];
    tn_location_info places[3];
    size_t count = 1;
    take(&x);
    memset(mats, 0xee, sizeof mats);
    mats[0].row.size = sizeof mats[0];
    assert_ok(tn_snapshot_materializations(x.s, x.v, &mats[0].row, &count));
    assert_int_equal(count, 2);
    assert_at(mats[0].row.at, P);
    assert_int_equal(mats[0].more, 0);
    assert_int_equal(mats[1].more, UINT64_C(0xeeeeeeeeeeeeeeee));
    assert_ok(tn_snapshot_materializations(x.s, x.v, &mats[0].row, &count));
    assert_at(mats[1].row.at, C0);
    assert_int_equal(mats[1].row.size, sizeof mats[0]);
    memset(places, 0, sizeof places);
    places[0].size = sizeof places[0];
    count = 3;
    assert_ok(tn_snapshot_locations(x.s, places, &count));
    assert_int_equal(count, 3); /* N is that of the source */
    assert_at(places[1].at, C0);
    assert_int_equal(places[1].used_bytes, 32);
    assert_int_equal(places[1].budget_bytes, 4096);
    assert_int_equal(places[1].remaining_bytes, 4096 - 32);
    assert_int_equal(places[0].allocated_bytes, UINT64_MAX); /* no reading on the host */
    assert_int_equal(places[1].allocated_bytes, 32);
    count = 0;
    assert_ok(tn_snapshot_reservations(x.s, NULL, &count));
    assert_int_equal(count, 0);
    tn_snapshot_drop(x.s);
}

static void reading_that_fails_is_absent(void **state) {
    struct scene x = scene_of(*state);
    spec_fault(x.f, TN_SIM_DEVICE_MEMORY, 1, 0, TN_ERR_DRIVER, 6);
    assert_int_equal(loc(x.m, C0).held_bytes, UINT64_MAX);
    (void)spec_repair(x.f);
    assert_int_not_equal(loc(x.m, C0).held_bytes, UINT64_MAX);
}

/* Many records of the same materializations: one count each, per value and per place. */
static void counts_of_many_records_are_merged(void **state) {
    enum { MANY = 70 };
    struct scene x = scene_of(*state);
    tn_stream stream = spec_stream(x.f, 0);
    tn_handle both[2] = {x.v, x.w};
    tn_lease host[MANY], device[MANY];
    tn_hold holds[MANY];
    tn_materialization_info m;
    spec_busy(x.f, stream);
    for (int i = 0; i < MANY; i++) {
        assert_ok(tn_manager_acquire(x.m, both, 2, P, NULL, &host[i]));
        device[i] = acquire(x.m, x.v, C0, stream);
        holds[i] = hold(x.m, x.v, C0);
        if (i % 2)
            release(&device[i]);
    }
    m = mat(x.m, x.v, C0);
    assert_int_equal(m.use_count, MANY / 2);
    assert_int_equal(m.hold_count, MANY);
    assert_int_equal(m.pending_count, MANY / 2);
    assert_int_equal(mat(x.m, x.v, P).use_count, MANY);
    assert_int_equal(mat(x.m, x.w, P).use_count, MANY);
    assert_int_equal(loc(x.m, P).use_count, 2 * MANY);
    assert_int_equal(loc(x.m, C0).pending_count, MANY / 2);
    for (int i = 0; i < MANY; i++) {
        release(&host[i]);
        release(&device[i]);
        release_hold(&holds[i]);
    }
    assert_int_equal(mat(x.m, x.v, C0).use_count, 0);
}

/* Reservations of one instant by several threads: told apart by their slots' own order. */
static void reservations_of_one_instant_have_an_order(void **state) {
    struct scene x = scene_of(*state);
    tn_reservation r[3];
    tn_reservation_info rows[3] = {{.size = sizeof rows[0]}};
    size_t count = 3;
    for (int i = 0; i < 3; i++) {
        const char label[2] = {(char)('a' + i), '\0'};
        r[i] = reserve(x.m, P, 1, label);
        tn__store_rlx(&((tn__record *)r[i].record)->admitted, 5);
    }
    take(&x);
    assert_ok(tn_snapshot_reservations(x.s, rows, &count));
    for (int i = 0; i < 3; i++)
        assert_int_equal(rows[i].label[0], 'a' + i);
    tn_snapshot_drop(x.s);
    tn__store_rlx(&((tn__record *)r[1].record)->admitted, 4); /* the clock decides first */
    count = 3;
    take(&x);
    assert_ok(tn_snapshot_reservations(x.s, rows, &count));
    assert_int_equal(rows[0].label[0], 'b');
    tn_snapshot_drop(x.s);
    for (int i = 0; i < 3; i++)
        release_reservation(&r[i]);
}

static const struct CMUnitTest tests[] = {
    SPEC_CONCURRENT(arguments_are_checked),
    SPEC_CONCURRENT(handles_are_found_or_named_in_the_error),
    SPEC_CONCURRENT(values_are_listed_in_order_of_index),
    SPEC_CONCURRENT(arrays_are_filled_as_far_as_they_go),
    SPEC_CONCURRENT(reading_that_fails_is_absent),
    SPEC_CONCURRENT(counts_of_many_records_are_merged),
    SPEC_CONCURRENT(reservations_of_one_instant_have_an_order),
};

TN_TEST_MAIN("unit.snapshot_read", tests)
