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

void tally_add_latency(struct tally *tally, uint64_t ns) {
    tally->latency_ns = memory_reserve(tally->latency_ns, &tally->latency_capacity,
                                       (size_t)tally->done + 1, sizeof *tally->latency_ns);
    tally->latency_ns[tally->done++] = ns;
}

static void add_traffic(struct traffic *sum, const struct traffic *part) {
    sum->count += part->count;
    sum->bytes += part->bytes;
}

void tally_add(struct tally *sum, const struct tally *part) {
    for (uint64_t i = 0; i < part->done; i++) {
        tally_add_latency(sum, part->latency_ns[i]); /* counts `done` */
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
    sum->retries.refused += part->retries.refused;
    sum->retries.gone += part->retries.gone;
    sum->retries.in_use += part->retries.in_use;
    sum->retries.waits += part->retries.waits;
    sum->retries.memory += part->retries.memory;
    sum->verified += part->verified;
    sum->corruptions += part->corruptions;
}

void tally_fini(struct tally *tally) {
    free(tally->latency_ns);
    tally->latency_ns = NULL;
}
