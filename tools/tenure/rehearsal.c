/* SPDX-License-Identifier: MIT */
#include "rehearsal.h"

#include "base.h"
#include "needs.h"
#include "room.h"
#include "weightless.h"

#include <inttypes.h>
#include <stdlib.h>

bool rehearsal_fail(const struct rehearsal *rehearsal, tn_status status, const char *doing,
                    const char *id) {
    const struct workload *work = rehearsal->program->work;
    const char *op = rehearsal->op < work->op_count ? work->ops[rehearsal->op].name : "end";
    char *text = status_text(status);

    complain("explain: the program cannot be replayed: operation %" PRIu64 " (%s): %s %s: %s",
             rehearsal->op + 1, op, doing, id, text);
    free(text);
    return false;
}

struct item *rehearsal_item(const struct rehearsal *rehearsal, uint32_t value) {
    return catalogue_item(&rehearsal->catalogue, 0, rehearsal->tenant, rehearsal->program, value);
}

static const char *id_of(const struct rehearsal *rehearsal, uint32_t value) {
    return rehearsal->program->work->values[value].id;
}

/* ---- Ciphertexts ---- */

static bool discard(struct rehearsal *rehearsal, uint32_t value) {
    struct rehearsed *owned = &rehearsal->owned[value];
    tn_status status = TN_OK;

    if (!owned->live) {
        return true;
    }
    status = tn_manager_discard(rehearsal->scene->manager, owned->handle, NULL);
    if (status != TN_OK) {
        return rehearsal_fail(rehearsal, status, "discarding", id_of(rehearsal, value));
    }
    owned->live = false;
    placement_gave_back(&rehearsal->placement);
    return true;
}

bool rehearsal_adopt(struct rehearsal *rehearsal, uint32_t value, tn_location at,
                     const tn_reservation *reservation) {
    tn_manager *manager = rehearsal->scene->manager;
    struct rehearsed *owned = &rehearsal->owned[value];
    tn_payload payload = weightless_create(at, rehearsal->program->value_bytes[value]);
    tn_status status = reservation == NULL
                           ? tn_manager_adopt(manager, payload, at, TN_EXCLUSIVE, &owned->handle)
                           : tn_manager_adopt_reserved(manager, payload, at, TN_EXCLUSIVE,
                                                       reservation, &owned->handle);

    if (status != TN_OK) {
        tn_payload_destroy(payload);
        return rehearsal_fail(rehearsal, status, "adopting", id_of(rehearsal, value));
    }
    owned->live = true;
    scene_add_value(rehearsal->scene, owned->handle, id_of(rehearsal, value));
    return true;
}

static bool take_input(struct rehearsal *rehearsal, uint32_t value) {
    struct attempt attempt = {0};
    tn_status status = TN_OK;

    if (!rehearsal_adopt(rehearsal, value, tn_location_pageable(), NULL)) {
        return false;
    }
    if (rehearsal->has_control) {
        return rehearsal_move_in(rehearsal, value);
    }
    do {
        attempt_begin(&rehearsal->placer, &attempt);
        status = tn_manager_move(rehearsal->scene->manager, rehearsal->owned[value].handle,
                                 rehearsal->scene->machine.at, tn_location_none(), NULL, NULL);
    } while (attempt_again(&rehearsal->placer, &attempt, TIER_DEVICE, &status));
    return status == TN_OK || rehearsal_fail(rehearsal, status, "moving", id_of(rehearsal, value));
}

static bool take_inputs(struct rehearsal *rehearsal) {
    const struct workload *work = rehearsal->program->work;

    for (uint32_t i = 0; i < work->value_count; i++) {
        if (work->values[i].declared && !program_is_source(rehearsal->program, i) &&
            !take_input(rehearsal, i)) {
            return false;
        }
    }
    return true;
}

/* ---- Operations ---- */

static void mark_users(struct rehearsal *rehearsal, struct workload_refs reads, bool begins) {
    for (uint32_t i = 0; i < reads.count; i++) {
        uint32_t value = rehearsal->program->work->refs[reads.first + i];

        if (program_is_source(rehearsal->program, value)) {
            placement_use(&rehearsal->placement, rehearsal_item(rehearsal, value), begins);
        }
    }
}

static bool make_resident(struct rehearsal *rehearsal, struct workload_refs reads) {
    for (uint32_t i = 0; i < reads.count; i++) {
        uint32_t value = rehearsal->program->work->refs[reads.first + i];
        tn_status status = TN_OK;

        if (program_is_source(rehearsal->program, value)) {
            status = placement_ensure(&rehearsal->placer, rehearsal_item(rehearsal, value), false);
        }
        if (status != TN_OK) {
            return rehearsal_fail(rehearsal, status, "loading", id_of(rehearsal, value));
        }
    }
    return true;
}

