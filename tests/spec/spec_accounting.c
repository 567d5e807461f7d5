/* SPDX-License-Identifier: MIT */
/* Charges, budgets, peaks: cases MC19..MC32. */
#include "spec_common.h"

static const uint64_t tebi = UINT64_C(1) << 40;

/* A reservation record of a fresh snapshot. */
static tn_reservation_info record(tn_manager *m, size_t i) {
    tn_reservation_info rows[8] = {{.size = sizeof(rows[0])}};
    size_t count = 8;
    tn_snapshot *s = NULL;

    assert_ok(tn_snapshot_take(m, &s));
    assert_ok(tn_snapshot_reservations(s, rows, &count));
    tn_snapshot_drop(s);
    assert_true(i < count && count <= 8);
    return rows[i];
}

/* The parts that need no plan. */
static void mc019_adopt_without_budgets(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    tn_location_info p = loc(m, P);
    tn_report r;

    assert_locations(m, P);
    assert_int_equal(p.has_budget, 0);
    assert_int_equal(p.used_bytes, 32);
    assert_peaks(m, P, 32, 32);
    assert_int_equal(version(m), 2);
    r = drop(m, h, N);
    assert_int_equal(r.no_op, 1);
    assert_locations(m, P);
    assert_int_equal(version(m), 2);
}

/* The parts that need no plan. */
static void mc020_budget_at_one_location_only(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {N, 32});
    tn_handle a = adopt_rep(f, m, P);
    tn_handle b = adopt_rep(f, m, P);
    tn_reservation on_p;
    tn_reservation on_n;
    tn_reservation r = {NULL, 0};

    assert_locations(m, N, P);
    assert_int_equal(used(m, P), 64);
    assert_int_equal(loc(m, P).has_budget, 0);
    on_p = reserve(m, P, 3200, "p");
    on_n = reserve(m, N, 32, "n");
    assert_status(tn_manager_reserve(m, N, 1, "more", &r), TN_ERR_BUDGET);
    assert_budget_error(N, 32, 0, 32, 1);
    assert_null(r.record);
    assert_locations(m, N, P);
    assert_int_equal(remaining(m, N), 0);
    release_reservation(&on_p);
    release_reservation(&on_n);
    discard(m, a);
    discard(m, b);
    assert_locations(m, N, P);
}

static void mc021_budgets_are_copied(void **state) {
    struct spec *f = *state;
    tn_budget budgets[] = {{P, 0}};
    tn_config config = spec_config(f);
    tn_payload v = spec_v(f, P);
    tn_handle h = {0, 0, NULL};
    tn_manager *m;

    config.budgets = budgets;
    config.budget_count = 1;
    m = spec_manager_with(f, &config);
    budgets[0] = (tn_budget){N, 1000};
    memset(&config, 0, sizeof(config));

    assert_int_equal(loc(m, P).has_budget, 1);
    assert_int_equal(loc(m, P).budget_bytes, 0);
    assert_int_equal(remaining(m, P), 0);
    assert_status(tn_manager_adopt(m, v, P, TN_EXCLUSIVE, &h), TN_ERR_BUDGET);
    assert_budget_error(P, 0, 0, 0, 32);
    assert_locations(m, P);
    tt_free(v);

    reserve(m, N, tebi, "large");
    assert_int_equal(loc(m, N).has_budget, 0);
    assert_int_equal(reserved(m, N), UINT64_C(1099511627776));
    assert_peaks(m, N, 0, UINT64_C(1099511627776));
}

static void mc022_zero_bytes_are_always_admitted(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 0});

    for (int i = 0; i < 2; i++)
        assert_rises(m, 1, spec_adopt(m, tt_bytes(f->driver, P, 0), P, TN_EXCLUSIVE));
    assert_int_equal(used(m, P), 0);
    assert_int_equal(loc(m, P).value_count, 2);
    assert_int_equal(info(m).value_count, 2);
}

