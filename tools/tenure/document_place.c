/* SPDX-License-Identifier: MIT */
#include "document_place.h"

#include <string.h>

static const char *skip_blank(const char *at) { return at + strspn(at, " \t\r\n"); }

/* From the opening quote to what follows the closing one. */
static const char *skip_string(const char *at) {
    for (at++; *at != '"' && *at != '\0'; at++) {
        at += *at == '\\' && at[1] != '\0';
    }
    return *at == '"' ? at + 1 : at;
}

/* Of any depth, without recursion. */
static const char *skip_value(const char *at) {
    size_t depth = 0;

    do {
        at = skip_blank(at);
        switch (*at) {
        case '"':
            at = skip_string(at);
            break;
        case '{':
        case '[':
            depth++;
            at++;
            break;
        case '}':
        case ']':
            depth--;
            at++;
            break;
        case ',':
        case ':':
            at++;
            break;
        case '\0':
            return at;
        default:
            at += strcspn(at, ",:]}[{\" \t\r\n");
        }
    } while (depth > 0);
    return at;
}

/* From a name to its value. */
static const char *skip_name(const char *at) {
    at = skip_blank(skip_string(at));
    return skip_blank(*at == ':' ? at + 1 : at);
}

/* From an object or list to its member's name, or to its element. */
static const char *enter(const char *at, size_t ordinal) {
    bool named = *at == '{';

    at = skip_blank(at + 1);
    for (size_t i = 0; i < ordinal && *at != '\0'; i++) {
        at = skip_blank(skip_value(named ? skip_name(at) : at));
        at = skip_blank(*at == ',' ? at + 1 : at);
    }
    return at;
}

static struct place place_of(const char *text, const char *at) {
    struct place place = {1, 1};

    for (; text < at; text++) {
        if (*text == '\n') {
            place.line++;
            place.column = 1;
        } else {
            place.column += ((unsigned char)*text & 0xc0) != 0x80; /* begins a character */
        }
    }
    return place;
}

struct place place_find(const char *text, const size_t *way, size_t depth, bool at_name) {
    const char *at = skip_blank(text);

    for (size_t i = 0; i < depth; i++) {
        bool named = *at == '{';

        at = enter(at, way[i]);
        if (named && !(at_name && i + 1 == depth)) {
            at = skip_name(at);
        }
    }
    return place_of(text, at);
}
