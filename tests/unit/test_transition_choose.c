/* SPDX-License-Identifier: MIT */
/*
 * src/transition/choose.c: the decision table of the actions, for every ordered set of replicas at
 * four locations, with and without source, exclusive and replicable, against the rows of M90, M93,
 * M98, M99, M107 and M111 written down once more.
 */
#include "core_fixture.h"

#define PLACES 4
#define MANAGER_ID 7u
#define NONE PLACES /* no place */

/* In the order of preference (M23). */
static tn_location place(int i) {
    static const tn_location all[PLACES + 1] = {{TN_LOCATION_PAGEABLE, 0},
                                                {TN_LOCATION_PINNED, 0},
                                                {TN_LOCATION_CUDA, 0},
                                                {TN_LOCATION_CUDA, 1},
                                                {TN_LOCATION_NONE, 0}};
    return all[i];
}

/* A value as the table sees it. */
struct situation {
    int order[PLACES]; /* replicas in installation order */
    int count;
    bool here[PLACES];
    bool replicable;
    int source; /* or NONE */
};

struct expected {
    tn_status status;
    uint32_t reason; /* of a failure or a no-op */
    enum tn__step step;
    int source, destination, from, remove; /* or NONE */
    bool last_copy;
    int failed_at;
};

static int preferred_but(const struct situation *s, int except) {
    for (int i = 0; i < PLACES; i++)
        if (s->here[i] && i != except)
            return i;
    return NONE;
}

static struct expected refused(tn_status status, uint32_t reason, int at) {
    return (struct expected){.status = status, .reason = reason, .failed_at = at};
}

static struct expected no_op(uint32_t reason, int source, int destination) {
    return (struct expected){.step = TN__STEP_NO_OP,
                             .reason = reason,
                             .source = source,
                             .destination = destination,
                             .from = NONE,
                             .remove = NONE};
}

static struct expected reconstruct(const struct situation *s, int to) {
    if (s->source == NONE)
        return refused(TN_ERR_UNAVAILABLE, TN_REASON_NO_SOURCE, to);
    return (struct expected){.step = TN__STEP_LOAD,
                             .source = s->source,
                             .destination = to,
                             .from = NONE,
                             .remove = NONE};
}

static struct expected ensure_row(const struct situation *s, int to) {
    if (s->here[to])
        return no_op(TN_REASON_ALREADY_RESIDENT, NONE, to);
    if (s->count > 0 && !s->replicable)
        return refused(TN_ERR_OWNERSHIP, TN_REASON_EXCLUSIVE, to);
    if (s->count == 0)
        return reconstruct(s, to);
    int from = preferred_but(s, to);
    return (struct expected){
        .step = TN__STEP_COPY, .source = from, .destination = to, .from = from, .remove = NONE};
}

static struct expected move_row(const struct situation *s, int to, int from) {
    if (from != NONE && !s->here[from])
        return refused(TN_ERR_UNAVAILABLE, TN_REASON_SOURCE_NOT_RESIDENT, from);
    int selected = from != NONE ? from : preferred_but(s, to);
    if (s->here[to] && (selected == NONE || selected == to))
        return no_op(TN_REASON_ALREADY_AT_DESTINATION, from, to);
    if (selected == NONE)
        return reconstruct(s, to);
    return (struct expected){.step = s->here[to] ? TN__STEP_REMOVE : TN__STEP_COPY,
                             .source = selected,
                             .destination = to,
                             .from = selected,
                             .remove = selected};
}

static struct expected drop_row(const struct situation *s, int at) {
    if (!s->here[at])
        return no_op(TN_REASON_ALREADY_ABSENT, at, NONE);
    return (struct expected){.step = TN__STEP_REMOVE,
                             .source = at,
                             .destination = NONE,
                             .from = NONE,
                             .remove = at,
                             .last_copy = s->count == 1 && s->source == NONE};
}

static struct expected discard_row(void) {
    return (struct expected){
        .step = TN__STEP_REMOVE, .source = NONE, .destination = NONE, .from = NONE, .remove = NONE};
}

