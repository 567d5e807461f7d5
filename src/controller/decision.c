/* SPDX-License-Identifier: MIT */
/*
 * Reading a decision (C111..C115).
 */
#include "controller/controller_priv.h"

tn_status tn_decision_read(const tn_decision *d, tn_decision_info *out) {
    if (!d)
        return tn__fail(TN_ERR_KIND, "the decision is NULL");
    tn_status status = tn__struct_check_out(out, sizeof(size_t) + 1, "tn_decision_info");
    if (status != TN_OK)
        return status;
    tn_decision_info info = {.size = sizeof info,
                             .manager = d->manager,
                             .expected_version = d->version,
                             .explored_states = d->explored,
                             .policy = d->identity.name,
                             .eviction_count = d->eviction_count,
                             .config_count = d->identity.count};
    tn__struct_out(out, &info, sizeof info);
    return TN_OK;
}

const tn_request *tn_decision_request(const tn_decision *d) { return d ? d->request : NULL; }

const tn_plan *tn_decision_plan(const tn_decision *d) { return d ? d->plan : NULL; }

const tn_explanation *tn_decision_explanation(const tn_decision *d) {
    return d ? d->explanation : NULL;
}

tn_status tn_decision_evictions(const tn_decision *d, tn_eviction *out, size_t *inout_count) {
    if (!d)
        return tn__fail(TN_ERR_KIND, "the decision is NULL");
    return tn__structs_out(out, inout_count, d->evictions, sizeof *d->evictions, d->eviction_count,
                           "tn_eviction");
}

tn_status tn_decision_config(const tn_decision *d, const tn_config_pair **out, size_t *out_count) {
    if (!d || !out || !out_count)
        return tn__fail(TN_ERR_KIND, "an argument is NULL");
    *out = d->identity.count ? d->identity.pairs : NULL;
    *out_count = d->identity.count;
    return TN_OK;
}
