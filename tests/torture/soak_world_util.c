/* SPDX-License-Identifier: MIT */
/*
 * The world of the soak: how it begins and ends, its values, and what its calls may say.
 */
#include "soak_torture.h"

#include <sched.h>
#include <string.h>

#include "base/base_internal.h"

/* All values together need 15 KiB at a location. */
static const uint64_t budgets[SOAK_LOCATIONS] = {9728, 7680, 7680, 6656};

tn_location soak_location(uint32_t i) {
    switch (i % SOAK_LOCATIONS) {
    case 0:
        return tn_location_pageable();
    case 1:
        return tn_location_pinned();
    default:
        return tn_location_cuda(i % SOAK_LOCATIONS - 2);
    }
}

tn_location soak_any_location(tort_random *r) {
    return soak_location(tort_below(r, SOAK_LOCATIONS));
}

bool soak_is_cuda(tn_location at) { return at.kind == TN_LOCATION_CUDA; }

tn_stream soak_stream(soak_world *w, tort_random *r, tn_location at) {
    return soak_is_cuda(at) ? w->streams[at.index][tort_below(r, SOAK_STREAMS)] : NULL;
}

tn_handle soak_handle(const soak_world *w, uint32_t place) {
    uint64_t index = atomic_load_explicit(&w->places[place], memory_order_relaxed);
    return (tn_handle){tn_manager_id(w->m), index, tort_type()};
}

bool soak_pause(const soak_world *w) {
    return atomic_load_explicit(&w->stop, memory_order_relaxed) || tn_test_workers_failed();
}

uint32_t soak_choose_places(tort_random *r, uint32_t *places, uint32_t count) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t place = tort_below(r, SOAK_PLACES), k = 0;
        while (k < n && places[k] != place)
            k++;
        if (k == n)
            places[n++] = place;
    }
    return n;
}

/* ---- Sources ---- */

#define FAIL_CODE 77

#define FAIL_CODE 77

typedef struct context {
    soak_world *w;
    uint32_t place;
} context;

static context contexts[SOAK_PLACES];

static tn_status load(void *of, const tn_load_request *request, tn_load_result *result) {
    const context *c = of;
    uint64_t load = SOAK_COUNT(c->w, loads);
    if (load % 13 == 12) {
        SOAK_COUNT(c->w, failed_loads);
        result->native_code = FAIL_CODE;
        return TN_ERR_SOURCE;
    }
    if (load % 8 == 0)
        tort_spin(20000);
    return tort_payload_make(request->driver, request->at, c->place, &result->payload);
}

tn_status soak_register(soak_world *w, uint32_t place) {
    tn_value_spec spec = TN_VALUE_SPEC_INIT;
    tn_source source = TN_SOURCE_INIT;
    tn_handle handle;
    tn_status status;

    source.kind = TN_SOURCE_CALLBACK;
    source.load = load;
    source.context = &contexts[place];
    spec.type = tort_type();
    spec.logical_bytes = spec.storage_bytes = tort_bytes_of(place);
    spec.replica_mode = TN_REPLICABLE;
    spec.recoverability = TN_RECONSTRUCTIBLE;
    while ((status = tn_manager_register_source(w->m, &spec, &source, tn_location_pageable(),
                                                &handle)) == TN_ERR_REENTRANCY)
        sched_yield();
    if (status == TN_OK)
        atomic_store_explicit(&w->places[place], handle.index, memory_order_relaxed);
    return status;
}

/* ---- Expectations ---- */

