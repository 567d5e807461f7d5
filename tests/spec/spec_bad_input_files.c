/* SPDX-License-Identifier: MIT */
/* What a program can get wrong: file sources; files missing, short, corrupt, unreadable. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spec_bad_input.h"

static void file_sources(void **state) {
    static char long_path[4200];
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    const uint64_t segments[] = {16, 15};
    const uint64_t wrapped[] = {UINT64_MAX, 33};
    tn_value_spec spec = tt_spec(32, 32);
    tn_source source = TN_SOURCE_INIT;
    tn_handle h = {0, 0, NULL};

    spec.type = tn_buffer_type();
    source.kind = TN_SOURCE_FILE;
    assert_status(tn_manager_register_source(m, &spec, &source, P, &h), TN_ERR_KIND); /* no path */
    source.path = "";
    assert_status(tn_manager_register_source(m, &spec, &source, P, &h), TN_ERR_VALUE);
    memset(long_path, 'x', sizeof(long_path) - 1);
    source.path = long_path;
    assert_status(tn_manager_register_source(m, &spec, &source, P, &h), TN_ERR_VALUE);
    source.path = "/nowhere";
    source.flags = 2;
    assert_status(tn_manager_register_source(m, &spec, &source, P, &h), TN_ERR_VALUE);
    source.flags = 0;
    source.segment_count = 2;
    assert_status(tn_manager_register_source(m, &spec, &source, P, &h), TN_ERR_KIND);
    source.segment_bytes = segments; /* do not sum up to 32 */
    assert_status(tn_manager_register_source(m, &spec, &source, P, &h), TN_ERR_VALUE);
    source.segment_bytes = wrapped;
    assert_status(tn_manager_register_source(m, &spec, &source, P, &h), TN_ERR_VALUE);
    source.segment_count = 0;
    spec.type = tt_type(); /* files give buffers */
    assert_status(tn_manager_register_source(m, &spec, &source, P, &h), TN_ERR_KIND);
    assert_null(h.type);
    assert_locations(m);
}

static tn_handle register_file(tn_manager *m, const char *path, uint64_t offset,
                               const uint64_t *checksum) {
    tn_source source = TN_SOURCE_INIT;
    tn_value_spec spec = tt_spec(32, 32);
    tn_handle h = {0, 0, NULL};

    spec.type = tn_buffer_type();
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

static void write_zeros(const char *path, size_t count) {
    FILE *o = fopen(path, "wb");

    assert_non_null(o);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(fputc(0, o), 0);
    assert_int_equal(fclose(o), 0);
}

/* XXH3 (64 bits) of 32 zero bytes. */
static const uint64_t zeros_hash = UINT64_C(0xa057271c9071c99d);

static void broken_files(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 64}, {C0, 64});
    const char *folder = tn_test_tmpdir();
    uint64_t wrong_hash = zeros_hash ^ 1;
    char path[4096];
    char inside[4200];
    tn_handle h;
    tn_handle summed;

    snprintf(path, sizeof(path), "%s/value", folder);
    h = register_file(m, path, 0, NULL);
    for (int i = 0; i < 2; i++) {
        tn_location to = i == 0 ? P : C0;

        assert_status(tn_manager_ensure(m, h, to, NULL, NULL), TN_ERR_SOURCE);
        assert_int_equal(tn_last_error()->native_code, ENOENT);
        assert_non_null(strstr(tn_last_error()->message, "value"));
        write_zeros(path, 31);
        assert_status(tn_manager_ensure(m, h, to, NULL, NULL), TN_ERR_MATERIALIZATION);
        assert_int_equal(tn_last_error()->expected, 32);
        assert_int_equal(tn_last_error()->actual, 31);
        write_zeros(path, 0);
        assert_status(tn_manager_ensure(m, h, to, NULL, NULL), TN_ERR_MATERIALIZATION);
        assert_int_equal(unlink(path), 0);
    }
    write_zeros(path, 40);
    summed = register_file(m, path, 8, &wrong_hash);
    assert_status(tn_manager_ensure(m, summed, P, NULL, NULL), TN_ERR_MATERIALIZATION);
    assert_status(tn_manager_ensure(m, summed, C0, NULL, NULL), TN_ERR_MATERIALIZATION);
    discard(m, summed);
    summed = register_file(m, path, 9, NULL); /* ends one byte late */
    assert_status(tn_manager_ensure(m, summed, P, NULL, NULL), TN_ERR_MATERIALIZATION);
    discard(m, summed);
    summed = register_file(m, path, UINT64_C(1) << 40, NULL);
    assert_status(tn_manager_ensure(m, summed, P, NULL, NULL), TN_ERR_MATERIALIZATION);
    discard(m, summed);

    summed = register_file(m, folder, 0, NULL); /* a folder */
    assert_status(tn_manager_ensure(m, summed, P, NULL, NULL), TN_ERR_SOURCE);
    assert_int_equal(tn_last_error()->native_code, EISDIR);
    discard(m, summed);
    snprintf(inside, sizeof(inside), "%s/value", path); /* inside a file */
    summed = register_file(m, inside, 0, NULL);
    assert_status(tn_manager_ensure(m, summed, P, NULL, NULL), TN_ERR_SOURCE);
    assert_int_equal(tn_last_error()->native_code, ENOTDIR);
    discard(m, summed);

    assert_int_equal(used(m, P), 0);
    assert_int_equal(reserved(m, P), 0);
    assert_int_equal(used(m, C0), 0);
    assert_peaks(m, P, 0, 32);
    ensure(m, h, P); /* nothing was lost */
    summed = register_file(m, path, 8, &zeros_hash);
    ensure(m, summed, C0);
}

static void unreadable_folder(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    char folder[4096];
    char path[4200];
    tn_handle h;
    const bool root = geteuid() == 0; /* who reads unreadable folders: become nobody for the load */
    tn_status status;

    snprintf(folder, sizeof(folder), "%s/closed", tn_test_tmpdir());
    snprintf(path, sizeof(path), "%s/value", folder);
    assert_int_equal(mkdir(folder, 0), 0);
    h = register_file(m, path, 0, NULL);
    if (root && seteuid(65534) != 0)
        TN_SKIP("root cannot become nobody here");
    status = tn_manager_ensure(m, h, P, NULL, NULL);
    if (root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(folder, 0700), 0);
    assert_status(status, TN_ERR_SOURCE);
    assert_int_equal(tn_last_error()->native_code, EACCES);
    assert_int_equal(reserved(m, P), 0);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(file_sources),
    SPEC_BOTH(broken_files),
    SPEC_BOTH(unreadable_folder),
};

TN_TEST_MAIN("spec.bad_input_files", tests)
