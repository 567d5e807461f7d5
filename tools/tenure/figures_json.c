/* SPDX-License-Identifier: MIT */
#include "account.h"
#include "base.h"
#include "figures.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

/* Bytes as whole numbers; "unlimited" is null. */
static json_t *whole(uint64_t value) {
    return value == UINT64_MAX ? json_null() : json_integer((json_int_t)value);
}

static json_t *json_traffic(const struct traffic *traffic) {
    return json_pack("{s:o, s:o}", "count", whole(traffic->count), "bytes", whole(traffic->bytes));
}

static json_t *json_run(const struct figures *figures) {
    const struct serve_options *options = &figures->server->options;
    json_t *run =
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:s}", "tenants", whole(options->tenants),
                  "workers", whole(options->workers), "stagger_ns", whole(options->stagger_ns),
                  "seed", whole(options->seed), "scale_over", whole(options->scale.over),
                  "scale_under", whole(options->scale.under), "clock",
                  figures->server->machine.virtual_time ? "virtual" : "real");
    json_t *names = json_array();

    for (size_t i = 0; i < figures->server->program_count; i++) {
        json_array_append_new(names, json_string(figures->server->programs[i]->work->name));
    }
    json_object_set_new(run, "workloads", names);
    return run;
}

/* Keys that each request made resident on the device; with several workers one after the other. */
static json_t *json_key_loads(const struct tally *tally) {
    json_t *list = json_array();

    for (uint64_t i = 0; i < tally->done; i++) {
        json_array_append_new(list, whole(tally->requests[i].key_loads));
    }
    return list;
}

static json_t *json_requests(const struct figures *figures) {
    const struct tally *tally = &figures->server->tally;
    json_t *requests =
        json_pack("{s:o, s:o, s:o, s:b, s:f}", "asked", whole(figures->server->options.requests),
                  "done", whole(tally->done), "failed", whole(tally->failed), "interrupted",
                  (int)figures->interrupted, "per_second", figures->requests_per_s);
    json_t *times = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "elapsed_ns",
                              whole(tally->elapsed_ns), "median_ns", whole(figures->median_ns),
                              "max_ns", whole(figures->most_ns), "stall_ns", whole(tally->stall_ns),
                              "drop_device_ns", whole(tally->drop_ns[TIER_DEVICE]),
                              "drop_pinned_ns", whole(tally->drop_ns[TIER_PINNED]));
    json_t *admission =
        json_pack("{s:o, s:o, s:o}", "most_at_once", whole(figures->server->most_running), "queued",
                  whole(tally->queued), "queued_ns", whole(tally->queued_ns));

    json_object_set_new(requests, "keys_loaded", whole(tally->key_loads));
    json_object_set_new(requests, "keys_loaded_by_request", json_key_loads(tally));
    json_object_update(requests, times);
    json_object_update(requests, admission);
    json_decref(times);
    json_decref(admission);
    return requests;
}

/* "replica remains" as "replica_remains". */
static json_t *json_reasons(const struct decisions *decisions) {
    json_t *reasons = json_object();

    for (uint32_t reason = 1; reason < REASON_COUNT; reason++) {
        char *name = text_copy(eviction_word(reason));

        for (char *at = name; *at != '\0'; at++) {
            *at = *at == ' ' ? '_' : *at;
        }
        json_object_set_new(reasons, name, whole(decisions->reasons[reason]));
        free(name);
    }
    return reasons;
}

static json_t *json_control(const struct figures *figures) {
    const struct server *server = figures->server;
    const struct decisions *decisions = &server->tally.decisions;

    if (!server->has_control) {
        return json_pack("{s:s}", "kind", "explicit");
    }
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "kind", "lru",
                     "policy", tn_policy_name(tn_controller_policy(server->control.controller)),
                     "uses", whole(decisions->entered), "use_hits", whole(decisions->hits),
                     "use_misses", whole(decisions->entered - decisions->hits), "decisions",
                     whole(decisions->decided), "redecisions", whole(decisions->again),
                     "stale_again", whole(decisions->stale), "without_pinned",
                     whole(decisions->unpinned), "explored_states", whole(decisions->explored),
                     "most_explored", whole(decisions->most_explored), "eviction_reasons",
                     json_reasons(decisions));
}

