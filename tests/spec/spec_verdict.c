/* SPDX-License-Identifier: MIT */
/*
 * Whether waiting helps (enum tn_verdict): what explanations and errors say of a request that does
 * not fit, and what stands in its way. The same question is put as an explanation, as a direct
 * action and as a sequence, and has the same answer.
 */
#include "spec_plan_common.h"

#include <stdio.h>

static tn_blocker no_blocker = {.kind = TN_BLOCKER_NONE};

static tn_blocker of_value(uint32_t kind, uint64_t count, tn_handle h, tn_location at) {
    return (tn_blocker){.kind = kind, .count = count, .bytes = 32, .handle = h, .at = at};
}

static tn_blocker of_label(const char *label, uint64_t bytes, tn_location at) {
    tn_blocker b = {.kind = TN_BLOCKER_RESERVATION, .count = 1, .bytes = bytes, .at = at};

    snprintf(b.label, sizeof(b.label), "%.63s", label);
    return b;
}

static bool same_blocker(const tn_blocker *a, const tn_blocker *b) {
    return a->kind == b->kind && a->count == b->count && a->bytes == b->bytes &&
           a->handle.index == b->handle.index && tn_location_equal(a->at, b->at) &&
           strcmp(a->label, b->label) == 0 && a->reserved0 == 0;
}

static void print_blocker(const char *what, const tn_blocker *b) {
    print_error("%s: kind %u count %u bytes %u value %u '%s'\n", what, b->kind, (unsigned)b->count,
                (unsigned)b->bytes, (unsigned)b->handle.index, b->label);
}

static void assert_named(const tn_blocker *list, uint64_t count, const tn_blocker *want) {
    for (uint64_t i = 0; i < count; i++)
        if (same_blocker(&list[i], want))
            return;
    for (uint64_t i = 0; i < count; i++)
        print_blocker("named", &list[i]);
    print_blocker("not named", want);
    fail();
}

struct answer {
    uint32_t verdict;
    uint64_t missing, evictable;
    const tn_blocker *blockers; /* exactly these, in any order */
    size_t count;
};
#define ANSWER(verdict_, missing_, evictable_, ...)                                                \
    (&(struct answer){(verdict_), (missing_), (evictable_), SPEC_LIST(tn_blocker, __VA_ARGS__)})

/* `room` of the blockers are in the list. */
static void check_blockers(const tn_blocker *list, uint64_t count, uint64_t room,
                           const struct answer *want) {
    bool none = want->blockers[0].kind == TN_BLOCKER_NONE;

    assert_int_equal(count, none ? 0 : want->count);
    for (size_t i = 0; i < count && count <= room; i++)
        assert_named(list, count, &want->blockers[i]);
}

static void check_error(const tn_error *e, const struct answer *want) {
    assert_int_equal(e->verdict, want->verdict);
    assert_int_equal(e->missing_bytes, want->missing);
    assert_int_equal(e->evictable_bytes, want->evictable);
    check_blockers(e->blockers, e->blocker_count, TN_ERROR_OWNERS_MAX, want);
}

static void check_explained(const struct spec_explained *e, const struct answer *want) {
    assert_int_equal(e->head.feasible, 0);
    assert_int_equal(e->head.verdict, want->verdict);
    assert_int_equal(e->head.missing_bytes, want->missing);
    assert_int_equal(e->head.evictable_bytes, want->evictable);
    check_blockers(e->blockers, e->blocker_count, SPEC_EXPLAINED_MAX, want);
    check_error(&e->problem, want);
}

/* Ensure, explained, in a sequence, and alone. */
static void ask_ensure(tn_manager *m, tn_handle h, tn_location at, const struct answer *want) {
    struct spec_explained e = EXPLAIN(m, ENTER(ENSURE(h, at)));
    struct spec_run r = RUN(m, ENSURE(h, at));

    check_explained(&e, want);
    assert_status(r.status, TN_ERR_PLAN);
    assert_int_equal(r.error.cause_status, TN_ERR_BUDGET);
    check_error(&r.error, want);
    assert_status(tn_manager_ensure(m, h, at, NULL, NULL), TN_ERR_BUDGET);
    check_error(tn_last_error(), want);
}

