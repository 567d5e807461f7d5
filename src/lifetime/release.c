/* SPDX-License-Identifier: MIT */
/*
 * The ends of leases, holds and reservations, on any thread.
 *
 * Host: one CAS, ACTIVE -> FREE. CUDA: a first section takes ACTIVE -> RELEASING; outside any
 * section one event per registered stream is recorded; a second section makes it PENDING, counts,
 * and queues it for the consumer. Whoever waits for everybody (guard, destroy, forced close)
 * waits for a grace period, for RELEASING words to go, and for another grace period.
 */
#include "lifetime/lifetime_priv.h"

typedef struct ending {
    tn__record *record;
    uint64_t generation;
    uint64_t what;
    tn__life *life; /* valid inside a section that saw the record open, and while it is RELEASING */
    tn__thread *thread;
    tn__slot *own;
    bool inside; /* by a plan in flight, whose entry was checked */
    bool unused; /* nobody was told of it: no consumer work can depend on it */
} ending;

/* After a forced close a release is a silent success (M150), also one that the close has
 * overtaken; nothing is counted. */
static void end_detached(ending *e, uint64_t word) {
    if (word == tn__word(e->generation, TN__DETACHED))
        /* [no-order] of several releases one ends it; nobody reads anything of it then */
        (void)tn__cas_rlx(&e->record->pair.low, &word, tn__word(e->generation, TN__FREE));
}

/* In a section. True: it is over already, or ended by this look. */
static bool over_already(ending *e) {
    uint64_t word = tn__record_word(e->record);
    if (tn__word_generation(word) != e->generation)
        return true;
    switch (tn__word_state(word)) {
    case TN__ACTIVE:
        e->what = tn__load_rlx(&e->record->what);
        e->life = e->record->slot->life;
        return false;
    case TN__PENDING: { /* M146: the object was left open by a failed wait; now it is closed */
        uint64_t open = e->generation;
        (void)tn__cas_rlx(&e->record->open_generation, &open, 0);
        return true;
    }
    case TN__DETACHED:
        end_detached(e, word);
        return true;
    default:
        return true;
    }
}

/* ---- Host ------------------------------------------------------------------------------ */

/* In the section, like all that touches the manager after the CAS: with it the last lifetime may be
 * over, and then another thread may close and destroy. */
static void end_host(ending *e) {
    uint64_t word = tn__word(e->generation, TN__ACTIVE);
    uint64_t count = tn__count_begin(e->own);
    /* [word] release. Pairs: acquire in tn__scan(). Orders: the caller's reads of the payload ->
     * the end of its protection. Without: the storage is reused under a reader. */
    bool won = tn__cas_rel(&e->record->pair.low, &word, tn__word(e->generation, TN__FREE));
    tn__count_end(e->own, count, won);
    if (won) {
        tn__record_recycle(e->record, e->own);
        return;
    }
    TN__BRANCH(release_lost);
    end_detached(e, word);
}

static void end_reservation(ending *e) {
    uint64_t active = tn__word(e->generation, TN__ACTIVE), bytes;
    uint64_t count = tn__count_begin(e->own);
    bool won = false;
    do {
        bytes = tn__load_rlx(&e->record->pair.high);
        if (tn__record_word(e->record) != active)
            break;
        /* [word] acq_rel: word and bytes end together, so that no adoption takes bytes of a
         * reservation that is over. */
        won = tn__pair_cas_acq_rel(&e->record->pair, active, bytes,
                                   tn__word(e->generation, TN__FREE), 0);
    } while (!won);
    if (won)
        tn__ledger_uncharge(tn__store_ledger(e->life->store, tn__what_location(e->what)), bytes);
    tn__count_end(e->own, count, won);
    if (won)
        tn__record_recycle(e->record, e->own);
    else
        end_detached(e, tn__record_word(e->record));
}

/* ---- CUDA ------------------------------------------------------------------------------ */

static void give_events(ending *e, size_t count) {
    tn__events *events = tn__load_rlx(&e->record->events);
    for (size_t i = 0; i < count; i++)
        tn__event_give(tn__load_rlx(&events->event[i]));
    tn__store_rlx(&e->record->event_count, 0);
}

