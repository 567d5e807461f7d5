/* SPDX-License-Identifier: MIT */
/*
 * Perform: source, copies and checks, without any lock. What it makes belongs to the run until
 * commit; tn__run_clean() gives back what was not installed.
 */
#include "transition/transition_priv.h"

static tn_value_spec spec_of(const tn__value *value) {
    tn_value_spec spec = {.size = sizeof spec,
                          .type = value->type,
                          .logical_bytes = value->logical_bytes,
                          .storage_bytes = value->charge_bytes,
                          .replica_mode = value->replicable ? TN_REPLICABLE : TN_EXCLUSIVE,
                          .recoverability = value->source ? TN_RECONSTRUCTIBLE : TN_MUST_PRESERVE};
    return spec;
}

/* ---- Copy ------------------------------------------------------------------------------- */

static tn_status copy_to_device(tn__run *run, tn_payload from, tn_location to) {
    tn_stream stream;
    tn_stream_info info;
    tn__event *event;
    tn_status status = tn__trans_stream(run->t, to.index, run->stream, &stream, &info);
    if (status == TN_OK)
        status = tn__event_take(run->t->life, &info, &event);
    if (status != TN_OK)
        return status;
    status = tn__value_copy(run->t->driver, from, to, stream, tn__event_native(event), &run->made);
    tn__event_give(event);
    return status;
}

static tn_status copy(tn__run *run, tn_payload from) {
    tn_location to = run->choice.destination;
    if (to.kind == TN_LOCATION_CUDA)
        return copy_to_device(run, from, to);
    return tn__value_copy(run->t->driver, from, to, NULL, NULL, &run->made);
}

/* Checks of M95 that need no lock, and the object to install. */
static tn_status make_object(tn__run *run) {
    tn_value_spec spec = spec_of(run->value);
    tn__measured measured;
    tn_status status = tn__measure(run->made, &measured);
    if (status != TN_OK)
        return status;
    tn_location at = run->choice.destination;
    status = tn__check_fit(&spec, run->made.type, &measured, at);
    if (status == TN_OK)
        status = tn__mat_create(run->made, at, &measured, run->value->charge_bytes, &run->mat);
    tn__measured_fini(&measured);
    return status;
}

/* ---- Load ------------------------------------------------------------------------------- */

/* The way of a file's content to a device, with what was borrowed for it. */
typedef struct way {
    tn__route route;
    uint32_t count;
    tn__event *taken[TN__RING_BLOCKS_MAX];
    tn_event events[TN__RING_BLOCKS_MAX];
} way;

static void way_end(way *w) {
    while (w->count > 0)
        tn__event_give(w->taken[--w->count]);
}

static tn_status way_begin(tn__run *run, tn_location to, way *w) {
    tn_stream_info info;
    bool final = tn__location_same(to, run->choice.destination);
    uint32_t needed = tn__ring_events(run->t->ring, run->value->logical_bytes);
    w->count = 0;
    w->route = (tn__route){.to = to, .ring = run->t->ring, .events = w->events};
    tn_status status =
        tn__trans_stream(run->t, to.index, final ? run->stream : NULL, &w->route.stream, &info);
    for (uint32_t i = 0; i < needed && status == TN_OK; i++) {
        status = tn__event_take(run->t->life, &info, &w->taken[i]);
        if (status != TN_OK)
            break;
        w->events[i] = tn__event_native(w->taken[i]);
        w->count++;
    }
    if (status != TN_OK)
        way_end(w);
    return status;
}

/* Whether a file goes straight to its destination, through the ring. A destination that did not fit
 * is judged after the load (M78), which then needs the temporary payload. */
static bool straight(const tn__run *run) {
    return !tn__in_place(run) && !tn__source_is_callback(run->value->source) &&
           run->choice.destination.kind == TN_LOCATION_CUDA && run->needs[0].claimed;
}

static tn_status call_file(tn__run *run, const tn_load_request *request, tn_payload *out) {
    way w;
    tn_location to = straight(run) ? run->choice.destination : request->at;
    if (to.kind != TN_LOCATION_CUDA)
        return tn__source_load(run->value->source, request, NULL, out);
    tn_status status = way_begin(run, to, &w);
    if (status != TN_OK)
        return status;
    status = tn__source_load(run->value->source, request, &w.route, out);
    way_end(&w);
    return status;
}

