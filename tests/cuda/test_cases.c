/* SPDX-License-Identifier: MIT */
/* Field cases of drivers, with managers over the CUDA backend: what the backend itself adds to the
 * cases that the spec suites (cuda.spec_*) run over it. */
#include "cuda_shim.h"
#include "spec_common.h"

#define MS UINT64_C(1000000)

static int setup(void **state) {
    setenv("TN_TEST_DRIVER", "shim", 1);
    return spec_setup_serial(state);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, spec_teardown)

static tn_handle everywhere(struct spec *f, tn_manager *m) {
    tn_handle h = adopt_rep(f, m, P);

    ensure(m, h, C0);
    ensure(m, h, C1);
    return h;
}

static void f_g01_one_record_per_lease_and_stream(void **state) {
    enum { ROUNDS = 500, VALUES = 7 };
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_stream s = spec_stream(f, 0);
    tn_handle h[VALUES];
    uint64_t recorded;
    uint64_t created;
    int i;

    for (i = 0; i < VALUES; i++) {
        h[i] = adopt_rep(f, m, P);
        ensure(m, h[i], C0);
    }
    recorded = tn_sim_calls(f->sim, TN_SIM_EVENT_RECORD);
    created = tn_sim_calls(f->sim, TN_SIM_EVENT_CREATE);
    for (i = 0; i < ROUNDS; i++) {
        tn_lease lease;

        assert_ok(tn_manager_acquire(m, h, VALUES, C0, s, &lease));
        release(&lease);
        spec_finish(f);
        assert_ok(tn_manager_step(m, NULL));
    }
    assert_int_equal(tn_sim_calls(f->sim, TN_SIM_EVENT_RECORD) - recorded, ROUNDS);
    assert_true(tn_sim_calls(f->sim, TN_SIM_EVENT_CREATE) - created <= 2);
    assert_int_equal(tn_sim_calls(f->sim, TN_SIM_DEVICE_SYNCHRONIZE), 0); /* F-B07 */
}

static void f_g02_events_stay_in_their_context(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_stream s = spec_stream(f, 0);
    tn_stream t = NULL;
    int i;

    ensure(m, v, C0);
    assert_ok(tn_sim_stream_create(f->sim, 0, TN_SIM_STREAM_SECOND_CONTEXT, &t));
    for (i = 0; i < 100; i++) {
        tn_lease lease = acquire(m, v, C0, s);

        assert_ok(tn_lease_add_stream(&lease, t));
        assert_ok(tn_sim_queue_delay(f->sim, t, 3 * MS));
        release(&lease);
        assert_in_use(tn_manager_drop(m, v, C0, NULL), 0, 0, 1);
        spec_finish(f);
    }
    drop(m, v, C0);
    assert_ok(tn_sim_stream_destroy(f->sim, t));
}

/* The context is gone for good (it cannot even be entered), or the whole driver. */
static void gone(struct spec *f, bool driver, uint32_t flags) {
    tn_manager *m = MANAGER(f);
    tn_handle v = everywhere(f, m);
    tn_handle w = adopt_rep(f, m, N);
    tn_stream s = spec_stream(f, 0);
    tn_lease lease = acquire(m, v, C0, s);
    uint64_t before;

    assert_ok(tn_sim_queue_delay(f->sim, s, 10 * MS));
    release(&lease);
    before = tn_sim_now_ns(f->sim);
    if (driver)
        f->shim->driver_code = 4;
    else
        f->shim->context_code[0] = f->shim->context_code[1] = 709;
    assert_status(tn_manager_ensure(m, w, C0, NULL, NULL), TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->native_code, driver ? 4 : 709);
    assert_ok(tn_manager_close(m, flags));
    assert_int_equal(tn_sim_now_ns(f->sim), before);
    spec_destroy(f, m);
    f->shim->driver_code = 0;
    f->lenient = true; /* the memory is where the driver was */
}

static void f_g06_driver_shut_down(void **state) { gone(*state, true, 0); }
static void f_g06_driver_shut_down_forced(void **state) { gone(*state, true, TN_CLOSE_FORCE); }
static void f_g06_context_destroyed(void **state) { gone(*state, false, 0); }
static void f_g06_context_destroyed_forced(void **state) { gone(*state, false, TN_CLOSE_FORCE); }

static void f_g12_one_bad_device(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = everywhere(f, m);
    tn_handle w = everywhere(f, m);
    tn_handle u = adopt_rep(f, m, P);
    tn_stream s0 = spec_stream(f, 0);
    tn_stream s1 = spec_stream(f, 1);
    tn_lease held = acquire(m, v, C1, s1);
    int i;

    f->shim->context_code[1] = 700;
    f->shim->sticky[1] = true;
    for (i = 0; i < 100; i++) {
        tn_lease lease = acquire(m, w, C0, s0);

        release(&lease);
        spec_finish(f);
        drop(m, w, C0);
        ensure(m, w, N);
        drop(m, w, N);
        ensure(m, w, C0);
    }
    assert_status(tn_manager_ensure(m, u, C1, NULL, NULL), TN_ERR_DEVICE_LOST);
    assert_int_equal(tn_last_error()->native_code, 700);
    assert_status(tn_lease_release(&held, 0), TN_ERR_DEVICE_LOST);
    assert_true(tn_lease_active(&held));
    ensure(m, w, N);
    spec_fault(f, TN_SIM_COPY, 1, 1, TN_ERR_DRIVER, 999);
    assert_status(tn_manager_ensure(m, u, C0, NULL, NULL), TN_ERR_DRIVER);
    ensure(m, u, C0); /* innocent */
    f->shim->context_code[1] = 0;
    release(&held);
    spec_finish(f);
    assert_ok(tn_manager_close(m, 0));
}

static const struct CMUnitTest tests[] = {
    CASE(f_g01_one_record_per_lease_and_stream),
    CASE(f_g02_events_stay_in_their_context),
    CASE(f_g06_driver_shut_down),
    CASE(f_g06_driver_shut_down_forced),
    CASE(f_g06_context_destroyed),
    CASE(f_g06_context_destroyed_forced),
    CASE(f_g12_one_bad_device),
};

TN_TEST_MAIN("cuda.cases", tests)
