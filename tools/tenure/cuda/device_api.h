/* SPDX-License-Identifier: MIT */
/*
 * The entry points of the CUDA driver that the evaluator calls, by exact symbol name. All of them
 * are as old as what the library needs.
 */
#ifndef TENURE_DEVICE_API_H
#define TENURE_DEVICE_API_H

#include <cuda.h>

#define DEVICE_SYMBOLS(X)                                                                          \
    X(cuCtxPushCurrent_v2, REQUIRED)                                                               \
    X(cuCtxPopCurrent_v2, REQUIRED)                                                                \
    X(cuDeviceGet, REQUIRED)                                                                       \
    X(cuDevicePrimaryCtxRetain, REQUIRED)                                                          \
    X(cuDevicePrimaryCtxRelease_v2, REQUIRED)                                                      \
    X(cuModuleLoadDataEx, REQUIRED)                                                                \
    X(cuModuleUnload, REQUIRED)                                                                    \
    X(cuModuleGetFunction, REQUIRED)                                                               \
    X(cuLaunchKernel, REQUIRED)

/* The pointers, each under its symbol's name. */
struct device_api {
#define DEVICE_MEMBER(symbol, need) __typeof__(&symbol) symbol;
    DEVICE_SYMBOLS(DEVICE_MEMBER)
#undef DEVICE_MEMBER
};

#endif
