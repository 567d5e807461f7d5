/* SPDX-License-Identifier: MIT */
/* What a scenario expects, against what was decided and done; see scenario.h. */
#include "scenario_text.h"

#include <inttypes.h>
#include <stdio.h>

static void expect_text(const char *what, char *got, const char *want) {
    if (strcmp(got, want != NULL ? want : "") != 0) {
        print_error("%s: %s\nexpected: %s\n", what, got, want != NULL ? want : "");
        fail();
    }
    free(got);
}

/* ---- Checks ----------------------------------------------------------------------------------- */

static void check_resident(const world *w, const char *name, const char *places) {
    tn_handle h = world_handle(w, name);
    bool nowhere = strcmp(places, "-") == 0;
    char at[TEXT_MAX];
    size_t count = nowhere ? 0 : text_parts(places, ',');

    assert_int_equal(replicas(w->m, h), count);
    while (!nowhere && text_part(&places, ',', at))
        if (!resident(w->m, h, world_at(at))) {
            print_error("%s is not at %s\n", name, at);
            fail();
        }
}

static void check_one(const world *w, const char *text) {
    char at[8], name[16], places[64];
    uint64_t a, b;
    int end = 0;

    if (sscanf(text, "%7[HPD0-9]=%" SCNu64 "+%" SCNu64 "%n", at, &a, &b, &end) == 3) {
        assert_int_equal(used(w->m, world_at(at)), a);
        assert_int_equal(reserved(w->m, world_at(at)), b);
    } else if (sscanf(text, "%7[HPD0-9]^%" SCNu64 "%n", at, &a, &end) == 2) {
        assert_int_equal(peaks(w->m, world_at(at)).charged, a);
    } else if (sscanf(text, "%15[a-z0-9]@%63s%n", name, places, &end) == 2) {
        check_resident(w, name, places);
    } else if (sscanf(text, "%15[a-z0-9] loads %" SCNu64 "%n", name, &a, &end) == 2) {
        assert_non_null(world_value_of(w, name)->source);
        assert_int_equal(atomic_load(&world_value_of(w, name)->source->calls), a);
    } else {
        text_bad("a check", text);
    }
    if (text[end] != '\0')
        text_bad("a check", text);
}

void world_check(const world *w, const char *checks) {
    char text[TEXT_MAX];

    while (text_part(&checks, ';', text))
        check_one(w, text);
}

/* ---- Decisions -------------------------------------------------------------------------------- */

static bool same_action(const tn_action *a, const tn_action *b) {
    return a->kind == b->kind && tn_handle_equal(a->handle, b->handle) &&
           tn_location_equal(a->at, b->at) && tn_location_equal(a->from, b->from);
}

/* C107, C112, C114. */
static void expect_evictions(const world *w, const tn_decision *d) {
    const tn_action *actions = NULL;
    size_t count, action_count = 0;
    tn_eviction *rows = scenario_evictions(d, &count);

    assert_ok(tn_plan_actions(tn_decision_plan(d), TN_PHASE_RECLAIM, &actions, &action_count));
    assert_int_equal(count, action_count);
    for (size_t i = 0; i < count; i++) {
        bool moved = rows[i].action.kind == TN_ACTION_MOVE;

        assert_true(moved || rows[i].action.kind == TN_ACTION_DROP);
        assert_true(same_action(&rows[i].action, &actions[i]));
        assert_at(rows[i].released_at, moved ? actions[i].from : actions[i].at);
        assert_int_equal(rows[i].released_bytes,
                         world_value_of(w, scenario_name(w, actions[i].handle))->charge);
        assert_int_equal(rows[i].reserved0, 0);
    }
    free(rows);
}

/* The plan's reservations are the request's; nothing is done at exit (C47, C107). */
static void expect_plan(const tn_decision *d) {
    const tn_plan *plan = tn_decision_plan(d);
    const tn_reservation_spec *of_plan = NULL, *of_request = NULL;
    const tn_action *actions = NULL;
    size_t count = 0, wanted = 0;

    assert_string_equal(tn_plan_name(plan), tn_request_name(tn_decision_request(d)));
    assert_ok(tn_plan_reservations(plan, &of_plan, &count));
    assert_ok(tn_request_reservations(tn_decision_request(d), &of_request, &wanted));
    assert_int_equal(count, wanted);
    for (size_t i = 0; i < count; i++) {
        assert_at(of_plan[i].at, of_request[i].at);
        assert_int_equal(of_plan[i].bytes, of_request[i].bytes);
        assert_string_equal(of_plan[i].label, of_request[i].label);
    }
    assert_ok(tn_plan_actions(plan, TN_PHASE_EXIT, &actions, &count));
    assert_int_equal(count, 0);
}

