/* SPDX-License-Identifier: MIT */
/*
 * src/lifetime/record.c, slot.c, events.c: memory that scans may read at any time: blocks, arrays
 * that grow by replacement, free lists; slots and their take-over; event pools (L4).
 */
#include "core_fixture.h"

#define MANY (3 * (int)TN__BLOCK_RECORDS + 5)

static size_t blocks_of(const tn__slot *slot) {
    size_t count = 0;
    for (tn__block *b = tn__load_acq(&slot->blocks); b; b = b->next)
        count++;
    return count;
}

static size_t slots_of(tn_manager *m) {
    size_t count = 0;
    for (tn__slot *s = tn__load_acq(&m->life->slots); s; s = s->next)
        count++;
    return count;
}

/* ---- Records ----------------------------------------------------------------------------- */

static void records_come_in_blocks_and_are_used_again(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_lease leases[MANY];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++) {
            leases[i] = acquire(m, v, P, NULL);
            for (int j = 0; j < i; j++)
                assert_ptr_not_equal(leases[j].record, leases[i].record);
        }
        assert_int_equal(mat(m, v, P).use_count, MANY);
        for (int i = 0; i < MANY; i++)
            release(&leases[i]);
        assert_int_equal(blocks_of(own_slot(m)), 4);
    }
}

static void block_goes_back_to_the_process(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_lease lease = acquire(m, v, P, NULL);
    tn__block *block = tn__load_acq(&own_slot(m)->blocks);
    release(&lease);
    spec_destroy(f, m);
    assert_int_equal(tn__load_acq(&block->used), 0); /* recycled, never unmapped */
    assert_int_equal(state_of(lease.record), TN__FREE);
    m = MANAGER(f);
    v = adopt_rep(f, m, P);
    tn_lease next = acquire(m, v, P, NULL);
    assert_ptr_equal(next.record, lease.record);
    assert_int_not_equal(next.generation, lease.generation);
    assert_false(tn_lease_active(&lease));
    release(&lease);
    assert_true(tn_lease_active(&next));
    release(&next);
}

static void block_that_cannot_be_had_is_no_memory(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_lease lease, all[TN__BLOCK_RECORDS];
    tn__block *pooled[64];
    size_t count = 0;
    for (size_t i = 0; i < TN__BLOCK_RECORDS; i++)
        all[i] = acquire(m, v, P, NULL);
    uint64_t live = tn__alloc_live();
    do { /* empty the process's pool; the last one is fresh */
        assert_true(count < 64);
        pooled[count++] = tn__block_obtain();
    } while (tn__alloc_live() == live);
    tn__fault_alloc(1);
    assert_status(tn_manager_acquire(m, &v, 1, P, NULL, &lease), TN_ERR_HOST_MEMORY);
    tn__fault_alloc(0);
    lease = acquire(m, v, P, NULL);
    release(&lease);
    while (count > 0)
        tn__block_give_back(pooled[--count]);
    for (size_t i = 0; i < TN__BLOCK_RECORDS; i++)
        release(&all[i]);
}

/* A scan may still read the old array: it stays, linked behind the new one. */
static void pins_grow_by_replacement(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn__slot *slot = own_slot(m);
    tn__record *record = tn__record_obtain(slot);
    tn__pins *small = tn__record_pins(record, 1), *large;
    assert_true(small->room >= 4);
    assert_ptr_equal(tn__record_pins(record, 4), small);
    large = tn__record_pins(record, small->room + 1);
    assert_ptr_equal(large->older, small);
    assert_ptr_equal(tn__record_pins(record, 2), large);
    assert_null(tn__record_pins(record, (size_t)UINT32_MAX + 2));
    tn__fault_alloc(1);
    assert_null(tn__record_pins(record, large->room + 1));
    tn__fault_alloc(0);
    assert_ptr_equal(tn__load_acq(&record->pins), large);
    tn__record_recycle(record, slot);
}

static void event_arrays_grow_by_replacement(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn__slot *slot = own_slot(m);
    tn__record *record = tn__record_obtain(slot);
    tn__events *small = tn__record_events(record, 1), *large;
    large = tn__record_events(record, small->room + 1);
    assert_ptr_equal(large->older, small);
    assert_ptr_equal(tn__record_events(record, 2), large);
    assert_null(tn__record_events(record, (size_t)UINT32_MAX + 2));
    tn__fault_alloc(1);
    assert_null(tn__record_events(record, large->room + 1));
    tn__fault_alloc(0);
    tn__record_recycle(record, slot);
}

