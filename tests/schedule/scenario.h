/* SPDX-License-Identifier: MIT */
/* What the programs of scenarios share. */
#ifndef SCHEDULE_SCENARIO_H
#define SCHEDULE_SCENARIO_H

#include "tn_test.h"
#include "world_priv.h"

static const uint32_t zero __attribute__((unused)) = 0;
static const uint32_t one __attribute__((unused)) = 1; /* values, as arguments */

/* RUN({"name", function, argument}, ...): the explored part. */
#define RUN(...)                                                                                   \
    sched_run((const sched_thread[]){__VA_ARGS__},                                                 \
              sizeof((const sched_thread[]){__VA_ARGS__}) / sizeof(sched_thread))

/* The test `name`: explore `name_body`; `weight`: of 2000 for all programs together. */
#define SCENARIO(name, weight)                                                                     \
    static void name(void **state) {                                                               \
        (void)state;                                                                               \
        sched_explore(#name, name##_body, weight);                                                 \
    }

#endif
