/* SPDX-License-Identifier: MIT */
/* What the programs of scenarios share. */
#ifndef SCHEDULE_SCENARIO_H
#define SCHEDULE_SCENARIO_H

#include "base/atomic.h"
#include "tn_test.h"
#include "world_priv.h"

static const uint32_t zero __attribute__((unused)) = 0;
static const uint32_t one __attribute__((unused)) = 1; /* values, as arguments */

/* RUN({"name", function, argument}, ...): the explored part. */
#define RUN(...)                                                                                   \
    sched_run((const sched_thread[]){__VA_ARGS__},                                                 \
              sizeof((const sched_thread[]){__VA_ARGS__}) / sizeof(sched_thread))

/* The test `name`: explore `name_body`; `weight`: of 2960 for all programs together. Behind it the
 * seeds of schedules that failed once. */
#define SCENARIO(name, weight, ...)                                                                \
    static void name(void **state) {                                                               \
        static const uint64_t known[] = {0, ##__VA_ARGS__};                                        \
        (void)state;                                                                               \
        sched_explore(#name, name##_body, weight, known + 1, sizeof known / sizeof *known - 1);    \
    }

/* The test `reaches`, the last one: the scenarios of this program, at their default number of
 * schedules, came by these branches. */
#define REACHES(...)                                                                               \
    static void reaches(void **state) {                                                            \
        static const enum tn__branch must[] = {__VA_ARGS__};                                       \
        (void)state;                                                                               \
        sched_reached(must, sizeof must / sizeof *must);                                           \
    }

#endif
