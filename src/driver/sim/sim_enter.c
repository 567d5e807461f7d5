/* SPDX-License-Identifier: MIT */
/* What every call of the table begins and ends with: counters, states, scripted faults, native
 * codes. */
#include "driver/sim/sim_priv.h"

#include <stdio.h>
#include <stdlib.h>

/* This thread: the machine whose host function it runs, and its last native code. */
static _Thread_local struct {
    uint64_t inside; /* serial; 0: none */
    uint64_t failed; /* serial of the machine that `code` is of */
    int64_t code;
} own;

bool tn__sim_inside(const tn_sim *sim) { return own.inside == sim->serial; }

void tn__sim_call_out(tn_sim *sim, void (*function)(void *argument), void *argument) {
    uint64_t outer = own.inside;

    tn__unlock(&sim->lock);
    own.inside = sim->serial;
    function(argument);
    own.inside = outer;
    tn__lock(&sim->lock);
}

tn_status tn__sim_code(tn_sim *sim, tn_status status, int64_t code) {
    own.failed = sim->serial;
    own.code = code;
    return status;
}

int64_t tn__sim_last_code(tn_sim *sim) { return own.failed == sim->serial ? own.code : 0; }

static bool concerns(const tn_sim_fault *fault, uint32_t entry, uint32_t a, uint32_t b) {
    if (fault->entry != TN_SIM_ANY && fault->entry != entry)
        return false;
    return fault->device == TN_SIM_ANY_DEVICE || fault->device == a || fault->device == b;
}

/* Every armed fault counts the call; the first one whose turn it is strikes. */
static bool fault_strikes(tn_sim *sim, uint32_t entry, uint32_t a, uint32_t b, tn_sim_fault *out) {
    tn__sim_armed *armed;
    bool struck = false;

    for (armed = sim->armed; armed != NULL; armed = armed->next) {
        const tn_sim_fault *fault = &armed->fault;
        uint64_t nth = fault->nth ? fault->nth : 1;

        if (!concerns(fault, entry, a, b))
            continue;
        armed->seen++;
        if (struck || armed->seen < nth)
            continue;
        if (fault->count != 0 && armed->seen - nth >= fault->count)
            continue;
        struck = true;
        sim->fault_hits++;
        *out = *fault;
    }
    return struck;
}

static tn_status faults(tn_sim *sim, uint32_t entry, uint32_t a, uint32_t b) {
    tn_sim_fault fault = TN_SIM_FAULT_INIT;

    if (!fault_strikes(sim, entry, a, b, &fault))
        return TN_OK;
    if (fault.stall_ns > 0) {
        tn__sim_pass(sim, fault.stall_ns);
        if (sim->state == TN_SIM_SHUT_DOWN || sim->state == TN_SIM_CONTEXT_DESTROYED)
            return tn__sim_gone(sim);
    }
    if (fault.status == TN_OK)
        return TN_OK;
    return tn__sim_code(sim, (tn_status)fault.status, fault.native_code);
}

static tn_status called_inside(tn_sim *sim) {
    if (sim->host_calls == TN_SIM_HOST_CALLS_ABORT) {
        fprintf(stderr, "tenure: a host function of a simulated stream called the driver\n");
        abort();
    }
    return tn__sim_code(sim, TN_ERR_DRIVER, TN__SIM_CODE_NOT_PERMITTED);
}

tn_status tn__sim_enter(tn_sim *sim, uint32_t entry, uint32_t a, uint32_t b) {
    tn__lock(&sim->lock);
    sim->calls[TN_SIM_ANY]++;
    sim->calls[entry]++;
    if (tn__sim_inside(sim))
        return called_inside(sim);
    tn__sim_run_due(sim);
    if (sim->state == TN_SIM_SHUT_DOWN || sim->state == TN_SIM_CONTEXT_DESTROYED)
        return tn__sim_gone(sim);
    return faults(sim, entry, a, b);
}

tn_status tn__sim_leave(tn_sim *sim, tn_status status) {
    tn__unlock(&sim->lock);
    return status;
}
