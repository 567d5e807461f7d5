/* SPDX-License-Identifier: MIT */
/*
 * Reservations: bytes charged to a record. The admission word decides, so a reserve takes no
 * lock, except the first one at a location, which tracks it.
 */
#include <string.h>

#include "lifetime/lifetime_priv.h"

/* What is tracked stays tracked, so that a slot may remember it. */
static bool tracked(tn__slot *slot, tn_location at) {
    size_t position =
        (size_t)(tn__store_ledger(slot->life->store, at) - slot->life->store->ledgers);
    if (tn__likely(slot->tracked[position / 64] >> position % 64 & 1))
        return true;
    tn__rcu_lock();
    bool is = tn__version_place(tn__store_current(slot->life->store), at) != NULL;
    tn__rcu_unlock();
    if (is)
        slot->tracked[position / 64] |= UINT64_C(1) << position % 64;
    return is;
}

static bool store_label(tn__record *record, const char *label) {
    _Atomic uint64_t *words = tn__load_rlx(&record->label);
    if (!words) {
        words = tn__zalloc(TN__LABEL_WORDS * sizeof *words);
        if (!words)
            return false;
        tn__store_rlx(&record->label, words); /* [no-order] ACTIVE follows */
    }
    size_t n = strnlen(label, TN__LABEL_BYTES - 1) + 1; /* what is behind the NUL is anything */
    for (size_t i = 0; i < n; i += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, label + i, n - i < sizeof word ? n - i - 1 : sizeof word);
        tn__store_rlx(&words[i / sizeof word], word);
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
    tn__store_rlx(&record->admitted, tn__ticks());
    tn__store_rlx(&record->tie, ++slot->ties);
    return record;
}

/*
 * The section. The bytes are in the ledger already. With a build (under store->lock) the location
 * becomes tracked in the same step: the version is published while the counter is odd, so no exact
 * snapshot sees one without the other.
 */
static tn_status activate(tn__slot *slot, tn__record *record, uint64_t generation, uint64_t bytes,
                          tn__build *build) {
    tn__life *life = slot->life;
    tn__rcu_lock();
    /* [no-order] a first look: the one behind the fence decides */
    tn_status verdict = tn__life_verdict(life, tn__load_rlx(&life->gate->word), false);
    if (tn__unlikely(verdict != TN_OK)) {
        tn__rcu_unlock();
        return tn__life_refuse(verdict);
    }
    uint64_t count = tn__count_begin(slot);
    tn__store_rlx(&record->pair.high, bytes);
    /* [no-order] followed by the light fence */
    tn__store_rlx(&record->pair.low, tn__word(generation, TN__ACQUIRING));
    TN__AT(TN__POINT_PINS_STORED, record);
    tn__light_fence(); /* [fence] record shown -> manager word loaded */
    uintptr_t word = tn__load_acq(&life->gate->word); /* [manager-word] */
    bool mine = false;
    bool ok = word == TN__MANAGER_OPEN || word == TN__MANAGER_GUARDED ||
              (word > TN__MANAGER_CLOSED && tn__decision_meet((tn__removal *)word, &mine));
    if (ok && build)
        tn__store_publish(build);
    tn__store_rel(&record->pair.low, tn__word(generation, ok ? TN__ACTIVE : TN__FREE)); /* [word] */
    if (mine)
        tn__decision_outcome((tn__removal *)word, ok);
    tn__count_end(slot, count, ok);
    tn__rcu_unlock();
    return ok ? TN_OK : tn__life_refuse(TN_ERR_CLOSED);
}

/* M18(d): the first reserve at a location tracks it, under the short writer lock. Until it is
 * certain the bytes are only claimed, so that a failure leaves no peak. */
static tn_status first_reserve(tn__slot *slot, tn__record *record, tn_location at,
                               uint64_t generation, uint64_t bytes) {
    tn__store *store = slot->life->store;
    tn__ledger *ledger = tn__store_ledger(store, at);
    tn__build build;
    tn__lock(&store->lock);
    tn_status status = tn__life_enter_waited(slot->life); /* before a peak is raised */
    if (status == TN_OK)
        status = tn__build_begin(store, &build);
    if (status == TN_OK) {
        status = tn__build_track(&build, at);
        bool tracks = build.counted > 0; /* no: another thread was first */
        if (status == TN_OK) {
            tn__ledger_settle(ledger, bytes);
            status = activate(slot, record, generation, bytes, tracks ? &build : NULL);
            if (status != TN_OK)
                tn__ledger_reclaim(ledger, bytes);
        }
        if (status != TN_OK || !tracks)
            tn__build_abort(&build);
    }
    tn__unlock(&store->lock);
    tn__life_wake(slot->life);
    return status;
}

