/* SPDX-License-Identifier: MIT */
/*
 * What plans in flight keep from others: bytes freed inside a plan stay claimed while the rest of it
 * needs them, replicas that it will remove are not lent (B2, D8, M258; design of admission).
 */
#include "claims_fixture.h"

/* ---- Bytes freed inside a plan -------------------------------------------------------------- */

/* {P:32}: the plan drops a value at P, copies for a while, and needs the bytes again. */
struct freed {
    tn_manager *m;
    tn_handle gone, slow, next, other;
    struct sequence plan, ensurer;
    struct adopter adopter;
    struct op adopting;
};

static void freed_begin(struct freed *x, struct spec *f) {
    *x = (struct freed){.m = MANAGER(f, {P, 32})};
    x->gone = register_src(x->m, spec_source(f));
    x->slow = marked(f, x->m, N);
    x->next = adopt_rep(f, x->m, N);
    x->other = adopt_rep(f, x->m, N);
    ensure(x->m, x->gone, P);
    arm();
    START(&x->plan, x->m, DROP(x->gone, P), ENSURE(x->slow, C0), ENSURE(x->next, P));
    stand_reached();
    assert_false(resident(x->m, x->gone, P));
    assert_int_equal(used(x->m, P), 0);
    expect_claimed(x->m, P, 32, 32);
    expect_reserve_refused(x->m, 32, 32);
    expect_reserve_refused(x->m, 1, 32);
    x->adopter = (struct adopter){.m = x->m, .v = spec_v(f, P)};
    OP_START(&x->adopting, run_adopt, &x->adopter, 0);
    wait_until(flow_count(x->m, false) == 1);
    QUEUE(&x->ensurer, x->m, 1, ENSURE(x->other, P));
    expect_claimed(x->m, P, 32, 32);
}

static void bytes_freed_inside_a_plan_stay_claimed(void **state) {
    struct freed x;
    freed_begin(&x, *state);
    go_on(false);
    assert_status(op_end(&x.plan.op), TN_OK);
    assert_status(op_end(&x.adopting), TN_ERR_BUDGET);
    tt_free(x.adopter.v);
    assert_status(op_end(&x.ensurer.op), TN_ERR_PLAN);
    assert_int_equal(x.ensurer.op.error.reason, TN_REASON_BUDGET);
    assert_int_equal(x.ensurer.op.error.cause_status, TN_ERR_BUDGET);
    assert_replicas(x.m, x.next, N, P);
    assert_int_equal(used(x.m, P), 32);
    assert_peaks(x.m, P, 32, 32);
    expect_no_claims(x.m);
}

/* M258: a transient claim of an operation that ends in failure is no reason for a refusal. */
static void bytes_of_a_plan_that_fails_go_to_those_who_wait(void **state) {
    struct freed x;
    freed_begin(&x, *state);
    go_on(true);
    assert_status(op_end(&x.plan.op), TN_ERR_PLAN_EXEC);
    assert_int_equal(x.plan.op.error.failed_index, 1);
    assert_int_equal(x.plan.op.error.cause_status, TN_ERR_PAYLOAD);
    assert_status(op_end(&x.adopting), TN_OK); /* first come, first served */
    assert_status(op_end(&x.ensurer.op), TN_ERR_PLAN);
    assert_replicas(x.m, x.gone);
    assert_replicas(x.m, x.adopter.h, P);
    expect_no_claims(x.m);
}

static void bytes_that_the_rest_does_not_need_are_given_back(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 64});
    tn_handle one = register_src(m, spec_source(f)), two = register_src(m, spec_source(f));
    tn_handle slow = marked(f, m, N), next = adopt_rep(f, m, N);
    struct sequence q;
    tn_reservation r;
    ensure(m, one, P);
    ensure(m, two, P);
    arm();
    START(&q, m, DROP(one, P), DROP(two, P), ENSURE(slow, C0), ENSURE(next, P));
    stand_reached();
    expect_claimed(m, P, 32, 32);
    expect_reserve_refused(m, 33, 32);
    r = reserve(m, P, 32, "the other half");
    go_on(false);
    assert_status(op_end(&q.op), TN_OK);
    assert_int_equal(used(m, P), 32);
    release_reservation(&r);
    expect_no_claims(m);
}

/* ---- Those who wait for bytes of a plan in flight -------------------------------------------- */

/* Admitted, with all that it will remove taken; no step has run. */
static void start_taken(struct sequence *q) {
    OP_START(&q->op, run_sequence, q, TN__POINT_TAKEN);
    op_reach(&q->op);
}

