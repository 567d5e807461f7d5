/* SPDX-License-Identifier: MIT */
/*
 * What the parts of an operation share: operation.c runs it, operation_explicit.c and
 * operation_lru.c open it, each with its kind of control.
 *
 * Threads: as request.h.
 */
#ifndef TENURE_OPERATION_H
#define TENURE_OPERATION_H

#include "request.h"

/** The item of a key or plaintext as the request sees it. */
struct item *operation_item(const struct request *request, uint32_t value);
tn_handle operation_handle(const struct request *request, uint32_t value);
uint64_t operation_result_bytes(const struct request *request, struct workload_refs writes);
/** Allocates what it writes, which is reserved. False after an error line, as all here. */
bool operation_make_results(struct request *request, struct workload_refs writes);
/** Adds the next value that it reads to its task. */
void operation_add_operand(struct request *request, uint32_t value, const void *payload);

/** All it reads is borrowed and in the task, what it writes is reserved and allocated. What has been
 * opened when it fails is closed by operation.c. */
bool explicit_open(struct request *request, const struct workload_op *op);
/** Ends the lease. */
bool explicit_close(struct request *request);

bool lru_open(struct request *request, const struct workload_op *op);
/** Ends the use, if there is one, with the reservation of the results. */
bool lru_close(struct request *request);

#endif
