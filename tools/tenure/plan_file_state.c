/* SPDX-License-Identifier: MIT */
#include "plan_file_state.h"

#include "base.h"
#include "intern.h"
#include "weightless.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool reading_refused(const struct node *node, tn_status status, const char *what) {
    char *text = status_text(status);

    node_fail(node, "%s: %s", what, text);
    free(text);
    return false;
}

bool reading_value(const struct reading *reading, const struct node *node, tn_handle *out) {
    const char *name = NULL;
    uint32_t number = INTERN_NONE;

    if (!node_text(node, &name)) {
        return false;
    }
    number = intern_find(reading->names, name, strlen(name));
    if (number == INTERN_NONE) {
        return node_fail(node, "unknown value \"%s\"", name);
    }
    *out = reading->handles[number];
    return true;
}

bool reading_reservation(const struct node *node, struct wanted *out) {
    static const struct member members[] = {
        {"at", FORM_TEXT, false}, {"bytes", FORM_BYTES, false}, {"label", FORM_TEXT, false}};
    struct node at;
    struct node bytes;
    struct node label;

    return NODE_HAS_MEMBERS(node, members) && node_member(node, "at", &at) &&
           node_location(&at, &out->at) && node_member(node, "bytes", &bytes) &&
           node_bytes(&bytes, &out->bytes) && node_member(node, "label", &label) &&
           node_text(&label, &out->label);
}

bool reading_each(struct reading *reading, const struct node *root, const char *name,
                  bool (*read)(struct reading *, const struct node *)) {
    struct node list;

    if (!node_member(root, name, &list)) {
        return true;
    }
    for (size_t i = 0; i < node_count(&list); i++) {
        struct node element = node_element(&list, i);

        if (!read(reading, &element)) {
            return false;
        }
    }
    return true;
}

/* ---- Machine and manager ---- */

static bool read_budgets(struct reading *reading, const struct node *root, uint64_t devices) {
    struct node budgets;

    if (!node_member(root, "budgets", &budgets)) {
        return true;
    }
    for (size_t i = 0; i < node_count(&budgets); i++) {
        struct node budget = node_member_at(&budgets, i);
        tn_location at;
        uint64_t bytes = 0;

        if (!node_location_named(&budget, budget.name, &at) || !node_bytes(&budget, &bytes)) {
            return false;
        }
        if (at.kind == TN_LOCATION_CUDA && at.index >= devices) {
            return node_fail(&budget, "no such device; this machine has %" PRIu64, devices);
        }
        scene_add_budget(reading->scene, at, bytes);
    }
    return true;
}

static bool open_manager(struct reading *reading, const struct node *root) {
    struct node node;
    uint64_t devices = 1;
    tn_status status = TN_OK;

    if (node_member(root, "devices", &node) &&
        !node_whole(&node, 0, TN_CUDA_INDEX_MAX + 1, &devices)) {
        return false;
    }
    if (!read_budgets(reading, root, devices) || !scene_open_machine(reading->scene, devices)) {
        return false;
    }
    status = scene_open_manager(reading->scene, TN_MODE_SERIAL);
    return status == TN_OK || reading_refused(root, status, "no manager");
}

/* ---- Values ---- */

static bool read_replicas(const struct node *value, uint32_t *out_mode) {
    struct node node;
    const char *text = "replicable";

    if (node_member(value, "replicas", &node) && !node_text(&node, &text)) {
        return false;
    }
    *out_mode = strcmp(text, "exclusive") == 0 ? TN_EXCLUSIVE : TN_REPLICABLE;
    return *out_mode == TN_EXCLUSIVE || strcmp(text, "replicable") == 0 ||
           node_fail(&node, "\"%s\" is not replicable or exclusive", text);
}

/* Without a source a value begins where it is first. */
static bool adopt_value(struct reading *reading, const struct node *value, uint64_t bytes,
                        uint32_t mode, tn_handle *out) {
    struct node list;
    struct node first;
    tn_location at;
    tn_payload payload;
    tn_status status = TN_OK;

    if (!node_member(value, "at", &list) || node_count(&list) == 0) {
        return node_fail(value, "has neither a \"source\" nor a location in \"at\"");
    }
    first = node_element(&list, 0);
    if (!node_location(&first, &at)) {
        return false;
    }
    payload = weightless_create(at, bytes);
    status = tn_manager_adopt(reading->scene->manager, payload, at, mode, out);
    if (status == TN_OK) {
        return true;
    }
    reading_refused(&first, status, "cannot be adopted there");
    tn_payload_destroy(payload);
    return false;
}

