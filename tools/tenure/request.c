/* SPDX-License-Identifier: MIT */
#include "request.h"

#include "base.h"
#include "room.h"

#include <inttypes.h>
#include <stdlib.h>
#include <xxhash.h>

/* Plaintexts of the program, from operation `first_op` on: so many more readers, or fewer. */
static void count_readers(struct request *request, uint64_t first_op, int64_t more) {
    struct server *server = request->server;
    const struct workload *work = request->program->work;

    for (uint64_t i = first_op; i < work->op_count; i++) {
        const struct workload_refs *reads = &work->ops[i].reads;

        for (uint32_t r = 0; r < reads->count; r++) {
            uint32_t value = work->refs[reads->first + r];

            if (work->values[value].kind == KIND_PLAINTEXT) {
                placement_expect_readers(&server->placement,
                                         catalogue_item(&server->catalogue, request->program_index,
                                                        request->tenant, request->program, value),
                                         more);
            }
        }
    }
}

static size_t most_reads(const struct workload *work) {
    size_t most = 1;

    for (size_t i = 0; i < work->op_count; i++) {
        if (work->ops[i].reads.count > most) {
            most = work->ops[i].reads.count;
        }
    }
    return most;
}

static size_t most_writes(const struct workload *work) {
    size_t most = 1;

    for (size_t i = 0; i < work->op_count; i++) {
        if (work->ops[i].writes.count > most) {
            most = work->ops[i].writes.count;
        }
    }
    return most;
}

static struct request *request_create(struct worker *worker, size_t program_index, uint64_t tenant,
                                      uint64_t number) {
    struct request *request = memory_new(1, sizeof *request);
    const struct program *program = worker->server->programs[program_index];
    size_t reads = most_reads(program->work);

    request->worker = worker;
    request->server = worker->server;
    request->program = program;
    request->program_index = program_index;
    request->tenant = tenant;
    request->number = number;
    request->owned = memory_new(program->work->value_count, sizeof *request->owned);
    request->handles = memory_new(reads, sizeof *request->handles);
    request->task.operands = memory_new(reads, sizeof *request->task.operands);
    request->task.results = memory_new(most_writes(program->work), sizeof *request->task.results);
    request->task.evaluation = &request->evaluation;
    count_readers(request, 0, 1);
    return request;
}

static void request_destroy(struct request *request) {
    ask_fini(&request->ask);
    free(request->owned);
    free(request->handles);
    free(request->task.operands);
    free(request->task.results);
    free(request);
}

/* An input arrives in pageable memory, as data from the network would, and becomes ours to keep. */
static bool adopt_input(struct request *request, uint32_t value) {
    const struct program *program = request->program;
    struct owned *owned = &request->owned[value];
    uint64_t bytes = program->value_bytes[value];
    struct generator generator = program_input(program, value, request->server->options.seed,
                                               request->tenant, request->number);
    tn_buffer *buffer = NULL;
    tn_status status = tn_buffer_create(request->server->machine.driver, tn_location_pageable(),
                                        &bytes, 1, &buffer);

    if (status == TN_OK) {
        generator_fill(&generator, buffer_bytes(buffer), bytes);
        owned->checksum = XXH3_64bits(buffer_bytes(buffer), (size_t)bytes);
        status = tn_manager_adopt(request->server->manager, tn_buffer_payload(buffer),
                                  tn_location_pageable(), TN_EXCLUSIVE, &owned->handle);
        if (status != TN_OK) {
            tn_buffer_destroy(buffer);
        }
    }
    if (status != TN_OK) {
        return request_fail(request, status, "adopting", program->work->values[value].id);
    }
    owned->live = true;
    return true;
}

/* A move to the device is refused while another worker's bytes are in the way (room.h). */
static tn_status move_once(struct request *request, uint32_t value, tn_location to,
                           tn_report *report) {
    struct worker *worker = request->worker;
    bool to_device = to.kind == TN_LOCATION_CUDA;
    struct attempt attempt = {0};
    tn_status status = TN_OK;

    do {
        attempt_begin(&worker->placer, &attempt);
        status = tn_manager_move(worker->server->manager, request->owned[value].handle, to,
                                 tn_location_none(), to_device ? worker->stream : NULL, report);
    } while (to_device && attempt_again(&worker->placer, &attempt, TIER_DEVICE, &status));
    return status;
}

