/* SPDX-License-Identifier: MIT */
/* src/value/source.c: registration checks (M69) and callback sources (M79, M80). */
#include "tn_test.h"

#include "value_fake.h"

static tn_value_spec buffer_spec(uint64_t bytes) {
    return (tn_value_spec){sizeof(tn_value_spec), tn_buffer_type(),  bytes, bytes,
                           TN_REPLICABLE,         TN_RECONSTRUCTIBLE};
}

static tn_source file_of(const char *path) {
    tn_source source = TN_SOURCE_INIT;
    source.kind = TN_SOURCE_FILE;
    source.path = path;
    return source;
}

/* What the callback below answers, and what it saw. */
typedef struct script {
    tn_status status;
    tn_payload payload;
    int64_t native_code;
    const char *message;
    bool full_message; /* no NUL in it */
    bool own_error;
    int loads;
    int forgets;
    tn_location at;
} script;

static tn_status script_load(void *context, const tn_load_request *request,
                             tn_load_result *result) {
    script *s = context;
    s->loads++;
    s->at = request->at;
    if (s->own_error)
        tn__error(TN_ERR_DEVICE_MEMORY, "from a call of ours")->native_code = 2;
    assert_null(result->payload.data);
    assert_int_equal(result->size, sizeof *result);
    result->payload = s->payload;
    result->native_code = s->native_code;
    if (s->message)
        strcpy(result->message, s->message);
    if (s->full_message)
        memset(result->message, 'x', sizeof result->message);
    return s->status;
}

static void script_forget(void *context) { ((script *)context)->forgets++; }

static tn_source callback_of(script *s) {
    tn_source source = TN_SOURCE_INIT;
    source.kind = TN_SOURCE_CALLBACK;
    source.load = script_load;
    source.forget = script_forget;
    source.context = s;
    return source;
}

/* ---- Checks ---- */

static void source_check_kinds(void **state) {
    tn_value_spec spec = buffer_spec(16);
    tn_value_spec other = spec;
    script s = {0};
    tn_source source = callback_of(&s);
    (void)state;
    other.type = &fake_type;
    assert_status(tn__source_check(NULL, &spec), TN_ERR_KIND);
    assert_ok(tn__source_check(&source, &spec));
    assert_ok(tn__source_check(&source, &other));
    source.forget = NULL;
    assert_ok(tn__source_check(&source, &spec));
    source.load = NULL;
    assert_status(tn__source_check(&source, &spec), TN_ERR_KIND);
    source = callback_of(&s);
    source.flags = TN_SOURCE_CHECKSUM;
    assert_status(tn__source_check(&source, &spec), TN_ERR_VALUE);
    source = callback_of(&s);
    source.kind = 0;
    assert_status(tn__source_check(&source, &spec), TN_ERR_KIND);
    source.kind = 3;
    assert_status(tn__source_check(&source, &spec), TN_ERR_KIND);
    source = callback_of(&s);
    source.size = 8;
    assert_status(tn__source_check(&source, &spec), TN_ERR_KIND);
    source = file_of("x");
    assert_ok(tn__source_check(&source, &spec));
    assert_status(tn__source_check(&source, &other), TN_ERR_KIND); /* a buffer is no fake */
}

static void source_check_paths(void **state) {
    static char path[5000];
    tn_value_spec spec = buffer_spec(16);
    tn_source source = file_of(NULL);
    (void)state;
    assert_status(tn__source_check(&source, &spec), TN_ERR_KIND);
    source.path = "";
    assert_status(tn__source_check(&source, &spec), TN_ERR_VALUE);
    source.path = " \t\n";
    assert_status(tn__source_check(&source, &spec), TN_ERR_VALUE);
    memset(path, 'p', sizeof path);
    path[4095] = '\0';
    source.path = path;
    assert_ok(tn__source_check(&source, &spec));
    path[4095] = 'p';
    path[4096] = '\0';
    assert_status(tn__source_check(&source, &spec), TN_ERR_VALUE);
}

