/* SPDX-License-Identifier: MIT */
/* For field tests that need it: programs run in processes of their own. */
#ifndef PROCESS_UTIL_H
#define PROCESS_UTIL_H

#include "tn_test.h"

/** An environment variable that the build gives these tests; NULL if it does not. */
const char *process_path(const char *name);

/**
 * Run `command` (of the shell) with `variables` ("NAME='value' ...") in its environment, without
 * the variables that choose tests or name result files. Fails the test, and shows what the command
 * printed, unless it ends with 0. Test thread only.
 */
void process_run(const char *variables, const char *command);

#endif
