/* SPDX-License-Identifier: MIT */
/*
 * Close and destroy (M236..M243, M148; cases MC169..MC173).
 *
 * Destroying an open manager warns about each open lifetime, synchronises the streams involved and
 * cleans up (D15).
 */
#include "spec_b_common.h"

#define CODE_WAIT 711

/* A replicable value at P and C0, and a released lease on C0 whose stream is busy. */
static tn_handle with_pending_lease(struct spec *f, tn_manager *m, tn_stream *out) {
    tn_handle v = adopt_rep(f, m, P);
    tn_lease lease;

    *out = spec_stream(f, 0);
    ensure(m, v, C0);
    lease = acquire(m, v, C0, *out);
    spec_busy(f, *out);
    release(&lease);
    assert_int_equal(info(m).pending_lease_count, 1);
    return v;
}

/* Whatever M242 says of a closed manager, but for plans and scopes. */
static void assert_closed(struct spec *f, tn_manager *m, tn_handle v) {
    tn_value_spec spec = tt_spec(32, 32);
    tn_source source = tt_source_of(spec_source(f));
    tn_payload nothing = {NULL, NULL};
    tn_handle h = {0, 0, NULL};
    tn_lease lease = {NULL, 0};
    tn_hold held = {NULL, 0};
    tn_reservation r = {NULL, 0};
    size_t count = 0;

    assert_status(spec_b_version(m), TN_ERR_CLOSED);
    assert_status(spec_b_snapshot(m), TN_ERR_CLOSED);
    assert_status(spec_b_adopt(m, &h), TN_ERR_CLOSED);
    assert_status(tn_manager_register_source(m, &spec, &source, P, &h), TN_ERR_CLOSED);
    assert_status(spec_b_ensure(m, v, P), TN_ERR_CLOSED);
    assert_status(tn_manager_copy(m, v, N, NULL, NULL), TN_ERR_CLOSED);
    assert_status(tn_manager_move(m, v, N, NOWHERE, NULL, NULL), TN_ERR_CLOSED);
    assert_status(tn_manager_drop(m, v, P, NULL), TN_ERR_CLOSED);
    assert_status(tn_manager_discard(m, v, NULL), TN_ERR_CLOSED);
    assert_status(tn_manager_acquire(m, &v, 1, P, NULL, &lease), TN_ERR_CLOSED);
    assert_status(tn_manager_hold(m, &v, 1, P, &held), TN_ERR_CLOSED);
    assert_status(tn_manager_reserve(m, P, 0, "x", &r), TN_ERR_CLOSED);
    assert_int_equal(tn_last_error()->status, TN_ERR_CLOSED);
    assert_int_equal(tn_last_error()->manager, tn_manager_id(m));
    /* arguments still come first */
    assert_status(spec_b_ensure(m, NOT_A_HANDLE, P), TN_ERR_KIND);
    assert_status(tn_manager_adopt(m, nothing, P, 0, &h), TN_ERR_KIND);
    assert_status(tn_manager_acquire(m, &v, 0, P, NULL, &lease), TN_ERR_VALUE);
    assert_status(tn_manager_reserve(m, P, 0, "", &r), TN_ERR_VALUE);
    /* still fine */
    assert_int_equal(tn_manager_id(m), v.manager);
    assert_ok(tn_manager_locations(m, NULL, &count));
    count = 0;
    assert_ok(tn_manager_trace(m, NULL, &count));
    assert_ok(tn_manager_step(m, NULL));
    assert_ok(tn_manager_close(m, 0));
    assert_ok(tn_manager_close(m, TN_CLOSE_FORCE | TN_CLOSE_NO_WAIT));
}

