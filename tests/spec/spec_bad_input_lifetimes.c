/* SPDX-License-Identifier: MIT */
/* What a program can get wrong: lease.h and snapshot.h. */
#include "spec_bad_input.h"

/* ---- lease.h --------------------------------------------------------------------------------- */

static void lease_arguments(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    tn_stream s0 = spec_stream(f, 0);
    tn_stream s1 = spec_stream(f, 1);
    tn_stream capturing = NULL;
    tn_lease out = {NULL, 0};
    tn_hold held = {NULL, 0};
    tn_handle twice[3] = {h, h, h};
    char *before;

    ensure(m, h, C0);
    before = spec_describe(m, 0);
    assert_ok(tn_sim_stream_create(f->sim, 0, TN_SIM_STREAM_CAPTURING, &capturing));
    assert_status(tn_manager_acquire(m, NULL, 1, P, NULL, &out), TN_ERR_KIND);
    assert_status(tn_manager_acquire(m, &h, 1, P, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_acquire(m, &h, 0, P, NULL, &out), TN_ERR_VALUE);
    assert_status(tn_manager_acquire(m, &h, 1, NOWHERE, NULL, &out), TN_ERR_KIND);
    assert_status(tn_manager_acquire(m, &h, 1, bad_kind, NULL, &out), TN_ERR_KIND);
    assert_status(tn_manager_acquire(m, &h, 1, C2, s0, &out), TN_ERR_VALUE);
    assert_status(tn_manager_acquire(m, &h, 1, P, s0, &out), TN_ERR_VALUE);
    assert_status(tn_manager_acquire(m, &h, 1, C0, NULL, &out), TN_ERR_VALUE);
    assert_status(tn_manager_acquire(m, &h, 1, C0, s1, &out), TN_ERR_VALUE);
    assert_status(tn_manager_acquire(m, &h, 1, C0, capturing, &out), TN_ERR_VALUE);
    assert_status(tn_manager_acquire(m, &h, 1, C0, TN_STREAM_PER_THREAD, &out), TN_ERR_VALUE);
    assert_status(tn_manager_acquire(m, &h, 1, C0, no_stream, &out), TN_ERR_KIND);
    assert_status(tn_manager_acquire(m, &h, 1, N, NULL, &out), TN_ERR_UNAVAILABLE);

    assert_status(tn_manager_hold(m, NULL, 1, P, &held), TN_ERR_KIND);
    assert_status(tn_manager_hold(m, &h, 1, P, NULL), TN_ERR_KIND);
    assert_status(tn_manager_hold(m, &h, 0, P, &held), TN_ERR_VALUE);
    assert_status(tn_manager_hold(m, &h, 1, bad_kind, &held), TN_ERR_KIND);
    assert_status(tn_manager_hold(m, &h, 1, NOWHERE, &held), TN_ERR_KIND);
    assert_status(tn_manager_hold(m, &h, 1, C2, &held), TN_ERR_VALUE);
    assert_null(out.record);
    assert_null(held.record);
    assert_unchanged(m, before, 0);

    /* Duplicates are no mistake (M129). */
    assert_ok(tn_manager_acquire(m, twice, 3, P, NULL, &out));
    assert_ok(tn_manager_hold(m, twice, 3, P, &held));
    assert_int_equal(mat(m, h, P).use_count, 1);
    assert_int_equal(mat(m, h, P).hold_count, 1);
    release(&out);
    release_hold(&held);
    /* The default stream of the device may consume. */
    out = acquire(m, h, C0, TN_STREAM_LEGACY);
    assert_ok(tn_lease_release(&out, TN_RELEASE_WAIT));
    assert_ok(tn_sim_stream_destroy(f->sim, capturing));
    /* Arguments that need no state come first on a closed manager too (M251). */
    assert_ok(tn_manager_close(m, 0));
    assert_status(tn_manager_acquire(m, &h, 0, P, NULL, &out), TN_ERR_VALUE);
    assert_status(tn_manager_acquire(m, NULL, 1, P, NULL, &out), TN_ERR_KIND);
    assert_status(tn_manager_hold(m, &h, 0, P, &held), TN_ERR_VALUE);
    assert_status(tn_manager_acquire(m, &h, 1, P, NULL, &out), TN_ERR_CLOSED);
    assert_status(tn_manager_hold(m, &h, 1, P, &held), TN_ERR_CLOSED);
}

static void lifetimes_null_none_and_ended(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    tn_lease none = {NULL, 0};
    tn_hold no_hold = {NULL, 0};
    tn_reservation no_r = {NULL, 0};
    tn_lease lease = acquire(m, h, P, NULL);
    tn_hold held = hold(m, h, P);
    tn_reservation r = reserve(m, P, 5, "five");
    tn_reservation_info row = {.size = sizeof(row)};
    const void *data = NULL;
    tn_handle list[1];
    tn_location at = {9, 9};
    size_t count = 1;
    bool yes = false;

    assert_status(tn_lease_lookup(NULL, h, &data), TN_ERR_KIND);
    assert_status(tn_lease_lookup(&lease, h, NULL), TN_ERR_KIND);
    assert_status(tn_lease_lookup(&lease, (tn_handle){0, 0, NULL}, &data), TN_ERR_KIND);
    assert_status(tn_lease_lookup(&lease, (tn_handle){h.manager, 999, h.type}, &data),
                  TN_ERR_LOOKUP);
    assert_status(tn_lease_contains(NULL, h, &yes), TN_ERR_KIND);
    assert_status(tn_lease_contains(&lease, h, NULL), TN_ERR_KIND);
    assert_status(tn_lease_contains(&lease, (tn_handle){0, 0, NULL}, &yes), TN_ERR_KIND);
    assert_status(tn_lease_handles(NULL, list, &count), TN_ERR_KIND);
    assert_status(tn_lease_handles(&lease, list, NULL), TN_ERR_KIND);
    assert_status(tn_lease_handles(&lease, NULL, &count), TN_ERR_KIND);
    assert_status(tn_lease_location(NULL, &at), TN_ERR_KIND);
    assert_status(tn_lease_location(&lease, NULL), TN_ERR_KIND);
    assert_false(tn_lease_active(NULL));
    assert_status(tn_lease_add_stream(NULL, no_stream), TN_ERR_KIND);
    assert_status(tn_lease_release(NULL, 0), TN_ERR_KIND);
    assert_status(tn_lease_release(&lease, 2), TN_ERR_VALUE);
    assert_true(tn_lease_active(&lease));

    assert_status(tn_hold_release(NULL), TN_ERR_KIND);
    assert_status(tn_hold_handles(NULL, list, &count), TN_ERR_KIND);
    assert_status(tn_hold_handles(&held, list, NULL), TN_ERR_KIND);
    assert_status(tn_hold_handles(&held, NULL, &count), TN_ERR_KIND);
    assert_status(tn_hold_location(NULL, &at), TN_ERR_KIND);
    assert_status(tn_hold_location(&held, NULL), TN_ERR_KIND);
    assert_false(tn_hold_active(NULL));
    assert_status(tn_reservation_release(NULL), TN_ERR_KIND);
    assert_false(tn_reservation_active(NULL));
    assert_status(tn_reservation_read(NULL, &row), TN_ERR_KIND);
    assert_status(tn_reservation_read(&r, NULL), TN_ERR_KIND);
    CHECK_OUT(tn_reservation_info, tn_reservation_read(&r, it));

    release(&lease);
    release_hold(&held);
    release_reservation(&r);
    for (int i = 0; i < 2; i++) { /* ended, then none */
        assert_false(tn_lease_active(&lease));
        assert_status(tn_lease_lookup(&lease, h, &data), TN_ERR_LIFETIME_CLOSED);
        assert_status(tn_lease_contains(&lease, h, &yes), TN_ERR_LIFETIME_CLOSED);
        count = 1;
        assert_status(tn_lease_handles(&lease, list, &count), TN_ERR_LIFETIME_CLOSED);
        assert_status(tn_lease_location(&lease, &at), TN_ERR_LIFETIME_CLOSED);
        assert_status(tn_lease_add_stream(&lease, TN_STREAM_LEGACY), TN_ERR_LIFETIME_CLOSED);
        assert_ok(tn_lease_release(&lease, 0));
        assert_false(tn_hold_active(&held));
        assert_status(tn_hold_handles(&held, list, &count), TN_ERR_LIFETIME_CLOSED);
        assert_status(tn_hold_location(&held, &at), TN_ERR_LIFETIME_CLOSED);
        assert_ok(tn_hold_release(&held));
        assert_false(tn_reservation_active(&r));
        assert_status(tn_reservation_read(&r, &row), TN_ERR_LIFETIME_CLOSED);
        assert_ok(tn_reservation_release(&r));
        lease = none;
        held = no_hold;
        r = no_r;
    }
    assert_null(data);
    assert_int_equal(at.kind, 9);
}

/* A released lifetime whose record serves another one meanwhile stays released. */
static void stale_lifetimes_touch_nothing(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    tn_lease old = acquire(m, h, P, NULL);
    tn_hold old_hold = hold(m, h, P);
    tn_reservation old_r = reserve(m, P, 1, "old");
    tn_lease now;
    tn_hold hold_now;
    tn_reservation r_now;

    release(&old);
    release_hold(&old_hold);
    release_reservation(&old_r);
    now = acquire(m, h, P, NULL);
    hold_now = hold(m, h, P);
    r_now = reserve(m, P, 2, "new");
    release(&old);
    release_hold(&old_hold);
    release_reservation(&old_r);
    assert_true(tn_lease_active(&now));
    assert_true(tn_hold_active(&hold_now));
    assert_true(tn_reservation_active(&r_now));
    assert_false(tn_lease_active(&old));
    assert_int_equal(mat(m, h, P).use_count, 1);
    assert_int_equal(mat(m, h, P).hold_count, 1);
    assert_int_equal(reserved(m, P), 2);
}

static void consumer_streams(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, C0);
    tn_stream s0 = spec_stream(f, 0);
    tn_stream s1 = spec_stream(f, 1);
    tn_stream capturing = NULL;
    tn_lease lease = acquire(m, h, C0, s0);

    assert_ok(tn_sim_stream_create(f->sim, 0, TN_SIM_STREAM_CAPTURING, &capturing));
    assert_status(tn_lease_add_stream(&lease, NULL), TN_ERR_KIND);
    assert_status(tn_lease_add_stream(&lease, no_stream), TN_ERR_KIND);
    assert_status(tn_lease_add_stream(&lease, s1), TN_ERR_VALUE);
    assert_status(tn_lease_add_stream(&lease, capturing), TN_ERR_VALUE);
    assert_status(tn_lease_add_stream(&lease, TN_STREAM_PER_THREAD), TN_ERR_VALUE);
    assert_ok(tn_lease_add_stream(&lease, s0)); /* again */
    assert_ok(tn_sim_stream_destroy(f->sim, capturing));
    release(&lease);
    assert_status(tn_lease_add_stream(&lease, s1), TN_ERR_LIFETIME_CLOSED);
    h = adopt_rep(f, m, P);
    lease = acquire(m, h, P, NULL);
    assert_status(tn_lease_add_stream(&lease, s0), TN_ERR_VALUE); /* host */
    release(&lease);
}

