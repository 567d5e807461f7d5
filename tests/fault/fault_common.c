/* SPDX-License-Identifier: MIT */
/* The failure loop; see fault_common.h. */
#include "fault_common.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/rcu.h"
#include "lifetime/lifetime_priv.h"
#include "manager/manager_internal.h"
#include "transition/transition_priv.h"

/* One failure to be injected. */
typedef struct injection {
    enum { NOTHING, ALLOC, DRIVER, DEAD, FENCE } kind; /* DEAD: every call from the n-th on */
    uint32_t entry;                                    /* DRIVER */
    uint64_t nth;
} injection;

/* ---- The pool of record blocks: emptied, so that the first record allocates its block ---- */

/* Blocks stay in a process-wide pool when a manager ends; take them out and free them. Returns how
 * many there were. */
static uint64_t drain_blocks(void) {
    uint64_t count = 0;
    for (;; count++) {
        uint64_t before = tn__alloc_live();
        tn__block *block = tn__block_obtain();
        bool pooled = tn__alloc_live() == before;
        tn__free(block);
        if (!pooled)
            return count;
    }
}

/* ---- Injection ---- */

static tn_status status_of(uint32_t entry) {
    switch (entry) {
    case TN_SIM_DEVICE_ALLOC:
        return TN_ERR_DEVICE_MEMORY;
    case TN_SIM_PINNED_ALLOC:
        return TN_ERR_UNSUPPORTED;
    default:
        return TN_ERR_DRIVER;
    }
}

static void arm(fault *x, const injection *what) {
    if (what->kind == ALLOC)
        tn__fault_alloc(what->nth);
    else if (what->kind == DRIVER)
        spec_fault(x->f, what->entry, what->nth, 1, status_of(what->entry), FAULT_CODE);
    else if (what->kind == DEAD)
        spec_fault(x->f, TN_SIM_ANY, what->nth, 0, TN_ERR_DRIVER, FAULT_CODE);
    else if (what->kind == FENCE)
        tn__fault_fence(what->nth);
}

static bool disarm(fault *x, const injection *what) {
    bool fired = what->kind == ALLOC && tn__fault_alloc_fired();
    tn__fault_alloc(0);
    tn__fault_fence(0);
    return spec_repair(x->f) > 0 || fired || what->kind == FENCE;
}

typedef struct called {
    const fault_case *what;
    fault *x;
    tn_status status;
    tn_error error;
} called;

static const char *call_it(int index, void *arg) {
    called *c = arg;
    (void)index;
    c->status = c->what->call(c->x);
    c->error = *tn_last_error();
    return NULL;
}

static tn_status run_call(const fault_case *what, fault *x) {
    called c = {.what = what, .x = x};
    if (what->flags & FAULT_ON_THREAD)
        assert_null_text(tn_test_workers_run(1, call_it, &c));
    else
        call_it(0, &c);
    x->error = c.error;
    if (c.status != TN_OK) {
        assert_int_equal(c.error.status, c.status);
        assert_true(c.error.message[0] != '\0');
    }
    x->succeeded = c.status == TN_OK;
    return c.status;
}

/* ---- What must hold at any time while nothing is in progress ---- */

static void expect_ledgers(tn_manager *m) {
    const tn_version *v = tn__store_pin(m->store);
    tn_snapshot *s = NULL;
    tn_location_info rows[8] = {{.size = sizeof rows[0]}};
    size_t count = 8;
    assert_ok(tn_snapshot_take(m, &s));
    assert_ok(tn_snapshot_locations(s, rows, &count));
    assert_true(count <= 8);
    for (uint32_t i = 0; i < TN__LEDGER_COUNT; i++) {
        uint64_t total, claimed, sum = 0;
        for (size_t k = 0; k < count; k++)
            if (tn__store_ledger(m->store, rows[k].at) == &m->store->ledgers[i])
                sum += rows[k].used_bytes + rows[k].reserved_bytes;
        tn__ledger_read(&m->store->ledgers[i], &total, &claimed);
        assert_int_equal(total, sum);
        assert_int_equal(claimed, 0);
    }
    tn_snapshot_drop(s);
    tn__store_unpin(m->store, v);
}

/* No plan, alive or failed, has left its mark on a materialization. */
static void expect_live(tn_manager *m) {
    const tn_version *v = tn__store_pin(m->store);
    for (const tn__value *value = tn__version_next(v, 0); value;
         value = tn__version_next(v, value->index + 1))
        for (uint32_t i = 0; i < value->mat_count; i++)
            assert_int_equal(tn__load_acq(&value->mats[i]->state), TN__MAT_LIVE);
    tn__store_unpin(m->store, v);
}

static void expect_quiet(tn_manager *m) {
    assert_null(m->trans->flow.waiting);
    assert_null(m->trans->flow.in_flight);
    uintptr_t word = tn__load_acq(&m->life->gate->word);
    assert_true(word == TN__MANAGER_OPEN || word == TN__MANAGER_CLOSED);
    if (word != TN__MANAGER_OPEN)
        return;
    expect_ledgers(m);
    expect_live(m);
}

/* ---- One run ---- */

