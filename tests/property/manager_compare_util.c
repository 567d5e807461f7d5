/* SPDX-License-Identifier: MIT */
/* Property test of the manager: what library and model must agree on. */
#include "manager_property.h"

#include <stdio.h>
#include <string.h>

typedef unsigned long long ull;

#define SAME(r, what, library, model)                                                              \
    do {                                                                                           \
        ull library_ = (ull)(library), model_ = (ull)(model);                                      \
        if (library_ != model_)                                                                    \
            return differ(r, "%s: %llu, by the model %llu", what, library_, model_);               \
    } while (0)

#define SAME_AT(r, what, library, model)                                                           \
    do {                                                                                           \
        tn_location library_ = (library), model_ = (model);                                        \
        if (!tn_location_equal(library_, model_))                                                  \
            return differ(r, "%s: %s, by the model %s", what, location_text(library_),             \
                          location_text(model_));                                                  \
    } while (0)

#define SAME_HANDLE(r, what, library, model)                                                       \
    do {                                                                                           \
        tn_handle library_ = (library), model_ = (model);                                          \
        if (!tn_handle_equal(library_, model_))                                                    \
            return differ(r, "%s: %s, by the model %s", what, handle_text(r, library_),            \
                          handle_text(r, model_));                                                 \
    } while (0)

/* ---- Errors ---------------------------------------------------------------------------------- */

static bool compare_owners(run *r, const tn_error *e, const tn_error *x) {
    SAME(r, "error.owner_count", e->owner_count, x->owner_count);
    for (uint64_t i = 0; i < x->owner_count && i < TN_ERROR_OWNERS_MAX; i++) {
        bool found = x->owner_count > TN_ERROR_OWNERS_MAX; /* which ones is open */
        for (uint64_t k = 0; k < TN_ERROR_OWNERS_MAX && !found; k++)
            found = tn_handle_equal(e->owners[k].handle, x->owners[i].handle) &&
                    tn_location_equal(e->owners[k].at, x->owners[i].at);
        if (!found)
            return differ(r, "error.owners: %s at %s is not named",
                          handle_text(r, x->owners[i].handle), location_text(x->owners[i].at));
    }
    return true;
}

/* The part of a plan that failed, or is the problem (M246). */
static bool compare_part(run *r, const tn_error *e, const tn_error *x) {
    SAME(r, "error.cause_status", e->cause_status, x->cause_status);
    SAME(r, "error.phase", e->phase, x->phase);
    SAME(r, "error.failed_index", e->failed_index, x->failed_index);
    SAME(r, "error.action_kind", e->action_kind, x->action_kind);
    SAME_HANDLE(r, "error.action_handle", e->action_handle, x->action_handle);
    SAME_AT(r, "error.action_at", e->action_at, x->action_at);
    SAME_AT(r, "error.action_from", e->action_from, x->action_from);
    if (strcmp(e->plan, x->plan) != 0 || strcmp(e->label, x->label) != 0)
        return differ(r, "error: plan \"%s\", reservation \"%s\", by the model \"%s\", \"%s\"",
                      e->plan, e->label, x->plan, x->label);
    return true;
}

