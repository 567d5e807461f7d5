/* SPDX-License-Identifier: MIT */
/* Property test of the manager: plans, explanations, action sequences, on both sides. */
#include "manager_property.h"

#include <string.h>

typedef unsigned long long ull;

/* ---- Plans ----------------------------------------------------------------------------------- */

static bool same_actions(const tn_plan *plan, uint32_t phase, const tm_list *list) {
    const tn_action *actions;
    size_t count;
    if (tn_plan_actions(plan, phase, &actions, &count) != TN_OK || count != list->count)
        return false;
    for (size_t i = 0; i < count; i++) {
        const tn_action *a = &actions[i], *b = &list->actions[i];
        if (a->kind != b->kind || !tn_handle_equal(a->handle, b->handle) ||
            !tn_location_equal(a->at, b->at) || !tn_location_equal(a->from, b->from))
            return false;
    }
    return true;
}

static bool same_reservations(const tn_reservation_spec *list, size_t count, const tm_plan *plan) {
    bool same = count == plan->reservation_count;
    for (size_t i = 0; i < count && same; i++)
        same = tn_location_equal(list[i].at, plan->reservations[i].at) &&
               list[i].bytes == plan->reservations[i].bytes &&
               strcmp(list[i].label, plan->labels[i]) == 0;
    return same;
}

static bool check_plan(run *r, const tn_plan *plan, const tm_plan *model) {
    const tn_reservation_spec *reservations = NULL;
    size_t count = 0;
    if (strcmp(tn_plan_name(plan), model->name) != 0 ||
        !same_actions(plan, TN_PHASE_RECLAIM, &model->reclaim) ||
        !same_actions(plan, TN_PHASE_ENTER, &model->enter) ||
        !same_actions(plan, TN_PHASE_EXIT, &model->exit) ||
        tn_plan_reservations(plan, &reservations, &count) != TN_OK ||
        !same_reservations(reservations, count, model))
        return differ(r, "a plan is not what it was made of");
    return true;
}

static tn_plan_spec spec_of(const tm_plan *plan) {
    tn_plan_spec spec = TN_PLAN_SPEC_INIT;
    spec.name = plan->name;
    spec.reclaim = plan->reclaim.actions, spec.reclaim_count = plan->reclaim.count;
    spec.enter = plan->enter.actions, spec.enter_count = plan->enter.count;
    spec.exit = plan->exit.actions, spec.exit_count = plan->exit.count;
    spec.reservations = plan->reservations, spec.reservation_count = plan->reservation_count;
    return spec;
}

/* It takes the oldest one's place; what it was made of may change (M166). */
static bool keep_plan(run *r, side *s, tn_plan *made, tm_plan *drawn) {
    size_t slot = s->plans_made++ % RUN_PLANS;
    tn_plan_destroy(s->plans[slot]);
    s->plans[slot] = made;
    s->plan_models[slot] = *drawn;
    memset(drawn, 0xee, sizeof *drawn);
    return check_plan(r, made, &s->plan_models[slot]);
}

static bool run_plan(run *r, side *s, const call *c) {
    static tm_plan drawn; /* borrowed until it is copied */
    tn_plan *made = NULL;
    draw_plan(r, s, c, &drawn);
    tn_plan_spec spec = spec_of(&drawn);
    say_plan(r, &drawn);
    bool bad = wrong(r, WRONG_MANAGER) || wrong(r, WRONG_OUT);
    tn_status status;
    do {
        arm_faults(r, c);
        status = tn_plan_create(wrong(r, WRONG_MANAGER) ? NULL : &spec,
                                wrong(r, WRONG_OUT) ? NULL : &made);
    } while (again(r, s, status));
    if (!compare_refusal(r, s, status, bad ? TN_ERR_KIND : tm_plan_form(&drawn)) || status != TN_OK)
        return !failed(r);
    return keep_plan(r, s, made, &drawn);
}

size_t need_plan(run *r, side *s, const call *c) {
    static tm_plan drawn;
    tn_plan *made = NULL;
    if (c->arg[0] % 2 && s->plans_made)
        return choose_plan(s, c->arg[0] / 2);
    draw_plan(r, s, c, &drawn);
    if (tm_plan_form(&drawn) != TN_OK)
        return choose_plan(s, c->arg[0] / 2);
    tn_plan_spec spec = spec_of(&drawn);
    say(r, "of ");
    say_plan(r, &drawn);
    if (tn_plan_create(&spec, &made) != TN_OK)
        return differ(r, "a plan cannot be made: %s", tn_last_error()->message), RUN_PLANS;
    (void)keep_plan(r, s, made, &drawn);
    return (s->plans_made - 1) % RUN_PLANS;
}

/* ---- Explanations ---------------------------------------------------------------------------- */