/* Removal of a replica, the same three ways. */
static void ask_drop(tn_manager *m, tn_handle h, tn_location at, const struct answer *want) {
    struct spec_explained e = EXPLAIN(m, ENTER(DROP(h, at)));
    struct spec_run r = RUN(m, DROP(h, at));

    check_explained(&e, want);
    assert_status(r.status, TN_ERR_PLAN);
    assert_int_equal(r.error.cause_status, TN_ERR_IN_USE);
    check_error(&r.error, want);
    assert_status(tn_manager_drop(m, h, at, NULL), TN_ERR_IN_USE);
    check_error(tn_last_error(), want);
}

static void ask_reserve(tn_manager *m, tn_location at, uint64_t bytes, const struct answer *want) {
    struct spec_explained e = EXPLAIN(m, RESERVE({at, bytes, "wanted"}));
    tn_reservation r = {NULL, 0};

    check_explained(&e, want);
    assert_status(tn_manager_reserve(m, at, bytes, "wanted", &r), TN_ERR_BUDGET);
    check_error(tn_last_error(), want);
}

static tn_handle loaded(struct spec *f, tn_manager *m, tn_location at) {
    tn_handle h = register_src(m, spec_source(f));

    ensure(m, h, at);
    return h;
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

static void verdict_after_eviction(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {C0, 80});
    tn_handle h = register_src(m, spec_source(f));
    tn_handle a = loaded(f, m, C0);
    tn_lease lease;

    loaded(f, m, C0);
    ask_ensure(m, h, C0, ANSWER(TN_VERDICT_AFTER_EVICTION, 16, 64, no_blocker));
    ask_reserve(m, C0, 80, ANSWER(TN_VERDICT_AFTER_EVICTION, 64, 64, no_blocker));
    /* As long as the others are enough, a lease is not in the way. */
    lease = acquire(m, a, C0, spec_stream(f, 0));
    ask_ensure(m, h, C0, ANSWER(TN_VERDICT_AFTER_EVICTION, 16, 32, no_blocker));
    assert_ok(tn_lease_release(&lease, TN_RELEASE_WAIT));
    drop(m, a, C0);
    assert_feasible(EXPLAIN(m, ENTER(ENSURE(h, C0))));
    ensure(m, h, C0);
}

static void verdict_after_leases(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 64});
    tn_handle h = register_src(m, spec_source(f));
    tn_handle a = loaded(f, m, P);
    tn_handle b = loaded(f, m, P);
    tn_lease first = acquire(m, a, P, NULL);
    tn_lease second = acquire(m, a, P, NULL);
    tn_lease third = acquire(m, b, P, NULL);

    ask_ensure(m, h, P,
               ANSWER(TN_VERDICT_AFTER_LEASES, 32, 0, of_value(TN_BLOCKER_LEASE, 2, a, P),
                      of_value(TN_BLOCKER_LEASE, 1, b, P)));
    ask_reserve(m, P, 64,
                ANSWER(TN_VERDICT_AFTER_LEASES, 64, 0, of_value(TN_BLOCKER_LEASE, 2, a, P),
                       of_value(TN_BLOCKER_LEASE, 1, b, P)));
    release(&third);
    ask_reserve(m, P, 64,
                ANSWER(TN_VERDICT_AFTER_LEASES, 64, 32, of_value(TN_BLOCKER_LEASE, 2, a, P)));
    ask_ensure(m, h, P, ANSWER(TN_VERDICT_AFTER_EVICTION, 32, 32, no_blocker));
    release(&first);
    release(&second);
}

