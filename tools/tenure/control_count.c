/* SPDX-License-Identifier: MIT */
/*
 * What uses did, from their decisions and reports.
 */
#include "base.h"
#include "control.h"

#include <stdlib.h>

static enum tier tier_of(tn_location at) {
    return at.kind == TN_LOCATION_CUDA ? TIER_DEVICE : TIER_PINNED;
}

/* The replica that was copied may be on the device: others may have loaded the value there. */
static enum path path_of(const struct item *item, const tn_report *report) {
    if (report->source.kind == TN_LOCATION_CUDA) {
        return PATH_DEVICE_HOST;
    }
    if (report->destination.kind == TN_LOCATION_PINNED) {
        return PATH_FILE_PINNED;
    }
    if (report->source.kind == TN_LOCATION_PINNED) {
        return PATH_PINNED_DEVICE;
    }
    return item == NULL ? PATH_HOST_DEVICE : PATH_FILE_DEVICE;
}

static void count_load(struct placer *placer, const tn_report *report) {
    struct tally *tally = placer->tally;
    const struct item *item = control_item(placer->control, report->action.handle);
    bool is_key = item != NULL && item->kind == KIND_KEY;
    bool to_device = report->action.at.kind == TN_LOCATION_CUDA;
    enum path path = PATH_FILE_PINNED;

    tally->misses += item != NULL && to_device;
    if (report->no_op) {
        tally->joined += item != NULL;
        return;
    }
    path = path_of(item, report);
    tally->paths[path].count++;
    tally->paths[path].bytes += report->logical_bytes;
    tally->key_bytes[path] += is_key ? report->logical_bytes : 0;
    tally->key_loads += is_key && to_device;
}

static void count_eviction(struct placer *placer, const tn_report *report, uint32_t reason) {
    struct tally *tally = placer->tally;
    const struct item *item = control_item(placer->control, report->action.handle);
    enum tier tier =
        tier_of(report->action.kind == TN_ACTION_MOVE ? report->source : report->action.at);

    if (report->no_op) {
        return;
    }
    tally->evictions[tier].count++;
    tally->evictions[tier].bytes += report->logical_bytes;
    tally->key_evictions[tier] += item != NULL && item->kind == KIND_KEY;
    tally->decisions.reasons[reason < REASON_COUNT ? reason : 0]++;
}

/* `reports`: what was done, reclaim first. */
static void count_reports(struct placer *placer, const tn_decision *decision,
                          const tn_report *reports, size_t count) {
    size_t evictions = 0;
    tn_eviction *evicted = NULL;
    tn_status status = tn_decision_evictions(decision, NULL, &evictions);

    evicted = memory_new(evictions, sizeof *evicted);
    evicted[0].size = sizeof *evicted;
    if (status == TN_OK) {
        status = tn_decision_evictions(decision, evicted, &evictions);
    }
    for (size_t i = 0; status == TN_OK && i < count; i++) {
        if (i < evictions) {
            count_eviction(placer, &reports[i], evicted[i].reason);
        } else {
            count_load(placer, &reports[i]);
        }
    }
    free(evicted);
}

void control_count_report(struct placer *placer, const tn_decision *decision,
                          const tn_plan_report *report) {
    size_t count = 0;
    tn_report *reports = NULL;

    if (tn_plan_report_transitions(report, NULL, &count) != TN_OK) {
        return;
    }
    reports = memory_new(count, sizeof *reports);
    reports[0].size = sizeof *reports;
    if (tn_plan_report_transitions(report, reports, &count) == TN_OK) {
        count_reports(placer, decision, reports, count);
    }
    free(reports);
}

void control_count_prefix(struct placer *placer, const tn_decision *decision,
                          const tn_error *error) {
    const tn_explanation *explanation = tn_decision_explanation(decision);
    size_t count = 0;
    size_t done = 0;
    tn_action_explanation *steps = NULL;
    tn_report *reports = NULL;

    if (tn_explanation_actions(explanation, NULL, &count) != TN_OK) {
        return;
    }
    steps = memory_new(count, sizeof *steps);
    reports = memory_new(count, sizeof *reports);
    steps[0].size = sizeof *steps;
    if (tn_explanation_actions(explanation, steps, &count) != TN_OK) {
        count = 0;
    }
    while (done < count &&
           !(steps[done].phase == error->phase && steps[done].index == error->failed_index)) {
        const tn_action_explanation *step = &steps[done];

        reports[done++] = (tn_report){.action = step->action,
                                      .no_op = step->no_op,
                                      .source = step->source,
                                      .destination = step->destination,
                                      .logical_bytes = step->logical_bytes};
    }
    count_reports(placer, decision, reports, done);
    free(steps);
    free(reports);
}

void control_count_entry(struct placer *placer, const struct ask *ask, const tn_use *use) {
    struct decisions *decisions = &placer->tally->decisions;
    const tn_decision *decision = NULL;
    tn_use_info info = TN_USE_INFO_INIT;
    tn_decision_info head = TN_DECISION_INFO_INIT;

    if (tn_use_read(use, &info) != TN_OK || tn_use_decision(use, &decision) != TN_OK) {
        return;
    }
    decisions->entered++;
    decisions->hits += info.hit;
    if (decision == NULL || tn_decision_read(decision, &head) != TN_OK) {
        return;
    }
    decisions->decided++;
    decisions->explored += head.explored_states;
    if (head.explored_states > decisions->most_explored) {
        decisions->most_explored = head.explored_states;
    }
    if (placer->control->log != NULL) {
        decision_log_add(placer->control->log, placer->control, ask, decision, info.redecisions);
    }
}
