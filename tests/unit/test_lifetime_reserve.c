/* SPDX-License-Identifier: MIT */
/*
 * src/lifetime/reserve.c: the first reserve at a location, adoption from a reservation against its
 * release, labels, the order of admission (B1, B2, M157..M159).
 */
#include "core_fixture.h"

static void ledger_of(tn_manager *m, tn_location at, uint64_t total) {
    uint64_t got, claimed;
    tn__ledger_read(tn__store_ledger(m->store, at), &got, &claimed);
    assert_int_equal(got, total);
    assert_int_equal(claimed, 0);
}

/* ---- Adoption from a reservation against its release -------------------------------------- */

struct adopting {
    tn_manager *m;
    struct args x;
};

static struct adopting adopting_of(struct spec *f, uint64_t bytes) {
    struct adopting a = {.m = MANAGER(f, {P, 100})};
    a.x = (struct args){.m = a.m, .payload = spec_v(f, P), .at = P};
    a.x.reservation = reserve(a.m, P, bytes, "workspace");
    return a;
}

/* Stopped when it is admitted, under the lock: a release needs none, and comes first. */
static void adopt_after_a_release_of_its_reservation_is_refused(void **state) {
    struct op adopter;
    NEED_POINTS();
    struct adopting a = adopting_of(*state, 40);
    OP_START(&adopter, run_adopt_reserved, &a.x, TN__POINT_ADMIT);
    op_reach(&adopter);
    release_reservation(&a.x.reservation);
    assert_status(op_end(&adopter), TN_ERR_LIFETIME_CLOSED);
    ledger_of(a.m, P, 0);
    assert_int_equal(info(a.m).value_count, 0);
    tt_free(a.x.payload); /* still ours */
}

/* The record has another life meanwhile, a reservation like the first: the generation tells. */
static void adopt_after_reuse_of_its_reservation_is_refused(void **state) {
    struct op adopter;
    NEED_POINTS();
    struct adopting a = adopting_of(*state, 40);
    OP_START(&adopter, run_adopt_reserved, &a.x, TN__POINT_ADMIT);
    op_reach(&adopter);
    release_reservation(&a.x.reservation);
    tn_reservation next = reserve(a.m, P, 40, "another");
    assert_ptr_equal(next.record, a.x.reservation.record);
    assert_status(op_end(&adopter), TN_ERR_LIFETIME_CLOSED);
    assert_int_equal(reserved(a.m, P), 40);
    release_reservation(&next);
    tt_free(a.x.payload);
}

static void adopt_takes_bytes_and_leaves_the_rest(void **state) {
    struct adopting a = adopting_of(*state, 40);
    tn_reservation_info row = {.size = sizeof row};
    /* one materialization; the reservation's own change counts nothing */
    assert_rises(a.m, 1, assert_ok(run_adopt_reserved(&a.x)));
    ledger_of(a.m, P, 40);
    assert_int_equal(used(a.m, P), 32);
    assert_ok(tn_reservation_read(&a.x.reservation, &row));
    assert_int_equal(row.bytes, 8);
    release_reservation(&a.x.reservation);
    ledger_of(a.m, P, 32);
    assert_peaks(a.m, P, 32, 40);
}

static void adopt_from_too_small_a_reservation_names_what_is_left(void **state) {
    struct adopting a = adopting_of(*state, 31);
    assert_status(run_adopt_reserved(&a.x), TN_ERR_BUDGET);
    assert_int_equal(tn_last_error()->reason, TN_REASON_RESERVATION_BUDGET);
    assert_int_equal(tn_last_error()->budget_bytes, 31);
    assert_int_equal(tn_last_error()->requested_bytes, 32);
    ledger_of(a.m, P, 31);
    tt_free(a.x.payload);
}

static void adopt_from_what_is_no_such_reservation_is_refused(void **state) {
    struct spec *f = *state;
    struct adopting a = adopting_of(f, 40);
    tn_manager *other = MANAGER(f);
    tn_hold h = hold(a.m, adopt_rep(f, a.m, P), P);
    tn_reservation good = a.x.reservation, elsewhere = reserve(a.m, N, 40, "elsewhere");
    tn_reservation foreign = reserve(other, P, 40, "foreign"), none = {NULL, 0};
    const struct {
        tn_reservation r;
        tn_status status;
    } bad[] = {{none, TN_ERR_LIFETIME_CLOSED},
               {foreign, TN_ERR_VALUE},
               {elsewhere, TN_ERR_VALUE},
               {{h.record, h.generation}, TN_ERR_VALUE},
               {{good.record, good.generation + 1}, TN_ERR_LIFETIME_CLOSED}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        a.x.reservation = bad[i].r;
        assert_status(run_adopt_reserved(&a.x), bad[i].status);
    }
    a.x.reservation = good;
    assert_ok(run_adopt_reserved(&a.x));
    release_hold(&h);
    release_reservation(&good);
    release_reservation(&elsewhere);
    release_reservation(&foreign);
}

