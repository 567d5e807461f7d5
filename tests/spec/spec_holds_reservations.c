/* SPDX-License-Identifier: MIT */
/*
 * Holds, reservations and what happens to lifetimes that nobody ends (M151..M160, M148; cases MC95,
 * MC105..MC107, MC112, MC113), and adopting into a reservation.
 *
 * There is no garbage collection (D15): an abandoned lifetime is one that is still open when its
 * manager is destroyed.
 */
#include "spec_b_common.h"

/* ---- Holds ---------------------------------------------------------------------------------- */

static void mc095_a_hold_of_duplicates(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle a = adopt_rep(f, m, P);
    tn_handle b = adopt_rep(f, m, P);
    const tn_handle set[] = {a, b, a};
    tn_handle listed[3] = {{0, 0, NULL}};
    size_t count = 3;
    tn_location at = NOWHERE;
    tn_hold h;

    assert_rises(m, 1, assert_ok(tn_manager_hold(m, set, 3, P, &h)));
    assert_ok(tn_hold_handles(&h, listed, &count));
    assert_int_equal(count, 2);
    assert_handle(listed[0], a);
    assert_handle(listed[1], b);
    assert_ok(tn_hold_location(&h, &at));
    assert_at(at, P);
    assert_true(tn_hold_active(&h));
    assert_int_equal(loc(m, P).hold_count, 2);
    assert_int_equal(info(m).hold_count, 1);
    assert_in_use(tn_manager_discard(m, b, NULL), 0, 1, 0);
    assert_handle(tn_last_error()->handle, b);
    assert_at(tn_last_error()->at, P);
    assert_rises(m, 1, release_hold(&h));
    assert_rises(m, 0, release_hold(&h));
    assert_int_equal(loc(m, P).hold_count, 0);
    assert_false(tn_hold_active(&h));
    count = 3; /* an ended hold names nothing (departure, lease.h) */
    assert_status(tn_hold_handles(&h, listed, &count), TN_ERR_LIFETIME_CLOSED);
    assert_status(tn_hold_location(&h, &at), TN_ERR_LIFETIME_CLOSED);
    discard(m, b);
}

static void mc112_a_hold_on_a_device_needs_no_stream(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_stream s = spec_stream(f, 0);
    tn_lease lease;
    tn_hold h;

    ensure(m, v, C0);
    h = hold(m, v, C0);
    assert_int_equal(loc(m, C0).hold_count, 1);
    assert_int_equal(mat(m, v, C0).hold_count, 1);
    assert_int_equal(mat(m, v, P).hold_count, 0);
    assert_in_use(tn_manager_drop(m, v, C0, NULL), 0, 1, 0);
    lease = acquire(m, v, C0, s);
    assert_in_use(tn_manager_drop(m, v, C0, NULL), 1, 1, 0);
    spec_busy(f, s);
    release(&lease);
    assert_in_use(tn_manager_drop(m, v, C0, NULL), 0, 1, 1);
    release_hold(&h); /* at once, though its device is busy */
    assert_in_use(tn_manager_drop(m, v, C0, NULL), 0, 0, 1);
    spec_finish(f);
    drop(m, v, C0);
}

/* ---- Reservations --------------------------------------------------------------------------- */

