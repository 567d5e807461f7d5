/* SPDX-License-Identifier: MIT */
/*
 * The world of the scenarios: one manager over a simulated machine in virtual time, a few values
 * with sources, and checks that hold in every schedule.
 *
 * A payload has a serial number and is poisoned when it is destroyed, and already when a plan that
 * only removes has taken it (L1). Its memory is never used again. The world counts the effects of
 * each operation, and compares in the end: versions, bytes, records, events, payloads (B1, B2, F1).
 */
#ifndef SCHEDULE_WORLD_H
#define SCHEDULE_WORLD_H

#include <tenure/tenure.h>

#include "explore.h"

#define WORLD_VALUES 4
#define WORLD_BYTES 256u /* of each value, everywhere */
#define WORLD_LOANS 4

#define P tn_location_pageable()
#define N tn_location_pinned()
#define C0 tn_location_cuda(0)

typedef struct world {
    tn_sim *sim;
    tn_driver *driver;
    tn_manager *m;
    uint32_t mode;
    tn_handle values[WORLD_VALUES];
    tn_stream stream;
    uint32_t loads[WORLD_VALUES];      /* calls of its source that succeeded */
    uint32_t fail_loads[WORLD_VALUES]; /* so many calls fail */
    uint64_t lifetimes;                /* effects of lifetimes that were counted (M118) */
    uint64_t placement;                /* of transitions */
    bool lifetimes_unknown; /* the scenario cannot tell: something may be taken and given back */
    bool placement_unknown; /* the scenario cannot tell */
    uint64_t first_placement;
    uint32_t loans; /* borrowed, and no release begun */
    bool closed;    /* without force: nobody borrows any longer */
    bool detached;  /* by force: records of detached lifetimes stay in no list */
} world;

extern world W;

/* Budgets in values: pageable, pinned, cuda:0. All values registered, none resident. */
void world_begin(uint32_t mode, uint32_t reaper, uint32_t pageable, uint32_t pinned, uint32_t cuda);
/* Ends pending leases, checks, discards the values, destroys the manager, checks again. */
void world_end(void);

/* Values 0 .. count - 1 at P; values 0 and 1 on the device. */
void world_on_host(uint32_t count);
void world_on_device(void);

/* A payload of a value that no manager has yet. */
tn_status world_payload_make(tn_location at, uint32_t value, tn_payload *out);

/* ---- Operations: refusals that any schedule may bring are returned, others fail it ---- */

tn_status world_ensure(uint32_t value, tn_location at);
tn_status world_drop(uint32_t value, tn_location at);
tn_status world_move(uint32_t value, tn_location to, tn_location from);
tn_status world_discard(uint32_t value); /* its effects are not counted */
/* A sequence of actions as one plan; `effects` when it succeeds. */
tn_status world_actions(const tn_action *actions, size_t count, uint64_t effects);
tn_status world_reserve(tn_location at, uint64_t bytes, tn_reservation *out);
void world_unreserve(const tn_reservation *reservation);

typedef struct loan {
    tn_lease lease;
    tn_location at;
    size_t count;
    struct {
        const void *data;
        uint64_t serial;
    } seen[WORLD_LOANS];
} loan;

/* Borrow: all or none (L2), each payload its own value's and whole. */
tn_status world_borrow(const uint32_t *values, size_t count, tn_location at, loan *out);
/* They are still there. */
void world_look(const loan *l);
/* Work of so many virtual nanoseconds that reads what was borrowed. */
void world_use(const loan *l, uint64_t ns);
void world_return(const loan *l, uint32_t flags);
/* Borrow one, look twice with a point between, return. */
tn_status world_visit(uint32_t value, tn_location at);

/* A thread: close without force, which is refused while somebody has something; after it nobody has:
 * not even a loan that is being made. */
void world_close(void *unused);

/* The threads that call it only remove from now on: what they take is poisoned at once. */
void world_only_removes(bool on);

/* ---- Looking ---- */

typedef struct look {
    tn_snapshot_info head;
    uint64_t used[3], reserved[3], uses, holds, pending;
} look;

/* A snapshot, with the checks that hold for every one (M51, P3) and those for an exact one (S1). */
void world_snapshot(look *out);
/* Of one value at P, in a snapshot that need not be exact. */
void world_counts(uint32_t value, tn_materialization_info *out);

#endif
