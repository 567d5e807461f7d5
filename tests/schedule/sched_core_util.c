/* SPDX-License-Identifier: MIT */
/*
 * Threads of a schedule: hand-over, waiting, the end of a thread, and the points.
 */
#include <execinfo.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sched_priv.h"

run sched_state;
bool sched_tracing;
__thread fiber *sched_self;
static pthread_key_t end_key;
extern const char __executable_start;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
                          void *argument);
int __real_pthread_join(pthread_t thread, void **value);
long __real_syscall(long number, ...);

/* ---- Failure ---- */

static const char *state_name(const fiber *f) {
    static const char *const names[] = {"none", "ready", "paused", "waits", "waits", "over"};
    return names[f->state];
}

/* The text so far, then each thread: `[acquirer ready] [remover waits: lock] ...` */
static void tell_threads(char *text, size_t room) {
    for (size_t i = 0; i < sched_state.fiber_count; i++) {
        const fiber *f = &sched_state.fibers[i];
        size_t n = strlen(text);
        snprintf(text + n, room - n, " [%s %s%s%s]", f->name, state_name(f), f->doing ? ": " : "",
                 f->doing ? f->doing : "");
    }
}

static void __attribute__((noreturn)) end_failed(void) {
    sched_state.shared->outcome.failed = true;
    sched_state.shared->outcome.steps = sched_state.steps;
    sched_state.shared->outcome.hash = sched_state.hash;
    _exit(1);
}

void sched_fail(const char *file, int line, const char *format, ...) {
    char *text = sched_state.shared->outcome.text;
    size_t room = sizeof sched_state.shared->outcome.text;
    const char *base = strrchr(file, '/');
    va_list args;
    va_start(args, format);
    vsnprintf(text, room, format, args);
    va_end(args);
    size_t n = strlen(text);
    snprintf(text + n, room - n, " (%s:%d, on %s)", base ? base + 1 : file, line,
             sched_self ? sched_self->name : "no thread");
    end_failed();
}

static void __attribute__((noreturn)) stuck(const char *what) {
    char *text = sched_state.shared->outcome.text;
    snprintf(text, sizeof sched_state.shared->outcome.text, "%s:", what);
    tell_threads(text, sizeof sched_state.shared->outcome.text);
    end_failed();
}

/* ---- Hand-over ---- */

/* One line: where the current thread stands, as offsets into the program (for addr2line). */
static void trace(const char *what, const char *name) {
    void *at[10];
    int n = backtrace(at, 10);
    fprintf(stderr, "%7llu %-10s %s %s", (unsigned long long)sched_state.steps, sched_self->name,
            what, name);
    for (int i = 2; i < n; i++)
        fprintf(stderr, " %#tx", (char *)at[i] - (char *)&__executable_start - 1);
    fprintf(stderr, "\n");
}

