/* SPDX-License-Identifier: MIT */
#include "plan_file.h"

#include "base.h"
#include "document.h"
#include "intern.h"
#include "plan_file_state.h"

#include <stdlib.h>
#include <string.h>

/* ---- Actions ---- */

struct action_form {
    const char *name;
    enum tn_action_kind kind;
    const struct member *members;
    size_t member_count;
    const char *at; /* the member that names its location */
};

static const struct member ensure_members[] = {{"ensure", FORM_TEXT, false},
                                               {"at", FORM_TEXT, false}};
static const struct member move_members[] = {
    {"move", FORM_TEXT, false}, {"to", FORM_TEXT, false}, {"from", FORM_TEXT, true}};
static const struct member drop_members[] = {{"drop", FORM_TEXT, false}, {"at", FORM_TEXT, false}};
static const struct member discard_members[] = {{"discard", FORM_TEXT, false}};

static const struct action_form action_forms[] = {
    {"ensure", TN_ACTION_ENSURE, ensure_members, 2, "at"},
    {"move", TN_ACTION_MOVE, move_members, 3, "to"},
    {"drop", TN_ACTION_DROP, drop_members, 2, "at"},
    {"discard", TN_ACTION_DISCARD, discard_members, 1, NULL}};

static const struct action_form *form_of(const struct node *node) {
    struct node member;

    for (size_t i = 0; i < sizeof action_forms / sizeof action_forms[0]; i++) {
        if (node_member(node, action_forms[i].name, &member)) {
            return &action_forms[i];
        }
    }
    node_fail(node, "is no action: an object with \"ensure\", \"move\", \"drop\" or \"discard\"");
    return NULL;
}

static bool read_action(struct reading *reading, const struct node *node, enum tn_phase phase) {
    const struct action_form *form = form_of(node);
    tn_action action = {.kind = TN_ACTION_NONE};
    struct node member;

    if (form == NULL || !node_has_members(node, form->members, form->member_count)) {
        return false;
    }
    action.kind = form->kind;
    if (!node_member(node, form->name, &member) ||
        !reading_value(reading, &member, &action.handle)) {
        return false;
    }
    if (form->at != NULL && node_member(node, form->at, &member) &&
        !node_location(&member, &action.at)) {
        return false;
    }
    if (node_member(node, "from", &member) && !node_location(&member, &action.from)) {
        return false;
    }
    scene_act(reading->scene, phase, action);
    return true;
}

static bool read_actions(struct reading *reading, const struct node *plan, const char *name,
                         enum tn_phase phase) {
    struct node list;

    if (!node_member(plan, name, &list)) {
        return true;
    }
    for (size_t i = 0; i < node_count(&list); i++) {
        struct node element = node_element(&list, i);

        if (!read_action(reading, &element, phase)) {
            return false;
        }
    }
    return true;
}

/* ---- The plan ---- */

static bool read_wanted(struct reading *reading, const struct node *plan) {
    struct node list;

    if (!node_member(plan, "reservations", &list)) {
        return true;
    }
    for (size_t i = 0; i < node_count(&list); i++) {
        struct node element = node_element(&list, i);
        struct wanted wanted;

        if (!reading_reservation(&element, &wanted)) {
            return false;
        }
        scene_want(reading->scene, wanted.at, wanted.bytes, wanted.label);
    }
    return true;
}

static bool read_plan(struct reading *reading, const struct node *root) {
    static const struct member members[] = {{"name", FORM_TEXT, false},
                                            {"reclaim", FORM_LIST, true},
                                            {"reservations", FORM_LIST, true},
                                            {"enter", FORM_LIST, true},
                                            {"exit", FORM_LIST, true}};
    struct node plan;
    struct node node;
    const char *name = NULL;
    tn_status status = TN_OK;

    if (!node_member(root, "plan", &plan) || !NODE_HAS_MEMBERS(&plan, members) ||
        !node_member(&plan, "name", &node) || !node_text(&node, &name) ||
        !read_actions(reading, &plan, "reclaim", TN_PHASE_RECLAIM) ||
        !read_wanted(reading, &plan) || !read_actions(reading, &plan, "enter", TN_PHASE_ENTER) ||
        !read_actions(reading, &plan, "exit", TN_PHASE_EXIT)) {
        return false;
    }
    status = scene_plan(reading->scene, name);
    return status == TN_OK || reading_refused(&plan, status, "cannot be made");
}

static bool read_root(struct reading *reading, const struct node *root) {
    static const struct member members[] = {
        {"plan_file", FORM_WHOLE, false},  {"devices", FORM_WHOLE, true},
        {"budgets", FORM_OBJECT, true},    {"values", FORM_LIST, true},
        {"leases", FORM_LIST, true},       {"holds", FORM_LIST, true},
        {"reservations", FORM_LIST, true}, {"plan", FORM_OBJECT, false}};
    struct node version;

    if (!NODE_HAS_MEMBERS(root, members) || !node_member(root, "plan_file", &version)) {
        return false;
    }
    if (json_integer_value(version.json) != 1) {
        return node_fail(&version, "unknown version %lld", json_integer_value(version.json));
    }
    return reading_state(reading, root) && read_plan(reading, root);
}

bool plan_file_open(struct scene *scene, const char *path) {
    struct document document;
    struct reading reading = {.scene = scene, .names = intern_create()};
    bool good = document_open(&document, path);

    if (good) {
        struct node root = document_root(&document);

        good = read_root(&reading, &root);
    }
    intern_destroy(reading.names);
    free(reading.handles);
    document_close(&document);
    return good;
}
