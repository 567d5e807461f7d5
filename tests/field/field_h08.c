/* SPDX-License-Identifier: MIT */
/* F-H08: the shared library can be loaded late. Each case runs host/host.c in its own process,
 * which is linked to nothing of ours. */
#include "process_util.h"

#include <stdlib.h>

static void run_host(const char *arguments) {
    const char *host = process_path("TN_FIELD_HOST");
    assert_non_null(host);
    char *command = tn_test_text("%s %s", host, arguments);
    process_run("", command);
    free(command);
}

static void f_h08_library_loads_after_72_others(void **state) {
    char *arguments = tn_test_text(
        "--crowd %s %s %s %s", tn_test_tmpdir(), process_path("TN_FIELD_CROWD_DYNAMIC"),
        process_path("TN_FIELD_CROWD_STATIC"), process_path("TN_FIELD_LIBRARY"));
    (void)state;
    run_host(arguments);
    free(arguments);
}

/* Two plug-ins may bring a copy each: they share liburcu, and the threads, but nothing of ours. */
static void f_h08_two_copies_work_side_by_side(void **state) {
    const char *folder = tn_test_tmpdir(), *library = process_path("TN_FIELD_LIBRARY");
    char *copy = tn_test_text("cp %s %s/libtenure-other.so", library, folder);
    char *arguments = tn_test_text("%s %s/libtenure-other.so", library, folder);
    (void)state;
    process_run("", copy);
    run_host(arguments);
    free(copy);
    free(arguments);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(f_h08_library_loads_after_72_others),
    cmocka_unit_test(f_h08_two_copies_work_side_by_side),
};

TN_TEST_MAIN("field.h08", tests)
