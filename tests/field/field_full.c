/* SPDX-License-Identifier: MIT */
/* Field case F-D08 (1): what holds in empty tiers holds in full ones. (2) is in field_control.c. */
#include "tn_test.h"

#include "control_util.h"

#define BLOCK UINT64_C(65536)
#define FILLER UINT64_C(1048576)

enum { AT_P, AT_N, AT_C0, PLACES };

/* What the same calls gave. */
struct outcome {
    uint64_t d, loads, drops;
    tn_location_info rows[PLACES];
    tn_error refusals[2];
};

static tn_location place(int i) { return i == AT_P ? P : i == AT_N ? N : C0; }

/* F-A04: keys come and go at P, which has room for four. */
static void keys_come_and_go(struct spec *f, tn_manager *m, struct outcome *o) {
    tt_source *source = spec_source(f);
    tn_handle keys[5];

    for (int i = 0; i < 5; i++)
        keys[i] = field_src(m, source, KEY);
    for (int i = 0; i < 4; i++)
        ensure(m, keys[i], P);
    assert_status(tn_manager_ensure(m, keys[4], P, NULL, NULL), TN_ERR_BUDGET);
    o->refusals[0] = *tn_last_error();
    drop(m, keys[1], P);
    ensure(m, keys[4], P);
    for (int i = 0; i < 5; i++)
        discard(m, keys[i]);
    o->loads += source->calls;
}

/* F-C17, F-E02: a pinned replica, where there may have been none before. */
static void pinned_for_a_while(struct spec *f, tn_manager *m) {
    tn_handle v = field_rep_at(f, m, N, BLOCK, 1);

    assert_true(field_exact(f, m, v, N, 1));
    drop(m, v, N);
    discard(m, v);
}

/* F-D08 (2): each use evicts. */
static void uses_evict(struct spec *f, tn_manager *m, struct outcome *o) {
    tt_source *source = spec_source(f);
    tn_handle h[12];
    struct control c;

    control_begin(&c, f, m, NULL, 0);
    for (int i = 0; i < 12; i++)
        h[i] = field_src(m, source, BLOCK);
    for (int i = 0; i < 48; i++)
        control_use(&c, h[i % 12], C0);
    o->loads += source->calls;
    o->drops = c.drops;
    control_end(&c);
}

static void refused_workspace(tn_manager *m, struct outcome *o) {
    tn_reservation r;

    assert_status(tn_manager_reserve(m, C0, BLOCK, "workspace", &r), TN_ERR_BUDGET);
    o->refusals[1] = *tn_last_error();
}

static struct outcome run(struct spec *f, uint64_t filler) {
    tn_manager *m = MANAGER(f, {P, 4 * KEY + filler}, {C0, 4 * BLOCK + filler});
    struct outcome o = {.loads = 0};
    tn_hold holds[PLACES];
    uint64_t before;

    for (int i = 0; i < PLACES && filler > 0; i++)
        holds[i] = hold(m, field_adopt(f, m, place(i), TN_REPLICABLE, filler, 9), place(i));
    before = version(m);
    keys_come_and_go(f, m, &o);
    pinned_for_a_while(f, m);
    uses_evict(f, m, &o);
    refused_workspace(m, &o);
    o.d = version(m) - before;
    for (int i = 0; i < PLACES; i++)
        o.rows[i] = loc(m, place(i));
    for (int i = 0; i < PLACES && filler > 0; i++)
        release_hold(&holds[i]);
    field_conserved(f, m);
    spec_destroy(f, m);
    return o;
}

static void expect_only_more(const struct outcome *full, const struct outcome *empty) {
    for (int i = 0; i < PLACES; i++) {
        const tn_location_info *a = &full->rows[i], *b = &empty->rows[i];

        assert_int_equal(a->used_bytes, b->used_bytes + FILLER);
        assert_int_equal(a->peak_used_bytes, b->peak_used_bytes + FILLER);
        assert_int_equal(a->peak_charged_bytes, b->peak_charged_bytes + FILLER);
        assert_int_equal(a->reserved_bytes, b->reserved_bytes);
        assert_int_equal(a->remaining_bytes, b->remaining_bytes);
        assert_int_equal(a->value_count, b->value_count + 1);
    }
    for (int i = 0; i < 2; i++) {
        const tn_error *a = &full->refusals[i], *b = &empty->refusals[i];

        assert_at(a->at, b->at);
        assert_int_equal(a->budget_bytes, b->budget_bytes + FILLER);
        assert_int_equal(a->used_bytes, b->used_bytes + FILLER);
        assert_int_equal(a->reserved_bytes, b->reserved_bytes);
        assert_int_equal(a->requested_bytes, b->requested_bytes);
        assert_int_equal(a->missing_bytes, b->missing_bytes);
    }
}

static void f_d08_full_tiers_change_nothing(void **state) {
    struct spec *f = *state;
    struct outcome empty = run(f, 0);
    struct outcome full = run(f, FILLER);

    assert_int_equal(empty.loads, 5 + 48);
    assert_int_equal(empty.drops, 44);
    assert_int_equal(empty.rows[AT_C0].used_bytes, 4 * BLOCK);
    assert_int_equal(full.loads, empty.loads);
    assert_int_equal(full.drops, empty.drops);
    assert_int_equal(full.d, empty.d - 1); /* the pinned location was tracked before */
    expect_only_more(&full, &empty);
}

static const struct CMUnitTest tests[] = {
    FIELD_BOTH(f_d08_full_tiers_change_nothing),
};

TN_TEST_MAIN("field.full", tests)
