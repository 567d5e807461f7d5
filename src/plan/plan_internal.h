/* SPDX-License-Identifier: MIT */
/*
 * plan: what should happen, and what would. Plan objects, reports and explanations (plain data),
 * the decision table of the actions, and the simulation of a plan on one version.
 *
 * Invariants
 *  N1 nothing here changes a manager: a simulation reads a pinned version, one scan of the records
 *     and the ledgers, and takes no lock (M169).
 *  N2 simulation and execution use one decision table (tn__choose) and one arithmetic, so a peak
 *     that is predicted is the peak that comes (M182).
 *  N3 what a step does to bytes is recorded as touches, in order; from them comes how much the rest
 *     of a plan needs after each step (admission, design section 4).
 *
 * Who calls: transition/ (admission, execution), control/ (decisions), manager/ (entry points);
 * from any thread, without locks.
 */
#ifndef TENURE_PLAN_INTERNAL_H
#define TENURE_PLAN_INTERNAL_H

#include <tenure/plan.h>
#include <tenure/scope.h>

#include "lifetime/lifetime_internal.h"

/* ---- Plans ------------------------------------------------------------------------------ */

typedef struct tn__list {
    tn_action *actions;
    size_t count;
} tn__list;

struct tn_plan {
    _Atomic uint64_t refs; /* the creator's and one per scope */
    char *name;
    tn__list reclaim, enter, exit;
    tn_reservation_spec *reservations; /* labels are the plan's */
    size_t reservation_count;
    char *labels;
};

void tn__plan_keep(const tn_plan *plan);
void tn__plan_let_go(const tn_plan *plan);
/* Form of a handle, of an action (M82), of a list of them: TN_ERR_KIND; too many: TN_ERR_VALUE.
 * `what`: the list, in words. */
TN_NODISCARD tn_status tn__handle_form(tn_handle handle);
TN_NODISCARD tn_status tn__action_form(const tn_action *action);
TN_NODISCARD tn_status tn__actions_form(const tn_action *actions, size_t count, const char *what);

/* ---- Reports ---------------------------------------------------------------------------- */

/* Room for a plan's reports is made before its first step, so that keeping one cannot fail. */
typedef struct tn_plan_report tn__plan_report;
struct tn_plan_report {
    char name[256];
    bool complete;
    uint64_t started_at_ns, completed_at_ns;
    size_t counts[TN_PHASE_EXIT + 1]; /* by phase */
    size_t count, room;
    tn_report reports[];
};

TN_NODISCARD tn_status tn__plan_report_create(const char *name, size_t room, tn__plan_report **out);
void tn__plan_report_add(tn__plan_report *report, enum tn_phase phase, const tn_report *one);
void tn__plan_report_end(tn__plan_report *report, uint64_t now_ns, bool complete);

/* ---- The decision table (pure) ---------------------------------------------------------- */

enum tn__step {
    TN__STEP_NO_OP,
    TN__STEP_REMOVE, /* drop, discard, move onto a resident destination: only removals */
    TN__STEP_COPY,   /* from a replica */
    TN__STEP_LOAD    /* from the source; then a copy, if the destination is elsewhere */
};

/* How an action is performed in a given state. */
typedef struct tn__choice {
    enum tn__step step;
    enum tn_reason reason;   /* no-ops */
    tn_location source;      /* for the report (M90) */
    tn_location destination; /* same */
    tn__mat *from;           /* TN__STEP_COPY */
    tn__mat *remove;         /* one replica to remove, or NULL; discard removes all */
    /* the removal would lose the value: TN_ERR_OWNERSHIP, unless protected (M108) */
    bool last_copy;
} tn__choice;

/* Rules of sections 10 to 13 but for protection, admission and M108. The detail is set on
 * failure; *out has the endpoints that selection got to (M178). */
TN_NODISCARD tn_status tn__choose(uint64_t manager, const tn__value *value, const tn_action *action,
                                  tn__choice *out);
/* A load whose destination is the source's own location (M76). */
static inline bool tn__choice_in_place(const tn__choice *choice) {
    return choice->step == TN__STEP_LOAD && tn__location_same(choice->source, choice->destination);
}
/* TN_ERR_OWNERSHIP: the last copy of a value without source (M107). */
TN__COLD tn_status tn__last_copy(uint64_t manager, const tn_action *action);