bool compare_error(run *r, const tn_error *e, const tn_error *x, uint32_t open) {
    SAME(r, "error.status", e->status, x->status);
    if (!compare_part(r, e, x))
        return false;
    if (!e->message[0])
        return differ(r, "the error has no message");
    SAME(r, "error.handle_cause", e->handle_cause, x->handle_cause);
    SAME(r, "error.busy", e->busy, x->busy);
    if (!(open & TM_FREE_REASON))
        SAME(r, "error.reason", e->reason, x->reason);
    if (!(open & TM_FREE_NATIVE))
        SAME(r, "error.native_code", e->native_code, x->native_code);
    SAME(r, "error.cleanup_status", e->cleanup_status, x->cleanup_status);
    SAME(r, "error.cleanup_native_code", e->cleanup_native_code, x->cleanup_native_code);
    if (!(open & TM_FREE_MANAGER) || (e->manager && e->manager != x->manager && x->manager))
        SAME(r, "error.manager", e->manager, x->manager);
    if (!(open & TM_FREE_HANDLE))
        SAME_HANDLE(r, "error.handle", e->handle, x->handle);
    if (!(open & TM_FREE_AT))
        SAME_AT(r, "error.at", e->at, x->at);
    if (!(open & TM_FREE_BUDGET))
        SAME(r, "error.budget_bytes", e->budget_bytes, x->budget_bytes);
    SAME(r, "error.used_bytes", e->used_bytes, x->used_bytes);
    SAME(r, "error.reserved_bytes", e->reserved_bytes, x->reserved_bytes);
    SAME(r, "error.claimed_bytes", e->claimed_bytes, x->claimed_bytes);
    SAME(r, "error.requested_bytes", e->requested_bytes, x->requested_bytes);
    SAME(r, "error.use_count", e->use_count, x->use_count);
    SAME(r, "error.hold_count", e->hold_count, x->hold_count);
    SAME(r, "error.pending_count", e->pending_count, x->pending_count);
    SAME(r, "error.active_lease_count", e->active_lease_count, x->active_lease_count);
    SAME(r, "error.pending_lease_count", e->pending_lease_count, x->pending_lease_count);
    SAME(r, "error.reservation_count", e->reservation_count, x->reservation_count);
    if (!(open & TM_FREE_NUMBERS)) {
        SAME(r, "error.expected", e->expected, x->expected);
        SAME(r, "error.actual", e->actual, x->actual);
    }
    return compare_owners(r, e, x);
}

bool compare_result(run *r, side *s, tn_status library, tn_status model) {
    say(r, "     -> %s\n", tn_status_name(library));
    r->tally->hits[r->now->op][library % STATUSES]++;
    return compare_statuses(r, s, library, model);
}

bool compare_statuses(run *r, side *s, tn_status library, tn_status model) {
    r->tally->checks++;
    if (library != model)
        return differ(r, "%s, by the model %s; message: %s", tn_status_name(library),
                      tn_status_name(model), library ? tn_last_error()->message : "");
    return library == TN_OK ||
           compare_error(r, tn_last_error(), &s->model.error, s->model.error_free);
}

bool compare_refusal(run *r, side *s, tn_status library, tn_status expected) {
    s->model.error = (tn_error){.size = sizeof(tn_error), .status = expected};
    s->model.error_free = TM_FREE_ALL;
    return compare_result(r, s, library, expected);
}

/* ---- Reports --------------------------------------------------------------------------------- */

static bool compare_readings(run *r, const tn_report *a) {
    if (a->allocator.kind == TN_LOCATION_NONE || r->expect_no_readings) {
        SAME(r, "report.allocated_bytes_before", a->allocated_bytes_before, TN_READING_ABSENT);
        SAME(r, "report.held_bytes_before", a->held_bytes_before, TN_READING_ABSENT);
        SAME(r, "report.allocated_bytes_after", a->allocated_bytes_after, TN_READING_ABSENT);
        SAME(r, "report.held_bytes_after", a->held_bytes_after, TN_READING_ABSENT);
        return true;
    }
    tn_sim_memory after = {.size = sizeof after};
    const tn_sim_memory *before = &r->device_before[a->allocator.index % 2];
    if (tn_sim_read_memory(r->sim, a->allocator, &after) != TN_OK)
        return differ(r, "no figures of the allocator's device");
    SAME(r, "report.allocated_bytes_before", a->allocated_bytes_before, before->live_bytes);
    SAME(r, "report.held_bytes_before", a->held_bytes_before, before->held_bytes);
    SAME(r, "report.allocated_bytes_after", a->allocated_bytes_after, after.live_bytes);
    SAME(r, "report.held_bytes_after", a->held_bytes_after, after.held_bytes);
    return true;
}

