/* SPDX-License-Identifier: MIT */
/* src/driver/cuda/cuda_context.c, cuda_streams.c: the caller's context and capture mode stay as
 * they are (U1), devices are opened at first use (U2), streams of any context (F-G02), streams in
 * capture (U5). */
#include "cuda_fixture.h"

/* What a thread may come with. */
struct caller {
    struct cuda *c;
    bool with_context;
    uint64_t current; /* what must be current after each call */
    unsigned depth;
};

#define CHECK(call, wanted)                                                                        \
    do {                                                                                           \
        TN_WORKER_STATUS(call, wanted);                                                            \
        TN_WORKER_CHECK(x->c->shim->current() == x->current);                                      \
        TN_WORKER_CHECK(x->c->shim->depth() == x->depth);                                          \
        TN_WORKER_CHECK(x->c->shim->capture_mode() == 0);                                          \
    } while (0)

static void nothing(void *context) { (void)context; }

static const char *memory_calls(struct caller *x) {
    const tn_driver_ops *ops = x->c->ops;
    void *self = x->c->self;
    tn_device_memory figures;
    char bytes[64] = {0};
    tn_location at;
    void *p = NULL;
    void *q = NULL;

    CHECK(ops->device_alloc(self, 0, 64, &p), TN_OK);
    CHECK(ops->device_alloc(self, 0, UINT64_C(1) << 50, &q), TN_ERR_DEVICE_MEMORY);
    CHECK(ops->copy(self, p, C0, bytes, HOST, 64, NULL), TN_OK);
    CHECK(ops->copy(self, bytes, HOST, p, C0, 64, NULL), TN_OK);
    CHECK(ops->copy(self, NULL, C0, bytes, HOST, 64, NULL), TN_ERR_DRIVER);
    CHECK(ops->pointer_location(self, p, &at), TN_OK);
    CHECK(ops->device_free(self, 0, p, 64), TN_OK);
    CHECK(ops->pinned_alloc(self, 64, &p), TN_OK);
    CHECK(ops->pinned_free(self, p, 64), TN_OK);
    CHECK(ops->device_memory(self, 1, &figures), TN_OK);
    CHECK(ops->device_memory(self, 2, &figures), TN_ERR_DRIVER);
    CHECK(ops->device_synchronize(self, 1), TN_OK);
    return NULL;
}

static const char *stream_calls(struct caller *x) {
    const tn_driver_ops *ops = x->c->ops;
    void *self = x->c->self;
    tn_stream_info info;
    tn_stream s = NULL;
    tn_event e = NULL;
    uint32_t answer;

    CHECK(ops->stream_create(self, 1, &s), TN_OK);
    CHECK(ops->stream_info(self, s, &info), TN_OK);
    CHECK(ops->stream_info(self, NULL, &info), TN_ERR_KIND);
    CHECK(ops->event_create(self, 1, info.context, &e), TN_OK);
    CHECK(ops->event_record(self, e, s), TN_OK);
    CHECK(ops->stream_wait(self, s, e), TN_OK);
    CHECK(ops->event_query(self, e, &answer), TN_OK);
    CHECK(ops->event_synchronize(self, e), TN_OK);
    CHECK(ops->host_function(self, s, nothing, NULL), TN_OK);
    CHECK(ops->stream_synchronize(self, s), TN_OK);
    CHECK(ops->stream_synchronize(self, TN_STREAM_LEGACY), TN_OK);
    CHECK(ops->stream_destroy(self, TN_STREAM_LEGACY), TN_ERR_DRIVER);
    CHECK(ops->event_destroy(self, e), TN_OK);
    CHECK(ops->stream_destroy(self, s), TN_OK);
    return NULL;
}

static const char *all_calls(int index, void *argument) {
    struct caller *x = argument;
    const char *failure;

    (void)index;
    if (x->with_context)
        x->c->shim->push(1, true);
    x->current = x->c->shim->current();
    x->depth = x->c->shim->depth();
    failure = memory_calls(x);
    if (failure == NULL)
        failure = stream_calls(x);
    if (x->with_context)
        x->c->shim->pop();
    return failure;
}

static void call_without_a_context_leaves_none(void **state) {
    struct cuda c = cuda_open(SHIM_FULL, "dev:2");
    struct caller x = {.c = &c};

    (void)state;
    assert_null_text(tn_test_workers_run(1, all_calls, &x));
    assert_int_equal(x.current, 0);
    cuda_close(&c);
}