static void mc107_reserve_checks_its_arguments(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_reservation r = {NULL, 0};
    const tn_location no_kind = {7, 0};
    char longest[256];
    char too_long[257];
    uint64_t before = version(m);

    memset(longest, 'l', sizeof longest);
    longest[255] = '\0';
    memset(too_long, 'l', sizeof too_long);
    too_long[256] = '\0';
    assert_status(tn_manager_reserve(m, P, UINT64_MAX, "x", &r), TN_ERR_VALUE);
    assert_status(tn_manager_reserve(m, P, (uint64_t)INT64_MAX + 1, "x", &r), TN_ERR_VALUE);
    assert_status(tn_manager_reserve(m, P, 1, NULL, &r), TN_ERR_KIND);
    assert_status(tn_manager_reserve(m, P, 1, "", &r), TN_ERR_VALUE);
    assert_status(tn_manager_reserve(m, P, 1, " \t\n ", &r), TN_ERR_VALUE);
    assert_status(tn_manager_reserve(m, P, 1, too_long, &r), TN_ERR_VALUE);
    assert_status(tn_manager_reserve(m, no_kind, 1, "x", &r), TN_ERR_KIND);
    assert_status(tn_manager_reserve(m, NOWHERE, 1, "x", &r), TN_ERR_KIND);
    assert_status(tn_manager_reserve(m, C2, 1, "x", &r), TN_ERR_VALUE);
    assert_status(tn_manager_reserve(m, tn_location_cuda(128), 1, "x", &r), TN_ERR_VALUE);
    assert_status(tn_manager_reserve(m, P, 1, "x", NULL), TN_ERR_KIND);
    assert_status(tn_manager_reserve(NULL, P, 1, "x", &r), TN_ERR_KIND);
    assert_null(r.record);
    assert_locations(m, );
    assert_int_equal(version(m), before);
    assert_int_equal(info(m).reservation_count, 0);
    r = reserve(m, P, INT64_MAX, longest);
    assert_int_equal(reserved(m, P), INT64_MAX);
    release_reservation(&r);
}

/* Two of the largest do not fit into a 64-bit sum: refused, never wrapped (G42). */
static void mc107_a_sum_that_overflows_is_refused(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_reservation r[3] = {{NULL, 0}};

    for (int i = 0; i < 2; i++) {
        tn_status status = tn_manager_reserve(m, P, INT64_MAX, "half", &r[i]);

        assert_true(status == TN_OK || (i > 0 && status == TN_ERR_BUDGET));
    }
    assert_status(tn_manager_reserve(m, P, INT64_MAX, "too much", &r[2]), TN_ERR_BUDGET);
    assert_null(r[2].record);
    assert_int_equal(tn_last_error()->requested_bytes, INT64_MAX);
    assert_null_text(spec_b_check(m));
    for (int i = 0; i < 2; i++)
        release_reservation(&r[i]);
    assert_int_equal(reserved(m, P), 0);
}

/* The rows of the reservations of a fresh snapshot. */
static size_t reservations(tn_manager *m, tn_reservation_info *rows, size_t room) {
    tn_snapshot *s = NULL;
    size_t count = room;

    assert_ok(tn_snapshot_take(m, &s));
    rows[0].size = sizeof rows[0];
    assert_ok(tn_snapshot_reservations(s, rows, &count));
    tn_snapshot_drop(s);
    assert_true(count <= room);
    return count;
}

static void mc113_labels_need_not_be_unique(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_reservation_info rows[4] = {{.size = 0}};
    tn_reservation_info one = {.size = sizeof one};
    tn_reservation first = reserve(m, P, 5, "workspace");
    tn_reservation second = reserve(m, P, 7, "workspace");

    assert_int_equal(reserved(m, P), 12);
    assert_int_equal(loc(m, P).reservation_count, 2);
    assert_int_equal(info(m).reservation_count, 2);
    assert_int_equal(reservations(m, rows, 4), 2);
    assert_int_equal(rows[0].bytes, 5);
    assert_int_equal(rows[1].bytes, 7);
    for (int i = 0; i < 2; i++) {
        assert_at(rows[i].at, P);
        assert_string_equal(rows[i].label, "workspace");
    }
    assert_ok(tn_reservation_read(&second, &one));
    assert_int_equal(one.bytes, 7);
    assert_at(one.at, P);
    assert_string_equal(one.label, "workspace");
    assert_true(tn_reservation_active(&second));

    release_reservation(&first);
    assert_int_equal(reservations(m, rows, 4), 1);
    assert_int_equal(rows[0].bytes, 7);
    first = reserve(m, P, 3, "workspace"); /* the record of the first is free: order is admission */
    assert_int_equal(reservations(m, rows, 4), 2);
    assert_int_equal(rows[0].bytes, 7);
    assert_int_equal(rows[1].bytes, 3);
    release_reservation(&second);
    release_reservation(&second);
    assert_int_equal(reserved(m, P), 3);
    assert_status(tn_reservation_read(&second, &one), TN_ERR_LIFETIME_CLOSED);
    assert_false(tn_reservation_active(&second));
    assert_status(tn_reservation_read(NULL, &one), TN_ERR_KIND);
    assert_status(tn_reservation_read(&first, NULL), TN_ERR_KIND);
    assert_status(tn_reservation_release(NULL), TN_ERR_KIND);
    release_reservation(&first);
}

