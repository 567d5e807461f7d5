/* SPDX-License-Identifier: MIT */
/*
 * src/lifetime/removal.c against src/lifetime/acquire.c: one decision per plan, each interleaving
 * of the table in src/README.md once (L1, L2). The states are made by hand, or by stopping threads
 * at test points.
 */
#include "core_fixture.h"

struct scene {
    tn_manager *m;
    tn_handle a, b; /* replicable, at P and C0 */
};

static struct scene scene_of(struct spec *f) {
    struct scene s = {.m = MANAGER(f)};
    s.a = adopt_rep(f, s.m, P);
    s.b = adopt_rep(f, s.m, P);
    (void)ensure(s.m, s.a, C0);
    (void)ensure(s.m, s.b, C0);
    return s;
}

static struct args on(const struct scene *s, tn_handle h, tn_location at) {
    return (struct args){.m = s->m, .h = {h}, .at = at};
}

static uint32_t decision_of(const tn__mat *mat) {
    uintptr_t state = tn__load_acq(&mat->state);
    assert_true(state > TN__MAT_GONE); /* a plan stands there */
    return tn__load_acq(&((tn__removal *)state)->decision);
}

/* ---- By hand: the decision word ---- */

static tn__removal *wish(struct scene *s, tn__mat *mat, uint32_t decision) {
    tn__removal *removal = tn__removal_new(&mat, 1, 0);
    (void)s;
    assert_non_null(removal);
    tn__store_rlx(&removal->decision, decision);
    tn__store_rel(&mat->state, (uintptr_t)removal);
    return removal;
}

static void unwish(tn__mat *mat, tn__removal *removal) {
    tn__store_rel(&mat->state, TN__MAT_LIVE);
    tn__free(removal);
}

static void acquire_that_meets_a_trying_plan_is_granted(void **state) {
    struct scene s = scene_of(*state);
    tn__mat *mat = mat_of(s.m, s.a, P);
    tn__removal *removal = wish(&s, mat, TN__TRYING);
    tn_lease lease = acquire(s.m, s.a, P, NULL);
    assert_int_equal(removal->decision, TN__GRANTED);
    assert_int_equal(tn__decision_settle(s.m->life, removal), 0);
    unwish(mat, removal);
    release(&lease);
}

static void acquire_that_meets_a_taken_plan_is_busy(void **state) {
    struct scene s = scene_of(*state);
    tn__mat *mat = mat_of(s.m, s.a, P);
    tn__removal *removal = wish(&s, mat, TN__TAKEN);
    struct args x = on(&s, s.a, P);
    assert_rises(s.m, 0, assert_status(run_acquire(&x), TN_ERR_UNAVAILABLE));
    assert_int_equal(tn_last_error()->busy, 1);
    assert_handle(tn_last_error()->handle, s.a);
    assert_int_equal(removal->decision, TN__TAKEN);
    unwish(mat, removal);
}

static void acquire_that_meets_a_gone_replica_looks_up_once_more(void **state) {
    struct scene s = scene_of(*state);
    tn__mat *mat = mat_of(s.m, s.a, P);
    struct args x = on(&s, s.a, P);
    tn__store_rel(&mat->state, TN__MAT_GONE);
    assert_status(run_acquire(&x), TN_ERR_UNAVAILABLE);
    assert_int_equal(tn_last_error()->busy, 1);
    tn__store_rel(&mat->state, TN__MAT_LIVE);
    assert_ok(run_acquire(&x));
    release(&x.lease);
}

/* L2: the plan that was aborted on the way learns that nothing came of it. */
static void acquire_of_two_that_fails_at_the_second_frees_the_first_plan(void **state) {
    struct scene s = scene_of(*state);
    tn__mat *first = mat_of(s.m, s.a, P), *second = mat_of(s.m, s.b, P);
    tn__removal *trying = wish(&s, first, TN__TRYING), *taken = wish(&s, second, TN__TAKEN);
    struct args x = {.m = s.m, .h = {s.a, s.b}, .count = 2, .at = P};
    assert_status(run_acquire(&x), TN_ERR_UNAVAILABLE);
    assert_handle(tn_last_error()->handle, s.b);
    assert_int_equal(trying->decision, TN__FAILED);
    assert_int_equal(tn__decision_settle(s.m->life, trying), -1);
    unwish(first, trying);
    unwish(second, taken);
}

