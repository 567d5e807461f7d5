/* SPDX-License-Identifier: MIT */
/* Field cases: read sections, grace periods, callbacks; a hit takes no lock. */
#include "tn_test.h"

#include "base/atomic.h"
#include "lifetime/lifetime_priv.h"
#include "manager/manager_internal.h"

#include "field_common.h"

static void versions(tn_manager *m, uint64_t *made, uint64_t *freed) {
    tn__lock(&m->store->lock);
    *made = m->store->versions_published;
    *freed = m->store->versions_freed;
    tn__unlock(&m->store->lock);
}

/* ---- F-H03: the reference is taken inside the read section ------------------------------------------- */

struct commits {
    tn_manager *m;
    tn_handle v;
    uint64_t loaded; /* the version that a stopped reader has loaded, or less */
    atomic_bool over;
};

/* Used bytes of one snapshot are the sum of its charges; the version never goes back. */
static const char *walk(struct commits *x, uint64_t *last) {
    tn_location_info rows[2] = {{.size = sizeof(rows[0])}};
    tn_snapshot_info head = {.size = sizeof(head)};
    tn_value_info v = {.size = sizeof(v)};
    uint64_t cursor = 0, sum = 0;
    tn_snapshot *s = NULL;
    size_t count = 2;
    bool more = true;

    TN_WORKER_STATUS(tn_snapshot_take(x->m, &s), TN_OK);
    TN_WORKER_STATUS(tn_snapshot_read(s, &head), TN_OK);
    TN_WORKER_STATUS(tn_snapshot_locations(s, rows, &count), TN_OK);
    for (;;) {
        TN_WORKER_STATUS(tn_snapshot_next(s, &cursor, &v, &more), TN_OK);
        if (!more)
            break;
        sum += v.materialization_count * v.spec.storage_bytes;
    }
    tn_snapshot_drop(s);
    TN_WORKER_CHECK(count <= 2);
    TN_WORKER_CHECK(!head.exact || rows[0].used_bytes + rows[1].used_bytes == sum);
    TN_WORKER_CHECK(!head.exact || head.state_version >= *last);
    *last = head.exact ? head.state_version : *last;
    return NULL;
}

static const char *commit_or_walk(int index, void *arg) {
    struct commits *x = arg;
    const char *text = NULL;
    uint64_t last = 0;
    uint64_t freed;

    while (index > 0 && text == NULL && !atomic_load(&x->over))
        text = walk(x, &last);
    for (int i = 0; i < 2000 && index == 0 && !tn_test_workers_failed(); i++) {
        TN_WORKER_STATUS(tn_manager_ensure(x->m, x->v, P, NULL, NULL), TN_OK);
        TN_WORKER_STATUS(tn_manager_step(x->m, &freed), TN_OK);
        TN_WORKER_STATUS(tn_manager_drop(x->m, x->v, P, NULL), TN_OK);
        TN_WORKER_STATUS(tn_manager_step(x->m, &freed), TN_OK);
    }
    if (index == 0)
        atomic_store(&x->over, true);
    return text;
}

static void f_h03_snapshots_beside_commits(void **state) {
    struct spec *f = *state;
    struct commits x = {.m = MANAGER(f)};
    uint64_t made, freed;

    field_rep(f, x.m, 64, 1);
    x.v = field_src(x.m, spec_source(f), 64);
    assert_null_text(tn_test_workers_run(9, commit_or_walk, &x));
    field_step(x.m);
    versions(x.m, &made, &freed);
    assert_int_equal(freed, made); /* one is alive */
    field_conserved(f, x.m);
}

/* It ends with the version that it loaded, or a newer one. */
static const char *snapshot_and_stop(void *arg) {
    struct commits *x = arg;
    uint64_t last = x->loaded;

    field_stop_here();
    TN_WORKER_STATUS(walk(x, &last) == NULL ? TN_OK : TN_ERR_INTERNAL, TN_OK);
    return NULL;
}

/* The reaper thread is a moment behind. */
static void all_but_one_freed(tn_manager *m) {
    uint64_t made = 1, freed = 0;

    for (int i = 0; i < 5000 && freed != made; i++) {
        field_nap(1);
        versions(m, &made, &freed);
    }
    assert_int_equal(freed, made);
}

