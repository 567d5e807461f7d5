/* SPDX-License-Identifier: MIT */
/*
 * snapshot: one pinned version plus one pass over the records.
 *
 * S1 An exact snapshot is the state at one instant: the version pointer was still the pinned one,
 *    and no slot counter was odd or changed, after the pass. Otherwise it is tried again a few
 *    times, then it says that it is not exact.
 *
 * Called by manager/ from any thread, without locks.
 */
#ifndef TENURE_SNAPSHOT_INTERNAL_H
#define TENURE_SNAPSHOT_INTERNAL_H

#include <tenure/snapshot.h>

#include "lifetime/lifetime_internal.h"

/* Entry checks and reap are done. */
TN_NODISCARD tn_status tn__snapshot_take(tn__store *store, tn__life *life, tn_driver *driver,
                                         uint64_t now_ns, tn_snapshot **out);

#endif
