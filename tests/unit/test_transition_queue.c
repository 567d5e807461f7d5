/* SPDX-License-Identifier: MIT */
/*
 * In which order whole plans go: a large one is not overtaken, one that did not fit is judged again,
 * exits, plans that need each other's bytes (M127, M256, M258; design of admission). The rules one
 * by one are those of test_transition_flow.c.
 */
#include "claims_fixture.h"

/* ---- The queue ------------------------------------------------------------------------------ */

/*
 * {P:64}. One plan copies to P, a large one needs all of P, a small one would fit beside the first.
 * The small one waits behind the large one (no overtaking), which is judged again when the first
 * is over.
 */
static void large_plan(struct spec *f, bool fail) {
    tn_manager *m = MANAGER(f, {P, 64});
    tn_handle slow = marked(f, m, N), large = big(f, m, N), small = adopt_rep(f, m, N);
    struct sequence first, second, third;
    size_t done = fail ? 2 : 1;
    arm();
    START(&first, m, ENSURE(slow, P));
    stand_reached();
    expect_claimed(m, P, 32, 32);
    QUEUE(&second, m, 0, ENSURE(large, P), DROP(large, P));
    QUEUE(&third, m, 1, ENSURE(small, P));
    pause_shortly();
    assert_int_equal(flow_count(m, false), 2);
    assert_int_equal(trace_count(m), 0);
    go_on(fail);
    assert_status(op_end(&first.op), fail ? TN_ERR_PLAN_EXEC : TN_OK);
    assert_status(op_end(&second.op), fail ? TN_OK : TN_ERR_PLAN);
    assert_status(op_end(&third.op), TN_OK);
    assert_handle(trace_at(m, 0).action.handle, fail ? large : slow);
    assert_handle(trace_at(m, done).action.handle, small);
    assert_int_equal(trace_count(m), done + 1);
    if (!fail)
        assert_int_equal(second.op.error.reason, TN_REASON_BUDGET);
    expect_no_claims(m);
}

static void large_plan_is_not_overtaken(void **state) { large_plan(*state, true); }
static void large_plan_is_refused_when_it_cannot_fit(void **state) { large_plan(*state, false); }

static void plans_of_other_values_overlap(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 64}, {C0, 64});
    tn_handle slow = marked(f, m, P), v = adopt_rep(f, m, P);
    struct sequence first, second;
    arm();
    START(&first, m, ENSURE(slow, C0), DROP(slow, P));
    stand_reached();
    FILL(&second, m, ENSURE(v, C0), ENSURE(v, N), DROP(v, C0), DROP(v, P));
    assert_status(run_sequence(&second), TN_OK);
    go_on(false);
    assert_status(op_end(&first.op), TN_OK);
    assert_replicas(m, v, N);
    assert_replicas(m, slow, C0);
    expect_no_claims(m);
}

/* What another plan uses for a while, and removes itself, is no reason for a refusal: whoever is
 * short of it waits, and is judged by the bytes that there are then (M256, M258). */
static void bytes_that_another_plan_uses_for_a_while(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 32});
    tn_handle slow = marked(f, m, N), a = adopt_rep(f, m, N), b = adopt_rep(f, m, N);
    struct sequence first, second;
    struct adopter third = {.m = m, .v = spec_v(f, P)};
    struct op adopting;
    arm();
    START(&first, m, ENSURE(a, P), ENSURE(slow, C0), DROP(a, P));
    stand_reached();
    assert_int_equal(used(m, P), 32);
    QUEUE(&second, m, 0, ENSURE(b, P), DROP(b, P));
    OP_START(&adopting, run_adopt, &third, 0);
    wait_until(flow_count(m, false) == 2);
    go_on(false);
    assert_status(op_end(&first.op), TN_OK);
    assert_status(op_end(&second.op), TN_OK);
    assert_status(op_end(&adopting), TN_OK);
    assert_replicas(m, third.h, P);
    assert_peaks(m, P, 32, 32);
    expect_no_claims(m);
}

/* M127, M256: the version is compared where the plan's turn comes, not where it arrives. */
static void plan_that_waited_finds_its_version_stale(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle slow = marked(f, m, P);
    struct sequence first, second;
    uint64_t decided = version(m);
    arm();
    START(&first, m, ENSURE(slow, C0));
    stand_reached();
    FILL(&second, m, ENSURE(slow, N), DROP(slow, P));
    second.expected = decided;
    OP_START(&second.op, run_sequence, &second, 0);
    wait_until(flow_count(m, false) == 1);
    go_on(false);
    assert_status(op_end(&first.op), TN_OK);
    assert_status(op_end(&second.op), TN_ERR_STALE);
    assert_int_equal(second.op.error.expected, decided);
    assert_int_equal(second.op.error.actual, decided + 2); /* tracked, installed */
    assert_replicas(m, slow, P, C0);
    expect_no_claims(m);
}

/* ---- Exits ---------------------------------------------------------------------------------- */

