/* SPDX-License-Identifier: MIT */
/*
 * Pending leases: query, complete (anyone, by one CAS), consume (one consumer at a time), wait.
 */
#include "lifetime/lifetime_priv.h"

/* The native events of a pending record, copied. Those of its next life mean that this one is over: to
 * find them done is true then, to find them not done is a moment late, and the CAS of the word decides. */
static size_t copy_events(tn__record *record, uint64_t word, size_t from, tn_event *out,
                          size_t room) {
    tn__events *events = tn__load_acq(&record->events); /* [arrays] */
    size_t count = tn__load_rlx(&record->event_count);
    if (!events)
        return 0;
    if (count > events->room)
        count = events->room;
    size_t n = 0;
    for (size_t i = from; i < count && n < room; i++) {
        tn__event *event = tn__load_acq(&events->event[i]); /* [event-shown] */
        if (event)
            out[n++] = event->native;
    }
    /* [no-order] the second look only saves queries */
    return tn__load_rlx(&record->pair.low) == word ? n : 0;
}

#define SOME_EVENTS 16

bool tn__pending_done(tn__life *life, tn__record *record, uint64_t word, bool *failed) {
    tn_event some[SOME_EVENTS];
    size_t n, from = 0;
    *failed = false;
    do {
        n = copy_events(record, word, from, some, SOME_EVENTS);
        for (size_t i = 0; i < n; i++) {
            bool done = false;
            *failed = tn__event_query(life->driver, some[i], &done) != TN_OK;
            if (*failed || !done)
                return false;
        }
        from += n;
    } while (n == SOME_EVENTS);
    return true;
}

bool tn__pending_complete(tn__slot *own, tn__record *record, uint64_t word) {
    uint64_t done = tn__word(tn__word_generation(word), TN__DONE);
    uint64_t count = tn__count_begin(own);
    /* [word] acq_rel: whoever finds DONE, and then the materialization unprotected, comes after
     * the query that found the work over. */
    bool won = tn__cas_acq_rel(&record->pair.low, &word, done);
    tn__count_end(own, count, won);
    if (won)
        TN__BRANCH(pending_completed);
    else
        TN__BRANCH(pending_completed_by_other);
    return won;
}

void tn__pending_consume(tn__record *record, tn__slot *own) {
    tn__events *events = tn__load_rlx(&record->events);
    uint32_t count = tn__load_rlx(&record->event_count);
    for (uint32_t i = 0; i < count; i++)
        tn__event_give(tn__load_rlx(&events->event[i]));
    tn__store_rlx(&record->event_count, 0);
    uint64_t word = tn__load_rlx(&record->pair.low);
    TN_ASSERT(tn__word_state(word) == TN__DONE);
    /* [word] release: whoever meets FREE knows of the end that DONE was, and of the counter that was odd
     * then. DONE is left by its consumer only, so a store will do. */
    tn__store_rel(&record->pair.low, tn__word(tn__word_generation(word), TN__FREE));
    tn__record_recycle(record, own);
}

/* ---- The consumer ----------------------------------------------------------------------- */

static void take_queued(tn__life *life) {
    tn__queue_node *node;
    while ((node = tn__queue_pop(&life->queue))) {
        tn__record *record = (tn__record *)((char *)node - offsetof(tn__record, queued));
        record->next = NULL;
        *life->waiting_tail = record;
        life->waiting_tail = &record->next;
    }
}

/* One pass over the waiting list, in release order. With `stop_at_error` the first failing query
 * ends it (M165), but for that of a lost device: it would end all passes from now on. */
static tn_status pass(tn__life *life, tn__slot *own, bool stop_at_error, uint64_t *completed) {
    tn_status status = TN_OK;
    bool stopped = false;
    tn__record **at = &life->waiting;
    while (*at && !stopped) {
        tn__record *record = *at;
        uint64_t word = tn__record_word(record);
        bool failed = false;
        bool over =
            tn__word_state(word) == TN__DONE || tn__pending_done(life, record, word, &failed);
        if (failed) {
            status = (tn_status)tn__error_current()->status;
            stopped = stop_at_error && status != TN_ERR_DEVICE_LOST;
        }
        if (!over) {
            at = &record->next;
            continue;
        }
        if (tn__word_state(word) == TN__DONE)
            TN__BRANCH(consumer_finds_done);
        if (tn__word_state(word) == TN__PENDING)
            *completed += tn__pending_complete(own, record, word);
        *at = record->next;
        tn__pending_consume(record, own);
    }
    life->waiting_tail = &life->waiting;
    while (*life->waiting_tail)
        life->waiting_tail = &(*life->waiting_tail)->next;
    return status;
}

static tn_status consume(tn__life *life, tn__slot *own, bool stop_at_error, uint64_t *completed) {
    /* [pending] acquire. Pairs: release in enqueue(). Orders: a push -> the mark -> our look at the
     * queue. Without: a mark is taken away whose lease we do not find; it waits for the next one.
     * */
    (void)tn__swap_acq(&life->gate->reap, 0);
    take_queued(life);
    tn_status status = pass(life, own, stop_at_error, completed);
    if (life->waiting && life->manual)
        tn__store_rlx(&life->gate->reap, 1); /* [no-order] the list is under the lock */
    tn__store_rlx(&life->waiting_some,
                  life->waiting != NULL); /* [no-order] a hint: the list itself is under the lock */
    return status;
}

