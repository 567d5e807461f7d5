/* SPDX-License-Identifier: MIT */
/* Identity, locations, specs: cases MC1..MC18. */
#include "spec_common.h"

static void check_make(uint32_t kind, const char *device, tn_status want, tn_location at) {
    tn_location out = {99, 99};
    tn_status got = tn_location_make(kind, device, &out);

    if (got != want)
        print_error("kind %u, device '%s':\n", kind, device);
    assert_status(got, want);
    if (want != TN_OK) {
        assert_int_equal(out.kind, 99); /* untouched */
        assert_int_equal(out.index, 99);
        return;
    }
    assert_int_equal(out.kind, at.kind);
    assert_int_equal(out.index, at.index); /* host kinds without index */
    assert_at(out, at);
}

static void check_name(tn_location at, const char *want) {
    char name[TN_LOCATION_NAME_MAX];

    assert_ok(tn_location_name(at, name, sizeof(name)));
    assert_string_equal(name, want);
}

static void mc001_host_locations_have_no_index(void **state) {
    (void)state;
    check_make(TN_LOCATION_PAGEABLE, "cpu:0", TN_OK, P);
    check_make(TN_LOCATION_PINNED, "cpu:7", TN_OK, N);
    check_make(TN_LOCATION_PAGEABLE, "cpu", TN_OK, P);
    check_make(TN_LOCATION_PINNED, "cpu", TN_OK, N);
    check_name(P, "pageable-host");
    check_name(N, "pinned-host");
    check_name(C0, "cuda:0");
    check_name(tn_location_cuda(127), "cuda:127");

    /* Identity is (kind, index), and a host index does not count (M11). */
    assert_true(tn_location_equal((tn_location){TN_LOCATION_PINNED, 7}, N));
    assert_true(tn_location_equal((tn_location){TN_LOCATION_PAGEABLE, 3}, P));
    assert_false(tn_location_equal(P, N));
    assert_true(tn_location_equal(C0, C0));
    assert_false(tn_location_equal(C0, C1));
    assert_false(tn_location_equal(C0, P));
    check_name((tn_location){TN_LOCATION_PINNED, 7}, "pinned-host");
}

static void mc002_cuda_device_text(void **state) {
    static const char *const bad[] = {"cuda",
                                      "cuda:00",
                                      "cuda:01",
                                      "cuda:-1",
                                      "cuda:128",
                                      "cuda:256",
                                      "cuda:999",
                                      "CUDA:0",
                                      "cuda: 1",
                                      "cuda:0 ",
                                      "cpu",
                                      "",
                                      "cuda:",
                                      " cuda:0",
                                      "cuda:+1",
                                      "cuda:0x1",
                                      "cuda:1:2",
                                      "cuda:1.0",
                                      "cuda:99999999999999999"};

    (void)state;
    check_make(TN_LOCATION_CUDA, "cuda:0", TN_OK, C0);
    check_make(TN_LOCATION_CUDA, "cuda:127", TN_OK, tn_location_cuda(127));
    check_make(TN_LOCATION_CUDA, "cuda:10", TN_OK, tn_location_cuda(10));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        check_make(TN_LOCATION_CUDA, bad[i], TN_ERR_VALUE, NOWHERE);
}

static void mc003_kind_and_device_must_fit(void **state) {
    (void)state;
    check_make(TN_LOCATION_PAGEABLE, "cuda:0", TN_ERR_VALUE, NOWHERE);
    check_make(TN_LOCATION_PINNED, "cuda:0", TN_ERR_VALUE, NOWHERE);
    check_make(TN_LOCATION_CUDA, "cpu", TN_ERR_VALUE, NOWHERE);
    check_make(TN_LOCATION_CUDA, "cpu:0", TN_ERR_VALUE, NOWHERE);
    check_make(4, "cpu", TN_ERR_VALUE, NOWHERE); /* "disk" */
    check_make(4, "cuda:0", TN_ERR_VALUE, NOWHERE);
    check_make(TN_LOCATION_NONE, "cpu", TN_ERR_VALUE, NOWHERE);
    check_make(UINT32_MAX, "cpu", TN_ERR_VALUE, NOWHERE);
}

