/* SPDX-License-Identifier: MIT */
/*
 * Uses: entering them, again and again if need be.
 *
 * Nothing is asked for again unless something has changed: pinned memory is left out, a decision
 * went stale, one value more has been evicted, or another worker has let something go; or is about
 * to change, since another worker is removing a value.
 */
#include "control.h"

#include "base.h"
#include "room.h"

#include <stdlib.h>
#include <time.h>

/* ---- One attempt ---- */

static tn_status create_use(struct placer *placer, const tn_request *request, bool on_device,
                            tn_use **out) {
    const tn_transfer_stream stream = {placer->control->at[TIER_DEVICE], placer->stream};
    tn_use_options options = TN_USE_OPTIONS_INIT;

    options.consumers = options.transfers = &stream;
    options.consumer_count = on_device;
    options.transfer_count = 1;
    return tn_use_create(placer->control->controller, request, &options, out);
}

/* What an entry did that failed after it had begun. */
static void count_failure(struct placer *placer, const tn_use *use, const tn_error *error) {
    const tn_decision *decision = NULL;
    const tn_plan_report *report = NULL;

    if (tn_use_decision(use, &decision) != TN_OK || decision == NULL ||
        tn_use_report(use, &report) != TN_OK) {
        return;
    }
    if (report != NULL) { /* all of it; a value that was there already could not be borrowed */
        control_count_report(placer, decision, report);
    } else if (error->status == TN_ERR_PLAN_EXEC) {
        control_count_prefix(placer, decision, error);
    }
}

/* `out_error`: of a failure. */
static tn_status enter_use(struct placer *placer, const struct ask *ask, tn_use *use,
                           tn_error *out_error) {
    tn_status status = tn_use_enter(use);
    tn_use_info info = TN_USE_INFO_INIT;

    if (status == TN_OK) {
        control_count_entry(placer, ask, use);
    } else {
        *out_error = *tn_last_error();
        if (status == TN_ERR_PLAN_EXEC || status == TN_ERR_UNAVAILABLE) {
            count_failure(placer, use, out_error); /* else nothing has run */
        }
    }
    if (tn_use_read(use, &info) == TN_OK) {
        placer->tally->decisions.again += info.redecisions;
    }
    return status;
}

/* `out_error`: of a failure. */
static tn_status try_once(struct placer *placer, const struct ask *ask, bool *by_pinned,
                          tn_use **out, tn_error *out_error) {
    tn_request *request = NULL;
    tn_use *use = NULL;
    tn_status status = control_request(placer->control, ask, by_pinned, &request);

    if (status == TN_OK) {
        status = create_use(placer, request, ask->count > 0, &use);
    }
    if (status != TN_OK) {
        *out_error = *tn_last_error();
    }
    tn_request_destroy(request);
    if (status == TN_OK) {
        status = enter_use(placer, ask, use, out_error);
    }
    if (status == TN_OK) {
        *out = use;
        return TN_OK;
    }
    tn_use_destroy(use);
    return status;
}

/* ---- Attempts ---- */

static bool lacks_bytes(tn_status status, const tn_error *error) {
    return status == TN_ERR_PLAN && error->cause_status == TN_ERR_BUDGET;
}

static bool lacks_memory(tn_status status, const tn_error *error) {
    return status == TN_ERR_PLAN_EXEC && error->cause_status == TN_ERR_DEVICE_MEMORY;
}

/* The plan of another worker is removing a value that was there when this one was decided. Its end
 * gives no sign; it is soon. */
static const struct timespec removal = {.tv_nsec = 50000};

/* Pinned memory is the problem. */
static bool is_pinned(tn_status status, const tn_error *error) {
    return error->at.kind == TN_LOCATION_PINNED &&
           (lacks_bytes(status, error) || status == TN_ERR_PLAN_EXEC);
}

/* Whether something has changed since it failed, or does when this returns. */
static bool try_again(struct placer *placer, struct attempt *attempt, tn_status status,
                      const tn_error *error) {
    if (status == TN_ERR_STALE) {
        placer->tally->decisions.stale++;
        return attempt_goes_on(attempt);
    }
    if (status == TN_ERR_UNAVAILABLE) {
        placer->tally->retries.gone++;
        nanosleep(&removal, NULL);
        return attempt_goes_on(attempt);
    }
    if (lacks_memory(status, error)) {
        placer->tally->retries.memory++;
        if (control_evict(placer) == TN_OK) {
            return attempt_goes_on(attempt);
        }
        return attempt_wait(placer, attempt);
    }
    return lacks_bytes(status, error) && attempt_wait(placer, attempt);
}

