/* SPDX-License-Identifier: MIT */
#include "base.h"
#include "explain.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- A table whose columns are as wide as they must be ---- */

enum { COLUMNS = 8, INDENT = 4 };

struct row {
    char *cells[COLUMNS]; /* owned; NULL: empty */
};

struct grid {
    struct row *rows;
    size_t count, capacity;
};

static const char *cell(const struct row *row, int column) {
    return row->cells[column] == NULL ? "" : row->cells[column];
}

/* Characters, not bytes: names may be any UTF-8. */
static int width_of(const char *text) {
    int width = 0;

    for (; *text != '\0'; text++) {
        width += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return width;
}

static struct row *grid_add(struct grid *grid) {
    grid->rows = memory_reserve(grid->rows, &grid->capacity, grid->count + 1, sizeof *grid->rows);
    grid->rows[grid->count] = (struct row){{NULL}};
    return &grid->rows[grid->count++];
}

static bool is_number(const char *text) {
    return *text != '\0' && text[strspn(text, "0123456789")] == '\0';
}

/* Whether all below the head is numbers, which stand on the right. */
static bool is_numeric(const struct grid *grid, int column) {
    for (size_t i = 1; i < grid->count; i++) {
        if (!is_number(cell(&grid->rows[i], column))) {
            return false;
        }
    }
    return grid->count > 1;
}

static void print_cell(const char *text, int width, bool right, bool last) {
    int blank = width - width_of(text);

    if (right) {
        printf("%*s%s", blank, "", text);
    } else {
        printf("%s%*s", text, last ? 0 : blank, "");
    }
    fputs(last ? "\n" : "  ", stdout);
}

static void print_row(const struct row *row, const int width[COLUMNS], const bool right[COLUMNS]) {
    int last = COLUMNS - 1;

    while (last > 0 && *cell(row, last) == '\0') {
        last--;
    }
    printf("%*s", INDENT, "");
    for (int column = 0; column <= last; column++) {
        const char *text = cell(row, column);

        print_cell(text, width[column], right[column] || is_number(text), column == last);
    }
}

/* Prints and frees it. */
static void grid_print(struct grid *grid) {
    int width[COLUMNS] = {0};
    bool right[COLUMNS];

    for (int column = 0; column < COLUMNS; column++) {
        right[column] = is_numeric(grid, column);
        for (size_t i = 0; i < grid->count; i++) {
            int its = width_of(cell(&grid->rows[i], column));

            width[column] = its > width[column] ? its : width[column];
        }
    }
    for (size_t i = 0; i < grid->count; i++) {
        print_row(&grid->rows[i], width, right);
        for (int column = 0; column < COLUMNS; column++) {
            free(grid->rows[i].cells[column]);
        }
    }
    free(grid->rows);
}

static char *number(uint64_t value) { return text_format("%" PRIu64, value); }

static char *location(tn_location at) { return text_copy(location_text(at, "-").text); }

/* ---- Steps ---- */

static void add_head(struct grid *grid) {
    static const char *const heads[COLUMNS] = {"phase", "#",  "action", "value",
                                               "from",  "to", "bytes",  "what"};
    struct row *row = grid_add(grid);

    for (int column = 0; column < COLUMNS; column++) {
        row->cells[column] = text_copy(heads[column]);
    }
}

static char *outcome(const tn_action_explanation *step) {
    if (step->no_op) {
        return text_format("no-op: %s", reason_word(step->reason));
    }
    return step->executable ? text_copy("runs")
                            : text_format("REFUSED: %s", reason_word(step->reason));
}

static void add_step(struct grid *grid, const struct account *account,
                     const tn_action_explanation *step) {
    *grid_add(grid) = (struct row){{text_copy(phase_word(step->phase)), number(step->index),
                                    text_copy(action_word(step->action.kind)),
                                    text_copy(scene_name(account->scene, step->action.handle)),
                                    location(step->source), location(step->destination),
                                    number(step->logical_bytes), outcome(step)}};
}

static void add_reservation(struct grid *grid, const struct account *account, size_t index) {
    const tn_reservation_spec *wanted = &account->reservations[index];
    const char *what = "runs";

    if (account_refuses(account, index)) {
        what = "REFUSED: reservation budget";
    } else if (!account_reaches(account, index)) {
        what = "not reached";
    }
    *grid_add(grid) = (struct row){{text_copy("reserve"), number(index), text_copy("reserve"),
                                    text_printable(wanted->label), text_copy("-"),
                                    location(wanted->at), number(wanted->bytes), text_copy(what)}};
}

static void print_steps(const struct account *account) {
    struct grid grid = {0};
    size_t next = 0;

    add_head(&grid);
    for (; next < account->step_count && account->steps[next].phase == TN_PHASE_RECLAIM; next++) {
        add_step(&grid, account, &account->steps[next]);
    }
    for (size_t i = 0; i < account->reservation_count; i++) {
        add_reservation(&grid, account, i);
    }
    for (; next < account->step_count; next++) {
        add_step(&grid, account, &account->steps[next]);
    }
    printf("  steps\n");
    grid_print(&grid);
}

/* ---- Peaks ---- */

static void print_peaks(const struct account *account) {
    struct grid grid = {0};

    *grid_add(&grid) =
        (struct row){{text_copy("location"), text_copy("peak"), text_copy("budget")}};
    for (size_t i = 0; i < account->peak_count; i++) {
        const tn_predicted_peak *peak = &account->peaks[i];
        uint64_t budget = scene_budget(account->scene, peak->at);

        *grid_add(&grid) =
            (struct row){{location(peak->at), number(peak->charged_bytes),
                          budget == UINT64_MAX ? text_copy("unlimited") : number(budget),
                          text_copy(account_fits(account, peak) ? "" : "EXCEEDED")}};
    }
    printf("  predicted peaks\n");
    grid_print(&grid);
}

/* ---- The verdict ---- */

static char *blocker_name(const struct account *account, const tn_blocker *blocker) {
    switch (blocker->kind) {
    case TN_BLOCKER_RESERVATION:
        return text_printable(blocker->label);
    case TN_BLOCKER_PLAN:
        return text_copy("-");
    default:
        return text_copy(scene_name(account->scene, blocker->handle));
    }
}

static void print_blockers(const struct account *account) {
    struct grid grid = {0};

    if (account->blocker_count == 0) {
        return;
    }
    *grid_add(&grid) = (struct row){{text_copy("blocker"), text_copy("name"), text_copy("at"),
                                     text_copy("count"), text_copy("bytes")}};
    for (size_t i = 0; i < account->blocker_count; i++) {
        const tn_blocker *blocker = &account->blockers[i];

        *grid_add(&grid) =
            (struct row){{text_copy(blocker_word(blocker->kind)), blocker_name(account, blocker),
                          location(blocker->at), number(blocker->count), number(blocker->bytes)}};
    }
    printf("  in the way\n");
    grid_print(&grid);
}

static void print_problem(const struct account *account) {
    const tn_explanation_info *info = &account->info;
    const tn_error *problem = account->problem;

    printf("  first problem        %s %" PRIu64 ": %s\n", phase_word(info->phase), info->index,
           reason_word(info->reason));
    if (problem != NULL) {
        char *message = text_printable(problem->message);

        printf("                       %s: %s\n", tn_status_name((tn_status)problem->status),
               message);
        free(message);
    }
    if (info->missing_bytes > 0) {
        printf("  missing              %" PRIu64 " bytes; %" PRIu64 " bytes there can be evicted\n",
               info->missing_bytes, info->evictable_bytes);
    }
    for (size_t i = 0; i < account->protected_count; i++) {
        printf("  protected            %s\n", location_text(account->protected_at[i], "-").text);
    }
}

static void print_required(const struct account *account) {
    struct grid grid = {0};

    *grid_add(&grid) = (struct row){{text_copy("required"), text_copy("at")}};
    for (size_t i = 0; i < account->required_count; i++) {
        const tn_requirement *required = &account->required[i];

        *grid_add(&grid) = (struct row){
            {text_copy(scene_name(account->scene, required->handle)), location(required->at)}};
    }
    printf("  request\n");
    grid_print(&grid);
}

static void print_decision(const struct account *account) {
    struct grid grid = {0};

    print_required(account);
    printf("  policy               %s\n", account->decision.policy);
    for (size_t i = 0; i < account->config_count; i++) {
        printf("    %-18s %s\n", account->config[i].key, account->config[i].value);
    }
    printf("  decided at version   %" PRIu64 "\n", account->decision.expected_version);
    printf("  explored states      %" PRIu64 "\n", account->decision.explored_states);
    printf("  evictions            %zu\n", account->eviction_count);
    if (account->eviction_count == 0) {
        return;
    }
    *grid_add(&grid) =
        (struct row){{text_copy("#"), text_copy("action"), text_copy("value"), text_copy("at"),
                      text_copy("to"), text_copy("bytes"), text_copy("rank"), text_copy("reason")}};
    for (size_t i = 0; i < account->eviction_count; i++) {
        const tn_eviction *eviction = &account->evictions[i];
        bool moves = eviction->action.kind == TN_ACTION_MOVE;

        *grid_add(&grid) =
            (struct row){{number(i), text_copy(action_word(eviction->action.kind)),
                          text_copy(scene_name(account->scene, eviction->action.handle)),
                          location(eviction->released_at),
                          moves ? location(eviction->action.at) : text_copy("-"),
                          number(eviction->released_bytes), number(eviction->rank),
                          text_copy(eviction_word(eviction->reason))}};
    }
    grid_print(&grid);
}

static void print_run(const struct account *account) {
    const struct run *run = &account->run;
    struct grid grid = {0};

    printf("  run                  %s, %zu transitions: %" PRIu64 " reclaim, %" PRIu64
           " enter, %" PRIu64 " exit\n",
           run->failed == NULL ? "entered and closed" : "failed", run->transition_count,
           run->phase_count[TN_PHASE_RECLAIM], run->phase_count[TN_PHASE_ENTER],
           run->phase_count[TN_PHASE_EXIT]);
    if (run->failed != NULL) {
        char *text = text_printable(run->text);

        printf("                       %s it: %s\n", run->failed, text);
        free(text);
    }
    for (size_t i = 0; i < run->transition_count; i++) {
        const tn_report *report = &run->transitions[i];

        *grid_add(&grid) = (struct row){
            {text_copy(action_word(report->action.kind)),
             text_copy(scene_name(account->scene, report->action.handle)), location(report->source),
             location(report->destination), number(report->logical_bytes),
             report->no_op ? text_format("no-op: %s", reason_word(report->reason))
                           : text_copy("done")}};
    }
    grid_print(&grid);
}

void explain_print(const struct account *account) {
    const tn_explanation_info *info = &account->info;
    char *plan = text_printable(info->plan);

    printf("tenure explain, plan \"%s\"\n", plan);
    free(plan);
    printf("  feasible             %s\n", info->feasible ? "yes" : "NO");
    printf("  verdict              %s\n", verdict_word(info->verdict));
    if (!info->feasible) {
        print_problem(account);
    }
    print_blockers(account);
    if (account->decided) {
        print_decision(account);
    }
    print_steps(account);
    print_peaks(account);
    if (account->has_run) {
        print_run(account);
    }
}