static struct expected row(const struct situation *s, uint32_t kind, int at, int from) {
    switch (kind) {
    case TN_ACTION_ENSURE:
        return ensure_row(s, at);
    case TN_ACTION_MOVE:
        return move_row(s, at, from);
    case TN_ACTION_DROP:
        return drop_row(s, at);
    default:
        return discard_row();
    }
}

/* ---- Compare ----------------------------------------------------------------------------- */

static tn__mat mats[PLACES];

static tn__value *make_value(const struct situation *s) {
    static struct {
        tn__value value;
        tn__mat *room[PLACES];
    } made;
    made.value = (tn__value){.index = 5, .type = tt_type()};
    made.value.replicable = s->replicable;
    made.value.mat_count = (uint16_t)s->count;
    made.value.source = s->source == NONE ? NULL : (tn__source *)&made; /* never followed */
    made.value.source_at = place(s->source);
    for (int i = 0; i < s->count; i++) {
        mats[s->order[i]] = (tn__mat){.at = place(s->order[i])};
        made.value.mats[i] = &mats[s->order[i]];
    }
    return &made.value;
}

static bool same_place(tn_location at, int i) { return tn_location_equal(at, place(i)); }

static bool same_mat(const tn__mat *mat, int i) { return mat == (i == NONE ? NULL : &mats[i]); }

static bool as_expected(const tn__choice *c, const struct expected *e) {
    return c->step == e->step && (e->step != TN__STEP_NO_OP || c->reason == e->reason) &&
           same_place(c->source, e->source) && same_place(c->destination, e->destination) &&
           same_mat(c->from, e->from) && same_mat(c->remove, e->remove) &&
           c->last_copy == e->last_copy;
}

static void compare(const struct situation *s, uint32_t kind, int at, int from) {
    struct expected want = row(s, kind, at, from);
    tn_action action = {.kind = kind, .at = place(at), .from = place(from)};
    tn__value *value = make_value(s);
    tn__choice got;
    action.handle = (tn_handle){MANAGER_ID, value->index, value->type};
    tn_status status = tn__choose(MANAGER_ID, value, &action, &got);
    bool good = status == want.status;
    if (good && status == TN_OK)
        good = as_expected(&got, &want);
    else if (good)
        good = tn_last_error()->reason == want.reason &&
               same_place(tn_last_error()->at, want.failed_at) &&
               tn_handle_equal(tn_last_error()->handle, action.handle) &&
               tn_last_error()->manager == MANAGER_ID;
    if (good)
        return;
    print_error("kind %u at %d from %d: %d replicas, source %d, %s: %s\n", (unsigned)kind, at, from,
                s->count, s->source, s->replicable ? "replicable" : "exclusive",
                tn_status_name(status));
    fail();
}

static uint64_t compared;

static void all_actions(const struct situation *s) {
    for (int at = 0; at < PLACES; at++) {
        compare(s, TN_ACTION_ENSURE, at, NONE);
        compare(s, TN_ACTION_DROP, at, NONE);
        for (int from = 0; from <= PLACES; from++, compared++)
            compare(s, TN_ACTION_MOVE, at, from);
        compared += 2;
    }
    compare(s, TN_ACTION_DISCARD, NONE, NONE);
    compared++;
}

/* All ordered sets of places, by recursion; an exclusive value has at most one replica. */
static void all_orders(struct situation *s) {
    for (s->source = 0; s->source <= PLACES; s->source++)
        all_actions(s);
    for (int i = 0; i < PLACES && (s->replicable || s->count == 0); i++) {
        if (s->here[i])
            continue;
        s->here[i] = true;
        s->order[s->count++] = i;
        all_orders(s);
        s->count--;
        s->here[i] = false;
    }
}

static void choice_follows_the_table_everywhere(void **state) {
    struct situation replicable = {.replicable = true}, exclusive = {.replicable = false};
    (void)state;
    compared = 0;
    all_orders(&replicable);
    all_orders(&exclusive);
    print_message("%u situations and actions\n", (unsigned)compared);
    assert_int_equal(compared, (65 + 5) * 5 * (4 * 7 + 1));
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(choice_follows_the_table_everywhere)};

TN_TEST_MAIN("unit.transition_choose", tests)
