/* SPDX-License-Identifier: MIT */
/*
 * A request's arithmetic, where its worker does it: by evaluate.c, called as the stream gets there,
 * if the host reads the device's memory; else by kernels on the stream.
 */
#include "device.h"
#include "request.h"

#include <stdlib.h>
#include <xxhash.h>

static struct steps *steps_of(const struct request *request) {
    return request->worker->device == NULL ? NULL : device_steps(request->worker->device);
}

/* The host's arithmetic is not queued between operations. */
tn_status compute_wait(struct request *request) {
    const struct machine *machine = &request->server->machine;

    return request->worker->device == NULL
               ? TN_OK
               : machine->ops->stream_synchronize(machine->self, request->worker->stream);
}

/* A launch failed. Kernels of ours may be queued, and are done when this returns. */
static bool fail(struct request *request) {
    tn_status status = TN_OK;

    request_complain(request, "launching", "the arithmetic", device_why(request->worker->device));
    status = compute_wait(request);
    return status == TN_OK ? false : request_fail(request, status, "waiting for", "its stream");
}

bool compute_begin(struct request *request) {
    struct steps *steps = steps_of(request);

    evaluate_begin(&request->evaluation, request->server->options.seed, request->tenant,
                   request->number);
    return steps == NULL || steps_begin(steps, request->evaluation.digest) || fail(request);
}

bool compute_open_stage(struct request *request) {
    struct steps *steps = steps_of(request);

    if (steps != NULL) {
        return steps_open_stage(steps, request->workspace, request->workspace_bytes) ||
               fail(request);
    }
    evaluate_open_stage(&request->evaluation, request->workspace, request->workspace_bytes);
    return true;
}

bool compute_close_stage(struct request *request) {
    struct steps *steps = steps_of(request);

    if (steps != NULL) {
        return steps_close_stage(steps) || fail(request);
    }
    evaluate_close_stage(&request->evaluation);
    return true;
}

bool compute_end(struct request *request) {
    tn_status status = TN_OK;

    if (request->worker->device != NULL) {
        status = device_digest(request->worker->device, &request->evaluation.digest);
    }
    return status == TN_OK || request_fail(request, status, "reading", "its digest");
}

/* Runs when the stream gets there; calls neither the driver nor the library. */
static void compute(void *context) {
    struct task *task = context;

    evaluate_open_op(task->evaluation, task->op, task->in_workspace);
    for (size_t i = 0; i < task->operand_count; i++) {
        const struct operand *operand = &task->operands[i];

        evaluate_read(task->evaluation, operand->bytes, operand->count);
        if (XXH3_64bits(operand->bytes, (size_t)operand->count) == operand->checksum) {
            task->verified++;
            continue;
        }
        task->corruptions++;
        if (task->first_wrong == NULL) {
            task->first_wrong = operand->id;
        }
    }
    evaluate_close_op(task->evaluation, task->result_count > 0);
    for (size_t i = 0; i < task->result_count; i++) {
        struct result *result = &task->results[i];

        evaluate_write(task->evaluation, i, result->bytes, result->count);
        result->checksum = XXH3_64bits(result->bytes, (size_t)result->count);
    }
}

/* The same. Values are not checked one by one; the digest is made of all their bytes. */
static bool launch(struct steps *steps, const struct task *task) {
    bool good = steps_open_op(steps, task->op, task->in_workspace);

    for (size_t i = 0; good && i < task->operand_count; i++) {
        good = steps_read(steps, task->operands[i].bytes, task->operands[i].count);
    }
    good = good && steps_close_op(steps, task->result_count > 0);
    for (size_t i = 0; good && i < task->result_count; i++) {
        good = steps_write(steps, i, task->results[i].bytes, task->results[i].count);
    }
    return good;
}

bool compute_queue(struct request *request) {
    const struct machine *machine = &request->server->machine;
    struct steps *steps = steps_of(request);
    tn_status status = TN_OK;

    if (steps != NULL) {
        return launch(steps, &request->task) || fail(request);
    }
    status = machine->ops->host_function(machine->self, request->worker->stream, compute,
                                         &request->task);
    return status == TN_OK || request_fail(request, status, "queueing", "the arithmetic");
}
