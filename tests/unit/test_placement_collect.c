/* SPDX-License-Identifier: MIT */
/*
 * Pins and reclaim. Covers P1, P2, P4 (first the grace period, then the pins), N2: after a collect
 * exactly the blocks that pinned versions and the current one need are left.
 */
#include <pthread.h>

#include "placement_fixture.h"

/* ---- What stays --------------------------------------------------------------------------- */

static void store_pin_counts_version_and_store(void **state) {
    (void)state;
    uint64_t blocks = tn__alloc_live();
    tn__store *s = make_store(0);
    const tn_version *v = tn__store_pin(s);
    assert_ptr_equal(v, s->newest);
    assert_int_equal(v->number, 0);
    assert_int_equal(tn__load_rlx(&v->refs), 2);
    assert_ptr_equal(tn__store_current(s), v);
    populate(s, 100, tn_location_pinned(), 1);
    assert_int_equal(tn__load_rlx(&v->refs), 1);
    assert_ptr_not_equal(tn__store_current(s), v);
    tn__store_release(s); /* the manager goes, the snapshot stays */
    assert_int_equal(v->value_count, 0);
    tn__store_unpin(s, v);
    assert_int_equal(tn__alloc_live(), blocks);
}

static void collect_of_nothing_does_nothing(void **state) {
    (void)state;
    tn__store *s = make_store(0);
    uint64_t freed = 5;
    assert_false(tn__store_has_garbage(s));
    assert_ok(tn__store_collect(s, &freed));
    assert_int_equal(freed, 5);
    tn__store_release(s);
}

static void collect_in_a_section_is_refused(void **state) {
    (void)state;
    tn__store *s = make_store(0);
    uint64_t freed = 0;
    populate(s, 1, tn_location_pinned(), 1);
    tn__rcu_thread_ready(tn__thread_self());
    tn__rcu_lock();
    assert_status(tn__store_collect(s, &freed), TN_ERR_REENTRANCY);
    tn__rcu_unlock();
    assert_int_equal(freed, 0);
    assert_true(tn__store_has_garbage(s));
    assert_int_equal(collect(s), 2); /* the first version and its table */
    tn__store_release(s);
}

static void collect_leaves_exactly_what_a_pin_needs(void **state) {
    (void)state;
    uint64_t blocks = tn__alloc_live();
    tn_location at = tn_location_cuda(0);
    tn__store *s = make_store(0);
    uint64_t empty = tn__alloc_live() - 2; /* without version and table */
    populate(s, 2000, at, 3);
    const tn_version *pinned = tn__store_pin(s);
    for (uint64_t i = 1; i <= 2000; i += 9)
        churn(s, i, at);
    assert_true(collect(s) > 0);
    const tn_version *both[] = {pinned, s->newest};
    assert_int_equal(tn__alloc_live() - empty, blocks_of(both, 2));
    assert_null(version_fault(pinned));
    assert_int_equal(pinned->number, 2001);
    assert_false(tn__store_has_garbage(s)); /* a pin alone is no reason to try again */
    assert_int_equal(collect(s), 0);
    tn__store_unpin(s, pinned);
    assert_true(tn__store_has_garbage(s));
    assert_true(collect(s) > 0);
    assert_int_equal(tn__alloc_live() - empty, blocks_of(both + 1, 1));
    assert_int_equal(s->versions_published - s->versions_freed, 0);
    tn__store_release(s);
    assert_int_equal(tn__alloc_live(), blocks);
}

#define PINS 12

/* Random publishes, pins, unpins and collects; after each collect the blocks are exactly those
 * needed. */
static void collect_with_many_pins_is_exact(void **state) {
    (void)state;
    const tn_version *pins[PINS + 1] = {NULL};
    uint64_t seed = random_start(), blocks = tn__alloc_live();
    tn_location at = tn_location_pageable();
    tn__store *s = make_store(0);
    uint64_t empty = tn__alloc_live() - 2;
    populate(s, 300, at, 3);
    for (int turn = 0; turn < 600; turn++) {
        const tn_version **pin = &pins[random_next(&seed) % PINS];
        if (*pin)
            tn__store_unpin(s, *pin);
        *pin = random_next(&seed) % 3 ? tn__store_pin(s) : NULL;
        for (uint64_t n = random_next(&seed) % 4; n > 0; n--)
            churn(s, random_next(&seed) % 300 + 1, at);
        if (random_next(&seed) % 3)
            continue;
        collect(s);
        const tn_version *need[PINS + 1] = {s->newest};
        size_t count = 1;
        for (int i = 0; i < PINS; i++)
            if (pins[i])
                need[count++] = pins[i];
        assert_int_equal(tn__alloc_live() - empty, blocks_of(need, count));
        for (size_t i = 0; i < count; i++)
            assert_null(version_fault(need[i]));
    }
    for (int i = 0; i < PINS; i++)
        if (pins[i])
            tn__store_unpin(s, pins[i]);
    collect(s);
    assert_int_equal(tn__alloc_live() - empty, blocks_of((const tn_version *const *)&s->newest, 1));
    tn__store_release(s);
    assert_int_equal(tn__alloc_live(), blocks);
}

