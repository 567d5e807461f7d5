/* SPDX-License-Identifier: MIT */
/*
 * What every part of the program uses: exit codes, error lines, memory that never comes back NULL.
 *
 * Threads: any. complain() writes one whole line at a time.
 */
#ifndef TENURE_BASE_H
#define TENURE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    EXIT_GOOD = 0,      /* everything asked for was done */
    EXIT_FAILED = 1,    /* corruption, or a request that failed */
    EXIT_USAGE = 2,     /* wrong usage, or a file that cannot be used */
    EXIT_NO_DEVICE = 3, /* no such device */
    EXIT_INTERRUPTED = 130
};

#define MIB (1024.0 * 1024.0)
#define GIB (1024.0 * MIB)

/** Writes "tenure: TEXT" and a line end to standard error. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Memory for `count` items, zeroed; ends the program with EXIT_USAGE when there is none. Owned. */
void *memory_new(size_t count, size_t bytes_each);
/** Grows `old` to `count` items; the new part is not zeroed. Consumes `old`. */
void *memory_resize(void *old, size_t count, size_t bytes_each);
/** A copy of the string. Owned. */
char *text_copy(const char *text);
/** A copy without control characters, for names from a file that are printed. Owned. */
char *text_printable(const char *text);
/** printf into a new string. Owned. */
char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Makes room in `array` (whose capacity is `*capacity`) for `wanted` items. Returns the array. */
void *memory_reserve(void *array, size_t *capacity, size_t wanted, size_t bytes_each);

/** Flushes standard output: EXIT_GOOD, or EXIT_USAGE with an error line if it could not be written.
 */
int output_finish(void);

#endif
