/* SPDX-License-Identifier: MIT */
/*
 * A workload served without machine, files and arithmetic, up to an operation: the manager is then
 * in the state in which `tenure serve --control explicit` with one worker would have it, and a plan
 * for the operation can be made.
 *
 * Placement is that of serve (placement.h); values are weightless.
 *
 * Threads: one at a time.
 */
#ifndef TENURE_REHEARSAL_H
#define TENURE_REHEARSAL_H

#include "catalogue.h"
#include "placement.h"
#include "scene.h"

/* A ciphertext of the request in progress. */
struct rehearsed {
    tn_handle handle;
    bool live;
};

struct rehearsal_options {
    uint64_t op;       /* from 1; what the plan is for */
    uint64_t requests; /* complete ones before the request of that operation */
    uint64_t tenants;
    struct scale scale;
    struct budget device_budget, pinned_budget;
};

struct rehearsal {
    struct scene *scene;
    struct program *program;
    struct catalogue catalogue;
    struct placement placement;
    struct placer placer;
    struct tally tally;
    uint64_t tenant;         /* of the request in progress */
    uint64_t op;             /* in progress, from 0 */
    struct rehearsed *owned; /* per value */
    tn_reservation workspace;
};

/**
 * Serves the requests before, and of the last one the operations before `options->op`. The
 * workspace of an open stage is given back: the plan wants it again.
 *
 * @param rehearsal  all zero; end with rehearsal_close() either way, before the scene.
 * @return false after an error line.
 */
bool rehearsal_open(struct rehearsal *rehearsal, struct scene *scene, const char *workload,
                    const struct rehearsal_options *options);
void rehearsal_close(struct rehearsal *rehearsal);

/** The item of a key or plaintext as the request in progress sees it. */
struct item *rehearsal_item(const struct rehearsal *rehearsal, uint32_t value);

/**
 * Drafts what explicit control does for the operation in progress, and makes the plan: the least
 * recently used values go, workspace and results are reserved, what it reads comes to the device;
 * afterwards plaintexts without further readers go, and what it frees.
 *
 * @return false after an error line. (rehearsal_plan.c)
 */
bool rehearsal_plan_explicit(struct rehearsal *rehearsal);

#endif
