/* SPDX-License-Identifier: MIT */
/* src/snapshot/take.c: exactness (S1), the state version, sums clamped to peaks (M48, M51). */
#include "core_fixture.h"

static tn_snapshot_info head_of(tn_snapshot *s) {
    tn_snapshot_info head = {.size = sizeof head};
    assert_ok(tn_snapshot_read(s, &head));
    return head;
}

static bool exact(tn_manager *m) { return info(m).exact != 0; }

static void snapshot_while_nothing_happens_is_exact(void **state) {
    tn_manager *m = MANAGER(*state);
    assert_true(exact(m));
    assert_int_equal(info(m).state_version, version(m));
}

/* A counter that is odd: some thread is in the middle of making effects visible. */
static void snapshot_while_a_counter_is_odd_is_not_exact(void **state) {
    tn_manager *m = MANAGER(*state);
    tn__slot *slot = own_slot(m);
    bool stable = true;
    uint64_t before = version(m), begun = tn__count_begin(slot);
    assert_false(exact(m));
    assert_int_equal(info(m).state_version, before);
    (void)tn__life_count(m->life, &stable);
    assert_false(stable);
    assert_int_equal(tn__state_version(m->store, m->life), before);
    tn__count_end(slot, begun, 3);
    assert_true(exact(m));
    assert_int_equal(version(m), before + 3);
}

static void snapshot_beside_an_acquire_in_progress_is_not_exact(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    struct args reading = {.m = m, .h = {adopt_rep(f, m, P)}, .at = P};
    struct op reader;
    NEED_POINTS();
    OP_START(&reader, run_acquire, &reading, TN__POINT_PINS_STORED);
    op_reach(&reader);
    assert_false(exact(m));
    assert_int_equal(info(m).lease_count, 0);
    assert_status(op_end(&reader), TN_OK);
    assert_true(exact(m));
    assert_int_equal(info(m).lease_count, 1);
    release(&reading.lease);
}

/* A release that is recording its events is outside its sections: the counter is even, the lease
 * counts as a use. */
static void snapshot_beside_a_release_that_records_is_exact(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, C0);
    struct args ending = {.m = m, .lease = acquire(m, v, C0, spec_stream(f, 0))};
    struct op releaser;
    NEED_POINTS();
    OP_START(&releaser, run_release, &ending, TN__POINT_RECORDED);
    op_reach(&releaser);
    assert_true(exact(m));
    assert_int_equal(mat(m, v, C0).use_count, 1);
    assert_status(op_end(&releaser), TN_OK);
}

/* Pins of what is not in the pinned version are left out, of values and of locations (S1). */
static void snapshot_leaves_out_pins_of_what_was_removed(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_lease lease = acquire(m, v, P, NULL);
    tn__record *record = lease.record;
    tn__pin *pin = &tn__load_acq(&record->pins)->pin[0];
    tn__mat *real = tn__load_rlx(&pin->mat);
    tn__store_rlx(&pin->mat, (tn__mat *)pin); /* to compare, never to follow */
    assert_int_equal(mat(m, v, P).use_count, 0);
    assert_int_equal(loc(m, P).use_count, 0);
    assert_int_equal(info(m).lease_count, 1);
    tn__store_rlx(&pin->mat, real);
    tn__store_rlx(&pin->index, 77); /* no such value */
    assert_int_equal(mat(m, v, P).use_count, 0);
    tn__store_rlx(&pin->index, v.index);
    assert_int_equal(mat(m, v, P).use_count, 1);
    release(&lease);
}

/* A reservation that is made meanwhile, at a location that the version does not track yet, and
 * bytes above the peak: an inexact sum is clamped. */
static void snapshot_that_is_not_exact_clamps_to_the_peak(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 100});
    tn_reservation r = reserve(m, P, 40, "r");
    tn__record *record = r.record;
    tn__slot *slot = own_slot(m);
    uint64_t begun = tn__count_begin(slot);
    tn__store_rlx(&record->pair.high, 90); /* as if read in the middle of two reservations */
    assert_int_equal(reserved(m, P), 40);
    tn__store_rlx(&record->what, tn__what(TN__KIND_RESERVATION, C1));
    assert_int_equal(reserved(m, P), 0);
    tn__store_rlx(&record->what, tn__what(TN__KIND_RESERVATION, P));
    tn__store_rlx(&record->pair.high, 40);
    tn__count_end(slot, begun, 0);
    assert_int_equal(reserved(m, P), 40);
    release_reservation(&r);
}

