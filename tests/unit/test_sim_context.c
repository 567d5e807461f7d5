/* SPDX-License-Identifier: MIT */
/* src/driver/sim/sim_context.c: the lock that slow calls hold, what devices can do, pools that are
 * trimmed. */
#include "sim_machine.h"

#include <pthread.h>
#include <stdlib.h>

/* ---- The context's lock ------------------------------------------------------------------ */

struct call {
    struct machine *m;
    pthread_t thread;
    uint32_t device;
    tn_status status;
    uint64_t ended_ns;
};

static void *pin(void *argument) {
    struct call *c = argument;
    void *p = NULL;

    c->status = c->m->ops->pinned_alloc(c->m->self, 8, &p);
    c->ended_ns = tn_sim_now_ns(c->m->sim);
    return p;
}

static void *create_event(void *argument) {
    struct call *c = argument;
    tn_event e = NULL;

    c->status = c->m->ops->event_create(c->m->self, c->device, c->device * 2 + 1, &e);
    c->ended_ns = tn_sim_now_ns(c->m->sim);
    return e;
}

static void start(struct call *c, struct machine *m, void *(*body)(void *argument)) {
    c->m = m;
    c->status = TN_ERR_INTERNAL;
    assert_int_equal(pthread_create(&c->thread, NULL, body, c), 0);
}

static void *ended(struct call *c) {
    void *result = NULL;

    assert_int_equal(pthread_join(c->thread, &result), 0);
    assert_status(c->status, TN_OK);
    return result;
}

static void wait_calls(const struct machine *m, uint32_t entry, uint64_t calls) {
    while (tn_sim_calls(m->sim, entry) < calls)
        ;
}

static void pinned_memory_costs_time(void **state) {
    struct machine m = machine_open("pin=200ms");
    unsigned char *p = pinned_block(&m, 8);

    (void)state;
    assert_int_equal(now_ms(&m), 200);
    assert_ok(m.ops->pinned_free(m.self, p, 8));
    assert_int_equal(now_ms(&m), 400);
    machine_close(&m);
}

static void pinning_holds_the_lock_of_every_context(void **state) {
    struct machine m = machine_open("dev:2 pin=10ms");
    struct call pinning = {0};
    struct call waiting = {.device = 1};
    tn_stream s = stream_on(&m, 1);
    tn_stream_info info;
    tn_event before = event_on(&m, 1);

    (void)state;
    assert_ok(tn_sim_set_waits(m.sim, TN_SIM_WAITS_BLOCK));
    start(&pinning, &m, pin);
    while (tn_sim_stalled(m.sim) == 0)
        ;
    start(&waiting, &m, create_event);
    wait_calls(&m, TN_SIM_EVENT_CREATE, 2);
    /* what needs no lock goes on */
    assert_ok(m.ops->stream_info(m.self, s, &info));
    assert_ok(m.ops->event_record(m.self, before, s));
    assert_true(event_done(&m, before));
    advance_ms(&m, 9);
    assert_int_equal(waiting.status, TN_ERR_INTERNAL);
    advance_ms(&m, 1);
    ended(&waiting);
    assert_ok(tn_sim_set_waits(m.sim, TN_SIM_WAITS_ADVANCE));
    assert_ok(m.ops->pinned_free(m.self, ended(&pinning), 8));
    assert_true(pinning.ended_ns >= 10 * MS && waiting.ended_ns >= 10 * MS);
    machine_close(&m);
}

static void fault_with_lock_holds_one_context(void **state) {
    struct machine m = machine_open("dev:2");
    tn_sim_fault f = TN_SIM_FAULT_INIT;
    struct call slow = {0};
    struct call same = {0};
    struct call other = {.device = 1};

    (void)state;
    f.entry = TN_SIM_EVENT_CREATE;
    f.device = 0;
    f.stall_ns = UINT64_MAX;
    f.flags = TN_SIM_FAULT_LOCKS;
    assert_ok(tn_sim_fault_arm(m.sim, &f));
    start(&slow, &m, create_event);
    while (tn_sim_stalled(m.sim) == 0)
        ;
    start(&same, &m, create_event);
    wait_calls(&m, TN_SIM_EVENT_CREATE, 2);
    start(&other, &m, create_event);
    ended(&other);
    assert_int_equal(same.status, TN_ERR_INTERNAL);
    assert_int_equal(tn_sim_stalled(m.sim), 1);
    assert_int_equal(tn_sim_fault_clear(m.sim), 1);
    ended(&slow);
    ended(&same);
    assert_int_equal(tn_sim_stalled(m.sim), 0);
    machine_close(&m);
}

static void pinning_ends_when_the_driver_goes(void **state) {
    struct machine m = machine_open("pin=10ms");
    struct call pinning = {0};

    (void)state;
    assert_ok(tn_sim_set_waits(m.sim, TN_SIM_WAITS_BLOCK));
    start(&pinning, &m, pin);
    while (tn_sim_stalled(m.sim) == 0)
        ;
    assert_ok(tn_sim_set_state(m.sim, TN_SIM_SHUT_DOWN));
    pthread_join(pinning.thread, NULL);
    assert_status(pinning.status, TN_ERR_CLOSED);
    machine_close(&m);
}

/* ---- Capabilities ------------------------------------------------------------------------ */