static tn_status enter(struct placer *placer, const struct ask *ask, tn_use **out) {
    struct attempt attempt = {0};
    bool may_pin = true;
    bool goes_on = true;
    tn_error error;
    tn_status status = TN_OK;

    while (goes_on) {
        bool by_pinned = may_pin;

        attempt_begin(placer, &attempt);
        status = try_once(placer, ask, &by_pinned, out, &error);
        if (status == TN_OK) {
            return TN_OK;
        }
        if (by_pinned && is_pinned(status, &error)) {
            may_pin = false;
            placer->tally->decisions.unpinned++;
        } else {
            goes_on = try_again(placer, &attempt, status, &error);
        }
    }
    return status;
}

tn_status control_enter(struct placer *placer, const struct ask *ask, struct stay *out) {
    uint64_t began_ns = machine_now_ns(placer->placement->machine);
    uint64_t hits = placer->tally->decisions.hits;
    uint64_t misses = placer->tally->misses;
    tn_use *use = NULL;
    tn_status status = enter(placer, ask, &use);

    if (placer->tally->decisions.hits == hits) {
        placer->tally->stall_ns += machine_now_ns(placer->placement->machine) - began_ns;
    }
    if (status == TN_OK) {
        *out = (struct stay){.use = use, .misses = placer->tally->misses - misses};
        for (size_t i = 0; i < ask->count; i++) {
            out->items += ask->values[i].item != NULL;
        }
    }
    return status;
}

tn_status control_reservation(const struct stay *stay, tn_reservation *out) {
    size_t count = 1;
    tn_status status = tn_use_reservations(stay->use, out, &count);

    return status == TN_OK && count == 0 ? TN_ERR_LIFETIME_CLOSED : status;
}

tn_status control_exit(struct placer *placer, struct stay *stay) {
    uint64_t misses = placer->tally->misses;
    const tn_plan_report *report = NULL;
    const tn_decision *decision = NULL;
    tn_status status = tn_use_exit(stay->use);

    if (tn_use_report(stay->use, &report) == TN_OK && report != NULL &&
        tn_use_decision(stay->use, &decision) == TN_OK) {
        control_count_report(placer, decision, report);
    }
    misses = stay->misses + placer->tally->misses - misses;
    if (misses > stay->items) { /* one was loaded, went, and was loaded again: it is one read */
        placer->tally->misses -= misses - stay->items;
        misses = stay->items;
    }
    placer->tally->hits += stay->items - misses;
    tn_use_destroy(stay->use);
    *stay = (struct stay){0};
    return status;
}

/* ---- Room of the machine ---- */

/* False: there is no budget, or it cannot be read. */
static bool read_free(const struct control *control, uint64_t *out) {
    tn_location_info info[8] = {{.size = sizeof info[0]}};
    size_t count = sizeof info / sizeof info[0];
    tn_snapshot *snapshot = NULL;
    bool found = false;

    if (tn_snapshot_take(control->manager, &snapshot) != TN_OK) {
        return false;
    }
    if (tn_snapshot_locations(snapshot, info, &count) == TN_OK) {
        for (size_t i = 0; i < count && i < sizeof info / sizeof info[0]; i++) {
            if (tn_location_equal(info[i].at, control->at[TIER_DEVICE]) && info[i].has_budget) {
                *out = info[i].remaining_bytes;
                found = true;
            }
        }
    }
    tn_snapshot_drop(snapshot);
    return found;
}

/* One byte more than is free: then at least one value goes. */
tn_status control_evict(struct placer *placer) {
    struct ask ask = {0};
    struct stay stay = {0};
    bool by_pinned = false;
    uint64_t free_bytes = 0;
    tn_error error;
    tn_status status = TN_OK;

    if (!read_free(placer->control, &free_bytes)) {
        return TN_ERR_BUDGET;
    }
    ask_begin(&ask, "memory of the machine");
    ask_reserve(&ask, free_bytes + 1, "room");
    status = try_once(placer, &ask, &by_pinned, &stay.use, &error);
    if (status == TN_OK) {
        status = control_exit(placer, &stay);
        placement_gave_back(placer->placement);
    }
    ask_fini(&ask);
    return status == TN_ERR_PLAN || status == TN_ERR_STALE ? TN_ERR_BUDGET : status;
}

tn_status control_retire(struct placer *placer, struct item *item) {
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        tn_report report = TN_REPORT_INIT;
        uint64_t began_ns = machine_now_ns(placer->placement->machine);
        tn_status status = tn_manager_drop(placer->control->manager, item->handle,
                                           placer->control->at[tier], &report);

        placer->tally->drop_ns[tier] += machine_now_ns(placer->placement->machine) - began_ns;
        if (status != TN_OK && status != TN_ERR_IN_USE) {
            return status;
        }
        if (status == TN_OK && !report.no_op) {
            placer->tally->retired.count++;
            placer->tally->retired.bytes += item->bytes;
            placement_gave_back(placer->placement);
        }
    }
    return TN_OK;
}
