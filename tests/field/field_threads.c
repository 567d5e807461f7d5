/* SPDX-License-Identifier: MIT */
/* Field cases: any thread, at any moment. */
#include "tn_test.h"

#include <stdio.h>
#include <unistd.h>
#include <xxhash.h>

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
    uint64_t checksum; /* they are alike */
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
        TN_WORKER_CHECK(XXH3_64bits(tt_field_base(data, 0), KEY) == x->checksum);
        TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
    }
    return NULL;
}

static uint64_t checksum_of_a_key(struct spec *f) {
    tn_payload key = tt_bytes(f->driver, P, KEY);
    uint64_t checksum;

    tt_fill(key, 1);
    checksum = XXH3_64bits(tt_field_base(key.data, 0), KEY);
    tt_free(key);
    return checksum;
}

/* Run them; how many bytes came to standard error meanwhile. */
static long written_to_stderr(struct fresh *x, const char **out_text) {
    FILE *meanwhile = tmpfile();
    int kept = dup(STDERR_FILENO);
    long bytes;

    assert_true(meanwhile != NULL && kept >= 0);
    fflush(stderr);
    assert_int_equal(dup2(fileno(meanwhile), STDERR_FILENO), STDERR_FILENO);
    *out_text = tn_test_workers_run(24, use_as_a_stranger, x);
    fflush(stderr);
    (void)dup2(kept, STDERR_FILENO);
    (void)close(kept);
    bytes = (long)lseek(fileno(meanwhile), 0, SEEK_END);
    fclose(meanwhile);
    return bytes;
}

static void f_b01_fresh_threads(void **state) {
    struct spec *f = *state;
    struct fresh x = {.m = MANAGER(f), .checksum = checksum_of_a_key(f)};
    const char *text = NULL;
    uint64_t before;
    long bytes;

    for (int i = 0; i < 8; i++)
        x.keys[i] = field_rep(f, x.m, KEY, 1);
    before = version(x.m);
    bytes = written_to_stderr(&x, &text);
    assert_null_text(text);
    assert_int_equal(bytes, 0);
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
    tt_source source; /* of all generations, one after the other */
    uint64_t number;  /* of the generation that it loads */
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

static tn_status load_generation(void *context, const tn_load_request *request) {
    struct turnover *x = context;

    (void)request;
    x->source.give = generation(x->number);
    return TN_OK;
}

static const char *publish_next(struct turnover *x, uint64_t number) {
    tn_value_spec spec = tt_spec(256, 256);
    tn_source source = tt_source_of(&x->source);
    tn_handle h;

    x->number = number;
    TN_WORKER_STATUS(tn_manager_register_source(x->m, &spec, &source, P, &h), TN_OK);
    TN_WORKER_STATUS(tn_manager_ensure(x->m, h, P, NULL, NULL), TN_OK);
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
    static struct turnover x; /* the manager forgets its sources in the teardown */
    tn_handle h;
    tn_lease lease;

    x = (struct turnover){.m = MANAGER(f), .source = {.hook = load_generation}};
    x.source.hook_context = &x;
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
