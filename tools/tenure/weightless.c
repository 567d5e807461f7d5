/* SPDX-License-Identifier: MIT */
#include "weightless.h"

#include "base.h"

#include <stdlib.h>

struct weightless {
    tn_location at;
    uint64_t bytes;
};

/* One allocation, whose address is its identity and whose size is what we say. */
static tn_status measure(const void *payload, tn_storage *storages, size_t *inout_count,
                         uint64_t *out_logical_bytes) {
    const struct weightless *value = payload;

    if (*inout_count > 0) {
        storages[0] = (tn_storage){.base = value, .bytes = value->bytes, .at = value->at};
    }
    *inout_count = 1;
    *out_logical_bytes = value->bytes;
    return TN_OK;
}

static void *make(tn_location at, uint64_t bytes) {
    struct weightless *value = memory_new(1, sizeof *value);

    *value = (struct weightless){.at = at, .bytes = bytes};
    return value;
}

static tn_status copy(const void *payload, tn_copier *copier, void **out_payload) {
    *out_payload = make(tn_copier_location(copier), ((const struct weightless *)payload)->bytes);
    return TN_OK;
}

static tn_status load(void *context, const tn_load_request *request, tn_load_result *result) {
    (void)context;
    result->payload = weightless_create(request->at, request->spec.logical_bytes);
    return TN_OK;
}

const tn_value_type *weightless_type(void) {
    static const tn_value_type type = {.size = sizeof type,
                                       .name = "weightless value",
                                       .measure = measure,
                                       .copy = copy,
                                       .destroy = free};

    return &type;
}

tn_payload weightless_create(tn_location at, uint64_t bytes) {
    return (tn_payload){.type = weightless_type(), .data = make(at, bytes)};
}

tn_status weightless_register(tn_manager *manager, uint64_t bytes, uint32_t replica_mode,
                              tn_location at, tn_handle *out) {
    tn_value_spec spec = TN_VALUE_SPEC_INIT;
    tn_source source = TN_SOURCE_INIT;

    spec.type = weightless_type();
    spec.logical_bytes = bytes;
    spec.storage_bytes = bytes;
    spec.replica_mode = replica_mode;
    spec.recoverability = TN_RECONSTRUCTIBLE;
    source.kind = TN_SOURCE_CALLBACK;
    source.load = load;
    return tn_manager_register_source(manager, &spec, &source, at, out);
}
