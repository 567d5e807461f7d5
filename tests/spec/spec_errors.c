/* SPDX-License-Identifier: MIT */
/*
 * The detail of every error that exists without plans (M244, M247, M249).
 */
#include "spec_b_common.h"

#include "base/base_internal.h"

#define CODE 721
#define CODE_CLEANUP 722

/* The last error is of that status and manager, and says something. */
static const tn_error *failed(tn_manager *m, tn_status status) {
    const tn_error *e = tn_last_error();

    assert_non_null(e);
    assert_int_equal(e->status, status);
    if (m != NULL)
        assert_int_equal(e->manager, tn_manager_id(m));
    assert_string_not_equal(e->message, "");
    assert_null(memchr(e->message, '\n', sizeof e->message));
    return e;
}

/* Fields that belong to another status are zero. */
static void assert_no_counts(const tn_error *e) {
    assert_int_equal(e->use_count | e->hold_count | e->pending_count, 0);
    assert_int_equal(e->active_lease_count | e->pending_lease_count | e->reservation_count, 0);
}

static void assert_no_bytes(const tn_error *e) {
    assert_int_equal(e->budget_bytes | e->used_bytes | e->reserved_bytes, 0);
    assert_int_equal(e->claimed_bytes | e->requested_bytes, 0);
}

static void assert_no_details(const tn_error *e) {
    assert_no_counts(e);
    assert_no_bytes(e);
    assert_int_equal(e->handle_cause, 0);
    assert_int_equal(e->busy, 0);
    assert_int_equal(e->owner_count, 0);
    assert_int_equal(e->expected | e->actual, 0);
    assert_int_equal(e->cleanup_status, 0);
    assert_int_equal(e->cleanup_native_code, 0);
}

/* ---- Handles -------------------------------------------------------------------------------- */

static void error_handle_names_its_cause(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_manager *other = MANAGER(f);
    tn_handle foreign = adopt_rep(f, other, P);
    tn_handle gone = adopt_rep(f, m, P);
    tn_handle unknown = {tn_manager_id(m), 1000, tt_type()};
    tn_handle other_type = gone;
    const tn_error *e;

    other_type.type = tt_other_type();
    discard(m, gone);
    assert_handle_error(spec_b_ensure(m, foreign, P), TN_HANDLE_FOREIGN);
    e = failed(m, TN_ERR_HANDLE);
    assert_handle(e->handle, foreign); /* both manager ids */
    assert_int_not_equal(e->handle.manager, e->manager);
    assert_no_counts(e);
    assert_no_bytes(e);
    assert_handle_error(spec_b_ensure(m, unknown, P), TN_HANDLE_UNKNOWN);
    e = failed(m, TN_ERR_HANDLE);
    assert_handle(e->handle, unknown);
    assert_handle_error(spec_b_ensure(m, other_type, P), TN_HANDLE_UNKNOWN);
    assert_handle_error(spec_b_ensure(m, gone, P), TN_HANDLE_DISCARDED);
    e = failed(m, TN_ERR_HANDLE);
    assert_handle(e->handle, gone);
}

/* ---- Budget --------------------------------------------------------------------------------- */

static void error_budget_has_the_numbers_of_the_refusal(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 100}, {C1, 40});
    tn_handle v = adopt_rep(f, m, P);
    tn_reservation r = reserve(m, P, 50, "x");
    tn_reservation none = {NULL, 0};
    tn_payload second = spec_v(f, P);
    tn_handle h = {0, 0, NULL};
    tn_reservation at_c1 = reserve(m, C1, 9, "y");
    const tn_error *e;

    assert_status(tn_manager_adopt(m, second, P, 0, &h), TN_ERR_BUDGET);
    assert_budget_error(P, 100, 32, 50, 32);
    e = failed(m, TN_ERR_BUDGET);
    assert_no_counts(e);
    assert_int_equal(e->owner_count, 0);
    assert_status(tn_manager_reserve(m, P, 19, "z", &none), TN_ERR_BUDGET);
    assert_budget_error(P, 100, 32, 50, 19);
    assert_status(spec_b_ensure(m, v, C1), TN_ERR_BUDGET);
    assert_budget_error(C1, 40, 0, 9, 32);
    assert_status(tn_manager_move(m, v, C1, P, NULL, NULL), TN_ERR_BUDGET);
    assert_budget_error(C1, 40, 0, 9, 32);
    failed(m, TN_ERR_BUDGET);
    tt_free(second);
    release_reservation(&r);
    release_reservation(&at_c1);
}

