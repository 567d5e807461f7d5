/* SPDX-License-Identifier: MIT */
/* src/driver/driver_pool.c: when the pinned pool calls its driver, and what it makes of refusals. */
#include "sim_machine.h"

#include <stdlib.h>

#include "base/base_internal.h"
#include "driver/driver_internal.h"

#define N tn_location_pinned()
#define KEY 135168u /* 132 KiB */
#define MIB (UINT64_C(1) << 20)

static tn_pinned_figures figures(const struct machine *m) {
    tn_pinned_figures f = TN_PINNED_FIGURES_INIT;
    tn_sim_memory memory = {.size = sizeof memory};

    assert_ok(tn_driver_read_pinned(m->driver, &f));
    assert_ok(tn_sim_read_memory(m->sim, N, &memory));
    assert_int_equal(memory.live_bytes, f.live_bytes + f.idle_bytes + f.ring_bytes); /* C1 */
    return f;
}

static void *block(const struct machine *m, uint64_t bytes) {
    void *p = NULL;

    assert_ok(tn_memory_alloc(m->driver, N, bytes, &p));
    return p;
}

static void drop_block(const struct machine *m, void *p, uint64_t bytes) {
    assert_ok(tn_memory_free(m->driver, N, p, bytes));
}

static uint64_t calls(const struct machine *m) { return tn_sim_calls(m->sim, TN_SIM_ANY); }

static void steady_state_makes_no_driver_call(void **state) {
    struct machine m = machine_open(NULL);
    void *blocks[30];
    uint64_t before = 0;

    (void)state;
    for (int round = 0; round < 100; round++) {
        for (uint64_t i = 0; i < 30; i++)
            blocks[i] = block(&m, KEY + i % 3 * 4096);
        for (uint64_t i = 0; i < 30; i++)
            drop_block(&m, blocks[i], KEY + i % 3 * 4096);
        if (round == 0)
            before = calls(&m);
    }
    assert_int_equal(calls(&m), before);
    assert_int_equal(figures(&m).live_bytes, 0);
    assert_int_equal(figures(&m).idle_bytes, 30 * KEY + 30 * 4096);
    machine_close(&m);
}

static void trim_gives_idle_chunks_back(void **state) {
    struct machine m = machine_open(NULL);
    void *a = block(&m, KEY), *b = block(&m, KEY);
    uint64_t bytes = 7;

    (void)state;
    drop_block(&m, a, KEY);
    assert_int_equal(figures(&m).idle_bytes, KEY);
    assert_int_equal(figures(&m).peak_live_bytes, 2 * KEY);
    assert_ok(tn_driver_trim_pinned(m.driver, &bytes));
    assert_int_equal(bytes, KEY);
    assert_int_equal(figures(&m).idle_bytes, 0);
    assert_int_equal(figures(&m).live_bytes, KEY);
    assert_ok(tn_driver_trim_pinned(m.driver, &bytes));
    assert_int_equal(bytes, 0);
    drop_block(&m, b, KEY);
    assert_ok(tn_driver_trim_pinned(m.driver, NULL));
    assert_int_equal(figures(&m).chunks, 0);
    machine_close(&m);
}

/* What cannot be given back stays, and is used again. */
static void trim_that_fails_loses_nothing(void **state) {
    struct machine m = machine_open(NULL);
    void *a = block(&m, KEY), *b = block(&m, KEY);
    uint64_t bytes = 0;

    (void)state;
    drop_block(&m, a, KEY);
    drop_block(&m, b, KEY);
    arm(&m, TN_SIM_PINNED_FREE, 1, 1, TN_ERR_DRIVER, 719);
    assert_status(tn_driver_trim_pinned(m.driver, &bytes), TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->native_code, 719);
    assert_int_equal(bytes, KEY);
    assert_int_equal(figures(&m).idle_bytes, KEY);
    uint64_t before = calls(&m);
    drop_block(&m, block(&m, KEY), KEY);
    assert_int_equal(calls(&m), before);
    assert_ok(tn_driver_trim_pinned(m.driver, &bytes));
    assert_int_equal(bytes, KEY);
    machine_close(&m);
}

