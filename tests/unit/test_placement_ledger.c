/* SPDX-License-Identifier: MIT */
/* Admission words. Covers B1, B2, the peaks (M46..M49), zero bytes (M43), sums above INT64_MAX. */
#include <pthread.h>

#include "placement_fixture.h"

static tn__ledger make_ledger(uint64_t budget) {
    tn__ledger l;
    memset(&l, 0, sizeof l);
    l.budget = budget;
    return l;
}

static void expect(const tn__ledger *l, uint64_t total, uint64_t claimed, uint64_t peak) {
    uint64_t got_total, got_claimed;
    tn__ledger_read(l, &got_total, &got_claimed);
    assert_int_equal(got_total, total);
    assert_int_equal(got_claimed, claimed);
    assert_int_equal(tn__load_rlx(&l->peak_charged), peak);
}

static void ledger_charge_up_to_the_budget_is_admitted(void **state) {
    (void)state;
    tn__ledger l = make_ledger(100);
    assert_true(tn__ledger_charge(&l, 60));
    assert_true(tn__ledger_charge(&l, 40));
    expect(&l, 100, 0, 100);
    assert_false(tn__ledger_charge(&l, 1));
    tn__ledger_uncharge(&l, 30);
    expect(&l, 70, 0, 100);
    assert_false(tn__ledger_charge(&l, 31));
    assert_true(tn__ledger_charge(&l, 30));
    tn__ledger_uncharge(&l, 100);
    expect(&l, 0, 0, 100);
}

static void ledger_refusal_changes_nothing(void **state) {
    (void)state;
    tn__ledger l = make_ledger(10);
    assert_true(tn__ledger_charge(&l, 3));
    assert_false(tn__ledger_charge(&l, 8));
    assert_false(tn__ledger_claim(&l, 8));
    assert_false(tn__ledger_charge(&l, UINT64_MAX));
    assert_false(tn__ledger_claim(&l, UINT64_MAX));
    expect(&l, 3, 0, 3);
}

static void ledger_zero_bytes_always_fit(void **state) {
    (void)state;
    tn__ledger none = make_ledger(0), full = make_ledger(5);
    assert_true(tn__ledger_charge(&full, 5));
    assert_true(tn__ledger_charge(&none, 0) && tn__ledger_claim(&none, 0));
    assert_true(tn__ledger_charge(&full, 0) && tn__ledger_claim(&full, 0));
    tn__ledger_uncharge(&none, 0);
    tn__ledger_unclaim(&none, 0);
    tn__ledger_settle(&full, 0);
    tn__ledger_reclaim(&full, 0);
    assert_false(tn__ledger_charge(&none, 1));
    expect(&none, 0, 0, 0);
    expect(&full, 5, 0, 5);
}

static void ledger_claim_counts_but_raises_no_peak(void **state) {
    (void)state;
    tn__ledger l = make_ledger(100);
    assert_true(tn__ledger_charge(&l, 10));
    assert_true(tn__ledger_claim(&l, 70));
    expect(&l, 80, 70, 10);
    assert_false(tn__ledger_charge(&l, 21));
    tn__ledger_settle(&l, 30);
    expect(&l, 80, 40, 40);
    tn__ledger_unclaim(&l, 40);
    expect(&l, 40, 0, 40);
    tn__ledger_reclaim(&l, 25);
    expect(&l, 40, 25, 40);
    tn__ledger_unclaim(&l, 25);
    expect(&l, 15, 0, 40);
}

static void ledger_peak_is_of_charged_bytes_only(void **state) {
    (void)state;
    tn__ledger l = make_ledger(TN__UNLIMITED);
    assert_true(tn__ledger_claim(&l, 1000));
    assert_true(tn__ledger_charge(&l, 5));
    expect(&l, 1005, 1000, 5);
    tn__ledger_uncharge(&l, 5);
    assert_true(tn__ledger_charge(&l, 4));
    expect(&l, 1004, 1000, 5);
}

