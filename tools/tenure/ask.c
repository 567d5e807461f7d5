/* SPDX-License-Identifier: MIT */
#include "ask.h"

#include "base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void ask_begin(struct ask *ask, const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(ask->name, sizeof ask->name, format, arguments);
    va_end(arguments);
    ask->op = 0;
    ask->count = 0;
    ask->reserve_bytes = 0;
    ask->reserve_label = NULL;
}

void ask_value(struct ask *ask, tn_handle handle, struct item *item, const char *id) {
    ask->values = memory_reserve(ask->values, &ask->capacity, ask->count + 1, sizeof *ask->values);
    ask->values[ask->count++] = (struct asked){.handle = handle, .item = item, .id = id};
}

void ask_reserve(struct ask *ask, uint64_t bytes, const char *label) {
    ask->reserve_bytes = bytes;
    ask->reserve_label = label;
}

void ask_fini(struct ask *ask) {
    free(ask->values);
    *ask = (struct ask){0};
}
