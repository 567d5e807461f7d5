/* SPDX-License-Identifier: MIT */
/* Functional movement and whole programs: cases MC177..MC181. */
#include <errno.h>
#include <stdio.h>

#include "spec_common.h"

static tn_payload place(struct spec *f, tn_payload payload, tn_location to, uint32_t flags) {
    tn_payload out = {NULL, NULL};

    assert_ok(tn_payload_place(f->driver, payload, to, NULL, flags, &out));
    assert_ptr_equal(out.type, payload.type);
    return out;
}

static tn_measure measured(tn_payload payload) {
    tn_measure measure = TN_MEASURE_INIT;

    assert_ok(tn_payload_measure(payload, &measure));
    return measure;
}

/* A payload of two fields, 32 + 24 bytes, with contents and metadata. */
static tn_payload two_fields(struct spec *f, tn_location at) {
    tt_field fields[] = {TT_DENSE(4, 8), TT_DENSE(6, 4)};
    tn_payload payload = tt_make(tt_type(), f->driver, at, fields, 2);

    tt_fill(payload, 9);
    tt_set_tag(payload, 1234);
    return payload;
}

/* Another value with independent fields, equal contents, equal metadata. */
static void assert_copy(tn_payload copy, tn_payload original, tn_location at) {
    assert_ptr_not_equal(copy.data, original.data);
    assert_int_equal(tt_field_count(copy.data), 2);
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < 2; j++)
            assert_ptr_not_equal(tt_field_base(copy.data, i), tt_field_base(original.data, j));
    assert_true(tt_check(copy.data, 9));
    assert_true(tt_check(original.data, 9));
    assert_int_equal(tt_tag(copy.data), 1234);
    assert_int_equal(measured(copy).logical_bytes, measured(original).logical_bytes);
    assert_at(measured(copy).at, at);
}

static void mc177_movement_to_the_same_device(void **state) {
    struct spec *f = *state;
    const tn_location where[] = {P, N, C0, C1};

    for (size_t i = 0; i < 4; i++) {
        tn_payload payload = two_fields(f, where[i]);
        tn_payload same = place(f, payload, where[i], 0);
        tn_payload copy = place(f, payload, where[i], TN_PLACE_COPY);

        assert_ptr_equal(same.data, payload.data);
        assert_copy(copy, payload, where[i]);
        assert_int_equal(measured(payload).logical_bytes, 32 + 24);
        assert_int_equal(measured(payload).storage_bytes, 32 + 24);
        tt_fill(copy, 10); /* the source does not change with it */
        assert_true(tt_check(payload.data, 9));
        tt_free(payload);
        assert_true(tt_check(copy.data, 10));
        tt_free(copy);
    }
}

static void mc177_movement_between_all_locations(void **state) {
    struct spec *f = *state;
    const tn_location where[] = {P, N, C0, C1};
    tn_stream s = spec_stream(f, 1);

    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < 4; j++) {
            tn_payload payload = two_fields(f, where[i]);
            tn_payload copy = place(f, payload, where[j], TN_PLACE_COPY);

            assert_copy(copy, payload, where[j]);
            tt_free(copy);
            if (i != j && j == 3) {
                assert_ok(tn_payload_place(f->driver, payload, C1, s, 0, &copy));
                assert_copy(copy, payload, C1);
                tt_free(copy);
            }
            tt_free(payload);
        }
}

/* A view becomes compact: less storage, never fewer logical bytes (M30). */
static void mc177_copy_of_a_view_is_compact(void **state) {
    struct spec *f = *state;
    tt_field view = TT_VIEW(4, 8, 2, 64);
    tn_payload payload = tt_make(tt_type(), f->driver, P, &view, 1);
    tn_payload copy;

    tt_fill(payload, 2);
    copy = place(f, payload, C0, 0);
    assert_int_equal(measured(copy).logical_bytes, 32);
    assert_true(measured(copy).storage_bytes <= 64);
    assert_true(tt_check(copy.data, 2));
    tt_free(payload);
    tt_free(copy);
}

