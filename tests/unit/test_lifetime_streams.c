/* SPDX-License-Identifier: MIT */
/*
 * src/lifetime/streams.c: adding a stream against the release of the lease and the reuse of its
 * record, in the window between the first look and the change of the list (M137, D11). The driver is
 * made to stall in that window.
 */
#include "core_fixture.h"

struct scene {
    struct spec *f;
    tn_manager *m;
    tn_handle v;
    tn_stream first, second;
    tn_lease lease;
};

static struct scene scene_of(struct spec *f) {
    struct scene s = {.f = f, .m = MANAGER(f)};
    s.v = adopt_rep(f, s.m, C0);
    s.first = spec_stream(f, 0);
    s.second = spec_stream(f, 0);
    s.lease = acquire(s.m, s.v, C0, s.first);
    return s;
}

/* The next call that asks what a stream is stalls until spec_repair(). */
static void stall_next_look(struct spec *f) {
    tn_sim_fault fault = TN_SIM_FAULT_INIT;
    fault.entry = TN_SIM_STREAM_INFO;
    fault.stall_ns = UINT64_MAX;
    assert_ok(tn_sim_fault_arm(f->sim, &fault));
}

static void start_adding(struct scene *s, struct op *op, struct args *x) {
    uint64_t calls = tn_sim_calls(s->f->sim, TN_SIM_STREAM_INFO);
    *x = (struct args){.m = s->m, .lease = s->lease, .stream = s->second};
    stall_next_look(s->f);
    OP_START(op, run_add_stream, x, 0);
    wait_until(tn_sim_calls(s->f->sim, TN_SIM_STREAM_INFO) > calls);
}

static uint64_t records(struct spec *f) { return tn_sim_calls(f->sim, TN_SIM_EVENT_RECORD); }

static void add_stream_after_a_release_in_its_window_is_closed(void **state) {
    struct scene s = scene_of(*state);
    struct args x;
    struct op adder;
    start_adding(&s, &adder, &x);
    release(&s.lease);
    (void)spec_repair(s.f);
    assert_status(op_end(&adder), TN_ERR_LIFETIME_CLOSED);
}

/* The record has another life, with streams of its own, which must not get this one. */
static void add_stream_after_reuse_in_its_window_leaves_the_new_lease_alone(void **state) {
    struct scene s = scene_of(*state);
    struct args x;
    struct op adder;
    start_adding(&s, &adder, &x);
    release(&s.lease);
    assert_ok(tn_manager_step(s.m, NULL));
    tn_lease next = acquire(s.m, s.v, C0, s.first);
    assert_ptr_equal(next.record, s.lease.record);
    (void)spec_repair(s.f);
    assert_status(op_end(&adder), TN_ERR_LIFETIME_CLOSED);
    uint64_t before = records(s.f);
    release(&next);
    assert_int_equal(records(s.f) - before, 1);
}

/* The same with the same stream list length: only the generation tells the lives apart. */
static void add_stream_after_reuse_by_a_host_lease_is_closed(void **state) {
    struct scene s = scene_of(*state);
    tn_handle h = adopt_rep(s.f, s.m, P);
    struct args x;
    struct op adder;
    start_adding(&s, &adder, &x);
    release(&s.lease);
    assert_ok(tn_manager_step(s.m, NULL));
    tn_lease next = acquire(s.m, h, P, NULL);
    assert_ptr_equal(next.record, s.lease.record);
    (void)spec_repair(s.f);
    assert_status(op_end(&adder), TN_ERR_LIFETIME_CLOSED);
    release(&next);
}

/* Another thread adds one in the window: both are there, in order, each once. */
static void add_stream_beside_another_keeps_both(void **state) {
    struct scene s = scene_of(*state);
    tn_stream third = spec_stream(s.f, 0);
    struct args x;
    struct op adder;
    start_adding(&s, &adder, &x);
    assert_ok(tn_lease_add_stream(&s.lease, third));
    (void)spec_repair(s.f);
    assert_status(op_end(&adder), TN_OK);
    assert_ok(tn_lease_add_stream(&s.lease, s.second)); /* known */
    uint64_t before = records(s.f);
    release(&s.lease);
    assert_int_equal(records(s.f) - before, 3);
}

