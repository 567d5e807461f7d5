/* SPDX-License-Identifier: MIT */
/*
 * What the tests of the specification's cases share: a simulated machine, managers, the case
 * notation (`v`, `src`, P, N, C0, C1, budgets, peaks), and short questions to a manager.
 *
 *     static void mc030_fresh_location_is_empty(void **state) {
 *         struct spec *f = *state;
 *         tn_manager *m = MANAGER(f, {P, 64});
 *
 *         assert_peaks(m, P, 0, 0);
 *     }
 *     static const struct CMUnitTest tests[] = {SPEC_BOTH(mc030_fresh_location_is_empty)};
 *     TN_TEST_MAIN("spec.accounting", tests)
 *
 * The machine is `dev:2` in virtual time. Managers reap by hand, keep all discarded values and
 * are of the mode of the table entry (SPEC_SERIAL, SPEC_CONCURRENT, SPEC_BOTH). The teardown
 * destroys managers, streams and machine, and fails the test if payloads, device or pinned memory,
 * events or streams are left over or if the machine saw a violation. All functions fail the test
 * (on the test thread) when a call that they need fails.
 *
 * Include it last: P and N are macros.
 * Snapshots and version reads reap (M162): questions other than `locations` and `trace_*` do too.
 */
#ifndef SPEC_COMMON_H
#define SPEC_COMMON_H

#include "tn_test.h"

#include "cuda_shim.h"
#include "payload.h"
#include "tenure/tenure.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- Locations ------------------------------------------------------------------------------- */

#define P tn_location_pageable()
#define N tn_location_pinned()
#define C0 tn_location_cuda(0)
#define C1 tn_location_cuda(1)
#define C2 tn_location_cuda(2) /* does not exist on the machine */
#define NOWHERE tn_location_none()

/* ---- Fixture --------------------------------------------------------------------------------- */

#define SPEC_MANAGERS_MAX 16
#define SPEC_STREAMS_MAX 32
#define SPEC_SOURCES_MAX 32
#define SPEC_DIAGNOSTIC_KINDS 8

/** `*state` of every test. */
struct spec {
    uint32_t mode; /**< enum tn_mode of the managers made here */
    tn_sim *sim;
    tn_driver *driver;      /**< the machine's, or the CUDA backend over it */
    struct cuda_shim *shim; /**< TN_TEST_DRIVER=shim: the driver under that backend; else NULL */
    tn_manager *managers[SPEC_MANAGERS_MAX];
    size_t manager_count;
    tn_stream streams[SPEC_STREAMS_MAX];
    size_t stream_count;
    tt_source sources[SPEC_SOURCES_MAX];
    size_t source_count;
    uint64_t live; /**< test payloads alive before the test */
    bool lenient;  /**< set it where the test leaves the machine unusable: no leak check */
    atomic_uint warnings[SPEC_DIAGNOSTIC_KINDS]; /**< diagnostics by enum tn_diagnostic_kind */
    char last_warning[256];                      /**< message of the last one */
    tn_location last_warning_at;
    uint64_t last_warning_manager;
};

int spec_setup_serial(void **state);
int spec_setup_concurrent(void **state);
int spec_teardown(void **state);