/* One descriptor for both: it is aborted once, by the first, and met again by the second. */
static void acquire_of_two_of_one_plan_aborts_it_once(void **state) {
    struct scene s = scene_of(*state);
    tn__mat *mats[2] = {mat_of(s.m, s.a, P), mat_of(s.m, s.b, P)};
    tn__removal *removal = tn__removal_new(mats, 2, 0);
    struct args x = {.m = s.m, .h = {s.a, s.b}, .count = 2, .at = P};
    tn__store_rel(&mats[0]->state, (uintptr_t)removal);
    tn__store_rel(&mats[1]->state, (uintptr_t)removal);
    assert_ok(run_acquire(&x));
    assert_int_equal(removal->decision, TN__GRANTED);
    tn__store_rel(&mats[1]->state, TN__MAT_LIVE);
    unwish(mats[0], removal);
    release(&x.lease);
}

static void acquire_that_meets_a_withdrawn_plan_goes_on(void **state) {
    struct scene s = scene_of(*state);
    tn__mat *mat = mat_of(s.m, s.a, P);
    tn__removal *removal = wish(&s, mat, TN__WITHDRAWN);
    tn_lease lease = acquire(s.m, s.a, P, NULL);
    assert_int_equal(removal->decision, TN__WITHDRAWN);
    unwish(mat, removal);
    release(&lease);
}

/* ---- By hand: a reader in the middle of its section ---- */

struct reader {
    tn__slot *slot;
    tn__record *record;
    uint64_t generation;
};

/* ACQUIRING, with its pin stored. */
static struct reader read_begin(struct scene *s, tn__mat *mat) {
    struct reader r = {.slot = own_slot(s->m)};
    r.record = tn__record_obtain(r.slot);
    r.generation = tn__word_generation(r.record->pair.low) + 1;
    tn__store_rlx(&r.record->pin_count, 1);
    tn__store_rlx(&r.record->what, tn__what(TN__KIND_LEASE, mat->at));
    tn__store_rel(&r.record->pair.low, tn__word(r.generation, TN__ACQUIRING));
    tn__store_rel(&tn__record_pins(r.record, 1)->pin[0].mat, mat);
    tn_test_under_way(1);
    return r;
}

static void read_end(struct reader *r) {
    tn__store_rel(&r->record->pair.low, tn__word(r->generation, TN__FREE));
    tn__record_recycle(r->record, r->slot);
    tn_test_under_way(-1);
}

static void removal_waits_for_a_reader_that_then_fails(void **state) {
    struct scene s = scene_of(*state);
    tn__mat *mat = mat_of(s.m, s.a, C0);
    struct reader r = read_begin(&s, mat);
    struct args x = on(&s, s.a, C0);
    struct op op;
    OP_START(&op, run_drop, &x, 0);
    op_wait_until(&op, tn__load_acq(&mat->state) > TN__MAT_GONE);
    pause_shortly();
    assert_int_equal(decision_of(mat), TN__TRYING);
    read_end(&r);
    assert_status(op_end(&op), TN_OK);
    assert_replicas(s.m, s.a, P);
}