static bool move_to(struct request *request, uint32_t value, tn_location to, enum path path) {
    struct server *server = request->server;
    struct tally *tally = &request->worker->tally;
    tn_report report = TN_REPORT_INIT;
    uint64_t began_ns = machine_now_ns(&server->machine);
    tn_status status = move_once(request, value, to, &report);

    if (status != TN_OK) {
        return request_fail(request, status, "moving", request->program->work->values[value].id);
    }
    tally->paths[path].count++;
    tally->paths[path].bytes += report.logical_bytes;
    tally->stall_ns += machine_now_ns(&server->machine) - began_ns;
    return true;
}

/* With --control lru an input is moved by a use that needs it on the device. */
static bool move_in(struct request *request, uint32_t value) {
    struct placer *placer = &request->worker->placer;
    const char *id = request->program->work->values[value].id;
    struct stay stay = {0};
    tn_status status = TN_OK;

    if (placer->control == NULL) {
        return move_to(request, value, request->server->machine.at, PATH_HOST_DEVICE);
    }
    request_ask(request, "input");
    ask_value(&request->ask, request->owned[value].handle, NULL, id);
    status = control_enter(placer, &request->ask, &stay);
    if (status == TN_OK) {
        status = control_exit(placer, &stay);
        placement_gave_back(placer->placement);
    }
    return status == TN_OK || request_fail(request, status, "moving", id);
}

static bool take_inputs(struct request *request) {
    const struct workload *work = request->program->work;

    for (uint32_t i = 0; i < work->value_count; i++) {
        if (work->values[i].declared && !program_is_source(request->program, i) &&
            !(adopt_input(request, i) && move_in(request, i))) {
            return false;
        }
    }
    return true;
}

static tn_status reserve_workspace(struct request *request, uint64_t bytes) {
    struct placer *placer = &request->worker->placer;

    if (placer->control == NULL) {
        return placement_reserve(placer, bytes, "workspace", &request->workspace_reservation);
    }
    request_ask(request, "workspace");
    ask_reserve(&request->ask, bytes, "workspace");
    return control_enter(placer, &request->ask, &request->stage_use);
}

static tn_status allocate_workspace(struct request *request, uint64_t bytes) {
    struct server *server = request->server;
    struct placer *placer = &request->worker->placer;
    struct attempt attempt = {0};
    tn_status status = reserve_workspace(request, bytes);

    if (status != TN_OK) {
        return status;
    }
    do { /* the ledger has room, but the machine's memory may be in pieces */
        attempt_begin(placer, &attempt);
        status =
            tn_memory_alloc(server->machine.driver, server->machine.at, bytes, &request->workspace);
    } while (attempt_again(placer, &attempt, TIER_DEVICE, &status));
    return status;
}

static bool open_stage(struct request *request, uint32_t stage) {
    uint64_t bytes = request->program->stage_bytes[stage];
    tn_status status = TN_OK;

    if (bytes == 0) {
        return true;
    }
    status = allocate_workspace(request, bytes);
    if (status != TN_OK) {
        return request_fail(request, status, "reserving", "workspace");
    }
    request->workspace_bytes = bytes;
    return compute_open_stage(request);
}

/* R2: the memory first, then the bytes that stood for it. Kernels may still be at work on it. */
static bool free_workspace(struct request *request) {
    struct server *server = request->server;
    tn_status waited = compute_wait(request);
    tn_status status = tn_memory_free(server->machine.driver, server->machine.at,
                                      request->workspace, request->workspace_bytes);
    tn_status released = request->stage_use.use == NULL
                             ? tn_reservation_release(&request->workspace_reservation)
                             : control_exit(&request->worker->placer, &request->stage_use);

    request->workspace = NULL;
    request->workspace_reservation = (tn_reservation){NULL, 0};
    placement_gave_back(&server->placement);
    if (status == TN_OK) {
        status = waited == TN_OK ? released : waited;
    }
    return status == TN_OK || request_fail(request, status, "freeing", "workspace");
}

static bool close_stage(struct request *request) {
    if (request->workspace == NULL) {
        return true;
    }
    return compute_close_stage(request) && free_workspace(request);
}

static enum request_end run_stages(struct request *request) {
    const struct workload *work = request->program->work;

