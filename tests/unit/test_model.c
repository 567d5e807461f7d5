/* SPDX-License-Identifier: MIT */
/* The reference model: accounting, sources, actions (MC19..MC79). */
#include "model_cases.h"

/* ---- Accounting ------------------------------------------------------------------------------ */

static void model_mc019_022_adopt_and_budgets(void **state) {
    (void)state;
    START();
    tn_handle v = adopt_v(P, TN_REPLICABLE);
    expect_locations(P);
    expect_place(P, 32, 0, 32, 32);
    assert_int_equal(version(), 2);
    assert_status(tm_drop(m, v, N), TN_OK);
    expect_locations(P);

    START({N, 32});
    adopt_v(P, TN_EXCLUSIVE);
    adopt_v(P, TN_EXCLUSIVE);
    expect_locations(N, P);
    expect_place(P, 64, 0, 64, 64);
    reserve(P, 3200);
    reserve(N, 32);
    tm_reservation *r;
    assert_status(tm_reserve(m, N, 1, "r", &r), TN_ERR_BUDGET);
    expect_budget(N, 32, 0, 32, 1);

    START({P, 0});
    tm_payload p = payload_at(P, 32, 32);
    tn_handle h;
    assert_status(tm_adopt(m, &p, P, TN_EXCLUSIVE, &h), TN_ERR_BUDGET);
    expect_budget(P, 0, 0, 0, 32);
    expect_locations(P);
    reserve(N, UINT64_C(1) << 40);
    expect_place(N, 0, UINT64_C(1) << 40, 0, UINT64_C(1) << 40);

    START({P, 0});
    for (uint64_t i = 1; i <= 2; i++) {
        p = payload_at(P, 0, 0);
        assert_status(tm_adopt(m, &p, P, TN_EXCLUSIVE, &h), TN_OK);
        assert_int_equal(version(), i);
    }
    expect_place(P, 0, 0, 0, 0);
}

static void model_mc023_026_reservations_and_views(void **state) {
    (void)state;
    START({P, 64});
    reserve(P, 64);
    tm_reservation *r;
    assert_status(tm_reserve(m, P, 1, "r", &r), TN_ERR_BUDGET);
    expect_budget(P, 64, 0, 64, 1);
    reserve(P, 0);

    START({P, 64});
    tm_payload view = payload_at(P, 32, 64);
    tn_handle h;
    assert_status(tm_adopt(m, &view, P, TN_EXCLUSIVE, &h), TN_OK);
    expect_place(P, 64, 0, 64, 64);
    assert_int_equal(tm_find(m, h)->spec.storage_bytes, 64);

    START();
    tm_payload shared = payload_at(P, 32, 32);
    shared.fields[shared.field_count++] = shared.fields[0];
    assert_status(tm_adopt(m, &shared, P, TN_EXCLUSIVE, &h), TN_OK);
    assert_int_equal(tm_find(m, h)->spec.logical_bytes, 64);
    assert_int_equal(tm_find(m, h)->at[0].actual, 32);
    expect_place(P, 64, 0, 64, 64);

    START({P, 64});
    tm_reservation *output = reserve(P, 32);
    expect_place(P, 0, 32, 0, 32);
    tn_handle a = adopt_v(P, TN_EXCLUSIVE);
    tm_payload b = payload_at(P, 32, 32);
    assert_status(tm_adopt(m, &b, P, TN_EXCLUSIVE, &h), TN_ERR_BUDGET);
    expect_budget(P, 64, 32, 32, 32);
    assert_status(tm_reservation_release(output), TN_OK);
    assert_status(tm_reservation_release(output), TN_OK);
    assert_status(tm_adopt(m, &b, P, TN_EXCLUSIVE, &h), TN_OK);
    expect_place(P, 64, 0, 64, 64);
    assert_status(tm_discard(m, a), TN_OK);
    expect_place(P, 32, 0, 64, 64);
}