/* Every action of one part is explained, as something to do (C109). */
static size_t expect_explained(const tn_decision *d, uint32_t phase,
                               const tn_action_explanation *rows) {
    const tn_action *actions = NULL;
    size_t count = 0;

    assert_ok(tn_plan_actions(tn_decision_plan(d), phase, &actions, &count));
    for (size_t i = 0; i < count; i++) {
        assert_true(same_action(&rows[i].action, &actions[i]));
        assert_int_equal(rows[i].phase, phase);
        assert_int_equal(rows[i].index, i);
        assert_int_equal(rows[i].executable, 1);
        assert_int_equal(rows[i].no_op, 0);
    }
    return count;
}

static void expect_explanation(const tn_decision *d) {
    const tn_explanation *e = tn_decision_explanation(d);
    tn_explanation_info head = TN_EXPLANATION_INFO_INIT;
    tn_action_explanation *rows;
    size_t count = 0, reclaim;

    assert_ok(tn_explanation_read(e, &head));
    assert_int_equal(head.feasible, 1);
    assert_string_equal(head.plan, tn_plan_name(tn_decision_plan(d)));
    assert_ok(tn_explanation_actions(e, NULL, &count));
    rows = calloc(count + 1, sizeof(*rows));
    assert_non_null(rows);
    rows[0].size = sizeof(*rows);
    assert_ok(tn_explanation_actions(e, rows, &count));
    reclaim = expect_explained(d, TN_PHASE_RECLAIM, rows);
    assert_int_equal(count, reclaim + expect_explained(d, TN_PHASE_ENTER, rows + reclaim));
    free(rows);
}

/* C111, C160. */
static void expect_head(const world *w, const tn_decision *d) {
    tn_decision_info head = TN_DECISION_INFO_INIT;
    size_t count;

    assert_ok(tn_decision_read(d, &head));
    assert_int_equal(head.manager, info(w->m).manager);
    assert_int_equal(head.expected_version, version(w->m));
    assert_string_equal(head.policy, tn_policy_name(tn_controller_policy(w->controller)));
    free(scenario_evictions(d, &count));
    assert_int_equal(head.eviction_count, count);
    if (w->of.dead_ends)
        assert_in_range(head.explored_states, 1, w->of.explored);
    else
        assert_int_equal(head.explored_states, w->of.explored);
}

void world_expect(const world *w, const tn_decision *d) {
    expect_text("reclaim", world_reclaim(w, d), w->of.reclaim);
    expect_text("entry", world_entry(w, d), w->of.entry);
    expect_text("peaks", world_peaks(w, d), w->of.peaks);
    expect_head(w, d);
    expect_evictions(w, d);
    expect_plan(d);
    expect_explanation(d);
}

static void expect_refused(world *w) {
    const tn_error *e = tn_last_error();

    assert_int_equal(e->status, TN_ERR_PLAN);
    assert_int_equal(e->cause_status, TN_ERR_BUDGET);
    assert_string_equal(e->plan, "request");
    assert_non_null(strstr(e->message, "infeasible"));
    assert_null(strstr(e->message, "inconclusive"));
    expect_text("refused", world_refusal(w), w->of.refused);
    if (w->of.verdict != NULL)
        expect_text("verdict", world_verdict(w), w->of.verdict);
}

/* C98. */
static void expect_limited(world *w) {
    const tn_error *e = tn_last_error();

    assert_int_equal(e->status, TN_ERR_SEARCH_LIMIT);
    assert_string_equal(e->plan, "request");
    assert_non_null(strstr(e->message, "inconclusive"));
    assert_null(strstr(e->message, "infeasible"));
    expect_text("limited", world_limit(w), w->of.limited);
}

static tn_decision *decide_once(world *w) {
    tn_decision *d = NULL;
    tn_status status = world_decide(w, &d);

    if (w->of.refused != NULL) {
        assert_status(status, TN_ERR_PLAN);
        expect_refused(w);
    } else if (w->of.limited != NULL) {
        assert_status(status, TN_ERR_SEARCH_LIMIT);
        expect_limited(w);
    } else {
        if (status != TN_OK)
            print_error("decide: %s\n", tn_last_error()->message);
        assert_ok(status);
        world_expect(w, d);
    }
    return d;
}