static void call_under_another_context_leaves_that_one(void **state) {
    struct cuda c = cuda_open(SHIM_FULL, "dev:2");
    struct caller x = {.c = &c, .with_context = true};

    (void)state;
    assert_null_text(tn_test_workers_run(1, all_calls, &x));
    assert_int_not_equal(x.current, 0);
    cuda_close(&c);
}

static void device_gets_a_context_at_first_use(void **state) {
    struct cuda c = cuda_open(SHIM_FULL, "dev:2");
    uint32_t count = 0;
    void *p;

    (void)state;
    assert_ok(c.ops->device_count(c.self, &count));
    assert_int_equal(count, 2);
    assert_int_equal(atomic_load(&c.shim->retained), 0);
    p = device_block(&c, 1, 64);
    assert_int_equal(atomic_load(&c.shim->retained), 1);
    assert_ok(c.ops->device_free(c.self, 1, p, 64));
    assert_ok(c.ops->pinned_alloc(c.self, 64, &p)); /* under the one that is open */
    assert_ok(c.ops->pinned_free(c.self, p, 64));
    assert_int_equal(atomic_load(&c.shim->retained), 1);
    cuda_close(&c);
}

static void stream_of_the_program_opens_nothing(void **state) {
    struct cuda c = cuda_open(SHIM_FULL, "dev:2");
    tn_stream s = test_stream(&c, 1, 0);
    tn_stream t = test_stream(&c, 1, TN_SIM_STREAM_SECOND_CONTEXT);

    (void)state;
    c.shim->push(1, false);
    assert_int_equal(info_of(&c, s).device, 1);
    assert_int_equal(atomic_load(&c.shim->retained), 0);
    assert_int_equal(info_of(&c, s).context, c.shim->current());
    c.shim->pop();
    assert_int_equal(info_of(&c, t).device, 1); /* now one has to be open, to ask under it */
    assert_int_equal(atomic_load(&c.shim->retained), 1);
    assert_ok(tn_sim_stream_destroy(c.sim, s));
    assert_ok(tn_sim_stream_destroy(c.sim, t));
    cuda_close(&c);
}

static void events_stay_in_their_context(void **state) {
    struct cuda c = cuda_open(SHIM_FULL, "dev:2");
    tn_stream s = test_stream(&c, 0, 0);
    tn_stream t = test_stream(&c, 0, TN_SIM_STREAM_SECOND_CONTEXT);
    tn_event e = event_for(&c, s);
    tn_event f = event_for(&c, t);
    tn_event g = NULL;

    (void)state;
    assert_int_equal(info_of(&c, t).device, 0);
    assert_int_not_equal(info_of(&c, s).context, info_of(&c, t).context);
    assert_ok(tn_sim_queue_delay(c.sim, t, MS));
    assert_ok(c.ops->event_record(c.self, e, s));
    assert_ok(c.ops->event_record(c.self, f, t));
    assert_int_equal(done(&c, e), 1);
    assert_int_equal(done(&c, f), 0);
    assert_ok(c.ops->event_synchronize(c.self, f));
    assert_int_equal(done(&c, f), 1);
    /* a context of another device, or none */
    assert_status(c.ops->event_create(c.self, 1, info_of(&c, t).context, &g), TN_ERR_DRIVER);
    assert_int_equal(c.ops->last_code(c.self), 101);
    assert_status(c.ops->event_create(c.self, 0, 0, &g), TN_ERR_DRIVER);
    assert_null(g);
    assert_ok(c.ops->event_destroy(c.self, e));
    assert_ok(c.ops->event_destroy(c.self, f));
    assert_ok(tn_sim_stream_destroy(c.sim, s));
    assert_ok(tn_sim_stream_destroy(c.sim, t));
    cuda_close(&c);
}

