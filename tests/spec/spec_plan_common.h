/* SPDX-License-Identifier: MIT */
/*
 * Plans, explanations and sequences in the notation of the cases.
 *
 *     struct spec_explained e = EXPLAIN(m, RESERVE({P, 32, "r"}), ENTER(ENSURE(h, P)));
 *     struct spec_run r = RUN(m, ENSURE(h, P), DROP(h, P));
 *
 * EXPLAIN() and RUN() check what holds of every explanation and report, and copy everything out, so
 * that nothing has to be dropped. Include this last: its short names are macros.
 */
#ifndef SPEC_PLAN_COMMON_H
#define SPEC_PLAN_COMMON_H

#include "spec_common.h"

/* ---- Plans ----------------------------------------------------------------------------------- */

#define ENSURE(h, at) tn_action_ensure((h), (at))
#define MOVE(h, to) tn_action_move((h), (to), NOWHERE)
#define MOVE_FROM(h, to, from) tn_action_move((h), (to), (from))
#define DROP(h, at) tn_action_drop((h), (at))
#define DISCARD(h) tn_action_discard(h)

#define SPEC_LIST(type, ...)                                                                       \
    (const type[]){__VA_ARGS__}, sizeof((const type[]){__VA_ARGS__}) / sizeof(type)
/* The parts of a plan: members of its spec, in this order; each may be left out. */
#define RECLAIM(...) .reclaim = SPEC_LIST(tn_action, __VA_ARGS__)
#define RESERVE(...) .reservations = SPEC_LIST(tn_reservation_spec, __VA_ARGS__)
#define ENTER(...) .enter = SPEC_LIST(tn_action, __VA_ARGS__)
#define EXIT(...) .exit = SPEC_LIST(tn_action, __VA_ARGS__)

/** The spec of a plan called "plan": PLAN_SPEC(ENTER(ENSURE(h, P)), EXIT(DROP(h, P))). */
#define PLAN_SPEC(...) ((tn_plan_spec){.size = sizeof(tn_plan_spec), .name = "plan", __VA_ARGS__})
/** The plan itself, to be destroyed by the caller. */
#define PLAN(...) spec_plan(&PLAN_SPEC(__VA_ARGS__))
tn_plan *spec_plan(const tn_plan_spec *spec);

/* ---- Explanations ---------------------------------------------------------------------------- */

#define SPEC_EXPLAINED_MAX 12

/** Everything that an explanation says; texts are gone but for the copies here. */
struct spec_explained {
    tn_explanation_info head;
    char plan[256];
    tn_action_explanation actions[SPEC_EXPLAINED_MAX];
    size_t action_count;
    tn_predicted_peak peaks[SPEC_EXPLAINED_MAX];
    size_t peak_count;
    tn_reservation_spec reservations[SPEC_EXPLAINED_MAX]; /**< without labels */
    char labels[SPEC_EXPLAINED_MAX][256];
    size_t reservation_count;
    tn_blocker blockers[SPEC_EXPLAINED_MAX];
    size_t blocker_count;
    tn_location protected_at[SPEC_EXPLAINED_MAX];
    size_t protected_count;
    tn_error problem; /**< status TN_OK when feasible */
};

/** Explain a plan on the state of now. */
struct spec_explained spec_explain(tn_manager *m, const tn_plan *plan);
struct spec_explained spec_explain_spec(tn_manager *m, const tn_plan_spec *spec);
#define EXPLAIN(m, ...) spec_explain_spec((m), &PLAN_SPEC(__VA_ARGS__))

/** The status of an explanation that is dropped at once. */
tn_status spec_explain_status(tn_manager *m, const tn_plan *plan, uint64_t expected_version);

/** All of it as text, for "twice the same". Freed by the caller. */
char *spec_explained_text(const struct spec_explained *e);

#define assert_feasible(e)                                                                         \
    do {                                                                                           \
        if (!(e).head.feasible)                                                                    \
            print_error("not feasible: %s\n", (e).problem.message);                                \
        assert_int_equal((e).head.feasible, 1);                                                    \
        assert_int_equal((e).head.verdict, TN_VERDICT_FITS_NOW);                                   \
    } while (0)

/** The first problem: where, and why. */
#define assert_problem(e, phase_, index_, reason_)                                                 \
    do {                                                                                           \
        assert_int_equal((e).head.feasible, 0);                                                    \
        assert_int_equal((e).head.reason, (reason_));                                              \
        assert_int_equal((e).head.phase, (phase_));                                                \
        assert_int_equal((e).head.index, (index_));                                                \
    } while (0)

