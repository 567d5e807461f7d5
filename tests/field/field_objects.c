/* SPDX-License-Identifier: MIT */
/* Field cases: what the library's files refer to. */
#include "process_util.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How many of the names that `command` prints, one a line, are among `names`; each is shown. */
static int count_named(const char *command, const char *const *names, int *out_lines) {
    FILE *lines = popen(command, "r");
    char name[512];
    int found = 0;

    assert_non_null(lines);
    *out_lines = 0;
    while (fscanf(lines, "%511s", name) == 1) {
        ++*out_lines;
        for (int i = 0; names[i]; i++) {
            if (strncmp(name, names[i], strlen(names[i])) == 0) {
                print_error("%s: refers to %s\n", command, name);
                found++;
            }
        }
    }
    assert_int_equal(pclose(lines), 0);
    return found;
}

static int undefined(const char *options, const char *file, const char *const *names, int *lines) {
    char *command = tn_test_text("nm %s %s | sed 's/.* U //; s/.* w //'", options, file);
    int found = count_named(command, names, lines);

    free(command);
    return found;
}

/* ---- F-H09: a hit takes no lock -------------------------------------------------------------- */

/* The files of acquire, lookup, added streams and release. What they call when something else than
 * a hit comes (a first call, a reap) is in other files; abi.hotpath looks at what a hit calls. */
static void f_h09_lease_files_refer_to_no_lock(void **state) {
    static const char *const files[] = {"acquire", "hot", "lookup", "release", "streams"};
    static const char *const locks[] = {"tn__lock", "tn__try_lock", "tn__unlock", "tn__cond",
                                        "pthread_", "sem_",         "mtx_",       NULL};
    const char *folder = process_path("TN_FIELD_OBJECTS");
    int lines;

    (void)state;
    assert_non_null(folder);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char *file = tn_test_text("%s/lifetime/%s.c.o", folder, files[i]);

        assert_int_equal(undefined("-u", file, locks, &lines), 0);
        assert_true(lines > 0);
        free(file);
    }
}

/* ---- F-G06: the driver is gone before the manager -------------------------------------------- */

static void f_g06_library_runs_nothing_at_exit(void **state) {
    static const char *const exits[] = {
        "atexit",        "on_exit",        "__cxa_atexit",      "__cxa_at_quick",
        "at_quick_exit", "pthread_atfork", "__register_atfork", NULL};
    const char *library = process_path("TN_FIELD_LIBRARY");
    char *command;
    unsigned long bytes = 0;
    FILE *told;
    int lines;

    (void)state;
    if (!process_path("TN_FIELD_COUNT"))
        TN_SKIP("an instrumented build has exit handlers of its own");
    assert_int_equal(undefined("-D -u", library, exits, &lines), 0);
    assert_true(lines > 0);
    command =
        tn_test_text("readelf -dW %s | sed -n 's/.*(FINI_ARRAYSZ) *\\([0-9]*\\).*/\\1/p'", library);
    told = popen(command, "r");
    assert_non_null(told);
    if (fscanf(told, "%lu", &bytes) == 1)
        assert_true(bytes <= sizeof(void *)); /* the start-up code's own */
    assert_int_equal(pclose(told), 0);
    free(command);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(f_h09_lease_files_refer_to_no_lock),
    cmocka_unit_test(f_g06_library_runs_nothing_at_exit),
};

TN_TEST_MAIN("field.objects", tests)
