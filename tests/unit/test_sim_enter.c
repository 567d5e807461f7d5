/* SPDX-License-Identifier: MIT */
/* src/driver/sim/sim_enter.c: counters, scripted faults (n-th, count, device, stall, for ever),
 * states, native codes. */
#include "sim_machine.h"

#include <pthread.h>

static tn_status try_alloc(const struct machine *m, uint32_t device) {
    void *p;
    tn_status status = m->ops->device_alloc(m->self, device, 64, &p);

    if (status == TN_OK)
        device_drop(m, device, p, 64);
    return status;
}

static void nothing(void *context) { (void)context; }

static void fault_strikes_the_nth_call_only(void **state) {
    struct machine m = machine_open(NULL);

    (void)state;
    arm(&m, TN_SIM_DEVICE_ALLOC, 3, 1, TN_ERR_DRIVER, 719);
    assert_ok(try_alloc(&m, 0));
    assert_ok(try_alloc(&m, 0));
    assert_status(try_alloc(&m, 0), TN_ERR_DRIVER);
    assert_int_equal(m.ops->last_code(m.self), 719);
    assert_ok(try_alloc(&m, 0));
    assert_int_equal(tn_sim_fault_clear(m.sim), 1);
    assert_int_equal(tn_sim_fault_clear(m.sim), 0);
    machine_close(&m);
}

static void fault_strikes_count_calls(void **state) {
    struct machine m = machine_open(NULL);

    (void)state;
    arm(&m, TN_SIM_DEVICE_ALLOC, 0, 2, TN_ERR_DEVICE_MEMORY, 2);
    assert_status(try_alloc(&m, 0), TN_ERR_DEVICE_MEMORY);
    assert_status(try_alloc(&m, 0), TN_ERR_DEVICE_MEMORY);
    assert_ok(try_alloc(&m, 0));
    assert_int_equal(tn_sim_fault_clear(m.sim), 2);
    machine_close(&m);
}

static void fault_without_count_sticks_until_cleared(void **state) {
    struct machine m = machine_open("dev:2");
    tn_sim_fault f = TN_SIM_FAULT_INIT;
    tn_stream s0 = stream_on(&m, 0);
    tn_stream s1 = stream_on(&m, 1);
    tn_event e0 = event_on(&m, 0);
    tn_event e1 = event_on(&m, 1);
    unsigned char *p = device_block(&m, 0, 8);
    unsigned char *q = device_block(&m, 1, 8);
    uint32_t done;
    int i;

    (void)state;
    f.device = 1;
    f.count = 0;
    f.status = TN_ERR_DEVICE_LOST;
    f.native_code = 719;
    assert_ok(tn_sim_fault_arm(m.sim, &f));
    for (i = 0; i < 10; i++) {
        assert_status(try_alloc(&m, 1), TN_ERR_DEVICE_LOST);
        assert_ok(try_alloc(&m, 0));
    }
    assert_status(m.ops->stream_synchronize(m.self, s1), TN_ERR_DEVICE_LOST);
    assert_ok(m.ops->stream_synchronize(m.self, s0));
    assert_status(m.ops->event_record(m.self, e1, s1), TN_ERR_DEVICE_LOST);
    assert_status(m.ops->event_query(m.self, e1, &done), TN_ERR_DEVICE_LOST);
    assert_ok(m.ops->event_query(m.self, e0, &done));
    assert_status(m.ops->copy(m.self, p, tn_location_cuda(0), q, tn_location_cuda(1), 8, NULL),
                  TN_ERR_DEVICE_LOST);
    assert_status(m.ops->copy(m.self, q, tn_location_cuda(1), p, tn_location_cuda(0), 8, s0),
                  TN_ERR_DEVICE_LOST);
    assert_int_equal(tn_sim_fault_clear(m.sim), 15);
    assert_ok(try_alloc(&m, 1));
    device_drop(&m, 0, p, 8);
    device_drop(&m, 1, q, 8);
    machine_close(&m);
}

static void fault_of_any_entry_counts_all_calls(void **state) {
    struct machine m = machine_open(NULL);
    tn_stream s = stream_on(&m, 0);

    (void)state;
    arm(&m, TN_SIM_ANY, 2, 1, TN_ERR_DRIVER, 1);
    assert_ok(m.ops->stream_synchronize(m.self, s));
    assert_status(m.ops->device_synchronize(m.self, 0), TN_ERR_DRIVER);
    assert_ok(m.ops->stream_synchronize(m.self, s));
    machine_close(&m);
}

