/* SPDX-License-Identifier: MIT */
/* Field cases: questions and plans that cannot be, and what a plan that fails leaves behind. */
#include "tn_test.h"

#include <stdlib.h>
#include <time.h>

#include "base/base_internal.h"

#include "field_common.h"

#define MIB UINT64_C(1048576)
#define GIB (1024 * MIB)

/* ---- Plans of ensures -------------------------------------------------------------------- */

/* `count` values with sources that are never loaded, and a plan that ensures all of them at `at`. */
struct crowd {
    tn_handle values[128];
    tn_action actions[128];
    tt_source *source;
    tn_plan *plan;
};

static void crowd_make(struct crowd *c, struct spec *f, tn_manager *m, size_t count, uint64_t bytes,
                       tn_location at) {
    c->source = spec_source(f);
    for (size_t i = 0; i < count; i++) {
        c->values[i] = field_src(m, c->source, bytes);
        c->actions[i] = tn_action_ensure(c->values[i], at);
    }
}

static tn_plan *plan_of(const tn_action *enter, size_t count) {
    tn_plan_spec spec = TN_PLAN_SPEC_INIT;
    tn_plan *plan = NULL;

    spec.name = "crowd";
    spec.enter = enter;
    spec.enter_count = count;
    assert_ok(tn_plan_create(&spec, &plan));
    return plan;
}

struct answer {
    tn_explanation_info info;
    tn_predicted_peak peaks[4];
    size_t peak_count;
};

static struct answer ask(tn_manager *m, const tn_plan *plan) {
    struct answer a = {.info = TN_EXPLANATION_INFO_INIT, .peak_count = 4};
    tn_explanation *e = NULL;

    assert_ok(tn_manager_explain(m, plan, TN_VERSION_ANY, &e));
    assert_ok(tn_explanation_read(e, &a.info));
    assert_ok(tn_explanation_peaks(e, a.peaks, &a.peak_count));
    a.info.plan = NULL; /* pinned by the explanation */
    tn_explanation_drop(e);
    return a;
}

static uint64_t peak_at(const struct answer *a, tn_location at) {
    for (size_t i = 0; i < a->peak_count; i++)
        if (tn_location_equal(a->peaks[i].at, at))
            return a->peaks[i].charged_bytes;
    return 0;
}

static void expect_infeasible(const struct answer *a, uint64_t index, uint64_t explained) {
    assert_int_equal(a->info.feasible, 0);
    assert_int_equal(a->info.reason, TN_REASON_BUDGET);
    assert_int_equal(a->info.phase, TN_PHASE_ENTER);
    assert_int_equal(a->info.index, index);
    assert_int_equal(a->info.action_count, explained);
}

/* ---- F-A01: twenty-nine keys that cannot all fit ------------------------------------------- */

static void f_a01_keys_that_cannot_all_fit(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 6 * GIB});
    struct crowd c;
    struct answer a;
    tn_plan *plan, *first;
    tn_reservation r;
    uint64_t before, allocated = tt_count().backings;

    crowd_make(&c, f, m, 29, 276 * MIB, P);
    plan = plan_of(c.actions, 29);
    first = plan_of(c.actions, 22);
    before = version(m);
    a = ask(m, plan);
    expect_infeasible(&a, 22, 23);
    assert_int_equal(peak_at(&a, P), 6348 * MIB);
    assert_status(tn_manager_execute_actions(m, NULL, c.actions, 29, NULL, NULL), TN_ERR_PLAN);
    assert_int_equal(tn_last_error()->failed_index, 22);
    assert_status(tn_manager_reserve(m, P, 8004 * MIB, "all", &r), TN_ERR_BUDGET);
    assert_budget_error(P, UINT64_C(6442450944), 0, 0, UINT64_C(8392802304));
    assert_int_equal(tn_last_error()->missing_bytes, UINT64_C(1950351360));
    a = ask(m, first);
    assert_int_equal(a.info.feasible, 1);
    assert_int_equal(peak_at(&a, P), 6072 * MIB);
    assert_int_equal(c.source->calls, 0);
    assert_int_equal(tt_count().backings, allocated);
    assert_int_equal(version(m), before);
    assert_int_equal(used(m, P) + reserved(m, P), 0);
    assert_peaks(m, P, 0, 0);
    tn_plan_destroy(plan);
    tn_plan_destroy(first);
    field_conserved(f, m);
}

/* ---- F-A09: asking is cheap and changes nothing -------------------------------------------- */

