/* SPDX-License-Identifier: MIT */
/*
 * What all requests of a run share.
 *
 * Threads: one at a time (there is one worker).
 */
#ifndef TENURE_SERVER_H
#define TENURE_SERVER_H

#include "catalogue.h"
#include "inject.h"
#include "machine.h"
#include "placement.h"
#include "program.h"
#include "serve_options.h"
#include "tally.h"
#include "verify.h"

struct server {
    struct serve_options options;
    struct program **programs;
    size_t program_count;
    struct machine machine;
    struct catalogue catalogue;
    tn_manager *manager;
    uint64_t budget_bytes[TIER_COUNT]; /* UINT64_MAX: unlimited */
    struct placement placement;
    struct inject inject;
    struct tally tally;
    struct verifier *verifier; /* owned by the caller of server_run() */
    uint64_t shown_at_ms;      /* when progress was shown last */
};

/**
 * Loads the workloads, judges the budgets, opens the machine, makes the files, creates the manager.
 *
 * @param server  all zero but for its options.
 * @return EXIT_GOOD; else an exit code, after an error line. Either way end with server_close().
 */
int server_open(struct server *server);
/** Serves all requests, or those until SIGINT. Returns false after an error line. */
bool server_run(struct server *server);
/** Closes everything; false after an error line if something was left behind. */
bool server_close(struct server *server);

/** Shows on a terminal how far the run is and how full the tiers are, a few times a second. */
void server_show_progress(struct server *server);

/** From now on SIGINT asks for the end; a second one ends the program at once. */
void server_catch_interrupt(void);
/** Whether the user wants the program to end: set by SIGINT. */
bool server_is_stopped(void);

/** Reports what went wrong with a request; only the first few of a run are shown. */
void server_show_error(struct server *server, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
