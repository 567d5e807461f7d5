/* SPDX-License-Identifier: MIT */
/* Instead of cuda/ in a build without nvcc: there is no evaluator for real devices. */
#include "device.h"

#include "base.h"

#include <inttypes.h>
#include <stdlib.h>

int device_open(const struct machine *machine, struct device **out) {
    *out = NULL;
    complain("cuda:%" PRIu32
             ": no evaluator: this program was built without nvcc, so it has no kernels",
             machine->at.index);
    return EXIT_NO_DEVICE;
}

void device_close(struct device *device) { (void)device; }

/* Nobody gets here without a device. */
struct device_worker *device_worker_create(struct device *device, tn_stream stream) {
    (void)device;
    (void)stream;
    abort();
}

void device_worker_destroy(struct device_worker *worker) { (void)worker; }

struct steps *device_steps(struct device_worker *worker) {
    (void)worker;
    abort();
}

const char *device_why(const struct device_worker *worker) {
    (void)worker;
    abort();
}

tn_status device_digest(struct device_worker *worker, uint64_t *out_digest) {
    (void)worker;
    (void)out_digest;
    abort();
}
