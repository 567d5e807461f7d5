/* SPDX-License-Identifier: MIT */
#include "base.h"
#include "explain.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes as whole numbers; "unlimited" is null. Beyond what a JSON integer holds they are rounded. */
static json_t *whole(uint64_t value) {
    if (value == UINT64_MAX) {
        return json_null();
    }
    return value > INT64_MAX ? json_real((double)value) : json_integer((json_int_t)value);
}

/* "already resident" as "already_resident"; none is null. */
static json_t *word(const char *text) {
    char *copy = text_copy(text);
    json_t *json = NULL;

    for (char *at = copy; *at != '\0'; at++) {
        *at = *at == ' ' ? '_' : *at;
    }
    json = strcmp(text, "none") == 0 ? json_null() : json_string(copy);
    free(copy);
    return json;
}

static json_t *location(tn_location at) {
    return at.kind == TN_LOCATION_NONE ? json_null() : json_string(location_text(at, "?").text);
}

/* A text that the library may have cut, even within a character; empty is null. */
static json_t *cut_text(const char *text) {
    size_t length = text == NULL ? 0 : strlen(text);
    json_t *json = NULL;

    for (size_t cut = 0; cut < 4 && cut < length && json == NULL; cut++) {
        json = json_stringn(text, length - cut);
    }
    return json == NULL ? json_null() : json;
}

/* What was asked for. */
static json_t *json_action(const struct account *account, const tn_action *action) {
    return json_pack("{s:o, s:s, s:o, s:o}", "action", word(action_word(action->kind)), "value",
                     scene_name(account->scene, action->handle), "at", location(action->at), "from",
                     location(action->from));
}

static json_t *json_steps(const struct account *account) {
    json_t *steps = json_array();

    for (size_t i = 0; i < account->step_count; i++) {
        const tn_action_explanation *step = &account->steps[i];
        json_t *json = json_pack("{s:o, s:o}", "phase", word(phase_word(step->phase)), "index",
                                 whole(step->index));
        json_t *action = json_action(account, &step->action);
        json_t *more = json_pack(
            "{s:o, s:o, s:o, s:o, s:b, s:b, s:o}", "source", location(step->source), "destination",
            location(step->destination), "logical_bytes", whole(step->logical_bytes),
            "storage_bytes", whole(step->storage_bytes), "executable", (int)step->executable,
            "no_op", (int)step->no_op, "reason", word(reason_word(step->reason)));

        json_object_update(json, action);
        json_object_update(json, more);
        json_decref(action);
        json_decref(more);
        json_array_append_new(steps, json);
    }
    return steps;
}

static json_t *json_reservations(const struct account *account) {
    json_t *list = json_array();

    for (size_t i = 0; i < account->reservation_count; i++) {
        const tn_reservation_spec *wanted = &account->reservations[i];

        json_array_append_new(list,
                              json_pack("{s:o, s:o, s:s, s:b, s:b}", "at", location(wanted->at),
                                        "bytes", whole(wanted->bytes), "label", wanted->label,
                                        "reached", (int)account_reaches(account, i), "refused",
                                        (int)account_refuses(account, i)));
    }
    return list;
}

static json_t *json_peaks(const struct account *account) {
    json_t *list = json_array();

    for (size_t i = 0; i < account->peak_count; i++) {
        const tn_predicted_peak *peak = &account->peaks[i];
        uint64_t budget = scene_budget(account->scene, peak->at);

        json_array_append_new(list,
                              json_pack("{s:o, s:o, s:o, s:b}", "at", location(peak->at),
                                        "charged_bytes", whole(peak->charged_bytes), "budget_bytes",
                                        whole(budget), "within", (int)account_fits(account, peak)));
    }
    return list;
}

static json_t *json_blockers(const struct account *account) {
    json_t *list = json_array();

    for (size_t i = 0; i < account->blocker_count; i++) {
        const tn_blocker *blocker = &account->blockers[i];
        bool has_value = blocker->kind == TN_BLOCKER_LEASE || blocker->kind == TN_BLOCKER_PENDING ||
                         blocker->kind == TN_BLOCKER_HOLD;

        json_array_append_new(
            list,
            json_pack(
                "{s:o, s:o, s:o, s:o, s:o, s:o}", "kind", word(blocker_word(blocker->kind)),
                "value", cut_text(has_value ? scene_name(account->scene, blocker->handle) : NULL),
                "label", cut_text(has_value ? NULL : blocker->label), "at", location(blocker->at),
                "count", whole(blocker->count), "bytes", whole(blocker->bytes)));
    }
    return list;
}