static void removal_waits_for_a_reader_that_is_then_granted(void **state) {
    struct scene s = scene_of(*state);
    tn__mat *mat = mat_of(s.m, s.a, C0);
    struct reader r = read_begin(&s, mat);
    struct args x = on(&s, s.a, C0);
    struct op op;
    bool mine = false;
    OP_START(&op, run_drop, &x, 0);
    op_wait_until(&op, tn__load_acq(&mat->state) > TN__MAT_GONE);
    assert_true(tn__decision_meet((tn__removal *)tn__load_acq(&mat->state), &mine));
    assert_true(mine);
    pause_shortly();
    assert_int_equal(decision_of(mat), TN__ABORTED); /* it waits for the outcome */
    tn__removal *removal = (tn__removal *)tn__load_acq(&mat->state);
    tn__store_rel(&r.record->pair.low, tn__word(r.generation, TN__ACTIVE));
    tn__decision_outcome(removal, true);
    assert_status(op_end(&op), TN_ERR_IN_USE);
    assert_error_counts(op.error, 1, 0, 0);
    assert_int_equal(tn__load_acq(&mat->state), TN__MAT_LIVE);
    read_end(&r);
}

/* Granted, and over before the plan counts: one use is reported all the same. */
static void removal_aborted_by_a_reader_that_is_gone_reports_one_use(void **state) {
    struct scene s = scene_of(*state);
    tn__mat *mat = mat_of(s.m, s.a, C0);
    struct reader r = read_begin(&s, mat);
    struct args x = on(&s, s.a, C0);
    struct op op;
    bool mine = false;
    OP_START(&op, run_drop, &x, 0);
    op_wait_until(&op, tn__load_acq(&mat->state) > TN__MAT_GONE);
    tn__removal *removal = (tn__removal *)tn__load_acq(&mat->state);
    assert_true(tn__decision_meet(removal, &mine));
    read_end(&r);
    tn__decision_outcome(removal, true);
    assert_status(op_end(&op), TN_ERR_IN_USE);
    assert_error_counts(op.error, 1, 0, 0);
}

static void removal_aborted_by_a_reader_that_fails_tries_again(void **state) {
    struct scene s = scene_of(*state);
    tn__mat *mat = mat_of(s.m, s.a, C0);
    struct reader r = read_begin(&s, mat);
    struct args x = on(&s, s.a, C0);
    struct op op;
    bool mine = false;
    OP_START(&op, run_drop, &x, 0);
    op_wait_until(&op, tn__load_acq(&mat->state) > TN__MAT_GONE);
    tn__removal *removal = (tn__removal *)tn__load_acq(&mat->state);
    assert_true(tn__decision_meet(removal, &mine));
    read_end(&r);
    tn__decision_outcome(removal, false);
    assert_status(op_end(&op), TN_OK);
    assert_replicas(s.m, s.a, P);
}

/* A failed fence removes nothing, and waits for the reader that aborted the plan meanwhile: its
 * outcome is stored into the descriptor. */
static void removal_whose_fence_fails_waits_for_the_reader_that_aborted_it(void **state) {
    struct scene s = scene_of(*state);
    tn__mat *mat = mat_of(s.m, s.a, C0);
    tn__removal *removal = tn__removal_new(&mat, 1, 0);
    tn__decision_withdraw(removal);
    assert_int_equal(removal->decision, TN__WITHDRAWN);
    tn__store_rlx(&removal->decision, TN__GRANTED); /* aborted, and its outcome known */
    tn__decision_withdraw(removal);
    assert_int_equal(removal->decision, TN__GRANTED);
    tn__free(removal);
}

static void removal_of_several_names_the_first_protected_one(void **state) {
    struct scene s = scene_of(*state);
    tn__mat *mats[2] = {mat_of(s.m, s.a, P), mat_of(s.m, s.a, C0)};
    tn_hold h = hold(s.m, s.a, C0);
    tn__removal *removal = NULL;
    assert_in_use(tn__removal_take(s.m->life, mats, 2, 0, &removal), 0, 1, 0);
    assert_at(tn_last_error()->at, C0);
    assert_null(removal);
    release_hold(&h);
    assert_ok(tn__removal_take(s.m->life, mats, 2, 0, &removal));
    assert_int_equal(removal->decision, TN__TAKEN);
    tn__removal_end(s.m->life, removal);
    assert_int_equal(mats[0]->state, TN__MAT_LIVE);
    assert_int_equal(mats[1]->state, TN__MAT_LIVE);
}