static void release_with_garbage_and_pins_frees_everything(void **state) {
    (void)state;
    uint64_t blocks = tn__alloc_live();
    tn_location at = tn_location_pageable();
    tn__store *s = make_store(0);
    populate(s, 100, at, 3);
    const tn_version *one = tn__store_pin(s);
    churn(s, 5, at);
    collect(s);
    const tn_version *two = tn__store_pin(s);
    churn(s, 6, at); /* not collected */
    tn__store_release(s);
    tn__store_unpin(s, two);
    assert_null(version_fault(one));
    tn__store_unpin(s, one);
    assert_int_equal(tn__alloc_live(), blocks);
}

/* ---- At the test points ------------------------------------------------------------------- */

#if TN_CHECKS

static struct {
    tn__store *store;
    const tn_version *pinned;
    enum tn__point at;
    int hits;
    uint64_t freed;
    tn_status status;
} during;

static void at_point(enum tn__point point, void (*what)(enum tn__point, void *)) {
    during.at = point;
    during.hits = 0;
    tn__store_rlx(&tn__point_hook, what);
}

static void publish_once(enum tn__point point, void *object) {
    if (point == during.at && during.hits++ == 0) {
        assert_true(point != TN__POINT_PIN_VERSION || object == during.store);
        churn(during.store, 1, tn_location_pinned());
    }
}

/* F-H03: the version is replaced between load and increment; its count is 0 and stays so. */
static void store_pin_that_lost_its_version_takes_the_next(void **state) {
    (void)state;
    tn__store *s = during.store = make_store(0);
    populate(s, 40, tn_location_pinned(), 1);
    at_point(TN__POINT_PIN_VERSION, publish_once);
    const tn_version *old = s->newest, *v = tn__store_pin(s);
    tn__store_rlx(&tn__point_hook, NULL);
    assert_int_equal(during.hits, 2);
    assert_int_equal(tn__load_rlx(&old->refs), 0);
    assert_ptr_equal(v, s->newest);
    assert_int_equal(tn__load_rlx(&v->refs), 2);
    tn__store_unpin(s, v);
    tn__store_release(s);
}

static void collect_and_unpin(enum tn__point point, void *object) {
    (void)object;
    if (point != during.at || during.hits++ != 0)
        return;
    during.status = tn__store_collect(during.store, &during.freed);
    tn__store_unpin(during.store, during.pinned);
    churn(during.store, 2, tn_location_pinned());
}

/* During a grace period a second collector does nothing; a pin that is given back counts already, a
 * publish does not yet. */
static void collect_during_a_collect_does_nothing(void **state) {
    (void)state;
    uint64_t blocks = tn__alloc_live(), freed = 0;
    tn__store *s = during.store = make_store(0);
    uint64_t empty = tn__alloc_live() - 2;
    populate(s, 40, tn_location_pinned(), 1);
    during.pinned = tn__store_pin(s);
    churn(s, 1, tn_location_pinned());
    const tn_version *old = s->newest;
    during.freed = 0;
    at_point(TN__POINT_GRACE, collect_and_unpin);
    assert_ok(tn__store_collect(s, &freed));
    tn__store_rlx(&tn__point_hook, NULL);
    assert_int_equal(during.status, TN_OK);
    assert_int_equal(during.freed, 0);
    assert_int_equal(during.hits, 1);
    const tn_version *need[] = {old, s->newest};
    assert_int_equal(tn__alloc_live() - empty, blocks_of(need, 2));
    assert_true(tn__store_has_garbage(s));
    collect(s);
    assert_int_equal(tn__alloc_live() - empty, blocks_of(need + 1, 1));
    tn__store_release(s);
    assert_int_equal(tn__alloc_live(), blocks);
}

/* The collector waits for a reader that is between load and increment (pin.pml). */
static void *pin_slowly(void *arg) { return (void *)(uintptr_t)tn__store_pin(arg); }

static _Atomic int pin_stage; /* 1: version loaded, 2: may go on */

