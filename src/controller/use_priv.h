/* SPDX-License-Identifier: MIT */
/*
 * The use object, shared by use.c (life, reading) and enter.c (entry, exit).
 */
#ifndef TENURE_CONTROLLER_USE_PRIV_H
#define TENURE_CONTROLLER_USE_PRIV_H

#include "controller/controller_priv.h"

enum tn__use_state { TN__USE_FRESH, TN__USE_ENTERED, TN__USE_OVER };

struct tn_use {
    tn_use *next; /* controller->uses; under its lock */
    tn_controller *controller;
    const tn_request *request;
    tn_stream *consumers; /* by location of the request; NULL on hosts */
    tn_transfer_stream *transfers;
    size_t transfer_count;
    tn_handle *handles;           /* in the request's order by location */
    tn_lease *leases;             /* by location */
    tn_reservation *reservations; /* of a hit */
    size_t reservation_count;     /* of the request */
    const tn_reservation_spec *reserved_specs;
    size_t lease_count, reserved; /* what is left of them */
    tn__hot_bundle hot;           /* what a hit takes in one step */
    bool hot_ready;               /* it can: bound to placement, host locations only */
    enum tn__use_state state;
    bool was_entered; /* since the last reset, with success */
    tn_scope *scope;  /* of a miss; kept for its report */
    tn_decision *decision;
    bool hit;
    uint64_t redecisions;
    uint64_t epoch;
    /* the last access that is not in the controller's epochs yet (D14): written by the use, read
     * by decisions */
    _Atomic uint64_t stamp;
    uint64_t collected; /* under controller->lock */
};

/* End what is left of an entry, whatever the guard says. The thread's error stays. */
void tn__use_let_go(tn_use *use);
/* Its scope and decision, which hold nothing of the manager any longer. */
void tn__use_forget(tn_use *use);
/* Its stamp goes to the epochs (tn__uses_collect()); under controller->lock. */
void tn__use_collect(tn_use *use);

#endif