static void faults_armed_together_count_each_call(void **state) {
    struct machine m = machine_open(NULL);

    (void)state;
    arm(&m, TN_SIM_DEVICE_ALLOC, 2, 1, TN_ERR_DRIVER, 11);
    arm(&m, TN_SIM_ANY, 1, 0, TN_ERR_DRIVER, 12);
    assert_status(try_alloc(&m, 0), TN_ERR_DRIVER);
    assert_int_equal(m.ops->last_code(m.self), 12);
    assert_status(try_alloc(&m, 0), TN_ERR_DRIVER);
    assert_int_equal(m.ops->last_code(m.self), 11);
    assert_status(try_alloc(&m, 0), TN_ERR_DRIVER);
    assert_int_equal(m.ops->last_code(m.self), 12);
    machine_close(&m);
}

static void fault_with_ok_only_takes_time(void **state) {
    struct machine m = machine_open(NULL);
    tn_sim_fault f = TN_SIM_FAULT_INIT;
    tn_stream s = stream_on(&m, 0);

    (void)state;
    f.entry = TN_SIM_PINNED_ALLOC;
    f.count = 0;
    f.stall_ns = 200 * MS;
    assert_ok(tn_sim_fault_arm(m.sim, &f));
    assert_ok(tn_sim_queue_delay(m.sim, s, 30 * MS));
    assert_ok(m.ops->pinned_free(m.self, pinned_block(&m, 64), 64));
    assert_int_equal(now_ms(&m), 200);
    assert_true(tn_sim_stream_idle(m.sim, s));
    assert_ok(m.ops->pinned_free(m.self, pinned_block(&m, 64), 64));
    assert_int_equal(now_ms(&m), 400);
    machine_close(&m);
}

struct call {
    struct machine *m;
    tn_status status;
    int64_t code;
};

static void *allocate(void *argument) {
    struct call *c = argument;

    c->status = try_alloc(c->m, 0);
    c->code = c->m->ops->last_code(c->m->self);
    return NULL;
}

static void stall_in_blocking_mode_waits_for_the_clock(void **state) {
    struct machine m = machine_open(NULL);
    tn_sim_fault f = TN_SIM_FAULT_INIT;
    struct call c = {&m, TN_ERR_INTERNAL, 0};
    pthread_t thread;

    (void)state;
    f.entry = TN_SIM_DEVICE_ALLOC;
    f.stall_ns = 10 * MS;
    assert_ok(tn_sim_fault_arm(m.sim, &f));
    assert_ok(tn_sim_set_waits(m.sim, TN_SIM_WAITS_BLOCK));
    assert_int_equal(pthread_create(&thread, NULL, allocate, &c), 0);
    while (tn_sim_calls(m.sim, TN_SIM_DEVICE_ALLOC) == 0)
        ;
    assert_int_equal(now_ms(&m), 0);
    advance_ms(&m, 10);
    pthread_join(thread, NULL);
    assert_status(c.status, TN_OK);
    machine_close(&m);
}

static void stall_without_end_lasts_until_faults_are_cleared(void **state) {
    struct machine m = machine_open(NULL);
    tn_sim_fault f = TN_SIM_FAULT_INIT;
    struct call c = {&m, TN_ERR_INTERNAL, 0};
    pthread_t thread;

    (void)state;
    f.entry = TN_SIM_DEVICE_ALLOC;
    f.stall_ns = UINT64_MAX;
    f.status = TN_ERR_DRIVER;
    f.native_code = 77;
    assert_ok(tn_sim_fault_arm(m.sim, &f));
    assert_int_equal(pthread_create(&thread, NULL, allocate, &c), 0);
    while (tn_sim_calls(m.sim, TN_SIM_DEVICE_ALLOC) == 0)
        ;
    advance_ms(&m, 1000);
    assert_int_equal(tn_sim_fault_clear(m.sim), 1);
    pthread_join(thread, NULL);
    assert_status(c.status, TN_ERR_DRIVER);
    assert_int_equal(c.code, 77);
    assert_int_equal(now_ms(&m), 1000);
    machine_close(&m);
}

