/* SPDX-License-Identifier: MIT */
/*
 * What the field cases share: spec_common.h, with values of any size, virtual milliseconds,
 * stopped threads, and the check that ends every case.
 *
 * A field case is what went wrong elsewhere, retold: tests/field/cases.tsv lists them. Test
 * f_c01_... belongs to case F-C01. Include it last.
 */
#ifndef TN_FIELD_COMMON_H
#define TN_FIELD_COMMON_H

#include <pthread.h>

#include "base/base_internal.h"

#include "spec_common.h"

#define MS UINT64_C(1000000)
#define KEY UINT64_C(135168) /* 132 KiB */

/** Table entries: in one mode. */
#define FIELD_SERIAL(test)                                                                         \
    { #test, test, spec_setup_serial, field_teardown, NULL }
#define FIELD_CONCURRENT(test)                                                                     \
    { #test "_concurrent", test, spec_setup_concurrent, field_teardown, NULL }
#define FIELD_BOTH(test) FIELD_SERIAL(test), FIELD_CONCURRENT(test)
/** spec_teardown(), and the real file system again. */
int field_teardown(void **state);

/* ---- How much, and how fast --------------------------------------------------------------- */

/** TN_FIELD_SOAK=1: the cases that have a *soak* run with its numbers. */
bool field_soak(void);
/** The usual number, or the soak's. */
uint64_t field_number(uint64_t usual, uint64_t soak);

/* Ratios of times are judged in optimised builds, times in release builds. */
#if defined(__SANITIZE_ADDRESS__) || TN__TSAN || !defined(__OPTIMIZE__)
#define FIELD_OPTIMISED 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIELD_OPTIMISED 0
#endif
#endif
#ifndef FIELD_OPTIMISED
#define FIELD_OPTIMISED 1
#endif
#ifdef NDEBUG
#define FIELD_RELEASE (FIELD_OPTIMISED && !TN_CHECKS)
#else
#define FIELD_RELEASE 0
#endif
/** Print a time; in release builds it is below the limit, else the test fails. */
void field_time(const char *what, uint64_t ns, uint64_t limit_ns);

/* ---- Values ------------------------------------------------------------------------------ */

/** Adopt a fresh payload of one field with the pattern of `seed`. */
tn_handle field_adopt(struct spec *f, tn_manager *m, tn_location at, uint32_t replica_mode,
                      uint64_t bytes, uint64_t seed);
/** A replicable one at P. */
tn_handle field_rep(struct spec *f, tn_manager *m, uint64_t bytes, uint64_t seed);
/** A replicable one at P and at a second location. */
tn_handle field_rep_at(struct spec *f, tn_manager *m, tn_location at, uint64_t bytes,
                       uint64_t seed);
/** The spec of a replicable value of that size with a source. */
tn_handle field_src(tn_manager *m, tt_source *s, uint64_t bytes);
/** Where its bytes are at a CUDA location (counts 3: a lease on a stream of its own). */
char *field_block(struct spec *f, tn_manager *m, tn_handle h, tn_location at);
/** Whether the replica holds the pattern of `seed` (counts as a lease). */
bool field_exact(struct spec *f, tn_manager *m, tn_handle h, tn_location at, uint64_t seed);

/* ---- Time and figures -------------------------------------------------------------------- */

/** Virtual milliseconds, and their rest must be 0. */
uint64_t field_ms(struct spec *f);
/** Let time pass up to that moment, which is not over. */
void field_until(struct spec *f, uint64_t ms);
/** Queue a read of a block on a stream. */
void field_read(struct spec *f, tn_stream stream, const void *block, uint64_t bytes, uint64_t ms);
/** Calls of an entry. */
uint64_t field_calls(struct spec *f, uint32_t entry);
tn_sim_memory field_memory(struct spec *f, tn_location at);
/** A stream of the test with flags, destroyed by the teardown. */
tn_stream field_stream(struct spec *f, uint32_t device, uint32_t flags);
/** Destroy one of these now. */
void field_stream_destroy(struct spec *f, tn_stream stream);
/** A fault with a stall. */
void field_stall(struct spec *f, uint32_t entry, uint64_t count, uint64_t stall_ns);

/** Acquire on two streams. */
tn_lease field_acquire2(tn_manager *m, tn_handle h, tn_location at, tn_stream a, tn_stream b);
/** One reaper step. */
void field_step(tn_manager *m);

/* ---- Threads ----------------------------------------------------------------------------- */

/** One thread; the body returns NULL or a failure text. */
struct field_thread {
    pthread_t thread;
    const char *(*body)(void *arg);
    void *arg;
    const char *text;
    atomic_bool done;
};

void field_start(struct field_thread *t, const char *(*body)(void *arg), void *arg);
/** Join it; fails the test with what the body returned. */
void field_join(struct field_thread *t);
/** Threads of the process; -1 where /proc is not mounted. */
int field_threads_now(void);
/** The same, when what starts with the first thread (a sanitizer's own) is there. */
int field_threads_at_rest(void);
/** Wait until there are so many: a thread that was joined leaves the list a moment later. */
void field_assert_threads(int expected);
/** A while of real time, for a thread that must still wait afterwards. */
void field_nap(unsigned ms);

/** An action on its own thread. */
struct field_action {
    struct field_thread thread;
    struct spec *f;
    tn_manager *m;
    tn_handle h;
    tn_location at;
    tn_location from;
    tn_stream stream;
    uint32_t kind; /* enum tn_action_kind */
    uint64_t ended_ns;
};
void field_act(struct field_action *a, struct spec *f, tn_manager *m);

/**
 * Stop one thread at points of the library (TN_CHECKS builds; otherwise field_can_stop() is false).
 * The thread calls field_stop_here() first; from then on it stops at each point of the kinds in
 * `points` (bits 1 << enum tn__point).
 */
bool field_can_stop(void);
void field_stop_begin(unsigned points);
void field_stop_here(void);
/** Wait until it stands at its n-th stop (from 1). */
void field_stop_wait(unsigned n);
/** Let it go on. */
void field_stop_go(void);
void field_stop_end(void);

/* ---- The end of every case --------------------------------------------------------------- */

/** used = sum of the charges, reserved = sum of the reservations, at every location; nothing is
 * leased, held or pending; if it is the only manager, live blocks of the devices are
 * materializations, and pinned bytes are installed + idle + ring; no violation. */
void field_conserved(struct spec *f, tn_manager *m);

#endif
