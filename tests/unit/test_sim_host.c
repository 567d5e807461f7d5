/* SPDX-License-Identifier: MIT */
/* Host functions of simulated streams: when they run, what they may not do, and that nobody waits
 * behind them needlessly (S1). */
#include "sim_machine.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct visit {
    struct machine *m;
    tn_event event;
    uint64_t at_ns;
    tn_status query;
    tn_status advance;
    int calls;
    pthread_barrier_t *in;
    pthread_barrier_t *out;
};

static void visit(void *context) {
    struct visit *v = context;

    v->calls++;
    v->at_ns = tn_sim_now_ns(v->m->sim);
}

static void visit_and_query(void *context) {
    struct visit *v = context;
    uint32_t done;

    v->calls++;
    v->query = v->m->ops->event_query(v->m->self, v->event, &done);
    v->advance = tn_sim_advance(v->m->sim, 1);
}

static void host_function_runs_in_its_turn(void **state) {
    struct machine m = machine_open(NULL);
    tn_stream s = stream_on(&m, 0);
    struct visit v = {.m = &m};

    (void)state;
    assert_ok(tn_sim_queue_delay(m.sim, s, 3 * MS));
    assert_ok(m.ops->host_function(m.self, s, visit, &v));
    assert_ok(tn_sim_queue_delay(m.sim, s, 3 * MS));
    advance_ms(&m, 2);
    assert_int_equal(v.calls, 0);
    assert_ok(m.ops->stream_synchronize(m.self, s));
    assert_int_equal(v.calls, 1);
    assert_int_equal(v.at_ns, 3 * MS);
    machine_close(&m);
}

static void host_function_due_waits_for_a_call_that_moves_time(void **state) {
    struct machine m = machine_open(NULL);
    tn_stream s = stream_on(&m, 0);
    tn_event e = event_on(&m, 0);
    struct visit v = {.m = &m};

    (void)state;
    assert_ok(m.ops->host_function(m.self, s, visit, &v));
    assert_ok(m.ops->event_record(m.self, e, s));
    assert_false(event_done(&m, e));
    assert_int_equal(v.calls, 0);
    assert_ok(tn_sim_advance(m.sim, 0));
    assert_int_equal(v.calls, 1);
    assert_true(event_done(&m, e));
    machine_close(&m);
}

static void host_function_asked_for_wrongly_is_refused(void **state) {
    struct machine m = machine_open(NULL);
    tn_stream s;

    (void)state;
    assert_status(m.ops->host_function(m.self, (tn_stream)(void *)&m, visit, NULL), TN_ERR_DRIVER);
    assert_status(m.ops->host_function(m.self, stream_on(&m, 0), NULL, NULL), TN_ERR_DRIVER);
    assert_ok(tn_sim_stream_create(m.sim, 0, TN_SIM_STREAM_CAPTURING, &s));
    assert_status(m.ops->host_function(m.self, s, visit, NULL), TN_ERR_DRIVER);
    arm(&m, TN_SIM_HOST_FUNCTION, 1, 1, TN_ERR_DRIVER, 9);
    assert_status(m.ops->host_function(m.self, s, visit, NULL), TN_ERR_DRIVER);
    assert_int_equal(m.ops->last_code(m.self), 9);
    machine_close(&m);
}

static void host_function_calling_the_driver_is_refused_by_mode(void **state) {
    static const char *const clocks[] = {"clock=virtual", "clock=threads"};
    int i;

    (void)state;
    for (i = 0; i < 2; i++) {
        struct machine m = machine_open(clocks[i]);
        tn_stream s = stream_on(&m, 0);
        struct visit v = {.m = &m, .event = event_on(&m, 0)};

        assert_ok(tn_sim_set_host_calls(m.sim, TN_SIM_HOST_CALLS_REFUSE));
        assert_ok(m.ops->host_function(m.self, s, visit_and_query, &v));
        assert_ok(m.ops->stream_synchronize(m.self, s));
        assert_int_equal(v.calls, 1);
        assert_status(v.query, TN_ERR_DRIVER);
        assert_status(v.advance, i == 0 ? TN_ERR_REENTRANCY : TN_ERR_MISUSE);
        assert_true(event_done(&m, v.event));
        machine_close(&m);
    }
}

static void host_function_may_call_another_machine(void **state) {
    struct machine m = machine_open(NULL);
    struct machine other = machine_open(NULL);
    tn_stream s = stream_on(&m, 0);
    struct visit v = {.m = &other, .event = event_on(&other, 0)};

    (void)state;
    assert_ok(m.ops->host_function(m.self, s, visit_and_query, &v));
    assert_ok(tn_sim_run(m.sim));
    assert_status(v.query, TN_OK);
    assert_status(v.advance, TN_OK);
    machine_close(&other);
    machine_close(&m);
}