tn_status tn__life_reap(tn__life *life, uint64_t *completed) {
    tn__thread *thread;
    tn_status status = tn__life_thread(life, &thread);
    if (status != TN_OK)
        return status;
    tn__lock(&life->reap_lock);
    status = consume(life, tn__life_own_slot(life, thread), false, completed);
    tn__unlock(&life->reap_lock);
    return status;
}

tn_status tn__life_reap_manual(tn__life *life) {
    if (!life->manual)
        return TN_OK;
    /* [no-order] the mark of a release that this thread knows of is seen; others may be missed:
     * they are concurrent. */
    if (!tn__load_rlx(&life->gate->reap))
        return TN_OK;
    tn__thread *thread;
    tn_status status = tn__life_thread(life, &thread);
    if (status != TN_OK)
        return status;
    if (!tn__try_lock(&life->reap_lock))
        /* another thread is reaping: it counts what it completes (L3: nobody waits for it) */
        return TN_OK;
    uint64_t completed = 0;
    status = consume(life, tn__life_own_slot(life, thread), true, &completed);
    tn__unlock(&life->reap_lock);
    /* Its leases stay pending for ever, which is no reason to refuse work elsewhere. */
    return status == TN_ERR_DEVICE_LOST ? TN_OK : status;
}

tn_status tn__life_reap_now(tn__life *life) {
    uint64_t completed = 0;
    return life->manual ? tn__life_reap_manual(life) : tn__life_reap(life, &completed);
}

/* ---- Helpers ---------------------------------------------------------------------------- */

typedef struct help {
    tn__life *life;
    tn__slot *own;
    const tn__removal *removal; /* those that pin one of these, or */
    tn__mat *const *mats;       /* of these, or (NULL) all */
    size_t count;
    bool wait;      /* wait for the events instead of asking once */
    bool protected; /* one of them seems to be in use, or pending still */
    tn_status status;
} help;

static bool concerns(const help *h, tn__record *record) {
    if (!h->mats && !h->removal)
        return true;
    tn__pin_view view = tn__pin_view_of(record);
    for (size_t i = 0; i < view.count; i++) {
        const tn__mat *mat = tn__load_rlx(&view.pins->pin[i].mat);
        if (h->removal && tn__removal_names(h->removal, mat))
            return true;
        for (size_t m = 0; m < h->count; m++)
            if (mat == h->mats[m])
                return true;
    }
    return false;
}

static tn_status wait_events(tn__life *life, tn__record *record, uint64_t word) {
    tn_event some[SOME_EVENTS];
    size_t n, from = 0;
    do {
        n = copy_events(record, word, from, some, SOME_EVENTS);
        for (size_t i = 0; i < n; i++) {
            tn_status status = tn__event_synchronize(life->driver, some[i]);
            if (status != TN_OK)
                return status;
        }
        from += n;
    } while (n == SOME_EVENTS);
    return TN_OK;
}

static tn__scan_step visit_help(void *context, tn__record *record, uint64_t word) {
    help *h = context;
    enum tn__record_state state = tn__word_state(word);
    bool protects = state == TN__ACTIVE || state == TN__RELEASING || state == TN__PENDING;
    if (!protects || !concerns(h, record))
        return TN__SCAN_ON;
    if (state != TN__PENDING) {
        h->protected = true;
        return TN__SCAN_ON;
    }
    bool failed = false, over;
    if (h->wait) {
        h->status = wait_events(h->life, record, word);
        over = h->status == TN_OK;
    } else {
        over = tn__pending_done(h->life, record, word, &failed);
        if (failed && tn__error_current()->status != TN_ERR_DEVICE_LOST)
            h->status = (tn_status)tn__error_current()->status;
    }
    if (over)
        tn__pending_complete(h->own, record, word);
    else
        h->protected = true;
    return h->status == TN_OK ? TN__SCAN_ON : TN__SCAN_STOP;
}

static tn_status help_all(tn__life *life, help *h) {
    tn__thread *thread;
    tn_status status = tn__life_thread(life, &thread);
    if (status != TN_OK)
        return status;
    h->life = life;
    h->own = tn__life_own_slot(life, thread);
    tn__scan(life, visit_help, h);
    return h->status;
}

tn_status tn__life_help(tn__life *life, tn__mat *const *mats, size_t count, bool *out_protected) {
    help h = {.mats = mats, .count = count};
    tn_status status = count > 0 ? help_all(life, &h) : TN_OK;
    *out_protected = h.protected;
    return status;
}

tn_status tn__removal_help(tn__life *life, const tn__removal *removal, bool *out_protected) {
    help h = {.removal = removal};
    tn_status status = help_all(life, &h);
    *out_protected = h.protected;
    return status;
}

tn_status tn__life_wait_pending(tn__life *life) {
    help h = {.wait = true};
    tn_status status = help_all(life, &h);
    uint64_t completed = 0;
    return status == TN_OK ? tn__life_reap(life, &completed) : status;
}
