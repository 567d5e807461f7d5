/* SPDX-License-Identifier: MIT */
/* The reference model: leases, holds, reservations, reaping. */
#include <stdio.h>
#include <string.h>

#include "model.h"
#include "model_internal.h"

/* ---- Reaping --------------------------------------------------------------------------------- */

static tm_materialization *leased(tm_lease *l, size_t index) {
    return tm_resident(tm_find(l->manager, l->handles[index]), l->at);
}

void tm__complete(tm_lease *l) {
    for (size_t i = 0; i < l->handle_count; i++)
        leased(l, i)->pendings--;
    l->state = TM_ENDED;
    l->open =
        false; /* also where a failed wait had left it open (M146): it names nothing any longer */
    l->manager->version++;
    l->manager->reaped++;
}

tn_status tm__reap(tm_manager *m) {
    m->reaped = 0;
    for (size_t i = 0; i < m->lease_count; i++) {
        tm_lease *l = &m->leases[i];
        if (l->state != TM_PENDING)
            continue;
        const tm_fault *fault = tm_world_call(m->world, TN_SIM_EVENT_QUERY);
        if (fault)
            return tm__fail_fault(m, fault); /* M165 */
        if (l->done_at <= m->world->now)
            tm__complete(l);
    }
    return TN_OK;
}

tn_status tm_version(tm_manager *m, uint64_t *out) {
    tn_status status = tm__entry(m);
    if (status == TN_OK)
        status = tm__reap(m);
    if (status == TN_OK)
        *out = m->version;
    return status;
}

tn_status tm_step(tm_manager *m) {
    m->reaped = 0;
    if (m->guard)
        return tm__fail(m, TN_ERR_REENTRANCY);
    return tm__reap(m);
}

/* ---- Leases ---------------------------------------------------------------------------------- */

/* M128: what is checked before any state is touched. */
static tn_status check_collection(tm_manager *m, const tn_handle *handles, size_t count) {
    if (!handles && count)
        return tm__fail(m, TN_ERR_KIND);
    for (size_t i = 0; i < count; i++)
        if (!handles[i].type)
            return tm__fail(m, TN_ERR_KIND);
    return count ? TN_OK : tm__fail(m, TN_ERR_VALUE);
}

/* M129, M132: the handles one by one; all must be resident. */
static tn_status collect(tm_manager *m, const tn_handle *handles, size_t count, tn_location at,
                         tn_handle *out, size_t *out_count) {
    *out_count = 0;
    for (size_t i = 0; i < count; i++) {
        tm_value *v;
        tn_status status = tm__resolve(m, handles[i], &v);
        if (status != TN_OK)
            return status;
        if (!tm_resident(v, at))
            return tm__fail_handle(m, TN_ERR_UNAVAILABLE, handles[i], at);
        bool seen = false;
        for (size_t k = 0; k < *out_count; k++)
            seen |= tm_same_handle(out[k], handles[i]);
        tm__check(seen || *out_count < TM_HANDLES, "handles");
        if (!seen)
            out[(*out_count)++] = handles[i];
    }
    return TN_OK;
}

static tn_location plain(tn_location at) { return tm__host(at) ? (tn_location){at.kind, 0} : at; }

tn_status tm_acquire(tm_manager *m, const tn_handle *handles, size_t count, tn_location at,
                     tn_stream stream, tm_lease **out) {
    tn_status status = check_collection(m, handles, count);
    if (status == TN_OK)
        status = tm__entry(m);
    if (status == TN_OK)
        status = tm__location(m, at);
    if (status != TN_OK)
        return status;
    if (at.kind == TN_LOCATION_CUDA && !stream)
        return tm__fail(m, TN_ERR_VALUE);
    tm__check(m->lease_count < TM_LIFETIMES, "leases");
    tm_lease *l = &m->leases[m->lease_count];
    memset(l, 0, sizeof *l);
    status = tm__reap(m);
    if (status == TN_OK && stream)
        status = tm__stream(m, stream, at);
    if (status == TN_OK)
        status = collect(m, handles, count, at, l->handles, &l->handle_count);
    if (status != TN_OK)
        return status;
    l->manager = m;
    l->at = plain(at);
    l->state = TM_ACTIVE;
    l->open = true;
    if (stream)
        l->streams[l->stream_count++] = stream;
    for (size_t i = 0; i < l->handle_count; i++)
        leased(l, i)->uses++;
    m->lease_count++;
    m->version++;
    *out = l;
    return TN_OK;
}

