/* SPDX-License-Identifier: MIT */
/*
 * Payloads of the torture: what they hold, and how a reader finds out that one is gone.
 *
 * Descriptors and pageable blocks come from lists of their own and go back there; pinned and
 * device blocks go back to the simulator, which poisons them too.
 */
#include "leases_torture.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base_internal.h"
#include "lifetime/lifetime_priv.h"

#define POISON UINT64_C(0xDBDBDBDBDBDBDBDB)
#define UNIT 256u
#define SIZES 4u

typedef struct payload {
    _Atomic uint64_t serial; /* POISON once destroyed, or taken to be removed */
    _Atomic uint64_t place;
    tn_driver *driver;
    tn_location at;
    uint64_t bytes;
    _Atomic uint64_t *block;
    struct payload *next;     /* in the list of free ones */
    struct payload *all_next; /* in the list of all */
} payload;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static payload *free_payloads, *all_payloads;
static void *free_blocks[SIZES]; /* their first word links them */
static void *all_blocks;         /* linked in front of each */
static uint64_t live, pageable_live, pageable_peak;
static _Atomic uint64_t serials;

/* ---- Random numbers and time ---- */

tort_random tort_random_of(uint64_t stream) {
    tort_random r = {tn_test_seed() ^ (stream * UINT64_C(0x9E3779B97F4A7C15))};
    for (int i = 0; i < 4; i++)
        tort_next(&r);
    return r;
}

uint32_t tort_next(tort_random *r) {
    uint64_t z = r->state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    return (uint32_t)(z >> 32);
}

void tort_spin(uint64_t ns) {
    uint64_t end = tn__mono_ns() + ns;
    while (tn__mono_ns() < end)
        tn__relax();
}

/* ---- Memory ---- */

uint64_t tort_bytes_of(uint32_t place) { return UNIT * (1 + place % SIZES); }

static uint32_t size_class(uint64_t bytes) { return (uint32_t)(bytes / UNIT) - 1; }

/* All under the lock. A block has a link in front, which keeps it 8-byte aligned. */
static void *pageable_take(uint64_t bytes) {
    void *block = free_blocks[size_class(bytes)];
    if (block) {
        memcpy(&free_blocks[size_class(bytes)], block, sizeof(void *));
    } else {
        void **made = malloc(sizeof(void *) + bytes);
        if (!made)
            abort();
        *made = all_blocks;
        all_blocks = made;
        block = made + 1;
    }
    pageable_live += bytes;
    if (pageable_peak < pageable_live)
        pageable_peak = pageable_live;
    return block;
}

static void pageable_give(void *block, uint64_t bytes) {
    memcpy(block, &free_blocks[size_class(bytes)], sizeof(void *));
    free_blocks[size_class(bytes)] = block;
    pageable_live -= bytes;
}

static payload *payload_take(void) {
    payload *p = free_payloads;
    if (p) {
        free_payloads = p->next;
    } else {
        p = calloc(1, sizeof *p);
        if (!p)
            abort();
        p->all_next = all_payloads;
        all_payloads = p;
    }
    live++;
    return p;
}

static tn_status make(tn_driver *driver, tn_location at, uint64_t place, uint64_t bytes,
                      payload **out) {
    void *block = NULL;
    tn_status status =
        at.kind == TN_LOCATION_PAGEABLE ? TN_OK : tn_memory_alloc(driver, at, bytes, &block);
    if (status != TN_OK)
        return status;
    pthread_mutex_lock(&lock);
    if (!block)
        block = pageable_take(bytes);
    payload *p = payload_take();
    pthread_mutex_unlock(&lock);
    p->driver = driver;
    p->at = at;
    p->bytes = bytes;
    p->block = block;
    atomic_store_explicit(&p->place, place, memory_order_relaxed);
    atomic_store_explicit(&p->serial, atomic_fetch_add(&serials, 1) + 1, memory_order_relaxed);
    *out = p;
    return TN_OK;
}

static void poison(payload *p) {
    atomic_store_explicit(&p->serial, POISON, memory_order_relaxed);
    memset((void *)p->block, 0xDB, p->bytes);
}

static void payload_destroy(void *data) {
    payload *p = data;
    poison(p);
    if (p->at.kind != TN_LOCATION_PAGEABLE)
        (void)tn_memory_free(p->driver, p->at, (void *)p->block, p->bytes);
    pthread_mutex_lock(&lock);
    if (p->at.kind == TN_LOCATION_PAGEABLE)
        pageable_give((void *)p->block, p->bytes);
    p->next = free_payloads;
    free_payloads = p;
    live--;
    pthread_mutex_unlock(&lock);
}

uint64_t tort_payloads_live(void) { return live; }

uint64_t tort_pageable_peak(void) { return pageable_peak; }

/* What a test that failed has left behind is never freed: its threads may still run. */
void tort_payloads_begin(void) {
    if (live == 0)
        return;
    free_payloads = all_payloads = NULL;
    memset(free_blocks, 0, sizeof free_blocks);
    all_blocks = NULL;
    live = pageable_live = pageable_peak = 0;
}

void tort_payloads_reset(void) {
    while (all_payloads) {
        payload *next = all_payloads->all_next;
        free(all_payloads);
        all_payloads = next;
    }
    while (all_blocks) {
        void *next = *(void **)all_blocks;
        free(all_blocks);
        all_blocks = next;
    }
    free_payloads = NULL;
    memset(free_blocks, 0, sizeof free_blocks);
    pageable_live = pageable_peak = 0;
}

