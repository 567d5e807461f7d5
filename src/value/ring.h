/* SPDX-License-Identifier: MIT */
/*
 * A manager's staging ring: a bounded number of blocks of pinned memory that the content of files
 * passes through on its way to a device.
 *
 *  - R1: it never has more than its blocks, whatever is asked of it; who finds none waits for its
 *    own oldest copy, or, without one, for a block of somebody else's.
 *  - R2: a block is given back, or filled again, only when no copy out of it is queued any longer.
 *  - R3: each load may have one block, and as many as an equal share gives; blocks above the share
 *    go back first. So every load goes on.
 *
 * The memory is taken at the first load and kept. Where it cannot be pinned, pageable memory takes
 * its place, until the driver has got pinned memory back and no load uses the ring.
 */
#ifndef TENURE_VALUE_RING_H
#define TENURE_VALUE_RING_H

#include "value/value_internal.h"

/* A load begins to use the ring. TN_ERR_HOST_MEMORY. */
TN_NODISCARD tn_status tn__ring_enter(tn__ring *ring);
/* It ends; it has no block. */
void tn__ring_leave(tn__ring *ring);

/* A free block for a load that has `held`; waits for one only if that is 0. False: none, or none
 * that the load may have. */
bool tn__ring_take(tn__ring *ring, uint32_t held, uint32_t *out);
void tn__ring_give(tn__ring *ring, uint32_t block);
/* Whether a load that has `held` has more than its share. */
bool tn__ring_over(tn__ring *ring, uint32_t held);

/* After tn__ring_enter(): stable until tn__ring_leave(). */
char *tn__ring_block(const tn__ring *ring, uint32_t block);
tn_location tn__ring_at(const tn__ring *ring);
uint64_t tn__ring_block_bytes(const tn__ring *ring);

#endif