static int by_value(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void expect_same(const struct answer *a, const struct answer *b) {
    assert_memory_equal(&a->info, &b->info, sizeof a->info);
    assert_int_equal(a->peak_count, b->peak_count);
    for (size_t i = 0; i < a->peak_count; i++) {
        assert_at(a->peaks[i].at, b->peaks[i].at);
        assert_int_equal(a->peaks[i].charged_bytes, b->peaks[i].charged_bytes);
    }
}

#define QUESTIONS 1000

static void f_a09_asking_changes_nothing(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {C0, 8 * GIB});
    struct crowd a, b;
    struct answer first_a, first_b;
    static uint64_t ns[QUESTIONS];
    tn_plan *plan_a, *plan_b;
    char *before;
    uint64_t calls, blocks;
    size_t traced;

    crowd_make(&a, f, m, 79, 132 * MIB, C0);
    crowd_make(&b, f, m, 55, 126 * MIB, C0);
    plan_a = plan_of(a.actions, 79);
    plan_b = plan_of(b.actions, 55);
    before = spec_describe(m, 0);
    traced = trace_count(m);
    calls = field_calls(f, TN_SIM_ANY);
    first_a = ask(m, plan_a);
    first_b = ask(m, plan_b);
    expect_infeasible(&first_a, 62, 63);
    assert_int_equal(peak_at(&first_a, C0), 8316 * MIB);
    assert_int_equal(peak_at(&first_a, P), 132 * MIB);
    assert_int_equal(first_b.info.feasible, 1);
    assert_int_equal(peak_at(&first_b, C0), 6930 * MIB);
    assert_int_equal(peak_at(&first_b, P), 126 * MIB);
    blocks = tn__alloc_live();
    for (size_t i = 0; i < QUESTIONS; i++) {
        struct answer again = ask(m, plan_a);
        uint64_t began = tn__mono_ns();

        expect_same(&again, &first_a);
        again = ask(m, plan_b);
        ns[i] = tn__mono_ns() - began;
        expect_same(&again, &first_b);
    }
    qsort(ns, QUESTIONS, sizeof *ns, by_value);
    assert_int_equal(tn__alloc_live(), blocks);
    field_time("median of an explanation", ns[QUESTIONS / 2], 100000);
    assert_int_equal(field_calls(f, TN_SIM_ANY), calls);
    assert_int_equal(a.source->calls + b.source->calls, 0);
    assert_int_equal(trace_count(m), traced);
    assert_unchanged(m, before, 0);
    tn_plan_destroy(plan_a);
    tn_plan_destroy(plan_b);
    field_conserved(f, m);
}

/* ---- F-D13: a value larger than its budget, asked first ------------------------------------- */

static void f_d13_explained_before_it_is_tried(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 131072});
    struct crowd c;
    struct answer a;
    tn_plan *plan;

    crowd_make(&c, f, m, 1, 153600, P);
    plan = plan_of(c.actions, 1);
    a = ask(m, plan);
    expect_infeasible(&a, 0, 1);
    assert_int_equal(a.info.missing_bytes, 153600 - 131072); /* of the only budget, P's */
    assert_int_equal(a.info.verdict, TN_VERDICT_NEVER);
    assert_int_equal(peak_at(&a, P), 153600);
    assert_int_equal(c.source->calls, 0);
    assert_peaks(m, P, 0, 0);
    tn_plan_destroy(plan);
    field_conserved(f, m);
}

/* ---- F-F02: an empty sequence; an expected version beyond 32 bits ----------------------------- */

static void f_f02_empty_sequence(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_plan_report *report = NULL;
    tn_plan_report_info head = {.size = sizeof head};
    uint64_t before = version(m);

    assert_ok(tn_manager_execute_actions(m, NULL, NULL, 0, NULL, &report));
    assert_ok(tn_plan_report_read(report, &head));
    assert_int_equal(head.complete, 1);
    assert_int_equal(head.transition_count, 0);
    tn_plan_report_drop(report);
    assert_int_equal(version(m), before);
    assert_int_equal(field_ms(f), 0);
}

/* ---- F-E09: an early way out does not forget what was just evicted ---------------------------- */

#define BLOCK 65536

static void expect_partial(const tn_scope *scope) {
    const tn_plan_report *report = NULL;
    tn_plan_report_info head = {.size = sizeof head};

    assert_ok(tn_scope_partial_report(scope, &report));
    assert_non_null(report);
    assert_ok(tn_plan_report_read(report, &head));
    assert_int_equal(head.complete, 0);
    assert_int_equal(head.reclaim_count, 3);
    assert_int_equal(head.transition_count, 3);
}

static tn_pinned_figures pinned(struct spec *f) {
    tn_pinned_figures figures = TN_PINNED_FIGURES_INIT;

    assert_ok(tn_driver_read_pinned(f->driver, &figures));
    return figures;
}

