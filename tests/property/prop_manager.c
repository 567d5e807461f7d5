/* SPDX-License-Identifier: MIT */
/* TN_TEST_TIMEOUT 900 */
/*
 * Random sequences of calls into the library and into the reference model: after every call
 * statuses, error fields, reports, snapshots, versions, peaks, traces, live payloads and virtual
 * time must be equal. Covers P3, L1, L2, B1, B2, S1, F1, N2 and MC33 on one thread.
 *
 *   TN_PROPERTY_SEQUENCES  how many sequences of 60 calls (default 20000)
 *   TN_SEED                all of them
 *   TN_PROPERTY_ONLY       run only this one of them, and print it
 *   TN_PROPERTY_CALLS      run only this program, as a failure printed it
 *   TN_PROPERTY_SHRINK     0: a failure is printed as it is
 *
 * The library runs in child processes only: a crash or a hang is a failure like any other and is
 * shrunk too.
 */
#include "tn_test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base_internal.h"
#include "manager_property.h"

#if TN__TSAN /* there is one thread here: not much to find, at a tenth of the speed */
#define SEQUENCES 4000
#else
#define SEQUENCES 20000
#endif
#define HANG_SECONDS 60
#define SHRINK_TRIES 4000
#define SHRINK_SECONDS 90
#define CALLS_TEXT 8192

/* Between the child that runs and the parent that judges. */
typedef struct shared {
    tally tally;
    uint64_t index; /* of the sequence that is running */
    char failure[FAILURE_TEXT];
} shared;

static shared *board;

/* ---- Children -------------------------------------------------------------------------------- */

typedef struct job {
    uint64_t seed, first, count; /* of drawn sequences; count 0: `only` */
    const program *only;
    bool verbose, silent;
} job;

static uint64_t sequence_seed(uint64_t seed, uint64_t index) {
    return property_mix(property_mix(seed) + index);
}

static void child(const job *j) {
    static program p, empty;
    if (j->silent) {
        int null = open("/dev/null", O_WRONLY);
        if (null >= 0) {
            (void)dup2(null, STDERR_FILENO);
            (void)dup2(null, STDOUT_FILENO);
        }
    }
    if (!program_run(&empty, &board->tally, false, board->failure))
        _exit(1);
    if (j->only && !program_run(j->only, &board->tally, j->verbose, board->failure))
        _exit(1);
    for (uint64_t i = 0; i < j->count; i++) {
        board->index = j->first + i;
        program_draw(&p, sequence_seed(j->seed, board->index));
        if (!program_run(&p, &board->tally, j->verbose, board->failure))
            _exit(1);
    }
    exit(0); /* with what coverage and leak checkers do at the end */
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Wait; a child whose count of calls stands still for too long is ended. */
static int wait_for(pid_t pid) {
    struct timespec pause = {0, 200 * 1000};
    uint64_t calls = board->tally.calls;
    double since = seconds();
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < 20 * 1000 * 1000)
            pause.tv_nsec += 100 * 1000;
        if (board->tally.calls != calls) {
            calls = board->tally.calls;
            since = seconds();
        } else if (seconds() - since > HANG_SECONDS) {
            kill(pid, SIGKILL);
            snprintf(board->failure, FAILURE_TEXT, "it hangs");
        }
    }
    return status;
}

