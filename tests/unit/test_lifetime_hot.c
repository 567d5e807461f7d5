/* SPDX-License-Identifier: MIT */
/*
 * src/lifetime/hot.c: what the hot path of several values takes and gives back, that it takes no lock
 * and no memory, and that whatever deviates undoes it.
 */
#include <tenure/controller.h>

#include "controller/use_priv.h"
#include "core_fixture.h"

/* Values a, b, c resident at P, c also at H; a reservation's location is tracked by the budgets. */
struct scene {
    tn_manager *m;
    tn_handle v[3];
    tn_controller *controller;
    tn_request *request;
    tn_use *use;
};

/* A request of a and b at P and c pinned, with 8 bytes at P and 4 pinned. */
static struct scene scene_of(struct spec *f) {
    struct scene s = {.m = MANAGER(f, {P, 256}, {N, 64})};
    tn_controller_config config = TN_CONTROLLER_CONFIG_INIT;
    tn_request_spec spec = TN_REQUEST_SPEC_INIT;
    for (size_t i = 0; i < 3; i++)
        s.v[i] = adopt_rep(f, s.m, P);
    ensure(s.m, s.v[2], N);
    tn_requirement need[] = {{s.v[0], P}, {s.v[2], N}, {s.v[1], P}};
    tn_reservation_spec reserve[] = {{P, 8, "first, with a long name"}, {N, 4, "second"}};
    spec.name = "hot";
    spec.requirements = need;
    spec.requirement_count = 3;
    spec.reservations = reserve;
    spec.reservation_count = 2;
    config.binding = TN_BIND_PLACEMENT;
    assert_ok(tn_controller_create(s.m, &config, &s.controller));
    assert_ok(tn_request_create(&spec, &s.request));
    assert_ok(tn_use_create(s.controller, s.request, NULL, &s.use));
    return s;
}

static void scene_end(struct scene *s) {
    tn_use_destroy(s->use);
    tn_request_destroy(s->request);
    tn_controller_destroy(s->controller);
}

/* What comes first makes records, pins and labels, on the slow way. */
static void warm_up(struct scene *s) {
    for (int i = 0; i < 8; i++) {
        tn_lease lease;
        assert_ok(tn_manager_acquire(s->m, s->v, 3, P, NULL, &lease));
        release(&lease);
        assert_ok(tn_use_enter(s->use));
        assert_ok(tn_use_exit(s->use));
        assert_ok(tn_use_reset(s->use));
    }
}

/* The next allocation would fail; whether one was asked for. */
#define assert_no_memory_asked(call_)                                                              \
    do {                                                                                           \
        tn__fault_alloc(1);                                                                        \
        uint64_t locks_ = tn__lock_count();                                                        \
        tn_status status_ = (call_);                                                               \
        locks_ = tn__lock_count() - locks_;                                                        \
        bool fired_ = tn__fault_alloc_fired();                                                     \
        tn__fault_alloc(0);                                                                        \
        assert_ok(status_);                                                                        \
        assert_false(fired_);                                                                      \
        assert_int_equal(locks_, 0);                                                               \
    } while (0)

/* ---- Leases ---- */

static void lease_of_several_collapses_duplicates_in_order(void **state) {
    tn_manager *m = MANAGER(*(struct spec **)state);
    tn_handle v[66], got[5];
    size_t count = 5;
    tn_lease lease;
    for (size_t i = 0; i < 66; i++)
        v[i] = adopt_rep(*state, m, P);
    tn_handle asked[] = {v[64], v[0],  v[64], v[1],
                         v[0],  v[65], v[1]}; /* 64 and 0, 65 and 1 collide */
    tn__hot_lease hot = {asked, 7, TN_LOCATION_PAGEABLE};
    if (tn__load_rlx(&tn__fence_asymmetric)) {
        assert_ok(tn_manager_acquire(m, asked, 7, P, NULL, &lease)); /* room */
        release(&lease);
        assert_true(tn__hot_acquire(m->id, m->gate, m->store, &hot, &lease));
    } else {
        assert_ok(tn_manager_acquire(m, asked, 7, P, NULL, &lease));
    }
    assert_ok(tn_lease_handles(&lease, got, &count));
    assert_int_equal(count, 4);
    assert_handle(got[0], v[64]);
    assert_handle(got[1], v[0]);
    assert_handle(got[2], v[1]);
    assert_handle(got[3], v[65]);
    for (size_t i = 0; i < 4; i++) {
        const void *data;
        assert_ok(tn_lease_lookup(&lease, got[i], &data));
        assert_ptr_equal(data, mat_of(m, got[i], P)->payload.data);
    }
    release(&lease);
}

