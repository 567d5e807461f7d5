/* SPDX-License-Identifier: MIT */
/*
 * L3 for readers: one hot value, four threads that acquire and release it as fast as they can, beside
 * a thousand removal attempts a second. No reader waits (none has a wait to be in); how often they
 * look up a second time is bounded by the removals that succeeded, once for each reader.
 * TN_TORTURE_SECONDS is its length.
 */
#include "tn_test.h"

#include <stdatomic.h>
#include <time.h>

#include "manager/manager_internal.h"
#include "payload.h"

#define READERS 4

struct hot {
    tn_manager *m;
    tn_handle handle;
    atomic_bool stop;
    atomic_ullong granted, absent, attempts, removed;
};

static const char *reader(struct hot *h) {
    uint64_t granted = 0, absent = 0;
    while (!atomic_load_explicit(&h->stop, memory_order_relaxed)) {
        tn_lease lease;
        tn_status status =
            tn_manager_acquire(h->m, &h->handle, 1, tn_location_pinned(), NULL, &lease);
        if (status == TN_OK) {
            granted++;
            TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
        } else {
            absent++;
            TN_WORKER_STATUS(status, TN_ERR_UNAVAILABLE);
        }
    }
    atomic_fetch_add(&h->granted, granted);
    atomic_fetch_add(&h->absent, absent);
    return NULL;
}

/* A thousand attempts a second: drop, and bring it back if that went well. */
static const char *remover(struct hot *h) {
    const struct timespec pause = {0, 1000000};
    uint64_t seconds = tn_test_env_u64("TN_TORTURE_SECONDS", 2);
    for (uint64_t i = 0; i < seconds * 1000 && !tn_test_workers_failed(); i++) {
        tn_status status = tn_manager_drop(h->m, h->handle, tn_location_pinned(), NULL);
        atomic_fetch_add(&h->attempts, 1);
        if (status == TN_OK) {
            atomic_fetch_add(&h->removed, 1);
            TN_WORKER_STATUS(tn_manager_ensure(h->m, h->handle, tn_location_pinned(), NULL, NULL),
                             TN_OK);
        } else {
            TN_WORKER_STATUS(status, TN_ERR_IN_USE);
        }
        nanosleep(&pause, NULL);
    }
    atomic_store(&h->stop, true);
    return NULL;
}

static const char *work(int index, void *arg) {
    const char *text = index == READERS ? remover(arg) : reader(arg);
    if (text)
        atomic_store(&((struct hot *)arg)->stop, true);
    return text;
}

static void hot_readers_look_twice_at_most_once_for_each_removal(void **state) {
    tn_sim *sim;
    struct hot h = {.m = NULL};
    tn_config config = TN_CONFIG_INIT;
    (void)state;
    assert_ok(tn_sim_create("dev:0", &sim));
    config.driver = tn_sim_driver(sim);
    config.mode = TN_MODE_CONCURRENT;
    assert_ok(tn_manager_create(&config, &h.m));
    uint64_t bytes = 64;
    tn_buffer *buffer;
    assert_ok(tn_buffer_create(config.driver, tn_location_pageable(), &bytes, 1, &buffer));
    assert_ok(tn_manager_adopt(h.m, tn_buffer_payload(buffer), tn_location_none(), TN_REPLICABLE,
                               &h.handle));
    assert_ok(tn_manager_ensure(h.m, h.handle, tn_location_pinned(), NULL, NULL));
    assert_null_text(tn_test_workers_run(READERS + 1, work, &h));
    uint64_t looks = tn__life_looks(h.m->life);
    print_message("granted %llu, absent %llu; removal attempts %llu, removed %llu; second looks "
                  "%llu\n",
                  (unsigned long long)h.granted, (unsigned long long)h.absent,
                  (unsigned long long)h.attempts, (unsigned long long)h.removed,
                  (unsigned long long)looks);
    assert_true(h.granted > 1000);
    assert_true(looks <= h.removed * READERS);
    assert_ok(tn_manager_destroy(h.m));
    tn_sim_destroy(sim);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(hot_readers_look_twice_at_most_once_for_each_removal),
};

TN_TEST_MAIN("torture.hot_reader", tests)
