/* SPDX-License-Identifier: MIT */
/*
 * Random decisions: a scene is a world of the reference model (model_control.h) and how the library
 * is asked about it.
 */
#ifndef CONTROL_PROPERTY_H
#define CONTROL_PROPERTY_H

#include <stdio.h>

#include <tenure/tenure.h>

#include "model_control.h"
#include "payload.h"

#define CONTROL_TEXT 4096
#define CONTROL_CAP 3000u /* states of the model's walk: explosions are skipped */

typedef struct scene {
    mc_world world; /* limit: of the library's search */
    int budget_order[MC_LOCATIONS], budget_count;
    bool custom; /* the policy is made of callbacks, and goes the slow path */
    bool enter;  /* the decision's scope is entered, too */
    bool concurrent;
} scene;

/* What came of the scenes. */
enum control_count {
    CONTROL_SCENES,
    CONTROL_UNBUILT, /* the world cannot be set up: loading would exceed a budget */
    CONTROL_CAPPED,  /* the model gave up */
    CONTROL_FOUND,
    CONTROL_INFEASIBLE,
    CONTROL_LIMIT,
    CONTROL_REFUSED,
    CONTROL_DEFINITE, /* an answer where the canonical walk meets the limit */
    CONTROL_DEAD_ENDS,
    CONTROL_NESTED, /* found, with a release that makes room for a move */
    CONTROL_ENTERED,
    CONTROL_CUSTOM,
    CONTROL_COUNTS
};

typedef struct control_tally {
    uint64_t n[CONTROL_COUNTS];
    uint64_t explored, canonical; /* states, where there were dead ends */
} control_tally;

/* control_draw_util.c */
void scene_draw(scene *s, uint64_t seed);
/* The same world and another request, policy and limit. */
void scene_draw_request(scene *s, uint64_t seed);
/* The same world and policy, another request. */
void scene_draw_need(scene *s, uint64_t seed);
void scene_write(const scene *s, char *out, size_t room);
const char *control_at(int location);

/* control_known_util.c: scenes that once failed; the last is NULL. */
extern const scene *const control_known[];

/* control_live_util.c: a manager in the world's state. */
typedef struct live {
    tn_sim *sim;
    tn_manager *m;
    tn_handle handles[MC_VALUES];
    tt_source sources[MC_VALUES];
    tn_hold holds[MC_VALUES * MC_LOCATIONS];
    tn_reservation reservations[MC_LOCATIONS];
    int hold_count, reservation_count;
} live;

tn_location control_location(int at);
int control_index(tn_location at);
/* False: its budgets forbid loading what is loaded, or `why`. Also fills in world->tracked. */
bool live_begin(live *l, scene *s, tn_driver *driver, char *why);
void live_end(live *l);
tn_policy *control_policy(const scene *s);
/* With that policy, and the world's metadata and epochs. NULL: `why`. */
tn_controller *control_controller(live *l, const scene *s, char *why);
/* The world's request; TN_OK or what the call said. */
tn_status control_request(const live *l, const mc_world *w, tn_request **out);
/* Locations may have come to be tracked. */
bool live_track(live *l, mc_world *w, char *why);

/* control_compare_util.c */
bool control_same_decision(const live *l, const tn_decision *d, const mc_answer *want, char *why);
uint8_t control_places(const tn_snapshot *s, tn_handle handle);
/* Decide by both. False: `why`. */
bool control_compare(live *l, const scene *s, control_tally *tally, char *why);

/* What control_compare() and live_begin() do on failure. */
#define CONTROL_FAIL(why, ...) (snprintf((why), CONTROL_TEXT, __VA_ARGS__), false)

#endif
