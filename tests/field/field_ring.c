/* SPDX-License-Identifier: MIT */
/* Field cases of file sources and their ring: F-E08, F-A12, F-F05. */
#include "memory_util.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <xxhash.h>

#include "value/value_priv.h"

#define BYTES 65536u

/* ---- F-E08 A bounded pinned ring ---- */

enum { KEYS = 8 };

static void eight_keys_at_the_speed_of_the_link(struct spec *f, tn_manager *m, tn_handle *h) {
    uint64_t begin = hm_now(f);

    for (uint64_t i = 0; i < KEYS; i++) {
        ensure(m, h[i], C0);
        assert_int_equal(hm_memory(f, N).live_bytes, BYTES);
    }
    assert_true(hm_now(f) - begin >= 43253760u);
    assert_true(hm_now(f) - begin <= 48060 * MS / 1000); /* the link is busy 90 % of it */
    for (uint64_t i = 0; i < KEYS; i++)
        assert_true(hm_is_piece(m, h[i], C0, i));
    assert_int_equal(hm_memory(f, N).peak_bytes, BYTES);
    assert_int_equal(hm_pinned(f).ring_bytes, BYTES);
    assert_int_equal(used(m, P), 0);
    assert_int_equal(reserved(m, P), 0);
    assert_peaks(m, P, 0, KEY);
    field_conserved(f, m);
}

static void f_e08_a_bounded_pinned_ring(void **state) {
    struct spec *f = *state;
    spec_machine(f, "dev:1 link=host:25MBps");
    tn_manager *m = hm_manager_with_ring(f, NULL, 0, 16384, 4);
    const char *path = hm_file("keys", KEY, KEYS);
    tn_handle h[KEYS];

    for (uint64_t i = 0; i < KEYS; i++)
        h[i] = hm_register(m, path, i, KEY, P);
    eight_keys_at_the_speed_of_the_link(f, m, h);
    for (int i = 0; i < KEYS; i++)
        drop(m, h[i], C0);
    for (uint64_t i = 0; i < 4; i++) { /* blocks whose copy fails are back in the ring */
        spec_fault(f, TN_SIM_COPY, 1 + 2 * i, 1, TN_ERR_DRIVER, 700);
        assert_status(tn_manager_ensure(m, h[i], C0, NULL, NULL), TN_ERR_DRIVER);
        assert_int_equal(spec_repair(f), 1);
    }
    eight_keys_at_the_speed_of_the_link(f, m, h);
}

struct loaders {
    tn_manager *m;
    tn_handle h[KEYS];
};

static const char *load_one(int index, void *arg) {
    struct loaders *l = arg;

    TN_WORKER_STATUS(tn_manager_ensure(l->m, l->h[index], C0, NULL, NULL), TN_OK);
    return NULL;
}

/* The same by eight threads at once: the ring pushes back. */
static void f_e08_the_ring_never_grows_with_demand(void **state) {
    struct spec *f = *state;
    spec_machine(f, "dev:1 link=host:500MBps clock=threads");
    struct loaders l = {.m = hm_manager_with_ring(f, NULL, 0, 16384, 4)};
    const char *path = hm_file("keys", KEY, KEYS);

    for (uint64_t i = 0; i < KEYS; i++)
        l.h[i] = hm_register(l.m, path, i, KEY, P);
    for (int round = 0; round < 3; round++) {
        assert_null_text(tn_test_workers_run(KEYS, load_one, &l));
        for (uint64_t i = 0; i < KEYS; i++) {
            assert_true(hm_is_piece(l.m, l.h[i], C0, i));
            hm_wait_legacy(f);
            drop(l.m, l.h[i], C0);
        }
    }
    assert_int_equal(hm_memory(f, N).peak_bytes, BYTES);
    field_conserved(f, l.m);
}

/* ---- F-A12 The file is not what the registration said ---- */

static void flip(const char *path, off_t at) {
    unsigned char byte;
    int descriptor = open(path, O_RDWR);

    assert_int_equal(pread(descriptor, &byte, 1, at), 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(descriptor, &byte, 1, at), 1);
    assert_int_equal(close(descriptor), 0);
}