static void futex(_Atomic uint32_t *word, int operation, uint32_t value) {
    (void)__real_syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static void wait_for_turn(fiber *f) {
    while (!atomic_exchange(&f->go, 0))
        futex(&f->go, FUTEX_WAIT, 0);
    if (sched_state.leaving) {
        /* its thread has left the library; what it still does to memory comes before us */
        (void)__real_pthread_join(sched_state.leaving->thread, NULL);
        sched_state.leaving = NULL;
    }
}

static void give_turn(fiber *to) {
    sched_decided(sched_state.explored << 4 | (uint64_t)(to - sched_state.fibers));
    to->state = FIBER_READY;
    sched_state.current = to;
    atomic_store(&to->go, 1);
    futex(&to->go, FUTEX_WAKE, 1);
}

static void switch_to(fiber *to) {
    fiber *self = sched_self;
    if (sched_tracing && sched_state.exploring)
        trace("->", to->name);
    give_turn(to);
    wait_for_turn(self);
    self->doing = NULL;
    self->on = NULL;
}

void sched_decided(uint64_t what) {
    if (sched_state.exploring)
        sched_state.hash = (sched_state.hash ^ what) * UINT64_C(0x9E3779B97F4A7C15);
}

/* ---- Points and waits ---- */

void sched_point(void) {
    fiber *self = sched_self;
    if (!self)
        return;
    if (++sched_state.steps > SCHED_STEPS)
        stuck("too many steps");
    if (!sched_state.exploring)
        return;
    sched_state.explored++;
    sched_flush_some();
    fiber *next = sched_next(true);
    if (next != self)
        switch_to(next);
}

void sched_wait(enum fiber_state state, const char *doing, const volatile void *on) {
    fiber *self = sched_self;
    sched_drain(self);
    self->state = state;
    self->doing = doing;
    self->on = on;
    self->timed_out = false;
    fiber *next = sched_next(false);
    if (!next)
        stuck("deadlock");
    if (next == self)
        self->state = FIBER_READY;
    else
        switch_to(next);
}

void sched_wake(const volatile void *on) {
    for (size_t i = 0; i < sched_state.fiber_count; i++) {
        fiber *f = &sched_state.fibers[i];
        if ((f->state == FIBER_BLOCKED || f->state == FIBER_TIMED) && f->on == on)
            f->state = FIBER_READY;
    }
}

void sched_pause(void) {
    fiber *self = sched_self;
    if (++sched_state.steps > SCHED_STEPS)
        stuck("too many steps");
    uint32_t others = sched_state.exploring ? sched_below(&sched_state.plan.random, 8) : 0;
    self->paused_until = sched_state.steps + 1 + others;
    sched_weak_waited();
    sched_wait(FIBER_PAUSED, "pause", NULL);
}

void sched_join(fiber *f) {
    while (f->state != FIBER_OVER)
        sched_wait(FIBER_BLOCKED, "join", f);
    sched_weak_joined(f);
}

/* ---- Threads ---- */

/* After the library's own thread-exit handler: it ran in an earlier round, or earlier in this one.
 */
static void thread_over(void *argument) {
    fiber *self = argument;
    if (!self->ending) { /* first round */
        self->ending = true;
        pthread_setspecific(end_key, self);
        return;
    }
    sched_point(); /* its last stores may be late */
    sched_drain(self);
    sched_weak_fence(self);
    self->state = FIBER_OVER;
    sched_wake(self);
    sched_state.leaving = self;
    fiber *next = sched_next(false);
    if (!next)
        stuck("deadlock");
    sched_self = NULL;
    give_turn(next);
}

static void *thread_main(void *argument) {
    fiber *self = argument;
    sched_self = self;
    pthread_setspecific(end_key, self);
    wait_for_turn(self);
    return self->run(self->argument);
}

static fiber *fiber_new(const char *name) {
    size_t i = 0;
    while (i < sched_state.fiber_count && sched_state.fibers[i].state != FIBER_OVER)
        i++;
    if (i == SCHED_THREADS)
        sched_fail(__FILE__, __LINE__, "too many threads");
    if (i == sched_state.fiber_count)
        sched_state.fiber_count++;
    fiber *f = &sched_state.fibers[i];
    memset(f, 0, sizeof *f);
    f->name = name;
    f->state = FIBER_READY;
    f->priority = sched_random(&sched_state.plan.random) | 1u << 8;
    return f;
}

fiber *sched_spawn(const char *name, void *(*body)(void *), void *argument) {
    fiber *f = fiber_new(name);
    f->run = body;
    f->argument = argument;
    sched_weak_thread(f);
    if (__real_pthread_create(&f->thread, NULL, thread_main, f) != 0)
        sched_fail(__FILE__, __LINE__, "no thread");
    return f;
}

void sched_begin(const schedule *plan, shared *out) {
    sched_state = (run){.plan = *plan, .shared = out};
    if (pthread_key_create(&end_key, thread_over) != 0)
        _exit(2);
    sched_self = fiber_new("main");
    sched_self->thread = pthread_self();
    sched_state.current = sched_self;
}

static void *body_of(void *argument) {
    const sched_thread *thread = argument;
    thread->run(thread->argument);
    return NULL;
}

void sched_run(const sched_thread *threads, size_t count) {
    fiber *made[SCHED_THREADS];
    sched_thread copies[SCHED_THREADS];
    for (size_t i = 0; i < count; i++) {
        copies[i] = threads[i];
        made[i] = sched_spawn(threads[i].name, body_of, &copies[i]);
    }
    sched_drain_all();
    if (sched_state.plan.weak)
        sched_weak_begin();
    sched_state.exploring = true;
    for (size_t i = 0; i < count; i++)
        sched_join(made[i]);
    sched_state.exploring = false;
    sched_drain_all();
    sched_state.shared->points = sched_state.explored;
    sched_state.shared->threads = count;
}

static bool others_can(void) {
    for (size_t i = 0; i < sched_state.fiber_count; i++) {
        const fiber *f = &sched_state.fibers[i];
        if (f != sched_self && (f->state == FIBER_READY || f->state == FIBER_PAUSED))
            return true;
    }
    return false;
}

void sched_settle(void) {
    while (others_can())
        sched_pause();
}

void sched_without_membarrier(void) { sched_state.plan.membarrier = false; }

void sched_pause_here(void) { sched_pause(); }

uint32_t sched_choose(uint32_t n) {
    sched_point();
    return sched_below(&sched_state.plan.program, n);
}

void sched_value(uint64_t value) { sched_state.shared->outcome.value = value; }

void tn__schedule_branch(enum tn__branch branch) {
    static const char *const names[] = {
#define NAME(name) #name,
        TN__BRANCHES(NAME)
#undef NAME
    };
    if (!sched_self)
        return;
    sched_state.shared->branches[branch]++;
    if (sched_tracing)
        trace("reaches", names[branch]);
}