static bool compare_explained_action(run *r, const tn_action_explanation *a,
                                     const tn_action_explanation *b, bool source_free) {
    const char *bad = a->action.kind != b->action.kind                           ? "kind"
                      : !tn_handle_equal(a->action.handle, b->action.handle)     ? "handle"
                      : !tn_location_equal(a->action.at, b->action.at)           ? "at"
                      : !tn_location_equal(a->action.from, b->action.from)       ? "from"
                      : a->phase != b->phase                                     ? "phase"
                      : a->index != b->index                                     ? "index"
                      : a->executable != b->executable                           ? "executable"
                      : a->no_op != b->no_op                                     ? "no_op"
                      : a->reason != b->reason                                   ? "reason"
                      : !source_free && !tn_location_equal(a->source, b->source) ? "source"
                      : !tn_location_equal(a->destination, b->destination)       ? "destination"
                      : a->logical_bytes != b->logical_bytes                     ? "logical_bytes"
                      : a->storage_bytes != b->storage_bytes                     ? "storage_bytes"
                                                                                 : NULL;
    r->tally->explained[b->action.kind][b->reason]++;
    return !bad || differ(r,
                          "explained action %llu of phase %u: %s is not the model's (reason %u, "
                          "by the model %u; from %s to %s, by the model from %s to %s)",
                          (ull)b->index, b->phase, bad, a->reason, b->reason,
                          location_text(a->source), location_text(a->destination),
                          location_text(b->source), location_text(b->destination));
}

static bool compare_explained_actions(run *r, const tn_explanation *e, const tm_explained *x) {
    tn_action_explanation list[3 * TM_STEPS];
    size_t count = 3 * TM_STEPS;
    list[0].size = sizeof list[0];
    if (tn_explanation_actions(e, list, &count) != TN_OK || count != x->action_count)
        return differ(r, "%zu explained actions, by the model %zu", count, x->action_count);
    for (size_t i = 0; i < count; i++)
        if (!compare_explained_action(r, &list[i], &x->actions[i],
                                      x->source_free && i + 1 == count))
            return false;
    return true;
}

/* In order: M181. */
static bool compare_peaks(run *r, const tn_explanation *e, const tm_explained *x) {
    tn_predicted_peak peaks[TM_LOCATIONS];
    tn_location listed[TM_LOCATIONS];
    size_t count = TM_LOCATIONS, listed_count = TM_LOCATIONS;
    if (tn_explanation_peaks(e, peaks, &count) != TN_OK || count != x->peak_count)
        return differ(r, "%zu predicted peaks, by the model %zu", count, x->peak_count);
    for (size_t i = 0; i < count; i++)
        if (!tn_location_equal(peaks[i].at, x->peaks[i].at) ||
            peaks[i].charged_bytes != x->peaks[i].charged_bytes)
            return differ(r, "predicted peak %zu: %s %llu, by the model %s %llu", i,
                          location_text(peaks[i].at), (ull)peaks[i].charged_bytes,
                          location_text(x->peaks[i].at), (ull)x->peaks[i].charged_bytes);
    if (tn_explanation_protected(e, listed, &listed_count) != TN_OK ||
        listed_count != x->listed_count)
        return differ(r, "%zu protected locations, by the model %zu", listed_count,
                      x->listed_count);
    for (size_t i = 0; i < listed_count; i++)
        if (!tn_location_equal(listed[i], x->listed[i]))
            return differ(r, "protected location %zu is %s, by the model %s", i,
                          location_text(listed[i]), location_text(x->listed[i]));
    return true;
}

static bool compare_head(run *r, const tn_explanation *e, const tm_plan *plan,
                         const tm_explained *x) {
    tn_explanation_info info = TN_EXPLANATION_INFO_INIT;
    const tn_reservation_spec *reservations = NULL;
    size_t count = 0;
    if (tn_explanation_read(e, &info) != TN_OK ||
        tn_explanation_reservations(e, &reservations, &count) != TN_OK)
        return differ(r, "an explanation cannot be read");
    if (strcmp(info.plan, plan->name) != 0 || info.feasible != x->feasible ||
        info.reason != x->problem.reason || info.phase != x->phase || info.index != x->index)
        return differ(r,
                      "explanation: feasible %u, reason %u, phase %u, index %llu; by the model %u, "
                      "%u, %u, %llu",
                      info.feasible, info.reason, info.phase, (ull)info.index, x->feasible,
                      x->problem.reason, x->phase, (ull)x->index);
    if (info.missing_bytes != x->missing_bytes)
        return differ(r, "explanation.missing_bytes: %llu, by the model %llu",
                      (ull)info.missing_bytes, (ull)x->missing_bytes);
    if (x->verdict == TM_VERDICT_FREE
            ? info.verdict < TN_VERDICT_AFTER_EVICTION || info.verdict > TN_VERDICT_NEVER
            : info.verdict != x->verdict)
        return differ(r, "explanation.verdict: %u, by the model %u", info.verdict, x->verdict);
    if (info.action_count != x->action_count || info.peak_count != x->peak_count ||
        info.reservation_count != plan->reservation_count ||
        !same_reservations(reservations, count, plan))
        return differ(r, "an explanation's counts or reservations are wrong");
    return true;
}

