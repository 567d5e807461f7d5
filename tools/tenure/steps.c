/* SPDX-License-Identifier: MIT */
#include "steps.h"

#include <stddef.h>

static bool launch(const struct steps *steps, enum kernel kernel, uint64_t threads,
                   struct kernel_args args) {
    args.digest = steps->digest;
    args.partial = steps->partial;
    args.jumps = steps->jumps;
    return steps->launch(steps->context, kernel, threads, &args);
}

/* Adds rows of words to lanes, in at most KERNEL_CHUNKS chunks. */
static bool add_rows(const struct steps *steps, uint64_t *lanes, const void *from, uint64_t bytes) {
    struct kernel_args args = {.lanes = lanes, .from = from, .words = bytes / 8};

    if (args.words == 0) {
        return true;
    }
    args.rows = (args.words - 1) / KERNEL_LANES + 1;
    args.rows_each = (args.rows - 1) / KERNEL_CHUNKS + 1;
    if (args.rows_each < KERNEL_ROWS) {
        args.rows_each = KERNEL_ROWS;
    }
    args.chunks = (args.rows - 1) / args.rows_each + 1;
    args.factor = kernel_power(args.rows_each);
    args.last_factor = kernel_power(args.rows - (args.chunks - 1) * args.rows_each);
    return launch(steps, KERNEL_rows, args.chunks * KERNEL_LANES, args) &&
           launch(steps, KERNEL_combine, KERNEL_LANES, args);
}

static bool expand(const struct steps *steps, uint64_t number, void *to, uint64_t bytes,
                   uint64_t low_words) {
    struct kernel_args args = {
        .to = to, .words = bytes / 8, .number = number, .low_words = low_words};

    return args.words == 0 ||
           launch(steps, KERNEL_expand, (args.words - 1) / KERNEL_EXPAND + 1, args);
}

static bool clear(const struct steps *steps, uint64_t number) {
    return launch(steps, KERNEL_open, KERNEL_LANES,
                  (struct kernel_args){.lanes = steps->local, .number = number, .clears = 1});
}

static bool fold(const struct steps *steps, uint64_t *lanes) {
    return launch(steps, KERNEL_fold, 1, (struct kernel_args){.lanes = lanes});
}

bool steps_begin(struct steps *steps, uint64_t digest) {
    steps->workspace = NULL;
    steps->workspace_words = 0;
    steps->lanes = steps->local;
    return launch(steps, KERNEL_set, 1, (struct kernel_args){.number = digest});
}

bool steps_open_stage(struct steps *steps, void *workspace, uint64_t bytes) {
    steps->workspace = workspace;
    steps->workspace_words = bytes / 8;
    return expand(steps, 0, workspace, bytes, KERNEL_LANES);
}

bool steps_close_stage(struct steps *steps) {
    bool good = clear(steps, 0) &&
                add_rows(steps, steps->local, steps->workspace, 8 * steps->workspace_words) &&
                fold(steps, steps->local);

    steps->workspace = NULL;
    steps->workspace_words = 0;
    steps->lanes = steps->local;
    return good;
}

bool steps_open_op(struct steps *steps, uint64_t op, bool in_workspace) {
    if (in_workspace && steps->workspace_words >= KERNEL_LANES) {
        steps->lanes = steps->workspace;
        return launch(steps, KERNEL_open, 1, (struct kernel_args){.number = op + 1});
    }
    steps->lanes = steps->local;
    return clear(steps, op + 1);
}

bool steps_read(struct steps *steps, const void *from, uint64_t bytes) {
    return add_rows(steps, steps->lanes, from, bytes);
}

bool steps_close_op(struct steps *steps, bool writes) {
    return (!writes && steps->lanes != steps->local) || fold(steps, steps->lanes);
}

bool steps_write(struct steps *steps, uint64_t n, void *to, uint64_t bytes) {
    return expand(steps, n + 1, to, bytes, 0);
}
