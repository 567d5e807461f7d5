/* SPDX-License-Identifier: MIT */
/*
 * The variant "machine" of the test driver, for whole programs, which cannot lend it a table: it
 * makes a simulated machine itself, as TN_SHIM_MACHINE describes it (unset: there is no device), by
 * the library that the program is linked with. It has modules too: it does not run their PTX, but
 * the same arithmetic compiled for the host (kernel.h), in stream order.
 *
 *   TN_SHIM_MODULE_CODE    what cuModuleLoadDataEx fails with
 *   TN_SHIM_LAUNCH_FAILS   that launch, counted from 1, fails
 *
 * Misuse of the driver or of the machine ends the program with 99.
 */
#include "shim_priv.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tenure/sim.h>

#include "kernel.h"

static tn_sim *machine;
static atomic_int launches;

typedef void run_fn(const struct kernel_args *args, uint64_t thread);

/* A kernel, as the driver's handle for it. */
struct CUfunc_st {
    const char *entry; /* how it is declared in PTX */
    run_fn *run;
};

#define RUNNER(name)                                                                               \
    static void run_##name(const struct kernel_args *args, uint64_t thread) {                      \
        kernel_do_##name(args, thread);                                                            \
    }
KERNELS(RUNNER)

static struct CUfunc_st functions[] = {
#define FUNCTION(name) {".visible .entry kernel_" #name "(", run_##name},
    KERNELS(FUNCTION)};

struct CUmod_st {
    char *ptx;
};

static long setting(const char *name) {
    const char *text = getenv(name);

    return text != NULL ? strtol(text, NULL, 10) : 0;
}

/* Starting. */

static void find(const char *name, void *out) {
    void *address = dlsym(RTLD_DEFAULT, name);

    if (address == NULL) {
        fprintf(stderr, "test driver: the program has no %s\n", name);
        _exit(99);
    }
    memcpy(out, &address, sizeof(address));
}

static void start(void) {
    tn_status (*create)(const char *, tn_sim **);
    tn_driver *(*driver_of)(tn_sim *);
    const tn_driver_ops *(*table)(const tn_driver *);
    void *(*self)(const tn_driver *);
    tn_driver *driver;

    if (getenv("TN_SHIM_MACHINE") == NULL)
        return;
    find("tn_sim_create", &create);
    find("tn_sim_driver", &driver_of);
    find("tn_driver_table", &table);
    find("tn_driver_self", &self);
    if (create(getenv("TN_SHIM_MACHINE"), &machine) != TN_OK) {
        fprintf(stderr, "test driver: TN_SHIM_MACHINE=%s is no machine\n",
                getenv("TN_SHIM_MACHINE"));
        _exit(99);
    }
    driver = driver_of(machine);
    cuda_shim_reset(table(driver), self(driver));
    shim.any_capture_mode = true; /* the program launches as any program does */
}

void shim_machine_start(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, start);
}

__attribute__((destructor)) static void end(void) {
    uint64_t (*violations)(const tn_sim *);
    const char *(*violation)(const tn_sim *);
    void (*destroy)(tn_sim *);

    if (machine == NULL)
        return;
    find("tn_sim_violations", &violations);
    find("tn_sim_violation_text", &violation);
    find("tn_sim_destroy", &destroy);
    if (atomic_load(&shim.complaints) > 0)
        fprintf(stderr, "test driver: %s\n", shim.complaint);
    else if (violations(machine) > 0)
        fprintf(stderr, "test driver: machine: %s\n", violation(machine));
    else if (atomic_load(&shim.retained) != 0 || atomic_load(&shim.live_modules) != 0)
        fprintf(stderr, "test driver: contexts or modules are left\n");
    else {
        destroy(machine);
        return;
    }
    _exit(99);
}

/* Modules. */

static CUresult refuse(unsigned count, CUjit_option *options, void **values, int code,
                       const char *text) {
    size_t room = 0;
    char *log = NULL;
    unsigned i;

    for (i = 0; i < count; i++) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
            log = values[i];
        else if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
            room = (size_t)(uintptr_t)values[i];
    }
    if (log != NULL && room > 0)
        snprintf(log, room, "%s\nanother line", text);
    return (CUresult)code;
}

SHIM CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count,
                                         CUjit_option *options, void **values) {
    CUcontext context;
    CUresult code = shim_enter(&context);

    if (code != CUDA_SUCCESS)
        return code;
    if (setting("TN_SHIM_MODULE_CODE") != 0)
        return refuse(count, options, values, (int)setting("TN_SHIM_MODULE_CODE"),
                      "ptxas application ptx input: not today");
    if (strstr(image, "\n.version ") == NULL || strstr(image, "\n.target sm_") == NULL)
        return refuse(count, options, values, CUDA_ERROR_INVALID_PTX, "this is no PTX");
    *module = calloc(1, sizeof(**module));
    if (*module != NULL)
        (*module)->ptx = strdup(image);
    if (*module == NULL || (*module)->ptx == NULL)
        abort();
    atomic_fetch_add(&shim.live_modules, 1);
    return CUDA_SUCCESS;
}

SHIM CUresult CUDAAPI cuModuleUnload(CUmodule module) {
    CUcontext context;
    CUresult code = shim_enter(&context);

    free(module->ptx);
    free(module);
    atomic_fetch_sub(&shim.live_modules, 1);
    return code;
}

SHIM CUresult CUDAAPI cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name) {
    char entry[128];
    size_t i;

    snprintf(entry, sizeof(entry), ".visible .entry %s(", name);
    for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        if (strcmp(functions[i].entry, entry) == 0 && strstr(module->ptx, entry) != NULL) {
            *out = &functions[i];
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_NOT_FOUND;
}

/* Launches. */

struct launch {
    run_fn *run;
    uint64_t threads;
    struct kernel_args args;
};

static void run(void *context) {
    struct launch *l = context;
    uint64_t i;

    for (i = l->threads; i > 0; i--) /* any order will do */
        l->run(&l->args, i - 1);
    free(l);
}

SHIM CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                     unsigned grid_z, unsigned block_x, unsigned block_y,
                                     unsigned block_z, unsigned shared_bytes, CUstream stream,
                                     void **parameters, void **extra) {
    struct launch *l;
    CUcontext context;
    CUresult code = shim_enter(&context);

    if (code == CUDA_SUCCESS)
        code = shim_stream(stream, context);
    if (code != CUDA_SUCCESS)
        return code;
    if (grid_x == 0 || grid_y != 1 || grid_z != 1 || block_x == 0 || block_x > 1024 ||
        block_y != 1 || block_z != 1 || shared_bytes != 0 || parameters == NULL || extra != NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (atomic_fetch_add(&launches, 1) + 1 == setting("TN_SHIM_LAUNCH_FAILS"))
        return CUDA_ERROR_LAUNCH_FAILED;
    l = malloc(sizeof(*l));
    if (l == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *l = (struct launch){.run = function->run, .threads = (uint64_t)grid_x * block_x};
    memcpy(&l->args, parameters[0], sizeof(l->args));
    code = shim_code(shim.ops->host_function(shim.self, stream, run, l));
    if (code != CUDA_SUCCESS)
        free(l);
    return code;
}