/* Settled by a transition that was not published when the version was pinned. */
static void snapshot_peak_is_at_least_what_the_version_used(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    (void)adopt_rep(f, m, P);
    tn__ledger *ledger = tn__store_ledger(m->store, P);
    tn__store_rlx(&ledger->peak_charged, 0);
    assert_peaks(m, P, 32, 32);
    tn__store_rlx(&ledger->peak_charged, 32);
}

/* A snapshot outlives what it shows, and the manager. */
static void snapshot_outlives_its_manager(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_snapshot *s = NULL;
    tn_value_info row = {.size = sizeof row};
    assert_ok(tn_snapshot_take(m, &s));
    (void)discard(m, v);
    spec_destroy(f, m);
    assert_int_equal(head_of(s).value_count, 1);
    assert_ok(tn_snapshot_value(s, v, &row));
    assert_int_equal(row.materialization_count, 1);
    tn_snapshot_drop(s);
    tn_snapshot_drop(NULL);
}

struct dropping {
    tn_snapshot *s;
};

static tn_status drop_snapshot(void *arg) {
    tn_snapshot_drop(((struct dropping *)arg)->s);
    return TN_OK;
}

/* On a thread that has never called us. */
static void snapshot_may_be_dropped_by_a_new_thread(void **state) {
    tn_manager *m = MANAGER(*state);
    struct dropping d = {NULL};
    struct op dropper;
    assert_ok(tn_snapshot_take(m, &d.s));
    OP_START(&dropper, drop_snapshot, &d, 0);
    assert_status(op_end(&dropper), TN_OK);
}

struct publishing {
    struct spec *f;
    tn_manager *m;
    atomic_bool stop;
};

static tn_status reserve_and_release(void *arg) {
    struct publishing *p = arg;
    while (!atomic_load(&p->stop)) {
        tn_reservation r;
        tn_status status = tn_manager_reserve(p->m, P, 8, "r", &r);
        if (status == TN_OK)
            status = tn_reservation_release(&r);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

/* Whatever it says, an exact one has a sum that fits its version: 1 more with each effect. */
static void snapshot_beside_a_busy_thread_tells_the_truth_when_exact(void **state) {
    struct spec *f = *state;
    struct publishing p = {.f = f, .m = MANAGER(f, {P, 100})};
    struct op busy;
    uint64_t even = version(p.m);
    OP_START(&busy, reserve_and_release, &p, 0);
    for (int i = 0; i < 300; i++) {
        tn_snapshot *s = NULL;
        assert_ok(tn_snapshot_take(p.m, &s));
        tn_snapshot_info head = head_of(s);
        if (head.exact)
            assert_int_equal(head.reservation_count, (head.state_version - even) % 2);
        tn_snapshot_drop(s);
    }
    atomic_store(&p.stop, true);
    assert_status(op_end(&busy), TN_OK);
}

static const struct CMUnitTest tests[] = {
    SPEC_CONCURRENT(snapshot_while_nothing_happens_is_exact),
    SPEC_CONCURRENT(snapshot_while_a_counter_is_odd_is_not_exact),
    SPEC_BOTH(snapshot_beside_an_acquire_in_progress_is_not_exact),
    SPEC_CONCURRENT(snapshot_beside_a_release_that_records_is_exact),
    SPEC_CONCURRENT(snapshot_leaves_out_pins_of_what_was_removed),
    SPEC_CONCURRENT(snapshot_that_is_not_exact_clamps_to_the_peak),
    SPEC_CONCURRENT(snapshot_peak_is_at_least_what_the_version_used),
    SPEC_CONCURRENT(snapshot_outlives_its_manager),
    SPEC_CONCURRENT(snapshot_may_be_dropped_by_a_new_thread),
    SPEC_CONCURRENT(snapshot_beside_a_busy_thread_tells_the_truth_when_exact),
};

TN_TEST_MAIN("unit.snapshot_take", tests)
