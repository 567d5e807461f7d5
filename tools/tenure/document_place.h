/* SPDX-License-Identifier: MIT */
/*
 * Where a value stands in a JSON text. jansson keeps no places, so the text is walked again.
 *
 * Threads: any.
 */
#ifndef TENURE_DOCUMENT_PLACE_H
#define TENURE_DOCUMENT_PLACE_H

#include <stdbool.h>
#include <stddef.h>

struct place {
    size_t line, column; /* from 1; columns count characters */
};

/**
 * The beginning of a value.
 *
 * @param text     valid JSON, with NUL.
 * @param way      from the root: which member or element, `depth` times. Each exists.
 * @param at_name  of the last one the member's name instead of its value.
 */
struct place place_find(const char *text, const size_t *way, size_t depth, bool at_name);

#endif
