/* SPDX-License-Identifier: MIT */
/*
 * Entry and exit of a use.
 *
 * A hit takes leases and reservations and nothing else: no lock, no allocation, no shared line but
 * the admission words of its reservations. Everything else is a miss: decide, enter the scope,
 * borrow. Bound to placement (D13), a miss borrows while its plan is still in flight, so nothing
 * can be removed between making it and borrowing it.
 *
 * Stamps (D14): bound to the version, an access is stamped at once from the controller's counter.
 * Bound to placement, the use keeps the clock's stamp for itself, and a decision collects it.
 */
#include "controller/use_priv.h"

/* ---- Leases ----------------------------------------------------------------------------- */

static tn_status acquire(tn_use *use, size_t k) {
    const tn_request *r = use->request;
    const tn_controller *c = use->controller;
    tn_location at = r->locations[k];
    tn_stream_info info = {0, 0, 0};
    tn_status status = TN_OK;
    if (at.kind == TN_LOCATION_CUDA)
        status = tn__driver_check_stream(c->of.driver, use->consumers[k], at.index, &info);
    if (status != TN_OK)
        return status;
    return tn__life_acquire(c->of.life, use->handles + r->first[k], r->first[k + 1] - r->first[k],
                            at, use->consumers[k], &info, &use->leases[k]);
}

static tn_status acquire_all(void *context) {
    tn_use *use = context;
    tn_status status = TN_OK;
    while (status == TN_OK && use->lease_count < use->request->location_count) {
        status = acquire(use, use->lease_count);
        use->lease_count += status == TN_OK;
    }
    return status;
}

/* The first error is kept, the rest is done (C143). */
typedef struct first_error {
    tn_status status;
    tn_error error; /* only with a status: large, and not touched on the way of success */
} first_error;

static TN__COLD void keep_first(first_error *first, tn_status status) {
    if (first->status != TN_OK)
        return;
    first->status = status;
    first->error = *tn__error_current();
}

/* In reverse order. False: refused inside or during a source callback; what is left is still the
 * use's, and what has ended ends only once. What fails otherwise is passed over, and stays with the
 * use until it is forgotten. */
static bool release_all(tn_use *use, first_error *first) {
    tn_status status = TN_OK;
    if (use->hot_ready && use->hit && tn__hot_end(&use->hot, use->leases, use->reservations)) {
        use->lease_count = use->reserved = 0;
        return true;
    }
    for (size_t i = use->lease_count; i-- > 0 && status != TN_ERR_REENTRANCY;)
        if ((status = tn__lease_release(&use->leases[i], false)) != TN_OK)
            keep_first(first, status);
    for (size_t i = use->reserved; i-- > 0 && status != TN_ERR_REENTRANCY;) {
        const tn_reservation *r = &use->reservations[i];
        if ((status = tn__record_release(r->record, r->generation)) != TN_OK)
            keep_first(first, status);
    }
    if (first->status == TN_OK)
        use->lease_count = use->reserved = 0;
    return status != TN_ERR_REENTRANCY;
}

void tn__use_let_go(tn_use *use) {
    tn_error kept = *tn__error_current();
    /* nobody can ask for any of it again, so a guard does not keep it */
    while (use->lease_count > 0) {
        /* the caller never saw them, or never will again: what they borrowed on devices is free at
         * once, as the rest of this entry would find it protected */
        const tn_lease *lease = &use->leases[--use->lease_count];
        if (tn__lease_cancel(lease) == TN_ERR_REENTRANCY)
            (void)!tn__record_release_inside(lease->record, lease->generation);
    }
    while (use->reserved > 0) {
        const tn_reservation *r = &use->reservations[--use->reserved];
        if (tn__record_release(r->record, r->generation) == TN_ERR_REENTRANCY)
            (void)!tn__record_release_inside(r->record, r->generation);
    }
    if (use->scope && tn__scope_close(use->scope) == TN_ERR_REENTRANCY)
        tn__scope_let_go(use->scope); /* else it is closed for its report (C137) */
    tn__error_restore(&kept);
}

/* After a failure, whose error stays. */
static tn_status undo(tn_use *use) {
    tn__use_let_go(use);
    return (tn_status)tn__error_current()->status;
}

