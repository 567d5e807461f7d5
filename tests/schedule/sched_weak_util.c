/* SPDX-License-Identifier: MIT */
/*
 * Weak memory, chosen by TN_SCHEDULE_MEMORY=weak: what C11 allows beyond x86-64, with the store that is newest to
 * everybody in memory itself.
 *
 * Each atomic place keeps its last stores. A load may give any of them that its thread need not have passed: it has
 * passed a store if it knows, by its clock, of a thread that has made or seen that store or a later one. A store carries
 * its thread's clock (release), or the clock of its last fence (relaxed); a load learns it at once (acquire), or at the
 * next acquire fence (relaxed). Read-modify-writes see the newest store and hand on what it carried.
 *
 * The heavy fence is a fence of every thread where it stands, but what a thread has stored since its last compiler
 * fence, call or locked instruction may still be ahead of it: the compiler was free to put it there.
 *
 * Not explored: loads before earlier loads that decide them by value, stores of different threads to one
 * place in another order than they were made.
 */
#include <stdlib.h>
#include <string.h>

#include "sched_priv.h"

#define KEPT 4 /* stores of a place */
#define PLACES 16384u
#define NEVER UINT32_MAX

typedef struct message {
    uint64_t value, step;
    uint32_t seen[SCHED_LINES]; /* by line: its clock when it made it or saw it first */
    uint32_t clock[SCHED_LINES];
} message;

typedef struct place {
    uintptr_t address; /* 0: none */
    uint32_t size, count;
    message kept[KEPT]; /* the newest is number count - 1 */
} place;

static place places[PLACES];
static uint32_t place_count;
static uint32_t time_of[SCHED_LINES];
static uint32_t line_count;
static uint32_t order_of_fences[SCHED_LINES]; /* what the last seq_cst fence knew */

static bool on(void) { return sched_self && sched_state.exploring && sched_state.plan.weak; }

static void join(uint32_t *into, const uint32_t *from) {
    for (size_t i = 0; i < SCHED_LINES; i++)
        if (into[i] < from[i])
            into[i] = from[i];
}

static uint32_t tick(fiber *f) { return f->clock[f->line] = ++time_of[f->line]; }

/* ---- Places ---- */

static uint64_t memory_of(uintptr_t address, uint32_t size) {
    uint64_t value = 0;
    memcpy(&value, (const void *)address, size);
    return value;
}

static message *newest(place *p) { return &p->kept[(p->count - 1) % KEPT]; }

/* Everybody has passed what was before. */
static void begin(place *p) {
    p->count = 1;
    p->kept[0] = (message){.value = memory_of(p->address, p->size)};
}

static place *slot_of(uintptr_t address) {
    size_t at = (address >> 2) * 0x9E3779B1u % PLACES;
    while (places[at].address && places[at].address != address)
        at = (at + 1) % PLACES;
    return &places[at];
}

static place *find(uintptr_t address, uint32_t size) {
    place *p = slot_of(address);
    if (!p->address) {
        if (++place_count > PLACES / 2)
            sched_fail(__FILE__, __LINE__, "too many places");
        p->address = address;
        p->size = size;
        begin(p);
    } else if (p->size != size || newest(p)->value != memory_of(address, size)) {
        p->size = size; /* written by plain stores, before it was shared */
        begin(p);
    }
    return p;
}

static bool passed(const fiber *f, const message *m) {
    if (m->step <= f->floor)
        return true;
    for (size_t i = 0; i < SCHED_LINES; i++)
        if (m->seen[i] <= f->clock[i])
            return true;
    return false;
}

static void learn(fiber *f, const message *m, int order) {
    join(order & TN__ACQUIRE ? f->clock : f->pending, m->clock);
}

static void see(fiber *f, message *m, int order) {
    uint32_t now = tick(f);
    if (m->seen[f->line] > now)
        m->seen[f->line] = now;
    learn(f, m, order);
}

static message *add(fiber *f, place *p, uint64_t value, int order) {
    message *m = &p->kept[p->count++ % KEPT];
    *m = (message){.value = value, .step = sched_state.steps};
    memset(m->seen, 0xff, sizeof m->seen);
    m->seen[f->line] = tick(f);
    memcpy(m->clock, order & TN__RELEASE ? f->clock : f->released, sizeof m->clock);
    return m;
}

/* ---- Operations ---- */

bool sched_weak_load(const volatile void *address, void *value, size_t size, int order) {
    fiber *f = sched_self;
    if (!on())
        return false;
    place *p = find((uintptr_t)address, (uint32_t)size);
    uint32_t may = 1, all = p->count < KEPT ? p->count : KEPT;
    while (may < all && !passed(f, &p->kept[(p->count - may) % KEPT]))
        may++;
    uint32_t back = may > 1 && sched_below(&sched_state.plan.random, 2)
                        ? sched_below(&sched_state.plan.random, may)
                        : 0;
    message *m = &p->kept[(p->count - 1 - back) % KEPT];
    if (back)
        sched_decided(sched_state.explored << 4 | back);
    see(f, m, order);
    memcpy(value, &m->value, size);
    return true;
}

