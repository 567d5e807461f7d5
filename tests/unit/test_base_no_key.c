/* SPDX-License-Identifier: MIT */
/*
 * A process that has no pthread key left when it first calls us: no thread can have a block. Every
 * entry point says so, and nothing breaks (src/base/thread.c, error.c, and all who ask for the
 * thread).
 */
#include <limits.h>
#include <pthread.h>

#include "core_fixture.h"

static pthread_key_t keys[PTHREAD_KEYS_MAX];
static size_t key_count;

static int group_setup(void **state) {
    (void)state;
    while (key_count < PTHREAD_KEYS_MAX && pthread_key_create(&keys[key_count], NULL) == 0)
        key_count++;
    return 0;
}

static int group_teardown(void **state) {
    (void)state;
    while (key_count > 0)
        (void)pthread_key_delete(keys[--key_count]);
    return 0;
}

static void manager_cannot_be_created(void **state) {
    tn_manager *m = NULL;
    (void)state;
    assert_null(tn__thread_self());
    assert_status(tn_manager_create(NULL, &m), TN_ERR_HOST_MEMORY);
    assert_null(m);
    assert_int_equal(tn__alloc_live(), 0);
}

/* All threads without a block share one error, which always says the same. */
static void error_of_such_a_thread_is_no_memory(void **state) {
    tn_error kept;
    (void)state;
    assert_status(tn__fail(TN_ERR_VALUE, "lost"), TN_ERR_VALUE);
    assert_int_equal(tn_last_error()->status, TN_ERR_HOST_MEMORY);
    assert_true(tn_last_error()->message[0] != '\0');
    kept = *tn__error_current();
    kept.status = TN_ERR_BUDGET;
    assert_status(tn__error_restore(&kept), TN_ERR_BUDGET);
    assert_int_equal(tn_last_error()->status, TN_ERR_HOST_MEMORY);
}

/* Lifetimes that another thread might have handed over: their records are not looked at. */
static void lifetimes_answer_no_memory(void **state) {
    static tn__record record;
    tn_lease lease = {&record, 1};
    tn_hold held = {&record, 1};
    tn_reservation r = {&record, 1};
    tn_handle h = {1, 1, tt_type()};
    const void *data;
    bool contains;
    size_t count = 0;
    (void)state;
    assert_status(tn_lease_lookup(&lease, h, &data), TN_ERR_HOST_MEMORY);
    assert_status(tn_lease_contains(&lease, h, &contains), TN_ERR_HOST_MEMORY);
    assert_status(tn_lease_handles(&lease, NULL, &count), TN_ERR_HOST_MEMORY);
    assert_status(tn_lease_add_stream(&lease, NULL), TN_ERR_HOST_MEMORY);
    assert_status(tn_lease_release(&lease, 0), TN_ERR_HOST_MEMORY);
    assert_status(tn_hold_release(&held), TN_ERR_HOST_MEMORY);
    assert_status(tn_reservation_release(&r), TN_ERR_HOST_MEMORY);
}

static void managers_answer_no_memory(void **state) {
    tn_manager m = {.id = 1};
    tn_handle h = {1, 1, tt_type()};
    tn_lease lease;
    uint64_t n;
    size_t count = 0;
    (void)state;
    assert_status(tn_manager_state_version(&m, &n), TN_ERR_HOST_MEMORY);
    assert_status(tn_manager_ensure(&m, h, C0, NULL, NULL), TN_ERR_HOST_MEMORY);
    assert_status(tn_manager_acquire(&m, &h, 1, C0, NULL, &lease), TN_ERR_HOST_MEMORY);
    assert_status(tn_manager_locations(&m, NULL, &count), TN_ERR_HOST_MEMORY);
    assert_status(tn_manager_close(&m, 0), TN_ERR_HOST_MEMORY);
    assert_status(tn_manager_destroy(&m), TN_ERR_HOST_MEMORY);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(manager_cannot_be_created),
    cmocka_unit_test(error_of_such_a_thread_is_no_memory),
    cmocka_unit_test(lifetimes_answer_no_memory),
    cmocka_unit_test(managers_answer_no_memory),
};

TN_TEST_MAIN_FIXTURE("unit.base_no_key", tests, group_setup, group_teardown)