static void f_e09_what_was_evicted_is_given_back(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {N, 3 * BLOCK});
    tn_action reclaim[3], enter;
    tn_plan_spec spec = TN_PLAN_SPEC_INIT;
    tn_plan *plan = NULL;
    tn_scope *scope = NULL;
    tt_source *source = spec_source(f);
    tn_handle w;
    uint64_t destroyed;

    for (int i = 0; i < 3; i++)
        reclaim[i] = tn_action_drop(field_rep_at(f, m, N, BLOCK, 1), N);
    w = field_src(m, source, 3 * BLOCK);
    source->fail_from = 1;
    enter = tn_action_ensure(w, N);
    spec.name = "refill";
    spec.reclaim = reclaim;
    spec.reclaim_count = 3;
    spec.enter = &enter;
    spec.enter_count = 1;
    assert_ok(tn_plan_create(&spec, &plan));
    assert_ok(tn_scope_create(m, plan, NULL, &scope));
    destroyed = tt_count().destroyed;
    assert_status(tn_scope_enter(scope), TN_ERR_PLAN_EXEC);
    assert_int_equal(tn_last_error()->phase, TN_PHASE_ENTER);
    assert_int_equal(tn_last_error()->failed_index, 0);
    expect_partial(scope);
    assert_int_equal(tt_count().destroyed, destroyed + 3);
    assert_int_equal(used(m, N), 0);
    assert_int_equal(pinned(f).live_bytes, 0);
    assert_int_equal(pinned(f).idle_bytes, field_memory(f, N).live_bytes); /* kept: all of it */
    ensure(m, w, N);
    assert_ok(tn_scope_destroy(scope));
    tn_plan_destroy(plan);
    field_conserved(f, m);
    spec_destroy(f, m);
    assert_int_equal(field_calls(f, TN_SIM_PINNED_FREE), field_calls(f, TN_SIM_PINNED_ALLOC));
    assert_int_equal(field_memory(f, N).live_blocks, 0);
}

/* ---- F-E10: no pinned memory, and a scope ------------------------------------------------------ */

static void f_e10_scope_without_pinned_memory(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, KEY}, {C0, KEY});
    tn_handle v = field_rep(f, m, KEY, 1);
    tn_action enter = tn_action_ensure(v, C0), leave = tn_action_drop(v, C0);
    tn_plan_spec spec = TN_PLAN_SPEC_INIT;
    tn_plan *plan = NULL;
    tn_scope *scope = NULL;

    assert_ok(tn_sim_set_capabilities(f->sim, TN_SIM_ANY_DEVICE, 0));
    spec.name = "body";
    spec.enter = &enter;
    spec.enter_count = 1;
    spec.exit = &leave;
    spec.exit_count = 1;
    assert_ok(tn_plan_create(&spec, &plan));
    assert_ok(tn_scope_create(m, plan, NULL, &scope));
    assert_ok(tn_scope_enter(scope));
    assert_true(field_exact(f, m, v, C0, 1));
    assert_ok(tn_scope_close(scope));
    assert_ok(tn_scope_destroy(scope));
    tn_plan_destroy(plan);
    assert_replicas(m, v, P);
    assert_int_equal(field_calls(f, TN_SIM_PINNED_ALLOC), 0);
    field_conserved(f, m);
}

/* ---- F-D27: idle pinned blocks are given back on demand ----------------------------------------- */

static void f_d27_trim_of_idle_pinned_blocks(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = field_rep_at(f, m, N, BLOCK, 1);
    uint64_t before, given = 0;

    drop(m, v, N);
    before = version(m);
    assert_true(pinned(f).idle_bytes >= BLOCK);
    assert_ok(tn_driver_trim_pinned(f->driver, &given));
    assert_true(given >= BLOCK);
    assert_int_equal(pinned(f).idle_bytes + pinned(f).live_bytes, 0);
    assert_int_equal(field_memory(f, N).live_blocks, 0);
    assert_int_equal(version(m), before);
    ensure(m, v, N);
    assert_true(field_exact(f, m, v, N, 1));
    field_conserved(f, m);
}

static const struct CMUnitTest tests[] = {
    FIELD_BOTH(f_a01_keys_that_cannot_all_fit),       FIELD_BOTH(f_a09_asking_changes_nothing),
    FIELD_BOTH(f_d13_explained_before_it_is_tried),   FIELD_BOTH(f_f02_empty_sequence),
    FIELD_BOTH(f_e09_what_was_evicted_is_given_back), FIELD_BOTH(f_e10_scope_without_pinned_memory),
    FIELD_BOTH(f_d27_trim_of_idle_pinned_blocks),
};

TN_TEST_MAIN("field.plans", tests)
