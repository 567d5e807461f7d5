/* SPDX-License-Identifier: MIT */
/*
 * Reading a snapshot: everything in it is const.
 */
#include <string.h>

#include "snapshot/snapshot_priv.h"

static tn_status check(const tn_snapshot *s) {
    return s ? TN_OK : tn__fail(TN_ERR_KIND, "the snapshot is NULL");
}

/* The array protocol: room in, real total out, `size` of element 0 is the stride. */
static tn_status check_array(const tn_snapshot *s, const void *out, const size_t *inout_count) {
    tn_status status = check(s);
    if (status == TN_OK && !inout_count)
        status = tn__fail(TN_ERR_KIND, "the count is NULL");
    if (status == TN_OK && *inout_count > 0)
        status = tn__struct_check_out(out, sizeof(size_t), "the array");
    return status;
}

static void put(void *out, size_t i, const void *info, size_t bytes) {
    size_t stride;
    memcpy(&stride, out, sizeof stride);
    void *to = (char *)out + i * stride;
    memcpy(to, &stride, sizeof stride);
    tn__struct_out(to, info, bytes);
}

tn_status tn_snapshot_read(const tn_snapshot *s, tn_snapshot_info *out) {
    tn_status status = check(s);
    if (status == TN_OK)
        status = tn__struct_check_out(out, sizeof(size_t), "tn_snapshot_info");
    if (status != TN_OK)
        return status;
    const tn_version *v = s->pass.version;
    tn_snapshot_info info = {.size = sizeof info,
                             .manager = s->store->manager,
                             .state_version = s->state_version,
                             .captured_at_ns = s->captured_at_ns,
                             .value_count = v->value_count,
                             .location_count = v->table->count,
                             .reservation_count = s->pass.reserved_count,
                             .lease_count = s->pass.totals.active_leases,
                             .pending_lease_count = s->pass.totals.pending_leases,
                             .hold_count = s->pass.totals.holds,
                             .exact = s->exact};
    tn__struct_out(out, &info, sizeof info);
    return TN_OK;
}

static void describe(const tn_snapshot *s, const tn__value *value, tn_value_info *out) {
    tn_value_info info = {.size = sizeof info,
                          .handle = {s->store->manager, value->index, value->type},
                          .materialization_count = value->mat_count,
                          .source_at = value->source_at,
                          .has_source = value->source != NULL,
                          .discarded = value->discarded};
    info.spec = (tn_value_spec){.size = sizeof info.spec,
                                .type = value->type,
                                .logical_bytes = value->logical_bytes,
                                .storage_bytes = value->charge_bytes,
                                .replica_mode = value->replicable ? TN_REPLICABLE : TN_EXCLUSIVE,
                                .recoverability =
                                    value->reconstructible ? TN_RECONSTRUCTIBLE : TN_MUST_PRESERVE};
    tn__struct_out(out, &info, sizeof info);
}

tn_status tn_snapshot_next(const tn_snapshot *s, uint64_t *inout_cursor, tn_value_info *out,
                           bool *out_more) {
    tn_status status = check(s);
    if (status == TN_OK && (!inout_cursor || !out_more))
        status = tn__fail(TN_ERR_KIND, "an argument is NULL");
    if (status == TN_OK)
        status = tn__struct_check_out(out, sizeof(size_t), "tn_value_info");
    if (status != TN_OK)
        return status;
    const tn__value *value = tn__version_next(s->pass.version, *inout_cursor);
    *out_more = value != NULL;
    if (value) {
        describe(s, value, out);
        *inout_cursor = value->index + 1;
    }
    return TN_OK;
}

/* Discarded values that are still visible are found too. */
static tn_status find(const tn_snapshot *s, tn_handle handle, const tn__value **out) {
    if (!handle.type || handle.manager == 0 || handle.index == 0)
        return tn__fail(TN_ERR_KIND, "this is no handle");
    const tn__value *value = tn__version_value(s->pass.version, handle.index);
    if (handle.manager == s->store->manager && value && value->type == handle.type) {
        *out = value;
        return TN_OK;
    }
    return tn__version_resolve(s->pass.version, s->store->manager, handle, out);
}

