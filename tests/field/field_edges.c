/* SPDX-License-Identifier: MIT */
/* Field cases: broken drivers and devices, pools, capabilities, traffic. */
#include "tn_test.h"

#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base_internal.h"
#include "field_common.h"
#include "sim_files.h"

#define BLOCK UINT64_C(65536)

/* ---- F-G06: the driver is gone before the manager -------------------------------------------- */

static void f_g06_nothing_pending(void **state) {
    static const uint32_t states[] = {TN_SIM_SHUT_DOWN, TN_SIM_CONTEXT_DESTROYED};
    struct spec *f = *state;

    f->lenient = true; /* what is gone cannot be freed */
    for (int i = 0; i < 2; i++) {
        tn_manager *m = MANAGER(f);
        tn_handle v = field_rep(f, m, BLOCK, 1);
        tn_handle w = field_rep(f, m, BLOCK, 2);
        uint64_t before;

        ensure(m, v, N);
        ensure(m, v, C0);
        before = version(m);
        assert_ok(tn_sim_set_state(f->sim, states[i]));
        assert_status(tn_manager_ensure(m, w, C0, NULL, NULL), TN_ERR_DRIVER);
        assert_int_equal(version(m), before);
        assert_ok(tn_manager_close(m, 0));
        assert_int_equal(tt_count().live, f->live); /* pageable payloads are freed */
        assert_int_equal(tt_count().backings, 0);
        spec_destroy(f, m);
        assert_ok(tn_sim_set_state(f->sim, TN_SIM_NORMAL));
    }
}

static void gone_with_a_pending_lease(struct spec *f, uint32_t gone, uint32_t flags) {
    tn_manager *m = MANAGER(f);
    tn_stream s = spec_stream(f, 0);
    tn_handle v = field_rep_at(f, m, C0, BLOCK, 1);
    tn_lease lease = acquire(m, v, C0, s);
    uint64_t now;

    assert_ok(tn_sim_queue_delay(f->sim, s, 10 * MS));
    release(&lease);
    now = tn_sim_now_ns(f->sim);
    assert_ok(tn_sim_set_state(f->sim, gone));
    assert_ok(tn_manager_close(m, flags));
    assert_int_equal(tn_sim_now_ns(f->sim), now);
    spec_destroy(f, m);
    assert_ok(tn_sim_set_state(f->sim, TN_SIM_NORMAL));
    spec_finish(f);
}

static void f_g06_one_lease_pending(void **state) {
    struct spec *f = *state;

    f->lenient = true;
    gone_with_a_pending_lease(f, TN_SIM_SHUT_DOWN, 0);
    gone_with_a_pending_lease(f, TN_SIM_SHUT_DOWN, TN_CLOSE_FORCE);
    gone_with_a_pending_lease(f, TN_SIM_CONTEXT_DESTROYED, 0);
    gone_with_a_pending_lease(f, TN_SIM_CONTEXT_DESTROYED, TN_CLOSE_FORCE);
}

/* For comparison: a failure that is not the end. */
static void f_g06_another_failure_leaves_it_open(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_stream s = spec_stream(f, 0);
    tn_handle v = field_rep_at(f, m, C0, BLOCK, 1);
    tn_lease lease = acquire(m, v, C0, s);

    assert_ok(tn_sim_queue_delay(f->sim, s, 10 * MS));
    release(&lease);
    spec_fault(f, TN_SIM_EVENT_QUERY, 1, 0, TN_ERR_DRIVER, 719);
    spec_fault(f, TN_SIM_EVENT_SYNCHRONIZE, 1, 0, TN_ERR_DRIVER, 719);
    assert_status(tn_manager_close(m, 0), TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->native_code, 719);
    assert_true(spec_repair(f) >= 1);
    ensure(m, v, N); /* open */
    assert_ok(tn_manager_close(m, 0));
    assert_int_equal(field_ms(f), 10);
}

static tn_sim *of_the_child;
static tn_manager *left_open;

static void shut_down_at_exit(void) {
    if (tn_sim_set_state(of_the_child, TN_SIM_SHUT_DOWN) != TN_OK)
        _exit(3);
}