/* A protection that appears between the first look and the scan: withdrawn, with its counts. */
static void removal_that_meets_a_new_lease_in_its_scan_is_withdrawn(void **state) {
    struct scene s = scene_of(*state);
    tn__mat *mat = mat_of(s.m, s.a, C0);
    tn__removal *removal = wish(&s, mat, TN__TRYING);
    struct reader r = read_begin(&s, mat);
    tn__store_rel(&r.record->pair.low, tn__word(r.generation, TN__ACTIVE));
    assert_int_equal(tn__decision_settle(s.m->life, removal), 0);
    assert_int_equal(removal->decision, TN__WITHDRAWN);
    tn__store_rlx(&removal->decision, TN__TRYING);
    tn__store_rel(&r.record->pair.low, tn__word(r.generation, TN__DETACHED));
    assert_int_equal(tn__decision_settle(s.m->life, removal), 1);
    read_end(&r);
    unwish(mat, removal);
}

/* A lease beside the reader that aborted the plan: in use, whatever became of the reader. */
static void removal_aborted_while_another_lease_stands_is_in_use(void **state) {
    struct scene s = scene_of(*state);
    tn__mat *mat = mat_of(s.m, s.a, C0);
    struct reader standing = read_begin(&s, mat), passing = read_begin(&s, mat);
    tn__removal *removal = wish(&s, mat, TN__FAILED);
    tn__store_rel(&standing.record->pair.low, tn__word(standing.generation, TN__ACTIVE));
    assert_int_equal(tn__decision_settle(s.m->life, removal), 0);
    tn__store_rlx(&removal->decision, TN__GRANTED);
    assert_int_equal(tn__decision_settle(s.m->life, removal), 0);
    tn__store_rlx(&removal->decision, TN__TRYING);
    assert_int_equal(tn__decision_settle(s.m->life, removal), 0);
    assert_int_equal(removal->decision, TN__WITHDRAWN);
    read_end(&passing);
    read_end(&standing);
    unwish(mat, removal);
}

/* The one use that is certain is reported for the last replica. */
static void discard_aborted_by_a_reader_that_is_gone_reports_one_use(void **state) {
    struct scene s = scene_of(*state);
    tn__mat *mat = mat_of(s.m, s.a, C0);
    struct reader r = read_begin(&s, mat);
    struct args x = on(&s, s.a, C0);
    struct op op;
    bool mine = false;
    OP_START(&op, run_discard, &x, 0);
    op_wait_until(&op, tn__load_acq(&mat->state) > TN__MAT_GONE);
    tn__removal *removal = (tn__removal *)tn__load_acq(&mat->state);
    assert_true(tn__decision_meet(removal, &mine));
    read_end(&r);
    tn__decision_outcome(removal, true);
    assert_status(op_end(&op), TN_ERR_IN_USE);
    assert_error_counts(op.error, 1, 0, 0);
    assert_at(op.error.at, C0);
    assert_replicas(s.m, s.a, P, C0);
}

/* ---- By test points ---- */

static void acquire_stopped_after_its_pins_aborts_the_removal(void **state) {
    struct scene s = scene_of(*state);
    tn__mat *mat = mat_of(s.m, s.a, C0);
    struct args reading = on(&s, s.a, C0), dropping = on(&s, s.a, C0);
    struct op reader, writer;
    NEED_POINTS();
    reading.stream = spec_stream(*state, 0);
    OP_START(&reader, run_acquire, &reading, TN__POINT_PINS_STORED, TN__POINT_ACQUIRED);
    op_reach(&reader);
    OP_START(&writer, run_drop, &dropping, TN__POINT_TRYING);
    op_reach(&writer);
    op_go(&writer);
    pause_shortly();
    assert_int_equal(decision_of(mat), TN__TRYING); /* it waits for the reader */
    op_go(&reader);
    op_reach(&reader);
    assert_int_equal(decision_of(mat), TN__ABORTED);
    assert_status(op_end(&reader), TN_OK);
    assert_status(op_end(&writer), TN_ERR_IN_USE);
    assert_error_counts(writer.error, 1, 0, 0);
    assert_int_equal(tn__load_acq(&mat->state), TN__MAT_LIVE);
    release(&reading.lease);
    assert_ok(run_drop(&dropping));
}