/* Run in a child. True: all went well; else board->failure says what happened. */
static bool run_job(const job *j) {
    board->failure[0] = 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        child(j);
    if (pid < 0)
        fail_msg("fork: %s", strerror(errno));
    int status = wait_for(pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    if (board->failure[0])
        return false;
    if (WIFSIGNALED(status))
        snprintf(board->failure, FAILURE_TEXT, "signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(board->failure, FAILURE_TEXT, "exit status %d (a sanitizer, or a leak)",
                 WEXITSTATUS(status));
    return false;
}

/* ---- Shrinking ------------------------------------------------------------------------------- */

typedef struct shrink {
    program best;
    uint64_t tries;
    double until;
} shrink;

static bool still_fails(shrink *s, const program *p) {
    if (s->tries >= SHRINK_TRIES || seconds() > s->until)
        return false;
    s->tries++;
    static tally kept;
    kept = board->tally;
    job j = {.only = p, .silent = true};
    bool fails = !run_job(&j);
    board->tally = kept;
    if (fails)
        s->best = *p;
    return fails;
}

static bool without(shrink *s, uint32_t from, uint32_t count) {
    program p = s->best;
    memmove(&p.calls[from], &p.calls[from + count], (p.count - from - count) * sizeof p.calls[0]);
    p.count -= count;
    return still_fails(s, &p);
}

/* Parts away, from large to small, until no single call can go. */
static void fewer_calls(shrink *s) {
    for (uint32_t part = s->best.count / 2; part; part = part > 1 ? (part + 1) / 2 : 0) {
        bool again;
        do {
            again = false;
            for (uint32_t at = 0; at + part <= s->best.count;)
                if (without(s, at, part))
                    again = true;
                else
                    at += part;
        } while (again && part == 1);
    }
}

static bool tamer(shrink *s, uint32_t index, const call *c) {
    program p = s->best;
    if (memcmp(&p.calls[index], c, sizeof *c) == 0)
        return false;
    p.calls[index] = *c;
    return still_fails(s, &p);
}

static void tamer_calls(shrink *s) {
    for (uint32_t i = 0; i < s->best.count; i++) {
        call c = s->best.calls[i];
        for (size_t k = 0; k < CALL_ARGS + 4; k++) {
            call t = s->best.calls[i];
            if (k < CALL_ARGS)
                t.arg[k] = 0;
            else if (k < CALL_ARGS + 2)
                t.wrong[k - CALL_ARGS] = 0;
            else if (k == CALL_ARGS + 2)
                t.fault = 0;
            else
                t.which = 0;
            (void)tamer(s, i, &t);
        }
        c = s->best.calls[i];
        c.quiet = 0;
        (void)tamer(s, i, &c);
    }
    for (size_t k = 0; k < PROGRAM_SETUP; k++) {
        program p = s->best;
        p.setup[k] = k % 6 < 2 ? 0 : 15; /* 15: no budget */
        if (p.setup[k] != s->best.setup[k])
            (void)still_fails(s, &p);
    }
}

static void shrink_and_print(const program *failing, const char *why) {
    static shrink s;
    static char text[CALLS_TEXT];
    s = (shrink){.best = *failing, .until = seconds() + SHRINK_SECONDS};
    if (tn_test_env_u64("TN_PROPERTY_SHRINK", 1)) {
        fewer_calls(&s);
        tamer_calls(&s);
        fewer_calls(&s);
    }
    printf("\nFirst failure: %s\nShrunk from %u to %u calls in %llu tries:\n\n", why,
           failing->count, s.best.count, (unsigned long long)s.tries);
    job j = {.only = &s.best, .verbose = true};
    (void)run_job(&j);
    program_write(&s.best, text, sizeof text);
    printf("\n%s\n\nRun just this: TN_PROPERTY_CALLS='%s' build/tests/property_manager\n",
           board->failure, text);
    fflush(stdout);
}

/* ---- The table ------------------------------------------------------------------------------- */

/* What calls of these sections can return. */
static const tn_status wanted[] = {TN_OK,
                                   TN_ERR_KIND,
                                   TN_ERR_VALUE,
                                   TN_ERR_LOOKUP,
                                   TN_ERR_HANDLE,
                                   TN_ERR_BUDGET,
                                   TN_ERR_UNAVAILABLE,
                                   TN_ERR_IN_USE,
                                   TN_ERR_LIFETIME_CLOSED,
                                   TN_ERR_MATERIALIZATION,
                                   TN_ERR_OWNERSHIP,
                                   TN_ERR_PAYLOAD,
                                   TN_ERR_PLAN,
                                   TN_ERR_STALE,
                                   TN_ERR_PLAN_EXEC,
                                   TN_ERR_MISUSE,
                                   TN_ERR_CLOSED,
                                   TN_ERR_REENTRANCY,
                                   TN_ERR_SOURCE,
                                   TN_ERR_DRIVER,
                                   TN_ERR_HOST_MEMORY,
                                   TN_ERR_DEVICE_MEMORY,
                                   TN_ERR_DEVICE_LOST,
                                   TN_ERR_UNSUPPORTED,
                                   TN_ERR_SYSTEM};

/* The column of a status: its name without the prefix, in ten characters. */
static const char *column(tn_status status) {
    const char *name = tn_status_name(status);
    return strncmp(name, "TN_ERR_", 7) == 0 ? name + 7 : name + 3;
}

/* Actions of explained plans by kind and reason, and the steps of plans that ran. */
static void print_plans(const tally *t) {
    static const char *const reasons[] = {
        "performed",     "resident",    "at destination",  "absent",    "foreign",
        "unknown",       "discarded",   "bad location",    "exclusive", "source not there",
        "source in use", "in use",      "discard, in use", "last copy", "no source",
        "budget",        "reservation", "shared"};
    static const char *const phases[] = {"", "execute", "reclaim", "reserve", "enter", "exit"};
    printf("\n%-20s %9s %9s %9s %9s %9s\n", "explained", "ensure", "move", "drop", "discard",
           "plans");
    for (uint32_t why = 0; why < sizeof reasons / sizeof reasons[0]; why++) {
        uint64_t sum = t->problems[why];
        for (uint32_t kind = 1; kind <= TN_ACTION_DISCARD; kind++)
            sum += t->explained[kind][why];
        if (!sum)
            continue;
        printf("%-20s", reasons[why]);
        for (uint32_t kind = 1; kind <= TN_ACTION_DISCARD; kind++)
            printf(" %9llu", (unsigned long long)t->explained[kind][why]);
        printf(" %9llu\n", (unsigned long long)t->problems[why]);
    }
    printf("\n%-20s %9s %9s\n", "steps of plans", "completed", "failed");
    for (uint32_t phase = 1; phase <= TN_PHASE_EXIT; phase++)
        printf("%-20s %9llu %9llu\n", phases[phase], (unsigned long long)t->steps[phase][0],
               (unsigned long long)t->steps[phase][1]);
}

static void print_table(const tally *t) {
    printf("\n%-20s", "calls by result");
    for (size_t k = 0; k < sizeof wanted / sizeof wanted[0]; k++)
        printf(" %9.9s", column(wanted[k]));
    printf("\n");
    for (uint32_t op = 0; op < OP_COUNT; op++) {
        printf("%-20s", op_name(op));
        for (size_t k = 0; k < sizeof wanted / sizeof wanted[0]; k++)
            if (t->hits[op][wanted[k]])
                printf(" %9llu", (unsigned long long)t->hits[op][wanted[k]]);
            else
                printf(" %9s", ".");
        printf("\n");
    }
    print_plans(t);
    printf("\n%-56s %9s %9s\n", "faults", "armed", "hit");
    for (uint32_t f = 1; f < FAULT_COUNT; f++)
        printf("%-56s %9llu %9llu\n", fault_name(f), (unsigned long long)t->faults[f][0],
               (unsigned long long)t->faults[f][1]);
    printf("%llu loads, %llu pending leases reaped, %llu calls from inside callbacks\n",
           (unsigned long long)t->loads, (unsigned long long)t->reaped,
           (unsigned long long)t->nested);
    printf("%llu calls, %llu comparisons\n", (unsigned long long)t->calls,
           (unsigned long long)t->checks);
}

static bool machine_op(uint32_t op) {
    return op == OP_USE || op == OP_ADVANCE || op == OP_SNAPSHOT_CHECK; /* they have no result */
}

/* Every kind of call succeeded somewhere, every status and every reason was seen, and every part of
 * plans completed and failed (a reservation fails for want of the library's own memory only). */
static bool complete_table(const tally *t) {
    bool complete = true;
    for (uint32_t op = 0; op < OP_COUNT; op++)
        if (!machine_op(op) && t->hits[op][TN_OK] == 0) {
            printf("never successful: %s\n", op_name(op));
            complete = false;
        }
    for (size_t k = 0; k < sizeof wanted / sizeof wanted[0]; k++) {
        uint64_t sum = 0;
        for (uint32_t op = 0; op < OP_COUNT; op++)
            sum += t->hits[op][wanted[k]];
        if (sum == 0) {
            printf("never seen: %s\n", tn_status_name(wanted[k]));
            complete = false;
        }
    }
    for (uint32_t why = TN_REASON_NONE; why <= TN_REASON_RESERVATION_BUDGET; why++) {
        uint64_t sum = t->problems[why];
        for (uint32_t kind = 1; kind <= TN_ACTION_DISCARD; kind++)
            sum += t->explained[kind][why];
        if (sum == 0 && why != TN_REASON_NO_SOURCE) { /* a live value has a replica or a source */
            printf("never explained: reason %u\n", why);
            complete = false;
        }
    }
    for (uint32_t phase = TN_PHASE_EXECUTE; phase <= TN_PHASE_EXIT; phase++)
        if (t->steps[phase][0] == 0 || (t->steps[phase][1] == 0 && phase != TN_PHASE_RESERVE)) {
            printf("phase %u of plans never completed or never failed\n", phase);
            complete = false;
        }
    return complete;
}

/* ---- The test -------------------------------------------------------------------------------- */

static void run_one(const program *p, bool verbose) {
    job j = {.only = p, .verbose = verbose};
    if (run_job(&j))
        return;
    char why[FAILURE_TEXT];
    memcpy(why, board->failure, sizeof why);
    printf("\n%s\n", why);
    shrink_and_print(p, why);
    fail_msg("%s", why);
}

static void run_all(uint64_t seed, uint64_t count) {
    static program p;
    char why[FAILURE_TEXT];
    double began = seconds();
    job j = {.seed = seed, .count = count};
    if (!run_job(&j)) {
        memcpy(why, board->failure, sizeof why);
        uint64_t index = board->index;
        program_draw(&p, sequence_seed(seed, index));
        shrink_and_print(&p, why);
        printf(
            "The whole sequence: TN_SEED=%llu TN_PROPERTY_ONLY=%llu build/tests/property_manager\n",
            (unsigned long long)seed, (unsigned long long)index);
        fail_msg("sequence %llu: %s", (unsigned long long)index, why);
    }
    print_table(&board->tally);
    printf("%llu sequences in %.1f s\n", (unsigned long long)count, seconds() - began);
    bool complete = complete_table(&board->tally);
    if (count >= 2000)
        assert_true(complete);
}

static void manager_agrees_with_the_model(void **state) {
    (void)state;
    static program p;
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(board != MAP_FAILED);
    uint64_t seed = tn_test_seed(), only = tn_test_env_u64("TN_PROPERTY_ONLY", UINT64_MAX);
    const char *calls = getenv("TN_PROPERTY_CALLS");
    if (calls) {
        if (!program_read(&p, calls))
            fail_msg("TN_PROPERTY_CALLS is not what a failure printed");
        run_one(&p, true);
    } else if (only != UINT64_MAX) {
        program_draw(&p, sequence_seed(seed, only));
        run_one(&p, true);
    } else {
        run_all(seed, tn_test_env_u64("TN_PROPERTY_SEQUENCES", SEQUENCES));
    }
    munmap(board, sizeof *board);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(manager_agrees_with_the_model)};

TN_TEST_MAIN("property.manager", tests)
