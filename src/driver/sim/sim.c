/* SPDX-License-Identifier: MIT */
/* Life of a simulated machine, its clock as seen from outside, its modes. */
#include "driver/sim/sim_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "driver/driver_internal.h"

/* Serials of machines; unique is all they need to be. */
static _Atomic uint64_t last_serial;
/* Tests: allocations until one fails; 0: none. Set and counted down by one thread. */
static _Atomic uint64_t alloc_fault;

void tn__sim_fault_alloc(uint64_t nth) { tn__store_rlx(&alloc_fault, nth); }

void *tn__sim_alloc(size_t count, size_t bytes) {
    if (tn__unlikely(tn__load_rlx(&alloc_fault) > 0) && tn__sub_rlx(&alloc_fault, 1) == 1)
        return NULL;
    return calloc(count, bytes);
}

void tn__sim_free(void *block) { free(block); }

uint64_t tn__sim_now(tn_sim *sim) {
    return sim->machine.threads ? tn__mono_ns() - sim->origin_ns : sim->now_ns;
}

void tn__sim_violation(tn_sim *sim, const char *format, ...) {
    char *text = sim->violation_text;
    size_t size = sizeof(sim->violation_text);
    int length = 0;
    va_list list;

    if (sim->violations++ > 0)
        return;
    if (sim->machine.seeded)
        length = snprintf(text, size, "seed=%llu: ", (unsigned long long)sim->machine.seed);
    va_start(list, format);
    vsnprintf(text + length, size - (size_t)length, format, list);
    va_end(list);
}

tn_status tn__sim_null(void) { return tn__fail(TN_ERR_KIND, "the machine is NULL"); }

/* Life. */

static void free_parts(tn_sim *sim) {
    tn__driver_discard(sim->driver); /* its memory has gone with the arenas */
    tn__cond_fini(&sim->changed);
    tn__mutex_fini(&sim->lock);
    tn__sim_free(sim->arenas);
    tn__sim_free(sim->pairs);
    tn__sim_free(sim);
}

static tn_status no_memory(void) {
    return tn__fail(TN_ERR_HOST_MEMORY, "no memory for a simulated machine");
}

tn_status tn_sim_create(const char *machine, tn_sim **out) {
    tn__sim_machine parsed;
    size_t places;
    tn_status status;
    tn_sim *sim;

    if (out == NULL)
        return tn__fail(TN_ERR_KIND, "`out` is NULL");
    status = tn__sim_parse(machine, &parsed);
    if (status != TN_OK)
        return status;
    sim = tn__sim_alloc(1, sizeof(*sim));
    if (sim == NULL)
        return no_memory();
    sim->machine = parsed;
    sim->serial = tn__add_rlx(&last_serial, 1) + 1;
    sim->origin_ns = tn__mono_ns();
    tn__mutex_init(&sim->lock, TN__RANK_SIM);
    tn__cond_init(&sim->changed);
    places = (size_t)parsed.devices + 2;
    sim->arenas = tn__sim_alloc(places, sizeof(*sim->arenas));
    sim->pairs = tn__sim_alloc(places * places, sizeof(*sim->pairs));
    if (sim->arenas == NULL || sim->pairs == NULL) {
        free_parts(sim);
        return no_memory();
    }
    tn__sim_memory_init(sim);
    sim->random = parsed.seed;
    sim->disk.size = sizeof(sim->disk);
    status = tn_driver_create(&tn__sim_ops, sim, &sim->driver);
    if (status != TN_OK) {
        free_parts(sim);
        return status;
    }
    *out = sim;
    return TN_OK;
}

static void disarm(tn_sim *sim) {
    while (sim->armed != NULL) {
        tn__sim_armed *armed = sim->armed;

        sim->armed = armed->next;
        tn__sim_free(armed);
    }
}

void tn_sim_destroy(tn_sim *sim) {
    if (sim == NULL)
        return;
    tn__lock(&sim->lock);
    tn__sim_streams_fini(sim);
    tn__sim_events_fini(sim);
    disarm(sim);
    tn__sim_disk_fini(sim);
    tn__sim_memory_fini(sim);
    tn__sim_threads_fini(sim);
    tn__unlock(&sim->lock);
    free_parts(sim);
}

tn_driver *tn_sim_driver(tn_sim *sim) { return sim ? sim->driver : NULL; }

uint64_t tn_sim_seed(tn_sim *sim) { return sim->machine.seed; }

/* Time. */

uint64_t tn_sim_now_ns(tn_sim *sim) {
    uint64_t now;

    tn__lock(&sim->lock);
    now = tn__sim_now(sim);
    tn__unlock(&sim->lock);
    return now;
}

static tn_status may_move_time(tn_sim *sim) {
    if (sim == NULL)
        return tn__sim_null();
    if (sim->machine.threads)
        return tn__fail(TN_ERR_MISUSE, "the clock of this machine is real");
    if (tn__sim_inside(sim))
        return tn__fail(TN_ERR_REENTRANCY, "called from a host function or a copy hook");
    return TN_OK;
}