/* The legacy stream is device 0's, whatever is current. */
static void stream_legacy_belongs_to_device_0(void **state) {
    struct cuda c = cuda_open(SHIM_FULL, "dev:2");
    tn_stream other = test_stream(&c, 1, 0);
    char bytes[64] = {5};
    char back[64] = {0};
    void *p = device_block(&c, 0, 64);
    void *q = device_block(&c, 1, 64);
    tn_event e;
    tn_event f;

    (void)state;
    c.shim->push(1, false);
    assert_int_equal(info_of(&c, TN_STREAM_LEGACY).device, 0);
    e = event_for(&c, TN_STREAM_LEGACY);
    f = event_for(&c, other);
    assert_ok(c.ops->event_record(c.self, e, TN_STREAM_LEGACY));
    assert_ok(c.ops->stream_wait(c.self, TN_STREAM_LEGACY, f));
    assert_status(c.ops->event_record(c.self, f, TN_STREAM_LEGACY), TN_ERR_DRIVER);
    assert_ok(c.ops->copy(c.self, p, C0, bytes, HOST, 64, TN_STREAM_LEGACY));
    assert_ok(c.ops->copy(c.self, q, C1, p, C0, 64, TN_STREAM_LEGACY));
    assert_ok(c.ops->copy(c.self, back, HOST, q, C1, 64, TN_STREAM_LEGACY));
    assert_ok(c.ops->stream_synchronize(c.self, TN_STREAM_LEGACY));
    assert_memory_equal(bytes, back, 64);
    c.shim->pop();
    assert_ok(c.ops->event_destroy(c.self, e));
    assert_ok(c.ops->event_destroy(c.self, f));
    assert_ok(c.ops->device_free(c.self, 0, p, 64));
    assert_ok(c.ops->device_free(c.self, 1, q, 64));
    assert_ok(tn_sim_stream_destroy(c.sim, other));
    cuda_close(&c);
}

static void stream_of_each_thread_is_refused(void **state) {
    struct cuda c = cuda_open(SHIM_FULL, "dev:2");
    tn_stream s = test_stream(&c, 0, 0);
    tn_event e = event_for(&c, s);
    tn_stream_info info;
    char bytes[8] = {0};
    void *p = device_block(&c, 0, 8);

    (void)state;
    assert_status(c.ops->stream_info(c.self, TN_STREAM_PER_THREAD, &info), TN_ERR_KIND);
    assert_status(tn__driver_check_stream(c.driver, TN_STREAM_PER_THREAD, 0, &info), TN_ERR_VALUE);
    assert_status(c.ops->event_record(c.self, e, TN_STREAM_PER_THREAD), TN_ERR_DRIVER);
    assert_status(c.ops->copy(c.self, p, C0, bytes, HOST, 8, TN_STREAM_PER_THREAD), TN_ERR_DRIVER);
    assert_status(c.ops->stream_synchronize(c.self, TN_STREAM_PER_THREAD), TN_ERR_DRIVER);
    assert_int_equal(c.ops->last_code(c.self), 400);
    assert_ok(c.ops->event_destroy(c.self, e));
    assert_ok(c.ops->device_free(c.self, 0, p, 8));
    assert_ok(tn_sim_stream_destroy(c.sim, s));
    cuda_close(&c);
}

static void stream_in_capture_is_left_alone(void **state) {
    struct cuda c = cuda_open(SHIM_FULL, "dev:2");
    tn_stream s = test_stream(&c, 0, TN_SIM_STREAM_CAPTURING);
    tn_stream_info info = info_of(&c, s);
    tn_event e = event_for(&c, s);
    char bytes[8] = {0};
    void *p = device_block(&c, 0, 8);
    uint64_t syncs = tn_sim_calls(c.sim, TN_SIM_STREAM_SYNCHRONIZE);

    (void)state;
    assert_int_equal(info.capturing, 1);
    assert_status(tn__driver_check_stream(c.driver, s, 0, &info), TN_ERR_VALUE);
    assert_status(c.ops->event_record(c.self, e, s), TN_ERR_DRIVER);
    assert_int_equal(c.ops->last_code(c.self), 900);
    assert_status(c.ops->stream_wait(c.self, s, e), TN_ERR_DRIVER);
    assert_status(c.ops->host_function(c.self, s, nothing, NULL), TN_ERR_DRIVER);
    assert_status(c.ops->stream_synchronize(c.self, s), TN_ERR_DRIVER);
    assert_status(c.ops->copy(c.self, p, C0, bytes, HOST, 8, s), TN_ERR_DRIVER);
    assert_int_equal(tn_sim_calls(c.sim, TN_SIM_EVENT_RECORD), 0);
    assert_int_equal(tn_sim_calls(c.sim, TN_SIM_STREAM_WAIT), 0);
    assert_int_equal(tn_sim_calls(c.sim, TN_SIM_HOST_FUNCTION), 0);
    assert_int_equal(tn_sim_calls(c.sim, TN_SIM_STREAM_SYNCHRONIZE), syncs);
    assert_int_equal(tn_sim_calls(c.sim, TN_SIM_COPY), 0);
    assert_ok(c.ops->event_destroy(c.self, e));
    assert_ok(c.ops->device_free(c.self, 0, p, 8));
    assert_ok(tn_sim_stream_destroy(c.sim, s));
    cuda_close(&c);
}

