/* SPDX-License-Identifier: MIT */
/* What a program can get wrong: driver.h and sim.h. */
#include "spec_bad_input.h"

/* ---- driver.h -------------------------------------------------------------------------------- */

static void driver_tables(void **state) {
    struct spec *f = *state;
    tn_driver_ops ops = *tn_driver_table(f->driver);
    void *self = tn_driver_self(f->driver);
    tn_driver *d = NULL;

    assert_status(tn_driver_create(NULL, self, &d), TN_ERR_KIND);
    assert_status(tn_driver_create(&ops, self, NULL), TN_ERR_KIND);
    ops.size = 0;
    assert_status(tn_driver_create(&ops, self, &d), TN_ERR_KIND);
    ops.size = sizeof(ops) - 1;
    assert_status(tn_driver_create(&ops, self, &d), TN_ERR_KIND);
    ops = *tn_driver_table(f->driver);
    ops.abi = TN_DRIVER_ABI + 1;
    assert_status(tn_driver_create(&ops, self, &d), TN_ERR_UNSUPPORTED);
#define REQUIRED(entry)                                                                            \
    ops = *tn_driver_table(f->driver);                                                             \
    ops.entry = NULL;                                                                              \
    assert_status(tn_driver_create(&ops, self, &d), TN_ERR_KIND)
    REQUIRED(name);
    REQUIRED(device_count);
    REQUIRED(device_alloc);
    REQUIRED(device_free);
    REQUIRED(pinned_alloc);
    REQUIRED(pinned_free);
    REQUIRED(stream_create);
    REQUIRED(stream_destroy);
    REQUIRED(stream_info);
    REQUIRED(stream_synchronize);
    REQUIRED(stream_wait);
    REQUIRED(event_create);
    REQUIRED(event_destroy);
    REQUIRED(event_record);
    REQUIRED(event_query);
    REQUIRED(event_synchronize);
    REQUIRED(copy);
    REQUIRED(device_synchronize);
    assert_null(d);
    ops = *tn_driver_table(f->driver);
    ops.capabilities = NULL;
    ops.last_code = NULL;
    ops.host_function = NULL;
    ops.device_memory = NULL;
    ops.pointer_location = NULL;
    assert_ok(tn_driver_create(&ops, self, &d));
    tn_driver_destroy(d);
    tn_driver_destroy(NULL);
    assert_string_equal(tn_driver_name(NULL), "none");
    assert_null(tn_driver_table(NULL));
    assert_null(tn_driver_self(NULL));
    assert_status(tn_driver_open_cuda(NULL), TN_ERR_KIND);
    assert_non_null(tn_driver_why());
}

/* What an optional entry would have told is absent. */
static void driver_without_optional_entries(void **state) {
    struct spec *f = *state;
    static tn_driver_ops ops;
    tn_config config = spec_config(f);
    tn_driver *d = NULL;
    tn_manager *m;
    tn_handle h;
    tn_report r;

    ops = *tn_driver_table(f->driver);
    ops.capabilities = NULL;
    ops.last_code = NULL;
    ops.host_function = NULL;
    ops.device_memory = NULL;
    ops.pointer_location = NULL;
    assert_ok(tn_driver_create(&ops, tn_driver_self(f->driver), &d));
    config.driver = d;
    m = spec_manager_with(f, &config);
    h = adopt_rep(f, m, P);
    r = ensure(m, h, C0);
    assert_at(r.allocator, C0); /* named all the same (M92) */
    assert_true(r.allocated_bytes_before == TN_READING_ABSENT);
    assert_true(r.held_bytes_after == TN_READING_ABSENT);
    assert_true(loc(m, C0).allocated_bytes == TN_READING_ABSENT);
    ensure(m, h, N);
    spec_destroy(f, m);
    tn_driver_destroy(d);
}

static void memory(void **state) {
    struct spec *f = *state;
    void *block = NULL;

    assert_status(tn_memory_alloc(f->driver, P, 8, NULL), TN_ERR_KIND);
    assert_status(tn_memory_alloc(f->driver, NOWHERE, 8, &block), TN_ERR_KIND);
    assert_status(tn_memory_alloc(f->driver, bad_kind, 8, &block), TN_ERR_KIND);
    assert_status(tn_memory_alloc(f->driver, C2, 8, &block), TN_ERR_VALUE);
    assert_status(tn_memory_alloc(NULL, C0, 8, &block), TN_ERR_VALUE);
    assert_status(tn_memory_alloc(NULL, N, 8, &block), TN_ERR_PAYLOAD);
    assert_status(tn_memory_alloc(f->driver, P, too_many_bytes, &block), TN_ERR_VALUE);
    assert_status(tn_memory_alloc(f->driver, C0, INT64_MAX, &block), TN_ERR_DEVICE_MEMORY);
    assert_null(block);
    block = f;
    assert_ok(tn_memory_alloc(f->driver, C0, 0, &block));
    assert_null(block);
    assert_status(tn_memory_free(f->driver, C0, NULL, 8), TN_OK);
    assert_status(tn_memory_free(NULL, bad_kind, NULL, 8), TN_OK);
    assert_ok(tn_memory_alloc(f->driver, C0, 8, &block));
    assert_status(tn_memory_free(f->driver, bad_kind, block, 8), TN_ERR_KIND);
    assert_status(tn_memory_free(NULL, C0, block, 8), TN_ERR_KIND);
    assert_ok(tn_memory_free(f->driver, C0, block, 8));
    assert_ok(tn_memory_alloc(f->driver, N, 8, &block));
    assert_status(tn_memory_free(NULL, N, block, 8), TN_ERR_KIND);
    assert_status(tn_memory_free(f->driver, N, block, 9), TN_ERR_VALUE);
    assert_status(tn_memory_free(f->driver, N, &block, 8), TN_ERR_VALUE);
    assert_ok(tn_memory_free(f->driver, N, block, 8));
    assert_status(tn_memory_free(f->driver, N, block, 8), TN_ERR_VALUE); /* twice */
}

