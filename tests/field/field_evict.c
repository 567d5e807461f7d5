/* SPDX-License-Identifier: MIT */
/* Field cases: racing decisions, what is written down, and how much a policy that knows the next use saves. */
#include "tn_test.h"

#include <sched.h>
#include <stdio.h>

#include "control_util.h"

/* ---- F-D17: headroom counts reservations and bytes on their way ------------------------------- */

#define FILLERS 100
#define FILLER 1024u
#define KEYS 8
#define LARGE 10240u

struct race {
    struct control c;
    tn_handle keys[KEYS];
    tn_stream streams[KEYS];
    tn_use *uses[KEYS];
    _Atomic uint32_t in, over;
    _Atomic uint64_t drops, ensures, foreign;
};

/* What one entry did: drops of fillers, one ensure of its key. */
static const char *count_actions(struct race *x, int i) {
    const tn_decision *decision = NULL;
    const tn_action *actions = NULL;
    size_t count = 0;

    TN_WORKER_STATUS(tn_use_decision(x->uses[i], &decision), TN_OK);
    const tn_plan *plan = tn_decision_plan(decision);
    TN_WORKER_STATUS(tn_plan_actions(plan, TN_PHASE_RECLAIM, &actions, &count), TN_OK);
    atomic_fetch_add(&x->drops, count);
    for (size_t k = 0; k < count; k++)
        for (int other = 0; other < KEYS; other++)
            if (actions[k].kind != TN_ACTION_DROP ||
                tn_handle_equal(actions[k].handle, x->keys[other]))
                atomic_fetch_add(&x->foreign, 1);
    TN_WORKER_STATUS(tn_plan_actions(plan, TN_PHASE_ENTER, &actions, &count), TN_OK);
    atomic_fetch_add(&x->ensures, count);
    return NULL;
}

static const char *enter(struct race *x, int i) {
    tn_status status;

    while ((status = tn_use_enter(x->uses[i])) == TN_ERR_STALE) {
        TN_WORKER_STATUS(tn_use_reset(x->uses[i]), TN_OK);
        sched_yield();
    }
    TN_WORKER_STATUS(status, TN_OK);
    const char *text = count_actions(x, i);
    atomic_fetch_add(&x->in, 1);
    while (atomic_load(&x->in) < KEYS && !tn_test_workers_failed())
        sched_yield();
    if (!text)
        TN_WORKER_STATUS(tn_use_exit(x->uses[i]), TN_OK);
    atomic_fetch_add(&x->over, 1);
    return text;
}

static const char *watch(struct race *x) {
    uint64_t exact = 0;

    while ((atomic_load(&x->over) < KEYS || exact == 0) && !tn_test_workers_failed()) {
        tn_snapshot_info head = {.size = sizeof head};
        tn_location_info at[4] = {{.size = sizeof at[0]}};
        size_t count = 4;
        tn_snapshot *s = NULL;

        TN_WORKER_STATUS(tn_snapshot_take(x->c.m, &s), TN_OK);
        TN_WORKER_STATUS(tn_snapshot_read(s, &head), TN_OK);
        TN_WORKER_STATUS(tn_snapshot_locations(s, at, &count), TN_OK);
        tn_snapshot_drop(s);
        exact += head.exact;
        for (size_t i = 0; i < count && i < 4; i++)
            if (tn_location_equal(at[i].at, C0))
                TN_WORKER_CHECK(at[i].used_bytes + at[i].reserved_bytes <= FILLERS * FILLER);
        sched_yield();
    }
    return NULL;
}

static const char *use_or_watch(int index, void *arg) {
    return index < KEYS ? enter(arg, index) : watch(arg);
}

static tn_use *make_use(struct race *x, int i) {
    tn_requirement need = {x->keys[i], C0};
    tn_transfer_stream consumer = {C0, x->streams[i]};
    tn_use_options options = TN_USE_OPTIONS_INIT;
    tn_request *request = control_request(&need, 1);
    tn_use *use = NULL;

    options.consumers = &consumer;
    options.consumer_count = 1;
    assert_ok(tn_use_create(x->c.controller, request, &options, &use));
    tn_request_destroy(request);
    return use;
}

