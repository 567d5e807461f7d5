/* SPDX-License-Identifier: MIT */
/*
 * Plan objects: one immutable copy of what the caller gave, shared by reference.
 */
#include <string.h>

#include "plan/plan_internal.h"

/* ---- Form ------------------------------------------------------------------------------- */

/* M16, the half that needs no state: a kind out of range is no location. An index is checked
 * where it is used (M83). */
static tn_status location_form(tn_location at) {
    if (at.kind < TN_LOCATION_PAGEABLE || at.kind > TN_LOCATION_CUDA)
        return tn__fail(TN_ERR_KIND, "kind %u is no location", (unsigned)at.kind);
    return TN_OK;
}

tn_status tn__handle_form(tn_handle handle) {
    if (handle.manager == 0 || handle.index == 0 || !tn__type_valid(handle.type))
        return tn__fail(TN_ERR_KIND, "this is no handle");
    return TN_OK;
}

tn_status tn__action_form(const tn_action *action) {
    tn_status status = tn__handle_form(action->handle);
    if (status != TN_OK)
        return status;
    if (action->kind < TN_ACTION_ENSURE || action->kind > TN_ACTION_DISCARD)
        return tn__fail(TN_ERR_KIND, "kind %u is no action", (unsigned)action->kind);
    if (action->kind != TN_ACTION_DISCARD)
        status = location_form(action->at);
    if (status == TN_OK && action->kind == TN_ACTION_MOVE && action->from.kind != TN_LOCATION_NONE)
        status = location_form(action->from);
    return status;
}