static void lease_of_several_takes_no_lock_and_no_memory(void **state) {
    struct scene s = scene_of(*state);
    tn_lease lease;
    warm_up(&s);
    uint64_t before = version(s.m);
    assert_no_memory_asked(tn_manager_acquire(s.m, s.v, 3, P, NULL, &lease));
    assert_int_equal(version(s.m), before + 1);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(protection_of(s.m, mat_of(s.m, s.v[i], P)).uses, 1);
    release(&lease);
    assert_int_equal(version(s.m), before + 2);
    scene_end(&s);
}

static void lease_of_several_with_one_absent_leaves_nothing(void **state) {
    struct scene s = scene_of(*state);
    tn_lease lease;
    warm_up(&s);
    drop(s.m, s.v[2], P);
    tn__slot *slot = own_slot(s.m);
    tn__record *first = slot->free_local;
    uint64_t before = version(s.m);
    assert_status(tn_manager_acquire(s.m, s.v, 3, P, NULL, &lease), TN_ERR_UNAVAILABLE);
    assert_handle(tn_last_error()->handle, s.v[2]);
    assert_int_equal(version(s.m), before);
    assert_ptr_equal(slot->free_local, first);
    assert_int_equal(state_of(first), TN__FREE);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(protection_of(s.m, mat_of(s.m, s.v[i], P)).uses, 0);
    scene_end(&s);
}

static void lease_of_several_checks_every_handle(void **state) {
    struct scene s = scene_of(*state);
    tn_lease lease;
    warm_up(&s);
    tn_handle wrong[3] = {s.v[0], s.v[1], s.v[2]};
    wrong[1].index = 1000;
    assert_status(tn_manager_acquire(s.m, wrong, 3, P, NULL, &lease), TN_ERR_HANDLE);
    wrong[1] = s.v[1];
    wrong[1].manager++;
    assert_status(tn_manager_acquire(s.m, wrong, 3, P, NULL, &lease), TN_ERR_HANDLE);
    wrong[1] = s.v[1];
    wrong[1].index = 0;
    assert_status(tn_manager_acquire(s.m, wrong, 3, P, NULL, &lease), TN_ERR_KIND);
    wrong[1] = s.v[1];
    wrong[1].type = NULL;
    assert_status(tn_manager_acquire(s.m, wrong, 3, P, NULL, &lease), TN_ERR_KIND);
    scene_end(&s);
}

/* It meets the removal, gives up, and does on the slow way what a reader does: abort it. */
static void lease_of_several_that_meets_a_removal_aborts_it(void **state) {
    struct scene s = scene_of(*state);
    struct args reading = {.m = s.m, .h = {s.v[0], s.v[1], s.v[2]}, .count = 3, .at = P};
    struct args dropping = {.m = s.m, .h = {s.v[2]}, .at = P};
    struct op reader, writer;
    NEED_POINTS();
    OP_START(&reader, run_acquire, &reading, TN__POINT_PINS_STORED);
    assert_status(op_end(&reader), TN_OK); /* this thread's slot is another's */
    release(&reading.lease);
    OP_START(&reader, run_acquire, &reading, TN__POINT_PINS_STORED);
    op_reach(&reader);
    OP_START(&writer, run_drop, &dropping, TN__POINT_TRYING);
    op_reach(&writer);
    op_go(&writer);
    pause_shortly();
    assert_false(atomic_load(&writer.ended)); /* it waits for the reader */
    assert_status(op_end(&reader), TN_OK);
    assert_status(op_end(&writer), TN_ERR_IN_USE);
    release(&reading.lease);
    assert_ok(run_drop(&dropping));
    scene_end(&s);
}

