/* SPDX-License-Identifier: MIT */
/* Property test of the manager: the state of one run, its faults, and the loop over the calls. */
#include "manager_property.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_internal.h"

#define KEPT_BLOCKS 12
#define EPOCH UINT64_C(1700000000000000000)

bool failed(const run *r) { return r->failure[0] != 0; }

bool differ(run *r, const char *format, ...) {
    if (failed(r))
        return false;
    int used = 0;
    if (r->now)
        used =
            snprintf(r->failure, FAILURE_TEXT, "call %u (%s): ", r->step + 1, op_name(r->now->op));
    va_list args;
    va_start(args, format);
    vsnprintf(r->failure + used, FAILURE_TEXT - (size_t)used, format, args);
    va_end(args);
    return false;
}

void say(run *r, const char *format, ...) {
    if (!r->verbose)
        return;
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    r->mid_line = format[strlen(format) - 1] != '\n';
    fflush(stdout);
}

/* ---- Machine and managers -------------------------------------------------------------------- */

static uint64_t now_ns(void *context) {
    run *r = context;
    uint64_t tick = r->ticks++;
    return EPOCH + tick - 3 * (tick % 5 == 4); /* steps back now and then (G47) */
}

static void diagnostic(void *context, const tn_diagnostic *d) {
    side *s = context;
    if (d->kind < 8)
        s->diagnostics[d->kind]++;
}

static size_t draw_budgets(const uint16_t *setup, tn_budget *budgets) {
    static const uint16_t bytes[16] = {64, 96,   128, 160, 200, 64, 96, 32,
                                       0,  1000, 128, 0,   0,   0,  0,  0};
    size_t count = 0;
    for (uint32_t i = 0; i < LOCATIONS; i++) {
        uint32_t what = setup[i] % 16;
        if (what < 11) /* else no budget */
            budgets[count++] = (tn_budget){locations[(i + setup[0] / 16) % LOCATIONS], bytes[what]};
    }
    return count;
}

static bool create_manager(run *r, uint32_t index) {
    static const uint64_t traces[8] = {0, TN_TRACE_UNLIMITED, 1, 3, TN_TRACE_NONE, 0, 7, 0};
    static const uint64_t keeps[8] = {TN_KEEP_ALL, TN_KEEP_ALL, TN_KEEP_ALL, TN_KEEP_ALL,
                                      TN_KEEP_ALL, 0,           1,           2};
    const uint16_t *setup = r->program->setup + index * 6;
    side *s = &r->sides[index];
    tn_budget budgets[LOCATIONS];
    tn_config config = TN_CONFIG_INIT;
    config.driver = r->driver;
    config.budgets = budgets;
    config.budget_count = draw_budgets(setup + 2, budgets);
    config.mode = setup[0] % 2 ? TN_MODE_CONCURRENT : TN_MODE_SERIAL;
    config.reaper = TN_REAPER_MANUAL;
    config.trace_capacity = traces[setup[1] % 8];
    config.keep_discarded = keeps[setup[1] / 8 % 8];
    config.diagnostic = diagnostic;
    config.diagnostic_context = s;
    config.now_ns = now_ns;
    config.now_context = r;
    if (tn_manager_create(&config, &s->library) != TN_OK)
        return differ(r, "a manager cannot be created: %s", tn_last_error()->message);
    tm_config same = {budgets, config.budget_count, config.trace_capacity, config.keep_discarded};
    tm_create(&s->model, &r->world, tn_manager_id(s->library), &same);
    say(r, "m%u: %s, trace %lld, keep %lld", index, setup[0] % 2 ? "concurrent" : "serial",
        (long long)config.trace_capacity, (long long)config.keep_discarded);
    for (size_t i = 0; i < config.budget_count; i++)
        say(r, ", %s:%llu", location_text(budgets[i].at), (unsigned long long)budgets[i].bytes);
    say(r, "\n");
    return true;
}

static bool start(run *r) {
    static const uint32_t devices[RUN_STREAMS] = {0, 0, 0, 0, 1, 1, 0};
    r->values_max = program_large(r->program) ? RUN_VALUES : 14;
    r->payloads_before = (int64_t)tt_count().live;
    if (tn_sim_create("dev:2 mem=16MiB", &r->sim) != TN_OK)
        return differ(r, "no machine: %s", tn_last_error()->message);
    r->driver = tn_sim_driver(r->sim);
    tm_world_init(&r->world, 2);
    for (uint32_t i = 0; i < RUN_STREAMS; i++) {
        uint32_t flags = i == 6   ? TN_SIM_STREAM_CAPTURING
                         : i == 2 ? TN_SIM_STREAM_SECOND_CONTEXT
                                  : 0;
        r->streams[i] = TN_STREAM_LEGACY;
        if (i != 3 && tn_sim_stream_create(r->sim, devices[i], flags, &r->streams[i]) != TN_OK)
            return differ(r, "no stream: %s", tn_last_error()->message);
        tm_world_stream(&r->world, r->streams[i], devices[i], i == 6);
    }
    for (uint32_t i = 0; i < RUN_BATCHES; i++)
        r->batches[i] = tt_backing_make(r->driver, locations[i % LOCATIONS], 64);
    for (uint32_t i = 0; i < RUN_MANAGERS; i++)
        if (!create_manager(r, i))
            return false;
    return true;
}

