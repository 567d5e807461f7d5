/* SPDX-License-Identifier: MIT */
#include "account.h"

#include "base.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static bool refuse(tn_status status, const char *what) {
    char *text = status_text(status);

    complain("explain: %s: %s", what, text);
    free(text);
    return false;
}

/* ---- The explanation ---- */

static tn_status read_steps(struct account *account) {
    account->step_count = (size_t)account->info.action_count;
    account->steps = memory_new(account->step_count, sizeof *account->steps);
    account->steps[0].size = sizeof account->steps[0];
    return tn_explanation_actions(account->explanation, account->steps, &account->step_count);
}

static tn_status read_peaks(struct account *account) {
    account->peak_count = (size_t)account->info.peak_count;
    account->peaks = memory_new(account->peak_count, sizeof *account->peaks);
    return tn_explanation_peaks(account->explanation, account->peaks, &account->peak_count);
}

static tn_status read_blockers(struct account *account) {
    account->blocker_count = (size_t)account->info.blocker_count;
    account->blockers = memory_new(account->blocker_count, sizeof *account->blockers);
    return tn_explanation_blockers(account->explanation, account->blockers,
                                   &account->blocker_count);
}

static tn_status read_protected(struct account *account) {
    tn_status status =
        tn_explanation_protected(account->explanation, NULL, &account->protected_count);

    if (status != TN_OK) {
        return status;
    }
    account->protected_at = memory_new(account->protected_count, sizeof *account->protected_at);
    return tn_explanation_protected(account->explanation, account->protected_at,
                                    &account->protected_count);
}

static bool explain(struct account *account, struct scene *scene) {
    tn_status status =
        tn_manager_explain(scene->manager, scene->plan, TN_VERSION_ANY, &account->explanation);

    if (status != TN_OK) {
        return refuse(status, "no explanation");
    }
    account->info = (tn_explanation_info)TN_EXPLANATION_INFO_INIT;
    status = tn_explanation_read(account->explanation, &account->info);
    if (status == TN_OK) {
        status = read_steps(account);
    }
    if (status == TN_OK) {
        status = tn_explanation_reservations(account->explanation, &account->reservations,
                                             &account->reservation_count);
    }
    if (status == TN_OK) {
        status = read_peaks(account);
    }
    if (status == TN_OK) {
        status = read_blockers(account);
    }
    if (status == TN_OK) {
        status = read_protected(account);
    }
    account->problem = tn_explanation_problem(account->explanation);
    return status == TN_OK || refuse(status, "the explanation cannot be read");
}

bool account_refuses(const struct account *account, size_t reservation) {
    return !account->info.feasible && account->info.phase == TN_PHASE_RESERVE &&
           account->info.index == reservation;
}

bool account_reaches(const struct account *account, size_t reservation) {
    const tn_explanation_info *info = &account->info;

    if (info->feasible || info->phase > TN_PHASE_RESERVE) {
        return true;
    }
    return info->phase == TN_PHASE_RESERVE && reservation <= info->index;
}

bool account_fits(const struct account *account, const tn_predicted_peak *peak) {
    return peak->charged_bytes <= scene_budget(account->scene, peak->at) &&
           peak->charged_bytes <= INT64_MAX;
}

/* ---- The decision ---- */

static tn_status read_evictions(struct account *account, const tn_decision *decision) {
    account->eviction_count = (size_t)account->decision.eviction_count;
    account->evictions = memory_new(account->eviction_count, sizeof *account->evictions);
    account->evictions[0].size = sizeof account->evictions[0];
    return tn_decision_evictions(decision, account->evictions, &account->eviction_count);
}

static bool read_decision(struct account *account, const tn_decision *decision) {
    tn_status status = TN_OK;

    account->decided = true;
    account->decision = (tn_decision_info)TN_DECISION_INFO_INIT;
    status = tn_decision_read(decision, &account->decision);
    if (status == TN_OK) {
        status = read_evictions(account, decision);
    }
    if (status == TN_OK) {
        status = tn_decision_config(decision, &account->config, &account->config_count);
    }
    if (status == TN_OK) {
        status = tn_request_requirements(tn_decision_request(decision), &account->required,
                                         &account->required_count);
    }
    return status == TN_OK || refuse(status, "the decision cannot be read");
}

/* ---- The run ---- */

