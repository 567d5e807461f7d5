/* SPDX-License-Identifier: MIT */
/* Property test of the manager: the state of one run, its faults, and the loop over the calls. */
#include "manager_property.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    fflush(stdout);
}

/* ---- Faults
 * -------------------------------------------------------------------------------------- */

enum fault {
    FAULT_NONE,
    FAULT_DEVICE_ALLOC,
    FAULT_DEVICE_ALLOC_2,
    FAULT_COPY,
    FAULT_COPY_LATER,
    FAULT_COPY_CLEANUP,        /* and the stream cannot be synchronised */
    FAULT_COPY_CLEANUP_DEVICE, /* nor the device */
    FAULT_RECORD,
    FAULT_RECORD_2,
    FAULT_RECORD_SYNCHRONIZE, /* and the streams cannot be synchronised */
    FAULT_QUERY,
    FAULT_EVENT_SYNCHRONIZE,
    FAULT_EVENT_CREATE,
    FAULT_DEVICE_SYNCHRONIZE,
    FAULT_PINNED_ALLOC,
    FAULT_COPY_CALLBACK,
    FAULT_GROW_COPY,
    FAULT_MEASURE,
    FAULT_READINGS,
    FAULT_NEST_COPY, /* no failure: calls from inside the callback */
    FAULT_NEST_MEASURE,
    FAULT_NEST_DESTROY,
    FAULT_COUNT
};

static const char *const fault_names[] = {"",
                                          "device_alloc 1",
                                          "device_alloc 2",
                                          "copy 1",
                                          "copy later",
                                          "copy 1, stream_synchronize all",
                                          "copy 1, stream_synchronize all, device_synchronize all",
                                          "event_record 1",
                                          "event_record 2",
                                          "event_record 1, stream_synchronize all",
                                          "event_query all",
                                          "event_synchronize all",
                                          "event_create all",
                                          "device_synchronize all",
                                          "pinned_alloc all",
                                          "copy callback",
                                          "copy callback makes too much",
                                          "measure callback",
                                          "device_memory all",
                                          "calls inside copy",
                                          "calls inside measure",
                                          "calls inside destroy"};

static void add_fault(run *r, uint32_t entry, uint64_t nth, uint64_t count, tn_status status) {
    tm_fault *f = &r->world.faults[r->world.fault_count++];
    *f = (tm_fault){
        .entry = entry, .status = status, .code = 700 + entry, .nth = nth, .count = count};
    if (entry >= TM_FAULT_COPY_CALLBACK)
        return;
    tn_sim_fault fault = TN_SIM_FAULT_INIT;
    fault.entry = entry;
    fault.nth = nth;
    fault.count = count;
    fault.status = status;
    fault.native_code = f->code;
    if (tn_sim_fault_arm(r->sim, &fault) != TN_OK)
        differ(r, "a fault cannot be armed");
}

/* The library hits it as often as it likes, and tells. */
static void add_observed(run *r, uint32_t entry, tn_status status) {
    add_fault(r, entry, 1, 0, status);
    r->world.faults[0].observe = true;
}

static void inside(void *context, const void *data) {
    run *r = context;
    (void)data;
    tt_on_copy(NULL, NULL); /* once */
    tt_on_measure(NULL, NULL);
    tt_on_destroy(NULL, NULL);
    nested_calls(r, r->active, false);
}

static void arm_driver(run *r, uint32_t fault, uint32_t detail) {
    switch (fault) {
    case FAULT_DEVICE_ALLOC:
        add_fault(r, TN_SIM_DEVICE_ALLOC, 1, 1, TN_ERR_DEVICE_MEMORY);
        break;
    case FAULT_DEVICE_ALLOC_2:
        add_fault(r, TN_SIM_DEVICE_ALLOC, 2, 1, TN_ERR_DRIVER);
        break;
    case FAULT_COPY:
        add_fault(r, TN_SIM_COPY, 1, 1, TN_ERR_DRIVER);
        break;
    case FAULT_COPY_LATER:
        add_fault(r, TN_SIM_COPY, 2 + detail % 3, 1, TN_ERR_DEVICE_LOST);
        break;
    case FAULT_COPY_CLEANUP:
    case FAULT_COPY_CLEANUP_DEVICE:
        add_fault(r, TN_SIM_COPY, 1, 1, TN_ERR_DRIVER);
        add_fault(r, TN_SIM_STREAM_SYNCHRONIZE, 1, 0, TN_ERR_DEVICE_LOST);
        if (fault == FAULT_COPY_CLEANUP_DEVICE)
            add_fault(r, TN_SIM_DEVICE_SYNCHRONIZE, 1, 0, TN_ERR_DEVICE_LOST);
        break;
    case FAULT_RECORD:
    case FAULT_RECORD_2:
        add_fault(r, TN_SIM_EVENT_RECORD, fault == FAULT_RECORD ? 1 : 2, 1, TN_ERR_DRIVER);
        break;
    case FAULT_RECORD_SYNCHRONIZE:
        add_fault(r, TN_SIM_EVENT_RECORD, 1, 1, TN_ERR_DRIVER);
        add_fault(r, TN_SIM_STREAM_SYNCHRONIZE, 1, 0, TN_ERR_DRIVER);
        break;
    case FAULT_QUERY:
        add_fault(r, TN_SIM_EVENT_QUERY, 1, 0, TN_ERR_DRIVER);
        break;
    case FAULT_EVENT_SYNCHRONIZE:
        add_observed(r, TN_SIM_EVENT_SYNCHRONIZE, TN_ERR_DRIVER);
        break;
    case FAULT_EVENT_CREATE:
        if (r->now->op == OP_RELEASE)
            add_observed(r, TN_SIM_EVENT_CREATE, TN_ERR_DRIVER);
        break;
    case FAULT_DEVICE_SYNCHRONIZE:
        add_fault(r, TN_SIM_DEVICE_SYNCHRONIZE, 1, 0, TN_ERR_DRIVER);
        break;
    case FAULT_PINNED_ALLOC:
        add_observed(r, TN_SIM_PINNED_ALLOC, TN_ERR_UNSUPPORTED);
        break;
    case FAULT_READINGS:
        add_fault(r, TN_SIM_DEVICE_MEMORY, 1, 0, TN_ERR_DRIVER);
        r->expect_no_readings = true;
        break;
    default:
        break;
    }
}

