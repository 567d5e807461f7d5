/* SPDX-License-Identifier: MIT */
/* A value type whose payload says itself what its callbacks answer. For the tests of src/value. */
#ifndef TN_VALUE_FAKE_H
#define TN_VALUE_FAKE_H

#include <string.h>

#include "value/value_priv.h"

#define FAKE_FIELDS_MAX 40

typedef struct fake {
    size_t count; /* fields */
    size_t grow;  /* added to `count` after each call of measure */
    tn_storage fields[FAKE_FIELDS_MAX];
    uint64_t logical;
    tn_status status; /* what measure and copy return */
    bool own_error;   /* they leave a detail of their own, with native code 77 */
    bool null_copy;   /* copy succeeds without a payload */
    int measures;
    int copies;
    int destroys;
} fake;

static inline tn_status fake_answer(const fake *f) {
    if (f->own_error)
        tn__error(f->status == TN_OK ? TN_ERR_LOOKUP : f->status, "the fake's own words")
            ->native_code = 77;
    return f->status;
}

static inline tn_status fake_measure(const void *payload, tn_storage *storages, size_t *inout_count,
                                     uint64_t *out_logical_bytes) {
    fake *f = (fake *)payload;
    for (size_t i = 0; i < f->count && i < *inout_count && i < FAKE_FIELDS_MAX; ++i)
        storages[i] = f->fields[i];
    *inout_count = f->count;
    *out_logical_bytes = f->logical;
    f->measures++;
    f->count += f->grow;
    return fake_answer(f);
}

static inline tn_status fake_copy(const void *payload, tn_copier *copier, void **out_payload) {
    fake *f = (fake *)payload;
    (void)copier;
    f->copies++;
    if (f->status == TN_OK && !f->null_copy)
        *out_payload = f;
    return fake_answer(f);
}

static inline void fake_destroy(void *payload) {
    fake *f = payload;
    f->destroys++;
    if (f->own_error)
        tn__error(TN_ERR_DEVICE_LOST, "the fake's own words")->native_code = 78;
}

static const tn_value_type fake_type = {sizeof(tn_value_type), "fake",    NULL,
                                        fake_measure,          fake_copy, fake_destroy};

static inline tn_payload fake_payload(fake *f) { return (tn_payload){&fake_type, f}; }

/* Any address does: nobody looks there. */
static inline const void *fake_base(unsigned n) {
    return (const void *)(uintptr_t)(0x10000u + 0x1000u * n);
}

static inline void fake_add(fake *f, unsigned base, uint64_t bytes, tn_location at) {
    f->fields[f->count++] = (tn_storage){bytes ? fake_base(base) : NULL, bytes, at};
    f->logical += bytes;
}

#endif
