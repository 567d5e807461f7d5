/* SPDX-License-Identifier: MIT */
/* The reference model: what would happen if a plan ran now (M168..M181). */
#include <string.h>

#include "model.h"
#include "model_internal.h"

/* The replicas of one value as they would be; `real`: the materialization that is there already. */
typedef struct sim_value {
    bool discarded;
    size_t count;
    struct {
        tn_location at;
        const tm_materialization *real;
    } at[TM_LOCATIONS];
} sim_value;

typedef struct sim_place {
    tm_place now;
    uint64_t peak;
} sim_place;

typedef struct sim {
    tm_manager *m;
    tm_explained *out;
    size_t place_count;
    sim_place places[TM_LOCATIONS];
    sim_value values[TM_VALUES];
    bool held;  /* one of what protects is a hold */
    bool never; /* more than the budget can give */
} sim;

static tn_location plain(tn_location at) { return tm__host(at) ? (tn_location){at.kind, 0} : at; }

/* M170: from the real state on. */
static void begin(sim *s, tm_manager *m, tm_explained *out) {
    memset(s, 0, sizeof *s);
    s->m = m;
    s->out = out;
    s->place_count = m->place_count;
    for (size_t i = 0; i < m->place_count; i++) {
        s->places[i].now = m->places[i];
        s->places[i].peak = m->places[i].used + m->places[i].reserved;
    }
    for (size_t i = 0; i < m->value_count; i++) {
        s->values[i].count = m->values[i].count;
        for (size_t k = 0; k < m->values[i].count; k++) {
            s->values[i].at[k].at = m->values[i].at[k].at;
            s->values[i].at[k].real = &m->values[i].at[k];
        }
    }
}

