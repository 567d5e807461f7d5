/* SPDX-License-Identifier: MIT */
#include "tally.h"

#include "base.h"

#include <stdlib.h>

const char *path_name(enum path path) {
    static const char *const names[PATH_COUNT] = {
        "file -> pinned", "pinned -> device", "file -> device", "host -> device", "device -> host"};

    return names[path];
}

const char *tier_name(enum tier tier) { return tier == TIER_PINNED ? "pinned" : "device"; }

void tally_add_done(struct tally *tally, struct done done) {
    tally->requests = memory_reserve(tally->requests, &tally->request_capacity,
                                     (size_t)tally->done + 1, sizeof *tally->requests);
    tally->requests[tally->done++] = done;
}

static void add_traffic(struct traffic *sum, const struct traffic *part) {
    sum->count += part->count;
    sum->bytes += part->bytes;
}

static void add_decisions(struct decisions *sum, const struct decisions *part) {
    sum->entered += part->entered;
    sum->hits += part->hits;
    sum->decided += part->decided;
    sum->again += part->again;
    sum->stale += part->stale;
    sum->unpinned += part->unpinned;
    sum->explored += part->explored;
    if (part->most_explored > sum->most_explored) {
        sum->most_explored = part->most_explored;
    }
    for (int i = 0; i < REASON_COUNT; i++) {
        sum->reasons[i] += part->reasons[i];
    }
}

void tally_add(struct tally *sum, const struct tally *part) {
    for (uint64_t i = 0; i < part->done; i++) {
        tally_add_done(sum, part->requests[i]); /* counts `done` */
    }
    sum->failed += part->failed;
    sum->elapsed_ns = part->elapsed_ns > sum->elapsed_ns ? part->elapsed_ns : sum->elapsed_ns;
    sum->queued += part->queued;
    sum->queued_ns += part->queued_ns;
    sum->stall_ns += part->stall_ns;
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        sum->drop_ns[tier] += part->drop_ns[tier];
        add_traffic(&sum->evictions[tier], &part->evictions[tier]);
        sum->key_evictions[tier] += part->key_evictions[tier];
    }
    for (int path = 0; path < PATH_COUNT; path++) {
        add_traffic(&sum->paths[path], &part->paths[path]);
        sum->key_bytes[path] += part->key_bytes[path];
    }
    add_traffic(&sum->retired, &part->retired);
    sum->hits += part->hits;
    sum->misses += part->misses;
    sum->joined += part->joined;
    sum->key_loads += part->key_loads;
    add_decisions(&sum->decisions, &part->decisions);
    sum->retries.refused += part->retries.refused;
    sum->retries.gone += part->retries.gone;
    sum->retries.in_use += part->retries.in_use;
    sum->retries.waits += part->retries.waits;
    sum->retries.memory += part->retries.memory;
    sum->verified += part->verified;
    sum->corruptions += part->corruptions;
}

void tally_fini(struct tally *tally) {
    free(tally->requests);
    tally->requests = NULL;
}
