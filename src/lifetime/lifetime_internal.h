/* SPDX-License-Identifier: MIT */
/*
 * lifetime: who is using what right now. Leases, holds and reservations as records, one slot of
 * records per (thread, manager); the pin scan; the removal protocol; events and the reaper. The
 * protocol is explained in src/README.md.
 *
 * Invariants
 *  L1 storage is never freed, moved or reused while a record pins it or an event recorded at a
 *     release is incomplete.
 *  L2 an acquire of several values takes all or none.
 *  L3 no lifetime operation waits for a lock, a copy, a source or the reaper.
 *  L4 a record's word is left ACQUIRING and RELEASING only by the thread that entered them
 *     (stores); every other step is a CAS, so each effect happens once. Only FREE is reused.
 *     Memory of records is recycled, never unmapped.
 *  L5 an effect is counted by the thread whose CAS or store decides it, in its own slot, whose
 *     counter is odd meanwhile; nothing that locks, waits, calls a driver or reaps happens while
 *     a counter is odd.
 *
 * Called from any thread. "Section" below: an RCU section of base/rcu.h.
 */
#ifndef TENURE_LIFETIME_INTERNAL_H
#define TENURE_LIFETIME_INTERNAL_H

#include <tenure/lease.h>
#include <tenure/manager.h>

#include "placement/placement_internal.h"

typedef struct tn__life tn__life;
typedef struct tn__removal tn__removal;

/* What every operation looks at: on a page of its own that a forked child sees wiped. */
typedef struct tn__gate {
    _Atomic uintptr_t word; /* the manager word: see [manager-word] */
    _Atomic uint32_t
        reap; /* manual mode: something is pending, so operations reap first; see [pending] */
} tn__gate;

/* ---- The lifetimes of one manager ------------------------------------------------------- */

typedef struct tn__life_config {
    uint64_t manager;
    tn__store *store;
    tn_driver *driver;
    bool manual; /* no reaper thread */
    void (*diagnostic)(void *context, const tn_diagnostic *diagnostic);
    void *diagnostic_context;
} tn__life_config;

/* Starts the reaper thread unless manual. TN_ERR_HOST_MEMORY; TN_ERR_SYSTEM. */
TN_NODISCARD tn_status tn__life_create(const tn__life_config *config, tn__life **out);
/* After the manager is closed: ends the reaper, destroys the events, recycles the records. Waits
 * for a grace period; not in a section. */
void tn__life_destroy(tn__life *life);

tn__gate *tn__life_gate(tn__life *life);

/* Checks at the start of an operation (M198): forked, guard, closed, nesting. `closed_ok`:
 * releases work on a closed manager. */
TN_NODISCARD tn_status tn__life_enter(tn__life *life, tn__thread *thread, bool closed_ok);
/* Guard and closed again, by a mutation that holds store->lock and may have waited (M193). */
TN_NODISCARD tn_status tn__life_enter_waited(tn__life *life);
/* Guard only (M21, M235): locations, trace, clear trace. */
TN_NODISCARD tn_status tn__life_enter_guard_only(tn__life *life, tn__thread *thread);
/* Only whether this is a forked child: for what touches no state. */
TN_NODISCARD tn_status tn__life_enter_parent(const tn__life *life);
/* This thread ready for sections and with a slot. TN_ERR_HOST_MEMORY. *out_thread may be
 * NULL-checked by nobody: it is set on TN_OK. */
TN_NODISCARD tn_status tn__life_thread(tn__life *life, tn__thread **out_thread);
/* Both: the checks, then the thread made ready. */
TN_NODISCARD tn_status tn__life_begin(tn__life *life, bool closed_ok, tn__thread **out_thread);

/* Sum over all slots of floor(c/2). Stable: the sum did not change while it was read (retried a
 * few times), and no counter was odd. */
uint64_t tn__life_count(tn__life *life, bool *out_stable);

/* The state version (M117): placement number plus lifetime count, read until it is stable. */
uint64_t tn__state_version(tn__store *store, tn__life *life);
/* The same for a stale check, the last step of an admission: waits until each odd counter is even.
 * If it equals a version read before, nothing was counted since. No lock may be held. */
