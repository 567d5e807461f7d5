/* SPDX-License-Identifier: MIT */
#include "scene.h"

#include "base.h"

#include <inttypes.h>
#include <stdlib.h>

/* Longer than anything in a scene takes. */
static const uint64_t busy_ns = UINT64_C(1000000000000);

#define APPEND(list, count, capacity, item)                                                        \
    do {                                                                                           \
        (list) = memory_reserve((list), &(capacity), (count) + 1, sizeof *(list));                 \
        (list)[(count)++] = (item);                                                                \
    } while (0)

/* ---- Opening and closing ---- */

bool scene_open_machine(struct scene *scene, uint64_t devices) {
    char *description = text_format("dev:%" PRIu64 " clock=virtual", devices);
    int code = machine_open_simulated(&scene->machine, description);

    free(description);
    return code == EXIT_GOOD;
}

void scene_add_budget(struct scene *scene, tn_location at, uint64_t bytes) {
    tn_budget budget = {.at = at, .bytes = bytes};

    APPEND(scene->budgets, scene->budget_count, scene->budget_capacity, budget);
}

tn_status scene_open_manager(struct scene *scene, uint32_t mode) {
    tn_config config = TN_CONFIG_INIT;

    config.driver = scene->machine.driver;
    config.budgets = scene->budgets;
    config.budget_count = scene->budget_count;
    config.mode = mode;
    config.reaper = TN_REAPER_MANUAL; /* a pending lease stays so until somebody looks */
    return tn_manager_create(&config, &scene->manager);
}

static void end_lifetimes(struct scene *scene) {
    tn_status status = TN_OK;

    for (size_t i = 0; i < scene->lease_count && status == TN_OK; i++) {
        status = tn_lease_release(&scene->leases[i], 0);
    }
    for (size_t i = 0; i < scene->hold_count && status == TN_OK; i++) {
        status = tn_hold_release(&scene->holds[i]);
    }
    for (size_t i = 0; i < scene->reservation_count && status == TN_OK; i++) {
        status = tn_reservation_release(&scene->reservations[i]);
    }
    if (status == TN_OK) {
        status = tn_manager_close(scene->manager, 0);
    }
    if (status == TN_OK) {
        status = tn_manager_destroy(scene->manager);
    }
    if (status != TN_OK) {
        char *text = status_text(status);

        complain("explain: the manager does not close: %s", text);
        free(text);
    }
}

static void close_streams(struct scene *scene) {
    for (size_t i = 0; i < sizeof scene->streams / sizeof scene->streams[0]; i++) {
        for (int busy = 0; busy < 2; busy++) {
            if (scene->streams[i][busy] != NULL &&
                tn_sim_stream_destroy(scene->machine.sim, scene->streams[i][busy]) != TN_OK) {
                complain("explain: a stream cannot be destroyed");
            }
        }
    }
}

static void free_draft(struct draft *draft) {
    for (int phase = 0; phase <= TN_PHASE_EXIT; phase++) {
        free(draft->actions[phase]);
    }
    free(draft->reservations);
}

void scene_close(struct scene *scene) {
    tn_plan_destroy(scene->own_plan);
    tn_decision_drop(scene->decision);
    free_draft(&scene->draft);
    if (scene->manager != NULL) {
        end_lifetimes(scene);
    }
    if (scene->machine.sim != NULL) {
        close_streams(scene);
        machine_close(&scene->machine);
    }
    for (size_t i = 0; i < scene->value_count; i++) {
        free(scene->values[i].name);
    }
    free(scene->budgets);
    free(scene->values);
    free(scene->leases);
    free(scene->holds);
    free(scene->reservations);
    *scene = (struct scene){0};
}

/* ---- The state ---- */

void scene_add_value(struct scene *scene, tn_handle handle, const char *name) {
    struct named value = {.handle = handle, .name = text_printable(name)};

    APPEND(scene->values, scene->value_count, scene->value_capacity, value);
}

static int compare_named(const void *left, const void *right) {
    uint64_t a = ((const struct named *)left)->handle.index;
    uint64_t b = ((const struct named *)right)->handle.index;

    return (a > b) - (a < b);
}

