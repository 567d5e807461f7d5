/* SPDX-License-Identifier: MIT */
/*
 * The ring (R1, R3): loads that come while its memory is made, and more loads than blocks. Whoever
 * waits is woken.
 */
#include "scenario.h"
#include "value/ring.h"

static tn__ring *ring;
static uint32_t users[WORLD_VALUES]; /* of each block, now */

/* Two blocks at once if there are, as an upload takes them. */
static void load(void *argument) {
    uint32_t block[2], held = 0;
    (void)argument;
    SCHED_OK(tn__ring_enter(ring));
    while (held < 2 && tn__ring_take(ring, held, &block[held]))
        SCHED_EQUAL(users[block[held++]]++, 0);
    SCHED_CHECK(held > 0);
    sched_point();
    while (held > 0) {
        users[block[--held]]--;
        tn__ring_give(ring, block[held]);
    }
    tn__ring_leave(ring);
}

static void ring_begin(uint32_t blocks) {
    world_begin(TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 4, 4, 4);
    SCHED_OK(tn__ring_create(W.driver, WORLD_BYTES, blocks, &ring));
}

static void ring_end(uint32_t blocks) {
    uint32_t block[WORLD_VALUES];
    SCHED_OK(tn__ring_enter(ring));
    for (uint32_t i = 0; i < blocks; i++)
        SCHED_CHECK(tn__ring_take(ring, i, &block[i])); /* all of them are back */
    for (uint32_t i = 0; i < blocks; i++)
        tn__ring_give(ring, block[i]);
    tn__ring_leave(ring);
    tn__ring_destroy(ring);
    world_end();
}

/* Each of them waits for the other's block. */
static void ring_one_block_body(void) {
    ring_begin(1);
    RUN({"first", load, NULL}, {"second", load, NULL}, {"third", load, NULL});
    ring_end(1);
}
SCENARIO(ring_one_block, 10)

static void ring_two_blocks_body(void) {
    ring_begin(2);
    RUN({"first", load, NULL}, {"second", load, NULL}, {"third", load, NULL});
    ring_end(2);
}
SCENARIO(ring_two_blocks, 10)

/* They wait only while one of them makes the memory, and then for no block of it. */
static void enter_and_leave(void *argument) {
    (void)argument;
    SCHED_OK(tn__ring_enter(ring));
    SCHED_EQUAL(tn__ring_at(ring).kind, TN_LOCATION_PINNED);
    sched_point();
    tn__ring_leave(ring);
}

static void ring_is_made_once_body(void) {
    ring_begin(4);
    RUN({"first", enter_and_leave, NULL}, {"second", enter_and_leave, NULL},
        {"third", enter_and_leave, NULL});
    ring_end(4);
}
SCENARIO(ring_is_made_once, 10)

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(ring_one_block),
    cmocka_unit_test(ring_two_blocks),
    cmocka_unit_test(ring_is_made_once),
};

TN_TEST_MAIN("schedule.ring", tests)