static void arm_callbacks(run *r, uint32_t fault, uint32_t detail) {
    static const tn_status statuses[] = {TN_ERR_HOST_MEMORY, TN_ERR_UNSUPPORTED, TN_ERR_PAYLOAD,
                                         TN_ERR_SYSTEM};
    tn_status status = statuses[detail % 4];
    uint32_t op = r->now->op;
    bool action = op >= OP_ENSURE && op <= OP_DISCARD,
         adopt = op == OP_ADOPT || op == OP_ADOPT_RESERVED;
    if (fault == FAULT_COPY_CALLBACK) {
        add_fault(r, TM_FAULT_COPY_CALLBACK, 1, 1, status);
        tt_fail_copy(1, status);
    } else if (fault == FAULT_GROW_COPY) {
        add_fault(r, TM_FAULT_GROW_COPY, 1, 1, TN_OK);
        tt_grow_copy(1);
    } else if (fault == FAULT_MEASURE && adopt) {
        add_fault(r, TM_FAULT_MEASURE, 1, 1, status);
        tt_fail_measure(1, status);
    } else if (fault == FAULT_NEST_COPY && action) {
        tt_on_copy(inside, r);
    } else if (fault == FAULT_NEST_MEASURE && (action || adopt)) {
        tt_on_measure(inside, r);
    } else if (fault == FAULT_NEST_DESTROY && action) {
        tt_on_destroy(inside, r);
    }
    for (size_t i = 0; i < r->world.fault_count; i++)
        if (r->world.faults[i].entry >= TM_FAULT_COPY_CALLBACK)
            r->world.faults[i].code = 0; /* a callback has no native code */
}

void arm_faults(run *r, const call *c) {
    r->world.fault_count = 0;
    r->expect_no_readings = r->observed = false;
    r->fault = c->fault % FAULT_COUNT;
    if (!r->fault)
        return;
    uint32_t detail = c->fault / FAULT_COUNT + c->arg[5];
    arm_driver(r, r->fault, detail);
    arm_callbacks(r, r->fault, detail);
    say(r, "     fault: %s\n", fault_names[r->fault]);
}

void observe_faults(run *r) {
    if (!r->fault || r->observed)
        return;
    r->observed = true;
    uint64_t hits = tn_sim_fault_clear(r->sim);
    for (size_t i = 0; i < r->world.fault_count; i++)
        r->world.faults[i].observed = hits;
    tt_reset();
}

/* The faults that the model predicts were met by both sides: equally often, if they hit one call.
 */
void disarm_faults(run *r) {
    if (!r->fault)
        return;
    observe_faults(r); /* if the call never got so far */
    uint64_t library = 0, model = 0;
    bool exact = r->world.fault_count == 1;
    for (size_t i = 0; i < r->world.fault_count; i++) {
        const tm_fault *f = &r->world.faults[i];
        if (f->observe || f->entry >= TM_FAULT_COPY_CALLBACK || f->entry == TN_SIM_DEVICE_MEMORY)
            continue;
        library = f->observed;
        model += f->hits;
        exact &= f->count == 1;
    }
    r->world.fault_count = 0;
    if (exact ? library != model : !library != !model)
        differ(r, "the fault was hit %llu times, by the model %llu times",
               (unsigned long long)library, (unsigned long long)model);
}

/* ---- Machine and managers
 * ------------------------------------------------------------------------- */

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
        r->batches[i] = tt_backing_make(r->driver, locations[i], 64);
    for (uint32_t i = 0; i < RUN_MANAGERS; i++)
        if (!create_manager(r, i))
            return false;
    return true;
}

/* ---- The loop
 * --------------------------------------------------------------------------------------- */

static bool compare_snapshot(run *r, side *s) {
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
static bool follow_pinned_frees(run *r)
{
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
    return run_observation(r, s, c);
}

static bool step(run *r, const call *c) {
    side *s = &r->sides[c->which % 8 == 7];
    r->now = c;
    r->active = s;
    r->reported = false;
    r->nested = 0;
    for (uint32_t i = 0; i < 2; i++) {
        r->device_before[i] = (tn_sim_memory){.size = sizeof r->device_before[i]};
        if (tn_sim_read_memory(r->sim, tn_location_cuda(i), &r->device_before[i]) != TN_OK)
            return differ(r, "no figures of a device");
    }
    say(r, "%3u. m%d %s ", r->step + 1, (int)(s - r->sides), op_name(c->op));
    r->tally->calls++;
    if (!dispatch(r, s, c))
        return false;
    disarm_faults(r);
    if (failed(r) || !follow_pinned_frees(r) || !compare_world(r) || !compare_lifetimes(r, s) || !compare_trace(r, s))
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

static bool finish_manager(run *r, side *s) {
    bool release_first = r->program->setup[0] & 0x100;
    if (!s->model.closed && !compare_snapshot(r, s))
        return false;
    if (tn_manager_destroy(s->library) != TN_OK)
        return differ(r, "destroy: %s", tn_last_error()->message);
    s->library = NULL;
    tm_destroy(&s->model);
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
    return true;
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
    return finish(r);
}
