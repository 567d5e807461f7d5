/* SPDX-License-Identifier: MIT */
/* Field cases of pinned memory: F-E01, F-E02, F-E09, F-D25, F-C17. */
#include "memory_util.h"

#define BYTES 65536u

/* ---- F-E01 No pinning on the hot path ---- */

static void f_e01_no_pinning_on_the_hot_path(void **state) {
    enum { VALUES = 16 };
    struct spec *f = *state;
    uint64_t rounds = field_number(2000, 10000);
    tn_manager *m = MANAGER(f, {N, VALUES * BYTES});
    tn_handle h[VALUES];

    hm_slow_pins(f, 200 * MS, 0);
    for (uint64_t i = 0; i < VALUES; i++) {
        h[i] = hm_adopt(f, m, BYTES, i);
        ensure(m, h[i], N);
    }
    for (int i = 0; i < VALUES; i++)
        drop(m, h[i], N);
    uint64_t pins = tn_sim_calls(f->sim, TN_SIM_PINNED_ALLOC);
    uint64_t calls = tn_sim_calls(f->sim, TN_SIM_ANY);
    uint64_t now = hm_now(f);
    assert_int_equal(now, pins * 200 * MS); /* the warm-up paid for each */
    uint64_t before = version(m);
    for (uint64_t i = 0; i < rounds; i++) {
        ensure(m, h[i % VALUES], N);
        if (!hm_holds(m, h[i % VALUES], N, i % VALUES))
            fail_msg("round %d: wrong contents", (int)i);
        before += 2; /* the lease */
        drop(m, h[i % VALUES], N);
    }
    assert_int_equal(version(m) - before, 2 * rounds);
    assert_int_equal(tn_sim_calls(f->sim, TN_SIM_PINNED_ALLOC), pins);
    assert_int_equal(tn_sim_calls(f->sim, TN_SIM_ANY), calls); /* nor any other driver call */
    assert_int_equal(hm_now(f), now);
    if (field_soak())
        print_message("    %llu rounds, %llu pins\n", (unsigned long long)rounds,
                      (unsigned long long)pins);
    field_conserved(f, m);
}

/* ---- F-E02 Unpinning waits for the device, so it is not done in passing ---- */

static void f_e02_unpinning_is_not_done_in_passing(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_stream s = spec_stream(f, 0);
    tn_handle h = hm_adopt(f, m, BYTES, 1);
    uint64_t bytes = 0, before;

    assert_ok(tn_sim_queue_delay(f->sim, s, 50 * MS));
    for (int i = 0; i < 100; i++) {
        ensure(m, h, N);
        drop(m, h, N);
    }
    assert_int_equal(hm_now(f), 0);
    assert_int_equal(tn_sim_calls(f->sim, TN_SIM_PINNED_FREE), 0);
    spec_finish(f);
    assert_int_equal(hm_now(f), 50 * MS);
    before = version(m);
    assert_ok(tn_driver_trim_pinned(f->driver, &bytes));
    assert_int_equal(bytes, BYTES);
    assert_int_equal(hm_memory(f, N).live_bytes, 0);
    assert_int_equal(version(m), before);
    uint64_t pins = tn_sim_calls(f->sim, TN_SIM_PINNED_ALLOC);
    ensure(m, h, N);
    assert_int_equal(tn_sim_calls(f->sim, TN_SIM_PINNED_ALLOC), pins + 1);
    field_conserved(f, m);
    /* Not before the payload is released, and nothing is kept after the last manager. */
    tn_lease lease = acquire(m, h, N, NULL);
    assert_status(tn_manager_close(m, 0), TN_ERR_IN_USE);
    assert_int_equal(hm_memory(f, N).live_bytes, BYTES);
    release(&lease);
    assert_ok(tn_manager_close(m, 0));
    spec_destroy(f, m);
    assert_int_equal(hm_memory(f, N).frees, hm_memory(f, N).allocations);
}

/* One driver serves several managers: only the last one gives back what is idle. */
static void f_e02_idle_memory_outlives_all_managers_but_the_last(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f), *other = MANAGER(f);
    tn_handle h = hm_adopt(f, m, BYTES, 1);

    ensure(m, h, N);
    spec_destroy(f, m);
    assert_int_equal(hm_pinned(f).idle_bytes, BYTES);
    assert_int_equal(tn_sim_calls(f->sim, TN_SIM_PINNED_FREE), 0);
    spec_destroy(f, other);
    assert_int_equal(hm_memory(f, N).live_bytes, 0);
}

