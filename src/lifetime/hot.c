/* SPDX-License-Identifier: MIT */
/*
 * The hot path of several values at host locations: one lease (tn_manager_acquire()), or the leases
 * and reservations of a use together (a bundle). It follows acquire.c, reserve.c and release.c step
 * by step, in one section and under one odd counter; whatever deviates undoes what was done and
 * takes the slow way, which makes all checks anew, in their order, and reports. So it meets no
 * descriptor and aborts no plan.
 *
 *      counter odd; for each lease: record ACQUIRING, then its pins; each reservation: ACQUIRING
 *      one light fence for all of them
 *      all state words LIVE; then the bytes are charged; then the manager word is OPEN (last)
 *      all records ACTIVE (nothing can fail any more), counter even, counting each of them
 *
 * For each record these are the steps of its own protocol in their order, so each argument of
 * src/README.md holds for each record alone. What is new is only that they overlap:
 *  - A removal that meets some records ACTIVE and others still ACQUIRING is refused by the first, or
 *    waits for the second, which the same thread leaves next without waiting for anybody.
 *  - Charging bytes while records are ACQUIRING and the counter is odd is a CAS that fails only
 *    because another thread's succeeded (L5 allows it; a release gives bytes back in the same place).
 *    It comes after the state words, so that an entry that a removal refuses leaves no peak.
 *  - The effects are counted together: an exact snapshot sees all of them or none.
 */
#include <string.h>

#include "lifetime/fast.h"

/* ---- Taking ----------------------------------------------------------------------------- */

/* The records are taken from the front of the free list, which is changed at the end only. */
static inline void enter_record(tn__record *record, uint64_t what) {
    uint64_t was = tn__load_rlx(&record->pair.low);
    tn__store_rlx(&record->what, what);
    /* [no-order] the commit is behind the light fence. */
    tn__store_rlx(&record->pair.low, was + tn__word(1, TN__FREE) + TN__ACQUIRING);
}

/* The same index means the same value, whose type both handles have. */
static bool is_pinned(const tn__pin *pin, const tn__pin *end, uint64_t index) {
    while (pin != end && tn__load_rlx(&pin->index) != index)
        pin++;
    return pin != end;
}

/* The pins of a record that is ACQUIRING, distinct ones in first-occurrence order (M129). 0: one is
 * not to be had here. */
static inline uint32_t pin_values(uint64_t manager, const tn_version *version, tn__pins *pins,
                                  const tn__hot_lease *lease) {
    const tn__radix values = version->values; /* the loop's own */
    const uint64_t issued = version->issued;
    uint64_t seen = 0; /* low bits of the indices so far: mostly there is nothing to compare */
    tn__pin *next = pins->pin;
    for (const tn_handle *h = lease->handles, *end = h + lease->count; h != end; h++) {
        tn__mat *mat = tn__fast_find(&values, issued, h, lease->kind);
        if (tn__unlikely(!mat || h->manager != manager))
            return 0;
        uint64_t bit = UINT64_C(1) << h->index % 64;
        if (tn__unlikely(seen & bit) && is_pinned(pins->pin, next, h->index))
            continue;
        seen |= bit;
        tn__store_rlx(&next->index, h->index);
        tn__store_rlx(&next->type, h->type);
        tn__store_rlx(&next->data, mat->payload.data);
        tn__store_rlx(&next->mat, mat); /* [no-order] as in pin_one() */
        next++;
    }
    return (uint32_t)(next - pins->pin);
}

/* False: the record is ACQUIRING, or untouched (*entered). */
static inline bool show_lease(uint64_t manager, const tn_version *version, tn__record *record,
                              const tn__hot_lease *lease, uint32_t *entered) {
    tn__pins *pins = record ? tn__load_rlx(&record->pins) : NULL;
    if (tn__unlikely(!pins || pins->room < lease->count))
        return false;
    enter_record(record, tn__what(TN__KIND_LEASE, (tn_location){lease->kind, 0}));
    ++*entered;
    uint32_t count = pin_values(manager, version, pins, lease);
    /* [no-order] a scan that must see the pins is after our light fence, or reads ACTIVE; until then
     * a pin of an earlier life may make it wait, no more. */
    tn__store_rlx(&record->pin_count, count);
    return count != 0;
}