static void lease_of_several_with_one_taken_is_busy(void **state) {
    struct scene s = scene_of(*state);
    struct args dropping = {.m = s.m, .h = {s.v[2]}, .at = P};
    struct op writer;
    tn_lease lease;
    NEED_POINTS();
    warm_up(&s);
    OP_START(&writer, run_drop, &dropping, TN__POINT_TAKEN);
    op_reach(&writer);
    assert_status(tn_manager_acquire(s.m, s.v, 3, P, NULL, &lease), TN_ERR_UNAVAILABLE);
    assert_int_equal(tn_last_error()->busy, 1);
    assert_handle(tn_last_error()->handle, s.v[2]);
    assert_status(op_end(&writer), TN_OK);
    scene_end(&s);
}

/* ---- Uses ---- */

static tn_status enter_twice(void *arg) {
    struct scene *s = arg;
    warm_up(s); /* on this thread */
    return tn_use_enter(s->use);
}

static tn_status exit_use(void *arg) { return tn_use_exit(((struct scene *)arg)->use); }

static void use_hit_takes_all_at_once(void **state) {
    struct scene s = scene_of(*state);
    tn_use_info info = {.size = sizeof info};
    warm_up(&s);
    uint64_t before = version(s.m);
    assert_no_memory_asked(tn_use_enter(s.use));
    assert_ok(tn_use_read(s.use, &info));
    assert_int_equal(info.hit, 1);
    assert_int_equal(version(s.m), before + 4); /* two leases, two reservations */
    assert_int_equal(reserved(s.m, P), 8);
    assert_int_equal(reserved(s.m, N), 4);
    assert_int_equal(protection_of(s.m, mat_of(s.m, s.v[0], P)).uses, 1);
    assert_int_equal(protection_of(s.m, mat_of(s.m, s.v[2], N)).uses, 1);
    assert_int_equal(protection_of(s.m, mat_of(s.m, s.v[2], P)).uses, 0);
    assert_no_memory_asked(tn_use_exit(s.use));
    assert_int_equal(version(s.m), before + 8);
    assert_int_equal(reserved(s.m, P), 0);
    assert_int_equal(protection_of(s.m, mat_of(s.m, s.v[0], P)).uses, 0);
    assert_no_memory_asked(tn_use_reset(s.use));
    scene_end(&s);
}

/* Bytes that are not there: nothing is taken, no peak is left, and the slow way reports. */
static void use_without_room_leaves_nothing(void **state) {
    struct scene s = scene_of(*state);
    warm_up(&s);
    tn_reservation all = reserve(s.m, N, remaining(s.m, N) - 3, "all but three");
    struct spec_peaks at_p = peaks(s.m, P);
    uint64_t before = version(s.m);
    assert_status(tn_use_enter(s.use), TN_ERR_PLAN);
    assert_int_equal(version(s.m), before + 6); /* the slow try: two leases, one reservation */
    assert_int_equal(reserved(s.m, P), 0);
    assert_peaks(s.m, P, at_p.used, at_p.charged);
    assert_int_equal(protection_of(s.m, mat_of(s.m, s.v[0], P)).uses, 0);
    release_reservation(&all);
    scene_end(&s);
}

/* The hot path alone, with what the use has prepared. */
static bool hot_take(struct scene *s) {
    tn_lease leases[2];
    tn_reservation reservations[2];
    assert_true(s->use->hot_ready);
    if (!tn__hot_take(&s->use->hot, tn__ticks(), leases, reservations))
        return false;
    assert_true(tn__hot_end(&s->use->hot, leases, reservations));
    return true;
}

static void need_hot_path(struct scene *s) {
    warm_up(s);
    if (tn__load_rlx(&tn__fence_asymmetric))
        return;
    scene_end(s);
    TN_SKIP("without membarrier there is no hot path");
}

static void total_of(tn_manager *m, tn_location at, uint64_t total) {
    uint64_t got, claimed;
    tn__ledger_read(tn__store_ledger(m->store, at), &got, &claimed);
    assert_int_equal(got, total);
    assert_int_equal(claimed, 0);
}

/* The second reservation does not fit: the bytes of the first are given back. By another thread, as
 * a record of this one would be another's next. */
