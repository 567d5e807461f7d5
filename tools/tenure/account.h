/* SPDX-License-Identifier: MIT */
/*
 * What a plan would do, and what it did: an explanation and, if asked for, one run of its scope,
 * read out of the library for printing.
 *
 * Threads: one at a time.
 */
#ifndef TENURE_ACCOUNT_H
#define TENURE_ACCOUNT_H

#include "scene.h"

#include <tenure/scope.h>

/* One entry and close of a scope. */
struct run {
    tn_status status;   /* of what failed first, or TN_OK */
    const char *failed; /* "entering", "closing"; NULL: nothing */
    char *text;         /* why; owned */
    tn_report *transitions;
    size_t transition_count;
    uint64_t phase_count[TN_PHASE_EXIT + 1]; /* transitions by phase, in this order */
};

struct account {
    const struct scene *scene;
    tn_explanation *explanation;
    tn_explanation_info info;
    tn_action_explanation *steps;
    const tn_reservation_spec *reservations; /* the explanation's */
    tn_predicted_peak *peaks;
    tn_blocker *blockers;
    tn_location *protected_at;
    size_t step_count, reservation_count, peak_count, blocker_count, protected_count;
    const tn_error *problem; /* NULL: feasible */
    bool decided;            /* the plan is a decision's; else what follows is empty */
    tn_decision_info decision;
    const tn_requirement *required; /* of its request */
    size_t required_count;
    tn_eviction *evictions;
    size_t eviction_count;
    const tn_config_pair *config; /* of the policy */
    size_t config_count;
    bool has_run;
    struct run run;
};

/**
 * Explains the scene's plan, then runs it if `runs`.
 *
 * @param account  all zero; end with account_fini() either way, before the scene.
 * @return false after an error line.
 */
bool account_take(struct account *account, struct scene *scene, bool runs);
void account_fini(struct account *account);

/** Whether a reservation of the plan was met by the simulation before the first problem, or is
 * that problem. */
bool account_reaches(const struct account *account, size_t reservation);
/** Whether it is the first problem. */
bool account_refuses(const struct account *account, size_t reservation);

/** Whether a peak is within its budget; without one, within what can be charged at all. */
bool account_fits(const struct account *account, const tn_predicted_peak *peak);

/* Words for numbers of the library; "unknown" for others. */

const char *phase_word(uint32_t phase);     /* "reclaim" */
const char *action_word(uint32_t kind);     /* "ensure" */
const char *reason_word(uint32_t reason);   /* "already resident" */
const char *verdict_word(uint32_t verdict); /* "after leases" */
const char *eviction_word(uint32_t reason); /* "replica remains" */
const char *blocker_word(uint32_t kind);    /* "hold" */

/* A location's name, for one use. */
struct location_text {
    char text[TN_LOCATION_NAME_MAX];
};
/** "cuda:0"; `none` for no location. */
struct location_text location_text(tn_location at, const char *none);

#endif
