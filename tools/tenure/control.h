/* SPDX-License-Identifier: MIT */
/*
 * `--control lru`: who places keys and plaintexts is the library's controller.
 *
 * A step of a request says what it needs (ask.h): what it reads on the device, and bytes for what it
 * writes. That becomes a tn_request, and the step runs inside a tn_use of it. The policy is
 * `deterministic-tiered-lru` without tiers: every victim is a key or plaintext, and all of these
 * have a file, so nothing has to be moved anywhere to make room.
 *
 * Pinned memory holds what has come from the files: a value that is not on the device is asked for
 * in pinned memory first, then on the device. If pinned memory refuses, the step asks again without
 * it, and the file goes to the device. In a request that loads something, values that are pinned
 * already are asked for there too, so that none of them goes to make room for another.
 *
 * A request must ask for some value (C37). Those that want bytes only ask for an anchor: a few bytes
 * in pageable memory, where there is no budget.
 *
 * Threads: set up and ended by one; everything else any, one at a time per placer.
 */
#ifndef TENURE_CONTROL_H
#define TENURE_CONTROL_H

#include "ask.h"
#include "catalogue.h"
#include "decision_log.h"
#include "placement.h"

enum { REDECISIONS = 16 /* how often a use may decide again before the step asks anew */ };

struct control {
    tn_manager *manager;
    const struct catalogue *catalogue;
    tn_location at[TIER_COUNT];
    uint64_t pinned_budget; /* UINT64_MAX: unlimited */
    tn_policy *policy;
    tn_controller *controller;
    tn_handle anchor;
    bool has_anchor;
    struct decision_log *log; /* borrowed; NULL: none */
};

/**
 * @param control  all zero but for `manager`, `catalogue`, `at` and `pinned_budget`, which are set
 *                 already; the items need not be registered yet.
 * @param anchor   what the anchor is; consumed.
 * @return TN_OK, or what the library says. Either way end with control_close().
 */
tn_status control_open(struct control *control, tn_payload anchor);
/** Before the manager closes; all uses must be over. */
tn_status control_close(struct control *control);

/** The item of a handle; NULL: it is none. */
struct item *control_item(const struct control *control, tn_handle handle);
/** Its name, for one value of the ask or any item; owned. */
char *control_name(const struct control *control, const struct ask *ask, tn_handle handle);

/** The request of an ask, as things are now: `by_pinned` says whether pinned memory may be asked
 * for, and afterwards whether it was. Owned. */
tn_status control_request(const struct control *control, const struct ask *ask, bool *by_pinned,
                          tn_request **out);

/* ---- control_use.c ---- */

/* A use that is entered. */
struct stay {
    tn_use *use;
    uint64_t items;  /* how many keys and plaintexts it was asked for */
    uint64_t misses; /* of them, those that were counted already */
};

/**
 * Enters a use of what is asked for. While everything that could go is in use it waits for others,
 * as room.h tells.
 *
 * @param[out] out  on success; end with control_exit().
 * @return TN_OK; TN_ERR_PLAN what is asked for does not fit; what the library says.
 */
tn_status control_enter(struct placer *placer, const struct ask *ask, struct stay *out);
/** The reservation of an entered use. */
tn_status control_reservation(const struct stay *stay, tn_reservation *out);
/** Exits it, and counts what it did. Then the caller calls placement_gave_back(). */
tn_status control_exit(struct placer *placer, struct stay *stay);

/** The machine is short of device memory though the budget has room: evicts at least one value.
 * TN_ERR_BUDGET: there is none that could go, or no budget. */
tn_status control_evict(struct placer *placer);
/** Drops a plaintext that nobody reads any longer from all tiers. */
tn_status control_retire(struct placer *placer, struct item *item);

/* ---- control_count.c ---- */

/** A use of the ask has been entered. */
void control_count_entry(struct placer *placer, const struct ask *ask, const tn_use *use);
/** It has been exited, or its entry failed when all had run. */
void control_count_report(struct placer *placer, const tn_decision *decision,
                          const tn_plan_report *report);
/** Of a plan that failed half-way (TN_ERR_PLAN_EXEC), all before the action that failed. */
void control_count_prefix(struct placer *placer, const tn_decision *decision,
                          const tn_error *error);

#endif
