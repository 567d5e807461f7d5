/* SPDX-License-Identifier: MIT */
/* Property test of the manager: one call on both sides: values, actions, observations. */
#include "manager_property.h"

#include <stdio.h>
#include <string.h>

typedef unsigned long long ull;

/* ---- Adopt, register ------------------------------------------------------------------------- */

static bool values_full(const run *r, const side *s) {
    return s->model.value_count >= r->values_max;
}

static tn_location adopt_location(run *r, const call *c, const tm_payload *p) {
    tn_location at = p->field_count ? p->fields[0].at : tn_location_pageable();
    if (c->arg[1] % 4 == 0)
        at = tn_location_none(); /* inferred */
    if (c->arg[1] % 16 == 1)
        at = choose_location(c->arg[1] / 16);
    return wrong(r, WRONG_LOCATION_NONE) ? tn_location_none() : wrong_location(r, at);
}

/* A reservation to convert: mostly one that could do. */
static size_t choose_reservation(side *s, tn_location at, uint32_t x) {
    for (size_t i = 0; i < s->model.reservation_count && x % 4; i++) {
        size_t k = (x / 4 + i) % s->model.reservation_count;
        const tm_reservation *v = &s->model.reservations[k];
        if (v->state == TM_ACTIVE && tn_location_equal(v->at, at))
            return k;
    }
    return s->model.reservation_count ? x / 4 % s->model.reservation_count : TM_LIFETIMES;
}

static tn_status adopt(run *r, side *s, const call *c, tn_payload p, const tm_payload *model,
                       tn_location at, uint32_t mode, tn_status *expected) {
    tn_handle got = {0, 0, NULL}, want = {0, 0, NULL};
    tn_handle *out = wrong(r, WRONG_OUT) ? NULL : &got;
    tn_manager *m = wrong(r, WRONG_MANAGER) ? NULL : s->library;
    bool reserved = c->op == OP_ADOPT_RESERVED;
    /* WRONG_VALUE_2: of the other manager */
    side *owner = wrong(r, WRONG_VALUE_2) ? &r->sides[s == &r->sides[0]] : s;
    tn_location place = at.kind ? at : model->field_count ? model->fields[0].at : at;
    size_t which = reserved ? choose_reservation(owner, place, c->arg[3]) : 0;
    say(r, "type %s, %zu fields at %s, location %s, mode %u", p.type ? p.type->name : "NULL",
        model->field_count, location_text(model->field_count ? model->fields[0].at : at),
        location_text(at), mode);
    if (reserved)
        say(r, ", reservation %d:%zu", (int)(owner - r->sides), which);
    say(r, "\n");
    tn_status status;
    do {
        arm_faults(r, c);
        status = reserved
                     ? tn_manager_adopt_reserved(m, p, at, mode, &owner->reservations[which], out)
                     : tn_manager_adopt(m, p, at, mode, out);
    } while (again(r, s, status));
    s->model.next_index = status == TN_OK ? got.index : s->model.next_index;
    if (!out || !m)
        *expected = TN_ERR_KIND;
    else if (reserved)
        *expected =
            tm_adopt_reserved(&s->model, model, at, mode, &owner->model.reservations[which], &want);
    else
        *expected = tm_adopt(&s->model, model, at, mode, &want);
    if (status == TN_OK && *expected == TN_OK && !tn_handle_equal(got, want))
        differ(r, "handle %s, by the model %s", handle_text(r, got), handle_text(r, want));
    return status;
}

static bool run_adopt(run *r, side *s, const call *c) {
    tm_payload model;
    memset(&model, 0, sizeof model);
    if (values_full(r, s))
        return true;
    if (c->op == OP_ADOPT_RESERVED) {
        side *owner = wrong(r, WRONG_VALUE_2) ? &r->sides[s == &r->sides[0]] : s;
        if (!owner->model.reservation_count || (owner != s && owner->model.closed))
            return true;
    }
    int64_t alive = (int64_t)tt_count().live;
    tn_payload p = make_payload(r, s, c->arg[0], &model);
    if (!p.data)
        return true;
    r->world.live += (int64_t)tt_count().live - alive;
    tn_location at = adopt_location(r, c, &model);
    uint32_t mode = wrong(r, WRONG_VALUE) ? 2 + c->arg[2]
                    : c->arg[2] % 4       ? TN_REPLICABLE
                                          : TN_EXCLUSIVE;
    tn_payload given = p;
    if (wrong(r, WRONG_TYPE))
        given.type = model.type = NULL;
    if (wrong(r, WRONG_ZERO_HANDLE))
        given.data = NULL, model.data = NULL;
    uint64_t highest = s->model.next_index;
    tn_status expected, status = adopt(r, s, c, given, &model, at, mode, &expected);
    if (status != TN_OK)
        unmake_payload(r, s, p);
    else if (s->model.next_index < highest)
        return differ(r, "an index was issued twice");
    if (wrong(r, WRONG_OUT) || wrong(r, WRONG_MANAGER))
        return compare_refusal(r, s, status, expected);
    return compare_result(r, s, status, expected);
}