/* ---- Lifetimes that nobody ends ------------------------------------------------------------- */

static void mc105_abandoned_lifetimes_give_a_warning_each(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    uint64_t live = tt_count().live;
    tn_handle v = adopt_rep(f, m, P);
    tn_lease lease = acquire(m, v, P, NULL);
    tn_hold h = hold(m, v, P);
    tn_reservation r = reserve(m, P, 4, "abandoned");
    uint64_t id = tn_manager_id(m);
    tn_snapshot *kept = NULL;
    tn_snapshot_info head = {.size = sizeof head};
    tn_location_info row = {.size = sizeof row};
    size_t count = 1;

    assert_ok(tn_snapshot_take(m, &kept));
    spec_destroy(f, m);
    assert_int_equal(spec_warnings(f, TN_DIAGNOSTIC_LEASE_ABANDONED), 1);
    assert_int_equal(spec_warnings(f, TN_DIAGNOSTIC_HOLD_ABANDONED), 1);
    assert_int_equal(spec_warnings(f, TN_DIAGNOSTIC_RESERVATION_ABANDONED), 1);
    assert_int_equal(spec_warnings_all(f), 3);
    assert_int_equal(f->last_warning_manager, id);
    assert_at(f->last_warning_at, P);
    assert_string_not_equal(f->last_warning, "");
    assert_int_equal(tt_count().live, live);
    release(&lease); /* their owners may still end them */
    release_hold(&h);
    release_reservation(&r);

    assert_ok(tn_snapshot_read(kept, &head)); /* what was seen before stays readable */
    assert_int_equal(head.lease_count, 1);
    assert_int_equal(head.hold_count, 1);
    assert_int_equal(head.reservation_count, 1);
    assert_ok(tn_snapshot_locations(kept, &row, &count));
    assert_int_equal(row.peak_used_bytes, 32);
    assert_int_equal(row.peak_charged_bytes, 36);
    assert_null_text(spec_b_check_snapshot(kept));
    tn_snapshot_drop(kept);
}

static void mc106_an_abandoned_device_lease_is_waited_for(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_stream s = spec_stream(f, 0);
    tn_sim_memory memory = {.size = sizeof memory};
    const void *data = NULL;
    tn_lease lease;

    ensure(m, v, C0);
    lease = acquire(m, v, C0, s);
    assert_ok(tn_lease_lookup(&lease, v, &data));
    /* A read of the storage: freeing it too early is a violation that the teardown sees. */
    assert_ok(tn_sim_queue_read(f->sim, s, tt_field_base(data, 0), 32, 1000000));
    assert_false(spec_idle(f, s));
    spec_destroy(f, m);
    assert_true(spec_idle(f, s));
    assert_int_equal(spec_warnings(f, TN_DIAGNOSTIC_LEASE_ABANDONED), 1);
    assert_int_equal(spec_warnings_all(f), 1);
    assert_at(f->last_warning_at, C0);
    assert_ok(tn_sim_read_memory(f->sim, C0, &memory));
    assert_int_equal(memory.live_bytes, 0);
    assert_int_equal(memory.peak_bytes, 32);
    assert_int_equal(tn_sim_violations(f->sim), 0);
    release(&lease);
}

