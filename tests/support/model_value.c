/* SPDX-License-Identifier: MIT */
/* The reference model: measures, checks of payloads, adopt, register. */
#include <string.h>

#include "model.h"
#include "model_internal.h"

/* ---- Measures -------------------------------------------------------------------------------- */

static bool same_device(tn_location a, tn_location b) {
    return tm__host(a) ? tm__host(b) : tm_same_at(a, b);
}

tn_status tm_measure(const tm_payload *p, tm_measured *out) {
    memset(out, 0, sizeof *out);
    if (p->field_count == 0)
        return TN_ERR_PAYLOAD;
    out->at = p->fields[0].at;
    out->neutral = tm__host(out->at);
    if (out->neutral)
        out->at = tn_location_pageable();
    for (size_t i = 0; i < p->field_count; i++) {
        const tm_field *f = &p->fields[i];
        if (!same_device(f->at, p->fields[0].at))
            return TN_ERR_PAYLOAD; /* M27 */
        out->logical += f->logical;
        if (f->bytes == 0)
            continue;
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++) {
            seen = p->fields[k].bytes && p->fields[k].base == f->base;
            if (seen && p->fields[k].bytes != f->bytes)
                return TN_ERR_PAYLOAD;
        }
        if (!seen)
            out->storage += f->bytes;
        if (tm__host(f->at)) { /* M28 */
            if (out->neutral)
                out->at = f->at;
            else if (!tm_same_at(out->at, f->at))
                out->at = tn_location_none();
            out->neutral = false;
        }
    }
    return TN_OK;
}

static uint64_t ceiling(const tm_measured *x) {
    return x->logical > x->storage ? x->logical : x->storage;
}

/* M58 */
static bool agrees(const tm_measured *x, tn_location at) {
    return x->neutral ? tm__host(at) : x->at.kind && tm_same_at(x->at, at);
}

/* M75, M95: type, agreement, logical bytes, ceiling. */
tn_status tm__check_fit(tm_manager *m, const tn_value_spec *spec, const tm_payload *p,
                        const tm_measured *x, tn_location at) {
    const tn_value_type *type = p->type;
    while (type && type != spec->type)
        type = type->super;
    if (!type || !agrees(x, at))
        return tm__fail(m, TN_ERR_MATERIALIZATION);
    if (x->logical == spec->logical_bytes && ceiling(x) <= spec->storage_bytes)
        return TN_OK;
    bool logical = x->logical != spec->logical_bytes;
    tm__fail(m, TN_ERR_MATERIALIZATION);
    m->error.expected = logical ? spec->logical_bytes : spec->storage_bytes;
    m->error.actual = logical ? x->logical : ceiling(x);
    return TN_ERR_MATERIALIZATION;
}

static bool shares(const tm_payload *a, const tm_payload *b) {
    for (size_t i = 0; i < a->field_count; i++)
        for (size_t k = 0; k < b->field_count; k++)
            if (a->fields[i].bytes && b->fields[k].bytes && a->fields[i].base == b->fields[k].base)
                return true;
    return false;
}

/* M64, M65 */
tn_status tm__check_independent(tm_manager *m, const tm_payload *p) {
    tn_owner owners[TN_ERROR_OWNERS_MAX];
    uint64_t count = 0;
    for (size_t i = 0; i < m->value_count; i++)
        for (size_t k = 0; k < m->values[i].count; k++) {
            if (!shares(p, &m->values[i].at[k].payload))
                continue;
            if (count < TN_ERROR_OWNERS_MAX)
                owners[count] = (tn_owner){m->values[i].handle, m->values[i].at[k].at};
            count++;
        }
    if (count == 0)
        return TN_OK;
    tm__fail(m, TN_ERR_OWNERSHIP);
    m->error.owner_count = count;
    for (uint64_t i = 0; i < count && i < TN_ERROR_OWNERS_MAX; i++)
        m->error.owners[i] = owners[i];
    return TN_ERR_OWNERSHIP;
}

/* ---- Install and remove ---------------------------------------------------------------------- */

void tm__install(tm_manager *m, tm_value *v, tn_location at, const tm_payload *p, uint64_t actual) {
    tm_place *place = tm__track(m, at);
    tm__check(v->count < TM_LOCATIONS, "materializations");
    tm_materialization *x = &v->at[v->count++];
    memset(x, 0, sizeof *x);
    x->at = place->at;
    x->actual = actual;
    x->payload = *p;
    place->used += v->spec.storage_bytes;
    tm__raise(place);
    m->version++;
}

void tm__destroy_payload(tm_manager *m) { m->world->live--; }

void tm__remove(tm_manager *m, tm_value *v, tn_location at) {
    tm_materialization *x = tm_resident(v, at);
    size_t index = (size_t)(x - v->at);
    memmove(x, x + 1, (v->count - index - 1) * sizeof *x);
    v->count--;
    tm_place_at(m, at)->used -= v->spec.storage_bytes;
    m->version++;
    tm__destroy_payload(m);
}

