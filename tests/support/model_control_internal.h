/* SPDX-License-Identifier: MIT */
/* Shared by the files of the reference model of decisions only. */
#ifndef TN_TEST_MODEL_CONTROL_INTERNAL_H
#define TN_TEST_MODEL_CONTROL_INTERNAL_H

#include "model_control.h"

/* Endpoints are one word: one byte for each value, one bit for each location. */
static inline uint64_t mc_endpoint_bit(int value, int location) {
    return UINT64_C(1) << (value * 8 + location);
}

static inline bool mc_is_at(uint64_t at, int value, int location) {
    return at & mc_endpoint_bit(value, location);
}

/* The first in location order (C62). */
static inline int mc_first_place(uint64_t at, int value) {
    unsigned places = (unsigned)(at >> (value * 8) & 0xff);
    return places ? __builtin_ctz(places) : MC_NOWHERE;
}

static inline uint64_t mc_charged(const mc_world *world, uint64_t at, int location) {
    uint64_t sum = 0;
    for (int v = 0; v < world->value_count; v++)
        if (mc_is_at(at, v, location))
            sum += world->values[v].charge;
    return sum;
}

/* C60. */
static inline bool mc_fits(const mc_world *world, int at, uint64_t level, uint64_t bytes) {
    return bytes == 0 || world->budget[at] == MC_NO_BUDGET || level + bytes <= world->budget[at];
}

/* The whole request at a state (C63..C71): the actions and places after it, or the failing check. */
bool mc_trial(const mc_world *world, uint64_t at, mc_answer *out, mc_check *failed);

#endif
