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

enum { REASON_COUNT = 5 /* of enum tn_eviction_reason */ };

/* What the library's controller did. */
struct decisions {
    uint64_t entered;                 /* uses */
    uint64_t hits;                    /* of them, those that found everything there */
    uint64_t decided;                 /* of them, those that entered a decision */
    uint64_t again;                   /* decisions that went stale and were made again by the use */
    uint64_t stale;                   /* uses that gave up on that, and were asked for again */
    uint64_t unpinned;                /* requests that were made again without pinned memory */
    uint64_t explored, most_explored; /* states, of the decisions that were entered */
    uint64_t reasons[REASON_COUNT];   /* evictions by reason */
};

/* A request that is done. */
struct done {
    uint64_t ns;
    uint64_t key_loads; /* keys that it made resident on the device */
};

struct tally {
    uint64_t done, failed;
    struct done *requests; /* those that are done, in order of their ends */
    size_t request_capacity;
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
    uint64_t key_loads;                   /* keys made resident on the device */
    struct decisions decisions;
    struct retries retries;
    uint64_t verified;    /* borrowed values whose bytes were right */
    uint64_t corruptions; /* those whose bytes were wrong */
};

const char *path_name(enum path path);
const char *tier_name(enum tier tier);
/** One more request is done. */
void tally_add_done(struct tally *tally, struct done done);
/** Adds what a worker counted; the longer of the two elapsed times stays. */
void tally_add(struct tally *sum, const struct tally *part);
void tally_fini(struct tally *tally);

#endif