/* The temporary charge of a load is a reserved byte like any (M45). */
static void error_budget_of_a_load(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 40}, {N, 31});
    tn_handle big = register_src(m, spec_source(f));
    tn_reservation r = reserve(m, P, 9, "x");

    assert_status(spec_b_ensure(m, big, P), TN_ERR_BUDGET);
    assert_budget_error(P, 40, 0, 9, 32);
    release_reservation(&r);
    assert_status(spec_b_ensure(m, big, N), TN_ERR_BUDGET);
    assert_budget_error(N, 31, 0, 0, 32);
}

/* ---- Unavailable, in use -------------------------------------------------------------------- */

static void error_unavailable_names_value_and_location(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_lease lease = {NULL, 0};
    tn_hold h = {NULL, 0};
    const tn_error *e;

    assert_status(tn_manager_acquire(m, &v, 1, N, NULL, &lease), TN_ERR_UNAVAILABLE);
    e = failed(m, TN_ERR_UNAVAILABLE);
    assert_handle(e->handle, v);
    assert_at(e->at, N);
    assert_no_details(e);
    assert_status(tn_manager_hold(m, &v, 1, C1, &h), TN_ERR_UNAVAILABLE);
    e = failed(m, TN_ERR_UNAVAILABLE);
    assert_handle(e->handle, v);
    assert_at(e->at, C1);
    assert_status(tn_manager_move(m, v, N, C0, NULL, NULL), TN_ERR_UNAVAILABLE);
    e = failed(m, TN_ERR_UNAVAILABLE);
    assert_handle(e->handle, v);
    assert_at(e->at, C0); /* the explicit source */
    assert_no_details(e);
}

static void error_in_use_names_value_location_and_counts(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_stream s = spec_stream(f, 0);
    tn_lease pending;
    tn_lease leases[3];
    tn_hold holds[2];
    const tn_error *e;

    ensure(m, v, C0);
    pending = acquire(m, v, C0, s);
    spec_busy(f, s);
    release(&pending);
    for (int i = 0; i < 3; i++)
        leases[i] = acquire(m, v, C0, s);
    for (int i = 0; i < 2; i++)
        holds[i] = hold(m, v, C0);
    for (int i = 0; i < 3; i++) {
        tn_status status = i == 0   ? tn_manager_drop(m, v, C0, NULL)
                           : i == 1 ? tn_manager_discard(m, v, NULL)
                                    : tn_manager_move(m, v, C1, C0, NULL, NULL);

        assert_in_use(status, 3, 2, 1);
        e = failed(m, TN_ERR_IN_USE);
        assert_handle(e->handle, v);
        assert_at(e->at, C0);
        assert_int_equal(e->active_lease_count | e->pending_lease_count | e->reservation_count, 0);
        assert_no_bytes(e);
    }
    for (int i = 0; i < 3; i++)
        assert_ok(tn_lease_release(&leases[i], TN_RELEASE_WAIT));
    for (int i = 0; i < 2; i++)
        release_hold(&holds[i]);
}

