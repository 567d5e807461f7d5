/* SPDX-License-Identifier: MIT */
/* Property test of the manager: payloads and sources, real ones and their descriptions for the
 * model. */
#include "manager_property.h"

#include <string.h>

#define UNCHECKED UINT64_MAX /* seed of contents that nobody checks: fields that overlap */

/* Of batch b, row w: always the same, so that rows may be written twice. */
static uint64_t row_seed(uint32_t b, uint32_t w) { return 1000 + b * 2 + w; }

static tm_field describe_field(const tt_field *f, const void *base) {
    tm_field out = {.base = base, .elem = f->elem ? f->elem : 8, .at = f->at};
    out.logical = f->count * out.elem;
    out.bytes = f->claimed_bytes ? f->claimed_bytes : f->backing_bytes;
    out.pieces = f->stride > 1 && f->count > 1 ? (uint32_t)f->count : 1;
    return out;
}

static void describe(tn_payload payload, uint64_t seed, tm_payload *out) {
    memset(out, 0, sizeof *out);
    out->type = payload.type;
    out->data = payload.data;
    out->seed = seed;
    out->field_count = tt_field_count(payload.data);
    for (size_t i = 0; i < out->field_count; i++) {
        tt_field f = tt_field_of(payload.data, i);
        out->fields[i] = describe_field(&f, tt_field_base(payload.data, i));
    }
}

/* ---- Payloads to adopt ----------------------------------------------------------------------- */

static const tm_payload *managed(side *s, const void *data) {
    for (size_t i = 0; i < s->model.value_count; i++)
        for (size_t k = 0; k < s->model.values[i].count; k++)
            if (s->model.values[i].at[k].payload.data == data)
                return &s->model.values[i].at[k].payload;
    return NULL;
}

/* One that this manager owns already: adopting it again must be refused. */
static tn_payload owned_one(side *s, uint32_t x, tm_payload *model) {
    for (size_t i = 0; i < s->model.value_count; i++) {
        tm_value *v = &s->model.values[(x + i) % s->model.value_count];
        for (size_t k = 0; k < v->count; k++) {
            const tm_payload *p = &v->at[k].payload;
            if (!p->data || !v->at[k].actual)
                continue;
            *model = *p;
            return (tn_payload){p->type, (void *)(uintptr_t)p->data};
        }
    }
    return (tn_payload){NULL, NULL};
}

static tt_field row_field(run *r, uint32_t b, uint32_t w) {
    return (tt_field){.count = 32, .elem = 1, .offset = w * 32, .backing = r->batches[b]};
}

/* A row of one batch, or one of each of the two batches at a location. */
static tn_payload rows(run *r, uint32_t x, tm_payload *model) {
    uint32_t b = x % RUN_BATCHES, w = x / RUN_BATCHES % 2;
    bool both = x / 16 % 4 == 3;
    tt_field fields[2] = {row_field(r, b, w), row_field(r, (b + LOCATIONS) % RUN_BATCHES, w)};
    tn_payload p = tt_make(tt_type(), r->driver, locations[b % LOCATIONS], fields, both ? 2 : 1);
    uint64_t seed = both ? UNCHECKED : row_seed(b, w); /* another field has another pattern */
    if (!both)
        tt_fill(p, seed);
    describe(p, seed, model);
    return p;
}

static size_t shape_fields(uint32_t shape, uint64_t bytes, tn_location at, tt_field *f) {
    uint64_t elem = bytes % 8 ? 1 : 8;
    bool host = at.kind != TN_LOCATION_CUDA;
    f[0] = f[1] = TT_DENSE(bytes / elem, elem);
    switch (shape) {
    case 7: /* two fields */
        return 2;
    case 8: /* two fields over one allocation: M26 */
        f[1].share = 1;
        return 2;
    case 9: /* a view */
        f[0].stride = 2;
        f[0].backing_bytes = bytes * 2;
        return 1;
    case 10:
        return 0;
    case 11: /* two devices */
        f[1].at = host ? tn_location_cuda(0) : tn_location_pageable();
        return 2;
    case 12: /* pinned and pageable */
        f[1].at = host ? locations[at.kind == TN_LOCATION_PAGEABLE] : at;
        return 2;
    case 13: /* two sizes of one allocation: M27 */
        f[1].share = 1;
        f[1].claimed_bytes = bytes ? bytes + 8 : 0;
        return 2;
    default:
        return 1;
    }
}

