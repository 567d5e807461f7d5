/* SPDX-License-Identifier: MIT */
/* Workload files: any bytes are a workload that keeps its invariants, or an error with a text. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "workload.h"

static void check_refs(const struct workload *w, struct workload_refs refs) {
    if (refs.first > w->ref_count || refs.count > w->ref_count - refs.first)
        fuzz_found("a stretch of references is outside the workload");
    for (uint32_t i = 0; i < refs.count; i++)
        if (w->refs[refs.first + i] >= w->value_count) /* W1 */
            fuzz_found("an operation names a value that is not there");
}

static void check(const struct workload *w) {
    uint64_t bytes = 0;
    if (!w->name || !w->origin || !w->path)
        fuzz_found("a workload without names");
    for (size_t i = 0; i < w->value_count; i++)
        if (!w->values[i].id || (int)w->values[i].kind >= KIND_COUNT || w->values[i].bytes == 0 ||
            __builtin_add_overflow(bytes, w->values[i].bytes, &bytes) || bytes > INT64_MAX)
            fuzz_found("a value without id, kind or bytes, or too many bytes (W3)");
    for (size_t i = 0; i < w->op_count; i++) {
        check_refs(w, w->ops[i].reads);
        check_refs(w, w->ops[i].writes);
        check_refs(w, w->ops[i].frees);
        if (!w->ops[i].name || w->ops[i].stage >= w->stage_count)
            fuzz_found("an operation without name or stage");
    }
    check_refs(w, w->outputs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *error = NULL;
    fuzz_quiet();
    struct workload *w = workload_load(fuzz_file(data, size), &error);
    if (w)
        check(w);
    else if (!error || !strstr(error, ": "))
        fuzz_found("no workload and no error");
    workload_destroy(w);
    free(error);
    return 0;
}
