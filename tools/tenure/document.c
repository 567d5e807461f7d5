/* SPDX-License-Identifier: MIT */
#include "document.h"

#include "base.h"
#include "document_place.h"
#include "options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES_MOST = 256 * 1024 * 1024, DEPTH_MOST = 16 };

/* ---- Reading ---- */

static bool fail_file(const struct document *document, const char *why) {
    complain("%s: %s", document->path, why);
    return false;
}

static bool read_text(struct document *document, FILE *file) {
    size_t capacity = 0;
    size_t got = 0;

    do {
        document->text =
            memory_reserve(document->text, &capacity, document->length + 65536, sizeof(char));
        got = fread(document->text + document->length, 1, 65535, file);
        document->length += got;
        if (document->length > FILE_BYTES_MOST) {
            return fail_file(document, "is larger than 256 MiB");
        }
    } while (got > 0);
    document->text[document->length] = '\0';
    if (ferror(file)) {
        return fail_file(document, strerror(errno));
    }
    return document->length > 0 || fail_file(document, "is empty");
}

static bool parse(struct document *document) {
    json_error_t error;

    document->root = json_loadb(document->text, document->length, JSON_REJECT_DUPLICATES, &error);
    if (document->root != NULL) {
        return true;
    }
    complain("%s:%d:%d: %s: %s", document->path, error.line < 1 ? 1 : error.line,
             error.column < 1 ? 1 : error.column,
             json_error_code(&error) == json_error_numeric_overflow ? "a number above 64 bits"
                                                                    : "not JSON",
             error.text);
    return false;
}

bool document_open(struct document *document, const char *path) {
    FILE *file = fopen(path, "r");
    bool good = false;

    *document = (struct document){.path = text_copy(path)};
    if (file == NULL) {
        return fail_file(document, strerror(errno));
    }
    good = read_text(document, file);
    fclose(file);
    return good && parse(document);
}

void document_close(struct document *document) {
    json_decref(document->root);
    free(document->path);
    free(document->text);
    *document = (struct document){0};
}

struct node document_root(const struct document *document) {
    return (struct node){.document = document, .json = document->root};
}

/* ---- Complaints ---- */

/* "plan.enter[2].at"; "" for the root. */
static void describe_way(const struct node *node, char *text, size_t bytes) {
    size_t used = 0;

    text[0] = '\0';
    if (node->up == NULL) {
        return;
    }
    describe_way(node->up, text, bytes);
    used = strlen(text);
    if (node->name == NULL) {
        snprintf(text + used, bytes - used, "[%zu]", node->ordinal);
    } else {
        snprintf(text + used, bytes - used, "%s%.64s", used > 0 ? "." : "", node->name);
    }
}

/* The ordinals from the root to the node; their number. */
static size_t way_to(const struct node *node, size_t way[DEPTH_MOST]) {
    size_t depth = 0;

    if (node->up == NULL) {
        return 0;
    }
    depth = way_to(node->up, way);
    if (depth < DEPTH_MOST) { /* no file that is read goes deeper */
        way[depth++] = node->ordinal;
    }
    return depth;
}

/* `about`: whose way is told; `node` itself, or what it is a member of. */
static bool fail_at(const struct node *node, const struct node *about, const char *text) {
    size_t way[DEPTH_MOST];
    size_t depth = way_to(node, way);
    struct place place = place_find(node->document->text, way, depth, about != node);
    char reached[512];

    describe_way(about, reached, sizeof reached);
    complain("%s:%zu:%zu: %s%s%s", node->document->path, place.line, place.column, reached,
             reached[0] == '\0' ? "" : ": ", text);
    return false;
}

static bool fail_unknown(const struct node *member) {
    char text[128];

    snprintf(text, sizeof text, "unknown member \"%.64s\"", member->name);
    return fail_at(member, member->up, text);
}

