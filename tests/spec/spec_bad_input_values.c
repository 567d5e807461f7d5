/* SPDX-License-Identifier: MIT */
/* What a program can get wrong: status.h, error.h, types.h and value.h. */
#include "spec_bad_input.h"

/* ---- status.h, error.h, version.h ------------------------------------------------------------ */

static void status_numbers_that_are_none(void **state) {
    (void)state;
    assert_string_equal(tn_status_name(TN_OK), "TN_OK");
    assert_string_equal(tn_status_name(TN_ERR_BUDGET), "TN_ERR_BUDGET");
    assert_string_equal(tn_status_name((tn_status)9999), "TN_UNKNOWN");
    assert_string_equal(tn_status_name((tn_status)-1), "TN_UNKNOWN");
    for (int i = -1; i < 40; i++) {
        assert_true(strlen(tn_status_text((tn_status)i)) > 0);
        assert_true(strlen(tn_status_advice((tn_status)i)) > 0);
    }
    assert_non_null(tn_last_error());
    assert_int_equal(tn_last_error()->size, sizeof(tn_error));
    assert_int_equal(tn_api_version(), TN_API_VERSION);
}

static void errors_say_what_happened(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);

    assert_status(tn_manager_drop(m, h, P, NULL), TN_ERR_OWNERSHIP);
    assert_int_equal(tn_last_error()->status, TN_ERR_OWNERSHIP);
    assert_true(strlen(tn_last_error()->message) > 0);
    assert_int_equal(tn_last_error()->manager, tn_manager_id(m));
    /* A call that succeeds leaves it as it was; the next failure replaces it. */
    ensure(m, h, P);
    assert_int_equal(tn_last_error()->status, TN_ERR_OWNERSHIP);
    assert_status(tn_location_name(P, NULL, 0), TN_ERR_KIND);
    assert_int_equal(tn_last_error()->status, TN_ERR_KIND);
    assert_true(strlen(tn_last_error()->message) > 0);
    assert_int_equal(tn_last_error()->manager, 0);
    assert_int_equal(tn_last_error()->reason, TN_REASON_NONE);
}

/* ---- types.h --------------------------------------------------------------------------------- */

static void locations_and_handles(void **state) {
    char name[TN_LOCATION_NAME_MAX] = "untouched";
    tn_location at = {5, 5};
    tn_handle h = {5, 5, NULL};

    (void)state;
    assert_status(tn_location_make(TN_LOCATION_CUDA, NULL, &at), TN_ERR_KIND);
    assert_status(tn_location_make(TN_LOCATION_CUDA, "cuda:0", NULL), TN_ERR_KIND);
    assert_int_equal(at.kind, 5);

    assert_status(tn_location_name(P, NULL, 16), TN_ERR_KIND);
    assert_status(tn_location_name(bad_kind, name, sizeof(name)), TN_ERR_KIND);
    assert_status(tn_location_name(tn_location_cuda(128), name, sizeof(name)), TN_ERR_VALUE);
    assert_status(tn_location_name(P, name, strlen("pageable-host")), TN_ERR_VALUE);
    assert_status(tn_location_name(P, name, 0), TN_ERR_VALUE);
    assert_string_equal(name, "untouched");
    assert_ok(tn_location_name(P, name, strlen("pageable-host") + 1));
    assert_ok(tn_location_name(NOWHERE, name, sizeof(name)));
    assert_string_equal(name, "none");
    assert_false(tn_location_equal(bad_kind, P));
    assert_true(tn_location_equal(NOWHERE, NOWHERE));

    assert_status(tn_handle_make(1, 1, tt_type(), NULL), TN_ERR_KIND);
    assert_status(tn_handle_make(1, 1, NULL, &h), TN_ERR_KIND);
    assert_status(tn_handle_make(0, 1, tt_type(), &h), TN_ERR_VALUE);
    assert_int_equal(h.manager, 5);
    assert_true(tn_handle_equal((tn_handle){0, 0, NULL}, (tn_handle){0, 0, NULL}));
    assert_int_equal(tn_handle_hash((tn_handle){0, 0, NULL}),
                     tn_handle_hash((tn_handle){0, 0, NULL}));
}

