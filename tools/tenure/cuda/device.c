/* SPDX-License-Identifier: MIT */
#include "device.h"

#include "base.h"
#include "device_load.h"
#include "jump.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    JUMP_BYTES = KERNEL_JUMPS * KERNEL_JUMP_WORDS * 8,
    /* The digest, the lanes, the chunks' sums. */
    WORKER_BYTES = (KERNEL_LANES + KERNEL_LANES + KERNEL_CHUNKS * KERNEL_LANES) * 8
};

struct device {
    const struct machine *machine;
    struct device_module module;
    void *jumps;
};

struct device_worker {
    struct device *device;
    tn_stream stream;
    void *memory;
    struct steps steps;
    char why[96];
};

static bool allocate(const struct machine *machine, uint64_t bytes, void **out) {
    tn_status status = tn_memory_alloc(machine->driver, machine->at, bytes, out);

    if (status != TN_OK) {
        char *text = status_text(status);

        complain("serve: %" PRIu64 " bytes for the evaluator: %s", bytes, text);
        free(text);
        *out = NULL;
    }
    return status == TN_OK;
}

static void give_back(const struct machine *machine, void *memory, uint64_t bytes) {
    tn_status status = tn_memory_free(machine->driver, machine->at, memory, bytes);

    if (status != TN_OK) {
        complain("serve: the evaluator's memory cannot be freed: %s", tn_status_text(status));
    }
}

static bool upload_jumps(struct device *device) {
    const struct machine *machine = device->machine;
    uint64_t *matrices = NULL;
    tn_status status = TN_OK;

    if (!allocate(machine, JUMP_BYTES, &device->jumps)) {
        return false;
    }
    matrices = memory_new(JUMP_BYTES, 1);
    jump_fill(matrices);
    status = machine->ops->copy(machine->self, device->jumps, machine->at, matrices,
                                tn_location_pageable(), JUMP_BYTES, NULL);
    free(matrices);
    if (status != TN_OK) {
        complain("serve: copying to the device: %s", tn_status_text(status));
    }
    return status == TN_OK;
}

static bool load_kernels(struct device *device) {
    uint32_t index = device->machine->at.index;
    char *why = device_load(&device->module, index, device_ptx);

    if (why != NULL) {
        complain("cuda:%" PRIu32 ": no evaluator: %s", index, why);
        free(why);
        return false;
    }
    return true;
}

int device_open(const struct machine *machine, struct device **out) {
    struct device *device = memory_new(1, sizeof *device);

    device->machine = machine;
    if (!load_kernels(device) || !upload_jumps(device)) {
        device_close(device);
        return EXIT_NO_DEVICE;
    }
    *out = device;
    return EXIT_GOOD;
}

void device_close(struct device *device) {
    if (device == NULL) {
        return;
    }
    give_back(device->machine, device->jumps, JUMP_BYTES);
    device_unload(&device->module);
    free(device);
}

static bool launch(void *context, enum kernel kernel, uint64_t threads,
                   const struct kernel_args *args) {
    struct device_worker *worker = context;
    CUresult code = device_launch(&worker->device->module, kernel, threads, args, worker->stream);

    if (code != CUDA_SUCCESS) {
        snprintf(worker->why, sizeof worker->why, "%s: CUDA error %d", device_kernel_name(kernel),
                 (int)code);
    }
    return code == CUDA_SUCCESS;
}

struct device_worker *device_worker_create(struct device *device, tn_stream stream) {
    struct device_worker *worker = memory_new(1, sizeof *worker);

    *worker = (struct device_worker){.device = device, .stream = stream};
    if (!allocate(device->machine, WORKER_BYTES, &worker->memory)) {
        free(worker);
        return NULL;
    }
    worker->steps = (struct steps){.launch = launch, .context = worker, .jumps = device->jumps};
    worker->steps.digest = worker->memory;
    worker->steps.local = worker->steps.digest + KERNEL_LANES;
    worker->steps.partial = worker->steps.local + KERNEL_LANES;
    return worker;
}

void device_worker_destroy(struct device_worker *worker) {
    if (worker == NULL) {
        return;
    }
    give_back(worker->device->machine, worker->memory, WORKER_BYTES);
    free(worker);
}

struct steps *device_steps(struct device_worker *worker) {
    return &worker->steps;
}

const char *device_why(const struct device_worker *worker) { return worker->why; }

tn_status device_digest(struct device_worker *worker, uint64_t *out_digest) {
    const struct machine *machine = worker->device->machine;
    tn_status status =
        machine->ops->copy(machine->self, out_digest, tn_location_pageable(), worker->steps.digest,
                           machine->at, sizeof *out_digest, worker->stream);
    tn_status waited = machine->ops->stream_synchronize(machine->self, worker->stream);

    return status == TN_OK ? waited : status;
}
