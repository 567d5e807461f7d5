/* SPDX-License-Identifier: MIT */
/*
 * Failure loops (F1): one call, and every host allocation, every driver call and the heavy fence in
 * it failing in turn, each in a world of its own.
 *
 *     static const fault_case adopt = {.prepare = ready, .call = call, .check = check, ...};
 *     static void adopt_survives_each_failure(void **state) { fault_loop(state, &adopt); }
 *     static const struct CMUnitTest tests[] = FAULT_BOTH(adopt_survives_each_failure);
 *
 * Each time: the status is a documented one and stands in the thread's error, the manager says what
 * it said before (M114, M115), ledgers sum up, no claim, plan, guard or payload is left over, the
 * same call then succeeds, and with the manager gone every block is given back.
 */
#ifndef FAULT_COMMON_H
#define FAULT_COMMON_H

#include "spec_common.h"

#define FAULT_CODE 700 /* native code of injected driver failures */

/* What a case works on. Whatever `prepare` makes here is what `call` may use. */
typedef struct fault {
    struct spec *f;
    tn_manager *m;
    tn_handle h;
    tn_payload payload;
    tn_stream stream, second;
    tn_lease lease;
    tn_hold hold;
    tn_reservation reservation;
    tn_snapshot *snapshot;
    tn_plan *plan;
    tn_scope *scope;
    tn_handle others[3]; /* of a plan, beside `h` */
    tn_report report;
    tn_payload kept[4]; /* by fault_remember() */
    size_t kept_count;
    uint64_t number;
    bool succeeded; /* the call did */
    tn_error error; /* of the call's thread, after it */
} fault;

enum fault_flags {
    FAULT_PEAKS = 1u,       /* a failed load leaves a peak (M49) */
    FAULT_ON_THREAD = 2u,   /* the call is its thread's first */
    FAULT_ALLOC_OK = 4u,    /* may succeed although an allocation failed */
    FAULT_DRIVER_OK = 8u,   /* may succeed although a driver call failed */
    FAULT_STATE = 16u,      /* a failure may change what the manager says: `failed` looks at it */
    FAULT_FENCE = 32u,      /* passes a heavy fence, whose failure is TN_ERR_SYSTEM */
    FAULT_NO_ALLOC = 64u,   /* allocates nothing */
    FAULT_RING = 128u,      /* a ring that cannot be pinned is no failure */
    FAULT_NO_MANAGER = 256, /* `call` makes or ends the manager: nothing to compare */
    /* runs a plan: a failure may be TN_ERR_PLAN_EXEC with the documented cause, and `failed` undoes
     * what is committed */
    FAULT_PLAN = 512
};

typedef struct fault_case {
    const char *name;
    void (*prepare)(fault *x);
    tn_status (*call)(fault *x);
    void (*failed)(fault *x, tn_status status); /* NULL, or looks at the state after a failure */
    void (*check)(fault *x);                    /* NULL, or looks at what a success left, and ends
                                                   what only the case knows of */
    unsigned flags;
    uint64_t least_allocs, least_calls; /* failures that must have been possible */
} fault_case;

/* With FAULT_PLAN: what is committed before a failure stays, and `failed` looks at it. */
#define FAULT_PREFIX (FAULT_PLAN | 1024u)
/* The same for a call that goes on after its plan: whatever the failure's status is. */
#define FAULT_COMMITS (FAULT_PREFIX | 2048u)

/* Run all failures of one case in the mode of the table's entry. */
void fault_loop(void **state, const fault_case *what);

/* Table entries; the state is the mode. */
#define FAULT_BOTH(test)                                                                           \
    {#test, test, NULL, NULL, (void *)(uintptr_t)TN_MODE_SERIAL}, {                                \
#test "_concurrent", test, NULL, NULL, (void *)(uintptr_t)TN_MODE_CONCURRENT               \
    }

/* ---- What cases share ---- */

/* A manager without budgets: untracked locations are tracked by the call. */
void fault_manager(fault *x);
/* The same with 4096 bytes at P, N, C0 and C1. */
void fault_manager_with_budgets(fault *x);
/* `v`, replicable, at one or two places (second kind none: one). */
void fault_value(fault *x, tn_location at, tn_location also);
/* A value with a callback source at `at`. */
void fault_source(fault *x, tn_location at);
/* A value with a file source of 4096 bytes at `at`. */
void fault_file(fault *x, tn_location at);

/* Remember the payloads of all materializations: a destroy may have to keep them (M148). */
void fault_remember(fault *x);
/* After it: all of them were kept, and are freed here, or none. */
void fault_free_kept(fault *x);

#endif
