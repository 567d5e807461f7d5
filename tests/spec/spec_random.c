/* SPDX-License-Identifier: MIT */
/*
 * Random operations with random failures; after each one everything that must hold in every state
 * is checked (M51, M44, M254, M232; case MC33). There is no model here: what each operation should
 * do is the other cases' business.
 */
#include "spec_b_common.h"

#include "base/base_internal.h"

#include <stdio.h>

enum {
    SEQUENCES = 200,
    STEPS = 150,
    VALUES = 24,
    LEASES = 6,
    HOLDS = 4,
    RESERVATIONS = 4,
    SOURCES = 8,
    STREAMS = 4 /* two on each device */
};

struct machine {
    struct spec *f;
    tn_manager *m;
    uint64_t random;
    tn_handle values[VALUES];
    size_t value_count;
    tt_source *sources[SOURCES];
    tn_lease leases[LEASES];
    tn_hold holds[HOLDS];
    tn_reservation reservations[RESERVATIONS];
    tn_stream streams[STREAMS];
    uint64_t version;                     /* may never fall */
    struct spec_peaks peaks[4];           /* neither may these */
    unsigned statuses[TN_ERR_SYSTEM + 1]; /* how often each came out */
    bool fails;                           /* this step meets a failure */
};

static uint32_t next(struct machine *x) {
    x->random = x->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(x->random >> 33);
}

static uint32_t below(struct machine *x, uint32_t n) { return next(x) % n; }

static tn_location any_place(struct machine *x) {
    uint32_t i = below(x, 4);

    return i == 0 ? P : i == 1 ? N : i == 2 ? C0 : C1;
}

static tn_handle any_value(struct machine *x) {
    if (x->value_count == 0)
        return (tn_handle){tn_manager_id(x->m), 999, tt_type()};
    return x->values[below(x, (uint32_t)x->value_count)];
}

static void add_value(struct machine *x, tn_handle h) {
    if (x->value_count < VALUES)
        x->values[x->value_count++] = h;
    else
        x->values[below(x, VALUES)] = h; /* the old one lives on unnamed */
}

static tn_stream any_stream(struct machine *x, tn_location at) {
    return at.kind == TN_LOCATION_CUDA ? x->streams[at.index * 2 + below(x, 2)] : NULL;
}

/* ---- Failures ------------------------------------------------------------------------------- */

static void arm_driver(struct machine *x) {
    static const uint32_t entries[] = {TN_SIM_DEVICE_ALLOC,       TN_SIM_DEVICE_ALLOC,
                                       TN_SIM_PINNED_ALLOC,       TN_SIM_COPY,
                                       TN_SIM_EVENT_RECORD,       TN_SIM_EVENT_QUERY,
                                       TN_SIM_EVENT_SYNCHRONIZE,  TN_SIM_EVENT_CREATE,
                                       TN_SIM_DEVICE_MEMORY,      TN_SIM_STREAM_INFO,
                                       TN_SIM_STREAM_SYNCHRONIZE, TN_SIM_POINTER_LOCATION};
    uint32_t entry = entries[below(x, sizeof entries / sizeof entries[0])];

    spec_fault(x->f, entry, 1 + below(x, 2), 1,
               entry == TN_SIM_DEVICE_ALLOC ? TN_ERR_DEVICE_MEMORY : TN_ERR_DRIVER,
               entry == TN_SIM_DEVICE_ALLOC ? 2 : 33);
}

static void arm_something(struct machine *x) {
    tt_source *source = x->sources[below(x, SOURCES)];

    switch (below(x, 6)) {
    case 0:
        for (int i = 0; i < SOURCES; i++)
            x->sources[i]->fail_from = x->sources[i]->calls + 1;
        break;
    case 1:
        source->no_payload = true;
        break;
    case 2:
        tt_fail_copy(1, TN_ERR_HOST_MEMORY);
        break;
    case 3:
        tt_grow_copy(1);
        break;
    case 4:
        tn__fault_alloc(1 + below(x, 12));
        break;
    default:
        arm_driver(x);
    }
}

