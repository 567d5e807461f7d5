/* SPDX-License-Identifier: MIT */
#include "workload_build.h"

#include "base.h"
#include "intern.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool build_fail(struct build *build, const char *format, ...) {
    va_list arguments;

    if (build->error[0] == '\0') {
        va_start(arguments, format);
        vsnprintf(build->error, sizeof build->error, format, arguments);
        va_end(arguments);
    }
    return false;
}

/* *sum += bytes, within INT64_MAX (W3). */
static bool add_bytes(struct build *build, uint64_t *sum, uint64_t bytes, const char *what) {
    if (bytes > INT64_MAX - *sum) {
        return build_fail(build, "the bytes of %s add up to more than 64 bits hold", what);
    }
    *sum += bytes;
    return true;
}

static bool append_value(struct build *build, const char *id, size_t length,
                         struct workload_value value) {
    static const char *const plural[KIND_COUNT] = {"the keys", "the plaintexts", "the ciphertexts"};
    struct workload *work = build->work;
    size_t index = work->value_count;
    size_t wanted = index + 1;
    struct workload_figures *figures = &work->figures;

    if (index >= INTERN_NONE - 1) {
        return build_fail(build, "more than %u values", INTERN_NONE - 1);
    }
    if (!add_bytes(build, &figures->bytes[value.kind], value.bytes, plural[value.kind])) {
        return false;
    }
    if (value.kind == KIND_CIPHERTEXT &&
        !add_bytes(build, &build->live_ciphertext_bytes, value.bytes, "the live ciphertexts")) {
        return false;
    }
    value.id = intern_text(work->ids, intern_add(work->ids, id, length));
    work->values =
        memory_reserve(work->values, &build->value_capacity, wanted, sizeof *work->values);
    build->state = memory_reserve(build->state, &build->state_capacity, wanted, 1);
    build->key_read = memory_reserve(build->key_read, &build->key_read_capacity, wanted, 1);
    build->is_output = memory_reserve(build->is_output, &build->is_output_capacity, wanted, 1);
    build->last_op =
        memory_reserve(build->last_op, &build->last_op_capacity, wanted, sizeof *build->last_op);
    work->values[index] = value;
    build->state[index] = STATE_LIVE;
    build->key_read[index] = build->is_output[index] = 0;
    build->last_op[index] = 0;
    figures->count[value.kind]++;
    work->value_count = wanted;
    return true;
}

bool build_value(struct build *build, const char *id, size_t id_length,
                 struct workload_value value) {
    if (build->work->op_count > 0) {
        return build_fail(build, "declares %s after the first operation", id);
    }
    if (intern_find(build->work->ids, id, id_length) != INTERN_NONE) {
        return build_fail(build, "%s is declared twice", id);
    }
    if (value.bytes == 0) {
        return build_fail(build, "%s has no bytes", id);
    }
    value.declared = true;
    build->work->figures.declared_count++;
    return append_value(build, id, id_length, value);
}

/* The stage of the operation that is being added: the last one, or a new one. */
static uint32_t stage_for(struct build *build, const char *name) {
    struct workload *work = build->work;
    struct workload_stage *last =
        work->stage_count == 0 ? NULL : &work->stages[work->stage_count - 1];

    /* Interned: the same text is the same pointer. */
    if (last == NULL || last->name != name) {
        work->stages = memory_reserve(work->stages, &build->stage_capacity, work->stage_count + 1,
                                      sizeof *work->stages);
        work->stages[work->stage_count++] =
            (struct workload_stage){.name = name, .first_op = (uint32_t)work->op_count};
    }
    return (uint32_t)(work->stage_count - 1);
}

static const char *named(struct workload *work, const char *name) {
    return intern_text(work->names, intern_add(work->names, name, strlen(name)));
}

bool build_op(struct build *build, const char *name, const char *stage, uint64_t workspace_bytes) {
    struct workload *work = build->work;
    struct workload_op op = {.workspace_bytes = workspace_bytes};
    struct workload_stage *its_stage = NULL;

    if (work->op_count >= UINT32_MAX - 1) {
        return build_fail(build, "more than %u operations", UINT32_MAX - 1);
    }
    op.name = named(work, name);
    op.stage = stage_for(build, named(work, stage));
    op.reads.first = (uint32_t)work->ref_count;
    its_stage = &work->stages[op.stage];
    its_stage->op_count++;
    if (workspace_bytes > its_stage->workspace_bytes) {
        its_stage->workspace_bytes = workspace_bytes;
    }
    work->ops = memory_reserve(work->ops, &build->op_capacity, work->op_count + 1, sizeof op);
    work->ops[work->op_count] = op;
    return true;
}

