/* SPDX-License-Identifier: MIT */
/* Leases, movement and eviction by a manager over the driver: the basics of tests/spec that can run
 * on a real device, since every byte there is written and read by the driver's copies. */
#include "conf.h"

#include "tenure/tenure.h"

#define C0 tn_location_cuda(0)
#define HOST tn_location_pageable()
#define PINNED tn_location_pinned()

enum { BYTES = 1 << 20 };

static tn_manager *manager_with(struct conf *c, uint64_t device_bytes) {
    tn_budget budget = {C0, device_bytes};
    tn_config config = TN_CONFIG_INIT;
    tn_manager *m = NULL;

    config.driver = c->driver;
    config.mode = TN_MODE_CONCURRENT;
    config.budgets = &budget;
    config.budget_count = 1;
    assert_ok(tn_manager_create(&config, &m));
    return m;
}

static void manager_end(tn_manager *m) {
    assert_ok(tn_manager_close(m, 0));
    assert_ok(tn_manager_destroy(m));
}

/* A replicable value in pageable memory. */
static tn_handle value_of(struct conf *c, tn_manager *m, uint32_t seed) {
    uint64_t bytes = BYTES;
    tn_buffer *buffer = NULL;
    tn_handle handle;
    unsigned char *p;

    assert_ok(tn_buffer_create(c->driver, HOST, &bytes, 1, &buffer));
    p = tn_buffer_segment(buffer, 0).data;
    for (uint64_t i = 0; i < bytes; i++)
        p[i] = conf_byte(seed, i);
    assert_ok(tn_manager_adopt(m, tn_buffer_payload(buffer), HOST, TN_REPLICABLE, &handle));
    return handle;
}

static const void *lent(const tn_lease *lease, tn_handle handle) {
    const void *payload = NULL;

    assert_ok(tn_lease_lookup(lease, handle, &payload));
    return tn_buffer_segment(payload, 0).data;
}

/* The value's bytes where it is, read through the driver. */
static void check_at(struct conf *c, tn_manager *m, tn_handle handle, tn_location at,
                     uint32_t seed) {
    tn_stream stream = at.kind == TN_LOCATION_CUDA ? conf_stream(c, at.index) : NULL;
    unsigned char *copy = malloc(BYTES);
    tn_lease lease;

    assert_non_null(copy);
    assert_ok(tn_manager_acquire(m, &handle, 1, at, stream, &lease));
    assert_ok(c->ops->copy(c->self, copy, HOST, lent(&lease, handle), at, BYTES, NULL));
    assert_ok(tn_lease_release(&lease, TN_RELEASE_WAIT));
    if (stream != NULL)
        assert_ok(c->ops->stream_destroy(c->self, stream));
    conf_check(copy, seed, BYTES);
    free(copy);
}

static void value_keeps_its_bytes_wherever_it_goes(void **state) {
    struct conf *c = conf_of(state);
    tn_manager *m = manager_with(c, 4 * BYTES);
    tn_handle handle = value_of(c, m, 1);
    tn_stream stream = conf_stream(c, 0);
    tn_lease lease;

    if (conf_can_pin(c)) {
        assert_ok(tn_manager_ensure(m, handle, PINNED, NULL, NULL));
        check_at(c, m, handle, PINNED, 1);
        assert_ok(tn_manager_drop(m, handle, HOST, NULL)); /* the device is served from there */
    }
    assert_ok(tn_manager_ensure(m, handle, C0, stream, NULL));
    check_at(c, m, handle, C0, 1);
    if (conf_can_pin(c))
        assert_ok(tn_manager_drop(m, handle, PINNED, NULL));
    else
        assert_ok(tn_manager_drop(m, handle, HOST, NULL));
    assert_status(tn_manager_drop(m, handle, C0, NULL), TN_ERR_OWNERSHIP); /* the last one */
    for (uint32_t device = 1; device < c->devices && device < 3; device++) {
        assert_ok(tn_manager_ensure(m, handle, tn_location_cuda(device), NULL, NULL));
        check_at(c, m, handle, tn_location_cuda(device), 1);
    }
    assert_ok(tn_manager_move(m, handle, HOST, C0, NULL, NULL));
    check_at(c, m, handle, HOST, 1);
    assert_status(tn_manager_acquire(m, &handle, 1, C0, stream, &lease), TN_ERR_UNAVAILABLE);
    assert_ok(tn_manager_discard(m, handle, NULL));
    assert_ok(c->ops->stream_destroy(c->self, stream));
    manager_end(m);
}

static void eviction_makes_room_under_a_budget(void **state) {
    struct conf *c = conf_of(state);
    tn_manager *m = manager_with(c, 2 * BYTES);
    tn_handle handles[3];

    for (uint32_t i = 0; i < 3; i++)
        handles[i] = value_of(c, m, i);
    assert_ok(tn_manager_ensure(m, handles[0], C0, NULL, NULL));
    assert_ok(tn_manager_ensure(m, handles[1], C0, NULL, NULL));
    for (uint32_t i = 0; i < 12; i++) { /* round and round: each time the oldest goes */
        assert_status(tn_manager_ensure(m, handles[(i + 2) % 3], C0, NULL, NULL), TN_ERR_BUDGET);
        assert_ok(tn_manager_drop(m, handles[i % 3], C0, NULL));
        assert_ok(tn_manager_ensure(m, handles[(i + 2) % 3], C0, NULL, NULL));
        check_at(c, m, handles[(i + 1) % 3], C0, (i + 1) % 3);
        check_at(c, m, handles[(i + 2) % 3], C0, (i + 2) % 3);
    }
    manager_end(m);
}