static void disarm(struct machine *x) {
    for (int i = 0; i < SOURCES; i++) {
        x->sources[i]->fail_from = 0;
        x->sources[i]->no_payload = false;
    }
    tt_fail_copy(0, TN_OK);
    tt_grow_copy(0);
    tn__fault_alloc(0);
    spec_repair(x->f);
}

/* The test's own allocations must not fail: those of a source that is not in pageable memory. */
static tn_status shield(void *context, const tn_load_request *request) {
    struct spec *f = context;

    if (request->at.kind != TN_LOCATION_PAGEABLE) {
        tn__fault_alloc(0);
        tn_sim_fault_clear(f->sim);
    }
    return TN_OK;
}

/* ---- Operations ----------------------------------------------------------------------------- */

static tn_status adopt_one(struct machine *x) {
    static const uint64_t sizes[] = {0, 8, 32, 64, 160};
    tn_location at = any_place(x);
    tt_field view = TT_VIEW(4, 8, 2, 64);
    tn_payload payload = below(x, 4) == 0 ? tt_make(tt_type(), x->f->driver, at, &view, 1)
                                          : tt_bytes(x->f->driver, at, sizes[below(x, 5)]);
    uint32_t mode = below(x, 2);
    tn_reservation *r = &x->reservations[below(x, RESERVATIONS)];
    tn_handle h = {0, 0, NULL};
    tn_status status;

    if (x->fails)
        arm_something(x); /* after the payload is made */
    status = tn_reservation_active(r) && below(x, 2)
                 ? tn_manager_adopt_reserved(x->m, payload, NOWHERE, mode, r, &h)
                 : tn_manager_adopt(x->m, payload, below(x, 8) ? NOWHERE : any_place(x), mode, &h);

    if (status == TN_OK)
        add_value(x, h);
    else
        tt_free(payload);
    return status;
}

static tn_status register_one(struct machine *x) {
    uint64_t bytes = 8u << below(x, 4);
    tn_value_spec spec = tt_spec(bytes, bytes + 8 * below(x, 2));
    tn_source source = tt_source_of(x->sources[below(x, SOURCES)]);
    tn_handle h = {0, 0, NULL};
    tn_status status;

    spec.replica_mode = below(x, 2);
    status = tn_manager_register_source(x->m, &spec, &source, any_place(x), &h);
    if (status == TN_OK)
        add_value(x, h);
    return status;
}

static tn_status ensure_one(struct machine *x) {
    tn_location at = any_place(x);

    return tn_manager_ensure(x->m, any_value(x), at, below(x, 2) ? any_stream(x, at) : NULL, NULL);
}

static tn_status move_one(struct machine *x) {
    tn_location to = any_place(x);
    tn_location from = below(x, 2) ? NOWHERE : any_place(x);

    return tn_manager_move(x->m, any_value(x), to, from, NULL, NULL);
}

static tn_status drop_one(struct machine *x) {
    return tn_manager_drop(x->m, any_value(x), any_place(x), NULL);
}

static tn_status discard_one(struct machine *x) {
    return tn_manager_discard(x->m, any_value(x), NULL);
}

/* Take a lifetime if the place is free, else end the one that is there. */
static tn_status lease_one(struct machine *x) {
    tn_lease *lease = &x->leases[below(x, LEASES)];
    const tn_handle set[] = {any_value(x), any_value(x)};
    tn_location at = any_place(x);

    if (!tn_lease_active(lease))
        return tn_manager_acquire(x->m, set, 1 + below(x, 2), at, any_stream(x, at), lease);
    if (below(x, 3) == 0 && tn_lease_location(lease, &at) == TN_OK && at.kind == TN_LOCATION_CUDA)
        return tn_lease_add_stream(lease, any_stream(x, at));
    return tn_lease_release(lease, below(x, 4) ? 0 : TN_RELEASE_WAIT);
}

static tn_status hold_one(struct machine *x) {
    tn_hold *h = &x->holds[below(x, HOLDS)];
    const tn_handle set[] = {any_value(x), any_value(x)};

    if (!tn_hold_active(h))
        return tn_manager_hold(x->m, set, 1 + below(x, 2), any_place(x), h);
    return tn_hold_release(h);
}

