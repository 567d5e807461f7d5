/* SPDX-License-Identifier: MIT */
/* The reference model: loads, copies, the four actions. */
#include <string.h>

#include "model.h"
#include "model_internal.h"

/* ---- Reconstruction and copies --------------------------------------------------------------- */

/* M73: afterwards the temporary charge is still there if TN_OK. */
static tn_status reconstruct(tm_manager *m, tm_value *v, tm_payload *out, tm_measured *x) {
    tm_place *place = tm_place_at(m, v->source_at);
    tn_status status = tm__admit(m, place->at, v->spec.storage_bytes);
    if (status != TN_OK)
        return status;
    place->reserved += v->spec.storage_bytes;
    tm__raise(place);

    int64_t code = 0;
    memset(out, 0, sizeof *out);
    m->world->loads++;
    m->guard = true;
    status = v->load(v->context, &v->spec, v->source_at, out, &code);
    m->guard = false;
    bool alive = status == TN_OK && out->data;
    if (status != TN_OK) {
        tm__fail(m, status);
        m->error.native_code = code;
    } else if (!out->data) {
        status = tm__fail(m, TN_ERR_PAYLOAD); /* unusable, M79 */
    } else {
        status = tm_measure(out, x);
        if (status != TN_OK)
            tm__fail(m, status);
        else
            status = tm__check_fit(m, &v->spec, out, x, v->source_at);
        if (status == TN_OK)
            status = tm__check_independent(m, out); /* M64, D5 */
    }
    if (status == TN_OK)
        return TN_OK;
    if (alive)
        tm__destroy_payload(m);
    place->reserved -= v->spec.storage_bytes;
    return status;
}

/* M222: on failure the stream is synchronised; what that reports is attached. */
static tn_status copy_failed(tm_manager *m, tn_location to, tn_stream stream) {
    if (to.kind != TN_LOCATION_CUDA)
        return (tn_status)m->error.status;
    const tm_fault *fault = tm_world_call(m->world, TN_SIM_STREAM_SYNCHRONIZE);
    if (fault) {
        m->error.cleanup_status = fault->status;
        m->error.cleanup_native_code = fault->code;
        if (!tm_world_call(m->world, TN_SIM_DEVICE_SYNCHRONIZE)) /* the next best wait */
            tm__wait_device(m->world, to.index);
    } else {
        tm__wait_stream(m->world, stream);
    }
    return (tn_status)m->error.status;
}

/* What the value type's `copy` does: one allocation and one or more copies for each field that is
 * not empty. */
static const tm_fault *copy_fields(tm_world *w, const tm_payload *from, tn_location to,
                                   tm_payload *out) {
    static char bases[1 << 16]; /* names for new allocations: nobody else can name them */
    static size_t next_base;
    const tm_fault *fault = tm_world_call(w, TM_FAULT_COPY_CALLBACK);
    if (fault)
        return fault;
    bool grow = tm_world_call(w, TM_FAULT_GROW_COPY) != NULL;
    *out = *from;
    out->data = NULL;
    for (size_t i = 0; i < from->field_count; i++) {
        const tm_field *f = &from->fields[i];
        uint64_t bytes = f->logical + (grow && i == 0 ? f->elem : 0);
        if (bytes && to.kind == TN_LOCATION_CUDA)
            fault = tm_world_call(w, TN_SIM_DEVICE_ALLOC);
        else if (bytes && to.kind == TN_LOCATION_PINNED)
            fault = tm_world_call(w, TN_SIM_PINNED_ALLOC);
        bool driver = to.kind == TN_LOCATION_CUDA || f->at.kind == TN_LOCATION_CUDA;
        for (uint32_t piece = 0; driver && f->logical && piece < f->pieces && !fault; piece++)
            fault = tm_world_call(w, TN_SIM_COPY);
        if (fault)
            return fault;
        out->fields[i] =
            (tm_field){&bases[next_base++ % sizeof bases], bytes, bytes, f->elem, 1, to};
    }
    return NULL;
}

