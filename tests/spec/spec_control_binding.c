/* SPDX-License-Identifier: MIT */
/*
 * What a decision is bound to, and scopes made of decisions (C10, C16, C115..C122, C152; cases
 * CC102..CC111).
 */
#include "scenario.h"

/* ---- Scopes ---------------------------------------------------------------------------------- */

static tn_decision *decided(world *w, const char *need, const char *reserve) {
    tn_decision *d;

    assert_ok(world_decide_for(w, w->controller, need, reserve, &d));
    return d;
}

static tn_scope *wrapped(world *w, const tn_decision *d, const tn_transfer_stream *stream) {
    tn_scope *scope = NULL;

    assert_ok(tn_controller_scope(w->controller, d, stream, stream != NULL, &scope));
    return scope;
}

static uint64_t version_of(const tn_decision *d) {
    tn_decision_info info = TN_DECISION_INFO_INIT;

    assert_ok(tn_decision_read(d, &info));
    return info.expected_version;
}

static void enter_and_close(tn_scope *scope) {
    assert_ok(tn_scope_enter(scope));
    assert_ok(tn_scope_close(scope));
    assert_ok(tn_scope_destroy(scope));
}

/* Entry is refused as stale, names both versions, changes nothing, and uses the scope up. */
static void assert_stale(world *w, tn_scope *scope, uint64_t expected) {
    char *before = spec_describe(w->m, SPEC_NO_VERSION);
    const tn_error *e;

    assert_status(tn_scope_enter(scope), TN_ERR_STALE);
    e = tn_last_error();
    assert_int_equal(e->expected, expected);
    assert_int_equal(e->actual, version(w->m));
    assert_true(e->actual > e->expected);
    assert_unchanged(w->m, before, SPEC_NO_VERSION);
    assert_status(tn_scope_enter(scope), TN_ERR_MISUSE);
    assert_ok(tn_scope_destroy(scope));
}

static const scenario cc102 = {.budgets = "P=64", .values = "a 64 R @H"};

static void cc102_stale_decision(void **state) {
    world *w = world_begin(*state, &cc102);
    tn_decision *d = decided(w, "a@P", NULL);

    world_do(w, "reserve H:1");
    assert_stale(w, wrapped(w, d, NULL), version_of(d));
    world_check(w, "a@H");
    tn_decision_drop(d);
    world_end(w);
}

static void cc103_foreign_manager(void **state) {
    world *w = world_begin(*state, &cc102), *other = world_begin(*state, &cc102);
    tn_decision *d = decided(w, "a@P", NULL);
    tn_scope *scope = NULL;

    assert_handle_error(tn_controller_scope(other->controller, d, NULL, 0, &scope),
                        TN_HANDLE_FOREIGN);
    assert_null(scope);
    tn_decision_drop(d);
    world_end(other);
    world_end(w);
}

static void cc104_other_policy_configuration(void **state) {
    world *w = world_begin(*state, &cc102);
    tn_policy *tiers = world_tiers("P to H");
    tn_controller *second = world_controller(w, tiers, 0), *third = world_controller(w, NULL, 7);
    tn_decision *d = decided(w, "a@P", NULL);
    tn_scope *scope = NULL;

    assert_status(tn_controller_scope(second, d, NULL, 0, &scope), TN_ERR_PLAN);
    assert_null(scope);
    assert_ok(tn_controller_scope(third, d, NULL, 0, &scope));
    enter_and_close(scope);
    world_check(w, "a@H,P");
    tn_decision_drop(d);
    tn_controller_destroy(third);
    tn_controller_destroy(second);
    tn_policy_destroy(tiers);
    world_end(w);
}

/* ---- A policy whose configuration changes ---------------------------------------------------- */

static const char *fickle_name(void *context) {
    (void)context;
    return "fickle";
}

static const tn_config_pair *fickle_config(void *context, size_t *out_count) {
    *out_count = 1;
    return context;
}

static tn_status fickle_fallbacks(void *context, tn_location at, tn_location *out, size_t room,
                                  size_t *out_count) {
    (void)context, (void)at, (void)out, (void)room;
    *out_count = 0;
    return TN_OK;
}

static tn_status fickle_order(void *context, const tn_candidate *candidates, size_t count,
                              size_t *out_order) {
    (void)context, (void)candidates;
    for (size_t i = 0; i < count; i++)
        out_order[i] = i;
    return TN_OK;
}