typedef struct before {
    char *text;
    uint64_t payloads, device_blocks, pinned_blocks;
    size_t reports;
} before;

static uint64_t blocks(fault *x, tn_location at) {
    tn_sim_memory memory = {.size = sizeof memory};
    assert_ok(tn_sim_read_memory(x->f->sim, at, &memory));
    return memory.live_blocks;
}

/* Without what the pool keeps, and without rings. */
static uint64_t pinned_blocks(fault *x) {
    tn_pinned_figures pinned = TN_PINNED_FIGURES_INIT;
    assert_ok(tn_driver_read_pinned(x->f->driver, &pinned));
    return pinned.live_blocks;
}

static before look(const fault_case *what, fault *x) {
    before b = {.text = NULL,
                .payloads = tt_count().live,
                .device_blocks = blocks(x, C0) + blocks(x, C1),
                .pinned_blocks = pinned_blocks(x)};
    if (what->flags & FAULT_NO_MANAGER)
        return b;
    b.text = spec_describe(x->m, what->flags & FAULT_PEAKS ? SPEC_NO_PEAKS : 0);
    b.reports = trace_count(x->m);
    return b;
}

/* What fails is, or may be, the giving back of storage, which is then the driver's loss. */
static bool gives_back(const injection *in) {
    if (in->kind != DRIVER)
        return in->kind == DEAD;
    return in->entry == TN_SIM_DEVICE_FREE || in->entry == TN_SIM_PINNED_FREE ||
           in->entry == TN_SIM_STREAM_DESTROY || in->entry == TN_SIM_EVENT_DESTROY;
}

/* A plan that is committed in part: its state is for `failed` to judge. */
static bool half_way(const fault_case *what, tn_status status) {
    if ((what->flags & FAULT_COMMITS) == FAULT_COMMITS)
        return true;
    return (what->flags & FAULT_PREFIX) == FAULT_PREFIX && status == TN_ERR_PLAN_EXEC;
}

static void expect_as_before(const fault_case *what, fault *x, const injection *in, before *b,
                             tn_status status) {
    if (what->failed)
        what->failed(x, status);
    if (half_way(what, status)) {
        expect_quiet(x->m);
        return;
    }
    assert_int_equal(tt_count().live, b->payloads);
    if (!gives_back(in)) {
        assert_int_equal(blocks(x, C0) + blocks(x, C1), b->device_blocks);
        assert_int_equal(pinned_blocks(x), b->pinned_blocks);
    }
    if (what->flags & FAULT_NO_MANAGER)
        return;
    expect_quiet(x->m);
    if (!(what->flags & FAULT_PLAN))
        assert_int_equal(trace_count(x->m), b->reports);
    if (!(what->flags & FAULT_STATE)) {
        char *now = spec_describe(x->m, what->flags & FAULT_PEAKS ? SPEC_NO_PEAKS : 0);
        assert_string_equal(now, b->text);
        free(now);
    }
}

static void expect_status(const fault_case *what, const fault *x, const injection *in,
                          tn_status status) {
    if ((what->flags & FAULT_PLAN) && status == TN_ERR_PLAN_EXEC)
        status = (tn_status)x->error.cause_status;
    if (in->kind == ALLOC)
        assert_status(status, TN_ERR_HOST_MEMORY);
    else if (in->kind == FENCE)
        assert_status(status, TN_ERR_SYSTEM);
    else if (in->kind == DEAD)
        assert_true(status == TN_ERR_DRIVER || status == TN_ERR_PAYLOAD);
    else if (in->entry == TN_SIM_DEVICE_ALLOC)
        assert_status(status, TN_ERR_DEVICE_MEMORY);
    else if (in->entry == TN_SIM_PINNED_ALLOC || in->entry == TN_SIM_POINTER_LOCATION)
        assert_status(status, TN_ERR_PAYLOAD); /* M31 */
    else
        assert_status(status, TN_ERR_DRIVER);
    if (in->kind == DRIVER || in->kind == DEAD)
        assert_int_equal(x->error.native_code, FAULT_CODE);
}

static bool may_succeed(const fault_case *what, const injection *in) {
    if (in->kind == ALLOC)
        return what->flags & FAULT_ALLOC_OK;
    if (in->kind == DEAD)
        return true;
    bool pins = in->entry == TN_SIM_PINNED_ALLOC || in->entry == TN_SIM_POINTER_LOCATION;
    if (in->kind == DRIVER && pins && what->flags & FAULT_RING)
        return true;        /* a ring of pageable memory */
    if (in->kind == DRIVER) /* readings and frees are never a reason to fail */
        return what->flags & FAULT_DRIVER_OK || in->entry == TN_SIM_DEVICE_MEMORY || gives_back(in);
    return false;
}

static void finish(const fault_case *what, fault *x) {
    if (!(what->flags & FAULT_NO_MANAGER))
        expect_quiet(x->m);
    if (what->check)
        what->check(x);
    if (x->m && !(what->flags & FAULT_NO_MANAGER))
        expect_quiet(x->m);
}

