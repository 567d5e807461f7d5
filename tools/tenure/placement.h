/* SPDX-License-Identifier: MIT */
/*
 * `--control explicit`: who places keys and plaintexts is this program, step by step.
 *
 * A value's source is its file. A miss makes it resident in pinned memory, then on the device;
 * where pinned memory refuses even after evictions, it goes from its file to the device. A refusal
 * evicts the least recently used value of that tier that nobody uses (room.h); all of these have a
 * source. Plaintexts go from both tiers after their last reader.
 *
 * All workers share it. Its lock guards the lists and counts of items (lru.h). It is not held
 * during calls of the manager (but for placement_freeze()), which may wait for files and copies. So
 * what the lists say is what to try, and the manager decides: a victim that is in use or gone is
 * passed over, and a value that is gone when it is borrowed is made resident again.
 *
 * P1  An item with users is never chosen as a victim. A drop that was under way when its first user
 *     came either finds it in use, or wins, and the user makes it resident again.
 *
 * Threads: any; one at a time per placer.
 */
#ifndef TENURE_PLACEMENT_H
#define TENURE_PLACEMENT_H

#include "lru.h"
#include "machine.h"
#include "tally.h"

#include <pthread.h>

struct control;

struct placement {
    tn_manager *manager;
    const struct machine *machine;
    tn_location at[TIER_COUNT];
    pthread_mutex_t mutex;  /* guards everything below, and parts of the items */
    pthread_cond_t changed; /* `changes` has grown, or so has `waiting` */
    struct lru lru[TIER_COUNT];
    uint64_t changes; /* grows whenever something may fit that did not */
    uint64_t running; /* requests */
    uint64_t waiting; /* of these, those that go on only when another one does something */
};

/* One worker's way to the placement. */
struct placer {
    struct placement *placement;
    struct control *control; /* of --control lru, which places instead; NULL: explicit */
    struct tally *tally;
    tn_stream stream; /* its copies to the device go there */
};

/** False after an error line. */
bool placement_init(struct placement *placement, tn_manager *manager,
                    const struct machine *machine);
void placement_fini(struct placement *placement);

/** A request begins, or ends: it may hold bytes in between. */
void placement_enter(struct placement *placement);
void placement_leave(struct placement *placement);

/** An operation that reads the item begins, or ends. All items of an operation are marked first, so
 * that making one resident does not evict another (P1). */
void placement_use(struct placement *placement, struct item *item, bool begins);
/** So many more operations will read the plaintext, or fewer. */
void placement_expect_readers(struct placement *placement, struct item *item, int64_t more);

/**
 * Makes an item with a user resident on the device; it is then the most recently used one.
 *
 * @param again  it was not there when it was borrowed, whatever the lists say.
 * @return TN_OK; TN_ERR_BUDGET everything that could go is in use; what the manager reports.
 */
tn_status placement_ensure(struct placer *placer, struct item *item, bool again);
/** One reader less; a plaintext without readers goes from all tiers. */
tn_status placement_read_done(struct placer *placer, struct item *item);

/**
 * For --inject early-free: if the caller is the item's only user, takes the lock, which keeps
 * everybody else from using the item. False: there are other users.
 */
bool placement_freeze(struct placement *placement, struct item *item);
/** Gives the lock back; `dropped`: the item has left the device meanwhile. */
void placement_thaw(struct placement *placement, struct item *item, bool dropped);

#endif
