/* SPDX-License-Identifier: MIT */
/*
 * The same answer every time, deep plans, and searches that pruning must end (C96, C99, C101, C105,
 * C158..C163; cases CC135, CC137..CC140).
 */
#include "scenario.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Worlds of many values ------------------------------------------------------------------- */

/* Values `name0 charge R @places`, ..., added one by one. */
static void add_many(world *w, const char *name, int count, const char *rest) {
    char text[64];

    for (int i = 0; i < count; i++) {
        snprintf(text, sizeof(text), "%s%d %s", name, i, rest);
        world_add(w, text);
    }
}

static world *with_budget(struct spec *f, const char *at, uint64_t bytes, const char *more,
                          const char *tiers) {
    static char budgets[64];
    scenario of = {.budgets = budgets, .values = NULL, .tiers = tiers};

    snprintf(budgets, sizeof(budgets), "%s=%llu%s", at, (unsigned long long)bytes, more);
    return world_begin(f, &of);
}

static uint64_t explored(const tn_decision *d) {
    tn_decision_info head = TN_DECISION_INFO_INIT;

    assert_ok(tn_decision_read(d, &head));
    return head.explored_states;
}

static double seconds(void) { return (double)tn_test_cpu_ns() * 1e-9; }

/* ---- Determinism ----------------------------------------------------------------------------- */

static uint64_t draw(uint64_t *seed) {
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

static world *drawn_world(struct spec *f) {
    world *w = with_budget(f, "P", 40, ", D0=85, H=400", "D0 to P, H; P to H");
    uint64_t seed = 135;
    char text[64];

    for (int i = 0; i < 200; i++) {
        const char *where = i < 50    ? "R @H,D0"
                            : i < 80  ? "X @P"
                            : i < 110 ? "X @D0"
                            : i < 130 ? "R @H src=H"
                                      : "R @H";

        snprintf(text, sizeof(text), "v%d %d %s", i, 1 + (int)(draw(&seed) % 2 * (i >= 110)),
                 where);
        world_add(w, text);
        snprintf(text, sizeof(text), "meta v%d priority %d%s%d", i, (int)(draw(&seed) % 3) - 1,
                 i % 3 ? "" : " key k", i);
        if (i % 3 == 0)
            world_do(w, text);
    }
    for (int i = 0; i < 40; i++) {
        snprintf(text, sizeof(text), "use v%d@H", (int)(draw(&seed) % 50));
        world_do(w, text);
    }
    return w;
}

/* Plan, ranks, reasons, bytes, peaks, count. */
static char *told(const world *w, const tn_decision *d) {
    char *reclaim = world_reclaim(w, d), *entry = world_entry(w, d), *peaks_ = world_peaks(w, d);
    char *all =
        tn_test_text("%s\n%s\n%s\n%llu", reclaim, entry, peaks_, (unsigned long long)explored(d));

    free(reclaim);
    free(entry);
    free(peaks_);
    return all;
}

#define DRAWN_NEED "v110@D0, v120@D0, v3@P, v85@H"

static char *drawn_answer(struct spec *f, int times) {
    world *w = drawn_world(f);
    char *first = NULL;

    for (int i = 0; i < times; i++) {
        tn_decision *d;
        char *text;

        assert_ok(world_decide_for(w, w->controller, DRAWN_NEED, "D0:40", &d));
        text = told(w, d);
        tn_decision_drop(d);
        if (first == NULL) {
            first = text;
            continue;
        }
        assert_string_equal(text, first);
        free(text);
    }
    world_end(w);
    return first;
}

/* The other process: everything from the start. Fork before there are managers. */
static int other_process(void **state, pid_t *out_pid) {
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    *out_pid = fork();
    assert_true(*out_pid >= 0);
    if (*out_pid == 0) {
        char *text = drawn_answer(*state, 1);
        size_t length = strlen(text);

        _exit(write(ends[1], text, length) == (ssize_t)length ? 0 : 1);
    }
    close(ends[1]);
    return ends[0];
}

static void cc135_determinism(void **state) {
    static char there[1 << 16];
    size_t length = 0;
    ssize_t n;
    pid_t pid;
    int status = 1, end = other_process(state, &pid);
    char *here;

    while ((n = read(end, there + length, sizeof(there) - 1 - length)) > 0)
        length += (size_t)n;
    close(end);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    here = drawn_answer(*state, 100);
    assert_true(strstr(here, "move") != NULL && strstr(here, "drop") != NULL);
    assert_string_equal(here, there);
    free(here);
}

/* ---- Deep plans ------------------------------------------------------------------------------ */

/* Seconds of one decision that drops n values. */
static double deep(void **state, int n) {
    world *w = with_budget(*state, "D0", (uint64_t)n, "", NULL);
    tn_eviction *got = calloc((size_t)n, sizeof(*got));
    size_t count = (size_t)n;
    char text[32];
    double began, took;
    tn_decision *d;

    assert_non_null(got);
    add_many(w, "v", n, "1 R @H,D0");
    snprintf(text, sizeof(text), "q %d R @H", n);
    world_add(w, text);
    began = seconds();
    assert_ok(world_decide_for(w, w->controller, "q@D0", NULL, &d));
    took = seconds() - began;
    got[0].size = sizeof(got[0]);
    assert_ok(tn_decision_evictions(d, got, &count));
    assert_int_equal(count, n);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(got[i].action.kind, TN_ACTION_DROP);
        assert_handle(got[i].action.handle, w->values[i].h);
        assert_int_equal(got[i].rank, 0);
    }
    assert_int_equal(explored(d), n + 1);
    tn_decision_drop(d);
    free(got);
    world_end(w);
    return took;
}

