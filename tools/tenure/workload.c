/* SPDX-License-Identifier: MIT */
#include "workload.h"

#include "intern.h"

#include <stdlib.h>

void workload_destroy(struct workload *work) {
    if (work == NULL) {
        return;
    }
    free(work->path);
    free(work->name);
    free(work->origin);
    free(work->values);
    free(work->ops);
    free(work->stages);
    free(work->refs);
    intern_destroy(work->ids);
    intern_destroy(work->names);
    free(work);
}

const char *workload_kind_name(enum value_kind kind) {
    static const char *const names[KIND_COUNT] = {"key", "plaintext", "ciphertext"};

    return names[kind];
}