const char *scene_name(const struct scene *scene, tn_handle handle) {
    struct named wanted = {.handle = handle};
    const struct named *found =
        bsearch(&wanted, scene->values, scene->value_count, sizeof *scene->values, compare_named);

    return found == NULL ? "?" : found->name;
}

uint64_t scene_budget(const struct scene *scene, tn_location at) {
    for (size_t i = 0; i < scene->budget_count; i++) {
        if (tn_location_equal(scene->budgets[i].at, at)) {
            return scene->budgets[i].bytes;
        }
    }
    return UINT64_MAX;
}

/* A stream of the device, idle for ever or busy for longer than we look. */
static tn_status stream_of(struct scene *scene, tn_location at, bool busy, tn_stream *out) {
    tn_status status = TN_OK;
    tn_stream *stream = NULL;

    *out = NULL;
    if (at.kind != TN_LOCATION_CUDA || at.index > TN_CUDA_INDEX_MAX) {
        return TN_OK;
    }
    stream = &scene->streams[at.index][busy];
    if (*stream == NULL) {
        status = tn_sim_stream_create(scene->machine.sim, at.index, 0, stream);
        if (status == TN_OK && busy) {
            status = tn_sim_queue_delay(scene->machine.sim, *stream, busy_ns);
        }
    }
    *out = *stream;
    return status;
}

tn_status scene_lease(struct scene *scene, const tn_handle *handles, size_t count, tn_location at,
                      bool pending) {
    tn_lease lease = {NULL, 0};
    tn_stream stream = NULL;
    tn_status status = stream_of(scene, at, pending, &stream);

    if (status == TN_OK) {
        status = tn_manager_acquire(scene->manager, handles, count, at, stream, &lease);
    }
    if (status != TN_OK) {
        return status;
    }
    APPEND(scene->leases, scene->lease_count, scene->lease_capacity, lease);
    return pending ? tn_lease_release(&lease, 0) : TN_OK;
}

tn_status scene_hold(struct scene *scene, const tn_handle *handles, size_t count, tn_location at) {
    tn_hold hold = {NULL, 0};
    tn_status status = tn_manager_hold(scene->manager, handles, count, at, &hold);

    if (status == TN_OK) {
        APPEND(scene->holds, scene->hold_count, scene->hold_capacity, hold);
    }
    return status;
}

tn_status scene_reserve(struct scene *scene, tn_location at, uint64_t bytes, const char *label) {
    tn_reservation reservation = {NULL, 0};
    tn_status status = tn_manager_reserve(scene->manager, at, bytes, label, &reservation);

    if (status == TN_OK) {
        APPEND(scene->reservations, scene->reservation_count, scene->reservation_capacity,
               reservation);
    }
    return status;
}

/* ---- The plan ---- */

void scene_act(struct scene *scene, enum tn_phase phase, tn_action action) {
    struct draft *draft = &scene->draft;

    APPEND(draft->actions[phase], draft->count[phase], draft->capacity[phase], action);
}

void scene_want(struct scene *scene, tn_location at, uint64_t bytes, const char *label) {
    struct draft *draft = &scene->draft;
    tn_reservation_spec reservation = {.at = at, .bytes = bytes, .label = label};

    APPEND(draft->reservations, draft->reservation_count, draft->reservation_capacity, reservation);
}

tn_status scene_plan(struct scene *scene, const char *name) {
    const struct draft *draft = &scene->draft;
    tn_plan_spec spec = TN_PLAN_SPEC_INIT;
    tn_status status = TN_OK;

    spec.name = name;
    spec.reclaim = draft->actions[TN_PHASE_RECLAIM];
    spec.reclaim_count = draft->count[TN_PHASE_RECLAIM];
    spec.reservations = draft->reservations;
    spec.reservation_count = draft->reservation_count;
    spec.enter = draft->actions[TN_PHASE_ENTER];
    spec.enter_count = draft->count[TN_PHASE_ENTER];
    spec.exit = draft->actions[TN_PHASE_EXIT];
    spec.exit_count = draft->count[TN_PHASE_EXIT];
    status = tn_plan_create(&spec, &scene->own_plan);
    scene->plan = scene->own_plan;
    return status;
}
