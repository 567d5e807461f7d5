/* SPDX-License-Identifier: MIT */
/*
 * decide (C49): one version, one scan, the search, the plan, its dry run; then the version is read
 * again: if it has moved on, everything that was read may be of two states, and nothing is issued.
 */
#include <stdio.h>
#include <string.h>

#include "controller/controller_priv.h"

/* ---- Validation (C51, C52) -------------------------------------------------------------- */

static tn_status check_exclusive(const tn_controller *c, const tn_request *r, size_t i,
                                 const tn__value *value) {
    if (value->replicable)
        return TN_OK;
    for (size_t k = 0; k < i; k++) {
        if (r->requirements[k].handle.index != value->index)
            continue;
        tn_error *e =
            tn__error(TN_ERR_OWNERSHIP, "exclusive value %llu is required at two locations",
                      (unsigned long long)value->index);
        e->manager = c->of.id;
        e->reason = TN_REASON_EXCLUSIVE;
        e->handle = r->requirements[i].handle;
        e->at = r->requirements[i].at;
        return TN_ERR_OWNERSHIP;
    }
    return TN_OK;
}

static tn_status check_request(const tn_controller *c, const tn_request *r,
                               const tn_version *version) {
    const tn__value *value;
    for (size_t i = 0; i < r->count; i++) {
        tn_status status =
            tn__version_resolve(version, c->of.id, r->requirements[i].handle, &value);
        if (status != TN_OK)
            return status;
    }
    for (size_t i = 0; i < r->count; i++) { /* after all handles passed */
        value = tn__version_value(version, r->requirements[i].handle.index);
        tn_status status = check_exclusive(c, r, i, value);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

/* ---- Errors ----------------------------------------------------------------------------- */

static const char *const stages[] = {"reservation", "materialization", "source reconstruction"};

/* The failing check of the initial state (C102), bounded (C105). */
static tn_status infeasible(const tn__walk *w) {
    char name[TN_LOCATION_NAME_MAX];
    const tn__check *f = &w->first;
    tn_location at = tn__loc_location(f->at);
    const char *request = tn_request_name(w->request);
    bool reservation = f->stage == TN__STAGE_RESERVATION;
    tn_error *e = tn__error(
        TN_ERR_PLAN,
        "request \"%.60s\" is infeasible: %s of %llu bytes at %s; no sequence of valid victims "
        "satisfies the complete request",
        request, stages[f->stage], (unsigned long long)f->bytes, tn__location_text(at, name));
    e->manager = w->controller->of.id;
    e->cause_status = TN_ERR_BUDGET;
    e->reason = reservation ? TN_REASON_RESERVATION_BUDGET : TN_REASON_BUDGET;
    e->phase = reservation ? TN_PHASE_RESERVE : TN_PHASE_ENTER;
    e->failed_index = f->subject;
    e->at = at;
    e->budget_bytes = w->controller->of.store->ledgers[f->at].budget;
    e->used_bytes = w->used[f->at];
    e->reserved_bytes = w->reserved[f->at];
    e->requested_bytes = f->bytes;
    memcpy(e->plan, request, strnlen(request, sizeof e->plan - 1));
    if (reservation)
        memcpy(e->label, w->reservations[f->subject].label,
               strnlen(w->reservations[f->subject].label, sizeof e->label - 1));
    else
        e->handle = w->request->requirements[f->subject].handle;
    return TN_ERR_PLAN;
}

/* What is in the way there, as for a budget that refuses. */
static void judge_infeasible(const tn__walk *w) {
    tn_error e = *tn__error_current();
    tn__verdict verdict;
    tn__verdict_input in = {w->controller->of.id, w->controller->of.store, w->version, w->guards,
                            NULL};
    e.status = TN_ERR_BUDGET;
    if (tn__verdict_of(&in, &e, &verdict) == TN_OK) {
        /* evictions were tried: they are no way now. What would make them one is not known: what
         * is protected elsewhere, another tier, another request */
        if (verdict.verdict == TN_VERDICT_AFTER_EVICTION)
            verdict.verdict = TN_VERDICT_NONE;
        tn__verdict_into(&verdict, &e);
        e.missing_bytes = w->first.over; /* in the trial, behind the request's other parts */
        tn__verdict_fini(&verdict);
    }
    e.status = TN_ERR_PLAN;
    tn__error_restore(&e);
}

static tn_status inconclusive(const tn__walk *w) {
    char name[TN_LOCATION_NAME_MAX], where[TN_LOCATION_NAME_MAX + 32] = "walking the request";
    const char *request = tn_request_name(w->request);
    if (w->limit_at != TN__NOWHERE)
        snprintf(where, sizeof where, "making room at %s",
                 tn__location_text(tn__loc_location(w->limit_at), name));
    tn_error *e = tn__error(TN_ERR_SEARCH_LIMIT,
                            "request \"%.60s\": inconclusive after %llu states, while %s", request,
                            (unsigned long long)w->explored, where);
    e->manager = w->controller->of.id;
    e->expected = w->limit;
    e->actual = w->explored;
    e->at = w->limit_at == TN__NOWHERE ? tn_location_none() : tn__loc_location(w->limit_at);
    memcpy(e->plan, request, strnlen(request, sizeof e->plan - 1));
    return TN_ERR_SEARCH_LIMIT;
}

/* ---- The plan and its evictions (C107, C112) -------------------------------------------- */

static tn_action action_of(const tn__walk *w, const tn__release *r) {
    const tn__value *value = w->pieces[r->piece].value;
    tn_handle handle = {w->controller->of.id, value->index, value->type};
    return r->to == TN__NOWHERE
               ? tn_action_drop(handle, tn__loc_location(r->from))
               : tn_action_move(handle, tn__loc_location(r->to), tn__loc_location(r->from));
}

static tn_status make_plan(const tn__walk *w, tn_decision *d) {
    size_t n = w->release_count;
    d->evictions = tn__alloc(n * sizeof *d->evictions);
    tn_action *reclaim = tn__alloc(n * sizeof *reclaim);
    tn_status status = d->evictions && reclaim ? TN_OK : tn__no_memory();
    for (size_t i = 0; i < n && status == TN_OK; i++) {
        const tn__release *r = &w->releases[i];
        reclaim[i] = action_of(w, r);
        d->evictions[i] = (tn_eviction){.size = sizeof d->evictions[i],
                                        .action = reclaim[i],
                                        .rank = r->rank,
                                        .released_at = tn__loc_location(r->from),
                                        .released_bytes = w->pieces[r->piece].value->charge_bytes,
                                        .reason = r->reason};
    }
    d->eviction_count = n;
    if (status == TN_OK) {
        tn_plan_spec spec = {.size = sizeof spec,
                             .name = tn_request_name(w->request),
                             .reclaim = reclaim,
                             .reclaim_count = n,
                             .reservations = w->reservations,
                             .reservation_count = w->reservation_count,
                             .enter = w->actions,
                             .enter_count = w->action_count};
        status = tn_plan_create(&spec, &d->plan);
    }
    tn__free(reclaim);
    return status;
}

/* ---- decide ----------------------------------------------------------------------------- */

static tn_status search(tn__walk *w) {
    tn_status status = tn__state_begin(w);
    if (status == TN_OK)
        status = tn__walk_run(w);
    if (w->exhausted) {
        tn__state_undo(w, 0);
        status = infeasible(w);
        judge_infeasible(w);
    } else if (w->limited && !w->no_memory) {
        status = inconclusive(w);
    }
    return status;
}

static tn_status derive(tn_controller *c, tn__walk *w, tn_decision *d) {
    tn_status status = check_request(c, w->request, w->version);
    if (status == TN_OK)
        status = search(w);
    if (status == TN_OK)
        status = make_plan(w, d);
    if (status == TN_OK)
        status = tn__explain_guarded(&(tn__sim_input){.manager = c->of.id,
                                                      .store = c->of.store,
                                                      .driver = c->of.driver,
                                                      .version = w->version,
                                                      .guards = w->guards},
                                     d->plan, &d->explanation);
    d->explored = w->explored;
    tn__state_fini(w);
    return status;
}

/* From the version to the dry run, all of one state or TN_ERR_STALE. */
static tn_status derive_at(tn_controller *c, const tn_version *version, tn_decision *d) {
    tn__guards guards;
    tn_status status = tn__guards_read(c->of.life, &guards);
    if (status != TN_OK)
        return status;
    tn__walk *w = c->walk ? c->walk : (c->walk = tn__alloc(sizeof *w));
    if (w) {
        memset(w, 0, sizeof *w);
        w->controller = c;
        w->request = d->request;
        w->version = version;
        w->guards = &guards;
        w->limit = c->search_limit;
        status = tn_request_reservations(d->request, &w->reservations, &w->reservation_count);
        if (status == TN_OK)
            status = derive(c, w, d);
    } else {
        status = tn__no_memory();
    }
    tn__guards_fini(&guards);
    return status;
}

static tn_status decide_once(tn_controller *c, tn_decision *d) {
    d->version = tn__state_version_settled(c->of.store, c->of.life);
    const tn_version *version = tn__store_pin(c->of.store);
    if (!version)
        return tn__no_memory();
    d->placement = version->number;
    tn_status status = derive_at(c, version, d);
    tn__store_unpin(c->of.store, version);
    if (status == TN_ERR_HOST_MEMORY)
        return status;
    uint64_t actual = tn__state_version_settled(c->of.store, c->of.life);
    if (actual != d->version)
        return tn__stale(c->of.id, d->version, actual);
    if (status == TN_OK)
        status = tn__explanation_check(d->explanation); /* C55: the plan's own dry run */
    if (status == TN_OK)
        status = tn__identity_check(&d->identity);
    return status;
}

static void clear(tn_decision *d) {
    tn_plan_destroy(d->plan);
    tn_explanation_drop(d->explanation);
    tn__free(d->evictions);
    d->plan = NULL;
    d->explanation = NULL;
    d->evictions = NULL;
    d->eviction_count = 0;
}

/* Nothing was issued, so it may start over (C54). */
#define TRIES 8

static tn_status decide_settled(tn_controller *c, tn_decision *d) {
    tn_status status = decide_once(c, d);
    for (int i = 1; i < TRIES && status == TN_ERR_STALE; i++) {
        clear(d);
        status = decide_once(c, d);
    }
    return status;
}

tn_status tn__decide(tn_controller *c, const tn_request *request, tn_decision **out) {
    tn_decision *d = tn__zalloc(sizeof *d);
    if (!d)
        return tn__no_memory();
    d->manager = c->of.id;
    d->request = request;
    tn__request_keep(request);
    tn_status status = tn__policy_check(c->policy);
    if (status == TN_OK)
        status = tn__identity_read(c->policy, &d->identity);
    if (status == TN_OK)
        status = decide_settled(c, d);
    if (status != TN_OK) {
        tn_decision_drop(d);
        return status;
    }
    *out = d;
    return TN_OK;
}

void tn_decision_drop(tn_decision *d) {
    if (!d)
        return;
    clear(d);
    tn__identity_fini(&d->identity);
    tn__request_let_go(d->request);
    tn__free(d);
}
