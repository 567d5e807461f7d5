/* SPDX-License-Identifier: MIT */
/* src/driver/sim/sim_count.c: calls by thread and by stream; calls that name what is destroyed. */
#include "sim_machine.h"

#include <pthread.h>

static const char *create_events(int index, void *argument) {
    const struct machine *m = argument;
    int i;

    for (i = 0; i <= index; i++) {
        tn_event e;

        TN_WORKER_STATUS(m->ops->event_create(m->self, 0, 1, &e), TN_OK);
        TN_WORKER_STATUS(m->ops->event_destroy(m->self, e), TN_OK);
    }
    TN_WORKER_CHECK(tn_sim_thread_calls(m->sim, TN_SIM_EVENT_CREATE) == (uint64_t)index + 1);
    TN_WORKER_CHECK(tn_sim_thread_calls(m->sim, TN_SIM_ANY) == 2 * ((uint64_t)index + 1));
    return NULL;
}

static void calls_of_each_thread_are_its_own(void **state) {
    struct machine m = machine_open(NULL);

    (void)state;
    assert_int_equal(tn_sim_thread_calls(m.sim, TN_SIM_ANY), 0);
    assert_ok(m.ops->device_synchronize(m.self, 0));
    assert_null_text(tn_test_workers_run(5, create_events, &m));
    assert_int_equal(tn_sim_thread_calls(m.sim, TN_SIM_ANY), 1);
    assert_int_equal(tn_sim_thread_calls(m.sim, TN_SIM_EVENT_CREATE), 0);
    assert_int_equal(tn_sim_thread_calls(m.sim, TN_SIM_ENTRY_COUNT), 0);
    assert_int_equal(tn_sim_calls(m.sim, TN_SIM_EVENT_CREATE), 1 + 2 + 3 + 4 + 5);
    machine_close(&m);
}

static void calls_of_a_thread_survive_a_visit_elsewhere(void **state) {
    struct machine a = machine_open(NULL);
    struct machine b = machine_open(NULL);

    (void)state;
    assert_ok(a.ops->device_synchronize(a.self, 0));
    assert_ok(b.ops->device_synchronize(b.self, 0));
    assert_ok(b.ops->device_synchronize(b.self, 0));
    assert_int_equal(tn_sim_thread_calls(a.sim, TN_SIM_DEVICE_SYNCHRONIZE), 1);
    assert_ok(a.ops->device_synchronize(a.self, 0));
    assert_int_equal(tn_sim_thread_calls(a.sim, TN_SIM_DEVICE_SYNCHRONIZE), 2);
    assert_int_equal(tn_sim_thread_calls(b.sim, TN_SIM_DEVICE_SYNCHRONIZE), 2);
    machine_close(&b);
    machine_close(&a);
}

