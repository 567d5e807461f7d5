/* SPDX-License-Identifier: MIT */
/* src/driver/sim/sim_thread.c: streams on threads in real time (S2). What can be checked without
 * trusting the scheduler. */
#include "sim_machine.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "driver/sim/sim_priv.h"

static void copies_through_device_arrive(void **state) {
    struct machine m = machine_open("clock=threads link=host:10GBps latency=1us");
    const uint64_t bytes = 1 << 20;
    unsigned char *p = device_block(&m, 0, bytes);
    unsigned char *from = pinned_block(&m, bytes);
    unsigned char *to = calloc(1, bytes);
    tn_stream s = stream_on(&m, 0);
    tn_event e = event_on(&m, 0);
    uint64_t i;

    (void)state;
    assert_non_null(to);
    for (i = 0; i < bytes; i++)
        from[i] = (unsigned char)(i * 7 + i / 251);
    assert_ok(m.ops->copy(m.self, p, tn_location_cuda(0), from, tn_location_pinned(), bytes, s));
    assert_ok(to_host(&m, 0, to, p, bytes, s));
    assert_ok(m.ops->event_record(m.self, e, s));
    assert_ok(m.ops->event_synchronize(m.self, e));
    assert_memory_equal(to, from, bytes);
    memset(to, 0, bytes);
    assert_ok(to_host(&m, 0, to, p, bytes, NULL));
    assert_memory_equal(to, from, bytes);
    device_drop(&m, 0, p, bytes);
    assert_ok(m.ops->pinned_free(m.self, from, bytes));
    free(to);
    machine_close(&m);
}

static void work_takes_at_least_its_time(void **state) {
    struct machine m = machine_open("clock=threads latency=1ms");
    unsigned char *p = device_block(&m, 0, 8);
    tn_stream s = stream_on(&m, 0);
    uint64_t start;

    (void)state;
    start = tn_sim_now_ns(m.sim);
    assert_ok(tn_sim_queue_delay(m.sim, s, 2 * MS));
    assert_ok(to_device(&m, 0, p, "1234567", 8, s));
    assert_ok(m.ops->stream_synchronize(m.self, s));
    assert_true(tn_sim_now_ns(m.sim) - start >= 3 * MS);
    start = tn_sim_now_ns(m.sim);
    assert_ok(to_device(&m, 0, p, "1234567", 8, NULL));
    assert_true(tn_sim_now_ns(m.sim) - start >= 1 * MS);
    device_drop(&m, 0, p, 8);
    machine_close(&m);
}

/* Twenty copies of 1 ms over one link, from two streams: at least 20 ms in all. */
static void copies_of_two_streams_share_the_link(void **state) {
    struct machine m = machine_open("clock=threads latency=1ms");
    unsigned char *p = device_block(&m, 0, 64);
    tn_stream a = stream_on(&m, 0);
    tn_stream b = stream_on(&m, 0);
    tn_sim_traffic t = {.size = sizeof(t)};
    uint64_t start = tn_sim_now_ns(m.sim);
    int i;

    (void)state;
    for (i = 0; i < 10; i++) {
        assert_ok(to_device(&m, 0, p, "1234567", 8, a));
        assert_ok(to_device(&m, 0, p + 8, "1234567", 8, b));
    }
    assert_ok(m.ops->device_synchronize(m.self, 0));
    assert_true(tn_sim_now_ns(m.sim) - start >= 20 * MS);
    assert_ok(tn_sim_read_traffic(m.sim, tn_location_pageable(), tn_location_cuda(0), &t));
    assert_int_equal(t.copies, 20);
    assert_int_equal(t.busy_ns, 20 * MS);
    device_drop(&m, 0, p, 64);
    machine_close(&m);
}

static void clock_that_is_real_cannot_be_moved(void **state) {
    struct machine m = machine_open("clock=threads");

    (void)state;
    assert_status(tn_sim_advance(m.sim, 1), TN_ERR_MISUSE);
    assert_status(tn_sim_run(m.sim), TN_ERR_MISUSE);
    machine_close(&m);
}

static void add_one(void *context) { atomic_fetch_add((_Atomic int *)context, 1); }

static void stream_waits_for_event_of_another_stream(void **state) {
    struct machine m = machine_open("clock=threads dev:2");
    tn_stream a = stream_on(&m, 0);
    tn_stream b = stream_on(&m, 1);
    tn_event e = event_on(&m, 0);
    _Atomic int count = 0;

    (void)state;
    assert_ok(tn_sim_queue_delay(m.sim, a, 5 * MS));
    assert_ok(m.ops->host_function(m.self, a, add_one, &count));
    assert_ok(m.ops->event_record(m.self, e, a));
    assert_ok(m.ops->stream_wait(m.self, b, e));
    assert_ok(m.ops->stream_synchronize(m.self, b));
    assert_int_equal(count, 1);
    machine_close(&m);
}

