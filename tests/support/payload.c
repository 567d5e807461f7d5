/* SPDX-License-Identifier: MIT */
#include "payload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TT_ALIVE UINT64_C(0x7e57a11fe0000001)
#define TT_DEAD UINT64_C(0x7e57dead00000000)

struct tt_backing {
    _Atomic uint64_t references;
    void *base;
    uint64_t bytes;
    tn_location at;
    tn_driver *driver;
    bool from_copier; /* base belongs to tn_memory_free() whatever the location */
};

typedef struct field {
    tt_backing *backing;
    uint64_t count, elem, stride, offset, claimed_bytes;
} field;

typedef struct data {
    uint64_t magic;
    uint64_t tag;
    size_t field_count;
    field fields[];
} data;

static _Atomic uint64_t live_count, backing_count, destroyed_count, copy_count, measure_count;
static _Atomic uint64_t fail_copy_in, fail_measure_in, grow_copy_in;
static _Atomic int fail_copy_status, fail_measure_status;

typedef void hook_fn(void *context, const void *data);
typedef struct hook {
    hook_fn *_Atomic function;
    void *_Atomic context;
} hook;
static hook copy_hook, measure_hook, destroy_hook;

static void __attribute__((noreturn)) die(const char *what) {
    fprintf(stderr, "test payload: %s\n", what);
    abort();
}

static void *take(size_t bytes) {
    void *block = calloc(1, bytes ? bytes : 1);
    if (!block)
        die("out of memory");
    return block;
}

static void run_hook(hook *h, const void *payload) {
    hook_fn *function = atomic_load(&h->function);
    if (function)
        function(atomic_load(&h->context), payload);
}

/* Counts down; true on the call that was armed. */
static bool due(_Atomic uint64_t *counter) {
    uint64_t left = atomic_load(counter);
    while (left)
        if (atomic_compare_exchange_weak(counter, &left, left - 1))
            return left == 1;
    return false;
}

static data *alive(const void *payload) {
    data *d = (data *)(uintptr_t)payload;
    if (!d)
        die("NULL payload");
    if (d->magic != TT_ALIVE)
        die(d->magic == TT_DEAD ? "used after it was destroyed" : "not one of our payloads");
    return d;
}

/* ---- Backings ---------------------------------------------------------------------------------
 */

static tt_backing *backing_new(tn_driver *driver, tn_location at, void *base, uint64_t bytes) {
    tt_backing *b = take(sizeof *b);
    atomic_init(&b->references, 1);
    b->base = base;
    b->bytes = bytes;
    b->at = at;
    b->driver = driver;
    atomic_fetch_add(&backing_count, 1);
    return b;
}

/* Pageable memory of tests comes from the C library, so that it never meets an injected failure. */
static tn_status backing_try(tn_driver *driver, tn_location at, uint64_t bytes, tt_backing **out) {
    void *base = NULL;
    if (bytes && at.kind == TN_LOCATION_PAGEABLE) {
        base = take(bytes);
    } else if (bytes) {
        tn_status status = tn_memory_alloc(driver, at, bytes, &base);
        if (status != TN_OK)
            return status;
        memset(base, 0, bytes);
    }
    *out = backing_new(driver, at, base, bytes);
    return TN_OK;
}

static void __attribute__((noreturn)) die_of_error(void) {
    fprintf(stderr, "test payload: cannot allocate: %s\n", tn_last_error()->message);
    abort();
}

tt_backing *tt_backing_make(tn_driver *driver, tn_location at, uint64_t bytes) {
    tt_backing *b = NULL;
    if (backing_try(driver, at, bytes, &b) != TN_OK)
        die_of_error();
    return b;
}

static tt_backing *backing_ref(tt_backing *b) {
    atomic_fetch_add(&b->references, 1);
    return b;
}

void tt_backing_free(tt_backing *b) {
    if (!b || atomic_fetch_sub(&b->references, 1) != 1)
        return;
    if (b->at.kind == TN_LOCATION_PAGEABLE && !b->from_copier)
        free(b->base);
    else if (b->base)
        (void)tn_memory_free(b->driver, b->at, b->base, b->bytes);
    atomic_fetch_sub(&backing_count, 1);
    free(b);
}

void *tt_backing_base(const tt_backing *b) { return b->base; }

/* ---- Payloads ---------------------------------------------------------------------------------
 */

static data *data_new(size_t field_count) {
    data *d = take(sizeof *d + field_count * sizeof d->fields[0]);
    d->magic = TT_ALIVE;
    d->field_count = field_count;
    atomic_fetch_add(&live_count, 1);
    return d;
}

