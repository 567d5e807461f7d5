/* SPDX-License-Identifier: MIT */
#include "spec_scope_common.h"

#include <inttypes.h>

/* ---- Plans and scopes ----------------------------------------------------------------------- */

tn_plan *scope_plan(const tn_plan_spec *spec) {
    tn_plan *plan = NULL;

    assert_ok(tn_plan_create(spec, &plan));
    assert_non_null(plan);
    return plan;
}

tn_scope *scope_make(tn_manager *m, const tn_run_options *options, const tn_plan_spec *spec) {
    tn_plan *plan = scope_plan(spec);
    tn_scope *s = NULL;

    assert_ok(tn_scope_create(m, plan, options, &s));
    assert_non_null(s);
    tn_plan_destroy(plan); /* the scope keeps it */
    assert_false(tn_scope_active(s));
    return s;
}

void destroy_scope(tn_scope *s) { assert_ok(tn_scope_destroy(s)); }

void close_scope(tn_scope *s) {
    assert_ok(tn_scope_close(s));
    assert_false(tn_scope_active(s));
    destroy_scope(s);
}

tn_run_options scope_expect(uint64_t version) {
    tn_run_options options = TN_RUN_OPTIONS_INIT;

    options.expected_version = version;
    return options;
}

tn_handle scope_failing(struct spec *f, tn_manager *m) {
    tt_source *source = spec_source(f);

    source->fail_from = 1;
    source->fail_count = 1000000;
    source->fail_code = 77;
    source->fail_message = "nothing to read";
    return register_src(m, source);
}

/* ---- What a scope says ---------------------------------------------------------------------- */

const tn_plan_report *scope_report(const tn_scope *s) {
    const tn_plan_report *report = NULL;

    assert_ok(tn_scope_report(s, &report));
    return report;
}

const tn_plan_report *scope_partial(const tn_scope *s) {
    const tn_plan_report *report = NULL;

    assert_ok(tn_scope_partial_report(s, &report));
    return report;
}

const tn_error *scope_exit_error(const tn_scope *s) {
    const tn_error *error = NULL;

    assert_ok(tn_scope_exit_error(s, &error));
    return error;
}

size_t scope_reservations(const tn_scope *s) {
    size_t count = 0;

    assert_ok(tn_scope_reservations(s, NULL, &count));
    return count;
}

tn_reservation scope_reservation(const tn_scope *s, size_t i) {
    tn_reservation all[8];
    size_t count = 8;

    assert_ok(tn_scope_reservations(s, all, &count));
    assert_true(count <= 8 && i < count);
    return all[i];
}

void assert_no_news(const tn_scope *s) {
    assert_null(scope_report(s));
    assert_null(scope_partial(s));
    assert_null(scope_exit_error(s));
}

/* ---- Assertions ------------------------------------------------------------------------------ */

static bool same_action(const tn_action *a, const tn_action *b) {
    return a->kind == b->kind && tn_handle_equal(a->handle, b->handle) &&
           tn_location_equal(a->at, b->at) && tn_location_equal(a->from, b->from);
}

static void expect_head(const tn_plan_report_info *head, const uint64_t *parts, size_t count) {
    assert_int_equal(head->reclaim_count, parts[0]);
    assert_int_equal(head->enter_count, parts[1]);
    assert_int_equal(head->exit_count, parts[2]);
    assert_int_equal(head->transition_count, count);
    assert_int_equal(head->reserved0, 0);
    assert_non_null(head->plan);
    assert_true(head->started_at_ns > 0);
    assert_true(head->completed_at_ns >= head->started_at_ns);
}

void scope_assert_transitions(const tn_plan_report *report, const uint64_t *parts,
                              const tn_action *actions, size_t count, const char *file, int line) {
    tn_plan_report_info head = TN_PLAN_REPORT_INFO_INIT;
    tn_report rows[17] = {TN_REPORT_INIT};
    size_t got = 16;

    assert_non_null(report);
    assert_ok(tn_plan_report_read(report, &head));
    assert_ok(tn_plan_report_transitions(report, rows, &got));
    if (got != count) {
        print_error("%zu transitions, expected %zu\n", got, count);
        _fail(file, line);
    }
    expect_head(&head, parts, count);
    for (size_t i = 0; i < count; i++) {
        if (!same_action(&rows[i].action, &actions[i])) {
            print_error("transition %zu: action %" PRIu32 " of value %" PRIu64 ", expected %" PRIu32
                        " of value %" PRIu64 "\n",
                        i, rows[i].action.kind, rows[i].action.handle.index, actions[i].kind,
                        actions[i].handle.index);
            _fail(file, line);
        }
        assert_true(rows[i].started_at_ns >= head.started_at_ns);
        assert_true(rows[i].completed_at_ns >= rows[i].started_at_ns);
        assert_true(rows[i].completed_at_ns <= head.completed_at_ns);
    }
}

void assert_no_transitions(const tn_plan_report *report) {
    static const uint64_t none[3] = {0, 0, 0};

    scope_assert_transitions(report, none, NULL, 0, __FILE__, __LINE__);
}

void scope_assert_exec(const tn_error *e, const char *plan, uint32_t phase, uint64_t index,
                       tn_action action, tn_status cause, const char *file, int line) {
    tn_action got = {e->action_kind, 0, e->action_handle, e->action_at, e->action_from};

    assert_int_equal(e->status, TN_ERR_PLAN_EXEC);
    assert_string_equal(e->plan, plan);
    assert_true(e->message[0] != '\0');
    if (e->phase == phase && e->failed_index == index && e->cause_status == cause &&
        same_action(&got, &action) && e->label[0] == '\0')
        return;
    print_error("failed in phase %" PRIu32 " at index %" PRIu64 " (action %" PRIu32
                " of value %" PRIu64 ", label '%s') for %s; expected phase %" PRIu32
                ", index %" PRIu64 ", action %" PRIu32 " of value %" PRIu64 ", for %s\n",
                e->phase, e->failed_index, e->action_kind, e->action_handle.index, e->label,
                tn_status_name((tn_status)e->cause_status), phase, index, action.kind,
                action.handle.index, tn_status_name(cause));
    _fail(file, line);
}
