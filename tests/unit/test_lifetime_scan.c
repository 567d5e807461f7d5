/* SPDX-License-Identifier: MIT */
/*
 * src/lifetime/scan.c: which states count as what, records that change while they are read, pins
 * beyond what a walk keeps on its stack (S1, M255).
 */
#include "core_fixture.h"

/* A record of this thread, put into a state by hand. */
static tn__record *record_with(tn_manager *m, tn__mat *mat, enum tn__record_kind kind) {
    tn__record *record = tn__record_obtain(own_slot(m));
    tn__pins *pins = tn__record_pins(record, 1);
    assert_non_null(pins);
    tn__store_rlx(&record->pin_count, 1);
    tn__store_rlx(&pins->pin[0].index, mat->index);
    tn__store_rlx(&record->what, tn__what(kind, mat->at));
    tn__store_rel(&pins->pin[0].mat, mat);
    return record;
}

static void put_into(tn__record *record, enum tn__record_state state) {
    uint64_t generation = tn__word_generation(tn__load_rlx(&record->pair.low));
    tn__store_rel(&record->pair.low, tn__word(generation, state));
}

static void states_count_as_they_should(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, C0);
    tn__mat *mat = mat_of(m, v, C0);
    const struct {
        enum tn__record_kind kind;
        enum tn__record_state state;
        uint64_t uses, holds, pending;
    } rows[] = {
        {TN__KIND_LEASE, TN__FREE, 0, 0, 0},     {TN__KIND_LEASE, TN__ACQUIRING, 0, 0, 0},
        {TN__KIND_LEASE, TN__ACTIVE, 1, 0, 0},   {TN__KIND_LEASE, TN__RELEASING, 1, 0, 0},
        {TN__KIND_LEASE, TN__PENDING, 0, 0, 1},  {TN__KIND_LEASE, TN__DONE, 0, 0, 0},
        {TN__KIND_LEASE, TN__DETACHED, 0, 0, 0}, {TN__KIND_HOLD, TN__ACTIVE, 0, 1, 0},
        {TN__KIND_HOLD, TN__ACQUIRING, 0, 0, 0},
    };
    tn__record *record = record_with(m, mat, TN__KIND_LEASE);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tn__totals totals;
        tn__store_rlx(&record->what, tn__what(rows[i].kind, C0));
        put_into(record, rows[i].state);
        tn__protection p = protection_of(m, mat);
        assert_int_equal(p.uses, rows[i].uses);
        assert_int_equal(p.holds, rows[i].holds);
        assert_int_equal(p.pending, rows[i].pending);
        assert_int_equal(tn__protected(&p), rows[i].uses + rows[i].holds + rows[i].pending != 0);
        tn__life_totals(m->life, &totals);
        assert_int_equal(totals.active_leases, rows[i].uses);
        assert_int_equal(totals.holds, rows[i].holds);
        assert_int_equal(totals.pending_leases, rows[i].pending);
        tn_snapshot_info head = info(m);
        assert_int_equal(head.lease_count, rows[i].uses);
        assert_int_equal(head.hold_count, rows[i].holds);
        assert_int_equal(head.pending_lease_count, rows[i].pending);
    }
    put_into(record, TN__FREE);
    tn__record_recycle(record, own_slot(m));
}

static void protections_are_counted_for_each_of_several(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h[3];
    tn__mat *mats[3];
    tn__protection p[3];
    for (int i = 0; i < 3; i++) {
        h[i] = adopt_rep(f, m, P);
        mats[i] = mat_of(m, h[i], P);
    }
    tn_lease all, one = acquire(m, h[1], P, NULL);
    assert_ok(tn_manager_acquire(m, h, 3, P, NULL, &all));
    tn_hold held = hold(m, h[2], P);
    tn__life_protections(m->life, mats, 3, p);
    assert_int_equal(p[0].uses, 1);
    assert_int_equal(p[1].uses, 2);
    assert_int_equal(p[2].uses, 1);
    assert_int_equal(p[2].holds, 1);
    tn__life_protections(m->life, mats, 0, p);
    release(&one);
    release(&all);
    release_hold(&held);
}

static tn_status wait_for_releasing(void *arg) {
    tn__scan_wait_releasing(((tn_manager *)arg)->life);
    return TN_OK;
}

