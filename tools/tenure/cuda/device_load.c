/* SPDX-License-Identifier: MIT */
#include "device_load.h"

#include "base.h"

#include <dlfcn.h>
#include <string.h>

enum { BLOCK_THREADS = 128 };

static const char *const names[] = {
#define NAME(name) "kernel_" #name,
    KERNELS(NAME)
#undef NAME
};

static const struct symbol {
    const char *name;
    size_t at; /* in struct device_api */
} symbols[] = {
#define SYMBOL(symbol, need) {#symbol, offsetof(struct device_api, symbol)},
    DEVICE_SYMBOLS(SYMBOL)
#undef SYMBOL
};

const char *device_kernel_name(enum kernel kernel) { return names[kernel]; }

/* The same library that the backend has loaded. */
static char *find_symbols(struct device_module *module) {
    module->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (module->library == NULL) {
        return text_format("the CUDA driver cannot be loaded: %s", dlerror());
    }
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *address = dlsym(module->library, symbols[i].name);

        if (address == NULL) {
            return text_format("the CUDA driver has no %s", symbols[i].name);
        }
        memcpy((char *)&module->api + symbols[i].at, &address, sizeof address);
    }
    return NULL;
}

/* What the driver's compiler says, its first line, beside the code. */
static char *refused(char *log, CUresult code) {
    log[strcspn(log, "\n")] = '\0';
    return text_format("the CUDA driver does not take the kernels%s%s (CUDA error %d)",
                       log[0] != '\0' ? ": " : "", log, (int)code);
}

/* With the context current. */
static char *load_module(struct device_module *module, const char *ptx) {
    char log[1024] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
    CUresult code = module->api.cuModuleLoadDataEx(&module->module, ptx, 2, options, values);

    if (code != CUDA_SUCCESS) {
        module->module = NULL;
        return refused(log, code);
    }
    for (int i = 0; i < KERNEL_COUNT; i++) {
        code = module->api.cuModuleGetFunction(&module->functions[i], module->module, names[i]);
        if (code != CUDA_SUCCESS) {
            return text_format("the kernels have no %s (CUDA error %d)", names[i], (int)code);
        }
    }
    return NULL;
}

static CUresult retain(struct device_module *module, uint32_t index) {
    CUresult code = module->api.cuDeviceGet(&module->device, (int)index);

    if (code == CUDA_SUCCESS) {
        code = module->api.cuDevicePrimaryCtxRetain(&module->context, module->device);
    }
    if (code != CUDA_SUCCESS) {
        module->context = NULL;
    }
    return code;
}

char *device_load(struct device_module *module, uint32_t index, const char *ptx) {
    CUcontext before = NULL;
    char *why = NULL;
    CUresult code = CUDA_SUCCESS;

    *module = (struct device_module){0};
    why = find_symbols(module);
    if (why != NULL) {
        return why;
    }
    code = retain(module, index);
    if (code == CUDA_SUCCESS) {
        code = module->api.cuCtxPushCurrent_v2(module->context);
    }
    if (code != CUDA_SUCCESS) {
        return text_format("the device's context cannot be used (CUDA error %d)", (int)code);
    }
    why = load_module(module, ptx);
    (void)module->api.cuCtxPopCurrent_v2(&before); /* what we pushed */
    return why;
}

void device_unload(struct device_module *module) {
    CUcontext before = NULL;

    if (module->module != NULL &&
        module->api.cuCtxPushCurrent_v2(module->context) == CUDA_SUCCESS) {
        (void)module->api.cuModuleUnload(module->module); /* else it goes with its context */
        (void)module->api.cuCtxPopCurrent_v2(&before);
    }
    if (module->context != NULL) {
        (void)module->api.cuDevicePrimaryCtxRelease_v2(module->device);
    }
    if (module->library != NULL) {
        dlclose(module->library);
    }
    *module = (struct device_module){0};
}

CUresult device_launch(const struct device_module *module, enum kernel kernel, uint64_t threads,
                       const struct kernel_args *args, CUstream stream) {
    struct kernel_args copy = *args; /* the driver takes its own at the call */
    void *parameters[] = {&copy};
    uint64_t blocks = (threads + BLOCK_THREADS - 1) / BLOCK_THREADS;
    CUcontext before = NULL;
    CUresult code = CUDA_SUCCESS;

    if (blocks > INT32_MAX) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    code = module->api.cuCtxPushCurrent_v2(module->context);
    if (code != CUDA_SUCCESS) {
        return code;
    }
    code = module->api.cuLaunchKernel(module->functions[kernel], (unsigned)blocks, 1, 1,
                                      threads > 1 ? BLOCK_THREADS : 1, 1, 1, 0, stream, parameters,
                                      NULL);
    (void)module->api.cuCtxPopCurrent_v2(&before);
    return code;
}