tn_status tn__actions_form(const tn_action *actions, size_t count, const char *what) {
    if (count > 0 && !actions)
        return tn__fail(TN_ERR_KIND, "the %s are NULL", what);
    if (count > UINT32_MAX)
        return tn__fail(TN_ERR_VALUE, "too many %s", what);
    for (size_t i = 0; i < count; i++) {
        tn_status status = tn__action_form(&actions[i]);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static tn_status reservations_form(const tn_reservation_spec *specs, size_t count) {
    if (count > 0 && !specs)
        return tn__fail(TN_ERR_KIND, "the reservations are NULL");
    if (count > UINT32_MAX)
        return tn__fail(TN_ERR_VALUE, "too many reservations");
    for (size_t i = 0; i < count; i++) {
        tn_status status = location_form(specs[i].at);
        if (status == TN_OK && specs[i].bytes > (uint64_t)INT64_MAX)
            status = tn__fail(TN_ERR_VALUE, "reservation %zu is above INT64_MAX", i);
        if (status == TN_OK)
            status = tn__check_text(specs[i].label, "a reservation's label");
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static tn_status form(const tn_plan_spec *spec) {
    tn_status status = tn__check_text(spec->name, "the plan's name");
    if (status == TN_OK)
        status = tn__actions_form(spec->reclaim, spec->reclaim_count, "reclaim actions");
    if (status == TN_OK)
        status = reservations_form(spec->reservations, spec->reservation_count);
    if (status == TN_OK)
        status = tn__actions_form(spec->enter, spec->enter_count, "enter actions");
    if (status == TN_OK)
        status = tn__actions_form(spec->exit, spec->exit_count, "exit actions");
    return status;
}

/* ---- The object ------------------------------------------------------------------------- */

static bool copy_list(tn__list *list, const tn_action *actions, size_t count) {
    list->count = count;
    if (count == 0)
        return true;
    list->actions = tn__alloc(count * sizeof *actions);
    if (!list->actions)
        return false;
    memcpy(list->actions, actions, count * sizeof *actions);
    return true;
}

static bool copy_reservations(tn_plan *plan, const tn_plan_spec *spec) {
    size_t count = spec->reservation_count, bytes = 0;
    plan->reservation_count = count;
    if (count == 0)
        return true;
    for (size_t i = 0; i < count; i++)
        bytes += strlen(spec->reservations[i].label) + 1;
    plan->reservations = tn__alloc(count * sizeof *plan->reservations);
    plan->labels = tn__alloc(bytes);
    if (!plan->reservations || !plan->labels)
        return false;
    char *label = plan->labels;
    for (size_t i = 0; i < count; i++) {
        size_t n = strlen(spec->reservations[i].label) + 1;
        plan->reservations[i] = spec->reservations[i];
        plan->reservations[i].label = memcpy(label, spec->reservations[i].label, n);
        label += n;
    }
    return true;
}

static void destroy(tn_plan *plan) {
    tn__free(plan->name);
    tn__free(plan->reclaim.actions);
    tn__free(plan->enter.actions);
    tn__free(plan->exit.actions);
    tn__free(plan->reservations);
    tn__free(plan->labels);
    tn__free(plan);
}

static bool fill(tn_plan *plan, const tn_plan_spec *spec) {
    size_t n = strlen(spec->name) + 1;
    plan->name = tn__alloc(n);
    if (!plan->name)
        return false;
    memcpy(plan->name, spec->name, n);
    return copy_list(&plan->reclaim, spec->reclaim, spec->reclaim_count) &&
           copy_list(&plan->enter, spec->enter, spec->enter_count) &&
           copy_list(&plan->exit, spec->exit, spec->exit_count) && copy_reservations(plan, spec);
}

tn_status tn_plan_create(const tn_plan_spec *given, tn_plan **out) {
    tn_plan_spec spec;
    if (!out)
        return tn__fail(TN_ERR_KIND, "the output is NULL");
    tn_status status =
        tn__struct_in(&spec, sizeof spec, sizeof(size_t) + sizeof spec.name, given, "tn_plan_spec");
    if (status == TN_OK)
        status = form(&spec);
    if (status != TN_OK)
        return status;
    tn_plan *plan = tn__zalloc(sizeof *plan);
    if (!plan || !fill(plan, &spec)) {
        if (plan)
            destroy(plan);
        return tn__no_memory();
    }
    tn__store_rlx(&plan->refs, 1); /* [no-order] not shared yet */
    *out = plan;
    return TN_OK;
}

void tn__plan_keep(const tn_plan *plan) {
    (void)tn__add_rlx(&((tn_plan *)plan)->refs, 1); /* [plan-refs] by a holder: only the count */
}

void tn__plan_let_go(const tn_plan *plan) {
    tn_plan *own = (tn_plan *)plan;
    /* [plan-refs] acq_rel. Pairs: itself on other threads. Orders: every use of the plan -> its freeing. Without: a
     * plan is freed while another thread still reads it. */
    if (tn__sub_acq_rel(&own->refs, 1) == 1)
        destroy(own);
}

void tn_plan_destroy(tn_plan *plan) {
    if (plan)
        tn__plan_let_go(plan);
}

/* ---- Reading ---------------------------------------------------------------------------- */

const char *tn_plan_name(const tn_plan *plan) { return plan ? plan->name : NULL; }

static const tn__list *list_of(const tn_plan *plan, uint32_t phase) {
    switch (phase) {
    case TN_PHASE_RECLAIM:
        return &plan->reclaim;
    case TN_PHASE_ENTER:
        return &plan->enter;
    case TN_PHASE_EXIT:
        return &plan->exit;
    default:
        return NULL;
    }
}

tn_status tn_plan_actions(const tn_plan *plan, uint32_t phase, const tn_action **out,
                          size_t *out_count) {
    if (!plan || !out || !out_count)
        return tn__fail(TN_ERR_KIND, "an argument is NULL");
    const tn__list *list = list_of(plan, phase);
    if (!list)
        return tn__fail(TN_ERR_KIND, "phase %u has no actions", (unsigned)phase);
    *out = list->actions;
    *out_count = list->count;
    return TN_OK;
}

tn_status tn_plan_reservations(const tn_plan *plan, const tn_reservation_spec **out,
                               size_t *out_count) {
    if (!plan || !out || !out_count)
        return tn__fail(TN_ERR_KIND, "an argument is NULL");
    *out = plan->reservations;
    *out_count = plan->reservation_count;
    return TN_OK;
}
