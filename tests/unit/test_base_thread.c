/* SPDX-License-Identifier: MIT */
/* src/base/thread.c: the thread's block, its frames, and what happens at its exit. */
#include <pthread.h>
#include <stdatomic.h>

#include "base/atomic.h"
#include "base/rcu.h"
#include "base/thread.h"
#include "tn_test.h"

static void thread_has_one_block(void **state) {
    (void)state;
    tn__thread *own = tn__thread_self();
    assert_non_null(own);
    assert_ptr_equal(tn__thread_self(), own);
    assert_int_equal(own->error.size, sizeof own->error);
}

static void frames_tell_managers_and_callbacks_apart(void **state) {
    tn__thread t = {.frames = NULL};
    tn__frame action, callback, other;
    (void)state;
    assert_false(tn__frame_inside(&t, 0, false));
    tn__frame_push(&t, &action, 1, false);
    assert_true(tn__frame_inside(&t, 1, false));
    assert_false(tn__frame_inside(&t, 1, true));
    assert_false(tn__frame_inside(&t, 2, false));
    tn__frame_push(&t, &callback, 1, true);
    assert_true(tn__frame_inside(&t, 1, true));
    assert_true(tn__frame_inside(&t, 0, true));
    tn__frame_push(&t, &other, 2, false);
    assert_true(tn__frame_inside(&t, 2, false));
    assert_true(tn__frame_inside(&t, 1, true));
    assert_false(tn__frame_inside(&t, 2, true));
    tn__frame_pop(&t, &other);
    tn__frame_pop(&t, &callback);
    tn__frame_pop(&t, &action);
    assert_null(t.frames);
}

static atomic_int exits;
static void (*previous)(tn__thread *thread);

static void count_exit(tn__thread *thread) {
    thread->slots = NULL;
    atomic_fetch_add(&exits, 1);
}

static const char *leave_with_slots(int index, void *arg) {
    tn__thread *thread = tn__thread_self();
    tn__rcu_thread_ready(thread);
    tn__rcu_thread_ready(thread); /* once is enough */
    if (index % 2)
        thread->slots = arg; /* anything */
    return NULL;
}

/* Only a thread that has slots gives them back. */
static void exit_of_a_thread_runs_the_hook(void **state) {
    int dummy;
    (void)state;
    atomic_store(&exits, 0);
    previous = tn__load_rlx(&tn__thread_exit_slots);
    tn__store_rlx(&tn__thread_exit_slots, count_exit);
    assert_null_text(tn_test_workers_run(6, leave_with_slots, &dummy));
    tn__store_rlx(&tn__thread_exit_slots, previous);
    assert_int_equal(atomic_load(&exits), 3);
}

static pthread_key_t late_key;

/* A destructor of the host program that calls us after our own has run. */
static void late_call(void *value) {
    (void)value;
    if (tn__thread_self())
        atomic_fetch_add(&exits, 1);
}

static const char *leave_late(int index, void *arg) {
    (void)index;
    (void)arg;
    TN_WORKER_CHECK(tn__thread_self() != NULL);
    TN_WORKER_CHECK(pthread_setspecific(late_key, "anything") == 0);
    return NULL;
}

static void call_in_a_later_destructor_gets_a_new_block(void **state) {
    (void)state;
    atomic_store(&exits, 0);
    assert_int_equal(pthread_key_create(&late_key, late_call), 0);
    assert_null_text(tn_test_workers_run(3, leave_late, NULL));
    assert_int_equal(atomic_load(&exits), 3);
    assert_int_equal(pthread_key_delete(late_key), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(thread_has_one_block),
    cmocka_unit_test(frames_tell_managers_and_callbacks_apart),
    cmocka_unit_test(exit_of_a_thread_runs_the_hook),
    cmocka_unit_test(call_in_a_later_destructor_gets_a_new_block),
};

TN_TEST_MAIN("unit.base_thread", tests)
