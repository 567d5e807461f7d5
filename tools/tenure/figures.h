/* SPDX-License-Identifier: MIT */
/*
 * The result of a run: what the tally, the manager and the machine say, side by side; as a table
 * and as JSON.
 *
 * Threads: one at a time, when nothing runs any more.
 */
#ifndef TENURE_FIGURES_H
#define TENURE_FIGURES_H

#include "server.h"
#include "verify.h"

/* One tier, by three witnesses. */
struct tier_figures {
    bool known;                                   /* the manager tracks it */
    uint64_t budget_bytes;                        /* UINT64_MAX: unlimited */
    uint64_t peak_used_bytes, peak_charged_bytes; /* the manager's */
    /* the device's: the simulator's own; pinned: blocks in use, of the driver's pool */
    uint64_t machine_peak_bytes;
    uint64_t
        machine_held_bytes; /* the simulator's own peak: what is kept for later and rings, too */
    /* Both peaks are within the budget. With one worker the machine's is also within the charged
     * one; with several, memory that is claimed but not charged yet may be at its peak. */
    bool within;
};

struct figures {
    const struct server *server;
    uint64_t median_ns, most_ns;
    double requests_per_s;
    double link_to_device, link_to_host;         /* share of the time that the link was busy */
    uint64_t link_device_bytes, link_host_bytes; /* the simulator's own */
    struct tier_figures tiers[TIER_COUNT];
    uint64_t violations; /* the simulator's */
    char *violation;     /* the first, in words; owned */
    struct verdict verdict;
    bool interrupted;
};

/** Reads the manager's and the machine's figures; the manager must be open. False after an error
 * line. */
bool figures_collect(struct figures *figures, const struct server *server);
void figures_fini(struct figures *figures);

/** Values with wrong bytes, and requests with wrong digests. */
uint64_t figures_corruptions(const struct figures *figures);

/** EXIT_GOOD if everything was right, else EXIT_FAILED or EXIT_INTERRUPTED. */
int figures_verdict(const struct figures *figures);

void figures_print(const struct figures *figures);
void figures_print_json(const struct figures *figures);

#endif
