/* SPDX-License-Identifier: MIT */
/*
 * Interned strings: each distinct string once, numbered from 0 in the order of first sight.
 *
 * Threads: one at a time while adding; any when nothing is added any more.
 */
#ifndef TENURE_INTERN_H
#define TENURE_INTERN_H

#include <stddef.h>
#include <stdint.h>

#define INTERN_NONE UINT32_MAX

struct intern;

struct intern *intern_create(void);
void intern_destroy(struct intern *all);
/** The number of `text`, which is added if it is new. */
uint32_t intern_add(struct intern *all, const char *text, size_t length);
/** The number of `text`, or INTERN_NONE. */
uint32_t intern_find(const struct intern *all, const char *text, size_t length);
/** The text with that number; lives as long as `all`. */
const char *intern_text(const struct intern *all, uint32_t number);

#endif