static void data_free(data *d) {
    for (size_t i = 0; i < d->field_count; i++)
        tt_backing_free(d->fields[i].backing); /* NULL in one half made */
    d->magic = TT_DEAD;
    atomic_fetch_sub(&live_count, 1);
    free(d);
}

static tn_status field_make(data *d, size_t index, tn_driver *driver, tn_location at,
                            const tt_field *from) {
    field *to = &d->fields[index];
    to->count = from->count;
    to->elem = from->elem ? from->elem : 8;
    to->stride = from->stride ? from->stride : 1;
    to->offset = from->offset;
    to->claimed_bytes = from->claimed_bytes;
    uint64_t need = to->count ? to->offset + ((to->count - 1) * to->stride + 1) * to->elem : 0;
    if (from->share > index)
        die("share names a later field");
    if (from->share) {
        to->backing = backing_ref(d->fields[from->share - 1].backing);
    } else if (from->backing) {
        to->backing = backing_ref(from->backing);
    } else {
        tn_status status =
            backing_try(driver, from->at.kind ? from->at : at,
                        from->backing_bytes ? from->backing_bytes : need, &to->backing);
        if (status != TN_OK)
            return status;
    }
    if (need > to->backing->bytes)
        die("a view beyond its backing");
    return TN_OK;
}

tn_status tt_try_make(const tn_value_type *type, tn_driver *driver, tn_location at,
                      const tt_field *fields, size_t field_count, tn_payload *out) {
    data *d = data_new(field_count);
    for (size_t i = 0; i < field_count; i++) {
        tn_status status = field_make(d, i, driver, at, &fields[i]);
        if (status != TN_OK) {
            data_free(d);
            return status;
        }
    }
    *out = (tn_payload){type, d};
    return TN_OK;
}

tn_payload tt_make(const tn_value_type *type, tn_driver *driver, tn_location at,
                   const tt_field *fields, size_t field_count) {
    tn_payload payload = {NULL, NULL};
    if (tt_try_make(type, driver, at, fields, field_count, &payload) != TN_OK)
        die_of_error();
    return payload;
}

tn_payload tt_bytes(tn_driver *driver, tn_location at, uint64_t bytes) {
    uint64_t elem = bytes % 8 ? 1 : 8;
    tt_field one = TT_DENSE(bytes / elem, elem);
    return tt_make(tt_type(), driver, at, &one, 1);
}

tn_payload tt_v(tn_driver *driver, tn_location at) { return tt_bytes(driver, at, 32); }

tn_payload tt_row(tt_backing *batch, uint64_t row, uint64_t bytes) {
    tt_field one = TT_DENSE(bytes, 1);
    one.offset = row * bytes;
    one.backing = batch;
    return tt_make(tt_type(), NULL, batch->at, &one, 1);
}

void tt_free(tn_payload payload) {
    if (payload.data)
        payload.type->destroy(payload.data);
}

void tt_set_tag(tn_payload payload, uint64_t tag) { alive(payload.data)->tag = tag; }

uint64_t tt_tag(const void *payload) { return alive(payload)->tag; }

size_t tt_field_count(const void *payload) { return alive(payload)->field_count; }

static const field *field_at(const void *payload, size_t index) {
    data *d = alive(payload);
    if (index >= d->field_count)
        die("no such field");
    return &d->fields[index];
}

const void *tt_field_base(const void *payload, size_t index) {
    return field_at(payload, index)->backing->base;
}

uint64_t tt_field_bytes(const void *payload, size_t index) {
    return field_at(payload, index)->backing->bytes;
}

tt_field tt_field_of(const void *payload, size_t index) {
    const field *f = field_at(payload, index);
    return (tt_field){.count = f->count,
                      .elem = f->elem,
                      .stride = f->stride,
                      .offset = f->offset,
                      .backing_bytes = f->backing->bytes,
                      .backing = f->backing,
                      .at = f->backing->at,
                      .claimed_bytes = f->claimed_bytes};
}

/* The byte at `index` (in element order) of field `f` of the pattern. */
static unsigned char pattern(uint64_t seed, size_t f, uint64_t index) {
    uint64_t x = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) ^
                 (f + 1) * UINT64_C(0xbf58476d1ce4e5b9) ^
                 (index / 8 + 1) * UINT64_C(0x94d049bb133111eb);
    x ^= x >> 29;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    return (unsigned char)(x >> (index % 8 * 8));
}

