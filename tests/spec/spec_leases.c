/* SPDX-License-Identifier: MIT */
/*
 * Leases: acquire, lookup, streams, release and its failures (M128..M150; cases MC93, MC94,
 * MC96..MC104, MC109, MC111, MC114).
 *
 * An ended lease names nothing any longer: its handles and location answer TN_ERR_LIFETIME_CLOSED
 * (departure, see lease.h).
 */
#include "spec_b_common.h"

#include "lifetime/lifetime_internal.h"

/* Native codes of injected driver failures. */
#define CODE_RECORD 701
#define CODE_WAIT 704

static uint64_t calls(struct spec *f, uint32_t entry) { return tn_sim_calls(f->sim, entry); }

/* A replicable value at P and C0. */
static tn_handle adopt_on_device(struct spec *f, tn_manager *m) {
    tn_handle v = adopt_rep(f, m, P);

    ensure(m, v, C0);
    return v;
}

/* (uses, holds, pending) of a materialization. */
static void assert_counts(tn_manager *m, tn_handle h, tn_location at, uint64_t uses, uint64_t holds,
                          uint64_t pending) {
    tn_materialization_info row = mat(m, h, at);

    assert_int_equal(row.use_count, uses);
    assert_int_equal(row.hold_count, holds);
    assert_int_equal(row.pending_count, pending);
}

/* ---- Collections ---------------------------------------------------------------------------- */

static void mc093_one_absent_value_refuses_the_whole_set(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle a = adopt_rep(f, m, P);
    tn_handle b = adopt_rep(f, m, P);
    tn_handle c = register_src(m, spec_source(f));
    const tn_handle set[] = {a, c};
    const tn_handle longer[] = {a, b, c};
    tn_lease lease = {NULL, 0};
    tn_hold h = {NULL, 0};
    uint64_t before = version(m);

    assert_status(tn_manager_acquire(m, set, 2, P, NULL, &lease), TN_ERR_UNAVAILABLE);
    assert_handle(tn_last_error()->handle, c);
    assert_at(tn_last_error()->at, P);
    assert_int_equal(tn_last_error()->busy, 0);
    assert_status(tn_manager_hold(m, set, 2, P, &h), TN_ERR_UNAVAILABLE);
    assert_handle(tn_last_error()->handle, c);
    assert_at(tn_last_error()->at, P);
    assert_status(tn_manager_acquire(m, longer, 3, P, NULL, &lease), TN_ERR_UNAVAILABLE);
    assert_status(tn_manager_hold(m, longer, 3, P, &h), TN_ERR_UNAVAILABLE);
    assert_null(lease.record); /* outputs are written only on success */
    assert_null(h.record);
    assert_counts(m, a, P, 0, 0, 0);
    assert_counts(m, b, P, 0, 0, 0);
    assert_int_equal(info(m).lease_count, 0);
    assert_int_equal(info(m).hold_count, 0);
    assert_int_equal(version(m), before);
    assert_locations(m, P);
    discard(m, a);
}

