/* SPDX-License-Identifier: MIT */
/* src/driver/sim/sim_disk.c: files, their time, their faults, their figures. */
#include "sim_machine.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "driver/sim/sim_priv.h"

static int open_file(const struct machine *m, const char *path, uint32_t flags) {
    int d = tn_sim_file_open(m->sim, path, flags);

    assert_true(d >= 0);
    return d;
}

static tn_sim_disk disk(const struct machine *m) {
    tn_sim_disk figures = {.size = sizeof(figures)};

    assert_ok(tn_sim_read_disk(m->sim, &figures));
    return figures;
}

static void arm_file(const struct machine *m, uint32_t entry, uint32_t flags, tn_status status,
                     int64_t code, uint64_t stall_ns) {
    tn_sim_fault f = TN_SIM_FAULT_INIT;

    f.entry = entry;
    f.flags = flags;
    f.status = status;
    f.native_code = code;
    f.stall_ns = stall_ns;
    assert_ok(tn_sim_fault_arm(m->sim, &f));
}

static void file_reads_what_was_put(void **state) {
    struct machine m = machine_open(NULL);
    char back[16] = "";
    uint64_t bytes = 0;
    int d;

    (void)state;
    assert_ok(tn_sim_file_put(m.sim, "a", "0123456789", 10));
    assert_ok(tn_sim_file_put(m.sim, "b", NULL, 3));
    d = open_file(&m, "a", 0);
    assert_int_equal(tn_sim_file_stat(m.sim, d, &bytes), 0);
    assert_int_equal(bytes, 10);
    assert_int_equal(tn_sim_file_read(m.sim, d, back, 4, 3), 4);
    assert_string_equal(back, "3456");
    assert_int_equal(tn_sim_file_read(m.sim, d, back, 16, 8), 2);
    assert_int_equal(tn_sim_file_read(m.sim, d, back, 16, 10), 0);
    assert_int_equal(tn_sim_file_read(m.sim, d, back, 16, UINT64_MAX), 0);
    /* replaced: the descriptor keeps the old one */
    assert_ok(tn_sim_file_put(m.sim, "a", "x", 1));
    assert_int_equal(tn_sim_file_read(m.sim, d, back, 1, 0), 1);
    assert_int_equal(back[0], '0');
    assert_int_equal(tn_sim_file_close(m.sim, d), 0);
    d = open_file(&m, "a", 0);
    assert_int_equal(tn_sim_file_read(m.sim, d, back, 9, 0), 1);
    assert_int_equal(back[0], 'x');
    assert_int_equal(tn_sim_file_close(m.sim, d), 0);
    machine_close(&m);
}

static void file_written_does_not_grow(void **state) {
    struct machine m = machine_open(NULL);
    char back[4] = "";
    int d;

    (void)state;
    assert_ok(tn_sim_file_put(m.sim, "a", "0123", 4));
    d = open_file(&m, "a", 0);
    assert_int_equal(tn_sim_file_write(m.sim, d, "xyz", 3, 2), 2);
    assert_int_equal(tn_sim_file_read(m.sim, d, back, 4, 0), 4);
    assert_memory_equal(back, "01xy", 4);
    assert_int_equal(tn_sim_file_write(m.sim, d, "xyz", 3, 4), 0);
    assert_int_equal(disk(&m).writes, 2);
    assert_int_equal(disk(&m).bytes_written, 2);
    machine_close(&m); /* an open descriptor goes with the machine */
}

