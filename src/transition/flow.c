/* SPDX-License-Identifier: MIT */
/*
 * Who goes when. Claims are taken all-or-wait, first come first served: a plan that conflicts
 * with one in flight, or with an earlier *waiting* one, waits. A plan whose bytes do not fit
 * waits only while plans in flight hold bytes at that location (claims, the temporary charge of a
 * load, or what they will remove themselves), then it is judged again and, if need be, refused
 * (M258). Everyone who leaves the queue or settles broadcasts, but for who joins a load.
 *
 * No deadlock: a plan in flight has all its claims and waits for no other plan; a plan that waits
 * has none. A thread inside a source callback belongs to a plan in flight: in TN_MODE_CONCURRENT
 * it is refused instead of waiting (D3), in TN_MODE_SERIAL the guard refuses it.
 */
#include "transition/transition_priv.h"

static void unlink_ticket(tn__ticket **list, tn__ticket *ticket) {
    while (*list && *list != ticket)
        list = &(*list)->next;
    if (*list)
        *list = ticket->next;
    ticket->next = NULL;
}

static void append(tn__ticket **list, tn__ticket *ticket) {
    while (*list)
        list = &(*list)->next;
    ticket->next = NULL;
    *list = ticket;
}

static bool has(const tn__ticket *ticket, uint64_t index) {
    size_t low = 0, high = ticket->handle_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ticket->handles[middle] == index)
            return true;
        if (ticket->handles[middle] < index)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

static bool clash(const tn__ticket *a, const tn__ticket *b) {
    if (a->exclusive || b->exclusive)
        return true;
    const tn__ticket *few = a->handle_count < b->handle_count ? a : b;
    const tn__ticket *many = few == a ? b : a;
    for (size_t i = 0; i < few->handle_count; i++)
        if (has(many, few->handles[i]))
            return true;
    return false;
}

static bool same_bytes(const tn__ticket *a, const tn__ticket *b) {
    for (size_t i = 0; i < a->need_count; i++)
        for (size_t j = 0; j < b->need_count; j++)
            if (a->needs[i].ledger && a->needs[i].ledger == b->needs[j].ledger &&
                a->needs[i].bytes && b->needs[j].bytes)
                return true;
    return false;
}

/* The plan in flight that this one conflicts with. */
static tn__ticket *blocker(const tn__flow *flow, const tn__ticket *ticket) {
    for (tn__ticket *f = flow->in_flight; f; f = f->next)
        if (clash(f, ticket)) {
            TN__BRANCH(flow_waits_for_handle);
            return f;
        }
    return NULL;
}

static bool behind(const tn__flow *flow, const tn__ticket *ticket) {
    for (const tn__ticket *w = flow->waiting; w != ticket; w = w->next)
        if (clash(w, ticket) || same_bytes(w, ticket)) {
            TN__BRANCH(flow_waits_behind);
            return true;
        }
    return false;
}

enum examined { GO, WAIT, RECHECK, REFUSED };

static void unclaim_all(tn__ticket *ticket) {
    for (size_t i = 0; i < ticket->need_count; i++)
        tn__need_unclaim(&ticket->needs[i]);
}

/* Whether a plan in flight holds bytes there that it may give back: a claim, the temporary charge
 * of a load, or what one of its later steps removes (neither a transient claim of an operation that
 * then fails is a reason for a refusal, nor what a plan uses for a while: M258). */
static bool holds(const tn__store *store, const tn__ticket *f, const tn__ledger *ledger) {
    size_t position = (size_t)(ledger - store->ledgers);
    if (f->freeing[position / 8] >> position % 8 & 1)
        return true;
    for (size_t i = 0; i < f->need_count; i++)
        if ((f->needs[i].held || f->needs[i].frees) && f->needs[i].ledger == ledger)
            return true;
    return false;
}

static bool others_hold(const tn__trans *t, const tn__ticket *own, const tn__ledger *ledger) {
    for (const tn__ticket *f = t->flow.in_flight; f; f = f->next)
        if (f != own && holds(t->store, f, ledger))
            return true;
    return false;
}

