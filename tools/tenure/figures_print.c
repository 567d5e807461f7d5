/* SPDX-License-Identifier: MIT */
#include "account.h"
#include "base.h"
#include "figures.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static double per_request(const struct figures *figures, uint64_t amount) {
    uint64_t done = figures->server->tally.done;

    return done == 0 ? 0 : (double)amount / (double)done;
}

static void print_head(const struct figures *figures) {
    const struct server *server = figures->server;
    const struct serve_options *options = &server->options;

    printf("tenure serve, scale %" PRIu64 "/%" PRIu64 ", %" PRIu64 " tenant%s, %" PRIu64
           " worker%s, %s time, seed %" PRIu64 "\n",
           options->scale.over, options->scale.under, options->tenants,
           options->tenants == 1 ? "" : "s", options->workers, options->workers == 1 ? "" : "s",
           server->machine.virtual_time ? "virtual" : "real", options->seed);
    if (server->machine.sim == NULL) {
        printf("  device               %s\n", options->device);
    }
    for (size_t i = 0; i < server->program_count; i++) {
        printf("  workload             %s\n", server->programs[i]->work->name);
    }
}

static void print_requests(const struct figures *figures) {
    const struct server *server = figures->server;
    const struct tally *tally = &server->tally;

    printf("  requests             %" PRIu64 " of %" PRIu64 " done, %" PRIu64 " failed%s\n",
           tally->done, server->options.requests, tally->failed,
           figures->interrupted ? ", interrupted" : "");
    printf("  throughput           %.3f requests/s over %.3f s\n", figures->requests_per_s,
           (double)tally->elapsed_ns / 1e9);
    printf("  latency              p50 %.3f ms, max %.3f ms\n", (double)figures->median_ns / 1e6,
           (double)figures->most_ns / 1e6);
    printf("  admission            at most %" PRIu64 " at once, %" PRIu64
           " queued for %.3f s in all\n",
           server->most_running, tally->queued, (double)tally->queued_ns / 1e9);
    printf("  device hits          %" PRIu64 " of %" PRIu64
           " reads of keys and plaintexts; %" PRIu64 " loads joined\n",
           tally->hits, tally->hits + tally->misses, tally->joined);
}

static void print_control(const struct figures *figures) {
    const struct server *server = figures->server;
    const struct decisions *decisions = &server->tally.decisions;

    if (!server->has_control) {
        printf("  control              explicit\n");
        return;
    }
    printf("  control              lru, policy %s\n",
           tn_policy_name(tn_controller_policy(server->control.controller)));
    printf("    uses               %" PRIu64 ", %" PRIu64 " hits, %" PRIu64 " misses\n",
           decisions->entered, decisions->hits, decisions->entered - decisions->hits);
    printf("    decisions          %" PRIu64 ", %" PRIu64 " states explored, at most %" PRIu64 "\n",
           decisions->decided, decisions->explored, decisions->most_explored);
    printf("    redecisions        %" PRIu64 "; %" PRIu64 " requests again when stale, %" PRIu64
           " without pinned memory\n",
           decisions->again, decisions->stale, decisions->unpinned);
    printf("    evictions         ");
    for (uint32_t reason = 1; reason < REASON_COUNT; reason++) {
        printf("%s %" PRIu64 " %s", reason == 1 ? "" : ",", decisions->reasons[reason],
               eviction_word(reason));
    }
    putchar('\n');
}

static void print_stall(const struct figures *figures) {
    const struct server *server = figures->server;
    const struct tally *tally = &server->tally;

    printf("  stall                %.3f s in all, %.3f ms per request\n",
           (double)tally->stall_ns / 1e9, per_request(figures, tally->stall_ns) / 1e6);
    printf("    dropping values    %.3f s pinned, %.3f s device\n",
           (double)tally->drop_ns[TIER_PINNED] / 1e9, (double)tally->drop_ns[TIER_DEVICE] / 1e9);
    for (uint64_t i = 0; server->options.workers > 1 && i < server->options.workers; i++) {
        const struct tally *its = &server->workers[i].tally;

        printf("    worker %-11" PRIu64 " %.3f s of %.3f s, %" PRIu64 " requests\n", i,
               (double)its->stall_ns / 1e9, (double)its->elapsed_ns / 1e9, its->done + its->failed);
    }
}

