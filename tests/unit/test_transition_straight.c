/* SPDX-License-Identifier: MIT */
/* src/transition/perform.c: files that go straight to a device. What differs from a load that is
 * followed by a copy must not show: order of errors (M78), charges (M73), who joins what. */
#include "tn_test.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "manager/manager_internal.h"
#include "spec_common.h"
#include "transition/transition_priv.h"
#include "value/value_priv.h"

#define BYTES 5000u

static struct {
    tn_manager *m; /* whose load waits until another one has joined it; NULL: none */
    bool fail;
    atomic_uint reads;
} disk;

static bool joined(tn_manager *m) {
    tn__lock(&m->store->lock);
    const tn__ticket *ticket = m->trans->flow.in_flight;
    bool yes = ticket && ticket->flight && ticket->flight->refs >= 2;
    tn__unlock(&m->store->lock);
    return yes;
}

static ssize_t disk_read(int descriptor, const struct iovec *pieces, int count, off_t offset) {
    atomic_fetch_add(&disk.reads, 1);
    while (disk.m && !joined(disk.m))
        sched_yield();
    disk.m = NULL;
    if (disk.fail) {
        errno = EIO;
        return -1;
    }
    return tn__file_system.read(descriptor, pieces, count, offset);
}

static tn__file_layer layer;

static void disk_open(void) {
    disk.m = NULL;
    disk.fail = false;
    atomic_store(&disk.reads, 0);
    layer = tn__file_system;
    layer.read = disk_read;
    tn__files = &layer;
}

static const char *make_file(uint64_t bytes) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/value", tn_test_tmpdir());
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    for (uint64_t i = 0; i < bytes; i++)
        assert_int_not_equal(fputc((int)(i % 251), file), EOF);
    assert_int_equal(fclose(file), 0);
    return path;
}

static tn_handle file_at(tn_manager *m, const char *path, tn_location at) {
    tn_value_spec spec = TN_VALUE_SPEC_INIT;
    tn_source source = TN_SOURCE_INIT;
    tn_handle h = {0, 0, NULL};
    spec.type = tn_buffer_type();
    spec.logical_bytes = spec.storage_bytes = BYTES;
    spec.replica_mode = TN_REPLICABLE;
    spec.recoverability = TN_RECONSTRUCTIBLE;
    source.kind = TN_SOURCE_FILE;
    source.path = path;
    assert_ok(tn_manager_register_source(m, &spec, &source, at, &h));
    return h;
}

static tn_sim_traffic traffic(struct spec *f, tn_location from, tn_location to) {
    tn_sim_traffic t = {.size = sizeof t};
    assert_ok(tn_sim_read_traffic(f->sim, from, to, &t));
    return t;
}

static void file_reaches_its_destination_without_a_payload_at_the_source(void **state) {
    const tn_location sources[] = {P, N};
    struct spec *f = *state;
    disk_open();
    for (size_t i = 0; i < 2; i++) {
        tn_manager *m = MANAGER(f);
        tn_handle h = file_at(m, make_file(BYTES), sources[i]);
        tn_report report = ensure(m, h, C0);
        assert_report(report, TN_ACTION_ENSURE, 0, sources[i], C0);
        assert_replicas(m, h, C0);
        assert_peaks(m, sources[i], 0, BYTES); /* M73 */
        assert_int_equal(used(m, C0), BYTES);
        tn_pinned_figures pinned = TN_PINNED_FIGURES_INIT;
        assert_ok(tn_driver_read_pinned(f->driver, &pinned));
        assert_int_equal(pinned.live_bytes + pinned.idle_bytes, 0);
        assert_true(pinned.ring_bytes > 0);
        spec_destroy(f, m);
    }
    assert_int_equal(traffic(f, N, C0).bytes, 2 * BYTES);
}

/* The driver pins 64 MiB, and a value has them all: another one is refused, with the driver's code;
 * a file still gets to the device, by way of pageable memory. */
static void file_reaches_the_device_where_no_pinned_memory_is_left(void **state) {
    const uint64_t all = UINT64_C(64) << 20;
    struct spec *f = *state;
    spec_machine(f, "dev:1 pinned=64MiB");
    tn_manager *m = MANAGER(f);
    tn_handle big = spec_adopt(m, tt_bytes(f->driver, P, all), P, TN_REPLICABLE);
    tn_handle small = adopt_rep(f, m, P), file = file_at(m, make_file(BYTES), P);
    disk_open();
    ensure(m, big, N);
    assert_status(tn_manager_ensure(m, small, N, NULL, NULL), TN_ERR_PAYLOAD);
    assert_int_equal(tn_last_error()->native_code, 2);
    ensure(m, file, C0);
    assert_int_equal(traffic(f, P, C0).bytes, BYTES);
    drop(m, file, C0);
    drop(m, big, N);
    ensure(m, small, N); /* the driver gets the large block back for it */
    ensure(m, file, C0);
    assert_int_equal(traffic(f, N, C0).bytes, BYTES);
}