static uint64_t hash_of_piece(void) {
    static unsigned char piece[KEY];

    for (uint64_t i = 0; i < KEY; i++)
        piece[i] = hm_byte(0, i);
    return XXH3_64bits(piece, KEY);
}

static tn_handle register_with_checksum(tn_manager *m, const char *path) {
    tn_value_spec spec = TN_VALUE_SPEC_INIT;
    tn_source source = TN_SOURCE_INIT;
    tn_handle h = {0, 0, NULL};

    spec.type = tn_buffer_type();
    spec.logical_bytes = spec.storage_bytes = KEY;
    spec.replica_mode = TN_REPLICABLE;
    spec.recoverability = TN_RECONSTRUCTIBLE;
    source.kind = TN_SOURCE_FILE;
    source.path = path;
    source.flags = TN_SOURCE_CHECKSUM;
    source.checksum = hash_of_piece();
    assert_ok(tn_manager_register_source(m, &spec, &source, P, &h));
    return h;
}

/* Refused without a trace, at P or through the ring at C0. */
static void expect_unusable(struct spec *f, tn_manager *m, tn_handle h, tn_location at) {
    uint64_t before = version(m);

    assert_status(tn_manager_ensure(m, h, at, NULL, NULL), TN_ERR_MATERIALIZATION);
    assert_int_equal(version(m), before);
    assert_int_equal(used(m, P), 0);
    assert_int_equal(reserved(m, P), 0);
    assert_int_equal(value(m, h).has_source, 1);
    assert_int_equal(replicas(m, h), 0);
    field_conserved(f, m);
}

static void f_a12_the_file_is_not_what_the_registration_said(void **state) {
    const tn_location places[] = {P, C0};
    struct hm_files files;
    struct spec *f = *state;

    hm_files_count(&files);
    for (size_t i = 0; i < 2; i++) {
        tn_manager *m = MANAGER(f, {P, KEY}, {C0, KEY});
        const char *path = hm_file("key", KEY, 1);
        assert_int_equal(truncate(path, 134144), 0);
        tn_handle h = hm_register(m, path, 0, KEY, P), checked;
        expect_unusable(f, m, h, places[i]);
        assert_status(tn_manager_ensure(m, h, places[i], NULL, NULL), TN_ERR_MATERIALIZATION);
        assert_int_equal(tn_last_error()->expected, KEY);
        assert_int_equal(tn_last_error()->actual, 134144);
        assert_peaks(m, P, 0, KEY);
        hm_rewrite(path, KEY, 1);
        ensure(m, h, places[i]);
        assert_true(hm_is_piece(m, h, places[i], 0));
        drop(m, h, places[i]);
        checked = register_with_checksum(m, path);
        flip(path, 77777);
        expect_unusable(f, m, checked, places[i]);
        flip(path, 77777);
        ensure(m, checked, places[i]);
        assert_true(hm_is_piece(m, checked, places[i], 0));
        drop(m, checked, places[i]);
        field_conserved(f, m);
        spec_destroy(f, m);
    }
    assert_int_equal(files.open_now, 0);
    hm_files_restore();
}

/* ---- F-F05 The file itself is the slow tier ---- */

enum { PIECES = 77 };

/* The soak: pieces of 132 MiB in one file, which is sparse: only the first, the middle and the last
 * page of a piece hold something, its number. */
#define LARGE (UINT64_C(132) << 20)
#define PAGE 4096u

static const uint64_t marks[] = {0, LARGE / 2, LARGE - PAGE};

static const char *sparse_file(void) {
    const char *path = tn_test_text("%s/large", tn_test_tmpdir());
    int descriptor = open(path, O_RDWR | O_CREAT, 0600);
    unsigned char page[PAGE];

    assert_true(descriptor >= 0);
    assert_int_equal(ftruncate(descriptor, (off_t)(PIECES * LARGE)), 0);
    for (uint64_t i = 0; i < PIECES; i++) {
        memset(page, (int)i + 1, PAGE);
        for (size_t k = 0; k < 3; k++)
            assert_int_equal(pwrite(descriptor, page, PAGE, (off_t)(i * LARGE + marks[k])), PAGE);
    }
    assert_int_equal(close(descriptor), 0);
    return path;
}

