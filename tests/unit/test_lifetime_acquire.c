/* SPDX-License-Identifier: MIT */
/*
 * src/lifetime/acquire.c, lookup.c, fast.h: what a lease is of, the order of its errors, and that the
 * leaf path and the long one say the same (L2, M128..M135, D6).
 */
#include "core_fixture.h"

struct scene {
    struct spec *f;
    tn_manager *m;
    tn_handle v, w, gone, unloaded; /* v, w at P; gone: discarded */
    tn_handle forged, foreign;
};

static struct scene scene_of(struct spec *f) {
    struct scene s = {.f = f, .m = MANAGER(f)};
    tn_manager *other = MANAGER(f);
    s.v = adopt_rep(f, s.m, P);
    s.w = adopt_exc(f, s.m, P);
    s.gone = adopt_rep(f, s.m, P);
    s.unloaded = register_src(s.m, spec_source(f));
    (void)discard(s.m, s.gone);
    s.forged = s.v;
    s.forged.index += 1000;
    s.foreign = adopt_rep(f, other, P);
    return s;
}

static tn_status try_acquire(struct scene *s, tn_handle h, tn_location at, tn_lease *out) {
    return tn_manager_acquire(s->m, &h, 1, at, NULL, out);
}

/* ---- The leaf path and the long one ------------------------------------------------------ */

/* Everything that a single host acquire can say, first by a thread without a record, then warm. */
static void acquire_says_the_same_cold_and_warm(void **state) {
    struct scene s = scene_of(*state);
    tn_handle wrong_type = s.v;
    wrong_type.type = tt_other_type();
    tn_handle nothing = {0, 0, NULL};
    const struct {
        tn_handle h;
        tn_location at;
        tn_status status;
        uint32_t cause;
    } cases[] = {
        {s.v, P, TN_OK, 0},
        {s.w, P, TN_OK, 0},
        {s.v, N, TN_ERR_UNAVAILABLE, 0},
        {s.v, C0, TN_ERR_VALUE, 0}, /* no stream */
        {s.v, C2, TN_ERR_VALUE, 0},
        {s.v, NOWHERE, TN_ERR_KIND, 0},
        {s.unloaded, P, TN_ERR_UNAVAILABLE, 0},
        {s.gone, P, TN_ERR_HANDLE, TN_HANDLE_DISCARDED},
        {s.forged, P, TN_ERR_HANDLE, TN_HANDLE_UNKNOWN},
        {wrong_type, P, TN_ERR_HANDLE, TN_HANDLE_UNKNOWN},
        {s.foreign, P, TN_ERR_HANDLE, TN_HANDLE_FOREIGN},
        {nothing, P, TN_ERR_KIND, 0},
    };
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            tn_lease lease = {NULL, 0};
            uint64_t before = version(s.m);
            tn_status status = try_acquire(&s, cases[i].h, cases[i].at, &lease);
            assert_status(status, cases[i].status);
            if (status != TN_OK) {
                assert_int_equal(tn_last_error()->handle_cause, cases[i].cause);
                assert_null(lease.record);
                assert_int_equal(version(s.m), before);
                continue;
            }
            assert_int_equal(version(s.m), before + 1);
            release(&lease);
            assert_int_equal(version(s.m), before + 2);
        }
    assert_int_equal(info(s.m).lease_count, 0);
}

/* A forgotten discarded value (D12) is still "discarded". */
static void acquire_of_a_forgotten_value_says_discarded(void **state) {
    struct spec *f = *state;
    tn_config config = spec_config(f);
    tn_handle h[3];
    tn_lease lease;
    config.keep_discarded = 1;
    tn_manager *m = spec_manager_with(f, &config);
    for (int i = 0; i < 3; i++)
        h[i] = adopt_rep(f, m, P);
    for (int i = 0; i < 3; i++)
        (void)discard(m, h[i]);
    for (int i = 0; i < 3; i++)
        assert_handle_error(tn_manager_acquire(m, &h[i], 1, P, NULL, &lease), TN_HANDLE_DISCARDED);
}

