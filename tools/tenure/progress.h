/* SPDX-License-Identifier: MIT */
/*
 * On a terminal, one line on standard error: how far the run is and how full the tiers are.
 *
 * Threads: the one that waits for the workers.
 */
#ifndef TENURE_PROGRESS_H
#define TENURE_PROGRESS_H

#include "server.h"

struct progress {
    uint64_t shown_at_ms; /* 0: nothing has been shown */
};

/** Shows it, a few times a second at most. */
void progress_show(struct progress *progress, const struct server *server, uint64_t done);
/** Wipes it. */
void progress_end(struct progress *progress);

#endif
