/* SPDX-License-Identifier: MIT */
/* What the driver's codes mean to us, and the last one of each thread. */
#include "driver/cuda/cuda_priv.h"

/* This thread's last failure. Small: it is the library's thread-local storage. */
static _Thread_local struct {
    uint32_t serial; /* of the driver; 0: none */
    int32_t code;
} own;

static tn_status meaning(CUresult code, tn_status exhausted) {
    switch ((int)code) {
    case CUDA_SUCCESS:
        return TN_OK;
    case CUDA_ERROR_OUT_OF_MEMORY:
        return exhausted;
    case CUDA_ERROR_NOT_SUPPORTED:
        return TN_ERR_UNSUPPORTED;
    /* Gone (D7): the driver shut down, or the context that was asked for is no more. The driver was
     * initialised, so "not initialised" means that it is no longer. */
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
        return TN_ERR_CLOSED;
    /* Sticky: every later call of the context fails with it; its memory still counts as in use. */
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
        return TN_ERR_DEVICE_LOST;
    default:
        return TN_ERR_DRIVER;
    }
}

tn_status tn__cuda_status(tn__cuda *c, CUresult code, tn_status exhausted) {
    if (code != CUDA_SUCCESS) {
        own.serial = c->serial;
        own.code = (int32_t)code;
    }
    return meaning(code, exhausted);
}

tn_status tn__cuda_result(tn__cuda *c, CUresult code) {
    return tn__cuda_status(c, code, TN_ERR_DEVICE_MEMORY);
}

int64_t tn__cuda_last_code(void *self) {
    const tn__cuda *c = self;

    return own.serial == c->serial ? own.code : 0;
}
