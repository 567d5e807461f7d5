/* SPDX-License-Identifier: MIT */
/*
 * Room at a tier: what is done when something does not fit.
 *
 * A refusal evicts one value and tries again. If nothing can go from the device, all of it being in
 * use, the worker waits until another one has let something go. Budgets hold what all workers need
 * at once, so that happens only when what one worker has made room for goes to another.
 *
 * There is always an end: a worker waits only while some running request does not wait; if all do,
 * one of them gives up with the refusal. And after ATTEMPTS_MOST attempts that brought nothing it
 * gives up too.
 *
 * Threads: as placement.h.
 */
#ifndef TENURE_ROOM_H
#define TENURE_ROOM_H

#include "placement.h"

/* ---- For everybody ---- */

/* Something that a full tier may refuse: begin, try, again while attempt_again() says so. */
struct attempt {
    uint64_t changes; /* of the placement, when it began */
    int fruitless;
};

void attempt_begin(struct placer *placer, struct attempt *attempt);
/** After a refusal: evicts, or waits. False: `*status` is the result. */
bool attempt_again(struct placer *placer, struct attempt *attempt, enum tier tier,
                   tn_status *status);
/** Counts one that brought nothing. False: there were too many. */
bool attempt_goes_on(struct attempt *attempt);
/** Waits until another worker has let something go since the attempt began. False: nobody will, or
 * there were too many attempts. */
bool attempt_wait(struct placer *placer, struct attempt *attempt);

/**
 * Reserves device bytes, evicting if need be; the time counts as stall.
 *
 * @return TN_OK; TN_ERR_BUDGET everything that could go is in use; what the manager reports.
 */
tn_status placement_reserve(struct placer *placer, uint64_t bytes, const char *label,
                            tn_reservation *out_reservation);
/** Makes room for `bytes` at a tier; others may take it. Returns as placement_reserve(). */
tn_status placement_make_room(struct placer *placer, enum tier tier, uint64_t bytes);
/** Notes that device bytes have been given back. */
void placement_gave_back(struct placement *placement);

/* ---- For placement.c ---- */

/** Whether a status says that the tier is full. */
bool room_is_short(tn_status status);
/** Drops an item that has been taken off the tier's list; it is listed again if that fails. */
tn_status room_drop(struct placer *placer, struct item *item, enum tier tier,
                    struct traffic *counted);
/** Evicts one item. TN_ERR_BUDGET: all are in use. */
tn_status room_evict(struct placer *placer, enum tier tier);

/** With the lock: something may fit now. */
void room_changed(struct placement *placement);
/** With the lock: waits for a change, or that all wait. */
void room_wait(struct placement *placement);

#endif