static void event_without_host_memory_is_not_made(void **state) {
    struct cuda c = cuda_open(SHIM_FULL, "dev:1");
    tn_stream s = test_stream(&c, 0, 0);
    tn_stream_info info = info_of(&c, s);
    tn_event e = NULL;

    (void)state;
    tn__fault_alloc(1);
    assert_status(c.ops->event_create(c.self, 0, info.context, &e), TN_ERR_HOST_MEMORY);
    tn__fault_alloc(0);
    fail_next(&c, TN_SIM_EVENT_CREATE, TN_ERR_DRIVER, 999);
    assert_status(c.ops->event_create(c.self, 0, info.context, &e), TN_ERR_DRIVER);
    assert_null(e);
    e = event_for(&c, s);
    fail_next(&c, TN_SIM_EVENT_DESTROY, TN_ERR_DRIVER, 999);
    assert_status(c.ops->event_destroy(c.self, e), TN_ERR_DRIVER);
    assert_ok(c.ops->event_destroy(c.self, e)); /* it was still there */
    assert_ok(tn_sim_stream_destroy(c.sim, s));
    cuda_close(&c);
}

/* Whose device and context are asked for while others open them: under any that is open. */
static tn_stream asked_for;

static const char *ask_for_the_stream(const struct cuda *c) {
    tn_stream_info info;

    for (int i = 0; i < 20; i++)
        TN_WORKER_STATUS(c->ops->stream_info(c->self, asked_for, &info), TN_OK);
    return NULL;
}

static const char *use_devices(int index, void *argument) {
    struct cuda *c = argument;
    uint32_t device = (uint32_t)index % 2;
    char bytes[64] = {(char)index};
    char back[64] = {0};
    void *p = NULL;

    if (index >= 6)
        return ask_for_the_stream(c);
    TN_WORKER_STATUS(c->ops->device_alloc(c->self, device, 64, &p), TN_OK);
    TN_WORKER_STATUS(c->ops->copy(c->self, p, tn_location_cuda(device), bytes, HOST, 64, NULL),
                     TN_OK);
    TN_WORKER_STATUS(c->ops->copy(c->self, back, HOST, p, tn_location_cuda(device), 64, NULL),
                     TN_OK);
    TN_WORKER_CHECK(memcmp(bytes, back, 64) == 0);
    TN_WORKER_STATUS(c->ops->device_free(c->self, device, p, 64), TN_OK);
    return NULL;
}

/* [cuda-device] */
static void devices_are_opened_once_by_many_threads(void **state) {
    int round;

    (void)state;
    for (round = 0; round < 20; round++) {
        struct cuda c = cuda_open(SHIM_FULL, "dev:2");

        asked_for = test_stream(&c, 1, TN_SIM_STREAM_SECOND_CONTEXT);
        assert_null_text(tn_test_workers_run(8, use_devices, &c));
        assert_int_equal(atomic_load(&c.shim->retained), 2);
        assert_ok(tn_sim_stream_destroy(c.sim, asked_for));
        cuda_close(&c);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(call_without_a_context_leaves_none),
    cmocka_unit_test(call_under_another_context_leaves_that_one),
    cmocka_unit_test(device_gets_a_context_at_first_use),
    cmocka_unit_test(stream_of_the_program_opens_nothing),
    cmocka_unit_test(events_stay_in_their_context),
    cmocka_unit_test(stream_legacy_belongs_to_device_0),
    cmocka_unit_test(stream_of_each_thread_is_refused),
    cmocka_unit_test(stream_in_capture_is_left_alone),
    cmocka_unit_test(event_without_host_memory_is_not_made),
    cmocka_unit_test(devices_are_opened_once_by_many_threads),
};

TN_TEST_MAIN("cuda.context", tests)