/* Only for those that are recording their events, and however often the record is used again. */
static void wait_for_releases_ends_with_the_last(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn__mat *mat = mat_of(m, adopt_rep(f, m, P), P);
    tn__record *one = record_with(m, mat, TN__KIND_LEASE), *two;
    struct op waiter;
    put_into(one, TN__ACTIVE);
    two = record_with(m, mat, TN__KIND_LEASE);
    put_into(two, TN__PENDING);
    tn__scan_wait_releasing(m->life); /* neither is */
    put_into(one, TN__RELEASING);
    put_into(two, TN__RELEASING);
    OP_START(&waiter, wait_for_releasing, m, 0);
    pause_shortly();
    put_into(one, TN__FREE);
    pause_shortly();
    assert_false(atomic_load(&waiter.ended));
    put_into(two, TN__FREE);
    assert_status(op_end(&waiter), TN_OK);
    tn__record_recycle(one, own_slot(m));
    tn__record_recycle(two, own_slot(m));
}

/* ---- Walks -------------------------------------------------------------------------------- */

struct seen {
    size_t leases, pins, stop_after;
};

static bool look(void *context, const tn__seen *seen) {
    struct seen *s = context;
    s->leases += seen->what == TN__SEEN_LEASE;
    s->pins += seen->pin_count;
    return s->leases != s->stop_after;
}

static void walk_shows_all_pins_of_a_large_lease(void **state) {
    enum { MANY = 50 };
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h[MANY];
    tn_lease lease;
    struct seen s = {.stop_after = SIZE_MAX};
    for (int i = 0; i < MANY; i++)
        h[i] = adopt_rep(f, m, P);
    assert_ok(tn_manager_acquire(m, h, MANY, P, NULL, &lease));
    assert_true(tn__life_walk(m->life, look, &s));
    assert_int_equal(s.leases, 1);
    assert_int_equal(s.pins, MANY);
    tn__fault_alloc(1);
    assert_false(tn__life_walk(m->life, look, &s));
    tn__fault_alloc(0);
    release(&lease);
}

static void walk_ends_where_its_visitor_says(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_lease leases[5];
    struct seen s = {.stop_after = 2};
    for (int i = 0; i < 5; i++)
        leases[i] = acquire(m, v, P, NULL);
    assert_false(tn__life_walk(m->life, look, &s));
    assert_int_equal(s.leases, 2);
    for (int i = 0; i < 5; i++)
        release(&leases[i]);
}

/* ---- Records that change while they are read ---------------------------------------------- */

struct moving {
    struct spec *f;
    tn_manager *m;
    tn_handle a, b;
    tn__mat *mat_a, *mat_b;
    atomic_bool stop;
};

/* One record whose lives are of a, of b, of a ... */
static tn_status change_lives(void *arg) {
    struct moving *s = arg;
    while (!atomic_load(&s->stop)) {
        const tn_handle *h[2] = {&s->a, &s->b};
        for (int i = 0; i < 2; i++) {
            tn_lease lease;
            tn_status status = tn_manager_acquire(s->m, h[i], 1, P, NULL, &lease);
            if (status == TN_OK)
                status = tn_lease_release(&lease, 0);
            if (status != TN_OK)
                return status;
        }
    }
    return TN_OK;
}

/* A scan counts a pin only for the life that it belongs to: never both values, never more than one
 * use, never a hold. */
static void scan_of_a_record_that_changes_counts_one_life(void **state) {
    struct moving s = {.f = *state, .m = MANAGER(*state)};
    struct op mover;
    s.a = adopt_rep(s.f, s.m, P);
    s.b = adopt_rep(s.f, s.m, P);
    s.mat_a = mat_of(s.m, s.a, P);
    s.mat_b = mat_of(s.m, s.b, P);
    OP_START(&mover, change_lives, &s, 0);
    for (int i = 0; i < 20000; i++) {
        tn__mat *mats[2] = {s.mat_a, s.mat_b};
        tn__protection p[2];
        tn__totals totals;
        tn__life_protections(s.m->life, mats, 2, p);
        assert_true(p[0].uses + p[1].uses <= 1);
        assert_int_equal(p[0].holds + p[1].holds + p[0].pending + p[1].pending, 0);
        tn__life_totals(s.m->life, &totals);
        assert_true(totals.active_leases <= 1);
        assert_int_equal(totals.holds + totals.reservations + totals.pending_leases, 0);
    }
    atomic_store(&s.stop, true);
    assert_status(op_end(&mover), TN_OK);
}

/* One of the three scans on a thread of its own, which stops between the fields of the record and
 * the second reading of its word. */
struct scanning {
    tn_manager *m;
    tn_handle a, b;
    tn__mat *mat;       /* a's */
    size_t uses, other; /* what it counted */
};

static tn_status scan_protections(void *arg) {
    struct scanning *s = arg;
    tn__protection p = protection_of(s->m, s->mat);
    s->uses = p.uses;
    s->other = p.holds + p.pending;
    return TN_OK;
}

