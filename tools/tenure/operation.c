/* SPDX-License-Identifier: MIT */
/*
 * One operation: make what it reads resident, borrow it, compute, adopt what it writes, discard
 * what it frees.
 */
#include "operation.h"

#include "base.h"
#include "room.h"

#include <inttypes.h>
#include <stdlib.h>

void request_complain(const struct request *request, const char *doing, const char *id,
                      const char *why) {
    const struct workload *work = request->program->work;
    const char *op = request->next_op < work->op_count ? work->ops[request->next_op].name : "end";

    server_show_error("request %" PRIu64 " of tenant %" PRIu64 ", operation %" PRIu64
                      " (%s): %s %s: %s",
                      request->number, request->tenant, request->next_op + 1, op, doing, id, why);
}

bool request_fail(struct request *request, tn_status status, const char *doing, const char *id) {
    char *text = status_text(status);

    request_complain(request, doing, id, text);
    free(text);
    return false;
}

void *buffer_bytes(const tn_buffer *buffer) { return tn_buffer_segment(buffer, 0).data; }

struct item *operation_item(const struct request *request, uint32_t value) {
    return catalogue_item(&request->server->catalogue, request->program_index, request->tenant,
                          request->program, value);
}

tn_handle operation_handle(const struct request *request, uint32_t value) {
    return program_is_source(request->program, value) ? operation_item(request, value)->handle
                                                      : request->owned[value].handle;
}

bool request_discard(struct request *request, uint32_t value) {
    struct owned *owned = &request->owned[value];
    tn_status status = TN_OK;

    if (!owned->live) {
        return true;
    }
    status = tn_manager_discard(request->server->manager, owned->handle, NULL);
    if (status != TN_OK) {
        return request_fail(request, status, "discarding",
                            request->program->work->values[value].id);
    }
    owned->live = false;
    placement_gave_back(&request->server->placement);
    return true;
}

static void mark_users(struct request *request, struct workload_refs reads, bool begins) {
    for (uint32_t i = 0; i < reads.count; i++) {
        uint32_t value = request->program->work->refs[reads.first + i];

        if (program_is_source(request->program, value)) {
            placement_use(&request->server->placement, operation_item(request, value), begins);
        }
    }
}

static tn_status allocate_result(struct request *request, struct result *result) {
    const struct machine *machine = &request->server->machine;
    struct placer *placer = &request->worker->placer;
    struct attempt attempt = {0};
    tn_status status = TN_OK;

    do { /* the ledger has room, but the machine's memory may be in pieces */
        attempt_begin(placer, &attempt);
        status = tn_buffer_create(machine->driver, machine->at, &result->count, 1, &result->buffer);
    } while (attempt_again(placer, &attempt, TIER_DEVICE, &status));
    if (status == TN_OK) {
        result->bytes = buffer_bytes(result->buffer);
    }
    return status;
}

/* R2: reserved before, adopted in keep_results(). */
bool operation_make_results(struct request *request, struct workload_refs writes) {
    const struct program *program = request->program;

    for (uint32_t i = 0; i < writes.count; i++) {
        uint32_t value = program->work->refs[writes.first + i];
        tn_status status = TN_OK;

        request->task.results[i] = (struct result){.count = program->value_bytes[value]};
        request->task.result_count = i + 1;
        status = allocate_result(request, &request->task.results[i]);
        if (status != TN_OK) {
            return request_fail(request, status, "allocating", program->work->values[value].id);
        }
    }
    return true;
}

uint64_t operation_result_bytes(const struct request *request, struct workload_refs writes) {
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < writes.count; i++) {
        bytes += request->program->value_bytes[request->program->work->refs[writes.first + i]];
    }
    return bytes;
}

void operation_add_operand(struct request *request, uint32_t value, const void *payload) {
    bool is_source = program_is_source(request->program, value);
    const struct item *item = is_source ? operation_item(request, value) : NULL;

    request->task.operands[request->task.operand_count++] =
        (struct operand){.bytes = buffer_bytes(payload),
                         .count = request->program->value_bytes[value],
                         .checksum = is_source ? item->checksum : request->owned[value].checksum,
                         .id = request->program->work->values[value].id};
}

