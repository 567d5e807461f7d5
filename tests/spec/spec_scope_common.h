/* SPDX-License-Identifier: MIT */
/*
 * What the tests of scopes share: plans and scopes in one expression, reports compared with the
 * actions that they should list, and the fields of a plan that failed half-way.
 *
 *     tn_scope *s = SCOPE(m, "name", RECLAIM(DROP(a, P)), RESERVE({P, 32, "x"}),
 *                         ENTER(ENSURE(b, P)), LEAVE(DROP(b, P)));
 *     assert_ok(tn_scope_enter(s));
 *     assert_exec_error(tn_scope_close(s), "name", TN_PHASE_EXIT, 0, DROP(b, P), TN_ERR_IN_USE);
 *     destroy_scope(s);
 */
#ifndef SPEC_SCOPE_COMMON_H
#define SPEC_SCOPE_COMMON_H

#include "spec_b_common.h"

/* ---- Plans and scopes ----------------------------------------------------------------------- */

#define ENSURE(h, at) tn_action_ensure((h), (at))
#define MOVE(h, to, from) tn_action_move((h), (to), (from))
#define DROP(h, at) tn_action_drop((h), (at))
#define DISCARD(h) tn_action_discard((h))

#define SCOPE_SPEC(...) ((const tn_plan_spec){.size = sizeof(tn_plan_spec), .name = __VA_ARGS__})
#define SCOPE_LIST(type, list, count, ...)                                                         \
    .list = (const type[]){__VA_ARGS__}, .count = sizeof((const type[]){__VA_ARGS__}) / sizeof(type)
/** Parts of a plan, for PLAN and SCOPE. */
#define RECLAIM(...) SCOPE_LIST(tn_action, reclaim, reclaim_count, __VA_ARGS__)
#define RESERVE(...) SCOPE_LIST(tn_reservation_spec, reservations, reservation_count, __VA_ARGS__)
#define ENTER(...) SCOPE_LIST(tn_action, enter, enter_count, __VA_ARGS__)
#define LEAVE(...) SCOPE_LIST(tn_action, exit, exit_count, __VA_ARGS__)

/** A plan that the caller destroys: PLAN("name", ENTER(...), ...). */
#define PLAN(...) scope_plan(&SCOPE_SPEC(__VA_ARGS__))
/** A scope of a plan that only the scope keeps; the caller ends it with destroy_scope(). */
#define SCOPE(m, ...) SCOPE_WITH((m), NULL, __VA_ARGS__)
#define SCOPE_WITH(m, options, ...) scope_make((m), (options), &SCOPE_SPEC(__VA_ARGS__))

tn_plan *scope_plan(const tn_plan_spec *spec);
tn_scope *scope_make(tn_manager *m, const tn_run_options *options, const tn_plan_spec *spec);
/** Free it; must succeed. */
void destroy_scope(tn_scope *s);
/** Close it, must succeed; then free it. */
void close_scope(tn_scope *s);

/** Options with an expected version. */
tn_run_options scope_expect(uint64_t version);

/** A source whose every call fails with TN_ERR_SOURCE and native code 77, registered at P. */
tn_handle scope_failing(struct spec *f, tn_manager *m);

/* ---- What a scope says ---------------------------------------------------------------------- */

/** Its complete report, its partial report: NULL if absent. */
const tn_plan_report *scope_report(const tn_scope *s);
const tn_plan_report *scope_partial(const tn_scope *s);
/** The error of its failed exit, or NULL. */
const tn_error *scope_exit_error(const tn_scope *s);
/** The number of its reservations. */
size_t scope_reservations(const tn_scope *s);
/** Its i-th reservation. */
tn_reservation scope_reservation(const tn_scope *s, size_t i);
/** Neither of the three exists. */
void assert_no_news(const tn_scope *s);

/* ---- Assertions ------------------------------------------------------------------------------ */

/** A report lists exactly these actions as completed, of which so many are of each part:
 * assert_transitions(r, 1, 2, 0, DROP(a, P), ENSURE(b, P), ENSURE(c, P)). */
#define assert_transitions(report, reclaims, enters, exits, ...)                                   \
    scope_assert_transitions((report), (const uint64_t[]){(reclaims), (enters), (exits)},          \
                             (const tn_action[]){__VA_ARGS__},                                     \
                             sizeof((const tn_action[]){__VA_ARGS__}) / sizeof(tn_action),         \
                             __FILE__, __LINE__)
void scope_assert_transitions(const tn_plan_report *report, const uint64_t *parts,
                              const tn_action *actions, size_t count, const char *file, int line);
/** The same for a report without transitions. */
void assert_no_transitions(const tn_plan_report *report);

/** A call that fails half-way, at an action. */
#define assert_exec_error(call, plan_, phase_, index_, action_, cause_)                            \
    do {                                                                                           \
        assert_status(call, TN_ERR_PLAN_EXEC);                                                     \
        scope_assert_exec(tn_last_error(), (plan_), (phase_), (index_), (action_), (cause_),       \
                          __FILE__, __LINE__);                                                     \
    } while (0)
void scope_assert_exec(const tn_error *e, const char *plan, uint32_t phase, uint64_t index,
                       tn_action action, tn_status cause, const char *file, int line);

/** A call that finds its plan infeasible: nothing ran. */
#define assert_plan_error(call, plan_, phase_, index_, reason_)                                    \
    do {                                                                                           \
        assert_status(call, TN_ERR_PLAN);                                                          \
        assert_string_equal(tn_last_error()->plan, (plan_));                                       \
        assert_int_equal(tn_last_error()->phase, (phase_));                                        \
        assert_int_equal(tn_last_error()->failed_index, (index_));                                 \
        assert_int_equal(tn_last_error()->reason, (reason_));                                      \
    } while (0)

#endif