/* ---- Adopting into a reservation ------------------------------------------------------------ */

static void adopt_reserved_moves_the_charge_in_one_step(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 64});
    tn_reservation r = reserve(m, P, 64, "results");
    tn_reservation_info left = {.size = sizeof left};
    tn_payload payload = spec_v(f, P);
    tn_payload second = spec_v(f, P);
    tn_payload third = spec_v(f, P);
    tn_handle a = {0, 0, NULL};
    tn_handle b = {0, 0, NULL};
    tn_handle c = {0, 0, NULL};
    const void *data = NULL;
    tn_lease lease;

    assert_status(tn_manager_adopt(m, payload, P, TN_EXCLUSIVE, &a), TN_ERR_BUDGET);
    assert_budget_error(P, 64, 0, 64, 32);
    assert_rises(m, 1, assert_ok(tn_manager_adopt_reserved(m, payload, P, TN_EXCLUSIVE, &r, &a)));
    assert_int_equal(used(m, P), 32);
    assert_int_equal(reserved(m, P), 32);
    assert_int_equal(remaining(m, P), 0);
    assert_peaks(m, P, 32, 64);
    assert_true(tn_reservation_active(&r));
    assert_ok(tn_reservation_read(&r, &left));
    assert_int_equal(left.bytes, 32);
    assert_string_equal(left.label, "results");
    assert_int_equal(loc(m, P).reservation_count, 1);
    assert_int_equal(value(m, a).spec.recoverability, TN_MUST_PRESERVE);
    lease = acquire(m, a, P, NULL);
    assert_ok(tn_lease_lookup(&lease, a, &data));
    assert_ptr_equal(data, payload.data); /* the very same storage (M61) */
    release(&lease);

    assert_ok(tn_manager_adopt_reserved(m, second, NOWHERE, TN_REPLICABLE, &r, &b)); /* inferred */
    assert_int_equal(used(m, P), 64);
    assert_int_equal(reserved(m, P), 0);
    assert_peaks(m, P, 64, 64);
    assert_true(tn_reservation_active(&r)); /* with nothing left it is still one */
    assert_int_equal(loc(m, P).reservation_count, 1);
    assert_status(tn_manager_adopt_reserved(m, third, P, TN_EXCLUSIVE, &r, &c), TN_ERR_BUDGET);
    assert_int_equal(tn_last_error()->requested_bytes, 32);
    assert_int_equal(c.index, 0);
    assert_rises(m, 1, release_reservation(&r));
    assert_int_equal(used(m, P), 64);
    discard(m, a); /* its bytes are free for everybody, they do not return to the reservation */
    assert_int_equal(remaining(m, P), 32);
    assert_ok(tn_manager_adopt(m, third, P, TN_EXCLUSIVE, &c));
    assert_null_text(spec_b_check(m));
    assert_int_equal(trace_count(m), 1);
}

