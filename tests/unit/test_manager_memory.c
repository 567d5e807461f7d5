/* SPDX-License-Identifier: MIT */
/*
 * What a registered value costs in host memory: 100,000 file sources with paths of some 60 bytes take
 * at most 512 bytes each, everything included, once the garbage of their registration is collected.
 */
#include "core_fixture.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>

#define VALUES 100000u
#define LIMIT_BYTES 512u

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_MALLOC 0 /* the sanitizer's has other figures */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OWN_MALLOC 0
#endif
#endif
#ifndef OWN_MALLOC
#ifdef __GLIBC_PREREQ
#define OWN_MALLOC __GLIBC_PREREQ(2, 33)
#else
#define OWN_MALLOC 0
#endif
#endif

/* Bytes that malloc has handed out, with its own heads. */
static uint64_t bytes_in_use(void) {
#if OWN_MALLOC
    struct mallinfo2 figures = mallinfo2();
    return figures.uordblks + figures.hblkhd;
#else
    return 0;
#endif
}

static void register_one(tn_manager *m, unsigned i) {
    char path[96];
    tn_value_spec spec = TN_VALUE_SPEC_INIT;
    tn_source source = TN_SOURCE_INIT;
    tn_handle h;
    snprintf(path, sizeof path, "/var/cache/tenure/bootstrap-4-4/seed-1/tenant-2/key-%07u.bin", i);
    spec.type = tn_buffer_type();
    spec.logical_bytes = spec.storage_bytes = 4096;
    spec.replica_mode = TN_REPLICABLE;
    spec.recoverability = TN_RECONSTRUCTIBLE;
    source.kind = TN_SOURCE_FILE;
    source.path = path;
    assert_ok(tn_manager_register_source(m, &spec, &source, P, &h));
}

static void collect_all(tn_manager *m) {
    uint64_t freed = 1;
    while (freed != 0)
        assert_ok(tn_manager_step(m, &freed));
}

static void registered_values_cost_at_most_512_bytes_each(void **state) {
    tn_manager *m = MANAGER(*state);
    if (!OWN_MALLOC)
        TN_SKIP("this malloc gives no figures (mallinfo2)");
    register_one(m, 0);
    collect_all(m);
    uint64_t before = bytes_in_use(), most = before;
    for (unsigned i = 1; i <= VALUES; i++) {
        register_one(m, i);
        if (i % 1000 == 0) { /* as a reaper would */
            uint64_t now = bytes_in_use();
            most = now > most ? now : most;
            collect_all(m);
        }
    }
    collect_all(m);
    uint64_t each = (bytes_in_use() - before) / VALUES;
    print_message("%" PRIu64 " bytes per registered value (limit %u); at most %" PRIu64
                  " while a thousand registrations were uncollected\n",
                  each, LIMIT_BYTES, (most - before) / VALUES);
    assert_true(each <= LIMIT_BYTES);
    assert_true(each >= 64); /* their paths alone: the figures are real */
    assert_int_equal(info(m).value_count, VALUES + 1);
}

/* All of it comes back. */
static void discarded_values_give_their_memory_back(void **state) {
    struct spec *f = *state;
    tn_config config = spec_config(f);
    config.keep_discarded = 1;
    tn_manager *m = spec_manager_with(f, &config);
    collect_all(m);
    uint64_t before = tn__alloc_live();
    tt_source *source = spec_source(f);
    tn_handle h[200];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 200; i++)
            h[i] = register_src(m, source);
        for (int i = 0; i < 200; i++)
            (void)discard(m, h[i]);
        collect_all(m);
        assert_true(tn__alloc_live() <= before + 24); /* trace, ring, one path of the tree */
    }
}

static const struct CMUnitTest tests[] = {
    SPEC_CONCURRENT(registered_values_cost_at_most_512_bytes_each),
    SPEC_CONCURRENT(discarded_values_give_their_memory_back),
};

TN_TEST_MAIN("unit.manager_memory", tests)
