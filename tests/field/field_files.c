/* SPDX-License-Identifier: MIT */
/* Field cases: files and sources, on the simulated machine's disk. */
#include "tn_test.h"

#include <stdio.h>
#include <xxhash.h>

#include "field_common.h"
#include "sim_files.h"

#define KEYS 77

/* ---- Files of keys ---------------------------------------------------------------------------- */

/* `bytes` that belong to `seed`; freed by the caller. */
static unsigned char *content(uint64_t bytes, uint64_t seed) {
    unsigned char *data = malloc(bytes);
    uint64_t x = seed * 2 + 1;

    assert_non_null(data);
    for (uint64_t i = 0; i < bytes; i++) {
        x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
        data[i] = (unsigned char)(x >> 56);
    }
    return data;
}

static void put(struct spec *f, const char *path, const unsigned char *data, uint64_t bytes) {
    assert_ok(tn_sim_file_put(f->sim, path, data, bytes));
}

static void put_key(struct spec *f, const char *path, uint64_t seed) {
    unsigned char *data = content(KEY, seed);

    put(f, path, data, KEY);
    free(data);
}

static const char *key_name(int i) {
    static char name[16];

    snprintf(name, sizeof(name), "key%d", i);
    return name;
}

static tn_handle register_file(tn_manager *m, const char *path, uint64_t offset,
                               const uint64_t *checksum) {
    tn_value_spec spec = TN_VALUE_SPEC_INIT;
    tn_source source = TN_SOURCE_INIT;
    tn_handle h = {0, 0, NULL};

    spec.type = tn_buffer_type();
    spec.logical_bytes = spec.storage_bytes = KEY;
    spec.replica_mode = TN_REPLICABLE;
    spec.recoverability = TN_RECONSTRUCTIBLE;
    source.kind = TN_SOURCE_FILE;
    source.path = path;
    source.offset = offset;
    if (checksum != NULL) {
        source.flags = TN_SOURCE_CHECKSUM;
        source.checksum = *checksum;
    }
    assert_ok(tn_manager_register_source(m, &spec, &source, P, &h));
    return h;
}

static bool is_key(tn_manager *m, tn_handle h, uint64_t seed) {
    unsigned char *want = content(KEY, seed);
    tn_lease lease = acquire(m, h, P, NULL);
    const void *data = NULL;
    tn_segment got;
    bool same;

    assert_ok(tn_lease_lookup(&lease, h, &data));
    got = tn_buffer_segment(data, 0);
    same = got.bytes == KEY && memcmp(got.data, want, KEY) == 0;
    release(&lease);
    free(want);
    return same;
}

static tn_sim_disk disk(struct spec *f) {
    tn_sim_disk figures = {.size = sizeof(figures)};

    assert_ok(tn_sim_read_disk(f->sim, &figures));
    return figures;
}

/* ---- F-A04: one key, one value, one source ------------------------------------------------------ */

static void f_a04_one_key_one_value_one_source(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 9 * KEY});
    tn_handle keys[KEYS];
    uint64_t before = version(m);

    sim_files_use(f->sim);
    for (int i = 0; i < KEYS; i++) {
        put_key(f, key_name(i), (uint64_t)i);
        keys[i] = register_file(m, key_name(i), 0, NULL);
    }
    assert_int_equal(version(m), before + 77);
    assert_int_equal(disk(f).bytes_read, 0);
    for (int twice = 0; twice < 2; twice++)
        for (int i = 0; i < 9; i++)
            assert_int_equal(ensure(m, keys[i], P).no_op, twice);
    assert_int_equal(disk(f).opens, 9);
    assert_int_equal(disk(f).bytes_read, 1216512);
    assert_int_equal(used(m, P), 1216512);
    assert_peaks(m, P, 1216512, 1216512);
    assert_status(tn_manager_ensure(m, keys[9], P, NULL, NULL), TN_ERR_BUDGET);
    assert_budget_error(P, 1216512, 1216512, 0, KEY);
    assert_int_equal(disk(f).opens, 9);
    assert_int_equal(disk(f).bytes_read, 1216512);
    drop(m, keys[4], P);
    ensure(m, keys[9], P);
    assert_int_equal(disk(f).opens, 10);
    assert_true(is_key(m, keys[9], 9));
    assert_int_equal(disk(f).open_descriptors, 0);
    field_conserved(f, m);
}

/* ---- F-A12: the file is not what the registration said -------------------------------------------- */

