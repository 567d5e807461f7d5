/* SPDX-License-Identifier: MIT */
/* Locations, handles, value types and specs: form only, nothing here knows a manager or a driver.
 */
#include <stdio.h>
#include <string.h>

#include "value/value_priv.h"

/* ---- Locations -------------------------------------------------------------------------- */

enum device_form {
    DEVICE_NONE,      /* no device at all */
    DEVICE_CPU,       /* cpu, cpu:N */
    DEVICE_CUDA,      /* cuda:N */
    DEVICE_CUDA_BARE, /* cuda: never filled in from a current device (M13) */
    DEVICE_CUDA_RANGE /* cuda:N, N too large */
};

/* Decimal digits without leading zeros; values too large for a device stop at TN_CUDA_INDEX_MAX
 * + 1. */
static bool parse_index(const char *digits, uint32_t *out) {
    if (digits[0] == '\0' || (digits[0] == '0' && digits[1] != '\0'))
        return false;
    uint32_t value = 0;
    for (const char *c = digits; *c; ++c) {
        if (*c < '0' || *c > '9')
            return false;
        value = value * 10 + (uint32_t)(*c - '0');
        if (value > TN_CUDA_INDEX_MAX)
            value = TN_CUDA_INDEX_MAX + 1;
    }
    *out = value;
    return true;
}

static enum device_form parse_device(const char *text, uint32_t *out_index) {
    uint32_t index = 0;
    if (strcmp(text, "cpu") == 0)
        return DEVICE_CPU;
    if (strncmp(text, "cpu:", 4) == 0)
        return parse_index(text + 4, &index) ? DEVICE_CPU : DEVICE_NONE;
    if (strcmp(text, "cuda") == 0)
        return DEVICE_CUDA_BARE;
    if (strncmp(text, "cuda:", 5) != 0 || !parse_index(text + 5, &index))
        return DEVICE_NONE;
    *out_index = index;
    return index <= TN_CUDA_INDEX_MAX ? DEVICE_CUDA : DEVICE_CUDA_RANGE;
}

static tn_status refuse_device(enum device_form form, const char *text) {
    switch (form) {
    case DEVICE_CUDA_BARE:
        return tn__fail(TN_ERR_VALUE, "a CUDA location needs a device index");
    case DEVICE_CUDA_RANGE:
        return tn__fail(TN_ERR_VALUE, "`%.64s`: the device index is above %u", text,
                        TN_CUDA_INDEX_MAX);
    default:
        return tn__fail(TN_ERR_VALUE, "`%.64s` is not cpu, cpu:N or cuda:N", text);
    }
}

tn_status tn_location_make(uint32_t kind, const char *device, tn_location *out) {
    if (!device || !out)
        return tn__fail(TN_ERR_KIND, "%s is NULL", device ? "the output" : "the device text");
    if (kind != TN_LOCATION_PAGEABLE && kind != TN_LOCATION_PINNED && kind != TN_LOCATION_CUDA)
        return tn__fail(TN_ERR_VALUE, "%u is no kind of location", kind);
    uint32_t index = 0;
    enum device_form form = parse_device(device, &index);
    if (form != DEVICE_CPU && form != DEVICE_CUDA)
        return refuse_device(form, device);
    if ((form == DEVICE_CUDA) != (kind == TN_LOCATION_CUDA))
        return tn__fail(TN_ERR_VALUE, "`%.64s` does not fit a %s location", device,
                        kind == TN_LOCATION_CUDA ? "CUDA" : "host");
    *out = (tn_location){kind, index};
    return TN_OK;
}

tn_status tn_location_name(tn_location at, char *buffer, size_t capacity) {
    char text[TN_LOCATION_NAME_MAX] = "none";
    if (!buffer)
        return tn__fail(TN_ERR_KIND, "the buffer is NULL");
    if (at.kind != TN_LOCATION_NONE) {
        tn_status status = tn__location_in(at, &at);
        if (status != TN_OK)
            return status;
        tn__location_text(at, text);
    }
    size_t length = strlen(text);
    if (capacity <= length)
        return tn__fail(TN_ERR_VALUE, "`%s` needs %zu bytes, the buffer has %zu", text, length + 1,
                        capacity);
    memcpy(buffer, text, length + 1);
    return TN_OK;
}

