/* SPDX-License-Identifier: MIT */
/* src/base/error.c: the thread's own error, its texts, keeping and restoring it (M244). */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <tenure/error.h>

#include "base/base_internal.h"
#include "tn_test.h"

static void error_begins_afresh(void **state) {
    (void)state;
    tn_error *e = tn__error(TN_ERR_BUDGET, "%d of %s", 3, "them");
    e->used_bytes = 7;
    assert_ptr_equal(tn_last_error(), e);
    assert_int_equal(e->size, sizeof *e);
    assert_string_equal(e->message, "3 of them");
    assert_status(tn__fail(TN_ERR_VALUE, "other"), TN_ERR_VALUE);
    assert_int_equal(tn_last_error()->status, TN_ERR_VALUE);
    assert_int_equal(tn_last_error()->used_bytes, 0);
    assert_string_equal(tn_last_error()->message, "other");
}

static void error_text_is_cut_to_fit(void **state) {
    char text[600];
    (void)state;
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    (void)tn__fail(TN_ERR_VALUE, "%s", text);
    assert_int_equal(strlen(tn_last_error()->message), sizeof tn_last_error()->message - 1);
}

static void error_survives_a_clean_up_that_fails(void **state) {
    (void)state;
    (void)tn__fail(TN_ERR_DRIVER, "first");
    tn__error_current()->native_code = 700;
    tn_error kept = *tn__error_current();
    (void)tn__fail(TN_ERR_VALUE, "clean-up");
    assert_status(tn__error_restore(&kept), TN_ERR_DRIVER);
    assert_int_equal(tn_last_error()->native_code, 700);
    assert_string_equal(tn_last_error()->message, "first");
    assert_status(tn__error_restore(tn__error_current()), TN_ERR_DRIVER); /* its own: no copy */
}

static const char *other_thread(int index, void *arg) {
    (void)arg;
    TN_WORKER_CHECK(tn_last_error()->status == TN_OK);
    for (int i = 0; i < 100; i++) {
        char text[16];
        snprintf(text, sizeof text, "thread %d", index);
        (void)tn__fail(TN_ERR_LOOKUP, "thread %d", index);
        TN_WORKER_CHECK(strcmp(tn_last_error()->message, text) == 0);
    }
    return NULL;
}

static void error_belongs_to_its_thread(void **state) {
    (void)state;
    (void)tn__fail(TN_ERR_VALUE, "mine");
    assert_null_text(tn_test_workers_run(4, other_thread, NULL));
    assert_string_equal(tn_last_error()->message, "mine");
}

static void error_of_no_memory_has_its_text(void **state) {
    (void)state;
    assert_status(tn__no_memory(), TN_ERR_HOST_MEMORY);
    assert_true(tn_last_error()->message[0] != '\0');
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(error_begins_afresh),
    cmocka_unit_test(error_text_is_cut_to_fit),
    cmocka_unit_test(error_survives_a_clean_up_that_fails),
    cmocka_unit_test(error_belongs_to_its_thread),
    cmocka_unit_test(error_of_no_memory_has_its_text),
};

TN_TEST_MAIN("unit.base_error", tests)
