/* SPDX-License-Identifier: MIT */
/*
 * The explorer itself: what it must find is found, what cannot happen is not, and a seed repeats its
 * schedule.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lockrank.h"
#include "base/queue.h"
#include "base/rcu.h"
#include "explore.h"
#include "tn_test.h"

static _Atomic uint64_t x, y;
static uint64_t seen_x, seen_y;
static bool fenced;

static void run_two(void (*a)(void *), void (*b)(void *)) {
    const sched_thread threads[] = {{"first", a, NULL}, {"second", b, NULL}};
    sched_run(threads, 2);
}

/* Outcomes of `n` schedules, one bit for each value below 64. */
static uint64_t outcomes(void (*body)(void), uint64_t n) {
    uint64_t bits = 0;
    for (uint64_t i = 0; i < n; i++) {
        sched_outcome o;
        sched_once(body, tn_test_seed() + i, &o);
        if (o.failed)
            fail_msg("%s", o.text);
        bits |= UINT64_C(1) << o.value;
    }
    return bits;
}

static bool fails(void (*body)(void), uint64_t n, sched_outcome *out, uint64_t *seed) {
    for (uint64_t i = 0; i < n; i++) {
        *seed = tn_test_seed() + i;
        sched_once(body, *seed, out);
        if (out->failed)
            return true;
    }
    return false;
}

/* ---- Store buffers ---- */

static void store_x_load_y(void *argument) {
    (void)argument;
    tn__store_rel(&x, 1);
    if (fenced)
        tn__fence_sc();
    seen_y = tn__load_acq(&y);
}

static void store_y_load_x(void *argument) {
    (void)argument;
    tn__store_rel(&y, 1);
    if (fenced)
        tn__fence_sc();
    seen_x = tn__load_acq(&x);
}

static void both_stores(void) {
    run_two(store_x_load_y, store_y_load_x);
    sched_value(seen_x * 2 + seen_y);
}

static void both_stores_fenced(void) {
    fenced = true;
    both_stores();
}

static void stores_are_late_without_a_fence(void **state) {
    (void)state;
    assert_int_equal(outcomes(both_stores, 200), 15);
    assert_int_equal(outcomes(both_stores_fenced, 200), 14);
}

/* The asymmetric pair: light on one side, heavy on the other. */
static void light_side(void *argument) {
    (void)argument;
    tn__store_rel(&x, 1);
    tn__light_fence();
    seen_y = tn__load_acq(&y);
}

static void heavy_side(void *argument) {
    (void)argument;
    tn__store_rel(&y, 1);
    SCHED_OK(tn__heavy_fence());
    seen_x = tn__load_acq(&x);
}

static void fence_pair(void) {
    tn__fence_ready();
    run_two(light_side, heavy_side);
    sched_value(seen_x * 2 + seen_y);
}

static void one_heavy_fence_orders_both_sides(void **state) {
    (void)state;
    assert_int_equal(outcomes(fence_pair, 300), 14);
}

/* Message passing: stores stay in order. */
static void send(void *argument) {
    (void)argument;
    tn__store_rlx(&x, 1);
    tn__store_rel(&y, 1);
}

static void receive(void *argument) {
    (void)argument;
    seen_y = tn__load_acq(&y);
    seen_x = tn__load_acq(&x);
}

static void message(void) {
    run_two(send, receive);
    sched_value(seen_x * 2 + seen_y);
}

static void stores_stay_in_order(void **state) {
    (void)state;
    assert_int_equal(outcomes(message, 200), 1 << 0 | 1 << 2 | 1 << 3);
}

/* ---- Weak memory ---- */

/* Outcomes that only weak memory has. */
static uint64_t if_weak(uint64_t bits) {
    const char *memory = getenv("TN_SCHEDULE_MEMORY");
    return memory && strcmp(memory, "weak") == 0 ? bits : 0;
}

static void send_relaxed(void *argument) {
    (void)argument;
    tn__store_rlx(&x, 1);
    tn__store_rlx(&y, 1);
}

static void receive_relaxed(void *argument) {
    (void)argument;
    seen_y = tn__load_rlx(&y);
    seen_x = tn__load_rlx(&x);
}

static void send_fenced(void *argument) {
    (void)argument;
    tn__store_rlx(&x, 1);
    tn__fence_rel();
    tn__store_rlx(&y, 1);
}

