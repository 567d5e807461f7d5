/* SPDX-License-Identifier: MIT */
/*
 * Types shared by the files of this folder only.
 */
#ifndef TENURE_TRANSITION_PRIV_H
#define TENURE_TRANSITION_PRIV_H

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
} tn__need;

/* A plan, waiting or in flight. Lives on its thread's stack; linked under store->lock. */
typedef struct tn__ticket {
    struct tn__ticket *next;
    uint64_t index;     /* the handle it claims; 0: none */
    bool exclusive;     /* conflicts with every other plan */
    bool joins;         /* an ensure: may join a load of the same value */
    bool loading;       /* in flight, calling a source that others may join */
    tn__flight *flight; /* in flight: made by the first who joined; waiting: the one joined */
    tn__need needs[2];  /* 0: destination; 1: source location */
    /* locations where storage that was removed is being freed, by ledger position */
    uint8_t freeing[(TN__LEDGER_COUNT + 7) / 8];
} tn__ticket;

/* What judging a plan says; the detail is set for TN__JUDGE_FAIL. */
enum tn__judgement {
    TN__JUDGE_GO,      /* the ticket's needs are filled in; they are claimed next */
    TN__JUDGE_RECHECK, /* the value changed: call `recheck` without the lock, then judge again */
    TN__JUDGE_FAIL
};

typedef struct tn__judge {
    /* under store->lock; NULL: nothing to judge */
    enum tn__judgement (*judge)(void *context, tn_status *status);
    /* without it; NULL: never asked for */
    tn_status (*recheck)(void *context);
    void *context;
} tn__judge;

typedef struct tn__flow {
    /* broadcast by everyone who leaves the queue, settles, or raises the guard */
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
    tn__flow flow;   /* under store->lock */
    tn__trace trace; /* under store->lock */
    /* default transfer streams (G43), made at first use */
    tn_stream _Atomic streams[TN_CUDA_INDEX_MAX + 1];
};

/* ---- Flow ------------------------------------------------------------------------------- */

/* Wait for the plan's turn and judge it. TN_OK: in flight, store->lock is held. Otherwise: out of
 * the queue, not held. */
TN_NODISCARD tn_status tn__flow_admit(tn__trans *t, tn__thread *thread, tn__ticket *ticket,
                                      const tn__judge *judge);
/* Give back claims that are left, leave the flight, wake the others. Under store->lock. */
void tn__flow_leave(tn__trans *t, tn__ticket *ticket);
/* Tell those who joined how the load went. Under store->lock. */
void tn__flow_load_done(tn__ticket *ticket, tn_status status);
static inline void tn__flow_wake(tn__trans *t) { tn__cond_broadcast(&t->flow.changed); }
/* Claim a need if it fits (none always does). Under store->lock. */
static inline bool tn__need_claim(tn__need *need) {
    need->claimed = need->ledger && tn__ledger_claim(need->ledger, need->bytes);
    need->held = need->claimed;
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

/* ---- Decision table (pure) -------------------------------------------------------------- */

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
 * failure. */
TN_NODISCARD tn_status tn__choose(uint64_t manager, const tn__value *value, const tn_action *action,
                                  tn__choice *out);

/* ---- Shared steps ----------------------------------------------------------------------- */

/* The stream of a transfer to cuda:N: the one given, or the device's own. */
TN_NODISCARD tn_status tn__trans_stream(tn__trans *t, uint32_t device, tn_stream given,
                                        tn_stream *out, tn_stream_info *info);

/* An action from its first look to its report: action.c runs it, perform.c does the work. */
typedef struct tn__run {
    tn__trans *t;
    tn__thread *thread;
    tn_action action;
    tn_stream stream; /* given, or NULL */
    tn__ticket ticket;
    const tn_version *pinned; /* while waiting: keeps `value` comparable */
    const tn__value *value;   /* the record that `choice` was made from */
    tn__choice choice;
    tn__removal *removal; /* taken, not yet committed or cancelled */
    tn_payload loaded;    /* temporary payload, charged at needs[1] or needs[0] (in place) */
    tn__measured loaded_measured;
    bool loaded_owned;     /* its allocations are in the owner index */
    bool temporary;        /* its charge stands in the ledger */
    tn_payload made;       /* payload to install */
    tn__mat *mat;          /* object to install */
    tn__source *forgotten; /* discard: to be destroyed after commit */
    tn_report report;
    uint64_t sequence; /* of the report in the trace */
} tn__run;

TN_NODISCARD tn_status tn__run_perform(tn__run *run);
/* Under store->lock, which it gives up. `status`: how the work went; anything but TN_OK only
 * gives back what was claimed and made. */
TN_NODISCARD tn_status tn__run_commit(tn__run *run, tn_status status);
/* What the action removes. */
void tn__run_removals(const tn__run *run, tn__mat *const **mats, size_t *count);
/* Payloads and objects that were not installed. No lock. */
void tn__run_clean(tn__run *run);

/* Readings (M91, M92). No lock. */
void tn__report_begin(tn__run *run, const tn__value *value);
void tn__report_end(tn__run *run);

static inline bool tn__in_place(const tn__run *run) {
    return run->choice.step == TN__STEP_LOAD &&
           tn__location_same(run->choice.source, run->choice.destination);
}

#endif