static void pinning_needs_one_device_that_can(void **state) {
    struct machine m = machine_open("dev:2");
    void *p;

    (void)state;
    assert_int_equal(tn_sim_capabilities(m.sim, 1), TN_SIM_CAN_PIN);
    assert_int_equal(tn_sim_capabilities(m.sim, 2), 0);
    assert_ok(tn_sim_set_capabilities(m.sim, 0, 0));
    assert_int_equal(m.ops->capabilities(m.self), TN_DRIVER_HOST_ADDRESSABLE);
    assert_ok(m.ops->pinned_free(m.self, pinned_block(&m, 8), 8));
    assert_ok(tn_sim_set_capabilities(m.sim, 1, 0));
    assert_int_equal(m.ops->capabilities(m.self), TN_DRIVER_HOST_ADDRESSABLE | TN_DRIVER_NO_PINNED);
    assert_status(m.ops->pinned_alloc(m.self, 8, &p), TN_ERR_UNSUPPORTED);
    assert_ok(tn_sim_set_capabilities(m.sim, TN_SIM_ANY_DEVICE, TN_SIM_CAN_PIN));
    assert_ok(m.ops->pinned_free(m.self, pinned_block(&m, 8), 8));
    assert_status(tn_sim_set_capabilities(m.sim, 2, 0), TN_ERR_VALUE);
    assert_status(tn_sim_set_capabilities(m.sim, 0, 4), TN_ERR_VALUE);
    assert_status(tn_sim_set_capabilities(NULL, 0, 0), TN_ERR_KIND);
    machine_close(&m);
}

static tn_device_memory figures(const struct machine *m, uint32_t device) {
    tn_device_memory f;

    assert_ok(m->ops->device_memory(m->self, device, &f));
    return f;
}

static void memory_shared_with_the_host_is_counted_once(void **state) {
    struct machine m = machine_open("dev:1 mem=1000B host=shared");
    unsigned char *d = device_block(&m, 0, 300);
    unsigned char *p = pinned_block(&m, 500);
    void *more;

    (void)state;
    assert_int_equal(tn_sim_capabilities(m.sim, 0), TN_SIM_CAN_PIN | TN_SIM_SHARES_HOST);
    assert_int_equal(figures(&m, 0).total_bytes, 1000);
    assert_int_equal(figures(&m, 0).free_bytes, 200);
    assert_int_equal(figures(&m, 0).pool_used_bytes, 300);
    assert_status(m.ops->device_alloc(m.self, 0, 201, &more), TN_ERR_DEVICE_MEMORY);
    assert_status(m.ops->pinned_alloc(m.self, 201, &more), TN_ERR_HOST_MEMORY);
    /* what the pool holds in vain makes room */
    device_drop(&m, 0, d, 300);
    assert_int_equal(figures(&m, 0).pool_held_bytes, 300);
    assert_ok(m.ops->pinned_alloc(m.self, 400, &more));
    assert_int_equal(figures(&m, 0).pool_held_bytes, 100);
    assert_int_equal(figures(&m, 0).free_bytes, 0);
    assert_ok(m.ops->pinned_free(m.self, more, 400));
    assert_ok(m.ops->pinned_free(m.self, p, 500));
    assert_int_equal(figures(&m, 0).free_bytes, 900);
    /* switched off: two memories */
    p = pinned_block(&m, 500);
    assert_ok(tn_sim_set_capabilities(m.sim, 0, TN_SIM_CAN_PIN));
    device_drop(&m, 0, device_block(&m, 0, 1000), 1000);
    assert_ok(m.ops->pinned_free(m.self, p, 500));
    machine_close(&m);
}

static void memory_shared_by_one_device_only(void **state) {
    struct machine m = machine_open("dev:2 mem=1000B");
    unsigned char *p;

    (void)state;
    assert_ok(tn_sim_set_capabilities(m.sim, 1, TN_SIM_CAN_PIN | TN_SIM_SHARES_HOST));
    p = pinned_block(&m, 600);
    assert_int_equal(figures(&m, 0).free_bytes, 1000);
    assert_int_equal(figures(&m, 1).free_bytes, 400);
    assert_ok(m.ops->pinned_free(m.self, p, 600));
    machine_close(&m);
}

/* ---- Pools ------------------------------------------------------------------------------- */

static void pool_trimmed_keeps_what_is_asked_and_what_is_used(void **state) {
    struct machine m = machine_open("dev:2");
    unsigned char *a = device_block(&m, 0, 1000);
    unsigned char *b = device_block(&m, 0, 500);

    (void)state;
    device_drop(&m, 0, a, 1000);
    assert_int_equal(figures(&m, 0).pool_held_bytes, 1500);
    assert_ok(m.ops->pool_trim(m.self, 0, 1200));
    assert_int_equal(figures(&m, 0).pool_held_bytes, 1200);
    assert_ok(m.ops->pool_trim(m.self, 0, 2000));
    assert_int_equal(figures(&m, 0).pool_held_bytes, 1200);
    assert_ok(m.ops->pool_trim(m.self, 0, 0));
    assert_int_equal(figures(&m, 0).pool_held_bytes, 500);
    assert_int_equal(figures(&m, 0).pool_used_bytes, 500);
    device_drop(&m, 0, b, 500);
    assert_ok(m.ops->pool_trim(m.self, 0, 0));
    assert_int_equal(figures(&m, 0).pool_held_bytes, 0);
    assert_status(m.ops->pool_trim(m.self, 2, 0), TN_ERR_DRIVER);
    assert_int_equal(m.ops->last_code(m.self), 101);
    machine_close(&m);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(pinned_memory_costs_time),
    cmocka_unit_test(pinning_holds_the_lock_of_every_context),
    cmocka_unit_test(fault_with_lock_holds_one_context),
    cmocka_unit_test(pinning_ends_when_the_driver_goes),
    cmocka_unit_test(pinning_needs_one_device_that_can),
    cmocka_unit_test(memory_shared_with_the_host_is_counted_once),
    cmocka_unit_test(memory_shared_by_one_device_only),
    cmocka_unit_test(pool_trimmed_keeps_what_is_asked_and_what_is_used),
};

TN_TEST_MAIN("unit.sim_context", tests)