static unsigned char *element(const field *f, uint64_t index) {
    return (unsigned char *)f->backing->base + f->offset + index * f->stride * f->elem;
}

void tt_fill(tn_payload payload, uint64_t seed) {
    data *d = alive(payload.data);
    for (size_t i = 0; i < d->field_count; i++) {
        const field *f = &d->fields[i];
        for (uint64_t e = 0; e < f->count; e++)
            for (uint64_t b = 0; b < f->elem; b++)
                element(f, e)[b] = pattern(seed, i, e * f->elem + b);
    }
}

bool tt_check(const void *payload, uint64_t seed) {
    data *d = alive(payload);
    for (size_t i = 0; i < d->field_count; i++) {
        const field *f = &d->fields[i];
        for (uint64_t e = 0; e < f->count; e++)
            for (uint64_t b = 0; b < f->elem; b++)
                if (element(f, e)[b] != pattern(seed, i, e * f->elem + b))
                    return false;
    }
    return true;
}

/* ---- The callbacks of the types -------------------------------------------------------------- */

static tn_status measure(const void *payload, tn_storage *storages, size_t *inout_count,
                         uint64_t *out_logical_bytes) {
    data *d = alive(payload);
    atomic_fetch_add(&measure_count, 1);
    run_hook(&measure_hook, payload);
    if (due(&fail_measure_in))
        return (tn_status)atomic_load(&fail_measure_status);
    uint64_t logical = 0;
    for (size_t i = 0; i < d->field_count; i++) {
        const field *f = &d->fields[i];
        logical += f->count * f->elem;
        if (i < *inout_count) {
            storages[i].base = f->backing->base;
            storages[i].bytes = f->claimed_bytes ? f->claimed_bytes : f->backing->bytes;
            storages[i].at = f->backing->at;
        }
    }
    *inout_count = d->field_count;
    *out_logical_bytes = logical;
    return TN_OK;
}