static inline bool show_reservation(tn__slot *slot, tn__record *record,
                                    const tn__hot_reservation *reservation, uint64_t now,
                                    uint32_t *entered) {
    _Atomic uint64_t *label = record ? tn__load_rlx(&record->label) : NULL;
    uint32_t position = reservation->position;
    if (tn__unlikely(!label || !(slot->tracked[position / 64] >> position % 64 & 1)))
        return false;
    for (uint32_t i = 0; i < reservation->label_words; i++)
        tn__store_rlx(&label[i], reservation->label[i]);
    tn__store_rlx(&record->pin_count, 0);
    tn__store_rlx(&record->admitted, now);
    tn__store_rlx(&record->tie, ++slot->ties);
    tn__store_rlx(&record->pair.high, reservation->bytes);
    enter_record(record, tn__what(TN__KIND_RESERVATION, reservation->at));
    ++*entered;
    return true;
}

static inline bool states_live(tn__record *record) {
    tn__pins *pins = tn__load_rlx(&record->pins);
    const tn__pin *pin = pins->pin, *end = pin + tn__load_rlx(&record->pin_count);
    uintptr_t states = TN__MAT_LIVE;
    for (; pin != end; pin++)
        states |=
            tn__load_rlx(&tn__load_rlx(&pin->mat)->state); /* [no-order] as in tn__fast_pin() */
    return states == TN__MAT_LIVE;
}

/* All or none. */
static inline bool charge_all(const tn__hot_reservation *reservations, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (tn__likely(tn__ledger_charge(reservations[i].ledger, reservations[i].bytes)))
            continue;
        while (i-- > 0)
            tn__ledger_uncharge(reservations[i].ledger, reservations[i].bytes);
        return false;
    }
    return true;
}

/* The reservations' records first, so that end_all() leaves them in this order: a record that had a
 * label gets one again. */
static inline bool show_all(const tn__hot_bundle *b, tn__slot *slot, uint64_t now,
                            uint32_t *entered) {
    const tn_version *version = tn__store_current(b->store);
    tn__record *record = slot->free_local;
    for (size_t i = 0; i < b->reservation_count; i++, record = record->next)
        if (!show_reservation(slot, record, &b->reservations[i], now, entered))
            return false;
    for (size_t i = 0; i < b->lease_count; i++, record = record->next)
        if (!show_lease(b->manager, version, record, &b->leases[i], entered))
            return false;
    TN__AT(TN__POINT_PINS_STORED, slot->free_local);
    return true;
}

static inline bool all_live(const tn__hot_bundle *b, const tn__slot *slot) {
    tn__record *record = slot->free_local;
    for (size_t i = 0; i < b->reservation_count; i++)
        record = record->next;
    for (size_t i = 0; i < b->lease_count; i++, record = record->next)
        if (tn__unlikely(!states_live(record)))
            return false;
    return true;
}

/* All records are shown. The commit point is the last load. */
static inline bool commit(const tn__hot_bundle *b, const tn__slot *slot) {
    if (!all_live(b, slot) || !charge_all(b->reservations, b->reservation_count))
        return false;
    /* [no-order] OPEN says no more than it did in enter(); [fence] orders the look */
    if (tn__likely(tn__load_rlx(&b->gate->word) == TN__MANAGER_OPEN))
        return true;
    for (size_t i = 0; i < b->reservation_count; i++)
        tn__ledger_uncharge(b->reservations[i].ledger, b->reservations[i].bytes);
    return false;
}

static inline uint64_t leave_record(tn__record *record, enum tn__record_state state) {
    uint64_t word = tn__load_rlx(&record->pair.low) - TN__ACQUIRING;
    tn__store_rel(&record->pair.low, word + state); /* [word] */
    return tn__word_generation(word);
}

