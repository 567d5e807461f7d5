/* SPDX-License-Identifier: MIT */
/*
 * Who goes on. A schedule is a number: its lowest two bits name the strategy.
 *
 * ONE        one preemption, numbered through: every place, every first thread, every target; so a
 *            long run tries them all. Stores become visible as late as they may.
 * BOUNDED    no to three preemptions at random places, otherwise a thread goes on until it waits.
 * PRIORITY   the runnable thread of the highest random priority; at up to four random places the
 *            current one becomes the lowest.
 * RANDOM     any thread, once in so many points.
 */
#include <stdlib.h>
#include <string.h>

#include "sched_priv.h"

uint64_t sched_random(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void plan_one(schedule *s, uint64_t number, uint64_t points, size_t threads) {
    uint64_t others = threads > 1 ? threads - 1 : 1;
    s->change_count = 1;
    s->target = (uint32_t)(number % others);
    number /= others;
    s->first = (uint32_t)(number % threads);
    number /= threads;
    s->changes[0] = 1 + number % points;
    s->program = number / points;
    s->membarrier = true;
    s->buffered = !s->weak;
}

void sched_plan(schedule *s, uint64_t seed, uint64_t points, size_t threads) {
    static const uint32_t switches[] = {2, 4, 16, 64};
    static const uint32_t flushes[] = {0, 2, 8, 32};
    memset(s, 0, sizeof *s);
    s->weak = sched_weak_wanted();
    s->strategy = (enum strategy)(seed % STRATEGY_COUNT);
    s->random = seed;
    points = points ? points : 1;
    if (s->strategy == STRATEGY_ONE) {
        plan_one(s, seed / STRATEGY_COUNT, points, threads);
        return;
    }
    s->program = sched_random(&s->random);
    s->membarrier = sched_below(&s->random, 8) != 0;
    s->buffered = sched_below(&s->random, 4) != 0 && !s->weak;
    s->flush_in = flushes[sched_below(&s->random, 4)];
    s->switch_in = switches[sched_below(&s->random, 4)];
    s->first = sched_below(&s->random, (uint32_t)threads);
    if (s->strategy == STRATEGY_RANDOM)
        return;
    s->change_count = sched_below(&s->random, CHANGES_MAX);
    s->change_count += s->strategy == STRATEGY_PRIORITY; /* else none to three */
    for (uint32_t i = 0; i < s->change_count; i++)
        s->changes[i] = 1 + sched_random(&s->random) % points;
    qsort(s->changes, s->change_count, sizeof s->changes[0], ascending);
}

bool sched_runnable(const fiber *f) {
    return f->state == FIBER_READY ||
           (f->state == FIBER_PAUSED && sched_state.steps >= f->paused_until);
}

static size_t collect(fiber **out, const fiber *without) {
    size_t n = 0;
    for (size_t i = 0; i < sched_state.fiber_count; i++)
        if (&sched_state.fibers[i] != without && sched_runnable(&sched_state.fibers[i]))
            out[n++] = &sched_state.fibers[i];
    return n;
}

/* Nobody can go on by itself: a wait loop looks again, then a time is over. */
static fiber *last_resort(void) {
    fiber *least = NULL, *timed = NULL;
    sched_drain_all();
    for (size_t i = 0; i < sched_state.fiber_count; i++) {
        fiber *f = &sched_state.fibers[i];
        if (f->state == FIBER_PAUSED && (!least || f->paused_until < least->paused_until))
            least = f;
        if (f->state == FIBER_TIMED && !timed)
            timed = f;
    }
    if (least)
        return least;
    if (timed)
        timed->timed_out = true;
    return timed;
}

static fiber *highest(fiber *const *from, size_t n) {
    fiber *best = from[0];
    for (size_t i = 1; i < n; i++)
        if (from[i]->priority > best->priority)
            best = from[i];
    return best;
}

/* The next one in a circle, from the current one on. */
static fiber *around(fiber *const *from, size_t n, uint32_t skip) {
    size_t i = 0;
    while (i < n && from[i] <= sched_state.current)
        i++;
    return from[(i + skip) % n];
}

/* The current one cannot go on, or must not. */
static fiber *other(fiber *const *from, size_t n) {
    schedule *s = &sched_state.plan;
    if (!sched_state.exploring)
        return from[0];
    switch (s->strategy) {
    case STRATEGY_ONE:
        return around(from, n, sched_state.explored == 0 ? s->first : 0);
    case STRATEGY_PRIORITY:
        return highest(from, n);
    default:
        return from[sched_below(&s->random, (uint32_t)n)];
    }
}

/* Whether this point is one of the plan's changes. */
static bool change_due(schedule *s) {
    for (uint32_t i = 0; i < s->change_count; i++)
        if (s->changes[i] == sched_state.explored)
            return true;
    return false;
}

static fiber *at_point(void) {
    schedule *s = &sched_state.plan;
    fiber *current = sched_state.current;
    fiber *from[SCHED_THREADS] = {NULL};
    if (s->strategy == STRATEGY_RANDOM) {
        if (sched_below(&s->random, s->switch_in) != 0)
            return current;
        return from[sched_below(&s->random, (uint32_t)collect(from, NULL))];
    }
    bool change = change_due(s);
    if (s->strategy == STRATEGY_PRIORITY) {
        if (change)
            current->priority = CHANGES_MAX * 2 - s->change_count--;
        return highest(from, collect(from, NULL));
    }
    if (!change)
        return current;
    size_t n = collect(from, current);
    if (n == 0)
        return current;
    return s->strategy == STRATEGY_ONE ? around(from, n, s->target) : other(from, n);
}

fiber *sched_next(bool stay) {
    fiber *from[SCHED_THREADS] = {NULL};
    if (stay)
        return at_point();
    size_t n = collect(from, NULL);
    return n ? other(from, n) : last_resort();
}