static void stop_the_reader(enum tn__point point, void *object) {
    (void)object;
    if (point == TN__POINT_GRACE)
        tn__store_rlx(&pin_stage, 2); /* the collector has decided what is old */
    if (point != TN__POINT_PIN_VERSION || during.hits++ != 0)
        return;
    tn__store_rlx(&pin_stage, 1);
    while (tn__load_rlx(&pin_stage) != 2)
        tn__relax();
}

static void collect_waits_for_a_pin_in_progress(void **state) {
    (void)state;
    uint64_t freed = 0;
    tn__store *s = during.store = make_store(0);
    pthread_t reader;
    void *pinned;
    populate(s, 40, tn_location_pinned(), 1);
    const tn_version *old = tn__store_pin(s);
    tn__store_rlx(&pin_stage, 0);
    at_point(TN__POINT_PIN_VERSION, stop_the_reader);
    assert_int_equal(pthread_create(&reader, NULL, pin_slowly, s), 0);
    while (tn__load_rlx(&pin_stage) != 1)
        tn__relax();
    churn(s, 1, tn_location_pinned());
    assert_ok(tn__store_collect(s, &freed));
    assert_int_equal(pthread_join(reader, &pinned), 0);
    tn__store_rlx(&tn__point_hook, NULL);
    assert_ptr_equal(pinned, old); /* our own pin had kept the count above 0 */
    tn__store_unpin(s, old);
    assert_int_equal(collect(s), 0);
    assert_null(version_fault(pinned));
    tn__store_unpin(s, pinned);
    assert_true(collect(s) > 0);
    tn__store_release(s);
}

/* Relaxed hand-overs only, so that the count alone orders the reads before the frees: TSan watches.
 */
static void *read_then_unpin(void *arg) {
    const tn_version *v = tn__store_pin(arg);
    tn__store_rlx(&pin_stage, 1);
    while (tn__load_rlx(&pin_stage) != 2)
        tn__relax();
    const char *fault = version_fault(v);
    tn__store_unpin(arg, v);
    tn__store_rlx(&pin_stage, 3);
    while (tn__load_rlx(&pin_stage) != 4)
        tn__relax(); /* the end of a thread orders much */
    return (void *)(uintptr_t)fault;
}

static void let_the_reader_unpin(enum tn__point point, void *object) {
    (void)object;
    if (point != TN__POINT_GRACE)
        return;
    tn__store_rlx(&pin_stage, 2);
    while (tn__load_rlx(&pin_stage) != 3)
        tn__relax();
}

static void collect_frees_after_the_reads_of_the_last_pin(void **state) {
    (void)state;
    uint64_t blocks = tn__alloc_live(), freed = 0;
    tn__store *s = make_store(0);
    pthread_t reader;
    void *fault;
    populate(s, 40, tn_location_pinned(), 1);
    tn__store_rlx(&pin_stage, 0);
    assert_int_equal(pthread_create(&reader, NULL, read_then_unpin, s), 0);
    while (tn__load_rlx(&pin_stage) != 1)
        tn__relax();
    churn(s, 1, tn_location_pinned());
    tn__store_rlx(&tn__point_hook, let_the_reader_unpin);
    assert_ok(tn__store_collect(s, &freed));
    tn__store_rlx(&tn__point_hook, NULL);
    tn__store_rlx(&pin_stage, 4);
    assert_int_equal(s->versions_freed, s->versions_published);
    assert_int_equal(pthread_join(reader, &fault), 0);
    assert_null(fault);
    tn__store_release(s);
    assert_int_equal(tn__alloc_live(), blocks);
}

#endif

/* ---- Threads ------------------------------------------------------------------------------ */

#define READERS 2
#define SIZE 400

struct race {
    tn__store *store;
    _Atomic int stop;
};

/* In every version all charges at the place are the same, and the sum is what it says. */
static const char *check_version(const tn_version *v) {
    const tn__place *place = tn__version_place(v, tn_location_pinned());
    const tn__mat *first = tn__place_next(place, 0);
    TN_WORKER_CHECK(first && place->value_count == 4);
    for (tn__mat *m = tn__place_next(place, 0); m; m = tn__place_next(place, m->index + 1))
        TN_WORKER_CHECK(m->charged_bytes == first->charged_bytes);
    return version_fault(v);
}

static const char *read_versions(struct race *race) {
    uint64_t last = 0;
    while (!tn__load_rlx(&race->stop) && !tn_test_workers_failed()) {
        const tn_version *v = tn__store_pin(race->store);
        TN_WORKER_CHECK(v && v->number >= last); /* P2 */
        last = v->number;
        const char *fault = check_version(v);
        tn__store_unpin(race->store, v);
        if (fault)
            return fault;
        tn__rcu_lock(); /* the same without a pin */
        fault = check_version(tn__store_current(race->store));
        tn__rcu_unlock();
        if (fault)
            return fault;
    }
    return NULL;
}