/* What it read; with --control lru, all that the operation's use holds. */
static bool release(struct request *request) {
    return request->worker->placer.control == NULL ? explicit_close(request) : lru_close(request);
}

bool request_wait(struct request *request) {
    const struct machine *machine = &request->server->machine;
    tn_status status = machine->ops->stream_synchronize(machine->self, request->worker->stream);

    return status == TN_OK || request_fail(request, status, "waiting for", "its stream");
}

/*
 * A lease of explicit control ends while the arithmetic is queued: its event on the stream protects
 * what is read until the stream has got past it. A use also holds the bytes of the results, so it
 * lasts until they are adopted (C141).
 */
static bool run_task(struct request *request) {
    return compute_queue(request) && (request->stay.use != NULL || release(request)) &&
           request_wait(request);
}

static bool adopt_results(struct request *request, struct workload_refs writes) {
    struct server *server = request->server;

    for (uint32_t i = 0; i < writes.count; i++) {
        uint32_t value = request->program->work->refs[writes.first + i];
        struct result *result = &request->task.results[i];
        struct owned *owned = &request->owned[value];
        tn_status status = tn_manager_adopt_reserved(
            server->manager, tn_buffer_payload(result->buffer), server->machine.at, TN_EXCLUSIVE,
            &request->results_reservation, &owned->handle);

        if (status != TN_OK) {
            return request_fail(request, status, "adopting",
                                request->program->work->values[value].id);
        }
        result->buffer = NULL;
        owned->live = true;
    }
    return true;
}

/*
 * --inject early-free: a key is read by a copy on a stream that the lease does not know. The lease
 * ends, nothing protects the key any longer, it is dropped, and the read finds what is left. All
 * other workers are kept from the key meanwhile.
 */
static bool drop_under_read(struct request *request, struct item *item,
                            const struct operand *operand, struct workload_refs writes,
                            struct early_read *read) {
    struct server *server = request->server;
    tn_status status = early_read_begin(read, &server->machine, operand->bytes, operand->count);

    /* The use that ends takes the reservation of the results with it. */
    if (status == TN_OK && request->stay.use != NULL && !adopt_results(request, writes)) {
        return false;
    }
    if (status == TN_OK && !(release(request) && request_wait(request))) {
        return false;
    }
    if (status == TN_OK) {
        status = tn_manager_drop(server->manager, item->handle, server->machine.at, NULL);
    }
    return status == TN_OK || request_fail(request, status, "injecting early-free into", item->id);
}

static bool run_task_on_freed(struct request *request, struct operand *operand,
                              struct early_read *read) {
    tn_status status = early_read_wait(read, &request->server->machine);

    if (status != TN_OK) {
        return request_fail(request, status, "injecting early-free into", operand->id);
    }
    /* Every operand but this one is a ciphertext of ours, or is in use and stays. */
    operand->bytes = read->bytes;
    return compute_queue(request) && request_wait(request);
}

/* With the key frozen, which ends here. */
static bool inject_early_free(struct request *request, struct item *item, struct operand *operand,
                              struct workload_refs writes) {
    struct early_read read = {0};
    bool good = drop_under_read(request, item, operand, writes, &read);

    placement_thaw(&request->server->placement, item, good);
    good = good && run_task_on_freed(request, operand, &read);
    early_read_end(&read, &request->server->machine);
    return good;
}

static bool run_arithmetic(struct request *request, const struct workload_op *op) {
    struct server *server = request->server;
    struct workload_refs reads = op->reads;

    for (uint32_t i = 0; i < reads.count && server->options.inject == INJECT_EARLY_FREE; i++) {
        uint32_t value = request->program->work->refs[reads.first + i];

        if (request->program->work->values[value].kind != KIND_KEY ||
            !placement_freeze(&server->placement, operation_item(request, value))) {
            continue;
        }
        if (inject_early_free_now(&server->inject)) {
            return inject_early_free(request, operation_item(request, value),
                                     &request->task.operands[i], op->writes);
        }
        placement_thaw(&server->placement, operation_item(request, value), false);
    }
    return run_task(request);
}

