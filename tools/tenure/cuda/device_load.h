/* SPDX-License-Identifier: MIT */
/*
 * The kernels in a context: the driver's entry points, the module, its functions.
 *
 * Threads: loaded and unloaded by one thread, launched by any.
 */
#ifndef TENURE_DEVICE_LOAD_H
#define TENURE_DEVICE_LOAD_H

#include "device_api.h"
#include "steps.h"

/* PTX text, made by cmake/evaluator.cmake. */
extern const char device_ptx[];

struct device_module {
    void *library; /* of dlopen() */
    struct device_api api;
    CUdevice device;
    CUcontext context; /* its primary one, retained; NULL: not yet */
    CUmodule module;
    CUfunction functions[KERNEL_COUNT];
};

/**
 * @param index  of the device.
 * @param ptx    PTX text; borrowed.
 * @return NULL; else why not, owned. Either way end with device_unload().
 */
char *device_load(struct device_module *module, uint32_t index, const char *ptx);
void device_unload(struct device_module *module);

CUresult device_launch(const struct device_module *module, enum kernel kernel, uint64_t threads,
                       const struct kernel_args *args, CUstream stream);
const char *device_kernel_name(enum kernel kernel);

#endif
