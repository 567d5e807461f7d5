/* SPDX-License-Identifier: MIT */
/*
 * The world of the torture: how it begins, and what must be left of it in the end.
 */
#include "leases_torture.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_internal.h"
#include "lifetime/lifetime_priv.h"
#include "manager/manager_internal.h"

/* All values together need 15 KiB at a location. */
static const uint64_t budgets[TORT_LOCATIONS] = {9728, 7680, 7680};

tn_location tort_location(uint32_t i) {
    switch (i % TORT_LOCATIONS) {
    case 0:
        return tn_location_pageable();
    case 1:
        return tn_location_pinned();
    default:
        return tn_location_cuda(0);
    }
}

tn_handle tort_handle(const tort_world *w, uint32_t place) {
    uint64_t index = atomic_load_explicit(&w->places[place], memory_order_relaxed);
    return (tn_handle){tn_manager_id(w->m), index, tort_type()};
}

tn_status tort_register(tort_world *w, uint32_t place) {
    tn_value_spec spec = TN_VALUE_SPEC_INIT;
    tn_source source = tort_source(place);
    tn_handle handle;
    tn_status status;

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

bool tort_over(const tort_world *w) {
    return atomic_load_explicit(&w->stop, memory_order_relaxed) || tn_test_workers_failed();
}

/* ---- Begin ---- */

static void make_manager(tort_world *w) {
    tn_config config = TN_CONFIG_INIT;
    tn_budget limits[TORT_LOCATIONS];

    for (uint32_t i = 0; i < TORT_LOCATIONS; i++)
        limits[i] = (tn_budget){tort_location(i), budgets[i]};
    config.driver = w->driver;
    config.budgets = limits;
    config.budget_count = TORT_LOCATIONS;
    config.mode = w->config.mode;
    config.reaper = w->config.reaper;
    config.keep_discarded = 64;
    config.trace_capacity = 64;
    assert_ok(tn_manager_create(&config, &w->m));
}

/* Until nothing more fits. */
static void fill(tort_world *w) {
    for (uint32_t i = 0; i < TORT_LOCATIONS; i++) {
        uint32_t place = i;
        tn_status status = TN_OK;

        while (status == TN_OK) {
            status = tn_manager_ensure(w->m, tort_handle(w, place), tort_location(i), NULL, NULL);
            place = (place + 5) % TORT_PLACES;
        }
        assert_int_equal(status, TN_ERR_BUDGET);
    }
}

void tort_world_begin(tort_world *w, const tort_config *config, uint64_t seconds) {
    tort_payloads_begin();
    memset(w, 0, sizeof *w);
    w->config = *config;
    assert_ok(tn_sim_create("dev:1 mem=1MiB pinned=1MiB clock=threads", &w->sim));
    w->driver = tn_sim_driver(w->sim);
    for (int i = 0; i < TORT_STREAMS; i++)
        assert_ok(tn_sim_stream_create(w->sim, 0, 0, &w->streams[i]));
    make_manager(w);
    for (uint32_t i = 0; i < TORT_PLACES; i++)
        assert_ok(tort_register(w, i));
    fill(w);
    w->end_ns = tn__mono_ns() + seconds * 1000000000u;
}

/* ---- End: conservation ---- */

/* At most `limit` + 1, so that a list with a cycle ends too. */
static uint64_t list_length(const tn__record *record, uint64_t limit) {
    uint64_t n = 0;
    for (; record && n <= limit; record = record->next)
        n++;
    return n;
}

/* Every record is free, and in exactly one list; nobody is inside an operation. */
static void check_records(const tn__slot *slot) {
    uint64_t used = 0;

    assert_int_equal(tn__load_acq(&slot->counter) % 2, 0);
    for (tn__block *b = tn__load_acq(&slot->blocks); b; b = b->next) {
        uint32_t n = tn__load_acq(&b->used);
        for (uint32_t i = 0; i < n; i++)
            assert_int_equal(tn__word_state(tn__load_acq(&b->records[i].pair.low)), TN__FREE);
        used += n;
    }
    assert_int_equal(list_length(slot->free_local, used) +
                         list_length(tn__load_acq(&slot->free_remote), used),
                     used);
}

/* Every event was given back once. Adds the slot's events. */
static void check_events(const tn__slot *slot, uint64_t *events) {
    for (const tn__pool *pool = slot->pools; pool; pool = pool->next) {
        uint64_t all = 0, idle = 0;
        for (const tn__event *e = pool->all; e; e = e->all_next)
            all++;
        for (const tn__event *e = pool->local; e; e = e->next)
            idle++;
        for (const tn__event *e = tn__load_acq(&pool->returned); e; e = e->next)
            idle++;
        assert_int_equal(idle, all);
        *events += all;
    }
}

void tort_check_slots(tn_manager *m, uint64_t *out_events) {
    *out_events = 0;
    for (tn__slot *slot = tn__load_acq(&m->life->slots); slot; slot = slot->next) {
        check_records(slot);
        check_events(slot, out_events);
    }
}

/* M118: each lifetime counted once when it began and once when it ended, a CUDA lease also when
 * it was released. */
static void check_count(tort_world *w) {
    bool stable = false;
    uint64_t expected = 2 * (w->tally.acquired_host + w->tally.held + w->tally.reserved) +
                        3 * w->tally.acquired_cuda;

    assert_int_equal(tn__life_count(w->m->life, &stable), expected);
    assert_true(stable);
}

static uint64_t sum_of_charges(const tn_snapshot *s, tn_location at) {
    tn_value_info value = {.size = sizeof value};
    uint64_t cursor = 0, sum = 0;
    bool more = false;

    while (tn_snapshot_next(s, &cursor, &value, &more) == TN_OK && more) {
        tn_materialization_info mats[TORT_LOCATIONS] = {{.size = sizeof mats[0]}};
        size_t count = TORT_LOCATIONS;

        assert_ok(tn_snapshot_materializations(s, value.handle, mats, &count));
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(mats[i].use_count + mats[i].hold_count + mats[i].pending_count, 0);
            sum += mats[i].at.kind == at.kind ? mats[i].charged_bytes : 0;
        }
    }
    return sum;
}

