/* SPDX-License-Identifier: MIT */
#include "only_keys.h"

#include "base.h"

#include <stdlib.h>

/* The new number of each value; UINT32_MAX: it is out. */
static uint32_t *renumber(struct workload *work) {
    uint32_t *number = memory_new(work->value_count, sizeof *number);
    uint32_t count = 0;

    for (size_t i = 0; i < work->value_count; i++) {
        number[i] = UINT32_MAX;
        if (work->values[i].kind == KIND_KEY) {
            work->values[count] = work->values[i];
            number[i] = count++;
        }
    }
    work->value_count = count;
    return number;
}

static void keep(struct workload *work, const uint32_t *number, struct workload_refs *refs) {
    uint32_t count = 0;

    for (uint32_t i = 0; i < refs->count; i++) {
        uint32_t value = number[work->refs[refs->first + i]];

        if (value != UINT32_MAX) {
            work->refs[refs->first + count++] = value;
        }
    }
    refs->count = count;
}

void workload_only_keys(struct workload *work) {
    uint32_t *number = renumber(work);

    for (size_t i = 0; i < work->op_count; i++) {
        keep(work, number, &work->ops[i].reads);
        work->ops[i].writes.count = work->ops[i].frees.count = 0;
        work->ops[i].workspace_bytes = 0;
    }
    for (size_t i = 0; i < work->stage_count; i++) {
        work->stages[i].workspace_bytes = 0;
    }
    work->outputs.count = 0;
    free(number);
}
