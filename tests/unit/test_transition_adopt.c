/* SPDX-License-Identifier: MIT */
/*
 * src/transition/adopt.c, close.c: adoption and registration as transitions, the order of their
 * errors, what a refusal leaves; entry checks of the module itself; close beside close (M56..M71,
 * M236..M241, B2).
 */
#include "core_fixture.h"

static void ledger_of(tn_manager *m, tn_location at, uint64_t total) {
    uint64_t got, claimed;
    tn__ledger_read(tn__store_ledger(m->store, at), &got, &claimed);
    assert_int_equal(got, total);
    assert_int_equal(claimed, 0);
}

/* ---- Adoption ----------------------------------------------------------------------------- */

struct aliased {
    tn_manager *m;
    tt_backing *batch;
    tn_handle first;    /* row 0 */
    tn_payload another; /* row 1 of the same batch */
};

static struct aliased aliased_of(struct spec *f) {
    struct aliased a = {.m = MANAGER(f, {P, 1000})};
    a.batch = tt_backing_make(NULL, P, 64);
    a.first = spec_adopt(a.m, tt_row(a.batch, 0, 32), P, TN_REPLICABLE);
    a.another = tt_row(a.batch, 1, 32);
    return a;
}

static void aliased_end(struct aliased *a) {
    tt_free(a->another);
    tt_backing_free(a->batch);
}

static void adopt_of_shared_storage_names_its_owner(void **state) {
    struct aliased a = aliased_of(*state);
    tn_handle h = {0, 0, NULL};
    char *before = spec_describe(a.m, 0);
    assert_status(tn_manager_adopt(a.m, a.another, P, TN_REPLICABLE, &h), TN_ERR_OWNERSHIP);
    assert_int_equal(tn_last_error()->owner_count, 1);
    assert_handle(tn_last_error()->owners[0].handle, a.first);
    assert_at(tn_last_error()->owners[0].at, P);
    assert_unchanged(a.m, before, 0);
    ledger_of(a.m, P, 64); /* the charge of the whole batch */
    (void)discard(a.m, a.first);
    assert_ok(tn_manager_adopt(a.m, a.another, P, TN_REPLICABLE, &h));
    a.another = (tn_payload){NULL, NULL};
    aliased_end(&a);
}

/* M56: admission is reported before an alias, also that of a reservation. */
static void adopt_reports_admission_before_an_alias(void **state) {
    struct aliased a = aliased_of(*state);
    tn_reservation small = reserve(a.m, P, 63, "too small"), enough = reserve(a.m, P, 64, "enough");
    tn_handle h;
    char *before = spec_describe(a.m, 0);
    assert_status(tn_manager_adopt_reserved(a.m, a.another, P, TN_REPLICABLE, &small, &h),
                  TN_ERR_BUDGET);
    assert_status(tn_manager_adopt_reserved(a.m, a.another, P, TN_REPLICABLE, &enough, &h),
                  TN_ERR_OWNERSHIP);
    assert_unchanged(a.m, before, 0);
    tn_reservation rest = reserve(a.m, P, 1000 - 64 - 127, "the rest");
    assert_status(tn_manager_adopt(a.m, a.another, P, TN_REPLICABLE, &h), TN_ERR_BUDGET);
    release_reservation(&small);
    release_reservation(&enough);
    release_reservation(&rest);
    ledger_of(a.m, P, 64);
    aliased_end(&a);
}

static void adopt_infers_its_location_or_says_why_not(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    const tt_field mixed[2] = {{.count = 1, .at = {TN_LOCATION_PAGEABLE, 0}},
                               {.count = 1, .at = {TN_LOCATION_PINNED, 0}}};
    tn_payload v = spec_v(f, C1), both = tt_make(tt_type(), f->driver, P, mixed, 2);
    tn_handle h;
    assert_status(tn_manager_adopt(m, both, NOWHERE, TN_REPLICABLE, &h), TN_ERR_MATERIALIZATION);
    assert_status(tn_manager_adopt(m, v, C0, TN_REPLICABLE, &h), TN_ERR_MATERIALIZATION);
    assert_status(tn_manager_adopt(m, v, C2, TN_REPLICABLE, &h), TN_ERR_VALUE);
    assert_status(tn_manager_adopt(m, v, NOWHERE, 2, &h), TN_ERR_KIND);
    assert_locations(m);
    assert_ok(tn_manager_adopt(m, v, NOWHERE, TN_EXCLUSIVE, &h));
    assert_locations(m, C1);
    assert_replicas(m, h, C1);
    tt_free(both);
}