static void acquire_and_release_of_a_warm_thread_take_no_lock(void **state) {
    struct scene s = scene_of(*state);
    tn_lease lease = acquire(s.m, s.v, P, NULL);
    release(&lease);
    uint64_t locks = tn__lock_count(), allocs = tn__alloc_live();
    for (int i = 0; i < 10; i++) {
        lease = acquire(s.m, s.v, P, NULL);
        release(&lease);
    }
    assert_int_equal(tn__lock_count(), locks);
    assert_int_equal(tn__alloc_live(), allocs);
}

/* The leaf path meets the manager word last, and undoes what it did. */
static void warm_acquire_that_meets_another_word_is_undone(void **state) {
    struct scene s = scene_of(*state);
    const uintptr_t words[] = {TN__MANAGER_GUARDED, TN__MANAGER_CLOSED, TN__MANAGER_FORKED};
    const tn_status statuses[] = {TN_ERR_REENTRANCY, TN_ERR_CLOSED, TN_ERR_FORKED};
    tn_lease lease = acquire(s.m, s.v, P, NULL), other = {NULL, 0};
    tn__record *record = lease.record;
    release(&lease);
    for (int i = 0; i < 3; i++) {
        tn__slot *slot = own_slot(s.m);
        uint64_t count = tn__load_acq(&slot->counter);
        tn__store_rel(&s.m->life->gate->word, words[i]);
        assert_status(try_acquire(&s, s.v, P, &other), statuses[i]);
        tn__store_rel(&s.m->life->gate->word, TN__MANAGER_OPEN);
        assert_null(other.record);
        assert_int_equal(tn__load_acq(&slot->counter), count);
        assert_int_equal(state_of(record), TN__FREE);
    }
    lease = acquire(s.m, s.v, P, NULL);
    tn__store_rel(&s.m->life->gate->word, TN__MANAGER_GUARDED);
    assert_status(tn_lease_release(&lease, 0), TN_ERR_REENTRANCY);
    tn__store_rel(&s.m->life->gate->word, TN__MANAGER_OPEN);
    release(&lease);
}

/* ---- Several values (L2) ------------------------------------------------------------------ */

static void acquire_of_several_collapses_duplicates(void **state) {
    struct scene s = scene_of(*state);
    tn_handle h[5] = {s.w, s.v, s.w, s.v, s.v}, read[5];
    size_t count = 5;
    tn_lease lease;
    assert_rises(s.m, 1, assert_ok(tn_manager_acquire(s.m, h, 5, P, NULL, &lease)));
    assert_ok(tn_lease_handles(&lease, read, &count));
    assert_int_equal(count, 2);
    assert_handle(read[0], s.w);
    assert_handle(read[1], s.v);
    count = 1; /* the real total, also if larger */
    assert_ok(tn_lease_handles(&lease, read, &count));
    assert_int_equal(count, 2);
    assert_int_equal(mat(s.m, s.v, P).use_count, 1);
    release(&lease);
    count = 5;
    assert_status(tn_lease_handles(&lease, read, &count), TN_ERR_LIFETIME_CLOSED);
}

/* The first failing handle is reported, whatever kind of failure comes later (M131). */
static void acquire_of_several_reports_the_first_failure(void **state) {
    struct scene s = scene_of(*state);
    const tn_handle bad[4] = {s.unloaded, s.gone, s.forged, s.foreign};
    const tn_status statuses[4] = {TN_ERR_UNAVAILABLE, TN_ERR_HANDLE, TN_ERR_HANDLE, TN_ERR_HANDLE};
    for (int first = 0; first < 4; first++)
        for (int second = 0; second < 4; second++) {
            tn_handle h[4] = {s.v, bad[first], s.w, bad[second]};
            tn_lease lease = {NULL, 0};
            tn_hold held = {NULL, 0};
            assert_rises(s.m, 0, {
                assert_status(tn_manager_acquire(s.m, h, 4, P, NULL, &lease), statuses[first]);
                assert_handle(tn_last_error()->handle, bad[first]);
                assert_status(tn_manager_hold(s.m, h, 4, P, &held), statuses[first]);
            });
            assert_null(lease.record);
            assert_int_equal(mat(s.m, s.v, P).use_count + mat(s.m, s.v, P).hold_count, 0);
        }
    tn_handle only[1] = {s.foreign};
    tn_lease lease;
    assert_handle_error(tn_manager_acquire(s.m, only, 1, P, NULL, &lease), TN_HANDLE_FOREIGN);
}