static tm_value *new_value(tm_manager *m, const tn_value_spec *spec) {
    tm__check(m->value_count < TM_VALUES, "values");
    tm_value *v = &m->values[m->value_count++];
    memset(v, 0, sizeof *v);
    v->spec = *spec;
    v->spec.size = sizeof v->spec;
    v->handle = (tn_handle){m->id, m->next_index++, spec->type};
    return v;
}

/* ---- Adopt and register ---------------------------------------------------------------------- */

static tn_status reservation_fits(tm_manager *m, tm_reservation *r, tn_location at,
                                  uint64_t charge) {
    if (r->state != TM_ACTIVE) /* it names nothing any longer, not even its manager */
        return tm__fail(m, TN_ERR_LIFETIME_CLOSED);
    if (r->manager != m || !tm_same_at(r->at, at))
        return tm__fail(m, TN_ERR_VALUE);
    if (r->bytes >= charge)
        return TN_OK;
    tm__fail(m, TN_ERR_BUDGET);
    m->error.at = at;
    m->error.budget_bytes = r->bytes; /* the reservation is the budget here */
    m->error.requested_bytes = charge;
    m->error_free &= ~(uint32_t)TM_FREE_AT;
    return TN_ERR_BUDGET;
}

static tn_status adopt(tm_manager *m, const tm_payload *p, tn_location at, uint32_t mode,
                       tm_reservation *r, tn_handle *out) {
    if (!p->type || !p->data)
        return tm__fail(m, TN_ERR_KIND);
    tn_status status = tm__entry(m);
    if (status == TN_OK)
        status = tm__reap(m);
#ifndef TM_ASIS_P1
    if (status == TN_OK && at.kind)
        status = tm__location(m, at);
#endif
    if (status != TN_OK)
        return status;

    tm_measured x;
    const tm_fault *fault = tm_world_call(m->world, TM_FAULT_MEASURE);
    if (fault)
        return tm__fail_fault(m, fault);
    if (tm_measure(p, &x) != TN_OK)
        return tm__fail(m, TN_ERR_PAYLOAD);
    if (!at.kind) { /* M57 */
        if (!x.at.kind)
            return tm__fail(m, TN_ERR_MATERIALIZATION);
        at = x.at;
        status = tm__location(m, at);
        if (status != TN_OK)
            return status;
    }
#ifdef TM_ASIS_P1
    status = tm__location(m, at);
    if (status != TN_OK)
        return status;
#endif
    if (!agrees(&x, at))
        return tm__fail(m, TN_ERR_MATERIALIZATION);
    if (mode > TN_REPLICABLE)
        return tm__fail(m, TN_ERR_KIND);

    tn_value_spec spec = {sizeof spec, p->type, x.logical,
                          ceiling(&x), mode,    TN_MUST_PRESERVE}; /* M37 */
#ifdef TM_ASIS_P2
    if (r && (status = tm__check_independent(m, p)) != TN_OK)
        return status;
#endif
    status =
        r ? reservation_fits(m, r, at, spec.storage_bytes) : tm__admit(m, at, spec.storage_bytes);
    if (status == TN_OK)
        status = tm__check_independent(m, p);
    if (status != TN_OK)
        return status;
    if (r) {
        r->bytes -= spec.storage_bytes;
        tm_place_at(m, at)->reserved -= spec.storage_bytes;
    }
    tm_value *v = new_value(m, &spec);
    tm__install(m, v, at, p, x.storage);
    *out = v->handle;
    return TN_OK;
}

tn_status tm_adopt(tm_manager *m, const tm_payload *p, tn_location at, uint32_t mode,
                   tn_handle *out) {
    return adopt(m, p, at, mode, NULL, out);
}

tn_status tm_adopt_reserved(tm_manager *m, const tm_payload *p, tn_location at, uint32_t mode,
                            tm_reservation *reservation, tn_handle *out) {
    return adopt(m, p, at, mode, reservation, out);
}

tn_status tm_register(tm_manager *m, const tn_value_spec *spec, tm_load *load, void *context,
                      tn_location at, tn_handle *out) {
    if (!spec || !spec->type) /* M34, in its order */
        return tm__fail(m, TN_ERR_KIND);
    if (spec->logical_bytes > INT64_MAX || spec->storage_bytes > INT64_MAX ||
        spec->storage_bytes < spec->logical_bytes)
        return tm__fail(m, TN_ERR_VALUE);
    if (spec->replica_mode > TN_REPLICABLE || spec->recoverability > TN_RECONSTRUCTIBLE)
        return tm__fail(m, TN_ERR_KIND);
    if (!load)
        return tm__fail(m, TN_ERR_KIND);
    tn_status status = tm__entry(m);
    if (status == TN_OK)
        status = tm__reap(m);
    if (!at.kind)
        at = tn_location_pageable();
    if (status == TN_OK)
        status = tm__location(m, at);
    if (status != TN_OK)
        return status;
    if (spec->recoverability != TN_RECONSTRUCTIBLE)
        return tm__fail(m, TN_ERR_VALUE);
    tm_value *v = new_value(m, spec);
    v->source_at = tm__track(m, at)->at;
    v->has_source = true;
    v->load = load;
    v->context = context;
    m->version++;
    *out = v->handle;
    return TN_OK;
}
