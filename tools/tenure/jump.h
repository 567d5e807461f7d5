/* SPDX-License-Identifier: MIT */
/*
 * How the generator of content.h gets to where a later chunk of words begins, without making those
 * before it: its state is advanced by matrices (kernel_jump()).
 */
#ifndef TENURE_JUMP_H
#define TENURE_JUMP_H

#include "kernel.h"

/** Fills KERNEL_JUMPS matrices of KERNEL_JUMP_WORDS words: matrix i advances a state by
 * KERNEL_EXPAND words 2^i times. */
void jump_fill(uint64_t *matrices);

#endif