static void cc105_policy_that_changes_its_configuration(void **state) {
    tn_config_pair pair = {"key", "before"};
    tn_policy_spec spec = {sizeof(spec),     &pair,        fickle_name, fickle_config,
                           fickle_fallbacks, fickle_order, NULL};
    scenario of = cc102;
    world *w;
    tn_decision *d;
    tn_scope *scope = NULL;

    of.policy = &spec;
    w = world_begin(*state, &of);
    d = decided(w, "a@P", NULL);
    pair.value = "after";
    assert_status(tn_controller_scope(w->controller, d, NULL, 0, &scope), TN_ERR_PLAN);
    pair.value = "before";
    enter_and_close(wrapped(w, d, NULL));
    tn_decision_drop(d);
    world_end(w);
}

/* ---- What makes stale ------------------------------------------------------------------------ */

static void cc106_metadata_does_not_make_stale(void **state) {
    world *w = world_begin(*state, &cc102);
    tn_decision *d = decided(w, "a@H", NULL);

    world_do(w, "meta a priority 5");
    enter_and_close(wrapped(w, d, NULL));
    tn_decision_drop(d);
    world_end(w);
}

static void cc107_empty_decision_entered_twice(void **state) {
    world *w = world_begin(*state, &cc102);
    tn_decision *d = decided(w, "a@H", NULL);

    assert_rises(w->m, 0, enter_and_close(wrapped(w, d, NULL)));
    assert_rises(w->m, 0, enter_and_close(wrapped(w, d, NULL)));
    assert_int_equal(version(w->m), version_of(d));
    tn_decision_drop(d);
    world_end(w);
}

static void cc108_zero_byte_reservation_makes_stale(void **state) {
    world *w = world_begin(*state, &cc102);
    tn_decision *d = decided(w, "a@H", "H:0");

    enter_and_close(wrapped(w, d, NULL));
    assert_stale(w, wrapped(w, d, NULL), version_of(d));
    tn_decision_drop(d);
    world_end(w);
}

static const scenario cc109 = {.values = "a 1 R @H,D0", .before = "pending a@D0"};

static void cc109_pending_work_that_completes(void **state) {
    world *w = world_begin(*state, &cc109);
    tn_decision *d = decided(w, "a@H", NULL);

    spec_finish(w->f);
    assert_stale(w, wrapped(w, d, NULL), version_of(d)); /* reaping changed the version */
    tn_decision_drop(d);
    world_end(w);
}

static void cc110_a_stale_version_beats_a_bad_stream(void **state) {
    world *w = world_begin(*state, &cc102);
    const tn_transfer_stream wrong = {C0, world_stream(w, 1)};
    tn_decision *d = decided(w, "a@H", NULL);
    tn_scope *scope = wrapped(w, d, &wrong);

    world_do(w, "reserve H:1");
    assert_stale(w, scope, version_of(d));
    tn_decision_drop(d);
    d = decided(w, "a@H", NULL); /* the same stream, and nothing is stale */
    scope = wrapped(w, d, &wrong);
    assert_status(tn_scope_enter(scope), TN_ERR_VALUE);
    assert_ok(tn_scope_destroy(scope));
    tn_decision_drop(d);
    world_end(w);
}

static const scenario cc111 = {.budgets = "P=2",
                               .values = "a 1 R @H,P; b 1 R @H,P; q 1 R @H; r 2 R @H"};

static void cc111_decisions_are_independent_of_each_other(void **state) {
    world *w = world_begin(*state, &cc111);
    tn_decision *first = decided(w, "q@P", NULL), *second = decided(w, "r@P", NULL);
    tn_scope *late = wrapped(w, second, NULL);

    assert_int_equal(version_of(first), version_of(second));
    enter_and_close(wrapped(w, first, NULL));
    assert_stale(w, late, version_of(second));
    world_check(w, "a@H; b@H,P; q@H,P; r@H");
    tn_decision_drop(second);
    tn_decision_drop(first);
    world_end(w);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(cc102_stale_decision),
    SPEC_BOTH(cc103_foreign_manager),
    SPEC_BOTH(cc104_other_policy_configuration),
    SPEC_BOTH(cc105_policy_that_changes_its_configuration),
    SPEC_BOTH(cc106_metadata_does_not_make_stale),
    SPEC_BOTH(cc107_empty_decision_entered_twice),
    SPEC_BOTH(cc108_zero_byte_reservation_makes_stale),
    SPEC_BOTH(cc109_pending_work_that_completes),
    SPEC_BOTH(cc110_a_stale_version_beats_a_bad_stream),
    SPEC_BOTH(cc111_decisions_are_independent_of_each_other),
};

TN_TEST_MAIN("spec.control_binding", tests)