static void mc094_duplicates_collapse(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_payload pa = spec_v(f, P);
    tn_payload pb = spec_v(f, P);
    tn_handle a = spec_adopt(m, pa, P, TN_REPLICABLE);
    tn_handle b = spec_adopt(m, pb, P, TN_REPLICABLE);
    const tn_handle set[] = {a, b, a};
    tn_handle listed[3] = {{0, 0, NULL}};
    tn_lease lease;
    tn_lease old;
    const void *data = NULL;
    tn_location at = NOWHERE;
    size_t count = 3;
    bool in = false;

    assert_ok(tn_manager_acquire(m, set, 3, P, NULL, &lease));
    old = lease;
    assert_ok(tn_lease_handles(&lease, listed, &count));
    assert_int_equal(count, 2);
    assert_handle(listed[0], a);
    assert_handle(listed[1], b);
    count = 1; /* too little room: the real total, and what fits */
    assert_ok(tn_lease_handles(&lease, listed, &count));
    assert_int_equal(count, 2);
    count = 0;
    assert_ok(tn_lease_handles(&lease, NULL, &count));
    assert_int_equal(count, 2);
    assert_ok(tn_lease_lookup(&lease, a, &data));
    assert_ptr_equal(data, pa.data);
    assert_ok(tn_lease_lookup(&lease, b, &data));
    assert_ptr_equal(data, pb.data);
    assert_true(tt_check(data, 1));
    assert_ok(tn_lease_location(&lease, &at));
    assert_at(at, P);
    assert_true(tn_lease_active(&lease));
    assert_counts(m, a, P, 1, 0, 0); /* one use per lease, not per occurrence */
    assert_int_equal(loc(m, P).use_count, 2);
    assert_in_use(tn_manager_discard(m, a, NULL), 1, 0, 0);
    assert_handle(tn_last_error()->handle, a);
    assert_at(tn_last_error()->at, P);

    release(&lease);
    release(&lease);
    release(&old);
    assert_false(tn_lease_active(&lease));
    assert_false(tn_lease_active(&old));
    count = 3;
    data = NULL;
    assert_status(tn_lease_lookup(&old, a, &data), TN_ERR_LIFETIME_CLOSED);
    assert_null(data);
    assert_status(tn_lease_handles(&old, listed, &count), TN_ERR_LIFETIME_CLOSED);
    assert_int_equal(count, 3);
    count = 0;
    assert_status(tn_lease_handles(&old, NULL, &count), TN_ERR_LIFETIME_CLOSED);
    assert_status(tn_lease_contains(&old, a, &in), TN_ERR_LIFETIME_CLOSED);
    assert_status(tn_lease_location(&old, &at), TN_ERR_LIFETIME_CLOSED);
    assert_status(tn_lease_add_stream(&old, spec_stream(f, 0)), TN_ERR_LIFETIME_CLOSED);
    assert_counts(m, a, P, 0, 0, 0);
    discard(m, a);
}

/* The record of an ended lease is used again; what was taken from the old one stays ended. */
static void mc094_a_reused_record_keeps_old_leases_ended(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle a = adopt_rep(f, m, P);
    tn_lease old = acquire(m, a, P, NULL);
    const void *data = NULL;

    release(&old);
    for (int i = 0; i < 100; i++) {
        tn_lease fresh = acquire(m, a, P, NULL);

        assert_status(tn_lease_lookup(&old, a, &data), TN_ERR_LIFETIME_CLOSED);
        release(&old);
        assert_true(tn_lease_active(&fresh));
        assert_counts(m, a, P, 1, 0, 0);
        release(&fresh);
    }
}

static void mc096_empty_and_alien_collections(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle a = adopt_rep(f, m, P);
    const tn_handle mixed[] = {a, NOT_A_HANDLE};
    tn_lease lease = {NULL, 0};
    tn_hold h = {NULL, 0};
    uint64_t before = version(m);

    for (int closed = 0; closed <= 1; closed++) { /* before any state, so also when closed (M128) */
        assert_status(tn_manager_acquire(m, &a, 0, P, NULL, &lease), TN_ERR_VALUE);
        assert_status(tn_manager_hold(m, &a, 0, P, &h), TN_ERR_VALUE);
        assert_status(tn_manager_acquire(m, mixed, 2, P, NULL, &lease), TN_ERR_KIND);
        assert_status(tn_manager_hold(m, mixed, 2, P, &h), TN_ERR_KIND);
        assert_status(tn_manager_acquire(m, NULL, 1, P, NULL, &lease), TN_ERR_KIND);
        assert_status(tn_manager_hold(m, NULL, 1, P, &h), TN_ERR_KIND);
        assert_status(tn_manager_acquire(m, &a, 1, P, NULL, NULL), TN_ERR_KIND);
        assert_status(tn_manager_hold(m, &a, 1, P, NULL), TN_ERR_KIND);
        assert_null(lease.record);
        assert_null(h.record);
        if (closed)
            break;
        assert_int_equal(version(m), before);
        assert_ok(tn_manager_close(m, 0));
    }
    assert_status(tn_manager_acquire(NULL, &a, 1, P, NULL, &lease), TN_ERR_KIND);
    assert_status(tn_manager_hold(NULL, &a, 1, P, &h), TN_ERR_KIND);
    assert_status(tn_lease_release(NULL, 0), TN_ERR_KIND);
    assert_status(tn_hold_release(NULL), TN_ERR_KIND);
    release(&lease); /* an all-zero lease or hold is none */
    release_hold(&h);
    assert_false(tn_lease_active(NULL));
    assert_false(tn_lease_active(&lease));
    assert_false(tn_hold_active(&h));
}