/* ---- F-E09 An early way out does not forget what was just evicted ---- */

/* Single actions in the order of the scope: three drops, then the ensure whose load fails. */
static void f_e09_evicted_memory_is_kept_for_the_next(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {N, 3 * BYTES});
    tt_source *source = spec_source(f);
    tn_handle v[3], w;

    source->fail_from = 1;
    for (uint64_t i = 0; i < 3; i++) {
        v[i] = hm_adopt(f, m, BYTES, i);
        ensure(m, v[i], N);
    }
    w = hm_source(m, source, 3 * BYTES, P);
    uint64_t pinned = hm_memory(f, N).live_bytes;
    uint64_t destroyed = tt_count().destroyed;
    for (int i = 0; i < 3; i++)
        drop(m, v[i], N);
    assert_status(tn_manager_ensure(m, w, N, NULL, NULL), TN_ERR_SOURCE);
    assert_int_equal(tt_count().destroyed - destroyed, 3);
    assert_int_equal(used(m, N), 0);
    assert_int_equal(hm_pinned(f).live_bytes, 0);
    assert_int_equal(hm_pinned(f).idle_bytes, pinned);
    field_conserved(f, m);
    ensure(m, w, N);
    assert_true(hm_holds(m, w, N, source->seed));
    field_conserved(f, m);
    spec_destroy(f, m);
    assert_int_equal(hm_memory(f, N).frees, hm_memory(f, N).allocations);
}

/* The driver has no more than the budget: what was evicted makes room, whatever its size. */
static void f_e09_evicted_memory_of_another_size_makes_room(void **state) {
    struct spec *f = *state;
    spec_machine(f, "dev:1 pinned=192KiB");
    tn_manager *m = MANAGER(f, {N, 3 * BYTES});
    tt_source *source = spec_source(f);
    tn_handle v[3], w = hm_source(m, source, 3 * BYTES, P);

    for (uint64_t i = 0; i < 3; i++) {
        v[i] = hm_adopt(f, m, BYTES, i);
        ensure(m, v[i], N);
    }
    for (int i = 0; i < 3; i++)
        drop(m, v[i], N);
    ensure(m, w, N);
    assert_int_equal(hm_pinned(f).idle_bytes, 0);
    drop(m, w, N);
    ensure(m, v[1], N);
    assert_true(hm_holds(m, v[1], N, 1));
    field_conserved(f, m);
}

/* ---- F-D25 The pinned tier runs out under sixteen threads ---- */

struct crowd {
    struct spec *f;
    tn_manager *m;
    tn_handle h[16];
    uint64_t budget;
    atomic_int granted;
    atomic_bool had[16];
};

static const char *ask(int index, void *arg) {
    struct crowd *c = arg;

    if (atomic_load(&c->had[index]))
        return NULL;
    tn_status status = tn_manager_ensure(c->m, c->h[index], N, NULL, NULL);
    if (status == TN_OK) {
        atomic_fetch_add(&c->granted, 1);
        atomic_store(&c->had[index], true);
        return NULL;
    }
    const tn_error *e = tn_last_error();
    TN_WORKER_STATUS(status, TN_ERR_BUDGET);
    TN_WORKER_CHECK(tn_location_equal(e->at, N));
    TN_WORKER_CHECK(e->budget_bytes == c->budget && e->requested_bytes == BYTES);
    TN_WORKER_CHECK(e->used_bytes + e->claimed_bytes == c->budget && e->reserved_bytes == 0);
    return NULL;
}

static void f_d25_the_pinned_tier_runs_out_under_sixteen_threads(void **state) {
    struct spec *f = *state;
    struct crowd c = {.f = f, .m = MANAGER(f, {N, 8 * BYTES}), .budget = 8 * BYTES};

    for (uint64_t i = 0; i < 16; i++)
        c.h[i] = hm_adopt(f, c.m, BYTES, i);
    assert_null_text(tn_test_workers_run(16, ask, &c));
    assert_int_equal(c.granted, 8);
    assert_int_equal(used(c.m, N), 8 * BYTES);
    assert_status(tn_manager_reserve(c.m, N, BYTES, "more", &(tn_reservation){0}), TN_ERR_BUDGET);
    assert_budget_error(N, 8 * BYTES, 8 * BYTES, 0, BYTES);
    for (int i = 0; i < 16; i++)
        if (c.had[i])
            drop(c.m, c.h[i], N);
    assert_null_text(tn_test_workers_run(16, ask, &c));
    assert_int_equal(c.granted, 16);
    for (uint64_t i = 0; i < 16; i++)
        if (resident(c.m, c.h[i], N))
            assert_true(hm_holds(c.m, c.h[i], N, i));
    assert_int_equal(hm_pinned(f).live_bytes, 8 * BYTES);
    field_conserved(f, c.m);
}