/* In a child, whose death is the expectation. */
static void call_the_driver_and_die(void) {
    struct machine m = machine_open(NULL);
    tn_stream s = stream_on(&m, 0);
    struct visit v = {.m = &m, .event = event_on(&m, 0)};

    signal(SIGABRT, SIG_DFL);
    if (freopen("/dev/null", "w", stderr) == NULL)
        _exit(2);
    if (m.ops->host_function(m.self, s, visit_and_query, &v) != TN_OK)
        _exit(3);
    _exit(tn_sim_run(m.sim) == TN_OK ? 0 : 4);
}

static void host_function_calling_the_driver_ends_the_process_by_default(void **state) {
    int status = 0;
    pid_t child = fork();

    (void)state;
    if (child == 0)
        call_the_driver_and_die();
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void meet(void *context) {
    struct visit *v = context;

    pthread_barrier_wait(v->in);
    pthread_barrier_wait(v->out);
    v->calls++;
}

static void *run_machine(void *argument) {
    const struct visit *v = argument;

    return tn_sim_run(v->m->sim) == TN_OK ? NULL : argument;
}

static void *advance_machine(void *argument) {
    const struct visit *v = argument;

    return tn_sim_advance(v->m->sim, 1 * MS) == TN_OK ? NULL : argument;
}

/* While one thread is in a host function, others call the driver; those who wait go on when it is
 * over. */
static void host_function_in_progress_blocks_no_other_call(void **state) {
    struct machine m = machine_open(NULL);
    tn_stream s = stream_on(&m, 0);
    tn_stream other = stream_on(&m, 0);
    pthread_barrier_t in;
    pthread_barrier_t out;
    struct visit v = {.m = &m, .event = event_on(&m, 0), .in = &in, .out = &out};
    pthread_t thread;
    pthread_t mover;
    void *failed;

    (void)state;
    pthread_barrier_init(&in, NULL, 2);
    pthread_barrier_init(&out, NULL, 2);
    assert_ok(m.ops->host_function(m.self, s, meet, &v));
    assert_ok(m.ops->event_record(m.self, v.event, s));
    assert_int_equal(pthread_create(&thread, NULL, run_machine, &v), 0);
    pthread_barrier_wait(&in);
    assert_false(event_done(&m, v.event));
    device_drop(&m, 0, device_block(&m, 0, 64), 64);
    assert_ok(tn_sim_queue_delay(m.sim, other, 5 * MS));
    assert_int_equal(pthread_create(&mover, NULL, advance_machine, &v), 0);
    pthread_barrier_wait(&out);
    assert_ok(m.ops->event_synchronize(m.self, v.event));
    assert_ok(m.ops->stream_synchronize(m.self, other));
    pthread_join(thread, &failed);
    assert_null(failed);
    pthread_join(mover, &failed);
    assert_null(failed);
    assert_int_equal(v.calls, 1);
    assert_true(now_ms(&m) >= 5 && now_ms(&m) <= 6);
    pthread_barrier_destroy(&in);
    pthread_barrier_destroy(&out);
    machine_close(&m);
}

static void hook_query(void *context, void *destination, uint64_t bytes) {
    (void)destination;
    (void)bytes;
    visit_and_query(context);
}

static void copy_hook_calling_the_driver_is_refused(void **state) {
    struct machine m = machine_open(NULL);
    unsigned char *p = device_block(&m, 0, 8);
    struct visit v = {.m = &m, .event = event_on(&m, 0)};

    (void)state;
    assert_ok(tn_sim_set_host_calls(m.sim, TN_SIM_HOST_CALLS_REFUSE));
    tn_sim_on_copy(m.sim, hook_query, &v);
    assert_ok(to_device(&m, 0, p, "1234567", 8, NULL));
    assert_status(v.query, TN_ERR_DRIVER);
    device_drop(&m, 0, p, 8);
    machine_close(&m);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(host_function_runs_in_its_turn),
    cmocka_unit_test(host_function_due_waits_for_a_call_that_moves_time),
    cmocka_unit_test(host_function_asked_for_wrongly_is_refused),
    cmocka_unit_test(host_function_calling_the_driver_is_refused_by_mode),
    cmocka_unit_test(host_function_may_call_another_machine),
    cmocka_unit_test(host_function_calling_the_driver_ends_the_process_by_default),
    cmocka_unit_test(host_function_in_progress_blocks_no_other_call),
    cmocka_unit_test(copy_hook_calling_the_driver_is_refused),
};

TN_TEST_MAIN("unit.sim_host", tests)