/* The reader is stopped with pins on both; b is taken by another plan before. It aborts the plan
 * for a, then fails at b: the plan for a goes on. */
static void acquire_that_fails_late_lets_the_aborted_removal_go_on(void **state) {
    struct scene s = scene_of(*state);
    struct args reading = {.m = s.m, .h = {s.a, s.b}, .count = 2, .at = C0};
    struct args drop_a = on(&s, s.a, C0), drop_b = on(&s, s.b, C0);
    struct op reader, writer_a, writer_b;
    NEED_POINTS();
    reading.stream = spec_stream(*state, 0);
    OP_START(&writer_b, run_drop, &drop_b, TN__POINT_TAKEN);
    op_reach(&writer_b);
    OP_START(&reader, run_acquire, &reading, TN__POINT_PINS_STORED);
    op_reach(&reader);
    OP_START(&writer_a, run_drop, &drop_a, TN__POINT_TRYING);
    op_reach(&writer_a);
    op_go(&writer_a);
    assert_status(op_end(&reader), TN_ERR_UNAVAILABLE);
    assert_int_equal(reader.error.busy, 1);
    assert_handle(reader.error.handle, s.b);
    assert_status(op_end(&writer_a), TN_OK);
    assert_status(op_end(&writer_b), TN_OK);
    assert_replicas(s.m, s.a, P);
    assert_replicas(s.m, s.b, P);
}

static void acquire_before_the_plan_is_tried_settles_it(void **state) {
    struct scene s = scene_of(*state);
    struct args reading = on(&s, s.a, C0), dropping = on(&s, s.a, C0);
    struct op writer;
    NEED_POINTS();
    reading.stream = spec_stream(*state, 0);
    OP_START(&writer, run_drop, &dropping, TN__POINT_TRYING);
    op_reach(&writer); /* its state word is set, its fence and its scan are to come */
    assert_ok(run_acquire(&reading));
    assert_status(op_end(&writer), TN_ERR_IN_USE);
    assert_error_counts(writer.error, 1, 0, 0);
    release(&reading.lease);
}

/* D8: busy as long as it is taken, then plainly absent. */
static void acquire_is_busy_from_taken_to_published(void **state) {
    struct scene s = scene_of(*state);
    struct args reading = on(&s, s.a, C0), dropping = on(&s, s.a, C0);
    struct op writer;
    NEED_POINTS();
    reading.stream = spec_stream(*state, 0);
    OP_START(&writer, run_drop, &dropping, TN__POINT_TAKEN);
    op_reach(&writer);
    assert_status(run_acquire(&reading), TN_ERR_UNAVAILABLE);
    assert_int_equal(tn_last_error()->busy, 1);
    assert_status(run_hold(&reading), TN_ERR_UNAVAILABLE);
    assert_int_equal(tn_last_error()->busy, 1);
    assert_true(resident(s.m, s.a, C0));
    assert_status(op_end(&writer), TN_OK);
    assert_status(run_acquire(&reading), TN_ERR_UNAVAILABLE);
    assert_int_equal(tn_last_error()->busy, 0);
}

