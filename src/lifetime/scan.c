/* SPDX-License-Identifier: MIT */
/*
 * Scans of all record blocks. Each record is read as word, pins, word: what was read counts only if
 * the word speaks of the same life at both ends. ACTIVE and RELEASING count as uses (or holds, by
 * kind), PENDING as pending, nothing else counts.
 */
#include <string.h>

#include "lifetime/lifetime_priv.h"

void tn__scan(tn__life *life,
              tn__scan_step (*visit)(void *context, tn__record *record, uint64_t word),
              void *context) {
    for (tn__slot *slot = tn__load_acq(&life->slots); slot; slot = slot->next) { /* [slots] */
        /* [block] */
        for (tn__block *block = tn__load_acq(&slot->blocks); block; block = block->next) {
            uint32_t used = tn__load_rlx(&block->used); /* [no-order] as in record.c's fresh() */
            for (uint32_t i = 0; i < used; i++) {
                tn__record *record = &block->records[i];
                uint64_t word = tn__record_word(record);
                if (tn__word_state(word) == TN__FREE)
                    continue;
                if (visit(context, record, word) == TN__SCAN_STOP)
                    return;
            }
        }
    }
}

/* ---- Protections of materializations ---------------------------------------------------- */

typedef struct protection_scan {
    tn__mat *const *mats;
    size_t count;
    tn__protection *out;
} protection_scan;

static void add_protection(tn__protection *p, uint64_t word, uint64_t what) {
    if (tn__word_state(word) == TN__PENDING)
        p->pending++;
    else if (tn__what_kind(what) == TN__KIND_HOLD)
        p->holds++;
    else
        p->uses++;
}

/* What was read speaks of the life that `word` names. A release that begins meanwhile (ACTIVE ->
 * RELEASING, which is no effect and is not counted) changes nothing of it: to leave the record out
 * then would lose a use that an exact snapshot must have. */
static bool same_life(tn__record *record, uint64_t word) {
    TN__AT(TN__POINT_SEEN, record);
    /* [word] acquire fence. Pairs: release stores of pins and words. Orders: the fields read ->
     * the second reading of the word; an acquire load alone cannot order what came before it.
     * Without: fields of the next life count for this one. */
    tn__fence_acq();
    uint64_t again = tn__load_rlx(&record->pair.low);
    enum tn__record_state state = tn__word_state(again);
    return tn__word_generation(again) == tn__word_generation(word) &&
           (state == TN__ACTIVE || state == TN__RELEASING || state == TN__PENDING);
}

static tn__scan_step visit_protection(void *context, tn__record *record, uint64_t word) {
    protection_scan *s = context;
    enum tn__record_state state = tn__word_state(word);
    if (state != TN__ACTIVE && state != TN__RELEASING && state != TN__PENDING)
        return TN__SCAN_ON;
    uint64_t what = tn__load_rlx(&record->what);
    tn__pin_view view = tn__pin_view_of(record);
    for (size_t m = 0; m < s->count; m++) {
        bool hit = false;
        for (size_t i = 0; i < view.count && !hit; i++)
            hit = tn__load_rlx(&view.pins->pin[i].mat) == s->mats[m];
        if (hit && same_life(record, word))
            add_protection(&s->out[m], word, what);
    }
    return TN__SCAN_ON;
}

void tn__life_protections(tn__life *life, tn__mat *const *mats, size_t count, tn__protection *out) {
    for (size_t i = 0; i < count; i++)
        out[i] = (tn__protection){0, 0, 0};
    if (count == 0)
        return;
    protection_scan s = {mats, count, out};
    tn__scan(life, visit_protection, &s);
}

/* ---- Totals ----------------------------------------------------------------------------- */

static tn__scan_step visit_totals(void *context, tn__record *record, uint64_t word) {
    tn__totals *t = context;
    enum tn__record_state state = tn__word_state(word);
    if (state != TN__ACTIVE && state != TN__RELEASING && state != TN__PENDING)
        return TN__SCAN_ON;
    uint64_t what = tn__load_rlx(&record->what);
    if (!same_life(record, word))
        return TN__SCAN_ON;
    if (state == TN__PENDING)
        t->pending_leases++;
    else if (tn__what_kind(what) == TN__KIND_LEASE)
        t->active_leases++;
    else if (tn__what_kind(what) == TN__KIND_HOLD)
        t->holds++;
    else
        t->reservations++;
    return TN__SCAN_ON;
}

