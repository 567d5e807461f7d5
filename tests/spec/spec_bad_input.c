/* SPDX-License-Identifier: MIT */
/*
 * What a program can get wrong in each call of the public headers: NULL and out-of-range
 * arguments, wrong struct sizes, handles and streams that do not belong here, broken files.
 * The functions stand in the order of the headers.
 */
#include "spec_common.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t too_many_bytes = (uint64_t)INT64_MAX + 1;
static const tn_location bad_kind = {17, 0};
static const tn_stream no_stream = (tn_stream)(uintptr_t)0x5eed0;

/* A versioned struct as callers of another version pass it: its member `size` says `size`, and
 * what the library does not know holds `tail`. */
static void *resized(const void *object, size_t ours, size_t size, int tail) {
    unsigned char *copy = malloc(ours + size + sizeof(size_t));

    assert_non_null(copy);
    memset(copy, tail, ours + size + sizeof(size_t));
    memcpy(copy, object, ours);
    memcpy(copy, &size, sizeof(size));
    return copy;
}

/*
 * An input struct: sizes 0, 1 and `size_t` alone are wrong, a larger one is taken when what follows
 * is zero. `call` is an expression with the struct as `it`.
 */
#define CHECK_IN(type, object, call)                                                               \
    do {                                                                                           \
        static const size_t wrong_[] = {0, 1, sizeof(size_t), SIZE_MAX};                           \
        for (size_t i_ = 0; i_ < 4; i_++) {                                                        \
            type *it = resized((object), sizeof(type), 0, 0);                                      \
            memcpy(it, &wrong_[i_], sizeof(size_t));                                               \
            assert_status(call, TN_ERR_KIND);                                                      \
            free(it);                                                                              \
        }                                                                                          \
        type *it = resized((object), sizeof(type), sizeof(type) + 16, 1);                          \
        assert_status(call, TN_ERR_KIND); /* a newer caller's member that we do not know */        \
        free(it);                                                                                  \
        it = resized((object), sizeof(type), sizeof(type) + 16, 0);                                \
        assert_ok(call);                                                                           \
        free(it);                                                                                  \
    } while (0)

/* An output struct: sizes 0 and 1 are wrong; what a newer caller has besides becomes 0, and its
 * size stays. */
#define CHECK_OUT(type, call)                                                                      \
    do {                                                                                           \
        type zero_;                                                                                \
        memset(&zero_, 0, sizeof(zero_));                                                          \
        for (size_t i_ = 0; i_ < 2; i_++) {                                                        \
            type *it = resized(&zero_, sizeof(type), i_, 0);                                       \
            assert_status(call, TN_ERR_KIND);                                                      \
            free(it);                                                                              \
        }                                                                                          \
        type *it = resized(&zero_, sizeof(type), sizeof(type) + 8, 1);                             \
        const unsigned char *bytes_ = (const unsigned char *)it;                                   \
        assert_ok(call);                                                                           \
        assert_int_equal(it->size, sizeof(type) + 8);                                              \
        for (size_t i_ = 0; i_ < 8; i_++)                                                          \
            assert_int_equal(bytes_[sizeof(type) + i_], 0);                                        \
        assert_int_equal(bytes_[sizeof(type) + 8], 1); /* not ours */                              \
        free(it);                                                                                  \
    } while (0)

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

/* ---- manager.h ------------------------------------------------------------------------------- */