bool compare_report(run *r, const tn_report *a, const tn_report *b, bool readings) {
    SAME(r, "report.action.kind", a->action.kind, b->action.kind);
    SAME_HANDLE(r, "report.action.handle", a->action.handle, b->action.handle);
    SAME_AT(r, "report.action.at", a->action.at, b->action.at);
    SAME_AT(r, "report.action.from", a->action.from, b->action.from);
    SAME(r, "report.no_op", a->no_op, b->no_op);
    SAME(r, "report.reason", a->reason, b->reason);
    SAME_AT(r, "report.source", a->source, b->source);
    SAME_AT(r, "report.destination", a->destination, b->destination);
    SAME(r, "report.logical_bytes", a->logical_bytes, b->logical_bytes);
    SAME(r, "report.storage_bytes", a->storage_bytes, b->storage_bytes);
    SAME_AT(r, "report.allocator", a->allocator, b->allocator);
    if (a->started_at_ns == 0 || a->completed_at_ns < a->started_at_ns)
        return differ(r, "report: from %llu to %llu", (ull)a->started_at_ns,
                      (ull)a->completed_at_ns);
    return !readings || compare_readings(r, a);
}

bool compare_plan_report(run *r, side *s, const tn_plan_report *a, const tm_plan_report *b,
                         const char *name, size_t before) {
    static tn_report list[3 * TM_STEPS];
    tn_plan_report_info info = TN_PLAN_REPORT_INFO_INIT;
    size_t count = 3 * TM_STEPS;
    list[0].size = sizeof list[0];
    r->tally->checks++;
    if (!a || tn_plan_report_read(a, &info) != TN_OK ||
        tn_plan_report_transitions(a, list, &count) != TN_OK)
        return differ(r, "no plan report");
    if (strcmp(info.plan, name) != 0)
        return differ(r, "plan_report.plan: \"%s\", by the model \"%s\"", info.plan, name);
    SAME(r, "plan_report.complete", info.complete, b->complete);
    SAME(r, "plan_report.transition_count", info.transition_count, b->count);
    SAME(r, "plan_report.transitions", count, b->count);
    SAME(r, "plan_report.reclaim_count", info.reclaim_count, b->counts[TN_PHASE_RECLAIM]);
    SAME(r, "plan_report.enter_count", info.enter_count,
         b->counts[TN_PHASE_ENTER] + b->counts[TN_PHASE_EXECUTE]);
    SAME(r, "plan_report.exit_count", info.exit_count, b->counts[TN_PHASE_EXIT]);
    if (info.started_at_ns == 0 || info.completed_at_ns < info.started_at_ns)
        return differ(r, "plan_report: from %llu to %llu", (ull)info.started_at_ns,
                      (ull)info.completed_at_ns);
    for (size_t i = 0; i < count; i++)
        if (!compare_report(r, &list[i], &b->reports[i], false))
            return false;
    complete_traces(s, list + before, count - before);
    return true;
}

/* The model's entries hold what the library reported when it returned them, times included. */
static bool same_report(run *r, const tn_report *a, const tn_report *b) {
    if (!compare_report(r, a, b, false))
        return false;
    if (b->started_at_ns == 0) /* it was not asked for */
        return true;
    SAME(r, "trace.started_at_ns", a->started_at_ns, b->started_at_ns);
    SAME(r, "trace.completed_at_ns", a->completed_at_ns, b->completed_at_ns);
    SAME(r, "trace.allocated_bytes_before", a->allocated_bytes_before, b->allocated_bytes_before);
    SAME(r, "trace.allocated_bytes_after", a->allocated_bytes_after, b->allocated_bytes_after);
    return true;
}

