/* SPDX-License-Identifier: MIT */
/*
 * The pool of workers: who starts when, which request is whose, and who is admitted.
 *
 * Requests are numbered; they go round the tenants, then round the programs. A worker that is free
 * is given the next one when that is admitted: when what all running requests need at once (live
 * ciphertexts, workspace, and what one operation of each reads) fits into the device budget. Until
 * then it queues. Requests are admitted in order, so none is overtaken.
 *
 * Threads: workers and the thread that waits for them, under the lock.
 */
#ifndef TENURE_POOL_H
#define TENURE_POOL_H

#include "server.h"

struct pool {
    struct server *server;
    uint64_t began_ns;      /* by the machine's clock */
    pthread_mutex_t mutex;  /* guards everything below */
    pthread_cond_t changed; /* something below has changed; on CLOCK_MONOTONIC */
    uint64_t next;          /* number of the request that is admitted next */
    uint64_t running, running_bytes, most_running;
    uint64_t done;    /* requests, for the progress line */
    uint64_t at_work; /* workers that have not ended */
    bool ended;       /* nothing is admitted any more */
};

#endif