/** One explained action: its place, its kind, and what would come of it. */
#define assert_explained(a, phase_, index_, kind_, executable_, no_op_, reason_)                   \
    do {                                                                                           \
        assert_int_equal((a).phase, (phase_));                                                     \
        assert_int_equal((a).index, (index_));                                                     \
        assert_int_equal((a).action.kind, (kind_));                                                \
        assert_int_equal((a).executable, (executable_));                                           \
        assert_int_equal((a).no_op, (no_op_));                                                     \
        assert_int_equal((a).reason, (reason_));                                                   \
    } while (0)
/** A performable action that would do something. */
#define assert_performable(a, phase_, index_, kind_)                                               \
    assert_explained(a, phase_, index_, kind_, 1, 0, TN_REASON_NONE)
/** Its endpoints and the bytes of its value. */
#define assert_endpoints(a, source_, destination_, bytes_)                                         \
    do {                                                                                           \
        assert_at((a).source, (source_));                                                          \
        assert_at((a).destination, (destination_));                                                \
        assert_int_equal((a).logical_bytes, (bytes_));                                             \
        assert_int_equal((a).storage_bytes, (bytes_));                                             \
    } while (0)

/** The predicted peaks are exactly these, in this order: assert_predicted(e, {P, 64}, {N, 0}). */
#define assert_predicted(e, ...)                                                                   \
    spec_assert_predicted(&(e), SPEC_LIST(tn_predicted_peak, __VA_ARGS__), __FILE__, __LINE__)
void spec_assert_predicted(const struct spec_explained *e, const tn_predicted_peak *want,
                           size_t count, const char *file, int line);

/* ---- Sequences ------------------------------------------------------------------------------- */

/** What a sequence did. */
struct spec_run {
    tn_status status;
    tn_error error; /**< of a failure */
    bool reported;
    tn_plan_report_info head;
    char plan[256];
    tn_report transitions[SPEC_EXPLAINED_MAX];
    size_t count;
};

/** Run actions; a report exists exactly if it succeeds or fails half-way, and is checked. */
struct spec_run spec_run(tn_manager *m, const char *name, const tn_action *actions, size_t count,
                         const tn_run_options *options);
#define RUN(m, ...) RUN_WITH(m, NULL, __VA_ARGS__)
#define RUN_WITH(m, options, ...)                                                                  \
    spec_run((m), "run", (const tn_action[]){__VA_ARGS__},                                         \
             sizeof((const tn_action[]){__VA_ARGS__}) / sizeof(tn_action), (options))

/** Read a report without dropping it. */
void spec_read_report(const tn_plan_report *report, struct spec_run *out);

/** TN_ERR_PLAN: nothing ran, because of one action. */
#define assert_refused(run, index_, cause_, reason_)                                               \
    do {                                                                                           \
        struct spec_run run_ = (run);                                                              \
        assert_status(run_.status, TN_ERR_PLAN);                                                   \
        assert_false(run_.reported);                                                               \
        assert_int_equal(run_.error.phase, TN_PHASE_EXECUTE);                                      \
        assert_int_equal(run_.error.failed_index, (index_));                                       \
        assert_int_equal(run_.error.cause_status, (cause_));                                       \
        assert_int_equal(run_.error.reason, (reason_));                                            \
        assert_string_equal(run_.error.plan, "run");                                               \
    } while (0)

/** TN_ERR_PLAN_EXEC: one action failed, and these many before it stay. */
#define assert_broken(run, index_, cause_)                                                         \
    do {                                                                                           \
        assert_status((run).status, TN_ERR_PLAN_EXEC);                                             \
        assert_int_equal((run).error.phase, TN_PHASE_EXECUTE);                                     \
        assert_int_equal((run).error.failed_index, (index_));                                      \
        assert_int_equal((run).error.cause_status, (cause_));                                      \
        assert_string_equal((run).error.plan, "run");                                              \
        assert_true((run).reported);                                                               \
        assert_int_equal((run).head.complete, 0);                                                  \
        assert_int_equal((run).count, (index_));                                                   \
    } while (0)

/** The failed action that an error names. */
#define assert_failed_action(error, kind_, handle_, at_)                                           \
    do {                                                                                           \
        assert_int_equal((error).action_kind, (kind_));                                            \
        assert_handle((error).action_handle, (handle_));                                           \
        assert_at((error).action_at, (at_));                                                       \
    } while (0)

/** The error of a version that has moved on. */
#define assert_stale(expr, expected_, actual_)                                                     \
    do {                                                                                           \
        assert_status(expr, TN_ERR_STALE);                                                         \
        assert_int_equal(tn_last_error()->expected, (expected_));                                  \
        assert_int_equal(tn_last_error()->actual, (actual_));                                      \
    } while (0)

#endif
