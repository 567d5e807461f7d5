/* SPDX-License-Identifier: MIT */
/* Contexts and what devices can do: the lock that slow calls hold, memory shared with the host,
 * pinning. */
#include "driver/sim/sim_priv.h"

/* ---- The context's lock ----------------------------------------------------------------- */

static bool needs_lock(uint32_t entry) {
    const uint32_t entries =
        1u << TN_SIM_DEVICE_ALLOC | 1u << TN_SIM_DEVICE_FREE | 1u << TN_SIM_PINNED_ALLOC |
        1u << TN_SIM_PINNED_FREE | 1u << TN_SIM_STREAM_CREATE | 1u << TN_SIM_STREAM_DESTROY |
        1u << TN_SIM_EVENT_CREATE | 1u << TN_SIM_EVENT_DESTROY | 1u << TN_SIM_POOL_TRIM;

    return (entries >> entry & 1u) != 0;
}

static bool is_locked(const tn_sim *sim, uint32_t device) {
    uint32_t i;

    if (device < sim->machine.devices)
        return sim->arenas[device].locked > 0;
    for (i = 0; i < sim->machine.devices; i++)
        if (sim->arenas[i].locked > 0)
            return true;
    return false;
}

/* Who holds it stalls, and ends without us. */
void tn__sim_context_wait(tn_sim *sim, uint32_t entry, uint32_t device) {
    while (needs_lock(entry) && is_locked(sim, device))
        tn__cond_wait(&sim->changed, &sim->lock);
}

static void add_lock(tn_sim *sim, uint32_t device, uint32_t change) {
    uint32_t i;

    for (i = 0; i < sim->machine.devices; i++)
        if (device == i || device >= sim->machine.devices)
            sim->arenas[i].locked += change;
    tn__cond_broadcast(&sim->changed);
}

void tn__sim_context_pass(tn_sim *sim, uint32_t device, uint64_t ns) {
    add_lock(sim, device, 1);
    tn__sim_pass(sim, ns);
    add_lock(sim, device, UINT32_MAX); /* one less */
}

tn_status tn__sim_pin_cost(tn_sim *sim) {
    if (sim->machine.pin_ns > 0)
        tn__sim_context_pass(sim, TN_SIM_ANY_DEVICE, sim->machine.pin_ns);
    return tn__sim_is_gone(sim) ? tn__sim_gone(sim) : TN_OK;
}

/* ---- Capabilities ----------------------------------------------------------------------- */

uint64_t tn__sim_device_room(tn_sim *sim, uint32_t device) {
    const tn__sim_arena *arena = &sim->arenas[device];
    uint64_t taken = 0;

    if (arena->capabilities & TN_SIM_SHARES_HOST)
        taken = sim->pinned.figures.live_bytes;
    return taken < arena->limit_bytes ? arena->limit_bytes - taken : 0;
}

uint64_t tn__sim_room_at(tn_sim *sim, tn_location at) {
    const tn__sim_arena *arena = tn__sim_arena_at(sim, at);
    uint64_t room = arena->limit_bytes - arena->figures.live_bytes;
    uint32_t i;

    for (i = 0; i < sim->machine.devices; i++) {
        bool own = at.kind == TN_LOCATION_CUDA && at.index == i;
        uint64_t all = tn__sim_device_room(sim, i);
        uint64_t live = sim->arenas[i].figures.live_bytes;
        uint64_t left = all > live ? all - live : 0;

        if (own ||
            (at.kind == TN_LOCATION_PINNED && (sim->arenas[i].capabilities & TN_SIM_SHARES_HOST)))
            room = left < room ? left : room;
    }
    return room;
}

void tn__sim_pool_trim(tn_sim *sim, uint32_t device, uint64_t keep_bytes) {
    tn_sim_memory *f = &sim->arenas[device].figures;
    uint64_t least = f->live_bytes > keep_bytes ? f->live_bytes : keep_bytes;

    if (f->held_bytes > least)
        f->held_bytes = least;
}

void tn__sim_displace_pools(tn_sim *sim) {
    uint32_t i;

    for (i = 0; i < sim->machine.devices; i++)
        tn__sim_pool_trim(sim, i, tn__sim_device_room(sim, i));
}

bool tn__sim_can_pin(const tn_sim *sim) {
    uint32_t i;

    for (i = 0; i < sim->machine.devices; i++)
        if (sim->arenas[i].capabilities & TN_SIM_CAN_PIN)
            return sim->state != TN_SIM_NO_PINNED;
    return sim->machine.devices == 0 && sim->state != TN_SIM_NO_PINNED;
}

tn_status tn_sim_set_capabilities(tn_sim *sim, uint32_t device, uint32_t capabilities) {
    uint32_t i;

    if (sim == NULL)
        return tn__sim_null();
    if ((device != TN_SIM_ANY_DEVICE && device >= sim->machine.devices) ||
        (capabilities & ~(TN_SIM_CAN_PIN | TN_SIM_SHARES_HOST)) != 0)
        return tn__fail(TN_ERR_VALUE, "there is no device %u, or no capability 0x%x",
                        (unsigned)device, (unsigned)capabilities);
    tn__lock(&sim->lock);
    for (i = 0; i < sim->machine.devices; i++)
        if (device == i || device == TN_SIM_ANY_DEVICE)
            sim->arenas[i].capabilities = capabilities;
    tn__sim_displace_pools(sim);
    tn__unlock(&sim->lock);
    return TN_OK;
}

uint32_t tn_sim_capabilities(tn_sim *sim, uint32_t device) {
    uint32_t capabilities = 0;

    tn__lock(&sim->lock);
    if (device < sim->machine.devices)
        capabilities = sim->arenas[device].capabilities;
    tn__unlock(&sim->lock);
    return capabilities;
}