static tn_status run_close_scope(void *arg) { return tn_scope_close(arg); }

/* An entered scope whose exit ensures a value at P. */
static tn_scope *scope_of(tn_manager *m, tn_handle h) {
    tn_action action = ENSURE(h, P);
    tn_plan_spec spec = TN_PLAN_SPEC_INIT;
    tn_plan *plan = NULL;
    tn_scope *s = NULL;
    spec.name = "exit";
    spec.exit = &action;
    spec.exit_count = 1;
    assert_ok(tn_plan_create(&spec, &plan));
    assert_ok(tn_scope_create(m, plan, NULL, &s));
    tn_plan_destroy(plan);
    assert_ok(tn_scope_enter(s));
    return s;
}

/* An exit action that fits does not wait behind the queue. */
static void exit_is_not_behind_the_queue(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 64});
    tn_handle slow = marked(f, m, N), large = big(f, m, N), v = adopt_rep(f, m, N);
    tn_scope *s = scope_of(m, v);
    struct sequence first, second;
    struct op closing;
    arm();
    START(&first, m, ENSURE(slow, P));
    stand_reached();
    QUEUE(&second, m, 0, ENSURE(large, P), DROP(large, P));
    OP_START(&closing, run_close_scope, s, 0);
    wait_until(atomic_load(&closing.ended));
    assert_status(op_end(&closing), TN_OK);
    assert_replicas(m, v, N, P);
    assert_false(atomic_load(&second.op.ended));
    go_on(true);
    assert_status(op_end(&first.op), TN_ERR_PLAN_EXEC);
    assert_status(op_end(&second.op), TN_ERR_PLAN);
    assert_ok(tn_scope_destroy(s));
    expect_no_claims(m);
}

/* One that does not fit because of a claim in flight waits for it. */
static void exit_waits_for_claims_in_flight(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 32});
    tn_handle slow = marked(f, m, N), v = adopt_rep(f, m, N);
    tn_scope *s = scope_of(m, v);
    struct sequence first;
    struct op closing;
    arm();
    START(&first, m, ENSURE(slow, P));
    stand_reached();
    OP_START(&closing, run_close_scope, s, 0);
    for (int i = 0; i < 100; i++)
        pause_shortly();
    assert_false(atomic_load(&closing.ended));
    go_on(true);
    assert_status(op_end(&first.op), TN_ERR_PLAN_EXEC);
    assert_status(op_end(&closing), TN_OK);
    assert_replicas(m, v, N, P);
    assert_ok(tn_scope_destroy(s));
    expect_no_claims(m);
}

/* ---- Plans that need each other's bytes ----------------------------------------------------- */

struct crossing {
    tn_manager *m;
    tn_handle h[2][2];
    atomic_uint refused;
};

enum { CROSSINGS = 200 };

static const char *cross(int index, void *arg) {
    struct crossing *x = arg;
    tn_handle a = x->h[index][0], b = x->h[index][1];
    tn_location first = index ? N : P, second = index ? P : N;
    tn_action actions[] = {ENSURE(a, first), ENSURE(b, second), DROP(a, first), DROP(b, second)};
    for (int i = 0; i < CROSSINGS && !tn_test_workers_failed(); i++) {
        tn_status status = tn_manager_execute_actions(x->m, "crossing", actions, 4, NULL, NULL);
        if (status == TN_ERR_PLAN && tn_last_error()->reason == TN_REASON_BUDGET)
            atomic_fetch_add(&x->refused, 1);
        else
            TN_WORKER_STATUS(status, TN_OK);
    }
    return NULL;
}

static void plans_that_need_each_others_bytes_both_finish(void **state) {
    struct spec *f = *state;
    struct crossing x = {.m = MANAGER(f, {P, 32}, {N, 32})};
    for (int i = 0; i < 4; i++)
        x.h[i / 2][i % 2] = adopt_rep(f, x.m, C0);
    assert_null_text(tn_test_workers_run(2, cross, &x));
    /* none is a reason for a refusal: each plan leaves nothing behind (M258) */
    assert_int_equal(atomic_load(&x.refused), 0);
    assert_int_equal(used(x.m, P), 0);
    assert_int_equal(used(x.m, N), 0);
    assert_peaks(x.m, P, 32, 32);
    assert_peaks(x.m, N, 32, 32);
    expect_no_claims(x.m);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(large_plan_is_not_overtaken),
    SPEC_BOTH(large_plan_is_refused_when_it_cannot_fit),
    SPEC_CONCURRENT(plans_of_other_values_overlap),
    SPEC_BOTH(bytes_that_another_plan_uses_for_a_while),
    SPEC_BOTH(plan_that_waited_finds_its_version_stale),
    SPEC_CONCURRENT(exit_is_not_behind_the_queue),
    SPEC_CONCURRENT(exit_waits_for_claims_in_flight),
    SPEC_BOTH(plans_that_need_each_others_bytes_both_finish),
};

TN_TEST_MAIN("unit.transition_queue", tests)