static void mc169_a_hold_and_an_empty_reservation(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {N, 64});
    tn_handle v = adopt_rep(f, m, P);
    tn_hold h = hold(m, v, P);
    tn_reservation r = reserve(m, P, 0, "nothing");
    char *before = spec_describe(m, 0);

    assert_close_in_use(tn_manager_close(m, 0), 0, 0, 1, 1);
    assert_int_equal(tn_last_error()->manager, tn_manager_id(m));
    assert_close_in_use(tn_manager_close(m, TN_CLOSE_NO_WAIT), 0, 0, 1, 1);
    assert_unchanged(m, before, 0); /* it is open and usable */
    release_hold(&h);
    assert_close_in_use(tn_manager_close(m, 0), 0, 0, 0, 1);
    release_reservation(&r);
    assert_ok(tn_manager_close(m, 0));
    assert_ok(tn_manager_close(m, 0));
    assert_closed(f, m, v);
    assert_locations(m, N, P);
    assert_int_equal(spec_warnings_all(f), 0);
}

static void mc169_arguments_of_close(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);

    assert_status(tn_manager_close(NULL, 0), TN_ERR_KIND);
    assert_status(tn_manager_close(m, 4u), TN_ERR_VALUE);
    assert_int_equal(version(m), 0); /* still open */
    assert_int_equal(tn_manager_id(NULL), 0);
    assert_ok(tn_manager_destroy(NULL));
}

/* Values and sources do not hinder closing; everything is given back (M237, M240). */
static void mc169_close_gives_everything_back(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {C0, 64});
    uint64_t live = tt_count().live;
    tt_source *loaded = spec_source(f);
    tt_source *unloaded = spec_source(f);
    tn_sim_memory memory = {.size = sizeof memory};
    tn_payload payload = spec_v(f, N);
    tn_handle v = spec_adopt(m, payload, N, TN_EXCLUSIVE);
    tn_handle w = register_src(m, loaded);

    register_src(m, unloaded);
    ensure(m, w, P);
    ensure(m, w, C0);
    assert_ok(tn_manager_close(m, 0));
    assert_int_equal(tt_count().live, live);
    assert_ok(tn_sim_read_memory(f->sim, C0, &memory));
    assert_int_equal(memory.live_bytes, 0);
    assert_int_equal(loaded->forgotten, 1);
    assert_int_equal(unloaded->forgotten, 1);
    assert_int_equal(trace_count(m), 2);
    assert_locations(m, C0, N, P);
    assert_closed(f, m, v);
}

static void mc170_a_busy_pending_lease(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_stream s;
    tn_handle v = with_pending_lease(f, m, &s);

    assert_close_in_use(tn_manager_close(m, TN_CLOSE_NO_WAIT), 0, 1, 0, 0);
    assert_false(spec_idle(f, s));
    assert_int_equal(info(m).pending_lease_count, 1);
    assert_ok(tn_manager_close(m, 0));
    assert_true(spec_idle(f, s));
    assert_closed(f, m, v);
}

static void mc170_a_complete_pending_lease_needs_no_wait(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_stream s;

    with_pending_lease(f, m, &s);
    spec_finish(f);
    assert_ok(tn_manager_close(m, TN_CLOSE_NO_WAIT)); /* it reaps */
}

static void mc170_an_active_lease_is_never_waited_for(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_lease lease = acquire(m, v, P, NULL);

    assert_close_in_use(tn_manager_close(m, 0), 1, 0, 0, 0);
    assert_close_in_use(tn_manager_close(m, TN_CLOSE_NO_WAIT), 1, 0, 0, 0);
    release(&lease);
    assert_ok(tn_manager_close(m, 0));
}

static void mc171_what_was_waited_for_stays_complete(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_stream s;
    tn_handle v = with_pending_lease(f, m, &s);
    tn_hold h = hold(m, v, P);
    uint64_t before = version(m);

    assert_close_in_use(tn_manager_close(m, 0), 0, 0, 1, 0);
    assert_true(spec_idle(f, s));
    assert_int_equal(version(m), before + 1);
    assert_int_equal(info(m).pending_lease_count, 0);
    assert_int_equal(mat(m, v, C0).pending_count, 0);
    release_hold(&h);
    assert_ok(tn_manager_close(m, 0));
}

