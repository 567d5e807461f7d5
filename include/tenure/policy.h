/* SPDX-License-Identifier: MIT */
/*
 * Eviction policies: which of the legal victims goes first, and which tiers a value may be moved to
 * (C12..C34). A policy ranks; it never decides what is legal.
 *
 * A policy is pure (C18): its answers depend on its arguments and its own frozen configuration
 * only; its callbacks must not call a manager or controller, and may be called by several threads
 * at once.
 */
#ifndef TENURE_POLICY_H
#define TENURE_POLICY_H

#include <tenure/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One materialization that could be released (C12..C14). */
typedef struct tn_candidate {
    tn_handle handle;
    tn_location at;
    uint64_t charged_bytes;      /**< what a release gives back at the location */
    uint64_t registration_index; /**< zero-based, among all values ever registered */
    uint64_t last_epoch;         /**< of the last use; 0: never accessed */
    int64_t priority;            /**< higher is kept longer; default 0 */
    const char *stable_key;      /**< borrowed for the call; NULL: none */
} tn_candidate;

/** One pair of a policy's configuration; the order counts (C17). */
typedef struct tn_config_pair {
    const char *key; /**< not blank */
    const char *value;
} tn_config_pair;

/** A policy of the caller's. All callbacks are required. */
typedef struct tn_policy_spec {
    size_t size;
    void *context; /**< borrowed until `forget` */
    /** Not blank; borrowed until the next call of this callback. Read again at each decision and
     * scope (C16). */
    const char *(*name)(void *context);
    /** The identity of the configuration; borrowed likewise. NULL with *out_count 0: none. */
    const tn_config_pair *(*config_identity)(void *context, size_t *out_count);
    /** Where a value at `at` may be moved to make room, in order: write up to `room` locations,
     * set *out_count to the real total. Naming `at` itself breaks the contract (C23). */
    tn_status (*fallback_locations)(void *context, tn_location at, tn_location *out, size_t room,
                                    size_t *out_count);
    /** The order in which candidates go: write each index 0..count-1 exactly once (C19). */
    tn_status (*order_candidates)(void *context, const tn_candidate *candidates, size_t count,
                                  size_t *out_order);
    void (*forget)(void *context); /**< the policy is not used any longer; may be NULL */
} tn_policy_spec;

#define TN_POLICY_SPEC_INIT                                                                        \
    { sizeof(tn_policy_spec), NULL, NULL, NULL, NULL, NULL, NULL }

/** A policy; immutable, may be shared by controllers. */
typedef struct tn_policy tn_policy;

/**
 * A policy from callbacks.
 *
 * @param spec          borrowed (copied).
 * @param[out] out      owned; end with tn_policy_destroy().
 * @return TN_OK; TN_ERR_KIND NULL or a callback missing (then `forget` is not called);
 *         TN_ERR_HOST_MEMORY.
 *
 * Threads:  any.
 * Blocks:   never.
 * Source:   C15.
 */
TN_NODISCARD TN_API tn_status tn_policy_create(const tn_policy_spec *spec, tn_policy **out);

/** The tiers that one location's values may be moved to, in order. */
typedef struct tn_tier {
    tn_location from;
    const tn_location *to; /**< borrowed (copied) */
    size_t to_count;       /**< 0 is allowed, and is not the same as no entry (C27) */
} tn_tier;

/**
 * The built-in policy, `deterministic-tiered-lru`: lowest priority first; then never used, then
 * least recently used; then by stable key, then by registration (C33).
 *
 * @param tiers         borrowed (copied); `count` of them, NULL and 0 for none (C25).
 * @param[out] out      owned; end with tn_policy_destroy().
 * @return TN_OK; TN_ERR_KIND NULL, or something that is no location; TN_ERR_VALUE a location that
 *         lists itself or occurs twice in one list, one source twice, or an index above 127;
 *         TN_ERR_HOST_MEMORY.
 *
 * Threads:  any.
 * Blocks:   never.
 * Source:   C25..C34.
 */
TN_NODISCARD TN_API tn_status tn_policy_tiered_lru(const tn_tier *tiers, size_t count,
                                                   tn_policy **out);

/** Let a policy go; NULL is ignored. Controllers that use it keep it. Threads: one at a time.
 * Blocks: never. */
TN_API void tn_policy_destroy(tn_policy *policy);

/** Its name as it is now; NULL for NULL. Borrowed until the policy is asked again. Threads: any.
 * Blocks: never. Source: C16. */
TN_API const char *tn_policy_name(const tn_policy *policy);

/**
 * Its configuration as it is now.
 *
 * @param[out] out      borrowed until the policy is asked again; NULL if there is none.
 * @param[out] out_count pairs.
 * @return TN_OK; TN_ERR_KIND.
 *
 * Threads:  any.
 * Blocks:   never.
 * Source:   C17, C27: the built-in policy has one pair, `fallback_tiers`, with a text such as
 *           `[cuda:0:[pinned-host,pageable-host]]`.
 */
TN_NODISCARD TN_API tn_status tn_policy_config(const tn_policy *policy, const tn_config_pair **out,
                                               size_t *out_count);

/** The fallback list of a location, asked from the policy; an array of plain locations with its
 * room in and its total out. TN_OK; TN_ERR_KIND; TN_ERR_VALUE; what the policy reports;
 * TN_ERR_POLICY it names `at` itself. Threads: any. Blocks: never. Source: C22, C32. */
TN_NODISCARD TN_API tn_status tn_policy_fallbacks(const tn_policy *policy, tn_location at,
                                                  tn_location *out, size_t *inout_count);

/**
 * Order candidates as a decision would: each index exactly once.
 *
 * @param candidates    borrowed, unchanged.
 * @param[out] out_order `count` indices.
 * @return TN_OK; TN_ERR_KIND NULL, or something that is no candidate; what the policy reports;
 *         TN_ERR_POLICY an index is missing, repeated or out of range.
 *
 * Threads:  any.
 * Blocks:   never.
 * Source:   C19, C33, C34.
 */
TN_NODISCARD TN_API tn_status tn_policy_order(const tn_policy *policy,
                                              const tn_candidate *candidates, size_t count,
                                              size_t *out_order);

#ifdef __cplusplus
}
#endif

#endif
