/* SPDX-License-Identifier: MIT */
/*
 * Entry points that change placement.
 */
#include "manager/manager_internal.h"

/* A type is checked in full when it differs from the last one that this thread used. */
static bool known_type(const tn_value_type *type) {
    tn__thread *thread = tn__thread_self();
    if (thread && type && thread->known_type == type)
        return true;
    bool valid = tn__type_valid(type);
    if (valid && thread)
        thread->known_type = type;
    return valid;
}

tn_status tn__handle_in(tn_handle handle) {
    if (handle.manager == 0 || handle.index == 0 || !known_type(handle.type))
        return tn__fail(TN_ERR_KIND, "this is no handle");
    return TN_OK;
}

static tn_status adopt(tn_manager *m, tn_payload payload, tn_location at, uint32_t replica_mode,
                       const tn_reservation *reservation, tn_handle *out) {
    tn__thread *thread;
    tn_status status = tn__not_null(m, "the manager");
    if (status == TN_OK)
        status = tn__not_null(out, "the output");
    if (status == TN_OK && (!payload.data || !tn__type_valid(payload.type)))
        status = tn__fail(TN_ERR_KIND, "this is no payload");
    if (status == TN_OK)
        status = tn__manager_enter(m, false, &thread);
    if (status != TN_OK)
        return tn__done(m, status);
    return tn__done(m,
                    tn__trans_adopt(m->trans, thread, payload, at, replica_mode, reservation, out));
}

tn_status tn_manager_adopt(tn_manager *m, tn_payload payload, tn_location at, uint32_t replica_mode,
                           tn_handle *out) {
    return adopt(m, payload, at, replica_mode, NULL, out);
}

tn_status tn_manager_adopt_reserved(tn_manager *m, tn_payload payload, tn_location at,
                                    uint32_t replica_mode, const tn_reservation *reservation,
                                    tn_handle *out) {
    tn_status status = tn__not_null(reservation, "the reservation");
    return status == TN_OK ? adopt(m, payload, at, replica_mode, reservation, out) : status;
}

tn_status tn_manager_register_source(tn_manager *m, const tn_value_spec *spec,
                                     const tn_source *source, tn_location at, tn_handle *out) {
    tn__thread *thread;
    tn_value_spec s;
    tn_status status = tn__not_null(m, "the manager");
    if (status == TN_OK)
        status = tn__not_null(out, "the output");
    if (status == TN_OK)
        status = tn_value_spec_check(spec);
    if (status == TN_OK)
        status = tn__struct_in(&s, sizeof s, sizeof(size_t) + 1, spec, "tn_value_spec");
    if (status == TN_OK)
        status = tn__source_check(source, &s);
    if (status == TN_OK)
        status = tn__manager_enter(m, false, &thread);
    if (status != TN_OK)
        return tn__done(m, status);
    if (at.kind == TN_LOCATION_NONE)
        at = tn_location_pageable();
    return tn__done(m, tn__trans_register(m->trans, thread, &s, source, at, out));
}

/* ---- Actions ---------------------------------------------------------------------------- */

static tn_status act(tn_manager *m, const tn_action *action, tn_stream stream, tn_report *out) {
    tn__thread *thread;
    tn_status status = tn__not_null(m, "the manager");
    if (status == TN_OK)
        status = tn__action_form(action);
    if (status == TN_OK && out)
        status = tn__struct_check_out(out, sizeof(size_t), "tn_report");
    if (status == TN_OK)
        status = tn__manager_enter(m, false, &thread);
    return tn__done(m, status == TN_OK ? tn__trans_action(m->trans, thread, action, stream, out)
                                       : status);
}

tn_status tn_manager_ensure(tn_manager *m, tn_handle handle, tn_location at, tn_stream stream,
                            tn_report *out) {
    tn_action action = {.kind = TN_ACTION_ENSURE, .handle = handle, .at = at};
    return act(m, &action, stream, out);
}

tn_status tn_manager_copy(tn_manager *m, tn_handle handle, tn_location to, tn_stream stream,
                          tn_report *out) {
    return tn_manager_ensure(m, handle, to, stream, out);
}

tn_status tn_manager_move(tn_manager *m, tn_handle handle, tn_location to, tn_location from,
                          tn_stream stream, tn_report *out) {
    tn_action action = {.kind = TN_ACTION_MOVE, .handle = handle, .at = to, .from = from};
    return act(m, &action, stream, out);
}

tn_status tn_manager_drop(tn_manager *m, tn_handle handle, tn_location at, tn_report *out) {
    tn_action action = {.kind = TN_ACTION_DROP, .handle = handle, .at = at};
    return act(m, &action, NULL, out);
}

tn_status tn_manager_discard(tn_manager *m, tn_handle handle, tn_report *out) {
    tn_action action = {.kind = TN_ACTION_DISCARD, .handle = handle};
    return act(m, &action, NULL, out);
}
