/* SPDX-License-Identifier: MIT */
/* src/driver/cuda/cuda_status.c, cuda_events.c: what is gone (D7, F-G06), what is lost, and that one
 * device's fate is no other's (U4, F-G12). */
#include "cuda_fixture.h"

/* Things on device 0, and calls on them once it is gone. */
struct things {
    void *p;
    void *pinned;
    tn_stream s;
    tn_event e; /* recorded behind 1 ms of work */
};

static struct things things_make(struct cuda *c) {
    struct things t = {device_block(c, 0, 64), NULL, NULL, NULL};

    assert_ok(tn_memory_alloc(c->driver, tn_location_pinned(), 64, &t.pinned));
    assert_ok(c->ops->stream_create(c->self, 0, &t.s));
    t.e = event_for(c, t.s);
    assert_ok(tn_sim_queue_delay(c->sim, t.s, MS));
    assert_ok(c->ops->event_record(c->self, t.e, t.s));
    assert_int_equal(done(c, t.e), 0);
    return t;
}

/* Frees and destroys are done, events complete, waits over; everything else is a failure (D2). */
static void things_end(struct cuda *c, struct things *t, int64_t code) {
    tn_stream_info info;
    bool over = false;
    char bytes[8] = {0};
    void *q = NULL;

    assert_status(tn_memory_alloc(c->driver, C0, 64, &q), TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->native_code, code);
    assert_status(tn__driver_copy(c->driver, t->p, C0, bytes, HOST, 8, NULL), TN_ERR_DRIVER);
    assert_status(tn__event_record(c->driver, t->e, t->s), TN_ERR_DRIVER);
    assert_status(tn__driver_check_stream(c->driver, t->s, 0, &info), TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->native_code, code);
    assert_ok(tn__event_query(c->driver, t->e, &over));
    assert_true(over);
    assert_ok(tn__event_synchronize(c->driver, t->e));
    assert_ok(tn__stream_synchronize(c->driver, t->s));
    assert_ok(tn__device_synchronize(c->driver, 0));
    assert_ok(tn_memory_free(c->driver, C0, t->p, 64));
    assert_ok(tn_memory_free(c->driver, tn_location_pinned(), t->pinned, 64));
    assert_ok(tn__event_destroy(c->driver, t->e));
    assert_ok(tn__stream_destroy(c->driver, t->s));
    assert_int_equal(tn_sim_now_ns(c->sim), 0); /* and nobody waited */
}

static void driver_shut_down_counts_as_gone(void **state) {
    static const int codes[] = {4 /* deinitialized */, 3 /* not initialized */};
    size_t i;

    (void)state;
    for (i = 0; i < 2; i++) {
        struct cuda c = cuda_open(SHIM_FULL, "dev:2");
        struct things t = things_make(&c);

        c.shim->driver_code = codes[i];
        things_end(&c, &t, codes[i]);
        c.shim->driver_code = 0;
        cuda_close_gone(&c);
    }
}

static void driver_may_be_destroyed_after_its_end(void **state) {
    struct cuda c = cuda_open(SHIM_FULL, "dev:2");
    void *p = device_block(&c, 1, 64);

    (void)state;
    assert_non_null(p);
    c.shim->driver_code = 4;
    cuda_close_gone(&c);
}

/* Refused when it is pushed, or only in the call after that. */
static void context_destroyed_counts_as_gone(void **state) {
    static const int codes[] = {709 /* destroyed */, 201 /* invalid */, 709};
    size_t i;

    (void)state;
    for (i = 0; i < 3; i++) {
        struct cuda c = cuda_open(SHIM_FULL, "dev:1");
        struct things t = things_make(&c);

        c.shim->context_code[0] = codes[i];
        c.shim->sticky[0] = i == 2;
        things_end(&c, &t, codes[i]);
        cuda_close_gone(&c);
    }
}