uint64_t tn__state_version_settled(tn__store *store, tn__life *life);
/* TN_ERR_STALE: it is another one than was expected (M126). */
TN__COLD tn_status tn__stale(uint64_t manager, uint64_t expected, uint64_t actual);

/* A warning through the hook. No lock may be held. */
void tn__life_warn(tn__life *life, enum tn_diagnostic_kind kind, tn_status status, tn_location at,
                   const char *message);

/* ---- Operations ------------------------------------------------------------------------- */

/* Arguments are checked, `at` is normalised; entry, reap and stream checks are done. */
TN_NODISCARD tn_status tn__life_acquire(tn__life *life, const tn_handle *handles, size_t count,
                                        tn_location at, tn_stream stream,
                                        const tn_stream_info *stream_info, tn_lease *out);
TN_NODISCARD tn_status tn__life_hold(tn__life *life, const tn_handle *handles, size_t count,
                                     tn_location at, tn_hold *out);
TN_NODISCARD tn_status tn__life_reserve(tn__life *life, tn_location at, uint64_t bytes,
                                        const char *label, tn_reservation *out);

/* The same with bytes that a plan in flight has claimed at the location; they stay claimed on
 * failure. */
TN_NODISCARD tn_status tn__life_reserve_claimed(tn__life *life, tn_location at, uint64_t bytes,
                                                const char *label, tn_reservation *out);

/* What tn__life_take_begin() would say now (admission is reported before an alias, M56). */
TN_NODISCARD tn_status tn__life_take_check(tn__life *life, const tn_reservation *reservation,
                                           tn_location at, uint64_t bytes);
/* Move `bytes` of an active reservation into the caller's hands: they stay in the ledger's total,
 * charged to nobody yet. Under store->lock. The slot's counter is odd from success until
 * tn__life_take_end(). TN_ERR_VALUE (other manager or location), TN_ERR_LIFETIME_CLOSED,
 * TN_ERR_BUDGET. */
TN_NODISCARD tn_status tn__life_take_begin(tn__life *life, const tn_reservation *reservation,
                                           tn_location at, uint64_t bytes);
void tn__life_take_end(tn__life *life);

/* ---- Hot paths of several values (hot.c) ------------------------------------------------- */

/* A reservation's label with its NUL, padded with zeros. */
#define TN__LABEL_BYTES 256u

typedef struct tn__hot_lease {
    const tn_handle *handles; /* at least one */
    size_t count;
    uint32_t kind; /* pageable or pinned */
} tn__hot_lease;

typedef struct tn__hot_reservation {
    tn__ledger *ledger;
    uint64_t bytes;
    tn_location at;
    uint32_t position; /* of the ledger */
    uint32_t label_words;
    uint64_t label[TN__LABEL_BYTES / sizeof(uint64_t)];
} tn__hot_reservation;

/* What is taken and ended together; prepared once. */
typedef struct tn__hot_bundle {
    uint64_t manager;
    tn__gate *gate;
    tn__store *store;
    tn__hot_lease *leases; /* at least one */
    size_t lease_count;
    tn__hot_reservation *reservations;
    size_t reservation_count;
} tn__hot_bundle;

/* `at` is normalised, `label` checked. */
void tn__hot_reservation_init(tn__hot_reservation *out, tn__store *store, tn_location at,
                              uint64_t bytes, const char *label);
/* Each of these may return false at any time: nothing was done (by tn__hot_end(): perhaps a part,
 * and ending that again has no effect); take the slow way, which makes all checks. No lock, no
 * allocation, no wait. `now`: of tn__ticks(), the reservations' admission. */
bool tn__hot_acquire(uint64_t manager, tn__gate *gate, tn__store *store, const tn__hot_lease *lease,
                     tn_lease *out);
bool tn__hot_take(const tn__hot_bundle *bundle, uint64_t now, tn_lease *leases,
                  tn_reservation *reservations);
bool tn__hot_end(const tn__hot_bundle *bundle, const tn_lease *leases,
                 const tn_reservation *reservations);

/* ---- Pending leases --------------------------------------------------------------------- */

/* Reap in manual mode, where M162 says; nothing with a reaper thread (D1). TN_ERR_DRIVER from a
 * query (M165). */
