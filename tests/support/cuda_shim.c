/* SPDX-License-Identifier: MIT */
/* Loading the CUDA driver for tests; see cuda_shim.h. */
#include "cuda_shim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "driver/driver_internal.h"
#include "tn_test.h"

#ifndef TN_CUDA_SHIM_DIR /* no CUDA backend, no test driver */
#define TN_CUDA_SHIM_DIR ""
#endif

const char *cuda_shim_path(const char *variant) {
    static char path[4096];

    if (TN_CUDA_SHIM_DIR[0] == '\0')
        return NULL;
    snprintf(path, sizeof(path), "%s/%s/libcuda.so.1", TN_CUDA_SHIM_DIR, variant);
    return path;
}

/* A symbol as a function pointer of any type. */
static void symbol(void *library, const char *name, void *out) {
    void *address = dlsym(library, name);

    if (address == NULL)
        fail_msg("the test driver has no %s", name);
    memcpy(out, &address, sizeof(address));
}

struct cuda_shim *cuda_shim_load(const char *variant, tn_driver *machine) {
    const char *path = cuda_shim_path(variant);
    cuda_shim_control_fn *control = NULL;
    cuda_shim_reset_fn *reset = NULL;
    void *library;

    assert_non_null(path);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        fail_msg("%s", dlerror());
    symbol(library, "cuda_shim_control", &control);
    symbol(library, "cuda_shim_reset", &reset);
    reset(tn_driver_table(machine), tn_driver_self(machine));
    return control();
}

tn_driver *cuda_shim_open(const char *variant) {
    tn_driver *driver = NULL;

    assert_ok(tn__driver_open_cuda(cuda_shim_path(variant), &driver));
    assert_non_null(driver);
    return driver;
}
