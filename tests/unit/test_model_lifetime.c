/* SPDX-License-Identifier: MIT */
/* The reference model: versions, lifetimes, close, orders (MC82..MC175). */
#include "model_cases.h"

/* ---- Versions and lifetimes ------------------------------------------------------------------ */

static void model_mc082_084_versions(void **state) {
    (void)state;
    START();
    tn_handle s = register_src(P);
    assert_int_equal(version(), 2);
    assert_status(tm_ensure(m, s, P, NULL), TN_OK);
    assert_status(tm_ensure(m, s, P, NULL), TN_OK);
    assert_int_equal(version(), 3);
    tm_lease *l = acquire(s, P, NULL);
    assert_int_equal(version(), 4);
    assert_status(tm_release(l, 0), TN_OK);
    assert_status(tm_release(l, 0), TN_OK);
    assert_int_equal(version(), 5);
    assert_status(tm_move(m, s, N, ANY, NULL), TN_OK);
    assert_status(tm_move(m, s, N, ANY, NULL), TN_OK);
    assert_int_equal(version(), 8);
    assert_status(tm_ensure(m, s, C1, NULL), TN_OK);
    assert_int_equal(version(), 10);
    assert_status(tm_ensure(m, s, C0, NULL), TN_OK);
    assert_int_equal(version(), 12);
    assert_status(tm_move(m, s, P, N, NULL), TN_OK);
    assert_int_equal(version(), 14);
    assert_status(tm_move(m, s, C0, P, NULL), TN_OK);
    assert_int_equal(version(), 15);
    assert_status(tm_drop(m, s, N), TN_OK);
    assert_int_equal(version(), 15);
    assert_status(tm_drop(m, s, C1), TN_OK);
    assert_status(tm_drop(m, s, C0), TN_OK);
    assert_int_equal(version(), 17);
    assert_status(tm_discard(m, s), TN_OK);
    assert_int_equal(version(), 18);
    assert_int_equal(m->trace_count, 12);

    START({P, 64});
    adopt_v(P, TN_EXCLUSIVE);
    assert_int_equal(version(), 1);
    tm_reservation *r = reserve(N, 1);
    assert_int_equal(version(), 3);
    assert_status(tm_reservation_release(r), TN_OK);
    reserve(P, 1);
    assert_int_equal(version(), 5);
}

static void model_mc085_087_reaping(void **state) {
    (void)state;
    START();
    tn_handle v = adopt_v(C0, TN_EXCLUSIVE);
    uint64_t before = version();
    tm_lease *l = acquire(v, C0, STREAM(0));
    assert_status(tm_add_stream(l, STREAM(1)), TN_OK);
    assert_status(tm_add_stream(l, STREAM(2)), TN_OK);
    assert_int_equal(m->version, before + 1);
    assert_status(tm_release(l, 0), TN_OK);
    assert_int_equal(m->version, before + 2);
    assert_int_equal(version(), before + 3);
    l = acquire(v, C0, STREAM(0));
    tm_world_queue(&world, STREAM(0), 100);
    assert_status(tm_release(l, TN_RELEASE_WAIT), TN_OK);
    assert_int_equal(m->version, before + 6);
    assert_int_equal(world.now, 100);
    assert_int_equal(tm_find(m, v)->at[0].pendings, 0);

    before = version();
    for (int i = 0; i < 3; i++) {
        tm_world_queue(&world, STREAM(i), 10);
        assert_status(tm_release(acquire(v, C0, STREAM(i)), 0), TN_OK);
    }
    assert_int_equal(version(), before + 6);
    assert_int_equal(tm_find(m, v)->at[0].pendings, 3);
    tm_world_advance(&world, 10);
    reserve(P, 0); /* no reap: M163; tracks P */
    assert_int_equal(m->version, before + 8);
    assert_int_equal(version(), before + 11);
}

