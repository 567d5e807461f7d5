/* SPDX-License-Identifier: MIT */
/*
 * Reservations: bytes charged to a record. The admission word decides, so a reserve takes no
 * lock, except the first one at a location, which tracks it.
 */
#include <string.h>

#include "lifetime/lifetime_priv.h"

static bool tracked(tn__life *life, tn_location at) {
    tn__rcu_lock();
    bool is = tn__version_place(tn__store_current(life->store), at) != NULL;
    tn__rcu_unlock();
    return is;
}

/* M18(d): under the short writer lock, after the admission. */
static tn_status track(tn__life *life, tn_location at) {
    tn__build build;
    tn__lock(&life->store->lock);
    tn_status status = TN_OK;
    if (tn__life_closed(life))
        status = tn__life_refuse(TN_ERR_CLOSED);
    else if (!tn__version_place(tn__store_current(life->store), at))
        status = tn__build_begin(life->store, &build);
    else {
        tn__unlock(&life->store->lock);
        return TN_OK;
    }
    if (status == TN_OK) {
        status = tn__build_track(&build, at);
        if (status == TN_OK)
            tn__store_publish(&build);
        else
            tn__build_abort(&build);
    }
    tn__unlock(&life->store->lock);
    tn__life_wake(life);
    return status;
}

static bool store_label(tn__record *record, const char *label) {
    _Atomic uint64_t *words = tn__load_rlx(&record->label);
    if (!words) {
        words = tn__zalloc(TN__LABEL_WORDS * sizeof *words);
        if (!words)
            return false;
        tn__store_rel(&record->label, words); /* [arrays] */
    }
    char text[TN__LABEL_WORDS * sizeof(uint64_t)] = "";
    memcpy(text, label, strnlen(label, sizeof text - 1));
    for (size_t i = 0; i < TN__LABEL_WORDS; i++) {
        uint64_t word;
        memcpy(&word, text + i * sizeof word, sizeof word);
        tn__store_rlx(&words[i], word);
    }
    return true;
}

static tn__record *prepare(tn__slot *slot, tn_location at, const char *label) {
    tn__record *record = tn__record_obtain(slot);
    if (!record)
        return NULL;
    if (!store_label(record, label)) {
        tn__record_recycle(record, slot);
        return NULL;
    }
    tn__store_rlx(&record->what, tn__what(TN__KIND_RESERVATION, at));
    tn__store_rlx(&record->pin_count, 0);
    tn__store_rlx(&record->admitted, tn__mono_ns());
    tn__store_rlx(&record->tie, ++slot->ties);
    return record;
}

/* The section. The bytes are in the ledger already. */
static tn_status activate(tn__life *life, tn__slot *slot, tn__record *record, uint64_t generation,
                          uint64_t bytes) {
    tn__rcu_lock();
    /* [manager-word] */
    tn_status verdict = tn__life_verdict(life, tn__load_acq(life->word), false);
    if (tn__unlikely(verdict != TN_OK)) {
        tn__rcu_unlock();
        return tn__life_refuse(verdict);
    }
    uint64_t count = tn__count_begin(slot);
    tn__store_rlx(&record->pair.high, bytes);
    /* [no-order] followed by the light fence */
    tn__store_rlx(&record->pair.low, tn__word(generation, TN__ACQUIRING));
    tn__light_fence();                         /* [fence] record shown -> manager word loaded */
    uintptr_t word = tn__load_acq(life->word); /* [manager-word] */
    bool mine = false,
         ok = word == TN__MANAGER_OPEN || word == TN__MANAGER_GUARDED ||
              (word > TN__MANAGER_CLOSED && tn__decision_meet((tn__removal *)word, &mine));
    tn__store_rel(&record->pair.low, tn__word(generation, ok ? TN__ACTIVE : TN__FREE)); /* [word] */
    if (mine)
        tn__decision_outcome((tn__removal *)word, ok);
    tn__count_end(slot, count, ok);
    tn__rcu_unlock();
    return ok ? TN_OK : tn__life_refuse(TN_ERR_CLOSED);
}