static int resident(const sim_value *v, tn_location at) {
    for (size_t i = 0; i < v->count; i++)
        if (tm_same_at(v->at[i].at, at))
            return (int)i;
    return -1;
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

static sim_place *meet(sim *s, tn_location at) {
    for (size_t i = 0; i < s->place_count; i++)
        if (tm_same_at(s->places[i].now.at, at))
            return &s->places[i];
    tm__check(s->place_count < TM_LOCATIONS, "simulated locations");
    sim_place *p = &s->places[s->place_count++];
    memset(p, 0, sizeof *p);
    p->now.at = plain(at);
    return p;
}

/* M173: the peak rises whether they fit or not. */
static tn_status stand(sim *s, tn_location at, uint64_t bytes) {
    sim_place *p = meet(s, at);
    uint64_t total = p->now.used + p->now.reserved;
    uint64_t limit = p->now.has_budget ? p->now.budget : INT64_MAX; /* G42 */
    if (p->peak < total + bytes)
        p->peak = total + bytes;
    if (bytes == 0 || bytes <= limit - total)
        return TN_OK;
    tm_manager *m = s->m;
    tm__fail(m, TN_ERR_BUDGET);
    m->error.reason = TN_REASON_BUDGET;
    m->error.at = at;
    m->error.budget_bytes = p->now.budget;
    m->error.used_bytes = p->now.used;
    m->error.reserved_bytes = p->now.reserved;
    m->error.requested_bytes = bytes;
    m->error_free = TM_FREE_HANDLE | (p->now.has_budget ? 0 : TM_FREE_BUDGET);
    s->out->missing_bytes = total + bytes - limit;
    s->never = bytes > limit;
    return TN_ERR_BUDGET;
}

static void install(sim *s, sim_value *v, tn_location at, uint64_t bytes) {
    meet(s, at)->now.used += bytes;
    tm__check(v->count < TM_LOCATIONS, "simulated replicas");
    v->at[v->count].at = plain(at);
    v->at[v->count++].real = NULL;
}

static void take_away(sim *s, sim_value *v, tn_location at, uint64_t bytes) {
    int i = resident(v, at);
    meet(s, at)->now.used -= bytes;
    v->count--;
    memmove(&v->at[i], &v->at[i + 1], (v->count - (size_t)i) * sizeof v->at[0]);
}

/* ---- Protection ------------------------------------------------------------------------------ */

/* M171: what is complete at this moment protects no longer, unless its events cannot be queried. */
static uint64_t pending_now(sim *s, const tm_value *v, const tm_materialization *x) {
    uint64_t count = 0;
    for (size_t i = 0; i < s->m->lease_count; i++) {
        const tm_lease *l = &s->m->leases[i];
        if (l->state != TM_PENDING || !tm_same_at(l->at, x->at))
            continue;
        for (size_t k = 0; k < l->handle_count; k++)
            if (tm_same_handle(l->handles[k], v->handle))
                count +=
                    tm_world_call(s->m->world, TN_SIM_EVENT_QUERY) || l->done_at > s->m->world->now;
    }
    return count;
}

/* TN_ERR_IN_USE, with the counts (M113). */
static tn_status guarded(sim *s, const tm_value *v, const tm_materialization *x, uint32_t reason) {
    if (!x)
        return TN_OK;
    tm_materialization now = *x;
    now.pendings = pending_now(s, v, x);
    if (!tm__protected(&now))
        return TN_OK;
    s->held |= now.holds > 0;
    tn_status status = tm__fail_in_use(s->m, v, &now);
    s->m->error.reason = reason;
    s->m->error_free &= ~(uint32_t)TM_FREE_REASON;
    return status;
}

/* M111, M179: all of them are listed, the first one is told. */
static tn_status check_discard(sim *s, const tm_value *real, const sim_value *v) {
    tn_status status = TN_OK;
    tn_error first = {0};
    uint32_t first_free = 0;
    for (size_t i = 0; i < v->count; i++) {
        if (guarded(s, real, v->at[i].real, TN_REASON_DISCARD_PROTECTED) == TN_OK)
            continue;
        s->out->listed[s->out->listed_count++] = v->at[i].at;
        if (status == TN_OK) {
            first = s->m->error;
            first_free = s->m->error_free;
        }
        status = TN_ERR_IN_USE;
    }
    if (status != TN_OK) {
        s->m->error = first;
        s->m->error_free = first_free;
    }
    return status;
}

/* ---- Actions --------------------------------------------------------------------------------- */

static tn_status because(sim *s, tn_status status, uint32_t reason) {
    s->m->error.reason = reason;
    s->m->error_free &= ~(uint32_t)TM_FREE_REASON;
    return status;
}

static tn_status already(tn_action_explanation *e, uint32_t reason) {
    e->no_op = 1;
    e->reason = reason;
    return TN_OK;
}

static tn_status locate(sim *s, tn_location at) {
    tn_status status = tm__location(s->m, at);
    if (status != TN_OK) {
        s->m->error.at = at;
        s->m->error_free &= ~(uint32_t)TM_FREE_AT;
        return because(s, status, TN_REASON_LOCATION_INVALID);
    }
    (void)meet(s, at);
    return TN_OK;
}

/* M174: a temporary charge that is compared and dropped, then the destination's. */
static tn_status bring(sim *s, tm_value *real, sim_value *v, tn_action_explanation *e) {
    tn_status status = TN_OK;
    if (v->count == 0) {
        e->source = real->source_at;
        if (!tm_same_at(e->source, e->destination))
            status = stand(s, e->source, real->spec.storage_bytes);
    }
    if (status == TN_OK)
        status = stand(s, e->destination, real->spec.storage_bytes);
    if (status == TN_OK)
        install(s, v, e->destination, real->spec.storage_bytes);
    return status;
}

static tn_location preferred(const sim_value *v, tn_location except) {
    tn_location best = tn_location_none();
    for (size_t i = 0; i < v->count; i++)
        if (!tm_same_at(v->at[i].at, except) &&
            (!best.kind || tm__rank(v->at[i].at) < tm__rank(best)))
            best = v->at[i].at;
    return best;
}

static tn_status ensure(sim *s, tm_value *real, sim_value *v, tn_action_explanation *e) {
    e->destination = e->action.at;
    tn_status status = locate(s, e->destination);
    if (status != TN_OK)
        return status;
    if (resident(v, e->destination) >= 0)
        return already(e, TN_REASON_ALREADY_RESIDENT);
    if (v->count && real->spec.replica_mode == TN_EXCLUSIVE)
        return tm__fail_reason(s->m, TN_ERR_OWNERSHIP, real->handle, TN_REASON_EXCLUSIVE);
    if (v->count)
        e->source = preferred(v, e->destination);
    return bring(s, real, v, e);
}

/* M98 */
static tn_status select_source(sim *s, tm_value *real, sim_value *v, tn_action_explanation *e) {
    if (!e->action.from.kind) {
        e->source = preferred(v, e->destination);
        return TN_OK;
    }
    e->source = e->action.from;
    tn_status status = locate(s, e->source);
    if (status != TN_OK || resident(v, e->source) >= 0)
        return status;
    status = tm__fail_handle(s->m, TN_ERR_UNAVAILABLE, real->handle, e->source);
    return because(s, status, TN_REASON_SOURCE_NOT_RESIDENT);
}

static tn_status move(sim *s, tm_value *real, sim_value *v, tn_action_explanation *e) {
    e->destination = e->action.at;
    tn_status status = locate(s, e->destination);
    s->out->source_free = status != TN_OK;
    if (status == TN_OK)
        status = select_source(s, real, v, e);
    if (status != TN_OK)
        return status;
    bool there = resident(v, e->destination) >= 0;
    if (there && (!e->source.kind || tm_same_at(e->source, e->destination)))
        return already(e, TN_REASON_ALREADY_AT_DESTINATION);
    tn_location from = e->source;
    if (from.kind)
        status = guarded(s, real, v->at[resident(v, from)].real, TN_REASON_SOURCE_PROTECTED);
    if (status == TN_OK && !there)
        status = bring(s, real, v, e);
    if (status == TN_OK && from.kind)
        take_away(s, v, from, real->spec.storage_bytes);
    return status;
}

static tn_status drop(sim *s, tm_value *real, sim_value *v, tn_action_explanation *e) {
    e->source = e->action.at;
    tn_status status = locate(s, e->source);
    if (status != TN_OK)
        return status;
    int i = resident(v, e->source);
    if (i < 0)
        return already(e, TN_REASON_ALREADY_ABSENT);
    status = guarded(s, real, v->at[i].real, TN_REASON_PROTECTED);
    if (status == TN_OK && v->count == 1 && !real->has_source)
        status = tm__fail_reason(s->m, TN_ERR_OWNERSHIP, real->handle, TN_REASON_LAST_COPY);
    if (status == TN_OK)
        take_away(s, v, e->source, real->spec.storage_bytes);
    return status;
}

static tn_status discard(sim *s, tm_value *real, sim_value *v) {
    tn_status status = check_discard(s, real, v);
    while (status == TN_OK && v->count)
        take_away(s, v, v->at[0].at, real->spec.storage_bytes);
    v->discarded = status == TN_OK;
    return status;
}

/* M7, M177: then the explanation has neither endpoints nor bytes. */
static tn_status resolve(sim *s, tn_handle handle, tm_value **real, sim_value **v) {
    static const uint32_t reasons[] = {
        [TN_HANDLE_FOREIGN] = TN_REASON_HANDLE_FOREIGN,
        [TN_HANDLE_UNKNOWN] = TN_REASON_HANDLE_UNKNOWN,
        [TN_HANDLE_DISCARDED] = TN_REASON_HANDLE_DISCARDED,
    };
    tn_status status = tm__resolve(s->m, handle, real);
    if (status != TN_OK)
        return because(s, status, reasons[s->m->error.handle_cause]);
    *v = &s->values[*real - s->m->values];
    if (!(*v)->discarded)
        return TN_OK;
    status = tm__fail_handle(s->m, TN_ERR_HANDLE, handle, tn_location_none());
    s->m->error.handle_cause = TN_HANDLE_DISCARDED;
    return because(s, status, TN_REASON_HANDLE_DISCARDED);
}

static tn_status act(sim *s, tn_action_explanation *e) {
    tm_value *real;
    sim_value *v;
    tn_status status = resolve(s, e->action.handle, &real, &v);
    if (status != TN_OK)
        return status;
    e->logical_bytes = real->spec.logical_bytes;
    e->storage_bytes = real->spec.storage_bytes;
    switch (e->action.kind) {
    case TN_ACTION_ENSURE:
        return ensure(s, real, v, e);
    case TN_ACTION_MOVE:
        return move(s, real, v, e);
    case TN_ACTION_DROP:
        return drop(s, real, v, e);
    default:
        return discard(s, real, v);
    }
}

/* ---- The plan -------------------------------------------------------------------------------- */

static bool problem(sim *s, uint32_t phase, uint64_t index) {
    tm_explained *out = s->out;
    out->feasible = false;
    out->phase = phase;
    out->index = index;
    out->problem = s->m->error;
    out->problem_free = s->m->error_free;
    out->verdict = TN_VERDICT_NONE;
    if (out->problem.status == TN_ERR_IN_USE)
        out->verdict = s->held ? TN_VERDICT_BLOCKED : TN_VERDICT_AFTER_LEASES;
    if (out->problem.status == TN_ERR_BUDGET)
        out->verdict = s->never ? TN_VERDICT_NEVER : TM_VERDICT_FREE;
    return false;
}

static bool actions(sim *s, uint32_t phase, const tm_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        tn_action_explanation *e = &s->out->actions[s->out->action_count++];
        *e = (tn_action_explanation){
            .size = sizeof *e, .action = list->actions[i], .phase = phase, .index = i};
        tn_status status = act(s, e);
        e->executable = status == TN_OK;
        if (status == TN_OK)
            continue;
        e->reason = s->m->error.reason;
        return problem(s, phase, i);
    }
    return true;
}