static void create(void **state) {
    struct spec *f = *state;
    tn_budget budget = {P, 1};
    tn_config config = spec_config(f);
    tn_manager *m = NULL;

    assert_status(tn_manager_create(NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_create(&config, NULL), TN_ERR_KIND);
    config.mode = 2;
    assert_status(tn_manager_create(&config, &m), TN_ERR_KIND);
    config = spec_config(f);
    config.reaper = 2;
    assert_status(tn_manager_create(&config, &m), TN_ERR_KIND);
    config = spec_config(f);
    config.budget_count = 1;
    assert_status(tn_manager_create(&config, &m), TN_ERR_KIND);
    config.budgets = &budget;
    budget.at = bad_kind;
    assert_status(tn_manager_create(&config, &m), TN_ERR_KIND);
    budget.at = C2;
    assert_status(tn_manager_create(&config, &m), TN_ERR_VALUE);
    budget.at = C0;
    config.driver = NULL; /* no CUDA without a driver */
    assert_status(tn_manager_create(&config, &m), TN_ERR_VALUE);
    assert_null(m);
    config = spec_config(f);
    CHECK_IN(tn_config, &config, ({
                 tn_status status_ = tn_manager_create(it, &m);
                 if (status_ == TN_OK)
                     assert_ok(tn_manager_destroy(m));
                 status_;
             }));
}

static void manager_is_null(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    tn_value_spec spec = tt_spec(32, 32);
    tn_source source = tt_source_of(spec_source(f));
    tn_payload v = spec_v(f, P);
    tn_reservation r = reserve(m, P, 64, "r");
    tn_reservation r2 = {NULL, 0};
    tn_lease lease = {NULL, 0};
    tn_hold held = {NULL, 0};
    tn_snapshot *s = NULL;
    uint64_t n = 0;
    size_t count = 0;

    assert_status(tn_manager_close(NULL, 0), TN_ERR_KIND);
    assert_ok(tn_manager_destroy(NULL));
    assert_int_equal(tn_manager_id(NULL), 0);
    assert_status(tn_manager_state_version(NULL, &n), TN_ERR_KIND);
    assert_status(tn_manager_locations(NULL, NULL, &count), TN_ERR_KIND);
    assert_status(tn_manager_adopt(NULL, v, P, TN_EXCLUSIVE, &h), TN_ERR_KIND);
    assert_status(tn_manager_adopt_reserved(NULL, v, P, TN_EXCLUSIVE, &r, &h), TN_ERR_KIND);
    assert_status(tn_manager_register_source(NULL, &spec, &source, P, &h), TN_ERR_KIND);
    assert_status(tn_manager_ensure(NULL, h, P, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_copy(NULL, h, P, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_move(NULL, h, P, NOWHERE, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_drop(NULL, h, P, NULL), TN_ERR_KIND);
    assert_status(tn_manager_discard(NULL, h, NULL), TN_ERR_KIND);
    assert_status(tn_manager_step(NULL, &n), TN_ERR_KIND);
    assert_status(tn_manager_trace(NULL, NULL, &count), TN_ERR_KIND);
    assert_status(tn_manager_clear_trace(NULL), TN_ERR_KIND);
    assert_status(tn_manager_acquire(NULL, &h, 1, P, NULL, &lease), TN_ERR_KIND);
    assert_status(tn_manager_hold(NULL, &h, 1, P, &held), TN_ERR_KIND);
    assert_status(tn_manager_reserve(NULL, P, 1, "r", &r2), TN_ERR_KIND);
    assert_status(tn_snapshot_take(NULL, &s), TN_ERR_KIND);
    tt_free(v);
}

static void close_and_reads(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 64}, {N, 64});
    tn_handle h = adopt_rep(f, m, P);
    tn_location at[1] = {{9, 9}};
    tn_report reports[2];
    size_t count;

    assert_status(tn_manager_close(m, 4), TN_ERR_VALUE);
    assert_status(tn_manager_close(m, UINT32_MAX), TN_ERR_VALUE);
    assert_int_equal(version(m), 1); /* it is open */
    assert_status(tn_manager_state_version(m, NULL), TN_ERR_KIND);
    assert_status(tn_manager_locations(m, at, NULL), TN_ERR_KIND);
    count = 1;
    assert_status(tn_manager_locations(m, NULL, &count), TN_ERR_KIND);
    assert_ok(tn_manager_locations(m, at, &count)); /* truncated; the real total */
    assert_int_equal(count, 2);
    assert_at(at[0], P);
    count = 0;
    assert_ok(tn_manager_locations(m, NULL, &count));
    assert_int_equal(count, 2);
    assert_ok(tn_manager_step(m, NULL));

    ensure(m, h, N);
    ensure(m, h, N);
    drop(m, h, N);
    assert_status(tn_manager_trace(m, reports, NULL), TN_ERR_KIND);
    count = 2;
    assert_status(tn_manager_trace(m, NULL, &count), TN_ERR_KIND);
    reports[0].size = 0;
    assert_status(tn_manager_trace(m, reports, &count), TN_ERR_KIND);
    reports[0].size = sizeof(reports[0]);
    count = 2;
    assert_ok(tn_manager_trace(m, reports, &count)); /* the oldest that fit */
    assert_int_equal(count, 3);
    assert_int_equal(reports[0].no_op, 0);
    assert_int_equal(reports[1].no_op, 1);
    assert_int_equal(reports[1].action.kind, TN_ACTION_ENSURE);
}

/* Elements of arrays are as large as the first says: an older caller's are shorter. */
static void arrays_of_older_callers(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 64}, {N, 65});
    const size_t size = offsetof(tn_location_info, used_bytes);
    unsigned char *rows = malloc(2 * size + 1);
    tn_snapshot *s = NULL;
    size_t count = 2;
    tn_location_info row;

    assert_non_null(rows);
    memset(rows, 0xee, 2 * size + 1);
    memcpy(rows, &size, sizeof(size));
    assert_ok(tn_snapshot_take(m, &s));
    assert_ok(tn_snapshot_locations(s, (tn_location_info *)(void *)rows, &count));
    assert_int_equal(count, 2);
    for (size_t i = 0; i < 2; i++) {
        memset(&row, 0, sizeof(row));
        memcpy(&row, rows + i * size, size);
        assert_int_equal(row.budget_bytes, 64 + i);
        assert_at(row.at, i == 0 ? P : N);
    }
    assert_int_equal(rows[2 * size], 0xee);
    tn_snapshot_drop(s);
    free(rows);
}

static void adopt(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_payload v = spec_v(f, P);
    tn_value_type broken = *tt_type();
    tn_handle h = {0, 0, NULL};

    broken.measure = NULL;
    assert_status(tn_manager_adopt(m, (tn_payload){NULL, NULL}, P, TN_EXCLUSIVE, &h), TN_ERR_KIND);
    assert_status(tn_manager_adopt(m, (tn_payload){tt_type(), NULL}, P, TN_EXCLUSIVE, &h),
                  TN_ERR_KIND);
    assert_status(tn_manager_adopt(m, (tn_payload){NULL, v.data}, P, TN_EXCLUSIVE, &h),
                  TN_ERR_KIND);
    assert_status(tn_manager_adopt(m, (tn_payload){&broken, v.data}, P, TN_EXCLUSIVE, &h),
                  TN_ERR_KIND);
    assert_status(tn_manager_adopt(m, v, P, TN_EXCLUSIVE, NULL), TN_ERR_KIND);
    assert_status(tn_manager_adopt(m, v, bad_kind, TN_EXCLUSIVE, &h), TN_ERR_KIND);
    assert_status(tn_manager_adopt(m, v, C2, TN_EXCLUSIVE, &h), TN_ERR_VALUE);
    assert_status(tn_manager_adopt(m, v, tn_location_cuda(128), TN_EXCLUSIVE, &h), TN_ERR_VALUE);
    assert_status(tn_manager_adopt(m, v, P, 2, &h), TN_ERR_KIND);
    assert_null(h.type);
    assert_locations(m);
    assert_int_equal(version(m), 0);
    /* A payload that no kind of check before state refuses: also on a closed manager (G16). */
    assert_ok(tn_manager_close(m, 0));
    assert_status(tn_manager_adopt(m, (tn_payload){NULL, NULL}, P, TN_EXCLUSIVE, &h), TN_ERR_KIND);
    assert_status(tn_manager_adopt(m, v, P, TN_EXCLUSIVE, &h), TN_ERR_CLOSED);
    tt_free(v);
}

