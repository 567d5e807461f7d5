/* SPDX-License-Identifier: MIT */
/*
 * Many schedules of one scenario: a child for each, and what they did.
 */
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sched_priv.h"
#include "tn_test.h"

#define SECONDS_PER_SCHEDULE 60u /* a child that does not end, though its steps are bounded */
#define FULL_SCHEDULES 20000u
#if defined(__SANITIZE_ADDRESS__)
#define DEFAULT_SCHEDULES 2000u
#else
#define DEFAULT_SCHEDULES FULL_SCHEDULES
#endif
#define WEIGHTS 2960u /* of all scenarios together, about */
#define NOTHING_KNOWN (~UINT64_C(0) / STRATEGY_COUNT * STRATEGY_COUNT + STRATEGY_BOUNDED)

static shared *page;

static shared *shared_page(void) {
    if (!page) {
        page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_true(page != MAP_FAILED);
        /* One heap for all threads: its addresses are those of the schedule. */
        (void)mallopt(M_ARENA_MAX, 1);
    }
    memset(page, 0, sizeof *page);
    return page;
}

#if defined(__SANITIZE_ADDRESS__)
#define OWN_HANDLERS 1 /* AddressSanitizer's, which tell more */
#else
#define OWN_HANDLERS 0
#endif

static void __attribute__((noreturn)) child(void (*body)(void), const schedule *plan) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
    for (size_t i = 0; !OWN_HANDLERS && i < sizeof faults / sizeof *faults; i++)
        signal(faults[i], SIG_DFL); /* the parent says what happened */
    alarm(SECONDS_PER_SCHEDULE);
    sched_begin(plan, page);
    body();
    sched_drain_all();
    sched_check_memory();
    page->outcome.steps = sched_state.steps;
    page->outcome.hash = sched_state.hash;
    page->complete = true;
    _exit(0);
}