/* Ids of another kind do not compile; 0 is C's blank id. */
static void mc004_hand_made_handles_are_checked_for_form(void **state) {
    tn_handle untouched = {7, 7, NULL};
    tn_handle h = untouched;
    tn_value_type broken = *tt_type();

    (void)state;
    assert_status(tn_handle_make(0, 1, tt_type(), &h), TN_ERR_VALUE);
    assert_status(tn_handle_make(1, 0, tt_type(), &h), TN_ERR_VALUE);
    assert_status(tn_handle_make(1, 1, NULL, &h), TN_ERR_KIND);
    broken.size = 0;
    assert_status(tn_handle_make(1, 1, &broken, &h), TN_ERR_KIND);
    broken = *tt_type();
    broken.measure = NULL;
    assert_status(tn_handle_make(1, 1, &broken, &h), TN_ERR_KIND);
    assert_memory_equal(&h, &untouched, sizeof(h));

    assert_ok(tn_handle_make(41, 42, tt_type(), &h)); /* nothing of the kind exists */
    assert_int_equal(h.manager, 41);
    assert_int_equal(h.index, 42);
    assert_ptr_equal(h.type, tt_type());
    assert_handle(h, ((tn_handle){41, 42, tt_type()}));
    assert_false(tn_handle_equal(h, (tn_handle){40, 42, tt_type()}));
    assert_false(tn_handle_equal(h, (tn_handle){41, 43, tt_type()}));
    assert_false(tn_handle_equal(h, (tn_handle){41, 42, tt_subtype()}));
    assert_true(tn_handle_hash(h) == tn_handle_hash((tn_handle){41, 42, tt_type()}));
    assert_true(tn_handle_hash(h) != tn_handle_hash((tn_handle){41, 42, tt_subtype()}));
    assert_true(tn_handle_hash(h) != tn_handle_hash((tn_handle){41, 43, tt_type()}));
    assert_true(tn_handle_hash(h) != tn_handle_hash((tn_handle){40, 42, tt_type()}));
}

static tn_status check_spec(uint64_t logical, uint64_t storage) {
    tn_value_spec spec = tt_spec(logical, storage);

    return tn_value_spec_check(&spec);
}

/* Booleans and texts for counts and modes do not compile. */
static void mc005_value_specs_are_checked(void **state) {
    tn_value_spec spec;
    tn_value_type broken = *tt_type();

    (void)state;
    assert_ok(check_spec(16, 24));
    assert_ok(check_spec(0, 0));
    assert_ok(check_spec(0, 8));
    assert_ok(check_spec(INT64_MAX, INT64_MAX));
    assert_status(check_spec((uint64_t)-1, (uint64_t)-1), TN_ERR_VALUE);
    assert_status(check_spec((uint64_t)-1, 24), TN_ERR_VALUE);
    assert_status(check_spec(16, (uint64_t)-1), TN_ERR_VALUE);
    assert_status(check_spec((uint64_t)INT64_MAX + 1, (uint64_t)INT64_MAX + 1), TN_ERR_VALUE);
    assert_status(check_spec(16, 8), TN_ERR_VALUE);
    assert_status(check_spec(32, 31), TN_ERR_VALUE);

    spec = tt_spec(16, 24);
    spec.replica_mode = 2;
    assert_status(tn_value_spec_check(&spec), TN_ERR_KIND);
    spec = tt_spec(16, 24);
    spec.recoverability = 2;
    assert_status(tn_value_spec_check(&spec), TN_ERR_KIND);
    spec = tt_spec(16, 24);
    spec.type = NULL;
    assert_status(tn_value_spec_check(&spec), TN_ERR_KIND);
    broken.destroy = NULL;
    spec.type = &broken;
    assert_status(tn_value_spec_check(&spec), TN_ERR_KIND);
    spec = tt_spec(16, 24);
    spec.recoverability = TN_MUST_PRESERVE;
    spec.replica_mode = TN_EXCLUSIVE;
    assert_ok(tn_value_spec_check(&spec));
}

