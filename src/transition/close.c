/* SPDX-License-Identifier: MIT */
/*
 * Close (M236..M241): wait for pending leases without excluding anybody (D4), keep new plans out,
 * close the lifetimes, then release everything that the last version had.
 */
#include "transition/transition_priv.h"

/* Forced: every tracked device (M241). */
static tn_status synchronize_devices(void *context) {
    tn__trans *t = context;
    const tn_version *v = tn__store_pin(t->store);
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < v->table->count && status == TN_OK; i++)
        if (v->table->places[i].at.kind == TN_LOCATION_CUDA)
            status = tn__device_synchronize(t->driver, v->table->places[i].at.index);
    tn__store_unpin(t->store, v);
    return status;
}

/* The same where no error may come out: what cannot be synchronised may still be read, so its
 * storage is kept (M148). */
static tn_status synchronize_or_keep(void *context) {
    tn__trans *t = context;
    tn_status status = synchronize_devices(t);
    if (status != TN_OK) {
        tn__life_keep_storage(t->life);
        tn__life_warn(t->life, TN_DIAGNOSTIC_CLEANUP, status, tn_location_none(),
                      "a device could not be synchronised: the storage is kept");
    }
    return TN_OK;
}

/* What the last version had: nobody can use it any longer. */
static void release_values(tn__trans *t, const tn_version *v) {
    bool keep = tn__life_keeps_storage(t->life);
    for (const tn__value *value = tn__version_next(v, 0); value;
         value = tn__version_next(v, value->index + 1)) {
        for (uint32_t i = 0; i < value->mat_count; i++) {
            tn__mat *mat = value->mats[i];
            tn__ledger_uncharge(tn__store_ledger(t->store, mat->at), mat->charged_bytes);
            if (!keep)
                tn_payload_destroy(mat->payload);
        }
        if (value->source)
            tn__source_destroy(value->source);
    }
}

/* Publish a version without values. If there is no memory for it, the old one stays: nobody can
 * ask for it. */
static void publish_empty(tn__trans *t) {
    tn__build b;
    tn_error kept = *tn__error_current();
    if (tn__build_begin(t->store, &b) != TN_OK) {
        tn__error_restore(&kept);
        return;
    }
    if (tn__build_clear(&b, NULL, NULL) == TN_OK) {
        tn__store_publish(&b);
    } else {
        tn__build_abort(&b);
        tn__error_restore(&kept);
    }
}

enum how { PLAIN, FORCED, DESTROYED };

static tn_status shut(tn__trans *t, enum how how) {
    if (how == PLAIN)
        return tn__life_close(t->life);
    return tn__life_close_force(t->life, how == FORCED ? synchronize_devices : synchronize_or_keep,
                                t);
}

static tn_status close(tn__trans *t, tn__thread *thread, enum how how) {
    tn__ticket ticket = {.exclusive = true};
    tn__judge by = {NULL, NULL, NULL, false};
    tn_status status = tn__flow_admit(t, thread, &ticket, &by);
    if (status == TN_ERR_CLOSED)
        return TN_OK; /* by another thread meanwhile */
    if (status != TN_OK)
        return status;
    tn__unlock(&t->store->lock);
    status = shut(t, how);
    const tn_version *last = status == TN_OK ? tn__store_pin(t->store) : NULL;
    tn__lock(&t->store->lock);
    if (last)
        publish_empty(t);
    tn__flow_leave(t, &ticket);
    tn__unlock(&t->store->lock);
    if (last) {
        release_values(t, last);
        tn__store_unpin(t->store, last);
        tn__life_wake(t->life);
    }
    return status;
}

tn_status tn__trans_close(tn__trans *t, tn__thread *thread, bool wait, bool force) {
    tn_status status = tn__life_enter(t->life, thread, true);
    if (status != TN_OK || tn__life_closed(t->life))
        return status;
    tn__frame frame;
    tn__frame_push(thread, &frame, t->manager, false);
    status = wait ? tn__life_wait_pending(t->life) : tn__life_reap_now(t->life);
    if (status == TN_OK)
        status = close(t, thread, force ? FORCED : PLAIN);
    tn__frame_pop(thread, &frame);
    return status;
}

tn_status tn__trans_close_for_destroy(tn__trans *t, tn__thread *thread) {
    tn__frame frame;
    tn__frame_push(thread, &frame, t->manager, false);
    if (tn__life_wait_pending(t->life) != TN_OK)
        tn__life_keep_storage(t->life);
    tn_status status = close(t, thread, DESTROYED);
    tn__frame_pop(thread, &frame);
    return status;
}