/* M78: the source's errors come before the destination's, also through the ring. */
static void destination_that_does_not_fit_is_judged_after_the_load(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {C0, BYTES - 1});
    const char *path = make_file(BYTES - 1);
    tn_handle h = file_at(m, path, P);
    disk_open();
    assert_status(tn_manager_ensure(m, h, C0, NULL, NULL), TN_ERR_MATERIALIZATION);
    h = file_at(m, make_file(BYTES), P);
    assert_status(tn_manager_ensure(m, h, C0, NULL, NULL), TN_ERR_BUDGET);
    assert_budget_error(C0, BYTES - 1, 0, 0, BYTES);
    assert_int_equal(atomic_load(&disk.reads), 1);
    assert_peaks(m, P, 0, BYTES);
}

static void file_at_a_device_is_loaded_there_and_moved_on(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = file_at(m, make_file(BYTES), C0);
    disk_open();
    ensure(m, h, C0);
    assert_replicas(m, h, C0);
    drop(m, h, C0);
    ensure(m, h, P);
    assert_replicas(m, h, P);
    assert_peaks(m, C0, BYTES, BYTES);
    assert_int_equal(used(m, C0), 0);
    drop(m, h, P);
    ensure(m, h, C1);
    assert_replicas(m, h, C1);
    assert_int_equal(traffic(f, N, C0).bytes, 2 * BYTES);
    assert_int_equal(traffic(f, N, C1).bytes, BYTES); /* not by way of the other device ... */
    assert_int_equal(traffic(f, C0, C1).bytes, 0);
    assert_peaks(m, C0, BYTES, BYTES); /* ... which is charged all the same */
}

/* ---- Those who join ---- */

struct two {
    tn_manager *m;
    tn_handle h;
    tn_location second; /* where the one who joins wants it */
    tn_status status[2];
};

static const char *ask(int index, void *arg) {
    struct two *t = arg;
    while (index == 1 && atomic_load(&disk.reads) == 0)
        sched_yield();
    t->status[index] = tn_manager_ensure(t->m, t->h, index == 0 ? C0 : t->second, NULL, NULL);
    return NULL;
}

/* The file was good: only the first thread's device failed. */
static void failure_at_the_device_is_not_shared(void **state) {
    const tn_location second[] = {P, C0};
    struct spec *f = *state;
    for (size_t i = 0; i < 2; i++) {
        struct two t = {.m = MANAGER(f), .second = second[i]};
        t.h = file_at(t.m, make_file(BYTES), P);
        disk_open();
        disk.m = t.m;
        spec_fault(f, TN_SIM_COPY, 1, 1, TN_ERR_DRIVER, 700);
        assert_null_text(tn_test_workers_run(2, ask, &t));
        assert_int_equal(spec_repair(f), 1);
        assert_int_equal(t.status[0], TN_ERR_DRIVER);
        assert_int_equal(t.status[1], TN_OK);
        assert_replicas(t.m, t.h, second[i]);
        assert_int_equal(atomic_load(&disk.reads), 2);
    }
}

static void failure_of_the_file_is_shared(void **state) {
    struct spec *f = *state;
    struct two t = {.m = MANAGER(f), .second = C0};
    t.h = file_at(t.m, make_file(BYTES), P);
    disk_open();
    disk.m = t.m;
    disk.fail = true;
    assert_null_text(tn_test_workers_run(2, ask, &t));
    assert_int_equal(t.status[0], TN_ERR_SOURCE);
    assert_int_equal(t.status[1], TN_ERR_SOURCE);
    assert_int_equal(atomic_load(&disk.reads), 1); /* no second load */
    disk.fail = false;
    ensure(t.m, t.h, C0);
}

static int teardown(void **state) {
    tn__files = &tn__file_system;
    return spec_teardown(state);
}

#define STRAIGHT(test, setup) cmocka_unit_test_setup_teardown(test, setup, teardown)

static const struct CMUnitTest tests[] = {
    STRAIGHT(file_reaches_its_destination_without_a_payload_at_the_source, spec_setup_serial),
    STRAIGHT(file_reaches_the_device_where_no_pinned_memory_is_left, spec_setup_serial),
    STRAIGHT(destination_that_does_not_fit_is_judged_after_the_load, spec_setup_serial),
    STRAIGHT(file_at_a_device_is_loaded_there_and_moved_on, spec_setup_concurrent),
    STRAIGHT(failure_at_the_device_is_not_shared, spec_setup_concurrent),
    STRAIGHT(failure_of_the_file_is_shared, spec_setup_concurrent),
};

TN_TEST_MAIN("unit.transition_straight", tests)
