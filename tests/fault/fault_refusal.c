/* SPDX-License-Identifier: MIT */
/*
 * Refusals that name what stands in the way, where each allocation fails (F1): the refusal stands,
 * with or without its verdict, or it is TN_ERR_HOST_MEMORY; nothing changes and nothing is kept.
 */
#include "fault_common.h"

#include "base/base_internal.h"

#define HELD 5u /* more than an error names */

/* C0 is full of held values, a leased one and a reservation: 32 more bytes fit after the lease, 40
 * after a hold or the reservation too. */
static void full_device(fault *x) {
    x->m = MANAGER(x->f, {C0, HELD * 32 + 32 + 8});
    for (unsigned i = 0; i < HELD; i++)
        (void)hold(x->m, adopt_rep(x->f, x->m, C0), C0);
    x->stream = spec_stream(x->f, 0);
    x->h = adopt_rep(x->f, x->m, C0);
    x->lease = acquire(x->m, x->h, C0, x->stream);
    x->reservation = reserve(x->m, C0, 8, "the rest");
    x->h = adopt_rep(x->f, x->m, P);
}

static tn_status refused_ensure(fault *x) { return tn_manager_ensure(x->m, x->h, C0, NULL, NULL); }

static tn_status refused_reserve(fault *x) {
    tn_reservation r = {NULL, 0};
    return tn_manager_reserve(x->m, C0, 40, "too much", &r);
}

static tn_status refused_sequence(fault *x) {
    tn_action actions[] = {tn_action_ensure(x->h, N), tn_action_ensure(x->h, C0)};
    return tn_manager_execute_actions(x->m, "refused", actions, 2, NULL, NULL);
}

static tn_status refused_drop(fault *x) {
    tn_action action = tn_action_drop(x->h, P);
    return tn_manager_execute_actions(x->m, "refused", &action, 1, NULL, NULL);
}

static tn_status refused_entry(fault *x) {
    tn_action actions[] = {tn_action_ensure(x->h, C0)};
    tn_plan_spec spec = TN_PLAN_SPEC_INIT;
    tn_plan *plan = NULL;
    tn_scope *scope = NULL;
    spec.name = "refused";
    spec.exit = actions;
    spec.exit_count = 1;
    tn_status status = tn_plan_create(&spec, &plan);
    if (status == TN_OK)
        status = tn_scope_create(x->m, plan, NULL, &scope);
    tn_plan_destroy(plan);
    if (status == TN_OK)
        status = tn_scope_enter(scope);
    assert_ok(tn_scope_destroy(scope)); /* a success leaves the error as it is */
    return status;
}

static void held_host(fault *x) {
    x->m = MANAGER(x->f);
    x->h = adopt_rep(x->f, x->m, P);
    (void)ensure(x->m, x->h, N);
    x->hold = hold(x->m, x->h, P);
}

/* What it says if nothing fails; each part of it is there or the whole is missing. */
static void expect_refusal(tn_status want, uint32_t verdict, uint64_t blockers) {
    const tn_error *e = tn_last_error();
    assert_status(e->status, want);
    assert_true(e->message[0] != '\0');
    if (e->verdict == TN_VERDICT_NONE) {
        assert_int_equal(e->blocker_count, 0);
        return;
    }
    assert_int_equal(e->verdict, verdict);
    assert_int_equal(e->blocker_count, blockers);
}

static void refuse_each(void **state, void (*prepare)(fault *x), tn_status (*call)(fault *x),
                        tn_status want, uint32_t verdict, uint64_t blockers) {
    fault x = {.h = {0, 0, NULL}};
    void *fixture = NULL;
    bool fired = true;
    uint64_t n = 0;
    assert_int_equal((uintptr_t)*state == TN_MODE_SERIAL ? spec_setup_serial(&fixture)
                                                         : spec_setup_concurrent(&fixture),
                     0);
    x.f = fixture;
    prepare(&x);
    assert_status(call(&x), want);
    while (fired) {
        char *before = spec_describe(x.m, 0);
        size_t reports = trace_count(x.m);
        uint64_t live = tn__alloc_live();
        tn__fault_alloc(++n);
        tn_status status = call(&x);
        fired = tn__fault_alloc_fired();
        tn__fault_alloc(0);
        assert_int_equal(tn__alloc_live(), live);
        if (status != TN_ERR_HOST_MEMORY || !fired)
            expect_refusal(want, verdict, blockers);
        else
            assert_int_equal(tn_last_error()->status, TN_ERR_HOST_MEMORY);
        assert_int_equal(trace_count(x.m), reports);
        assert_unchanged(x.m, before, 0);
    }
    assert_int_equal(tn_last_error()->verdict, verdict); /* nothing failed: complete */
    assert_true(n > 1);
    assert_int_equal(spec_teardown(&fixture), 0);
}

static void ensure_refused_while_each_allocation_fails(void **state) {
    refuse_each(state, full_device, refused_ensure, TN_ERR_BUDGET, TN_VERDICT_AFTER_LEASES, 1);
}

static void reserve_refused_while_each_allocation_fails(void **state) {
    refuse_each(state, full_device, refused_reserve, TN_ERR_BUDGET, TN_VERDICT_BLOCKED, HELD + 2);
}

static void sequence_refused_while_each_allocation_fails(void **state) {
    refuse_each(state, full_device, refused_sequence, TN_ERR_PLAN, TN_VERDICT_AFTER_LEASES, 1);
}

static void drop_refused_while_each_allocation_fails(void **state) {
    refuse_each(state, held_host, refused_drop, TN_ERR_PLAN, TN_VERDICT_BLOCKED, 1);
}

static void entry_refused_while_each_allocation_fails(void **state) {
    refuse_each(state, full_device, refused_entry, TN_ERR_PLAN, TN_VERDICT_AFTER_LEASES, 1);
}

static const struct CMUnitTest tests[] = {
    FAULT_BOTH(ensure_refused_while_each_allocation_fails),
    FAULT_BOTH(reserve_refused_while_each_allocation_fails),
    FAULT_BOTH(sequence_refused_while_each_allocation_fails),
    FAULT_BOTH(drop_refused_while_each_allocation_fails),
    FAULT_BOTH(entry_refused_while_each_allocation_fails),
};

TN_TEST_MAIN("fault.refusal", tests)
