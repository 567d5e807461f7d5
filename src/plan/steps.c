/* SPDX-License-Identifier: MIT */
/*
 * The steps of a plan by phase, and how an error names the one that failed (M245, M246).
 */
#include <string.h>

#include "plan/plan_internal.h"

void tn__plan_parts(const tn_plan *plan, tn__sim_part parts[TN__PLAN_PARTS]) {
    parts[0] = (tn__sim_part){TN_PHASE_RECLAIM, plan->reclaim.actions, NULL, plan->reclaim.count};
    parts[1] = (tn__sim_part){TN_PHASE_RESERVE, NULL, plan->reservations, plan->reservation_count};
    parts[2] = (tn__sim_part){TN_PHASE_ENTER, plan->enter.actions, NULL, plan->enter.count};
    parts[3] = (tn__sim_part){TN_PHASE_EXIT, plan->exit.actions, NULL, plan->exit.count};
}

enum tn_reason tn__protected_reason(uint32_t action_kind) {
    switch (action_kind) {
    case TN_ACTION_MOVE:
        return TN_REASON_SOURCE_PROTECTED;
    case TN_ACTION_DROP:
        return TN_REASON_PROTECTED;
    default:
        return TN_REASON_DISCARD_PROTECTED;
    }
}

static void name_step(tn_error *e, const char *plan, const tn__sim_part *part, size_t index) {
    e->phase = part->phase;
    e->failed_index = index;
    memset(e->plan, 0, sizeof e->plan);
    memcpy(e->plan, plan, strnlen(plan, sizeof e->plan - 1));
    memset(e->label, 0, sizeof e->label);
    if (part->actions) {
        const tn_action *action = &part->actions[index];
        e->action_kind = action->kind;
        e->action_handle = action->handle;
        e->action_at = action->at;
        e->action_from = action->from;
    } else {
        const char *label = part->reservations[index].label;
        memcpy(e->label, label, strnlen(label, sizeof e->label - 1));
    }
}

static tn_status fail_at(tn_error *e, tn_status status, const char *plan, const tn__sim_part *part,
                         size_t index) {
    e->cause_status = e->status;
    e->status = status;
    name_step(e, plan, part, index);
    return status;
}

tn_status tn__plan_failed(const char *plan, const tn__sim_part *part, size_t index) {
    return fail_at(tn__error_current(), TN_ERR_PLAN_EXEC, plan, part, index);
}

tn_status tn__plan_refused(const char *plan, const tn__sim_part *part, size_t index) {
    return fail_at(tn__error_current(), TN_ERR_PLAN, plan, part, index);
}

tn_status tn__sim_refused(const tn__sim *sim, const tn_error *problem, const char *plan,
                          const tn__sim_part *parts) {
    (void)tn__error_restore(problem);
    while (parts->phase != sim->problem_phase)
        parts++;
    return tn__plan_refused(plan, parts, sim->problem_index);
}