static void mc023_full_location_admits_a_zero_reservation(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 64});
    tn_reservation r = {NULL, 0};

    reserve(m, P, 64, "all");
    assert_status(tn_manager_reserve(m, P, 1, "one", &r), TN_ERR_BUDGET);
    assert_budget_error(P, 64, 0, 64, 1);
    reserve(m, P, 0, "none");
    assert_int_equal(loc(m, P).reservation_count, 2);
    assert_int_equal(info(m).reservation_count, 2);
}

static void mc024_view_is_charged_its_backing(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 64});
    tt_field view = TT_VIEW(4, 8, 2, 64);
    tn_payload payload = tt_make(tt_type(), f->driver, P, &view, 1);
    tn_handle h = spec_adopt(m, payload, P, TN_EXCLUSIVE);
    tn_materialization_info r = mat(m, h, P);
    tn_location_info p = loc(m, P);
    const void *data = NULL;
    tn_lease lease;

    assert_int_equal(r.logical_bytes, 32);
    assert_int_equal(r.storage_bytes, 64);
    assert_int_equal(r.charged_bytes, 64);
    assert_int_equal(p.used_bytes, 64);
    assert_int_equal(p.remaining_bytes, 0);
    assert_peaks(m, P, 64, 64);
    assert_int_equal(p.value_count, 1);
    assert_true(p.allocated_bytes == TN_READING_ABSENT);
    assert_true(p.held_bytes == TN_READING_ABSENT);
    lease = acquire(m, h, P, NULL);
    assert_ok(tn_lease_lookup(&lease, h, &data));
    assert_ptr_equal(data, payload.data);
    release(&lease);
}

static void mc025_fields_that_share_storage(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_field fields[] = {TT_DENSE(4, 8), TT_SHARE(4, 8, 0)};
    tn_handle h = spec_adopt(m, tt_make(tt_type(), f->driver, P, fields, 2), P, TN_EXCLUSIVE);
    tn_materialization_info r = mat(m, h, P);

    assert_int_equal(r.logical_bytes, 64);
    assert_int_equal(r.storage_bytes, 32);
    assert_int_equal(r.charged_bytes, 64);
    assert_int_equal(used(m, P), 64);
}

static void mc026_reservation_is_charged_until_released(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 64});
    tn_reservation r = reserve(m, P, 32, "output");
    tn_payload b = spec_v(f, P);
    tn_reservation_info row = record(m, 0);
    tn_handle ha;
    tn_handle hb = {0, 0, NULL};

    assert_int_equal(used(m, P), 0);
    assert_int_equal(reserved(m, P), 32);
    assert_int_equal(remaining(m, P), 32);
    assert_peaks(m, P, 0, 32);
    assert_int_equal(info(m).reservation_count, 1);
    assert_at(row.at, P);
    assert_int_equal(row.bytes, 32);
    assert_string_equal(row.label, "output");

    ha = adopt_exc(f, m, P);
    assert_status(tn_manager_adopt(m, b, P, TN_EXCLUSIVE, &hb), TN_ERR_BUDGET);
    assert_budget_error(P, 64, 32, 32, 32);
    release_reservation(&r);
    release_reservation(&r);
    assert_int_equal(info(m).reservation_count, 0);
    hb = spec_adopt(m, b, P, TN_EXCLUSIVE);
    assert_int_equal(used(m, P), 64);
    assert_peaks(m, P, 64, 64);
    discard(m, ha);
    assert_int_equal(used(m, P), 32);
    assert_peaks(m, P, 64, 64);
    assert_true(resident(m, hb, P));
}

