/* SPDX-License-Identifier: MIT */
/*
 * Tenants of the soak: managers with controllers of their own, on the machine of the others, that
 * come and go, sometimes with lifetimes still open.
 */
#include "soak_torture.h"

#define VALUES 6

typedef struct tenant {
    soak_world *w;
    tn_manager *m;
    tn_policy *policy;
    tn_controller *controller;
    tn_handle values[VALUES];
    tn_lease lease;
    tn_hold hold;
    tn_reservation reservation;
    uint32_t open; /* of the three */
    _Atomic uint32_t warned;
} tenant;

static void diagnostic(void *context, const tn_diagnostic *d) {
    tenant *t = context;
    if (d->kind == TN_DIAGNOSTIC_LEASE_ABANDONED || d->kind == TN_DIAGNOSTIC_HOLD_ABANDONED ||
        d->kind == TN_DIAGNOSTIC_RESERVATION_ABANDONED)
        atomic_fetch_add(&t->warned, 1);
}

static tn_status begin(tenant *t, tort_random *r) {
    tn_config config = TN_CONFIG_INIT;
    tn_budget budgets[] = {{tn_location_pageable(), 3072}, {tn_location_cuda(0), 2048}};
    tn_location below[] = {tn_location_pageable()};
    tn_tier tier = {tn_location_cuda(0), below, 1};
    tn_controller_config c = TN_CONTROLLER_CONFIG_INIT;
    config.driver = t->w->driver;
    config.budgets = budgets;
    config.budget_count = 2;
    config.mode = tort_below(r, 2) ? TN_MODE_SERIAL : TN_MODE_CONCURRENT;
    config.reaper = tort_below(r, 2) ? TN_REAPER_THREAD : TN_REAPER_MANUAL;
    config.ring_blocks = 1 + tort_below(r, 4);
    config.diagnostic = diagnostic;
    config.diagnostic_context = t;
    tn_status status = tn_manager_create(&config, &t->m);
    if (status == TN_OK)
        status = tn_policy_tiered_lru(&tier, 1, &t->policy);
    c.policy = t->policy;
    if (status == TN_OK)
        status = tn_controller_create(t->m, &c, &t->controller);
    return status;
}

static const char *fill(tenant *t) {
    tn_value_spec spec = TN_VALUE_SPEC_INIT;
    spec.type = tort_type();
    spec.replica_mode = TN_REPLICABLE;
    spec.recoverability = TN_RECONSTRUCTIBLE;
    for (uint32_t i = 0; i < VALUES; i++) {
        tn_source source = tort_source(i);
        spec.logical_bytes = spec.storage_bytes = tort_bytes_of(i);
        TN_WORKER_STATUS(
            tn_manager_register_source(t->m, &spec, &source, tn_location_pageable(), &t->values[i]),
            TN_OK);
    }
    return NULL;
}

/* Alone with its manager, so nothing is refused. */
static const char *use(tenant *t, tort_random *r) {
    tn_location c0 = tn_location_cuda(0);
    tn_stream stream = soak_stream(t->w, r, c0);
    tn_transfer_stream consumer = {c0, stream};
    uint32_t place = tort_below(r, VALUES);
    tn_requirement need = {t->values[place], c0};
    tn_request_spec spec = TN_REQUEST_SPEC_INIT;
    tn_use_options options = TN_USE_OPTIONS_INIT;
    tn_request *request = NULL;
    soak_letter letter = {.kind = SOAK_USE};
    const void *data = NULL;
    spec.name = "tenant";
    spec.requirements = &need;
    spec.requirement_count = 1;
    options.consumers = &consumer;
    options.consumer_count = 1;
    TN_WORKER_STATUS(tn_request_create(&spec, &request), TN_OK);
    tn_status status = tn_use_create(t->controller, request, &options, &letter.use);
    tn_request_destroy(request);
    TN_WORKER_STATUS(status, TN_OK);
    status = tn_use_enter(letter.use);
    if (status == TN_ERR_STALE ||
        status == TN_ERR_PLAN) { /* events of the last use end meanwhile */
        tn_use_destroy(letter.use);
        return NULL;
    }
    TN_WORKER_STATUS(status, TN_OK);
    TN_WORKER_STATUS(tn_use_value(letter.use, need.handle, c0, &data), TN_OK);
    SOAK_TRY(soak_see(&letter, data, place));
    SOAK_TRY(soak_queue(t->w, r, stream, &letter));
    return soak_end(t->w, &letter);
}

/* A lease, a hold and a reservation that outlive the work, or not. */
static const char *leave_open(tenant *t, tort_random *r) {
    tn_location p = tn_location_pageable(), c0 = tn_location_cuda(0);
    tn_status status =
        tn_manager_acquire(t->m, &t->values[0], 1, c0, soak_stream(t->w, r, c0), &t->lease);
    t->open += status == TN_OK;
    if (status != TN_OK && status != TN_ERR_UNAVAILABLE)
        return "a tenant cannot acquire";
    status = tn_manager_hold(t->m, &t->values[1], 1, p, &t->hold);
    t->open += status == TN_OK;
    if (status != TN_OK && status != TN_ERR_UNAVAILABLE)
        return "a tenant cannot hold";
    status = tn_manager_reserve(t->m, p, 16, "left", &t->reservation);
    t->open += status == TN_OK;
    return status == TN_OK || status == TN_ERR_BUDGET ? NULL : "a tenant cannot reserve";
}

static const char *end(tenant *t, tort_random *r) {
    uint32_t dice = tort_below(r, 4);
    tn_controller_destroy(t->controller);
    tn_policy_destroy(t->policy);
    if (dice == 0)
        TN_WORKER_STATUS(tn_manager_close(t->m, 0), t->open ? TN_ERR_IN_USE : TN_OK);
    if (dice == 1 && t->open == 0)
        TN_WORKER_STATUS(tn_manager_close(t->m, TN_CLOSE_FORCE), TN_OK);
    TN_WORKER_STATUS(tn_manager_destroy(t->m), TN_OK);
    TN_WORKER_CHECK(t->warned == t->open);
    atomic_fetch_add(&t->w->tally.left_open, t->open);
    atomic_fetch_add(&t->w->tally.warned, t->warned);
    /* late, and of nobody any longer */
    TN_WORKER_STATUS(tn_lease_release(&t->lease, 0), TN_OK);
    TN_WORKER_STATUS(tn_hold_release(&t->hold), TN_OK);
    TN_WORKER_STATUS(tn_reservation_release(&t->reservation), TN_OK);
    SOAK_COUNT(t->w, tenants);
    return NULL;
}

const char *soak_tenant(soak_world *w, tort_random *r) {
    tenant t = {.w = w};
    TN_WORKER_STATUS(begin(&t, r), TN_OK);
    SOAK_TRY(fill(&t));
    for (uint32_t n = tort_below(r, 30); n > 0; n--)
        SOAK_TRY(use(&t, r));
    if (tort_below(r, 2))
        SOAK_TRY(leave_open(&t, r));
    return end(&t, r);
}
