/* SPDX-License-Identifier: MIT */
/*
 * The reference model of decisions: the canonical walk, straight from its pseudo-code, with
 * recursion and copies, without any pruning, with the cycle cut (C58..C101); the dry run's peaks
 * (C110). One thread, no library code.
 *
 * A world is everything a decision depends on. Values are numbered by registration, locations by
 * the order of C62: 0 pageable, 1 pinned, 2 and up the devices.
 */
#ifndef TN_TEST_MODEL_CONTROL_H
#define TN_TEST_MODEL_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MC_VALUES 8
#define MC_LOCATIONS 8
#define MC_REQUIREMENTS 8
#define MC_RESERVATIONS 4
#define MC_TIERS 6
#define MC_RELEASES 4096
#define MC_NOWHERE (-1)
#define MC_NO_BUDGET UINT64_MAX

typedef struct mc_value {
    uint64_t charge;
    bool replicable;
    int source;         /* location of its source; MC_NOWHERE: adopted */
    uint8_t at;         /* one bit for each location */
    uint8_t protected_; /* the same */
    int64_t priority;
    uint64_t epoch;  /* 0: never used */
    const char *key; /* NULL: none */
} mc_value;

/* What orders the candidates. */
enum mc_order {
    MC_LRU,        /* the built-in policy (C33) */
    MC_LARGEST,    /* the largest charge first, then by registration */
    MC_ODD_LENGTHS /* as the built-in one, but backwards if the list has an odd length */
};

typedef struct mc_endpoint {
    int value, at;
} mc_endpoint;

typedef struct mc_bytes {
    int at;
    uint64_t bytes;
} mc_bytes;

typedef struct mc_world {
    int value_count;
    mc_value values[MC_VALUES];
    uint64_t budget[MC_LOCATIONS];
    uint64_t reserved[MC_LOCATIONS];
    int tracked[MC_LOCATIONS], tracked_count; /* in tracking order */
    int tiers[MC_LOCATIONS][MC_TIERS], tier_count[MC_LOCATIONS];
    uint32_t order; /* enum mc_order */
    mc_endpoint requirements[MC_REQUIREMENTS];
    int requirement_count;
    mc_bytes reservations[MC_RESERVATIONS];
    int reservation_count;
    uint64_t limit;
} mc_world;

enum mc_verdict {
    MC_FOUND,
    MC_INFEASIBLE,
    MC_LIMIT,  /* the search limit */
    MC_REFUSED /* found, but its dry run refuses it: an exclusive value is protected (C70) */
};

enum mc_stage { MC_RESERVATION, MC_MATERIALIZATION, MC_SOURCE };

typedef struct mc_check {
    int at;
    uint64_t bytes;
    uint32_t stage; /* enum mc_stage */
    int subject;    /* of the reservations or requirements */
} mc_check;

enum mc_reason { MC_REPLICA_REMAINS = 1, MC_SOURCE_REBUILDS, MC_TO_REQUIRED, MC_TO_TIER };

typedef struct mc_release {
    int value, from, to; /* to: MC_NOWHERE for a drop */
    uint64_t rank, bytes;
    uint32_t reason; /* enum mc_reason */
} mc_release;

typedef struct mc_action {
    bool move; /* else ensure */
    int value, at, from;
} mc_action;

typedef struct mc_answer {
    uint32_t verdict; /* enum mc_verdict */
    uint64_t explored;
    bool dead_ends; /* a state failed, or a room search gave nothing */
    int limit_at;   /* MC_LIMIT: making room there; MC_NOWHERE: walking the request */
    mc_check first; /* MC_INFEASIBLE: of the initial state */
    mc_release releases[MC_RELEASES];
    int release_count;
    mc_action actions[MC_REQUIREMENTS];
    int action_count;
    mc_bytes peaks[MC_LOCATIONS];
    int peak_count;
    uint8_t after[MC_VALUES]; /* MC_FOUND: where the values are after the plan */
} mc_answer;

/* Decide. Aborts when a limit (MC_...) is exceeded. */
void mc_decide(const mc_world *world, mc_answer *out);

/* Its two parts: the search alone; the peaks of what it found, and MC_REFUSED. */
void mc_walk(const mc_world *world, mc_answer *out);
void mc_play(const mc_world *world, mc_answer *answer);

/* Charges at a location, in the world as it is. */
uint64_t mc_used(const mc_world *world, int at);

#endif
