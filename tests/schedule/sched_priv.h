/* SPDX-License-Identifier: MIT */
/*
 * Between the files of the scheduler. All of it is touched by the current thread only; the hand-over
 * is a futex, which orders everything.
 */
#ifndef SCHED_PRIV_H
#define SCHED_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/atomic.h"
#include "explore.h"

#define STORES_MAX 48  /* like the store buffer of a large core */
#define SCHED_LINES 12 /* threads of an exploration, in clocks */

typedef struct store {
    volatile void *address;
    uint64_t value;
    uint32_t size;
} store;

enum fiber_state {
    FIBER_NONE,
    FIBER_READY,
    FIBER_PAUSED,  /* in a wait loop: after steps of others */
    FIBER_BLOCKED, /* until somebody wakes what it waits for */
    FIBER_TIMED,   /* the same, or when nobody else can go on */
    FIBER_OVER
};

typedef struct fiber {
    enum fiber_state state;
    const char *name;
    const char *doing;       /* what it waits for, for the report of a deadlock */
    const volatile void *on; /* ... */
    bool timed_out, ending;
    uint64_t paused_until; /* step */
    uint64_t priority;
    pthread_t thread;
    void *(*run)(void *argument);
    void *argument;
    _Atomic uint32_t go;
    uint32_t nest;     /* depth of RCU sections */
    uint64_t sections; /* begun so far */
    uint32_t store_first, store_count;
    store stores[STORES_MAX];
    /* weak memory: what it knows; what its next acquire fence adds; what its relaxed stores carry */
    uint32_t line, clock[SCHED_LINES], pending[SCHED_LINES], released[SCHED_LINES];
    uint32_t fixed; /* of its own stores, those that a compiler cannot delay */
    uint64_t floor; /* stores before this step have come */
} fiber;

enum strategy {
    STRATEGY_ONE,     /* one preemption: place and target by number, all of them in turn */
    STRATEGY_BOUNDED, /* 0 to 3 preemptions at random places */
    STRATEGY_PRIORITY,
    STRATEGY_RANDOM,
    STRATEGY_COUNT
};

#define CHANGES_MAX 4

typedef struct schedule {
    enum strategy strategy;
    uint64_t random;       /* state of the generator of decisions */
    uint64_t program;      /* of sched_choose() */
    uint32_t change_count; /* ONE, BOUNDED, PRIORITY: at these steps */
    uint64_t changes[CHANGES_MAX];
    uint32_t first, target; /* ONE */
    uint32_t switch_in;     /* RANDOM: once in so many points */
    uint32_t flush_in;      /* a waiting store becomes visible once in so many points; 0: late */
    bool buffered;          /* stores wait at all */
    bool weak;              /* they do not, but loads may be old */
    bool membarrier;        /* can be had */
} schedule;

/* What a child tells its parent. */
typedef struct shared {
    sched_outcome outcome;
    bool complete;
    uint64_t points; /* of the explored part */
    uint64_t threads;
    uint64_t branches[TN__BRANCH_COUNT];
} shared;

typedef struct run {
    schedule plan;
    shared *shared;
    fiber fibers[SCHED_THREADS];
    size_t fiber_count;
    fiber *current;
    fiber *leaving; /* over, its thread to be joined before anybody goes on */
    bool exploring;
    uint64_t steps, explored;
    uint64_t hash;
} run;

extern run sched_state;
extern bool sched_tracing;         /* to stderr: hand-overs and branches */
extern __thread fiber *sched_self; /* NULL: not a scheduled thread */

/* core */
void sched_begin(const schedule *plan, shared *out); /* the calling thread is the main fiber */
fiber *sched_spawn(const char *name, void *(*run)(void *), void *argument);
void sched_wait(enum fiber_state state, const char *doing, const volatile void *on);
void sched_wake(const volatile void *on);
void sched_pause(void);
void sched_join(fiber *f);
uint64_t sched_random(uint64_t *state);
static inline uint32_t sched_below(uint64_t *state, uint32_t n) {
    return (uint32_t)(((sched_random(state) >> 32) * n) >> 32);
}
void sched_decided(uint64_t what); /* into the hash */

/* plan */
void sched_plan(schedule *plan, uint64_t seed, uint64_t points, size_t threads);
fiber *sched_next(bool stay); /* who goes on; `stay`: the current one can; NULL: nobody */
bool sched_runnable(const fiber *f);

/* buffer */
void sched_drain(fiber *f);
void sched_drain_all(void);
void sched_flush_some(void);
void sched_lock_point(volatile void *lock);

/* weak */
bool sched_weak_wanted(void);
void sched_weak_begin(void);
bool sched_weak_load(const volatile void *address, void *value, size_t size, int order);
void sched_weak_store(volatile void *address, const void *value, size_t size, int order);
void sched_weak_expect(volatile void *address, size_t size); /* before a read-modify-write */
void sched_weak_changed(volatile void *address, size_t size, int order, bool wrote);
void sched_weak_fence(fiber *f);
void sched_weak_fence_all(void);
void sched_weak_acquire_fence(void);
void sched_weak_release_fence(void);
void sched_weak_compiler(void);   /* a fence for the compiler, or a call that it cannot see into */
void sched_weak_thread(fiber *f); /* made by the current one */
void sched_weak_joined(const fiber *f);
void sched_weak_waited(void);
void sched_weak_locked(const volatile void *lock);
void sched_weak_unlocked(const volatile void *lock);

/* memory */
void sched_check_address(const volatile void *address); /* is not in memory that was given back */
void sched_check_memory(void);                          /* at the end: nobody has written there */

#endif
