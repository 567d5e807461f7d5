/* SPDX-License-Identifier: MIT */
#include "program.h"

#include "base.h"

#include <inttypes.h>
#include <stdlib.h>

bool program_is_source(const struct program *program, uint32_t value) {
    return program->work->values[value].kind != KIND_CIPHERTEXT;
}

bool program_has_workspace(const struct program *program, const struct workload_op *op) {
    return op->workspace_bytes > 0 && program->stage_bytes[op->stage] > 0;
}

uint64_t program_tenant(const struct program *program, uint32_t value, uint64_t tenant) {
    return program->work->values[value].shared ? TENANT_SHARED : tenant;
}

struct generator program_input(const struct program *program, uint32_t value, uint64_t seed,
                               uint64_t tenant, uint64_t request) {
    struct generator name = content_generator((struct content_name){
        .seed = seed, .tenant = tenant, .id = program->work->values[value].id});

    return generator_seeded(name.state[0] ^ request * UINT64_C(0x9e3779b97f4a7c15));
}

/* Saturates at INT64_MAX, which no machine has. */
static uint64_t plus(uint64_t a, uint64_t b) { return a > INT64_MAX - b ? INT64_MAX : a + b; }

static void raise_to(uint64_t *peak, uint64_t value) {
    if (value > *peak) {
        *peak = value;
    }
}

static void add_value(struct program *program, size_t index) {
    const struct workload_value *value = &program->work->values[index];
    uint64_t bytes = program->value_bytes[index];

    if (value->kind == KIND_CIPHERTEXT) {
        return;
    }
    program->source_bytes = plus(program->source_bytes, bytes);
    if (value->kind == KIND_KEY) {
        program->tenant_key_bytes = plus(program->tenant_key_bytes, bytes);
        raise_to(&program->largest_key_bytes, bytes);
    }
}

/* The bytes of a list of values. */
static uint64_t bytes_of(const struct program *program, struct workload_refs refs, bool sources) {
    uint64_t sum = 0;

    for (uint32_t i = 0; i < refs.count; i++) {
        uint32_t value = program->work->refs[refs.first + i];

        if (program_is_source(program, value) == sources) {
            sum = plus(sum, program->value_bytes[value]);
        }
    }
    return sum;
}

static void find_peaks(struct program *program) {
    const struct workload *work = program->work;
    uint64_t live = 0;

    for (size_t i = 0; i < work->value_count; i++) {
        if (work->values[i].declared && work->values[i].kind == KIND_CIPHERTEXT) {
            live = plus(live, program->value_bytes[i]);
        }
    }
    raise_to(&program->peak_bytes, live);
    raise_to(&program->need_bytes, live);
    for (size_t i = 0; i < work->op_count; i++) {
        const struct workload_op *op = &work->ops[i];
        uint64_t held = 0;

        live = plus(live, bytes_of(program, op->writes, false));
        held = plus(live, program->stage_bytes[op->stage]);
        raise_to(&program->peak_bytes, held);
        raise_to(&program->need_bytes, plus(held, bytes_of(program, op->reads, true)));
        live -= bytes_of(program, op->frees, false);
    }
}

struct program *program_create(struct workload *work, struct scale scale) {
    struct program *program = memory_new(1, sizeof *program);

    program->work = work;
    program->value_bytes = memory_new(work->value_count, sizeof(uint64_t));
    program->read_count = memory_new(work->value_count, sizeof(uint32_t));
    program->stage_bytes = memory_new(work->stage_count, sizeof(uint64_t));
    for (size_t i = 0; i < work->value_count; i++) {
        program->value_bytes[i] = scale_bytes(scale, work->values[i].bytes);
        add_value(program, i);
    }
    for (size_t i = 0; i < work->stage_count; i++) {
        uint64_t bytes = work->stages[i].workspace_bytes;

        program->stage_bytes[i] = bytes == 0 ? 0 : scale_bytes(scale, bytes);
    }
    for (size_t i = 0; i < work->op_count; i++) {
        const struct workload_refs *reads = &work->ops[i].reads;

        for (uint32_t r = 0; r < reads->count; r++) {
            program->read_count[work->refs[reads->first + r]]++;
        }
    }
    find_peaks(program);
    if (program->need_bytes == INT64_MAX || program->source_bytes == INT64_MAX) {
        complain("%s: at this scale its bytes do not fit in 64 bits", work->path);
        program->work = NULL;
        program_destroy(program);
        return NULL;
    }
    return program;
}

void program_destroy(struct program *program) {
    if (program == NULL) {
        return;
    }
    free(program->value_bytes);
    free(program->stage_bytes);
    free(program->read_count);
    workload_destroy(program->work);
    free(program);
}