static void error_in_use_of_close_has_four_counts(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle a = adopt_rep(f, m, P);
    tn_handle b = adopt_rep(f, m, P);
    const tn_handle both[] = {a, b};
    tn_stream s = spec_stream(f, 0);
    tn_lease lease[2];
    tn_lease pending;
    tn_hold holds[3];
    tn_reservation r[2];
    const tn_error *e;

    ensure(m, a, C0);
    pending = acquire(m, a, C0, s);
    spec_busy(f, s);
    release(&pending);
    assert_ok(tn_manager_acquire(m, both, 2, P, NULL, &lease[0])); /* one lease, two uses */
    lease[1] = acquire(m, a, P, NULL);
    for (int i = 0; i < 3; i++)
        holds[i] = hold(m, b, P);
    for (int i = 0; i < 2; i++)
        r[i] = reserve(m, P, (uint64_t)i, "x");
    assert_close_in_use(tn_manager_close(m, TN_CLOSE_NO_WAIT), 2, 1, 3, 2);
    e = failed(m, TN_ERR_IN_USE);
    assert_int_equal(e->use_count | e->pending_count, 0);
    assert_int_equal(e->handle.index, 0);
    assert_no_bytes(e);
    for (int i = 0; i < 2; i++)
        release(&lease[i]);
    for (int i = 0; i < 3; i++)
        release_hold(&holds[i]);
    for (int i = 0; i < 2; i++)
        release_reservation(&r[i]);
}

/* ---- Materialization, ownership ------------------------------------------------------------- */

static void error_materialization_has_both_numbers(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_value_spec spec = tt_spec(32, 32);
    tt_field small = TT_DENSE(3, 8);
    tt_field view = TT_VIEW(4, 8, 2, 64);
    tt_source *source = spec_source(f);
    tn_handle v = spec_register_spec(m, source, P, &spec);
    tn_payload pinned = spec_v(f, N);
    tn_handle h = {0, 0, NULL};
    const tn_error *e;

    source->fields = &small;
    source->field_count = 1;
    assert_status(spec_b_ensure(m, v, P), TN_ERR_MATERIALIZATION);
    e = failed(m, TN_ERR_MATERIALIZATION);
    assert_int_equal(e->expected, 32);
    assert_int_equal(e->actual, 24);
    source->fields = &view;
    assert_status(spec_b_ensure(m, v, P), TN_ERR_MATERIALIZATION);
    e = failed(m, TN_ERR_MATERIALIZATION);
    assert_int_equal(e->expected, 32); /* the ceiling */
    assert_int_equal(e->actual, 64);
    source->fields = NULL;
    source->type = tt_other_type();
    assert_status(spec_b_ensure(m, v, P), TN_ERR_MATERIALIZATION);
    e = failed(m, TN_ERR_MATERIALIZATION);
    assert_int_equal(e->expected | e->actual, 0); /* a type is no number */
    source->type = NULL;
    tt_grow_copy(1); /* a copy that does not fit (M247) */
    ensure(m, v, P);
    assert_status(spec_b_ensure(m, v, N), TN_ERR_MATERIALIZATION);
    e = failed(m, TN_ERR_MATERIALIZATION);
    assert_int_equal(e->expected, 32);
    assert_int_equal(e->actual, 40);
    assert_replicas(m, v, P);
    assert_status(tn_manager_adopt(m, pinned, P, 0, &h), TN_ERR_MATERIALIZATION);
    failed(m, TN_ERR_MATERIALIZATION);
    tt_free(pinned);
}

