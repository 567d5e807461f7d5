/* SPDX-License-Identifier: MIT */
/*
 * src/lifetime/fast.h: what keeps the hot path from taking another thread's slot for its own.
 */
#include "core_fixture.h"

/* A thread that remembers a slot at this address, of a manager that is gone. */
struct stale {
    tn_lease lease;
    tn__slot *slot;
    bool beside; /* it counted in a slot of its own */
};

static tn_status release_with_stale_slot(void *arg) {
    struct stale *s = arg;
    tn__thread *thread = tn__thread_self();
    thread->cached_id = UINT64_MAX;
    thread->cached_slot = s->slot;
    tn_status status = tn_lease_release(&s->lease, 0);
    s->beside = thread->cached_slot != s->slot;
    return status;
}

static void release_with_a_stale_slot_leaves_that_slot_alone(void **state) {
    tn_manager *m = MANAGER((struct spec *)*state);
    tn_handle v = adopt_rep(*state, m, P);
    struct stale s = {.slot = own_slot(m)};
    struct op op;
    assert_ok(tn_manager_acquire(m, &v, 1, P, NULL, &s.lease));
    uint64_t counter = tn__load_acq(&s.slot->counter);
    tn__record *free_before = s.slot->free_local;
    OP_START(&op, release_with_stale_slot, &s, 0);
    assert_status(op_end(&op), TN_OK);
    assert_true(s.beside);
    assert_int_equal(tn__load_acq(&s.slot->counter), counter);
    assert_ptr_equal(s.slot->free_local, free_before);
    assert_ptr_equal(tn__load_acq(&s.slot->free_remote), s.lease.record);
    assert_false(tn_lease_active(&s.lease));
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(release_with_a_stale_slot_leaves_that_slot_alone),
};

TN_TEST_MAIN("unit.lifetime_fast", tests)
