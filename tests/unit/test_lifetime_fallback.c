/* SPDX-License-Identifier: MIT */
/*
 * The protocol of acquires and removals where membarrier cannot be had: both sides use seq_cst fences,
 * and nobody takes the leaf path. The mode is chosen before the program's first thread is made ready.
 */
#include "core_fixture.h"

static int group_setup(void **state) {
    (void)state;
    tn__fence_ready();
    tn__store_rlx(&tn__fence_asymmetric, 0);
    return 0;
}

struct race {
    struct spec *f;
    tn_manager *m;
    tn_handle v; /* replicable: at P always, at N now and then */
    uint64_t seed;
};

/* What a lease gives is intact until it is released. */
static const char *read_now_and_then(struct race *r) {
    for (int i = 0; i < 3000 && !tn_test_workers_failed(); i++) {
        tn_lease lease;
        const void *data = NULL;
        tn_status status = tn_manager_acquire(r->m, &r->v, 1, N, NULL, &lease);
        TN_WORKER_CHECK(status == TN_OK || status == TN_ERR_UNAVAILABLE);
        if (status != TN_OK)
            continue;
        TN_WORKER_STATUS(tn_lease_lookup(&lease, r->v, &data), TN_OK);
        TN_WORKER_CHECK(tt_check(data, 1));
        TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
    }
    return NULL;
}

static const char *drop_and_ensure(struct race *r) {
    for (int i = 0; i < 1500 && !tn_test_workers_failed(); i++) {
        tn_status status = tn_manager_drop(r->m, r->v, N, NULL);
        TN_WORKER_CHECK(status == TN_OK || status == TN_ERR_IN_USE);
        if (status == TN_ERR_IN_USE)
            TN_WORKER_CHECK(tn_last_error()->use_count >= 1);
        TN_WORKER_STATUS(tn_manager_ensure(r->m, r->v, N, NULL, NULL), TN_OK);
    }
    return NULL;
}

static const char *read_or_move(int index, void *arg) {
    return index < 2 ? read_now_and_then(arg) : drop_and_ensure(arg);
}

static void leases_are_intact_beside_removals(void **state) {
    struct race r = {.f = *state, .m = MANAGER(*state)};
    r.v = adopt_rep(r.f, r.m, P);
    assert_null_text(tn_test_workers_run(3, read_or_move, &r));
    assert_int_equal(mat(r.m, r.v, P).use_count, 0);
    assert_int_equal(tn__load_rlx(&tn__fence_asymmetric), 0);
}

static void leaf_path_is_not_taken(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    for (int i = 0; i < 3; i++) {
        tn_lease lease = acquire(m, v, P, NULL);
        release(&lease);
    }
    unsigned long entered;
    assert_false(tn__rcu_enter(tn__thread_self(), &entered));
}

static void heavy_fence_costs_no_system_call_and_works(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    (void)ensure(m, v, N);
    tn__fault_fence(1);
    assert_status(tn_manager_drop(m, v, N, NULL), TN_ERR_SYSTEM);
    (void)drop(m, v, N);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(leases_are_intact_beside_removals),
    SPEC_CONCURRENT(leaf_path_is_not_taken),
    SPEC_CONCURRENT(heavy_fence_costs_no_system_call_and_works),
};

TN_TEST_MAIN_FIXTURE("unit.lifetime_fallback", tests, group_setup, NULL)
