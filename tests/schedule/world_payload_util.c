/* SPDX-License-Identifier: MIT */
/*
 * Payloads of the scenarios, and readers' looks at them.
 */
#include <stdlib.h>
#include <string.h>

#include "lifetime/lifetime_priv.h"
#include "world_priv.h"

#define DEAD UINT64_C(0xDBDBDBDBDBDBDBDB)

typedef struct payload {
    uint64_t serial; /* DEAD once destroyed, or taken to be removed */
    uint64_t value;
    tn_driver *driver;
    tn_location at;
    void *block;
} payload;

static uint64_t serials, live, pageable;
static __thread bool only_removes;

/* Plain memory: the schedule is one thread at a time. */
static tn_status make(tn_driver *driver, tn_location at, uint64_t value, payload **out) {
    void *block = NULL;
    tn_status status =
        at.kind == TN_LOCATION_PAGEABLE ? TN_OK : tn_memory_alloc(driver, at, WORLD_BYTES, &block);
    if (status != TN_OK)
        return status;
    if (!block) {
        block = malloc(WORLD_BYTES);
        pageable += WORLD_BYTES;
        if (pageable > world_budgets[0])
            sched_fail(__FILE__, __LINE__, "pageable storage exceeds its budget (B1)");
    }
    payload *p = calloc(1, sizeof *p);
    *p = (payload){++serials, value, driver, at, block};
    uint64_t words[WORLD_BYTES / 8];
    for (size_t i = 0; i < WORLD_BYTES / 8; i++)
        words[i] = value << 32 | i;
    memcpy(block, words, WORLD_BYTES);
    live++;
    *out = p;
    return TN_OK;
}

static void destroy(void *data) {
    payload *p = data;
    sched_point(); /* its storage is still there */
    if (p->block == NULL)
        sched_fail(__FILE__, __LINE__, "a payload was destroyed twice");
    p->serial = DEAD;
    memset(p->block, 0xDB, WORLD_BYTES);
    if (p->at.kind == TN_LOCATION_PAGEABLE) {
        pageable -= WORLD_BYTES;
        free(p->block);
    } else {
        SCHED_OK(tn_memory_free(p->driver, p->at, p->block, WORLD_BYTES));
    }
    p->block = NULL;
    live--;
}

static tn_status measure(const void *data, tn_storage *storages, size_t *inout_count,
                         uint64_t *out_logical_bytes) {
    const payload *p = data;
    if (*inout_count > 0)
        storages[0] = (tn_storage){p->block, WORLD_BYTES, p->at};
    *inout_count = 1;
    *out_logical_bytes = WORLD_BYTES;
    return TN_OK;
}

static tn_status copy(const void *data, tn_copier *copier, void **out) {
    const payload *from = data;
    payload *to = NULL;
    sched_point();
    if (from->serial == DEAD)
        sched_fail(__FILE__, __LINE__, "a transition copies from what is gone");
    tn_status status = make(tn_copier_driver(copier), tn_copier_location(copier), from->value, &to);
    if (status != TN_OK)
        return status;
    status = tn_copier_copy(copier, to->block, from->block, from->at, WORLD_BYTES);
    if (status == TN_OK)
        *out = to;
    else
        destroy(to);
    return status;
}

const tn_value_type world_type = {.size = sizeof world_type,
                                  .name = "schedule",
                                  .measure = measure,
                                  .copy = copy,
                                  .destroy = destroy};

static tn_status load(void *context, const tn_load_request *request, tn_load_result *result) {
    uint32_t value = (uint32_t)(uintptr_t)context;
    payload *p = NULL;
    sched_point();
    if (W.fail_loads[value]) {
        W.fail_loads[value]--;
        return TN_ERR_SOURCE;
    }
    tn_status status = make(request->driver, request->at, value, &p);
    if (status != TN_OK)
        return status;
    sched_point();
    W.loads[value]++;
    result->payload = (tn_payload){&world_type, p};
    return TN_OK;
}

tn_source world_source(uint32_t value) {
    tn_source source = TN_SOURCE_INIT;
    source.kind = TN_SOURCE_CALLBACK;
    source.load = load;
    source.context = (void *)(uintptr_t)value; /* a number, never followed */
    return source;
}

tn_status world_payload_make(tn_location at, uint32_t value, tn_payload *out) {
    payload *p = NULL;
    tn_status status = make(W.driver, at, value, &p);
    *out = (tn_payload){&world_type, p};
    return status;
}

uint64_t world_payloads(void) { return live; }

/* ---- Readers ---- */

static void whole(const payload *p) {
    uint64_t words[WORLD_BYTES / 8];
    memcpy(words, p->block, WORLD_BYTES);
    for (size_t i = 0; i < WORLD_BYTES / 8; i++)
        if (words[i] != (p->value << 32 | i))
            sched_fail(__FILE__, __LINE__, "a borrowed payload is damaged (L1)");
}

uint64_t world_payload_see(const void *data, uint32_t value) {
    const payload *p = data;
    if (p->serial == DEAD)
        sched_fail(__FILE__, __LINE__, "a lease gave a payload that is gone (L1)");
    SCHED_EQUAL(p->value, value);
    if (p->at.kind != TN_LOCATION_CUDA) /* copies to a device may be under way */
        whole(p);
    return p->serial;
}

void world_payload_check(const void *data, uint64_t serial) {
    const payload *p = data;
    if (p->serial == DEAD)
        sched_fail(__FILE__, __LINE__, "a borrowed payload was taken or destroyed (L1)");
    SCHED_EQUAL(p->serial, serial);
}

const void *world_payload_block(const void *data) { return ((const payload *)data)->block; }

/* ---- Poison at TAKEN ---- */

static void at_point(enum tn__point point, void *object) {
    if (point != TN__POINT_TAKEN || !only_removes)
        return;
    const tn__removal *removal = object;
    for (size_t i = 0; i < removal->count; i++)
        ((payload *)removal->mats[i]->payload.data)->serial = DEAD;
}

void world_only_removes(bool on) {
    only_removes = on;
    atomic_store(&tn__point_hook, at_point);
}
