/* SPDX-License-Identifier: MIT */
/*
 * src/snapshot/pass.c: protections by materialization, however many there are; what the pinned
 * version does not have; reservations in the order of their admission (S1).
 */
#include "core_fixture.h"

#define MANY 300u

/* Value i has i % 4 leases, the odd ones a hold, and two replicas: the first tries are thrown away,
 * so that the table is used again. */
static void pass_counts_each_of_many_materializations(void **state) {
    static tn_lease leases[3 * MANY];
    static tn_hold holds[MANY];
    static tn_handle h[MANY];
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    size_t lease_count = 0;
    for (size_t i = 0; i < MANY; i++) {
        h[i] = adopt_rep(f, m, P);
        (void)ensure(m, h[i], C0);
    }
    for (size_t round = 0; round < 3; round++)
        for (size_t i = 0; i < MANY; i++)
            if (i % 4 > round)
                leases[lease_count++] = acquire(m, h[i], P, NULL);
    for (size_t i = 1; i < MANY; i += 2)
        holds[i] = hold(m, h[i], C0);
    uint64_t begun = tn__count_begin(own_slot(m)); /* not exact: all tries are made */
    tn_snapshot *s = NULL;
    tn_status status = tn_snapshot_take(m, &s);
    tn__count_end(own_slot(m), begun, 0);
    assert_ok(status);
    for (size_t i = 0; i < MANY; i++) {
        tn_materialization_info at[2] = {{.size = sizeof at[0]}, {.size = sizeof at[0]}};
        size_t count = 2;
        assert_ok(tn_snapshot_materializations(s, h[i], at, &count));
        assert_int_equal(count, 2);
        assert_int_equal(at[0].use_count, i % 4);
        assert_int_equal(at[0].hold_count, 0);
        assert_int_equal(at[1].use_count, 0);
        assert_int_equal(at[1].hold_count, i % 2);
    }
    tn_snapshot_drop(s);
    assert_int_equal(loc(m, P).use_count, lease_count);
    assert_int_equal(loc(m, C0).hold_count, MANY / 2);
    for (size_t i = 0; i < lease_count; i++)
        release(&leases[i]);
    for (size_t i = 1; i < MANY; i += 2)
        release_hold(&holds[i]);
}

/* A pin that names a materialization which others pin too, but as that of another value or of
 * another location: never seen of a record that is whole, and left out. */
static void pass_leaves_out_a_pin_that_does_not_fit(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_lease good = acquire(m, v, P, NULL), odd = acquire(m, v, P, NULL);
    tn__record *record = odd.record;
    tn__pin *pin = &tn__load_acq(&record->pins)->pin[0];
    assert_int_equal(mat(m, v, P).use_count, 2);
    tn__store_rlx(&pin->index, v.index + 1);
    assert_int_equal(mat(m, v, P).use_count, 1);
    tn__store_rlx(&pin->index, v.index);
    tn__store_rlx(&record->what, tn__what(TN__KIND_LEASE, C0));
    assert_int_equal(mat(m, v, P).use_count, 1);
    assert_int_equal(loc(m, P).use_count, 1);
    assert_int_equal(info(m).lease_count, 2);
    tn__store_rlx(&record->what, tn__what(TN__KIND_LEASE, P));
    release(&odd);
    release(&good);
}

static void pass_sorts_many_reservations_by_admission(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_reservation r[20];
    tn_reservation_info rows[20];
    size_t count = 20;
    for (size_t i = 0; i < 20; i++)
        r[i] = reserve(m, i % 2 ? P : N, i, "first");
    for (size_t i = 0; i < 10; i++) { /* these records are used again, in another order */
        release_reservation(&r[i]);
        r[i] = reserve(m, P, 100 + i, "second");
    }
    tn_snapshot *s = NULL;
    assert_ok(tn_snapshot_take(m, &s));
    for (size_t i = 0; i < 20; i++)
        rows[i] = (tn_reservation_info){.size = sizeof rows[i]};
    assert_ok(tn_snapshot_reservations(s, rows, &count));
    assert_int_equal(count, 20);
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(rows[i].bytes, i < 10 ? i + 10 : i + 90);
        assert_string_equal(rows[i].label, i < 10 ? "first" : "second");
    }
    tn_snapshot_drop(s);
    for (size_t i = 0; i < 20; i++)
        release_reservation(&r[i]);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(pass_counts_each_of_many_materializations),
    SPEC_CONCURRENT(pass_leaves_out_a_pin_that_does_not_fit),
    SPEC_CONCURRENT(pass_sorts_many_reservations_by_admission),
};

TN_TEST_MAIN("unit.snapshot_pass", tests)