tn_status tm_lookup(tm_lease *l, tn_handle handle, tm_materialization **out) {
    tm_manager *m = l->manager;
    if (!l->open)
        return tm__fail(m, TN_ERR_LIFETIME_CLOSED);
    for (size_t i = 0; i < l->handle_count; i++) {
        if (!tm_same_handle(l->handles[i], handle))
            continue;
        if (m->guard)
            return tm__fail(m, TN_ERR_REENTRANCY);
        if (l->state != TM_ACTIVE) /* M146, M150 */
            return tm__fail_handle(m, TN_ERR_UNAVAILABLE, handle, tn_location_none());
        *out = leased(l, i);
        return TN_OK;
    }
    return tm__fail(m, TN_ERR_LOOKUP);
}

tn_status tm_add_stream(tm_lease *l, tn_stream stream) {
    if (!l->open || l->state == TM_PENDING) /* its events are recorded already: M146 */
        return tm__fail(l->manager, TN_ERR_LIFETIME_CLOSED);
    if (l->at.kind != TN_LOCATION_CUDA)
        return tm__fail(l->manager, TN_ERR_VALUE);
    tn_status status = tm__stream(l->manager, stream, l->at);
    if (status != TN_OK)
        return status;
    for (size_t i = 0; i < l->stream_count; i++)
        if (l->streams[i] == stream)
            return TN_OK;
    tm__check(l->stream_count < TM_LEASE_STREAMS, "streams of a lease");
    l->streams[l->stream_count++] = stream;
    return TN_OK;
}

static void end_uses(tm_lease *l, uint32_t state) {
    for (size_t i = 0; i < l->handle_count; i++) {
        leased(l, i)->uses--;
        leased(l, i)->pendings += state == TM_PENDING;
    }
    l->state = state;
    l->open = false;
    l->manager->version++;
}

/* M144, M145 */
static tn_status release_by_waiting(tm_lease *l) {
    tm_manager *m = l->manager;
    const tm_fault *first = NULL;
    for (size_t i = 0; i < l->stream_count; i++) {
        const tm_fault *fault = tm_world_call(m->world, TN_SIM_STREAM_SYNCHRONIZE);
        if (!fault)
            tm__wait_stream(m->world, l->streams[i]);
        first = first ? first : fault;
    }
    if (first)
        return tm__fail_fault(m, first);
    m->diagnostics[TN_DIAGNOSTIC_RELEASE_FALLBACK]++;
    end_uses(l, TM_ENDED);
    return TN_OK;
}

tn_status tm_release(tm_lease *l, uint32_t flags) {
    tm_manager *m = l->manager;
    if (flags & ~(uint32_t)TN_RELEASE_WAIT)
        return tm__fail(m, TN_ERR_VALUE);
    if (!l->open)
        return TN_OK;
    if (m->guard)
        return tm__fail(m, TN_ERR_REENTRANCY);
    if (l->state != TM_ACTIVE) { /* M146, M150 */
        l->open = false;
        return TN_OK;
    }
    if (l->at.kind != TN_LOCATION_CUDA) {
        end_uses(l, TM_ENDED);
        return TN_OK;
    }
    uint64_t done_at = m->world->now;
    for (size_t i = 0; i < l->stream_count; i++) {
        if (tm_world_call(m->world, TN_SIM_EVENT_CREATE) ||
            tm_world_call(m->world, TN_SIM_EVENT_RECORD))
            return release_by_waiting(l);
        uint64_t busy = tm_world_find(m->world, l->streams[i])->busy_until;
        done_at = busy > done_at ? busy : done_at;
    }
    end_uses(l, TM_PENDING);
    l->done_at = done_at;
    if (!(flags & TN_RELEASE_WAIT))
        return TN_OK;
    const tm_fault *fault = tm_world_call(m->world, TN_SIM_EVENT_SYNCHRONIZE);
    if (fault) {
        l->open = true; /* M146 */
        return tm__fail_fault(m, fault);
    }
    m->world->now = done_at;
    tm__complete(l);
    return TN_OK;
}

