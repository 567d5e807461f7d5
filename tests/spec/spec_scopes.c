/* SPDX-License-Identifier: MIT */
/*
 * Scopes that go as planned (M200..M203, M206, M207, M212..M216; cases MC137..MC139, MC147,
 * MC149..MC152, MC154, MC180; MC172's scope).
 */
#include "spec_scope_common.h"

/* ---- MC137, MC138, MC139 -------------------------------------------------------------------- */

static void mc137_entered_once_closed_once(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 128});
    tn_handle src = register_src(m, spec_source(f));
    tn_scope *s = SCOPE(m, "once", RESERVE({P, 32, "work"}, {N, 0, "none"}), ENTER(ENSURE(src, P)),
                        LEAVE(DROP(src, P)));

    assert_status(tn_scope_close(s), TN_ERR_MISUSE);
    assert_rises(m, 4, assert_ok(tn_scope_enter(s))); /* 1 and 2 for the reservations, 1 */
    assert_true(tn_scope_active(s));
    assert_int_equal(used(m, P), 32);
    assert_int_equal(reserved(m, P), 32);
    assert_int_equal(remaining(m, P), 64);
    assert_peaks(m, P, 32, 64);
    assert_int_equal(loc(m, N).reservation_count, 1);
    assert_int_equal(reserved(m, N), 0);
    assert_status(tn_scope_enter(s), TN_ERR_MISUSE);
    assert_true(tn_scope_active(s));
    assert_no_news(s);
    assert_rises(m, 3, assert_ok(tn_scope_close(s)));
    assert_false(tn_scope_active(s));
    assert_rises(m, 0, assert_ok(tn_scope_close(s)));
    assert_status(tn_scope_enter(s), TN_ERR_MISUSE);
    assert_transitions(scope_report(s), 0, 1, 1, ENSURE(src, P), DROP(src, P));
    assert_int_equal(used(m, P), 0);
    assert_int_equal(reserved(m, P), 0);
    assert_peaks(m, P, 32, 64);
    assert_int_equal(info(m).reservation_count, 0);
    destroy_scope(s);
    assert_int_equal(spec_warnings_all(f), 0);
}

static void nest(struct spec *f, bool outer_first) {
    tn_manager *m = MANAGER(f, {P, 64});
    tn_scope *outer = SCOPE(m, "outer", RESERVE({P, 17, "outer"}));
    tn_scope *inner = SCOPE(m, "inner", RESERVE({P, 11, "inner"}));

    assert_ok(tn_scope_enter(outer));
    assert_int_equal(reserved(m, P), 17);
    assert_ok(tn_scope_enter(inner));
    assert_int_equal(reserved(m, P), 28);
    assert_ok(tn_scope_close(outer_first ? outer : inner));
    assert_int_equal(reserved(m, P), outer_first ? 11 : 17);
    assert_ok(tn_scope_close(outer_first ? inner : outer));
    assert_int_equal(reserved(m, P), 0);
    assert_no_transitions(scope_report(outer));
    assert_no_transitions(scope_report(inner));
    assert_peaks(m, P, 0, 28);
    destroy_scope(outer);
    destroy_scope(inner);
}

static void mc138_scopes_nest(void **state) { nest(*state, false); }
static void mc138_scopes_overlap(void **state) { nest(*state, true); }

static void mc139_reclaims_first(void **state) {
    static const uint32_t phases[3] = {TN_PHASE_RECLAIM, TN_PHASE_ENTER, TN_PHASE_EXIT};
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 64});
    tn_handle first = register_src(m, spec_source(f));
    tn_handle second = register_src(m, spec_source(f));
    tn_explanation_info head = TN_EXPLANATION_INFO_INIT;
    tn_action_explanation rows[4] = {TN_ACTION_EXPLANATION_INIT};
    tn_predicted_peak peak[4];
    tn_explanation *e = NULL;
    size_t count = 4;
    tn_scope *s = SCOPE(m, "room", RECLAIM(DROP(first, P)), RESERVE({P, 32, "work"}),
                        ENTER(ENSURE(second, P)), LEAVE(DROP(second, P)));

    ensure(m, first, P);
    assert_ok(tn_manager_explain(m, tn_scope_plan(s), TN_VERSION_ANY, &e));
    assert_ok(tn_explanation_read(e, &head));
    assert_int_equal(head.feasible, 1);
    assert_int_equal(head.reason, TN_REASON_NONE);
    assert_ok(tn_explanation_actions(e, rows, &count));
    assert_int_equal(count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(rows[i].phase, phases[i]);
        assert_handle(rows[i].action.handle, i == 0 ? first : second);
    }
    count = 4;
    assert_ok(tn_explanation_peaks(e, peak, &count));
    assert_int_equal(count, 1);
    assert_at(peak[0].at, P);
    assert_int_equal(peak[0].charged_bytes, 64);
    tn_explanation_drop(e);

    assert_ok(tn_scope_enter(s));
    assert_int_equal(used(m, P), 32);
    assert_int_equal(reserved(m, P), 32);
    assert_replicas(m, first);
    assert_replicas(m, second, P);
    assert_ok(tn_scope_close(s));
    assert_transitions(scope_report(s), 1, 1, 1, DROP(first, P), ENSURE(second, P),
                       DROP(second, P));
    assert_peaks(m, P, 32, 64);
    destroy_scope(s);
}