static bool add_ref(struct build *build, struct workload_refs *to, uint32_t value) {
    struct workload *work = build->work;

    if (work->ref_count >= UINT32_MAX - 1) {
        return build_fail(build, "more than %u reads, writes and frees", UINT32_MAX - 1);
    }
    work->refs =
        memory_reserve(work->refs, &build->ref_capacity, work->ref_count + 1, sizeof *work->refs);
    if (to->count == 0) {
        to->first = (uint32_t)work->ref_count;
    }
    work->refs[work->ref_count++] = value;
    to->count++;
    return true;
}

bool build_read(struct build *build, const char *id, size_t length) {
    struct workload *work = build->work;
    struct workload_op *op = &work->ops[work->op_count];
    uint32_t value = intern_find(work->ids, id, length);

    if (value == INTERN_NONE) {
        return build_fail(build, "reads %s, which was never made", id);
    }
    if (build->state[value] == STATE_FREED) {
        return build_fail(build, "reads %s after it was freed", id);
    }
    if (build->last_op[value] == work->op_count + 1) {
        return build_fail(build, "reads %s twice", id);
    }
    build->last_op[value] = (uint32_t)work->op_count + 1;
    if (work->values[value].kind == KIND_KEY) {
        build->key_read[value] = 1;
    }
    if (work->values[value].kind == KIND_PLAINTEXT) {
        work->figures.plaintext_reads++;
        if (!add_bytes(build, &work->figures.plaintext_read_bytes, work->values[value].bytes,
                       "the plaintexts read")) {
            return false;
        }
    }
    return add_ref(build, &op->reads, value);
}

bool build_write(struct build *build, const char *id, size_t length, uint64_t bytes) {
    struct workload *work = build->work;
    struct workload_value value = {.bytes = bytes, .kind = KIND_CIPHERTEXT};

    if (intern_find(work->ids, id, length) != INTERN_NONE) {
        return build_fail(build, "writes %s, which exists already", id);
    }
    if (bytes == 0) {
        return build_fail(build, "writes %s without bytes", id);
    }
    if (!append_value(build, id, length, value) ||
        !add_bytes(build, &work->figures.written_bytes, bytes, "the values written")) {
        return false;
    }
    return add_ref(build, &work->ops[work->op_count].writes, (uint32_t)(work->value_count - 1));
}

static void raise_to(uint64_t *peak, uint64_t value) {
    if (value > *peak) {
        *peak = value;
    }
}

bool build_peak(struct build *build) {
    struct workload *work = build->work;
    const struct workload_op *op = &work->ops[work->op_count];
    uint64_t both = build->live_ciphertext_bytes;

    if (!add_bytes(build, &both, op->workspace_bytes, "live ciphertexts and workspace")) {
        return false;
    }
    raise_to(&work->figures.peak_ciphertext_bytes, build->live_ciphertext_bytes);
    raise_to(&work->figures.peak_workspace_bytes, op->workspace_bytes);
    raise_to(&work->figures.peak_both_bytes, both);
    return true;
}

bool build_free(struct build *build, const char *id, size_t length) {
    struct workload *work = build->work;
    uint32_t value = intern_find(work->ids, id, length);

    if (value == INTERN_NONE) {
        return build_fail(build, "frees %s, which was never made", id);
    }
    if (work->values[value].kind != KIND_CIPHERTEXT) {
        return build_fail(build, "frees %s, which is a %s", id,
                          workload_kind_name(work->values[value].kind));
    }
    if (build->state[value] == STATE_FREED) {
        return build_fail(build, "frees %s twice", id);
    }
    build->state[value] = STATE_FREED;
    build->live_ciphertext_bytes -= work->values[value].bytes;
    return add_ref(build, &work->ops[work->op_count].frees, value);
}

void build_op_end(struct build *build) { build->work->op_count++; }

bool build_output(struct build *build, const char *id, size_t length) {
    struct workload *work = build->work;
    uint32_t value = intern_find(work->ids, id, length);

    if (value == INTERN_NONE || build->state[value] == STATE_FREED) {
        return build_fail(build, "the output %s does not exist at the end", id);
    }
    if (build->is_output[value]) {
        return build_fail(build, "the output %s is named twice", id);
    }
    build->is_output[value] = 1;
    return add_ref(build, &work->outputs, value);
}

bool build_end(struct build *build) {
    const struct workload *work = build->work;

    build->line = 0;
    if (!build->has_outputs) {
        return build_fail(build, "ends without an outputs line: truncated?");
    }
    for (size_t i = 0; i < work->value_count; i++) {
        const struct workload_value *value = &work->values[i];

        if (!value->declared && build->state[i] == STATE_LIVE && !build->is_output[i]) {
            return build_fail(build, "%s is neither freed nor an output", value->id);
        }
        if (value->kind == KIND_KEY && !build->key_read[i]) {
            return build_fail(build, "declares the key %s, which no operation reads", value->id);
        }
    }
    return true;
}