/* Limited to 64 MiB: blocks of another size that are idle make room; then it is refused. */
static void refusal_gives_idle_chunks_back_first(void **state) {
    struct machine m = machine_open("pinned=64MiB");
    void *a = block(&m, 40 * MIB), *p = NULL;

    (void)state;
    drop_block(&m, a, 40 * MIB);
    a = block(&m, 60 * MIB);
    assert_int_equal(figures(&m).idle_bytes, 0);
    assert_status(tn_memory_alloc(m.driver, N, 40 * MIB, &p), TN_ERR_PAYLOAD);
    assert_int_equal(tn_last_error()->native_code, 2);
    assert_true(tn_location_equal(tn_last_error()->at, N));
    assert_null(p);
    drop_block(&m, a, 60 * MIB);
    a = block(&m, 40 * MIB);
    drop_block(&m, a, 40 * MIB);
    machine_close(&m);
}

/* A chunk that is refused is asked for again as a single block. */
static void refused_chunk_becomes_a_block(void **state) {
    enum { COUNT = 16384 };
    struct machine m = machine_open("pinned=64MiB");
    void **blocks = calloc(COUNT, sizeof(void *));
    void *p = NULL;

    (void)state;
    assert_non_null(blocks);
    for (int i = 0; i < COUNT; i++)
        blocks[i] = block(&m, 4096); /* to the last byte */
    assert_status(tn_memory_alloc(m.driver, N, 4096, &p), TN_ERR_PAYLOAD);
    assert_int_equal(figures(&m).idle_bytes, 0);
    for (int i = 0; i < COUNT; i++)
        drop_block(&m, blocks[i], 4096);
    free(blocks);
    machine_close(&m);
}

static void machine_that_cannot_pin_is_not_asked(void **state) {
    struct machine m = machine_open(NULL);
    void *a = block(&m, KEY), *p = NULL;

    (void)state;
    drop_block(&m, a, KEY);
    assert_ok(tn_sim_set_state(m.sim, TN_SIM_NO_PINNED));
    uint64_t before = calls(&m);
    assert_status(tn_memory_alloc(m.driver, N, KEY + 1, &p), TN_ERR_PAYLOAD);
    assert_int_equal(calls(&m), before); /* nor is anything given back for nothing */
    machine_close(&m);
}

static void block_that_is_none_is_refused(void **state) {
    struct machine m = machine_open(NULL);
    void *a = block(&m, KEY);

    (void)state;
    assert_status(tn_memory_free(m.driver, N, a, KEY - 1), TN_ERR_VALUE);
    assert_status(tn_memory_free(m.driver, N, &m, KEY), TN_ERR_VALUE);
    drop_block(&m, a, KEY);
    assert_status(tn_memory_free(m.driver, N, a, KEY), TN_ERR_VALUE);
    machine_close(&m);
}

/* C4: the memory of a context that was destroyed is no memory any longer. */
static void context_that_has_gone_takes_its_memory_along(void **state) {
    struct machine m = machine_open(NULL);
    void *a = block(&m, KEY), *b = block(&m, KEY), *p = NULL;

    (void)state;
    drop_block(&m, a, KEY);
    assert_ok(tn_sim_set_state(m.sim, TN_SIM_CONTEXT_DESTROYED));
    assert_ok(tn__device_synchronize(m.driver, 0)); /* told on the way */
    assert_status(tn_memory_alloc(m.driver, N, KEY, &p), TN_ERR_DRIVER);
    assert_ok(tn_memory_free(m.driver, N, b, KEY));
    assert_ok(tn_driver_trim_pinned(m.driver, NULL)); /* already gone is success (D7) */
    tn_pinned_figures f = TN_PINNED_FIGURES_INIT;
    assert_ok(tn_driver_read_pinned(m.driver, &f));
    assert_int_equal(f.live_bytes + f.idle_bytes, 0);
    machine_close(&m);
}

