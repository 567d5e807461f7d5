/* SPDX-License-Identifier: MIT */
/* TN_TEST_TIMEOUT 900 */
/*
 * Random small states and requests, decided by the library and by the reference model: verdict,
 * releases in order, ranks, reasons, bytes, entry actions, predicted peaks, the failing check, and
 * explored states must agree (C158..C161), with the built-in policy and with policies made of
 * callbacks (C162); what was decided can be entered and reaches the predicted peaks (M182).
 *
 *   TN_PROPERTY_SEQUENCES  how many (default 80000)
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
#include "control_property.h"

#if TN__TSAN /* there is one thread here */
#define SCENES 4000
#else
#define SCENES 80000
#endif
#define REQUESTS 8 /* for each world */

typedef struct shared {
    control_tally tally;
    scene running;
    uint64_t index;
    char failure[CONTROL_TEXT];
} shared;

static shared *board;

/* ---- Children -------------------------------------------------------------------------------- */

static uint64_t scene_seed(uint64_t index) {
    return (tn_test_seed() ^ UINT64_C(0xd1342543de82ef95)) * UINT64_C(0x9e3779b97f4a7c15) +
           index * UINT64_C(0xbf58476d1ce4e5b9);
}

static tn_sim *machine(void) {
    tn_sim *sim = NULL;
    if (tn_sim_create("dev:2", &sim) != TN_OK)
        abort();
    return sim;
}

static bool try_scene(const scene *s, tn_driver *driver) {
    live l;
    board->running = *s;
    if (!live_begin(&l, &board->running, driver, board->failure)) {
        board->tally.n[CONTROL_UNBUILT]++;
        return board->failure[0] == 0;
    }
    bool ok = control_compare(&l, &board->running, &board->tally, board->failure);
    live_end(&l);
    return ok;
}

/* A world and its requests; the last decision is entered. */
static bool try_world(uint64_t index, uint64_t count, tn_driver *driver) {
    scene s;
    live l;
    board->index = index;
    scene_draw(&s, scene_seed(index));
    board->running = s;
    if (!live_begin(&l, &s, driver, board->failure)) {
        board->tally.n[CONTROL_UNBUILT] += count;
        return board->failure[0] == 0;
    }
    bool ok = true;
    for (uint64_t i = 0; i < count && ok; i++) {
        if (i > 0)
            scene_draw_request(&s, scene_seed(index + i));
        s.enter = i + 1 == count;
        board->running = s;
        board->index = index + i;
        ok = control_compare(&l, &board->running, &board->tally, board->failure);
    }
    live_end(&l);
    return ok;
}

typedef struct job {
    uint64_t first, count;
    const scene *only;
} job;

static void child(const job *j) {
    tn_sim *sim = machine();
    bool ok = !j->only || try_scene(j->only, tn_sim_driver(sim));
    for (uint64_t i = j->first; i < j->first + j->count && ok; i += REQUESTS)
        ok = try_world(i, REQUESTS, tn_sim_driver(sim));
    if (ok && (tn_sim_violations(sim) || tt_count().live))
        ok = CONTROL_FAIL(board->failure, "%llu payloads left over; %s",
                          (unsigned long long)tt_count().live, tn_sim_violation_text(sim));
    if (!ok)
        _exit(1);
    tn_sim_destroy(sim);
    exit(0); /* with what coverage and leak checkers do at the end */
}

