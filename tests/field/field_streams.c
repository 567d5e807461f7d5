/* SPDX-License-Identifier: MIT */
/* Field cases: stream ordering and lifetimes, one stream or several. */
#include "tn_test.h"

#include "base/base_internal.h"
#include "field_common.h"

#define BLOCK UINT64_C(65536)

static bool apart(const char *a, const char *b) { return a + BLOCK <= b || b + BLOCK <= a; }

/* ---- F-C01: a block goes back only after every reader and writer of it --------------------- */

static void f_c01_block_goes_back_after_every_reader_and_writer(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {C0, 2 * BLOCK});
    tn_stream a = spec_stream(f, 0);
    tn_handle x = field_rep_at(f, m, C0, BLOCK, 1);
    tn_handle y = field_rep(f, m, BLOCK, 2);
    tn_handle z = field_rep(f, m, BLOCK, 3);
    tn_handle w = field_rep(f, m, BLOCK, 4);
    char *block = field_block(f, m, x, C0);
    tn_lease lease = acquire(m, x, C0, a);
    uint64_t synchronised;
    uint64_t frees;

    field_read(f, a, block, BLOCK, 10);
    release(&lease);
    assert_in_use(tn_manager_drop(m, x, C0, NULL), 0, 0, 1);
    ensure(m, y, C0);
    assert_true(apart(block, field_block(f, m, y, C0)));
    assert_int_equal(field_ms(f), 0);
    field_until(f, 10);
    drop(m, x, C0);
    /* W's copy ends 10 ms after it was queued, and its event cannot be recorded */
    assert_ok(tn_sim_queue_delay(f->sim, a, 10 * MS));
    synchronised = tn_sim_stream_calls(f->sim, a, TN_SIM_STREAM_SYNCHRONIZE);
    frees = field_memory(f, C0).frees;
    spec_fault(f, TN_SIM_EVENT_RECORD, 1, 1, TN_ERR_DRIVER, 700);
    assert_status(tn_manager_ensure(m, w, C0, a, NULL), TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->native_code, 700);
    assert_int_equal(spec_repair(f), 1);
    assert_int_equal(field_ms(f), 20);
    assert_int_equal(tn_sim_stream_calls(f->sim, a, TN_SIM_STREAM_SYNCHRONIZE), synchronised + 1);
    assert_int_equal(field_memory(f, C0).frees, frees + 1); /* earlier: a violation */
    assert_int_equal(used(m, C0), BLOCK);
    ensure(m, z, C0);
    assert_true(field_exact(f, m, z, C0, 3));
    assert_true(field_exact(f, m, y, C0, 2));
    field_conserved(f, m);
}

/* ---- F-C03: recorded first, pending second ------------------------------------------------ */

struct recorded {
    tn_manager *m;
    tn_handle v;
    tn_lease lease;
    uint64_t pending; /* what the drops must see: uses 1 or pending 1 */
    atomic_int no_ops;
};

static const char *release_and_stop(void *arg) {
    struct recorded *r = arg;

    field_stop_here();
    TN_WORKER_STATUS(tn_lease_release(&r->lease, 0), TN_OK);
    return NULL;
}

static const char *drops_are_refused(int index, void *arg) {
    struct recorded *r = arg;

    (void)index;
    for (int i = 0; i < 100; i++) {
        TN_WORKER_STATUS(tn_manager_drop(r->m, r->v, C0, NULL), TN_ERR_IN_USE);
        TN_WORKER_CHECK(tn_last_error()->use_count == 1 - r->pending);
        TN_WORKER_CHECK(tn_last_error()->hold_count == 0);
        TN_WORKER_CHECK(tn_last_error()->pending_count == r->pending);
    }
    return NULL;
}

static const char *drops_succeed(int index, void *arg) {
    struct recorded *r = arg;
    tn_report report = TN_REPORT_INIT;

    (void)index;
    TN_WORKER_STATUS(tn_manager_drop(r->m, r->v, C0, &report), TN_OK);
    atomic_fetch_add(&r->no_ops, (int)report.no_op);
    return NULL;
}

