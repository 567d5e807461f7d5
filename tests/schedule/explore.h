/* SPDX-License-Identifier: MIT */
/*
 * Schedule exploration: programs of a few threads over the real code, one thread at a time, each
 * step chosen.
 *
 * The library is built with TN_SCHEDULE=1 (src/base/schedule.h): every atomic, lock, condition,
 * semaphore, section, grace period and queue operation of ours is a *point*, where the scheduler
 * decides who goes on and which waiting stores become visible. Threads are real ones, for
 * thread-local storage and thread exit; a thread runs only while it is the current one.
 *
 * A schedule runs in a forked child: the same seed meets the same memory, so that a schedule is
 * repeated by its seed alone, and what it breaks is gone with it.
 *
 *     static void body(void) {                          the main thread of the schedule
 *         world_begin(...);                             alone, not explored
 *         sched_run(threads, count);                    explored
 *         world_end();                                  alone; checks
 *     }
 *     static void acquire_discard(void **state) { sched_explore("acquire_discard", body, 10, NULL, 0); }
 *
 * A schedule fails by a check (SCHED_CHECK), an abort or a fault, a deadlock, or more than
 * SCHED_STEPS steps.
 */
#ifndef EXPLORE_H
#define EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "tenure/status.h"

#define SCHED_THREADS 8     /* at once, with the main one and the reaper */
#define SCHED_STEPS 200000u /* points of a schedule */

/* ---- Exploring (test thread) ---- */

/* Explore: `weight` is a share of 2960 in TN_SCHEDULES (20000 by default). First come the schedules
 * `known`, which failed once. Prints a line of what was run; fails the CMocka test with the text and the
 * replay line of the first failed schedule. */
void sched_explore(const char *name, void (*body)(void), unsigned weight, const uint64_t *known,
                   size_t known_count);

/* Fails if one of these branches was not reached by any schedule explored so far; skips if they were
 * fewer than a run of all scenarios has. */

void sched_reached(const enum tn__branch *must, size_t count);

/* What became of one schedule; for tests of the explorer itself. */
typedef struct sched_outcome {
    bool failed;
    char text[256];
    uint64_t steps, hash; /* hash: of all decisions */
    uint64_t value;       /* sched_value() */
} sched_outcome;
void sched_once(void (*body)(void), uint64_t seed, sched_outcome *out);

/* ---- Inside a schedule ---- */

typedef struct sched_thread {
    const char *name;
    void (*run)(void *argument);
    void *argument;
} sched_thread;

/* Run the threads to their end (their thread-exit handlers included), exploring. */
void sched_run(const sched_thread *threads, size_t count);
/* Before the world begins: membarrier cannot be had, so light fences are real ones. */
void sched_without_membarrier(void);
/* Let all other threads go on until each waits for something that only this one can do. */
void sched_settle(void);
/* A point of a scenario's own: another thread may go on here. */
void sched_point(void);
/* The same, in a loop that waits for another thread. */
void sched_pause_here(void);
/* A number below n: part of the schedule's program, from its seed. */
uint32_t sched_choose(uint32_t n);
/* The schedule has failed: never returns. */
void sched_fail(const char *file, int line, const char *format, ...)
    __attribute__((noreturn, format(printf, 3, 4)));
/* A number for sched_outcome. */
void sched_value(uint64_t value);

#define SCHED_CHECK(condition)                                                                     \
    ((condition) ? (void)0 : sched_fail(__FILE__, __LINE__, "not true: %s", #condition))
#define SCHED_EQUAL(a, b)                                                                          \
    do {                                                                                           \
        uint64_t sched_a_ = (uint64_t)(a), sched_b_ = (uint64_t)(b);                               \
        if (sched_a_ != sched_b_)                                                                  \
            sched_fail(__FILE__, __LINE__, "%s is %llu, %s is %llu", #a,                           \
                       (unsigned long long)sched_a_, #b, (unsigned long long)sched_b_);            \
    } while (0)
#define SCHED_OK(expr)                                                                             \
    do {                                                                                           \
        tn_status sched_s_ = (expr);                                                               \
        if (sched_s_ != TN_OK)                                                                     \
            sched_fail(__FILE__, __LINE__, "%s is %s", #expr, tn_status_name(sched_s_));           \
    } while (0)

#endif
