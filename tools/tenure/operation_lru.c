/* SPDX-License-Identifier: MIT */
/*
 * An operation with --control lru: a use of what it reads and of the bytes of what it writes.
 */
#include "base.h"
#include "operation.h"

#include <inttypes.h>
#include <stdlib.h>

static void name_step(struct request *request) {
    request->ask.request = request->number;
    request->ask.tenant = request->tenant;
    request->ask.op = request->next_op + 1;
}

void request_ask(struct request *request, const char *what) {
    ask_begin(&request->ask, "%.100s: %.100s", request->program->work->name, what);
    name_step(request);
}

static void ask_operation(struct request *request, const struct workload_op *op) {
    struct ask *ask = &request->ask;

    ask_begin(ask, "%.100s: operation %" PRIu64 ", %.100s", request->program->work->name,
              request->next_op + 1, op->name);
    name_step(request);
    for (uint32_t i = 0; i < op->reads.count; i++) {
        uint32_t value = request->program->work->refs[op->reads.first + i];
        bool is_source = program_is_source(request->program, value);

        ask_value(ask, operation_handle(request, value),
                  is_source ? operation_item(request, value) : NULL,
                  request->program->work->values[value].id);
    }
    if (op->writes.count > 0) {
        ask_reserve(ask, operation_result_bytes(request, op->writes), "results");
    }
}

/* Names the key or plaintext that the plan failed at, if it is one. */
static bool fail_entering(struct request *request, tn_status status) {
    const struct item *item = NULL;
    char *name = NULL;

    if (status == TN_ERR_PLAN_EXEC) {
        item = control_item(request->worker->placer.control, tn_last_error()->action_handle);
    }
    if (item == NULL) {
        return request_fail(request, status, "entering", "what it needs");
    }
    name = text_format("%s of %s", item->id, item->path);
    request_fail(request, status, "loading", name);
    free(name);
    return false;
}

static bool enter(struct request *request, const struct workload_op *op) {
    tn_status status = control_enter(&request->worker->placer, &request->ask, &request->stay);

    if (status == TN_OK && op->writes.count > 0) {
        status = control_reservation(&request->stay, &request->results_reservation);
    }
    return status == TN_OK || fail_entering(request, status);
}

static bool borrow(struct request *request, struct workload_refs reads) {
    for (uint32_t i = 0; i < reads.count; i++) {
        uint32_t value = request->program->work->refs[reads.first + i];
        const void *payload = NULL;
        tn_status status = tn_use_value(request->stay.use, operation_handle(request, value),
                                        request->server->machine.at, &payload);

        if (status != TN_OK) {
            return request_fail(request, status, "looking up",
                                request->program->work->values[value].id);
        }
        operation_add_operand(request, value, payload);
    }
    return true;
}

bool lru_open(struct request *request, const struct workload_op *op) {
    if (op->reads.count == 0 && op->writes.count == 0) {
        return true;
    }
    ask_operation(request, op);
    return enter(request, op) && operation_make_results(request, op->writes) &&
           borrow(request, op->reads);
}

bool lru_close(struct request *request) {
    tn_status status = TN_OK;

    if (request->stay.use != NULL) {
        status = control_exit(&request->worker->placer, &request->stay);
    }
    request->results_reservation = (tn_reservation){NULL, 0};
    return status == TN_OK || request_fail(request, status, "giving back", "what it used");
}
