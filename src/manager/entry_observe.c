/* SPDX-License-Identifier: MIT */
/*
 * Entry points that only look: version, locations, trace, step, snapshot.
 */
#include "manager/manager_internal.h"

tn_status tn_manager_state_version(tn_manager *m, uint64_t *out) {
    tn__thread *thread;
    tn_status status = tn__not_null(m, "the manager");
    if (status == TN_OK)
        status = tn__not_null(out, "the output");
    if (status == TN_OK)
        status = tn__manager_enter(m, false, &thread);
    if (status == TN_OK)
        status = tn__life_reap_manual(m->life);
    if (status == TN_OK)
        *out = tn__state_version(m->store, m->life);
    return tn__done(m, status);
}

static tn_status check_array(tn_manager *m, const void *out, const size_t *inout_count) {
    tn_status status = tn__not_null(m, "the manager");
    if (status == TN_OK)
        status = tn__not_null(inout_count, "the count");
    if (status == TN_OK && *inout_count > 0)
        status = tn__not_null(out, "the array");
    return status;
}

/* Under the writer lock: a location whose tracking has begun is seen, not its absence (M21). */
tn_status tn_manager_locations(tn_manager *m, tn_location *out, size_t *inout_count) {
    tn_status status = check_array(m, out, inout_count);
    if (status == TN_OK)
        status = tn__manager_enter_guard_only(m);
    if (status != TN_OK)
        return tn__done(m, status);
    tn__lock(&m->store->lock);
    tn__rcu_lock();
    const tn__table *table = tn__store_current(m->store)->table;
    for (uint32_t i = 0; i < table->count && i < *inout_count; i++)
        out[i] = table->places[i].at;
    *inout_count = table->count;
    tn__rcu_unlock();
    tn__unlock(&m->store->lock);
    return TN_OK;
}

tn_status tn_manager_trace(tn_manager *m, tn_report *out, size_t *inout_count) {
    tn_status status = check_array(m, out, inout_count);
    if (status == TN_OK && *inout_count > 0)
        status = tn__struct_check_out(out, sizeof(size_t), "the first tn_report");
    if (status == TN_OK)
        status = tn__manager_enter_guard_only(m);
    if (status == TN_OK)
        tn__trans_trace(m->trans, out, inout_count);
    return tn__done(m, status);
}

tn_status tn_manager_clear_trace(tn_manager *m) {
    tn_status status = tn__not_null(m, "the manager");
    if (status == TN_OK)
        status = tn__manager_enter_guard_only(m);
    if (status == TN_OK)
        tn__trans_clear_trace(m->trans);
    return tn__done(m, status);
}

tn_status tn_manager_step(tn_manager *m, uint64_t *out) {
    tn__thread *thread;
    uint64_t done = 0;
    tn_status status = tn__not_null(m, "the manager");
    if (status == TN_OK)
        status = tn__manager_enter(m, true, &thread);
    if (status != TN_OK)
        return tn__done(m, status);
    if (tn__rcu_in_section())
        return tn__done(m, tn__fail(TN_ERR_REENTRANCY, "called inside an RCU read section"));
    tn_status reaped = tn__life_reap(m->life, &done);
    tn_error kept = *tn__error_current();
    status = tn__life_collect(m->life, &done);
    if (status == TN_OK)
        status = tn__store_collect(m->store, &done);
    if (reaped != TN_OK)
        return tn__done(m, tn__error_restore(&kept));
    if (status == TN_OK && out)
        *out = done;
    return tn__done(m, status);
}

tn_status tn_snapshot_take(tn_manager *m, tn_snapshot **out) {
    tn__thread *thread;
    tn_status status = tn__not_null(m, "the manager");
    if (status == TN_OK)
        status = tn__not_null(out, "the output");
    if (status == TN_OK)
        status = tn__manager_enter(m, false, &thread);
    if (status == TN_OK)
        status = tn__life_reap_manual(m->life);
    if (status == TN_OK)
        status = tn__snapshot_take(m->store, m->life, m->driver, tn__trans_now(m->trans), out);
    return tn__done(m, status);
}