static tn_status record_one(ending *e, const tn__stream_node *node, tn__event **out) {
    tn_stream_info info = {.device = tn__load_rlx(&node->device),
                           .context = tn__load_rlx(&node->context)};
    tn_status status = tn__event_take(e->life, &info, out);
    if (status != TN_OK)
        return status;
    TN__AT(TN__POINT_RECORD_EVENT, e->record);
    status = tn__event_record(e->life->driver, tn__event_native(*out), tn__load_rlx(&node->stream));
    if (status != TN_OK)
        tn__event_give(*out);
    return status;
}

/* One event per stream, in registration order; on failure those recorded are given back. */
static tn_status record_all(ending *e, tn__stream_node *nodes) {
    size_t count = 0, n = 0;
    for (tn__stream_node *node = nodes; node; node = tn__load_rlx(&node->next))
        count++;
    tn__events *events = tn__record_events(e->record, count);
    if (!events)
        return tn__no_memory();
    for (tn__stream_node *node = nodes; node; node = tn__load_rlx(&node->next)) {
        tn__event *event = NULL;
        tn_status status = record_one(e, node, &event);
        if (status != TN_OK) {
            give_events(e, n);
            return status;
        }
        /* [event-shown] release. Pairs: acquire in copy_events(). Orders: the event's making -> its
         * place. Without: who still looks at the record's last life asks an event that is not there
         * yet; that its answer does not count then comes too late. */
        tn__store_rel(&events->event[n++], event);
    }
    tn__store_rlx(&e->record->event_count, (uint32_t)n);
    TN__AT(TN__POINT_RECORDED, e->record);
    return TN_OK;
}

static void enqueue(ending *e) {
    tn__life *life = e->life;
    tn__queue_push(&life->queue, &e->record->queued);
    if (life->manual)
        tn__store_rel(&life->gate->reap, 1); /* [pending] */
    tn__life_wake(life);
}

/* Leave RELEASING: to PENDING, FREE (counted) or back to ACTIVE (not). The second section, and the
 * last look at the manager, unless the caller waits (`waiting`: then it is a waiter that a destroy
 * waits for, and the record is not queued). */
static void leave(ending *e, enum tn__record_state state, bool waiting) {
    tn__rcu_lock();
    if (waiting)
        tn__add_rlx(&e->life->waiters, 1); /* [no-order] before PENDING, in a section */
    uint64_t count = tn__count_begin(e->own);
    /* [word] release: the recorded events, or the synchronised streams -> the state that speaks of
     * them. Only this thread leaves RELEASING. */
    tn__store_rel(&e->record->pair.low, tn__word(e->generation, state));
    tn__count_end(e->own, count, state != TN__ACTIVE);
    if (state == TN__PENDING && !waiting)
        enqueue(e);
    if (state == TN__FREE)
        tn__record_recycle(e->record, e->own);
    tn__rcu_unlock();
}

static tn_status synchronize_all(ending *e, tn__stream_node *nodes) {
    if (!nodes) /* M147 */
        return tn__device_synchronize(e->life->driver, tn__what_location(e->what).index);
    tn_status first = TN_OK;
    for (tn__stream_node *node = nodes; node; node = tn__load_rlx(&node->next)) {
        tn_status status = tn__stream_synchronize(e->life->driver, tn__load_rlx(&node->stream));
        if (first == TN_OK)
            first = status;
    }
    return first;
}

/* M144, M145, M147: no events, so the streams (or the device) are synchronised. */
static tn_status fall_back(ending *e, tn__stream_node *nodes, tn_status cause) {
    tn_error first = *tn__error_current();
    tn_status status = synchronize_all(e, nodes);
    if (status != TN_OK) {
        tn__streams_reopen(e->record, e->generation, nodes);
        leave(e, TN__ACTIVE, false);
        return status;
    }
    tn__streams_retire(e->life, e->record, nodes);
    tn_location at = tn__what_location(e->what);
    tn__life *life = e->life;
    if (cause != TN_OK)
        tn__error_restore(&first);
    tn__life_warn(life, TN_DIAGNOSTIC_RELEASE_FALLBACK, cause, at,
                  cause == TN_OK ? "a lease without stream: the device was synchronised"
                                 : "an event could not be recorded: the streams were synchronised");
    leave(e, TN__FREE, false);
    return TN_OK;
}

