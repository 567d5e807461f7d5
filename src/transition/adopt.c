/* SPDX-License-Identifier: MIT */
/*
 * Adopt and source registration: transitions without a perform step and without a report (M62).
 */
#include "transition/transition_priv.h"

typedef struct adoption {
    tn__trans *t;
    tn__thread *thread;
    tn_payload payload;
    tn_location at;
    uint32_t replica_mode;
    const tn_reservation *reservation; /* NULL: bytes of its own */
    tn__measured measured;
    tn_value_spec spec;
    tn__mat *mat;
    tn__ticket ticket;
    tn__need need;
    tn_handle handle;
} adoption;

/* A location that is given is checked before the payload is measured; otherwise it is inferred
 * (M56, M57). */
static tn_status locate(adoption *a) {
    tn_status status = TN_OK;
    bool given = a->at.kind != TN_LOCATION_NONE;
    if (given)
        status = tn__driver_check_location(a->t->driver, a->at, &a->at);
    if (status == TN_OK)
        status = tn__measure(a->payload, &a->measured);
    if (status != TN_OK || given)
        return status;
    a->at = a->measured.at;
    if (a->at.kind == TN_LOCATION_NONE)
        return tn__fail(TN_ERR_MATERIALIZATION, "the payload mixes pinned and pageable fields");
    return tn__driver_check_location(a->t->driver, a->at, &a->at);
}

/* M56 up to admission. */
static tn_status check(adoption *a) {
    tn_status status = locate(a);
    if (status == TN_OK)
        status = tn__check_agreement(&a->measured, a->at);
    if (status == TN_OK && a->replica_mode > TN_REPLICABLE)
        status =
            tn__fail(TN_ERR_KIND, "replica mode %u is out of range", (unsigned)a->replica_mode);
    if (status != TN_OK)
        return status;
    uint64_t charge = a->measured.logical_bytes > a->measured.storage_bytes
                          ? a->measured.logical_bytes
                          : a->measured.storage_bytes;
    a->spec = (tn_value_spec){.size = sizeof a->spec, /* M37 */
                              .type = a->payload.type,
                              .logical_bytes = a->measured.logical_bytes,
                              .storage_bytes = charge,
                              .replica_mode = a->replica_mode,
                              .recoverability = TN_MUST_PRESERVE};
    return tn__mat_create(a->payload, a->at, &a->measured, charge, &a->mat);
}

static enum tn__judgement judge(void *context, tn_status *status) {
    adoption *a = context;
    (void)status;
    a->need = (tn__need){.ledger = a->reservation ? NULL : tn__store_ledger(a->t->store, a->at),
                         .at = a->at,
                         .bytes = a->spec.storage_bytes};
    return TN__JUDGE_GO;
}

static tn_status build(adoption *a, tn__build *b) {
    uint64_t index = 0;
    tn_status status = tn__build_track(b, a->at);
    if (status == TN_OK)
        status = tn__build_add_value(b, &a->spec, NULL, tn_location_none(), &index);
    if (status == TN_OK)
        status = tn__build_install(b, index, a->mat);
    a->handle = (tn_handle){a->t->manager, index, a->payload.type};
    return status;
}

/* Under the lock: what can fail, then what cannot. Admission was reported before an alias is
 * (M56). */
static tn_status install(adoption *a) {
    tn__store *store = a->t->store;
    tn__build b;
    tn_status status = tn__build_begin(store, &b);
    if (status != TN_OK)
        return status;
    bool owned = false;
    status = build(a, &b);
    if (status == TN_OK && a->reservation)
        status = tn__life_take_check(a->t->life, a->reservation, a->at, a->spec.storage_bytes);
    if (status == TN_OK) {
        status = tn__owners_claim(store, a->mat->storages, a->mat->storage_count, a->handle, a->at);
        owned = status == TN_OK;
    }
    if (status == TN_OK && a->reservation)
        status = tn__life_take_begin(a->t->life, a->reservation, a->at, a->spec.storage_bytes);
    if (status != TN_OK) {
        if (owned)
            tn__owners_release(store, a->mat->storages, a->mat->storage_count);
        tn__build_abort(&b);
        return status;
    }
    if (!a->reservation)
        tn__need_settle(&a->need);
    a->mat = NULL; /* published below */
    tn__store_publish(&b);
    if (a->reservation)
        tn__life_take_end(a->t->life);
    return TN_OK;
}