const char *soak_expect(soak_world *w, const char *what, tn_status status, uint64_t also) {
    const tn_error *e = tn_last_error();
    if (status == TN_OK)
        return NULL;
    if (e->status != (uint32_t)status)
        return tn_test_text("%s gave %s, its detail says %s", what, tn_status_name(status),
                            tn_status_name((tn_status)e->status));
    if (status == TN_ERR_REENTRANCY && w->mode == TN_MODE_SERIAL) {
        SOAK_COUNT(w, refused);
        sched_yield();
        return NULL;
    }
    if (status == TN_ERR_HANDLE &&
        (e->handle_cause == TN_HANDLE_DISCARDED || e->handle_cause == TN_HANDLE_UNKNOWN))
        return NULL;
    if (status == TN_ERR_SOURCE && e->native_code != FAIL_CODE)
        return tn_test_text("%s: a source's code is %lld", what, (long long)e->native_code);
    if (also >> status & 1)
        return NULL;
    return tn_test_text("%s gave %s: %s", what, tn_status_name(status), e->message);
}

/* ---- Begin ---- */

static void make_manager(soak_world *w) {
    tn_config config = TN_CONFIG_INIT;
    tn_budget limits[SOAK_LOCATIONS];

    for (uint32_t i = 0; i < SOAK_LOCATIONS; i++)
        limits[i] = (tn_budget){soak_location(i), budgets[i]};
    config.driver = w->driver;
    config.budgets = limits;
    config.budget_count = SOAK_LOCATIONS;
    config.mode = w->mode;
    config.keep_discarded = 64;
    config.trace_capacity = 64;
    assert_ok(tn_manager_create(&config, &w->m));
}

/* Two policies: with tiers below each, and with none. Both bindings, with and without
 * redecisions. */
static void make_controllers(soak_world *w) {
    tn_location below0[] = {tn_location_cuda(1), tn_location_pinned(), tn_location_pageable()};
    tn_location below1[] = {tn_location_pinned()}, below2[] = {tn_location_pageable()};
    tn_tier tiers[] = {{tn_location_cuda(0), below0, 3},
                       {tn_location_cuda(1), below1, 1},
                       {tn_location_pinned(), below2, 1}};
    assert_ok(tn_policy_tiered_lru(tiers, 3, &w->policies[0]));
    assert_ok(tn_policy_tiered_lru(NULL, 0, &w->policies[1]));
    for (uint32_t i = 0; i < SOAK_CONTROLLERS; i++) {
        tn_controller_config config = TN_CONTROLLER_CONFIG_INIT;
        config.policy = w->policies[i % 2];
        config.binding = i == 3 ? TN_BIND_VERSION : TN_BIND_PLACEMENT;
        config.redecisions = i == 0 ? 4 : 0;
        config.search_limit = 400;
        assert_ok(tn_controller_create(w->m, &config, &w->controllers[i]));
    }
}

/* Until nothing more fits; a source that fails is asked again. */
static void fill(soak_world *w) {
    for (uint32_t i = 0; i < SOAK_LOCATIONS; i++) {
        uint32_t place = i;
        tn_status status = TN_OK;

        while (status == TN_OK || status == TN_ERR_SOURCE) {
            status = tn_manager_ensure(w->m, soak_handle(w, place), soak_location(i), NULL, NULL);
            if (status == TN_OK)
                place = (place + 5) % SOAK_PLACES;
        }
        assert_int_equal(status, TN_ERR_BUDGET);
    }
}

void soak_world_begin(soak_world *w, uint32_t mode, uint64_t ns) {
    tort_payloads_begin();
    memset(w, 0, sizeof *w);
    w->mode = mode;
    assert_ok(tn_sim_create("dev:2 mem=1MiB pinned=1MiB clock=threads", &w->sim));
    w->driver = tn_sim_driver(w->sim);
    for (uint32_t d = 0; d < SOAK_DEVICES; d++)
        for (int i = 0; i < SOAK_STREAMS; i++)
            assert_ok(tn_sim_stream_create(w->sim, d, 0, &w->streams[d][i]));
    make_manager(w);
    make_controllers(w);
    for (uint32_t i = 0; i < SOAK_PLACES; i++) {
        contexts[i] = (context){w, i};
        assert_ok(soak_register(w, i));
    }
    fill(w);
    w->end_ns = tn__mono_ns() + ns;
}
