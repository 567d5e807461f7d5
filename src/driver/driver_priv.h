/* SPDX-License-Identifier: MIT */
/*
 * What the files of the driver module share: the object behind tn_driver, and how a status of a
 * table becomes ours.
 */
#ifndef TENURE_DRIVER_PRIV_H
#define TENURE_DRIVER_PRIV_H

#include "driver/driver_internal.h"

/* Immutable after tn_driver_create(). */
struct tn_driver {
    const tn_driver_ops *ops;
    void *self;
    uint32_t devices; /* visible CUDA devices */
};

/* D1: turn a failure of a table's entry into ours and set the detail. `what` names the call; `at`
 * is the location concerned, or none. A status outside the contract of the table is TN_ERR_DRIVER.
 */
TN__COLD tn_status tn__driver_report(const tn_driver *d, tn_status status, const char *what,
                                     tn_location at);

/* The same where "already gone" is success (D2). */
TN__COLD tn_status tn__driver_report_gone_ok(const tn_driver *d, tn_status status, const char *what,
                                             tn_location at);

#endif
