/* SPDX-License-Identifier: MIT */
/* Does a payload belong where it shall go (M58), and is it what its spec says (M36)? */
#include "value/value_priv.h"

tn_status tn__check_agreement(const tn__measured *measured, tn_location at) {
    char want[TN_LOCATION_NAME_MAX];
    char have[TN_LOCATION_NAME_MAX];
    if (measured->neutral && at.kind != TN_LOCATION_CUDA)
        return TN_OK; /* G22 */
    if (measured->at.kind != TN_LOCATION_NONE && tn__location_same(measured->at, at))
        return TN_OK;
    tn__location_text(at, want);
    if (measured->at.kind == TN_LOCATION_NONE)
        tn__error(TN_ERR_MATERIALIZATION,
                  "a payload with pinned and pageable fields cannot be at %s", want)
            ->at = at;
    else
        tn__error(TN_ERR_MATERIALIZATION, "the payload is at %s, not at %s",
                  tn__location_text(measured->at, have), want)
            ->at = at;
    return TN_ERR_MATERIALIZATION;
}

static tn_status misfit(const char *what, uint64_t expected, uint64_t actual, tn_location at) {
    tn_error *error =
        tn__error(TN_ERR_MATERIALIZATION, "the payload has %llu bytes, but its spec's %s is %llu",
                  (unsigned long long)actual, what, (unsigned long long)expected);
    error->expected = expected;
    error->actual = actual;
    error->at = at;
    return TN_ERR_MATERIALIZATION;
}

tn_status tn__check_fit(const tn_value_spec *spec, const tn_value_type *type,
                        const tn__measured *measured, tn_location at) {
    if (!tn_value_type_is(type, spec->type)) {
        tn__error(TN_ERR_MATERIALIZATION, "the payload's type %.64s is not %.64s, as its spec says",
                  type ? type->name : "(NULL)", spec->type->name)
            ->at = at;
        return TN_ERR_MATERIALIZATION;
    }
    tn_status status = tn__check_agreement(measured, at);
    if (status != TN_OK)
        return status;
    if (measured->logical_bytes != spec->logical_bytes)
        return misfit("exact logical size", spec->logical_bytes, measured->logical_bytes, at);
    uint64_t larger = measured->storage_bytes;
    if (larger < measured->logical_bytes)
        larger = measured->logical_bytes;
    if (larger > spec->storage_bytes)
        return misfit("charge", spec->storage_bytes, larger, at);
    return TN_OK;
}