static void f_d17_racing_decisions_stay_within(void **state) {
    struct spec *f = *state;
    static struct race x; /* workers of a test that failed may still look at it */
    tn_manager *m = MANAGER(f, {C0, FILLERS * FILLER});
    uint64_t before, fillers = 0;
    tn_handle filler[FILLERS];

    memset(&x, 0, sizeof x);
    control_begin(&x.c, f, m, NULL, 0);
    for (int i = 0; i < FILLERS; i++)
        filler[i] = field_rep_at(f, m, C0, FILLER, 1);
    for (int i = 0; i < KEYS; i++) {
        x.keys[i] = field_rep(f, m, LARGE, 2);
        x.streams[i] = spec_stream(f, 0);
        x.uses[i] = make_use(&x, i);
    }
    before = version(m);
    assert_null_text(tn_test_workers_run(KEYS + 1, use_or_watch, &x));
    assert_int_equal(x.drops, 80);
    assert_int_equal(x.ensures, KEYS);
    assert_int_equal(x.foreign, 0);
    for (int i = 0; i < FILLERS; i++)
        fillers += resident(m, filler[i], C0);
    assert_int_equal(fillers, 20);
    assert_int_equal(used(m, C0), FILLERS * FILLER);
    assert_peaks(m, C0, FILLERS * FILLER, FILLERS * FILLER);
    spec_finish(f);
    assert_int_equal(version(m), before + 112);
    for (int i = 0; i < KEYS; i++)
        tn_use_destroy(x.uses[i]);
    control_end(&x.c);
    field_conserved(f, m);
}

/* ---- F-D10: clean values are never written down ---------------------------------------------------- */

#define PAGE 4096u

static void tiers_c0_to_p(struct control *c, struct spec *f, tn_manager *m) {
    static const tn_location below[] = {{TN_LOCATION_PAGEABLE, 0}};
    tn_tier tier = {C0, below, 1};

    control_begin(c, f, m, &tier, 1);
}

static tn_sim_traffic traffic(struct spec *f, tn_location from, tn_location to) {
    tn_sim_traffic t = {.size = sizeof t};

    assert_ok(tn_sim_read_traffic(f->sim, from, to, &t));
    return t;
}

static void f_d10_clean_values_are_dropped(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {C0, 50 * PAGE});
    tt_source *source = spec_source(f);
    tn_handle h[200];
    struct control c;

    tiers_c0_to_p(&c, f, m);
    for (int i = 0; i < 200; i++)
        h[i] = field_src(m, source, PAGE);
    for (int i = 0; i < 600; i++)
        control_use(&c, h[i % 200], C0);
    assert_int_equal(source->calls, 600);
    assert_int_equal(c.drops, 550);
    assert_int_equal(c.moves, 0);
    assert_int_equal(traffic(f, C0, P).bytes, 0);
    control_end(&c);
    field_conserved(f, m);
}

static void f_d10_sole_copies_are_moved_once(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {C0, 50 * PAGE});
    tt_source *source = spec_source(f);
    tn_handle adopted[50], h[150];
    struct control c;

    tiers_c0_to_p(&c, f, m);
    for (int i = 0; i < 50; i++)
        adopted[i] = field_adopt(f, m, C0, TN_REPLICABLE, PAGE, 1);
    for (int i = 0; i < 150; i++)
        h[i] = field_src(m, source, PAGE);
    for (int i = 0; i < 150; i++)
        control_use(&c, h[i], C0);
    for (int i = 0; i < 50; i++)
        control_use(&c, adopted[i], C0);
    for (int i = 0; i < 50; i++)
        control_use(&c, h[i], C0);
    assert_int_equal(c.moves, 50);
    assert_int_equal(c.drops, 200);
    assert_int_equal(source->calls, 200);
    assert_int_equal(traffic(f, C0, P).bytes, 50 * PAGE);
    assert_int_equal(traffic(f, C0, P).copies, 50);
    control_end(&c);
    field_conserved(f, m);
}

