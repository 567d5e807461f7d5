/* SPDX-License-Identifier: MIT */
/* Source registration and reconstruction: cases MC41..MC56. */
#include "spec_common.h"

static void mc041_registration_loads_nothing(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *s = spec_source(f);
    tn_value_info v;
    tn_handle h;

    assert_int_equal(version(m), 0);
    h = register_src(m, s);
    assert_int_equal(version(m), 2);
    assert_locations(m, P);
    v = value(m, h);
    assert_int_equal(v.has_source, 1);
    assert_at(v.source_at, P);
    assert_int_equal(v.materialization_count, 0);
    assert_int_equal(s->calls, 0);
    assert_rises(m, 1, register_src(m, spec_source(f)));
    assert_int_equal(s->calls, 0);
}

/* Pageable host is the default source location; both replica modes are allowed (M70). */
static void mc041_defaults_of_a_registration(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_value_info v;

    v = value(m, spec_register(m, spec_source(f), NOWHERE, TN_EXCLUSIVE));
    assert_at(v.source_at, P);
    assert_int_equal(v.spec.replica_mode, TN_EXCLUSIVE);
    assert_locations(m, P);
    v = value(m, spec_register(m, spec_source(f), N, TN_REPLICABLE));
    assert_at(v.source_at, N);
    assert_int_equal(v.spec.replica_mode, TN_REPLICABLE);
    assert_locations(m, P, N);
}

static void mc042_refused_registrations(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *s = spec_source(f);
    tn_value_spec spec = tt_spec(32, 32);
    tn_source source = tt_source_of(s);
    tn_handle h = {0, 0, NULL};

    spec.recoverability = TN_MUST_PRESERVE;
    assert_status(tn_manager_register_source(m, &spec, &source, P, &h), TN_ERR_VALUE);
    spec.recoverability = TN_RECONSTRUCTIBLE;
    source.load = NULL;
    assert_status(tn_manager_register_source(m, &spec, &source, P, &h), TN_ERR_KIND);
    assert_locations(m);
    assert_int_equal(version(m), 0);
    assert_null(h.type);
    assert_int_equal(s->calls, 0);
    assert_int_equal(s->forgotten, 0);
}

static void mc043_reload_in_place_needs_one_charge(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 32});
    tt_source *s = spec_source(f);
    tn_handle h = register_src(m, s);
    tn_report r = ensure(m, h, P);

    assert_report(r, TN_ACTION_ENSURE, 0, P, P);
    assert_int_equal(s->calls, 1);
    assert_int_equal(used(m, P), 32);
    assert_int_equal(reserved(m, P), 0);
    assert_peaks(m, P, 32, 32);
    r = drop(m, h, P);
    assert_int_equal(r.no_op, 0);
    assert_int_equal(used(m, P), 0);
    assert_replicas(m, h);
    ensure(m, h, P);
    assert_int_equal(s->calls, 2);
    assert_peaks(m, P, 32, 32);
    /* The request names the value, its spec and the source location. */
    assert_handle(s->last.handle, h);
    assert_int_equal(s->last.spec.logical_bytes, 32);
    assert_at(s->last.at, P);
    assert_ptr_equal(s->last.driver, f->driver);
}

static void mc044_ensure_budget_found_after_load(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 32}, {N, 31});
    tt_source *s = spec_source(f);
    tn_handle h = register_src(m, s);

    assert_rises(m, 0, {
        assert_status(tn_manager_ensure(m, h, N, NULL, NULL), TN_ERR_BUDGET);
        assert_budget_error(N, 31, 0, 0, 32);
    });
    assert_int_equal(s->calls, 1);
    assert_int_equal(used(m, P), 0);
    assert_int_equal(reserved(m, P), 0);
    assert_peaks(m, P, 0, 32);
    assert_peaks(m, N, 0, 0);
    assert_replicas(m, h);
    /* A move is refused the same way. */
    assert_status(tn_manager_move(m, h, N, NOWHERE, NULL, NULL), TN_ERR_BUDGET);
    assert_budget_error(N, 31, 0, 0, 32);
    assert_int_equal(s->calls, 2);
}