static void mc027_budget_is_reported_before_an_alias(void **state) {
    struct spec *f = *state;
    tt_backing *batch = tt_backing_make(f->driver, P, 64);
    tn_manager *small = MANAGER(f, {P, 100});
    tn_manager *large = MANAGER(f, {P, 256});
    tn_payload half[4];
    tn_handle h = {0, 0, NULL};
    tn_handle first;

    for (uint64_t i = 0; i < 4; i++)
        half[i] = tt_row(batch, i % 2, 32);
    tt_backing_free(batch);

    spec_adopt(small, half[0], P, TN_EXCLUSIVE);
    assert_int_equal(used(small, P), 64);
    assert_status(tn_manager_adopt(small, half[1], P, TN_EXCLUSIVE, &h), TN_ERR_BUDGET);
    assert_budget_error(P, 100, 64, 0, 64);

    first = spec_adopt(large, half[2], P, TN_EXCLUSIVE);
    assert_status(tn_manager_adopt(large, half[3], P, TN_EXCLUSIVE, &h), TN_ERR_OWNERSHIP);
    assert_int_equal(tn_last_error()->owner_count, 1);
    assert_handle(tn_last_error()->owners[0].handle, first);
    assert_at(tn_last_error()->owners[0].at, P);
    assert_int_equal(used(large, P), 64);
    assert_peaks(large, P, 64, 64);
    tt_free(half[1]);
    tt_free(half[3]);
}

static void mc028_copy_is_charged_like_the_original(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 128}, {N, 128});
    tt_field view = TT_VIEW(4, 8, 2, 64);
    tn_payload payload = tt_make(tt_type(), f->driver, P, &view, 1);
    tn_handle h;

    tt_fill(payload, 5);
    h = spec_adopt(m, payload, P, TN_REPLICABLE);
    assert_ok(tn_manager_copy(m, h, N, NULL, NULL));
    assert_int_equal(mat(m, h, P).charged_bytes, 64);
    assert_int_equal(mat(m, h, N).charged_bytes, 64);
    assert_int_equal(mat(m, h, P).storage_bytes, 64);
    assert_true(mat(m, h, N).storage_bytes <= 64);
    assert_int_equal(mat(m, h, N).logical_bytes, 32); /* M30 */
    assert_int_equal(used(m, P), 64);
    assert_int_equal(used(m, N), 64);
}

static void mc029_devices_have_their_own_budgets(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 64}, {C0, 32}, {C1, 32});
    tn_handle h = adopt_rep(f, m, P);

    ensure(m, h, C0);
    ensure(m, h, C1);
    assert_int_equal(used(m, C0), 32);
    assert_int_equal(remaining(m, C0), 0);
    assert_int_equal(used(m, C1), 32);
    assert_int_equal(remaining(m, C1), 0);
    drop(m, h, C0);
    assert_int_equal(remaining(m, C0), 32);
    assert_int_equal(remaining(m, C1), 0);
}

static void mc030_fresh_location_is_empty(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 64});
    tn_location_info p = loc(m, P);

    assert_int_equal(p.has_budget, 1);
    assert_int_equal(p.budget_bytes, 64);
    assert_int_equal(p.remaining_bytes, 64);
    assert_int_equal(p.used_bytes, 0);
    assert_int_equal(p.reserved_bytes, 0);
    assert_int_equal(p.peak_used_bytes, 0);
    assert_int_equal(p.peak_charged_bytes, 0);
    assert_int_equal(p.value_count, 0);
    assert_int_equal(p.reservation_count, 0);
    assert_int_equal(p.use_count, 0);
    assert_int_equal(p.hold_count, 0);
    assert_int_equal(p.pending_count, 0);
}

static void mc031_nothing_is_evicted_to_make_room(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 32});
    tn_handle droppable = register_src(m, spec_source(f));
    tn_payload v = spec_v(f, P);
    tn_handle h = {0, 0, NULL};

    ensure(m, droppable, P);
    assert_int_equal(used(m, P), 32);
    assert_status(tn_manager_adopt(m, v, P, TN_EXCLUSIVE, &h), TN_ERR_BUDGET);
    assert_budget_error(P, 32, 32, 0, 32);
    assert_true(resident(m, droppable, P));
    tt_free(v);
}

