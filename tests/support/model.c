/* SPDX-License-Identifier: MIT */
#include "model.h"
#include "model_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tm__check(bool fits, const char *what) {
    if (!fits) {
        fprintf(stderr, "reference model: too many %s\n", what);
        abort();
    }
}

/* ---- The world ------------------------------------------------------------------------------- */

void tm_world_init(tm_world *w, uint32_t devices) {
    memset(w, 0, sizeof *w);
    w->devices = devices;
}

void tm_world_stream(tm_world *w, tn_stream stream, uint32_t device, bool capturing) {
    tm__check(w->stream_count < TM_STREAMS, "streams");
    w->streams[w->stream_count++] = (tm_stream){stream, device, capturing, 0};
}

tm_stream *tm_world_find(tm_world *w, tn_stream stream) {
    for (size_t i = 0; i < w->stream_count; i++)
        if (w->streams[i].stream == stream)
            return &w->streams[i];
    return NULL;
}

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

void tm_world_queue(tm_world *w, tn_stream stream, uint64_t ns) {
    tm_stream *s = tm_world_find(w, stream);
    s->busy_until = later(s->busy_until, w->now) + ns;
}

void tm_world_advance(tm_world *w, uint64_t ns) { w->now += ns; }

const tm_fault *tm_world_call(tm_world *w, uint32_t entry) {
    for (size_t i = 0; i < w->fault_count; i++) {
        tm_fault *f = &w->faults[i];
        if (f->entry != entry || f->resting)
            continue;
        uint64_t call = ++f->calls, first = f->nth ? f->nth : 1;
        if (f->observe ? f->observed != 0 && f->hits == 0
                       : call >= first && (f->count == 0 || call - first < f->count)) {
            f->hits++;
            return f;
        }
    }
    return NULL;
}

void tm__wait_stream(tm_world *w, tn_stream stream) {
    tm_stream *s = tm_world_find(w, stream);
    if (s) /* an internal stream is never busy */
        w->now = later(w->now, s->busy_until);
}

void tm__wait_device(tm_world *w, uint32_t device) {
    for (size_t i = 0; i < w->stream_count; i++)
        if (w->streams[i].device == device)
            w->now = later(w->now, w->streams[i].busy_until);
}

/* ---- Errors ---------------------------------------------------------------------------------- */

tn_status tm__fail(tm_manager *m, tn_status status) {
    memset(&m->error, 0, sizeof m->error);
    m->error.size = sizeof m->error;
    m->error.status = status;
    m->error.manager = m->id;
    m->error_free = TM_FREE_REASON | TM_FREE_HANDLE | TM_FREE_AT | TM_FREE_MANAGER;
    return status;
}

tn_status tm__fail_fault(tm_manager *m, const tm_fault *fault) {
    tm__fail(m, (tn_status)fault->status);
    m->error.native_code = fault->code;
    return (tn_status)fault->status;
}

tn_status tm__fail_handle(tm_manager *m, tn_status status, tn_handle handle, tn_location at) {
    tm__fail(m, status);
    m->error.handle = handle;
    m->error.at = at;
    m->error_free &= ~(uint32_t)(TM_FREE_HANDLE | TM_FREE_MANAGER | (at.kind ? TM_FREE_AT : 0));
    return status;
}

tn_status tm__fail_reason(tm_manager *m, tn_status status, tn_handle handle, uint32_t reason) {
    tm__fail_handle(m, status, handle, tn_location_none());
    m->error.reason = reason;
    m->error_free &= ~(uint32_t)TM_FREE_REASON;
    return status;
}

tn_status tm__fail_in_use(tm_manager *m, const tm_value *v, const tm_materialization *x) {
    tm__fail_handle(m, TN_ERR_IN_USE, v->handle, x->at); /* M113 */
    m->error.use_count = x->uses;
    m->error.hold_count = x->holds;
    m->error.pending_count = x->pendings;
    return TN_ERR_IN_USE;
}

/* ---- Checks ---------------------------------------------------------------------------------- */

tn_status tm__entry(tm_manager *m) {
    if (m->guard)
        return tm__fail(m, TN_ERR_REENTRANCY);
    return m->closed ? tm__fail(m, TN_ERR_CLOSED) : TN_OK;
}

tn_status tm_guarded(tm_manager *m) { return m->guard ? tm__fail(m, TN_ERR_REENTRANCY) : TN_OK; }

tm_value *tm_find(tm_manager *m, tn_handle handle) {
    for (size_t i = 0; i < m->value_count; i++)
        if (tm_same_handle(m->values[i].handle, handle))
            return &m->values[i];
    return NULL;
}

