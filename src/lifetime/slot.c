/* SPDX-License-Identifier: MIT */
/*
 * Slots: one per (thread, manager). Never removed; the slot of a thread that has exited is taken
 * over, with its records and its count, by the next new thread. A process-wide list of live
 * managers lets an exiting thread give back only slots that still exist.
 */
#include <stdlib.h>

#include "lifetime/lifetime_priv.h"

/* A thread's note of its slot in one manager. Plain malloc: no failure point, outlives managers. */
typedef struct slot_ref {
    struct slot_ref *next;
    uint64_t manager;
    tn__slot *slot;
} slot_ref;

static tn__mutex registry_lock = {PTHREAD_MUTEX_INITIALIZER, TN__RANK_REGISTRY};
static tn__life *registry; /* under registry_lock */

static bool registry_live(uint64_t manager) {
    for (tn__life *life = registry; life; life = life->registry_next)
        if (life->manager == manager)
            return true;
    return false;
}

/* On the exiting thread. */
static void give_back_slots(tn__thread *thread) {
    tn__lock(&registry_lock);
    slot_ref *ref = thread->slots;
    while (ref) {
        slot_ref *next = ref->next;
        if (registry_live(ref->manager)) {
            /* [slot-take] release. Pairs: acquire in take_over(). Orders: this thread's last use
             * of the slot -> its next owner's first. Without: two threads work on one counter and
             * one free list. */
            tn__store_rel(&ref->slot->taken, 0);
        }
        free(ref);
        ref = next;
    }
    thread->slots = NULL;
    thread->cached_id = 0;
    tn__unlock(&registry_lock);
}

void tn__life_registry_add(tn__life *life) {
    tn__store_rlx(&tn__thread_exit_slots, give_back_slots);
    tn__lock(&registry_lock);
    life->registry_next = registry;
    registry = life;
    tn__unlock(&registry_lock);
}

void tn__life_registry_remove(tn__life *life) {
    tn__lock(&registry_lock);
    tn__life **at = &registry;
    while (*at && *at != life)
        at = &(*at)->registry_next;
    if (*at)
        *at = life->registry_next;
    tn__unlock(&registry_lock);
}

/* Forget notes of managers that are gone, so that the list does not grow with every manager the
 * process ever made. */
static void prune(tn__thread *thread) {
    tn__lock(&registry_lock);
    slot_ref **at = (slot_ref **)&thread->slots;
    while (*at) {
        slot_ref *ref = *at;
        if (registry_live(ref->manager)) {
            at = &ref->next;
            continue;
        }
        *at = ref->next;
        free(ref);
    }
    tn__unlock(&registry_lock);
}

static tn__slot *take_over(tn__life *life) {
    for (tn__slot *slot = tn__load_rlx(&life->slots); slot; slot = slot->next) {
        uint32_t free_now = 0;
        if (tn__load_rlx(&slot->taken) == 0 &&
            tn__cas_acq_rel(&slot->taken, &free_now, 1)) { /* [slot-take] */
            TN__BRANCH(slot_taken_over);
            return slot;
        }
    }
    return NULL;
}

static tn__slot *slot_push(tn__life *life) {
    tn__slot *slot = tn__zalloc_line(sizeof *slot);
    if (!slot)
        return NULL;
    slot->life = life;
    slot->gate = life->gate;
    slot->manager = life->manager;
    tn__store_rlx(&slot->taken, 1);
    slot->next = tn__load_rlx(&life->slots);
    tn__store_rel(&life->slots, slot); /* [slots] */
    return slot;
}

static tn__slot *obtain(tn__life *life) {
    tn__lock(&life->slots_lock);
    tn__slot *slot = take_over(life);
    if (!slot)
        slot = slot_push(life);
    tn__unlock(&life->slots_lock);
    return slot;
}

/* By id, under the registry's lock: a release may come here with a manager that another thread is
 * destroying, after the lease has ended on that other thread. Gone is success: nothing is left to
 * do. */
bool tn__slot_make(uint64_t manager, tn__thread *thread) {
    prune(thread);
    slot_ref *ref = malloc(sizeof *ref);
    if (!ref)
        return false;
    tn__lock(&registry_lock);
    tn__life *life = registry;
    while (life && life->manager != manager)
        life = life->registry_next;
    tn__slot *slot = life ? obtain(life) : NULL;
    tn__unlock(&registry_lock);
    if (!slot) {
        free(ref);
        return life == NULL;
    }
    *ref = (slot_ref){.next = thread->slots, .manager = manager, .slot = slot};
    thread->slots = ref;
    return true;
}

static TN__COLD tn__slot *find(tn__life *life, tn__thread *thread) {
    tn__slot *slot = NULL;
    for (slot_ref *ref = thread->slots; ref && !slot; ref = ref->next)
        if (ref->manager == life->manager)
            slot = ref->slot;
    if (slot && !thread->frames) {
        thread->cached_id = life->manager;
        thread->cached_slot = slot;
    }
    return slot;
}

tn__slot *tn__life_known_slot(tn__life *life, tn__thread *thread) {
    if (tn__likely(thread->cached_id == life->manager))
        return thread->cached_slot;
    return find(life, thread);
}

tn__slot *tn__life_own_slot(tn__life *life, tn__thread *thread) {
    tn__slot *slot = tn__life_known_slot(life, thread);
    if (tn__unlikely(!slot) && tn__slot_make(life->manager, thread))
        slot = find(life, thread);
    return slot;
}

tn_status tn__life_begin(tn__life *life, bool closed_ok, tn__thread **out_thread) {
    tn__thread *thread = tn__thread_self();
    if (tn__unlikely(!thread))
        return tn__no_memory();
    tn_status status = tn__life_enter(life, thread, closed_ok);
    return status == TN_OK ? tn__life_thread(life, out_thread) : status;
}

tn_status tn__life_thread(tn__life *life, tn__thread **out_thread) {
    tn__thread *thread = tn__thread_self();
    if (!thread)
        return tn__no_memory();
    tn__rcu_thread_ready(thread);
    if (!tn__life_own_slot(life, thread))
        return tn__no_memory();
    *out_thread = thread;
    return TN_OK;
}