/* They go on when a step has freed the bytes, and do not wait for the end of the plan. */
static void bytes_that_a_step_frees_wake_those_who_wait(void **state) {
    struct spec *f = *state;
    NEED_POINTS();
    tn_manager *m = MANAGER(f, {P, 32});
    tn_handle gone = register_src(m, spec_source(f)), slow = marked(f, m, N);
    struct adopter a = {.m = m, .v = spec_v(f, P)};
    struct sequence q;
    struct op adopting;
    ensure(m, gone, P);
    arm();
    FILL(&q, m, DROP(gone, P), ENSURE(slow, C0));
    start_taken(&q);
    OP_START(&adopting, run_adopt, &a, 0);
    wait_until(flow_count(m, false) == 1);
    op_go(&q.op);
    stand_reached();
    wait_until(atomic_load(&adopting.ended));
    assert_false(atomic_load(&q.op.ended));
    assert_status(op_end(&adopting), TN_OK);
    go_on(false);
    assert_status(op_end(&q.op), TN_OK);
    assert_replicas(m, a.h, P);
    expect_no_claims(m);
}

/* A direct removal in flight: its bytes may be there soon, so nobody is refused for them (M258). */
static void bytes_that_an_action_removes_are_waited_for(void **state) {
    struct spec *f = *state;
    NEED_POINTS();
    tn_manager *m = MANAGER(f, {P, 32});
    struct args dropping = {.m = m, .h = {register_src(m, spec_source(f))}, .at = P};
    struct adopter a = {.m = m, .v = spec_v(f, P)};
    struct op dropper, adopting;
    ensure(m, dropping.h[0], P);
    OP_START(&dropper, run_drop, &dropping, TN__POINT_TAKEN);
    op_reach(&dropper);
    OP_START(&adopting, run_adopt, &a, 0);
    op_wait_until(&adopting, flow_count(m, false) == 1);
    assert_status(op_end(&dropper), TN_OK);
    assert_status(op_end(&adopting), TN_OK);
    expect_no_claims(m);
}

static void ask_for_room(void *context, const void *data) {
    struct adopter *a = ((void **)context)[0];
    struct op *adopting = ((void **)context)[1];
    (void)data;
    if (adopting->running)
        return;
    OP_START(adopting, run_adopt, a, 0);
    wait_until(flow_count(a->m, false) == 1 || atomic_load(&adopting->ended));
}

/* The same while the storage is being freed, behind the commit: of an action, and of a step. */
static void bytes_whose_storage_is_being_freed_are_waited_for(void **state) {
    struct spec *f = *state;
    for (int step = 0; step < 2; step++) {
        tn_manager *m = MANAGER(f, {P, 32});
        tn_handle gone = register_src(m, spec_source(f));
        struct adopter a = {.m = m, .v = spec_v(f, P)};
        struct op adopting = {.running = false};
        struct sequence q;
        ensure(m, gone, P);
        tt_on_destroy(ask_for_room, (void *[]){&a, &adopting});
        FILL(&q, m, DROP(gone, P));
        if (step)
            assert_status(run_sequence(&q), TN_OK);
        else
            drop(m, gone, P);
        tt_on_destroy(NULL, NULL);
        assert_true(adopting.running);
        assert_status(op_end(&adopting), TN_OK);
        assert_replicas(m, a.h, P);
        expect_no_claims(m);
    }
}

static tn_status run_scope_entry(void *arg) { return tn_scope_enter(arg); }

/* Claimed bytes that become a reservation's are no longer worth waiting for: who does is refused then,
 * and not when the plan is over. */
static void bytes_that_are_reserved_wake_those_who_wait(void **state) {
    struct spec *f = *state;
    NEED_POINTS();
    tn_manager *m = MANAGER(f, {N, 32});
    tn_handle gone = register_src(m, spec_source(f)), slow = marked(f, m, P);
    const tn_action enter[] = {ENSURE(slow, C0), DROP(gone, P)};
    const tn_reservation_spec reserved_there[] = {{N, 32, "room"}};
    tn_plan_spec spec = TN_PLAN_SPEC_INIT;
    tn_plan *plan = NULL;
    tn_scope *scope = NULL;
    struct args ensuring = {.m = m, .h = {adopt_rep(f, m, P)}, .at = N};
    struct op entry, ensurer;
    ensure(m, gone, P);
    spec.name = "scope";
    spec.reservations = reserved_there;
    spec.enter = enter;
    spec.reservation_count = 1;
    spec.enter_count = 2;
    assert_ok(tn_plan_create(&spec, &plan));
    assert_ok(tn_scope_create(m, plan, NULL, &scope));
    arm();
    OP_START(&entry, run_scope_entry, scope, TN__POINT_TAKEN);
    op_reach(&entry);
    OP_START(&ensurer, run_ensure, &ensuring, 0);
    op_wait_until(&ensurer, flow_count(m, false) == 1);
    op_go(&entry);
    stand_reached();
    wait_until(atomic_load(&ensurer.ended));
    assert_status(op_end(&ensurer), TN_ERR_BUDGET);
    assert_false(atomic_load(&entry.ended));
    go_on(false);
    assert_status(op_end(&entry), TN_OK);
    assert_ok(tn_scope_close(scope));
    assert_ok(tn_scope_destroy(scope));
    tn_plan_destroy(plan);
    expect_no_claims(m);
}