TN_NODISCARD tn_status tn__life_reap_manual(tn__life *life);
/* The same in any mode (close without wait). */
TN_NODISCARD tn_status tn__life_reap_now(tn__life *life);
/* One pass of the consumer in any mode: complete what is done, recycle records and events. Adds
 * the completions to *completed. */
TN_NODISCARD tn_status tn__life_reap(tn__life *life, uint64_t *completed);
/* Wait for the events of every pending lease and complete it (close with wait). */
TN_NODISCARD tn_status tn__life_wait_pending(tn__life *life);
/* Free retired descriptors and stream nodes after a grace period. Adds to *freed. */
TN_NODISCARD tn_status tn__life_collect(tn__life *life, uint64_t *freed);

/* ---- The pin scan ----------------------------------------------------------------------- */

/* What records say about one materialization (RELEASING counts as a use, ACQUIRING as nothing). */
typedef struct tn__protection {
    uint64_t uses, holds, pending;
} tn__protection;

static inline bool tn__protected(const tn__protection *p) {
    return (p->uses | p->holds | p->pending) != 0;
}

/* Count the protections of each of `count` materializations. */
void tn__life_protections(tn__life *life, tn__mat *const *mats, size_t count, tn__protection *out);
/* Complete pending leases that pin one of them and whose events are done. `out_protected`: false,
 * this look found no other protection of any of them; true, perhaps. The error of a failing query,
 * which changes nothing (M165); of a lost device it only leaves the lease pending. */
TN_NODISCARD tn_status tn__life_help(tn__life *life, tn__mat *const *mats, size_t count,
                                     bool *out_protected);

/* Counts of the whole manager (close, snapshot heads). */
typedef struct tn__totals {
    uint64_t active_leases, pending_leases, holds, reservations;
} tn__totals;
void tn__life_totals(tn__life *life, tn__totals *out);

/* One visible record, for snapshots. Pointers are valid inside the callback only. */
typedef struct tn__seen_pin {
    const tn__mat *mat; /* to compare, never to follow */
    uint64_t index;
} tn__seen_pin;

typedef struct tn__seen {
    enum { TN__SEEN_LEASE, TN__SEEN_PENDING, TN__SEEN_HOLD, TN__SEEN_RESERVATION } what;
    tn_location at;
    const tn__seen_pin *pins;
    size_t pin_count;
    uint64_t bytes;    /* reservation */
    uint64_t admitted; /* reservation: order of admission, with `tie` */
    uint64_t tie;
    const char *label; /* reservation: TN__LABEL_BYTES, zero-padded */
    void *record;      /* pending: for tn__life_seen_over() */
    uint64_t word;
} tn__seen;

/* One pass over all records. `each` returns false to stop (no memory). */
bool tn__life_walk(tn__life *life, bool (*each)(void *context, const tn__seen *seen),
                   void *context);

/* Whether the events of a pending record that was seen are complete at this moment, or it is over
 * by now. Completes nothing; a query that fails says no, and leaves the thread's error alone. */
bool tn__life_seen_over(tn__life *life, void *record, uint64_t word);

/* How often an acquire of this manager had to look up twice (tests: bounded by the removals). */
uint64_t tn__life_looks(tn__life *life);

/* Counters of all slots for an exact snapshot: the sum of floor(c/2), a fingerprint of all
 * counters, and whether one is odd. */
typedef struct tn__counts {
    uint64_t sum, raw, slots;
    bool odd;
} tn__counts;
void tn__life_counts(tn__life *life, tn__counts *out);

/* ---- Removal: one decision per plan ----------------------------------------------------- */

/*
 * Take materializations that a plan will remove. The caller holds the claims of their handles and
 * no lock. On TN_OK they are TAKEN: acquires fail with `busy`, storage stays until
 * tn__removal_commit() or tn__removal_end(). `later`: how many the plan will make itself and
 * remove later (tn__removal_add). TN_ERR_IN_USE with the three counts of the first protected one;
 * TN_ERR_SYSTEM the heavy fence failed, nothing is taken; TN_ERR_HOST_MEMORY.
 */
TN_NODISCARD tn_status tn__removal_take(tn__life *life, tn__mat *const *mats, size_t count,
                                        size_t later, tn__removal **out);
