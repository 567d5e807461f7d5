/* SPDX-License-Identifier: MIT */
/* Field case F-C10: the pinned source of a queued copy is not refilled. */
#include "memory_util.h"

#include <sys/uio.h>

#include "value/value_priv.h"

#define BYTES 65536u
#define COUNT 3

/* Stream s stalls 5 ms before each copy: whoever fills the copy's source queues that first. */
static struct {
    struct spec *f;
    tn_stream s;
    uint64_t fills;
    uint64_t unfinished; /* fills while a copy out of the block was not complete */
} watched;

static tn_status before_a_fill(void) {
    watched.fills++;
    watched.unfinished += !spec_idle(watched.f, watched.s);
    return tn_sim_queue_delay(watched.f->sim, watched.s, 5 * MS);
}

static ssize_t watching_read(int descriptor, const struct iovec *pieces, int count, off_t offset) {
    if (before_a_fill() != TN_OK)
        return -1;
    return tn__file_system.read(descriptor, pieces, count, offset);
}

static tn_status watching_load(void *context, const tn_load_request *request) {
    (void)context;
    (void)request;
    return before_a_fill();
}

static void watch(struct spec *f) {
    watched.f = f;
    watched.s = spec_stream(f, 0);
    watched.fills = watched.unfinished = 0;
}

/* One sequence ensures the three at C0 on s. The copies end behind their stalls, one by one. */
static void ensure_all(tn_manager *m, const tn_handle *h) {
    tn_transfer_stream transfer = {C0, watched.s};
    tn_run_options options = TN_RUN_OPTIONS_INIT;
    tn_action actions[COUNT];
    uint64_t before = version(m);

    for (int i = 0; i < COUNT; i++)
        actions[i] = tn_action_ensure(h[i], C0);
    options.streams = &transfer;
    options.stream_count = 1;
    assert_ok(tn_manager_execute_actions(m, "refill", actions, COUNT, &options, NULL));
    assert_int_equal(version(m) - before, 3);
    assert_int_equal(watched.fills, COUNT);
    assert_int_equal(watched.unfinished, 0);
    assert_int_equal(trace_count(m), COUNT);
    for (uint64_t i = 0; i < COUNT; i++) {
        assert_handle(trace_at(m, i).action.handle, h[i]);
        assert_int_equal(trace_at(m, i).completed_at_ns - HM_EPOCH_NS, 5 * MS * (i + 1));
    }
}

static void f_c10_source_of_a_queued_copy_is_not_refilled(void **state) {
    const tn_budget budgets[] = {{P, BYTES}, {C0, COUNT * BYTES}};
    struct spec *f = *state;
    tn_manager *m = hm_manager_with_ring(f, budgets, 2, BYTES, 1);
    const char *path = hm_file("values", BYTES, COUNT);
    tn__file_layer layer = tn__file_system;
    tn_handle h[COUNT];

    watch(f);
    layer.read = watching_read;
    for (uint64_t i = 0; i < COUNT; i++)
        h[i] = hm_register(m, path, i, BYTES, P);
    tn__files = &layer;
    ensure_all(m, h);
    hm_files_restore();
    for (uint64_t i = 0; i < COUNT; i++)
        assert_true(hm_is_piece(m, h[i], C0, i));
    assert_int_equal(used(m, P), 0);
    assert_peaks(m, P, 0, BYTES);
    assert_int_equal(used(m, C0), COUNT * BYTES);
    field_conserved(f, m);
}

/* The same where the block is a temporary payload in pinned memory: freed before its copy is
 * complete, it would be a violation. */
static void f_c10_temporary_payload_outlives_its_copy(void **state) {
    const tn_budget budgets[] = {{N, BYTES}, {C0, COUNT * BYTES}};
    struct spec *f = *state;
    tn_manager *m = hm_manager_with_ring(f, budgets, 2, 0, 0);
    tn_handle h[COUNT];

    watch(f);
    for (uint64_t i = 0; i < COUNT; i++) {
        tt_source *source = spec_source(f);

        source->seed = i + 1;
        source->hook = watching_load;
        h[i] = hm_source(m, source, BYTES, N);
    }
    ensure_all(m, h);
    for (uint64_t i = 0; i < COUNT; i++)
        assert_true(hm_holds(m, h[i], C0, i + 1));
    assert_int_equal(used(m, N), 0);
    assert_peaks(m, N, 0, BYTES);
    assert_int_equal(used(m, C0), COUNT * BYTES);
    field_conserved(f, m);
}

static const struct CMUnitTest tests[] = {
    FIELD_BOTH(f_c10_source_of_a_queued_copy_is_not_refilled),
    FIELD_BOTH(f_c10_temporary_payload_outlives_its_copy),
};

TN_TEST_MAIN("field.refill", tests)
