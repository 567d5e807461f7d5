/* SPDX-License-Identifier: MIT */
/*
 * The command line of `tenure serve`.
 */
#ifndef TENURE_SERVE_OPTIONS_H
#define TENURE_SERVE_OPTIONS_H

#include "options.h"

#include <stddef.h>

enum injection { INJECT_NONE, INJECT_FLIP, INJECT_SWAP, INJECT_EARLY_FREE, INJECT_TORN_COPY };

struct serve_options {
    char **workloads; /* borrowed from argv */
    size_t workload_count;
    uint64_t tenants, workers, requests, seed, latency_ns;
    uint64_t stagger_ns;     /* worker i starts i times this late */
    double link_bytes_per_s; /* before scaling */
    struct scale scale;
    struct budget device_budget, pinned_budget;
    const char *machine; /* NULL: made from link, latency, clock and the device budget */
    const char *device, *cache;
    const char *decision_log; /* NULL: none */
    enum control_kind control;
    enum injection inject;
    bool only_keys;
    bool virtual_time, json;
};

/**
 * @return EXIT_GOOD; EXIT_USAGE after an error line; or -1: --help has been printed.
 */
int serve_options_read(struct serve_options *options, int argc, char **argv);

#endif