/* More values than any record is likely to hold in place. */
static void mc094_a_large_set_is_one_lease(void **state) {
    enum { COUNT = 200 };
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle set[2 * COUNT];
    tn_handle listed[2 * COUNT];
    const void *data = NULL;
    size_t count = 2 * COUNT;
    tn_lease lease;

    for (int i = 0; i < COUNT; i++)
        set[i] = set[2 * COUNT - 1 - i] = adopt_rep(f, m, P);
    assert_rises(m, 1, assert_ok(tn_manager_acquire(m, set, 2 * COUNT, P, NULL, &lease)));
    assert_ok(tn_lease_handles(&lease, listed, &count));
    assert_int_equal(count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        assert_handle(listed[i], set[i]);
        assert_ok(tn_lease_lookup(&lease, set[i], &data));
    }
    assert_int_equal(loc(m, P).use_count, COUNT);
    assert_int_equal(info(m).lease_count, 1);
    assert_null_text(spec_b_check(m));
    assert_rises(m, 1, release(&lease));
    assert_int_equal(loc(m, P).use_count, 0);
}

static void mc097_lookup_of_a_value_outside_the_lease(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle a = adopt_rep(f, m, P);
    tn_handle b = adopt_rep(f, m, P);
    tn_lease lease = acquire(m, a, P, NULL);
    const void *data = NULL;
    bool in = true;

    assert_status(tn_lease_lookup(&lease, b, &data), TN_ERR_LOOKUP);
    assert_null(data);
    assert_ok(tn_lease_contains(&lease, b, &in));
    assert_false(in);
    assert_ok(tn_lease_contains(&lease, a, &in));
    assert_true(in);
    assert_status(tn_lease_lookup(&lease, a, NULL), TN_ERR_KIND);
    assert_status(tn_lease_lookup(NULL, a, &data), TN_ERR_KIND);
    release(&lease);
}

static void mc098_uses_and_holds_add_up(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_lease first = acquire(m, v, P, NULL);
    tn_lease second = acquire(m, v, P, NULL);
    tn_hold h = hold(m, v, P);

    assert_counts(m, v, P, 2, 1, 0);
    assert_int_equal(loc(m, P).use_count, 2);
    assert_int_equal(loc(m, P).hold_count, 1);
    assert_in_use(tn_manager_discard(m, v, NULL), 2, 1, 0);
    ensure(m, v, N); /* none of them is in the way of a copy (M156) */
    assert_in_use(tn_manager_drop(m, v, P, NULL), 2, 1, 0);
    assert_in_use(tn_manager_move(m, v, C0, P, NULL, NULL), 2, 1, 0);
    move_from(m, v, C0, N);
    release(&first);
    assert_in_use(tn_manager_discard(m, v, NULL), 1, 1, 0);
    release(&second);
    assert_in_use(tn_manager_discard(m, v, NULL), 0, 1, 0);
    release_hold(&h);
    discard(m, v);
}

/* ---- Streams -------------------------------------------------------------------------------- */

static void mc099_acquire_checks_its_stream(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_on_device(f, m);
    tn_stream s0 = spec_stream(f, 0);
    tn_stream s1 = spec_stream(f, 1);
    tn_lease lease = {NULL, 0};
    char *before = spec_describe(m, 0);

    assert_status(tn_manager_acquire(m, &v, 1, C0, NULL, &lease), TN_ERR_VALUE);
    assert_status(tn_manager_acquire(m, &v, 1, C0, s1, &lease), TN_ERR_VALUE);
    assert_status(tn_manager_acquire(m, &v, 1, C0, spec_b_not_a_stream(), &lease), TN_ERR_KIND);
    assert_status(tn_manager_acquire(m, &v, 1, P, s0, &lease), TN_ERR_VALUE);
    assert_null(lease.record);
    assert_unchanged(m, before, 0);
}

