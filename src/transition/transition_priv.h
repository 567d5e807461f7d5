/* SPDX-License-Identifier: MIT */
/*
 * Types shared by the files of this folder only.
 */
#ifndef TENURE_TRANSITION_PRIV_H
#define TENURE_TRANSITION_PRIV_H

#include "plan/plan_internal.h"
#include "transition/transition_internal.h"

/* ---- Flow: who goes when ---------------------------------------------------------------- */

/* The result of a load, for those who joined it. Under store->lock. */
typedef struct tn__flight {
    uint32_t refs;
    bool done;
    tn_status status; /* of the load; TN_OK also if something after it failed */
    tn_error error;
} tn__flight;

/* Bytes that a plan waits for, or claims. */
typedef struct tn__need {
    tn__ledger *ledger; /* NULL: none */
    tn_location at;
    uint64_t bytes;
    bool optional; /* if it does not fit: go on without (a direct load finds out afterwards, M78) */
    bool claimed;
    /* by a plan in flight, claimed or as a temporary charge; written and read under store->lock
     * */
    bool held;
    bool frees; /* by a plan in flight: a later step of it removes a charge there; same */
} tn__need;

/* A plan, waiting or in flight. Lives on its thread's stack; linked under store->lock. While it
 * waits, its handles never change and its needs change under the lock only. */
typedef struct tn__ticket {
    struct tn__ticket *next;
    const uint64_t *handles; /* the indices it claims, ascending */
    size_t handle_count;
    bool exclusive;     /* conflicts with every other plan */
    bool joins;         /* an ensure: may join a load of the same value */
    uint64_t loading;   /* in flight, calling the source of this value: others may join; 0: none */
    tn__flight *flight; /* in flight: made by the first who joined; waiting: the one joined */
    tn__need *needs;    /* a source location after its destination, as it is judged first (M73) */
    size_t need_count;
    /* judged: bytes at this location do not fit; final only if no plan in flight holds some */
    const tn__ledger *short_at;
    uint64_t short_began; /* charged there, as the judgement had it */
    int looks;            /* how often it was judged afresh because that was not so */
    bool outdated;        /* has waited since: to be judged afresh */
    bool squeezed;        /* short though nobody in flight holds any: only the ledger knows why */
    /* in flight: locations where storage will be removed, or is being freed, by ledger position */
    uint8_t freeing[(TN__LEDGER_COUNT + 7) / 8];
} tn__ticket;

static inline void tn__ticket_frees(tn__ticket *ticket, const tn__store *store,
                                    const tn__ledger *ledger) {
    size_t position = (size_t)(ledger - store->ledgers);
    ticket->freeing[position / 8] |= (uint8_t)(1u << position % 8);
}

/* What judging a plan says; the detail is set for the last two. */
enum tn__judgement {
    TN__JUDGE_GO,      /* the ticket's needs are filled in; they are claimed next */
    TN__JUDGE_RECHECK, /* the state changed: call `recheck` without the lock, then judge again */
    TN__JUDGE_SHORT,   /* bytes are short at ticket->short_at */
    TN__JUDGE_FAIL
};

typedef struct tn__judge {
    /* under store->lock; NULL: nothing to judge */
    enum tn__judgement (*judge)(void *context, tn_status *status);
    /* without it; NULL: never asked for */
    tn_status (*recheck)(void *context);
    void *context;
    /* a plan: a claim that does not fit is judged again, for the reason; else refused as it is */
    bool reasons;
} tn__judge;

typedef struct tn__flow {
    /* broadcast by everyone who leaves the queue (but to join a load), settles, ends a load, or raises
     * the guard */
    tn__cond changed;
    tn__ticket *waiting; /* oldest first */
    tn__ticket *in_flight;
} tn__flow;

/* ---- Trace ------------------------------------------------------------------------------ */

typedef struct tn__trace {
    tn_report *ring;
    uint64_t capacity; /* kept at most */
    uint64_t room;     /* allocated */
    uint64_t first, count;
    uint64_t appended; /* sequence number of the next report */
} tn__trace;

/* Room for one more report. Under store->lock. False: no memory. */
TN_NODISCARD bool tn__trace_prepare(tn__trace *trace);
/* Cannot fail after tn__trace_prepare(). Returns its sequence number. Under store->lock. */
uint64_t tn__trace_append(tn__trace *trace, const tn_report *report);
/* Add the readings taken afterwards (M92), if the report is still there. Under store->lock. */
void tn__trace_readings(tn__trace *trace, uint64_t sequence, const tn_report *report);

