/* SPDX-License-Identifier: MIT */
/*
 * The manager word: callback guard, close, forced close. Close is a plan on this word, decided
 * like a removal: readers load it last and abort a close that is being tried. Who must wait for
 * everybody waits for a grace period, for RELEASING words to go, and for another grace period (a
 * release has two sections).
 */
#include "lifetime/lifetime_priv.h"

static void set_word(tn__life *life, uintptr_t word) {
    /* [manager-word] release. Pairs: acquire wherever it is loaded. Orders: what the writer did
     * before -> the word. Without: an operation after a guard, or a reader that meets a closing
     * plan, reads older memory. */
    tn__store_rel(&life->gate->word, word);
}

static tn_status wait_for_everybody(tn__life *life) {
    tn_status status = tn__rcu_synchronize();
    if (status != TN_OK)
        return status;
    tn__scan_wait_releasing(life);
    return tn__rcu_synchronize();
}

/* ---- Guard ------------------------------------------------------------------------------ */

void tn__life_guard_raise(tn__life *life) { set_word(life, TN__MANAGER_GUARDED); }

tn_status tn__life_guard_wait(tn__life *life) { return wait_for_everybody(life); }

/* By CAS: in a child that was forked inside the callback the word is 0 and stays it. */
void tn__life_guard_lower(tn__life *life) {
    uintptr_t guarded = TN__MANAGER_GUARDED;
    (void)tn__cas_rel(&life->gate->word, &guarded, TN__MANAGER_OPEN); /* [manager-word] */
}

void tn__life_wait_idle(tn__life *life) {
    tn_status status = wait_for_everybody(life);
    TN_ASSERT(status == TN_OK);
    (void)status;
    tn__pause pause = {0};
    /* [waiters] acquire: see wait_and_complete(). */
    while (tn__load_acq(&life->waiters) != 0)
        tn__pause_once(&pause);
    /* [no-order] whoever can still be inside made its slot before a section that is over */
    for (tn__slot *slot = tn__load_rlx(&life->slots); slot; slot = slot->next)
        while (tn__load_acq(&slot->counter) & 1) /* [count] */
            tn__pause_once(&pause);
}

/* ---- Close ------------------------------------------------------------------------------ */

static tn_status still_open(tn__life *life, const tn__totals *t) {
    tn_error *e = tn__error(
        TN_ERR_IN_USE, "%llu active leases, %llu pending leases, %llu holds, %llu reservations",
        (unsigned long long)t->active_leases, (unsigned long long)t->pending_leases,
        (unsigned long long)t->holds, (unsigned long long)t->reservations);
    e->manager = life->manager;
    e->active_lease_count = t->active_leases;
    e->pending_lease_count = t->pending_leases;
    e->hold_count = t->holds;
    e->reservation_count = t->reservations;
    return TN_ERR_IN_USE;
}

static bool any(const tn__totals *t) {
    return (t->active_leases | t->pending_leases | t->holds | t->reservations) != 0;
}

/* One attempt: TN_OK with *closed, or without: try anew. */
static tn_status attempt(tn__life *life, bool *closed) {
    tn__removal *closing = tn__removal_new(NULL, 0, 0);
    if (!closing)
        return tn__no_memory();
    set_word(life, (uintptr_t)closing);
    tn_status status = tn__heavy_fence(); /* [fence] manager word stored -> records loaded */
    int settled = 0;
    if (status == TN_OK)
        settled = tn__decision_settle(life, closing);
    else
        tn__decision_withdraw(closing);
    *closed = status == TN_OK && settled == 1;
    set_word(life, *closed ? TN__MANAGER_CLOSED : TN__MANAGER_OPEN);
    tn__garbage_push(life, &closing->garbage);
    return status;
}