/* So a source's error comes before that of the destination's budget (G12). */
static void mc044_source_error_precedes_budget(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 32}, {N, 31});
    tt_source *s = spec_source(f);
    tn_handle h = register_src(m, s);

    s->fail_from = 1;
    assert_status(tn_manager_ensure(m, h, N, NULL, NULL), TN_ERR_SOURCE);
    assert_status(tn_manager_ensure(m, h, N, NULL, NULL), TN_ERR_BUDGET);
}

static void mc045_source_location_too_small_is_found_first(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 31});
    tt_source *s = spec_source(f);
    tn_handle h = register_src(m, s);

    assert_status(tn_manager_ensure(m, h, P, NULL, NULL), TN_ERR_BUDGET);
    assert_budget_error(P, 31, 0, 0, 32);
    assert_int_equal(s->calls, 0);
    assert_peaks(m, P, 0, 0);

    m = MANAGER(f, {P, 31}, {N, 32});
    h = register_src(m, s);
    assert_status(tn_manager_ensure(m, h, N, NULL, NULL), TN_ERR_BUDGET);
    assert_budget_error(P, 31, 0, 0, 32);
    assert_int_equal(s->calls, 0);
    assert_peaks(m, P, 0, 0);
    assert_peaks(m, N, 0, 0);
}

static void mc046_load_for_another_location_is_temporary(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 32}, {N, 32});
    tn_handle h = register_src(m, spec_source(f));
    uint64_t live = tt_count().live;

    assert_rises(m, 1, {
        tn_report r = ensure(m, h, N);

        assert_report(r, TN_ACTION_ENSURE, 0, P, N);
    });
    assert_int_equal(used(m, P), 0);
    assert_int_equal(reserved(m, P), 0);
    assert_peaks(m, P, 0, 32);
    assert_int_equal(used(m, N), 32);
    assert_peaks(m, N, 32, 32);
    assert_int_equal(tt_count().live, live + 1); /* the loaded payload is released (M77) */
}

/* An ensure whose source breaks its promise. */
static void bad_load(struct spec *f, tn_location source_at, void (*spoil)(tt_source *s)) {
    tn_manager *m = MANAGER(f);
    tt_source *s = spec_source(f);
    tn_handle h = spec_register(m, s, source_at, TN_REPLICABLE);
    uint64_t live = tt_count().live;
    const tn_location to[] = {source_at, C1};

    spoil(s);
    for (size_t i = 0; i < 2; i++) {
        assert_rises(
            m, 0,
            assert_status(tn_manager_ensure(m, h, to[i], NULL, NULL), TN_ERR_MATERIALIZATION));
        assert_int_equal(s->calls, i + 1);
        assert_int_equal(value(m, h).has_source, 1);
        assert_replicas(m, h);
        assert_int_equal(used(m, source_at), 0);
        assert_int_equal(reserved(m, source_at), 0);
        assert_peaks(m, source_at, 0, 32);
        assert_int_equal(tt_count().live, live); /* destroyed by the manager */
    }
    assert_locations(m, source_at);
    assert_int_equal(trace_count(m), 0);
    /* The same action can be retried (M79). */
    *s = (tt_source){.seed = 1};
    ensure(m, h, source_at);
}

static void give_other_type(tt_source *s) { s->type = tt_other_type(); }

static void give_24_bytes(tt_source *s) {
    static const tt_field three = TT_DENSE(3, 8);

    s->fields = &three;
    s->field_count = 1;
}

static void give_view_of_64(tt_source *s) {
    static const tt_field view = TT_VIEW(4, 8, 2, 64);

    s->fields = &view;
    s->field_count = 1;
}

static void give_pageable(tt_source *s) { s->at = P; }

static void mc047_result_of_another_type(void **state) { bad_load(*state, P, give_other_type); }
static void mc047_result_of_another_size(void **state) { bad_load(*state, P, give_24_bytes); }
static void mc047_result_above_the_ceiling(void **state) { bad_load(*state, P, give_view_of_64); }
static void mc047_result_at_another_location(void **state) { bad_load(*state, N, give_pageable); }

