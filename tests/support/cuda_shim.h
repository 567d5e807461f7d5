/* SPDX-License-Identifier: MIT */
/*
 * A CUDA driver for tests: a library that exports the driver's entry points, over the table of any
 * tn_driver. It is stricter than the real one: a call that needs a current context fails without
 * one, and misuse is counted as a complaint.
 *
 * A test loads the library and lends it the table of a simulated machine. Without a table there is
 * no device. Settings are changed while no other thread is inside.
 */
#ifndef TN_TEST_CUDA_SHIM_H
#define TN_TEST_CUDA_SHIM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <tenure/driver.h>

#define SHIM_DEVICES 128

/* Codes are CUresult by number; 0: no failure. */
struct cuda_shim {
    /* Settings. */
    const tn_driver_ops *ops; /* NULL: no device */
    void *self;
    int driver_code;                /* of every call: the driver has shut down */
    int init_code;                  /* of cuInit */
    int version;                    /* of cuDriverGetVersion */
    int count_code;                 /* of cuDeviceGetCount */
    int retain_code[SHIM_DEVICES];  /* of cuDevicePrimaryCtxRetain */
    int context_code[SHIM_DEVICES]; /* of calls under a device's contexts, and of pushing them */
    bool sticky[SHIM_DEVICES];      /* context_code does not concern pushing */
    int pool_code;                  /* of cuMemPoolCreate */
    bool no_pools;                  /* the devices do not support pools */
    bool no_pool_figures;           /* cuMemPoolGetAttribute fails */
    bool any_capture_mode;          /* calls outside the relaxed mode are no misuse */

    /* Figures. */
    atomic_int retained; /* primary contexts, references */
    atomic_int live_pools;
    atomic_int live_modules; /* variant "machine" */
    atomic_int trims;        /* calls of cuMemPoolTrimTo */
    _Atomic uint64_t trimmed_to;
    _Atomic uint64_t threshold; /* release threshold that was set last */
    atomic_int allocs;          /* of cuMemAlloc */
    atomic_int complaints;
    char complaint[160]; /* the first one */

    /* This thread's contexts, as a program would handle them. */
    void (*push)(uint32_t device, bool second);
    void (*pop)(void);
    uint64_t (*current)(void); /* as in tn_stream_info; 0: none */
    unsigned (*depth)(void);
    int (*capture_mode)(void); /* CUstreamCaptureMode */
};

/* The library exports two functions: its control block, and a fresh start with a table (or none). */
typedef struct cuda_shim *cuda_shim_control_fn(void);
typedef void cuda_shim_reset_fn(const tn_driver_ops *ops, void *self);

/* Its variants. */
#define SHIM_FULL "full"
#define SHIM_OLD "old"         /* without what is optional to the backend */
#define SHIM_ANCIENT "ancient" /* without something that is required */
#define SHIM_BROKEN "broken"   /* cuInit fails with CUDA_ERROR_UNKNOWN */

/* The path of a variant; NULL where this build has no CUDA backend. */
const char *cuda_shim_path(const char *variant);
/* Load a variant and start it afresh with a table (NULL: none). Fails the test if it cannot be
 * loaded. It stays loaded. */
struct cuda_shim *cuda_shim_load(const char *variant, tn_driver *machine);
/* The CUDA backend over it; it must open. */
tn_driver *cuda_shim_open(const char *variant);

#endif