static void f_h03_reader_before_its_reference(void **state) {
    struct spec *f = *state;
    tn_config config = spec_config(f);
    struct commits x = {.m = NULL};
    struct field_thread reader;
    uint64_t made, freed, freed_before;

    if (!field_can_stop())
        TN_SKIP("threads can be stopped only in builds with TN_CHECKS");
    config.reaper = TN_REAPER_THREAD;
    x.m = spec_manager_with(f, &config);
    x.v = field_rep(f, x.m, 64, 1);
    all_but_one_freed(x.m);
    x.loaded = version(x.m);
    versions(x.m, &made, &freed_before);
    field_stop_begin(1u << TN__POINT_PIN_VERSION);
    field_start(&reader, snapshot_and_stop, &x);
    field_stop_wait(1);
    ensure(x.m, x.v, N);
    drop(x.m, x.v, N);
    field_nap(50); /* the reaper would have freed them */
    versions(x.m, &made, &freed);
    assert_int_equal(freed, freed_before);
    field_stop_end(); /* it may look again */
    field_stop_go();
    field_join(&reader);
    all_but_one_freed(x.m);
    field_conserved(f, x.m);
}

/* ---- F-H04: a source callback is inside no read section ------------------------------------------------ */

struct callback {
    tn_manager *m, *other;
    tn_handle a, b, of_the_other;
    bool serial;
    tn_status refused[3];
    tn_status elsewhere;
    const char *text;
};

static const char *work_beside_the_callback(void *arg) {
    struct callback *x = arg;
    uint64_t made = 1, freed = 0, n;

    if (x->serial) {
        TN_WORKER_STATUS(tn_manager_ensure(x->m, x->b, P, NULL, NULL), TN_ERR_REENTRANCY);
        return NULL;
    }
    for (int i = 0; i < 100; i++) {
        TN_WORKER_STATUS(tn_manager_ensure(x->m, x->b, P, NULL, NULL), TN_OK);
        TN_WORKER_STATUS(tn_manager_drop(x->m, x->b, P, NULL), TN_OK);
    }
    for (int i = 0; i < 10000 && freed != made; i++) {
        TN_WORKER_STATUS(tn_manager_step(x->m, &n), TN_OK);
        versions(x->m, &made, &freed);
    }
    TN_WORKER_CHECK(freed == made);
    return NULL;
}

static void *callback_thread(void *arg) { return (void *)work_beside_the_callback(arg); }

static tn_status load_with_calls(void *context, const tn_load_request *request) {
    struct callback *x = context;
    void *text = NULL;
    pthread_t thread;
    tn_lease lease;

    (void)request;
    x->refused[0] = tn_manager_ensure(x->m, x->b, P, NULL, NULL);
    x->refused[1] = tn_manager_acquire(x->m, &x->b, 1, P, NULL, &lease);
    x->refused[2] = tn_manager_discard(x->m, x->b, NULL);
    x->elsewhere = tn_manager_ensure(x->other, x->of_the_other, P, NULL, NULL);
    if (pthread_create(&thread, NULL, callback_thread, x) != 0)
        return TN_ERR_SYSTEM;
    pthread_join(thread, &text);
    x->text = text;
    return TN_OK;
}

static void f_h04_callback_is_inside_no_read_section(void **state) {
    struct spec *f = *state;
    struct callback x = {.m = MANAGER(f), .other = MANAGER(f)};
    tt_source *s = spec_source(f);
    uint64_t before;

    x.serial = f->mode == TN_MODE_SERIAL;
    s->hook = load_with_calls;
    s->hook_context = &x;
    x.a = field_src(x.m, s, 64);
    x.b = field_src(x.m, spec_source(f), 64);
    x.of_the_other = field_src(x.other, spec_source(f), 64);
    before = version(x.m);
    ensure(x.m, x.a, P);
    assert_null_text(x.text);
    for (int i = 0; i < 3; i++)
        assert_status(x.refused[i], TN_ERR_REENTRANCY);
    assert_status(x.elsewhere, TN_OK);
    assert_int_equal(version(x.m), before + (x.serial ? 1 : 201));
    field_conserved(f, x.m);
}

/* ---- F-H09: a hit takes no lock ------------------------------------------------------------------- */

struct hits {
    tn_manager *m;
    tn_sim *sim;
    tn_handle v;
    tn_stream stream;
};

static const char *lease_at(struct hits *x, tn_location at, tn_stream stream, int times) {
    for (int i = 0; i < times; i++) {
        const void *data = NULL;
        tn_lease lease;

        TN_WORKER_STATUS(tn_manager_acquire(x->m, &x->v, 1, at, stream, &lease), TN_OK);
        TN_WORKER_STATUS(tn_lease_lookup(&lease, x->v, &data), TN_OK);
        TN_WORKER_CHECK(data != NULL);
        TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
    }
    return NULL;
}

static const char *hold_and_reserve(struct hits *x, int times) {
    for (int i = 0; i < times; i++) {
        tn_reservation r;
        tn_hold held;

        TN_WORKER_STATUS(tn_manager_hold(x->m, &x->v, 1, P, &held), TN_OK);
        TN_WORKER_STATUS(tn_hold_release(&held), TN_OK);
        TN_WORKER_STATUS(tn_manager_reserve(x->m, P, 64, "workspace", &r), TN_OK);
        TN_WORKER_STATUS(tn_reservation_release(&r), TN_OK);
    }
    return NULL;
}

