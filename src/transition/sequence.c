/* SPDX-License-Identifier: MIT */
/*
 * Action sequences (M184..M188), and explanations at the manager.
 */
#include "transition/transition_priv.h"

static tn_status run(tn__trans *t, tn__thread *thread, const tn__sequence *given,
                     tn__plan_report *report) {
    tn__course *c = tn__zalloc(sizeof *c);
    if (!c)
        return tn__no_memory();
    c->t = t;
    c->thread = thread;
    c->name = given->name;
    c->parts[0] = (tn__sim_part){TN_PHASE_EXECUTE, given->actions, NULL, given->count};
    c->part_count = c->run_count = 1;
    c->expected = given->options.expected_version;
    c->placement = TN_VERSION_ANY;
    c->streams = given->options.streams;
    c->stream_count = given->options.stream_count;
    c->report = report;
    tn_status status = tn__course_run(c);
    tn__free(c);
    if (status == TN_OK)
        report->complete = true;
    return status;
}

tn_status tn__trans_execute(tn__trans *t, tn__thread *thread, const tn__sequence *given,
                            tn_plan_report **out) {
    tn__plan_report *report;
    uint64_t started = tn__trans_now(t);
    tn_status status = tn__life_enter(t->life, thread, false);
    if (status == TN_OK)
        status = tn__life_reap_manual(t->life);
    if (status == TN_OK)
        status = tn__plan_report_create(given->name, given->count, &report);
    if (status != TN_OK)
        return status;
    report->started_at_ns = started;
    tn__frame frame;
    tn__frame_push(thread, &frame, t->manager, false);
    status = run(t, thread, given, report);
    tn__frame_pop(thread, &frame);
    bool shown = out && (status == TN_OK || status == TN_ERR_PLAN_EXEC);
    if (shown)
        *out = report;
    else
        tn_plan_report_drop(report);
    return status;
}

/* ---- Explanations ----------------------------------------------------------------------- */

static tn_status check_version(tn__trans *t, uint64_t expected) {
    if (expected == TN_VERSION_ANY)
        return TN_OK;
    uint64_t actual = tn__state_version_settled(t->store, t->life);
    return actual == expected ? TN_OK : tn__stale(t->manager, expected, actual);
}

/* With an expected version it is looked at before and after, so that the evidence is of that
 * version and of no other. */
tn_status tn__trans_explain(tn__trans *t, tn__thread *thread, const tn_plan *plan,
                            uint64_t expected, tn_explanation **out) {
    tn_explanation *e = NULL;
    tn_status status = tn__life_enter(t->life, thread, false);
    if (status == TN_OK)
        status = check_version(t, expected);
    if (status != TN_OK)
        return status;
    const tn_version *version = tn__store_pin(t->store);
    if (!version)
        return tn__no_memory();
    status = tn__explain(t->manager, t->store, t->life, t->driver, version, plan, &e);
    tn__store_unpin(t->store, version);
    if (status == TN_OK)
        status = check_version(t, expected);
    if (status == TN_OK)
        *out = e;
    else
        tn_explanation_drop(e);
    return status;
}