/* Nothing is protected, reserved or claimed; used is the sum of the charges, everywhere. */
static void check_bytes(tort_world *w) {
    tn_snapshot *s = NULL;
    tn_snapshot_info head = {.size = sizeof head};
    tn_location_info places[TORT_LOCATIONS] = {{.size = sizeof places[0]}};
    size_t count = TORT_LOCATIONS;

    assert_ok(tn_snapshot_take(w->m, &s));
    assert_ok(tn_snapshot_read(s, &head));
    assert_int_equal(head.exact, 1);
    assert_int_equal(
        head.lease_count + head.pending_lease_count + head.hold_count + head.reservation_count, 0);
    assert_ok(tn_snapshot_locations(s, places, &count));
    assert_int_equal(count, TORT_LOCATIONS);
    for (uint32_t i = 0; i < TORT_LOCATIONS; i++) {
        uint64_t total = 0, claimed = 0;

        assert_int_equal(places[i].used_bytes, sum_of_charges(s, places[i].at));
        assert_int_equal(places[i].reserved_bytes, 0);
        assert_in_range(places[i].peak_charged_bytes, places[i].used_bytes, budgets[i]);
        tn__ledger_read(tn__store_ledger(w->m->store, places[i].at), &total, &claimed);
        assert_int_equal(claimed, 0);
        assert_int_equal(total, places[i].used_bytes);
    }
    tn_snapshot_drop(s);
}

/* The machine's own figures: storage never exceeded a budget, also while it was being replaced. */
static void check_memory(tort_world *w) {
    for (uint32_t i = 0; i < TORT_LOCATIONS; i++) {
        tn_sim_memory memory = {.size = sizeof memory};
        tn_pinned_figures pinned = TN_PINNED_FIGURES_INIT;

        if (i == 0) {
            assert_in_range(tort_pageable_peak(), 1, budgets[0]);
            continue;
        }
        assert_ok(tn_sim_read_memory(w->sim, tort_location(i), &memory));
        assert_int_equal(memory.live_blocks, 0);
        assert_ok(tn_driver_read_pinned(w->driver, &pinned)); /* the machine's: idle blocks too */
        assert_in_range(i == 1 ? pinned.peak_live_bytes : memory.peak_bytes, 1, budgets[i]);
    }
    assert_string_equal(tn_sim_violation_text(w->sim), "");
    assert_int_equal(tn_sim_violations(w->sim), 0);
    assert_int_equal(tn_sim_live_events(w->sim), 0);
}

static void print_tally(const tort_world *w) {
    const tort_tally *t = &w->tally;

    print_message(
        "  leases %llu host %llu cuda, holds %llu, reservations %llu; absent %llu busy %llu "
        "discarded %llu refused %llu\n",
        (unsigned long long)t->acquired_host, (unsigned long long)t->acquired_cuda,
        (unsigned long long)t->held, (unsigned long long)t->reserved, (unsigned long long)t->absent,
        (unsigned long long)t->busy, (unsigned long long)t->discarded,
        (unsigned long long)t->refused);
    print_message("  removed %llu, in use %llu, full %llu, ensured %llu, moved %llu, ended %llu, "
                  "adopted %llu; snapshots %llu exact %llu not; exits %llu\n",
                  (unsigned long long)t->removed, (unsigned long long)t->in_use,
                  (unsigned long long)t->full, (unsigned long long)t->ensured,
                  (unsigned long long)t->moved, (unsigned long long)t->gone,
                  (unsigned long long)t->adopted, (unsigned long long)t->exact,
                  (unsigned long long)t->inexact, (unsigned long long)t->exits);
}

/* With a reaper thread, what is over may wait for its consumer a little longer. */
static void settle(tort_world *w) {
    uint64_t until = tn__mono_ns() + UINT64_C(20000000000), queued;

    do {
        tn__life *life = w->m->life;
        assert_ok(tn_manager_step(w->m, NULL));
        tn__lock(&life->reap_lock);
        queued = list_length(life->waiting, 1000) + (tn__queue_empty(&life->queue) ? 0 : 1);
        tn__unlock(&life->reap_lock);
        if (tn__mono_ns() > until)
            fail_msg("pending leases do not end");
    } while (queued > 0);
}

void tort_world_end(tort_world *w) {
    uint64_t events = 0;

    print_tally(w);
    assert_null_text(tort_mail_empty(w));
    settle(w);
    check_bytes(w);
    tort_check_slots(w->m, &events);
    assert_int_equal(events, tn_sim_live_events(w->sim));
    check_count(w);
    assert_ok(tn_manager_close(w->m, 0));
    assert_ok(tn_manager_destroy(w->m));
    assert_int_equal(tort_payloads_live(), 0);
    check_memory(w);
    for (int i = 0; i < TORT_STREAMS; i++)
        assert_ok(tn_sim_stream_destroy(w->sim, w->streams[i]));
    tn_sim_destroy(w->sim);
    tort_payloads_reset();
}
