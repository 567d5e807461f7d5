/* SPDX-License-Identifier: MIT */
/* Property test of the manager: one fault for one call, on both sides. */
#include "manager_property.h"

#include <string.h>

#include "base/base_internal.h"

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
                                          "event_record 1, stream_synchronize 1",
                                          "event_query all",
                                          "event_synchronize all",
                                          "event_create all",
                                          "stream_create all",
                                          "device_synchronize all",
                                          "pinned_alloc all",
                                          "copy callback",
                                          "copy callback makes too much",
                                          "measure callback",
                                          "device_memory all",
                                          "calls inside copy",
                                          "calls inside measure",
                                          "calls inside destroy",
                                          "host memory"};

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
    r->tally->faults[r->fault][1]++;
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
    case FAULT_RECORD_SYNCHRONIZE_1:
        add_fault(r, TN_SIM_EVENT_RECORD, 1, 1, TN_ERR_DRIVER);
        add_fault(r, TN_SIM_STREAM_SYNCHRONIZE, 1, fault == FAULT_RECORD_SYNCHRONIZE_1,
                  TN_ERR_DEVICE_LOST);
        break;
    case FAULT_QUERY:
        add_fault(r, TN_SIM_EVENT_QUERY, 1, 0, TN_ERR_DRIVER);
        break;
    case FAULT_EVENT_SYNCHRONIZE:
        add_observed(r, TN_SIM_EVENT_SYNCHRONIZE, TN_ERR_DRIVER);
        break;
    case FAULT_EVENT_CREATE:
        if (r->now->op == OP_RELEASE || runs_actions(r->now->op))
            add_observed(r, TN_SIM_EVENT_CREATE, TN_ERR_DRIVER);
        break;
    case FAULT_STREAM_CREATE:
        if (runs_actions(r->now->op))
            add_observed(r, TN_SIM_STREAM_CREATE, TN_ERR_DRIVER);
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
    bool action = runs_actions(op), adopt = op == OP_ADOPT || op == OP_ADOPT_RESERVED;
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

/* Which faults a call of one kind can meet; most are drawn from these. */
uint32_t choose_fault(const call *c) {
    static const uint8_t transfers[] = {
        FAULT_DEVICE_ALLOC, FAULT_DEVICE_ALLOC_2, FAULT_COPY,
        FAULT_COPY_LATER,   FAULT_COPY_CLEANUP,   FAULT_COPY_CLEANUP_DEVICE,
        FAULT_RECORD,       FAULT_QUERY,          FAULT_EVENT_SYNCHRONIZE,
        FAULT_PINNED_ALLOC, FAULT_COPY_CALLBACK,  FAULT_GROW_COPY,
        FAULT_READINGS,     FAULT_NEST_COPY,      FAULT_NEST_MEASURE,
        FAULT_NEST_DESTROY, FAULT_HOST_ALLOC,     FAULT_HOST_ALLOC,
        FAULT_EVENT_CREATE, FAULT_STREAM_CREATE};
    static const uint8_t removals[] = {FAULT_QUERY, FAULT_READINGS, FAULT_NEST_DESTROY,
                                       FAULT_HOST_ALLOC};
    static const uint8_t adoptions[] = {FAULT_MEASURE, FAULT_NEST_MEASURE, FAULT_HOST_ALLOC,
                                        FAULT_QUERY};
    static const uint8_t releases[] = {FAULT_RECORD,
                                       FAULT_RECORD_2,
                                       FAULT_RECORD_SYNCHRONIZE,
                                       FAULT_RECORD_SYNCHRONIZE_1,
                                       FAULT_EVENT_SYNCHRONIZE,
                                       FAULT_EVENT_CREATE,
                                       FAULT_HOST_ALLOC};
    static const uint8_t closes[] = {FAULT_QUERY, FAULT_EVENT_SYNCHRONIZE, FAULT_DEVICE_SYNCHRONIZE,
                                     FAULT_HOST_ALLOC};
    static const uint8_t others[] = {FAULT_QUERY, FAULT_HOST_ALLOC};
    uint32_t x = c->fault;
    if (x % 8 == 7)
        return x % FAULT_COUNT;
    switch (c->op) {
    case OP_ENSURE:
    case OP_COPY:
    case OP_MOVE:
    case OP_EXECUTE:
    case OP_ENTER:
    case OP_EXIT:
        return transfers[x % sizeof transfers];
    case OP_DROP:
    case OP_DISCARD:
        return removals[x % sizeof removals];
    case OP_ADOPT:
    case OP_ADOPT_RESERVED:
        return adoptions[x % sizeof adoptions];
    case OP_RELEASE:
        return releases[x % sizeof releases];
    case OP_CLOSE:
        return closes[x % sizeof closes];
    default:
        return others[x % sizeof others];
    }
}