static void mc006_handle_of_another_manager_is_foreign(void **state) {
    struct spec *f = *state;
    tn_manager *first = MANAGER(f);
    tn_manager *second = MANAGER(f);
    tn_handle h = adopt_rep(f, second, P);
    tn_lease lease = {NULL, 0};

    assert_int_not_equal(tn_manager_id(first), 0);
    assert_int_not_equal(tn_manager_id(second), 0);
    assert_int_not_equal(tn_manager_id(first), tn_manager_id(second));
    assert_int_equal(h.manager, tn_manager_id(second));
    assert_handle_error(tn_manager_acquire(first, &h, 1, P, NULL, &lease), TN_HANDLE_FOREIGN);
    assert_int_equal(tn_last_error()->manager, tn_manager_id(first)); /* both ids (M7) */
    assert_int_equal(tn_last_error()->handle.manager, tn_manager_id(second));
    assert_null(lease.record);
    assert_int_equal(version(first), 0);
}

/* An id is never used again, not even after close and destruction (M1). */
static void mc006_manager_ids_are_never_used_again(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    uint64_t id = tn_manager_id(m);

    assert_ok(tn_manager_close(m, 0));
    assert_int_equal(tn_manager_id(m), id);
    spec_destroy(f, m);
    for (int i = 0; i < 8; i++) {
        m = MANAGER(f);
        assert_true(tn_manager_id(m) > 0);
        assert_int_not_equal(tn_manager_id(m), id);
        spec_destroy(f, m);
    }
}

static void mc007_hand_made_handles_are_unknown(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle live = adopt_rep(f, m, P);
    uint64_t before = version(m);
    tn_handle h;

    assert_ok(tn_handle_make(tn_manager_id(m), live.index + 1000, tt_type(), &h));
    assert_handle_error(tn_manager_ensure(m, h, N, NULL, NULL), TN_HANDLE_UNKNOWN);
    assert_ok(tn_handle_make(tn_manager_id(m), UINT64_MAX, tt_type(), &h));
    assert_handle_error(tn_manager_ensure(m, h, N, NULL, NULL), TN_HANDLE_UNKNOWN);
    assert_ok(tn_handle_make(tn_manager_id(m), live.index, tt_other_type(), &h));
    assert_handle_error(tn_manager_ensure(m, h, N, NULL, NULL), TN_HANDLE_UNKNOWN);
    assert_ok(tn_handle_make(tn_manager_id(m), live.index, tt_subtype(), &h));
    assert_handle_error(tn_manager_ensure(m, h, N, NULL, NULL), TN_HANDLE_UNKNOWN);
    /* A handle made by hand with all three parts right is the handle. */
    assert_ok(tn_handle_make(tn_manager_id(m), live.index, tt_type(), &h));
    assert_handle(h, live);
    ensure(m, h, P);
    assert_int_equal(version(m), before);
    assert_locations(m, P);
}

static void mc008_discarded_value_stays_visible_and_dead(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    tn_lease lease = {NULL, 0};
    tn_hold held = {NULL, 0};
    tn_value_info v;

    discard(m, h);
    assert_handle_error(tn_manager_acquire(m, &h, 1, P, NULL, &lease), TN_HANDLE_DISCARDED);
    assert_int_equal(tn_last_error()->handle.index, h.index); /* M7 */
    assert_handle_error(tn_manager_hold(m, &h, 1, P, &held), TN_HANDLE_DISCARDED);
    assert_handle_error(tn_manager_ensure(m, h, P, NULL, NULL), TN_HANDLE_DISCARDED);
    assert_handle_error(tn_manager_move(m, h, N, NOWHERE, NULL, NULL), TN_HANDLE_DISCARDED);
    assert_handle_error(tn_manager_drop(m, h, P, NULL), TN_HANDLE_DISCARDED);
    assert_handle_error(tn_manager_discard(m, h, NULL), TN_HANDLE_DISCARDED);

    v = value(m, h);
    assert_int_equal(v.discarded, 1);
    assert_int_equal(v.has_source, 0);
    assert_at(v.source_at, NOWHERE);
    assert_int_equal(v.materialization_count, 0);
    assert_int_equal(v.spec.logical_bytes, 32); /* with its spec (M10) */
    assert_int_equal(v.spec.storage_bytes, 32);
    assert_ptr_equal(v.spec.type, tt_type());
    assert_replicas(m, h);
    assert_int_equal(info(m).value_count, 1);
}

