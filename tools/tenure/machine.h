/* SPDX-License-Identifier: MIT */
/*
 * The machine that requests are served on: a simulated one, or the driver of a real one; and one
 * device of it.
 *
 * Threads: opened and closed by one thread; everything else from any.
 */
#ifndef TENURE_MACHINE_H
#define TENURE_MACHINE_H

#include <tenure/tenure.h>

struct machine {
    tn_sim *sim; /* NULL: a real machine */
    tn_driver *driver;
    const tn_driver_ops *ops;
    void *self;     /* of ops */
    tn_location at; /* the device */
    bool virtual_time;
};

/**
 * @param description  of a simulated machine, as in sim.h; borrowed.
 * @param device       "sim:N" or "cuda:N"; borrowed.
 * @return EXIT_GOOD; EXIT_USAGE or EXIT_NO_DEVICE after an error line.
 */
int machine_open(struct machine *machine, const char *description, const char *device);
/** Only the simulated machine, without choosing a device. */
int machine_open_simulated(struct machine *machine, const char *description);
void machine_close(struct machine *machine);

/** Nanoseconds of the machine's clock. */
uint64_t machine_now_ns(const struct machine *machine);

/** Why tn_driver_open_cuda() has just failed on this thread, with the driver's code if it gave one;
 * owned. */
char *machine_cuda_why(void);

/** "TN_ERR_BUDGET: message (native code 5)" about this thread's last failing call; owned. */
char *status_text(tn_status status);

#endif