#define ROUNDS 300

struct contest {
    struct spec *f;
    tn_manager *m;
    tn_reservation r[ROUNDS];
    tn_payload payload[ROUNDS];
    atomic_int turn;
    bool adopted[ROUNDS];
};

static const char *adopt_or_release(int index, void *arg) {
    struct contest *c = arg;
    for (int i = 0; i < ROUNDS && !tn_test_workers_failed(); i++) {
        while (atomic_load(&c->turn) / 2 < i && !tn_test_workers_failed())
            tn__relax();
        if (index == 0) {
            TN_WORKER_STATUS(tn_reservation_release(&c->r[i]), TN_OK);
        } else {
            tn_handle h;
            tn_status status =
                tn_manager_adopt_reserved(c->m, c->payload[i], P, TN_REPLICABLE, &c->r[i], &h);
            if (status != TN_OK)
                TN_WORKER_STATUS(status, TN_ERR_LIFETIME_CLOSED);
            c->adopted[i] = status == TN_OK;
        }
        atomic_fetch_add(&c->turn, 1);
    }
    return NULL;
}

/* Whoever comes first: the bytes are charged once, to the value or to nobody. */
static void adopt_against_release_counts_the_bytes_once(void **state) {
    static struct contest c;
    uint64_t adopted = 0;
    c = (struct contest){.f = *state, .m = MANAGER(*state, {P, 64 * ROUNDS})};
    for (int i = 0; i < ROUNDS; i++) {
        c.r[i] = reserve(c.m, P, 64, "contested");
        c.payload[i] = spec_v(c.f, P);
    }
    assert_null_text(tn_test_workers_run(2, adopt_or_release, &c));
    for (int i = 0; i < ROUNDS; i++) {
        adopted += c.adopted[i];
    }
    ledger_of(c.m, P, 32 * adopted);
    assert_int_equal(used(c.m, P), 32 * adopted);
    assert_int_equal(reserved(c.m, P), 0);
    for (int i = 0; i < ROUNDS; i++) /* nobody owns their storage */
        if (!c.adopted[i])
            (void)spec_adopt(c.m, c.payload[i], P, TN_REPLICABLE);
}

/* ---- The first reserve at a location ------------------------------------------------------ */

static void first_reserve_tracks_its_location(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    assert_locations(m);
    assert_rises(m, 2, (void)reserve(m, C1, 0, "first"));
    assert_locations(m, C1);
    assert_rises(m, 1, (void)reserve(m, C1, 0, "second"));
}

struct tracking {
    tn_manager *m;
    tn_reservation r[4];
};

static const char *reserve_there(int index, void *arg) {
    struct tracking *t = arg;
    TN_WORKER_STATUS(tn_manager_reserve(t->m, C0, 8, "there", &t->r[index]), TN_OK);
    return NULL;
}

/* Several at once: tracked once, every reservation counted. */
static void first_reserves_of_many_threads_track_once(void **state) {
    struct spec *f = *state;
    for (int round = 0; round < 20; round++) {
        struct tracking t = {.m = MANAGER(f)};
        assert_null_text(tn_test_workers_run(4, reserve_there, &t));
        assert_locations(t.m, C0);
        assert_int_equal(version(t.m), 5);
        assert_int_equal(reserved(t.m, C0), 32);
        for (int i = 0; i < 4; i++)
            release_reservation(&t.r[i]);
        ledger_of(t.m, C0, 0);
        spec_destroy(f, t.m);
    }
}

static void first_reserve_that_does_not_fit_tracks_nothing(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_reservation r;
    tn_reservation big = reserve(m, C0, INT64_MAX, "all there is");
    assert_status(tn_manager_reserve(m, C0, 1, "one more", &r), TN_ERR_BUDGET);
    release_reservation(&big);
    tn__ledger *ledger = tn__store_ledger(m->store, C1); /* bytes without tracking: a claim */
    assert_true(tn__ledger_claim(ledger, INT64_MAX));
    assert_status(tn_manager_reserve(m, C1, 1, "no", &r), TN_ERR_BUDGET);
    assert_int_equal(tn_last_error()->claimed_bytes, INT64_MAX);
    tn__ledger_unclaim(ledger, INT64_MAX);
    assert_locations(m, C0);
}

/* Refused by the manager word at the last step: no bytes, no location, no record. */
static void reserve_refused_by_the_guard_leaves_nothing(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 100});
    tn_reservation r = {NULL, 0};
    (void)own_slot(m);
    tn__life_guard_raise(m->life);
    assert_status(tn__life_reserve(m->life, P, 10, "known", &r), TN_ERR_REENTRANCY);
    assert_status(tn__life_reserve(m->life, C0, 10, "unknown", &r), TN_ERR_REENTRANCY);
    tn__life_guard_lower(m->life);
    assert_null(r.record);
    ledger_of(m, P, 0);
    ledger_of(m, C0, 0);
    assert_locations(m, P);
}