static void mc009_each_adopt_issues_a_new_handle(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h[3];

    for (int i = 0; i < 3; i++)
        h[i] = adopt_exc(f, m, P);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(h[i].manager, tn_manager_id(m));
        assert_int_not_equal(h[i].index, 0);
        for (int j = 0; j < i; j++) {
            assert_int_not_equal(h[i].index, h[j].index);
            assert_false(tn_handle_equal(h[i], h[j]));
        }
    }
    /* Not even after a discard (M2). */
    discard(m, h[2]);
    assert_int_not_equal(adopt_exc(f, m, P).index, h[2].index);
}

static void mc010_moves_keep_the_handle(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_stream s = spec_stream(f, 0);
    tn_handle h = adopt_exc(f, m, P);
    tn_handle before = h;
    const void *data = NULL;
    tn_lease lease;

    move(m, h, N);
    move(m, h, C0);
    assert_handle(h, before);
    assert_handle(value(m, before).handle, before);
    assert_replicas(m, before, C0);
    lease = acquire(m, before, C0, s);
    assert_ok(tn_lease_lookup(&lease, before, &data));
    assert_true(tt_check(data, 1));
    release(&lease);
}

static void mc011_fresh_manager_is_empty(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_budget none = {P, 1};
    tn_config config = spec_config(f);
    tn_manager *plain = NULL;

    assert_locations(m);
    assert_int_equal(version(m), 0);
    assert_ok(tn_manager_close(m, 0));

    config.budgets = &none;
    config.budget_count = 0;
    m = spec_manager_with(f, &config);
    assert_locations(m);
    assert_int_equal(version(m), 0);
    assert_ok(tn_manager_close(m, 0));

    assert_ok(tn_manager_create(NULL, &plain)); /* all defaults */
    assert_locations(plain);
    assert_int_equal(version(plain), 0);
    assert_ok(tn_manager_close(plain, 0));
    assert_ok(tn_manager_destroy(plain));
}

static void refuse_budgets(struct spec *f, tn_status want, const tn_budget *budgets, size_t count) {
    tn_config config = spec_config(f);
    tn_manager *m = (tn_manager *)f;

    config.budgets = budgets;
    config.budget_count = count;
    assert_status(tn_manager_create(&config, &m), want);
    assert_ptr_equal(m, f); /* untouched */
}

#define BUDGETS(...)                                                                               \
    (const tn_budget[]){__VA_ARGS__}, sizeof((const tn_budget[]){__VA_ARGS__}) / sizeof(tn_budget)

/* Budgets and capacities of another kind do not compile; UINT64_MAX is TN_TRACE_NONE. */
static void mc012_bad_budgets_are_refused(void **state) {
    struct spec *f = *state;
    tn_location bad = {9, 0};
    const uint64_t minus = (uint64_t)-1;

    refuse_budgets(f, TN_ERR_KIND, NULL, 1); /* not a map */
    refuse_budgets(f, TN_ERR_KIND, BUDGETS({bad, 1}));
    refuse_budgets(f, TN_ERR_KIND, BUDGETS({NOWHERE, 1}));
    refuse_budgets(f, TN_ERR_VALUE, BUDGETS({P, minus}));
    refuse_budgets(f, TN_ERR_VALUE, BUDGETS({P, (uint64_t)INT64_MAX + 1}));
    refuse_budgets(f, TN_ERR_VALUE, BUDGETS({C2, 1})); /* index = device count */
    refuse_budgets(f, TN_ERR_VALUE, BUDGETS({tn_location_cuda(128), 1}));
    refuse_budgets(f, TN_ERR_VALUE, BUDGETS({P, 1}, {P, 2})); /* C has no maps */
    refuse_budgets(f, TN_ERR_VALUE, BUDGETS({N, 1}, {{TN_LOCATION_PINNED, 3}, 1}));
    /* Each budget in order, its location before its bytes (M251). */
    refuse_budgets(f, TN_ERR_VALUE, BUDGETS({P, minus}, {bad, 1}));
    refuse_budgets(f, TN_ERR_KIND, BUDGETS({bad, minus}));
    refuse_budgets(f, TN_ERR_VALUE, BUDGETS({C2, 1}, {bad, 1}));

    assert_locations(MANAGER(f, {P, INT64_MAX}, {C1, 0}), P, C1);
}