static bool make_results(struct rehearsal *rehearsal, struct workload_refs writes) {
    const struct program *program = rehearsal->program;
    tn_reservation reservation = {NULL, 0};
    uint64_t bytes = 0;
    bool good = true;
    tn_status status = TN_OK;

    if (writes.count == 0) {
        return true;
    }
    for (uint32_t i = 0; i < writes.count; i++) {
        bytes += program->value_bytes[program->work->refs[writes.first + i]];
    }
    status = placement_reserve(&rehearsal->placer, bytes, "results", &reservation);
    if (status != TN_OK) {
        return rehearsal_fail(rehearsal, status, "reserving room for", "its results");
    }
    for (uint32_t i = 0; good && i < writes.count; i++) {
        good = rehearsal_adopt(rehearsal, program->work->refs[writes.first + i],
                               rehearsal->scene->machine.at, &reservation);
    }
    status = tn_reservation_release(&reservation);
    placement_gave_back(&rehearsal->placement);
    return good &&
           (status == TN_OK || rehearsal_fail(rehearsal, status, "giving back", "its reservation"));
}

static bool retire_read(struct rehearsal *rehearsal, struct workload_refs reads) {
    for (uint32_t i = 0; i < reads.count; i++) {
        uint32_t value = rehearsal->program->work->refs[reads.first + i];
        tn_status status = TN_OK;

        if (rehearsal->program->work->values[value].kind == KIND_PLAINTEXT) {
            status = placement_read_done(&rehearsal->placer, rehearsal_item(rehearsal, value));
        }
        if (status != TN_OK) {
            return rehearsal_fail(rehearsal, status, "dropping", id_of(rehearsal, value));
        }
    }
    return true;
}

/* In the order of serve's operation_run(). */
static bool run_op(struct rehearsal *rehearsal) {
    const struct workload *work = rehearsal->program->work;
    const struct workload_op *op = &work->ops[rehearsal->op];
    bool good = false;

    mark_users(rehearsal, op->reads, true);
    if (rehearsal->has_control) {
        good = rehearsal_run_lru(rehearsal, op);
    } else {
        good = make_resident(rehearsal, op->reads) && make_results(rehearsal, op->writes);
    }
    mark_users(rehearsal, op->reads, false);
    for (uint32_t i = 0; good && i < op->frees.count; i++) {
        good = discard(rehearsal, work->refs[op->frees.first + i]);
    }
    return good && retire_read(rehearsal, op->reads);
}

/* ---- Stages and requests ---- */

static bool open_stage(struct rehearsal *rehearsal, uint32_t stage) {
    uint64_t bytes = rehearsal->program->stage_bytes[stage];
    tn_status status = TN_OK;

    if (bytes > 0 && rehearsal->has_control) {
        return rehearsal_open_workspace(rehearsal, bytes);
    }
    if (bytes > 0) {
        status = placement_reserve(&rehearsal->placer, bytes, "workspace", &rehearsal->workspace);
    }
    return status == TN_OK || rehearsal_fail(rehearsal, status, "reserving", "workspace");
}

static bool close_stage(struct rehearsal *rehearsal) {
    tn_status status = rehearsal->stage_use.use == NULL
                           ? tn_reservation_release(&rehearsal->workspace)
                           : control_exit(&rehearsal->placer, &rehearsal->stage_use);

    rehearsal->workspace = (tn_reservation){NULL, 0};
    placement_gave_back(&rehearsal->placement);
    return status == TN_OK || rehearsal_fail(rehearsal, status, "giving back", "workspace");
}

/* All operations before `end`, from 0. */
static bool run_ops(struct rehearsal *rehearsal, uint64_t end) {
    const struct workload *work = rehearsal->program->work;

    for (rehearsal->op = 0; rehearsal->op < end; rehearsal->op++) {
        const struct workload_stage *stage = &work->stages[work->ops[rehearsal->op].stage];

        if (rehearsal->op == stage->first_op &&
            !open_stage(rehearsal, work->ops[rehearsal->op].stage)) {
            return false;
        }
        if (!run_op(rehearsal)) {
            return false;
        }
        if (rehearsal->op + 1 == stage->first_op + stage->op_count && !close_stage(rehearsal)) {
            return false;
        }
    }
    return true;
}

static void expect_readers(struct rehearsal *rehearsal) {
    const struct workload *work = rehearsal->program->work;

    for (uint32_t i = 0; i < work->value_count; i++) {
        if (work->values[i].kind == KIND_PLAINTEXT) {
            placement_expect_readers(&rehearsal->placement, rehearsal_item(rehearsal, i),
                                     rehearsal->program->read_count[i]);
        }
    }
}

static bool begin_request(struct rehearsal *rehearsal, uint64_t number, uint64_t tenants) {
    rehearsal->op = 0;
    rehearsal->tenant = 1 + number % tenants;
    placement_enter(&rehearsal->placement);
    expect_readers(rehearsal);
    return take_inputs(rehearsal);
}

static bool end_request(struct rehearsal *rehearsal) {
    bool good = true;

    for (uint32_t i = 0; i < rehearsal->program->work->value_count; i++) {
        good = discard(rehearsal, i) && good;
    }
    placement_leave(&rehearsal->placement);
    return good;
}

