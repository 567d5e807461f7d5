/* SPDX-License-Identifier: MIT */
/* State version and reaping: cases MC82..MC92. */
#include "spec_common.h"

static void mc082_a_life_in_versions(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h;
    tn_lease lease;

    assert_int_equal(version(m), 0);
    h = register_src(m, spec_source(f));
    assert_int_equal(version(m), 2);
    ensure(m, h, P);
    assert_int_equal(version(m), 3);
    ensure(m, h, P);
    assert_int_equal(version(m), 3);
    lease = acquire(m, h, P, NULL);
    assert_int_equal(version(m), 4);
    release(&lease);
    assert_int_equal(version(m), 5);
    release(&lease);
    assert_int_equal(version(m), 5);
    move(m, h, N); /* new */
    assert_int_equal(version(m), 8);
    move(m, h, N);
    assert_int_equal(version(m), 8);
    assert_ok(tn_manager_copy(m, h, C1, NULL, NULL)); /* new */
    assert_int_equal(version(m), 10);
    assert_ok(tn_manager_copy(m, h, C0, NULL, NULL)); /* new */
    assert_int_equal(version(m), 12);
    assert_at(move(m, h, P).source, N);
    assert_int_equal(version(m), 14);
    assert_at(move(m, h, C0).source, P); /* resident */
    assert_int_equal(version(m), 15);
    drop(m, h, N);
    assert_int_equal(version(m), 15);
    drop(m, h, C1);
    assert_int_equal(version(m), 16);
    drop(m, h, C0);
    assert_int_equal(version(m), 17);
    discard(m, h);
    assert_int_equal(version(m), 18);
    assert_int_equal(trace_count(m), 12);
    assert_int_equal(info(m).state_version, 18);
}

static void mc083_adopt_and_reserve(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 64});
    tn_payload large = tt_bytes(f->driver, P, 40);
    tn_handle h = {0, 0, NULL};
    tn_reservation r;

    assert_rises(m, 1, adopt_rep(f, m, P));
    assert_rises(m, 0,
                 assert_status(tn_manager_adopt(m, large, P, TN_EXCLUSIVE, &h), TN_ERR_BUDGET));
    tt_free(large);
    assert_rises(m, 2, r = reserve(m, N, 8, "new"));
    assert_rises(m, 1, release_reservation(&r));
    assert_rises(m, 1, reserve(m, P, 8, "tracked"));
    assert_rises(m, 1, reserve(m, P, 0, "zero bytes too"));
}

static void mc084_three_handles_count_once(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h[3];
    tn_lease lease = {NULL, 0};
    tn_hold held = {NULL, 0};

    for (int i = 0; i < 3; i++)
        h[i] = adopt_rep(f, m, P);
    assert_rises(m, 1, assert_ok(tn_manager_acquire(m, h, 3, P, NULL, &lease)));
    assert_rises(m, 1, release(&lease));
    assert_rises(m, 1, assert_ok(tn_manager_hold(m, h, 3, P, &held)));
    assert_rises(m, 1, release_hold(&held));
}

static void mc085_cuda_lease(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, C0);
    tn_stream s[3];
    tn_lease lease;

    for (int i = 0; i < 3; i++)
        s[i] = spec_stream(f, 0);
    assert_rises(m, 1, lease = acquire(m, h, C0, s[0]));
    assert_rises(m, 0, {
        assert_ok(tn_lease_add_stream(&lease, s[1]));
        assert_ok(tn_lease_add_stream(&lease, s[2]));
    });
    for (int i = 0; i < 3; i++)
        spec_busy(f, s[i]); /* or the version read would reap at once */
    assert_rises(m, 1, release(&lease));
    assert_int_equal(mat(m, h, C0).pending_count, 1);
    assert_rises(m, 1, spec_finish(f)); /* the second read reaps */
    assert_int_equal(mat(m, h, C0).pending_count, 0);

    assert_rises(m, 3, {
        lease = acquire(m, h, C0, s[0]);
        spec_busy(f, s[0]);
        assert_ok(tn_lease_release(&lease, TN_RELEASE_WAIT));
        assert_true(spec_idle(f, s[0]));
        assert_int_equal(mat(m, h, C0).pending_count, 0);
        assert_int_equal(info(m).pending_lease_count, 0);
    });
}

static void mc086_one_read_reaps_all(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, C0);
    tn_lease leases[3];
    uint64_t before;

    for (int i = 0; i < 3; i++) {
        tn_stream s = spec_stream(f, 0);

        spec_busy(f, s);
        leases[i] = acquire(m, h, C0, s);
    }
    for (int i = 0; i < 3; i++)
        release(&leases[i]);
    assert_int_equal(mat(m, h, C0).pending_count, 3);
    assert_int_equal(loc(m, C0).pending_count, 3);
    assert_int_equal(info(m).pending_lease_count, 3);
    before = version(m);
    spec_finish(f);
    assert_int_equal(version(m), before + 3);
    assert_int_equal(mat(m, h, C0).pending_count, 0);
}

/* ---- Who reaps (M162, M163) ------------------------------------------------------------------ */

