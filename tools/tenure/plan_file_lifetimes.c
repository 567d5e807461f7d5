/* SPDX-License-Identifier: MIT */
#include "base.h"
#include "plan_file_state.h"

#include <stdlib.h>

/* The values of a lease or hold; owned by the caller. */
static tn_handle *handles_of(struct reading *reading, const struct node *lifetime,
                             size_t *out_count) {
    struct node list;
    tn_handle *handles = NULL;

    if (!node_member(lifetime, "values", &list)) {
        return NULL;
    }
    *out_count = node_count(&list);
    if (*out_count == 0) {
        node_fail(&list, "names no value");
        return NULL;
    }
    handles = memory_new(*out_count, sizeof *handles);
    for (size_t i = 0; i < *out_count; i++) {
        struct node element = node_element(&list, i);

        if (!reading_value(reading, &element, &handles[i])) {
            free(handles);
            return NULL;
        }
    }
    return handles;
}

static bool read_pending(const struct node *lease, tn_location at, bool *out_pending) {
    struct node node;

    *out_pending = node_member(lease, "pending", &node) && json_is_true(node.json);
    return !*out_pending || at.kind == TN_LOCATION_CUDA ||
           node_fail(&node, "a lease on a host location is never pending");
}

static bool read_lifetime(struct reading *reading, const struct node *node, bool is_lease) {
    struct node at_node;
    tn_location at;
    bool pending = false;
    size_t count = 0;
    tn_handle *handles = NULL;
    tn_status status = TN_OK;

    if (!node_member(node, "at", &at_node) || !node_location(&at_node, &at) ||
        !read_pending(node, at, &pending)) {
        return false;
    }
    handles = handles_of(reading, node, &count);
    if (handles == NULL) {
        return false;
    }
    status = is_lease ? scene_lease(reading->scene, handles, count, at, pending)
                      : scene_hold(reading->scene, handles, count, at);
    free(handles);
    return status == TN_OK || reading_refused(node, status, "cannot be had");
}

static bool read_lease(struct reading *reading, const struct node *lease) {
    static const struct member members[] = {
        {"values", FORM_LIST, false}, {"at", FORM_TEXT, false}, {"pending", FORM_FLAG, true}};

    return NODE_HAS_MEMBERS(lease, members) && read_lifetime(reading, lease, true);
}

static bool read_hold(struct reading *reading, const struct node *hold) {
    static const struct member members[] = {{"values", FORM_LIST, false}, {"at", FORM_TEXT, false}};

    return NODE_HAS_MEMBERS(hold, members) && read_lifetime(reading, hold, false);
}

static bool read_reservation(struct reading *reading, const struct node *node) {
    struct wanted wanted;
    tn_status status = TN_OK;

    if (!reading_reservation(node, &wanted)) {
        return false;
    }
    status = scene_reserve(reading->scene, wanted.at, wanted.bytes, wanted.label);
    return status == TN_OK || reading_refused(node, status, "cannot be had");
}

bool reading_lifetimes(struct reading *reading, const struct node *root) {
    return reading_each(reading, root, "leases", read_lease) &&
           reading_each(reading, root, "holds", read_hold) &&
           reading_each(reading, root, "reservations", read_reservation);
}