/* ---- Guards: who protects what, from one scan ------------------------------------------- */

/* One materialization that a record pins. */
typedef struct tn__guard {
    const tn__mat *mat; /* to compare, never to follow */
    uint64_t index;     /* of its value */
    tn_location at;
    tn__protection p;
    uint32_t next;    /* chain of its hash bucket, + 1 */
    uint32_t pending; /* its pending records, + 1 */
} tn__guard;

typedef struct tn__pending_pin {
    void *record;
    uint64_t word;
    uint32_t next;
} tn__pending_pin;

typedef struct tn__guard_reserved {
    tn_location at;
    uint64_t bytes;
    char label[64];
} tn__guard_reserved;

typedef struct tn__guards {
    tn__life *life;
    bool quiet; /* no driver is asked: a pending record counts as it is (L3) */
    tn__guard *guards;
    size_t count, room;
    uint32_t *buckets; /* index of the first guard, + 1 */
    size_t bucket_count;
    tn__pending_pin *pending;
    size_t pending_count, pending_room;
    tn__guard_reserved *reserved;
    size_t reserved_count, reserved_room;
} tn__guards;

/* One scan of all records. TN_ERR_HOST_MEMORY. */
TN_NODISCARD tn_status tn__guards_read(tn__life *life, tn__guards *out);
void tn__guards_fini(tn__guards *guards);
/* What protects a materialization now: a pending record counts unless its events are complete at
 * this moment; a query that fails protects (M171). Nothing is completed. */
tn__protection tn__guards_of(tn__guards *guards, const tn__mat *mat);
/* Bytes reserved at a location. */
uint64_t tn__guards_reserved(const tn__guards *guards, tn_location at);

/* ---- Simulation ------------------------------------------------------------------------- */

/* What one step does to the bytes of one location: it stands at `peak` above the level before,
 * and leaves `delta`. */
typedef struct tn__touch {
    uint32_t step;
    uint32_t place; /* into tn__sim.places */
    int64_t peak, delta;
    uint64_t need_after; /* what the later steps need beyond the level then (tn__sim_needs) */
    bool frees_after;    /* one of them removes a charge there (same) */
} tn__touch;

typedef struct tn__sim_place {
    tn_location at;
    tn__ledger *ledger;
    uint64_t began; /* charged at the beginning */
    uint64_t level; /* charged, simulated so far */
    uint64_t used;  /* of it, by materializations */
    uint64_t peak;
    uint64_t need; /* before the first step (tn__sim_needs) */
    bool frees;    /* some step removes a charge there (same) */
} tn__sim_place;

/* A value that the plan touches, as it would be. */
typedef struct tn__sim_value {
    uint64_t index;
    const tn__value *real; /* NULL: the handle is refused */
    tn__value *now;        /* private copy; replicas that would be made are private objects */
    uint32_t room;
    bool discarded;
} tn__sim_value;

/* A materialization that the plan removes, in step order. */
typedef struct tn__sim_removal {
    uint32_t step;
    uint32_t made; /* the step that made it, if mat is NULL */
    tn__mat *mat;  /* NULL: one that the plan has made itself */
} tn__sim_removal;

typedef struct tn__sim_part {
    enum tn_phase phase;
    const tn_action *actions;
    const tn_reservation_spec *reservations; /* TN_PHASE_RESERVE */
    size_t count;
} tn__sim_part;

/* The parts of a plan, in order. */
#define TN__PLAN_PARTS 4
void tn__plan_parts(const tn_plan *plan, tn__sim_part parts[TN__PLAN_PARTS]);

typedef struct tn__sim_input {
    uint64_t manager;
    tn__store *store;
    tn_driver *driver;
    const tn_version *version; /* pinned by the caller, or in a section */
    tn__guards *guards;
    bool by_ledger; /* levels as the admission words have them, whatever they are charged for */
    const tn__sim_part *parts; /* in order */
    size_t part_count;
} tn__sim_input;