static void stream_destroyed_finishes_its_work(void **state) {
    struct machine m = machine_open("clock=threads");
    tn_stream s = stream_on(&m, 0);
    _Atomic int count = 0;
    int i;

    (void)state;
    for (i = 0; i < 5; i++) {
        assert_ok(tn_sim_queue_delay(m.sim, s, MS / 2));
        assert_ok(m.ops->host_function(m.self, s, add_one, &count));
    }
    assert_ok(tn_sim_stream_destroy(m.sim, s));
    assert_ok(m.ops->device_synchronize(m.self, 0));
    assert_int_equal(count, 5);
    machine_close(&m);
}

static void machine_destroyed_early_ends_its_threads(void **state) {
    struct machine m = machine_open("clock=threads latency=10s");
    unsigned char *p = device_block(&m, 0, 8);
    unsigned char local[8] = {0};
    tn_stream a = stream_on(&m, 0);
    tn_stream b = stream_on(&m, 0);
    tn_stream c = stream_on(&m, 0);
    tn_event e = event_on(&m, 0);

    (void)state;
    memset(p, 1, 8);
    assert_ok(to_host(&m, 0, local, p, 4, a));
    assert_ok(m.ops->event_record(m.self, e, a));
    assert_ok(m.ops->stream_wait(m.self, b, e));
    assert_ok(tn_sim_queue_delay(m.sim, c, UINT64_MAX));
    assert_ok(tn_sim_queue_delay(m.sim, TN_STREAM_LEGACY, 10000 * MS));
    assert_ok(tn_sim_stream_destroy(m.sim, c));
    tn_sim_destroy(m.sim);
    assert_int_equal(local[3], 0);
}

static void free_under_a_running_read_is_a_violation(void **state) {
    struct machine m = machine_open("clock=threads");
    unsigned char *p = device_block(&m, 0, 64);
    tn_stream s = stream_on(&m, 0);

    (void)state;
    assert_ok(tn_sim_queue_read(m.sim, s, p, 64, 20 * MS));
    device_drop(&m, 0, p, 64);
    assert_ok(m.ops->stream_synchronize(m.self, s));
    machine_close_after(&m, 1);
}

static void stall_takes_real_time(void **state) {
    struct machine m = machine_open("clock=threads");
    tn_sim_fault f = TN_SIM_FAULT_INIT;
    uint64_t start = tn_sim_now_ns(m.sim);

    (void)state;
    f.entry = TN_SIM_DEVICE_SYNCHRONIZE;
    f.stall_ns = 3 * MS;
    assert_ok(tn_sim_fault_arm(m.sim, &f));
    assert_ok(m.ops->device_synchronize(m.self, 0));
    assert_true(tn_sim_now_ns(m.sim) - start >= 3 * MS);
    machine_close(&m);
}

struct meeting {
    pthread_barrier_t in;
    pthread_barrier_t out;
};

static void meet(void *context, void *destination, uint64_t bytes) {
    struct meeting *meeting = context;

    (void)destination;
    (void)bytes;
    pthread_barrier_wait(&meeting->in);
    pthread_barrier_wait(&meeting->out);
}

static void free_before_the_end_of_a_copy_is_a_violation(void **state) {
    struct machine m = machine_open("clock=threads");
    unsigned char *p = device_block(&m, 0, 64);
    tn_stream s = stream_on(&m, 0);
    struct meeting meeting;

    (void)state;
    pthread_barrier_init(&meeting.in, NULL, 2);
    pthread_barrier_init(&meeting.out, NULL, 2);
    tn_sim_on_copy(m.sim, meet, &meeting);
    assert_ok(to_device(&m, 0, p, "1234567", 8, s));
    pthread_barrier_wait(&meeting.in);
    device_drop(&m, 0, p, 64);
    pthread_barrier_wait(&meeting.out);
    assert_ok(m.ops->stream_synchronize(m.self, s));
    assert_non_null(strstr(tn_sim_violation_text(m.sim), "its destination at cuda:0"));
    pthread_barrier_destroy(&meeting.in);
    pthread_barrier_destroy(&meeting.out);
    machine_close_after(&m, 1);
}

struct block {
    const struct machine *m;
    void *p;
};

static void *free_block(void *argument) {
    const struct block *b = argument;

    return b->m->ops->device_free(b->m->self, 0, b->p, 64) == TN_OK ? NULL : argument;
}