static void stall_ends_when_the_driver_goes(void **state) {
    struct machine m = machine_open(NULL);
    tn_sim_fault f = TN_SIM_FAULT_INIT;
    struct call c = {&m, TN_ERR_INTERNAL, 0};
    pthread_t thread;

    (void)state;
    f.stall_ns = UINT64_MAX;
    assert_ok(tn_sim_fault_arm(m.sim, &f));
    assert_int_equal(pthread_create(&thread, NULL, allocate, &c), 0);
    while (tn_sim_calls(m.sim, TN_SIM_ANY) == 0)
        ;
    assert_ok(tn_sim_set_state(m.sim, TN_SIM_SHUT_DOWN));
    pthread_join(thread, NULL);
    assert_status(c.status, TN_ERR_CLOSED);
    assert_int_equal(c.code, 4);
    machine_close(&m);
}

/* Every entry of the table, called in a way that works. */
static tn_status call_entry(const struct machine *m, uint32_t entry) {
    tn_stream s = stream_on(m, 0);
    tn_event e = NULL;
    tn_stream_info info;
    tn_device_memory figures;
    tn_location at;
    uint32_t done;
    void *p = NULL;

    switch (entry) {
    case TN_SIM_DEVICE_ALLOC:
        return m->ops->device_alloc(m->self, 0, 8, &p);
    case TN_SIM_DEVICE_FREE:
        return m->ops->device_free(m->self, 0, device_block(m, 0, 8), 8);
    case TN_SIM_PINNED_ALLOC:
        return m->ops->pinned_alloc(m->self, 8, &p);
    case TN_SIM_PINNED_FREE:
        return m->ops->pinned_free(m->self, pinned_block(m, 8), 8);
    case TN_SIM_STREAM_CREATE:
        return m->ops->stream_create(m->self, 0, &s);
    case TN_SIM_STREAM_DESTROY:
        return m->ops->stream_destroy(m->self, s);
    case TN_SIM_STREAM_INFO:
        return m->ops->stream_info(m->self, s, &info);
    case TN_SIM_STREAM_SYNCHRONIZE:
        return m->ops->stream_synchronize(m->self, s);
    case TN_SIM_STREAM_WAIT:
        return m->ops->stream_wait(m->self, s, event_on(m, 0));
    case TN_SIM_EVENT_CREATE:
        return m->ops->event_create(m->self, 0, 1, &e);
    case TN_SIM_EVENT_DESTROY:
        return m->ops->event_destroy(m->self, event_on(m, 0));
    case TN_SIM_EVENT_RECORD:
        return m->ops->event_record(m->self, event_on(m, 0), s);
    case TN_SIM_EVENT_QUERY:
        return m->ops->event_query(m->self, event_on(m, 0), &done);
    case TN_SIM_EVENT_SYNCHRONIZE:
        return m->ops->event_synchronize(m->self, event_on(m, 0));
    case TN_SIM_COPY:
        return to_device(m, 0, device_block(m, 0, 8), "1234567", 8, s);
    case TN_SIM_DEVICE_SYNCHRONIZE:
        return m->ops->device_synchronize(m->self, 0);
    case TN_SIM_HOST_FUNCTION:
        return m->ops->host_function(m->self, s, nothing, NULL);
    case TN_SIM_DEVICE_MEMORY:
        return m->ops->device_memory(m->self, 0, &figures);
    case TN_SIM_POOL_TRIM:
        return m->ops->pool_trim(m->self, 0, 0);
    default:
        return m->ops->pointer_location(m->self, m, &at);
    }
}

static void every_entry_can_be_made_to_fail(void **state) {
    struct machine m = machine_open(NULL);
    uint32_t entry;

    (void)state;
    for (entry = TN_SIM_ANY + 1; entry < TN_SIM_FILE_OPEN; entry++) {
        uint64_t before = tn_sim_calls(m.sim, entry);

        arm(&m, entry, 1, 1, TN_ERR_DEVICE_LOST, 1000 + entry);
        assert_status(call_entry(&m, entry), TN_ERR_DEVICE_LOST);
        assert_int_equal(m.ops->last_code(m.self), 1000 + entry);
        assert_int_equal(tn_sim_fault_clear(m.sim), 1);
        assert_ok(call_entry(&m, entry));
        assert_true(tn_sim_calls(m.sim, entry) >= before + 2);
    }
    machine_close(&m);
}

