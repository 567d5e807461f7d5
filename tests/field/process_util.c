/* SPDX-License-Identifier: MIT */
#include "process_util.h"

#include <stdio.h>
#include <stdlib.h>

const char *process_path(const char *name) {
    const char *path = getenv(name);
    return path && *path ? path : NULL;
}

static void show(const char *path) {
    char line[512];
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        print_error("    %s", line);
    if (file)
        fclose(file);
}

void process_run(const char *variables, const char *command) {
    char *out = tn_test_text("%s/out", tn_test_tmpdir());
    char *line =
        tn_test_text("env -u TN_RESULTS_DIR -u TN_TEST %s %s >%s 2>&1", variables, command, out);
    int code = system(line);
    if (code) {
        print_error("%s\n  ended with %d:\n", line, code);
        show(out);
    }
    free(line);
    free(out);
    assert_int_equal(code, 0);
}
