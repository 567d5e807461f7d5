/* SPDX-License-Identifier: MIT */
/*
 * Mutexes with ranks, checked under TN_CHECKS: a thread takes locks only in ascending rank, and
 * calls drivers, callbacks, sources and payload allocation, and waits, only while it holds none
 * of rank STATE or above (tn__assert_may_wait()).
 */
#ifndef TENURE_BASE_LOCKRANK_H
#define TENURE_BASE_LOCKRANK_H

#include <pthread.h>

#include "base/base_internal.h"

/* Lowest first. */
enum tn__rank {
    TN__RANK_CONTROLLER = 2, /* a controller: policies and drivers are called under it */
    /* a manager's consumer of pending leases; drivers are called under it */
    TN__RANK_REAP = 5,
    /* the CUDA backend while it opens a device; the driver is called under it */
    TN__RANK_CUDA = 8,
    TN__RANK_SIM = 10,      /* the simulated machine: it may call nothing of ours while held */
    TN__RANK_REGISTRY = 20, /* process-wide lists: managers, free record blocks */
    TN__RANK_STATE = 30,    /* the short writer lock of a manager */
    TN__RANK_SLOTS = 40,    /* a manager's slot list while it grows; event pools */
    TN__RANK_LEAF = 50      /* nothing is taken under it */
};

typedef struct tn__mutex {
    pthread_mutex_t mutex;
    enum tn__rank rank;
} tn__mutex;

typedef struct tn__cond {
    pthread_cond_t cond;
} tn__cond;

void tn__mutex_init(tn__mutex *m, enum tn__rank rank);
void tn__mutex_fini(tn__mutex *m);
void tn__lock(tn__mutex *m);
bool tn__try_lock(tn__mutex *m);
void tn__unlock(tn__mutex *m);

void tn__cond_init(tn__cond *c);
void tn__cond_fini(tn__cond *c);
/* The only wait allowed under a lock: it gives up `m`, which must be the only one held. */
void tn__cond_wait(tn__cond *c, tn__mutex *m);
/* At most `ns` long, on the monotonic clock. False: time is over. */
bool tn__cond_wait_ns(tn__cond *c, tn__mutex *m, uint64_t ns);
void tn__cond_broadcast(tn__cond *c);

#if TN_CHECKS
void tn__assert_may_wait(const char *what); /* no lock of rank STATE or above is held */
void tn__assert_locked(const tn__mutex *m);
#else
static inline void tn__assert_may_wait(const char *what) { (void)what; }
static inline void tn__assert_locked(const tn__mutex *m) { (void)m; }
#endif

/* How often this thread took any tn__mutex (tests: a hit takes no lock). Always 0 without
 * TN_CHECKS. */
uint64_t tn__lock_count(void);

#endif
