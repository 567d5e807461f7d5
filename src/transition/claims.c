/* SPDX-License-Identifier: MIT */
/*
 * The bytes that a plan in flight has claimed, per location: at admission what its steps need at
 * most; after each step what the rest of them still needs. Bytes that a step frees stay claimed
 * for the rest, so nobody else can take them in between. All under store->lock.
 *
 * B2: a byte is in exactly one place: in claims->needs, in the need of the step that runs, in the
 * charge of what it made, or given back.
 */
#include "transition/transition_priv.h"

void tn__claims_fill(tn__claims *claims, const tn__sim *sim) {
    claims->sim = sim;
    claims->touch = 0;
    claims->step = 0;
    for (size_t i = 0; i < sim->place_count; i++)
        claims->needs[i] = (tn__need){.ledger = sim->places[i].ledger,
                                      .at = sim->places[i].at,
                                      .bytes = sim->places[i].need,
                                      .frees = sim->places[i].frees};
}

static tn__need *need_of(tn__claims *claims, const tn__ledger *ledger) {
    for (size_t i = 0; i < claims->sim->place_count; i++)
        if (claims->needs[i].ledger == ledger)
            return &claims->needs[i];
    return NULL;
}

void tn__claims_lend(tn__claims *claims, tn__need *need, tn_location at, uint64_t bytes) {
    tn__need *from = need_of(claims, need->ledger);
    TN_ASSERT(from && from->claimed && from->bytes >= bytes);
    from->bytes -= bytes;
    from->held = true; /* it may come back */
    *need = (tn__need){.ledger = from->ledger, .at = at, .bytes = bytes, .claimed = true};
}

void tn__claims_return(tn__claims *claims, tn__ledger *ledger, uint64_t bytes) {
    tn__need *to = need_of(claims, ledger);
    TN_ASSERT(to && to->claimed);
    to->bytes += bytes;
}

static void keep(tn__need *need, const tn__touch *touch) {
    TN_ASSERT(need->bytes >= touch->need_after);
    tn__ledger_unclaim(need->ledger, need->bytes - touch->need_after);
    need->bytes = touch->need_after;
    need->held = need->bytes > 0;
    need->frees = touch->frees_after;
}

void tn__claims_step(tn__claims *claims) {
    const tn__sim *sim = claims->sim;
    while (claims->touch < sim->touch_count && sim->touches[claims->touch].step == claims->step) {
        const tn__touch *touch = &sim->touches[claims->touch++];
        const tn__touch *next = touch + 1;
        bool again = claims->touch < sim->touch_count && next->step == claims->step &&
                     next->place == touch->place;
        if (!again)
            keep(&claims->needs[touch->place], touch);
    }
    claims->step++;
}