/* Returns the rest of the free list. */
static inline tn__record *activate(const tn__hot_bundle *b, tn__record *record, tn_lease *leases,
                                   tn_reservation *reservations) {
    TN__AT(TN__POINT_ACQUIRED, record);
    for (size_t i = 0; i < b->reservation_count; i++, record = record->next)
        reservations[i] = (tn_reservation){record, leave_record(record, TN__ACTIVE)};
    for (size_t i = 0; i < b->lease_count; i++, record = record->next)
        leases[i] = (tn_lease){record, leave_record(record, TN__ACTIVE)};
    return record;
}

static TN__COLD void give_up(tn__record *record, uint32_t entered) {
    TN__BRANCH(hot_path_undone);
    for (; entered > 0; entered--, record = record->next)
        leave_record(record, TN__FREE);
}

/* In a section. */
static inline bool take(const tn__hot_bundle *b, tn__slot *slot, uint64_t now, tn_lease *leases,
                        tn_reservation *reservations) {
    uint32_t entered = 0;
    tn__record_begin();
    uint64_t count = tn__count_begin(slot);
    bool ok = show_all(b, slot, now, &entered);
    /* [fence] light: pins and records stored -> state words and manager word loaded. A compiler
     * fence is enough because tn__rcu_enter() has found the asymmetric mode. */
    tn__fence_compiler();
    ok = ok && commit(b, slot);
    if (tn__likely(ok))
        slot->free_local = activate(b, slot->free_local, leases, reservations);
    else
        give_up(slot->free_local, entered);
    tn__count_end(slot, count, ok ? entered : 0);
    return ok;
}

/* The same for one lease. In a section. */
static inline bool take_one(uint64_t manager, const tn__gate *gate, tn__store *store,
                            tn__slot *slot, const tn__hot_lease *lease, tn_lease *out) {
    tn__record *record = slot->free_local;
    uint32_t entered = 0;
    tn__record_begin();
    uint64_t count = tn__count_begin(slot);
    bool ok = show_lease(manager, tn__store_current(store), record, lease, &entered);
    if (tn__likely(ok)) {
        TN__AT(TN__POINT_PINS_STORED, record);
        tn__fence_compiler(); /* [fence] light: as in take() */
        /* [no-order] as in commit() */
        ok = states_live(record) && tn__load_rlx(&gate->word) == TN__MANAGER_OPEN;
    }
    if (tn__likely(ok)) {
        TN__AT(TN__POINT_ACQUIRED, record);
        slot->free_local = record->next;
        *out = (tn_lease){record, leave_record(record, TN__ACTIVE)};
    } else {
        give_up(record, entered);
    }
    tn__count_end(slot, count, ok);
    return ok;
}

/* Entry checks, once for all; the section is entered. NULL: not here, and it is not. The manager word
 * is looked at inside, so that a guard or a close that waits for sections waits for all that
 * follows. */
static inline tn__slot *enter(uint64_t manager, const tn__gate *gate, tn__thread *thread,
                              unsigned long *entered) {
    /* [no-order] the mark: as in tn__life_reap_manual() */
    if (tn__unlikely(thread->cached_id != manager || tn__load_rlx(&gate->reap) ||
                     !tn__rcu_enter(thread, entered)))
        return NULL;
    if (tn__likely(tn__load_acq(&gate->word) == TN__MANAGER_OPEN)) /* [manager-word] */
        return thread->cached_slot;
    tn__rcu_leave(thread, *entered);
    return NULL;
}

bool tn__hot_acquire(uint64_t manager, tn__gate *gate, tn__store *store, const tn__hot_lease *lease,
                     tn_lease *out) {
    tn__thread *thread = tn__thread_own;
    unsigned long entered;
    tn__slot *slot = enter(manager, gate, thread, &entered);
    if (tn__unlikely(!slot))
        return false;
    bool ok = take_one(manager, gate, store, slot, lease, out);
    tn__rcu_leave(thread, entered);
    return ok;
}

