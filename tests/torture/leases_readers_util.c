/* SPDX-License-Identifier: MIT */
/*
 * The threads that borrow: readers, those who end what others borrowed, readers that exit.
 */
#include "leases_torture.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Acquire ---- */

/* What one reader borrows at a time. */
typedef struct loan {
    tn_location at;
    uint32_t places[TORT_LEASE_MAX];
    tn_handle handles[TORT_LEASE_MAX];
    size_t count;
    bool hold;
    tort_letter letter;
    tn_hold held;
} loan;

static void choose(tort_world *w, tort_random *r, loan *l) {
    uint32_t dice = tort_below(r, 8);
    *l = (loan){.at = tort_location(tort_below(r, TORT_LOCATIONS)), .hold = tort_below(r, 8) == 0};
    l->count = dice < 4 ? 1 : dice < 6 ? 2 : 1 + tort_below(r, TORT_LEASE_MAX);
    for (size_t i = 0; i < l->count; i++) {
        l->places[i] = tort_below(r, TORT_PLACES);
        l->handles[i] = tort_handle(w, l->places[i]);
    }
}

static const char *refused(tort_world *w, tn_status status) {
    switch (status) {
    case TN_ERR_UNAVAILABLE:
        if (tn_last_error()->busy)
            TORT_COUNT(w, busy);
        else
            TORT_COUNT(w, absent);
        return NULL;
    case TN_ERR_HANDLE:
        TN_WORKER_CHECK(tn_last_error()->handle_cause == TN_HANDLE_DISCARDED);
        TORT_COUNT(w, discarded);
        return NULL;
    case TN_ERR_REENTRANCY:
        TN_WORKER_CHECK(w->config.mode == TN_MODE_SERIAL);
        TORT_COUNT(w, refused);
        sched_yield();
        return NULL;
    default:
        return tn_test_text("acquire gave %s: %s", tn_status_name(status),
                            tn_last_error()->message);
    }
}

static tn_status take(tort_world *w, tort_random *r, loan *l) {
    bool cuda = l->at.kind == TN_LOCATION_CUDA;
    tn_stream stream = cuda ? w->streams[tort_below(r, TORT_STREAMS)] : NULL;
    tn_status status;

    if (l->hold)
        status = tn_manager_hold(w->m, l->handles, l->count, l->at, &l->held);
    else
        status = tn_manager_acquire(w->m, l->handles, l->count, l->at, stream, &l->letter.lease);
    if (status != TN_OK)
        return status;
    if (l->hold)
        TORT_COUNT(w, held);
    else if (cuda)
        TORT_COUNT(w, acquired_cuda);
    else
        TORT_COUNT(w, acquired_host);
    return status;
}

/* ---- Use ---- */

/* Look at all payloads. A guard that is up refuses lookups: then nothing is noted. */
static const char *see_all(loan *l) {
    for (size_t i = 0; i < l->count; i++) {
        const void *data = NULL;
        tn_status status = tn_lease_lookup(&l->letter.lease, l->handles[i], &data);

        if (status == TN_ERR_REENTRANCY)
            return NULL;
        TN_WORKER_STATUS(status, TN_OK);
        const char *text = tort_payload_see(data, l->places[i], &l->letter.seen[i]);
        if (text)
            return text;
        l->letter.seen_count++;
    }
    return NULL;
}

static const char *check_seen(const tort_letter *letter) {
    for (uint32_t i = 0; i < letter->seen_count; i++) {
        const char *text = tort_payload_check(&letter->seen[i]);
        if (text)
            return text;
    }
    return NULL;
}

/* Work for the lease's streams, which may go on long after the release. */
static const char *queue_reads(tort_world *w, tort_random *r, const loan *l) {
    uint32_t streams = 1 + tort_below(r, 2);
    for (uint32_t k = 0; k < streams; k++) {
        tn_stream stream = w->streams[tort_below(r, TORT_STREAMS)];
        TN_WORKER_STATUS(tn_lease_add_stream(&l->letter.lease, stream), TN_OK);
        for (uint32_t i = 0; i < l->letter.seen_count; i++) {
            const void *data = l->letter.seen[i].data;
            uint64_t ns = tort_below(r, 4) ? tort_below(r, 2000) : tort_below(r, 100000);
            TN_WORKER_STATUS(tn_sim_queue_read(w->sim, stream, tort_payload_block(data),
                                               tort_payload_bytes(data), ns),
                             TN_OK);
        }
    }
    return NULL;
}