/* A lease that is complete but not reaped, and things to do with the manager. */
struct late {
    struct spec *f;
    tn_manager *m;
    tn_handle at_c0;     /* leased there */
    tn_handle rep;       /* at P */
    tn_handle src;       /* unloaded */
    tn_handle droppable; /* with a source, at P */
    tn_handle gone;      /* to discard */
    tn_payload payload;  /* to adopt */
    tn_stream stream;
    tn_lease lease;        /* active, at P */
    tn_lease device_lease; /* active, at C0 */
    tn_hold hold;
    tn_reservation reservation;
    uint64_t before; /* version just before the lease completed */
};

static void late_begin(struct late *l, struct spec *f) {
    tn_lease pending;

    *l = (struct late){.f = f, .m = MANAGER(f), .stream = spec_stream(f, 0)};
    l->at_c0 = adopt_rep(f, l->m, C0);
    l->rep = adopt_rep(f, l->m, P);
    l->src = register_src(l->m, spec_source(f));
    l->droppable = register_src(l->m, spec_source(f));
    ensure(l->m, l->droppable, P);
    l->gone = adopt_rep(f, l->m, P);
    l->payload = spec_v(f, P);
    l->lease = acquire(l->m, l->rep, P, NULL);
    l->device_lease = acquire(l->m, l->at_c0, C0, spec_stream(f, 0));
    l->hold = hold(l->m, l->rep, P);
    l->reservation = reserve(l->m, N, 8, "r");
    pending = acquire(l->m, l->at_c0, C0, l->stream);
    spec_busy(f, l->stream);
    release(&pending);
    assert_int_equal(info(l->m).pending_lease_count, 1);
    l->before = version(l->m);
    spec_finish(f);
}

/*
 * The version after an operation, and whether it reaped: with failing event queries a version read
 * succeeds only if there is nothing left to query.
 */
static bool late_reaped(struct late *l, uint64_t *after) {
    tn_status status;

    spec_fault(l->f, TN_SIM_EVENT_QUERY, 1, 0, TN_ERR_DRIVER, 1);
    status = tn_manager_state_version(l->m, after);
    spec_repair(l->f);
    if (status == TN_OK)
        return true;
    assert_int_equal(status, TN_ERR_DRIVER);
    *after = version(l->m);
    return false;
}

/* `operation` raises the version by `d`, plus one for the lease that it reaps or not. */
static void late_check(struct late *l, bool reaps, uint64_t d) {
    uint64_t after = 0;

    assert_int_equal(late_reaped(l, &after), reaps);
    assert_int_equal(after - l->before, d + 1);
    assert_int_equal(info(l->m).pending_lease_count, 0);
    if (l->payload.data != NULL)
        tt_free(l->payload);
}

static void mc087_no_reap_in_reads_of_locations_and_trace(void **state) {
    struct late l;
    size_t count = 0;

    late_begin(&l, *state);
    reserve(l.m, P, 1, "new");
    assert_ok(tn_manager_locations(l.m, NULL, &count));
    assert_ok(tn_manager_trace(l.m, NULL, &(size_t){0}));
    late_check(&l, false, 1);

    /* Without anything else: 1 for the lease, at the next version read. */
    late_begin(&l, *state);
    assert_ok(tn_manager_locations(l.m, NULL, &(size_t){0}));
    assert_ok(tn_manager_trace(l.m, NULL, &(size_t){0}));
    assert_int_equal(version(l.m), l.before + 1);
    tt_free(l.payload);
}

static void mc091_adopt_and_register_reap(void **state) {
    struct late l;

    late_begin(&l, *state);
    spec_adopt(l.m, l.payload, P, TN_EXCLUSIVE);
    l.payload.data = NULL;
    late_check(&l, true, 1);
    late_begin(&l, *state);
    register_src(l.m, spec_source(l.f));
    late_check(&l, true, 1);
}

static void mc091_actions_reap(void **state) {
    struct late l;

    late_begin(&l, *state);
    ensure(l.m, l.src, P);
    late_check(&l, true, 1);
    late_begin(&l, *state);
    ensure(l.m, l.rep, P); /* a no-op too */
    late_check(&l, true, 0);
    late_begin(&l, *state);
    assert_ok(tn_manager_copy(l.m, l.rep, C0, NULL, NULL));
    late_check(&l, true, 1);
    late_begin(&l, *state);
    move(l.m, l.gone, C0);
    late_check(&l, true, 2);
    late_begin(&l, *state);
    drop(l.m, l.droppable, P);
    late_check(&l, true, 1);
    late_begin(&l, *state);
    discard(l.m, l.gone);
    late_check(&l, true, 2);
}

/* Also one that is refused later on: the reap stays (M252). */
static void mc091_refused_actions_reap(void **state) {
    struct late l;

    late_begin(&l, *state);
    assert_status(tn_manager_drop(l.m, l.gone, P, NULL), TN_ERR_OWNERSHIP);
    late_check(&l, true, 0);
    late_begin(&l, *state);
    assert_status(tn_manager_ensure(l.m, l.rep, C2, NULL, NULL), TN_ERR_VALUE);
    late_check(&l, true, 0);
}