/* The built-in buffer moves the same way. */
static void mc177_buffers_move_too(void **state) {
    struct spec *f = *state;
    const uint64_t bytes[] = {16, 0, 40};
    const tn_location where[] = {P, N, C0, C1};
    tn_buffer *buffer = NULL;
    tn_payload payload;

    assert_ok(tn_buffer_create(f->driver, P, bytes, 3, &buffer));
    memset(tn_buffer_segment(buffer, 0).data, 1, 16);
    memset(tn_buffer_segment(buffer, 2).data, 3, 40);
    payload = tn_buffer_payload(buffer);
    assert_ptr_equal(payload.type, tn_buffer_type());
    assert_int_equal(measured(payload).logical_bytes, 56);
    assert_ptr_equal(place(f, payload, P, 0).data, buffer);
    for (size_t i = 0; i < 4; i++) {
        tn_payload copy = place(f, payload, where[i], TN_PLACE_COPY);
        tn_buffer *other = copy.data;

        assert_int_equal(tn_buffer_segment_count(other), 3);
        for (size_t k = 0; k < 3; k++)
            assert_int_equal(tn_buffer_segment(other, k).bytes, bytes[k]);
        assert_ptr_not_equal(tn_buffer_segment(other, 0).data, tn_buffer_segment(buffer, 0).data);
        assert_memory_equal(tn_buffer_segment(other, 0).data, tn_buffer_segment(buffer, 0).data,
                            16);
        assert_memory_equal(tn_buffer_segment(other, 2).data, tn_buffer_segment(buffer, 2).data,
                            40);
        assert_at(tn_buffer_location(other), where[i]);
        tn_payload_destroy(copy);
    }
    tn_buffer_destroy(buffer);
}

static void mc178_pinning(void **state) {
    struct spec *f = *state;
    tn_payload pageable = two_fields(f, P);
    tn_payload pinned;
    tn_payload copy;

    assert_ptr_equal(place(f, pageable, P, 0).data, pageable.data);
    copy = place(f, pageable, P, TN_PLACE_COPY);
    assert_copy(copy, pageable, P);
    tt_free(copy);
    pinned = place(f, pageable, N, 0);
    assert_copy(pinned, pageable, N);
    assert_ptr_equal(place(f, pinned, N, 0).data, pinned.data);
    copy = place(f, pinned, N, TN_PLACE_COPY);
    assert_copy(copy, pinned, N);
    tt_free(copy);
    copy = place(f, pinned, P, 0); /* always a copy (M29) */
    assert_copy(copy, pinned, P);
    tt_free(copy);
    tt_free(pinned);
    tt_free(pageable);
}

static void mc179_memory_that_is_not_pinned(void **state) {
    static const uint32_t states[] = {TN_SIM_FAKE_PINNED, TN_SIM_NO_PINNED};
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_payload payload = two_fields(f, P);
    tn_payload out = {NULL, NULL};
    tn_buffer *buffer = NULL;
    const uint64_t bytes = 32;
    void *memory = NULL;
    uint64_t live = tt_count().live;
    tn_handle h;
    char *before;

    h = adopt_rep(f, m, P);
    for (size_t i = 0; i < 2; i++) {
        assert_ok(tn_sim_set_state(f->sim, states[i]));
        before = spec_describe(m, 0);
        assert_status(tn_payload_place(f->driver, payload, N, NULL, 0, &out), TN_ERR_PAYLOAD);
        assert_status(tn_payload_place(f->driver, payload, N, NULL, TN_PLACE_COPY, &out),
                      TN_ERR_PAYLOAD);
        assert_status(tn_memory_alloc(f->driver, N, 32, &memory), TN_ERR_PAYLOAD);
        assert_status(tn_buffer_create(f->driver, N, &bytes, 1, &buffer), TN_ERR_PAYLOAD);
        assert_status(tn_manager_ensure(m, h, N, NULL, NULL), TN_ERR_PAYLOAD);
        assert_status(tn_manager_move(m, h, N, NOWHERE, NULL, NULL), TN_ERR_PAYLOAD);
        assert_null(out.data);
        assert_null(memory);
        assert_null(buffer);
        assert_unchanged(m, before, 0);
        assert_int_equal(tt_count().live, live + 1);
    }
    assert_ok(tn_sim_set_state(f->sim, TN_SIM_NORMAL));
    tt_free(payload);
    ensure(m, h, N);
}