/* M68: a payload that fails to be measured is the caller's. */
static void adopt_that_cannot_measure_changes_nothing(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_payload v = spec_v(f, P), empty = tt_make(tt_type(), NULL, P, NULL, 0);
    tn_handle h;
    tt_fail_measure(1, TN_ERR_PAYLOAD);
    assert_status(tn_manager_adopt(m, v, P, TN_REPLICABLE, &h), TN_ERR_PAYLOAD);
    assert_status(tn_manager_adopt(m, empty, P, TN_REPLICABLE, &h), TN_ERR_PAYLOAD);
    assert_int_equal(version(m), 0);
    assert_ok(tn_manager_adopt(m, v, P, TN_REPLICABLE, &h));
    tt_free(empty);
}

/* ---- Registration ------------------------------------------------------------------------- */

static void register_checks_source_spec_and_location(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *s = spec_source(f);
    tn_source source = tt_source_of(s), none = TN_SOURCE_INIT;
    tn_value_spec spec = tt_spec(32, 32), preserve = spec;
    tn_handle h;
    preserve.recoverability = TN_MUST_PRESERVE;
    assert_status(tn_manager_register_source(m, &preserve, &source, P, &h), TN_ERR_VALUE);
    assert_status(tn_manager_register_source(m, &spec, &source, C2, &h), TN_ERR_VALUE);
    assert_status(tn_manager_register_source(m, &spec, &none, P, &h), TN_ERR_KIND);
    assert_status(tn_manager_register_source(m, &spec, NULL, P, &h), TN_ERR_KIND);
    assert_status(tn_manager_register_source(m, NULL, &source, P, &h), TN_ERR_KIND);
    assert_status(tn_manager_register_source(m, &spec, &source, P, NULL), TN_ERR_KIND);
    assert_int_equal(atomic_load(&s->forgotten), 0);
    assert_locations(m);
    assert_ok(tn_manager_register_source(m, &spec, &source, NOWHERE, &h));
    assert_at(value(m, h).source_at, P);
    (void)discard(m, h);
    assert_int_equal(atomic_load(&s->forgotten), 1);
}

/* ---- The module's own entry checks (M198) -------------------------------------------------- */

static void operations_are_refused_by_word_and_nesting(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn__trans *t = m->trans;
    tn__thread *thread = NULL;
    tn_handle v = adopt_rep(f, m, P), h;
    tn_payload payload = spec_v(f, P);
    tn_action action = {.kind = TN_ACTION_DROP, .handle = v, .at = P};
    tn_value_spec spec = tt_spec(32, 32);
    tn_source source = tt_source_of(spec_source(f));
    tn__frame frame;
    assert_ok(tn__life_thread(m->life, &thread));
    for (int i = 0; i < 2; i++) {
        if (i == 0)
            tn__life_guard_raise(m->life);
        else
            tn__frame_push(thread, &frame, m->id, false);
        assert_status(tn__trans_action(t, thread, &action, NULL, NULL), TN_ERR_REENTRANCY);
        assert_status(tn__trans_adopt(t, thread, payload, P, TN_REPLICABLE, NULL, &h),
                      TN_ERR_REENTRANCY);
        assert_status(tn__trans_register(t, thread, &spec, &source, P, &h), TN_ERR_REENTRANCY);
        assert_status(tn__trans_close(t, thread, true, false), TN_ERR_REENTRANCY);
        if (i == 0)
            tn__life_guard_lower(m->life);
        else
            tn__frame_pop(thread, &frame);
    }
    assert_ok(tn__trans_close(t, thread, true, false));
    assert_ok(tn__trans_close(t, thread, true, true));
    assert_status(tn__trans_action(t, thread, &action, NULL, NULL), TN_ERR_CLOSED);
    tt_free(payload);
}