/* ---- The type ---- */

static tn_status payload_measure(const void *data, tn_storage *storages, size_t *inout_count,
                                 uint64_t *out_logical_bytes) {
    const payload *p = data;
    if (*inout_count > 0)
        storages[0] = (tn_storage){(const void *)p->block, p->bytes, p->at};
    *inout_count = 1;
    *out_logical_bytes = p->bytes;
    return TN_OK;
}

static tn_status payload_copy(const void *data, tn_copier *copier, void **out) {
    const payload *from = data;
    payload *to = NULL;
    tn_status status =
        make(tn_copier_driver(copier), tn_copier_location(copier), from->place, from->bytes, &to);
    if (status != TN_OK)
        return status;
    status =
        tn_copier_copy(copier, (void *)to->block, (const void *)from->block, from->at, from->bytes);
    if (status != TN_OK) {
        payload_destroy(to);
        return status;
    }
    *out = to;
    return TN_OK;
}

static const tn_value_type type = {.size = sizeof type,
                                   .name = "torture",
                                   .measure = payload_measure,
                                   .copy = payload_copy,
                                   .destroy = payload_destroy};

const tn_value_type *tort_type(void) { return &type; }

/* Every word is the first one, which no other payload ever had, plus its index. */
tn_status tort_payload_make(tn_driver *driver, tn_location at, uint32_t place, tn_payload *out) {
    payload *p = NULL;
    tn_status status = make(driver, at, place, tort_bytes_of(place), &p);
    if (status != TN_OK)
        return status;
    uint64_t stamp = p->serial << 16;
    for (uint64_t i = 0; i < p->bytes / 8; i++)
        atomic_store_explicit(&p->block[i], stamp + i, memory_order_relaxed);
    *out = (tn_payload){&type, p};
    return TN_OK;
}

static tn_status load(void *context, const tn_load_request *request, tn_load_result *result) {
    return tort_payload_make(request->driver, request->at, (uint32_t)(uintptr_t)context,
                             &result->payload);
}

tn_source tort_source(uint32_t place) {
    tn_source source = TN_SOURCE_INIT;
    source.kind = TN_SOURCE_CALLBACK;
    source.load = load;
    source.context = (void *)(uintptr_t)place; /* a number, never followed */
    return source;
}

/* ---- Readers ---- */

const char *tort_payload_see(const void *data, uint32_t place, tort_seen *out) {
    const payload *p = data;
    *out = (tort_seen){data, atomic_load_explicit(&p->serial, memory_order_relaxed)};
    if (atomic_load_explicit(&p->place, memory_order_relaxed) != place)
        return "a lease gave the payload of another value";
    return tort_payload_check(out);
}

const char *tort_payload_check(const tort_seen *seen) {
    const payload *p = seen->data;
    uint64_t serial = atomic_load_explicit(&p->serial, memory_order_relaxed);
    if (serial == POISON)
        return "a borrowed payload was taken or destroyed";
    if (serial != seen->serial)
        return "a borrowed payload was destroyed, and made anew";
    uint64_t stamp = atomic_load_explicit(&p->block[0], memory_order_relaxed);
    for (uint64_t i = 0; i < p->bytes / 8; i++)
        if (atomic_load_explicit(&p->block[i], memory_order_relaxed) != stamp + i)
            return "a borrowed payload is damaged";
    return (stamp & 0xffff) == 0 ? NULL : "a borrowed payload holds no stamp";
}

void *tort_payload_block(const void *data) { return (void *)((const payload *)data)->block; }

uint64_t tort_payload_bytes(const void *data) { return ((const payload *)data)->bytes; }

/* ---- Test points ---- */

#if TN_CHECKS
static _Thread_local bool poison_taken;
static _Thread_local tort_random pauses;
static _Atomic uint32_t longest_pause;

/* A removal that was decided: whoever reads its payloads from now on sees poison. */
static void poison_all(const tn__removal *removal) {
    for (size_t i = 0; i < removal->count; i++)
        poison(removal->mats[i]->payload.data);
}

static void at_point(enum tn__point point, void *object) {
    if (point == TN__POINT_TAKEN && poison_taken)
        poison_all(object);
    uint32_t longest = atomic_load_explicit(&longest_pause, memory_order_relaxed);
    if (longest == 0)
        return;
    if (pauses.state == 0)
        pauses = tort_random_of((uint64_t)(uintptr_t)&pauses);
    uint32_t dice = tort_below(&pauses, 512);
    if (dice == 0)
        sched_yield();
    else if (dice < 24)
        tort_spin(tort_below(&pauses, longest));
}

void tort_points_on(uint32_t longest_pause_ns) {
    atomic_store(&longest_pause, longest_pause_ns);
    atomic_store(&tn__point_hook, at_point);
}

void tort_points_off(void) { atomic_store(&tn__point_hook, NULL); }

void tort_poison_at_taken(bool on) { poison_taken = on; }
#else
void tort_points_on(uint32_t longest_pause_ns) { (void)longest_pause_ns; }

void tort_points_off(void) {}

void tort_poison_at_taken(bool on) { (void)on; }
#endif
