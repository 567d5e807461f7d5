/* SPDX-License-Identifier: MIT */
/*
 * Byte measures of a payload (M24..M28). The type's callback lists fields; here they are checked
 * and reduced to distinct backing allocations. Fields without bytes are no allocation, but they are
 * fields: one on another device makes the payload unusable.
 */
#include <stdlib.h>
#include <string.h>

#include "value/value_priv.h"

#define ROUNDS 3 /* a callback may ask for more room twice */

static tn_status unusable(tn_payload payload, const char *why) {
    return tn__fail(TN_ERR_PAYLOAD, "payload of type %.64s: %s", payload.type->name, why);
}

static tn_status ask(tn_payload payload, tn__measured *m, size_t *inout_count) {
    tn__callback call;
    tn__callback_begin(&call);
    tn_status status =
        payload.type->measure(payload.data, m->storages, inout_count, &m->logical_bytes);
    return tn__callback_end(&call, status, TN_ERR_PAYLOAD, "measuring", payload.type->name);
}

static tn_status make_room(tn_payload payload, tn__measured *m, size_t count) {
    tn__measured_fini(m);
    if (count > SIZE_MAX / sizeof(tn_storage))
        return unusable(payload, "too many fields");
    m->storages = tn__zalloc(count * sizeof(tn_storage));
    return m->storages ? TN_OK : tn__no_memory();
}

/* All fields as the callback tells them, in m->storages. */
static tn_status collect(tn_payload payload, tn__measured *m, size_t *out_count) {
    size_t room = TN__MEASURED_INLINE;
    for (int round = 0; round < ROUNDS; ++round) {
        size_t count = room;
        tn_status status = ask(payload, m, &count);
        if (status != TN_OK)
            return status;
        if (count <= room) {
            *out_count = count;
            return TN_OK;
        }
        status = make_room(payload, m, count);
        if (status != TN_OK)
            return status;
        room = count;
    }
    return unusable(payload, "its number of fields keeps changing");
}

/* Where the fields are, one after another. */
typedef struct places {
    bool cpu;
    bool cuda;
    uint32_t index; /* of the CUDA device */
    bool pageable;  /* among fields with bytes */
    bool pinned;
} places;

/* NULL, or why the payload is unusable. */
static const char *add_place(places *p, const tn_storage *field) {
    switch (field->at.kind) {
    case TN_LOCATION_PAGEABLE:
    case TN_LOCATION_PINNED:
        p->cpu = true;
        if (field->bytes > 0 && field->at.kind == TN_LOCATION_PINNED)
            p->pinned = true;
        if (field->bytes > 0 && field->at.kind == TN_LOCATION_PAGEABLE)
            p->pageable = true;
        break;
    case TN_LOCATION_CUDA:
        if (field->at.index > TN_CUDA_INDEX_MAX)
            return "a field is on a CUDA device above 127";
        if (p->cuda && p->index != field->at.index)
            return "its fields are on different CUDA devices";
        p->cuda = true;
        p->index = field->at.index;
        break;
    default:
        if (field->at.kind != TN_LOCATION_NONE || field->bytes > 0)
            return "a field is at no location";
    }
    return p->cpu && p->cuda ? "its fields are on CPU and CUDA devices" : NULL;
}

static void set_location(tn__measured *m, const places *p) {
    m->neutral = !p->cuda && !p->pinned && !p->pageable;
    if (p->cuda)
        m->at = tn_location_cuda(p->index);
    else if (p->pinned && p->pageable)
        m->at = tn_location_none();
    else
        m->at = p->pinned ? tn_location_pinned() : tn_location_pageable();
}

/* Check each field, learn where they are, and keep those with bytes. */
static const char *check_fields(tn__measured *m, size_t count) {
    places p = {0};
    size_t kept = 0;
    for (size_t i = 0; i < count; ++i) {
        tn_storage field = m->storages[i];
        const char *why = add_place(&p, &field);
        if (why)
            return why;
        if (field.bytes > INT64_MAX)
            return "a field is larger than INT64_MAX";
        if (field.bytes > 0 && !field.base)
            return "a field with bytes has no backing allocation";
        if (field.bytes > 0)
            m->storages[kept++] = field;
    }
    m->storage_count = kept;
    set_location(m, &p);
    return NULL;
}

static int by_base(const void *a, const void *b) {
    uintptr_t x = (uintptr_t)((const tn_storage *)a)->base;
    uintptr_t y = (uintptr_t)((const tn_storage *)b)->base;
    return x < y ? -1 : x > y;
}

/* V2: sort, and count each backing allocation once. */
static const char *merge(tn__measured *m) {
    size_t distinct = 0;
    uint64_t sum = 0;
    if (m->storage_count > 1)
        qsort(m->storages, m->storage_count, sizeof(tn_storage), by_base);
    for (size_t i = 0; i < m->storage_count; ++i) {
        tn_storage field = m->storages[i];
        if (distinct > 0 && m->storages[distinct - 1].base == field.base) {
            if (m->storages[distinct - 1].bytes != field.bytes)
                return "its fields report two sizes for one backing allocation";
            continue;
        }
        sum = tn__add_capped(sum, field.bytes);
        m->storages[distinct++] = field;
    }
    m->storage_count = distinct;
    m->storage_bytes = sum;
    return sum > INT64_MAX ? "its storage bytes are above INT64_MAX" : NULL;
}

static tn_status measure(tn_payload payload, tn__measured *m) {
    size_t count = 0;
    tn_status status = collect(payload, m, &count);
    if (status != TN_OK)
        return status;
    if (count == 0)
        return unusable(payload, "it has no fields");
    if (m->logical_bytes > INT64_MAX)
        return unusable(payload, "its logical bytes are above INT64_MAX");
    const char *why = check_fields(m, count);
    if (!why)
        why = merge(m);
    return why ? unusable(payload, why) : TN_OK;
}

tn_status tn__measure(tn_payload payload, tn__measured *out) {
    memset(out, 0, sizeof *out);
    out->storages = out->few;
    if (!payload.data)
        return tn__fail(TN_ERR_KIND, "the payload is NULL");
    if (!tn__type_valid(payload.type))
        return tn__fail(TN_ERR_KIND, "the payload's type is no valid value type");
    tn_status status = measure(payload, out);
    if (status != TN_OK)
        tn__measured_fini(out);
    return status;
}

void tn__measured_fini(tn__measured *measured) {
    if (measured->storages != measured->few)
        tn__free(measured->storages);
    measured->storages = measured->few;
    measured->storage_count = 0;
}

tn_status tn_payload_measure(tn_payload payload, tn_measure *out) {
    tn_status status = tn__struct_check_out(out, TN__SIZE_THROUGH(tn_measure, at), "tn_measure");
    if (status != TN_OK)
        return status;
    tn__measured measured;
    status = tn__measure(payload, &measured);
    if (status != TN_OK)
        return status;
    tn_measure result = {sizeof result, measured.logical_bytes, measured.storage_bytes,
                         measured.at};
    tn__measured_fini(&measured);
    tn__struct_out(out, &result, sizeof result);
    return TN_OK;
}
