/* SPDX-License-Identifier: MIT */
/*
 * Requests (C35..C42).
 */
#include <stdlib.h>
#include <string.h>

#include "controller/controller_priv.h"

/* ---- Form ------------------------------------------------------------------------------- */

static tn_status requirement_form(const tn_requirement *r) {
    tn_location at;
    tn_status status = tn__handle_form(r->handle);
    return status == TN_OK ? tn__location_in(r->at, &at) : status;
}

static int by_endpoint(const void *a, const void *b) {
    const tn_requirement *x = a, *y = b;
    uint64_t keys[2][4] = {{x->handle.manager, x->handle.index, tn__loc_of(x->at),
                            (uint64_t)(uintptr_t)x->handle.type},
                           {y->handle.manager, y->handle.index, tn__loc_of(y->at),
                            (uint64_t)(uintptr_t)y->handle.type}};
    for (int i = 0; i < 4; i++)
        if (keys[0][i] != keys[1][i])
            return keys[0][i] < keys[1][i] ? -1 : 1;
    return 0;
}

/* C38. */
static tn_status check_distinct(const tn_requirement *requirements, size_t count) {
    tn_requirement *sorted = tn__alloc(count * sizeof *sorted);
    if (!sorted)
        return tn__no_memory();
    memcpy(sorted, requirements, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_endpoint);
    tn_status status = TN_OK;
    for (size_t i = 1; i < count && status == TN_OK; i++)
        if (by_endpoint(&sorted[i - 1], &sorted[i]) == 0)
            status = tn__fail(TN_ERR_VALUE, "value %llu is required twice at one location",
                              (unsigned long long)sorted[i].handle.index);
    tn__free(sorted);
    return status;
}

static tn_status form(const tn_request_spec *spec) {
    tn_status status = tn__check_text(spec->name, "the request's name");
    if (status == TN_OK && spec->requirement_count > 0 && !spec->requirements)
        status = tn__fail(TN_ERR_KIND, "the requirements are NULL");
    for (size_t i = 0; i < spec->requirement_count && status == TN_OK; i++)
        status = requirement_form(&spec->requirements[i]);
    if (status == TN_OK && spec->requirement_count == 0)
        status = tn__fail(TN_ERR_VALUE, "a request requires something");
    if (status == TN_OK && spec->requirement_count > UINT32_MAX)
        status = tn__fail(TN_ERR_VALUE, "too many requirements");
    return status;
}

/* ---- The object ------------------------------------------------------------------------- */

static size_t location_index(tn_request *r, tn_location at) {
    size_t i = 0;
    while (i < r->location_count && !tn__location_same(r->locations[i], at))
        i++;
    if (i == r->location_count)
        r->locations[r->location_count++] = at;
    return i;
}

/* Requirements by location, locations in order of first mention (C136). */
static bool group(tn_request *r) {
    size_t distinct = r->count < TN__LEDGER_COUNT ? r->count : TN__LEDGER_COUNT;
    r->locations = tn__alloc(distinct * sizeof *r->locations);
    r->order = tn__alloc(r->count * sizeof *r->order);
    if (!r->locations || !r->order)
        return false;
    for (size_t i = 0; i < r->count; i++)
        (void)location_index(r, r->requirements[i].at);
    r->first = tn__alloc((r->location_count + 1) * sizeof *r->first);
    if (!r->first)
        return false;
    size_t n = 0;
    for (size_t k = 0; k < r->location_count; k++) {
        r->first[k] = n;
        for (size_t i = 0; i < r->count; i++)
            if (tn__location_same(r->requirements[i].at, r->locations[k]))
                r->order[n++] = i;
    }
    r->first[r->location_count] = n;
    return true;
}

static void destroy(tn_request *r) {
    tn_plan_destroy(r->reservations);
    tn__free(r->requirements);
    tn__free(r->locations);
    tn__free(r->first);
    tn__free(r->order);
    tn__free(r);
}

static tn_status fill(tn_request *r, const tn_request_spec *spec) {
    tn_plan_spec plan = TN_PLAN_SPEC_INIT;
    plan.name = spec->name;
    plan.reservations = spec->reservations;
    plan.reservation_count = spec->reservation_count;
    tn_status status = tn_plan_create(&plan, &r->reservations); /* checks them, too */
    if (status != TN_OK)
        return status;
    r->requirements = tn__alloc(spec->requirement_count * sizeof *r->requirements);
    if (!r->requirements)
        return tn__no_memory();
    for (size_t i = 0; i < spec->requirement_count; i++) {
        r->requirements[i] = spec->requirements[i];
        r->requirements[i].at = tn__location_normal(r->requirements[i].at);
    }
    r->count = spec->requirement_count;
    return group(r) ? TN_OK : tn__no_memory();
}

tn_status tn_request_create(const tn_request_spec *given, tn_request **out) {
    tn_request_spec spec;
    if (!out)
        return tn__fail(TN_ERR_KIND, "the output is NULL");
    tn_status status = tn__struct_in(&spec, sizeof spec, offsetof(tn_request_spec, reservations),
                                     given, "tn_request_spec");
    if (status == TN_OK)
        status = form(&spec);
    if (status == TN_OK)
        status = check_distinct(spec.requirements, spec.requirement_count);
    if (status != TN_OK)
        return status;
    tn_request *r = tn__zalloc(sizeof *r);
    if (!r)
        return tn__no_memory();
    tn__store_rlx(&r->refs, 1); /* [no-order] not shared yet */
    status = fill(r, &spec);
    if (status != TN_OK) {
        destroy(r);
        return status;
    }
    *out = r;
    return TN_OK;
}

void tn__request_keep(const tn_request *request) {
    (void)tn__add_rlx(&((tn_request *)request)->refs, 1); /* [request-refs] by a holder */
}

void tn__request_let_go(const tn_request *request) {
    tn_request *own = (tn_request *)request;
    /* [request-refs] acq_rel. Pairs: itself on other threads. Orders: every use of the request ->
     * its freeing. Without: it is freed while another thread still reads it. */
    if (tn__sub_acq_rel(&own->refs, 1) == 1)
        destroy(own);
}

void tn_request_destroy(tn_request *request) {
    if (request)
        tn__request_let_go(request);
}

/* ---- Reading ---------------------------------------------------------------------------- */

const char *tn_request_name(const tn_request *request) {
    return request ? tn_plan_name(request->reservations) : NULL;
}

tn_status tn_request_requirements(const tn_request *request, const tn_requirement **out,
                                  size_t *out_count) {
    if (!request || !out || !out_count)
        return tn__fail(TN_ERR_KIND, "an argument is NULL");
    *out = request->requirements;
    *out_count = request->count;
    return TN_OK;
}

tn_status tn_request_reservations(const tn_request *request, const tn_reservation_spec **out,
                                  size_t *out_count) {
    if (!request)
        return tn__fail(TN_ERR_KIND, "an argument is NULL");
    return tn_plan_reservations(request->reservations, out, out_count);
}
