/* SPDX-License-Identifier: MIT */
/*
 * src/lifetime/life.c: the manager word and forks (F-H05), entry checks, warnings, garbage, the sum
 * of the counters.
 */
#include "core_fixture.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Fork -------------------------------------------------------------------------------- */

struct forked {
    struct spec *f;
    tn_manager *m;
    tn_handle v;
    tn_lease lease;
    tn_hold held;
    tn_reservation r;
};

/* The first call in the child that does not say "forked"; 0: all do. */
static int first_wrong_call(struct forked *x) {
    tn_lease lease;
    tn_hold held;
    tn_reservation r;
    tn_handle h;
    tn_snapshot *s;
    uint64_t n;
    size_t count = 0;
    const void *data;
    const tn_status statuses[] = {
        tn_manager_acquire(x->m, &x->v, 1, P, NULL, &lease),
        tn_manager_hold(x->m, &x->v, 1, P, &held),
        tn_manager_reserve(x->m, P, 8, "r", &r),
        tn_manager_adopt(x->m, (tn_payload){tt_type(), &r}, P, TN_REPLICABLE, &h),
        tn_manager_ensure(x->m, x->v, C0, NULL, NULL),
        tn_manager_drop(x->m, x->v, P, NULL),
        tn_manager_discard(x->m, x->v, NULL),
        tn_manager_state_version(x->m, &n),
        tn_manager_locations(x->m, NULL, &count),
        tn_manager_trace(x->m, NULL, &count),
        tn_manager_clear_trace(x->m),
        tn_manager_step(x->m, NULL),
        tn_snapshot_take(x->m, &s),
        tn_manager_close(x->m, TN_CLOSE_FORCE),
        tn_manager_destroy(x->m),
        tn_lease_lookup(&x->lease, x->v, &data),
        tn_lease_release(&x->lease, 0),
        tn_hold_release(&x->held),
        tn_reservation_release(&x->r),
    };
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        if (statuses[i] != TN_ERR_FORKED)
            return (int)i + 1;
    return 0;
}

static void manager_of_the_parent_is_refused_in_a_child(void **state) {
    struct forked x = {.f = *state};
    int status = 0;
    if (TN__TSAN)
        TN_SKIP("a forked child of a thread-sanitized program must not take locks");
    x.m = MANAGER(x.f);
    x.v = adopt_rep(x.f, x.m, P);
    x.lease = acquire(x.m, x.v, P, NULL);
    x.held = hold(x.m, x.v, P);
    x.r = reserve(x.m, P, 8, "r");
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(first_wrong_call(&x));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_true(tn_lease_active(&x.lease)); /* the parent's is untouched */
    release(&x.lease);
    release_hold(&x.held);
    release_reservation(&x.r);
}

/* The same by hand, in this process. */
static void manager_whose_word_was_wiped_is_refused(void **state) {
    struct forked x = {.f = *state};
    x.m = MANAGER(x.f);
    x.v = adopt_rep(x.f, x.m, P);
    x.lease = acquire(x.m, x.v, P, NULL);
    x.held = hold(x.m, x.v, P);
    x.r = reserve(x.m, P, 8, "r");
    tn__store_rel(&x.m->life->gate->word, TN__MANAGER_FORKED);
    assert_int_equal(first_wrong_call(&x), 0);
    tn__store_rel(&x.m->life->gate->word, TN__MANAGER_OPEN);
    release(&x.lease);
    release_hold(&x.held);
    release_reservation(&x.r);
}

/* ---- A thread's first call, without memory for its slot ----------------------------------- */

struct newcomer {
    struct spec *f;
    tn_manager *m;
    tn_handle v;
    tn_reservation r;
    tn_stream_info info;
};

static tn_status as_acquire(struct newcomer *n) {
    tn_lease lease;
    return tn__life_acquire(n->m->life, &n->v, 1, P, NULL, &n->info, &lease);
}

static tn_status as_reserve(struct newcomer *n) {
    tn_reservation r;
    return tn__life_reserve(n->m->life, P, 8, "r", &r);
}

static tn_status as_take(struct newcomer *n) {
    return tn__life_take_begin(n->m->life, &n->r, P, 8);
}

static tn_status as_reap(struct newcomer *n) {
    uint64_t completed = 0;
    return tn__life_reap(n->m->life, &completed);
}

static tn_status as_reap_manual(struct newcomer *n) { return tn__life_reap_manual(n->m->life); }

static tn_status as_wait(struct newcomer *n) { return tn__life_wait_pending(n->m->life); }

static tn_status as_event(struct newcomer *n) {
    tn__event *event;
    return tn__event_take(n->m->life, &n->info, &event);
}

