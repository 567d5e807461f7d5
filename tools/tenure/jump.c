/* SPDX-License-Identifier: MIT */
#include "jump.h"

#include <string.h>

_Static_assert((KERNEL_EXPAND & (KERNEL_EXPAND - 1)) == 0, "squares get there");

/* One word further: the images of the single bits. */
static void fill_one(uint64_t *matrix) {
    memset(matrix, 0, KERNEL_JUMP_WORDS * sizeof *matrix);
    for (int bit = 0; bit < 256; bit++) {
        matrix[4 * bit + bit / 64] = UINT64_C(1) << (bit % 64);
        (void)kernel_next(matrix + 4 * bit);
    }
}

/* Twice as far. */
static void square(const uint64_t *matrix, uint64_t *to) {
    memcpy(to, matrix, KERNEL_JUMP_WORDS * sizeof *to);
    for (int bit = 0; bit < 256; bit++) {
        kernel_jump(matrix, to + 4 * bit);
    }
}

void jump_fill(uint64_t *matrices) {
    uint64_t other[KERNEL_JUMP_WORDS];

    fill_one(matrices);
    for (int words = 1; words < KERNEL_EXPAND; words *= 2) {
        memcpy(other, matrices, sizeof other);
        square(other, matrices);
    }
    for (int i = 1; i < KERNEL_JUMPS; i++) {
        uint64_t *matrix = matrices + (uint64_t)i * KERNEL_JUMP_WORDS;

        square(matrix - KERNEL_JUMP_WORDS, matrix);
    }
}