tn_status tn__life_reserve(tn__life *life, tn_location at, uint64_t bytes, const char *label,
                           tn_reservation *out) {
    tn__thread *thread;
    tn_status status = tn__life_thread(life, &thread);
    if (status != TN_OK)
        return status;
    tn__slot *slot = tn__life_own_slot(life, thread);
    tn__record *record = prepare(slot, at, label);
    if (!record)
        return tn__no_memory();
    tn__ledger *ledger = tn__store_ledger(life->store, at);
    uint64_t generation = tn__word_generation(tn__load_rlx(&record->pair.low)) + 1;
    bool known = tracked(life, at);
    if (!(known ? tn__ledger_charge(ledger, bytes) : tn__ledger_claim(ledger, bytes))) {
        tn__record_recycle(record, slot);
        return tn__store_refuse(life->store, at, bytes);
    }
    if (!known) { /* a claim until the location is tracked, so that a failure leaves no peak */
        status = track(life, at);
        if (status != TN_OK)
            tn__ledger_unclaim(ledger, bytes);
        else
            tn__ledger_settle(ledger, bytes);
    }
    if (status == TN_OK) {
        status = activate(life, slot, record, generation, bytes);
        if (status != TN_OK)
            tn__ledger_uncharge(ledger, bytes);
    }
    if (status != TN_OK) {
        tn__record_recycle(record, slot);
        return status;
    }
    *out = (tn_reservation){record, generation};
    return TN_OK;
}

/* ---- adopt_reserved
 * ------------------------------------------------------------------------------------------ */

static tn_status too_small(const tn__life *life, tn_location at, uint64_t left, uint64_t bytes) {
    tn_error *e =
        tn__error(TN_ERR_BUDGET, "the reservation has %llu bytes left", (unsigned long long)left);
    e->manager = life->manager;
    e->reason = TN_REASON_RESERVATION_BUDGET;
    e->at = at;
    e->budget_bytes = left;
    e->requested_bytes = bytes;
    return TN_ERR_BUDGET;
}

tn_status tn__life_take_check(tn__life *life, const tn_reservation *reservation, tn_location at,
                              uint64_t bytes) {
    tn__record *record = reservation->record;
    if (!record || tn__record_word(record) != tn__word(reservation->generation, TN__ACTIVE))
        return tn__fail(TN_ERR_LIFETIME_CLOSED, "the reservation has ended");
    uint64_t what = tn__load_rlx(&record->what);
    if (tn__what_kind(what) != TN__KIND_RESERVATION || record->slot->life != life)
        return tn__fail(TN_ERR_VALUE, "the reservation is another manager's");
    if (!tn__location_same(tn__what_location(what), at))
        return tn__fail(TN_ERR_VALUE, "the reservation is at another location");
    uint64_t left = tn__load_rlx(&record->pair.high);
    return left < bytes ? too_small(life, at, left, bytes) : TN_OK;
}

tn_status tn__life_take_begin(tn__life *life, const tn_reservation *reservation, tn_location at,
                              uint64_t bytes) {
    tn__thread *thread;
    tn_status status = tn__life_thread(life, &thread);
    tn__slot *slot = status == TN_OK ? tn__life_own_slot(life, thread) : NULL;
    tn__record *record = reservation->record;
    uint64_t active = tn__word(reservation->generation, TN__ACTIVE);
    while (status == TN_OK) {
        /* again: it may have been released, or adopted from */
        status = tn__life_take_check(life, reservation, at, bytes);
        if (status != TN_OK)
            break;
        uint64_t left = tn__load_rlx(&record->pair.high);
        uint64_t count = tn__count_begin(slot);
        /* [word] acq_rel: only an active reservation of this generation loses bytes. */
        if (left >= bytes &&
            tn__pair_cas_acq_rel(&record->pair, active, left, active, left - bytes))
            return TN_OK;
        tn__count_end(slot, count, 0);
    }
    return status;
}

void tn__life_take_end(tn__life *life) {
    tn__slot *slot = tn__life_own_slot(life, tn__thread_self());
    tn__count_end(slot, tn__load_rlx(&slot->counter) - 1, 0);
}