static tn_value_spec draw_spec(run *r, const call *c) {
    static const uint8_t sizes[8] = {32, 32, 64, 24, 8, 0, 40, 96},
                         extra[8] = {0, 0, 0, 8, 32, 0, 0, 32};
    tn_value_spec spec = TN_VALUE_SPEC_INIT;
    spec.type = c->arg[0] / 8 % 8 == 1 ? tt_subtype() : tt_type();
    spec.logical_bytes = sizes[c->arg[0] % 8];
    spec.storage_bytes = spec.logical_bytes + extra[c->arg[0] / 64 % 8];
    spec.replica_mode = c->arg[2] % 4 ? TN_REPLICABLE : TN_EXCLUSIVE;
    spec.recoverability = TN_RECONSTRUCTIBLE;
    if (wrong(r, WRONG_VALUE))
        spec.recoverability = TN_MUST_PRESERVE;
    if (wrong(r, WRONG_VALUE_2))
        spec.storage_bytes =
            c->arg[2] % 2 ? (uint64_t)INT64_MAX + 1 + c->arg[2] : spec.logical_bytes - 1;
    if (wrong(r, WRONG_ZERO_HANDLE))
        spec.type = NULL;
    if (wrong(r, WRONG_TYPE))
        spec.replica_mode = 2 + c->arg[2];
    if (wrong(r, WRONG_UNKNOWN))
        spec.recoverability = 2 + c->arg[2];
    return spec;
}

static bool run_register(run *r, side *s, const call *c) {
    if (values_full(r, s))
        return true;
    source *src;
    tn_source real = make_source(r, s, c->arg[3] % 8 ? c->arg[3] : 0, &src);
    tn_value_spec spec = draw_spec(r, c);
    tn_location at = c->arg[1] % 8 ? choose_location(c->arg[1] / 8) : tn_location_none();
    at = wrong(r, WRONG_LOCATION_NONE) ? tn_location_none() : wrong_location(r, at);
    bool loader = !wrong(r, WRONG_FOREIGN);
    if (!loader)
        real.load = NULL;
    tn_handle got = {0, 0, NULL}, want = {0, 0, NULL};
    tn_manager *m = wrong(r, WRONG_MANAGER) ? NULL : s->library;
    say(r, "%s %llu/%llu, %s, source at %s, script %llx\n", spec.type ? spec.type->name : "NULL",
        (ull)spec.logical_bytes, (ull)spec.storage_bytes,
        spec.replica_mode == TN_REPLICABLE ? "rep" : "exc", location_text(at), (ull)src->script);
    tn_status status;
    do {
        arm_faults(r, c);
        status = tn_manager_register_source(m, &spec, &real, at, wrong(r, WRONG_OUT) ? NULL : &got);
    } while (again(r, s, status));
    if (!m || wrong(r, WRONG_OUT))
        return compare_refusal(r, s, status, TN_ERR_KIND);
    s->model.next_index = status == TN_OK ? got.index : s->model.next_index;
    tn_status expected = tm_register(&s->model, &spec, loader ? model_load : NULL, src, at, &want);
    if (!compare_result(r, s, status, expected))
        return false;
    if (status != TN_OK)
        return true;
    s->source_count++;
    return tn_handle_equal(got, want) ||
           differ(r, "handle %s, by the model %s", handle_text(r, got), handle_text(r, want));
}

bool run_value(run *r, side *s, const call *c) {
    return c->op == OP_REGISTER ? run_register(r, s, c) : run_adopt(r, s, c);
}

/* ---- Actions --------------------------------------------------------------------------------- */

typedef struct arguments {
    tn_handle handle;
    tn_location at, from;
    tn_stream stream;
} arguments;

