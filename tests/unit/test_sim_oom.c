/* SPDX-License-Identifier: MIT */
/* The simulator's own memory runs out at each of its allocations in turn: every call answers
 * TN_ERR_HOST_MEMORY, nothing is lost. */
#include "sim_machine.h"

#include "driver/sim/sim_priv.h"

static void nothing(void *context) { (void)context; }

/* Everything that allocates, on a machine that exists. Returns the first failure. */
static tn_status use(struct machine *m) {
    tn_sim_fault fault = TN_SIM_FAULT_INIT;
    tn_stream a = NULL;
    tn_stream b = NULL;
    tn_event e = NULL;
    tn_stream_info info;
    void *p = NULL;
    void *q = NULL;
    tn_status status = tn_sim_stream_create(m->sim, 0, 0, &a);

    if (status == TN_OK)
        status = m->ops->stream_create(m->self, 0, &b);
    if (status == TN_OK)
        status = m->ops->stream_info(m->self, a, &info);
    if (status == TN_OK)
        status = m->ops->event_create(m->self, 0, info.context, &e);
    if (status == TN_OK)
        status = m->ops->device_alloc(m->self, 0, 64, &p);
    if (status == TN_OK)
        status = m->ops->pinned_alloc(m->self, 64, &q);
    if (status == TN_OK)
        status = tn_sim_queue_delay(m->sim, a, 10);
    if (status == TN_OK)
        status = to_device(m, 0, p, "1234567", 8, a);
    if (status == TN_OK)
        status = to_device(m, 0, (char *)p + 32, "1234567", 8, NULL);
    if (status == TN_OK)
        status = m->ops->host_function(m->self, a, nothing, NULL);
    if (status == TN_OK)
        status = m->ops->event_record(m->self, e, a);
    if (status == TN_OK)
        status = m->ops->stream_wait(m->self, b, e);
    if (status == TN_OK)
        status = tn_sim_fault_arm(m->sim, &fault);
    tn_sim_fault_clear(m->sim);
    if (a != NULL)
        assert_ok(tn_sim_stream_destroy(m->sim, a));
    if (b != NULL)
        assert_ok(m->ops->stream_destroy(m->self, b));
    if (e != NULL)
        assert_ok(m->ops->event_destroy(m->self, e));
    if (p != NULL)
        device_drop(m, 0, p, 64);
    if (q != NULL)
        assert_ok(m->ops->pinned_free(m->self, q, 64));
    return status;
}

static void run_with_clock(const char *text) {
    uint64_t n;

    for (n = 1;; n++) {
        struct machine m = machine_open(text);
        tn_sim_memory f = {.size = sizeof(f)};
        tn_status status;

        tn__sim_fault_alloc(n);
        status = use(&m);
        tn__sim_fault_alloc(0);
        if (status == TN_OK) {
            tn_sim_destroy(m.sim);
            break;
        }
        assert_true(status == TN_ERR_HOST_MEMORY || status == TN_ERR_DEVICE_MEMORY ||
                    status == TN_ERR_SYSTEM || status == TN_ERR_DRIVER);
        assert_ok(tn_sim_read_memory(m.sim, tn_location_cuda(0), &f));
        assert_int_equal(f.live_blocks, 0);
        assert_int_equal(tn_sim_live_events(m.sim), 0);
        assert_int_equal(tn_sim_live_streams(m.sim), 0);
        assert_ok(use(&m));
        tn_sim_destroy(m.sim);
    }
    assert_true(n > 15);
}

static void machine_survives_every_failed_allocation(void **state) {
    (void)state;
    run_with_clock("clock=virtual");
    run_with_clock("clock=threads");
}

static void machine_without_memory_is_not_created(void **state) {
    tn_sim *sim = NULL;
    uint64_t n;

    (void)state;
    for (n = 1; n <= 3; n++) {
        tn__sim_fault_alloc(n);
        assert_status(tn_sim_create(NULL, &sim), TN_ERR_HOST_MEMORY);
        tn__sim_fault_alloc(0);
    }
    tn__fault_alloc(1); /* the driver's own record */
    assert_status(tn_sim_create(NULL, &sim), TN_ERR_HOST_MEMORY);
    tn__fault_alloc(0);
    assert_null(sim);
    assert_ok(tn_sim_create(NULL, &sim));
    tn_sim_destroy(sim);
}

static void handles_grow_only_when_memory_allows(void **state) {
    struct machine m = machine_open(NULL);
    tn_event e[17];
    tn_stream_info info;
    int i;

    (void)state;
    assert_ok(m.ops->stream_info(m.self, stream_on(&m, 0), &info));
    for (i = 0; i < 16; i++)
        assert_ok(m.ops->event_create(m.self, 0, info.context, &e[i]));
    for (i = 1; i <= 3; i++) {
        tn__sim_fault_alloc((uint64_t)i);
        assert_status(m.ops->event_create(m.self, 0, info.context, &e[16]), TN_ERR_HOST_MEMORY);
        tn__sim_fault_alloc(0);
        assert_int_equal(tn_sim_live_events(m.sim), 16);
    }
    assert_ok(m.ops->event_create(m.self, 0, info.context, &e[16]));
    machine_close(&m);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(machine_survives_every_failed_allocation),
    cmocka_unit_test(machine_without_memory_is_not_created),
    cmocka_unit_test(handles_grow_only_when_memory_allows),
};

TN_TEST_MAIN("unit.sim_oom", tests)
