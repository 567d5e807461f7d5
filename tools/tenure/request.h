/* SPDX-License-Identifier: MIT */
/*
 * One request in flight: a program replayed for one tenant, operation by operation.
 *
 * Invariants:
 *   R1  A ciphertext's handle is valid from its adoption to its discard; `owned[value].live` says
 *       so.
 *   R2  Device bytes that a request allocates are reserved before and adopted or freed after.
 *   R3  Whatever way a request ends, it leaves no lease, reservation, buffer or ciphertext behind.
 *
 * Threads: the worker's; the arithmetic runs where the machine runs host functions of the stream, or
 * on the device, while the request waits for the stream.
 */
#ifndef TENURE_REQUEST_H
#define TENURE_REQUEST_H

#include "control.h"
#include "evaluate.h"
#include "server.h"

/* A ciphertext of the request. */
struct owned {
    tn_handle handle;
    uint64_t checksum;
    bool live;
};

/* A value that an operation reads. */
struct operand {
    const void *bytes;
    uint64_t count, checksum;
    const char *id;
};

/* A value that an operation writes; the buffer is ours until it is adopted. */
struct result {
    tn_buffer *buffer;
    void *bytes;
    uint64_t count, checksum;
};

/* What the arithmetic of one operation needs: filled before, read after. */
struct task {
    struct evaluation *evaluation;
    uint64_t op;
    bool in_workspace;
    struct operand *operands;
    size_t operand_count;
    struct result *results;
    size_t result_count;
    uint64_t verified, corruptions;
    const char *first_wrong; /* id of the first operand whose bytes were wrong */
};

struct request {
    struct worker *worker;
    struct server *server; /* the worker's */
    const struct program *program;
    size_t program_index;
    uint64_t tenant, number;
    uint64_t next_op;    /* the first that is not complete */
    struct owned *owned; /* per value */
    tn_handle *handles;  /* of the operation in progress */
    size_t handle_count;
    tn_lease lease;        /* explicit control */
    struct ask ask;        /* --control lru */
    struct stay stay;      /* same: of the operation in progress */
    struct stay stage_use; /* same: of the open stage; it holds the bytes of the workspace */
    tn_reservation results_reservation; /* with --control lru it is the use's */
    void *workspace;                    /* of the open stage */
    uint64_t workspace_bytes;
    tn_reservation workspace_reservation;
    struct task task;
    struct evaluation evaluation;
};

enum request_end { REQUEST_DONE, REQUEST_FAILED, REQUEST_STOPPED };

/**
 * Serves one request from its inputs to its outputs.
 *
 * @param[out] out_digest  with REQUEST_DONE.
 */
enum request_end request_serve(struct worker *worker, size_t program_index, uint64_t tenant,
                               uint64_t number, uint64_t *out_digest);

/* ---- operation.c: for request.c ---- */

/** Runs one operation; false after an error line. Leaves nothing of it behind either way. */
bool operation_run(struct request *request, uint64_t index);
/** Reports a failing call of this request; returns false. */
bool request_fail(struct request *request, tn_status status, const char *doing, const char *id);
/** The same, with words of the caller's. */
void request_complain(const struct request *request, const char *doing, const char *id,
                      const char *why);
/** Waits for the worker's stream: until then what was released on it may be protected. */
bool request_wait(struct request *request);
/** Ends a ciphertext. */
bool request_discard(struct request *request, uint32_t value);
/** Begins the ask of a step of this request. (operation_lru.c) */
void request_ask(struct request *request, const char *what);
/** Where a value's buffer has its bytes. */
void *buffer_bytes(const tn_buffer *buffer);

/* ---- compute.c: the arithmetic. False after an error line; then nothing of it is queued. ---- */

/** The digest begins. */
bool compute_begin(struct request *request);
/** With the workspace allocated; it is filled, perhaps when the stream gets there. */
bool compute_open_stage(struct request *request);
bool compute_close_stage(struct request *request);
/** Queues an operation's arithmetic on the worker's stream. */
bool compute_queue(struct request *request);
/** Waits until nothing of it is queued. */
tn_status compute_wait(struct request *request);
/** After the last operation: waits for the stream; the evaluation then has the digest. */
bool compute_end(struct request *request);

#endif