/* ---- The object ------------------------------------------------------------------------- */

struct tn__trans {
    uint64_t manager;
    tn__store *store;
    tn__life *life;
    tn_driver *driver;
    tn__ring *ring;
    bool serial;
    uint64_t (*now_ns)(void *context);
    void *now_context;
    tn__flow flow;    /* under store->lock */
    tn__trace trace;  /* under store->lock */
    tn_scope *scopes; /* all that exist; under store->lock */
    /* default transfer streams (G43), made at first use */
    tn_stream _Atomic streams[TN_CUDA_INDEX_MAX + 1];
};

/* ---- Flow ------------------------------------------------------------------------------- */

/* Wait for the plan's turn and judge it. TN_OK: in flight, store->lock is held. Otherwise: out of
 * the queue, not held. */
TN_NODISCARD tn_status tn__flow_admit(tn__trans *t, tn__thread *thread, tn__ticket *ticket,
                                      const tn__judge *judge);
/* For an action of a plan that is in flight already (scope exit): claim the ticket's needs. Waits
 * only while other plans hold such bytes, never behind the queue. Under store->lock, which is given
 * up while waiting. */
TN_NODISCARD tn_status tn__flow_claim(tn__trans *t, tn__thread *thread, tn__ticket *ticket);
/* Wait for the next broadcast; then as tn__life_enter_waited(). A thread inside a source callback is
 * refused instead (D3). Under store->lock, which is given up meanwhile. */
TN_NODISCARD tn_status tn__flow_wait(tn__trans *t, tn__thread *thread);
/* Give back claims that are left, leave the flight, wake the others. Under store->lock. */
void tn__flow_leave(tn__trans *t, tn__ticket *ticket);
/* Tell those who joined how the load went. Under store->lock. */
void tn__flow_load_done(tn__ticket *ticket, tn_status status);
static inline void tn__flow_wake(tn__trans *t) { tn__cond_broadcast(&t->flow.changed); }
/* Claim a need if it fits (none always does). Under store->lock. */
static inline bool tn__need_claim(tn__need *need) {
    need->claimed = need->ledger && tn__ledger_claim(need->ledger, need->bytes);
    need->held = need->claimed && need->bytes > 0;
    return need->claimed || !need->ledger;
}
static inline void tn__need_unclaim(tn__need *need) {
    if (need->claimed)
        tn__ledger_unclaim(need->ledger, need->bytes);
    need->claimed = need->held = false;
}
/* The claim becomes a charge (raises the peak). */
static inline void tn__need_settle(tn__need *need) {
    TN_ASSERT(need->claimed);
    tn__ledger_settle(need->ledger, need->bytes);
    need->claimed = false;
}

/* ---- Shared steps ----------------------------------------------------------------------- */

/* The stream of a transfer to cuda:N: the one given, or the device's own. */
TN_NODISCARD tn_status tn__trans_stream(tn__trans *t, uint32_t device, tn_stream given,
                                        tn_stream *out, tn_stream_info *info);

typedef struct tn__claims tn__claims;

/* An action from its first look to its report: action.c and course.c run it, perform.c does the
 * work. */
typedef struct tn__run {
    tn__trans *t;
    tn__thread *thread;
    tn_action action;
    tn_stream stream;       /* given, or NULL */
    tn__ticket *ticket;     /* of the plan that it is a part of, or its own */
    tn__need needs[2];      /* 0: destination; 1: source location */
    tn__claims *claims;     /* a plan's bytes, where the needs come from and go to; or NULL */
    tn__removal *removal;   /* taken, not yet committed or given back; a plan's, or its own */
    const tn__value *value; /* the record that `choice` was made from */
    tn__choice choice;
    tn_payload loaded; /* temporary payload, charged at needs[1] or needs[0] (in place) */
    tn__measured loaded_measured;
    bool loaded_owned;     /* its allocations are in the owner index */
    bool temporary;        /* its charge stands in the ledger */
    tn_payload made;       /* payload to install */
    tn__mat *mat;          /* object to install */
    bool removed_later;    /* by the same plan: published already taken */
    tn__source *forgotten; /* discard: to be destroyed after commit */
    tn_report report;
    uint64_t sequence; /* of the report in the trace */
} tn__run;

TN_NODISCARD tn_status tn__run_perform(tn__run *run);
/* Under store->lock, which is given up for a while. `status`: how the work went; anything but TN_OK
 * only gives back what was claimed and made. */
