/* SPDX-License-Identifier: MIT */
/* TN_TEST_TIMEOUT 600 */
/*
 * Random uses, nested and one after the other, on random small states, by the library and by the
 * reference model: after every step the status, the decision, the values, where everything is, what
 * is borrowed and reserved, and by its effect on later decisions the order of accesses must agree
 * (C124..C147), bound to the version and bound to the placement (D13, D14: there, hits).
 *
 *   TN_PROPERTY_SEQUENCES  how many (default 6000)
 *   TN_SEED                all of them
 *   TN_PROPERTY_ONLY       only this one of them
 *
 * The library runs in child processes: a crash is a failure like any other and is shrunk too.
 */
#include "tn_test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base_internal.h"
#include "control_use.h"

#if TN__TSAN /* there is one thread here */
#define SEQUENCES 800
#else
#define SEQUENCES 6000
#endif
#define STEPS 16

typedef struct sequence {
    uint64_t seed; /* of the world */
    uint32_t count;
    use_step steps[STEPS];
} sequence;

typedef struct shared {
    uint64_t n[COUNTERS];
    sequence running;
    char failure[CONTROL_TEXT];
    bool verbose;
} shared;

static shared *board;

/* ---- Sequences ------------------------------------------------------------------------------- */

static bool run_steps(use_pair *p, const sequence *q) {
    bool ok = true;
    p->epoch = 1000;
    for (int v = 0; v < p->s.world.value_count; v++)
        p->held[v] = p->s.world.values[v].protected_;
    for (uint32_t i = 0; i < q->count && ok; i++)
        ok = use_one_step(p, &q->steps[i]);
    for (int i = 0; i < SLOTS; i++) {
        ok = use_leave(p, &p->slots[i]) && ok;
        tn_use_destroy(p->slots[i].use);
    }
    return ok;
}

static bool run_sequence(const sequence *q, tn_sim *sim, const tn_stream *streams) {
    static use_pair p;
    char text[CONTROL_TEXT];
    memset(&p, 0, sizeof p);
    board->running = *q;
    p.why = board->failure;
    p.sim = sim;
    p.n = board->n;
    p.verbose = board->verbose;
    memcpy(p.streams, streams, sizeof p.streams);
    scene_draw(&p.s, q->seed);
    if (!live_begin(&p.l, &p.s, tn_sim_driver(sim), p.why)) {
        board->n[UNBUILT]++;
        return *p.why == 0;
    }
    if (board->verbose) {
        scene_write(&p.s, text, sizeof text);
        printf("%s\n", text);
    }
    p.s.world.limit = CONTROL_CAP;
    p.c = control_controller(&p.l, &p.s, p.why);
    bool ok = p.c && run_steps(&p, q);
    tn_controller_destroy(p.c);
    live_end(&p.l);
    return ok;
}

static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static sequence drawn(uint64_t index) {
    uint64_t seed = mix(tn_test_seed() + mix(index + 1));
    sequence q = {.seed = seed, .count = STEPS};
    for (uint32_t i = 0; i < STEPS; i++) {
        uint64_t r = mix(seed + i + 1);
        uint32_t kind = r % 10 < 5 ? ENTER : r % 10 < 7 ? EXIT : AGAIN;
        q.steps[i] = (use_step){kind, (uint32_t)(r >> 8) % SLOTS, mix(r)};
    }
    return q;
}

static void child(const sequence *only, uint64_t first, uint64_t count) {
    tn_sim *sim = NULL;
    tn_stream streams[DEVICES];
    if (tn_sim_create("dev:2", &sim) != TN_OK ||
        tn_sim_stream_create(sim, 0, 0, &streams[0]) != TN_OK ||
        tn_sim_stream_create(sim, 1, 0, &streams[1]) != TN_OK)
        abort();
    bool ok = !only || run_sequence(only, sim, streams);
    for (uint64_t i = first; i < first + count && ok; i++) {
        sequence q = drawn(i);
        ok = run_sequence(&q, sim, streams);
    }
    if (ok && (tn_sim_violations(sim) || tt_count().live))
        ok = CONTROL_FAIL(board->failure, "%llu payloads left over; %s",
                          (unsigned long long)tt_count().live, tn_sim_violation_text(sim));
    if (!ok)
        _exit(1);
    for (int i = 0; i < DEVICES; i++)
        (void)!tn_sim_stream_destroy(sim, streams[i]);
    tn_sim_destroy(sim);
    exit(0); /* with what coverage and leak checkers do at the end */
}

static bool run_child(const sequence *only, uint64_t first, uint64_t count) {
    int status = 0;
    board->failure[0] = 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        child(only, first, count);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        fail_msg("no child");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    if (!board->failure[0])
        snprintf(board->failure, CONTROL_TEXT, "the library ended the process");
    return false;
}

/* Steps away until none can go; then the rest is printed. */
static void shrink(sequence q) {
    char why[CONTROL_TEXT];
    for (uint32_t i = q.count; i-- > 0;) {
        sequence t = q;
        memmove(&t.steps[i], &t.steps[i + 1], (--t.count - i) * sizeof t.steps[0]);
        if (!run_child(&t, 0, 0))
            q = t;
    }
    board->verbose = true;
    printf("\n");
    bool alone = !run_child(&q, 0, 0);
    memcpy(why, board->failure, sizeof why);
    printf("%s\n", alone ? why : "not by itself");
    fflush(stdout);
}

static void uses_are_those_of_the_model(void **state) {
    static const char *const names[COUNTERS] = {
        "entered", "hits", "with releases", "refused", "beside others", "again", "not built"};
    (void)state;
    uint64_t only = tn_test_env_u64("TN_PROPERTY_ONLY", UINT64_MAX);
    uint64_t count = tn_test_env_u64("TN_PROPERTY_SEQUENCES", SEQUENCES);
    char why[CONTROL_TEXT];
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(board != MAP_FAILED);
    bool ok = only == UINT64_MAX ? run_child(NULL, 0, count) : run_child(NULL, only, 1);
    printf("seed %llu:", (unsigned long long)tn_test_seed());
    for (int i = 0; i < COUNTERS; i++)
        printf(" %llu %s%s", (unsigned long long)board->n[i], names[i],
               i + 1 < COUNTERS ? "," : "\n");
    if (!ok) {
        memcpy(why, board->failure, sizeof why);
        shrink(board->running);
        fail_msg("%s", why);
    }
    for (int i = 0; i < COUNTERS && count >= 500 && only == UINT64_MAX; i++)
        assert_true(board->n[i] > 0);
    assert_int_equal(munmap(board, sizeof *board), 0);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(uses_are_those_of_the_model)};

TN_TEST_MAIN("property.control_use", tests)
