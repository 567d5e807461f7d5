/* SPDX-License-Identifier: MIT */
#include "control.h"

#include "base.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- Opening and closing ---- */

static tn_status create(struct control *control) {
    tn_controller_config config = TN_CONTROLLER_CONFIG_INIT;
    tn_status status = tn_policy_tiered_lru(NULL, 0, &control->policy);

    config.policy = control->policy;
    config.binding = TN_BIND_PLACEMENT;
    config.redecisions = REDECISIONS;
    if (status == TN_OK) {
        status = tn_controller_create(control->manager, &config, &control->controller);
    }
    return status;
}

tn_status control_open(struct control *control, tn_payload anchor) {
    tn_status status = create(control);

    if (status == TN_OK) {
        status = tn_manager_adopt(control->manager, anchor, tn_location_pageable(), TN_EXCLUSIVE,
                                  &control->anchor);
        control->has_anchor = status == TN_OK;
    }
    if (status != TN_OK) {
        tn_payload_destroy(anchor);
    }
    return status;
}

tn_status control_close(struct control *control) {
    tn_status status = TN_OK;

    if (control->has_anchor) {
        status = tn_manager_discard(control->manager, control->anchor, NULL);
    }
    tn_controller_destroy(control->controller);
    tn_policy_destroy(control->policy);
    *control = (struct control){0};
    return status;
}

/* ---- Names ---- */

static int compare_items(const void *left, const void *right) {
    uint64_t a = ((const struct item *)left)->handle.index;
    uint64_t b = ((const struct item *)right)->handle.index;

    return (a > b) - (a < b);
}

/* Items are registered in their order. */
struct item *control_item(const struct control *control, tn_handle handle) {
    struct item wanted = {.handle = handle};

    return bsearch(&wanted, control->catalogue->items, control->catalogue->item_count,
                   sizeof wanted, compare_items);
}

char *control_name(const struct control *control, const struct ask *ask, tn_handle handle) {
    const struct item *item = control_item(control, handle);

    if (item != NULL) {
        return item->tenant == TENANT_SHARED ? text_copy(item->id)
                                             : text_format("%s@%" PRIu64, item->id, item->tenant);
    }
    for (size_t i = 0; i < ask->count; i++) {
        if (tn_handle_equal(ask->values[i].handle, handle)) {
            return text_copy(ask->values[i].id);
        }
    }
    return text_copy(tn_handle_equal(control->anchor, handle) ? "anchor" : "?");
}

/* ---- Requests ---- */

/* Where a value of an ask is. */
struct whereabouts {
    bool on[TIER_COUNT];
};

static tn_status find_one(const struct control *control, const tn_snapshot *snapshot,
                          tn_handle handle, struct whereabouts *out) {
    tn_materialization_info info[4] = {{.size = sizeof info[0]}}; /* host, pinned, one device */
    size_t count = sizeof info / sizeof info[0];
    tn_status status = tn_snapshot_materializations(snapshot, handle, info, &count);

    for (size_t i = 0; status == TN_OK && i < count && i < sizeof info / sizeof info[0]; i++) {
        for (int tier = 0; tier < TIER_COUNT; tier++) {
            out->on[tier] |= tn_location_equal(info[i].at, control->at[tier]);
        }
    }
    return status;
}

static tn_status find_all(const struct control *control, const struct ask *ask,
                          struct whereabouts *out) {
    tn_snapshot *snapshot = NULL;
    tn_status status = tn_snapshot_take(control->manager, &snapshot);

    for (size_t i = 0; status == TN_OK && i < ask->count; i++) {
        if (ask->values[i].item != NULL) {
            status = find_one(control, snapshot, ask->values[i].handle, &out[i]);
        }
    }
    tn_snapshot_drop(snapshot);
    return status;
}

/* Whether something is loaded, and pinned memory could hold what is asked for there. */
static bool asks_pinned(const struct control *control, const struct ask *ask,
                        const struct whereabouts *where) {
    bool loads = false;
    uint64_t bytes = 0;

    for (size_t i = 0; i < ask->count; i++) {
        const struct item *item = ask->values[i].item;

        if (item != NULL && (!where[i].on[TIER_DEVICE] || where[i].on[TIER_PINNED])) {
            loads |= !where[i].on[TIER_DEVICE];
            bytes += item->bytes;
        }
    }
    return loads && bytes <= control->pinned_budget;
}

static size_t require(const struct control *control, const struct ask *ask,
                      const struct whereabouts *where, bool by_pinned, tn_requirement *out) {
    size_t count = 0;

    for (size_t i = 0; i < ask->count; i++) {
        const struct asked *value = &ask->values[i];

        if (by_pinned && value->item != NULL &&
            (!where[i].on[TIER_DEVICE] || where[i].on[TIER_PINNED])) {
            out[count++] = (tn_requirement){value->handle, control->at[TIER_PINNED]};
        }
        out[count++] = (tn_requirement){value->handle, control->at[TIER_DEVICE]};
    }
    if (count == 0) {
        out[count++] = (tn_requirement){control->anchor, tn_location_pageable()};
    }
    return count;
}

tn_status control_request(const struct control *control, const struct ask *ask, bool *by_pinned,
                          tn_request **out) {
    struct whereabouts *where = memory_new(ask->count, sizeof *where);
    tn_requirement *requirements = memory_new(2 * ask->count + 1, sizeof *requirements);
    tn_reservation_spec reservation = {
        .at = control->at[TIER_DEVICE], .bytes = ask->reserve_bytes, .label = ask->reserve_label};
    tn_request_spec spec = TN_REQUEST_SPEC_INIT;
    tn_status status = find_all(control, ask, where);

    if (status == TN_OK) {
        *by_pinned = *by_pinned && asks_pinned(control, ask, where);
        spec.name = ask->name;
        spec.requirements = requirements;
        spec.requirement_count = require(control, ask, where, *by_pinned, requirements);
        spec.reservations = &reservation;
        spec.reservation_count = ask->reserve_label != NULL;
        status = tn_request_create(&spec, out);
    }
    free(where);
    free(requirements);
    return status;
}
