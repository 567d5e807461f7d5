/* SPDX-License-Identifier: MIT */
#include "replay.h"

#include "base.h"
#include "evaluate.h"

#include <stdlib.h>

struct replay {
    const struct program *program;
    uint64_t seed;
    struct evaluate_sum **sums; /* per tenant (0 is shared) and value; made at first use */
    size_t sum_count;
    void **held; /* per value: the bytes of a live ciphertext */
    void *workspace;
    struct evaluation evaluation;
};

struct replay *replay_create(const struct program *program, uint64_t seed, uint64_t tenants) {
    struct replay *replay = memory_new(1, sizeof *replay);

    replay->program = program;
    replay->seed = seed;
    replay->sum_count = (size_t)(tenants + 1) * program->work->value_count;
    replay->sums = memory_new(replay->sum_count, sizeof(struct evaluate_sum *));
    replay->held = memory_new(program->work->value_count, sizeof(void *));
    return replay;
}

static void free_held(struct replay *replay, uint32_t value) {
    free(replay->held[value]);
    replay->held[value] = NULL;
}

void replay_destroy(struct replay *replay) {
    if (replay == NULL) {
        return;
    }
    for (size_t i = 0; i < replay->sum_count; i++) {
        free(replay->sums[i]);
    }
    for (uint32_t i = 0; i < replay->program->work->value_count; i++) {
        free_held(replay, i);
    }
    free(replay->sums);
    free(replay->held);
    free(replay->workspace);
    free(replay);
}

/* The sum of a key's or plaintext's content, a piece of whole blocks at a time. */
static struct evaluate_sum *make_sum(struct content_name name, uint64_t bytes) {
    enum { PIECE_BYTES = 8 * EVALUATE_LANES * 8 };
    struct evaluate_sum *sum = memory_new(1, sizeof *sum);
    struct generator generator = content_generator(name);
    char *piece = memory_new(PIECE_BYTES, 1);

    for (uint64_t done = 0; done < bytes; done += PIECE_BYTES) {
        uint64_t part = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;

        generator_fill(&generator, piece, part);
        evaluate_sum_add(sum, piece, part);
    }
    free(piece);
    return sum;
}

static const struct evaluate_sum *sum_of(struct replay *replay, uint32_t value, uint64_t tenant) {
    const struct program *program = replay->program;
    uint64_t owner = program_tenant(program, value, tenant);
    struct evaluate_sum **slot = &replay->sums[owner * program->work->value_count + value];

    if (*slot == NULL) {
        *slot = make_sum((struct content_name){.seed = replay->seed,
                                               .tenant = owner,
                                               .id = program->work->values[value].id},
                         program->value_bytes[value]);
    }
    return *slot;
}

static void make_inputs(struct replay *replay, uint64_t tenant, uint64_t request) {
    const struct program *program = replay->program;
    const struct workload *work = program->work;

    for (uint32_t i = 0; i < work->value_count; i++) {
        if (work->values[i].declared && !program_is_source(program, i)) {
            struct generator generator = program_input(program, i, replay->seed, tenant, request);

            replay->held[i] = memory_new((size_t)program->value_bytes[i], 1);
            generator_fill(&generator, replay->held[i], program->value_bytes[i]);
        }
    }
}

static void open_stage(struct replay *replay, uint32_t stage) {
    uint64_t bytes = replay->program->stage_bytes[stage];

    if (bytes > 0) {
        replay->workspace = memory_new((size_t)bytes, 1);
        evaluate_open_stage(&replay->evaluation, replay->workspace, bytes);
    }
}

static void close_stage(struct replay *replay) {
    if (replay->workspace != NULL) {
        evaluate_close_stage(&replay->evaluation);
        free(replay->workspace);
        replay->workspace = NULL;
    }
}

static void read_values(struct replay *replay, struct workload_refs refs, uint64_t tenant) {
    const struct program *program = replay->program;

    for (uint32_t i = 0; i < refs.count; i++) {
        uint32_t value = program->work->refs[refs.first + i];

        if (program_is_source(program, value)) {
            evaluate_read_sum(&replay->evaluation, sum_of(replay, value, tenant));
        } else {
            evaluate_read(&replay->evaluation, replay->held[value], program->value_bytes[value]);
        }
    }
}

static void run_op(struct replay *replay, size_t index, uint64_t tenant) {
    const struct program *program = replay->program;
    const struct workload_op *op = &program->work->ops[index];

    evaluate_open_op(&replay->evaluation, index, program_has_workspace(program, op));
    read_values(replay, op->reads, tenant);
    evaluate_close_op(&replay->evaluation, op->writes.count > 0);
    for (uint32_t i = 0; i < op->writes.count; i++) {
        uint32_t value = program->work->refs[op->writes.first + i];

        replay->held[value] = memory_new((size_t)program->value_bytes[value], 1);
        evaluate_write(&replay->evaluation, i, replay->held[value], program->value_bytes[value]);
    }
    for (uint32_t i = 0; i < op->frees.count; i++) {
        free_held(replay, program->work->refs[op->frees.first + i]);
    }
}

uint64_t replay_request(struct replay *replay, uint64_t tenant, uint64_t request) {
    const struct workload *work = replay->program->work;

    evaluate_begin(&replay->evaluation, replay->seed, tenant, request);
    make_inputs(replay, tenant, request);
    for (uint32_t s = 0; s < work->stage_count; s++) {
        const struct workload_stage *stage = &work->stages[s];

        open_stage(replay, s);
        for (uint32_t i = 0; i < stage->op_count; i++) {
            run_op(replay, stage->first_op + i, tenant);
        }
        close_stage(replay);
    }
    evaluate_open_op(&replay->evaluation, work->op_count, false);
    for (uint32_t i = 0; i < work->outputs.count; i++) {
        uint32_t value = work->refs[work->outputs.first + i];

        if (!program_is_source(replay->program, value)) {
            evaluate_read(&replay->evaluation, replay->held[value],
                          replay->program->value_bytes[value]);
        }
    }
    evaluate_close_op(&replay->evaluation, true);
    for (uint32_t i = 0; i < work->value_count; i++) {
        free_held(replay, i);
    }
    return replay->evaluation.digest;
}