static arguments draw_action(run *r, side *s, const call *c) {
    arguments a = {choose_value(r, s, c->arg[0]), {0, 0}, {0, 0}, NULL};
    bool transfer = c->op == OP_ENSURE || c->op == OP_COPY || c->op == OP_MOVE;
    a.at = c->op == OP_DROP ? choose_place(s, a.handle, c->arg[1]) : choose_location(c->arg[1]);
    if (c->op == OP_MOVE && c->arg[3] % 2)
        a.from = choose_place(s, a.handle, c->arg[3] / 2);
    if (c->op == OP_MOVE && wrong(r, WRONG_VALUE))
        a.from = c->arg[3] % 2 ? tn_location_cuda(2 + c->arg[3]) : (tn_location){4 + c->arg[3], 0};
    a.handle = wrong_handle(r, s, a.handle);
    a.at = wrong_location(r, a.at);
    if (transfer && c->arg[2] % 2)
        a.stream = choose_stream(r, a.at, c->arg[2] / 2);
    if (transfer)
        a.stream = wrong_stream(r, a.at, a.stream);
    return a;
}

static tn_status call_action(run *r, tn_manager *m, const call *c, const arguments *a,
                             tn_report *out) {
    say(r, "%s", handle_text(r, a->handle));
    if (c->op != OP_DISCARD)
        say(r, ", %s", location_text(a->at));
    if (c->op == OP_MOVE)
        say(r, ", from %s", location_text(a->from));
    say(r, ", %s%s\n", stream_text(r, a->stream), out ? "" : ", no report");
    switch (c->op) {
    case OP_ENSURE:
        return tn_manager_ensure(m, a->handle, a->at, a->stream, out);
    case OP_COPY:
        return tn_manager_copy(m, a->handle, a->at, a->stream, out);
    case OP_MOVE:
        return tn_manager_move(m, a->handle, a->at, a->from, a->stream, out);
    case OP_DROP:
        return tn_manager_drop(m, a->handle, a->at, out);
    default:
        return tn_manager_discard(m, a->handle, out);
    }
}

static tn_status model_action(side *s, const call *c, const arguments *a) {
    switch (c->op) {
    case OP_ENSURE:
    case OP_COPY:
        return tm_ensure(&s->model, a->handle, a->at, a->stream);
    case OP_MOVE:
        return tm_move(&s->model, a->handle, a->at, a->from, a->stream);
    case OP_DROP:
        return tm_drop(&s->model, a->handle, a->at);
    default:
        return tm_discard(&s->model, a->handle);
    }
}

void complete_traces(side *s, const tn_report *reports, size_t count) {
    for (size_t i = 0; i < count && i < s->model.trace_count; i++) {
        const tn_report *from = &reports[count - 1 - i];
        tn_report *to = &s->model.trace[s->model.trace_count - 1 - i];
        to->started_at_ns = from->started_at_ns;
        to->completed_at_ns = from->completed_at_ns;
        to->allocated_bytes_before = from->allocated_bytes_before;
        to->allocated_bytes_after = from->allocated_bytes_after;
    }
}

/* The trace of the model gets the times and readings that were reported. */
static void complete_trace(side *s, const tn_report *report) {
    if (s->model.trace_count == 0)
        return;
    tn_report *last = &s->model.trace[s->model.trace_count - 1];
    last->started_at_ns = report ? report->started_at_ns : 0;
    last->completed_at_ns = report ? report->completed_at_ns : 0;
    last->allocated_bytes_before = report ? report->allocated_bytes_before : 0;
    last->allocated_bytes_after = report ? report->allocated_bytes_after : 0;
}

bool run_action(run *r, side *s, const call *c) {
    arguments a = draw_action(r, s, c);
    tn_report report = TN_REPORT_INIT;
    tn_report *out = c->arg[4] % 8 ? &report : NULL;
    tn_manager *m = wrong(r, WRONG_MANAGER) ? NULL : s->library;
    if (wrong(r, WRONG_OUT)) {
        report.size = 4;
        out = &report;
    }
    tn_status status;
    do {
        arm_faults(r, c);
        status = call_action(r, m, c, &a, out);
    } while (again(r, s, status));
    if (!m || wrong(r, WRONG_OUT))
        return compare_refusal(r, s, status, TN_ERR_KIND);
    tn_status expected = model_action(s, c, &a);
    if (!compare_result(r, s, status, expected) || status != TN_OK)
        return !failed(r);
    complete_trace(s, out);
    return !out || compare_report(r, out, &s->model.report, true);
}

/* ---- Observations ---------------------------------------------------------------------------- */

static bool run_version(run *r, side *s, const call *c) {
    uint64_t got = 0, want = 0;
    bool bad = wrong(r, WRONG_MANAGER) || wrong(r, WRONG_OUT);
    say(r, "\n");
    tn_status status;
    do {
        arm_faults(r, c);
        status = tn_manager_state_version(wrong(r, WRONG_MANAGER) ? NULL : s->library,
                                          wrong(r, WRONG_OUT) ? NULL : &got);
    } while (again(r, s, status));
    if (bad)
        return compare_refusal(r, s, status, TN_ERR_KIND);
    if (!compare_result(r, s, status, tm_version(&s->model, &want)))
        return false;
    return got == want || differ(r, "version %llu, by the model %llu", (ull)got, (ull)want);
}

