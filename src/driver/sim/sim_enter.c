/* SPDX-License-Identifier: MIT */
/* What every call of the table begins and ends with: counters, the lock of the context, states,
 * scripted faults, native codes. */
#include "driver/sim/sim_priv.h"

#include <stdio.h>
#include <stdlib.h>

/* This thread: the machine whose host function it runs, and its last native code. */
static _Thread_local struct {
    uint32_t inside; /* serial; 0: none */
    uint32_t failed; /* serial of the machine that `code` is of */
    int64_t code;
} own;

bool tn__sim_inside(const tn_sim *sim) { return own.inside == (uint32_t)sim->serial; }

void tn__sim_call_out(tn_sim *sim, void (*function)(void *argument), void *argument) {
    uint32_t outer = own.inside;

    tn__unlock(&sim->lock);
    own.inside = (uint32_t)sim->serial;
    function(argument);
    own.inside = outer;
    tn__lock(&sim->lock);
}

tn_status tn__sim_code(tn_sim *sim, tn_status status, int64_t code) {
    own.failed = (uint32_t)sim->serial;
    own.code = code;
    return status;
}

int64_t tn__sim_last_code(tn_sim *sim) {
    return own.failed == (uint32_t)sim->serial ? own.code : 0;
}

/* ---- Faults ----------------------------------------------------------------------------- */

static bool concerns(const tn_sim_fault *fault, uint32_t entry, uint32_t a, uint32_t b,
                     uint32_t flags) {
    if (fault->entry != TN_SIM_ANY && fault->entry != entry)
        return false;
    if ((fault->flags & TN_SIM_FAULT_DIRECT & ~flags) != 0)
        return false;
    return fault->device == TN_SIM_ANY_DEVICE || fault->device == a || fault->device == b;
}

/* Every armed fault counts the call; the first one whose turn it is strikes. */
bool tn__sim_strike(tn_sim *sim, uint32_t entry, uint32_t a, uint32_t b, uint32_t flags,
                    tn_sim_fault *out) {
    tn__sim_armed *armed;
    bool struck = false;

    for (armed = sim->armed; armed != NULL; armed = armed->next) {
        const tn_sim_fault *fault = &armed->fault;
        uint64_t nth = fault->nth ? fault->nth : 1;

        if (!concerns(fault, entry, a, b, flags))
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

    if (!tn__sim_strike(sim, entry, a, b, 0, &fault))
        return TN_OK;
    if (fault.stall_ns > 0) {
        if (fault.flags & TN_SIM_FAULT_LOCKS)
            tn__sim_context_pass(sim, a, fault.stall_ns);
        else
            tn__sim_pass(sim, fault.stall_ns);
        if (tn__sim_is_gone(sim))
            return tn__sim_gone(sim);
    }
    if (fault.status == TN_OK)
        return TN_OK;
    return tn__sim_code(sim, (tn_status)fault.status, fault.native_code);
}

/* ---- Calls ------------------------------------------------------------------------------ */

static tn_status called_inside(tn_sim *sim) {
    if (sim->host_calls == TN_SIM_HOST_CALLS_ABORT) {
        fprintf(stderr, "tenure: a host function of a simulated stream called the driver\n");
        abort();
    }
    return tn__sim_code(sim, TN_ERR_DRIVER, TN__SIM_CODE_NOT_PERMITTED);
}

tn_status tn__sim_enter(tn_sim *sim, uint32_t entry, uint32_t a, uint32_t b) {
    tn__lock(&sim->lock);
    return tn__sim_enter_locked(sim, entry, a, b, NULL);
}

tn_status tn__sim_enter_locked(tn_sim *sim, uint32_t entry, uint32_t a, uint32_t b,
                               tn__sim_stream *stream) {
    tn__sim_count(sim, entry, stream);
    if (tn__sim_inside(sim))
        return called_inside(sim);
    tn__sim_run_due(sim);
    tn__sim_context_wait(sim, entry, a);
    if (tn__sim_is_gone(sim))
        return tn__sim_gone(sim);
    return faults(sim, entry, a, b);
}

tn_status tn__sim_leave(tn_sim *sim, tn_status status) {
    tn__unlock(&sim->lock);
    return status;
}
