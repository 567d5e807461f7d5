/* SPDX-License-Identifier: MIT */
/* src/driver/sim/sim_parse.c: the machine string, item by item, and each error with its column. */
#include "sim_machine.h"

#include "driver/sim/sim_priv.h"

static tn__sim_machine parsed(const char *text) {
    tn__sim_machine m;

    memset(&m, 0x5a, sizeof(m));
    assert_ok(tn__sim_parse(text, &m));
    return m;
}

static void assert_defaults(tn__sim_machine m) {
    assert_int_equal(m.devices, 1);
    assert_int_equal(m.memory_bytes, UINT64_C(1) << 30);
    assert_true(m.pinned_bytes == TN__SIM_NO_LIMIT);
    assert_true(m.pool_bytes == TN__SIM_NO_LIMIT);
    assert_int_equal(m.host_rate, 0);
    assert_int_equal(m.peer_rate, 0);
    assert_int_equal(m.latency_ns, 0);
    assert_int_equal(m.pin_ns, 0);
    assert_int_equal(m.disk_rate, 0);
    assert_int_equal(m.seek_ns, 0);
    assert_false(m.seeded);
    assert_false(m.shared);
    assert_false(m.threads);
}

static void machine_without_text_has_defaults(void **state) {
    (void)state;
    assert_defaults(parsed(NULL));
    assert_defaults(parsed(""));
}

static void machine_with_all_items_keeps_each(void **state) {
    tn__sim_machine m = parsed("dev:2 mem=64MiB pinned=3KiB pool=5 link=host:12GBps "
                               "link=peer:40MBps latency=2us pin=200ms host=shared disk=3.5GBps "
                               "seek=80us seed=18 clock=threads");

    (void)state;
    assert_int_equal(m.devices, 2);
    assert_int_equal(m.memory_bytes, UINT64_C(64) << 20);
    assert_int_equal(m.pinned_bytes, 3072);
    assert_int_equal(m.pool_bytes, 5);
    assert_int_equal(m.host_rate, UINT64_C(12000000000));
    assert_int_equal(m.peer_rate, 40000000);
    assert_int_equal(m.latency_ns, 2000);
    assert_int_equal(m.pin_ns, 200 * MS);
    assert_true(m.shared);
    assert_int_equal(m.disk_rate, UINT64_C(3500000000));
    assert_int_equal(m.seek_ns, 80000);
    assert_true(m.seeded);
    assert_int_equal(m.seed, 18);
    assert_true(m.threads);
}

static void machine_items_come_in_any_order_with_any_blanks(void **state) {
    tn__sim_machine m = parsed("clock=virtual    latency=7ns dev:0");

    (void)state;
    assert_int_equal(m.devices, 0);
    assert_int_equal(m.latency_ns, 7);
    assert_false(m.threads);
}

static void machine_sizes_know_their_units(void **state) {
    (void)state;
    assert_int_equal(parsed("mem=0").memory_bytes, 0);
    assert_int_equal(parsed("mem=17B").memory_bytes, 17);
    assert_int_equal(parsed("mem=17KiB").memory_bytes, 17 * 1024);
    assert_int_equal(parsed("mem=2GiB").memory_bytes, UINT64_C(2) << 30);
    assert_int_equal(parsed("mem=2TiB").memory_bytes, UINT64_C(2) << 40);
    assert_int_equal(parsed("mem=9223372036854775807").memory_bytes, INT64_MAX);
}

static void machine_rates_know_units_and_fractions(void **state) {
    (void)state;
    assert_int_equal(parsed("link=host:1Bps").host_rate, 1);
    assert_int_equal(parsed("link=host:25kBps").host_rate, 25000);
    assert_int_equal(parsed("link=peer:0.5kBps").peer_rate, 500);
    assert_int_equal(parsed("link=host:12.000000001GBps").host_rate, UINT64_C(12000000001));
    assert_int_equal(parsed("link=host:1.2345678901234567890GBps").host_rate, 1234567890);
}

static void machine_times_know_their_units(void **state) {
    (void)state;
    assert_int_equal(parsed("latency=3ms").latency_ns, 3 * MS);
    assert_int_equal(parsed("latency=3s").latency_ns, 3000 * MS);
}

static void machine_seed_may_be_zero(void **state) {
    tn__sim_machine m = parsed("host=separate seed=0");

    (void)state;
    assert_true(m.seeded);
    assert_int_equal(m.seed, 0);
    assert_false(m.shared);
}

static void machine_has_up_to_128_devices(void **state) {
    (void)state;
    assert_int_equal(parsed("dev:128").devices, 128);
}