/* ---- value.h --------------------------------------------------------------------------------- */

/* The chain of a type: itself and `depth` - 1 supers. */
static const tn_value_type *deep_type(unsigned depth) {
    static tn_value_type types[TN_TYPE_DEPTH_MAX + 1];

    assert_true(depth >= 1 && depth <= TN_TYPE_DEPTH_MAX + 1);
    for (unsigned i = 0; i < depth; i++) {
        types[i] = *tt_type();
        types[i].super = i + 1 < depth ? &types[i + 1] : NULL;
    }
    return &types[0];
}

static void value_types(void **state) {
    char long_name[300];
    tn_value_type t = *tt_type();
    tn_handle h;

    (void)state;
    t.size = 0;
    assert_status(tn_handle_make(1, 1, &t, &h), TN_ERR_KIND);
    t.size = SIZE_MAX;
    assert_status(tn_handle_make(1, 1, &t, &h), TN_ERR_KIND);
    t = *tt_type();
    t.name = NULL;
    assert_status(tn_handle_make(1, 1, &t, &h), TN_ERR_KIND);
    t.name = " \t";
    assert_status(tn_handle_make(1, 1, &t, &h), TN_ERR_KIND);
    memset(long_name, 'x', sizeof(long_name));
    long_name[256] = '\0';
    t.name = long_name;
    assert_status(tn_handle_make(1, 1, &t, &h), TN_ERR_KIND);
    long_name[255] = '\0';
    assert_ok(tn_handle_make(1, 1, &t, &h));
    t = *tt_type();
    t.copy = NULL;
    assert_status(tn_handle_make(1, 1, &t, &h), TN_ERR_KIND);
    t = *tt_type();
    t.super = &t; /* its own super */
    assert_status(tn_handle_make(1, 1, &t, &h), TN_ERR_KIND);
    assert_ok(tn_handle_make(1, 1, deep_type(TN_TYPE_DEPTH_MAX), &h));
    assert_status(tn_handle_make(1, 1, deep_type(TN_TYPE_DEPTH_MAX + 1), &h), TN_ERR_KIND);

    assert_false(tn_value_type_is(NULL, tt_type()));
    assert_false(tn_value_type_is(tt_type(), NULL));
    assert_false(tn_value_type_is(NULL, NULL));
    assert_true(tn_value_type_is(tt_subtype(), tt_type()));
    assert_false(tn_value_type_is(&t, tt_type())); /* ends */
}

static void value_specs(void **state) {
    tn_value_spec spec = tt_spec(16, 16);

    (void)state;
    assert_status(tn_value_spec_check(NULL), TN_ERR_KIND);
    CHECK_IN(tn_value_spec, &spec, tn_value_spec_check(it));
}

static void payload_measure(void **state) {
    struct spec *f = *state;
    tn_payload v = spec_v(f, P);
    tn_value_type broken = *tt_type();
    tn_measure out = TN_MEASURE_INIT;

    broken.destroy = NULL;
    assert_status(tn_payload_measure(v, NULL), TN_ERR_KIND);
    assert_status(tn_payload_measure((tn_payload){NULL, v.data}, &out), TN_ERR_KIND);
    assert_status(tn_payload_measure((tn_payload){tt_type(), NULL}, &out), TN_ERR_KIND);
    assert_status(tn_payload_measure((tn_payload){NULL, NULL}, &out), TN_ERR_KIND);
    assert_status(tn_payload_measure((tn_payload){&broken, v.data}, &out), TN_ERR_KIND);
    CHECK_OUT(tn_measure, tn_payload_measure(v, it));
    tt_fail_measure(1, TN_ERR_SYSTEM);
    assert_status(tn_payload_measure(v, &out), TN_ERR_SYSTEM);
    assert_int_equal(out.logical_bytes, 0);
    tt_free(v);
}