static void mc099_adding_a_stream_checks_it(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_on_device(f, m);
    tn_stream s0 = spec_stream(f, 0);
    tn_stream s1 = spec_stream(f, 1);
    tn_lease host = acquire(m, v, P, NULL);
    tn_lease device = acquire(m, v, C0, s0);
    uint64_t before = version(m);

    assert_status(tn_lease_add_stream(&host, s0), TN_ERR_VALUE);
    assert_status(tn_lease_add_stream(&device, s1), TN_ERR_VALUE);
    assert_status(tn_lease_add_stream(&device, spec_b_not_a_stream()), TN_ERR_KIND);
    assert_status(tn_lease_add_stream(&device, NULL), TN_ERR_KIND);
    assert_status(tn_lease_add_stream(NULL, s0), TN_ERR_KIND);
    assert_ok(tn_lease_add_stream(&device, s0)); /* registered already */
    assert_int_equal(version(m), before);
    assert_true(tn_lease_active(&host));
    assert_true(tn_lease_active(&device));
    release(&host);
    release(&device);
    assert_status(tn_lease_add_stream(&host, s0), TN_ERR_LIFETIME_CLOSED);
    assert_status(tn_lease_add_stream(&device, s0), TN_ERR_LIFETIME_CLOSED);
    assert_status(tn_lease_add_stream(&device, spec_b_not_a_stream()), TN_ERR_LIFETIME_CLOSED);
}

static void mc099_thread_relative_and_capturing_streams_are_refused(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_on_device(f, m);
    tn_stream s0 = spec_stream(f, 0);
    tn_stream capturing = NULL;
    tn_lease lease = {NULL, 0};
    uint64_t before = version(m);

    assert_ok(tn_sim_stream_create(f->sim, 0, TN_SIM_STREAM_CAPTURING, &capturing));
    assert_status(tn_manager_acquire(m, &v, 1, C0, TN_STREAM_PER_THREAD, &lease), TN_ERR_VALUE);
    assert_status(tn_manager_acquire(m, &v, 1, C0, capturing, &lease), TN_ERR_VALUE);
    assert_int_equal(version(m), before);
    lease = acquire(m, v, C0, s0);
    assert_status(tn_lease_add_stream(&lease, TN_STREAM_PER_THREAD), TN_ERR_VALUE);
    assert_status(tn_lease_add_stream(&lease, capturing), TN_ERR_VALUE);
    release(&lease);
    assert_ok(tn_sim_stream_destroy(f->sim, capturing));
}

static void mc100_pending_until_all_streams_are_done(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_on_device(f, m);
    tn_stream s1 = spec_stream(f, 0);
    tn_stream s2 = spec_stream(f, 0);
    tn_lease lease = acquire(m, v, C0, s1);
    uint64_t recorded;
    uint64_t all;

    spec_own_table(f);
    assert_ok(tn_lease_add_stream(&lease, s1));
    assert_ok(tn_lease_add_stream(&lease, s2));
    assert_ok(tn_sim_queue_delay(f->sim, s1, 1000));
    assert_ok(tn_sim_queue_delay(f->sim, s2, 2000));
    recorded = calls(f, TN_SIM_EVENT_RECORD);
    all = calls(f, TN_SIM_ANY) - calls(f, TN_SIM_EVENT_CREATE);
    release(&lease);
    assert_int_equal(calls(f, TN_SIM_EVENT_RECORD) - recorded, 2);
    /* nothing is synchronised, in fact nothing else is called (M139, L3) */
    assert_int_equal(calls(f, TN_SIM_ANY) - calls(f, TN_SIM_EVENT_CREATE) - all, 2);
    assert_false(spec_idle(f, s1));
    assert_false(tn_lease_active(&lease));

    assert_counts(m, v, C0, 0, 0, 1);
    assert_int_equal(loc(m, C0).use_count, 0);
    assert_int_equal(loc(m, C0).pending_count, 1); /* one lease, though two events (M140) */
    assert_int_equal(info(m).pending_lease_count, 1);
    assert_in_use(tn_manager_drop(m, v, C0, NULL), 0, 0, 1);
    assert_ok(tn_sim_advance(f->sim, 1000));
    assert_true(spec_idle(f, s1));
    assert_false(spec_idle(f, s2));
    assert_counts(m, v, C0, 0, 0, 1);
    assert_in_use(tn_manager_drop(m, v, C0, NULL), 0, 0, 1);
    spec_finish(f);
    drop(m, v, C0); /* sees the completion by its own reap */
    assert_int_equal(used(m, C0), 0);
    assert_int_equal(loc(m, C0).pending_count, 0);
}

