/* SPDX-License-Identifier: MIT */
#include "progress.h"

#include "base.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { INTERVAL_MS = 200 };

static uint64_t wall_ms(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void show_tier(const tn_location_info *info) {
    double filled = (double)(info->used_bytes + info->reserved_bytes) / MIB;
    char name[TN_LOCATION_NAME_MAX] = "";

    if (info->at.kind == TN_LOCATION_PAGEABLE ||
        tn_location_name(info->at, name, sizeof name) != TN_OK) {
        return; /* values only pass through pageable memory */
    }
    if (info->has_budget) {
        fprintf(stderr, "  %s %.0f of %.0f MiB", name, filled, (double)info->budget_bytes / MIB);
    } else {
        fprintf(stderr, "  %s %.0f MiB", name, filled);
    }
}

static void show_occupancy(const struct server *server) {
    tn_location_info info[8] = {{.size = sizeof info[0]}};
    size_t count = sizeof info / sizeof info[0];
    tn_snapshot *snapshot = NULL;

    if (tn_snapshot_take(server->manager, &snapshot) != TN_OK) {
        return;
    }
    if (tn_snapshot_locations(snapshot, info, &count) == TN_OK) {
        for (size_t i = 0; i < count && i < sizeof info / sizeof info[0]; i++) {
            show_tier(&info[i]);
        }
    }
    tn_snapshot_drop(snapshot);
}

void progress_show(struct progress *progress, const struct server *server, uint64_t done) {
    uint64_t now_ms = 0;

    if (server->options.json || !isatty(STDERR_FILENO)) {
        return;
    }
    now_ms = wall_ms();
    if (now_ms - progress->shown_at_ms < INTERVAL_MS) {
        return;
    }
    progress->shown_at_ms = now_ms;
    fprintf(stderr, "\r\033[K%" PRIu64 " of %" PRIu64 " requests", done, server->options.requests);
    show_occupancy(server);
}

void progress_end(struct progress *progress) {
    if (progress->shown_at_ms != 0) {
        fprintf(stderr, "\r\033[K");
    }
}