/* Where leases alone make room, nothing else is named: nobody has to wait for that. */
static void verdict_after_leases_beside_holds(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 96});
    tn_handle h = register_src(m, spec_source(f));
    tn_handle a = loaded(f, m, P);
    tn_handle b = loaded(f, m, P);
    tn_lease lease = acquire(m, a, P, NULL);
    tn_hold held = hold(m, b, P);
    tn_reservation r = reserve(m, P, 32, "r");

    ask_ensure(m, h, P,
               ANSWER(TN_VERDICT_AFTER_LEASES, 32, 0, of_value(TN_BLOCKER_LEASE, 1, a, P)));
    ask_reserve(m, P, 33,
                ANSWER(TN_VERDICT_BLOCKED, 33, 0, of_value(TN_BLOCKER_LEASE, 1, a, P),
                       of_value(TN_BLOCKER_HOLD, 1, b, P), of_label("r", 32, P)));
    release(&lease);
    release_hold(&held);
    release_reservation(&r);
}

static void verdict_after_the_work_of_leases(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {C0, 32});
    tn_handle h = register_src(m, spec_source(f));
    tn_handle a = loaded(f, m, C0);
    tn_stream s = spec_stream(f, 0);
    tn_lease lease = acquire(m, a, C0, s);

    spec_busy(f, s);
    release(&lease);
    ask_ensure(m, h, C0,
               ANSWER(TN_VERDICT_AFTER_LEASES, 32, 0, of_value(TN_BLOCKER_PENDING, 1, a, C0)));
    ask_drop(m, a, C0,
             ANSWER(TN_VERDICT_AFTER_LEASES, 0, 0, of_value(TN_BLOCKER_PENDING, 1, a, C0)));
    spec_finish(f);
    ask_ensure(m, h, C0, ANSWER(TN_VERDICT_AFTER_EVICTION, 32, 32, no_blocker));
}

static void verdict_blocked_by_holds(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 64});
    tn_handle h = register_src(m, spec_source(f));
    tn_handle a = loaded(f, m, P);
    tn_handle b = loaded(f, m, P);
    tn_hold on_a = hold(m, a, P);
    tn_hold on_b = hold(m, b, P);
    tn_lease lease = acquire(m, a, P, NULL); /* the hold lasts: named once, as held */

    ask_ensure(m, h, P,
               ANSWER(TN_VERDICT_BLOCKED, 32, 0, of_value(TN_BLOCKER_HOLD, 1, a, P),
                      of_value(TN_BLOCKER_HOLD, 1, b, P)));
    release(&lease);
    release_hold(&on_a);
    ask_ensure(m, h, P, ANSWER(TN_VERDICT_AFTER_EVICTION, 32, 32, no_blocker));
    ask_reserve(m, P, 64, ANSWER(TN_VERDICT_BLOCKED, 64, 32, of_value(TN_BLOCKER_HOLD, 1, b, P)));
    release_hold(&on_b);
}

static void verdict_blocked_by_reservations(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 64});
    tn_handle h = register_src(m, spec_source(f));
    char label[256];

    memset(label, 'x', sizeof(label) - 1);
    label[255] = '\0';
    reserve(m, P, 40, "scratch of the evaluator");
    ask_ensure(m, h, P,
               ANSWER(TN_VERDICT_BLOCKED, 8, 0, of_label("scratch of the evaluator", 40, P)));
    reserve(m, P, 24, label); /* its first 63 bytes */
    label[63] = '\0';
    ask_ensure(m, h, P,
               ANSWER(TN_VERDICT_BLOCKED, 32, 0, of_label("scratch of the evaluator", 40, P),
                      of_label(label, 24, P)));
}

static void verdict_never(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 31}, {C0, 100});
    tn_handle h = register_src(m, spec_source(f));
    struct spec_explained e;

    ask_ensure(m, h, P, ANSWER(TN_VERDICT_NEVER, 1, 0, no_blocker));
    ask_ensure(m, h, N, ANSWER(TN_VERDICT_NEVER, 1, 0, no_blocker)); /* it cannot be loaded */
    ask_reserve(m, C0, 101, ANSWER(TN_VERDICT_NEVER, 1, 0, no_blocker));
    /* Nor does it help that others end, where a plan needs too much by itself. */
    e = EXPLAIN(m, RESERVE({C0, 60, "first"}, {C0, 60, "second"}));
    check_explained(&e, ANSWER(TN_VERDICT_NEVER, 20, 0, no_blocker));
}