void tn__life_totals(tn__life *life, tn__totals *out) {
    *out = (tn__totals){0, 0, 0, 0};
    tn__scan(life, visit_totals, out);
}

/* ---- RELEASING -------------------------------------------------------------------------- */

static tn__scan_step visit_releasing(void *context, tn__record *record, uint64_t word) {
    (void)context;
    if (tn__word_state(word) != TN__RELEASING)
        return TN__SCAN_ON;
    tn__pause pause = {0};
    while (tn__record_word(record) == word) {
        TN__BRANCH(releasing_waited_for);
        tn__pause_once(&pause);
    }
    return TN__SCAN_ON;
}

void tn__scan_wait_releasing(tn__life *life) {
    tn__assert_may_wait("wait for releases");
    tn__scan(life, visit_releasing, NULL);
}

/* ---- Snapshots -------------------------------------------------------------------------- */

#define WALK_PINS 16

typedef struct walk {
    bool (*each)(void *context, const tn__seen *seen);
    void *context;
    bool ok;
} walk;

static unsigned seen_kind(uint64_t word, uint64_t what) {
    if (tn__word_state(word) == TN__PENDING)
        return TN__SEEN_PENDING;
    switch (tn__what_kind(what)) {
    case TN__KIND_HOLD:
        return TN__SEEN_HOLD;
    case TN__KIND_RESERVATION:
        return TN__SEEN_RESERVATION;
    default:
        return TN__SEEN_LEASE;
    }
}

static bool show(walk *w, tn__record *record, uint64_t word, tn__pin_view view,
                 tn__seen_pin *pins) {
    char label[TN__LABEL_BYTES];
    uint64_t what = tn__load_rlx(&record->what);
    tn__seen seen = {.what = seen_kind(word, what),
                     .at = tn__what_location(what),
                     .pins = pins,
                     .label = label,
                     .record = record,
                     .word = word};
    if (seen.what == TN__SEEN_RESERVATION) {
        seen.bytes = tn__load_rlx(&record->pair.high);
        seen.admitted = tn__load_rlx(&record->admitted);
        seen.tie = tn__load_rlx(&record->tie);
        tn__record_label(record, label);
    } else {
        seen.pin_count = view.count;
        for (size_t i = 0; i < view.count; i++)
            pins[i] = (tn__seen_pin){tn__load_rlx(&view.pins->pin[i].mat),
                                     tn__load_rlx(&view.pins->pin[i].index)};
    }
    return !same_life(record, word) || w->each(w->context, &seen);
}

static tn__scan_step visit_walk(void *context, tn__record *record, uint64_t word) {
    walk *w = context;
    enum tn__record_state state = tn__word_state(word);
    if (state != TN__ACTIVE && state != TN__RELEASING && state != TN__PENDING)
        return TN__SCAN_ON;
    tn__seen_pin few[WALK_PINS], *pins = few;
    tn__pin_view view = tn__pin_view_of(record);
    if (view.count > WALK_PINS)
        pins = tn__alloc(view.count * sizeof *pins);
    w->ok = pins && show(w, record, word, view, pins);
    if (pins != few)
        tn__free(pins);
    return w->ok ? TN__SCAN_ON : TN__SCAN_STOP;
}

bool tn__life_walk(tn__life *life, bool (*each)(void *context, const tn__seen *seen),
                   void *context) {
    walk w = {each, context, true};
    tn__scan(life, visit_walk, &w);
    return w.ok;
}

bool tn__life_seen_over(tn__life *life, void *record, uint64_t word) {
    tn_error kept = *tn__error_current();
    bool failed = false;
    bool over = tn__pending_done(life, record, word, &failed);
    if (failed)
        tn__error_restore(&kept);
    return over;
}
