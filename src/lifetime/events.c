/* SPDX-License-Identifier: MIT */
/*
 * Event pools: per slot and context. The owner takes; whoever ends a lease gives back by pushing;
 * the owner takes all that was pushed at once, so a push meets no ABA. Native events are
 * destroyed with the manager only.
 */
#include "lifetime/lifetime_priv.h"

static tn__pool *pool_for(tn__slot *slot, const tn_stream_info *info) {
    for (tn__pool *pool = slot->pools; pool; pool = pool->next)
        if (pool->context == info->context && pool->device == info->device)
            return pool;
    tn__pool *pool = tn__zalloc(sizeof *pool);
    if (!pool)
        return NULL;
    pool->device = info->device;
    pool->context = info->context;
    pool->next = slot->pools;
    slot->pools = pool;
    return pool;
}

static tn_status make(tn__life *life, tn__pool *pool, tn__event **out) {
    tn__event *event = tn__zalloc(sizeof *event);
    if (!event)
        return tn__no_memory();
    tn_status status = tn__event_create(life->driver, pool->device, pool->context, &event->native);
    if (status != TN_OK) {
        tn__free(event);
        return status;
    }
    event->home = pool;
    event->all_next = pool->all;
    pool->all = event;
    *out = event;
    return TN_OK;
}

tn_status tn__event_take(tn__life *life, const tn_stream_info *info, tn__event **out) {
    tn__thread *thread;
    tn_status status = tn__life_thread(life, &thread);
    if (status != TN_OK)
        return status;
    tn__pool *pool = pool_for(tn__life_own_slot(life, thread), info);
    if (!pool)
        return tn__no_memory();
    if (!pool->local) {
        /* [event-return] acquire. Pairs: release in tn__event_give(). Orders: the giver's last
         * use -> our recording. Without: an event is recorded anew while its old lease is still
         * being queried by the giver. */
        pool->local = tn__swap_acq(&pool->returned, NULL);
    }
    if (!pool->local)
        return make(life, pool, out);
    *out = pool->local;
    pool->local = pool->local->next;
    return TN_OK;
}

void tn__event_give(tn__event *event) {
    tn__pool *home = event->home;
    tn__event *head = tn__load_rlx(&home->returned);
    do
        event->next = head;
    while (!tn__cas_rel(&home->returned, &head, event)); /* [event-return] */
}

tn_event tn__event_native(const tn__event *event) { return event->native; }

void tn__pools_destroy(tn__life *life, tn__slot *slot) {
    tn__pool *pool = slot->pools;
    while (pool) {
        tn__pool *next = pool->next;
        tn__event *event = pool->all;
        while (event) {
            tn__event *older = event->all_next;
            (void)tn__event_destroy(life->driver, event->native);
            tn__free(event);
            event = older;
        }
        tn__free(pool);
        pool = next;
    }
    slot->pools = NULL;
}