/* A removal that the plan itself makes leaves nothing to evict; its own values are not "others". */
static void verdict_of_the_plan_itself(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {C0, 64});
    tn_handle h = register_src(m, spec_source(f));
    tn_handle a = loaded(f, m, C0);
    tn_handle b = loaded(f, m, C0);

    assert_feasible(EXPLAIN(m, RECLAIM(DROP(a, C0)), ENTER(ENSURE(h, C0))));
    assert_int_equal(
        EXPLAIN(m, RECLAIM(DROP(a, C0)), RESERVE({C0, 32, "r"}), ENTER(ENSURE(h, C0))).head.verdict,
        TN_VERDICT_AFTER_EVICTION); /* of b */
    drop(m, b, C0);
    assert_int_equal(EXPLAIN(m, RESERVE({C0, 64, "r"}), ENTER(DROP(a, C0))).head.verdict,
                     TN_VERDICT_AFTER_EVICTION); /* too late in its own order */
}

/* A replica that the plan wants where it is is no room for others, whoever uses it. */
static void verdict_of_what_the_plan_keeps(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {N, 64}, {C0, 32});
    tn_handle h = register_src(m, spec_source(f));
    tn_handle kept = loaded(f, m, N);
    tn_handle other = loaded(f, m, N);
    tn_lease lease;
    tn_hold held;
    struct spec_explained e;

    e = EXPLAIN(m, ENTER(ENSURE(kept, N), ENSURE(h, N)));
    check_explained(&e, ANSWER(TN_VERDICT_AFTER_EVICTION, 32, 32, no_blocker));
    lease = acquire(m, kept, N, NULL);
    held = hold(m, other, N);
    e = EXPLAIN(m, ENTER(ENSURE(kept, N), MOVE(kept, N), ENSURE(h, N)));
    check_explained(&e, ANSWER(TN_VERDICT_BLOCKED, 32, 0, of_value(TN_BLOCKER_HOLD, 1, other, N)));
    release_hold(&held);
    release(&lease);
    e = EXPLAIN(m, ENTER(ENSURE(kept, N), ENSURE(other, N), ENSURE(h, N)));
    check_explained(&e, ANSWER(TN_VERDICT_NEVER, 32, 0, no_blocker));
    ensure(m, kept, C0);
    e = EXPLAIN(m, ENTER(ENSURE(kept, C0), DROP(kept, C0), ENSURE(kept, C0), ENSURE(h, C0)));
    check_explained(&e, ANSWER(TN_VERDICT_NEVER, 32, 0, no_blocker)); /* made anew: its own */
}

/* What the plan makes and removes again takes nothing from what others could give. */
static void verdict_of_what_the_plan_removes_again(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {C0, 96});
    tn_handle h = register_src(m, spec_source(f));
    tn_handle large = spec_adopt(m, tt_bytes(f->driver, P, 96), P, TN_REPLICABLE);
    struct spec_explained e;

    loaded(f, m, C0);
    loaded(f, m, C0);
    e = EXPLAIN(m, ENTER(ENSURE(h, C0), DROP(h, C0), ENSURE(large, C0)));
    assert_problem(e, TN_PHASE_ENTER, 2, TN_REASON_BUDGET);
    check_explained(&e, ANSWER(TN_VERDICT_AFTER_EVICTION, 64, 64, no_blocker));
}