/* Reinstall all four residents with another charge, and touch one more value. */
static const char *publish_round(struct race *race, uint64_t round) {
    tn__store *s = race->store;
    tn__build b;
    tn__lock(&s->lock);
    TN_WORKER_STATUS(tn__build_begin(s, &b), TN_OK);
    for (uint64_t i = 1; i <= SIZE; i += SIZE / 4) {
        tn__mat *old = tn__version_value(b.next, i)->mats[0], *mat;
        TN_WORKER_STATUS(try_mat(tn_location_pinned(), round, &mat), TN_OK);
        TN_WORKER_STATUS(tn__build_remove(&b, old), TN_OK);
        TN_WORKER_STATUS(tn__build_install(&b, i, mat), TN_OK);
    }
    TN_WORKER_CHECK(tn__build_value(&b, round % SIZE + 1, 0) != NULL);
    tn__store_publish(&b);
    tn__unlock(&s->lock);
    return NULL;
}

static const char *write_versions(struct race *race) {
    const char *fault = NULL;
    for (uint64_t round = 1; round <= 3000 && !fault && !tn_test_workers_failed(); round++)
        fault = publish_round(race, round);
    tn__store_rlx(&race->stop, 1);
    return fault;
}

static const char *collect_always(struct race *race) {
    uint64_t freed = 0;
    while (!tn__load_rlx(&race->stop) && !tn_test_workers_failed())
        TN_WORKER_STATUS(tn__store_collect(race->store, &freed), TN_OK);
    return NULL;
}

static const char *race_worker(int index, void *arg) {
    if (index == 0)
        return write_versions(arg);
    return index <= 2 ? collect_always(arg) : read_versions(arg);
}

static void pins_race_publish_and_collect(void **state) {
    (void)state;
    uint64_t blocks = tn__alloc_live();
    struct race race = {.store = make_store(0)};
    tn__store *s = race.store;
    tn__build b;
    begin(s, &b);
    for (uint64_t i = 1; i <= SIZE; i++) {
        add(&b, 1);
        if (i % (SIZE / 4) == 1)
            install(&b, i, tn_location_pinned(), 1);
    }
    publish(s, &b);
    assert_null_text(tn_test_workers_run(3 + READERS, race_worker, &race));
    collect(s);
    assert_null(version_fault(s->newest));
    assert_int_equal(s->versions_freed, s->versions_published);
    tn__store_release(s);
    assert_int_equal(tn__alloc_live(), blocks);
}

struct last {
    tn__store *store;
    const tn_version *pins[4];
};

static const char *read_and_unpin(int index, void *arg) {
    struct last *last = arg;
    const char *fault = version_fault(last->pins[index]);
    tn__store_unpin(last->store, last->pins[index]);
    return fault;
}

/* The manager is gone; whichever thread gives back the last pin frees everything. */
static void store_of_threads_is_freed_by_the_last_unpin(void **state) {
    (void)state;
    uint64_t blocks = tn__alloc_live();
    for (int round = 0; round < 30; round++) {
        struct last last = {.store = make_store(0)};
        populate(last.store, 20, tn_location_pinned(), 1);
        for (int i = 0; i < 4; i++) {
            last.pins[i] = tn__store_pin(last.store);
            churn(last.store, 3, tn_location_pinned());
        }
        tn__store_release(last.store);
        assert_null_text(tn_test_workers_run(4, read_and_unpin, &last));
        assert_int_equal(tn__alloc_live(), blocks);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(store_pin_counts_version_and_store),
    cmocka_unit_test(collect_of_nothing_does_nothing),
    cmocka_unit_test(collect_in_a_section_is_refused),
    cmocka_unit_test(collect_leaves_exactly_what_a_pin_needs),
    cmocka_unit_test(collect_with_many_pins_is_exact),
    cmocka_unit_test(release_with_garbage_and_pins_frees_everything),
#if TN_CHECKS
    cmocka_unit_test(store_pin_that_lost_its_version_takes_the_next),
    cmocka_unit_test(collect_during_a_collect_does_nothing),
    cmocka_unit_test(collect_waits_for_a_pin_in_progress),
    cmocka_unit_test(collect_frees_after_the_reads_of_the_last_pin),
#endif
    cmocka_unit_test(pins_race_publish_and_collect),
    cmocka_unit_test(store_of_threads_is_freed_by_the_last_unpin),
};

TN_TEST_MAIN("unit.placement_collect", tests)
