/* SPDX-License-Identifier: MIT */
/*
 * src/transition/scope.c where the specification's cases do not reach: a child of the process that
 * forked while another thread held the writer lock (F-H05).
 */
#include "core_fixture.h"

#include <sys/wait.h>
#include <unistd.h>

static tn_scope *scope_of(tn_manager *m) {
    tn_reservation_spec reservation = {P, 8, "scope"};
    tn_plan_spec spec = TN_PLAN_SPEC_INIT;
    tn_plan *plan = NULL;
    tn_scope *s = NULL;
    spec.name = "forked";
    spec.reservations = &reservation;
    spec.reservation_count = 1;
    assert_ok(tn_plan_create(&spec, &plan));
    assert_ok(tn_scope_create(m, plan, NULL, &s));
    tn_plan_destroy(plan);
    return s;
}

/* Bits of what is wrong. */
static int in_child(tn_manager *m, tn_scope *fresh, tn_scope *entered, tn_scope *closed) {
    tn_scope *made = NULL;
    int bad = tn_scope_create(m, tn_scope_plan(fresh), NULL, &made) != TN_ERR_FORKED;
    bad |= (tn_scope_enter(fresh) != TN_ERR_FORKED) << 1;
    bad |= (tn_scope_enter(fresh) != TN_ERR_MISUSE || tn_scope_close(fresh) != TN_OK) << 2;
    bad |= (tn_scope_enter(entered) != TN_ERR_MISUSE) << 3;
    bad |= (tn_scope_close(entered) != TN_ERR_FORKED || !tn_scope_active(entered)) << 4;
    bad |= (tn_scope_close(closed) != TN_OK) << 5;
    bad |= (tn_scope_destroy(fresh) != TN_OK || tn_scope_destroy(entered) != TN_OK) << 6;
    bad |= (tn_scope_destroy(closed) != TN_OK) << 7;
    return bad;
}

static void scopes_in_a_child_take_no_lock(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    struct args a = {.m = m, .h = {adopt_rep(f, m, P)}, .at = N};
    tn_scope *fresh = scope_of(m), *entered = scope_of(m), *closed = scope_of(m);
    struct op op;
    int how = 0;
    NEED_POINTS();
    assert_ok(tn_scope_enter(entered));
    assert_ok(tn_scope_enter(closed));
    assert_ok(tn_scope_close(closed));
    OP_START(&op, run_ensure, &a, TN__POINT_ADMIT);
    op_reach(&op); /* it holds the lock */
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20);
        _exit(in_child(m, fresh, entered, closed));
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_status(op_end(&op), TN_OK);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
    assert_ok(tn_scope_enter(fresh)); /* the parent goes on */
    assert_ok(tn_scope_close(fresh));
    assert_ok(tn_scope_close(entered));
    assert_ok(tn_scope_destroy(fresh));
    assert_ok(tn_scope_destroy(entered));
    assert_ok(tn_scope_destroy(closed));
    assert_int_equal(info(m).reservation_count, 0);
}

static const struct CMUnitTest tests[] = {SPEC_BOTH(scopes_in_a_child_take_no_lock)};

TN_TEST_MAIN("unit.transition_scope", tests)
