/* SPDX-License-Identifier: MIT */
/*
 * A manager on a simulated machine, in a state that a plan is explained on, and the plan.
 *
 * Every value has a name. Lifetimes that the state consists of end with it.
 *
 * Threads: one at a time.
 */
#ifndef TENURE_SCENE_H
#define TENURE_SCENE_H

#include "machine.h"

#include <stdbool.h>

/* A value, in registration order. */
struct named {
    tn_handle handle;
    char *name; /* owned; may be printed */
};

/* A plan in the making: the lists of a tn_plan_spec. */
struct draft {
    tn_action *actions[TN_PHASE_EXIT + 1]; /* by phase: reclaim, enter, exit */
    size_t count[TN_PHASE_EXIT + 1], capacity[TN_PHASE_EXIT + 1];
    tn_reservation_spec *reservations; /* labels are borrowed until scene_plan() */
    size_t reservation_count, reservation_capacity;
};

struct scene {
    struct machine machine;
    tn_manager *manager;
    tn_budget *budgets; /* in the order of their declaration */
    size_t budget_count, budget_capacity;
    struct named *values;
    size_t value_count, value_capacity;
    tn_lease *leases;
    size_t lease_count, lease_capacity;
    tn_hold *holds;
    size_t hold_count, hold_capacity;
    tn_reservation *reservations;
    size_t reservation_count, reservation_capacity;
    tn_stream streams[TN_CUDA_INDEX_MAX + 1][2]; /* per device: idle, busy; NULL: not made yet */
    struct draft draft;
    const tn_plan *plan;
    tn_plan *own_plan;     /* the plan, if it was drafted */
    tn_decision *decision; /* else the decision that it is of */
};

/** Opens a machine of so many devices. False after an error line. */
bool scene_open_machine(struct scene *scene, uint64_t devices);
void scene_add_budget(struct scene *scene, tn_location at, uint64_t bytes);
/** Creates the manager with the budgets. What the library says is returned. */
tn_status scene_open_manager(struct scene *scene, uint32_t mode);
/** Ends everything, also a scene that was opened in part, or is all zero. */
void scene_close(struct scene *scene);

/** A value has been registered; `name` is copied. */
void scene_add_value(struct scene *scene, tn_handle handle, const char *name);
/** Its name; borrowed. */
const char *scene_name(const struct scene *scene, tn_handle handle);
/** The budget of a location; UINT64_MAX: unlimited. */
uint64_t scene_budget(const struct scene *scene, tn_location at);

/** Borrows; `pending`: released again, with work that is not done. */
tn_status scene_lease(struct scene *scene, const tn_handle *handles, size_t count, tn_location at,
                      bool pending);
tn_status scene_hold(struct scene *scene, const tn_handle *handles, size_t count, tn_location at);
tn_status scene_reserve(struct scene *scene, tn_location at, uint64_t bytes, const char *label);

void scene_act(struct scene *scene, enum tn_phase phase, tn_action action);
void scene_want(struct scene *scene, tn_location at, uint64_t bytes, const char *label);
/** Makes the plan of what was drafted. */
tn_status scene_plan(struct scene *scene, const char *name);

#endif