/* ---- Looking into a lease ----------------------------------------------------------------- */

static void lookup_gives_the_payload_of_each_value(void **state) {
    struct scene s = scene_of(*state);
    tn_handle h[2] = {s.v, s.w}, wrong_type = s.v;
    const void *data = NULL, *other = NULL;
    bool contains;
    tn_location at;
    tn_lease lease, none = {NULL, 0};
    assert_ok(tn_manager_acquire(s.m, h, 2, P, NULL, &lease));
    assert_ok(tn_lease_lookup(&lease, s.v, &data));
    assert_ok(tn_lease_lookup(&lease, s.w, &other));
    assert_ptr_equal(data, mat_of(s.m, s.v, P)->payload.data);
    assert_ptr_equal(other, mat_of(s.m, s.w, P)->payload.data);
    assert_status(tn_lease_lookup(&lease, s.unloaded, &data), TN_ERR_LOOKUP);
    assert_status(tn_lease_lookup(&lease, s.foreign, &data), TN_ERR_LOOKUP);
    wrong_type.type = tt_other_type();
    assert_status(tn_lease_lookup(&lease, wrong_type, &data), TN_ERR_LOOKUP);
    assert_ok(tn_lease_contains(&lease, s.w, &contains));
    assert_true(contains);
    assert_ok(tn_lease_contains(&lease, s.unloaded, &contains));
    assert_false(contains);
    assert_ok(tn_lease_location(&lease, &at));
    assert_at(at, P);
    release(&lease);
    for (int i = 0; i < 2; i++) {
        const tn_lease *over = i ? &lease : &none;
        size_t count = 0;
        assert_status(tn_lease_lookup(over, s.v, &data), TN_ERR_LIFETIME_CLOSED);
        assert_status(tn_lease_contains(over, s.v, &contains), TN_ERR_LIFETIME_CLOSED);
        assert_status(tn_lease_location(over, &at), TN_ERR_LIFETIME_CLOSED);
        assert_status(tn_lease_handles(over, NULL, &count), TN_ERR_LIFETIME_CLOSED);
        assert_false(tn_lease_active(over));
    }
    assert_false(tn_lease_active(NULL));
}

/* The record's next life must not be read for this one. */
static void lookup_of_an_ended_lease_does_not_see_the_next(void **state) {
    struct scene s = scene_of(*state);
    tn_lease first = acquire(s.m, s.v, P, NULL), second;
    const void *data = NULL;
    release(&first);
    second = acquire(s.m, s.w, P, NULL);
    assert_ptr_equal(second.record, first.record);
    assert_status(tn_lease_lookup(&first, s.w, &data), TN_ERR_LIFETIME_CLOSED);
    assert_status(tn_lease_lookup(&first, s.v, &data), TN_ERR_LIFETIME_CLOSED);
    assert_true(tn_lease_active(&second));
    release(&second);
}

/* M150: after a forced close the handles stay readable, the payload does not. */
static void lookup_after_a_forced_close_is_unavailable(void **state) {
    struct scene s = scene_of(*state);
    tn_lease lease = acquire(s.m, s.v, P, NULL);
    const void *data = NULL;
    size_t count = 0;
    tn_location at;
    bool contains = false;
    assert_ok(tn_manager_close(s.m, TN_CLOSE_FORCE));
    assert_status(tn_lease_lookup(&lease, s.v, &data), TN_ERR_UNAVAILABLE);
    assert_handle(tn_last_error()->handle, s.v);
    assert_ok(tn_lease_handles(&lease, NULL, &count));
    assert_int_equal(count, 1);
    assert_ok(tn_lease_contains(&lease, s.v, &contains));
    assert_true(contains);
    assert_ok(tn_lease_location(&lease, &at));
    release(&lease);
    assert_status(tn_lease_lookup(&lease, s.v, &data), TN_ERR_LIFETIME_CLOSED);
}