/* One call for a dense field, one for each element of a view. */
static tn_status copy_field(tn_copier *copier, void *destination, const field *f) {
    tn_location from = f->backing->at;
    if (f->stride == 1 || f->count <= 1)
        return tn_copier_copy(copier, destination, element(f, 0), from, f->count * f->elem);
    for (uint64_t e = 0; e < f->count; e++) {
        tn_status status = tn_copier_copy(copier, (unsigned char *)destination + e * f->elem,
                                          element(f, e), from, f->elem);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static tn_status copy(const void *payload, tn_copier *copier, void **out_payload) {
    data *from = alive(payload);
    atomic_fetch_add(&copy_count, 1);
    run_hook(&copy_hook, payload);
    if (due(&fail_copy_in))
        return (tn_status)atomic_load(&fail_copy_status);
    bool grow = due(&grow_copy_in);
    data *to = data_new(from->field_count);
    to->tag = from->tag;
    tn_location at = tn_copier_location(copier);
    tn_status status = TN_OK;
    for (size_t i = 0; i < from->field_count && status == TN_OK; i++) {
        const field *f = &from->fields[i];
        uint64_t bytes = f->count * f->elem, extra = grow && i == 0 ? f->elem : 0;
        void *base = NULL;
        if (bytes + extra)
            status = tn_copier_alloc(copier, bytes + extra, &base);
        if (status != TN_OK)
            break;
        to->fields[i] = *f;
        to->fields[i].backing = backing_new(tn_copier_driver(copier), at, base, bytes + extra);
        to->fields[i].backing->from_copier = true;
        to->fields[i].count = f->count + (extra ? 1 : 0);
        to->fields[i].stride = 1;
        to->fields[i].offset = 0;
        to->fields[i].claimed_bytes = 0;
        if (bytes)
            status = copy_field(copier, base, f);
    }
    if (status != TN_OK) { /* undo: the copier waits for what is queued before it frees */
        for (size_t i = 0; i < to->field_count; i++) {
            tt_backing *b = to->fields[i].backing;
            if (!b)
                continue;
            if (b->base)
                tn_copier_free(copier, b->base, b->bytes);
            b->base = NULL;
        }
        data_free(to);
        return status;
    }
    *out_payload = to;
    return TN_OK;
}

static void destroy(void *payload) {
    data *d = alive(payload);
    run_hook(&destroy_hook, payload);
    atomic_fetch_add(&destroyed_count, 1);
    data_free(d);
}

static const tn_value_type base_type = {
    sizeof(tn_value_type), "test value", NULL, measure, copy, destroy};
static const tn_value_type sub_type = {
    sizeof(tn_value_type), "test subvalue", &base_type, measure, copy, destroy};
static const tn_value_type other_type = {
    sizeof(tn_value_type), "other test value", NULL, measure, copy, destroy};

const tn_value_type *tt_type(void) { return &base_type; }

const tn_value_type *tt_subtype(void) { return &sub_type; }

const tn_value_type *tt_other_type(void) { return &other_type; }

/* ---- Counters and failures ----------------------------------------------------------------------
 */

tt_counts tt_count(void) {
    return (tt_counts){atomic_load(&live_count), atomic_load(&backing_count),
                       atomic_load(&destroyed_count), atomic_load(&copy_count),
                       atomic_load(&measure_count)};
}

void tt_fail_copy(uint64_t nth, tn_status status) {
    atomic_store(&fail_copy_status, (int)status);
    atomic_store(&fail_copy_in, nth);
}

void tt_fail_measure(uint64_t nth, tn_status status) {
    atomic_store(&fail_measure_status, (int)status);
    atomic_store(&fail_measure_in, nth);
}

void tt_grow_copy(uint64_t nth) { atomic_store(&grow_copy_in, nth); }

static void set_hook(hook *h, hook_fn *function, void *context) {
    atomic_store(&h->function, NULL);
    atomic_store(&h->context, context);
    atomic_store(&h->function, function);
}

void tt_on_copy(void (*function)(void *context, const void *data), void *context) {
    set_hook(&copy_hook, function, context);
}

void tt_on_measure(void (*function)(void *context, const void *data), void *context) {
    set_hook(&measure_hook, function, context);
}

void tt_on_destroy(void (*function)(void *context, const void *data), void *context) {
    set_hook(&destroy_hook, function, context);
}

void tt_reset(void) {
    tt_fail_copy(0, TN_OK);
    tt_fail_measure(0, TN_OK);
    tt_grow_copy(0);
    set_hook(&copy_hook, NULL, NULL);
    set_hook(&measure_hook, NULL, NULL);
    set_hook(&destroy_hook, NULL, NULL);
}

/* ---- Sources --------------------------------------------------------------------------------- */

static tn_status source_load(void *context, const tn_load_request *request,
                             tn_load_result *result) {
    tt_source *s = context;
    uint64_t call = atomic_fetch_add(&s->calls, 1) + 1;
    s->last = *request;
    if (s->hook) {
        tn_status status = s->hook(s->hook_context, request);
        if (status != TN_OK)
            return status;
    }
    uint64_t fails = s->fail_count ? s->fail_count : 1;
    if (s->fail_from && call >= s->fail_from && call - s->fail_from < fails) {
        result->native_code = s->fail_code;
        if (s->fail_message)
            snprintf(result->message, sizeof result->message, "%s", s->fail_message);
        return s->fail_status ? s->fail_status : TN_ERR_SOURCE;
    }
    if (s->no_payload)
        return TN_OK;
    if (s->give.data) {
        result->payload = s->give;
        s->give.data = NULL;
        return TN_OK;
    }
    const tn_value_type *type = s->type ? s->type : request->spec.type;
    tn_location at = s->at.kind ? s->at : request->at;
    uint64_t bytes = request->spec.logical_bytes, elem = bytes % 8 ? 1 : 8;
    tt_field one = TT_DENSE(bytes / elem, elem);
    const tt_field *fields = s->fields ? s->fields : &one;
    size_t count = s->no_fields ? 0 : s->fields ? s->field_count : 1;
    tn_status status = tt_try_make(type, request->driver, at, fields, count, &result->payload);
    if (status == TN_OK)
        tt_fill(result->payload, s->seed);
    else
        result->native_code = tn_last_error()->native_code;
    return status;
}

static void source_forget(void *context) {
    tt_source *s = context;
    atomic_fetch_add(&s->forgotten, 1);
}

tn_source tt_source_of(tt_source *context) {
    tn_source source = TN_SOURCE_INIT;
    source.kind = TN_SOURCE_CALLBACK;
    source.load = source_load;
    source.forget = source_forget;
    source.context = context;
    return source;
}

tn_value_spec tt_spec(uint64_t logical_bytes, uint64_t storage_bytes) {
    tn_value_spec spec = TN_VALUE_SPEC_INIT;
    spec.type = tt_type();
    spec.logical_bytes = logical_bytes;
    spec.storage_bytes = storage_bytes;
    spec.replica_mode = TN_REPLICABLE;
    spec.recoverability = TN_RECONSTRUCTIBLE;
    return spec;
}
