/* SPDX-License-Identifier: MIT */
/*
 * Entry points for explanations, sequences and scopes.
 */
#include "manager/manager_internal.h"

/* NULL: no expected version, no streams. The map is checked where it is used (M127, M218). */
static tn_status options_in(const tn_run_options *given, tn_run_options *out) {
    *out = (tn_run_options)TN_RUN_OPTIONS_INIT;
    if (!given)
        return TN_OK;
    tn_status status =
        tn__struct_in(out, sizeof *out, sizeof(size_t) + sizeof(uint64_t), given, "tn_run_options");
    if (status == TN_OK && out->stream_count > UINT16_MAX)
        status = tn__fail(TN_ERR_VALUE, "too many transfer streams");
    return status;
}

tn_status tn_manager_explain(tn_manager *m, const tn_plan *plan, uint64_t expected_version,
                             tn_explanation **out) {
    tn__thread *thread;
    tn_status status = tn__not_null(m, "the manager");
    if (status == TN_OK)
        status = tn__not_null(plan, "the plan");
    if (status == TN_OK)
        status = tn__not_null(out, "the output");
    if (status == TN_OK)
        status = tn__manager_enter(m, false, &thread);
    if (status != TN_OK)
        return tn__done(m, status);
    return tn__done(m, tn__trans_explain(m->trans, thread, plan, expected_version, out));
}

tn_status tn_manager_execute_actions(tn_manager *m, const char *name, const tn_action *actions,
                                     size_t count, const tn_run_options *options,
                                     tn_plan_report **out) {
    tn__thread *thread;
    tn__sequence sequence = {name ? name : "actions", actions, count, TN_RUN_OPTIONS_INIT};
    tn_status status = tn__not_null(m, "the manager");
    if (out)
        *out = NULL;
    if (status == TN_OK)
        status = tn__check_text(sequence.name, "the name");
    if (status == TN_OK)
        status = tn__actions_form(actions, count, "actions");
    if (status == TN_OK)
        status = options_in(options, &sequence.options);
    if (status == TN_OK)
        status = tn__manager_enter(m, false, &thread);
    if (status != TN_OK)
        return tn__done(m, status);
    return tn__done(m, tn__trans_execute(m->trans, thread, &sequence, out));
}

/* ---- Scopes ----------------------------------------------------------------------------- */

tn_status tn_scope_create(tn_manager *m, const tn_plan *plan, const tn_run_options *options,
                          tn_scope **out) {
    tn_run_options o;
    tn_status status = tn__not_null(m, "the manager");
    if (status == TN_OK)
        status = tn__not_null(plan, "the plan");
    if (status == TN_OK)
        status = tn__not_null(out, "the output");
    if (status == TN_OK)
        status = options_in(options, &o);
    if (status == TN_OK && o.stream_count > 0 && !o.streams)
        status = tn__fail(TN_ERR_KIND, "the transfer streams are NULL");
    if (status == TN_OK)
        status = tn__life_enter_parent(m->life);
    return tn__done(m, status == TN_OK ? tn__scope_create(m->trans, plan, &o, out) : status);
}

static tn_status done(const tn_scope *scope, tn_status status) {
    if (status != TN_OK && scope)
        tn__error_current()->manager = tn_scope_manager(scope);
    return status;
}

tn_status tn_scope_enter(tn_scope *scope) {
    tn_status status = tn__not_null(scope, "the scope");
    return done(scope, status == TN_OK ? tn__scope_enter(scope) : status);
}

tn_status tn_scope_close(tn_scope *scope) {
    tn_status status = tn__not_null(scope, "the scope");
    return done(scope, status == TN_OK ? tn__scope_close(scope) : status);
}

tn_status tn_scope_destroy(tn_scope *scope) {
    return scope ? done(scope, tn__scope_destroy(scope)) : TN_OK;
}
