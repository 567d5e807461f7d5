/* SPDX-License-Identifier: MIT */
/*
 * The hot path: acquire and release of one value at a host location, by a thread that has been here
 * before. Leaf functions: no lock, no call out of the library, and one atomic read-modify-write, the
 * release's CAS on its own record. They follow acquire.c and release.c step by step; whatever
 * deviates undoes the little that was done and takes the slow way, which does all checks anew, in
 * their order, and reports.
 *
 * No section in the release: the record is ACTIVE, so its manager cannot be destroyed meanwhile
 * (its destroy is not concurrent with calls, and detaches first); and a release that was past the
 * check when a guard went up is not seen by anybody before the guard is down.
 */
#include "lifetime/lifetime_priv.h"

/* The replica at a host location. */
static inline tn__mat *host_mat(const tn__value *value, uint32_t kind) {
    for (uint32_t i = 0; i < value->mat_count; i++)
        if (value->mats[i]->at.kind == kind)
            return value->mats[i];
    return NULL;
}

/* In a section. The value is resident, of the handle's own type (so that type is a valid one). */
static inline tn__mat *find(const tn__life *life, tn_handle handle, uint32_t kind) {
    const tn__value *value = tn__version_value(tn__store_current(life->store), handle.index);
    if (!value || value->type != handle.type || value->discarded)
        return NULL;
    return host_mat(value, kind);
}

/* The protocol for one pin. False: undone. */
static inline bool pin(tn__life *life, tn__slot *slot, tn__record *record, tn__mat *mat,
                       uint64_t generation) {
    tn__pin *p = &tn__load_rlx(&record->pins)->pin[0];
    uint64_t count = tn__count_begin(slot);
    /* [no-order] the pin is a release store: a scan that sees it sees this word too. */
    tn__store_rlx(&record->pair.low, tn__word(generation, TN__ACQUIRING));
    tn__store_rel(&p->mat, mat); /* [pin] */
    TN__AT(TN__POINT_PINS_STORED, record);
    tn__light_fence(); /* [fence] pin stored -> state word loaded */
    bool ok = tn__load_acq(&mat->state) == TN__MAT_LIVE &&  /* [state] */
              tn__load_acq(life->word) == TN__MANAGER_OPEN; /* [manager-word] */
    /* [word] release: ACTIVE after the pin; FREE after the last look at it. */
    tn__store_rel(&record->pair.low, tn__word(generation, ok ? TN__ACTIVE : TN__FREE));
    tn__count_end(slot, count, ok);
    return ok;
}

bool tn__fast_acquire(tn__life *life, tn_handle handle, tn_location at, tn_lease *out) {
    tn__thread *thread = tn__thread_own;
    if (!thread || thread->cached_id != life->manager || thread->frames ||
        handle.manager != life->manager)
        return false;
    tn__slot *slot = thread->cached_slot;
    tn__record *record = slot->free_local;
    /* [no-order] as in tn__life_reap_manual() */
    if (!record || !tn__load_rlx(&record->pins) ||
        (life->manual && tn__load_rlx(&life->pending_some)) || !tn__rcu_enter(thread))
        return false;
    tn__mat *mat = find(life, handle, at.kind);
    uint64_t generation = tn__word_generation(tn__load_rlx(&record->pair.low)) + 1;
    bool ok = false;
    if (mat) {
        tn__pin *p = &tn__load_rlx(&record->pins)->pin[0];
        tn__store_rlx(&p->index, handle.index);
        tn__store_rlx(&p->type, handle.type);
        tn__store_rlx(&p->data, mat->payload.data);
        tn__store_rlx(&record->pin_count, 1);
        tn__store_rlx(&record->what, tn__what(TN__KIND_LEASE, (tn_location){at.kind, 0}));
        ok = pin(life, slot, record, mat, generation);
    }
    tn__rcu_leave(thread);
    if (!ok)
        return false;
    slot->free_local = record->next;
    *out = (tn_lease){record, generation};
    return true;
}

/* A lease, pageable or pinned. */
static inline bool host_lease(uint64_t what) {
    uint64_t kind = what >> 32;
    return kind == ((uint64_t)TN__KIND_LEASE << 8 | TN_LOCATION_PAGEABLE) ||
           kind == ((uint64_t)TN__KIND_LEASE << 8 | TN_LOCATION_PINNED);
}

bool tn__fast_release(const tn_lease *lease) {
    tn__thread *thread = tn__thread_own;
    tn__record *record = lease->record;
    if (!thread || !record || thread->frames)
        return false;
    uint64_t active = tn__word(lease->generation, TN__ACTIVE);
    if (tn__record_word(record) != active || !host_lease(tn__load_rlx(&record->what)))
        return false;
    tn__slot *slot = record->slot;
    if (slot != thread->cached_slot || thread->cached_id != slot->life->manager ||
        tn__load_acq(slot->life->word) != TN__MANAGER_OPEN) /* [manager-word] */
        return false;
    uint64_t count = tn__count_begin(slot);
    /* [word] release, as in end_host(). */
    bool won = tn__cas_rel(&record->pair.low, &active, tn__word(lease->generation, TN__FREE));
    tn__count_end(slot, count, won);
    if (won) {
        record->next = slot->free_local;
        slot->free_local = record;
    }
    return true;
}