static void ledger_sums_stop_at_int64_max(void **state) {
    (void)state;
    static const uint64_t budgets[] = {TN__UNLIMITED, INT64_MAX};
    for (size_t i = 0; i < 2; i++) {
        tn__ledger l = make_ledger(budgets[i]);
        assert_false(tn__ledger_charge(&l, (uint64_t)INT64_MAX + 1));
        assert_true(tn__ledger_charge(&l, INT64_MAX - 1));
        assert_false(tn__ledger_charge(&l, 2));
        assert_false(tn__ledger_claim(&l, INT64_MAX));
        assert_true(tn__ledger_claim(&l, 1));
        assert_false(tn__ledger_charge(&l, 1));
        expect(&l, INT64_MAX, 1, INT64_MAX - 1);
        tn__ledger_settle(&l, 1);
        expect(&l, INT64_MAX, 0, INT64_MAX);
        tn__ledger_uncharge(&l, INT64_MAX);
        expect(&l, 0, 0, INT64_MAX);
    }
}

/* ---- Threads ------------------------------------------------------------------------------ */

#define THREADS 4
#define TURNS 20000
#define BUDGET 1000

struct race {
    tn__ledger ledger;
    uint64_t guarded;      /* plain: one byte of budget is a lock */
    _Atomic uint64_t held; /* bytes that their holders know to be theirs */
};

static const char *charge_and_claim(int index, void *arg) {
    struct race *race = arg;
    uint64_t seed = tn_test_seed() + (uint64_t)index * 77 + 1;
    for (int i = 0; i < TURNS; i++) {
        uint64_t bytes = random_next(&seed) % 600, total, claimed;
        bool by_claim = random_next(&seed) % 2;
        if (!(by_claim ? tn__ledger_claim : tn__ledger_charge)(&race->ledger, bytes))
            continue;
        TN_WORKER_CHECK(tn__add_rlx(&race->held, bytes) + bytes <= BUDGET);
        if (by_claim)
            tn__ledger_settle(&race->ledger, bytes / 2);
        tn__ledger_read(&race->ledger, &total, &claimed);
        TN_WORKER_CHECK(claimed <= total && total <= BUDGET && total >= bytes);
        tn__sub_rlx(&race->held, bytes);
        if (by_claim) {
            tn__ledger_uncharge(&race->ledger, bytes / 2);
            tn__ledger_unclaim(&race->ledger, bytes - bytes / 2);
        } else {
            tn__ledger_uncharge(&race->ledger, bytes);
        }
    }
    return NULL;
}

static void ledger_of_threads_never_exceeds_its_budget(void **state) {
    (void)state;
    static struct race race;
    memset(&race, 0, sizeof race);
    race.ledger.budget = BUDGET;
    assert_null_text(tn_test_workers_run(THREADS, charge_and_claim, &race));
    uint64_t peak = tn__load_rlx(&race.ledger.peak_charged);
    assert_in_range(peak, 1, BUDGET);
    expect(&race.ledger, 0, 0, peak);
}

static const char *one_byte_is_a_lock(int index, void *arg) {
    struct race *race = arg;
    (void)index;
    for (int i = 0; i < TURNS / 4;) {
        if (!tn__ledger_charge(&race->ledger, 1))
            continue;
        race->guarded++; /* TSan watches the order of the two CAS */
        tn__ledger_uncharge(&race->ledger, 1);
        i++;
    }
    return NULL;
}

static void ledger_bytes_given_up_order_what_came_before(void **state) {
    (void)state;
    static struct race race;
    memset(&race, 0, sizeof race);
    race.ledger.budget = 1;
    assert_null_text(tn_test_workers_run(2, one_byte_is_a_lock, &race));
    assert_int_equal(race.guarded, 2 * (TURNS / 4));
    expect(&race.ledger, 0, 0, 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(ledger_charge_up_to_the_budget_is_admitted),
    cmocka_unit_test(ledger_refusal_changes_nothing),
    cmocka_unit_test(ledger_zero_bytes_always_fit),
    cmocka_unit_test(ledger_claim_counts_but_raises_no_peak),
    cmocka_unit_test(ledger_peak_is_of_charged_bytes_only),
    cmocka_unit_test(ledger_sums_stop_at_int64_max),
    cmocka_unit_test(ledger_of_threads_never_exceeds_its_budget),
    cmocka_unit_test(ledger_bytes_given_up_order_what_came_before),
};

TN_TEST_MAIN("unit.placement_ledger", tests)
