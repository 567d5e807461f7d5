/* SPDX-License-Identifier: MIT */
/*
 * What a run counts.
 *
 * Threads: one at a time (there is one worker).
 */
#ifndef TENURE_TALLY_H
#define TENURE_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tier { TIER_PINNED, TIER_DEVICE };
enum { TIER_COUNT = 2 };

/* Ways that bytes take. */
enum path {
    PATH_FILE_PINNED,
    PATH_PINNED_DEVICE,
    PATH_FILE_DEVICE, /* the pinned tier refused */
    PATH_HOST_DEVICE, /* inputs of requests */
    PATH_DEVICE_HOST  /* outputs */
};
enum { PATH_COUNT = 5 };

struct traffic {
    uint64_t count, bytes;
};

struct tally {
    uint64_t done, failed;
    uint64_t *latency_ns; /* of the done requests, in order */
    size_t latency_capacity;
    uint64_t elapsed_ns; /* of serving, by the machine's clock */
    uint64_t stall_ns;   /* of it, waiting for values to become resident */
    struct traffic paths[PATH_COUNT];
    struct traffic evictions[TIER_COUNT]; /* made to get room */
    struct traffic retired;               /* plaintexts dropped after their last reader */
    uint64_t hits, misses;                /* of keys and plaintexts on the device */
    uint64_t verified;                    /* borrowed values whose bytes were right */
    uint64_t corruptions;                 /* those whose bytes were wrong */
    uint64_t errors_shown;
};

const char *path_name(enum path path);
const char *tier_name(enum tier tier);
void tally_add_latency(struct tally *tally, uint64_t ns);
void tally_fini(struct tally *tally);

#endif
