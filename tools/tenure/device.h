/* SPDX-License-Identifier: MIT */
/*
 * The evaluator on a real device: the kernels (kernel.h), built into the program as PTX, on the
 * workers' streams. They are loaded through the driver that the library has opened; nothing of CUDA
 * is linked.
 *
 * The sums and the generator's matrices take device memory that no budget knows: 256 KiB, and 4 MiB
 * per worker.
 *
 * Threads: opened and closed by one thread; each worker's part is used by that worker.
 */
#ifndef TENURE_DEVICE_H
#define TENURE_DEVICE_H

#include "machine.h"
#include "steps.h"

struct device;
struct device_worker;

/**
 * @param machine   a real one; outlives the evaluator.
 * @return EXIT_GOOD; EXIT_NO_DEVICE after an error line: the program was built without evaluator, or
 *         the driver does not take it.
 */
int device_open(const struct machine *machine, struct device **out);
/** When all workers are gone. NULL is ignored. */
void device_close(struct device *device);

/** What one worker needs; NULL after an error line. */
struct device_worker *device_worker_create(struct device *device, tn_stream stream);
/** When its stream has nothing queued. NULL is ignored. */
void device_worker_destroy(struct device_worker *worker);

/** The kernels, launched on the worker's stream. */
struct steps *device_steps(struct device_worker *worker);
/** The last launch that failed, in words; borrowed. */
const char *device_why(const struct device_worker *worker);
/** Waits for the stream and reads the digest. */
tn_status device_digest(struct device_worker *worker, uint64_t *out_digest);

#endif