/* Returns from main, as it were, with an open manager, a pending lease and a reaper. */
static void child(void) {
    static const uint64_t bytes = 64;
    tn_config config = TN_CONFIG_INIT;
    tn_buffer *buffer = NULL;
    tn_stream stream = NULL;
    tn_lease lease;
    tn_handle h;

    if (tn_sim_create("dev:1", &of_the_child) != TN_OK || atexit(shut_down_at_exit) != 0)
        _exit(4);
    config.driver = tn_sim_driver(of_the_child);
    if (tn_manager_create(&config, &left_open) != TN_OK ||
        tn_buffer_create(config.driver, C0, &bytes, 1, &buffer) != TN_OK ||
        tn_manager_adopt(left_open, tn_buffer_payload(buffer), C0, TN_REPLICABLE, &h) != TN_OK ||
        tn_sim_stream_create(of_the_child, 0, 0, &stream) != TN_OK ||
        tn_manager_acquire(left_open, &h, 1, C0, stream, &lease) != TN_OK ||
        tn_sim_queue_delay(of_the_child, stream, MS) != TN_OK ||
        tn_lease_release(&lease, 0) != TN_OK)
        _exit(5);
    exit(0);
}

static void f_g06_exit_with_an_open_manager(void **state) {
    uint64_t began = tn__mono_ns();
    int status = -1;
    pid_t pid;

    (void)state;
    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        child();
    while (waitpid(pid, &status, WNOHANG) == 0 && tn__mono_ns() - began < 10000 * MS)
        field_nap(2);
    field_time("the child", tn__mono_ns() - began, 1000 * MS);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- F-G12: one bad device, one bad call ------------------------------------------------------ */

static void f_g12_one_bad_device(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_stream s0 = spec_stream(f, 0);
    tn_stream s1 = spec_stream(f, 1);
    tn_handle v = field_rep_at(f, m, C0, 64, 1);
    tn_handle w = field_rep_at(f, m, C0, 64, 2);
    tn_handle u = field_rep(f, m, 64, 3);
    tn_sim_fault fault = TN_SIM_FAULT_INIT;
    tn_lease on_bad;

    ensure(m, v, C1);
    ensure(m, w, C1);
    on_bad = acquire(m, v, C1, s1);
    fault.device = 1;
    fault.count = 0;
    fault.status = TN_ERR_DRIVER;
    fault.native_code = 719;
    assert_ok(tn_sim_fault_arm(f->sim, &fault));
    for (int i = 0; i < 100; i++) {
        tn_lease lease = acquire(m, v, P, NULL);

        release(&lease);
        ensure(m, u, N);
        lease = acquire(m, u, N, NULL);
        release(&lease);
        ensure(m, u, C0);
        lease = acquire(m, u, C0, s0);
        release(&lease);
        drop(m, u, P);
        ensure(m, u, P);
        drop(m, u, C0);
        drop(m, u, N);
    }
    assert_status(tn_manager_ensure(m, u, C1, NULL, NULL), TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->native_code, 719);
    assert_status(tn_lease_release(&on_bad, 0), TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->native_code, 719);
    assert_true(tn_lease_active(&on_bad));
    move_from(m, w, N, C0);
    assert_replicas(m, w, P, C1, N);
    assert_true(spec_repair(f) >= 3);
    release(&on_bad);
    spec_finish(f);
    field_conserved(f, m);
}

static void f_g12_one_bad_call(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle u = field_rep(f, m, 64, 3);
    uint64_t before;

    ensure(m, u, C0);
    drop(m, u, C0); /* tracked */
    before = version(m);
    spec_fault(f, TN_SIM_COPY, 1, 1, TN_ERR_DRIVER, 1);
    assert_status(tn_manager_ensure(m, u, C0, NULL, NULL), TN_ERR_DRIVER);
    assert_int_equal(version(m), before);
    ensure(m, u, C0);
    assert_int_equal(spec_repair(f), 1);
    assert_true(field_exact(f, m, u, C0, 3));
    field_conserved(f, m);
}

/* ---- F-A11: used bytes and bytes the pool holds (trim of a manager: later) --------------------- */

/* The case asks for the free reading of a snapshot. M228 has two readings there, those of the
 * device's pool (in use, held), and no other: the free figure is the driver's. The same in F-E10. */

static void f_a11_used_bytes_and_bytes_the_pool_holds(void **state) {
    struct spec *f = *state;
    const tn_driver_ops *ops = tn_driver_table(f->driver);
    void *self = tn_driver_self(f->driver);
    tn_manager *m = MANAGER(f, {C0, 131072});
    tn_device_memory first, last;
    uint64_t before = version(m);

    assert_ok(ops->device_memory(self, 0, &first));
    for (int i = 0; i < 8957; i++) {
        tn_handle h = spec_adopt(m, tt_bytes(f->driver, C0, BLOCK), C0, TN_REPLICABLE);

        discard(m, h);
        assert_int_equal(used(m, C0), 0);
        assert_true(field_memory(f, C0).held_bytes <= 131072);
    }
    assert_int_equal(version(m), before + 26871);
    assert_peaks(m, C0, BLOCK, BLOCK);
    assert_ok(ops->device_memory(self, 0, &last));
    assert_int_equal(first.free_bytes - last.free_bytes, last.pool_held_bytes);
    assert_int_equal(loc(m, C0).held_bytes, last.pool_held_bytes);
    assert_int_equal(loc(m, C0).allocated_bytes, 0);
    assert_true(last.pool_held_bytes >= BLOCK);
    assert_int_equal(used(m, C0), 0);
    /* what can be had of the trim: the driver's own, which is nobody's business here */
    before = version(m);
    assert_ok(ops->pool_trim(self, 0, 0));
    assert_int_equal(loc(m, C0).held_bytes, 0);
    assert_int_equal(version(m), before);
    field_conserved(f, m);
}

/* ---- F-A16: traffic can be added up ------------------------------------------------------------ */

/* Unix time of the virtual clock. */
static uint64_t virtual_now(void *context) {
    return UINT64_C(1700000000000000000) + tn_sim_now_ns(context);
}

static void f_a16_traffic_can_be_added_up(void **state) {
    struct spec *f = *state;
    const tn_budget budgets[] = {{N, 24576}, {C0, 24576}};
    tn_sim_traffic up = {.size = sizeof(up)}, down = {.size = sizeof(down)};
    uint64_t bytes[2] = {0, 0}, moves[2] = {0, 0};
    uint64_t before, lasted = 0;
    tn_config config;
    tn_manager *m;
    tn_handle h;

    spec_machine(f, "dev:1 link=host:25MBps");
    config = spec_config(f);
    config.budgets = budgets;
    config.budget_count = 2;
    config.now_ns = virtual_now;
    config.now_context = f->sim;
    m = spec_manager_with(f, &config);
    h = field_adopt(f, m, N, TN_EXCLUSIVE, 24576, 1);
    before = version(m);
    for (int i = 0; i < 64; i++)
        move(m, h, i % 2 == 0 ? C0 : N);
    assert_int_equal(version(m), before + 128);
    for (size_t i = 0; i < trace_count(m); i++) {
        tn_report r = trace_at(m, i);
        bool to_device = r.destination.kind == TN_LOCATION_CUDA;

        assert_at(r.source, to_device ? N : C0);
        assert_at(r.destination, to_device ? C0 : N);
        moves[to_device]++;
        bytes[to_device] += r.storage_bytes;
        lasted += r.completed_at_ns - r.started_at_ns;
    }
    assert_int_equal(moves[0], 32);
    assert_int_equal(moves[1], 32);
    assert_int_equal(bytes[0], 786432);
    assert_int_equal(bytes[1], 786432);
    assert_ok(tn_sim_read_traffic(f->sim, N, C0, &up));
    assert_ok(tn_sim_read_traffic(f->sim, C0, N, &down));
    assert_int_equal(up.copies, 32);
    assert_int_equal(up.bytes, 786432);
    assert_int_equal(down.copies, 32);
    assert_int_equal(down.bytes, 786432);
    assert_int_equal(up.busy_ns + down.busy_ns, 62914560);
    assert_in_range(lasted, 62914560 - 629145, 62914560 + 629145);
    field_conserved(f, m);
}

/* ---- F-C13: idle memory belongs to no stream --------------------------------------------------- */

static void f_c13_idle_memory_belongs_to_no_stream(void **state) {
    struct spec *f = *state;
    tn_handle values[256];
    tn_manager *m;

    spec_machine(f, "dev:1 pool=1048576B");
    m = MANAGER(f);
    for (uint64_t i = 0; i < 256; i++) {
        tn_stream s = NULL;
        tn_lease lease;
        char *block;

        values[i] = field_rep_at(f, m, C0, BLOCK, i);
        block = field_block(f, m, values[i], C0);
        assert_ok(tn_sim_stream_create(f->sim, 0, 0, &s));
        lease = acquire(m, values[i], C0, s);
        field_read(f, s, block, BLOCK, 1);
        release(&lease);
        assert_ok(tn_sim_stream_destroy(f->sim, s));
    }
    assert_int_equal(loc(m, C0).pending_count, 256);
    spec_finish(f);
    for (int i = 0; i < 256; i++)
        drop(m, values[i], C0);
    assert_int_equal(used(m, C0), 0);
    assert_int_equal(loc(m, C0).allocated_bytes, 0);
    assert_true(loc(m, C0).held_bytes <= 1048576);
    assert_true(field_calls(f, TN_SIM_STREAM_CREATE) <= 1);
    field_conserved(f, m);
}

/* ---- F-E10: one capability record, consulted by every path -------------------------------------- */

static tn_handle register_file(tn_manager *m, const char *path, uint64_t bytes) {
    tn_value_spec spec = TN_VALUE_SPEC_INIT;
    tn_source source = TN_SOURCE_INIT;
    tn_handle h;

    spec.type = tn_buffer_type();
    spec.logical_bytes = spec.storage_bytes = bytes;
    spec.replica_mode = TN_REPLICABLE;
    spec.recoverability = TN_RECONSTRUCTIBLE;
    source.kind = TN_SOURCE_FILE;
    source.path = path;
    assert_ok(tn_manager_register_source(m, &spec, &source, P, &h));
    return h;
}

static void f_e10_cannot_pin(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_stream s = spec_stream(f, 0);
    tn_handle v = field_rep(f, m, KEY, 1);
    tn_handle w = field_adopt(f, m, C0, TN_REPLICABLE, KEY, 2);
    tn_handle from_file[2];
    uint64_t before = version(m);
    tn_lease lease;
    char *content = calloc(1, KEY);

    assert_non_null(content);
    assert_ok(tn_sim_set_capabilities(f->sim, TN_SIM_ANY_DEVICE, 0));
    assert_status(tn_manager_ensure(m, v, N, NULL, NULL), TN_ERR_PAYLOAD);
    assert_locations(m, P, C0);
    assert_int_equal(version(m), before);
    ensure(m, v, C0);
    ensure(m, w, P);
    memset(content, 7, KEY);
    assert_ok(tn_sim_file_put(f->sim, "key", content, KEY));
    sim_files_use(f->sim);
    for (int i = 0; i < 2; i++)
        from_file[i] = register_file(m, "key", KEY);
    ensure(m, from_file[0], P);
    ensure(m, from_file[1], C0);
    lease = acquire(m, from_file[0], P, NULL);
    release(&lease);
    lease = acquire(m, from_file[1], C0, s);
    release(&lease);
    assert_true(field_exact(f, m, v, C0, 1));
    assert_true(field_exact(f, m, w, P, 2));
    field_conserved(f, m);
    assert_ok(tn_manager_close(m, 0));
    assert_int_equal(field_calls(f, TN_SIM_PINNED_ALLOC), 0);
    free(content);
}

static void f_e10_host_memory_is_device_memory(void **state) {
    struct spec *f = *state;
    const tn_driver_ops *ops = tn_driver_table(f->driver);
    tn_device_memory before, after;
    tn_manager *m;
    tn_handle v, w;

    spec_machine(f, "dev:1 host=shared");
    m = MANAGER(f, {C0, BLOCK});
    v = field_rep(f, m, BLOCK, 1);
    w = field_rep(f, m, BLOCK, 2);
    assert_ok(ops->device_memory(tn_driver_self(f->driver), 0, &before));
    ensure(m, v, N);
    assert_ok(ops->device_memory(tn_driver_self(f->driver), 0, &after));
    assert_true(after.free_bytes <= before.free_bytes - BLOCK);
    assert_int_equal(used(m, C0), 0);
    ensure(m, w, C0); /* just fits: readings do not steer */
    assert_int_equal(remaining(m, C0), 0);
    field_conserved(f, m);
}

static const struct CMUnitTest tests[] = {
    FIELD_BOTH(f_g06_nothing_pending),
    FIELD_BOTH(f_g06_one_lease_pending),
    FIELD_BOTH(f_g06_another_failure_leaves_it_open),
    FIELD_SERIAL(f_g06_exit_with_an_open_manager),
    FIELD_BOTH(f_g12_one_bad_device),
    FIELD_BOTH(f_g12_one_bad_call),
    FIELD_BOTH(f_a11_used_bytes_and_bytes_the_pool_holds),
    FIELD_BOTH(f_a16_traffic_can_be_added_up),
    FIELD_BOTH(f_c13_idle_memory_belongs_to_no_stream),
    FIELD_BOTH(f_e10_cannot_pin),
    FIELD_BOTH(f_e10_host_memory_is_device_memory),
};

TN_TEST_MAIN("field.edges", tests)