/* ---- Close -------------------------------------------------------------------------------- */

/* A reader by hand keeps the first close busy; the second waits for it and finds it done. */
static void close_that_waited_for_a_close_succeeds(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    struct args x = {.m = m}, y = x, z = {.m = m, .h = {adopt_rep(f, m, P)}, .at = C0};
    tn__slot *slot = own_slot(m);
    tn__record *record = tn__record_obtain(slot);
    uint64_t generation = tn__word_generation(record->pair.low) + 1;
    struct op first, second, late;
    tn__store_rel(&record->pair.low, tn__word(generation, TN__ACQUIRING));
    OP_START(&first, run_close, &x, 0);
    wait_until(tn__load_acq(&m->life->gate->word) > TN__MANAGER_CLOSED);
    OP_START(&second, run_close, &y, 0);
    wait_until(flow_count(m, false) == 1);
    OP_START(&late, run_ensure, &z, 0);
    wait_until(flow_count(m, false) == 2);
    tn__store_rel(&record->pair.low, tn__word(generation, TN__FREE));
    assert_status(op_end(&first), TN_OK);
    assert_status(op_end(&second), TN_OK);
    assert_status(op_end(&late), TN_ERR_CLOSED);
    tn__record_recycle(record, slot);
}

static void close_waits_for_plans_in_flight(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    struct args copying = {.m = m, .h = {adopt_rep(f, m, P)}, .at = C0}, closing = {.m = m};
    struct op copier, closer;
    NEED_POINTS();
    OP_START(&copier, run_ensure, &copying, TN__POINT_PERFORM);
    op_reach(&copier);
    OP_START(&closer, run_close, &closing, 0);
    wait_until(flow_count(m, false) == 1);
    assert_false(tn__life_closed(m->life));
    assert_status(op_end(&copier), TN_OK);
    assert_status(op_end(&closer), TN_OK);
    ledger_of(m, C0, 0);
    ledger_of(m, P, 0);
}

/* No memory for an empty version: the manager is closed all the same, and nothing is lost. */
static void close_without_memory_for_an_empty_version_is_a_close(void **state) {
    for (uint64_t nth = 2; nth <= 3; nth++) {
        struct spec *f = *state;
        tn_manager *m = MANAGER(f);
        tt_source *source = spec_source(f);
        uint64_t live = tt_count().live;
        (void)adopt_rep(f, m, P);
        (void)register_src(m, source);
        (void)tn__fail(TN_ERR_LOOKUP, "earlier");
        tn__fault_alloc(nth);
        assert_ok(tn_manager_close(m, 0));
        assert_true(tn__fault_alloc_fired());
        tn__fault_alloc(0);
        assert_string_equal(tn_last_error()->message, "earlier");
        assert_int_equal(tt_count().live, live);
        assert_int_equal(atomic_load(&source->forgotten), 1);
        ledger_of(m, P, 0);
    }
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(adopt_of_shared_storage_names_its_owner),
    SPEC_BOTH(adopt_reports_admission_before_an_alias),
    SPEC_CONCURRENT(adopt_infers_its_location_or_says_why_not),
    SPEC_CONCURRENT(adopt_that_cannot_measure_changes_nothing),
    SPEC_BOTH(register_checks_source_spec_and_location),
    SPEC_BOTH(operations_are_refused_by_word_and_nesting),
    SPEC_BOTH(close_that_waited_for_a_close_succeeds),
    SPEC_BOTH(close_waits_for_plans_in_flight),
    SPEC_BOTH(close_without_memory_for_an_empty_version_is_a_close),
};

TN_TEST_MAIN("unit.transition_adopt", tests)