/* ---- MC147, MC172: a closed manager --------------------------------------------------------- */

static void mc147_without_reservations_does_not_hinder_close(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle src = register_src(m, spec_source(f));
    tn_scope *s = SCOPE(m, "light", ENTER(ENSURE(src, P)), LEAVE(DROP(src, P)));

    assert_ok(tn_scope_enter(s));
    assert_ok(tn_manager_close(m, 0));
    assert_true(tn_scope_active(s));
    assert_status(tn_scope_close(s), TN_ERR_CLOSED);
    assert_false(tn_scope_active(s));
    assert_no_news(s);
    assert_ok(tn_scope_close(s));
    assert_no_news(s);
    destroy_scope(s);
    assert_int_equal(spec_warnings_all(f), 0);
}

static void mc147_with_reservations_does(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle src = register_src(m, spec_source(f));
    tn_scope *s =
        SCOPE(m, "heavy", RESERVE({P, 0, "zero"}), ENTER(ENSURE(src, P)), LEAVE(DROP(src, P)));

    assert_ok(tn_scope_enter(s));
    assert_close_in_use(tn_manager_close(m, 0), 0, 0, 0, 1);
    assert_ok(tn_manager_close(m, TN_CLOSE_FORCE));
    assert_status(tn_scope_close(s), TN_ERR_CLOSED);
    assert_no_news(s);
    assert_ok(tn_scope_close(s));
    destroy_scope(s);
    assert_int_equal(spec_warnings_all(f), 0);
}

static void mc172_a_scope_of_a_closed_manager(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_scope *early = SCOPE(m, "early", ENTER(ENSURE(v, N)));
    tn_scope *late;

    assert_ok(tn_manager_close(m, TN_CLOSE_FORCE));
    late = SCOPE(m, "late", ENTER(ENSURE(v, N)), RESERVE({P, 8, "x"}));
    assert_int_equal(tn_scope_manager(late), tn_manager_id(m));
    assert_status(tn_scope_enter(late), TN_ERR_CLOSED);
    assert_status(tn_scope_enter(early), TN_ERR_CLOSED);
    assert_status(tn_scope_enter(late), TN_ERR_MISUSE); /* consumed (M203) */
    assert_ok(tn_scope_close(late));
    assert_no_news(late);
    destroy_scope(early);
    destroy_scope(late);
    assert_int_equal(spec_warnings_all(f), 0);
}

/* ---- MC149, MC150, MC154: streams ----------------------------------------------------------- */

static tn_run_options with_streams(const tn_transfer_stream *streams, size_t count) {
    tn_run_options options = TN_RUN_OPTIONS_INIT;

    options.streams = streams;
    options.stream_count = count;
    return options;
}

static void mc149_streams_are_checked_at_entry(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_transfer_stream one = {{17, 0}, spec_stream(f, 0)};
    tn_run_options options = with_streams(NULL, 1);
    tn_plan *plan = PLAN("streams", ENTER(ENSURE(v, N)));
    tn_scope *s = NULL;

    assert_status(tn_scope_create(m, plan, &options, &s), TN_ERR_KIND); /* no list */
    assert_null(s);
    options = with_streams(&one, 1);
    assert_ok(tn_scope_create(m, plan, &options, &s)); /* no location */
    assert_status(tn_scope_enter(s), TN_ERR_KIND);
    assert_status(tn_scope_enter(s), TN_ERR_MISUSE);
    destroy_scope(s);
    assert_replicas(m, v, P);
    options = with_streams(&one, 0);
    assert_ok(tn_scope_create(m, plan, &options, &s)); /* empty */
    assert_ok(tn_scope_enter(s));
    close_scope(s);
    tn_plan_destroy(plan);
    assert_replicas(m, v, P, N);
}