static tn_status scan_totals(void *arg) {
    struct scanning *s = arg;
    tn__totals t;
    tn__life_totals(s->m->life, &t);
    s->uses = t.active_leases;
    s->other = t.holds + t.pending_leases + t.reservations;
    return TN_OK;
}

static bool count_seen(void *context, const tn__seen *seen) {
    struct scanning *s = context;
    bool whole = seen->what == TN__SEEN_LEASE && seen->pin_count == 1;
    s->uses += whole && seen->pins[0].mat == s->mat && seen->pins[0].index == s->a.index;
    s->other += !whole || seen->pins[0].mat != s->mat;
    return true;
}

static tn_status scan_by_walk(void *arg) {
    struct scanning *s = arg;
    return tn__life_walk(s->m->life, count_seen, s) ? TN_OK : TN_ERR_HOST_MEMORY;
}

static tn_status (*const scans[])(void *) = {scan_protections, scan_totals, scan_by_walk};
#define SCANS (sizeof scans / sizeof scans[0])

static struct scanning scanning_of(struct spec *f, tn_location at) {
    struct scanning s = {.m = MANAGER(f)};
    s.a = adopt_rep(f, s.m, at);
    s.b = adopt_rep(f, s.m, at);
    s.mat = mat_of(s.m, s.a, at);
    return s;
}

/* The record is over, and used again for b: it is neither a's use any more nor, with a's fields,
 * one of b. */
static void scan_leaves_out_a_record_that_is_used_again_meanwhile(void **state) {
    struct scanning s = scanning_of(*state, P);
    NEED_POINTS();
    for (size_t i = 0; i < SCANS; i++) {
        tn_lease first = acquire(s.m, s.a, P, NULL), second;
        struct op scanner;
        s.uses = s.other = 0;
        OP_START(&scanner, scans[i], &s, TN__POINT_SEEN);
        op_reach(&scanner);
        release(&first);
        second = acquire(s.m, s.b, P, NULL);
        assert_ptr_equal(second.record, first.record);
        assert_status(op_end(&scanner), TN_OK);
        assert_int_equal(s.uses, 0);
        assert_int_equal(s.other, 0);
        release(&second);
    }
}

static void scan_leaves_out_a_record_that_ends_meanwhile(void **state) {
    struct scanning s = scanning_of(*state, P);
    NEED_POINTS();
    for (size_t i = 0; i < SCANS; i++) {
        tn_lease lease = acquire(s.m, s.a, P, NULL);
        struct op scanner;
        s.uses = s.other = 0;
        OP_START(&scanner, scans[i], &s, TN__POINT_SEEN);
        op_reach(&scanner);
        release(&lease);
        assert_status(op_end(&scanner), TN_OK);
        assert_int_equal(s.uses + s.other, 0);
    }
}

/* M124: no counter moves when a release begins, so whoever saw ACTIVE must still count the use. */
static void scan_counts_a_record_whose_release_begins_meanwhile(void **state) {
    struct spec *f = *state;
    struct scanning s = scanning_of(f, C0);
    tn_stream stream = spec_stream(f, 0);
    NEED_POINTS();
    for (size_t i = 0; i < SCANS; i++) {
        struct args ending = {.m = s.m, .lease = acquire(s.m, s.a, C0, stream)};
        struct op scanner, releaser;
        s.uses = s.other = 0;
        OP_START(&scanner, scans[i], &s, TN__POINT_SEEN);
        op_reach(&scanner);
        OP_START(&releaser, run_release, &ending, TN__POINT_RECORDED);
        op_reach(&releaser); /* RELEASING */
        assert_status(op_end(&scanner), TN_OK);
        assert_int_equal(s.uses, 1);
        assert_int_equal(s.other, 0);
        assert_status(op_end(&releaser), TN_OK);
    }
}

static const struct CMUnitTest tests[] = {
    SPEC_CONCURRENT(states_count_as_they_should),
    SPEC_CONCURRENT(protections_are_counted_for_each_of_several),
    SPEC_CONCURRENT(wait_for_releases_ends_with_the_last),
    SPEC_CONCURRENT(walk_shows_all_pins_of_a_large_lease),
    SPEC_CONCURRENT(walk_ends_where_its_visitor_says),
    SPEC_CONCURRENT(scan_of_a_record_that_changes_counts_one_life),
    SPEC_CONCURRENT(scan_leaves_out_a_record_that_is_used_again_meanwhile),
    SPEC_CONCURRENT(scan_leaves_out_a_record_that_ends_meanwhile),
    SPEC_CONCURRENT(scan_counts_a_record_whose_release_begins_meanwhile),
};

TN_TEST_MAIN("unit.lifetime_scan", tests)
