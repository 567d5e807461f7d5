/* SPDX-License-Identifier: MIT */
/*
 * Removal: the writer's side of the protocol. All materializations of one plan are decided by one
 * word, so an acquire and a removal can never both lose, and a plan costs one heavy fence:
 *
 *   help pending leases; settle cheaply by visible pins
 *   state words LIVE -> descriptor (TRYING); heavy fence; scan all records
 *     ACTIVE..PENDING with a pin: withdrawn, in use
 *     ACQUIRING with a pin: stay TRYING until those words change or a reader aborts
 *   CAS TRYING -> TAKEN
 *   aborted by a reader: wait for its outcome; GRANTED: in use; FAILED: a fresh descriptor, again
 *
 * A reader's section is finite, so the waits here are. The descriptor is freed after a grace
 * period after all state words have left it.
 */
#include <stdlib.h>
#include <string.h>

#include "lifetime/lifetime_priv.h"

static void free_removal(tn__garbage *garbage) { tn__free(garbage); }

static int by_address(const void *a, const void *b) {
    uintptr_t x = (uintptr_t) * (tn__mat *const *)a, y = (uintptr_t) * (tn__mat *const *)b;
    return (x > y) - (x < y);
}

tn__removal *tn__removal_new(tn__mat *const *mats, size_t count, size_t later) {
    size_t room = count + later;
    tn__removal *removal = NULL;
    if (room >= count && room <= UINT32_MAX)
        removal = tn__zalloc(sizeof *removal + room * sizeof(tn__mat *));
    if (!removal)
        return NULL;
    removal->garbage.free = free_removal;
    removal->count = removal->total = count;
    if (count)
        memcpy(removal->mats, mats, count * sizeof *mats);
    if (count > 1)
        qsort(removal->mats, count, sizeof *mats, by_address);
    for (size_t i = 0; i < count; i++)
        removal->mats[i]->place = (uint32_t)i;
    return removal;
}