static void figures_of_memory(void **state) {
    struct spec *f = *state;
    tn_pinned_figures pinned = TN_PINNED_FIGURES_INIT;

    assert_status(tn_host_read_memory(NULL), TN_ERR_KIND);
    CHECK_OUT(tn_host_figures, tn_host_read_memory(it));
    assert_status(tn_driver_read_pinned(f->driver, NULL), TN_ERR_KIND);
    assert_status(tn_driver_read_pinned(NULL, &pinned), TN_ERR_KIND);
    CHECK_OUT(tn_pinned_figures, tn_driver_read_pinned(f->driver, it));
    assert_status(tn_driver_trim_pinned(NULL, NULL), TN_ERR_KIND);
    assert_ok(tn_driver_trim_pinned(f->driver, NULL));
    assert_status(tn_driver_set_pinned_chunk(NULL, 0), TN_ERR_KIND);
    assert_status(tn_driver_set_pinned_chunk(f->driver, too_many_bytes), TN_ERR_VALUE);
    assert_ok(tn_driver_set_pinned_chunk(f->driver, 0));
}

/* ---- sim.h ----------------------------------------------------------------------------------- */

static void refuse_machine(const char *text, uint64_t column) {
    tn_sim *sim = NULL;
    tn_status status = tn_sim_create(text, &sim);

    if (status != TN_ERR_VALUE || tn_last_error()->actual != column)
        print_error("machine '%s':\n", text);
    assert_status(status, TN_ERR_VALUE);
    assert_null(sim);
    assert_int_equal(tn_last_error()->actual, column);
    assert_true(strlen(tn_last_error()->message) > 0);
}

static void machine_strings(void **state) {
    tn_sim *sim = NULL;

    (void)state;
    assert_status(tn_sim_create("dev:2", NULL), TN_ERR_KIND);
    refuse_machine("dev", 1);
    refuse_machine("dev:", 5);
    refuse_machine("dev:x", 5);
    refuse_machine("dev:2x", 6);
    refuse_machine("dev:129", 5);
    refuse_machine("dev:99999999999999999999", 5);
    refuse_machine("dev:-1", 5);
    refuse_machine(" dev:2", 1);
    refuse_machine("dev:2 ", 7);
    refuse_machine("dev:2 dev:2", 7);
    refuse_machine("dev:2 mem=", 11);
    refuse_machine("dev:2 mem=64mib", 13);
    refuse_machine("dev:2 mem=99999999TiB", 11);
    refuse_machine("mem=1.5GiB", 6);
    refuse_machine("link=nowhere:1GBps", 6);
    refuse_machine("link=host:12", 13);
    refuse_machine("link=host:12 GBps", 13);
    refuse_machine("link=host:0GBps", 11);
    refuse_machine("latency=2", 10);
    refuse_machine("latency=2us\tdev:2", 10);
    refuse_machine("clock=real", 7);
    refuse_machine("nonsense", 1);
    assert_ok(tn_sim_create(NULL, &sim));
    tn_sim_destroy(sim);
    assert_ok(tn_sim_create("", &sim));
    tn_sim_destroy(sim);
    tn_sim_destroy(NULL);
    assert_null(tn_sim_driver(NULL));
}

