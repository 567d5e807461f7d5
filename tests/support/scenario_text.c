/* SPDX-License-Identifier: MIT */
/* The notation of scenario.h, read. */
#include "scenario_text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

void text_bad(const char *what, const char *text) {
    print_error("scenario: not %s: \"%s\"\n", what, text);
    fail();
    abort(); /* fail() does not return */
}

bool text_part(const char **text, char separator, char out[TEXT_MAX]) {
    const char *begin = *text;
    const char *end;
    size_t length;

    if (begin == NULL || *begin == '\0')
        return false;
    end = strchr(begin, separator);
    if (end == NULL)
        end = begin + strlen(begin);
    *text = *end != '\0' ? end + 1 : end;
    while (isspace((unsigned char)*begin))
        begin++;
    while (end > begin && isspace((unsigned char)end[-1]))
        end--;
    length = (size_t)(end - begin);
    if (length == 0 || length >= TEXT_MAX)
        text_bad("a part of a list", begin);
    memcpy(out, begin, length);
    out[length] = '\0';
    return true;
}

size_t text_parts(const char *text, char separator) {
    char part[TEXT_MAX];
    size_t count = 0;

    while (text_part(&text, separator, part))
        count++;
    return count;
}

tn_location world_at(const char *text) {
    unsigned index;
    int end = 0;

    if (strcmp(text, "H") == 0)
        return tn_location_pageable();
    if (strcmp(text, "P") == 0)
        return tn_location_pinned();
    if (sscanf(text, "D%u%n", &index, &end) != 1 || text[end] != '\0')
        text_bad("a location", text);
    return tn_location_cuda(index);
}

text_endpoint text_endpoint_of(const char *text) {
    text_endpoint out;
    char at[8];
    int end = 0;

    if (sscanf(text, "%15[a-z0-9]@%7s%n", out.name, at, &end) != 2 || text[end] != '\0')
        text_bad("an endpoint", text);
    out.at = world_at(at);
    return out;
}

text_bytes text_bytes_of(const char *text, char sign) {
    text_bytes out;
    char at[8];
    char between;
    int end = 0;

    if (sscanf(text, "%7[HPD0-9]%c%" SCNu64 "%n", at, &between, &out.bytes, &end) != 3 ||
        between != sign || text[end] != '\0')
        text_bad("bytes at a location", text);
    out.at = world_at(at);
    return out;
}

const char *text_at(tn_location at) {
    static char names[4][8];
    static unsigned next;
    char *name = names[next++ % 4];

    if (at.kind == TN_LOCATION_PAGEABLE)
        return "H";
    if (at.kind == TN_LOCATION_PINNED)
        return "P";
    if (at.kind == TN_LOCATION_NONE)
        return "*";
    snprintf(name, sizeof(names[0]), "D%" PRIu32, at.index % 1000);
    return name;
}
