/* SPDX-License-Identifier: MIT */
#include "room.h"

#include "control.h"

enum { ATTEMPTS_MOST = 10000 };

bool room_is_short(tn_status status) {
    return status == TN_ERR_BUDGET || status == TN_ERR_DEVICE_MEMORY;
}

void room_changed(struct placement *placement) {
    placement->changes++;
    pthread_cond_broadcast(&placement->changed);
}

void room_wait(struct placement *placement) {
    if (++placement->waiting >= placement->running) {
        pthread_cond_broadcast(&placement->changed); /* one of them must give up */
    }
    pthread_cond_wait(&placement->changed, &placement->mutex);
    placement->waiting--;
}

void placement_gave_back(struct placement *placement) {
    pthread_mutex_lock(&placement->mutex);
    room_changed(placement);
    pthread_mutex_unlock(&placement->mutex);
}

/* ---- Eviction ---- */

tn_status room_drop(struct placer *placer, struct item *item, enum tier tier,
                    struct traffic *counted) {
    struct placement *placement = placer->placement;
    uint64_t began_ns = machine_now_ns(placement->machine);
    tn_report report = TN_REPORT_INIT;
    tn_status status =
        tn_manager_drop(placement->manager, item->handle, placement->at[tier], &report);

    placer->tally->drop_ns[tier] += machine_now_ns(placement->machine) - began_ns;
    pthread_mutex_lock(&placement->mutex);
    if (status != TN_OK) {
        lru_put(&placement->lru[tier], item, tier); /* in use: there is no more recent use */
    } else if (!report.no_op) {
        counted->count++;
        counted->bytes += item->bytes;
        room_changed(placement);
    }
    pthread_mutex_unlock(&placement->mutex);
    return status;
}

/* Off the list, so that two workers do not choose the same one. */
static struct item *take_victim(struct placement *placement, enum tier tier) {
    struct item *item = NULL;

    pthread_mutex_lock(&placement->mutex);
    item = lru_unused(&placement->lru[tier], tier); /* P1 */
    if (item != NULL) {
        lru_remove(&placement->lru[tier], item, tier);
    }
    pthread_mutex_unlock(&placement->mutex);
    return item;
}

static uint64_t listed_count(struct placement *placement, enum tier tier) {
    uint64_t count = 0;

    pthread_mutex_lock(&placement->mutex);
    count = placement->lru[tier].count;
    pthread_mutex_unlock(&placement->mutex);
    return count;
}

tn_status room_evict(struct placer *placer, enum tier tier) {
    struct traffic *evictions = &placer->tally->evictions[tier];
    /* Those in use go to the other end of the list: nobody is tried twice. */
    uint64_t tries = listed_count(placer->placement, tier);

    while (tries-- > 0) {
        uint64_t before = evictions->count;
        struct item *victim = take_victim(placer->placement, tier);
        tn_status status = TN_ERR_BUDGET;

        if (victim == NULL) {
            break;
        }
        status = room_drop(placer, victim, tier, evictions);
        if (status != TN_OK && status != TN_ERR_IN_USE) {
            return status;
        }
        if (evictions->count > before) {
            placer->tally->key_evictions[tier] += victim->kind == KIND_KEY;
            return TN_OK;
        }
        placer->tally->retries.in_use += status == TN_ERR_IN_USE; /* else it was gone */
    }
    return TN_ERR_BUDGET;
}

/* ---- Attempts ---- */

/* False: nothing has changed since the attempt began, and nothing will, as all wait. */
static bool wait_for_change(struct placement *placement, uint64_t changes) {
    bool changed = false;

    pthread_mutex_lock(&placement->mutex);
    while (placement->changes == changes && placement->waiting + 1 < placement->running) {
        room_wait(placement);
    }
    changed = placement->changes != changes;
    pthread_mutex_unlock(&placement->mutex);
    return changed;
}

void attempt_begin(struct placer *placer, struct attempt *attempt) {
    pthread_mutex_lock(&placer->placement->mutex);
    attempt->changes = placer->placement->changes;
    pthread_mutex_unlock(&placer->placement->mutex);
}

bool attempt_goes_on(struct attempt *attempt) { return ++attempt->fruitless <= ATTEMPTS_MOST; }

bool attempt_wait(struct placer *placer, struct attempt *attempt) {
    if (!attempt_goes_on(attempt)) {
        return false;
    }
    placer->tally->retries.waits++;
    return wait_for_change(placer->placement, attempt->changes);
}

bool attempt_again(struct placer *placer, struct attempt *attempt, enum tier tier,
                   tn_status *status) {
    tn_status evicted = TN_OK;

    if (!room_is_short(*status)) {
        return false;
    }
    placer->tally->retries.memory += *status == TN_ERR_DEVICE_MEMORY;
    evicted = placer->control == NULL ? room_evict(placer, tier) : control_evict(placer);
    if (evicted == TN_OK) {
        return true;
    }
    if (evicted != TN_ERR_BUDGET) {
        *status = evicted;
        return false;
    }
    /* Without pinned memory there is another way, so nobody waits for it. */
    return tier == TIER_DEVICE && attempt_wait(placer, attempt);
}

static tn_status reserve_at(struct placer *placer, enum tier tier, uint64_t bytes,
                            const char *label, tn_reservation *out_reservation) {
    struct placement *placement = placer->placement;
    struct attempt attempt = {0};
    tn_status status = TN_OK;

    do {
        attempt_begin(placer, &attempt);
        status = tn_manager_reserve(placement->manager, placement->at[tier], bytes, label,
                                    out_reservation);
    } while (attempt_again(placer, &attempt, tier, &status));
    return status;
}

tn_status placement_reserve(struct placer *placer, uint64_t bytes, const char *label,
                            tn_reservation *out_reservation) {
    uint64_t began_ns = machine_now_ns(placer->placement->machine);
    tn_status status = reserve_at(placer, TIER_DEVICE, bytes, label, out_reservation);

    placer->tally->stall_ns += machine_now_ns(placer->placement->machine) - began_ns;
    return status;
}

/*
 * Asking by a reservation costs nothing; asking by an ensure would load the file first and refuse
 * then.
 */
tn_status placement_make_room(struct placer *placer, enum tier tier, uint64_t bytes) {
    tn_reservation reservation = {NULL, 0};
    tn_status status = reserve_at(placer, tier, bytes, "room", &reservation);

    if (status == TN_OK) {
        status = tn_reservation_release(&reservation);
    }
    return status;
}