/* Bytes that nobody has claimed before: one step charges them. */
static tn_status charge(tn__slot *slot, tn__record *record, tn_location at, uint64_t generation,
                        uint64_t bytes) {
    tn__ledger *ledger = tn__store_ledger(slot->life->store, at);
    if (!tn__ledger_charge(ledger, bytes))
        return tn__store_refuse(slot->life->store, at, bytes);
    tn_status status = activate(slot, record, generation, bytes, NULL);
    if (status != TN_OK)
        tn__ledger_uncharge(ledger, bytes);
    return status;
}

static tn_status claim_first(tn__slot *slot, tn__record *record, tn_location at,
                             uint64_t generation, uint64_t bytes) {
    tn__ledger *ledger = tn__store_ledger(slot->life->store, at);
    if (!tn__ledger_claim(ledger, bytes))
        return tn__store_refuse(slot->life->store, at, bytes);
    tn_status status = first_reserve(slot, record, at, generation, bytes);
    if (status != TN_OK)
        tn__ledger_unclaim(ledger, bytes);
    return status;
}

/* Bytes that a plan in flight has claimed. */
static tn_status settle(tn__slot *slot, tn__record *record, tn_location at, uint64_t generation,
                        uint64_t bytes) {
    tn__ledger *ledger = tn__store_ledger(slot->life->store, at);
    tn__ledger_settle(ledger, bytes);
    tn_status status = activate(slot, record, generation, bytes, NULL);
    if (status != TN_OK)
        tn__ledger_reclaim(ledger, bytes);
    return status;
}

static tn_status reserve(tn__life *life, tn_location at, uint64_t bytes, const char *label,
                         bool claimed, tn_reservation *out) {
    tn__thread *thread;
    tn_status status = tn__life_thread(life, &thread);
    if (status != TN_OK)
        return status;
    tn__slot *slot = tn__life_own_slot(life, thread);
    tn__record *record = prepare(slot, at, label);
    if (!record)
        return tn__no_memory();
    uint64_t generation = tn__word_generation(tn__load_rlx(&record->pair.low)) + 1;
    bool known = tracked(slot, at);
    if (claimed)
        status = known ? settle(slot, record, at, generation, bytes)
                       : first_reserve(slot, record, at, generation, bytes);
    else
        status = known ? charge(slot, record, at, generation, bytes)
                       : claim_first(slot, record, at, generation, bytes);
    if (status != TN_OK) {
        tn__record_recycle(record, slot);
        return status;
    }
    *out = (tn_reservation){record, generation};
    return TN_OK;
}

tn_status tn__life_reserve(tn__life *life, tn_location at, uint64_t bytes, const char *label,
                           tn_reservation *out) {
    return reserve(life, at, bytes, label, false, out);
}

tn_status tn__life_reserve_claimed(tn__life *life, tn_location at, uint64_t bytes,
                                   const char *label, tn_reservation *out) {
    return reserve(life, at, bytes, label, true, out);
}

/* ---- adopt_reserved --------------------------------------------------------------------- */

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

/* What a reservation is, read as word, fields, word, in a section (its manager may be another). */
typedef struct taken_view {
    bool active, ours;
    tn_location at;
    uint64_t left;
} taken_view;

static taken_view view_of(tn__life *life, const tn_reservation *reservation) {
    taken_view v = {.active = false};
    tn__record *record = reservation->record;
    uint64_t active = tn__word(reservation->generation, TN__ACTIVE);
    tn__rcu_lock();
    if (record && tn__record_word(record) == active) {
        uint64_t what = tn__load_rlx(&record->what);
        v.ours = tn__what_kind(what) == TN__KIND_RESERVATION && record->slot->life == life;
        v.at = tn__what_location(what);
        v.left = tn__load_rlx(&record->pair.high);
        /* [word] the fields read -> the word's second reading; a load alone cannot order them */
        tn__fence_acq();
        v.active = tn__load_rlx(&record->pair.low) == active;
    }
    tn__rcu_unlock();
    return v;
}

tn_status tn__life_take_check(tn__life *life, const tn_reservation *reservation, tn_location at,
                              uint64_t bytes) {
    taken_view v = view_of(life, reservation);
    if (!v.active)
        return tn__fail(TN_ERR_LIFETIME_CLOSED, "the reservation has ended");
    if (!v.ours)
        return tn__fail(TN_ERR_VALUE, "the reservation is another manager's");
    if (!tn__location_same(v.at, at))
        return tn__fail(TN_ERR_VALUE, "the reservation is at another location");
    return v.left < bytes ? too_small(life, at, v.left, bytes) : TN_OK;
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
        /* [word] release: whoever finds bytes gone finds the counter odd. And only an active
         * reservation of this generation loses bytes. */
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