static void f_a12_file_is_not_what_was_registered(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, KEY});
    unsigned char *data = content(KEY, 5);
    uint64_t checksum = XXH3_64bits(data, KEY);
    uint64_t before;
    tn_handle h;

    sim_files_use(f->sim);
    put(f, "key", data, 134144);
    h = register_file(m, "key", 0, NULL);
    before = version(m);
    assert_status(tn_manager_ensure(m, h, P, NULL, NULL), TN_ERR_MATERIALIZATION);
    assert_int_equal(tn_last_error()->expected, KEY);
    assert_int_equal(tn_last_error()->actual, 134144);
    assert_int_equal(version(m), before);
    assert_int_equal(used(m, P) + reserved(m, P), 0);
    assert_peaks(m, P, 0, KEY);
    assert_int_equal(value(m, h).has_source, 1);
    put(f, "key", data, KEY);
    ensure(m, h, P);
    assert_true(is_key(m, h, 5));
    drop(m, h, P);
    h = register_file(m, "key", 0, &checksum);
    data[77777] ^= 1;
    put(f, "key", data, KEY);
    assert_status(tn_manager_ensure(m, h, P, NULL, NULL), TN_ERR_MATERIALIZATION);
    assert_replicas(m, h);
    data[77777] ^= 1;
    put(f, "key", data, KEY);
    ensure(m, h, P);
    assert_true(is_key(m, h, 5));
    assert_int_equal(disk(f).open_descriptors, 0);
    free(data);
    field_conserved(f, m);
}

/* ---- F-F05: the file itself is the slow tier ---------------------------------------------------------- */

static void f_f05_file_itself_is_the_slow_tier(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    unsigned char *all = malloc(KEYS * KEY);
    tn_handle keys[KEYS];

    assert_non_null(all);
    assert_int_equal(KEY % 4096, 0);
    sim_files_use(f->sim);
    for (int i = 0; i < KEYS; i++) {
        unsigned char *one = content(KEY, (uint64_t)i);

        memcpy(all + (uint64_t)i * KEY, one, KEY);
        free(one);
        keys[i] = register_file(m, "checkpoint", (uint64_t)i * KEY, NULL);
    }
    put(f, "checkpoint", all, KEYS * KEY);
    free(all);
    for (uint64_t round = 1; round <= 2; round++) {
        for (int i = 0; i < KEYS; i++) {
            uint64_t reads = disk(f).reads;

            ensure(m, keys[i], P);
            assert_true(disk(f).reads - reads <= 3);
        }
        assert_int_equal(disk(f).bytes_read, round * 10407936);
        for (int i = 0; i < KEYS; i++) {
            assert_true(is_key(m, keys[i], (uint64_t)i));
            drop(m, keys[i], P);
        }
    }
    assert_int_equal(disk(f).bytes_written, 0);
    assert_int_equal(field_calls(f, TN_SIM_FILE_WRITE), 0);
    field_conserved(f, m);
}

/* ---- F-F06: direct reads are later; today: any offset, ordinary reads --------------------------------- */

static void f_f06_any_offset_is_read_exactly(void **state) {
    struct spec *f = *state;
    tn_manager *m;
    unsigned char *data;
    unsigned char *file = calloc(1, 1000 + KEY);
    tn_handle h;

    assert_non_null(file);
    spec_machine(f, "dev:1 disk=1GBps seek=100us");
    m = MANAGER(f);
    data = content(KEY, 6);
    memcpy(file + 1000, data, KEY);
    sim_files_use(f->sim);
    put(f, "keys", file, 1000 + KEY);
    h = register_file(m, "keys", 1000, NULL);
    ensure(m, h, P);
    assert_true(is_key(m, h, 6));
    assert_int_equal(disk(f).direct_reads, 0);
    /* the clock moved by an open and the reads */
    assert_int_equal(tn_sim_now_ns(f->sim), (1 + disk(f).reads) * 100000 + KEY);
    free(data);
    free(file);
    field_conserved(f, m);
}

/* ---- F-A15: sources added while others are in use ------------------------------------------------------- */

struct added {
    tn_manager *m;
    tn_handle old[67];
};

static const char *use_three(int index, void *arg) {
    struct added *x = arg;
    uint64_t random = (uint64_t)index + 1;

    for (int i = 0; i < 2000; i++) {
        tn_handle three[3];
        tn_lease lease;

        for (int j = 0; j < 3; j++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
            three[j] = x->old[(random >> 33) % 67];
        }
        TN_WORKER_STATUS(tn_manager_acquire(x->m, three, 3, P, NULL, &lease), TN_OK);
        for (int j = 0; j < 3; j++) {
            const void *data = NULL;

            TN_WORKER_STATUS(tn_lease_lookup(&lease, three[j], &data), TN_OK);
            TN_WORKER_CHECK(tt_check(data, 1));
        }
        TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
    }
    return NULL;
}

static const char *use_or_add(int index, void *arg) {
    struct added *x = arg;
    static tt_source more[10];
    tn_value_spec spec = tt_spec(1024, 1024);

    if (index < 8)
        return use_three(index, x);
    for (int i = 0; i < 10; i++) {
        tn_source source;
        tn_handle h;

        more[i] = (tt_source){.seed = 1};
        source = tt_source_of(&more[i]);
        TN_WORKER_STATUS(tn_manager_register_source(x->m, &spec, &source, P, &h), TN_OK);
        TN_WORKER_STATUS(tn_manager_ensure(x->m, h, P, NULL, NULL), TN_OK);
    }
    return NULL;
}

