/* SPDX-License-Identifier: MIT */
/*
 * A recorded CKKS program in memory: values, operations, stages, figures.
 *
 * Invariants after workload_load():
 *   W1  Every index in an operation names a value; values stand in the order they were made.
 *   W2  An operation reads only values that exist at that point, each once; it writes new
 *       ciphertexts and frees ciphertexts that exist, each once.
 *   W3  All sums of bytes (totals, live ciphertexts plus workspace) fit in INT64_MAX.
 *   W4  A written ciphertext is freed or an output; every declared key is read.
 *
 * Threads: a loaded workload never changes and can be read from any thread.
 */
#ifndef TENURE_WORKLOAD_H
#define TENURE_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum value_kind { KIND_KEY, KIND_PLAINTEXT, KIND_CIPHERTEXT };
enum { KIND_COUNT = 3 };

struct workload_value {
    const char *id;
    uint64_t bytes;
    enum value_kind kind;
    bool shared;   /* one for all tenants; else one per tenant */
    bool input;    /* a request's data: cannot be loaded again */
    bool declared; /* stands before the first operation; else an operation writes it */
};

/* A stretch of workload.refs: value indices. */
struct workload_refs {
    uint32_t first, count;
};

struct workload_op {
    const char *name;
    struct workload_refs reads, writes, frees;
    uint64_t workspace_bytes;
    uint32_t stage; /* index into workload.stages */
};

/* A maximal run of operations of the same stage name. */
struct workload_stage {
    const char *name;
    uint32_t first_op, op_count;
    uint64_t workspace_bytes; /* the most that any operation of the run needs */
};

struct workload_params {
    uint64_t ring_dim, q_limbs, p_limbs, digits, word_bytes;
};

struct workload_figures {
    uint64_t count[KIND_COUNT], bytes[KIND_COUNT]; /* all values, declared and written */
    uint64_t declared_count, written_bytes;
    uint64_t plaintext_reads, plaintext_read_bytes;
    uint64_t peak_ciphertext_bytes, peak_workspace_bytes, peak_both_bytes;
};

struct workload {
    char *path, *name, *origin;
    struct workload_params params;
    struct workload_value *values;
    size_t value_count;
    struct workload_op *ops;
    size_t op_count;
    struct workload_stage *stages;
    size_t stage_count;
    uint32_t *refs;
    size_t ref_count;
    struct workload_refs outputs;
    struct workload_figures figures;
    struct intern *ids;   /* number = value index */
    struct intern *names; /* of operations and stages */
};

/**
 * Reads and validates one file.
 *
 * @param path  borrowed.
 * @param[out] out_error  on failure a line "file:line: text" (or "file: text"); owned.
 * @return the workload, owned; NULL on failure.
 */
struct workload *workload_load(const char *path, char **out_error);
void workload_destroy(struct workload *work);

/** "key", "plaintext" or "ciphertext". */
const char *workload_kind_name(enum value_kind kind);

#endif