tn_status tn_snapshot_value(const tn_snapshot *s, tn_handle handle, tn_value_info *out) {
    const tn__value *value = NULL;
    tn_status status = check(s);
    if (status == TN_OK)
        status = tn__struct_check_out(out, sizeof(size_t), "tn_value_info");
    if (status == TN_OK)
        status = find(s, handle, &value);
    if (status == TN_OK)
        describe(s, value, out);
    return status;
}

tn_status tn_snapshot_materializations(const tn_snapshot *s, tn_handle handle,
                                       tn_materialization_info *out, size_t *inout_count) {
    const tn__value *value = NULL;
    tn_status status = check_array(s, out, inout_count);
    if (status == TN_OK)
        status = find(s, handle, &value);
    if (status != TN_OK)
        return status;
    for (size_t i = 0; i < value->mat_count && i < *inout_count; i++) {
        const tn__mat *mat = value->mats[i];
        tn__protection p = tn__pass_protection(&s->pass, mat);
        tn_materialization_info info = {.size = sizeof info,
                                        .at = mat->at,
                                        .logical_bytes = mat->logical_bytes,
                                        .storage_bytes = mat->storage_bytes,
                                        .charged_bytes = mat->charged_bytes,
                                        .use_count = p.uses,
                                        .hold_count = p.holds,
                                        .pending_count = p.pending};
        put(out, i, &info, sizeof info);
    }
    *inout_count = value->mat_count;
    return TN_OK;
}

static tn_location_info location_info(const tn_snapshot *s, uint32_t k) {
    const tn__place *place = &s->pass.version->table->places[k];
    const tn__place_count *c = &s->places[k];
    uint64_t budget = tn__store_ledger(s->store, place->at)->budget;
    tn_location_info info = {.size = sizeof info,
                             .at = place->at,
                             .has_budget = budget != TN__UNLIMITED,
                             .used_bytes = place->used_bytes,
                             .reserved_bytes = c->reserved_bytes,
                             .peak_used_bytes = place->peak_used_bytes,
                             .peak_charged_bytes = c->peak_charged,
                             .value_count = place->value_count,
                             .reservation_count = c->reservations,
                             .use_count = c->p.uses,
                             .hold_count = c->p.holds,
                             .pending_count = c->p.pending,
                             .allocated_bytes = c->allocated,
                             .held_bytes = c->held};
    if (info.has_budget) {
        info.budget_bytes = budget;
        info.remaining_bytes = budget - place->used_bytes - c->reserved_bytes;
    }
    return info;
}

tn_status tn_snapshot_locations(const tn_snapshot *s, tn_location_info *out, size_t *inout_count) {
    tn_status status = check_array(s, out, inout_count);
    if (status != TN_OK)
        return status;
    uint32_t count = s->pass.version->table->count;
    for (uint32_t k = 0; k < count && k < *inout_count; k++) {
        tn_location_info info = location_info(s, k);
        put(out, k, &info, sizeof info);
    }
    *inout_count = count;
    return TN_OK;
}

tn_status tn_snapshot_reservations(const tn_snapshot *s, tn_reservation_info *out,
                                   size_t *inout_count) {
    tn_status status = check_array(s, out, inout_count);
    if (status != TN_OK)
        return status;
    for (size_t i = 0; i < s->pass.reserved_count && i < *inout_count; i++) {
        const tn__reserved *r = &s->pass.reserved[i];
        tn_reservation_info info = {.size = sizeof info, .at = r->at, .bytes = r->bytes};
        memcpy(info.label, r->label, sizeof info.label);
        put(out, i, &info, sizeof info);
    }
    *inout_count = s->pass.reserved_count;
    return TN_OK;
}