/* D12: of a forgotten value only its index is known, so its type no longer counts. */
static bool forgotten(tm_manager *m, uint64_t index) {
    for (size_t i = 0; i < m->value_count; i++)
        if (m->values[i].forgotten && m->values[i].handle.index == index)
            return true;
    return false;
}

tn_status tm__resolve(tm_manager *m, tn_handle handle, tm_value **out) {
    tm_value *v = handle.manager == m->id ? tm_find(m, handle) : NULL;
    if (v && !v->discarded) {
        *out = v;
        return TN_OK;
    }
    tm__fail_handle(m, TN_ERR_HANDLE, handle, tn_location_none());
    bool discarded = v || forgotten(m, handle.index);
    m->error.handle_cause = handle.manager != m->id ? TN_HANDLE_FOREIGN
                            : discarded             ? TN_HANDLE_DISCARDED
                                                    : TN_HANDLE_UNKNOWN;
    return TN_ERR_HANDLE;
}

bool tm__host(tn_location at) {
    return at.kind == TN_LOCATION_PAGEABLE || at.kind == TN_LOCATION_PINNED;
}

bool tm__kind_ok(tn_location at) { return tm__host(at) || at.kind == TN_LOCATION_CUDA; }

tn_status tm__location(tm_manager *m, tn_location at) {
    if (!tm__kind_ok(at))
        return tm__fail(m, TN_ERR_KIND);
    if (at.kind == TN_LOCATION_CUDA && at.index >= m->world->devices)
        return tm__fail(m, TN_ERR_VALUE);
    return TN_OK;
}

tn_status tm__stream(tm_manager *m, tn_stream stream, tn_location at) {
    if (stream == TN_STREAM_PER_THREAD)
        return tm__fail(m, TN_ERR_VALUE);
    tm_stream *s = tm_world_find(m->world, stream);
    if (!s)
        return tm__fail(m, TN_ERR_KIND);
    if (at.kind != TN_LOCATION_CUDA || s->device != at.index || s->capturing)
        return tm__fail(m, TN_ERR_VALUE);
    return TN_OK;
}

/* ---- Accounting ------------------------------------------------------------------------------ */

tm_place *tm_place_at(tm_manager *m, tn_location at) {
    for (size_t i = 0; i < m->place_count; i++)
        if (tm_same_at(m->places[i].at, at))
            return &m->places[i];
    return NULL;
}

tn_status tm__admit(tm_manager *m, tn_location at, uint64_t charge) {
    static const tm_place untracked;
    const tm_place *p = tm_place_at(m, at);
    if (!p)
        p = &untracked;
    uint64_t total = p->used + p->reserved, limit = p->has_budget ? p->budget : INT64_MAX; /* G42 */
    if (charge == 0 || charge <= limit - total)
        return TN_OK;
    tm__fail(m, TN_ERR_BUDGET); /* M50 */
    m->error.at = at;
    m->error.budget_bytes = p->budget;
    m->error.used_bytes = p->used;
    m->error.reserved_bytes = p->reserved;
    m->error.requested_bytes = charge;
    m->error_free &= ~(uint32_t)(TM_FREE_AT | TM_FREE_MANAGER);
    if (!p->has_budget)
        m->error_free |= TM_FREE_BUDGET;
    return TN_ERR_BUDGET;
}

tm_place *tm__track(tm_manager *m, tn_location at) {
    tm_place *p = tm_place_at(m, at);
    if (p)
        return p;
    tm__check(m->place_count < TM_LOCATIONS, "locations");
    p = &m->places[m->place_count++];
    memset(p, 0, sizeof *p);
    p->at = tm__host(at) ? (tn_location){at.kind, 0} : at;
    m->version++;
    return p;
}

/* M46 holds where it is called: `used` grows only in an install. */
void tm__raise(tm_place *p) {
    if (p->peak_used < p->used)
        p->peak_used = p->used;
    if (p->peak_charged < p->used + p->reserved)
        p->peak_charged = p->used + p->reserved;
}

tm_materialization *tm_resident(tm_value *v, tn_location at) {
    for (size_t i = 0; i < v->count; i++)
        if (tm_same_at(v->at[i].at, at))
            return &v->at[i];
    return NULL;
}

bool tm__protected(const tm_materialization *x) { return x->uses || x->holds || x->pendings; }

/* ---- Life ------------------------------------------------------------------------------------ */