static bool fits(const tn__need *need) {
    uint64_t total, claimed;
    tn__ledger_read(need->ledger, &total, &claimed);
    uint64_t after = tn__add_capped(total, need->bytes);
    return need->bytes == 0 ||
           (after <= (uint64_t)INT64_MAX &&
            (need->ledger->budget == TN__UNLIMITED || after <= need->ledger->budget));
}

/* A plan that will wait claims nothing, not even for a moment: a reserve could be refused by it. */
static bool must_wait(const tn__trans *t, const tn__ticket *ticket) {
    for (size_t i = 0; i < ticket->need_count; i++)
        if (ticket->needs[i].ledger && !fits(&ticket->needs[i]) &&
            others_hold(t, ticket, ticket->needs[i].ledger)) {
            TN__BRANCH(flow_waits_for_bytes);
            return true;
        }
    return false;
}

/* All claims or none. The source location is judged first (M73). */
static enum examined claim_all(tn__trans *t, tn__ticket *ticket, bool reasons, tn_status *status) {
    if (must_wait(t, ticket))
        return WAIT;
    for (size_t i = ticket->need_count; i-- > 0;) {
        tn__need *need = &ticket->needs[i];
        if (tn__need_claim(need))
            continue;
        /* a reserve was faster: ask again */
        bool wait = others_hold(t, ticket, need->ledger);
        if (!wait && need->optional)
            continue;
        unclaim_all(ticket);
        TN__BRANCH(claims_refused);
        if (wait)
            return WAIT;
        if (reasons) {
            ticket->squeezed = true;
            return RECHECK;
        }
        *status = tn__store_refuse(t->store, need->at, need->bytes);
        return REFUSED;
    }
    return GO;
}

/* How often a plan that is short of bytes is judged by the ledger anew because it has changed. In
 * its turn that is the work of reservations, which come and go without end; and once of each plan in
 * front of it whose bytes were not known, as it waited for a handle. */
#define LOOKS 16

/* Whether the bytes there are not those that the judgement began with: its version and its ledger
 * are of two moments, before and after another plan's commit, which is no reason for a refusal
 * (M256, M258). */
static bool moved_on(tn__ticket *ticket) {
    uint64_t total, claimed;
    tn__ledger_read(ticket->short_at, &total, &claimed);
    return total - claimed != ticket->short_began && ticket->looks++ < LOOKS;
}

static enum examined judged_short(const tn__trans *t, tn__ticket *ticket) {
    ticket->outdated = others_hold(t, ticket, ticket->short_at);
    if (ticket->outdated)
        return WAIT;
    if (!moved_on(ticket))
        return REFUSED;
    TN__BRANCH(flow_moved_on);
    ticket->squeezed = true;
    return RECHECK;
}

static enum examined judged(tn__trans *t, tn__ticket *ticket, const tn__judge *judge,
                            tn_status *status) {
    if (ticket->outdated) {
        ticket->outdated = false;
        return RECHECK;
    }
    switch (judge->judge ? judge->judge(judge->context, status) : TN__JUDGE_GO) {
    case TN__JUDGE_RECHECK:
        return RECHECK;
    case TN__JUDGE_FAIL:
        return REFUSED;
    case TN__JUDGE_SHORT:
        return judged_short(t, ticket);
    default:
        return GO;
    }
}

static enum examined examine(tn__trans *t, tn__ticket *ticket, const tn__judge *judge,
                             tn_status *status) {
    if (blocker(&t->flow, ticket) || behind(&t->flow, ticket))
        return WAIT;
    enum examined e = judged(t, ticket, judge, status);
    if (e != GO)
        return e;
    if (behind(&t->flow, ticket)) /* its bytes are known now */
        return WAIT;
    return claim_all(t, ticket, judge->reasons, status);
}

/* ---- Joining a load: it does not queue -------------------------------------------------- */

static void flight_drop(tn__flight *flight) {
    if (flight && --flight->refs == 0)
        tn__free(flight);
}

static tn__flight *flight_of(tn__ticket *loader) {
    if (!loader->flight) {
        loader->flight = tn__zalloc(sizeof *loader->flight);
        if (!loader->flight)
            return NULL; /* then it waits like anybody else */
        loader->flight->refs = 1;
    }
    loader->flight->refs++;
    return loader->flight;
}