/* The driver refuses: an error of the thread that asked, and of nobody else. */
static const char *refused_or_not(int index, void *arg) {
    struct crowd *c = arg;

    if (index == 0) {
        TN_WORKER_STATUS(tn_manager_ensure(c->m, c->h[0], N, NULL, NULL), TN_ERR_PAYLOAD);
        TN_WORKER_CHECK(tn_last_error()->native_code == 2);
        return NULL;
    }
    for (int i = 0; i < 50; i++) {
        tn_lease lease;
        TN_WORKER_STATUS(tn_manager_acquire(c->m, &c->h[index], 1, P, NULL, &lease), TN_OK);
        TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
        TN_WORKER_STATUS(tn_manager_ensure(c->m, c->h[index], C0, NULL, NULL), TN_OK);
        TN_WORKER_STATUS(tn_manager_drop(c->m, c->h[index], C0, NULL), TN_OK);
    }
    return NULL;
}

static void f_d25_a_refusal_of_the_driver_concerns_one_thread(void **state) {
    struct spec *f = *state;
    struct crowd c = {.f = f, .m = MANAGER(f)};

    c.h[0] = hm_adopt(f, c.m, 16 << 20, 0);
    for (uint64_t i = 1; i < 8; i++)
        c.h[i] = hm_adopt(f, c.m, BYTES, i);
    spec_fault(f, TN_SIM_PINNED_ALLOC, 1, 0, TN_ERR_HOST_MEMORY, 2);
    assert_null_text(tn_test_workers_run(8, refused_or_not, &c));
    assert_locations(c.m, P, C0); /* N is not tracked */
    uint64_t before = version(c.m);
    assert_status(tn_manager_ensure(c.m, c.h[0], N, NULL, NULL), TN_ERR_PAYLOAD);
    assert_int_equal(version(c.m), before);
    spec_repair(f);
    ensure(c.m, c.h[0], N);
    field_conserved(f, c.m);
}

/* ---- F-C17 A kernel reads pinned memory directly ---- */

static void f_c17_a_kernel_reads_pinned_memory_directly(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_stream s = spec_stream(f, 0);
    tn_handle v = hm_adopt(f, m, BYTES, 7), w = hm_adopt(f, m, BYTES, 8);
    tn_lease lease;

    ensure(m, v, N);
    assert_status(tn_manager_acquire(m, &v, 1, N, s, &lease), TN_ERR_VALUE);
    const unsigned char *block = hm_base(m, v, N);
    lease = acquire(m, v, N, NULL);
    assert_ok(tn_sim_queue_read(f->sim, s, block, BYTES, 20 * MS));
    assert_ok(tn_sim_advance(f->sim, 1 * MS));
    assert_in_use(tn_manager_drop(m, v, N, NULL), 1, 0, 0);
    assert_ok(tn_sim_advance(f->sim, 18 * MS));
    assert_in_use(tn_manager_drop(m, v, N, NULL), 1, 0, 0);
    assert_true(hm_holds(m, v, N, 7)); /* nobody wrote there meanwhile */
    assert_ok(tn_sim_advance(f->sim, 1 * MS));
    assert_true(spec_idle(f, s));
    assert_rises(m, 2, {
        release(&lease);
        drop(m, v, N);
    });
    ensure(m, w, N);
    assert_ptr_equal(hm_base(m, w, N), block); /* the same bytes, now */
    assert_true(hm_holds(m, w, N, 8));
    field_conserved(f, m);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(f_e01_no_pinning_on_the_hot_path),
    SPEC_BOTH(f_e02_unpinning_is_not_done_in_passing),
    SPEC_SERIAL(f_e02_idle_memory_outlives_all_managers_but_the_last),
    SPEC_BOTH(f_e09_evicted_memory_is_kept_for_the_next),
    SPEC_SERIAL(f_e09_evicted_memory_of_another_size_makes_room),
    SPEC_BOTH(f_d25_the_pinned_tier_runs_out_under_sixteen_threads),
    SPEC_CONCURRENT(f_d25_a_refusal_of_the_driver_concerns_one_thread),
    SPEC_BOTH(f_c17_a_kernel_reads_pinned_memory_directly),
};

TN_TEST_MAIN("field.pinned", tests)
