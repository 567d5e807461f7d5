/* SPDX-License-Identifier: MIT */
/*
 * Actions and the reports of completed actions (M82..M92).
 */
#ifndef TENURE_PLAN_H
#define TENURE_PLAN_H

#include <tenure/error.h>
#include <tenure/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The four primitive requests. Copy is another name for ensure (M97). */
enum tn_action_kind {
    TN_ACTION_NONE = 0,
    TN_ACTION_ENSURE = 1,
    TN_ACTION_MOVE = 2,
    TN_ACTION_DROP = 3,
    TN_ACTION_DISCARD = 4
};

/** One request exactly as made. */
typedef struct tn_action {
    uint32_t kind;      /**< enum tn_action_kind */
    uint32_t reserved0; /**< always 0 */
    tn_handle handle;
    tn_location at;   /**< ensure and move: destination; drop: the location; discard: none */
    tn_location from; /**< move: explicit source, or none */
} tn_action;

/** An allocator reading that is absent. */
#define TN_READING_ABSENT UINT64_MAX

/** Report of one completed action (M84). */
typedef struct tn_report {
    size_t size;
    tn_action action;
    uint32_t no_op;           /**< 1: nothing had to be done */
    uint32_t reason;          /**< enum tn_reason; only for no-ops */
    tn_location source;       /**< resolved (M90); kind none if absent */
    tn_location destination;  /**< same */
    uint64_t logical_bytes;   /**< from the spec */
    uint64_t storage_bytes;   /**< the charge, from the spec */
    uint64_t started_at_ns;   /**< Unix nanoseconds */
    uint64_t completed_at_ns; /**< never before started_at_ns (G47) */
    tn_location allocator;    /**< the sampled CUDA location (M91); kind none if none */
    /** in use in the device's pool; TN_READING_ABSENT if it could not be read (M92) */
    uint64_t allocated_bytes_before;
    uint64_t held_bytes_before; /**< held by the device's pool */
    uint64_t allocated_bytes_after;
    uint64_t held_bytes_after;
} tn_report;

#define TN_REPORT_INIT                                                                             \
    {                                                                                              \
        sizeof(tn_report), {0, 0, {0, 0, NULL}, {0, 0}, {0, 0}}, 0, 0, {0, 0}, {0, 0}, 0, 0, 0, 0, \
            {0, 0}, 0, 0, 0, 0                                                                     \
    }

#ifdef __cplusplus
}
#endif

#endif