static void receive_fenced(void *argument) {
    (void)argument;
    seen_y = tn__load_rlx(&y);
    tn__fence_acq();
    seen_x = tn__load_rlx(&x);
}

static void message_relaxed(void) {
    run_two(send_relaxed, receive);
    sched_value(seen_x * 2 + seen_y);
}

static void message_read_relaxed(void) {
    run_two(send, receive_relaxed);
    sched_value(seen_x * 2 + seen_y);
}

static void message_fenced(void) {
    run_two(send_fenced, receive_fenced);
    sched_value(seen_x * 2 + seen_y);
}

static void a_message_needs_both_its_sides(void **state) {
    const uint64_t in_order = 1 << 0 | 1 << 2 | 1 << 3, late = 1 << 1;
    (void)state;
    assert_int_equal(outcomes(message_relaxed, 300), in_order | if_weak(late));
    assert_int_equal(outcomes(message_read_relaxed, 300), in_order | if_weak(late));
    assert_int_equal(outcomes(message_fenced, 300), in_order);
}

static void bare_side(void *argument) {
    (void)argument;
    tn__store_rel(&x, 1);
    seen_y = tn__load_acq(&y);
}

static void bare_pair(void) {
    tn__fence_ready();
    run_two(bare_side, heavy_side);
    sched_value(seen_x * 2 + seen_y);
}

/* The compiler may put the store behind the load, and a heavy fence between. */
static void a_heavy_fence_needs_a_light_one(void **state) {
    (void)state;
    assert_int_equal(outcomes(bare_pair, 500) | 1, 15);
    assert_int_equal(outcomes(bare_pair, 500) & if_weak(1), if_weak(1));
}

/* ---- Lost updates, locks ---- */

static void load_and_store(void *argument) {
    (void)argument;
    tn__store_rel(&x, tn__load_acq(&x) + 1);
}

static void add(void *argument) {
    (void)argument;
    tn__add_rlx(&x, 1);
}

static void lost_update(void) {
    run_two(load_and_store, load_and_store);
    sched_value(tn__load_acq(&x));
}

static void no_lost_update(void) {
    run_two(add, add);
    sched_value(tn__load_acq(&x));
}

static void an_update_can_be_lost(void **state) {
    (void)state;
    assert_int_equal(outcomes(lost_update, 100), 1 << 1 | 1 << 2);
    assert_int_equal(outcomes(no_lost_update, 100), 1 << 2);
}

static tn__mutex low, high;
static tn__cond changed;

static void lock_low_high(void *argument) {
    (void)argument;
    pthread_mutex_lock(&low.mutex);
    pthread_mutex_lock(&high.mutex);
    pthread_mutex_unlock(&high.mutex);
    pthread_mutex_unlock(&low.mutex);
}

static void lock_high_low(void *argument) {
    (void)argument;
    pthread_mutex_lock(&high.mutex);
    pthread_mutex_lock(&low.mutex);
    pthread_mutex_unlock(&low.mutex);
    pthread_mutex_unlock(&high.mutex);
}

static void make_locks(void) {
    tn__mutex_init(&low, TN__RANK_STATE);
    tn__mutex_init(&high, TN__RANK_SLOTS);
    tn__cond_init(&changed);
}

static void crossed_locks(void) {
    make_locks();
    run_two(lock_low_high, lock_high_low);
}

static void a_deadlock_is_found_and_repeats(void **state) {
    (void)state;
    sched_outcome first, again;
    uint64_t seed;
    assert_true(fails(crossed_locks, 200, &first, &seed));
    assert_non_null(strstr(first.text, "deadlock"));
    sched_once(crossed_locks, seed, &again);
    assert_string_equal(again.text, first.text);
    assert_int_equal(again.hash, first.hash);
    assert_int_equal(again.steps, first.steps);
}

static void wait_for_x(void *argument) {
    (void)argument;
    tn__lock(&low);
    while (tn__load_acq(&x) == 0)
        tn__cond_wait(&changed, &low);
    tn__unlock(&low);
}

static void set_x(void *argument) {
    (void)argument;
    tn__lock(&low);
    tn__store_rel(&x, 1);
    tn__cond_broadcast(&changed);
    tn__unlock(&low);
}