static void file_that_is_none_is_an_errno(void **state) {
    struct machine m = machine_open(NULL);
    uint64_t bytes;
    char b;
    int d;

    (void)state;
    assert_int_equal(tn_sim_file_open(m.sim, "a", 0), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(tn_sim_file_open(m.sim, NULL, 0), -1);
    assert_int_equal(errno, EINVAL);
    assert_ok(tn_sim_file_put(m.sim, "a", NULL, 1));
    assert_int_equal(tn_sim_file_open(m.sim, "a", 2), -1);
    assert_int_equal(errno, EINVAL);
    d = open_file(&m, "a", 0);
    assert_int_equal(tn_sim_file_read(m.sim, d, NULL, 1, 0), -1);
    assert_int_equal(errno, EFAULT);
    assert_int_equal(tn_sim_file_write(m.sim, d, NULL, 1, 0), -1);
    assert_int_equal(errno, EFAULT);
    assert_int_equal(tn_sim_file_stat(m.sim, d, NULL), -1);
    assert_int_equal(errno, EFAULT);
    assert_int_equal(tn_sim_file_close(m.sim, d), 0);
    for (int i = 0; i < 4; i++) {
        const int none[] = {d, d + 1, -1, INT_MIN};

        assert_int_equal(tn_sim_file_close(m.sim, none[i]), -1);
        assert_int_equal(errno, EBADF);
        assert_int_equal(tn_sim_file_read(m.sim, none[i], &b, 1, 0), -1);
        assert_int_equal(errno, EBADF);
        assert_int_equal(tn_sim_file_write(m.sim, none[i], &b, 1, 0), -1);
        assert_int_equal(tn_sim_file_stat(m.sim, none[i], &bytes), -1);
    }
    assert_status(tn_sim_file_put(m.sim, NULL, "x", 1), TN_ERR_KIND);
    assert_status(tn_sim_file_put(NULL, "a", "x", 1), TN_ERR_KIND);
    assert_status(tn_sim_read_disk(m.sim, NULL), TN_ERR_KIND);
    assert_int_equal(disk(&m).open_descriptors, 0);
    machine_close(&m);
}

static void file_without_memory_is_not_made(void **state) {
    struct machine m = machine_open(NULL);

    (void)state;
    for (uint64_t n = 1; n <= 2; n++) {
        tn__sim_fault_alloc(n);
        assert_status(tn_sim_file_put(m.sim, "a", "x", 1), TN_ERR_HOST_MEMORY);
    }
    assert_ok(tn_sim_file_put(m.sim, "a", "x", 1));
    for (uint64_t n = 1; n <= 3; n++) { /* the descriptor, and the table of them */
        tn__sim_fault_alloc(n);
        assert_int_equal(tn_sim_file_open(m.sim, "a", 0), -1);
        assert_int_equal(errno, ENOMEM);
    }
    tn__sim_fault_alloc(0);
    assert_int_equal(tn_sim_file_close(m.sim, open_file(&m, "a", 0)), 0);
    machine_close(&m);
}

static void disk_takes_its_time(void **state) {
    struct machine m = machine_open("disk=1MBps seek=2ms");
    char *back = malloc(10000);
    int d;

    (void)state;
    assert_non_null(back);
    assert_ok(tn_sim_file_put(m.sim, "a", NULL, 10000));
    d = open_file(&m, "a", 0);
    assert_int_equal(now_ms(&m), 2);
    assert_int_equal(tn_sim_file_read(m.sim, d, back, 10000, 0), 10000);
    assert_int_equal(now_ms(&m), 2 + 2 + 10);
    assert_int_equal(tn_sim_file_write(m.sim, d, back, 1000, 0), 1000);
    assert_int_equal(now_ms(&m), 14 + 3);
    assert_int_equal(disk(&m).busy_ns, 17 * MS);
    assert_int_equal(disk(&m).reads, 1);
    assert_int_equal(disk(&m).bytes_read, 10000);
    assert_int_equal(disk(&m).direct_reads, 0);
    free(back);
    machine_close(&m);
}

struct reading {
    struct machine m;
    int descriptor;
};

static const char *read_part(int index, void *argument) {
    struct reading *r = argument;
    char part[1000];

    TN_WORKER_CHECK(tn_sim_file_read(r->m.sim, r->descriptor, part, 1000, (uint64_t)index * 1000) ==
                    1000);
    for (int i = 0; i < 1000; i++)
        TN_WORKER_CHECK(part[i] == 'a' + index);
    return NULL;
}

/* Four threads share one disk, in both kinds of time. */
static void disk_serves_one_after_the_other(void **state) {
    static const char *const machines[] = {"disk=1MBps", "disk=1MBps clock=threads"};
    char content[4000];

    (void)state;
    for (int i = 0; i < 4000; i++)
        content[i] = (char)('a' + i / 1000);
    for (int i = 0; i < 2; i++) {
        struct reading r = {machine_open(machines[i]), -1};
        uint64_t begun;

        assert_ok(tn_sim_file_put(r.m.sim, "a", content, sizeof(content)));
        r.descriptor = open_file(&r.m, "a", 0);
        begun = tn_sim_now_ns(r.m.sim);
        assert_null_text(tn_test_workers_run(4, read_part, &r));
        assert_true(tn_sim_now_ns(r.m.sim) - begun >= 4 * MS);
        if (i == 0)
            assert_int_equal(now_ms(&r.m), 4);
        assert_int_equal(disk(&r.m).busy_ns, 4 * MS);
        machine_close(&r.m);
    }
}

static void fault_of_a_file_is_scripted(void **state) {
    struct machine m = machine_open(NULL);
    char back[8] = "";
    uint64_t bytes;
    int d;

    (void)state;
    assert_ok(tn_sim_file_put(m.sim, "a", "01234567", 8));
    arm_file(&m, TN_SIM_FILE_OPEN, 0, TN_ERR_DRIVER, ENFILE, 0);
    assert_int_equal(tn_sim_file_open(m.sim, "a", 0), -1);
    assert_int_equal(errno, ENFILE);
    arm_file(&m, TN_SIM_FILE_OPEN, 0, TN_OK, 0, 5 * MS); /* slow */
    d = open_file(&m, "a", 0);
    assert_int_equal(now_ms(&m), 5);
    arm_file(&m, TN_SIM_FILE_STAT, 0, TN_ERR_DRIVER, 0, 0);
    assert_int_equal(tn_sim_file_stat(m.sim, d, &bytes), -1);
    assert_int_equal(errno, EIO);
    arm_file(&m, TN_SIM_FILE_READ, TN_SIM_FAULT_SHORT, TN_OK, 0, 0);
    assert_int_equal(tn_sim_file_read(m.sim, d, back, 7, 0), 3);
    arm_file(&m, TN_SIM_FILE_READ, TN_SIM_FAULT_SHORT, TN_OK, 0, 0);
    assert_int_equal(tn_sim_file_read(m.sim, d, back, 1, 0), 1);
    arm_file(&m, TN_SIM_FILE_READ, TN_SIM_FAULT_WRONG, TN_OK, 0, 0);
    assert_int_equal(tn_sim_file_read(m.sim, d, back, 8, 0), 8);
    assert_int_equal((unsigned char)back[0], '0' ^ 0xff);
    assert_memory_equal(back + 1, "1234567", 7);
    arm_file(&m, TN_SIM_FILE_WRITE, 0, TN_ERR_DRIVER, ENOSPC, 0);
    assert_int_equal(tn_sim_file_write(m.sim, d, back, 8, 0), -1);
    assert_int_equal(errno, ENOSPC);
    arm_file(&m, TN_SIM_FILE_CLOSE, 0, TN_ERR_DRIVER, EINTR, 0);
    assert_int_equal(tn_sim_file_close(m.sim, d), -1);
    assert_int_equal(errno, EINTR);
    assert_int_equal(disk(&m).open_descriptors, 0); /* closed all the same */
    assert_int_equal(tn_sim_fault_clear(m.sim), 8);
    assert_int_equal(tn_sim_calls(m.sim, TN_SIM_FILE_OPEN), 2);
    assert_int_equal(disk(&m).opens, 1);
    machine_close(&m);
}

static void direct_reads_are_aligned_and_fail_by_themselves(void **state) {
    struct machine m = machine_open(NULL);
    char *back = aligned_alloc(4096, 8192);
    int direct;
    int plain;

    (void)state;
    assert_non_null(back);
    assert_ok(tn_sim_file_put(m.sim, "a", NULL, 8192));
    direct = open_file(&m, "a", TN_SIM_FILE_DIRECT);
    plain = open_file(&m, "a", 0);
    assert_int_equal(tn_sim_file_read(m.sim, direct, back, 8192, 0), 8192);
    assert_int_equal(tn_sim_file_read(m.sim, direct, back, 4096, 4096), 4096);
    assert_int_equal(tn_sim_file_read(m.sim, direct, back, 4096, 1), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(tn_sim_file_read(m.sim, direct, back + 8, 4096, 0), -1);
    assert_int_equal(tn_sim_file_read(m.sim, direct, back, 100, 0), -1);
    assert_int_equal(disk(&m).direct_reads, 2);
    arm_file(&m, TN_SIM_FILE_READ, TN_SIM_FAULT_DIRECT, TN_ERR_DRIVER, EINVAL, 0);
    assert_int_equal(tn_sim_file_read(m.sim, plain, back, 100, 1), 100);
    assert_int_equal(tn_sim_file_read(m.sim, direct, back, 4096, 0), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(tn_sim_fault_clear(m.sim), 1);
    assert_int_equal(disk(&m).reads, 3);
    free(back);
    machine_close(&m);
}

static void open_from_a_host_function(void *context) {
    struct reading *r = context;

    r->descriptor = tn_sim_file_open(r->m.sim, "a", 0);
    if (r->descriptor == -1)
        r->descriptor = -errno;
}

static void disk_is_not_for_host_functions(void **state) {
    struct reading r = {machine_open("seek=1ms"), 0};
    tn_stream s = stream_on(&r.m, 0);

    (void)state;
    assert_ok(tn_sim_file_put(r.m.sim, "a", NULL, 1));
    assert_ok(r.m.ops->host_function(r.m.self, s, open_from_a_host_function, &r));
    assert_ok(tn_sim_run(r.m.sim));
    assert_int_equal(r.descriptor, -EDEADLK);
    machine_close(&r.m);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(file_reads_what_was_put),
    cmocka_unit_test(file_written_does_not_grow),
    cmocka_unit_test(file_that_is_none_is_an_errno),
    cmocka_unit_test(file_without_memory_is_not_made),
    cmocka_unit_test(disk_takes_its_time),
    cmocka_unit_test(disk_serves_one_after_the_other),
    cmocka_unit_test(fault_of_a_file_is_scripted),
    cmocka_unit_test(direct_reads_are_aligned_and_fail_by_themselves),
    cmocka_unit_test(disk_is_not_for_host_functions),
};

TN_TEST_MAIN("unit.sim_disk", tests)
