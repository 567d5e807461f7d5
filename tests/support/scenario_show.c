/* SPDX-License-Identifier: MIT */
/* What was decided, written in the notation of scenario.h. */
#include "scenario_text.h"

#include <inttypes.h>
#include <stdio.h>

const char *scenario_name(const world *w, tn_handle h) {
    for (size_t i = 0; i < w->count; i++)
        if (tn_handle_equal(w->values[i].h, h))
            return w->values[i].name;
    return "?";
}

static void put_action(FILE *o, const world *w, const tn_action *a) {
    const char *name = scenario_name(w, a->handle);

    if (a->kind == TN_ACTION_MOVE)
        fprintf(o, "move %s %s->%s", name, text_at(a->from), text_at(a->at));
    else
        fprintf(o, "%s %s@%s",
                a->kind == TN_ACTION_DROP     ? "drop"
                : a->kind == TN_ACTION_ENSURE ? "ensure"
                                              : "neither",
                name, text_at(a->at));
}

static const char *reason_text(uint32_t reason) {
    static const char *const texts[] = {"no reason", "replica remains", "source rebuilds",
                                        "to required", "to tier"};

    return reason < sizeof(texts) / sizeof(texts[0]) ? texts[reason] : "unknown reason";
}

tn_eviction *scenario_evictions(const tn_decision *d, size_t *count) {
    tn_eviction *rows;

    *count = 0;
    assert_ok(tn_decision_evictions(d, NULL, count));
    rows = calloc(*count + 1, sizeof(*rows));
    assert_non_null(rows);
    rows[0].size = sizeof(*rows);
    assert_ok(tn_decision_evictions(d, rows, count));
    return rows;
}

static FILE *text_open(char **text, size_t *size) {
    FILE *o = open_memstream(text, size);

    assert_non_null(o);
    return o;
}

char *world_reclaim(const world *w, const tn_decision *d) {
    size_t count, size;
    tn_eviction *rows = scenario_evictions(d, &count);
    char *text = NULL;
    FILE *o = text_open(&text, &size);

    for (size_t i = 0; i < count; i++) {
        fputs(i != 0 ? "; " : "", o);
        put_action(o, w, &rows[i].action);
        fprintf(o, " (rank %" PRIu64 ", %" PRIu64 " at %s, %s)", rows[i].rank,
                rows[i].released_bytes, text_at(rows[i].released_at), reason_text(rows[i].reason));
    }
    assert_int_equal(fclose(o), 0);
    free(rows);
    return text;
}

char *world_entry(const world *w, const tn_decision *d) {
    const tn_action *actions = NULL;
    size_t count = 0, size;
    char *text = NULL;
    FILE *o = text_open(&text, &size);

    assert_ok(tn_plan_actions(tn_decision_plan(d), TN_PHASE_ENTER, &actions, &count));
    for (size_t i = 0; i < count; i++) {
        fputs(i != 0 ? "; " : "", o);
        put_action(o, w, &actions[i]);
    }
    assert_int_equal(fclose(o), 0);
    return text;
}

size_t scenario_peaks(const tn_decision *d, tn_predicted_peak out[PEAKS_MAX]) {
    size_t count = PEAKS_MAX;

    assert_ok(tn_explanation_peaks(tn_decision_explanation(d), out, &count));
    assert_true(count <= PEAKS_MAX);
    return count;
}

char *world_peaks(const world *w, const tn_decision *d) {
    tn_predicted_peak rows[PEAKS_MAX];
    size_t count = scenario_peaks(d, rows), size;
    char *text = NULL;
    FILE *o = text_open(&text, &size);

    (void)w;
    for (size_t i = 0; i < count; i++)
        fprintf(o, "%s%s=%" PRIu64, i != 0 ? ", " : "", text_at(rows[i].at), rows[i].charged_bytes);
    assert_int_equal(fclose(o), 0);
    return text;
}

char *world_refusal(const world *w) {
    const tn_error *e = tn_last_error();
    char *text = NULL;
    size_t size;
    FILE *o = text_open(&text, &size);

    fprintf(o, "%" PRIu64 " at %s, ", e->requested_bytes, text_at(e->at));
    if (e->phase == TN_PHASE_RESERVE)
        fprintf(o, "reservation %" PRIu64, e->failed_index + 1);
    else
        fprintf(o, "%s of %s", strstr(e->message, "source") != NULL ? "source" : "materialization",
                scenario_name(w, e->handle));
    fprintf(o, "; budget %" PRIu64 ", used %" PRIu64 ", reserved %" PRIu64, e->budget_bytes,
            e->used_bytes, e->reserved_bytes);
    assert_int_equal(fclose(o), 0);
    return text;
}

static void put_blocker(FILE *o, const world *w, const tn_blocker *b) {
    static const char *const kinds[] = {"none", "lease", "pending", "hold", "reservation", "plan"};

    assert_true(b->kind < sizeof(kinds) / sizeof(kinds[0]));
    fprintf(o, ", %s", kinds[b->kind]);
    if (b->kind == TN_BLOCKER_RESERVATION)
        fprintf(o, " %s", b->label);
    else if (b->kind != TN_BLOCKER_PLAN)
        fprintf(o, " of %s", scenario_name(w, b->handle));
}

char *world_verdict(const world *w) {
    static const char *const verdicts[] = {"unknown",      "fits",    "after eviction",
                                           "after leases", "blocked", "never"};
    const tn_error *e = tn_last_error();
    char *text = NULL;
    size_t size;
    FILE *o = text_open(&text, &size);

    assert_true(e->verdict < sizeof(verdicts) / sizeof(verdicts[0]));
    fprintf(o, "%s, %" PRIu64 " missing", verdicts[e->verdict], e->missing_bytes);
    for (size_t i = 0; i < e->blocker_count && i < TN_ERROR_OWNERS_MAX; i++)
        put_blocker(o, w, &e->blockers[i]);
    assert_int_equal(fclose(o), 0);
    return text;
}

char *world_limit(const world *w) {
    const tn_error *e = tn_last_error();
    char *text = NULL;
    size_t size;
    FILE *o = text_open(&text, &size);

    (void)w;
    fprintf(o, "limit %" PRIu64 ", explored %" PRIu64 ", ", e->expected, e->actual);
    if (e->at.kind == TN_LOCATION_NONE)
        fputs("walking", o);
    else
        fprintf(o, "room at %s", text_at(e->at));
    assert_int_equal(fclose(o), 0);
    return text;
}
