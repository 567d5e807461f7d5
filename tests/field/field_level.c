/* SPDX-License-Identifier: MIT */
/* Field case F-A14: accounting is level, so must the heap be. */
#include "memory_util.h"

#include <stdio.h>
#include <unistd.h>

#include "base/base_internal.h"
#include "manager/manager_internal.h"

enum { VALUES = 64, EARLY = 1000 };

#if defined(__SANITIZE_ADDRESS__) || TN__TSAN
#define JUDGE_HEAP 0 /* a sanitizer's own memory grows */
#else
#define JUDGE_HEAP 1
#endif

struct level {
    uint64_t blocks;   /* of the library, live */
    uint64_t heap;     /* of the allocator, in use */
    uint64_t resident; /* of the process */
};

static uint64_t resident_bytes(void) {
    unsigned long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (file == NULL || fscanf(file, "%lu %lu", &pages, &resident) != 2)
        resident = 0;
    if (file != NULL)
        fclose(file);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* After a step: one version is alive. */
static struct level level_now(tn_manager *m) {
    tn_host_figures host = TN_HOST_FIGURES_INIT;
    const tn__store *store = m->store;

    assert_ok(tn_manager_step(m, NULL));
    assert_ptr_equal(store->oldest, store->newest);
    assert_ok(tn_host_read_memory(&host));
    return (struct level){tn__alloc_live(), host.allocated_bytes, resident_bytes()};
}

static uint64_t growth(uint64_t early, uint64_t late) {
    return late > early ? late - early : early - late;
}

static void iterate(tn_manager *m, const tn_handle *h, int from, int to) {
    for (int i = from; i < to; i++) {
        tn_handle one = h[i % VALUES];
        const void *data = NULL;
        tn_lease lease;

        assert_ok(tn_manager_ensure(m, one, P, NULL, NULL));
        assert_ok(tn_manager_acquire(m, &one, 1, P, NULL, &lease));
        assert_ok(tn_lease_lookup(&lease, one, &data));
        if (i % 97 == 0)
            assert_true(tt_check(data, 5));
        assert_ok(tn_lease_release(&lease, 0));
        assert_ok(tn_manager_drop(m, one, P, NULL));
        if (i % 100 == 99)
            assert_ok(tn_manager_step(m, NULL));
    }
}

static void f_a14_the_heap_is_as_level_as_the_accounting(void **state) {
    struct spec *f = *state;
    int last = (int)field_number(20000, 100000);
    tn_config config = spec_config(f);
    tt_source *source = spec_source(f);
    tn_handle h[VALUES];

    config.trace_capacity = 256;
    tn_manager *m = spec_manager_with(f, &config);
    source->seed = 5;
    for (int i = 0; i < VALUES; i++)
        h[i] = hm_source(m, source, field_number(4096, 65536), P);
    uint64_t before = version(m);
    iterate(m, h, 0, EARLY);
    struct level early = level_now(m);
    iterate(m, h, EARLY, last);
    struct level late = level_now(m);
    assert_int_equal(version(m) - before, 4 * last);
    print_message("    heap %+lld, resident %+lld, blocks %+lld after %d iterations\n",
                  (long long)(late.heap - early.heap), (long long)(late.resident - early.resident),
                  (long long)(late.blocks - early.blocks), last);
    /* The owner index has 64 shards, each made when an address first falls into it. */
    assert_true(growth(early.blocks, late.blocks) <= 64);
    if (JUDGE_HEAP) {
        assert_true(growth(early.heap, late.heap) <= 64 << 10);
        assert_true(growth(early.resident, late.resident) <= 1 << 20);
    }
    field_conserved(f, m);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(f_a14_the_heap_is_as_level_as_the_accounting),
};

TN_TEST_MAIN("field.level", tests)