TN_NODISCARD tn_status tn__run_commit(tn__run *run, tn_status status);
/* After commit, without a lock: what was not installed goes, the last readings are taken. */
void tn__run_end(tn__run *run, tn_status status);
/* What the action removes. */
void tn__run_removals(const tn__run *run, tn__mat *const **mats, size_t *count);
/* Payloads and objects that were not installed. No lock. */
void tn__run_clean(tn__run *run);

/* Readings (M91, M92). No lock. */
void tn__report_begin(tn__run *run, const tn__value *value);
void tn__report_end(tn__run *run);

static inline bool tn__in_place(const tn__run *run) { return tn__choice_in_place(&run->choice); }

/* ---- The bytes of a plan in flight ------------------------------------------------------ */

/* Claims of a plan, one need per location of its simulation; under store->lock. */
struct tn__claims {
    const tn__sim *sim;
    size_t touch; /* the next one */
    uint32_t step;
    tn__need needs[TN__LEDGER_COUNT];
};

/* The needs of the simulation: what is claimed at admission. */
void tn__claims_fill(tn__claims *claims, const tn__sim *sim);
/* A step begins: hand out what it needs there. */
void tn__claims_lend(tn__claims *claims, tn__need *need, tn_location at, uint64_t bytes);
/* Bytes that are claimed (not charged) come back. */
void tn__claims_return(tn__claims *claims, tn__ledger *ledger, uint64_t bytes);
/* A step is over: what the rest of the plan does not need is given back. */
void tn__claims_step(tn__claims *claims);

/* ---- A plan on its way (course.c, admit.c) ---------------------------------------------- */

typedef struct tn__course {
    tn__trans *t;
    tn__thread *thread;
    const char *name;
    tn__sim_part parts[TN__PLAN_PARTS];
    size_t part_count;                 /* simulated */
    size_t run_count;                  /* of these, the first ones, run now */
    uint64_t expected;                 /* TN_VERSION_ANY */
    uint64_t placement;                /* the same for the placement number alone */
    tn_status (*ready)(void *context); /* see tn__scope_bind(); or NULL */
    void *ready_context;
    const tn_handle *more; /* of this manager: claimed beside those of the actions */
    size_t more_count;
    const tn_transfer_stream *streams;
    size_t stream_count;
    tn_reservation *reservations; /* room for those of the plan; made ones, in order */
    size_t reserved;
    tn__plan_report *report;

    tn__ticket ticket;
    uint64_t *handles;
    tn__claims claims;
    tn__removal *removal;
    const tn_version *pinned;
    tn__guards guards;
    tn__sim sim;
    bool looked;  /* the three above are there */
    size_t steps; /* of the parts that run now */
    bool *later;  /* per step: what it makes, a later one removes */
    bool ran;     /* all of these */
} tn__course;

/* Everything from the check of the streams to the last step. On TN_ERR_PLAN_EXEC the report is
 * partial and the reservations are released. */
TN_NODISCARD tn_status tn__course_run(tn__course *course);
/* Check transfer streams (M218). */
TN_NODISCARD tn_status tn__streams_check(tn__trans *t, const tn_transfer_stream *streams,
                                         size_t count);
/* The one for an action (M219), or NULL. */
tn_stream tn__streams_for(const tn_transfer_stream *streams, size_t count, const tn_action *action);
/* Wait for its turn, claim, take, check the version. TN_OK: in flight. */
TN_NODISCARD tn_status tn__course_admit(tn__course *course);
/* After the last step, or a failed one: leave the flight, give the rest back. */
void tn__course_leave(tn__course *course);
/* Memory of an admission, whatever came out of it. */
void tn__course_fini(tn__course *course);
/* One action of a plan in flight, whose handle is claimed; `run` is set up. Own claims and
 * removals unless run->claims. */
TN_NODISCARD tn_status tn__step_run(tn__run *run);
/* Distinct indices of this manager that actions name, and `more`, ascending. False: no memory. */
bool tn__handles_of(uint64_t manager, const tn__sim_part *parts, size_t count,
                    const tn_handle *more, size_t more_count, uint64_t **out, size_t *out_count);
/* The manager ends: its scopes count as closed. No other call on them is in progress. */
void tn__scopes_orphan(tn__trans *t);
/* Last first; no error counts. */
void tn__release_all(tn_reservation *reservations, size_t count);

#endif