static json_t *json_protected(const struct account *account) {
    json_t *list = json_array();

    for (size_t i = 0; i < account->protected_count; i++) {
        json_array_append_new(list, location(account->protected_at[i]));
    }
    return list;
}

static json_t *json_problem(const struct account *account) {
    const tn_explanation_info *info = &account->info;
    const tn_error *problem = account->problem;

    if (info->feasible) {
        return json_null();
    }
    return json_pack("{s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o}", "phase",
                     word(phase_word(info->phase)), "index", whole(info->index), "reason",
                     word(reason_word(info->reason)), "status",
                     problem == NULL ? "" : tn_status_name((tn_status)problem->status), "message",
                     cut_text(problem == NULL ? NULL : problem->message), "missing_bytes",
                     whole(info->missing_bytes), "evictable_bytes", whole(info->evictable_bytes),
                     "protected", json_protected(account));
}

static json_t *json_decision(const struct account *account) {
    json_t *config = json_array();
    json_t *required = json_array();
    json_t *evictions = json_array();

    if (!account->decided) {
        json_decref(config);
        json_decref(required);
        json_decref(evictions);
        return json_null();
    }
    for (size_t i = 0; i < account->required_count; i++) {
        json_array_append_new(required,
                              json_pack("{s:s, s:o}", "value",
                                        scene_name(account->scene, account->required[i].handle),
                                        "at", location(account->required[i].at)));
    }
    for (size_t i = 0; i < account->config_count; i++) {
        json_array_append_new(config, json_pack("{s:s, s:s}", "key", account->config[i].key,
                                                "value", account->config[i].value));
    }
    for (size_t i = 0; i < account->eviction_count; i++) {
        const tn_eviction *eviction = &account->evictions[i];
        json_t *json = json_action(account, &eviction->action);
        json_t *more = json_pack("{s:o, s:o, s:o, s:o}", "rank", whole(eviction->rank),
                                 "released_at", location(eviction->released_at), "released_bytes",
                                 whole(eviction->released_bytes), "reason",
                                 word(eviction_word(eviction->reason)));

        json_object_update(json, more);
        json_decref(more);
        json_array_append_new(evictions, json);
    }
    return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o}", "required", required, "policy",
                     account->decision.policy, "config", config, "version",
                     whole(account->decision.expected_version), "explored_states",
                     whole(account->decision.explored_states), "evictions", evictions);
}

static json_t *json_run(const struct account *account) {
    const struct run *run = &account->run;
    json_t *list = json_array();

    if (!account->has_run) {
        json_decref(list);
        return json_null();
    }
    for (size_t i = 0; i < run->transition_count; i++) {
        const tn_report *report = &run->transitions[i];
        json_t *json = json_action(account, &report->action);
        json_t *more = json_pack("{s:o, s:o, s:o, s:b, s:o}", "source", location(report->source),
                                 "destination", location(report->destination), "logical_bytes",
                                 whole(report->logical_bytes), "no_op", (int)report->no_op,
                                 "reason", word(reason_word(report->reason)));

        json_object_update(json, more);
        json_decref(more);
        json_array_append_new(list, json);
    }
    return json_pack(
        "{s:s, s:o, s:o, s:{s:o, s:o, s:o}, s:o}", "status", tn_status_name(run->status), "failed",
        cut_text(run->failed), "message", cut_text(run->text), "counts", "reclaim",
        whole(run->phase_count[TN_PHASE_RECLAIM]), "enter", whole(run->phase_count[TN_PHASE_ENTER]),
        "exit", whole(run->phase_count[TN_PHASE_EXIT]), "transitions", list);
}

void explain_print_json(const struct account *account) {
    const tn_explanation_info *info = &account->info;
    json_t *all = json_pack(
        "{s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "plan", info->plan, "feasible",
        (int)info->feasible, "verdict", word(verdict_word(info->verdict)), "problem",
        json_problem(account), "blockers", json_blockers(account), "steps", json_steps(account),
        "reservations", json_reservations(account), "peaks", json_peaks(account), "run",
        json_run(account), "decision", json_decision(account));

    json_dumpf(all, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(all);
}
