/* SPDX-License-Identifier: MIT */
/*
 * What a run counts. Each worker counts for itself; when all have ended, the tallies are added up.
 *
 * Threads: one at a time per tally.
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

/* What workers do again, most of it because of each other. */
struct retries {
    uint64_t refused; /* ensures that were refused after room had been made: someone else took it */
    uint64_t gone;    /* values that another worker dropped between ensure and borrowing */
    uint64_t in_use;  /* victims that turned out to be in use */
    uint64_t waits;   /* times when nothing could go until another worker let something go */
    uint64_t memory;  /* refusals of the machine where the budget had room */
};

struct tally {
    uint64_t done, failed;
    uint64_t *latency_ns; /* of the done requests, in order of their ends */
    size_t latency_capacity;
    uint64_t elapsed_ns;          /* of serving, by the machine's clock */
    uint64_t queued, queued_ns;   /* requests that waited for admission, and how long */
    uint64_t stall_ns;            /* waiting for values to become resident, and for room */
    uint64_t drop_ns[TIER_COUNT]; /* in drops: of evictions (mostly part of the stall), retired */
    struct traffic paths[PATH_COUNT];
    uint64_t key_bytes[PATH_COUNT];       /* those of keys */
    struct traffic evictions[TIER_COUNT]; /* made to get room */
    uint64_t key_evictions[TIER_COUNT];   /* those of keys */
    struct traffic retired;               /* plaintexts dropped after their last reader */
    uint64_t hits, misses;                /* of keys and plaintexts on the device */
    uint64_t joined;                      /* ensures that another worker's load made no-ops */
    struct retries retries;
    uint64_t verified;    /* borrowed values whose bytes were right */
    uint64_t corruptions; /* those whose bytes were wrong */
};

const char *path_name(enum path path);
const char *tier_name(enum tier tier);
void tally_add_latency(struct tally *tally, uint64_t ns);
/** Adds what a worker counted; the longer of the two elapsed times stays. */
void tally_add(struct tally *sum, const struct tally *part);
void tally_fini(struct tally *tally);

#endif