static void settings_and_figures_check_their_arguments(void **state) {
    struct machine m = machine_open(NULL);
    tn_pinned_figures f = TN_PINNED_FIGURES_INIT;

    (void)state;
    assert_status(tn_driver_set_pinned_chunk(NULL, 1), TN_ERR_KIND);
    assert_status(tn_driver_set_pinned_chunk(m.driver, UINT64_C(1) << 63), TN_ERR_VALUE);
    assert_ok(tn_driver_set_pinned_chunk(m.driver, 5 * MIB));
    assert_int_equal(figures(&m).chunk_bytes, 5 * MIB);
    assert_ok(tn_driver_set_pinned_chunk(m.driver, 0));
    assert_int_equal(figures(&m).chunk_bytes, 64 * MIB);
    assert_status(tn_driver_read_pinned(NULL, &f), TN_ERR_KIND);
    assert_status(tn_driver_read_pinned(m.driver, NULL), TN_ERR_KIND);
    f.size = 4;
    assert_status(tn_driver_read_pinned(m.driver, &f), TN_ERR_KIND);
    assert_status(tn_driver_trim_pinned(NULL, NULL), TN_ERR_KIND);
    machine_close(&m);
}

/* ---- Threads ---- */

/* Blocks of a few sizes, each stamped by its thread; a trim now and then. */
static const char *worker(int index, void *arg) {
    enum { HELD = 12, ROUNDS = 2000 };
    const struct machine *m = arg;
    struct {
        unsigned char *p;
        uint64_t bytes;
    } held[HELD] = {{NULL, 0}};
    uint64_t random = (uint64_t)index * 7919 + 1;

    for (int i = 0; i < ROUNDS + HELD; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        uint64_t at = i < ROUNDS ? (random >> 33) % HELD : (uint64_t)(i - ROUNDS);
        if (held[at].p) {
            for (uint64_t k = 0; k < held[at].bytes; k += 512)
                TN_WORKER_CHECK(held[at].p[k] == (unsigned char)index);
            TN_WORKER_STATUS(tn_memory_free(m->driver, N, held[at].p, held[at].bytes), TN_OK);
            held[at].p = NULL;
        } else if (i < ROUNDS) {
            void *p = NULL;
            held[at].bytes = 512 << (random >> 40) % 4;
            TN_WORKER_STATUS(tn_memory_alloc(m->driver, N, held[at].bytes, &p), TN_OK);
            held[at].p = p;
            memset(p, index, held[at].bytes);
        }
        if (random >> 56 == 0)
            TN_WORKER_STATUS(tn_driver_trim_pinned(m->driver, NULL), TN_OK);
    }
    return NULL;
}

static void threads_share_the_pool(void **state) {
    struct machine m = machine_open(NULL);

    (void)state;
    assert_null_text(tn_test_workers_run(8, worker, &m));
    assert_int_equal(figures(&m).live_bytes, 0);
    assert_int_equal(figures(&m).live_blocks, 0);
    assert_ok(tn_driver_trim_pinned(m.driver, NULL));
    assert_int_equal(figures(&m).idle_bytes, 0);
    machine_close(&m);
    assert_int_equal(tn__alloc_live(), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(steady_state_makes_no_driver_call),
    cmocka_unit_test(trim_gives_idle_chunks_back),
    cmocka_unit_test(trim_that_fails_loses_nothing),
    cmocka_unit_test(refusal_gives_idle_chunks_back_first),
    cmocka_unit_test(refused_chunk_becomes_a_block),
    cmocka_unit_test(machine_that_cannot_pin_is_not_asked),
    cmocka_unit_test(block_that_is_none_is_refused),
    cmocka_unit_test(context_that_has_gone_takes_its_memory_along),
    cmocka_unit_test(settings_and_figures_check_their_arguments),
    cmocka_unit_test(threads_share_the_pool),
};

TN_TEST_MAIN("unit.driver_pool", tests)
