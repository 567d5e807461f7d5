/* SPDX-License-Identifier: MIT */
/*
 * The part of a plan file that describes a state; what the plan_file*.c share.
 */
#ifndef TENURE_PLAN_FILE_STATE_H
#define TENURE_PLAN_FILE_STATE_H

#include "document.h"
#include "scene.h"

struct reading {
    struct scene *scene;
    struct intern *names; /* of values; number = index into handles */
    tn_handle *handles;
    size_t handle_capacity;
};

/** Opens the machine and the manager and puts it into the state. False after an error line. */
bool reading_state(struct reading *reading, const struct node *root);
/** Of that: leases, holds and reservations. (plan_file_lifetimes.c) */
bool reading_lifetimes(struct reading *reading, const struct node *root);

/** Hands each element of the root's list, if there is one, to `read`; false when that says so. */
bool reading_each(struct reading *reading, const struct node *root, const char *name,
                  bool (*read)(struct reading *, const struct node *));
/** The value whose name the node is. False after an error line. */
bool reading_value(const struct reading *reading, const struct node *node, tn_handle *out);

struct wanted {
    tn_location at;
    uint64_t bytes;
    const char *label;
};

/** An object with "at", "bytes" and "label". False after an error line. */
bool reading_reservation(const struct node *node, struct wanted *out);
/** Complains that the library refused what the node asks for; returns false. */
bool reading_refused(const struct node *node, tn_status status, const char *what);

#endif