static void model_mc027_admission_before_aliases(void **state) {
    (void)state;
    for (uint64_t budget = 100; budget <= 256; budget += 156) {
        START({P, budget});
        tm_payload left = payload_at(P, 32, 64), right = payload_at(P, 32, 64);
        right.fields[0].base = left.fields[0].base;
        tn_handle h, second;
        assert_status(tm_adopt(m, &left, P, TN_EXCLUSIVE, &h), TN_OK);
        assert_status(tm_adopt(m, &right, P, TN_EXCLUSIVE, &second),
                      budget == 100 ? TN_ERR_BUDGET : TN_ERR_OWNERSHIP);
        if (budget == 100) {
            expect_budget(P, 100, 64, 0, 64);
        } else {
            assert_int_equal(m->error.owner_count, 1);
            assert_true(tn_handle_equal(m->error.owners[0].handle, h));
        }
    }
}

/* ---- Sources --------------------------------------------------------------------------------- */

static void model_mc041_043_loads_in_place(void **state) {
    (void)state;
    START();
    register_src(P);
    assert_int_equal(version(), 2);
    expect_locations(P);
    register_src(P);
    assert_int_equal(version(), 3);
    assert_int_equal(calls, 0);

    START({P, 32});
    tn_handle s = register_src(P);
    assert_status(tm_ensure(m, s, P, NULL), TN_OK);
    expect_report(TN_ACTION_ENSURE, 0, P, P);
    expect_place(P, 32, 0, 32, 32);
    assert_status(tm_drop(m, s, P), TN_OK);
    assert_status(tm_ensure(m, s, P, NULL), TN_OK);
    assert_int_equal(calls, 2);
    assert_int_equal(world.live, 1);
}

static void model_mc044_046_loads_elsewhere(void **state) {
    (void)state;
    START({P, 32}, {N, 31});
    tn_handle s = register_src(P);
    uint64_t before = version();
    assert_status(tm_ensure(m, s, N, NULL), TN_ERR_BUDGET);
    expect_budget(N, 31, 0, 0, 32);
    assert_int_equal(calls, 1);
    expect_place(P, 0, 0, 0, 32);
    expect_place(N, 0, 0, 0, 0);
    assert_int_equal(version(), before);
    assert_int_equal(world.live, 0);

    START({P, 31}, {N, 32});
    s = register_src(P);
    assert_status(tm_ensure(m, s, P, NULL), TN_ERR_BUDGET);
    assert_status(tm_ensure(m, s, N, NULL), TN_ERR_BUDGET);
    expect_budget(P, 31, 0, 0, 32);
    assert_int_equal(calls, 0);
    expect_place(P, 0, 0, 0, 0);

    START({P, 32}, {N, 32});
    s = register_src(P);
    before = version();
    assert_status(tm_ensure(m, s, N, NULL), TN_OK);
    expect_place(P, 0, 0, 0, 32);
    expect_place(N, 32, 0, 32, 32);
    assert_int_equal(version(), before + 1);
    assert_int_equal(world.live, 1);
}

static void model_mc047_049_bad_loads(void **state) {
    (void)state;
    for (int what = 0; what < 4; what++) {
        START();
        tn_handle s = register_src(what == 3 ? N : P);
        static const tn_value_type other = {.size = sizeof(tn_value_type), .name = "other"};
        if (what == 0)
            source_type = &other;
        if (what == 1)
            source_logical = source_actual = 24;
        if (what == 2)
            source_actual = 64;
        if (what == 3)
            source_at = P;
        assert_status(tm_ensure(m, s, what == 3 ? N : P, NULL), TN_ERR_MATERIALIZATION);
        assert_int_equal(m->error.expected, what == 1 || what == 2 ? 32 : 0);
        assert_int_equal(m->error.actual, what == 1 ? 24 : what == 2 ? 64 : 0);
        assert_true(tm_find(m, s)->has_source);
        assert_int_equal(tm_find(m, s)->count, 0);
        assert_int_equal(world.live, 0);
    }
    START();
    tn_handle s = register_src(P);
    uint64_t before = version();
    source_status = TN_ERR_SOURCE;
    assert_status(tm_ensure(m, s, P, NULL), TN_ERR_SOURCE);
    assert_int_equal(m->error.native_code, 99);
    expect_place(P, 0, 0, 0, 32);
    assert_int_equal(version(), before);
    assert_int_equal(m->trace_count, 0);
    source_status = TN_OK;
    assert_status(tm_ensure(m, s, P, NULL), TN_OK);
    assert_int_equal(calls, 2);

    START();
    tn_handle owner = adopt_v(P, TN_EXCLUSIVE);
    s = register_src(P);
    source_base = tm_find(m, owner)->at[0].payload.fields[0].base;
    assert_status(tm_ensure(m, s, P, NULL), TN_ERR_OWNERSHIP);
    expect_place(P, 32, 0, 32, 64);
}