/* The part of the message after the column, and the column itself. */
static const struct {
    const char *text;
    uint64_t column;
    const char *what;
} wrong[] = {
    {" ", 1, "expected dev:"},
    {"dev", 1, "expected dev:"},
    {"dev:1 mem", 7, "expected dev:"},
    {"dev:1,mem=1", 6, "expected a space or the end"},
    {"dev:1 ", 7, "expected an item after the space"},
    {"dev:1   ", 9, "expected an item after the space"},
    {"dev:", 5, "expected a number"},
    {"dev:-1", 5, "expected a number"},
    {"dev: 1", 5, "expected a number"},
    {"dev:129", 5, "at most 128 devices"},
    {"dev:99999999999999999999", 5, "the number is too large"},
    {"dev:1 dev:1", 7, "this item stands twice"},
    {"mem=1 mem=2", 7, "this item stands twice"},
    {"link=host:1Bps link=host:1Bps", 16, "this item stands twice"},
    {"mem=", 5, "expected a number"},
    {"mem=1MB", 6, "expected B, KiB, MiB, GiB, TiB or the end"},
    {"mem=1MiBs", 6, "expected B, KiB, MiB, GiB, TiB or the end"},
    {"mem=1.5MiB", 6, "expected B, KiB, MiB, GiB, TiB or the end"},
    {"mem=9223372036854775808", 5, "the number is too large"},
    {"mem=8388608TiB", 5, "the value is too large"},
    {"pinned=x", 8, "expected a number"},
    {"pool=1kB", 7, "expected B, KiB"},
    {"link=", 6, "expected host: or peer:"},
    {"link=host", 6, "expected host: or peer:"},
    {"link=dev:1Bps", 6, "expected host: or peer:"},
    {"link=host:", 11, "expected a number"},
    {"link=host:1", 12, "expected Bps, kBps, MBps or GBps"},
    {"link=host:1KBps", 12, "expected Bps, kBps, MBps or GBps"},
    {"link=host:1.", 13, "expected digits after the point"},
    {"link=host:.5GBps", 11, "expected a number"},
    {"link=host:1.5 GBps", 14, "expected Bps, kBps, MBps or GBps"},
    {"link=host:0GBps", 11, "a rate is at least 1 Bps"},
    {"link=host:0.9Bps", 11, "a rate is at least 1 Bps"},
    {"link=peer:9223372037GBps", 11, "the value is too large"},
    {"latency=", 9, "expected a number"},
    {"latency=1", 10, "expected ns, us, ms or s"},
    {"latency=1m", 10, "expected ns, us, ms or s"},
    {"latency=9223372037s", 9, "the value is too large"},
    {"pin=", 5, "expected a number"},
    {"pin=1", 6, "expected ns, us, ms or s"},
    {"pin=1ms pin=1ms", 9, "this item stands twice"},
    {"host=", 6, "expected separate or shared"},
    {"host=sharedx", 6, "expected separate or shared"},
    {"disk=", 6, "expected a number"},
    {"disk=0Bps", 6, "a rate is at least 1 Bps"},
    {"disk=1MiBps", 7, "expected Bps, kBps, MBps or GBps"},
    {"seek=1.5ms", 7, "expected ns, us, ms or s"},
    {"seed=", 6, "expected a number"},
    {"seed=-1", 6, "expected a number"},
    {"seed=1x", 7, "expected a space or the end"},
    {"seed=9223372036854775808", 6, "the number is too large"},
    {"clock=", 7, "expected virtual or threads"},
    {"clock=thread", 7, "expected virtual or threads"},
    {"clock=real mem=1", 7, "expected virtual or threads"},
};

static void machine_malformed_names_column_and_reason(void **state) {
    tn_sim *sim = (tn_sim *)&sim;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char column[32];
        const tn_error *e;

        print_message("%s\n", wrong[i].text);
        assert_status(tn_sim_create(wrong[i].text, &sim), TN_ERR_VALUE);
        assert_ptr_equal(sim, &sim);
        e = tn_last_error();
        assert_int_equal(e->actual, wrong[i].column);
        snprintf(column, sizeof(column), "column %u: ", (unsigned)wrong[i].column);
        assert_non_null(strstr(e->message, column));
        assert_non_null(strstr(e->message, wrong[i].what));
    }
}

static void machine_without_out_is_refused(void **state) {
    (void)state;
    assert_status(tn_sim_create("dev:1", NULL), TN_ERR_KIND);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(machine_without_text_has_defaults),
    cmocka_unit_test(machine_with_all_items_keeps_each),
    cmocka_unit_test(machine_items_come_in_any_order_with_any_blanks),
    cmocka_unit_test(machine_sizes_know_their_units),
    cmocka_unit_test(machine_rates_know_units_and_fractions),
    cmocka_unit_test(machine_times_know_their_units),
    cmocka_unit_test(machine_seed_may_be_zero),
    cmocka_unit_test(machine_has_up_to_128_devices),
    cmocka_unit_test(machine_malformed_names_column_and_reason),
    cmocka_unit_test(machine_without_out_is_refused),
};

TN_TEST_MAIN("unit.sim_parse", tests)