static void mc013_budgeted_locations_are_tracked_in_order(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {N, 5}, {C0, 6});

    assert_locations(m, N, C0);
    assert_int_equal(version(m), 0);
    assert_int_equal(loc(m, N).budget_bytes, 5);
    assert_int_equal(loc(m, C0).budget_bytes, 6);
}

static void no_cuda(struct spec *f) {
    tn_manager *m = MANAGER(f);
    tn_value_spec spec = tt_spec(32, 32);
    tn_source source = tt_source_of(spec_source(f));
    tn_reservation r = {NULL, 0};
    tn_lease lease = {NULL, 0};
    tn_handle h = {1, 1, NULL};
    tn_handle unknown;

    refuse_budgets(f, TN_ERR_VALUE, BUDGETS({C0, 1}));
    assert_status(tn_manager_reserve(m, C0, 0, "r", &r), TN_ERR_VALUE);
    assert_status(tn_manager_register_source(m, &spec, &source, C0, &h), TN_ERR_VALUE);
    assert_ok(tn_handle_make(tn_manager_id(m), 1, tt_type(), &unknown));
    assert_status(tn_manager_acquire(m, &unknown, 1, C0, NULL, &lease), TN_ERR_VALUE);
    assert_locations(m);
    assert_int_equal(version(m), 0);
    assert_null(r.record);
    assert_null(h.type);
}

static void mc014_without_devices_cuda_locations_are_refused(void **state) {
    struct spec *f = *state;

    spec_machine(f, "dev:0");
    no_cuda(f);
    f->driver = NULL; /* a manager without driver */
    no_cuda(f);
}

/* Host locations always pass, also pinned host without any accelerator (M16). */
static void mc014_without_devices_host_locations_pass(void **state) {
    struct spec *f = *state;
    tn_manager *m;

    spec_machine(f, "dev:0");
    for (int i = 0; i < 2; i++) {
        m = MANAGER(f, {N, 5});
        reserve(m, N, 5, "pinned");
        reserve(m, P, 5, "pageable");
        assert_locations(m, N, P);
        f->driver = NULL;
    }
}

