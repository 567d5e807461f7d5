/* SPDX-License-Identifier: MIT */
/* src/driver/sim/sim_clock.c: virtual time moves where it should and no further; order among
 * streams; both kinds of waiting. */
#include "sim_machine.h"

#include <pthread.h>

static void clock_stands_still_by_itself(void **state) {
    struct machine m = machine_open(NULL);
    tn_stream s = stream_on(&m, 0);

    (void)state;
    assert_ok(tn_sim_queue_delay(m.sim, s, 10 * MS));
    assert_int_equal(tn_sim_now_ns(m.sim), 0);
    assert_false(tn_sim_stream_idle(m.sim, s));
    machine_close(&m);
}

static void clock_advanced_completes_what_is_due(void **state) {
    struct machine m = machine_open(NULL);
    tn_stream s = stream_on(&m, 0);

    (void)state;
    assert_ok(tn_sim_queue_delay(m.sim, s, 10 * MS));
    assert_ok(tn_sim_queue_delay(m.sim, s, 5 * MS));
    advance_ms(&m, 10);
    assert_false(tn_sim_stream_idle(m.sim, s));
    assert_ok(tn_sim_advance(m.sim, 5 * MS - 1));
    assert_false(tn_sim_stream_idle(m.sim, s));
    assert_ok(tn_sim_advance(m.sim, 1));
    assert_true(tn_sim_stream_idle(m.sim, s));
    assert_int_equal(now_ms(&m), 15);
    machine_close(&m);
}

static void clock_runs_until_nothing_is_queued(void **state) {
    struct machine m = machine_open("dev:2");
    tn_stream a = stream_on(&m, 0);
    tn_stream b = stream_on(&m, 1);

    (void)state;
    assert_ok(tn_sim_queue_delay(m.sim, a, 3 * MS));
    assert_ok(tn_sim_queue_delay(m.sim, b, 7 * MS));
    assert_ok(tn_sim_queue_delay(m.sim, a, 3 * MS));
    assert_ok(tn_sim_run(m.sim));
    assert_int_equal(now_ms(&m), 7);
    assert_true(tn_sim_stream_idle(m.sim, a));
    assert_true(tn_sim_stream_idle(m.sim, b));
    machine_close(&m);
}

static void work_queued_late_starts_late(void **state) {
    struct machine m = machine_open(NULL);
    tn_stream s = stream_on(&m, 0);

    (void)state;
    advance_ms(&m, 100);
    assert_ok(tn_sim_queue_delay(m.sim, s, 1 * MS));
    assert_ok(m.ops->stream_synchronize(m.self, s));
    assert_int_equal(now_ms(&m), 101);
    machine_close(&m);
}

static void waiting_moves_the_clock_no_further_than_needed(void **state) {
    struct machine m = machine_open("dev:2");
    tn_stream a = stream_on(&m, 0);
    tn_stream b = stream_on(&m, 1);

    (void)state;
    assert_ok(tn_sim_queue_delay(m.sim, a, 10 * MS));
    assert_ok(tn_sim_queue_delay(m.sim, b, 4 * MS));
    assert_ok(m.ops->stream_synchronize(m.self, b));
    assert_int_equal(now_ms(&m), 4);
    assert_ok(m.ops->device_synchronize(m.self, 1));
    assert_int_equal(now_ms(&m), 4);
    assert_ok(m.ops->device_synchronize(m.self, 0));
    assert_int_equal(now_ms(&m), 10);
    machine_close(&m);
}

struct log {
    char text[32];
    size_t length;
};

static void note(struct log *log, char c) { log->text[log->length++] = c; }

static void note_a(void *context) { note(context, 'a'); }
static void note_b(void *context) { note(context, 'b'); }
static void note_c(void *context) { note(context, 'c'); }

static void work_due_together_runs_in_order_of_streams(void **state) {
    struct machine m = machine_open(NULL);
    tn_stream a = stream_on(&m, 0);
    tn_stream b = stream_on(&m, 0);
    tn_stream c = stream_on(&m, 0);
    struct log log = {.length = 0};

    (void)state;
    assert_ok(tn_sim_queue_delay(m.sim, c, 5 * MS));
    assert_ok(m.ops->host_function(m.self, c, note_c, &log));
    assert_ok(tn_sim_queue_delay(m.sim, b, 5 * MS));
    assert_ok(m.ops->host_function(m.self, b, note_b, &log));
    assert_ok(tn_sim_queue_delay(m.sim, a, 6 * MS));
    assert_ok(m.ops->host_function(m.self, a, note_a, &log));
    assert_ok(tn_sim_queue_delay(m.sim, c, 1 * MS));
    assert_ok(m.ops->host_function(m.self, c, note_c, &log));
    assert_ok(tn_sim_run(m.sim));
    assert_string_equal(log.text, "bcac");
    machine_close(&m);
}

