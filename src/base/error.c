/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "base/base_internal.h"
#include "base/thread.h"

/* A thread whose own block cannot be allocated has nowhere to keep a detail: all such threads
 * share this one, which always says the same. */
static tn_error homeless = {
    .size = sizeof(tn_error), .status = TN_ERR_HOST_MEMORY, .message = "host memory is exhausted"};

static tn_error *error_of_thread(void) {
    tn__thread *thread = tn__thread_self();
    return thread ? &thread->error : NULL;
}

static tn_error *begin(tn_status status, const char *format, va_list args) {
    tn_error *error = error_of_thread();
    if (!error)
        return &homeless; /* callers fill further fields: harmless, nobody reads them */
    memset(error, 0, sizeof *error);
    error->size = sizeof *error;
    error->status = (uint32_t)status;
    vsnprintf(error->message, sizeof error->message, format, args);
    return error;
}

tn_error *tn__error(tn_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    tn_error *error = begin(status, format, args);
    va_end(args);
    return error;
}

tn_status tn__fail(tn_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    begin(status, format, args);
    va_end(args);
    return status;
}

tn_error *tn__error_current(void) {
    tn_error *error = error_of_thread();
    return error ? error : &homeless;
}

tn_status tn__error_restore(const tn_error *error) {
    tn_error *own = error_of_thread();
    if (own && own != error)
        *own = *error;
    return (tn_status)error->status;
}

const tn_error *tn_last_error(void) { return tn__error_current(); }

tn_status tn__no_memory(void) { return tn__fail(TN_ERR_HOST_MEMORY, "host memory is exhausted"); }

void tn__assert_failed(const char *what, const char *file, int line) {
    fprintf(stderr, "tenure: %s:%d: invariant does not hold: %s\n", file, line, what);
    __builtin_trap();
}