/* ---- F-D11: recency is the wrong policy for these programs --------------------------------------- */

#define ROTATIONS 32768
#define CONJUGATE 0 /* no rotation by 0 has a key */
#define RELINEARISE ROTATIONS
#define REQUESTS 151
#define BOOTSTRAPS 20
#define USES (REQUESTS * BOOTSTRAPS)
#define KEY_BYTES 132u

struct program {
    uint32_t order[REQUESTS]; /* of keys, by number */
    uint32_t number[ROTATIONS + 1];
    uint32_t requests, keys;
};

static void request_key(struct program *p, uint32_t key) {
    if (p->number[key] == 0)
        p->number[key] = ++p->keys;
    assert_true(p->requests < REQUESTS);
    p->order[p->requests++] = p->number[key] - 1;
}

/* One linear stage: its baby steps, then one giant step (0: none). */
static void stage(struct program *p, uint32_t first, uint32_t step, uint32_t count,
                  uint32_t giant) {
    for (uint32_t i = 0; i < count; i++)
        request_key(p, first + i * step);
    if (giant != 0)
        request_key(p, giant);
}

/* The key order of an OpenFHE bootstrap, N = 2^16, level budgets {4, 4}. */
static void bootstrap(struct program *p) {
    memset(p, 0, sizeof *p);
    stage(p, 2048, 2048, 15, 0);
    stage(p, 30848, 128, 15, 2048);
    stage(p, 32648, 8, 15, 128);
    stage(p, 32761, 1, 7, 8);
    request_key(p, CONJUGATE);
    for (int i = 0; i < 40; i++)
        request_key(p, RELINEARISE);
    stage(p, 32753, 1, 15, 16);
    stage(p, 32528, 16, 15, 256);
    stage(p, 28928, 256, 15, 4096);
    stage(p, 4096, 4096, 7, 0);
    assert_int_equal(p->requests, REQUESTS);
    assert_int_equal(p->keys, 79);
}

/* When the key of use `now` is used next; 0: never. */
static int64_t next_use(const struct program *p, int64_t now) {
    for (int64_t i = now + 1; i < USES; i++)
        if (p->order[i % REQUESTS] == p->order[now % REQUESTS])
            return i;
    return 0;
}

/* How many loads all bootstraps cost with room for `room` keys. */
static uint64_t loads(struct spec *f, const struct program *p, uint64_t room, bool knows_next) {
    tn_manager *m = MANAGER(f, {C0, room * KEY_BYTES});
    tt_source *source = spec_source(f);
    tn_handle keys[79];
    struct control c;

    control_begin(&c, f, m, NULL, 0);
    for (uint32_t i = 0; i < 79; i++)
        keys[i] = field_src(m, source, KEY_BYTES);
    for (int64_t now = 0; now < USES; now++) {
        tn_handle key = keys[p->order[now % REQUESTS]];
        int64_t next = next_use(p, now);

        control_use(&c, key, C0);
        if (knows_next)
            assert_ok(
                tn_controller_set_metadata(c.controller, key, next ? -next : INT64_MIN, NULL));
    }
    control_end(&c);
    field_conserved(f, m);
    spec_destroy(f, m);
    return source->calls;
}

static void f_d11_recency_and_next_use(void **state) {
    static const uint64_t room[] = {39, 59, 71}, recent[] = {1655, 1423, 1112},
                          best[] = {852, 459, 231};
    static struct program p;
    struct spec *f = *state;

    bootstrap(&p);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(loads(f, &p, room[i], false), recent[i]);
        assert_int_equal(loads(f, &p, room[i], true), best[i]);
    }
}

static const struct CMUnitTest tests[] = {
    FIELD_BOTH(f_d17_racing_decisions_stay_within),
    FIELD_BOTH(f_d10_clean_values_are_dropped),
    FIELD_BOTH(f_d10_sole_copies_are_moved_once),
    FIELD_BOTH(f_d11_recency_and_next_use),
};

TN_TEST_MAIN("field.evict", tests)
