/* SPDX-License-Identifier: MIT */
/*
 * What the files of the driver module share: the object behind tn_driver, and how a status of a
 * table becomes ours.
 */
#ifndef TENURE_DRIVER_PRIV_H
#define TENURE_DRIVER_PRIV_H

#include "driver/driver_internal.h"
#include "driver/driver_pinned.h"

struct tn_driver {
    /* immutable after tn_driver_create() */
    const tn_driver_ops *ops;
    void *self;
    uint32_t devices;         /* visible CUDA devices */
    void (*fini)(void *self); /* ends `self`; NULL: somebody else does */
    tn__pinned pinned;
};

#ifdef TN_HAVE_CUDA
/* The CUDA backend (cuda/), where it is built. */
typedef struct tn__cuda tn__cuda;

/* Load a library and start the driver in it. On failure the error is set and *why is a static text,
 * the beginning of its message. */
TN_NODISCARD tn_status tn__cuda_open(const char *library, tn__cuda **out, const char **why);
const tn_driver_ops *tn__cuda_table(const tn__cuda *c);
void tn__cuda_close(void *self);
#endif

/* D1: turn a failure of a table's entry into ours and set the detail. `what` names the call; `at`
 * is the location concerned, or none. A status outside the contract of the table is TN_ERR_DRIVER.
 */
TN__COLD tn_status tn__driver_report(tn_driver *d, tn_status status, const char *what,
                                     tn_location at);

/* The same where "already gone" is success (D2). */
TN__COLD tn_status tn__driver_report_gone_ok(tn_driver *d, tn_status status, const char *what,
                                             tn_location at);

/* A block of the pool, or of the driver (M31). */
TN_NODISCARD tn_status tn__pinned_alloc(tn_driver *d, uint64_t bytes, void **out);
/* Back to the pool: no call of the driver. */
TN_NODISCARD tn_status tn__pinned_free(tn_driver *d, void *pointer, uint64_t bytes);

#endif