/* Events belong to a context: a stream of another one on the same device is a consumer like any. */
static void mc100_streams_of_two_contexts(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_on_device(f, m);
    tn_stream s1 = spec_stream(f, 0);
    tn_stream s2 = NULL;
    tn_lease lease;

    assert_ok(tn_sim_stream_create(f->sim, 0, TN_SIM_STREAM_SECOND_CONTEXT, &s2));
    lease = acquire(m, v, C0, s1);
    assert_ok(tn_lease_add_stream(&lease, s2));
    assert_ok(tn_sim_queue_delay(f->sim, s2, 2000));
    release(&lease);
    assert_counts(m, v, C0, 0, 0, 1);
    assert_in_use(tn_manager_drop(m, v, C0, NULL), 0, 0, 1);
    spec_finish(f);
    drop(m, v, C0);
    assert_ok(tn_sim_stream_destroy(f->sim, s2));
    assert_int_equal(tn_sim_violations(f->sim), 0);
}

/* ---- Release -------------------------------------------------------------------------------- */

static const char *release_waiting(int index, void *arg) {
    (void)index;
    TN_WORKER_STATUS(tn_lease_release(arg, TN_RELEASE_WAIT), TN_OK);
    return NULL;
}

static void mc101_waiting_release_on_another_thread(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_on_device(f, m);
    tn_stream s = spec_stream(f, 0);
    uint64_t before = version(m);
    tn_lease lease = acquire(m, v, C0, s);

    spec_busy(f, s);
    assert_null_text(tn_test_workers_run(1, release_waiting, &lease));
    assert_true(spec_idle(f, s));
    assert_false(tn_lease_active(&lease));
    assert_int_equal(version(m) - before, 3); /* acquired, pending, completed */
    assert_counts(m, v, C0, 0, 0, 0);
    drop(m, v, C0);
    assert_int_equal(used(m, C0), 0);
}

static void mc102_recording_fails_half_way(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_on_device(f, m);
    tn_stream s1 = spec_stream(f, 0);
    tn_stream s2 = spec_stream(f, 0);
    tn_lease lease = acquire(m, v, C0, s1);
    uint64_t before = version(m);
    uint64_t synchronized;

    assert_ok(tn_lease_add_stream(&lease, s2));
    spec_busy(f, s1);
    spec_busy(f, s2);
    synchronized = calls(f, TN_SIM_STREAM_SYNCHRONIZE);
    spec_fault(f, TN_SIM_EVENT_RECORD, 2, 1, TN_ERR_DRIVER, CODE_RECORD);
    release(&lease);
    assert_int_equal(spec_repair(f), 1);
    assert_int_equal(calls(f, TN_SIM_STREAM_SYNCHRONIZE) - synchronized, 2);
    assert_true(spec_idle(f, s1));
    assert_true(spec_idle(f, s2));
    assert_int_equal(spec_warnings(f, TN_DIAGNOSTIC_RELEASE_FALLBACK), 1);
    assert_int_equal(spec_warnings_all(f), 1);
    assert_int_equal(f->last_warning_manager, tn_manager_id(m));
    assert_at(f->last_warning_at, C0);
    assert_string_not_equal(f->last_warning, "");
    assert_false(tn_lease_active(&lease));
    assert_int_equal(version(m) - before, 1);
    assert_counts(m, v, C0, 0, 0, 0);
    assert_int_equal(info(m).pending_lease_count, 0);
    drop(m, v, C0);
}

