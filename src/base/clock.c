/* SPDX-License-Identifier: MIT */
#include <sched.h>
#include <time.h>

#include "base/base_internal.h"

static uint64_t read_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t tn__unix_ns(void) { return read_clock(CLOCK_REALTIME); }

uint64_t tn__mono_ns(void) { return read_clock(CLOCK_MONOTONIC) + 1; }

void tn__pause_once(tn__pause *pause) {
    static const struct timespec nap = {0, 50000};
    if (pause->count++ < 100)
        sched_yield();
    else
        nanosleep(&nap, NULL);
}
