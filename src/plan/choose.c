/* SPDX-License-Identifier: MIT */
/*
 * The decision table of the actions (M90, M93, M98, M99, M107, M111): pure, on one record of one
 * version.
 */
#include "plan/plan_internal.h"

static TN__COLD tn_status refuse(uint64_t manager, const tn__value *value, tn_location at,
                                 tn_status status, enum tn_reason reason, const char *text) {
    char name[TN_LOCATION_NAME_MAX];
    tn_error *e = tn__error(status, "value %llu at %s: %s", (unsigned long long)value->index,
                            tn__location_text(at, name), text);
    e->manager = manager;
    e->reason = reason;
    e->handle = (tn_handle){manager, value->index, value->type};
    e->at = at;
    return status;
}

tn_status tn__last_copy(uint64_t manager, const tn_action *action) {
    tn_error *e = tn__error(TN_ERR_OWNERSHIP, "value %llu: the last copy of a value without source",
                            (unsigned long long)action->handle.index);
    e->manager = manager;
    e->reason = TN_REASON_LAST_COPY;
    e->handle = action->handle;
    e->at = action->at;
    return TN_ERR_OWNERSHIP;
}

/* M23: pageable host, pinned host, then CUDA by index. */
static bool preferred(tn_location a, tn_location b) {
    return a.kind != b.kind ? a.kind < b.kind : a.index < b.index;
}

static tn__mat *preferred_replica(const tn__value *value, tn_location except) {
    tn__mat *best = NULL;
    for (uint32_t i = 0; i < value->mat_count; i++) {
        tn__mat *mat = value->mats[i];
        if (!tn__location_same(mat->at, except) && (!best || preferred(mat->at, best->at)))
            best = mat;
    }
    return best;
}

static tn_status choose_load(uint64_t manager, const tn__value *value, tn_location at,
                             tn__choice *out) {
    if (!value->source)
        return refuse(manager, value, at, TN_ERR_UNAVAILABLE, TN_REASON_NO_SOURCE,
                      "no materialization and no source");
    out->step = TN__STEP_LOAD;
    out->source = value->source_at;
    return TN_OK;
}

static tn_status choose_ensure(uint64_t manager, const tn__value *value, const tn_action *action,
                               tn__choice *out) {
    out->destination = action->at;
    if (tn__value_mat(value, action->at)) {
        out->reason = TN_REASON_ALREADY_RESIDENT;
        return TN_OK;
    }
    if (value->mat_count == 0)
        return choose_load(manager, value, action->at, out);
    if (!value->replicable)
        return refuse(manager, value, action->at, TN_ERR_OWNERSHIP, TN_REASON_EXCLUSIVE,
                      "an exclusive value is resident elsewhere");
    out->step = TN__STEP_COPY;
    out->from = preferred_replica(value, action->at);
    out->source = out->from->at;
    return TN_OK;
}

static tn_status choose_move(uint64_t manager, const tn__value *value, const tn_action *action,
                             tn__choice *out) {
    tn__mat *there = tn__value_mat(value, action->at);
    bool explicit_source = action->from.kind != TN_LOCATION_NONE;
    tn__mat *selected;
    out->destination = action->at;
    if (explicit_source) {
        selected = tn__value_mat(value, action->from);
        if (!selected)
            return refuse(manager, value, action->from, TN_ERR_UNAVAILABLE,
                          TN_REASON_SOURCE_NOT_RESIDENT, "the explicit source is not resident");
        out->source = action->from;
    } else {
        selected = preferred_replica(value, action->at);
        if (selected)
            out->source = selected->at;
    }
    if (there && (!selected || selected == there)) {
        out->reason = TN_REASON_ALREADY_AT_DESTINATION;
        return TN_OK;
    }
    if (!selected)
        return choose_load(manager, value, action->at, out);
    out->remove = selected;
    out->from = selected;
    out->step = there ? TN__STEP_REMOVE : TN__STEP_COPY;
    return TN_OK;
}

static void choose_drop(const tn__value *value, const tn_action *action, tn__choice *out) {
    out->source = action->at;
    out->remove = tn__value_mat(value, action->at);
    if (!out->remove) {
        out->reason = TN_REASON_ALREADY_ABSENT;
        return;
    }
    out->step = TN__STEP_REMOVE;
    out->last_copy = value->mat_count == 1 && !value->source;
}

tn_status tn__choose(uint64_t manager, const tn__value *value, const tn_action *action,
                     tn__choice *out) {
    *out = (tn__choice){.step = TN__STEP_NO_OP};
    switch (action->kind) {
    case TN_ACTION_ENSURE:
        return choose_ensure(manager, value, action, out);
    case TN_ACTION_MOVE:
        return choose_move(manager, value, action, out);
    case TN_ACTION_DROP:
        choose_drop(value, action, out);
        return TN_OK;
    default:
        out->step = TN__STEP_REMOVE; /* discard: all of them */
        return TN_OK;
    }
}
