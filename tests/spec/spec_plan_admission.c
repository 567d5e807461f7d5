/* SPDX-License-Identifier: MIT */
/*
 * How plans are admitted beside one another (M127, M256, M258): in a serial manager an expected
 * version admits one plan (in a concurrent one those with other handles overlap: D3), and who does
 * not fit only because of a plan in flight waits for it and is judged again.
 */
#include "spec_b_common.h"

#include "spec_plan_common.h"

#include <sched.h>

/* ---- A version admits one plan --------------------------------------------------------------- */

enum { RUNNERS = 3, TRIES = 300, VERSIONS = 8192 };

struct versions {
    tn_manager *m;
    tn_handle own[RUNNERS];
    tn_handle leased;
    atomic_uint admitted[VERSIONS]; /* by the version they expected */
    atomic_uint done, stale, refused, leases;
    atomic_int running;
    bool serial;
};

/* One event each time: its own value comes to N, or goes from there. */
static const char *toggle(struct versions *x, int index) {
    bool there = false;

    for (int i = 0; i < TRIES && !tn_test_workers_failed(); i++) {
        tn_action action = there ? DROP(x->own[index], N) : ENSURE(x->own[index], N);
        tn_run_options options = TN_RUN_OPTIONS_INIT;
        tn_status status;

        TN_WORKER_STATUS(tn_manager_state_version(x->m, &options.expected_version), TN_OK);
        if (i % 3 == 0)
            sched_yield();
        status = tn_manager_execute_actions(x->m, NULL, &action, 1, &options, NULL);
        TN_WORKER_CHECK(status == TN_OK || status == TN_ERR_STALE);
        if (status == TN_ERR_STALE) {
            TN_WORKER_CHECK(tn_last_error()->expected == options.expected_version);
            TN_WORKER_CHECK(tn_last_error()->actual > options.expected_version);
            atomic_fetch_add(&x->stale, 1);
            continue;
        }
        there = !there;
        TN_WORKER_CHECK(options.expected_version < VERSIONS);
        TN_WORKER_CHECK(atomic_fetch_add(&x->admitted[options.expected_version], 1) == 0 ||
                        !x->serial);
        atomic_fetch_add(&x->done, 1);
    }
    return NULL;
}

static const char *lease_meanwhile(struct versions *x) {
    for (int i = 0; i < TRIES && atomic_load(&x->running) > 0; i++) {
        tn_lease lease = {NULL, 0};

        TN_WORKER_STATUS(tn_manager_acquire(x->m, &x->leased, 1, P, NULL, &lease), TN_OK);
        sched_yield();
        TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
        atomic_fetch_add(&x->leases, 1);
        sched_yield();
    }
    return NULL;
}

static const char *version_worker(int index, void *arg) {
    struct versions *x = arg;
    const char *text;

    if (index == RUNNERS)
        return lease_meanwhile(x);
    text = toggle(x, index);
    atomic_fetch_sub(&x->running, 1);
    return text;
}

static void version_admits_one_plan(void **state) {
    static struct versions x;
    struct spec *f = *state;
    uint64_t before;

    memset(&x, 0, sizeof(x));
    x.m = spec_b_manager(f, NULL, 0);
    x.serial = f->mode == TN_MODE_SERIAL;
    for (int i = 0; i < RUNNERS; i++)
        x.own[i] = adopt_rep(f, x.m, P);
    x.leased = adopt_rep(f, x.m, P);
    ensure(x.m, x.leased, N); /* tracks it */
    before = version(x.m);
    atomic_store(&x.running, RUNNERS);
    assert_null_text(tn_test_workers_run(RUNNERS + 1, version_worker, &x));
    print_message("%u done, %u stale, %u leases\n", x.done, x.stale, x.leases);
    assert_true(x.done > 0);
    assert_int_equal(x.done + x.stale, RUNNERS * TRIES);
    assert_int_equal(version(x.m) - before, x.done + 2 * x.leases);
}

/* ---- Bytes of a plan in flight --------------------------------------------------------------- */

/* A plan whose load takes a while, and what another thread asks for meanwhile. */
struct meeting {
    tn_manager *m;
    tn_handle second;
    struct spec_b_thread other;
    bool sequence;    /* else a direct action */
    bool fails;       /* the load does */
    tn_status status; /* of the other thread's call */
    tn_error error;
    bool waited; /* it had not ended while the plan was in flight */
};

static const char *second_comes(void *arg) {
    struct meeting *x = arg;
    const tn_action action = ENSURE(x->second, C0);

    x->status = x->sequence ? tn_manager_execute_actions(x->m, "second", &action, 1, NULL, NULL)
                            : tn_manager_ensure(x->m, x->second, C0, NULL, NULL);
    x->error = *tn_last_error();
    return NULL;
}

/* D3: it lets the other thread begin, but does not wait for it. */
static tn_status meet(void *context, const tn_load_request *request) {
    struct meeting *x = context;

    (void)request;
    spec_b_start(&x->other, second_comes, x);
    x->waited = !spec_b_wait(&x->other.done, 60);
    return x->fails ? TN_ERR_SOURCE : TN_OK;
}

static void run_meeting(struct spec *f, struct meeting *x, bool sequence, bool fails) {
    tt_source *s = spec_source(f);
    tn_handle first;

    memset(x, 0, sizeof(*x));
    x->sequence = sequence;
    x->fails = fails;
    x->m = spec_b_manager(f, &(tn_budget){C0, 48}, 1);
    first = register_src(x->m, s);
    x->second = adopt_rep(f, x->m, P);
    s->hook = meet;
    s->hook_context = x;
    assert_status(RUN(x->m, ENSURE(first, C0)).status, fails ? TN_ERR_PLAN_EXEC : TN_OK);
    assert_null_text(spec_b_join(&x->other));
    assert_true(x->waited);
}

/* A claim that ends in failure is no reason to refuse (M258). */
static void plan_waits_for_bytes_of_a_plan_in_flight(void **state) {
    struct meeting x;

    for (int sequence = 0; sequence < 2; sequence++) {
        run_meeting(*state, &x, sequence != 0, true);
        assert_status(x.status, TN_OK);
        assert_replicas(x.m, x.second, P, C0);
        assert_peaks(x.m, C0, 32, 32); /* nor has it left a peak */
    }
}

/* Judged again when they are settled, and then refused for what is really there. */
static void plan_that_waited_is_judged_again(void **state) {
    struct meeting x;

    for (int sequence = 0; sequence < 2; sequence++) {
        run_meeting(*state, &x, sequence != 0, false);
        assert_status(x.status, sequence ? TN_ERR_PLAN : TN_ERR_BUDGET);
        assert_int_equal(sequence ? x.error.cause_status : x.error.status, TN_ERR_BUDGET);
        assert_int_equal(x.error.used_bytes, 32);
        assert_int_equal(x.error.claimed_bytes, 0);
        assert_int_equal(x.error.verdict, TN_VERDICT_AFTER_EVICTION);
        assert_int_equal(x.error.missing_bytes, 16);
        assert_replicas(x.m, x.second, P);
    }
}

static const struct CMUnitTest tests[] = {
    SPEC_THREE_WAYS(version_admits_one_plan),
    SPEC_CONCURRENT(plan_waits_for_bytes_of_a_plan_in_flight),
    SPEC_CONCURRENT(plan_that_waited_is_judged_again),
};

TN_TEST_MAIN("spec.plan_admission", tests)
