/* SPDX-License-Identifier: MIT */
/* Property test of the manager: scopes, on both sides. */
#include "manager_property.h"

#include <stdio.h>
#include <string.h>

typedef unsigned long long ull;

#define FULL (TM_LIFETIMES - 1)

/* ---- Choosing -------------------------------------------------------------------------------- */

/* Mostly the newest one in that state; TM_SCOPES: there is none at all. */
static size_t choose_scope(const side *s, uint32_t x, uint32_t state) {
    size_t count = s->model.scope_count, any = TM_SCOPES;
    for (size_t i = count; i-- > 0;) {
        const tm_scope *scope = &s->model.scopes[i];
        if (scope->destroyed)
            continue;
        if (x % 8 && scope->state == state)
            return i;
        if (any == TM_SCOPES || x / 8 % 4 == i % 4)
            any = i;
    }
    return any;
}

static size_t free_scope(side *s) {
    for (size_t i = 0; i < s->model.scope_count; i++)
        if (s->model.scopes[i].destroyed)
            return i;
    return s->model.scope_count;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static bool compare_reports(run *r, side *s, size_t i, size_t before) {
    const tm_scope *scope = &s->model.scopes[i];
    const tn_plan_report *report, *partial;
    const tn_error *error;
    if (tn_scope_report(s->scopes[i], &report) != TN_OK ||
        tn_scope_partial_report(s->scopes[i], &partial) != TN_OK ||
        tn_scope_exit_error(s->scopes[i], &error) != TN_OK)
        return differ(r, "a scope's results cannot be read");
    if (!report == scope->report.complete || !partial == scope->partial ||
        !error == (scope->exit_error.status != TN_OK))
        return differ(r, "scope %zu: report %d, partial %d, exit error %d; by the model %d, %d, %d",
                      i, report != NULL, partial != NULL, error != NULL, scope->report.complete,
                      scope->partial, scope->exit_error.status != TN_OK);
    if (error && !compare_error(r, error, &scope->exit_error, scope->exit_free))
        return false;
    report = report ? report : partial;
    return !report || compare_plan_report(r, s, report, &scope->report, scope->plan.name, before);
}

/* M200: what it was made of, whatever has happened since. */
static bool compare_scope(run *r, side *s, size_t i) {
    const tm_scope *scope = &s->model.scopes[i];
    const tn_scope *real = s->scopes[i];
    tn_reservation list[TM_STEPS];
    size_t count = TM_STEPS, want = scope->state == TM_ENTERED ? scope->reserved : 0;
    if (tn_scope_manager(real) != s->model.id ||
        tn_scope_expected_version(real) != scope->options.expected ||
        strcmp(tn_plan_name(tn_scope_plan(real)), scope->plan.name) != 0)
        return differ(r, "scope %zu has forgotten what it is", i);
    if (tn_scope_reservations(real, list, &count) != TN_OK || count != want)
        return differ(r, "scope %zu: %zu reservations, by the model %zu", i, count, want);
    for (size_t k = 0; k < count; k++) { /* that of the plan, as its owner knows it */
        size_t index = scope->reservations[k];
        tn_reservation_info info = {.size = sizeof info};
        const tm_reservation *own = &s->model.reservations[index];
        if (r->now->op == OP_ENTER)
            s->reservations[index] = list[k];
        if (tn_reservation_active(&list[k]) != own->open)
            return differ(r, "scope %zu: reservation %zu is active: %d", i, k, !own->open);
        if (own->open &&
            (tn_reservation_read(&list[k], &info) != TN_OK || info.bytes != own->bytes ||
             !tn_location_equal(info.at, own->at) || strcmp(info.label, own->label) != 0))
            return differ(r, "scope %zu: reservation %zu: %llu bytes, by the model %llu", i, k,
                          (ull)info.bytes, (ull)own->bytes);
    }
    return true;
}

static bool run_read(run *r, side *s, const call *c) {
    size_t i = choose_scope(s, c->arg[0], c->arg[1] % 3);
    const tn_plan_report *report;
    if (i == TM_SCOPES)
        return true;
    say(r, "scope %zu\n", i);
    if (wrong(r, WRONG_OUT))
        return compare_refusal(r, s, tn_scope_report(s->scopes[i], NULL), TN_ERR_KIND);
    if (wrong(r, WRONG_MANAGER))
        return compare_refusal(r, s, tn_scope_report(NULL, &report), TN_ERR_KIND);
    const tm_scope *scope = &s->model.scopes[i];
    return compare_refusal(r, s, tn_scope_report(s->scopes[i], &report), TN_OK) &&
           compare_scope(r, s, i) &&
           compare_reports(r, s, i, scope->report.count); /* the trace has moved on */
}

/* ---- Life ------------------------------------------------------------------------------------ */

static bool run_create(run *r, side *s, const call *c) {
    side *owner = wrong(r, WRONG_FOREIGN) ? &r->sides[s == &r->sides[0]] : s;
    size_t i = free_scope(s);
    if (i == TM_SCOPES)
        return true;
    size_t plan = owner == s ? need_plan(r, s, c) : choose_plan(owner, c->arg[0]);
    if (plan == RUN_PLANS)
        return !failed(r);
    tm_options o;
    tn_run_options options = TN_RUN_OPTIONS_INIT;
    draw_options(r, s, c->arg[1], &o);
    options.expected_version = o.expected;
    options.streams = o.streams;
    options.stream_count = o.stream_count;
    if (wrong(r, WRONG_VALUE))
        options.size = 4;
    if (wrong(r, WRONG_UNKNOWN))
        options.streams = NULL, options.stream_count = 1;
    bool none = o.expected == TN_VERSION_ANY && !options.stream_count && !wrong(r, WRONG_VALUE);
    bool bad = wrong(r, WRONG_MANAGER) || wrong(r, WRONG_OUT) || wrong(r, WRONG_ZERO_HANDLE) ||
               wrong(r, WRONG_VALUE) || wrong(r, WRONG_UNKNOWN);
    tn_scope *made = NULL;
    say(r, "scope %zu of \"%s\", version %lld, %zu streams\n", i, owner->plan_models[plan].name,
        (long long)o.expected, o.stream_count);
    tn_status status;
    do {
        arm_faults(r, c);
        status = tn_scope_create(wrong(r, WRONG_MANAGER) ? NULL : s->library,
                                 wrong(r, WRONG_ZERO_HANDLE) ? NULL : owner->plans[plan],
                                 none ? NULL : &options, wrong(r, WRONG_OUT) ? NULL : &made);
    } while (again(r, s, status));
    if (!compare_refusal(r, s, status, bad ? TN_ERR_KIND : TN_OK) || status != TN_OK)
        return !failed(r);
    if (i == s->model.scope_count)
        s->model.scope_count++;
    s->scopes[i] = made;
    tm_scope_create(&s->model, &owner->plan_models[plan], &o, &s->model.scopes[i]);
    memset(&o, 0xee, sizeof o); /* M220 */
    return compare_scope(r, s, i) && compare_reports(r, s, i, 0);
}

/* Where there is none to enter, one is made. */
static bool need_scope(run *r, side *s, const call *c) {
    size_t i = choose_scope(s, 1, TM_FRESH), plan;
    if (i != TM_SCOPES && s->model.scopes[i].state == TM_FRESH)
        return true;
    i = free_scope(s);
    if (i == TM_SCOPES || (plan = need_plan(r, s, c)) == RUN_PLANS)
        return !failed(r);
    tm_options o;
    tn_run_options options = TN_RUN_OPTIONS_INIT;
    draw_options(r, s, c->arg[2], &o);
    options.expected_version = o.expected;
    options.streams = o.streams;
    options.stream_count = o.stream_count;
    if (tn_scope_create(s->library, s->plans[plan], &options, &s->scopes[i]) != TN_OK)
        return differ(r, "a scope cannot be made: %s", tn_last_error()->message);
    s->model.scope_count += i == s->model.scope_count;
    tm_scope_create(&s->model, &s->plan_models[plan], &o, &s->model.scopes[i]);
    return true;
}

static bool run_enter(run *r, side *s, const call *c) {
    if (c->arg[1] % 8 && !need_scope(r, s, c))
        return false;
    size_t i = choose_scope(s, c->arg[1], TM_FRESH);
    if (wrong(r, WRONG_MANAGER)) {
        say(r, "\n");
        return compare_refusal(r, s, tn_scope_enter(NULL), TN_ERR_KIND);
    }
    if (i == TM_SCOPES || s->model.reservation_count + TM_STEPS > FULL)
        return true;
    tm_scope *scope = &s->model.scopes[i];
    say(r, "scope %zu\n", i);
    arm_faults(r, c);
    tn_status status = tn_scope_enter(s->scopes[i]);
    if (again(r, s, status)) { /* nothing ran, but it is consumed (M203) */
        scope->state = TM_CLOSED;
        return compare_reports(r, s, i, 0);
    }
    tell_stop(r, s, status);
    size_t had = scope->report.count;
    tn_status wanted = tm_scope_enter(scope);
    if (!compare_result(r, s, status, wanted))
        return false;
    if (wanted != TN_ERR_MISUSE) {
        r->tally->steps[TN_PHASE_RECLAIM][0] += scope->report.counts[TN_PHASE_RECLAIM];
        r->tally->steps[TN_PHASE_RESERVE][0] += scope->reserved;
        r->tally->steps[TN_PHASE_ENTER][0] += scope->report.counts[TN_PHASE_ENTER];
    }
    if (wanted == TN_ERR_PLAN_EXEC)
        r->tally->steps[s->model.error.phase][1]++;
    return compare_scope(r, s, i) && compare_reports(r, s, i, had);
}

static bool run_exit(run *r, side *s, const call *c) {
    size_t i = choose_scope(s, c->arg[0], TM_ENTERED);
    if (wrong(r, WRONG_MANAGER)) {
        say(r, "\n");
        return compare_refusal(r, s, tn_scope_close(NULL), TN_ERR_KIND);
    }
    if (i == TM_SCOPES)
        return true;
    tm_scope *scope = &s->model.scopes[i];
    bool entered = scope->state == TM_ENTERED;
    say(r, "scope %zu\n", i);
    r->closing = s->scopes[i];
    tn_status status;
    do {
        arm_faults(r, c);
        status = tn_scope_close(s->scopes[i]);
    } while (again(r, s, status));
    tell_stop(r, s, status);
    size_t had = scope->report.count;
    tn_status wanted = tm_scope_close(scope);
    if (!compare_result(r, s, status, wanted))
        return false;
    if (entered) {
        r->tally->steps[TN_PHASE_EXIT][0] += scope->report.counts[TN_PHASE_EXIT];
        r->tally->steps[TN_PHASE_EXIT][1] += wanted == TN_ERR_PLAN_EXEC;
    }
    return compare_scope(r, s, i) && compare_reports(r, s, i, had);
}

static bool run_destroy(run *r, side *s, const call *c) {
    size_t i = choose_scope(s, c->arg[0], c->arg[1] % 4 ? TM_CLOSED : TM_ENTERED);
    if (i == TM_SCOPES)
        return true;
    say(r, "scope %zu\n", i);
    return compare_result(r, s, tn_scope_destroy(s->scopes[i]),
                          tm_scope_destroy(&s->model.scopes[i]));
}

bool run_scope(run *r, side *s, const call *c) {
    switch (c->op) {
    case OP_SCOPE:
        return run_create(r, s, c);
    case OP_ENTER:
        return run_enter(r, s, c);
    case OP_EXIT:
        return run_exit(r, s, c);
    case OP_SCOPE_DESTROY:
        return run_destroy(r, s, c);
    default:
        return run_read(r, s, c);
    }
}
