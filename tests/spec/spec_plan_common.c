/* SPDX-License-Identifier: MIT */
/* Plans, explanations and sequences in the notation of the cases; see spec_plan_common.h. */
#include "spec_plan_common.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- Plans ----------------------------------------------------------------------------------- */

tn_plan *spec_plan(const tn_plan_spec *spec) {
    tn_plan *plan = NULL;

    assert_ok(tn_plan_create(spec, &plan));
    assert_non_null(plan);
    return plan;
}

/* ---- Explanations ---------------------------------------------------------------------------- */

static void read_lists(const tn_explanation *x, struct spec_explained *e) {
    const tn_reservation_spec *list = NULL;

    e->action_count = e->peak_count = e->blocker_count = e->protected_count = SPEC_EXPLAINED_MAX;
    e->actions[0].size = sizeof(e->actions[0]);
    assert_ok(tn_explanation_actions(x, e->actions, &e->action_count));
    assert_ok(tn_explanation_peaks(x, e->peaks, &e->peak_count));
    assert_ok(tn_explanation_blockers(x, e->blockers, &e->blocker_count));
    assert_ok(tn_explanation_protected(x, e->protected_at, &e->protected_count));
    assert_ok(tn_explanation_reservations(x, &list, &e->reservation_count));
    assert_true(e->action_count <= SPEC_EXPLAINED_MAX && e->peak_count <= SPEC_EXPLAINED_MAX);
    assert_true(e->blocker_count <= SPEC_EXPLAINED_MAX);
    assert_true(e->protected_count <= SPEC_EXPLAINED_MAX);
    assert_true(e->reservation_count <= SPEC_EXPLAINED_MAX);
    for (size_t i = 0; i < e->reservation_count; i++) {
        e->reservations[i] = list[i];
        e->reservations[i].label = NULL;
        snprintf(e->labels[i], sizeof(e->labels[i]), "%s", list[i].label);
    }
    assert_int_equal(e->head.action_count, e->action_count);
    assert_int_equal(e->head.peak_count, e->peak_count);
    assert_int_equal(e->head.blocker_count, e->blocker_count);
    assert_int_equal(e->head.reservation_count, e->reservation_count);
}

/* What holds of every action: M176, and executable without reason is a performable one. */
static void check_action(const tn_action_explanation *a) {
    assert_true(a->executable || !a->no_op);
    assert_int_equal(a->reason == TN_REASON_NONE, a->executable && !a->no_op);
    assert_true(a->phase == TN_PHASE_RECLAIM || a->phase == TN_PHASE_ENTER ||
                a->phase == TN_PHASE_EXIT);
    assert_true(a->storage_bytes >= a->logical_bytes);
}

/* M180: all but the last action could run, and the last could not if the problem is an action. */
static void check_explained(const struct spec_explained *e) {
    bool by_action = !e->head.feasible && e->head.phase != TN_PHASE_RESERVE;

    for (size_t i = 0; i < e->action_count; i++) {
        check_action(&e->actions[i]);
        assert_int_equal(e->actions[i].executable, !(by_action && i + 1 == e->action_count));
    }
    for (size_t i = 0; i < e->peak_count; i++)
        for (size_t k = 0; k < i; k++)
            assert_false(tn_location_equal(e->peaks[i].at, e->peaks[k].at)); /* M254 */
    assert_int_equal(e->head.reason == TN_REASON_NONE, e->head.feasible);
    if (e->head.feasible) { /* at once, or after plans in flight */
        assert_int_equal(e->head.verdict,
                         e->blocker_count == 0 ? TN_VERDICT_FITS_NOW : TN_VERDICT_BLOCKED);
        for (size_t i = 0; i < e->blocker_count; i++)
            assert_int_equal(e->blockers[i].kind, TN_BLOCKER_PLAN);
        return;
    }
    assert_int_equal(e->problem.reason, e->head.reason);
    assert_true(e->problem.message[0] != '\0');
    if (by_action) {
        const tn_action_explanation *last = &e->actions[e->action_count - 1];

        assert_true(e->action_count > 0);
        assert_int_equal(last->reason, e->head.reason);
        assert_int_equal(last->phase, e->head.phase);
        assert_int_equal(last->index, e->head.index);
    }
}

struct spec_explained spec_explain(tn_manager *m, const tn_plan *plan) {
    struct spec_explained e;
    tn_explanation *x = NULL;
    const tn_error *problem;

    memset(&e, 0, sizeof(e));
    e.head.size = sizeof(e.head);
    assert_ok(tn_manager_explain(m, plan, TN_VERSION_ANY, &x));
    assert_non_null(x);
    assert_ok(tn_explanation_read(x, &e.head));
    snprintf(e.plan, sizeof(e.plan), "%s", e.head.plan);
    e.head.plan = NULL;
    read_lists(x, &e);
    problem = tn_explanation_problem(x);
    assert_int_equal(problem == NULL, e.head.feasible);
    if (problem != NULL)
        e.problem = *problem;
    tn_explanation_drop(x);
    check_explained(&e);
    return e;
}

struct spec_explained spec_explain_spec(tn_manager *m, const tn_plan_spec *spec) {
    tn_plan *plan = spec_plan(spec);
    struct spec_explained e = spec_explain(m, plan);

    tn_plan_destroy(plan);
    return e;
}

tn_status spec_explain_status(tn_manager *m, const tn_plan *plan, uint64_t expected_version) {
    tn_explanation *x = NULL;
    tn_status status = tn_manager_explain(m, plan, expected_version, &x);

    assert_int_equal(x != NULL, status == TN_OK);
    tn_explanation_drop(x);
    return status;
}