/* Work that the streams of a copy to C0 have queued before it: the copy waits for the one it
 * uses, and in virtual time that moves the clock. */
static uint64_t time_of(struct spec *f, tn_scope *s) {
    uint64_t before = tn_sim_now_ns(f->sim);

    assert_ok(tn_scope_enter(s));
    return tn_sim_now_ns(f->sim) - before;
}

static void mc150_copies_go_to_the_stream_of_their_destination(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_stream mine = spec_stream(f, 0);
    tn_transfer_stream map = {C0, mine};
    tn_run_options options = with_streams(&map, 1);
    tn_scope *s = SCOPE_WITH(m, &options, "stream", ENTER(ENSURE(v, C0)), LEAVE(DROP(v, C0)));
    const void *data = NULL;
    tn_lease lease;

    spec_busy(f, mine);
    assert_true(time_of(f, s) >= 1000000);
    assert_true(spec_idle(f, mine));
    lease = acquire(m, v, C0, mine);
    assert_ok(tn_lease_lookup(&lease, v, &data));
    assert_true(tt_check(data, 1));
    assert_ok(tn_sim_queue_read(f->sim, mine, tt_field_base(data, 0), 32, 1000));
    assert_ok(tn_lease_release(&lease, TN_RELEASE_WAIT));
    close_scope(s);
    assert_replicas(m, v, P);
}

static void mc150_other_destinations_use_their_own(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_stream mine = spec_stream(f, 0);
    tn_transfer_stream map = {C0, mine};
    tn_run_options options = with_streams(&map, 1);
    tn_scope *s = SCOPE_WITH(m, &options, "elsewhere", ENTER(ENSURE(v, C1), ENSURE(v, N)));

    spec_busy(f, mine);
    assert_true(time_of(f, s) < 1000000);
    assert_false(spec_idle(f, mine));
    spec_finish(f);
    close_scope(s);
    assert_replicas(m, v, P, C1, N);
}

static void mc154_the_map_is_copied(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_stream before = spec_stream(f, 0);
    tn_transfer_stream map = {C0, before};
    tn_run_options options = with_streams(&map, 1);
    tn_scope *s =
        SCOPE_WITH(m, &options, "copied", ENTER(ENSURE(v, C0)), LEAVE(DROP(v, C0), ENSURE(v, C0)));

    map.at = P; /* would be refused */
    map.stream = NULL;
    options.stream_count = 0;
    spec_busy(f, before);
    assert_true(time_of(f, s) >= 1000000);
    spec_busy(f, before);
    assert_ok(tn_scope_close(s)); /* the exit uses it too (M220) */
    assert_true(spec_idle(f, before));
    destroy_scope(s);
    assert_replicas(m, v, P, C0);
}

/* ---- MC151, MC152, MC180 -------------------------------------------------------------------- */

static void mc151_what_it_captured(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    uint64_t decided = version(m);
    tn_run_options options = scope_expect(decided);
    tn_plan *plan = PLAN("captured", ENTER(ENSURE(v, N)));
    tn_scope *s = NULL;

    assert_ok(tn_scope_create(m, plan, &options, &s));
    options.expected_version = 4711;
    assert_ptr_equal(tn_scope_plan(s), plan);
    tn_plan_destroy(plan);
    assert_string_equal(tn_plan_name(tn_scope_plan(s)), "captured");
    assert_int_equal(tn_scope_manager(s), tn_manager_id(m));
    assert_int_equal(tn_scope_expected_version(s), decided);
    adopt_rep(f, m, P);
    assert_status(tn_scope_enter(s), TN_ERR_STALE);
    assert_int_equal(tn_last_error()->expected, decided);
    assert_int_equal(tn_last_error()->actual, decided + 1);
    assert_int_equal(version(m), decided + 1);
    assert_replicas(m, v, P);
    destroy_scope(s);

    options = scope_expect(decided + 1);
    s = SCOPE_WITH(m, &options, "in time", ENTER(ENSURE(v, N)));
    assert_ok(tn_scope_enter(s));
    adopt_rep(f, m, P);
    close_scope(s); /* without a version check (M206) */
    s = SCOPE(m, "any", ENTER(ENSURE(v, N)));
    assert_int_equal(tn_scope_expected_version(s), TN_VERSION_ANY);
    destroy_scope(s);
}