static void model_mc050_054_types_ceilings_places(void **state) {
    (void)state;
    START();
    tn_handle s = register_src(P);
    source_type = &subtype;
    assert_status(tm_ensure(m, s, P, NULL), TN_OK);

    START();
    s = register_src(C0);
    assert_int_equal(version(), 2);
    assert_status(tm_ensure(m, s, P, NULL), TN_OK);
    expect_report(TN_ACTION_ENSURE, 0, C0, P);
    assert_int_equal(m->report.allocator.kind, TN_LOCATION_NONE);
    expect_place(C0, 0, 0, 0, 32);
    expect_place(P, 32, 0, 32, 32);

    START();
    s = register_src(P);
    tm_find(m, s)->spec.replica_mode = TN_EXCLUSIVE;
    assert_status(tm_ensure(m, s, N, NULL), TN_OK);
    assert_status(tm_ensure(m, s, N, NULL), TN_OK);
    assert_int_equal(m->report.no_op, 1);
    assert_status(tm_ensure(m, s, P, NULL), TN_ERR_OWNERSHIP);
    assert_status(tm_move(m, s, P, ANY, NULL), TN_OK);
    assert_int_equal(calls, 1);
    assert_status(tm_drop(m, s, P), TN_OK);
    assert_status(tm_move(m, s, C0, ANY, NULL), TN_OK);
    assert_int_equal(calls, 2);
    expect_report(TN_ACTION_MOVE, 0, P, C0);

    START();
    s = register_src(P);
    assert_status(tm_ensure(m, s, C0, NULL), TN_OK);
    assert_status(tm_ensure(m, s, P, NULL), TN_OK);
    expect_report(TN_ACTION_ENSURE, 0, C0, P);
    assert_int_equal(calls, 1);
    expect_place(P, 32, 0, 32, 32);
}

/* ---- Actions --------------------------------------------------------------------------------- */

static void model_mc057_062_no_ops_and_refusals(void **state) {
    (void)state;
    START();
    tn_handle v = adopt_v(P, TN_REPLICABLE);
    uint64_t before = version();
    assert_status(tm_ensure(m, v, P, NULL), TN_OK);
    expect_report(TN_ACTION_ENSURE, 1, ANY, P);
    assert_int_equal(m->report.reason, TN_REASON_ALREADY_RESIDENT);
    assert_int_equal(version(), before);
    assert_int_equal(m->trace_count, 1);
    assert_status(tm_drop(m, v, N), TN_OK);
    expect_report(TN_ACTION_DROP, 1, N, ANY);
    expect_locations(P);

    START();
    v = adopt_v(P, TN_EXCLUSIVE);
    assert_status(tm_ensure(m, v, N, NULL), TN_ERR_OWNERSHIP);
    expect_locations(P);
    assert_status(tm_drop(m, v, P), TN_ERR_OWNERSHIP);
    hold(v, P);
    assert_status(tm_drop(m, v, P), TN_ERR_IN_USE);
    assert_int_equal(m->trace_count, 0);

    START();
    tn_handle s = register_src(P);
    assert_status(tm_move(m, s, P, P, NULL), TN_ERR_UNAVAILABLE);
    assert_status(tm_move(m, s, N, P, NULL), TN_ERR_UNAVAILABLE);
    assert_int_equal(calls, 0);
    assert_status(tm_move(m, s, P, ANY, NULL), TN_OK);
    expect_report(TN_ACTION_MOVE, 0, P, P);
    assert_int_equal(calls, 1);
    assert_status(tm_drop(m, s, P), TN_OK);
    assert_status(tm_move(m, s, N, ANY, NULL), TN_OK);
    expect_replicas(s, N);
    expect_place(N, 32, 0, 32, 32);
    expect_place(P, 0, 0, 32, 32);
}