void tm_create(tm_manager *m, tm_world *world, uint64_t id, const tm_config *config) {
    memset(m, 0, sizeof *m);
    m->world = world;
    m->id = id;
    m->next_index = 1;
    m->trace_capacity = config && config->trace_capacity ? config->trace_capacity : 4096;
    m->keep_discarded = config && config->keep_discarded ? config->keep_discarded : 4096;
    for (size_t i = 0; config && i < config->budget_count; i++) {
        tm_place *p = tm__track(m, config->budgets[i].at);
        p->has_budget = true;
        p->budget = config->budgets[i].bytes;
    }
    m->version = 0; /* M117 */
}

void tm__clear(tm_manager *m) {
    for (size_t i = 0; i < m->value_count; i++) {
        tm_value *v = &m->values[i];
        m->world->live -= (int64_t)v->count;
        m->world->forgotten += v->has_source;
        v->count = 0;
        v->has_source = false;
    }
    for (size_t i = 0; i < m->lease_count; i++)
        m->leases[i].state = TM_ENDED; /* `open` stays: M150 */
    for (size_t i = 0; i < m->hold_count; i++)
        m->holds[i].state = TM_ENDED;
    for (size_t i = 0; i < m->reservation_count; i++)
        m->reservations[i].state = TM_ENDED;
    for (size_t i = 0; i < m->place_count; i++)
        m->places[i].used = m->places[i].reserved = 0;
    m->version++;
    m->closed = true;
}

static tn_status close_counts(tm_manager *m) {
    uint64_t active = 0, pending = 0, holds = 0, reservations = 0;
    for (size_t i = 0; i < m->lease_count; i++) {
        active += m->leases[i].state == TM_ACTIVE;
        pending += m->leases[i].state == TM_PENDING;
    }
    for (size_t i = 0; i < m->hold_count; i++)
        holds += m->holds[i].state == TM_ACTIVE;
    for (size_t i = 0; i < m->reservation_count; i++)
        reservations += m->reservations[i].state == TM_ACTIVE;
    if (!active && !pending && !holds && !reservations)
        return TN_OK;
    tm__fail(m, TN_ERR_IN_USE); /* M237 */
    m->error.active_lease_count = active;
    m->error.pending_lease_count = pending;
    m->error.hold_count = holds;
    m->error.reservation_count = reservations;
    return TN_ERR_IN_USE;
}

/* M236: all at once, so a wait that fails completes nothing. */
static tn_status wait_for_pending(tm_manager *m) {
    uint64_t until = m->world->now;
    for (size_t i = 0; i < m->lease_count; i++) {
        if (m->leases[i].state != TM_PENDING)
            continue;
        const tm_fault *fault = tm_world_call(m->world, TN_SIM_EVENT_SYNCHRONIZE);
        if (fault)
            return tm__fail_fault(m, fault);
        until = later(until, m->leases[i].done_at);
    }
    m->world->now = until;
    for (size_t i = 0; i < m->lease_count; i++)
        if (m->leases[i].state == TM_PENDING)
            tm__complete(&m->leases[i]);
    return TN_OK;
}

tn_status tm_close(tm_manager *m, uint32_t flags) {
    if (flags & ~(uint32_t)(TN_CLOSE_NO_WAIT | TN_CLOSE_FORCE))
        return tm__fail(m, TN_ERR_VALUE);
    if (m->guard)
        return tm__fail(m, TN_ERR_REENTRANCY);
    if (m->closed)
        return TN_OK;
    m->reaped = 0;
    tn_status status = flags & TN_CLOSE_NO_WAIT ? tm__reap(m) : wait_for_pending(m);
    if (status != TN_OK)
        return status;
    if (!(flags & TN_CLOSE_FORCE) && (status = close_counts(m)) != TN_OK)
        return status;
    for (size_t i = 0; flags & TN_CLOSE_FORCE && i < m->place_count; i++) { /* M241 */
        if (m->places[i].at.kind != TN_LOCATION_CUDA)
            continue;
        const tm_fault *fault = tm_world_call(m->world, TN_SIM_DEVICE_SYNCHRONIZE);
        if (fault)
            return tm__fail_fault(m, fault); /* M238 */
        tm__wait_device(m->world, m->places[i].at.index);
    }
    tm__clear(m);
    return TN_OK;
}