/* Drops the value when its pending lease has been noticed. */
static void drop_when_done(tn_manager *m, tn_handle handle) {
    tn_status status;

    for (int i = 0; i < 10000; i++) {
        status = tn_manager_drop(m, handle, C0, NULL);
        if (status != TN_ERR_IN_USE)
            break;
        assert_ok(tn_manager_step(m, NULL));
    }
    assert_ok(status);
}

/* A read that is queued, after its lease was released: the value stays until it is done. */
static void queued_read_keeps_the_value(void **state) {
    struct conf *c = conf_of(state);
    tn_manager *m;
    tn_handle handle;
    tn_stream stream;
    unsigned char *copy;
    struct gate gate;
    tn_lease lease;

    if (!conf_can_pin(c))
        TN_SKIP("a queued copy to pageable memory may wait for its stream");
    m = manager_with(c, 2 * BYTES);
    handle = value_of(c, m, 7);
    stream = conf_stream(c, 0);
    copy = conf_pinned(c, BYTES);
    assert_ok(tn_manager_ensure(m, handle, C0, stream, NULL));
    gate_close(&gate, c, stream);
    assert_ok(tn_manager_acquire(m, &handle, 1, C0, stream, &lease));
    assert_ok(c->ops->copy(c->self, copy, PINNED, lent(&lease, handle), C0, BYTES, stream));
    assert_status(tn_manager_drop(m, handle, C0, NULL), TN_ERR_IN_USE); /* active */
    assert_ok(tn_lease_release(&lease, 0));
    assert_status(tn_manager_drop(m, handle, C0, NULL), TN_ERR_IN_USE); /* pending */
    assert_status(tn_manager_discard(m, handle, NULL), TN_ERR_IN_USE);
    assert_status(tn_manager_close(m, TN_CLOSE_NO_WAIT), TN_ERR_IN_USE);
    gate_open(&gate);
    assert_ok(c->ops->stream_synchronize(c->self, stream));
    conf_check(copy, 7, BYTES);
    drop_when_done(m, handle);
    gate_fini(&gate);
    assert_ok(c->ops->pinned_free(c->self, copy, BYTES));
    assert_ok(c->ops->stream_destroy(c->self, stream));
    manager_end(m);
}

/* Closing waits for what is queued. */
static void close_waits_for_a_queued_read(void **state) {
    struct conf *c = conf_of(state);
    tn_manager *m = manager_with(c, 2 * BYTES);
    tn_handle handle = value_of(c, m, 9);
    tn_stream stream = conf_stream(c, 0);
    void *other = conf_device(c, 0, BYTES);
    unsigned char *copy = malloc(BYTES);
    tn_lease lease;

    assert_non_null(copy);
    assert_ok(tn_manager_ensure(m, handle, C0, stream, NULL));
    for (int i = 0; i < 50; i++) {
        assert_ok(tn_manager_acquire(m, &handle, 1, C0, stream, &lease));
        assert_ok(c->ops->copy(c->self, other, C0, lent(&lease, handle), C0, BYTES, stream));
        assert_ok(tn_lease_release(&lease, 0));
    }
    assert_ok(tn_manager_close(m, 0));
    conf_get(c, copy, other, 0, BYTES);
    conf_check(copy, 9, BYTES);
    assert_ok(c->ops->stream_synchronize(c->self, stream));
    assert_ok(c->ops->device_free(c->self, 0, other, BYTES));
    assert_ok(c->ops->stream_destroy(c->self, stream));
    assert_ok(tn_manager_destroy(m));
    free(copy);
}

static void reserved_bytes_become_a_value(void **state) {
    struct conf *c = conf_of(state);
    tn_manager *m = manager_with(c, 2 * BYTES);
    tn_handle first = value_of(c, m, 3);
    tn_handle second = value_of(c, m, 4);
    unsigned char *pattern = conf_pattern(5, BYTES);
    uint64_t bytes = BYTES;
    tn_buffer *buffer = NULL;
    tn_reservation reservation;
    tn_handle result;

    assert_ok(tn_manager_reserve(m, C0, BYTES, "result", &reservation));
    assert_ok(tn_manager_ensure(m, first, C0, NULL, NULL));
    assert_status(tn_manager_ensure(m, second, C0, NULL, NULL), TN_ERR_BUDGET);
    assert_ok(tn_buffer_create(c->driver, C0, &bytes, 1, &buffer));
    conf_put(c, tn_buffer_segment(buffer, 0).data, 0, pattern, BYTES);
    assert_ok(tn_manager_adopt_reserved(m, tn_buffer_payload(buffer), C0, TN_EXCLUSIVE,
                                        &reservation, &result));
    assert_ok(tn_reservation_release(&reservation));
    assert_status(tn_manager_ensure(m, second, C0, NULL, NULL), TN_ERR_BUDGET);
    check_at(c, m, result, C0, 5);
    assert_ok(tn_manager_move(m, result, HOST, C0, NULL, NULL));
    check_at(c, m, result, HOST, 5);
    assert_ok(tn_manager_ensure(m, second, C0, NULL, NULL));
    manager_end(m);
    free(pattern);
}