/** Table entries: a test in one mode, or two entries. The suffix keeps the case number in front. */
#define SPEC_SERIAL(test)                                                                          \
    { #test, test, spec_setup_serial, spec_teardown, NULL }
#define SPEC_CONCURRENT(test)                                                                      \
    { #test "_concurrent", test, spec_setup_concurrent, spec_teardown, NULL }
#define SPEC_BOTH(test) SPEC_SERIAL(test), SPEC_CONCURRENT(test)

/** Replace the machine, before managers and streams are made: `dev:0`, `dev:2 latency=2us`, ... */
void spec_machine(struct spec *f, const char *machine);

/** Skip a test that counts the calls of the simulator's own table, where the CUDA backend makes them:
 * it needs others. */
void spec_own_table(const struct spec *f);

/** A manager with these budgets, in order: MANAGER(f), MANAGER(f, {P, 64}, {C0, 32}). */
#define MANAGER(f, ...)                                                                            \
    spec_manager((f), (const tn_budget[]){__VA_ARGS__},                                            \
                 sizeof((const tn_budget[]){__VA_ARGS__}) / sizeof(tn_budget))
tn_manager *spec_manager(struct spec *f, const tn_budget *budgets, size_t count);

/** The configuration that MANAGER uses, without budgets; change it, then make the manager. */
tn_config spec_config(struct spec *f);
tn_manager *spec_manager_with(struct spec *f, const tn_config *config);

/** Destroy a manager early; the teardown would do it otherwise. */
void spec_destroy(struct spec *f, tn_manager *m);

/** A stream of the test program, destroyed by the teardown. */
tn_stream spec_stream(struct spec *f, uint32_t device);
/** Queue 1 ms of work on it: busy until the clock moves. */
void spec_busy(struct spec *f, tn_stream stream);
/** Let the clock run until nothing is queued. */
void spec_finish(struct spec *f);
/** Whether all work of a stream is complete. */
bool spec_idle(struct spec *f, tn_stream stream);

/** From the n-th call of an entry on, `count` calls (0: all) fail with a status and code. */
void spec_fault(struct spec *f, uint32_t entry, uint64_t nth, uint64_t count, tn_status status,
                int64_t native_code);
/** Disarm all faults; how many calls they hit. */
uint64_t spec_repair(struct spec *f);

/** How many diagnostics of one kind, of all kinds. */
unsigned spec_warnings(struct spec *f, uint32_t kind);
unsigned spec_warnings_all(struct spec *f);

/* ---- Values ---------------------------------------------------------------------------------- */

/* Payloads and sources come from payload.h (tt_...); its failures and hooks are reset after each
 * test, and a payload left over fails it. */

/** A fresh `v`, filled with the pattern of seed 1; owned by the test until adopted. */
tn_payload spec_v(struct spec *f, tn_location at);

/** Adopt a payload; it must succeed. */
tn_handle spec_adopt(tn_manager *m, tn_payload payload, tn_location at, uint32_t replica_mode);
/** Adopt a fresh `v`. */
tn_handle adopt_rep(struct spec *f, tn_manager *m, tn_location at);
tn_handle adopt_exc(struct spec *f, tn_manager *m, tn_location at);

/** A tt_source (seed 1, else all-zero) that lives until the managers are gone; one on the test's
 * stack does not. */
tt_source *spec_source(struct spec *f);
/** Register a source, which must succeed, with spec 32/32 of type tt_type(). */
tn_handle spec_register(tn_manager *m, tt_source *s, tn_location at, uint32_t replica_mode);
/** The same with a spec of one's own. */
tn_handle spec_register_spec(tn_manager *m, tt_source *s, tn_location at,
                             const tn_value_spec *spec);
/** `src`: replicable, source location P. */
tn_handle register_src(tn_manager *m, tt_source *s);

/* ---- Actions that must succeed ------------------------------------------------------------ */

/* Without a transfer stream; they return the report. */
tn_report ensure(tn_manager *m, tn_handle h, tn_location at);
tn_report move(tn_manager *m, tn_handle h, tn_location to);
tn_report move_from(tn_manager *m, tn_handle h, tn_location to, tn_location from);
tn_report drop(tn_manager *m, tn_handle h, tn_location at);
tn_report discard(tn_manager *m, tn_handle h);

tn_lease acquire(tn_manager *m, tn_handle h, tn_location at, tn_stream stream);
tn_hold hold(tn_manager *m, tn_handle h, tn_location at);
tn_reservation reserve(tn_manager *m, tn_location at, uint64_t bytes, const char *label);
void release(const tn_lease *lease);
void release_hold(const tn_hold *h);
void release_reservation(const tn_reservation *r);

/* ---- Questions to a manager ------------------------------------------------------------------ */

/** The state version. */
uint64_t version(tn_manager *m);

/** The row of a tracked location; fails if it is not tracked. */
tn_location_info loc(tn_manager *m, tn_location at);
uint64_t used(tn_manager *m, tn_location at);
uint64_t reserved(tn_manager *m, tn_location at);
uint64_t remaining(tn_manager *m, tn_location at); /**< fails without a budget */

struct spec_peaks {
    uint64_t used;
    uint64_t charged;
};
/** The case notation `peak_used/peak_charged`. */
struct spec_peaks peaks(tn_manager *m, tn_location at);
#define assert_peaks(m, at, peak_used, peak_charged)                                               \
    do {                                                                                           \
        struct spec_peaks spec_peaks_ = peaks((m), (at));                                          \
        assert_int_equal(spec_peaks_.used, (peak_used));                                           \
        assert_int_equal(spec_peaks_.charged, (peak_charged));                                     \
    } while (0)

/** The head of a fresh snapshot. */
tn_snapshot_info info(tn_manager *m);
/** One value of a fresh snapshot. */
tn_value_info value(tn_manager *m, tn_handle h);
/** One materialization; fails if it is absent. */
tn_materialization_info mat(tn_manager *m, tn_handle h, tn_location at);
bool resident(tn_manager *m, tn_handle h, tn_location at);
/** Number of materializations. */
size_t replicas(tn_manager *m, tn_handle h);
/** Exactly these materializations, in installation order: assert_replicas(m, h, P, C1); none:
 * assert_replicas(m, h). */
#define assert_replicas(m, h, ...)                                                                 \
    spec_assert_replicas((m), (h), (const tn_location[]){__VA_ARGS__},                             \
                         sizeof((const tn_location[]){__VA_ARGS__}) / sizeof(tn_location),         \
                         __FILE__, __LINE__)
void spec_assert_replicas(tn_manager *m, tn_handle h, const tn_location *at, size_t count,
                          const char *file, int line);

/** The tracked locations are exactly these, in this order. Works on closed managers too. */
#define assert_locations(m, ...)                                                                   \
    spec_assert_locations((m), (const tn_location[]){__VA_ARGS__},                                 \
                          sizeof((const tn_location[]){__VA_ARGS__}) / sizeof(tn_location),        \
                          __FILE__, __LINE__)
void spec_assert_locations(tn_manager *m, const tn_location *at, size_t count, const char *file,
                           int line);

size_t trace_count(tn_manager *m);
/** The i-th report of the trace, oldest first. */
tn_report trace_at(tn_manager *m, size_t i);

/** What spec_describe() leaves out. */
enum spec_describe_flags {
    SPEC_NO_PEAKS = 1u,  /**< the peaks */
    SPEC_NO_VERSION = 2u /**< the version */
};
/**
 * Everything a snapshot says, as text, but capture time and allocator readings: for "equal before
 * and after". Freed by the caller, or by assert_unchanged().
 */
char *spec_describe(tn_manager *m, unsigned flags);
/** Fail unless the manager still says `before` (with the same flags); frees it. */
#define assert_unchanged(m, before, flags)                                                         \
    do {                                                                                           \
        char *spec_before_ = (before);                                                             \
        char *spec_after_ = spec_describe((m), (flags));                                           \
        assert_string_equal(spec_after_, spec_before_);                                            \
        free(spec_before_);                                                                        \
        free(spec_after_);                                                                         \
    } while (0)

/* ---- Assertions --------------------------------------------------------------------------- */

#define assert_at(a, b) spec_assert_at((a), (b), #a, __FILE__, __LINE__)
void spec_assert_at(tn_location got, tn_location want, const char *text, const char *file,
                    int line);
#define assert_handle(a, b) assert_true(tn_handle_equal((a), (b)))

/** Fields of tn_last_error() after a budget refusal (M50); claimed bytes must be 0. */
#define assert_budget_error(at_, budget_, used_, reserved_, requested_)                            \
    do {                                                                                           \
        const tn_error *spec_e_ = tn_last_error();                                                 \
        assert_int_equal(spec_e_->status, TN_ERR_BUDGET);                                          \
        assert_at(spec_e_->at, (at_));                                                             \
        assert_int_equal(spec_e_->budget_bytes, (budget_));                                        \
        assert_int_equal(spec_e_->used_bytes, (used_));                                            \
        assert_int_equal(spec_e_->reserved_bytes, (reserved_));                                    \
        assert_int_equal(spec_e_->claimed_bytes, 0);                                               \
        assert_int_equal(spec_e_->requested_bytes, (requested_));                                  \
    } while (0)

/** A refused handle and why: enum tn_handle_cause. */
#define assert_handle_error(expr, cause_)                                                          \
    do {                                                                                           \
        assert_status(expr, TN_ERR_HANDLE);                                                        \
        assert_int_equal(tn_last_error()->handle_cause, (cause_));                                 \
    } while (0)

/** E-IN-USE of an action: (active uses, holds, pending). */
#define assert_in_use(expr, uses_, holds_, pending_)                                               \
    do {                                                                                           \
        assert_status(expr, TN_ERR_IN_USE);                                                        \
        assert_int_equal(tn_last_error()->use_count, (uses_));                                     \
        assert_int_equal(tn_last_error()->hold_count, (holds_));                                   \
        assert_int_equal(tn_last_error()->pending_count, (pending_));                              \
    } while (0)

/** E-IN-USE of close: (active leases, pending leases, holds, reservations). */
#define assert_close_in_use(expr, leases_, pending_, holds_, reservations_)                        \
    do {                                                                                           \
        assert_status(expr, TN_ERR_IN_USE);                                                        \
        assert_int_equal(tn_last_error()->active_lease_count, (leases_));                          \
        assert_int_equal(tn_last_error()->pending_lease_count, (pending_));                        \
        assert_int_equal(tn_last_error()->hold_count, (holds_));                                   \
        assert_int_equal(tn_last_error()->reservation_count, (reservations_));                     \
    } while (0)

/** Endpoints and no-op flag of a report (a tn_report lvalue). */
#define assert_report(report_, kind_, no_op_, source_, destination_)                               \
    do {                                                                                           \
        assert_int_equal((report_).action.kind, (kind_));                                          \
        assert_int_equal((report_).no_op, (no_op_));                                               \
        assert_at((report_).source, (source_));                                                    \
        assert_at((report_).destination, (destination_));                                          \
    } while (0)

/** The state version rises by exactly `d` over `statement`. */
#define assert_rises(m, d, statement)                                                              \
    do {                                                                                           \
        uint64_t spec_version_ = version(m);                                                       \
        statement;                                                                                 \
        assert_int_equal(version(m) - spec_version_, (d));                                         \
    } while (0)

#endif