/* M224: kept, and compared when everything has moved on. */
static bool run_snapshot(run *r, side *s, const call *c) {
    if (s->kept)
        return true;
    bool bad = wrong(r, WRONG_MANAGER) || wrong(r, WRONG_OUT);
    say(r, "(kept)\n");
    tn_status status;
    do {
        arm_faults(r, c);
        status = tn_snapshot_take(wrong(r, WRONG_MANAGER) ? NULL : s->library,
                                  wrong(r, WRONG_OUT) ? NULL : &s->kept);
    } while (again(r, s, status));
    if (bad)
        return compare_refusal(r, s, status, TN_ERR_KIND);
    return compare_result(r, s, status, tm_snapshot(&s->model, &s->kept_view));
}

static bool run_snapshot_check(run *r, side *s) {
    say(r, "\n");
    if (!s->kept)
        return true;
    bool equal = compare_view(r, s->kept, &s->kept_view, false);
    tn_value_info info = {.size = sizeof info};
    tn_handle unknown = {s->model.id, 5000, tt_type()},
              foreign = {s->model.id + 1000, 1, tt_type()};
    if (equal && (tn_snapshot_value(s->kept, unknown, &info) != TN_ERR_HANDLE ||
                  tn_snapshot_value(s->kept, foreign, &info) != TN_ERR_HANDLE ||
                  tn_snapshot_value(s->kept, unknown, NULL) != TN_ERR_KIND))
        return differ(r, "a snapshot knows a value that does not exist");
    tn_snapshot_drop(s->kept);
    s->kept = NULL;
    return equal;
}

static bool run_locations(run *r, side *s, const call *c) {
    tn_location list[TM_LOCATIONS];
    size_t count = c->arg[0] % TM_LOCATIONS, room = count;
    bool bad = wrong(r, WRONG_MANAGER) || wrong(r, WRONG_OUT);
    say(r, "room for %zu\n", room);
    tn_status status =
        tn_manager_locations(wrong(r, WRONG_MANAGER) ? NULL : s->library, room ? list : NULL,
                             wrong(r, WRONG_OUT) ? NULL : &count);
    if (bad)
        return compare_refusal(r, s, status, TN_ERR_KIND);
    if (!compare_result(r, s, status, tm_guarded(&s->model)))
        return false;
    if (count != s->model.place_count)
        return differ(r, "%zu locations, by the model %zu", count, s->model.place_count);
    for (size_t i = 0; i < room && i < count; i++)
        if (!tn_location_equal(list[i], s->model.places[i].at))
            return differ(r, "location %zu is %s", i, location_text(list[i]));
    return true;
}

/* The oldest that fit; the rest is compared after each call anyway. */
static bool run_trace(run *r, side *s, const call *c) {
    tn_report list[4];
    size_t count = c->arg[0] % 5, room = count;
    bool bad = wrong(r, WRONG_MANAGER) || wrong(r, WRONG_OUT);
    say(r, "room for %zu\n", room);
    list[0].size = sizeof list[0];
    tn_status status = tn_manager_trace(wrong(r, WRONG_MANAGER) ? NULL : s->library,
                                        room ? list : NULL, wrong(r, WRONG_OUT) ? NULL : &count);
    if (bad)
        return compare_refusal(r, s, status, TN_ERR_KIND);
    if (!compare_result(r, s, status, tm_guarded(&s->model)))
        return false;
    if (count != s->model.trace_count)
        return differ(r, "%zu reports, by the model %zu", count, s->model.trace_count);
    for (size_t i = 0; i < room && i < count; i++)
        if (!compare_report(r, &list[i], &s->model.trace[i], false))
            return false;
    return true;
}

static bool run_clear_trace(run *r, side *s) {
    say(r, "\n");
    tn_status status = tn_manager_clear_trace(wrong(r, WRONG_MANAGER) ? NULL : s->library);
    if (wrong(r, WRONG_MANAGER))
        return compare_refusal(r, s, status, TN_ERR_KIND);
    tn_status expected = tm_guarded(&s->model);
    tm_clear_trace(&s->model);
    return compare_result(r, s, status, expected);
}

