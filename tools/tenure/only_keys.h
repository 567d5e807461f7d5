/* SPDX-License-Identifier: MIT */
/*
 * A workload reduced to its operations' reads of keys, which is what a cache of keys sees.
 *
 * Threads: one at a time.
 */
#ifndef TENURE_ONLY_KEYS_H
#define TENURE_ONLY_KEYS_H

#include "workload.h"

/** Takes out all values but keys, and with them what operations write, free and work in, and the
 * outputs. The figures stay those of the whole workload. */
void workload_only_keys(struct workload *work);

#endif