static bool reservations(sim *s, const tm_plan *plan) {
    for (size_t i = 0; i < plan->reservation_count; i++) {
        const tn_reservation_spec *r = &plan->reservations[i];
        tn_status status = locate(s, r->at);
        if (status == TN_OK) {
            status = stand(s, r->at, r->bytes);
            if (status != TN_OK)
                (void)because(s, status, TN_REASON_RESERVATION_BUDGET);
        }
        if (status != TN_OK) {
            memcpy(s->m->error.label, plan->labels[i], sizeof plan->labels[i]);
            return problem(s, TN_PHASE_RESERVE, i);
        }
        meet(s, r->at)->now.reserved += r->bytes;
    }
    return true;
}

void tm__simulate(tm_manager *m, const tm_plan *plan, bool sequence, tm_explained *out) {
    static sim s; /* large; one thread */
    tn_error kept = m->error;
    uint32_t kept_free = m->error_free;
    memset(out, 0, sizeof *out);
    out->feasible = true;
    out->verdict = TN_VERDICT_FITS_NOW;
    begin(&s, m, out);
    if (sequence)
        (void)actions(&s, TN_PHASE_EXECUTE, &plan->enter);
    else /* M168 */
        (void)!(actions(&s, TN_PHASE_RECLAIM, &plan->reclaim) && reservations(&s, plan) &&
                actions(&s, TN_PHASE_ENTER, &plan->enter) &&
                actions(&s, TN_PHASE_EXIT, &plan->exit));
    out->peak_count = s.place_count; /* M181 */
    for (size_t i = 0; i < s.place_count; i++)
        out->peaks[i] = (tn_predicted_peak){s.places[i].now.at, s.places[i].peak};
    m->error = kept;
    m->error_free = kept_free;
}
