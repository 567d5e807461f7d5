/* SPDX-License-Identifier: MIT */
#include "evaluate.h"

#include "content.h"
#include "kernel.h"

#include <stddef.h>
#include <string.h>

_Static_assert((int)EVALUATE_LANES == (int)KERNEL_LANES, "the same lanes everywhere");

/* Adds rows of words to the lanes; the missing words of the last row are zeros. */
static void add_rows(uint64_t *lanes, const void *from, uint64_t bytes) {
    const char *place = from;
    uint64_t words = bytes / 8;

    while (words > 0) {
        size_t part = words < EVALUATE_LANES ? (size_t)words : EVALUATE_LANES;

        for (size_t i = 0; i < part; i++) {
            uint64_t word;

            memcpy(&word, place + 8 * i, 8);
            lanes[i] = kernel_mix(lanes[i], word);
        }
        for (size_t i = part; i < EVALUATE_LANES; i++) {
            lanes[i] = kernel_mix(lanes[i], 0);
        }
        place += 8 * part;
        words -= part;
    }
}

static uint64_t fold(uint64_t digest, const uint64_t *lanes) {
    for (size_t i = 0; i < EVALUATE_LANES; i++) {
        digest = kernel_mix(digest, lanes[i]);
    }
    return digest;
}

void evaluate_begin(struct evaluation *evaluation, uint64_t seed, uint64_t tenant,
                    uint64_t request) {
    *evaluation =
        (struct evaluation){.digest = kernel_mix(kernel_mix(kernel_mix(1, seed), tenant), request)};
    evaluation->lanes = evaluation->local;
}

void evaluate_open_stage(struct evaluation *evaluation, void *workspace, uint64_t bytes) {
    struct generator generator = generator_seeded(evaluation->digest);

    evaluation->workspace = workspace;
    evaluation->workspace_words = bytes / 8;
    generator_fill(&generator, workspace, bytes);
    /* The lanes must be below the prime. */
    for (size_t i = 0; i < EVALUATE_LANES && i < evaluation->workspace_words; i++) {
        evaluation->workspace[i] >>= 4;
    }
}

void evaluate_close_stage(struct evaluation *evaluation) {
    memset(evaluation->local, 0, sizeof evaluation->local);
    add_rows(evaluation->local, evaluation->workspace, 8 * evaluation->workspace_words);
    evaluation->digest = fold(evaluation->digest, evaluation->local);
    evaluation->workspace = NULL;
    evaluation->workspace_words = 0;
    evaluation->lanes = evaluation->local;
}

void evaluate_open_op(struct evaluation *evaluation, uint64_t op, bool in_workspace) {
    evaluation->digest = kernel_mix(evaluation->digest, op + 1);
    if (in_workspace && evaluation->workspace_words >= EVALUATE_LANES) {
        evaluation->lanes = evaluation->workspace;
    } else {
        evaluation->lanes = evaluation->local;
        memset(evaluation->local, 0, sizeof evaluation->local);
    }
}

void evaluate_read(struct evaluation *evaluation, const void *from, uint64_t bytes) {
    add_rows(evaluation->lanes, from, bytes);
}

void evaluate_read_sum(struct evaluation *evaluation, const struct evaluate_sum *sum) {
    uint64_t factor = kernel_power(sum->blocks);

    for (size_t i = 0; i < EVALUATE_LANES; i++) {
        evaluation->lanes[i] = kernel_step(evaluation->lanes[i], factor, sum->lanes[i]);
    }
}

void evaluate_close_op(struct evaluation *evaluation, bool writes) {
    if (writes || evaluation->lanes == evaluation->local) {
        evaluation->digest = fold(evaluation->digest, evaluation->lanes);
    }
}

void evaluate_write(const struct evaluation *evaluation, uint64_t n, void *to, uint64_t bytes) {
    struct generator generator = generator_seeded(kernel_mix(evaluation->digest, n + 1));

    generator_fill(&generator, to, bytes);
}

void evaluate_sum_add(struct evaluate_sum *sum, const void *from, uint64_t bytes) {
    add_rows(sum->lanes, from, bytes);
    sum->blocks += (bytes / 8 + EVALUATE_LANES - 1) / EVALUATE_LANES;
}
