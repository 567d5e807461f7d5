/* SPDX-License-Identifier: MIT */
/*
 * Reports of plans: filled by the thread that runs the plan, then read only.
 */
#include <string.h>

#include "plan/plan_internal.h"

tn_status tn__plan_report_create(const char *name, size_t room, tn__plan_report **out) {
    tn__plan_report *report = NULL;
    if (room <= (SIZE_MAX - sizeof *report) / sizeof report->reports[0])
        report = tn__zalloc(sizeof *report + room * sizeof report->reports[0]);
    if (!report)
        return tn__no_memory();
    memcpy(report->name, name, strnlen(name, sizeof report->name - 1));
    report->room = room;
    *out = report;
    return TN_OK;
}

void tn__plan_report_add(tn__plan_report *report, enum tn_phase phase, const tn_report *one) {
    TN_ASSERT(report->count < report->room);
    report->reports[report->count++] = *one;
    report->counts[phase]++;
}

void tn__plan_report_end(tn__plan_report *report, uint64_t now_ns, bool complete) {
    report->completed_at_ns = now_ns > report->started_at_ns ? now_ns : report->started_at_ns;
    report->complete = complete;
}

tn_status tn_plan_report_read(const tn_plan_report *report, tn_plan_report_info *out) {
    if (!report)
        return tn__fail(TN_ERR_KIND, "the report is NULL");
    tn_status status = tn__struct_check_out(out, sizeof(size_t) + 1, "tn_plan_report_info");
    if (status != TN_OK)
        return status;
    tn_plan_report_info info = {.size = sizeof info,
                                .plan = report->name,
                                .complete = report->complete,
                                .transition_count = report->count,
                                .reclaim_count = report->counts[TN_PHASE_RECLAIM],
                                .enter_count = report->counts[TN_PHASE_ENTER] +
                                               report->counts[TN_PHASE_EXECUTE],
                                .exit_count = report->counts[TN_PHASE_EXIT],
                                .started_at_ns = report->started_at_ns,
                                .completed_at_ns = report->completed_at_ns};
    tn__struct_out(out, &info, sizeof info);
    return TN_OK;
}

tn_status tn_plan_report_transitions(const tn_plan_report *report, tn_report *out,
                                     size_t *inout_count) {
    if (!report)
        return tn__fail(TN_ERR_KIND, "the report is NULL");
    return tn__structs_out(out, inout_count, report->reports, sizeof report->reports[0],
                           report->count, "tn_report");
}

void tn_plan_report_drop(tn_plan_report *report) { tn__free(report); }
