/* SPDX-License-Identifier: MIT */
/*
 * Operations that fail in the reap they begin with (M165, G24; case MC182).
 */
#include "spec_b_common.h"

#define CODE 721

struct reaping {
    struct spec *f;
    tn_manager *m;
    tn_handle v;     /* at P and C0; its lease is pending */
    tn_handle free;  /* at P and N */
    tn_handle extra; /* at P: to be discarded */
};

static tn_status op_snapshot(struct reaping *r) { return spec_b_snapshot(r->m); }

static tn_status op_version(struct reaping *r) { return spec_b_version(r->m); }

static tn_status op_adopt(struct reaping *r) {
    tn_handle h;
    return spec_b_adopt(r->m, &h);
}

static tn_status op_register(struct reaping *r) {
    tn_value_spec spec = tt_spec(32, 32);
    tn_source source = tt_source_of(&r->f->sources[0]);
    tn_handle h;
    return tn_manager_register_source(r->m, &spec, &source, P, &h);
}

static tn_status op_ensure(struct reaping *r) { return spec_b_ensure(r->m, r->free, C1); }

static tn_status op_ensure_no_op(struct reaping *r) { return spec_b_ensure(r->m, r->free, P); }

static tn_status op_copy(struct reaping *r) {
    return tn_manager_copy(r->m, r->free, C0, NULL, NULL);
}

static tn_status op_move(struct reaping *r) {
    return tn_manager_move(r->m, r->free, C1, P, NULL, NULL);
}

/* Not at N: freeing pinned memory waits for the devices. */
static tn_status op_drop(struct reaping *r) { return tn_manager_drop(r->m, r->free, C1, NULL); }

static tn_status op_discard(struct reaping *r) { return tn_manager_discard(r->m, r->extra, NULL); }

static tn_status op_acquire(struct reaping *r) {
    tn_lease lease;
    tn_status status = tn_manager_acquire(r->m, &r->v, 1, P, NULL, &lease);
    return status != TN_OK ? status : tn_lease_release(&lease, 0);
}

static tn_status op_hold(struct reaping *r) {
    tn_hold h;
    tn_status status = tn_manager_hold(r->m, &r->v, 1, P, &h);
    return status != TN_OK ? status : tn_hold_release(&h);
}

static tn_status op_close(struct reaping *r) { return tn_manager_close(r->m, TN_CLOSE_NO_WAIT); }

static void mc182_an_event_query_fails(void **state) {
    static const struct {
        const char *name;
        tn_status (*run)(struct reaping *r);
    } ops[] = {{"snapshot", op_snapshot}, {"adopt", op_adopt},
               {"ensure", op_ensure},     {"ensure, no-op", op_ensure_no_op},
               {"copy", op_copy},         {"move", op_move},
               {"drop", op_drop},         {"discard", op_discard},
               {"register", op_register}, {"acquire", op_acquire},
               {"hold", op_hold},         {"version", op_version},
               {"close", op_close}};
    struct spec *f = *state;
    struct reaping r = {.f = f, .m = MANAGER(f)};
    tn_stream s = spec_stream(f, 0);
    tn_lease lease;

    spec_source(f);
    r.v = adopt_rep(f, r.m, P);
    r.free = adopt_rep(f, r.m, P);
    r.extra = adopt_rep(f, r.m, P);
    ensure(r.m, r.v, C0);
    ensure(r.m, r.free, N);
    lease = acquire(r.m, r.v, C0, s);
    spec_busy(f, s);
    release(&lease);
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        char *before = spec_describe(r.m, 0);
        tn_status status;

        spec_fault(f, TN_SIM_EVENT_QUERY, 1, 0, TN_ERR_DRIVER, CODE);
        status = ops[i].run(&r);
        if (status != TN_ERR_DRIVER)
            print_error("%s gave %s\n", ops[i].name, tn_status_name(status));
        assert_int_equal(status, TN_ERR_DRIVER);
        assert_int_equal(tn_last_error()->native_code, CODE);
        assert_true(spec_repair(f) >= 1);
        assert_unchanged(r.m, before, 0);
        if (ops[i].run == op_close)
            break;
        status = ops[i].run(&r); /* the same thread, the same call */
        if (status != TN_OK)
            print_error("%s again gave %s\n", ops[i].name, tn_status_name(status));
        assert_int_equal(status, TN_OK);
        ensure(r.m, r.v, P);
        assert_int_equal(mat(r.m, r.v, C0).pending_count, 1);
    }
    spec_finish(f);
    assert_rises(r.m, 0, version(r.m)); /* reaped by the first of the two reads */
    assert_int_equal(mat(r.m, r.v, C0).pending_count, 0);
    assert_ok(tn_manager_close(r.m, TN_CLOSE_NO_WAIT));
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(mc182_an_event_query_fails),
};

TN_TEST_MAIN("spec.reap_failure", tests)
