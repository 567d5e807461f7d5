/* SPDX-License-Identifier: MIT */
#include "decision_log.h"

#include "account.h"
#include "base.h"
#include "control.h"

#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct decision_log {
    FILE *file;
    char *path;
    pthread_mutex_t mutex; /* guards what follows, and the file */
    uint64_t count;
    bool failed;
};

/* What is logged at the moment. */
struct entry {
    const struct control *control;
    const struct ask *ask;
    const tn_decision *decision;
};

struct decision_log *decision_log_open(const char *path) {
    struct decision_log *log = NULL;
    FILE *file = fopen(path, "w");

    if (file == NULL) {
        complain("%s: %s", path, strerror(errno));
        return NULL;
    }
    log = memory_new(1, sizeof *log);
    log->file = file;
    log->path = text_copy(path);
    if (pthread_mutex_init(&log->mutex, NULL) != 0) {
        complain("serve: no lock");
        fclose(file);
        free(log->path);
        free(log);
        return NULL;
    }
    return log;
}

bool decision_log_close(struct decision_log *log) {
    bool good = true;

    if (log == NULL) {
        return true;
    }
    good = fclose(log->file) == 0 && !log->failed;
    if (!good) {
        complain("%s: not everything could be written", log->path);
    }
    pthread_mutex_destroy(&log->mutex);
    free(log->path);
    free(log);
    return good;
}

/* ---- Parts of a line ---- */

static json_t *json_name(const struct entry *entry, tn_handle handle) {
    char *name = control_name(entry->control, entry->ask, handle);
    json_t *json = json_string(name);

    free(name);
    return json == NULL ? json_null() : json;
}

static json_t *json_place(tn_location at) {
    return at.kind == TN_LOCATION_NONE ? json_null() : json_string(location_text(at, "?").text);
}

static json_t *json_number(uint64_t value) { return json_integer((json_int_t)value); }

static json_t *json_action(const struct entry *entry, const tn_action *action) {
    return json_pack("{s:s, s:o, s:o, s:o}", "action", action_word(action->kind), "value",
                     json_name(entry, action->handle), "at", json_place(action->at), "from",
                     json_place(action->from));
}

static json_t *json_request(const struct entry *entry) {
    const tn_request *request = tn_decision_request(entry->decision);
    const tn_requirement *required = NULL;
    size_t count = 0;
    json_t *list = json_array();

    if (tn_request_requirements(request, &required, &count) != TN_OK) {
        count = 0;
    }
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(list,
                              json_pack("{s:o, s:o}", "value", json_name(entry, required[i].handle),
                                        "at", json_place(required[i].at)));
    }
    return list;
}

static json_t *json_evictions(const struct entry *entry) {
    size_t count = 0;
    tn_eviction *evictions = NULL;
    json_t *list = json_array();

    if (tn_decision_evictions(entry->decision, NULL, &count) != TN_OK) {
        return list;
    }
    evictions = memory_new(count, sizeof *evictions);
    evictions[0].size = sizeof *evictions;
    if (tn_decision_evictions(entry->decision, evictions, &count) != TN_OK) {
        count = 0;
    }
    for (size_t i = 0; i < count; i++) {
        json_t *json = json_action(entry, &evictions[i].action);
        json_t *more = json_pack("{s:o, s:o, s:o, s:s}", "rank", json_number(evictions[i].rank),
                                 "released_at", json_place(evictions[i].released_at), "bytes",
                                 json_number(evictions[i].released_bytes), "reason",
                                 eviction_word(evictions[i].reason));

        json_object_update(json, more);
        json_decref(more);
        json_array_append_new(list, json);
    }
    free(evictions);
    return list;
}

static json_t *json_plan(const struct entry *entry) {
    const tn_plan *plan = tn_decision_plan(entry->decision);
    const tn_reservation_spec *reserved = NULL;
    const tn_action *actions = NULL;
    size_t count = 0;
    json_t *list = json_array();

    if (tn_plan_reservations(plan, &reserved, &count) == TN_OK) {
        for (size_t i = 0; i < count; i++) {
            json_array_append_new(list,
                                  json_pack("{s:s, s:s, s:o, s:o}", "action", "reserve", "label",
                                            reserved[i].label, "at", json_place(reserved[i].at),
                                            "bytes", json_number(reserved[i].bytes)));
        }
    }
    if (tn_plan_actions(plan, TN_PHASE_ENTER, &actions, &count) == TN_OK) {
        for (size_t i = 0; i < count; i++) {
            json_array_append_new(list, json_action(entry, &actions[i]));
        }
    }
    return list;
}

static json_t *json_peaks(const struct entry *entry) {
    const tn_explanation *explanation = tn_decision_explanation(entry->decision);
    tn_predicted_peak peaks[8];
    size_t count = sizeof peaks / sizeof peaks[0];
    json_t *list = json_array();

    if (tn_explanation_peaks(explanation, peaks, &count) != TN_OK) {
        return list;
    }
    for (size_t i = 0; i < count && i < sizeof peaks / sizeof peaks[0]; i++) {
        json_array_append_new(list, json_pack("{s:o, s:o}", "at", json_place(peaks[i].at), "bytes",
                                              json_number(peaks[i].charged_bytes)));
    }
    return list;
}

static json_t *json_entry(const struct entry *entry, uint64_t again) {
    const struct ask *ask = entry->ask;
    tn_decision_info info = TN_DECISION_INFO_INIT;
    json_t *name = json_string(ask->name);

    if (tn_decision_read(entry->decision, &info) != TN_OK) {
        info.explored_states = 0;
    }
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "request",
                     json_number(ask->request), "tenant", json_number(ask->tenant), "operation",
                     json_number(ask->op), "name", name == NULL ? json_null() : name, "required",
                     json_request(entry), "version", json_number(info.expected_version), "explored",
                     json_number(info.explored_states), "redecisions", json_number(again),
                     "evictions", json_evictions(entry), "plan", json_plan(entry), "peaks",
                     json_peaks(entry));
}

void decision_log_add(struct decision_log *log, const struct control *control,
                      const struct ask *ask, const tn_decision *decision, uint64_t again) {
    const struct entry entry = {.control = control, .ask = ask, .decision = decision};
    json_t *json = json_entry(&entry, again);

    pthread_mutex_lock(&log->mutex);
    json_object_set_new(json, "decision", json_number(++log->count));
    log->failed |= json_dumpf(json, log->file, JSON_COMPACT) != 0;
    log->failed |= putc('\n', log->file) == EOF;
    pthread_mutex_unlock(&log->mutex);
    json_decref(json);
}
