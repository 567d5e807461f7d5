/* SPDX-License-Identifier: MIT */
/*
 * A JSON file whose errors have a place: every complaint about a value in it begins with
 * "file:line:column: ", and says how the value is reached ("plan.enter[2].at").
 *
 * A node is a value of the file and the way to it; nodes live on the stack of whoever reads, below
 * the node that they were reached from. The place is looked for in the text only when something is
 * wrong: the file is valid JSON then, and members keep their order.
 *
 * Threads: one at a time.
 */
#ifndef TENURE_DOCUMENT_H
#define TENURE_DOCUMENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenure/tenure.h>

struct document {
    char *path, *text;
    size_t length;
    json_t *root;
};

struct node {
    const struct document *document;
    json_t *json;
    const struct node *up; /* NULL: the root */
    const char *name;      /* as a member of `up`; NULL: an element */
    size_t ordinal;        /* among the members or elements of `up` */
};

/** Reads and parses a file. False after an error line; either way end with document_close(). */
bool document_open(struct document *document, const char *path);
void document_close(struct document *document);
struct node document_root(const struct document *document);

/** Complains about a value; returns false. */
bool node_fail(const struct node *node, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What a member may be. */
enum member_form { FORM_OBJECT, FORM_LIST, FORM_TEXT, FORM_WHOLE, FORM_BYTES, FORM_FLAG };

struct member {
    const char *name;
    enum member_form form;
    bool optional;
};

/** Whether it is an object of these members, each of its form. */
bool node_has_members(const struct node *object, const struct member *members, size_t count);
#define NODE_HAS_MEMBERS(object, members)                                                          \
    node_has_members(object, members, sizeof(members) / sizeof(members)[0])

/** The member of that name; false: there is none. Nothing is complained about. */
bool node_member(const struct node *object, const char *name, struct node *out);
/** The member at a place, whatever its name. */
struct node node_member_at(const struct node *object, size_t ordinal);
struct node node_element(const struct node *list, size_t ordinal);
size_t node_count(const struct node *list_or_object);

/* Each false after an error line. */

/** A text that is not blank and has at most 255 bytes. */
bool node_text(const struct node *node, const char **out);
/** A whole number in the range. */
bool node_whole(const struct node *node, uint64_t least, uint64_t most, uint64_t *out);
/** Bytes: a whole number, or a text such as "64MiB". */
bool node_bytes(const struct node *node, uint64_t *out);
/** A location by its name: "pageable-host", "pinned-host", "cuda:N". */
bool node_location(const struct node *node, tn_location *out);
/** The same for a name that the caller has: the node is what complaints are about. */
bool node_location_named(const struct node *node, const char *name, tn_location *out);

#endif
