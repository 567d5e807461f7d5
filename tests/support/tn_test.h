/* SPDX-License-Identifier: MIT */
/*
 * What every test program includes: CMocka with its prerequisites, one main macro, the seed,
 * worker threads that never assert, and assertions that know status names.
 *
 *     #include "tn_test.h"
 *     static void lease_empty_is_refused(void **state) { ... assert_status(f(), TN_ERR_VALUE); }
 *     static const struct CMUnitTest tests[] = { cmocka_unit_test(lease_empty_is_refused) };
 *     TN_TEST_MAIN("spec.leases", tests)
 *
 * The environment of a test program:
 *   TN_TEST         glob (`*`, `?`): run only the tests whose name matches; no match is an error
 *   TN_SEED         unsigned 64-bit number, or `random`; the default is fixed, so runs repeat
 *   TN_STOP         1: no further test after one that failed, and no teardown of that one
 *   TN_RESULTS_DIR  existing folder: write <name>.xml there (JUnit form), one <testcase> per test
 *
 * CMocka's state belongs to one thread: assert, skip and mock only on the test thread. Code that
 * runs on other threads returns a text instead (see tn_test_workers_run()).
 */
#ifndef TN_TEST_H
#define TN_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tenure/status.h"

/** Exit status that CTest counts as "skipped"; used when every test that ran was skipped. */
#define TN_TEST_SKIP_EXIT 77

/** Seed of this run: TN_SEED, or a fixed default. Printed with the rerun line of every failure. */
uint64_t tn_test_seed(void);

/** The number in environment variable `name`, or `fallback` when unset, empty or not a number. */
uint64_t tn_test_env_u64(const char *name, uint64_t fallback);

/** Processor time of this thread in nanoseconds: what else the machine does matters less. */
uint64_t tn_test_cpu_ns(void);

/**
 * A fresh empty folder, removed with its contents when the program ends. Each call makes another
 * one; the text stays valid until the program ends. Fails the test when none can be made.
 * Test thread only.
 */
const char *tn_test_tmpdir(void);

/** printf into fresh memory: for the failure texts of workers. Never NULL. */
char *tn_test_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/**
 * Body of a worker. Returns NULL on success, else a text that outlives the thread (a literal, or
 * tn_test_text()). Must not use any CMocka function.
 */
typedef const char *tn_test_worker_fn(int index, void *arg);

/**
 * Run `fn(0..n-1, arg)` on n threads that start together; join them all.
 * Returns the first failure recorded (in time), or NULL. Use: assert_null_text(...).
 */
const char *tn_test_workers_run(int n, tn_test_worker_fn *fn, void *arg);

/**
 * Count threads of one's own that use the body's frame, or what it made by hand and has not undone
 * yet: +1 when it begins, -1 when it is over. A test that fails meanwhile cannot be torn down: the
 * program prints its failure, and ends. Any thread.
 */
void tn_test_under_way(int change);

/** 1 once any worker of the current tn_test_workers_run() has failed: long loops should stop. */
int tn_test_workers_failed(void);

/** For workers: return the text of a failed condition, with its place, from the worker's body. */
#define TN_WORKER_CHECK(condition)                                                                 \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return tn_test_text("%s:%d: worker: not true: %s", __FILE__, __LINE__, #condition);    \
    } while (0)

/** For workers: the same for a status, with both names. */
#define TN_WORKER_STATUS(expr, expected)                                                           \
    do {                                                                                           \
        tn_status tn_worker_got_ = (tn_status)(expr);                                              \
        tn_status tn_worker_want_ = (tn_status)(expected);                                         \
        if (tn_worker_got_ != tn_worker_want_)                                                     \
            return tn_test_text("%s:%d: worker: %s is %s, expected %s", __FILE__, __LINE__, #expr, \
                                tn_status_name(tn_worker_got_), tn_status_name(tn_worker_want_));  \
    } while (0)

/** Fail unless `expr` returns the status `expected`; prints both names. Test thread only. */
#define assert_status(expr, expected)                                                              \
    tn_test_assert_status_((tn_status)(expr), (tn_status)(expected), #expr, __FILE__, __LINE__)

/** assert_status(expr, TN_OK). */
#define assert_ok(expr) assert_status(expr, TN_OK)

/** Fail and print `text` unless it is NULL: for the result of tn_test_workers_run(). */
#define assert_null_text(text) tn_test_assert_null_text_((text), __FILE__, __LINE__)

/** Skip the current test and say why; a skip must be loud. Test thread only. */
#define TN_SKIP(reason) tn_test_skip_((reason), __FILE__, __LINE__)

#undef skip
#define skip() tn_test_skip_("no reason given", __FILE__, __LINE__)

/** Define main(): run the array `tests` as the group `name` ("<label>.<stem>"). */
#define TN_TEST_MAIN(name, tests) TN_TEST_MAIN_FIXTURE(name, tests, NULL, NULL)

/* Where the same tests are built twice, their results need two names. */
#ifndef TN_TEST_SUITE_SUFFIX
#define TN_TEST_SUITE_SUFFIX ""
#endif

/** The same with a group setup and teardown (CMFixtureFunction, or NULL). */
#define TN_TEST_MAIN_FIXTURE(name, tests, group_setup, group_teardown)                             \
    int main(int argc, char **argv) {                                                              \
        return tn_test_main_(argc, argv, name TN_TEST_SUITE_SUFFIX, (tests),                       \
                             sizeof(tests) / sizeof((tests)[0]), (group_setup), (group_teardown)); \
    }

/* Behind the macros. */
int tn_test_main_(int argc, char **argv, const char *name, const struct CMUnitTest *tests,
                  size_t count, CMFixtureFunction group_setup, CMFixtureFunction group_teardown);
void tn_test_assert_status_(tn_status got, tn_status want, const char *text, const char *file,
                            int line);
void tn_test_assert_null_text_(const char *text, const char *file, int line);
void tn_test_skip_(const char *reason, const char *file, int line);

#endif
