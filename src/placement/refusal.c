/* SPDX-License-Identifier: MIT */
#include "placement/placement_internal.h"

tn_status tn__store_refuse(tn__store *s, tn_location at, uint64_t bytes) {
    char name[TN_LOCATION_NAME_MAX];
    const tn__ledger *ledger = tn__store_ledger(s, at);
    uint64_t total, claimed, used = 0;
    tn__ledger_read(ledger, &total, &claimed);
    tn__rcu_lock();
    const tn__place *place = tn__version_place(tn__store_current(s), at);
    if (place)
        used = place->used_bytes;
    tn__rcu_unlock();
    tn_error *e = tn__error(TN_ERR_BUDGET, "%llu bytes do not fit at %s", (unsigned long long)bytes,
                            tn__location_text(at, name));
    e->manager = s->manager;
    e->reason = TN_REASON_BUDGET;
    e->at = at;
    e->budget_bytes = ledger->budget;
    e->used_bytes = used;
    e->claimed_bytes = claimed;
    e->reserved_bytes = total - claimed > used ? total - claimed - used : 0;
    e->requested_bytes = bytes;
    return TN_ERR_BUDGET;
}
