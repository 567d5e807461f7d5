/* SPDX-License-Identifier: MIT */
/*
 * driver: the checked way to a driver's table. Called by every module above, from any thread,
 * never under a lock of rank STATE or above (asserted in each wrapper that calls the table).
 *
 * D1: a status that leaves this module is TN_OK or has its detail set, with the native code.
 * D2: TN_ERR_CLOSED from a table ("already gone") is success for frees, destroys, queries (done)
 * and synchronisations, and
 *     TN_ERR_DRIVER for everything else.
 * A NULL driver is a machine with pageable memory only.
 */
#ifndef TENURE_DRIVER_INTERNAL_H
#define TENURE_DRIVER_INTERNAL_H

#include <tenure/driver.h>

#include "base/base_internal.h"

/* tn_driver_open_cuda() with the driver in another library: for tests. */
TN_NODISCARD tn_status tn__driver_open_cuda(const char *library, tn_driver **out);

/* Visible CUDA devices; 0 for NULL or on failure. Asked once, at tn_driver_create(). */
uint32_t tn__driver_devices(const tn_driver *d);

/* M16: format (TN_ERR_KIND / TN_ERR_VALUE), then existence: hosts always pass, cuda:N is
 * TN_ERR_VALUE where there is none. *out is normalised (host index 0). */
TN_NODISCARD tn_status tn__driver_check_location(const tn_driver *d, tn_location at,
                                                 tn_location *out);

/* A stream given for a CUDA device: TN_ERR_KIND not a stream; TN_ERR_VALUE thread-relative,
 * capturing, or of another device. */
TN_NODISCARD tn_status tn__driver_check_stream(tn_driver *d, tn_stream stream, uint32_t device,
                                               tn_stream_info *out);

TN_NODISCARD tn_status tn__stream_create(tn_driver *d, uint32_t device, tn_stream *out);
tn_status tn__stream_destroy(tn_driver *d, tn_stream stream);
TN_NODISCARD tn_status tn__stream_synchronize(tn_driver *d, tn_stream stream);
TN_NODISCARD tn_status tn__event_create(tn_driver *d, uint32_t device, uint64_t context,
                                        tn_event *out);
tn_status tn__event_destroy(tn_driver *d, tn_event event);
TN_NODISCARD tn_status tn__event_record(tn_driver *d, tn_event event, tn_stream stream);
TN_NODISCARD tn_status tn__event_query(tn_driver *d, tn_event event, bool *out_done);
TN_NODISCARD tn_status tn__event_synchronize(tn_driver *d, tn_event event);
TN_NODISCARD tn_status tn__device_synchronize(tn_driver *d, uint32_t device);
/* stream NULL: synchronous; host to host is a plain memcpy without a driver call. */
TN_NODISCARD tn_status tn__driver_copy(tn_driver *d, void *destination, tn_location destination_at,
                                       const void *source, tn_location source_at, uint64_t bytes,
                                       tn_stream stream);
/* End a driver whose machine ends with it: no call of the table. NULL is ignored. */
void tn__driver_discard(tn_driver *d);

/* A manager begins or ends to use it; the last one trims the pool of pinned memory. */
void tn__driver_use(tn_driver *d);
void tn__driver_unuse(tn_driver *d);

/* Pinned memory that is no value's (rings): from the driver and back, counted as ring bytes. */
TN_NODISCARD tn_status tn__driver_ring_alloc(tn_driver *d, uint64_t bytes, void **out);
void tn__driver_ring_free(tn_driver *d, void *pointer, uint64_t bytes);
/* How many chunks the pool has given back so far: whether it is worth asking again. */
uint64_t tn__driver_pinned_returned(tn_driver *d);

/* M92, M230: pool figures; false if they cannot be had (never an error). */
bool tn__driver_readings(tn_driver *d, uint32_t device, uint64_t *allocated, uint64_t *held);

#endif