static void payload_place(void **state) {
    struct spec *f = *state;
    tn_payload v = spec_v(f, P);
    tn_payload out = {NULL, NULL};
    tn_stream s1 = spec_stream(f, 1);
    tn_stream capturing = NULL;
    tt_field fields[] = {TT_DENSE(1, 8), TT_DENSE(1, 8)};
    tn_payload unusable;

    fields[0].at = C0;
    fields[1].at = C1;
    unusable = tt_make(tt_type(), f->driver, C0, fields, 2);
    assert_ok(tn_sim_stream_create(f->sim, 0, TN_SIM_STREAM_CAPTURING, &capturing));

    assert_status(tn_payload_place(f->driver, v, N, NULL, 0, NULL), TN_ERR_KIND);
    assert_status(tn_payload_place(f->driver, (tn_payload){NULL, NULL}, N, NULL, 0, &out),
                  TN_ERR_KIND);
    assert_status(tn_payload_place(f->driver, (tn_payload){tt_type(), NULL}, N, NULL, 0, &out),
                  TN_ERR_KIND);
    assert_status(tn_payload_place(f->driver, v, NOWHERE, NULL, 0, &out), TN_ERR_KIND);
    assert_status(tn_payload_place(f->driver, v, bad_kind, NULL, 0, &out), TN_ERR_KIND);
    assert_status(tn_payload_place(f->driver, v, C2, NULL, 0, &out), TN_ERR_VALUE);
    assert_status(tn_payload_place(NULL, v, C0, NULL, 0, &out), TN_ERR_VALUE);
    assert_status(tn_payload_place(NULL, v, N, NULL, 0, &out), TN_ERR_PAYLOAD);
    assert_status(tn_payload_place(f->driver, v, N, NULL, 2, &out), TN_ERR_VALUE);
    assert_status(tn_payload_place(f->driver, v, P, s1, 0, &out), TN_ERR_VALUE);
    assert_status(tn_payload_place(f->driver, v, C0, s1, 0, &out), TN_ERR_VALUE);
    assert_status(tn_payload_place(f->driver, v, C0, capturing, 0, &out), TN_ERR_VALUE);
    assert_status(tn_payload_place(f->driver, v, C0, TN_STREAM_PER_THREAD, 0, &out), TN_ERR_VALUE);
    assert_status(tn_payload_place(f->driver, v, C0, no_stream, 0, &out), TN_ERR_KIND);
    assert_status(tn_payload_place(f->driver, unusable, P, NULL, 0, &out), TN_ERR_PAYLOAD);
    assert_null(out.data);
    assert_ok(tn_payload_place(NULL, v, P, NULL, TN_PLACE_COPY, &out));
    tn_payload_destroy(out);
    tn_payload_destroy((tn_payload){tt_type(), NULL});
    tn_payload_destroy((tn_payload){NULL, NULL});
    assert_ok(tn_sim_stream_destroy(f->sim, capturing));
    tt_free(unusable);
    tt_free(v);
}

/* The functions lent to `copy`, given nonsense from inside it. */
static struct {
    tn_status alloc_out, alloc_bytes, copy_from, copy_source, copy_destination;
} copier_statuses;

static tn_status nonsense_copy(const void *payload, tn_copier *copier, void **out) {
    void *memory = NULL;
    char byte = 0;

    (void)payload;
    (void)out;
    copier_statuses.alloc_out = tn_copier_alloc(copier, 8, NULL);
    copier_statuses.alloc_bytes = tn_copier_alloc(copier, too_many_bytes, &memory);
    copier_statuses.copy_from = tn_copier_copy(copier, &byte, &byte, bad_kind, 1);
    copier_statuses.copy_source = tn_copier_copy(copier, &byte, NULL, P, 1);
    copier_statuses.copy_destination = tn_copier_copy(copier, NULL, &byte, P, 1);
    tn_copier_free(copier, NULL, 8);
    return TN_OK; /* and nothing was made */
}