static void fault_malformed_is_refused(void **state) {
    struct machine m = machine_open(NULL);
    tn_sim_fault f = TN_SIM_FAULT_INIT;

    (void)state;
    assert_status(tn_sim_fault_arm(m.sim, NULL), TN_ERR_KIND);
    assert_status(tn_sim_fault_arm(NULL, &f), TN_ERR_KIND);
    f.entry = TN_SIM_ENTRY_COUNT;
    assert_status(tn_sim_fault_arm(m.sim, &f), TN_ERR_KIND);
    f.entry = TN_SIM_COPY;
    f.flags = TN_SIM_FAULT_DIRECT << 1;
    assert_status(tn_sim_fault_arm(m.sim, &f), TN_ERR_KIND);
    f.flags = TN_SIM_FAULT_SHORT;
    assert_status(tn_sim_fault_arm(m.sim, &f), TN_ERR_VALUE);
    f.flags = 0;
    f.size = 4;
    assert_status(tn_sim_fault_arm(m.sim, &f), TN_ERR_KIND);
    machine_close(&m);
}

static void calls_are_counted_by_entry(void **state) {
    struct machine m = machine_open(NULL);
    tn_stream s = stream_on(&m, 0);

    (void)state;
    arm(&m, TN_SIM_STREAM_SYNCHRONIZE, 2, 1, TN_ERR_DRIVER, 1);
    assert_ok(m.ops->stream_synchronize(m.self, s));
    assert_status(m.ops->stream_synchronize(m.self, s), TN_ERR_DRIVER);
    assert_ok(try_alloc(&m, 0));
    assert_int_equal(tn_sim_calls(m.sim, TN_SIM_STREAM_SYNCHRONIZE), 2);
    assert_int_equal(tn_sim_calls(m.sim, TN_SIM_DEVICE_ALLOC), 1);
    assert_int_equal(tn_sim_calls(m.sim, TN_SIM_DEVICE_FREE), 1);
    assert_int_equal(tn_sim_calls(m.sim, TN_SIM_ANY), 4);
    assert_int_equal(tn_sim_calls(m.sim, TN_SIM_ENTRY_COUNT), 0);
    machine_close(&m);
}

static void code_belongs_to_thread_and_machine(void **state) {
    struct machine a = machine_open(NULL);
    struct machine b = machine_open(NULL);
    struct call c = {&a, TN_ERR_INTERNAL, -1};
    pthread_t thread;

    (void)state;
    arm(&a, TN_SIM_DEVICE_ALLOC, 1, 1, TN_ERR_DRIVER, 55);
    assert_int_equal(pthread_create(&thread, NULL, allocate, &c), 0);
    pthread_join(thread, NULL);
    assert_int_equal(c.code, 55);
    assert_int_equal(a.ops->last_code(a.self), 0);
    assert_status(b.ops->device_synchronize(b.self, 9), TN_ERR_DRIVER);
    assert_int_equal(b.ops->last_code(b.self), 101);
    assert_int_equal(a.ops->last_code(a.self), 0);
    machine_close(&b);
    machine_close(&a);
}

static void driver_gone_fails_every_call_with_its_code(void **state) {
    static const struct {
        uint32_t state;
        int64_t code;
    } gone[] = {{TN_SIM_SHUT_DOWN, 4}, {TN_SIM_CONTEXT_DESTROYED, 709}};
    int i;

    (void)state;
    for (i = 0; i < 2; i++) {
        struct machine m = machine_open(NULL);
        tn_stream s = stream_on(&m, 0);
        tn_event e = event_on(&m, 0);
        unsigned char *p = device_block(&m, 0, 8);
        tn_stream_info info;
        uint32_t done;

        assert_ok(tn_sim_set_state(m.sim, gone[i].state));
        assert_status(try_alloc(&m, 0), TN_ERR_CLOSED);
        assert_int_equal(m.ops->last_code(m.self), gone[i].code);
        assert_status(m.ops->stream_info(m.self, s, &info), TN_ERR_CLOSED);
        assert_status(m.ops->event_query(m.self, e, &done), TN_ERR_CLOSED);
        assert_status(m.ops->device_free(m.self, 0, p, 8), TN_ERR_CLOSED);
        assert_status(to_device(&m, 0, p, "1234567", 8, NULL), TN_ERR_CLOSED);
        assert_status(m.ops->pinned_alloc(m.self, 8, (void **)&p), TN_ERR_CLOSED);
        assert_int_equal(m.ops->last_code(m.self), gone[i].code);
        machine_close(&m);
    }
}

