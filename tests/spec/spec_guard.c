/* SPDX-License-Identifier: MIT */
/*
 * Calls from callbacks: what is refused, what works, and what comes of it (M189..M192, M195..M199;
 * cases MC156, MC157, MC160).
 *
 * TN_MODE_CONCURRENT narrows the guard to the callback's own thread (D3).
 */
#include "spec_guard_common.h"

static tn_status adopt_into(tn_manager *m, tn_reservation *r, tn_handle *out) {
    tn_payload v = tt_bytes(NULL, P, 8);
    tn_status status = tn_manager_adopt_reserved(m, v, P, TN_EXCLUSIVE, r, out);

    if (status != TN_OK)
        tt_free(v);
    return status;
}

static tn_status register_extra(struct guard *g, tn_handle *out) {
    tn_value_spec spec = tt_spec(32, 32);
    tn_source source = tt_source_of(g->extra);

    return tn_manager_register_source(g->m, &spec, &source, P, out);
}

/* Every operation that M189 lists, without those on plans and scopes. */
static const char *everything_is_refused(struct guard *g) {
    tn_manager *m = g->m;
    tn_handle h = {0, 0, NULL};
    tn_lease lease = {NULL, 0};
    tn_hold held = {NULL, 0};
    tn_reservation r = {NULL, 0};
    const void *data = NULL;
    size_t count = 0;

    TN_WORKER_STATUS(spec_b_version(m), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_manager_locations(m, NULL, &count), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(spec_b_adopt(m, &h), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(adopt_into(m, &g->reservation, &h), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(register_extra(g, &h), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(spec_b_ensure(m, g->spare, C1), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(spec_b_ensure(m, g->spare, P), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_manager_copy(m, g->spare, C1, NULL, NULL), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_manager_move(m, g->spare, C1, P, NULL, NULL), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_manager_drop(m, g->spare, N, NULL), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_manager_discard(m, g->spare, NULL), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_manager_acquire(m, &g->v, 1, P, NULL, &lease), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_manager_acquire(m, &g->v, 1, C0, g->stream, &lease), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_manager_hold(m, &g->v, 1, P, &held), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_manager_reserve(m, P, 1, "more", &r), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(spec_b_snapshot(m), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_manager_trace(m, NULL, &count), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_manager_clear_trace(m), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_manager_close(m, 0), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_manager_close(m, TN_CLOSE_NO_WAIT), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_manager_close(m, TN_CLOSE_FORCE), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_manager_step(m, NULL), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_lease_lookup(&g->host, g->v, &data), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_lease_lookup(&g->device, g->v, &data), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_lease_release(&g->host, 0), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_lease_release(&g->device, 0), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_lease_release(&g->device, TN_RELEASE_WAIT), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_hold_release(&g->held), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_reservation_release(&g->reservation), TN_ERR_REENTRANCY);
    TN_WORKER_CHECK(lease.record == NULL && held.record == NULL && r.record == NULL);
    TN_WORKER_CHECK(h.index == 0 && data == NULL);
    return NULL;
}

/* What M190 leaves usable. */
static const char *the_rest_works(struct guard *g) {
    tn_value_spec spec = tt_spec(32, 32);
    tn_reservation_info r = {.size = sizeof r};
    tn_handle h = {0, 0, NULL};
    tn_location at = NOWHERE;
    size_t count = 1;
    bool in = false;

    TN_WORKER_CHECK(tn_manager_id(g->m) == g->v.manager);
    TN_WORKER_STATUS(tn_handle_make(g->v.manager, 77, tt_type(), &h), TN_OK);
    TN_WORKER_STATUS(tn_value_spec_check(&spec), TN_OK);
    TN_WORKER_CHECK(guard_lifetimes_are_open(g) == NULL);
    TN_WORKER_STATUS(tn_lease_handles(&g->host, &h, &count), TN_OK);
    TN_WORKER_CHECK(count == 1 && tn_handle_equal(h, g->v));
    TN_WORKER_STATUS(tn_lease_contains(&g->host, g->v, &in), TN_OK);
    TN_WORKER_CHECK(in);
    TN_WORKER_STATUS(tn_lease_location(&g->device, &at), TN_OK);
    TN_WORKER_CHECK(tn_location_equal(at, C0));
    TN_WORKER_STATUS(tn_lease_add_stream(&g->device, g->stream), TN_OK);
    TN_WORKER_STATUS(tn_hold_handles(&g->held, &h, &count), TN_OK);
    TN_WORKER_CHECK(count == 1 && tn_handle_equal(h, g->v));
    TN_WORKER_STATUS(tn_hold_location(&g->held, &at), TN_OK);
    TN_WORKER_CHECK(tn_location_equal(at, P));
    TN_WORKER_STATUS(tn_reservation_read(&g->reservation, &r), TN_OK);
    TN_WORKER_CHECK(r.bytes == 8 && strcmp(r.label, "open") == 0);
    return NULL;
}

static const char *other_managers_work(struct guard *g) {
    tn_lease lease;

    TN_WORKER_STATUS(spec_b_ensure(g->other, g->beyond, P), TN_OK);
    TN_WORKER_STATUS(tn_manager_acquire(g->other, &g->beyond, 1, P, NULL, &lease), TN_OK);
    TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
    TN_WORKER_STATUS(spec_b_snapshot(g->other), TN_OK);
    return NULL;
}

/* Checks that need no state come before the guard (M191). */
static const char *arguments_come_first(struct guard *g) {
    tn_payload nothing = {NULL, NULL};
    tn_handle h = {0, 0, NULL};
    tn_lease lease = {NULL, 0};
    tn_hold held = {NULL, 0};
    tn_reservation r = {NULL, 0};
    tn_source source = TN_SOURCE_INIT;
    tn_value_spec spec = tt_spec(32, 32);

    TN_WORKER_STATUS(tn_manager_adopt(g->m, nothing, P, 0, &h), TN_ERR_KIND);
    TN_WORKER_STATUS(spec_b_ensure(g->m, NOT_A_HANDLE, P), TN_ERR_KIND);
    TN_WORKER_STATUS(tn_manager_discard(g->m, NOT_A_HANDLE, NULL), TN_ERR_KIND);
    TN_WORKER_STATUS(tn_manager_acquire(g->m, &g->v, 0, P, NULL, &lease), TN_ERR_VALUE);
    TN_WORKER_STATUS(tn_manager_hold(g->m, &g->v, 0, P, &held), TN_ERR_VALUE);
    TN_WORKER_STATUS(tn_manager_reserve(g->m, P, 1, " ", &r), TN_ERR_VALUE);
    TN_WORKER_STATUS(tn_manager_register_source(g->m, &spec, &source, P, &h), TN_ERR_KIND);
    return NULL;
}

static const char *run_all(struct guard *g, const char *(*const *checks)(struct guard *),
                           size_t count) {
    const char *text = NULL;

    for (size_t i = 0; text == NULL && i < count; i++)
        text = checks[i](g);
    return text;
}

static const char *(*const refusals[])(struct guard *) = {
    everything_is_refused, guard_lifetimes_are_open, the_rest_works, other_managers_work,
    arguments_come_first};
#define REFUSALS (sizeof refusals / sizeof refusals[0])

/* ---- MC156 ---------------------------------------------------------------------------------- */

static tn_status refusals_on_own_thread(void *context, const tn_load_request *request) {
    struct guard *g = context;

    (void)request;
    g->text = run_all(g, refusals, REFUSALS);
    if (g->text == NULL && tn_manager_destroy(g->m) != TN_ERR_REENTRANCY)
        g->text = "a manager was destroyed inside its own callback";
    atomic_store(&g->entered, true);
    return TN_OK;
}

static void mc156_refused_on_the_callbacks_thread(void **state) {
    struct guard g;

    guard_prepare(&g, *state, refusals_on_own_thread);
    ensure(g.m, g.loading, P);
    assert_true(atomic_load(&g.entered));
    assert_null_text(g.text);
    assert_int_equal(version(g.m) - g.version, 1);
    assert_replicas(g.m, g.loading, P);
    assert_int_equal(g.extra->calls, 0);
    guard_finish(&g);
}

static const char *refusals_body(void *arg) { return run_all(arg, refusals, REFUSALS); }

static tn_status refusals_on_second_thread(void *context, const tn_load_request *request) {
    struct guard *g = context;
    struct spec_b_thread thread;

    (void)request;
    spec_b_start(&thread, refusals_body, g);
    g->text = spec_b_join(&thread);
    atomic_store(&g->entered, true);
    return TN_OK;
}

static void mc156_refused_on_a_second_thread(void **state) {
    struct guard g;

    guard_prepare(&g, *state, refusals_on_second_thread);
    ensure(g.m, g.loading, P);
    assert_true(atomic_load(&g.entered));
    assert_null_text(g.text);
    assert_int_equal(version(g.m) - g.version, 1);
    assert_replicas(g.m, g.loading, P);
    guard_finish(&g);
}

/* D3: what does not need the callback's own transition just works on other threads. */
static const char *everything_works(struct guard *g) {
    tn_manager *m = g->m;
    tn_handle h = {0, 0, NULL};
    tn_handle k = {0, 0, NULL};
    tn_lease lease = {NULL, 0};
    tn_hold held = {NULL, 0};
    tn_reservation r = {NULL, 0};
    const void *data = NULL;
    size_t count = 0;

    TN_WORKER_STATUS(spec_b_version(m), TN_OK);
    TN_WORKER_STATUS(tn_manager_locations(m, NULL, &count), TN_OK);
    TN_WORKER_STATUS(spec_b_adopt(m, &h), TN_OK);
    TN_WORKER_STATUS(register_extra(g, &k), TN_OK);
    TN_WORKER_STATUS(spec_b_ensure(m, k, P), TN_OK); /* a second callback beside ours */
    TN_WORKER_STATUS(spec_b_ensure(m, g->spare, C1), TN_OK);
    TN_WORKER_STATUS(tn_manager_move(m, g->spare, C0, C1, NULL, NULL), TN_OK);
    TN_WORKER_STATUS(tn_manager_drop(m, g->spare, C0, NULL), TN_OK);
    TN_WORKER_STATUS(tn_manager_discard(m, h, NULL), TN_OK);
    TN_WORKER_STATUS(tn_manager_acquire(m, &g->spare, 1, P, NULL, &lease), TN_OK);
    TN_WORKER_STATUS(tn_lease_lookup(&lease, g->spare, &data), TN_OK);
    TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
    TN_WORKER_STATUS(tn_manager_acquire(m, &g->loading, 1, P, NULL, &lease), TN_ERR_UNAVAILABLE);
    TN_WORKER_STATUS(tn_manager_hold(m, &g->spare, 1, N, &held), TN_OK);
    TN_WORKER_STATUS(tn_hold_release(&held), TN_OK);
    TN_WORKER_STATUS(tn_manager_reserve(m, P, 1, "more", &r), TN_OK);
    TN_WORKER_STATUS(tn_reservation_release(&r), TN_OK);
    TN_WORKER_STATUS(spec_b_snapshot(m), TN_OK);
    count = 0;
    TN_WORKER_STATUS(tn_manager_trace(m, NULL, &count), TN_OK);
    TN_WORKER_STATUS(tn_manager_clear_trace(m), TN_OK);
    TN_WORKER_STATUS(tn_lease_lookup(&g->host, g->v, &data), TN_OK);
    return NULL;
}

static const char *(*const successes[])(struct guard *) = {
    everything_works, guard_lifetimes_are_open, the_rest_works, other_managers_work,
    arguments_come_first};

static const char *successes_body(void *arg) {
    return run_all(arg, successes, sizeof successes / sizeof successes[0]);
}

static tn_status successes_on_second_thread(void *context, const tn_load_request *request) {
    struct guard *g = context;
    struct spec_b_thread thread;

    (void)request;
    spec_b_start(&thread, successes_body, g);
    g->text = spec_b_join(&thread);
    atomic_store(&g->entered, true);
    return TN_OK;
}

static void mc156_other_threads_go_on(void **state) {
    struct guard g;

    guard_prepare(&g, *state, successes_on_second_thread);
    ensure(g.m, g.loading, P);
    assert_true(atomic_load(&g.entered));
    assert_null_text(g.text);
    assert_replicas(g.m, g.loading, P);
    assert_int_equal(g.extra->calls, 1);
    guard_finish(&g);
}

/* ---- MC157 ---------------------------------------------------------------------------------- */

static tn_status pass_the_refusal_on(void *context, const tn_load_request *request) {
    struct guard *g = context;
    size_t count = 0;

    (void)request;
    return tn_manager_locations(g->m, NULL, &count);
}

static void mc157_a_refusal_that_is_passed_on(void **state) {
    struct spec *f = *state;
    struct guard g = {.f = f};
    tt_source *source = spec_source(f);

    source->hook = pass_the_refusal_on;
    source->hook_context = &g;
    g.m = MANAGER(f);
    g.loading = register_src(g.m, source);
    g.version = version(g.m);
    assert_status(spec_b_ensure(g.m, g.loading, P), TN_ERR_REENTRANCY);
    assert_int_equal(source->calls, 1);
    assert_replicas(g.m, g.loading);
    assert_int_equal(value(g.m, g.loading).has_source, 1);
    assert_int_equal(used(g.m, P), 0);
    assert_int_equal(reserved(g.m, P), 0);
    assert_peaks(g.m, P, 0, 32);
    assert_int_equal(version(g.m), g.version);
    assert_int_equal(trace_count(g.m), 0);
    source->hook = NULL; /* the guard is down and the registration is as it was */
    ensure(g.m, g.loading, P);
    assert_int_equal(source->calls, 2);
}

/* ---- MC160: payload callbacks --------------------------------------------------------------- */

/* M197: a nested call on the same thread; locations, trace and clear trace are exempt. */
static const char *nested_calls(struct guard *g) {
    tn_manager *m = g->m;
    tn_lease lease = {NULL, 0};
    tn_hold held = {NULL, 0};
    tn_reservation r = {NULL, 0};
    tn_handle h = {0, 0, NULL};
    const void *data = NULL;
    size_t count = 0;

    TN_WORKER_STATUS(spec_b_version(m), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(spec_b_snapshot(m), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_manager_reserve(m, P, 1, "x", &r), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_manager_acquire(m, &g->v, 1, P, NULL, &lease), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_manager_hold(m, &g->v, 1, P, &held), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_lease_lookup(&g->host, g->v, &data), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_lease_release(&g->host, 0), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_hold_release(&g->held), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_reservation_release(&g->reservation), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_manager_close(m, 0), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_manager_close(m, TN_CLOSE_FORCE), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(spec_b_adopt(m, &h), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(spec_b_ensure(m, g->spare, P), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_manager_drop(m, g->spare, N, NULL), TN_ERR_REENTRANCY);
    TN_WORKER_STATUS(tn_manager_locations(m, NULL, &count), TN_OK);
    TN_WORKER_CHECK(count == 3);
    count = 0;
    TN_WORKER_STATUS(tn_manager_trace(m, NULL, &count), TN_OK);
    TN_WORKER_CHECK(count >= 2);
    return guard_lifetimes_are_open(g);
}

static void nested_in_copy(void *context, const void *data) {
    struct guard *g = context;

    (void)data;
    g->text = nested_calls(g);
    if (g->text == NULL && tn_manager_clear_trace(g->m) != TN_OK)
        g->text = "the trace cannot be cleared inside a copy callback";
    atomic_store(&g->entered, true);
}

static void mc160_nested_calls_of_a_copy_callback(void **state) {
    struct guard g;

    guard_prepare(&g, *state, NULL);
    tt_on_copy(nested_in_copy, &g);
    assert_rises(g.m, 2, ensure(g.m, g.spare, C1)); /* tracks C1, installs */
    tt_on_copy(NULL, NULL);
    assert_true(atomic_load(&g.entered));
    assert_null_text(g.text);
    assert_replicas(g.m, g.spare, P, N, C1);
    assert_int_equal(trace_count(g.m), 1); /* cleared in the middle of that ensure */
    guard_finish(&g);
}

static void nested_once(void *context, const void *data) {
    struct guard *g = context;

    (void)data;
    if (!atomic_exchange(&g->entered, true))
        g->text = nested_calls(g);
}

static void mc160_nested_calls_of_measure_and_destroy(void **state) {
    struct guard g;
    tn_payload v;

    guard_prepare(&g, *state, NULL);
    v = spec_v(g.f, P);
    tt_on_measure(nested_once, &g);
    spec_adopt(g.m, v, P, TN_REPLICABLE);
    tt_on_measure(NULL, NULL);
    assert_true(atomic_load(&g.entered));
    assert_null_text(g.text);

    atomic_store(&g.entered, false);
    tt_on_destroy(nested_once, &g);
    drop(g.m, g.spare, N); /* when it returns the payload has been given back (M87) */
    tt_on_destroy(NULL, NULL);
    assert_true(atomic_load(&g.entered));
    assert_null_text(g.text);
    assert_replicas(g.m, g.spare, P);
    guard_finish(&g);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(mc156_refused_on_the_callbacks_thread),
    SPEC_SERIAL(mc156_refused_on_a_second_thread),
    SPEC_CONCURRENT(mc156_other_threads_go_on),
    SPEC_BOTH(mc157_a_refusal_that_is_passed_on),
    SPEC_BOTH(mc160_nested_calls_of_a_copy_callback),
    SPEC_BOTH(mc160_nested_calls_of_measure_and_destroy),
};

TN_TEST_MAIN("spec.guard", tests)
