/* SPDX-License-Identifier: MIT */
/*
 * The evaluator (evaluate.h) as a sequence of kernels (kernel.h), whoever runs them. The digest, the
 * lanes and the sums are where the kernels run; nothing here reads them.
 *
 * S1  The same calls leave the digest that evaluate.c has, and write what it writes.
 * S2  The kernels of one request run in the order in which they are launched.
 *
 * Each call returns false if a launch failed; the others of the call are then not launched.
 *
 * Threads: one at a time per sequence.
 */
#ifndef TENURE_STEPS_H
#define TENURE_STEPS_H

#include "kernel.h"

#include <stdbool.h>

enum kernel {
#define KERNEL_ID(name) KERNEL_##name,
    KERNELS(KERNEL_ID)
#undef KERNEL_ID
        KERNEL_COUNT
};

struct steps {
    /** Launches `threads` threads or more: those beyond do nothing. False: it cannot. */
    bool (*launch)(void *context, enum kernel kernel, uint64_t threads,
                   const struct kernel_args *args);
    void *context;
    uint64_t *digest;      /* one word */
    uint64_t *local;       /* KERNEL_LANES words */
    uint64_t *partial;     /* KERNEL_CHUNKS times as many */
    const uint64_t *jumps; /* jump_fill() */

    uint64_t *lanes; /* of the current operation */
    uint64_t *workspace;
    uint64_t workspace_words; /* of the open stage; 0: none */
};

/** A request begins; the digest is what evaluate_begin() makes it. */
bool steps_begin(struct steps *steps, uint64_t digest);
bool steps_open_stage(struct steps *steps, void *workspace, uint64_t bytes);
bool steps_close_stage(struct steps *steps);
bool steps_open_op(struct steps *steps, uint64_t op, bool in_workspace);
bool steps_read(struct steps *steps, const void *from, uint64_t bytes);
bool steps_close_op(struct steps *steps, bool writes);
bool steps_write(struct steps *steps, uint64_t n, void *to, uint64_t bytes);

#endif