static const char *all_hits(struct hits *x, int times) {
    const char *text = lease_at(x, P, NULL, times);

    if (text == NULL)
        text = lease_at(x, C0, x->stream, times);
    return text != NULL ? text : hold_and_reserve(x, times);
}

/* Until the reaper thread has completed all leases of everybody. */
static const char *nothing_pending(struct hits *x) {
    tn_snapshot_info head = {.size = sizeof(head), .pending_lease_count = 1};

    while (head.pending_lease_count > 0) {
        tn_snapshot *s = NULL;

        TN_WORKER_STATUS(tn_snapshot_take(x->m, &s), TN_OK);
        TN_WORKER_STATUS(tn_snapshot_read(s, &head), TN_OK);
        tn_snapshot_drop(s);
    }
    return NULL;
}

/* Each call of the simulated driver takes the machine's lock once, and reading the counter, too.
 * Warm is who has as many records and events as the leases that may be pending at once: another
 * block of 32 records comes from a pool with a lock. */
static const char *hits_of_one_thread(int index, void *arg) {
    struct hits *x = arg;
    const char *text;
    uint64_t calls, locks;

    (void)index;
    TN_WORKER_STATUS(tn_sim_queue_delay(x->sim, x->stream, MS), TN_OK);
    text = all_hits(x, 1000); /* all of them pending at the end */
    TN_WORKER_STATUS(tn_sim_run(x->sim), TN_OK);
    if (text == NULL)
        text = nothing_pending(x);
    if (text != NULL)
        return text;
    calls = tn_sim_thread_calls(x->sim, TN_SIM_ANY);
    locks = tn__lock_count();
    text = all_hits(x, 1000);
    locks = tn__lock_count() - locks;
    calls = tn_sim_thread_calls(x->sim, TN_SIM_ANY) - calls;
    if (text == NULL && locks != calls)
        return tn_test_text("%llu locks in %llu driver calls", (unsigned long long)locks,
                            (unsigned long long)calls);
    return text;
}

static struct hits hits_begin(struct spec *f) {
    const tn_budget budget = {P, 1 << 20};
    tn_config config = spec_config(f);
    struct hits x = {.sim = f->sim};

    config.reaper = TN_REAPER_THREAD;
    config.budgets = &budget;
    config.budget_count = 1;
    x.m = spec_manager_with(f, &config);
    x.v = field_rep_at(f, x.m, C0, 64, 1);
    x.stream = spec_stream(f, 0);
    return x;
}

static void f_h09_hit_takes_no_lock(void **state) {
    struct spec *f = *state;
    struct hits x = hits_begin(f);

    if (!field_can_stop())
        TN_SKIP("locks are counted only in builds with TN_CHECKS");
    for (int i = 0; i < 4; i++)
        assert_null_text(tn_test_workers_run(1, hits_of_one_thread, &x));
    assert_null_text(nothing_pending(&x));
    field_conserved(f, x.m);
}

static const char *stop_in_admit(void *arg) {
    struct hits *x = arg;

    field_stop_here();
    TN_WORKER_STATUS(tn_manager_ensure(x->m, x->v, N, NULL, NULL), TN_OK);
    return NULL;
}

static const char *thousand_pairs(int index, void *arg) {
    (void)index;
    return lease_at(arg, P, NULL, 1000);
}

static void f_h09_hit_beside_a_writer_in_admit(void **state) {
    struct spec *f = *state;
    struct hits x = hits_begin(f);
    struct field_thread writer;

    if (!field_can_stop())
        TN_SKIP("threads can be stopped only in builds with TN_CHECKS");
    field_stop_begin(1u << TN__POINT_ADMIT);
    field_start(&writer, stop_in_admit, &x);
    field_stop_wait(1); /* it holds the writer lock */
    assert_null_text(tn_test_workers_run(8, thousand_pairs, &x));
    assert_false(atomic_load(&writer.done));
    field_stop_end();
    field_stop_go();
    field_join(&writer);
    field_conserved(f, x.m);
}

static const struct CMUnitTest tests[] = {
    FIELD_CONCURRENT(f_h03_snapshots_beside_commits),
    FIELD_BOTH(f_h03_reader_before_its_reference),
    FIELD_BOTH(f_h04_callback_is_inside_no_read_section),
    FIELD_BOTH(f_h09_hit_takes_no_lock),
    FIELD_BOTH(f_h09_hit_beside_a_writer_in_admit),
};

TN_TEST_MAIN("field.grace", tests)