static void context_destroyed_is_not_that_of_another_device(void **state) {
    struct cuda c = cuda_open(SHIM_FULL, "dev:2");
    void *p = device_block(&c, 0, 64); /* device 0 is the first that is asked */
    void *q = device_block(&c, 1, 64);
    tn_stream s = test_stream(&c, 1, 0);
    tn_event e = event_for(&c, s);
    tn_stream_info info;

    (void)state;
    assert_ok(tn_sim_queue_delay(c.sim, s, MS));
    assert_ok(c.ops->event_record(c.self, e, s));
    c.shim->context_code[0] = 709;
    assert_int_equal(done(&c, e), 0);
    assert_ok(tn__driver_check_stream(c.driver, s, 1, &info));
    assert_ok(c.ops->stream_synchronize(c.self, s));
    assert_int_equal(tn_sim_now_ns(c.sim), MS);
    assert_int_equal(done(&c, e), 1);
    assert_status(c.ops->device_free(c.self, 0, p, 64), TN_ERR_CLOSED);
    assert_ok(c.ops->device_free(c.self, 1, q, 64));
    assert_ok(c.ops->event_destroy(c.self, e));
    assert_ok(tn_sim_stream_destroy(c.sim, s));
    cuda_close_gone(&c);
}

/* A sticky error is of its device; the thread's next call on another one is innocent. */
static void device_lost_leaves_the_others(void **state) {
    uint32_t bad;

    (void)state;
    for (bad = 0; bad < 2; bad++) {
        struct cuda c = cuda_open(SHIM_FULL, "dev:2");
        uint32_t good = 1 - bad;
        void *p = device_block(&c, bad, 64);
        void *q = device_block(&c, good, 64);
        tn_stream s = test_stream(&c, bad, 0);
        tn_stream t = test_stream(&c, good, 0);
        tn_event e = event_for(&c, s);
        tn_event f = event_for(&c, t);
        uint32_t over = 7;
        char bytes[8] = {0};

        c.shim->context_code[bad] = 700; /* illegal address */
        c.shim->sticky[bad] = true;
        assert_status(c.ops->event_query(c.self, e, &over), TN_ERR_DEVICE_LOST);
        assert_int_equal(over, 7);
        assert_int_equal(c.ops->last_code(c.self), 700);
        assert_status(c.ops->device_free(c.self, bad, p, 64), TN_ERR_DEVICE_LOST);
        assert_status(c.ops->event_record(c.self, e, s), TN_ERR_DEVICE_LOST);
        assert_status(c.ops->device_synchronize(c.self, bad), TN_ERR_DEVICE_LOST);

        assert_ok(c.ops->event_record(c.self, f, t));
        assert_int_equal(done(&c, f), 1);
        assert_int_equal(info_of(&c, t).device, good);
        assert_ok(c.ops->copy(c.self, q, tn_location_cuda(good), bytes, HOST, 8, t));
        assert_ok(c.ops->stream_synchronize(c.self, t));
        assert_ok(c.ops->device_free(c.self, good, q, 64));

        c.shim->context_code[bad] = 0; /* lifted: nothing was given up meanwhile */
        assert_ok(c.ops->device_free(c.self, bad, p, 64));
        assert_ok(c.ops->event_destroy(c.self, e));
        assert_ok(c.ops->event_destroy(c.self, f));
        assert_ok(tn_sim_stream_destroy(c.sim, s));
        assert_ok(tn_sim_stream_destroy(c.sim, t));
        cuda_close(&c);
    }
}

static void codes_have_their_meaning(void **state) {
    static const struct {
        int code;
        tn_status status;
    } rows[] = {
        {1, TN_ERR_DRIVER},        {2, TN_ERR_DEVICE_MEMORY}, {3, TN_ERR_CLOSED},
        {4, TN_ERR_CLOSED},        {201, TN_ERR_CLOSED},      {214, TN_ERR_DEVICE_LOST},
        {220, TN_ERR_DEVICE_LOST}, {400, TN_ERR_DRIVER},      {700, TN_ERR_DEVICE_LOST},
        {702, TN_ERR_DEVICE_LOST}, {704, TN_ERR_DRIVER},      {709, TN_ERR_CLOSED},
        {710, TN_ERR_DEVICE_LOST}, {714, TN_ERR_DEVICE_LOST}, {715, TN_ERR_DEVICE_LOST},
        {716, TN_ERR_DEVICE_LOST}, {717, TN_ERR_DEVICE_LOST}, {718, TN_ERR_DEVICE_LOST},
        {719, TN_ERR_DEVICE_LOST}, {800, TN_ERR_DRIVER},      {801, TN_ERR_UNSUPPORTED},
        {900, TN_ERR_DRIVER},      {999, TN_ERR_DRIVER},      {12345, TN_ERR_DRIVER},
    };
    struct cuda c = cuda_open(SHIM_FULL, "dev:2");
    size_t i;

    (void)state;
    assert_ok(c.ops->device_synchronize(c.self, 0));
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fail_next(&c, TN_SIM_DEVICE_SYNCHRONIZE, TN_ERR_DRIVER, rows[i].code);
        assert_status(c.ops->device_synchronize(c.self, 0), rows[i].status);
        assert_int_equal(c.ops->last_code(c.self), rows[i].code);
        assert_int_equal(tn_sim_fault_clear(c.sim), 1);
    }
    assert_ok(c.ops->device_synchronize(c.self, 0));
    cuda_close(&c);
}