/* Copy one payload to `to` and check it against the spec (M95). TN_OK: *out is alive. */
static tn_status copy(tm_manager *m, tm_value *v, const tm_payload *from, tn_location to,
                      tn_stream stream, tm_payload *out, tm_measured *x) {
    tm_world *w = m->world;
    const tm_fault *fault = NULL;
    if (to.kind ==
        TN_LOCATION_CUDA) { /* what the copy needs comes before it: nothing to synchronise yet */
        fault = stream ? NULL : tm_world_call(w, TN_SIM_STREAM_CREATE);
        fault = fault ? fault : tm_world_call(w, TN_SIM_EVENT_CREATE);
    }
    if (fault)
        return tm__fail_fault(m, fault);
    fault = copy_fields(w, from, to, out);
    if (!fault && to.kind == TN_LOCATION_CUDA)
        fault = tm_world_call(w, TN_SIM_EVENT_RECORD);
    if (!fault && to.kind == TN_LOCATION_CUDA)
        fault = tm_world_call(w, TN_SIM_EVENT_SYNCHRONIZE);
    if (fault) {
        tm__fail_fault(m, fault);
        if (fault->entry == TN_SIM_PINNED_ALLOC)
            m->error.status = TN_ERR_PAYLOAD; /* M31 */
        return copy_failed(m, to, stream);
    }
    if (to.kind == TN_LOCATION_CUDA)
        tm__wait_stream(w, stream);
    tn_status status = tm_measure(out, x);
    if (status == TN_OK)
        status = tm__check_fit(m, &v->spec, out, x, to);
    if (status == TN_OK)
        w->live++;
    return status;
}

/* M76, M77: load a value that has no materialization, and install it. */
static tn_status load(tm_manager *m, tm_value *v, tn_location at, tn_stream stream) {
    tm_payload loaded, copied;
    tm_measured x;
    tn_status status = reconstruct(m, v, &loaded, &x);
    if (status != TN_OK)
        return status;
    tm_place *source = tm_place_at(m, v->source_at);
    if (tm_same_at(at, v->source_at)) {
        source->reserved -= v->spec.storage_bytes;
        tm__install(m, v, at, &loaded, x.storage); /* the same bytes: it fits */
        return TN_OK;
    }
    status = tm__admit(m, at, v->spec.storage_bytes);
    if (status == TN_OK)
        status = copy(m, v, &loaded, at, stream, &copied, &x);
    if (status == TN_OK)
        tm__install(m, v, at, &copied, x.storage);
    source = tm_place_at(m, v->source_at);
    source->reserved -= v->spec.storage_bytes;
    tm__destroy_payload(m); /* the loaded one */
    return status;
}

static tn_status replicate(tm_manager *m, tm_value *v, tn_location from, tn_location to,
                           tn_stream stream) {
    tm_payload copied;
    tm_measured x;
    tn_status status = tm__admit(m, to, v->spec.storage_bytes);
    if (status == TN_OK)
        status = copy(m, v, &tm_resident(v, from)->payload, to, stream, &copied, &x);
    if (status == TN_OK)
        tm__install(m, v, to, &copied, x.storage);
    return status;
}

/* ---- Actions --------------------------------------------------------------------------------- */

/* M23: pageable, pinned, CUDA by index. */
uint64_t tm__rank(tn_location at) {
    return ((uint64_t)at.kind << 32) + (at.kind == TN_LOCATION_CUDA ? at.index : 0);
}

static tn_location preferred(const tm_value *v, tn_location except) {
    tn_location best = tn_location_none();
    for (size_t i = 0; i < v->count; i++)
        if (!tm_same_at(v->at[i].at, except) &&
            (!best.kind || tm__rank(v->at[i].at) < tm__rank(best)))
            best = v->at[i].at;
    return best;
}

static void sample(tn_report *r, tn_location at) {
    if (!r->allocator.kind && at.kind == TN_LOCATION_CUDA)
        r->allocator = at;
}

/* M91 */
static void sample_replicas(tn_report *r, const tm_value *v) {
    for (size_t i = 0; i < v->count; i++)
        sample(r, v->at[i].at);
}

/* M83: everything before the action's own rules; the report begins here. */
static tn_status begin(tm_manager *m, const tn_action *a, tn_stream stream, tm_value **out) {
    bool places = a->kind != TN_ACTION_DISCARD;
    if (!a->handle.type || (places && !tm__kind_ok(a->at)) ||
        (a->from.kind && !tm__kind_ok(a->from)))
        return tm__fail(m, TN_ERR_KIND);
    tn_status status = tm__entry(m);
    if (status == TN_OK)
        status = tm__reap(m);
    if (status == TN_OK)
        status = tm__resolve(m, a->handle, out);
    if (status == TN_OK && places)
        status = tm__location(m, a->at);
    if (status == TN_OK && a->from.kind)
        status = tm__location(m, a->from);
    if (status == TN_OK && stream)
        status = tm__stream(m, stream, a->at);
    if (status != TN_OK)
        return status;
    memset(&m->report, 0, sizeof m->report);
    m->report.size = sizeof m->report;
    m->report.action = *a;
    m->report.logical_bytes = (*out)->spec.logical_bytes;
    m->report.storage_bytes = (*out)->spec.storage_bytes;
    return TN_OK;
}