static const char *at_text(tn_location at) {
    static char names[2][TN_LOCATION_NAME_MAX];
    static unsigned next;
    char *name = names[next++ % 2];

    return tn_location_name(at, name, TN_LOCATION_NAME_MAX) == TN_OK ? name : "?";
}

char *spec_explained_text(const struct spec_explained *e) {
    char *text = NULL;
    size_t size = 0;
    FILE *o = open_memstream(&text, &size);

    assert_non_null(o);
    fprintf(o, "'%s' feasible %u reason %u phase %u index %" PRIu64 " verdict %u", e->plan,
            e->head.feasible, e->head.reason, e->head.phase, e->head.index, e->head.verdict);
    fprintf(o, " evictable %" PRIu64 " missing %" PRIu64 " '%s'\n", e->head.evictable_bytes,
            e->head.missing_bytes, e->problem.message);
    for (size_t i = 0; i < e->action_count; i++) {
        const tn_action_explanation *a = &e->actions[i];

        fprintf(o, "%u.%" PRIu64 " %u of %" PRIu64 " executable %u no-op %u reason %u", a->phase,
                a->index, a->action.kind, a->action.handle.index, a->executable, a->no_op,
                a->reason);
        fprintf(o, " %s to %s %" PRIu64 "/%" PRIu64 "\n", at_text(a->source),
                at_text(a->destination), a->logical_bytes, a->storage_bytes);
    }
    for (size_t i = 0; i < e->reservation_count; i++)
        fprintf(o, "reserve %s %" PRIu64 " '%s'\n", at_text(e->reservations[i].at),
                e->reservations[i].bytes, e->labels[i]);
    for (size_t i = 0; i < e->peak_count; i++)
        fprintf(o, "peak %s %" PRIu64 "\n", at_text(e->peaks[i].at), e->peaks[i].charged_bytes);
    for (size_t i = 0; i < e->protected_count; i++)
        fprintf(o, "protected %s\n", at_text(e->protected_at[i]));
    for (size_t i = 0; i < e->blocker_count; i++)
        fprintf(o, "blocker %u of %" PRIu64 " at %s\n", e->blockers[i].kind,
                e->blockers[i].handle.index, at_text(e->blockers[i].at));
    assert_int_equal(fclose(o), 0);
    return text;
}

static void print_peaks(const char *what, const tn_predicted_peak *list, size_t count) {
    print_error("%s", what);
    for (size_t i = 0; i < count; i++)
        print_error(" %s %" PRIu64, at_text(list[i].at), list[i].charged_bytes);
    print_error("\n");
}

void spec_assert_predicted(const struct spec_explained *e, const tn_predicted_peak *want,
                           size_t count, const char *file, int line) {
    bool same = e->peak_count == count;

    for (size_t i = 0; same && i < count; i++)
        same = tn_location_equal(e->peaks[i].at, want[i].at) &&
               e->peaks[i].charged_bytes == want[i].charged_bytes;
    if (same)
        return;
    print_peaks("predicted:", e->peaks, e->peak_count);
    print_peaks("expected: ", want, count);
    _fail(file, line);
}

/* ---- Sequences ------------------------------------------------------------------------------- */

void spec_read_report(const tn_plan_report *report, struct spec_run *out) {
    out->reported = true;
    out->head.size = sizeof(out->head);
    out->count = SPEC_EXPLAINED_MAX;
    out->transitions[0].size = sizeof(out->transitions[0]);
    assert_ok(tn_plan_report_read(report, &out->head));
    assert_ok(tn_plan_report_transitions(report, out->transitions, &out->count));
    assert_true(out->count <= SPEC_EXPLAINED_MAX);
    snprintf(out->plan, sizeof(out->plan), "%s", out->head.plan);
    out->head.plan = NULL;
    assert_int_equal(out->head.reserved0, 0);
    assert_int_equal(out->head.transition_count, out->count);
    assert_int_equal(out->head.reclaim_count + out->head.enter_count + out->head.exit_count,
                     out->count);
    assert_true(out->head.started_at_ns > 0);
    assert_true(out->head.started_at_ns <= out->head.completed_at_ns);
    for (size_t i = 0; i < out->count; i++) {
        assert_true(out->head.started_at_ns <= out->transitions[i].started_at_ns);
        assert_true(out->transitions[i].completed_at_ns <= out->head.completed_at_ns);
    }
}

struct spec_run spec_run(tn_manager *m, const char *name, const tn_action *actions, size_t count,
                         const tn_run_options *options) {
    struct spec_run run;
    tn_plan_report *report = NULL;

    memset(&run, 0, sizeof(run));
    run.status = tn_manager_execute_actions(m, name, actions, count, options, &report);
    if (run.status != TN_OK) {
        run.error = *tn_last_error();
        assert_int_equal(run.error.status, run.status);
    }
    assert_int_equal(report != NULL, run.status == TN_OK || run.status == TN_ERR_PLAN_EXEC);
    if (report == NULL)
        return run;
    spec_read_report(report, &run);
    tn_plan_report_drop(report);
    assert_string_equal(run.plan, name != NULL ? name : "actions");
    assert_int_equal(run.head.complete, run.status == TN_OK);
    assert_int_equal(run.head.enter_count, run.count);
    if (run.status == TN_OK)
        assert_int_equal(run.count, count);
    return run;
}
