/* SPDX-License-Identifier: MIT */
/* src/base/lockrank.c: locks go up in rank, and nothing waits or calls out under STATE or above.
 * What must not happen ends the process: it is tried in forked children. */
#include <stdio.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/lockrank.h"
#include "base/thread.h"
#include "tn_test.h"

static tn__mutex low, state_lock, leaf;
static tn__cond changed;

static int group_setup(void **state) {
    (void)state;
    tn__mutex_init(&low, TN__RANK_REGISTRY);
    tn__mutex_init(&state_lock, TN__RANK_STATE);
    tn__mutex_init(&leaf, TN__RANK_LEAF);
    tn__cond_init(&changed);
    return 0;
}

static int group_teardown(void **state) {
    (void)state;
    tn__cond_fini(&changed);
    tn__mutex_fini(&leaf);
    tn__mutex_fini(&state_lock);
    tn__mutex_fini(&low);
    return 0;
}

/* Whether a child that runs `what` dies of a signal; 0 if it comes back. */
static bool dies(void (*what)(void)) {
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        for (int s = 1; s < 32; s++)
            signal(s, SIG_DFL); /* the harness has handlers */
        if (!freopen("/dev/null", "w", stderr))
            _exit(2);
        what();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 2);
    return WIFSIGNALED(status) || WEXITSTATUS(status) != 0;
}

static void lock_downwards(void) {
    tn__lock(&leaf);
    tn__lock(&low);
}

static void lock_twice_the_same_rank(void) {
    static tn__mutex twin = {PTHREAD_MUTEX_INITIALIZER, TN__RANK_LEAF};
    tn__lock(&leaf);
    tn__lock(&twin);
}

static void unlock_in_the_wrong_order(void) {
    tn__lock(&low);
    tn__lock(&leaf);
    tn__unlock(&low);
}

static void wait_under_state(void) {
    tn__lock(&state_lock);
    tn__assert_may_wait("a test");
}

static void wait_under_two_locks(void) {
    tn__lock(&state_lock);
    tn__lock(&leaf);
    (void)tn__cond_wait_ns(&changed, &leaf, 1000);
}

static void claim_a_lock_not_held(void) { tn__assert_locked(&state_lock); }

static void assert_what_is_false(void) { TN_ASSERT(1 + 1 == 3); }

static void upwards(void) {
    tn__lock(&low);
    tn__lock(&state_lock);
    tn__assert_locked(&low);
    tn__assert_locked(&state_lock);
    tn__lock(&leaf);
    tn__unlock(&leaf);
    tn__unlock(&state_lock);
    tn__assert_may_wait("under a low lock");
    tn__unlock(&low);
}

static void broken_rules_end_the_process(void **state) {
    void (*const broken[])(void) = {
        lock_downwards,       lock_twice_the_same_rank, unlock_in_the_wrong_order, wait_under_state,
        wait_under_two_locks, claim_a_lock_not_held,    assert_what_is_false};
    (void)state;
    if (!TN_CHECKS)
        TN_SKIP("ranks are checked in builds with TN_CHECKS=ON only");
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        if (!dies(broken[i]))
            fail_msg("rule %zu is not enforced", i);
    }
}

static void locks_in_ascending_rank_are_fine(void **state) {
    uint64_t before = tn__lock_count();
    (void)state;
    assert_false(dies(upwards));
    upwards();
    assert_int_equal(tn__lock_count() - before, TN_CHECKS ? 3 : 0);
}

static const char *try_it(int index, void *arg) {
    (void)index;
    *(bool *)arg = tn__try_lock(&leaf);
    if (*(bool *)arg)
        tn__unlock(&leaf);
    return NULL;
}

static void try_lock_does_not_wait(void **state) {
    bool got = true;
    (void)state;
    tn__lock(&leaf);
    assert_null_text(tn_test_workers_run(1, try_it, &got));
    assert_false(got);
    tn__unlock(&leaf);
    assert_null_text(tn_test_workers_run(1, try_it, &got));
    assert_true(got);
}

static void timed_wait_ends(void **state) {
    (void)state;
    tn__lock(&leaf);
    assert_false(tn__cond_wait_ns(&changed, &leaf, 1));
    assert_false(tn__cond_wait_ns(&changed, &leaf, 1999999));
    tn__unlock(&leaf);
}

static bool flag;

static const char *wait_or_signal(int index, void *arg) {
    (void)arg;
    tn__lock(&leaf);
    if (index == 0) {
        flag = true;
        tn__cond_broadcast(&changed);
    }
    while (!flag) {
        if (index == 1)
            tn__cond_wait(&changed, &leaf);
        else
            (void)tn__cond_wait_ns(&changed, &leaf, UINT64_C(20000000000));
    }
    tn__unlock(&leaf);
    return NULL;
}

static void broadcast_wakes_all(void **state) {
    (void)state;
    flag = false;
    assert_null_text(tn_test_workers_run(3, wait_or_signal, NULL));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(broken_rules_end_the_process),
    cmocka_unit_test(locks_in_ascending_rank_are_fine),
    cmocka_unit_test(try_lock_does_not_wait),
    cmocka_unit_test(timed_wait_ends),
    cmocka_unit_test(broadcast_wakes_all),
};

TN_TEST_MAIN_FIXTURE("unit.base_lockrank", tests, group_setup, group_teardown)