static void calls_of_a_stream_are_those_that_name_it(void **state) {
    struct machine m = machine_open(NULL);
    tn_stream s = stream_on(&m, 0);
    tn_stream t = stream_on(&m, 0);
    unsigned char *p = device_block(&m, 0, 8);
    tn_event e = event_on(&m, 0);
    tn_stream_info info;

    (void)state;
    assert_true(event_done(&m, e)); /* recorded nowhere */
    assert_ok(m.ops->event_record(m.self, e, s));
    assert_true(event_done(&m, e));
    assert_true(event_done(&m, e));
    assert_ok(m.ops->event_synchronize(m.self, e));
    assert_ok(m.ops->stream_wait(m.self, t, e));
    assert_ok(m.ops->stream_synchronize(m.self, s));
    assert_ok(m.ops->stream_info(m.self, s, &info));
    assert_ok(to_device(&m, 0, p, "1234567", 8, t));
    assert_ok(to_device(&m, 0, p, "1234567", 8, NULL));
    assert_int_equal(tn_sim_stream_calls(m.sim, s, TN_SIM_EVENT_RECORD), 1);
    assert_int_equal(tn_sim_stream_calls(m.sim, s, TN_SIM_EVENT_QUERY), 2);
    assert_int_equal(tn_sim_stream_calls(m.sim, s, TN_SIM_EVENT_SYNCHRONIZE), 1);
    assert_int_equal(tn_sim_stream_calls(m.sim, s, TN_SIM_STREAM_SYNCHRONIZE), 1);
    assert_int_equal(tn_sim_stream_calls(m.sim, s, TN_SIM_ANY), 6);
    assert_int_equal(tn_sim_stream_calls(m.sim, t, TN_SIM_STREAM_WAIT), 1);
    assert_int_equal(tn_sim_stream_calls(m.sim, t, TN_SIM_COPY), 1);
    assert_int_equal(tn_sim_stream_calls(m.sim, t, TN_SIM_ANY), 2);
    assert_int_equal(tn_sim_stream_calls(m.sim, TN_STREAM_LEGACY, TN_SIM_ANY), 0);
    assert_ok(m.ops->stream_synchronize(m.self, TN_STREAM_LEGACY));
    assert_int_equal(tn_sim_stream_calls(m.sim, TN_STREAM_LEGACY, TN_SIM_ANY), 1);
    assert_ok(tn_sim_run(m.sim));
    device_drop(&m, 0, p, 8);
    assert_ok(tn_sim_stream_destroy(m.sim, s));
    assert_int_equal(tn_sim_stream_calls(m.sim, s, TN_SIM_ANY), 0);
    assert_true(event_done(&m, e)); /* its stream is gone, its record is not */
    machine_close(&m);
}

static void calls_naming_the_destroyed_are_counted(void **state) {
    struct machine m = machine_open("seed=7");
    tn_stream s = stream_on(&m, 0);
    tn_event e = event_on(&m, 0);
    tn_event f = event_on(&m, 0);
    uint32_t done;

    (void)state;
    assert_int_equal(tn_sim_seed(m.sim), 7);
    assert_int_equal(tn_sim_stale_calls(m.sim), 0);
    assert_ok(m.ops->event_destroy(m.self, f));
    assert_ok(tn_sim_stream_destroy(m.sim, s));
    assert_status(m.ops->stream_synchronize(m.self, s), TN_ERR_DRIVER);
    assert_status(m.ops->event_record(m.self, e, s), TN_ERR_DRIVER);
    assert_status(m.ops->event_query(m.self, f, &done), TN_ERR_DRIVER);
    assert_int_equal(tn_sim_stale_calls(m.sim), 3);
    assert_non_null(strstr(tn_sim_violation_text(m.sim), "seed=7: stream_synchronize named"));
    assert_int_equal(tn_sim_violations_clear(m.sim), 3);
    assert_string_equal(tn_sim_violation_text(m.sim), "");
    assert_int_equal(tn_sim_stale_calls(m.sim), 3);
    machine_close(&m);
}

static void handles_of_the_destroyed_are_used_again(void **state) {
    struct machine m = machine_open(NULL);
    tn_stream s = stream_on(&m, 0);
    tn_event e = event_on(&m, 0);

    (void)state;
    assert_ok(m.ops->stream_synchronize(m.self, s));
    assert_ok(tn_sim_stream_destroy(m.sim, s));
    assert_ptr_equal(stream_on(&m, 0), s);
    assert_int_equal(tn_sim_stream_calls(m.sim, s, TN_SIM_ANY), 0); /* another stream */
    assert_ok(m.ops->event_record(m.self, e, s));
    assert_ok(m.ops->event_destroy(m.self, e));
    assert_ptr_equal(event_on(&m, 0), e);
    machine_close(&m);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(calls_of_each_thread_are_its_own),
    cmocka_unit_test(calls_of_a_thread_survive_a_visit_elsewhere),
    cmocka_unit_test(calls_of_a_stream_are_those_that_name_it),
    cmocka_unit_test(calls_naming_the_destroyed_are_counted),
    cmocka_unit_test(handles_of_the_destroyed_are_used_again),
};

TN_TEST_MAIN("unit.sim_count", tests)
