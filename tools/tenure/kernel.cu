/* SPDX-License-Identifier: MIT */
/* The kernels of kernel.h. Compiled to PTX, which is built into the program. */
#include "kernel.h"

#define KERNEL(name)                                                                               \
    extern "C" __global__ void kernel_##name(const struct kernel_args args) {                      \
        kernel_do_##name(&args, (uint64_t)blockIdx.x * blockDim.x + threadIdx.x);                  \
    }
KERNELS(KERNEL)