/* ---- The loop -------------------------------------------------------------------------------- */

bool compare_snapshot(run *r, side *s) {
    tm_view view;
    tn_snapshot *snapshot = NULL;
    tn_status status = tn_snapshot_take(s->library, &snapshot);
    tn_status expected = tm_snapshot(&s->model, &view);
    if (!compare_statuses(r, s, status, expected))
        return false;
    bool equal = status != TN_OK || compare_view(r, snapshot, &view, true);
    if (status == TN_OK)
        tn_snapshot_drop(snapshot);
    return equal;
}

/*
 * Freeing pinned memory waits for all work of the machine. Whether a payload's memory is freed at once or kept for the next one is the
 * library's affair, so the model follows: it only checks where the clock may have gone.
 */
static bool follow_pinned_frees(run *r) {
    tn_sim_memory pinned = {.size = sizeof pinned};
    if (tn_sim_read_memory(r->sim, tn_location_pinned(), &pinned) != TN_OK)
        return differ(r, "no figures of pinned memory");
    uint64_t idle = r->world.now, now = tn_sim_now_ns(r->sim);
    for (size_t i = 0; i < r->world.stream_count; i++)
        if (r->world.streams[i].busy_until > idle)
            idle = r->world.streams[i].busy_until;
    if (pinned.frees != r->pinned_frees && now == idle)
        r->world.now = now;
    r->pinned_frees = pinned.frees;
    return true;
}

static bool dispatch(run *r, side *s, const call *c) {
    if (c->op == OP_ADOPT || c->op == OP_ADOPT_RESERVED || c->op == OP_REGISTER)
        return run_value(r, s, c);
    if (c->op >= OP_ENSURE && c->op <= OP_DISCARD)
        return run_action(r, s, c);
    if (c->op >= OP_ACQUIRE && c->op <= OP_RESERVATION_READ)
        return run_lifetime(r, s, c);
    if (c->op >= OP_SCOPE)
        return run_scope(r, s, c);
    if (c->op >= OP_PLAN)
        return run_planned(r, s, c);
    return run_observation(r, s, c);
}

bool read_devices(run *r) {
    for (uint32_t i = 0; i < 2; i++) {
        r->device_before[i] = (tn_sim_memory){.size = sizeof r->device_before[i]};
        if (tn_sim_read_memory(r->sim, tn_location_cuda(i), &r->device_before[i]) != TN_OK)
            return differ(r, "no figures of a device");
    }
    return true;
}

static bool step(run *r, const call *c) {
    side *s = &r->sides[c->which % 8 == 7];
    r->now = c;
    r->active = s;
    r->armed = r->expect_no_readings = r->out_of_memory = false;
    r->closing = NULL;
    r->fault = FAULT_NONE;
    r->world.fault_count = 0;
    if (!read_devices(r))
        return false;
    say(r, "%3u. m%d %s ", r->step + 1, (int)(s - r->sides), op_name(c->op));
    if (c->fault)
        say(r, "[fault: %s] ", fault_name(choose_fault(c)));
    if (wrong(r, WRONG_MANAGER) || wrong(r, WRONG_OUT))
        say(r, wrong(r, WRONG_OUT) ? "[bad output] " : "[NULL] ");
    r->tally->calls++;
    if (!dispatch(r, s, c))
        return false;
    if (r->mid_line)
        say(r, "nothing to do\n");
    settle_faults(r);
    r->tally->reaped += s->model.reaped;
    s->model.reaped = 0;
    if (failed(r) || !follow_pinned_frees(r) || !compare_world(r) || !compare_lifetimes(r, s) ||
        !compare_trace(r, s))
        return false;
    if (!c->quiet && !compare_snapshot(r, s))
        return false;
    side *other = &r->sides[s == &r->sides[0]];
    return r->step % 8 || compare_snapshot(r, other);
}