static void mc091_lifetimes_and_observations_reap(void **state) {
    struct late l;
    tn_snapshot *s = NULL;
    uint64_t v;

    late_begin(&l, *state);
    acquire(l.m, l.rep, P, NULL);
    late_check(&l, true, 1);
    late_begin(&l, *state);
    acquire(l.m, l.at_c0, C0, l.stream);
    late_check(&l, true, 1);
    late_begin(&l, *state);
    hold(l.m, l.rep, P);
    late_check(&l, true, 1);
    late_begin(&l, *state);
    assert_ok(tn_snapshot_take(l.m, &s));
    tn_snapshot_drop(s);
    late_check(&l, true, 0);
    late_begin(&l, *state);
    assert_ok(tn_manager_state_version(l.m, &v));
    assert_int_equal(v, l.before + 1);
    late_check(&l, true, 0);
    late_begin(&l, *state);
    assert_ok(tn_manager_step(l.m, &v));
    assert_true(v >= 1);
    late_check(&l, true, 0);
}

static void mc091_close_reaps(void **state) {
    struct late l;
    uint64_t after;

    for (int i = 0; i < 2; i++) {
        late_begin(&l, *state);
        /* A refused close keeps what it reaped: (2 leases, 0 pending, 1 hold, 1 reservation). */
        assert_close_in_use(tn_manager_close(l.m, i == 0 ? TN_CLOSE_NO_WAIT : 0), 2, 0, 1, 1);
        assert_true(late_reaped(&l, &after));
        assert_int_equal(after, l.before + 1);
        release(&l.lease);
        assert_ok(tn_lease_release(&l.device_lease, TN_RELEASE_WAIT));
        release_hold(&l.hold);
        release_reservation(&l.reservation);
        tt_free(l.payload);
        assert_ok(tn_manager_close(l.m, i == 0 ? TN_CLOSE_NO_WAIT : 0));
    }
}

static void mc091_reserve_and_releases_do_not_reap(void **state) {
    struct late l;
    uint64_t after = 0;

    late_begin(&l, *state);
    reserve(l.m, P, 0, "r");
    late_check(&l, false, 1);
    late_begin(&l, *state);
    release(&l.lease);
    late_check(&l, false, 1);
    late_begin(&l, *state);
    release_hold(&l.hold);
    late_check(&l, false, 1);
    late_begin(&l, *state);
    release_reservation(&l.reservation);
    late_check(&l, false, 1);
    late_begin(&l, *state);
    release(&l.device_lease); /* idle stream: it is pending too, and reaped with the other */
    assert_false(late_reaped(&l, &after));
    assert_int_equal(after - l.before, 1 + 2);
    tt_free(l.payload);
}

static void mc091_reads_that_do_not_reap(void **state) {
    struct late l;
    const void *data = NULL;
    tn_location at;
    bool yes = false;

    late_begin(&l, *state);
    assert_ok(tn_manager_locations(l.m, NULL, &(size_t){0}));
    late_check(&l, false, 0);
    late_begin(&l, *state);
    assert_ok(tn_manager_trace(l.m, NULL, &(size_t){0}));
    late_check(&l, false, 0);
    late_begin(&l, *state);
    assert_ok(tn_manager_clear_trace(l.m));
    late_check(&l, false, 0);
    late_begin(&l, *state);
    assert_ok(tn_lease_lookup(&l.lease, l.rep, &data));
    assert_ok(tn_lease_contains(&l.lease, l.rep, &yes));
    assert_ok(tn_lease_handles(&l.lease, NULL, &(size_t){0}));
    assert_ok(tn_lease_location(&l.lease, &at));
    assert_true(tn_lease_active(&l.lease));
    late_check(&l, false, 0);
    late_begin(&l, *state);
    assert_ok(tn_lease_add_stream(&l.device_lease, l.stream));
    late_check(&l, false, 0);
}

static void mc092_closed_manager_has_no_version(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    uint64_t v = 77;

    assert_ok(tn_manager_close(m, 0));
    assert_status(tn_manager_state_version(m, &v), TN_ERR_CLOSED);
    assert_int_equal(v, 77);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(mc082_a_life_in_versions),
    SPEC_BOTH(mc083_adopt_and_reserve),
    SPEC_BOTH(mc084_three_handles_count_once),
    SPEC_BOTH(mc085_cuda_lease),
    SPEC_BOTH(mc086_one_read_reaps_all),
    SPEC_BOTH(mc087_no_reap_in_reads_of_locations_and_trace),
    SPEC_BOTH(mc091_adopt_and_register_reap),
    SPEC_BOTH(mc091_actions_reap),
    SPEC_BOTH(mc091_refused_actions_reap),
    SPEC_BOTH(mc091_lifetimes_and_observations_reap),
    SPEC_BOTH(mc091_close_reaps),
    SPEC_BOTH(mc091_reserve_and_releases_do_not_reap),
    SPEC_BOTH(mc091_reads_that_do_not_reap),
    SPEC_BOTH(mc092_closed_manager_has_no_version),
};

TN_TEST_MAIN("spec.version", tests)