static void adopt_reserved_refusals_change_nothing(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 256}, {N, 64});
    tn_manager *other = MANAGER(f);
    tn_handle owner = adopt_rep(f, m, P);
    tt_backing *batch = tt_backing_make(NULL, P, 64);
    tn_payload row = tt_row(batch, 0, 32); /* 32 bytes over a batch of 64: charge 64 */
    tn_payload sibling = tt_row(batch, 1, 32);
    tn_payload payload = spec_v(f, P);
    tn_payload pinned = spec_v(f, N);
    tn_reservation small = reserve(m, P, 31, "too small");
    tn_reservation ended = reserve(m, P, 32, "ended");
    tn_reservation foreign = reserve(other, P, 32, "foreign");
    tn_reservation good = reserve(m, P, 64, "good");
    tn_handle h = {0, 0, NULL};
    tn_handle batch_owner;
    char *before;

    batch_owner = spec_adopt(m, row, P, TN_REPLICABLE);
    tt_backing_free(batch);
    release_reservation(&ended);
    before = spec_describe(m, 0);
    assert_status(tn_manager_adopt_reserved(m, payload, P, 0, &small, &h), TN_ERR_BUDGET);
    assert_at(tn_last_error()->at, P);
    assert_status(tn_manager_adopt_reserved(m, payload, P, 0, &ended, &h), TN_ERR_LIFETIME_CLOSED);
    assert_status(tn_manager_adopt_reserved(m, payload, P, 0, &foreign, &h), TN_ERR_VALUE);
    assert_status(tn_manager_adopt_reserved(m, pinned, N, 0, &good, &h), TN_ERR_VALUE);
    assert_status(tn_manager_adopt_reserved(m, pinned, P, 0, &good, &h), TN_ERR_MATERIALIZATION);
    assert_status(tn_manager_adopt_reserved(m, sibling, P, 0, &good, &h), TN_ERR_OWNERSHIP);
    assert_handle(tn_last_error()->owners[0].handle, batch_owner);
    assert_status(tn_manager_adopt_reserved(m, payload, P, 2, &good, &h), TN_ERR_KIND);
    assert_status(tn_manager_adopt_reserved(m, payload, P, 0, NULL, &h), TN_ERR_KIND);
    assert_status(tn_manager_adopt_reserved(m, payload, P, 0, &good, NULL), TN_ERR_KIND);
    assert_status(tn_manager_adopt_reserved(NULL, payload, P, 0, &good, &h), TN_ERR_KIND);
    assert_int_equal(h.index, 0);
    assert_unchanged(m, before, 0);
    assert_int_equal(info(other).reservation_count, 1);
    assert_ok(tn_manager_adopt_reserved(m, payload, P, 0, &good, &h)); /* now it succeeds */
    assert_int_equal(reserved(m, P), 31 + 32);
    release_reservation(&small);
    release_reservation(&good);
    release_reservation(&foreign);
    tt_free(sibling);
    tt_free(pinned);
    discard(m, owner);
    discard(m, h);
    assert_int_equal(used(m, P), 64);
}

/* What else is charged at the location does not matter: the bytes are there already. */
static void adopt_reserved_works_at_a_full_location(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {C0, 64});
    tn_reservation r = reserve(m, C0, 32, "result");
    tn_handle v = adopt_rep(f, m, P);
    tn_payload result = spec_v(f, C0);
    tn_handle h = {0, 0, NULL};

    ensure(m, v, C0);
    assert_int_equal(remaining(m, C0), 0);
    assert_ok(tn_manager_adopt_reserved(m, result, C0, TN_EXCLUSIVE, &r, &h));
    assert_int_equal(used(m, C0), 64);
    assert_int_equal(reserved(m, C0), 0);
    assert_peaks(m, C0, 64, 64);
    assert_replicas(m, h, C0);
    release_reservation(&r);
    assert_null_text(spec_b_check(m));
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(mc095_a_hold_of_duplicates),
    SPEC_BOTH(mc112_a_hold_on_a_device_needs_no_stream),
    SPEC_BOTH(mc107_reserve_checks_its_arguments),
    SPEC_BOTH(mc107_a_sum_that_overflows_is_refused),
    SPEC_BOTH(mc113_labels_need_not_be_unique),
    SPEC_BOTH(mc105_abandoned_lifetimes_give_a_warning_each),
    SPEC_BOTH(mc106_an_abandoned_device_lease_is_waited_for),
    SPEC_BOTH(adopt_reserved_moves_the_charge_in_one_step),
    SPEC_BOTH(adopt_reserved_refusals_change_nothing),
    SPEC_BOTH(adopt_reserved_works_at_a_full_location),
};

TN_TEST_MAIN("spec.holds_reservations", tests)
