/* SPDX-License-Identifier: MIT */
/*
 * Leases under torture (L1, L2, B1, B2, P1, P3, S1, M51, M124, M257), with membarrier where the
 * system has it. The world and its threads: leases_torture.h. TN_TORTURE_SECONDS is the length of
 * each test.
 */
#include "leases_torture.h"

static const struct CMUnitTest tests[] = {TORT_TESTS};

TN_TEST_MAIN("torture.leases", tests)
