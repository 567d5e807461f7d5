/* SPDX-License-Identifier: MIT */
/*
 * F-I02: only our names, and each heap keeps its own. The suites of leases, actions and plans, and a
 * program that loads the shared library, run in three processes: with the C library's heap, with
 * jemalloc in its place, and beside a jemalloc that is not the process's malloc; each time over
 * heap/count.c.
 */
#include "process_util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void f_i02_only_our_names_are_exported(void **state) {
    char name[512];
    int count = 0;
    char *command = tn_test_text("nm -D --defined-only %s", process_path("TN_FIELD_LIBRARY"));
    FILE *names = popen(command, "r");
    (void)state;
    assert_non_null(names);
    while (fscanf(names, "%*s %*s %511s", name) == 1) {
        if (strncmp(name, "TENURE_", strlen("TENURE_")) == 0) /* the version itself */
            continue;
        if (strncmp(name, "tn_", 3) != 0 || name[3] == '_')
            print_error("exported: %s\n", name);
        assert_int_equal(strncmp(name, "tn_", 3), 0);
        assert_int_not_equal(name[3], '_');
        count++;
    }
    assert_int_equal(pclose(names), 0);
    free(command);
    assert_true(count > 50);
}

/* What the heaps of a process told at its end. */
struct told {
    unsigned long blocks, left, foreign; /* heap/count.c */
    unsigned long whole, apart;          /* heap/prefixed.c */
};

static struct told read_told(const char *path) {
    struct told t = {0, 0, 0, 0, 0};
    char line[128];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        struct told one = {0, 0, 0, 0, 0};
        if (sscanf(line, "blocks %lu left %lu foreign %lu", &one.blocks, &one.left, &one.foreign) ==
            3) {
            t.blocks += one.blocks;
            t.foreign += one.foreign;
        } else {
            assert_int_equal(sscanf(line, "prefixed %lu apart %lu", &one.whole, &one.apart), 2);
            t.whole = one.whole;
            t.apart = one.apart;
        }
    }
    assert_int_equal(fclose(file), 0);
    return t;
}

/* Run `command` over the counting heap, with `heap` (or "") beneath or beside it. */
static struct told run_over(const char *heap, const char *more, const char *command) {
    char *file = tn_test_text("%s/told", tn_test_tmpdir());
    char *variables = tn_test_text("%s TN_COUNT_FILE=%s LD_PRELOAD=%s:%s", more, file,
                                   process_path("TN_FIELD_COUNT"), heap);
    process_run(variables, command);
    struct told t = read_told(file);
    free(variables);
    free(file);
    assert_true(t.blocks > 10); /* it was the process's malloc */
    return t;
}

static void run_suites_over(const char *heap, struct told *out_last) {
    const char *programs = process_path("TN_FIELD_PROGRAMS");
    char *host =
        tn_test_text("%s %s", process_path("TN_FIELD_HOST"), process_path("TN_FIELD_LIBRARY"));
    char *leases = tn_test_text("%s/spec_leases", programs);
    char *actions = tn_test_text("%s/spec_actions", programs);
    char *plans = tn_test_text("%s/spec_plans", programs);
    assert_int_equal(run_over(heap, "", leases).foreign, 0);
    assert_int_equal(run_over(heap, "", actions).foreign, 0);
    assert_int_equal(run_over(heap, "", plans).foreign, 0);
    *out_last = run_over(heap, "", host);
    assert_int_equal(out_last->foreign, 0);
    free(host);
    free(leases);
    free(actions);
    free(plans);
}

static const char *heap_or_skip(const char *name) {
    const char *path = process_path(name);
    if (!path)
        TN_SKIP("no jemalloc of this kind, or a build that brings its own malloc");
    return path;
}

static void f_i02_blocks_stay_in_the_heap_of_the_c_library(void **state) {
    struct told t;
    (void)state;
    (void)heap_or_skip("TN_FIELD_COUNT");
    run_suites_over("", &t);
    assert_int_equal(t.whole, 0);
}

static void f_i02_blocks_stay_in_the_shared_jemalloc(void **state) {
    const char *heap = heap_or_skip("TN_FIELD_JEMALLOC");
    struct told t;
    (void)state;
    run_suites_over(heap, &t);
    assert_int_equal(t.whole, 0);
}

static void f_i02_blocks_stay_out_of_a_prefixed_jemalloc(void **state) {
    const char *heap = heap_or_skip("TN_FIELD_PREFIXED");
    struct told t;
    (void)state;
    run_suites_over(heap, &t);
    assert_int_equal(t.whole, 1000); /* as it was left */
    assert_int_equal(t.apart, 1);
}

/* The counting heap notices what it is there for. */
static void f_i02_block_in_the_wrong_heap_is_noticed(void **state) {
    const char *heap = heap_or_skip("TN_FIELD_PREFIXED");
    (void)state;
    assert_int_equal(run_over(heap, "TN_PREFIXED_MIX=1", "ls").foreign, 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(f_i02_only_our_names_are_exported),
    cmocka_unit_test(f_i02_blocks_stay_in_the_heap_of_the_c_library),
    cmocka_unit_test(f_i02_blocks_stay_in_the_shared_jemalloc),
    cmocka_unit_test(f_i02_blocks_stay_out_of_a_prefixed_jemalloc),
    cmocka_unit_test(f_i02_block_in_the_wrong_heap_is_noticed),
};

TN_TEST_MAIN("field.i02", tests)