bool tn_location_equal(tn_location a, tn_location b) { return tn__location_same(a, b); }

/* ---- Handles ---------------------------------------------------------------------------- */

tn_status tn_handle_make(uint64_t manager, uint64_t index, const tn_value_type *type,
                         tn_handle *out) {
    if (!out)
        return tn__fail(TN_ERR_KIND, "the output is NULL");
    if (!tn__type_valid(type))
        return tn__fail(TN_ERR_KIND, "the type is no valid value type");
    if (manager == 0 || index == 0)
        return tn__fail(TN_ERR_VALUE, "the %s of a handle is never 0",
                        manager == 0 ? "manager" : "index");
    *out = (tn_handle){manager, index, type};
    return TN_OK;
}

bool tn_handle_equal(tn_handle a, tn_handle b) {
    return a.manager == b.manager && a.index == b.index && a.type == b.type;
}

/* A bijection of 64-bit words in which each input bit reaches each output bit. */
static uint64_t mix(uint64_t x) {
    x ^= x >> 32;
    x *= UINT64_C(0x9e6c63d0876a9a47);
    x ^= x >> 32;
    x *= UINT64_C(0x9e6c63d0876a9a47);
    return x ^ (x >> 28);
}

uint64_t tn_handle_hash(tn_handle handle) {
    return mix(handle.index + mix(handle.manager + mix((uint64_t)(uintptr_t)handle.type)));
}

/* ---- Value types ------------------------------------------------------------------------ */

/* A type of a newer header is fine as long as what we do not know is zero. */
static bool size_valid(const tn_value_type *type) {
    const size_t sane = 4096; /* do not walk through memory after a garbage size */
    if (type->size < TN__SIZE_THROUGH(tn_value_type, destroy) || type->size > sane)
        return false;
    const unsigned char *bytes = (const unsigned char *)type;
    for (size_t i = sizeof *type; i < type->size; ++i)
        if (bytes[i] != 0)
            return false;
    return true;
}

static bool link_valid(const tn_value_type *type) {
    return size_valid(type) && type->name && strnlen(type->name, 256) < 256 &&
           !tn__blank(type->name) && type->measure && type->copy && type->destroy;
}

bool tn__type_valid(const tn_value_type *type) {
    int depth = 0;
    if (!type)
        return false;
    for (const tn_value_type *t = type; t; t = t->super)
        if (++depth > TN_TYPE_DEPTH_MAX || !link_valid(t))
            return false;
    return true;
}

bool tn_value_type_is(const tn_value_type *type, const tn_value_type *base) {
    if (!base)
        return false;
    for (int depth = 0; type && depth < TN_TYPE_DEPTH_MAX; ++depth, type = type->super)
        if (type == base)
            return true;
    return false;
}

/* ---- Specs ------------------------------------------------------------------------------ */

tn_status tn_value_spec_check(const tn_value_spec *spec) {
    tn_value_spec own;
    tn_status status = tn__struct_in(
        &own, sizeof own, TN__SIZE_THROUGH(tn_value_spec, recoverability), spec, "tn_value_spec");
    if (status != TN_OK)
        return status;
    if (!tn__type_valid(own.type))
        return tn__fail(TN_ERR_KIND, "the spec's type is no valid value type");
    if (own.logical_bytes > INT64_MAX || own.storage_bytes > INT64_MAX)
        return tn__fail(TN_ERR_VALUE, "the spec's %s bytes are above INT64_MAX",
                        own.logical_bytes > INT64_MAX ? "logical" : "storage");
    if (own.storage_bytes < own.logical_bytes)
        return tn__fail(TN_ERR_VALUE, "the spec's storage bytes are below its logical bytes");
    if (own.replica_mode > TN_REPLICABLE)
        return tn__fail(TN_ERR_KIND, "%u is no replica mode", own.replica_mode);
    if (own.recoverability > TN_RECONSTRUCTIBLE)
        return tn__fail(TN_ERR_KIND, "%u is no recoverability", own.recoverability);
    return TN_OK;
}