static tn_status adopt(adoption *a) {
    tn_status status = check(a);
    if (status != TN_OK)
        return status;
    tn__judge by = {judge, NULL, a, false};
    a->ticket.needs = &a->need;
    a->ticket.need_count = 1;
    status = tn__flow_admit(a->t, a->thread, &a->ticket, &by);
    if (status != TN_OK)
        return status;
    status = install(a);
    tn__flow_leave(a->t, &a->ticket);
    tn__unlock(&a->t->store->lock);
    if (status == TN_OK)
        tn__life_wake(a->t->life);
    return status;
}

tn_status tn__trans_adopt(tn__trans *t, tn__thread *thread, tn_payload payload, tn_location at,
                          uint32_t replica_mode, const tn_reservation *reservation,
                          tn_handle *out) {
    tn_status status = tn__life_enter(t->life, thread, false);
    if (status == TN_OK)
        status = tn__life_reap_manual(t->life);
    if (status != TN_OK)
        return status;
    adoption a = {.t = t,
                  .thread = thread,
                  .payload = payload,
                  .at = at,
                  .replica_mode = replica_mode,
                  .reservation = reservation};
    tn__frame frame;
    tn__frame_push(thread, &frame, t->manager, false);
    status = adopt(&a);
    tn__frame_pop(thread, &frame);
    if (a.mat)
        tn__mat_discard(a.mat);
    tn__measured_fini(&a.measured);
    if (status == TN_OK)
        *out = a.handle;
    else
        tn__verdict_here(t->manager, t->store, t->life);
    return status;
}

/* ---- Sources ---------------------------------------------------------------------------- */

static tn_status register_locked(tn__trans *t, const tn_value_spec *spec, tn__source *source,
                                 tn_location at, tn_handle *out) {
    tn__build b;
    uint64_t index = 0;
    tn_status status = tn__build_begin(t->store, &b);
    if (status != TN_OK)
        return status;
    status = tn__build_track(&b, at);
    if (status == TN_OK)
        status = tn__build_add_value(&b, spec, source, at, &index);
    if (status != TN_OK) {
        tn__build_abort(&b);
        return status;
    }
    tn__build_count(&b, 1);
    tn__store_publish(&b);
    *out = (tn_handle){t->manager, index, spec->type};
    return TN_OK;
}

static tn_status admit_source(tn__trans *t, tn__thread *thread, const tn_value_spec *spec,
                              tn__source *source, tn_location at, tn_handle *out) {
    tn__ticket ticket = {.needs = NULL};
    tn__judge by = {NULL, NULL, NULL, false};
    tn_status status = tn__flow_admit(t, thread, &ticket, &by);
    if (status != TN_OK)
        return status;
    status = register_locked(t, spec, source, at, out);
    tn__flow_leave(t, &ticket);
    tn__unlock(&t->store->lock);
    return status;
}

static tn_status register_source(tn__trans *t, tn__thread *thread, const tn_value_spec *spec,
                                 const tn_source *source, tn_location at, tn_handle *out) {
    tn__source *made;
    tn_status status = tn__driver_check_location(t->driver, at, &at);
    if (status == TN_OK && spec->recoverability != TN_RECONSTRUCTIBLE)
        status = tn__fail(TN_ERR_VALUE, "a value with a source must be reconstructible");
    if (status == TN_OK)
        status = tn__source_create(source, spec, &made);
    if (status != TN_OK)
        return status;
    status = admit_source(t, thread, spec, made, at, out);
    if (status == TN_OK)
        tn__life_wake(t->life);
    else
        tn__source_abandon(made);
    return status;
}

tn_status tn__trans_register(tn__trans *t, tn__thread *thread, const tn_value_spec *spec,
                             const tn_source *source, tn_location at, tn_handle *out) {
    tn_status status = tn__life_enter(t->life, thread, false);
    if (status == TN_OK)
        status = tn__life_reap_manual(t->life);
    if (status != TN_OK)
        return status;
    tn__frame frame;
    tn__frame_push(thread, &frame, t->manager, false);
    status = register_source(t, thread, spec, source, at, out);
    tn__frame_pop(thread, &frame);
    return status;
}