static json_t *json_workers(const struct figures *figures) {
    const struct server *server = figures->server;
    json_t *workers = json_array();

    for (uint64_t i = 0; i < server->options.workers; i++) {
        const struct tally *tally = &server->workers[i].tally;

        json_array_append_new(workers, json_pack("{s:o, s:o, s:o, s:o}", "done", whole(tally->done),
                                                 "failed", whole(tally->failed), "elapsed_ns",
                                                 whole(tally->elapsed_ns), "stall_ns",
                                                 whole(tally->stall_ns)));
    }
    return workers;
}

static json_t *json_retries(const struct retries *retries) {
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "room_taken", whole(retries->refused),
                     "value_gone", whole(retries->gone), "victim_in_use", whole(retries->in_use),
                     "room_waits", whole(retries->waits), "machine_short", whole(retries->memory));
}

static json_t *json_moved(const struct figures *figures) {
    static const char *const names[PATH_COUNT] = {"file_pinned", "pinned_device", "file_device",
                                                  "host_device", "device_host"};
    const struct tally *tally = &figures->server->tally;
    json_t *moved = json_object();

    for (int path = 0; path < PATH_COUNT; path++) {
        json_t *traffic = json_traffic(&tally->paths[path]);

        json_object_set_new(traffic, "key_bytes", whole(tally->key_bytes[path]));
        json_object_set_new(moved, names[path], traffic);
    }
    return moved;
}

/* A figure that only a simulated machine has. */
static json_t *simulated(const struct figures *figures, uint64_t value) {
    return figures->server->machine.sim != NULL ? whole(value) : json_null();
}

static json_t *json_tier(const struct figures *figures, enum tier tier) {
    const struct tier_figures *at = &figures->tiers[tier];
    const struct tally *tally = &figures->server->tally;

    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o}", "budget_bytes",
                     whole(at->budget_bytes), "peak_charged_bytes", whole(at->peak_charged_bytes),
                     "peak_used_bytes", whole(at->peak_used_bytes), "machine_peak_bytes",
                     simulated(figures, at->machine_peak_bytes), "machine_held_bytes",
                     simulated(figures, at->machine_held_bytes), "within", (int)at->within,
                     "evictions", json_traffic(&tally->evictions[tier]), "key_evictions",
                     whole(tally->key_evictions[tier]));
}

static json_t *json_proof(const struct figures *figures) {
    const struct tally *tally = &figures->server->tally;
    const struct verdict *verdict = &figures->verdict;

    return json_pack("{s:o, s:o, s:o, s:s, s:o, s:o, s:b}", "values_verified",
                     figures->server->device == NULL ? whole(tally->verified) : json_null(),
                     "corruptions", whole(figures_corruptions(figures)), "machine_violations",
                     simulated(figures, figures->violations), "first_violation",
                     figures->violation == NULL ? "" : figures->violation, "digests_compared",
                     whole(verdict->compared), "digests_equal", whole(verdict->equal),
                     "equal_to_plain_replay",
                     verdict->compared > 0 && verdict->compared == verdict->equal);
}

static json_t *json_link(const struct figures *figures) {
    if (figures->server->machine.sim == NULL) {
        return json_null();
    }
    return json_pack("{s:f, s:f, s:o, s:o}", "to_device", figures->link_to_device, "to_host",
                     figures->link_to_host, "machine_bytes_to_device",
                     whole(figures->link_device_bytes), "machine_bytes_to_host",
                     whole(figures->link_host_bytes));
}

void figures_print_json(const struct figures *figures) {
    const struct tally *tally = &figures->server->tally;
    json_t *all = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:{s:o, s:o, s:o}, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "run",
        json_run(figures), "requests", json_requests(figures), "control", json_control(figures),
        "moved", json_moved(figures), "link_busy", json_link(figures), "device_reads", "hits",
        whole(tally->hits), "misses", whole(tally->misses), "joined", whole(tally->joined),
        "device", json_tier(figures, TIER_DEVICE), "pinned", json_tier(figures, TIER_PINNED),
        "plaintexts_retired", json_traffic(&tally->retired), "retries",
        json_retries(&tally->retries), "per_worker", json_workers(figures), "proof",
        json_proof(figures), "good", figures_verdict(figures) != EXIT_FAILED);

    json_dumpf(all, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(all);
}
