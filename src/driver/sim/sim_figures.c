/* SPDX-License-Identifier: MIT */
/* What the machine has counted. */
#include "driver/sim/sim_priv.h"

/* A location of this machine, normalised. */
static tn_status location_in(const tn_sim *sim, tn_location at, tn_location *out) {
    tn_status status;

    if (sim == NULL)
        return tn__sim_null();
    status = tn__location_in(at, out);
    if (status != TN_OK)
        return status;
    if (out->kind == TN_LOCATION_CUDA && out->index >= sim->machine.devices)
        return tn__fail(TN_ERR_VALUE, "the machine has no device %u", (unsigned)out->index);
    return TN_OK;
}

tn_status tn_sim_read_memory(tn_sim *sim, tn_location at, tn_sim_memory *out) {
    tn_status status = tn__struct_check_out(out, sizeof(size_t), "tn_sim_memory");
    tn_sim_memory figures;
    tn_location where;

    if (status == TN_OK)
        status = location_in(sim, at, &where);
    if (status != TN_OK)
        return status;
    if (where.kind == TN_LOCATION_PAGEABLE)
        return tn__fail(TN_ERR_VALUE, "the machine does not count pageable memory");
    tn__lock(&sim->lock);
    figures = tn__sim_arena_at(sim, where)->figures;
    tn__unlock(&sim->lock);
    tn__struct_out(out, &figures, sizeof(figures));
    return TN_OK;
}

tn_status tn_sim_read_traffic(tn_sim *sim, tn_location from, tn_location to, tn_sim_traffic *out) {
    tn_status status = tn__struct_check_out(out, sizeof(size_t), "tn_sim_traffic");
    tn_sim_traffic figures = {.size = sizeof(figures)};
    const tn__sim_pair *pair;
    tn_location source;
    tn_location destination;

    if (status == TN_OK)
        status = location_in(sim, from, &source);
    if (status == TN_OK)
        status = location_in(sim, to, &destination);
    if (status != TN_OK)
        return status;
    tn__lock(&sim->lock);
    pair = tn__sim_pair_of(sim, destination, source);
    figures.copies = pair->copies;
    figures.bytes = pair->bytes;
    figures.busy_ns = pair->busy_ns;
    tn__unlock(&sim->lock);
    tn__struct_out(out, &figures, sizeof(figures));
    return TN_OK;
}

uint64_t tn_sim_live_events(tn_sim *sim) {
    uint64_t live;

    tn__lock(&sim->lock);
    live = sim->events.live;
    tn__unlock(&sim->lock);
    return live;
}

uint64_t tn_sim_live_streams(tn_sim *sim) {
    uint64_t live;

    tn__lock(&sim->lock);
    live = sim->live_streams;
    tn__unlock(&sim->lock);
    return live;
}

uint64_t tn_sim_violations(tn_sim *sim) {
    uint64_t violations;

    tn__lock(&sim->lock);
    violations = sim->violations;
    tn__unlock(&sim->lock);
    return violations;
}

uint64_t tn_sim_violations_clear(tn_sim *sim) {
    uint64_t violations;

    tn__lock(&sim->lock);
    violations = sim->violations;
    sim->violations = 0;
    tn__unlock(&sim->lock);
    return violations;
}

const char *tn_sim_violation_text(tn_sim *sim) {
    return tn_sim_violations(sim) > 0 ? sim->violation_text : "";
}