static tn_status reserve_one(struct machine *x) {
    tn_reservation *r = &x->reservations[below(x, RESERVATIONS)];

    if (!tn_reservation_active(r))
        return tn_manager_reserve(x->m, any_place(x), 16 * below(x, 8), "random", r);
    return tn_reservation_release(r);
}

static tn_status pass_time(struct machine *x) {
    tn_stream s = x->streams[below(x, STREAMS)];

    if (below(x, 2))
        return tn_sim_queue_delay(x->f->sim, s, 1000);
    return tn_sim_advance(x->f->sim, 700);
}

static tn_status look(struct machine *x) {
    switch (below(x, 4)) {
    case 0:
        return tn_manager_step(x->m, NULL);
    case 1:
        return spec_b_version(x->m);
    case 2: /* refused while anything is open */
        for (int i = 0; i < HOLDS; i++)
            if (tn_hold_active(&x->holds[i]))
                return tn_manager_close(x->m, TN_CLOSE_NO_WAIT);
        return TN_OK;
    default:
        return spec_b_snapshot(x->m);
    }
}

/* ---- Steps ---------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    tn_status (*run)(struct machine *x);
    unsigned weight;
} ops[] = {{"adopt", adopt_one, 10},
           {"register", register_one, 5},
           {"ensure", ensure_one, 25},
           {"move", move_one, 12},
           {"drop", drop_one, 12},
           {"discard", discard_one, 4},
           {"lease", lease_one, 16},
           {"hold", hold_one, 6},
           {"reserve", reserve_one, 8},
           {"time", pass_time, 10},
           {"look", look, 6}};
#define OPS (sizeof ops / sizeof ops[0])

static size_t any_op(struct machine *x) {
    unsigned sum = 0;
    unsigned pick;
    size_t i = 0;

    for (size_t k = 0; k < OPS; k++)
        sum += ops[k].weight;
    pick = below(x, sum);
    while (pick >= ops[i].weight)
        pick -= ops[i++].weight;
    return i;
}

/* What may never go down does not (M117, M48). */
static const char *check_growth(struct machine *x) {
    tn_location_info rows[4] = {{.size = sizeof rows[0]}};
    tn_snapshot_info head = {.size = sizeof head};
    tn_snapshot *s = NULL;
    size_t count = 4;
    tn_status status;

    TN_WORKER_STATUS(tn_snapshot_take(x->m, &s), TN_OK);
    status = tn_snapshot_read(s, &head);
    if (status == TN_OK)
        status = tn_snapshot_locations(s, rows, &count);
    tn_snapshot_drop(s);
    TN_WORKER_STATUS(status, TN_OK);
    TN_WORKER_CHECK(head.exact); /* nobody else is at work */
    TN_WORKER_CHECK(head.state_version >= x->version);
    x->version = head.state_version;
    for (size_t i = 0; i < count; i++) {
        TN_WORKER_CHECK(rows[i].peak_used_bytes >= x->peaks[i].used);
        TN_WORKER_CHECK(rows[i].peak_charged_bytes >= x->peaks[i].charged);
        x->peaks[i] = (struct spec_peaks){rows[i].peak_used_bytes, rows[i].peak_charged_bytes};
    }
    return NULL;
}

/* Not among them: a close that succeeds shows by TN_ERR_CLOSED in the next check. */
static bool expected(tn_status status) {
    switch (status) {
    case TN_OK:
    case TN_ERR_VALUE: /* the source location of a load does not exist, ... */
    case TN_ERR_HANDLE:
    case TN_ERR_BUDGET:
    case TN_ERR_UNAVAILABLE:
    case TN_ERR_IN_USE:
    case TN_ERR_LIFETIME_CLOSED:
    case TN_ERR_MATERIALIZATION:
    case TN_ERR_OWNERSHIP:
    case TN_ERR_PAYLOAD:
    case TN_ERR_SOURCE:
    case TN_ERR_DRIVER:
    case TN_ERR_HOST_MEMORY:
    case TN_ERR_DEVICE_MEMORY:
        return true;
    case TN_ERR_KIND: /* a source that returned nothing */
        return true;
    default:
        return false;
    }
}