static void error_ownership_names_the_owners(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_backing *batch = tt_backing_make(NULL, P, 64);
    tt_backing *second = tt_backing_make(NULL, P, 64);
    tn_payload left = tt_row(batch, 0, 32);
    tn_payload right = tt_row(batch, 1, 32);
    tn_payload next = tt_row(second, 0, 32);
    tt_field shared[2] = {TT_DENSE(4, 8), TT_DENSE(4, 8)};
    tn_handle owner = spec_adopt(m, left, P, TN_REPLICABLE);
    tn_handle other = spec_adopt(m, next, P, TN_REPLICABLE);
    tn_handle h = {0, 0, NULL};
    tn_payload both;
    const tn_error *e;

    assert_status(tn_manager_adopt(m, right, P, 0, &h), TN_ERR_OWNERSHIP);
    e = failed(m, TN_ERR_OWNERSHIP);
    assert_int_equal(e->reason, TN_REASON_STORAGE_SHARED);
    assert_int_equal(e->owner_count, 1);
    assert_handle(e->owners[0].handle, owner);
    assert_at(e->owners[0].at, P);
    assert_int_equal(e->owners[1].handle.index, 0);
    assert_no_counts(e);
    shared[0].backing = batch;
    shared[1].backing = second;
    both = tt_make(tt_type(), NULL, P, shared, 2);
    assert_status(tn_manager_adopt(m, both, P, 0, &h), TN_ERR_OWNERSHIP);
    e = failed(m, TN_ERR_OWNERSHIP);
    assert_int_equal(e->owner_count, 2);
    assert_true((tn_handle_equal(e->owners[0].handle, owner) &&
                 tn_handle_equal(e->owners[1].handle, other)) ||
                (tn_handle_equal(e->owners[0].handle, other) &&
                 tn_handle_equal(e->owners[1].handle, owner)));
    tt_free(both);
    tt_free(right);
    tt_backing_free(batch);
    tt_backing_free(second);
}

/* A loaded payload that is only a copy's source is checked too (D5). */
static void error_ownership_of_a_load(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_backing *batch = tt_backing_make(NULL, P, 32);
    tn_handle owner = spec_adopt(m, tt_row(batch, 0, 32), P, TN_REPLICABLE);
    tt_source *source = spec_source(f);
    tn_handle v = register_src(m, source);
    const tn_error *e;

    for (int i = 0; i < 2; i++) {
        source->give = tt_row(batch, 0, 32);
        assert_status(spec_b_ensure(m, v, i == 0 ? P : N), TN_ERR_OWNERSHIP);
        e = failed(m, TN_ERR_OWNERSHIP);
        assert_int_equal(e->owner_count, 1);
        assert_handle(e->owners[0].handle, owner);
        assert_replicas(m, v);
    }
    assert_replicas(m, owner, P);
    tt_backing_free(batch);
}

static void error_ownership_by_rule(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_exc(f, m, P);
    const tn_error *e;

    assert_status(spec_b_ensure(m, v, N), TN_ERR_OWNERSHIP);
    e = failed(m, TN_ERR_OWNERSHIP);
    assert_int_equal(e->reason, TN_REASON_EXCLUSIVE);
    assert_handle(e->handle, v);
    assert_int_equal(e->owner_count, 0);
    assert_status(tn_manager_drop(m, v, P, NULL), TN_ERR_OWNERSHIP);
    e = failed(m, TN_ERR_OWNERSHIP);
    assert_int_equal(e->reason, TN_REASON_LAST_COPY);
    assert_handle(e->handle, v);
    assert_at(e->at, P);
    assert_int_equal(e->owner_count, 0);
}

/* ---- Errors from outside (M249) ------------------------------------------------------------- */

static void error_source_is_passed_on_unchanged(void **state) {
    static const tn_status statuses[] = {TN_ERR_SOURCE, TN_ERR_VALUE, TN_ERR_HOST_MEMORY,
                                         TN_ERR_PAYLOAD, TN_ERR_DRIVER};
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *source = spec_source(f);
    tn_handle v = register_src(m, source);
    const tn_error *e;

    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        source->fail_from = source->calls + 1;
        source->fail_status = statuses[i];
        source->fail_code = CODE + (int64_t)i;
        source->fail_message = "the tape broke";
        assert_status(spec_b_ensure(m, v, i % 2 == 0 ? P : N), statuses[i]);
        e = failed(m, statuses[i]);
        assert_int_equal(e->native_code, CODE + (int64_t)i);
        assert_non_null(strstr(e->message, "the tape broke"));
        assert_handle(e->handle, v);
    }
    source->fail_from = source->calls + 1;
    source->fail_status = TN_ERR_SOURCE;
    source->fail_message = NULL; /* then a text of ours */
    assert_status(spec_b_ensure(m, v, P), TN_ERR_SOURCE);
    failed(m, TN_ERR_SOURCE);
    source->fail_from = 0;
    source->no_payload = true; /* says that it is fine and gives nothing */
    assert_int_not_equal(spec_b_ensure(m, v, P), TN_OK);
    assert_replicas(m, v);
    source->no_payload = false;
    source->no_fields = true;
    assert_status(spec_b_ensure(m, v, P), TN_ERR_PAYLOAD);
    assert_replicas(m, v);
}