static void source_check_numbers(void **state) {
    const uint64_t sizes[] = {10, 0, 6, UINT64_MAX};
    tn_value_spec spec = buffer_spec(16);
    tn_source source = file_of("x");
    (void)state;
    source.flags = 2;
    assert_status(tn__source_check(&source, &spec), TN_ERR_VALUE);
    source.flags = TN_SOURCE_CHECKSUM;
    assert_ok(tn__source_check(&source, &spec));
    source.segment_count = 3;
    assert_status(tn__source_check(&source, &spec), TN_ERR_KIND); /* segment_bytes NULL */
    source.segment_bytes = sizes;
    assert_ok(tn__source_check(&source, &spec));
    source.segment_count = 2;
    assert_status(tn__source_check(&source, &spec), TN_ERR_VALUE);
    source.segment_count = 4; /* the sum would wrap round to 15 */
    assert_status(tn__source_check(&source, &spec), TN_ERR_VALUE);
    source.segment_count = 0;
    source.offset = (uint64_t)INT64_MAX - 16;
    assert_ok(tn__source_check(&source, &spec));
    source.offset++;
    assert_status(tn__source_check(&source, &spec), TN_ERR_VALUE);
    source.offset = UINT64_MAX;
    assert_status(tn__source_check(&source, &spec), TN_ERR_VALUE);
}

/* ---- One block ---- */

static void source_is_one_block_and_copies_all(void **state) {
    char path[] = "/some/where";
    uint64_t sizes[] = {10, 6};
    tn_value_spec spec = buffer_spec(16);
    tn_source source = file_of(path);
    tn__source *own = NULL;
    (void)state;
    source.segment_bytes = sizes;
    source.segment_count = 2;
    source.offset = 99;
    assert_ok(tn__source_create(&source, &spec, &own));
    assert_int_equal(tn__alloc_live(), 1);
    assert_false(tn__source_is_callback(own));
    memset(path, 'x', sizeof path - 1);
    sizes[0] = 0;
    assert_string_equal(tn__source_path(own), "/some/where");
    assert_int_equal(own->file.bytes, 16);
    assert_int_equal(own->file.offset, 99);
    assert_int_equal(own->file.segment_count, 2);
    assert_int_equal(own->tail[0], 10);
    assert_int_equal(own->tail[1], 6);
    assert_true(sizeof *own + 2 * sizeof(uint64_t) + 64 <= 128); /* a path of 64 bytes */
    tn__source_destroy(own);
    tn__source_destroy(NULL);
    assert_int_equal(tn__alloc_live(), 0);
}

static void source_create_survives_a_failing_allocation(void **state) {
    script s = {0};
    tn_value_spec spec = buffer_spec(16);
    tn_source sources[] = {file_of("x"), callback_of(&s)};
    tn__source *own = NULL;
    (void)state;
    for (size_t i = 0; i < 2; ++i) {
        tn__fault_alloc(1);
        assert_status(tn__source_create(&sources[i], &spec, &own), TN_ERR_HOST_MEMORY);
        assert_null(own);
    }
    sources[0].size = 8;
    assert_status(tn__source_create(&sources[0], &spec, &own), TN_ERR_KIND);
    assert_null(own);
    assert_int_equal(tn__alloc_live(), 0);
    assert_int_equal(s.forgets, 0);
}

static void source_forgets_at_destroy_only(void **state) {
    script s = {0};
    tn_value_spec spec = buffer_spec(16);
    tn_source source = callback_of(&s);
    tn__source *own = NULL;
    (void)state;
    assert_ok(tn__source_create(&source, &spec, &own));
    assert_true(tn__source_is_callback(own));
    tn__source_abandon(own);
    assert_int_equal(s.forgets, 0);
    assert_ok(tn__source_create(&source, &spec, &own));
    tn__source_destroy(own);
    assert_int_equal(s.forgets, 1);
    source.forget = NULL;
    assert_ok(tn__source_create(&source, &spec, &own));
    tn__source_destroy(own);
    assert_int_equal(s.forgets, 1);
    assert_int_equal(tn__alloc_live(), 0);
}

/* ---- Loading by a callback ---- */

static tn_status load(script *s, tn_payload *out) {
    tn_source source = callback_of(s);
    tn_load_request request = {.size = sizeof request};
    tn__source *own = NULL;
    request.spec = buffer_spec(16);
    request.handle = (tn_handle){3, 4, tn_buffer_type()};
    request.at = tn_location_pinned();
    assert_ok(tn__source_create(&source, &request.spec, &own));
    tn_status status = tn__source_load(own, &request, NULL, out);
    tn__source_destroy(own);
    return status;
}