static void cc137_deep_plan(void **state) {
    double took = deep(state, 5000);

    print_message("5000 drops decided in %.1f ms\n", took * 1e3);
    assert_true(took < 10); /* quadratic growth would show in minutes under a sanitizer */
}

/* ---- Pruning --------------------------------------------------------------------------------- */

/* A bad first choice, then a dead end that does not depend on the drops: k of n are enough. */
static void dead_end(void **state, int n, int k, uint64_t canonical) {
    world *w = with_budget(*state, "D0", (uint64_t)n + 1, ", H=2", "D0 to H");
    tn_eviction got[64] = {TN_EVICTION_INIT};
    size_t count = 64;
    char text[32], *entry;
    double began;
    tn_decision *d;

    world_add(w, "f 1 X @D0");
    add_many(w, "d", n, "1 R @D0,D1");
    snprintf(text, sizeof(text), "q %d R @D2", k);
    world_add(w, text);
    world_add(w, "z 1 R @D2; h 1 X @H");
    began = seconds();
    assert_ok(world_decide_for(w, w->controller, "q@D0, z@H", NULL, &d));
    assert_true(seconds() - began < 5);
    assert_ok(tn_decision_evictions(d, got, &count));
    assert_int_equal(count, k);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(got[i].action.kind, TN_ACTION_DROP);
        assert_handle(got[i].action.handle, w->values[i + 1].h);
        assert_int_equal(got[i].rank, 1);
    }
    entry = world_entry(w, d);
    assert_string_equal(entry, "ensure q@D0; ensure z@H");
    free(entry);
    assert_true(explored(d) >= 1 && explored(d) <= canonical);
    tn_decision_drop(d);
    world_end(w);
}

static void cc138_dead_end_that_does_not_depend_on_the_drops(void **state) {
    dead_end(state, 40, 20, TN_SEARCH_LIMIT_DEFAULT);
}

static void cc138_no_more_states_than_the_canonical_walk(void **state) {
    dead_end(state, 10, 5, 392);
    dead_end(state, 14, 7, 6484);
    dead_end(state, 16, 8, 26342);
}

static void impossible(void **state, char message[256]) {
    world *w = with_budget(*state, "P", 1000, "", NULL);
    double began;
    tn_decision *d;
    char *text;

    add_many(w, "v", 1000, "1 R @H,P");
    began = seconds();
    assert_status(world_decide_for(w, w->controller, "v1@H", "P:1001", &d), TN_ERR_PLAN);
    assert_true(seconds() - began < 5);
    snprintf(message, 256, "%s", tn_last_error()->message);
    text = world_refusal(w);
    assert_string_equal(text, "1001 at P, reservation 1; budget 1000, used 1000, reserved 0");
    free(text);
    world_end(w);
}

static void cc139_impossible_with_many_candidates(void **state) {
    char message[256];

    impossible(state, message);
}

static void cc140_text_stays_bounded(void **state) {
    char message[256];

    impossible(state, message);
    assert_true(strlen(message) < 255); /* not cut either */
    assert_non_null(strstr(message, "infeasible"));
    assert_non_null(strstr(message, "reservation"));
    assert_non_null(strstr(message, "1001"));
    assert_non_null(strstr(message, "pinned-host"));
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(cc135_determinism),
    SPEC_BOTH(cc137_deep_plan),
    SPEC_BOTH(cc138_dead_end_that_does_not_depend_on_the_drops),
    SPEC_BOTH(cc138_no_more_states_than_the_canonical_walk),
    SPEC_BOTH(cc139_impossible_with_many_candidates),
    SPEC_BOTH(cc140_text_stays_bounded),
};

TN_TEST_MAIN("spec.control_scale", tests)