/* A lease over many values, and on many streams. */
static void lease_of_many_values_and_streams_is_whole(void **state) {
    enum { VALUES = 40, STREAMS = 20 };
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle handles[VALUES], read[VALUES];
    tn_stream streams[STREAMS];
    size_t count = VALUES;
    tn_lease lease;
    uint64_t records;
    for (int i = 0; i < VALUES; i++)
        handles[i] = adopt_rep(f, m, C0);
    for (int i = 0; i < STREAMS; i++)
        streams[i] = spec_stream(f, 0);
    assert_ok(tn_manager_acquire(m, handles, VALUES, C0, streams[0], &lease));
    for (int i = 0; i < STREAMS; i++)
        assert_ok(tn_lease_add_stream(&lease, streams[i]));
    assert_ok(tn_lease_handles(&lease, read, &count));
    assert_int_equal(count, VALUES);
    for (int i = 0; i < VALUES; i++) {
        assert_handle(read[i], handles[i]);
        assert_int_equal(mat(m, handles[i], C0).use_count, 1);
    }
    spec_busy(f, streams[STREAMS - 1]);
    records = tn_sim_calls(f->sim, TN_SIM_EVENT_RECORD);
    release(&lease);
    assert_int_equal(tn_sim_calls(f->sim, TN_SIM_EVENT_RECORD) - records, STREAMS);
    for (int i = 0; i < VALUES; i++)
        assert_in_use(tn_manager_drop(m, handles[i], C0, NULL), 0, 0, 1);
    spec_finish(f);
    assert_int_equal(info(m).pending_lease_count, 0);
}

/* ---- Slots ------------------------------------------------------------------------------- */

static tn_status hold_and_exit(void *arg) { return run_hold(arg); }

/* The records and the count of a thread that has exited belong to the next new thread. */
static void slot_of_an_exited_thread_is_taken_over(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    struct args x = {.m = m, .h = {adopt_rep(f, m, P)}, .at = P}, y = x;
    struct op first, second;
    OP_START(&first, hold_and_exit, &x, 0);
    assert_status(op_end(&first), TN_OK);
    assert_int_equal(slots_of(m), 2);
    tn__slot *slot = ((tn__record *)x.hold.record)->slot;
    assert_int_equal(tn__load_acq(&slot->taken), 0);
    uint64_t counter = tn__load_acq(&slot->counter), before = version(m);
    assert_int_equal(info(m).hold_count, 1);
    OP_START(&second, hold_and_exit, &y, 0);
    assert_status(op_end(&second), TN_OK);
    assert_int_equal(slots_of(m), 2);
    assert_ptr_equal(((tn__record *)y.hold.record)->slot, slot);
    assert_ptr_not_equal(y.hold.record, x.hold.record);
    assert_int_equal(tn__load_acq(&slot->counter), counter + 2);
    assert_int_equal(version(m), before + 1);
    release_hold(&x.hold); /* by this thread: back to that slot */
    release_hold(&y.hold);
    assert_non_null(tn__load_acq(&slot->free_remote));
    OP_START(&first, hold_and_exit, &x, 0);
    assert_status(op_end(&first), TN_OK);
    assert_null(tn__load_acq(&slot->free_remote));
    release_hold(&x.hold);
}

struct wandering {
    struct spec *f;
    tn_manager *m[3];
    tn_handle v[3];
};

static tn_status wander(void *arg) {
    struct wandering *w = arg;
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 3; i++) {
            tn_hold h;
            tn_status status = tn_manager_hold(w->m[i], &w->v[i], 1, P, &h);
            if (status == TN_OK)
                status = tn_hold_release(&h);
            if (status != TN_OK)
                return status;
        }
    return TN_OK;
}

