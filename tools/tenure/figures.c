/* SPDX-License-Identifier: MIT */
#include "figures.h"

#include "base.h"

#include <stdlib.h>

static int compare_ns(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

static void find_latencies(struct figures *figures, const struct tally *tally) {
    size_t count = (size_t)tally->done;
    uint64_t *sorted = memory_new(count, sizeof *sorted);

    if (count > 0) {
        for (size_t i = 0; i < count; i++) {
            sorted[i] = tally->requests[i].ns;
        }
        qsort(sorted, count, sizeof *sorted, compare_ns);
        figures->median_ns = sorted[(count - 1) / 2];
        figures->most_ns = sorted[count - 1];
    }
    if (tally->elapsed_ns > 0) {
        figures->requests_per_s = (double)tally->done * 1e9 / (double)tally->elapsed_ns;
    }
    free(sorted);
}

static bool read_locations(struct figures *figures, const struct server *server) {
    tn_location_info info[8] = {{.size = sizeof info[0]}};
    size_t count = sizeof info / sizeof info[0];
    tn_snapshot *snapshot = NULL;
    tn_status status = tn_snapshot_take(server->manager, &snapshot);

    if (status == TN_OK) {
        status = tn_snapshot_locations(snapshot, info, &count);
        tn_snapshot_drop(snapshot);
    }
    if (status != TN_OK) {
        char *text = status_text(status);

        complain("the manager's figures cannot be read: %s", text);
        free(text);
        return false;
    }
    for (size_t i = 0; i < count && i < sizeof info / sizeof info[0]; i++) {
        for (int tier = 0; tier < TIER_COUNT; tier++) {
            struct tier_figures *into = &figures->tiers[tier];

            if (tn_location_equal(info[i].at, server->placement.at[tier])) {
                into->known = true;
                into->peak_used_bytes = info[i].peak_used_bytes;
                into->peak_charged_bytes = info[i].peak_charged_bytes;
            }
        }
    }
    return true;
}

/* What went over the link, from both kinds of host memory to the device, or the other way. */
static tn_sim_traffic read_link(const struct server *server, bool to_device) {
    const tn_location hosts[] = {tn_location_pinned(), tn_location_pageable()};
    tn_location device = server->machine.at;
    tn_sim_traffic sum = {.size = sizeof sum};

    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        tn_sim_traffic traffic = {.size = sizeof traffic};

        if (tn_sim_read_traffic(server->machine.sim, to_device ? hosts[i] : device,
                                to_device ? device : hosts[i], &traffic) == TN_OK) {
            sum.copies += traffic.copies;
            sum.bytes += traffic.bytes;
            sum.busy_ns += traffic.busy_ns;
        }
    }
    return sum;
}

static void read_machine(struct figures *figures, const struct server *server) {
    tn_sim_traffic to_device = read_link(server, true);
    tn_sim_traffic to_host = read_link(server, false);
    double elapsed = (double)server->tally.elapsed_ns;
    tn_pinned_figures pinned = TN_PINNED_FIGURES_INIT;

    for (int tier = 0; tier < TIER_COUNT; tier++) {
        tn_sim_memory memory = {.size = sizeof memory};

        if (tn_sim_read_memory(server->machine.sim, server->placement.at[tier], &memory) == TN_OK) {
            figures->tiers[tier].machine_peak_bytes = memory.peak_bytes;
            figures->tiers[tier].machine_held_bytes = memory.peak_bytes;
        }
    }
    if (tn_driver_read_pinned(server->machine.driver, &pinned) == TN_OK) {
        figures->tiers[TIER_PINNED].machine_peak_bytes = pinned.peak_live_bytes;
    }
    figures->link_device_bytes = to_device.bytes;
    figures->link_host_bytes = to_host.bytes;
    if (elapsed > 0) {
        figures->link_to_device = (double)to_device.busy_ns / elapsed;
        figures->link_to_host = (double)to_host.busy_ns / elapsed;
    }
    figures->violations = tn_sim_violations(server->machine.sim);
    figures->violation = text_copy(tn_sim_violation_text(server->machine.sim));
}

bool figures_collect(struct figures *figures, const struct server *server) {
    *figures = (struct figures){.server = server};
    find_latencies(figures, &server->tally);
    if (!read_locations(figures, server)) {
        return false;
    }
    if (server->machine.sim != NULL) {
        read_machine(figures, server);
    }
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        struct tier_figures *into = &figures->tiers[tier];

        into->budget_bytes = server->budget_bytes[tier];
        into->within =
            into->machine_peak_bytes <= into->budget_bytes &&
            into->peak_charged_bytes <= into->budget_bytes &&
            (server->options.workers > 1 || into->machine_peak_bytes <= into->peak_charged_bytes);
    }
    return true;
}

void figures_fini(struct figures *figures) {
    free(figures->violation);
    figures->violation = NULL;
}

uint64_t figures_corruptions(const struct figures *figures) {
    return figures->server->tally.corruptions + figures->verdict.compared - figures->verdict.equal;
}

int figures_verdict(const struct figures *figures) {
    const struct tally *tally = &figures->server->tally;
    bool good = tally->failed == 0 && figures_corruptions(figures) == 0 && figures->violations == 0;

    for (int tier = 0; tier < TIER_COUNT; tier++) {
        good = good && figures->tiers[tier].within;
    }
    if (!good) {
        return EXIT_FAILED;
    }
    return figures->interrupted ? EXIT_INTERRUPTED : EXIT_GOOD;
}