tn_payload make_payload(run *r, side *s, uint32_t x, tm_payload *model) {
    static const uint8_t sizes[8] = {32, 32, 64, 24, 8, 0, 40, 96};
    uint32_t shape = x % 16, rest = x / 16;
    if (shape == 14)
        return rows(r, rest, model);
    if (shape == 15)
        return owned_one(s, rest, model);
    const tn_value_type *type = rest % 8 == 1   ? tt_subtype()
                                : rest % 8 == 2 ? tt_other_type()
                                                : tt_type();
    tn_location at = choose_location(rest / 8);
    tt_field fields[2];
    size_t count = shape_fields(shape, sizes[rest / 64 % 8], at, fields);
    tn_payload p = tt_make(type, r->driver, at, fields, count);
    uint64_t seed = shape == 8 || shape == 13 ? UNCHECKED : x;
    if (seed != UNCHECKED)
        tt_fill(p, seed);
    describe(p, seed, model);
    return p;
}

void unmake_payload(run *r, side *s, tn_payload payload) {
    if (payload.data && !managed(s, payload.data)) {
        tt_free(payload);
        r->world.live--;
    }
}

/* ---- Sources --------------------------------------------------------------------------------- */

enum nest { NEST_NONE, NEST_IGNORE, NEST_PASS, NEST_OTHER };

/* What one call of a source does; the same for the real one and for the model. */
typedef struct deed {
    tn_status status;
    int64_t code;
    enum nest nest;
    bool nothing; /* no payload at all */
    const tn_value_type *type;
    tn_location at;
    size_t field_count;
    tt_field fields[2];
    uint64_t seed;
} deed;

static tt_field one_field(uint64_t bytes) {
    uint64_t elem = bytes % 8 ? 1 : 8;
    return TT_DENSE(bytes / elem, elem);
}

static void fail_deed(deed *d, uint32_t detail) {
    static const tn_status statuses[8] = {
        TN_ERR_SOURCE,      TN_ERR_SOURCE, TN_ERR_UNSUPPORTED, TN_ERR_HOST_MEMORY,
        TN_ERR_DEVICE_LOST, TN_ERR_VALUE,  TN_ERR_SYSTEM,      TN_ERR_MATERIALIZATION};
    d->status = statuses[detail % 8];
    d->code = 100 + detail;
}

static void odd_payload(deed *d, uint32_t detail, const tn_value_spec *spec) {
    switch (detail % 8) {
    case 0: /* too few bytes */
        d->fields[0] = one_field(spec->logical_bytes >= 8 ? spec->logical_bytes - 8 : 16);
        break;
    case 1: /* a view: fits if the ceiling is high enough */
    case 2:
        d->fields[0].stride = 2;
        d->fields[0].backing_bytes = spec->logical_bytes * 2;
        break;
    case 3:
        d->at = locations[(d->at.kind + detail / 8) % LOCATIONS];
        break;
    case 4:
        d->field_count = 0;
        break;
    case 5: /* two devices */
        d->fields[1] = d->fields[0];
        d->fields[1].at = d->at.kind == TN_LOCATION_CUDA ? locations[0] : locations[2];
        d->field_count = 2;
        break;
    case 6:
        d->type = tt_other_type();
        break;
    default:
        d->nothing = true;
    }
}

static void alias_deed(run *r, deed *d, uint32_t detail) {
    for (uint32_t b = 0; b < LOCATIONS; b++) {
        if (!tn_location_equal(locations[b], d->at))
            continue;
        uint32_t w = detail % 2, batch = detail / 2 % 2 ? b : b + LOCATIONS;
        d->fields[0] = row_field(r, batch, w);
        d->seed = row_seed(batch, w);
    }
}

