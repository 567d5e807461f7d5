/* SPDX-License-Identifier: MIT */
/*
 * Statuses, and the structured detail of a thread's last failing call.
 * A status says what the caller should do next (M244..M250).
 */
#ifndef TENURE_STATUS_H
#define TENURE_STATUS_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TN_API __attribute__((visibility("default")))
#define TN_NODISCARD __attribute__((warn_unused_result))
#else
#define TN_API
#define TN_NODISCARD
#endif

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Every status: X(name, number, text, advice). Numbers are never reused.
 */
#define TN_STATUS_MAP(X)                                                                           \
    X(OK, 0, "success", "go on")                                                                   \
    X(ERR_KIND, 1, "an argument is not the kind of thing required", "fix the call")                \
    X(ERR_VALUE, 2, "an argument has an unacceptable value", "fix the call")                       \
    X(ERR_MISUSE, 3, "an object was used in the wrong order or twice", "fix the call")             \
    X(ERR_LOOKUP, 4, "the handle is not one of this lease", "fix the call")                        \
    X(ERR_HANDLE, 5, "the handle is foreign, unknown or discarded", "drop the handle")             \
    X(ERR_BUDGET, 6, "a strict budget would be exceeded",                                          \
      "ask for less, release something, raise the budget")                                         \
    X(ERR_UNAVAILABLE, 7, "a needed materialization is absent", "ensure first, then acquire")      \
    X(ERR_IN_USE, 8, "protection or an open lifetime forbids it",                                  \
      "retry when the named blockers are gone")                                                    \
    X(ERR_LIFETIME_CLOSED, 9, "the lease, hold or reservation has ended",                          \
      "do not use it any longer")                                                                  \
    X(ERR_MATERIALIZATION, 10, "a payload does not fit its spec or location", "fix the producer")  \
    X(ERR_OWNERSHIP, 11, "a replica, last-copy or storage rule would be broken",                   \
      "fix the producer or the call")                                                              \
    X(ERR_PAYLOAD, 12, "a payload is unusable, or pinned memory cannot be had",                    \
      "fix the producer")                                                                          \
    X(ERR_PLAN, 13, "a plan is infeasible; nothing ran", "read the reason, make another plan")     \
    X(ERR_STALE, 14, "the state version has moved on; nothing ran", "decide again")                \
    X(ERR_PLAN_EXEC, 15, "a plan failed while running; a prefix is committed", "read the report")  \
    X(ERR_SEARCH_LIMIT, 16, "the search limit was reached",                                        \
      "raise the limit or split the request")                                                      \
    X(ERR_CLOSED, 17, "the manager is closed", "do not call any longer")                           \
    X(ERR_REENTRANCY, 18, "called from or during a callback", "do not call here")                  \
    X(ERR_SOURCE, 19, "a source failed", "report it, with the native code")                        \
    X(ERR_DRIVER, 20, "a driver call failed", "report it, with the native code")                   \
    X(ERR_HOST_MEMORY, 21, "host memory is exhausted", "give up")                                  \
    X(ERR_DEVICE_MEMORY, 22, "device memory is exhausted", "evict and retry")                      \
    X(ERR_DEVICE_LOST, 23, "the device is gone", "go on with the other locations")                 \
    X(ERR_UNSUPPORTED, 24, "not supported here", "do not retry")                                   \
    X(ERR_INTERNAL, 25, "a defect of the library", "report it to us")                              \
    X(ERR_POLICY, 26, "a policy broke its contract", "fix the policy")                             \
    X(ERR_FORKED, 27, "the manager belongs to the parent process", "fork before, or exec")         \
    X(ERR_SYSTEM, 28, "the operating system refused", "report it, with the native code")

/** Result of a call. Stored as uint32_t in structs. */
typedef enum tn_status {
#define TN_STATUS_ENUM(name, number, text, advice) TN_##name = number,
    TN_STATUS_MAP(TN_STATUS_ENUM)
#undef TN_STATUS_ENUM
        TN_STATUS_LIMIT = 0x7fffffff /**< keeps the enum 32 bits wide; never returned */
} tn_status;

/**
 * The name of a status, such as `TN_ERR_BUDGET`; `TN_UNKNOWN` for any other number. Static text.
 *
 * Threads:  any.
 * Blocks:   never.
 */
TN_API const char *tn_status_name(tn_status status);

/**
 * What went wrong, in one phrase. Static text.
 *
 * Threads:  any.
 * Blocks:   never.
 */
TN_API const char *tn_status_text(tn_status status);

/**
 * What the caller should do next, in one phrase. Static text.
 *
 * Threads:  any.
 * Blocks:   never.
 */
TN_API const char *tn_status_advice(tn_status status);

struct tn_error;

/**
 * Detail of this thread's last failing call; defined in error.h.
 *
 * @return pinned until this thread's next failing call, or its exit; never NULL. Before any
 *         failure its status is TN_OK.
 *
 * Threads:  any.
 * Blocks:   never.
 * Source:   M244.
 */
TN_API const struct tn_error *tn_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