static void model_mc093_100_leases_and_holds(void **state) {
    (void)state;
    START();
    tn_handle a = adopt_v(P, TN_EXCLUSIVE), b = adopt_v(P, TN_EXCLUSIVE), c = register_src(P);
    tm_lease *l;
    tm_hold *h;
    assert_status(tm_acquire(m, (tn_handle[]){a, c}, 2, P, NULL, &l), TN_ERR_UNAVAILABLE);
    assert_status(tm_hold_take(m, (tn_handle[]){a, c}, 2, P, &h), TN_ERR_UNAVAILABLE);
    assert_int_equal(tm_find(m, a)->at[0].uses + tm_find(m, a)->at[0].holds, 0);
    assert_status(tm_acquire(m, &a, 0, P, NULL, &l), TN_ERR_VALUE);

    assert_status(tm_acquire(m, (tn_handle[]){a, b, a}, 3, P, NULL, &l), TN_OK);
    assert_int_equal(l->handle_count, 2);
    tm_materialization *x;
    assert_status(tm_lookup(l, c, &x), TN_ERR_LOOKUP);
    assert_status(tm_lookup(l, b, &x), TN_OK);
    assert_status(tm_discard(m, a), TN_ERR_IN_USE);
    expect_in_use(1, 0, 0);
    assert_status(tm_release(l, 0), TN_OK);
    assert_status(tm_release(l, 0), TN_OK);
    assert_status(tm_lookup(l, b, &x), TN_ERR_LIFETIME_CLOSED);

    assert_status(tm_hold_take(m, (tn_handle[]){a, b, a}, 3, P, &h), TN_OK);
    acquire(a, P, NULL);
    acquire(a, P, NULL);
    assert_status(tm_discard(m, a), TN_ERR_IN_USE);
    expect_in_use(2, 1, 0);
    tm_view view;
    assert_status(tm_snapshot(m, &view), TN_OK);
    assert_int_equal(view.locations[0].use_count, 2);
    assert_int_equal(view.locations[0].hold_count, 2);
    assert_int_equal(view.locations[0].value_count, 2);
    assert_int_equal(view.info.lease_count, 2);

    tn_handle v = adopt_v(C0, TN_EXCLUSIVE); /* MC99, MC100 */
    assert_status(tm_acquire(m, &v, 1, C0, NULL, &l), TN_ERR_VALUE);
    assert_status(tm_acquire(m, &v, 1, C0, STREAM(3), &l), TN_ERR_VALUE);
    assert_status(tm_acquire(m, &a, 1, P, STREAM(0), &l), TN_ERR_VALUE);
    tn_handle s = register_src(P);
    assert_status(tm_ensure(m, s, C0, NULL), TN_OK);
    tm_world_queue(&world, STREAM(0), 10);
    tm_world_queue(&world, STREAM(1), 20);
    l = acquire(s, C0, STREAM(0));
    assert_status(tm_add_stream(l, STREAM(0)), TN_OK);
    assert_status(tm_add_stream(l, STREAM(1)), TN_OK);
    assert_int_equal(l->stream_count, 2);
    assert_status(tm_release(l, 0), TN_OK);
    assert_status(tm_drop(m, s, C0), TN_ERR_IN_USE);
    expect_in_use(0, 0, 1);
    tm_world_advance(&world, 10);
    assert_status(tm_drop(m, s, C0), TN_ERR_IN_USE);
    tm_world_advance(&world, 10);
    assert_status(tm_drop(m, s, C0), TN_OK);
    expect_place(C0, 32, 0, 64, 64);
}

static void model_mc102_104_failing_releases(void **state) {
    (void)state;
    START();
    tn_handle v = adopt_v(C0, TN_EXCLUSIVE);
    tm_lease *l = acquire(v, C0, STREAM(0));
    assert_status(tm_add_stream(l, STREAM(1)), TN_OK);
    tm_world_queue(&world, STREAM(1), 50);
    uint64_t before = m->version;
    arm(TN_SIM_EVENT_RECORD, TN_ERR_DRIVER, 5);
    world.faults[0].nth = 2;
    assert_status(tm_release(l, 0), TN_OK);
    assert_int_equal(world.now, 50);
    assert_int_equal(m->version, before + 1);
    assert_int_equal(tm_find(m, v)->at[0].uses + tm_find(m, v)->at[0].pendings, 0);
    assert_int_equal(m->diagnostics[TN_DIAGNOSTIC_RELEASE_FALLBACK], 1);

    l = acquire(v, C0, STREAM(0));
    arm(TN_SIM_EVENT_RECORD, TN_ERR_DRIVER, 5);
    world.fault_count = 2;
    world.faults[1] =
        (tm_fault){.entry = TN_SIM_STREAM_SYNCHRONIZE, .status = TN_ERR_DRIVER, .code = 6};
    assert_status(tm_release(l, 0), TN_ERR_DRIVER);
    assert_true(l->open);
    assert_int_equal(tm_find(m, v)->at[0].uses, 1);

    arm(TN_SIM_EVENT_SYNCHRONIZE, TN_ERR_DRIVER, 7);
    before = m->version;
    assert_status(tm_release(l, TN_RELEASE_WAIT), TN_ERR_DRIVER);
    assert_true(l->open);
    assert_int_equal(tm_find(m, v)->at[0].pendings, 1);
    tm_materialization *x;
    assert_status(tm_lookup(l, v, &x), TN_ERR_UNAVAILABLE);
    assert_status(tm_release(l, 0), TN_OK);
    assert_false(l->open);
    assert_int_equal(version(), before + 2);
}

/* ---- Close ----------------------------------------------------------------------------------- */

