/* SPDX-License-Identifier: MIT */
/*
 * The hot path: acquire and release of one value at a host location, by a thread that has been here
 * before. Compiled into their entry points as leaf code: no lock, no call out of the library, and
 * one atomic read-modify-write, the release's CAS on its own record. They follow acquire.c and
 * release.c step by step; whatever deviates undoes the little that was done and takes the slow way,
 * which makes all checks anew, in their order, and reports.
 *
 * No section in the release: the record is ACTIVE, so its manager cannot be destroyed meanwhile
 * before the counter is even again (a destroy waits for that). A release that was past the check
 * when a guard went up takes effect during the callback; only tn_lease_active() could tell
 * (M190), and it is ordered before the callback as well as after.
 */
#ifndef TENURE_LIFETIME_FAST_H
#define TENURE_LIFETIME_FAST_H

#include "lifetime/lifetime_priv.h"

/* In a section: the replica at a host location, if the handle is a live value's (so that its type
 * is a valid one). An index that was issued is not deeper than the tree. `values` and `issued`: the
 * version's, apart so that a loop may keep them. */
static inline tn__mat *tn__fast_find(const tn__radix *values, uint64_t issued,
                                     const tn_handle *handle, uint32_t kind) {
    if (tn__unlikely(handle->index > issued))
        return NULL;
    const tn__value *value = tn__radix_descend(values, handle->index);
    if (tn__unlikely(!value || value->type != handle->type))
        return NULL;
    tn__mat *const *end = value->mats + value->mat_count;
    for (tn__mat *const *at = value->mats; at != end; at++)
        if ((*at)->at.kind == kind)
            return *at;
    return NULL;
}

/* The protocol for one pin. `was` is the record's word. False: undone. */
static inline bool tn__fast_pin(const tn__gate *gate, tn__slot *slot, tn__record *record,
                                tn__pin *pin, tn__mat *mat, uint64_t was) {
    const uint64_t next = tn__word(1, TN__FREE); /* one generation on */
    uint64_t count = tn__count_begin(slot);
    /* [no-order] the word and the pin: seen together, by [fence] */
    tn__store_rlx(&record->pair.low, was + next + TN__ACQUIRING);
    tn__store_rlx(&pin->mat, mat);
    TN__AT(TN__POINT_PINS_STORED, record);
    /* [fence] light: pin stored -> state word loaded. A compiler fence is enough because
     * tn__rcu_enter() has found the asymmetric mode. */
    tn__fence_compiler();
    /* [no-order] the state: anything but LIVE is looked at again, the slow way */
    if (tn__likely(tn__load_rlx(&mat->state) == TN__MAT_LIVE &&
                   tn__load_acq(&gate->word) == TN__MANAGER_OPEN)) { /* [manager-word] */
        TN__AT(TN__POINT_ACQUIRED, record);
        tn__store_rel(&record->pair.low, was + next + TN__ACTIVE); /* [word] */
        tn__count_end(slot, count, 1);
        return true;
    }
    TN__BRANCH(leaf_acquire_undone);
    /* [no-order] FREE speaks of nothing, and the next life begins behind a fence */
    tn__store_rlx(&record->pair.low, was + next);
    tn__count_end(slot, count, 0);
    return false;
}

/* `kind` is pageable or pinned. False: nothing was done. */
static inline bool tn__fast_acquire(uint64_t manager, const tn__gate *gate, tn__store *store,
                                    const tn_handle *handle, uint32_t kind, tn_lease *out) {
    tn__thread *thread = tn__thread_own;
    if (tn__unlikely(thread->cached_id != manager || handle->manager != manager))
        return false;
    tn__slot *slot = thread->cached_slot;
    tn__record *record = slot->free_local;
    tn__pins *pins = record ? tn__load_rlx(&record->pins) : NULL;
    unsigned long entered;
    /* [no-order] the mark: as in tn__life_reap_manual() */
    if (tn__unlikely(!pins || tn__load_rlx(&gate->reap) || !tn__rcu_enter(thread, &entered)))
        return false;
    const tn_version *version = tn__store_current(store);
    tn__mat *mat = tn__fast_find(&version->values, version->issued, handle, kind);
    uint64_t was = tn__load_rlx(&record->pair.low);
    bool ok = false;
    if (tn__likely(mat != NULL)) {
        tn__pin *pin = &pins->pin[0];
        tn__record_begin();
        tn__store_rlx(&pin->index, handle->index);
        tn__store_rlx(&pin->type, handle->type);
        tn__store_rlx(&pin->data, mat->payload.data);
        tn__store_rlx(&record->pin_count, 1);
        tn__store_rlx(&record->what, tn__what(TN__KIND_LEASE, (tn_location){kind, 0}));
        ok = tn__fast_pin(gate, slot, record, pin, mat, was);
    }
    tn__rcu_leave(thread, entered);
    if (tn__unlikely(!ok))
        return false;
    slot->free_local = record->next;
    out->record = record;
    out->generation = tn__word_generation(was) + 1;
    return true;
}

/* A lease, pageable or pinned. */
static inline bool tn__fast_host_lease(uint64_t what) {
    uint64_t pageable = tn__what(TN__KIND_LEASE, (tn_location){TN_LOCATION_PAGEABLE, 0});
    uint64_t pinned = tn__what(TN__KIND_LEASE, (tn_location){TN_LOCATION_PINNED, 0});
    return what == pageable || what == pinned;
}

/* False: nothing was done. */
static inline bool tn__fast_release(const tn_lease *lease) {
    tn__thread *thread = tn__thread_own;
    tn__record *record = lease->record;
    if (tn__unlikely(!record))
        return false;
    uint64_t active = tn__word(lease->generation, TN__ACTIVE);
    if (tn__unlikely(tn__record_word(record) != active ||
                     !tn__fast_host_lease(tn__load_rlx(&record->what))))
        return false;
    tn__slot *slot = record->slot;
    /* This thread's slot in the manager that it used last, outside any frame. The id tells it
     * from a slot at the same address that belongs to another thread of a later manager. */
    if (tn__unlikely(slot != thread->cached_slot || slot->manager != thread->cached_id ||
                     tn__load_acq(&slot->gate->word) != TN__MANAGER_OPEN)) /* [manager-word] */
        return false;
    uint64_t count = tn__count_begin(slot);
    /* [word] release, as in end_host(). */
    bool won = tn__cas_rel(&record->pair.low, &active, tn__word(lease->generation, TN__FREE));
    if (tn__likely(won)) {
        record->next = slot->free_local;
        slot->free_local = record;
    }
    /* Last: a destroy waits for an even counter, and then frees the slot. Lost: another release was
     * faster, or a forced close, and the slow way tells which. */
    tn__count_end(slot, count, won);
    return won;
}

#endif
