/* SPDX-License-Identifier: MIT */
/*
 * Values that have a size and a location but no content: what a plan is explained on. The manager
 * charges them like any other, and a machine of any size costs no memory.
 *
 * Threads: any.
 */
#ifndef TENURE_WEIGHTLESS_H
#define TENURE_WEIGHTLESS_H

#include <tenure/tenure.h>

/** Static lifetime. */
const tn_value_type *weightless_type(void);

/**
 * A value for tn_manager_adopt().
 *
 * @return owned until adopted, or destroyed with tn_payload_destroy().
 */
tn_payload weightless_create(tn_location at, uint64_t bytes);

/** Registers a value that a source at `at` can make. */
tn_status weightless_register(tn_manager *manager, uint64_t bytes, uint32_t replica_mode,
                              tn_location at, tn_handle *out);

#endif