/* An adopt may be told the same. */
static void verdict_of_an_adopt(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 40});
    tn_payload v = spec_v(f, P);
    tn_payload large = tt_bytes(f->driver, P, 48);
    tn_handle h = {0, 0, NULL};

    loaded(f, m, P);
    assert_status(tn_manager_adopt(m, v, P, TN_REPLICABLE, &h), TN_ERR_BUDGET);
    check_error(tn_last_error(), ANSWER(TN_VERDICT_AFTER_EVICTION, 24, 32, no_blocker));
    assert_status(tn_manager_adopt(m, large, P, TN_REPLICABLE, &h), TN_ERR_BUDGET);
    assert_int_equal(tn_last_error()->verdict, TN_VERDICT_NEVER);
    tt_free(v);
    tt_free(large);
}

/* ---- Protection ------------------------------------------------------------------------------ */

static void verdict_of_protected_values(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = loaded(f, m, P);
    tn_lease lease = acquire(m, h, P, NULL);
    tn_lease again = acquire(m, h, P, NULL);
    tn_hold held;

    ask_drop(m, h, P, ANSWER(TN_VERDICT_AFTER_LEASES, 0, 0, of_value(TN_BLOCKER_LEASE, 2, h, P)));
    assert_status(tn_manager_move(m, h, N, NOWHERE, NULL, NULL), TN_ERR_IN_USE);
    check_error(tn_last_error(),
                ANSWER(TN_VERDICT_AFTER_LEASES, 0, 0, of_value(TN_BLOCKER_LEASE, 2, h, P)));
    assert_status(tn_manager_discard(m, h, NULL), TN_ERR_IN_USE);
    assert_int_equal(tn_last_error()->verdict, TN_VERDICT_AFTER_LEASES);
    assert_true(tn_last_error()->blocker_count >= 1);
    held = hold(m, h, P);
    ask_drop(m, h, P, ANSWER(TN_VERDICT_BLOCKED, 0, 0, of_value(TN_BLOCKER_HOLD, 1, h, P)));
    release_hold(&held);
    release(&lease);
    release(&again);
    assert_int_equal(EXPLAIN(m, ENTER(DROP(h, P))).head.verdict, TN_VERDICT_FITS_NOW);
}

/* More than an error names: the totals are real, and an explanation names all. */
static void verdict_names_all_in_explanations(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 6 * 32});
    tn_handle h = register_src(m, spec_source(f));
    tn_handle held[6];
    struct spec_explained e;

    for (int i = 0; i < 6; i++) {
        held[i] = loaded(f, m, P);
        hold(m, held[i], P);
    }
    e = EXPLAIN(m, ENTER(ENSURE(h, P)));
    assert_int_equal(e.head.verdict, TN_VERDICT_BLOCKED);
    assert_int_equal(e.blocker_count, 6);
    for (int i = 0; i < 6; i++) {
        tn_blocker want = of_value(TN_BLOCKER_HOLD, 1, held[i], P);

        assert_named(e.blockers, e.blocker_count, &want);
    }
    assert_status(tn_manager_ensure(m, h, P, NULL, NULL), TN_ERR_BUDGET);
    assert_int_equal(tn_last_error()->blocker_count, 6);
    for (int i = 0; i < TN_ERROR_OWNERS_MAX; i++)
        assert_int_equal(tn_last_error()->blockers[i].kind, TN_BLOCKER_HOLD);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(verdict_after_eviction),
    SPEC_BOTH(verdict_after_leases),
    SPEC_BOTH(verdict_after_leases_beside_holds),
    SPEC_BOTH(verdict_after_the_work_of_leases),
    SPEC_BOTH(verdict_blocked_by_holds),
    SPEC_BOTH(verdict_blocked_by_reservations),
    SPEC_BOTH(verdict_never),
    SPEC_BOTH(verdict_of_the_plan_itself),
    SPEC_BOTH(verdict_of_what_the_plan_keeps),
    SPEC_BOTH(verdict_of_what_the_plan_removes_again),
    SPEC_BOTH(verdict_of_an_adopt),
    SPEC_BOTH(verdict_of_protected_values),
    SPEC_BOTH(verdict_names_all_in_explanations),
};

TN_TEST_MAIN("spec.verdict", tests)
