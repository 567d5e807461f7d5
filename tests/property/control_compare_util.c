/* SPDX-License-Identifier: MIT */
/* Decide by the library and by the model, and compare everything (C158..C161). */
#include "control_property.h"

#include <stdlib.h>
#include <string.h>

/* ---- What was found -------------------------------------------------------------------------- */

static bool same_action(const live *l, const tn_action *got, uint32_t kind, int value, int at,
                        int from) {
    return got->kind == kind && tn_handle_equal(got->handle, l->handles[value]) &&
           tn_location_equal(got->at, control_location(at)) &&
           (from == MC_NOWHERE ? got->from.kind == TN_LOCATION_NONE
                               : tn_location_equal(got->from, control_location(from)));
}

static bool same_release(const live *l, const tn_eviction *got, const mc_release *want) {
    bool move = want->to != MC_NOWHERE;
    return same_action(l, &got->action, move ? TN_ACTION_MOVE : TN_ACTION_DROP, want->value,
                       move ? want->to : want->from, move ? want->from : MC_NOWHERE) &&
           got->rank == want->rank && got->released_bytes == want->bytes &&
           tn_location_equal(got->released_at, control_location(want->from)) &&
           got->reason == want->reason;
}

static void write_action(const live *l, const tn_action *a, char *out, size_t room) {
    static const char *const kinds[] = {"?", "ensure", "move", "drop", "discard"};
    int v = 0;
    while (v < MC_VALUES && !tn_handle_equal(a->handle, l->handles[v]))
        v++;
    snprintf(out, room, "%s v%d%s%s@%s", kinds[a->kind < 5 ? a->kind : 0], v,
             a->kind == TN_ACTION_MOVE ? " from " : "",
             a->kind == TN_ACTION_MOVE ? control_at(control_index(a->from)) : "",
             control_at(control_index(a->at)));
}

static bool same_releases(const live *l, const tn_decision *d, const mc_answer *want, char *why) {
    tn_eviction got[MC_RELEASES] = {TN_EVICTION_INIT};
    const tn_action *reclaim;
    char text[96];
    size_t count = MC_RELEASES, actions;
    if (tn_decision_evictions(d, got, &count) != TN_OK || count != (size_t)want->release_count)
        return CONTROL_FAIL(why, "%zu releases, expected %d", count, want->release_count);
    if (tn_plan_actions(tn_decision_plan(d), TN_PHASE_RECLAIM, &reclaim, &actions) != TN_OK ||
        actions != count)
        return CONTROL_FAIL(why, "%zu releases, %zu reclaim actions", count, actions);
    for (size_t i = 0; i < count; i++) {
        const mc_release *r = &want->releases[i];
        write_action(l, &got[i].action, text, sizeof text);
        if (!same_release(l, &got[i], r))
            return CONTROL_FAIL(
                why,
                "release %zu is %s, rank %llu, %llu bytes, reason %u; expected v%d "
                "from %s to %s, rank %llu, %llu bytes, reason %u",
                i, text, (unsigned long long)got[i].rank, (unsigned long long)got[i].released_bytes,
                got[i].reason, r->value, control_at(r->from),
                r->to == MC_NOWHERE ? "nowhere" : control_at(r->to), (unsigned long long)r->rank,
                (unsigned long long)r->bytes, r->reason);
        if (memcmp(&reclaim[i], &got[i].action, sizeof reclaim[i]) != 0)
            return CONTROL_FAIL(why, "reclaim action %zu is not that of the release", i);
    }
    return true;
}