static tn__sim_range *locked_find(const struct machine *m, const void *p) {
    tn__sim_range *range;

    tn__lock(&m->sim->lock);
    range = tn__sim_range_find(m->sim, p);
    tn__unlock(&m->sim->lock);
    return range;
}

/* S2: bytes that are being moved without the lock are not poisoned under the copy's feet. */
static void free_waits_for_bytes_in_motion(void **state) {
    struct machine m = machine_open("clock=threads");
    struct block b = {&m, device_block(&m, 0, 64)};
    tn__sim_range *range = locked_find(&m, b.p);
    pthread_t thread;
    void *failed;

    (void)state;
    memset(b.p, 1, 64);
    tn__lock(&m.sim->lock);
    range->busy++;
    tn__unlock(&m.sim->lock);
    assert_int_equal(pthread_create(&thread, NULL, free_block, &b), 0);
    while (locked_find(&m, b.p) != NULL)
        ;
    assert_true(all_bytes(b.p, 64, 1));
    tn__lock(&m.sim->lock);
    range->busy--;
    tn__cond_broadcast(&m.sim->changed);
    tn__unlock(&m.sim->lock);
    pthread_join(thread, &failed);
    assert_null(failed);
    assert_true(all_bytes(b.p, 64, TN_SIM_POISON));
    machine_close(&m);
}

/* Many threads, each with its streams, blocks and events, all at once. */
static const char *worker(int index, void *argument) {
    struct machine *m = argument;
    tn_stream_info info;
    tn_stream s;
    tn_event e;
    int i;

    TN_WORKER_STATUS(m->ops->stream_create(m->self, (uint32_t)index % 2, &s), TN_OK);
    TN_WORKER_STATUS(m->ops->stream_info(m->self, s, &info), TN_OK);
    TN_WORKER_STATUS(m->ops->event_create(m->self, info.device, info.context, &e), TN_OK);
    for (i = 0; i < 100; i++) {
        unsigned char in[512];
        unsigned char out[512] = {0};
        void *p;
        uint32_t done = 0;

        memset(in, index * 16 + i % 16, sizeof(in));
        TN_WORKER_STATUS(m->ops->device_alloc(m->self, info.device, 512, &p), TN_OK);
        TN_WORKER_STATUS(to_device(m, info.device, p, in, 512, s), TN_OK);
        TN_WORKER_STATUS(to_host(m, info.device, out, p, 512, s), TN_OK);
        TN_WORKER_STATUS(m->ops->event_record(m->self, e, s), TN_OK);
        if (i % 2 == 0)
            TN_WORKER_STATUS(m->ops->event_synchronize(m->self, e), TN_OK);
        while (!done)
            TN_WORKER_STATUS(m->ops->event_query(m->self, e, &done), TN_OK);
        TN_WORKER_CHECK(memcmp(in, out, sizeof(in)) == 0);
        TN_WORKER_STATUS(m->ops->device_free(m->self, info.device, p, 512), TN_OK);
    }
    TN_WORKER_STATUS(m->ops->event_destroy(m->self, e), TN_OK);
    TN_WORKER_STATUS(m->ops->stream_destroy(m->self, s), TN_OK);
    return NULL;
}

static void many_threads_share_the_machine(void **state) {
    static const char *const clocks[] = {"dev:2 clock=threads", "dev:2 clock=virtual"};
    int i;

    (void)state;
    for (i = 0; i < 2; i++) {
        struct machine m = machine_open(clocks[i]);

        assert_null_text(tn_test_workers_run(4, worker, &m));
        assert_int_equal(tn_sim_live_events(m.sim), 0);
        assert_int_equal(tn_sim_live_streams(m.sim), 0);
        machine_close(&m);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(copies_through_device_arrive),
    cmocka_unit_test(work_takes_at_least_its_time),
    cmocka_unit_test(copies_of_two_streams_share_the_link),
    cmocka_unit_test(clock_that_is_real_cannot_be_moved),
    cmocka_unit_test(stream_waits_for_event_of_another_stream),
    cmocka_unit_test(stream_destroyed_finishes_its_work),
    cmocka_unit_test(machine_destroyed_early_ends_its_threads),
    cmocka_unit_test(free_under_a_running_read_is_a_violation),
    cmocka_unit_test(stall_takes_real_time),
    cmocka_unit_test(free_before_the_end_of_a_copy_is_a_violation),
    cmocka_unit_test(free_waits_for_bytes_in_motion),
    cmocka_unit_test(many_threads_share_the_machine),
};

TN_TEST_MAIN("unit.sim_thread", tests)
