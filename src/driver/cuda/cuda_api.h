/* SPDX-License-Identifier: MIT */
/*
 * The entry points of the CUDA driver that the backend calls, by exact symbol name: a version
 * suffix belongs to the name, since the types differ with it. A pointer has the type that the
 * Toolkit's cuda.h declares for that symbol.
 *
 *  REQUIRED  a driver without it is too old (all of them: CUDA 10.0)
 *  POOL      all of the group, or device memory comes from cuMemAlloc (CUDA 11.2)
 *  HOST      without it there is no `host_function`
 *  CAPTURE   without it a capture of the program in the global mode may forbid our calls
 */
#ifndef TENURE_CUDA_API_H
#define TENURE_CUDA_API_H

#include <cuda.h>

#define TN__CUDA_SYMBOLS(X)                                                                        \
    X(cuInit, REQUIRED)                                                                            \
    X(cuDriverGetVersion, REQUIRED)                                                                \
    X(cuDeviceGetCount, REQUIRED)                                                                  \
    X(cuDeviceGet, REQUIRED)                                                                       \
    X(cuDeviceGetAttribute, REQUIRED)                                                              \
    X(cuDevicePrimaryCtxRetain, REQUIRED)                                                          \
    X(cuDevicePrimaryCtxRelease_v2, REQUIRED)                                                      \
    X(cuCtxPushCurrent_v2, REQUIRED)                                                               \
    X(cuCtxPopCurrent_v2, REQUIRED)                                                                \
    X(cuCtxGetCurrent, REQUIRED)                                                                   \
    X(cuCtxGetDevice, REQUIRED)                                                                    \
    X(cuCtxSynchronize, REQUIRED)                                                                  \
    X(cuMemGetInfo_v2, REQUIRED)                                                                   \
    X(cuMemAlloc_v2, REQUIRED)                                                                     \
    X(cuMemFree_v2, REQUIRED)                                                                      \
    X(cuMemHostAlloc, REQUIRED)                                                                    \
    X(cuMemFreeHost, REQUIRED)                                                                     \
    X(cuPointerGetAttributes, REQUIRED)                                                            \
    X(cuMemcpyAsync, REQUIRED)                                                                     \
    X(cuMemcpyHtoDAsync_v2, REQUIRED)                                                              \
    X(cuMemcpyDtoHAsync_v2, REQUIRED)                                                              \
    X(cuMemcpyDtoDAsync_v2, REQUIRED)                                                              \
    X(cuMemcpyPeerAsync, REQUIRED)                                                                 \
    X(cuStreamCreate, REQUIRED)                                                                    \
    X(cuStreamDestroy_v2, REQUIRED)                                                                \
    X(cuStreamSynchronize, REQUIRED)                                                               \
    X(cuStreamWaitEvent, REQUIRED)                                                                 \
    X(cuStreamGetCtx, REQUIRED)                                                                    \
    X(cuStreamIsCapturing, REQUIRED)                                                               \
    X(cuEventCreate, REQUIRED)                                                                     \
    X(cuEventDestroy_v2, REQUIRED)                                                                 \
    X(cuEventRecord, REQUIRED)                                                                     \
    X(cuEventQuery, REQUIRED)                                                                      \
    X(cuEventSynchronize, REQUIRED)                                                                \
    X(cuLaunchHostFunc, HOST)                                                                      \
    X(cuThreadExchangeStreamCaptureMode, CAPTURE)                                                  \
    X(cuMemPoolCreate, POOL)                                                                       \
    X(cuMemPoolDestroy, POOL)                                                                      \
    X(cuMemPoolSetAttribute, POOL)                                                                 \
    X(cuMemPoolGetAttribute, POOL)                                                                 \
    X(cuMemPoolTrimTo, POOL)                                                                       \
    X(cuMemAllocFromPoolAsync, POOL)                                                               \
    X(cuMemFreeAsync, POOL)

/* The pointers, each under its symbol's name; NULL: this driver does not have it. */
typedef struct tn__cuda_api {
#define TN__CUDA_MEMBER(symbol, need) __typeof__(&symbol) symbol;
    TN__CUDA_SYMBOLS(TN__CUDA_MEMBER)
#undef TN__CUDA_MEMBER
} tn__cuda_api;

#endif