const char *fault_name(uint32_t fault) { return fault_names[fault % FAULT_COUNT]; }

/* Nothing the second time: then the call is repeated without its fault. */
void arm_faults(run *r, const call *c) {
    if (r->armed)
        return;
    r->armed = true;
    r->out_of_memory = false;
    r->world.fault_count = 0;
    r->fault = c->fault ? choose_fault(c) : FAULT_NONE;
    if (!r->fault)
        return;
    uint32_t detail = c->fault / FAULT_COUNT + c->arg[5];
    arm_driver(r, r->fault, detail);
    arm_callbacks(r, r->fault, detail);
    if (r->fault == FAULT_HOST_ALLOC)
        tn__fault_alloc(1 + detail % (r->now->op >= OP_PLAN ? 50 : 14));
    r->tally->faults[r->fault][0]++;
}

/* A call that ran out of memory may have waited for a stream before. */
static void follow_vain_wait(run *r) {
    uint64_t now = tn_sim_now_ns(r->sim);
    for (size_t i = 0; i < r->world.stream_count; i++)
        if (r->world.streams[i].busy_until == now && now > r->world.now)
            r->world.now = now;
}

/* F1: the state is as before, but for peaks. */
static bool nothing_happened(run *r, side *s) {
    for (uint32_t i = 0; i < RUN_MANAGERS; i++)
        follow_vain_loads(r, &r->sides[i]);
    follow_vain_wait(r);
    return compare_world(r) && compare_snapshot(r, s) /* both reap now */ &&
           compare_lifetimes(r, s) && compare_trace(r, s);
}

/* A release that got no event synchronises its streams (M144), whatever the reason. */
static void tell_fallback(run *r, const side *s) {
    if (s->diagnostics[TN_DIAGNOSTIC_RELEASE_FALLBACK] ==
        s->model.diagnostics[TN_DIAGNOSTIC_RELEASE_FALLBACK])
        return;
    r->world.fault_count = 1;
    r->world.faults[0] = (tm_fault){.entry = TN_SIM_EVENT_CREATE, .observe = true, .observed = 1};
}

bool again(run *r, side *s, tn_status status) {
    if (!r->fault)
        return false;
    uint64_t hits = tn_sim_fault_clear(r->sim);
    for (size_t i = 0; i < r->world.fault_count; i++)
        r->world.faults[i].observed = hits;
    tt_reset();
    bool fired = r->fault == FAULT_HOST_ALLOC && tn__fault_alloc_fired();
    tn__fault_alloc(0);
    r->tally->faults[r->fault][1] += hits || fired;
    if (!fired)
        return false;
    r->out_of_memory = true;
    r->fault = FAULT_NONE;
    if (status != TN_ERR_HOST_MEMORY) { /* it can do without */
        tell_fallback(r, s);
        return false;
    }
    say(r, "     no memory; again\n");
    r->tally->hits[r->now->op][status]++;
    return nothing_happened(r, s) && read_devices(r);
}

/* While the reservations of a failed entry still stand. */
static void follow_vain_step(void *context) {
    run *r = context;
    for (uint32_t i = 0; i < RUN_MANAGERS; i++)
        follow_vain_loads(r, &r->sides[i]);
    follow_vain_wait(r);
}

void tell_stop(run *r, side *s, tn_status status) {
    const tn_error *e = tn_last_error();
    s->model.stop = (tm_stop){.on = false};
    if (status != TN_ERR_PLAN_EXEC)
        return;
    bool memory = r->out_of_memory && e->cause_status == TN_ERR_HOST_MEMORY;
    bool observed = r->world.fault_count && r->world.faults[0].observe;
    s->model.stop = (tm_stop){.on = memory || observed,
                              .phase = e->phase,
                              .index = e->failed_index,
                              .status = memory ? TN_ERR_HOST_MEMORY : TN_OK,
                              .vain = follow_vain_step,
                              .context = r};
}

/* The faults that the model predicts were met by both sides: equally often, if they hit one call. */
void settle_faults(run *r) {
    uint64_t library = 0, model = 0;
    bool exact = r->world.fault_count == 1;
    for (size_t i = 0; i < r->world.fault_count; i++) {
        const tm_fault *f = &r->world.faults[i];
        if (f->entry >= TM_FAULT_COPY_CALLBACK)
            r->tally->faults[r->fault][1] += f->hits;
        bool verdicts = r->now->op == OP_EXPLAIN; /* they look at more leases than the problem */
        if (f->observe || verdicts || f->entry >= TM_FAULT_COPY_CALLBACK ||
            f->entry == TN_SIM_DEVICE_MEMORY)
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