/* M238: an error of the wait comes out, and the manager stays open with everything in place. */
static void mc171_waiting_fails(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_stream s;
    tn_handle v = with_pending_lease(f, m, &s);
    char *before = spec_describe(m, 0);

    spec_fault(f, TN_SIM_EVENT_SYNCHRONIZE, 1, 0, TN_ERR_DRIVER, CODE_WAIT);
    assert_status(tn_manager_close(m, 0), TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->native_code, CODE_WAIT);
    assert_true(spec_repair(f) >= 1);
    assert_false(spec_idle(f, s));
    assert_unchanged(m, before, 0);
    assert_in_use(tn_manager_drop(m, v, C0, NULL), 0, 0, 1);
    assert_ok(tn_manager_close(m, 0));
}

static void mc172_a_forced_close_clears_what_is_open(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    uint64_t live = tt_count().live;
    tn_handle v = adopt_rep(f, m, P);
    tn_stream s = spec_stream(f, 0);
    const void *data = NULL;
    tn_handle listed = {0, 0, NULL};
    tn_location at = NOWHERE;
    size_t count = 1;
    uint64_t synchronized;
    uint64_t recorded;
    tn_lease host;
    tn_lease device;
    tn_hold h;
    tn_reservation r;

    ensure(m, v, C0);
    host = acquire(m, v, P, NULL);
    device = acquire(m, v, C0, s);
    spec_busy(f, s);
    h = hold(m, v, P);
    r = reserve(m, P, 4, "x");
    synchronized = tn_sim_calls(f->sim, TN_SIM_DEVICE_SYNCHRONIZE);
    recorded = tn_sim_calls(f->sim, TN_SIM_EVENT_RECORD);
    assert_close_in_use(tn_manager_close(m, 0), 2, 0, 1, 1);
    assert_ok(tn_manager_close(m, TN_CLOSE_FORCE));
    assert_int_equal(tn_sim_calls(f->sim, TN_SIM_DEVICE_SYNCHRONIZE) - synchronized, 1);
    assert_true(spec_idle(f, s));
    assert_int_equal(tt_count().live, live);

    assert_true(tn_lease_active(&host)); /* M150 */
    assert_true(tn_lease_active(&device));
    assert_status(tn_lease_lookup(&host, v, &data), TN_ERR_UNAVAILABLE);
    assert_status(tn_lease_lookup(&device, v, &data), TN_ERR_UNAVAILABLE);
    assert_ok(tn_lease_handles(&device, &listed, &count));
    assert_int_equal(count, 1);
    assert_handle(listed, v);
    assert_ok(tn_lease_location(&device, &at));
    assert_at(at, C0);
    assert_ok(tn_lease_add_stream(&device, spec_stream(f, 0))); /* M137 */
    release(&host);
    release(&device);
    release_hold(&h);
    release_reservation(&r);
    assert_false(tn_lease_active(&device));
    assert_status(tn_lease_lookup(&device, v, &data), TN_ERR_LIFETIME_CLOSED);
    assert_int_equal(tn_sim_calls(f->sim, TN_SIM_EVENT_RECORD), recorded);
    assert_closed(f, m, v);
    assert_locations(m, P, C0);
    assert_int_equal(spec_warnings_all(f), 0);
}

static void mc172_a_forced_close_without_devices(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_lease lease = acquire(m, v, P, NULL);

    assert_ok(tn_manager_close(m, TN_CLOSE_FORCE | TN_CLOSE_NO_WAIT));
    assert_int_equal(tn_sim_calls(f->sim, TN_SIM_DEVICE_SYNCHRONIZE), 0);
    release(&lease);
}

/* M238 for the device synchronisation of a forced close. */
static void mc172_the_device_cannot_be_synchronised(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_stream s = spec_stream(f, 0);
    const void *data = NULL;
    tn_lease lease;
    tn_hold h;
    char *before;

    ensure(m, v, C0);
    lease = acquire(m, v, C0, s);
    h = hold(m, v, P);
    before = spec_describe(m, 0);
    spec_fault(f, TN_SIM_DEVICE_SYNCHRONIZE, 1, 0, TN_ERR_DRIVER, CODE_WAIT);
    assert_status(tn_manager_close(m, TN_CLOSE_FORCE), TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->native_code, CODE_WAIT);
    spec_repair(f);
    assert_unchanged(m, before, 0);
    assert_true(tn_lease_active(&lease));
    assert_ok(tn_lease_lookup(&lease, v, &data));
    assert_true(tt_check(data, 1));
    ensure(m, v, N); /* open and usable */
    assert_ok(tn_manager_close(m, TN_CLOSE_FORCE));
    release(&lease);
    release_hold(&h);
}

