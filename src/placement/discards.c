/* SPDX-License-Identifier: MIT */
/*
 * Which discarded values are visible, oldest first: a ring that grows up to store->keep_discarded
 * (D12). Under store->lock. Without a limit nobody asks for the oldest, so nothing is kept.
 */
#include "placement/placement_priv.h"

#define FIRST_ROOM 16u

static uint64_t at(const tn__store *s, uint64_t position) {
    return s->discarded[(s->discarded_first + position) & (s->discarded_room - 1)];
}

bool tn__discards_prepare(tn__store *s) {
    if (s->keep_discarded == TN_KEEP_ALL || s->discarded_count < s->discarded_room ||
        tn__discards_full(s))
        return true;
    uint64_t room = s->discarded_room ? s->discarded_room * 2 : FIRST_ROOM; /* a power of two */
    uint64_t *ring = tn__alloc(room * sizeof *ring);
    if (!ring)
        return false;
    for (uint64_t i = 0; i < s->discarded_count; i++)
        ring[i] = at(s, i);
    tn__free(s->discarded);
    s->discarded = ring;
    s->discarded_first = 0;
    s->discarded_room = room;
    return true;
}

bool tn__discards_full(const tn__store *s) { return s->discarded_count >= s->keep_discarded; }

uint64_t tn__discards_oldest(const tn__store *s) { return at(s, 0); }

void tn__discards_push(tn__store *s, uint64_t index) {
    if (s->keep_discarded == TN_KEEP_ALL)
        return;
    if (tn__discards_full(s)) {
        s->discarded_first++;
        s->discarded_count--;
    }
    s->discarded[(s->discarded_first + s->discarded_count) & (s->discarded_room - 1)] = index;
    s->discarded_count++;
}