/* ---- Hit -------------------------------------------------------------------------------- */

static tn_status reserve_all(tn_use *use) {
    tn_status status = TN_OK;
    while (status == TN_OK && use->reserved < use->reservation_count) {
        const tn_reservation_spec *spec = &use->reserved_specs[use->reserved];
        tn_location at;
        status = tn__driver_check_location(use->controller->of.driver, spec->at, &at);
        if (status == TN_OK)
            status = tn__life_reserve(use->controller->of.life, at, spec->bytes, spec->label,
                                      &use->reservations[use->reserved]);
        use->reserved += status == TN_OK;
    }
    return status;
}

/* Whether the rest of an entry may find a way: what is absent can be made, what is full emptied. */
static bool is_miss(tn_status status) {
    return status == TN_ERR_UNAVAILABLE || status == TN_ERR_BUDGET;
}

static tn_status hit(tn_use *use) {
    tn_status status = acquire_all(use);
    if (status == TN_OK)
        status = reserve_all(use);
    if (status == TN_OK) {
        TN__BRANCH(use_hits);
        use->hit = true;
        return TN_OK;
    }
    return undo(use);
}

/* ---- Stamps ----------------------------------------------------------------------------- */

/* Room for the stamps of valid handles: the last step must not fail. Under the lock. */
static tn_status make_room(tn_use *use) {
    for (size_t i = 0; i < use->request->count; i++)
        if (!tn__meta_of(&use->controller->metas, use->request->requirements[i].handle.index))
            return tn__no_memory();
    return TN_OK;
}

static void stamp_all(tn_use *use, uint64_t epoch) {
    for (size_t i = 0; i < use->request->count; i++) {
        tn__meta *meta =
            tn__meta_of(&use->controller->metas, use->request->requirements[i].handle.index);
        if (meta && meta->epoch < epoch)
            meta->epoch = epoch;
    }
}

static void stamp(tn_use *use) {
    tn_controller *c = use->controller;
    if (c->binding == TN_BIND_PLACEMENT) {
        use->epoch = tn__ticks();
        /* [no-order] a number by itself: whoever reads it late ranks one decision differently */
        tn__store_rlx(&use->stamp, use->epoch);
        return;
    }
    tn__lock(&c->lock);
    use->epoch = ++c->epoch;
    stamp_all(use, use->epoch);
    tn__unlock(&c->lock);
}

void tn__use_collect(tn_use *use) {
    uint64_t at = tn__load_rlx(&use->stamp); /* [no-order] a number by itself */
    if (at <= use->collected || make_room(use) != TN_OK)
        return;
    stamp_all(use, at);
    use->collected = at;
}

void tn__uses_collect(tn_controller *c) {
    tn_error kept = *tn__error_current();
    for (tn_use *use = c->uses; use; use = use->next)
        tn__use_collect(use);
    tn__error_restore(&kept);
}

/* ---- Miss ------------------------------------------------------------------------------- */

static tn_status decide(tn_use *use) {
    tn_controller *c = use->controller;
    tn__lock(&c->lock);
    tn__uses_collect(c);
    tn_status status = tn__decide(c, use->request, &use->decision);
    if (status == TN_OK)
        status = make_room(use);
    tn__unlock(&c->lock);
    return status;
}

/* Bound to the version: exactly the steps of C136. */
static tn_status enter_by_version(tn_use *use) {
    tn_status status = decide(use);
    if (status == TN_OK)
        status = tn__decision_scope(use->controller, use->decision, use->decision->version,
                                    use->transfers, use->transfer_count, &use->scope);
    if (status == TN_OK)
        status = tn__scope_enter(use->scope);
    if (status == TN_OK)
        status = acquire_all(use);
    return status == TN_OK ? TN_OK : undo(use);
}

void tn__use_forget(tn_use *use) {
    if (use->scope)
        (void)!tn__scope_destroy(use->scope);
    tn_decision_drop(use->decision);
    use->scope = NULL;
    use->decision = NULL;
}