void tm_destroy(tm_manager *m) {
    for (size_t i = 0; i < m->scope_count; i++)
        m->scopes[i].state = TM_CLOSED; /* D15: their reservations warn */
    if (m->closed)
        return;
    for (size_t i = 0; i < m->lease_count; i++) {
        tm_lease *l = &m->leases[i];
        if (l->state != TM_ACTIVE)
            continue;
        m->diagnostics[TN_DIAGNOSTIC_LEASE_ABANDONED]++;
        for (size_t s = 0; s < l->stream_count; s++)
            tm__wait_stream(m->world, l->streams[s]);
    }
    for (size_t i = 0; i < m->hold_count; i++)
        m->diagnostics[TN_DIAGNOSTIC_HOLD_ABANDONED] += m->holds[i].state == TM_ACTIVE;
    for (size_t i = 0; i < m->reservation_count; i++)
        m->diagnostics[TN_DIAGNOSTIC_RESERVATION_ABANDONED] +=
            m->reservations[i].state == TM_ACTIVE;
    for (size_t i = 0; i < m->lease_count; i++)
        if (m->leases[i].state == TM_PENDING)
            m->world->now = later(m->world->now, m->leases[i].done_at);
    for (size_t i = 0; i < m->place_count; i++)
        if (m->places[i].at.kind == TN_LOCATION_CUDA)
            tm__wait_device(m->world, m->places[i].at.index);
    tm__clear(m);
}

void tm_clear_trace(tm_manager *m) { m->trace_count = 0; }

/* ---- Snapshots ------------------------------------------------------------------------------- */

static void view_value(const tm_value *v, tn_value_info *info, tn_materialization_info *list) {
    *info = (tn_value_info){.size = sizeof *info,
                            .handle = v->handle,
                            .spec = v->spec,
                            .materialization_count = v->count,
                            .has_source = v->has_source,
                            .discarded = v->discarded};
    info->source_at = v->has_source ? v->source_at : tn_location_none();
    for (size_t i = 0; i < v->count; i++) {
        const tm_materialization *x = &v->at[i];
        list[i] = (tn_materialization_info){.size = sizeof *list,
                                            .at = x->at,
                                            .logical_bytes = v->spec.logical_bytes,
                                            .storage_bytes = x->actual,
                                            .charged_bytes = v->spec.storage_bytes,
                                            .use_count = x->uses,
                                            .hold_count = x->holds,
                                            .pending_count = x->pendings};
    }
}

static void view_place(tm_manager *m, const tm_place *p, tn_location_info *info) {
    *info = (tn_location_info){.size = sizeof *info,
                               .at = p->at,
                               .has_budget = p->has_budget,
                               .used_bytes = p->used,
                               .reserved_bytes = p->reserved,
                               .peak_used_bytes = p->peak_used,
                               .peak_charged_bytes = p->peak_charged};
    if (p->has_budget) {
        info->budget_bytes = p->budget;
        info->remaining_bytes = p->budget - p->used - p->reserved;
    }
    for (size_t i = 0; i < m->value_count; i++) {
        const tm_materialization *x = tm_resident(&m->values[i], p->at);
        if (!x)
            continue;
        info->value_count++;
        info->use_count += x->uses;
        info->hold_count += x->holds;
        info->pending_count += x->pendings;
    }
    for (size_t i = 0; i < m->reservation_count; i++)
        info->reservation_count +=
            m->reservations[i].state == TM_ACTIVE && tm_same_at(m->reservations[i].at, p->at);
}

tn_status tm_snapshot(tm_manager *m, tm_view *out) {
    tn_status status = tm__entry(m);
    if (status == TN_OK)
        status = tm__reap(m);
    if (status != TN_OK)
        return status;
    tn_snapshot_info *info = &out->info;
    *info = (tn_snapshot_info){.size = sizeof *info,
                               .manager = m->id,
                               .state_version = m->version,
                               .location_count = m->place_count,
                               .exact = 1};
    for (size_t i = 0; i < m->value_count; i++) {
        if (m->values[i].forgotten)
            continue;
        view_value(&m->values[i], &out->values[info->value_count],
                   out->materializations[info->value_count]);
        info->value_count++;
    }
    for (size_t i = 0; i < m->place_count; i++)
        view_place(m, &m->places[i], &out->locations[i]);
    for (size_t i = 0; i < m->reservation_count; i++) {
        const tm_reservation *r = &m->reservations[i];
        if (r->state != TM_ACTIVE)
            continue;
        tn_reservation_info *to = &out->reservations[info->reservation_count++];
        to->size = sizeof *to;
        to->at = r->at;
        to->bytes = r->bytes;
        snprintf(to->label, sizeof to->label, "%s", r->label);
    }
    for (size_t i = 0; i < m->lease_count; i++) {
        info->lease_count += m->leases[i].state == TM_ACTIVE;
        info->pending_lease_count += m->leases[i].state == TM_PENDING;
    }
    for (size_t i = 0; i < m->hold_count; i++)
        info->hold_count += m->holds[i].state == TM_ACTIVE;
    return TN_OK;
}