static tn_status as_close(struct newcomer *n) {
    return tn__life_close_force(n->m->life, NULL, NULL);
}

static tn_status as_help(struct newcomer *n) {
    tn__mat *mat = NULL;
    bool protected;
    return tn__life_help(n->m->life, &mat, 1, &protected);
}

static tn_status (*const firsts[])(struct newcomer *n) = {
    as_acquire, as_reserve, as_take, as_reap, as_reap_manual, as_wait, as_event, as_close, as_help};

static const char *call_first(int index, void *arg) {
    struct newcomer *n = arg;
    (void)index;
    for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i++) {
        tn__fault_alloc(1);
        tn_status status = firsts[i](n);
        tn__fault_alloc(0);
        TN_WORKER_STATUS(status, TN_ERR_HOST_MEMORY);
    }
    return NULL;
}

static void first_call_of_a_thread_may_lack_memory(void **state) {
    struct newcomer n = {.f = *state};
    tn_stream stream = spec_stream(n.f, 0);
    n.m = MANAGER(n.f);
    n.v = adopt_rep(n.f, n.m, C0);
    n.r = reserve(n.m, P, 8, "r");
    assert_ok(tn__driver_check_stream(n.f->driver, stream, 0, &n.info));
    tn_lease pending = acquire(n.m, n.v, C0, stream);
    spec_busy(n.f, stream);
    release(&pending);
    assert_null_text(tn_test_workers_run(1, call_first, &n));
    assert_int_equal(info(n.m).pending_lease_count, 1);
    release_reservation(&n.r);
}

/* ---- Creation ---------------------------------------------------------------------------- */

/* Thread stacks that no machine has. */
static void reaper_that_cannot_be_started_is_a_system_error(void **state) {
    struct spec *f = *state;
    pthread_attr_t before, absurd;
    tn_config config = spec_config(f);
    tn_manager *m = NULL;
    config.reaper = TN_REAPER_THREAD;
    assert_int_equal(pthread_getattr_default_np(&before), 0);
    assert_int_equal(pthread_attr_init(&absurd), 0);
    if (pthread_attr_setstacksize(&absurd, (size_t)1 << 46) != 0 ||
        pthread_setattr_default_np(&absurd) != 0)
        TN_SKIP("the default stack size cannot be set that high here");
    uint64_t live = tn__alloc_live();
    tn_status status = tn_manager_create(&config, &m);
    assert_int_equal(pthread_setattr_default_np(&before), 0);
    assert_status(status, TN_ERR_SYSTEM);
    assert_true(tn_last_error()->native_code != 0);
    assert_null(m);
    assert_int_equal(tn__alloc_live(), live);
    assert_int_equal(pthread_attr_destroy(&absurd), 0);
    m = spec_manager_with(f, &config);
    assert_int_equal(version(m), 0);
}

/* ---- Entry ------------------------------------------------------------------------------- */

static void entry_checks_come_in_their_order(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn__thread *thread = NULL;
    tn__frame mutation, callback;
    assert_ok(tn__life_thread(m->life, &thread));
    assert_ok(tn__life_enter(m->life, thread, false));
    tn__frame_push(thread, &mutation, m->id, false);
    assert_status(tn__life_enter(m->life, thread, true), TN_ERR_REENTRANCY);
    assert_ok(tn__life_enter_guard_only(m->life, thread)); /* M235: only the guard */
    tn__frame_push(thread, &callback, m->id, true);
    assert_status(tn__life_enter_guard_only(m->life, thread), TN_ERR_REENTRANCY);
    tn__frame_pop(thread, &callback);
    tn__frame_pop(thread, &mutation);
    tn__frame_push(thread, &callback, m->id + 1, true); /* another manager's */
    assert_ok(tn__life_enter(m->life, thread, false));
    tn__frame_pop(thread, &callback);
    tn__life_guard_raise(m->life);
    assert_status(tn__life_enter(m->life, thread, true), TN_ERR_REENTRANCY);
    assert_status(tn__life_enter_waited(m->life), TN_ERR_REENTRANCY);
    tn__life_guard_lower(m->life);
    assert_ok(tn_manager_close(m, 0));
    assert_true(tn__life_closed(m->life));
    assert_status(tn__life_enter(m->life, thread, false), TN_ERR_CLOSED);
    assert_ok(tn__life_enter(m->life, thread, true));
    assert_ok(tn__life_enter_guard_only(m->life, thread));
    assert_status(tn__life_enter_waited(m->life), TN_ERR_CLOSED);
}

/* ---- Warnings ---------------------------------------------------------------------------- */

struct told {
    tn_manager *m;
    unsigned times;
    tn_diagnostic last;
    tn_status inside;
};