static void f_c03_recorded_first_pending_second(void **state) {
    struct spec *f = *state;
    struct recorded r = {.m = MANAGER(f)};
    tn_stream s1 = spec_stream(f, 0);
    tn_stream s2 = spec_stream(f, 0);
    struct field_thread releasing;
    uint64_t records;
    char *block;

    if (!field_can_stop())
        TN_SKIP("threads can be stopped only in builds with TN_CHECKS");
    r.v = field_rep_at(f, r.m, C0, BLOCK, 1);
    block = field_block(f, r.m, r.v, C0);
    r.lease = field_acquire2(r.m, r.v, C0, s1, s2);
    field_read(f, s1, block, BLOCK, 10);
    field_read(f, s2, block, BLOCK, 10);
    records = field_calls(f, TN_SIM_EVENT_RECORD);
    field_stop_begin(1u << TN__POINT_RECORD_EVENT | 1u << TN__POINT_RECORDED);
    field_start(&releasing, release_and_stop, &r);
    for (unsigned i = 1; i <= 3; i++) { /* before the first, between the two, after the second */
        field_stop_wait(i);
        assert_int_equal(field_calls(f, TN_SIM_EVENT_RECORD), records + i - 1);
        assert_null_text(tn_test_workers_run(4, drops_are_refused, &r));
        field_stop_go();
    }
    field_join(&releasing);
    field_stop_end();
    r.pending = 1;
    assert_null_text(tn_test_workers_run(4, drops_are_refused, &r));
    field_until(f, 10);
    assert_null_text(tn_test_workers_run(4, drops_succeed, &r));
    assert_int_equal(r.no_ops, 3);
    assert_int_equal(field_calls(f, TN_SIM_EVENT_RECORD), records + 2);
    assert_replicas(r.m, r.v, P);
    field_conserved(f, r.m);
}

/* ---- F-C05: several readers: the union of all of them -------------------------------------- */

static void f_c05_several_readers_are_all_waited_for(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_stream s1 = spec_stream(f, 0);
    tn_stream s2 = spec_stream(f, 0);
    tn_stream s3 = spec_stream(f, 0);
    tn_handle v = field_rep_at(f, m, C0, BLOCK, 1);
    char *block = field_block(f, m, v, C0);
    uint64_t records = field_calls(f, TN_SIM_EVENT_RECORD);
    uint64_t before = version(m);
    tn_lease a = field_acquire2(m, v, C0, s1, s2);
    tn_lease b = field_acquire2(m, v, C0, s1, s3);
    static const uint64_t in_use_by_two[] = {1, 5, 7};

    assert_ok(tn_lease_add_stream(&a, s1)); /* twice is once */
    field_read(f, s2, block, BLOCK, 9);
    field_read(f, s3, block, BLOCK, 1);
    field_read(f, s1, block, BLOCK, 5);
    release(&a);
    field_read(f, s1, block, BLOCK, 3);
    release(&b);
    for (size_t i = 0; i < 3; i++) {
        field_until(f, in_use_by_two[i]);
        assert_in_use(tn_manager_drop(m, v, C0, NULL), 0, 0, 2);
    }
    field_until(f, 8);
    assert_in_use(tn_manager_drop(m, v, C0, NULL), 0, 0, 1);
    field_until(f, 9);
    assert_int_equal(version(m), before + 6);
    assert_false(drop(m, v, C0).no_op);
    assert_int_equal(field_calls(f, TN_SIM_EVENT_RECORD), records + 4);
    field_conserved(f, m);
}

/* ---- F-C06: the consumer stream is gone before the lease ends ------------------------------- */

static void f_c06_stream_destroyed_after_release(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_stream s = spec_stream(f, 0);
    tn_handle v = field_rep_at(f, m, C0, BLOCK, 1);
    char *block = field_block(f, m, v, C0);
    tn_lease lease = acquire(m, v, C0, s);

    field_read(f, s, block, BLOCK, 10);
    release(&lease);
    field_until(f, 1);
    field_stream_destroy(f, s);
    for (uint64_t t = 1; t < 10; t += 4) {
        field_until(f, t);
        assert_in_use(tn_manager_drop(m, v, C0, NULL), 0, 0, 1);
    }
    field_until(f, 10);
    drop(m, v, C0);
    assert_int_equal(tn_sim_stale_calls(f->sim), 0);
    field_conserved(f, m);
}

