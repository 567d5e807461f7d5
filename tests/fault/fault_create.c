/* SPDX-License-Identifier: MIT */
/* Creation of a manager, where each allocation fails (F1). */
#include "fault_common.h"

#include "base/base_internal.h"

static void nothing(fault *x) { (void)x; }

static tn_status call(fault *x) {
    tn_config config = spec_config(x->f);
    const tn_budget budgets[] = {{P, 64}, {C0, 64}};
    config.budgets = budgets;
    config.budget_count = 2;
    return tn_manager_create(&config, &x->m);
}

static void not_created(fault *x, tn_status status) {
    (void)status;
    assert_null(x->m);
}

/* The teardown of the fixture destroys it. */
static void created(fault *x) {
    x->f->managers[x->f->manager_count++] = x->m;
    assert_locations(x->m, P, C0);
    assert_int_equal(version(x->m), 0);
}

static void create_survives_each_failure(void **state) {
    static const fault_case what = {.name = "create",
                                    .prepare = nothing,
                                    .call = call,
                                    .failed = not_created,
                                    .check = created,
                                    .flags = FAULT_NO_MANAGER,
                                    .least_allocs = 8};
    fault_loop(state, &what);
}

/* A ring is made by the first load that needs it: its options cost nothing here. */
static tn_status call_with_ring(fault *x) {
    tn_config config = spec_config(x->f);
    config.ring_block_bytes = 4096;
    config.ring_blocks = 2;
    return tn_manager_create(&config, &x->m);
}

static void created_with_ring(fault *x) {
    tn_pinned_figures pinned = TN_PINNED_FIGURES_INIT;
    x->f->managers[x->f->manager_count++] = x->m;
    assert_ok(tn_driver_read_pinned(x->f->driver, &pinned));
    assert_int_equal(pinned.ring_bytes, 0);
    fault_file(x, N);
    (void)ensure(x->m, x->h, C0);
    assert_ok(tn_driver_read_pinned(x->f->driver, &pinned));
    assert_int_equal(pinned.ring_bytes, 2 * 4096);
}

static void create_with_ring_survives_each_failure(void **state) {
    static const fault_case what = {.name = "create with a ring",
                                    .prepare = nothing,
                                    .call = call_with_ring,
                                    .failed = not_created,
                                    .check = created_with_ring,
                                    .flags = FAULT_NO_MANAGER,
                                    .least_allocs = 8};
    fault_loop(state, &what);
}

/* With a reaper thread it is anybody's guess who meets the failure; nothing may be left either way.
 */
static void create_with_thread_survives_each_failure(void **state) {
    uint64_t live = tn__alloc_live();
    (void)state;
    for (uint64_t nth = 1; nth <= 12; nth++) {
        tn_config config = TN_CONFIG_INIT;
        tn_manager *m = NULL;
        tn__fault_alloc(nth);
        tn_status status = tn_manager_create(&config, &m);
        tn__fault_alloc(0);
        if (status == TN_OK)
            assert_ok(tn_manager_destroy(m));
        else
            assert_status(status, TN_ERR_HOST_MEMORY);
        assert_int_equal(tn__alloc_live(), live);
    }
}

static const struct CMUnitTest tests[] = {
    FAULT_BOTH(create_survives_each_failure),
    FAULT_BOTH(create_with_ring_survives_each_failure),
    cmocka_unit_test(create_with_thread_survives_each_failure),
};

TN_TEST_MAIN("fault.create", tests)
