/* SPDX-License-Identifier: MIT */
/*
 * A workload served without machine, files and arithmetic, up to an operation: the manager is then
 * in the state in which `tenure serve` with one worker would have it, and a plan for the operation
 * can be made.
 *
 * Placement is that of serve (placement.h, control.h); values are weightless.
 *
 * Threads: one at a time.
 */
#ifndef TENURE_REHEARSAL_H
#define TENURE_REHEARSAL_H

#include "catalogue.h"
#include "control.h"
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
    enum control_kind control;
};

struct rehearsal {
    struct scene *scene;
    struct program *program;
    struct catalogue catalogue;
    struct placement placement;
    struct placer placer;
    struct tally tally;
    uint64_t tenant;          /* of the request in progress */
    uint64_t op;              /* in progress, from 0 */
    struct rehearsed *owned;  /* per value */
    tn_reservation workspace; /* explicit control */
    struct control control;   /* of --control lru */
    bool has_control;
    struct ask ask;
    struct stay stage_use; /* it holds the bytes of the workspace */
};

/**
 * Serves the requests before, and of the last one the operations before `options->op`. With explicit
 * control the workspace of an open stage is given back: the plan wants it again. Else the stage of the
 * operation is open: its workspace had a request of its own.
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

/* ---- rehearsal_lru.c ---- */

/**
 * Decides what the library's controller decides for the operation in progress; the plan is the
 * decision's.
 *
 * @param[out] out_error  of TN_ERR_PLAN.
 * @return TN_OK; TN_ERR_PLAN infeasible; else what the library says, after an error line.
 */
tn_status rehearsal_decide(struct rehearsal *rehearsal, tn_error *out_error);

/* For rehearsal.c: false after an error line. */
bool rehearsal_open_control(struct rehearsal *rehearsal, uint64_t pinned_budget);
void rehearsal_close_control(struct rehearsal *rehearsal);
bool rehearsal_move_in(struct rehearsal *rehearsal, uint32_t value);
bool rehearsal_open_workspace(struct rehearsal *rehearsal, uint64_t bytes);
bool rehearsal_run_lru(struct rehearsal *rehearsal, const struct workload_op *op);

/* ---- rehearsal.c: for rehearsal_lru.c ---- */

/** Reports what failed; returns false. */
bool rehearsal_fail(const struct rehearsal *rehearsal, tn_status status, const char *doing,
                    const char *id);
/** Adopts a ciphertext; `reservation`: what holds its bytes; NULL: nothing. */
bool rehearsal_adopt(struct rehearsal *rehearsal, uint32_t value, tn_location at,
                     const tn_reservation *reservation);

#endif