static void print_traffic(const struct figures *figures) {
    const struct tally *tally = &figures->server->tally;

    printf("  moved                %10s %12s %15s %15s\n", "values", "MiB", "MiB per request",
           "of it keys");
    for (int path = 0; path < PATH_COUNT; path++) {
        const struct traffic *traffic = &tally->paths[path];

        printf("    %-18s %10" PRIu64 " %12.3f %15.3f %15.3f\n", path_name((enum path)path),
               traffic->count, (double)traffic->bytes / MIB,
               per_request(figures, traffic->bytes) / MIB,
               per_request(figures, tally->key_bytes[path]) / MIB);
    }
    if (figures->server->machine.sim != NULL) {
        printf("  link busy            %.1f %% to the device, %.1f %% to the host\n",
               100 * figures->link_to_device, 100 * figures->link_to_host);
    }
    for (int tier = TIER_COUNT - 1; tier >= 0; tier--) {
        const struct traffic *evictions = &tally->evictions[tier];

        printf("  evictions, %-9s %" PRIu64 ", %.3f MiB; %" PRIu64 " of keys\n",
               tier_name((enum tier)tier), evictions->count, (double)evictions->bytes / MIB,
               tally->key_evictions[tier]);
    }
    printf("  plaintexts retired   %" PRIu64 ", %.3f MiB\n", tally->retired.count,
           (double)tally->retired.bytes / MIB);
    printf("  retries              %" PRIu64 " room taken, %" PRIu64 " value gone, %" PRIu64
           " victim in use, %" PRIu64 " waits for room, %" PRIu64 " machine short\n",
           tally->retries.refused, tally->retries.gone, tally->retries.in_use, tally->retries.waits,
           tally->retries.memory);
}

static void print_tiers(const struct figures *figures) {
    printf("  peaks, MiB           %10s %10s %10s %10s\n", "budget", "charged", "used", "machine");
    for (int tier = TIER_COUNT - 1; tier >= 0; tier--) {
        const struct tier_figures *at = &figures->tiers[tier];
        char budget[32] = "unlimited";
        char machine[32] = "-"; /* a real one does not tell */

        if (at->budget_bytes != UINT64_MAX) {
            snprintf(budget, sizeof budget, "%.3f", (double)at->budget_bytes / MIB);
        }
        if (figures->server->machine.sim != NULL) {
            snprintf(machine, sizeof machine, "%.3f", (double)at->machine_peak_bytes / MIB);
        }
        printf("    %-18s %10s %10.3f %10.3f %10s  %s\n", tier_name((enum tier)tier), budget,
               (double)at->peak_charged_bytes / MIB, (double)at->peak_used_bytes / MIB, machine,
               at->within ? "within" : "EXCEEDED");
    }
    printf("    pinned memory held %43.3f  with what is kept for later, and rings\n",
           (double)figures->tiers[TIER_PINNED].machine_held_bytes / MIB);
}

static void print_proof(const struct figures *figures) {
    const struct tally *tally = &figures->server->tally;
    const struct verdict *verdict = &figures->verdict;

    if (figures->server->machine.sim == NULL) {
        /* Nobody watches a real machine. */
    } else if (figures->violations > 0) {
        printf("  machine violations   %" PRIu64 "; the first: %s\n", figures->violations,
               figures->violation);
    } else {
        printf("  machine violations   0\n");
    }
    if (figures->server->device != NULL) {
        printf("  values verified      by the digests only\n");
    } else {
        printf("  values verified      %" PRIu64 "\n", tally->verified);
    }
    printf("  corruptions          %" PRIu64 "\n", figures_corruptions(figures));
    printf("  digests              %" PRIu64 " of %" PRIu64 " equal to the plain replay: %s\n",
           verdict->equal, verdict->compared,
           verdict->compared == 0                ? "none compared"
           : verdict->equal == verdict->compared ? "yes"
                                                 : "no");
    if (verdict->equal != verdict->compared) {
        printf("                       the first that differs: request %" PRIu64 "\n",
               verdict->first_wrong);
    }
}

void figures_print(const struct figures *figures) {
    print_head(figures);
    print_requests(figures);
    print_control(figures);
    print_stall(figures);
    print_traffic(figures);
    print_tiers(figures);
    print_proof(figures);
}