/* A driver over the machine's, whose figures are a test's. */
static struct {
    tn_driver_ops ops;
    tn_device_memory figures;
    unsigned readings;
} telling;

static tn_status tell(void *self, uint32_t device, tn_device_memory *out) {
    (void)self;
    (void)device;
    telling.readings++;
    *out = telling.figures;
    return TN_OK;
}

static void mc032_allocator_readings_admit_nothing(void **state) {
    struct spec *f = *state;
    tn_config config = spec_config(f);
    tn_budget budget = {C1, 31};
    tn_driver *driver = NULL;
    tn_manager *m;
    tn_handle h;
    tn_report r;

    telling.ops = *tn_driver_table(f->driver);
    telling.ops.device_memory = tell;
    telling.readings = 0;
    assert_ok(tn_driver_create(&telling.ops, tn_driver_self(f->driver), &driver));
    config.driver = driver;
    config.budgets = &budget;
    config.budget_count = 1;
    m = spec_manager_with(f, &config);
    h = adopt_rep(f, m, P);

    telling.figures = (tn_device_memory){1 << 20, 0, 1 << 20, 1 << 20}; /* full */
    r = ensure(m, h, C0);
    assert_int_equal(r.no_op, 0);
    assert_at(r.allocator, C0);
    assert_int_equal(r.allocated_bytes_before, 1 << 20);
    assert_true(telling.readings != 0);
    reserve(m, C0, tebi, "more than there is");

    telling.figures = (tn_device_memory){tebi, tebi, 0, 0}; /* plenty free */
    assert_status(tn_manager_ensure(m, h, C1, NULL, NULL), TN_ERR_BUDGET);
    assert_budget_error(C1, 31, 0, 0, 32);

    spec_destroy(f, m);
    tn_driver_destroy(driver);
}

/* Sums that do not fit 64 bits are refused, never wrapped (G42). */
static void mc021_overflow_is_a_refusal(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_reservation r = {NULL, 0};
    tn_reservation first = reserve(m, N, INT64_MAX, "half");

    assert_status(tn_manager_reserve(m, N, (uint64_t)INT64_MAX + 1, "r", &r), TN_ERR_VALUE);
    while (tn_manager_reserve(m, N, INT64_MAX, "more", &r) == TN_OK)
        assert_true(reserved(m, N) >= (uint64_t)INT64_MAX && reserved(m, N) <= UINT64_MAX - 1);
    assert_int_equal(tn_last_error()->status, TN_ERR_BUDGET);
    assert_true(reserved(m, N) >= (uint64_t)INT64_MAX);
    assert_true(peaks(m, N).charged >= reserved(m, N));
    release_reservation(&first);
    reserve(m, N, INT64_MAX, "again");
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(mc019_adopt_without_budgets),
    SPEC_BOTH(mc020_budget_at_one_location_only),
    SPEC_BOTH(mc021_budgets_are_copied),
    SPEC_BOTH(mc021_overflow_is_a_refusal),
    SPEC_BOTH(mc022_zero_bytes_are_always_admitted),
    SPEC_BOTH(mc023_full_location_admits_a_zero_reservation),
    SPEC_BOTH(mc024_view_is_charged_its_backing),
    SPEC_BOTH(mc025_fields_that_share_storage),
    SPEC_BOTH(mc026_reservation_is_charged_until_released),
    SPEC_BOTH(mc027_budget_is_reported_before_an_alias),
    SPEC_BOTH(mc028_copy_is_charged_like_the_original),
    SPEC_BOTH(mc029_devices_have_their_own_budgets),
    SPEC_BOTH(mc030_fresh_location_is_empty),
    SPEC_BOTH(mc031_nothing_is_evicted_to_make_room),
    SPEC_BOTH(mc032_allocator_readings_admit_nothing),
};

TN_TEST_MAIN("spec.accounting", tests)