static void tell(void *context, const tn_diagnostic *d) {
    struct told *t = context;
    uint64_t n;
    t->times++;
    t->last = *d;
    t->inside = tn_manager_state_version(t->m, &n); /* M197: it must not call the manager */
}

static void warning_keeps_the_callers_error(void **state) {
    struct spec *f = *state;
    struct told t = {.times = 0};
    tn_config config = spec_config(f);
    config.diagnostic = tell;
    config.diagnostic_context = &t;
    t.m = spec_manager_with(f, &config);
    (void)tn__fail(TN_ERR_DRIVER, "the cause");
    tn__error_current()->native_code = 5;
    tn__life_warn(t.m->life, TN_DIAGNOSTIC_CLEANUP, TN_ERR_DRIVER, C0, "text");
    assert_int_equal(t.times, 1);
    assert_int_equal(t.last.kind, TN_DIAGNOSTIC_CLEANUP);
    assert_int_equal(t.last.native_code, 5);
    assert_int_equal(t.last.manager, t.m->id);
    assert_string_equal(t.last.message, "text");
    assert_status(t.inside, TN_ERR_REENTRANCY);
    assert_string_equal(tn_last_error()->message, "the cause");
    tn__life_warn(t.m->life, TN_DIAGNOSTIC_CLEANUP, TN_OK, C0, "no cause");
    assert_int_equal(t.last.native_code, 0);
}

static void warning_without_hook_is_lost(void **state) {
    struct spec *f = *state;
    tn_config config = spec_config(f);
    config.diagnostic = NULL;
    tn_manager *m = spec_manager_with(f, &config);
    tn__life_warn(m->life, TN_DIAGNOSTIC_CLEANUP, TN_OK, C0, "nobody listens");
    (void)hold(m, adopt_rep(f, m, P), P); /* abandoned at the end of the test */
}

/* ---- Garbage ----------------------------------------------------------------------------- */

static unsigned freed_objects;

static void count_free(tn__garbage *garbage) {
    (void)garbage;
    freed_objects++;
}

static void garbage_is_freed_after_a_grace_period(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn__garbage three[3] = {{NULL, count_free}, {NULL, count_free}, {NULL, count_free}};
    uint64_t freed = 0;
    (void)own_slot(m);
    assert_ok(tn__life_collect(m->life, &freed));
    freed = freed_objects = 0;
    for (int i = 0; i < 3; i++)
        tn__garbage_push(m->life, &three[i]);
    tn__rcu_lock();
    assert_status(tn__life_collect(m->life, &freed), TN_ERR_REENTRANCY);
    tn__rcu_unlock();
    assert_int_equal(freed_objects, 0);
    assert_ok(tn__life_collect(m->life, &freed));
    assert_int_equal(freed, 3);
    assert_int_equal(freed_objects, 3);
    assert_ok(tn__life_collect(m->life, &freed));
    assert_int_equal(freed, 3);
}

/* ---- Counters ---------------------------------------------------------------------------- */

static void counters_are_summed_over_all_slots(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn__slot other = {.life = m->life};
    tn__counts before, after;
    bool stable = false;
    tn__slot *own = own_slot(m);
    tn__life_counts(m->life, &before);
    other.next = tn__load_rlx(&m->life->slots);
    tn__store_rlx(&other.counter, 10);
    tn__store_rel(&m->life->slots, &other);
    assert_int_equal(tn__life_count(m->life, &stable), before.sum + 5);
    assert_true(stable);
    tn__store_rel(&other.counter, 11);
    tn__life_counts(m->life, &after);
    assert_true(after.odd);
    assert_int_equal(after.sum, before.sum + 5);
    assert_int_equal(after.slots, before.slots + 1);
    assert_int_equal(tn__life_count(m->life, &stable), before.sum + 5);
    assert_false(stable);
    tn__store_rel(&m->life->slots, own);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(manager_of_the_parent_is_refused_in_a_child),
    SPEC_BOTH(manager_whose_word_was_wiped_is_refused),
    SPEC_CONCURRENT(first_call_of_a_thread_may_lack_memory),
    SPEC_CONCURRENT(reaper_that_cannot_be_started_is_a_system_error),
    SPEC_CONCURRENT(entry_checks_come_in_their_order),
    SPEC_CONCURRENT(warning_keeps_the_callers_error),
    SPEC_CONCURRENT(warning_without_hook_is_lost),
    SPEC_CONCURRENT(garbage_is_freed_after_a_grace_period),
    SPEC_CONCURRENT(counters_are_summed_over_all_slots),
};

TN_TEST_MAIN("unit.lifetime_life", tests)
