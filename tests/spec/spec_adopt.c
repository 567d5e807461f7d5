/* SPDX-License-Identifier: MIT */
/* Adopt and storage independence: cases MC34..MC40. */
#include "spec_common.h"

static void mc034_storage_has_one_owner_per_manager(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_manager *other = MANAGER(f);
    tt_backing *storage = tt_backing_make(f->driver, P, 32);
    tn_payload payload = tt_row(storage, 0, 32);
    tn_payload same_storage = tt_row(storage, 0, 32);
    tn_handle h = {0, 0, NULL};
    tn_handle first;

    tt_backing_free(storage);
    first = spec_adopt(m, payload, P, TN_EXCLUSIVE);
    assert_rises(
        m, 0, assert_status(tn_manager_adopt(m, payload, P, TN_EXCLUSIVE, &h), TN_ERR_OWNERSHIP));
    assert_rises(
        m, 0,
        assert_status(tn_manager_adopt(m, same_storage, P, TN_EXCLUSIVE, &h), TN_ERR_OWNERSHIP));
    assert_int_equal(tn_last_error()->owner_count, 1);
    assert_handle(tn_last_error()->owners[0].handle, first);
    assert_at(tn_last_error()->owners[0].at, P);
    assert_null(h.type);
    assert_int_equal(info(m).value_count, 1);
    assert_int_equal(used(m, P), 32);
    /* Storage is counted, so two managers may own it here (M67). */
    spec_adopt(other, same_storage, P, TN_EXCLUSIVE);
}

static void mc035_rows_of_a_batch_clash(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_backing *batch = tt_backing_make(f->driver, P, 64);
    tn_payload left = tt_row(batch, 0, 32);
    tn_payload right = tt_row(batch, 1, 32);
    tn_payload clone = {NULL, NULL};
    tn_handle h = {0, 0, NULL};

    tt_backing_free(batch);
    tt_fill(right, 3);
    spec_adopt(m, left, P, TN_EXCLUSIVE);
    assert_status(tn_manager_adopt(m, right, P, TN_EXCLUSIVE, &h), TN_ERR_OWNERSHIP);
    assert_ok(tn_payload_place(f->driver, right, P, NULL, TN_PLACE_COPY, &clone));
    tt_free(right);
    h = spec_adopt(m, clone, P, TN_EXCLUSIVE);
    assert_int_equal(mat(m, h, P).storage_bytes, 32);
    assert_int_equal(used(m, P), 64 + 32);
}

/* Zero-size allocations never clash, fields of one payload may share (M65). */
static void mc035_what_does_not_clash(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_backing *empty = tt_backing_make(f->driver, P, 0);
    tt_field fields[] = {TT_DENSE(4, 8), TT_SHARE(2, 8, 0)};

    spec_adopt(m, tt_row(empty, 0, 0), P, TN_EXCLUSIVE);
    spec_adopt(m, tt_row(empty, 0, 0), P, TN_EXCLUSIVE);
    tt_backing_free(empty);
    spec_adopt(m, tt_make(tt_type(), f->driver, P, fields, 2), P, TN_EXCLUSIVE);
}

static void mc036_failed_adopt_leaves_nothing(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 32});
    tn_payload payload = spec_v(f, P);
    tn_handle h = {0, 0, NULL};

    assert_status(tn_manager_adopt(m, payload, P, 2, &h), TN_ERR_KIND); /* a mode that is none */
    assert_int_equal(info(m).value_count, 0);
    assert_int_equal(used(m, P), 0);
    assert_peaks(m, P, 0, 0);
    assert_int_equal(version(m), 0);
    assert_int_equal(trace_count(m), 0);
    assert_null(h.type);
    h = spec_adopt(m, payload, P, TN_EXCLUSIVE); /* it was still ours */
    assert_int_equal(used(m, P), 32);
    assert_true(tn_handle_equal(value(m, h).handle, h));
}

/* Fields at two places, for payloads that are unusable or mixed. */
static tn_payload two_places(struct spec *f, tn_location a, tn_location b) {
    tt_field fields[] = {TT_DENSE(2, 8), TT_DENSE(2, 8)};

    fields[0].at = a;
    fields[1].at = b;
    return tt_make(tt_type(), f->driver, a, fields, 2);
}

static void refuse(tn_manager *m, tn_payload payload, tn_location at, tn_status want) {
    tn_handle h = {0, 0, NULL};

    assert_status(tn_manager_adopt(m, payload, at, TN_EXCLUSIVE, &h), want);
    assert_null(h.type);
    tt_free(payload);
}

static void mc037_payload_and_location_must_agree(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);

    refuse(m, spec_v(f, P), N, TN_ERR_MATERIALIZATION);
    refuse(m, spec_v(f, N), P, TN_ERR_MATERIALIZATION);
    refuse(m, spec_v(f, P), C0, TN_ERR_MATERIALIZATION);
    refuse(m, spec_v(f, N), C0, TN_ERR_MATERIALIZATION);
    refuse(m, spec_v(f, C0), P, TN_ERR_MATERIALIZATION);
    refuse(m, spec_v(f, C0), N, TN_ERR_MATERIALIZATION);
    refuse(m, spec_v(f, C1), C0, TN_ERR_MATERIALIZATION);
    refuse(m, two_places(f, P, N), NOWHERE, TN_ERR_MATERIALIZATION);
    refuse(m, two_places(f, N, P), P, TN_ERR_MATERIALIZATION);
    refuse(m, two_places(f, N, P), N, TN_ERR_MATERIALIZATION);
    assert_locations(m);
    assert_int_equal(version(m), 0);
    assert_int_equal(info(m).value_count, 0);
}

