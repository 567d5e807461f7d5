/* SPDX-License-Identifier: MIT */
/*
 * Defects on purpose, one per run, that the run must find.
 *
 *   flip        one bit of a value changes on its way to the device
 *   torn-copy   the second half of a copy to the device never arrives
 *   swap        two values' files are exchanged
 *   early-free  an operation reads on a stream that its lease does not know, the lease ends, and
 *               the value is dropped under the read
 *
 * Threads: armed by one thread; copies are damaged on whatever thread the machine executes them.
 */
#ifndef TENURE_INJECT_H
#define TENURE_INJECT_H

#include "catalogue.h"
#include "machine.h"
#include "serve_options.h"

#include <stdatomic.h>

struct inject {
    enum injection kind;
    const struct machine *machine;
    /* Counted by the threads that copy, and by the worker; relaxed: no other data depends on it. */
    atomic_uint occasions;
};

/** Before the items are registered. False after an error line: nothing here can be damaged so. */
bool inject_prepare(struct inject *inject, enum injection kind, const struct machine *machine,
                    struct catalogue *catalogue);
void inject_disarm(struct inject *inject);

/** Whether this is the moment for early-free; true once. */
bool inject_early_free_now(struct inject *inject);
/** Whether a defect was asked for and had no occasion to happen. */
bool inject_has_failed(const struct inject *inject);

/* A read that goes wrong. */
struct early_read {
    tn_stream stream; /* the one that the lease does not know */
    void *bytes;      /* where it read to */
    uint64_t count;
};

/** Queues the read of device memory on a stream of its own, behind some other work. */
tn_status early_read_begin(struct early_read *read, const struct machine *machine, const void *from,
                           uint64_t bytes);
/** Waits for it; `bytes` is then what it read. */
tn_status early_read_wait(struct early_read *read, const struct machine *machine);
void early_read_end(struct early_read *read, const struct machine *machine);

#endif