static void f_c06_stream_destroyed_before_release(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_stream s = spec_stream(f, 0);
    tn_handle v = field_rep_at(f, m, C0, BLOCK, 1);
    tn_lease lease;
    uint64_t live;
    uint64_t synchronised;

    field_read(f, s, field_block(f, m, v, C0), BLOCK, 10);
    lease = acquire(m, v, C0, s);
    live = field_memory(f, C0).live_blocks;
    field_stream_destroy(f, s);
    assert_status(tn_lease_release(&lease, 0), TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->native_code, 400); /* no such handle */
    assert_true(tn_lease_active(&lease));
    assert_int_equal(mat(m, v, C0).use_count, 1);
    assert_in_use(tn_manager_drop(m, v, C0, NULL), 1, 0, 0);
    assert_int_equal(field_memory(f, C0).live_blocks, live);
    /* the case breaks the caller's duty (M149): one record, one synchronisation */
    assert_int_equal(tn_sim_stale_calls(f->sim), 2);
    assert_int_equal(tn_sim_violations_clear(f->sim), 2);
    synchronised = field_calls(f, TN_SIM_DEVICE_SYNCHRONIZE);
    assert_ok(tn_manager_close(m, TN_CLOSE_FORCE));
    assert_int_equal(field_calls(f, TN_SIM_DEVICE_SYNCHRONIZE), synchronised + 1);
    assert_int_equal(field_ms(f), 10);
    assert_int_equal(field_memory(f, C0).live_blocks, 0);
    release(&lease);
    assert_false(tn_lease_active(&lease));
    assert_int_equal(tn_sim_stale_calls(f->sim), 2);
}

/* ---- F-C14: freed on one stream, used on two others ----------------------------------------- */

static const char *release_elsewhere(void *arg) {
    TN_WORKER_STATUS(tn_lease_release(arg, 0), TN_OK);
    return NULL;
}

static void f_c14_only_registered_streams_count(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_stream s1 = spec_stream(f, 0);
    tn_stream s2 = spec_stream(f, 0);
    tn_stream s3 = spec_stream(f, 0);
    tn_handle v = field_rep(f, m, BLOCK, 1);
    struct field_thread other;
    static const uint64_t refused[] = {0, 2, 7};
    uint64_t on_s1;
    tn_lease lease;
    char *block;

    assert_ok(tn_manager_ensure(m, v, C0, s1, NULL));
    block = field_block(f, m, v, C0);
    field_read(f, s2, block, BLOCK, 8);
    field_read(f, s3, block, BLOCK, 2);
    assert_ok(tn_sim_queue_delay(f->sim, s1, 30 * MS)); /* the releasing thread's own work */
    on_s1 = tn_sim_stream_calls(f->sim, s1, TN_SIM_EVENT_RECORD);
    lease = field_acquire2(m, v, C0, s2, s3);
    field_start(&other, release_elsewhere, &lease);
    field_join(&other);
    assert_int_equal(tn_sim_stream_calls(f->sim, s2, TN_SIM_EVENT_RECORD), 1);
    assert_int_equal(tn_sim_stream_calls(f->sim, s3, TN_SIM_EVENT_RECORD), 1);
    assert_int_equal(tn_sim_stream_calls(f->sim, s1, TN_SIM_EVENT_RECORD), on_s1);
    for (size_t i = 0; i < 3; i++) {
        field_until(f, refused[i]);
        assert_in_use(tn_manager_drop(m, v, C0, NULL), 0, 0, 1);
        assert_int_equal(field_memory(f, C0).frees, 0);
    }
    field_until(f, 8);
    drop(m, v, C0);
    assert_int_equal(field_memory(f, C0).frees, 1);
    assert_int_equal(field_ms(f), 8);
    field_conserved(f, m);
}

/* ---- F-C16: between compute and copy streams ------------------------------------------------ */

