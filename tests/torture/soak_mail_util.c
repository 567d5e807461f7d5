/* SPDX-License-Identifier: MIT */
/*
 * What one thread of the soak begins and another ends.
 */
#include "soak_torture.h"

#include <sched.h>
#include <stdlib.h>

/* ---- Payloads ---- */

const char *soak_see(soak_letter *letter, const void *data, uint32_t place) {
    TN_WORKER_CHECK(letter->seen_count < SOAK_SEEN_MAX);
    SOAK_TRY(tort_payload_see(data, place, &letter->seen[letter->seen_count]));
    letter->seen_count++;
    return NULL;
}

const char *soak_queue(soak_world *w, tort_random *r, tn_stream stream, const soak_letter *letter) {
    for (uint32_t i = 0; i < letter->seen_count; i++) {
        const void *data = letter->seen[i].data;
        uint64_t ns = tort_below(r, 8) ? tort_below(r, 2000) : tort_below(r, 100000);
        TN_WORKER_STATUS(tn_sim_queue_read(w->sim, stream, tort_payload_block(data),
                                           tort_payload_bytes(data), ns),
                         TN_OK);
    }
    return NULL;
}

/* ---- Ends ---- */

static tn_status end_once(const soak_letter *letter) {
    switch (letter->kind) {
    case SOAK_LEASE:
        return tn_lease_release(&letter->lease, 0);
    case SOAK_HOLD:
        return tn_hold_release(&letter->hold);
    case SOAK_RESERVATION:
        return tn_reservation_release(&letter->reservation);
    case SOAK_USE:
        return tn_use_exit(letter->use);
    default:
        return tn_scope_close(letter->scope);
    }
}

static const char *end_scope(soak_world *w, tn_scope *scope, tn_status status) {
    if (status == TN_ERR_PLAN_EXEC)
        SOAK_COUNT(w, exits_failed);
    SOAK_TRY(soak_expect(w, "the close of a scope", status, SOAK_MAY(PLAN_EXEC)));
    TN_WORKER_CHECK(!tn_scope_active(scope));
    TN_WORKER_STATUS(tn_scope_destroy(scope), TN_OK);
    return NULL;
}

const char *soak_end(soak_world *w, const soak_letter *letter) {
    tn_status status;
    for (uint32_t i = 0; i < letter->seen_count; i++)
        SOAK_TRY(tort_payload_check(&letter->seen[i]));
    while ((status = end_once(letter)) == TN_ERR_REENTRANCY) {
        TN_WORKER_CHECK(w->mode == TN_MODE_SERIAL);
        sched_yield();
    }
    if (letter->kind == SOAK_SCOPE)
        return end_scope(w, letter->scope, status);
    TN_WORKER_STATUS(status, TN_OK);
    if (letter->kind == SOAK_USE) {
        TN_WORKER_CHECK(!tn_use_active(letter->use));
        tn_use_destroy(letter->use);
    }
    return NULL;
}

/* ---- Mail ---- */

const char *soak_send(soak_world *w, tort_random *r, const soak_letter *letter) {
    soak_letter *copy = malloc(sizeof *copy), *empty = NULL;
    if (!copy)
        abort();
    *copy = *letter;
    if (atomic_compare_exchange_strong_explicit(&w->mail[tort_below(r, SOAK_MAIL)], &empty, copy,
                                                memory_order_acq_rel, memory_order_relaxed))
        return NULL;
    free(copy);
    return soak_end(w, letter);
}

static const char *open_letter(soak_world *w, uint32_t i) {
    soak_letter *letter = atomic_exchange_explicit(&w->mail[i], NULL, memory_order_acq_rel);
    if (!letter)
        return NULL;
    SOAK_COUNT(w, letters);
    const char *text = soak_end(w, letter);
    free(letter);
    return text;
}

const char *soak_mail_empty(soak_world *w) {
    for (uint32_t i = 0; i < SOAK_MAIL; i++)
        SOAK_TRY(open_letter(w, i));
    return NULL;
}

const char *soak_read_mail(soak_world *w, tort_random *r) {
    for (uint32_t i = 0; i < 4; i++)
        SOAK_TRY(open_letter(w, tort_below(r, SOAK_MAIL)));
    sched_yield();
    return NULL;
}
