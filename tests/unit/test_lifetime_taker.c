/* SPDX-License-Identifier: MIT */
/*
 * src/lifetime/removal.c: an aborted plan is judged by what became of the acquire that aborted it,
 * not by what that reader's record has become since (an acquire and a removal never both lose).
 */
#include "core_fixture.h"

/* Fails, as `b` is taken; then takes the same record again, for `c`. */
struct reading {
    struct args both, other;
    tn_status first;
};

static tn_status fail_then_read(void *arg) {
    struct reading *r = arg;
    r->first = run_acquire(&r->both);
    return run_acquire(&r->other);
}

/*
 * The plan for `a` stands before its fence, the plan for `b` is decided. The reader of both aborts
 * the first, meets the second, fails, and reads `c` with the record it has used. The plan for `a`
 * finds that record ACTIVE, yet nobody uses `a`.
 */
static void removal_is_not_judged_by_the_next_lease_of_its_reader(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle a = adopt_rep(f, m, P), b = adopt_rep(f, m, P), c = adopt_rep(f, m, P);
    struct args drop_a = {.m = m, .h = {a}, .at = C0}, drop_b = {.m = m, .h = {b}, .at = C0};
    struct reading r = {
        {.m = m, .h = {a, b}, .count = 2, .at = C0}, {.m = m, .h = {c}, .at = C0}, TN_OK};
    struct op writer_a, writer_b, reader;
    NEED_POINTS();
    for (int i = 0; i < 3; i++)
        (void)ensure(m, (tn_handle[]){a, b, c}[i], C0);
    r.both.stream = r.other.stream = spec_stream(f, 0);
    OP_START(&writer_b, run_drop, &drop_b, TN__POINT_TAKEN);
    op_reach(&writer_b);
    OP_START(&writer_a, run_drop, &drop_a, TN__POINT_TRYING);
    op_reach(&writer_a);
    OP_START(&reader, fail_then_read, &r, 0);
    (void)op_end(&reader);
    (void)op_end(&writer_a);
    (void)op_end(&writer_b);
    assert_status(r.first, TN_ERR_UNAVAILABLE);
    assert_status(reader.status, TN_OK);
    assert_status(writer_a.status, TN_OK);
    assert_status(writer_b.status, TN_OK);
    assert_replicas(m, a, P);
    release(&r.other.lease);
}

static const struct CMUnitTest tests[] = {
    SPEC_CONCURRENT(removal_is_not_judged_by_the_next_lease_of_its_reader),
};

TN_TEST_MAIN("unit.lifetime_taker", tests)
