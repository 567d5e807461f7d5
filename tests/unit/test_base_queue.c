/* SPDX-License-Identifier: MIT */
/* src/base/queue.c: nothing lost, nothing twice, each thread's order kept. */
#include <sched.h>

#include "base/queue.h"
#include "tn_test.h"

#define THREADS 3
#define EACH 2000

struct item {
    tn__queue_node node;
    int thread, number;
};

static tn__queue queue;
static struct item items[THREADS][EACH];

static void queue_is_first_in_first_out(void **state) {
    struct item own[3];
    (void)state;
    tn__queue_init(&queue);
    assert_true(tn__queue_empty(&queue));
    assert_null(tn__queue_pop(&queue));
    for (int round = 0; round < 2; round++) { /* nodes may be used again */
        for (int i = 0; i < 3; i++)
            tn__queue_push(&queue, &own[i].node);
        assert_false(tn__queue_empty(&queue));
        for (int i = 0; i < 3; i++)
            assert_ptr_equal(tn__queue_pop(&queue), &own[i].node);
        assert_true(tn__queue_empty(&queue));
    }
}

static const char *pop_all(void) {
    int next[THREADS] = {0}, seen = 0;
    while (seen < THREADS * EACH && !tn_test_workers_failed()) {
        struct item *item = (struct item *)tn__queue_pop(&queue);
        if (!item) { /* empty, or a push is half done */
            sched_yield();
            continue;
        }
        TN_WORKER_CHECK(item->number == next[item->thread]);
        next[item->thread]++;
        seen++;
    }
    TN_WORKER_CHECK(tn__queue_empty(&queue));
    return NULL;
}

static const char *push_or_pop(int index, void *arg) {
    (void)arg;
    if (index == THREADS)
        return pop_all();
    for (int i = 0; i < EACH; i++) {
        items[index][i] = (struct item){.thread = index, .number = i};
        tn__queue_push(&queue, &items[index][i].node);
    }
    return NULL;
}

static void queue_keeps_the_order_of_each_thread(void **state) {
    (void)state;
    tn__queue_init(&queue);
    assert_null_text(tn_test_workers_run(THREADS + 1, push_or_pop, NULL));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(queue_is_first_in_first_out),
    cmocka_unit_test(queue_keeps_the_order_of_each_thread),
};

TN_TEST_MAIN("unit.base_queue", tests)
