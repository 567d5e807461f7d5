/* SPDX-License-Identifier: MIT */
/* Registration of sources, where each allocation fails (F1, M69). */
#include "fault_common.h"

static tn_status call(fault *x) {
    tn_value_spec spec = tt_spec(32, 32);
    tn_source source = tt_source_of(&x->f->sources[0]);
    return tn_manager_register_source(x->m, &spec, &source, C0, &x->h);
}

static tn_status call_file(fault *x) {
    static const uint64_t segments[3] = {8, 8, 16};
    tn_value_spec spec = tt_spec(32, 32);
    tn_source source = TN_SOURCE_INIT;
    spec.type = tn_buffer_type();
    source.kind = TN_SOURCE_FILE;
    source.path = "/nowhere/at/all";
    source.segment_bytes = segments;
    source.segment_count = 3;
    return tn_manager_register_source(x->m, &spec, &source, P, &x->h);
}

/* A source that was refused is still the caller's. */
static void not_forgotten(fault *x, tn_status status) {
    (void)status;
    assert_int_equal(x->h.index, 0);
    assert_int_equal(atomic_load(&x->f->sources[0].forgotten), 0);
}

static void ready(fault *x) {
    fault_manager(x);
    (void)spec_source(x->f);
}

static void registered(fault *x) {
    assert_int_equal(value(x->m, x->h).has_source, 1);
    assert_int_equal(atomic_load(&x->f->sources[0].forgotten), 0);
}

static void register_callback_survives_each_failure(void **state) {
    static const fault_case what = {.name = "register a callback",
                                    .prepare = ready,
                                    .call = call,
                                    .failed = not_forgotten,
                                    .check = registered,
                                    .least_allocs = 5};
    fault_loop(state, &what);
}

static void register_file_survives_each_failure(void **state) {
    static const fault_case what = {.name = "register a file",
                                    .prepare = ready,
                                    .call = call_file,
                                    .failed = not_forgotten,
                                    .check = registered,
                                    .least_allocs = 5};
    fault_loop(state, &what);
}

static void register_on_new_thread_survives_each_failure(void **state) {
    static const fault_case what = {.name = "register by a new thread",
                                    .prepare = ready,
                                    .call = call,
                                    .failed = not_forgotten,
                                    .check = registered,
                                    .flags = FAULT_ON_THREAD,
                                    .least_allocs = 6};
    fault_loop(state, &what);
}

static const struct CMUnitTest tests[] = {
    FAULT_BOTH(register_callback_survives_each_failure),
    FAULT_BOTH(register_file_survives_each_failure),
    FAULT_BOTH(register_on_new_thread_survives_each_failure),
};

TN_TEST_MAIN("fault.register", tests)
