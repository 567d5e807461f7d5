/* SPDX-License-Identifier: MIT */
/*
 * Whose the detail of an error is, and calls in a forked child.
 */
#include "spec_b_common.h"

#include <sys/wait.h>
#include <unistd.h>

static const char *fail_with_value(int index, void *arg) {
    (void)index;
    TN_WORKER_CHECK(tn_last_error() != NULL && tn_last_error()->status == TN_OK);
    TN_WORKER_STATUS(tn_manager_close(arg, 64u), TN_ERR_VALUE);
    TN_WORKER_CHECK(tn_last_error()->status == TN_ERR_VALUE);
    return NULL;
}

static void error_detail_belongs_to_its_thread(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_error kept;

    assert_status(tn_manager_drop(m, v, P, NULL), TN_ERR_OWNERSHIP);
    kept = *tn_last_error();
    assert_null_text(tn_test_workers_run(2, fail_with_value, m));
    ensure(m, v, N); /* a success does not touch it either */
    version(m);
    assert_memory_equal(tn_last_error(), &kept, sizeof kept);
    assert_status(tn_manager_close(m, 64u), TN_ERR_VALUE);
    assert_int_equal(tn_last_error()->status, TN_ERR_VALUE);
    assert_int_equal(tn_last_error()->handle.index, 0); /* nothing of the old one is left */
}

static void error_forked_in_a_child(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    pid_t child = fork();
    int wait_status = 0;

    assert_true(child >= 0);
    if (child == 0) {
        tn_lease lease;
        int bad = spec_b_version(m) != TN_ERR_FORKED;

        bad |= (tn_last_error()->status != TN_ERR_FORKED) << 1;
        bad |= (tn_manager_acquire(m, &v, 1, P, NULL, &lease) != TN_ERR_FORKED) << 2;
        bad |= (spec_b_ensure(m, v, N) != TN_ERR_FORKED) << 3;
        bad |= (spec_b_snapshot(m) != TN_ERR_FORKED) << 4;
        bad |= (tn_manager_close(m, 0) != TN_ERR_FORKED) << 5;
        _exit(bad);
    }
    assert_int_equal(waitpid(child, &wait_status, 0), child);
    assert_true(WIFEXITED(wait_status));
    assert_int_equal(WEXITSTATUS(wait_status), 0);
    ensure(m, v, N); /* the parent goes on */
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(error_detail_belongs_to_its_thread),
    SPEC_BOTH(error_forked_in_a_child),
};

TN_TEST_MAIN("spec.last_error", tests)
