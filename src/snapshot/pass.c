/* SPDX-License-Identifier: MIT */
/*
 * The pass over the records. Pins of materializations outside the pinned version are left out
 * (S1): a pin is looked up by its value and location in the version and compared, never followed.
 */
#include <stdlib.h>
#include <string.h>

#include "snapshot/snapshot_priv.h"

void tn__pass_fini(tn__pass *pass) {
    tn__free(pass->mats);
    tn__free(pass->reserved);
    pass->mats = NULL;
    pass->reserved = NULL;
}

static const tn__mat *in_version(const tn__pass *pass, const tn__seen_pin *pin, tn_location at) {
    const tn__value *value = tn__version_value(pass->version, pin->index);
    const tn__mat *mat = value ? tn__value_mat(value, at) : NULL;
    return mat == pin->mat ? mat : NULL;
}

static void add_pins(tn__pass *pass, const tn__seen *seen) {
    for (size_t i = 0; i < seen->pin_count; i++) {
        const tn__mat *mat = in_version(pass, &seen->pins[i], seen->at);
        if (!mat)
            continue;
        if (pass->mat_count == pass->mat_room) {
            pass->full = true;
            return;
        }
        tn__mat_count *c = &pass->mats[pass->mat_count++];
        *c = (tn__mat_count){.mat = mat};
        c->p.uses = seen->what == TN__SEEN_LEASE;
        c->p.holds = seen->what == TN__SEEN_HOLD;
        c->p.pending = seen->what == TN__SEEN_PENDING;
    }
}

static void add_reservation(tn__pass *pass, const tn__seen *seen) {
    if (pass->reserved_count == pass->reserved_room) {
        pass->full = true;
        return;
    }
    tn__reserved *r = &pass->reserved[pass->reserved_count++];
    *r = (tn__reserved){
        .at = seen->at, .bytes = seen->bytes, .admitted = seen->admitted, .tie = seen->tie};
    memcpy(r->label, seen->label, sizeof r->label);
}

static bool each(void *context, const tn__seen *seen) {
    tn__pass *pass = context;
    pass->totals.active_leases += seen->what == TN__SEEN_LEASE;
    pass->totals.pending_leases += seen->what == TN__SEEN_PENDING;
    pass->totals.holds += seen->what == TN__SEEN_HOLD;
    pass->totals.reservations += seen->what == TN__SEEN_RESERVATION;
    if (seen->what == TN__SEEN_RESERVATION)
        add_reservation(pass, seen);
    else
        add_pins(pass, seen);
    return !pass->full;
}

static bool grow(tn__pass *pass) {
    if (pass->mat_count == pass->mat_room) {
        size_t room = pass->mat_room ? pass->mat_room * 2 : 32;
        tn__free(pass->mats);
        pass->mat_room = 0;
        pass->mats = tn__alloc(room * sizeof *pass->mats);
        if (!pass->mats)
            return false;
        pass->mat_room = room;
    }
    if (pass->reserved_count == pass->reserved_room) {
        size_t room = pass->reserved_room ? pass->reserved_room * 2 : 4;
        tn__free(pass->reserved);
        pass->reserved_room = 0;
        pass->reserved = tn__alloc(room * sizeof *pass->reserved);
        if (!pass->reserved)
            return false;
        pass->reserved_room = room;
    }
    return true;
}

static int by_mat(const void *a, const void *b) {
    uintptr_t x = (uintptr_t)((const tn__mat_count *)a)->mat,
              y = (uintptr_t)((const tn__mat_count *)b)->mat;
    return (x > y) - (x < y);
}

static int by_admission(const void *a, const void *b) {
    const tn__reserved *x = a, *y = b;
    if (x->admitted != y->admitted)
        return x->admitted < y->admitted ? -1 : 1;
    return (x->tie > y->tie) - (x->tie < y->tie);
}

static void merge(tn__pass *pass) {
    if (pass->mat_count == 0)
        return;
    qsort(pass->mats, pass->mat_count, sizeof *pass->mats, by_mat);
    size_t kept = 0;
    for (size_t i = 1; i < pass->mat_count; i++) {
        tn__mat_count *to = &pass->mats[kept], *from = &pass->mats[i];
        if (to->mat == from->mat) {
            to->p.uses += from->p.uses;
            to->p.holds += from->p.holds;
            to->p.pending += from->p.pending;
        } else {
            pass->mats[++kept] = *from;
        }
    }
    pass->mat_count = kept + 1;
}

tn_status tn__pass_run(tn__life *life, tn__pass *pass) {
    bool whole;
    do {
        if (pass->full && !grow(pass))
            return tn__no_memory();
        pass->full = false;
        pass->mat_count = pass->reserved_count = 0;
        pass->totals = (tn__totals){0, 0, 0, 0};
        whole = tn__life_walk(life, each, pass);
        if (!whole && !pass->full)
            return tn__no_memory();
    } while (!whole);
    merge(pass);
    if (pass->reserved_count)
        qsort(pass->reserved, pass->reserved_count, sizeof *pass->reserved, by_admission);
    return TN_OK;
}

tn__protection tn__pass_protection(const tn__pass *pass, const tn__mat *mat) {
    tn__mat_count key = {.mat = mat}, *found = NULL;
    if (pass->mat_count)
        found = bsearch(&key, pass->mats, pass->mat_count, sizeof key, by_mat);
    return found ? found->p : (tn__protection){0, 0, 0};
}