static void reserve_arguments(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    char label[300];
    tn_reservation r = {NULL, 0};
    tn_reservation_info row = {.size = sizeof(row)};

    memset(label, 'x', sizeof(label));
    label[256] = '\0';
    assert_status(tn_manager_reserve(m, P, 1, "r", NULL), TN_ERR_KIND);
    assert_status(tn_manager_reserve(m, P, 1, NULL, &r), TN_ERR_KIND);
    assert_status(tn_manager_reserve(m, P, 1, "", &r), TN_ERR_VALUE);
    assert_status(tn_manager_reserve(m, P, 1, " \t\n\v\f\r", &r), TN_ERR_VALUE);
    assert_status(tn_manager_reserve(m, P, 1, label, &r), TN_ERR_VALUE);
    assert_status(tn_manager_reserve(m, P, too_many_bytes, "r", &r), TN_ERR_VALUE);
    assert_status(tn_manager_reserve(m, P, UINT64_MAX, "r", &r), TN_ERR_VALUE);
    assert_status(tn_manager_reserve(m, NOWHERE, 1, "r", &r), TN_ERR_KIND);
    assert_status(tn_manager_reserve(m, bad_kind, 1, "r", &r), TN_ERR_KIND);
    assert_status(tn_manager_reserve(m, C2, 1, "r", &r), TN_ERR_VALUE);
    assert_null(r.record);
    assert_locations(m);
    assert_int_equal(version(m), 0);
    label[255] = '\0'; /* the longest */
    r = reserve(m, P, 1, label);
    assert_ok(tn_reservation_read(&r, &row));
    assert_string_equal(row.label, label);
    release_reservation(&r);
    assert_ok(tn_manager_close(m, 0));
    assert_status(tn_manager_reserve(m, P, 1, " ", &r), TN_ERR_VALUE);
    assert_status(tn_manager_reserve(m, P, too_many_bytes, "r", &r), TN_ERR_VALUE);
    assert_status(tn_manager_reserve(m, P, 1, "r", &r), TN_ERR_CLOSED);
}

