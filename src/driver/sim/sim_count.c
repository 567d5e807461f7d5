/* SPDX-License-Identifier: MIT */
/* Counters of calls: by entry, by thread, by stream. */
#include "driver/sim/sim_priv.h"

#include <stdlib.h>

#include "base/atomic.h"

/* Numbers of threads; unique is all they need to be. */
static _Atomic uint64_t last_thread;

/* This thread's counters at the machine that it called last. */
static _Thread_local struct {
    uint32_t number;  /* unique in the process; 0: none yet */
    uint32_t counted; /* serial of the machine that `counts` is of */
    tn__sim_thread *counts;
} own;

/* The counters of this thread; NULL: there are none yet. */
static tn__sim_thread *find_counts(const tn_sim *sim) {
    tn__sim_thread *t = sim->threads;

    while (t != NULL && t->number != own.number)
        t = t->next;
    return t;
}

/* Without memory for them the calls of this thread are not told apart. */
static tn__sim_thread *own_counts(tn_sim *sim) {
    if (own.counted == (uint32_t)sim->serial)
        return own.counts;
    if (own.number == 0)
        own.number = (uint32_t)tn__add_rlx(&last_thread, 1) + 1;
    own.counts = find_counts(sim);
    if (own.counts == NULL) {
        own.counts = calloc(1, sizeof(*own.counts));
        if (own.counts == NULL)
            return NULL;
        own.counts->number = own.number;
        own.counts->next = sim->threads;
        sim->threads = own.counts;
    }
    own.counted = (uint32_t)sim->serial;
    return own.counts;
}

static void count_in(uint64_t *calls, uint32_t entry) {
    calls[TN_SIM_ANY]++;
    calls[entry]++;
}

void tn__sim_count(tn_sim *sim, uint32_t entry, tn__sim_stream *stream) {
    tn__sim_thread *thread = own_counts(sim);

    count_in(sim->calls, entry);
    if (thread != NULL)
        count_in(thread->calls, entry);
    if (stream != NULL)
        count_in(stream->calls, entry);
}

uint64_t tn_sim_thread_calls(tn_sim *sim, uint32_t entry) {
    const tn__sim_thread *thread;
    uint64_t calls = 0;

    tn__lock(&sim->lock);
    thread = own.counted == (uint32_t)sim->serial ? own.counts : find_counts(sim);
    if (thread != NULL && entry < TN_SIM_ENTRY_COUNT)
        calls = thread->calls[entry];
    tn__unlock(&sim->lock);
    return calls;
}

uint64_t tn_sim_calls(tn_sim *sim, uint32_t entry) {
    uint64_t calls = 0;

    tn__lock(&sim->lock);
    if (entry < TN_SIM_ENTRY_COUNT)
        calls = sim->calls[entry];
    tn__unlock(&sim->lock);
    return calls;
}

uint64_t tn_sim_stream_calls(tn_sim *sim, tn_stream handle, uint32_t entry) {
    const tn__sim_stream *stream;
    uint64_t calls = 0;

    tn__lock(&sim->lock);
    stream = tn__sim_stream_peek(sim, handle);
    if (stream != NULL && entry < TN_SIM_ENTRY_COUNT)
        calls = stream->calls[entry];
    tn__unlock(&sim->lock);
    return calls;
}

uint64_t tn_sim_stale_calls(tn_sim *sim) {
    uint64_t calls;

    tn__lock(&sim->lock);
    calls = sim->stale_calls;
    tn__unlock(&sim->lock);
    return calls;
}

void tn__sim_threads_fini(tn_sim *sim) {
    while (sim->threads != NULL) {
        tn__sim_thread *thread = sim->threads;

        sim->threads = thread->next;
        free(thread);
    }
}
