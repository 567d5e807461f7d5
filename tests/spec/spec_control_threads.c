/* SPDX-License-Identifier: MIT */
/*
 * Threads and callbacks (C56, C61, C124, C149..C157; cases CC130..CC134, CC136).
 */
#include "scenario.h"

#include <pthread.h>

static bool by_version(const world *w) { return w->f->mode == TN_MODE_SERIAL; }

/* ---- Sources --------------------------------------------------------------------------------- */

/* What a source does while it loads. */
typedef struct visitor {
    world *w;
    tn_request *request;
    tn_status decided, set;
} visitor;

static void *decide_and_set(void *context) {
    visitor *v = context;
    tn_decision *d = NULL;

    v->decided = tn_controller_decide(v->w->controller, v->request, &d);
    tn_decision_drop(d);
    v->set = tn_controller_set_metadata(v->w->controller, world_handle(v->w, "a"), 1, NULL);
    return NULL;
}

static tn_status from_inside(void *context, const tn_load_request *request) {
    visitor *v = context;

    (void)request;
    decide_and_set(v);
    return v->decided;
}

static tn_status on_another_thread(void *context, const tn_load_request *request) {
    pthread_t thread;

    (void)request;
    if (pthread_create(&thread, NULL, decide_and_set, context) != 0 ||
        pthread_join(thread, NULL) != 0)
        abort();
    return TN_OK;
}

static const scenario with_source = {.values = "a 1 R @H; s 1 R src=H"};

static visitor visited(world *w, tn_status (*hook)(void *, const tn_load_request *),
                       tn_status expected) {
    visitor v = {w, world_request(w, "a@P", NULL), TN_OK, TN_OK};
    tn_request *request = world_request(w, "s@P", NULL);
    tn_use *use = world_use(w, w->controller, request);
    tt_source *source = world_value_of(w, "s")->source;

    source->hook = hook;
    source->hook_context = &v;
    assert_status(tn_use_enter(use), expected);
    assert_int_equal(source->calls, 1);
    tn_use_destroy(use);
    tn_request_destroy(request);
    tn_request_destroy(v.request);
    return v;
}

static void cc130_controller_calls_from_a_source(void **state) {
    world *w = world_begin(*state, &with_source);
    visitor v = visited(w, from_inside, TN_ERR_PLAN_EXEC);

    assert_int_equal(tn_last_error()->cause_status, TN_ERR_REENTRANCY);
    assert_int_equal(v.decided, TN_ERR_REENTRANCY);
    assert_int_equal(v.set, TN_ERR_REENTRANCY);
    world_check(w, "s@-");
    world_end(w);
}

static void cc131_decide_on_another_thread_during_a_load(void **state) {
    world *w = world_begin(*state, &with_source);
    visitor v = visited(w, on_another_thread, TN_OK);
    tn_status expected = by_version(w) ? TN_ERR_REENTRANCY : TN_OK; /* D3 */

    assert_int_equal(v.decided, expected);
    assert_int_equal(v.set, expected);
    world_check(w, "s@P");
    world_end(w);
}

/* ---- Concurrent uses ------------------------------------------------------------------------- */

#define THREADS 4
#define LOOPS 500

typedef struct crowd {
    world *w;
    tn_request *requests[THREADS];
    bool pressure;
    uint64_t entries[THREADS], stale[THREADS], refused[THREADS], absent[THREADS];
} crowd;

/* Enter once; every failure is one of those that C151 names. */
static const char *one_use(crowd *c, int index) {
    tn_use *use = NULL;
    const void *data = NULL;
    const tn_requirement *row = NULL;
    size_t count = 0;
    tn_status status;

    TN_WORKER_STATUS(tn_use_create(c->w->controller, c->requests[index], NULL, &use), TN_OK);
    status = tn_use_enter(use);
    c->entries[index] += status == TN_OK;
    c->stale[index] += status == TN_ERR_STALE;
    c->refused[index] += status == TN_ERR_PLAN;
    c->absent[index] += status == TN_ERR_UNAVAILABLE;
    if (status == TN_OK) {
        TN_WORKER_STATUS(tn_request_requirements(c->requests[index], &row, &count), TN_OK);
        TN_WORKER_STATUS(tn_use_value(use, row->handle, row->at, &data), TN_OK);
        TN_WORKER_CHECK(tt_check(data, (uint64_t)index + 1));
        TN_WORKER_STATUS(tn_use_exit(use), TN_OK);
    } else if (status != TN_ERR_STALE &&
               !(c->pressure && (status == TN_ERR_PLAN || status == TN_ERR_UNAVAILABLE))) {
        return tn_test_text("%s: %s", tn_status_name(status), tn_last_error()->message);
    }
    tn_use_destroy(use);
    return NULL;
}

static const char *worker(int index, void *arg) {
    const char *text = NULL;

    for (int i = 0; i < LOOPS && text == NULL && !tn_test_workers_failed(); i++)
        text = one_use(arg, index);
    return text;
}

static uint64_t sum(const uint64_t *n) { return n[0] + n[1] + n[2] + n[3]; }