static const char *use(tort_world *w, tort_random *r, loan *l) {
    const char *text = see_all(l);
    if (!text && l->at.kind == TN_LOCATION_CUDA)
        text = queue_reads(w, r, l);
    tort_spin(100 + tort_below(r, tort_quiet_world(w) ? 50000 : 1900));
    return text ? text : check_seen(&l->letter);
}

/* ---- End ---- */

tn_status tort_release(const tn_lease *lease, uint32_t flags) {
    tn_status status;
    while ((status = tn_lease_release(lease, flags)) == TN_ERR_REENTRANCY)
        sched_yield();
    return status;
}

/* False: the mail is full. */
static bool post(tort_world *w, tort_random *r, const tort_letter *letter, bool racing) {
    tort_letter *copy = malloc(sizeof *copy), *empty = NULL;
    if (!copy)
        abort();
    *copy = *letter;
    copy->racing = racing;
    if (atomic_compare_exchange_strong_explicit(&w->mail[tort_below(r, TORT_MAIL)], &empty, copy,
                                                memory_order_acq_rel, memory_order_relaxed))
        return true;
    free(copy);
    return false;
}

static const char *end(tort_world *w, tort_random *r, const loan *l) {
    uint32_t dice = tort_below(r, 16);
    if (l->hold) {
        tn_status status;
        while ((status = tn_hold_release(&l->held)) == TN_ERR_REENTRANCY)
            sched_yield();
        TN_WORKER_STATUS(status, TN_OK);
        return NULL;
    }
    bool posted = dice < 6 && post(w, r, &l->letter, dice < 2);
    if (posted && dice >= 2)
        return NULL;
    TN_WORKER_STATUS(tort_release(&l->letter.lease, dice == 15 ? TN_RELEASE_WAIT : 0), TN_OK);
    TN_WORKER_CHECK(!tn_lease_active(&l->letter.lease));
    return NULL;
}

static const char *borrow_once(tort_world *w, tort_random *r) {
    loan l;
    choose(w, r, &l);
    tn_status status = take(w, r, &l);
    if (status != TN_OK)
        return refused(w, status);
    const char *text = NULL;
    if (!l.hold)
        text = use(w, r, &l);
    return text ? text : end(w, r, &l);
}

const char *tort_reader(tort_world *w, int index) {
    tort_random r = tort_random_of((uint64_t)index);
    const char *text = NULL;
    while (!text && !tort_over(w))
        text = borrow_once(w, &r);
    return text;
}

/* ---- Letters ---- */

static const char *open_letter(tort_world *w, uint32_t i) {
    tort_letter *letter = atomic_exchange_explicit(&w->mail[i], NULL, memory_order_acq_rel);
    if (!letter)
        return NULL;
    const char *text = letter->racing ? NULL : check_seen(letter);
    tn_status status = tort_release(&letter->lease, 0);
    if (!text && status != TN_OK)
        text = tn_test_text("a release by another thread gave %s", tn_status_name(status));
    free(letter);
    return text;
}

const char *tort_mail_empty(tort_world *w) {
    const char *first = NULL;
    for (uint32_t i = 0; i < TORT_MAIL; i++) {
        const char *text = open_letter(w, i);
        if (!first)
            first = text;
    }
    return first;
}

const char *tort_letters(tort_world *w, int index) {
    tort_random r = tort_random_of((uint64_t)index);
    const char *text = NULL;
    while (!text && !tort_over(w)) {
        text = open_letter(w, tort_below(&r, TORT_MAIL));
        if (tort_below(&r, 64) == 0)
            sched_yield();
    }
    return text;
}

/* ---- Threads that exit ---- */

typedef struct mortal {
    tort_world *w;
    uint64_t stream;
    const char *text;
} mortal;

static void *mortal_main(void *arg) {
    mortal *self = arg;
    tort_random r = tort_random_of(self->stream);
    uint32_t loans = 1 + tort_below(&r, 24);
    while (loans-- > 0 && !self->text && !tort_over(self->w))
        self->text = borrow_once(self->w, &r);
    return NULL;
}

const char *tort_exits(tort_world *w, int index) {
    mortal mortals[3];
    pthread_t threads[3];
    for (uint64_t life = 1; !tort_over(w); life++) {
        for (int i = 0; i < 3; i++) {
            mortals[i] = (mortal){w, ((uint64_t)index << 32) + life * 3 + (uint64_t)i, NULL};
            TN_WORKER_CHECK(pthread_create(&threads[i], NULL, mortal_main, &mortals[i]) == 0);
        }
        for (int i = 0; i < 3; i++)
            pthread_join(threads[i], NULL);
        for (int i = 0; i < 3; i++) {
            TORT_COUNT(w, exits);
            if (mortals[i].text)
                return mortals[i].text;
        }
    }
    return NULL;
}
