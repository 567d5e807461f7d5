/* SPDX-License-Identifier: MIT */
/*
 * Looking things up in a version that the caller may read. No locks, no allocation.
 */
#include "placement/placement_priv.h"

const tn__value *tn__version_value(const tn_version *v, uint64_t index) {
    return tn__radix_find(&v->values, index);
}

tn__mat *tn__value_mat(const tn__value *value, tn_location at) {
    for (uint32_t i = 0; i < value->mat_count; i++)
        if (tn__location_same(value->mats[i]->at, at))
            return value->mats[i];
    return NULL;
}

tn__place *tn__table_place(tn__table *table, tn_location at) {
    for (uint32_t i = 0; i < table->count; i++)
        if (tn__location_same(table->places[i].at, at))
            return &table->places[i];
    return NULL;
}

const tn__place *tn__version_place(const tn_version *v, tn_location at) {
    return tn__table_place(v->table, at);
}

const tn__value *tn__version_next(const tn_version *v, uint64_t index) {
    return tn__radix_next(&v->values, index);
}

tn__mat *tn__place_next(const tn__place *place, uint64_t index) {
    return tn__radix_next(&place->resident, index);
}

tn_status tn__handle_refuse(uint64_t manager, tn_handle handle, enum tn_handle_cause cause) {
    static const char *const texts[] = {"is fine", "is foreign", "is unknown", "was discarded"};
    static const enum tn_reason reasons[] = {TN_REASON_NONE, TN_REASON_HANDLE_FOREIGN,
                                             TN_REASON_HANDLE_UNKNOWN, TN_REASON_HANDLE_DISCARDED};
    tn_error *e = tn__error(TN_ERR_HANDLE, "handle %llu of manager %llu %s (manager %llu)",
                            (unsigned long long)handle.index, (unsigned long long)handle.manager,
                            texts[cause], (unsigned long long)manager);
    e->handle_cause = (uint32_t)cause;
    e->reason = (uint32_t)reasons[cause];
    e->manager = manager;
    e->handle = handle;
    return TN_ERR_HANDLE;
}

/* An index that was issued but is absent was discarded long ago (D12); its type is not known any
 * longer. */
enum tn_handle_cause tn__version_judge(const tn_version *v, uint64_t index,
                                       const tn_value_type *type, const tn__value **out) {
    const tn__value *value = tn__version_value(v, index);
    if (!value)
        return index != 0 && index <= v->issued ? TN_HANDLE_DISCARDED : TN_HANDLE_UNKNOWN;
    if (value->type != type)
        return TN_HANDLE_UNKNOWN;
    if (value->discarded)
        return TN_HANDLE_DISCARDED;
    *out = value;
    return TN_HANDLE_CAUSE_NONE;
}

tn_status tn__version_resolve(const tn_version *v, uint64_t manager, tn_handle handle,
                              const tn__value **out) {
    enum tn_handle_cause cause = TN_HANDLE_FOREIGN;
    if (handle.manager == manager)
        cause = tn__version_judge(v, handle.index, handle.type, out);
    return cause == TN_HANDLE_CAUSE_NONE ? TN_OK : tn__handle_refuse(manager, handle, cause);
}
