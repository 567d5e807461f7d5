/* SPDX-License-Identifier: MIT */
/*
 * Fuzz targets. Each fuzz_<what>.c has the one function that libFuzzer calls; where that is not
 * built, fuzz_main_util.c calls it with the corpus and with mutations of it.
 *
 * A target ends the process (abort, a sanitizer) if it finds something, else it leaves nothing
 * behind: the same bytes do the same again.
 */
#ifndef TN_FUZZ_H
#define TN_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** A path where a file of these bytes can be opened; the next call takes it back. */
const char *fuzz_file(const uint8_t *data, size_t size);

/** What the program would write to standard error is not wanted. */
void fuzz_quiet(void);

/** Ends the process, with a text. */
_Noreturn void fuzz_found(const char *what);

#endif