static void plan_deed(source *src, uint64_t number, const tn_value_spec *spec, tn_location at,
                      deed *d) {
    uint32_t what = (uint32_t)(src->script >> (number % 4 * 4)) % 16;
    uint32_t detail = (uint32_t)(src->script >> (16 + number % 4 * 8)) % 256;
    memset(d, 0, sizeof *d);
    d->type = spec->type;
    d->at = at;
    d->seed = src->seed;
    d->field_count = 1;
    d->fields[0] = one_field(spec->logical_bytes);
    switch (what) {
    case 8:
        if (spec->type == tt_type())
            d->type = tt_subtype();
        break;
    case 9:
        fail_deed(d, detail);
        break;
    case 10:
    case 11:
        odd_payload(d, detail, spec);
        break;
    case 12:
        alias_deed(src->run, d, detail);
        break;
    case 13:
        d->nest = NEST_IGNORE;
        break;
    case 14:
        d->nest = NEST_PASS;
        break;
    case 15:
        d->nest = detail % 2 ? NEST_OTHER : NEST_NONE;
        break;
    default:
        break;
    }
}

static side *other_side(source *src) { return &src->run->sides[!src->manager]; }

static void check_request(source *src, const tn_load_request *q) {
    run *r = src->run;
    tm_value *v = tm_find(&r->sides[src->manager].model, q->handle);
    if (!v || q->spec.logical_bytes != v->spec.logical_bytes || q->spec.type != v->spec.type ||
        q->spec.storage_bytes != v->spec.storage_bytes || !tn_location_equal(q->at, v->source_at) ||
        q->driver != r->driver)
        differ(r, "a source was asked for something else than was registered");
}

static tn_status real_load(void *context, const tn_load_request *request, tn_load_result *result) {
    source *src = context;
    run *r = src->run;
    deed d;
    check_request(src, request);
    plan_deed(src, src->calls++, &request->spec, request->at, &d);
    src->last = NULL;
    if (d.nest == NEST_IGNORE || d.nest == NEST_PASS)
        nested_calls(r, &r->sides[src->manager], true);
    if (d.nest == NEST_OTHER) {
        uint64_t version;
        r->other_status = tn_manager_state_version(other_side(src)->library, &version);
    }
    if (d.nest == NEST_PASS) {
        uint64_t version;
        return tn_manager_state_version(r->sides[src->manager].library, &version);
    }
    if (d.status != TN_OK) {
        result->native_code = d.code;
        return d.status;
    }
    if (d.nothing)
        return TN_OK;
    tn_status status =
        tt_try_make(d.type, request->driver, d.at, d.fields, d.field_count, &result->payload);
    if (status != TN_OK) {
        result->native_code = tn_last_error()->native_code;
        return status;
    }
    tt_fill(result->payload, d.seed);
    src->last = result->payload.data;
    return TN_OK;
}

static void real_forget(void *context) {
    source *src = context;
    src->forgotten++;
}

/* A fresh field of the model, as tt_try_make() makes it; NULL fault: it is there. */
static const tm_fault *model_field(tm_world *w, const deed *d, size_t index, const void *base,
                                   tm_field *out) {
    tt_field f = d->fields[index];
    const tm_fault *fault = NULL;
    f.at = f.at.kind ? f.at : d->at;
    if (f.backing) {
        f.backing_bytes = 64;
        base = tt_backing_base(f.backing);
    } else if (!f.backing_bytes) {
        f.backing_bytes = f.count * (f.elem ? f.elem : 8);
    }
    if (!f.backing && f.backing_bytes && f.at.kind == TN_LOCATION_CUDA)
        fault = tm_world_call(w, TN_SIM_DEVICE_ALLOC);
    if (!f.backing && f.backing_bytes && f.at.kind == TN_LOCATION_PINNED)
        fault = tm_world_call(w, TN_SIM_PINNED_ALLOC);
    *out = describe_field(&f, base);
    return fault;
}

