/* SPDX-License-Identifier: MIT */
/*
 * Plans that stand still half-way: a sequence of actions on a thread of its own stops in the copy of
 * a value that is marked, while the test asks for what it holds.
 *
 *     tn_handle slow = marked(f, m, N);
 *     arm();
 *     START(&q, m, ENSURE(slow, C0), DROP(v, P));
 *     stand_reached();
 *     ...                          what others may see or do meanwhile
 *     go_on(false);                true: the copy fails
 *     assert_status(op_end(&q.op), TN_OK);
 */
#ifndef CLAIMS_FIXTURE_H
#define CLAIMS_FIXTURE_H

#include "core_fixture.h"

#define ENSURE(h, at) tn_action_ensure((h), (at))
#define DROP(h, at) tn_action_drop((h), (at))

/* ---- A sequence on a thread of its own ------------------------------------------------------ */

#define ACTIONS_MAX 6
#define MARK 99u /* tag of a value whose copy stands still */

struct sequence {
    tn_manager *m;
    tn_action actions[ACTIONS_MAX];
    size_t count;
    uint64_t expected;
    atomic_bool running;
    struct op op;
};

static inline tn_status run_sequence(void *arg) {
    struct sequence *q = arg;
    tn_run_options options = TN_RUN_OPTIONS_INIT;
    options.expected_version = q->expected;
    atomic_store(&q->running, true);
    return tn_manager_execute_actions(q->m, "sequence", q->actions, q->count, &options, NULL);
}

static inline void fill(struct sequence *q, tn_manager *m, const tn_action *actions, size_t count) {
    assert_true(count <= ACTIONS_MAX);
    *q = (struct sequence){.m = m, .count = count, .expected = TN_VERSION_ANY};
    memcpy(q->actions, actions, count * sizeof *actions);
}
#define FILL(q, m, ...)                                                                            \
    fill((q), (m), (const tn_action[]){__VA_ARGS__},                                               \
         sizeof((const tn_action[]){__VA_ARGS__}) / sizeof(tn_action))
#define START(q, m, ...)                                                                           \
    do {                                                                                           \
        FILL(q, m, __VA_ARGS__);                                                                   \
        OP_START(&(q)->op, run_sequence, (q), 0);                                                  \
    } while (0)

/* Start a sequence that must wait, as the `before`+1st. */
#define QUEUE(q, m, before, ...)                                                                   \
    do {                                                                                           \
        START(q, m, __VA_ARGS__);                                                                  \
        wait_until(flow_count((m), false) == (before) + 1);                                        \
    } while (0)

/* An adoption at P on a thread of its own. */
struct adopter {
    tn_manager *m;
    tn_payload v;
    tn_handle h;
};

static inline tn_status run_adopt(void *arg) {
    struct adopter *a = arg;
    return tn_manager_adopt(a->m, a->v, P, TN_REPLICABLE, &a->h);
}

/* ---- The copy that stands still ------------------------------------------------------------- */

static struct { atomic_bool reached, go, fail; } still;

static inline void stand(void *context, const void *data) {
    (void)context;
    if (tt_tag(data) != MARK || atomic_load(&still.go))
        return;
    atomic_store(&still.reached, true);
    while (!atomic_load(&still.go))
        pause_shortly();
    if (atomic_load(&still.fail))
        tt_fail_copy(1, TN_ERR_PAYLOAD); /* this very copy */
}

static inline tn_handle marked(struct spec *f, tn_manager *m, tn_location at) {
    tn_payload v = spec_v(f, at);
    tt_set_tag(v, MARK);
    return spec_adopt(m, v, at, TN_REPLICABLE);
}

static inline tn_handle big(struct spec *f, tn_manager *m, tn_location at) {
    return spec_adopt(m, tt_bytes(f->driver, at, 64), at, TN_REPLICABLE);
}

static inline void arm(void) {
    atomic_store(&still.reached, false);
    atomic_store(&still.go, false);
    atomic_store(&still.fail, false);
    tt_on_copy(stand, NULL);
}

static inline void stand_reached(void) { wait_until(atomic_load(&still.reached)); }

static inline void go_on(bool fail) {
    atomic_store(&still.fail, fail);
    atomic_store(&still.go, true);
}

static inline void expect_claimed(tn_manager *m, tn_location at, uint64_t total, uint64_t claimed) {
    uint64_t got_total, got_claimed;
    tn__ledger_read(tn__store_ledger(m->store, at), &got_total, &got_claimed);
    assert_int_equal(got_total, total);
    assert_int_equal(got_claimed, claimed);
}

static inline void expect_no_claims(tn_manager *m) {
    static const uint32_t kinds[4] = {TN_LOCATION_PAGEABLE, TN_LOCATION_PINNED, TN_LOCATION_CUDA,
                                      TN_LOCATION_CUDA};
    for (uint32_t i = 0; i < 4; i++) {
        uint64_t total, claimed;
        tn_location at = {kinds[i], i == 3 ? 1 : 0};
        tn__ledger_read(tn__store_ledger(m->store, at), &total, &claimed);
        assert_int_equal(claimed, 0);
    }
    assert_int_equal(flow_count(m, true), 0);
    assert_int_equal(flow_count(m, false), 0);
}

static inline void expect_reserve_refused(tn_manager *m, uint64_t bytes, uint64_t claimed) {
    tn_reservation r = {NULL, 0};
    assert_status(tn_manager_reserve(m, P, bytes, "no", &r), TN_ERR_BUDGET);
    assert_int_equal(tn_last_error()->claimed_bytes, claimed);
}

#endif