bool node_fail(const struct node *node, const char *format, ...) {
    char text[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return fail_at(node, node, text);
}

/* ---- Members ---- */

size_t node_count(const struct node *node) {
    return json_is_array(node->json) ? json_array_size(node->json) : json_object_size(node->json);
}

struct node node_element(const struct node *list, size_t ordinal) {
    return (struct node){.document = list->document,
                         .json = json_array_get(list->json, ordinal),
                         .up = list,
                         .ordinal = ordinal};
}

struct node node_member_at(const struct node *object, size_t ordinal) {
    void *at = json_object_iter(object->json);

    for (size_t i = 0; i < ordinal; i++) {
        at = json_object_iter_next(object->json, at);
    }
    return (struct node){.document = object->document,
                         .json = json_object_iter_value(at),
                         .up = object,
                         .name = json_object_iter_key(at),
                         .ordinal = ordinal};
}

bool node_member(const struct node *object, const char *name, struct node *out) {
    size_t ordinal = 0;

    for (void *at = json_object_iter(object->json); at != NULL;
         at = json_object_iter_next(object->json, at), ordinal++) {
        if (strcmp(json_object_iter_key(at), name) == 0) {
            *out = (struct node){.document = object->document,
                                 .json = json_object_iter_value(at),
                                 .up = object,
                                 .name = json_object_iter_key(at),
                                 .ordinal = ordinal};
            return true;
        }
    }
    return false;
}

static bool has_form(const struct node *node, enum member_form form) {
    switch (form) {
    case FORM_OBJECT:
        return json_is_object(node->json) || node_fail(node, "is not an object");
    case FORM_LIST:
        return json_is_array(node->json) || node_fail(node, "is not a list");
    case FORM_TEXT:
        return json_is_string(node->json) || node_fail(node, "is not a string");
    case FORM_WHOLE:
        return json_is_integer(node->json) || node_fail(node, "is not a whole number");
    case FORM_BYTES:
        return json_is_integer(node->json) || json_is_string(node->json) ||
               node_fail(node, "is not a number of bytes such as 4096 or \"64MiB\"");
    default:
        return json_is_boolean(node->json) || node_fail(node, "is not true or false");
    }
}

static bool is_known(const char *name, const struct member *members, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, members[i].name) == 0) {
            return true;
        }
    }
    return false;
}

bool node_has_members(const struct node *object, const struct member *members, size_t count) {
    struct node member;

    if (!has_form(object, FORM_OBJECT)) {
        return false;
    }
    for (size_t i = 0; i < json_object_size(object->json); i++) {
        member = node_member_at(object, i);
        if (!is_known(member.name, members, count)) {
            return fail_unknown(&member);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (!node_member(object, members[i].name, &member)) {
            if (!members[i].optional) {
                return node_fail(object, "has no \"%s\"", members[i].name);
            }
        } else if (!has_form(&member, members[i].form)) {
            return false;
        }
    }
    return true;
}

/* ---- Values ---- */

bool node_text(const struct node *node, const char **out) {
    const char *text = json_string_value(node->json);

    if (!has_form(node, FORM_TEXT)) {
        return false;
    }
    if (text[strspn(text, " \t\r\n\v\f")] == '\0') {
        return node_fail(node, "is blank");
    }
    if (strlen(text) > 255) {
        return node_fail(node, "is longer than 255 bytes");
    }
    *out = text;
    return true;
}

bool node_whole(const struct node *node, uint64_t least, uint64_t most, uint64_t *out) {
    json_int_t value = json_integer_value(node->json);

    if (!has_form(node, FORM_WHOLE)) {
        return false;
    }
    if (value < 0 || (uint64_t)value < least || (uint64_t)value > most) {
        return node_fail(node, "%lld is not from %llu to %llu", (long long)value,
                         (unsigned long long)least, (unsigned long long)most);
    }
    *out = (uint64_t)value;
    return true;
}

bool node_bytes(const struct node *node, uint64_t *out) {
    if (json_is_string(node->json)) {
        return bytes_parse(json_string_value(node->json), out) ||
               node_fail(node, "\"%s\" is not a number of bytes such as \"64MiB\"",
                         json_string_value(node->json));
    }
    if (!has_form(node, FORM_BYTES)) {
        return false;
    }
    if (json_integer_value(node->json) < 0) {
        return node_fail(node, "%lld bytes are negative",
                         (long long)json_integer_value(node->json));
    }
    *out = (uint64_t)json_integer_value(node->json);
    return true;
}

bool node_location_named(const struct node *node, const char *name, tn_location *out) {
    if (strcmp(name, "pageable-host") == 0) {
        *out = tn_location_pageable();
        return true;
    }
    if (strcmp(name, "pinned-host") == 0) {
        *out = tn_location_pinned();
        return true;
    }
    return (strncmp(name, "cuda:", 5) == 0 &&
            tn_location_make(TN_LOCATION_CUDA, name, out) == TN_OK) ||
           node_fail(node, "\"%s\" is not pageable-host, pinned-host or cuda:N with N up to %u",
                     name, TN_CUDA_INDEX_MAX);
}

bool node_location(const struct node *node, tn_location *out) {
    const char *name = NULL;

    return node_text(node, &name) && node_location_named(node, name, out);
}
