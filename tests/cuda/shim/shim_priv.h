/* SPDX-License-Identifier: MIT */
/* What the files of the test driver share. */
#ifndef TN_TEST_CUDA_SHIM_PRIV_H
#define TN_TEST_CUDA_SHIM_PRIV_H

#include <cuda.h>

#include "cuda_shim.h"

#define SHIM __attribute__((visibility("default")))

extern struct cuda_shim shim;

/* A context of the machine: id and device as in tn_stream_info. */
struct CUctx_st {
    uint64_t id;
    uint32_t device;
    bool second;
};

/* Misuse; the first is kept in words. */
void shim_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* What the table said, as the driver would. */
CUresult shim_code(tn_status status);
/* Begin a call that needs a current context. */
CUresult shim_enter(CUcontext *out);
/* Begin one that does not. */
CUresult shim_enter_any(void);
/* The context with an id; NULL: none. */
CUcontext shim_context(uint64_t id);
/* Whether a call under `context` may name a stream. */
CUresult shim_stream(CUstream stream, CUcontext context);
/* Where memory is: what was allocated here, or pageable. */
tn_location shim_locate(const void *pointer);
void shim_ranges_reset(void);
/* The library's own start; see cuda_shim.h. */
SHIM void cuda_shim_reset(const tn_driver_ops *ops, void *self);
/* The machine of the variant "machine". */
void shim_machine_start(void);

#endif