/* Expected and actual, where numeric (M244). */
static void mc047_error_has_both_numbers(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *s = spec_source(f);
    tn_handle h = register_src(m, s);

    give_24_bytes(s);
    assert_status(tn_manager_ensure(m, h, P, NULL, NULL), TN_ERR_MATERIALIZATION);
    assert_int_equal(tn_last_error()->expected, 32);
    assert_int_equal(tn_last_error()->actual, 24);
    give_view_of_64(s);
    assert_status(tn_manager_ensure(m, h, P, NULL, NULL), TN_ERR_MATERIALIZATION);
    assert_int_equal(tn_last_error()->expected, 32);
    assert_int_equal(tn_last_error()->actual, 64);
}

/* A payload that cannot even be measured, or none at all (M79). */
static void mc047_unusable_results(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *s = spec_source(f);
    tn_handle h = register_src(m, s);
    tn_status status;

    s->no_fields = true;
    assert_status(tn_manager_ensure(m, h, P, NULL, NULL), TN_ERR_PAYLOAD);
    s->no_fields = false;
    s->no_payload = true;
    status = tn_manager_ensure(m, h, P, NULL, NULL);
    assert_true(status == TN_ERR_MATERIALIZATION || status == TN_ERR_PAYLOAD);
    s->no_payload = false;
    assert_int_equal(reserved(m, P), 0);
    assert_int_equal(used(m, P), 0);
    ensure(m, h, P);
    assert_int_equal(s->calls, 3);
}

static void mc048_source_error_comes_through(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *s = spec_source(f);
    tn_handle h = register_src(m, s);
    tn_report r;

    s->fail_from = 1;
    s->fail_code = 77;
    s->fail_message = "the disk is on fire";
    assert_rises(m, 0, assert_status(tn_manager_ensure(m, h, P, NULL, NULL), TN_ERR_SOURCE));
    assert_int_equal(tn_last_error()->status, TN_ERR_SOURCE);
    assert_int_equal(tn_last_error()->native_code, 77);
    assert_non_null(strstr(tn_last_error()->message, "the disk is on fire"));
    assert_int_equal(used(m, P), 0);
    assert_int_equal(reserved(m, P), 0);
    assert_peaks(m, P, 0, 32);
    assert_int_equal(trace_count(m), 0);
    r = ensure(m, h, P);
    assert_report(r, TN_ACTION_ENSURE, 0, P, P);
    assert_int_equal(s->calls, 2);
}

/* Whatever status the source chose (M249). */
static void mc048_any_status_of_a_source_comes_through(void **state) {
    static const tn_status some[] = {TN_ERR_SYSTEM,      TN_ERR_HOST_MEMORY, TN_ERR_DEVICE_MEMORY,
                                     TN_ERR_DEVICE_LOST, TN_ERR_UNSUPPORTED, TN_ERR_BUDGET,
                                     TN_ERR_CLOSED,      TN_ERR_INTERNAL};
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *s = spec_source(f);
    tn_handle h = register_src(m, s);

    for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
        s->fail_from = i + 1;
        s->fail_status = some[i];
        s->fail_code = -(int64_t)i;
        assert_status(tn_manager_ensure(m, h, i % 2 != 0 ? P : N, NULL, NULL), some[i]);
        assert_int_equal(tn_last_error()->native_code, -(int64_t)i);
    }
    assert_locations(m, P);
    assert_int_equal(version(m), 2);
}

static void mc049_source_that_returns_managed_storage(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_backing *storage = tt_backing_make(f->driver, P, 32);
    tn_payload payload = tt_row(storage, 0, 32);
    tt_source *s = spec_source(f);
    tn_handle owner;
    tn_handle h;

    tt_fill(payload, 4);
    owner = spec_adopt(m, payload, P, TN_REPLICABLE);
    h = register_src(m, s);
    s->give = tt_row(storage, 0, 32); /* another payload of the same storage, which is counted */
    tt_backing_free(storage);
    assert_rises(m, 0, assert_status(tn_manager_ensure(m, h, P, NULL, NULL), TN_ERR_OWNERSHIP));
    assert_int_equal(tn_last_error()->owner_count, 1);
    assert_handle(tn_last_error()->owners[0].handle, owner);
    assert_peaks(m, P, 32, 64);
    assert_int_equal(reserved(m, P), 0);
    assert_int_equal(used(m, P), 32);
    assert_replicas(m, h);
    ensure(m, h, P);
    assert_int_equal(used(m, P), 64);
}