/* Threads that load, read and evict the same values all the time. */
enum { THREADS = 4, VALUES = 6, ROUNDS = 150 };

struct crowd {
    struct conf *c;
    tn_manager *m;
    tn_handle handles[VALUES];
};

struct member {
    struct crowd *crowd;
    uint32_t index;
    uint64_t reads;
    const char *wrong;
};

static bool expected(tn_status status) {
    return status == TN_OK || status == TN_ERR_BUDGET || status == TN_ERR_IN_USE ||
           status == TN_ERR_UNAVAILABLE;
}

static bool bytes_are(const unsigned char *p, uint32_t seed) {
    for (uint64_t i = 0; i < BYTES; i++)
        if (p[i] != conf_byte(seed, i))
            return false;
    return true;
}

/* The copy of a value at `data`, queued, then its lease released, then awaited. */
static const char *read_lent(struct member *member, const tn_lease *lease, uint32_t n,
                             tn_stream stream, unsigned char *copy) {
    const struct crowd *crowd = member->crowd;
    const struct conf *c = crowd->c;
    const void *payload = NULL;
    tn_status status = tn_lease_lookup(lease, crowd->handles[n], &payload);

    if (status == TN_OK)
        status = c->ops->copy(c->self, copy, HOST, tn_buffer_segment(payload, 0).data, C0, BYTES,
                              stream);
    if (tn_lease_release(lease, 0) != TN_OK || status != TN_OK)
        return "a read could not be queued";
    if (c->ops->stream_synchronize(c->self, stream) != TN_OK)
        return "a stream failed";
    member->reads++;
    return bytes_are(copy, n) ? NULL : "wrong bytes were read";
}

static const char *one_round(struct member *member, uint32_t n, tn_stream stream,
                             unsigned char *copy) {
    struct crowd *crowd = member->crowd;
    tn_status status = tn_manager_ensure(crowd->m, crowd->handles[n], C0, stream, NULL);
    tn_lease lease;

    if (status == TN_ERR_BUDGET)
        status =
            tn_manager_drop(crowd->m, crowd->handles[(n + 1 + member->index) % VALUES], C0, NULL);
    if (!expected(status))
        return tn_status_name(status);
    status = tn_manager_acquire(crowd->m, &crowd->handles[n], 1, C0, stream, &lease);
    if (status == TN_OK)
        return read_lent(member, &lease, n, stream, copy);
    return expected(status) ? NULL : tn_status_name(status);
}

static void *be_member(void *context) {
    struct member *member = context;
    const struct conf *c = member->crowd->c;
    unsigned char *copy = malloc(BYTES);
    tn_stream stream = NULL;

    if (copy == NULL || c->ops->stream_create(c->self, 0, &stream) != TN_OK)
        member->wrong = "no stream";
    for (uint32_t i = 0; i < ROUNDS && member->wrong == NULL; i++)
        member->wrong = one_round(member, (i * 5 + member->index * 2) % VALUES, stream, copy);
    if (stream != NULL && c->ops->stream_destroy(c->self, stream) != TN_OK)
        member->wrong = "a stream cannot be destroyed";
    free(copy);
    return NULL;
}

static void crowd_reads_what_it_evicts(void **state) {
    struct conf *c = conf_of(state);
    struct crowd crowd = {.c = c, .m = manager_with(c, 3 * BYTES)};
    struct member members[THREADS];
    pthread_t threads[THREADS];
    uint64_t reads = 0;

    for (uint32_t n = 0; n < VALUES; n++)
        crowd.handles[n] = value_of(c, crowd.m, n);
    for (uint32_t i = 0; i < THREADS; i++) {
        members[i] = (struct member){.crowd = &crowd, .index = i};
        assert_int_equal(pthread_create(&threads[i], NULL, be_member, &members[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        if (members[i].wrong != NULL)
            fail_msg("thread %u: %s", i, members[i].wrong);
        reads += members[i].reads;
    }
    assert_true(reads > ROUNDS / 2);
    for (uint32_t n = 0; n < VALUES; n++)
        check_at(c, crowd.m, crowd.handles[n], HOST, n);
    manager_end(crowd.m);
}

static const struct CMUnitTest tests[] = {
    CONF_TEST(value_keeps_its_bytes_wherever_it_goes),
    CONF_TEST(eviction_makes_room_under_a_budget),
    CONF_TEST(queued_read_keeps_the_value),
    CONF_TEST(close_waits_for_a_queued_read),
    CONF_TEST(reserved_bytes_become_a_value),
    CONF_TEST(crowd_reads_what_it_evicts),
};

TN_TEST_MAIN("conformance.residency", tests)
