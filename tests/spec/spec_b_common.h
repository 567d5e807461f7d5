/* SPDX-License-Identifier: MIT */
/*
 * More helpers for the specification's cases: second threads, and a check of everything that must
 * hold in every snapshot. None of these functions asserts, so that
 * callbacks and workers may use them; they return NULL or the text of what is wrong.
 */
#ifndef SPEC_B_COMMON_H
#define SPEC_B_COMMON_H

#include "spec_common.h"

#include <pthread.h>

/* ---- Things that are none ------------------------------------------------------------------- */

/** What C has for "not a handle", "not a stream". */
#define NOT_A_HANDLE ((tn_handle){0, 0, NULL})
tn_stream spec_b_not_a_stream(void);

/* ---- Calls that free what was refused ------------------------------------------------------- */

/** Adopt a fresh tt_v at P. */
tn_status spec_b_adopt(tn_manager *m, tn_handle *out);
/** Ensure, without a stream or report, and the like. */
static inline tn_status spec_b_ensure(tn_manager *m, tn_handle h, tn_location at) {
    return tn_manager_ensure(m, h, at, NULL, NULL);
}
/** Take a snapshot and drop it. */
tn_status spec_b_snapshot(tn_manager *m);
/** Read the version and forget it. */
static inline tn_status spec_b_version(tn_manager *m) {
    uint64_t number;
    return tn_manager_state_version(m, &number);
}

/* ---- Second threads ------------------------------------------------------------------------- */

/** One thread; the body returns NULL or a failure text. */
struct spec_b_thread {
    pthread_t thread;
    const char *(*body)(void *arg);
    void *arg;
    const char *text;
    atomic_bool done;
};

void spec_b_start(struct spec_b_thread *t, const char *(*body)(void *arg), void *arg);
/** Join it; what the body returned. */
const char *spec_b_join(struct spec_b_thread *t);
/** Wait until `flag` is set, at most `ms`; whether it is. */
bool spec_b_wait(atomic_bool *flag, unsigned ms);
/** Let other threads run for about that long: only where nothing tells that a thread waits. */
void spec_b_sleep(unsigned ms);

/** Long enough for anything that must happen on a crowded machine. */
#define SPEC_B_PATIENCE_MS 20000u

/* ---- Three ways ----------------------------------------------------------------------------- */

/** Table entries: serial, concurrent, and concurrent with the reaper thread. */
#define SPEC_THREE_WAYS(test)                                                                      \
    {#test, test, spec_b_setup_serial, spec_teardown, NULL},                                       \
        {#test "_concurrent", test, spec_b_setup_concurrent, spec_teardown, NULL}, {               \
#test "_reaper", test, spec_b_setup_reaper, spec_teardown, NULL                            \
    }
int spec_b_setup_serial(void **state);
int spec_b_setup_concurrent(void **state);
int spec_b_setup_reaper(void **state);
/** A manager of the current way, with an unlimited trace. */
tn_manager *spec_b_manager(struct spec *f, const tn_budget *budgets, size_t count);

/* ---- Truths of every snapshot --------------------------------------------------------------- */

/**
 * What M51, M44, M229 and M254 say of one snapshot. If it is not exact, its sums are left out
 * (D10).
 */
const char *spec_b_check_snapshot(const tn_snapshot *s);
/** Of a fresh snapshot and of the trace. */
const char *spec_b_check(tn_manager *m);

#endif