/* The same program with direct actions; a scope's report needs plans. */
static void mc180_three_values_to_the_device_and_back(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_stream s = spec_stream(f, 0);
    tn_handle h[3];
    tn_lease lease = {NULL, 0};
    const void *data = NULL;

    for (int i = 0; i < 3; i++)
        h[i] = adopt_exc(f, m, P);
    for (int i = 0; i < 3; i++)
        move_from(m, h[i], C0, P);
    for (int i = 0; i < 3; i++)
        assert_replicas(m, h[i], C0);
    assert_ok(tn_manager_acquire(m, h, 3, C0, s, &lease));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(mat(m, h[i], C0).use_count, 1);
        assert_ok(tn_lease_lookup(&lease, h[i], &data));
        assert_ok(tn_sim_queue_read(f->sim, s, tt_field_base(data, 0), 32, 1000));
        assert_true(tt_check(data, 1));
    }
    assert_ok(tn_lease_release(&lease, TN_RELEASE_WAIT));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(mat(m, h[i], C0).use_count, 0);
        assert_int_equal(mat(m, h[i], C0).pending_count, 0);
        move_from(m, h[i], P, C0);
        assert_replicas(m, h[i], P);
    }
    assert_int_equal(trace_count(m), 6);
    for (size_t i = 0; i < 6; i++) {
        tn_report r = trace_at(m, i);

        assert_report(r, TN_ACTION_MOVE, 0, i < 3 ? P : C0, i < 3 ? C0 : P);
        assert_handle(r.action.handle, h[i % 3]);
    }
    assert_int_equal(used(m, C0), 0);
    assert_int_equal(used(m, P), 96);
}

/* ---- Files ------------------------------------------------------------------------------------
 */

/* Write bytes to a file. */
static void write_file(const char *path, const unsigned char *bytes, size_t count) {
    FILE *o = fopen(path, "wb");

    assert_non_null(o);
    assert_int_equal(fwrite(bytes, 1, count, o), count);
    assert_int_equal(fclose(o), 0);
}

/* A callback that reads a payload with its metadata from a file. */
struct file_source {
    char path[4096];
    unsigned calls;
};

static tn_status file_load(void *context, const tn_load_request *request, tn_load_result *result) {
    struct file_source *s = context;
    FILE *i = fopen(s->path, "rb");
    uint64_t tag = 0;
    tn_payload payload = tt_v(request->driver, request->at);
    void *base = (void *)(uintptr_t)tt_field_base(payload.data, 0);
    size_t got;

    s->calls++;
    if (i == NULL) {
        tt_free(payload);
        result->native_code = errno;
        return TN_ERR_SOURCE;
    }
    got = fread(&tag, 1, sizeof(tag), i) + fread(base, 1, 32, i);
    fclose(i);
    if (got != sizeof(tag) + 32) {
        tt_free(payload);
        return TN_ERR_SOURCE;
    }
    tt_set_tag(payload, tag);
    result->payload = payload;
    return TN_OK;
}