/* All of it when it is read by the sequence, else the end of it. */
bool compare_trace(run *r, side *s) {
    static tn_report reports[TM_TRACE];
    size_t count = TM_TRACE, last = r->now && r->now->op == OP_TRACE ? TM_TRACE : 2;
    reports[0].size = sizeof reports[0];
    tn_status status = tn_manager_trace(s->library, reports, &count);
    if (status != TN_OK)
        return differ(r, "trace: %s", tn_status_name(status));
    SAME(r, "reports in the trace", count, s->model.trace_count);
    for (size_t i = count > last ? count - last : 0; i < count; i++)
        if (!same_report(r, &reports[i], &s->model.trace[i]))
            return false;
    return true;
}

/* ---- Snapshots ------------------------------------------------------------------------------- */

static bool compare_materialization(run *r, const tn_materialization_info *a,
                                    const tn_materialization_info *b) {
    SAME_AT(r, "materialization.at", a->at, b->at);
    SAME(r, "materialization.logical_bytes", a->logical_bytes, b->logical_bytes);
    SAME(r, "materialization.storage_bytes", a->storage_bytes, b->storage_bytes);
    SAME(r, "materialization.charged_bytes", a->charged_bytes, b->charged_bytes);
    SAME(r, "materialization.use_count", a->use_count, b->use_count);
    SAME(r, "materialization.hold_count", a->hold_count, b->hold_count);
    SAME(r, "materialization.pending_count", a->pending_count, b->pending_count);
    return true;
}

static bool compare_value_info(run *r, const tn_value_info *a, const tn_value_info *b) {
    SAME_HANDLE(r, "value.handle", a->handle, b->handle);
    SAME(r, "value.spec.type", (uintptr_t)a->spec.type, (uintptr_t)b->spec.type);
    SAME(r, "value.spec.logical_bytes", a->spec.logical_bytes, b->spec.logical_bytes);
    SAME(r, "value.spec.storage_bytes", a->spec.storage_bytes, b->spec.storage_bytes);
    SAME(r, "value.spec.replica_mode", a->spec.replica_mode, b->spec.replica_mode);
    SAME(r, "value.spec.recoverability", a->spec.recoverability, b->spec.recoverability);
    SAME(r, "value.materialization_count", a->materialization_count, b->materialization_count);
    SAME(r, "value.has_source", a->has_source, b->has_source);
    SAME_AT(r, "value.source_at", a->source_at, b->source_at);
    SAME(r, "value.discarded", a->discarded, b->discarded);
    return true;
}

static bool compare_values(run *r, tn_snapshot *snapshot, const tm_view *view) {
    uint64_t cursor = 0, i = 0;
    for (bool more = true;; i++) {
        tn_value_info info = {.size = sizeof info};
        if (tn_snapshot_next(snapshot, &cursor, &info, &more) != TN_OK)
            return differ(r, "snapshot_next fails");
        if (!more || i == view->info.value_count)
            break;
        const tn_value_info *x = &view->values[i];
        if (!compare_value_info(r, &info, x))
            return false;
        tn_materialization_info list[TM_LOCATIONS];
        size_t count = TM_LOCATIONS;
        list[0].size = sizeof list[0];
        if (tn_snapshot_materializations(snapshot, x->handle, list, &count) != TN_OK)
            return differ(r, "snapshot_materializations fails");
        SAME(r, "number of materializations", count, x->materialization_count);
        for (size_t k = 0; k < count; k++)
            if (!compare_materialization(r, &list[k], &view->materializations[i][k]))
                return false;
    }
    SAME(r, "values walked", i, view->info.value_count);
    if (i) { /* one by its handle */
        tn_value_info info = {.size = sizeof info};
        const tn_value_info *x = &view->values[r->step % i];
        if (tn_snapshot_value(snapshot, x->handle, &info) != TN_OK)
            return differ(r, "snapshot_value fails");
        return compare_value_info(r, &info, x);
    }
    return true;
}