static void mc038_location_is_inferred(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h;

    h = spec_adopt(m, spec_v(f, N), NOWHERE, TN_EXCLUSIVE);
    assert_replicas(m, h, N);
    h = spec_adopt(m, spec_v(f, C1), NOWHERE, TN_EXCLUSIVE);
    assert_replicas(m, h, C1);
    h = spec_adopt(m, spec_v(f, P), NOWHERE, TN_EXCLUSIVE);
    assert_replicas(m, h, P);
    assert_locations(m, N, C1, P);
}

/* Fields of size zero are neutral; with no others it is pageable, and agrees with both (G22). */
static void mc038_zero_size_fields_are_neutral(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_field fields[] = {TT_DENSE(0, 8), TT_DENSE(4, 8)};
    tn_handle h;

    h = spec_adopt(m, tt_bytes(f->driver, P, 0), NOWHERE, TN_EXCLUSIVE);
    assert_replicas(m, h, P);
    h = spec_adopt(m, tt_bytes(f->driver, P, 0), N, TN_EXCLUSIVE);
    assert_replicas(m, h, N);
    fields[0].at = P;
    fields[1].at = N;
    h = spec_adopt(m, tt_make(tt_type(), f->driver, N, fields, 2), NOWHERE, TN_EXCLUSIVE);
    assert_replicas(m, h, N);
}

static void mc039_unusable_payloads(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_field fields[] = {TT_DENSE(4, 8), TT_SHARE(4, 8, 0)};

    refuse(m, tt_make(tt_type(), f->driver, P, NULL, 0), P, TN_ERR_PAYLOAD);
    refuse(m, tt_make(tt_type(), f->driver, P, NULL, 0), NOWHERE, TN_ERR_PAYLOAD);
    refuse(m, two_places(f, C0, C1), C0, TN_ERR_PAYLOAD);
    refuse(m, two_places(f, C0, C1), NOWHERE, TN_ERR_PAYLOAD);
    refuse(m, two_places(f, P, C1), P, TN_ERR_PAYLOAD);
    fields[1].claimed_bytes = 64; /* another size of the same allocation */
    refuse(m, tt_make(tt_type(), f->driver, P, fields, 2), P, TN_ERR_PAYLOAD);
    assert_locations(m);
    assert_int_equal(version(m), 0);
}

/* What the type's own callback reports comes through. */
static void mc039_measure_that_fails(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);

    tt_fail_measure(1, TN_ERR_HOST_MEMORY);
    refuse(m, spec_v(f, P), P, TN_ERR_HOST_MEMORY);
    assert_locations(m);
}

static void mc040_discarded_storage_may_be_adopted_again(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_backing *storage = tt_backing_make(f->driver, P, 32);
    tn_value_info row = {.size = sizeof(row)};
    tn_snapshot *s = NULL;
    uint64_t cursor = 0;
    bool more = false;
    uint64_t live = tt_count().live;
    tn_handle first = spec_adopt(m, tt_row(storage, 0, 32), P, TN_EXCLUSIVE);
    tn_handle second;

    discard(m, first);
    assert_int_equal(tt_count().live, live); /* given back when the call returns (M87) */
    second = spec_adopt(m, tt_row(storage, 0, 32), P, TN_EXCLUSIVE);
    tt_backing_free(storage);

    assert_ok(tn_snapshot_take(m, &s));
    assert_ok(tn_snapshot_next(s, &cursor, &row, &more));
    assert_true(more);
    assert_handle(row.handle, first);
    assert_int_equal(row.discarded, 1);
    assert_ok(tn_snapshot_next(s, &cursor, &row, &more));
    assert_true(more);
    assert_handle(row.handle, second);
    assert_int_equal(row.discarded, 0);
    assert_ok(tn_snapshot_next(s, &cursor, &row, &more));
    assert_false(more);
    tn_snapshot_drop(s);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(mc034_storage_has_one_owner_per_manager),
    SPEC_BOTH(mc035_rows_of_a_batch_clash),
    SPEC_BOTH(mc035_what_does_not_clash),
    SPEC_BOTH(mc036_failed_adopt_leaves_nothing),
    SPEC_BOTH(mc037_payload_and_location_must_agree),
    SPEC_BOTH(mc038_location_is_inferred),
    SPEC_BOTH(mc038_zero_size_fields_are_neutral),
    SPEC_BOTH(mc039_unusable_payloads),
    SPEC_BOTH(mc039_measure_that_fails),
    SPEC_BOTH(mc040_discarded_storage_may_be_adopted_again),
};

TN_TEST_MAIN("spec.adopt", tests)