/* Everything due at `limit` or before. Another thread that moves time is waited for. */
static void run_until(tn_sim *sim, uint64_t limit) {
    for (;;) {
        if (sim->stepping)
            tn__cond_wait(&sim->changed, &sim->lock);
        else if (!tn__sim_step(sim, limit, true))
            return;
    }
}

tn_status tn_sim_advance(tn_sim *sim, uint64_t ns) {
    tn_status status = may_move_time(sim);
    uint64_t target;

    if (status != TN_OK)
        return status;
    tn__lock(&sim->lock);
    target = tn__add_capped(sim->now_ns, ns);
    if (target == TN__SIM_NEVER)
        target--;
    run_until(sim, target);
    if (sim->now_ns < target) {
        sim->now_ns = target;
        tn__cond_broadcast(&sim->changed);
    }
    tn__unlock(&sim->lock);
    return TN_OK;
}

tn_status tn_sim_run(tn_sim *sim) {
    tn_status status = may_move_time(sim);

    if (status != TN_OK)
        return status;
    tn__lock(&sim->lock);
    run_until(sim, TN__SIM_NEVER - 1);
    tn__unlock(&sim->lock);
    return TN_OK;
}

/* Modes. */

/* Set a mode, wake everybody who waits under the old one. */
static tn_status set_mode(tn_sim *sim, uint32_t *mode, uint32_t value, uint32_t last) {
    if (value > last)
        return tn__fail(TN_ERR_KIND, "there is no mode %u", (unsigned)value);
    tn__lock(&sim->lock);
    *mode = value;
    if (sim->state == TN_SIM_SHUT_DOWN || sim->state == TN_SIM_CONTEXT_DESTROYED)
        tn__sim_void_queued(sim);
    tn__cond_broadcast(&sim->changed);
    tn__unlock(&sim->lock);
    return TN_OK;
}

tn_status tn_sim_set_waits(tn_sim *sim, uint32_t waits) {
    return sim == NULL ? tn__sim_null() : set_mode(sim, &sim->waits, waits, TN_SIM_WAITS_BLOCK);
}

tn_status tn_sim_set_state(tn_sim *sim, uint32_t state) {
    return sim == NULL ? tn__sim_null() : set_mode(sim, &sim->state, state, TN_SIM_FAKE_PINNED);
}

tn_status tn_sim_set_host_calls(tn_sim *sim, uint32_t mode) {
    return sim == NULL ? tn__sim_null()
                       : set_mode(sim, &sim->host_calls, mode, TN_SIM_HOST_CALLS_REFUSE);
}

void tn_sim_on_copy(tn_sim *sim, void (*function)(void *context, void *destination, uint64_t bytes),
                    void *context) {
    tn__lock(&sim->lock);
    sim->on_copy = function;
    sim->on_copy_context = context;
    tn__unlock(&sim->lock);
}

/* Faults. */

tn_status tn_sim_fault_arm(tn_sim *sim, const tn_sim_fault *fault) {
    const uint32_t of_reads = TN_SIM_FAULT_SHORT | TN_SIM_FAULT_WRONG | TN_SIM_FAULT_DIRECT;
    const size_t least = offsetof(tn_sim_fault, nth);
    tn__sim_armed **link;
    tn__sim_armed *armed;
    tn_sim_fault copy;
    tn_status status;

    if (sim == NULL)
        return tn__sim_null();
    status = tn__struct_in(&copy, sizeof(copy), least, fault, "tn_sim_fault");
    if (status != TN_OK)
        return status;
    if (copy.entry >= TN_SIM_ENTRY_COUNT || (copy.flags & ~(of_reads | TN_SIM_FAULT_LOCKS)) != 0)
        return tn__fail(TN_ERR_KIND, "a fault names no entry, or no flag");
    if (copy.entry != TN_SIM_FILE_READ && (copy.flags & of_reads) != 0)
        return tn__fail(TN_ERR_VALUE, "a flag of file reads with another entry");
    armed = tn__sim_alloc(1, sizeof(*armed));
    if (armed == NULL)
        return tn__fail(TN_ERR_HOST_MEMORY, "no memory for a fault");
    armed->fault = copy;
    tn__lock(&sim->lock);
    for (link = &sim->armed; *link != NULL; link = &(*link)->next)
        ;
    *link = armed;
    tn__unlock(&sim->lock);
    return TN_OK;
}

uint64_t tn_sim_stalled(tn_sim *sim) {
    uint64_t stalled;

    tn__lock(&sim->lock);
    stalled = sim->stalled;
    tn__unlock(&sim->lock);
    return stalled;
}

uint64_t tn_sim_fault_clear(tn_sim *sim) {
    uint64_t hits;

    tn__lock(&sim->lock);
    disarm(sim);
    hits = sim->fault_hits;
    sim->fault_hits = 0;
    sim->fault_clears++;
    tn__cond_broadcast(&sim->changed);
    tn__unlock(&sim->lock);
    return hits;
}
