/* SPDX-License-Identifier: MIT */
/*
 * Reading a lifetime through its value {record, generation}: word, fields, word. Lookups check
 * the generation; reading through a payload pointer does not go through the manager (D6).
 */
#include <string.h>

#include "lifetime/lifetime_priv.h"

/* Whether this generation still names something. A lease whose wait failed is open although it is
 * pending (M146). */
static bool open_word(tn__record *record, uint64_t generation, uint64_t word) {
    if (tn__word_generation(word) != generation)
        return false;
    switch (tn__word_state(word)) {
    case TN__ACTIVE:
    case TN__DETACHED:
        return true;
    case TN__PENDING:
    case TN__DONE:
        return tn__load_rlx(&record->open_generation) == generation;
    default:
        return false;
    }
}

static tn_status ended(void) { return tn__fail(TN_ERR_LIFETIME_CLOSED, "the lifetime has ended"); }

static bool unchanged(tn__record *record, uint64_t word) {
    /* [word] the fields read -> the word's second reading; a load alone cannot order them */
    tn__fence_acq();
    return tn__load_rlx(&record->pair.low) == word;
}

bool tn__record_active(void *at, uint64_t generation) {
    tn__record *record = at;
    return record && open_word(record, generation, tn__record_word(record));
}

/* Index of a handle's pin, or SIZE_MAX. */
static size_t find_pin(tn__pin_view view, tn_handle handle) {
    for (size_t i = 0; i < view.count; i++)
        if (tn__load_rlx(&view.pins->pin[i].index) == handle.index &&
            tn__load_rlx(&view.pins->pin[i].type) == handle.type)
            return i;
    return SIZE_MAX;
}

typedef struct looked_up {
    uint64_t word;
    tn__life *life;
    const void *data;
    bool found;
} looked_up;

/* In a section, so that the manager of an open record stays. False: the lifetime has ended. */
static bool look_up(tn__record *record, uint64_t generation, tn_handle handle, looked_up *out) {
    out->word = tn__record_word(record);
    if (!open_word(record, generation, out->word))
        return false;
    out->life = record->slot->life;
    tn__pin_view view = tn__pin_view_of(record);
    size_t i = handle.manager == out->life->manager ? find_pin(view, handle) : SIZE_MAX;
    out->found = i != SIZE_MAX;
    out->data = out->found ? tn__load_rlx(&view.pins->pin[i].data) : NULL;
    return unchanged(record, out->word);
}

tn_status tn__lease_lookup(const tn_lease *lease, tn_handle handle, const void **out) {
    tn__thread *thread = tn__thread_self();
    looked_up l;
    if (!lease->record)
        return ended();
    if (!thread)
        return tn__no_memory();
    tn__rcu_thread_ready(thread);
    tn__rcu_lock();
    tn_status status = TN_OK;
    if (!look_up(lease->record, lease->generation, handle, &l))
        status = ended();
    else if (!l.found)
        status = tn__fail(TN_ERR_LOOKUP, "handle %llu is not one of this lease",
                          (unsigned long long)handle.index);
    else
        status = tn__life_enter(l.life, thread, true);
    tn__rcu_unlock();
    if (status == TN_OK && tn__word_state(l.word) != TN__ACTIVE) {
        status = TN_ERR_UNAVAILABLE;
        tn__error(status, "the lease's protection is gone")->handle = handle;
    }
    if (status == TN_OK)
        *out = l.data;
    return status;
}

tn_status tn__lease_contains(const tn_lease *lease, tn_handle handle, bool *out) {
    tn__thread *thread = tn__thread_self();
    looked_up l;
    if (!lease->record)
        return ended();
    if (!thread)
        return tn__no_memory();
    tn__rcu_thread_ready(thread);
    tn__rcu_lock();
    bool open = look_up(lease->record, lease->generation, handle, &l);
    tn__rcu_unlock();
    if (!open)
        return ended();
    *out = l.found;
    return TN_OK;
}

tn_status tn__record_handles(void *at, uint64_t generation, tn_handle *out, size_t *inout_count) {
    tn__record *record = at;
    tn__thread *thread = tn__thread_self();
    if (!record)
        return ended();
    if (!thread)
        return tn__no_memory();
    tn__rcu_thread_ready(thread);
    tn__rcu_lock();
    uint64_t word = tn__record_word(record);
    bool open = open_word(record, generation, word);
    if (open) {
        uint64_t manager = record->slot->life->manager;
        tn__pin_view view = tn__pin_view_of(record);
        for (size_t i = 0; i < view.count && i < *inout_count; i++)
            out[i] = (tn_handle){manager, tn__load_rlx(&view.pins->pin[i].index),
                                 tn__load_rlx(&view.pins->pin[i].type)};
        open = unchanged(record, word);
        if (open)
            *inout_count = view.count;
    }
    tn__rcu_unlock();
    return open ? TN_OK : ended();
}

tn_status tn__record_location(void *at, uint64_t generation, tn_location *out) {
    tn__record *record = at;
    if (!record)
        return ended();
    uint64_t word = tn__record_word(record);
    tn_location location = tn__what_location(tn__load_rlx(&record->what));
    if (!open_word(record, generation, word) || !unchanged(record, word))
        return ended();
    *out = location;
    return TN_OK;
}

tn_status tn__reservation_read(const tn_reservation *reservation, tn_reservation_info *out) {
    tn__record *record = reservation->record;
    if (!record)
        return ended();
    uint64_t word = tn__record_word(record);
    if (!open_word(record, reservation->generation, word))
        return ended();
    tn_reservation_info info = {.size = sizeof info,
                                .at = tn__what_location(tn__load_rlx(&record->what)),
                                .bytes = tn__load_rlx(&record->pair.high)};
    tn__record_label(record, info.label);
    if (!unchanged(record, word))
        return ended();
    tn__struct_out(out, &info, sizeof info);
    return TN_OK;
}