static bool compare_place(run *r, const tn_location_info *a, const tn_location_info *b,
                          bool readings) {
    SAME_AT(r, "location.at", a->at, b->at);
    SAME(r, "location.has_budget", a->has_budget, b->has_budget);
    SAME(r, "location.budget_bytes", a->budget_bytes, b->budget_bytes);
    SAME(r, "location.remaining_bytes", a->remaining_bytes, b->remaining_bytes);
    SAME(r, "location.used_bytes", a->used_bytes, b->used_bytes);
    SAME(r, "location.reserved_bytes", a->reserved_bytes, b->reserved_bytes);
    SAME(r, "location.peak_used_bytes", a->peak_used_bytes, b->peak_used_bytes);
    SAME(r, "location.peak_charged_bytes", a->peak_charged_bytes, b->peak_charged_bytes);
    SAME(r, "location.value_count", a->value_count, b->value_count);
    SAME(r, "location.reservation_count", a->reservation_count, b->reservation_count);
    SAME(r, "location.use_count", a->use_count, b->use_count);
    SAME(r, "location.hold_count", a->hold_count, b->hold_count);
    SAME(r, "location.pending_count", a->pending_count, b->pending_count);
    if (a->at.kind != TN_LOCATION_CUDA) {
        SAME(r, "location.allocated_bytes", a->allocated_bytes, TN_READING_ABSENT);
        SAME(r, "location.held_bytes", a->held_bytes, TN_READING_ABSENT);
    } else if (readings) {
        tn_sim_memory now = {.size = sizeof now};
        if (tn_sim_read_memory(r->sim, a->at, &now) != TN_OK)
            return differ(r, "no figures of a device");
        SAME(r, "location.allocated_bytes", a->allocated_bytes, now.live_bytes);
        SAME(r, "location.held_bytes", a->held_bytes, now.held_bytes);
    }
    return true;
}

/* M51 and M254 on the library's own words, whatever the model says. */
static bool check_place(run *r, const tn_location_info *a) {
    uint64_t charged = a->used_bytes + a->reserved_bytes;
    bool good = a->peak_used_bytes >= a->used_bytes &&
                a->peak_charged_bytes >= a->peak_used_bytes && a->peak_charged_bytes >= charged;
    if (a->has_budget)
        good = good && charged <= a->budget_bytes && a->peak_charged_bytes <= a->budget_bytes &&
               a->remaining_bytes == a->budget_bytes - charged;
    return good || differ(r, "%s breaks M51", location_text(a->at));
}

static bool compare_places(run *r, tn_snapshot *snapshot, const tm_view *view, bool readings) {
    tn_location_info list[TM_LOCATIONS];
    size_t count = TM_LOCATIONS;
    list[0].size = sizeof list[0];
    if (tn_snapshot_locations(snapshot, list, &count) != TN_OK)
        return differ(r, "snapshot_locations fails");
    SAME(r, "number of locations", count, view->info.location_count);
    for (size_t i = 0; i < count; i++)
        if (!compare_place(r, &list[i], &view->locations[i], readings) || !check_place(r, &list[i]))
            return false;
    return true;
}

static bool compare_reservations(run *r, tn_snapshot *snapshot, const tm_view *view) {
    static tn_reservation_info list[TM_LIFETIMES];
    size_t count = TM_LIFETIMES;
    list[0].size = sizeof list[0];
    if (tn_snapshot_reservations(snapshot, list, &count) != TN_OK)
        return differ(r, "snapshot_reservations fails");
    SAME(r, "number of reservations", count, view->info.reservation_count);
    for (size_t i = 0; i < count; i++) {
        const tn_reservation_info *a = &list[i], *b = &view->reservations[i];
        SAME_AT(r, "reservation.at", a->at, b->at);
        SAME(r, "reservation.bytes", a->bytes, b->bytes);
        if (strcmp(a->label, b->label) != 0)
            return differ(r, "reservation.label: %s, by the model %s", a->label, b->label);
    }
    return true;
}

