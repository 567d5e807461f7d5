/* SPDX-License-Identifier: MIT */
#include "placement.h"

void placement_init(struct placement *placement, tn_manager *manager, const struct machine *machine,
                    struct tally *tally) {
    *placement = (struct placement){.manager = manager, .machine = machine, .tally = tally};
    placement->at[TIER_PINNED] = tn_location_pinned();
    placement->at[TIER_DEVICE] = machine->at;
}

static void unlink_item(struct placement *placement, struct item *item, enum tier tier) {
    struct item *older = item->older[tier];
    struct item *newer = item->newer[tier];

    *(older != NULL ? &older->newer[tier] : &placement->oldest[tier]) = newer;
    *(newer != NULL ? &newer->older[tier] : &placement->newest[tier]) = older;
    item->older[tier] = item->newer[tier] = NULL;
}

static void link_newest(struct placement *placement, struct item *item, enum tier tier) {
    struct item *newest = placement->newest[tier];

    item->older[tier] = newest;
    item->newer[tier] = NULL;
    *(newest != NULL ? &newest->newer[tier] : &placement->oldest[tier]) = item;
    placement->newest[tier] = item;
}

/* The item is the most recently used one of every tier where it is. */
static void touch(struct placement *placement, struct item *item) {
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        if (item->resident[tier] && placement->newest[tier] != item) {
            unlink_item(placement, item, (enum tier)tier);
            link_newest(placement, item, (enum tier)tier);
        }
    }
}

void placement_forget(struct placement *placement, struct item *item, enum tier tier) {
    if (item->resident[tier]) {
        item->resident[tier] = false;
        unlink_item(placement, item, tier);
    }
}

static tn_status drop(struct placement *placement, struct item *item, enum tier tier,
                      struct traffic *counted) {
    tn_status status = tn_manager_drop(placement->manager, item->handle, placement->at[tier], NULL);

    if (status == TN_OK) {
        placement_forget(placement, item, tier);
        counted->count++;
        counted->bytes += item->bytes;
    }
    return status;
}

/*
 * Evicts one item. Work of ours is over when we get here, but a lease that its stream has not
 * finished protects its values a little longer: those are passed over.
 */
static tn_status evict_one(struct placement *placement, enum tier tier) {
    for (struct item *item = placement->oldest[tier]; item != NULL; item = item->newer[tier]) {
        tn_status status = TN_OK;

        if (item->users > 0) {
            continue; /* I2 */
        }
        status = drop(placement, item, tier, &placement->tally->evictions[tier]);
        if (status != TN_ERR_IN_USE) {
            return status;
        }
    }
    return TN_ERR_BUDGET;
}

static bool is_full(tn_status status) {
    return status == TN_ERR_BUDGET || status == TN_ERR_DEVICE_MEMORY;
}

static tn_status reserve_at(struct placement *placement, enum tier tier, uint64_t bytes,
                            const char *label, tn_reservation *out_reservation) {
    for (;;) {
        tn_status evicted = TN_OK;
        tn_status status = tn_manager_reserve(placement->manager, placement->at[tier], bytes, label,
                                              out_reservation);

        if (status != TN_ERR_BUDGET) {
            return status;
        }
        evicted = evict_one(placement, tier);
        if (evicted != TN_OK) {
            return evicted;
        }
    }
}

tn_status placement_reserve(struct placement *placement, uint64_t bytes, const char *label,
                            tn_reservation *out_reservation) {
    return reserve_at(placement, TIER_DEVICE, bytes, label, out_reservation);
}

/*
 * Asking by a reservation costs nothing; asking by an ensure would load the file first and refuse
 * then.
 */
tn_status placement_make_room(struct placement *placement, enum tier tier, uint64_t bytes) {
    tn_reservation reservation = {NULL, 0};
    tn_status status = reserve_at(placement, tier, bytes, "room", &reservation);

    if (status == TN_OK) {
        status = tn_reservation_release(&reservation);
    }
    return status;
}

static void count_path(struct placement *placement, const tn_report *report, enum tier tier) {
    enum path path = tier == TIER_PINNED                         ? PATH_FILE_PINNED
                     : report->source.kind == TN_LOCATION_PINNED ? PATH_PINNED_DEVICE
                                                                 : PATH_FILE_DEVICE;

    placement->tally->paths[path].count++;
    placement->tally->paths[path].bytes += report->logical_bytes;
}

static tn_status ensure_at(struct placement *placement, struct item *item, enum tier tier) {
    tn_status status = placement_make_room(placement, tier, item->bytes);

    while (status == TN_OK) {
        tn_report report = TN_REPORT_INIT;

        status =
            tn_manager_ensure(placement->manager, item->handle, placement->at[tier], NULL, &report);
        if (status == TN_OK) {
            item->resident[tier] = true;
            link_newest(placement, item, tier);
            count_path(placement, &report, tier);
            return TN_OK;
        }
        if (!is_full(status)) {
            return status;
        }
        status = evict_one(placement, tier);
    }
    return status;
}

tn_status placement_ensure(struct placement *placement, struct item *item) {
    uint64_t began_ns = 0;
    tn_status status = TN_OK;

    touch(placement, item);
    if (item->resident[TIER_DEVICE]) {
        placement->tally->hits++;
        return TN_OK;
    }
    placement->tally->misses++;
    began_ns = machine_now_ns(placement->machine);
    if (!item->resident[TIER_PINNED]) {
        status = ensure_at(placement, item, TIER_PINNED);
    }
    if (status == TN_OK || is_full(status) || status == TN_ERR_PAYLOAD) {
        status = ensure_at(placement, item, TIER_DEVICE); /* from pinned memory, or the file */
    }
    placement->tally->stall_ns += machine_now_ns(placement->machine) - began_ns;
    return status;
}

tn_status placement_retire(struct placement *placement, struct item *item) {
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        tn_status status = TN_OK;

        if (item->users > 0 || !item->resident[tier]) {
            continue;
        }
        status = drop(placement, item, (enum tier)tier, &placement->tally->retired);
        if (status != TN_OK && status != TN_ERR_IN_USE) {
            return status;
        }
    }
    return TN_OK;
}