/* Also where the loaded payload would only be copied (D5, G13). */
static void mc049_temporary_payloads_are_checked_too(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_backing *storage = tt_backing_make(f->driver, P, 32);
    tt_source *s = spec_source(f);
    tn_handle owner = spec_adopt(m, tt_row(storage, 0, 32), P, TN_REPLICABLE);
    tn_handle h = register_src(m, s);

    s->give = tt_row(storage, 0, 32);
    tt_backing_free(storage);
    assert_status(tn_manager_ensure(m, h, N, NULL, NULL), TN_ERR_OWNERSHIP);
    assert_handle(tn_last_error()->owners[0].handle, owner);
    assert_replicas(m, h);
    assert_replicas(m, owner, P);
    assert_locations(m, P);
    assert_int_equal(reserved(m, P), 0);
}

static void mc050_subtypes_fit_base_types_do_not(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *s = spec_source(f);
    tn_value_spec spec = tt_spec(32, 32);
    tn_handle h;

    s->type = tt_subtype();
    h = spec_register_spec(m, s, P, &spec);
    ensure(m, h, P);
    assert_true(resident(m, h, P));
    assert_true(tn_value_type_is(tt_subtype(), tt_type()));
    assert_false(tn_value_type_is(tt_type(), tt_subtype()));

    s = spec_source(f);
    s->type = tt_type();
    spec.type = tt_subtype();
    h = spec_register_spec(m, s, P, &spec);
    assert_ptr_equal(h.type, tt_subtype());
    assert_status(tn_manager_ensure(m, h, P, NULL, NULL), TN_ERR_MATERIALIZATION);
    assert_int_equal(s->calls, 1);
}

static void mc051_charge_is_the_specs_not_the_payloads(void **state) {
    static const tt_field view = TT_VIEW(4, 8, 2, 56);
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_value_spec spec = tt_spec(32, 64);
    tt_source *s = spec_source(f);
    tn_handle h = spec_register_spec(m, s, P, &spec);
    tn_materialization_info r;
    tn_report report;

    report = ensure(m, h, P);
    assert_int_equal(report.logical_bytes, 32); /* of the spec, not the payload (M84) */
    assert_int_equal(report.storage_bytes, 64);
    r = mat(m, h, P);
    assert_int_equal(r.logical_bytes, 32);
    assert_int_equal(r.storage_bytes, 32);
    assert_int_equal(r.charged_bytes, 64);
    assert_int_equal(used(m, P), 64);

    s = spec_source(f);
    s->fields = &view;
    s->field_count = 1;
    spec = tt_spec(32, 40);
    h = spec_register_spec(m, s, P, &spec);
    assert_status(tn_manager_ensure(m, h, P, NULL, NULL), TN_ERR_MATERIALIZATION);
    assert_int_equal(used(m, P), 64);
    /* With room for it, it fits. */
    spec = tt_spec(32, 56);
    h = spec_register_spec(m, s, P, &spec);
    ensure(m, h, P);
    assert_int_equal(mat(m, h, P).storage_bytes, 56);
}

static void mc052_source_location_on_a_device(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = spec_register(m, spec_source(f), C0, TN_REPLICABLE);
    tn_report r;

    assert_locations(m, C0);
    assert_int_equal(version(m), 2);
    r = ensure(m, h, P);
    assert_report(r, TN_ACTION_ENSURE, 0, C0, P);
    assert_at(r.allocator, NOWHERE);
    assert_true(r.allocated_bytes_before == TN_READING_ABSENT);
    assert_true(r.held_bytes_before == TN_READING_ABSENT);
    assert_true(r.allocated_bytes_after == TN_READING_ABSENT);
    assert_true(r.held_bytes_after == TN_READING_ABSENT);
    assert_int_equal(used(m, C0), 0);
    assert_peaks(m, C0, 0, 32);
    assert_int_equal(used(m, P), 32);
}