/* For the plan of the operation in progress. */
static bool prepare_stage(struct rehearsal *rehearsal) {
    const struct workload *work = rehearsal->program->work;
    uint32_t stage = work->ops[rehearsal->op].stage;

    if (!rehearsal->has_control) {
        return close_stage(rehearsal);
    }
    return rehearsal->op != work->stages[stage].first_op || open_stage(rehearsal, stage);
}

static bool run_requests(struct rehearsal *rehearsal, const struct rehearsal_options *options) {
    uint64_t op_count = rehearsal->program->work->op_count;

    for (uint64_t i = 0; i < options->requests; i++) {
        if (!begin_request(rehearsal, i, options->tenants) || !run_ops(rehearsal, op_count) ||
            !end_request(rehearsal)) {
            return false;
        }
    }
    return begin_request(rehearsal, options->requests, options->tenants) &&
           run_ops(rehearsal, options->op - 1) && prepare_stage(rehearsal);
}

/* ---- Setting up ---- */

static bool load_program(struct rehearsal *rehearsal, const char *path,
                         const struct rehearsal_options *options) {
    char *error = NULL;
    struct workload *work = workload_load(path, &error);

    if (work == NULL) {
        complain("%s", error);
        free(error);
        return false;
    }
    if (options->op > work->op_count) {
        complain("explain: --op: %s has operations 1 to %zu, not %" PRIu64, path, work->op_count,
                 options->op);
        workload_destroy(work);
        return false;
    }
    rehearsal->program = program_create(work, options->scale);
    if (rehearsal->program == NULL) {
        workload_destroy(work);
        return false;
    }
    rehearsal->owned = memory_new(work->value_count, sizeof *rehearsal->owned);
    return true;
}

static bool register_items(struct rehearsal *rehearsal, uint64_t tenants) {
    struct catalogue *catalogue = &rehearsal->catalogue;

    catalogue_init(catalogue, &rehearsal->program, 1, tenants);
    for (size_t i = 0; i < catalogue->item_count; i++) {
        struct item *item = &catalogue->items[i];
        tn_status status =
            weightless_register(rehearsal->scene->manager, item->bytes, TN_REPLICABLE,
                                tn_location_pageable(), &item->handle);
        char *name = NULL;

        if (status != TN_OK) {
            return rehearsal_fail(rehearsal, status, "registering", item->id);
        }
        name = item->tenant == TENANT_SHARED || tenants == 1
                   ? text_copy(item->id)
                   : text_format("%s@%" PRIu64, item->id, item->tenant);
        scene_add_value(rehearsal->scene, item->handle, name);
        free(name);
    }
    return true;
}

static bool open_manager(struct rehearsal *rehearsal, const struct rehearsal_options *options) {
    struct scene *scene = rehearsal->scene;
    const struct demand demand = {.command = "explain",
                                  .tenants = options->tenants,
                                  .workers = 1,
                                  .device_budget = options->device_budget,
                                  .pinned_budget = options->pinned_budget};
    struct needs needs = needs_find(&rehearsal->program, 1, options->tenants);
    uint64_t budget_bytes[TIER_COUNT];
    tn_status status = TN_OK;

    if (!scene_open_machine(scene, 1)) {
        return false;
    }
    scene->machine.at = tn_location_cuda(0);
    needs_budgets(&needs, &demand, budget_bytes);
    if (budget_bytes[TIER_PINNED] != UINT64_MAX) {
        scene_add_budget(scene, tn_location_pinned(), budget_bytes[TIER_PINNED]);
    }
    if (budget_bytes[TIER_DEVICE] != UINT64_MAX) {
        scene_add_budget(scene, scene->machine.at, budget_bytes[TIER_DEVICE]);
    }
    status = scene_open_manager(scene, TN_MODE_CONCURRENT);
    if (status != TN_OK) {
        return rehearsal_fail(rehearsal, status, "creating", "the manager");
    }
    if (!placement_init(&rehearsal->placement, scene->manager, &scene->machine)) {
        return false;
    }
    rehearsal->placer =
        (struct placer){.placement = &rehearsal->placement, .tally = &rehearsal->tally};
    return register_items(rehearsal, options->tenants) &&
           (options->control == CONTROL_EXPLICIT ||
            rehearsal_open_control(rehearsal, budget_bytes[TIER_PINNED]));
}

bool rehearsal_open(struct rehearsal *rehearsal, struct scene *scene, const char *workload,
                    const struct rehearsal_options *options) {
    rehearsal->scene = scene;
    return load_program(rehearsal, workload, options) && open_manager(rehearsal, options) &&
           run_requests(rehearsal, options);
}

void rehearsal_close(struct rehearsal *rehearsal) {
    if (rehearsal->workspace.record != NULL || rehearsal->stage_use.use != NULL) {
        close_stage(rehearsal);
    }
    rehearsal_close_control(rehearsal);
    placement_fini(&rehearsal->placement);
    catalogue_fini(&rehearsal->catalogue);
    program_destroy(rehearsal->program);
    tally_fini(&rehearsal->tally);
    free(rehearsal->owned);
    *rehearsal = (struct rehearsal){0};
}