/* The parts that need no plan. */
static void mc015_device_that_does_not_exist(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    tn_value_spec spec = tt_spec(32, 32);
    tn_source source = tt_source_of(spec_source(f));
    tn_payload payload = spec_v(f, P);
    tn_handle other = {1, 1, NULL};
    tn_reservation r = {NULL, 0};
    tn_lease lease = {NULL, 0};
    tn_hold held = {NULL, 0};
    char *before = spec_describe(m, 0);

    assert_status(tn_manager_ensure(m, h, C2, NULL, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_copy(m, h, C2, NULL, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_move(m, h, C2, NOWHERE, NULL, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_move(m, h, P, C2, NULL, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_drop(m, h, C2, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_reserve(m, C2, 1, "r", &r), TN_ERR_VALUE);
    assert_status(tn_manager_register_source(m, &spec, &source, C2, &other), TN_ERR_VALUE);
    assert_status(tn_manager_adopt(m, payload, C2, TN_EXCLUSIVE, &other), TN_ERR_VALUE);
    assert_status(tn_manager_acquire(m, &h, 1, C2, spec_stream(f, 0), &lease), TN_ERR_VALUE);
    assert_status(tn_manager_hold(m, &h, 1, C2, &held), TN_ERR_VALUE);
    assert_locations(m, P);
    assert_int_equal(trace_count(m), 0);
    assert_int_equal(info(m).value_count, 1);
    assert_unchanged(m, before, 0);
    tt_free(payload);
}

static void refuse_non_handle(tn_manager *m, tn_handle h, tn_handle good) {
    tn_handle list[2] = {good, h};
    tn_lease lease = {NULL, 0};
    tn_hold held = {NULL, 0};

    assert_status(tn_manager_ensure(m, h, P, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_copy(m, h, P, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_move(m, h, P, NOWHERE, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_drop(m, h, P, NULL), TN_ERR_KIND);
    assert_status(tn_manager_discard(m, h, NULL), TN_ERR_KIND);
    assert_status(tn_manager_acquire(m, &h, 1, P, NULL, &lease), TN_ERR_KIND);
    assert_status(tn_manager_hold(m, &h, 1, P, &held), TN_ERR_KIND);
    assert_status(tn_manager_acquire(m, list, 2, P, NULL, &lease), TN_ERR_KIND);
    assert_status(tn_manager_hold(m, list, 2, P, &held), TN_ERR_KIND);
    assert_status(tn_manager_acquire(m, NULL, 1, P, NULL, &lease), TN_ERR_KIND);
    assert_status(tn_manager_hold(m, NULL, 1, P, &held), TN_ERR_KIND);
    assert_null(lease.record);
    assert_null(held.record);
}

/* In C the thing that is no handle is the all-zero one, or one without a type. */
static void mc016_what_is_no_handle_is_refused_open_or_closed(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle good = adopt_rep(f, m, P);
    tn_handle zero = {0, 0, NULL};
    tn_handle typeless = {good.manager, good.index, NULL};

    refuse_non_handle(m, zero, good);
    refuse_non_handle(m, typeless, good);
    assert_int_equal(value(m, good).materialization_count, 1);
    assert_int_equal(mat(m, good, P).use_count, 0);
    assert_ok(tn_manager_close(m, 0));
    refuse_non_handle(m, zero, good);
    refuse_non_handle(m, typeless, good);
}

static void mc017_handle_type_is_exact_or_the_specs(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_value_spec spec = tt_spec(32, 32);
    tt_field field = TT_DENSE(4, 8);
    tt_source *s = spec_source(f);
    tn_lease lease;
    tn_handle h;

    h = spec_adopt(m, tt_make(tt_subtype(), f->driver, P, &field, 1), P, TN_EXCLUSIVE);
    assert_ptr_equal(h.type, tt_subtype());
    assert_ptr_equal(value(m, h).spec.type, tt_subtype());

    s->type = tt_subtype();
    spec.type = tt_type();
    h = spec_register_spec(m, s, P, &spec);
    assert_ptr_equal(h.type, tt_type());
    ensure(m, h, P);
    assert_ptr_equal(value(m, h).handle.type, tt_type());
    assert_ptr_equal(value(m, h).spec.type, tt_type());
    lease = acquire(m, h, P, NULL);
    release(&lease);
}

static void mc018_recoverability_is_having_a_source(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_value_info v;

    v = value(m, adopt_exc(f, m, P));
    assert_int_equal(v.spec.recoverability, TN_MUST_PRESERVE);
    assert_int_equal(v.has_source, 0);
    assert_at(v.source_at, NOWHERE);
    v = value(m, register_src(m, spec_source(f)));
    assert_int_equal(v.spec.recoverability, TN_RECONSTRUCTIBLE);
    assert_int_equal(v.has_source, 1);
    assert_at(v.source_at, P);
}

static const struct CMUnitTest tests[] = {
    SPEC_SERIAL(mc001_host_locations_have_no_index),
    SPEC_SERIAL(mc002_cuda_device_text),
    SPEC_SERIAL(mc003_kind_and_device_must_fit),
    SPEC_SERIAL(mc004_hand_made_handles_are_checked_for_form),
    SPEC_SERIAL(mc005_value_specs_are_checked),
    SPEC_BOTH(mc006_handle_of_another_manager_is_foreign),
    SPEC_SERIAL(mc006_manager_ids_are_never_used_again),
    SPEC_BOTH(mc007_hand_made_handles_are_unknown),
    SPEC_BOTH(mc008_discarded_value_stays_visible_and_dead),
    SPEC_BOTH(mc009_each_adopt_issues_a_new_handle),
    SPEC_BOTH(mc010_moves_keep_the_handle),
    SPEC_BOTH(mc011_fresh_manager_is_empty),
    SPEC_SERIAL(mc012_bad_budgets_are_refused),
    SPEC_BOTH(mc013_budgeted_locations_are_tracked_in_order),
    SPEC_BOTH(mc014_without_devices_cuda_locations_are_refused),
    SPEC_BOTH(mc014_without_devices_host_locations_pass),
    SPEC_BOTH(mc015_device_that_does_not_exist),
    SPEC_BOTH(mc016_what_is_no_handle_is_refused_open_or_closed),
    SPEC_BOTH(mc017_handle_type_is_exact_or_the_specs),
    SPEC_BOTH(mc018_recoverability_is_having_a_source),
};

TN_TEST_MAIN("spec.identity", tests)
