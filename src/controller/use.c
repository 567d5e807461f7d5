/* SPDX-License-Identifier: MIT */
/*
 * Uses: life, streams, reading (C131..C146).
 */
#include <stdio.h>
#include <string.h>

#include "controller/use_priv.h"

/* ---- Streams (C132..C134) --------------------------------------------------------------- */

static tn_status check_streams(const tn_controller *c, const tn_transfer_stream *streams,
                               size_t count, const char *what) {
    if (count > 0 && !streams)
        return tn__fail(TN_ERR_KIND, "the %s streams are NULL", what);
    for (size_t i = 0; i < count; i++) {
        tn_location at;
        tn_stream_info info;
        tn_status status = tn__location_in(streams[i].at, &at);
        if (status == TN_OK && at.kind != TN_LOCATION_CUDA)
            status = tn__fail(TN_ERR_VALUE, "a %s stream for a host location", what);
        if (status == TN_OK)
            status = tn__driver_check_stream(c->of.driver, streams[i].stream, at.index, &info);
        for (size_t k = 0; k < i && status == TN_OK; k++)
            if (tn__location_same(streams[k].at, at))
                status = tn__fail(TN_ERR_VALUE, "two %s streams for one location", what);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static const tn_transfer_stream *stream_for(const tn_use_options *o, tn_location at) {
    for (size_t i = 0; i < o->consumer_count; i++)
        if (tn__location_same(o->consumers[i].at, at))
            return &o->consumers[i];
    return NULL;
}

static void list(char *text, size_t room, const char *what, tn_location at) {
    char name[TN_LOCATION_NAME_MAX];
    size_t n = strlen(text);
    snprintf(text + n, room - n, "%s %s %s", n ? "," : "", what, tn__location_text(at, name));
}

/* C133: exactly the CUDA locations of the request. */
static tn_status check_cover(const tn_request *r, const tn_use_options *o) {
    char text[160] = "";
    for (size_t k = 0; k < r->location_count; k++)
        if (r->locations[k].kind == TN_LOCATION_CUDA && !stream_for(o, r->locations[k]))
            list(text, sizeof text, "missing", r->locations[k]);
    for (size_t i = 0; i < o->consumer_count; i++) {
        bool found = false;
        for (size_t k = 0; k < r->location_count && !found; k++)
            found = tn__location_same(r->locations[k], o->consumers[i].at);
        if (!found)
            list(text, sizeof text, "unexpected", o->consumers[i].at);
    }
    return *text ? tn__fail(TN_ERR_VALUE, "consumer streams:%s", text) : TN_OK;
}

/* ---- Life ------------------------------------------------------------------------------- */

static void use_free(tn_use *use) {
    tn__request_let_go(use->request);
    tn__free(use->consumers);
    tn__free(use->transfers);
    tn__free(use->handles);
    tn__free(use->leases);
    tn__free(use->reservations);
    tn__free(use->hot.leases);
    tn__free(use->hot.reservations);
    tn__free(use);
}

static bool fill(tn_use *use, const tn_use_options *o) {
    const tn_request *r = use->request;
    if (tn_request_reservations(r, &use->reserved_specs, &use->reservation_count) != TN_OK)
        return false;
    use->consumers = tn__zalloc(r->location_count * sizeof *use->consumers);
    use->leases = tn__zalloc(r->location_count * sizeof *use->leases);
    use->handles = tn__alloc(r->count * sizeof *use->handles);
    use->transfers = tn__alloc(o->transfer_count * sizeof *use->transfers);
    use->reservations = tn__alloc(use->reservation_count * sizeof *use->reservations);
    if (!use->consumers || !use->leases || !use->handles || !use->transfers || !use->reservations)
        return false;
    for (size_t k = 0; k < r->location_count; k++) {
        const tn_transfer_stream *s = stream_for(o, r->locations[k]);
        use->consumers[k] = s ? s->stream : NULL;
    }
    for (size_t i = 0; i < r->count; i++)
        use->handles[i] = r->requirements[r->order[i]].handle;
    if (o->transfer_count)
        memcpy(use->transfers, o->transfers, o->transfer_count * sizeof *use->transfers);
    use->transfer_count = o->transfer_count;
    return true;
}

/* A CUDA location is not for the hot path, nor one that the driver does not have (which the slow way
 * reports). */
static bool hot_reaches(const tn_use *use) {
    bool reaches = use->controller->binding == TN_BIND_PLACEMENT;
    tn_location at;
    for (size_t k = 0; k < use->request->location_count; k++)
        reaches &= use->request->locations[k].kind != TN_LOCATION_CUDA;
    for (size_t i = 0; i < use->reservation_count; i++)
        reaches = reaches && tn__driver_check_location(use->controller->of.driver,
                                                       use->reserved_specs[i].at, &at) == TN_OK;
    return reaches;
}

/* What a hit takes, prepared. False: no memory. */
static bool prepare(tn_use *use) {
    const tn_request *r = use->request;
    const tn__controlled *of = &use->controller->of;
    use->hot_ready = hot_reaches(use);
    if (!use->hot_ready)
        return true;
    use->hot = (tn__hot_bundle){of->id,
                                tn__life_gate(of->life),
                                of->store,
                                tn__alloc(r->location_count * sizeof(tn__hot_lease)),
                                r->location_count,
                                tn__alloc(use->reservation_count * sizeof(tn__hot_reservation)),
                                use->reservation_count};
    if (!use->hot.leases || !use->hot.reservations)
        return false;
    for (size_t k = 0; k < r->location_count; k++)
        use->hot.leases[k] = (tn__hot_lease){use->handles + r->first[k],
                                             r->first[k + 1] - r->first[k], r->locations[k].kind};
    for (size_t i = 0; i < use->reservation_count; i++)
        tn__hot_reservation_init(&use->hot.reservations[i], of->store, use->reserved_specs[i].at,
                                 use->reserved_specs[i].bytes, use->reserved_specs[i].label);
    return true;
}

static tn_status create(tn_controller *c, const tn_request *request, const tn_use_options *o,
                        tn_use **out) {
    tn_use *use = tn__zalloc(sizeof *use);
    if (!use)
        return tn__no_memory();
    tn__request_keep(request);
    use->controller = c;
    use->request = request;
    if (!fill(use, o) || !prepare(use)) {
        use_free(use);
        return tn__no_memory();
    }
    tn__lock(&c->lock);
    use->next = c->uses;
    c->uses = use;
    tn__unlock(&c->lock);
    *out = use;
    return TN_OK;
}

tn_status tn_use_create(tn_controller *c, const tn_request *request, const tn_use_options *options,
                        tn_use **out) {
    tn_use_options o = TN_USE_OPTIONS_INIT;
    if (!c || !request || !out)
        return tn__fail(TN_ERR_KIND, "an argument is NULL");
    tn_status status = TN_OK;
    if (options)
        status = tn__struct_in(&o, sizeof o, sizeof(size_t) + 1, options, "tn_use_options");
    if (status == TN_OK)
        status = tn__life_enter_parent(c->of.life);
    if (status == TN_OK)
        status = check_streams(c, o.consumers, o.consumer_count, "consumer");
    if (status == TN_OK)
        status = check_cover(request, &o);
    if (status == TN_OK)
        status = check_streams(c, o.transfers, o.transfer_count, "transfer");
    return status == TN_OK ? create(c, request, &o, out) : status;
}

static void forget_entry(tn_use *use) {
    if (use->lease_count > 0 || use->reserved > 0 || use->scope)
        tn__use_let_go(use);
    tn__use_forget(use);
}

tn_status tn_use_reset(tn_use *use) {
    if (!use)
        return tn__fail(TN_ERR_KIND, "the use is NULL");
    if (use->state == TN__USE_ENTERED)
        return tn__fail(TN_ERR_MISUSE, "the use is entered");
    if (use->scope || use->decision || use->lease_count > 0 || use->reserved > 0)
        forget_entry(use);
    use->state = TN__USE_FRESH;
    use->was_entered = use->hit = false;
    use->redecisions = 0;
    return TN_OK;
}

void tn_use_destroy(tn_use *use) {
    if (!use)
        return;
    tn_controller *c = use->controller;
    if (use->state == TN__USE_ENTERED)
        (void)!tn_use_exit(use);
    forget_entry(use);
    tn__lock(&c->lock);
    tn__use_collect(use);
    tn_use **at = &c->uses;
    while (*at != use)
        at = &(*at)->next;
    *at = use->next;
    tn__unlock(&c->lock);
    use_free(use);
}

/* ---- Values (C138, C139) ---------------------------------------------------------------- */

static tn_status check_entered(const tn_use *use, const void *out) {
    if (!use || !out)
        return tn__fail(TN_ERR_KIND, "an argument is NULL");
    if (use->state == TN__USE_ENTERED)
        return TN_OK;
    return use->was_entered ? tn__fail(TN_ERR_LIFETIME_CLOSED, "the use was exited")
                            : tn__fail(TN_ERR_MISUSE, "the use is not entered");
}

bool tn_use_active(const tn_use *use) { return use && use->state == TN__USE_ENTERED; }

tn_status tn_use_value(const tn_use *use, tn_handle handle, tn_location at, const void **out) {
    tn_status status = check_entered(use, out);
    if (status != TN_OK)
        return status;
    const tn_request *r = use->request;
    for (size_t k = 0; k < r->location_count; k++) {
        if (!tn__location_same(r->locations[k], at))
            continue;
        for (size_t i = r->first[k]; i < r->first[k + 1]; i++)
            if (tn_handle_equal(use->handles[i], handle))
                return tn__lease_lookup(&use->leases[k], handle, out);
    }
    return tn__fail(TN_ERR_LOOKUP, "this is no endpoint of the request");
}

tn_status tn_use_count(const tn_use *use, size_t *out) {
    tn_status status = check_entered(use, out);
    if (status == TN_OK)
        *out = use->request->count;
    return status;
}

tn_status tn_use_next(const tn_use *use, size_t *inout_cursor, tn_requirement *out_requirement,
                      const void **out, bool *out_more) {
    tn_status status = check_entered(use, out);
    if (status == TN_OK && (!inout_cursor || !out_requirement || !out_more))
        status = tn__fail(TN_ERR_KIND, "an argument is NULL");
    if (status != TN_OK)
        return status;
    const tn_request *r = use->request;
    *out_more = *inout_cursor < r->count;
    if (!*out_more)
        return TN_OK;
    const tn_requirement *next = &r->requirements[r->order[*inout_cursor]];
    status = tn_use_value(use, next->handle, next->at, out);
    if (status == TN_OK) {
        *out_requirement = *next;
        ++*inout_cursor;
    }
    return status;
}

/* A hit made them itself, a miss has them from its plan. */
tn_status tn_use_reservations(const tn_use *use, tn_reservation *out, size_t *inout_count) {
    if (!use || !inout_count || (*inout_count > 0 && !out))
        return tn__fail(TN_ERR_KIND, "an argument is NULL");
    if (use->state == TN__USE_ENTERED && use->scope)
        return tn_scope_reservations(use->scope, out, inout_count);
    size_t count = use->state == TN__USE_ENTERED ? use->reserved : 0;
    for (size_t i = 0; i < count && i < *inout_count; i++)
        out[i] = use->reservations[i];
    *inout_count = count;
    return TN_OK;
}

/* ---- Evidence (C137, C139, C144, C145) -------------------------------------------------- */

tn_status tn_use_read(const tn_use *use, tn_use_info *out) {
    if (!use)
        return tn__fail(TN_ERR_KIND, "the use is NULL");
    tn_status status = tn__struct_check_out(out, sizeof(size_t) + 1, "tn_use_info");
    if (status != TN_OK)
        return status;
    tn_use_info info = {.size = sizeof info,
                        .entered = use->state == TN__USE_ENTERED,
                        .hit = use->hit,
                        .redecisions = use->redecisions,
                        .epoch = use->epoch};
    tn__struct_out(out, &info, sizeof info);
    return TN_OK;
}

tn_status tn_use_decision(const tn_use *use, const tn_decision **out) {
    if (!use || !out)
        return tn__fail(TN_ERR_KIND, "an argument is NULL");
    if (!use->decision && !use->hit)
        return tn__fail(TN_ERR_MISUSE, "there is no decision yet");
    *out = use->decision;
    return TN_OK;
}

tn_status tn_use_report(const tn_use *use, const tn_plan_report **out) {
    if (!use || !out)
        return tn__fail(TN_ERR_KIND, "an argument is NULL");
    *out = NULL;
    return use->scope ? tn_scope_report(use->scope, out) : TN_OK;
}

tn_status tn_use_partial_report(const tn_use *use, const tn_plan_report **out) {
    if (!use || !out)
        return tn__fail(TN_ERR_KIND, "an argument is NULL");
    *out = NULL;
    return use->scope ? tn_scope_partial_report(use->scope, out) : TN_OK;
}

tn_status tn_use_exit_error(const tn_use *use, const tn_error **out) {
    if (!use || !out)
        return tn__fail(TN_ERR_KIND, "an argument is NULL");
    *out = NULL;
    return use->scope ? tn_scope_exit_error(use->scope, out) : TN_OK;
}