/* ---- Holds ----------------------------------------------------------------------------------- */

static tm_materialization *held(tm_hold *h, size_t index) {
    return tm_resident(tm_find(h->manager, h->handles[index]), h->at);
}

tn_status tm_hold_take(tm_manager *m, const tn_handle *handles, size_t count, tn_location at,
                       tm_hold **out) {
    tn_status status = check_collection(m, handles, count);
    if (status == TN_OK)
        status = tm__entry(m);
    if (status == TN_OK)
        status = tm__location(m, at);
    if (status == TN_OK)
        status = tm__reap(m);
    if (status != TN_OK)
        return status;
    tm__check(m->hold_count < TM_LIFETIMES, "holds");
    tm_hold *h = &m->holds[m->hold_count];
    memset(h, 0, sizeof *h);
    status = collect(m, handles, count, at, h->handles, &h->handle_count);
    if (status != TN_OK)
        return status;
    h->manager = m;
    h->at = plain(at);
    h->state = TM_ACTIVE;
    h->open = true;
    for (size_t i = 0; i < h->handle_count; i++)
        held(h, i)->holds++;
    m->hold_count++;
    m->version++;
    *out = h;
    return TN_OK;
}

tn_status tm_hold_release(tm_hold *h) {
    tm_manager *m = h->manager;
    if (!h->open)
        return TN_OK;
    if (m->guard)
        return tm__fail(m, TN_ERR_REENTRANCY);
    h->open = false;
    if (h->state != TM_ACTIVE) /* M153: after a forced close */
        return TN_OK;
    h->state = TM_ENDED;
    for (size_t i = 0; i < h->handle_count; i++)
        held(h, i)->holds--;
    m->version++;
    return TN_OK;
}

/* ---- Reservations ---------------------------------------------------------------------------- */

static bool blank(const char *text) { return text[strspn(text, " \t\n\v\f\r")] == 0; }

tn_status tm_reserve(tm_manager *m, tn_location at, uint64_t bytes, const char *label,
                     tm_reservation **out) {
    if (bytes > INT64_MAX)
        return tm__fail(m, TN_ERR_VALUE);
    if (!label)
        return tm__fail(m, TN_ERR_KIND);
    if (blank(label) || strlen(label) > 255)
        return tm__fail(m, TN_ERR_VALUE);
    tn_status status = tm__entry(m);
    if (status == TN_OK)
        status = tm__location(m, at);
    if (status == TN_OK)
        status = tm__admit(m, at, bytes);
    if (status != TN_OK)
        return status;
    tm_place *place = tm__track(m, at);
    place->reserved += bytes;
    tm__raise(place);
    tm__check(m->reservation_count < TM_LIFETIMES, "reservations");
    tm_reservation *r = &m->reservations[m->reservation_count++];
    memset(r, 0, sizeof *r);
    r->manager = m;
    r->state = TM_ACTIVE;
    r->open = true;
    r->at = place->at;
    r->bytes = bytes;
    snprintf(r->label, sizeof r->label, "%s", label);
    m->version++;
    *out = r;
    return TN_OK;
}

tn_status tm_reservation_release(tm_reservation *r) {
    tm_manager *m = r->manager;
    if (!r->open)
        return TN_OK;
    if (m->guard)
        return tm__fail(m, TN_ERR_REENTRANCY);
    r->open = false;
    if (r->state != TM_ACTIVE)
        return TN_OK;
    r->state = TM_ENDED;
    tm_place_at(m, r->at)->reserved -= r->bytes;
    m->version++;
    return TN_OK;
}