static void error_driver_carries_the_native_code(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    const tn_error *e;
    static const struct {
        uint32_t entry;
        tn_status status;
        int64_t code; /* one that means the status */
    } rows[] = {{TN_SIM_COPY, TN_ERR_DRIVER, CODE},
                {TN_SIM_EVENT_RECORD, TN_ERR_DRIVER, CODE + 1},
                {TN_SIM_EVENT_SYNCHRONIZE, TN_ERR_DRIVER, CODE + 2},
                {TN_SIM_COPY, TN_ERR_DEVICE_LOST, 719},
                {TN_SIM_DEVICE_ALLOC, TN_ERR_DEVICE_MEMORY, 2},
                {TN_SIM_DEVICE_ALLOC, TN_ERR_DRIVER, CODE + 3}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *before = spec_describe(m, 0);

        spec_fault(f, rows[i].entry, 1, 1, rows[i].status, rows[i].code);
        assert_status(spec_b_ensure(m, v, C0), rows[i].status);
        assert_int_equal(spec_repair(f), 1);
        e = failed(m, rows[i].status);
        assert_int_equal(e->native_code, rows[i].code);
        assert_int_equal(e->cleanup_status, 0);
        assert_no_counts(e);
        assert_unchanged(m, before, 0);
    }
    ensure(m, v, C0);
}

static void error_of_a_cleanup_is_attached(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    const tn_error *e;

    spec_own_table(f);
    spec_fault(f, TN_SIM_EVENT_RECORD, 1, 1, TN_ERR_DRIVER, CODE);
    spec_fault(f, TN_SIM_STREAM_SYNCHRONIZE, 1, 1, TN_ERR_DRIVER, CODE_CLEANUP);
    assert_status(spec_b_ensure(m, v, C0), TN_ERR_DRIVER);
    assert_int_equal(spec_repair(f), 2);
    e = failed(m, TN_ERR_DRIVER);
    assert_int_equal(e->native_code, CODE); /* never replaced (M222) */
    assert_int_equal(e->cleanup_status, TN_ERR_DRIVER);
    assert_int_equal(e->cleanup_native_code, CODE_CLEANUP);
    assert_replicas(m, v, P);
    assert_locations(m, P);
    spec_finish(f);
    assert_int_equal(tn_sim_violations(f->sim), 0);
    f->lenient = true; /* what a queued copy may still write to may be kept */
}

static void error_payload_of_pinned_memory(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    const tn_error *e;

    spec_fault(f, TN_SIM_PINNED_ALLOC, 1, 1, TN_ERR_DRIVER, CODE);
    assert_status(spec_b_ensure(m, v, N), TN_ERR_PAYLOAD);
    e = failed(m, TN_ERR_PAYLOAD);
    assert_int_equal(e->native_code, CODE);
    spec_repair(f);
    assert_ok(tn_sim_set_state(f->sim, TN_SIM_FAKE_PINNED)); /* never pageable instead (M31) */
    assert_status(spec_b_ensure(m, v, N), TN_ERR_PAYLOAD);
    failed(m, TN_ERR_PAYLOAD);
    assert_ok(tn_sim_set_state(f->sim, TN_SIM_NO_PINNED));
    assert_status(spec_b_ensure(m, v, N), TN_ERR_PAYLOAD);
    assert_ok(tn_sim_set_state(f->sim, TN_SIM_NORMAL));
    assert_replicas(m, v, P);
    ensure(m, v, N);
}