static void adopt_reserved(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 64}, {N, 64});
    tn_manager *other = MANAGER(f);
    tn_payload v = spec_v(f, P);
    tn_reservation none = {NULL, 0};
    tn_reservation small = reserve(m, P, 31, "small");
    tn_reservation elsewhere = reserve(m, N, 64, "elsewhere");
    tn_reservation foreign = reserve(other, P, 64, "foreign");
    tn_reservation ended = reserve(m, P, 33, "ended");
    tn_reservation good;
    tn_handle h = {0, 0, NULL};

    release_reservation(&ended);
    assert_status(tn_manager_adopt_reserved(m, v, P, TN_EXCLUSIVE, NULL, &h), TN_ERR_KIND);
    assert_status(tn_manager_adopt_reserved(m, v, P, TN_EXCLUSIVE, &small, NULL), TN_ERR_KIND);
    assert_status(tn_manager_adopt_reserved(m, v, P, TN_EXCLUSIVE, &none, &h),
                  TN_ERR_LIFETIME_CLOSED);
    assert_status(tn_manager_adopt_reserved(m, v, P, TN_EXCLUSIVE, &ended, &h),
                  TN_ERR_LIFETIME_CLOSED);
    assert_status(tn_manager_adopt_reserved(m, v, P, TN_EXCLUSIVE, &small, &h), TN_ERR_BUDGET);
    assert_status(tn_manager_adopt_reserved(m, v, P, TN_EXCLUSIVE, &elsewhere, &h), TN_ERR_VALUE);
    assert_status(tn_manager_adopt_reserved(m, v, P, TN_EXCLUSIVE, &foreign, &h), TN_ERR_VALUE);
    assert_status(tn_manager_adopt_reserved(m, v, P, 2, &small, &h), TN_ERR_KIND);
    assert_status(
        tn_manager_adopt_reserved(m, (tn_payload){NULL, NULL}, P, TN_EXCLUSIVE, &small, &h),
        TN_ERR_KIND);
    assert_status(tn_manager_adopt_reserved(m, v, N, TN_EXCLUSIVE, &elsewhere, &h),
                  TN_ERR_MATERIALIZATION);
    assert_null(h.type);
    assert_int_equal(used(m, P), 0);
    assert_int_equal(reserved(m, P), 31);

    /* What it is for: the total does not change, the rest stays reserved. */
    release_reservation(&small);
    good = reserve(m, P, 60, "good");
    assert_ok(tn_manager_adopt_reserved(m, v, P, TN_EXCLUSIVE, &good, &h));
    assert_int_equal(used(m, P), 32);
    assert_int_equal(reserved(m, P), 28);
    assert_peaks(m, P, 32, 64); /* 31 + 33 before */
    assert_true(tn_reservation_active(&good));
    release_reservation(&good);
    assert_int_equal(used(m, P), 32);
    assert_int_equal(reserved(m, P), 0);
}

static void register_source(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *s = spec_source(f);
    tn_value_spec spec = tt_spec(32, 32);
    tn_source source = tt_source_of(s);
    tn_source bad;
    tn_handle h = {0, 0, NULL};

    assert_status(tn_manager_register_source(m, NULL, &source, P, &h), TN_ERR_KIND);
    assert_status(tn_manager_register_source(m, &spec, NULL, P, &h), TN_ERR_KIND);
    assert_status(tn_manager_register_source(m, &spec, &source, P, NULL), TN_ERR_KIND);
    assert_status(tn_manager_register_source(m, &spec, &source, bad_kind, &h), TN_ERR_KIND);
    assert_status(tn_manager_register_source(m, &spec, &source, C2, &h), TN_ERR_VALUE);
    bad = source;
    bad.kind = 0;
    assert_status(tn_manager_register_source(m, &spec, &bad, P, &h), TN_ERR_KIND);
    bad.kind = 3;
    assert_status(tn_manager_register_source(m, &spec, &bad, P, &h), TN_ERR_KIND);
    spec.storage_bytes = 31;
    assert_status(tn_manager_register_source(m, &spec, &source, P, &h), TN_ERR_VALUE);
    spec = tt_spec(32, too_many_bytes);
    assert_status(tn_manager_register_source(m, &spec, &source, P, &h), TN_ERR_VALUE);
    spec = tt_spec(32, 32);
    spec.replica_mode = 2;
    assert_status(tn_manager_register_source(m, &spec, &source, P, &h), TN_ERR_KIND);
    spec = tt_spec(32, 32);
    assert_null(h.type);
    assert_locations(m);
    assert_int_equal(s->forgotten, 0); /* a refused source stays the caller's */
    CHECK_IN(tn_value_spec, &spec, tn_manager_register_source(m, it, &source, P, &h));
    CHECK_IN(tn_source, &source, tn_manager_register_source(m, &spec, it, P, &h));
    assert_ok(tn_manager_close(m, 0));
    assert_status(tn_manager_register_source(m, NULL, &source, P, &h), TN_ERR_KIND);
    assert_status(tn_manager_register_source(m, &spec, &source, P, &h), TN_ERR_CLOSED);
}