static void model_mc063_067_moves(void **state) {
    (void)state;
    START();
    tn_handle v = adopt_v(N, TN_EXCLUSIVE);
    assert_status(tm_move(m, v, N, ANY, NULL), TN_OK);
    expect_report(TN_ACTION_MOVE, 1, ANY, N);
    assert_status(tm_move(m, v, N, N, NULL), TN_OK);
    expect_report(TN_ACTION_MOVE, 1, N, N);
    assert_status(tm_move(m, v, N, P, NULL), TN_ERR_UNAVAILABLE);

    START({P, 32}, {N, 31});
    v = adopt_v(P, TN_EXCLUSIVE);
    assert_status(tm_move(m, v, N, ANY, NULL), TN_ERR_BUDGET);
    expect_budget(N, 31, 0, 0, 32);
    START({P, 32}, {N, 32});
    v = adopt_v(P, TN_EXCLUSIVE);
    uint64_t before = version();
    assert_status(tm_move(m, v, N, ANY, NULL), TN_OK);
    assert_int_equal(version(), before + 2);
    expect_place(P, 0, 0, 32, 32);
    expect_place(N, 32, 0, 32, 32);
    before = version();
    assert_status(tm_move(m, v, C1, ANY, NULL), TN_OK);
    assert_int_equal(version(), before + 3);

    START();
    v = adopt_v(P, TN_REPLICABLE);
    assert_status(tm_ensure(m, v, C1, NULL), TN_OK);
    assert_status(tm_ensure(m, v, C0, NULL), TN_OK);
    before = version();
    assert_status(tm_move(m, v, N, ANY, NULL), TN_OK);
    expect_report(TN_ACTION_MOVE, 0, P, N);
    expect_replicas(v, C1, C0, N);
    assert_int_equal(version(), before + 3);
    assert_true(tn_location_equal(m->report.allocator, C1));
    assert_status(tm_move(m, v, C1, C0, NULL), TN_OK);
    expect_replicas(v, C1, N);
    assert_status(tm_move(m, v, C1, ANY, NULL), TN_OK);
    expect_replicas(v, C1);
    assert_int_equal(version(), before + 5);
    assert_status(tm_move(m, v, C1, ANY, NULL), TN_OK);
    assert_int_equal(m->report.no_op, 1);
}

static void model_mc068_071_protection(void **state) {
    (void)state;
    START();
    tn_handle v = adopt_v(P, TN_REPLICABLE);
    assert_status(tm_ensure(m, v, N, NULL), TN_OK);
    tm_hold *h = hold(v, N);
    assert_status(tm_move(m, v, N, ANY, NULL), TN_OK);
    expect_report(TN_ACTION_MOVE, 0, P, N);
    expect_replicas(v, N);
    assert_status(tm_move(m, v, P, ANY, NULL), TN_ERR_IN_USE);
    assert_status(tm_ensure(m, v, C0, NULL), TN_OK);
    assert_status(tm_ensure(m, v, P, NULL), TN_OK);
    expect_replicas(v, N, C0, P);
    assert_status(tm_hold_release(h), TN_OK);

    h = hold(v, C0);
    uint64_t before = version();
    assert_status(tm_discard(m, v), TN_ERR_IN_USE);
    expect_in_use(0, 1, 0);
    expect_replicas(v, N, C0, P);
    assert_int_equal(version(), before);
    assert_status(tm_hold_release(h), TN_OK);
    before = version();
    assert_status(tm_discard(m, v), TN_OK);
    assert_int_equal(version(), before + 4);
    expect_report(TN_ACTION_DISCARD, 0, ANY, ANY);
    assert_true(tn_location_equal(m->report.allocator, C0));

    tn_handle s = register_src(P);
    before = version();
    assert_status(tm_discard(m, s), TN_OK);
    assert_int_equal(version(), before + 1);
    assert_status(tm_discard(m, s), TN_ERR_HANDLE);
    assert_int_equal(m->error.handle_cause, TN_HANDLE_DISCARDED);
}

