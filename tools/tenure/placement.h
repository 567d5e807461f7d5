/* SPDX-License-Identifier: MIT */
/*
 * `--control explicit`: who places keys and plaintexts is this program, step by step.
 *
 * A value's source is its file. A miss makes it resident in pinned memory, then on the device;
 * where pinned memory refuses even after evictions, it goes from its file to the device. A refusal
 * evicts the least recently used value of that tier that nobody uses; all of these have a source.
 * Plaintexts go from both tiers after their last reader.
 *
 * I1  An item is in the list of a tier exactly when it is resident there; the list goes from the
 *     least to the most recently used.
 * I2  An item with users is never dropped.
 *
 * Threads: one at a time (there is one worker).
 */
#ifndef TENURE_PLACEMENT_H
#define TENURE_PLACEMENT_H

#include "machine.h"
#include "tally.h"
#include "workload.h"

/* A key or plaintext of one tenant, or of all. */
struct item {
    tn_handle handle;
    const char *id;
    enum value_kind kind;
    uint64_t tenant, bytes;
    uint64_t checksum;      /* of the right content */
    char *path;             /* of its file; owned by the catalogue */
    uint64_t file_checksum; /* of what the file holds: the same, but for --inject swap */
    uint32_t users;         /* operations in progress */
    uint64_t readers;       /* operations of running requests that will read it; plaintexts only */
    bool resident[TIER_COUNT];
    struct item *older[TIER_COUNT], *newer[TIER_COUNT];
};

struct placement {
    tn_manager *manager;
    const struct machine *machine;
    struct tally *tally;
    tn_location at[TIER_COUNT];
    struct item *oldest[TIER_COUNT], *newest[TIER_COUNT];
};

void placement_init(struct placement *placement, tn_manager *manager, const struct machine *machine,
                    struct tally *tally);

/**
 * Makes an item resident on the device; it is then the most recently used one.
 *
 * @return TN_OK; TN_ERR_BUDGET everything that could go is in use; what the manager reports.
 */
tn_status placement_ensure(struct placement *placement, struct item *item);
/** Reserves device bytes, evicting if need be. Returns as placement_ensure(). */
tn_status placement_reserve(struct placement *placement, uint64_t bytes, const char *label,
                            tn_reservation *out_reservation);
/** Makes room for `bytes` at a tier, evicting if need be. Returns as placement_ensure(). */
tn_status placement_make_room(struct placement *placement, enum tier tier, uint64_t bytes);
/** Drops an item from all tiers; one that is in use stays. */
tn_status placement_retire(struct placement *placement, struct item *item);
/** Notes that an item has left a tier by other means. */
void placement_forget(struct placement *placement, struct item *item, enum tier tier);

#endif