static void f_c16_copy_stream_is_no_exception(void **state) {
    struct spec *f = *state;
    tn_manager *m;
    tn_handle a, b, u;
    tn_stream s, x;
    tn_lease lease;
    char *block;

    spec_machine(f, "dev:1 latency=3ms");
    m = MANAGER(f, {C0, 2 * BLOCK});
    s = spec_stream(f, 0);
    x = spec_stream(f, 0);
    a = field_rep_at(f, m, C0, BLOCK, 1); /* ends at 3, which is the case's 0 */
    b = field_rep(f, m, BLOCK, 2);
    u = field_rep(f, m, BLOCK, 3);
    block = field_block(f, m, a, C0);
    assert_int_equal(field_ms(f), 3);
    lease = acquire(m, a, C0, s);
    field_read(f, s, block, BLOCK, 6);
    release(&lease);
    assert_ok(tn_manager_ensure(m, u, C0, x, NULL));
    assert_int_equal(field_ms(f), 3 + 3);
    assert_in_use(tn_manager_drop(m, a, C0, NULL), 0, 0, 1);
    assert_status(tn_manager_ensure(m, b, C0, x, NULL), TN_ERR_BUDGET);
    assert_budget_error(C0, 2 * BLOCK, 2 * BLOCK, 0, BLOCK);
    assert_int_equal(field_ms(f), 3 + 3);
    field_until(f, 3 + 6);
    drop(m, a, C0);
    assert_ok(tn_manager_ensure(m, b, C0, x, NULL));
    assert_int_equal(field_ms(f), 3 + 6 + 3); /* it began at 6 and lasts 3 */
    assert_ptr_equal(field_block(f, m, b, C0), block);
    assert_true(field_exact(f, m, u, C0, 3));
    assert_true(field_exact(f, m, b, C0, 2));
    assert_int_equal(field_calls(f, TN_SIM_STREAM_WAIT), 0);
    field_conserved(f, m);
}

/* ---- F-G08: a stream destroyed with work queued --------------------------------------------- */

/* A manager whose only lease is pending until t = 30 on a stream destroyed at t = 5. */
static tn_manager *destroyed_with_work(struct spec *f, tn_handle *out) {
    tn_manager *m;
    tn_stream s;
    tn_lease lease;
    char *block;

    spec_machine(f, "dev:1");
    m = MANAGER(f);
    s = spec_stream(f, 0);
    *out = field_rep_at(f, m, C0, BLOCK, 1);
    block = field_block(f, m, *out, C0);
    for (int i = 0; i < 3; i++)
        field_read(f, s, block, BLOCK, 10);
    lease = acquire(m, *out, C0, s);
    release(&lease);
    field_until(f, 5);
    field_stream_destroy(f, s);
    assert_int_equal(field_ms(f), 5);
    for (uint64_t t = 10; t < 30; t = t == 20 ? 29 : t + 10) {
        field_until(f, t);
        assert_in_use(tn_manager_drop(m, *out, C0, NULL), 0, 0, 1);
    }
    assert_int_equal(field_ms(f), 29);
    return m;
}

static void f_g08_close_waits_for_the_event(void **state) {
    struct spec *f = *state;
    tn_handle v;
    tn_manager *m = destroyed_with_work(f, &v);

    assert_ok(tn_manager_close(m, 0));
    assert_int_equal(field_ms(f), 30);
    assert_int_equal(tn_sim_stale_calls(f->sim), 0);
}

static void f_g08_drop_after_the_event(void **state) {
    struct spec *f = *state;
    tn_handle v;
    tn_manager *m = destroyed_with_work(f, &v);

    field_until(f, 30);
    drop(m, v, C0);
    assert_int_equal(tn_sim_stale_calls(f->sim), 0);
    field_conserved(f, m);
}

static const struct CMUnitTest tests[] = {
    FIELD_BOTH(f_c01_block_goes_back_after_every_reader_and_writer),
    FIELD_BOTH(f_c03_recorded_first_pending_second),
    FIELD_BOTH(f_c05_several_readers_are_all_waited_for),
    FIELD_BOTH(f_c06_stream_destroyed_after_release),
    FIELD_BOTH(f_c06_stream_destroyed_before_release),
    FIELD_BOTH(f_c14_only_registered_streams_count),
    FIELD_BOTH(f_c16_copy_stream_is_no_exception),
    FIELD_BOTH(f_g08_close_waits_for_the_event),
    FIELD_BOTH(f_g08_drop_after_the_event),
};

TN_TEST_MAIN("field.streams", tests)
