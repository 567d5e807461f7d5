/* SPDX-License-Identifier: MIT */
#include "server.h"

#include "base.h"
#include "needs.h"
#include "only_keys.h"

#include <inttypes.h>
#include <stdlib.h>

static uint64_t plus(uint64_t a, uint64_t b) { return a > INT64_MAX - b ? INT64_MAX : a + b; }

static uint64_t times(uint64_t a, uint64_t b) {
    return b != 0 && a > INT64_MAX / b ? INT64_MAX : a * b;
}

static int load_programs(struct server *server) {
    size_t count = server->options.workload_count;

    server->programs = memory_new(count, sizeof(struct program *));
    for (size_t i = 0; i < count; i++) {
        char *error = NULL;
        struct workload *work = workload_load(server->options.workloads[i], &error);

        if (work == NULL) {
            complain("%s", error);
            free(error);
            return EXIT_USAGE;
        }
        if (server->options.only_keys) {
            workload_only_keys(work);
        }
        server->programs[i] = program_create(work, server->options.scale);
        if (server->programs[i] == NULL) {
            workload_destroy(work);
            return EXIT_USAGE;
        }
        server->program_count = i + 1;
    }
    return EXIT_GOOD;
}

static int judge_budgets(struct server *server, const struct needs *needs) {
    const struct serve_options *options = &server->options;
    const struct demand demand = {.command = "serve",
                                  .tenants = options->tenants,
                                  .workers = options->workers,
                                  .device_budget = options->device_budget,
                                  .pinned_budget = options->pinned_budget,
                                  .only_keys = options->only_keys};

    needs_budgets(needs, &demand, server->budget_bytes);
    return needs_judge(needs, &demand, server->budget_bytes) ? EXIT_GOOD : EXIT_USAGE;
}

/* As large as the budget, so that the machine itself refuses what the library should have. */
static char *describe_machine(const struct server *server, const struct needs *needs) {
    const struct serve_options *options = &server->options;
    uint64_t memory = server->budget_bytes[TIER_DEVICE];
    double rate =
        options->link_bytes_per_s * (double)options->scale.over / (double)options->scale.under;

    if (options->machine != NULL) {
        return text_copy(options->machine);
    }
    if (memory == UINT64_MAX) {
        memory = plus(needs->source_bytes, times(options->workers, needs->need_bytes));
    }
    return text_format("dev:1 mem=%" PRIu64 "B link=host:%.3fBps latency=%" PRIu64 "ns clock=%s",
                       memory, rate < 1 ? 1.0 : rate, options->latency_ns,
                       options->virtual_time ? "virtual" : "threads");
}

static int open_machine(struct server *server, const struct needs *needs) {
    char *description = describe_machine(server, needs);
    int code = machine_open(&server->machine, description, server->options.device);
    const tn_driver_ops *ops = server->machine.ops;

    free(description);
    if (code != EXIT_GOOD) {
        return code;
    }
    if (ops->capabilities == NULL || ops->host_function == NULL ||
        (ops->capabilities(server->machine.self) & TN_DRIVER_HOST_ADDRESSABLE) == 0) {
        code = device_open(&server->machine, &server->device);
        if (code != EXIT_GOOD) {
            return code;
        }
    }
    if (server->machine.virtual_time && server->options.workers > 1) {
        complain("serve: %" PRIu64 " workers need real time: virtual time moves when a thread "
                 "waits, so with several it would depend on which one comes first; use "
                 "--clock real, or clock=threads in --machine, or --workers 1",
                 server->options.workers);
        return EXIT_USAGE;
    }
    return EXIT_GOOD;
}

static int make_files(struct server *server) {
    struct cache cache = {0};
    bool good = false;

    catalogue_init(&server->catalogue, server->programs, server->program_count,
                   server->options.tenants);
    if (!cache_open(&cache, server->options.cache)) {
        return EXIT_USAGE;
    }
    good =
        catalogue_make_files(&server->catalogue, &cache, server->options.seed, server_is_stopped);
    cache_close(&cache);
    if (good) {
        return EXIT_GOOD;
    }
    if (server_is_stopped()) {
        complain("serve: interrupted before the first request");
        return EXIT_INTERRUPTED;
    }
    return EXIT_USAGE;
}

/* The anchor of requests that want bytes only: as small as a value can be. */
static tn_status make_anchor(struct server *server, tn_payload *out) {
    const uint64_t bytes = 8;
    tn_buffer *buffer = NULL;
    tn_status status =
        tn_buffer_create(server->machine.driver, tn_location_pageable(), &bytes, 1, &buffer);

    if (status == TN_OK) {
        *out = tn_buffer_payload(buffer);
    }
    return status;
}

static int open_control(struct server *server) {
    struct control *control = &server->control;
    const char *log = server->options.decision_log;
    tn_payload anchor;
    tn_status status = TN_OK;

    if (log != NULL && (server->log = decision_log_open(log)) == NULL) {
        return EXIT_USAGE;
    }
    *control = (struct control){.manager = server->manager,
                                .catalogue = &server->catalogue,
                                .at = {tn_location_pinned(), server->machine.at},
                                .pinned_budget = server->budget_bytes[TIER_PINNED],
                                .log = server->log};
    server->has_control = true;
    status = make_anchor(server, &anchor);
    if (status == TN_OK) {
        status = control_open(control, anchor);
    }
    if (status != TN_OK) {
        char *text = status_text(status);

        complain("serve: no controller: %s", text);
        free(text);
        return EXIT_FAILED;
    }
    return EXIT_GOOD;
}