static bool same_entry(const live *l, const tn_decision *d, const mc_answer *want, char *why) {
    const tn_action *got;
    const tn_reservation_spec *reservations;
    char text[96];
    size_t count;
    if (tn_plan_actions(tn_decision_plan(d), TN_PHASE_ENTER, &got, &count) != TN_OK ||
        count != (size_t)want->action_count)
        return CONTROL_FAIL(why, "%zu entry actions, expected %d", count, want->action_count);
    for (size_t i = 0; i < count; i++) {
        const mc_action *a = &want->actions[i];
        write_action(l, &got[i], text, sizeof text);
        if (!same_action(l, &got[i], a->move ? TN_ACTION_MOVE : TN_ACTION_ENSURE, a->value, a->at,
                         a->from))
            return CONTROL_FAIL(why, "entry action %zu is %s; expected v%d to %s", i, text,
                                a->value, control_at(a->at));
    }
    return tn_plan_actions(tn_decision_plan(d), TN_PHASE_EXIT, &got, &count) == TN_OK &&
                   count == 0 &&
                   tn_plan_reservations(tn_decision_plan(d), &reservations, &count) == TN_OK
               ? true
               : CONTROL_FAIL(why, "exit actions");
}

static bool same_peaks(const tn_decision *d, const mc_answer *want, char *why) {
    tn_predicted_peak got[MC_LOCATIONS];
    size_t count = MC_LOCATIONS;
    if (tn_explanation_peaks(tn_decision_explanation(d), got, &count) != TN_OK ||
        count != (size_t)want->peak_count)
        return CONTROL_FAIL(why, "%zu peaks, expected %d", count, want->peak_count);
    for (size_t i = 0; i < count; i++)
        if (control_index(got[i].at) != want->peaks[i].at ||
            got[i].charged_bytes != want->peaks[i].bytes)
            return CONTROL_FAIL(
                why, "peak %zu is %s=%llu, expected %s=%llu", i,
                control_at(control_index(got[i].at)), (unsigned long long)got[i].charged_bytes,
                control_at(want->peaks[i].at), (unsigned long long)want->peaks[i].bytes);
    return true;
}

static bool same_explored(uint64_t got, const mc_answer *want, char *why) {
    bool ok = want->dead_ends ? got >= 1 && got <= want->explored : got == want->explored;
    return ok ||
           CONTROL_FAIL(why, "%llu states explored, expected %s%llu", (unsigned long long)got,
                        want->dead_ends ? "at most " : "", (unsigned long long)want->explored);
}

bool control_same_decision(const live *l, const tn_decision *d, const mc_answer *want, char *why) {
    tn_decision_info info = TN_DECISION_INFO_INIT;
    if (tn_decision_read(d, &info) != TN_OK)
        return CONTROL_FAIL(why, "the decision cannot be read");
    return same_releases(l, d, want, why) && same_entry(l, d, want, why) &&
           same_peaks(d, want, why) && same_explored(info.explored_states, want, why);
}

/* ---- What was not ---------------------------------------------------------------------------- */

static bool same_infeasible(const live *l, const mc_world *w, const mc_answer *want, char *why) {
    static const char *const stages[] = {"reservation", ": materialization",
                                         "source reconstruction"};
    const tn_error *e = tn_last_error();
    const mc_check *f = &want->first;
    bool reservation = f->stage == MC_RESERVATION;
    bool ok = e->phase == (reservation ? TN_PHASE_RESERVE : TN_PHASE_ENTER) &&
              e->failed_index == (uint64_t)f->subject && control_index(e->at) == f->at &&
              e->requested_bytes == f->bytes && e->budget_bytes == w->budget[f->at] &&
              e->used_bytes == mc_used(w, f->at) && e->reserved_bytes == w->reserved[f->at] &&
              strstr(e->message, stages[f->stage]) != NULL;
    if (ok && !reservation)
        ok = tn_handle_equal(e->handle, l->handles[w->requirements[f->subject].value]);
    return ok || CONTROL_FAIL(why,
                              "infeasible: %s (check %llu of phase %u, used %llu, reserved %llu); "
                              "expected %llu bytes at %s, %s, check %d",
                              e->message, (unsigned long long)e->failed_index, e->phase,
                              (unsigned long long)e->used_bytes,
                              (unsigned long long)e->reserved_bytes, (unsigned long long)f->bytes,
                              control_at(f->at), stages[f->stage], f->subject);
}