/* One slot per manager, however often a thread changes between them. */
static void thread_keeps_one_slot_per_manager(void **state) {
    struct wandering w = {.f = *state};
    struct op other;
    for (int i = 0; i < 3; i++) {
        w.m[i] = MANAGER(w.f);
        w.v[i] = adopt_rep(w.f, w.m[i], P);
    }
    assert_ok(wander(&w));
    OP_START(&other, wander, &w, 0);
    assert_status(op_end(&other), TN_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(slots_of(w.m[i]), 2);
}

static size_t notes_of(const tn__thread *thread) {
    size_t count = 0;
    for (void *const *ref = thread->slots; ref; ref = *ref) /* its first member is `next` */
        count++;
    return count;
}

/* A thread's notes of managers that are gone do not pile up. */
static void notes_of_managers_that_are_gone_are_forgotten(void **state) {
    struct spec *f = *state;
    for (int i = 0; i < 20; i++) {
        tn_manager *m = MANAGER(f);
        (void)own_slot(m);
        spec_destroy(f, m);
    }
    assert_true(notes_of(tn__thread_self()) <= 2);
}

struct staying {
    struct args x;
    atomic_bool leave;
};

static tn_status hold_and_stay(void *arg) {
    struct staying *s = arg;
    tn_status status = run_hold(&s->x);
    while (!atomic_load(&s->leave))
        pause_shortly();
    return status;
}

/* A thread that outlives a manager gives back only slots that still exist. */
static void thread_may_outlive_a_manager(void **state) {
    struct spec *f = *state;
    tn_manager *gone = MANAGER(f), *stays = MANAGER(f);
    struct wandering w = {f, {gone, stays, stays}, {{0, 0, NULL}}};
    for (int i = 0; i < 3; i++)
        w.v[i] = adopt_rep(f, w.m[i], P);
    struct staying s = {.x = {.m = gone, .h = {w.v[0]}, .at = P}};
    struct op other;
    assert_ok(wander(&w));
    OP_START(&other, hold_and_stay, &s, 0);
    wait_until(slots_of(gone) == 2 && info(gone).hold_count == 1);
    spec_destroy(f, gone);
    atomic_store(&s.leave, true);
    assert_status(op_end(&other), TN_OK);
    assert_false(tn_hold_active(&s.x.hold));
    assert_ok(wander(&(struct wandering){f, {stays, stays, stays}, {w.v[1], w.v[1], w.v[2]}}));
}

/* ---- Events ------------------------------------------------------------------------------ */

static void events_are_made_once_per_context_and_used_again(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_stream_info here = {.device = 0, .context = 1}, there = {.device = 1, .context = 1};
    tn__event *a, *b, *c;
    tn_stream s0 = spec_stream(f, 0), s1 = spec_stream(f, 1);
    assert_ok(tn__driver_check_stream(f->driver, s0, 0, &here));
    assert_ok(tn__driver_check_stream(f->driver, s1, 1, &there));
    assert_ok(tn__event_take(m->life, &here, &a));
    assert_ok(tn__event_take(m->life, &here, &b));
    assert_ok(tn__event_take(m->life, &there, &c));
    assert_ptr_not_equal(tn__event_native(a), tn__event_native(b));
    assert_ptr_not_equal(a->home, c->home);
    assert_int_equal(tn_sim_live_events(f->sim), 3);
    for (int i = 0; i < 5; i++) {
        tn__event *again, *other;
        tn__event_give(a);
        tn__event_give(b);
        assert_ok(tn__event_take(m->life, &here, &again));
        assert_ok(tn__event_take(m->life, &here, &other));
        assert_true((again == a && other == b) || (again == b && other == a));
    }
    assert_int_equal(tn_sim_live_events(f->sim), 3);
    there.context = here.context; /* the same number on another device is another context */
    for (int i = 0; i < 3; i++)
        tn__event_give(i == 0 ? a : i == 1 ? b : c);
    if (tn__event_take(m->life, &there, &c) == TN_OK) {
        assert_true(c->home != a->home && c->home->device == 1);
        tn__event_give(c);
    }
}

static void event_that_cannot_be_made_is_an_error(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_stream_info here = {0, 0, 0};
    tn__event *a = NULL;
    assert_ok(tn__driver_check_stream(f->driver, spec_stream(f, 0), 0, &here));
    for (uint64_t nth = 1; nth <= 2; nth++) { /* the pool, then the event: the pool is there */
        (void)own_slot(m);
        tn__fault_alloc(1);
        assert_status(tn__event_take(m->life, &here, &a), TN_ERR_HOST_MEMORY);
        tn__fault_alloc(0);
        spec_fault(f, TN_SIM_EVENT_CREATE, 1, 1, TN_ERR_DRIVER, 9);
        assert_status(tn__event_take(m->life, &here, &a), TN_ERR_DRIVER);
    }
    assert_int_equal(tn_sim_live_events(f->sim), 0);
    assert_null(a);
}

static const struct CMUnitTest tests[] = {
    SPEC_CONCURRENT(records_come_in_blocks_and_are_used_again),
    SPEC_CONCURRENT(block_goes_back_to_the_process),
    SPEC_CONCURRENT(block_that_cannot_be_had_is_no_memory),
    SPEC_CONCURRENT(pins_grow_by_replacement),
    SPEC_CONCURRENT(event_arrays_grow_by_replacement),
    SPEC_CONCURRENT(lease_of_many_values_and_streams_is_whole),
    SPEC_CONCURRENT(slot_of_an_exited_thread_is_taken_over),
    SPEC_CONCURRENT(thread_keeps_one_slot_per_manager),
    SPEC_CONCURRENT(notes_of_managers_that_are_gone_are_forgotten),
    SPEC_CONCURRENT(thread_may_outlive_a_manager),
    SPEC_CONCURRENT(events_are_made_once_per_context_and_used_again),
    SPEC_CONCURRENT(event_that_cannot_be_made_is_an_error),
};

TN_TEST_MAIN("unit.lifetime_record", tests)