void tn__flow_load_done(tn__ticket *ticket, tn_status status) {
    tn__flight *flight = ticket->flight;
    ticket->loading = 0;
    ticket->flight = NULL; /* a plan's next load is another flight */
    if (!flight)
        return;
    flight->done = true;
    flight->status = status;
    if (status != TN_OK)
        flight->error = *tn__error_current();
    flight_drop(flight);
}

static tn_status join(tn__trans *t, tn__ticket *ticket, tn__flight *flight) {
    tn_status status = TN_OK;
    TN__BRANCH(flow_joins_load);
    /* Nobody need be told: who waits behind this ticket for its value waits for the load, too; and for
     * its bytes nobody does, as it has never been judged: one with its value's plan in front is not,
     * and one that was lets no other plan of its value pass. */
    unlink_ticket(&t->flow.waiting, ticket);
    while (!flight->done && status == TN_OK) {
        tn__cond_wait(&t->flow.changed, &t->store->lock);
        status = tn__life_enter_waited(t->life);
    }
    if (flight->done && flight->status != TN_OK)
        status = tn__error_restore(&flight->error);
    flight_drop(flight);
    append(&t->flow.waiting, ticket);
    return status;
}

static tn_status may_wait(const tn__trans *t, tn__thread *thread) {
    if (!t->serial && tn__frame_inside(thread, 0, true))
        return tn__fail(TN_ERR_REENTRANCY, "a source callback must not wait for a transition");
    return TN_OK;
}

tn_status tn__flow_wait(tn__trans *t, tn__thread *thread) {
    tn_status status = may_wait(t, thread);
    if (status != TN_OK)
        return status;
    tn__cond_wait(&t->flow.changed, &t->store->lock);
    return tn__life_enter_waited(t->life);
}

static tn_status wait_turn(tn__trans *t, tn__thread *thread, tn__ticket *ticket) {
    tn_status status = may_wait(t, thread);
    if (status != TN_OK)
        return status;
    tn__ticket *in_front = blocker(&t->flow, ticket);
    if (in_front && in_front->loading && ticket->joins && in_front->loading == ticket->handles[0]) {
        tn__flight *flight = flight_of(in_front);
        if (flight)
            return join(t, ticket, flight);
    }
    return tn__flow_wait(t, thread);
}

/* ---- Admission -------------------------------------------------------------------------- */

tn_status tn__flow_admit(tn__trans *t, tn__thread *thread, tn__ticket *ticket,
                         const tn__judge *judge) {
    ticket->exclusive |= t->serial;
    tn__lock(&t->store->lock);
    tn_status status = tn__life_enter_waited(t->life);
    append(&t->flow.waiting, ticket);
    while (status == TN_OK) {
        enum examined e = examine(t, ticket, judge, &status);
        if (e == GO) {
            unlink_ticket(&t->flow.waiting, ticket);
            append(&t->flow.in_flight, ticket);
            TN__AT(TN__POINT_ADMIT, ticket);
            tn__flow_wake(t);
            return TN_OK;
        }
        if (e == WAIT) {
            status = wait_turn(t, thread, ticket);
        } else if (e == RECHECK) {
            TN__BRANCH(flow_rechecks);
            tn__unlock(&t->store->lock);
            status = judge->recheck(judge->context);
            tn__lock(&t->store->lock);
        }
    }
    unlink_ticket(&t->flow.waiting, ticket);
    tn__flow_wake(t);
    tn__unlock(&t->store->lock);
    return status;
}

tn_status tn__flow_claim(tn__trans *t, tn__thread *thread, tn__ticket *ticket) {
    tn_status status = TN_OK;
    while (status == TN_OK && claim_all(t, ticket, false, &status) == WAIT)
        status = tn__flow_wait(t, thread);
    return status;
}

void tn__flow_leave(tn__trans *t, tn__ticket *ticket) {
    TN_ASSERT(!ticket->loading && !ticket->flight); /* those who joined have been told */
    unclaim_all(ticket);
    unlink_ticket(&t->flow.in_flight, ticket);
    tn__flow_wake(t);
}