static void note(void *context) { *(int *)context = 1; }

static void work_queued_when_the_driver_goes_does_nothing(void **state) {
    struct machine m = machine_open(NULL);
    unsigned char *p = device_block(&m, 0, 8);
    tn_stream s = stream_on(&m, 0);
    tn_event e = event_on(&m, 0);
    unsigned char local[8] = {0};
    int noted = 0;

    (void)state;
    memset(p, 1, 8);
    assert_ok(tn_sim_queue_delay(m.sim, s, 10 * MS));
    assert_ok(to_host(&m, 0, local, p, 8, s));
    assert_ok(tn_sim_queue_write(m.sim, s, p, 8, 5, 0));
    assert_ok(m.ops->host_function(m.self, s, note, &noted));
    assert_ok(m.ops->event_record(m.self, e, s));
    assert_ok(tn_sim_set_state(m.sim, TN_SIM_SHUT_DOWN));
    assert_ok(tn_sim_run(m.sim));
    assert_true(all_bytes(local, 8, 0));
    assert_true(all_bytes(p, 8, 1));
    assert_int_equal(noted, 0);
    assert_ok(tn_sim_set_state(m.sim, TN_SIM_NORMAL));
    assert_true(event_done(&m, e));
    device_drop(&m, 0, p, 8);
    machine_close(&m);
}

static void pinning_switched_off_is_a_capability(void **state) {
    struct machine m = machine_open(NULL);
    void *p;

    (void)state;
    assert_int_equal(m.ops->capabilities(m.self), TN_DRIVER_HOST_ADDRESSABLE);
    assert_ok(tn_sim_set_state(m.sim, TN_SIM_NO_PINNED));
    assert_int_equal(m.ops->capabilities(m.self), TN_DRIVER_HOST_ADDRESSABLE | TN_DRIVER_NO_PINNED);
    assert_status(m.ops->pinned_alloc(m.self, 8, &p), TN_ERR_UNSUPPORTED);
    assert_int_equal(m.ops->last_code(m.self), 801);
    assert_ok(try_alloc(&m, 0));
    machine_close(&m);
}

static void pinned_memory_that_is_fake_says_pageable(void **state) {
    struct machine m = machine_open(NULL);
    tn_location at;
    void *p;

    (void)state;
    assert_ok(tn_sim_set_state(m.sim, TN_SIM_FAKE_PINNED));
    assert_ok(m.ops->pinned_alloc(m.self, 8, &p));
    assert_ok(m.ops->pointer_location(m.self, p, &at));
    assert_int_equal(at.kind, TN_LOCATION_PAGEABLE);
    assert_ok(m.ops->pinned_free(m.self, p, 8));
    machine_close(&m);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(fault_strikes_the_nth_call_only),
    cmocka_unit_test(fault_strikes_count_calls),
    cmocka_unit_test(fault_without_count_sticks_until_cleared),
    cmocka_unit_test(fault_of_any_entry_counts_all_calls),
    cmocka_unit_test(faults_armed_together_count_each_call),
    cmocka_unit_test(fault_with_ok_only_takes_time),
    cmocka_unit_test(stall_in_blocking_mode_waits_for_the_clock),
    cmocka_unit_test(stall_without_end_lasts_until_faults_are_cleared),
    cmocka_unit_test(stall_ends_when_the_driver_goes),
    cmocka_unit_test(every_entry_can_be_made_to_fail),
    cmocka_unit_test(fault_malformed_is_refused),
    cmocka_unit_test(calls_are_counted_by_entry),
    cmocka_unit_test(code_belongs_to_thread_and_machine),
    cmocka_unit_test(driver_gone_fails_every_call_with_its_code),
    cmocka_unit_test(work_queued_when_the_driver_goes_does_nothing),
    cmocka_unit_test(pinning_switched_off_is_a_capability),
    cmocka_unit_test(pinned_memory_that_is_fake_says_pageable),
};

TN_TEST_MAIN("unit.sim_enter", tests)