static bool keep_results(struct request *request, struct workload_refs writes) {
    if (writes.count > 0 && request->task.results[0].buffer != NULL &&
        !adopt_results(request, writes)) {
        return false;
    }
    for (uint32_t i = 0; i < writes.count; i++) {
        request->owned[request->program->work->refs[writes.first + i]].checksum =
            request->task.results[i].checksum;
    }
    return true;
}

static void count_task(struct request *request) {
    struct task *task = &request->task;
    struct tally *tally = &request->worker->tally;

    tally->verified += task->verified;
    tally->corruptions += task->corruptions;
    if (task->first_wrong != NULL) {
        server_show_error("request %" PRIu64 " of tenant %" PRIu64 ", operation %" PRIu64
                          " (%s): %s has wrong bytes",
                          request->number, request->tenant, request->next_op + 1,
                          request->program->work->ops[request->next_op].name, task->first_wrong);
    }
}

/* R3, for one operation. */
static bool clean_up(struct request *request, bool good) {
    tn_status status = TN_OK;

    if (request->lease.record != NULL) {
        good = release(request) && request_wait(request) && good;
    }
    if (request->stay.use != NULL && !good) {
        (void)request_wait(request); /* the arithmetic may be queued still */
    }
    for (size_t i = 0; i < request->task.result_count; i++) {
        tn_buffer_destroy(request->task.results[i].buffer);
        request->task.results[i].buffer = NULL;
    }
    if (request->stay.use != NULL) { /* and its event, so that nothing is protected any longer */
        good = release(request) && request_wait(request) && good;
        placement_gave_back(&request->server->placement);
        return good;
    }
    if (request->results_reservation.record != NULL) {
        status = tn_reservation_release(&request->results_reservation);
        request->results_reservation = (tn_reservation){NULL, 0};
        placement_gave_back(&request->server->placement);
        if (status != TN_OK) {
            good = request_fail(request, status, "giving back", "its reservation");
        }
    }
    return good;
}

/* Plaintexts go after their last reader. */
static bool retire_read(struct request *request, struct workload_refs reads) {
    bool good = true;

    for (uint32_t i = 0; i < reads.count; i++) {
        uint32_t value = request->program->work->refs[reads.first + i];
        struct item *item = NULL;
        tn_status status = TN_OK;

        if (request->program->work->values[value].kind != KIND_PLAINTEXT) {
            continue;
        }
        item = operation_item(request, value);
        status = placement_read_done(&request->worker->placer, item);
        if (status != TN_OK) {
            good = request_fail(request, status, "dropping", item->id);
        }
    }
    return good;
}

bool operation_run(struct request *request, uint64_t index) {
    const struct workload_op *op = &request->program->work->ops[index];
    bool good = false;

    request->task.op = index;
    request->task.in_workspace = program_has_workspace(request->program, op);
    request->task.operand_count = request->task.result_count = 0;
    request->task.verified = request->task.corruptions = 0;
    request->task.first_wrong = NULL;
    mark_users(request, op->reads, true);
    good = request->worker->placer.control == NULL ? explicit_open(request, op)
                                                   : lru_open(request, op);
    good = good && run_arithmetic(request, op);
    if (good) {
        count_task(request);
        good = keep_results(request, op->writes);
    }
    good = clean_up(request, good);
    mark_users(request, op->reads, false);
    if (!good) {
        return false;
    }
    for (uint32_t i = 0; i < op->frees.count; i++) {
        if (!request_discard(request, request->program->work->refs[op->frees.first + i])) {
            return false;
        }
    }
    request->next_op = index + 1;
    return retire_read(request, op->reads);
}