static bool make_value(struct reading *reading, const struct node *value, uint64_t bytes,
                       uint32_t mode, tn_handle *out) {
    struct node source;
    tn_location at;
    tn_status status = TN_OK;

    if (!node_member(value, "source", &source)) {
        return adopt_value(reading, value, bytes, mode, out);
    }
    if (!node_location(&source, &at)) {
        return false;
    }
    status = weightless_register(reading->scene->manager, bytes, mode, at, out);
    return status == TN_OK || reading_refused(&source, status, "cannot be registered");
}

static bool read_value(struct reading *reading, const struct node *value) {
    static const struct member members[] = {
        {"name", FORM_TEXT, false},  {"bytes", FORM_BYTES, false}, {"replicas", FORM_TEXT, true},
        {"source", FORM_TEXT, true}, {"at", FORM_LIST, true},      {"discarded", FORM_FLAG, true}};
    struct node node;
    const char *name = NULL;
    uint64_t bytes = 0;
    uint32_t mode = TN_REPLICABLE;
    uint32_t number = 0;
    tn_handle handle;

    if (!NODE_HAS_MEMBERS(value, members) || !node_member(value, "bytes", &node) ||
        !node_bytes(&node, &bytes) || !read_replicas(value, &mode) ||
        !node_member(value, "name", &node) || !node_text(&node, &name)) {
        return false;
    }
    if (intern_find(reading->names, name, strlen(name)) != INTERN_NONE) {
        return node_fail(&node, "a second value \"%s\"", name);
    }
    if (!make_value(reading, value, bytes, mode, &handle)) {
        return false;
    }
    number = intern_add(reading->names, name, strlen(name));
    reading->handles = memory_reserve(reading->handles, &reading->handle_capacity,
                                      (size_t)number + 1, sizeof *reading->handles);
    reading->handles[number] = handle;
    scene_add_value(reading->scene, handle, name);
    return true;
}

static bool place_at(struct reading *reading, tn_handle handle, const struct node *list,
                     bool devices) {
    for (size_t i = 0; i < node_count(list); i++) {
        struct node element = node_element(list, i);
        tn_location at;
        tn_status status = TN_OK;

        if (!node_location(&element, &at)) {
            return false;
        }
        if ((at.kind == TN_LOCATION_CUDA) == devices) {
            status = tn_manager_ensure(reading->scene->manager, handle, at, NULL, NULL);
        }
        if (status != TN_OK) {
            return reading_refused(&element, status, "cannot be made resident there");
        }
    }
    return true;
}

/* Devices first: a load charges its host location for a moment, while that is still empty. */
static bool place_values(struct reading *reading, const struct node *root, bool devices) {
    struct node values;

    if (!node_member(root, "values", &values)) {
        return true;
    }
    for (size_t i = 0; i < node_count(&values); i++) {
        struct node value = node_element(&values, i);
        struct node list;

        if (node_member(&value, "at", &list) &&
            !place_at(reading, reading->handles[i], &list, devices)) {
            return false;
        }
    }
    return true;
}

static bool discard_values(struct reading *reading, const struct node *root) {
    struct node values;

    if (!node_member(root, "values", &values)) {
        return true;
    }
    for (size_t i = 0; i < node_count(&values); i++) {
        struct node value = node_element(&values, i);
        struct node flag;
        tn_status status = TN_OK;

        if (node_member(&value, "discarded", &flag) && json_is_true(flag.json)) {
            status = tn_manager_discard(reading->scene->manager, reading->handles[i], NULL);
        }
        if (status != TN_OK) {
            return reading_refused(&flag, status, "cannot be discarded");
        }
    }
    return true;
}

/* ---- All ---- */

bool reading_state(struct reading *reading, const struct node *root) {
    return open_manager(reading, root) && reading_each(reading, root, "values", read_value) &&
           place_values(reading, root, true) && place_values(reading, root, false) &&
           reading_lifetimes(reading, root) && discard_values(reading, root);
}