/* A materialization that is not published yet and that the same plan will remove: it is published
 * already taken, so that nobody can use it in between. */
void tn__removal_add(tn__removal *removal, tn__mat *mat);
/* Whether it is taken by this plan. */
bool tn__removal_has(const tn__removal *removal, const tn__mat *mat);
/* Under store->lock, just before publishing the version without them: their state words become
 * GONE. */
void tn__removal_commit(tn__removal *removal, tn__mat *const *mats, size_t count);
/* The end of every plan: what is left is given back, LIVE again, and the descriptor is let go. */
void tn__removal_end(tn__life *life, tn__removal *removal);
/* TN_ERR_IN_USE for a materialization (M113). */
TN__COLD tn_status tn__in_use(const tn__life *life, const tn__mat *mat, const tn__protection *p,
                              tn_handle handle);

/* ---- Manager word: close and the callback guard ----------------------------------------- */

/* The guard (SERIAL): raise under store->lock, then, without it, wait until nobody is past the
 * check. TN_ERR_REENTRANCY in a section of the host (then the guard is down again). */
void tn__life_guard_raise(tn__life *life);
TN_NODISCARD tn_status tn__life_guard_wait(tn__life *life);
void tn__life_guard_lower(tn__life *life);
/* In a child of the process that made the manager: its locks may be held for ever. */
bool tn__life_forked(const tn__life *life);
bool tn__life_closed(const tn__life *life);

/* Close as a plan on the manager word. No plan is in flight and none can start. TN_ERR_IN_USE
 * with the four counts. */
TN_NODISCARD tn_status tn__life_close(tn__life *life);
/* Forced: keep new lifetimes out, synchronise `devices` with `sync` (an error undoes it: M238),
 * detach what is left. */
TN_NODISCARD tn_status tn__life_close_force(tn__life *life, tn_status (*sync)(void *context),
                                            void *context);
/* Before a destroy of an open manager: a diagnostic per open lifetime, streams of open leases
 * synchronised (D15). */
void tn__life_abandon(tn__life *life);
/* M148: an abandoned lease may still be read by a device: no payload may be freed, for the rest
 * of the process. */
bool tn__life_keeps_storage(const tn__life *life);
void tn__life_keep_storage(tn__life *life);
/* Something was retired: the reaper has work. */
void tn__life_wake(tn__life *life);

/* ---- Leases by value (the record knows its manager) ------------------------------------- */

TN_NODISCARD tn_status tn__lease_lookup(const tn_lease *lease, tn_handle handle, const void **out);
TN_NODISCARD tn_status tn__lease_contains(const tn_lease *lease, tn_handle handle, bool *out);
TN_NODISCARD tn_status tn__lease_add_stream(const tn_lease *lease, tn_stream stream);
TN_NODISCARD tn_status tn__lease_release(const tn_lease *lease, bool wait);
/* End a lease that was never handed out: there is no consumer work to wait for, so it protects no
 * longer, on devices too. */
TN_NODISCARD tn_status tn__lease_cancel(const tn_lease *lease);
/* Holds and reservations. */
TN_NODISCARD tn_status tn__record_release(void *record, uint64_t generation);
/* The same by an operation of the manager that is under way: it is not refused as nested. */
TN_NODISCARD tn_status tn__record_release_inside(void *record, uint64_t generation);
bool tn__record_active(void *record, uint64_t generation);
TN_NODISCARD tn_status tn__record_handles(void *record, uint64_t generation, tn_handle *out,
                                          size_t *inout_count);
TN_NODISCARD tn_status tn__record_location(void *record, uint64_t generation, tn_location *out);
TN_NODISCARD tn_status tn__reservation_read(const tn_reservation *reservation,
                                            tn_reservation_info *out);

/* Events for copies: one per call from this thread's pool for the stream's context; give it back
 * when it is complete. */
typedef struct tn__event tn__event;
TN_NODISCARD tn_status tn__event_take(tn__life *life, const tn_stream_info *info, tn__event **out);
void tn__event_give(tn__event *event);
tn_event tn__event_native(const tn__event *event);

/* Test hook (MC114): forget the streams of an active lease. */
void tn__lease_test_clear_streams(const tn_lease *lease);

#endif
