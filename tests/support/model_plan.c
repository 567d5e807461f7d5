/* SPDX-License-Identifier: MIT */
/* The reference model: explanations, action sequences, scopes. */
#include <stdio.h>
#include <string.h>

#include "model.h"
#include "model_internal.h"

/* ---- Form ------------------------------------------------------------------------------------ */

static bool blank(const char *text) { return text[strspn(text, " \t\n\v\f\r")] == 0; }

tn_status tm_actions_form(const tm_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        const tn_action *a = &list->actions[i];
        if (!a->handle.manager || !a->handle.index || !a->handle.type ||
            a->kind < TN_ACTION_ENSURE || a->kind > TN_ACTION_DISCARD)
            return TN_ERR_KIND;
        if (a->kind != TN_ACTION_DISCARD && !tm__kind_ok(a->at))
            return TN_ERR_KIND;
        if (a->kind == TN_ACTION_MOVE && a->from.kind && !tm__kind_ok(a->from))
            return TN_ERR_KIND;
    }
    return TN_OK;
}

static tn_status reservations_form(const tm_plan *plan) {
    for (size_t i = 0; i < plan->reservation_count; i++) {
        if (!tm__kind_ok(plan->reservations[i].at))
            return TN_ERR_KIND;
        if (plan->reservations[i].bytes > INT64_MAX || blank(plan->labels[i]))
            return TN_ERR_VALUE;
    }
    return TN_OK;
}

tn_status tm_plan_form(const tm_plan *plan) {
    tn_status status = blank(plan->name) ? TN_ERR_VALUE : tm_actions_form(&plan->reclaim);
    if (status == TN_OK)
        status = reservations_form(plan);
    if (status == TN_OK)
        status = tm_actions_form(&plan->enter);
    return status == TN_OK ? tm_actions_form(&plan->exit) : status;
}

/* ---- Explanations ---------------------------------------------------------------------------- */

static tn_status check_version(tm_manager *m, uint64_t expected) {
    if (expected == TN_VERSION_ANY || expected == m->version)
        return TN_OK;
    tm__fail(m, TN_ERR_STALE); /* M126 */
    m->error.expected = expected;
    m->error.actual = m->version;
    return TN_ERR_STALE;
}

tn_status tm_explain(tm_manager *m, const tm_plan *plan, uint64_t expected, tm_explained *out) {
    tn_status status = tm__entry(m);
    if (status == TN_OK)
        status = check_version(m, expected); /* without a reap: M127 */
    if (status == TN_OK)
        tm__simulate(m, plan, false, out);
    return status;
}

tn_status tm__streams(tm_manager *m, const tm_options *options) {
    for (size_t i = 0; i < options->stream_count; i++) {
        const tn_transfer_stream *s = &options->streams[i];
        tn_status status = tm__location(m, s->at);
        if (status == TN_OK)
            status = tm__stream(m, s->stream, s->at);
        if (status != TN_OK)
            return status;
        for (size_t k = 0; k < i; k++) /* a map has each location once */
            if (tm_same_at(options->streams[k].at, s->at))
                return tm__fail(m, TN_ERR_VALUE);
    }
    return TN_OK;
}

/* M219 */
static tn_stream stream_for(const tm_options *options, const tn_action *a) {
    for (size_t i = 0; i < options->stream_count; i++)
        if ((a->kind == TN_ACTION_ENSURE || a->kind == TN_ACTION_MOVE) &&
            tm_same_at(options->streams[i].at, a->at))
            return options->streams[i].stream;
    return NULL;
}

/* ---- Errors ---------------------------------------------------------------------------------- */

/* M246: the error of the part, and which part it was. */
static tn_status wrap(tm_manager *m, tn_status status, const tm_plan *plan, uint32_t phase,
                      uint64_t index, const tn_action *action) {
    tn_error *e = &m->error;
    e->cause_status = e->status;
    e->status = status;
    e->phase = phase;
    e->failed_index = index;
    snprintf(e->plan, sizeof e->plan, "%s", plan->name);
    memset(e->label, 0, sizeof e->label);
    if (action) {
        e->action_kind = action->kind;
        e->action_handle = action->handle;
        e->action_at = action->at;
        e->action_from = action->from;
    } else {
        snprintf(e->label, sizeof e->label, "%s", plan->labels[index]);
    }
    return status;
}

