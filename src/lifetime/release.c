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
    uint64_t word; /* as seen first */
    uint64_t what;
    tn__life *life; /* valid while the word is ACTIVE, RELEASING, PENDING or DETACHED */
    tn__thread *thread;
    tn__slot *own;
} ending;

/* True: it is over already, or ended by this look. */
static bool over_already(ending *e) {
    tn__rcu_lock();
    e->word = tn__record_word(e->record);
    enum tn__record_state state = tn__word_state(e->word);
    bool over = tn__word_generation(e->word) != e->generation || state == TN__FREE ||
                state == TN__ACQUIRING || state == TN__RELEASING || state == TN__DONE;
    /* M146: the object was left open by a failed wait; now it is closed */
    if (!over && state == TN__PENDING) {
        uint64_t open = e->generation;
        (void)tn__cas_rlx(&e->record->open_generation, &open, 0);
        over = true;
    }
    if (!over && state == TN__DETACHED) {
        uint64_t word = e->word;
        /* [word] acq_rel: the silent end after a forced close (M150); nothing is counted. */
        (void)tn__cas_acq_rel(&e->record->pair.low, &word, tn__word(e->generation, TN__FREE));
        over = true;
    }
    if (!over) {
        e->what = tn__load_rlx(&e->record->what);
        e->life = e->record->slot->life;
    }
    tn__rcu_unlock();
    return over;
}

static tn_status guarded(ending *e) {
    return tn__life_verdict(e->life, tn__load_acq(&e->life->gate->word), true); /* [manager-word] */
}

/* ---- Host
 * ------------------------------------------------------------------------------------------------
 * */

static tn_status end_host(ending *e) {
    tn__rcu_lock();
    tn_status verdict = guarded(e);
    if (tn__unlikely(verdict != TN_OK)) {
        tn__rcu_unlock();
        return tn__life_refuse(verdict);
    }
    uint64_t word = tn__word(e->generation, TN__ACTIVE);
    uint64_t count = tn__count_begin(e->own);
    /* [word] release. Pairs: acquire in tn__scan(). Orders: the caller's reads of the payload ->
     * the end of its protection. Without: the storage is reused under a reader. */
    bool won = tn__cas_rel(&e->record->pair.low, &word, tn__word(e->generation, TN__FREE));
    tn__count_end(e->own, count, won);
    tn__rcu_unlock();
    if (won)
        tn__record_recycle(e->record, e->own);
    return TN_OK;
}

static tn_status end_reservation(ending *e) {
    tn__rcu_lock();
    tn_status verdict = guarded(e);
    if (tn__unlikely(verdict != TN_OK)) {
        tn__rcu_unlock();
        return tn__life_refuse(verdict);
    }
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
    tn__rcu_unlock();
    if (won)
        tn__record_recycle(e->record, e->own);
    return TN_OK;
}

/* ---- CUDA
 * --------------------------------------------------------------------------------------------------
 * */

static void give_events(ending *e, size_t count) {
    tn__events *events = tn__load_rlx(&e->record->events);
    for (size_t i = 0; i < count; i++)
        tn__event_give(e->life, tn__load_rlx(&events->event[i]));
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
        tn__event_give(e->life, *out);
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
        tn__store_rlx(&events->event[n++], event);
    }
    tn__store_rlx(&e->record->event_count, (uint32_t)n);
    TN__AT(TN__POINT_RECORDED, e->record);
    return TN_OK;
}

/* Leave RELEASING: to PENDING, FREE (counted) or back to ACTIVE (not). The second section. */
static void leave(ending *e, enum tn__record_state state) {
    tn__rcu_lock();
    uint64_t count = tn__count_begin(e->own);
    /* [word] release: the recorded events, or the synchronised streams -> the state that speaks
     * of them. Only this thread leaves RELEASING. */
    tn__store_rel(&e->record->pair.low, tn__word(e->generation, state));
    tn__count_end(e->own, count, state != TN__ACTIVE);
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
        leave(e, TN__ACTIVE);
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
    leave(e, TN__FREE);
    tn__record_recycle(e->record, e->own);
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

static void enqueue(ending *e) {
    tn__life *life = e->life;
    tn__queue_push(&life->queue, &e->record->queued);
    if (life->manual)
        tn__store_rel(&life->gate->reap, 1); /* [pending] */
    tn__life_wake(life);
}

/* M141, M146. The record is PENDING but not queued, so its events stay ours: this thread is its
 * consumer. */
static tn_status wait_and_complete(ending *e) {
    tn_status status = wait_for_events(e);
    if (status != TN_OK) {
        /* [no-order] read by the object's own users */
        tn__store_rlx(&e->record->open_generation, e->generation);
        enqueue(e);
        return status;
    }
    /* or a helper did */
    (void)tn__pending_complete(e->own, e->record, tn__word(e->generation, TN__PENDING));
    tn__pending_consume(e->record, e->own);
    return TN_OK;
}

static tn_status end_cuda(ending *e, bool wait) {
    tn__rcu_lock();
    tn_status verdict = guarded(e);
    uint64_t word = tn__word(e->generation, TN__ACTIVE);
    /* [word] acq_rel: of several releases one goes on; the others are over (M142). */
    bool won = verdict == TN_OK &&
               tn__cas_acq_rel(&e->record->pair.low, &word, tn__word(e->generation, TN__RELEASING));
    tn__rcu_unlock();
    if (verdict != TN_OK)
        return tn__life_refuse(verdict);
    if (!won)
        return TN_OK;
    tn__stream_node *nodes = tn__streams_close(e->record);
    tn_status status = nodes ? record_all(e, nodes) : TN_OK;
    if (!nodes || status != TN_OK)
        return fall_back(e, nodes, status);
    tn__streams_retire(e->life, e->record, nodes);
    leave(e, TN__PENDING);
    if (wait)
        return wait_and_complete(e);
    enqueue(e);
    return TN_OK;
}

/* ---- All
 * ----------------------------------------------------------------------------------------------------
 * */

static tn_status end(void *record, uint64_t generation, bool wait) {
    ending e = {.record = record, .generation = generation, .thread = tn__thread_self()};
    if (!record)
        return TN_OK;
    if (!e.thread)
        return tn__no_memory();
    tn__rcu_thread_ready(e.thread);
    if (over_already(&e))
        return TN_OK;
    tn_status status = tn__life_enter(e.life, e.thread, true);
    if (status != TN_OK)
        return status;
    e.own = tn__life_own_slot(e.life, e.thread);
    if (!e.own)
        return tn__no_memory();
    if (tn__what_kind(e.what) == TN__KIND_RESERVATION)
        return end_reservation(&e);
    if (tn__what_kind(e.what) == TN__KIND_LEASE &&
        tn__what_location(e.what).kind == TN_LOCATION_CUDA)
        return end_cuda(&e, wait);
    return end_host(&e);
}

tn_status tn__lease_release(const tn_lease *lease, bool wait) {
    return end(lease->record, lease->generation, wait);
}

tn_status tn__record_release(void *record, uint64_t generation) {
    return end(record, generation, false);
}