static void error_host_memory_is_distinct(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    unsigned refused = 0;
    tn_status status;

    for (uint64_t n = 1;; n++) { /* each allocation of an adopt in turn */
        tn_handle h = {0, 0, NULL};
        char *before = spec_describe(m, 0);

        tn__fault_alloc(n);
        status = spec_b_adopt(m, &h);
        if (!tn__fault_alloc_fired()) {
            tn__fault_alloc(0);
            free(before);
            break;
        }
        tn__fault_alloc(0);
        if (status == TN_OK) { /* a place where failure is harmless */
            discard(m, h);
            free(before);
            continue;
        }
        assert_int_equal(status, TN_ERR_HOST_MEMORY);
        failed(NULL, TN_ERR_HOST_MEMORY);
        refused++;
        assert_int_equal(h.index, 0);
        assert_unchanged(m, before, 0);
    }
    assert_ok(status);
    assert_true(refused > 0);
}

/* ---- Closed, reentrancy, arguments ---------------------------------------------------------- */

static void error_of_ended_objects_and_wrong_calls(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_handle w = adopt_rep(f, m, P);
    tn_lease lease = acquire(m, v, P, NULL);
    const void *data = NULL;

    assert_status(tn_lease_lookup(&lease, w, &data), TN_ERR_LOOKUP);
    failed(NULL, TN_ERR_LOOKUP);
    release(&lease);
    assert_status(tn_lease_lookup(&lease, v, &data), TN_ERR_LIFETIME_CLOSED);
    assert_no_details(failed(NULL, TN_ERR_LIFETIME_CLOSED));
    assert_status(spec_b_ensure(m, NOT_A_HANDLE, P), TN_ERR_KIND);
    assert_no_details(failed(NULL, TN_ERR_KIND));
    assert_status(spec_b_ensure(m, v, C2), TN_ERR_VALUE);
    assert_no_details(failed(NULL, TN_ERR_VALUE));
    assert_ok(tn_manager_close(m, 0));
    assert_status(spec_b_ensure(m, v, P), TN_ERR_CLOSED);
    assert_no_details(failed(m, TN_ERR_CLOSED));
}

struct seen {
    tn_manager *m;
    tn_error error;
};

static tn_status look_inside(void *context, const tn_load_request *request) {
    struct seen *seen = context;

    (void)request;
    (void)spec_b_version(seen->m);
    seen->error = *tn_last_error();
    return TN_OK;
}

static void error_reentrancy_has_no_fields(void **state) {
    struct spec *f = *state;
    tt_source *source = spec_source(f);
    struct seen seen;

    memset(&seen, 0, sizeof seen);
    seen.m = MANAGER(f);
    source->hook = look_inside;
    source->hook_context = &seen;
    ensure(seen.m, register_src(seen.m, source), P);
    assert_int_equal(seen.error.status, TN_ERR_REENTRANCY);
    assert_int_equal(seen.error.manager, tn_manager_id(seen.m));
    assert_string_not_equal(seen.error.message, "");
    assert_no_details(&seen.error);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(error_handle_names_its_cause),
    SPEC_BOTH(error_budget_has_the_numbers_of_the_refusal),
    SPEC_BOTH(error_budget_of_a_load),
    SPEC_BOTH(error_unavailable_names_value_and_location),
    SPEC_BOTH(error_in_use_names_value_location_and_counts),
    SPEC_BOTH(error_in_use_of_close_has_four_counts),
    SPEC_BOTH(error_materialization_has_both_numbers),
    SPEC_BOTH(error_ownership_names_the_owners),
    SPEC_BOTH(error_ownership_of_a_load),
    SPEC_BOTH(error_ownership_by_rule),
    SPEC_BOTH(error_source_is_passed_on_unchanged),
    SPEC_BOTH(error_driver_carries_the_native_code),
    SPEC_BOTH(error_of_a_cleanup_is_attached),
    SPEC_BOTH(error_payload_of_pinned_memory),
    SPEC_BOTH(error_host_memory_is_distinct),
    SPEC_BOTH(error_of_ended_objects_and_wrong_calls),
    SPEC_BOTH(error_reentrancy_has_no_fields),
};

TN_TEST_MAIN("spec.errors", tests)