static void mc053_exclusive_source(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *s = spec_source(f);
    tn_handle h = spec_register(m, s, P, TN_EXCLUSIVE);
    tn_report r;

    r = ensure(m, h, N);
    assert_int_equal(r.no_op, 0);
    r = ensure(m, h, N);
    assert_int_equal(r.no_op, 1);
    assert_status(tn_manager_ensure(m, h, P, NULL, NULL), TN_ERR_OWNERSHIP);
    assert_int_equal(tn_last_error()->reason, TN_REASON_EXCLUSIVE);
    r = move(m, h, P);
    assert_report(r, TN_ACTION_MOVE, 0, N, P);
    assert_int_equal(s->calls, 1);
    assert_replicas(m, h, P);
    r = drop(m, h, P);
    assert_int_equal(r.no_op, 0);
    r = move(m, h, C0);
    assert_report(r, TN_ACTION_MOVE, 0, P, C0);
    assert_int_equal(s->calls, 2);
    assert_replicas(m, h, C0);
}

static void mc054_replica_is_used_before_the_source(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *s = spec_source(f);
    tn_handle h = register_src(m, s);
    tn_report r;

    ensure(m, h, C0);
    assert_replicas(m, h, C0);
    r = ensure(m, h, P);
    assert_report(r, TN_ACTION_ENSURE, 0, C0, P);
    assert_int_equal(s->calls, 1);
    assert_peaks(m, P, 32, 32);
    assert_replicas(m, h, C0, P);
}

static void mc055_adopt_and_register_leave_no_trace(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);

    adopt_rep(f, m, P);
    register_src(m, spec_source(f));
    assert_int_equal(trace_count(m), 0);
}

static void mc056_failed_load_changes_one_peak_only(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 100}, {N, 100});
    tt_source *s = spec_source(f);
    tn_handle h = register_src(m, s);
    char *before = spec_describe(m, SPEC_NO_PEAKS);

    assert_peaks(m, P, 0, 0);
    s->fail_from = 1;
    assert_status(tn_manager_ensure(m, h, N, NULL, NULL), TN_ERR_SOURCE);
    assert_unchanged(m, before, SPEC_NO_PEAKS);
    assert_peaks(m, P, 0, 32);
    assert_peaks(m, N, 0, 0);
    assert_int_equal(s->forgotten, 0);
}

/* A source is forgotten once: at the discard, or when the manager closes. */
static void mc042_source_is_forgotten_once(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *discarded = spec_source(f);
    tt_source *closed = spec_source(f);
    tn_handle h = register_src(m, discarded);

    register_src(m, closed);
    discard(m, h);
    assert_int_equal(discarded->forgotten, 1);
    assert_int_equal(closed->forgotten, 0);
    assert_ok(tn_manager_close(m, 0));
    spec_destroy(f, m);
    assert_int_equal(discarded->forgotten, 1);
    assert_int_equal(closed->forgotten, 1);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(mc041_registration_loads_nothing),
    SPEC_BOTH(mc041_defaults_of_a_registration),
    SPEC_BOTH(mc042_refused_registrations),
    SPEC_BOTH(mc042_source_is_forgotten_once),
    SPEC_BOTH(mc043_reload_in_place_needs_one_charge),
    SPEC_BOTH(mc044_ensure_budget_found_after_load),
    SPEC_BOTH(mc044_source_error_precedes_budget),
    SPEC_BOTH(mc045_source_location_too_small_is_found_first),
    SPEC_BOTH(mc046_load_for_another_location_is_temporary),
    SPEC_BOTH(mc047_result_of_another_type),
    SPEC_BOTH(mc047_result_of_another_size),
    SPEC_BOTH(mc047_result_above_the_ceiling),
    SPEC_BOTH(mc047_result_at_another_location),
    SPEC_BOTH(mc047_error_has_both_numbers),
    SPEC_BOTH(mc047_unusable_results),
    SPEC_BOTH(mc048_source_error_comes_through),
    SPEC_BOTH(mc048_any_status_of_a_source_comes_through),
    SPEC_BOTH(mc049_source_that_returns_managed_storage),
    SPEC_BOTH(mc049_temporary_payloads_are_checked_too),
    SPEC_BOTH(mc050_subtypes_fit_base_types_do_not),
    SPEC_BOTH(mc051_charge_is_the_specs_not_the_payloads),
    SPEC_BOTH(mc052_source_location_on_a_device),
    SPEC_BOTH(mc053_exclusive_source),
    SPEC_BOTH(mc054_replica_is_used_before_the_source),
    SPEC_BOTH(mc055_adopt_and_register_leave_no_trace),
    SPEC_BOTH(mc056_failed_load_changes_one_peak_only),
};

TN_TEST_MAIN("spec.sources", tests)
