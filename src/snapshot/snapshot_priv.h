/* SPDX-License-Identifier: MIT */
#ifndef TENURE_SNAPSHOT_PRIV_H
#define TENURE_SNAPSHOT_PRIV_H

#include "snapshot/snapshot_internal.h"

/* Protections of one materialization. */
typedef struct tn__mat_count {
    const tn__mat *mat;
    tn__protection p;
} tn__mat_count;

typedef struct tn__reserved {
    tn_location at;
    uint64_t bytes, admitted, tie;
    char label[256];
} tn__reserved;

/* What the pass says of one tracked location, in tracking order. */
typedef struct tn__place_count {
    tn__protection p;
    uint64_t reservations, reserved_bytes, peak_charged;
    uint64_t allocated, held; /* readings */
} tn__place_count;

/* What a pass gathers. `mats` is a hash table by address: open addressing, a power of two of
 * entries, empty ones NULL; the reservations are an array. Both grow as needed. */
typedef struct tn__pass {
    const tn_version *version;
    tn__mat_count *mats;
    size_t mat_count, mat_room;
    tn__reserved *reserved;
    size_t reserved_count, reserved_room;
    tn__totals totals;
} tn__pass;

struct tn_snapshot {
    tn__store *store;
    tn__pass pass;
    tn__place_count *places;
    uint64_t state_version, captured_at_ns;
    bool exact;
};

/* pass.c */
TN_NODISCARD tn_status tn__pass_run(tn__life *life, tn__pass *pass);
void tn__pass_fini(tn__pass *pass);
tn__protection tn__pass_protection(const tn__pass *pass, const tn__mat *mat);

#endif