static void take_without_room_gives_back_what_it_has_charged(void **state) {
    struct scene s = scene_of(*state);
    struct args rest = {.m = s.m, .at = N, .bytes = 64 - 32 - 3};
    struct op op;
    need_hot_path(&s);
    assert_true(hot_take(&s));
    OP_START(&op, run_reserve, &rest, 0);
    assert_status(op_end(&op), TN_OK);
    for (int i = 0; i < 2; i++)
        assert_false(hot_take(&s));
    total_of(s.m, P, 3 * 32);
    total_of(s.m, N, 64 - 3);
    release_reservation(&rest.reservation);
    assert_true(hot_take(&s));
    total_of(s.m, P, 3 * 32);
    total_of(s.m, N, 32);
    scene_end(&s);
}

static tn_manager *guarded;

static void guard_it(enum tn__point point, void *object) {
    (void)object;
    if (point == TN__POINT_PINS_STORED)
        tn__life_guard_raise(guarded->life);
}

/* The manager is no longer open at the last look, behind the charge. */
static void take_that_meets_a_guard_gives_back_what_it_has_charged(void **state) {
    NEED_POINTS();
    struct scene s = scene_of(*state);
    need_hot_path(&s);
    assert_true(hot_take(&s));
    guarded = s.m;
    at_points(guard_it);
    assert_false(hot_take(&s));
    at_points(NULL);
    tn__life_guard_lower(s.m->life);
    total_of(s.m, P, 3 * 32);
    total_of(s.m, N, 32);
    assert_int_equal(reserved(s.m, P) + reserved(s.m, N), 0);
    assert_true(hot_take(&s));
    scene_end(&s);
}

/* Exit by another thread than the one that entered. */
static void use_is_exited_by_another_thread(void **state) {
    struct scene s = scene_of(*state);
    struct op op;
    OP_START(&op, enter_twice, &s, 0);
    assert_status(op_end(&op), TN_OK);
    assert_int_equal(reserved(s.m, P), 8);
    assert_ok(tn_use_exit(s.use));
    assert_int_equal(reserved(s.m, P), 0);
    assert_int_equal(protection_of(s.m, mat_of(s.m, s.v[0], P)).uses, 0);
    assert_ok(tn_use_reset(s.use));
    warm_up(&s);
    assert_ok(tn_use_enter(s.use));
    OP_START(&op, exit_use, &s, 0);
    assert_status(op_end(&op), TN_OK);
    assert_int_equal(reserved(s.m, N), 0);
    scene_end(&s);
}

static void use_of_a_closed_manager_is_refused(void **state) {
    struct scene s = scene_of(*state);
    warm_up(&s);
    assert_ok(tn_use_enter(s.use));
    assert_status(tn_manager_close(s.m, 0), TN_ERR_IN_USE);
    assert_ok(tn_manager_close(s.m, TN_CLOSE_FORCE));
    assert_ok(tn_use_exit(s.use)); /* silently: M150 */
    assert_ok(tn_use_reset(s.use));
    assert_status(tn_use_enter(s.use), TN_ERR_CLOSED);
    scene_end(&s);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(lease_of_several_collapses_duplicates_in_order),
    SPEC_BOTH(lease_of_several_takes_no_lock_and_no_memory),
    SPEC_BOTH(lease_of_several_with_one_absent_leaves_nothing),
    SPEC_BOTH(lease_of_several_checks_every_handle),
    SPEC_CONCURRENT(lease_of_several_that_meets_a_removal_aborts_it),
    SPEC_CONCURRENT(lease_of_several_with_one_taken_is_busy),
    SPEC_BOTH(use_hit_takes_all_at_once),
    SPEC_BOTH(use_without_room_leaves_nothing),
    SPEC_BOTH(take_without_room_gives_back_what_it_has_charged),
    SPEC_BOTH(take_that_meets_a_guard_gives_back_what_it_has_charged),
    SPEC_BOTH(use_is_exited_by_another_thread),
    SPEC_BOTH(use_of_a_closed_manager_is_refused),
};

TN_TEST_MAIN("unit.lifetime_hot", tests)
