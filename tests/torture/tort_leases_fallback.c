/* SPDX-License-Identifier: MIT */
/*
 * The torture of leases as on a system without membarrier: light and heavy fences are both
 * seq_cst. The mode is fixed once per process, hence a program of its own.
 */
#include "leases_torture.h"

#include "base/rcu.h"

static int without_membarrier(void **state) {
    (void)state;
    tn__fence_ready();
    tn__store_rlx(&tn__fence_asymmetric, 0); /* no manager exists yet */
    return 0;
}

static const struct CMUnitTest tests[] = {TORT_TESTS};

TN_TEST_MAIN_FIXTURE("torture.leases_fallback", tests, without_membarrier, NULL)