/* Calls of all sources. */
static uint64_t loads(const world *w) {
    uint64_t sum = 0;

    for (size_t i = 0; i < w->count; i++)
        if (w->values[i].source != NULL)
            sum += atomic_load(&w->values[i].source->calls);
    return sum;
}

tn_decision *world_decide_as_expected(world *w) {
    char *before = spec_describe(w->m, 0);
    uint64_t loaded = loads(w);
    tn_decision *first = decide_once(w);
    tn_decision *d = decide_once(w); /* C57, C99: nothing is left of the first */

    assert_unchanged(w->m, before, 0);
    assert_int_equal(loads(w), loaded); /* C50 */
    tn_decision_drop(first);
    return d;
}

/* ---- Execution -------------------------------------------------------------------------------- */

static uint64_t peak_now(const world *w, tn_location at) {
    tn_location rows[WORLD_DEVICES + 2];
    size_t count = WORLD_DEVICES + 2;

    assert_ok(tn_manager_locations(w->m, rows, &count));
    assert_true(count <= WORLD_DEVICES + 2);
    for (size_t i = 0; i < count; i++)
        if (tn_location_equal(rows[i], at))
            return peaks(w->m, at).charged;
    return 0;
}

/* Reclaim first, then entry, each of them done (C107, C144). */
static void expect_report(const tn_decision *d, tn_scope *scope) {
    const tn_plan_report *report = NULL;
    const tn_action *parts[2] = {NULL, NULL};
    size_t counts[2] = {0, 0}, count = 0;
    tn_report *rows;

    assert_ok(tn_plan_actions(tn_decision_plan(d), TN_PHASE_RECLAIM, &parts[0], &counts[0]));
    assert_ok(tn_plan_actions(tn_decision_plan(d), TN_PHASE_ENTER, &parts[1], &counts[1]));
    assert_ok(tn_scope_report(scope, &report));
    assert_non_null(report);
    assert_ok(tn_plan_report_transitions(report, NULL, &count));
    assert_int_equal(count, counts[0] + counts[1]);
    rows = calloc(count + 1, sizeof(*rows));
    assert_non_null(rows);
    rows[0].size = sizeof(*rows);
    assert_ok(tn_plan_report_transitions(report, rows, &count));
    for (size_t i = 0; i < count; i++) {
        const tn_action *a = i < counts[0] ? &parts[0][i] : &parts[1][i - counts[0]];

        assert_true(same_action(&rows[i].action, a));
        assert_int_equal(rows[i].no_op, 0);
    }
    free(rows);
}

static void expect_resident(const world *w, const tn_decision *d) {
    const tn_requirement *rows = NULL;
    size_t count = 0;

    assert_ok(tn_request_requirements(tn_decision_request(d), &rows, &count));
    for (size_t i = 0; i < count; i++)
        assert_true(resident(w->m, rows[i].handle, rows[i].at));
}

void world_execute(world *w, const tn_decision *d) {
    tn_predicted_peak rows[PEAKS_MAX];
    size_t count = scenario_peaks(d, rows);
    tn_scope *scope = NULL;
    uint64_t reserved_before = info(w->m).reservation_count;

    for (size_t i = 0; i < count; i++)
        if (peak_now(w, rows[i].at) > rows[i].charged_bytes)
            rows[i].charged_bytes = peak_now(w, rows[i].at);
    assert_ok(tn_controller_scope(w->controller, d, NULL, 0, &scope));
    assert_ok(tn_scope_enter(scope));
    expect_resident(w, d);
    world_check(w, w->of.inside);
    assert_ok(tn_scope_close(scope));
    expect_resident(w, d); /* C146 */
    expect_report(d, scope);
    assert_int_equal(info(w->m).reservation_count, reserved_before);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(peak_now(w, rows[i].at), rows[i].charged_bytes);
    world_check(w, w->of.after);
    assert_ok(tn_scope_destroy(scope));
}

void scenario_run(struct spec *f, const scenario *of) {
    world *w = world_begin(f, of);
    tn_decision *d = world_decide_as_expected(w);

    if (d != NULL)
        world_execute(w, d);
    tn_decision_drop(d);
    world_end(w);
}
