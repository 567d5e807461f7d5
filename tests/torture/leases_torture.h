/* SPDX-License-Identifier: MIT */
/*
 * The torture of leases: threads that borrow and threads that remove what is borrowed.
 *
 * A world is one manager over a simulated machine whose streams run on threads. Its values stand
 * in `places`: a place holds the handle of one value, which a discard replaces by a new one. All
 * budgets are too small for all values, and full from the start.
 *
 * Every payload has a serial number of its own and a stamp that all its words derive from; both
 * are poisoned when it is destroyed, and in builds with test points already when a plan that only
 * removes has taken it. Its memory is never given back while the world stands, so that a reader
 * of something that is gone sees poison or another serial number, not a fault.
 */
#ifndef LEASES_TORTURE_H
#define LEASES_TORTURE_H

#include <stdatomic.h>
#include <stdbool.h>

#include <tenure/tenure.h>

#include "tn_test.h"

#define TORT_PLACES 24
#define TORT_STREAMS 4
#define TORT_MAIL 16
#define TORT_LEASE_MAX 8

/* ---- Random numbers: one state per thread ---- */

typedef struct tort_random {
    uint64_t state;
} tort_random;

tort_random tort_random_of(uint64_t stream); /* from the seed of the run */
uint32_t tort_next(tort_random *r);
static inline uint32_t tort_below(tort_random *r, uint32_t n) {
    return (uint32_t)(((uint64_t)tort_next(r) * n) >> 32);
}

/* Keep this thread busy. */
void tort_spin(uint64_t ns);

/* ---- Payloads ---- */

const tn_value_type *tort_type(void);
/* Logical bytes of the value in a place: they differ, so that budgets fill unevenly. */
uint64_t tort_bytes_of(uint32_t place);
/* A new payload of a place. */
TN_NODISCARD tn_status tort_payload_make(tn_driver *driver, tn_location at, uint32_t place,
                                         tn_payload *out);
/* Source of a place; `place` is remembered by value. */
tn_source tort_source(uint32_t place);

/* What a reader noted of a payload that it borrowed. */
typedef struct tort_seen {
    const void *data;
    uint64_t serial;
} tort_seen;
/* Note it; NULL, or what is wrong with it. */
const char *tort_payload_see(const void *data, uint32_t place, tort_seen *out);
/* It is still the same payload, whole. NULL, or what is wrong. */
const char *tort_payload_check(const tort_seen *seen);
/* The storage, for reads by streams. */
void *tort_payload_block(const void *data);
uint64_t tort_payload_bytes(const void *data);

/* Live payloads; most pageable bytes that were live at once since tort_payloads_reset(). */
uint64_t tort_payloads_live(void);
uint64_t tort_pageable_peak(void);
/* Begin a test; end it: free all memory of payloads, none of which is live. */
void tort_payloads_begin(void);
void tort_payloads_reset(void);

/* Test points: short random pauses, and poison at TAKEN on threads that said so. No effect in
 * builds without them. */
void tort_points_on(uint32_t longest_pause_ns);
void tort_points_off(void);
/* This thread: the plans that follow only remove. */
void tort_poison_at_taken(bool on);

/* ---- The world ---- */

typedef struct tort_config {
    uint32_t mode;   /* enum tn_mode */
    uint32_t reaper; /* enum tn_reaper */
    int readers;
    int removers; /* 0: only readers and snapshots */
} tort_config;

/* A lease on its way to a thread that ends it. */
typedef struct tort_letter {
    tn_lease lease;
    tort_seen seen[TORT_LEASE_MAX]; /* to be checked before the release, unless `racing` */
    uint32_t seen_count;
    bool racing; /* the sender releases it too */
} tort_letter;

/* What happened. Counted by all threads, relaxed. */
typedef struct tort_tally {
    _Atomic uint64_t acquired_host, acquired_cuda, held, reserved; /* they succeeded */
    _Atomic uint64_t absent, busy, discarded, refused;             /* they did not, and why */
    _Atomic uint64_t removed, in_use, full, ensured, moved, gone;  /* actions */
    _Atomic uint64_t exact, inexact, exits, adopted;
} tort_tally;

typedef struct tort_world {
    tort_config config;
    tn_sim *sim;
    tn_driver *driver;
    tn_manager *m;
    _Atomic uint64_t places[TORT_PLACES]; /* index of the value that stands there */
    tn_stream streams[TORT_STREAMS];
    _Atomic(tort_letter *) mail[TORT_MAIL];
    atomic_bool stop;
    uint64_t end_ns;
    tort_tally tally;
} tort_world;

#define TORT_COUNT(w, what) atomic_fetch_add_explicit(&(w)->tally.what, 1, memory_order_relaxed)

/* Nothing changes but the leases of a few readers. */
static inline bool tort_quiet_world(const tort_world *w) { return w->config.removers == 0; }

/* Places: pageable, pinned, cuda:0. */
#define TORT_LOCATIONS 3
tn_location tort_location(uint32_t i);

void tort_world_begin(tort_world *w, const tort_config *config, uint64_t seconds);
/* Ends what is left, then checks that nothing was lost or made: bytes, claims, records, events. */
void tort_world_end(tort_world *w);
/* Every record is free and in one list, every event was given back; how many events there are. */
void tort_check_slots(tn_manager *m, uint64_t *out_events);
tn_handle tort_handle(const tort_world *w, uint32_t place);
/* Register a new value for a place; retried while a guard is up. */
tn_status tort_register(tort_world *w, uint32_t place);
bool tort_over(const tort_world *w);

/* ---- The threads (tn_test_worker_fn bodies); NULL, or what went wrong ---- */

const char *tort_reader(tort_world *w, int index);
const char *tort_letters(tort_world *w, int index);  /* ends the leases that others sent */
const char *tort_exits(tort_world *w, int index);    /* makes readers that exit soon */
const char *tort_remover(tort_world *w, int index);  /* drop, move, discard, ensure back */
const char *tort_reserver(tort_world *w, int index); /* reservations, adopt from them */
const char *tort_snapshots(tort_world *w, int index);
const char *tort_steps(tort_world *w, int index); /* manual reaping */

/* End a lease; a guard that is up is waited for. */
tn_status tort_release(const tn_lease *lease, uint32_t flags);
/* The test thread: end what is still in the mail. */
const char *tort_mail_empty(tort_world *w);

/* ---- The tests ---- */

/* All threads at once, for the time of one test. */
void tort_run(const tort_config *config);
void tort_serial(void **state);
void tort_serial_manual(void **state);
void tort_concurrent(void **state);
void tort_concurrent_manual(void **state);
/* One reader and snapshots, so that many of them are exact and have the same version. */
void tort_quiet(void **state);
/* Two threads end each lease at the same moment. */
void tort_racing_releases(void **state);
/* The last release of a manager against its close and destruction. */
void tort_last_release(void **state);
/* One hot value, one reader, one remover, on processors of their own: what shows a missing fence. */
void tort_hot_value(void **state);

#define TORT_TESTS                                                                                 \
    cmocka_unit_test(tort_hot_value), cmocka_unit_test(tort_last_release),                         \
        cmocka_unit_test(tort_racing_releases), cmocka_unit_test(tort_quiet),                      \
        cmocka_unit_test(tort_concurrent), cmocka_unit_test(tort_concurrent_manual),               \
        cmocka_unit_test(tort_serial), cmocka_unit_test(tort_serial_manual)

#endif