bool compare_view(run *r, tn_snapshot *snapshot, const tm_view *view, bool readings) {
    tn_snapshot_info info = {.size = sizeof info};
    const tn_snapshot_info *x = &view->info;
    r->tally->checks++;
    if (tn_snapshot_read(snapshot, &info) != TN_OK)
        return differ(r, "snapshot_read fails");
    SAME(r, "snapshot.exact", info.exact, 1);
    SAME(r, "snapshot.manager", info.manager, x->manager);
    SAME(r, "snapshot.state_version", info.state_version, x->state_version);
    SAME(r, "snapshot.value_count", info.value_count, x->value_count);
    SAME(r, "snapshot.location_count", info.location_count, x->location_count);
    SAME(r, "snapshot.reservation_count", info.reservation_count, x->reservation_count);
    SAME(r, "snapshot.lease_count", info.lease_count, x->lease_count);
    SAME(r, "snapshot.pending_lease_count", info.pending_lease_count, x->pending_lease_count);
    SAME(r, "snapshot.hold_count", info.hold_count, x->hold_count);
    if (info.captured_at_ns == 0)
        return differ(r, "a snapshot without a time");
    return compare_values(r, snapshot, view) && compare_places(r, snapshot, view, readings) &&
           compare_reservations(r, snapshot, view);
}

/* ---- Everything around ----------------------------------------------------------------------- */

static bool compare_side(run *r, side *s) {
    for (uint32_t kind = TN_DIAGNOSTIC_RELEASE_FALLBACK; kind <= TN_DIAGNOSTIC_SCOPE_ABANDONED;
         kind++)
        SAME(r, "diagnostics", s->diagnostics[kind], s->model.diagnostics[kind]);
    for (size_t i = 0; i < s->source_count; i++)
        SAME(r, "calls of a source", s->sources[i].calls, s->sources[i].model_calls);
    tn_location list[TM_LOCATIONS];
    size_t count = TM_LOCATIONS;
    if (!s->library)
        return true;
    if (tn_manager_locations(s->library, list, &count) != TN_OK)
        return differ(r, "locations: %s", tn_last_error()->message);
    SAME(r, "tracked locations", count, s->model.place_count);
    for (size_t i = 0; i < count; i++)
        SAME_AT(r, "tracked location", list[i], s->model.places[i].at);
    return true;
}

bool compare_world(run *r) {
    uint64_t forgotten = 0;
    for (uint32_t i = 0; i < RUN_MANAGERS; i++) {
        if (!compare_side(r, &r->sides[i]))
            return false;
        for (size_t k = 0; k < r->sides[i].source_count; k++)
            forgotten += r->sides[i].sources[k].forgotten;
    }
    SAME(r, "sources forgotten", forgotten, r->world.forgotten);
    SAME(r, "payloads alive", (int64_t)tt_count().live - r->payloads_before, r->world.live);
    SAME(r, "virtual time", tn_sim_now_ns(r->sim), r->world.now);
    if (tn_sim_violations(r->sim))
        return differ(r, "violation: %s", tn_sim_violation_text(r->sim));
    return true;
}

bool compare_lifetimes(run *r, side *s) {
    for (size_t i = 0; i < s->model.lease_count; i++)
        if (tn_lease_active(&s->leases[i]) != s->model.leases[i].open)
            return differ(r, "lease %zu: active is %d", i, !s->model.leases[i].open);
    for (size_t i = 0; i < s->model.hold_count; i++)
        if (tn_hold_active(&s->holds[i]) != s->model.holds[i].open)
            return differ(r, "hold %zu: active is %d", i, !s->model.holds[i].open);
    for (size_t i = 0; i < s->model.reservation_count; i++)
        if (tn_reservation_active(&s->reservations[i]) != s->model.reservations[i].open)
            return differ(r, "reservation %zu: active is %d", i, !s->model.reservations[i].open);
    for (size_t i = 0; i < s->model.scope_count; i++)
        if (!s->model.scopes[i].destroyed &&
            tn_scope_active(s->scopes[i]) != (s->model.scopes[i].state == TM_ENTERED))
            return differ(r, "scope %zu: active is %d", i, s->model.scopes[i].state != TM_ENTERED);
    return true;
}
