/* SPDX-License-Identifier: MIT */
/*
 * How a search grows (specification 15.1, 15.3; src/controller/proof.c, memory.c, walk.c): the three
 * requests that make the plain walk explode are answered after few states, 50,000 releases use no
 * machine stack, and states are remembered only after a dead end.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "scenario.h"

#include "base/base_internal.h"

/* ---- Text of any length ---- */

typedef struct text {
    char *at;
    size_t count, room;
} text;

static void add(text *t, const char *format, ...) {
    va_list list;
    if (t->room - t->count < 128) {
        t->room = t->room * 2 + 256;
        t->at = realloc(t->at, t->room);
        assert_non_null(t->at);
    }
    va_start(list, format);
    t->count += (size_t)vsnprintf(t->at + t->count, t->room - t->count, format, list);
    va_end(list);
}

/* `d1 1 R @places; d2 ...` */
static void add_many(text *t, unsigned count, const char *places) {
    for (unsigned i = 1; i <= count; i++)
        add(t, "%sd%u 1 R @%s", t->count ? "; " : "", i, places);
}

/* Sanitizers slow things down; the counts are the same. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MOST_NS 200000000u
#define STACK_BYTES (512u << 10)
#else
#ifdef __OPTIMIZE__
#define MOST_NS 10000000u
#else
#define MOST_NS 1000000000u /* of code that is instrumented and not optimised */
#endif
#define STACK_BYTES (64u << 10)
#endif

/* Decide with a limit of states that the plain walk is far above. Returns the states visited, 0 if
 * the request is infeasible. */
static uint64_t decide(struct spec *f, const scenario *of) {
    world *w = world_begin(f, of);
    tn_decision *d = NULL;
    uint64_t states = 0, began = tn_test_cpu_ns();
    tn_status status = world_decide_for(w, w->controller, of->need, of->reserve, &d);
    uint64_t took = tn_test_cpu_ns() - began;
    if (took > MOST_NS)
        fail_msg("%llu ns", (unsigned long long)took);
    if (status == TN_OK) {
        tn_decision_info info = TN_DECISION_INFO_INIT;
        char *reclaim = world_reclaim(w, d);
        assert_ok(tn_decision_read(d, &info));
        assert_string_equal(reclaim, of->reclaim);
        states = info.explored_states;
        free(reclaim);
        tn_decision_drop(d);
    } else {
        assert_status(status, TN_ERR_PLAN);
    }
    world_end(w);
    return states;
}

/* `drop d1@D0 (rank R, ...); ...` */
static void drops(text *t, unsigned count, const char *at, unsigned rank) {
    for (unsigned i = 1; i <= count; i++)
        add(t, "%sdrop d%u@%s (rank %u, 1 at %s, replica remains)", t->count ? "; " : "", i, at,
            rank, at);
}

/* ---- An impossible request, c droppable candidates (CC139): 2^c states ---- */

static void impossible(struct spec *f, unsigned c) {
    text values = {0}, budgets = {0}, reserve = {0};
    add(&budgets, "P=%u", c);
    add(&reserve, "P:%u", c + 1);
    add_many(&values, c, "H,P");
    assert_int_equal(decide(f, &(scenario){.budgets = budgets.at,
                                           .values = values.at,
                                           .need = "d1@H",
                                           .reserve = reserve.at,
                                           .limit = c + 1}),
                     0);
    free(values.at), free(budgets.at), free(reserve.at);
}

static void impossible_request_is_refused_in_as_many_states_as_candidates(void **state) {
    impossible(*state, 17);
    impossible(*state, 40);
    impossible(*state, 1000);
}

/* ---- A bad early choice f, then a dead end that does not depend on the drops (CC138) ---- */

static void bad_choice(struct spec *f, unsigned n, unsigned k) {
    text values = {0}, budgets = {0}, reclaim = {0};
    add(&budgets, "D0=%u, H=2", n + 1);
    add(&values, "f 1 X @D0");
    add_many(&values, n, "D0,D1");
    add(&values, "; q %u R @D2; z 1 R @D2; h 1 X @H", k);
    drops(&reclaim, k, "D0", 1); /* f has rank 0 and keeps it */
    uint64_t states = decide(f, &(scenario){.budgets = budgets.at,
                                            .values = values.at,
                                            .tiers = "D0 to H",
                                            .need = "q@D0, z@H",
                                            .reclaim = reclaim.at});
    assert_in_range(states, k + 1, 2 * k + 2);
    free(values.at), free(budgets.at), free(reclaim.at);
}

static void bad_early_choice_costs_one_more_way_down(void **state) {
    bad_choice(*state, 10, 5);
    bad_choice(*state, 18, 9);
    bad_choice(*state, 200, 100);
}

/* ---- A spill whose room needs k of m nested releases, then a dead end: m!/(m-k)! orders ---- */