tn_status tn__life_close(tn__life *life) {
    bool closed = false;
    while (!closed) {
        tn__totals t;
        tn__life_totals(life, &t);
        if (any(&t))
            return still_open(life, &t);
        tn_status status = attempt(life, &closed);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

/* ---- Forced close ----------------------------------------------------------------------- */

typedef struct detaching {
    tn__life *life;
    tn__slot *own;
    bool some; /* found something that was not over */
} detaching;

static tn__scan_step visit_detach(void *context, tn__record *record, uint64_t word) {
    detaching *d = context;
    enum tn__record_state state = tn__word_state(word);
    if (state == TN__PENDING)
        (void)tn__pending_complete(d->own, record, word);
    d->some |= state == TN__PENDING || state == TN__RELEASING || state == TN__ACTIVE;
    if (state != TN__ACTIVE)
        return TN__SCAN_ON;
    uint64_t what = tn__load_rlx(&record->what);
    uint64_t bytes = tn__load_rlx(&record->pair.high);
    /* [no-order] a release that comes first has won; from now on it is a silent success, which reads
     * nothing of ours. */
    if (tn__cas_rlx(&record->pair.low, &word, tn__word(tn__word_generation(word), TN__DETACHED)) &&
        tn__what_kind(what) == TN__KIND_RESERVATION)
        tn__ledger_uncharge(tn__store_ledger(d->life->store, tn__what_location(what)), bytes);
    return TN__SCAN_ON;
}

/* Until a pass finds nothing: a release may have been recording its events, and end PENDING, or
 * ACTIVE again. No new lifetime can begin. */
static tn_status detach_all(tn__life *life, tn__slot *own) {
    detaching d = {life, own, true};
    tn_status status = TN_OK;
    while (d.some && status == TN_OK) {
        d.some = false;
        tn__scan(life, visit_detach, &d);
        if (d.some)
            status = wait_for_everybody(life);
    }
    return status;
}

/* No heavy fence: a grace period is one, and leaves nobody who has not seen the word. */
static tn_status shut_out(tn__life *life, tn__removal *closing) {
    /* TAKEN from the start: whoever meets it fails with CLOSED. */
    tn__store_rlx(&closing->decision, TN__TAKEN); /* [no-order] published by the word below */
    set_word(life, (uintptr_t)closing);
    return wait_for_everybody(life);
}

tn_status tn__life_close_force(tn__life *life, tn_status (*sync)(void *context), void *context) {
    tn__thread *thread;
    tn_status status = tn__life_thread(life, &thread);
    if (status != TN_OK)
        return status;
    tn__removal *closing = tn__removal_new(NULL, 0, 0);
    if (!closing)
        return tn__no_memory();
    status = shut_out(life, closing);
    if (status == TN_OK)
        status = sync(context);
    if (status == TN_OK)
        status = detach_all(life, tn__life_own_slot(life, thread));
    set_word(life, status == TN_OK ? TN__MANAGER_CLOSED : TN__MANAGER_OPEN);
    tn__garbage_push(life, &closing->garbage);
    uint64_t completed = 0;
    if (status == TN_OK)
        (void)!tn__life_reap(
            life, &completed); /* records that are over; nothing can fail the close now */
    return status;
}

/* ---- Abandonment (D15) ------------------------------------------------------------------ */

static void synchronize_streams(tn__life *life, tn__record *record) {
    /* [no-order] no other call is in progress */
    tn__stream_node *node = (tn__stream_node *)(uintptr_t)tn__load_rlx(&record->streams.high);
    for (; node; node = tn__load_rlx(&node->next))
        if (tn__stream_synchronize(life->driver, tn__load_rlx(&node->stream)) != TN_OK)
            life->keep_storage = true;
}

static tn__scan_step visit_abandoned(void *context, tn__record *record, uint64_t word) {
    static const enum tn_diagnostic_kind kinds[] = {0, TN_DIAGNOSTIC_LEASE_ABANDONED,
                                                    TN_DIAGNOSTIC_HOLD_ABANDONED,
                                                    TN_DIAGNOSTIC_RESERVATION_ABANDONED};
    static const char *const texts[] = {"", "a lease was abandoned", "a hold was abandoned",
                                        "a reservation was abandoned"};
    tn__life *life = context;
    if (tn__word_state(word) != TN__ACTIVE)
        return TN__SCAN_ON;
    uint64_t what = tn__load_rlx(&record->what);
    enum tn__record_kind kind = tn__what_kind(what);
    tn_location at = tn__what_location(what);
    if (kind == TN__KIND_LEASE && at.kind == TN_LOCATION_CUDA)
        synchronize_streams(life, record);
    tn__life_warn(life, kinds[kind], TN_OK, at, texts[kind]);
    return TN__SCAN_ON;
}

void tn__life_abandon(tn__life *life) { tn__scan(life, visit_abandoned, life); }

void tn__life_keep_storage(tn__life *life) { life->keep_storage = true; }

bool tn__life_keeps_storage(const tn__life *life) { return life->keep_storage; }