/* The store is not under the lock, so it may come between the look and the wait. */
static void set_x_bare(void *argument) {
    (void)argument;
    tn__store_rel(&x, 1);
    tn__cond_broadcast(&changed);
}

static void wake_up(void) {
    make_locks();
    run_two(wait_for_x, set_x);
}

static void lost_wake_up(void) {
    make_locks();
    run_two(wait_for_x, set_x_bare);
}

static void a_lost_wake_up_is_found(void **state) {
    (void)state;
    sched_outcome o;
    uint64_t seed;
    assert_false(fails(wake_up, 300, &o, &seed));
    assert_true(fails(lost_wake_up, 300, &o, &seed));
    assert_non_null(strstr(o.text, "deadlock"));
}

/* ---- Wait loops ---- */

static void spin_for_x(void *argument) {
    (void)argument;
    tn__pause pause = {0};
    while (tn__load_acq(&x) == 0)
        tn__pause_once(&pause);
}

static void spin(void) { run_two(spin_for_x, store_x_load_y); }

static void spin_for_ever(void) { run_two(spin_for_x, store_y_load_x); }

static void a_wait_loop_ends_or_is_reported(void **state) {
    (void)state;
    sched_outcome o;
    uint64_t seed;
    assert_false(fails(spin, 300, &o, &seed));
    assert_true(fails(spin_for_ever, 1, &o, &seed));
    assert_non_null(strstr(o.text, "too many steps"));
}

/* ---- Grace periods ---- */

static void read_y_then_x(void *argument) {
    (void)argument;
    tn__rcu_lock();
    seen_y = tn__load_acq(&y);
    seen_x = tn__load_acq(&x);
    tn__rcu_unlock();
}

/* A reader that still finds y == 0 must not find x == 1. */
static void unlink_then_free(void *argument) {
    (void)argument;
    tn__store_rel(&y, 1);
    SCHED_OK(tn__rcu_synchronize());
    tn__store_rel(&x, 1);
}

static void free_at_once(void *argument) {
    (void)argument;
    tn__store_rel(&y, 1);
    tn__store_rel(&x, 1);
}

static void grace(void) {
    run_two(read_y_then_x, unlink_then_free);
    sched_value(seen_x * 2 + seen_y);
}

static void no_grace(void) {
    run_two(read_y_then_x, free_at_once);
    sched_value(seen_x * 2 + seen_y);
}

static void a_grace_period_waits_for_sections(void **state) {
    (void)state;
    assert_int_equal(outcomes(grace, 300), 1 << 0 | 1 << 1 | 1 << 3);
    assert_int_equal(outcomes(no_grace, 300), 15);
}

/* ---- The queue ---- */

static tn__queue queue;
static tn__queue_node nodes[2];

static void push(void *argument) { tn__queue_push(&queue, argument); }

static void pop(void *argument) {
    (void)argument;
    seen_x += tn__queue_pop(&queue) != NULL;
}

static void push_push_pop(void) {
    const sched_thread threads[] = {
        {"first", push, &nodes[0]}, {"second", push, &nodes[1]}, {"pop", pop, NULL}};
    tn__queue_init(&queue);
    sched_run(threads, 3);
    uint64_t early = seen_x;
    while (!tn__queue_empty(&queue))
        pop(NULL);
    SCHED_EQUAL(seen_x, 2);
    sched_value(early);
}

static void a_queue_loses_nothing(void **state) {
    (void)state;
    assert_int_equal(outcomes(push_push_pop, 400), 3);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(stores_are_late_without_a_fence),
    cmocka_unit_test(one_heavy_fence_orders_both_sides),
    cmocka_unit_test(stores_stay_in_order),
    cmocka_unit_test(a_message_needs_both_its_sides),
    cmocka_unit_test(a_heavy_fence_needs_a_light_one),
    cmocka_unit_test(an_update_can_be_lost),
    cmocka_unit_test(a_deadlock_is_found_and_repeats),
    cmocka_unit_test(a_lost_wake_up_is_found),
    cmocka_unit_test(a_wait_loop_ends_or_is_reported),
    cmocka_unit_test(a_grace_period_waits_for_sections),
    cmocka_unit_test(a_queue_loses_nothing),
};

TN_TEST_MAIN("schedule.self", tests)
