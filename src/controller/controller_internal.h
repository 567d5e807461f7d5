/* SPDX-License-Identifier: MIT */
/*
 * controller: automatic decisions. Policies and requests (plain data), the search for victims, the
 * decision, and the use that decides, enters and borrows in one step.
 *
 * Invariants
 *  C1 a decision reads one version, one scan of the records and the ledgers, all of one state
 *     version, and changes nothing.
 *  C2 where the canonical walk of the specification succeeds, the answer is the same, with the same
 *     ranks and reasons; what is skipped is proven hopeless (proof.c).
 *  C3 the walk's depth is the number of releases; it uses no machine stack per release.
 *
 * Called by manager/ with arguments checked (form only), no lock held. Rank CONTROLLER comes before
 * every lock of a manager.
 */
#ifndef TENURE_CONTROLLER_INTERNAL_H
#define TENURE_CONTROLLER_INTERNAL_H

#include <tenure/controller.h>

#include "transition/transition_internal.h"

/* What a controller needs of its manager. */
typedef struct tn__controlled {
    tn_manager *manager; /* for the caller; nothing here looks into it */
    uint64_t id;
    tn__store *store;
    tn__life *life;
    tn__trans *trans;
    tn_driver *driver;
    bool serial;
} tn__controlled;

TN_NODISCARD tn_status tn__controller_create(const tn__controlled *of,
                                             const tn_controller_config *config,
                                             tn_controller **out);

#endif
