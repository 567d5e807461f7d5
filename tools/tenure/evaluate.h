/* SPDX-License-Identifier: MIT */
/*
 * The evaluator's arithmetic: what every operation computes from every byte that it borrows.
 *
 * A request has a digest, and an operation has an accumulator of EVALUATE_LANES words. Word i of
 * what is read goes to lane i modulo EVALUATE_LANES as `lane = lane * factor + word`, modulo the
 * prime 2^61 - 1: the words of one lane form a polynomial in `factor`, so a changed, exchanged or
 * missing word changes the lane. The accumulator of an operation with workspace is the beginning of
 * the stage's real workspace, which the stage fills and folds when it ends; else it is local.
 *
 * Operations that write nothing leave their sum in the workspace; those that write, and those
 * without workspace, fold the lanes into the digest; written bytes are expanded from the digest.
 *
 * E1  The same calls with the same bytes give the same digest, whether bytes are read as they are
 *     (evaluate_read) or as their sum (evaluate_read_sum).
 *
 * Threads: one at a time per evaluation.
 */
#ifndef TENURE_EVALUATE_H
#define TENURE_EVALUATE_H

#include <stdbool.h>
#include <stdint.h>

enum { EVALUATE_LANES = 512 };

struct evaluation {
    uint64_t digest;
    uint64_t *workspace; /* of the open stage; NULL: none */
    uint64_t workspace_words;
    uint64_t *lanes; /* of the current operation */
    uint64_t local[EVALUATE_LANES];
};

/* What reading some bytes adds to an empty accumulator. */
struct evaluate_sum {
    uint64_t lanes[EVALUATE_LANES];
    uint64_t blocks; /* rows of EVALUATE_LANES words, the last one perhaps not full */
};

void evaluate_begin(struct evaluation *evaluation, uint64_t seed, uint64_t tenant,
                    uint64_t request);
/** `workspace` of a multiple of 8 bytes is written from end to end; NULL and 0: none. */
void evaluate_open_stage(struct evaluation *evaluation, void *workspace, uint64_t bytes);
void evaluate_close_stage(struct evaluation *evaluation);

void evaluate_open_op(struct evaluation *evaluation, uint64_t op, bool in_workspace);
void evaluate_read(struct evaluation *evaluation, const void *from, uint64_t bytes);
void evaluate_read_sum(struct evaluation *evaluation, const struct evaluate_sum *sum);
/** After the last read; `writes`: the operation writes something. */
void evaluate_close_op(struct evaluation *evaluation, bool writes);
/** The n-th value that the operation writes. */
void evaluate_write(const struct evaluation *evaluation, uint64_t n, void *to, uint64_t bytes);

/** Adds bytes to a sum that begins all zero; all calls but the last with whole blocks. */
void evaluate_sum_add(struct evaluate_sum *sum, const void *from, uint64_t bytes);

#endif