static tn_status read_report(struct run *run, const tn_plan_report *report) {
    tn_plan_report_info info = TN_PLAN_REPORT_INFO_INIT;
    tn_status status = tn_plan_report_read(report, &info);

    if (status != TN_OK) {
        return status;
    }
    run->phase_count[TN_PHASE_RECLAIM] = info.reclaim_count;
    run->phase_count[TN_PHASE_ENTER] = info.enter_count;
    run->phase_count[TN_PHASE_EXIT] = info.exit_count;
    run->transition_count = (size_t)info.transition_count;
    run->transitions = memory_new(run->transition_count, sizeof *run->transitions);
    run->transitions[0].size = sizeof run->transitions[0];
    return tn_plan_report_transitions(report, run->transitions, &run->transition_count);
}

static void note_failure(struct run *run, tn_status status, const char *doing) {
    if (status != TN_OK && run->failed == NULL) {
        run->status = status;
        run->failed = doing;
        run->text = status_text(status);
    }
}

static void enter_and_close(struct run *run, tn_scope *scope) {
    tn_status status = tn_scope_enter(scope);

    note_failure(run, status, "entering");
    if (status == TN_OK) {
        note_failure(run, tn_scope_close(scope), "closing");
    }
}

static bool run_plan(struct account *account, struct scene *scene) {
    struct run *run = &account->run;
    tn_scope *scope = NULL;
    const tn_plan_report *report = NULL;
    tn_status status = tn_scope_create(scene->manager, scene->plan, NULL, &scope);

    if (status != TN_OK) {
        return refuse(status, "no scope");
    }
    account->has_run = true;
    enter_and_close(run, scope);
    status = run->failed == NULL ? tn_scope_report(scope, &report)
                                 : tn_scope_partial_report(scope, &report);
    if (status == TN_OK && report != NULL) {
        status = read_report(run, report);
    }
    if (status == TN_OK) {
        status = tn_scope_destroy(scope);
    }
    return status == TN_OK || refuse(status, "the report cannot be read");
}

/* ---- All of it ---- */

bool account_take(struct account *account, struct scene *scene, bool runs) {
    account->scene = scene;
    return explain(account, scene) &&
           (scene->decision == NULL || read_decision(account, scene->decision)) &&
           (!runs || run_plan(account, scene));
}

void account_fini(struct account *account) {
    tn_explanation_drop(account->explanation);
    free(account->steps);
    free(account->peaks);
    free(account->blockers);
    free(account->protected_at);
    free(account->evictions);
    free(account->run.text);
    free(account->run.transitions);
    *account = (struct account){0};
}

/* ---- Words ---- */

#define WORD(words, number)                                                                        \
    ((number) < sizeof(words) / sizeof(words)[0] ? (words)[number] : "unknown")

const char *phase_word(uint32_t phase) {
    static const char *const words[] = {"none", "execute", "reclaim", "reserve", "enter", "exit"};

    return WORD(words, phase);
}

const char *action_word(uint32_t kind) {
    static const char *const words[] = {"none", "ensure", "move", "drop", "discard"};

    return WORD(words, kind);
}

const char *reason_word(uint32_t reason) {
    static const char *const words[] = {"none",
                                        "already resident",
                                        "already at destination",
                                        "already absent",
                                        "handle foreign",
                                        "handle unknown",
                                        "handle discarded",
                                        "location invalid",
                                        "exclusive",
                                        "source not resident",
                                        "source protected",
                                        "protected",
                                        "discard protected",
                                        "last copy",
                                        "no source",
                                        "budget",
                                        "reservation budget",
                                        "storage shared"};

    return WORD(words, reason);
}

const char *verdict_word(uint32_t verdict) {
    static const char *const words[] = {"none",         "fits now", "after eviction",
                                        "after leases", "blocked",  "never"};

    return WORD(words, verdict);
}

const char *eviction_word(uint32_t reason) {
    static const char *const words[] = {"none", "replica remains", "source rebuilds",
                                        "moved to required", "moved to tier"};

    return WORD(words, reason);
}

const char *blocker_word(uint32_t kind) {
    static const char *const words[] = {"none", "lease",       "pending lease",
                                        "hold", "reservation", "plan"};

    return WORD(words, kind);
}

struct location_text location_text(tn_location at, const char *none) {
    struct location_text name;

    if (at.kind == TN_LOCATION_NONE || tn_location_name(at, name.text, sizeof name.text) != TN_OK) {
        snprintf(name.text, sizeof name.text, "%s", none);
    }
    return name;
}