bool tn__hot_take(const tn__hot_bundle *b, uint64_t now, tn_lease *leases,
                  tn_reservation *reservations) {
    tn__thread *thread = tn__thread_own;
    unsigned long entered;
    tn__slot *slot = enter(b->manager, b->gate, thread, &entered);
    if (tn__unlikely(!slot))
        return false;
    bool ok = take(b, slot, now, leases, reservations);
    tn__rcu_leave(thread, entered);
    return ok;
}

/* ---- Ending ----------------------------------------------------------------------------- */

static inline bool is_ours(const tn__slot *slot, void *lifetime, uint64_t generation) {
    tn__record *record = lifetime;
    return tn__record_word(record) == tn__word(generation, TN__ACTIVE) && record->slot == slot;
}

static bool all_ours(const tn__hot_bundle *b, const tn__slot *slot, const tn_lease *leases,
                     const tn_reservation *reservations) {
    bool ours = true;
    for (size_t i = 0; i < b->lease_count; i++)
        ours &= is_ours(slot, leases[i].record, leases[i].generation);
    for (size_t i = 0; i < b->reservation_count; i++)
        ours &= is_ours(slot, reservations[i].record, reservations[i].generation);
    return ours;
}

static inline void recycle(tn__record *record, tn__slot *slot) {
    record->next = slot->free_local;
    slot->free_local = record;
}

static inline bool end_lease(const tn_lease *lease, tn__slot *slot) {
    tn__record *record = lease->record;
    uint64_t active = tn__word(lease->generation, TN__ACTIVE);
    /* [word] release, as in end_host(). */
    if (!tn__cas_rel(&record->pair.low, &active, tn__word(lease->generation, TN__FREE)))
        return false;
    recycle(record, slot);
    return true;
}

/* The record first, then the ledger. */
static inline bool end_reservation(const tn_reservation *reservation, tn__ledger *ledger,
                                   tn__slot *slot) {
    tn__record *record = reservation->record;
    uint64_t bytes = tn__load_rlx(&record->pair.high);
    /* [word] acq_rel, as in release.c. Nobody adopts from these bytes; if the CAS fails all the
     * same, the slow way looks again. */
    if (!tn__pair_cas_acq_rel(&record->pair, tn__word(reservation->generation, TN__ACTIVE), bytes,
                              tn__word(reservation->generation, TN__FREE), 0))
        return false;
    tn__ledger_uncharge(ledger, bytes);
    recycle(record, slot);
    return true;
}

/* In reverse, the leases first. What a forced close has detached meanwhile stays as it is. */
static size_t end_all(const tn__hot_bundle *b, tn__slot *slot, const tn_lease *leases,
                      const tn_reservation *reservations) {
    size_t ended = 0;
    uint64_t count = tn__count_begin(slot);
    for (size_t i = b->lease_count; i-- > 0;)
        ended += end_lease(&leases[i], slot);
    for (size_t i = b->reservation_count; i-- > 0;)
        ended += end_reservation(&reservations[i], b->reservations[i].ledger, slot);
    tn__count_end(slot, count, ended);
    return ended;
}

bool tn__hot_end(const tn__hot_bundle *b, const tn_lease *leases,
                 const tn_reservation *reservations) {
    tn__thread *thread = tn__thread_own;
    unsigned long entered;
    tn__slot *slot = enter(b->manager, b->gate, thread, &entered);
    if (tn__unlikely(!slot))
        return false;
    bool all = all_ours(b, slot, leases, reservations);
    if (tn__likely(all))
        all = end_all(b, slot, leases, reservations) == b->lease_count + b->reservation_count;
    tn__rcu_leave(thread, entered);
    return all;
}

/* ---- Preparing -------------------------------------------------------------------------- */

void tn__hot_reservation_init(tn__hot_reservation *out, tn__store *store, tn_location at,
                              uint64_t bytes, const char *label) {
    *out = (tn__hot_reservation){.ledger = tn__store_ledger(store, at), .at = at, .bytes = bytes};
    out->position = (uint32_t)(out->ledger - store->ledgers);
    size_t n = strnlen(label, TN__LABEL_BYTES - 1);
    memcpy(out->label, label, n); /* the rest is zero */
    out->label_words = (uint32_t)(n / sizeof out->label[0] + 1);
}
