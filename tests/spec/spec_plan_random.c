/* SPDX-License-Identifier: MIT */
/*
 * What was explained is what happens (M170, M175..M182): random sequences and scopes on random
 * states are explained, then run. Nothing else uses the manager, so feasible ones must run as
 * explained, each action and each peak, and infeasible ones must be refused for the same reason and
 * change nothing.
 */
#include "spec_plan_common.h"

enum { VALUES = 7, ACTIONS = 6, ROUNDS = 1500 };

struct world {
    struct spec *f;
    tn_manager *m;
    tn_handle values[VALUES];
    tt_source *sources[VALUES - 4]; /* of the last ones */
    tn_hold hold;                   /* or none */
    tn_reservation reservation;
    uint64_t random;
    unsigned ran, refused, no_ops;
    unsigned reasons[TN_REASON_STORAGE_SHARED + 1];
    unsigned verdicts[TN_VERDICT_NEVER + 1]; /* that were put to the test */
};

static uint64_t next(struct world *w, uint64_t below) {
    uint64_t z = (w->random += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % below;
}

static tn_location any_location(struct world *w) {
    const tn_location all[] = {P, N, C0, C1, C2};
    uint64_t i = next(w, 40);

    return all[i == 0 ? 4 : i % 4]; /* rarely one that does not exist */
}

static tn_handle any_value(struct world *w) { return w->values[next(w, VALUES)]; }

static tn_action any_action(struct world *w) {
    tn_handle h = any_value(w);

    switch (next(w, 10)) {
    case 0:
    case 1:
    case 2:
    case 3:
        return ENSURE(h, any_location(w));
    case 4:
    case 5:
        return MOVE(h, any_location(w));
    case 6:
        return MOVE_FROM(h, any_location(w), any_location(w));
    case 7:
        return next(w, 6) == 0 ? DISCARD(h) : DROP(h, any_location(w));
    default:
        return DROP(h, any_location(w));
    }
}

/* A fresh value in place of number i: a kind for each, so that all stay in use. */
static void renew(struct world *w, size_t i) {
    const uint32_t mode = i % 2 == 0 ? TN_REPLICABLE : TN_EXCLUSIVE;

    if (i < 4) {
        tn_payload v = tt_bytes(w->f->driver, P, i < 2 ? 32 : 16);
        tn_handle h = {0, 0, NULL};

        if (tn_manager_adopt(w->m, v, P, mode, &h) == TN_OK)
            w->values[i] = h; /* else its handle stays, and is refused as discarded */
        else
            tt_free(v);
        return;
    }
    if (w->sources[i - 4] == NULL)
        w->sources[i - 4] = spec_source(w->f);
    w->values[i] = spec_register(w->m, w->sources[i - 4], i == 4 ? N : i == 5 ? P : C0, mode);
}

/* Holds, reservations, and values in place of those that are gone come and go between plans. */
static void disturb(struct world *w) {
    tn_handle h = any_value(w);
    tn_location at = any_location(w);
    size_t i = next(w, VALUES);

    if (w->hold.record != NULL && next(w, 2) == 0) {
        release_hold(&w->hold);
        w->hold = (tn_hold){NULL, 0};
    } else if (w->hold.record == NULL && at.index != 2) {
        (void)!tn_manager_hold(w->m, &h, 1, at, &w->hold);
    }
    if (w->reservation.record != NULL && next(w, 3) == 0) {
        release_reservation(&w->reservation);
        w->reservation = (tn_reservation){NULL, 0};
    } else if (w->reservation.record == NULL && at.index != 2) {
        (void)!tn_manager_reserve(w->m, at, next(w, 40), "other", &w->reservation);
    }
    if (value(w->m, w->values[i]).discarded)
        renew(w, i);
}

static uint64_t peak_before(const tn_location_info *rows, size_t count, tn_location at) {
    for (size_t i = 0; i < count; i++)
        if (tn_location_equal(rows[i].at, at))
            return rows[i].peak_charged_bytes;
    return 0;
}

static size_t rows_of(tn_manager *m, tn_location_info rows[8]) {
    tn_snapshot *s = NULL;
    size_t count = 8;

    memset(rows, 0, 8 * sizeof(rows[0]));
    rows[0].size = sizeof(rows[0]);
    assert_ok(tn_snapshot_take(m, &s));
    assert_ok(tn_snapshot_locations(s, rows, &count));
    tn_snapshot_drop(s);
    assert_true(count <= 8);
    return count;
}

/* M182: each peak is the larger of what it was and what was predicted; the tracked locations come
 * first, in their order (M181). */
static void check_peaks(struct world *w, const struct spec_explained *e,
                        const tn_location_info *before, size_t before_count) {
    tn_location_info after[8];
    size_t count = rows_of(w->m, after);

    assert_true(e->peak_count >= before_count);
    for (size_t i = 0; i < before_count; i++)
        assert_at(e->peaks[i].at, before[i].at);
    for (size_t i = 0; i < count; i++) {
        uint64_t peak = peak_before(before, before_count, after[i].at);
        bool met = false;

        for (size_t k = 0; k < e->peak_count; k++)
            if (tn_location_equal(e->peaks[k].at, after[i].at)) {
                peak = e->peaks[k].charged_bytes > peak ? e->peaks[k].charged_bytes : peak;
                met = true;
            }
        assert_true(met);
        assert_int_equal(after[i].peak_charged_bytes, peak);
    }
}

static void check_actions(struct world *w, const struct spec_explained *e,
                          const struct spec_run *r) {
    assert_int_equal(r->count, e->action_count);
    for (size_t i = 0; i < r->count; i++) {
        const tn_action_explanation *a = &e->actions[i];
        const tn_report *t = &r->transitions[i];

        assert_int_equal(a->no_op, t->no_op);
        assert_int_equal(a->reason, t->reason);
        assert_at(a->source, t->source);
        assert_at(a->destination, t->destination);
        assert_int_equal(a->logical_bytes, t->logical_bytes);
        assert_int_equal(a->storage_bytes, t->storage_bytes);
        w->no_ops += t->no_op;
        w->reasons[a->reason]++;
    }
}

/* An infeasible plan was refused as explained, and changed nothing; frees `text`. */
static void check_refused(struct world *w, const struct spec_explained *e, const tn_error *error,
                          uint32_t phase, char *text) {
    assert_int_equal(error->status, TN_ERR_PLAN);
    assert_int_equal(error->phase, phase);
    assert_int_equal(error->failed_index, e->head.index);
    assert_int_equal(error->cause_status, e->problem.status);
    assert_int_equal(error->reason, e->head.reason);
    assert_int_equal(error->verdict, e->head.verdict);
    assert_int_equal(error->missing_bytes, e->head.missing_bytes);
    assert_int_equal(error->evictable_bytes, e->head.evictable_bytes);
    assert_int_equal(error->blocker_count, e->head.blocker_count);
    assert_unchanged(w->m, text, 0);
    w->reasons[e->head.reason]++;
    w->refused++;
}

static size_t any_actions(struct world *w, tn_action *actions, size_t most) {
    size_t count = next(w, most + 1);

    for (size_t i = 0; i < count; i++)
        actions[i] = any_action(w);
    return count;
}

static struct spec_explained explain_only(struct world *w, const tn_plan_spec *spec) {
    char *text = spec_describe(w->m, 0);
    struct spec_explained e = spec_explain_spec(w->m, spec);

    assert_unchanged(w->m, text, 0); /* M169 */
    return e;
}

static bool lists(const tn_action *actions, size_t count, tn_handle h) {
    for (size_t i = 0; i < count; i++)
        if (actions[i].handle.index == h.index)
            return true;
    return false;
}

static bool mentions(const tn_plan_spec *spec, tn_handle h) {
    return lists(spec->reclaim, spec->reclaim_count, h) ||
           lists(spec->enter, spec->enter_count, h) || lists(spec->exit, spec->exit_count, h);
}

static bool of_bytes(const struct spec_explained *e) {
    return e->head.reason == TN_REASON_BUDGET || e->head.reason == TN_REASON_RESERVATION_BUDGET;
}

/* Everything of others goes: their bytes at one location. */
static uint64_t clear_others(struct world *w, const tn_plan_spec *spec, tn_location at) {
    tn_reservation_info r = {.size = sizeof(r)};
    uint64_t bytes = 0;

    if (w->reservation.record != NULL) {
        assert_ok(tn_reservation_read(&w->reservation, &r));
        bytes += tn_location_equal(r.at, at) ? r.bytes : 0;
        release_reservation(&w->reservation);
        w->reservation = (tn_reservation){NULL, 0};
    }
    if (w->hold.record != NULL)
        release_hold(&w->hold);
    w->hold = (tn_hold){NULL, 0};
    for (size_t i = 0; i < VALUES; i++)
        if (!mentions(spec, w->values[i]) && !value(w->m, w->values[i]).discarded) {
            if (resident(w->m, w->values[i], at))
                bytes += mat(w->m, w->values[i], at).charged_bytes;
            discard(w->m, w->values[i]);
        }
    return bytes;
}

static void print_texts(const struct spec_explained *before, const struct spec_explained *after) {
    char *a = spec_explained_text(before);
    char *b = spec_explained_text(after);

    print_error("%s\nthen\n%s\n", a, b);
    free(a);
    free(b);
}

/* A verdict is true: NEVER stays so whatever others give back; else enough of it is enough. */
static void check_verdict(struct world *w, const tn_plan_spec *spec,
                          const struct spec_explained *e) {
    uint64_t bytes;
    struct spec_explained after;

    if (!of_bytes(e) || next(w, 2) != 0)
        return;
    bytes = clear_others(w, spec, e->problem.at);
    after = spec_explain_spec(w->m, spec);
    w->verdicts[e->head.verdict]++;
    if (e->head.verdict == TN_VERDICT_NEVER) {
        assert_int_equal(after.head.feasible, 0);
    } else if (bytes >= e->head.missing_bytes) {
        bool same = after.head.phase == e->head.phase && after.head.index == e->head.index &&
                    of_bytes(&after) && tn_location_equal(after.problem.at, e->problem.at);

        if (same)
            print_texts(e, &after);
        assert_false(same);
    }
    for (size_t i = 0; i < VALUES; i++)
        if (value(w->m, w->values[i]).discarded)
            renew(w, i);
}

static void one_sequence(struct world *w) {
    tn_action actions[ACTIONS];
    tn_plan_spec spec = TN_PLAN_SPEC_INIT;
    tn_location_info before[8];
    size_t before_count = rows_of(w->m, before);
    char *text = spec_describe(w->m, 0);
    struct spec_explained e;
    struct spec_run r;

    spec.name = "run";
    spec.enter = actions;
    spec.enter_count = any_actions(w, actions, ACTIONS);
    e = explain_only(w, &spec);
    r = spec_run(w->m, "run", actions, spec.enter_count, NULL);
    if (!e.head.feasible) {
        check_refused(w, &e, &r.error, TN_PHASE_EXECUTE, text);
        check_verdict(w, &spec, &e);
        return;
    }
    assert_ok(r.status);
    check_actions(w, &e, &r);
    check_peaks(w, &e, before, before_count);
    w->ran++;
    free(text);
}

static void close_as_explained(struct world *w, tn_scope *scope, const struct spec_explained *e) {
    const tn_plan_report *report = NULL;
    struct spec_run r;

    memset(&r, 0, sizeof(r));
    assert_ok(tn_scope_close(scope));
    assert_ok(tn_scope_report(scope, &report));
    spec_read_report(report, &r);
    check_actions(w, e, &r);
    w->ran++;
}

static void one_scope(struct world *w) {
    tn_action reclaim[2];
    tn_action enter[3];
    tn_action leave[3];
    tn_reservation_spec reservations[2] = {{any_location(w), next(w, 24), "first"},
                                           {any_location(w), next(w, 24), "second"}};
    tn_plan_spec spec = {.size = sizeof(spec),
                         .name = "scope",
                         .reclaim = reclaim,
                         .reservations = reservations,
                         .reservation_count = next(w, 3),
                         .enter = enter,
                         .exit = leave};
    tn_location_info before[8];
    size_t before_count = rows_of(w->m, before);
    char *text = spec_describe(w->m, 0);
    tn_scope *scope = NULL;
    struct spec_explained e;
    tn_plan *plan;

    spec.reclaim_count = any_actions(w, reclaim, 2);
    spec.enter_count = any_actions(w, enter, 3);
    spec.exit_count = any_actions(w, leave, 3);
    e = explain_only(w, &spec);
    plan = spec_plan(&spec);
    assert_ok(tn_scope_create(w->m, plan, NULL, &scope));
    tn_plan_destroy(plan);
    if (e.head.feasible) {
        assert_ok(tn_scope_enter(scope));
        close_as_explained(w, scope, &e);
        check_peaks(w, &e, before, before_count);
        free(text);
    } else {
        assert_status(tn_scope_enter(scope), TN_ERR_PLAN);
        check_refused(w, &e, tn_last_error(), e.head.phase, text);
        check_verdict(w, &spec, &e);
    }
    assert_ok(tn_scope_destroy(scope));
}

static void run_world(struct spec *f, void (*one)(struct world *w)) {
    static struct world w;

    memset(&w, 0, sizeof(w));
    w.f = f;
    w.random = tn_test_seed();
    w.m = MANAGER(f, {P, 160}, {C0, 56}, {N, 72});
    for (size_t i = 0; i < VALUES; i++)
        renew(&w, i);
    for (unsigned i = 0; i < ROUNDS; i++) {
        disturb(&w);
        one(&w);
    }
    print_message("%u ran with %u no-ops, %u refused; by reason:", w.ran, w.no_ops, w.refused);
    for (unsigned i = 1; i <= TN_REASON_STORAGE_SHARED; i++)
        print_message(" %u", w.reasons[i]);
    print_message("; verdicts tried:");
    for (unsigned i = TN_VERDICT_AFTER_EVICTION; i <= TN_VERDICT_NEVER; i++)
        print_message(" %u", w.verdicts[i]);
    print_message("\n");
    assert_true(w.ran > ROUNDS / 20 && w.refused > ROUNDS / 20 && w.no_ops > 0);
    assert_int_equal(w.reasons[TN_REASON_STORAGE_SHARED], 0);
}

static void sequences_run_as_explained(void **state) { run_world(*state, one_sequence); }
static void scopes_run_as_explained(void **state) { run_world(*state, one_scope); }

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(sequences_run_as_explained),
    SPEC_BOTH(scopes_run_as_explained),
};

TN_TEST_MAIN("spec.plan_random", tests)