void sched_weak_store(volatile void *address, const void *value, size_t size, int order) {
    uint64_t word = 0;
    if (!on())
        return;
    memcpy(&word, value, size);
    (void)add(sched_self, find((uintptr_t)address, (uint32_t)size), word, order);
}

/* Before the operation: so that only its own change of memory is new after it. */
void sched_weak_expect(volatile void *address, size_t size) {
    if (on())
        for (size_t i = 0; i < size; i += 8)
            (void)find((uintptr_t)address + i, size < 8 ? (uint32_t)size : 8);
}

static void changed(fiber *f, uintptr_t address, uint32_t size, int order, bool wrote) {
    place *p = slot_of(address);
    message last = *newest(p);
    see(f, newest(p), order);
    if (wrote)
        join(add(f, p, memory_of(address, size), order)->clock, last.clock);
}

void sched_weak_changed(volatile void *address, size_t size, int order, bool wrote) {
    fiber *f = sched_self;
    if (!on())
        return;
    if (order & TN__FENCE)
        sched_weak_fence(f);
    for (size_t i = 0; i < size; i += 8)
        changed(f, (uintptr_t)address + i, size < 8 ? (uint32_t)size : 8, order, wrote);
    if (order & TN__FENCE)
        sched_weak_fence(f);
    if (order & TN__RELEASE)
        sched_weak_compiler();
}

/* ---- Fences ---- */

void sched_weak_fence(fiber *f) {
    if (!on())
        return;
    join(f->clock, f->pending);
    join(f->clock, order_of_fences);
    join(order_of_fences, f->clock);
    memcpy(f->released, f->clock, sizeof f->released);
    f->fixed = f->clock[f->line];
}

void sched_weak_acquire_fence(void) {
    if (on())
        join(sched_self->clock, sched_self->pending);
}

void sched_weak_release_fence(void) {
    if (!on())
        return;
    memcpy(sched_self->released, sched_self->clock, sizeof sched_self->released);
    sched_weak_compiler();
}

void sched_weak_compiler(void) {
    if (on())
        sched_self->fixed = sched_self->clock[sched_self->line];
}

/* A fence of another thread, where it stands. */
static void fence_of(fiber *f) {
    uint32_t own = f->clock[f->line];
    join(f->clock, f->pending);
    join(f->clock, order_of_fences);
    f->clock[f->line] = f->fixed;
    join(order_of_fences, f->clock);
    memcpy(f->released, f->clock, sizeof f->released);
    f->clock[f->line] = own;
}

void sched_weak_fence_all(void) {
    if (!on())
        return;
    sched_weak_fence(sched_self);
    for (size_t i = 0; i < sched_state.fiber_count; i++)
        if (&sched_state.fibers[i] != sched_self && sched_state.fibers[i].state != FIBER_OVER)
            fence_of(&sched_state.fibers[i]);
    sched_weak_fence(sched_self);
}

/* ---- Threads, locks ---- */

/* As the stores of the thread, and of the thread that makes it, were all made long ago. */
static void line_begin(fiber *f) {
    f->line = line_count < SCHED_LINES - 1 ? ++line_count : SCHED_LINES - 1;
    memset(f->clock, 0, sizeof f->clock);
    memset(f->pending, 0, sizeof f->pending);
    memset(f->released, 0, sizeof f->released);
    f->fixed = tick(f);
}

void sched_weak_thread(fiber *f) {
    if (!on())
        return;
    line_begin(f);
    join(f->clock, sched_self->clock);
    join(f->released, sched_self->clock);
}

void sched_weak_joined(const fiber *f) {
    if (on())
        join(sched_self->clock, f->clock);
}

void sched_weak_begin(void) {
    memset(places, 0, place_count ? sizeof places : 0);
    memset(order_of_fences, 0, sizeof order_of_fences);
    place_count = line_count = 0;
    for (size_t i = 0; i < sched_state.fiber_count; i++)
        line_begin(&sched_state.fibers[i]);
}

/* A wait loop sees what is there by now, some time. */
void sched_weak_waited(void) {
    if (on())
        sched_self->floor = sched_state.steps;
}

/* Of a lock or a semaphore: a place whose value is nobody's business. */
static message *lock_of(const volatile void *lock) {
    place *p = slot_of((uintptr_t)lock | 1);
    place_count += p->address == 0;
    p->address = (uintptr_t)lock | 1;
    return &p->kept[0];
}

void sched_weak_locked(const volatile void *lock) {
    if (on())
        join(sched_self->clock, lock_of(lock)->clock);
}

void sched_weak_unlocked(const volatile void *lock) {
    if (!on())
        return;
    join(lock_of(lock)->clock, sched_self->clock);
    sched_weak_compiler();
    tick(sched_self);
}

bool sched_weak_wanted(void) {
    const char *memory = getenv("TN_SCHEDULE_MEMORY");
    return memory && strcmp(memory, "weak") == 0;
}
