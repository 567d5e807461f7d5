/* SPDX-License-Identifier: MIT */
/*
 * The reaper thread: asleep while nothing is pending, then polling with bounded back-off. Its
 * loop only goes around a step.
 *
 * No lost wake-up:                         releasing thread             reaper
 *   1. push to the queue (full barrier)    1                            a. asleep = 1 (seq_cst)
 *   2. swap asleep to 0 (seq_cst)          2                            b. look at the queue:
 *      empty -> sleep
 *   if 2 comes before a, then 1 comes before b: the reaper finds the record; if after, 2 finds 1
 *   and posts.
 */
#include <errno.h>
#include <signal.h>
#include <time.h>

#include "lifetime/lifetime_priv.h"

#define BACKOFF_MIN_NS 20000u
#define BACKOFF_MAX_NS 1000000u

void tn__life_wake(tn__life *life) {
    /* [sleep] seq_cst. Pairs: the store in go_to_sleep(). Orders: the push -> the look at the
     * flag, here; the flag -> the look at the queue, there; acquire and release cannot order a
     * store before a load. Without: both look too early, and a pending lease waits for ever. */
    if (!life->manual && tn__swap_sc(&life->asleep, 0))
        sem_post(&life->wake);
}

/* [no-order] only the reaper's end hangs on it */
static bool stopping(tn__life *life) { return tn__load_rlx(&life->stop) != 0; }

static bool work(tn__life *life) {
    return tn__load_rlx(&life->waiting_some) || !tn__queue_empty(&life->queue) ||
           tn__store_has_garbage(life->store) || tn__load_rlx(&life->garbage);
}

static void go_to_sleep(tn__life *life) {
    tn__store_rlx(&life->asleep, 1); /* [no-order] but for the fence */
    /* [sleep] seq_cst fence: the flag -> the looks below, which are no seq_cst loads themselves, so
     * that the store alone cannot order them. */
    tn__fence_sc();
    /* [no-order] not asleep after all, unless somebody has posted already: that it is one step is all */
    if ((work(life) || stopping(life)) && tn__swap_rlx(&life->asleep, 0))
        return;
    while (sem_wait(&life->wake) != 0 && errno == EINTR)
        continue;
}

static void back_off(uint64_t ns) {
    struct timespec pause = {0, (long)ns};
    nanosleep(&pause, NULL);
}

/* A step, unless a callback guard is up: then the manager is skipped. A query that keeps failing
 * is told once. */
static uint64_t step(tn__life *life, bool *told) {
    uint64_t completed = 0, freed = 0;
    /* [no-order] a guard that goes up now may meet a step under way as well */
    if (tn__load_rlx(&life->gate->word) == TN__MANAGER_GUARDED)
        return 0;
    tn_location none = {TN_LOCATION_NONE, 0};
    tn_status status = tn__life_reap(life, &completed);
    if (status != TN_OK && !*told)
        tn__life_warn(life, TN_DIAGNOSTIC_REAPER, status, none, "an event could not be queried");
    *told = status != TN_OK;
    status = tn__life_collect(life, &freed);
    if (status == TN_OK)
        status = tn__store_collect(life->store, &freed);
    TN_ASSERT(status == TN_OK); /* this thread is in no section of the host program's */
    return completed;
}

static void *run(void *argument) {
    tn__life *life = argument;
    uint64_t pause = BACKOFF_MIN_NS;
    bool told = false;
    while (!stopping(life)) {
        if (step(life, &told)) {
            pause = BACKOFF_MIN_NS;
        } else if (work(life)) { /* not done yet, or a guard or another thread forbids it */
            back_off(pause);
            pause = pause * 2 < BACKOFF_MAX_NS ? pause * 2 : BACKOFF_MAX_NS;
        } else {
            pause = BACKOFF_MIN_NS;
            go_to_sleep(life);
        }
    }
    return NULL;
}

tn_status tn__reaper_start(tn__life *life) {
    if (life->manual)
        return TN_OK;
    sigset_t all, before; /* the host's signal handlers do not run here */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&life->reaper, NULL, run, life);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        tn_error *e = tn__error(TN_ERR_SYSTEM, "the reaper thread cannot be created");
        e->native_code = rc;
        return TN_ERR_SYSTEM;
    }
    life->reaper_started = true;
    return TN_OK;
}

void tn__reaper_stop(tn__life *life) {
    if (!life->reaper_started)
        return;
    /* [no-order] the post wakes it, and the join orders its end */
    tn__store_rlx(&life->stop, 1);
    sem_post(&life->wake);
    pthread_join(life->reaper, NULL);
    life->reaper_started = false;
}
