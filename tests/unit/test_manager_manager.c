/* SPDX-License-Identifier: MIT */
/*
 * src/manager: creation from every form of configuration, the checks that need no state, ids, what
 * works on a closed manager (M1, M16..M20, M55, M198, M251).
 */
#include "core_fixture.h"

static tn_status try_create(const tn_config *config) {
    tn_manager *m = NULL;
    tn_status status = tn_manager_create(config, &m);
    if (status == TN_OK)
        assert_ok(tn_manager_destroy(m));
    else
        assert_null(m);
    return status;
}

static tn_status try_budgets(struct spec *f, const tn_budget *budgets, size_t count) {
    tn_config config = spec_config(f);
    config.budgets = budgets;
    config.budget_count = count;
    return try_create(&config);
}

static void config_is_checked(void **state) {
    struct spec *f = *state;
    tn_config config = spec_config(f);
    const tn_budget twice[2] = {{C0, 1}, {C0, 2}},
                    host[2] = {{{TN_LOCATION_PINNED, 0}, 1}, {{TN_LOCATION_PINNED, 9}, 1}};
    const tn_budget absent[1] = {{C2, 1}}, huge[1] = {{P, (uint64_t)INT64_MAX + 1}},
                    most[1] = {{P, INT64_MAX}}, none[1] = {{NOWHERE, 1}};
    assert_ok(try_create(NULL));
    assert_status(tn_manager_create(&config, NULL), TN_ERR_KIND);
    config.mode = 2;
    assert_status(try_create(&config), TN_ERR_KIND);
    config = spec_config(f);
    config.reaper = 2;
    assert_status(try_create(&config), TN_ERR_KIND);
    config = spec_config(f);
    config.size = 4;
    assert_status(try_create(&config), TN_ERR_KIND);
    assert_status(try_budgets(f, NULL, 1), TN_ERR_KIND);
    assert_status(try_budgets(f, none, 1), TN_ERR_KIND);
    assert_status(try_budgets(f, twice, 2), TN_ERR_VALUE);
    assert_status(try_budgets(f, host, 2), TN_ERR_VALUE);
    assert_status(try_budgets(f, absent, 1), TN_ERR_VALUE);
    assert_status(try_budgets(f, huge, 1), TN_ERR_VALUE);
    assert_ok(try_budgets(f, most, 1));
    assert_ok(try_budgets(f, NULL, 0));
}

static void config_of_an_older_caller_means_its_defaults(void **state) {
    tn_config config;
    tn_manager *m = NULL;
    (void)state;
    memset(&config, 0xff, sizeof config);
    config.size = offsetof(tn_config, budgets);
    config.driver = NULL;
    assert_ok(tn_manager_create(&config, &m));
    assert_int_equal(m->trans->trace.capacity, 4096);
    assert_true(m->trans->serial);
    assert_ok(tn_manager_destroy(m));
}

static void trace_capacity_has_its_special_values(void **state) {
    struct spec *f = *state;
    const uint64_t given[4] = {0, TN_TRACE_NONE, TN_TRACE_UNLIMITED, 7};
    const uint64_t meant[4] = {4096, 0, UINT64_MAX, 7};
    for (int i = 0; i < 4; i++) {
        tn_config config = spec_config(f);
        config.trace_capacity = given[i];
        assert_int_equal(spec_manager_with(f, &config)->trans->trace.capacity, meant[i]);
    }
}

static void ids_are_never_used_twice(void **state) {
    struct spec *f = *state;
    uint64_t last = 0;
    for (int i = 0; i < 10; i++) {
        tn_manager *m = MANAGER(f);
        assert_true(tn_manager_id(m) > last);
        last = tn_manager_id(m);
        spec_destroy(f, m);
    }
    assert_int_equal(tn_manager_id(NULL), 0);
    assert_ok(tn_manager_destroy(NULL));
}

/* Checks without state come before everything, also on a closed manager and under the guard. */
static void arguments_are_checked_before_state(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P), none = {0, 0, NULL};
    tn_lease lease;
    tn_hold h;
    tn_reservation r;
    tn_report report = {.size = 0};
    size_t count = 1;
    assert_ok(tn_manager_close(m, 0));
    assert_status(tn_manager_acquire(m, &v, 0, P, NULL, &lease), TN_ERR_VALUE);
    assert_status(tn_manager_acquire(m, &v, (size_t)UINT32_MAX + 1, P, NULL, &lease), TN_ERR_VALUE);
    assert_status(tn_manager_acquire(m, NULL, 1, P, NULL, &lease), TN_ERR_KIND);
    assert_status(tn_manager_acquire(m, &v, 1, P, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_acquire(NULL, &v, 1, P, NULL, &lease), TN_ERR_KIND);
    assert_status(tn_manager_hold(m, &none, 1, P, &h), TN_ERR_KIND);
    assert_status(tn_manager_reserve(m, P, (uint64_t)INT64_MAX + 1, "r", &r), TN_ERR_VALUE);
    assert_status(tn_manager_reserve(m, P, 1, " ", &r), TN_ERR_VALUE);
    assert_status(tn_manager_ensure(m, none, P, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_ensure(m, v, NOWHERE, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_move(m, v, P, (tn_location){9, 0}, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_drop(m, v, P, &report), TN_ERR_KIND);
    assert_status(tn_manager_locations(m, NULL, &count), TN_ERR_KIND);
    assert_status(tn_manager_trace(m, NULL, &count), TN_ERR_KIND);
    assert_status(tn_manager_trace(m, &report, &count), TN_ERR_KIND);
    assert_status(tn_manager_close(m, 4), TN_ERR_VALUE);
    assert_status(tn_manager_ensure(m, v, P, NULL, NULL), TN_ERR_CLOSED);
    assert_int_equal(tn_last_error()->manager, tn_manager_id(m));
}

static void closed_manager_still_shows_places_and_trace(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 100});
    uint64_t done = 0;
    (void)ensure(m, adopt_rep(f, m, P), C0);
    assert_ok(tn_manager_close(m, 0));
    assert_ok(tn_manager_close(m, TN_CLOSE_FORCE));
    assert_locations(m, P, C0);
    assert_int_equal(trace_count(m), 1);
    assert_ok(tn_manager_clear_trace(m));
    assert_ok(tn_manager_step(m, &done));
    assert_true(done > 0);
    assert_ok(tn_manager_step(m, NULL));
    assert_int_equal(trace_count(m), 0);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(config_is_checked),
    SPEC_CONCURRENT(config_of_an_older_caller_means_its_defaults),
    SPEC_CONCURRENT(trace_capacity_has_its_special_values),
    SPEC_CONCURRENT(ids_are_never_used_twice),
    SPEC_BOTH(arguments_are_checked_before_state),
    SPEC_BOTH(closed_manager_still_shows_places_and_trace),
};

TN_TEST_MAIN("unit.manager_manager", tests)
