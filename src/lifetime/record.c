/* SPDX-License-Identifier: MIT */
/*
 * Records and their blocks. A scan may read any record at any time: blocks are never unmapped,
 * and pin and event arrays stay until the manager is destroyed.
 */
#include <string.h>

#include "lifetime/lifetime_priv.h"

static tn__mutex pool_lock = {PTHREAD_MUTEX_INITIALIZER, TN__RANK_LEAF};
static tn__block *pool; /* blocks that no manager uses, under pool_lock */

tn__block *tn__block_obtain(void) {
    tn__lock(&pool_lock);
    tn__block *block = pool;
    if (block)
        pool = block->next;
    tn__unlock(&pool_lock);
    if (!block)
        block = tn__zalloc_line(sizeof *block);
    return block;
}

static void free_pins(tn__pins *pins) {
    while (pins) {
        tn__pins *older = pins->older;
        tn__free(pins);
        pins = older;
    }
}

static void free_events(tn__events *events) {
    while (events) {
        tn__events *older = events->older;
        tn__free(events);
        events = older;
    }
}

void tn__record_forget(tn__record *record) {
    tn__streams_forget(record);
    free_pins(tn__load_rlx(&record->pins));
    free_events(tn__load_rlx(&record->events));
    tn__free(tn__load_rlx(&record->label));
    tn__store_rlx(&record->pins, NULL);
    tn__store_rlx(&record->events, NULL);
    tn__store_rlx(&record->label, NULL);
    tn__store_rlx(&record->pin_count, 0);
    tn__store_rlx(&record->event_count, 0);
    record->slot = NULL;
    /* A lifetime that a forced close left behind ends here: its generation is FREE from now on
     * (M150). */
    uint64_t generation = tn__word_generation(tn__load_rlx(&record->pair.low));
    /* [no-order] nobody reads any longer, and the next life begins behind the pool's lock */
    tn__store_rlx(&record->pair.low, tn__word(generation, TN__FREE));
}

void tn__block_give_back(tn__block *block) {
    uint32_t used = tn__load_rlx(&block->used);
    for (uint32_t i = 0; i < used; i++)
        tn__record_forget(&block->records[i]);
    tn__store_rlx(&block->used, 0);
    tn__lock(&pool_lock);
    block->next = pool;
    pool = block;
    tn__unlock(&pool_lock);
}

/* A record that this manager never used: raise the newest block's mark, or take another block. */
static tn__record *fresh(tn__slot *slot) {
    tn__block *block = tn__load_rlx(&slot->blocks);
    if (!block || tn__load_rlx(&block->used) == TN__BLOCK_RECORDS) {
        tn__block *newer = tn__block_obtain();
        if (!newer)
            return NULL;
        newer->next = block;
        /* [block] release. Pairs: acquire in tn__scan(). Orders: the block's fields -> its link.
         * The link and the mark precede the pins, and these the light fence: a scan after its
         * heavy fence sees all three. Without: a scan walks a half-linked block. */
        tn__store_rel(&slot->blocks, newer);
        block = newer;
    }
    uint32_t used = tn__load_rlx(&block->used);
    tn__record *record = &block->records[used];
    record->slot = slot;
    /* [no-order] only the number: a scan that must see the record is behind [fence] or [count] */
    tn__store_rlx(&block->used, used + 1);
    return record;
}

tn__record *tn__record_obtain(tn__slot *slot) {
    if (!slot->free_local) {
        /* [free-remote] acquire. Pairs: release in tn__record_recycle(). Orders: the other
         * thread's last use -> our reuse. Without: two threads write one record. */
        slot->free_local = tn__swap_acq(&slot->free_remote, NULL);
    }
    tn__record *record = slot->free_local;
    if (!record)
        return fresh(slot);
    slot->free_local = record->next;
    tn__record_begin();
    TN_ASSERT(tn__word_state(tn__load_rlx(&record->pair.low)) == TN__FREE);
    return record;
}

void tn__record_recycle(tn__record *record, tn__slot *own) {
    tn__slot *home = record->slot;
    if (home == own) {
        record->next = home->free_local;
        home->free_local = record;
        return;
    }
    TN__BRANCH(record_goes_home);
    tn__record *head = tn__load_rlx(&home->free_remote);
    do
        record->next = head;
    while (!tn__cas_rel(&home->free_remote, &head, record)); /* [free-remote] */
}

static size_t room_for(size_t count) {
    size_t room = 4;
    while (room < count)
        room *= 2;
    return room;
}

tn__pins *tn__record_pins(tn__record *record, size_t count) {
    tn__pins *old = tn__load_rlx(&record->pins);
    if (old && old->room >= count)
        return old;
    size_t room = room_for(count);
    if (room > UINT32_MAX || room > (SIZE_MAX - sizeof(tn__pins)) / sizeof(tn__pin))
        return NULL;
    tn__pins *pins = tn__zalloc(sizeof *pins + room * sizeof(tn__pin));
    if (!pins)
        return NULL;
    pins->room = (uint32_t)room;
    pins->older = old;
    /* [arrays] release. Pairs: acquire in the scans. Orders: the array's room and zeroes -> its
     * pointer. Without: a scan reads past the end of an array. */
    tn__store_rel(&record->pins, pins);
    return pins;
}

tn__events *tn__record_events(tn__record *record, size_t count) {
    tn__events *old = tn__load_rlx(&record->events);
    if (old && old->room >= count)
        return old;
    size_t room = room_for(count);
    if (room > UINT32_MAX || room > (SIZE_MAX - sizeof(tn__events)) / sizeof(tn__event *))
        return NULL;
    tn__events *events = tn__zalloc(sizeof *events + room * sizeof(tn__event *));
    if (!events)
        return NULL;
    events->room = (uint32_t)room;
    events->older = old;
    tn__store_rel(&record->events, events); /* [arrays] */
    return events;
}

void tn__record_label(tn__record *record, char label[TN__LABEL_BYTES]) {
    /* [no-order] what counts was ordered by the word of a reservation */
    _Atomic uint64_t *words = tn__load_rlx(&record->label);
    for (size_t i = 0; i < TN__LABEL_WORDS; i++) {
        uint64_t word = words ? tn__load_rlx(&words[i]) : 0;
        memcpy(label + i * sizeof word, &word, sizeof word);
    }
    label[TN__LABEL_BYTES - 1] = '\0';
    size_t n = strlen(label); /* behind it stands what an earlier life has left */
    memset(label + n, 0, TN__LABEL_BYTES - n);
}