static bool compare_explanation(run *r, const tn_explanation *e, const tm_plan *plan,
                                const tm_explained *x) {
    const tn_error *problem = tn_explanation_problem(e);
    r->tally->checks++;
    r->tally->problems[x->problem.reason]++;
    if (!compare_head(r, e, plan, x) || !compare_explained_actions(r, e, x) ||
        !compare_peaks(r, e, x))
        return false;
    if (!problem != x->feasible)
        return differ(r, "an explanation's problem is not there, or is there");
    return !problem || compare_error(r, problem, &x->problem, x->problem_free);
}

static bool run_explain(run *r, side *s, const call *c) {
    side *owner = wrong(r, WRONG_FOREIGN) ? &r->sides[s == &r->sides[0]] : s;
    size_t plan = owner == s ? need_plan(r, s, c) : choose_plan(owner, c->arg[0]);
    if (plan == RUN_PLANS)
        return !failed(r);
    static tm_explained expected; /* large */
    tm_options o;
    tn_explanation *e = NULL;
    draw_options(r, s, c->arg[1], &o);
    say(r, "\"%s\"", owner->plan_models[plan].name);
    o.stream_count = 0;
    say_options(r, &o);
    say(r, "\n");
    bool bad = wrong(r, WRONG_MANAGER) || wrong(r, WRONG_OUT) || wrong(r, WRONG_ZERO_HANDLE);
    tn_status status;
    do {
        arm_faults(r, c);
        status = tn_manager_explain(wrong(r, WRONG_MANAGER) ? NULL : s->library,
                                    wrong(r, WRONG_ZERO_HANDLE) ? NULL : owner->plans[plan],
                                    o.expected, wrong(r, WRONG_OUT) ? NULL : &e);
    } while (again(r, s, status));
    if (bad)
        return compare_refusal(r, s, status, TN_ERR_KIND);
    const tm_plan *model = &owner->plan_models[plan];
    if (!compare_result(r, s, status, tm_explain(&s->model, model, o.expected, &expected)) ||
        status != TN_OK)
        return !failed(r);
    bool same = compare_explanation(r, e, model, &expected);
    tn_explanation_drop(e);
    return same;
}

/* ---- Sequences ------------------------------------------------------------------------------- */

static tn_status execute(run *r, side *s, const call *c, const tm_plan *plan, const tm_options *o,
                         tn_plan_report **out) {
    tn_run_options options = TN_RUN_OPTIONS_INIT;
    options.expected_version = o->expected;
    options.streams = o->streams;
    options.stream_count = o->stream_count;
    if (wrong(r, WRONG_OUT))
        options.size = 4;
    bool none = o->expected == TN_VERSION_ANY && !o->stream_count && !wrong(r, WRONG_OUT);
    bool unnamed = strcmp(plan->name, "actions") == 0;
    tn_status status;
    do {
        arm_faults(r, c);
        status = tn_manager_execute_actions(wrong(r, WRONG_MANAGER) ? NULL : s->library,
                                            unnamed ? NULL : plan->name, plan->enter.actions,
                                            plan->enter.count, none ? NULL : &options, out);
    } while (again(r, s, status));
    return status;
}

/* The argument checks, in the order in which the header lists them. */
static tn_status refusal(run *r, const tm_plan *plan) {
    if (wrong(r, WRONG_MANAGER))
        return TN_ERR_KIND;
    if (wrong(r, WRONG_VALUE))
        return TN_ERR_VALUE;
    tn_status status = tm_actions_form(&plan->enter);
    return status == TN_OK && wrong(r, WRONG_OUT) ? TN_ERR_KIND : status;
}

static bool run_execute(run *r, side *s, const call *c) {
    tm_plan plan;
    tm_options o;
    static tm_plan_report expected; /* large */
    tn_plan_report *report = NULL, **out = (c->arg[0] >> 5) % 8 ? &report : NULL;
    draw_sequence(r, s, c, &plan);
    draw_options(r, s, c->arg[0] >> 8 | (uint32_t)c->arg[5] << 8, &o);
    say(r, "\"%s\"%s", plan.name, out ? "" : ", no report");
    say_options(r, &o);
    say_list(r, "then", &plan.enter);
    say(r, "\n");
    tn_status status = execute(r, s, c, &plan, &o, out);
    tn_status refused = refusal(r, &plan);
    if (refused != TN_OK)
        return compare_refusal(r, s, status, refused);
    tell_stop(r, s, status);
    tn_status wanted = tm_execute(&s->model, &plan, &o, &expected);
    r->tally->steps[TN_PHASE_EXECUTE][0] += expected.count;
    r->tally->steps[TN_PHASE_EXECUTE][1] += wanted == TN_ERR_PLAN_EXEC;
    bool shown = out && (status == TN_OK || status == TN_ERR_PLAN_EXEC);
    bool same = compare_result(r, s, status, wanted);
    if (same && shown)
        same = compare_plan_report(r, s, report, &expected, plan.name, 0);
    if (same && !shown && report)
        same = differ(r, "a report of a sequence that did not run");
    tn_plan_report_drop(report);
    return same;
}

bool run_planned(run *r, side *s, const call *c) {
    switch (c->op) {
    case OP_PLAN:
        return run_plan(r, s, c);
    case OP_EXPLAIN:
        return run_explain(r, s, c);
    default:
        return run_execute(r, s, c);
    }
}