/* `last`: bound to its claims alone, so that no other plan's progress can make it stale. */
static tn_status try_by_placement(tn_use *use, bool last) {
    tn_status status = decide(use);
    if (status == TN_OK)
        status = tn__decision_scope(use->controller, use->decision, TN_VERSION_ANY, use->transfers,
                                    use->transfer_count, &use->scope);
    if (status != TN_OK)
        return undo(use);
    tn__scope_binding binding = {.placement = last ? TN_VERSION_ANY : use->decision->placement,
                                 .ready = acquire_all,
                                 .context = use,
                                 .handles = use->handles,
                                 .handle_count = use->request->count};
    tn__scope_bind(use->scope, &binding);
    status = tn__scope_enter(use->scope);
    if (status == TN_ERR_PLAN || status == TN_ERR_UNAVAILABLE) {
        /* it was feasible when it was decided, or what it found resident has gone before it could be
         * claimed */
        tn_error *e = tn__error_current();
        e->cause_status = e->status;
        e->status = status = TN_ERR_STALE;
    }
    return status == TN_OK ? TN_OK : undo(use);
}

static tn_status enter_by_placement(tn_use *use) {
    uint32_t bound = use->controller->redecisions;
    for (;;) {
        tn_status status = try_by_placement(use, bound > 0 && use->redecisions == bound);
        if (status != TN_ERR_STALE || use->redecisions == bound)
            return status;
        use->redecisions++;
        TN__BRANCH(use_decides_again);
        tn__use_forget(use);
    }
}

/* ---- Entry and exit --------------------------------------------------------------------- */

static tn_status enter_manager(const tn_controller *c) {
    tn__thread *thread;
    tn_status status = tn__life_begin(c->of.life, false, &thread);
    return status == TN_OK ? tn__life_reap_manual(c->of.life) : status;
}

/* A hit in one step (lifetime/hot.c), with its stamp. Whatever deviates comes back with nothing
 * done. */
static bool hit_at_once(tn_use *use) {
    uint64_t now = tn__ticks();
    if (!tn__hot_take(&use->hot, now, use->leases, use->reservations))
        return false;
    TN__BRANCH(use_hits_at_once);
    use->lease_count = use->hot.lease_count;
    use->reserved = use->hot.reservation_count;
    use->hit = use->was_entered = true;
    use->state = TN__USE_ENTERED;
    use->epoch = now;
    tn__store_rlx(&use->stamp, now); /* [no-order] a number by itself */
    return true;
}

static tn_status enter(tn_use *use) {
    tn_controller *c = use->controller;
    tn_status status = enter_manager(c);
    if (status != TN_OK)
        return status;
    if (c->binding == TN_BIND_VERSION)
        return enter_by_version(use);
    status = hit(use);
    return is_miss(status) ? enter_by_placement(use) : status;
}

tn_status tn_use_enter(tn_use *use) {
    if (!use)
        return tn__fail(TN_ERR_KIND, "the use is NULL");
    if (use->state != TN__USE_FRESH)
        return tn__fail(TN_ERR_MISUSE, "the use was entered before");
    if (use->hot_ready && hit_at_once(use))
        return TN_OK;
    tn_status status = enter(use);
    use->state = status == TN_OK ? TN__USE_ENTERED : TN__USE_OVER;
    if (status == TN_OK) {
        use->was_entered = true;
        stamp(use);
        return TN_OK;
    }
    tn__error_current()->manager = use->controller->of.id;
    return status;
}

/* What could not be closed is over all the same, but for a guard (C143, G25). */
static tn_status close_scope(tn_use *use) {
    tn_status status = use->scope ? tn__scope_close(use->scope) : TN_OK;
    if (status != TN_OK && status != TN_ERR_REENTRANCY)
        tn__scope_let_go(use->scope);
    return status;
}

tn_status tn_use_exit(tn_use *use) {
    if (!use)
        return tn__fail(TN_ERR_KIND, "the use is NULL");
    if (use->state == TN__USE_FRESH)
        return tn__fail(TN_ERR_MISUSE, "the use was never entered");
    if (use->state == TN__USE_OVER)
        return TN_OK;
    first_error first;
    first.status = TN_OK;
    if (!release_all(use, &first))
        return TN_ERR_REENTRANCY;
    tn_status closed = close_scope(use);
    if (closed == TN_ERR_REENTRANCY)
        return closed;
    use->state = TN__USE_OVER;
    return first.status == TN_OK ? closed : tn__error_restore(&first.error);
}
