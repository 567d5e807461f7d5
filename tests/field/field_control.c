/* SPDX-License-Identifier: MIT */
/* Field cases: full tiers, what is evicted, and what it costs. */
#include "tn_test.h"

#include <stdlib.h>

#include "base/base_internal.h"

#include "control_util.h"

/* ---- F-D04: nothing evictable: refused at once, never spun on --------------------------------- */

#define BLOCK 65536u
#define FULL 16u

static void expect_full(struct control *c, tn_manager *m, tn_handle y) {
    struct spec *f = c->f;
    uint64_t before = version(m), began = tn_sim_now_ns(f->sim);
    tn_requirement need = {y, C0};
    tn_decision *decision = NULL;
    tn_request *request = control_request(&need, 1);

    assert_status(tn_manager_ensure(m, y, C0, NULL, NULL), TN_ERR_BUDGET);
    assert_budget_error(C0, 1048576, 1048576, 0, BLOCK);
    assert_status(tn_controller_decide(c->controller, request, &decision), TN_ERR_PLAN);
    assert_at(tn_last_error()->at, C0);
    assert_int_equal(tn_last_error()->reason, TN_REASON_BUDGET);
    assert_int_equal(tn_last_error()->budget_bytes, 1048576);
    assert_int_equal(tn_last_error()->used_bytes, 1048576);
    assert_int_equal(tn_last_error()->reserved_bytes, 0);
    assert_int_equal(tn_last_error()->requested_bytes, BLOCK);
    assert_handle(tn_last_error()->handle, y); /* a materialization, not a reservation */
    assert_string_equal(tn_last_error()->label, "");
    assert_int_equal(version(m), before);
    assert_int_equal(tn_sim_now_ns(f->sim), began);
    tn_request_destroy(request);
}

static void f_d04_nothing_evictable(void **state) {
    struct spec *f = *state;
    struct control c;
    struct field_action away = {.kind = TN_ACTION_MOVE, .at = N}, here = {.kind = TN_ACTION_ENSURE};
    tn_handle x = {0, 0, NULL}, y;
    tn_hold holds[FULL];
    tn_manager *m;

    spec_machine(f, "dev:1 latency=10ms");
    m = MANAGER(f, {C0, 1048576});
    control_begin(&c, f, m, NULL, 0);
    for (uint32_t i = 0; i < FULL; i++) {
        tn_handle h = field_adopt(f, m, C0, i ? TN_REPLICABLE : TN_EXCLUSIVE, BLOCK, 1);

        x = i ? x : h;
        holds[i] = hold(m, h, C0);
    }
    y = field_rep(f, m, BLOCK, 2);
    expect_full(&c, m, y);
    release_hold(&holds[0]);
    assert_ok(tn_sim_set_waits(f->sim, TN_SIM_WAITS_BLOCK));
    away.h = x;
    field_act(&away, f, m);
    while (tn_sim_stalled(f->sim) == 0 && field_calls(f, TN_SIM_COPY) == 0)
        field_nap(1);
    field_nap(5);
    field_until(f, 1);
    here.h = y;
    here.at = C0;
    field_act(&here, f, m);
    field_nap(20);
    if (atomic_load(&here.thread.done)) /* it must wait */
        field_join(&here.thread);
    assert_false(atomic_load(&here.thread.done));
    for (uint64_t t = 10; !atomic_load(&here.thread.done); t++) {
        field_until(f, t);
        field_nap(5);
    }
    field_join(&away.thread);
    field_join(&here.thread);
    assert_true(here.ended_ns >= 10 * MS);
    assert_int_equal(used(m, C0), 1048576);
    assert_peaks(m, C0, 1048576, 1048576);
    for (uint32_t i = 1; i < FULL; i++)
        release_hold(&holds[i]);
    control_end(&c);
    field_conserved(f, m);
}

/* ---- F-D08: start full, then run ---------------------------------------------------------------- */

static void f_d08_start_full(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {C0, 4 * BLOCK});
    tt_source *source = spec_source(f);
    tn_handle h[12];
    struct control c;
    uint64_t before, loads;

    control_begin(&c, f, m, NULL, 0);
    for (int i = 0; i < 12; i++) {
        h[i] = field_src(m, source, BLOCK);
        if (i < 4)
            ensure(m, h[i], C0);
    }
    before = version(m);
    loads = source->calls;
    for (int i = 0; i < 400; i++) {
        control_use(&c, h[(4 + i) % 12], C0);
        assert_int_equal(used(m, C0), 4 * BLOCK);
    }
    assert_int_equal(source->calls, loads + 400);
    assert_int_equal(c.drops, 400);
    assert_peaks(m, C0, 4 * BLOCK, 4 * BLOCK);
    assert_int_equal(reserved(m, P), 0);
    assert_int_equal(version(m), before + 2000);
    control_end(&c);
    field_conserved(f, m);
}