static tn_status call_source(tn__run *run, tn_payload *out) {
    tn__source *source = run->value->source;
    bool callback = tn__source_is_callback(source);
    bool guarded = run->t->serial && callback;
    tn_status status = guarded ? tn__life_guard_wait(run->t->life) : TN_OK;
    if (status == TN_OK) {
        tn__need *need = tn__in_place(run) ? &run->needs[0] : &run->needs[1];
        tn__need_settle(need); /* the temporary charge (M73) */
        run->temporary = true;
        tn_load_request request = {.size = sizeof request,
                                   .handle = run->action.handle,
                                   .spec = spec_of(run->value),
                                   .at = run->choice.source,
                                   .driver = run->t->driver};
        tn__frame frame;
        tn__frame_push(run->thread, &frame, run->t->manager, callback);
        status =
            callback ? tn__source_load(source, &request, NULL, out) : call_file(run, &request, out);
        tn__frame_pop(run->thread, &frame);
    }
    if (guarded)
        tn__life_guard_lower(run->t->life); /* before the result is checked (M196) */
    return status;
}

/* M75, and D5: also a temporary payload must be independent. */
static tn_status check_loaded(tn__run *run) {
    tn_value_spec spec = spec_of(run->value);
    tn_status status = tn__measure(run->loaded, &run->loaded_measured);
    if (status != TN_OK)
        return status;
    status = tn__check_fit(&spec, run->loaded.type, &run->loaded_measured, run->choice.source);
    if (status != TN_OK)
        return status;
    tn__store *store = run->t->store;
    tn__lock(&store->lock);
    status =
        tn__owners_claim(store, run->loaded_measured.storages, run->loaded_measured.storage_count,
                         run->action.handle, run->choice.source);
    run->loaded_owned = status == TN_OK;
    tn__unlock(&store->lock);
    return status;
}

/* M77, M78: the destination of a direct action is judged after the load. */
static tn_status admit_destination(tn__run *run) {
    tn__need *need = &run->needs[0];
    tn__lock(&run->t->store->lock);
    tn_status status = need->claimed || tn__need_claim(need)
                           ? TN_OK
                           : tn__store_refuse(run->t->store, need->at, need->bytes);
    tn__unlock(&run->t->store->lock);
    return status;
}

static void load_done(tn__run *run, tn_status status) {
    tn__lock(&run->t->store->lock);
    tn__flow_load_done(run->ticket, status);
    tn__flow_wake(run->t);
    tn__unlock(&run->t->store->lock);
}

/* Who joined asks for itself if it was not the file that failed. */
static tn_status load_straight(tn__run *run) {
    tn_status status = call_source(run, &run->made);
    bool file = status == TN_ERR_SOURCE || status == TN_ERR_MATERIALIZATION;
    load_done(run, file ? status : TN_OK);
    return status == TN_OK ? make_object(run) : status;
}

static tn_status load(tn__run *run) {
    if (straight(run))
        return load_straight(run);
    tn_status status = call_source(run, &run->loaded);
    if (status == TN_OK)
        status = check_loaded(run);
    load_done(run, status);
    if (status != TN_OK)
        return status;
    if (tn__in_place(run)) {
        run->made = run->loaded;
        run->loaded = (tn_payload){NULL, NULL};
        return tn__mat_create(run->made, run->choice.destination, &run->loaded_measured,
                              run->value->charge_bytes, &run->mat);
    }
    status = admit_destination(run);
    if (status == TN_OK)
        status = copy(run, run->loaded);
    return status == TN_OK ? make_object(run) : status;
}

tn_status tn__run_perform(tn__run *run) {
    TN__AT(TN__POINT_PERFORM, run);
    tn_status status = TN_OK;
    switch (run->choice.step) {
    case TN__STEP_COPY:
        status = copy(run, run->choice.from->payload);
        return status == TN_OK ? make_object(run) : status;
    case TN__STEP_LOAD:
        return load(run);
    default:
        return TN_OK;
    }
}

/* What a failed run made. The error that is being reported stays the thread's. */
void tn__run_clean(tn__run *run) {
    if (run->mat)
        tn__mat_discard(run->mat);
    run->mat = NULL;
    tn_payload_destroy(run->made);
    tn_payload_destroy(run->loaded);
    run->made = run->loaded = (tn_payload){NULL, NULL};
    tn__measured_fini(&run->loaded_measured);
}