/* ---- snapshot.h ------------------------------------------------------------------------------ */

static void snapshots(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_manager *other = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    tn_handle foreign = adopt_rep(f, other, P);
    tn_handle unknown = {h.manager, 999, h.type};
    tn_handle zero = {0, 0, NULL};
    tn_snapshot_info head = {.size = sizeof(head)};
    tn_value_info row = {.size = sizeof(row)};
    tn_materialization_info mats[1] = {{.size = sizeof(mats[0])}};
    tn_location_info locations[1] = {{.size = sizeof(locations[0])}};
    tn_reservation_info reservations[1] = {{.size = sizeof(reservations[0])}};
    tn_snapshot *s = NULL;
    uint64_t cursor = 0;
    size_t count = 1;
    bool more = false;

    reserve(m, N, 1, "a");
    reserve(m, N, 2, "b");
    assert_status(tn_snapshot_take(m, NULL), TN_ERR_KIND);
    assert_ok(tn_snapshot_take(m, &s));
    tn_snapshot_drop(NULL);

    assert_status(tn_snapshot_read(NULL, &head), TN_ERR_KIND);
    assert_status(tn_snapshot_read(s, NULL), TN_ERR_KIND);
    CHECK_OUT(tn_snapshot_info, tn_snapshot_read(s, it));

    assert_status(tn_snapshot_next(NULL, &cursor, &row, &more), TN_ERR_KIND);
    assert_status(tn_snapshot_next(s, NULL, &row, &more), TN_ERR_KIND);
    assert_status(tn_snapshot_next(s, &cursor, NULL, &more), TN_ERR_KIND);
    assert_status(tn_snapshot_next(s, &cursor, &row, NULL), TN_ERR_KIND);
    assert_int_equal(cursor, 0);
    CHECK_OUT(tn_value_info, (cursor = 0, tn_snapshot_next(s, &cursor, it, &more)));
    cursor = UINT64_MAX; /* a cursor of nobody's */
    more = true;
    assert_ok(tn_snapshot_next(s, &cursor, &row, &more));
    assert_false(more);

    assert_status(tn_snapshot_value(NULL, h, &row), TN_ERR_KIND);
    assert_status(tn_snapshot_value(s, h, NULL), TN_ERR_KIND);
    assert_status(tn_snapshot_value(s, zero, &row), TN_ERR_KIND);
    assert_handle_error(tn_snapshot_value(s, foreign, &row), TN_HANDLE_FOREIGN);
    assert_handle_error(tn_snapshot_value(s, unknown, &row), TN_HANDLE_UNKNOWN);
    CHECK_OUT(tn_value_info, tn_snapshot_value(s, h, it));

    assert_status(tn_snapshot_materializations(NULL, h, mats, &count), TN_ERR_KIND);
    assert_status(tn_snapshot_materializations(s, h, mats, NULL), TN_ERR_KIND);
    assert_status(tn_snapshot_materializations(s, h, NULL, &count), TN_ERR_KIND);
    assert_status(tn_snapshot_materializations(s, zero, mats, &count), TN_ERR_KIND);
    assert_handle_error(tn_snapshot_materializations(s, foreign, mats, &count), TN_HANDLE_FOREIGN);
    assert_handle_error(tn_snapshot_materializations(s, unknown, mats, &count), TN_HANDLE_UNKNOWN);
    mats[0].size = 1;
    assert_status(tn_snapshot_materializations(s, h, mats, &count), TN_ERR_KIND);
    assert_int_equal(count, 1);

    assert_status(tn_snapshot_locations(NULL, locations, &count), TN_ERR_KIND);
    assert_status(tn_snapshot_locations(s, locations, NULL), TN_ERR_KIND);
    assert_status(tn_snapshot_locations(s, NULL, &count), TN_ERR_KIND);
    assert_ok(tn_snapshot_locations(s, locations, &count)); /* truncated */
    assert_int_equal(count, 2);
    count = 1;
    locations[0].size = 0;
    assert_status(tn_snapshot_locations(s, locations, &count), TN_ERR_KIND);

    assert_status(tn_snapshot_reservations(NULL, reservations, &count), TN_ERR_KIND);
    assert_status(tn_snapshot_reservations(s, reservations, NULL), TN_ERR_KIND);
    assert_status(tn_snapshot_reservations(s, NULL, &count), TN_ERR_KIND);
    assert_ok(tn_snapshot_reservations(s, reservations, &count));
    assert_int_equal(count, 2);
    assert_string_equal(reservations[0].label, "a");
    count = 1;
    reservations[0].size = 0;
    assert_status(tn_snapshot_reservations(s, reservations, &count), TN_ERR_KIND);
    tn_snapshot_drop(s);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(lease_arguments),
    SPEC_BOTH(lifetimes_null_none_and_ended),
    SPEC_BOTH(stale_lifetimes_touch_nothing),
    SPEC_BOTH(consumer_streams),
    SPEC_BOTH(reserve_arguments),
    SPEC_BOTH(snapshots),
};

TN_TEST_MAIN("spec.bad_input_lifetimes", tests)