static void f_a15_sources_added_while_others_are_in_use(void **state) {
    struct spec *f = *state;
    struct added x = {.m = MANAGER(f, {P, 78848})};
    static tt_source first[67];
    tn_value_spec spec = tt_spec(1024, 1024);
    uint64_t before;

    for (int i = 0; i < 67; i++) {
        first[i] = (tt_source){.seed = 1};
        x.old[i] = spec_register_spec(x.m, &first[i], P, &spec);
        ensure(x.m, x.old[i], P);
    }
    before = version(x.m);
    assert_null_text(tn_test_workers_run(9, use_or_add, &x));
    assert_int_equal(version(x.m), before + 32020);
    assert_int_equal(loc(x.m, P).value_count, 77);
    assert_int_equal(used(x.m, P), 78848);
    field_conserved(f, x.m);
    spec_destroy(f, x.m); /* before the sources go */
}

/* ---- F-D06: a promotion that fails at any step leaves no pin and no byte ------------------------------- */

#define SMALL UINT64_C(24576)

static tn_handle register_small(tn_manager *m) {
    tn_value_spec spec = TN_VALUE_SPEC_INIT;
    tn_source source = TN_SOURCE_INIT;
    tn_handle h = {0, 0, NULL};

    spec.type = tn_buffer_type();
    spec.logical_bytes = spec.storage_bytes = SMALL;
    spec.replica_mode = TN_REPLICABLE;
    spec.recoverability = TN_RECONSTRUCTIBLE;
    source.kind = TN_SOURCE_FILE;
    source.path = "small";
    assert_ok(tn_manager_register_source(m, &spec, &source, N, &h));
    return h;
}

/* The ensure failed: as if nothing had been tried. */
static void assert_nothing_left(struct spec *f, tn_manager *m, tn_handle h, tn_status status) {
    assert_true(status == TN_ERR_DRIVER || status == TN_ERR_SOURCE || status == TN_ERR_PAYLOAD ||
                status == TN_ERR_MATERIALIZATION);
    assert_int_equal(used(m, N) + reserved(m, N) + used(m, C0) + reserved(m, C0), 0);
    assert_true(peaks(m, N).used == 0);
    assert_true(peaks(m, N).charged == 0 || peaks(m, N).charged == SMALL);
    assert_peaks(m, C0, 0, 0);
    assert_int_equal(trace_count(m), 0);
    assert_int_equal(field_memory(f, C0).live_blocks, 0);
    assert_int_equal(disk(f).open_descriptors, 0);
    assert_true(tn_sim_live_events(f->sim) <= 1); /* pooled, for the next try */
    assert_int_equal(value(m, h).has_source, 1);
}

/* The n-th call of driver or disk fails once. False: there is no n-th call. */
static bool promote_with_a_fault(struct spec *f, uint64_t n, int *benign, uint64_t *kept) {
    tn_manager *m = MANAGER(f, {N, SMALL}, {C0, SMALL});
    tn_handle h = register_small(m);
    uint64_t before = version(m);
    tn_status status;
    bool struck;

    spec_fault(f, TN_SIM_ANY, n, 1, TN_ERR_DRIVER, 5);
    status = tn_manager_ensure(m, h, C0, NULL, NULL);
    struck = spec_repair(f) > 0;
    if (status != TN_OK) {
        assert_true(struck);
        assert_nothing_left(f, m, h, status);
        assert_int_equal(version(m), before);
        ensure(m, h, C0);
    } else if (struck) {
        ++*benign; /* a reading (M92), or the close of what was read */
    }
    assert_int_equal(version(m), before + 1);
    assert_int_equal(used(m, C0), SMALL);
    field_conserved(f, m);
    spec_destroy(f, m);
    assert_int_equal(field_memory(f, C0).live_blocks, 0);
    assert_int_equal(tn_sim_live_events(f->sim), 0);
    if (field_memory(f, N).live_blocks > *kept) { /* the free itself was refused by the driver */
        ++*kept;
        print_message("call %d: a pinned block was kept\n", (int)n);
    }
    return struck;
}

static void f_d06_promotion_that_fails_at_any_step(void **state) {
    struct spec *f = *state;
    unsigned char *data = content(SMALL, 9);
    int benign = 0;
    uint64_t kept = 0;
    uint64_t n = 1;

    sim_files_use(f->sim);
    put(f, "small", data, SMALL);
    free(data);
    while (promote_with_a_fault(f, n, &benign, &kept))
        n++;
    print_message("%d of %d faults were benign\n", benign, (int)n - 1);
    assert_true(n > 8);
    assert_true(benign <= 5); /* one more: a ring that cannot be pinned is pageable */
    assert_true(kept <= 1);
    f->lenient = kept > 0;
}

static const struct CMUnitTest tests[] = {
    FIELD_BOTH(f_d06_promotion_that_fails_at_any_step),
    FIELD_BOTH(f_a04_one_key_one_value_one_source),
    FIELD_BOTH(f_a12_file_is_not_what_was_registered),
    FIELD_BOTH(f_f05_file_itself_is_the_slow_tier),
    FIELD_BOTH(f_f06_any_offset_is_read_exactly),
    FIELD_CONCURRENT(f_a15_sources_added_while_others_are_in_use),
};

TN_TEST_MAIN("field.files", tests)
