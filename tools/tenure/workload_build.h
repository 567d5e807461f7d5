/* SPDX-License-Identifier: MIT */
/*
 * What the reader of workload files (workload_read.c) and the checks it feeds (workload_build.c)
 * share: a workload under construction. Each function checks one fact of the format, records it,
 * and answers false with `error` set when the file breaks it.
 *
 * Threads: one at a time.
 */
#ifndef TENURE_WORKLOAD_BUILD_H
#define TENURE_WORKLOAD_BUILD_H

#include "workload.h"

enum value_state { STATE_LIVE, STATE_FREED };

struct build {
    struct workload *work;
    size_t line;     /* 1 is the first; 0: the error is about the file */
    char error[640]; /* the text after "file:line: "; empty while all is well */
    bool has_outputs;
    uint64_t live_ciphertext_bytes;
    uint8_t *state;     /* per value: enum value_state */
    uint8_t *key_read;  /* per value */
    uint32_t *last_op;  /* per value: 1 + the last operation that read it; finds double reads */
    uint8_t *is_output; /* per value */
    size_t value_capacity, op_capacity, stage_capacity, ref_capacity;
    size_t state_capacity, key_read_capacity, last_op_capacity, is_output_capacity;
};

/** Sets the error, unless there is one already; always returns false. */
bool build_fail(struct build *build, const char *format, ...) __attribute__((format(printf, 2, 3)));

bool build_value(struct build *build, const char *id, size_t id_length,
                 struct workload_value value);
/** Opens an operation; its reads, writes, and then frees follow, then build_op_end(). */
bool build_op(struct build *build, const char *name, const char *stage, uint64_t workspace_bytes);
bool build_read(struct build *build, const char *id, size_t length);
bool build_write(struct build *build, const char *id, size_t length, uint64_t bytes);
/** After the last write: the moment at which an operation holds the most. */
bool build_peak(struct build *build);
bool build_free(struct build *build, const char *id, size_t length);
void build_op_end(struct build *build);
bool build_output(struct build *build, const char *id, size_t length);
/** The checks at the end of the file. */
bool build_end(struct build *build);

#endif