static void model_mc072_073_failed_copies(void **state) {
    (void)state;
    START();
    tn_handle v = adopt_v(P, TN_REPLICABLE);
    uint64_t before = version();
    arm(TN_SIM_DEVICE_ALLOC, TN_ERR_DEVICE_MEMORY, 2);
    assert_status(tm_ensure(m, v, C0, NULL), TN_ERR_DEVICE_MEMORY);
    assert_int_equal(m->error.native_code, 2);
    arm(TN_SIM_PINNED_ALLOC, TN_ERR_UNSUPPORTED, 801);
    assert_status(tm_move(m, v, N, ANY, NULL), TN_ERR_PAYLOAD);
    expect_locations(P);
    expect_place(P, 32, 0, 32, 32);
    assert_int_equal(m->trace_count, 0);
    assert_int_equal(version(), before);

    tn_handle s = register_src(P);
    arm(TN_SIM_COPY, TN_ERR_DRIVER, 3);
    assert_status(tm_ensure(m, s, C0, NULL), TN_ERR_DRIVER);
    assert_int_equal(calls, 1);
    expect_place(P, 32, 0, 32, 64);
    assert_int_equal(tm_find(m, s)->count, 0);
    assert_int_equal(world.live, 1);
}

static void model_mc077_078_order_of_checks(void **state) {
    (void)state;
    START({P, 32}, {N, 0});
    tn_handle v = adopt_v(P, TN_EXCLUSIVE);
    hold(v, P);
    assert_status(tm_move(m, v, N, ANY, NULL), TN_ERR_IN_USE);
    expect_in_use(0, 1, 0);

    START();
    v = adopt_v(P, TN_REPLICABLE);
    assert_status(tm_ensure(m, v, N, NULL), TN_OK);
    assert_status(tm_move(m, v, P, P, NULL), TN_OK);
    expect_report(TN_ACTION_MOVE, 1, P, P);
    expect_replicas(v, P, N);

    /* MC75, MC76, MC79 */
    assert_status(tm_ensure(m, v, P, STREAM(0)), TN_ERR_VALUE);
    assert_status(tm_ensure(m, v, C0, STREAM(3)), TN_ERR_VALUE);
    assert_status(tm_ensure(m, v, C0, (tn_stream)(void *)memory), TN_ERR_KIND);
    tn_handle foreign = {99, 1, &type};
    assert_status(tm_ensure(m, foreign, tn_location_cuda(5), NULL), TN_ERR_HANDLE);
    assert_status(tm_ensure(m, v, tn_location_cuda(5), (tn_stream)(void *)memory), TN_ERR_VALUE);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(model_mc019_022_adopt_and_budgets),
    cmocka_unit_test(model_mc023_026_reservations_and_views),
    cmocka_unit_test(model_mc027_admission_before_aliases),
    cmocka_unit_test(model_mc041_043_loads_in_place),
    cmocka_unit_test(model_mc044_046_loads_elsewhere),
    cmocka_unit_test(model_mc047_049_bad_loads),
    cmocka_unit_test(model_mc050_054_types_ceilings_places),
    cmocka_unit_test(model_mc057_062_no_ops_and_refusals),
    cmocka_unit_test(model_mc063_067_moves),
    cmocka_unit_test(model_mc068_071_protection),
    cmocka_unit_test(model_mc072_073_failed_copies),
    cmocka_unit_test(model_mc077_078_order_of_checks),
};

TN_TEST_MAIN("unit.model", tests)