static tn_status wait_for_events(ending *e) {
    tn__events *events = tn__load_rlx(&e->record->events);
    uint32_t count = tn__load_rlx(&e->record->event_count);
    for (uint32_t i = 0; i < count; i++) {
        tn_event native = tn__event_native(tn__load_rlx(&events->event[i]));
        tn_status status = tn__event_synchronize(e->life->driver, native);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

/* M141, M146. The record is PENDING but not queued, so its events stay ours: this thread is its
 * consumer. A destroy waits for waiters. */
static tn_status wait_and_complete(ending *e) {
    tn_status status = wait_for_events(e);
    if (status != TN_OK) {
        /* [no-order] read by the object's own users */
        tn__store_rlx(&e->record->open_generation, e->generation);
        enqueue(e);
    } else {
        /* or a helper did */
        (void)tn__pending_complete(e->own, e->record, tn__word(e->generation, TN__PENDING));
        tn__pending_consume(e->record, e->own);
    }
    /* [waiters] release. Pairs: acquire in tn__life_wait_idle(). Orders: our last use of the
     * manager -> its destruction. Without: we touch freed slots. */
    tn__sub_acq_rel(&e->life->waiters, 1);
    return status;
}

/* RELEASING already: this thread alone goes on. */
static tn_status end_cuda(ending *e, bool wait) {
    tn__stream_node *nodes = tn__streams_close(e->record);
    if (e->unused) {
        tn__streams_retire(e->life, e->record, nodes);
        leave(e, TN__FREE, false);
        return TN_OK;
    }
    tn_status status = nodes ? record_all(e, nodes) : TN_OK;
    if (!nodes || status != TN_OK)
        return fall_back(e, nodes, status);
    tn__streams_retire(e->life, e->record, nodes);
    leave(e, TN__PENDING, wait);
    return wait ? wait_and_complete(e) : TN_OK;
}

/* ---- All ------------------------------------------------------------------------------- */

static bool cuda_lease(uint64_t what) {
    return tn__what_kind(what) == TN__KIND_LEASE &&
           tn__what_location(what).kind == TN_LOCATION_CUDA;
}

enum attempt { ENDED, NO_SLOT, MUST_RECORD };

/* The first section: from the look at the word to the CAS, so that the manager stays. */
static enum attempt attempt(ending *e, tn_status *status) {
    *status = TN_OK;
    if (over_already(e))
        return ENDED;
    if (!e->inside)
        *status = tn__life_enter(e->life, e->thread, true);
    if (*status != TN_OK)
        return ENDED;
    e->own = tn__life_known_slot(e->life, e->thread);
    if (!e->own)
        return NO_SLOT;
    if (cuda_lease(e->what)) {
        uint64_t word = tn__word(e->generation, TN__ACTIVE);
        /* [no-order] of several releases one goes on; the others are over (M142). No effect yet, and what
         * ACTIVE speaks of goes on with it. */
        if (tn__cas_rlx(&e->record->pair.low, &word, tn__word(e->generation, TN__RELEASING)))
            return MUST_RECORD;
        end_detached(e, word);
        return ENDED;
    }
    if (tn__what_kind(e->what) == TN__KIND_RESERVATION)
        end_reservation(e);
    else
        end_host(e);
    return ENDED;
}

static tn_status end(ending e, bool wait) {
    if (!e.record)
        return TN_OK;
    e.thread = tn__thread_self();
    if (!e.thread)
        return tn__no_memory();
    tn__rcu_thread_ready(e.thread);
    for (;;) {
        tn_status status;
        tn__rcu_lock();
        enum attempt now = attempt(&e, &status);
        uint64_t manager = now == NO_SLOT ? e.life->manager : 0;
        tn__rcu_unlock();
        if (now == ENDED)
            return status;
        if (now == MUST_RECORD)
            return end_cuda(&e, wait);
        if (!tn__slot_make(manager, e.thread))
            return tn__no_memory();
    }
}

tn_status tn__lease_release(const tn_lease *lease, bool wait) {
    return end((ending){.record = lease->record, .generation = lease->generation}, wait);
}

tn_status tn__lease_cancel(const tn_lease *lease) {
    return end((ending){.record = lease->record, .generation = lease->generation, .unused = true},
               false);
}

tn_status tn__record_release(void *record, uint64_t generation) {
    return end((ending){.record = record, .generation = generation}, false);
}

tn_status tn__record_release_inside(void *record, uint64_t generation) {
    return end((ending){.record = record, .generation = generation, .inside = true}, false);
}