/* The controller evicts for the sake of budgets only: an unlimited device is one of the machine's size
 * to it. */
static uint64_t managed_bytes(const struct server *server, enum tier tier) {
    const struct machine *machine = &server->machine;
    uint64_t bytes = server->budget_bytes[tier];
    tn_device_memory memory = {0};

    if (bytes == UINT64_MAX && tier == TIER_DEVICE && server->options.control == CONTROL_LRU &&
        machine->ops->device_memory(machine->self, machine->at.index, &memory) == TN_OK &&
        memory.total_bytes <= INT64_MAX) {
        bytes = memory.total_bytes;
    }
    return bytes;
}

static int create_manager(struct server *server) {
    tn_budget budgets[TIER_COUNT];
    tn_config config = TN_CONFIG_INIT;
    tn_location at[TIER_COUNT] = {tn_location_pinned(), server->machine.at};
    tn_status status = TN_OK;

    for (int tier = 0; tier < TIER_COUNT; tier++) {
        uint64_t bytes = managed_bytes(server, (enum tier)tier);

        if (bytes != UINT64_MAX) {
            budgets[config.budget_count++] = (tn_budget){.at = at[tier], .bytes = bytes};
        }
    }
    config.driver = server->machine.driver;
    config.budgets = budgets;
    config.mode = TN_MODE_CONCURRENT;
    config.trace_capacity = TN_TRACE_NONE;
    /* With one worker every decision is the same each time, its state version too: then nothing
     * changes between one call and the next. */
    if (server->options.control == CONTROL_LRU && server->options.workers == 1) {
        config.reaper = TN_REAPER_MANUAL;
        server->reaps_by_hand = true;
    }
    status = tn_manager_create(&config, &server->manager);
    if (status != TN_OK) {
        char *text = status_text(status);

        complain("serve: no manager: %s", text);
        free(text);
        return EXIT_FAILED;
    }
    if (!placement_init(&server->placement, server->manager, &server->machine)) {
        return EXIT_FAILED;
    }
    if (!catalogue_register(&server->catalogue, server->manager)) {
        return EXIT_FAILED;
    }
    return server->options.control == CONTROL_LRU ? open_control(server) : EXIT_GOOD;
}

int server_open(struct server *server) {
    struct needs needs = {0};
    int code = load_programs(server);

    if (code == EXIT_GOOD) {
        needs = needs_find(server->programs, server->program_count, server->options.tenants);
        code = judge_budgets(server, &needs);
    }
    if (code == EXIT_GOOD) {
        code = open_machine(server, &needs);
    }
    if (code == EXIT_GOOD) {
        code = make_files(server);
    }
    if (code == EXIT_GOOD && !inject_prepare(&server->inject, server->options.inject,
                                             &server->machine, &server->catalogue)) {
        code = EXIT_USAGE;
    }
    return code == EXIT_GOOD ? create_manager(server) : code;
}

/* Whether the machine has got everything back. */
static bool is_empty(const struct server *server) {
    const tn_location at[TIER_COUNT] = {tn_location_pinned(), server->machine.at};
    bool empty = true;

    for (int tier = 0; server->machine.sim != NULL && tier < TIER_COUNT; tier++) {
        tn_sim_memory memory = {.size = sizeof memory};

        if (tn_sim_read_memory(server->machine.sim, at[tier], &memory) == TN_OK &&
            memory.live_bytes > 0) {
            complain("serve: %" PRIu64 " bytes in %" PRIu64 " blocks were left in %s memory",
                     memory.live_bytes, memory.live_blocks, tier_name((enum tier)tier));
            empty = false;
        }
    }
    return empty;
}

static bool close_manager(struct server *server) {
    tn_status status = tn_manager_close(server->manager, 0);
    tn_status destroyed = TN_OK;

    if (status != TN_OK) {
        char *text = status_text(status);

        complain("serve: the manager does not close: %s", text);
        free(text);
    }
    destroyed = tn_manager_destroy(server->manager);
    server->manager = NULL;
    return status == TN_OK && destroyed == TN_OK && is_empty(server);
}

bool server_close(struct server *server) {
    bool good = true;

    inject_disarm(&server->inject);
    placement_fini(&server->placement);
    if (server->has_control) {
        good = control_close(&server->control) == TN_OK;
    }
    if (server->manager != NULL) {
        good = close_manager(server) && good;
    }
    good = decision_log_close(server->log) && good;
    device_close(server->device);
    machine_close(&server->machine);
    catalogue_fini(&server->catalogue);
    for (size_t i = 0; i < server->program_count; i++) {
        program_destroy(server->programs[i]);
    }
    free(server->programs);
    for (uint64_t i = 0; server->workers != NULL && i < server->options.workers; i++) {
        tally_fini(&server->workers[i].tally);
    }
    free(server->workers);
    tally_fini(&server->tally);
    return good;
}