    for (uint32_t s = 0; s < work->stage_count; s++) {
        const struct workload_stage *stage = &work->stages[s];

        if (!open_stage(request, s)) {
            return REQUEST_FAILED;
        }
        for (uint32_t i = 0; i < stage->op_count; i++) {
            if (server_is_stopped()) {
                return REQUEST_STOPPED;
            }
            if (!operation_run(request, stage->first_op + i)) {
                return REQUEST_FAILED;
            }
        }
        if (!close_stage(request)) {
            return REQUEST_FAILED;
        }
    }
    return REQUEST_DONE;
}

static bool read_output(struct request *request, uint32_t value) {
    struct tally *tally = &request->worker->tally;
    const struct owned *owned = &request->owned[value];
    uint64_t bytes = request->program->value_bytes[value];
    const char *id = request->program->work->values[value].id;
    const void *payload = NULL;
    tn_status status = tn_manager_acquire(request->server->manager, &owned->handle, 1,
                                          tn_location_pageable(), NULL, &request->lease);

    if (status != TN_OK) {
        request->lease = (tn_lease){NULL, 0};
        return request_fail(request, status, "borrowing", id);
    }
    status = tn_lease_lookup(&request->lease, owned->handle, &payload);
    if (status == TN_OK) {
        const void *place = buffer_bytes(payload);

        evaluate_read(&request->evaluation, place, bytes);
        if (request->worker->device != NULL) {
            /* Written by a kernel: the digest alone tells. */
        } else if (XXH3_64bits(place, (size_t)bytes) == owned->checksum) {
            tally->verified++;
        } else {
            tally->corruptions++;
            server_show_error("request %" PRIu64 " of tenant %" PRIu64
                              ": the output %s has wrong bytes",
                              request->number, request->tenant, id);
        }
        status = tn_lease_release(&request->lease, 0);
        if (status == TN_OK) {
            request->lease = (tn_lease){NULL, 0};
        }
    }
    return status == TN_OK || request_fail(request, status, "reading", id);
}

/* The results go back to pageable memory, where they are read a last time. */
static bool give_outputs(struct request *request, uint64_t *out_digest) {
    const struct workload *work = request->program->work;
    const struct workload_refs *outputs = &work->outputs;

    if (!compute_end(request)) {
        return false;
    }
    evaluate_open_op(&request->evaluation, work->op_count, false);
    for (uint32_t i = 0; i < outputs->count; i++) {
        uint32_t value = work->refs[outputs->first + i];

        if (program_is_source(request->program, value)) {
            continue; /* a key or plaintext is no result of the request */
        }
        if (!move_to(request, value, tn_location_pageable(), PATH_DEVICE_HOST) ||
            !read_output(request, value)) {
            return false;
        }
    }
    evaluate_close_op(&request->evaluation, true);
    *out_digest = request->evaluation.digest;
    return true;
}

/* R3. */
static bool clean_up(struct request *request) {
    const struct workload *work = request->program->work;
    bool good = true;

    count_readers(request, request->next_op, -1);
    if (request->lease.record != NULL) {
        tn_status status = tn_lease_release(&request->lease, TN_RELEASE_WAIT);

        good = status == TN_OK || request_fail(request, status, "giving back", "a lease");
    }
    if (request->workspace_reservation.record != NULL || request->stage_use.use != NULL) {
        good = free_workspace(request) && good;
    }
    /* A use that moved an input has left its event there, and no operation may have waited since. */
    good = request_wait(request) && good;
    for (uint32_t i = 0; i < work->value_count; i++) {
        good = request_discard(request, i) && good;
    }
    return good;
}

enum request_end request_serve(struct worker *worker, size_t program_index, uint64_t tenant,
                               uint64_t number, uint64_t *out_digest) {
    struct request *request = request_create(worker, program_index, tenant, number);
    enum request_end end =
        compute_begin(request) && take_inputs(request) ? run_stages(request) : REQUEST_FAILED;

    if (end == REQUEST_DONE && !give_outputs(request, out_digest)) {
        end = REQUEST_FAILED;
    }
    if (!clean_up(request) && end == REQUEST_DONE) {
        end = REQUEST_FAILED;
    }
    if (worker->server->reaps_by_hand) {
        tn_status status = tn_manager_step(worker->server->manager, NULL);

        (void)status; /* what it could not do, the next one does, or the manager's end */
    }
    request_destroy(request);
    return end;
}
