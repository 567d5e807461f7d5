/* SPDX-License-Identifier: MIT */
#include "placement.h"

#include "base.h"
#include "control.h"
#include "room.h"

#include <string.h>

enum { REFUSED_MOST = 100 /* times that others may take the room that was made for one value */ };

bool placement_init(struct placement *placement, tn_manager *manager,
                    const struct machine *machine) {
    int error = 0;

    *placement = (struct placement){.machine = machine};
    placement->at[TIER_PINNED] = tn_location_pinned();
    placement->at[TIER_DEVICE] = machine->at;
    error = pthread_mutex_init(&placement->mutex, NULL);
    if (error == 0) {
        error = pthread_cond_init(&placement->changed, NULL);
    }
    if (error != 0) {
        complain("serve: no lock: %s", strerror(error));
        return false;
    }
    placement->manager = manager;
    return true;
}

void placement_fini(struct placement *placement) {
    if (placement->manager != NULL) {
        pthread_cond_destroy(&placement->changed);
        pthread_mutex_destroy(&placement->mutex);
        placement->manager = NULL;
    }
}

void placement_enter(struct placement *placement) {
    pthread_mutex_lock(&placement->mutex);
    placement->running++;
    pthread_mutex_unlock(&placement->mutex);
}

void placement_leave(struct placement *placement) {
    pthread_mutex_lock(&placement->mutex);
    placement->running--;
    room_changed(placement);
    pthread_mutex_unlock(&placement->mutex);
}

void placement_use(struct placement *placement, struct item *item, bool begins) {
    pthread_mutex_lock(&placement->mutex);
    if (begins) {
        item->users++;
    } else if (--item->users == 0) {
        room_changed(placement);
    }
    pthread_mutex_unlock(&placement->mutex);
}

void placement_expect_readers(struct placement *placement, struct item *item, int64_t more) {
    pthread_mutex_lock(&placement->mutex);
    item->readers += (uint64_t)more;
    pthread_mutex_unlock(&placement->mutex);
}

/*
 * The first worker that loads an item makes room for it; others wait until the room is made and
 * then join the load, which is one in the manager however many ask for it. True: it is the first.
 */
static bool begin_loading(struct placement *placement, struct item *item, enum tier tier) {
    bool first = false;

    pthread_mutex_lock(&placement->mutex);
    while (item->rooming[tier]) {
        room_wait(placement);
    }
    first = item->loading[tier]++ == 0;
    item->rooming[tier] = first;
    pthread_mutex_unlock(&placement->mutex);
    return first;
}

static void end_rooming(struct placement *placement, struct item *item, enum tier tier) {
    pthread_mutex_lock(&placement->mutex);
    item->rooming[tier] = false;
    room_changed(placement);
    pthread_mutex_unlock(&placement->mutex);
}

static void end_loading(struct placement *placement, struct item *item, enum tier tier,
                        bool resident) {
    pthread_mutex_lock(&placement->mutex);
    item->loading[tier]--;
    if (resident) {
        lru_put(&placement->lru[tier], item, tier); /* L1 */
    }
    room_changed(placement);
    pthread_mutex_unlock(&placement->mutex);
}

/* The replica that was copied may be one that another worker was just dropping: then even pinned
 * memory is filled from the device. */
static enum path path_of(const tn_report *report, enum tier tier) {
    if (report->source.kind == TN_LOCATION_CUDA) {
        return PATH_DEVICE_HOST;
    }
    if (tier == TIER_PINNED) {
        return PATH_FILE_PINNED;
    }
    return report->source.kind == TN_LOCATION_PINNED ? PATH_PINNED_DEVICE : PATH_FILE_DEVICE;
}

static void count_load(struct placer *placer, const struct item *item, const tn_report *report,
                       enum tier tier) {
    struct tally *tally = placer->tally;
    enum path path = path_of(report, tier);

    if (report->no_op) {
        tally->joined++;
        return;
    }
    tally->paths[path].count++;
    tally->paths[path].bytes += report->logical_bytes;
    if (item->kind == KIND_KEY) {
        tally->key_bytes[path] += report->logical_bytes;
        tally->key_loads += tier == TIER_DEVICE;
    }
}