static void simulator_arguments(void **state) {
    struct spec *f = *state;
    tn_sim *sim = f->sim;
    tn_sim_fault fault = TN_SIM_FAULT_INIT;
    tn_sim_memory figures = {.size = sizeof(figures)};
    tn_stream s = NULL;

    assert_status(tn_sim_set_waits(sim, 2), TN_ERR_KIND);
    assert_status(tn_sim_set_state(sim, TN_SIM_FAKE_PINNED + 1), TN_ERR_KIND);
    assert_status(tn_sim_set_host_calls(sim, 2), TN_ERR_KIND);
    assert_status(tn_sim_stream_create(NULL, 0, 0, &s), TN_ERR_KIND);
    assert_status(tn_sim_stream_create(sim, 0, 0, NULL), TN_ERR_KIND);
    assert_status(tn_sim_stream_create(sim, 2, 0, &s), TN_ERR_VALUE);
    assert_status(tn_sim_stream_create(sim, 0, 4, &s), TN_ERR_VALUE);
    assert_null(s);
    s = spec_stream(f, 0);
    assert_int_not_equal(tn_sim_stream_destroy(sim, no_stream), TN_OK);
    assert_int_not_equal(tn_sim_queue_delay(sim, no_stream, 1), TN_OK);
    assert_int_not_equal(tn_sim_queue_read(sim, no_stream, NULL, 0, 1), TN_OK);
    assert_int_not_equal(tn_sim_queue_write(sim, no_stream, NULL, 0, 0, 1), TN_OK);
    assert_status(tn_sim_fault_arm(sim, NULL), TN_ERR_KIND);
    fault.entry = TN_SIM_ENTRY_COUNT;
    assert_status(tn_sim_fault_arm(sim, &fault), TN_ERR_KIND);
    fault.entry = TN_SIM_COPY;
    fault.flags = 16;
    assert_status(tn_sim_fault_arm(sim, &fault), TN_ERR_KIND);
    fault.flags = 0;
    CHECK_IN(tn_sim_fault, &fault, tn_sim_fault_arm(sim, it));
    tn_sim_fault_clear(sim);
    assert_status(tn_sim_read_memory(sim, C0, NULL), TN_ERR_KIND);
    assert_status(tn_sim_read_memory(sim, P, &figures), TN_ERR_VALUE);
    assert_status(tn_sim_read_memory(sim, C2, &figures), TN_ERR_VALUE);
    assert_status(tn_sim_read_memory(sim, bad_kind, &figures), TN_ERR_KIND);
    CHECK_OUT(tn_sim_memory, tn_sim_read_memory(sim, C0, it));
    assert_status(tn_sim_read_traffic(sim, P, C0, NULL), TN_ERR_KIND);
    CHECK_OUT(tn_sim_traffic, tn_sim_read_traffic(sim, P, C0, it));
    assert_status(
        tn_sim_read_traffic(sim, P, C2, &(tn_sim_traffic){.size = sizeof(tn_sim_traffic)}),
        TN_ERR_VALUE);
    assert_status(
        tn_sim_read_traffic(sim, bad_kind, C0, &(tn_sim_traffic){.size = sizeof(tn_sim_traffic)}),
        TN_ERR_KIND);
    assert_int_equal(tn_sim_calls(sim, TN_SIM_ENTRY_COUNT), 0);
}

static void simulator_is_null(void **state) {
    tn_sim_fault fault = TN_SIM_FAULT_INIT;
    tn_sim_memory figures = {.size = sizeof(figures)};
    tn_sim_traffic traffic = {.size = sizeof(traffic)};

    (void)state;
    assert_status(tn_sim_advance(NULL, 1), TN_ERR_KIND);
    assert_status(tn_sim_run(NULL), TN_ERR_KIND);
    assert_status(tn_sim_set_waits(NULL, 0), TN_ERR_KIND);
    assert_status(tn_sim_set_state(NULL, 0), TN_ERR_KIND);
    assert_status(tn_sim_set_host_calls(NULL, 0), TN_ERR_KIND);
    assert_status(tn_sim_stream_destroy(NULL, no_stream), TN_ERR_KIND);
    assert_status(tn_sim_queue_delay(NULL, no_stream, 1), TN_ERR_KIND);
    assert_status(tn_sim_queue_read(NULL, no_stream, NULL, 0, 1), TN_ERR_KIND);
    assert_status(tn_sim_queue_write(NULL, no_stream, NULL, 0, 0, 1), TN_ERR_KIND);
    assert_status(tn_sim_fault_arm(NULL, &fault), TN_ERR_KIND);
    assert_status(tn_sim_read_memory(NULL, C0, &figures), TN_ERR_KIND);
    assert_status(tn_sim_read_traffic(NULL, P, C0, &traffic), TN_ERR_KIND);
}

static void threaded_clock_is_not_stepped(void **state) {
    struct spec *f = *state;

    spec_machine(f, "dev:1 clock=threads");
    assert_status(tn_sim_advance(f->sim, 1), TN_ERR_MISUSE);
    assert_status(tn_sim_run(f->sim), TN_ERR_MISUSE);
}

static const struct CMUnitTest tests[] = {
    SPEC_SERIAL(driver_tables),
    SPEC_BOTH(driver_without_optional_entries),
    SPEC_SERIAL(memory),
    SPEC_SERIAL(figures_of_memory),
    SPEC_SERIAL(machine_strings),
    SPEC_SERIAL(simulator_arguments),
    SPEC_SERIAL(simulator_is_null),
    SPEC_SERIAL(threaded_clock_is_not_stepped),
};

TN_TEST_MAIN("spec.bad_input_drivers", tests)
