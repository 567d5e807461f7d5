/* SPDX-License-Identifier: MIT */
/*
 * What programs need of a machine, and the budgets that are made of it.
 *
 * Threads: any.
 */
#ifndef TENURE_NEEDS_H
#define TENURE_NEEDS_H

#include "program.h"
#include "tally.h"

/* Over all programs. Sums saturate at INT64_MAX, which no machine has. */
struct needs {
    uint64_t tenant_key_bytes;                          /* keys of one tenant */
    uint64_t largest_key_bytes, peak_bytes, need_bytes; /* of the neediest program */
    uint64_t least_need_bytes;                          /* of the least needy one */
    uint64_t source_bytes; /* everything with a source, of all tenants */
};

/* Who has to be served, and with what. */
struct demand {
    const char *command; /* "serve": begins error lines */
    uint64_t tenants, workers;
    struct budget device_budget, pinned_budget;
    bool only_keys; /* a share as device budget is one of keys, without what workers need beside */
};

struct needs needs_find(struct program *const *programs, size_t count, uint64_t tenants);

/** The budgets in bytes; UINT64_MAX: unlimited. */
void needs_budgets(const struct needs *needs, const struct demand *demand,
                   uint64_t out_budget_bytes[TIER_COUNT]);

/**
 * Whether the device budget is enough: every worker must be able to serve a request at the same
 * time, one of them the neediest. More of the needy ones than fit queue (pool.h).
 *
 * @return false after an error line.
 */
bool needs_judge(const struct needs *needs, const struct demand *demand,
                 const uint64_t budget_bytes[TIER_COUNT]);

#endif
