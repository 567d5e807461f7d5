/* SPDX-License-Identifier: MIT */
#include <time.h>

#include "base/base_internal.h"

static uint64_t read_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t tn__unix_ns(void) { return read_clock(CLOCK_REALTIME); }

uint64_t tn__mono_ns(void) { return read_clock(CLOCK_MONOTONIC) + 1; }