/* There is no begin and end of a manager in C: the end of its use is close, then destroy. */
static void mc173_close_with_an_open_lease(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_lease lease = acquire(m, v, P, NULL);

    assert_close_in_use(tn_manager_close(m, 0), 1, 0, 0, 0);
    release(&lease);
    assert_ok(tn_manager_close(m, 0));
    spec_destroy(f, m);
    assert_int_equal(spec_warnings_all(f), 0);
}

/* ---- Destroying open managers --------------------------------------------------------------- */

static void destroy_of_an_idle_open_manager_is_silent(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    uint64_t live = tt_count().live;
    tt_source *source = spec_source(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_handle w = register_src(m, source);

    spec_own_table(f);
    ensure(m, v, C0);
    ensure(m, w, N);
    spec_destroy(f, m);
    assert_int_equal(spec_warnings_all(f), 0);
    assert_int_equal(tt_count().live, live);
    assert_int_equal(source->forgotten, 1);
    assert_int_equal(tn_sim_live_events(f->sim), 0);
    assert_int_equal(tn_sim_live_streams(f->sim), 0);
}

static void destroy_waits_for_pending_leases(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_stream s = spec_stream(f, 0);
    const void *data = NULL;
    tn_lease lease;

    ensure(m, v, C0);
    lease = acquire(m, v, C0, s);
    assert_ok(tn_lease_lookup(&lease, v, &data));
    assert_ok(tn_sim_queue_read(f->sim, s, tt_field_base(data, 0), 32, 1000000));
    release(&lease);
    spec_destroy(f, m);
    assert_true(spec_idle(f, s));
    assert_int_equal(spec_warnings_all(f), 0); /* it was released */
    assert_int_equal(tn_sim_violations(f->sim), 0);
}

static void destroy_warns_once_per_open_lifetime(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle a = adopt_rep(f, m, P);
    tn_handle b = adopt_rep(f, m, P);
    const tn_handle both[] = {a, b};
    tn_stream s[2] = {spec_stream(f, 0), spec_stream(f, 1)};
    tn_lease leases[4];
    tn_hold holds[2];
    tn_reservation reservations[3];

    ensure(m, a, C0);
    ensure(m, a, C1);
    assert_ok(tn_manager_acquire(m, both, 2, P, NULL, &leases[0]));
    leases[1] = acquire(m, a, P, NULL);
    leases[2] = acquire(m, a, C0, s[0]);
    leases[3] = acquire(m, a, C1, s[1]);
    assert_ok(tn_manager_hold(m, both, 2, P, &holds[0]));
    holds[1] = hold(m, a, C1);
    for (int i = 0; i < 3; i++)
        reservations[i] = reserve(m, P, (uint64_t)i, "x");
    spec_busy(f, s[0]);
    spec_busy(f, s[1]);
    spec_destroy(f, m);
    assert_true(spec_idle(f, s[0]) && spec_idle(f, s[1]));
    assert_int_equal(spec_warnings(f, TN_DIAGNOSTIC_LEASE_ABANDONED), 4);
    assert_int_equal(spec_warnings(f, TN_DIAGNOSTIC_HOLD_ABANDONED), 2);
    assert_int_equal(spec_warnings(f, TN_DIAGNOSTIC_RESERVATION_ABANDONED), 3);
    assert_int_equal(spec_warnings_all(f), 9);
    for (int i = 0; i < 4; i++)
        release(&leases[i]);
    for (int i = 0; i < 2; i++)
        release_hold(&holds[i]);
    for (int i = 0; i < 3; i++)
        release_reservation(&reservations[i]);
}

/* A forced close leaves lifetimes detached: they are nobody's leak any more. */
static void destroy_after_a_forced_close_is_silent(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_lease lease = acquire(m, v, P, NULL);

    assert_ok(tn_manager_close(m, TN_CLOSE_FORCE));
    spec_destroy(f, m);
    assert_int_equal(spec_warnings_all(f), 0);
    release(&lease);
}

/* M148: if the release fails the storage stays for ever, rather than being freed under a reader. */
static void destroy_keeps_storage_that_may_be_read(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_payload payload = spec_v(f, C0);
    tn_stream s = spec_stream(f, 0);
    tn_sim_memory memory = {.size = sizeof memory};
    tn_handle v = spec_adopt(m, payload, C0, TN_EXCLUSIVE);
    tn_lease lease = acquire(m, v, C0, s);
    static const uint32_t entries[] = {TN_SIM_STREAM_SYNCHRONIZE, TN_SIM_EVENT_SYNCHRONIZE,
                                       TN_SIM_EVENT_RECORD, TN_SIM_EVENT_QUERY,
                                       TN_SIM_DEVICE_SYNCHRONIZE};

    assert_ok(tn_sim_queue_read(f->sim, s, tt_field_base(payload.data, 0), 32, 1000000));
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
        spec_fault(f, entries[i], 1, 0, TN_ERR_DRIVER, CODE_WAIT);
    spec_destroy(f, m);
    spec_repair(f);
    assert_int_equal(spec_warnings(f, TN_DIAGNOSTIC_LEASE_ABANDONED), 1);
    assert_ok(tn_sim_read_memory(f->sim, C0, &memory));
    assert_int_equal(memory.live_bytes, 32);
    spec_finish(f);
    assert_int_equal(tn_sim_violations(f->sim), 0);
    assert_true(tt_check(payload.data, 1));
    release(&lease);
    tt_free(payload); /* only a test may know that nobody reads any longer */
}

/* D7: a driver that has shut down counts as gone. */
static void close_after_the_driver_has_gone(void **state) {
    static const uint32_t states[] = {TN_SIM_SHUT_DOWN, TN_SIM_CONTEXT_DESTROYED};
    struct spec *f = *state;

    for (size_t i = 0; i < 2; i++) {
        tn_manager *m = MANAGER(f);
        tn_handle v = adopt_rep(f, m, P);
        tn_stream s = spec_stream(f, 0);
        tn_lease pending;
        tn_lease active;

        ensure(m, v, C0);
        pending = acquire(m, v, C0, s);
        active = acquire(m, v, C0, s);
        release(&pending);
        assert_ok(tn_sim_set_state(f->sim, states[i]));
        release(&active);
        assert_ok(tn_manager_close(m, 0));
        spec_destroy(f, m);
        assert_ok(tn_sim_set_state(f->sim, TN_SIM_NORMAL));
    }
    f->lenient = true; /* what the driver held went with it */
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(mc169_a_hold_and_an_empty_reservation),
    SPEC_BOTH(mc169_arguments_of_close),
    SPEC_BOTH(mc169_close_gives_everything_back),
    SPEC_BOTH(mc170_a_busy_pending_lease),
    SPEC_BOTH(mc170_a_complete_pending_lease_needs_no_wait),
    SPEC_BOTH(mc170_an_active_lease_is_never_waited_for),
    SPEC_BOTH(mc171_what_was_waited_for_stays_complete),
    SPEC_BOTH(mc171_waiting_fails),
    SPEC_BOTH(mc172_a_forced_close_clears_what_is_open),
    SPEC_BOTH(mc172_a_forced_close_without_devices),
    SPEC_BOTH(mc172_the_device_cannot_be_synchronised),
    SPEC_BOTH(mc173_close_with_an_open_lease),
    SPEC_BOTH(destroy_of_an_idle_open_manager_is_silent),
    SPEC_BOTH(destroy_waits_for_pending_leases),
    SPEC_BOTH(destroy_warns_once_per_open_lifetime),
    SPEC_BOTH(destroy_after_a_forced_close_is_silent),
    SPEC_BOTH(destroy_keeps_storage_that_may_be_read),
    SPEC_BOTH(close_after_the_driver_has_gone),
};

TN_TEST_MAIN("spec.close", tests)
