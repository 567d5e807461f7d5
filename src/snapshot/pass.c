/* SPDX-License-Identifier: MIT */
/*
 * The pass over the records. Pins of materializations outside the pinned version are left out
 * (S1): a pin is looked up by its value and location in the version and compared, never followed.
 */
#include <stdlib.h>
#include <string.h>

#include "snapshot/snapshot_priv.h"

#define MAT_ROOM_MIN 32u
#define RESERVED_ROOM_MIN 4u

void tn__pass_fini(tn__pass *pass) {
    tn__free(pass->mats);
    tn__free(pass->reserved);
    pass->mats = NULL;
    pass->reserved = NULL;
}

/* ---- Protections by materialization ----------------------------------------------------- */

/* Where its entry is, or would be: an empty one. At most half of the entries are taken. */
static tn__mat_count *entry_of(const tn__pass *pass, const tn__mat *mat) {
    size_t mask = pass->mat_room - 1;
    /* Fibonacci hashing: the upper bits of the product depend on all bits of the address. */
    size_t i = (size_t)(((uint64_t)(uintptr_t)mat * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & mask;
    while (pass->mats[i].mat && pass->mats[i].mat != mat)
        i = (i + 1) & mask;
    return &pass->mats[i];
}

static bool grow_mats(tn__pass *pass) {
    tn__mat_count *old = pass->mats;
    size_t old_room = pass->mat_room, room = old_room ? old_room * 2 : MAT_ROOM_MIN;
    tn__mat_count *mats = tn__zalloc(room * sizeof *mats);
    if (!mats)
        return false;
    pass->mats = mats;
    pass->mat_room = room;
    for (size_t i = 0; i < old_room; i++)
        if (old[i].mat)
            *entry_of(pass, old[i].mat) = old[i];
    tn__free(old);
    return true;
}

/* The pin's materialization, if the pinned version has it: then it may be followed. */
static const tn__mat *in_version(const tn__pass *pass, const tn__seen_pin *pin, tn_location at) {
    const tn__value *value = tn__version_value(pass->version, pin->index);
    const tn__mat *mat = value ? tn__value_mat(value, at) : NULL;
    return mat == pin->mat ? mat : NULL;
}

/* The pin's entry. *outside: the version does not have it. NULL without: no memory. What has an
 * entry is in the version, so its value and location tell without another look there. */
static tn__mat_count *entry_of_pin(tn__pass *pass, const tn__seen_pin *pin, tn_location at,
                                   bool *outside) {
    tn__mat_count *c = pass->mat_room ? entry_of(pass, pin->mat) : NULL;
    if (c && c->mat) {
        *outside = c->mat->index != pin->index || !tn__location_same(c->mat->at, at);
        return c;
    }
    const tn__mat *mat = in_version(pass, pin, at);
    *outside = mat == NULL;
    if (*outside)
        return NULL;
    if (pass->mat_count * 2 >= pass->mat_room) {
        if (!grow_mats(pass))
            return NULL;
        c = entry_of(pass, mat);
    }
    pass->mat_count++;
    c->mat = mat;
    return c;
}

static bool add_pins(tn__pass *pass, const tn__seen *seen) {
    for (size_t i = 0; i < seen->pin_count; i++) {
        bool outside = false;
        tn__mat_count *c = entry_of_pin(pass, &seen->pins[i], seen->at, &outside);
        if (outside)
            continue;
        if (!c)
            return false;
        c->p.uses += seen->what == TN__SEEN_LEASE;
        c->p.holds += seen->what == TN__SEEN_HOLD;
        c->p.pending += seen->what == TN__SEEN_PENDING;
    }
    return true;
}

tn__protection tn__pass_protection(const tn__pass *pass, const tn__mat *mat) {
    return pass->mat_count ? entry_of(pass, mat)->p : (tn__protection){0, 0, 0};
}

/* ---- Reservations ----------------------------------------------------------------------- */

static bool grow_reserved(tn__pass *pass) {
    size_t room = pass->reserved_room ? pass->reserved_room * 2 : RESERVED_ROOM_MIN;
    tn__reserved *reserved = tn__alloc(room * sizeof *reserved);
    if (!reserved)
        return false;
    if (pass->reserved)
        memcpy(reserved, pass->reserved, pass->reserved_count * sizeof *reserved);
    tn__free(pass->reserved);
    pass->reserved = reserved;
    pass->reserved_room = room;
    return true;
}

static bool add_reservation(tn__pass *pass, const tn__seen *seen) {
    if (pass->reserved_count == pass->reserved_room && !grow_reserved(pass))
        return false;
    tn__reserved *r = &pass->reserved[pass->reserved_count++];
    *r = (tn__reserved){
        .at = seen->at, .bytes = seen->bytes, .admitted = seen->admitted, .tie = seen->tie};
    memcpy(r->label, seen->label, sizeof r->label);
    return true;
}

static int by_admission(const void *a, const void *b) {
    const tn__reserved *x = a, *y = b;
    if (x->admitted != y->admitted)
        return x->admitted < y->admitted ? -1 : 1;
    return (x->tie > y->tie) - (x->tie < y->tie);
}

/* ---- The pass --------------------------------------------------------------------------- */

/* False: no memory. */
static bool each(void *context, const tn__seen *seen) {
    tn__pass *pass = context;
    pass->totals.active_leases += seen->what == TN__SEEN_LEASE;
    pass->totals.pending_leases += seen->what == TN__SEEN_PENDING;
    pass->totals.holds += seen->what == TN__SEEN_HOLD;
    pass->totals.reservations += seen->what == TN__SEEN_RESERVATION;
    return seen->what == TN__SEEN_RESERVATION ? add_reservation(pass, seen) : add_pins(pass, seen);
}

tn_status tn__pass_run(tn__life *life, tn__pass *pass) {
    if (pass->mat_count)
        memset(pass->mats, 0, pass->mat_room * sizeof *pass->mats);
    pass->mat_count = pass->reserved_count = 0;
    pass->totals = (tn__totals){0, 0, 0, 0};
    if (!tn__life_walk(life, each, pass))
        return tn__no_memory();
    if (pass->reserved_count)
        qsort(pass->reserved, pass->reserved_count, sizeof *pass->reserved, by_admission);
    return TN_OK;
}