static bool same_limit(const mc_world *w, const mc_answer *want, char *why) {
    const tn_error *e = tn_last_error();
    if (e->expected != w->limit || e->actual != w->limit || strstr(e->message, "infeasible"))
        return CONTROL_FAIL(why, "limit %llu of %llu: %s", (unsigned long long)e->actual,
                            (unsigned long long)e->expected, e->message);
    return want->dead_ends || control_index(e->at) == want->limit_at ||
           CONTROL_FAIL(why, "limit: %s; expected at %s", e->message, control_at(want->limit_at));
}

/* The library's answer is the model's. */
static bool same_answer(const live *l, const mc_world *w, tn_status got, const tn_decision *d,
                        const mc_answer *want, char *why) {
    if (want->verdict == MC_FOUND)
        return got == TN_OK ? control_same_decision(l, d, want, why)
                            : CONTROL_FAIL(why, "%s (%s); expected a decision", tn_status_name(got),
                                           tn_last_error()->message);
    if (got != TN_ERR_PLAN)
        return CONTROL_FAIL(why, "%s; expected TN_ERR_PLAN", tn_status_name(got));
    if (want->verdict == MC_INFEASIBLE)
        return same_infeasible(l, w, want, why);
    return (tn_last_error()->reason == TN_REASON_SOURCE_PROTECTED &&
            tn_last_error()->cause_status == TN_ERR_IN_USE) ||
           CONTROL_FAIL(why, "%s; expected a protected source", tn_last_error()->message);
}

/* ---- Entering -------------------------------------------------------------------------------- */

uint8_t control_places(const tn_snapshot *s, tn_handle handle) {
    tn_materialization_info mats[MC_LOCATIONS] = {{.size = sizeof mats[0]}};
    size_t count = MC_LOCATIONS;
    unsigned at = 0;
    if (tn_snapshot_materializations(s, handle, mats, &count) != TN_OK)
        return 0xff;
    for (size_t i = 0; i < count; i++)
        at |= 1u << control_index(mats[i].at);
    return (uint8_t)at;
}

static bool read_peaks(const tn_snapshot *s, uint64_t peaks[MC_LOCATIONS]) {
    tn_location_info rows[MC_LOCATIONS] = {{.size = sizeof rows[0]}};
    size_t count = MC_LOCATIONS;
    if (tn_snapshot_locations(s, rows, &count) != TN_OK)
        return false;
    for (size_t i = 0; i < count; i++)
        peaks[control_index(rows[i].at)] = rows[i].peak_charged_bytes;
    return true;
}

static bool executed(const live *l, const mc_world *w, const mc_answer *want,
                     uint64_t peaks[MC_LOCATIONS], char *why) {
    tn_snapshot *s = NULL;
    uint64_t now[MC_LOCATIONS] = {0};
    bool ok = tn_snapshot_take(l->m, &s) == TN_OK && read_peaks(s, now);
    for (int v = 0; v < w->value_count && ok; v++)
        if (control_places(s, l->handles[v]) != want->after[v])
            ok = CONTROL_FAIL(why, "v%d is at %02x, expected %02x", v,
                              control_places(s, l->handles[v]), want->after[v]);
    for (int i = 0; i < want->peak_count && ok; i++) {
        mc_bytes p = want->peaks[i];
        uint64_t high = peaks[p.at] > p.bytes ? peaks[p.at] : p.bytes;
        if (now[p.at] != high)
            ok = CONTROL_FAIL(why, "peak at %s is %llu, expected %llu", control_at(p.at),
                              (unsigned long long)now[p.at], (unsigned long long)high);
    }
    tn_snapshot_drop(s);
    return ok;
}

