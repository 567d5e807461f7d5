/* SPDX-License-Identifier: MIT */
/*
 * The state version: placement number + the sum over all slots of floor(c / 2).
 */
#include "lifetime/lifetime_priv.h"

uint64_t tn__state_version(tn__store *store, tn__life *life) {
    uint64_t number, again, sum;
    bool stable;
    int tries = 0;
    do {
        tn__rcu_lock();
        number = tn__store_current(store)->number;
        sum = tn__life_count(life, &stable);
        again = tn__store_current(store)->number;
        tn__rcu_unlock();
    } while ((number != again || !stable) && ++tries < 64);
    return again + sum;
}

/* An odd counter may stand for an effect that is decided and not yet counted; its thread is in the
 * middle of a finite step. All parts only grow, so a sum that equals an earlier one has equal
 * parts. */
static uint64_t settled(tn__slot *slot) {
    uint64_t c;
    tn__pause pause = {0};
    while ((c = tn__load_acq(&slot->counter)) & 1) /* [count] */
        tn__pause_once(&pause);
    return c / 2;
}

uint64_t tn__state_version_settled(tn__store *store, tn__life *life) {
    uint64_t sum = 0;
    tn__assert_may_wait("stale check");
    for (tn__slot *slot = tn__load_acq(&life->slots); slot; slot = slot->next) /* [slots] */
        sum += settled(slot);
    tn__rcu_lock();
    sum += tn__store_current(store)->number;
    tn__rcu_unlock();
    return sum;
}

tn_status tn__stale(uint64_t manager, uint64_t expected, uint64_t actual) {
    tn_error *e = tn__error(TN_ERR_STALE, "the state version is %llu, %llu was expected",
                            (unsigned long long)actual, (unsigned long long)expected);
    e->manager = manager;
    e->expected = expected;
    e->actual = actual;
    return TN_ERR_STALE;
}