/* False: the failure did not strike, and the call succeeded. */
static bool run(const fault_case *what, fault *x, const injection *in) {
    what->prepare(x);
    before b = look(what, x);
    arm(x, in);
    tn_status status = run_call(what, x);
    bool fired = disarm(x, in);
    if (gives_back(in))
        x->f->lenient = true;
    if (fired && !(status == TN_OK && may_succeed(what, in))) {
        expect_status(what, x, in, status);
        expect_as_before(what, x, in, &b, status);
        assert_ok(run_call(what, x));
    } else if (status != TN_OK) {
        print_error("%s fails by itself: %s\n", what->name, x->error.message);
        assert_ok(status);
    }
    finish(what, x);
    free(b.text);
    return fired;
}

/* A world of its own for each run; true: go on with the next number. */
static bool once(void **state, const fault_case *what, injection in) {
    fault x = {.h = {0, 0, NULL}};
    void *fixture = NULL;
    uint64_t live = tn__alloc_live();
    int ready = (uintptr_t)*state == TN_MODE_SERIAL ? spec_setup_serial(&fixture)
                                                    : spec_setup_concurrent(&fixture);
    assert_int_equal(ready, 0);
    x.f = fixture;
    x.report = (tn_report){.size = sizeof x.report};
    bool fired = run(what, &x, &in);
    bool lenient = x.f->lenient; /* the driver did not take all storage back */
    assert_int_equal(spec_teardown(&fixture), 0);
    uint64_t left = tn__alloc_live();
    left -= drain_blocks();
    if (!lenient)
        assert_int_equal(left, live);
    return fired;
}

static uint64_t each_nth(void **state, const fault_case *what, injection in) {
    for (in.nth = 1;; in.nth++)
        if (!once(state, what, in))
            return in.nth - 1;
}

void fault_loop(void **state, const fault_case *what) {
    uint64_t allocs, calls = 0;
    drain_blocks();
    once(state, what, (injection){NOTHING, 0, 0});
    allocs = each_nth(state, what, (injection){.kind = ALLOC});
    for (uint32_t entry = TN_SIM_ANY + 1; entry < TN_SIM_ENTRY_COUNT; entry++)
        calls += each_nth(state, what, (injection){.kind = DRIVER, .entry = entry});
    assert_int_equal(each_nth(state, what, (injection){.kind = DEAD}), calls);
    if (what->flags & FAULT_FENCE)
        once(state, what, (injection){FENCE, 0, 1});
    print_message("%s: %" PRIu64 " allocations, %" PRIu64 " driver calls%s failed in turn\n",
                  what->name, allocs, calls, what->flags & FAULT_FENCE ? ", the fence" : "");
    assert_true(allocs >= what->least_allocs);
    assert_true(calls >= what->least_calls);
    if (what->flags & FAULT_NO_ALLOC)
        assert_int_equal(allocs, 0);
}

/* ---- What cases share ---- */

void fault_manager(fault *x) { x->m = spec_manager(x->f, NULL, 0); }

void fault_manager_with_budgets(fault *x) {
    x->m = MANAGER(x->f, {P, 4096}, {N, 4096}, {C0, 4096}, {C1, 4096});
}

void fault_value(fault *x, tn_location at, tn_location also) {
    x->h = adopt_rep(x->f, x->m, at);
    if (also.kind != TN_LOCATION_NONE)
        (void)ensure(x->m, x->h, also);
}

void fault_source(fault *x, tn_location at) {
    x->h = spec_register(x->m, spec_source(x->f), at, TN_REPLICABLE);
}

void fault_file(fault *x, tn_location at) {
    static char path[4096];
    tn_value_spec spec = TN_VALUE_SPEC_INIT;
    tn_source source = TN_SOURCE_INIT;
    snprintf(path, sizeof path, "%s/content", tn_test_tmpdir());
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    for (int i = 0; i < 2048; i++)
        assert_int_not_equal(fputc(i & 0xff, file), EOF);
    assert_int_equal(fclose(file), 0);
    spec.type = tn_buffer_type();
    spec.logical_bytes = spec.storage_bytes = 2048;
    spec.replica_mode = TN_REPLICABLE;
    spec.recoverability = TN_RECONSTRUCTIBLE;
    source.kind = TN_SOURCE_FILE;
    source.path = path;
    assert_ok(tn_manager_register_source(x->m, &spec, &source, at, &x->h));
}

void fault_remember(fault *x) {
    const tn_version *v = tn__store_pin(x->m->store);
    for (const tn__value *value = tn__version_next(v, 0); value;
         value = tn__version_next(v, value->index + 1))
        for (uint32_t i = 0; i < value->mat_count; i++) {
            assert_true(x->kept_count < sizeof x->kept / sizeof x->kept[0]);
            x->kept[x->kept_count++] = value->mats[i]->payload;
        }
    tn__store_unpin(x->m->store, v);
}

void fault_free_kept(fault *x) {
    uint64_t kept = tt_count().live - x->f->live;
    if (kept == 0)
        return;
    assert_int_equal(kept, x->kept_count);
    for (size_t i = 0; i < x->kept_count; i++)
        tt_free(x->kept[i]);
}