static bool check_kept(run *r, side *s) {
    if (!s->kept)
        return true;
    bool equal = compare_view(r, s->kept, &s->kept_view, false);
    tn_snapshot_drop(s->kept);
    s->kept = NULL;
    return equal;
}

/* Some before the manager goes, some after; what is entered warns only before (D15). */
static bool destroy_scopes(run *r, side *s, size_t from, size_t every) {
    for (size_t i = from; i < s->model.scope_count; i += every) {
        if (s->model.scopes[i].destroyed)
            continue;
        tn_status status = tn_scope_destroy(s->scopes[i]),
                  expected = tm_scope_destroy(&s->model.scopes[i]);
        if (status != expected)
            return differ(r, "the destruction of a scope at the end: %s", tn_status_name(status));
    }
    return true;
}

/* A scope that outlives its manager is closed. */
static bool check_orphans(run *r, side *s) {
    for (size_t i = 0; i < s->model.scope_count; i++)
        if (!s->model.scopes[i].destroyed && tn_scope_active(s->scopes[i]))
            return differ(r, "scope %zu is active without its manager", i);
    return true;
}

static bool finish_manager(run *r, side *s) {
    bool release_first = r->program->setup[0] & 0x100;
    if (!s->model.closed && !compare_snapshot(r, s))
        return false;
    if (!destroy_scopes(r, s, 0, 3))
        return false;
    if (tn_manager_destroy(s->library) != TN_OK)
        return differ(r, "destroy: %s", tn_last_error()->message);
    s->library = NULL;
    tm_destroy(&s->model);
    if (!check_orphans(r, s) || !destroy_scopes(r, s, 0, 1))
        return false;
    for (size_t i = 0; i < RUN_PLANS; i++)
        tn_plan_destroy(s->plans[i]);
    for (size_t i = 0; release_first && i < s->model.lease_count; i++)
        if (tn_lease_release(&s->leases[i], 0) != TN_OK)
            return differ(r, "a release after destroy: %s", tn_last_error()->message);
    for (size_t i = 0; release_first && i < s->model.hold_count; i++)
        if (tn_hold_release(&s->holds[i]) != TN_OK)
            return differ(r, "the release of a hold after destroy: %s", tn_last_error()->message);
    for (size_t i = 0; release_first && i < s->model.reservation_count; i++)
        if (tn_reservation_release(&s->reservations[i]) != TN_OK)
            return differ(r, "the release of a reservation after destroy: %s",
                          tn_last_error()->message);
    return follow_pinned_frees(r) && compare_world(r) && check_kept(r, s);
}

static bool finish(run *r) {
    r->now = NULL;
    for (uint32_t i = 0; i < RUN_MANAGERS; i++)
        if (!finish_manager(r, &r->sides[i]))
            return false;
    for (uint32_t i = 0; i < RUN_BATCHES; i++)
        tt_backing_free(r->batches[i]);
    (void)tn_driver_trim_pinned(tn_sim_driver(r->sim), NULL); /* what stays shows */
    for (uint32_t i = 1; i < LOCATIONS; i++) {
        tn_sim_memory memory = {.size = sizeof memory};
        if (tn_sim_read_memory(r->sim, locations[i], &memory) != TN_OK || memory.live_bytes != 0)
            return differ(r, "%llu bytes left at %s", (unsigned long long)memory.live_bytes,
                          location_text(locations[i]));
    }
    if (tn_sim_live_events(r->sim) || tn_sim_live_streams(r->sim))
        return differ(r, "%llu events and %llu streams left",
                      (unsigned long long)tn_sim_live_events(r->sim),
                      (unsigned long long)tn_sim_live_streams(r->sim));
    tn_sim_destroy(r->sim);
    /* Blocks of records are recycled, never unmapped: the first sequences make a few. A sequence that leaks is soon told
     * by their number, though not which one it was; a leak checker knows. */
    static uint64_t kept;
    if (!kept)
        kept = tn__alloc_live();
    return tn__alloc_live() <= kept + KEPT_BLOCKS ||
           differ(r, "%llu blocks of the library's own memory, at first %llu",
                  (unsigned long long)tn__alloc_live(), (unsigned long long)kept);
}

bool program_run(const program *p, tally *t, bool verbose, char *failure) {
    static run state; /* large */
    run *r = &state;
    memset(r, 0, sizeof *r);
    failure[0] = 0;
    r->program = p;
    r->tally = t;
    r->verbose = verbose;
    r->failure = failure;
    if (!start(r))
        return false;
    for (r->step = 0; r->step < p->count; r->step++)
        if (!step(r, &p->calls[r->step]) || failed(r))
            return differ(r, "failed");
    t->loads += r->world.loads;
    return finish(r);
}
