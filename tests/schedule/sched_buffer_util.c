/* SPDX-License-Identifier: MIT */
/*
 * Store buffers: total store order, as on x86-64. A thread's stores become visible in its order, some time
 * later; it sees its own at once.
 */
#include <string.h>

#include "sched_priv.h"

static void write_through(const store *s) {
    switch (s->size) {
    case 1:
        __atomic_store_n((volatile uint8_t *)s->address, (uint8_t)s->value, __ATOMIC_SEQ_CST);
        break;
    case 2:
        __atomic_store_n((volatile uint16_t *)s->address, (uint16_t)s->value, __ATOMIC_SEQ_CST);
        break;
    case 4:
        __atomic_store_n((volatile uint32_t *)s->address, (uint32_t)s->value, __ATOMIC_SEQ_CST);
        break;
    default:
        __atomic_store_n((volatile uint64_t *)s->address, s->value, __ATOMIC_SEQ_CST);
    }
}

static void flush_oldest(fiber *f) {
    write_through(&f->stores[f->store_first]);
    f->store_first = (f->store_first + 1) % STORES_MAX;
    f->store_count--;
}

void sched_drain(fiber *f) {
    while (f->store_count)
        flush_oldest(f);
}

void sched_drain_all(void) {
    for (size_t i = 0; i < sched_state.fiber_count; i++)
        sched_drain(&sched_state.fibers[i]);
}

void sched_flush_some(void) {
    schedule *s = &sched_state.plan;
    if (!s->buffered || s->flush_in == 0)
        return;
    for (size_t i = 0; i < sched_state.fiber_count; i++) {
        fiber *f = &sched_state.fibers[i];
        if (f->store_count && sched_below(&s->random, s->flush_in) == 0) {
            flush_oldest(f);
            sched_decided(sched_state.explored << 4 | 8 | i);
        }
    }
}

bool tn__schedule_load(const volatile void *address, void *value, size_t size, int order) {
    fiber *f = sched_self;
    sched_point();
    if (!f)
        return false;
    sched_check_address(address);
    for (uint32_t n = f->store_count; n-- > 0;) {
        const store *s = &f->stores[(f->store_first + n) % STORES_MAX];
        if (s->address == address) {
            memcpy(value, &s->value, size);
            return true;
        }
    }
    return sched_weak_load(address, value, size, order);
}

bool tn__schedule_store(volatile void *address, const void *value, size_t size, int order) {
    fiber *f = sched_self;
    sched_point();
    if (f)
        sched_check_address(address);
    sched_weak_store(address, value, size, order);
    if (!f || !sched_state.exploring || !sched_state.plan.buffered || size > sizeof(uint64_t))
        return false;
    if (f->store_count == STORES_MAX)
        flush_oldest(f);
    store *s = &f->stores[(f->store_first + f->store_count++) % STORES_MAX];
    *s = (store){.address = address, .size = (uint32_t)size};
    memcpy(&s->value, value, size);
    return true;
}

static void locked(volatile void *address) {
    sched_point();
    if (!sched_self)
        return;
    if (address)
        sched_check_address(address);
    sched_drain(sched_self);
}

void tn__schedule_rmw(volatile void *address, size_t size) {
    locked(address);
    sched_weak_expect(address, size);
}

void tn__schedule_rmw_done(volatile void *address, size_t size, int order, bool wrote) {
    sched_weak_changed(address, size, order, wrote);
}

void sched_lock_point(volatile void *lock) { locked(lock); }

void tn__schedule_fence(void) {
    locked(NULL);
    sched_weak_fence(sched_self);
}

void tn__schedule_fence_acq(void) { sched_weak_acquire_fence(); }

void tn__schedule_fence_rel(void) { sched_weak_release_fence(); }

void tn__schedule_fence_compiler(void) { sched_weak_compiler(); }

void tn__schedule_pause(void) {
    if (sched_self)
        sched_pause();
}