static void file_sources(void **state) {
    static char long_path[4200];
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    const uint64_t segments[] = {16, 15};
    const uint64_t wrapped[] = {UINT64_MAX, 33};
    tn_value_spec spec = tt_spec(32, 32);
    tn_source source = TN_SOURCE_INIT;
    tn_handle h = {0, 0, NULL};

    spec.type = tn_buffer_type();
    source.kind = TN_SOURCE_FILE;
    assert_status(tn_manager_register_source(m, &spec, &source, P, &h), TN_ERR_KIND); /* no path */
    source.path = "";
    assert_status(tn_manager_register_source(m, &spec, &source, P, &h), TN_ERR_VALUE);
    memset(long_path, 'x', sizeof(long_path) - 1);
    source.path = long_path;
    assert_status(tn_manager_register_source(m, &spec, &source, P, &h), TN_ERR_VALUE);
    source.path = "/nowhere";
    source.flags = 2;
    assert_status(tn_manager_register_source(m, &spec, &source, P, &h), TN_ERR_VALUE);
    source.flags = 0;
    source.segment_count = 2;
    assert_status(tn_manager_register_source(m, &spec, &source, P, &h), TN_ERR_KIND);
    source.segment_bytes = segments; /* do not sum up to 32 */
    assert_status(tn_manager_register_source(m, &spec, &source, P, &h), TN_ERR_VALUE);
    source.segment_bytes = wrapped;
    assert_status(tn_manager_register_source(m, &spec, &source, P, &h), TN_ERR_VALUE);
    source.segment_count = 0;
    spec.type = tt_type(); /* files give buffers */
    assert_status(tn_manager_register_source(m, &spec, &source, P, &h), TN_ERR_KIND);
    assert_null(h.type);
    assert_locations(m);
}

static void handles(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_manager *other = MANAGER(f);
    tn_handle good = adopt_rep(f, m, P);
    tn_handle gone = adopt_rep(f, m, P);
    tn_handle kinds[4];
    static const uint32_t causes[] = {TN_HANDLE_FOREIGN, TN_HANDLE_UNKNOWN, TN_HANDLE_DISCARDED,
                                      TN_HANDLE_UNKNOWN};
    tn_lease lease = {NULL, 0};
    tn_hold held = {NULL, 0};

    discard(m, gone);
    kinds[0] = adopt_rep(f, other, P);
    kinds[1] = (tn_handle){good.manager, 999, good.type};
    kinds[2] = gone;
    kinds[3] = (tn_handle){good.manager, good.index, tt_other_type()};
    for (size_t i = 0; i < 4; i++) {
        tn_handle list[2] = {good, kinds[i]};

        assert_handle_error(tn_manager_ensure(m, kinds[i], N, NULL, NULL), causes[i]);
        assert_handle(tn_last_error()->handle, kinds[i]);
        assert_handle_error(tn_manager_copy(m, kinds[i], N, NULL, NULL), causes[i]);
        assert_handle_error(tn_manager_move(m, kinds[i], N, NOWHERE, NULL, NULL), causes[i]);
        assert_handle_error(tn_manager_drop(m, kinds[i], P, NULL), causes[i]);
        assert_handle_error(tn_manager_discard(m, kinds[i], NULL), causes[i]);
        assert_handle_error(tn_manager_acquire(m, list, 2, P, NULL, &lease), causes[i]);
        assert_handle(tn_last_error()->handle, kinds[i]);
        assert_handle_error(tn_manager_hold(m, list, 2, P, &held), causes[i]);
        assert_int_equal(mat(m, good, P).use_count, 0);
        assert_int_equal(mat(m, good, P).hold_count, 0);
    }
    assert_locations(m, P);
    assert_int_equal(trace_count(m), 1);
}