/* M150: still possible after a forced close, and of no consequence. */
static void add_stream_after_a_forced_close_is_taken(void **state) {
    struct scene s = scene_of(*state);
    assert_ok(tn_manager_close(s.m, TN_CLOSE_FORCE));
    assert_int_equal(state_of(s.lease.record), TN__DETACHED);
    assert_ok(tn_lease_add_stream(&s.lease, s.second));
    release(&s.lease);
    assert_status(tn_lease_add_stream(&s.lease, s.second), TN_ERR_LIFETIME_CLOSED);
}

static void add_stream_checks_its_lease_and_stream(void **state) {
    struct scene s = scene_of(*state);
    tn_lease none = {NULL, 0}, host = acquire(s.m, adopt_rep(s.f, s.m, P), P, NULL);
    assert_status(tn_lease_add_stream(NULL, s.second), TN_ERR_KIND);
    assert_status(tn_lease_add_stream(&none, s.second), TN_ERR_LIFETIME_CLOSED);
    assert_status(tn_lease_add_stream(&host, s.second), TN_ERR_VALUE);
    assert_status(tn_lease_add_stream(&s.lease, spec_stream(s.f, 1)), TN_ERR_VALUE);
    assert_status(tn_lease_add_stream(&s.lease, TN_STREAM_PER_THREAD), TN_ERR_VALUE);
    assert_status(tn_lease_add_stream(&s.lease, NULL), TN_ERR_KIND);
    uint64_t before = records(s.f);
    release(&host);
    release(&s.lease);
    assert_int_equal(records(s.f) - before, 1);
}

/* A failed release opens the list again, in its order, and it can grow. */
static void stream_list_is_whole_again_after_a_failed_release(void **state) {
    struct scene s = scene_of(*state);
    assert_ok(tn_lease_add_stream(&s.lease, s.second));
    for (int i = 0; i < 2; i++) {
        spec_fault(s.f, TN_SIM_EVENT_RECORD, 1, 0, TN_ERR_DRIVER, 1);
        spec_fault(s.f, TN_SIM_STREAM_SYNCHRONIZE, 1, 0, TN_ERR_DRIVER, 2);
        assert_status(tn_lease_release(&s.lease, 0), TN_ERR_DRIVER);
        (void)spec_repair(s.f);
    }
    assert_ok(tn_lease_add_stream(&s.lease, s.second)); /* known */
    assert_ok(tn_lease_add_stream(&s.lease, spec_stream(s.f, 0)));
    uint64_t before = records(s.f);
    release(&s.lease);
    assert_int_equal(records(s.f) - before, 3);
}

/* What MC114's test hook leaves, and what a list begins with. */
static void stream_list_may_be_empty(void **state) {
    struct scene s = scene_of(*state);
    tn__slot *slot = own_slot(s.m);
    tn__record *record = tn__record_obtain(slot);
    tn__streams_open(record, 5, NULL, NULL);
    assert_null(tn__streams_close(record));
    assert_null(tn__streams_close(record));
    tn__streams_reopen(record, 6, NULL);
    assert_int_equal(tn__load_acq(&record->streams.low), 6);
    assert_null(tn__streams_close(record));
    tn__record_recycle(record, slot);
    release(&s.lease);
}

static const struct CMUnitTest tests[] = {
    SPEC_CONCURRENT(add_stream_after_a_release_in_its_window_is_closed),
    SPEC_CONCURRENT(add_stream_after_reuse_in_its_window_leaves_the_new_lease_alone),
    SPEC_CONCURRENT(add_stream_after_reuse_by_a_host_lease_is_closed),
    SPEC_CONCURRENT(add_stream_beside_another_keeps_both),
    SPEC_CONCURRENT(add_stream_after_a_forced_close_is_taken),
    SPEC_CONCURRENT(add_stream_checks_its_lease_and_stream),
    SPEC_CONCURRENT(stream_list_may_be_empty),
    SPEC_CONCURRENT(stream_list_is_whole_again_after_a_failed_release),
};

TN_TEST_MAIN("unit.lifetime_streams", tests)