/* The simulation and all that it found. Pointers into the version stay valid while it is pinned. */
typedef struct tn__sim {
    tn__sim_input in;
    tn__sim_place *places; /* tracked ones first, then in the order met: the predicted peaks */
    size_t place_count;
    uint8_t place_of[TN__LEDGER_COUNT]; /* by ledger position, + 1 */
    tn__touch *touches;
    size_t touch_count, touch_room;
    tn__sim_value *values; /* open addressing by index */
    size_t value_count, value_room;
    tn__sim_removal *removals;
    size_t removal_count, removal_room;
    tn_action_explanation *actions;
    size_t action_count, action_room;
    size_t steps;        /* simulated, reservations included */
    tn_location *listed; /* a discard's protected replicas */
    size_t listed_count;
    bool feasible;
    bool short_of_bytes; /* the problem is one of bytes, at problem.at */
    tn_error problem;
    enum tn_phase problem_phase;
    size_t problem_index;
} tn__sim;

/* Run it. TN_OK, feasible or not; TN_ERR_HOST_MEMORY. The thread's own error is kept otherwise. */
TN_NODISCARD tn_status tn__sim_run(const tn__sim_input *in, tn__sim *out);
void tn__sim_fini(tn__sim *sim);
/* Let go of what points into the version, which may then be unpinned; the rest is plain data. */
void tn__sim_forget(tn__sim *sim);
/* Fill `need`, `frees` and what comes after each touch, for the steps before `steps` (suffix maxima,
 * N3). */
void tn__sim_needs(tn__sim *sim, size_t steps);

/* ---- Errors that name a step (steps.c) --------------------------------------------------- */

/* Why an action of this kind does not remove what is protected. */
enum tn_reason tn__protected_reason(uint32_t action_kind);
/* The thread's error becomes TN_ERR_PLAN_EXEC (M246), or TN_ERR_PLAN, at this step of a plan. */
TN_NODISCARD tn_status tn__plan_failed(const char *plan, const tn__sim_part *part, size_t index);
TN_NODISCARD tn_status tn__plan_refused(const char *plan, const tn__sim_part *part, size_t index);
/* TN_ERR_PLAN: `problem`, where the simulation of these parts met it. */
TN_NODISCARD tn_status tn__sim_refused(const tn__sim *sim, const tn_error *problem,
                                       const char *plan, const tn__sim_part *parts);

/* ---- Verdicts --------------------------------------------------------------------------- */

typedef struct tn__verdict {
    enum tn_verdict verdict;
    uint64_t missing_bytes, evictable_bytes;
    tn_blocker *blockers;
    size_t blocker_count;
} tn__verdict;

typedef struct tn__verdict_input {
    uint64_t manager;
    tn__store *store;
    const tn_version *version;
    tn__guards *guards;
    const tn__sim *sim; /* NULL: a direct call */
} tn__verdict_input;

/* Judge a problem (status, at, budget and byte fields, handle). TN_ERR_HOST_MEMORY. */
TN_NODISCARD tn_status tn__verdict_of(const tn__verdict_input *in, const tn_error *problem,
                                      tn__verdict *out);
void tn__verdict_fini(tn__verdict *verdict);
/* The thread's error, of a direct call that was refused (TN_ERR_BUDGET, TN_ERR_IN_USE), gets its
 * verdict: pins the current version and scans. No lock may be held. */
void tn__verdict_here(uint64_t manager, tn__store *store, tn__life *life);
/* Verdict and first blockers into an error. */
void tn__verdict_into(const tn__verdict *verdict, tn_error *error);

/* ---- Explanations ----------------------------------------------------------------------- */

/* Explain a plan on a pinned version (the caller has checked it). */
TN_NODISCARD tn_status tn__explain(uint64_t manager, tn__store *store, tn__life *life,
                                   tn_driver *driver, const tn_version *version,
                                   const tn_plan *plan, tn_explanation **out);
/* The same with guards that were read before. `base`: all but the parts. */
TN_NODISCARD tn_status tn__explain_guarded(const tn__sim_input *base, const tn_plan *plan,
                                           tn_explanation **out);
/* TN_ERR_PLAN with its problem, as an entry would say it; TN_OK: it is feasible. */
TN_NODISCARD tn_status tn__explanation_check(const tn_explanation *explanation);

#endif