static void hold_and_reservation_answer_like_leases(void **state) {
    struct scene s = scene_of(*state);
    tn_hold h = hold(s.m, s.v, P), no_hold = {NULL, 0};
    tn_reservation r = reserve(s.m, N, 5, "five"), no_reservation = {NULL, 0};
    tn_reservation_info row = {.size = sizeof row};
    tn_handle read[2];
    size_t count = 2;
    tn_location at;
    assert_true(tn_hold_active(&h) && tn_reservation_active(&r));
    assert_false(tn_hold_active(&no_hold) || tn_hold_active(NULL));
    assert_false(tn_reservation_active(&no_reservation) || tn_reservation_active(NULL));
    assert_ok(tn_hold_handles(&h, read, &count));
    assert_int_equal(count, 1);
    assert_handle(read[0], s.v);
    assert_ok(tn_hold_location(&h, &at));
    assert_at(at, P);
    assert_status(tn_hold_location(&no_hold, &at), TN_ERR_LIFETIME_CLOSED);
    assert_ok(tn_reservation_read(&r, &row));
    assert_status(tn_reservation_read(&no_reservation, &row), TN_ERR_LIFETIME_CLOSED);
    release_hold(&h);
    release_reservation(&r);
    assert_status(tn_hold_handles(&h, read, &count), TN_ERR_LIFETIME_CLOSED);
    assert_status(tn_reservation_read(&r, &row), TN_ERR_LIFETIME_CLOSED);
}

struct reading {
    struct scene s;
    tn_lease lease; /* under the lock of the store: only for the test */
    atomic_bool stop;
};

/* Looks at leases that another thread ends and begins: never the payload of another life. */
static const char *look_or_renew(int index, void *arg) {
    struct reading *r = arg;
    tn__mutex *lock = &r->s.m->store->lock;
    for (int i = 0; i < 3000 && !tn_test_workers_failed(); i++) {
        tn__lock(lock);
        tn_lease lease = r->lease;
        tn__unlock(lock);
        if (index == 0) {
            tn_handle h = i % 2 ? r->s.v : r->s.w;
            TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
            TN_WORKER_STATUS(tn_manager_acquire(r->s.m, &h, 1, P, NULL, &lease), TN_OK);
            tn__lock(lock);
            r->lease = lease;
            tn__unlock(lock);
            continue;
        }
        const void *v = NULL;
        tn_status status = tn_lease_lookup(&lease, r->s.v, &v);
        TN_WORKER_CHECK(status == TN_OK || status == TN_ERR_LIFETIME_CLOSED ||
                        status == TN_ERR_LOOKUP);
        if (status == TN_OK)
            TN_WORKER_CHECK(tt_check(v, 1));
    }
    return NULL;
}

static void lookup_beside_reuse_of_the_record_is_of_one_life(void **state) {
    struct reading r = {.s = scene_of(*state)};
    r.lease = acquire(r.s.m, r.s.v, P, NULL);
    assert_null_text(tn_test_workers_run(3, look_or_renew, &r));
    release(&r.lease);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(acquire_says_the_same_cold_and_warm),
    SPEC_CONCURRENT(acquire_of_a_forgotten_value_says_discarded),
    SPEC_CONCURRENT(acquire_and_release_of_a_warm_thread_take_no_lock),
    SPEC_CONCURRENT(warm_acquire_that_meets_another_word_is_undone),
    SPEC_CONCURRENT(acquire_of_several_collapses_duplicates),
    SPEC_CONCURRENT(acquire_of_several_reports_the_first_failure),
    SPEC_CONCURRENT(lookup_gives_the_payload_of_each_value),
    SPEC_CONCURRENT(lookup_of_an_ended_lease_does_not_see_the_next),
    SPEC_CONCURRENT(lookup_after_a_forced_close_is_unavailable),
    SPEC_CONCURRENT(hold_and_reservation_answer_like_leases),
    SPEC_CONCURRENT(lookup_beside_reuse_of_the_record_is_of_one_life),
};

TN_TEST_MAIN("unit.lifetime_acquire", tests)