/* Bytes that a plan has claimed are the plan's again. */
static void claimed_reserve_that_is_refused_leaves_the_claim(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 100});
    tn__ledger *ledger = tn__store_ledger(m->store, P);
    tn_reservation r = {NULL, 0};
    uint64_t total, claimed;
    (void)own_slot(m);
    assert_true(tn__ledger_claim(ledger, 10));
    tn__life_guard_raise(m->life);
    assert_status(tn__life_reserve_claimed(m->life, P, 10, "known", &r), TN_ERR_REENTRANCY);
    tn__life_guard_lower(m->life);
    assert_null(r.record);
    tn__ledger_read(ledger, &total, &claimed);
    assert_int_equal(total, 10);
    assert_int_equal(claimed, 10);
    tn__ledger_unclaim(ledger, 10);
    ledger_of(m, P, 0);
}

/* A close that is decided refuses at the commit point, when the bytes are a charge already. */
static void first_reserve_that_a_close_refuses_leaves_the_claim(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn__removal *plan = tn__removal_new(NULL, 0, 0);
    tn__ledger *ledger = tn__store_ledger(m->store, C0);
    tn_reservation r = {NULL, 0};
    uint64_t total, claimed;
    (void)own_slot(m);
    assert_true(tn__ledger_claim(ledger, 10));
    tn__store_rlx(&plan->decision, TN__TAKEN);
    tn__store_rel(&m->life->gate->word, (uintptr_t)plan);
    assert_status(tn__life_reserve_claimed(m->life, C0, 10, "claimed", &r), TN_ERR_CLOSED);
    tn__ledger_read(ledger, &total, &claimed);
    assert_int_equal(total, 10);
    assert_int_equal(claimed, 10);
    assert_status(tn__life_reserve(m->life, C1, 10, "its own", &r), TN_ERR_CLOSED);
    tn__store_rel(&m->life->gate->word, TN__MANAGER_OPEN);
    tn__free(plan);
    assert_null(r.record);
    tn__ledger_unclaim(ledger, 10);
    ledger_of(m, C0, 0);
    ledger_of(m, C1, 0);
    assert_locations(m);
}

/* ---- What a reservation says -------------------------------------------------------------- */

static void reservation_keeps_a_label_of_any_length(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    char label[256];
    for (size_t length = 1; length < sizeof label; length += 18) {
        tn_reservation_info row = {.size = sizeof row};
        memset(label, 'a' + (int)(length % 26), length);
        label[length] = '\0';
        tn_reservation r = reserve(m, P, length, label);
        assert_ok(tn_reservation_read(&r, &row));
        assert_string_equal(row.label, label);
        assert_int_equal(row.bytes, length);
        assert_at(row.at, P);
        release_reservation(&r);
        assert_status(tn_reservation_read(&r, &row), TN_ERR_LIFETIME_CLOSED);
    }
}

static void reservations_are_listed_in_order_of_admission(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_reservation_info rows[8] = {{.size = sizeof rows[0]}};
    size_t count = 8;
    tn_snapshot *s = NULL;
    tn_reservation a = reserve(m, P, 1, "a"), b = reserve(m, P, 2, "b");
    release_reservation(&a); /* its record is used again, by the youngest */
    (void)reserve(m, N, 3, "c");
    (void)reserve(m, P, 4, "d");
    assert_ok(tn_snapshot_take(m, &s));
    assert_ok(tn_snapshot_reservations(s, rows, &count));
    tn_snapshot_drop(s);
    assert_int_equal(count, 3);
    assert_string_equal(rows[0].label, "b");
    assert_string_equal(rows[1].label, "c");
    assert_string_equal(rows[2].label, "d");
    release_reservation(&b);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(adopt_after_a_release_of_its_reservation_is_refused),
    SPEC_CONCURRENT(adopt_after_reuse_of_its_reservation_is_refused),
    SPEC_BOTH(adopt_takes_bytes_and_leaves_the_rest),
    SPEC_BOTH(adopt_from_too_small_a_reservation_names_what_is_left),
    SPEC_BOTH(adopt_from_what_is_no_such_reservation_is_refused),
    SPEC_BOTH(adopt_against_release_counts_the_bytes_once),
    SPEC_CONCURRENT(first_reserve_tracks_its_location),
    SPEC_BOTH(first_reserves_of_many_threads_track_once),
    SPEC_CONCURRENT(first_reserve_that_does_not_fit_tracks_nothing),
    SPEC_SERIAL(reserve_refused_by_the_guard_leaves_nothing),
    SPEC_SERIAL(claimed_reserve_that_is_refused_leaves_the_claim),
    SPEC_BOTH(first_reserve_that_a_close_refuses_leaves_the_claim),
    SPEC_CONCURRENT(reservation_keeps_a_label_of_any_length),
    SPEC_CONCURRENT(reservations_are_listed_in_order_of_admission),
};

TN_TEST_MAIN("unit.lifetime_reserve", tests)