/* Nothing helps: h does not leave H, where z must go. */
static void hopeless_spill(struct spec *f, unsigned m, unsigned k) {
    text values = {0}, budgets = {0};
    add(&budgets, "D0=%u, P=%u, H=1", k, m);
    add_many(&values, m, "P,D1");
    add(&values, "; x %u X @D0; q %u R @D2; z 1 R @D2; h 1 X @H", k, k);
    assert_int_equal(decide(f, &(scenario){.budgets = budgets.at,
                                           .values = values.at,
                                           .tiers = "D0 to P",
                                           .need = "q@D0, z@H",
                                           .limit = 3 * m}),
                     0);
    free(values.at), free(budgets.at);
}

static void spill_into_a_dead_end_is_refused_at_once(void **state) {
    hopeless_spill(*state, 10, 5);
    hopeless_spill(*state, 20, 10);
    hopeless_spill(*state, 100, 50);
}

/* P cannot take x beside what is to be reserved there, whatever goes; H can. */
static void spill_elsewhere(struct spec *f, unsigned m, unsigned k) {
    text values = {0}, budgets = {0}, reserve = {0}, reclaim = {0};
    add(&budgets, "D0=%u, P=%u, H=%u", k, m, k + 1);
    add(&reserve, "P:%u", m - k + 1);
    add_many(&values, m, "P,D1");
    add(&values, "; x %u X @D0; q %u R @D2; z 1 R @D2", k, k);
    drops(&reclaim, m - k + 1, "P", 0);
    add(&reclaim, "; move x D0->H (rank 0, %u at D0, to tier)", k);
    uint64_t states = decide(f, &(scenario){.budgets = budgets.at,
                                            .values = values.at,
                                            .tiers = "D0 to P, H",
                                            .need = "q@D0, z@H",
                                            .reserve = reserve.at,
                                            .reclaim = reclaim.at});
    assert_in_range(states, m - k + 3, 2 * m);
    free(values.at), free(budgets.at), free(reserve.at), free(reclaim.at);
}

static void spill_that_cannot_stay_goes_to_the_next_tier(void **state) {
    spill_elsewhere(*state, 10, 7);
    spill_elsewhere(*state, 20, 14);
    spill_elsewhere(*state, 100, 70);
}

/* ---- Many releases, no dead end ---- */

struct many {
    tn_manager *m;
    tn_controller *controller;
    tn_request *request;
    size_t count;
};

/* `count` replicas of 32 bytes pinned, all to be dropped for a reservation. */
static struct many many_of(struct spec *f, size_t count) {
    struct many many = {.m = MANAGER(f, {N, 32 * count}), .count = count};
    tn_request_spec spec = TN_REQUEST_SPEC_INIT;
    tn_reservation_spec all = {N, 32 * count, "all"};
    tn_requirement need = {adopt_rep(f, many.m, P), P};
    for (size_t i = 0; i < count; i++)
        ensure(many.m, adopt_rep(f, many.m, P), N);
    spec.name = "many";
    spec.requirements = &need;
    spec.requirement_count = 1;
    spec.reservations = &all;
    spec.reservation_count = 1;
    assert_ok(tn_controller_create(many.m, NULL, &many.controller));
    assert_ok(tn_request_create(&spec, &many.request));
    return many;
}

static void many_end(struct many *many) {
    tn_request_destroy(many->request);
    tn_controller_destroy(many->controller);
}

static void *decide_many(void *arg) {
    struct many *many = arg;
    tn_decision *d = NULL;
    tn_decision_info info = TN_DECISION_INFO_INIT;
    if (tn_controller_decide(many->controller, many->request, &d) != TN_OK)
        return (void *)"not decided";
    bool right = tn_decision_read(d, &info) == TN_OK && info.eviction_count == many->count &&
                 info.explored_states == many->count + 1;
    tn_decision_drop(d);
    return right ? NULL : (void *)"not all dropped";
}

static void fifty_thousand_releases_need_no_stack(void **state) {
    struct many many = many_of(*state, 50000);
    pthread_attr_t small;
    pthread_t thread;
    void *failed;
    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, STACK_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &small, decide_many, &many), 0);
    assert_int_equal(pthread_join(thread, &failed), 0);
    pthread_attr_destroy(&small);
    assert_null_text(failed);
    many_end(&many);
}

/* A remembered state is an allocation of its own, and another for its key. */
static void without_a_dead_end_no_state_is_remembered(void **state) {
    struct many many = many_of(*state, 2000);
    tn__fault_alloc(2400); /* the dry run copies each value; candidates come in blocks */
    const char *failed = decide_many(&many);
    assert_false(tn__fault_alloc_fired());
    tn__fault_alloc(0);
    assert_null_text(failed);
    many_end(&many);
}

static const struct CMUnitTest tests[] = {
    SPEC_CONCURRENT(impossible_request_is_refused_in_as_many_states_as_candidates),
    SPEC_CONCURRENT(bad_early_choice_costs_one_more_way_down),
    SPEC_CONCURRENT(spill_into_a_dead_end_is_refused_at_once),
    SPEC_CONCURRENT(spill_that_cannot_stay_goes_to_the_next_tier),
    SPEC_CONCURRENT(fifty_thousand_releases_need_no_stack),
    SPEC_CONCURRENT(without_a_dead_end_no_state_is_remembered),
};

TN_TEST_MAIN("unit.controller_growth", tests)