static void mc103_recording_and_fallback_fail(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_on_device(f, m);
    tn_stream s = spec_stream(f, 0);
    tn_lease lease = acquire(m, v, C0, s);
    const void *data = NULL;
    uint64_t before = version(m);

    spec_fault(f, TN_SIM_EVENT_RECORD, 1, 0, TN_ERR_DRIVER, CODE_WAIT);
    spec_fault(f, TN_SIM_STREAM_SYNCHRONIZE, 1, 0, TN_ERR_DRIVER, CODE_WAIT);
    for (int i = 0; i < 2; i++) { /* it can be tried again, with and without waiting */
        assert_status(tn_lease_release(&lease, i ? TN_RELEASE_WAIT : 0), TN_ERR_DRIVER);
        assert_int_equal(tn_last_error()->native_code, CODE_WAIT);
        assert_true(tn_lease_active(&lease));
        assert_ok(tn_lease_lookup(&lease, v, &data));
        assert_counts(m, v, C0, 1, 0, 0);
        assert_int_equal(info(m).lease_count, 1);
        assert_int_equal(info(m).pending_lease_count, 0);
    }
    assert_int_equal(version(m), before);
    spec_repair(f);
    spec_busy(f, s);
    release(&lease);
    assert_false(tn_lease_active(&lease));
    assert_counts(m, v, C0, 0, 0, 1);
    assert_int_equal(version(m) - before, 1);
    spec_finish(f);
    assert_int_equal(version(m) - before, 2);
    drop(m, v, C0);
}

static void mc104_waiting_for_the_event_fails(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_on_device(f, m);
    tn_stream s = spec_stream(f, 0);
    tn_lease lease = acquire(m, v, C0, s);
    const void *data = NULL;
    uint64_t before;

    spec_busy(f, s);
    spec_fault(f, TN_SIM_EVENT_SYNCHRONIZE, 1, 0, TN_ERR_DRIVER, CODE_WAIT);
    assert_status(tn_lease_release(&lease, TN_RELEASE_WAIT), TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->native_code, CODE_WAIT);
    assert_true(spec_repair(f) >= 1);
    assert_false(spec_idle(f, s));
    assert_counts(m, v, C0, 0, 0, 1);
    assert_true(tn_lease_active(&lease));
    assert_status(tn_lease_lookup(&lease, v, &data), TN_ERR_UNAVAILABLE);
    assert_in_use(tn_manager_drop(m, v, C0, NULL), 0, 0, 1);
    before = version(m);
    release(&lease); /* merely closes the object */
    assert_false(tn_lease_active(&lease));
    assert_status(tn_lease_lookup(&lease, v, &data), TN_ERR_LIFETIME_CLOSED);
    assert_counts(m, v, C0, 0, 0, 1);
    assert_int_equal(version(m), before);
    spec_finish(f);
    assert_int_equal(version(m), before + 1);
    assert_counts(m, v, C0, 0, 0, 0);
    drop(m, v, C0);
}

static void mc109_order_of_checks(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_manager *other = MANAGER(f);
    tn_handle v = adopt_on_device(f, m);
    tn_handle absent = register_src(m, spec_source(f));
    tn_handle foreign = adopt_rep(f, other, P);
    tn_handle unknown = {v.manager, v.index + 1000, v.type};
    const tn_handle absent_first[] = {absent, foreign};
    const tn_handle foreign_first[] = {foreign, absent};
    tn_stream s = spec_stream(f, 0);
    tn_stream wrong = spec_stream(f, 1);
    tn_lease lease = {NULL, 0};
    tn_hold h = {NULL, 0};

    assert_status(tn_manager_acquire(m, &unknown, 1, C0, NULL, &lease), TN_ERR_VALUE);
    assert_status(tn_manager_acquire(m, &unknown, 1, C0, wrong, &lease), TN_ERR_VALUE);
    assert_handle_error(tn_manager_acquire(m, &unknown, 1, C0, s, &lease), TN_HANDLE_UNKNOWN);
    assert_status(tn_manager_acquire(m, &unknown, 1, C2, s, &lease), TN_ERR_VALUE);
    assert_status(tn_manager_acquire(m, absent_first, 2, P, NULL, &lease), TN_ERR_UNAVAILABLE);
    assert_handle(tn_last_error()->handle, absent);
    assert_handle_error(tn_manager_acquire(m, foreign_first, 2, P, NULL, &lease),
                        TN_HANDLE_FOREIGN);
    assert_status(tn_manager_hold(m, absent_first, 2, P, &h), TN_ERR_UNAVAILABLE);
    assert_handle_error(tn_manager_hold(m, foreign_first, 2, P, &h), TN_HANDLE_FOREIGN);
    assert_status(tn_manager_hold(m, &unknown, 1, C2, &h), TN_ERR_VALUE);
    assert_null(lease.record);
    assert_null(h.record);
}

