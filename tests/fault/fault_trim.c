/* SPDX-License-Identifier: MIT */
/* Giving back idle pinned memory, where each driver call fails (F1): what was not given back is told
 * apart from what was, and nothing is lost but what the driver did not take. */
#include "fault_common.h"

static uint64_t given;

/* Idle blocks of two sizes, and one in use. */
static void idle(fault *x) {
    tn_handle other;
    fault_manager(x);
    fault_value(x, P, N);
    x->others[0] = adopt_rep(x->f, x->m, N);
    other = spec_adopt(x->m, tt_bytes(x->f->driver, N, 96), N, TN_EXCLUSIVE);
    (void)move(x->m, other, P);
    (void)drop(x->m, x->h, N);
    given = 0;
}

static tn_pinned_figures figures(fault *x) {
    tn_pinned_figures pinned = TN_PINNED_FIGURES_INIT;
    assert_ok(tn_driver_read_pinned(x->f->driver, &pinned));
    return pinned;
}

static tn_status trim(fault *x) { return tn_driver_trim_pinned(x->f->driver, &given); }

static void not_all_given(fault *x, tn_status status) {
    (void)status;
    assert_int_equal(figures(x).live_bytes, 32); /* what is in use is not touched */
}

static void trimmed(fault *x) {
    tn_pinned_figures pinned = figures(x);
    assert_int_equal(pinned.live_bytes, 32);
    assert_true(pinned.chunks <= 1);
    (void)ensure(x->m, x->h, N);
    assert_true(resident(x->m, x->h, N));
}

static void trim_survives_each_failure(void **state) {
    static const fault_case what = {.name = "giving back idle pinned memory",
                                    .prepare = idle,
                                    .call = trim,
                                    .failed = not_all_given,
                                    .check = trimmed,
                                    .flags = FAULT_NO_ALLOC,
                                    .least_calls = 1};
    fault_loop(state, &what);
}

static const struct CMUnitTest tests[] = {FAULT_BOTH(trim_survives_each_failure)};

TN_TEST_MAIN("fault.trim", tests)
