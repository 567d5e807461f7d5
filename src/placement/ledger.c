/* SPDX-License-Identifier: MIT */
/*
 * The bytes of a location: {total, claimed} in two adjacent words, changed by one CAS.
 *
 * B1 holds at every instant because nothing is ever added and then undone: a sum that does not fit
 * is refused before the CAS, on one load of `total`, which is a true reading of some instant. The
 * two halves are loaded separately; a torn pair makes the CAS fail.
 */
#include "placement/placement_priv.h"

static uint64_t limit_of(const tn__ledger *l) {
    return l->budget < (uint64_t)INT64_MAX ? l->budget : (uint64_t)INT64_MAX;
}

/* [no-order] the caller's publish (release) or record word (release) follows and orders the peak
 * before whatever it makes visible; who sees a sum above the peak otherwise clamps it (peaks are
 * read last). */
static void raise_peak(tn__ledger *l, uint64_t charged) {
    uint64_t peak = tn__load_rlx(&l->peak_charged);
    while (peak < charged && !tn__cas_rlx(&l->peak_charged, &peak, charged))
        ;
}

/* Add to both words, modulo 2^64 (negative amounts wrap); `fit`: only if the new total is within
 * the limit. Raises the peak when the charged bytes, total - claimed, grow. */
static bool change(tn__ledger *l, uint64_t add_total, uint64_t add_claimed, bool fit) {
    uint64_t total, claimed;
    do {
        total = tn__load_rlx(&l->word.low);
        claimed = tn__load_rlx(&l->word.high);
        if (fit && (add_total > limit_of(l) || total > limit_of(l) - add_total))
            return false;
        /* [ledger-word] acq_rel. Pairs: itself on other threads. Orders: the publish or record
         * store that gives bytes up -> this CAS -> the charge that takes them -> its own publish or
         * record store. Without: someone sees both owners' bytes in versions and records, a sum
         * above the budget. */
    } while (
        !tn__pair_cas_acq_rel(&l->word, total, claimed, total + add_total, claimed + add_claimed));
    TN_ASSERT(total + add_total <= limit_of(l));           /* B1; also: not below 0 */
    TN_ASSERT(claimed + add_claimed <= total + add_total); /* B2 */
    if ((int64_t)(add_total - add_claimed) > 0)
        raise_peak(l, total + add_total - (claimed + add_claimed));
    return true;
}

bool tn__ledger_charge(tn__ledger *l, uint64_t bytes) {
    return bytes == 0 || change(l, bytes, 0, true);
}

void tn__ledger_uncharge(tn__ledger *l, uint64_t bytes) {
    if (bytes)
        change(l, 0 - bytes, 0, false);
}

bool tn__ledger_claim(tn__ledger *l, uint64_t bytes) {
    return bytes == 0 || change(l, bytes, bytes, true);
}

void tn__ledger_unclaim(tn__ledger *l, uint64_t bytes) {
    if (bytes)
        change(l, 0 - bytes, 0 - bytes, false);
}

void tn__ledger_settle(tn__ledger *l, uint64_t bytes) {
    if (bytes)
        change(l, 0, 0 - bytes, false);
}

void tn__ledger_reclaim(tn__ledger *l, uint64_t bytes) {
    if (bytes)
        change(l, 0, bytes, false);
}

/* A CAS that changes nothing proves that both halves were read at one instant; so it writes, and
 * const is cast away. */
void tn__ledger_read(const tn__ledger *l, uint64_t *total, uint64_t *claimed) {
    tn__pair *word = &((tn__ledger *)l)->word;
    do {
        *total = tn__load_rlx(&word->low);
        *claimed = tn__load_rlx(&word->high);
        /* [no-order] figures of one moment. Whoever builds on them claims (change()), or is checked
         * under the lock against the version and the records that were read with them. */
    } while (!tn__pair_cas_rlx(word, *total, *claimed, *total, *claimed));
}