static const char *own_code(int index, void *argument) {
    struct cuda *c = argument;

    (void)index;
    TN_WORKER_CHECK(c->ops->last_code(c->self) == 0);
    TN_WORKER_STATUS(c->ops->device_synchronize(c->self, 9), TN_ERR_DRIVER);
    TN_WORKER_CHECK(c->ops->last_code(c->self) == 101);
    return NULL;
}

static void code_is_of_the_thread_and_the_driver(void **state) {
    struct cuda c = cuda_open(SHIM_FULL, "dev:2");
    tn_driver *other = cuda_shim_open(SHIM_FULL);

    (void)state;
    fail_next(&c, TN_SIM_COPY, TN_ERR_DRIVER, 4242);
    fail_next(&c, TN_SIM_STREAM_INFO, TN_ERR_DRIVER, 0);
    assert_status(c.ops->stream_synchronize(c.self, (tn_stream)(uintptr_t)0x5550), TN_ERR_DRIVER);
    assert_int_equal(c.ops->last_code(c.self), 999);
    assert_null_text(tn_test_workers_run(2, own_code, &c));
    assert_int_equal(c.ops->last_code(c.self), 999);
    assert_int_equal(tn_driver_table(other)->last_code(tn_driver_self(other)), 0);
    tn_driver_destroy(other);
    tn_sim_fault_clear(c.sim);
    cuda_close(&c);
}

/* A device that cannot be opened is tried again at the next call. */
static void device_that_does_not_open_may_later(void **state) {
    struct cuda c = cuda_open(SHIM_FULL, "dev:2");
    void *p = NULL;

    (void)state;
    c.shim->retain_code[0] = 2;
    assert_status(c.ops->device_alloc(c.self, 0, 64, &p), TN_ERR_DEVICE_MEMORY);
    assert_ok(c.ops->pinned_alloc(c.self, 64, &p)); /* under device 1 */
    assert_ok(c.ops->pinned_free(c.self, p, 64));
    assert_int_equal(atomic_load(&c.shim->retained), 1);
    c.shim->retain_code[0] = 0;
    c.shim->pool_code = 999;
    assert_status(c.ops->device_alloc(c.self, 0, 64, &p), TN_ERR_DRIVER);
    assert_int_equal(c.ops->last_code(c.self), 999);
    assert_int_equal(atomic_load(&c.shim->retained), 1);
    c.shim->pool_code = 0;
    p = device_block(&c, 0, 64);
    assert_int_equal(atomic_load(&c.shim->retained), 2);
    assert_ok(c.ops->device_free(c.self, 0, p, 64));
    cuda_close(&c);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(driver_shut_down_counts_as_gone),
    cmocka_unit_test(driver_may_be_destroyed_after_its_end),
    cmocka_unit_test(context_destroyed_counts_as_gone),
    cmocka_unit_test(context_destroyed_is_not_that_of_another_device),
    cmocka_unit_test(device_lost_leaves_the_others),
    cmocka_unit_test(codes_have_their_meaning),
    cmocka_unit_test(code_is_of_the_thread_and_the_driver),
    cmocka_unit_test(device_that_does_not_open_may_later),
};

TN_TEST_MAIN("cuda.gone", tests)