/* ---- F-D09: the library's own accesses are not use ------------------------------------------------ */

/* The victims of one decision, in order. */
static tn_decision *decide(struct control *c, tn_handle h, tn_location at) {
    tn_requirement need = {h, at};
    tn_request *request = control_request(&need, 1);
    tn_decision *decision = NULL;

    assert_ok(tn_controller_decide(c->controller, request, &decision));
    tn_request_destroy(request);
    return decision;
}

static tn_decision_info head(const tn_decision *d) {
    tn_decision_info info = TN_DECISION_INFO_INIT;

    assert_ok(tn_decision_read(d, &info));
    return info;
}

#define SMALL 1024u

static void f_d09_only_uses_are_use(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {C0, 100 * SMALL});
    tn_eviction evictions[100] = {TN_EVICTION_INIT};
    size_t count = 100;
    tt_source *source = spec_source(f);
    tn_handle h[100], big;
    tn_decision *d;
    struct control c;
    tn_hold first;
    tn_lease second;

    control_begin(&c, f, m, NULL, 0);
    for (int i = 0; i < 100; i++)
        ensure(m, h[i] = field_src(m, source, SMALL), C0);
    for (int i = 0; i < 100; i++)
        control_use(&c, h[i], C0);
    for (int i = 49; i >= 0; i--)
        ensure(m, h[i], P);
    first = hold(m, h[0], P);
    second = acquire(m, h[1], P, NULL);
    for (int i = 0; i < 10; i++)
        tn_decision_drop(decide(&c, h[i], C0));
    release(&second);
    release_hold(&first);
    big = field_src(m, source, 100 * SMALL);
    d = decide(&c, big, C0);
    assert_int_equal(head(d).explored_states, 101);
    assert_ok(tn_decision_evictions(d, evictions, &count));
    assert_int_equal(count, 100);
    for (int i = 0; i < 100; i++)
        assert_handle(evictions[i].action.handle, h[i]);
    tn_decision_drop(d);
    control_end(&c);
    field_conserved(f, m);
}

#define FREE 10u

static void f_d09_the_one_that_is_free(void **state) {
    struct spec *f = *state;
    uint64_t many = field_number(20000, 100000), apart = many / FREE;
    tn_manager *m = MANAGER(f, {C0, many * 16});
    tn_handle *h = malloc(many * sizeof *h), more, *held = malloc(many * sizeof *held);
    tt_source *source = spec_source(f);
    tn_eviction one = TN_EVICTION_INIT;
    size_t count = 1, holding = 0;
    struct control c;
    uint64_t took = UINT64_MAX;
    tn_decision *d;
    tn_hold all;

    assert_non_null(h);
    assert_non_null(held);
    control_begin(&c, f, m, NULL, 0);
    for (uint64_t i = 0; i < many; i++) {
        ensure(m, h[i] = field_src(m, source, 16), C0);
        if (i % apart != 1777)
            held[holding++] = h[i];
    }
    assert_int_equal(holding, many - FREE);
    assert_ok(tn_manager_hold(m, held, holding, C0, &all));
    more = field_rep(f, m, 16, 1);
    for (int i = 0; i < 5; i++) {
        uint64_t began = tn_test_cpu_ns(), lasted;

        d = decide(&c, more, C0);
        lasted = tn_test_cpu_ns() - began;
        took = lasted < took ? lasted : took;
        assert_int_equal(head(d).explored_states, 2);
        count = 1;
        assert_ok(tn_decision_evictions(d, &one, &count));
        assert_int_equal(count, 1);
        assert_handle(one.action.handle, h[1777]);
        tn_decision_drop(d);
    }
    print_message("    %llu values\n", (unsigned long long)many);
    field_time("a decision among them", took, 20 * MS);
    release_hold(&all);
    free(h);
    free(held);
    control_end(&c);
    field_conserved(f, m);
}

/* ---- F-D24: nearly everything is protected ------------------------------------------------------------ */

static void f_d24_releasing_nothing(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_lease none = {NULL, 0};
    uint64_t before = version(m);

    assert_ok(tn_lease_release(&none, 0));
    assert_int_equal(version(m), before);
    assert_status(tn_lease_release(NULL, 0), TN_ERR_KIND);
    field_conserved(f, m);
}

#define CROWD 4096u
#define DECIDERS 32

