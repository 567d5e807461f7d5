/* SPDX-License-Identifier: MIT */
/*
 * What the key order of a program asks of a cache: reuse distances, and the key bytes that LRU and
 * the offline optimum (evict the key whose next use is farthest away) load when the program is
 * repeated. Keys only; a key is loaded when an operation needs it.
 *
 * Threads: any; the workload is only read.
 */
#ifndef TENURE_REUSE_H
#define TENURE_REUSE_H

#include "workload.h"

enum { CACHE_RUNS = 20, CACHE_ROWS = 3 };

/* The key uses of a program: those of step s are keys[step_first[s] .. step_first[s + 1]). */
struct key_uses {
    uint32_t *keys; /* numbered 0 .. key_count - 1 in the order of declaration */
    uint32_t *step_first;
    uint64_t *key_bytes; /* per key */
    size_t use_count, step_count, key_count;
};

void key_uses_init(struct key_uses *uses, const struct workload *work);
void key_uses_fini(struct key_uses *uses);

/* Other keys used since the last use of the same key, in a steady run, over all uses. */
struct reuse {
    double median;
    uint64_t most;
};

struct reuse reuse_distances(const struct key_uses *uses);

/* One policy with one capacity. */
struct cache_result {
    bool fits; /* false: some operation needs more keys at once than the cache holds */
    uint64_t run_bytes[CACHE_RUNS], run_keys[CACHE_RUNS];
};

struct cache_row {
    double fraction;
    uint64_t capacity_bytes;
    struct cache_result lru, best;
};

/** Fills CACHE_ROWS rows: 50, 75 and 90 % of the key bytes. */
void cache_table(const struct key_uses *uses, struct cache_row *rows);
/** Bytes of runs 2 to CACHE_RUNS, and of all runs. */
uint64_t cache_steady_bytes(const struct cache_result *result);
uint64_t cache_all_bytes(const struct cache_result *result);

#endif
