/* SPDX-License-Identifier: MIT */
/*
 * manager: life cycle and the public entry points. Each checks its arguments, then makes one call
 * down. Nothing below knows tn_manager.
 */
#ifndef TENURE_MANAGER_INTERNAL_H
#define TENURE_MANAGER_INTERNAL_H

#include <tenure/manager.h>

#include "snapshot/snapshot_internal.h"
#include "transition/transition_internal.h"

struct tn_manager {
    uint64_t id;
    tn__gate *gate;    /* the life's, for the hot path */
    tn_driver *driver; /* in use (tn__driver_use()) once the ring is there */
    tn__ring *ring;
    tn__store *store;
    tn__life *life;
    tn__trans *trans;
};

/* The thread, and the entry checks of M198 (`closed_ok`: as tn__life_enter()). The thread has a
 * slot afterwards. */
TN_NODISCARD tn_status tn__manager_enter(tn_manager *m, bool closed_ok, tn__thread **out_thread);
/* Guard only (M21, M235). */
TN_NODISCARD tn_status tn__manager_enter_guard_only(tn_manager *m);

/* The end of an entry point: an error names the manager that was called. */
static inline tn_status tn__done(const tn_manager *m, tn_status status) {
    if (tn__unlikely(status != TN_OK) && m)
        tn__error_current()->manager = m->id;
    return status;
}

/* Form of a handle (M8). */
TN_NODISCARD tn_status tn__handle_in(tn_handle handle);
/* Form of a collection of handles (M128). */
TN_NODISCARD tn_status tn__handles_in(const tn_handle *handles, size_t count);
/* NULL is TN_ERR_KIND. */
TN_NODISCARD tn_status tn__not_null(const void *pointer, const char *what);

#endif