tn_status model_load(void *context, const tn_value_spec *spec, tn_location at, tm_payload *out,
                     int64_t *out_code) {
    source *src = context;
    run *r = src->run;
    deed d;
    plan_deed(src, src->model_calls++, spec, at, &d);
    if (d.nest == NEST_OTHER) {
        uint64_t version;
        tn_status status = tm_version(&other_side(src)->model, &version);
        if (status != r->other_status)
            differ(r, "inside a source the other manager said %s, the model %s",
                   tn_status_name(r->other_status), tn_status_name(status));
    }
    if (d.nest == NEST_PASS)
        return TN_ERR_REENTRANCY;
    *out_code = d.code;
    if (d.status != TN_OK || d.nothing)
        return d.status;
    out->type = d.type;
    out->seed = d.seed;
    out->field_count = d.field_count;
    for (size_t i = 0; i < d.field_count; i++) {
        /* Fresh memory: an address that nobody else names, the payload's own for the first field.
         */
        const void *base = src->last ? (const char *)src->last + i : (const char *)src + i;
        const tm_fault *fault = model_field(&r->world, &d, i, base, &out->fields[i]);
        if (!fault)
            continue;
        *out_code = fault->code;
        return fault->entry == TN_SIM_PINNED_ALLOC ? TN_ERR_PAYLOAD : (tn_status)fault->status;
    }
    out->data =
        src->last ? src->last : src; /* NULL would be no payload; the library's was not called */
    r->world.live++;
    return TN_OK;
}

void follow_vain_loads(run *r, side *s) {
    for (size_t i = 0; i < s->model.value_count; i++) {
        tm_value *v = &s->model.values[i];
        source *src = v->context;
        if (!v->has_source || src->calls == src->model_calls)
            continue;
        tm_place *place = tm_place_at(&s->model, v->source_at);
        uint64_t charged = place->used + place->reserved + v->spec.storage_bytes;
        if (place->peak_charged < charged)
            place->peak_charged = charged; /* M49 */
        deed d;
        uint64_t version;
        plan_deed(src, src->model_calls++, &v->spec, v->source_at, &d);
        if (d.nest == NEST_OTHER) /* it has reaped */
            (void)!tm_version(&r->sides[!src->manager].model, &version);
    }
}

tn_source make_source(run *r, side *s, uint32_t script, source **out) {
    source *src = &s->sources[s->source_count];
    memset(src, 0, sizeof *src);
    src->run = r;
    src->manager = (uint32_t)(s - r->sides);
    src->script = property_mix(script);
    src->seed = 5000 + script;
    tn_source real = TN_SOURCE_INIT;
    real.kind = TN_SOURCE_CALLBACK;
    real.load = real_load;
    real.forget = real_forget;
    real.context = src;
    *out = src;
    return real;
}

/* ---- Calls from inside callbacks ------------------------------------------------------------- */

static void refused(run *r, tn_status status, const char *what) {
    r->tally->nested++;
    if (status != TN_ERR_REENTRANCY)
        differ(r, "%s inside a callback: %s, not TN_ERR_REENTRANCY", what, tn_status_name(status));
}

static void works(run *r, bool ok, const char *what) {
    r->tally->nested++;
    if (!ok)
        differ(r, "%s does not work inside a callback", what);
}

static void nested_leases(run *r, side *s) {
    for (size_t i = 0; i < s->model.lease_count; i++) {
        const tm_lease *l = &s->model.leases[i];
        const tn_lease *lease = &s->leases[i];
        if (l->state != TM_ACTIVE)
            continue;
        const void *data;
        tn_location at;
        size_t count = 0;
        refused(r, tn_lease_lookup(lease, l->handles[0], &data), "lookup");
        refused(r, tn_lease_release(lease, 0), "release");
        works(r, tn_lease_active(lease), "active");
        works(r, tn_lease_location(lease, &at) == TN_OK, "lease_location");
        works(r, tn_lease_handles(lease, NULL, &count) == TN_OK && count == l->handle_count,
              "lease_handles");
        if (l->stream_count)
            works(r, tn_lease_add_stream(lease, l->streams[0]) == TN_OK, "add_stream");
    }
    for (size_t i = 0; i < s->model.hold_count; i++)
        if (s->model.holds[i].state == TM_ACTIVE)
            refused(r, tn_hold_release(&s->holds[i]), "hold_release");
    for (size_t i = 0; i < s->model.reservation_count; i++) {
        if (s->model.reservations[i].state != TM_ACTIVE)
            continue;
        tn_reservation_info info = {.size = sizeof info};
        refused(r, tn_reservation_release(&s->reservations[i]), "reservation_release");
        works(r, tn_reservation_read(&s->reservations[i], &info) == TN_OK, "reservation_read");
    }
}

