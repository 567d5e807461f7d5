/* SPDX-License-Identifier: MIT */
/*
 * The soak (B1, B2, L1, P3, F1, conservation): see soak_torture.h. TN_SOAK_SECONDS is its length in
 * all (default 8), half of it in each mode:
 *
 *     TN_SOAK_SECONDS=14400 build/tests/torture_soak     four hours
 */
#include "soak_torture.h"

#include <time.h>

#define SECONDS 8

/* Who does what; the first thread audits. */
static soak_step_fn *const roles[SOAK_THREADS] = {
    NULL,      soak_use,    soak_use,   soak_use,      soak_use,    soak_plan,
    soak_plan, soak_scope,  soak_scope, soak_borrow,   soak_borrow, soak_borrow,
    soak_act,  soak_tenant, soak_look,  soak_read_mail};

/* Until the auditor lets all go on. */
static void stand_still(soak_world *w, uint32_t round) {
    const struct timespec pause = {0, 200000};
    atomic_fetch_add(&w->arrived, 1);
    while (atomic_load(&w->round) == round && !tn_test_workers_failed())
        nanosleep(&pause, NULL);
}

static const char *work(int index, void *arg) {
    soak_world *w = arg;
    tort_random r = tort_random_of((uint64_t)index + 16 * w->mode);
    bool over = false;
    if (index == 0)
        return soak_auditor(w);
    while (!over && !tn_test_workers_failed()) {
        uint32_t round = atomic_load(&w->round);
        while (!soak_pause(w))
            SOAK_TRY(roles[index](w, &r));
        over = atomic_load(&w->over);
        stand_still(w, round);
    }
    return NULL;
}

static void soak(uint32_t mode) {
    static soak_world w; /* a worker of a test that failed may still look at it */
    uint64_t seconds = tn_test_env_u64("TN_SOAK_SECONDS", SECONDS);
    soak_world_begin(&w, mode, seconds * UINT64_C(1000000000) / 2);
    assert_null_text(tn_test_workers_run(SOAK_THREADS, work, &w));
    soak_world_end(&w);
}

static void soak_concurrent(void **state) {
    (void)state;
    soak(TN_MODE_CONCURRENT);
}

static void soak_serial(void **state) {
    (void)state;
    soak(TN_MODE_SERIAL);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(soak_concurrent),
                                          cmocka_unit_test(soak_serial)};

TN_TEST_MAIN("torture.soak", tests)