static void copier(void **state) {
    struct spec *f = *state;
    static tn_value_type type;
    tn_payload v = spec_v(f, P);
    tn_payload out = {NULL, NULL};
    void *memory = NULL;

    type = *tt_type();
    type.copy = nonsense_copy;
    assert_status(
        tn_payload_place(f->driver, (tn_payload){&type, v.data}, P, NULL, TN_PLACE_COPY, &out),
        TN_ERR_PAYLOAD);
    assert_null(out.data);
    assert_int_equal(copier_statuses.alloc_out, TN_ERR_KIND);
    assert_int_equal(copier_statuses.alloc_bytes, TN_ERR_VALUE);
    assert_int_equal(copier_statuses.copy_from, TN_ERR_KIND);
    assert_int_equal(copier_statuses.copy_source, TN_ERR_KIND);
    assert_int_equal(copier_statuses.copy_destination, TN_ERR_KIND);
    assert_status(tn_copier_alloc(NULL, 8, &memory), TN_ERR_KIND);
    assert_status(tn_copier_copy(NULL, &memory, &memory, P, 1), TN_ERR_KIND);
    tn_copier_free(NULL, &memory, 8);
    assert_at(tn_copier_location(NULL), NOWHERE);
    assert_null(tn_copier_driver(NULL));
    tt_free(v);
}

static void buffers(void **state) {
    struct spec *f = *state;
    const uint64_t bytes[] = {8, 8};
    const uint64_t large[] = {INT64_MAX, 1};
    const uint64_t larger[] = {too_many_bytes};
    tn_buffer *b = NULL;

    assert_status(tn_buffer_create(f->driver, P, NULL, 1, &b), TN_ERR_KIND);
    assert_status(tn_buffer_create(f->driver, P, bytes, 2, NULL), TN_ERR_KIND);
    assert_status(tn_buffer_create(f->driver, P, bytes, 0, &b), TN_ERR_VALUE);
    assert_status(tn_buffer_create(f->driver, NOWHERE, bytes, 2, &b), TN_ERR_KIND);
    assert_status(tn_buffer_create(f->driver, bad_kind, bytes, 2, &b), TN_ERR_KIND);
    assert_status(tn_buffer_create(f->driver, C2, bytes, 2, &b), TN_ERR_VALUE);
    assert_status(tn_buffer_create(NULL, C0, bytes, 2, &b), TN_ERR_VALUE);
    assert_status(tn_buffer_create(NULL, N, bytes, 2, &b), TN_ERR_PAYLOAD);
    assert_status(tn_buffer_create(f->driver, P, large, 2, &b), TN_ERR_VALUE);
    assert_status(tn_buffer_create(f->driver, P, larger, 1, &b), TN_ERR_VALUE);
    assert_status(tn_buffer_create(f->driver, C0, &(uint64_t){UINT64_C(1) << 40}, 1, &b),
                  TN_ERR_DEVICE_MEMORY);
    assert_null(b);

    assert_ok(tn_buffer_create(NULL, P, bytes, 2, &b));
    assert_null(tn_buffer_segment(b, 2).data);
    assert_int_equal(tn_buffer_segment(b, 2).bytes, 0);
    assert_null(tn_buffer_segment(b, SIZE_MAX).data);
    tn_buffer_destroy(b);
    tn_buffer_destroy(NULL);
    assert_int_equal(tn_buffer_segment_count(NULL), 0);
    assert_null(tn_buffer_segment(NULL, 0).data);
    assert_at(tn_buffer_location(NULL), NOWHERE);
    assert_null(tn_buffer_payload(NULL).data);
    assert_ptr_equal(tn_buffer_payload(NULL).type, tn_buffer_type());
}

static const struct CMUnitTest tests[] = {
    SPEC_SERIAL(status_numbers_that_are_none),
    SPEC_SERIAL(errors_say_what_happened),
    SPEC_SERIAL(locations_and_handles),
    SPEC_SERIAL(value_types),
    SPEC_SERIAL(value_specs),
    SPEC_SERIAL(payload_measure),
    SPEC_SERIAL(payload_place),
    SPEC_SERIAL(copier),
    SPEC_SERIAL(buffers),
};

TN_TEST_MAIN("spec.bad_input_values", tests)