static void clock_near_its_end_does_not_wrap(void **state) {
    struct machine m = machine_open(NULL);
    tn_stream s = stream_on(&m, 0);

    (void)state;
    assert_ok(tn_sim_advance(m.sim, UINT64_MAX));
    assert_ok(tn_sim_queue_delay(m.sim, s, UINT64_MAX));
    assert_ok(tn_sim_advance(m.sim, UINT64_MAX));
    assert_ok(tn_sim_run(m.sim));
    assert_false(tn_sim_stream_idle(m.sim, s));
    machine_close(&m);
}

static void modes_out_of_range_are_refused(void **state) {
    struct machine m = machine_open(NULL);

    (void)state;
    assert_status(tn_sim_set_waits(m.sim, 2), TN_ERR_KIND);
    assert_status(tn_sim_set_state(m.sim, 5), TN_ERR_KIND);
    assert_status(tn_sim_set_host_calls(m.sim, 2), TN_ERR_KIND);
    assert_status(tn_sim_set_waits(NULL, 0), TN_ERR_KIND);
    assert_status(tn_sim_set_state(NULL, 0), TN_ERR_KIND);
    assert_status(tn_sim_set_host_calls(NULL, 0), TN_ERR_KIND);
    assert_status(tn_sim_advance(NULL, 1), TN_ERR_KIND);
    assert_status(tn_sim_run(NULL), TN_ERR_KIND);
    machine_close(&m);
}

/* Blocking waits: another thread moves the clock. */

struct waiter {
    struct machine *m;
    tn_stream stream;
    tn_status status;
    uint64_t woke_ns;
};

static void *synchronize(void *argument) {
    struct waiter *w = argument;

    w->status = w->m->ops->stream_synchronize(w->m->self, w->stream);
    w->woke_ns = tn_sim_now_ns(w->m->sim);
    return NULL;
}

static void wait_in_blocking_mode_ends_when_time_is_moved(void **state) {
    struct machine m = machine_open(NULL);
    struct waiter w = {&m, stream_on(&m, 0), TN_ERR_INTERNAL, 0};
    pthread_t thread;

    (void)state;
    assert_ok(tn_sim_set_waits(m.sim, TN_SIM_WAITS_BLOCK));
    assert_ok(tn_sim_queue_delay(m.sim, w.stream, 10 * MS));
    assert_int_equal(pthread_create(&thread, NULL, synchronize, &w), 0);
    while (tn_sim_calls(m.sim, TN_SIM_STREAM_SYNCHRONIZE) == 0)
        ;
    advance_ms(&m, 9);
    advance_ms(&m, 1);
    pthread_join(thread, NULL);
    assert_status(w.status, TN_OK);
    assert_int_equal(w.woke_ns, 10 * MS);
    machine_close(&m);
}

static void wait_in_blocking_mode_ends_when_the_mode_changes(void **state) {
    struct machine m = machine_open(NULL);
    struct waiter w = {&m, stream_on(&m, 0), TN_ERR_INTERNAL, 0};
    pthread_t thread;

    (void)state;
    assert_ok(tn_sim_set_waits(m.sim, TN_SIM_WAITS_BLOCK));
    assert_ok(tn_sim_queue_delay(m.sim, w.stream, 10 * MS));
    assert_int_equal(pthread_create(&thread, NULL, synchronize, &w), 0);
    while (tn_sim_calls(m.sim, TN_SIM_STREAM_SYNCHRONIZE) == 0)
        ;
    assert_ok(tn_sim_set_waits(m.sim, TN_SIM_WAITS_ADVANCE));
    pthread_join(thread, NULL);
    assert_status(w.status, TN_OK);
    assert_int_equal(w.woke_ns, 10 * MS);
    machine_close(&m);
}

static void wait_in_blocking_mode_ends_when_the_driver_goes(void **state) {
    struct machine m = machine_open(NULL);
    struct waiter w = {&m, stream_on(&m, 0), TN_ERR_INTERNAL, 0};
    pthread_t thread;

    (void)state;
    assert_ok(tn_sim_set_waits(m.sim, TN_SIM_WAITS_BLOCK));
    assert_ok(tn_sim_queue_delay(m.sim, w.stream, 10 * MS));
    assert_int_equal(pthread_create(&thread, NULL, synchronize, &w), 0);
    while (tn_sim_calls(m.sim, TN_SIM_STREAM_SYNCHRONIZE) == 0)
        ;
    assert_ok(tn_sim_set_state(m.sim, TN_SIM_SHUT_DOWN));
    pthread_join(thread, NULL);
    assert_status(w.status, TN_ERR_CLOSED);
    assert_int_equal(w.woke_ns, 0);
    machine_close(&m);
}

