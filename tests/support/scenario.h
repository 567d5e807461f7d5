/* SPDX-License-Identifier: MIT */
/*
 * The notation of the controller's cases, as text: a case reads as in the specification.
 *
 *     static const scenario cc009 = {
 *         .budgets = "P=128",
 *         .values = "a 64 R @H; b 64 R @H; c 64 R @H",
 *         .before = "use a@P; use b@P",
 *         .need = "c@P",
 *         .reclaim = "drop a@P (rank 0, 64 at P, replica remains)",
 *         .entry = "ensure c@P",
 *         .peaks = "P=128, H=192",
 *         .explored = 2,
 *     };
 *     CASE(cc009, oldest_use_goes_first)
 *
 * Locations are the specification's: H pageable host, P pinned host, D0, D1, ... devices (the
 * machine has three). Lists are separated by commas, sentences by semicolons.
 *
 *   values   `name charge R|X @places src=location`, registered in this order; either of the places
 *            (adopted at the first, or loaded from the source) and the source may be missing
 *   tiers    `D0 to P, H; P to H`: the built-in policy's
 *   before   `use a@P, b@H` (enter and exit), `scope a@P` (decide, enter, close),
 *            `meta a priority -1 key text`, `ensure a@P`, `drop a@P`, `discard a`, `hold a@P`,
 *            `lease a@P`, `pending a@D0` (a lease released while its device is busy),
 *            `reserve D0:1`
 *   checks   `P=64+32` (used and reserved bytes), `P^96` (peak of charged bytes),
 *            `a@H,P` (resident exactly there, `a@-` nowhere), `s loads 1` (calls of its source)
 *
 * Whatever is expected is compared as text, so that a failure prints both. All functions fail the
 * test when a call that they need fails. spec_common.h has the fixture.
 */
#ifndef SCENARIO_H
#define SCENARIO_H

#include "spec_common.h"

/** A case as data. Absent texts are empty lists. */
typedef struct scenario {
    const char *budgets; /**< `P=128, H=64`, in the order given to the manager */
    const char *values;
    const char *tiers;
    const tn_policy_spec *policy; /**< instead of the built-in one */
    uint64_t limit;               /**< of the search; 0: the default */
    const char *before;
    const char *need;    /**< requirements: `a@P, b@H` */
    const char *reserve; /**< the request's reservations: `P:64, D0:1`, labels `r1`, `r2`, ... */

    /** `drop a@P (rank 0, 64 at P, replica remains); move b P->H (...)`. Reasons: `replica
     * remains`, `source rebuilds`, `to required`, `to tier`. */
    const char *reclaim;
    const char *entry;  /**< `ensure a@P; move b H->P; move s *->D0` */
    const char *peaks;  /**< `P=64, H=64`, in report order */
    uint64_t explored;  /**< states */
    bool dead_ends;     /**< they are an upper bound (C160) */
    const char *inside; /**< checks in the scope of the decision */
    const char *after;  /**< checks after it */

    /** Infeasible: `64 at P, materialization of b; budget 64, used 64, reserved 0`, the check that
     * fails in the initial state; `source of s` and `reservation 2` are the other stages. */
    const char *refused;
    /** Whether waiting helps, if given: `never`, `blocked`, `after leases`, `unknown`, then how many
     * bytes do not fit and what is in the way: `blocked, 64 missing, hold of a`. */
    const char *verdict;
    /** Inconclusive: `limit 1, explored 1, walking` or `limit 1, explored 1, room at P`. */
    const char *limited;
} scenario;

#define WORLD_DEVICES 3u

typedef struct world_value {
    char name[16];
    tn_handle h;
    uint64_t charge;
    tt_source *source; /**< NULL: none */
} world_value;

/** A scenario come to life. */
typedef struct world {
    struct spec *f;
    scenario of;
    tn_manager *m;
    tn_controller *controller;
    world_value *values;
    size_t count;
    tn_stream streams[WORLD_DEVICES]; /**< made when first asked for */
    tn_hold holds[4];                 /**< of `before`, as the two below */
    tn_lease leases[4];
    tn_reservation reservations[4];
    size_t hold_count, lease_count, reservation_count;
} world;

/** Run a case that is data only: set up, decide, compare, and enter what was decided. */
void scenario_run(struct spec *f, const scenario *of);

/** The test function of such a case. */
#define CASE(id, what)                                                                             \
    static void id##_##what(void **state) { scenario_run(*state, &(id)); }

/* ---- The world -------------------------------------------------------------------------------- */

/** Machine, manager, values, policy, controller, then the steps before. */
world *world_begin(struct spec *f, const scenario *of);
/** End what `before` opened, the controller and the world; the fixture does the rest. */
void world_end(world *w);

/** Add values, in the notation of `values`. */
void world_add(world *w, const char *values);
/** Do steps, in the notation of `before`. */
void world_do(world *w, const char *steps);
/** Another controller on the same manager; `limit` 0: the default. The caller destroys it. */
tn_controller *world_controller(world *w, tn_policy *policy, uint64_t limit);

world_value *world_value_of(const world *w, const char *name);
tn_handle world_handle(const world *w, const char *name);
tn_stream world_stream(world *w, uint32_t device);
/** `H`, `P`, `D7`. */
tn_location world_at(const char *text);

/** A policy from tiers in the scenario's notation; NULL or empty: none. */
tn_policy *world_tiers(const char *tiers);
/** A request; the caller destroys it. */
tn_request *world_request(const world *w, const char *need, const char *reserve);
/** A use with the consumer streams that it needs; the caller destroys it. */
tn_use *world_use(world *w, tn_controller *controller, const tn_request *request);
/** Enter it, look at the values' contents, exit, destroy. */
void world_use_once(world *w, const char *need);

/** Decide the scenario's request; the decision is NULL unless TN_OK. */
tn_status world_decide(world *w, tn_decision **out);
tn_status world_decide_for(world *w, tn_controller *controller, const char *need,
                           const char *reserve, tn_decision **out);

/* ---- What was decided, as text (freed by the caller) ------------------------------------------ */

char *world_reclaim(const world *w, const tn_decision *d);
char *world_entry(const world *w, const tn_decision *d);
char *world_peaks(const world *w, const tn_decision *d);
/** The failing check in tn_last_error(), in the notation of `refused`. */
char *world_refusal(const world *w);
/** The same for `verdict`. */
char *world_verdict(const world *w);
/** The same for `limited`. */
char *world_limit(const world *w);

/* ---- Expectations ----------------------------------------------------------------------------- */

/** The checks hold. */
void world_check(const world *w, const char *checks);
/** What the scenario expects of the decision, and what is true of every one (C107..C114). */
void world_expect(const world *w, const tn_decision *d);
/** Decide: the outcome is the scenario's; nothing has changed; deciding again says the same. NULL
 * for a refusal. */
tn_decision *world_decide_as_expected(world *w);
/** Enter the decision's scope: what is executed is the plan, peaks are the predicted ones, the
 * checks inside and after hold. */
void world_execute(world *w, const tn_decision *d);

#endif
