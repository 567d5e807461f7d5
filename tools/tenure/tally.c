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

void tally_fini(struct tally *tally) {
    free(tally->latency_ns);
    tally->latency_ns = NULL;
}
