/* SPDX-License-Identifier: MIT */
/*
 * A system that refuses membarrier at run time, as a sandbox does: this program runs itself again
 * under a seccomp filter that answers the call with ENOSYS, and with EPERM. The library, and liburcu
 * under it, fall back to full fences, and leases against removals stay safe (tag [fence]).
 */
#include "leases_torture.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rcu.h"

#define NO_FILTER 99 /* exit status: filters cannot be had here */

/* ---- Inside: with whatever the system offers ------------------------------------------------- */

static void inside_fences_are_what_the_system_offers(void **state) {
    long offered = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    const char *filtered = getenv("TN_TEST_NO_MEMBARRIER");

    (void)state;
    if (filtered) {
        int refused = errno;
        assert_int_equal(offered, -1);
        assert_int_equal(refused, atoi(filtered));
    }
    tn__fence_ready();
    assert_int_equal(tn__load_rlx(&tn__fence_asymmetric),
                     offered > 0 && (offered & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0);
}

static void inside_hot_value(void **state) { tort_hot_value(state); }

static void inside_everything(void **state) { tort_concurrent(state); }

static void inside_last_release(void **state) { tort_last_release(state); }

/* ---- Outside ----------------------------------------------------------------------------------- */

static void run_inside(int refusal) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((uint32_t)refusal & SECCOMP_RET_DATA)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};
    char text[16];

    (void)snprintf(text, sizeof text, "%d", refusal);
    (void)setenv("TN_TEST_NO_MEMBARRIER", text, 1);
    (void)setenv("TN_TEST", "inside_*", 1);
    (void)setenv("TN_TORTURE_SECONDS", "1", 0);
    (void)unsetenv("TN_RESULTS_DIR");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(NO_FILTER);
    (void)execl("/proc/self/exe", "torture_seccomp", (char *)NULL);
    _exit(NO_FILTER - 1);
}

static void runs_where_membarrier_gives(int refusal) {
    int status = -1;
    pid_t pid;

    (void)fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        run_inside(refusal);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_FILTER)
        TN_SKIP("seccomp filters cannot be installed here");
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void without_membarrier_enosys(void **state) {
    (void)state;
    runs_where_membarrier_gives(ENOSYS);
}

static void without_membarrier_eperm(void **state) {
    (void)state;
    runs_where_membarrier_gives(EPERM);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(inside_fences_are_what_the_system_offers),
    cmocka_unit_test(inside_hot_value),
    cmocka_unit_test(inside_last_release),
    cmocka_unit_test(inside_everything),
    cmocka_unit_test(without_membarrier_enosys),
    cmocka_unit_test(without_membarrier_eperm),
};

TN_TEST_MAIN("torture.seccomp", tests)