/* Nothing is left over, and the bytes are those of what is resident. */
static void assert_quiet(world *w) {
    static const char *const names[] = {"a", "b", "c", "d"};
    tn_snapshot_info head = info(w->m);
    tn_location_info row = loc(w->m, N);
    uint64_t bytes = 0;

    assert_int_equal(head.lease_count, 0);
    assert_int_equal(head.pending_lease_count, 0);
    assert_int_equal(head.reservation_count, 0);
    for (size_t i = 0; i < 4; i++)
        bytes += resident(w->m, world_handle(w, names[i]), N);
    assert_int_equal(row.used_bytes, bytes);
    assert_true(row.peak_charged_bytes <= row.budget_bytes);
}

static void run_crowd(void **state, const char *budgets, bool pressure) {
    static const char *const needs[] = {"a@P", "b@P", "c@P", "d@P"};
    scenario of = {.budgets = budgets, .values = "a 1 R @H; b 1 R @H; c 1 R @H; d 1 R @H"};
    world *w = world_begin(*state, &of);
    crowd c = {.w = w, .pressure = pressure};
    tn_use_info last = TN_USE_INFO_INIT;
    tn_use *use = NULL;

    for (size_t i = 0; i < THREADS; i++)
        c.requests[i] = world_request(w, needs[i], NULL);
    assert_null_text(tn_test_workers_run(THREADS, worker, &c));
    assert_true(sum(c.entries) > 0);
    assert_int_equal(sum(c.entries) + sum(c.stale) + sum(c.refused) + sum(c.absent),
                     THREADS * LOOPS);
    assert_quiet(w);
    assert_ok(tn_use_create(w->controller, c.requests[0], NULL, &use));
    assert_ok(tn_use_enter(use)); /* alone: nothing is in its way */
    assert_ok(tn_use_read(use, &last));
    if (by_version(w))
        assert_int_equal(last.epoch, sum(c.entries) + 1);
    tn_use_destroy(use);
    for (size_t i = 0; i < THREADS; i++)
        tn_request_destroy(c.requests[i]);
    world_end(w);
}

static void cc132_concurrent_uses(void **state) { run_crowd(state, "P=4", false); }

static void cc133_concurrent_pressure(void **state) { run_crowd(state, "P=2", true); }

/* ---- Metadata while deciding ----------------------------------------------------------------- */

static const scenario cc134 = {.budgets = "P=2", .values = "a 1 R @H,P; b 1 R @H,P; q 1 R @H"};

/* Worker 0 sets, worker 1 decides. */
static const char *set_or_decide(int index, void *arg) {
    world *w = arg;
    tn_handle a = world_handle(w, "a"), b = world_handle(w, "b");
    tn_request *request = index == 1 ? world_request(w, "q@P", NULL) : NULL;

    for (int i = 0; i < 2000 && !tn_test_workers_failed(); i++) {
        tn_eviction eviction[2] = {TN_EVICTION_INIT};
        size_t count = 2;
        tn_decision *d = NULL;

        if (index == 0) { /* a is first, then b, and never are they equal */
            TN_WORKER_STATUS(tn_controller_set_metadata(w->controller, a, i % 2 ? -5 : 5,
                                                        i % 2 ? "first" : NULL),
                             TN_OK);
            continue;
        }
        TN_WORKER_STATUS(tn_controller_decide(w->controller, request, &d), TN_OK);
        TN_WORKER_STATUS(tn_decision_evictions(d, eviction, &count), TN_OK);
        TN_WORKER_CHECK(count == 1 && eviction[0].rank == 0 && eviction[0].released_bytes == 1);
        TN_WORKER_CHECK(tn_handle_equal(eviction[0].action.handle, a) ||
                        tn_handle_equal(eviction[0].action.handle, b));
        tn_decision_drop(d);
    }
    tn_request_destroy(request);
    return NULL;
}

static void cc134_metadata_while_deciding(void **state) {
    world *w = world_begin(*state, &cc134);
    uint64_t before = version(w->m);

    assert_null_text(tn_test_workers_run(2, set_or_decide, w));
    assert_int_equal(version(w->m), before);
    world_end(w);
}

/* ---- Closed ---------------------------------------------------------------------------------- */

static void cc136_closed_manager(void **state) {
    world *w = world_begin(*state, &with_source);
    tn_request *request = world_request(w, "a@P", NULL);
    tn_use *use = world_use(w, w->controller, request);
    tn_decision *d = NULL;

    assert_ok(tn_manager_close(w->m, 0));
    assert_status(tn_controller_decide(w->controller, request, &d), TN_ERR_CLOSED);
    assert_null(d);
    assert_status(tn_controller_set_metadata(w->controller, world_handle(w, "a"), 1, NULL),
                  TN_ERR_CLOSED);
    assert_status(tn_use_enter(use), TN_ERR_CLOSED);
    tn_use_destroy(use);
    tn_request_destroy(request);
    world_end(w);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(cc130_controller_calls_from_a_source),
    SPEC_BOTH(cc131_decide_on_another_thread_during_a_load),
    SPEC_BOTH(cc132_concurrent_uses),
    SPEC_BOTH(cc133_concurrent_pressure),
    SPEC_BOTH(cc134_metadata_while_deciding),
    SPEC_BOTH(cc136_closed_manager),
};

TN_TEST_MAIN("spec.control_threads", tests)