static void expect_close(uint64_t active, uint64_t pending, uint64_t holds, uint64_t reservations) {
    assert_int_equal(m->error.active_lease_count, active);
    assert_int_equal(m->error.pending_lease_count, pending);
    assert_int_equal(m->error.hold_count, holds);
    assert_int_equal(m->error.reservation_count, reservations);
}

static void model_mc169_172_close(void **state) {
    (void)state;
    START();
    tn_handle v = adopt_v(P, TN_EXCLUSIVE);
    tm_hold *h = hold(v, P);
    tm_reservation *r = reserve(P, 0);
    assert_status(tm_close(m, 0), TN_ERR_IN_USE);
    expect_close(0, 0, 1, 1);
    assert_status(tm_hold_release(h), TN_OK);
    assert_status(tm_reservation_release(r), TN_OK);
    assert_status(tm_close(m, 0), TN_OK);
    assert_status(tm_close(m, 0), TN_OK);
    tm_view view;
    assert_status(tm_snapshot(m, &view), TN_ERR_CLOSED);
    expect_locations(P);
    assert_int_equal(world.live, 0);

    START();
    v = adopt_v(C0, TN_EXCLUSIVE);
    tm_world_queue(&world, STREAM(0), 30);
    assert_status(tm_release(acquire(v, C0, STREAM(0)), 0), TN_OK);
    assert_status(tm_close(m, TN_CLOSE_NO_WAIT), TN_ERR_IN_USE);
    expect_close(0, 1, 0, 0);
    h = hold(v, C0);
    uint64_t before = version();
    assert_status(tm_close(m, 0), TN_ERR_IN_USE);
    expect_close(0, 0, 1, 0);
    assert_int_equal(version(), before + 1);
    assert_int_equal(world.now, 30);

    tm_lease *l = acquire(v, C0, STREAM(0));
    r = reserve(C0, 4);
    tm_world_queue(&world, STREAM(1), 30);
    before = version();
    assert_status(tm_close(m, TN_CLOSE_FORCE), TN_OK);
    assert_int_equal(m->version, before + 1);
    assert_int_equal(world.now, 60);
    assert_true(l->open);
    tm_materialization *x;
    assert_status(tm_lookup(l, v, &x), TN_ERR_UNAVAILABLE);
    assert_status(tm_release(l, 0), TN_OK);
    assert_status(tm_hold_release(h), TN_OK);
    assert_status(tm_reservation_release(r), TN_OK);
    assert_status(tm_acquire(m, &v, 1, C0, STREAM(0), &l), TN_ERR_CLOSED);
    assert_int_equal(world.live, 0);
}

static void model_mc105_destroy_warns_once_per_lifetime(void **state) {
    (void)state;
    START();
    tn_handle v = adopt_v(P, TN_EXCLUSIVE);
    acquire(v, P, NULL);
    hold(v, P);
    reserve(P, 4);
    expect_place(P, 32, 4, 32, 36);
    tm_destroy(m);
    assert_int_equal(m->diagnostics[TN_DIAGNOSTIC_LEASE_ABANDONED], 1);
    assert_int_equal(m->diagnostics[TN_DIAGNOSTIC_HOLD_ABANDONED], 1);
    assert_int_equal(m->diagnostics[TN_DIAGNOSTIC_RESERVATION_ABANDONED], 1);
    assert_int_equal(world.live, 0);
}

static void model_mc174_175_orders(void **state) {
    (void)state;
    START();
    tn_handle v = adopt_v(P, TN_REPLICABLE);
    assert_status(tm_ensure(m, v, N, NULL), TN_OK);
    assert_status(tm_drop(m, v, P), TN_OK);
    assert_status(tm_ensure(m, v, P, NULL), TN_OK);
    expect_replicas(v, N, P);

    START();
    tn_handle a = register_src(P), b = adopt_v(P, TN_EXCLUSIVE);
    assert_status(tm_discard(m, a), TN_OK);
    tn_handle c = adopt_v(P, TN_EXCLUSIVE);
    tm_view view;
    assert_status(tm_snapshot(m, &view), TN_OK);
    assert_int_equal(view.info.value_count, 3);
    assert_true(tn_handle_equal(view.values[0].handle, a) && view.values[0].discarded);
    assert_true(tn_handle_equal(view.values[1].handle, b));
    assert_true(tn_handle_equal(view.values[2].handle, c));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(model_mc082_084_versions),
    cmocka_unit_test(model_mc085_087_reaping),
    cmocka_unit_test(model_mc093_100_leases_and_holds),
    cmocka_unit_test(model_mc102_104_failing_releases),
    cmocka_unit_test(model_mc169_172_close),
    cmocka_unit_test(model_mc105_destroy_warns_once_per_lifetime),
    cmocka_unit_test(model_mc174_175_orders),
};

TN_TEST_MAIN("unit.model_lifetime", tests)