static void run_plan(void (*body)(void), const schedule *plan) {
    int status = 0;
    shared_page();
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        child(body, plan);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (page->complete || page->outcome.failed)
        return;
    page->outcome.failed = true;
    snprintf(page->outcome.text, sizeof page->outcome.text, "the process ended: %s %d",
             WIFSIGNALED(status) ? "signal" : "exit status",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

/* The first schedule: no preemption, no buffer. How long the others will be. */
static void probe(void (*body)(void), uint64_t *points, uint64_t *threads) {
    schedule plan;
    sched_plan(&plan, NOTHING_KNOWN, 1, 1);
    plan.change_count = 0;
    plan.buffered = plan.weak = false;
    plan.membarrier = true;
    plan.program = 0;
    run_plan(body, &plan);
    *points = page->points;
    *threads = page->threads;
}

void sched_once(void (*body)(void), uint64_t seed, sched_outcome *out) {
    uint64_t points, threads;
    schedule plan;
    probe(body, &points, &threads);
    if (!page->outcome.failed) {
        sched_plan(&plan, seed, points, threads ? threads : 1);
        run_plan(body, &plan);
    }
    *out = page->outcome;
}

/* ---- Distinct schedules: a set of hashes ---- */

typedef struct set {
    uint64_t *items; /* 0: none */
    size_t room, count;
} set;

static void set_add(set *s, uint64_t hash) {
    hash += hash == 0;
    if (s->count * 2 >= s->room) {
        set more = {calloc(s->room ? s->room * 2 : 1024, sizeof *more.items),
                    s->room ? s->room * 2 : 1024, 0};
        assert_non_null(more.items);
        for (size_t i = 0; i < s->room; i++)
            if (s->items[i])
                set_add(&more, s->items[i]);
        free(s->items);
        *s = more;
    }
    size_t at = (size_t)(hash * UINT64_C(0x9E3779B97F4A7C15) >> 20) % s->room;
    while (s->items[at] && s->items[at] != hash)
        at = (at + 1) % s->room;
    s->count += s->items[at] == 0;
    s->items[at] = hash;
}

/* ---- Exploring ---- */

static uint64_t gcd(uint64_t a, uint64_t b) { return b ? gcd(b, a % b) : a; }

static uint64_t one_preemption(uint64_t points, uint64_t threads) {
    return points * threads * (threads > 1 ? threads - 1 : 1);
}

/* The seed of the i-th schedule. Every other one has one preemption, until all their numbers were
 * tried, in steps that spread any short run over the whole; the rest is random. */
static uint64_t seed_of(uint64_t i, uint64_t points, uint64_t threads) {
    uint64_t all = one_preemption(points, threads), number = i / 2;
    if (i % 2 == 0 && number < all) {
        uint64_t stride = all * 618 / 1000 + 1;
        while (gcd(stride, all) != 1)
            stride++;
        return number * stride % all * STRATEGY_COUNT + STRATEGY_ONE;
    }
    uint64_t state = tn_test_seed() + i;
    uint64_t seed = sched_random(&state);
    return seed / STRATEGY_COUNT * STRATEGY_COUNT + 1 + number % (STRATEGY_COUNT - 1);
}

typedef struct exploration {
    uint64_t schedules, points, threads, steps;
    uint64_t branches[TN__BRANCH_COUNT];
    set distinct;
    double seconds;
} exploration;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static const char *const branch_names[] = {
#define NAME(branch) #branch,
    TN__BRANCHES(NAME)
#undef NAME
};

/* Of all scenarios of this program so far. */
static uint64_t all_branches[TN__BRANCH_COUNT];

static void tell_branches(const char *name, const exploration *e) {
    for (size_t i = 0; i < TN__BRANCH_COUNT; i++) {
        if (e->branches[i])
            print_message("  %s: %s %" PRIu64 "\n", name, branch_names[i], e->branches[i]);
        all_branches[i] += e->branches[i];
    }
}

void sched_reached(const enum tn__branch *must, size_t count) {
    uint32_t missing = 0;
    if (tn_test_env_u64("TN_SCHEDULES", FULL_SCHEDULES) < FULL_SCHEDULES ||
        DEFAULT_SCHEDULES < FULL_SCHEDULES || getenv("TN_TEST"))
        TN_SKIP("too few schedules to say which branches they reach");
    for (size_t i = 0; i < count; i++) {
        if (all_branches[must[i]])
            continue;
        print_error("no schedule reached %s\n", branch_names[must[i]]);
        missing++;
    }
    assert_int_equal(missing, 0);
}

static void tell(const char *name, const exploration *e) {
    uint64_t all = one_preemption(e->points, e->threads), tried = (e->schedules + 1) / 2;
    print_message("%s: %" PRIu64 " schedules, %zu distinct, of %" PRIu64
                  " with one preemption %" PRIu64 "; %" PRIu64
                  " steps in the first, %.0f on average; %.1f s\n",
                  name, e->schedules, e->distinct.count, all, tried < all ? tried : all, e->points,
                  e->schedules ? (double)e->steps / (double)e->schedules : 0, e->seconds);
    tell_branches(name, e);
}

static void fail_with(const char *name, uint64_t seed) {
    print_error("%s: %s\n    after %" PRIu64 " steps. To run this schedule again:\n"
                "    TN_SCHEDULES=1 TN_SEED=%" PRIu64 " TN_TEST='%s' %s\n",
                name, page->outcome.text, page->outcome.steps, seed, name, program_invocation_name);
    fail();
}

static void one(exploration *e, const char *name, void (*body)(void), uint64_t seed) {
    schedule plan;
    sched_plan(&plan, seed, e->points, e->threads);
    run_plan(body, &plan);
    if (page->outcome.failed)
        fail_with(name, seed);
    e->schedules++;
    e->steps += page->outcome.steps;
    set_add(&e->distinct, page->outcome.hash);
    for (size_t i = 0; i < TN__BRANCH_COUNT; i++)
        e->branches[i] += page->branches[i];
}

void sched_explore(const char *name, void (*body)(void), unsigned weight, const uint64_t *known,
                   size_t known_count) {
    exploration e = {0};
    uint64_t total = tn_test_env_u64("TN_SCHEDULES", DEFAULT_SCHEDULES);
    uint64_t count = (total * weight + WEIGHTS - 1) / WEIGHTS;
    double begun = now();
    probe(body, &e.points, &e.threads);
    if (page->outcome.failed)
        fail_with(name, NOTHING_KNOWN);
    assert_true(e.points > 0 && e.threads > 0);
    if (total == 1) {
        sched_tracing = tn_test_env_u64("TN_SCHEDULE_TRACE", 0) != 0;
        one(&e, name, body, tn_test_seed());
    } else {
        for (size_t i = 0; i < known_count; i++)
            one(&e, name, body, known[i]);
        for (uint64_t i = 0; i < count; i++)
            one(&e, name, body, seed_of(i, e.points, e.threads));
    }
    e.seconds = now() - begun;
    tell(name, &e);
    free(e.distinct.items);
}