/* M189, M190, M192: also a scope that is made here, which a refused entry consumes (M203). */
static void nested_plans(run *r, side *s) {
    tn_manager *m = s->library;
    size_t plan = choose_plan(s, r->now->arg[5]);
    tn_explanation *e;
    tn_scope *scope = NULL;
    refused(r, tn_manager_execute_actions(m, "nested", NULL, 0, NULL, NULL), "execute_actions");
    if (plan == RUN_PLANS)
        return;
    refused(r, tn_manager_explain(m, s->plans[plan], TN_VERSION_ANY, &e), "explain");
    works(r, tn_scope_create(m, s->plans[plan], NULL, &scope) == TN_OK, "scope_create");
    refused(r, tn_scope_enter(scope), "scope_enter");
    works(r, tn_scope_enter(scope) == TN_ERR_MISUSE, "a second scope_enter");
    works(r, tn_scope_close(scope) == TN_OK, "closing a scope whose entry was refused");
    works(r, tn_scope_destroy(scope) == TN_OK, "scope_destroy");
    for (size_t i = 0; i < s->model.scope_count; i++) {
        if (s->model.scopes[i].state != TM_ENTERED || s->model.scopes[i].destroyed ||
            s->scopes[i] == r->closing)
            continue;
        refused(r, tn_scope_close(s->scopes[i]), "scope_close"); /* G25 */
        refused(r, tn_scope_destroy(s->scopes[i]), "scope_destroy of one that is entered");
        works(r, tn_scope_active(s->scopes[i]), "scope_active");
    }
}

void nested_calls(run *r, side *s, bool guard) {
    if (r->fault == FAULT_HOST_ALLOC) /* what works may then fail */
        return;
    tn_manager *m = s->library;
    tn_handle h = choose_value(r, s, r->now->arg[5]);
    tn_location at = choose_place(s, h, r->now->arg[5]);
    uint64_t version;
    tn_snapshot *snapshot;
    tn_lease lease;
    tn_hold hold;
    tn_reservation reservation;
    size_t count = 0;
    refused(r, tn_manager_state_version(m, &version), "state_version");
    refused(r, tn_snapshot_take(m, &snapshot), "snapshot");
    refused(r, tn_manager_acquire(m, &h, 1, at, choose_stream(r, at, 0), &lease), "acquire");
    refused(r, tn_manager_hold(m, &h, 1, at, &hold), "hold");
    refused(r, tn_manager_reserve(m, at, 0, "nested", &reservation), "reserve");
    refused(r, tn_manager_ensure(m, h, at, NULL, NULL), "ensure");
    refused(r, tn_manager_move(m, h, at, tn_location_none(), NULL, NULL), "move");
    refused(r, tn_manager_drop(m, h, at, NULL), "drop");
    refused(r, tn_manager_discard(m, h, NULL), "discard");
    refused(r, tn_manager_close(m, 0), "close");
    refused(r, tn_manager_close(m, TN_CLOSE_FORCE), "close by force");
    if (tn_manager_acquire(m, &h, 0, at, NULL, &lease) != TN_ERR_VALUE)
        differ(r, "acquire of nothing inside a callback is not TN_ERR_VALUE"); /* M191 */
    nested_leases(r, s);
    nested_plans(r, s);
    works(r, tn_manager_id(m) == s->model.id, "id");
    if (guard) {
        refused(r, tn_manager_locations(m, NULL, &count), "locations");
        refused(r, tn_manager_trace(m, NULL, &count), "trace");
        refused(r, tn_manager_clear_trace(m), "clear_trace");
        refused(r, tn_manager_step(m, NULL), "step");
    } else { /* M197 */
        works(r, tn_manager_locations(m, NULL, &count) == TN_OK, "locations");
        count = 0;
        works(r, tn_manager_trace(m, NULL, &count) == TN_OK, "trace");
    }
}
