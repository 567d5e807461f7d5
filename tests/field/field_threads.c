/* SPDX-License-Identifier: MIT */
/* Field cases: any thread, at any moment. */
#include "tn_test.h"

#include "base/atomic.h"
#include "lifetime/lifetime_priv.h"
#include "manager/manager_internal.h"

#include "field_common.h"

/* Slots of a manager: what a thread that called it has, and hands on when it exits. */
static unsigned slots(tn_manager *m) {
    unsigned count = 0;

    for (tn__slot *s = tn__load_acq(&m->life->slots); s != NULL; s = s->next)
        count++;
    return count;
}

/* ---- F-B01: fresh threads, no registration, no abort ------------------------------------------- */

struct fresh {
    tn_manager *m;
    tn_handle keys[8];
};

static const char *use_as_a_stranger(int index, void *arg) {
    struct fresh *x = arg;

    for (int i = 0; i < 1000; i++) {
        tn_report report = TN_REPORT_INIT;
        tn_handle key = x->keys[(index + i) % 8];
        const void *data = NULL;
        tn_lease lease;

        TN_WORKER_STATUS(tn_manager_ensure(x->m, key, P, NULL, &report), TN_OK);
        TN_WORKER_CHECK(report.no_op == 1);
        TN_WORKER_STATUS(tn_manager_acquire(x->m, &key, 1, P, NULL, &lease), TN_OK);
        TN_WORKER_STATUS(tn_lease_lookup(&lease, key, &data), TN_OK);
        if (i % 50 == 0) /* the whole key; 132 KiB each time would be all this test does */
            TN_WORKER_CHECK(tt_check(data, 1));
        TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
    }
    return NULL;
}

static void f_b01_fresh_threads(void **state) {
    struct spec *f = *state;
    struct fresh x = {.m = MANAGER(f)};
    uint64_t before;

    for (int i = 0; i < 8; i++)
        x.keys[i] = field_rep(f, x.m, KEY, 1);
    before = version(x.m);
    assert_null_text(tn_test_workers_run(24, use_as_a_stranger, &x));
    assert_int_equal(version(x.m), before + 48000);
    assert_true(slots(x.m) <= 25);
    field_conserved(f, x.m);
}

/* ---- F-B03: lookup gives a protected value or nothing --------------------------------------------- */

#define READERS 16
#define ATTEMPTS 10000

struct turnover {
    tn_manager *m;
    _Atomic uint64_t index; /* of the published handle */
    atomic_bool over;
    uint64_t discarded;
};

static tn_handle published(struct turnover *x) {
    return (tn_handle){tn_manager_id(x->m), atomic_load(&x->index), tt_type()};
}

/* 256 bytes of one repeated number. */
static tn_payload generation(uint64_t number) {
    tn_payload payload = tt_bytes(NULL, P, 256);
    uint64_t *words = (uint64_t *)tt_field_base(payload.data, 0);

    for (int i = 0; i < 32; i++)
        words[i] = number;
    return payload;
}

static const char *publish_next(struct turnover *x, uint64_t number) {
    tn_payload payload = generation(number);
    tn_handle h;
    tn_status status = tn_manager_adopt(x->m, payload, P, TN_REPLICABLE, &h);

    if (status != TN_OK)
        tt_free(payload);
    TN_WORKER_STATUS(status, TN_OK);
    atomic_store(&x->index, h.index);
    return NULL;
}

static const char *turn_over(struct turnover *x) {
    const char *text = NULL;

    for (int i = 0; i < ATTEMPTS && text == NULL && !tn_test_workers_failed(); i++) {
        tn_status status = tn_manager_discard(x->m, published(x), NULL);

        if (status == TN_OK) {
            text = publish_next(x, ++x->discarded + 1);
        } else {
            TN_WORKER_STATUS(status, TN_ERR_IN_USE);
            TN_WORKER_CHECK(tn_last_error()->use_count >= 1 && tn_last_error()->hold_count == 0);
        }
    }
    return text;
}

static const char *read_published(struct turnover *x) {
    tn_handle h = published(x);
    const uint64_t *words;
    const void *data = NULL;
    tn_lease lease;
    tn_status status = tn_manager_acquire(x->m, &h, 1, P, NULL, &lease);

    if (status == TN_ERR_HANDLE) {
        TN_WORKER_CHECK(tn_last_error()->handle_cause == TN_HANDLE_DISCARDED);
        return NULL;
    }
    if (status == TN_ERR_UNAVAILABLE) {
        TN_WORKER_CHECK(tn_last_error()->busy == 1);
        return NULL;
    }
    TN_WORKER_STATUS(status, TN_OK);
    TN_WORKER_STATUS(tn_lease_lookup(&lease, h, &data), TN_OK);
    words = tt_field_base(data, 0);
    for (int i = 1; i < 32; i++)
        TN_WORKER_CHECK(words[i] == words[0]);
    TN_WORKER_CHECK(words[0] >= 1 && words[0] <= ATTEMPTS + 1);
    TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
    return NULL;
}

static const char *read_or_turn_over(int index, void *arg) {
    struct turnover *x = arg;
    struct timespec ten_us = {0, 10000};
    const char *text = NULL;

    if (index == READERS) {
        text = turn_over(x);
        atomic_store(&x->over, true);
        return text;
    }
    while (!atomic_load(&x->over) && text == NULL) {
        text = read_published(x);
        nanosleep(&ten_us, NULL);
    }
    return text;
}

static void f_b03_protected_value_or_nothing(void **state) {
    struct spec *f = *state;
    struct turnover x = {.m = MANAGER(f)};
    tn_handle h;
    tn_lease lease;

    assert_null_text(publish_next(&x, 1));
    lease = acquire(x.m, published(&x), P, NULL);
    assert_in_use(tn_manager_discard(x.m, published(&x), NULL), 1, 0, 0);
    release(&lease);
    discard(x.m, published(&x));
    assert_null_text(publish_next(&x, 1));
    assert_null_text(tn_test_workers_run(READERS + 1, read_or_turn_over, &x));
    h = published(&x);
    assert_replicas(x.m, h, P);
    assert_int_equal(used(x.m, P), 256);
    assert_int_equal(info(x.m).value_count, 1 + x.discarded + 1); /* one before the race */
    print_message("%llu of %d discards succeeded\n", (unsigned long long)x.discarded, ATTEMPTS);
    field_conserved(f, x.m);
}

static const struct CMUnitTest tests[] = {
    FIELD_BOTH(f_b01_fresh_threads),
    FIELD_CONCURRENT(f_b03_protected_value_or_nothing),
};

TN_TEST_MAIN("field.threads", tests)
