/* SPDX-License-Identifier: MIT */
/*
 * What all requests of a run share, and the workers that serve them.
 *
 * Threads: set up and ended by one thread; what workers change says how.
 */
#ifndef TENURE_SERVER_H
#define TENURE_SERVER_H

#include "catalogue.h"
#include "control.h"
#include "device.h"
#include "inject.h"
#include "machine.h"
#include "placement.h"
#include "program.h"
#include "serve_options.h"
#include "tally.h"
#include "verify.h"

struct pool;
struct server;

/* A thread that serves one request at a time. */
struct worker {
    struct server *server;
    struct pool *pool;
    uint64_t index;
    tn_stream stream;             /* its own; it waits for it after each operation */
    struct device_worker *device; /* NULL: the host computes */
    pthread_t thread;
    struct placer placer;
    struct tally tally; /* what it counts; others read it when the thread has ended */
};

struct server {
    struct serve_options options;
    struct program **programs;
    size_t program_count;
    struct machine machine;
    struct device *device; /* the evaluator there; NULL: the host computes */
    struct catalogue catalogue;
    tn_manager *manager;
    uint64_t budget_bytes[TIER_COUNT]; /* UINT64_MAX: unlimited */
    struct placement placement;
    struct control control; /* of --control lru */
    bool has_control;
    bool reaps_by_hand;       /* the manager has no thread for it */
    struct decision_log *log; /* NULL: none */
    struct inject inject;
    struct verifier *verifier; /* owned by the caller of server_run() */
    struct worker *workers;    /* options.workers of them, when they have ended */
    struct tally tally;        /* the sum of theirs */
    uint64_t most_running;     /* requests at once */
};

/**
 * Loads the workloads, judges the budgets, opens the machine, makes the files, creates the manager.
 *
 * @param server  all zero but for its options.
 * @return EXIT_GOOD; else an exit code, after an error line. Either way end with server_close().
 */
int server_open(struct server *server);
/** Serves all requests, or those until SIGINT. Returns false after an error line. (pool.c) */
bool server_run(struct server *server);
/** Closes everything; false after an error line if something was left behind. */
bool server_close(struct server *server);

/** From now on SIGINT asks for the end; a second one ends the program at once. */
void server_catch_interrupt(void);
/** Whether the user wants the program to end: set by SIGINT. Threads: any. */
bool server_is_stopped(void);

/** Reports what went wrong with a request; only the first few of a run are shown. Threads: any. */
void server_show_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