static void action_arguments(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    char *before = spec_describe(m, 0);

    assert_status(tn_manager_ensure(m, h, NOWHERE, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_ensure(m, h, bad_kind, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_copy(m, h, bad_kind, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_ensure(m, h, tn_location_cuda(128), NULL, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_move(m, h, NOWHERE, NOWHERE, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_move(m, h, bad_kind, NOWHERE, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_move(m, h, N, bad_kind, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_move(m, h, N, C2, NULL, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_drop(m, h, NOWHERE, NULL), TN_ERR_KIND);
    assert_status(tn_manager_drop(m, h, bad_kind, NULL), TN_ERR_KIND);
    assert_unchanged(m, before, 0);
    /* What is no location is refused before a closed manager is noticed (M251). */
    assert_ok(tn_manager_close(m, 0));
    assert_status(tn_manager_ensure(m, h, bad_kind, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_move(m, h, N, bad_kind, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_drop(m, h, bad_kind, NULL), TN_ERR_KIND);
    assert_status(tn_manager_ensure(m, h, N, NULL, NULL), TN_ERR_CLOSED);
    assert_status(tn_manager_copy(m, h, N, NULL, NULL), TN_ERR_CLOSED);
    assert_status(tn_manager_move(m, h, N, NOWHERE, NULL, NULL), TN_ERR_CLOSED);
    assert_status(tn_manager_drop(m, h, P, NULL), TN_ERR_CLOSED);
    assert_status(tn_manager_discard(m, h, NULL), TN_ERR_CLOSED);
}

static void report_sizes(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    tn_report wrong = TN_REPORT_INIT;

    CHECK_OUT(tn_report, tn_manager_ensure(m, h, N, NULL, it));
    CHECK_OUT(tn_report, tn_manager_copy(m, h, N, NULL, it));
    CHECK_OUT(tn_report, tn_manager_move(m, h, N, NOWHERE, NULL, it));
    CHECK_OUT(tn_report, tn_manager_drop(m, h, P, it));
    /* Nothing was done for a report that cannot be written. */
    wrong.size = 1;
    assert_status(tn_manager_ensure(m, h, C0, NULL, &wrong), TN_ERR_KIND);
    assert_status(tn_manager_discard(m, h, &wrong), TN_ERR_KIND);
    assert_replicas(m, h, N);
    CHECK_OUT(tn_report, ({
                  tn_handle one_ = adopt_rep(f, m, P);
                  tn_status status_ = tn_manager_discard(m, one_, it);
                  if (status_ != TN_OK)
                      discard(m, one_);
                  status_;
              }));
}

static void transfer_streams(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    tn_stream s1 = spec_stream(f, 1);
    tn_stream capturing = NULL;
    tn_stream other_context = NULL;
    char *before = spec_describe(m, 0);

    assert_ok(tn_sim_stream_create(f->sim, 0, TN_SIM_STREAM_CAPTURING, &capturing));
    assert_status(tn_manager_ensure(m, h, C0, capturing, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_move(m, h, C0, NOWHERE, capturing, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_ensure(m, h, C0, TN_STREAM_PER_THREAD, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_move(m, h, C0, NOWHERE, TN_STREAM_PER_THREAD, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_ensure(m, h, C0, s1, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_ensure(m, h, C0, no_stream, NULL), TN_ERR_KIND);
    assert_status(tn_manager_ensure(m, h, N, s1, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_ensure(m, h, N, TN_STREAM_PER_THREAD, NULL), TN_ERR_VALUE);
    assert_unchanged(m, before, 0);
    assert_ok(tn_sim_stream_destroy(f->sim, capturing));
    /* The default stream, and one of a second context, are streams like others. */
    assert_ok(tn_manager_ensure(m, h, C0, TN_STREAM_LEGACY, NULL));
    assert_ok(tn_sim_stream_create(f->sim, 1, TN_SIM_STREAM_SECOND_CONTEXT, &other_context));
    assert_ok(tn_manager_ensure(m, h, C1, other_context, NULL));
    assert_ok(tn_sim_stream_destroy(f->sim, other_context));
}

/* A manager without a driver: pageable host memory only. */
static void no_driver(void **state) {
    struct spec *f = *state;
    tn_driver *driver = f->driver;
    tn_manager *m;
    tn_handle h;
    tn_handle other = {0, 0, NULL};
    tn_lease lease = {NULL, 0};
    tn_hold held = {NULL, 0};
    tn_payload pinned;
    tn_stream s = spec_stream(f, 0);

    f->driver = NULL;
    m = MANAGER(f);
    h = adopt_rep(f, m, P);
    assert_status(tn_manager_ensure(m, h, C0, NULL, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_ensure(m, h, C0, s, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_move(m, h, C0, NOWHERE, NULL, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_drop(m, h, C0, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_acquire(m, &h, 1, C0, s, &lease), TN_ERR_VALUE);
    assert_status(tn_manager_hold(m, &h, 1, C0, &held), TN_ERR_VALUE);
    assert_status(tn_manager_ensure(m, h, N, NULL, NULL), TN_ERR_PAYLOAD);
    f->driver = driver;
    pinned = spec_v(f, C0);
    assert_status(tn_manager_adopt(m, pinned, C0, TN_EXCLUSIVE, &other), TN_ERR_VALUE);
    assert_status(tn_manager_adopt(m, pinned, NOWHERE, TN_EXCLUSIVE, &other), TN_ERR_VALUE);
    tt_free(pinned);
    assert_locations(m, P);
    lease = acquire(m, h, P, NULL);
    release(&lease);
    discard(m, h);
}

/* ---- Files that are missing, short, corrupt, unreadable -------------------------------------- */

static tn_handle register_file(tn_manager *m, const char *path, uint64_t offset,
                               const uint64_t *checksum) {
    tn_source source = TN_SOURCE_INIT;
    tn_value_spec spec = tt_spec(32, 32);
    tn_handle h = {0, 0, NULL};

    spec.type = tn_buffer_type();
    source.kind = TN_SOURCE_FILE;
    source.path = path;
    source.offset = offset;
    if (checksum != NULL) {
        source.flags = TN_SOURCE_CHECKSUM;
        source.checksum = *checksum;
    }
    assert_ok(tn_manager_register_source(m, &spec, &source, P, &h));
    return h;
}

static void write_zeros(const char *path, size_t count) {
    FILE *o = fopen(path, "wb");

    assert_non_null(o);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(fputc(0, o), 0);
    assert_int_equal(fclose(o), 0);
}

/* XXH3 (64 bits) of 32 zero bytes. */
static const uint64_t zeros_hash = UINT64_C(0xa057271c9071c99d);

static void broken_files(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 64}, {C0, 64});
    const char *folder = tn_test_tmpdir();
    uint64_t wrong_hash = zeros_hash ^ 1;
    char path[4096];
    char inside[4200];
    tn_handle h;
    tn_handle summed;

    snprintf(path, sizeof(path), "%s/value", folder);
    h = register_file(m, path, 0, NULL);
    for (int i = 0; i < 2; i++) {
        tn_location to = i == 0 ? P : C0;

        assert_status(tn_manager_ensure(m, h, to, NULL, NULL), TN_ERR_SOURCE);
        assert_int_equal(tn_last_error()->native_code, ENOENT);
        assert_non_null(strstr(tn_last_error()->message, "value"));
        write_zeros(path, 31);
        assert_status(tn_manager_ensure(m, h, to, NULL, NULL), TN_ERR_MATERIALIZATION);
        assert_int_equal(tn_last_error()->expected, 32);
        assert_int_equal(tn_last_error()->actual, 31);
        write_zeros(path, 0);
        assert_status(tn_manager_ensure(m, h, to, NULL, NULL), TN_ERR_MATERIALIZATION);
        assert_int_equal(unlink(path), 0);
    }
    write_zeros(path, 40);
    summed = register_file(m, path, 8, &wrong_hash);
    assert_status(tn_manager_ensure(m, summed, P, NULL, NULL), TN_ERR_MATERIALIZATION);
    assert_status(tn_manager_ensure(m, summed, C0, NULL, NULL), TN_ERR_MATERIALIZATION);
    discard(m, summed);
    summed = register_file(m, path, 9, NULL); /* ends one byte late */
    assert_status(tn_manager_ensure(m, summed, P, NULL, NULL), TN_ERR_MATERIALIZATION);
    discard(m, summed);
    summed = register_file(m, path, UINT64_C(1) << 40, NULL);
    assert_status(tn_manager_ensure(m, summed, P, NULL, NULL), TN_ERR_MATERIALIZATION);
    discard(m, summed);

    summed = register_file(m, folder, 0, NULL); /* a folder */
    assert_status(tn_manager_ensure(m, summed, P, NULL, NULL), TN_ERR_SOURCE);
    assert_int_equal(tn_last_error()->native_code, EISDIR);
    discard(m, summed);
    snprintf(inside, sizeof(inside), "%s/value", path); /* inside a file */
    summed = register_file(m, inside, 0, NULL);
    assert_status(tn_manager_ensure(m, summed, P, NULL, NULL), TN_ERR_SOURCE);
    assert_int_equal(tn_last_error()->native_code, ENOTDIR);
    discard(m, summed);

    assert_int_equal(used(m, P), 0);
    assert_int_equal(reserved(m, P), 0);
    assert_int_equal(used(m, C0), 0);
    assert_peaks(m, P, 0, 32);
    ensure(m, h, P); /* nothing was lost */
    summed = register_file(m, path, 8, &zeros_hash);
    ensure(m, summed, C0);
}

static void unreadable_folder(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    char folder[4096];
    char path[4200];
    tn_handle h;
    const bool root = geteuid() == 0; /* who reads unreadable folders: become nobody for the load */
    tn_status status;

    snprintf(folder, sizeof(folder), "%s/closed", tn_test_tmpdir());
    snprintf(path, sizeof(path), "%s/value", folder);
    assert_int_equal(mkdir(folder, 0), 0);
    h = register_file(m, path, 0, NULL);
    if (root && seteuid(65534) != 0)
        TN_SKIP("root cannot become nobody here");
    status = tn_manager_ensure(m, h, P, NULL, NULL);
    if (root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(folder, 0700), 0);
    assert_status(status, TN_ERR_SOURCE);
    assert_int_equal(tn_last_error()->native_code, EACCES);
    assert_int_equal(reserved(m, P), 0);
}

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

/* ---- driver.h -------------------------------------------------------------------------------- */

static void driver_tables(void **state) {
    struct spec *f = *state;
    tn_driver_ops ops = *tn_driver_table(f->driver);
    void *self = tn_driver_self(f->driver);
    tn_driver *d = NULL;

    assert_status(tn_driver_create(NULL, self, &d), TN_ERR_KIND);
    assert_status(tn_driver_create(&ops, self, NULL), TN_ERR_KIND);
    ops.size = 0;
    assert_status(tn_driver_create(&ops, self, &d), TN_ERR_KIND);
    ops.size = sizeof(ops) - 1;
    assert_status(tn_driver_create(&ops, self, &d), TN_ERR_KIND);
    ops = *tn_driver_table(f->driver);
    ops.abi = TN_DRIVER_ABI + 1;
    assert_status(tn_driver_create(&ops, self, &d), TN_ERR_UNSUPPORTED);
#define REQUIRED(entry)                                                                            \
    ops = *tn_driver_table(f->driver);                                                             \
    ops.entry = NULL;                                                                              \
    assert_status(tn_driver_create(&ops, self, &d), TN_ERR_KIND)
    REQUIRED(name);
    REQUIRED(device_count);
    REQUIRED(device_alloc);
    REQUIRED(device_free);
    REQUIRED(pinned_alloc);
    REQUIRED(pinned_free);
    REQUIRED(stream_create);
    REQUIRED(stream_destroy);
    REQUIRED(stream_info);
    REQUIRED(stream_synchronize);
    REQUIRED(stream_wait);
    REQUIRED(event_create);
    REQUIRED(event_destroy);
    REQUIRED(event_record);
    REQUIRED(event_query);
    REQUIRED(event_synchronize);
    REQUIRED(copy);
    REQUIRED(device_synchronize);
    assert_null(d);
    ops = *tn_driver_table(f->driver);
    ops.capabilities = NULL;
    ops.last_code = NULL;
    ops.host_function = NULL;
    ops.device_memory = NULL;
    ops.pointer_location = NULL;
    assert_ok(tn_driver_create(&ops, self, &d));
    tn_driver_destroy(d);
    tn_driver_destroy(NULL);
    assert_string_equal(tn_driver_name(NULL), "none");
    assert_null(tn_driver_table(NULL));
    assert_null(tn_driver_self(NULL));
    assert_status(tn_driver_open_cuda(NULL), TN_ERR_KIND);
    assert_non_null(tn_driver_why());
}

/* What an optional entry would have told is absent. */
static void driver_without_optional_entries(void **state) {
    struct spec *f = *state;
    static tn_driver_ops ops;
    tn_config config = spec_config(f);
    tn_driver *d = NULL;
    tn_manager *m;
    tn_handle h;
    tn_report r;

    ops = *tn_driver_table(f->driver);
    ops.capabilities = NULL;
    ops.last_code = NULL;
    ops.host_function = NULL;
    ops.device_memory = NULL;
    ops.pointer_location = NULL;
    assert_ok(tn_driver_create(&ops, tn_driver_self(f->driver), &d));
    config.driver = d;
    m = spec_manager_with(f, &config);
    h = adopt_rep(f, m, P);
    r = ensure(m, h, C0);
    assert_at(r.allocator, C0); /* named all the same (M92) */
    assert_true(r.allocated_bytes_before == TN_READING_ABSENT);
    assert_true(r.held_bytes_after == TN_READING_ABSENT);
    assert_true(loc(m, C0).allocated_bytes == TN_READING_ABSENT);
    ensure(m, h, N);
    spec_destroy(f, m);
    tn_driver_destroy(d);
}

static void memory(void **state) {
    struct spec *f = *state;
    void *block = NULL;

    assert_status(tn_memory_alloc(f->driver, P, 8, NULL), TN_ERR_KIND);
    assert_status(tn_memory_alloc(f->driver, NOWHERE, 8, &block), TN_ERR_KIND);
    assert_status(tn_memory_alloc(f->driver, bad_kind, 8, &block), TN_ERR_KIND);
    assert_status(tn_memory_alloc(f->driver, C2, 8, &block), TN_ERR_VALUE);
    assert_status(tn_memory_alloc(NULL, C0, 8, &block), TN_ERR_VALUE);
    assert_status(tn_memory_alloc(NULL, N, 8, &block), TN_ERR_PAYLOAD);
    assert_status(tn_memory_alloc(f->driver, P, too_many_bytes, &block), TN_ERR_VALUE);
    assert_status(tn_memory_alloc(f->driver, C0, INT64_MAX, &block), TN_ERR_DEVICE_MEMORY);
    assert_null(block);
    block = f;
    assert_ok(tn_memory_alloc(f->driver, C0, 0, &block));
    assert_null(block);
    assert_status(tn_memory_free(f->driver, C0, NULL, 8), TN_OK);
    assert_status(tn_memory_free(NULL, bad_kind, NULL, 8), TN_OK);
    assert_ok(tn_memory_alloc(f->driver, C0, 8, &block));
    assert_status(tn_memory_free(f->driver, bad_kind, block, 8), TN_ERR_KIND);
    assert_status(tn_memory_free(NULL, C0, block, 8), TN_ERR_KIND);
    assert_ok(tn_memory_free(f->driver, C0, block, 8));
}

/* ---- sim.h ----------------------------------------------------------------------------------- */

static void refuse_machine(const char *text, uint64_t column) {
    tn_sim *sim = NULL;
    tn_status status = tn_sim_create(text, &sim);

    if (status != TN_ERR_VALUE || tn_last_error()->actual != column)
        print_error("machine '%s':\n", text);
    assert_status(status, TN_ERR_VALUE);
    assert_null(sim);
    assert_int_equal(tn_last_error()->actual, column);
    assert_true(strlen(tn_last_error()->message) > 0);
}

static void machine_strings(void **state) {
    tn_sim *sim = NULL;

    (void)state;
    assert_status(tn_sim_create("dev:2", NULL), TN_ERR_KIND);
    refuse_machine("dev", 1);
    refuse_machine("dev:", 5);
    refuse_machine("dev:x", 5);
    refuse_machine("dev:2x", 6);
    refuse_machine("dev:129", 5);
    refuse_machine("dev:99999999999999999999", 5);
    refuse_machine("dev:-1", 5);
    refuse_machine(" dev:2", 1);
    refuse_machine("dev:2 ", 7);
    refuse_machine("dev:2 dev:2", 7);
    refuse_machine("dev:2 mem=", 11);
    refuse_machine("dev:2 mem=64mib", 13);
    refuse_machine("dev:2 mem=99999999TiB", 11);
    refuse_machine("mem=1.5GiB", 6);
    refuse_machine("link=nowhere:1GBps", 6);
    refuse_machine("link=host:12", 13);
    refuse_machine("link=host:12 GBps", 13);
    refuse_machine("link=host:0GBps", 11);
    refuse_machine("latency=2", 10);
    refuse_machine("latency=2us\tdev:2", 10);
    refuse_machine("clock=real", 7);
    refuse_machine("nonsense", 1);
    assert_ok(tn_sim_create(NULL, &sim));
    tn_sim_destroy(sim);
    assert_ok(tn_sim_create("", &sim));
    tn_sim_destroy(sim);
    tn_sim_destroy(NULL);
    assert_null(tn_sim_driver(NULL));
}

static void simulator_arguments(void **state) {
    struct spec *f = *state;
    tn_sim *sim = f->sim;
    tn_sim_fault fault = TN_SIM_FAULT_INIT;
    tn_sim_memory figures = {.size = sizeof(figures)};
    tn_stream s = NULL;

    assert_status(tn_sim_set_waits(sim, 2), TN_ERR_KIND);
    assert_status(tn_sim_set_state(sim, TN_SIM_FAKE_PINNED + 1), TN_ERR_KIND);
    assert_status(tn_sim_set_host_calls(sim, 2), TN_ERR_KIND);
    assert_status(tn_sim_stream_create(NULL, 0, 0, &s), TN_ERR_KIND);
    assert_status(tn_sim_stream_create(sim, 0, 0, NULL), TN_ERR_KIND);
    assert_status(tn_sim_stream_create(sim, 2, 0, &s), TN_ERR_VALUE);
    assert_status(tn_sim_stream_create(sim, 0, 4, &s), TN_ERR_VALUE);
    assert_null(s);
    s = spec_stream(f, 0);
    assert_int_not_equal(tn_sim_stream_destroy(sim, no_stream), TN_OK);
    assert_int_not_equal(tn_sim_queue_delay(sim, no_stream, 1), TN_OK);
    assert_int_not_equal(tn_sim_queue_read(sim, no_stream, NULL, 0, 1), TN_OK);
    assert_int_not_equal(tn_sim_queue_write(sim, no_stream, NULL, 0, 0, 1), TN_OK);
    assert_status(tn_sim_fault_arm(sim, NULL), TN_ERR_KIND);
    fault.entry = TN_SIM_ENTRY_COUNT;
    assert_status(tn_sim_fault_arm(sim, &fault), TN_ERR_KIND);
    fault.entry = TN_SIM_COPY;
    fault.reserved0 = 1;
    assert_status(tn_sim_fault_arm(sim, &fault), TN_ERR_KIND);
    fault.reserved0 = 0;
    CHECK_IN(tn_sim_fault, &fault, tn_sim_fault_arm(sim, it));
    tn_sim_fault_clear(sim);
    assert_status(tn_sim_read_memory(sim, C0, NULL), TN_ERR_KIND);
    assert_status(tn_sim_read_memory(sim, P, &figures), TN_ERR_VALUE);
    assert_status(tn_sim_read_memory(sim, C2, &figures), TN_ERR_VALUE);
    assert_status(tn_sim_read_memory(sim, bad_kind, &figures), TN_ERR_KIND);
    CHECK_OUT(tn_sim_memory, tn_sim_read_memory(sim, C0, it));
    assert_status(tn_sim_read_traffic(sim, P, C0, NULL), TN_ERR_KIND);
    CHECK_OUT(tn_sim_traffic, tn_sim_read_traffic(sim, P, C0, it));
    assert_status(
        tn_sim_read_traffic(sim, P, C2, &(tn_sim_traffic){.size = sizeof(tn_sim_traffic)}),
        TN_ERR_VALUE);
    assert_status(
        tn_sim_read_traffic(sim, bad_kind, C0, &(tn_sim_traffic){.size = sizeof(tn_sim_traffic)}),
        TN_ERR_KIND);
    assert_int_equal(tn_sim_calls(sim, TN_SIM_ENTRY_COUNT), 0);
}

static void simulator_is_null(void **state) {
    tn_sim_fault fault = TN_SIM_FAULT_INIT;
    tn_sim_memory figures = {.size = sizeof(figures)};
    tn_sim_traffic traffic = {.size = sizeof(traffic)};

    (void)state;
    assert_status(tn_sim_advance(NULL, 1), TN_ERR_KIND);
    assert_status(tn_sim_run(NULL), TN_ERR_KIND);
    assert_status(tn_sim_set_waits(NULL, 0), TN_ERR_KIND);
    assert_status(tn_sim_set_state(NULL, 0), TN_ERR_KIND);
    assert_status(tn_sim_set_host_calls(NULL, 0), TN_ERR_KIND);
    assert_status(tn_sim_stream_destroy(NULL, no_stream), TN_ERR_KIND);
    assert_status(tn_sim_queue_delay(NULL, no_stream, 1), TN_ERR_KIND);
    assert_status(tn_sim_queue_read(NULL, no_stream, NULL, 0, 1), TN_ERR_KIND);
    assert_status(tn_sim_queue_write(NULL, no_stream, NULL, 0, 0, 1), TN_ERR_KIND);
    assert_status(tn_sim_fault_arm(NULL, &fault), TN_ERR_KIND);
    assert_status(tn_sim_read_memory(NULL, C0, &figures), TN_ERR_KIND);
    assert_status(tn_sim_read_traffic(NULL, P, C0, &traffic), TN_ERR_KIND);
}

static void threaded_clock_is_not_stepped(void **state) {
    struct spec *f = *state;

    spec_machine(f, "dev:1 clock=threads");
    assert_status(tn_sim_advance(f->sim, 1), TN_ERR_MISUSE);
    assert_status(tn_sim_run(f->sim), TN_ERR_MISUSE);
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
    SPEC_SERIAL(create),
    SPEC_BOTH(manager_is_null),
    SPEC_BOTH(close_and_reads),
    SPEC_SERIAL(arrays_of_older_callers),
    SPEC_BOTH(adopt),
    SPEC_BOTH(adopt_reserved),
    SPEC_BOTH(register_source),
    SPEC_BOTH(file_sources),
    SPEC_BOTH(handles),
    SPEC_BOTH(action_arguments),
    SPEC_BOTH(report_sizes),
    SPEC_BOTH(transfer_streams),
    SPEC_BOTH(no_driver),
    SPEC_BOTH(broken_files),
    SPEC_BOTH(unreadable_folder),
    SPEC_BOTH(lease_arguments),
    SPEC_BOTH(lifetimes_null_none_and_ended),
    SPEC_BOTH(stale_lifetimes_touch_nothing),
    SPEC_BOTH(consumer_streams),
    SPEC_BOTH(reserve_arguments),
    SPEC_BOTH(snapshots),
    SPEC_SERIAL(driver_tables),
    SPEC_BOTH(driver_without_optional_entries),
    SPEC_SERIAL(memory),
    SPEC_SERIAL(machine_strings),
    SPEC_SERIAL(simulator_arguments),
    SPEC_SERIAL(simulator_is_null),
    SPEC_SERIAL(threaded_clock_is_not_stepped),
};

TN_TEST_MAIN("spec.bad_input", tests)