/* ---- Replicas that a plan makes or keeps, and removes later --------------------------------- */

static void expect_busy(tn_manager *m, tn_handle h, tn_location at) {
    tn_lease lease = {NULL, 0};
    tn_hold held = {NULL, 0};
    assert_status(tn_manager_acquire(m, &h, 1, at, NULL, &lease), TN_ERR_UNAVAILABLE);
    assert_int_equal(tn_last_error()->busy, 1);
    assert_status(tn_manager_hold(m, &h, 1, at, &held), TN_ERR_UNAVAILABLE);
    assert_int_equal(tn_last_error()->busy, 1);
}

static void replica_that_its_plan_removes_later_is_never_lent(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P), slow = marked(f, m, P);
    struct sequence q;
    tn_lease lease;
    arm();
    START(&q, m, ENSURE(v, N), ENSURE(slow, C0), DROP(v, N));
    stand_reached();
    assert_true(resident(m, v, N));
    expect_busy(m, v, N);
    lease = acquire(m, v, P, NULL); /* not concerned */
    release(&lease);
    go_on(false);
    assert_status(op_end(&q.op), TN_OK);
    assert_replicas(m, v, P);
    expect_no_claims(m);
}

/* It stays, because the plan fails before its removal: then it is lent. */
static void replica_of_a_plan_that_fails_is_lent_afterwards(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P), slow = marked(f, m, P);
    struct sequence q;
    tn_lease lease;
    arm();
    START(&q, m, ENSURE(v, N), ENSURE(slow, C0), DROP(v, N));
    stand_reached();
    expect_busy(m, v, N);
    go_on(true);
    assert_status(op_end(&q.op), TN_ERR_PLAN_EXEC);
    assert_replicas(m, v, P, N);
    lease = acquire(m, v, N, NULL);
    release(&lease);
    drop(m, v, N);
    expect_no_claims(m);
}

static void replica_that_is_to_go_is_taken_from_the_start(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = register_src(m, spec_source(f)), slow = marked(f, m, P);
    struct sequence q;
    tn_lease lease;
    ensure(m, v, P);
    arm();
    START(&q, m, ENSURE(slow, C0), DROP(v, P));
    stand_reached();
    assert_true(resident(m, v, P));
    expect_busy(m, v, P);
    go_on(true);
    assert_status(op_end(&q.op), TN_ERR_PLAN_EXEC);
    lease = acquire(m, v, P, NULL); /* LIVE again */
    FILL(&q, m, ENSURE(slow, C0), DROP(v, P));
    assert_status(run_sequence(&q), TN_ERR_PLAN); /* protected: nothing runs */
    assert_int_equal(tn_last_error()->reason, TN_REASON_PROTECTED);
    assert_int_equal(tn_last_error()->failed_index, 1);
    assert_replicas(m, slow, P);
    release(&lease);
    assert_status(run_sequence(&q), TN_OK);
    assert_replicas(m, v);
    expect_no_claims(m);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(bytes_freed_inside_a_plan_stay_claimed),
    SPEC_BOTH(bytes_of_a_plan_that_fails_go_to_those_who_wait),
    SPEC_BOTH(bytes_that_the_rest_does_not_need_are_given_back),
    SPEC_CONCURRENT(bytes_that_a_step_frees_wake_those_who_wait),
    SPEC_BOTH(bytes_that_an_action_removes_are_waited_for),
    SPEC_BOTH(bytes_whose_storage_is_being_freed_are_waited_for),
    SPEC_CONCURRENT(bytes_that_are_reserved_wake_those_who_wait),
    SPEC_BOTH(replica_that_its_plan_removes_later_is_never_lent),
    SPEC_BOTH(replica_of_a_plan_that_fails_is_lent_afterwards),
    SPEC_BOTH(replica_that_is_to_go_is_taken_from_the_start),
};

TN_TEST_MAIN("unit.transition_claims", tests)