/* Many threads move time and wait at once; the work of each takes its own time. */
static const char *worker(int index, void *argument) {
    struct machine *m = argument;
    tn_stream s;
    int i;

    TN_WORKER_STATUS(tn_sim_stream_create(m->sim, 0, 0, &s), TN_OK);
    for (i = 0; i < 200; i++) {
        uint64_t start = tn_sim_now_ns(m->sim);

        TN_WORKER_STATUS(tn_sim_queue_delay(m->sim, s, (uint64_t)(index + 1) * 100), TN_OK);
        TN_WORKER_STATUS(m->ops->stream_synchronize(m->self, s), TN_OK);
        TN_WORKER_CHECK(tn_sim_now_ns(m->sim) >= start + (uint64_t)(index + 1) * 100);
        TN_WORKER_STATUS(tn_sim_advance(m->sim, 1), TN_OK);
    }
    TN_WORKER_STATUS(tn_sim_stream_destroy(m->sim, s), TN_OK);
    return NULL;
}

static void clock_moved_by_many_threads_is_one_clock(void **state) {
    struct machine m = machine_open(NULL);

    (void)state;
    assert_null_text(tn_test_workers_run(4, worker, &m));
    machine_close(&m);
}

/* ---- Order among equals ------------------------------------------------------------------- */

#define EQUALS 6

struct order {
    char names[EQUALS + 1];
    int count;
};

struct note {
    struct order *order;
    char name;
};

static void take_note(void *context) {
    const struct note *note = context;

    note->order->names[note->order->count++] = note->name;
}

/* The order in which streams that are due at the same instant run their host functions. */
static struct order order_of(const char *machine) {
    struct machine m = machine_open(machine);
    struct order order = {{0}, 0};
    struct note notes[EQUALS];
    int i;

    for (i = 0; i < EQUALS; i++) {
        tn_stream s = stream_on(&m, 0);

        notes[i] = (struct note){&order, (char)('a' + i)};
        assert_ok(tn_sim_queue_delay(m.sim, s, MS));
        assert_ok(m.ops->host_function(m.self, s, take_note, &notes[i]));
    }
    assert_ok(tn_sim_run(m.sim));
    assert_int_equal(now_ms(&m), 1);
    assert_int_equal(order.count, EQUALS);
    machine_close(&m);
    return order;
}

static void equals_without_seed_go_by_creation(void **state) {
    (void)state;
    assert_string_equal(order_of(NULL).names, "abcdef");
}

static void equals_with_a_seed_go_by_it(void **state) {
    struct order seen[64];
    int different = 0;
    int seed;
    int i;

    (void)state;
    for (seed = 0; seed < 64; seed++) {
        char machine[32];
        bool known = false;

        snprintf(machine, sizeof(machine), "seed=%d", seed);
        seen[seed] = order_of(machine);
        assert_string_equal(order_of(machine).names, seen[seed].names);
        for (i = 0; i < seed; i++)
            known = known || strcmp(seen[i].names, seen[seed].names) == 0;
        different += !known;
    }
    assert_true(different > 40); /* of 720; 64 draws give 61 on average */
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(equals_without_seed_go_by_creation),
    cmocka_unit_test(equals_with_a_seed_go_by_it),
    cmocka_unit_test(clock_stands_still_by_itself),
    cmocka_unit_test(clock_advanced_completes_what_is_due),
    cmocka_unit_test(clock_runs_until_nothing_is_queued),
    cmocka_unit_test(work_queued_late_starts_late),
    cmocka_unit_test(waiting_moves_the_clock_no_further_than_needed),
    cmocka_unit_test(work_due_together_runs_in_order_of_streams),
    cmocka_unit_test(clock_near_its_end_does_not_wrap),
    cmocka_unit_test(modes_out_of_range_are_refused),
    cmocka_unit_test(wait_in_blocking_mode_ends_when_time_is_moved),
    cmocka_unit_test(wait_in_blocking_mode_ends_when_the_mode_changes),
    cmocka_unit_test(wait_in_blocking_mode_ends_when_the_driver_goes),
    cmocka_unit_test(clock_moved_by_many_threads_is_one_clock),
};

TN_TEST_MAIN("unit.sim_clock", tests)
