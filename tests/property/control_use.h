/* SPDX-License-Identifier: MIT */
/* Random uses: what prop_control_use.c draws and control_use_util.c carries out. */
#ifndef CONTROL_USE_H
#define CONTROL_USE_H

#include "control_property.h"

#define SLOTS 3
#define DEVICES 2

enum use_kind { ENTER, EXIT, AGAIN };

typedef struct use_step {
    uint32_t kind, slot;
    uint64_t seed; /* of the request */
} use_step;

enum use_counter { ENTERED, HITS, RELEASES, REFUSALS, NESTED, AGAINS, UNBUILT, COUNTERS };

typedef struct use_slot {
    tn_use *use;
    mc_world asked; /* its request counts */
    bool entered;
} use_slot;

typedef struct use_pair {
    scene s; /* the model's world, as it is now */
    live l;
    tn_controller *c;
    tn_sim *sim;
    tn_stream streams[DEVICES];
    use_slot slots[SLOTS];
    uint8_t held[MC_VALUES];
    uint8_t uses[MC_VALUES][MC_LOCATIONS];
    uint64_t epoch;
    char *why;
    uint64_t *n; /* counters */
    bool verbose;
} use_pair;

/* Both sides do one step and are compared. False: p->why. */
bool use_one_step(use_pair *p, const use_step *st);
/* Exit a use that is entered. */
bool use_leave(use_pair *p, use_slot *t);

#endif
