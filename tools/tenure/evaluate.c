/* SPDX-License-Identifier: MIT */
#include "evaluate.h"

#include "content.h"

#include <stddef.h>
#include <string.h>

/* 2^61 - 1: a product is reduced with shifts; no single changed bit of a word is a multiple. */
#define PRIME ((UINT64_C(1) << 61) - 1)
#define FACTOR (UINT64_C(0x1b873593cc9e2d51) & PRIME)

/* a * FACTOR + word, modulo PRIME; a is at most PRIME. */
static inline uint64_t mix(uint64_t a, uint64_t word) {
    unsigned __int128 product = (unsigned __int128)a * FACTOR;
    uint64_t sum = ((uint64_t)product & PRIME) + (uint64_t)(product >> 61);

    sum += (word & PRIME) + (word >> 61); /* below 2^63 + 8: no overflow */
    sum = (sum & PRIME) + (sum >> 61);
    return sum >= PRIME ? sum - PRIME : sum;
}

/* Adds rows of words to the lanes; the missing words of the last row are zeros. */
static void add_rows(uint64_t *lanes, const void *from, uint64_t bytes) {
    const char *place = from;
    uint64_t words = bytes / 8;

    while (words > 0) {
        size_t part = words < EVALUATE_LANES ? (size_t)words : EVALUATE_LANES;

        for (size_t i = 0; i < part; i++) {
            uint64_t word;

            memcpy(&word, place + 8 * i, 8);
            lanes[i] = mix(lanes[i], word);
        }
        for (size_t i = part; i < EVALUATE_LANES; i++) {
            lanes[i] = mix(lanes[i], 0);
        }
        place += 8 * part;
        words -= part;
    }
}

static uint64_t fold(uint64_t digest, const uint64_t *lanes) {
    for (size_t i = 0; i < EVALUATE_LANES; i++) {
        digest = mix(digest, lanes[i]);
    }
    return digest;
}

void evaluate_begin(struct evaluation *evaluation, uint64_t seed, uint64_t tenant,
                    uint64_t request) {
    *evaluation = (struct evaluation){.digest = mix(mix(mix(1, seed), tenant), request)};
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
    evaluation->digest = mix(evaluation->digest, op + 1);
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

/* FACTOR to the power of `blocks`. */
static uint64_t power(uint64_t blocks) {
    uint64_t result = 1;
    uint64_t square = FACTOR;

    for (; blocks > 0; blocks >>= 1) {
        if (blocks & 1) {
            result = (uint64_t)((unsigned __int128)result * square % PRIME);
        }
        square = (uint64_t)((unsigned __int128)square * square % PRIME);
    }
    return result;
}

void evaluate_read_sum(struct evaluation *evaluation, const struct evaluate_sum *sum) {
    uint64_t factor = power(sum->blocks);

    for (size_t i = 0; i < EVALUATE_LANES; i++) {
        unsigned __int128 product = (unsigned __int128)evaluation->lanes[i] * factor;

        evaluation->lanes[i] = (uint64_t)((product + sum->lanes[i]) % PRIME);
    }
}

void evaluate_close_op(struct evaluation *evaluation, bool writes) {
    if (writes || evaluation->lanes == evaluation->local) {
        evaluation->digest = fold(evaluation->digest, evaluation->lanes);
    }
}

void evaluate_write(const struct evaluation *evaluation, uint64_t n, void *to, uint64_t bytes) {
    struct generator generator = generator_seeded(mix(evaluation->digest, n + 1));

    generator_fill(&generator, to, bytes);
}

void evaluate_sum_add(struct evaluate_sum *sum, const void *from, uint64_t bytes) {
    add_rows(sum->lanes, from, bytes);
    sum->blocks += (bytes / 8 + EVALUATE_LANES - 1) / EVALUATE_LANES;
}