/* The decision can be entered, does what it says, and reaches the predicted peaks (M182). */
static bool enter(const live *l, tn_controller *c, const tn_decision *d, const scene *s,
                  const mc_answer *want, char *why) {
    tn_scope *scope = NULL;
    tn_snapshot *before = NULL;
    uint64_t peaks[MC_LOCATIONS] = {0};
    bool ok = tn_snapshot_take(l->m, &before) == TN_OK && read_peaks(before, peaks);
    tn_snapshot_drop(before);
    ok =
        ok && tn_controller_scope(c, d, NULL, 0, &scope) == TN_OK && tn_scope_enter(scope) == TN_OK;
    if (!ok)
        (void)CONTROL_FAIL(why, "entering: %s", tn_last_error()->message);
    ok = ok && executed(l, &s->world, want, peaks, why);
    if (scope && tn_scope_active(scope) && tn_scope_close(scope) != TN_OK)
        ok = CONTROL_FAIL(why, "closing: %s", tn_last_error()->message);
    (void)!tn_scope_destroy(scope);
    return ok;
}

/* ---- Both ------------------------------------------------------------------------------------ */

static tn_status ask(tn_controller *c, const live *l, const mc_world *w, tn_decision **out) {
    tn_request *request = NULL;
    tn_status status = control_request(l, w, &request);
    if (status == TN_OK)
        status = tn_controller_decide(c, request, out);
    tn_request_destroy(request);
    return status;
}

static void tell(control_tally *t, tn_status got, const tn_decision *d, const mc_answer *full,
                 bool custom) {
    tn_decision_info info = TN_DECISION_INFO_INIT;
    t->n[CONTROL_SCENES]++;
    t->n[CONTROL_CUSTOM] += custom;
    t->n[CONTROL_CAPPED] += full->verdict == MC_LIMIT;
    t->n[CONTROL_FOUND] += got == TN_OK;
    t->n[CONTROL_LIMIT] += got == TN_ERR_SEARCH_LIMIT;
    t->n[CONTROL_REFUSED] += full->verdict == MC_REFUSED;
    t->n[CONTROL_INFEASIBLE] += full->verdict == MC_INFEASIBLE;
    t->n[CONTROL_DEAD_ENDS] += full->dead_ends;
    if (got != TN_OK || tn_decision_read(d, &info) != TN_OK)
        return;
    for (int i = 1; i < full->release_count; i++)
        if (full->releases[i].to == full->releases[i - 1].from) {
            t->n[CONTROL_NESTED]++;
            break;
        }
    if (full->dead_ends && full->verdict == MC_FOUND) {
        t->explored += info.explored_states;
        t->canonical += full->explored;
    }
}

static bool judge(const live *l, const scene *s, tn_status got, const tn_decision *d,
                  const mc_answer *full, control_tally *tally, char *why) {
    mc_answer limited;
    if (full->verdict == MC_LIMIT && s->world.limit >= CONTROL_CAP)
        return true;
    mc_walk(&s->world, &limited);
    if (got == TN_ERR_SEARCH_LIMIT)
        return limited.verdict == MC_LIMIT ? same_limit(&s->world, &limited, why)
                                           : CONTROL_FAIL(why, "%s", tn_last_error()->message);
    if (limited.verdict == MC_LIMIT && !limited.dead_ends)
        return CONTROL_FAIL(why, "%s in spite of the limit", tn_status_name(got));
    tally->n[CONTROL_DEFINITE] += limited.verdict == MC_LIMIT;
    return full->verdict == MC_LIMIT || same_answer(l, &s->world, got, d, full, why);
}

bool control_compare(live *l, const scene *s, control_tally *tally, char *why) {
    mc_answer full;
    mc_world whole = s->world;
    tn_decision *d = NULL;
    whole.limit = CONTROL_CAP;
    mc_decide(&whole, &full);
    *why = 0;
    tn_controller *c = control_controller(l, s, why);
    if (!c)
        return false;
    tn_status got = ask(c, l, &s->world, &d);
    tell(tally, got, d, &full, s->custom);
    bool ok = judge(l, s, got, d, &full, tally, why);
    if (ok && s->enter && got == TN_OK && full.verdict == MC_FOUND) {
        tally->n[CONTROL_ENTERED]++;
        ok = enter(l, c, d, s, &full, why);
    }
    tn_decision_drop(d);
    tn_controller_destroy(c);
    return ok;
}
