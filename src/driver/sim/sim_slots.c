/* SPDX-License-Identifier: MIT */
/* Handles of streams and events. The one freed last is issued next, so that a stale handle soon
 * names something else. */
#include "driver/sim/sim_priv.h"

#include <stdlib.h>
#include <string.h>

#define NO_SLOT UINT32_MAX

/* A handle: 1 at bit 46, the machine's serial, the kind, the slot; 16 apart as addresses are. */
#define HANDLE_BIT (UINT64_C(1) << 46)
#define SERIAL_SHIFT 29
#define SERIAL_MASK UINT64_C(0xffff)
#define EVENT_BIT (UINT64_C(1) << 28)
#define SLOT_SHIFT 4
#define SLOT_MASK UINT64_C(0xffffff)

void tn__sim_slots_fini(tn__sim_slots *slots) {
    tn__sim_free(slots->objects);
    tn__sim_free(slots->free_next);
}

static bool grow(tn__sim_slots *slots) {
    uint32_t capacity = slots->capacity ? slots->capacity * 2 : 16;
    void **objects;
    uint32_t *free_next;

    if (capacity > SLOT_MASK)
        return false;
    objects = tn__sim_alloc(capacity, sizeof(*objects));
    free_next = tn__sim_alloc(capacity, sizeof(*free_next));
    if (objects == NULL || free_next == NULL) {
        tn__sim_free(objects);
        tn__sim_free(free_next);
        return false;
    }
    if (slots->count > 0) {
        memcpy(objects, slots->objects, slots->count * sizeof(*objects));
        memcpy(free_next, slots->free_next, slots->count * sizeof(*free_next));
    } else {
        slots->free_head = NO_SLOT;
    }
    tn__sim_slots_fini(slots);
    slots->objects = objects;
    slots->free_next = free_next;
    slots->capacity = capacity;
    return true;
}

bool tn__sim_slot_take(tn__sim_slots *slots, void *object, uint32_t *out_index) {
    uint32_t index;

    if (slots->count > 0 && slots->free_head != NO_SLOT) {
        index = slots->free_head;
        slots->free_head = slots->free_next[index];
    } else {
        if (slots->count == slots->capacity && !grow(slots))
            return false;
        index = slots->count++;
    }
    slots->objects[index] = object;
    slots->live++;
    *out_index = index;
    return true;
}

void tn__sim_slot_drop(tn__sim_slots *slots, uint32_t index) {
    slots->objects[index] = NULL;
    slots->free_next[index] = slots->free_head;
    slots->free_head = index;
    slots->live--;
}

static uint64_t handle_base(const tn_sim *sim, bool event) {
    return HANDLE_BIT | ((sim->serial & SERIAL_MASK) << SERIAL_SHIFT) | (event ? EVENT_BIT : 0);
}

void *tn__sim_handle(const tn_sim *sim, bool event, uint32_t index) {
    return (void *)(uintptr_t)(handle_base(sim, event) | ((uint64_t)index << SLOT_SHIFT));
}

void *tn__sim_object(tn_sim *sim, bool event, const void *handle, uint32_t *out_index,
                     bool *out_dead) {
    const tn__sim_slots *slots = event ? &sim->events : &sim->streams;
    uint64_t offset = (uint64_t)(uintptr_t)handle ^ handle_base(sim, event);
    uint64_t index = offset >> SLOT_SHIFT;

    *out_dead = false;
    if ((offset & ((1u << SLOT_SHIFT) - 1)) != 0 || index >= slots->count)
        return NULL;
    *out_index = (uint32_t)index;
    *out_dead = slots->objects[index] == NULL;
    return slots->objects[index];
}
