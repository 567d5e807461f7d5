/* SPDX-License-Identifier: MIT */
#include "lru.h"

void lru_remove(struct lru *lru, struct item *item, enum tier tier) {
    struct item *older = item->older[tier];
    struct item *newer = item->newer[tier];

    if (!item->listed[tier]) {
        return;
    }
    *(older != NULL ? &older->newer[tier] : &lru->oldest) = newer;
    *(newer != NULL ? &newer->older[tier] : &lru->newest) = older;
    item->older[tier] = item->newer[tier] = NULL;
    item->listed[tier] = false;
    lru->count--;
}

void lru_put(struct lru *lru, struct item *item, enum tier tier) {
    struct item *newest = NULL;

    if (lru->newest == item) {
        return;
    }
    lru_remove(lru, item, tier);
    newest = lru->newest;
    item->older[tier] = newest;
    *(newest != NULL ? &newest->newer[tier] : &lru->oldest) = item;
    lru->newest = item;
    item->listed[tier] = true;
    lru->count++;
}

struct item *lru_unused(const struct lru *lru, enum tier tier) {
    struct item *item = lru->oldest;

    while (item != NULL && item->users > 0) {
        item = item->newer[tier];
    }
    return item;
}