static const tm_list *list_of(const tm_plan *plan, uint32_t phase) {
    return phase == TN_PHASE_RECLAIM ? &plan->reclaim
           : phase == TN_PHASE_EXIT  ? &plan->exit
                                     : &plan->enter;
}

static tn_status infeasible(tm_manager *m, const tm_plan *plan, const tm_explained *x) {
    m->error = x->problem;
    m->error_free = x->problem_free;
    const tn_action *action =
        x->phase == TN_PHASE_RESERVE ? NULL : &list_of(plan, x->phase)->actions[x->index];
    return wrap(m, TN_ERR_PLAN, plan, x->phase, x->index, action);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static tn_status act(tm_manager *m, const tn_action *a, tn_stream stream) {
    switch (a->kind) {
    case TN_ACTION_ENSURE:
        return tm_ensure(m, a->handle, a->at, stream);
    case TN_ACTION_MOVE:
        return tm_move(m, a->handle, a->at, a->from, stream);
    case TN_ACTION_DROP:
        return tm_drop(m, a->handle, a->at);
    default:
        return tm_discard(m, a->handle);
    }
}

/* Whether the library says that it failed in this step; faults that it met elsewhere rest. */
static bool told_here(tm_manager *m, uint32_t phase, uint64_t index) {
    bool here = m->stop.on && m->stop.phase == phase && m->stop.index == index;
    for (size_t i = 0; i < m->world->fault_count; i++)
        m->world->faults[i].resting = m->world->faults[i].observe && m->stop.on && !here;
    return here && m->stop.status != TN_OK;
}

static tn_status run_list(tm_manager *m, const tm_plan *plan, const tm_options *options,
                          uint32_t phase, tm_plan_report *report) {
    const tm_list *list = list_of(plan, phase);
    uint64_t reaped = m->reaped;
    tn_status status = TN_OK;
    for (size_t i = 0; i < list->count && status == TN_OK; i++) {
        const tn_action *a = &list->actions[i];
        if (told_here(m, phase, i)) {
            status = tm__reap(m);
            if (status == TN_OK && m->stop.vain)
                m->stop.vain(m->stop.context);
            if (status == TN_OK)
                status = tm__fail(m, (tn_status)m->stop.status);
        } else {
            status = act(m, a, stream_for(options, a));
        }
        reaped += m->reaped;
        if (status != TN_OK) {
            status = wrap(m, TN_ERR_PLAN_EXEC, plan, phase, i, a);
            break;
        }
        report->reports[report->count++] = m->report;
        report->counts[phase]++;
    }
    m->reaped = reaped;
    return status;
}

/* The checks before the first step: M184, M202. *x: what is predicted. */
static tn_status start(tm_manager *m, const tm_plan *plan, const tm_options *options, bool sequence,
                       tm_explained *x) {
    tn_status status = tm__entry(m);
    if (status == TN_OK)
        status = tm__reap(m);
    if (status == TN_OK)
        status = check_version(m, options->expected);
    if (status == TN_OK)
        status = tm__streams(m, options);
    if (status != TN_OK)
        return status;
    tm__simulate(m, plan, sequence, x);
    return x->feasible ? TN_OK : infeasible(m, plan, x);
}

/* M182, of the model itself: the larger of what it was and what was predicted. */
static void check_peaks(tm_manager *m, const tm_explained *x, const tm_place *before) {
    for (size_t i = 0; i < x->peak_count; i++) {
        const tm_place *now = tm_place_at(m, x->peaks[i].at);
        uint64_t peak = before[i].peak_charged > x->peaks[i].charged_bytes
                            ? before[i].peak_charged
                            : x->peaks[i].charged_bytes;
        tm__check(!now || now->peak_charged == peak, "bytes for what was predicted (M182)");
    }
}

tn_status tm_execute(tm_manager *m, const tm_plan *plan, const tm_options *options,
                     tm_plan_report *out) {
    static tm_explained x; /* large */
    tm_place before[TM_LOCATIONS];
    memset(out, 0, sizeof *out);
    tn_status status = start(m, plan, options, true, &x);
    memset(before, 0, sizeof before);
    memcpy(before, m->places, m->place_count * sizeof before[0]);
    if (status == TN_OK) {
        status = run_list(m, plan, options, TN_PHASE_EXECUTE, out);
        out->complete = status == TN_OK;
    }
    if (status == TN_OK)
        check_peaks(m, &x, before);
    return status;
}

/* ---- Scopes ---------------------------------------------------------------------------------- */

void tm_scope_create(tm_manager *m, const tm_plan *plan, const tm_options *options, tm_scope *out) {
    memset(out, 0, sizeof *out);
    out->manager = m;
    out->state = TM_FRESH;
    out->plan = *plan;
    out->options = *options;
}

/* M205, M206: last first. */
static void release_all(tm_scope *scope) {
    tm_manager *m = scope->manager;
    while (scope->reserved)
        (void)!tm_reservation_release(&m->reservations[scope->reservations[--scope->reserved]]);
}

static tn_status reserve_all(tm_scope *scope) {
    tm_manager *m = scope->manager;
    const tm_plan *plan = &scope->plan;
    for (size_t i = 0; i < plan->reservation_count; i++) {
        tm_reservation *made;
        const tn_reservation_spec *r = &plan->reservations[i];
        tn_status status = told_here(m, TN_PHASE_RESERVE, i)
                               ? tm__fail(m, (tn_status)m->stop.status)
                               : tm_reserve(m, r->at, r->bytes, plan->labels[i], &made);
        if (status != TN_OK)
            return wrap(m, TN_ERR_PLAN_EXEC, plan, TN_PHASE_RESERVE, i, NULL);
        scope->reservations[scope->reserved++] = (size_t)(made - m->reservations);
    }
    return TN_OK;
}

/* Nobody has seen the reservations of a failed entry: they are the last ones, and are forgotten. */
static void unwind(tm_scope *scope) {
    size_t made = scope->reserved;
    release_all(scope);
    scope->manager->reservation_count -= made;
}

tn_status tm_scope_enter(tm_scope *scope) {
    tm_manager *m = scope->manager;
    if (scope->state != TM_FRESH)
        return tm__fail(m, TN_ERR_MISUSE); /* M201 */
    scope->state = TM_CLOSED;              /* M203 */
    static tm_explained x;                 /* large */
    tn_status status = start(m, &scope->plan, &scope->options, false, &x);
    if (status != TN_OK)
        return status;
    status = run_list(m, &scope->plan, &scope->options, TN_PHASE_RECLAIM, &scope->report);
    if (status == TN_OK)
        status = reserve_all(scope);
    if (status == TN_OK)
        status = run_list(m, &scope->plan, &scope->options, TN_PHASE_ENTER, &scope->report);
    if (status == TN_OK) {
        scope->state = TM_ENTERED;
        return TN_OK;
    }
    scope->partial = true; /* M204 */
    unwind(scope);
    return status;
}

tn_status tm_scope_close(tm_scope *scope) {
    tm_manager *m = scope->manager;
    if (scope->state == TM_FRESH)
        return tm__fail(m, TN_ERR_MISUSE);
    if (scope->state == TM_CLOSED)
        return TN_OK; /* M209 */
    tn_status status = tm__entry(m);
    if (status == TN_ERR_CLOSED) { /* M211 */
        scope->state = TM_CLOSED;
        release_all(scope);
        return status;
    }
    if (status == TN_OK)
        status = tm__reap(m);
    if (status != TN_OK)
        return status;
    status = run_list(m, &scope->plan, &scope->options, TN_PHASE_EXIT, &scope->report);
    scope->state = TM_CLOSED;
    scope->report.complete = status == TN_OK;
    if (status != TN_OK) { /* M208 */
        scope->partial = true;
        scope->exit_error = m->error;
        scope->exit_free = m->error_free;
    }
    release_all(scope);
    return status;
}

/* M214, G26 */
tn_status tm_scope_destroy(tm_scope *scope) {
    tm_manager *m = scope->manager;
    if (scope->state == TM_ENTERED) {
        if (m->guard)
            return tm__fail(m, TN_ERR_REENTRANCY);
        release_all(scope);
        m->diagnostics[TN_DIAGNOSTIC_SCOPE_ABANDONED]++;
    }
    scope->destroyed = true;
    return TN_OK;
}