/* M233, M234 */
static tn_status done(tm_manager *m) {
    uint64_t capacity = m->trace_capacity == TN_TRACE_NONE ? 0 : m->trace_capacity;
    if (capacity == 0)
        return TN_OK;
    if (m->trace_count == capacity)
        memmove(m->trace, m->trace + 1, --m->trace_count * sizeof m->trace[0]);
    tm__check(m->trace_count < TM_TRACE, "reports");
    m->trace[m->trace_count++] = m->report;
    return TN_OK;
}

static tn_status no_op(tm_manager *m, uint32_t reason) {
    m->report.no_op = 1;
    m->report.reason = reason;
    return done(m);
}

tn_status tm_ensure(tm_manager *m, tn_handle handle, tn_location at, tn_stream stream) {
    tm_value *v;
    tn_action action = {TN_ACTION_ENSURE, 0, handle, at, tn_location_none()};
    tn_status status = begin(m, &action, stream, &v);
    if (status != TN_OK)
        return status;
    tn_report *r = &m->report;
    sample(r, at);
    r->destination = at;
    if (tm_resident(v, at))
        return no_op(m, TN_REASON_ALREADY_RESIDENT);
    if (v->count && v->spec.replica_mode == TN_EXCLUSIVE) {
        return tm__fail_reason(m, TN_ERR_OWNERSHIP, handle, TN_REASON_EXCLUSIVE);
    }
    r->source = v->count ? preferred(v, at) : v->source_at;
    status = v->count ? replicate(m, v, r->source, at, stream) : load(m, v, at, stream);
    return status == TN_OK ? done(m) : status;
}

tn_status tm_move(tm_manager *m, tn_handle handle, tn_location to, tn_location from,
                  tn_stream stream) {
    tm_value *v;
    tn_action action = {TN_ACTION_MOVE, 0, handle, to, from};
    tn_status status = begin(m, &action, stream, &v);
    if (status != TN_OK)
        return status;
    tn_report *r = &m->report;
    sample(r, to);
    if (from.kind)
        sample(r, from);
    else
        sample_replicas(r, v);
    r->destination = to;
    if (from.kind && !tm_resident(v, from)) /* M98 */
        return tm__fail_handle(m, TN_ERR_UNAVAILABLE, handle, from);
    r->source = from.kind ? from : preferred(v, to);
    bool resident = tm_resident(v, to) != NULL;
    if (resident && (!r->source.kind || tm_same_at(r->source, to)))
        return no_op(m, TN_REASON_ALREADY_AT_DESTINATION);
    if (!r->source.kind) { /* nothing resident */
        r->source = v->source_at;
        status = load(m, v, to, stream);
        return status == TN_OK ? done(m) : status;
    }
    tm_materialization *x = tm_resident(v, r->source);
    if (tm__protected(x)) /* M100 */
        return tm__fail_in_use(m, v, x);
    if (!resident)
        status = replicate(m, v, r->source, to, stream);
    if (status != TN_OK)
        return status;
    tm__remove(m, v, r->source);
    return done(m);
}

tn_status tm_drop(tm_manager *m, tn_handle handle, tn_location at) {
    tm_value *v;
    tn_action action = {TN_ACTION_DROP, 0, handle, at, tn_location_none()};
    tn_status status = begin(m, &action, NULL, &v);
    if (status != TN_OK)
        return status;
    sample(&m->report, at);
    m->report.source = at;
    tm_materialization *x = tm_resident(v, at);
    if (!x)
        return no_op(m, TN_REASON_ALREADY_ABSENT);
    if (tm__protected(x)) /* M108 */
        return tm__fail_in_use(m, v, x);
    if (v->count == 1 && !v->has_source)
        return tm__fail_reason(m, TN_ERR_OWNERSHIP, handle, TN_REASON_LAST_COPY);
    tm__remove(m, v, at);
    return done(m);
}

/* D12 */
static void forget_old_discards(tm_manager *m) {
    if (m->keep_discarded == TN_KEEP_ALL)
        return;
    for (size_t i = 0; i < m->value_count; i++)
        if (m->values[i].discarded && m->values[i].discard_order + m->keep_discarded < m->discards)
            m->values[i].forgotten = true;
}

tn_status tm_discard(tm_manager *m, tn_handle handle) {
    tm_value *v;
    tn_action action = {TN_ACTION_DISCARD, 0, handle, tn_location_none(), tn_location_none()};
    tn_status status = begin(m, &action, NULL, &v);
    if (status != TN_OK)
        return status;
    sample_replicas(&m->report, v);
    for (size_t i = 0; i < v->count; i++)
        if (tm__protected(&v->at[i])) /* M111 */
            return tm__fail_in_use(m, v, &v->at[i]);
    while (v->count)
        tm__remove(m, v, v->at[0].at);
    m->world->forgotten += v->has_source;
    v->has_source = false;
    v->discarded = true;
    v->discard_order = m->discards++;
    m->version++;
    forget_old_discards(m);
    return done(m);
}
