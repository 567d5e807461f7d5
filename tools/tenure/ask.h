/* SPDX-License-Identifier: MIT */
/*
 * What one step of a request needs, before it becomes a request of the controller: values on the
 * device, and bytes there for what it will write.
 *
 * Threads: one at a time per ask.
 */
#ifndef TENURE_ASK_H
#define TENURE_ASK_H

#include "lru.h"

#include <tenure/tenure.h>

/* A value that is needed on the device. */
struct asked {
    tn_handle handle;
    struct item *item; /* NULL: a ciphertext */
    const char *id;
};

struct ask {
    char name[256];           /* of the request */
    uint64_t request, tenant; /* for the log */
    uint64_t op;              /* same, from 1; 0: none */
    struct asked *values;     /* owned */
    size_t count, capacity;
    uint64_t reserve_bytes;    /* on the device; with a label */
    const char *reserve_label; /* NULL: none */
};

/** Begins another one; keeps its memory. */
void ask_begin(struct ask *ask, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ask_value(struct ask *ask, tn_handle handle, struct item *item, const char *id);
void ask_reserve(struct ask *ask, uint64_t bytes, const char *label);
void ask_fini(struct ask *ask);

#endif