/* NULL, or what is wrong after this step. */
static const char *step(struct machine *x, int number) {
    size_t op = any_op(x);
    tn_status status;
    const char *text;

    x->fails = below(x, 3) == 0;
    if (x->fails && ops[op].run != adopt_one)
        arm_something(x);
    status = ops[op].run(x);
    disarm(x);
    text = expected(status) ? NULL : "an unexpected status";
    if (status <= TN_ERR_SYSTEM)
        x->statuses[status]++;
    if (text == NULL)
        text = spec_b_check(x->m);
    if (text == NULL)
        text = check_growth(x);
    if (text != NULL)
        print_error("step %d, %s%s: %s (%s)\n", number, ops[op].name,
                    x->fails ? " with a failure" : "", tn_status_name(status),
                    status != TN_OK ? tn_last_error()->message : "");
    return text;
}

static void begin(struct machine *x, struct spec *f, uint64_t seed) {
    tn_config config = spec_config(f);
    const tn_budget budgets[] = {{P, 1024}, {N, 320}, {C0, 256}}; /* C1 has none */

    memset(x, 0, sizeof *x);
    x->f = f;
    x->random = seed;
    config.budgets = budgets;
    config.budget_count = 3;
    config.trace_capacity = 64;
    if (f->source_count == 0)
        for (int i = 0; i < SOURCES; i++)
            spec_source(f);
    for (int i = 0; i < SOURCES; i++) {
        x->sources[i] = &f->sources[i];
        x->sources[i]->hook = shield;
        x->sources[i]->hook_context = f;
    }
    if (f->stream_count == 0)
        for (uint32_t i = 0; i < STREAMS; i++)
            spec_stream(f, i / 2);
    for (int i = 0; i < STREAMS; i++)
        x->streams[i] = f->streams[i];
    x->m = spec_manager_with(f, &config);
}

/* Everything ends, and nothing is left of it. */
static void end(struct machine *x) {
    for (int i = 0; i < LEASES; i++)
        release(&x->leases[i]);
    for (int i = 0; i < HOLDS; i++)
        release_hold(&x->holds[i]);
    for (int i = 0; i < RESERVATIONS; i++)
        release_reservation(&x->reservations[i]);
    assert_ok(tn_manager_close(x->m, 0));
    spec_destroy(x->f, x->m);
    assert_int_equal(tt_count().live, x->f->live);
    assert_int_equal(tn_sim_violations(x->f->sim), 0);
}

static void mc033_random_operations_with_failures(void **state) {
    struct spec *f = *state;
    unsigned statuses[TN_ERR_SYSTEM + 1] = {0};
    static const tn_status hit[] = {TN_OK,          TN_ERR_HANDLE,          TN_ERR_BUDGET,
                                    TN_ERR_IN_USE,  TN_ERR_MATERIALIZATION, TN_ERR_OWNERSHIP,
                                    TN_ERR_SOURCE,  TN_ERR_UNAVAILABLE,     TN_ERR_DEVICE_MEMORY,
                                    TN_ERR_PAYLOAD, TN_ERR_HOST_MEMORY,     TN_ERR_DRIVER};

    for (uint64_t i = 0; i < SEQUENCES; i++) {
        struct machine x;
        const char *text = NULL;

        begin(&x, f, tn_test_seed() + i);
        for (int k = 0; k < STEPS && text == NULL; k++)
            text = step(&x, k);
        if (text != NULL)
            print_error("in sequence %u\n", (unsigned)i);
        assert_null_text(text);
        for (size_t k = 0; k <= TN_ERR_SYSTEM; k++)
            statuses[k] += x.statuses[k];
        end(&x);
    }
    for (size_t i = 0; i < sizeof hit / sizeof hit[0]; i++) {
        if (statuses[hit[i]] == 0)
            print_error("%s never came out\n", tn_status_name(hit[i]));
        assert_true(statuses[hit[i]] > 0);
    }
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(mc033_random_operations_with_failures),
};

TN_TEST_MAIN("spec.random", tests)