static tn_status ensure_once(struct placer *placer, struct item *item, enum tier tier) {
    tn_report report = TN_REPORT_INIT;
    tn_status status =
        tn_manager_ensure(placer->placement->manager, item->handle, placer->placement->at[tier],
                          tier == TIER_DEVICE ? placer->stream : NULL, &report);

    if (status == TN_OK) {
        count_load(placer, item, &report, tier);
    }
    return status;
}

static tn_status ensure_at(struct placer *placer, struct item *item, enum tier tier) {
    struct placement *placement = placer->placement;
    bool makes_room = begin_loading(placement, item, tier);
    bool is_first = makes_room;
    tn_status status = TN_OK;

    for (int refused = 0; refused < REFUSED_MOST; refused++) {
        status = makes_room ? placement_make_room(placer, tier, item->bytes) : TN_OK;
        if (is_first) {
            end_rooming(placement, item, tier);
            is_first = false;
        }
        if (status != TN_OK) {
            break;
        }
        status = ensure_once(placer, item, tier);
        if (!room_is_short(status)) {
            break;
        }
        if (status == TN_ERR_DEVICE_MEMORY) { /* the ledger has room, the machine has not */
            placer->tally->retries.memory++;
            if (room_evict(placer, tier) != TN_OK) {
                break;
            }
        } else {
            placer->tally->retries.refused += makes_room;
        }
        makes_room = true; /* also after having joined a load that was refused */
    }
    end_loading(placement, item, tier, status == TN_OK);
    return status;
}

/* Makes the item the most recently used one of the tiers where it is. */
static void touch(struct placement *placement, struct item *item, bool listed[TIER_COUNT]) {
    pthread_mutex_lock(&placement->mutex);
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        listed[tier] = item->listed[tier];
        if (listed[tier]) {
            lru_put(&placement->lru[tier], item, (enum tier)tier);
        }
    }
    pthread_mutex_unlock(&placement->mutex);
}

static tn_status load(struct placer *placer, struct item *item, bool through_pinned) {
    uint64_t began_ns = machine_now_ns(placer->placement->machine);
    tn_status status = through_pinned ? ensure_at(placer, item, TIER_PINNED) : TN_OK;

    if (status == TN_OK || room_is_short(status) || status == TN_ERR_PAYLOAD) {
        status = ensure_at(placer, item, TIER_DEVICE); /* from pinned memory, or the file */
    }
    placer->tally->stall_ns += machine_now_ns(placer->placement->machine) - began_ns;
    return status;
}

tn_status placement_ensure(struct placer *placer, struct item *item, bool again) {
    bool listed[TIER_COUNT];

    touch(placer->placement, item, listed);
    if (again) {
        return load(placer, item, false); /* pinned or not, it goes the shortest way */
    }
    if (listed[TIER_DEVICE]) {
        placer->tally->hits++;
        return TN_OK;
    }
    placer->tally->misses++;
    return load(placer, item, !listed[TIER_PINNED]);
}

tn_status placement_read_done(struct placer *placer, struct item *item) {
    struct placement *placement = placer->placement;
    bool goes[TIER_COUNT] = {false};
    bool is_last = false;

    pthread_mutex_lock(&placement->mutex);
    is_last = --item->readers == 0 && item->users == 0;
    if (is_last) {
        for (int tier = 0; tier < TIER_COUNT; tier++) {
            goes[tier] = item->listed[tier];
            lru_remove(&placement->lru[tier], item, (enum tier)tier);
        }
    }
    pthread_mutex_unlock(&placement->mutex);
    if (is_last && placer->control != NULL) {
        return control_retire(placer, item);
    }
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        tn_status status = TN_OK;

        if (goes[tier]) {
            status = room_drop(placer, item, (enum tier)tier, &placer->tally->retired);
        }
        if (status != TN_OK && status != TN_ERR_IN_USE) {
            return status;
        }
    }
    return TN_OK;
}

bool placement_freeze(struct placement *placement, struct item *item) {
    pthread_mutex_lock(&placement->mutex);
    if (item->users == 1) {
        return true;
    }
    pthread_mutex_unlock(&placement->mutex);
    return false;
}

void placement_thaw(struct placement *placement, struct item *item, bool dropped) {
    if (dropped) {
        lru_remove(&placement->lru[TIER_DEVICE], item, TIER_DEVICE);
        room_changed(placement);
    }
    pthread_mutex_unlock(&placement->mutex);
}