static void mc152_the_body_may_do_anything(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 256}, {N, 256});
    tn_handle src = register_src(m, spec_source(f));
    tn_handle also = register_src(m, spec_source(f));
    tn_scope *s =
        SCOPE(m, "outer", RESERVE({P, 32, "outer"}), ENTER(ENSURE(src, P)), LEAVE(DROP(src, P)));
    tn_scope *inner =
        SCOPE(m, "inner", RESERVE({N, 16, "inner"}), ENTER(ENSURE(also, N)), LEAVE(DROP(also, N)));
    tn_reservation r;
    tn_handle v;

    assert_ok(tn_scope_enter(s));
    v = adopt_rep(f, m, P);
    ensure(m, v, N);
    drop(m, v, P);
    r = reserve(m, P, 8, "body");
    assert_ok(tn_scope_enter(inner));
    assert_int_equal(reserved(m, P), 40);
    assert_int_equal(reserved(m, N), 16);
    close_scope(inner);
    release_reservation(&r);
    assert_ok(tn_scope_close(s));
    assert_transitions(scope_report(s), 0, 1, 1, ENSURE(src, P), DROP(src, P));
    assert_int_equal(trace_count(m), 6);
    assert_int_equal(info(m).reservation_count, 0);
    assert_replicas(m, v, N);
    destroy_scope(s);
}

static void mc180_a_scope_to_the_device_and_back(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_stream stream = spec_stream(f, 0);
    tn_handle h[3] = {adopt_exc(f, m, P), adopt_exc(f, m, P), adopt_exc(f, m, P)};
    tn_lease lease = {NULL, 0};
    tn_scope *s =
        SCOPE(m, "on the device", ENTER(MOVE(h[0], C0, P), MOVE(h[1], C0, P), MOVE(h[2], C0, P)),
              LEAVE(MOVE(h[0], P, C0), MOVE(h[1], P, C0), MOVE(h[2], P, C0)));

    assert_ok(tn_scope_enter(s));
    for (int i = 0; i < 3; i++)
        assert_replicas(m, h[i], C0);
    assert_ok(tn_manager_acquire(m, h, 3, C0, stream, &lease));
    for (int i = 0; i < 3; i++)
        assert_int_equal(mat(m, h[i], C0).use_count, 1);
    assert_ok(tn_lease_release(&lease, TN_RELEASE_WAIT));
    for (int i = 0; i < 3; i++)
        assert_int_equal(mat(m, h[i], C0).use_count, 0);
    assert_ok(tn_scope_close(s));
    for (int i = 0; i < 3; i++)
        assert_replicas(m, h[i], P);
    assert_transitions(scope_report(s), 0, 3, 3, MOVE(h[0], C0, P), MOVE(h[1], C0, P),
                       MOVE(h[2], C0, P), MOVE(h[0], P, C0), MOVE(h[1], P, C0), MOVE(h[2], P, C0));
    destroy_scope(s);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(mc137_entered_once_closed_once),
    SPEC_BOTH(mc138_scopes_nest),
    SPEC_BOTH(mc138_scopes_overlap),
    SPEC_BOTH(mc139_reclaims_first),
    SPEC_BOTH(mc147_without_reservations_does_not_hinder_close),
    SPEC_BOTH(mc147_with_reservations_does),
    SPEC_BOTH(mc172_a_scope_of_a_closed_manager),
    SPEC_BOTH(mc149_streams_are_checked_at_entry),
    SPEC_BOTH(mc150_copies_go_to_the_stream_of_their_destination),
    SPEC_BOTH(mc150_other_destinations_use_their_own),
    SPEC_BOTH(mc154_the_map_is_copied),
    SPEC_BOTH(mc151_what_it_captured),
    SPEC_BOTH(mc152_the_body_may_do_anything),
    SPEC_BOTH(mc180_a_scope_to_the_device_and_back),
};

TN_TEST_MAIN("spec.scopes", tests)