static void mc181_value_from_a_file(void **state) {
    struct spec *f = *state;
    static struct file_source s;
    tn_source source = TN_SOURCE_INIT;
    tn_value_spec spec = tt_spec(32, 32);
    tn_manager *m = MANAGER(f, {P, 32});
    unsigned char bytes[sizeof(uint64_t) + 32];
    uint64_t tag = 4711;
    tn_handle h = {0, 0, NULL};
    const void *data = NULL;
    tn_payload original = spec_v(f, P);

    memcpy(bytes, &tag, sizeof(tag));
    memcpy(bytes + sizeof(tag), tt_field_base(original.data, 0), 32);
    tt_free(original);
    s.calls = 0;
    snprintf(s.path, sizeof(s.path), "%s/value", tn_test_tmpdir());
    write_file(s.path, bytes, sizeof(bytes));

    source.kind = TN_SOURCE_CALLBACK;
    source.load = file_load;
    source.context = &s;
    assert_ok(tn_manager_register_source(m, &spec, &source, P, &h));
    assert_int_equal(s.calls, 0);
    for (unsigned i = 1; i <= 2; i++) {
        tn_lease lease;

        ensure(m, h, P);
        assert_int_equal(s.calls, i);
        lease = acquire(m, h, P, NULL);
        assert_int_equal(mat(m, h, P).use_count, 1);
        assert_ok(tn_lease_lookup(&lease, h, &data));
        assert_true(tt_check(data, 1));
        assert_int_equal(tt_tag(data), 4711);
        release(&lease);
        drop(m, h, P);
    }
    assert_replicas(m, h);
}

static void load_built_in(struct spec *f, tn_location source_at, tn_location to) {
    static const uint64_t segments[] = {24, 8};
    tn_manager *m = MANAGER(f, {source_at, 32});
    tn_stream s = to.kind == TN_LOCATION_CUDA ? spec_stream(f, to.index) : NULL;
    tn_source source = TN_SOURCE_INIT;
    tn_value_spec spec = tt_spec(32, 32);
    unsigned char bytes[40];
    char path[4096];
    tn_handle h = {0, 0, NULL};
    const void *data = NULL;

    snprintf(path, sizeof(path), "%s/buffer", tn_test_tmpdir());
    spec.type = tn_buffer_type();
    source.kind = TN_SOURCE_FILE;
    source.path = path;
    source.offset = 8;
    source.segment_bytes = segments;
    source.segment_count = 2;
    assert_ok(tn_manager_register_source(m, &spec, &source, source_at, &h));
    source.path = "elsewhere";                 /* it was copied */
    for (int round = 1; round <= 2; round++) { /* each load opens the file anew */
        tn_lease lease;

        for (size_t i = 0; i < sizeof(bytes); i++)
            bytes[i] = (unsigned char)(i * 7 + (size_t)round);
        write_file(path, bytes, sizeof(bytes));
        ensure(m, h, to);
        lease = acquire(m, h, to, s);
        assert_int_equal(mat(m, h, to).use_count, 1);
        assert_ok(tn_lease_lookup(&lease, h, &data));
        assert_int_equal(tn_buffer_segment_count(data), 2);
        assert_int_equal(tn_buffer_segment(data, 0).bytes, 24);
        assert_int_equal(tn_buffer_segment(data, 1).bytes, 8);
        assert_memory_equal(tn_buffer_segment(data, 0).data, bytes + 8, 24);
        assert_memory_equal(tn_buffer_segment(data, 1).data, bytes + 32, 8);
        assert_ok(tn_lease_release(&lease, TN_RELEASE_WAIT));
        drop(m, h, to);
    }
    assert_int_equal(used(m, to), 0);
    assert_peaks(m, source_at, tn_location_equal(source_at, to) ? 32 : 0, 32);
}

static void mc181_built_in_file_source(void **state) {
    load_built_in(*state, P, P);
    load_built_in(*state, P, C0);
    load_built_in(*state, N, N);
    load_built_in(*state, C1, C1);
}

static const struct CMUnitTest tests[] = {
    SPEC_SERIAL(mc177_movement_to_the_same_device),
    SPEC_SERIAL(mc177_movement_between_all_locations),
    SPEC_SERIAL(mc177_copy_of_a_view_is_compact),
    SPEC_SERIAL(mc177_buffers_move_too),
    SPEC_SERIAL(mc178_pinning),
    SPEC_BOTH(mc179_memory_that_is_not_pinned),
    SPEC_BOTH(mc180_three_values_to_the_device_and_back),
    SPEC_BOTH(mc181_value_from_a_file),
    SPEC_BOTH(mc181_built_in_file_source),
};

TN_TEST_MAIN("spec.movement", tests)
