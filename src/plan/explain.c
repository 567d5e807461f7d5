/* SPDX-License-Identifier: MIT */
/*
 * Explanations: a simulation and its verdict, kept for the caller (M180).
 */
#include <string.h>

#include "plan/plan_priv.h"

struct tn_explanation {
    const tn_plan *plan; /* kept: its name and reservations are shown */
    tn__sim sim;         /* plain data only, after tn__explain() */
    tn__verdict verdict;
};

static tn_status simulate(const tn__sim_input *base, const tn_plan *plan, tn_explanation *e) {
    tn__sim_part parts[TN__PLAN_PARTS];
    tn__sim_input in = *base;
    tn__plan_parts(plan, parts);
    in.parts = parts;
    in.part_count = TN__PLAN_PARTS;
    tn_status status = tn__sim_run(&in, &e->sim);
    if (status != TN_OK)
        return status;
    tn__verdict_input judged = {in.manager, in.store, in.version, in.guards, &e->sim};
    status = tn__verdict_of(&judged, e->sim.feasible ? NULL : &e->sim.problem, &e->verdict);
    tn__verdict_into(&e->verdict, &e->sim.problem);
    tn__sim_forget(&e->sim); /* nothing of the moment is kept */
    return status;
}

tn_status tn__explain_guarded(const tn__sim_input *base, const tn_plan *plan,
                              tn_explanation **out) {
    tn_explanation *e = tn__zalloc(sizeof *e);
    if (!e)
        return tn__no_memory();
    tn_status status = simulate(base, plan, e);
    if (status != TN_OK) {
        tn_explanation_drop(e);
        return status;
    }
    tn__plan_keep(plan);
    e->plan = plan;
    *out = e;
    return TN_OK;
}

tn_status tn__explain(uint64_t manager, tn__store *store, tn__life *life, tn_driver *driver,
                      const tn_version *version, const tn_plan *plan, tn_explanation **out) {
    tn__guards guards;
    tn_status status = tn__guards_read(life, &guards);
    if (status != TN_OK)
        return status;
    tn__sim_input in = {.manager = manager,
                        .store = store,
                        .driver = driver,
                        .version = version,
                        .guards = &guards};
    status = tn__explain_guarded(&in, plan, out);
    tn__guards_fini(&guards);
    return status;
}

tn_status tn__explanation_check(const tn_explanation *e) {
    tn__sim_part parts[TN__PLAN_PARTS];
    if (e->sim.feasible)
        return TN_OK;
    tn__plan_parts(e->plan, parts);
    return tn__sim_refused(&e->sim, &e->sim.problem, e->plan->name, parts);
}

void tn_explanation_drop(tn_explanation *e) {
    if (!e)
        return;
    tn__sim_fini(&e->sim);
    tn__verdict_fini(&e->verdict);
    if (e->plan)
        tn__plan_let_go(e->plan);
    tn__free(e);
}

/* ---- Reading ---------------------------------------------------------------------------- */

static tn_status check(const tn_explanation *e) {
    return e ? TN_OK : tn__fail(TN_ERR_KIND, "the explanation is NULL");
}

tn_status tn_explanation_read(const tn_explanation *e, tn_explanation_info *out) {
    tn_status status = check(e);
    if (status == TN_OK)
        status = tn__struct_check_out(out, sizeof(size_t) + 1, "tn_explanation_info");
    if (status != TN_OK)
        return status;
    const tn__sim *sim = &e->sim;
    tn_explanation_info info = {.size = sizeof info,
                                .plan = e->plan->name,
                                .feasible = sim->feasible,
                                .reason = sim->feasible ? TN_REASON_NONE : sim->problem.reason,
                                .phase = sim->problem_phase,
                                .verdict = e->verdict.verdict,
                                .index = sim->problem_index,
                                .action_count = sim->action_count,
                                .reservation_count = e->plan->reservation_count,
                                .peak_count = sim->place_count,
                                .blocker_count = e->verdict.blocker_count,
                                .evictable_bytes = e->verdict.evictable_bytes,
                                .missing_bytes = e->verdict.missing_bytes};
    tn__struct_out(out, &info, sizeof info);
    return TN_OK;
}

const tn_error *tn_explanation_problem(const tn_explanation *e) {
    return e && !e->sim.feasible ? &e->sim.problem : NULL;
}

tn_status tn_explanation_actions(const tn_explanation *e, tn_action_explanation *out,
                                 size_t *inout_count) {
    tn_status status = check(e);
    return status != TN_OK
               ? status
               : tn__structs_out(out, inout_count, e->sim.actions, sizeof *e->sim.actions,
                                 e->sim.action_count, "tn_action_explanation");
}

tn_status tn_explanation_reservations(const tn_explanation *e, const tn_reservation_spec **out,
                                      size_t *out_count) {
    tn_status status = check(e);
    return status == TN_OK ? tn_plan_reservations(e->plan, out, out_count) : status;
}

/* Arrays of plain elements. */
static tn_status check_plain(const tn_explanation *e, const void *out, const size_t *inout_count) {
    tn_status status = check(e);
    if (status == TN_OK && (!inout_count || (*inout_count > 0 && !out)))
        status = tn__fail(TN_ERR_KIND, "an argument is NULL");
    return status;
}

tn_status tn_explanation_peaks(const tn_explanation *e, tn_predicted_peak *out,
                               size_t *inout_count) {
    tn_status status = check_plain(e, out, inout_count);
    if (status != TN_OK)
        return status;
    for (size_t i = 0; i < e->sim.place_count && i < *inout_count; i++)
        out[i] = (tn_predicted_peak){e->sim.places[i].at, e->sim.places[i].peak};
    *inout_count = e->sim.place_count;
    return TN_OK;
}

tn_status tn_explanation_blockers(const tn_explanation *e, tn_blocker *out, size_t *inout_count) {
    tn_status status = check_plain(e, out, inout_count);
    if (status != TN_OK)
        return status;
    for (size_t i = 0; i < e->verdict.blocker_count && i < *inout_count; i++)
        out[i] = e->verdict.blockers[i];
    *inout_count = e->verdict.blocker_count;
    return TN_OK;
}

tn_status tn_explanation_protected(const tn_explanation *e, tn_location *out, size_t *inout_count) {
    tn_status status = check_plain(e, out, inout_count);
    if (status != TN_OK)
        return status;
    for (size_t i = 0; i < e->sim.listed_count && i < *inout_count; i++)
        out[i] = e->sim.listed[i];
    *inout_count = e->sim.listed_count;
    return TN_OK;
}