/* True: all went well; else board->failure says what happened. */
static bool run_job(const job *j) {
    int status = 0;
    board->failure[0] = 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        child(j);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        fail_msg("no child");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    if (!board->failure[0])
        snprintf(board->failure, CONTROL_TEXT, "the library ended the process (%s %d)",
                 WIFSIGNALED(status) ? "signal" : "exit status",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return false;
}

/* ---- Shrinking ------------------------------------------------------------------------------- */

static bool still_fails(scene *best, const scene *s) {
    if (memcmp(best, s, sizeof *s) == 0)
        return false;
    control_tally kept = board->tally;
    job j = {.only = s};
    bool fails = !run_job(&j);
    board->tally = kept;
    if (fails)
        *best = *s;
    return fails;
}

static void without_value(mc_world *w, int v) {
    int kept = 0;
    for (int i = 0; i < w->requirement_count; i++) {
        mc_endpoint e = w->requirements[i];
        if (e.value != v)
            w->requirements[kept++] = (mc_endpoint){e.value - (e.value > v), e.at};
    }
    w->requirement_count = kept;
    memmove(&w->values[v], &w->values[v + 1], (size_t)(--w->value_count - v) * sizeof w->values[0]);
}

#define TRY(statement)                                                                             \
    do {                                                                                           \
        scene t = *best;                                                                           \
        mc_world *w = &t.world;                                                                    \
        statement;                                                                                 \
        if (w->requirement_count > 0)                                                              \
            again |= still_fails(best, &t);                                                        \
    } while (0)

static bool tamer_value(scene *best, int v) {
    bool again = false;
    TRY(w->values[v].priority = 0);
    TRY(w->values[v].epoch = 0);
    TRY(w->values[v].key = NULL);
    TRY(w->values[v].protected_ = 0);
    TRY(w->values[v].charge = 1);
    if (best->world.values[v].at) /* an adopted value is somewhere */
        TRY(w->values[v].source = MC_NOWHERE);
    TRY(w->values[v].replicable = true);
    for (int l = 0; l < MC_LOCATIONS; l++)
        if (best->world.values[v].source != MC_NOWHERE || best->world.values[v].at & ~(1u << l))
            TRY(w->values[v].at &= (uint8_t) ~(1u << l);
                w->values[v].protected_ &= (uint8_t) ~(1u << l));
    return again;
}

static bool fewer_parts(scene *best) {
    bool again = false;
    for (int v = best->world.value_count - 1; v >= 0; v--)
        TRY(without_value(w, v));
    for (int i = best->world.requirement_count - 1; i >= 0; i--)
        TRY(memmove(&w->requirements[i], &w->requirements[i + 1],
                    (size_t)(--w->requirement_count - i) * sizeof w->requirements[0]));
    for (int i = best->world.reservation_count - 1; i >= 0; i--)
        TRY(memmove(&w->reservations[i], &w->reservations[i + 1],
                    (size_t)(--w->reservation_count - i) * sizeof w->reservations[0]));
    for (int l = 0; l < MC_LOCATIONS; l++)
        for (int i = best->world.tier_count[l] - 1; i >= 0; i--)
            TRY(memmove(&w->tiers[l][i], &w->tiers[l][i + 1],
                        (size_t)(--w->tier_count[l] - i) * sizeof w->tiers[l][0]));
    for (int i = best->budget_count - 1; i >= 0; i--)
        TRY(w->budget[t.budget_order[i]] = MC_NO_BUDGET;
            memmove(&t.budget_order[i], &t.budget_order[i + 1],
                    (size_t)(--t.budget_count - i) * sizeof t.budget_order[0]));
    return again;
}

static bool tamer(scene *best) {
    bool again = fewer_parts(best);
    for (int v = best->world.value_count - 1; v >= 0; v--)
        again |= tamer_value(best, v);
    for (int l = 0; l < MC_LOCATIONS; l++) {
        TRY(w->reserved[l] = 0);
        if (best->world.budget[l] != MC_NO_BUDGET && best->world.budget[l] > 0)
            TRY(w->budget[l]--);
    }
    TRY(t.custom = false; w->order = MC_LRU);
    TRY(w->order = MC_LRU);
    TRY(t.enter = false);
    TRY(t.concurrent = false);
    TRY(w->limit = CONTROL_CAP);
    return again;
}

static void shrink_and_print(const scene *failing, const char *why) {
    static char text[CONTROL_TEXT];
    scene best = *failing;
    job j = {.only = failing};
    if (run_job(&j)) {
        scene_write(failing, text, sizeof text);
        printf("\nNot by itself: %s\n\n%s\n", why, text);
        return;
    }
    for (int i = 0; i < 20 && tn_test_env_u64("TN_PROPERTY_SHRINK", 1) && tamer(&best); i++)
        ;
    j.only = &best;
    (void)run_job(&j);
    scene_write(&best, text, sizeof text);
    printf("\n%s\n\n%s\n\n", board->failure, text);
}

/* ---- The test -------------------------------------------------------------------------------- */

static void print_tally(const control_tally *t) {
    static const char *const names[CONTROL_COUNTS] = {"scenes",
                                                      "not built",
                                                      "given up by the model",
                                                      "found",
                                                      "infeasible",
                                                      "limit",
                                                      "refused",
                                                      "definite in spite of the limit",
                                                      "with dead ends",
                                                      "with nested moves",
                                                      "entered",
                                                      "custom policy"};
    for (int i = 0; i < CONTROL_COUNTS; i++)
        printf("%s%s %llu", i ? ", " : "", names[i], (unsigned long long)t->n[i]);
    printf("\nstates of found plans with dead ends: %llu, canonical %llu\n",
           (unsigned long long)t->explored, (unsigned long long)t->canonical);
}

static void run(uint64_t first, uint64_t count) {
    char why[CONTROL_TEXT];
    job j = {.first = first, .count = count};
    bool ok = run_job(&j);
    printf("seed %llu: ", (unsigned long long)tn_test_seed());
    print_tally(&board->tally);
    if (ok)
        return;
    scene failing = board->running;
    memcpy(why, board->failure, sizeof why);
    printf("\nscene %llu: %s\n", (unsigned long long)board->index, why);
    shrink_and_print(&failing, why);
    fail_msg("scene %llu (TN_PROPERTY_ONLY): %s", (unsigned long long)board->index, why);
}

static void make_board(void) {
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(board != MAP_FAILED);
}

static void scenes_that_once_failed(void **state) {
    (void)state;
    make_board();
    for (size_t i = 0; control_known[i]; i++) {
        scene s = *control_known[i];
        job j = {.only = &s};
        s.world.limit = CONTROL_CAP;
        s.enter = true;
        if (!run_job(&j))
            fail_msg("known scene %zu: %s", i, board->failure);
        assert_int_equal(board->tally.n[CONTROL_SCENES], i + 1); /* it was built */
    }
    assert_true(board->tally.n[CONTROL_ENTERED] >= 2);
    assert_int_equal(munmap(board, sizeof *board), 0);
}

static void decisions_are_those_of_the_model(void **state) {
    (void)state;
    uint64_t only = tn_test_env_u64("TN_PROPERTY_ONLY", UINT64_MAX);
    uint64_t count = tn_test_env_u64("TN_PROPERTY_SEQUENCES", SCENES);
    make_board();
    if (only != UINT64_MAX) {
        run(only / REQUESTS * REQUESTS, REQUESTS);
    } else {
        run(0, count);
        for (int i = 0; i < CONTROL_COUNTS && count >= 4000; i++)
            assert_true(board->tally.n[i] > 0); /* everything was met */
    }
    assert_int_equal(munmap(board, sizeof *board), 0);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(scenes_that_once_failed),
                                          cmocka_unit_test(decisions_are_those_of_the_model)};

TN_TEST_MAIN("property.control", tests)