/* D8: a plan that fails after it took the source gives it back. */
static void move_that_fails_gives_the_taken_source_back(void **state) {
    struct spec *f = *state;
    struct scene s = scene_of(f);
    tn__mat *mat = mat_of(s.m, s.a, P);
    struct args reading = on(&s, s.a, P), moving = on(&s, s.a, C1);
    struct op writer;
    NEED_POINTS();
    moving.from = P;
    spec_fault(f, TN_SIM_DEVICE_ALLOC, 1, 1, TN_ERR_DEVICE_MEMORY, 2);
    OP_START(&writer, run_move, &moving, TN__POINT_TAKEN);
    op_reach(&writer);
    assert_status(run_acquire(&reading), TN_ERR_UNAVAILABLE);
    assert_int_equal(tn_last_error()->busy, 1);
    assert_status(op_end(&writer), TN_ERR_DEVICE_MEMORY);
    assert_int_equal(tn__load_acq(&mat->state), TN__MAT_LIVE);
    assert_ok(run_acquire(&reading));
    release(&reading.lease);
}

/* The heavy fence fails while a reader stands between its pins and the state words: it aborts, and
 * the plan, which takes nothing, waits for the outcome. */
static void removal_without_fence_reports_it_after_its_reader(void **state) {
    struct scene s = scene_of(*state);
    struct args reading = on(&s, s.a, C0), dropping = on(&s, s.a, C0);
    struct op reader, writer;
    NEED_POINTS();
    reading.stream = spec_stream(*state, 0);
    OP_START(&reader, run_acquire, &reading, TN__POINT_PINS_STORED, TN__POINT_ACQUIRED);
    op_reach(&reader);
    OP_START(&writer, run_drop, &dropping, TN__POINT_TRYING);
    op_reach(&writer);
    op_go(&reader);
    op_reach(&reader); /* aborted, outcome to come */
    tn__fault_fence(1);
    op_go(&writer);
    pause_shortly();
    assert_false(atomic_load(&writer.ended));
    assert_status(op_end(&reader), TN_OK);
    assert_status(op_end(&writer), TN_ERR_SYSTEM);
    release(&reading.lease);
    assert_ok(run_drop(&dropping));
}

static const struct CMUnitTest tests[] = {
    SPEC_CONCURRENT(acquire_that_meets_a_trying_plan_is_granted),
    SPEC_CONCURRENT(acquire_that_meets_a_taken_plan_is_busy),
    SPEC_CONCURRENT(acquire_that_meets_a_gone_replica_looks_up_once_more),
    SPEC_CONCURRENT(acquire_of_two_that_fails_at_the_second_frees_the_first_plan),
    SPEC_CONCURRENT(acquire_of_two_of_one_plan_aborts_it_once),
    SPEC_CONCURRENT(acquire_that_meets_a_withdrawn_plan_goes_on),
    SPEC_CONCURRENT(removal_waits_for_a_reader_that_then_fails),
    SPEC_CONCURRENT(removal_waits_for_a_reader_that_is_then_granted),
    SPEC_CONCURRENT(removal_aborted_by_a_reader_that_is_gone_reports_one_use),
    SPEC_CONCURRENT(removal_aborted_by_a_reader_that_fails_tries_again),
    SPEC_CONCURRENT(removal_whose_fence_fails_waits_for_the_reader_that_aborted_it),
    SPEC_CONCURRENT(removal_of_several_names_the_first_protected_one),
    SPEC_CONCURRENT(removal_that_meets_a_new_lease_in_its_scan_is_withdrawn),
    SPEC_CONCURRENT(removal_aborted_while_another_lease_stands_is_in_use),
    SPEC_BOTH(discard_aborted_by_a_reader_that_is_gone_reports_one_use),
    SPEC_BOTH(acquire_stopped_after_its_pins_aborts_the_removal),
    SPEC_CONCURRENT(acquire_that_fails_late_lets_the_aborted_removal_go_on),
    SPEC_BOTH(acquire_before_the_plan_is_tried_settles_it),
    SPEC_BOTH(acquire_is_busy_from_taken_to_published),
    SPEC_BOTH(move_that_fails_gives_the_taken_source_back),
    SPEC_CONCURRENT(removal_without_fence_reports_it_after_its_reader),
};

TN_TEST_MAIN("unit.lifetime_removal", tests)