struct deciders {
    tn_manager *m;
    tn_controller *controllers[DECIDERS];
    tn_decision *decisions[DECIDERS];
    tn_request *request;
    tn_handle victim;
    _Atomic uint32_t entered, stale;
    bool full;
};

static const char *expect_one_victim(struct deciders *x, const tn_decision *d) {
    tn_decision_info info = TN_DECISION_INFO_INIT;
    tn_eviction one = TN_EVICTION_INIT;
    size_t count = 1;

    TN_WORKER_STATUS(tn_decision_read(d, &info), TN_OK);
    TN_WORKER_CHECK(info.explored_states == 2 && info.eviction_count == 1);
    TN_WORKER_STATUS(tn_decision_evictions(d, &one, &count), TN_OK);
    TN_WORKER_CHECK(one.rank == 0 && one.action.kind == TN_ACTION_DROP);
    TN_WORKER_CHECK(tn_handle_equal(one.action.handle, x->victim));
    return NULL;
}

static const char *decide_all(int index, void *arg) {
    struct deciders *x = arg;
    tn_status status =
        tn_controller_decide(x->controllers[index], x->request, &x->decisions[index]);

    if (x->full) {
        TN_WORKER_STATUS(status, TN_ERR_PLAN);
        const tn_error *e = tn_last_error();
        TN_WORKER_CHECK(tn_location_equal(e->at, C0) && e->budget_bytes == CROWD * 64);
        TN_WORKER_CHECK(e->used_bytes == CROWD * 64 && e->reserved_bytes == 0);
        return NULL;
    }
    TN_WORKER_STATUS(status, TN_OK);
    return expect_one_victim(x, x->decisions[index]);
}

static const char *enter_all(int index, void *arg) {
    struct deciders *x = arg;
    tn_scope *scope = NULL;

    TN_WORKER_STATUS(
        tn_controller_scope(x->controllers[index], x->decisions[index], NULL, 0, &scope), TN_OK);
    tn_status status = tn_scope_enter(scope);
    TN_WORKER_CHECK(status == TN_OK || status == TN_ERR_STALE);
    atomic_fetch_add(status == TN_OK ? &x->entered : &x->stale, 1);
    TN_WORKER_STATUS(tn_scope_close(scope), TN_OK);
    TN_WORKER_STATUS(tn_scope_destroy(scope), TN_OK);
    return NULL;
}

static void f_d24_nearly_everything_is_protected(void **state) {
    struct spec *f = *state;
    struct deciders x = {.m = MANAGER(f, {C0, CROWD * 64})};
    tn_handle *held = malloc(CROWD * sizeof *held), w;
    tn_requirement need;
    uint32_t count = 0;
    tn_hold all, last;
    uint64_t before;

    assert_non_null(held);
    for (uint32_t i = 0; i < CROWD; i++) {
        tn_handle h = field_rep_at(f, x.m, C0, 64, 1);

        if (i == 2048)
            x.victim = h;
        else
            held[count++] = h;
    }
    assert_ok(tn_manager_hold(x.m, held, count, C0, &all));
    w = field_rep(f, x.m, 64, 2);
    need = (tn_requirement){w, C0};
    x.request = control_request(&need, 1);
    for (int i = 0; i < DECIDERS; i++)
        assert_ok(tn_controller_create(x.m, NULL, &x.controllers[i]));
    assert_null_text(tn_test_workers_run(DECIDERS, decide_all, &x));
    assert_null_text(tn_test_workers_run(DECIDERS, enter_all, &x));
    assert_int_equal(x.entered, 1);
    assert_int_equal(x.stale, DECIDERS - 1);
    last = hold(x.m, w, C0);
    tn_request_destroy(x.request);
    need.handle = x.victim;
    x.request = control_request(&need, 1);
    x.full = true;
    before = version(x.m);
    assert_null_text(tn_test_workers_run(DECIDERS, decide_all, &x));
    assert_int_equal(version(x.m), before);
    for (int i = 0; i < DECIDERS; i++) {
        tn_decision_drop(x.decisions[i]);
        tn_controller_destroy(x.controllers[i]);
    }
    tn_request_destroy(x.request);
    release_hold(&last);
    release_hold(&all);
    free(held);
    field_conserved(f, x.m);
}

static const struct CMUnitTest tests[] = {
    FIELD_BOTH(f_d04_nothing_evictable), FIELD_BOTH(f_d08_start_full),
    FIELD_BOTH(f_d09_only_uses_are_use), FIELD_BOTH(f_d09_the_one_that_is_free),
    FIELD_BOTH(f_d24_releasing_nothing), FIELD_BOTH(f_d24_nearly_everything_is_protected),
};

TN_TEST_MAIN("field.control", tests)