static void callback_payload_is_handed_on(void **state) {
    fake f = {0};
    script s = {.payload = {&fake_type, &f}};
    tn_payload out = {NULL, NULL};
    (void)state;
    (void)tn__fail(TN_ERR_STALE, "an older failure");
    assert_ok(load(&s, &out));
    assert_ptr_equal(out.data, &f);
    assert_ptr_equal(out.type, &fake_type); /* not checked against the spec here */
    assert_int_equal(s.loads, 1);
    assert_true(tn_location_equal(s.at, tn_location_pinned()));
    assert_string_equal(tn_last_error()->message, "an older failure");
}

static void callback_without_payload_is_refused(void **state) {
    fake f = {0};
    tn_value_type broken = fake_type;
    script s = {0};
    tn_payload out = {NULL, NULL};
    (void)state;
    broken.copy = NULL;
    assert_status(load(&s, &out), TN_ERR_PAYLOAD);
    s.payload = (tn_payload){&fake_type, NULL};
    assert_status(load(&s, &out), TN_ERR_PAYLOAD);
    s.payload = (tn_payload){NULL, &f};
    assert_status(load(&s, &out), TN_ERR_PAYLOAD);
    s.payload = (tn_payload){&broken, &f};
    assert_status(load(&s, &out), TN_ERR_PAYLOAD);
    assert_null(out.data);
    assert_int_equal(f.destroys, 0);
}

/* M79: status, words and code reach the caller. */
static void callback_failure_is_unchanged(void **state) {
    script s = {.status = TN_ERR_SOURCE, .native_code = -5, .message = "no such key"};
    tn_payload out = {NULL, NULL};
    (void)state;
    assert_status(load(&s, &out), TN_ERR_SOURCE);
    assert_int_equal(tn_last_error()->native_code, -5);
    assert_string_equal(tn_last_error()->message, "no such key");
    assert_int_equal(tn_last_error()->handle.index, 4);
    assert_true(tn_location_equal(tn_last_error()->at, tn_location_pinned()));
    s = (script){.status = TN_ERR_UNSUPPORTED};
    assert_status(load(&s, &out), TN_ERR_UNSUPPORTED);
    assert_int_equal(tn_last_error()->native_code, 0);
    assert_true(tn_last_error()->message[0] != '\0');
    assert_null(out.data);
}

/* V3: a call of ours that failed inside the callback tells more than we know. */
static void callback_failure_keeps_a_detail_of_its_own(void **state) {
    script s = {.status = TN_ERR_DEVICE_MEMORY, .own_error = true};
    tn_payload out = {NULL, NULL};
    (void)state;
    assert_status(load(&s, &out), TN_ERR_DEVICE_MEMORY);
    assert_int_equal(tn_last_error()->native_code, 2);
    assert_string_equal(tn_last_error()->message, "from a call of ours");
    s.status = TN_ERR_HOST_MEMORY; /* another status: not its detail */
    assert_status(load(&s, &out), TN_ERR_HOST_MEMORY);
    assert_int_equal(tn_last_error()->native_code, 0);
    assert_int_equal(tn_last_error()->status, TN_ERR_HOST_MEMORY);
}

static void callback_status_out_of_range_is_a_source_error(void **state) {
    script s = {.status = (tn_status)1000};
    tn_payload out = {NULL, NULL};
    (void)state;
    assert_status(load(&s, &out), TN_ERR_SOURCE);
    assert_int_equal(tn_last_error()->native_code, 1000);
    s.status = (tn_status)-1;
    s.full_message = true;
    assert_status(load(&s, &out), TN_ERR_SOURCE);
    assert_int_equal(strlen(tn_last_error()->message), sizeof tn_last_error()->message - 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(source_check_kinds),
    cmocka_unit_test(source_check_paths),
    cmocka_unit_test(source_check_numbers),
    cmocka_unit_test(source_is_one_block_and_copies_all),
    cmocka_unit_test(source_create_survives_a_failing_allocation),
    cmocka_unit_test(source_forgets_at_destroy_only),
    cmocka_unit_test(callback_payload_is_handed_on),
    cmocka_unit_test(callback_without_payload_is_refused),
    cmocka_unit_test(callback_failure_is_unchanged),
    cmocka_unit_test(callback_failure_keeps_a_detail_of_its_own),
    cmocka_unit_test(callback_status_out_of_range_is_a_source_error),
};

TN_TEST_MAIN("unit.source", tests)