static bool run_step(run *r, side *s, const call *c) {
    uint64_t done = 0;
    say(r, "\n");
    tn_status status;
    do {
        arm_faults(r, c);
        status = tn_manager_step(wrong(r, WRONG_MANAGER) ? NULL : s->library,
                                 c->arg[0] % 2 ? &done : NULL);
    } while (again(r, s, status));
    if (wrong(r, WRONG_MANAGER))
        return compare_refusal(r, s, status, TN_ERR_KIND);
    if (!compare_result(r, s, status, tm_step(&s->model)))
        return false;
    if (status == TN_OK && c->arg[0] % 2 &&
        done < s->model.reaped) /* the rest is garbage it freed */
        return differ(r, "%llu completed, by the model %llu", (ull)done, (ull)s->model.reaped);
    return true;
}

static bool run_close(run *r, side *s, const call *c) {
    uint32_t flags = c->arg[0] % 4;
    if (flags & TN_CLOSE_FORCE && c->arg[1] % 4)
        flags &= ~(uint32_t)TN_CLOSE_FORCE; /* seldom, it ends everything */
    if (wrong(r, WRONG_VALUE))
        flags |= 4u << c->arg[2] % 29;
    /* Which events are queried and which are waited for is open; D4. */
    say(r, "flags %u\n", flags);
    tn_status status;
    do {
        arm_faults(r, c);
        status = tn_manager_close(wrong(r, WRONG_MANAGER) ? NULL : s->library, flags);
    } while (again(r, s, status));
    if (wrong(r, WRONG_MANAGER))
        return compare_refusal(r, s, status, TN_ERR_KIND);
    return compare_result(r, s, status, tm_close(&s->model, flags));
}

/* A manager that must be refused, or one that is made and destroyed at once. */
static bool run_create(run *r, side *s, const call *c) {
    tn_budget budgets[2] = {{choose_location(c->arg[0]), c->arg[1]}, {tn_location_none(), 5}};
    tn_config config = TN_CONFIG_INIT;
    tn_manager *m = NULL;
    config.driver = r->driver;
    config.budgets = budgets;
    config.budget_count = 1;
    config.reaper = TN_REAPER_MANUAL;
    budgets[0].at = wrong_location(r, budgets[0].at);
    tn_status expected = TN_OK;
    if (wrong(r, WRONG_VALUE))
        budgets[0].bytes = (uint64_t)INT64_MAX + 1 + c->arg[1], expected = TN_ERR_VALUE;
    if (wrong(r, WRONG_VALUE_2))
        budgets[1].at = budgets[0].at, config.budget_count = 2, expected = TN_ERR_VALUE;
    if (wrong(r, WRONG_LOCATION_ABSENT) || wrong(r, WRONG_LOCATION_RANGE))
        expected = TN_ERR_VALUE;
    if (wrong(r, WRONG_LOCATION_KIND) || wrong(r, WRONG_LOCATION_NONE))
        expected = TN_ERR_KIND;
    if (wrong(r, WRONG_TYPE))
        config.mode = 2 + c->arg[2], expected = TN_ERR_KIND;
    if (wrong(r, WRONG_UNKNOWN))
        config.reaper = 2 + c->arg[2], expected = TN_ERR_KIND;
    if (wrong(r, WRONG_OUT) || wrong(r, WRONG_MANAGER))
        expected = TN_ERR_KIND;
    if (wrong(r, WRONG_MANAGER))
        config.size = 4;
    say(r, "budget %s:%llu\n", location_text(budgets[0].at), (ull)budgets[0].bytes);
    if (r->now->wrong[1]) /* no rule orders two mistakes here */
        return true;
    tn_status status = tn_manager_create(&config, wrong(r, WRONG_OUT) ? NULL : &m);
    if (!compare_refusal(r, s, status, expected) || status != TN_OK)
        return !failed(r);
    static tm_manager same; /* destroying it synchronises its devices */
    tm_config as = {budgets, config.budget_count, 0, 0};
    tm_create(&same, &r->world, tn_manager_id(m), &as);
    tm_destroy(&same);
    return tn_manager_destroy(m) == TN_OK || differ(r, "destroy fails");
}

bool run_observation(run *r, side *s, const call *c) {
    switch (c->op) {
    case OP_VERSION:
        return run_version(r, s, c);
    case OP_SNAPSHOT:
        return run_snapshot(r, s, c);
    case OP_SNAPSHOT_CHECK:
        return run_snapshot_check(r, s);
    case OP_LOCATIONS:
        return run_locations(r, s, c);
    case OP_TRACE:
        return run_trace(r, s, c);
    case OP_CLEAR_TRACE:
        return run_clear_trace(r, s);
    case OP_STEP:
        return run_step(r, s, c);
    case OP_CLOSE:
        return run_close(r, s, c);
    case OP_CREATE:
        return run_create(r, s, c);
    default:
        return run_machine(r, s, c);
    }
}