bool tn__removal_names(const tn__removal *removal, const tn__mat *mat) {
    size_t low = 0, high = removal->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (removal->mats[middle] == mat)
            return true;
        if ((uintptr_t)removal->mats[middle] < (uintptr_t)mat)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/* ---- The decision word ------------------------------------------------------------------ */

bool tn__decision_meet(tn__removal *removal, bool *mine) {
    /* [no-order] one step decides. The plan that is aborted waits for the outcome, and a reader that
     * meets TAKEN reads nothing of it. */
    uint32_t seen = TN__TRYING;
    if (tn__cas_rlx(&removal->decision, &seen, TN__ABORTED)) {
        *mine = true;
        TN__BRANCH(reader_aborts_removal);
        return true;
    }
    if (seen == TN__TAKEN)
        TN__BRANCH(reader_finds_taken);
    return seen != TN__TAKEN;
}

void tn__decision_outcome(tn__removal *removal, bool granted) {
    tn__store_rel(&removal->decision, granted ? TN__GRANTED : TN__FAILED); /* [decision] */
}

/* What a scan after the heavy fence found. */
typedef struct verdict {
    tn__removal *removal;
    bool in_use, acquiring;
} verdict;

static bool pins_one_of(tn__record *record, const tn__removal *removal) {
    if (removal->count == 0)
        return true; /* close: every record counts */
    tn__pin_view view = tn__pin_view_of(record);
    for (size_t i = 0; i < view.count; i++)
        if (tn__removal_names(removal, tn__load_rlx(&view.pins->pin[i].mat)))
            return true;
    return false;
}

static tn__scan_step visit_verdict(void *context, tn__record *record, uint64_t word) {
    verdict *v = context;
    enum tn__record_state state = tn__word_state(word);
    if (state == TN__DONE || state == TN__DETACHED || !pins_one_of(record, v->removal))
        return TN__SCAN_ON;
    /* [word] the pins read -> the word's second reading; a load alone cannot order them */
    tn__fence_acq();
    uint64_t again = tn__load_rlx(&record->pair.low);
    if (again != word) { /* it moved on: what it pins now may be something else; look again */
        v->acquiring = true;
        return TN__SCAN_ON;
    }
    if (state == TN__ACQUIRING) {
        v->acquiring = true;
        return TN__SCAN_ON;
    }
    v->in_use = true;
    TN__BRANCH(removal_sees_pin);
    return TN__SCAN_STOP;
}

static uint32_t decision(tn__removal *removal) {
    /* [decision] acquire. Pairs: release in tn__decision_outcome(). Orders: ACTIVE -> the outcome ->
     * the plan's report. Without: a plan that is told of a lease does not find it. */
    return tn__load_acq(&removal->decision);
}

/* An aborted plan waits for its reader, who is inside a section. */
static bool granted(tn__removal *removal) {
    uint32_t d;
    tn__pause pause = {0};
    while ((d = decision(removal)) == TN__ABORTED)
        tn__pause_once(&pause);
    return d == TN__GRANTED;
}

void tn__decision_withdraw(tn__removal *removal) {
    uint32_t seen = TN__TRYING;
    /* [no-order] as in tn__decision_meet() */
    if (!tn__cas_rlx(&removal->decision, &seen, TN__WITHDRAWN))
        /* its reader still owes the outcome: the descriptor must outlive that store */
        (void)granted(removal);
}

int tn__decision_settle(tn__life *life, tn__removal *removal) {
    verdict v;
    tn__pause pause = {0};
    do {
        v = (verdict){removal, false, false};
        tn__scan(life, visit_verdict, &v);
        if (v.acquiring && !v.in_use) {
            TN__BRANCH(removal_waits_for_acquiring);
            tn__pause_once(&pause);
        }
    } while (v.acquiring && !v.in_use && decision(removal) == TN__TRYING);
    uint32_t seen = TN__TRYING;
    uint32_t want = v.in_use ? TN__WITHDRAWN : TN__TAKEN;
    if (tn__cas_rlx(&removal->decision, &seen, want)) /* [no-order] as in tn__decision_meet() */
        return v.in_use ? 0 : 1;
    bool lent = granted(removal);
    if (lent)
        TN__BRANCH(removal_aborted_granted);
    else
        TN__BRANCH(removal_aborted_failed);
    return lent || v.in_use ? 0 : -1;
}

/* ---- Removal of materializations -------------------------------------------------------- */

static void set_state(tn__mat *mat, uintptr_t state) {
    /* [state] release. Pairs: acquire in acquire.c. Orders: the descriptor's fields -> the word
     * that shows it; what a plan did -> LIVE or GONE. Without: a reader looks into a descriptor
     * that is not written yet. */
    tn__store_rel(&mat->state, state);
}

static void set_states(tn__removal *removal, uintptr_t state) {
    for (size_t i = 0; i < removal->count; i++)
        set_state(removal->mats[i], state);
}

tn_status tn__in_use(const tn__life *life, const tn__mat *mat, const tn__protection *p,
                     tn_handle handle) {
    char name[TN_LOCATION_NAME_MAX];
    tn_error *e = tn__error(
        TN_ERR_IN_USE, "value %llu at %s is protected: %llu uses, %llu holds, %llu pending",
        (unsigned long long)mat->index, tn__location_text(mat->at, name),
        (unsigned long long)p->uses, (unsigned long long)p->holds, (unsigned long long)p->pending);
    e->manager = life->manager;
    e->handle = handle;
    e->at = mat->at;
    e->use_count = p->uses;
    e->hold_count = p->holds;
    e->pending_count = p->pending;
    return TN_ERR_IN_USE;
}

#define TOGETHER 64

/* The first protected materialization, in the caller's order; `certain`: one of them was in use a
 * moment ago, so at least one use is reported. */
static tn_status report_in_use(tn__life *life, tn__mat *const *mats, size_t count, bool certain) {
    for (size_t from = 0; from < count; from += TOGETHER) {
        tn__protection p[TOGETHER];
        size_t n = count - from < TOGETHER ? count - from : TOGETHER;
        tn__life_protections(life, mats + from, n, p);
        for (size_t i = 0; i < n; i++) {
            const tn__mat *mat = mats[from + i];
            if (!tn__protected(&p[i]) && certain && from + i + 1 == count)
                p[i].uses = 1;
            if (tn__protected(&p[i])) {
                tn_handle handle = {life->manager, mat->index, NULL};
                return tn__in_use(life, mat, &p[i], handle);
            }
        }
    }
    return TN_OK;
}

/* The state words point to the descriptor and the plan is decided: 1 taken, 0 in use, -1 try
 * anew. */
static tn_status decide(tn__life *life, tn__removal *removal, int *settled) {
    set_states(removal, (uintptr_t)removal);
    TN__AT(TN__POINT_TRYING, removal);
    tn_status status = tn__heavy_fence(); /* [fence] state words stored -> pins loaded */
    *settled = 0;
    TN__BRANCH(removal_decided);
    if (status == TN_OK)
        *settled = tn__decision_settle(life, removal);
    else
        tn__decision_withdraw(removal);
    if (*settled != 1)
        set_states(removal, TN__MAT_LIVE);
    return status;
}

static tn_status attempt(tn__life *life, tn__mat *const *mats, size_t count, size_t later,
                         tn__removal **out) {
    tn__removal *removal = tn__removal_new(mats, count, later);
    if (!removal)
        return tn__no_memory();
    bool perhaps;
    int settled;
    tn_status status = tn__removal_help(life, removal, &perhaps); /* settles it cheaply */
    if (status == TN_OK && perhaps)
        status = report_in_use(life, mats, count, false);
    if (status != TN_OK) {
        tn__free(removal); /* nobody has seen it */
        return status;
    }
    status = decide(life, removal, &settled);
    if (settled == 1) {
        TN__BRANCH(removal_taken);
        TN__AT(TN__POINT_TAKEN, removal);
        *out = removal;
        return TN_OK;
    }
    tn__garbage_push(life, &removal->garbage);
    if (status != TN_OK)
        return status;
    return settled == 0 ? report_in_use(life, mats, count, true) : TN_OK;
}

/* Nothing to decide: only what the plan will make itself. */
static tn_status take_none(size_t later, tn__removal **out) {
    tn__removal *removal = tn__removal_new(NULL, 0, later);
    if (!removal)
        return tn__no_memory();
    tn__store_rlx(&removal->decision, TN__TAKEN); /* [no-order] nobody has seen it */
    *out = removal;
    return TN_OK;
}

tn_status tn__removal_take(tn__life *life, tn__mat *const *mats, size_t count, size_t later,
                           tn__removal **out) {
    tn__assert_may_wait("removal");
    *out = NULL;
    if (count == 0)
        return take_none(later, out);
    tn_status status = TN_OK;
    while (status == TN_OK && !*out)
        status = attempt(life, mats, count, later, out);
    return status;
}

void tn__removal_add(tn__removal *removal, tn__mat *mat) {
    TN_ASSERT(decision(removal) == TN__TAKEN);
    mat->place = (uint32_t)removal->total;
    removal->mats[removal->total++] = mat;
    set_state(mat, (uintptr_t)removal);
}

bool tn__removal_has(const tn__removal *removal, const tn__mat *mat) {
    return mat->place < removal->total && removal->mats[mat->place] == mat;
}

void tn__removal_commit(tn__removal *removal, tn__mat *const *mats, size_t count) {
    TN_ASSERT(decision(removal) == TN__TAKEN);
    for (size_t i = 0; i < count; i++) {
        TN_ASSERT(tn__removal_has(removal, mats[i]));
        removal->mats[mats[i]->place] = NULL;
        set_state(mats[i], TN__MAT_GONE);
    }
}

void tn__removal_end(tn__life *life, tn__removal *removal) {
    for (size_t i = 0; i < removal->total; i++)
        if (removal->mats[i])
            set_state(removal->mats[i], TN__MAT_LIVE);
    tn__garbage_push(life, &removal->garbage);
}
