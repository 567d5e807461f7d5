/* SPDX-License-Identifier: MIT */
/*
 * A workload at a scale: the bytes that its values, stages and operations really take, and what a
 * request in flight needs.
 *
 * Threads: a program never changes and can be read from any thread.
 */
#ifndef TENURE_PROGRAM_H
#define TENURE_PROGRAM_H

#include "content.h"
#include "options.h"
#include "workload.h"

struct program {
    struct workload *work;                        /* owned */
    uint64_t *value_bytes;                        /* per value */
    uint64_t *stage_bytes;                        /* per stage: its workspace; 0: none */
    uint32_t *read_count;                         /* per value: how many operations read it */
    uint64_t tenant_key_bytes, largest_key_bytes; /* keys of one tenant */
    uint64_t source_bytes;                        /* keys and plaintexts, each once */
    uint64_t peak_bytes; /* the most ciphertexts and stage workspace at once */
    uint64_t need_bytes; /* likewise with the keys and plaintexts that the operation reads */
};

/**
 * @param work  consumed on success.
 * @return NULL after an error line: at this scale the bytes do not fit in 64 bits.
 */
struct program *program_create(struct workload *work, struct scale scale);
void program_destroy(struct program *program);

/** Whether a value is loaded from a file; else it belongs to one request. */
bool program_is_source(const struct program *program, uint32_t value);
/** Whether the operation has workspace of its stage. */
bool program_has_workspace(const struct program *program, const struct workload_op *op);
/** The tenant of a source value: `tenant`, or TENANT_SHARED. */
uint64_t program_tenant(const struct program *program, uint32_t value, uint64_t tenant);
/** The generator of an input of one request. */
struct generator program_input(const struct program *program, uint32_t value, uint64_t seed,
                               uint64_t tenant, uint64_t request);

#endif
