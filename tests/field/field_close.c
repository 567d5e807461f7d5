/* SPDX-License-Identifier: MIT */
/* Field cases: who meets the end of a manager. */
#include "tn_test.h"

#include "field_common.h"

/* ---- F-D28: evict against close ------------------------------------------------------------------- */

struct ending {
    tn_manager *m;
    tn_handle values[64];
    uint64_t seed;
};

static const char *drop_or_close(int index, void *arg) {
    struct ending *x = arg;

    if (index == 8) {
        volatile unsigned spin = (unsigned)(x->seed * UINT64_C(0x9e3779b97f4a7c15) >> 49);

        while (spin > 0)
            spin--;
        TN_WORKER_STATUS(tn_manager_close(x->m, 0), TN_OK);
        return NULL;
    }
    for (int i = 0; i < 8; i++) {
        tn_status status = tn_manager_drop(x->m, x->values[index * 8 + i], C0, NULL);

        if (status != TN_ERR_CLOSED)
            TN_WORKER_STATUS(status, TN_OK);
    }
    return NULL;
}

/* The soak: three calls of the driver, of the 64 frees and what else there is, take 1 ms. */
static void arm_stalls(struct spec *f, uint64_t seed) {
    for (uint64_t i = 1; i <= 3; i++) {
        tn_sim_fault fault = TN_SIM_FAULT_INIT;

        fault.nth = 1 + (seed * 3 + i) * UINT64_C(0x9e3779b97f4a7c15) % 64;
        fault.stall_ns = MS;
        fault.flags = i == 3 ? TN_SIM_FAULT_LOCKS : 0;
        assert_ok(tn_sim_fault_arm(f->sim, &fault));
    }
}

/* One run; how long its threads took. */
static uint64_t evict_against_close(struct spec *f, uint64_t seed, uint64_t *stalls) {
    tn_config config = spec_config(f);
    struct ending x = {.seed = seed};
    uint64_t frees = field_memory(f, C0).frees;
    uint64_t destroyed, began, took;
    tn_snapshot *s = NULL;

    config.reaper = TN_REAPER_THREAD;
    x.m = spec_manager_with(f, &config);
    for (uint64_t i = 0; i < 64; i++)
        x.values[i] = field_rep_at(f, x.m, C0, 1024, i);
    destroyed = tt_count().destroyed;
    if (field_soak())
        arm_stalls(f, seed);
    began = tn__mono_ns();
    assert_null_text(tn_test_workers_run(9, drop_or_close, &x));
    took = tn__mono_ns() - began;
    *stalls += spec_repair(f);
    assert_int_equal(field_memory(f, C0).frees, frees + 64);
    assert_int_equal(tt_count().destroyed, destroyed + 128);
    assert_int_equal(tt_count().live, f->live);
    assert_status(tn_snapshot_take(x.m, &s), TN_ERR_CLOSED);
    spec_destroy(f, x.m);
    return took;
}

static void f_d28_evict_against_close(void **state) {
    uint64_t seeds = field_number(200, 1000);
    uint64_t longest = 0, stalls = 0;
    struct spec *f = *state;

    if (field_soak())
        spec_machine(f, "dev:2 clock=threads"); /* where 1 ms is one */
    for (uint64_t seed = 0; seed < seeds; seed++) {
        uint64_t took = evict_against_close(f, seed, &stalls);

        longest = took > longest ? took : longest;
    }
    print_message("    %llu runs, %llu stalls\n", (unsigned long long)seeds,
                  (unsigned long long)stalls);
    field_time("the longest run", longest, 1000 * MS);
}

static const char *use_until_closed(struct ending *x, int index) {
    for (;;) {
        tn_status status;
        tn_lease lease;

        if (index % 2 == 0) {
            tn_snapshot_info head = {.size = sizeof(head)};
            tn_snapshot *s = NULL;

            status = tn_snapshot_take(x->m, &s);
            if (status == TN_OK) {
                TN_WORKER_STATUS(tn_snapshot_read(s, &head), TN_OK);
                tn_snapshot_drop(s);
                TN_WORKER_CHECK(head.value_count == 64);
            }
        } else {
            status = tn_manager_acquire(x->m, x->values, 64, P, NULL, &lease);
            if (status == TN_OK)
                TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
        }
        if (status == TN_ERR_CLOSED)
            return NULL;
        TN_WORKER_STATUS(status, TN_OK);
    }
}

static const char *use_or_close(int index, void *arg) {
    struct ending *x = arg;
    tn_status status;

    if (index > 0)
        return use_until_closed(x, index);
    do
        status = tn_manager_close(x->m, 0);
    while (status == TN_ERR_IN_USE);
    TN_WORKER_STATUS(status, TN_OK);
    return NULL;
}

/* Its other half: who reads while it is closed is served or told so. */
static void f_d28_readers_against_close(void **state) {
    struct spec *f = *state;

    for (int i = 0; i < 50; i++) {
        struct ending x = {.m = MANAGER(f)};

        for (uint64_t v = 0; v < 64; v++)
            x.values[v] = field_rep(f, x.m, 64, v);
        assert_null_text(tn_test_workers_run(5, use_or_close, &x));
        spec_destroy(f, x.m);
    }
}

static const struct CMUnitTest tests[] = {
    FIELD_BOTH(f_d28_evict_against_close),
    FIELD_BOTH(f_d28_readers_against_close),
};

TN_TEST_MAIN("field.close", tests)