static void mc111_waiting_has_no_meaning_on_the_host(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_lease lease = acquire(m, v, P, NULL);

    assert_status(tn_lease_release(&lease, 2u), TN_ERR_VALUE); /* unknown flag: nothing happens */
    assert_true(tn_lease_active(&lease));
    assert_rises(m, 1, assert_ok(tn_lease_release(&lease, TN_RELEASE_WAIT)));
    assert_false(tn_lease_active(&lease));
    assert_counts(m, v, P, 0, 0, 0);
    assert_int_equal(info(m).pending_lease_count, 0);
    assert_rises(m, 0, assert_ok(tn_lease_release(&lease, TN_RELEASE_WAIT)));
    discard(m, v);
}

static void mc114_a_lease_without_streams_synchronises_the_device(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_on_device(f, m);
    tn_stream s = spec_stream(f, 0);
    tn_lease lease = acquire(m, v, C0, s);
    uint64_t synchronized = calls(f, TN_SIM_DEVICE_SYNCHRONIZE);
    uint64_t recorded = calls(f, TN_SIM_EVENT_RECORD);

    spec_busy(f, s);
    tn__lease_test_clear_streams(&lease);
    assert_rises(m, 1, release(&lease));
    assert_int_equal(calls(f, TN_SIM_DEVICE_SYNCHRONIZE) - synchronized, 1);
    assert_int_equal(calls(f, TN_SIM_EVENT_RECORD), recorded);
    assert_true(spec_idle(f, s));
    assert_int_equal(spec_warnings(f, TN_DIAGNOSTIC_RELEASE_FALLBACK), 1);
    assert_int_equal(spec_warnings_all(f), 1);
    assert_false(tn_lease_active(&lease));
    assert_counts(m, v, C0, 0, 0, 0);
    assert_int_equal(info(m).pending_lease_count, 0);
    drop(m, v, C0);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(mc093_one_absent_value_refuses_the_whole_set),
    SPEC_BOTH(mc094_duplicates_collapse),
    SPEC_BOTH(mc094_a_reused_record_keeps_old_leases_ended),
    SPEC_BOTH(mc094_a_large_set_is_one_lease),
    SPEC_BOTH(mc096_empty_and_alien_collections),
    SPEC_BOTH(mc097_lookup_of_a_value_outside_the_lease),
    SPEC_BOTH(mc098_uses_and_holds_add_up),
    SPEC_BOTH(mc099_acquire_checks_its_stream),
    SPEC_BOTH(mc099_adding_a_stream_checks_it),
    SPEC_BOTH(mc099_thread_relative_and_capturing_streams_are_refused),
    SPEC_BOTH(mc100_pending_until_all_streams_are_done),
    SPEC_BOTH(mc100_streams_of_two_contexts),
    SPEC_BOTH(mc101_waiting_release_on_another_thread),
    SPEC_BOTH(mc102_recording_fails_half_way),
    SPEC_BOTH(mc103_recording_and_fallback_fail),
    SPEC_BOTH(mc104_waiting_for_the_event_fails),
    SPEC_BOTH(mc109_order_of_checks),
    SPEC_BOTH(mc111_waiting_has_no_meaning_on_the_host),
    SPEC_BOTH(mc114_a_lease_without_streams_synchronises_the_device),
};

TN_TEST_MAIN("spec.leases", tests)