static bool is_all(const unsigned char *data, uint64_t bytes, unsigned char byte) {
    return data[0] == byte && memcmp(data, data + 1, bytes - 1) == 0;
}

static bool is_large_piece(tn_manager *m, tn_handle h, uint64_t piece) {
    const void *buffer = NULL;
    tn_lease lease = acquire(m, h, P, NULL);
    uint64_t at = 0;
    bool same;

    assert_ok(tn_lease_lookup(&lease, h, &buffer));
    tn_segment segment = tn_buffer_segment(buffer, 0);
    const unsigned char *data = segment.data;
    same = segment.bytes == LARGE;
    for (size_t k = 0; same && k < 3; k++) {
        same = at == marks[k] || is_all(data + at, marks[k] - at, 0);
        same = same && is_all(data + marks[k], PAGE, (unsigned char)(piece + 1));
        at = marks[k] + PAGE;
    }
    release(&lease);
    return same;
}

static void large_pieces_one_at_a_time(struct spec *f) {
    tn_manager *m = MANAGER(f, {P, LARGE});
    const char *path = sparse_file();
    tn_handle h[PIECES];

    for (uint64_t i = 0; i < PIECES; i++)
        h[i] = hm_register(m, path, i, LARGE, P);
    for (int round = 0; round < 2; round++) {
        struct hm_files files;

        hm_files_count(&files);
        for (uint64_t i = 0; i < PIECES; i++) {
            ensure(m, h[i], P);
            assert_true(is_large_piece(m, h[i], i));
            drop(m, h[i], P);
        }
        hm_files_restore();
        assert_int_equal(files.bytes, PIECES * LARGE);
        assert_int_equal(files.opens, PIECES);
        assert_int_equal(files.open_now, 0);
        assert_in_range(files.most_reads, 1, 3);
        assert_true(files.ascending);
        print_message("    %llu bytes in %llu reads\n", (unsigned long long)files.bytes,
                      (unsigned long long)files.reads);
    }
    assert_peaks(m, P, LARGE, LARGE);
    assert_int_equal(unlink(path), 0);
    field_conserved(f, m);
}

/* The file layer has no entry that creates or writes: what it counts is all that happens. */
static void f_f05_the_file_itself_is_the_slow_tier(void **state) {
    const tn_location places[] = {P, C0};
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    const char *path = hm_file("keys", KEY, PIECES);
    struct hm_files files;
    tn_handle h[PIECES];

    for (uint64_t i = 0; i < PIECES; i++)
        h[i] = hm_register(m, path, i, KEY, P);
    for (int round = 0; round < 4; round++) {
        tn_location at = places[round / 2];
        hm_files_count(&files);
        for (int i = 0; i < PIECES; i++)
            ensure(m, h[i], at);
        hm_files_restore();
        assert_int_equal(files.bytes, 10407936);
        assert_int_equal(files.opens, PIECES);
        assert_int_equal(files.open_now, 0);
        assert_in_range(files.most_reads, 1, 3);
        assert_true(files.ascending);
        for (uint64_t i = 0; i < PIECES; i++) {
            assert_true(hm_is_piece(m, h[i], at, i));
            drop(m, h[i], at);
        }
    }
    field_conserved(f, m);
    if (field_soak())
        large_pieces_one_at_a_time(f);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(f_e08_a_bounded_pinned_ring),
    SPEC_CONCURRENT(f_e08_the_ring_never_grows_with_demand),
    SPEC_BOTH(f_a12_the_file_is_not_what_the_registration_said),
    SPEC_BOTH(f_f05_the_file_itself_is_the_slow_tier),
};

TN_TEST_MAIN("field.ring", tests)
